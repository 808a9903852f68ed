// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// peel-tails: a loop over tiles runs its full tiles without asking whether they are, and loads of several ahead.
//
//   for t in 0 … U { if t * 1024 + 1023 < N uniform { load } else { load with bounds }; … }
//   → F = min(U, (N - 1024) / 1024 + 1)
//     for t in 0 … F unroll 4 { load; … }; for t in F … U { the body as it was }
//
// Where the loop's length is known at launch only, and its body does nothing but load from global memory, compute in
// registers and store to global memory: there is no barrier in it that loads could not pass. A branch around a load
// ends what the assembler may move, and one load of each thread is in flight. Needs split-tails.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "passes/tile/canonicalize.h"
#include "support/vec.h"

enum {
  UNROLL = 4,          // iterations whose loads are in flight together
  MAX_REGISTERS = 32,  // of what they load
  MAX_CODE = 2048,     // ops of one thread in the body
  REGISTER_BITS = 32,
};

// ---- what a body does

typedef struct body_facts {
  bool streams;       // nothing but what the head of this file says
  bool in_tail;       // in what is left for tiles that are not full
  int64_t code;       // ops of one thread
  int64_t load_bits;  // that one thread loads in an iteration
} body_facts;

static int64_t registers_of(const tl_layout *layout) {
  return layout ? tl_layout_num_registers(layout) : 1;
}

static bool is_global(const tl_value *buffer) {
  return buffer->type->scope == TL_SCOPE_GLOBAL;
}

static void look_at_block(body_facts *facts, const tl_block *block, int64_t elements);

static void look_at(body_facts *facts, const tl_op *op, int64_t elements) {
  facts->code += elements;
  switch (op->code) {
    case TL_OP_TILE_LOAD: {
      const tl_value *src = tl_op_arg(op, TL_GROUP_TILE_LOAD_src);
      int64_t registers = registers_of(op->results[0].type->layout);
      facts->streams &= is_global(src);
      facts->load_bits += registers * tl_dtype_bits(src->type->dtype);
      facts->code += registers;
      return;
    }
    case TL_OP_TILE_STORE:
      facts->streams &= is_global(tl_op_arg(op, TL_GROUP_TILE_STORE_dst));
      return;
    case TL_OP_LOAD:
      facts->streams &= is_global(tl_element_buffer(op));
      facts->load_bits += elements * tl_dtype_bits(tl_element_buffer(op)->type->dtype);
      return;
    case TL_OP_STORE:
      facts->streams &= is_global(tl_element_buffer(op));
      return;
    case TL_OP_PARALLEL:
      look_at_block(facts, op->regions[0], registers_of(tl_op_layout(op, TL_ATTR_THREAD_LAYOUT)));
      return;
    case TL_OP_IF:
      // Around elements it keeps their loads where they are, however often the body is there.
      facts->streams &= facts->in_tail || op->parent->parent->code != TL_OP_PARALLEL;
      // Of two versions one runs.
      if (op->regions[0]) look_at_block(facts, op->regions[0], elements);
      if (op->regions[1]) {
        int64_t bits = facts->load_bits;
        bool around = facts->in_tail;
        facts->in_tail |= tl_op_has(op, TL_ATTR_UNIFORM);
        look_at_block(facts, op->regions[1], elements);
        facts->in_tail = around;
        facts->load_bits = bits;
      }
      return;
    case TL_OP_YIELD:
    case TL_OP_EXTRACT:
    case TL_OP_SPLAT:
      return;
    default:
      facts->streams &= (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0 && op->num_regions == 0;
      return;
  }
}

static void look_at_block(body_facts *facts, const tl_block *block, int64_t elements) {
  for (const tl_op *op = block->first; op; op = op->next) look_at(facts, op, elements);
}

// ---- how far the full tiles go

static bool is_outside(const tl_affine *form, const tl_op *loop) {
  for (int32_t i = 0; i < form->num_terms; i++) {
    const tl_value *symbol = form->terms[i].symbol;
    if (tl_op_is_inside(symbol->def ? symbol->def : symbol->block->parent, loop)) return false;
  }
  return form->valid;
}

// The form without its term in `symbol`, whose coefficient is returned.
static int64_t take_term(tl_affine *form, const tl_value *symbol) {
  int64_t coefficient = tl_affine_coefficient(form, symbol);
  int32_t kept = 0;
  for (int32_t i = 0; i < form->num_terms; i++)
    if (form->terms[i].symbol != symbol) form->terms[kept++] = form->terms[i];
  form->num_terms = kept;
  return coefficient;
}

// All iterations or none.
static tl_value *all_where(tl_builder *builder, tl_value *condition, tl_value *upper) {
  return tl_build_select(builder, condition, upper, tl_build_index(builder, INT32_MIN));
}

// The end of the iterations of `loop` for which `condition` holds, where these are those below it and it can be
// computed before the loop; NULL where not. `builder` stands before the loop.
static tl_value *end_of(tl_builder *builder, const tl_op *loop, tl_value *condition, tl_value *upper) {
  const tl_op *op = condition->def;
  if (!op) return NULL;
  if (!tl_op_is_inside(op, loop)) return all_where(builder, condition, upper);
  if (op->code == TL_OP_AND) {
    tl_value *a = end_of(builder, loop, tl_op_operand(op, 0), upper);
    tl_value *b = a ? end_of(builder, loop, tl_op_operand(op, 1), upper) : NULL;
    return b ? tl_index_min(builder, a, b) : NULL;
  }
  int64_t pred = op->code == TL_OP_CMP ? tl_op_int(op, TL_ATTR_CMP, TL_CMP_EQ) : TL_CMP_EQ;
  if ((pred != TL_CMP_LT && pred != TL_CMP_LE) || tl_op_operand(op, 0)->type->kind != TL_TYPE_INDEX) return NULL;
  // a < b: b - a - 1 >= 0, and a falling line of the index is that up to where it crosses 0.
  tl_affine a = tl_affine_of(tl_op_operand(op, 0)), b = tl_affine_of(tl_op_operand(op, 1));
  if (!a.valid || !b.valid) return NULL;
  tl_affine rest = tl_affine_sub(&b, &a);
  int64_t slope = rest.valid ? take_term(&rest, loop->regions[0]->args[0]) : 0;
  if (slope > 0 || slope < -INT32_MAX || !is_outside(&rest, loop)) return NULL;
  rest.constant -= pred == TL_CMP_LT;
  tl_value *room = tl_affine_build(builder, &rest);
  if (slope == 0) return all_where(builder, tl_build_cmp(builder, TL_CMP_GE, room, tl_build_index(builder, 0)), upper);
  tl_value *last = tl_build_binary(builder, TL_OP_FLOORDIV, room, tl_build_index(builder, -slope));
  return tl_index_add(builder, last, tl_build_index(builder, 1));
}

typedef TL_VEC(tl_op *) branch_list;

// The branches directly in the body that ask whether the tile is full.
static void find_branches(const tl_op *loop, branch_list *out) {
  for (tl_op *op = loop->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_IF && tl_op_has(op, TL_ATTR_UNIFORM)) tl_vec_push(out, op);
}

// ---- writing

// Makes the loop two; `end` is where the second begins.
static void peel(tl_pass_context *context, tl_op *loop, const branch_list *branches, tl_builder *builder,
                 tl_value *end) {
  tl_module *module = context->module;
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *step = tl_op_arg(loop, TL_GROUP_FOR_step);
  // The first iteration of the loop's at the end or behind it.
  tl_value *zero = tl_build_index(builder, 0), *one = tl_build_index(builder, 1);
  tl_value *distance = tl_index_sub(builder, end, lower);
  distance = tl_index_max(builder, distance, zero);
  int64_t by = 0;
  if (!tl_value_const_int(step, &by) || by != 1) {
    tl_value *ahead = tl_index_add(builder, distance, step);
    ahead = tl_index_sub(builder, ahead, one);
    distance = tl_index_mul(builder, tl_build_binary(builder, TL_OP_FLOORDIV, ahead, step), step);
  }
  tl_value *second = tl_index_add(builder, lower, distance);
  tl_value *yes = tl_build_bool(builder, true);
  tl_value_map map = {0};
  tl_op *full = tl_op_clone(builder, loop, &map);
  tl_op_set_group(module, full, TL_GROUP_FOR_upper, &end, 1);
  for (size_t i = 0; i < branches->len; i++) {
    // The clone of a branch without results is found by its condition's place, which is the same in both bodies.
    tl_op *original = loop->regions[0]->first, *clone = full->regions[0]->first;
    while (original != branches->items[i]) original = original->next, clone = clone->next;
    tl_op_set_group(module, clone, TL_GROUP_IF_condition, &yes, 1);
  }
  tl_value_map_fini(&map);
  tl_canonicalize_decided(full->regions[0]);
  tl_op_set_group(module, loop, TL_GROUP_FOR_lower, &second, 1);
  tl_value **carried = TL_NEW_ARRAY(&context->scratch, tl_value *, full->num_results + 1);
  for (uint32_t i = 0; i < full->num_results; i++) carried[i] = tl_op_result(full, i);
  tl_op_set_group(module, loop, TL_GROUP_FOR_inits, carried, full->num_results);
  if (tl_op_has(loop, TL_ATTR_UNROLL)) tl_op_remove_attr(loop, TL_ATTR_UNROLL);
}

static bool is_candidate(const tl_op *loop) {
  static const tl_attr_key others[] = {TL_ATTR_PIPELINED, TL_ATTR_WHILE, TL_ATTR_TILES, TL_ATTR_DYNAMIC};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (tl_op_has(loop, others[i])) return false;
  int64_t upper = 0;
  bool is_dynamic = !tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_upper), &upper);
  return is_dynamic && tl_value_range(tl_op_arg(loop, TL_GROUP_FOR_step)).lo >= 1 &&
         tl_op_int(loop, TL_ATTR_UNROLL, 0) != -1;
}

static bool peel_loop(tl_pass_context *context, tl_op *loop) {
  body_facts facts = {.streams = true};
  if (!is_candidate(loop)) return false;
  look_at_block(&facts, loop->regions[0], 1);
  if (!facts.streams || facts.load_bits == 0 || facts.code > MAX_CODE) return false;
  branch_list branches = {0};
  find_branches(loop, &branches);
  tl_builder builder;
  tl_builder_before(&builder, context->module, loop);
  builder.loc = loop->loc;
  tl_value *upper = tl_op_arg(loop, TL_GROUP_FOR_upper), *end = upper;
  size_t known = 0, count = branches.len;
  for (size_t i = 0; i < branches.len; i++) {
    tl_value *full = end_of(&builder, loop, tl_op_arg(branches.items[i], TL_GROUP_IF_condition), upper);
    if (!full) continue;
    end = tl_index_min(&builder, end, full);
    branches.items[known++] = branches.items[i];
  }
  branches.len = known;
  int64_t registers = (facts.load_bits + REGISTER_BITS - 1) / REGISTER_BITS, unroll = UNROLL;
  while (unroll > 1 && unroll * registers > MAX_REGISTERS) unroll /= 2;
  if (known == count && unroll > 1 && !tl_op_has(loop, TL_ATTR_UNROLL))
    tl_op_set_int(context->module, loop, TL_ATTR_UNROLL, unroll);
  if (branches.len > 0) {
    peel(context, loop, &branches, &builder, end);
    tl_diag_report(context->diags, TL_DIAG_REMARK_PEEL, loop->loc, "this loop's full tiles run in a loop of their own");
  }
  tl_vec_fini(&branches);
  return true;
}

static bool visit(tl_pass_context *context, tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (op->regions[r]) changed |= visit(context, op->regions[r]);
    if (op->code == TL_OP_FOR && op->parent->parent->code != TL_OP_PARALLEL) changed |= peel_loop(context, op);
  }
  return changed;
}

tl_status tl_pass_peel_tails(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL || !visit(context, op->regions[0])) continue;
    // That no tile of the second loop is full shows when its bounds are simple.
    tl_canonicalize_pure(context, op->regions[0]);
    if (tl_canonicalize_decided(op->regions[0])) tl_canonicalize_pure(context, op->regions[0]);
  }
  return TL_OK;
}
