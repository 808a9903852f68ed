// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How two elements combine in reductions and scans, and how values travel between the lanes of a warp.
#ifndef TL_LLVM_BACKEND_LOWER_REDUCE_H
#define TL_LLVM_BACKEND_LOWER_REDUCE_H

#include "llvm_backend/lower/state/lower.h"

// An element of a reduction: a value, and for argmax and argmin its index (i32), else NULL.
typedef struct tl_element {
  LLVMValueRef value, index;
} tl_element;

// What is reduced: the kind (tl_reduction) and the dtype that values have.
typedef struct tl_combiner {
  int reduction;
  tl_dtype dtype;
  bool propagates_nan;
} tl_combiner;

// The element that changes nothing: for max and min of floats NaN, which they ignore, or the far infinity when NaN
// counts.
tl_element tl_lower_neutral(tl_lower *l, const tl_combiner *combiner);
tl_element tl_lower_combine(tl_lower *l, const tl_combiner *combiner, tl_element a, tl_element b);
// Converts an element of `from` to what the reduction works on.
LLVMValueRef tl_lower_reduced_value(tl_lower *l, const tl_combiner *combiner, LLVMValueRef value, tl_dtype from);

// shfl.sync of a whole warp on a value of any register type: `op` is one of TL_DEVOP_SHFL_*, `by` the lane operand.
LLVMValueRef tl_lower_shuffle(tl_lower *l, tl_device_op_id op, LLVMValueRef value, LLVMValueRef by);

#endif
