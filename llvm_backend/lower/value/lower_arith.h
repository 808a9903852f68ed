// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic helpers shared by the scalar families of the lowering.
#ifndef TL_LLVM_BACKEND_LOWER_ARITH_H
#define TL_LLVM_BACKEND_LOWER_ARITH_H

#include "llvm_backend/lower/state/lower.h"

// A binary operation of integers or truth values on one element; one that has no lowering is reported.
LLVMValueRef tl_lower_int_binary(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b, bool is_signed);
// The comparison `cmp` (tl_cmp) of integers.
LLVMIntPredicate tl_lower_int_predicate(int64_t cmp, bool is_signed);
// a / b of f32, off by two units of the last place at most, without a branch (lower_quotient.c).
LLVMValueRef tl_lower_scaled_quotient(tl_lower *l, LLVMValueRef a, LLVMValueRef b);
// Whether the op divides several elements of the current group by one number, each correctly rounded; and those
// quotients, in the place of their dividends.
bool tl_lower_shares_divisor(tl_lower *l, const tl_op *op);
void tl_lower_shared_quotients(tl_lower *l, LLVMValueRef *values, int32_t len, LLVMValueRef b);
void tl_lower_index_binary(tl_lower *l, tl_op *op);

// Converts `count` elements between dtypes with the meaning of the `cast` op (lower_cast.c).
void tl_lower_convert(tl_lower *l, LLVMValueRef const *in, tl_dtype from, tl_dtype to, int32_t count,
                      LLVMValueRef *out);

#endif
