// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of stage-reads share.
#ifndef TL_PASSES_STAGE_READS_H
#define TL_PASSES_STAGE_READS_H

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

// The loads of one tensor whose boxes lie in one region of it: `base` (per dim, without the constant and what loops
// add) and the elements from `lo` to `hi`, both inclusive, beyond it.
typedef struct tl_staged_region {
  tl_value *tensor;
  TL_VEC(tl_op *) loads;  // tile_loads or loads, in program order
  tl_affine base[TL_MAX_RANK];
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK];  // bounds to test; outside of them the region is 0
  int64_t bytes;                // of the region
  int64_t loaded_bytes;         // by all loads in all iterations; the loads of one parallel count once
  const char *obstacle;         // why it cannot be staged; NULL: nothing in its loads
} tl_staged_region;

typedef TL_VEC(tl_staged_region) tl_staged_regions;

// stage_reads_collect.c: the regions that tile_loads and loads in parallels read of the kernel's inputs, where loops
// with known bounds are around them. Owned by the caller, with their lists of loads.
// `found` hears of the first load of each input that several loops read which run as often as the launch says.
typedef void tl_stage_reread(const tl_op *load, const tl_value *tensor, void *user);
void tl_stage_collect(tl_op *kernel, tl_staged_regions *regions, tl_stage_reread *found, void *user);
// Whether the dim starts at a constant for every block: its region is clipped to the tensor, else its copy tests the
// bounds and fills what is outside with 0.
bool tl_stage_is_fixed(const tl_staged_region *region, int32_t dim);

// The last place along a buffer dim that the load reads in the first iteration of `loop`, which is around it, without
// the region's base; with each further iteration it is `*out_by` more. False: not known.
bool tl_stage_last_read(tl_op *load, int32_t dim, const tl_op *loop, int64_t *out_last, int64_t *out_by);

// stage_reads_parts.c: parts of a region along one of its dims, each for one iteration of the loop that reads it first.
enum { TL_STAGE_MAX_PARTS = 8 };
typedef struct tl_stage_parts {
  int32_t len;                       // 1: the region comes as a whole
  int32_t dim;                       // along which
  int64_t ends[TL_STAGE_MAX_PARTS];  // of each part, exclusive, counted from the region's first element
} tl_stage_parts;
tl_stage_parts tl_stage_split(const tl_staged_region *region, const tl_op *first);

// stage_reads_elements.c: bounds of a dim that the region may leave, for a copy before `before`.
int64_t tl_stage_checks(const tl_staged_region *region, int32_t dim, const tl_op *before);
// Bytes, a power of two of at most 16, of the pieces that the region's rows consist of; 0: rows are not contiguous.
int64_t tl_stage_piece_bytes(const tl_staged_region *region);

// Whether the region is a row of an input that lies densely: align-rows brings it in whole vectors, wherever it begins.
bool tl_stage_is_one_row(const tl_staged_region *region);

// stage_reads_build.c

// The shared tile of a region, allocated in `kernel`.
tl_value *tl_stage_build_tile(tl_pass_context *context, tl_op *kernel, const tl_staged_region *region);
// Asynchronous copies of the region to it, before `before`: one for each part, in a group of its own (NULL: one for
// all).
void tl_stage_build_copy(tl_pass_context *context, const tl_staged_region *region, const tl_stage_parts *parts,
                         tl_value *stage, tl_op *before);
// A copy that is left to select-copies and pipeline.
void tl_stage_build_plain_copy(tl_pass_context *context, const tl_staged_region *region, tl_value *stage,
                               tl_op *before);
// The wait for all copies, before `before`, with the barrier that lets every thread see what the others copied: left to
// place-barriers that would stand in the loop that reads first, and run in each iteration.
void tl_stage_build_wait(tl_pass_context *context, tl_op *before);
// The same for parts, each in the iteration of `loop` that reads it first (one part: before `loop`, or any other op).
void tl_stage_build_waits(tl_pass_context *context, const tl_stage_parts *parts, tl_op *loop);
// The form without its own constant, plus `constant`.
tl_value *tl_stage_build_sum(tl_builder *builder, const tl_affine *form, int64_t constant);

// stage_reads_elements.c: brings elements that pipelined loops read from global memory beside their copies to shared
// memory before the loop.
void tl_stage_elements(tl_pass_context *context, tl_op *kernel);

// stage_reads_values.c: brings values that an iteration of a pipelined loop reads, one for all of its elements, with
// the loop's copies.
void tl_stage_values(tl_pass_context *context, tl_op *kernel);

// stage_reads_recompute.c

// Whether the tile of `load`, and what parallels make of it element by element, may be made anew from memory for each
// op that reads them: all in the kernel's own block, and at least two such ops.
bool tl_can_recompute(tl_op *load);
// Makes them anew, each time with a load of its own. Returns the first op that reads the tile.
tl_op *tl_recompute(tl_module *module, tl_op *load);

// Parallels without results that alone read the tile of `tile_load` read its elements from the buffer themselves, one
// after the other; the load is gone then. False: others read it.
bool tl_read_by_elements(tl_module *module, tl_op *tile_load);

// stage_reads_results.c. What a parallel makes of the stage's elements, one of each, and stores to a tensor goes to
// their places in the stage instead, and from there in vectors that go on from row to row. False: it is not worth it,
// or they are needed.
bool tl_stage_results(tl_pass_context *context, tl_op *parallel, tl_value *stage);

#endif
