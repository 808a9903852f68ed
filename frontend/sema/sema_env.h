// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment of params and lets as instantiate sees it: names with errors are known to be poisoned.
#ifndef TL_FRONTEND_SEMA_ENV_H
#define TL_FRONTEND_SEMA_ENV_H

#include "frontend/sema/sema_fold.h"

// As tl_env_create, but always fills `out_env`; entries whose evaluation failed are marked in `*out_poisoned` (one per
// entry, in the arena). Entries stand in the order of params, then lets.
bool tl_sema_env_create(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings, bool bind_dynamic,
                        tl_diags *diags, tl_env *out_env, bool **out_poisoned);

#endif
