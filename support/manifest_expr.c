// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integer expressions of the manifest: parser, printer and overflow-checked evaluation.
#include <stdlib.h>
#include <string.h>

#include "support/manifest_expr.h"
#include "support/status.h"

// Depth counts levels of the grammar, seven for a pair of parentheses.
enum { MAX_DEPTH = 1400, MAX_NODES = 10000 };

// ---- parsing

typedef struct parser {
  tl_arena *arena;
  tl_str text;
  size_t at;
  int depth;
  int nodes;
  tl_status error;  // the first one
} parser;

static const tl_mexpr *parse_level(parser *p, int prec);

static const tl_mexpr *fail(parser *p, const char *what) {
  if (!p->error) {
    p->error = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s at column %zu of the expression '%.*s'", what, p->at + 1,
                              TL_STR_ARG(p->text));
  }
  return NULL;
}

static const tl_mexpr *make(parser *p, mexpr_op op, const tl_mexpr *a, const tl_mexpr *b) {
  if (++p->nodes > MAX_NODES) return fail(p, "the expression is too large");
  tl_mexpr *expr = TL_NEW(p->arena, tl_mexpr);
  expr->op = op;
  expr->a = a;
  expr->b = b;
  return expr;
}

static bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static void skip_space(parser *p) {
  while (p->at < p->text.len && (p->text.data[p->at] == ' ' || p->text.data[p->at] == '\n')) p->at++;
}

static tl_str peek_word(parser *p) {
  skip_space(p);
  size_t end = p->at;
  while (end < p->text.len && is_name_char(p->text.data[end], end == p->at)) end++;
  return tl_str_sub(p->text, p->at, end - p->at);
}

static bool accept_word(parser *p, const char *word) {
  tl_str found = peek_word(p);
  if (!tl_str_is(found, word)) return false;
  p->at += found.len;
  return true;
}

static bool accept(parser *p, const char *token) {
  skip_space(p);
  size_t len = strlen(token);
  if (p->text.len - p->at < len || memcmp(p->text.data + p->at, token, len) != 0) return false;
  p->at += len;
  return true;
}

static const tl_mexpr *parse_int(parser *p) {
  uint64_t value = 0;
  bool any = false;
  while (p->at < p->text.len && p->text.data[p->at] >= '0' && p->text.data[p->at] <= '9') {
    uint64_t digit = (uint64_t)(p->text.data[p->at] - '0');
    if (value > (UINT64_C(9223372036854775807) - digit) / 10) return fail(p, "the integer does not fit 64 bits");
    value = value * 10 + digit;
    p->at++;
    any = true;
  }
  if (!any) return fail(p, "expected a value");
  tl_mexpr *expr = (tl_mexpr *)make(p, OP_INT, NULL, NULL);
  if (expr) expr->value = (int64_t)value;
  return expr;
}

static const tl_mexpr *parse_call(parser *p, mexpr_op op) {
  const tl_mexpr *result = parse_level(p, PREC_OR);
  if (!result) return NULL;
  int count = 1;
  while (accept(p, ",")) {
    const tl_mexpr *next = parse_level(p, PREC_OR);
    if (!next) return NULL;
    result = make(p, op, result, next);
    if (!result) return NULL;
    count++;
  }
  if (count < 2 || (op == OP_CEILDIV && count != 2)) return fail(p, "wrong number of arguments");
  if (!accept(p, ")")) return fail(p, "expected ')'");
  return result;
}

static const tl_mexpr *parse_atom(parser *p) {
  if (accept(p, "(")) {
    const tl_mexpr *inner = parse_level(p, PREC_OR);
    if (!inner) return NULL;
    return accept(p, ")") ? inner : fail(p, "expected ')'");
  }
  tl_str word = peek_word(p);
  if (word.len == 0) return parse_int(p);
  if (tl_str_is(word, "and") || tl_str_is(word, "or") || tl_str_is(word, "not")) return fail(p, "expected a value");
  p->at += word.len;
  if (accept(p, "(")) {
    if (tl_str_is(word, "min")) return parse_call(p, OP_MIN);
    if (tl_str_is(word, "max")) return parse_call(p, OP_MAX);
    if (tl_str_is(word, "ceildiv")) return parse_call(p, OP_CEILDIV);
    return fail(p, "unknown function");
  }
  tl_mexpr *expr = (tl_mexpr *)make(p, OP_NAME, NULL, NULL);
  if (expr) expr->name = tl_arena_copy_bytes(p->arena, word.data, word.len);
  return expr;
}

static const tl_mexpr *parse_unary(parser *p) {
  if (accept(p, "-")) {
    const tl_mexpr *a = parse_level(p, PREC_UNARY);
    if (a && a->op == OP_INT && a->value > 0) {
      tl_mexpr *negative = (tl_mexpr *)make(p, OP_INT, NULL, NULL);
      if (negative) negative->value = -a->value;
      return negative;
    }
    return a ? make(p, OP_NEG, a, NULL) : NULL;
  }
  return parse_atom(p);
}

// The operator of this strength that stands at the current place, or OP_INT when there is none.
static mexpr_op accept_binary(parser *p, int prec) {
  switch (prec) {
    case PREC_OR:
      return accept_word(p, "or") ? OP_OR : OP_INT;
    case PREC_AND:
      return accept_word(p, "and") ? OP_AND : OP_INT;
    case PREC_COMPARE:
      if (accept(p, "==")) return OP_EQ;
      if (accept(p, "!=")) return OP_NE;
      if (accept(p, "<=")) return OP_LE;
      if (accept(p, ">=")) return OP_GE;
      if (accept(p, "<")) return OP_LT;
      if (accept(p, ">")) return OP_GT;
      return OP_INT;
    case PREC_ADD:
      if (accept(p, "+")) return OP_ADD;
      return accept(p, "-") ? OP_SUB : OP_INT;
    case PREC_MUL:
      if (accept(p, "//")) return OP_FLOORDIV;
      if (accept(p, "*")) return OP_MUL;
      return accept(p, "%") ? OP_MOD : OP_INT;
    default:
      return OP_INT;
  }
}

// a < b <= c: both comparisons must hold.
static const tl_mexpr *parse_chain(parser *p) {
  const tl_mexpr *left = parse_level(p, PREC_ADD);
  const tl_mexpr *all = NULL;
  while (left) {
    mexpr_op op = accept_binary(p, PREC_COMPARE);
    if (op == OP_INT) return all ? all : left;
    const tl_mexpr *right = parse_level(p, PREC_ADD);
    if (!right) return NULL;
    const tl_mexpr *one = make(p, op, left, right);
    all = one && all ? make(p, OP_AND, all, one) : one;
    if (!all) return NULL;
    left = right;
  }
  return NULL;
}

static const tl_mexpr *parse_level(parser *p, int prec) {
  if (p->depth >= MAX_DEPTH) return fail(p, "the expression is nested too deeply");
  p->depth++;
  const tl_mexpr *left = NULL;
  if (prec == PREC_NOT) {
    if (accept_word(p, "not")) {
      const tl_mexpr *a = parse_level(p, PREC_NOT);
      left = a ? make(p, OP_NOT, a, NULL) : NULL;
    } else {
      left = parse_level(p, PREC_COMPARE);
    }
  } else if (prec == PREC_COMPARE) {
    left = parse_chain(p);
  } else if (prec == PREC_UNARY) {
    left = parse_unary(p);
  } else {
    left = parse_level(p, prec + 1);
    while (left) {
      mexpr_op op = accept_binary(p, prec);
      if (op == OP_INT) break;
      const tl_mexpr *right = parse_level(p, prec + 1);
      left = right ? make(p, op, left, right) : NULL;
    }
  }
  p->depth--;
  return left;
}

tl_status tl_mexpr_parse(tl_arena *arena, tl_str text, const tl_mexpr **out) {
  parser p = {.arena = arena, .text = text};
  const tl_mexpr *expr = parse_level(&p, PREC_OR);
  if (expr) {
    skip_space(&p);
    if (p.at != text.len) {
      fail(&p, "unexpected text");
      expr = NULL;
    }
  }
  *out = expr;
  return p.error;
}

const tl_mexpr *tl_mexpr_int(tl_arena *arena, int64_t value) {
  tl_mexpr *expr = TL_NEW(arena, tl_mexpr);
  expr->op = OP_INT;
  expr->value = value;
  return expr;
}

bool tl_mexpr_is_int(const tl_mexpr *expr, int64_t *out) {
  if (expr->op != OP_INT) return false;
  if (out) *out = expr->value;
  return true;
}

const char *tl_mexpr_as_name(const tl_mexpr *expr) {
  return expr->op == OP_NAME ? expr->name : NULL;
}

// ---- evaluation

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool overflows(mexpr_op op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
    case OP_ADD:
      return __builtin_add_overflow(a, b, out);
    case OP_SUB:
      return __builtin_sub_overflow(a, b, out);
    case OP_MUL:
      return __builtin_mul_overflow(a, b, out);
    case OP_FLOORDIV:
    case OP_MOD:
    case OP_CEILDIV:
      if (a == INT64_MIN && b == -1) return true;
      if (op == OP_FLOORDIV) *out = floor_div(a, b);
      if (op == OP_MOD) *out = a - floor_div(a, b) * b;
      if (op == OP_CEILDIV) *out = floor_div(a, b) + (a % b != 0);
      return false;
    default:
      return false;
  }
}

static tl_status quoted(const tl_mexpr *expr, const char *what) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_mexpr_print(expr, &text);
  tl_status status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s in '%s'", what, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return status;
}

static tl_status eval_name(const tl_mexpr *expr, const tl_mbinding *bindings, size_t num_bindings, int64_t *out) {
  for (size_t i = 0; i < num_bindings; i++) {
    if (strcmp(bindings[i].name, expr->name) == 0) {
      *out = bindings[i].value;
      return TL_OK;
    }
  }
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "'%s' has no value", expr->name);
}

tl_status tl_mexpr_eval(const tl_mexpr *expr, const tl_mbinding *bindings, size_t num_bindings, int64_t *out) {
  if (!expr) return tl_status_make(TL_STATUS_INTERNAL, "the manifest lacks an expression");
  if (expr->op == OP_INT) {
    *out = expr->value;
    return TL_OK;
  }
  if (expr->op == OP_NAME) return eval_name(expr, bindings, num_bindings, out);
  int64_t a = 0, b = 0;
  TL_TRY(tl_mexpr_eval(expr->a, bindings, num_bindings, &a));
  if ((expr->op == OP_AND && a == 0) || (expr->op == OP_OR && a != 0)) {  // short circuit, as in Python
    *out = a != 0;
    return TL_OK;
  }
  if (expr->b) TL_TRY(tl_mexpr_eval(expr->b, bindings, num_bindings, &b));
  switch (expr->op) {
    case OP_INT:
    case OP_NAME:
      break;
    case OP_NEG:
      if (a == INT64_MIN) return quoted(expr, "overflow");
      *out = -a;
      break;
    case OP_NOT:
      *out = a == 0;
      break;
    case OP_FLOORDIV:
    case OP_MOD:
    case OP_CEILDIV:
      if (b == 0) return quoted(expr, "division by zero");
      if (overflows(expr->op, a, b, out)) return quoted(expr, "overflow");
      break;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
      if (overflows(expr->op, a, b, out)) return quoted(expr, "overflow");
      break;
    case OP_MIN:
      *out = a < b ? a : b;
      break;
    case OP_MAX:
      *out = a > b ? a : b;
      break;
    case OP_EQ:
      *out = a == b;
      break;
    case OP_NE:
      *out = a != b;
      break;
    case OP_LT:
      *out = a < b;
      break;
    case OP_LE:
      *out = a <= b;
      break;
    case OP_GT:
      *out = a > b;
      break;
    case OP_GE:
      *out = a >= b;
      break;
    case OP_AND:
    case OP_OR:
      *out = b != 0;
      break;
  }
  return TL_OK;
}
