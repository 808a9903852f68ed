// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers of the elementary functions.
#include "llvm_backend/math/math_build.h"

tl_math_context tl_math_context_of(tl_lower *l, bool is_f64, const tl_value *source, const tl_op *op) {
  tl_session *s = l->session;
  return (tl_math_context){.l = l,
                           .b = l->builder,
                           .is_f64 = is_f64,
                           .fast = l->fast_math && !is_f64,
                           .type = is_f64 ? s->f64 : s->f32,
                           .bits_type = is_f64 ? s->i64 : s->i32,
                           .source = source,
                           .op = op};
}

bool tl_math_constant(const tl_value *value, double *out) {
  const tl_attr *attr = value->def && value->def->code == TL_OP_CONST ? tl_op_attr(value->def, TL_ATTR_VALUE) : NULL;
  if (!attr) return false;
  *out = attr->is_float ? attr->v.f : (double)attr->v.i;
  return true;
}

// ---- constants

LLVMValueRef tl_math_const(const tl_math_context *m, double value) {
  return LLVMConstReal(m->type, value);
}

LLVMValueRef tl_math_const_of(const tl_math_context *m, double f32, double f64) {
  return LLVMConstReal(m->type, m->is_f64 ? f64 : f32);
}

tl_math_pair tl_math_const_pair(const tl_math_context *m, tl_math_real value) {
  double hi = m->is_f64 ? value.hi : (double)(float)value.hi, lo = m->is_f64 ? value.lo : value.hi - hi;
  return (tl_math_pair){LLVMConstReal(m->type, hi), LLVMConstReal(m->type, lo)};
}

LLVMValueRef tl_math_bits_const(const tl_math_context *m, int64_t f32, int64_t f64) {
  return m->is_f64 ? tl_session_i64(m->l->session, f64) : tl_session_i32(m->l->session, f32);
}

// ---- instructions

LLVMValueRef tl_math_add(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFAdd(m->b, a, b, "");
}
LLVMValueRef tl_math_sub(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFSub(m->b, a, b, "");
}
LLVMValueRef tl_math_mul(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFMul(m->b, a, b, "");
}
LLVMValueRef tl_math_neg(const tl_math_context *m, LLVMValueRef a) {
  return LLVMBuildFNeg(m->b, a, "");
}
LLVMValueRef tl_math_fma(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  return tl_lower_intrinsic3(m->l, "llvm.fma", a, b, c);
}
LLVMValueRef tl_math_abs(const tl_math_context *m, LLVMValueRef a) {
  return tl_lower_intrinsic1(m->l, "llvm.fabs", a);
}
LLVMValueRef tl_math_round(const tl_math_context *m, LLVMValueRef a) {
  return tl_lower_intrinsic1(m->l, "llvm.roundeven", a);
}
LLVMValueRef tl_math_select(const tl_math_context *m, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(m->b, condition, a, b, "");
}
LLVMValueRef tl_math_compare(const tl_math_context *m, LLVMRealPredicate predicate, LLVMValueRef a, double b) {
  return LLVMBuildFCmp(m->b, predicate, a, LLVMConstReal(m->type, b), "");
}
LLVMValueRef tl_math_device1(const tl_math_context *m, tl_device_op_id id, LLVMValueRef a) {
  return tl_session_call_device(m->l->session, m->b, id, &a, 1);
}

LLVMValueRef tl_math_div(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  if (!m->fast) return LLVMBuildFDiv(m->b, a, b, "");
  LLVMValueRef args[] = {a, b};
  return tl_session_call_device(m->l->session, m->b, TL_DEVOP_DIV_FULL_FTZ, args, 2);
}

LLVMValueRef tl_math_reciprocal(const tl_math_context *m, LLVMValueRef a) {
  if (m->is_f64) return LLVMBuildFDiv(m->b, tl_math_const(m, 1), a, "");
  return tl_math_device1(m, TL_DEVOP_RCP_APPROX_FTZ, a);
}

LLVMValueRef tl_math_bits_of(const tl_math_context *m, LLVMValueRef a) {
  return LLVMBuildBitCast(m->b, a, m->bits_type, "");
}
LLVMValueRef tl_math_of_bits(const tl_math_context *m, LLVMValueRef bits) {
  return LLVMBuildBitCast(m->b, bits, m->type, "");
}

LLVMValueRef tl_math_copy_sign(const tl_math_context *m, LLVMValueRef magnitude, LLVMValueRef sign) {
  uint64_t sign_bit = UINT64_C(1) << (LLVMGetIntTypeWidth(m->bits_type) - 1);
  LLVMValueRef low_mask = LLVMConstInt(m->bits_type, sign_bit - 1, 0),
               high_mask = LLVMConstInt(m->bits_type, sign_bit, 0);
  LLVMValueRef low = LLVMBuildAnd(m->b, tl_math_bits_of(m, magnitude), low_mask, "");
  LLVMValueRef high = LLVMBuildAnd(m->b, tl_math_bits_of(m, sign), high_mask, "");
  return tl_math_of_bits(m, LLVMBuildOr(m->b, low, high, ""));
}

// ---- combinations

LLVMValueRef tl_math_polynomial(const tl_math_context *m, LLVMValueRef x, const double *c, int n) {
  LLVMValueRef result = tl_math_const(m, c[n - 1]);
  for (int i = n - 2; i >= 0; i--) result = tl_math_fma(m, result, x, tl_math_const(m, c[i]));
  return result;
}

LLVMValueRef tl_math_series_of(const tl_math_context *m, LLVMValueRef x, const tl_math_series *series) {
  return m->is_f64 ? tl_math_polynomial(m, x, series->f64, series->num_f64)
                   : tl_math_polynomial(m, x, series->f32, series->num_f32);
}

LLVMValueRef tl_math_keep_nan(const tl_math_context *m, LLVMValueRef x, LLVMValueRef result) {
  LLVMValueRef is_nan = LLVMBuildFCmp(m->b, LLVMRealUNO, x, x, "");
  return tl_math_select(m, is_nan, x, result);
}

LLVMValueRef tl_math_clamp(const tl_math_context *m, LLVMValueRef x, double least, double most) {
  LLVMValueRef above = tl_lower_intrinsic2(m->l, "llvm.maxnum", x, tl_math_const(m, least));
  return tl_lower_intrinsic2(m->l, "llvm.minnum", above, tl_math_const(m, most));
}

LLVMValueRef tl_math_power_of_two(const tl_math_context *m, LLVMValueRef n) {
  tl_session *s = m->l->session;
  LLVMValueRef exponent = LLVMBuildAdd(m->b, n, tl_session_i32(s, m->is_f64 ? 1023 : 127), "");
  if (m->is_f64) exponent = LLVMBuildZExt(m->b, exponent, s->i64, "");
  return tl_math_of_bits(m, LLVMBuildShl(m->b, exponent, tl_math_bits_const(m, 23, 52), ""));
}

LLVMValueRef tl_math_scale(const tl_math_context *m, LLVMValueRef value, LLVMValueRef n) {
  LLVMValueRef half = LLVMBuildAShr(m->b, n, tl_session_i32(m->l->session, 1), "");
  LLVMValueRef rest = LLVMBuildSub(m->b, n, half, "");
  LLVMValueRef first = tl_math_mul(m, value, tl_math_power_of_two(m, half));
  return tl_math_mul(m, first, tl_math_power_of_two(m, rest));
}

tl_math_pair tl_math_fast_two_sum(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef sum = tl_math_add(m, a, b), b_part = tl_math_sub(m, sum, a);
  return (tl_math_pair){sum, tl_math_sub(m, b, b_part)};
}

tl_math_pair tl_math_two_sum(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef sum = tl_math_add(m, a, b), b_part = tl_math_sub(m, sum, a);
  LLVMValueRef a_error = tl_math_sub(m, a, tl_math_sub(m, sum, b_part));
  LLVMValueRef b_error = tl_math_sub(m, b, b_part);
  return (tl_math_pair){sum, tl_math_add(m, a_error, b_error)};
}

tl_math_pair tl_math_two_product(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef product = tl_math_mul(m, a, b);
  return (tl_math_pair){product, tl_math_fma(m, a, b, tl_math_neg(m, product))};
}

tl_math_pair tl_math_pair_product(const tl_math_context *m, tl_math_pair a, tl_math_pair b) {
  tl_math_pair product = tl_math_two_product(m, a.hi, b.hi);
  product.lo = tl_math_fma(m, a.hi, b.lo, product.lo);
  product.lo = tl_math_fma(m, a.lo, b.hi, product.lo);
  return product;
}
