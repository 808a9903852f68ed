// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of join-blocks share: which of a kernel's values differ between the blocks along a dim of the grid.
#ifndef TL_PASSES_JOIN_BLOCKS_H
#define TL_PASSES_JOIN_BLOCKS_H

#include "ir/index/affine.h"
#include "ir/ir.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

// Blocks side by side along `along`, a dim of the grid, of which `blocks` become one.
typedef struct tl_joining {
  tl_pass_context *context;
  tl_op *kernel, *grid;
  tl_value *along;  // the block's number; of the joined ones behind the rewrite
  int64_t blocks;
  tl_value_map varied;    // values that differ between the blocks, each mapped to `along`
  TL_VEC(tl_op *) loops;  // parallels that run for each of the blocks
} tl_joining;

// Where blocks have their part of a buffer: number `first` of parts of `size` elements along dim `dim`, from element
// `inside` of the part on.
typedef struct tl_block_part {
  int32_t dim;
  int64_t size, inside;
  tl_affine first;  // with `along` in it, once
} tl_block_part;

// ---- join_blocks_find.c

bool tl_joining_varies(const tl_joining *self, tl_value *value);
// Whether the parallel runs for each block: it differs, or others see what it does.
bool tl_joining_is_for_each(const tl_joining *self, const tl_op *parallel);
// Whether a buffer's dim may be two, of which the last has `size` elements: they follow each other without gaps, and
// their number is known.
bool tl_joining_can_split(const tl_value *buffer, int32_t dim, int64_t size);
void tl_joining_fini(tl_joining *self);
// Finds what differs between the blocks. Why they cannot be one; NULL: they can.
const char *tl_joining_find(tl_joining *self);
// The part of a block where a box's offsets differ between the blocks along one dim alone, and each block has a part of
// its own: NULL, and `out` says which; else what it is instead.
const char *tl_joining_part_of_box(const tl_joining *self, const tl_box *box, tl_block_part *out);

// ---- join_blocks_rewrite.c

// Makes one block of `blocks`. Every tile that differs between them has a dim more.
void tl_joining_rewrite(tl_joining *self);

#endif
