// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of lower-rings share.
#ifndef TL_PASSES_LOWER_RINGS_H
#define TL_PASSES_LOWER_RINGS_H

#include "passes/manager/passes.h"

// Rings of mbarriers become those; other rings stay.
void tl_lower_barrier_rings(tl_pass_context *context, tl_op *kernel);

#endif
