// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plan that choose-schedule writes and how it is enumerated.
#ifndef TL_PASSES_CHOOSE_SCHEDULE_H
#define TL_PASSES_CHOOSE_SCHEDULE_H

#include "passes/manager/passes.h"
#include "passes/schedule/cost.h"

enum { TL_PLAN_MAX_STAGES = 4, TL_PLAN_PANEL = 8 };
// More than two blocks of a gemm on a multiprocessor hide no more latency than deeper pipelines do.
enum { TL_PLAN_MAX_BLOCKS = 2, TL_PLAN_SPARE_REGISTERS = 24 };
// Kernels without gemms: threads on a multiprocessor that stream best (measured: docs/performance.md), and the
// registers that addresses and values in flight take.
enum { TL_PLAN_MAX_STREAMED = 16 };
enum { TL_PLAN_STREAM_THREADS = 1280, TL_PLAN_STREAM_REGISTERS = 32 };

// A pipelined loop and what its stages cost.
typedef struct tl_loop_plan {
  tl_op *loop;
  int64_t staged_bytes;  // of the shared tiles that get one copy a stage
  int32_t stages;
  bool fixed;  // by the author
} tl_loop_plan;

// One complete plan of a kernel. The arrays live in the pass's scratch arena.
typedef struct tl_plan {
  int32_t threads;
  int32_t num_gemms;
  int32_t num_wgmma;  // of those
  tl_gemm_plan *gemms;
  int32_t num_loops;
  tl_loop_plan *loops;
  int64_t shared_bytes;  // all shared tiles with their stages
  int32_t registers;     // a thread, estimated
  int32_t resident;      // blocks on a multiprocessor
  int32_t panel;         // 0: as the author wrote, or none
  double clocks;         // of one block and its share of a multiprocessor; what plans are ranked by
} tl_plan;

// What the enumerator knows about a kernel, collected once.
typedef struct tl_schedule_problem {
  tl_pass_context *context;
  tl_op *kernel;
  tl_op *scope;  // whose statements are looked at: the kernel, or a role of its author
  tl_op *grid;
  int32_t fixed_threads;  // 0: the compiler chooses
  // In program order, in the pass's scratch arena.
  int32_t num_gemms;
  tl_op **gemms;
  tl_gemm_shape *shapes;
  bool *use_mma;      // else FMA; wgmma, where the shape has it, comes before both
  bool *wants_wgmma;  // by the author
  // Of gemms with an operand in registers, which fixes their partition; else without instruction.
  tl_gemm_plan *swapped;
  int32_t num_loops;
  tl_loop_plan *loops;
  int64_t stored_bytes;    // of tiles in registers that the kernel's own body writes to global memory
  int64_t shared_bytes;    // of all shared tiles, one copy each
  int64_t most_elements;   // of the largest parallel or fragment
  int64_t streamed_bytes;  // of the tensors of which each block reads a part of its own, in one such parallel or copy
  const tl_value *streamed[TL_PLAN_MAX_STREAMED];
  int32_t num_streamed;
  int32_t operand_registers;  // a thread, for operands of gemms that parallels compute in registers
} tl_schedule_problem;

// Fills `plan` for `threads` threads a block: partitions, stages, registers, residency and the cost.
void tl_schedule_plan(const tl_schedule_problem *problem, int32_t threads, tl_plan *plan);
// Walks every candidate and returns the cheapest.
tl_plan tl_schedule_best(const tl_schedule_problem *problem);

// How many blocks of a kernel with gemms on a multiprocessor the registers are to leave room for: of those that were
// planned as many as fit without spills.
int32_t tl_schedule_asked_blocks(const tl_schedule_problem *problem, const tl_plan *plan);

// Why the gemm cannot run on wgmma, or NULL; `out` gets the form that fits, without n.
const char *tl_wgmma_obstacle(const tl_target *target, const tl_op *gemm, const tl_gemm_shape *shape,
                              tl_instruction *out);

// Whether blocks that differ in the grid's second dim alone read something in common, which is what panels are for.
// Else the first dim varies fastest: in attention the blocks of one head then run together and share its keys and
// values, where a panel of heads would hold more of those than the L2 cache does.
bool tl_schedule_rows_share(const tl_schedule_problem *problem);
// Whether a block waits for others: only for those before its own, in the grid's own order unless the author says
// another.
bool tl_schedule_waits(const tl_schedule_problem *problem);
// Where pipelined loops are longer the larger the grid's first index is: turns that index round, so that long blocks
// start first and short ones fill the end. Not in kernels whose blocks wait for each other.
bool tl_schedule_long_first(const tl_schedule_problem *problem);

// Whether all shared tiles with their copies fit beside each other, in `blocks` blocks on a multiprocessor.
bool tl_schedule_fits_apart(const tl_target *target, const tl_op *kernel, int64_t blocks);
// Bytes of one copy of a shared tile.
int64_t tl_schedule_alloc_bytes(const tl_op *alloc);

// Turns shared tiles that a parallel fills and only gemms read as their B into fragments, where every warp can compute
// its own part, and chooses the partition of those gemms. Returns whether there were any: the plan changes.
bool tl_schedule_operands(tl_schedule_problem *problem, const tl_plan *plan);
// Whether warps may share out K of the gemm: it adds to a fragment that nothing else touches in the loop around it.
bool tl_schedule_can_split(const tl_op *gemm);
// Gives each of `warps_k` warps a sum of its own, which are added up and to the gemm's accumulator after the loop.
void tl_schedule_split(tl_module *module, tl_op *gemm, int32_t warps_k);
// Turns shared tiles whose elements never change threads into fragments.
void tl_schedule_registers(tl_schedule_problem *problem, int32_t threads);

#endif
