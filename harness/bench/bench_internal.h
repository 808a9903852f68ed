// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One bench case while it runs.
#ifndef TL_HARNESS_BENCH_INTERNAL_H
#define TL_HARNESS_BENCH_INTERNAL_H

#include "harness/bench/bench.h"
#include "harness/bench/bench_data.h"
#include "harness/device/run.h"

typedef struct tl_bench_case {
  const tl_kernel_spec *kernel;
  const tl_case *one_case;  // NULL: the params as they stand
  const tl_bench_options *options;
  const tl_sources *sources;
  tl_diags *diags;
  const tl_bench_machine *machine;
  tl_compiled *compiled;
  tl_bench_result *result;
  bool is_wrong;
  tl_arena arena;
  tl_env env;
  tl_run_args args;
  tl_run_kernel *loaded;  // Owned.
  tl_bench_sets sets;
  tl_bench_copies copies;
  tl_cublaslt_plan *peer;  // Owned. NULL: no peer
  uint32_t peer_choice;
  uint32_t peer_args[3];  // A, B and C in `args`
} tl_bench_case;

// Sets up the peer if one was asked for and the reference is a product: picks the fastest of its choices and compares a
// result with the kernel's. Otherwise says why not in the result.
TL_MUST_USE tl_status tl_bench_peer_prepare(tl_bench_case *c);
// For tl_bench_contestant: `user` is the case.
tl_status tl_bench_case_launch(void *user, uint32_t set, void *stream);
tl_status tl_bench_peer_launch(void *user, uint32_t set, void *stream);

#endif
