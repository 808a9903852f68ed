// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recognises kernels whose reference is a matrix product, so that a library's product can be a peer.
#ifndef TL_HARNESS_BENCH_PRODUCT_H
#define TL_HARNESS_BENCH_PRODUCT_H

#include <stdbool.h>

#include "frontend/spec/spec.h"

// C[m, n] = sum[k](A[m, k] * B[k, n]), by the names of the arguments.
typedef struct tl_bench_product {
  tl_str a, b, c;     // Borrowed from the spec.
  bool a_transposed;  // A[k, m]
  bool b_transposed;  // B[n, k]
} tl_bench_product;

// NULL when the reference is one product of two arguments; else why it is not ("it has 3 statements").
const char *tl_bench_find_product(const tl_kernel_spec *kernel, tl_bench_product *out);

#endif
