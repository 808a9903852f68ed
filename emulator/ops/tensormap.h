// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of the emulator. Stands for cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col: the same parameters, the
// same rules, 128 opaque bytes that a kernel gets by value or finds in memory. Their layout is the emulator's own.
#ifndef TL_EMULATOR_TENSORMAP_H
#define TL_EMULATOR_TENSORMAP_H

#include "support/tensormap.h"

typedef struct tl_emu_tensormap {
  _Alignas(TL_TENSORMAP_ALIGN) uint8_t bytes[TL_TENSORMAP_BYTES];
} tl_emu_tensormap;

// INVALID_ARGUMENT as tl_tensormap_validate says.
TL_MUST_USE tl_status tl_emu_tensormap_encode(const tl_tensormap_params *params, tl_emu_tensormap *out);
// One field of a map, by the names of PTX ISA, tensormap.replace.
typedef enum tl_emu_tensormap_field {
  TL_EMU_TENSORMAP_GLOBAL_ADDRESS,
  TL_EMU_TENSORMAP_RANK,
  TL_EMU_TENSORMAP_BOX_DIM,
  TL_EMU_TENSORMAP_GLOBAL_DIM,
  TL_EMU_TENSORMAP_GLOBAL_STRIDE,
  TL_EMU_TENSORMAP_ELEMENT_STRIDE,
  TL_EMU_TENSORMAP_ELEMTYPE,
  TL_EMU_TENSORMAP_INTERLEAVE_LAYOUT,
  TL_EMU_TENSORMAP_SWIZZLE_MODE,
  TL_EMU_TENSORMAP_FILL_MODE
} tl_emu_tensormap_field;
// Changes a field of the map behind 128 bytes. `ordinal`: the dimension, for fields that have one; `value` as the
// instruction takes it (rank: less one; types by their own numbers). INVALID_ARGUMENT: no map, or a value that the
// field cannot hold; whether the fields fit each other is not looked at.
TL_MUST_USE tl_status tl_emu_tensormap_replace(void *bytes, tl_emu_tensormap_field field, uint32_t ordinal,
                                               uint64_t value);
// Whether the map behind 128 bytes was changed by tl_emu_tensormap_replace.
bool tl_emu_tensormap_is_replaced(const void *bytes);

// The parameters behind 128 bytes. False: these bytes are no tensor map, or were damaged since.
bool tl_emu_tensormap_decode(const void *bytes, tl_tensormap_params *out);

#endif
