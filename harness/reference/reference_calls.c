// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/reference/reference_calls.h"

#include <math.h>
#include <string.h>

#include "frontend/expr/suggest.h"

// Functions of one float that are one call. exp10 and the like are composed below.
static const struct {
  const char *name, *symbol;
} unary_functions[] = {{"floor", "llvm.floor.f64"},
                       {"ceil", "llvm.ceil.f64"},
                       {"round", "llvm.roundeven.f64"},
                       {"trunc", "llvm.trunc.f64"},
                       {"nearbyint", "llvm.rint.f64"},
                       {"rint", "llvm.nearbyint.f64"},
                       {"round_away", "llvm.round.f64"},
                       {"sqrt", "llvm.sqrt.f64"},
                       {"exp", "exp"},
                       {"exp2", "exp2"},
                       {"expm1", "expm1"},
                       {"log", "log"},
                       {"log2", "log2"},
                       {"log10", "log10"},
                       {"log1p", "log1p"},
                       {"sin", "sin"},
                       {"cos", "cos"},
                       {"tan", "tan"},
                       {"tanh", "tanh"},
                       {"sinh", "sinh"},
                       {"cosh", "cosh"},
                       {"atan", "atan"},
                       {"asin", "asin"},
                       {"acos", "acos"},
                       {"asinh", "asinh"},
                       {"acosh", "acosh"},
                       {"atanh", "atanh"},
                       {"cbrt", "cbrt"},
                       {"erf", "erf"}};
enum { NUM_ROUNDINGS = 7 };  // those in front

// And of two.
static const struct {
  const char *name, *symbol;
} binary_functions[] = {{"pow", "pow"},   {"atan2", "atan2"},         {"hypot", "hypot"},
                        {"fmod", "fmod"}, {"remainder", "remainder"}, {"copysign", "llvm.copysign.f64"}};

static void declare(const char *symbol, const char *types, tl_strbuf *out) {
  tl_strbuf_appendf(out, "declare double @%s(%s)%s\n", symbol, types, strncmp(symbol, "llvm.", 5) == 0 ? "" : " #0");
}

void tl_ref_declare_functions(tl_strbuf *out) {
  for (size_t i = 0; i < sizeof unary_functions / sizeof unary_functions[0]; i++) {
    declare(unary_functions[i].symbol, "double", out);
  }
  for (size_t i = 0; i < sizeof binary_functions / sizeof binary_functions[0]; i++) {
    declare(binary_functions[i].symbol, "double, double", out);
  }
  tl_strbuf_append_c(out,
                     "declare double @ldexp(double, i32) #0\n"
                     "declare i32 @ilogb(double) #0\n"
                     "declare double @llvm.fma.f64(double, double, double)\n"
                     "declare double @llvm.fabs.f64(double)\n"
                     "declare i64 @llvm.fptosi.sat.i64.f64(double)\n"
                     "declare i64 @llvm.fptoui.sat.i64.f64(double)\n"
                     "declare i64 @llvm.ctpop.i64(i64)\n"
                     "declare i64 @llvm.ctlz.i64(i64, i1)\n"
                     "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
                     "attributes #0 = { nounwind willreturn memory(none) }\n");
}

double tl_ref_helper_round(int32_t dtype, double value) {
  return tl_dtype_round((tl_dtype)dtype, value);
}

// `bits`: a double's or an int64's. The result likewise, as `to` is a float or not.
uint64_t tl_ref_helper_bitcast(int32_t from, int32_t to, uint64_t bits) {
  uint64_t memory = 0, out = 0;
  if (tl_dtype_is_float((tl_dtype)from)) {
    double value;
    memcpy(&value, &bits, sizeof value);
    tl_dtype_store_float((tl_dtype)from, &memory, 0, value);
  } else {
    tl_dtype_store_int((tl_dtype)from, &memory, 0, (int64_t)bits);
  }
  if (tl_dtype_is_float((tl_dtype)to)) {
    double value = tl_dtype_load_float((tl_dtype)to, &memory, 0);
    memcpy(&out, &value, sizeof out);
  } else {
    out = (uint64_t)tl_dtype_load_int((tl_dtype)to, &memory, 0);
  }
  return out;
}

static tl_ref_value call1(tl_ref_code *code, const char *symbol, tl_ref_value x) {
  return tl_ref_op(code, TL_REF_FLOAT, "call double @%s(double %s)", symbol, x.text);
}
static tl_ref_value arith(tl_ref_code *code, const char *op, tl_ref_value a, tl_ref_value b) {
  return tl_ref_op(code, TL_REF_FLOAT, "%s double %s, %s", op, a.text, b.text);
}
static tl_ref_value constant(double value) {
  return tl_ref_const_float(value);
}

tl_ref_value tl_ref_min_max(tl_ref_code *code, bool is_max, tl_ref_value a, tl_ref_value b) {
  if (a.kind == TL_REF_FLOAT || b.kind == TL_REF_FLOAT) {
    a = tl_ref_to_float(code, a);
    b = tl_ref_to_float(code, b);
    tl_ref_value wins = tl_ref_op(code, TL_REF_BOOL, "fcmp %s double %s, %s", is_max ? "ogt" : "olt", a.text, b.text);
    tl_ref_value is_nan = tl_ref_op(code, TL_REF_BOOL, "fcmp uno double %s, %s", b.text, b.text);
    tl_ref_value take_a = tl_ref_op(code, TL_REF_BOOL, "or i1 %s, %s", wins.text, is_nan.text);
    return tl_ref_select(code, take_a, a, b);
  }
  tl_dtype dtype = tl_ref_common_dtype(&a, &b);
  a = tl_ref_to_int(code, a);
  b = tl_ref_to_int(code, b);
  tl_ref_value wins = tl_ref_op(code, TL_REF_BOOL, "icmp %s i64 %s, %s", is_max ? "sgt" : "slt", a.text, b.text);
  tl_ref_value out = tl_ref_select(code, wins, a, b);
  if (a.has_range && b.has_range) {
    out.lo = is_max == (a.lo > b.lo) ? a.lo : b.lo;
    out.hi = is_max == (a.hi > b.hi) ? a.hi : b.hi;
  }
  out.dtype = dtype;
  return out;
}

// 1 / (1 + exp(-x)); on the left exp(x) / (1 + exp(x)), which does not overflow.
static tl_ref_value sigmoid(tl_ref_code *code, tl_ref_value x) {
  tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
  tl_ref_value e = call1(code, "exp", tl_ref_op(code, TL_REF_FLOAT, "fneg double %s", magnitude.text));
  tl_ref_value is_left = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, 0.0", x.text);
  tl_ref_value above = tl_ref_select(code, is_left, e, constant(1));
  return arith(code, "fdiv", above, arith(code, "fadd", constant(1), e));
}

// Whether x is a finite number other than 0.
static tl_ref_value is_ordinary(tl_ref_code *code, tl_ref_value x) {
  tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
  tl_ref_value is_finite =
      tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, %s", magnitude.text, constant(INFINITY).text);
  tl_ref_value is_number = tl_ref_op(code, TL_REF_BOOL, "fcmp ogt double %s, 0.0", magnitude.text);
  return tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", is_finite.text, is_number.text);
}

// The exponent by which x is 2^n times a number from 1/2 to 1, as i32.
static tl_ref_value frexp_exponent(tl_ref_code *code, tl_ref_value x) {
  tl_ref_value low = tl_ref_op(code, TL_REF_INT, "call i32 @ilogb(double %s)", x.text);
  low = tl_ref_op(code, TL_REF_INT, "add i32 %s, 1", low.text);
  low = tl_ref_op(code, TL_REF_INT, "select i1 %s, i32 %s, i32 0", is_ordinary(code, x).text, low.text);
  return low;
}

// Tests, and the parts of a number. False when `name` is none of them.
static bool of_parts(tl_ref_code *code, tl_str name, tl_ref_value x, tl_ref_value *out) {
  if (tl_str_is(name, "isnan")) {
    *out = tl_ref_op(code, TL_REF_BOOL, "fcmp uno double %s, 0.0", x.text);
  } else if (tl_str_is(name, "isinf")) {
    tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
    *out = tl_ref_op(code, TL_REF_BOOL, "fcmp oeq double %s, %s", magnitude.text, constant(INFINITY).text);
  } else if (tl_str_is(name, "isfinite")) {
    tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
    *out = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, %s", magnitude.text, constant(INFINITY).text);
  } else if (tl_str_is(name, "signbit")) {
    tl_ref_value bits = tl_ref_op(code, TL_REF_INT, "bitcast double %s to i64", x.text);
    *out = tl_ref_op(code, TL_REF_BOOL, "icmp slt i64 %s, 0", bits.text);
  } else if (tl_str_is(name, "frexp_exponent")) {
    tl_ref_value exponent = frexp_exponent(code, x);
    *out = tl_ref_op(code, TL_REF_INT, "sext i32 %s to i64", exponent.text);
    out->dtype = TL_DTYPE_I32;
  } else if (tl_str_is(name, "frexp_mantissa")) {
    tl_ref_value exponent = frexp_exponent(code, x);
    tl_ref_value down = tl_ref_op(code, TL_REF_INT, "sub i32 0, %s", exponent.text);
    *out = tl_ref_op(code, TL_REF_FLOAT, "call double @ldexp(double %s, i32 %s)", x.text, down.text);
  } else {
    return false;
  }
  return true;
}

// Functions of one float made of several operations. False when `name` is none of them.
static bool composed(tl_ref_code *code, tl_str name, tl_ref_value x, tl_ref_value *out) {
  if (tl_str_is(name, "exp10")) {
    *out = tl_ref_op(code, TL_REF_FLOAT, "call double @pow(double %s, double %s)", constant(10).text, x.text);
  } else if (tl_str_is(name, "rsqrt")) {
    *out = arith(code, "fdiv", constant(1), call1(code, "llvm.sqrt.f64", x));
  } else if (tl_str_is(name, "rcp")) {
    *out = arith(code, "fdiv", constant(1), x);
  } else if (tl_str_is(name, "sigmoid")) {
    *out = sigmoid(code, x);
  } else if (tl_str_is(name, "silu")) {
    *out = arith(code, "fmul", x, sigmoid(code, x));
  } else if (tl_str_is(name, "gelu")) {
    tl_ref_value e = call1(code, "erf", arith(code, "fmul", x, constant(0.70710678118654752440)));
    *out = arith(code, "fmul", arith(code, "fmul", constant(0.5), x), arith(code, "fadd", constant(1), e));
  } else if (tl_str_is(name, "softplus")) {
    // max(x, 0) + log1p(exp(-|x|)): no overflow for large x
    tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
    tl_ref_value e = call1(code, "exp", tl_ref_op(code, TL_REF_FLOAT, "fneg double %s", magnitude.text));
    *out = arith(code, "fadd", tl_ref_min_max(code, true, x, constant(0)), call1(code, "log1p", e));
  } else {
    return of_parts(code, name, x, out);
  }
  return true;
}

// abs sign relu clamp: of integers or floats.
static bool number_function(tl_ref_code *code, tl_str name, tl_ref_value *args, tl_ref_value *out) {
  tl_ref_value x = args[0].kind == TL_REF_BOOL ? tl_ref_to_int(code, args[0]) : args[0];
  bool is_float = x.kind == TL_REF_FLOAT;
  if (tl_str_is(name, "abs")) {
    if (is_float) {
      *out = call1(code, "llvm.fabs.f64", x);
    } else {
      // The upper half of u64 is negative here.
      tl_ref_value negated = tl_ref_int_add(code, tl_ref_const_int(0), x, true);
      *out = x.dtype == TL_DTYPE_U64 ? x : tl_ref_min_max(code, true, x, negated);
    }
  } else if (tl_str_is(name, "sign") && is_float) {
    tl_ref_value up = tl_ref_op(code, TL_REF_BOOL, "fcmp ogt double %s, 0.0", x.text);
    tl_ref_value down = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, 0.0", x.text);
    *out = tl_ref_select(code, up, constant(1), tl_ref_select(code, down, constant(-1), x));
  } else if (tl_str_is(name, "sign") && x.dtype == TL_DTYPE_U64) {
    *out = tl_ref_to_int(code, tl_ref_to_bool(code, x));
  } else if (tl_str_is(name, "relu") && x.dtype == TL_DTYPE_U64) {
    *out = x;
  } else if (tl_str_is(name, "sign")) {
    *out = tl_ref_min_max(code, true, tl_ref_min_max(code, false, x, tl_ref_const_int(1)), tl_ref_const_int(-1));
  } else if (tl_str_is(name, "relu")) {
    *out = tl_ref_min_max(code, true, x, is_float ? constant(0) : tl_ref_const_int(0));
  } else if (tl_str_is(name, "clamp")) {
    *out = tl_ref_min_max(code, false, tl_ref_min_max(code, true, x, args[1]), args[2]);
  } else {
    return false;
  }
  return true;
}

static tl_ref_value ceildiv(tl_ref_code *code, tl_ref_value a, tl_ref_value b) {
  if (a.has_range) {  // -((-a) // b) has the narrower range
    tl_ref_value negated = tl_ref_int_add(code, tl_ref_const_int(0), a, true);
    return tl_ref_int_add(code, tl_ref_const_int(0), tl_ref_int_div(code, negated, b, false), true);
  }
  tl_ref_value quotient, rest;
  if (a.dtype == TL_DTYPE_U64) {
    tl_ref_value is_zero = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, 0", b.text);
    tl_ref_value divisor = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 1, i64 %s", is_zero.text, b.text);
    quotient = tl_ref_op(code, TL_REF_INT, "udiv i64 %s, %s", a.text, divisor.text);
    rest = tl_ref_op(code, TL_REF_INT, "urem i64 %s, %s", a.text, divisor.text);
  } else {
    quotient = tl_ref_int_div(code, a, b, false);
    rest = tl_ref_int_div(code, a, b, true);
  }
  tl_ref_value has_rest = tl_ref_to_bool(code, rest);
  tl_ref_value one_or_zero = tl_ref_to_int(code, has_rest);
  return tl_ref_int_add(code, quotient, one_or_zero, false);
}

static bool integer_function(tl_ref_code *code, tl_str name, tl_ref_value *args, uint32_t count, tl_ref_value *out) {
  bool is_ceildiv = tl_str_is(name, "ceildiv");
  if (!is_ceildiv && !tl_str_is(name, "popcount") && !tl_str_is(name, "clz")) return false;
  for (uint32_t i = 0; i < count; i++) args[i] = tl_ref_to_int(code, args[i]);
  if (is_ceildiv) {
    *out = ceildiv(code, args[0], args[1]);
    return true;
  }
  // Of 64 bits for an element or a cast of that width, else of 32.
  bool is_wide = args[0].dtype != TL_DTYPE_NONE && tl_dtype_bits(args[0].dtype) == 64;
  tl_ref_value bits = args[0];
  if (!is_wide) bits = tl_ref_op(code, TL_REF_INT, "and i64 %s, 4294967295", bits.text);
  if (tl_str_is(name, "popcount")) {
    *out = tl_ref_op(code, TL_REF_INT, "call i64 @llvm.ctpop.i64(i64 %s)", bits.text);
  } else {
    *out = tl_ref_op(code, TL_REF_INT, "call i64 @llvm.ctlz.i64(i64 %s, i1 false)", bits.text);
    if (!is_wide) *out = tl_ref_int_add(code, *out, tl_ref_const_int(32), true);
  }
  return true;
}

// c plus the products of the four bytes of a and b, unsigned in elements and casts of u32, else signed.
static tl_ref_value dp4a(tl_ref_code *code, tl_ref_value *args) {
  tl_ref_value out = tl_ref_to_int(code, args[2]), a = tl_ref_to_int(code, args[0]), b = tl_ref_to_int(code, args[1]);
  const char *extensions[2];
  for (int i = 0; i < 2; i++) extensions[i] = args[i].dtype == TL_DTYPE_U32 ? "zext" : "sext";
  for (int byte = 0; byte < 4; byte++) {
    tl_ref_value parts[2] = {a, b};
    for (int i = 0; i < 2; i++) {
      parts[i] = tl_ref_op(code, TL_REF_INT, "lshr i64 %s, %d", parts[i].text, 8 * byte);
      parts[i] = tl_ref_op(code, TL_REF_INT, "trunc i64 %s to i8", parts[i].text);
      parts[i] = tl_ref_op(code, TL_REF_INT, "%s i8 %s to i64", extensions[i], parts[i].text);
    }
    out = tl_ref_int_add(code, out, tl_ref_int_mul(code, parts[0], parts[1]), false);
  }
  return out;
}

// ---- functions with a dtype

static bool dtype_of(tl_ref_code *code, const tl_expr *expr, tl_dtype *out) {
  tl_const value;
  if (!tl_env_eval(code->reference->env, expr, code->reference->diags, &value)) return false;
  if (value.kind != TL_CONST_DTYPE) {
    tl_ref_error(code, expr->loc, "a dtype is needed here");
    return false;
  }
  *out = value.dtype;
  return true;
}

tl_ref_value tl_ref_cast(tl_ref_code *code, tl_ref_value x, tl_dtype dtype) {
  tl_ref_value out;
  if (dtype == TL_DTYPE_BOOL) {
    out = tl_ref_to_bool(code, x);
  } else if (tl_dtype_is_float(dtype)) {
    x = tl_ref_to_float(code, x);
    out = dtype == TL_DTYPE_F64
              ? x
              : tl_ref_op(code, TL_REF_FLOAT, "call double %%round_helper(i32 %d, double %s)", (int)dtype, x.text);
  } else if (x.kind == TL_REF_FLOAT && dtype == TL_DTYPE_U64) {
    out = tl_ref_op(code, TL_REF_INT, "call i64 @llvm.fptoui.sat.i64.f64(double %s)", x.text);
  } else if (x.kind == TL_REF_FLOAT) {
    // Saturates, as the device's conversion does.
    out = tl_ref_to_int(code, x);
    if (tl_dtype_bits(dtype) < 64) {
      out = tl_ref_min_max(code, true, out, tl_ref_const_int(tl_dtype_int_min(dtype)));
      out = tl_ref_min_max(code, false, out, tl_ref_const_int((int64_t)tl_dtype_int_max(dtype)));
    }
  } else {
    out = tl_ref_to_int(code, x);
    int bits = tl_dtype_bits(dtype);
    bool fits =
        out.has_range && bits < 64 && out.lo >= tl_dtype_int_min(dtype) && out.hi <= (int64_t)tl_dtype_int_max(dtype);
    if (bits < 64 && !fits) {
      out = tl_ref_op(code, TL_REF_INT, "trunc i64 %s to i%d", out.text, bits);
      out = tl_ref_op(code, TL_REF_INT, "%s i%d %s to i64", tl_dtype_is_signed_int(dtype) ? "sext" : "zext", bits,
                      out.text);
    }
  }
  out.dtype = dtype;
  return out;
}

static bool bitcast_to(tl_ref_code *code, const tl_expr *expr, tl_ref_value x, tl_dtype dtype, tl_ref_value *out) {
  if (x.dtype == TL_DTYPE_NONE) {
    tl_ref_error(code, expr->operands[0]->loc,
                 "the dtype of this value is unknown in a reference: write bitcast(cast(x, dtype), …)");
    return false;
  }
  if (tl_dtype_bits(x.dtype) != tl_dtype_bits(dtype)) {
    tl_ref_error(code, expr->loc, "%s and %s have different sizes", tl_dtype_name(x.dtype), tl_dtype_name(dtype));
    return false;
  }
  tl_ref_value bits =
      x.kind == TL_REF_FLOAT ? tl_ref_op(code, TL_REF_INT, "bitcast double %s to i64", x.text) : tl_ref_to_int(code, x);
  *out = tl_ref_op(code, TL_REF_INT, "call i64 %%bitcast_helper(i32 %d, i32 %d, i64 %s)", (int)x.dtype, (int)dtype,
                   bits.text);
  if (tl_dtype_is_float(dtype)) *out = tl_ref_op(code, TL_REF_FLOAT, "bitcast i64 %s to double", out->text);
  out->dtype = dtype;
  return true;
}

// cast, bitcast, inf, sizeof. Returns 1 when done, 0 on an error, -1 when the name is none of them.
static int type_function(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  tl_str name = expr->text;
  tl_dtype dtype;
  bool is_cast = tl_str_is(name, "cast"), is_bitcast = tl_str_is(name, "bitcast");
  int mode = tl_ref_cast_mode(name);
  if (is_cast || is_bitcast || mode >= 0) {
    tl_ref_value x, bits;
    bool takes_bits = tl_str_is(name, "cast_stochastic");
    if (takes_bits && expr->num_operands == 3) {
      if (!tl_ref_emit(code, expr->operands[2], &bits)) return 0;
    } else if (expr->num_operands != 2 || takes_bits) {
      tl_ref_error(code, expr->loc, "`%.*s` takes a value and a dtype", TL_STR_ARG(name));
      return 0;
    }
    if (!tl_ref_emit(code, expr->operands[0], &x) || !dtype_of(code, expr->operands[1], &dtype)) return 0;
    if (is_bitcast) return bitcast_to(code, expr, x, dtype, out);
    if (mode >= 0) *out = tl_ref_rounded_cast(code, mode, x, dtype, takes_bits ? &bits : NULL);
    if (mode < 0) *out = tl_ref_cast(code, x, dtype);
    return 1;
  }
  bool is_inf = tl_str_is(name, "inf");
  if (!is_inf && !tl_str_is(name, "sizeof")) return -1;
  if (expr->num_operands != 1) {
    tl_ref_error(code, expr->loc, "`%.*s` takes a dtype", TL_STR_ARG(name));
    return 0;
  }
  if (!dtype_of(code, expr->operands[0], &dtype)) return 0;
  if (is_inf) {
    *out = tl_dtype_is_float(dtype) ? constant(INFINITY) : tl_ref_const_int((int64_t)tl_dtype_int_max(dtype));
  } else if (tl_dtype_bits(dtype) < 8) {
    *out = constant(tl_dtype_bits(dtype) / 8.0);
  } else {
    *out = tl_ref_const_int(tl_dtype_bits(dtype) / 8);
  }
  return 1;
}

// load(X[i], v) and in_bounds(X[i]). As above.
static int access_function(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  bool is_load = tl_str_is(expr->text, "load");
  if (!is_load && !tl_str_is(expr->text, "in_bounds")) return -1;
  if (expr->num_operands < 1 || expr->num_operands > (is_load ? 2u : 1u) || expr->operands[0]->kind != TL_EXPR_INDEX) {
    tl_ref_error(code, expr->loc, "`%.*s` takes an element%s", TL_STR_ARG(expr->text), is_load ? " and a value" : "");
    return 0;
  }
  if (is_load) return tl_ref_emit_load(code, expr->operands[0], expr->num_operands > 1 ? expr->operands[1] : NULL, out);
  tl_ref_address address;
  if (!tl_ref_emit_address(code, expr->operands[0], &address)) return 0;
  *out = address.in_bounds;
  return 1;
}

static bool wrong_count(tl_ref_code *code, const tl_expr *expr, uint32_t expected) {
  tl_ref_error(code, expr->loc, "`%.*s` takes %u argument%s, given %u", TL_STR_ARG(expr->text), expected,
               expected == 1 ? "" : "s", expr->num_operands);
  return false;
}

// Number of arguments of the functions that take values only; 0 for min and max (any), UINT32_MAX for unknown names.
static uint32_t value_arity(tl_str name) {
  static const struct {
    const char *name;
    uint32_t arity;
  } table[] = {{"min", 0},           {"max", 0},      {"abs", 1},     {"sign", 1},
               {"relu", 1},          {"clamp", 3},    {"ceildiv", 2}, {"select", 3},
               {"if_then_else", 3},  {"fma", 3},      {"dp4a", 3},    {"popcount", 1},
               {"clz", 1},           {"philox", 4},   {"exp10", 1},   {"rsqrt", 1},
               {"rcp", 1},           {"sigmoid", 1},  {"silu", 1},    {"gelu", 1},
               {"softplus", 1},      {"isnan", 1},    {"isinf", 1},   {"ldexp", 2},
               {"nextafter", 2},     {"isfinite", 1}, {"signbit", 1}, {"frexp_mantissa", 1},
               {"frexp_exponent", 1}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (tl_str_is(name, table[i].name)) return table[i].arity;
  }
  for (size_t i = 0; i < sizeof unary_functions / sizeof unary_functions[0]; i++) {
    if (tl_str_is(name, unary_functions[i].name)) return 1;
  }
  for (size_t i = 0; i < sizeof binary_functions / sizeof binary_functions[0]; i++) {
    if (tl_str_is(name, binary_functions[i].name)) return 2;
  }
  return UINT32_MAX;
}

static bool float_function(tl_ref_code *code, tl_str name, tl_ref_value *args, tl_ref_value *out) {
  tl_ref_value x = tl_ref_to_float(code, args[0]);
  if (composed(code, name, x, out)) return true;
  for (size_t i = 0; i < sizeof unary_functions / sizeof unary_functions[0]; i++) {
    if (!tl_str_is(name, unary_functions[i].name)) continue;
    // The rounding of an integer is the integer.
    bool is_rounding = i < NUM_ROUNDINGS;
    *out = is_rounding && args[0].kind != TL_REF_FLOAT ? tl_ref_to_int(code, args[0])
                                                       : call1(code, unary_functions[i].symbol, x);
    return true;
  }
  return false;
}

// The dtype in which the kernel looks for a neighbour of one beside the other; NONE: neither tells.
static tl_dtype dtype_of_both(const tl_ref_value *a, const tl_ref_value *b) {
  tl_dtype both = TL_DTYPE_NONE;
  for (int i = 0; i < 2; i++) {
    const tl_ref_value *x = i == 0 ? a : b;
    tl_dtype dtype = x->dtype;
    if (dtype == TL_DTYPE_NONE) continue;
    if (!tl_dtype_is_float(dtype)) dtype = x->kind == TL_REF_FLOAT ? TL_DTYPE_NONE : both;
    bool is_wider = tl_dtype_bits(dtype) > tl_dtype_bits(both);
    bool differ = both != dtype && tl_dtype_bits(dtype) == tl_dtype_bits(both);
    both = differ ? TL_DTYPE_F32 : is_wider ? dtype : both;
  }
  return both != TL_DTYPE_NONE && tl_dtype_bits(both) < 16 ? TL_DTYPE_F32 : both;
}

// nextafter: the bits of the dtype, one more or less.
static bool nextafter_of(tl_ref_code *code, const tl_expr *expr, tl_ref_value *args, tl_ref_value *out) {
  tl_dtype dtype = dtype_of_both(&args[0], &args[1]);
  if (dtype == TL_DTYPE_NONE) {
    tl_ref_error(code, expr->loc,
                 "the dtype of these values is unknown in a reference: write nextafter(cast(x, dtype), …)");
    return false;
  }
  tl_ref_value x = tl_ref_to_float(code, args[0]), y = tl_ref_to_float(code, args[1]);
  tl_dtype bits_dtype = tl_dtype_bits(dtype) == 64   ? TL_DTYPE_U64
                        : tl_dtype_bits(dtype) == 32 ? TL_DTYPE_U32
                                                     : TL_DTYPE_U16;
  tl_ref_value raw = tl_ref_op(code, TL_REF_INT, "bitcast double %s to i64", x.text);
  tl_ref_value bits = tl_ref_op(code, TL_REF_INT, "call i64 %%bitcast_helper(i32 %d, i32 %d, i64 %s)", (int)dtype,
                                (int)bits_dtype, raw.text);
  tl_ref_value magnitude = call1(code, "llvm.fabs.f64", x);
  tl_ref_value outward = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, %s", x.text, y.text);
  tl_ref_value is_negative = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, 0.0", x.text);
  outward = tl_ref_op(code, TL_REF_BOOL, "xor i1 %s, %s", outward.text, is_negative.text);
  tl_ref_value step = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 1, i64 -1", outward.text);
  bits = tl_ref_op(code, TL_REF_INT, "add i64 %s, %s", bits.text, step.text);
  // From 0 the least number, whatever the sign of that 0.
  tl_ref_value is_zero = tl_ref_op(code, TL_REF_BOOL, "fcmp oeq double %s, 0.0", magnitude.text);
  bits = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 1, i64 %s", is_zero.text, bits.text);
  raw = tl_ref_op(code, TL_REF_INT, "call i64 %%bitcast_helper(i32 %d, i32 %d, i64 %s)", (int)bits_dtype, (int)dtype,
                  bits.text);
  tl_ref_value next = tl_ref_op(code, TL_REF_FLOAT, "bitcast i64 %s to double", raw.text);
  tl_ref_value of_zero =
      tl_ref_op(code, TL_REF_FLOAT, "call double @llvm.copysign.f64(double %s, double %s)", next.text, y.text);
  next = tl_ref_select(code, is_zero, of_zero, next);
  tl_ref_value is_equal = tl_ref_op(code, TL_REF_BOOL, "fcmp oeq double %s, %s", x.text, y.text);
  next = tl_ref_select(code, is_equal, y, next);
  tl_ref_value is_nan = tl_ref_op(code, TL_REF_BOOL, "fcmp uno double %s, %s", x.text, y.text);
  *out = tl_ref_select(code, is_nan, constant(NAN), next);
  out->dtype = dtype;
  return true;
}

static tl_ref_value ldexp_of(tl_ref_code *code, tl_ref_value *args) {
  tl_ref_value x = tl_ref_to_float(code, args[0]), n = tl_ref_to_int(code, args[1]);
  n = tl_ref_min_max(code, true, n, tl_ref_const_int(-10000));
  n = tl_ref_min_max(code, false, n, tl_ref_const_int(10000));
  n = tl_ref_op(code, TL_REF_INT, "trunc i64 %s to i32", n.text);
  return tl_ref_op(code, TL_REF_FLOAT, "call double @ldexp(double %s, i32 %s)", x.text, n.text);
}

static tl_ref_value binary_function(tl_ref_code *code, tl_str name, tl_ref_value *args) {
  const char *symbol = NULL;
  for (size_t i = 0; i < sizeof binary_functions / sizeof binary_functions[0]; i++) {
    if (tl_str_is(name, binary_functions[i].name)) symbol = binary_functions[i].symbol;
  }
  return tl_ref_op(code, TL_REF_FLOAT, "call double @%s(double %s, double %s)", symbol, args[0].text, args[1].text);
}

bool tl_ref_emit_call(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  tl_str name = expr->text;
  if (expr->num_keywords > 0) {
    tl_ref_error(code, expr->keywords[0].loc,
                 "index notation has no keyword arguments: reduce over indices, `sum[k](…)`");
    return false;
  }
  int done = type_function(code, expr, out);
  if (done < 0) done = access_function(code, expr, out);
  if (done >= 0) return done;
  uint32_t arity = value_arity(name);
  bool reduces = tl_ref_is_reduction(name) && expr->num_operands == 1;
  if (arity == UINT32_MAX || reduces) {
    tl_diag *diag = tl_ref_error(
        code, expr->loc, reduces ? "`%.*s` does not say over which indices" : "`%.*s` is no function of index notation",
        TL_STR_ARG(name));
    const char *known = tl_suggest_for_function(name);
    if (reduces)
      tl_diag_add_hint(code->reference->diags, diag, "name the indices: `%.*s[k](…)`", TL_STR_ARG(name));
    else if (known)
      tl_diag_add_hint(code->reference->diags, diag, "%s", known);
    return false;
  }
  bool is_philox = tl_str_is(name, "philox");  // its last argument may be left out
  if (is_philox && expr->num_operands == 3) arity = 3;
  if (arity > 0 && expr->num_operands != arity) return wrong_count(code, expr, arity);
  if (arity == 0 && (expr->num_operands < 2 || expr->num_operands > 16)) return wrong_count(code, expr, 2);
  tl_ref_value args[16];
  for (uint32_t i = 0; i < expr->num_operands; i++) {
    if (!tl_ref_emit(code, expr->operands[i], &args[i])) return false;
  }
  if (arity == 0) {
    *out = args[0];
    for (uint32_t i = 1; i < expr->num_operands; i++)
      *out = tl_ref_min_max(code, tl_str_is(name, "max"), *out, args[i]);
    return true;
  }
  if (tl_str_is(name, "select") || tl_str_is(name, "if_then_else")) {
    *out = tl_ref_select(code, args[0], args[1], args[2]);
    if (out->kind == TL_REF_INT) out->dtype = tl_ref_common_dtype(&args[1], &args[2]);
    return true;
  }
  if (is_philox) {
    *out = tl_ref_philox(code, args, expr->num_operands);
    return true;
  }
  if (tl_str_is(name, "dp4a")) {
    *out = dp4a(code, args);
    return true;
  }
  if (number_function(code, name, args, out) || integer_function(code, name, args, expr->num_operands, out))
    return true;
  if (arity == 1) return float_function(code, name, args, out);
  if (tl_str_is(name, "nextafter")) return nextafter_of(code, expr, args, out);
  if (tl_str_is(name, "ldexp")) {
    *out = ldexp_of(code, args);
    return true;
  }
  for (uint32_t i = 0; i < arity; i++) args[i] = tl_ref_to_float(code, args[i]);
  if (arity == 3) {
    *out = tl_ref_op(code, TL_REF_FLOAT, "call double @llvm.fma.f64(double %s, double %s, double %s)", args[0].text,
                     args[1].text, args[2].text);
  } else {
    *out = binary_function(code, name, args);
  }
  return true;
}
