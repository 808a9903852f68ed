// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ptx/text/lexer.h"

#include <stdlib.h>
#include <string.h>

void tl_ptx_lexer_init(tl_ptx_lexer *lexer, tl_str text) {
  *lexer = (tl_ptx_lexer){.text = text, .line = 1};
}

static int peek(const tl_ptx_lexer *l, uint32_t ahead) {
  size_t at = (size_t)l->at + ahead;
  return at < l->text.len ? (unsigned char)l->text.data[at] : -1;
}

static bool is_digit(int c) {
  return c >= '0' && c <= '9';
}
static bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// PTX ISA, Identifiers.
static bool follows(int c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

// "//tl:tile": a mark of the compiler, which is a word.
static bool is_mark(const tl_ptx_lexer *l) {
  return peek(l, 1) == '/' && peek(l, 2) == 't' && peek(l, 3) == 'l' && peek(l, 4) == ':' && is_letter(peek(l, 5));
}

static bool skip_comment(tl_ptx_lexer *l) {
  if (peek(l, 1) == '/') {
    while (peek(l, 0) >= 0 && peek(l, 0) != '\n') l->at++;
    return true;
  }
  l->at += 2;
  for (; peek(l, 0) >= 0; l->at++) {
    if (peek(l, 0) == '\n') l->line++;
    if (peek(l, 0) == '*' && peek(l, 1) == '/') {
      l->at += 2;
      return true;
    }
  }
  return false;
}

// False: a comment does not end.
static bool skip_blanks(tl_ptx_lexer *l) {
  for (;;) {
    int c = peek(l, 0);
    if (c == '\n') l->line++;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      l->at++;
    } else if (c == '/' && (peek(l, 1) == '/' || peek(l, 1) == '*') && !is_mark(l)) {
      if (!skip_comment(l)) return false;
    } else {
      return true;
    }
  }
}

static tl_ptx_token wrong(tl_ptx_lexer *l, tl_ptx_token token, const char *what) {
  token.kind = TL_PTX_TOKEN_WRONG;
  token.text = tl_str_from(what);
  token.length = token.offset < l->text.len ? 1 : 0;
  l->at = (uint32_t)l->text.len;
  return token;
}

static tl_ptx_token finish(const tl_ptx_lexer *l, tl_ptx_token token, tl_ptx_token_kind kind, uint32_t skip) {
  token.kind = kind;
  token.length = l->at - token.offset;
  token.text = tl_str_sub(l->text, token.offset + skip, token.length - skip);
  return token;
}

static int digit_of(int c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// 0f3F800000 and 0d3FF0000000000000: exactly the digits of the type.
static tl_ptx_token take_bits(tl_ptx_lexer *l, tl_ptx_token token, tl_ptx_token_kind kind, uint32_t digits) {
  l->at += 2;
  for (uint32_t i = 0; i < digits; i++, l->at++) {
    if (digit_of(peek(l, 0)) > 15)
      return wrong(l, token, "a float by its bits takes 8 (0f) or 16 (0d) hexadecimal digits");
    token.value = token.value << 4 | (uint64_t)digit_of(peek(l, 0));
  }
  return finish(l, token, kind, 0);
}

static tl_ptx_token take_decimal_float(tl_ptx_lexer *l, tl_ptx_token token) {
  char text[64];
  size_t len = 0;
  while (is_digit(peek(l, 0)) || peek(l, 0) == '.' || peek(l, 0) == 'e' || peek(l, 0) == 'E' ||
         ((peek(l, 0) == '-' || peek(l, 0) == '+') && len && (text[len - 1] == 'e' || text[len - 1] == 'E'))) {
    if (len + 1 >= sizeof text) return wrong(l, token, "a number that is too long");
    text[len++] = (char)peek(l, 0);
    l->at++;
  }
  text[len] = '\0';
  char *end;
  double value = strtod(text, &end);
  if (*end) return wrong(l, token, "a malformed number");
  memcpy(&token.value, &value, sizeof value);
  return finish(l, token, TL_PTX_TOKEN_FLOAT64, 0);
}

static bool is_decimal_float(const tl_ptx_lexer *l) {
  uint32_t i = 0;
  while (is_digit(peek(l, i))) i++;
  if (peek(l, i) == '.') return is_digit(peek(l, i + 1)) || !is_letter(peek(l, i + 1));
  return (peek(l, i) == 'e' || peek(l, i) == 'E') &&
         (is_digit(peek(l, i + 1)) || ((peek(l, i + 1) == '-' || peek(l, i + 1) == '+') && is_digit(peek(l, i + 2))));
}

static tl_ptx_token take_number(tl_ptx_lexer *l, tl_ptx_token token) {
  int second = peek(l, 0) == '0' ? peek(l, 1) : -1;
  if (second == 'f' || second == 'F') return take_bits(l, token, TL_PTX_TOKEN_FLOAT32, 8);
  if (second == 'd' || second == 'D') return take_bits(l, token, TL_PTX_TOKEN_FLOAT64, 16);
  if (is_decimal_float(l)) return take_decimal_float(l, token);
  unsigned base = 10;
  if (second == 'x' || second == 'X') base = 16;
  if ((second == 'b' || second == 'B') && (peek(l, 2) == '0' || peek(l, 2) == '1')) base = 2;
  token.is_hex = base == 16;
  if (base != 10)
    l->at += 2;
  else if (is_digit(second))
    base = 8;
  uint32_t start = l->at;
  for (; digit_of(peek(l, 0)) < (int)base; l->at++)
    if (__builtin_mul_overflow(token.value, (uint64_t)base, &token.value) ||
        __builtin_add_overflow(token.value, (uint64_t)digit_of(peek(l, 0)), &token.value))
      return wrong(l, token, "an integer that does not fit into 64 bits");
  if (l->at == start) return wrong(l, token, "a malformed number");
  if (peek(l, 0) == 'U') l->at++;
  if (follows(peek(l, 0))) return wrong(l, token, "a malformed number");
  return finish(l, token, TL_PTX_TOKEN_INTEGER, 0);
}

static tl_ptx_token take_word(tl_ptx_lexer *l, tl_ptx_token token) {
  l->at++;
  while (follows(peek(l, 0))) l->at++;
  return finish(l, token, TL_PTX_TOKEN_WORD, 0);
}

// ".shared::cta", ".2d", ".m16n8k16"
static tl_ptx_token take_dot(tl_ptx_lexer *l, tl_ptx_token token) {
  l->at++;
  while (follows(peek(l, 0)) || (peek(l, 0) == ':' && peek(l, 1) == ':' && follows(peek(l, 2))))
    l->at += peek(l, 0) == ':' ? 2 : 1;
  return finish(l, token, TL_PTX_TOKEN_DOT, 1);
}

static tl_ptx_token take_string(tl_ptx_lexer *l, tl_ptx_token token) {
  for (l->at++; peek(l, 0) != '"'; l->at++) {
    if (peek(l, 0) < 0 || peek(l, 0) == '\n') return wrong(l, token, "a string that does not end");
    if (peek(l, 0) == '\\' && peek(l, 1) == '"') l->at++;
  }
  l->at++;
  token.kind = TL_PTX_TOKEN_STRING;
  token.length = l->at - token.offset;
  token.text = tl_str_sub(l->text, token.offset + 1, token.length - 2);
  return token;
}

static tl_ptx_token take_punct(tl_ptx_lexer *l, tl_ptx_token token) {
  int c = peek(l, 0);
  if (!c || c < 0 || !strchr("{}()[],;:+-!|@=*/<>&^~?%", c))
    return wrong(l, token, "a character that PTX does not know");
  l->at++;
  token.punct = c;
  if (c == peek(l, 0) && (c == '<' || c == '>')) {
    token.punct = c == '<' ? TL_PTX_SHL : TL_PTX_SHR;
    l->at++;
  }
  return finish(l, token, TL_PTX_TOKEN_PUNCT, 0);
}

tl_ptx_token tl_ptx_lexer_next(tl_ptx_lexer *l) {
  uint32_t before = l->at;
  bool is_closed = skip_blanks(l);
  tl_ptx_token token = {.offset = l->at, .line = l->line, .is_glued = l->at == before};
  if (!is_closed) return wrong(l, token, "a comment that does not end");
  int c = peek(l, 0), next = peek(l, 1);
  if (c < 0) return token;
  if (is_digit(c)) return take_number(l, token);
  if (is_letter(c) || ((c == '_' || c == '$' || c == '%') && follows(next)) || c == '_') return take_word(l, token);
  if (c == '/' && is_mark(l)) {
    l->at += 5;
    return take_word(l, token);
  }
  if (c == '.' && follows(next)) return take_dot(l, token);
  if (c == '"') return take_string(l, token);
  return take_punct(l, token);
}
