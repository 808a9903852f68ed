// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sine, cosine and tangent: the quadrant of the angle and the rest, from -pi/4 to pi/4 as a pair, then polynomials.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// An angle: the quadrant (i32, modulo 4) and what is left.
typedef struct angle {
  LLVMValueRef quadrant;
  tl_math_pair rest;
} angle;

// From here on angles are reduced by large_angle.
static const double large_f32 = 0x1.8p16, large_f64 = 0x1p20;

// ---- reduction

// x - k pi/2 with pi/2 in three parts (Cody and Waite). For |x| below the limits k is below 2^20. The first step is
// exact: both sides are multiples of the last place of numbers in [1/2, 1), and the result is below 1. The second is
// kept with its error, and what the third leaves out is below 2^-56 (f32) and 2^-140 (f64), while no f32 below 2^17
// comes nearer than 2^-30, and no f64 nearer than 2^-62, to a multiple of pi/2.
static angle small_angle(const tl_math_context *m, LLVMValueRef x, LLVMValueRef is_large) {
  static const double parts_f32[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  static const double parts_f64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  const double *parts = m->is_f64 ? parts_f64 : parts_f32;
  LLVMValueRef k = tl_math_round(m, tl_math_mul(m, x, tl_math_const(m, 0x1.45f306dc9c883p-1)));
  LLVMValueRef minus = tl_math_neg(m, k);
  LLVMValueRef first = tl_math_fma(m, minus, tl_math_const(m, parts[0]), x);
  tl_math_pair second = tl_math_two_product(m, minus, tl_math_const(m, parts[1]));
  tl_math_pair rest = tl_math_two_sum(m, first, second.hi);
  rest.lo = tl_math_add(m, rest.lo, second.lo);
  rest.lo = tl_math_fma(m, minus, tl_math_const(m, parts[2]), rest.lo);
  // Where the quadrant does not fit an i32 another one is used.
  LLVMValueRef safe = tl_math_select(m, is_large, tl_math_const(m, 0), k);
  return (angle){LLVMBuildFPToSI(m->b, safe, m->l->session->i32, ""), rest};
}

// A word of zeros and the binary digits of 2 / pi behind the point.
static const uint32_t two_over_pi_f32[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                           0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
static const uint64_t two_over_pi_f64[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};
enum { WORDS_F32 = sizeof two_over_pi_f32 / sizeof *two_over_pi_f32 };
enum { WORDS_F64 = sizeof two_over_pi_f64 / sizeof *two_over_pi_f64 };

// The digits in global memory.
static LLVMValueRef digits(const tl_math_context *m) {
  tl_session *s = m->l->session;
  const char *name = m->is_f64 ? "tl_two_over_pi_f64" : "tl_two_over_pi_f32";
  LLVMValueRef table = LLVMGetNamedGlobal(s->module, name), items[WORDS_F64];
  if (table) return table;
  unsigned count = m->is_f64 ? WORDS_F64 : WORDS_F32;
  for (unsigned i = 0; i < count; i++)
    items[i] = LLVMConstInt(m->bits_type, m->is_f64 ? two_over_pi_f64[i] : two_over_pi_f32[i], 0);
  LLVMValueRef values = LLVMConstArray2(m->bits_type, items, count);
  table = LLVMAddGlobalInAddressSpace(s->module, LLVMTypeOf(values), name, TL_ADDRSPACE_GLOBAL);
  LLVMSetInitializer(table, values);
  LLVMSetGlobalConstant(table, true);
  LLVMSetLinkage(table, LLVMPrivateLinkage);
  LLVMSetAlignment(table, 8);
  return table;
}

// Three words of digits, the first of which is digit `at` of the table.
static void load_digits(const tl_math_context *m, LLVMValueRef at, LLVMValueRef out[3]) {
  tl_session *s = m->l->session;
  LLVMValueRef table = digits(m), words[4];
  LLVMValueRef index = LLVMBuildLShr(m->b, at, tl_session_i32(s, m->is_f64 ? 6 : 5), "");
  LLVMValueRef shift = LLVMBuildAnd(m->b, at, tl_session_i32(s, m->is_f64 ? 63 : 31), "");
  if (m->is_f64) shift = LLVMBuildZExt(m->b, shift, s->i64, "");
  for (int i = 0; i < 4; i++) {
    LLVMValueRef place = LLVMBuildAdd(m->b, index, tl_session_i32(s, i), "");
    words[i] = LLVMBuildLoad2(m->b, m->bits_type, LLVMBuildGEP2(m->b, m->bits_type, table, &place, 1, ""), "");
    LLVMSetAlignment(words[i], m->is_f64 ? 8 : 4);
  }
  for (int i = 0; i < 3; i++) out[i] = tl_lower_intrinsic3(m->l, "llvm.fshl", words[i], words[i + 1], shift);
}

// |x| 2/pi modulo 4 as a number of two words w, 2 w - 2 digits behind the point (Payne and Hanek). |x| = M 2^E for a
// whole M: digits of 2/pi from the one worth 2^(1 - E) on count, those in front make multiples of 4. Three words of
// them leave out less than 2^(24 - 94) for f32 and 2^(53 - 190) for f64.
static LLVMValueRef quadrants(const tl_math_context *m, LLVMValueRef bits, LLVMTypeRef wide) {
  tl_session *s = m->l->session;
  LLVMValueRef field = LLVMBuildLShr(m->b, bits, tl_math_bits_const(m, 23, 52), ""), words[3];
  field = LLVMBuildAnd(m->b, field, tl_math_bits_const(m, 0xff, 0x7ff), "");
  if (m->is_f64) field = LLVMBuildTrunc(m->b, field, s->i32, "");
  // E = field - 150 (1075); digit i of 2/pi, worth 2^-i, is number i - 1 + w of the table.
  LLVMValueRef at = LLVMBuildAdd(m->b, field, tl_session_i32(s, m->is_f64 ? 64 - 2 - 1075 : 32 - 2 - 150), "");
  load_digits(m, at, words);
  LLVMValueRef fraction = LLVMBuildAnd(m->b, bits, tl_math_bits_const(m, 0x7fffff, 0xfffffffffffff), "");
  LLVMValueRef whole = LLVMBuildOr(m->b, fraction, tl_math_bits_const(m, 0x800000, 0x10000000000000), "");
  LLVMValueRef width = LLVMConstInt(wide, m->is_f64 ? 64 : 32, 0), wide_whole = LLVMBuildZExt(m->b, whole, wide, "");
  LLVMValueRef high = LLVMBuildZExt(m->b, LLVMBuildMul(m->b, whole, words[0], ""), wide, "");
  LLVMValueRef middle = LLVMBuildMul(m->b, wide_whole, LLVMBuildZExt(m->b, words[1], wide, ""), "");
  LLVMValueRef low = LLVMBuildMul(m->b, wide_whole, LLVMBuildZExt(m->b, words[2], wide, ""), "");
  LLVMValueRef sum = LLVMBuildAdd(m->b, LLVMBuildShl(m->b, high, width, ""), middle, "");
  return LLVMBuildAdd(m->b, sum, LLVMBuildLShr(m->b, low, width, ""), "");
}

// `value`, a number of two words with 2 w - 2 digits behind the point and below 1/2, times pi/2.
static tl_math_pair rest_of_fraction(const tl_math_context *m, LLVMValueRef value, LLVMTypeRef wide) {
  int width = m->is_f64 ? 64 : 32;
  LLVMValueRef top = LLVMBuildLShr(m->b, value, LLVMConstInt(wide, (unsigned)width, 0), "");
  LLVMValueRef high = LLVMBuildTrunc(m->b, top, m->bits_type, ""), low = LLVMBuildTrunc(m->b, value, m->bits_type, "");
  LLVMValueRef first = LLVMBuildUIToFP(m->b, high, m->type, "");
  LLVMValueRef left = LLVMBuildSub(m->b, high, LLVMBuildFPToUI(m->b, first, m->bits_type, ""), "");
  LLVMValueRef second = LLVMBuildSIToFP(m->b, left, m->type, "");
  LLVMValueRef third = LLVMBuildUIToFP(m->b, low, m->type, "");
  second = tl_math_fma(m, third, tl_math_const(m, ldexp(1, -width)), second);
  tl_math_pair number = tl_math_fast_two_sum(m, first, second);
  double unit = ldexp(1, 2 - width);
  tl_math_real scale = {0x1.921fb54442d18p+0 * unit, 0x1.1a62633145c07p-54 * unit};
  return tl_math_pair_product(m, number, tl_math_const_pair(m, scale));
}

static angle large_angle(const tl_math_context *m, LLVMValueRef bits, LLVMValueRef magnitude) {
  tl_session *s = m->l->session;
  unsigned width = m->is_f64 ? 128 : 64;
  LLVMTypeRef wide = LLVMIntTypeInContext(s->context, width);
  LLVMValueRef product = quadrants(m, bits, wide), point = LLVMConstInt(wide, width - 2, 0);
  uint64_t half_words[] = {m->is_f64 ? 0 : UINT64_C(1) << 61, UINT64_C(1) << 61};
  LLVMValueRef half = LLVMConstIntOfArbitraryPrecision(wide, width / 64, half_words);
  LLVMValueRef quadrant = LLVMBuildLShr(m->b, LLVMBuildAdd(m->b, product, half, ""), point, "");
  LLVMValueRef rest = LLVMBuildSub(m->b, product, LLVMBuildShl(m->b, quadrant, point, ""), "");
  LLVMValueRef below = LLVMBuildICmp(m->b, LLVMIntSLT, rest, LLVMConstNull(wide), "");
  LLVMValueRef size = LLVMBuildSelect(m->b, below, LLVMBuildNeg(m->b, rest, ""), rest, "");
  tl_math_pair pair = rest_of_fraction(m, size, wide);
  LLVMValueRef negative = LLVMBuildICmp(m->b, LLVMIntSLT, bits, LLVMConstNull(m->bits_type), "");
  LLVMValueRef opposite = LLVMBuildXor(m->b, below, negative, "");
  LLVMValueRef minus_hi = tl_math_neg(m, pair.hi), minus_lo = tl_math_neg(m, pair.lo);
  pair.hi = tl_math_select(m, opposite, minus_hi, pair.hi);
  pair.lo = tl_math_select(m, opposite, minus_lo, pair.lo);
  LLVMValueRef infinity = tl_math_bits_const(m, 0x7f800000, 0x7ff0000000000000);
  LLVMValueRef is_infinite = LLVMBuildICmp(m->b, LLVMIntUGE, magnitude, infinity, "");  // or NaN
  pair.hi = tl_math_select(m, is_infinite, tl_math_const(m, NAN), pair.hi);
  quadrant = LLVMBuildTrunc(m->b, quadrant, s->i32, "");
  quadrant = LLVMBuildSelect(m->b, negative, LLVMBuildNeg(m->b, quadrant, ""), quadrant, "");
  return (angle){quadrant, pair};
}

static angle angle_of(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef bits = tl_math_bits_of(m, x);
  LLVMValueRef magnitude = LLVMBuildAnd(m->b, bits, tl_math_bits_const(m, INT32_MAX, INT64_MAX), "");
  LLVMValueRef limit = LLVMConstBitCast(tl_math_const_of(m, large_f32, large_f64), m->bits_type);
  LLVMValueRef is_large = LLVMBuildICmp(m->b, LLVMIntUGE, magnitude, limit, "");
  angle small = small_angle(m, x, is_large);
  tl_guard guard = tl_lower_guard_begin(m->l, is_large);
  angle large = large_angle(m, bits, magnitude), result;
  tl_lower_guard_end(m->l, &guard);
  result.quadrant = tl_lower_guard_phi(m->l, &guard, large.quadrant, small.quadrant);
  result.rest.hi = tl_lower_guard_phi(m->l, &guard, large.rest.hi, small.rest.hi);
  result.rest.lo = tl_lower_guard_phi(m->l, &guard, large.rest.lo, small.rest.lo);
  return result;
}

// ---- polynomials by r^2 on [0, (pi/4)^2], minimax

// (sin r - r) / r^3: 2^-37 and 2^-68 of r.
static const double sin_f32[] = {-0x1.555556p-3, 0x1.111108p-7, -0x1.a00f98p-13, 0x1.6cd72cp-19};
static const double sin_f64[] = {-0x1.5555555555555p-3, 0x1.111111111110bp-7,   -0x1.a01a01a018ad4p-13,
                                 0x1.71de3a5338104p-19, -0x1.ae64529657a27p-26, 0x1.61209165bc7bdp-33,
                                 -0x1.aaa496e2b4a77p-41};
static const tl_math_series sin_series = TL_MATH_SERIES(sin);
// (cos r - 1 + r^2 / 2) / r^4: 2^-33 and 2^-64.
static const double cos_f32[] = {0x1.55554ap-5, -0x1.6c0c88p-10, 0x1.9a00ecp-16};
static const double cos_f64[] = {0x1.555555555554cp-5,   -0x1.6c16c16c15166p-10, 0x1.a01a019caf41cp-16,
                                 -0x1.27e4f80805aeap-22, 0x1.1ee9ea888c5a1p-29,  -0x1.8faddd10f0318p-37};
static const tl_math_series cos_series = TL_MATH_SERIES(cos);
// (tan r - r) / r^3: 2^-29 and 2^-60 of tan r.
static const double tan_f32[] = {0x1.555562p-2, 0x1.110d4p-3,   0x1.bae8cp-5, 0x1.5c321p-6,
                                 0x1.657efap-7, -0x1.b1987p-22, 0x1.219986p-8};
static const double tan_f64[] = {0x1.555555555555fp-2,  0x1.1111111110532p-3,   0x1.ba1ba1bac6dfp-5,
                                 0x1.664f485ba867bp-6,  0x1.226e3aad179c6p-7,   0x1.d6d2e13801af3p-9,
                                 0x1.7db1e2275c0f6p-10, 0x1.34b92b9e8aabdp-11,  0x1.ff544fe4a2436p-13,
                                 0x1.5dcac2245998dp-14, 0x1.1b125a976941cp-14,  -0x1.b33529d4bbebap-16,
                                 0x1.99ed74888a986p-15, -0x1.98faab20635fcp-16, 0x1.497de9439b09ap-17};
static const tl_math_series tan_series = TL_MATH_SERIES(tan);

// sin(r + e) = r + (r^3 P(r^2) + e cos r).
static LLVMValueRef sine(const tl_math_context *m, tl_math_pair r, LLVMValueRef square) {
  LLVMValueRef series = tl_math_series_of(m, square, &sin_series);
  LLVMValueRef half_square = tl_math_mul(m, square, tl_math_const(m, -0.5));
  LLVMValueRef lo = tl_math_fma(m, r.lo, half_square, r.lo);
  LLVMValueRef cube = tl_math_mul(m, r.hi, square);
  return tl_math_add(m, r.hi, tl_math_fma(m, cube, series, lo));
}

// cos(r + e) = w + ((1 - w - r^2 / 2) + (r^4 P(r^2) - r e)) for w = 1 - r^2 / 2 rounded.
static LLVMValueRef cosine(const tl_math_context *m, tl_math_pair r, LLVMValueRef square) {
  LLVMValueRef series = tl_math_series_of(m, square, &cos_series), one = tl_math_const(m, 1);
  LLVMValueRef half_square = tl_math_mul(m, square, tl_math_const(m, 0.5));
  LLVMValueRef w = tl_math_sub(m, one, half_square);
  LLVMValueRef lost = tl_math_sub(m, tl_math_sub(m, one, w), half_square);
  LLVMValueRef angle_error = tl_math_mul(m, tl_math_neg(m, r.hi), r.lo);
  LLVMValueRef fourth = tl_math_mul(m, square, square);
  LLVMValueRef rest = tl_math_fma(m, fourth, series, angle_error);
  return tl_math_add(m, w, tl_math_add(m, lost, rest));
}

static LLVMValueRef has_bit(const tl_math_context *m, LLVMValueRef value, int64_t mask) {
  tl_session *s = m->l->session;
  LLVMValueRef masked = LLVMBuildAnd(m->b, value, tl_session_i32(s, mask), "");
  return LLVMBuildICmp(m->b, LLVMIntNE, masked, tl_session_i32(s, 0), "");
}

// The sine of the angle `shift` quadrants further on.
static LLVMValueRef shifted_sine(const tl_math_context *m, LLVMValueRef x, int64_t shift) {
  angle a = angle_of(m, x);
  LLVMValueRef square = tl_math_mul(m, a.rest.hi, a.rest.hi);
  LLVMValueRef sin = sine(m, a.rest, square), cos = cosine(m, a.rest, square);
  LLVMValueRef quadrant = LLVMBuildAdd(m->b, a.quadrant, tl_session_i32(m->l->session, shift), "");
  LLVMValueRef is_cosine = has_bit(m, quadrant, 1), is_negative = has_bit(m, quadrant, 2);
  LLVMValueRef value = tl_math_select(m, is_cosine, cos, sin);
  return tl_math_select(m, is_negative, tl_math_neg(m, value), value);
}

// The sums above make +0 of -0.
static LLVMValueRef keep_zero(const tl_math_context *m, LLVMValueRef x, LLVMValueRef result) {
  LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, x, 0);
  return tl_math_select(m, is_zero, x, result);
}

LLVMValueRef tl_math_build_SIN(const tl_math_context *m, LLVMValueRef x) {
  return m->fast ? tl_math_device1(m, TL_DEVOP_SIN_APPROX_FTZ, x) : keep_zero(m, x, shifted_sine(m, x, 0));
}

LLVMValueRef tl_math_build_COS(const tl_math_context *m, LLVMValueRef x) {
  return m->fast ? tl_math_device1(m, TL_DEVOP_COS_APPROX_FTZ, x) : shifted_sine(m, x, 1);
}

// tan(r + e) = r + (r^3 P(r^2) + e (1 + r^2)), as a pair, and -1 of it in odd quadrants: q = -1 / hi, once refined.
LLVMValueRef tl_math_build_TAN(const tl_math_context *m, LLVMValueRef x) {
  if (m->fast) {
    LLVMValueRef sin = tl_math_device1(m, TL_DEVOP_SIN_APPROX_FTZ, x);
    return tl_math_div(m, sin, tl_math_device1(m, TL_DEVOP_COS_APPROX_FTZ, x));
  }
  angle a = angle_of(m, x);
  LLVMValueRef square = tl_math_mul(m, a.rest.hi, a.rest.hi);
  LLVMValueRef series = tl_math_series_of(m, square, &tan_series);
  LLVMValueRef lo = tl_math_fma(m, a.rest.lo, square, a.rest.lo);
  LLVMValueRef cube = tl_math_mul(m, a.rest.hi, square);
  tl_math_pair tan = tl_math_fast_two_sum(m, a.rest.hi, tl_math_fma(m, cube, series, lo));
  LLVMValueRef q = tl_math_neg(m, tl_math_reciprocal(m, tan.hi));
  LLVMValueRef error = tl_math_fma(m, q, tan.hi, tl_math_const(m, 1));
  error = tl_math_fma(m, q, tan.lo, error);
  LLVMValueRef cotangent = tl_math_fma(m, q, error, q);
  LLVMValueRef is_odd = has_bit(m, a.quadrant, 1);
  return keep_zero(m, x, tl_math_select(m, is_odd, cotangent, tan.hi));
}
