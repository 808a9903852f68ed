// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cost model behind choose-schedule: what a gemm's partition, a block's registers and its shared memory cost on a
// multiprocessor. Clocks are of one multiprocessor; the numbers rank plans, they do not predict times.
#ifndef TL_PASSES_COST_H
#define TL_PASSES_COST_H

#include "ir/ir.h"
#include "ir/layout/instruction.h"
#include "ir/target.h"

// One way to run a gemm.
typedef struct tl_gemm_plan {
  tl_instruction inst;         // family NONE: no plan yet
  int32_t warps_m, warps_n;    // partition of the accumulator; not of FMA
  int32_t warps_k;             // warps that share K out, each with a sum of its own
  int32_t replicas;            // groups of warps that repeat the same work (idle warps)
  int32_t padded_m, padded_n;  // accumulator with padding
  int32_t acc_registers;       // 32-bit accumulator registers a thread
  int32_t operand_registers;   // registers a thread needs for one k-step of a and b
  double math_clocks;          // of the block for all of K in one tile
  double shared_clocks;        // reading a and b from shared memory
  double clocks;               // the larger, plus what does not overlap
} tl_gemm_plan;

// The shape and element widths of a gemm.
typedef struct tl_gemm_shape {
  int32_t m, n, k;
  int32_t operand_bits;
  int policy;              // tl_policy
  bool is_promoted;        // sums of 8-bit floats that tensor cores add up in parts
  tl_instruction fma;      // always there
  tl_instruction mma;      // family NONE: no mma.sync multiplies these dtypes
  tl_instruction swapped;  // that of the transposed product
  tl_instruction wgmma;    // with n = 0: that depends on the partition. Family NONE: something stands in its way
} tl_gemm_shape;

// Cost, in every field of `plan`, of the matrix instruction for a gemm whose B is computed in registers
// (ir/layout/instruction.h), with all rows in every warp: `warps_n` by `warps_k` warps.
void tl_cost_swapped_mma(const tl_gemm_shape *shape, int32_t warps_n, int32_t warps_k, tl_gemm_plan *plan);
// Cost of FMA instructions on `threads` threads.
void tl_cost_fma(const tl_gemm_shape *shape, int32_t threads, tl_gemm_plan *plan);
// The cheapest partition of `num_warps` warps that the policy allows. Ties go to the more square warp tile.
tl_gemm_plan tl_cost_best_mma(const tl_gemm_shape *shape, int32_t num_warps);

// choose_schedule_wgmma.c: the cheapest partition of wgmma; false when there is none.
bool tl_cost_best_wgmma(const tl_gemm_shape *shape, int32_t num_warps, tl_gemm_plan *best);

// Clocks of a multiprocessor's tensor cores for a scheduled gemm (with INST), however warps share it.
double tl_cost_gemm_clocks(const tl_op *gemm);
// Clocks from the start of a copy from global memory until its bytes are there, on a busy machine. Measured on an H200:
// a loop of 512 tensor clocks whose copies run two iterations ahead takes 670 (docs/performance.md).
enum { TL_COST_COPY_LATENCY = 1340 };

// Blocks of the scheduled kernel (with PLAN) that a multiprocessor holds at a time: as many as fit, fewer where the
// grid is known to be small.
int64_t tl_cost_blocks_at_once(const tl_op *kernel);
// A number of the kernel's PLAN; `fallback` where it has none of that name.
int64_t tl_cost_planned(const tl_op *kernel, const char *name, int64_t fallback);
// Clocks of a whole scheduled kernel (after choose-schedule), dynamic sizes taken as 4096; INFINITY when it cannot run.
double tl_cost_kernel(const tl_target *target, tl_op *kernel);
// Multiprocessors of the GPUs that the model is measured on (H100 and H200).
enum { TL_COST_MULTIPROCESSORS = 132 };

// Registers a thread wants around accumulators and operands: addresses, loop counters, epilogue.
enum { TL_COST_BASE_REGISTERS = 48, TL_COST_STREAM_REGISTERS = 32 };
// Blocks that fit on a multiprocessor for registers a thread, shared bytes a block and threads a block. At least 1.
int32_t tl_cost_resident_blocks(const tl_target *target, int32_t threads, int32_t registers, int64_t shared_bytes);
// Shared bytes that the hardware keeps for itself in every block (CUDA C++ Programming Guide, compute capability 8.x).
enum { TL_COST_RESERVED_SHARED_BYTES = 1024 };

#endif
