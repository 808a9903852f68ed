// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/tensormap.h"

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
  uint8_t type, rank, interleave, swizzle, l2, fill, is_im2col, is_replaced;
  uint8_t zero[22];
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
  TL_TRY(tl_tensormap_validate(p));
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

static bool read_layout(const void *bytes, layout *out) {
  memcpy(out, bytes, sizeof *out);
  return out->magic == magic && out->checksum == checksum_of(out);
}

bool tl_emu_tensormap_is_replaced(const void *bytes) {
  layout map;
  return read_layout(bytes, &map) && map.is_replaced;
}

bool tl_emu_tensormap_decode(const void *bytes, tl_tensormap_params *out) {
  layout map;
  if (!read_layout(bytes, &map)) return false;
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

// PTX ISA, tensormap.replace: its numbers of types are not the driver's.
static const uint8_t types[] = {TL_TENSORMAP_U8,      TL_TENSORMAP_U16, TL_TENSORMAP_U32,  TL_TENSORMAP_S32,
                                TL_TENSORMAP_U64,     TL_TENSORMAP_S64, TL_TENSORMAP_F16,  TL_TENSORMAP_F32,
                                TL_TENSORMAP_F32_FTZ, TL_TENSORMAP_F64, TL_TENSORMAP_BF16, TL_TENSORMAP_TF32,
                                TL_TENSORMAP_TF32_FTZ};

// What a field may hold, and how many dimensions have one.
static const struct {
  const char *name;
  uint64_t lowest, highest;
  uint32_t dimensions;  // 0: the field has no ordinal
} rules[] = {
    [TL_EMU_TENSORMAP_GLOBAL_ADDRESS] = {"global_address", 1, UINT64_MAX, 0},
    [TL_EMU_TENSORMAP_RANK] = {"rank", 0, TL_TENSORMAP_MAX_RANK - 1, 0},
    [TL_EMU_TENSORMAP_BOX_DIM] = {"box_dim", 1, 256, TL_TENSORMAP_MAX_RANK},
    [TL_EMU_TENSORMAP_GLOBAL_DIM] = {"global_dim", 1, UINT32_MAX, TL_TENSORMAP_MAX_RANK},
    [TL_EMU_TENSORMAP_GLOBAL_STRIDE] = {"global_stride", 0, ((uint64_t)1 << 40) - 1, TL_TENSORMAP_MAX_RANK - 1},
    [TL_EMU_TENSORMAP_ELEMENT_STRIDE] = {"element_stride", 1, 8, TL_TENSORMAP_MAX_RANK},
    [TL_EMU_TENSORMAP_ELEMTYPE] = {"elemtype", 0, sizeof types - 1, 0},
    [TL_EMU_TENSORMAP_INTERLEAVE_LAYOUT] = {"interleave_layout", 0, TL_TENSORMAP_INTERLEAVE_32B, 0},
    [TL_EMU_TENSORMAP_SWIZZLE_MODE] = {"swizzle_mode", 0, TL_TENSORMAP_SWIZZLE_128B, 0},
    [TL_EMU_TENSORMAP_FILL_MODE] = {"fill_mode", 0, TL_TENSORMAP_FILL_NAN, 0},
};

static void set_field(layout *map, tl_emu_tensormap_field field, uint32_t ordinal, uint64_t value) {
  switch (field) {
    case TL_EMU_TENSORMAP_GLOBAL_ADDRESS:
      map->address = value;
      return;
    case TL_EMU_TENSORMAP_RANK:
      map->rank = (uint8_t)(value + 1);
      return;
    case TL_EMU_TENSORMAP_BOX_DIM:
      map->box_minus_1[ordinal] = (uint8_t)(value - 1);
      return;
    case TL_EMU_TENSORMAP_GLOBAL_DIM:
      map->dims_minus_1[ordinal] = (uint32_t)(value - 1);
      return;
    case TL_EMU_TENSORMAP_GLOBAL_STRIDE:
      map->strides[ordinal] = value;
      return;
    case TL_EMU_TENSORMAP_ELEMENT_STRIDE:
      map->element_strides[ordinal] = (uint8_t)value;
      return;
    case TL_EMU_TENSORMAP_ELEMTYPE:
      map->type = types[value];
      return;
    case TL_EMU_TENSORMAP_INTERLEAVE_LAYOUT:
      map->interleave = (uint8_t)value;
      return;
    case TL_EMU_TENSORMAP_SWIZZLE_MODE:
      map->swizzle = (uint8_t)value;
      return;
    case TL_EMU_TENSORMAP_FILL_MODE:
      map->fill = (uint8_t)value;
      return;
  }
}

tl_status tl_emu_tensormap_replace(void *bytes, tl_emu_tensormap_field field, uint32_t ordinal, uint64_t value) {
  layout map;
  const char *name = rules[field].name;
  uint32_t dimensions = rules[field].dimensions;
  if (!read_layout(bytes, &map)) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "these bytes are no tensor map");
  if (map.is_im2col) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the tensor map is made for im2col");
  if (dimensions && ordinal >= dimensions)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s %u: there are 0 to %u", name, ordinal, dimensions - 1);
  if (value < rules[field].lowest || value > rules[field].highest)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s is %llu, not %llu to %llu", name, (unsigned long long)value,
                          (unsigned long long)rules[field].lowest, (unsigned long long)rules[field].highest);
  set_field(&map, field, ordinal, value);
  map.is_replaced = true;
  map.checksum = checksum_of(&map);
  memcpy(bytes, &map, sizeof map);
  return TL_OK;
}
