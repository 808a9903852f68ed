// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that no vector divides. A block of whole rows is one run of memory, whatever the rows' length: where its tile
// lies in shared memory as densely, the copy is one of runs, in vectors that go on from row to row.
//
//   copy %X[%r, 0] -> %s extents=[64, 35]     ⇒     copy %flat[%r * 35] -> %run extents=[2240]
//                                                   %flat = view %X dims(4096 * 35), %run = view %s dims(2240)
//
// Bounds of rows are bounds of the run; columns are whole, so that they need none.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

// How many of the last dims of a copy are walked whole on both sides, but for the first of them, which may begin and
// end anywhere.
typedef struct row_run {
  int32_t dims;
  int64_t inner;  // elements of an index of the first one
} row_run;

// The number of elements along a dim, where it is known; else -1.
static int64_t known_size(const tl_value *buffer, int32_t d) {
  int64_t size = -1;
  const tl_value *value = tl_buffer_dim_value(buffer, d);
  if (!value) return buffer->type->dims[d];
  return tl_value_const_int(value, &size) ? size : -1;
}

// Whether the shared tile's rows may follow each other without gaps: no layout is chosen yet, or one that has none.
static bool may_be_dense(const tl_value *tile) {
  const tl_attr *attr = tl_op_attr(tile->def, TL_ATTR_SHARED_LAYOUT);
  const tl_shared_layout *layout = attr ? attr->v.shared : NULL;
  int64_t row = tile->type->dims[tile->type->rank - 1];
  return !layout || (!layout->swizzle_mask && !layout->panel_bytes &&
                     layout->pitch_bytes == (int64_t)tl_dtype_bytes(tile->type->dtype, (uint64_t)row));
}

static bool is_dense_tensor(const tl_value *tensor) {
  int64_t dense = 1, stride;
  for (int32_t d = tensor->type->rank - 1; d >= 0; d--) {
    int64_t size = known_size(tensor, d);
    bool is_view = tensor->def->code == TL_OP_VIEW;  // which is dense
    const tl_value *value = is_view ? NULL : tl_op_group_at(tensor->def, TL_GROUP_TENSOR_strides, (uint32_t)d);
    if (value && (!tl_value_const_int(value, &stride) || stride != dense)) return false;
    if (d > 0 && size <= 0) return false;
    if (d > 0 && __builtin_mul_overflow(dense, size, &dense)) return false;
  }
  return true;
}

static bool is_whole(const tl_box *box, int32_t t) {
  int64_t offset;
  int32_t d = box->dims[t];
  return known_size(box->buffer, d) == box->extents[t] && tl_value_const_int(tl_box_offset(box, d), &offset) &&
         offset == 0;
}

static bool is_last(const tl_box *box, int32_t t) {
  return box->dims[t] == box->buffer_rank - (box->tile_rank - t) && box->steps[t] == 1;
}

static row_run find_run(const tl_box *source, const tl_box *destination) {
  row_run found = {.inner = 1};
  for (int32_t t = source->tile_rank - 1; t >= 0 && is_last(source, t) && is_last(destination, t); t--) {
    if (found.dims > 0) found.inner *= source->extents[t + 1];
    found.dims++;
    if (!is_whole(source, t) || !is_whole(destination, t)) break;
  }
  return found;
}

// ---- whether it gains

static void find_reader(tl_op *op, void *user) {
  bool *found = user;
  *found |= op->code == TL_OP_GEMM || op->code == TL_OP_STAGE_TILE || op->code == TL_OP_PEER_TILE;
}

// Whether something reads the tile that wants its rows in a layout of their own.
static bool wants_rows(const tl_value *tile) {
  bool found = false;
  for (const tl_use *use = tile->uses; use; use = use->next) find_reader(use->owner, &found);
  return found;
}

static int32_t held_vector(tl_op *copy) {
  tl_copy_shape shape = tl_copy_shape_of(copy, tl_op_threads(copy), false);
  return shape.is_permuted || shape.fast < 0 ? 1 : tl_layout_vector(&shape.layout, shape.fast);
}

// ---- the rewrite

static tl_value *view_of(tl_pass_context *context, tl_value *buffer, const row_run *run) {
  int32_t rank = buffer->type->rank - run->dims + 1;
  int64_t sizes[TL_MAX_RANK], merged = known_size(buffer, rank - 1);
  tl_value *dims[TL_MAX_RANK];
  tl_builder builder;
  tl_builder_after(&builder, context->module, buffer->def);
  for (int32_t d = 0; d < rank; d++) {
    sizes[d] = known_size(buffer, d);
    dims[d] = tl_buffer_dim_value(buffer, d);
    if (!dims[d]) dims[d] = tl_build_index(&builder, sizes[d]);
  }
  tl_value *inner = tl_build_index(&builder, run->inner);
  dims[rank - 1] = tl_index_mul(&builder, dims[rank - 1], inner);
  sizes[rank - 1] = merged < 0 ? -1 : merged * run->inner;
  const tl_type *type = tl_type_buffer(context->module, buffer->type->scope, buffer->type->dtype, sizes, rank);
  tl_group groups[] = {TL_GROUP_OF(buffer), {dims, (uint32_t)rank}};
  tl_op *view = tl_build(&builder, TL_OP_VIEW, groups, &type, 1);
  tl_op_set_str(context->module, view, TL_ATTR_NAME, tl_str_from(tl_buffer_name(buffer)));
  return tl_op_result(view, 0);
}

// Offsets, limits and checks of one side in the view.
static void set_side(tl_pass_context *context, tl_op *copy, const tl_box *box, const row_run *run, tl_value *view,
                     int group_buffer, tl_attr_key dims_key, tl_attr_key step_key) {
  int32_t rank = view->type->rank, walked = box->tile_rank - run->dims + 1;
  tl_value *offsets[TL_MAX_RANK], *limits[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK], dims[TL_MAX_RANK], steps[TL_MAX_RANK];
  bool has_limits = tl_op_group_len(copy, box->group_limits) > 0;
  tl_builder builder;
  tl_builder_before(&builder, context->module, copy);
  builder.loc = copy->loc;
  for (int32_t d = 0; d < rank; d++) {
    offsets[d] = tl_box_offset(box, d);
    limits[d] = has_limits ? tl_box_limit(box, d) : NULL;
    checks[d] = tl_box_check(box, d);
  }
  tl_value *inner = tl_build_index(&builder, run->inner);
  offsets[rank - 1] = tl_index_mul(&builder, offsets[rank - 1], inner);
  if (has_limits) limits[rank - 1] = tl_index_mul(&builder, limits[rank - 1], inner);
  for (int32_t t = 0; t < walked; t++) {
    dims[t] = box->dims[t];
    steps[t] = box->steps[t];
  }
  tl_op_set_group(context->module, copy, group_buffer, &view, 1);
  tl_op_set_group(context->module, copy, box->group_offsets, offsets, (uint32_t)rank);
  if (has_limits) tl_op_set_group(context->module, copy, box->group_limits, limits, (uint32_t)rank);
  tl_op_set_ints(context->module, copy, box->check_key, checks, rank);
  tl_op_set_ints(context->module, copy, dims_key, dims, walked);
  if (tl_op_has(copy, step_key)) tl_op_set_ints(context->module, copy, step_key, steps, walked);
}

static tl_op *flat_copy(tl_pass_context *context, tl_op *copy, const row_run *run) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, copy);
  builder.loc = copy->loc;
  tl_value_map map = {0};
  tl_op *flat = tl_op_clone(&builder, copy, &map);
  tl_value_map_fini(&map);
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  int64_t extents[TL_MAX_RANK];
  int32_t walked = source.tile_rank - run->dims + 1;
  for (int32_t t = 0; t < walked; t++) extents[t] = source.extents[t];
  extents[walked - 1] *= run->inner;
  tl_value *from = view_of(context, source.buffer, run), *to = view_of(context, destination.buffer, run);
  source.op = destination.op = flat;
  set_side(context, flat, &source, run, from, TL_GROUP_COPY_src, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP);
  set_side(context, flat, &destination, run, to, TL_GROUP_COPY_dst, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP);
  tl_op_set_ints(context->module, flat, TL_ATTR_EXTENTS, extents, walked);
  return flat;
}

static void drop_copy(tl_op *copy) {
  tl_op *from = tl_op_arg(copy, TL_GROUP_COPY_src)->def, *to = tl_op_arg(copy, TL_GROUP_COPY_dst)->def;
  tl_op_erase(copy);
  tl_op_erase(from);
  tl_op_erase(to);
}

// The run that the copy between a tensor and a tile of rows that no vector divides moves; false: it moves none.
static bool find_rows(tl_op *copy, row_run *out) {
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  bool loads = tl_buffer_is_global(source.buffer) && tl_buffer_is_shared(destination.buffer);
  bool stores = tl_buffer_is_shared(source.buffer) && tl_buffer_is_global(destination.buffer);
  const tl_value *tensor = loads ? source.buffer : destination.buffer;
  const tl_value *tile = loads ? destination.buffer : source.buffer;
  if ((!loads && !stores) || !tensor->def || !tile->def) return false;
  bool is_tensor = tensor->def->code == TL_OP_TENSOR || tensor->def->code == TL_OP_VIEW;
  if (!is_tensor || tile->def->code != TL_OP_ALLOC) return false;
  if (tensor->type->rank < 2 || tile->type->rank < 2 || !is_dense_tensor(tensor)) return false;
  if (tl_dtype_bits(tensor->type->dtype) < 8 || tl_dtype_bits(tile->type->dtype) < 8 || wants_rows(tile)) return false;
  *out = find_run(&source, &destination);
  return out->dims > 1;
}

bool tl_copy_is_run(tl_op *copy) {
  enum { VECTOR_BYTES = 16 };
  row_run run;
  const tl_value *tensor = tl_op_arg(copy, TL_GROUP_COPY_dst);
  if (tl_buffer_is_shared(tensor)) tensor = tl_op_arg(copy, TL_GROUP_COPY_src);
  if (!find_rows(copy, &run)) return false;
  int64_t row = tensor->type->dims[tensor->type->rank - 1];
  return row * tl_dtype_bits(tensor->type->dtype) / 8 % VECTOR_BYTES != 0;
}

static void flatten(tl_op *copy, void *user) {
  tl_pass_context *context = user;
  row_run run;
  if (copy->code != TL_OP_COPY || tl_op_arg(copy, TL_GROUP_COPY_map) || tl_op_arg(copy, TL_GROUP_COPY_barrier)) return;
  if (tl_op_has(copy, TL_ATTR_ATOMIC) || tl_op_has(copy, TL_ATTR_ACROSS)) return;
  // A tile that travels in a ring is no view's.
  if (tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_TMA || tl_is_in_pipeline(copy)) return;
  if (!tl_copy_is_run(copy) || !find_rows(copy, &run)) return;
  const tl_value *tile = tl_op_arg(copy, TL_GROUP_COPY_dst);
  if (!may_be_dense(tl_buffer_is_shared(tile) ? tile : tl_op_arg(copy, TL_GROUP_COPY_src))) return;
  int32_t before = held_vector(copy);
  tl_op *flat = flat_copy(context, copy, &run);
  if (held_vector(flat) <= before) {
    drop_copy(flat);
    return;
  }
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, copy->loc, "rows of %lld elements are copied as one run",
                 (long long)run.inner);
  for (uint32_t i = 0; i < copy->num_results; i++) tl_value_replace_uses(tl_op_result(copy, i), tl_op_result(flat, i));
  tl_op_erase(copy);
}

void tl_flatten_copies(tl_pass_context *context, tl_op *kernel) {
  tl_walk(kernel, flatten, context);
}
