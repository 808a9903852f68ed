// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of tiles: the boxes of elements that statements of a loop write and read, as far as they are known when
// compiled, so that several writes can be told to make up what is read.
#ifndef TL_PASSES_TILE_PARTS_H
#define TL_PASSES_TILE_PARTS_H

#include "passes/analysis/dependence.h"

// Elements lo … hi - 1 along each dim of the tile.
typedef struct tl_part {
  tl_op *op;          // the statement: a copy, a fill, or the parallel around stores and loads
  const tl_op *loop;  // of a write: the innermost loop that was walked for it, and the number of the iteration
  int64_t number;
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
} tl_part;

typedef TL_VEC(tl_part) tl_part_list;

// Iterations of a loop with constant bounds; -1 where they are not constant, or `while` may end it.
int64_t tl_constant_trips(const tl_op *loop);

tl_part tl_part_whole(tl_op *op, const tl_value *tile);
bool tl_parts_meet(const tl_part *a, const tl_part *b, int32_t rank);
// Whether the parts together hold all of `what`.
bool tl_parts_cover(const tl_part_list *parts, const tl_part *what, int32_t rank);

// Appends what the op (COPY, FILL or PARALLEL) may write of the tile in one run of `block`, which is around it: a part
// for each iteration of the loops between. False where a place is not known; then what was appended means nothing.
bool tl_parts_written(tl_op *op, const tl_value *tile, const tl_block *block, tl_part_list *out);
// Whether at most one of two writes (of different ops) happens in one iteration of `loop`.
bool tl_parts_exclude(const tl_part *a, const tl_part *b, const tl_op *loop);
// The elements that a read may read; all of the tile where they are not known.
tl_part tl_part_read(const tl_effect *read, tl_op *statement);
// Appends what those of `writers` that surely run before `read` write, in the iteration of `block` that it stands in.
void tl_parts_before(const tl_op *loop, tl_op *read, const tl_value *tile, const tl_op_list *writers,
                     tl_part_list *out);

#endif
