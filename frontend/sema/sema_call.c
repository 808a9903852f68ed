// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of the language's functions.
#include <math.h>

#include "frontend/expr/suggest.h"
#include "frontend/sema/sema.h"

enum { MAX_CALL_ARGS = 16 };

tl_function tl_sema_validate_call(tl_diags *diags, const tl_expr *expr) {
  tl_function function = tl_function_parse(expr->text);
  if (function == TL_FUNCTION_NONE) {
    tl_diag *diag =
        tl_diag_report(diags, TL_DIAG_FUNCTION_UNKNOWN, expr->loc, "unknown function `%.*s`", TL_STR_ARG(expr->text));
    const char *names[TL_FUNCTION_COUNT];
    for (int i = 1; i < TL_FUNCTION_COUNT; ++i) names[i - 1] = tl_function_info_of((tl_function)i)->name;
    const char *nearest = tl_suggest(expr->text, names, TL_FUNCTION_COUNT - 1);
    const char *known = tl_suggest_for_function(expr->text);
    if (known)
      tl_diag_add_hint(diags, diag, "%s", known);
    else if (nearest)
      tl_diag_add_hint(diags, diag, "did you mean `%s`?", nearest);
    return function;
  }
  const tl_function_info *info = tl_function_info_of(function);
  int count = (int)expr->num_operands;
  if (expr->num_keywords) {
    const tl_keyword *keyword = &expr->keywords[0];
    tl_diag_report(diags, TL_DIAG_FUNCTION_ARGS, keyword->loc, "`%s` takes no argument `%.*s=`", info->name,
                   TL_STR_ARG(keyword->name));
    return TL_FUNCTION_NONE;
  }
  if (count < info->min_args || count > info->max_args) {
    tl_diag *diag;
    if (info->min_args == info->max_args) {
      diag = tl_diag_report(diags, TL_DIAG_FUNCTION_ARGS, expr->loc, "`%s` takes %d argument%s, %d given", info->name,
                            info->min_args, info->min_args == 1 ? "" : "s", count);
    } else {
      diag = tl_diag_report(diags, TL_DIAG_FUNCTION_ARGS, expr->loc, "`%s` takes %d to %d arguments, %d given",
                            info->name, info->min_args, info->max_args, count);
    }
    tl_diag_add_hint(diags, diag, "`%s%s`: %s", info->name, info->arguments, info->doc);
    return TL_FUNCTION_NONE;
  }
  return function;
}

static tl_sema_value constant(double value) {
  return tl_sema_of_const(tl_const_float(value));
}

static tl_sema_value math_op(tl_sema *sema, int function, tl_sema_value a, tl_loc loc) {
  if (a.kind == TL_SEMA_POISON) return a;
  sema->builder.loc = loc;
  return tl_sema_of_value(tl_build_math(&sema->builder, function, a.value));
}

static tl_sema_value add(tl_sema *sema, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  return tl_sema_binary(sema, TL_EXPR_OP_ADD, a, b, loc);
}
static tl_sema_value mul(tl_sema *sema, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  return tl_sema_binary(sema, TL_EXPR_OP_MUL, a, b, loc);
}

// The operand of a float function: integers become f32, f8 and f4 too.
static tl_sema_value to_float(tl_sema *sema, tl_sema_value a, tl_loc loc) {
  if (a.kind != TL_SEMA_VALUE) return a;
  const tl_type *type = a.value->type;
  bool is_float = type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(type->dtype);
  tl_dtype dtype = is_float ? tl_sema_arithmetic_dtype(type->dtype) : TL_DTYPE_F32;
  return tl_sema_of_value(tl_sema_to_dtype(sema, &a, dtype, loc));
}

// A function of the table that has no case here is refused, not dropped.
static tl_sema_value no_case(tl_sema *sema, tl_loc loc) {
  tl_diag_report(sema->diags, TL_DIAG_NOT_COMPILED_YET, loc, "this version does not compile the function yet");
  return tl_sema_poison();
}

static tl_sema_value composed_of(tl_sema *sema, tl_function function, tl_sema_value x, tl_loc loc) {
  switch (function) {
    case TL_FUNCTION_RELU:
      return tl_sema_min_max(sema, true, x, constant(0), loc);
    case TL_FUNCTION_SILU:
      return mul(sema, x, math_op(sema, TL_MATH_SIGMOID, x, loc), loc);
    case TL_FUNCTION_GELU: {
      tl_sema_value scaled = mul(sema, x, constant(0.70710678118654752440), loc);
      tl_sema_value erf = math_op(sema, TL_MATH_ERF, scaled, loc);
      tl_sema_value upper = add(sema, erf, constant(1), loc);  // not as an argument: C leaves their order open
      return mul(sema, mul(sema, x, constant(0.5), loc), upper, loc);
    }
    case TL_FUNCTION_SOFTPLUS: {  // max(x, 0) + log1p(exp(-|x|)): never overflows
      tl_sema_value magnitude = math_op(sema, TL_MATH_ABS, x, loc);
      tl_sema_value small = math_op(sema, TL_MATH_EXP, tl_sema_unary(sema, TL_EXPR_OP_NEG, magnitude, loc), loc);
      tl_sema_value rest = math_op(sema, TL_MATH_LOG1P, small, loc);
      return add(sema, tl_sema_min_max(sema, true, x, constant(0), loc), rest, loc);
    }
    default:
      return no_case(sema, loc);
  }
}

// Composed functions are computed in f32 (f64 stays) and rounded once to the operand's type. relu of an integer is one.
static tl_sema_value composed(tl_sema *sema, tl_function function, tl_sema_value a, tl_loc loc) {
  if (function == TL_FUNCTION_RELU && tl_sema_is_integer(&a)) {
    return tl_sema_min_max(sema, true, a, tl_sema_of_const(tl_const_int(0)), loc);
  }
  a = to_float(sema, a, loc);
  if (a.kind != TL_SEMA_VALUE) return a;
  tl_dtype dtype = a.value->type->dtype;
  if (function == TL_FUNCTION_RELU) return composed_of(sema, function, a, loc);
  tl_dtype wide = tl_dtype_bits(dtype) < 32 ? TL_DTYPE_F32 : dtype;
  tl_sema_value x = tl_sema_of_value(tl_sema_to_dtype(sema, &a, wide, loc));
  tl_sema_value result = composed_of(sema, function, x, loc);
  if (result.kind != TL_SEMA_VALUE) return result;
  return tl_sema_of_value(tl_sema_to_dtype(sema, &result, dtype, loc));
}

static tl_sema_value ceildiv(tl_sema *sema, tl_sema_value a, tl_sema_value b, tl_loc loc) {
  if (!tl_sema_is_integer(&a) || !tl_sema_is_integer(&b)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "ceildiv takes integers, not %s and %s",
                   tl_sema_type_text(sema, &a), tl_sema_type_text(sema, &b));
    return tl_sema_poison();
  }
  if (b.kind == TL_SEMA_CONST && b.constant.i == 0) {
    tl_sema_report_fold(sema->diags, TL_FOLD_DIV_ZERO, loc, "");
    return tl_sema_poison();
  }
  const tl_type *type = tl_sema_common_type(sema, &a, &b);
  tl_value *x = tl_sema_convert(sema, &a, type, loc), *y = tl_sema_convert(sema, &b, type, loc);
  if (!x || !y) return tl_sema_poison();
  sema->builder.loc = loc;
  if (type->kind == TL_TYPE_INDEX) return tl_sema_of_value(tl_index_ceildiv(&sema->builder, x, y));
  // Neither -((-x) // y), which is no quotient of an unsigned x, nor x + y - 1, which may wrap.
  tl_value *quotient = tl_build_binary(&sema->builder, TL_OP_FLOORDIV, x, y);
  tl_value *rest = tl_build_binary(&sema->builder, TL_OP_MOD, x, y);
  tl_value *zero = tl_build_const_int(&sema->builder, type, 0);
  tl_value *has_rest = tl_build_cmp(&sema->builder, TL_CMP_NE, rest, zero);
  tl_value *one_or_zero = tl_build_cast(&sema->builder, has_rest, type);
  return tl_sema_of_value(tl_build_binary(&sema->builder, TL_OP_ADD, quotient, one_or_zero));
}

// popcount and clz: of 64 bits for i64 and u64, else of 32.
static tl_sema_value bits_of(tl_sema *sema, tl_function function, tl_sema_value a, tl_loc loc) {
  if (!tl_sema_is_integer(&a)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`%s` takes an integer, not %s",
                   tl_function_info_of(function)->name, tl_sema_type_text(sema, &a));
    return tl_sema_poison();
  }
  const tl_type *type = a.value->type, *result = tl_type_scalar(sema->module, TL_DTYPE_I32);
  tl_dtype dtype = type->kind == TL_TYPE_INDEX ? tl_sema_index_dtype(a.value) : tl_sema_arithmetic_dtype(type->dtype);
  tl_value *x = tl_sema_to_dtype(sema, &a, dtype, loc);
  if (!x) return tl_sema_poison();
  sema->builder.loc = loc;
  tl_group group = TL_GROUP_OF(x);
  tl_opcode code = function == TL_FUNCTION_POPCOUNT ? TL_OP_POPCOUNT : TL_OP_CLZ;
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, code, &group, &result, 1), 0));
}

// The dtype in which dp4a takes an operand: u32 for a u32 and for constants that only fit that, else i32. NONE (after a
// report) for what is no integer of 32 bits.
static tl_dtype dp4a_dtype(tl_sema *sema, const tl_sema_value *a, tl_loc loc) {
  bool fits = tl_sema_is_integer(a);
  if (fits && a->kind == TL_SEMA_CONST) {
    if (a->constant.i >= INT32_MIN && a->constant.i <= INT32_MAX) return TL_DTYPE_I32;
    if (a->constant.i > 0 && a->constant.i <= UINT32_MAX) return TL_DTYPE_U32;
    fits = false;
  }
  bool is_index = fits && a->value->type->kind == TL_TYPE_INDEX;
  tl_dtype dtype = is_index ? tl_sema_index_dtype(a->value)
                   : fits   ? tl_sema_arithmetic_dtype(a->value->type->dtype)
                            : TL_DTYPE_NONE;
  if (dtype == TL_DTYPE_I32 || dtype == TL_DTYPE_U32) return dtype;
  tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`dp4a` takes i32 and u32, four bytes each, not %s",
                 tl_sema_type_text(sema, a));
  return TL_DTYPE_NONE;
}

// dp4a(a, b, c): bytes are signed in an i32 and unsigned in a u32; the sum is u32 where both are unsigned.
static tl_sema_value dp4a_of(tl_sema *sema, const tl_sema_value *args, const tl_expr *expr) {
  tl_dtype dtypes[3];
  for (int i = 0; i < 3; ++i) {
    dtypes[i] = dp4a_dtype(sema, &args[i], expr->operands[i]->loc);
    if (dtypes[i] == TL_DTYPE_NONE) return tl_sema_poison();
  }
  tl_dtype sum = dtypes[0] == TL_DTYPE_U32 && dtypes[1] == TL_DTYPE_U32 ? TL_DTYPE_U32 : TL_DTYPE_I32;
  tl_value *values[3];
  for (int i = 0; i < 3; ++i) {
    values[i] = tl_sema_to_dtype(sema, &args[i], dtypes[i], expr->loc);
    if (!values[i]) return tl_sema_poison();
  }
  const tl_type *type = tl_type_scalar(sema->module, sum);
  sema->builder.loc = expr->loc;
  values[2] = tl_build_cast(&sema->builder, values[2], type);
  tl_group groups[3] = {{&values[0], 1}, {&values[1], 1}, {&values[2], 1}};
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_DP4A, groups, &type, 1), 0));
}

static bool is_unsigned(const tl_sema_value *a) {
  const tl_type *type = a->kind == TL_SEMA_VALUE ? a->value->type : NULL;
  return type && type->kind == TL_TYPE_SCALAR && tl_dtype_is_unsigned_int(type->dtype);
}

static tl_sema_value magnitude(tl_sema *sema, const tl_function_info *info, tl_sema_value a, tl_loc loc) {
  if (tl_sema_is_float(&a)) return math_op(sema, info->math, to_float(sema, a, loc), loc);
  a = tl_sema_unary(sema, TL_EXPR_OP_POS, a, loc);
  if (is_unsigned(&a)) return a;
  return tl_sema_min_max(sema, true, a, tl_sema_unary(sema, TL_EXPR_OP_NEG, a, loc), loc);
}

static tl_sema_value sign(tl_sema *sema, tl_sema_value a, tl_loc loc) {
  tl_sema_value zero = tl_sema_of_const(tl_const_int(0));
  a = tl_sema_unary(sema, TL_EXPR_OP_POS, a, loc);
  if (a.kind != TL_SEMA_VALUE) return a;
  if (is_unsigned(&a)) return tl_sema_min_max(sema, false, a, tl_sema_of_const(tl_const_int(1)), loc);
  const tl_type *type = a.value->type;
  tl_sema_value one =
      tl_sema_of_value(tl_sema_convert(sema, &(tl_sema_value){TL_SEMA_CONST, tl_const_int(1), NULL}, type, loc));
  tl_sema_value minus = tl_sema_unary(sema, TL_EXPR_OP_NEG, one, loc);
  // 0 and NaN give themselves.
  tl_sema_value rest = tl_sema_select(sema, tl_sema_compare(sema, TL_EXPR_OP_LT, a, zero, loc), minus, a, loc);
  return tl_sema_select(sema, tl_sema_compare(sema, TL_EXPR_OP_GT, a, zero, loc), one, rest, loc);
}

static tl_sema_value fma_of(tl_sema *sema, const tl_sema_value *args, tl_loc loc) {
  tl_sema_value product = {.kind = TL_SEMA_POISON};
  if (!tl_sema_is_float(&args[0]) && !tl_sema_is_float(&args[1]) && !tl_sema_is_float(&args[2])) {
    product = tl_sema_binary(sema, TL_EXPR_OP_MUL, args[0], args[1], loc);
    return tl_sema_binary(sema, TL_EXPR_OP_ADD, product, args[2], loc);
  }
  const tl_type *type = NULL;
  for (int i = 0; i < 3; ++i) {  // the common type of all three
    for (int j = i + 1; j < 3; ++j) {
      if (args[i].kind == TL_SEMA_CONST && args[j].kind == TL_SEMA_CONST) continue;
      const tl_type *pair = tl_sema_common_type(sema, &args[i], &args[j]);
      if (pair->kind == TL_TYPE_INDEX || !tl_dtype_is_float(pair->dtype)) continue;
      if (!type || tl_dtype_bits(pair->dtype) > tl_dtype_bits(type->dtype))
        type = pair;
      else if (pair != type && tl_dtype_bits(pair->dtype) == tl_dtype_bits(type->dtype))
        type = tl_type_scalar(sema->module, TL_DTYPE_F32);
    }
  }
  tl_value *values[3];
  for (int i = 0; i < 3; ++i) {
    values[i] = tl_sema_convert(sema, &args[i], type, loc);
    if (!values[i]) return product;
  }
  sema->builder.loc = loc;
  tl_group groups[3] = {{&values[0], 1}, {&values[1], 1}, {&values[2], 1}};
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_FMA, groups, &type, 1), 0));
}

// ldexp(x, n) takes an n of 32 bits; past all exponents one is like the other.
static tl_sema_value scaled(tl_sema *sema, const tl_function_info *info, const tl_sema_value *args, tl_loc loc) {
  const int64_t most = 4000;
  tl_sema_value n = args[1];
  if (!tl_sema_is_integer(&n)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`%s` takes a whole exponent, not %s", info->name,
                   tl_sema_type_text(sema, &n));
    return tl_sema_poison();
  }
  tl_sema_value x = to_float(sema, args[0], loc);
  tl_dtype dtype = x.kind == TL_SEMA_VALUE ? x.value->type->dtype : TL_DTYPE_F32;
  tl_value *value = tl_sema_to_dtype(sema, &x, dtype, loc);
  tl_sema_value upper = tl_sema_of_const(tl_const_int(most)), lower = tl_sema_of_const(tl_const_int(-most));
  n = tl_sema_min_max(sema, false, n, upper, loc);
  if (!is_unsigned(&n)) n = tl_sema_min_max(sema, true, n, lower, loc);
  tl_value *exponent = n.kind == TL_SEMA_POISON ? NULL : tl_sema_to_dtype(sema, &n, TL_DTYPE_I32, loc);
  if (!value || !exponent) return tl_sema_poison();
  sema->builder.loc = loc;
  return tl_sema_of_value(tl_build_math2(&sema->builder, info->math, value, exponent));
}

static tl_sema_value promoted(tl_sema *sema, tl_function function, tl_sema_value *args, uint32_t count, tl_loc loc) {
  tl_sema_value result = args[0];
  switch (function) {
    case TL_FUNCTION_MIN:
    case TL_FUNCTION_MAX:
      for (uint32_t i = 1; i < count; ++i) {
        result = tl_sema_min_max(sema, function == TL_FUNCTION_MAX, result, args[i], loc);
      }
      return result;
    case TL_FUNCTION_CLAMP:
      return tl_sema_min_max(sema, false, tl_sema_min_max(sema, true, args[0], args[1], loc), args[2], loc);
    case TL_FUNCTION_SELECT:
    case TL_FUNCTION_IF_THEN_ELSE:
      return tl_sema_select(sema, args[0], args[1], args[2], loc);
    case TL_FUNCTION_SIGN:
      return sign(sema, args[0], loc);
    case TL_FUNCTION_POW:
      return tl_sema_binary(sema, TL_EXPR_OP_POW, args[0], args[1], loc);
    case TL_FUNCTION_FMA:
      return fma_of(sema, args, loc);
    default:
      return no_case(sema, loc);
  }
}

static tl_sema_value type_call(tl_sema *sema, tl_function function, const tl_expr *expr, const tl_sema_value *args) {
  bool is_rounded = tl_function_rounding(function) >= 0;
  if (function != TL_FUNCTION_CAST && function != TL_FUNCTION_BITCAST && !is_rounded) {
    tl_diag_report(sema->diags, TL_DIAG_DTYPE_EXPECTED, expr->operands[0]->loc, "`%.*s` takes a dtype, this is %s",
                   TL_STR_ARG(expr->text), tl_sema_type_text(sema, &args[0]));
    return tl_sema_poison();
  }
  if (args[1].kind != TL_SEMA_CONST || args[1].constant.kind != TL_CONST_DTYPE) {
    tl_diag_report(sema->diags, TL_DIAG_DTYPE_EXPECTED, expr->operands[1]->loc, "`%.*s` needs a dtype here, this is %s",
                   TL_STR_ARG(expr->text), tl_sema_type_text(sema, &args[1]));
    return tl_sema_poison();
  }
  tl_dtype dtype = args[1].constant.dtype;
  if (is_rounded) return tl_sema_rounded_cast(sema, function, args, expr->loc);
  if (function == TL_FUNCTION_CAST) {
    if (args[0].kind == TL_SEMA_CONST) {
      tl_const folded, pair[2] = {args[0].constant, args[1].constant};
      tl_fold_result result = tl_fold_call(function, pair, 2, &folded);
      if (result != TL_FOLD_OK) {
        tl_sema_report_fold(sema->diags, result, expr->loc, "cast");
        return tl_sema_poison();
      }
      if (dtype == TL_DTYPE_BOOL) return tl_sema_of_const(folded);
      const tl_type *type = tl_type_scalar(sema->module, dtype);
      sema->builder.loc = expr->loc;
      // The bits of the dtype: of a u64 past 2^63 they are no literal.
      if (tl_dtype_is_int(dtype)) return tl_sema_of_value(tl_build_const_int(&sema->builder, type, folded.i));
      tl_sema_value value = tl_sema_of_const(folded);
      return tl_sema_of_value(tl_sema_to_dtype(sema, &value, dtype, expr->loc));
    }
    return tl_sema_of_value(tl_sema_to_dtype(sema, &args[0], dtype, expr->loc));
  }
  if (args[0].kind == TL_SEMA_CONST || args[0].value->type->kind == TL_TYPE_INDEX ||
      tl_dtype_bits(args[0].value->type->dtype) != tl_dtype_bits(dtype)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, expr->loc, "bitcast needs two types of one width, not %s and %s",
                   tl_sema_type_text(sema, &args[0]), tl_dtype_name(dtype));
    return tl_sema_poison();
  }
  const tl_type *type = tl_type_scalar(sema->module, dtype);
  if (args[0].value->type == type) return args[0];
  sema->builder.loc = expr->loc;
  tl_group group = TL_GROUP_OF(args[0].value);
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_BITCAST, &group, &type, 1), 0));
}

static tl_sema_value access_call(tl_sema *sema, tl_function function, const tl_expr *expr) {
  const tl_expr *element = expr->operands[0];
  if (function == TL_FUNCTION_PRESENT) return tl_sema_present(sema, expr);
  if (!tl_sema_is_element(element)) {
    tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, element->loc, "`%.*s` takes an element such as `X[i, j]`",
                   TL_STR_ARG(expr->text));
    return tl_sema_poison();
  }
  if (function == TL_FUNCTION_LOAD) {
    return tl_sema_load_element(sema, element, expr->num_operands > 1 ? expr->operands[1] : NULL);
  }
  tl_symbol *symbol = tl_sema_buffer(sema, element);
  tl_value *indices[TL_MAX_RANK];
  if (!symbol || !tl_sema_subscripts(sema, symbol, element, indices)) return tl_sema_poison();
  sema->builder.loc = expr->loc;
  const tl_type *type = tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  tl_group groups[2] = {TL_GROUP_OF(symbol->value), {indices, (uint32_t)symbol->value->type->rank}};
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_IN_BOUNDS, groups, &type, 1), 0));
}

static tl_sema_value thread_call(tl_sema *sema, tl_function function, const tl_expr *expr) {
  if (sema->launch_only) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc, "the launcher does not know `%.*s()`",
                   TL_STR_ARG(expr->text));
    return tl_sema_poison();
  }
  tl_opcode code = function == TL_FUNCTION_THREAD_ID ? TL_OP_THREAD_ID
                   : function == TL_FUNCTION_LANE_ID ? TL_OP_LANE_ID
                                                     : TL_OP_WARP_ID;
  const tl_type *type = tl_type_index(sema->module);
  sema->builder.loc = expr->loc;
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, code, NULL, &type, 1), 0));
}

static tl_sema_value emit_call(tl_sema *sema, tl_function function, const tl_expr *expr, tl_sema_value *args) {
  const tl_function_info *info = tl_function_info_of(function);
  if (info->kind != TL_FUNCTION_KIND_TYPE) {
    for (uint32_t i = 0; i < expr->num_operands; ++i) {
      if (args[i].kind != TL_SEMA_CONST || args[i].constant.kind != TL_CONST_DTYPE) continue;
      tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, expr->operands[i]->loc, "`%s` takes numbers, this is a dtype",
                     info->name);
      return tl_sema_poison();
    }
  }
  switch (info->kind) {
    case TL_FUNCTION_KIND_INTEGER:
      if (function == TL_FUNCTION_CEILDIV) return ceildiv(sema, args[0], args[1], expr->loc);
      if (function == TL_FUNCTION_PHILOX) return tl_sema_philox(sema, args, expr);
      return function == TL_FUNCTION_DP4A ? dp4a_of(sema, args, expr) : bits_of(sema, function, args[0], expr->loc);
    case TL_FUNCTION_KIND_PROMOTED:
      return promoted(sema, function, args, expr->num_operands, expr->loc);
    case TL_FUNCTION_KIND_ROUNDING:
      if (!tl_sema_is_float(&args[0])) return tl_sema_unary(sema, TL_EXPR_OP_POS, args[0], expr->loc);
      return math_op(sema, info->math, to_float(sema, args[0], expr->loc), expr->loc);
    case TL_FUNCTION_KIND_MAGNITUDE:
      return magnitude(sema, info, args[0], expr->loc);
    case TL_FUNCTION_KIND_MATH:
    case TL_FUNCTION_KIND_TEST:
    case TL_FUNCTION_KIND_BITS:
    case TL_FUNCTION_KIND_EXPONENT:
      return math_op(sema, info->math, to_float(sema, args[0], expr->loc), expr->loc);
    case TL_FUNCTION_KIND_FLOATS:
    case TL_FUNCTION_KIND_FLOAT_BITS:
      return tl_sema_math2(sema, info->math, &args[0], &args[1], expr->loc);
    case TL_FUNCTION_KIND_FLOAT_EXPONENT:
      return scaled(sema, info, args, expr->loc);
    case TL_FUNCTION_KIND_COMPOSED:
      return composed(sema, function, args[0], expr->loc);
    case TL_FUNCTION_KIND_TYPE:
      return type_call(sema, function, expr, args);
    case TL_FUNCTION_KIND_ACCESS:
    case TL_FUNCTION_KIND_THREAD:
      break;
  }
  return tl_sema_poison();
}

bool tl_sema_is_reduction(const tl_expr *expr) {
  if (expr->kind != TL_EXPR_CALL || tl_ir_enum_parse(TL_IR_ENUM_REDUCTION, expr->text) < 0) return false;
  // max(a, b) is elementwise.
  return tl_function_parse(expr->text) == TL_FUNCTION_NONE || expr->num_operands == 1 || expr->num_keywords > 0;
}

int tl_sema_scan_kind(tl_str function) {
  if (tl_str_is(function, "cumsum")) return TL_REDUCTION_SUM;
  if (tl_str_is(function, "cumprod")) return TL_REDUCTION_PROD;
  if (tl_str_is(function, "cummax")) return TL_REDUCTION_MAX;
  if (tl_str_is(function, "cummin")) return TL_REDUCTION_MIN;
  return -1;
}

tl_symbol *tl_sema_find_reduction(const tl_sema *sema, const tl_expr *expr) {
  for (size_t i = 0; i < sema->reductions.len; ++i) {
    if (sema->reductions.items[i].expr == expr) return sema->reductions.items[i].symbol;
  }
  return NULL;
}

tl_sema_value tl_sema_call(tl_sema *sema, const tl_expr *expr) {
  if (tl_sema_find_reduction(sema, expr) && sema->tile) return tl_sema_broadcast(sema, expr);
  if (tl_sema_is_reduction(expr)) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_REDUCTION, expr->loc,
                                   "the reduction `%.*s` of a tile cannot stand here", TL_STR_ARG(expr->text));
    tl_diag_add_hint(sema->diags, diag,
                     "it stands in `reduce:` or on the right side of a tile assignment, and outside of `parallel` in "
                     "`if`, `while` and `let`");
    return tl_sema_poison();
  }
  if (tl_sema_scan_kind(expr->text) >= 0) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_REDUCTION, expr->loc,
                                   "the scan `%.*s` of a tile cannot stand here", TL_STR_ARG(expr->text));
    tl_diag_add_hint(sema->diags, diag, "it is a statement: `scan: c = %.*s(x, axis=0)`", TL_STR_ARG(expr->text));
    return tl_sema_poison();
  }
  tl_function function = tl_sema_validate_call(sema->diags, expr);
  if (function == TL_FUNCTION_NONE) return tl_sema_poison();
  const tl_function_info *info = tl_function_info_of(function);
  if (info->kind == TL_FUNCTION_KIND_ACCESS) return access_call(sema, function, expr);
  if (info->kind == TL_FUNCTION_KIND_THREAD) return thread_call(sema, function, expr);
  tl_sema_value args[MAX_CALL_ARGS];
  tl_const constants[MAX_CALL_ARGS];
  bool all_const = true, poisoned = false, outer_position = sema->index_position;
  tl_exactness outer_exact = sema->exact;
  // What a rounding or a cast is applied to may well be a float quotient.
  bool is_rounding = info->kind == TL_FUNCTION_KIND_ROUNDING || info->kind == TL_FUNCTION_KIND_TYPE;
  if (is_rounding) sema->index_position = false;
  // Bits are those of a dtype.
  if (function == TL_FUNCTION_BITCAST || function == TL_FUNCTION_DP4A || function == TL_FUNCTION_PHILOX)
    sema->exact = TL_EXACT_NOTHING;
  for (uint32_t i = 0; i < expr->num_operands; ++i) {
    args[i] = tl_sema_expr(sema, expr->operands[i]);
    all_const = all_const && args[i].kind == TL_SEMA_CONST;
    poisoned = poisoned || args[i].kind == TL_SEMA_POISON;
    constants[i] = args[i].constant;
  }
  sema->index_position = outer_position;
  sema->exact = outer_exact;
  if (poisoned) return tl_sema_poison();
  if (function == TL_FUNCTION_PHILOX && !tl_sema_validate_word(sema, &args[2], expr->operands[2]->loc))
    return tl_sema_poison();
  // What a cast gives has its dtype.
  bool is_cast = function == TL_FUNCTION_CAST || function == TL_FUNCTION_BITCAST || tl_function_rounding(function) >= 0;
  if (all_const && !is_cast) {
    tl_const folded;
    tl_fold_result result = tl_fold_call(function, constants, expr->num_operands, &folded);
    if (result == TL_FOLD_OK) return tl_sema_of_const(folded);
    if (info->kind != TL_FUNCTION_KIND_TYPE) {
      tl_sema_report_fold_call(sema->diags, result, expr->loc, info->name, constants, expr->num_operands);
      return tl_sema_poison();
    }
  }
  return emit_call(sema, function, expr, args);
}
