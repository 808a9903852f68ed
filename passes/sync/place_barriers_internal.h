// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of place-barriers.
#ifndef TL_PASSES_PLACE_BARRIERS_INTERNAL_H
#define TL_PASSES_PLACE_BARRIERS_INTERNAL_H

#include "passes/analysis/effects.h"

// Whether two accesses to one owner of memory provably never touch a common element: boxes (of copies, tile loads and
// tile stores) that lie apart, or that every iteration of the loops around moves on by at least their size. `before`
// may have run in the same or in any earlier iteration.
bool tl_accesses_never_meet(const tl_effect *before, const tl_effect *after);

#endif
