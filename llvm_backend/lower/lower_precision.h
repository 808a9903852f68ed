// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the uses of a value make of its precision.
#ifndef TL_LLVM_BACKEND_LOWER_PRECISION_H
#define TL_LLVM_BACKEND_LOWER_PRECISION_H

#include "ir/ir.h"

// Whether every way that the f32 value takes ends in a rounding beside which a few units of its last place do not
// count: to f16, bf16 or narrower, or in the sum of 32 elements or more, which is itself only good to a few units.
// Products, quotients and selections on the way hand a relative error on; everything else (sums of two, comparisons,
// stores in f32) ends the search with false. A value without uses has none that rounds: false.
bool tl_lower_precision_is_spare(const tl_value *value);

#endif
