// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies by the copy engine (TMA; PTX ISA, "cp.async.bulk.tensor"): which can go that way, the layout of the tiles that
// they fill, and the tensor map that describes their boxes.
//
// The engine writes a box densely, its swizzle a function of the address: a tile has rows (or panels of rows) of 32, 64
// or 128 bytes with the swizzle of that span, or is plain. Where one box would be too large, or rows fall into panels
// that are no dim of the tensor, a copy is several boxes.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

enum {
  MAX_MAP_RANK = 5,
  MAX_BOX = 256,      // elements along a dim
  UNIT_BYTES = 16,    // of addresses and strides in global memory, and of rows
  SHARED_UNIT = 128,  // of addresses in shared memory
  SWIZZLE_ROWS = 8,   // after which a swizzle repeats
  LARGEST_SPAN = 128,
  SMALLEST_SPAN = 32
};

typedef struct tma_plan {
  int64_t dims[MAX_MAP_RANK], box[MAX_MAP_RANK];
  int32_t rank;
  int64_t panel;  // elements; 0: none
  int64_t swizzle;
  bool is_split;  // along a dim that is no row's: several boxes
  bool rounds;    // f32 to tf32
} tma_plan;

static int64_t element_bytes(const tl_value *buffer) {
  return tl_dtype_bits(buffer->type->dtype) / 8;
}

static int64_t row_elements(const tl_value *tile) {
  return tile->type->rank ? tile->type->dims[tile->type->rank - 1] : 1;
}

// The alloc that the tile is, or is one of.
static const tl_op *whole_tile(const tl_value *tile) {
  const tl_op *def = tile->def;
  return def && def->code == TL_OP_STAGE_TILE ? tl_op_arg(def, TL_GROUP_STAGE_TILE_tile)->def : def;
}

static int64_t num_rows(const tl_value *tile) {
  return tl_type_num_elements(tile->type) / row_elements(tile);
}

tl_shared_layout tl_tma_layout(const tl_value *tile, bool is_dense) {
  int64_t row_bytes = row_elements(tile) * element_bytes(tile);
  tl_shared_layout layout = {.pitch_bytes = (int32_t)row_bytes};
  int32_t span = LARGEST_SPAN;
  while (span >= SMALLEST_SPAN && row_bytes % span != 0) span /= 2;
  if (is_dense || span < SMALLEST_SPAN || num_rows(tile) % SWIZZLE_ROWS != 0) return layout;
  layout.pitch_bytes = span;
  layout.swizzle_mask = span / UNIT_BYTES - 1;
  while (span << layout.swizzle_shift < LARGEST_SPAN) layout.swizzle_shift++;
  layout.panel_bytes = row_bytes > span ? span : 0;
  return layout;
}

int64_t tl_tma_swizzle_of(const tl_shared_layout *layout, const tl_value *tile) {
  int64_t row_bytes = row_elements(tile) * element_bytes(tile),
          piece = layout->panel_bytes ? layout->panel_bytes : row_bytes;
  if (layout->pitch_bytes != piece) return -1;
  if (!layout->swizzle_mask) return layout->panel_bytes ? -1 : 0;
  tl_shared_layout wanted = tl_tma_layout(tile, false);
  bool same = wanted.swizzle_mask == layout->swizzle_mask && wanted.swizzle_shift == layout->swizzle_shift &&
              wanted.pitch_bytes == layout->pitch_bytes;
  return same ? piece : -1;
}

// ---- obstacles that do not depend on the tile's layout

// The two sides of a copy: of the tensor and of the shared tile.
typedef struct tma_sides {
  tl_box source, destination;
} tma_sides;

static bool is_store(const tl_op *copy) {
  return tl_buffer_is_shared(tl_op_arg(copy, TL_GROUP_COPY_src));
}

// `source` is the tensor's side and `destination` the tile's, whichever way the bytes go.
static tma_sides sides_of(tl_op *copy) {
  if (is_store(copy)) return (tma_sides){tl_box_destination(copy), tl_box_source(copy)};
  return (tma_sides){tl_box_source(copy), tl_box_destination(copy)};
}

// Coordinates are of 32 bits.
static bool fits_coordinate(const tl_box *source, int32_t d) {
  tl_range range = tl_value_range(tl_box_offset(source, d));
  return range.lo >= INT32_MIN && range.hi <= INT32_MAX;
}

static bool ends_with_tensor(const tl_box *source, int32_t d) {
  tl_value *limit = tl_box_limit(source, d), *size = tl_buffer_dim_value(source->buffer, d);
  int64_t a = 0, b = 1;
  return !limit || limit == size || !(tl_box_check(source, d) & TL_CHECK_UPPER) ||
         (tl_value_const_int(limit, &a) &&
          (size ? tl_value_const_int(size, &b) : (b = source->buffer->type->dims[d], true)) && a == b);
}

// Whether all indices of the dim are one: documentation of the driver wants strides that lead on
// (cuTensorMapEncodeTiled, globalStrides).
static bool is_repeated(const tl_value *buffer, int32_t d) {
  const tl_op *op = buffer->def;
  int64_t stride = 1;
  bool has = op && op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) > (uint32_t)d;
  if (has) tl_value_const_int(tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d), &stride);
  return stride == 0 && buffer->type->dims[d] != 1;
}

static const char *source_obstacle(const tl_box *source) {
  const tl_value *buffer = source->buffer;
  int64_t bytes = element_bytes(buffer);
  const tl_op *kernel = source->op;
  while (kernel->code != TL_OP_KERNEL) kernel = kernel->parent->parent;
  if (!buffer->def || buffer->def->parent != kernel->regions[0])
    return "its view of the tensor is made inside of a loop";
  if (tl_buffer_align(buffer) % UNIT_BYTES != 0) return "the tensor is not aligned to 16 bytes";
  if (source->buffer_rank > MAX_MAP_RANK) return "the tensor has more than 5 dims";
  for (int32_t d = 0; d < source->buffer_rank; d++) {
    tl_value *size = tl_buffer_dim_value(buffer, d);
    if (!ends_with_tensor(source, d) && (is_store(source->op) || !tl_rows_are_dropped(source->op, d)))
      return "it ends at another limit than the tensor";
    if (!fits_coordinate(source, d) && (size ? tl_value_range(size).hi : buffer->type->dims[d]) > INT32_MAX)
      return "an offset may not fit 32 bits";
    if (is_repeated(buffer, d)) return "a stride of the tensor is 0";
    int32_t t = source->tile_dim[d];
    if (t >= 0 && source->steps[t] != 1) return "it takes every so many elements";
    bool is_last = t >= 0 && t == tl_box_contiguous_dim(source);
    if (!is_last && tl_buffer_stride_divisor(buffer, d) * bytes % UNIT_BYTES != 0)
      return "a stride of the tensor is no multiple of 16 bytes";
  }
  return NULL;
}

// Whether the copy walks all of the tile's dim.
static bool is_whole(const tl_box *destination, int32_t d) {
  int64_t offset;
  int32_t t = destination->tile_dim[d];
  return tl_value_const_int(tl_box_offset(destination, d), &offset) && offset == 0 &&
         (t < 0 || destination->steps[t] == 1) &&
         destination->buffer->type->dims[d] == (t < 0 ? 1 : destination->extents[t]);
}

static bool is_part(const tl_box *destination) {
  for (int32_t d = 0; d < destination->buffer_rank; d++)
    if (!is_whole(destination, d)) return true;
  return false;
}

// Why what the copy fills is no run of rows that begins where the swizzle does, or NULL.
static const char *part_obstacle(const tl_box *destination) {
  const tl_type *type = destination->buffer->type;
  int32_t last = type->rank - 1, first = 0;
  if (!is_part(destination)) return NULL;
  if (is_store(destination->op) || tl_op_has(destination->op, TL_ATTR_ACROSS))
    return "it moves a part of the tile only";
  while (first < last && (destination->tile_dim[first] < 0 || destination->extents[destination->tile_dim[first]] == 1))
    first++;
  for (int32_t d = first + 1; d <= last; d++)
    if (!is_whole(destination, d)) return "it moves a part of the tile that is no run of rows";
  if (last < 1 || !is_whole(destination, last)) return "it moves a part of a row of the tile";
  int64_t rows = 1;
  for (int32_t d = last - 1; d >= 0; d--) {
    int32_t t = destination->tile_dim[d];
    if (t >= 0 && destination->steps[t] != 1) return "it moves every so many rows of the tile";
    if (tl_value_divisor(tl_box_offset(destination, d)) * rows % SWIZZLE_ROWS != 0)
      return "its part of the tile begins at no multiple of 8 rows";
    rows *= type->dims[d];
  }
  return NULL;
}

static const char *destination_obstacle(const tl_box *source, const tl_box *destination) {
  const tl_value *tile = destination->buffer;
  int32_t last = destination->buffer_rank - 1;
  for (int32_t d = 0; d <= last; d++)
    if (tl_box_check(destination, d) != 0) return "the tile is masked";
  const char *obstacle = part_obstacle(destination);
  if (obstacle) return obstacle;
  if (last < 0 || destination->tile_dim[last] < 0 || tl_box_contiguous_dim(source) != destination->tile_dim[last])
    return "the rows of the tile are not contiguous in the tensor";
  int64_t bytes = row_elements(tile) * element_bytes(tile);
  if (bytes % UNIT_BYTES != 0) return "the rows of the tile are no multiple of 16 bytes";
  if (bytes * num_rows(tile) % SHARED_UNIT != 0) return "the tile is no multiple of 128 bytes";
  return NULL;
}

bool tl_copy_fills_once(const tl_op *copy) {
  if (copy->code != TL_OP_COPY || copy->parent->parent->code != TL_OP_KERNEL) return false;
  tl_value *tile = tl_op_arg(copy, TL_GROUP_COPY_dst);
  const tl_op *source = tl_buffer_root(tl_op_arg(copy, TL_GROUP_COPY_src));
  if (!tl_buffer_is_shared(tile) || !tile->def || tile->def->code != TL_OP_ALLOC || !source) return false;
  // A fill that moves down must find what it would have found.
  tl_op *kernel = copy->parent->parent;
  if (tl_effects_write(kernel, tl_op_result(source, 0))) return false;
  for (const tl_use *use = tile->uses; use; use = use->next)
    if (use->owner->code == TL_OP_VIEW) return false;
  tl_effect_list effects = {0};
  tl_effects_inside(kernel, &effects);
  bool is_behind = false, is_read = false, fits = true;
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    bool is_copy = effect->op == copy;
    is_behind |= is_copy;
    if (effect->root != tile || is_copy) continue;
    fits &= is_behind && effect->kind == TL_EFFECT_READ;
    is_read = true;
  }
  tl_vec_fini(&effects);
  return fits && is_read;
}

bool tl_copy_rounds(const tl_op *copy) {
  if (copy->code != TL_OP_COPY) return false;
  const tl_value *src = tl_op_arg(copy, TL_GROUP_COPY_src), *dst = tl_op_arg(copy, TL_GROUP_COPY_dst);
  return tl_buffer_is_global(src) && src->type->dtype == TL_DTYPE_F32 && dst->type->dtype == TL_DTYPE_TF32;
}

// Why TMA cannot carry the copy whatever the layout of its tile, or NULL.
static const char *tma_obstacle(tl_pass_context *context, tl_op *copy) {
  tma_sides sides = sides_of(copy);
  const tl_box *source = &sides.source, *destination = &sides.destination;
  if (!(context->target->features & TL_FEATURE_TMA))
    return tl_arena_printf(&context->scratch, "%s has no TMA", context->target->name);
  if (!tl_buffer_is_global(source->buffer) || !tl_buffer_is_shared(destination->buffer))
    return "it does not go between global and shared memory";
  if (source->buffer->type->dtype != destination->buffer->type->dtype && !tl_copy_rounds(copy))
    return "it converts between dtypes";
  if (tl_dtype_bits(source->buffer->type->dtype) < 8) return "its elements are smaller than a byte";
  if (!tl_copy_pads_with_zero(copy)) return "it pads with another value than 0";
  bool counts = tl_op_arg(copy, TL_GROUP_COPY_barrier) != NULL;
  if (!is_store(copy) && !counts && !tl_is_in_pipeline(copy) && !tl_copy_fills_once(copy))
    return "it stands in no pipelined loop of several stages, and is not all that fills its tile";
  const char *obstacle = source_obstacle(source);
  return obstacle ? obstacle : destination_obstacle(source, destination);
}

// ---- the boxes

// Largest divisor of `extent` that a box may have and that keeps pieces of `unit` whole; 0: none.
static int64_t box_of(int64_t extent, int64_t unit) {
  for (int64_t size = extent < MAX_BOX ? extent : MAX_BOX; size > 0; size--)
    if (extent % size == 0 && (size == extent || size % unit == 0)) return size;
  return 0;
}

// One dim of the map for each dim of the tile that is walked, behind those of the tensor that stay where they are.
static const char *plan_boxes(const tl_box *source, const tl_box *destination, const tl_shared_layout *layout,
                              int64_t shares, tma_plan *plan) {
  const tl_value *tile = destination->buffer;
  int64_t bytes = element_bytes(tile), rows = 1;
  *plan = (tma_plan){.swizzle = tl_tma_swizzle_of(layout, tile)};
  if (plan->swizzle < 0) return "another access wants the tile in another layout";
  for (int32_t d = 0; d < source->buffer_rank; d++) {
    if (source->tile_dim[d] >= 0) continue;
    plan->dims[plan->rank] = d;
    plan->box[plan->rank++] = 1;
  }
  int32_t first = plan->rank, last = destination->buffer_rank - 1;
  for (int32_t d = 0; d <= last; d++)
    if (destination->tile_dim[d] >= 0) plan->dims[plan->rank++] = source->dims[destination->tile_dim[d]];
  for (int32_t i = plan->rank - 1; i >= first; i--) {
    int64_t extent = source->extents[source->tile_dim[plan->dims[i]]];
    // Each block of a cluster brings a share of the rows, which the swizzle keeps whole.
    if (source->tile_dim[plan->dims[i]] == 0) extent /= shares;
    bool is_row = i == plan->rank - 1;
    if (is_row && layout->panel_bytes) extent = layout->panel_bytes / bytes;
    int64_t unit = is_row ? UNIT_BYTES / bytes : plan->swizzle ? SWIZZLE_ROWS : 1;
    // What lies outside of a piece comes after all of it.
    plan->box[i] = plan->is_split ? 1 : box_of(extent, unit > 0 ? unit : 1);
    if (plan->box[i] == 0) return "a dim of the tile has no box of at most 256 elements";
    if (is_row && plan->box[i] != extent && num_rows(tile) > 1)
      return "the rows of the tile have more than 256 elements";
    plan->is_split |= plan->box[i] != extent;
    if (!is_row) rows *= plan->box[i];
  }
  if (plan->swizzle && plan->is_split && rows % SWIZZLE_ROWS != 0) return "its boxes are no multiple of 8 rows";
  return NULL;
}

// Panels as a dim of their own, so that one box takes them all: where they divide the tensor's dim.
static void join_panels(const tl_box *source, const tl_shared_layout *layout, tma_plan *plan) {
  int64_t inner = plan->box[plan->rank - 1], d = plan->dims[plan->rank - 1];
  int64_t panels = source->extents[source->tile_dim[d]] / inner;
  if (!layout->panel_bytes || plan->is_split || panels > MAX_BOX || plan->rank == MAX_MAP_RANK) return;
  if (tl_buffer_dim_divisor(source->buffer, (int32_t)d) % inner != 0) return;
  int64_t divisor = tl_value_divisor(tl_box_offset(source, (int32_t)d));
  if (divisor % inner != 0) return;
  for (int32_t i = plan->rank; i > 0; i--) {
    plan->dims[i] = plan->dims[i - 1];
    plan->box[i] = plan->box[i - 1];
  }
  plan->dims[0] = d;
  plan->box[0] = panels;
  plan->rank++;
  plan->panel = inner;
}

static bool is_map(const tl_op *op, const tma_plan *plan) {
  int32_t dims, boxes;
  if (op->code != TL_OP_TENSOR_MAP) return false;
  const int64_t *has_dims = tl_op_ints(op, TL_ATTR_MAP_DIMS, &dims), *has_box = tl_op_ints(op, TL_ATTR_BOX, &boxes);
  if (dims != plan->rank || tl_op_int(op, TL_ATTR_PANEL, 0) != plan->panel) return false;
  if (tl_op_int(op, TL_ATTR_SWIZZLE, 0) != plan->swizzle || tl_op_has(op, TL_ATTR_ROUNDS) != plan->rounds) return false;
  for (int32_t i = 0; i < dims; i++)
    if (has_dims[i] != plan->dims[i] || has_box[i] != plan->box[i]) return false;
  return true;
}

static bool is_stored_through(const tl_op *map) {
  const tl_use *use = map->results[0].uses;
  return use && is_store(use->owner);
}

// Maps for loads and for stores are apart: of a tensor without elements they differ (manifest).
static tl_value *map_for(tl_pass_context *context, tl_value *buffer, const tma_plan *plan, bool stores) {
  for (const tl_use *use = buffer->uses; use; use = use->next)
    if (is_map(use->owner, plan) && is_stored_through(use->owner) == stores) return tl_op_result(use->owner, 0);
  tl_builder builder;
  tl_builder_after(&builder, context->module, buffer->def);
  const tl_type *type = tl_type_simple(context->module, TL_TYPE_MAP);
  tl_group groups[] = {TL_GROUP_OF(buffer)};
  tl_op *map = tl_build(&builder, TL_OP_TENSOR_MAP, groups, &type, 1);
  tl_op_set_ints(context->module, map, TL_ATTR_MAP_DIMS, plan->dims, plan->rank);
  tl_op_set_ints(context->module, map, TL_ATTR_BOX, plan->box, plan->rank);
  if (plan->panel) tl_op_set_int(context->module, map, TL_ATTR_PANEL, plan->panel);
  if (plan->swizzle) tl_op_set_int(context->module, map, TL_ATTR_SWIZZLE, plan->swizzle);
  if (plan->rounds) tl_op_set_unit(context->module, map, TL_ATTR_ROUNDS);
  return tl_op_result(map, 0);
}

static void remark(tl_pass_context *context, const tl_op *copy, const tl_value *tile, const tma_plan *plan) {
  int64_t bytes = element_bytes(tile), all = bytes;
  const tl_attr *extents = tl_op_attr(copy, TL_ATTR_EXTENTS);
  for (int32_t t = 0; t < extents->v.ints.len; t++) all *= extents->v.ints.items[t];
  for (int32_t i = 0; i < plan->rank; i++) bytes *= plan->box[i];
  tl_strbuf swizzle;
  tl_strbuf_init(&swizzle);
  if (plan->swizzle) tl_strbuf_appendf(&swizzle, ", swizzled over %lld", (long long)plan->swizzle);
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, copy->loc, "'%s' to '%s' by TMA, %lld box%s of %lld bytes%s",
                 tl_buffer_name(tl_op_arg(copy, TL_GROUP_COPY_src)), tl_buffer_name(tl_op_arg(copy, TL_GROUP_COPY_dst)),
                 (long long)(all / bytes), all == bytes ? "" : "es", (long long)bytes, tl_strbuf_c(&swizzle));
  tl_strbuf_fini(&swizzle);
}

// Whether something else in the kernel touches the tensor, or this does again and again.
static bool is_touched_again(const tl_op *copy, tl_op *kernel) {
  const tl_value *root = tl_op_result(tl_buffer_root(tl_op_arg(copy, TL_GROUP_COPY_dst)), 0);
  tl_effect_list effects = {0};
  tl_effects_inside(kernel, &effects);
  bool found = copy->parent != kernel->regions[0];
  for (size_t i = 0; i < effects.len; i++) found |= effects.items[i].root == root && effects.items[i].op != copy;
  tl_vec_fini(&effects);
  return found;
}

// The thread that hands the tile to the engine waits until that has read it, and where the tensor is of further
// interest until it has written. That all have written the tile and fenced it before is place-barriers' matter.
static void wait_for_store(tl_pass_context *context, tl_op *copy) {
  tl_op *kernel = tl_op_enclosing(copy, TL_OP_KERNEL);
  bool again = is_touched_again(copy, kernel);
  tl_builder builder;
  tl_builder_after(&builder, context->module, copy);
  builder.loc = copy->loc;
  tl_group no_tokens[] = {TL_GROUP_EMPTY};
  tl_build(&builder, TL_OP_BULK_COMMIT, no_tokens, NULL, 0);
  tl_op *wait = tl_build(&builder, TL_OP_BULK_WAIT, NULL, NULL, 0);
  tl_op_set_int(context->module, wait, TL_ATTR_PENDING, 0);
  if (!again) tl_op_set_unit(context->module, wait, TL_ATTR_READ);
}

// Offsets that data decides (the number of a block of keys, times its rows) may be larger than a coordinate: those with
// which all of the tile lies outside of the tensor become the nearest such ones.
static void clamp_offsets(tl_pass_context *context, tl_op *copy, const tl_box *source) {
  tl_value *offsets[TL_MAX_RANK];
  tl_builder builder;
  tl_builder_before(&builder, context->module, copy);
  builder.loc = copy->loc;
  bool changes = false;
  for (int32_t d = 0; d < source->buffer_rank; d++) {
    offsets[d] = tl_box_offset(source, d);
    if (fits_coordinate(source, d)) continue;
    int32_t t = source->tile_dim[d];
    tl_value *size = tl_buffer_dim_value(source->buffer, d);
    if (!size) size = tl_build_index(&builder, source->buffer->type->dims[d]);
    offsets[d] = tl_build_binary(&builder, TL_OP_MIN, offsets[d], size);
    tl_value *before = tl_build_index(&builder, t < 0 ? -1 : -source->extents[t]);
    offsets[d] = tl_build_binary(&builder, TL_OP_MAX, offsets[d], before);
    changes = true;
  }
  if (changes) tl_op_set_group(context->module, copy, source->group_offsets, offsets, (uint32_t)source->buffer_rank);
}

const char *tl_select_tma(tl_pass_context *context, tl_op *copy) {
  const char *obstacle = tma_obstacle(context, copy);
  if (obstacle) return obstacle;
  tma_sides sides = sides_of(copy);
  const tl_value *tile = sides.destination.buffer;
  const tl_op *alloc = tl_buffer_root(tile);
  const tl_attr *attr = alloc ? tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT) : NULL;
  tma_plan plan;
  if (!attr || alloc != whole_tile(tile)) return "it moves a view of a tile";
  int64_t shares = tl_op_has(copy, TL_ATTR_ACROSS) ? tl_kernel_cluster_size(tl_op_enclosing(copy, TL_OP_KERNEL),
                                                                            tl_op_int(copy, TL_ATTR_ACROSS, 0), NULL)
                                                   : 1;
  obstacle = plan_boxes(&sides.source, &sides.destination, attr->v.shared, shares, &plan);
  if (obstacle) return obstacle;
  if (plan.swizzle && shares > 1 && tile->type->rank == 2 && tile->type->dims[0] / shares % SWIZZLE_ROWS != 0)
    return "a block's share of the rows is no multiple of 8";
  // Panels of a share, or of a part, do not follow each other.
  if (shares == 1 && !is_part(&sides.destination)) join_panels(&sides.source, attr->v.shared, &plan);
  if (plan.rank > MAX_MAP_RANK) return "the tensor has more than 5 dims";
  plan.rounds = tl_copy_rounds(copy);
  bool stores = is_store(copy);
  tl_value *map = map_for(context, sides.source.buffer, &plan, stores);
  tl_op_set_group(context->module, copy, TL_GROUP_COPY_map, &map, 1);
  tl_op_set_int(context->module, copy, TL_ATTR_VIA, TL_VIA_TMA);
  clamp_offsets(context, copy, &sides.source);
  // Limits that are not the tensor's own are of rows that decide nothing.
  bool ends = true;
  for (int32_t d = 0; d < sides.source.buffer_rank; d++) ends &= ends_with_tensor(&sides.source, d);
  if (!ends) tl_op_set_group(context->module, copy, TL_GROUP_COPY_src_limits, NULL, 0);
  remark(context, copy, tile, &plan);
  if (stores) wait_for_store(context, copy);
  return NULL;
}

// ---- tiles

typedef struct tile_writers {
  tl_pass_context *context;
  const tl_op *alloc;
  bool all, any;
} tile_writers;

static void look_at_writer(tl_op *op, void *user) {
  tile_writers *writers = user;
  int flags = tl_op_info_of(op->code)->flags;
  if (!(flags & TL_OPFLAG_WRITE)) return;
  tl_value *dst = op->code == TL_OP_COPY         ? tl_op_arg(op, TL_GROUP_COPY_dst)
                  : op->code == TL_OP_TILE_STORE ? tl_op_arg(op, TL_GROUP_TILE_STORE_dst)
                  : op->code == TL_OP_STORE      ? tl_op_arg(op, TL_GROUP_STORE_buffer)
                  : op->code == TL_OP_FILL       ? tl_op_arg(op, TL_GROUP_FILL_buffer)
                  : op->code == TL_OP_ATOMIC     ? tl_op_arg(op, TL_GROUP_ATOMIC_buffer)
                                                 : NULL;
  if (!dst || dst->type->kind != TL_TYPE_BUFFER || tl_buffer_root(dst) != writers->alloc) return;
  bool fits = op->code == TL_OP_COPY && whole_tile(dst) == writers->alloc && tl_is_tma_wanted(writers->context, op) &&
              !tma_obstacle(writers->context, op);
  writers->any |= fits;
  writers->all &= fits;
}

// Whether the loop around asks for warps that only copy, which TMA's are for.
static bool is_specialized(const tl_op *copy) {
  const tl_op *loop = tl_op_enclosing(copy, TL_OP_FOR);
  while (loop && !tl_op_has(loop, TL_ATTR_PIPELINED)) loop = tl_op_enclosing(loop, TL_OP_FOR);
  return loop && tl_op_int(loop, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) == TL_SWITCH_ON;
}

bool tl_is_tma_wanted(tl_pass_context *context, const tl_op *copy) {
  int64_t via = tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO);
  if (tl_op_has(copy, TL_ATTR_ASYNC)) return false;
  if (via == TL_VIA_AUTO && is_specialized(copy) && !is_store(copy)) return true;
  return via == TL_VIA_TMA || (via == TL_VIA_AUTO && !tl_tma_choice_obstacle(context, copy));
}

static void look_at_store(tl_op *op, void *user) {
  tile_writers *readers = user;
  if (op->code != TL_OP_COPY || whole_tile(tl_op_arg(op, TL_GROUP_COPY_src)) != readers->alloc) return;
  readers->any |= tl_is_tma_wanted(readers->context, op) && !tma_obstacle(readers->context, op);
}

bool tl_is_tile_of_tma(tl_pass_context *context, tl_op *kernel, const tl_op *alloc) {
  tile_writers writers = {.context = context, .alloc = alloc, .all = true};
  tl_walk(kernel, look_at_writer, &writers);
  if (writers.any && writers.all) return true;
  tile_writers readers = {.context = context, .alloc = alloc};
  tl_walk(kernel, look_at_store, &readers);
  return readers.any;
}
