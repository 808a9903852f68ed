// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distributed layouts at run time: the part of an element's coordinate that lane and warp contribute, computed once in
// the entry block and shared by every op with the layout; the register's part stays a compile-time number.
#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/state/lower.h"

static bool is_power_of_two(int32_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

static int32_t log2_exact(int32_t value) {
  int32_t bits = 0;
  while ((1 << bits) < value) bits++;
  return bits;
}

static LLVMValueRef divide(tl_lower *l, LLVMValueRef a, int32_t by) {
  if (by == 1) return a;
  if (is_power_of_two(by)) return LLVMBuildLShr(l->entry, a, tl_session_i32(l->session, log2_exact(by)), "");
  return LLVMBuildUDiv(l->entry, a, tl_session_i32(l->session, by), "");
}

static LLVMValueRef remainder_of(tl_lower *l, LLVMValueRef a, int32_t by) {
  if (is_power_of_two(by)) return LLVMBuildAnd(l->entry, a, tl_session_i32(l->session, by - 1), "");
  return LLVMBuildURem(l->entry, a, tl_session_i32(l->session, by), "");
}

static LLVMValueRef scaled(tl_lower *l, LLVMValueRef a, int32_t by) {
  if (by == 1) return a;
  LLVMValueRef result = LLVMBuildMul(l->entry, a, tl_session_i32(l->session, by), "");
  if (LLVMIsAInstruction(result)) LLVMSetNSW(result, 1), LLVMSetNUW(result, 1);
  return result;
}

static LLVMValueRef added(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  if (!a) return b;
  LLVMValueRef result = LLVMBuildAdd(l->entry, a, b, "");
  if (LLVMIsAInstruction(result)) LLVMSetNSW(result, 1), LLVMSetNUW(result, 1);
  return result;
}

// Adds what `index` on `axis` contributes to the place's coordinates and to its owner condition.
static void add_axis(tl_lower *l, tl_place *place, tl_layout_axis axis, LLVMValueRef index) {
  int32_t total = tl_layout_axis_size(place->layout, axis), before = 1;
  for (int32_t m = 0; m < place->layout->num_modes; m++) {
    const tl_layout_mode *mode = &place->layout->modes[m];
    if (mode->axis != axis) continue;
    if (mode->size == 1) continue;
    LLVMValueRef digit = divide(l, index, before);
    before *= mode->size;
    if (before < total) digit = remainder_of(l, digit, mode->size);
    if (mode->dim == TL_DIM_NONE) {
      LLVMValueRef first = LLVMBuildICmp(l->entry, LLVMIntEQ, digit, tl_session_i32(l->session, 0), "");
      place->owner = place->owner ? LLVMBuildAnd(l->entry, place->owner, first, "") : first;
      continue;
    }
    place->thread[mode->dim] = added(l, place->thread[mode->dim], scaled(l, digit, mode->stride));
    place->thread_max[mode->dim] += (mode->size - 1) * mode->stride;
    place->divisor[mode->dim] = (int32_t)tl_gcd(place->divisor[mode->dim], mode->stride);
  }
}

const tl_place *tl_lower_place(tl_lower *l, const tl_layout *layout, const tl_op *op) {
  for (size_t i = 0; i < l->places.len; i++)
    if (l->places.items[i].layout == layout) return &l->places.items[i].place;
  if (tl_layout_axis_size(layout, TL_AXIS_LANE) * tl_layout_axis_size(layout, TL_AXIS_WARP) != l->threads)
    tl_lower_internal(l, op, "a layout is not for the block's %d threads", l->threads);
  struct tl_place_entry entry = {.layout = layout, .place = {.layout = layout, .rank = layout->rank}};
  add_axis(l, &entry.place, TL_AXIS_LANE, l->lane);
  add_axis(l, &entry.place, TL_AXIS_WARP, l->warp);
  for (int32_t d = 0; d < layout->rank; d++)
    if (!entry.place.thread[d]) entry.place.thread[d] = tl_session_i32(l->session, 0);
  tl_vec_push(&l->places, entry);
  return &tl_vec_last(&l->places).place;
}

void tl_lower_place_register(tl_place *place, int32_t reg) {
  tl_layout_axis_coord(place->layout, TL_AXIS_REGISTER, reg, place->reg);
}

bool tl_lower_place_inside(tl_lower *l, const tl_place *place, LLVMValueRef *out_active) {
  LLVMValueRef active = NULL;
  for (int32_t d = 0; d < place->rank; d++) {
    int32_t limit = place->layout->shape[d] - place->reg[d];
    if (place->thread_max[d] < limit) continue;
    LLVMBuilderRef b = l->hoist ? l->hoist : l->builder;
    LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntSLT, place->thread[d], tl_session_i32(l->session, limit), "");
    active = active ? LLVMBuildAnd(b, active, inside, "") : inside;
  }
  *out_active = active;
  return active == NULL;
}

static bool group_is_contiguous(const tl_layout *layout, int32_t first, int32_t width, int32_t dim) {
  int32_t base[TL_MAX_DIMS], at[TL_MAX_DIMS];
  tl_layout_axis_coord(layout, TL_AXIS_REGISTER, first, base);
  if (base[dim] % width != 0) return false;
  for (int32_t e = 1; e < width; e++) {
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, first + e, at);
    for (int32_t d = 0; d < layout->rank; d++)
      if (at[d] != base[d] + (d == dim ? e : 0)) return false;
  }
  return true;
}

int32_t tl_lower_group_width(const tl_layout *layout, int32_t wanted, int32_t *out_dim) {
  int32_t registers = tl_layout_num_registers(layout);
  int32_t origin[TL_MAX_DIMS], next[TL_MAX_DIMS], dim = layout->rank - 1;
  if (registers > 1) {
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, 0, origin);
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, 1, next);
    for (int32_t d = 0; d < layout->rank; d++)
      if (next[d] == origin[d] + 1) dim = d;
  }
  *out_dim = dim < 0 ? 0 : dim;
  if (wanted > TL_MAX_GROUP) wanted = TL_MAX_GROUP;
  for (int32_t width = wanted; width > 1; width--) {
    if (registers % width != 0 || wanted % width != 0 || layout->shape[*out_dim] % width != 0) continue;
    bool good = true;
    for (int32_t first = 0; first < registers && good; first += width)
      good = group_is_contiguous(layout, first, width, *out_dim);
    if (good) return width;
  }
  return 1;
}

int32_t tl_lower_tile_register(const tl_layout *layout, const int32_t *coord) {
  // Each dim's register strides form a mixed radix, so the digits follow from the coordinate from the largest stride
  // down; a mode's digit is found by trying, which needs no order of the modes.
  int32_t rest[TL_MAX_DIMS], digits[TL_LAYOUT_MAX_MODES] = {0};
  memcpy(rest, coord, sizeof(int32_t) * (size_t)layout->rank);
  for (;;) {
    int32_t best = -1;
    for (int32_t m = 0; m < layout->num_modes; m++) {
      const tl_layout_mode *mode = &layout->modes[m];
      if (mode->axis != TL_AXIS_REGISTER || mode->dim == TL_DIM_NONE || digits[m] + 1 >= mode->size) continue;
      if (rest[mode->dim] < mode->stride) continue;
      if (best < 0 || mode->stride > layout->modes[best].stride) best = m;
    }
    if (best < 0) break;
    digits[best]++;
    rest[layout->modes[best].dim] -= layout->modes[best].stride;
  }
  for (int32_t d = 0; d < layout->rank; d++)
    if (rest[d] != 0) return -1;
  int32_t reg = 0, scale = 1;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    if (layout->modes[m].axis != TL_AXIS_REGISTER) continue;
    reg += digits[m] * scale;
    scale *= layout->modes[m].size;
  }
  return reg;
}
