// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logarithms: x = 2^e (1 + f), and ln(1 + f) as a polynomial.
#include <math.h>

#include "llvm_backend/math/math_build.h"

static const tl_math_real ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// ---- facts that save instructions
static bool is_nonnegative(const tl_value *value) {
  double constant;
  if (tl_math_constant(value, &constant)) return constant >= 0;
  if (!value->def || value->def->code != TL_OP_MATH) return false;
  int64_t fn = tl_op_int(value->def, TL_ATTR_MATH, 0);
  return fn == TL_MATH_EXP || fn == TL_MATH_EXP2 || fn == TL_MATH_SIGMOID || fn == TL_MATH_ABS;
}

// Whether the value is a normal positive number, +inf or NaN: a positive constant plus something nonnegative.
static bool is_normal_positive(const tl_value *value) {
  if (!value || !value->def || value->def->code != TL_OP_ADD || value->type->dtype != TL_DTYPE_F32) return false;
  double constant;
  for (uint32_t i = 0; i < 2; i++)
    if (tl_math_constant(tl_op_operand(value->def, i), &constant) && constant >= 1e-30 &&
        is_nonnegative(tl_op_operand(value->def, 1 - i)))
      return true;
  return false;
}

// ---- f32
static const double log_coefficients[] = {0.333331799, -0.25004255,  0.200130895, -0.164719089,
                                          0.139580014, -0.151245913, 0.142273051};
// To 2^-27 instead of 2^-24, for logarithms that are scaled afterwards.
static const double long_log_coefficients[] = {0x1.555506p-2, -0x1.fffeeep-3, 0x1.99d03cp-3, -0x1.559e1ap-3,
                                               0x1.1ed576p-3, -0x1.f3084ap-4, 0x1.1e7038p-3, -0x1.08199p-3};

// ln(1 + f) = f + f^2 (-1/2 + f P(f)) for f in [-1/3, 1/3].
static LLVMValueRef log_of_fraction_f32(const tl_math_context *m, LLVMValueRef f, bool is_long) {
  LLVMValueRef p =
      is_long ? tl_math_polynomial(m, f, long_log_coefficients, 8) : tl_math_polynomial(m, f, log_coefficients, 7);
  p = tl_math_fma(m, p, f, tl_math_const(m, -0.5));
  return tl_math_fma(m, p, tl_math_mul(m, f, f), f);
}

// The exponent e of x = 2^e (1 + f), f in [-1/3, 1/3], in the place of an f32's exponent.
static LLVMValueRef exponent_f32(const tl_math_context *m, LLVMValueRef bits) {
  tl_session *s = m->l->session;
  LLVMValueRef above = LLVMBuildSub(m->b, bits, tl_session_i32(s, 0x3f2aaaab), "");
  return LLVMBuildAnd(m->b, above, tl_session_i32(s, (int64_t)(int32_t)0xff800000), "");
}

// Returns ln(1 + f) and e * 2^23.
static LLVMValueRef log_parts(const tl_math_context *m, LLVMValueRef x, bool is_long, LLVMValueRef *out_e) {
  LLVMValueRef bits = tl_math_bits_of(m, x), e = exponent_f32(m, bits);
  LLVMValueRef mantissa = tl_math_of_bits(m, LLVMBuildSub(m->b, bits, e, ""));
  LLVMValueRef p = log_of_fraction_f32(m, tl_math_sub(m, mantissa, tl_math_const(m, 1)), is_long);
  *out_e = LLVMBuildSIToFP(m->b, e, m->type, "");
  return p;
}

// A logarithm: e `of_two` + ln(1 + f) `of_e`.
typedef struct log_base {
  tl_math_real of_two, of_e;
} log_base;
static const log_base natural = {{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}, {1, 0}};
static const log_base binary = {{1, 0}, {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}};
static const log_base decimal = {{0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59},
                                 {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}};

// p of_e, for 10 with what rounding 1 / ln 10 leaves out: the result may be as small as p.
static LLVMValueRef times_of_e(const tl_math_context *m, LLVMValueRef p, const log_base *base) {
  tl_math_pair of_e = tl_math_const_pair(m, base->of_e);
  return tl_math_fma(m, p, of_e.hi, tl_math_mul(m, p, of_e.lo));
}

static LLVMValueRef log_f32(const tl_math_context *m, LLVMValueRef x, const log_base *base) {
  const double two_to_minus_23 = 1.1920928955078125e-7;
  LLVMValueRef infinity = tl_math_const(m, INFINITY), e, scaled = x, shift = NULL;
  bool normal = is_normal_positive(m->source);
  if (!normal) {
    LLVMValueRef tiny = tl_math_compare(m, LLVMRealOLT, x, 1.17549435082228750797e-38);
    scaled = tl_math_select(m, tiny, tl_math_mul(m, x, tl_math_const(m, 8388608.0)), x);
    shift = tl_math_select(m, tiny, tl_math_const(m, -23.0), tl_math_const(m, 0.0));
  }
  LLVMValueRef p = log_parts(m, scaled, base == &decimal, &e), result;
  tl_math_pair of_e = tl_math_const_pair(m, base->of_e);
  if (shift)
    e = tl_math_fma(m, e, tl_math_const(m, two_to_minus_23), shift);
  else if (base == &binary)
    e = tl_math_mul(m, e, tl_math_const(m, two_to_minus_23));
  double step = shift ? 1 : two_to_minus_23;  // of e by now
  LLVMValueRef of_two = tl_math_const(m, base->of_two.hi * step);
  if (base == &binary) {
    result = tl_math_fma(m, p, of_e.hi, tl_math_fma(m, p, of_e.lo, e));
  } else if (base == &decimal) {
    // Next to 1 the rounding error of log10(2) would be a whole unit.
    double lost = base->of_two.hi * step - (double)(float)(base->of_two.hi * step);
    LLVMValueRef rest = tl_math_fma(m, e, tl_math_const(m, lost), times_of_e(m, p, base));
    result = tl_math_fma(m, e, of_two, rest);
  } else {
    result = tl_math_fma(m, e, of_two, p);
  }
  // Negative, infinite or NaN: the bits are at least infinity's as an unsigned number.
  LLVMValueRef limit = tl_session_i32(m->l->session, 0x7f800000);
  LLVMValueRef special = LLVMBuildICmp(m->b, LLVMIntUGE, tl_math_bits_of(m, scaled), limit, "");
  if (normal) return tl_math_select(m, special, x, result);
  result = tl_math_select(m, special, tl_math_fma(m, scaled, infinity, infinity), result);
  LLVMValueRef zero = tl_math_compare(m, LLVMRealOEQ, x, 0.0);
  return tl_math_select(m, zero, tl_math_const(m, -INFINITY), result);
}

// ---- f64

// The exponent e of x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2), in the place of the type's exponent.
static LLVMValueRef exponent_of(const tl_math_context *m, LLVMValueRef bits) {
  LLVMValueRef root_half = tl_math_bits_const(m, 0x3f3504f3, 0x3fe6a09e667f3bcd);
  LLVMValueRef above = LLVMBuildSub(m->b, bits, root_half, "");
  return LLVMBuildAnd(m->b, above, tl_math_bits_const(m, INT32_MIN >> 8, INT64_MIN >> 11), "");
}

static LLVMValueRef exponent_value(const tl_math_context *m, LLVMValueRef e) {
  LLVMValueRef whole = LLVMBuildAShr(m->b, e, tl_math_bits_const(m, 23, 52), "");
  return LLVMBuildSIToFP(m->b, whole, m->type, "");
}

LLVMValueRef tl_math_split(const tl_math_context *m, LLVMValueRef x, LLVMValueRef *out_k) {
  double shift = m->is_f64 ? 54 : 24;
  LLVMValueRef is_subnormal = tl_math_compare(m, LLVMRealOLT, x, m->is_f64 ? 0x1p-1022 : 0x1p-126);
  LLVMValueRef scaled = tl_math_mul(m, x, tl_math_const(m, ldexp(1, (int)shift)));
  LLVMValueRef bits = tl_math_bits_of(m, tl_math_select(m, is_subnormal, scaled, x));
  LLVMValueRef e = exponent_of(m, bits), k = exponent_value(m, e);
  LLVMValueRef less = tl_math_sub(m, k, tl_math_const(m, shift));
  *out_k = tl_math_select(m, is_subnormal, less, k);
  LLVMValueRef mantissa = tl_math_of_bits(m, LLVMBuildSub(m->b, bits, e, ""));
  return tl_math_sub(m, mantissa, tl_math_const(m, 1));
}

// (ln(1 + f) - 2 s) / s^3 by s^2 for s = f / (2 + f), minimax: 2^-65 of s.
static const double log_f64_coefficients[] = {0x1.5555555555555p-1, 0x1.9999999999e03p-2, 0x1.249249242ae03p-2,
                                              0x1.c71c725977777p-3, 0x1.745cde0d407c7p-3, 0x1.3b20b2d2036e4p-3,
                                              0x1.0f5c1de877c5dp-3, 0x1.0f6961daa330dp-3};

// ln(1 + f) + extra = f - (h - (s (h + R) + extra)) with h = f^2 / 2 and R = 2 s^2 / 3 + …, as 2 s = f - s f.
static LLVMValueRef log_of_fraction_f64(const tl_math_context *m, LLVMValueRef f, LLVMValueRef extra) {
  LLVMValueRef s = tl_math_div(m, f, tl_math_add(m, f, tl_math_const(m, 2))), square = tl_math_mul(m, s, s);
  LLVMValueRef series = tl_math_polynomial(m, square, log_f64_coefficients, 8);
  LLVMValueRef h = tl_math_mul(m, tl_math_mul(m, f, tl_math_const(m, 0.5)), f);
  LLVMValueRef inner = tl_math_fma(m, series, square, h);
  LLVMValueRef low = extra ? tl_math_fma(m, s, inner, extra) : tl_math_mul(m, s, inner);
  return tl_math_sub(m, f, tl_math_sub(m, h, low));
}

// Zeros, negative numbers, infinity and NaN.
static LLVMValueRef log_special(const tl_math_context *m, LLVMValueRef x, LLVMValueRef value) {
  LLVMValueRef is_positive = tl_math_compare(m, LLVMRealOGT, x, 0);
  LLVMValueRef is_finite = tl_math_compare(m, LLVMRealOLT, x, INFINITY);
  LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, x, 0), is_negative = tl_math_compare(m, LLVMRealOLT, x, 0);
  LLVMValueRef other = tl_math_select(m, is_negative, tl_math_const(m, NAN), x);
  other = tl_math_select(m, is_zero, tl_math_const(m, -INFINITY), other);
  return tl_math_select(m, LLVMBuildAnd(m->b, is_positive, is_finite, ""), value, other);
}

static LLVMValueRef log_f64(const tl_math_context *m, LLVMValueRef x, const log_base *base) {
  LLVMValueRef k, f = tl_math_split(m, x, &k);
  LLVMValueRef of_two = tl_math_const(m, base->of_two.hi), of_two_lo = tl_math_const(m, base->of_two.lo);
  if (base == &natural) {
    LLVMValueRef rest = log_of_fraction_f64(m, f, tl_math_mul(m, k, of_two_lo));
    return log_special(m, x, tl_math_fma(m, k, of_two, rest));
  }
  LLVMValueRef rest = times_of_e(m, log_of_fraction_f64(m, f, NULL), base);
  if (base == &binary) return log_special(m, x, tl_math_add(m, k, rest));
  rest = tl_math_fma(m, k, of_two_lo, rest);
  return log_special(m, x, tl_math_fma(m, k, of_two, rest));
}

// ---- the functions

LLVMValueRef tl_math_build_LOG(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return log_f64(m, x, &natural);
  if (!m->fast) return log_f32(m, x, &natural);
  return tl_math_mul(m, tl_math_device1(m, TL_DEVOP_LG2_APPROX_FTZ, x), tl_math_const(m, ln_2.hi));
}

LLVMValueRef tl_math_build_LOG2(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return log_f64(m, x, &binary);
  return m->fast ? tl_math_device1(m, TL_DEVOP_LG2_APPROX_FTZ, x) : log_f32(m, x, &binary);
}

LLVMValueRef tl_math_build_LOG10(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return log_f64(m, x, &decimal);
  if (!m->fast) return log_f32(m, x, &decimal);
  return tl_math_mul(m, tl_math_device1(m, TL_DEVOP_LG2_APPROX_FTZ, x), tl_math_const(m, decimal.of_two.hi));
}

// ln(1 + x): the exponent e is that of u = 1 + x rounded, and 2^-e (1 + x) - 1 = 2^-e x + (2^-e - 1) is exact but for
// one rounding of the sum. 4 * 2^-e is a normal number for every e, 2^-e is not.
LLVMValueRef tl_math_build_LOG1P(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef u = tl_math_add(m, x, tl_math_const(m, 1)), u_bits = tl_math_bits_of(m, u);
  LLVMValueRef e = m->is_f64 ? exponent_of(m, u_bits) : exponent_f32(m, u_bits);
  LLVMValueRef four = tl_math_bits_const(m, 0x40800000, 0x4010000000000000);
  LLVMValueRef inverse = tl_math_of_bits(m, LLVMBuildSub(m->b, four, e, ""));
  LLVMValueRef less = tl_math_fma(m, inverse, tl_math_const(m, 0.25), tl_math_const(m, -1));
  LLVMValueRef scaled = tl_math_of_bits(m, LLVMBuildSub(m->b, tl_math_bits_of(m, x), e, ""));
  LLVMValueRef f = tl_math_add(m, scaled, less), result;
  if (m->is_f64) {
    LLVMValueRef k = exponent_value(m, e);
    LLVMValueRef rest = log_of_fraction_f64(m, f, tl_math_mul(m, k, tl_math_const(m, ln_2.lo)));
    result = tl_math_fma(m, k, tl_math_const(m, ln_2.hi), rest);
  } else {
    LLVMValueRef wide_e = LLVMBuildSIToFP(m->b, e, m->type, "");
    result = tl_math_fma(m, wide_e, tl_math_const(m, ln_2.hi * 0x1p-23), log_of_fraction_f32(m, f, false));
  }
  LLVMValueRef limit = tl_math_bits_const(m, 0x7f800000, 0x7ff0000000000000);
  LLVMValueRef special = LLVMBuildICmp(m->b, LLVMIntUGE, u_bits, limit, "");
  if (m->source && is_nonnegative(m->source)) return tl_math_select(m, special, x, result);
  result = tl_math_copy_sign(m, result, x);  // of -0
  LLVMValueRef infinity = tl_math_const(m, INFINITY);
  result = tl_math_select(m, special, tl_math_fma(m, x, infinity, infinity), result);
  LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, u, 0);
  return tl_math_select(m, is_zero, tl_math_const(m, -INFINITY), result);
}
