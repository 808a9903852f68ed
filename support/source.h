// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source files and places in them.
#ifndef TL_SUPPORT_SOURCE_H
#define TL_SUPPORT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/status.h"
#include "support/strview.h"

// A byte range of a source file. {0} means "no place".
typedef struct tl_loc {
  uint32_t source;  // 1-based index into tl_sources, 0 for none
  uint32_t offset;  // byte offset
  uint32_t length;  // bytes; 0 marks a point
} tl_loc;

typedef struct tl_source {
  const char *name;       // Owned by tl_sources. As the user gave it ("-" is "<stdin>").
  tl_str text;            // Owned by tl_sources.
  uint32_t *line_starts;  // Owned. Byte offset of each line.
  uint32_t num_lines;
  bool is_file;       // read by tl_sources_read: what it includes lies beside it
  tl_loc used_at;     // what brought it in: an `include` or the use of a macro; {0} for what the user named
  const char *macro;  // Owned by tl_sources. The macro that this is an expansion of; NULL: a text of its own.
} tl_source;

typedef struct tl_sources {
  tl_arena arena;
  tl_source **items;  // Owned.
  uint32_t count;
  uint32_t capacity;
} tl_sources;

// 1-based line and column (columns count Unicode scalar values).
typedef struct tl_line_column {
  uint32_t line;
  uint32_t column;
} tl_line_column;

void tl_sources_init(tl_sources *sources);
void tl_sources_fini(tl_sources *sources);
// Adds a copy of `text` under `name`; returns its index for tl_loc.source.
uint32_t tl_sources_add(tl_sources *sources, const char *name, tl_str text);
// Reads a file ("-" is standard input). Fails with NOT_FOUND, IO, or LIMIT when larger than `max_bytes`.
TL_MUST_USE tl_status tl_sources_read(tl_sources *sources, const char *path, size_t max_bytes, uint32_t *out_source);
// One expansion of a macro whose text stands in `source`: a source of its own with the same name and text, so that a
// place in it says by which use it came to be. Returns its index.
uint32_t tl_sources_add_expansion(tl_sources *sources, uint32_t source, tl_str macro, tl_loc used_at);
// Says that `source` was brought in by what stands at `used_at`.
void tl_sources_set_used_at(tl_sources *sources, uint32_t source, tl_loc used_at);
// NULL for index 0 or out of range. Borrowed.
const tl_source *tl_sources_get(const tl_sources *sources, uint32_t source);
// The name of `source` as messages of a running kernel show it, wherever the spec lies: relative to the directory of
// the first source ("lib/rows.yaml"); without directories where it does not lie below the way to there. Borrowed.
const char *tl_sources_short_name(const tl_sources *sources, const tl_source *source);
tl_line_column tl_source_position(const tl_source *source, uint32_t offset);
// The text of a 1-based line without its line end. Borrowed.
tl_str tl_source_line(const tl_source *source, uint32_t line);
// The range from the start of `a` to the end of `b` (same source).
tl_loc tl_loc_join(tl_loc a, tl_loc b);
// The text of a place ("" for none). Borrowed.
tl_str tl_loc_text(const tl_sources *sources, tl_loc loc);

#endif
