// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of constants, and the table of functions. A row of sema_functions.def names its fold here; what the IR has an
// op for is asked of ir/scalar.
#include <math.h>

#include "frontend/sema/sema_fold.h"
#include "ir/scalar/scalar.h"

#define TL_NONE (-1)

// The parameters of every fold; not each needs all.
#define TL_FOLD(name)                                                                                      \
  static tl_fold_result fold_##name(const tl_function_info *info, const tl_const *args, uint32_t num_args, \
                                    tl_const *out)

static tl_fold_result give_float(double value, tl_const *out) {
  *out = tl_const_float(value);
  return TL_FOLD_OK;
}

static tl_fold_result give_int(int64_t value, tl_const *out) {
  *out = tl_const_int(value);
  return TL_FOLD_OK;
}

TL_FOLD(nothing) {
  (void)info, (void)args, (void)num_args, (void)out;
  return TL_FOLD_NOT_CONST;
}

// ---- numbers

TL_FOLD(ceildiv) {
  (void)info, (void)num_args;
  // Without forming -a or a + b - 1, which may overflow.
  int64_t quotient, rest;
  if (args[0].kind == TL_CONST_FLOAT || args[1].kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
  tl_scalar_result status = tl_scalar_exact_op(TL_OP_FLOORDIV, args[0].i, args[1].i, &quotient);
  if (status != TL_SCALAR_OK) return status == TL_SCALAR_DIV_ZERO ? TL_FOLD_DIV_ZERO : TL_FOLD_OVERFLOW;
  tl_scalar_exact_op(TL_OP_MOD, args[0].i, args[1].i, &rest);
  return give_int(quotient + (rest != 0), out);
}

static void take_best(tl_opcode code, const tl_const *arg, tl_const *best) {
  bool is_float = best->kind == TL_CONST_FLOAT || arg->kind == TL_CONST_FLOAT;
  bool is_rounded = best->is_rounded || arg->is_rounded;
  double value = 0;
  tl_scalar_float_op(code, tl_const_to_double(best), tl_const_to_double(arg), &value);
  if (is_float) {
    *best = tl_const_float(value);
    return;
  }
  int64_t integer = 0;
  tl_scalar_exact_op(code, best->i, arg->i, &integer);
  *best = tl_const_int(integer);
  best->is_rounded = is_rounded;
  if (is_rounded) best->f = value;
}

static tl_fold_result fold_best(tl_opcode code, const tl_const *args, uint32_t num_args, tl_const *out) {
  *out = args[0];
  if (out->kind == TL_CONST_BOOL) *out = tl_const_int(args[0].i);
  for (uint32_t i = 1; i < num_args; ++i) take_best(code, &args[i], out);
  return TL_FOLD_OK;
}

TL_FOLD(min) {
  (void)info;
  return fold_best(TL_OP_MIN, args, num_args, out);
}

TL_FOLD(max) {
  (void)info;
  return fold_best(TL_OP_MAX, args, num_args, out);
}

TL_FOLD(clamp) {
  (void)info, (void)num_args;
  tl_const upper[2] = {args[0], args[2]};
  tl_fold_result status = fold_best(TL_OP_MAX, args, 2, &upper[0]);
  return status ? status : fold_best(TL_OP_MIN, upper, 2, out);
}

TL_FOLD(sign) {
  (void)info, (void)num_args;
  const tl_const *a = &args[0];
  if (a->kind != TL_CONST_FLOAT && !a->is_rounded) return give_int((a->i > 0) - (a->i < 0), out);
  double x = tl_const_to_double(a), sign = isnan(x) || x == 0 ? x : x < 0 ? -1 : 1;
  *out = a->is_rounded ? tl_const_rounded(sign) : tl_const_float(sign);
  return TL_FOLD_OK;
}

TL_FOLD(select) {
  (void)info, (void)num_args;
  bool condition;
  if (!tl_const_truth(&args[0], &condition)) return TL_FOLD_TYPE;
  *out = condition ? args[1] : args[2];
  return TL_FOLD_OK;
}

// ---- functions of one float: the IR's, by kind

TL_FOLD(math) {
  (void)num_args;
  const tl_const *a = &args[0];
  double value = tl_scalar_math((tl_ir_enum_MATH)info->math, tl_const_to_double(a));
  if (info->kind == TL_FUNCTION_KIND_TEST || info->kind == TL_FUNCTION_KIND_BITS) {
    *out = tl_const_bool(value != 0);
  } else if (info->kind == TL_FUNCTION_KIND_EXPONENT) {
    *out = tl_const_int((int64_t)value);
  } else if (a->is_rounded && info->kind != TL_FUNCTION_KIND_MATH) {
    *out = tl_const_rounded(value);
  } else if (a->kind != TL_CONST_FLOAT && info->kind == TL_FUNCTION_KIND_MAGNITUDE) {
    if (a->i < 0) return tl_fold_unary(TL_EXPR_OP_NEG, a, out);
    *out = tl_const_int(a->i);
  } else if (info->kind == TL_FUNCTION_KIND_ROUNDING) {
    // An integer, so that it may stand in a shape.
    *out = a->kind == TL_CONST_FLOAT ? tl_const_rounded(value) : tl_const_int(a->i);
  } else {
    *out = tl_const_float(value);
  }
  return TL_FOLD_OK;
}

// ---- functions that the language composes

TL_FOLD(silu) {
  (void)info, (void)num_args;
  double x = tl_const_to_double(&args[0]);
  return give_float(x * tl_scalar_math(TL_MATH_SIGMOID, x), out);
}

TL_FOLD(gelu) {
  (void)info, (void)num_args;
  double x = tl_const_to_double(&args[0]);
  return give_float(0.5 * x * erfc(-x * 0.70710678118654752440), out);
}

TL_FOLD(relu) {
  (void)info, (void)num_args;
  const tl_const both[2] = {args[0], args[0].kind == TL_CONST_FLOAT ? tl_const_float(0) : tl_const_int(0)};
  return fold_best(TL_OP_MAX, both, 2, out);
}

TL_FOLD(softplus) {
  (void)info, (void)num_args;
  double x = tl_const_to_double(&args[0]);
  return give_float(fmax(x, 0) + log1p(exp(-fabs(x))), out);
}

// ---- two and three numbers

TL_FOLD(pow) {
  (void)info, (void)num_args;
  return tl_fold_binary(TL_EXPR_OP_POW, &args[0], &args[1], out);
}

// A literal has no dtype that a neighbour could be of.
TL_FOLD(math2) {
  (void)num_args;
  if (info->math == TL_MATH2_NEXTAFTER) return TL_FOLD_NO_DTYPE;
  bool is_exponent = info->kind == TL_FUNCTION_KIND_FLOAT_EXPONENT;
  if (is_exponent && args[1].kind == TL_CONST_FLOAT) return TL_FOLD_EXPONENT;
  double a = tl_const_to_double(&args[0]), b = is_exponent ? (double)args[1].i : tl_const_to_double(&args[1]);
  return give_float(tl_scalar_math2((tl_ir_enum_MATH2)info->math, TL_DTYPE_F64, a, b), out);
}

TL_FOLD(fma) {
  (void)info, (void)num_args;
  if (args[0].kind == TL_CONST_FLOAT || args[1].kind == TL_CONST_FLOAT || args[2].kind == TL_CONST_FLOAT) {
    double a = tl_const_to_double(&args[0]), b = tl_const_to_double(&args[1]), c = tl_const_to_double(&args[2]);
    return give_float(fma(a, b, c), out);
  }
  tl_const product;
  tl_fold_result status = tl_fold_binary(TL_EXPR_OP_MUL, &args[0], &args[1], &product);
  return status ? status : tl_fold_binary(TL_EXPR_OP_ADD, &product, &args[2], out);
}

// ---- bits

// A constant is an i32 if it fits, else a u32, else (where 64 bits are taken) an i64.
static tl_fold_result fold_bits(tl_opcode code, const tl_const *a, tl_const *out) {
  if (a->kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
  bool is_wide = a->i < INT32_MIN || a->i > UINT32_MAX;
  return give_int(tl_scalar_bits_op(code, is_wide ? 64 : 32, (uint64_t)a->i), out);
}

TL_FOLD(popcount) {
  (void)info, (void)num_args;
  return fold_bits(TL_OP_POPCOUNT, &args[0], out);
}

TL_FOLD(clz) {
  (void)info, (void)num_args;
  return fold_bits(TL_OP_CLZ, &args[0], out);
}

TL_FOLD(dp4a) {
  (void)info, (void)num_args;
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

TL_FOLD(philox) {
  (void)info;
  for (uint32_t i = 0; i < num_args; ++i) {
    if (args[i].kind == TL_CONST_FLOAT) return TL_FOLD_TYPE;
  }
  if (args[2].i < 0 || args[2].i > 3) return TL_FOLD_TYPE;
  uint64_t stream = num_args > 3 ? (uint64_t)args[3].i : 0;
  *out = tl_const_int(tl_scalar_philox((uint64_t)args[0].i, (uint64_t)args[1].i, (uint32_t)args[2].i, stream));
  return TL_FOLD_OK;
}

// ---- dtypes

TL_FOLD(cast) {
  (void)info, (void)num_args;
  const tl_const *value = &args[0];
  if (!tl_const_is_number(value) || args[1].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
  tl_dtype dtype = args[1].dtype;
  if (tl_dtype_is_float(dtype)) return give_float(tl_dtype_round(dtype, tl_const_to_double(value)), out);
  if (dtype == TL_DTYPE_BOOL) {
    *out = tl_const_bool(tl_const_to_double(value) != 0);
    return TL_FOLD_OK;
  }
  int64_t integer = value->kind == TL_CONST_FLOAT ? tl_scalar_to_int(dtype, value->f) : value->i;
  return give_int(tl_scalar_wrap(dtype, (uint64_t)integer), out);
}

int tl_function_rounding(tl_function function) {
  switch (function) {
    case TL_FUNCTION_CAST_NEAREST:
      return TL_ROUNDING_NEAREST;
    case TL_FUNCTION_CAST_AWAY:
      return TL_ROUNDING_AWAY;
    case TL_FUNCTION_CAST_ZERO:
      return TL_ROUNDING_ZERO;
    case TL_FUNCTION_CAST_UP:
      return TL_ROUNDING_UP;
    case TL_FUNCTION_CAST_DOWN:
      return TL_ROUNDING_DOWN;
    case TL_FUNCTION_CAST_STOCHASTIC:
      return TL_ROUNDING_STOCHASTIC;
    default:
      return -1;
  }
}

TL_FOLD(cast_rounded) {
  const tl_const *value = &args[0];
  tl_ir_enum_ROUNDING rounding = (tl_ir_enum_ROUNDING)tl_function_rounding(tl_function_parse(tl_str_from(info->name)));
  if (!tl_const_is_number(value) || args[1].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
  if (num_args > 2 && args[2].kind != TL_CONST_INT) return TL_FOLD_TYPE;
  tl_dtype dtype = args[1].dtype;
  double x = tl_const_to_double(value);
  uint32_t bits = num_args > 2 ? (uint32_t)args[2].i : 0;
  if (dtype == TL_DTYPE_BOOL || (rounding == TL_ROUNDING_STOCHASTIC && !tl_dtype_is_float(dtype))) return TL_FOLD_TYPE;
  if (tl_dtype_is_float(dtype)) return give_float(tl_scalar_round_to(dtype, rounding, x, bits), out);
  int64_t integer =
      value->kind == TL_CONST_FLOAT ? tl_scalar_to_int(dtype, tl_scalar_round_whole(rounding, x, 0)) : value->i;
  return give_int(tl_scalar_wrap(dtype, (uint64_t)integer), out);
}

TL_FOLD(sizeof) {
  (void)info, (void)num_args;
  if (args[0].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
  int bits = tl_dtype_bits(args[0].dtype);
  return bits % 8 == 0 ? give_int(bits / 8, out) : give_float(bits / 8.0, out);
}

TL_FOLD(inf) {
  (void)info, (void)num_args;
  if (args[0].kind != TL_CONST_DTYPE) return TL_FOLD_TYPE;
  tl_dtype dtype = args[0].dtype;
  // The 8- and 4-bit floats saturate: their largest value stands for infinity.
  if (tl_dtype_is_float(dtype))
    return give_float(tl_dtype_bits(dtype) <= 8 ? tl_dtype_float_max(dtype) : INFINITY, out);
  uint64_t largest = tl_dtype_int_max(dtype);
  return largest > INT64_MAX ? TL_FOLD_OVERFLOW : give_int((int64_t)largest, out);
}

// ---- the table

static const tl_function_info function_infos[] = {
    [TL_FUNCTION_NONE] = {"", 0, 0, TL_FUNCTION_KIND_INTEGER, TL_NONE, fold_nothing, TL_FUNCTION_GROUP_COUNT, "", ""},
#define TL_FUNCTION(ID, text, min_args, max_args, kind, math, fold, group, arguments, doc)                       \
  [TL_FUNCTION_##ID] = {                                                                                         \
      text,      min_args, max_args, TL_FUNCTION_KIND_##kind, TL_##math, fold_##fold, TL_FUNCTION_GROUP_##group, \
      arguments, doc},
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

tl_fold_result tl_fold_call(tl_function function, const tl_const *args, uint32_t num_args, tl_const *out) {
  const tl_function_info *info = tl_function_info_of(function);
  for (uint32_t i = 0; info->kind != TL_FUNCTION_KIND_TYPE && i < num_args; ++i) {
    bool is_branch = i > 0 && (function == TL_FUNCTION_SELECT || function == TL_FUNCTION_IF_THEN_ELSE);
    if (!is_branch && !tl_const_is_number(&args[i])) return TL_FOLD_TYPE;
  }
  return info->fold(info, args, num_args, out);
}

static bool is_of_two(const tl_function_info *info) {
  return info->kind == TL_FUNCTION_KIND_FLOATS || info->kind == TL_FUNCTION_KIND_FLOAT_BITS ||
         info->kind == TL_FUNCTION_KIND_FLOAT_EXPONENT;
}

void tl_function_ulp(tl_function function, int *out_f32, int *out_f64) {
  const tl_function_info *info = &function_infos[function];
  *out_f32 = *out_f64 = 0;
  if (is_of_two(info))
    tl_scalar_math2_ulp(info->math, out_f32, out_f64);
  else if (info->math >= 0)
    tl_scalar_math_ulp(info->math, out_f32, out_f64);
  if (function == TL_FUNCTION_POW) tl_scalar_float_op_ulp(TL_OP_POW, out_f32, out_f64);
}

static void print_function(tl_function function, tl_strbuf *out) {
  const tl_function_info *info = &function_infos[function];
  int f32_ulp, f64_ulp;
  tl_function_ulp(function, &f32_ulp, &f64_ulp);
  tl_strbuf_appendf(out, "| `%s%s` | %s", info->name, info->arguments, info->doc);
  if (f32_ulp > 0) tl_strbuf_appendf(out, " (to %d ulp in f32, %d in f64)", f32_ulp, f64_ulp);
  tl_strbuf_append_c(out, " |\n");
}

void tl_function_print_table(tl_strbuf *out) {
  static const char *const titles[TL_FUNCTION_GROUP_COUNT] = {
      [TL_FUNCTION_GROUP_NUMBERS] = "numbers",
      [TL_FUNCTION_GROUP_BITS] = "bits of integers",
      [TL_FUNCTION_GROUP_ROUNDINGS] = "rounding",
      [TL_FUNCTION_GROUP_EXPONENTIALS] = "powers and logarithms",
      [TL_FUNCTION_GROUP_TRIGONOMETRY] = "trigonometric and hyperbolic",
      [TL_FUNCTION_GROUP_ACTIVATIONS] = "activations",
      [TL_FUNCTION_GROUP_OTHERS] = "other",
      [TL_FUNCTION_GROUP_MEMORY] = "memory",
      [TL_FUNCTION_GROUP_THREADS] = "threads"};
  tl_strbuf_append_c(out, "| function | value |\n| --- | --- |\n");
  for (int group = 0; group < TL_FUNCTION_GROUP_COUNT; ++group) {
    tl_strbuf_appendf(out, "| **%s** | |\n", titles[group]);
    for (int i = 1; i < TL_FUNCTION_COUNT; ++i) {
      if ((int)function_infos[i].group == group) print_function((tl_function)i, out);
    }
  }
}
