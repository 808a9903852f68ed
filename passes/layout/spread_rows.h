// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of spread-rows share: which dims of a kernel's tiles and parallels go together.
#ifndef TL_PASSES_SPREAD_ROWS_H
#define TL_PASSES_SPREAD_ROWS_H

#include "ir/ir.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

// PTX ISA, "Cluster of Cooperative Thread Arrays": at most 8 blocks on every GPU.
enum { TL_SPREAD_MAX_BLOCKS = 8 };

// A tile value or a parallel, with a number for each of its dims from `first` on.
typedef struct tl_spread_node {
  tl_value *tile;   // NULL: of a parallel
  tl_op *parallel;  // NULL: of a tile
  int32_t first, rank;
} tl_spread_node;

// A dim. Those that an op walks together are of one class: blocks that each have a part of one have the same part of
// all.
typedef struct tl_spread_dim {
  int32_t parent;  // of the class: itself for the one that stands for it
  int64_t extent;
  const char *obstacle;  // of the class: why blocks cannot have parts of it; NULL: they can
} tl_spread_dim;

typedef struct tl_spread_dims {
  TL_VEC(tl_spread_node) nodes;
  TL_VEC(tl_spread_dim) dims;
} tl_spread_dims;

// Finds the classes of the kernel's dims. The lists are the caller's.
void tl_spread_find(tl_op *kernel, tl_spread_dims *dims);
void tl_spread_fini(tl_spread_dims *dims);
// The dim that stands for the class of dim `dim` of a tile or, when that is NULL, of a parallel; -1: not looked at.
int32_t tl_spread_class(tl_spread_dims *dims, const tl_value *tile, const tl_op *parallel, int32_t dim);
// Why the class has no parts for the blocks of a cluster; NULL: it has.
const char *tl_spread_obstacle(tl_spread_dims *dims, int32_t class_of);

// ---- spread_rows.c

// Blocks on a multiprocessor that are enough where rows are short.
enum { TL_SPREAD_ENOUGH = 4 };
// How many blocks a block of the kernel will be, so that a multiprocessor has room for two; 0: it has room for none.
// `*out_resident`: how many of them its shared memory has room for.
int64_t tl_spread_parts(tl_pass_context *context, tl_op *kernel, int32_t *out_resident);
// Whether blocks of a cluster that load the tile are better four to a multiprocessor than two: its rows are short and
// may be staged.
bool tl_spread_has_short_rows(tl_op *load);

// ---- spread_rows_exchange.c

// The blocks that share a row.
typedef struct tl_spread_cluster {
  tl_pass_context *context;
  tl_op *kernel;
  int64_t across;   // the dim of the grid along which they lie
  int64_t blocks;   // at most TL_SPREAD_MAX_BLOCKS
  tl_value *first;  // the place in the row of the first element of the own part
} tl_spread_cluster;

// What a reduction of the own part gives, combined with what it gives in the other blocks: every use of its results has
// that. The cluster meets.
void tl_spread_exchange(const tl_spread_cluster *cluster, tl_op *reduce);

#endif
