// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the conditions around an op say about index values.
#ifndef TL_PASSES_KNOWN_CONDITIONS_H
#define TL_PASSES_KNOWN_CONDITIONS_H

#include "ir/index/affine.h"

// Whether index + offset < limit wherever `op` runs, because a branch around it was taken. `limit` NULL: the constant.
bool tl_known_below(const tl_op *op, tl_value *index, int64_t offset, tl_value *limit, int64_t constant);
// Whether index + offset >= 0 there.
bool tl_known_not_negative(const tl_op *op, tl_value *index, int64_t offset);
// Whether the sum is >= 0 there. False for an invalid one.
bool tl_known_sum(const tl_op *op, const tl_affine *sum);

#endif
