// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the printers of the spec model share; lies below them.
#ifndef TL_FRONTEND_SPEC_PRINT_PART_H
#define TL_FRONTEND_SPEC_PRINT_PART_H

#include "frontend/spec/spec.h"

void tl_spec_print_indent(int indent, tl_strbuf *out);
// The text, quoted where plain YAML would read it otherwise; likewise an expression.
void tl_spec_print_value(tl_str text, tl_strbuf *out);
void tl_spec_print_expr_value(const tl_expr *value, tl_strbuf *out);
// `key: value` at an indentation; ends the line. Nothing for NULL.
void tl_spec_print_expr(const char *key, const tl_expr *value, int indent, tl_strbuf *out);
// "a, b, c".
void tl_spec_print_list(tl_expr *const *items, uint32_t len, tl_strbuf *out);

#endif
