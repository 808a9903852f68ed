// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Growable text on the heap. Always NUL-terminated once something was appended.
#ifndef TL_SUPPORT_STRBUF_H
#define TL_SUPPORT_STRBUF_H

#include "support/strview.h"

typedef struct tl_strbuf {
  char *data;  // Owned; NULL while empty.
  size_t len;
  size_t capacity;
} tl_strbuf;

void tl_strbuf_init(tl_strbuf *buffer);
void tl_strbuf_fini(tl_strbuf *buffer);
void tl_strbuf_clear(tl_strbuf *buffer);
void tl_strbuf_append(tl_strbuf *buffer, tl_str text);
void tl_strbuf_append_c(tl_strbuf *buffer, const char *text);
void tl_strbuf_append_char(tl_strbuf *buffer, char c);
void tl_strbuf_appendf(tl_strbuf *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The content as a C string ("" while empty). Borrowed until the next change.
const char *tl_strbuf_c(const tl_strbuf *buffer);
tl_str tl_strbuf_view(const tl_strbuf *buffer);
// Hands the content (NUL-terminated, free() it) to the caller and empties the buffer.
char *tl_strbuf_take(tl_strbuf *buffer);
// Appends `text` as a JSON string with quotes and escapes (invalid UTF-8 becomes U+FFFD).
void tl_strbuf_append_json(tl_strbuf *buffer, tl_str text);
// The same of a C string; `null` for NULL.
void tl_strbuf_append_json_c(tl_strbuf *buffer, const char *text);
// Appends `text` as text or a quoted value of XML 1.0 and HTML: what they cannot hold (invalid UTF-8, control
// characters, U+FFFE and U+FFFF) becomes U+FFFD.
void tl_strbuf_append_markup(tl_strbuf *buffer, tl_str text);
// Shortest decimal text that reads back as the same double ("1e-06", "0.1", "inf", "-inf", "nan"); always has '.', 'e'
// or a name.
void tl_strbuf_append_double(tl_strbuf *buffer, double value);

#endif
