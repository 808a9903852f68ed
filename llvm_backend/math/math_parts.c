// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signs, exponents and mantissas, and the neighbours of a number. SIGNBIT, COPYSIGN and NEXTAFTER are of the type's own
// bits, f16 and bf16 too: a NaN keeps its sign in no conversion, and a neighbour is one of the type.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// ---- classes

LLVMValueRef tl_math_build_ISNAN(const tl_math_context *m, LLVMValueRef x) {
  return LLVMBuildFCmp(m->b, LLVMRealUNO, x, x, "");
}

LLVMValueRef tl_math_build_ISINF(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x);
  return tl_math_compare(m, LLVMRealOEQ, a, INFINITY);
}

LLVMValueRef tl_math_build_ISFINITE(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_math_abs(m, x);
  return tl_math_compare(m, LLVMRealOLT, a, INFINITY);
}

LLVMValueRef tl_math_build_SIGNBIT(const tl_math_context *m, LLVMValueRef x) {
  return LLVMBuildICmp(m->b, LLVMIntSLT, tl_math_bits_of(m, x), LLVMConstNull(m->bits_type), "");
}

LLVMValueRef tl_math_build_COPYSIGN(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  return tl_math_copy_sign(m, x, y);
}

// ---- neighbours

static LLVMValueRef compare(const tl_math_context *m, LLVMRealPredicate predicate, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef f32 = m->l->session->f32;
  if (m->type != f32 && !m->is_f64) {
    a = LLVMBuildFPExt(m->b, a, f32, "");
    b = LLVMBuildFPExt(m->b, b, f32, "");
  }
  return LLVMBuildFCmp(m->b, predicate, a, b, "");
}

// The bits of numbers of one sign are in the order of their magnitudes, 0 and infinity included.
LLVMValueRef tl_math_build_NEXTAFTER(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef one = LLVMConstInt(m->bits_type, 1, 0), minus = LLVMConstAllOnes(m->bits_type);
  LLVMValueRef zero = tl_math_const(m, 0), bits = tl_math_bits_of(m, x);
  LLVMValueRef is_less = compare(m, LLVMRealOLT, x, y), is_negative = tl_math_build_SIGNBIT(m, x);
  LLVMValueRef is_further = LLVMBuildXor(m->b, is_less, is_negative, "");
  LLVMValueRef step = LLVMBuildSelect(m->b, is_further, one, minus, "");
  LLVMValueRef moved = tl_math_of_bits(m, LLVMBuildAdd(m->b, bits, step, ""));
  LLVMValueRef least = tl_math_copy_sign(m, tl_math_of_bits(m, one), y);
  LLVMValueRef value = tl_math_select(m, compare(m, LLVMRealOEQ, x, zero), least, moved);
  value = tl_math_select(m, compare(m, LLVMRealOEQ, x, y), y, value);
  return tl_math_select(m, compare(m, LLVMRealUNO, x, y), tl_math_const(m, NAN), value);
}

// ---- exponents

// x 2^n by three powers of two. Only the last product may be subnormal and so round: before it n is from -126 (f64:
// -1022) on, and where the others were multiplied down to a subnormal number, the result is 0.
LLVMValueRef tl_math_build_LDEXP(const tl_math_context *m, LLVMValueRef x, LLVMValueRef n) {
  tl_session *s = m->l->session;
  int most = m->is_f64 ? 1023 : 127, least = m->is_f64 ? -1022 : -126, digits = m->is_f64 ? 53 : 24;
  int down = least + digits;
  LLVMValueRef highest = tl_session_i32(s, most), lowest = tl_session_i32(s, least), none = tl_session_i32(s, 0);
  LLVMValueRef below = tl_session_i32(s, down);
  n = tl_lower_intrinsic2(m->l, "llvm.smax", n, tl_session_i32(s, 2 * down + least));
  n = tl_lower_intrinsic2(m->l, "llvm.smin", n, tl_session_i32(s, 3 * most));
  for (int i = 0; i < 2; i++) {
    LLVMValueRef is_up = LLVMBuildICmp(m->b, LLVMIntSGT, n, highest, "");
    LLVMValueRef is_down = LLVMBuildICmp(m->b, LLVMIntSLT, n, lowest, "");
    LLVMValueRef lower = tl_math_select(m, is_down, tl_math_const(m, ldexp(1, down)), tl_math_const(m, 1));
    x = tl_math_mul(m, x, tl_math_select(m, is_up, tl_math_const(m, ldexp(1, most)), lower));
    LLVMValueRef taken = LLVMBuildSelect(m->b, is_down, below, none, "");
    n = LLVMBuildSub(m->b, n, LLVMBuildSelect(m->b, is_up, highest, taken, ""), "");
  }
  return tl_math_mul(m, x, tl_math_power_of_two(m, n));
}

// A finite number other than 0 as 2^n times its fraction, from 1/2 to 1.
typedef struct parts {
  LLVMValueRef is_ordinary, exponent, fraction;
} parts;

static parts parts_of(const tl_math_context *m, LLVMValueRef x) {
  tl_session *s = m->l->session;
  int shift = m->is_f64 ? 54 : 24, bias = m->is_f64 ? 1022 : 126;  // of the fraction
  LLVMValueRef a = tl_math_abs(m, x), scaled = tl_math_mul(m, x, tl_math_const(m, ldexp(1, shift)));
  LLVMValueRef is_subnormal = tl_math_compare(m, LLVMRealOLT, a, m->is_f64 ? 0x1p-1022 : 0x1p-126);
  LLVMValueRef bits = tl_math_bits_of(m, tl_math_select(m, is_subnormal, scaled, x));
  LLVMValueRef field = LLVMBuildLShr(m->b, bits, tl_math_bits_const(m, 23, 52), "");
  field = LLVMBuildAnd(m->b, field, tl_math_bits_const(m, 0xff, 0x7ff), "");
  if (m->is_f64) field = LLVMBuildTrunc(m->b, field, s->i32, "");
  LLVMValueRef far = tl_session_i32(s, bias + shift), near = tl_session_i32(s, bias);
  LLVMValueRef exponent = LLVMBuildSub(m->b, field, LLVMBuildSelect(m->b, is_subnormal, far, near, ""), "");
  LLVMValueRef others = tl_math_bits_const(m, ~0x7f800000, ~0x7ff0000000000000);
  LLVMValueRef half = tl_math_bits_const(m, 0x3f000000, 0x3fe0000000000000);
  LLVMValueRef fraction = LLVMBuildOr(m->b, LLVMBuildAnd(m->b, bits, others, ""), half, "");
  LLVMValueRef is_finite = tl_math_compare(m, LLVMRealOLT, a, INFINITY);
  LLVMValueRef is_ordinary = LLVMBuildAnd(m->b, is_finite, tl_math_compare(m, LLVMRealOGT, a, 0), "");
  return (parts){is_ordinary, exponent, tl_math_of_bits(m, fraction)};
}

LLVMValueRef tl_math_build_FREXP_MANTISSA(const tl_math_context *m, LLVMValueRef x) {
  parts of = parts_of(m, x);
  return tl_math_select(m, of.is_ordinary, of.fraction, x);
}

LLVMValueRef tl_math_build_FREXP_EXPONENT(const tl_math_context *m, LLVMValueRef x) {
  parts of = parts_of(m, x);
  return LLVMBuildSelect(m->b, of.is_ordinary, of.exponent, tl_session_i32(m->l->session, 0), "");
}

// ---- rounding

LLVMValueRef tl_math_build_FLOOR(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.floor", x);
}
LLVMValueRef tl_math_build_CEIL(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.ceil", x);
}
LLVMValueRef tl_math_build_ROUND(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.roundeven", x);
}
LLVMValueRef tl_math_build_TRUNC(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.trunc", x);
}

// What truncation takes away is exact.
LLVMValueRef tl_math_build_ROUND_AWAY(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef whole = tl_lower_intrinsic1(m->l, "llvm.trunc", x);
  LLVMValueRef rest = tl_math_abs(m, tl_math_sub(m, x, whole));
  LLVMValueRef one = tl_math_copy_sign(m, tl_math_const(m, 1), x);
  LLVMValueRef is_half = tl_math_compare(m, LLVMRealOGE, rest, 0.5);
  return tl_math_select(m, is_half, tl_math_add(m, whole, one), whole);
}
