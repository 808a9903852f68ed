// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of a benchmark in device memory: several sets with the same values at different addresses.
#ifndef TL_HARNESS_BENCH_DATA_H
#define TL_HARNESS_BENCH_DATA_H

#include "harness/device/run.h"
#include "runtime/device.h"

typedef struct tl_bench_sets {
  tl_device *device;  // Borrowed.
  uint32_t num_sets;
  bool is_partly_cold;  // fewer sets than twice the L2 cache takes
  uint64_t set_bytes;   // of the tensors, without padding
  uint64_t stride;      // from one set to the next
  char *memory;         // Owned. Device memory.
  uint32_t num_args;
  uint64_t *offsets, *sizes;  // Owned. Bytes, per argument; a scalar has size 0.
  tl_argument *arguments;     // Owned. num_arguments of each set in turn
  uint32_t num_arguments;
} tl_bench_sets;

// Allocates and fills so many sets that between two uses of one set twice `l2_bytes` are touched; fewer where that
// would take more than `max_bytes`. `args` is borrowed by the sets.
TL_MUST_USE tl_status tl_bench_sets_init(tl_bench_sets *sets, tl_device *device, const tl_manifest_kernel *manifest,
                                         const tl_run_args *args, const tl_mbinding *dynamics, size_t num_dynamics,
                                         int64_t l2_bytes, uint64_t max_bytes);
void tl_bench_sets_fini(tl_bench_sets *sets);
// Device address of argument `arg` in a set.
void *tl_bench_sets_pointer(const tl_bench_sets *sets, uint32_t set, uint32_t arg);
const tl_argument *tl_bench_sets_arguments(const tl_bench_sets *sets, uint32_t set);

// How many sets are needed (at least 2), at most 4096: sets of `set_bytes` with twice `l2_bytes` between two uses.
uint32_t tl_bench_num_sets(uint64_t set_bytes, int64_t l2_bytes, uint64_t max_bytes, bool *out_partly_cold);

// Two regions for copies from device to device, filled with random bytes; `bytes` each, `num` pairs.
typedef struct tl_bench_copies {
  tl_device *device;  // Borrowed.
  uint32_t num;
  uint64_t bytes;
  char *memory;  // Owned. Device memory: from, to, from, to, …
} tl_bench_copies;
TL_MUST_USE tl_status tl_bench_copies_init(tl_bench_copies *copies, tl_device *device, uint64_t bytes, uint32_t num);
void tl_bench_copies_fini(tl_bench_copies *copies);
// A launch for tl_bench_contestant: `user` is the copies.
tl_status tl_bench_copies_launch(void *user, uint32_t set, void *stream);

#endif
