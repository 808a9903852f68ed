// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function table and calls of constants.
#include <math.h>

#include "frontend/sema/sema_fold.h"

#define TL_MATH_NONE (-1)

static const tl_function_info function_infos[] = {
    [TL_FUNCTION_NONE] = {"", 0, 0, TL_FUNCTION_KIND_INTEGER, TL_MATH_NONE},
#define TL_FUNCTION(ID, text, min_args, max_args, kind, math) \
  [TL_FUNCTION_##ID] = {text, min_args, max_args, TL_FUNCTION_KIND_##kind, TL_MATH_##math},
#include "frontend/sema/sema_functions.def"
#undef TL_FUNCTION
};

tl_function tl_function_parse(tl_str name) {
  for (int i = 1; i < TL_FUNCTION_COUNT; ++i) {
    if (tl_str_is(name, function_infos[i].name)) return (tl_function)i;
  }
  return TL_FUNCTION_NONE;
}

const tl_function_info *tl_function_info_of(tl_function function) {
  return &function_infos[function];
}

static tl_fold_result fold_ceildiv(const tl_const *a, const tl_const *b, tl_const *out) {
  // Without forming -a or a + b - 1, which may overflow.
  tl_const quotient, rest;
  if (a->kind == TL_CONST_FLOAT || b->kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
  tl_fold_result status = tl_fold_binary(TL_EXPR_OP_FLOORDIV, a, b, &quotient);
  if (status == TL_FOLD_OK) status = tl_fold_binary(TL_EXPR_OP_MOD, a, b, &rest);
  if (status == TL_FOLD_OK) *out = tl_const_int(quotient.i + (rest.i != 0));
  return status;
}

static tl_fold_result fold_min_max(bool is_max, const tl_const *args, uint32_t num_args, tl_const *out) {
  tl_const best = args[0];
  bool any_float = best.kind == TL_CONST_FLOAT;
  for (uint32_t i = 1; i < num_args; ++i) {
    const tl_const *arg = &args[i];
    any_float = any_float || arg->kind == TL_CONST_FLOAT;
    double x = tl_const_to_double(&best), y = tl_const_to_double(arg);
    if (best.kind != TL_CONST_FLOAT && arg->kind != TL_CONST_FLOAT) {
      if (is_max ? arg->i > best.i : arg->i < best.i) best = *arg;
    } else if (isnan(x) || (is_max ? y > x : y < x)) {
      best = *arg;
    }
  }
  if (any_float) {
    *out = tl_const_float(tl_const_to_double(&best));
  } else {
    *out = best.kind == TL_CONST_BOOL ? tl_const_int(best.i) : best;
  }
  return TL_FOLD_OK;
}

// A constant is an i32 if it fits, else a u32, else (where 64 bits are taken) an i64.
static tl_fold_result fold_bits(tl_function function, const tl_const *a, tl_const *out) {
  if (a->kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
  bool is_wide = a->i < INT32_MIN || a->i > UINT32_MAX;
  uint64_t bits = is_wide ? (uint64_t)a->i : (uint32_t)a->i;
  if (function == TL_FUNCTION_POPCOUNT)
    *out = tl_const_int(__builtin_popcountll(bits));
  else if (bits == 0)
    *out = tl_const_int(32);
  else
    *out = tl_const_int(__builtin_clzll(bits) - (is_wide ? 0 : 32));
  return TL_FOLD_OK;
}

static tl_fold_result fold_dp4a(const tl_const *args, tl_const *out) {
  bool is_unsigned[2];
  for (int i = 0; i < 3; ++i) {
    if (args[i].kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
    if (args[i].i < INT32_MIN || args[i].i > UINT32_MAX) return TL_FOLD_OVERFLOW;
    if (i < 2) is_unsigned[i] = args[i].i > INT32_MAX;
  }
  uint32_t sum =
      tl_dp4a((uint32_t)args[0].i, !is_unsigned[0], (uint32_t)args[1].i, !is_unsigned[1], (uint32_t)args[2].i);
  *out = tl_const_int(is_unsigned[0] && is_unsigned[1] ? (int64_t)sum : (int32_t)sum);
  return TL_FOLD_OK;
}

static tl_fold_result fold_integer(tl_function function, const tl_const *args, tl_const *out) {
  if (function == TL_FUNCTION_CEILDIV) return fold_ceildiv(&args[0], &args[1], out);
  return function == TL_FUNCTION_DP4A ? fold_dp4a(args, out) : fold_bits(function, &args[0], out);
}

// floor, ceil, round and trunc of constants give integers, so that they may stand in shapes.
static tl_fold_result fold_rounding(tl_function function, const tl_const *a, tl_const *out) {
  if (a->kind != TL_CONST_FLOAT) {
    *out = tl_const_int(a->i);
    return TL_FOLD_OK;
  }
  double value = a->f;
  switch ((int)function) {
    case TL_FUNCTION_FLOOR:
      value = floor(value);
      break;
    case TL_FUNCTION_CEIL:
      value = ceil(value);
      break;
    case TL_FUNCTION_ROUND:
      value = nearbyint(value);
      break;
    case TL_FUNCTION_TRUNC:
      value = trunc(value);
      break;
  }
  *out = fabs(value) < 0x1p62 ? tl_const_int((int64_t)value) : tl_const_float(value);
  return TL_FOLD_OK;
}

static double fold_math(tl_function function, double x) {
  switch ((int)function) {
    case TL_FUNCTION_EXP:
      return exp(x);
    case TL_FUNCTION_EXP2:
      return exp2(x);
    case TL_FUNCTION_EXP10:
      return pow(10.0, x);
    case TL_FUNCTION_LOG:
      return log(x);
    case TL_FUNCTION_LOG2:
      return log2(x);
    case TL_FUNCTION_LOG10:
      return log10(x);
    case TL_FUNCTION_LOG1P:
      return log1p(x);
    case TL_FUNCTION_EXPM1:
      return expm1(x);
    case TL_FUNCTION_SQRT:
      return sqrt(x);
    case TL_FUNCTION_RSQRT:
      return 1.0 / sqrt(x);
    case TL_FUNCTION_RCP:
      return 1.0 / x;
    case TL_FUNCTION_SIN:
      return sin(x);
    case TL_FUNCTION_COS:
      return cos(x);
    case TL_FUNCTION_TAN:
      return tan(x);
    case TL_FUNCTION_TANH:
      return tanh(x);
    case TL_FUNCTION_SINH:
      return sinh(x);
    case TL_FUNCTION_COSH:
      return cosh(x);
    case TL_FUNCTION_ATAN:
      return atan(x);
    case TL_FUNCTION_SIGMOID:
      return x < 0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
    case TL_FUNCTION_SILU:
      return x / (1.0 + exp(-x));
    case TL_FUNCTION_GELU:
      return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case TL_FUNCTION_RELU:
      return x > 0 ? x : 0;
    case TL_FUNCTION_SOFTPLUS:
      return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case TL_FUNCTION_ERF:
      return erf(x);
  }
  return NAN;
}

static tl_fold_result fold_promoted(tl_function function, const tl_const *args, uint32_t num_args, tl_const *out) {
  bool condition;
  tl_const inner;
  tl_fold_result status;
  switch ((int)function) {
    case TL_FUNCTION_MIN:
      return fold_min_max(false, args, num_args, out);
    case TL_FUNCTION_MAX:
      return fold_min_max(true, args, num_args, out);
    case TL_FUNCTION_CLAMP:
      status = fold_min_max(true, (tl_const[]){args[0], args[1]}, 2, &inner);
      return status ? status : fold_min_max(false, (tl_const[]){inner, args[2]}, 2, out);
    case TL_FUNCTION_SELECT:
    case TL_FUNCTION_IF_THEN_ELSE:
      if (!tl_const_truth(&args[0], &condition)) return TL_FOLD_TYPE;
      *out = condition ? args[1] : args[2];
      return TL_FOLD_OK;
    case TL_FUNCTION_ABS:
      if (args[0].kind == TL_CONST_FLOAT) {
        *out = tl_const_float(fabs(args[0].f));
        return TL_FOLD_OK;
      }
      return args[0].i < 0 ? tl_fold_unary(TL_EXPR_OP_NEG, &args[0], out)
                           : (*out = tl_const_int(args[0].i), TL_FOLD_OK);
    case TL_FUNCTION_SIGN:
      if (args[0].kind == TL_CONST_FLOAT) {
        double x = args[0].f;
        *out = tl_const_float(isnan(x) ? x : (double)((x > 0) - (x < 0)));
      } else {
        *out = tl_const_int((args[0].i > 0) - (args[0].i < 0));
      }
      return TL_FOLD_OK;
    case TL_FUNCTION_FLOOR:
    case TL_FUNCTION_CEIL:
    case TL_FUNCTION_ROUND:
    case TL_FUNCTION_TRUNC:
      return fold_rounding(function, &args[0], out);
    case TL_FUNCTION_POW:
      return tl_fold_binary(TL_EXPR_OP_POW, &args[0], &args[1], out);
    case TL_FUNCTION_ATAN2:
      *out = tl_const_float(atan2(tl_const_to_double(&args[0]), tl_const_to_double(&args[1])));
      return TL_FOLD_OK;
    case TL_FUNCTION_FMA:
      if (args[0].kind == TL_CONST_FLOAT || args[1].kind == TL_CONST_FLOAT || args[2].kind == TL_CONST_FLOAT) {
        *out = tl_const_float(
            fma(tl_const_to_double(&args[0]), tl_const_to_double(&args[1]), tl_const_to_double(&args[2])));
        return TL_FOLD_OK;
      }
      status = tl_fold_binary(TL_EXPR_OP_MUL, &args[0], &args[1], &inner);
      return status ? status : tl_fold_binary(TL_EXPR_OP_ADD, &inner, &args[2], out);
  }
  return TL_FOLD_NOT_CONST;
}

static tl_fold_result fold_cast(const tl_const *value, tl_dtype dtype, tl_const *out) {
  if (tl_dtype_is_float(dtype)) {
    *out = tl_const_float(tl_dtype_round(dtype, tl_const_to_double(value)));
  } else if (dtype == TL_DTYPE_BOOL) {
    *out = tl_const_bool(tl_const_to_double(value) != 0);
  } else {
    int64_t slot[2] = {0, 0};
    int64_t integer = value->i;
    if (value->kind == TL_CONST_FLOAT) {  // truncates and saturates; NaN gives 0
      double x = trunc(value->f), lo = (double)tl_dtype_int_min(dtype), hi = (double)tl_dtype_int_max(dtype);
      if (isnan(x)) x = 0;
      integer = x <= lo ? tl_dtype_int_min(dtype) : x >= hi ? (int64_t)tl_dtype_int_max(dtype) : (int64_t)x;
    }
    tl_dtype_store_int(dtype, slot, 0, integer);
    *out = tl_const_int(tl_dtype_load_int(dtype, slot, 0));
  }
  return TL_FOLD_OK;
}

static tl_fold_result fold_type_call(tl_function function, const tl_const *args, tl_const *out) {
  if (function == TL_FUNCTION_CAST) {
    if (!tl_const_is_number(&args[0]) || args[1].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
    return fold_cast(&args[0], args[1].dtype, out);
  }
  if (function == TL_FUNCTION_BITCAST) return TL_FOLD_NOT_CONST;
  if (args[0].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
  tl_dtype dtype = args[0].dtype;
  if (function == TL_FUNCTION_SIZEOF) {
    int bits = tl_dtype_bits(dtype);
    *out = bits % 8 == 0 ? tl_const_int(bits / 8) : tl_const_float(bits / 8.0);
  } else if (tl_dtype_is_float(dtype)) {
    // The 8- and 4-bit floats saturate: their largest value stands for infinity.
    *out = tl_const_float(tl_dtype_bits(dtype) <= 8 ? tl_dtype_float_max(dtype) : INFINITY);
  } else {
    uint64_t largest = tl_dtype_int_max(dtype);
    if (largest > INT64_MAX) return TL_FOLD_OVERFLOW;
    *out = tl_const_int((int64_t)largest);
  }
  return TL_FOLD_OK;
}

tl_fold_result tl_fold_call(tl_function function, const tl_const *args, uint32_t num_args, tl_const *out) {
  const tl_function_info *info = tl_function_info_of(function);
  if (info->kind == TL_FUNCTION_KIND_TYPE) return fold_type_call(function, args, out);
  for (uint32_t i = 0; i < num_args; ++i) {
    bool is_branch = i > 0 && (function == TL_FUNCTION_SELECT || function == TL_FUNCTION_IF_THEN_ELSE);
    if (!is_branch && !tl_const_is_number(&args[i])) return TL_FOLD_TYPE;
  }
  switch (info->kind) {
    case TL_FUNCTION_KIND_INTEGER:
      return fold_integer(function, args, out);
    case TL_FUNCTION_KIND_PROMOTED:
      return fold_promoted(function, args, num_args, out);
    case TL_FUNCTION_KIND_MATH:
    case TL_FUNCTION_KIND_COMPOSED: {
      double x = tl_const_to_double(&args[0]);
      if (function == TL_FUNCTION_ISNAN || function == TL_FUNCTION_ISINF) {
        *out = tl_const_bool(function == TL_FUNCTION_ISNAN ? isnan(x) : isinf(x));
      } else if (function == TL_FUNCTION_RELU && args[0].kind != TL_CONST_FLOAT) {
        *out = tl_const_int(args[0].i > 0 ? args[0].i : 0);
      } else {
        *out = tl_const_float(fold_math(function, x));
      }
      return TL_FOLD_OK;
    }
    case TL_FUNCTION_KIND_TYPE:
    case TL_FUNCTION_KIND_ACCESS:
    case TL_FUNCTION_KIND_THREAD:
      return TL_FOLD_NOT_CONST;
  }
  return TL_FOLD_NOT_CONST;
}
