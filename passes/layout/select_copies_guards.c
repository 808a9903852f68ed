// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gathers of which a condition decides for each element.
//
//   parallel do(%i, %j) {                           parallel do(%i, %j) {
//     if %c { store (load %X …) %xs[%i, %j] }         %v = load %X …
//     else { store 0 %xs[%i, %j] }              ⇒     store (select %c, %v, 0) %xs[%i, %j]
//   }                                               }
//
// So they are the choice beside zero that cp.async makes (select_copies_parallel.c). Without an `else` the elements
// keep what they had: where nothing else writes the tile, and the condition is the same in every iteration of the loops
// around, nobody ever writes them, so that zeros are as good.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/check/check_bounds.h"
#include "passes/layout/select_copies.h"

typedef struct guard {
  tl_op *branch;
  tl_op *store[2];  // of the regions; NULL: the region stores nothing
} guard;

static bool is_computed(const tl_op *op) {
  bool loads =
      op->code == TL_OP_LOAD && !tl_op_has(op, TL_ATTR_MEMORY_ORDER) && tl_buffer_is_global(tl_element_buffer(op));
  return op->num_regions == 0 && (loads || (tl_op_info_of(op->code)->flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR)));
}

// The region computes, and stores one element of a shared tile at most.
static bool find_store(const tl_block *block, tl_op **out_store) {
  *out_store = NULL;
  for (tl_op *op = block->first; op; op = op->next) {
    if (is_computed(op)) continue;
    if (op->code != TL_OP_STORE || *out_store || !tl_buffer_is_shared(tl_element_buffer(op))) return false;
    *out_store = op;
  }
  return true;
}

static bool find_guard(const tl_op *parallel, guard *out) {
  *out = (guard){0};
  if (parallel->num_results > 0) return false;
  for (tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    if (is_computed(op)) continue;
    if (op->code != TL_OP_IF || op->num_results > 0 || out->branch) return false;
    out->branch = op;
  }
  return out->branch && find_store(out->branch->regions[0], &out->store[0]) &&
         find_store(out->branch->regions[1], &out->store[1]) && (out->store[0] || out->store[1]);
}

static bool is_zero(const tl_value *value) {
  const tl_attr *attr = value->def && value->def->code == TL_OP_CONST ? tl_op_attr(value->def, TL_ATTR_VALUE) : NULL;
  return attr && (attr->is_float ? attr->v.f == 0.0 : attr->v.i == 0);
}

static bool is_same_place(const tl_op *a, const tl_op *b) {
  if (tl_element_buffer(a) != tl_element_buffer(b)) return false;
  for (uint32_t d = 0; d < tl_element_rank(a); d++) {
    if (!tl_prove_equal(tl_element_index(a, d), tl_element_index(b, d))) return false;
    if (tl_element_check(a, (int32_t)d) != tl_element_check(b, (int32_t)d)) return false;
  }
  return true;
}

// Whether the value is the same for an element of the parallel in every iteration of the loops around.
static bool is_fixed(const tl_op *parallel, const tl_value *value, int depth) {
  tl_op *def = value->def;
  if (!def) return value->block == parallel->regions[0] || value->block->parent->code == TL_OP_KERNEL;
  if (!tl_op_enclosing(def, TL_OP_FOR)) return true;
  if (depth == 0 || !is_computed(def)) return false;
  if (def->code == TL_OP_LOAD) {
    const tl_op *tensor = tl_buffer_root(tl_element_buffer(def));
    if (!tensor || tl_op_int(tensor, TL_ATTR_ACCESS, TL_ACCESS_INOUT) != TL_ACCESS_IN) return false;
    if (tl_effects_write(tl_op_enclosing(parallel, TL_OP_KERNEL), &tensor->results[0])) return false;
  }
  for (uint32_t i = 0; i < def->num_operands; i++) {
    const tl_value *operand = tl_op_operand(def, i);
    if (operand->type->kind != TL_TYPE_BUFFER && !is_fixed(parallel, operand, depth - 1)) return false;
  }
  return true;
}

// Whether nobody writes the elements for which the branch is not taken.
static bool leaves_unwritten(tl_op *parallel, const guard *found, const tl_value *tile) {
  enum { DEPTH = 16 };
  tl_effect_list effects = {0};
  bool alone = tile->def && tile->def->code == TL_OP_ALLOC;
  tl_effects_inside(tl_op_enclosing(parallel, TL_OP_KERNEL), &effects);
  for (size_t i = 0; i < effects.len && alone; i++) {
    const tl_effect *effect = &effects.items[i];
    alone = effect->root != tile || effect->kind == TL_EFFECT_READ || tl_op_is_inside(effect->op, parallel);
  }
  tl_vec_fini(&effects);
  return alone && is_fixed(parallel, tl_op_operand(found->branch, 0), DEPTH);
}

// What ran under the condition runs in any case: bounds that held there are tested.
static void move_out(tl_module *module, const guard *found, const tl_block *from) {
  for (tl_op *op = from->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_STORE || op->code == TL_OP_YIELD) continue;
    tl_op_move_before(op, found->branch);
    if (op->code != TL_OP_LOAD) continue;
    int64_t all[TL_MAX_RANK];
    uint32_t rank = tl_element_rank(op);
    for (uint32_t d = 0; d < rank; d++) all[d] = TL_CHECK_LOWER | TL_CHECK_UPPER;
    tl_op_set_ints(module, op, TL_ATTR_CHECK, all, (int32_t)rank);
    tl_refine_bounds(module, op);
  }
}

void tl_flatten_guard(tl_pass_context *context, tl_op *parallel) {
  guard found;
  if (!tl_is_in_pipeline(parallel) || !(context->target->features & TL_FEATURE_CP_ASYNC)) return;
  if (!find_guard(parallel, &found)) return;
  int side = found.store[0] && !is_zero(tl_op_arg(found.store[0], TL_GROUP_STORE_value)) ? 0 : 1;
  tl_op *store = found.store[side], *other = found.store[1 - side];
  if (!store) return;
  if (other) {
    if (!is_zero(tl_op_arg(other, TL_GROUP_STORE_value)) || !is_same_place(store, other)) return;
  } else if (!leaves_unwritten(parallel, &found, tl_element_buffer(store))) {
    return;
  }
  move_out(context->module, &found, found.branch->regions[side]);
  tl_builder builder;
  tl_builder_before(&builder, context->module, found.branch);
  builder.loc = store->loc;
  tl_value *value = tl_op_arg(store, TL_GROUP_STORE_value), *zero = tl_build_zero(&builder, value->type->dtype);
  tl_value *chosen =
      tl_build_select(&builder, tl_op_operand(found.branch, 0), side == 0 ? value : zero, side == 0 ? zero : value);
  tl_op_move_before(store, found.branch);
  tl_op_set_group(context->module, store, TL_GROUP_STORE_value, &chosen, 1);
  tl_op_erase(found.branch);
}
