// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constant expressions (PTX ISA, Constants): 64-bit integers, which are signed unless written in hexadecimal and too
// large; floats by their bits or in decimal.
#include <math.h>
#include <string.h>

#include "ptx/text/parser.h"
#include "support/dtype.h"

enum { MAX_EXPRESSION_DEPTH = 64 };

static bool expression(ptx_parser *p, int level, uint32_t depth, uint64_t *out);

static bool primary(ptx_parser *p, uint32_t depth, uint64_t *out) {
  if (depth > MAX_EXPRESSION_DEPTH) return tl_ptx_fail(p, tl_ptx_here(p), "an expression that is nested too deeply");
  if (tl_ptx_take_punct(p, '(')) {
    // A cast, (.s64) or (.u64), changes nothing here.
    if (p->token.kind == TL_PTX_TOKEN_DOT) {
      tl_ptx_next(p);
      return tl_ptx_expect(p, ')', "a cast") && primary(p, depth + 1, out);
    }
    return expression(p, 0, depth + 1, out) && tl_ptx_expect(p, ')', "an expression");
  }
  int op = p->token.kind == TL_PTX_TOKEN_PUNCT ? p->token.punct : 0;
  if (op == '-' || op == '+' || op == '~' || op == '!') {
    tl_ptx_next(p);
    if (!primary(p, depth + 1, out)) return false;
    if (op == '-') *out = -*out;
    if (op == '~') *out = ~*out;
    if (op == '!') *out = !*out;
    return true;
  }
  if (p->token.kind == TL_PTX_TOKEN_WORD && tl_str_is(p->token.text, "WARP_SZ")) {
    *out = 32;
  } else if (p->token.kind == TL_PTX_TOKEN_INTEGER) {
    *out = p->token.value;
  } else {
    return tl_ptx_fail(p, tl_ptx_here(p),
                       p->token.kind == TL_PTX_TOKEN_PUNCT && p->token.punct == '}' ? "';' is expected here"
                                                                                    : "a constant is expected here");
  }
  tl_ptx_next(p);
  return true;
}

// The binding strength of a binary operator, from 1; 0: none comes next.
static int strength(const ptx_parser *p) {
  static const struct {
    int punct, strength;
  } operators[] = {{'|', 1}, {'^', 2}, {'&', 3}, {TL_PTX_SHL, 4}, {TL_PTX_SHR, 4},
                   {'+', 5}, {'-', 5}, {'*', 6}, {'/', 6},        {'%', 6}};
  for (size_t i = 0; p->token.kind == TL_PTX_TOKEN_PUNCT && i < sizeof operators / sizeof operators[0]; i++)
    if (operators[i].punct == p->token.punct) return operators[i].strength;
  return 0;
}

static bool combine(ptx_parser *p, int op, uint64_t right, tl_loc loc, uint64_t *left) {
  if ((op == '/' || op == '%') && (!right || (right == UINT64_MAX && *left == (uint64_t)INT64_MIN)))
    return tl_ptx_fail(p, loc, "a division that has no result");
  switch (op) {
    case '|':
      *left |= right;
      break;
    case '^':
      *left ^= right;
      break;
    case '&':
      *left &= right;
      break;
    case TL_PTX_SHL:
      *left = right < 64 ? *left << right : 0;
      break;
    case TL_PTX_SHR:
      *left = right < 64 ? *left >> right : 0;
      break;
    case '+':
      *left += right;
      break;
    case '-':
      *left -= right;
      break;
    case '*':
      *left *= right;
      break;
    case '/':
      *left = (uint64_t)((int64_t)*left / (int64_t)right);
      break;
    default:
      *left = (uint64_t)((int64_t)*left % (int64_t)right);
      break;
  }
  return true;
}

static bool expression(ptx_parser *p, int level, uint32_t depth, uint64_t *out) {
  if (!primary(p, depth, out)) return false;
  for (int next; (next = strength(p)) > level;) {
    int op = p->token.punct;
    tl_loc loc = tl_ptx_here(p);
    tl_ptx_next(p);
    uint64_t right;
    if (!expression(p, next, depth + 1, &right) || !combine(p, op, right, loc, out)) return false;
  }
  return true;
}

bool tl_ptx_integer(ptx_parser *p, uint64_t *out) {
  return expression(p, 0, 0, out);
}

uint64_t tl_ptx_float_bits(const tl_ptx_token *token, bool is_negative, tl_ptx_type type) {
  bool is_single = token->kind == TL_PTX_TOKEN_FLOAT32;
  uint32_t single;
  uint64_t bits = token->value;
  float narrow;
  double wide;
  if (is_negative) bits ^= is_single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
  single = (uint32_t)bits;
  memcpy(&narrow, &single, sizeof narrow);
  memcpy(&wide, &bits, sizeof wide);
  if (type == TL_PTX_F32 && !is_single) {
    narrow = (float)wide;
    memcpy(&single, &narrow, sizeof single);
    return single;
  }
  if (type == TL_PTX_F64 && is_single) {
    wide = (double)narrow;
    memcpy(&bits, &wide, sizeof bits);
    return bits;
  }
  if (type == TL_PTX_F16 || type == TL_PTX_BF16) {
    uint16_t half = 0;
    tl_dtype_store_float(type == TL_PTX_F16 ? TL_DTYPE_F16 : TL_DTYPE_BF16, &half, 0,
                         is_single ? (double)narrow : wide);
    return half;
  }
  return bits;
}

bool tl_ptx_constant(ptx_parser *p, tl_ptx_type type, uint64_t *out) {
  tl_ptx_lexer before = p->lexer;
  tl_ptx_token token = p->token;
  bool is_negative = tl_ptx_is_punct(p, '-');
  if (is_negative || tl_ptx_is_punct(p, '+')) tl_ptx_next(p);
  if (p->token.kind == TL_PTX_TOKEN_FLOAT32 || p->token.kind == TL_PTX_TOKEN_FLOAT64) {
    *out = tl_ptx_float_bits(&p->token, is_negative, type);
    tl_ptx_next(p);
    return true;
  }
  p->lexer = before;
  p->token = token;
  return tl_ptx_integer(p, out);
}
