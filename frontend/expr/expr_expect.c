// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the expression parser says when the next token is not the one it needs.
#include <stdarg.h>
#include <string.h>

#include "frontend/expr/expr_internal.h"
#include "support/source.h"

static bool diag_is_silent(tl_expr_parser *parser) {
  bool silent = parser->failed;
  parser->failed = true;
  return silent;
}

tl_diag *tl_expr_fail(tl_expr_parser *parser, tl_diag_code code, const tl_token *token, const char *format, ...) {
  if (diag_is_silent(parser)) return NULL;
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  return tl_diag_report(parser->diags, code, tl_expr_token_loc(parser, token), "%s", message);
}

// Whether a YAML comment starts right behind the text: what looks like the rest of the expression was taken for one.
static bool comment_follows(const tl_expr_parser *parser, uint32_t *out_offset) {
  const tl_text_map *map = &parser->text.map;
  const tl_source *source = map->offsets ? tl_sources_get(parser->diags->sources, map->source) : NULL;
  if (!source) return false;
  size_t at = map->offsets[parser->text.text.len];
  bool blank = false;
  while (at < source->text.len && (source->text.data[at] == ' ' || source->text.data[at] == '\t')) {
    at++;
    blank = true;
  }
  if (!blank || at >= source->text.len || source->text.data[at] != '#') return false;
  *out_offset = (uint32_t)at;
  return true;
}

void tl_expr_fail_expected(tl_expr_parser *parser, const char *what) {
  if (parser->failed) return;
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind != TL_TOKEN_END) {
    tl_str found = tl_expr_token_text(parser, token);
    tl_diag *diag = tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, token, "expected %s, found `%.*s`", what,
                                 tl_expr_shown(found), found.data);
    if (diag && token->kind == TL_TOKEN_ASSIGN)
      tl_diag_add_hint(parser->diags, diag, "%s",
                       strstr(what, "`->`") ? "source and target are joined by `->`" : "equality is written `==`");
    return;
  }
  uint32_t hash;
  if (parser->num_tokens > 1 && comment_follows(parser, &hash)) {
    parser->failed = true;
    tl_loc loc = {parser->text.map.source, hash, 1};
    tl_diag *diag = tl_diag_report(parser->diags, TL_DIAG_EXPR_COMMENT, loc, "the expression ends here; is `#` meant?");
    tl_diag_add_hint(parser->diags, diag, "expected %s before the comment", what);
    return;
  }
  tl_diag *diag = tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, token, "expected %s, but the expression ends here", what);
  if (diag && strstr(what, "`->`"))
    tl_diag_add_hint(parser->diags, diag, "what is read stands first, behind `->` what is written");
}

bool tl_expr_accept(tl_expr_parser *parser, tl_token_kind kind) {
  if (parser->failed || tl_expr_peek(parser)->kind != kind) return false;
  tl_expr_next(parser);
  return true;
}

bool tl_expr_expect(tl_expr_parser *parser, tl_token_kind kind, const char *what) {
  if (tl_expr_accept(parser, kind)) return true;
  tl_expr_fail_expected(parser, what);
  return false;
}

bool tl_expr_expect_end(tl_expr_parser *parser) {
  if (parser->failed) return false;
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind == TL_TOKEN_END) return true;
  if (token->kind == TL_TOKEN_RPAREN || token->kind == TL_TOKEN_RBRACKET) {
    tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, token, "`%s` closes a bracket that was not opened",
                 token->kind == TL_TOKEN_RPAREN ? ")" : "]");
    return false;
  }
  tl_expr_fail_expected(parser, "an operator or the end of the expression");
  return false;
}
