// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State and scanning of the IR parser, shared by its sources.
#ifndef TL_IR_PARSE_INTERNAL_H
#define TL_IR_PARSE_INTERNAL_H

#include "ir/text/text.h"
#include "support/vec.h"

enum { TL_PARSE_MAX_DEPTH = 100 };

typedef struct tl_parser {
  tl_diags *diags;
  uint32_t source;
  const char *start, *at, *end;
  bool failed;  // an error was reported in the current op
  bool any_error;
  int depth;
  tl_module *module;
  tl_arena scratch;      // dies with the parse
  tl_strmap names;       // name → visible value, NULL once out of scope
  TL_VEC(tl_str) scope;  // names in the order of definition
} tl_parser;

// Scanning, in parse_scan.c. All skip space and comments first. The expect functions report and set `failed`.
void tl_parser_skip_space(tl_parser *parser);
bool tl_parser_at_end(tl_parser *parser);
// The next character, or NUL at the end.
char tl_parser_peek(tl_parser *parser);
bool tl_parser_accept(tl_parser *parser, char c);
bool tl_parser_expect(tl_parser *parser, char c, const char *where);
// The identifier that comes next, without taking it; empty when there is none.
tl_str tl_parser_peek_word(tl_parser *parser);
bool tl_parser_accept_word(tl_parser *parser, const char *word);
bool tl_parser_expect_word(tl_parser *parser, tl_str *out, const char *what);
// %name, without the '%'.
bool tl_parser_expect_name(tl_parser *parser, tl_str *out);
bool tl_parser_expect_int(tl_parser *parser, int64_t *out);
// An integer or a float; `*out_is_float` says which.
bool tl_parser_expect_number(tl_parser *parser, int64_t *out_int, double *out_float, bool *out_is_float);
// A JSON string, unescaped into the scratch arena.
bool tl_parser_expect_string(tl_parser *parser, tl_str *out);
// "#word<…>" as one piece of text.
bool tl_parser_expect_hash_text(tl_parser *parser, tl_str *out);
tl_loc tl_parser_loc(const tl_parser *parser, const char *from, const char *to);
// Reports at the range; always returns false.
bool tl_parser_error(tl_parser *parser, const char *from, const char *to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Reports at the next word or character.
bool tl_parser_error_here(tl_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

// parse_type.c
const tl_type *tl_parser_type(tl_parser *parser);  // NULL after an error
bool tl_parser_attr(tl_parser *parser, tl_attr *out);

#endif
