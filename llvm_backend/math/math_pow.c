// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// |x|^y = 2^(y log2 |x|), the logarithm as a pair: its error, which y multiplies, is below 2^-34 of it for f32 and
// 2^-63 for f64.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// (ln((1 + s) / (1 - s)) / (2 s) - 1 - s^2 / 3) / s^4 by s^2, of Taylor: with s^2 below 0.0295 the next term is below
// 2^-37 and 2^-69 of the logarithm.
static const double log_f32[] = {1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13};
static const double log_f64[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
static const tl_math_series log_series = TL_MATH_SERIES(log);
static const tl_math_real third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
static const tl_math_real two_over_ln2 = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};
static const tl_math_real ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// s = f / (2 + f) with its error.
static tl_math_pair quotient(const tl_math_context *m, LLVMValueRef f) {
  tl_math_pair below = tl_math_fast_two_sum(m, tl_math_const(m, 2), f);
  LLVMValueRef inverse = tl_math_reciprocal(m, below.hi), s = tl_math_mul(m, f, inverse);
  LLVMValueRef minus = tl_math_neg(m, s);
  LLVMValueRef rest = tl_math_fma(m, minus, below.hi, f);
  rest = tl_math_fma(m, minus, below.lo, rest);
  return (tl_math_pair){s, tl_math_mul(m, rest, inverse)};
}

// log2 a for a positive finite a: k + 2 / ln 2 (s + s w) with w = s^2 / 3 + s^4 P(s^2).
static tl_math_pair log2_pair(const tl_math_context *m, LLVMValueRef a) {
  LLVMValueRef k, f = tl_math_split(m, a, &k);
  tl_math_pair s = quotient(m, f), square = tl_math_pair_product(m, s, s);
  LLVMValueRef series = tl_math_series_of(m, square.hi, &log_series);
  tl_math_pair w = tl_math_pair_product(m, square, tl_math_const_pair(m, third));
  w.lo = tl_math_fma(m, tl_math_mul(m, square.hi, square.hi), series, w.lo);
  w = tl_math_fast_two_sum(m, w.hi, w.lo);
  tl_math_pair product = tl_math_pair_product(m, s, w), sum = tl_math_fast_two_sum(m, s.hi, product.hi);
  LLVMValueRef low = tl_math_add(m, s.lo, product.lo);
  sum.lo = tl_math_add(m, sum.lo, low);
  tl_math_pair part = tl_math_pair_product(m, sum, tl_math_const_pair(m, two_over_ln2));
  tl_math_pair result = tl_math_fast_two_sum(m, k, part.hi);
  return tl_math_fast_two_sum(m, result.hi, tl_math_add(m, result.lo, part.lo));
}

// 2^(p.hi + p.lo), p.hi anything but NaN.
static LLVMValueRef exp2_pair(const tl_math_context *m, tl_math_pair p) {
  double least = m->is_f64 ? -1100 : -160, most = m->is_f64 ? 1030 : 130;
  LLVMValueRef inside = tl_math_clamp(m, p.hi, least, most);
  LLVMValueRef is_inside = LLVMBuildFCmp(m->b, LLVMRealOEQ, inside, p.hi, "");
  LLVMValueRef lo = tl_math_select(m, is_inside, p.lo, tl_math_const(m, 0));
  LLVMValueRef k = tl_math_round(m, inside);
  LLVMValueRef r = tl_math_add(m, tl_math_sub(m, inside, k), lo);
  tl_math_pair scale = tl_math_const_pair(m, ln_2), angle = tl_math_two_product(m, r, scale.hi);
  angle.lo = tl_math_fma(m, r, scale.lo, angle.lo);
  LLVMValueRef value = tl_math_add(m, tl_math_expm1_small(m, angle.hi, angle.lo), tl_math_const(m, 1));
  return tl_math_scale(m, value, LLVMBuildFPToSI(m->b, k, m->l->session->i32, ""));
}

// The cases of C's pow (C17, F.10.4.4) around `value` = |x|^y.
static LLVMValueRef with_special_cases(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y, LLVMValueRef value) {
  LLVMValueRef floor_y = tl_lower_intrinsic1(m->l, "llvm.floor", y), half = tl_math_mul(m, y, tl_math_const(m, 0.5));
  LLVMValueRef is_whole = LLVMBuildFCmp(m->b, LLVMRealOEQ, floor_y, y, "");
  LLVMValueRef floor_half = tl_lower_intrinsic1(m->l, "llvm.floor", half);
  LLVMValueRef is_odd = LLVMBuildFCmp(m->b, LLVMRealONE, floor_half, half, "");
  is_odd = LLVMBuildAnd(m->b, is_odd, is_whole, "");
  LLVMValueRef is_unit = tl_math_compare(m, LLVMRealOEQ, tl_math_abs(m, x), 1);
  value = tl_math_select(m, is_unit, tl_math_const(m, 1), value);
  value = tl_math_select(m, is_odd, tl_math_copy_sign(m, value, x), value);
  LLVMValueRef is_negative = tl_math_compare(m, LLVMRealOLT, x, 0);
  LLVMValueRef is_finite = tl_math_compare(m, LLVMRealOGT, x, -INFINITY);
  LLVMValueRef no_number = LLVMBuildAnd(m->b, is_negative, is_finite, "");
  no_number = LLVMBuildAnd(m->b, no_number, LLVMBuildNot(m->b, is_whole, ""), "");
  LLVMValueRef is_nan = LLVMBuildFCmp(m->b, LLVMRealUNO, x, y, "");
  value = tl_math_select(m, LLVMBuildOr(m->b, no_number, is_nan, ""), tl_math_const(m, NAN), value);
  LLVMValueRef to_zero = tl_math_compare(m, LLVMRealOEQ, y, 0), of_one = tl_math_compare(m, LLVMRealOEQ, x, 1);
  return tl_math_select(m, LLVMBuildOr(m->b, to_zero, of_one, ""), tl_math_const(m, 1), value);
}

LLVMValueRef tl_math_pow(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef a = tl_math_abs(m, x);
  if (m->fast) {
    LLVMValueRef log = tl_math_device1(m, TL_DEVOP_LG2_APPROX_FTZ, a);
    LLVMValueRef value = tl_math_device1(m, TL_DEVOP_EX2_APPROX_FTZ, tl_math_mul(m, y, log));
    return with_special_cases(m, x, y, value);
  }
  tl_math_pair log = log2_pair(m, a);
  LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, a, 0);
  LLVMValueRef is_infinite = tl_math_compare(m, LLVMRealOEQ, a, INFINITY);
  log.hi = tl_math_select(m, is_zero, tl_math_const(m, -INFINITY), log.hi);
  log.hi = tl_math_select(m, is_infinite, tl_math_const(m, INFINITY), log.hi);
  tl_math_pair product = tl_math_two_product(m, y, log.hi);
  product.lo = tl_math_fma(m, y, log.lo, product.lo);
  return with_special_cases(m, x, y, exp2_pair(m, product));
}
