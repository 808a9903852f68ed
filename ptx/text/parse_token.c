// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The token that comes next: whether it is what is expected, and what is reported where it is not.
#include <stdarg.h>
#include <stdio.h>

#include "ptx/text/parser.h"

tl_loc tl_ptx_here(const ptx_parser *p) {
  return (tl_loc){p->source, p->token.offset, p->token.length};
}

bool tl_ptx_fail(ptx_parser *p, tl_loc loc, const char *format, ...) {
  if (p->failed) return false;
  p->failed = true;
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_diag_report(p->diags, TL_DIAG_PTX_SYNTAX, loc, "%s", text);
  return false;
}

void tl_ptx_next(ptx_parser *p) {
  p->token = tl_ptx_lexer_next(&p->lexer);
  if (p->token.kind == TL_PTX_TOKEN_WRONG) tl_ptx_fail(p, tl_ptx_here(p), "%.*s", TL_STR_ARG(p->token.text));
}

bool tl_ptx_is_punct(const ptx_parser *p, int punct) {
  return p->token.kind == TL_PTX_TOKEN_PUNCT && p->token.punct == punct;
}

bool tl_ptx_is_dot(const ptx_parser *p, const char *text) {
  return p->token.kind == TL_PTX_TOKEN_DOT && tl_str_is(p->token.text, text);
}

bool tl_ptx_take_punct(ptx_parser *p, int punct) {
  if (!tl_ptx_is_punct(p, punct)) return false;
  tl_ptx_next(p);
  return true;
}

bool tl_ptx_expect(ptx_parser *p, int punct, const char *where) {
  if (tl_ptx_take_punct(p, punct)) return true;
  return tl_ptx_fail(p, tl_ptx_here(p), "'%c' is expected here, in %s", punct, where);
}

bool tl_ptx_take_number(ptx_parser *p, const char *what, uint64_t *out) {
  *out = 0;
  if (p->token.kind != TL_PTX_TOKEN_INTEGER) return tl_ptx_fail(p, tl_ptx_here(p), "%s is expected here", what);
  *out = p->token.value;
  tl_ptx_next(p);
  return true;
}
