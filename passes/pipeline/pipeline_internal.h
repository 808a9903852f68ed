// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of the pipeline pass.
#ifndef TL_PASSES_PIPELINE_INTERNAL_H
#define TL_PASSES_PIPELINE_INTERNAL_H

#include "passes/analysis/dependence.h"
#include "passes/manager/passes.h"

// Rewrites the loop of `dependence` (at least one group) into rings of `stages` slots; with a `lag` of 1 its gemms are
// in flight from one iteration to the next. The old loop is erased.
void tl_pipeline_emit(tl_pass_context *context, const tl_dependence *dependence, int64_t stages, int64_t lag);

// Sends a copy that was to go by TMA by cp.async, which is always possible: for what no ring of its own carries.
void tl_copy_leave_engine(tl_module *module, tl_op *copy);

// Makes the remaining cp.async copies of a kernel complete: a commit after them and a wait before the first use; plain
// vector copies where a wait would drain a ring around them.
void tl_pipeline_finish_copies(tl_pass_context *context, tl_op *kernel);

// pipeline_flight.c. Iterations (0 or 1) by which the loop's gemms are waited for later than they are issued.
int64_t tl_pipeline_lag(tl_pass_context *context, const tl_dependence *dependence, int64_t stages);
// Makes the gemms of the new loop asynchronous, with a lag of 1.
void tl_pipeline_float(tl_pass_context *context, tl_op *loop);

#endif
