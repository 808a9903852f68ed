// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inverse sines and cosines, and inverse hyperbolic functions, which are logarithms.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// (asin s - s) / s^3 by s^2 on [0, 1/4], interpolated where Chebyshev polynomials are 0: 2^-30 and 2^-62 of asin s.
static const double asin_f32[] = {0x1.555554e435732p-3, 0x1.333430fcff28ep-4, 0x1.6d5bb95f8e653p-5,
                                  0x1.fd8da2554dd34p-6, 0x1.18f91e79712c6p-6, 0x1.13fed3dd245c1p-5};
static const double asin_f64[] = {
    0x1.5555555555555p-3, 0x1.3333333333388p-4, 0x1.6db6db6dac1e0p-5,  0x1.f1c71c7a52ba3p-6, 0x1.6e8ba123e494cp-6,
    0x1.1c4efce23019fp-6, 0x1.c990ad3d8fdcap-7, 0x1.7b027ee1dd585p-7,  0x1.3b49de7121487p-7, 0x1.31622469ce5adp-7,
    0x1.8f193743418ffp-9, 0x1.406192d124629p-6, -0x1.3b416bb7d9257p-6, 0x1.e529c6fce9bb4p-6};
static const tl_math_series asin_series = TL_MATH_SERIES(asin);

static const tl_math_real half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const tl_math_real whole_pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
static const tl_math_real ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// Up to 1/2: asin |x|. Above, where asin is too steep: asin of the sine of half the complement, sqrt((1 - |x|) / 2).
typedef struct arc {
  LLVMValueRef is_large, angle;
} arc;

// Beyond 1 the root is NaN.
static arc arc_of(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), square = tl_math_mul(m, x, x), half = tl_math_const(m, 0.5);
  LLVMValueRef rest = tl_math_sub(m, tl_math_const(m, 1), a);
  rest = tl_math_mul(m, rest, half);
  // The order of the comparison lets a NaN through.
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, 0.5);
  LLVMValueRef z = tl_math_select(m, is_large, rest, square);
  LLVMValueRef root = tl_math_build_SQRT(m, rest), s = tl_math_select(m, is_large, root, a);
  LLVMValueRef series = tl_math_series_of(m, z, &asin_series);
  return (arc){is_large, tl_math_fma(m, tl_math_mul(m, series, z), s, s)};
}

LLVMValueRef tl_math_build_ASIN(const tl_math_context *m, LLVMValueRef x) {
  arc half = arc_of(m, x);
  LLVMValueRef complement = tl_math_mul(m, half.angle, tl_math_const(m, -2));
  LLVMValueRef large = tl_math_turned(m, tl_math_const_pair(m, half_pi), complement);
  return tl_math_copy_sign(m, tl_math_select(m, half.is_large, large, half.angle), x);
}

// With the angle t: 2 t, pi - 2 t, or pi/2 - t with the sign of x.
LLVMValueRef tl_math_build_ACOS(const tl_math_context *m, LLVMValueRef x) {
  arc half = arc_of(m, x);
  LLVMValueRef twice = tl_math_add(m, half.angle, half.angle), signed_angle = tl_math_copy_sign(m, half.angle, x);
  LLVMValueRef is_left = tl_math_compare(m, LLVMRealOLT, x, 0);
  tl_math_pair quarter = tl_math_const_pair(m, half_pi), straight = tl_math_const_pair(m, whole_pi), turn;
  turn.hi = tl_math_select(m, half.is_large, straight.hi, quarter.hi);
  turn.lo = tl_math_select(m, half.is_large, straight.lo, quarter.lo);
  LLVMValueRef angle = tl_math_select(m, half.is_large, twice, signed_angle);
  LLVMValueRef large = tl_math_turned(m, turn, tl_math_neg(m, angle));
  LLVMValueRef is_small_angle = LLVMBuildAnd(m->b, half.is_large, LLVMBuildNot(m->b, is_left, ""), "");
  return tl_math_select(m, is_small_angle, twice, large);
}

// ---- hyperbolic functions

// ln(1 + t). What is known of the function's own argument is none of t's.
static LLVMValueRef log1p_of(const tl_math_context *m, LLVMValueRef t) {
  tl_math_context inner = *m;
  inner.source = NULL;
  inner.op = NULL;
  return tl_math_build_LOG1P(&inner, t);
}

// ln(1 + t), or ln(2 a) where a is so large that its square might overflow and 1 is nothing to it.
static LLVMValueRef log_of_double(const tl_math_context *m, LLVMValueRef a, LLVMValueRef t) {
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, m->is_f64 ? 0x1p60 : 0x1p30);
  LLVMValueRef log = log1p_of(m, tl_math_select(m, is_large, a, t));
  LLVMValueRef sum = tl_math_add(m, log, tl_math_const(m, ln_2.hi));
  return tl_math_select(m, is_large, sum, log);
}

// ln(a + sqrt(a^2 + 1)) = ln(1 + a + a^2 / (1 + sqrt(a^2 + 1))).
LLVMValueRef tl_math_build_ASINH(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), square = tl_math_mul(m, x, x), one = tl_math_const(m, 1);
  LLVMValueRef root = tl_math_build_SQRT(m, tl_math_fma(m, x, x, one));
  LLVMValueRef below = tl_math_add(m, root, one), rest = tl_math_div(m, square, below);
  LLVMValueRef value = log_of_double(m, a, tl_math_add(m, a, rest));
  return tl_math_copy_sign(m, value, x);
}

// ln(1 + t + sqrt(t^2 + 2 t)) with t = x - 1.
LLVMValueRef tl_math_build_ACOSH(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef t = tl_math_sub(m, x, tl_math_const(m, 1)), twice = tl_math_add(m, t, t);
  LLVMValueRef root = tl_math_build_SQRT(m, tl_math_fma(m, t, t, twice));
  LLVMValueRef value = log_of_double(m, x, tl_math_add(m, t, root));
  LLVMValueRef is_below = tl_math_compare(m, LLVMRealOLT, x, 1);
  return tl_math_select(m, is_below, tl_math_const(m, NAN), value);
}

// ln(1 + 2 a / (1 - a)) / 2; the quotient is 2 a + 2 a^2 / (1 - a) up to 1/2, where 1 - a is rounded.
LLVMValueRef tl_math_build_ATANH(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), twice = tl_math_add(m, a, a);
  LLVMValueRef is_small = tl_math_compare(m, LLVMRealOLT, a, 0.5);
  LLVMValueRef above = tl_math_select(m, is_small, tl_math_mul(m, twice, a), twice);
  LLVMValueRef quotient = tl_math_div(m, above, tl_math_sub(m, tl_math_const(m, 1), a));
  LLVMValueRef t = tl_math_select(m, is_small, tl_math_add(m, quotient, twice), quotient);
  LLVMValueRef log = log1p_of(m, t);
  return tl_math_copy_sign(m, tl_math_mul(m, log, tl_math_const(m, 0.5)), x);
}
