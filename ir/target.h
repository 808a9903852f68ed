// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hardware targets and their limits.
#ifndef TL_IR_TARGET_H
#define TL_IR_TARGET_H

#include <stdint.h>

#include "support/strview.h"

enum {
  TL_FEATURE_MMA_SYNC = 1,  // mma.sync.m16n8k16 of f16 and bf16
  TL_FEATURE_CP_ASYNC = 2,  // cp.async, global to shared
  TL_FEATURE_LDMATRIX = 4,
  TL_FEATURE_FP8_MMA = 8,
  TL_FEATURE_TMA = 16,  // cp.async.bulk.tensor and mbarrier transaction counts
  TL_FEATURE_WGMMA = 32,
  TL_FEATURE_STMATRIX = 64,
  TL_FEATURE_AMPERE = TL_FEATURE_MMA_SYNC | TL_FEATURE_CP_ASYNC | TL_FEATURE_LDMATRIX,
  TL_FEATURE_HOPPER = TL_FEATURE_AMPERE | TL_FEATURE_FP8_MMA | TL_FEATURE_TMA | TL_FEATURE_STMATRIX
};

typedef struct tl_target {
  const char *name;
  int sm;         // 80, 90, …
  int ptx_floor;  // 70 is PTX ISA 7.0
  unsigned features;
  int32_t shared_max_bytes;
  int32_t shared_per_sm_bytes;
  int32_t threads_per_sm;
  int32_t blocks_per_sm;   // most blocks that one SM holds, however small they are
  const char *run_status;  // "run" or "assembled only"
  const char *doc;
} tl_target;

// NULL when unknown.
const tl_target *tl_target_find(tl_str name);
// The best known target for a device's compute capability (major * 10 + minor); NULL when too old.
const tl_target *tl_target_for_device(int sm);
const tl_target *tl_target_at(int index);  // NULL past the end
// Why a target that exists is not one of ours ("it has no cp.async …"); NULL for names that mean nothing here.
const char *tl_target_refusal(tl_str name);

// Dense floating-point operations that one SM does a clock, by the type of the operands; 0: not at all.
typedef struct tl_peak {
  int sm;
  int f16;               // f16 and bf16, by mma
  int f8;                // 8-bit floats (and integers), by mma
  int tf32;              // by mma
  int f64;               // by mma
  int f32;               // without mma
  int tensor_clock_mhz;  // the clock behind the data sheet's mma rates; 0: the boost clock
} tl_peak;
// NULL when nothing is known of that compute capability (major * 10 + minor).
const tl_peak *tl_peak_for_device(int sm);

#define TL_REGISTERS_PER_SM 65536
#define TL_MAX_REGISTERS_PER_THREAD 255
#define TL_MAX_THREADS_PER_BLOCK 1024

// Registers that a thread may have, in blocks of `threads` threads of which `blocks` (at least 1) shall be on a
// multiprocessor at a time; a multiple of 8, at most TL_MAX_REGISTERS_PER_THREAD.
int32_t tl_target_registers(int32_t threads, int64_t blocks);

#endif
