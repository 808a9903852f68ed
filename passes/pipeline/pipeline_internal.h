// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of the pipeline pass.
#ifndef TL_PASSES_PIPELINE_INTERNAL_H
#define TL_PASSES_PIPELINE_INTERNAL_H

#include "passes/analysis/dependence.h"
#include "passes/manager/passes.h"

// How a loop becomes rings.
typedef struct tl_ring_plan {
  int64_t stages;
  int64_t lag;            // iterations (0 or 1) by which its gemms are waited for later than they are issued
  const bool *by_engine;  // per group: TMA fills all its tiles
} tl_ring_plan;

// Rewrites the loop of `dependence` (at least one group) into rings. The old loop is erased; returns the new one.
tl_op *tl_pipeline_emit(tl_pass_context *context, const tl_dependence *dependence, const tl_ring_plan *plan);
// Iterations that the copies of a group run ahead.
int64_t tl_pipeline_ahead(const tl_ring_plan *plan, size_t group);

// Sends a copy that was to go by TMA by cp.async, which is always possible: for what no ring of its own carries.
void tl_copy_leave_engine(tl_module *module, tl_op *copy);

// pipeline_once.c. Gives what TMA fills once, outside of loops, a ring of one slot. Loops are rings already.
void tl_pipeline_once(tl_pass_context *context, tl_op *kernel);

// Makes the remaining cp.async copies of a kernel complete: a commit after them and a wait before the first use; plain
// vector copies where a wait would drain a ring around them.
void tl_pipeline_finish_copies(tl_pass_context *context, tl_op *kernel);

// pipeline_flight.c. The lag of the loop, for a plan whose other fields are set.
typedef struct tl_lag_reason {
  bool is_asked;         // there is a gemm
  tl_loc at;             // of it
  const char *obstacle;  // why it is waited for at once; NULL: it is not. Of the scratch arena.
} tl_lag_reason;
int64_t tl_pipeline_lag(tl_pass_context *context, const tl_dependence *dependence, const tl_ring_plan *plan,
                        tl_lag_reason *out);
void tl_pipeline_remark_lag(tl_pass_context *context, const tl_lag_reason *reason);
// Makes the gemms of the new loop asynchronous, with a lag of 1.
void tl_pipeline_float(tl_pass_context *context, tl_op *loop);
// Lets the gemms fly for which their author waits himself, chains that a loop carries; a remark says why one does not.
void tl_pipeline_float_by_hand(tl_pass_context *context, tl_op *kernel);

// rotate.c. Makes a loop of rings overlap its own iterations, or its statements the products of their iteration, where
// that gains time, and what its OVERLAP says. False: it stays as it is, else it is erased.
bool tl_pipeline_rotate(tl_pass_context *context, tl_op *loop);
// That the loop's OVERLAP asks for what cannot be.
void tl_pipeline_refuse_overlap(tl_pass_context *context, const tl_op *loop, const char *why);

#endif
