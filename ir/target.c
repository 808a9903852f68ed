// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of hardware targets.
#include "ir/target.h"

#include <string.h>

static const tl_target target_table[] = {
#define TL_TARGET(ID, name, sm, ptx_floor, features, shared_max_bytes, shared_per_sm_bytes, threads_per_sm, \
                  blocks_per_sm, run_status, doc)                                                           \
  {name,          sm,         ptx_floor, features, shared_max_bytes, shared_per_sm_bytes, threads_per_sm,   \
   blocks_per_sm, run_status, doc},
#include "ir/target.def"
};

static const struct {
  const char *name, *reason;
} refused_table[] = {
#define TL_TARGET_REFUSED(name, reason) {name, reason},
#include "ir/target.def"
};

static const tl_peak peak_table[] = {
#define TL_PEAK(sm, f16, f8, tf32, f64, f32, tensor_clock_mhz) {sm, f16, f8, tf32, f64, f32, tensor_clock_mhz},
#include "ir/target.def"
};

enum { NUM_TARGETS = sizeof(target_table) / sizeof(target_table[0]) };

const tl_target *tl_target_at(int index) {
  return index >= 0 && index < NUM_TARGETS ? &target_table[index] : NULL;
}

const tl_target *tl_target_find(tl_str name) {
  for (int i = 0; i < NUM_TARGETS; i++) {
    if (tl_str_is(name, target_table[i].name)) return &target_table[i];
  }
  return NULL;
}

const char *tl_target_refusal(tl_str name) {
  for (size_t i = 0; i < sizeof refused_table / sizeof refused_table[0]; i++) {
    if (tl_str_is(name, refused_table[i].name)) return refused_table[i].reason;
  }
  return NULL;
}

const tl_peak *tl_peak_for_device(int sm) {
  // Later chips of a family (sm_87, sm_103, sm_121) have their family's rates per clock as far as is known.
  const tl_peak *best = NULL;
  for (size_t i = 0; i < sizeof peak_table / sizeof peak_table[0]; i++) {
    if (peak_table[i].sm <= sm && peak_table[i].sm / 10 == sm / 10) best = &peak_table[i];
  }
  return best;
}

// Code for "a" targets runs on exactly that compute capability.
static bool is_exact_only(const tl_target *target) {
  return target->name[strlen(target->name) - 1] == 'a';
}

const tl_target *tl_target_for_device(int sm) {
  const tl_target *best = NULL;
  for (int i = 0; i < NUM_TARGETS; i++) {
    const tl_target *target = &target_table[i];
    if (is_exact_only(target) ? target->sm != sm : target->sm > sm) continue;
    if (best == NULL || target->sm >= best->sm) best = target;
  }
  return best;
}

// Warps are dealt out to the four parts of a multiprocessor, each with a quarter of its registers, and get theirs by
// eights a thread.
int32_t tl_target_registers(int32_t threads, int64_t blocks) {
  enum { PARTS = 4, UNIT = 8, WARP = 32 };
  int64_t warps = (threads + WARP - 1) / WARP * (blocks > 1 ? blocks : 1);
  int64_t share = TL_REGISTERS_PER_SM / PARTS / ((warps + PARTS - 1) / PARTS * WARP) / UNIT * UNIT;
  return share < TL_MAX_REGISTERS_PER_THREAD ? (int32_t)share : TL_MAX_REGISTERS_PER_THREAD;
}
