// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of check-masks share.
#ifndef TL_PASSES_CHECK_MASKS_H
#define TL_PASSES_CHECK_MASKS_H

#include "passes/analysis/memory_access.h"
#include "support/vec.h"

// The ops of a kernel that matter here, in program order. Borrowed.
typedef struct tl_mask_ops {
  TL_VEC(tl_op *) stores;
  TL_VEC(tl_op *) fills;
  TL_VEC(tl_op *) copies;
  TL_VEC(tl_op *) reduces;
  TL_VEC(tl_op *) differences;  // SUB
} tl_mask_ops;

// Whether the value is the constant -inf, of any dtype.
bool tl_is_minus_inf(const tl_value *value);
// Where elements of the tile that `reduce` reads become -inf inside `loop`, so that in the loop's first iteration all
// that are combined may be; NULL when there is no such place, or an element provably stays.
const tl_op *tl_find_whole_mask(const tl_mask_ops *ops, const tl_op *reduce, const tl_op *loop);

#endif
