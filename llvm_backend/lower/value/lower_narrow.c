// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Narrow floats. sm_89 and later have instructions for f8; everywhere else their bits are made of an f32's with integer
// operations: rounding to nearest even is adding just under half of the last kept bit, and one more where that bit is
// set; values below the smallest normal one are rounded by adding a power of two whose last bit is theirs.
#include "llvm_backend/lower/value/lower_narrow.h"

#include <math.h>

bool tl_lower_is_narrow(tl_dtype dtype) {
  return dtype == TL_DTYPE_TF32 || dtype == TL_DTYPE_F8E4M3 || dtype == TL_DTYPE_F8E5M2 || dtype == TL_DTYPE_F4E2M1;
}

bool tl_lower_has_pairs(const tl_lower *l, tl_dtype to) {
  return (to == TL_DTYPE_F8E4M3 || to == TL_DTYPE_F8E5M2) && l->session->target->sm >= 89;
}

static LLVMValueRef i32(tl_lower *l, int64_t value) {
  return tl_session_i32(l->session, value);
}

static LLVMValueRef f32(tl_lower *l, double value) {
  return LLVMConstReal(l->session->f32, value);
}

static LLVMValueRef bits_of(tl_lower *l, LLVMValueRef a) {
  return LLVMBuildBitCast(l->builder, a, l->session->i32, "");
}

// ---- to f32

// The bits of the narrow float moved to those of an f16, whose exponent is `scale` too small.
static LLVMValueRef by_f16(tl_lower *l, LLVMValueRef bits, int sign_bit, int shift, double scale) {
  LLVMBuilderRef b = l->builder;
  LLVMValueRef wide = LLVMBuildZExt(b, bits, l->session->i16, "");
  LLVMTypeRef i16 = l->session->i16;
  LLVMValueRef sign = LLVMBuildAnd(b, wide, LLVMConstInt(i16, 1u << sign_bit, 0), "");
  LLVMValueRef rest = LLVMBuildAnd(b, wide, LLVMConstInt(i16, (1u << sign_bit) - 1, 0), "");
  sign = LLVMBuildShl(b, sign, LLVMConstInt(i16, (unsigned)(15 - sign_bit), 0), "");
  rest = LLVMBuildShl(b, rest, LLVMConstInt(i16, (unsigned)shift, 0), "");
  LLVMValueRef half = LLVMBuildBitCast(b, LLVMBuildOr(b, sign, rest, ""), l->session->f16, "");
  LLVMValueRef value = LLVMBuildFPExt(b, half, l->session->f32, "");
  return scale == 1.0 ? value : LLVMBuildFMul(b, value, f32(l, scale), "");
}

static LLVMValueRef from_e4m3_native(tl_lower *l, LLVMValueRef a) {
  LLVMValueRef pair = LLVMBuildZExt(l->builder, a, l->session->i16, "");
  pair = tl_session_call_device(l->session, l->builder, TL_DEVOP_CVT_F16X2_E4M3X2, &pair, 1);
  LLVMValueRef half = LLVMBuildExtractElement(l->builder, pair, i32(l, 0), "");
  return LLVMBuildFPExt(l->builder, half, l->session->f32, "");
}

LLVMValueRef tl_lower_from_narrow(tl_lower *l, LLVMValueRef a, tl_dtype from) {
  if (from == TL_DTYPE_TF32) return a;
  if (from == TL_DTYPE_F4E2M1) return by_f16(l, a, 3, 9, 0x1p14);
  // Moving a byte up is as good as the instruction.
  if (from == TL_DTYPE_F8E5M2) return by_f16(l, a, 7, 8, 1.0);
  if (tl_lower_has_pairs(l, from)) return from_e4m3_native(l, a);
  LLVMValueRef value = by_f16(l, a, 7, 7, 0x1p8);
  LLVMValueRef magnitude = LLVMBuildAnd(l->builder, a, LLVMConstInt(l->session->i8, 0x7f, 0), "");
  LLVMValueRef is_nan = LLVMBuildICmp(l->builder, LLVMIntEQ, magnitude, LLVMConstInt(l->session->i8, 0x7f, 0), "");
  return LLVMBuildSelect(l->builder, is_nan, f32(l, NAN), value, "");
}

// ---- from f32

// Magnitude bits rounded to `kept` mantissa bits of the 23, in place.
static LLVMValueRef rounded_bits(tl_lower *l, LLVMValueRef bits, int kept) {
  LLVMBuilderRef b = l->builder;
  int drop = 23 - kept;
  LLVMValueRef last = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, i32(l, drop), ""), i32(l, 1), "");
  return LLVMBuildAdd(b, LLVMBuildAdd(b, bits, i32(l, (1 << (drop - 1)) - 1), ""), last, "");
}

static LLVMValueRef to_tf32(tl_lower *l, LLVMValueRef a) {
  if (l->session->target->sm >= 90) {
    LLVMValueRef bits = tl_session_call_device(l->session, l->builder, TL_DEVOP_CVT_TF32, &a, 1);
    return LLVMBuildBitCast(l->builder, bits, l->session->f32, "");
  }
  LLVMValueRef bits = LLVMBuildAnd(l->builder, rounded_bits(l, bits_of(l, a), 10), i32(l, ~INT64_C(0x1fff)), "");
  LLVMValueRef value = LLVMBuildBitCast(l->builder, bits, l->session->f32, "");
  LLVMValueRef is_nan = LLVMBuildFCmp(l->builder, LLVMRealUNO, a, a, "");
  return LLVMBuildSelect(l->builder, is_nan, f32(l, NAN), value, "");
}

// Sign, exponent and mantissa of `to` in the low bits of an i32.
static LLVMValueRef encode(tl_lower *l, LLVMValueRef a, tl_dtype to) {
  LLVMBuilderRef b = l->builder;
  int mantissa = tl_dtype_mantissa_bits(to), width = tl_dtype_bits(to);
  int bias = (1 << (tl_dtype_exponent_bits(to) - 1)) - 1;
  LLVMValueRef sign = LLVMBuildLShr(b, bits_of(l, a), i32(l, 31), "");
  sign = LLVMBuildShl(b, sign, i32(l, width - 1), "");
  LLVMValueRef magnitude = tl_lower_intrinsic1(l, "llvm.fabs", a);
  // The minimum with a NaN is the largest value, which is what f4 makes of it.
  magnitude = tl_lower_intrinsic2(l, "llvm.minnum", magnitude, f32(l, tl_dtype_float_max(to)));
  LLVMValueRef normal = LLVMBuildLShr(b, rounded_bits(l, bits_of(l, magnitude), mantissa), i32(l, 23 - mantissa), "");
  normal = LLVMBuildSub(b, normal, i32(l, (127 - bias) << mantissa), "");
  // 2^23 times the smallest positive value.
  double step = ldexp(1.0, 1 - bias - mantissa + 23);
  LLVMValueRef tiny = LLVMBuildFAdd(b, magnitude, f32(l, step), "");
  tiny = LLVMBuildAnd(b, bits_of(l, tiny), i32(l, (1 << (mantissa + 1)) - 1), "");
  LLVMValueRef is_tiny = LLVMBuildFCmp(b, LLVMRealOLT, magnitude, f32(l, ldexp(1.0, 1 - bias)), "");
  LLVMValueRef bits = LLVMBuildOr(b, LLVMBuildSelect(b, is_tiny, tiny, normal, ""), sign, "");
  LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, a, a, "");
  return LLVMBuildSelect(b, is_nan, i32(l, width == 4 ? 7 : 0x7f), bits, "");
}

// The pair in an i16, `high` in its upper byte.
static LLVMValueRef f8_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype to) {
  LLVMValueRef args[] = {high, low};
  tl_device_op_id id = to == TL_DTYPE_F8E4M3 ? TL_DEVOP_CVT_E4M3X2 : TL_DEVOP_CVT_E5M2X2;
  return tl_session_call_device(l->session, l->builder, id, args, 2);
}

void tl_lower_pair_to_f8(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype to, LLVMValueRef *out) {
  LLVMValueRef pair = f8_pair(l, low, high, to);
  pair = LLVMBuildBitCast(l->builder, pair, LLVMVectorType(l->session->i8, 2), "");
  for (int i = 0; i < 2; i++) out[i] = LLVMBuildExtractElement(l->builder, pair, i32(l, i), "");
}

LLVMValueRef tl_lower_to_narrow(tl_lower *l, LLVMValueRef a, tl_dtype to) {
  if (to == TL_DTYPE_TF32) return to_tf32(l, a);
  if (tl_lower_has_pairs(l, to)) return LLVMBuildTrunc(l->builder, f8_pair(l, a, f32(l, 0), to), l->session->i8, "");
  return LLVMBuildTrunc(l->builder, encode(l, a, to), tl_session_type(l->session, to), "");
}

// Rounds to nearest, and where that was not exact to the neighbour whose last bit is set: no tie is made or broken.
LLVMValueRef tl_lower_f64_to_odd_f32(tl_lower *l, LLVMValueRef a) {
  LLVMBuilderRef b = l->builder;
  LLVMValueRef nearest = LLVMBuildFPTrunc(b, a, l->session->f32, ""), bits = bits_of(l, nearest);
  LLVMValueRef back = LLVMBuildFPExt(b, nearest, l->session->f64, "");
  LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, back, a, "");
  LLVMValueRef magnitude = tl_lower_intrinsic1(l, "llvm.fabs", a);
  LLVMValueRef grew = LLVMBuildFCmp(b, LLVMRealOGT, tl_lower_intrinsic1(l, "llvm.fabs", back), magnitude, "");
  LLVMValueRef is_even = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, bits, i32(l, 1), ""), i32(l, 0), "");
  LLVMValueRef moved = LLVMBuildAdd(b, bits, LLVMBuildSelect(b, grew, i32(l, -1), i32(l, 1), ""), "");
  LLVMValueRef odd = LLVMBuildSelect(b, LLVMBuildAnd(b, inexact, is_even, ""), moved, bits, "");
  return LLVMBuildBitCast(b, odd, l->session->f32, "");
}
