// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// promote-fragments: loads and stores of whole tiles, and which dims of the other side a copied fragment walks.
#include "passes/analysis/memory_access.h"
#include "passes/tile/promote_fragments_internal.h"

tl_value *tl_fragment_load_whole(tl_builder *builder, tl_value *buffer) {
  const tl_type *type =
      tl_type_tile(builder->module, buffer->type->dtype, buffer->type->dims, buffer->type->rank, NULL);
  tl_value *zeros[TL_MAX_RANK];
  int64_t dims[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK] = {0};
  for (int32_t d = 0; d < type->rank; d++) {
    zeros[d] = tl_build_index(builder, 0);
    dims[d] = d;
  }
  tl_group groups[] = {TL_GROUP_OF(buffer), {zeros, (uint32_t)type->rank}, TL_GROUP_EMPTY, TL_GROUP_EMPTY};
  tl_op *load = tl_build(builder, TL_OP_TILE_LOAD, groups, &type, 1);
  tl_op_set_ints(builder->module, load, TL_ATTR_SRC_DIMS, dims, type->rank);
  tl_op_set_ints(builder->module, load, TL_ATTR_SRC_CHECK, checks, type->rank);
  return tl_op_result(load, 0);
}

void tl_fragment_store_whole(tl_builder *builder, tl_value *tile, tl_value *buffer) {
  tl_value *zeros[TL_MAX_RANK];
  int64_t dims[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK] = {0};
  int32_t rank = buffer->type->rank;
  for (int32_t d = 0; d < rank; d++) {
    zeros[d] = tl_build_index(builder, 0);
    dims[d] = d;
  }
  tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(buffer), {zeros, (uint32_t)rank}, TL_GROUP_EMPTY};
  tl_op *store = tl_build(builder, TL_OP_TILE_STORE, groups, NULL, 0);
  tl_op_set_ints(builder->module, store, TL_ATTR_DST_DIMS, dims, rank);
  tl_op_set_ints(builder->module, store, TL_ATTR_DST_CHECK, checks, rank);
}

// For each dim of the fragment: the dim of the other buffer that it walks, and the step. Dims of size 1 that the copy
// does not name walk a dim of the other side that stands still.
static void dims_for_tile(const tl_op *copy, bool fragment_is_source, int32_t rank, int32_t other_rank,
                          int64_t *out_dims, int64_t *out_steps) {
  int32_t len = 0, other_len = 0, steps_len = 0;
  const int64_t *mine = tl_op_ints(copy, fragment_is_source ? TL_ATTR_SRC_DIMS : TL_ATTR_DST_DIMS, &len);
  const int64_t *other = tl_op_ints(copy, fragment_is_source ? TL_ATTR_DST_DIMS : TL_ATTR_SRC_DIMS, &other_len);
  const int64_t *steps = tl_op_ints(copy, fragment_is_source ? TL_ATTR_DST_STEP : TL_ATTR_SRC_STEP, &steps_len);
  bool taken[TL_MAX_RANK] = {false};
  for (int32_t d = 0; d < rank; d++) {
    out_dims[d] = -1;
    out_steps[d] = 1;
  }
  for (int32_t t = 0; t < len; t++) {
    out_dims[mine[t]] = other[t];
    out_steps[mine[t]] = steps && t < steps_len ? steps[t] : 1;
    taken[other[t]] = true;
  }
  for (int32_t d = 0; d < rank; d++) {
    for (int32_t o = 0; o < other_rank && out_dims[d] < 0; o++) {
      if (taken[o]) continue;
      out_dims[d] = o;
      taken[o] = true;
    }
  }
}

static void copy_attr_as(tl_module *module, tl_op *to, tl_attr_key to_key, const tl_op *from, tl_attr_key from_key) {
  const tl_attr *attr = tl_op_attr(from, from_key);
  if (attr == NULL) return;
  tl_attr renamed = *attr;
  renamed.key = to_key;
  tl_op_set_attr(module, to, &renamed);
}

void tl_fragment_set_box(tl_module *module, tl_op *op, const tl_op *copy, bool fragment_is_source, int32_t rank,
                         int32_t other_rank) {
  int64_t dims[TL_MAX_RANK];
  int64_t steps[TL_MAX_RANK];
  dims_for_tile(copy, fragment_is_source, rank, other_rank, dims, steps);
  bool unit = true;
  for (int32_t d = 0; d < rank; d++) unit &= steps[d] == 1;
  tl_op_set_ints(module, op, fragment_is_source ? TL_ATTR_DST_DIMS : TL_ATTR_SRC_DIMS, dims, rank);
  if (!unit) tl_op_set_ints(module, op, fragment_is_source ? TL_ATTR_DST_STEP : TL_ATTR_SRC_STEP, steps, rank);
  tl_attr_key check = fragment_is_source ? TL_ATTR_DST_CHECK : TL_ATTR_SRC_CHECK;
  copy_attr_as(module, op, check, copy, check);
  copy_attr_as(module, op, TL_ATTR_VIA, copy, TL_ATTR_VIA);
  copy_attr_as(module, op, TL_ATTR_EVICT, copy, TL_ATTR_EVICT);
}
