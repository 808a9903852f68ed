// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic helpers shared by the scalar families of the lowering.
#ifndef TL_LLVM_BACKEND_LOWER_ARITH_H
#define TL_LLVM_BACKEND_LOWER_ARITH_H

#include "llvm_backend/lower/lower.h"

LLVMValueRef tl_lower_floor_divide(tl_lower *l, LLVMValueRef a, LLVMValueRef b, bool want_remainder);
LLVMValueRef tl_lower_shift(tl_lower *l, LLVMValueRef a, LLVMValueRef by, bool left, bool is_signed);
// The comparison `cmp` (tl_cmp) of integers.
LLVMIntPredicate tl_lower_int_predicate(int64_t cmp, bool is_signed);
void tl_lower_index_binary(tl_lower *l, tl_op *op);
// The function `fn` (tl_math) of one float of `dtype`; NULL when there is none for the dtype.
LLVMValueRef tl_math_build(tl_lower *l, int fn, tl_dtype dtype, LLVMValueRef a, const tl_value *source,
                           const tl_op *op);

#endif
