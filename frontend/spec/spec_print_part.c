// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values, expressions and lists as canonical spec YAML: what the printers of sections and statements share.
#include "frontend/spec/spec_print_part.h"

#include <string.h>

void tl_spec_print_indent(int indent, tl_strbuf *out) {
  for (int i = 0; i < indent; i++) tl_strbuf_append_char(out, ' ');
}

// Whether YAML reads the text as it stands as one plain scalar with this very text.
static bool is_plain(tl_str text) {
  if (!text.len || strchr("!&*{}[],#|>@`\"'%?", text.data[0])) return false;
  if (text.data[0] == '-' && (text.len == 1 || text.data[1] == ' ' || text.data[1] == '-')) return false;
  if (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == ':' || text.data[0] == ' ' || text.data[0] == ':')
    return false;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i], next = i + 1 < text.len ? text.data[i + 1] : '\0';
    if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7F) return false;
    if ((c == ':' && next == ' ') || (c == ' ' && next == '#')) return false;
  }
  return true;
}

void tl_spec_print_value(tl_str text, tl_strbuf *out) {
  if (is_plain(text))
    tl_strbuf_append(out, text);
  else
    tl_strbuf_append_json(out, text);
}

void tl_spec_print_expr_value(const tl_expr *value, tl_strbuf *out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(value, &text);
  tl_spec_print_value(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
}

void tl_spec_print_expr(const char *key, const tl_expr *value, int indent, tl_strbuf *out) {
  if (!value) return;
  tl_spec_print_indent(indent, out);
  tl_strbuf_appendf(out, "%s: ", key);
  tl_spec_print_expr_value(value, out);
  tl_strbuf_append_char(out, '\n');
}

void tl_spec_print_list(tl_expr *const *items, uint32_t len, tl_strbuf *out) {
  for (uint32_t i = 0; i < len; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    tl_expr_print(items[i], out);
  }
}
