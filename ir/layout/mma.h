// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of matrix instructions (mma.def) and what their operands' registers hold.
//
// Every instruction but f64's has the same shape seen in bytes: with g = lane / 4 and t = lane % 4, 32-bit register r
// of A holds the 4 bytes at 4 t + 16 (r / 2) of a row's k-step, of row g + 8 (r % 2); register r of B those at 4 t + 16
// r of column g. f64 has one element of row (column) g at k = t.
#ifndef TL_IR_MMA_H
#define TL_IR_MMA_H

#include "ir/layout/layout.h"
#include "support/dtype.h"

typedef enum tl_mma_inst_id {
#define TL_MMA_INST(ID, a, b, acc, m, n, k, half_k, min_sm, rate) TL_MMA_INST_##ID,
#include "ir/layout/mma.def"
#undef TL_MMA_INST
  TL_MMA_INST_COUNT
} tl_mma_inst_id;

typedef struct tl_mma_inst {
  tl_mma_inst_id id;
  tl_dtype a, b, acc;
  int32_t m, n, k;
  int32_t half_k;  // 0: no shorter form
  int min_sm;
  int32_t rate;  // multiply-adds a clock of one multiprocessor
} tl_mma_inst;

// The instruction for these dtypes; NULL when there is none on any target.
const tl_mma_inst *tl_mma_inst_find(tl_dtype a, tl_dtype b, tl_dtype acc);
const tl_mma_inst *tl_mma_inst_of(tl_mma_inst_id id);
// Elements along K that one register of an operand holds.
int32_t tl_mma_inst_pack(const tl_mma_inst *inst);

// Layout of the accumulator (shape M by N) for warps_m by warps_n of `warps` warps; the others repeat the same work.
// Warp w has place w % warps_m along m and w / warps_m % warps_n along n.
tl_layout tl_mma_inst_acc_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t warps_m, int32_t warps_n,
                                 int32_t warps);
// Layout of A in registers (shape M by K) for the same partition: every warp of a row of warps holds the same part. For
// 16-bit operands it is an accumulator's, so that a product in registers can be an operand as it is.
tl_layout tl_mma_inst_a_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t warps_m, int32_t warps_n,
                               int32_t warps);

// Operands B in registers are the instruction's A: it multiplies B^T by A^T, so that B's elements may be made in any
// register and A's are read in the order in which they lie. `run`, below, is what a lane holds of B side by side along
// K; four lanes hold the next 4 * run. The instruction's own order is a run of one register; longer runs take the
// products along K in another order, in which A has to follow: word w of k-step s is elements (2 s + w) * pack … of
// every lane's run, with s counted from the start of the 4 * run elements.

// Such a product may share K out, too: warp w has place w / (m n) % k along K, and a sum of its own for every element
// that it handles.
typedef struct tl_mma_warps {
  int32_t m, n, k;
  int32_t all;  // warps of the block; m * n * k divides it, and the others repeat the same work
} tl_mma_warps;

// Layout of the accumulator (shape M by N) of such a product; with warps.k > 1 of the sums, shape warps.k by M by N.
tl_layout tl_mma_swapped_acc_layout(const tl_mma_inst *inst, const int32_t *shape, tl_mma_warps warps);
// Layout of B in registers (K along dim `k_dim` of `shape`, N along the other): warps along M hold the same part.
tl_layout tl_mma_b_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t k_dim, int32_t run,
                          tl_mma_warps warps);

#endif
