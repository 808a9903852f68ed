// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics of repeated measurements, and the order in which contestants take their turns.
#ifndef TL_HARNESS_BENCH_STATS_H
#define TL_HARNESS_BENCH_STATS_H

#include <stdint.h>

typedef struct tl_bench_stats {
  uint32_t count;  // 0: not measured
  double median, least, most;
} tl_bench_stats;

tl_bench_stats tl_bench_stats_of(const double *values, uint32_t count);
// (most - least) / median; 0 when nothing was measured.
double tl_bench_spread(tl_bench_stats stats);
// Puts 0 … count - 1 in an order that depends on `seed` and `round` alone.
void tl_bench_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint64_t round);

#endif
