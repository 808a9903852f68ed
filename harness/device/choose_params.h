// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of `auto` params: tile sizes and stages that nobody gave.
#ifndef TL_HARNESS_CHOOSE_PARAMS_H
#define TL_HARNESS_CHOOSE_PARAMS_H

#include "frontend/elaborate/instantiate.h"

// `bindings` with a value for every param that is `auto`: of those that the kernel's `tune` section lists, else of
// powers of two up to 256 (of a pipeline's stages 2 to 4), the ones that the cost model of the scheduler likes best. A
// remark says which. Where none compiles they stay without a value. The result lives in `arena` and borrows from the
// arguments.
tl_bindings tl_choose_params(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings,
                             const tl_target *target, const tl_sources *sources, tl_diags *diags);

#endif
