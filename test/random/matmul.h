// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the parts of the matmul family share.
#ifndef TL_TEST_RANDOM_MATMUL_H
#define TL_TEST_RANDOM_MATMUL_H

#include "test/random/value.h"

// How one operand reaches shared memory.
typedef enum tl_rspec_load {
  TL_RSPEC_LOAD_COPY,
  TL_RSPEC_LOAD_GATHER,   // a parallel that reads the tensor
  TL_RSPEC_LOAD_DEQUANT,  // 8-bit integers, copied and then converted by a parallel
  TL_RSPEC_LOAD_CONVERT,  // copied in another float dtype and converted by an assignment
  TL_RSPEC_LOAD_MODIFY    // copied, then changed in place
} tl_rspec_load;

typedef struct tl_rspec_operand {
  const char *name;      // "A": tensor A, tile A_s
  bool is_transposed;    // in the tensor, and in the tile unless the copy transposes
  bool copy_transposes;  // the copy has .T
  tl_rspec_load load;
  double max_abs;  // of what is multiplied
  bool is_whole;
} tl_rspec_operand;

typedef struct tl_rspec_gemm {
  tl_rspec *spec;
  int64_t bm, bn, bk, threads, stages;
  int64_t m, n, k;
  tl_dtype dtype;
  bool is_batched, is_looped;  // a batch dim of the grid; a loop around the loop over K
  int64_t split;               // K over blocks; 1: not
  bool has_flags, skips_copy;  // a condition around the whole iteration; around the copy of A
  tl_rspec_operand a, b;
} tl_rspec_gemm;

// tf32 and 8-bit types: their tiles are copied as they are, and hold small integers, so that sums are exact.
bool tl_rspec_gemm_is_special(const tl_rspec_gemm *g);
bool tl_rspec_gemm_is_int(const tl_rspec_gemm *g);
// Draws sizes, dtype, operands; writes params, args, grid, tiles and options.
void tl_rspec_draw_gemm(tl_rspec *spec, tl_rspec_gemm *g);
// Writes the loop over K that leaves the product in `acc`.
void tl_rspec_write_gemm_loop(tl_rspec_gemm *g);
// The product as a value: its reference is the sum over k, its body the tile `acc`.
tl_rspec_value tl_rspec_gemm_value(tl_rspec_gemm *g);
// "sum" of `count` products of values up to these sizes: a bound that random data keep to.
double tl_rspec_sum_bound(int64_t count, double each);

#endif
