// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timing of several contestants in the same rounds, in an order shuffled every round.
//
// Burst: the GPU idles, then one batch of launches of about 5 ms runs; what the chip does before its power and
// temperature limits act. Sustained: batches run back to back, the first 60 ms are discarded and the next 100 ms timed.
// A batch is recorded as a graph where the driver has graphs, so that the time between launches is the GPU's own, and
// timed by events of the GPU.
#ifndef TL_HARNESS_BENCH_RACE_H
#define TL_HARNESS_BENCH_RACE_H

#include <stdbool.h>

#include "harness/bench/bench_stats.h"
#include "tl/runtime.h"

typedef struct tl_bench_contestant {
  const char *name;
  // Puts one launch on `stream`; launch i of a batch gets set i % num_sets.
  tl_status (*launch)(void *user, uint32_t set, void *stream);
  void *user;
  uint32_t num_sets;  // at least 1; a batch has a multiple of that many launches
  bool no_graph;      // launches one by one
  // Results, in seconds for one launch.
  tl_bench_stats burst, sustained;
  uint32_t batch_launches;
  bool used_graph;
} tl_bench_contestant;

typedef struct tl_bench_plan {
  uint32_t burst_rounds, sustained_rounds;
  double idle_s;              // before a burst
  double batch_s;             // length of a batch
  double discard_s, timed_s;  // sustained
  uint64_t seed;              // of the order
  // Called before each turn; or NULL.
  void (*progress)(void *user, const char *what, uint32_t done, uint32_t total);
  void *user;
} tl_bench_plan;

// 25 ms idle, batches of 5 ms, 9 bursts; 60 ms discarded and 100 ms timed, 3 times.
tl_bench_plan tl_bench_plan_default(void);

// Warms every contestant up (each set once), then measures. On failure the results are not complete.
TL_MUST_USE tl_status tl_bench_race(tl_device *device, const tl_bench_plan *plan, tl_bench_contestant *contestants,
                                    uint32_t num_contestants);

// Seconds for one launch of one contestant, roughly: the least of three batches of about `batch_s`. Without a graph.
TL_MUST_USE tl_status tl_bench_estimate(tl_device *device, const tl_bench_contestant *contestant, double batch_s,
                                        double *out_seconds);

#endif
