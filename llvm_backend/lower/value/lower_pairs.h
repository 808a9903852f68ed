// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two 16-bit floats a register: arithmetic on both at once, and conversions of packed integers.
#ifndef TL_LLVM_BACKEND_LOWER_PAIRS_H
#define TL_LLVM_BACKEND_LOWER_PAIRS_H

#include "llvm_backend/lower/state/lower.h"

// A vector of `low` and `high` (one type); the vector itself when they are its two elements.
LLVMValueRef tl_lower_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high);
// Elements 0 and 1 of a vector of two.
void tl_lower_split_pair(tl_lower *l, LLVMValueRef pair, LLVMValueRef *out);

// The vector of two 16-bit floats of which `low` and `high` (f32) are the widened elements 0 and 1; NULL when they are
// not. `out_dtype` gets the elements' dtype.
LLVMValueRef tl_lower_widened_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype *out_dtype);

// Whether ADD, SUB or MUL (`code`) of pairs of `dtype` is one instruction of the target.
bool tl_lower_has_pair_op(const tl_lower *l, tl_opcode code, tl_dtype dtype);
// a op b of two elements each, rounded as the scalar op is.
void tl_lower_pair_op(tl_lower *l, tl_opcode code, tl_dtype dtype, LLVMValueRef const *a, LLVMValueRef const *b,
                      LLVMValueRef *out);

// Converts two integers of `from` that are bit fields of words (4- and 8-bit data as it was loaded, however shifted and
// masked) to f16 or bf16 without conversion instructions. False, with nothing built, when they are no such fields.
bool tl_lower_fields_to_half(tl_lower *l, LLVMValueRef const *in, tl_dtype from, tl_dtype to, LLVMValueRef *out);

#endif
