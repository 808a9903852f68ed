// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of the emulator. Stands for cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col: the same parameters, the
// same rules, 128 opaque bytes that a kernel gets by value or finds in memory. Their layout is the emulator's own.
#ifndef TL_EMULATOR_TENSORMAP_H
#define TL_EMULATOR_TENSORMAP_H

#include "support/tensormap.h"

typedef struct tl_emu_tensormap {
  _Alignas(TL_TENSORMAP_ALIGN) uint8_t bytes[TL_TENSORMAP_BYTES];
} tl_emu_tensormap;

// INVALID_ARGUMENT as tl_tensormap_check says; UNSUPPORTED for interleaved tensors.
TL_MUST_USE tl_status tl_emu_tensormap_encode(const tl_tensormap_params *params, tl_emu_tensormap *out);
// The parameters behind 128 bytes. False: these bytes are no tensor map, or were damaged since.
bool tl_emu_tensormap_decode(const void *bytes, tl_tensormap_params *out);

#endif
