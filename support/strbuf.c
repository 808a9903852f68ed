// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/strbuf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"

void tl_strbuf_init(tl_strbuf *buffer) {
  *buffer = (tl_strbuf){0};
}

void tl_strbuf_fini(tl_strbuf *buffer) {
  free(buffer->data);
  *buffer = (tl_strbuf){0};
}

void tl_strbuf_clear(tl_strbuf *buffer) {
  buffer->len = 0;
  if (buffer->data) buffer->data[0] = '\0';
}

// Makes room for `extra` bytes and a NUL.
static void reserve(tl_strbuf *buffer, size_t extra) {
  size_t wanted = buffer->len + extra + 1;
  if (wanted <= buffer->capacity) return;
  size_t grown = buffer->capacity ? buffer->capacity * 2 : 64;
  if (grown < wanted) grown = wanted;
  buffer->data = tl_xrealloc(buffer->data, grown);
  buffer->capacity = grown;
}

void tl_strbuf_append(tl_strbuf *buffer, tl_str text) {
  reserve(buffer, text.len);
  if (text.len) memcpy(buffer->data + buffer->len, text.data, text.len);
  buffer->len += text.len;
  buffer->data[buffer->len] = '\0';
}

void tl_strbuf_append_c(tl_strbuf *buffer, const char *text) {
  tl_strbuf_append(buffer, tl_str_from(text));
}

void tl_strbuf_append_char(tl_strbuf *buffer, char c) {
  tl_strbuf_append(buffer, (tl_str){&c, 1});
}

void tl_strbuf_appendf(tl_strbuf *buffer, const char *format, ...) {
  va_list args, measure;
  va_start(args, format);
  va_copy(measure, args);
  int len = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  reserve(buffer, (size_t)len);
  vsnprintf(buffer->data + buffer->len, (size_t)len + 1, format, args);
  va_end(args);
  buffer->len += (size_t)len;
}

const char *tl_strbuf_c(const tl_strbuf *buffer) {
  return buffer->data ? buffer->data : "";
}

tl_str tl_strbuf_view(const tl_strbuf *buffer) {
  return (tl_str){tl_strbuf_c(buffer), buffer->len};
}

char *tl_strbuf_take(tl_strbuf *buffer) {
  reserve(buffer, 0);
  buffer->data[buffer->len] = '\0';
  char *text = buffer->data;
  *buffer = (tl_strbuf){0};
  return text;
}

// Length of the valid UTF-8 sequence at `s`, or 0.
static size_t utf8_length(tl_str s) {
  unsigned char c = (unsigned char)s.data[0];
  size_t len = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (len == 0 || len > s.len) return 0;
  for (size_t i = 1; i < len; i++) {
    if (((unsigned char)s.data[i] & 0xc0) != 0x80) return 0;
  }
  unsigned char second = len > 1 ? (unsigned char)s.data[1] : 0;
  bool overlong = (c == 0xe0 && second < 0xa0) || (c == 0xf0 && second < 0x90);
  bool surrogate = c == 0xed && second > 0x9f;
  bool too_large = c == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : len;
}

static const char *json_escape(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return NULL;
  }
}

void tl_strbuf_append_json(tl_strbuf *buffer, tl_str text) {
  tl_strbuf_append_char(buffer, '"');
  for (size_t i = 0; i < text.len;) {
    char c = text.data[i];
    const char *escape = json_escape(c);
    size_t len = utf8_length(tl_str_sub(text, i, 4));
    if (escape) {
      tl_strbuf_append_c(buffer, escape);
    } else if ((unsigned char)c < 0x20 || c == 0x7f) {
      tl_strbuf_appendf(buffer, "\\u%04x", (unsigned char)c);
    } else if (len == 0) {
      tl_strbuf_append_c(buffer, "\\ufffd");
    } else {
      tl_strbuf_append(buffer, tl_str_sub(text, i, len));
    }
    i += len ? len : 1;
  }
  tl_strbuf_append_char(buffer, '"');
}

void tl_strbuf_append_json_c(tl_strbuf *buffer, const char *text) {
  if (text)
    tl_strbuf_append_json(buffer, tl_str_from(text));
  else
    tl_strbuf_append_c(buffer, "null");
}

static const char *markup_escape(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return NULL;
  }
}

// Whether XML 1.0 has the character of `len` bytes: `Char` of its grammar, surrogates being no UTF-8.
static bool is_xml_char(const char *at, size_t len) {
  unsigned char byte = (unsigned char)*at;
  if (len == 1) return byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r';
  return len != 3 || (memcmp(at, "\xef\xbf\xbe", 3) != 0 && memcmp(at, "\xef\xbf\xbf", 3) != 0);
}

void tl_strbuf_append_markup(tl_strbuf *buffer, tl_str text) {
  for (size_t i = 0; i < text.len;) {
    const char *escape = markup_escape(text.data[i]);
    size_t len = utf8_length(tl_str_sub(text, i, 4));
    if (escape)
      tl_strbuf_append_c(buffer, escape);
    else if (len == 0 || !is_xml_char(text.data + i, len))
      tl_strbuf_append_c(buffer, "\xef\xbf\xbd");
    else
      tl_strbuf_append(buffer, tl_str_sub(text, i, len));
    i += len ? len : 1;
  }
}

void tl_strbuf_append_double(tl_strbuf *buffer, double value) {
  if (isnan(value)) {
    tl_strbuf_append_c(buffer, "nan");
    return;
  }
  if (isinf(value)) {
    tl_strbuf_append_c(buffer, value < 0 ? "-inf" : "inf");
    return;
  }
  char text[40];
  for (int precision = 1; precision <= 17; precision++) {
    snprintf(text, sizeof text, "%.*g", precision, value);
    if (strtod(text, NULL) == value) break;
  }
  tl_strbuf_append_c(buffer, text);
  if (!strpbrk(text, ".e")) tl_strbuf_append_c(buffer, ".0");
}
