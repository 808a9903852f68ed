// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of hardware targets.
#include "ir/target.h"

static const tl_target target_table[] = {
#define TL_TARGET(ID, name, sm, ptx_floor, features, shared_max_bytes, shared_per_sm_bytes, threads_per_sm, \
                  blocks_per_sm, run_status, doc)                                                           \
  {name,          sm,         ptx_floor, features, shared_max_bytes, shared_per_sm_bytes, threads_per_sm,   \
   blocks_per_sm, run_status, doc},
#include "ir/target.def"
#undef TL_TARGET
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

const tl_target *tl_target_for_device(int sm) {
  const tl_target *best = NULL;
  for (int i = 0; i < NUM_TARGETS; i++) {
    const tl_target *target = &target_table[i];
    // Code with architecture-specific features ("a" targets) runs on exactly that compute capability only.
    bool exact_only = (target->features & TL_FEATURE_WGMMA) != 0;
    if (exact_only ? target->sm != sm : target->sm > sm) continue;
    if (best == NULL || target->sm >= best->sm) best = target;
  }
  return best;
}
