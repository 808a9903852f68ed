// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of stage-stores share.
#ifndef TL_PASSES_STAGE_STORES_H
#define TL_PASSES_STAGE_STORES_H

#include "passes/manager/passes.h"

// Whether the lanes of `parallel`, which store elements of `buffer` along its last dim, would gain by a staged tile.
typedef bool tl_is_scattered_fn(const tl_pass_context *context, const tl_op *kernel, const tl_op *parallel,
                                const tl_value *buffer);

// stage_stores_elements.c: stores of the parallel that make up boxes become tile stores behind it. Returns the
// parallel, or the one that took its place.
tl_op *tl_stores_as_tiles(tl_pass_context *context, const tl_op *kernel, tl_op *parallel,
                          tl_is_scattered_fn *is_scattered);

// stage_stores_loads.c: a TILE_LOAD from global memory goes through a shared tile of its own.
void tl_stage_load(tl_pass_context *context, tl_op *kernel, tl_op *load);

#endif
