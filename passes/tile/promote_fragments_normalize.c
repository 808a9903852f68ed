// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Brings accesses to fragments into the one form that promotion knows: parallels whose indices walk every fragment in
// them wholly. A parallel over a part of a tile becomes one over the whole tile with a guarded body; a copy from or to
// a part of a tile becomes such a parallel.
#include <string.h>

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/tile/loop_rewrite.h"
#include "passes/tile/promote_fragments_internal.h"
#include "support/status.h"

// ---- parallels

static tl_op *build_parallel(tl_builder *builder, const int64_t *extents, int32_t rank) {
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(builder->module, parallel, TL_ATTR_EXTENTS, extents, rank);
  for (int32_t d = 0; d < rank; d++) {
    tl_block_add_arg(builder->module, parallel->regions[0], tl_type_index(builder->module), NULL);
  }
  return parallel;
}

// An IF without results at the builder whose then-region the builder moves into.
static tl_op *enter_if(tl_builder *builder, tl_value *condition) {
  tl_group groups[] = {TL_GROUP_OF(condition)};
  tl_op *branch = tl_build(builder, TL_OP_IF, groups, NULL, 0);
  tl_loc loc = branch->loc;
  tl_region_yield(builder->module, branch->regions[1], loc);
  tl_builder_at_end(builder, builder->module, branch->regions[0]);
  builder->loc = loc;
  return branch;
}

static tl_value *and_also(tl_builder *builder, tl_value *a, tl_value *b) {
  return a ? tl_build_binary(builder, TL_OP_AND, a, b) : b;
}

// Points the access' constant subscripts of size-1 dims at the parallel's extra leading indices.
static void use_extra_indices(tl_module *module, tl_op *access, const tl_op *parallel) {
  int32_t map[TL_MAX_RANK];
  if (!tl_fragment_access_map(access, parallel, map)) return;
  int group = access->code == TL_OP_LOAD ? TL_GROUP_LOAD_index : TL_GROUP_STORE_index;
  uint32_t rank = tl_element_rank(access);
  tl_value *indices[TL_MAX_RANK];
  uint32_t next = 0;
  bool changed = false;
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = tl_element_index(access, d);
    if (map[d] >= 0) continue;
    indices[d] = parallel->regions[0]->args[next++];
    changed = true;
  }
  if (changed) tl_op_set_group(module, access, group, indices, rank);
}

typedef struct extra_walk {
  tl_fragments *fragments;
  tl_op *parallel;
} extra_walk;

static void visit_extra(tl_op *op, void *user) {
  extra_walk *walk = user;
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) return;
  if (tl_fragment_find(walk->fragments, tl_element_buffer(op)) < 0) return;
  use_extra_indices(walk->fragments->module, op, walk->parallel);
}

// Replaces `parallel` by one with `extra` leading indices of extent 1 and larger extents; the body runs only for the
// old ones.
static tl_op *extend_parallel(tl_fragments *fragments, tl_op *parallel, const int64_t *extents, int32_t rank,
                              int32_t extra) {
  tl_module *module = fragments->module;
  const int64_t *old = tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
  int64_t all[TL_MAX_RANK];
  for (int32_t d = 0; d < extra; d++) all[d] = 1;
  memcpy(all + extra, extents, sizeof(*all) * (size_t)rank);
  tl_builder builder;
  tl_builder_before(&builder, module, parallel);
  builder.loc = parallel->loc;
  tl_op *fresh = tl_build(&builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_copy_attrs(module, fresh, parallel);
  tl_op_set_ints(module, fresh, TL_ATTR_EXTENTS, all, rank + extra);
  tl_block *body = fresh->regions[0];
  for (int32_t d = 0; d < rank + extra; d++) {
    const tl_value *was = d < extra ? NULL : parallel->regions[0]->args[d - extra];
    tl_value *arg = tl_block_add_arg(module, body, tl_type_index(module), was ? was->name : NULL);
    if (was) tl_value_replace_uses(parallel->regions[0]->args[d - extra], arg);
  }
  tl_builder_at_end(&builder, module, body);
  builder.loc = parallel->loc;
  tl_value *condition = NULL;
  for (int32_t d = 0; d < rank; d++) {
    if (old[d] == extents[d]) continue;
    tl_value *limit = tl_build_index(&builder, old[d]);
    condition = and_also(&builder, condition, tl_build_cmp(&builder, TL_CMP_LT, body->args[d + extra], limit));
  }
  if (condition) enter_if(&builder, condition);
  tl_block_move_ops(parallel->regions[0], builder.block);
  tl_region_yield(module, body, parallel->loc);
  tl_op_erase(parallel);
  extra_walk walk = {fragments, fresh};
  tl_walk(fresh, visit_extra, &walk);
  return fresh;
}

typedef struct op_list {
  tl_opcode code;
  TL_VEC(tl_op *) items;
} op_list;

static void collect(tl_op *op, void *user) {
  op_list *list = user;
  if (op->code == list->code) tl_vec_push(&list->items, op);
}

static tl_status normalize_parallels(tl_fragments *fragments) {
  op_list list = {.code = TL_OP_PARALLEL};
  tl_walk(fragments->kernel, collect, &list);
  tl_status status = TL_OK;
  for (size_t i = 0; i < list.items.len && status == TL_OK; i++) {
    tl_op *parallel = list.items.items[i];
    int32_t rank = 0;
    const int64_t *old = tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
    int64_t extents[TL_MAX_RANK];
    int32_t extra = 0;
    if (!tl_fragments_extents(fragments, parallel, false, extents, &extra)) {
      status = tl_status_make(TL_STATUS_INTERNAL, "promote-fragments: a parallel walks tiles of different sizes");
    } else if (extra > 0 || memcmp(old, extents, sizeof(*old) * (size_t)rank) != 0) {
      extend_parallel(fragments, parallel, extents, rank, extra);
    }
  }
  tl_vec_fini(&list.items);
  return status;
}

// ---- dims of size 1

// In a dim of size 1 the subscript 0 and the index of a loop that runs once name the same element. Where a loop of the
// parallel runs once and the access does not use it yet, its index takes the place of the 0, so that `x[0, j]` and
// `x[i, j]` are seen to be one place.
static void unify_access(tl_module *module, tl_op *access, const tl_op *parallel) {
  int32_t num_loops = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_loops);
  const tl_type *type = tl_element_buffer(access)->type;
  uint32_t rank = tl_element_rank(access);
  tl_value *indices[TL_MAX_RANK];
  bool used[TL_MAX_RANK] = {false}, changed = false;
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = tl_element_index(access, d);
    for (int32_t l = 0; l < num_loops; l++) used[l] |= indices[d] == parallel->regions[0]->args[l];
  }
  for (uint32_t d = 0; d < rank; d++) {
    int64_t constant = -1;
    if (type->dims[d] != 1 || !tl_value_const_int(indices[d], &constant) || constant != 0) continue;
    int32_t loop = 0;
    while (loop < num_loops && (used[loop] || extents[loop] != 1)) loop++;
    if (loop == num_loops) continue;
    used[loop] = true;
    changed = true;
    indices[d] = parallel->regions[0]->args[loop];
  }
  int group = access->code == TL_OP_LOAD ? TL_GROUP_LOAD_index : TL_GROUP_STORE_index;
  if (changed) tl_op_set_group(module, access, group, indices, rank);
}

static void visit_unit_dims(tl_op *op, void *user) {
  tl_fragments *fragments = user;
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) return;
  const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  if (parallel && tl_fragment_find_any(fragments, tl_element_buffer(op)) >= 0) {
    unify_access(fragments->module, op, parallel);
  }
}

void tl_fragments_unify_unit_dims(tl_fragments *fragments) {
  tl_walk(fragments->kernel, visit_unit_dims, fragments);
}

// ---- copies of parts

typedef struct copy_side {
  tl_value *buffer;
  int offsets, limits;  // operand groups
  const int64_t *dims;
  const int64_t *steps;  // NULL: all 1
  int32_t num_dims;
  const int64_t *check;  // NULL: test all
} copy_side;

static copy_side side_of(const tl_op *copy, bool is_source) {
  int32_t len = 0;
  copy_side side = {
      .buffer = tl_op_arg(copy, is_source ? TL_GROUP_COPY_src : TL_GROUP_COPY_dst),
      .offsets = is_source ? TL_GROUP_COPY_src_offsets : TL_GROUP_COPY_dst_offsets,
      .limits = is_source ? TL_GROUP_COPY_src_limits : TL_GROUP_COPY_dst_limits,
  };
  side.dims = tl_op_ints(copy, is_source ? TL_ATTR_SRC_DIMS : TL_ATTR_DST_DIMS, &side.num_dims);
  side.steps = tl_op_ints(copy, is_source ? TL_ATTR_SRC_STEP : TL_ATTR_DST_STEP, &len);
  side.check = tl_op_ints(copy, is_source ? TL_ATTR_SRC_CHECK : TL_ATTR_DST_CHECK, &len);
  return side;
}

// Inside a parallel over the fragment's dims: the copy's tile indices, and the condition that the element is part of
// the box.
static tl_value *tile_indices(tl_builder *builder, const tl_op *copy, const copy_side *fragment, const tl_block *body,
                              tl_value **out_tile) {
  const int64_t *extents = tl_op_attr(copy, TL_ATTR_EXTENTS)->v.ints.items;
  tl_value *condition = NULL;
  bool walked[TL_MAX_RANK] = {false};
  for (int32_t t = 0; t < fragment->num_dims; t++) {
    int32_t d = (int32_t)fragment->dims[t];
    int64_t step = fragment->steps ? fragment->steps[t] : 1;
    walked[d] = true;
    tl_value *offset = tl_op_group_at(copy, fragment->offsets, (uint32_t)d);
    int64_t constant = 0;
    bool from_start = tl_value_const_int(offset, &constant) && constant == 0;
    tl_value *relative = from_start ? body->args[d] : tl_index_sub(builder, body->args[d], offset);
    tl_value *zero = tl_build_index(builder, 0);
    if (!from_start && !tl_prove_nonnegative(relative)) {
      condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_GE, relative, zero));
    }
    if (step != 1) {
      tl_value *by = tl_build_index(builder, step);
      tl_value *rest = tl_index_mod(builder, relative, by);
      condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_EQ, rest, zero));
      relative = tl_index_floordiv(builder, relative, by);
    }
    tl_value *extent = tl_build_index(builder, extents[t]);
    bool whole = from_start && step == 1 && extents[t] == fragment->buffer->type->dims[d];
    if (!whole && !tl_prove_lt(relative, extent)) {
      condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_LT, relative, extent));
    }
    out_tile[t] = relative;
  }
  for (int32_t d = 0; d < fragment->buffer->type->rank; d++) {
    tl_value *offset = tl_op_group_at(copy, fragment->offsets, (uint32_t)d);
    int64_t constant = 0;
    bool only = fragment->buffer->type->dims[d] == 1 && tl_value_const_int(offset, &constant) && constant == 0;
    if (!walked[d] && !only) {
      condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_EQ, body->args[d], offset));
    }
    if (tl_op_group_len(copy, fragment->limits) == 0) continue;
    tl_value *limit = tl_op_group_at(copy, fragment->limits, (uint32_t)d);
    condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_LT, body->args[d], limit));
  }
  return condition;
}

// Indices of the other side for these tile indices.
static void other_indices(tl_builder *builder, const tl_op *copy, const copy_side *side, tl_value *const *tile,
                          tl_value **out) {
  for (int32_t d = 0; d < side->buffer->type->rank; d++) out[d] = tl_op_group_at(copy, side->offsets, (uint32_t)d);
  for (int32_t t = 0; t < side->num_dims; t++) {
    int64_t step = side->steps ? side->steps[t] : 1;
    tl_value *moved = step == 1 ? tile[t] : tl_index_mul(builder, tile[t], tl_build_index(builder, step));
    int64_t constant = 0;
    tl_value **index = &out[side->dims[t]];
    *index = tl_value_const_int(*index, &constant) && constant == 0 ? moved : tl_index_add(builder, *index, moved);
  }
}

// The condition that `indices` lie below the copy's explicit limits; NULL without any.
static tl_value *below_limits(tl_builder *builder, const tl_op *copy, const copy_side *side, tl_value *const *indices) {
  tl_value *condition = NULL;
  for (uint32_t d = 0; d < tl_op_group_len(copy, side->limits); d++) {
    tl_value *limit = tl_op_group_at(copy, side->limits, d);
    condition = and_also(builder, condition, tl_build_cmp(builder, TL_CMP_LT, indices[d], limit));
  }
  return condition;
}

static void set_check(tl_module *module, tl_op *access, const copy_side *side) {
  if (side->check) tl_op_set_ints(module, access, TL_ATTR_CHECK, side->check, side->buffer->type->rank);
}

static tl_value *build_load(tl_builder *builder, tl_value *buffer, tl_value *const *indices, const copy_side *side) {
  tl_group groups[] = {TL_GROUP_OF(buffer), {indices, (uint32_t)buffer->type->rank}, TL_GROUP_EMPTY};
  const tl_type *type = tl_type_scalar(builder->module, buffer->type->dtype);
  tl_op *load = tl_build(builder, TL_OP_LOAD, groups, &type, 1);
  if (side) set_check(builder->module, load, side);
  return tl_op_result(load, 0);
}

static void build_store(tl_builder *builder, tl_value *value, tl_value *buffer, tl_value *const *indices,
                        const copy_side *side) {
  value = tl_build_cast(builder, value, tl_type_scalar(builder->module, buffer->type->dtype));
  tl_group groups[] = {TL_GROUP_OF(value), TL_GROUP_OF(buffer), {indices, (uint32_t)buffer->type->rank}};
  tl_op *store = tl_build(builder, TL_OP_STORE, groups, NULL, 0);
  if (side) set_check(builder->module, store, side);
}

// The value that a copy reads at `indices`: the element, or the pad outside of tensor or limits, in the dtype of `to`.
static tl_value *padded_load(tl_builder *builder, const tl_op *copy, const copy_side *src, tl_value *const *indices,
                             const tl_type *to) {
  tl_value *value = tl_build_cast(builder, build_load(builder, src->buffer, indices, src), to);
  tl_value *pad = tl_op_arg(copy, TL_GROUP_COPY_pad);
  tl_value *inside = below_limits(builder, copy, src, indices);
  if (pad) {
    tl_group groups[] = {TL_GROUP_OF(src->buffer), {indices, (uint32_t)src->buffer->type->rank}};
    const tl_type *type = tl_type_scalar(builder->module, TL_DTYPE_BOOL);
    tl_op *in_bounds = tl_build(builder, TL_OP_IN_BOUNDS, groups, &type, 1);
    inside = and_also(builder, inside, tl_op_result(in_bounds, 0));
  }
  if (inside == NULL) return value;
  tl_value *outside =
      pad ? tl_build_cast(builder, pad, to)
          : tl_build_cast(builder, tl_build_const_int(builder, tl_type_scalar(builder->module, TL_DTYPE_I32), 0), to);
  return tl_build_select(builder, inside, value, outside);
}

static void expand_copy(tl_fragments *fragments, tl_op *copy, bool to_fragment) {
  tl_module *module = fragments->module;
  copy_side src = side_of(copy, true);
  copy_side dst = side_of(copy, false);
  const copy_side *fragment = to_fragment ? &dst : &src;
  const copy_side *other = to_fragment ? &src : &dst;
  const tl_type *type = fragment->buffer->type;
  tl_builder builder;
  tl_builder_before(&builder, module, copy);
  builder.loc = copy->loc;
  tl_op *parallel = build_parallel(&builder, type->dims, type->rank);
  tl_block *body = parallel->regions[0];
  tl_builder_at_end(&builder, module, body);
  builder.loc = copy->loc;
  tl_value *tile[TL_MAX_RANK];
  tl_value *condition = tile_indices(&builder, copy, fragment, body, tile);
  if (condition) enter_if(&builder, condition);
  tl_value *indices[TL_MAX_RANK];
  other_indices(&builder, copy, other, tile, indices);
  if (to_fragment) {
    const tl_type *element = tl_type_scalar(module, type->dtype);
    build_store(&builder, padded_load(&builder, copy, &src, indices, element), dst.buffer, body->args, NULL);
  } else {
    tl_value *inside = below_limits(&builder, copy, &dst, indices);
    tl_block *outer = builder.block;
    if (inside) enter_if(&builder, inside);
    build_store(&builder, build_load(&builder, src.buffer, body->args, NULL), dst.buffer, indices, &dst);
    if (inside) {
      tl_region_yield(module, builder.block, copy->loc);
      tl_builder_at_end(&builder, module, outer);
    }
  }
  tl_region_yield(module, builder.block, copy->loc);
  tl_region_yield(module, body, copy->loc);
  tl_op_erase(copy);
}

// Whether every dim of the fragment is walked by the copy, or can be by a dim of the other side that stands still.
static bool has_spare_dims(const tl_op *copy, bool is_source) {
  copy_side fragment = side_of(copy, is_source);
  copy_side other = side_of(copy, !is_source);
  int32_t missing = fragment.buffer->type->rank - fragment.num_dims;
  int32_t spare = other.buffer->type->rank - other.num_dims;
  return missing <= spare;
}

// Whether a copy between two fragments moves every element to the same place without conversion.
static bool is_identity(const tl_op *copy) {
  copy_side src = side_of(copy, true);
  copy_side dst = side_of(copy, false);
  if (src.buffer->type->rank != dst.buffer->type->rank || src.num_dims != dst.num_dims) return false;
  if (src.buffer->type->dtype != dst.buffer->type->dtype) return false;
  if (memcmp(src.buffer->type->dims, dst.buffer->type->dims, sizeof(int64_t) * (size_t)src.buffer->type->rank) != 0)
    return false;
  return memcmp(src.dims, dst.dims, sizeof(int64_t) * (size_t)src.num_dims) == 0;
}

static void normalize_copies(tl_fragments *fragments) {
  op_list list = {.code = TL_OP_COPY};
  tl_walk(fragments->kernel, collect, &list);
  for (size_t i = 0; i < list.items.len; i++) {
    tl_op *copy = list.items.items[i];
    bool from = tl_fragment_find(fragments, tl_op_arg(copy, TL_GROUP_COPY_src)) >= 0;
    bool to = tl_fragment_find(fragments, tl_op_arg(copy, TL_GROUP_COPY_dst)) >= 0;
    if (from && to) {
      // A whole tile to a whole tile; the same tile again needs no loop.
      if (!is_identity(copy)) expand_copy(fragments, copy, true);
      continue;
    }
    if (!from && !to) continue;
    if (!tl_copy_covers(copy, from) || !has_spare_dims(copy, from)) expand_copy(fragments, copy, to);
  }
  tl_vec_fini(&list.items);
}

tl_status tl_fragments_normalize(tl_fragments *fragments) {
  normalize_copies(fragments);
  return normalize_parallels(fragments);
}
