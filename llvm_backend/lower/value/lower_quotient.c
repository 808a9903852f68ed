// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quotients of f32 by a divisor that several elements share.
#include <math.h>

#include "llvm_backend/lower/value/lower_arith.h"
#include "llvm_backend/lower/value/lower_precision.h"

enum { MIN_SHARING = 4 };  // elements from which on the reciprocal and the branch are paid back

static bool is_power_of_two(double value) {
  int exponent;
  double part = frexp(fabs(value), &exponent);
  return part == 0.5 && exponent > -120 && exponent < 120;
}

static bool is_product(LLVMValueRef value) {
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMFMul;
}

// The reciprocal by which tl_lower_scaled_quotient made `value`: that of a product by a chosen scale. NULL: it did not.
static LLVMValueRef reciprocal_of(LLVMValueRef value) {
  LLVMValueRef reciprocal = is_product(value) ? LLVMGetOperand(value, 1) : NULL;
  if (!reciprocal || !LLVMIsACallInst(reciprocal)) return NULL;
  LLVMValueRef divisor = LLVMGetOperand(reciprocal, 0);
  return is_product(divisor) && LLVMIsASelectInst(LLVMGetOperand(divisor, 1)) ? reciprocal : NULL;
}

// a times a constant. Of a quotient the factor goes to the reciprocal, which the quotients by one divisor share and
// which lies between 2^-100 and 2^117.
static LLVMValueRef times_constant(tl_lower *l, LLVMValueRef a, double factor) {
  LLVMValueRef reciprocal = fabs(factor) > 0x1p-24 && fabs(factor) < 0x1p8 ? reciprocal_of(a) : NULL;
  LLVMValueRef constant = LLVMConstReal(l->session->f32, factor);
  if (!reciprocal) return LLVMBuildFMul(l->builder, a, constant, "");
  return LLVMBuildFMul(l->builder, LLVMGetOperand(a, 0), LLVMBuildFMul(l->builder, reciprocal, constant, ""), "");
}

// a / b by the reciprocal of b, two units of f32's last place off at most, without a branch. Divisors beyond 2^100 and
// below 2^-100 are scaled, so that neither their reciprocals nor those of denormals leave the range; what scaling the
// dividend loses then is a quotient beyond f32's range as well. All that depends on b alone is shared by the quotients
// by one divisor, and leaves loops: two multiplications each are left.
LLVMValueRef tl_lower_scaled_quotient(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef builder = l->builder;
  LLVMTypeRef f32 = l->session->f32;
  LLVMBool loses = 0;
  double constant = LLVMIsAConstantFP(b) ? LLVMConstRealGetDouble(b, &loses) : 0;
  if (fabs(constant) > 0x1p-100 && fabs(constant) < 0x1p100) return times_constant(l, a, 1 / constant);
  LLVMValueRef size = tl_lower_intrinsic1(l, "llvm.fabs", b);
  LLVMValueRef is_large = LLVMBuildFCmp(builder, LLVMRealOGT, size, LLVMConstReal(f32, 0x1p100), "");
  LLVMValueRef is_small = LLVMBuildFCmp(builder, LLVMRealOLT, size, LLVMConstReal(f32, 0x1p-100), "");
  LLVMValueRef scale = LLVMBuildSelect(builder, is_large, LLVMConstReal(f32, 0x1p-32), LLVMConstReal(f32, 1.0), "");
  scale = LLVMBuildSelect(builder, is_small, LLVMConstReal(f32, 0x1p32), scale, "");
  LLVMValueRef divisor = LLVMBuildFMul(builder, b, scale, "");
  LLVMValueRef reciprocal = tl_session_call_device(l->session, builder, TL_DEVOP_RCP_APPROX_FTZ, &divisor, 1);
  return LLVMBuildFMul(builder, LLVMBuildFMul(builder, a, scale, ""), reciprocal, "");
}

bool tl_lower_shares_divisor(tl_lower *l, const tl_op *op) {
  if (op->code != TL_OP_DIV || l->fast_math || tl_op_result(op, 0)->type->dtype != TL_DTYPE_F32) return false;
  if (tl_lower_len(l, tl_op_operand(op, 0)) < MIN_SHARING || tl_lower_len(l, tl_op_operand(op, 1)) != 1) return false;
  LLVMValueRef divisor = tl_lower_get(l, tl_op_operand(op, 1), 0);
  LLVMBool loses = 0;
  if (LLVMIsAConstantFP(divisor) && is_power_of_two(LLVMConstRealGetDouble(divisor, &loses))) return false;
  return tl_lower_precision_of(tl_op_result(op, 0)) == TL_PRECISION_FULL;
}

// Whether lo <= |a| < hi; a NaN is not.
static LLVMValueRef is_between(tl_lower *l, LLVMValueRef a, double lo, double hi) {
  LLVMTypeRef f32 = l->session->f32;
  LLVMValueRef size = tl_lower_intrinsic1(l, "llvm.fabs", a);
  LLVMValueRef above = LLVMBuildFCmp(l->builder, LLVMRealOGE, size, LLVMConstReal(f32, lo), "");
  return LLVMBuildAnd(l->builder, above, LLVMBuildFCmp(l->builder, LLVMRealOLT, size, LLVMConstReal(f32, hi), ""), "");
}

// The correctly rounded a / b from y = 1 / b correctly rounded and y_rest = 1 / b - y: a y + a y_rest is within a unit
// of the quotient, so that the remainder is exact and one more step rounds correctly (Markstein, IA-64 and Elementary
// Functions, theorem 8.4). The ranges of a and b keep all of it from leaving the normal numbers.
static LLVMValueRef refined(tl_lower *l, LLVMValueRef a, LLVMValueRef minus_b, LLVMValueRef y, LLVMValueRef y_rest) {
  LLVMValueRef near = tl_lower_intrinsic3(l, "llvm.fma", a, y, LLVMBuildFMul(l->builder, a, y_rest, ""));
  return tl_lower_intrinsic3(l, "llvm.fma", tl_lower_intrinsic3(l, "llvm.fma", minus_b, near, a), y, near);
}

// values[i] / b in their place, each correctly rounded: four instructions each where all of them are of ordinary size,
// and divisions otherwise.
void tl_lower_shared_quotients(tl_lower *l, LLVMValueRef *values, int32_t len, LLVMValueRef b) {
  LLVMBuilderRef builder = l->builder;
  LLVMTypeRef f32 = l->session->f32;
  LLVMValueRef one = LLVMConstReal(f32, 1), y = LLVMBuildFDiv(builder, one, b, "");
  LLVMValueRef minus_b = LLVMBuildFNeg(builder, b, "");
  LLVMValueRef y_rest = LLVMBuildFMul(builder, y, tl_lower_intrinsic3(l, "llvm.fma", minus_b, y, one), "");
  LLVMValueRef all = is_between(l, b, 0x1p-24, 0x1p24);
  for (int32_t e = 0; e < len; e++) all = LLVMBuildAnd(builder, all, is_between(l, values[e], 0x1p-100, 0x1p100), "");
  LLVMBasicBlockRef ordinary = tl_lower_new_block(l), other = tl_lower_new_block(l), end = tl_lower_new_block(l);
  LLVMBuildCondBr(builder, all, ordinary, other);
  LLVMValueRef fast[TL_MAX_GROUP], slow[TL_MAX_GROUP];
  LLVMPositionBuilderAtEnd(builder, ordinary);
  for (int32_t e = 0; e < len; e++) fast[e] = refined(l, values[e], minus_b, y, y_rest);
  LLVMBuildBr(builder, end);
  LLVMPositionBuilderAtEnd(builder, other);
  for (int32_t e = 0; e < len; e++) slow[e] = LLVMBuildFDiv(builder, values[e], b, "");
  LLVMBuildBr(builder, end);
  LLVMPositionBuilderAtEnd(builder, end);
  for (int32_t e = 0; e < len; e++) {
    values[e] = LLVMBuildPhi(builder, f32, "");
    LLVMAddIncoming(values[e], (LLVMValueRef[]){fast[e], slow[e]}, (LLVMBasicBlockRef[]){ordinary, other}, 2);
  }
}
