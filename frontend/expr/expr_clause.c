// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands around expressions in a spec: assignments, arrows, `in` clauses, types, names and ranges.
#include <string.h>

#include "frontend/expr/expr_internal.h"
#include "frontend/expr/suggest.h"
#include "support/dtype.h"

// expr (, expr)* up to (not including) a token that cannot continue the list.
static bool parse_items(tl_expr_parser *parser, tl_expr ***out_items, uint32_t *out_len) {
  TL_VEC(tl_expr *) items = {0};
  bool ok = true;
  do {
    tl_expr *item = tl_expr_parse_conditional(parser);
    ok = item != NULL;
    if (ok) tl_vec_push(&items, item);
  } while (ok && tl_expr_accept(parser, TL_TOKEN_COMMA));
  if (ok) {
    *out_items = tl_expr_copy_items(parser->arena, items.items, items.len, sizeof(tl_expr *));
    *out_len = (uint32_t)items.len;
  }
  tl_vec_fini(&items);
  return ok;
}

static tl_str copy_token(tl_expr_parser *parser, const tl_token *token) {
  tl_str text = tl_expr_token_text(parser, token);
  return (tl_str){tl_arena_copy_bytes(parser->arena, text.data, text.len), text.len};
}

bool tl_expr_parse_declared_name(tl_expr_parser *parser, tl_str *out_name, tl_loc *out_loc) {
  if (parser->failed) return false;
  const tl_token *token = tl_expr_peek(parser);
  bool is_word = token->kind >= TL_TOKEN_NAME && token->kind <= TL_TOKEN_IN;
  tl_str text = tl_expr_token_text(parser, token);
  if (is_word && tl_expr_is_reserved(text)) {
    tl_diag *diag = tl_expr_fail(parser, TL_DIAG_BAD_NAME, token, "`%.*s` is a reserved word and cannot be a name here",
                                 TL_STR_ARG(text));
    tl_expr_hint_reserved(parser->diags, diag, text);
    return false;
  }
  if (token->kind != TL_TOKEN_NAME) {
    tl_expr_fail_expected(parser, "a name");
    return false;
  }
  *out_name = copy_token(parser, token);
  *out_loc = tl_expr_token_loc(parser, token);
  tl_expr_next(parser);
  return true;
}

tl_expr *tl_expr_parse(tl_arena *arena, tl_diags *diags, tl_located_text text) {
  tl_expr_parser parser;
  tl_expr *expr = NULL;
  if (tl_expr_parser_init(&parser, arena, diags, text)) {
    expr = tl_expr_parse_conditional(&parser);
    if (expr && !tl_expr_expect_end(&parser)) expr = NULL;
  }
  tl_expr_parser_fini(&parser);
  return expr;
}

// The base name of X, X[…] and X.T; NULL when the expression is none of these.
static const tl_expr *assignable_base(const tl_expr *expr) {
  while (expr->kind == TL_EXPR_INDEX) expr = expr->operands[0];
  return expr->kind == TL_EXPR_NAME ? expr : NULL;
}

static bool parse_target(tl_expr_parser *parser, tl_expr **out) {
  const tl_token *first = tl_expr_peek(parser);
  tl_expr *target = tl_expr_parse_postfix(parser);
  if (!target) return false;
  if (!assignable_base(target) || (target->kind == TL_EXPR_INDEX && target->operands[0]->kind != TL_EXPR_NAME)) {
    tl_token span = {.start = first->start, .end = parser->tokens[parser->pos - 1].end};
    tl_str text = tl_expr_token_text(parser, &span);
    tl_diag *diag =
        tl_expr_fail(parser, TL_DIAG_EXPR_TARGET, &span, "cannot assign to `%.*s`", tl_expr_shown(text), text.data);
    const char *known = target->kind == TL_EXPR_CALL ? tl_suggest_for_function(target->text) : NULL;
    if (diag && known)
      tl_diag_add_hint(parser->diags, diag, "%s", known);
    else if (diag && target->kind == TL_EXPR_CALL && tl_expr_peek(parser)->kind == TL_TOKEN_END)
      tl_diag_add_hint(parser->diags, diag, "a macro is used by `use: %.*s`", tl_expr_shown(text), text.data);
    return false;
  }
  *out = target;
  return true;
}

// "= += -= *= /= max= min="
static bool parse_assign_op(tl_expr_parser *parser, tl_str *out_op) {
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind == TL_TOKEN_ASSIGN || token->kind == TL_TOKEN_COMPOUND_ASSIGN) {
    *out_op = copy_token(parser, token);
    tl_expr_next(parser);
    return true;
  }
  const tl_token *equals = tl_expr_peek_at(parser, 1);
  bool is_min = tl_expr_token_is(parser, token, "min"), is_max = tl_expr_token_is(parser, token, "max");
  if ((is_min || is_max) && equals->kind == TL_TOKEN_ASSIGN && equals->start == token->end) {
    *out_op = is_min ? TL_STR("min=") : TL_STR("max=");
    parser->pos += 2;
    return true;
  }
  tl_expr_fail_expected(parser, "an assignment (`=`, `+=`, `-=`, `*=`, `/=`, `max=` or `min=`)");
  return false;
}

static bool parse_assign(tl_expr_parser *parser, tl_assign *out) {
  *out = (tl_assign){0};
  TL_VEC(tl_expr *) targets = {0};
  bool ok = true;
  do {
    tl_expr *target = NULL;
    ok = parse_target(parser, &target);
    if (ok) tl_vec_push(&targets, target);
  } while (ok && tl_expr_accept(parser, TL_TOKEN_COMMA));
  ok = ok && parse_assign_op(parser, &out->op);
  if (ok) {
    parser->allow_ranges = false;
    out->value = tl_expr_parse_conditional(parser);
    ok = out->value && tl_expr_expect_end(parser);
  }
  out->targets = tl_expr_copy_items(parser->arena, targets.items, targets.len, sizeof(tl_expr *));
  out->num_targets = (uint32_t)targets.len;
  out->loc = parser->text.loc;
  tl_vec_fini(&targets);
  return ok;
}

bool tl_expr_parse_assign(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_assign *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_assign(&parser, out);
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_reference(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_reference_stmt *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text);
  parser.allow_ranges = true;
  ok = ok && parse_assign(&parser, &out->assign);
  out->ranges = tl_expr_copy_items(arena, parser.ranges.items, parser.ranges.len, sizeof(tl_reduction_index));
  out->num_ranges = (uint32_t)parser.ranges.len;
  out->loc = text.loc;
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_range(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_reduction_index *out) {
  tl_expr_parser parser;
  *out = (tl_reduction_index){0};
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) &&
            tl_expr_parse_declared_name(&parser, &out->name, &out->loc) && tl_expr_expect(&parser, TL_TOKEN_IN, "`in`");
  ok = ok && (out->lo = tl_expr_parse_conditional(&parser)) &&
       tl_expr_expect(&parser, TL_TOKEN_COLON, "`:` between the bounds") &&
       (out->hi = tl_expr_parse_conditional(&parser)) && tl_expr_expect_end(&parser);
  tl_expr_parser_fini(&parser);
  return ok;
}

// Two expressions with a token between them.
static bool parse_two(tl_expr_parser *parser, tl_token_kind between, const char *expected, tl_expr **out_first,
                      tl_expr **out_second) {
  return (*out_first = tl_expr_parse_conditional(parser)) && tl_expr_expect(parser, between, expected) &&
         (*out_second = tl_expr_parse_conditional(parser)) && tl_expr_expect_end(parser);
}

bool tl_expr_parse_arrow(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_expr **out_from, tl_expr **out_to) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) &&
            parse_two(&parser, TL_TOKEN_ARROW, "an operator or `->`", out_from, out_to);
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_pair(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_expr **out_first,
                        tl_expr **out_second) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) &&
            parse_two(&parser, TL_TOKEN_COMMA, "an operator or `,`", out_first, out_second);
  tl_expr_parser_fini(&parser);
  return ok;
}

static bool parse_names(tl_expr_parser *parser, tl_str **out_names, tl_loc **out_locs, uint32_t *out_len) {
  TL_VEC(tl_str) names = {0};
  TL_VEC(tl_loc) locs = {0};
  bool ok = true;
  do {
    tl_str name;
    tl_loc loc;
    ok = tl_expr_parse_declared_name(parser, &name, &loc);
    if (!ok) break;
    tl_vec_push(&names, name);
    tl_vec_push(&locs, loc);
  } while (tl_expr_accept(parser, TL_TOKEN_COMMA));
  if (ok) {
    *out_names = tl_expr_copy_items(parser->arena, names.items, names.len, sizeof(tl_str));
    *out_locs = tl_expr_copy_items(parser->arena, locs.items, locs.len, sizeof(tl_loc));
    *out_len = (uint32_t)names.len;
  }
  tl_vec_fini(&names);
  tl_vec_fini(&locs);
  return ok;
}

bool tl_expr_parse_names(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_str **out_names, tl_loc **out_locs,
                         uint32_t *out_len) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_names(&parser, out_names, out_locs, out_len) &&
            tl_expr_expect_end(&parser);
  tl_expr_parser_fini(&parser);
  return ok;
}

static bool parse_macro_head(tl_expr_parser *parser, tl_macro *out) {
  if (!tl_expr_parse_declared_name(parser, &out->name, &out->loc)) return false;
  if (!tl_expr_accept(parser, TL_TOKEN_LPAREN)) return tl_expr_expect_end(parser);
  if (tl_expr_peek(parser)->kind != TL_TOKEN_RPAREN &&
      !parse_names(parser, &out->params, &out->param_locs, &out->num_params))
    return false;
  if (!parser->failed && tl_expr_peek(parser)->kind == TL_TOKEN_ASSIGN) {
    tl_diag *diag =
        tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, tl_expr_peek(parser), "a macro's parameters have no defaults");
    tl_diag_add_hint(parser->diags, diag, "each use gives every argument");
    return false;
  }
  return tl_expr_expect(parser, TL_TOKEN_RPAREN, "`)`") && tl_expr_expect_end(parser);
}

bool tl_expr_parse_macro_head(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_macro *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_macro_head(&parser, out);
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_in(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_in_clause *out) {
  tl_expr_parser parser;
  *out = (tl_in_clause){0};
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) &&
            parse_names(&parser, &out->names, &out->name_locs, &out->num_names) &&
            tl_expr_expect(&parser, TL_TOKEN_IN, "`in` (a loop is written `i in n`)") &&
            parse_items(&parser, &out->extents, &out->num_extents);
  if (ok && tl_expr_peek(&parser)->kind == TL_TOKEN_COLON) {
    tl_diag *diag = tl_expr_fail(&parser, TL_DIAG_EXPR_SYNTAX, tl_expr_peek(&parser), "a loop takes no slice");
    tl_diag_add_hint(diags, diag, "a range is written `i in range(lo, hi)`");
  }
  ok = ok && tl_expr_expect_end(&parser);
  tl_expr_parser_fini(&parser);
  return ok;
}

// A dtype: a name that is a dtype or may be a param.
static bool parse_dtype(tl_expr_parser *parser, tl_expr **out) {
  if (parser->failed) return false;
  if (tl_expr_peek(parser)->kind != TL_TOKEN_NAME) {
    tl_expr_fail_expected(parser, "a dtype (such as f16, or a param that holds one)");
    return false;
  }
  const tl_token *token = tl_expr_next(parser);
  tl_expr *node = TL_NEW(parser->arena, tl_expr);
  node->kind = TL_EXPR_NAME;
  node->text = copy_token(parser, token);
  node->loc = tl_expr_token_loc(parser, token);
  node->height = 1;
  *out = node;
  return true;
}

// "[a, b]"; without brackets the type is a scalar's.
static bool parse_dims(tl_expr_parser *parser, tl_expr ***out_dims, uint32_t *out_len) {
  if (!tl_expr_accept(parser, TL_TOKEN_LBRACKET)) return !parser->failed;
  if (!parse_items(parser, out_dims, out_len)) return false;
  return tl_expr_expect(parser, TL_TOKEN_RBRACKET, "an operator, `,` or `]`");
}

static bool parse_parenthesised(tl_expr_parser *parser, tl_expr ***out_items, uint32_t *out_len) {
  return tl_expr_expect(parser, TL_TOKEN_LPAREN, "`(`") && parse_items(parser, out_items, out_len) &&
         tl_expr_expect(parser, TL_TOKEN_RPAREN, "an operator, `,` or `)`");
}

static bool fail_type_word(tl_expr_parser *parser, const char *const *words, size_t num_words, const char *expected) {
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind != TL_TOKEN_NAME) {
    tl_expr_fail_expected(parser, expected);
    return false;
  }
  tl_str text = tl_expr_token_text(parser, token);
  tl_diag *diag =
      tl_expr_fail(parser, TL_DIAG_BAD_TYPE, token, "expected %s, found `%.*s`", expected, TL_STR_ARG(text));
  const char *near = tl_suggest(text, words, num_words);
  if (diag && near) tl_diag_add_hint(parser->diags, diag, "did you mean `%s`?", near);
  return false;
}

static bool parse_arg_suffixes(tl_expr_parser *parser, tl_arg *out) {
  static const char *const words[] = {"strides", "align", "optional"};
  while (!parser->failed && tl_expr_peek(parser)->kind != TL_TOKEN_END) {
    const tl_token *token = tl_expr_peek(parser);
    if (tl_expr_token_is(parser, token, "strides") && !out->strides && out->is_tensor) {
      tl_expr_next(parser);
      if (!parse_parenthesised(parser, &out->strides, &out->num_strides)) return false;
      if (out->num_strides != out->num_dims) {
        tl_token span = {.start = token->start, .end = parser->tokens[parser->pos - 1].end};
        tl_expr_fail(parser, TL_DIAG_BAD_TYPE, &span, "%u strides for %u dims", out->num_strides, out->num_dims);
      }
    } else if (tl_expr_token_is(parser, token, "align") && !out->align && out->is_tensor) {
      tl_expr_next(parser);
      tl_expr **items = NULL;
      uint32_t len = 0;
      if (!parse_parenthesised(parser, &items, &len)) return false;
      if (len != 1) tl_expr_fail(parser, TL_DIAG_BAD_TYPE, token, "`align` takes one number of bytes");
      out->align = items[0];
    } else if (tl_expr_token_is(parser, token, "optional") && !out->is_optional && out->is_tensor) {
      tl_expr_next(parser);
      out->is_optional = true;
    } else {
      return fail_type_word(parser, words, 3,
                            out->is_tensor ? "`strides(…)`, `align(n)`, `optional` or the end of the type"
                                           : "`[` or the end of the type");
    }
  }
  return !parser->failed;
}

bool tl_expr_parse_arg_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_arg *out) {
  tl_expr_parser parser;
  out->type_loc = text.loc;
  out->access = TL_ARG_IN;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text);
  if (ok) {
    const tl_token *first = tl_expr_peek(&parser);
    bool two_names = tl_expr_peek_at(&parser, 1)->kind == TL_TOKEN_NAME;
    if (first->kind == TL_TOKEN_IN) {
      tl_expr_next(&parser);
    } else if (two_names && (tl_expr_token_is(&parser, first, "out") || tl_expr_token_is(&parser, first, "inout"))) {
      out->access = tl_expr_token_is(&parser, first, "out") ? TL_ARG_OUT : TL_ARG_INOUT;
      tl_expr_next(&parser);
    } else if (two_names && tl_dtype_parse(tl_expr_token_text(&parser, first)) == TL_DTYPE_NONE) {
      static const char *const words[] = {"in", "out", "inout"};
      fail_type_word(&parser, words, 3, "`in`, `out`, `inout` or a dtype");
    }
    ok = parse_dtype(&parser, &out->dtype) && parse_dims(&parser, &out->dims, &out->num_dims);
    out->is_tensor = out->num_dims > 0;
    ok = ok && parse_arg_suffixes(&parser, out);
  }
  tl_expr_parser_fini(&parser);
  return ok;
}

// `word(x)`: one expression in parentheses.
static bool parse_counted(tl_expr_parser *parser, const char *problem, tl_expr **out) {
  const tl_token *token = tl_expr_next(parser);
  tl_expr **items = NULL;
  uint32_t len = 0;
  if (!parse_parenthesised(parser, &items, &len)) return false;
  if (len != 1) tl_expr_fail(parser, TL_DIAG_BAD_TYPE, token, "%s", problem);
  *out = items[0];
  return len == 1;
}

static bool parse_tile_suffixes(tl_expr_parser *parser, tl_tile_decl *out) {
  static const char *const words[] = {"layout", "stages"};
  while (!parser->failed && tl_expr_peek(parser)->kind != TL_TOKEN_END) {
    const tl_token *token = tl_expr_peek(parser);
    if (tl_expr_token_is(parser, token, "stages") && !out->stages && !out->layout) {
      if (!parse_counted(parser, "`stages` takes one number of tiles", &out->stages)) return false;
    } else if (tl_expr_token_is(parser, token, "layout") && !out->layout) {
      tl_expr_next(parser);
      out->layout = tl_expr_parse_postfix(parser);
      if (!out->layout) return false;
    } else if (out->layout) {
      return tl_expr_expect_end(parser);
    } else {
      return fail_type_word(parser, words, out->stages ? 1 : 2, "`layout …` or the end of the type");
    }
  }
  return !parser->failed;
}

bool tl_expr_parse_tile_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_tile_decl *out) {
  tl_expr_parser parser;
  out->type_loc = text.loc;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_dtype(&parser, &out->dtype) &&
            parse_dims(&parser, &out->dims, &out->num_dims) && parse_tile_suffixes(&parser, out);
  tl_expr_parser_fini(&parser);
  return ok;
}

static bool parse_barrier(tl_expr_parser *parser, tl_barrier_decl *out) {
  static const char *const kinds[] = {"mbarrier", "named"}, *const words[] = {"arrivals"};
  tl_expr **dims = NULL;
  uint32_t len = 0;
  const tl_token *kind = tl_expr_peek(parser);
  out->is_named = tl_expr_token_is(parser, kind, "named");
  if (!out->is_named && !tl_expr_token_is(parser, kind, "mbarrier"))
    return fail_type_word(parser, kinds, 2, "`mbarrier` or `named`");
  tl_expr_next(parser);
  if (!out->is_named && !parse_dims(parser, &dims, &len)) return false;
  if (len > 1) tl_expr_fail(parser, TL_DIAG_BAD_TYPE, kind, "mbarriers are counted by one number: `mbarrier[n]`");
  out->depth = len ? dims[0] : NULL;
  if (!tl_expr_token_is(parser, tl_expr_peek(parser), "arrivals"))
    return fail_type_word(parser, words, 1, "`arrivals(n)`");
  return parse_counted(parser, "`arrivals` takes one number: how often a phase is arrived at", &out->arrivals) &&
         tl_expr_expect_end(parser);
}

bool tl_expr_parse_barrier(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_barrier_decl *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_barrier(&parser, out);
  tl_expr_parser_fini(&parser);
  return ok;
}

static bool parse_view_type(tl_expr_parser *parser, tl_view *out) {
  if (!parse_dtype(parser, &out->dtype) || !parse_dims(parser, &out->dims, &out->num_dims)) return false;
  if (!out->num_dims) {
    tl_expr_fail_expected(parser, "`[` and the view's dims");
    return false;
  }
  return tl_expr_expect_end(parser);
}

bool tl_expr_parse_view_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_view *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) && parse_view_type(&parser, out);
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_view(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_view *out) {
  tl_expr_parser parser;
  bool ok = tl_expr_parser_init(&parser, arena, diags, text) &&
            tl_expr_parse_declared_name(&parser, &out->base, &out->base_loc);
  if (ok && !tl_expr_token_is(&parser, tl_expr_peek(&parser), "as")) {
    tl_expr_fail_expected(&parser, "`as` (a view is written `Q as dtype[dims]`)");
    ok = false;
  }
  if (ok) {
    tl_expr_next(&parser);
    ok = parse_view_type(&parser, out);
  }
  tl_expr_parser_fini(&parser);
  return ok;
}

bool tl_expr_parse_param(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_param *out) {
  out->kind = TL_PARAM_VALUE;
  tl_expr *value = tl_expr_parse(arena, diags, text);
  if (!value) return false;
  if (value->kind == TL_EXPR_NAME && tl_str_is(value->text, "auto")) {
    out->kind = TL_PARAM_AUTO;
    return true;
  }
  bool is_name = value->kind == TL_EXPR_NAME, is_call = value->kind == TL_EXPR_CALL;
  bool is_wide = (is_name || is_call) && tl_str_is(value->text, "dynamic64");
  if (!is_wide && !((is_name || is_call) && tl_str_is(value->text, "dynamic"))) {
    out->value = value;
    return true;
  }
  out->kind = TL_PARAM_DYNAMIC;
  out->is_wide = is_wide;
  if (is_name) return true;
  if (value->num_operands != 1 || value->num_keywords) {
    tl_diag_report(diags, TL_DIAG_BAD_TYPE, value->loc, "`%.*s` takes one number, of which the value is a multiple",
                   TL_STR_ARG(value->text));
    return false;
  }
  out->divisor = value->operands[0];
  return true;
}
