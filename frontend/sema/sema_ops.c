// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators on values: promotion, then one or a few IR ops. Two constants fold.
#include <math.h>

#include "frontend/sema/sema.h"

static tl_sema_value report_operands(tl_sema *sema, tl_expr_op op, const tl_sema_value *a, const tl_sema_value *b,
                                     const char *wanted, tl_loc loc) {
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "%s takes %s, not %s and %s",
                                 tl_sema_op_text(op), wanted, tl_sema_type_text(sema, a), tl_sema_type_text(sema, b));
  if (op == TL_EXPR_OP_BITXOR) tl_diag_add_hint(sema->diags, diag, "a power is written `x ** y`");
  return tl_sema_poison();
}

static tl_sema_value report_negative_shift(tl_sema *sema, tl_expr_op op, int64_t count, tl_loc loc) {
  tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "%s by %lld: the count must not be negative",
                 tl_sema_op_text(op), (long long)count);
  return tl_sema_poison();
}

static bool is_dtype_const(const tl_sema_value *value) {
  return value->kind == TL_SEMA_CONST && value->constant.kind == TL_CONST_DTYPE;
}

static bool is_index(const tl_sema_value *value) {
  return value->kind == TL_SEMA_VALUE && value->value->type->kind == TL_TYPE_INDEX;
}

static bool const_int(const tl_sema_value *value, int64_t *out) {
  if (value->kind != TL_SEMA_CONST || value->constant.kind != TL_CONST_INT) return false;
  *out = value->constant.i;
  return true;
}

// Both operands in the common type; false after errors.
static bool convert_both(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b, const tl_type *type, tl_loc loc,
                         tl_value **x, tl_value **y) {
  *x = tl_sema_convert(sema, a, type, loc);
  *y = tl_sema_convert(sema, b, type, loc);
  sema->builder.loc = loc;
  return *x && *y;
}

static tl_value *emit_index(tl_sema *sema, tl_expr_op op, tl_value *x, tl_value *y) {
  tl_builder *builder = &sema->builder;
  int64_t count;
  switch (op) {
    case TL_EXPR_OP_ADD:
      return tl_index_add(builder, x, y);
    case TL_EXPR_OP_SUB:
      return tl_index_sub(builder, x, y);
    case TL_EXPR_OP_MUL:
      return tl_index_mul(builder, x, y);
    case TL_EXPR_OP_FLOORDIV:
      return tl_index_floordiv(builder, x, y);
    case TL_EXPR_OP_MOD:
      return tl_index_mod(builder, x, y);
    case TL_EXPR_OP_BITAND:
      // Of mathematical integers x & (2^n - 1) is x mod 2^n, which index analysis understands.
      if (tl_value_const_int(y, &count) && count >= 0 && count < INT64_MAX && (count & (count + 1)) == 0) {
        return tl_index_mod(builder, x, tl_build_index(builder, count + 1));
      }
      return tl_build_binary(builder, TL_OP_AND, x, y);
    case TL_EXPR_OP_BITOR:
      return tl_build_binary(builder, TL_OP_OR, x, y);
    case TL_EXPR_OP_BITXOR:
      return tl_build_binary(builder, TL_OP_XOR, x, y);
    case TL_EXPR_OP_SHL:
      if (tl_value_const_int(y, &count) && count >= 0 && count < 62) {
        return tl_index_mul(builder, x, tl_build_index(builder, (int64_t)1 << count));
      }
      return tl_build_binary(builder, TL_OP_SHL, x, y);
    case TL_EXPR_OP_SHR:
      if (tl_value_const_int(y, &count) && count >= 0 && count < 62) {
        return tl_index_floordiv(builder, x, tl_build_index(builder, (int64_t)1 << count));
      }
      return tl_build_binary(builder, TL_OP_SHR, x, y);
    default:
      return NULL;
  }
}

// The common type of two numbers if it is a float, else f32.
static const tl_type *float_type(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b) {
  const tl_type *type = tl_sema_common_type(sema, a, b);
  bool is_float = type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(type->dtype);
  return is_float ? type : tl_type_scalar(sema->module, TL_DTYPE_F32);
}

static tl_sema_value divide(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b, tl_loc loc) {
  const tl_type *type;
  if (tl_sema_is_integer(a) && tl_sema_is_integer(b)) {
    if (sema->index_position) {
      tl_diag *diag =
          tl_diag_report(sema->diags, TL_DIAG_INDEX_DIVISION, loc, "`/` on two integers gives a float, not an index");
      tl_diag_add_hint(sema->diags, diag, "use `//` for the floor of the quotient, ceildiv(a, b) for the ceiling");
      return tl_sema_poison();
    }
    type = tl_type_scalar(sema->module, TL_DTYPE_F32);
  } else {
    type = float_type(sema, a, b);
  }
  tl_value *x, *y;
  if (!convert_both(sema, a, b, type, loc, &x, &y)) return tl_sema_poison();
  return tl_sema_of_value(tl_build_binary(&sema->builder, TL_OP_DIV, x, y));
}

// A shift has the promoted type of its left side.
static tl_sema_value shift(tl_sema *sema, tl_expr_op op, const tl_sema_value *a, const tl_sema_value *b, tl_loc loc) {
  if (!tl_sema_is_integer(a) || !tl_sema_is_integer(b)) return report_operands(sema, op, a, b, "integers", loc);
  int64_t count;
  if (const_int(b, &count) && count < 0) return report_negative_shift(sema, op, count, loc);
  const tl_type *type = a->kind == TL_SEMA_CONST ? b->value->type : a->value->type;
  if (type->kind != TL_TYPE_INDEX) type = tl_type_scalar(sema->module, tl_sema_arithmetic_dtype(type->dtype));
  tl_value *x, *y;
  if (!convert_both(sema, a, b, type, loc, &x, &y)) return tl_sema_poison();
  return tl_sema_of_value(type->kind == TL_TYPE_INDEX ? emit_index(sema, op, x, y)
                                                      : tl_build_binary(&sema->builder, tl_fold_opcode(op), x, y));
}

static tl_sema_value float_op(tl_sema *sema, tl_opcode code, const tl_sema_value *a, const tl_sema_value *b,
                              tl_loc loc) {
  tl_value *x, *y;
  if (!convert_both(sema, a, b, float_type(sema, a, b), loc, &x, &y)) return tl_sema_poison();
  sema->builder.loc = loc;
  return tl_sema_of_value(tl_build_binary(&sema->builder, code, x, y));
}

tl_sema_value tl_sema_math2(tl_sema *sema, int function, const tl_sema_value *a, const tl_sema_value *b, tl_loc loc) {
  tl_value *x, *y;
  if (!convert_both(sema, a, b, float_type(sema, a, b), loc, &x, &y)) return tl_sema_poison();
  sema->builder.loc = loc;
  return tl_sema_of_value(tl_build_math2(&sema->builder, function, x, y));
}

// x ** 0.5 or x ** -0.5 by the function, which differs for -0.0 (pow takes it as 0) and for -inf (`at_minus_inf`).
static tl_value *half_power(tl_sema *sema, int function, tl_value *x, double at_minus_inf) {
  tl_builder *builder = &sema->builder;
  tl_value *zero = tl_build_const_float(builder, x->type, 0.0);
  tl_value *no_minus_zero = tl_build_binary(builder, TL_OP_ADD, x, zero);
  tl_value *root = tl_build_math(builder, function, no_minus_zero);
  tl_value *minus_inf = tl_build_const_float(builder, x->type, -INFINITY);
  tl_value *is_minus_inf = tl_build_cmp(builder, TL_CMP_EQ, x, minus_inf);
  tl_value *limit = tl_build_const_float(builder, x->type, at_minus_inf);
  return tl_build_select(builder, is_minus_inf, limit, root);
}

// A power that is one function of the side that is no constant: x ** 0.5, x ** -0.5, x ** -1, 2 ** y, 10 ** y. NULL:
// none of them.
static tl_value *power_as_function(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b, tl_loc loc,
                                   bool *out_failed) {
  static const struct {
    bool is_base;
    double constant;
    int function;
  } forms[] = {{false, 0.5, TL_MATH_SQRT},
               {false, -0.5, TL_MATH_RSQRT},
               {false, -1, TL_MATH_RCP},
               {true, 2, TL_MATH_EXP2},
               {true, 10, TL_MATH_EXP10}};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
    const tl_sema_value *known = forms[i].is_base ? a : b, *other = forms[i].is_base ? b : a;
    if (known->kind != TL_SEMA_CONST || !tl_const_is_number(&known->constant)) continue;
    if (tl_const_to_double(&known->constant) != forms[i].constant) continue;
    tl_value *x = tl_sema_convert(sema, other, float_type(sema, a, b), loc);
    *out_failed = x == NULL;
    if (!x) return NULL;
    if (forms[i].function == TL_MATH_SQRT) return half_power(sema, TL_MATH_SQRT, x, INFINITY);
    if (forms[i].function == TL_MATH_RSQRT) return half_power(sema, TL_MATH_RSQRT, x, 0);
    return tl_build_math(&sema->builder, forms[i].function, x);
  }
  return NULL;
}

// x ** n, n > 0, by repeated multiplication.
static tl_sema_value product_power(tl_sema *sema, tl_sema_value base, int exponent, tl_loc loc) {
  tl_sema_value result = tl_sema_poison();
  for (int n = exponent; n > 0 && base.kind != TL_SEMA_POISON; n >>= 1) {
    bool is_first = result.kind == TL_SEMA_POISON;
    if (n & 1) result = is_first ? base : tl_sema_binary(sema, TL_EXPR_OP_MUL, result, base, loc);
    if (n > 1) base = tl_sema_binary(sema, TL_EXPR_OP_MUL, base, base, loc);
  }
  return result;
}

// Products of integers wrap as products do. The error of products of floats grows with the exponent, so f32 and f64
// take few; 16-bit floats are multiplied in f32 and rounded once.
static tl_sema_value power(tl_sema *sema, tl_sema_value a, const tl_sema_value *b, tl_loc loc) {
  enum { MAX_EXPONENT = 64, MAX_FLOAT_EXPONENT = 8 };
  bool is_number = b->kind == TL_SEMA_CONST && tl_const_is_number(&b->constant);
  double exponent = is_number ? tl_const_to_double(&b->constant) : -1;
  bool is_integer = tl_sema_is_integer(&a) && tl_sema_is_integer(b);
  const tl_type *type = is_integer ? NULL : float_type(sema, &a, b);
  bool is_narrow = type && tl_dtype_bits(type->dtype) < 32;
  int most = is_integer || is_narrow ? MAX_EXPONENT : MAX_FLOAT_EXPONENT;
  if (!(exponent >= 0 && exponent <= most && exponent == (double)(int)exponent)) {
    bool failed = false;
    tl_value *value = power_as_function(sema, &a, b, loc, &failed);
    if (value || failed) return tl_sema_of_value(value);
    return float_op(sema, TL_OP_POW, &a, b, loc);
  }
  int n = (int)exponent;
  if (is_integer) {
    // In the type of the product, also where that is the base itself or an empty one.
    a = tl_sema_unary(sema, TL_EXPR_OP_POS, a, loc);
    if (n > 0 || a.kind != TL_SEMA_VALUE) return product_power(sema, a, n, loc);
    tl_sema_value one = tl_sema_of_const(tl_const_int(1));
    return tl_sema_of_value(tl_sema_convert(sema, &one, a.value->type, loc));
  }
  if (n == 0) {
    tl_sema_value one = tl_sema_of_const(tl_const_float(1));
    return tl_sema_of_value(tl_sema_convert(sema, &one, type, loc));
  }
  // A square is one product, which rounds once in any case.
  tl_dtype wide = is_narrow && n > 2 ? TL_DTYPE_F32 : type->dtype;
  tl_sema_value base = tl_sema_of_value(tl_sema_convert(sema, &a, type, loc));
  base = tl_sema_of_value(tl_sema_to_dtype(sema, &base, wide, loc));
  sema->builder.loc = loc;
  tl_sema_value result = product_power(sema, base, n, loc);
  return tl_sema_of_value(tl_sema_to_dtype(sema, &result, type->dtype, loc));
}

static bool is_bool_value(const tl_sema_value *value) {
  if (value->kind == TL_SEMA_CONST) return value->constant.kind == TL_CONST_BOOL;
  return value->value->type->kind == TL_TYPE_SCALAR && value->value->type->dtype == TL_DTYPE_BOOL;
}

static tl_sema_value fold_binary(tl_sema *sema, tl_expr_op op, const tl_sema_value *a, const tl_sema_value *b,
                                 tl_loc loc) {
  tl_const folded;
  if (op == TL_EXPR_OP_DIV && sema->index_position && tl_sema_is_integer(a) && tl_sema_is_integer(b)) {
    return divide(sema, a, b, loc);
  }
  tl_fold_result result = tl_fold_binary(op, &a->constant, &b->constant, &folded);
  if (result == TL_FOLD_OK) return tl_sema_of_const(folded);
  bool wants_integers = op == TL_EXPR_OP_SHL || op == TL_EXPR_OP_SHR || op == TL_EXPR_OP_BITAND ||
                        op == TL_EXPR_OP_BITOR || op == TL_EXPR_OP_BITXOR;
  if (result == TL_FOLD_TYPE && wants_integers && tl_sema_is_integer(a) && tl_sema_is_integer(b)) {
    return report_negative_shift(sema, op, b->constant.i, loc);
  }
  if (result == TL_FOLD_TYPE) return report_operands(sema, op, a, b, wants_integers ? "integers" : "numbers", loc);
  tl_sema_report_fold(sema->diags, result, loc, tl_sema_op_text(op));
  return tl_sema_poison();
}

tl_sema_value tl_sema_binary(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  if (a.kind == TL_SEMA_POISON || b.kind == TL_SEMA_POISON) return tl_sema_poison();
  if (a.kind == TL_SEMA_CONST && b.kind == TL_SEMA_CONST) return fold_binary(sema, op, &a, &b, loc);
  if (is_dtype_const(&a) || is_dtype_const(&b)) return report_operands(sema, op, &a, &b, "numbers", loc);
  int64_t divisor;
  // Of floats the quotient by 0 is infinite or NaN, as that by 0.0 is.
  bool is_integer = tl_sema_is_integer(&a) && tl_sema_is_integer(&b);
  bool floors = op == TL_EXPR_OP_FLOORDIV || op == TL_EXPR_OP_MOD;
  if (floors && is_integer && const_int(&b, &divisor) && divisor == 0) {
    tl_sema_report_fold(sema->diags, TL_FOLD_DIV_ZERO, loc, "");
    return tl_sema_poison();
  }
  bool is_bitwise = op == TL_EXPR_OP_BITAND || op == TL_EXPR_OP_BITOR || op == TL_EXPR_OP_BITXOR;
  if (op == TL_EXPR_OP_DIV) return divide(sema, &a, &b, loc);
  if (op == TL_EXPR_OP_SHL || op == TL_EXPR_OP_SHR) return shift(sema, op, &a, &b, loc);
  if (op == TL_EXPR_OP_POW) return power(sema, a, &b, loc);
  if (is_bitwise && (!tl_sema_is_integer(&a) || !tl_sema_is_integer(&b))) {
    return report_operands(sema, op, &a, &b, "integers", loc);
  }
  const tl_type *type = is_bitwise && is_bool_value(&a) && is_bool_value(&b)
                            ? tl_type_scalar(sema->module, TL_DTYPE_BOOL)
                            : tl_sema_common_type(sema, &a, &b);
  tl_value *x, *y;
  if (!convert_both(sema, &a, &b, type, loc, &x, &y)) return tl_sema_poison();
  if (type->kind == TL_TYPE_INDEX) return tl_sema_of_value(emit_index(sema, op, x, y));
  return tl_sema_of_value(tl_build_binary(&sema->builder, tl_fold_opcode(op), x, y));
}

tl_sema_value tl_sema_unary(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_loc loc) {
  if (a.kind == TL_SEMA_POISON) return a;
  if (a.kind == TL_SEMA_CONST) {
    tl_const folded;
    tl_fold_result result = tl_fold_unary(op, &a.constant, &folded);
    if (result == TL_FOLD_OK) return tl_sema_of_const(folded);
    tl_sema_report_fold(sema->diags, result, loc, tl_sema_op_text(op));
    return tl_sema_poison();
  }
  sema->builder.loc = loc;
  if (op == TL_EXPR_OP_NOT) {
    tl_sema_value condition = tl_sema_to_bool(sema, &a, loc);
    if (condition.kind != TL_SEMA_VALUE) return condition;
    return tl_sema_of_value(tl_build_unary(&sema->builder, TL_OP_NOT, condition.value));
  }
  const tl_type *type = a.value->type;
  if (op == TL_EXPR_OP_INVERT) {
    if (!tl_sema_is_integer(&a)) {
      tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`~` takes an integer, not %s",
                     tl_sema_type_text(sema, &a));
      return tl_sema_poison();
    }
    if (is_index(&a)) {  // ~x = -1 - x
      return tl_sema_of_value(tl_index_sub(&sema->builder, tl_build_index(&sema->builder, -1), a.value));
    }
    if (type->dtype != TL_DTYPE_BOOL) type = tl_type_scalar(sema->module, tl_sema_arithmetic_dtype(type->dtype));
    return tl_sema_of_value(tl_build_unary(&sema->builder, TL_OP_NOT, tl_build_cast(&sema->builder, a.value, type)));
  }
  if (is_index(&a)) {
    if (op == TL_EXPR_OP_POS) return a;
    return tl_sema_of_value(tl_index_sub(&sema->builder, tl_build_index(&sema->builder, 0), a.value));
  }
  tl_value *x =
      tl_build_cast(&sema->builder, a.value, tl_type_scalar(sema->module, tl_sema_arithmetic_dtype(type->dtype)));
  return tl_sema_of_value(op == TL_EXPR_OP_POS ? x : tl_build_unary(&sema->builder, TL_OP_NEG, x));
}

static int compare_predicate(tl_expr_op op) {
  switch (op) {
    case TL_EXPR_OP_EQ:
      return TL_CMP_EQ;
    case TL_EXPR_OP_NE:
      return TL_CMP_NE;
    case TL_EXPR_OP_LT:
      return TL_CMP_LT;
    case TL_EXPR_OP_LE:
      return TL_CMP_LE;
    case TL_EXPR_OP_GT:
      return TL_CMP_GT;
    case TL_EXPR_OP_GE:
      return TL_CMP_GE;
    default:
      return TL_CMP_COUNT;  // refused by tl_fold_compare and by the parser
  }
}

tl_sema_value tl_sema_compare(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  if (a.kind == TL_SEMA_POISON || b.kind == TL_SEMA_POISON) return tl_sema_poison();
  if (a.kind == TL_SEMA_CONST && b.kind == TL_SEMA_CONST) {
    tl_const folded;
    if (tl_fold_compare(op, &a.constant, &b.constant, &folded) == TL_FOLD_OK) return tl_sema_of_const(folded);
    return report_operands(sema, op, &a, &b, "two numbers or (`==`, `!=`) two dtypes", loc);
  }
  if (is_dtype_const(&a) || is_dtype_const(&b)) return report_operands(sema, op, &a, &b, "numbers", loc);
  const tl_type *type = is_bool_value(&a) && is_bool_value(&b) ? tl_type_scalar(sema->module, TL_DTYPE_BOOL)
                                                               : tl_sema_common_type(sema, &a, &b);
  tl_value *x, *y;
  if (!convert_both(sema, &a, &b, type, loc, &x, &y)) return tl_sema_poison();
  return tl_sema_of_value(tl_build_cmp(&sema->builder, compare_predicate(op), x, y));
}

tl_sema_value tl_sema_select(tl_sema *sema, tl_sema_value condition, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  condition = tl_sema_to_bool(sema, &condition, loc);
  if (condition.kind == TL_SEMA_POISON || a.kind == TL_SEMA_POISON || b.kind == TL_SEMA_POISON) {
    return tl_sema_poison();
  }
  if (condition.kind == TL_SEMA_CONST) return condition.constant.i ? a : b;
  if (is_dtype_const(&a) || is_dtype_const(&b)) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, loc, "a dtype can only be chosen by a compile-time condition");
    return tl_sema_poison();
  }
  const tl_type *type;
  if (is_bool_value(&a) && is_bool_value(&b)) {
    type = tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  } else if (a.kind == TL_SEMA_CONST && b.kind == TL_SEMA_CONST) {
    // Two constants chosen at run time: an index when both are integers.
    bool integers = tl_sema_is_integer(&a) && tl_sema_is_integer(&b);
    type = integers ? tl_type_index(sema->module) : tl_type_scalar(sema->module, TL_DTYPE_F32);
  } else {
    type = tl_sema_common_type(sema, &a, &b);
  }
  tl_value *x, *y;
  if (!convert_both(sema, &a, &b, type, loc, &x, &y)) return tl_sema_poison();
  return tl_sema_of_value(tl_build_select(&sema->builder, condition.value, x, y));
}

tl_sema_value tl_sema_min_max(tl_sema *sema, bool is_max, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  if (a.kind == TL_SEMA_POISON || b.kind == TL_SEMA_POISON) return tl_sema_poison();
  if (a.kind == TL_SEMA_CONST && b.kind == TL_SEMA_CONST) {
    tl_const folded;
    tl_const args[2] = {a.constant, b.constant};
    tl_fold_result result = tl_fold_call(is_max ? TL_FUNCTION_MAX : TL_FUNCTION_MIN, args, 2, &folded);
    if (result == TL_FOLD_OK) return tl_sema_of_const(folded);
    tl_sema_report_fold(sema->diags, result, loc, is_max ? "max" : "min");
    return tl_sema_poison();
  }
  if (is_dtype_const(&a) || is_dtype_const(&b)) {
    tl_sema_report_fold(sema->diags, TL_FOLD_TYPE, loc, is_max ? "max" : "min");
    return tl_sema_poison();
  }
  const tl_type *type = tl_sema_common_type(sema, &a, &b);
  tl_value *x, *y;
  if (!convert_both(sema, &a, &b, type, loc, &x, &y)) return tl_sema_poison();
  if (type->kind == TL_TYPE_INDEX) {
    return tl_sema_of_value(is_max ? tl_index_max(&sema->builder, x, y) : tl_index_min(&sema->builder, x, y));
  }
  return tl_sema_of_value(tl_build_binary(&sema->builder, is_max ? TL_OP_MAX : TL_OP_MIN, x, y));
}
