// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/tma_box.h"

#include <stddef.h>

enum { CHUNK = 16 };

static bool is_interleaved(const tl_tensormap_params *map) {
  return map->interleave != TL_TENSORMAP_INTERLEAVE_NONE;
}

// The dimension of an interleaved tensor that counts slices of channels: the last but one.
static bool is_slices(const tl_tensormap_params *map, uint32_t i) {
  return is_interleaved(map) && i + 2 == map->rank;
}

uint32_t tl_emu_tma_first_spatial(const tl_tensormap_params *map) {
  return is_interleaved(map) ? 0 : 1;
}

// Elements of dimension `i` that are taken out of a tiled box, of which there is one in the dimension of slices. The
// innermost dimension knows strides only when interleaved.
static uint32_t taken(const tl_tensormap_params *map, uint32_t i) {
  if (i == 0 && !is_interleaved(map)) return map->box[0];
  if (is_slices(map, i)) return 1;
  return (map->box[i] + map->element_strides[i] - 1) / map->element_strides[i];
}

// Bytes of what dimension 0 counts: elements, or the channels of one slice.
static uint32_t item_bytes(const tl_tensormap_params *map) {
  return is_interleaved(map) ? 8u << map->interleave : tl_tensormap_type_bytes(map->type);
}

// A row: what is walked over in dimension 0; of im2col one pixel.
static uint32_t row_items(const tl_tensormap_params *map) {
  if (!map->is_im2col) return taken(map, 0);
  return is_interleaved(map) ? 1 : map->channels_per_pixel;
}

static uint32_t row_bytes(const tl_tensormap_params *map) {
  return item_bytes(map) * row_items(map);
}

static uint32_t num_rows(const tl_tensormap_params *map) {
  if (map->is_im2col) return map->pixels_per_column;
  uint32_t rows = 1;
  for (uint32_t i = 1; i < map->rank; i++) rows *= taken(map, i);
  return rows;
}

uint32_t tl_emu_tma_box_bytes(const tl_tensormap_params *map) {
  return row_bytes(map) * num_rows(map);
}

static uint32_t pitch_of(const tl_tensormap_params *map) {
  uint32_t bytes = row_bytes(map), span = is_interleaved(map) ? 0 : tl_tensormap_swizzle_span(map->swizzle);
  return bytes < span ? span : bytes;
}

uint32_t tl_emu_tma_shared_bytes(const tl_tensormap_params *map) {
  return pitch_of(map) * num_rows(map);
}

uintptr_t tl_emu_tma_swizzle(tl_tensormap_swizzle swizzle, uintptr_t shared) {
  uintptr_t chunks = swizzle == TL_TENSORMAP_SWIZZLE_NONE ? 0 : ((uintptr_t)1 << swizzle) - 1;
  return shared ^ ((shared >> 7 & chunks) << 4);
}

// Address of the first element of a row, without dimension 0; 0 when the row lies outside the tensor.
static uintptr_t row_address(const tl_tensormap_params *map, const int64_t index[TL_TENSORMAP_MAX_RANK]) {
  uintptr_t address = (uintptr_t)map->address;
  for (uint32_t i = 1; i < map->rank; i++) {
    if (index[i] < 0 || (uint64_t)index[i] >= map->dims[i]) return 0;
    address += (uintptr_t)index[i] * map->strides[i - 1];
  }
  return address;
}

static void emit(const tl_emu_tma_box *box, uintptr_t shared, uintptr_t global, uint32_t bytes,
                 tl_emu_tma_visit_fn *visit, void *user) {
  if (!bytes) return;
  tl_emu_tma_piece piece = {tl_emu_tma_swizzle(box->map->swizzle, shared), global, bytes};
  visit(user, &piece);
}

// One row of `box`, chunk by chunk: before the tensor, within it, behind it.
static void walk_row(const tl_emu_tma_box *box, uintptr_t row, uintptr_t shared, bool whole_chunks,
                     tl_emu_tma_visit_fn *visit, void *user) {
  const tl_tensormap_params *map = box->map;
  int64_t bytes = item_bytes(map), size = row_bytes(map);
  int64_t first = box->coords[0] * bytes, end = (int64_t)map->dims[0] * bytes - first;  // of the tensor, in the row
  if (whole_chunks) end = (end + CHUNK - 1) / CHUNK * CHUNK;
  int64_t begin = row ? -first : size;
  for (int64_t chunk = 0; chunk < size; chunk += CHUNK) {
    int64_t stop = chunk + CHUNK < size ? chunk + CHUNK : size;
    int64_t a = begin < chunk ? chunk : begin > stop ? stop : begin;
    int64_t b = end < a ? a : end > stop ? stop : end;
    emit(box, shared + (uintptr_t)chunk, 0, (uint32_t)(a - chunk), visit, user);
    emit(box, shared + (uintptr_t)a, row + (uintptr_t)(first + a), (uint32_t)(b - a), visit, user);
    emit(box, shared + (uintptr_t)b, 0, (uint32_t)(stop - b), visit, user);
  }
}

// One row of an interleaved box from pixel `first` on, chunk by chunk.
static void walk_pixels(const tl_emu_tma_box *box, int64_t first, uintptr_t row, uintptr_t shared,
                        tl_emu_tma_visit_fn *visit, void *user) {
  const tl_tensormap_params *map = box->map;
  uint32_t bytes = item_bytes(map), count = row_items(map);
  for (uint32_t i = 0; i < count; i++) {
    int64_t at = first + (int64_t)i * map->element_strides[0];
    bool is_in = row && at >= 0 && at < (int64_t)map->dims[0];
    for (uint32_t chunk = 0; chunk < bytes; chunk += CHUNK, shared += CHUNK)
      emit(box, shared, is_in ? row + (uintptr_t)at * bytes + chunk : 0, CHUNK, visit, user);
  }
}

// The next row of a tiled box: an odometer over dimensions 1 and up.
static void advance_tile(const tl_emu_tma_box *box, uint32_t at[TL_TENSORMAP_MAX_RANK],
                         int64_t index[TL_TENSORMAP_MAX_RANK]) {
  for (uint32_t i = 1; i < box->map->rank; i++) {
    index[i] += box->map->element_strides[i];
    if (++at[i] < taken(box->map, i)) return;
    at[i] = 0;
    index[i] = box->coords[i];
  }
}

// The next pixel of an im2col column. A pixel behind the box in one dimension starts again at its lower corner, one
// step further in the next; behind the last of them comes the next image.
static void advance_pixel(const tl_tensormap_params *map, int64_t pixel[TL_TENSORMAP_MAX_RANK]) {
  uint32_t n = map->rank - 1, first = tl_emu_tma_first_spatial(map);
  for (uint32_t corner = 0; corner + 2 < map->rank; corner++) {
    uint32_t i = first + corner;
    pixel[i] += map->element_strides[i];
    if (pixel[i] <= (int64_t)map->dims[i] - 1 + map->upper[corner]) return;
    pixel[i] = map->lower[corner];
  }
  pixel[n] += map->element_strides[n];
}

void tl_emu_tma_walk(const tl_emu_tma_box *box, uintptr_t shared, bool whole_chunks, tl_emu_tma_visit_fn *visit,
                     void *user) {
  const tl_tensormap_params *map = box->map;
  uint32_t rows = num_rows(map), at[TL_TENSORMAP_MAX_RANK] = {0};
  uintptr_t pitch = pitch_of(map);
  int64_t index[TL_TENSORMAP_MAX_RANK];
  for (uint32_t i = 0; i < map->rank; i++) index[i] = box->coords[i];
  for (uint32_t row = 0; row < rows; row++, shared += pitch) {
    int64_t moved[TL_TENSORMAP_MAX_RANK];
    for (uint32_t i = 0; i < map->rank; i++) moved[i] = index[i];
    for (uint32_t i = 0; map->is_im2col && i + 2 < map->rank; i++)
      moved[tl_emu_tma_first_spatial(map) + i] += box->offsets[i];
    if (is_interleaved(map))
      walk_pixels(box, moved[0], row_address(map, moved), shared, visit, user);
    else
      walk_row(box, row_address(map, moved), shared, whole_chunks, visit, user);
    if (map->is_im2col)
      advance_pixel(map, index);
    else
      advance_tile(box, at, index);
  }
}
