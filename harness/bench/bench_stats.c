// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_stats.h"

#include <stdlib.h>
#include <string.h>

#include "harness/data/random.h"
#include "support/arena.h"

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

tl_bench_stats tl_bench_stats_of(const double *values, uint32_t count) {
  if (count == 0) return (tl_bench_stats){0};
  double *sorted = tl_xmalloc(count * sizeof *sorted);
  memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_doubles);
  double median = count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
  tl_bench_stats stats = {count, median, sorted[0], sorted[count - 1]};
  free(sorted);
  return stats;
}

double tl_bench_spread(tl_bench_stats stats) {
  return stats.median > 0 ? (stats.most - stats.least) / stats.median : 0;
}

void tl_bench_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint64_t round) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  uint64_t key = tl_random_key(seed, TL_STR("bench"), TL_STR("order"));
  for (uint32_t i = count; i > 1; i--) {  // Fisher-Yates
    uint32_t other = (uint32_t)tl_random_below(key, round * 4096 + i, i);
    uint32_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}
