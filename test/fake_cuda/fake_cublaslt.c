// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A cuBLASLt for the fake driver: three choices that take 40, 20 and 30 us and compute nothing; the fourth is refused
// when it runs. The operands' layouts must be those of cuBLAS for the product that is asked for.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/cublaslt_types.h"

#define EXPORT __attribute__((visibility("default")))
#define TL_CUBLASLT_FN(field, symbol, result, parameters) EXPORT result symbol parameters;
#include "harness/bench/cublaslt.def"

typedef struct layout {
  unsigned type;
  uint64_t rows, columns;
  int64_t leading;
} layout;
typedef struct desc {
  int32_t transposed[2];
} desc;

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

size_t cublasLtGetVersion(void) {
  return 130102;
}
unsigned cublasLtCreate(void **handle) {
  return *handle = malloc(1), 0;
}
unsigned cublasLtDestroy(void *handle) {
  return free(handle), 0;
}
unsigned cublasLtMatmulDescCreate(void **out, unsigned compute_type, unsigned scale_type) {
  (void)compute_type, (void)scale_type;
  return *out = calloc(1, sizeof(desc)), 0;
}
unsigned cublasLtMatmulDescDestroy(void *of) {
  return free(of), 0;
}
unsigned cublasLtMatmulDescSetAttribute(void *of, unsigned attribute, const void *value, size_t bytes) {
  if (bytes != 4 || attribute < TL_CUBLASLT_DESC_TRANSA || attribute > TL_CUBLASLT_DESC_TRANSB) return INVALID_VALUE;
  memcpy(&((desc *)of)->transposed[attribute - TL_CUBLASLT_DESC_TRANSA], value, 4);
  return 0;
}
unsigned cublasLtMatrixLayoutCreate(void **out, unsigned type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (leading < (int64_t)rows) return INVALID_VALUE;
  layout *made = malloc(sizeof *made);
  *made = (layout){type, rows, columns, leading};
  return *out = made, 0;
}
unsigned cublasLtMatrixLayoutDestroy(void *of) {
  return free(of), 0;
}
unsigned cublasLtMatmulPreferenceCreate(void **out) {
  return *out = malloc(1), 0;
}
unsigned cublasLtMatmulPreferenceDestroy(void *of) {
  return free(of), 0;
}
unsigned cublasLtMatmulPreferenceSetAttribute(void *of, unsigned attribute, const void *value, size_t bytes) {
  (void)of, (void)value;
  return attribute == TL_CUBLASLT_PREFERENCE_MAX_WORKSPACE && bytes == 8 ? 0 : INVALID_VALUE;
}
unsigned cublasLtMatmulAlgoGetHeuristic(void *handle, void *how, void *a, void *b, void *c, void *d, void *preference,
                                        int wanted, tl_cublaslt_choice *choices, int *given) {
  (void)handle, (void)preference, (void)d;
  const desc *of = how;
  const layout *x = a, *y = b, *z = c;
  uint64_t m = of->transposed[0] ? x->columns : x->rows, k = of->transposed[0] ? x->rows : x->columns;
  uint64_t k2 = of->transposed[1] ? y->columns : y->rows, n = of->transposed[1] ? y->rows : y->columns;
  if (m != z->rows || n != z->columns || k != k2) return INVALID_VALUE;
  for (*given = 0; *given < 4 && *given < wanted; ++*given) {
    choices[*given] = (tl_cublaslt_choice){.algorithm.data = {(uint64_t)*given}};
  }
  return 0;
}
unsigned cublasLtMatmul(void *handle, void *how, const void *alpha, const void *a, void *a_layout, const void *b,
                        void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                        const tl_cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
  (void)handle, (void)how, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout, (void)beta, (void)c;
  (void)c_layout, (void)d, (void)d_layout, (void)workspace, (void)workspace_bytes, (void)stream;
  static const double seconds[] = {4e-5, 2e-5, 3e-5};
  if (algorithm->data[0] > 2) return NOT_SUPPORTED;
  void *driver = dlopen(getenv("TL_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return INVALID_VALUE;
  void (*spend)(double);
  *(void **)&spend = dlsym(driver, "fake_cuda_spend");
  dlclose(driver);
  if (!spend) return INVALID_VALUE;
  spend(seconds[algorithm->data[0]]);
  return 0;
}
