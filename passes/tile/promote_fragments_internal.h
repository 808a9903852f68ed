// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of promote-fragments.
#ifndef TL_PASSES_PROMOTE_FRAGMENTS_INTERNAL_H
#define TL_PASSES_PROMOTE_FRAGMENTS_INTERNAL_H

#include "passes/manager/passes.h"
#include "support/vec.h"

// One fragment tile of the kernel.
typedef struct tl_fragment {
  tl_value *buffer;
  const char *demoted;  // why it cannot be a value, or NULL. Static.
  tl_loc demoted_at;
} tl_fragment;

typedef struct tl_fragments {
  tl_pass_context *context;
  tl_module *module;
  tl_op *kernel;
  TL_VEC(tl_fragment) items;  // in order of declaration
} tl_fragments;

// Position of a buffer among the fragments that become values, or -1.
int tl_fragment_find(const tl_fragments *fragments, const tl_value *buffer);
int tl_fragment_find_any(const tl_fragments *fragments, const tl_value *buffer);

// How an access inside a parallel names a fragment's element: per dim the loop index, or -1 for the only element of a
// dim of size 1. False when it names it in another way.
bool tl_fragment_access_map(const tl_op *access, const tl_op *parallel, int32_t *out_map);

// Gives accesses to dims of size 1 the index of a loop that runs once instead of the constant 0.
void tl_fragments_unify_unit_dims(tl_fragments *fragments);

// Decides which fragments stay and demotes the others (sets `demoted`).
void tl_fragments_analyze(tl_fragments *fragments);
// Whether a copy covers the whole of a fragment on that side: offsets 0, steps 1, no limits, full extents.
bool tl_copy_covers(const tl_op *copy, bool is_source);

// Gives every parallel that touches fragments the extents of their dims (guarding its body), and turns copies of parts
// of fragments into parallels.
tl_status tl_fragments_normalize(tl_fragments *fragments);
// The extents that the indices of `parallel` need so that every fragment in it is walked wholly; false where two clash
// (then the fragments to blame are marked when `blame`).
bool tl_fragments_extents(tl_fragments *fragments, tl_op *parallel, bool blame, int64_t *out_extents,
                          int32_t *out_extra);

// A whole shared tile as a value (a tile without a layout), and back: for what was demoted.
tl_value *tl_fragment_load_whole(tl_builder *builder, tl_value *buffer);
void tl_fragment_store_whole(tl_builder *builder, tl_value *tile, tl_value *buffer);
// Gives the tile_load or tile_store that replaces `copy` its dims, steps, checks and hints. `rank` is the fragment's,
// `other_rank` the other buffer's.
void tl_fragment_set_box(tl_module *module, tl_op *op, const tl_op *copy, bool fragment_is_source, int32_t rank,
                         int32_t other_rank);

#endif
