// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cube roots and hypotenuses.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// a = 2^(3 k) m with m in [1, 8), for a positive finite a; k is an i32.
static LLVMValueRef split_by_eights(const tl_math_context *m, LLVMValueRef a, LLVMValueRef *out_k) {
  tl_session *s = m->l->session;
  LLVMValueRef is_subnormal = tl_math_compare(m, LLVMRealOLT, a, m->is_f64 ? 0x1p-1022 : 0x1p-126);
  int thirds = m->is_f64 ? 18 : 8;  // of the power of two that makes it normal
  LLVMValueRef scaled = tl_math_mul(m, a, tl_math_const(m, ldexp(1, 3 * thirds)));
  LLVMValueRef bits = tl_math_bits_of(m, tl_math_select(m, is_subnormal, scaled, a));
  LLVMValueRef place = tl_math_bits_const(m, 23, 52), field = LLVMBuildLShr(m->b, bits, place, "");
  if (m->is_f64) field = LLVMBuildTrunc(m->b, field, s->i32, "");
  // The exponent's bias is 3 * 341 for f64, and 2 short of 3 * 43 for f32.
  LLVMValueRef above = LLVMBuildAdd(m->b, field, tl_session_i32(s, m->is_f64 ? 0 : 2), "");
  LLVMValueRef third = LLVMBuildUDiv(m->b, above, tl_session_i32(s, 3), "");
  LLVMValueRef k = LLVMBuildSub(m->b, third, tl_session_i32(s, m->is_f64 ? 341 : 43), "");
  LLVMValueRef taken = LLVMBuildMul(m->b, k, tl_session_i32(s, 3), "");
  if (m->is_f64) taken = LLVMBuildSExt(m->b, taken, s->i64, "");
  LLVMValueRef less = LLVMBuildSub(m->b, k, tl_session_i32(s, thirds), "");
  *out_k = LLVMBuildSelect(m->b, is_subnormal, less, k, "");
  return tl_math_of_bits(m, LLVMBuildSub(m->b, bits, LLVMBuildShl(m->b, taken, place, ""), ""));
}

// y + (a - y^3) / (3 y^2), the last factor given: a - y^3 with the error of y^2, so that its last place is right.
static LLVMValueRef newton_step(const tl_math_context *m, LLVMValueRef a, LLVMValueRef y, LLVMValueRef factor) {
  tl_math_pair square = tl_math_two_product(m, y, y);
  LLVMValueRef rest = tl_math_fma(m, tl_math_neg(m, square.hi), y, a);
  rest = tl_math_fma(m, tl_math_neg(m, square.lo), y, rest);
  return tl_math_fma(m, rest, factor, y);
}

// The root of the part in [1, 8) by the hardware's logarithm and power, to 2^-20, and steps of Newton's.
LLVMValueRef tl_math_build_CBRT(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), k, part = split_by_eights(m, a, &k);
  tl_math_context single = tl_math_context_of(m->l, false, NULL, NULL);
  LLVMValueRef narrow = m->is_f64 ? LLVMBuildFPTrunc(m->b, part, single.type, "") : part;
  LLVMValueRef log = tl_math_device1(&single, TL_DEVOP_LG2_APPROX_FTZ, narrow);
  log = tl_math_mul(&single, log, tl_math_const(&single, 1.0 / 3));
  LLVMValueRef y = tl_math_device1(&single, TL_DEVOP_EX2_APPROX_FTZ, log);
  LLVMValueRef slope = tl_math_mul(&single, tl_math_mul(&single, y, y), tl_math_const(&single, 3));
  LLVMValueRef factor = tl_math_device1(&single, TL_DEVOP_RCP_APPROX_FTZ, slope);
  if (m->is_f64) {
    y = LLVMBuildFPExt(m->b, y, m->type, "");
    factor = LLVMBuildFPExt(m->b, factor, m->type, "");
    y = newton_step(m, part, y, factor);  // to 2^-40
  }
  y = newton_step(m, part, y, factor);
  LLVMValueRef root = tl_math_mul(m, y, tl_math_power_of_two(m, k));
  LLVMValueRef is_positive = tl_math_compare(m, LLVMRealOGT, a, 0);
  LLVMValueRef is_finite = tl_math_compare(m, LLVMRealOLT, a, INFINITY);
  LLVMValueRef is_ordinary = LLVMBuildAnd(m->b, is_positive, is_finite, "");
  return tl_math_copy_sign(m, tl_math_select(m, is_ordinary, root, a), x);
}

// sqrt(a^2 + b^2) for |a| >= |b|, both scaled where a^2 would leave the normal numbers. What of b^2 is lost then is
// nothing to a^2.
LLVMValueRef tl_math_build_HYPOT(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef first = tl_math_abs(m, x), second = tl_math_abs(m, y);
  LLVMValueRef is_less = LLVMBuildFCmp(m->b, LLVMRealOGT, second, first, "");
  LLVMValueRef a = tl_math_select(m, is_less, second, first), b = tl_math_select(m, is_less, first, second);
  double large = m->is_f64 ? 0x1p500 : 0x1p60, scale = m->is_f64 ? 0x1p600 : 0x1p90;
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, large);
  LLVMValueRef is_small = tl_math_compare(m, LLVMRealOLT, a, 1 / large);
  LLVMValueRef up = tl_math_const(m, scale), down = tl_math_const(m, 1 / scale), one = tl_math_const(m, 1);
  LLVMValueRef by = tl_math_select(m, is_large, down, tl_math_select(m, is_small, up, one));
  LLVMValueRef back = tl_math_select(m, is_large, up, tl_math_select(m, is_small, down, one));
  a = tl_math_mul(m, a, by);
  b = tl_math_mul(m, b, by);
  LLVMValueRef sum = tl_math_fma(m, a, a, tl_math_mul(m, b, b));
  LLVMValueRef value = tl_math_mul(m, tl_math_build_SQRT(m, sum), back);
  // An infinite side makes an infinite hypotenuse, also beside a NaN.
  LLVMValueRef first_is_infinite = tl_math_compare(m, LLVMRealOEQ, first, INFINITY);
  LLVMValueRef second_is_infinite = tl_math_compare(m, LLVMRealOEQ, second, INFINITY);
  LLVMValueRef is_infinite = LLVMBuildOr(m->b, first_is_infinite, second_is_infinite, "");
  return tl_math_select(m, is_infinite, tl_math_const(m, INFINITY), value);
}
