// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of check-bounds share.
#ifndef TL_PASSES_CHECK_BOUNDS_H
#define TL_PASSES_CHECK_BOUNDS_H

#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"

// Warns where a loop around the access walks past the tensor, or a tile over its neighbour's part.
void tl_bounds_of_box_loops(tl_pass_context *context, const tl_box *box);
void tl_bounds_of_element_loops(tl_pass_context *context, const tl_op *op);

// Drops checks of `op` and what is inside that are proven by now: of a clone for an iteration that is known, for
// instance. Never adds one.
void tl_refine_bounds(tl_module *module, tl_op *op);

#endif
