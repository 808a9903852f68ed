// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts that tests start from.
#ifndef TL_TEST_IR_LAYOUTS_H
#define TL_TEST_IR_LAYOUTS_H

#include "ir/layout/instruction.h"

// The accumulator of mma.m16n8k16 with f32 sums, of warps_m by warps_n warps.
static inline tl_layout mma_acc_layout(const int32_t *shape, int32_t warps_m, int32_t warps_n) {
  tl_instruction inst = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_F16));
  tl_gemm_warps warps = {.m = warps_m, .n = warps_n, .k = 1, .all = warps_m * warps_n};
  return tl_instruction_acc_layout(&inst, shape, warps);
}

#endif
