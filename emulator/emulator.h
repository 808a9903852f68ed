// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a device module on the CPU: one fiber per CUDA thread, blocks spread over OS threads.
#ifndef TL_EMULATOR_EMULATOR_H
#define TL_EMULATOR_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "support/manifest.h"
#include "support/status.h"
#include "support/strbuf.h"

typedef enum tl_landing {
  TL_LANDING_LATE,  // async copies land at the wait that covers them; until then the destination is poison
  TL_LANDING_EARLY  // they land at issue
} tl_landing;

typedef struct tl_emu_options {
  tl_landing landing;
  int threads;       // OS threads; 0: one per core
  int resident;      // clusters (blocks, without clusters) whose threads each OS thread interleaves; 0: 1
  uint32_t seed;     // order of warps and blocks
  double timeout_s;  // watchdog for one launch; 0: 60
} tl_emu_options;

typedef struct tl_emu_stats {
  uint64_t switches, collectives, barriers;
  double jit_seconds, run_seconds;
} tl_emu_stats;

typedef struct tl_emu_kernel tl_emu_kernel;

// Compiles the bitcode of tl_backend_device_bitcode for the host. UNSUPPORTED names a device op that has no binding.
TL_MUST_USE tl_status tl_emu_kernel_create(const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                                           tl_emu_kernel **out);
void tl_emu_kernel_destroy(tl_emu_kernel *kernel);

// A buffer that ends at an unreadable page, filled with 0xff. `align`: a power of two, at most a page. NULL-free:
// aborts when memory runs out. Global memory accesses of kernels outside such buffers fault and are reported.
void *tl_emu_alloc(size_t bytes, size_t align);
void tl_emu_free(void *pointer);

// Launches with params as cuLaunchKernel takes them (an array of pointers to the parameter values, manifest order).
// CHECK_FAILED with a dump of who waits where on deadlock, livelock (watchdog), faults, or a device trap.
TL_MUST_USE tl_status tl_emu_launch(tl_emu_kernel *kernel, const uint32_t grid[3], void **params,
                                    const tl_emu_options *options, tl_emu_stats *out_stats);

#endif
