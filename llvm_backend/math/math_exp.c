// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exponentials and hyperbolic functions: x = k ln 2 + r, and e^r - 1 as a polynomial. exp, exp2, sigmoid and tanh of
// f32 are in math.c; they rest on ex2.approx.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// The constants of base b: log2(b), log_b(2) and ln(b).
typedef struct exp_base {
  tl_math_real log2_base, unit, ln_base;
} exp_base;
static const exp_base base_e = {
    {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}, {1, 0}};
static const exp_base base_2 = {{1, 0}, {1, 0}, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}};
static const exp_base base_10 = {{0x1.a934f0979a371p+1, 0x1.7f2495fb7fa6dp-53},
                                 {0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59},
                                 {0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53}};

// (e^r - 1 - r) / r^2 on [-0.3475, 0.3475], minimax: 2^-32 and 2^-68 of r.
static const double expm1_f32[] = {0x1p-1, 0x1.555556p-3, 0x1.5554acp-5, 0x1.11108ep-7, 0x1.6d7664p-10, 0x1.a1a3bcp-13};
static const double expm1_f64[] = {0x1p-1,
                                   0x1.5555555555555p-3,
                                   0x1.5555555555559p-5,
                                   0x1.1111111111114p-7,
                                   0x1.6c16c16c14cep-10,
                                   0x1.a01a01a017c23p-13,
                                   0x1.a01a01adf739ep-16,
                                   0x1.71de3a61ba7cep-19,
                                   0x1.27e4cb9b819d6p-22,
                                   0x1.ae64112f812dcp-26,
                                   0x1.1f8c16207923p-29,
                                   0x1.61e6d8a3677d8p-33};
static const tl_math_series expm1_series = TL_MATH_SERIES(expm1);

LLVMValueRef tl_math_expm1_small(const tl_math_context *m, LLVMValueRef r, LLVMValueRef rest) {
  LLVMValueRef series = tl_math_series_of(m, r, &expm1_series);
  LLVMValueRef square = tl_math_mul(m, r, r);
  if (!rest) return tl_math_fma(m, series, square, r);
  return tl_math_add(m, r, tl_math_fma(m, series, square, rest));
}

// What x, clamped to where the result neither vanishes nor overflows for certain, is: k (i32), and b^(x - k log_b 2) -
// 1.
typedef struct exp_parts {
  LLVMValueRef k, small;
} exp_parts;

static exp_parts split_exponent(const tl_math_context *m, LLVMValueRef x, const exp_base *base) {
  tl_math_pair unit = tl_math_const_pair(m, base->unit);
  LLVMValueRef k = x, r;
  if (base != &base_2) k = tl_math_mul(m, x, tl_math_const(m, base->log2_base.hi));
  k = tl_math_round(m, k);
  if (base == &base_2) {
    r = tl_math_sub(m, x, k);
  } else {
    LLVMValueRef minus = tl_math_neg(m, k);
    r = tl_math_fma(m, minus, unit.hi, x);
    r = tl_math_fma(m, minus, unit.lo, r);
  }
  LLVMValueRef whole = LLVMBuildFPToSI(m->b, k, m->l->session->i32, "");
  if (base == &base_e) return (exp_parts){whole, tl_math_expm1_small(m, r, NULL)};
  // r ln b with its rounding error, which would double the error of the result.
  tl_math_pair ln_base = tl_math_const_pair(m, base->ln_base), angle = tl_math_two_product(m, r, ln_base.hi);
  angle.lo = tl_math_fma(m, r, ln_base.lo, angle.lo);
  return (exp_parts){whole, tl_math_expm1_small(m, angle.hi, angle.lo)};
}

// b^x, `least` and `most` being where it is 0 and infinite.
static LLVMValueRef power_of_base(const tl_math_context *m, LLVMValueRef x, const exp_base *base, double least,
                                  double most) {
  exp_parts parts = split_exponent(m, tl_math_clamp(m, x, least, most), base);
  LLVMValueRef value = tl_math_add(m, parts.small, tl_math_const(m, 1));
  return tl_math_keep_nan(m, x, tl_math_scale(m, value, parts.k));
}

LLVMValueRef tl_math_exp_f64(const tl_math_context *m, LLVMValueRef x) {
  return power_of_base(m, x, &base_e, -750, 710);
}

LLVMValueRef tl_math_exp2_f64(const tl_math_context *m, LLVMValueRef x) {
  return power_of_base(m, x, &base_2, -1080, 1025);
}

LLVMValueRef tl_math_build_EXP10(const tl_math_context *m, LLVMValueRef x) {
  const double log2_10 = 3.32192809488736234787;
  if (m->fast) return tl_math_device1(m, TL_DEVOP_EX2_APPROX_FTZ, tl_math_mul(m, x, tl_math_const(m, log2_10)));
  return m->is_f64 ? power_of_base(m, x, &base_10, -325, 309) : power_of_base(m, x, &base_10, -46, 39);
}

// (e^x - 1) / 2 for x that was clamped: 2^(k-1) (e^r - 1) + (2^(k-1) - 1/2). The half keeps 2^k from overflowing.
static LLVMValueRef half_expm1(const tl_math_context *m, const exp_parts *parts) {
  LLVMValueRef less = LLVMBuildSub(m->b, parts->k, tl_session_i32(m->l->session, 1), "");
  LLVMValueRef power = tl_math_power_of_two(m, less);
  LLVMValueRef rest = tl_math_sub(m, power, tl_math_const(m, 0.5));
  return tl_math_fma(m, power, parts->small, rest);
}

LLVMValueRef tl_math_build_EXPM1(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef inside = m->is_f64 ? tl_math_clamp(m, x, -50, 710) : tl_math_clamp(m, x, -30, 89);
  exp_parts parts = split_exponent(m, inside, &base_e);
  LLVMValueRef half = half_expm1(m, &parts);
  // x itself where x^2 / 2 is less than half a unit: half of it would lose a bit of a subnormal, and -0 its sign.
  LLVMValueRef magnitude = tl_math_abs(m, x), limit = tl_math_const_of(m, 0x1p-26, 0x1p-55);
  LLVMValueRef is_far = LLVMBuildFCmp(m->b, LLVMRealOGT, magnitude, limit, "");
  return tl_math_select(m, is_far, tl_math_add(m, half, half), x);
}

// ---- hyperbolic functions

// (sinh x - x) / x^3 by x^2 on [0, 1], minimax: 2^-25 and 2^-63 of x.
static const double sinh_f32[] = {0x1.55559ap-3, 0x1.10f6ep-7, 0x1.ab5866p-13};
static const double sinh_f64[] = {0x1.5555555555556p-3,  0x1.11111111110a1p-7,  0x1.a01a01a0291b6p-13,
                                  0x1.71de3a45fa249p-19, 0x1.ae6467647d418p-26, 0x1.611a3acd51708p-33,
                                  0x1.b4cf4cc107833p-41};
static const tl_math_series sinh_series = TL_MATH_SERIES(sinh);

// (tanh x - x) / x^3 by x^2 on [0, 0.55^2], minimax: 2^-60 of x.
static const double tanh_f64[] = {-0x1.555555555554fp-2, 0x1.11111111107ebp-3,  -0x1.ba1ba1b981bp-5,
                                  0x1.664f485a5528bp-6,  -0x1.226e2f30b446cp-7, 0x1.d6d29fe6c104dp-9,
                                  -0x1.7d900993672bp-10, 0x1.34855e0e5f564p-11, -0x1.e9807f227231ap-13,
                                  0x1.5da32b97e736fp-14, -0x1.47821eaac25f3p-16};

// x + x^3 series(x^2).
static LLVMValueRef odd_series(const tl_math_context *m, LLVMValueRef x, const double *c, int n) {
  LLVMValueRef square = tl_math_mul(m, x, x);
  LLVMValueRef series = tl_math_polynomial(m, square, c, n);
  return tl_math_fma(m, tl_math_mul(m, series, square), x, x);
}

// e^a / 2 for a = |x|.
static LLVMValueRef half_exp(const tl_math_context *m, LLVMValueRef a) {
  if (m->fast) {
    LLVMValueRef exponent = tl_math_fma(m, a, tl_math_const(m, base_e.log2_base.hi), tl_math_const(m, -1));
    return tl_math_device1(m, TL_DEVOP_EX2_APPROX_FTZ, exponent);
  }
  exp_parts parts = split_exponent(m, tl_math_clamp(m, a, 0, m->is_f64 ? 720 : 100), &base_e);
  LLVMValueRef value = tl_math_add(m, parts.small, tl_math_const(m, 1));
  LLVMValueRef less = LLVMBuildSub(m->b, parts.k, tl_session_i32(m->l->session, 1), "");
  return tl_math_scale(m, value, less);
}

// 1 / (4 h) for h = e^a / 2, which is e^-a / 2.
static LLVMValueRef inverse_half(const tl_math_context *m, LLVMValueRef h) {
  return tl_math_mul(m, tl_math_reciprocal(m, h), tl_math_const(m, 0.25));
}

LLVMValueRef tl_math_build_COSH(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef h = half_exp(m, tl_math_abs(m, x));
  LLVMValueRef sum = tl_math_add(m, h, inverse_half(m, h));
  return m->fast ? sum : tl_math_keep_nan(m, x, sum);
}

LLVMValueRef tl_math_build_SINH(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), h = half_exp(m, a);
  LLVMValueRef large = tl_math_sub(m, h, inverse_half(m, h));
  const double *c = m->is_f64 ? sinh_series.f64 : sinh_series.f32;
  LLVMValueRef small = odd_series(m, x, c, m->is_f64 ? sinh_series.num_f64 : sinh_series.num_f32);
  // The order of the comparison lets a NaN through.
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, 1);
  return tl_math_select(m, is_large, tl_math_copy_sign(m, large, x), small);
}

// 1 - 2 / (e^2a + 1); 1 from 20 on.
LLVMValueRef tl_math_tanh_f64(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x), inside = tl_math_clamp(m, a, 0, 20);
  exp_parts parts = split_exponent(m, tl_math_add(m, inside, inside), &base_e);
  LLVMValueRef value = tl_math_add(m, parts.small, tl_math_const(m, 1));
  LLVMValueRef e = tl_math_mul(m, value, tl_math_power_of_two(m, parts.k));
  LLVMValueRef below = tl_math_div(m, tl_math_const(m, 2), tl_math_add(m, e, tl_math_const(m, 1)));
  LLVMValueRef large = tl_math_sub(m, tl_math_const(m, 1), below);
  LLVMValueRef small = odd_series(m, a, tanh_f64, sizeof tanh_f64 / sizeof *tanh_f64);
  // The order of the comparison lets a NaN through.
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, 0.55);
  return tl_math_copy_sign(m, tl_math_select(m, is_large, large, small), x);
}

// With t = e^-|x| nothing overflows: t / (1 + t) on the left, 1 / (1 + t) on the right.
LLVMValueRef tl_math_sigmoid_f64(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef t = tl_math_exp_f64(m, tl_math_neg(m, tl_math_abs(m, x)));
  LLVMValueRef is_left = tl_math_compare(m, LLVMRealOLT, x, 0);
  LLVMValueRef numerator = tl_math_select(m, is_left, t, tl_math_const(m, 1));
  return tl_math_div(m, numerator, tl_math_add(m, t, tl_math_const(m, 1)));
}
