// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of PTX text (PTX ISA, Syntax).
#ifndef TL_PTX_LEXER_H
#define TL_PTX_LEXER_H

#include "support/strview.h"

typedef enum tl_ptx_token_kind {
  TL_PTX_TOKEN_END,
  TL_PTX_TOKEN_WORD,     // an identifier, an opcode: "%r1", "ld", "$L__BB0_2", a mark: "//tl:tile"
  TL_PTX_TOKEN_DOT,      // ".global", ".L1::no_allocate": `text` is what follows the dot
  TL_PTX_TOKEN_INTEGER,  // `value`
  TL_PTX_TOKEN_FLOAT32,  // 0f…: `value` holds the bits
  TL_PTX_TOKEN_FLOAT64,  // 0d…, 1.5: `value` holds the bits
  TL_PTX_TOKEN_STRING,   // `text` without quotes; escapes stay
  TL_PTX_TOKEN_PUNCT,    // `punct`: one character, or two: see below
  TL_PTX_TOKEN_WRONG     // `text` says what is wrong
} tl_ptx_token_kind;

// Punctuation of two characters.
enum { TL_PTX_SHL = 256, TL_PTX_SHR };

typedef struct tl_ptx_token {
  tl_ptx_token_kind kind;
  tl_str text;
  uint64_t value;
  int punct;
  bool is_hex;      // INTEGER: written 0x…
  bool is_glued;    // nothing stands between it and the token before
  uint32_t offset;  // byte in the text
  uint32_t length;
  uint32_t line;  // from 1
} tl_ptx_token;

typedef struct tl_ptx_lexer {
  tl_str text;  // Borrowed.
  uint32_t at, line;
} tl_ptx_lexer;

void tl_ptx_lexer_init(tl_ptx_lexer *lexer, tl_str text);
// The next token; END again and again at the end, and after WRONG.
tl_ptx_token tl_ptx_lexer_next(tl_ptx_lexer *lexer);

#endif
