// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who wrote the elements of a case's outputs, as the emulator's checks remember it, and where wrong ones lie: in which
// block and at which place of its tile, in which warp and lane, by which line of the spec.
#ifndef TL_HARNESS_CHECK_WRITERS_H
#define TL_HARNESS_CHECK_WRITERS_H

#include "harness/data/compare.h"
#include "harness/device/run.h"
#include "support/vec.h"

// Of one element. place 0: not known.
typedef struct tl_element_writer {
  uint32_t owner;  // a block by its index, or a tile of a persistent kernel
  int16_t thread;  // of the block; -1: an asynchronous operation
  uint16_t place;  // number of the line that wrote it, from 1
} tl_element_writer;

typedef struct tl_writers {
  const tl_run_args *args;      // Borrowed. Of the launch
  tl_element_writer **of;       // Owned. By argument and element; NULL: an input, or nothing is known
  TL_VEC(const char *) places;  // Owned. "spec.yaml:14"
  uint32_t grid[3];             // blocks
  bool has_tiles;
} tl_writers;

// Remembers who writes the outputs of `args` in the launches that follow on the emulator, until tl_writers_end. `*out`
// stays where it is until then.
void tl_writers_begin(tl_run_device *device, const tl_run_args *args, tl_writers *out);
void tl_writers_end(tl_run_device *device);
void tl_writers_fini(tl_writers *writers);

// Where wrong elements lie.
typedef struct tl_where {
  int64_t low[TL_ARRAY_MAX_RANK], high[TL_ARRAY_MAX_RANK];  // the box of all
  int64_t tile_low[TL_ARRAY_MAX_RANK],
      tile_high[TL_ARRAY_MAX_RANK];  // the box of all, each within its owner's elements
  uint64_t num_owners, num_wrong_owners;
  uint32_t warps, lanes;   // bit sets of those that wrote them
  bool is_known;           // who wrote them: all but `low` and `high`
  bool is_async;           // an asynchronous operation wrote some
  uint64_t num_unwritten;  // that nobody wrote, where others have writers
} tl_where;

// How an element came to be.
typedef struct tl_element_origin {
  bool is_known;
  bool is_unwritten;  // nobody wrote it, although others have writers
  uint32_t owner, block[3];
  int64_t tile[TL_ARRAY_MAX_RANK];  // within the elements of its owner
  int32_t thread;                   // -1: an asynchronous operation
  const char *place;                // NULL: not known. Borrowed
} tl_element_origin;

// Where `elements` of argument `index` of the launch lie, and how the first `num_origins` of them came to be. `writers`
// may be NULL: then only the box is known.
void tl_writers_find(const tl_writers *writers, const tl_run_arg *arg, uint32_t index,
                     const tl_compare_element *elements, uint64_t len, tl_element_origin *out_origins,
                     uint64_t num_origins, tl_where *out);

#endif
