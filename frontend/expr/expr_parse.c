// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The expression grammar: precedence climbing with Python's levels, postfixes, slices and index-notation reductions.
#include <math.h>
#include <string.h>

#include "frontend/expr/expr_internal.h"

// Binding strength of the binary operators, weakest first. `not` binds between `and` and the comparisons; unary signs
// between the products and `**`.
enum {
  LEVEL_OR = 1,
  LEVEL_AND,
  LEVEL_NOT,
  LEVEL_COMPARE,
  LEVEL_BITOR,
  LEVEL_BITXOR,
  LEVEL_BITAND,
  LEVEL_SHIFT,
  LEVEL_SUM,
  LEVEL_PRODUCT,
  LEVEL_UNARY,
  LEVEL_POWER
};

static tl_expr *parse_binary(tl_expr_parser *parser, int min_level);

static uint32_t height_of(const tl_expr *expr) {
  return expr ? expr->height : 0;
}

static void raise_height(tl_expr *node, const tl_expr *child) {
  if (height_of(child) >= node->height) node->height = height_of(child) + 1;
}

// Fills in what every node has; [start, end) are its bytes of the text. NULL when a limit is passed.
static tl_expr *new_node(tl_expr_parser *parser, tl_expr_kind kind, uint32_t start, uint32_t end) {
  if (++parser->num_nodes > TL_EXPR_MAX_NODES) {
    tl_token at = {.start = start, .end = end};
    tl_expr_fail(parser, TL_DIAG_EXPR_LIMIT, &at, "the expression has more than %d parts", TL_EXPR_MAX_NODES);
    return NULL;
  }
  tl_expr *node = TL_NEW(parser->arena, tl_expr);
  node->kind = kind;
  node->loc = tl_expr_span(parser, start, end);
  node->height = 1;
  return node;
}

static uint32_t previous_end(const tl_expr_parser *parser) {
  return parser->pos ? parser->tokens[parser->pos - 1].end : 0;
}

static tl_expr *set_operands(tl_expr_parser *parser, tl_expr *node, tl_expr **operands, uint32_t len) {
  if (!node) return NULL;
  node->operands = tl_expr_copy_items(parser->arena, operands, len, sizeof(tl_expr *));
  node->num_operands = len;
  for (uint32_t i = 0; i < len; i++) raise_height(node, operands[i]);
  if (node->height > TL_EXPR_MAX_CHAIN + TL_EXPR_MAX_NESTING && !parser->failed) {
    parser->failed = true;
    tl_diag_report(parser->diags, TL_DIAG_EXPR_LIMIT, node->loc, "more than %d operators in a row", TL_EXPR_MAX_CHAIN);
    return NULL;
  }
  return node;
}

// Guards recursion; every production that can nest goes through here.
static bool enter(tl_expr_parser *parser) {
  if (parser->failed) return false;
  if (++parser->depth > TL_EXPR_MAX_NESTING + 1) {
    tl_expr_fail(parser, TL_DIAG_EXPR_LIMIT, tl_expr_peek(parser), "the expression is nested more than %d levels deep",
                 TL_EXPR_MAX_NESTING);
    return false;
  }
  return true;
}

static tl_expr *leave(tl_expr_parser *parser, tl_expr *expr) {
  parser->depth--;
  return parser->failed ? NULL : expr;
}

static tl_str copy_text(tl_expr_parser *parser, tl_str text) {
  return (tl_str){tl_arena_copy_bytes(parser->arena, text.data, text.len), text.len};
}

// Removes the quotes and the escapes \\ \' \" \n \t of a string token.
static tl_str unquote(tl_expr_parser *parser, tl_str token) {
  char *copy = tl_arena_alloc(parser->arena, token.len + 1, 1);
  size_t used = 0;
  for (size_t i = 1; i + 1 < token.len; i++) {
    char c = token.data[i];
    if (c == '\\' && i + 2 < token.len) {
      c = token.data[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    copy[used++] = c;
  }
  return (tl_str){copy, used};
}

static bool is_reduction_name(tl_str name) {
  static const char *const names[] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (tl_str_is(name, names[i])) return true;
  return false;
}

// "name [in lo:hi]" inside the brackets of a reduction or on the left of a reference.
static bool parse_reduction_index(tl_expr_parser *parser, tl_reduction_index *out) {
  *out = (tl_reduction_index){0};
  if (!tl_expr_parse_declared_name(parser, &out->name, &out->loc)) return false;
  if (!tl_expr_accept(parser, TL_TOKEN_IN)) return true;
  out->lo = tl_expr_parse_conditional(parser);
  if (!out->lo || !tl_expr_expect(parser, TL_TOKEN_COLON, "`:` between the bounds of the index")) return false;
  out->hi = tl_expr_parse_conditional(parser);
  return out->hi != NULL;
}

static tl_expr *parse_reduction(tl_expr_parser *parser, const tl_token *name) {
  TL_VEC(tl_reduction_index) indices = {0};
  tl_expr_next(parser);  // [
  bool ok = true;
  do {
    tl_reduction_index index;
    ok = parse_reduction_index(parser, &index);
    if (ok) tl_vec_push(&indices, index);
  } while (ok && tl_expr_accept(parser, TL_TOKEN_COMMA));
  ok = ok && tl_expr_expect(parser, TL_TOKEN_RBRACKET, "`,` or `]` behind the index") &&
       tl_expr_expect(parser, TL_TOKEN_LPAREN, "`(`");
  tl_expr *body = ok ? tl_expr_parse_conditional(parser) : NULL;
  tl_expr *node = NULL;
  if (body && tl_expr_expect(parser, TL_TOKEN_RPAREN, "an operator or `)`")) {
    node = new_node(parser, TL_EXPR_REDUCTION, name->start, previous_end(parser));
    if (node) {
      node->text = copy_text(parser, tl_expr_token_text(parser, name));
      node->indices = tl_expr_copy_items(parser->arena, indices.items, indices.len, sizeof(tl_reduction_index));
      node->num_indices = (uint32_t)indices.len;
      for (size_t i = 0; i < indices.len; i++) {
        raise_height(node, indices.items[i].lo);
        raise_height(node, indices.items[i].hi);
      }
      node = set_operands(parser, node, &body, 1);
    }
  }
  tl_vec_fini(&indices);
  return node;
}

static bool starts_reduction(const tl_expr_parser *parser, const tl_token *name) {
  const tl_token *open = tl_expr_peek(parser);
  if (open->kind != TL_TOKEN_LBRACKET || !is_reduction_name(tl_expr_token_text(parser, name))) return false;
  // `max` may also be an argument's name: only `max[…](` is a reduction.
  return open->match && parser->tokens[open->match].kind == TL_TOKEN_RBRACKET &&
         parser->tokens[open->match + 1].kind == TL_TOKEN_LPAREN;
}

// The arguments behind `name(`.
static tl_expr *parse_call(tl_expr_parser *parser, const tl_token *name) {
  TL_VEC(tl_expr *) operands = {0};
  TL_VEC(tl_keyword) keywords = {0};
  tl_expr_next(parser);  // (
  bool ok = true;
  if (!tl_expr_accept(parser, TL_TOKEN_RPAREN)) {
    do {
      const tl_token *first = tl_expr_peek(parser);
      if (first->kind == TL_TOKEN_NAME && tl_expr_peek_at(parser, 1)->kind == TL_TOKEN_ASSIGN) {
        tl_keyword keyword = {.name = copy_text(parser, tl_expr_token_text(parser, first)),
                              .loc = tl_expr_token_loc(parser, first)};
        parser->pos += 2;
        keyword.value = tl_expr_parse_conditional(parser);
        ok = keyword.value != NULL;
        if (ok) tl_vec_push(&keywords, keyword);
        continue;
      }
      if (keywords.len) {
        tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, first, "a positional argument stands behind a keyword argument");
        ok = false;
        break;
      }
      tl_expr *operand = tl_expr_parse_conditional(parser);
      ok = operand != NULL;
      if (ok) tl_vec_push(&operands, operand);
    } while (ok && tl_expr_accept(parser, TL_TOKEN_COMMA));
    ok = ok && tl_expr_expect(parser, TL_TOKEN_RPAREN, "an operator, `,` or `)`");
  }
  tl_expr *node = ok ? new_node(parser, TL_EXPR_CALL, name->start, previous_end(parser)) : NULL;
  if (node) {
    node->text = copy_text(parser, tl_expr_token_text(parser, name));
    node->keywords = tl_expr_copy_items(parser->arena, keywords.items, keywords.len, sizeof(tl_keyword));
    node->num_keywords = (uint32_t)keywords.len;
    for (size_t i = 0; i < keywords.len; i++) raise_height(node, keywords.items[i].value);
    node = set_operands(parser, node, operands.items, (uint32_t)operands.len);
  }
  tl_vec_fini(&operands);
  tl_vec_fini(&keywords);
  return node;
}

static tl_expr *parse_name(tl_expr_parser *parser) {
  const tl_token *token = tl_expr_next(parser);
  tl_str text = tl_expr_token_text(parser, token);
  if (tl_expr_peek(parser)->kind == TL_TOKEN_LPAREN) return parse_call(parser, token);
  if (starts_reduction(parser, token)) return parse_reduction(parser, token);
  if (tl_str_is(text, "range")) {
    tl_expr_fail(parser, TL_DIAG_EXPR_RESERVED, token, "`range` is reserved: it is written `range(lo, hi, step)`");
    return NULL;
  }
  bool is_true = tl_str_is(text, "true") || tl_str_is(text, "True");
  bool is_false = tl_str_is(text, "false") || tl_str_is(text, "False");
  bool is_inf = tl_str_is(text, "inf"), is_nan = tl_str_is(text, "nan");
  tl_expr_kind kind = TL_EXPR_NAME;
  if (is_true || is_false) kind = TL_EXPR_BOOL;
  if (is_inf || is_nan) kind = TL_EXPR_FLOAT;
  if (tl_str_is(text, "None")) kind = TL_EXPR_NONE;
  tl_expr *node = new_node(parser, kind, token->start, token->end);
  if (!node) return NULL;
  node->int_value = is_true;
  if (is_inf) node->float_value = INFINITY;
  if (is_nan) node->float_value = NAN;
  if (kind == TL_EXPR_NAME) node->text = copy_text(parser, text);
  return node;
}

static tl_expr *parse_primary(tl_expr_parser *parser) {
  if (parser->failed) return NULL;
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind == TL_TOKEN_NAME) return parse_name(parser);
  if (token->kind == TL_TOKEN_INT && token->int_value == INT64_MIN) {
    tl_str text = tl_expr_token_text(parser, token);
    tl_expr_fail(parser, TL_DIAG_EXPR_NUMBER, token, "the integer does not fit 64 bits signed: `%.*s`",
                 TL_STR_ARG(text));
    return NULL;
  }
  if (token->kind == TL_TOKEN_INT || token->kind == TL_TOKEN_FLOAT || token->kind == TL_TOKEN_STRING) {
    tl_expr_next(parser);
    tl_expr_kind kind = token->kind == TL_TOKEN_INT     ? TL_EXPR_INT
                        : token->kind == TL_TOKEN_FLOAT ? TL_EXPR_FLOAT
                                                        : TL_EXPR_STRING;
    tl_expr *node = new_node(parser, kind, token->start, token->end);
    if (!node) return NULL;
    node->int_value = token->int_value;
    node->float_value = token->float_value;
    if (kind == TL_EXPR_STRING) node->text = unquote(parser, tl_expr_token_text(parser, token));
    return node;
  }
  if (token->kind == TL_TOKEN_LPAREN) {
    tl_expr_next(parser);
    tl_expr *inner = tl_expr_parse_conditional(parser);
    if (!inner || !tl_expr_expect(parser, TL_TOKEN_RPAREN, "an operator or `)`")) return NULL;
    return inner;
  }
  tl_expr_fail_expected(parser, "a value");
  return NULL;
}

static bool at_subscript_end(const tl_expr_parser *parser) {
  tl_token_kind kind = tl_expr_peek(parser)->kind;
  return kind == TL_TOKEN_COMMA || kind == TL_TOKEN_RBRACKET || kind == TL_TOKEN_END;
}

// The part of a slice behind `lo:`: [hi][:step].
static bool parse_slice_rest(tl_expr_parser *parser, tl_subscript *out) {
  out->kind = TL_SUBSCRIPT_RANGE;
  if (!at_subscript_end(parser) && tl_expr_peek(parser)->kind != TL_TOKEN_COLON) {
    out->hi = tl_expr_parse_conditional(parser);
    if (!out->hi) return false;
  }
  if (tl_expr_accept(parser, TL_TOKEN_COLON) && !at_subscript_end(parser)) {
    out->step = tl_expr_parse_conditional(parser);
    if (!out->step) return false;
  }
  return true;
}

static bool parse_subscript(tl_expr_parser *parser, tl_subscript *out) {
  *out = (tl_subscript){.kind = TL_SUBSCRIPT_ELEMENT};
  if (parser->failed) return false;
  const tl_token *first = tl_expr_peek(parser);
  if (parser->allow_ranges && first->kind == TL_TOKEN_NAME && tl_expr_peek_at(parser, 1)->kind == TL_TOKEN_IN) {
    tl_reduction_index range;
    if (!parse_reduction_index(parser, &range)) return false;
    tl_vec_push(&parser->ranges, range);
    out->lo = new_node(parser, TL_EXPR_NAME, first->start, first->end);
    if (!out->lo) return false;
    out->lo->text = range.name;
  } else if (first->kind == TL_TOKEN_COLON_PLUS) {
    tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, first, "a slice `lo:+n` needs its start");
    return false;
  } else if (tl_expr_accept(parser, TL_TOKEN_COLON)) {
    if (!parse_slice_rest(parser, out)) return false;
  } else {
    out->lo = tl_expr_parse_conditional(parser);
    if (!out->lo) return false;
    if (tl_expr_accept(parser, TL_TOKEN_COLON)) {
      if (!parse_slice_rest(parser, out)) return false;
    } else if (tl_expr_accept(parser, TL_TOKEN_COLON_PLUS)) {
      out->kind = TL_SUBSCRIPT_COUNT;
      out->hi = tl_expr_parse_conditional(parser);
      if (!out->hi) return false;
    } else if (out->lo->kind == TL_EXPR_NONE) {
      out->kind = TL_SUBSCRIPT_NEWAXIS;
      out->lo = NULL;
    }
  }
  out->loc = tl_expr_span(parser, first->start, previous_end(parser));
  return true;
}

static tl_expr *parse_index(tl_expr_parser *parser, tl_expr *base, uint32_t start) {
  TL_VEC(tl_subscript) subscripts = {0};
  tl_expr_next(parser);  // [
  bool ok = true;
  if (tl_expr_peek(parser)->kind == TL_TOKEN_RBRACKET) {
    tl_expr_fail_expected(parser, "a subscript");
    ok = false;
  }
  while (ok) {
    tl_subscript subscript;
    ok = parse_subscript(parser, &subscript);
    if (ok) tl_vec_push(&subscripts, subscript);
    if (!ok || !tl_expr_accept(parser, TL_TOKEN_COMMA)) break;
  }
  ok = ok && tl_expr_expect(parser, TL_TOKEN_RBRACKET, "an operator, `,` or `]`");
  tl_expr *node = ok ? new_node(parser, TL_EXPR_INDEX, start, previous_end(parser)) : NULL;
  if (node) {
    node->subscripts = tl_expr_copy_items(parser->arena, subscripts.items, subscripts.len, sizeof(tl_subscript));
    node->num_subscripts = (uint32_t)subscripts.len;
    for (size_t i = 0; i < subscripts.len; i++) {
      raise_height(node, subscripts.items[i].lo);
      raise_height(node, subscripts.items[i].hi);
      raise_height(node, subscripts.items[i].step);
    }
    node = set_operands(parser, node, &base, 1);
  }
  tl_vec_fini(&subscripts);
  return node;
}

tl_expr *tl_expr_parse_postfix(tl_expr_parser *parser) {
  uint32_t start = tl_expr_peek(parser)->start;
  tl_expr *value = parse_primary(parser);
  while (value && !parser->failed) {
    const tl_token *token = tl_expr_peek(parser);
    if (token->kind == TL_TOKEN_LBRACKET) {
      value = parse_index(parser, value, start);
    } else if (token->kind == TL_TOKEN_TRANSPOSE) {
      tl_expr_next(parser);
      value = set_operands(parser, new_node(parser, TL_EXPR_TRANSPOSE, start, token->end), &value, 1);
    } else if (token->kind == TL_TOKEN_LPAREN) {
      tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, token, "only a function's name can be called");
      return NULL;
    } else {
      break;
    }
  }
  return parser->failed ? NULL : value;
}

static int level_of(const tl_token *token) {
  if (token->kind == TL_TOKEN_OR) return LEVEL_OR;
  if (token->kind == TL_TOKEN_AND) return LEVEL_AND;
  if (token->kind != TL_TOKEN_OPERATOR) return 0;
  switch (token->op) {
    case TL_EXPR_OP_EQ:
    case TL_EXPR_OP_NE:
    case TL_EXPR_OP_LT:
    case TL_EXPR_OP_LE:
    case TL_EXPR_OP_GT:
    case TL_EXPR_OP_GE:
      return LEVEL_COMPARE;
    case TL_EXPR_OP_BITOR:
      return LEVEL_BITOR;
    case TL_EXPR_OP_BITXOR:
      return LEVEL_BITXOR;
    case TL_EXPR_OP_BITAND:
      return LEVEL_BITAND;
    case TL_EXPR_OP_SHL:
    case TL_EXPR_OP_SHR:
      return LEVEL_SHIFT;
    case TL_EXPR_OP_ADD:
    case TL_EXPR_OP_SUB:
      return LEVEL_SUM;
    case TL_EXPR_OP_MUL:
    case TL_EXPR_OP_DIV:
    case TL_EXPR_OP_FLOORDIV:
    case TL_EXPR_OP_MOD:
    case TL_EXPR_OP_MATMUL:
      return LEVEL_PRODUCT;
    case TL_EXPR_OP_POW:
      return LEVEL_POWER;
    case TL_EXPR_OP_NONE:
    case TL_EXPR_OP_NEG:
    case TL_EXPR_OP_POS:
    case TL_EXPR_OP_INVERT:
    case TL_EXPR_OP_NOT:
    case TL_EXPR_OP_AND:
    case TL_EXPR_OP_OR:
      return 0;
  }
  return 0;
}

static tl_expr *make_unary(tl_expr_parser *parser, tl_expr_op op, uint32_t start, tl_expr *operand) {
  if (!operand) return NULL;
  tl_expr *node = new_node(parser, TL_EXPR_UNARY, start, previous_end(parser));
  if (node) node->op = op;
  return set_operands(parser, node, &operand, 1);
}

// x, x ** y; the power binds tighter than a sign on its left and takes one on its right: -x ** -y is -(x ** (-y)).
static tl_expr *parse_power(tl_expr_parser *parser);

static tl_expr *parse_sign(tl_expr_parser *parser) {
  const tl_token *token = tl_expr_peek(parser);
  tl_expr_op op = TL_EXPR_OP_NONE;
  if (token->kind == TL_TOKEN_OPERATOR) {
    if (token->op == TL_EXPR_OP_SUB) op = TL_EXPR_OP_NEG;
    if (token->op == TL_EXPR_OP_ADD) op = TL_EXPR_OP_POS;
    if (token->op == TL_EXPR_OP_INVERT) op = TL_EXPR_OP_INVERT;
  }
  if (op == TL_EXPR_OP_NONE) return parse_power(parser);
  tl_expr_next(parser);
  const tl_token *number = tl_expr_peek(parser);
  if (op == TL_EXPR_OP_NEG && number->kind == TL_TOKEN_INT && number->int_value == INT64_MIN) {
    // -2^63 fits although 2^63 does not.
    tl_expr_next(parser);
    tl_expr *node = new_node(parser, TL_EXPR_INT, token->start, number->end);
    if (node) node->int_value = INT64_MIN;
    return node;
  }
  if (!enter(parser)) return NULL;
  return leave(parser, make_unary(parser, op, token->start, parse_sign(parser)));
}

static tl_expr *parse_power(tl_expr_parser *parser) {
  uint32_t start = tl_expr_peek(parser)->start;
  tl_expr *base = tl_expr_parse_postfix(parser);
  const tl_token *token = tl_expr_peek(parser);
  if (!base || token->kind != TL_TOKEN_OPERATOR || token->op != TL_EXPR_OP_POW) return base;
  tl_expr_next(parser);
  if (!enter(parser)) return NULL;
  tl_expr *exponent = parse_sign(parser);
  if (!exponent) return leave(parser, NULL);
  tl_expr *node = new_node(parser, TL_EXPR_BINARY, start, previous_end(parser));
  if (node) node->op = TL_EXPR_OP_POW;
  return leave(parser, set_operands(parser, node, (tl_expr *[]){base, exponent}, 2));
}

// first < b <= c …: one node for the whole chain.
static tl_expr *parse_comparison(tl_expr_parser *parser, tl_expr *first, uint32_t start) {
  TL_VEC(tl_expr *) operands = {0};
  TL_VEC(tl_expr_op) ops = {0};
  tl_vec_push(&operands, first);
  bool ok = true;
  while (ok && level_of(tl_expr_peek(parser)) == LEVEL_COMPARE) {
    tl_vec_push(&ops, tl_expr_next(parser)->op);
    tl_expr *operand = parse_binary(parser, LEVEL_BITOR);
    ok = operand != NULL;
    if (ok) tl_vec_push(&operands, operand);
  }
  tl_expr *node = ok ? new_node(parser, TL_EXPR_COMPARE, start, previous_end(parser)) : NULL;
  if (node) {
    node->compare_ops = tl_expr_copy_items(parser->arena, ops.items, ops.len, sizeof(tl_expr_op));
    node = set_operands(parser, node, operands.items, (uint32_t)operands.len);
  }
  tl_vec_fini(&operands);
  tl_vec_fini(&ops);
  return node;
}

static tl_expr *parse_not(tl_expr_parser *parser, int min_level) {
  const tl_token *token = tl_expr_peek(parser);
  if (min_level > LEVEL_NOT) {
    tl_diag *diag = tl_expr_fail(parser, TL_DIAG_EXPR_SYNTAX, token, "`not` cannot stand behind this operator");
    if (diag) tl_diag_add_hint(parser->diags, diag, "put it in parentheses: `(not x)`");
    return NULL;
  }
  tl_expr_next(parser);
  if (!enter(parser)) return NULL;
  return leave(parser, make_unary(parser, TL_EXPR_OP_NOT, token->start, parse_binary(parser, LEVEL_NOT)));
}

static tl_expr_op binary_op(const tl_token *token) {
  if (token->kind == TL_TOKEN_OR) return TL_EXPR_OP_OR;
  if (token->kind == TL_TOKEN_AND) return TL_EXPR_OP_AND;
  return token->op;
}

static tl_expr *parse_binary(tl_expr_parser *parser, int min_level) {
  if (parser->failed) return NULL;
  uint32_t start = tl_expr_peek(parser)->start;
  tl_expr *left = tl_expr_peek(parser)->kind == TL_TOKEN_NOT ? parse_not(parser, min_level) : parse_sign(parser);
  while (left) {
    const tl_token *token = tl_expr_peek(parser);
    int level = level_of(token);
    if (level == 0 || level < min_level) return left;
    if (level == LEVEL_COMPARE) {
      left = parse_comparison(parser, left, start);
      continue;
    }
    tl_expr_next(parser);
    tl_expr *right = parse_binary(parser, level + 1);
    if (!right) return NULL;
    tl_expr *node = new_node(parser, TL_EXPR_BINARY, start, previous_end(parser));
    if (node) node->op = binary_op(token);
    left = set_operands(parser, node, (tl_expr *[]){left, right}, 2);
  }
  return NULL;
}

tl_expr *tl_expr_parse_conditional(tl_expr_parser *parser) {
  if (!enter(parser)) return NULL;
  uint32_t start = tl_expr_peek(parser)->start;
  tl_expr *value = parse_binary(parser, LEVEL_OR);
  if (!value || !tl_expr_accept(parser, TL_TOKEN_IF)) return leave(parser, value);
  tl_expr *condition = parse_binary(parser, LEVEL_OR);
  if (!condition || !tl_expr_expect(parser, TL_TOKEN_ELSE, "`else` (a choice is written `a if condition else b`)"))
    return leave(parser, NULL);
  tl_expr *other = tl_expr_parse_conditional(parser);
  if (!other) return leave(parser, NULL);
  tl_expr *node = new_node(parser, TL_EXPR_CONDITIONAL, start, previous_end(parser));
  return leave(parser, set_operands(parser, node, (tl_expr *[]){value, condition, other}, 3));
}
