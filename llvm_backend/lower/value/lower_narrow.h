// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f8e4m3, f8e5m2 and f4e2m1 (held as their bits) and tf32 (held as an f32) from and to f32.
#ifndef TL_LLVM_BACKEND_LOWER_NARROW_H
#define TL_LLVM_BACKEND_LOWER_NARROW_H

#include "llvm_backend/lower/state/lower.h"

bool tl_lower_is_narrow(tl_dtype dtype);
// Exact.
LLVMValueRef tl_lower_from_narrow(tl_lower *l, LLVMValueRef a, tl_dtype from);
// Rounds an f32 to nearest even. f8 and f4 saturate, NaN stays NaN (f4: the largest value).
LLVMValueRef tl_lower_to_narrow(tl_lower *l, LLVMValueRef a, tl_dtype to);
// An f64 as the f32 that a further rounding to fewer bits takes to where it would have taken the f64.
LLVMValueRef tl_lower_f64_to_odd_f32(tl_lower *l, LLVMValueRef a);

// Whether the target converts two f32 to `to` with one instruction, and doing so.
bool tl_lower_has_pairs(const tl_lower *l, tl_dtype to);
void tl_lower_pair_to_f8(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype to, LLVMValueRef *out);

#endif
