// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Three kernels of the library as C (CMakeLists.txt: tl_add_kernels), in a program that has neither libtl nor CUDA.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "matmul_dynamic.h"
#include "row_sum.h"
#include "vector_add.h"

enum { SKIP = 77, N = 1003, ROWS = 70, INNER = 64, COLUMNS = 96 };

static gpu_driver gpu;
static int wrong;

static void check(int code, const char *text) {
  if (!code) return;
  fprintf(stderr, "%d: %s\n", code, text);
  exit(1);
}

static void compare(const char *what, int at, float given, float expected) {
  if (fabsf(given - expected) <= 0.01f * fabsf(expected) + 0.01f) return;
  if (wrong++ < 5) fprintf(stderr, "%s: element %d is %g, expected %g\n", what, at, (double)given, (double)expected);
}

// Small integers are exact in bf16: the top half of the float's bits.
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}
static float from_bf16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

static void add(void) {
  float a[N], c[N];
  for (int i = 0; i < N; i++) a[i] = (float)i;
  void *A = gpu_put(&gpu, a, sizeof a), *C = gpu_put(&gpu, NULL, sizeof c);
  check(vector_add_launch(NULL, A, A, C, N), vector_add_error());
  gpu_take(&gpu, C, c, sizeof c);
  gpu_take(&gpu, A, NULL, 0);
  for (int i = 0; i < N; i++) compare("vector_add", i, c[i], 2 * a[i]);
}

static void multiply(void) {
  static uint16_t a[ROWS * INNER], b[INNER * COLUMNS], c[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * INNER; i++) a[i] = to_bf16((float)(i % 5 - 2));
  for (int i = 0; i < INNER * COLUMNS; i++) b[i] = to_bf16((float)(i % 3 - 1));
  void *A = gpu_put(&gpu, a, sizeof a), *B = gpu_put(&gpu, b, sizeof b), *C = gpu_put(&gpu, NULL, sizeof c);
  check(matmul_dynamic_launch(NULL, A, B, C, ROWS, COLUMNS, INNER), matmul_dynamic_error());
  gpu_take(&gpu, C, c, sizeof c);
  gpu_take(&gpu, A, NULL, 0);
  gpu_take(&gpu, B, NULL, 0);
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    float sum = 0;
    for (int k = 0; k < INNER; k++)
      sum += from_bf16(a[i / COLUMNS * INNER + k]) * from_bf16(b[k * COLUMNS + i % COLUMNS]);
    compare("matmul_dynamic", i, from_bf16(c[i]), sum);
  }
}

static void sum_rows(void) {
  static uint16_t x[16 * 1000];  // the sizes that CMakeLists.txt gives
  float y[16];
  for (int i = 0; i < 16 * 1000; i++) x[i] = to_bf16((float)(i % 7));
  void *X = gpu_put(&gpu, x, sizeof x), *Y = gpu_put(&gpu, NULL, sizeof y);
  check(row_sum_launch(NULL, X, Y), row_sum_error());
  gpu_take(&gpu, Y, y, sizeof y);
  gpu_take(&gpu, X, NULL, 0);
  for (int i = 0; i < 16; i++) {
    float sum = 0;
    for (int j = 0; j < 1000; j++) sum += from_bf16(x[i * 1000 + j]);
    compare("row_sum", i, y[i], sum);
  }
}

int main(void) {
  if (!gpu_open(&gpu)) {
    fprintf(stderr, "no GPU\n");
    return SKIP;
  }
  add();
  multiply();
  sum_rows();
  // What does not fit is a code and a text, and the program goes on.
  void *memory = gpu_put(&gpu, NULL, 64);
  int code = matmul_dynamic_launch(NULL, memory, memory, memory, 4, 4, 12);
  printf("refused with %d: %s\n", code, matmul_dynamic_error());
  gpu_take(&gpu, memory, NULL, 0);
  if (code != TL_KERNEL_INVALID_ARGUMENT || wrong) return 1;
  printf("three kernels: right\n");
  return 0;
}
