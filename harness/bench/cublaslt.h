// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuBLASLt as a peer of benchmarks: opened at run time, never linked (cuBLAS documentation, "Using the cuBLASLt API").
#ifndef TL_HARNESS_CUBLASLT_H
#define TL_HARNESS_CUBLASLT_H

#include <stdbool.h>

#include "support/dtype.h"
#include "tl/runtime.h"

typedef struct tl_cublaslt tl_cublaslt;
typedef struct tl_cublaslt_plan tl_cublaslt_plan;

// Row-major C[m, n] = A[m, k] * B[k, n]; A is stored [k, m] and B [n, k] where transposed. Leading dims in elements.
typedef struct tl_cublaslt_problem {
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  bool a_transposed, b_transposed;
  tl_dtype a, b, c;
} tl_cublaslt_problem;

// `path`: the library or a directory that holds it; NULL: libcublasLt.so.13, else .12, where the loader finds them.
// NOT_FOUND says what was tried.
TL_MUST_USE tl_status tl_cublaslt_open(const char *path, tl_device *device, tl_cublaslt **out);
void tl_cublaslt_close(tl_cublaslt *library);
// "cuBLASLt 13.0.2". Borrowed.
const char *tl_cublaslt_version(const tl_cublaslt *library);

// The library's first 8 choices for the problem. UNSUPPORTED when it has none, or does not know the dtypes.
TL_MUST_USE tl_status tl_cublaslt_plan_create(tl_cublaslt *library, const tl_cublaslt_problem *problem,
                                              tl_cublaslt_plan **out);
void tl_cublaslt_plan_destroy(tl_cublaslt_plan *plan);
uint32_t tl_cublaslt_plan_num_choices(const tl_cublaslt_plan *plan);
TL_MUST_USE tl_status tl_cublaslt_launch(tl_cublaslt_plan *plan, uint32_t choice, const void *a, const void *b, void *c,
                                         void *stream);

#endif
