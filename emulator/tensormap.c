// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/tensormap.h"

#include <stddef.h>
#include <string.h>

// What the 128 bytes hold. Every field is as narrow as the rules for parameters allow.
typedef struct layout {
  uint64_t magic;
  uint64_t address;
  uint64_t strides[TL_TENSORMAP_MAX_RANK - 1];
  uint32_t dims_minus_1[TL_TENSORMAP_MAX_RANK];
  uint16_t pixels_per_column, channels_per_pixel;
  int16_t lower[TL_TENSORMAP_MAX_RANK - 2], upper[TL_TENSORMAP_MAX_RANK - 2];
  uint8_t box_minus_1[TL_TENSORMAP_MAX_RANK], element_strides[TL_TENSORMAP_MAX_RANK];
  uint8_t type, rank, interleave, swizzle, l2, fill, is_im2col;
  uint8_t zero[23];
  uint32_t checksum;  // of all bytes before it
} layout;
_Static_assert(sizeof(layout) == TL_TENSORMAP_BYTES, "a tensor map has 128 bytes");

static const uint64_t magic = 0x70616d726f736e74;

// FNV-1a.
static uint32_t checksum_of(const layout *map) {
  const uint8_t *bytes = (const uint8_t *)map;
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < offsetof(layout, checksum); i++) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

tl_status tl_emu_tensormap_encode(const tl_tensormap_params *p, tl_emu_tensormap *out) {
  TL_TRY(tl_tensormap_check(p));
  // Boxes of interleaved tensors come out on an H200 in a way that the PTX ISA does not describe.
  if (p->interleave != TL_TENSORMAP_INTERLEAVE_NONE)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "tensor map: the emulator knows no interleaved tensors");
  layout map;
  memset(&map, 0, sizeof map);
  map.magic = magic;
  map.address = (uintptr_t)p->address;
  for (uint32_t i = 0; i < p->rank; i++) {
    if (i) map.strides[i - 1] = p->strides[i - 1];
    map.dims_minus_1[i] = (uint32_t)(p->dims[i] - 1);
    map.element_strides[i] = (uint8_t)p->element_strides[i];
    map.box_minus_1[i] = p->is_im2col ? 0 : (uint8_t)(p->box[i] - 1);
  }
  map.type = (uint8_t)p->type;
  map.rank = (uint8_t)p->rank;
  map.interleave = (uint8_t)p->interleave;
  map.swizzle = (uint8_t)p->swizzle;
  map.l2 = (uint8_t)p->l2;
  map.fill = (uint8_t)p->fill;
  map.is_im2col = p->is_im2col;
  if (p->is_im2col) {
    for (uint32_t i = 0; i + 2 < p->rank; i++) {
      map.lower[i] = (int16_t)p->lower[i];
      map.upper[i] = (int16_t)p->upper[i];
    }
    map.channels_per_pixel = (uint16_t)p->channels_per_pixel;
    map.pixels_per_column = (uint16_t)p->pixels_per_column;
  }
  map.checksum = checksum_of(&map);
  memcpy(out->bytes, &map, sizeof map);
  return TL_OK;
}

bool tl_emu_tensormap_decode(const void *bytes, tl_tensormap_params *out) {
  layout map;
  memcpy(&map, bytes, sizeof map);
  if (map.magic != magic || map.checksum != checksum_of(&map)) return false;
  memset(out, 0, sizeof *out);
  out->type = map.type;
  out->rank = map.rank;
  out->address = (void *)(uintptr_t)map.address;
  for (uint32_t i = 0; i < map.rank; i++) {
    if (i) out->strides[i - 1] = map.strides[i - 1];
    out->dims[i] = (uint64_t)map.dims_minus_1[i] + 1;
    out->element_strides[i] = map.element_strides[i];
    out->box[i] = map.box_minus_1[i] + 1u;
  }
  out->interleave = map.interleave;
  out->swizzle = map.swizzle;
  out->l2 = map.l2;
  out->fill = map.fill;
  out->is_im2col = map.is_im2col;
  for (uint32_t i = 0; i + 2 < map.rank; i++) {
    out->lower[i] = map.lower[i];
    out->upper[i] = map.upper[i];
  }
  out->channels_per_pixel = map.channels_per_pixel;
  out->pixels_per_column = map.pixels_per_column;
  return true;
}
