// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of place-barriers.
#ifndef TL_PASSES_PLACE_BARRIERS_INTERNAL_H
#define TL_PASSES_PLACE_BARRIERS_INTERNAL_H

#include "passes/analysis/effects.h"

// Accesses, at most one of an op to an owner of memory; of rings only the root counts. `items` in the order in which
// they came. Empty when zeroed. What an access costs grows with the accesses to the same owner, not with all of them.
typedef struct tl_access_set {
  tl_effect *items;  // Owned.
  size_t len, capacity;
  uint32_t *next;     // Owned. Of every item the one before it with the same root.
  uint32_t *chains;   // Owned. Open addressing by root: the root's last item.
  uint32_t *members;  // Owned. Open addressing by root and op: the item.
  size_t num_cells;   // of `chains` and of `members`; a power of two
  uint32_t cleared;   // how often items were taken out
} tl_access_set;

// Whether some access is to what `root` owns.
bool tl_access_set_has(const tl_access_set *set, const tl_value *root);
// False when the set has the op's access to this root already.
bool tl_access_set_add(tl_access_set *set, const tl_effect *effect);
tl_access_set tl_access_set_copy(const tl_access_set *set);
// Adds the items of `from` from number `first` on; whether any was new.
bool tl_access_set_merge(tl_access_set *into, const tl_access_set *from, size_t first);
// Whether some access of the set may touch what `effect` touches.
bool tl_access_set_meets(const tl_access_set *set, const tl_effect *effect);
// Takes out what `keeps` does not hold for.
void tl_access_set_keep(tl_access_set *set, bool (*keeps)(const tl_effect *effect));
void tl_access_set_clear(tl_access_set *set);
void tl_access_set_fini(tl_access_set *set);

// Whether two accesses to one owner of memory provably never touch a common element: boxes (of copies, tile loads and
// tile stores, and of all iterations of a parallel) that lie apart, or that every iteration of the loops around moves
// on by at least their size. `before` may have run in the same or in any earlier iteration.
bool tl_accesses_never_meet(const tl_effect *before, const tl_effect *after);

// What one statement of a turn writes may have to be seen by another one, for whatever reason: then nobody takes turns.
void tl_turns_drop_broken(tl_op *kernel);

// Marks arrivals across the cluster that hand on nothing but reads of products which have ended. All fences stand.
void tl_arrivals_mark_finished(tl_module *module, tl_op *kernel);

#endif
