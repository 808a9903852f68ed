// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Widths and thread layouts of copies through registers.
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

enum { VECTOR_BITS = 128, LINE_BITS = 1024 };  // of one access, and what a warp writes of a row at least

static int32_t lesser(int32_t a, int32_t b) {
  return a < b ? a : b;
}

static int32_t max_vector(const tl_value *buffer) {
  int bits = tl_dtype_bits(buffer->type->dtype);
  return VECTOR_BITS / bits;
}

// Widest vector that both sides of a copy allow.
static int32_t common_vector(const tl_box *source, const tl_box *destination, bool full_tile) {
  int32_t fast = tl_box_contiguous_dim(source);
  if (fast < 0 || fast != tl_box_contiguous_dim(destination)) return 1;
  int32_t most = lesser(max_vector(source->buffer), max_vector(destination->buffer));
  return lesser(tl_box_vector(source, most, full_tile), tl_box_vector(destination, most, full_tile));
}

// The side that moves in vectors although the other one is not contiguous along its dim: the one in global memory. NULL
// where the two agree, or neither could.
static const tl_box *wide_side(const tl_box *source, const tl_box *destination) {
  int32_t fast_source = tl_box_contiguous_dim(source), fast_destination = tl_box_contiguous_dim(destination);
  bool from_global = tl_buffer_is_global(source->buffer), to_global = tl_buffer_is_global(destination->buffer);
  if (fast_source == fast_destination || (from_global && to_global)) return NULL;
  if (tl_dtype_bits(source->buffer->type->dtype) < 8 || tl_dtype_bits(destination->buffer->type->dtype) < 8)
    return NULL;
  const tl_box *wide = from_global ? source : to_global || fast_destination >= 0 ? destination : source;
  return tl_box_contiguous_dim(wide) >= 0 ? wide : NULL;
}

static tl_layout layout_along(const tl_box *box, int32_t fast, int32_t next, int32_t vec, int32_t lanes,
                              int32_t threads) {
  int32_t shape[TL_MAX_RANK], order[TL_MAX_RANK], len = 0;
  for (int32_t t = 0; t < box->tile_rank; t++) shape[t] = (int32_t)box->extents[t];
  if (fast >= 0) order[len++] = fast;
  if (next >= 0 && next != fast) order[len++] = next;
  for (int32_t t = box->tile_rank - 1; t >= 0; t--) {
    if (t != fast && t != next) order[len++] = t;
  }
  // Rows of few vectors: lanes along a row, some of them idle, rather than a row for each.
  int64_t row = fast >= 0 ? box->extents[fast] / vec : 0;
  if (lanes == 0 && row > 1 && row < 32 && (row & (row - 1)) != 0) lanes = 32;
  if (lanes > 0) return tl_layout_blocked_narrow(shape, box->tile_rank, order, vec, lanes, threads);
  return tl_layout_blocked(shape, box->tile_rank, order, vec, threads);
}

tl_copy_shape tl_copy_shape_of(tl_op *copy, int32_t threads, bool is_async) {
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  int32_t fast_source = tl_box_contiguous_dim(&source), fast_destination = tl_box_contiguous_dim(&destination);
  const tl_box *wide = is_async ? NULL : wide_side(&source, &destination);
  int32_t held = wide ? tl_box_vector(wide, max_vector(wide->buffer), true) : 1;
  if (held > 1) {
    tl_copy_shape shape = {
        .fast = tl_box_contiguous_dim(wide), .vec = held, .src_vec = 1, .dst_vec = 1, .is_permuted = true};
    *(wide == &source ? &shape.src_vec : &shape.dst_vec) = tl_box_vector(wide, held, false);
    // A whole line of the wide side, and the other lanes along rows of the other one.
    int32_t lanes = lesser(32, LINE_BITS / (held * tl_dtype_bits(wide->buffer->type->dtype)));
    shape.layout =
        layout_along(&source, shape.fast, wide == &source ? fast_destination : fast_source, held, lanes, threads);
    return shape;
  }
  // Without a common contiguous dim the global side decides who is coalesced.
  int32_t fast = tl_buffer_is_global(source.buffer) ? fast_source : fast_destination;
  if (fast < 0) fast = fast_source >= 0 ? fast_source : fast_destination;
  // Of a vector that the bound cuts through cp.async brings what is inside.
  int32_t vec = common_vector(&source, &destination, is_async && tl_op_has(copy, TL_ATTR_PARTIAL));
  tl_copy_shape shape = {.fast = fast, .vec = vec, .src_vec = vec, .dst_vec = vec};
  // Full tiles may take wider vectors later (split-tails): threads are laid out for those.
  held = is_async ? vec : common_vector(&source, &destination, true);
  shape.layout = layout_along(&source, fast, -1, held, 0, threads);
  return shape;
}

void tl_select_copy_width(tl_pass_context *context, tl_op *copy) {
  if (tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO) != TL_VIA_VECTOR || tl_op_has(copy, TL_ATTR_ASYNC)) return;
  const tl_layout *layout = tl_op_layout(copy, TL_ATTR_THREAD_LAYOUT);
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  int32_t fast = tl_box_contiguous_dim(&source);
  if (tl_op_has(copy, TL_ATTR_SRC_VEC)) {
    const tl_box *wide = wide_side(&source, &destination);
    int32_t vec = (int32_t)tl_op_int(copy, TL_ATTR_VEC, 1);
    tl_op_set_int(context->module, copy, wide == &source ? TL_ATTR_SRC_VEC : TL_ATTR_DST_VEC,
                  tl_box_vector(wide, vec, false));
    return;
  }
  if (!layout || fast < 0) return;
  int32_t held = tl_layout_vector(layout, fast);
  tl_op_set_int(context->module, copy, TL_ATTR_VEC, lesser(held & -held, common_vector(&source, &destination, false)));
}
