// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Versions of an op under a condition that is the same for all threads.
#ifndef TL_PASSES_BRANCHES_H
#define TL_PASSES_BRANCHES_H

#include "passes/manager/passes.h"

// Wraps `op` in `if condition uniform { clone } else { op }`, whose results take the place of those of `op`, but for
// that of an op that has a token and nothing else. Returns the clone.
tl_op *tl_branch_versions(tl_pass_context *context, tl_op *op, tl_value *condition);

#endif
