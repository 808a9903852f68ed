// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// align-rows: rows that begin between two vectors. A causal convolution's tile begins `width - 1` elements before a
// multiple of every vector, a group of ten channels ends between two. Their tile in shared memory gets room for the
// elements around, so that whole vectors come, and what reads it looks behind those in front:
//
//   copy %X[%c, %t * 256 - 3] -> %s extents=[8, 259]     ⇒     copy %X[%c, %t * 256 - 8] -> %w extents=[8, 264]
//   … load %s[%i, %j]                                          … load %w[%i, %j + 5]
//
// All rows of the tile must begin equally far behind a multiple, which may be known at launch only: where strides of
// rows are multiples of the vector, and for a single row, wherever it begins. Elements around are those of the tensor;
// its bounds hold for them, and nobody uses them. In rings rows may begin each elsewhere (align_rows_gather.c).
#include "passes/layout/align_rows.h"
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/check/check_bounds.h"
#include "passes/layout/select_copies.h"
#include "passes/schedule/cost.h"
#include "support/vec.h"

enum { VECTOR_BITS = 128 };

typedef struct window {
  tl_op *copy;
  tl_box source, destination;
  int32_t last;        // dim of the tile along which rows run
  bool is_flat;        // the row is one of the whole tensor
  int64_t vec;         // elements, a power of two
  tl_value *from;      // where the row begins
  tl_affine behind;    // how far behind a multiple of vec that is, but for multiples
  int64_t most;        // elements in front, at most
  int64_t width;       // elements of a row of the tile
  bool is_counted;     // its room was, by the pass that made it asynchronous, which it is for whole vectors only
  const char *reason;  // why nothing is done about the copy, if it would gain
} window;

// ---- where rows begin

// The largest remainder that such a sum may leave.
static int64_t most_in_front(const tl_affine *rest, int64_t vec) {
  int64_t unit = vec;
  for (int32_t i = 0; i < rest->num_terms; i++) {
    int64_t by = rest->terms[i].coefficient * (tl_value_divisor(rest->terms[i].symbol) % vec);
    unit = tl_common_divisor(unit, by);
  }
  return vec - unit + rest->constant % unit;
}

// The largest vector, at most 16 bytes, of which the distances between the copy's rows are multiples, and places of
// rows in front of them, too, where `of_all`.
static int64_t vector_of(const tl_box *box, bool of_all) {
  int64_t vec = VECTOR_BITS / tl_dtype_bits(box->buffer->type->dtype);
  int64_t align = tl_buffer_align(box->buffer) * 8 / tl_dtype_bits(box->buffer->type->dtype);
  while (vec > 1 && align % vec != 0) vec /= 2;
  for (int32_t d = 0; d + 1 < box->buffer_rank; d++) {
    int32_t t = box->tile_dim[d];
    int64_t stride = tl_buffer_stride_divisor(box->buffer, d) % vec, offset = tl_value_divisor(tl_box_offset(box, d));
    while (vec > 1 && t >= 0 && box->extents[t] > 1 && stride * box->steps[t] % vec != 0) vec /= 2;
    while (vec > 1 && of_all && offset % vec * stride % vec != 0) vec /= 2;
  }
  return vec;
}

static bool is_one_row(const tl_box *box) {
  for (int32_t t = 0; t < box->tile_rank; t++)
    if (box->dims[t] != box->buffer_rank - 1 && box->extents[t] != 1) return false;
  return true;
}

// The bounds of a row in a tensor that is taken as one: of rows there are none left to test.
static bool has_row_bounds(const tl_box *box) {
  for (int32_t d = 0; d + 1 < box->buffer_rank; d++)
    if (tl_box_check(box, d) != 0) return true;
  return (tl_box_check(box, box->buffer_rank - 1) & TL_CHECK_LOWER) != 0;
}

// Elements from the tensor's start to place `last` of the box's row.
static tl_value *flat_place(tl_builder *builder, const tl_box *box, tl_value *last) {
  tl_value *sum = last;
  for (int32_t d = box->buffer_rank - 2; d >= 0; d--) {
    tl_value *stride = tl_rows_stride(builder, box->buffer, d);
    sum = tl_index_add(builder, tl_index_mul(builder, tl_box_offset(box, d), stride), sum);
  }
  return sum;
}

// ---- which copies

static bool is_plain(tl_pass_context *context, tl_op *copy) {
  if (copy->code != TL_OP_COPY || tl_op_arg(copy, TL_GROUP_COPY_map) || tl_op_arg(copy, TL_GROUP_COPY_barrier))
    return false;
  if (tl_op_has(copy, TL_ATTR_ATOMIC) || tl_op_has(copy, TL_ATTR_ACROSS)) return false;
  return tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO) != TL_VIA_TMA && !tl_is_tma_wanted(context, copy);
}

// Whether the copy brings whole rows of an alloc in shared memory from a tensor, contiguous on both sides.
static bool find_rows(window *self) {
  const tl_value *tensor = self->source.buffer, *tile = self->destination.buffer;
  if (!tl_buffer_is_global(tensor) || !tl_buffer_is_shared(tile) || !tile->def || tile->def->code != TL_OP_ALLOC)
    return false;
  if (tl_dtype_bits(tensor->type->dtype) < 8 || tl_dtype_bits(tile->type->dtype) < 8) return false;
  self->last = tl_box_contiguous_dim(&self->source);
  if (self->last < 0 || self->last != tl_box_contiguous_dim(&self->destination)) return false;
  int64_t offset;
  int32_t d = self->destination.buffer_rank - 1;
  return tl_value_const_int(tl_box_offset(&self->destination, d), &offset) && offset == 0 &&
         self->destination.extents[self->last] == tile->type->dims[d];
}

static int32_t held_vector(tl_op *copy, bool is_async) {
  tl_copy_shape shape = tl_copy_shape_of(copy, tl_op_threads(copy), is_async);
  return shape.is_permuted || shape.fast < 0 ? 1 : is_async ? shape.vec : tl_layout_vector(&shape.layout, shape.fast);
}

static bool is_async(const tl_op *copy) {
  return tl_is_in_pipeline(copy) || tl_op_has(copy, TL_ATTR_ASYNC);
}

// How far behind a multiple of a vector the rows begin. False: that is not one number.
static bool find_begin(tl_pass_context *context, window *self) {
  const tl_box *box = &self->source;
  int64_t apart = vector_of(box, false);
  self->vec = vector_of(box, true);
  self->from = tl_box_offset(box, box->buffer_rank - 1);
  if (self->vec < apart && is_one_row(box) && tl_rows_are_dense(box->buffer) && !has_row_bounds(box)) {
    tl_builder builder;
    tl_builder_before(&builder, context->module, self->copy);
    self->from = flat_place(&builder, box, self->from);
    self->vec = apart;
    self->is_flat = true;
  }
  tl_affine sum = tl_affine_of(self->from);
  if (!sum.valid || self->vec == 1) {
    self->reason = "its rows begin at different places within 16 bytes";
    return false;
  }
  self->behind = tl_rows_rest(&sum, self->vec);
  self->most = most_in_front(&self->behind, self->vec);
  self->width = (self->most + box->extents[self->last] + self->vec - 1) / self->vec * self->vec;
  return true;
}

// ---- what uses the tile

// Bounds of the tile's rows that a load tests.
static int64_t last_check(const tl_op *op, tl_attr_key key) {
  int32_t len = 0;
  const int64_t *checks = tl_op_ints(op, key, &len);
  return checks && len > 0 ? checks[len - 1] : TL_CHECK_LOWER | TL_CHECK_UPPER;
}

// Why the tile keeps its shape, or NULL.
static const char *tile_obstacle(const window *self) {
  const tl_value *tile = self->destination.buffer;
  if (tl_op_has(tile->def, TL_ATTR_SHARED_LAYOUT) || tl_op_has(tile->def, TL_ATTR_DEPTH))
    return "the layout of its tile is fixed";
  for (const tl_use *use = tile->uses; use; use = use->next) {
    const tl_op *op = use->owner;
    if (op == self->copy || op->code == TL_OP_FILL) continue;
    if (op->code == TL_OP_GEMM) return "a product reads its tile, whose rows begin at multiples of 16 bytes";
    int64_t checks = op->code == TL_OP_LOAD ? last_check(op, TL_ATTR_CHECK) : last_check(op, TL_ATTR_SRC_CHECK);
    bool is_read = op->code == TL_OP_LOAD || (op->code == TL_OP_TILE_LOAD && !(checks & TL_CHECK_LOWER));
    if (!is_read) return "others than loads use its tile, too";
  }
  return NULL;
}

static const tl_op *statement_of(const tl_op *op, const tl_op *kernel) {
  while (op->parent != kernel->regions[0]) op = op->parent->parent;
  return op;
}

// Whether everything that reads the tile runs where the copy's place is known: behind what that is made of.
static bool is_read_behind(const window *self, const tl_op *kernel) {
  for (const tl_use *use = self->destination.buffer->uses; use; use = use->next) {
    const tl_op *reader = statement_of(use->owner, kernel), *at = statement_of(self->copy, kernel);
    while (at && at != reader) at = at->next;
    if (!at) return false;
  }
  return true;
}

static const char *obstacle_of(tl_pass_context *context, tl_op *kernel, const window *self) {
  const tl_op *root = tl_buffer_root(self->source.buffer);
  // A neighbour's element may be written while it is read, even if nobody uses it.
  if (!root || tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) != TL_ACCESS_IN)
    return "the kernel may write the tensor";
  bool is_known = self->behind.num_terms == 0 || is_read_behind(self, kernel);
  if (!is_known || !tl_rows_are_known(&self->behind, kernel))
    return "how far behind a multiple of 16 bytes it begins changes in a loop";
  const char *obstacle = tile_obstacle(self);
  if (obstacle) return obstacle;
  const tl_value *tile = self->destination.buffer;
  int64_t elements = tl_type_num_elements(tile->type) / self->destination.extents[self->last] * self->width;
  bool has_room = self->is_counted || tl_rows_have_room(context, kernel, tile, elements, 1);
  return has_room ? NULL : "with room for the elements around fewer blocks would fit on a multiprocessor";
}

// ---- the rewrite

static tl_value *wider_tile(tl_pass_context *context, const window *self) {
  const tl_value *tile = self->destination.buffer;
  int64_t dims[TL_MAX_RANK];
  for (int32_t d = 0; d < tile->type->rank; d++) dims[d] = tile->type->dims[d];
  dims[tile->type->rank - 1] = self->width;
  tl_builder builder;
  tl_builder_after(&builder, context->module, tile->def);
  builder.loc = tile->def->loc;
  const tl_type *type = tl_type_buffer(context->module, TL_SCOPE_SHARED, tile->type->dtype, dims, tile->type->rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(context->module, alloc, TL_ATTR_NAME, tl_str_from(tl_buffer_name(tile)));
  return tl_op_result(alloc, 0);
}

// The multiple of the vector at which the row begins, or before it.
static tl_value *multiple_before(tl_builder *builder, const window *self) {
  if (self->behind.num_terms == 0)
    return tl_index_sub(builder, self->from, tl_build_index(builder, self->behind.constant));
  tl_value *vec = tl_build_index(builder, self->vec);
  return tl_index_mul(builder, tl_index_floordiv(builder, self->from, vec), vec);
}

// The row in the tensor as one: of the bounds only the row's own end is left.
static void set_flat_source(tl_pass_context *context, tl_op *copy, const window *self, tl_builder *builder) {
  const tl_box *box = &self->source;
  int32_t d = box->buffer_rank - 1;
  tl_value *view = tl_rows_as_one(context, box->buffer), *offset = multiple_before(builder, self), *limit = NULL;
  if (tl_box_check(box, d) & TL_CHECK_UPPER) {
    limit = tl_box_limit(box, d);
    if (!limit) limit = tl_buffer_dim_value(box->buffer, d);
    if (!limit) limit = tl_build_index(builder, box->buffer->type->dims[d]);
    limit = flat_place(builder, box, limit);
  }
  const int64_t zero = 0, one = 1, check = TL_CHECK_UPPER, extent = self->width;
  tl_op_set_group(context->module, copy, TL_GROUP_COPY_src, &view, 1);
  tl_op_set_group(context->module, copy, TL_GROUP_COPY_src_offsets, &offset, 1);
  tl_op_set_group(context->module, copy, TL_GROUP_COPY_src_limits, &limit, limit ? 1 : 0);
  tl_op_set_ints(context->module, copy, TL_ATTR_SRC_DIMS, &zero, 1);
  tl_op_set_ints(context->module, copy, TL_ATTR_SRC_CHECK, &check, 1);
  tl_op_set_ints(context->module, copy, TL_ATTR_EXTENTS, &extent, 1);
  const int64_t walked = self->destination.buffer_rank - 1;
  tl_op_set_ints(context->module, copy, TL_ATTR_DST_DIMS, &walked, 1);
  if (tl_op_has(copy, TL_ATTR_SRC_STEP)) tl_op_set_ints(context->module, copy, TL_ATTR_SRC_STEP, &one, 1);
  if (tl_op_has(copy, TL_ATTR_DST_STEP)) tl_op_set_ints(context->module, copy, TL_ATTR_DST_STEP, &one, 1);
}

static void set_source(tl_pass_context *context, tl_op *copy, const window *self, tl_builder *builder) {
  const tl_box *box = &self->source;
  tl_value *offsets[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK], extents[TL_MAX_RANK];
  int32_t last = box->buffer_rank - 1;
  for (int32_t d = 0; d <= last; d++) {
    offsets[d] = d == last ? multiple_before(builder, self) : tl_box_offset(box, d);
    checks[d] = tl_box_check(box, d) | (d == last ? TL_CHECK_UPPER : 0);
  }
  for (int32_t t = 0; t < box->tile_rank; t++) extents[t] = t == self->last ? self->width : box->extents[t];
  tl_op_set_group(context->module, copy, TL_GROUP_COPY_src_offsets, offsets, (uint32_t)box->buffer_rank);
  tl_op_set_ints(context->module, copy, TL_ATTR_SRC_CHECK, checks, box->buffer_rank);
  tl_op_set_ints(context->module, copy, TL_ATTR_EXTENTS, extents, box->tile_rank);
}

static tl_op *widened_copy(tl_pass_context *context, const window *self, tl_value *tile) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, self->copy);
  builder.loc = self->copy->loc;
  tl_value_map map = {0};
  tl_op *wide = tl_op_clone(&builder, self->copy, &map);
  tl_value_map_fini(&map);
  tl_builder_before(&builder, context->module, wide);
  tl_op_set_group(context->module, wide, TL_GROUP_COPY_dst, &tile, 1);
  if (self->is_flat)
    set_flat_source(context, wide, self, &builder);
  else
    set_source(context, wide, self, &builder);
  tl_refine_bounds(context->module, wide);
  if (is_async(wide) && tl_copy_pads_with_zero(wide)) tl_op_set_unit(context->module, wide, TL_ATTR_PARTIAL);
  return wide;
}

// How far behind a multiple the rows begin, where everything that reads the tile knows it.
static tl_value *build_behind(tl_pass_context *context, tl_op *kernel, const window *self) {
  tl_value *rest = tl_rows_build(context, kernel, &self->behind);
  tl_builder builder;
  if (!rest->def->next) return rest;
  tl_builder_after(&builder, context->module, rest->def);
  return tl_index_mod(&builder, rest, tl_build_index(&builder, self->vec));
}

// The last of these operands, a place along rows, lies `by` elements further.
static void move_last(tl_pass_context *context, tl_op *op, int group, tl_value *by) {
  uint32_t rank = tl_op_group_len(op, group);
  tl_value *at[TL_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) at[d] = tl_op_group_at(op, group, d);
  tl_builder builder;
  tl_builder_before(&builder, context->module, op);
  at[rank - 1] = tl_index_add(&builder, at[rank - 1], by);
  tl_op_set_group(context->module, op, group, at, rank);
}

// Behind the row's end the new tile has what is around.
static void keep_limit(tl_pass_context *context, tl_op *load, const window *self, tl_value *behind) {
  const tl_value *old = self->destination.buffer;
  tl_box box = tl_box_source(load);
  tl_value *limits[TL_MAX_RANK];
  int32_t rank = old->type->rank;
  tl_builder builder;
  tl_builder_before(&builder, context->module, load);
  for (int32_t d = 0; d < rank; d++) {
    limits[d] = tl_box_limit(&box, d);
    if (!limits[d]) limits[d] = tl_build_index(&builder, old->type->dims[d]);
  }
  limits[rank - 1] = tl_index_add(&builder, limits[rank - 1], behind);
  tl_op_set_group(context->module, load, TL_GROUP_TILE_LOAD_src_limits, limits, (uint32_t)rank);
}

// The same for an element, which has no limits of its own: it is chosen.
static void keep_bounds(tl_pass_context *context, tl_op *load, const window *self) {
  int32_t rank = self->destination.buffer->type->rank;
  int64_t checks = last_check(load, TL_ATTR_CHECK);
  if (checks == 0) return;
  tl_builder builder;
  tl_builder_before(&builder, context->module, load);
  tl_value *at = tl_element_index(load, (uint32_t)rank - 1), *value = tl_op_result(load, 0);
  tl_value *end = tl_build_index(&builder, self->destination.buffer->type->dims[rank - 1]);
  tl_value *inside = NULL;
  if (checks & TL_CHECK_UPPER) inside = tl_build_cmp(&builder, TL_CMP_LT, at, end);
  if (checks & TL_CHECK_LOWER) {
    tl_value *from = tl_build_cmp(&builder, TL_CMP_GE, at, tl_build_index(&builder, 0));
    inside = inside ? tl_build_binary(&builder, TL_OP_AND, inside, from) : from;
  }
  tl_value *pad = tl_op_arg(load, TL_GROUP_LOAD_pad);
  if (!pad) pad = tl_build_zero(&builder, value->type->dtype);
  tl_builder_after(&builder, context->module, load);
  tl_value *chosen = tl_build_select(&builder, inside, pad, pad);
  tl_value_replace_uses(value, chosen);
  tl_value *operands[] = {inside, value, pad};
  for (uint32_t i = 0; i < 3; i++) tl_op_set_operand(chosen->def, i, operands[i]);
}

// What used a row of the old tile uses that of the new one, `behind` elements further.
static void move_use(tl_pass_context *context, tl_op *op, const window *self, tl_value *tile, tl_value *behind) {
  bool is_element = op->code == TL_OP_LOAD;
  if (op->code == TL_OP_FILL) {
    tl_op_set_group(context->module, op, TL_GROUP_FILL_buffer, &tile, 1);
    return;
  }
  if (is_element) keep_bounds(context, op, self);
  if (!is_element && last_check(op, TL_ATTR_SRC_CHECK)) keep_limit(context, op, self, behind);
  tl_op_set_group(context->module, op, is_element ? TL_GROUP_LOAD_buffer : TL_GROUP_TILE_LOAD_src, &tile, 1);
  move_last(context, op, is_element ? TL_GROUP_LOAD_index : TL_GROUP_TILE_LOAD_src_offsets, behind);
}

static void commit(tl_pass_context *context, tl_op *kernel, const window *self, tl_op *wide, tl_value *tile) {
  tl_value *old = self->destination.buffer, *behind = build_behind(context, kernel, self);
  for (uint32_t i = 0; i < self->copy->num_results; i++)
    tl_value_replace_uses(tl_op_result(self->copy, i), tl_op_result(wide, i));
  // Where the copy leaves out what is behind an end in the tile, that lies further behind, too.
  if (tl_op_group_len(wide, TL_GROUP_COPY_dst_limits) > 0) move_last(context, wide, TL_GROUP_COPY_dst_limits, behind);
  tl_op_erase(self->copy);
  while (old->uses) move_use(context, old->uses->owner, self, tile, behind);
  tl_op_erase(old->def);
  int64_t bytes = self->vec * tl_dtype_bits(self->source.buffer->type->dtype) / 8;
  tl_diag_report(context->diags, TL_DIAG_REMARK_WINDOW, wide->loc,
                 "rows of '%s' are brought from a multiple of %lld bytes on, %s%lld elements in front of them",
                 tl_buffer_name(self->source.buffer), (long long)bytes, self->behind.num_terms ? "up to " : "",
                 (long long)self->most);
}

static void drop(tl_op *wide, tl_value *tile) {
  tl_op *view = tl_op_arg(wide, TL_GROUP_COPY_src)->def;
  tl_op_erase(wide);
  if (view->code == TL_OP_VIEW && !view->results[0].uses) tl_op_erase(view);
  tl_op_erase(tile->def);
}

// Why the copy's rows do not come in vectors of 16 bytes, or of what their distances allow; NULL: they do, or nothing
// is known against it.
static const char *shift(tl_pass_context *context, tl_op *kernel, window *self) {
  enum { BITS = 32 };  // the least that cp.async moves
  int32_t before = held_vector(self->copy, is_async(self->copy));
  int bits = tl_dtype_bits(self->source.buffer->type->dtype);
  if (before * bits >= VECTOR_BITS) return NULL;
  // A row that one access holds as it is.
  if (before * bits >= BITS && self->source.extents[self->last] <= before) return NULL;
  self->is_counted = tl_op_has(self->copy, TL_ATTR_ASYNC) && before * bits < BITS;
  if (!find_begin(context, self)) return self->reason;
  if (self->vec <= before || self->vec * bits < BITS) return "its rows begin at different places within 16 bytes";
  const char *obstacle = obstacle_of(context, kernel, self);
  if (obstacle) return obstacle;
  tl_value *tile = wider_tile(context, self);
  tl_op *wide = widened_copy(context, self, tile);
  if (held_vector(wide, is_async(wide)) <= before) {
    drop(wide, tile);
    return "its end may cut through vectors";
  }
  commit(context, kernel, self, wide, tile);
  return NULL;
}

typedef TL_VEC(tl_op *) op_list;

static void collect(tl_op *op, void *user) {
  if (op->code == TL_OP_COPY) tl_vec_push((op_list *)user, op);
}

static void align(tl_pass_context *context, tl_op *kernel, tl_op *copy) {
  if (!is_plain(context, copy)) return;
  window self = {.copy = copy, .source = tl_box_source(copy), .destination = tl_box_destination(copy)};
  if (!find_rows(&self)) return;
  // Several rows that are one run: select-copies takes them as that.
  if (tl_copy_is_run(copy) && !tl_is_in_pipeline(copy) && !is_one_row(&self.source)) return;
  tl_loc loc = copy->loc;
  const char *tensor = tl_buffer_name(self.source.buffer), *reason = shift(context, kernel, &self);
  if (!reason) return;
  const char *apart = tl_rows_gather(context, kernel, copy);
  if (!apart) return;
  tl_diag_report(context->diags, TL_DIAG_REMARK_NO_WINDOW, loc, "rows of '%s' do not come in vectors of 16 bytes: %s",
                 tensor, *apart ? apart : reason);
}

static void visit_parallel(tl_op *op, void *user) {
  if (op->code == TL_OP_PARALLEL) tl_rows_flatten(user, op);
}

tl_status tl_pass_align_rows(tl_pass_context *context) {
  for (tl_op *kernel = context->module->body->first; kernel; kernel = kernel->next) {
    if (kernel->code != TL_OP_KERNEL) continue;
    op_list copies = {0};
    tl_walk(kernel, visit_parallel, context);
    tl_walk(kernel, collect, &copies);
    for (size_t i = 0; i < copies.len; i++) align(context, kernel, copies.items[i]);
    tl_vec_fini(&copies);
  }
  return TL_OK;
}
