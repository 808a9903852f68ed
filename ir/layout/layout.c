// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries on layouts: who holds what, and where an element of a shared tile lies.
#include "ir/layout/layout.h"

#include <string.h>

int32_t tl_layout_axis_size(const tl_layout *layout, tl_layout_axis axis) {
  int32_t size = 1;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    if (layout->modes[i].axis == axis) size *= layout->modes[i].size;
  }
  return size;
}

int32_t tl_layout_num_registers(const tl_layout *layout) {
  return tl_layout_axis_size(layout, TL_AXIS_REGISTER);
}

void tl_layout_axis_coord(const tl_layout *layout, tl_layout_axis axis, int32_t index, int32_t *out_coord) {
  for (int32_t d = 0; d < layout->rank; d++) out_coord[d] = 0;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if (mode->axis != axis) continue;
    if (mode->dim != TL_DIM_NONE) out_coord[mode->dim] += index % mode->size * mode->stride;
    index /= mode->size;
  }
}

bool tl_layout_coord(const tl_layout *layout, int32_t reg, int32_t lane, int32_t warp, int32_t *out_coord) {
  int32_t index[TL_AXIS_COUNT] = {[TL_AXIS_REGISTER] = reg, [TL_AXIS_LANE] = lane, [TL_AXIS_WARP] = warp};
  for (int32_t d = 0; d < layout->rank; d++) out_coord[d] = 0;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if (mode->dim != TL_DIM_NONE) out_coord[mode->dim] += index[mode->axis] % mode->size * mode->stride;
    index[mode->axis] /= mode->size;
  }
  for (int32_t d = 0; d < layout->rank; d++) {
    if (out_coord[d] >= layout->shape[d]) return false;
  }
  return true;
}

bool tl_layout_find(const tl_layout *layout, const int32_t *coord, int32_t *out_reg, int32_t *out_lane,
                    int32_t *out_warp) {
  for (int32_t d = 0; d < layout->rank; d++) {
    if (coord[d] < 0 || coord[d] >= tl_layout_padded(layout, d)) return false;
  }
  int32_t index[TL_AXIS_COUNT] = {0, 0, 0};
  int32_t radix[TL_AXIS_COUNT] = {1, 1, 1};
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if (mode->dim != TL_DIM_NONE) {
      index[mode->axis] += coord[mode->dim] / mode->stride % mode->size * radix[mode->axis];
    }
    radix[mode->axis] *= mode->size;
  }
  *out_reg = index[TL_AXIS_REGISTER];
  *out_lane = index[TL_AXIS_LANE];
  *out_warp = index[TL_AXIS_WARP];
  return true;
}

int32_t tl_layout_padded(const tl_layout *layout, int32_t dim) {
  int32_t size = 1;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    if (layout->modes[i].dim == dim) size *= layout->modes[i].size;
  }
  return size;
}

bool tl_layout_has_padding(const tl_layout *layout) {
  for (int32_t d = 0; d < layout->rank; d++) {
    if (tl_layout_padded(layout, d) != layout->shape[d]) return true;
  }
  return false;
}

bool tl_layout_is_replicated(const tl_layout *layout) {
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if (mode->dim == TL_DIM_NONE && mode->size > 1 && mode->axis != TL_AXIS_REGISTER) return true;
  }
  return false;
}

bool tl_layout_equal(const tl_layout *a, const tl_layout *b) {
  if (a == b) return true;
  if (a->rank != b->rank || a->num_modes != b->num_modes) return false;
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->shape[d] != b->shape[d]) return false;
  }
  for (int32_t i = 0; i < a->num_modes; i++) {
    const tl_layout_mode *x = &a->modes[i], *y = &b->modes[i];
    if (x->axis != y->axis || x->size != y->size || x->dim != y->dim) return false;
    if (x->dim != TL_DIM_NONE && x->stride != y->stride) return false;
  }
  return true;
}

// The modes of one axis with neighbours merged where one continues the other; that form is unique for what it maps.
static int32_t coalesced_modes(const tl_layout *layout, tl_layout_axis axis, tl_layout_mode *out) {
  int32_t count = 0;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    tl_layout_mode mode = layout->modes[i];
    if (mode.axis != axis || mode.size == 1) continue;
    if (mode.dim == TL_DIM_NONE) mode.stride = 0;
    tl_layout_mode *last = count ? &out[count - 1] : NULL;
    if (last && last->dim == mode.dim && (mode.dim == TL_DIM_NONE || mode.stride == last->stride * last->size)) {
      last->size *= mode.size;
    } else {
      out[count++] = mode;
    }
  }
  return count;
}

bool tl_layout_equivalent(const tl_layout *a, const tl_layout *b) {
  if (a == b) return true;
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->shape[d] != b->shape[d]) return false;
  }
  for (int axis = 0; axis < TL_AXIS_COUNT; axis++) {
    tl_layout_mode x[TL_LAYOUT_MAX_MODES], y[TL_LAYOUT_MAX_MODES];
    int32_t count = coalesced_modes(a, (tl_layout_axis)axis, x);
    if (coalesced_modes(b, (tl_layout_axis)axis, y) != count) return false;
    for (int32_t i = 0; i < count; i++) {
      if (x[i].size != y[i].size || x[i].dim != y[i].dim || x[i].stride != y[i].stride) return false;
    }
  }
  return true;
}

// Whether the modes of `dim`, taken by rising stride, are digits of one mixed radix number without gaps or overlaps.
static const char *verify_dim(const tl_layout *layout, int32_t dim) {
  int64_t expected = 1;
  for (;;) {
    const tl_layout_mode *found = NULL;
    int32_t left = 0;
    for (int32_t i = 0; i < layout->num_modes; i++) {
      const tl_layout_mode *mode = &layout->modes[i];
      if (mode->dim != dim || mode->size == 1 || mode->stride < expected) continue;
      left++;
      if (mode->stride == expected) {
        if (found) return "two modes move along one dim by the same stride";
        found = mode;
      }
    }
    if (found == NULL) {
      if (left) return "the strides along a dim leave a gap";
      break;
    }
    expected *= found->size;
    if (expected > INT32_MAX) return "a padded dim is too large";
  }
  if (expected != tl_layout_padded(layout, dim)) return "the strides along a dim overlap";
  if (expected < layout->shape[dim]) return "the modes do not cover a dim";
  return NULL;
}

const char *tl_layout_verify(const tl_layout *layout, int32_t threads) {
  if (layout->rank < 0 || layout->rank > TL_MAX_RANK) return "the rank is out of range";
  if (layout->num_modes < 0 || layout->num_modes > TL_LAYOUT_MAX_MODES) return "there are too many modes";
  int64_t sizes[TL_AXIS_COUNT] = {1, 1, 1};
  int64_t padded[TL_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if ((unsigned)mode->axis >= TL_AXIS_COUNT) return "a mode has no axis";
    if (mode->size < 1) return "a mode's size is not positive";
    sizes[mode->axis] *= mode->size;
    if (sizes[mode->axis] > INT32_MAX) return "an axis is too large";
    if (mode->dim == TL_DIM_NONE) {
      if (mode->axis == TL_AXIS_REGISTER && mode->size > 1) return "registers replicate an element";
      continue;
    }
    if (mode->dim < 0 || mode->dim >= layout->rank) return "a mode's dim is out of range";
    if (mode->stride < 1) return "a mode's stride is not positive";
    padded[mode->dim] *= mode->size;
    if (padded[mode->dim] > INT32_MAX) return "a padded dim is too large";
  }
  for (int32_t d = 0; d < layout->rank; d++) {
    if (layout->shape[d] < 1) return "a dim is not positive";
    const char *problem = verify_dim(layout, d);
    if (problem) return problem;
  }
  if (sizes[TL_AXIS_LANE] != 32) return "the lane modes do not multiply to 32";
  if (sizes[TL_AXIS_WARP] * 32 != threads) return "the warp modes do not multiply to the block's warps";
  return NULL;
}

int32_t tl_layout_vector(const tl_layout *layout, int32_t dim) {
  int32_t vec = 1;
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    if (mode->axis != TL_AXIS_REGISTER || mode->size == 1) continue;
    if (mode->dim != dim || mode->stride != vec) break;
    vec *= mode->size;
  }
  return vec;
}

tl_layout tl_layout_project(const tl_layout *layout, const int32_t *dims, int32_t rank) {
  tl_layout result;
  memset(&result, 0, sizeof(result));
  result.rank = rank;
  int32_t new_dim[TL_MAX_RANK];
  for (int32_t d = 0; d < layout->rank; d++) new_dim[d] = TL_DIM_NONE;
  for (int32_t i = 0; i < rank; i++) {
    new_dim[dims[i]] = i;
    result.shape[i] = layout->shape[dims[i]];
  }
  for (int32_t i = 0; i < layout->num_modes; i++) {
    tl_layout_mode mode = layout->modes[i];
    if (mode.dim != TL_DIM_NONE) mode.dim = new_dim[mode.dim];
    if (mode.dim == TL_DIM_NONE) {
      if (mode.axis == TL_AXIS_REGISTER) continue;
      mode.stride = 0;
    }
    result.modes[result.num_modes++] = mode;
  }
  return result;
}

int32_t tl_layout_projected_register(const tl_layout *full, const tl_layout *projected, const int32_t *dims,
                                     int32_t reg) {
  int32_t coord[TL_MAX_RANK];
  tl_layout_axis_coord(full, TL_AXIS_REGISTER, reg, coord);
  int32_t result = 0, radix = 1;
  for (int32_t i = 0; i < projected->num_modes; i++) {
    const tl_layout_mode *mode = &projected->modes[i];
    if (mode->axis != TL_AXIS_REGISTER) continue;
    if (mode->dim != TL_DIM_NONE) result += coord[dims[mode->dim]] / mode->stride % mode->size * radix;
    radix *= mode->size;
  }
  return result;
}

// ---- shared tiles

tl_shared_layout tl_shared_layout_panels(int64_t row_bytes) {
  // PTX ISA, "Swizzling Modes": chunks of 16 bytes change places by address bits from 7 on, so that narrower spans have
  // several rows with one pattern.
  for (int32_t span = 128, shift = 0; span >= 32; span /= 2, shift++)
    if (row_bytes > 0 && row_bytes % span == 0) return (tl_shared_layout){span, span / 16 - 1, shift, span};
  return (tl_shared_layout){0};
}

// Product of all dims but the last.
static int64_t shared_layout_rows(const int32_t *shape, int32_t rank) {
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < rank; d++) rows *= shape[d];
  return rows;
}

static int64_t positive_mod(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

tl_shared_split tl_shared_layout_split(const tl_shared_layout *layout, int64_t rows, int64_t row,
                                       int64_t column_bytes) {
  // Adding whole periods commutes with the XOR of the bits below them, and whole panels with the division into panels.
  int64_t groups = layout->swizzle_mask + 1, panel = layout->panel_bytes;
  tl_shared_split split = {0};
  if (layout->swizzle_mask) split.row = positive_mod(row, groups << layout->swizzle_shift);
  if (panel || layout->swizzle_mask) split.bytes = positive_mod(column_bytes, panel ? panel : groups * 16);
  int64_t whole = column_bytes - split.bytes;
  split.offset = row * layout->pitch_bytes + (panel ? whole / panel * rows * layout->pitch_bytes : whole);
  return split;
}

int64_t tl_shared_layout_offset(const tl_shared_layout *layout, const int32_t *shape, int32_t rank, int32_t bits,
                                const int32_t *coord) {
  if (rank == 0) return 0;
  int64_t row = 0;
  for (int32_t d = 0; d + 1 < rank; d++) row = row * shape[d] + coord[d];
  tl_shared_split split =
      tl_shared_layout_split(layout, shared_layout_rows(shape, rank), row, (int64_t)coord[rank - 1] * bits / 8);
  int64_t swizzle = (split.row >> layout->swizzle_shift) & layout->swizzle_mask;
  return split.offset + (split.bytes ^ swizzle << 4);
}

int64_t tl_shared_layout_bytes(const tl_shared_layout *layout, const int32_t *shape, int32_t rank, int32_t bits) {
  int64_t panels = 1;
  if (layout->panel_bytes && rank > 0) {
    int64_t row_bytes = ((int64_t)shape[rank - 1] * bits + 7) / 8;
    panels = (row_bytes + layout->panel_bytes - 1) / layout->panel_bytes;
  }
  return panels * shared_layout_rows(shape, rank) * layout->pitch_bytes;
}
