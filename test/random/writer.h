// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A spec while it is written: the lines of each section, in any order, put together at the end.
#ifndef TL_TEST_RANDOM_WRITER_H
#define TL_TEST_RANDOM_WRITER_H

#include "support/strbuf.h"
#include "test/random/choices.h"

typedef enum tl_rspec_section {
  TL_RSPEC_HEAD,
  TL_RSPEC_PARAMS,
  TL_RSPEC_LET,
  TL_RSPEC_ARGS,
  TL_RSPEC_VIEWS,
  TL_RSPEC_REQUIRES,
  TL_RSPEC_GRID,
  TL_RSPEC_OPTIONS,  // threads, rasterize, persistent, fast_math
  TL_RSPEC_SHARED,
  TL_RSPEC_FRAGMENT,
  TL_RSPEC_LOCAL,
  TL_RSPEC_BODY,
  TL_RSPEC_INPUTS,
  TL_RSPEC_REFERENCE,
  TL_RSPEC_TOLERANCE,
  TL_RSPEC_CASES,
  TL_RSPEC_NUM_SECTIONS
} tl_rspec_section;

typedef struct tl_rspec {
  tl_rspec_choices *choices;  // Borrowed.
  tl_arena arena;             // texts of expressions
  tl_strbuf sections[TL_RSPEC_NUM_SECTIONS];
  int body_indent;       // of the next body line, in levels
  bool is_fast;          // fast_math
  int64_t shared_bytes;  // of the tiles that tl_rspec_take_shared let into shared memory
} tl_rspec;

void tl_rspec_init(tl_rspec *spec, tl_rspec_choices *choices);
void tl_rspec_fini(tl_rspec *spec);

// Adds a line to a section.
void tl_rspec_line(tl_rspec *spec, tl_rspec_section section, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Adds a line to the body at its indentation: "- copy: …" or, with a format that starts with two blanks, an option.
void tl_rspec_body(tl_rspec *spec, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Text in the spec's arena.
char *tl_rspec_text(tl_rspec *spec, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The tolerance of one output.
void tl_rspec_tolerance(tl_rspec *spec, const char *output, double rtol, double atol);

// The whole document.
void tl_rspec_print(const tl_rspec *spec, const char *name, tl_strbuf *out);

#endif
