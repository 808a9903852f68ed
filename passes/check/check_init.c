// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check-init: warns of tiles that are read before they are written and of out tensors that no statement writes.
//
//   %acc = alloc …   for … { gemm %acc, %a, %b }      warning: 'acc' is read before it is written
//
// A structured walk in program order. Writing any element counts as writing the tile. What a loop writes does not count
// after the loop unless it certainly runs. What one branch of an `if` writes counts as written, but where nothing else
// does, and what reads it behind the `if` stands under no such condition, that is told. (In a loop another iteration
// may have written it.) Changes nothing.
#include "ir/index/affine.h"
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"

// Which allocs are written, as a bit per alloc in program order.
typedef struct init_state {
  tl_pass_context *context;
  TL_VEC(const tl_op *) allocs;
  bool *written;  // in scratch
  bool *reported;
  const tl_op **maybe_loop;  // per alloc: the loop that may run zero times and is the only writer so far
  const tl_op **maybe_if;    // per alloc: the branch of which one side is the only writer so far
  bool *writes_then;         // which side
  tl_status status;
} init_state;

static int32_t alloc_number(const init_state *state, const tl_value *buffer) {
  const tl_op *root = buffer->type->kind == TL_TYPE_BUFFER ? tl_buffer_root(buffer) : NULL;
  for (size_t i = 0; root && i < state->allocs.len; i++) {
    if (state->allocs.items[i] == root) return (int32_t)i;
  }
  return -1;
}

// Whether `condition` holds (or not, where `holds` is false) only where `wanted` does.
static bool implies(const tl_value *condition, bool holds, const tl_value *wanted, bool wanted_holds, int depth) {
  const tl_op *op = condition->def, *other = wanted->def;
  if (condition == wanted) return holds == wanted_holds;
  if (!op || depth == 0) return false;
  if (other && op->code == TL_OP_PRESENT && other->code == TL_OP_PRESENT)
    return holds == wanted_holds && tl_op_operand(op, 0) == tl_op_operand(other, 0);
  if (op->code == TL_OP_NOT) return implies(tl_op_operand(op, 0), !holds, wanted, wanted_holds, depth - 1);
  if (other && other->code == TL_OP_NOT)
    return implies(condition, holds, tl_op_operand(other, 0), !wanted_holds, depth - 1);
  if (op->code != (holds ? TL_OP_AND : TL_OP_OR)) return false;
  return implies(tl_op_operand(op, 0), holds, wanted, wanted_holds, depth - 1) ||
         implies(tl_op_operand(op, 1), holds, wanted, wanted_holds, depth - 1);
}

// Whether `op` runs only where the side of `branch` that writes buffer `alloc` did.
static bool runs_with(const tl_op *op, const tl_op *branch, bool side) {
  enum { MAX_DEPTH = 16 };
  const tl_value *wanted = tl_op_arg(branch, TL_GROUP_IF_condition);
  for (const tl_op *inner = op; inner->parent && inner->parent->parent; inner = inner->parent->parent) {
    const tl_op *around = inner->parent->parent;
    if (around->code != TL_OP_IF) continue;
    bool holds = inner->parent == around->regions[0];
    if (implies(tl_op_arg(around, TL_GROUP_IF_condition), holds, wanted, side, MAX_DEPTH)) return true;
  }
  return false;
}

// Of a tile that one side of a branch wrote and nothing else.
static void read_maybe(init_state *state, const tl_op *op, int32_t alloc) {
  const tl_op *branch = state->maybe_if[alloc];
  if (!branch || runs_with(op, branch, state->writes_then[alloc])) return;
  state->reported[alloc] = true;
  const char *name = tl_buffer_name(tl_op_result(state->allocs.items[alloc], 0));
  tl_diag *diag = tl_diag_report(state->context->diags, TL_DIAG_WRITTEN_IN_BRANCH, op->loc,
                                 "'%s' may be read before it is written: only one branch of the `if` writes it", name);
  tl_diag_add_note(state->context->diags, diag, branch->loc, "the `if`");
  tl_diag_add_hint(state->context->diags, diag, "clear or fill it before, or in the other branch");
}

static void read_buffer(init_state *state, const tl_op *op, const tl_value *buffer) {
  int32_t alloc = alloc_number(state, buffer);
  if (alloc < 0 || state->reported[alloc]) return;
  if (state->written[alloc]) {
    read_maybe(state, op, alloc);
    return;
  }
  state->reported[alloc] = true;
  const char *name = tl_buffer_name(tl_op_result(state->allocs.items[alloc], 0));
  const tl_op *loop = state->maybe_loop[alloc];
  tl_diag *diag =
      tl_diag_report(state->context->diags, TL_DIAG_READ_BEFORE_WRITE, op->loc,
                     loop ? "'%s' may be read before it is written: the loop that writes it may run zero times"
                          : "'%s' is read before it is written",
                     name);
  if (loop) tl_diag_add_note(state->context->diags, diag, loop->loc, "the loop");
  if (op->code == TL_OP_GEMM && buffer == tl_op_arg(op, TL_GROUP_GEMM_acc)) {
    tl_diag_add_hint(state->context->diags, diag, "`clear: %s` before the first gemm, or `gemm: %s = …`", name, name);
  } else {
    tl_diag_add_hint(state->context->diags, diag, "clear or fill it first");
  }
}

static void write_buffer(init_state *state, const tl_value *buffer) {
  int32_t alloc = alloc_number(state, buffer);
  if (alloc < 0) return;
  state->written[alloc] = true;
  state->maybe_if[alloc] = NULL;
}

static void visit_block(init_state *state, const tl_block *block);

static void visit_if(init_state *state, const tl_op *op) {
  size_t bytes = state->allocs.len * sizeof(bool);
  bool *before = (bool *)tl_arena_copy_bytes(&state->context->scratch, state->written, bytes);
  visit_block(state, op->regions[0]);
  bool *after_then = (bool *)tl_arena_copy_bytes(&state->context->scratch, state->written, bytes);
  for (size_t i = 0; i < state->allocs.len; i++) state->written[i] = before[i];
  if (op->regions[1]) visit_block(state, op->regions[1]);
  bool in_loop = tl_op_enclosing(op, TL_OP_FOR) != NULL;
  for (size_t i = 0; i < state->allocs.len; i++) {
    bool both = state->written[i] && after_then[i];
    if (!before[i] && !both && !in_loop && (state->written[i] || after_then[i])) {
      state->maybe_if[i] = op;
      state->writes_then[i] = after_then[i];
    } else if (!before[i] && both) {
      state->maybe_if[i] = NULL;
    }
    state->written[i] |= after_then[i];
  }
}

static bool runs_at_least_once(const tl_op *loop) {
  int64_t step = 0;
  if (tl_op_has(loop, TL_ATTR_WHILE)) return false;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step == 0) return false;
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  return step > 0 ? tl_prove_lt(lower, upper) : tl_prove_lt(upper, lower);
}

static void visit_for(init_state *state, const tl_op *op) {
  bool *before =
      (bool *)tl_arena_copy_bytes(&state->context->scratch, state->written, state->allocs.len * sizeof(bool));
  visit_block(state, op->regions[0]);
  if (runs_at_least_once(op)) return;
  for (size_t i = 0; i < state->allocs.len; i++) {
    if (state->written[i] && !before[i]) state->maybe_loop[i] = op;
    state->written[i] = before[i];
  }
}

// Roles run beside each other: barriers tell which of them writes a shared tile first.
static void visit_roles(init_state *state, tl_op *op) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    bool is_shared = effects.items[i].buffer->type->scope == TL_SCOPE_SHARED;
    if (is_shared && effects.items[i].kind != TL_EFFECT_READ) write_buffer(state, effects.items[i].buffer);
  }
  tl_vec_fini(&effects);
  visit_block(state, op->regions[0]);
}

static void visit_op(init_state *state, tl_op *op) {
  switch (op->code) {
    case TL_OP_IF:
      visit_if(state, op);
      return;
    case TL_OP_FOR:
      visit_for(state, op);
      return;
    case TL_OP_ROLES:
      visit_roles(state, op);
      return;
    case TL_OP_PARALLEL:
      // Every element has local arrays of its own, without any content yet.
      for (size_t i = 0; i < state->allocs.len; i++) {
        if (tl_op_result(state->allocs.items[i], 0)->type->scope == TL_SCOPE_LOCAL) state->written[i] = false;
      }
      break;
    case TL_OP_FILL:
      write_buffer(state, tl_op_arg(op, TL_GROUP_FILL_buffer));
      return;
    case TL_OP_COPY:
      read_buffer(state, op, tl_op_arg(op, TL_GROUP_COPY_src));
      write_buffer(state, tl_op_arg(op, TL_GROUP_COPY_dst));
      return;
    case TL_OP_GEMM:
      read_buffer(state, op, tl_op_arg(op, TL_GROUP_GEMM_a));
      read_buffer(state, op, tl_op_arg(op, TL_GROUP_GEMM_b));
      if (tl_op_arg(op, TL_GROUP_GEMM_meta)) read_buffer(state, op, tl_op_arg(op, TL_GROUP_GEMM_meta));
      if (!tl_op_has(op, TL_ATTR_CLEAR)) read_buffer(state, op, tl_op_arg(op, TL_GROUP_GEMM_acc));
      write_buffer(state, tl_op_arg(op, TL_GROUP_GEMM_acc));
      return;
    case TL_OP_REDUCE:
      read_buffer(state, op, tl_op_group_at(op, TL_GROUP_REDUCE_src, 0));
      for (uint32_t i = 0; i < tl_op_group_len(op, TL_GROUP_REDUCE_dst); i++)
        write_buffer(state, tl_op_group_at(op, TL_GROUP_REDUCE_dst, i));
      return;
    case TL_OP_SCAN:
      read_buffer(state, op, tl_op_arg(op, TL_GROUP_SCAN_src));
      write_buffer(state, tl_op_arg(op, TL_GROUP_SCAN_dst));
      return;
    case TL_OP_LOAD:
      read_buffer(state, op, tl_element_buffer(op));
      return;
    case TL_OP_STORE:
      write_buffer(state, tl_element_buffer(op));
      return;
    case TL_OP_WAIT_UNTIL:
      read_buffer(state, op, tl_element_buffer(op));
      return;
    case TL_OP_ATOMIC:
      read_buffer(state, op, tl_element_buffer(op));
      write_buffer(state, tl_element_buffer(op));
      return;
    case TL_OP_TILE_LOAD:
      read_buffer(state, op, tl_op_arg(op, TL_GROUP_TILE_LOAD_src));
      return;
    case TL_OP_TILE_STORE:
      write_buffer(state, tl_op_arg(op, TL_GROUP_TILE_STORE_dst));
      return;
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
      return;  // of values
    default:
      if (tl_op_touches_memory(op) && !state->status) {
        state->status = tl_status_make(TL_STATUS_INTERNAL, "check-init does not know what '%s' reads and writes",
                                       tl_op_info_of(op->code)->name);
      }
      break;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    if (op->regions[r]) visit_block(state, op->regions[r]);
  }
}

static void visit_block(init_state *state, const tl_block *block) {
  for (tl_op *op = block->first; op; op = op->next) visit_op(state, op);
}

// ---- outputs

typedef struct output_search {
  const tl_op *tensor;
  bool written;
} output_search;

static void find_write(tl_op *op, void *user) {
  output_search *search = user;
  const tl_value *target = op->code == TL_OP_COPY         ? tl_op_arg(op, TL_GROUP_COPY_dst)
                           : op->code == TL_OP_TILE_STORE ? tl_op_arg(op, TL_GROUP_TILE_STORE_dst)
                           : op->code == TL_OP_FILL       ? tl_op_arg(op, TL_GROUP_FILL_buffer)
                           : op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC ? tl_element_buffer(op)
                                                                                 : NULL;
  if (target && tl_buffer_root(target) == search->tensor) search->written = true;
}

static void check_outputs(tl_pass_context *context, tl_op *kernel) {
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_TENSOR || tl_op_int(op, TL_ATTR_ACCESS, TL_ACCESS_IN) != TL_ACCESS_OUT) continue;
    output_search search = {.tensor = op};
    tl_walk(kernel, find_write, &search);
    if (search.written) continue;
    tl_diag_report(context->diags, TL_DIAG_OUT_NEVER_WRITTEN, op->loc, "the out tensor '%s' is never written",
                   tl_buffer_name(tl_op_result(op, 0)));
  }
}

static tl_status check_kernel(tl_pass_context *context, tl_op *kernel) {
  init_state state = {.context = context};
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code == TL_OP_ALLOC) tl_vec_push(&state.allocs, op);
  }
  size_t count = state.allocs.len + 1;
  state.written = TL_NEW_ARRAY(&context->scratch, bool, count);
  state.reported = TL_NEW_ARRAY(&context->scratch, bool, count);
  state.maybe_loop = TL_NEW_ARRAY(&context->scratch, const tl_op *, count);
  state.maybe_if = TL_NEW_ARRAY(&context->scratch, const tl_op *, count);
  state.writes_then = TL_NEW_ARRAY(&context->scratch, bool, count);
  visit_block(&state, kernel->regions[0]);
  tl_vec_fini(&state.allocs);
  check_outputs(context, kernel);
  return state.status;
}

tl_status tl_pass_check_init(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) TL_TRY(check_kernel(context, op));
  }
  return TL_OK;
}
