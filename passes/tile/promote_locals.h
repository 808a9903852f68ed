// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of promote-locals.
#ifndef TL_PASSES_PROMOTE_LOCALS_H
#define TL_PASSES_PROMOTE_LOCALS_H

#include "passes/manager/passes.h"
#include "support/vec.h"

// Asks for the unrolling that keeps local arrays in registers; remarks on those that cannot be.
void tl_place_local_arrays(tl_pass_context *context, tl_op *kernel);

#endif
