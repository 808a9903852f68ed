// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores of elements that make up a box become stores of a tile, so that stage-stores can bring them into rows.
//
//   parallel [128, 64] layout=#accumulator { if %r + %i < %n { store … %C[%r + %i, %j] } }
//   → %t = parallel … { yield … }; tile_store %t -> %C[%r, 0] limits (min(M, %n - %r + …), N)
//
// A store directly in the parallel, or at the end of a branch whose condition bounds the box from above; each index is
// a value from outside plus at most one loop index. Needs infer-layouts.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/stage_stores.h"
#include "passes/tile/loop_rewrite.h"

// The box that a store's elements make up.
typedef struct element_box {
  tl_op *parallel, *store, *branch;  // branch: the IF around the store, or NULL
  int32_t rank;
  tl_affine base[TL_MAX_RANK];  // of each buffer dim's index: what does not depend on the loop
  int32_t tile_rank;
  int32_t loop_dims[TL_MAX_RANK];  // of each tile dim: the loop dim that it is
  int64_t dims[TL_MAX_RANK];       // of each tile dim: the buffer dim that it walks
  int64_t steps[TL_MAX_RANK];
  tl_affine limit[TL_MAX_RANK];  // of each buffer dim, of the branch's condition
  bool has_limit[TL_MAX_RANK];
} element_box;

// Takes the terms of the loop's indices out of `affine`. Returns how many there were; `*out_dim`, `*out_scale`: the
// last.
static int32_t take_loop_terms(tl_affine *affine, const tl_block *body, int32_t *out_dim, int64_t *out_scale) {
  int32_t kept = 0, taken = 0;
  for (int32_t t = 0; t < affine->num_terms; t++) {
    if (affine->terms[t].symbol->block == body) {
      *out_dim = (int32_t)affine->terms[t].symbol->index;
      *out_scale = affine->terms[t].coefficient;
      taken++;
    } else {
      affine->terms[kept++] = affine->terms[t];
    }
  }
  affine->num_terms = kept;
  return taken;
}

static bool find_box(element_box *box) {
  const tl_block *body = box->parallel->regions[0];
  const int64_t *extents = tl_op_ints(box->parallel, TL_ATTR_EXTENTS, NULL);
  int64_t walked = 0, walks[TL_MAX_RANK] = {0}, steps[TL_MAX_RANK] = {0};
  box->rank = (int32_t)tl_element_rank(box->store);
  for (int32_t d = 0; d < box->rank; d++) {
    tl_value *index = tl_element_index(box->store, (uint32_t)d);
    if (!tl_index_is_affine_in(index, box->parallel)) return false;
    box->base[d] = tl_affine_of(index);
    int32_t dim = 0;
    int64_t scale = 0;
    int32_t terms = take_loop_terms(&box->base[d], body, &dim, &scale);
    if (terms > 1 || (terms == 1 && (scale < 1 || (walked >> dim & 1)))) return false;
    if (terms == 0) continue;
    walked |= INT64_C(1) << dim;
    walks[dim] = d;
    steps[dim] = scale;
  }
  for (int32_t dim = 0; dim < (int32_t)body->num_args; dim++) {
    bool is_walked = walked >> dim & 1;
    if (!is_walked && extents[dim] != 1) return false;
    if (!is_walked) continue;
    box->loop_dims[box->tile_rank] = dim;
    box->dims[box->tile_rank] = walks[dim];
    box->steps[box->tile_rank++] = steps[dim];
  }
  return box->tile_rank > 0 && box->loop_dims[box->tile_rank - 1] == (int32_t)body->num_args - 1;
}

// ---- conditions

// The right side minus the left one of a comparison, and whether it may be 0 where that holds.
static tl_affine slack_of(const tl_op *cmp, bool *out_inclusive) {
  int64_t pred = tl_op_int(cmp, TL_ATTR_CMP, TL_CMP_EQ);
  bool turned = pred == TL_CMP_GT || pred == TL_CMP_GE;
  *out_inclusive = pred == TL_CMP_LE || pred == TL_CMP_GE;
  if (pred == TL_CMP_EQ || pred == TL_CMP_NE || tl_op_operand(cmp, 0)->type->kind != TL_TYPE_INDEX)
    return (tl_affine){0};
  tl_affine left = tl_affine_of(tl_op_operand(cmp, turned)), right = tl_affine_of(tl_op_operand(cmp, !turned));
  return tl_affine_sub(&right, &left);
}

static bool is_outside(const tl_affine *affine, const tl_op *parallel) {
  for (int32_t t = 0; t < affine->num_terms; t++) {
    const tl_value *symbol = affine->terms[t].symbol;
    if (tl_op_is_inside(symbol->def ? symbol->def : symbol->block->parent, parallel)) return false;
  }
  return true;
}

// Whether `condition` holds exactly where indices of the box stay below limits, which are added.
static bool add_limits(element_box *box, const tl_value *condition) {
  const tl_op *op = condition->def;
  if (!op) return false;
  if (op->code == TL_OP_AND) return add_limits(box, tl_op_operand(op, 0)) && add_limits(box, tl_op_operand(op, 1));
  bool inclusive = false;
  tl_affine slack = op->code == TL_OP_CMP ? slack_of(op, &inclusive) : (tl_affine){0};
  for (int32_t d = 0; d < box->rank && slack.valid; d++) {
    tl_affine index = tl_affine_of(tl_element_index(box->store, (uint32_t)d));
    tl_affine limit = tl_affine_add(&slack, &index);
    int32_t dim;
    int64_t scale;
    bool bounds = tl_affine_of(tl_element_index(box->store, (uint32_t)d)).num_terms > box->base[d].num_terms;
    if (!bounds || !limit.valid || box->has_limit[d] ||
        take_loop_terms(&limit, box->parallel->regions[0], &dim, &scale))
      continue;
    if (!is_outside(&limit, box->parallel) || __builtin_add_overflow(limit.constant, inclusive, &limit.constant))
      continue;
    box->limit[d] = limit;
    box->has_limit[d] = true;
    return true;
  }
  return false;
}

// ---- writing

// Whether an op of a branch may run although the branch is not taken: it computes, and divides by no variable.
static bool may_run_always(const tl_op *op) {
  int64_t divisor;
  if (op->num_regions > 0 || !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) return false;
  bool divides = op->code == TL_OP_DIV || op->code == TL_OP_FLOORDIV || op->code == TL_OP_MOD;
  return !divides || (tl_value_const_int(tl_op_operand(op, 1), &divisor) && divisor != 0);
}

// The value to store as a value of the parallel's body: computed whether the branch is taken or not where nothing in it
// minds, else its result, or 0.
static tl_value *value_of(tl_pass_context *context, element_box *box) {
  tl_module *module = context->module;
  tl_value *value = tl_op_arg(box->store, TL_GROUP_STORE_value);
  if (!box->branch) return value;
  bool is_harmless = true;
  for (const tl_op *op = box->branch->regions[0]->first; op; op = op->next)
    is_harmless &= op == box->store || op->code == TL_OP_YIELD || may_run_always(op);
  if (is_harmless) {
    for (tl_op *op = box->branch->regions[0]->first, *next; op; op = next) {
      next = op->next;
      if (op->code != TL_OP_YIELD && op != box->store) tl_op_move_before(op, box->branch);
    }
    return value;
  }
  const tl_type *type = value->type;
  tl_op *fresh = tl_op_add_results(module, box->branch, &type, 1);
  box->branch = fresh;
  tl_yield_append(module, tl_region_yield(module, fresh->regions[0], fresh->loc), &value, 1);
  tl_op *otherwise = tl_region_yield(module, fresh->regions[1], fresh->loc);
  tl_builder builder;
  tl_builder_before(&builder, module, otherwise);
  builder.loc = fresh->loc;
  tl_value *zero = tl_build_zero(&builder, type->dtype);
  tl_yield_append(module, otherwise, &zero, 1);
  return tl_op_result(fresh, 0);
}

static tl_value *whole_dim(tl_builder *builder, const tl_value *buffer, int32_t dim) {
  tl_value *value = tl_buffer_dim_value(buffer, dim);
  return value ? value : tl_build_index(builder, buffer->type->dims[dim]);
}

static tl_op *build_tile_store(tl_pass_context *context, const element_box *box, tl_value *tile, tl_value *buffer,
                               const int64_t *check) {
  tl_module *module = context->module;
  tl_builder builder;
  tl_builder_after(&builder, module, tile->def);
  builder.loc = box->store->loc;
  tl_value *offsets[TL_MAX_RANK], *limits[TL_MAX_RANK], *zero = tl_build_index(&builder, 0);
  bool is_limited = false;
  for (int32_t d = 0; d < box->rank; d++) {
    offsets[d] = tl_affine_build(&builder, &box->base[d]);
    limits[d] = whole_dim(&builder, buffer, d);
    is_limited |= box->has_limit[d];
    if (!box->has_limit[d]) continue;
    limits[d] = tl_index_min(&builder, limits[d], tl_affine_build(&builder, &box->limit[d]));
    limits[d] = tl_index_max(&builder, limits[d], zero);
  }
  tl_group groups[] = {TL_GROUP_OF(tile),
                       TL_GROUP_OF(buffer),
                       {offsets, (uint32_t)box->rank},
                       {limits, is_limited ? (uint32_t)box->rank : 0}};
  tl_op *store = tl_build(&builder, TL_OP_TILE_STORE, groups, NULL, 0);
  tl_op_set_ints(module, store, TL_ATTR_DST_DIMS, box->dims, tile->type->rank);
  tl_op_set_ints(module, store, TL_ATTR_DST_STEP, box->steps, tile->type->rank);
  tl_op_set_ints(module, store, TL_ATTR_DST_CHECK, check, box->rank);
  return store;
}

static void rewrite(tl_pass_context *context, element_box *box) {
  tl_module *module = context->module;
  tl_value *buffer = tl_element_buffer(box->store), *value = value_of(context, box);
  int64_t check[TL_MAX_RANK];
  for (int32_t d = 0; d < box->rank; d++)
    check[d] = tl_element_check(box->store, d) | (box->has_limit[d] ? TL_CHECK_UPPER : 0);
  tl_layout layout = *tl_op_layout(box->parallel, TL_ATTR_THREAD_LAYOUT);
  if (box->tile_rank != layout.rank) layout = tl_layout_project(&layout, box->loop_dims, box->tile_rank);
  int32_t num_maps = 0;
  const int64_t *extents = tl_op_ints(box->parallel, TL_ATTR_EXTENTS, NULL);
  const int64_t *maps = tl_op_ints(box->parallel, TL_ATTR_MAPS, &num_maps);
  int64_t *all = TL_NEW_ARRAY(&context->scratch, int64_t, num_maps + box->tile_rank), shape[TL_MAX_RANK];
  for (int32_t i = 0; i < num_maps; i++) all[i] = maps[i];
  for (int32_t i = 0; i < box->tile_rank; i++) {
    all[num_maps + i] = box->loop_dims[i];
    shape[i] = extents[box->loop_dims[i]];
  }
  const tl_type *type =
      tl_type_tile(module, buffer->type->dtype, shape, box->tile_rank, tl_module_layout(module, &layout));
  tl_op *fresh = tl_op_add_results(module, box->parallel, &type, 1);
  tl_op_set_ints(module, fresh, TL_ATTR_MAPS, all, num_maps + box->tile_rank);
  tl_yield_append(module, tl_region_yield(module, fresh->regions[0], fresh->loc), &value, 1);
  tl_value *tile = tl_op_result(fresh, fresh->num_results - 1);
  tile->name = tl_buffer_name(buffer);
  build_tile_store(context, box, tile, buffer, check);
  tl_op *emptied = box->branch && box->branch->num_results == 0 ? box->branch : NULL;
  tl_op_erase(box->store);
  if (emptied) tl_op_erase(emptied);
  box->parallel = fresh;
}

// ---- search

// Accesses of the memory in the block, counted up to `limit`: of a memory with many, the first few are enough to know.
static int32_t count_accesses(const tl_block *block, const tl_op *memory, int32_t limit) {
  int32_t count = 0;
  for (tl_op *op = block->first; op && count < limit; op = op->next) {
    bool accesses = op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC;
    count += accesses && tl_buffer_root(tl_element_buffer(op)) == memory;
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (op->regions[r]) count += count_accesses(op->regions[r], memory, limit - count);
  }
  return count;
}

// Whether the parallel touches the memory by this store alone: it may come last then.
static bool is_alone(const element_box *box) {
  return count_accesses(box->parallel->regions[0], tl_buffer_root(tl_element_buffer(box->store)), 2) == 1;
}

// The next store of the body that makes up a box; true where `box` has it.
static bool find_store(const tl_pass_context *context, const tl_op *kernel, tl_op *parallel,
                       tl_is_scattered_fn *is_scattered, element_box *box) {
  for (tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    *box = (element_box){.parallel = parallel, .store = op};
    if (op->code == TL_OP_IF && op->num_results == 0 &&
        !(op->regions[1] && op->regions[1]->first && op->regions[1]->first->code != TL_OP_YIELD)) {
      box->branch = op;
      box->store = NULL;
      for (tl_op *in = op->regions[0]->first; in; in = in->next)
        if (in->code != TL_OP_YIELD) box->store = in;
    }
    if (!box->store || box->store->code != TL_OP_STORE || !is_alone(box) || !find_box(box)) continue;
    const tl_value *buffer = tl_element_buffer(box->store);
    int32_t last = box->tile_rank - 1;
    if (!tl_buffer_is_global(buffer) || box->dims[last] != box->rank - 1 || box->steps[last] != 1) continue;
    if (!is_scattered(context, kernel, parallel, buffer)) continue;
    if (!box->branch || add_limits(box, tl_op_arg(box->branch, TL_GROUP_IF_condition))) return true;
  }
  return false;
}

tl_op *tl_stores_as_tiles(tl_pass_context *context, const tl_op *kernel, tl_op *parallel,
                          tl_is_scattered_fn *is_scattered) {
  element_box box;
  while (find_store(context, kernel, parallel, is_scattered, &box)) {
    rewrite(context, &box);
    parallel = box.parallel;
  }
  return parallel;
}
