// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of tensor copies: what a box looks like in shared memory, worked out element by element from the PTX ISA's
// definitions (Tensors), without the emulator's code.
#ifndef TL_TEST_UNIT_EMULATOR_TMA_UTIL_H
#define TL_TEST_UNIT_EMULATOR_TMA_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/tensormap.h"

enum { TMA_MAX_ELEMENTS = 1 << 16 };

// Where each element of a box, in the order of unswizzled shared memory, lies: offset in shared memory, and in the
// tensor's bytes or -1 outside.
typedef struct tma_place {
  uint32_t shared;
  int64_t global;
} tma_place;

typedef struct tma_case {
  tl_tensormap_params map;
  int32_t coords[5];
  uint16_t offsets[3];
  uint32_t shared;  // byte offset of the box, from an address that is a multiple of 1024
} tma_case;

// The swizzle as tables of the PTX ISA show it: in line `r` of 128 bytes, chunk `c` is at c ^ (r mod chunks of the
// span).
static inline uint32_t tma_swizzled(tl_tensormap_swizzle swizzle, uint32_t offset) {
  static const uint32_t chunks[] = {1, 2, 4, 8};
  uint32_t line = offset / 128, chunk = offset % 128 / 16, in_chunk = offset % 16;
  return line * 128 + (chunk ^ line % chunks[swizzle]) * 16 + in_chunk;
}

static inline int64_t tma_global_offset(const tl_tensormap_params *map, const int64_t *index) {
  int64_t bytes = index[0] * tl_tensormap_type_bytes(map->type);
  for (uint32_t i = 0; i < map->rank; i++) {
    if (index[i] < 0 || index[i] >= (int64_t)map->dims[i]) return -1;
    if (i) bytes += index[i] * (int64_t)map->strides[i - 1];
  }
  return bytes;
}

static inline uint32_t tma_extent(const tl_tensormap_params *map, uint32_t i) {
  uint32_t step = i == 0 && map->interleave == TL_TENSORMAP_INTERLEAVE_NONE ? 1 : map->element_strides[i];
  uint32_t n = 0;
  for (uint32_t at = 0; at < map->box[i]; at += step) n++;
  return n;
}

// Pixel number `p` of a column: the start, p steps through the box of lower and upper corners.
static inline void tma_pixel(const tma_case *c, uint32_t p, int64_t *index) {
  const tl_tensormap_params *map = &c->map;
  for (uint32_t i = 0; i < map->rank; i++) index[i] = c->coords[i];
  while (p--) {
    uint32_t i = 1;
    for (; i + 1 < map->rank; i++) {
      int64_t last = (int64_t)map->dims[i] - 1 + map->upper[i - 1];
      index[i] += map->element_strides[i];
      if (index[i] <= last) break;
      index[i] = map->lower[i - 1];
    }
    if (i + 1 == map->rank) index[i] += map->element_strides[i];
  }
  for (uint32_t i = 1; i + 1 < map->rank; i++) index[i] += c->offsets[i - 1];
}

// Fills `places` and returns their number. Rows that are shorter than the swizzle's span are a span apart.
static inline uint32_t tma_places(const tma_case *c, tma_place *places) {
  const tl_tensormap_params *map = &c->map;
  uint32_t bytes = tl_tensormap_type_bytes(map->type), extent[5] = {0}, n = 1;
  uint32_t inner = map->is_im2col ? map->channels_per_pixel : tma_extent(map, 0);
  for (uint32_t i = 0; i < map->rank; i++) extent[i] = map->is_im2col ? 1 : tma_extent(map, i);
  extent[0] = inner;
  if (map->is_im2col) extent[1] = map->pixels_per_column;
  for (uint32_t i = 0; i < map->rank; i++) n *= extent[i];
  uint32_t row = inner * bytes,
           gap = row < tl_tensormap_swizzle_span(map->swizzle) ? tl_tensormap_swizzle_span(map->swizzle) - row : 0;
  for (uint32_t e = 0; e < n; e++) {
    int64_t index[5] = {0};
    uint32_t rest = e;
    if (map->is_im2col) tma_pixel(c, e / inner, index);
    for (uint32_t i = 0; i < map->rank && !map->is_im2col; i++) {
      uint32_t step = i == 0 && map->interleave == TL_TENSORMAP_INTERLEAVE_NONE ? 1 : map->element_strides[i];
      index[i] = c->coords[i] + (int64_t)(rest % extent[i]) * step;
      rest /= extent[i];
    }
    if (map->is_im2col) index[0] = c->coords[0] + e % inner;
    places[e] =
        (tma_place){tma_swizzled(map->swizzle, c->shared + e * bytes + e / inner * gap), tma_global_offset(map, index)};
  }
  return n;
}

static inline uint32_t tma_random(uint32_t below) {
  static uint32_t state = 7;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

// A small tensor and a box somewhere around it. The address is missing.
static inline tma_case tma_random_case(uint32_t rank, tl_tensormap_type type) {
  tma_case c = {.map = {.type = type, .rank = rank}, .shared = 128 * tma_random(20)};
  tl_tensormap_params *map = &c.map;
  map->swizzle = (tl_tensormap_swizzle)tma_random(4);
  uint32_t bytes = tl_tensormap_type_bytes(type), span = tl_tensormap_swizzle_span(map->swizzle);
  uint64_t stride = 0;
  for (uint32_t i = 0; i < rank; i++) {
    map->dims[i] = i ? 1 + tma_random(9) : 1 + tma_random(300);
    map->box[i] = i ? 1 + tma_random(4) : (1 + tma_random(span ? span / 16 : 9)) * 16 / bytes;
    map->element_strides[i] = tma_random(3) ? 1 : 1 + tma_random(4);
    stride = i ? stride * map->dims[i] + 16 * tma_random(3) : (map->dims[0] * bytes + 15) / 16 * 16;
    if (i < 4) map->strides[i] = stride;
    c.coords[i] = i ? (int32_t)tma_random(20) - 8 : ((int32_t)tma_random(40) - 20) * 16 / (int32_t)bytes;
  }
  return c;
}

// Stores may start in the tensor or behind it.
static inline void tma_make_storable(tma_case *c) {
  for (int i = 0; i < 5; i++)
    if (c->coords[i] < 0) c->coords[i] = -c->coords[i];
  memset(c->offsets, 0, sizeof c->offsets);
}

// Stores write whole chunks of 16 bytes: the elements behind the end of a row in the chunk that it ends in.
static inline void tma_extend_to_chunks(const tma_case *c, tma_place *places, uint32_t n) {
  const tl_tensormap_params *map = &c->map;
  int64_t bytes = tl_tensormap_type_bytes(map->type);
  uint32_t inner = map->is_im2col ? map->channels_per_pixel : tma_extent(map, 0);
  for (uint32_t e = 1; e < n; e++) {
    bool goes_on = e % inner && places[e].global < 0 && places[e - 1].global >= 0;
    if (goes_on && (c->coords[0] + e % inner) * bytes % 16) places[e].global = places[e - 1].global + bytes;
  }
}

// The same for columns of im2col. Rank 3 and up.
static inline tma_case tma_random_columns(uint32_t rank, tl_tensormap_type type) {
  tma_case c = tma_random_case(rank, type);
  tl_tensormap_params *map = &c.map;
  map->is_im2col = true;
  map->channels_per_pixel = map->box[0];
  map->pixels_per_column = 1 + tma_random(60);
  for (uint32_t i = 0; i + 2 < rank; i++) {
    map->lower[i] = (int32_t)tma_random(4) - 2;
    map->upper[i] = (int32_t)tma_random(4) - 2;
    if ((int64_t)map->dims[i + 1] + map->upper[i] <= map->lower[i]) map->upper[i] = map->lower[i];
    c.offsets[i] = (uint16_t)tma_random(3);
    int64_t second = tma_random(2);  // pixel of the bounding box, where it has two
    c.coords[i + 1] =
        map->lower[i] + (second < (int64_t)map->dims[i + 1] + map->upper[i] - map->lower[i] ? (int32_t)second : 0);
  }
  c.coords[rank - 1] = (int32_t)tma_random(3);
  return c;
}

// Bytes from the first to the last element of the tensor.
static inline size_t tma_tensor_bytes(const tl_tensormap_params *map) {
  size_t bytes = map->dims[0] * tl_tensormap_type_bytes(map->type);
  for (uint32_t i = 1; i < map->rank; i++) bytes += (map->dims[i] - 1) * map->strides[i - 1];
  return bytes;
}

#endif
