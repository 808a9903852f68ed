// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bench section of a spec: compile each case and time it on the GPU.
#ifndef TL_HARNESS_BENCH_H
#define TL_HARNESS_BENCH_H

#include "harness/bench/bench_race.h"
#include "harness/bench/bench_report.h"
#include "harness/bench/cublaslt.h"
#include "harness/device/compile.h"
#include "harness/device/device.h"

typedef struct tl_bench_options {
  tl_run_device *device;    // Borrowed. A GPU.
  const tl_target *target;  // NULL: the device's
  tl_bindings bindings;     // -D options; a case's own values win
  unsigned required;        // a set of tl_requirement: what every compiled kernel must have got
  uint64_t seed;
  const uint32_t *cases;  // 1-based numbers; NULL: all
  uint32_t num_cases;
  const char *directory;        // of the spec, for .npy inputs
  const tl_named_expr *inputs;  // inputs named by --in, before those of the spec
  uint32_t num_inputs;
  tl_cublaslt *cublaslt;  // Borrowed. The peer; NULL: none
  bool no_check;          // not even small cases
  bool only_cold;         // neither warm launches nor copies nor the peer beside the cold ones
  tl_bench_plan plan;
  // Called with each result as it is known; it stays in the report.
  void (*done)(void *user, const tl_bench_result *result);
  // Called with what is being done, for a terminal.
  void (*progress)(void *user, const char *kernel, uint32_t number, uint32_t total, const char *what, uint32_t done,
                   uint32_t of);
  void *user;
} tl_bench_options;

// Fills in the device and its peaks.
TL_MUST_USE tl_status tl_bench_report_init(tl_bench_report *report, tl_run_device *device);

// Benches every case (the params as they stand when there are none) and appends to `report`. NO_DEVICE in the emulator.
// CHECK_FAILED when a small case gives wrong results, or differs from the peer. After INTERNAL `out_compiled` holds the
// module where it failed; fini it in any case.
TL_MUST_USE tl_status tl_bench_run(const tl_kernel_spec *kernel, const tl_bench_options *options,
                                   const tl_sources *sources, tl_diags *diags, tl_bench_report *report,
                                   tl_compiled *out_compiled);

#endif
