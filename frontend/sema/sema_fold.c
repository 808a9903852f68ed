// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators on constants. Functions are in sema_fold_call.c.
#include "frontend/sema/sema_fold.h"

#include <math.h>

#include "ir/scalar/scalar.h"

tl_const tl_const_int(int64_t value) {
  return (tl_const){.kind = TL_CONST_INT, .i = value, .f = (double)value};
}
tl_const tl_const_float(double value) {
  return (tl_const){.kind = TL_CONST_FLOAT, .f = value};
}
tl_const tl_const_rounded(double value) {
  if (!(fabs(value) < 0x1p62)) return tl_const_float(value);
  return (tl_const){.kind = TL_CONST_INT, .i = (int64_t)value, .f = value, .is_rounded = true};
}
tl_const tl_const_bool(bool value) {
  return (tl_const){.kind = TL_CONST_BOOL, .i = value, .f = value};
}
tl_const tl_const_dtype(tl_dtype dtype) {
  return (tl_const){.kind = TL_CONST_DTYPE, .dtype = dtype};
}

double tl_const_to_double(const tl_const *value) {
  return value->kind == TL_CONST_FLOAT || value->is_rounded ? value->f : (double)value->i;
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
  switch (op) {
    case TL_EXPR_OP_NEG:
      if (a->kind == TL_CONST_FLOAT) {
        *out = tl_const_float(-a->f);
        return TL_FOLD_OK;
      }
      if (a->is_rounded) {
        *out = tl_const_rounded(-a->f);
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
    default:
      return TL_FOLD_TYPE;
  }
}

tl_opcode tl_fold_opcode(tl_expr_op op) {
  switch (op) {
    case TL_EXPR_OP_ADD:
      return TL_OP_ADD;
    case TL_EXPR_OP_SUB:
      return TL_OP_SUB;
    case TL_EXPR_OP_MUL:
      return TL_OP_MUL;
    case TL_EXPR_OP_DIV:
      return TL_OP_DIV;
    case TL_EXPR_OP_FLOORDIV:
      return TL_OP_FLOORDIV;
    case TL_EXPR_OP_MOD:
      return TL_OP_MOD;
    case TL_EXPR_OP_POW:
      return TL_OP_POW;
    case TL_EXPR_OP_BITAND:
      return TL_OP_AND;
    case TL_EXPR_OP_BITOR:
      return TL_OP_OR;
    case TL_EXPR_OP_BITXOR:
      return TL_OP_XOR;
    case TL_EXPR_OP_SHL:
      return TL_OP_SHL;
    case TL_EXPR_OP_SHR:
      return TL_OP_SHR;
    default:
      return TL_OPCODE_COUNT;
  }
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

static tl_fold_result fold_int_binary(tl_expr_op op, int64_t a, int64_t b, tl_const *out) {
  if (op == TL_EXPR_OP_POW) return fold_int_power(a, b, out);
  if (op == TL_EXPR_OP_DIV) {
    if (b == 0) return TL_FOLD_DIV_ZERO;
    *out = tl_const_float((double)a / (double)b);
    return TL_FOLD_OK;
  }
  int64_t result = 0;
  tl_scalar_result status = tl_scalar_exact_op(tl_fold_opcode(op), a, b, &result);
  *out = tl_const_int(result);
  switch (status) {
    case TL_SCALAR_OK:
      return TL_FOLD_OK;
    case TL_SCALAR_OVERFLOW:
      return TL_FOLD_OVERFLOW;
    case TL_SCALAR_DIV_ZERO:
      return TL_FOLD_DIV_ZERO;
    case TL_SCALAR_NEGATIVE_SHIFT:
    case TL_SCALAR_NO_MEANING:
      break;
  }
  return TL_FOLD_TYPE;
}

static tl_fold_result fold_float_binary(tl_expr_op op, double a, double b, tl_const *out) {
  bool divides = op == TL_EXPR_OP_DIV || op == TL_EXPR_OP_FLOORDIV || op == TL_EXPR_OP_MOD;
  if (divides && b == 0) return TL_FOLD_DIV_ZERO;
  double result;
  if (!tl_scalar_float_op(tl_fold_opcode(op), a, b, &result)) return TL_FOLD_TYPE;
  *out = tl_const_float(result);
  return TL_FOLD_OK;
}

// The float value of an op on integers of which one came from rounding a float.
static tl_const as_rounded(tl_expr_op op, const tl_const *a, const tl_const *b, const tl_const *integer) {
  double value;
  bool is_float_op = tl_scalar_float_op(tl_fold_opcode(op), tl_const_to_double(a), tl_const_to_double(b), &value);
  if (!is_float_op || integer->kind != TL_CONST_INT || value != (double)integer->i) return *integer;
  return (tl_const){.kind = TL_CONST_INT, .i = integer->i, .f = value, .is_rounded = true};
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
  if (!a->is_rounded && !b->is_rounded) return status;
  // A float does not overflow.
  if (status == TL_FOLD_OVERFLOW) return fold_float_binary(op, tl_const_to_double(a), tl_const_to_double(b), out);
  if (status == TL_FOLD_OK) *out = as_rounded(op, a, b, out);
  return status;
}

static bool predicate_of(tl_expr_op op, tl_ir_enum_CMP *out) {
  switch (op) {
    case TL_EXPR_OP_EQ:
      *out = TL_CMP_EQ;
      return true;
    case TL_EXPR_OP_NE:
      *out = TL_CMP_NE;
      return true;
    case TL_EXPR_OP_LT:
      *out = TL_CMP_LT;
      return true;
    case TL_EXPR_OP_LE:
      *out = TL_CMP_LE;
      return true;
    case TL_EXPR_OP_GT:
      *out = TL_CMP_GT;
      return true;
    case TL_EXPR_OP_GE:
      *out = TL_CMP_GE;
      return true;
    default:
      return false;
  }
}

tl_fold_result tl_fold_compare(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out) {
  if (a->kind == TL_CONST_DTYPE && b->kind == TL_CONST_DTYPE) {
    if (op != TL_EXPR_OP_EQ && op != TL_EXPR_OP_NE) return TL_FOLD_TYPE;
    *out = tl_const_bool((a->dtype == b->dtype) == (op == TL_EXPR_OP_EQ));
    return TL_FOLD_OK;
  }
  tl_ir_enum_CMP predicate;
  if (!tl_const_is_number(a) || !tl_const_is_number(b) || !predicate_of(op, &predicate)) return TL_FOLD_TYPE;
  *out = tl_const_bool(is_integral(a) && is_integral(b)
                           ? tl_scalar_compare_exact(predicate, a->i, b->i)
                           : tl_scalar_compare_floats(predicate, tl_const_to_double(a), tl_const_to_double(b)));
  return TL_FOLD_OK;
}
