// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arc tangents: of the smaller of two numbers by the larger, which is from 0 to 1, and the rest by symmetry.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// (atan q - q) / q^3 by q^2 on [0, 1], minimax: 2^-28 and 2^-57 of atan q.
static const double atan_f32[] = {-0x1.55554p-2, 0x1.999276p-3,  -0x1.2426fap-3, 0x1.c0d294p-4,  -0x1.58dc9cp-4,
                                  0x1.dd0f4cp-5, -0x1.01aff4p-5, 0x1.6a9066p-7,  -0x1.df001ap-10};
static const double atan_f64[] = {
    -0x1.555555555552ap-2, 0x1.9999999995ae5p-3,  -0x1.249249239230cp-3, 0x1.c71c7184261f8p-4,   -0x1.745d11fb1d2dcp-4,
    0x1.3b136a16e26acp-4,  -0x1.110e6d90e57c3p-4, 0x1.e1bcf7a659d81p-5,  -0x1.ae644d0b469a7p-5,  0x1.82eeaea2660e2p-5,
    -0x1.59d7f0edc3c01p-5, 0x1.2c9818d809e5ap-5,  -0x1.eb4929d34515cp-6, 0x1.69d87a6b31502p-6,   -0x1.ca9797ac18127p-7,
    0x1.dc04747ba5f3fp-8,  -0x1.7ea66512923aap-9, 0x1.ba3cb7df1ed9cp-11, -0x1.44a3dcb860e0ap-13, 0x1.c4a2efeb72d14p-17};
static const tl_math_series atan_series = TL_MATH_SERIES(atan);

static const tl_math_real half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

// atan q for q in [0, 1].
static LLVMValueRef atan_unit(const tl_math_context *m, LLVMValueRef q) {
  LLVMValueRef square = tl_math_mul(m, q, q);
  LLVMValueRef series = tl_math_series_of(m, square, &atan_series);
  return tl_math_fma(m, tl_math_mul(m, series, square), q, q);
}

LLVMValueRef tl_math_turned(const tl_math_context *m, tl_math_pair turn, LLVMValueRef t) {
  tl_math_pair sum = tl_math_fast_two_sum(m, turn.hi, t);
  return tl_math_add(m, sum.hi, tl_math_add(m, sum.lo, turn.lo));
}

LLVMValueRef tl_math_build_ATAN(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), inverse = tl_math_reciprocal(m, a);
  // The order of the comparison lets a NaN through.
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, 1);
  LLVMValueRef t = atan_unit(m, tl_math_select(m, is_large, inverse, a));
  LLVMValueRef other = tl_math_turned(m, tl_math_const_pair(m, half_pi), tl_math_neg(m, t));
  return tl_math_copy_sign(m, tl_math_select(m, is_large, other, t), x);
}

// With t = atan(small / large): t, pi/2 - t, pi/2 + t or pi - t, and the sign of y.
LLVMValueRef tl_math_build_ATAN2(const tl_math_context *m, LLVMValueRef y, LLVMValueRef x) {
  LLVMValueRef b = tl_math_abs(m, y), a = tl_math_abs(m, x);
  LLVMValueRef is_steep = LLVMBuildFCmp(m->b, LLVMRealOGT, b, a, "");
  LLVMValueRef large = tl_math_select(m, is_steep, b, a), small = tl_math_select(m, is_steep, a, b);
  LLVMValueRef quotient = tl_math_div(m, small, large);
  LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, large, 0);
  LLVMValueRef is_infinite = tl_math_compare(m, LLVMRealOEQ, small, INFINITY);
  quotient = tl_math_select(m, is_infinite, tl_math_const(m, 1), quotient);
  quotient = tl_math_select(m, is_zero, tl_math_const(m, 0), quotient);
  LLVMValueRef t = atan_unit(m, quotient), zero = tl_math_const(m, 0);
  LLVMValueRef is_left = LLVMBuildICmp(m->b, LLVMIntSLT, tl_math_bits_of(m, x), LLVMConstNull(m->bits_type), "");
  LLVMValueRef is_backwards = LLVMBuildXor(m->b, is_steep, is_left, "");
  t = tl_math_select(m, is_backwards, tl_math_neg(m, t), t);
  tl_math_pair quarter = tl_math_const_pair(m, half_pi);
  tl_math_pair half = tl_math_const_pair(m, (tl_math_real){2 * half_pi.hi, 2 * half_pi.lo}), turn;
  turn.hi = tl_math_select(m, is_steep, quarter.hi, tl_math_select(m, is_left, half.hi, zero));
  turn.lo = tl_math_select(m, is_steep, quarter.lo, tl_math_select(m, is_left, half.lo, zero));
  // Without a turn it is t, which may be larger than 0: then the sum's error is no error.
  LLVMValueRef is_turned = LLVMBuildOr(m->b, is_steep, is_left, "");
  LLVMValueRef value = tl_math_select(m, is_turned, tl_math_turned(m, turn, t), t);
  value = tl_math_copy_sign(m, value, y);
  LLVMValueRef is_nan = LLVMBuildFCmp(m->b, LLVMRealUNO, x, y, "");
  return tl_math_select(m, is_nan, tl_math_const(m, NAN), value);
}
