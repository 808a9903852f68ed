// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of mma.sync for one warp. Private to the emulator.
#ifndef TL_EMULATOR_MMA_H
#define TL_EMULATOR_MMA_H

#include <stdbool.h>
#include <stdint.h>

#include "emulator/machine/machine.h"

// Operands of one warp. A word holds the neighbouring elements of a row that fit 32 bits, the first in its lowest bits.
// `c` holds floats, or the bits of 32-bit integers.
typedef struct tl_emu_mma_tiles {
  uint32_t a[16][8];  // A, row-major
  uint32_t b[8][8];   // B transposed: row n is column n of B
  float c[16][8];
} tl_emu_mma_tiles;

// C += A × B with 16 (k8: 8) products an element, elements bf16 or f16. `portable`: without the CPU's vector
// instructions.
void tl_emu_mma_multiply(tl_emu_mma_tiles *tiles, bool k8, bool bf16, bool portable);

// The same for all other types (mma_bytes.c); `param` as of tl_emu_op_mma.
void tl_emu_mma_multiply_bytes(tl_emu_mma_tiles *tiles, int param);

// Gives the launch up when the warp has fewer than 32 lanes.
void tl_emu_mma_sanitize_full(const tl_emu_warp *warp, const tl_emu_meeting *meeting);

// Whether the CPU has what TL_EMU_AVX2 functions need.
bool tl_emu_have_avx2(void);
#define TL_EMU_AVX2 __attribute__((target("avx2,fma,f16c")))
// `count` (a multiple of 8) halves, packed and not necessarily aligned, as floats.
void tl_emu_widen_f16(const void *halves, int count, float *out);
// The value of every 8-bit float, by its bits. Static.
const float *tl_emu_f8_values(bool e5m2);

#endif
