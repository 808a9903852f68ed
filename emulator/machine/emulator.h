// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a device module on the CPU: one fiber per CUDA thread, blocks spread over OS threads.
#ifndef TL_EMULATOR_EMULATOR_H
#define TL_EMULATOR_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "llvm_backend/device/debug_info.h"
#include "support/manifest.h"
#include "support/status.h"
#include "support/strbuf.h"

// What is checked while a kernel runs (docs/emulator.md). Bits.
typedef enum tl_emu_sanitize {
  TL_EMU_SANITIZE_RACE = 1,     // accesses to shared memory without an order
  TL_EMU_SANITIZE_BOUNDS = 2,   // accesses outside buffers, shared memory and tiles
  TL_EMU_SANITIZE_INIT = 4,     // reads of what was not written
  TL_EMU_SANITIZE_ALIGN = 8,    // accesses that are less aligned than their instruction requires
  TL_EMU_SANITIZE_PROXY = 16,   // missing proxy fences
  TL_EMU_SANITIZE_BLOCKS = 32,  // accesses of several blocks to global memory without an order
  TL_EMU_SANITIZE_ASYNC = 64,   // asynchronous operations that nobody waits for
  TL_EMU_SANITIZE_ALL = 127,
  // Elements of one parallel that meet, also in one thread, in a module whose lowering marks them
  // (tl_backend_options.marks_elements); alone: nothing else is checked with it.
  TL_EMU_SANITIZE_ELEMENTS = 128,
  // No check: what is wrong by the letter of the PTX ISA, and right on the GPUs that are, is no finding; others' code
  // does so. Several threads store the same value to one place (one of them is there: CUDA says so of a warp); the copy
  // engine signals an mbarrier that a barrier follows, but no proxy fence (cuda::memcpy_async).
  TL_EMU_SANITIZE_LENIENT = 256
} tl_emu_sanitize;

typedef struct tl_emu_findings tl_emu_findings;  // emulator/sanitize/findings.h

typedef enum tl_landing {
  TL_LANDING_LATE,  // async copies land at the wait that covers them; until then the destination is poison
  TL_LANDING_EARLY  // they land at issue
} tl_landing;

typedef struct tl_emu_launch_state tl_emu_launch_state;

typedef struct tl_emu_options {
  tl_landing landing;
  int threads;                // OS threads; 0: one per core
  int resident;               // clusters (blocks, without clusters) whose threads each OS thread interleaves; 0: 1
  uint32_t seed;              // order of warps and blocks
  double timeout_s;           // watchdog for one launch; 0: 60
  uint32_t checks;            // TL_EMU_SANITIZE_… bits, of those that the kernel was created with
  tl_emu_findings *findings;  // where to add what the checks found; NULL: only the status tells. Borrowed.
  // Called when all threads have ended, while the launch still knows who wrote what (tl_emu_find_writer). Or NULL.
  void (*ended)(void *user, const tl_emu_launch_state *launch);
  void *user;
} tl_emu_options;

// Who wrote a byte of global memory last.
typedef struct tl_emu_writer {
  bool is_tile;       // of a persistent kernel: `owner` is the number of a tile
  uint64_t owner;     // else the index of the block, x fastest
  uint32_t block[3];  // position of the block; nothing for a tile
  int32_t thread;     // of the block; -1: an asynchronous operation, such as a store by TMA
  const char *file;   // NULL: not known. Borrowed from the launch's kernel
  uint32_t line;      // 0: not known
} tl_emu_writer;

// Blocks of the launch.
void tl_emu_launch_grid(const tl_emu_launch_state *launch, uint32_t out_grid[3]);
// False: nobody wrote the byte, or the launch remembers no writers (neither the check `race` nor `blocks` is on). To be
// called from `ended`.
bool tl_emu_find_writer(const tl_emu_launch_state *launch, const void *address, tl_emu_writer *out);

typedef struct tl_emu_stats {
  uint64_t switches, collectives, barriers;
  double jit_seconds, run_seconds;
} tl_emu_stats;

typedef struct tl_emu_kernel tl_emu_kernel;

// Compiles the bitcode of tl_backend_device_bitcode for the host. UNSUPPORTED names a device op that has no binding.
TL_MUST_USE tl_status tl_emu_kernel_create(const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                                           tl_emu_kernel **out);
// The same for launches with `checks` (TL_EMU_SANITIZE_… bits): accesses to memory call the checker. `debug`: what
// messages need to name tiles and to show lines; copied; NULL: nothing.
TL_MUST_USE tl_status tl_emu_kernel_create_sanitized(const char *bitcode, size_t len,
                                                     const tl_manifest_kernel *manifest, uint32_t checks,
                                                     const tl_debug_info *debug, tl_emu_kernel **out);
void tl_emu_kernel_destroy(tl_emu_kernel *kernel);

// A buffer that ends at an unreadable page, filled with 0xff. `align`: a power of two, at most a page. Never NULL:
// memory that runs out ends the innermost tl_memory_guard or, without one, the process. Global memory accesses of
// kernels outside such buffers fault and are reported.
void *tl_emu_alloc(size_t bytes, size_t align);
void tl_emu_free(void *pointer);
// Whether a buffer holds the byte at `pointer`.
bool tl_emu_is_buffer(const void *pointer);
// Size of a buffer, by its start.
size_t tl_emu_size(const void *pointer);
// Nothing in the buffer counts as written any more: kernels that read it before they write it are told of, until a
// launch that does not check it.
void tl_emu_mark_unwritten(void *pointer);
// The host wrote these bytes of a buffer.
void tl_emu_mark_written(const void *pointer, size_t bytes);

// Launches with params as cuLaunchKernel takes them (an array of pointers to the parameter values, manifest order).
// CHECK_FAILED with a dump of who waits where on deadlock, livelock (watchdog), faults, or a device trap, and with the
// text of what the checks found.
TL_MUST_USE tl_status tl_emu_launch(tl_emu_kernel *kernel, const uint32_t grid[3], void **params,
                                    const tl_emu_options *options, tl_emu_stats *out_stats);

#endif
