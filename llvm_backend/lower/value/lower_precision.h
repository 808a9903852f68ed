// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the uses of a value make of its precision.
#ifndef TL_LLVM_BACKEND_LOWER_PRECISION_H
#define TL_LLVM_BACKEND_LOWER_PRECISION_H

#include "ir/ir.h"

// Where the ways end that an f32 value takes, products, quotients and selections handing a relative error on: the one
// that asks most.
typedef enum tl_precision {
  TL_PRECISION_FULL,    // sums of two, comparisons, stores in f32, or nowhere: every unit of the last place counts
  TL_PRECISION_SUMMED,  // in sums of 32 elements or more, which are themselves only good to a few units, or as below
  TL_PRECISION_ROUNDED  // in roundings to f16, bf16 or narrower alone
} tl_precision;

tl_precision tl_lower_precision_of(const tl_value *value);

#endif
