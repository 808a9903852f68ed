// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_LLVM_BACKEND_LOWER_TILES_H
#define TL_LLVM_BACKEND_LOWER_TILES_H

#include "llvm_backend/lower/state/lower.h"

// The tile that follows in a `dynamic` loop over tiles, at its end: `iteration` (i32) counts its iterations, `end` is
// the number of tiles, in whose type the result is; `end` where no tile is left.
LLVMValueRef tl_lower_next_tile(tl_lower *l, tl_op *loop, LLVMValueRef iteration, LLVMValueRef end);

#endif
