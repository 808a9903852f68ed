// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The instruction behind a gemm: which it is, why there is none, and what the registers of its operands hold. Cost,
// layouts and lowering of a gemm follow from this one value.
//
// Every warp's part of mma.sync (f64's apart) and of wgmma has the same shape seen in bytes: with g = lane / 4 and t =
// lane % 4, 32-bit register r of A holds the 4 bytes at 4 t + 16 (r / 2) of a row's k-step, of row g + 8 (r % 2);
// register r of B (mma) those at 4 t + 16 r of column g. f64 has one element of row (column) g at k = t. Of the 64 rows
// of a wgmma warp w of the warpgroup has those from 16 w on.
#ifndef TL_IR_INSTRUCTION_H
#define TL_IR_INSTRUCTION_H

#include "ir/layout/layout.h"
#include "support/dtype.h"

typedef enum tl_instruction_family {
  TL_FAMILY_NONE,   // no instruction
  TL_FAMILY_FMA,    // each thread multiplies by itself
  TL_FAMILY_MMA,    // mma.sync of a warp
  TL_FAMILY_WGMMA,  // wgmma.mma_async of a warpgroup: four warps from a multiple of four on
  TL_FAMILY_COUNT
} tl_instruction_family;

enum { TL_WGMMA_WARPS = 4, TL_WGMMA_ROWS = 64, TL_WGMMA_MAX_COLUMNS = 256, TL_WGMMA_STEP_BYTES = 32 };

typedef struct tl_instruction {
  tl_instruction_family family;
  tl_dtype a, b, acc;  // of the instruction's own operands
  int32_t m, n, k;
  // WGMMA only. B and A are read from shared memory through descriptors, A may come in registers instead; an operand in
  // shared memory whose rows do not run along K is transposed.
  bool a_in_registers, trans_a, trans_b;
} tl_instruction;

// The family's instruction for these dtypes. A wgmma has n = 0 until tl_instruction_set_n. Family NONE when there is
// none on any target.
tl_instruction tl_instruction_find(tl_instruction_family family, tl_dtype a, tl_dtype b, tl_dtype acc);
// Gives a wgmma the widest n that divides `columns`; false when none does.
bool tl_instruction_set_n(tl_instruction *inst, int32_t columns);
// Why no hardware has such an instruction; NULL when one does.
const char *tl_instruction_problem(const tl_instruction *inst);
const char *tl_instruction_family_name(tl_instruction_family family);
bool tl_instruction_equal(const tl_instruction *a, const tl_instruction *b);
// Compute capability times ten that the instruction needs at least, and multiply-adds a clock of one multiprocessor.
int tl_instruction_min_sm(const tl_instruction *inst);
int32_t tl_instruction_rate(const tl_instruction *inst);
// Whether it runs on while the threads go on.
bool tl_instruction_is_async(const tl_instruction *inst);
// Elements along K that one register of an operand holds.
int32_t tl_instruction_pack(const tl_instruction *inst);

// Text: "fma.m1n1k1.f32.f16.f16" (acc, a, b), "mma.m16n8k16.f32.bf16.bf16", "wgmma.m64n256k16.f32.bf16.bf16.ss.tb" (rs:
// A in registers; ta, tb: transposed). Parsing gives false for anything else than such a text of an instruction that
// exists.
void tl_instruction_print(const tl_instruction *inst, tl_strbuf *out);
bool tl_instruction_parse(tl_str text, tl_instruction *out);

// ---- mma.sync
typedef enum tl_mma_inst_id {
#define TL_MMA_INST(ID, a, b, acc, m, n, k, half_k, min_sm, rate) TL_MMA_INST_##ID,
#include "ir/layout/instruction.def"
  TL_MMA_INST_COUNT
} tl_mma_inst_id;

typedef struct tl_mma_inst {
  tl_mma_inst_id id;
  tl_dtype a, b, acc;
  int32_t m, n, k;
  int32_t half_k;  // 0: no shorter form
  int min_sm;
  int32_t rate;
} tl_mma_inst;

// The table's row; NULL for other families.
const tl_mma_inst *tl_instruction_mma(const tl_instruction *inst);
const tl_mma_inst *tl_mma_inst_of(tl_mma_inst_id id);
tl_instruction tl_instruction_of_mma(const tl_mma_inst *row);

// ---- layouts

// How warps share a gemm: warp w has place w % m along M, w / m % n along N and w / (m n) % k along K. Warps beyond
// those repeat the work. m of a wgmma counts warps, too: four for each warpgroup.
typedef struct tl_gemm_warps {
  int32_t m, n, k;
  int32_t all;  // warps of the block; m * n * k divides it
} tl_gemm_warps;

// Layout of the accumulator (shape M by N).
tl_layout tl_instruction_acc_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps);
// Layout of A in registers (shape M by K) for the same partition: every warp of a row of warps holds the same part. For
// 16-bit operands it is an accumulator's, so that a product in registers can be an operand as it is. MMA and WGMMA.
tl_layout tl_instruction_a_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps);

// Operands B in registers (MMA) are the instruction's A: it multiplies B^T by A^T, so that B's elements may be made in
// any register and A's are read in the order in which they lie. `run`, below, is what a lane holds of B side by side
// along K; four lanes hold the next 4 * run. The instruction's own order is a run of one register; longer runs take the
// products along K in another order, in which A has to follow: word w of k-step s is elements (2 s + w) * pack … of
// every lane's run, with s counted from the start of the 4 * run elements. Warps along K have a sum of their own for
// every element that they handle.

// Layout of the accumulator (shape M by N) of such a product; with warps.k > 1 of the sums, shape warps.k by M by N.
tl_layout tl_instruction_swapped_acc_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps);
// Layout of B in registers (K along dim `k_dim` of `shape`, N along the other): warps along M hold the same part.
tl_layout tl_instruction_b_layout(const tl_instruction *inst, const int32_t *shape, int32_t k_dim, int32_t run,
                                  tl_gemm_warps warps);

#endif
