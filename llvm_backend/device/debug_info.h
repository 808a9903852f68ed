// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the device module itself does not say and messages about its execution need: the text of the spec, and where
// shared tiles lie. Goes with the module to the emulator. No LLVM types.
#ifndef TL_LLVM_BACKEND_DEBUG_INFO_H
#define TL_LLVM_BACKEND_DEBUG_INFO_H

#include <stdbool.h>

#include "ir/layout/layout.h"
#include "support/arena.h"
#include "support/dtype.h"
#include "support/strbuf.h"
#include "support/strview.h"

typedef struct tl_debug_source {
  const char *name;  // as debug locations give it: relative to the spec
  tl_str text;
} tl_debug_source;

typedef struct tl_debug_tile {
  const char *name;
  int64_t offset, bytes;  // in the block's dynamic shared memory; all stages
  int64_t stage_bytes;    // distance between stages
  int32_t depth;          // stages
  tl_dtype dtype;
  int32_t rank;
  int32_t dims[TL_MAX_RANK];
  tl_shared_layout layout;
} tl_debug_tile;

// Code of a line of the spec touches a shared tile.
typedef struct tl_debug_use {
  uint32_t line;
  uint32_t tile;  // index
} tl_debug_use;

// The elements of a parallel run code of a line of the spec.
typedef struct tl_debug_element {
  uint32_t line;
  uint32_t parallel;  // its number in the kernel, from 1
} tl_debug_element;

// What lives in registers or local memory and may be read before it is written: a fragment of the block, or an array or
// a scalar of each thread. tl.undefined.* names it by its index.
typedef struct tl_debug_variable {
  const char *name;  // NULL: made by the compiler
  bool is_fragment;  // `layout` says where its elements are; else `dims` are those of an array
  int32_t rank;
  int32_t dims[TL_MAX_RANK];
  tl_layout layout;
} tl_debug_variable;

typedef struct tl_debug_info {
  tl_debug_source *sources;
  uint32_t num_sources;
  tl_debug_tile *tiles;
  uint32_t num_tiles;
  tl_debug_use *uses;
  uint32_t num_uses;
  tl_debug_element *elements;
  uint32_t num_elements;
  tl_debug_variable *variables;
  uint32_t num_variables;
} tl_debug_info;

// A copy with everything in `arena`.
tl_debug_info tl_debug_info_copy(const tl_debug_info *info, tl_arena *arena);
// Whether one parallel runs both lines.
bool tl_debug_in_one_parallel(const tl_debug_info *info, uint32_t line, uint32_t other);
// Whether places of the file `name` (NULL: none) are those of the spec, to whose lines the rest belongs: PTX has some
// of its own.
bool tl_debug_has_source(const tl_debug_info *info, const char *name);
// Line `line` (from 1) of the source `name`, without the newline; empty when there is none.
tl_str tl_debug_line(const tl_debug_info *info, const char *name, uint32_t line);
// Whether the byte belongs to an element of the tile.
bool tl_debug_tile_has_element(const tl_debug_tile *tile, int64_t offset);
// "As[3, 8]", "As[3, 8] (stage 1)", "As, padding": what of the tile byte `offset` of shared memory is. False: not in
// the tile.
bool tl_debug_tile_describe(const tl_debug_tile *tile, int64_t offset, tl_strbuf *out);
// "fragment acc[3, 8]", "fragment acc, padding", "local array w[2]", "local n": what `element` (a register of a
// fragment, an element of an array) of the variable is in a thread.
void tl_debug_variable_describe(const tl_debug_variable *variable, uint32_t element, uint32_t thread, tl_strbuf *out);

#endif
