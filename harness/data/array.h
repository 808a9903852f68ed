// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host tensors: dense, row-major, packed elements of one dtype.
#ifndef TL_HARNESS_ARRAY_H
#define TL_HARNESS_ARRAY_H

#include "support/dtype.h"
#include "support/status.h"

enum { TL_ARRAY_MAX_RANK = 8 };

typedef struct tl_array {
  tl_dtype dtype;
  int32_t rank;
  int64_t shape[TL_ARRAY_MAX_RANK];  // elements
  uint64_t count;                    // elements, the product of `shape`
  uint64_t bytes;                    // of `data`
  void *data;                        // Owned. At least one byte.
} tl_array;

// A zeroed array. LIMIT when it would not fit memory (2^40 bytes).
TL_MUST_USE tl_status tl_array_init(tl_array *array, tl_dtype dtype, int32_t rank, const int64_t *shape);
// The same without memory: `data` is NULL. What only looks at shapes takes it.
TL_MUST_USE tl_status tl_array_init_shape(tl_array *array, tl_dtype dtype, int32_t rank, const int64_t *shape);
void tl_array_fini(tl_array *array);

// A copy of `from` as `dtype`: floats are rounded, integers must fit. Raw bits are accepted for what NumPy has no type
// for: u16 for bf16, u8 for f8 and (with half the last axis) for 4-bit types. INVALID_ARGUMENT otherwise.
TL_MUST_USE tl_status tl_array_convert(const tl_array *from, tl_dtype dtype, tl_array *out);

// Element `index` as a number: of u64 the upper half too.
double tl_array_number(const tl_array *array, uint64_t index);

// "f16[256, 128]" in `out` (truncated to `size`).
void tl_array_describe(const tl_array *array, char *out, size_t size);

#endif
