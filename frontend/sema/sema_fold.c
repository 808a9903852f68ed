// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators on constants. Functions are in sema_fold_call.c.
#include "frontend/sema/sema_fold.h"

#include <math.h>

tl_const tl_const_int(int64_t value) {
  return (tl_const){.kind = TL_CONST_INT, .i = value, .f = (double)value};
}
tl_const tl_const_float(double value) {
  return (tl_const){.kind = TL_CONST_FLOAT, .f = value};
}
tl_const tl_const_bool(bool value) {
  return (tl_const){.kind = TL_CONST_BOOL, .i = value, .f = value};
}
tl_const tl_const_dtype(tl_dtype dtype) {
  return (tl_const){.kind = TL_CONST_DTYPE, .dtype = dtype};
}

double tl_const_to_double(const tl_const *value) {
  return value->kind == TL_CONST_FLOAT ? value->f : (double)value->i;
}

bool tl_const_is_number(const tl_const *value) {
  return value->kind == TL_CONST_INT || value->kind == TL_CONST_FLOAT || value->kind == TL_CONST_BOOL;
}

bool tl_const_truth(const tl_const *value, bool *out_truth) {
  if (value->kind != TL_CONST_BOOL && value->kind != TL_CONST_INT) return false;
  *out_truth = value->i != 0;
  return true;
}

void tl_const_print(const tl_const *value, tl_strbuf *out) {
  switch (value->kind) {
    case TL_CONST_INT:
      tl_strbuf_appendf(out, "%lld", (long long)value->i);
      break;
    case TL_CONST_FLOAT:
      tl_strbuf_append_double(out, value->f);
      break;
    case TL_CONST_BOOL:
      tl_strbuf_append_c(out, value->i ? "true" : "false");
      break;
    case TL_CONST_DTYPE:
      tl_strbuf_append_c(out, tl_dtype_name(value->dtype));
      break;
    case TL_CONST_DYNAMIC:
      tl_strbuf_append_c(out, "dynamic");
      break;
  }
}

static bool is_integral(const tl_const *a) {
  return a->kind == TL_CONST_INT || a->kind == TL_CONST_BOOL;
}

tl_fold_result tl_fold_unary(tl_expr_op op, const tl_const *a, tl_const *out) {
  if (!tl_const_is_number(a)) return TL_FOLD_TYPE;
  int64_t negated;
  switch ((int)op) {
    case TL_EXPR_OP_NEG:
      if (a->kind == TL_CONST_FLOAT) {
        *out = tl_const_float(-a->f);
        return TL_FOLD_OK;
      }
      if (__builtin_sub_overflow((int64_t)0, a->i, &negated)) return TL_FOLD_OVERFLOW;
      *out = tl_const_int(negated);
      return TL_FOLD_OK;
    case TL_EXPR_OP_POS:
      *out = a->kind == TL_CONST_BOOL ? tl_const_int(a->i) : *a;
      return TL_FOLD_OK;
    case TL_EXPR_OP_INVERT:
      if (a->kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
      *out = a->kind == TL_CONST_BOOL ? tl_const_bool(!a->i) : tl_const_int(~a->i);
      return TL_FOLD_OK;
    case TL_EXPR_OP_NOT:
      if (a->kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
      *out = tl_const_bool(!a->i);
      return TL_FOLD_OK;
  }
  return TL_FOLD_TYPE;
}

// Floor division and its remainder; the remainder has the sign of the divisor.
static tl_fold_result fold_floordiv(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder) {
  if (b == 0) return TL_FOLD_DIV_ZERO;
  if (b == -1) {
    *remainder = 0;
    return __builtin_sub_overflow((int64_t)0, a, quotient) ? TL_FOLD_OVERFLOW : TL_FOLD_OK;
  }
  *quotient = a / b;
  *remainder = a % b;
  if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
    *quotient -= 1;
    *remainder += b;
  }
  return TL_FOLD_OK;
}

static tl_fold_result fold_int_power(int64_t base, int64_t exponent, tl_const *out) {
  if (exponent < 0) {
    if (base == 0) return TL_FOLD_DIV_ZERO;
    *out = tl_const_float(pow((double)base, (double)exponent));
    return TL_FOLD_OK;
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return TL_FOLD_OVERFLOW;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return TL_FOLD_OVERFLOW;
  }
  *out = tl_const_int(result);
  return TL_FOLD_OK;
}

static tl_fold_result fold_shift(tl_expr_op op, int64_t a, int64_t count, tl_const *out) {
  if (count < 0) return TL_FOLD_TYPE;
  if (op == TL_EXPR_OP_SHR) {
    *out = tl_const_int(count > 63 ? (a < 0 ? -1 : 0) : a >> count);
    return TL_FOLD_OK;
  }
  if (a == 0) {
    *out = tl_const_int(0);
    return TL_FOLD_OK;
  }
  int64_t result;
  if (count > 62 || __builtin_mul_overflow(a, (int64_t)1 << count, &result)) return TL_FOLD_OVERFLOW;
  *out = tl_const_int(result);
  return TL_FOLD_OK;
}

static tl_fold_result fold_int_binary(tl_expr_op op, int64_t a, int64_t b, tl_const *out) {
  int64_t result = 0, other = 0;
  tl_fold_result status = TL_FOLD_OK;
  bool overflow = false;
  switch ((int)op) {
    case TL_EXPR_OP_ADD:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case TL_EXPR_OP_SUB:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case TL_EXPR_OP_MUL:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case TL_EXPR_OP_DIV:
      if (b == 0) return TL_FOLD_DIV_ZERO;
      *out = tl_const_float((double)a / (double)b);
      return TL_FOLD_OK;
    case TL_EXPR_OP_FLOORDIV:
      status = fold_floordiv(a, b, &result, &other);
      break;
    case TL_EXPR_OP_MOD:
      status = fold_floordiv(a, b, &other, &result);
      break;
    case TL_EXPR_OP_POW:
      return fold_int_power(a, b, out);
    case TL_EXPR_OP_BITAND:
      result = a & b;
      break;
    case TL_EXPR_OP_BITOR:
      result = a | b;
      break;
    case TL_EXPR_OP_BITXOR:
      result = a ^ b;
      break;
    case TL_EXPR_OP_SHL:
    case TL_EXPR_OP_SHR:
      return fold_shift(op, a, b, out);
    default:
      return TL_FOLD_TYPE;
  }
  *out = tl_const_int(result);
  return overflow ? TL_FOLD_OVERFLOW : status;
}

static tl_fold_result fold_float_binary(tl_expr_op op, double a, double b, tl_const *out) {
  double result;
  switch ((int)op) {
    case TL_EXPR_OP_ADD:
      result = a + b;
      break;
    case TL_EXPR_OP_SUB:
      result = a - b;
      break;
    case TL_EXPR_OP_MUL:
      result = a * b;
      break;
    case TL_EXPR_OP_DIV:
      if (b == 0) return TL_FOLD_DIV_ZERO;
      result = a / b;
      break;
    case TL_EXPR_OP_FLOORDIV:
      if (b == 0) return TL_FOLD_DIV_ZERO;
      result = floor(a / b);
      if (result == 0 && (a < 0) != (b < 0) && a != 0) result = -1;  // the quotient rounded to zero
      break;
    case TL_EXPR_OP_MOD:
      if (b == 0) return TL_FOLD_DIV_ZERO;
      result = fmod(a, b);
      if (result != 0 && (result < 0) != (b < 0)) result += b;
      break;
    case TL_EXPR_OP_POW:
      result = pow(a, b);
      break;
    default:
      return TL_FOLD_TYPE;
  }
  *out = tl_const_float(result);
  return TL_FOLD_OK;
}

tl_fold_result tl_fold_binary(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out) {
  if (!tl_const_is_number(a) || !tl_const_is_number(b)) return TL_FOLD_TYPE;
  if (op == TL_EXPR_OP_AND || op == TL_EXPR_OP_OR) {
    if (!is_integral(a) || !is_integral(b)) return TL_FOLD_TYPE;
    *out = tl_const_bool(op == TL_EXPR_OP_AND ? a->i && b->i : a->i || b->i);
    return TL_FOLD_OK;
  }
  if (!is_integral(a) || !is_integral(b))
    return fold_float_binary(op, tl_const_to_double(a), tl_const_to_double(b), out);
  bool is_bitwise = op == TL_EXPR_OP_BITAND || op == TL_EXPR_OP_BITOR || op == TL_EXPR_OP_BITXOR;
  tl_fold_result status = fold_int_binary(op, a->i, b->i, out);
  if (status == TL_FOLD_OK && is_bitwise && a->kind == TL_CONST_BOOL && b->kind == TL_CONST_BOOL)
    *out = tl_const_bool(out->i != 0);
  return status;
}

static bool compare_order(tl_expr_op op, int order, bool *out) {
  switch ((int)op) {
    case TL_EXPR_OP_EQ:
      *out = order == 0;
      return true;
    case TL_EXPR_OP_NE:
      *out = order != 0;
      return true;
    case TL_EXPR_OP_LT:
      *out = order < 0;
      return true;
    case TL_EXPR_OP_LE:
      *out = order <= 0;
      return true;
    case TL_EXPR_OP_GT:
      *out = order > 0;
      return true;
    case TL_EXPR_OP_GE:
      *out = order >= 0;
      return true;
  }
  return false;
}

tl_fold_result tl_fold_compare(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out) {
  bool result = false;
  if (a->kind == TL_CONST_DTYPE && b->kind == TL_CONST_DTYPE) {
    if (op != TL_EXPR_OP_EQ && op != TL_EXPR_OP_NE) return TL_FOLD_TYPE;
    *out = tl_const_bool((a->dtype == b->dtype) == (op == TL_EXPR_OP_EQ));
    return TL_FOLD_OK;
  }
  if (!tl_const_is_number(a) || !tl_const_is_number(b)) return TL_FOLD_TYPE;
  if (is_integral(a) && is_integral(b)) {
    if (!compare_order(op, a->i < b->i ? -1 : a->i > b->i, &result)) return TL_FOLD_TYPE;
  } else {
    double x = tl_const_to_double(a), y = tl_const_to_double(b);
    if (isnan(x) || isnan(y)) {
      result = op == TL_EXPR_OP_NE;
    } else if (!compare_order(op, x < y ? -1 : x > y, &result)) {
      return TL_FOLD_TYPE;
    }
  }
  *out = tl_const_bool(result);
  return TL_FOLD_OK;
}
