// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scanning for the IR parser: words, values, numbers, strings, and errors with their place.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/text/parse_internal.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_word_char(char c) {
  return is_word_start(c) || is_digit(c);
}

// ---- errors

tl_loc tl_parser_loc(const tl_parser *parser, const char *from, const char *to) {
  return (tl_loc){parser->source, (uint32_t)(from - parser->start), (uint32_t)(to - from)};
}

static bool report(tl_parser *parser, const char *from, const char *to, const char *format, va_list args) {
  // One error an op: what follows is mostly its echo.
  if (!parser->failed) {
    char text[512];
    vsnprintf(text, sizeof(text), format, args);
    tl_diag_report(parser->diags, TL_DIAG_IR_SYNTAX, tl_parser_loc(parser, from, to), "%s", text);
  }
  parser->failed = true;
  parser->any_error = true;
  return false;
}

bool tl_parser_error(tl_parser *parser, const char *from, const char *to, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(parser, from, to, format, args);
  va_end(args);
  return false;
}

bool tl_parser_error_here(tl_parser *parser, const char *format, ...) {
  tl_parser_skip_space(parser);
  const char *to = parser->at;
  while (to < parser->end && is_word_char(*to)) to++;
  if (to == parser->at && to < parser->end) to++;
  va_list args;
  va_start(args, format);
  report(parser, parser->at, to, format, args);
  va_end(args);
  return false;
}

// ---- characters and words

void tl_parser_skip_space(tl_parser *parser) {
  while (parser->at < parser->end) {
    char c = *parser->at;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      parser->at++;
    } else if (c == '/' && parser->at + 1 < parser->end && parser->at[1] == '/') {
      while (parser->at < parser->end && *parser->at != '\n') parser->at++;
    } else {
      return;
    }
  }
}

bool tl_parser_at_end(tl_parser *parser) {
  tl_parser_skip_space(parser);
  return parser->at == parser->end;
}

char tl_parser_peek(tl_parser *parser) {
  tl_parser_skip_space(parser);
  return parser->at < parser->end ? *parser->at : '\0';
}

bool tl_parser_accept(tl_parser *parser, char c) {
  if (tl_parser_peek(parser) != c || parser->at == parser->end) return false;
  parser->at++;
  return true;
}

bool tl_parser_expect(tl_parser *parser, char c, const char *where) {
  return tl_parser_accept(parser, c) || tl_parser_error_here(parser, "expected '%c' %s", c, where);
}

tl_str tl_parser_peek_word(tl_parser *parser) {
  tl_parser_skip_space(parser);
  const char *to = parser->at;
  if (to < parser->end && is_word_start(*to)) {
    while (to < parser->end && is_word_char(*to)) to++;
  }
  return (tl_str){parser->at, (size_t)(to - parser->at)};
}

bool tl_parser_accept_word(tl_parser *parser, const char *word) {
  tl_str next = tl_parser_peek_word(parser);
  if (!tl_str_is(next, word)) return false;
  parser->at += next.len;
  return true;
}

bool tl_parser_expect_word(tl_parser *parser, tl_str *out, const char *what) {
  *out = tl_parser_peek_word(parser);
  if (out->len == 0) return tl_parser_error_here(parser, "expected %s", what);
  parser->at += out->len;
  return true;
}

bool tl_parser_expect_name(tl_parser *parser, tl_str *out) {
  if (tl_parser_peek(parser) != '%') return tl_parser_error_here(parser, "expected a value (%%name)");
  const char *from = parser->at + 1, *to = from;
  while (to < parser->end && is_word_char(*to)) to++;
  if (to == from) return tl_parser_error(parser, parser->at, to, "expected a name after '%%'");
  *out = (tl_str){from, (size_t)(to - from)};
  parser->at = to;
  return true;
}

// ---- numbers

bool tl_parser_expect_number(tl_parser *parser, int64_t *out_int, double *out_float, bool *out_is_float) {
  tl_parser_skip_space(parser);
  const char *from = parser->at, *to = from;
  while (to < parser->end && (is_word_char(*to) || *to == '.' || *to == '+' || *to == '-')) to++;
  char text[64];
  size_t len = (size_t)(to - from);
  if (len == 0 || len >= sizeof(text)) return tl_parser_error_here(parser, "expected a number");
  memcpy(text, from, len);
  text[len] = '\0';
  parser->at = to;
  bool only_digits = true;
  for (size_t i = text[0] == '-' ? 1 : 0; i < len; i++) only_digits = only_digits && is_digit(text[i]);
  char *stop;
  errno = 0;
  *out_is_float = !only_digits;
  if (only_digits) {
    *out_int = strtoll(text, &stop, 10);
    if (errno == ERANGE) return tl_parser_error(parser, from, to, "the number does not fit 64 bits");
  } else {
    *out_float = strtod(text, &stop);
  }
  if (*stop != '\0' || stop == text || (only_digits && len == 1 && text[0] == '-')) {
    return tl_parser_error(parser, from, to, "expected a number");
  }
  return true;
}

bool tl_parser_expect_int(tl_parser *parser, int64_t *out) {
  tl_parser_skip_space(parser);
  const char *from = parser->at;
  double ignored;
  bool is_float;
  if (!tl_parser_expect_number(parser, out, &ignored, &is_float)) return false;
  return !is_float || tl_parser_error(parser, from, parser->at, "expected an integer");
}

// ---- strings

static int hex_value(const char *digits) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    char c = digits[i];
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

static void append_utf8(tl_strbuf *out, uint32_t c) {
  if (c < 0x80) {
    tl_strbuf_append_char(out, (char)c);
  } else if (c < 0x800) {
    tl_strbuf_append_char(out, (char)(0xC0 | c >> 6));
    tl_strbuf_append_char(out, (char)(0x80 | (c & 63)));
  } else if (c < 0x10000) {
    tl_strbuf_append_char(out, (char)(0xE0 | c >> 12));
    tl_strbuf_append_char(out, (char)(0x80 | (c >> 6 & 63)));
    tl_strbuf_append_char(out, (char)(0x80 | (c & 63)));
  } else {
    tl_strbuf_append_char(out, (char)(0xF0 | c >> 18));
    tl_strbuf_append_char(out, (char)(0x80 | (c >> 12 & 63)));
    tl_strbuf_append_char(out, (char)(0x80 | (c >> 6 & 63)));
    tl_strbuf_append_char(out, (char)(0x80 | (c & 63)));
  }
}

// After "\u": one code unit, or two that make a surrogate pair.
static bool scan_unicode(tl_parser *parser, tl_strbuf *out) {
  const char *from = parser->at;
  int high = parser->end - parser->at >= 4 ? hex_value(parser->at) : -1;
  if (high <= 0) return tl_parser_error(parser, from, from + 1, "expected four hex digits, not all 0");
  parser->at += 4;
  if (high < 0xD800 || high > 0xDFFF) {
    append_utf8(out, (uint32_t)high);
    return true;
  }
  bool has_second = high < 0xDC00 && parser->end - parser->at >= 6 && parser->at[0] == '\\' && parser->at[1] == 'u';
  int low = has_second ? hex_value(parser->at + 2) : -1;
  if (low < 0xDC00 || low > 0xDFFF) return tl_parser_error(parser, from, from + 4, "half a surrogate pair");
  parser->at += 6;
  append_utf8(out, 0x10000u + ((uint32_t)(high - 0xD800) << 10) + (uint32_t)(low - 0xDC00));
  return true;
}

static bool scan_escape(tl_parser *parser, tl_strbuf *out) {
  static const char codes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  char c = parser->at < parser->end ? *parser->at : '\0';
  if (c == 'u') {
    parser->at++;
    return scan_unicode(parser, out);
  }
  const char *found = c ? strchr(codes, c) : NULL;
  if (found == NULL) return tl_parser_error(parser, parser->at - 1, parser->at, "unknown escape");
  tl_strbuf_append_char(out, values[found - codes]);
  parser->at++;
  return true;
}

// Bytes of the well-formed UTF-8 sequence at `at` (no overlong form, no surrogate); 0 when there is none.
static int utf8_length(const unsigned char *at, const unsigned char *end) {
  unsigned char c = *at;
  int len = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
  if (len == 0 || end - at < len) return 0;
  for (int i = 1; i < len; i++) {
    if ((at[i] & 0xC0) != 0x80) return 0;
  }
  if ((c == 0xE0 && at[1] < 0xA0) || (c == 0xED && at[1] > 0x9F)) return 0;
  if ((c == 0xF0 && at[1] < 0x90) || (c == 0xF4 && at[1] > 0x8F)) return 0;
  return len;
}

bool tl_parser_expect_string(tl_parser *parser, tl_str *out) {
  if (tl_parser_peek(parser) != '"') return tl_parser_error_here(parser, "expected a string");
  const char *from = parser->at++;
  tl_strbuf text;
  tl_strbuf_init(&text);
  bool good = true;
  for (;;) {
    if (parser->at == parser->end || *parser->at == '\n' || *parser->at == '\0') {
      good = tl_parser_error(parser, from, from + 1, "the string does not end on its line");
      break;
    }
    int len = utf8_length((const unsigned char *)parser->at, (const unsigned char *)parser->end);
    if (len == 0) {
      good = tl_parser_error(parser, parser->at, parser->at + 1, "the string is not UTF-8");
      break;
    }
    const char *c = parser->at;
    parser->at += len;
    if (*c == '"') break;
    if (*c != '\\') {
      tl_strbuf_append(&text, (tl_str){c, (size_t)len});
    } else if (!scan_escape(parser, &text)) {
      good = false;
      break;
    }
  }
  if (good) *out = (tl_str){tl_arena_copy_bytes(&parser->scratch, tl_strbuf_c(&text), text.len), text.len};
  tl_strbuf_fini(&text);
  return good;
}

bool tl_parser_expect_hash_text(tl_parser *parser, tl_str *out) {
  if (tl_parser_peek(parser) != '#')
    return tl_parser_error_here(parser, "expected a layout (#layout<...> or #shared<...>)");
  const char *to = memchr(parser->at, '>', (size_t)(parser->end - parser->at));
  if (to == NULL) return tl_parser_error_here(parser, "the layout does not end");
  *out = (tl_str){parser->at, (size_t)(to + 1 - parser->at)};
  parser->at = to + 1;
  return true;
}
