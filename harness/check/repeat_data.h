// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of a kernel that is launched again and again: two sets in device memory, each on a stream of its own, and
// the images that one is put back to and compared with.
#ifndef TL_HARNESS_REPEAT_DATA_H
#define TL_HARNESS_REPEAT_DATA_H

#include "harness/device/run.h"
#include "support/vec.h"

enum { TL_REPEAT_SETS = 2 };

// Where an argument lies in a set. Guard bytes lie before and behind each.
typedef struct tl_repeat_place {
  uint64_t offset, bytes;
} tl_repeat_place;

typedef struct tl_repeat_set {
  char *memory;                   // Owned. Device memory: what the kernel writes, then what it reads
  TL_VEC(tl_argument) arguments;  // of a launch
  void *stream;                   // Owned.
} tl_repeat_set;

typedef struct tl_repeat_sets {
  tl_run_device *device;    // Borrowed. One with a driver
  const tl_run_args *args;  // Borrowed.
  tl_repeat_place *places;  // Owned. One an argument
  uint64_t written, bytes;  // of a set: what the kernel may write, with guards; all of it
  uint8_t *initial;         // Owned. A set before a launch: inputs, poison and guards
  uint8_t *expected;        // Owned. The written part after the first launch
  char *device_initial;     // Owned. Device memory: the written part of `initial`
  tl_repeat_set sets[TL_REPEAT_SETS];
} tl_repeat_sets;

// Makes the sets of `args`, whose inout arrays are as `before` has them; `dynamics` as for tl_run_launch. LIMIT when
// what is written is larger than 8 GiB. Fini it in any case.
TL_MUST_USE tl_status tl_repeat_sets_init(tl_repeat_sets *sets, tl_run_device *device,
                                          const tl_manifest_kernel *manifest, const tl_run_args *args,
                                          const tl_run_args *before, const tl_mbinding *dynamics, size_t num_dynamics);
void tl_repeat_sets_fini(tl_repeat_sets *sets);

// The argument whose memory holds byte `at` of a set, or, of a guard, the one that it lies behind (or before, of the
// first: `out_distance` is negative then). `out_distance`: of the byte from the argument's first one.
uint32_t tl_repeat_find(const tl_repeat_sets *sets, uint64_t at, int64_t *out_distance);

#endif
