// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asynchronous copies that no ring carries. Outside of ring loops a run of them becomes one group: the copies, a
// commit, and a wait for everything before the first statement that touches one of their tiles. Inside a ring loop such
// a wait would drain the ring, so there the copies go through registers instead.
#include "passes/layout/select_copies.h"
#include "passes/pipeline/pipeline_internal.h"
#include "passes/tile/loop_rewrite.h"

static bool holds_ring(const tl_op *op) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      if (inner->code == TL_OP_RING_WAIT || holds_ring(inner)) return true;
    }
  }
  return false;
}

void tl_copy_leave_engine(tl_module *module, tl_op *copy) {
  tl_value *map = copy->code == TL_OP_COPY ? tl_op_arg(copy, TL_GROUP_COPY_map) : NULL;
  if (!map) return;
  tl_op_set_int(module, copy, TL_ATTR_VIA, tl_copy_rounds(copy) ? TL_VIA_VECTOR : TL_VIA_CP_ASYNC);
  tl_op_set_group(module, copy, TL_GROUP_COPY_map, NULL, 0);
  if (!map->uses) tl_op_erase(map->def);  // else the launcher would make it for nothing
}

static void make_synchronous(tl_module *module, tl_op *op) {
  if (op->code == TL_OP_COPY) {
    tl_op_set_int(module, op, TL_ATTR_VIA, TL_VIA_VECTOR);
  } else {
    tl_op_remove_attr(op, TL_ATTR_VIA);
  }
}

typedef TL_VEC(tl_value *) root_list;

static void add_roots(tl_op *op, root_list *written, root_list *read) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    bool reads = effects.items[i].kind == TL_EFFECT_READ;
    if (reads) tl_vec_push(read, effects.items[i].root);
    if (!reads) tl_vec_push(written, effects.items[i].root);
  }
  tl_vec_fini(&effects);
}

// Whether `op` touches a tile that the copies write, or writes memory that they read.
static bool touches_any(tl_op *op, const root_list *written, const root_list *read) {
  for (size_t i = 0; i < written->len; i++) {
    if (tl_effects_read(op, written->items[i]) || tl_effects_write(op, written->items[i])) return true;
  }
  for (size_t i = 0; i < read->len; i++) {
    if (tl_effects_write(op, read->items[i])) return true;
  }
  return false;
}

// Turns the run of candidates that starts at `first` into a group; returns the op after the commit.
static tl_op *make_group(tl_module *module, tl_op *first) {
  root_list written = {0};
  root_list read = {0};
  TL_VEC(tl_value *) tokens = {0};
  const tl_type *token = tl_type_simple(module, TL_TYPE_TOKEN);
  tl_op *op = first;
  // Pure index computations may stand between the copies; a copy onto a tile of the same group would race with it.
  for (; op; op = op->next) {
    bool is_pure = op->num_regions == 0 && (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE);
    if (is_pure) continue;
    if (!tl_is_async_candidate(op) || tl_copy_rounds(op) || op->num_results > 0 || touches_any(op, &written, &read))
      break;
    tl_copy_leave_engine(module, op);
    add_roots(op, &written, &read);
    tl_op_set_unit(module, op, TL_ATTR_ASYNC);
    if (op->code != TL_OP_COPY) continue;
    tl_op_set_results(module, op, &token, 1);
    tl_vec_push(&tokens, tl_op_result(op, 0));
  }
  tl_builder builder;
  if (op) {
    tl_builder_before(&builder, module, op);
  } else {
    tl_builder_at_end(&builder, module, first->parent);
  }
  builder.loc = first->loc;
  tl_group groups[] = {{tokens.items, (uint32_t)tokens.len}};
  tl_build(&builder, TL_OP_ASYNC_COMMIT, groups, NULL, 0);
  tl_op *user = op;
  while (user && user->code != TL_OP_YIELD && !touches_any(user, &written, &read)) user = user->next;
  if (user) {
    tl_builder_before(&builder, module, user);
  } else {
    tl_builder_at_end(&builder, module, first->parent);
  }
  builder.loc = first->loc;
  tl_op *wait = tl_build(&builder, TL_OP_ASYNC_WAIT, NULL, NULL, 0);
  tl_op_set_int(module, wait, TL_ATTR_PENDING, 0);
  tl_vec_fini(&written);
  tl_vec_fini(&read);
  tl_vec_fini(&tokens);
  return op;
}

// A copy that was to go by TMA, or by cp.async, and does not.
static void remark_way(tl_pass_context *context, const tl_op *op, bool is_synchronous) {
  if (op->code != TL_OP_COPY || (!is_synchronous && !tl_op_arg(op, TL_GROUP_COPY_map))) return;
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, op->loc, "the copy goes %s, since it runs in order",
                 is_synchronous ? "through registers" : "by cp.async");
}

static void finish_block(tl_pass_context *context, tl_block *block, bool in_ring_loop) {
  tl_module *module = context->module;
  for (tl_op *op = block->first; op;) {
    if (tl_is_async_candidate(op)) {
      bool is_synchronous = in_ring_loop || op->num_results > 0 || tl_copy_rounds(op);
      remark_way(context, op, is_synchronous);
      tl_copy_leave_engine(module, op);
      if (is_synchronous) {
        make_synchronous(module, op);
      } else {
        op = make_group(module, op);
        continue;
      }
    }
    if (op->code != TL_OP_PARALLEL) {
      bool ring = in_ring_loop || (op->code == TL_OP_FOR && holds_ring(op));
      for (uint32_t r = 0; r < op->num_regions; r++) finish_block(context, op->regions[r], ring);
    }
    op = op->next;
  }
}

void tl_pipeline_finish_copies(tl_pass_context *context, tl_op *kernel) {
  finish_block(context, kernel->regions[0], false);
}
