// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remainders of truncated and of rounded quotients, exact for every quotient.
#include <math.h>

#include "llvm_backend/math/math_build.h"

// The exponent field of a positive b, of a subnormal one what it would be without the limit.
static LLVMValueRef exponent_field(const tl_math_context *m, LLVMValueRef b, bool is_normal) {
  tl_session *s = m->l->session;
  int shift = m->is_f64 ? 54 : 24;
  LLVMValueRef is_subnormal = tl_math_compare(m, LLVMRealOLT, b, m->is_f64 ? 0x1p-1022 : 0x1p-126);
  LLVMValueRef scaled = tl_math_mul(m, b, tl_math_const(m, ldexp(1, shift)));
  LLVMValueRef number = is_normal ? b : tl_math_select(m, is_subnormal, scaled, b);
  LLVMValueRef bits = tl_math_bits_of(m, number);
  LLVMValueRef field = LLVMBuildLShr(m->b, bits, tl_math_bits_const(m, 23, 52), "");
  if (m->is_f64) field = LLVMBuildTrunc(m->b, field, s->i32, "");
  if (is_normal) return field;
  LLVMValueRef less = LLVMBuildSub(m->b, field, tl_session_i32(s, shift), "");
  return LLVMBuildSelect(m->b, is_subnormal, less, field, "");
}

// r less a multiple of b 2^s, where s is such that the quotient has no more digits than the type: between 0 and b 2^s.
// The rounded quotient then is off by 1/2 at most, and the difference, a multiple of b's last place of no more digits
// than b 2^s has, is exact.
static LLVMValueRef reduced(const tl_math_context *m, LLVMValueRef r, LLVMValueRef b, LLVMValueRef b_field) {
  tl_session *s = m->l->session;
  LLVMValueRef over = LLVMBuildSub(m->b, exponent_field(m, r, true), b_field, "");
  LLVMValueRef shift = LLVMBuildSub(m->b, over, tl_session_i32(s, m->is_f64 ? 52 : 23), "");
  shift = tl_lower_intrinsic2(m->l, "llvm.smax", shift, tl_session_i32(s, 0));
  LLVMValueRef by = tl_math_scale(m, b, shift);
  // Not tl_math_div: an approximate quotient may be 0, and the loop without an end.
  LLVMValueRef quotient = tl_lower_intrinsic1(m->l, "llvm.trunc", LLVMBuildFDiv(m->b, r, by, ""));
  LLVMValueRef rest = tl_math_fma(m, tl_math_neg(m, quotient), by, r);
  LLVMValueRef is_below = tl_math_compare(m, LLVMRealOLT, rest, 0);
  return tl_math_select(m, is_below, tl_math_add(m, rest, by), rest);
}

// a modulo b for non-negative numbers, NaN for an infinite a, for b = 0 and for a NaN. Every round takes 23 (f64: 52)
// digits of the quotient: one round for ordinary numbers, 13 (42) at most.
static LLVMValueRef modulo(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef b_field = exponent_field(m, b, false);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b), head = tl_lower_new_block(m->l);
  LLVMBasicBlockRef body = tl_lower_new_block(m->l), end = tl_lower_new_block(m->l);
  LLVMBuildBr(m->b, head);
  LLVMPositionBuilderAtEnd(m->b, head);
  LLVMValueRef r = LLVMBuildPhi(m->b, m->type, "");
  LLVMBuildCondBr(m->b, LLVMBuildFCmp(m->b, LLVMRealOGE, r, b, ""), body, end);
  LLVMPositionBuilderAtEnd(m->b, body);
  LLVMValueRef next = reduced(m, r, b, b_field);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(m->b);
  LLVMBuildBr(m->b, head);
  LLVMAddIncoming(r, (LLVMValueRef[]){a, next}, (LLVMBasicBlockRef[]){from, last}, 2);
  LLVMPositionBuilderAtEnd(m->b, end);
  LLVMValueRef is_nan = LLVMBuildFCmp(m->b, LLVMRealUNO, r, b, "");
  return tl_math_select(m, is_nan, tl_math_const(m, NAN), r);
}

LLVMValueRef tl_math_build_FMOD(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef a = tl_math_abs(m, x), b = tl_math_abs(m, y);
  return tl_math_copy_sign(m, modulo(m, a, b), x);
}

// With r = |x| modulo 2 b, which tells whether the quotient is even: r, r - b or r - 2 b.
LLVMValueRef tl_math_build_REMAINDER(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef a = tl_math_abs(m, x), b = tl_math_abs(m, y);
  LLVMValueRef r = modulo(m, a, tl_math_add(m, b, b)), once = tl_math_sub(m, r, b);
  // r > b / 2 as r > b - r, since b / 2 may be no number.
  LLVMValueRef more = LLVMBuildFCmp(m->b, LLVMRealOGT, r, tl_math_sub(m, b, r), "");
  LLVMValueRef twice = tl_math_sub(m, once, b);
  LLVMValueRef most = LLVMBuildFCmp(m->b, LLVMRealOGE, once, tl_math_sub(m, b, once), "");
  LLVMValueRef above = tl_math_select(m, most, twice, once), value = tl_math_select(m, more, above, r);
  LLVMValueRef is_negative = LLVMBuildICmp(m->b, LLVMIntSLT, tl_math_bits_of(m, x), LLVMConstNull(m->bits_type), "");
  return tl_math_select(m, is_negative, tl_math_neg(m, value), value);
}
