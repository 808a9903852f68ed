// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arithmetic on floats, integers and bools. Indices are in lower_index.c.
// f16 and bf16 are computed in f32 and rounded after each op: for single operations that is the correctly rounded
// result, and LLVM narrows it to native instructions where the target has them.
#include "llvm_backend/lower/value/lower_arith.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_pairs.h"
#include "llvm_backend/lower/value/lower_precision.h"

static void fast_flags(tl_lower *l, LLVMValueRef instruction) {
  if (!LLVMIsAInstruction(instruction) || !LLVMCanValueUseFastMathFlags(instruction)) return;
  LLVMFastMathFlags flags = LLVMFastMathAllowContract;
  // Never "no NaNs" or "no infinities": masks and padding rely on them.
  if (l->fast_math) flags |= LLVMFastMathApproxFunc | LLVMFastMathAllowReciprocal;
  LLVMSetFastMathFlags(instruction, flags);
}

static bool is_half(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
}

static LLVMValueRef widen(tl_lower *l, LLVMValueRef a, tl_dtype dtype) {
  return is_half(dtype) ? LLVMBuildFPExt(l->builder, a, l->session->f32, "") : a;
}

static LLVMValueRef narrow(tl_lower *l, LLVMValueRef a, tl_dtype dtype) {
  return is_half(dtype) ? LLVMBuildFPTrunc(l->builder, a, tl_session_type(l->session, dtype), "") : a;
}

static LLVMValueRef flagged(tl_lower *l, LLVMValueRef a) {
  fast_flags(l, a);
  return a;
}

// A sum or product of `dtype`, which may become part of a fused multiply-add. Of 16-bit floats it may not: whether LLVM
// finds two native instructions, packed ones or an f32 detour depends on target and vector width, the result must not.
static LLVMValueRef contractible(tl_lower *l, tl_dtype dtype, LLVMValueRef a) {
  return is_half(dtype) ? a : flagged(l, a);
}

// The exact division branches for each element. A quotient that is rounded to 16 bits next need not be exact: two units
// of f32's last place move one of some thousand results to a neighbour that is as near.
static LLVMValueRef float_div(tl_lower *l, const tl_op *op, LLVMValueRef a, LLVMValueRef b) {
  const tl_value *result = tl_op_result(op, 0);
  if (LLVMTypeOf(a) == l->session->f32 && l->fast_math) {
    LLVMValueRef args[] = {a, b};
    return tl_session_call_device(l->session, l->builder, TL_DEVOP_DIV_FULL_FTZ, args, 2);
  }
  if (op->code == TL_OP_DIV && result->type->dtype == TL_DTYPE_F32 &&
      tl_lower_precision_of(result) != TL_PRECISION_FULL)
    return flagged(l, tl_lower_scaled_quotient(l, a, b));
  LLVMValueRef quotient = LLVMBuildFDiv(l->builder, a, b, "");
  if (LLVMIsAInstruction(quotient)) LLVMSetFastMathFlags(quotient, LLVMFastMathAllowContract);
  return quotient;
}

// floor(a / b), also where the quotient rounds to -0: for an infinite b of the other sign, or by underflow.
static LLVMValueRef float_floor_quotient(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef builder = l->builder;
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef zero = LLVMConstReal(type, 0);
  LLVMValueRef quotient = tl_lower_intrinsic1(l, "llvm.floor", float_div(l, op, a, b));
  LLVMValueRef is_zero = LLVMBuildFCmp(builder, LLVMRealOEQ, quotient, zero, "");
  LLVMValueRef product = LLVMBuildFMul(builder, a, b, "");
  LLVMValueRef signs_differ = LLVMBuildFCmp(builder, LLVMRealOLT, product, zero, "");
  LLVMValueRef is_below = LLVMBuildAnd(builder, is_zero, signs_differ, "");
  return LLVMBuildSelect(builder, is_below, LLVMConstReal(type, -1), quotient, "");
}

// a - b * floor(a / b). A quotient of zero leaves a itself: its product with an infinite b would be NaN.
static LLVMValueRef float_remainder(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef quotient = float_floor_quotient(l, op, a, b);
  LLVMValueRef is_zero = LLVMBuildFCmp(l->builder, LLVMRealOEQ, quotient, LLVMConstReal(LLVMTypeOf(a), 0), "");
  LLVMValueRef rest = tl_lower_intrinsic3(l, "llvm.fma", LLVMBuildFNeg(l->builder, quotient, ""), b, a);
  return LLVMBuildSelect(l->builder, is_zero, a, rest, "");
}

static LLVMValueRef float_binary(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef builder = l->builder;
  tl_dtype dtype = tl_op_result(op, 0)->type->dtype;
  switch (op->code) {
    case TL_OP_ADD:
      return contractible(l, dtype, LLVMBuildFAdd(builder, a, b, ""));
    case TL_OP_SUB:
      return contractible(l, dtype, LLVMBuildFSub(builder, a, b, ""));
    case TL_OP_MUL:
      return contractible(l, dtype, LLVMBuildFMul(builder, a, b, ""));
    case TL_OP_DIV:
      return float_div(l, op, a, b);
    case TL_OP_MIN:
      return tl_lower_intrinsic2(l, "llvm.minnum", a, b);
    case TL_OP_MAX:
      return tl_lower_intrinsic2(l, "llvm.maxnum", a, b);
    case TL_OP_FLOORDIV:
      return float_floor_quotient(l, op, a, b);
    case TL_OP_MOD:
      return float_remainder(l, op, a, b);
    default:
      break;
  }
  tl_lower_unsupported(l, op, "'%s' of %s has no lowering", tl_op_info_of(op->code)->name,
                       tl_dtype_name(tl_op_result(op, 0)->type->dtype));
  return a;
}

// Floor division and its remainder of signed values.
static LLVMValueRef floor_divide(tl_lower *l, LLVMValueRef a, LLVMValueRef b, bool want_remainder) {
  LLVMBuilderRef builder = l->builder;
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef zero = LLVMConstNull(type);
  if (LLVMIsAConstantInt(b)) {
    int64_t by = LLVMConstIntGetSExtValue(b);
    if (by > 0 && (by & (by - 1)) == 0) {
      LLVMValueRef mask = LLVMConstInt(type, (unsigned long long)by - 1, 0);
      LLVMValueRef shift = LLVMConstInt(type, (unsigned long long)__builtin_ctzll((unsigned long long)by), 0);
      return want_remainder ? LLVMBuildAnd(builder, a, mask, "") : LLVMBuildAShr(builder, a, shift, "");
    }
  }
  LLVMValueRef rest = LLVMBuildSRem(builder, a, b, "");
  LLVMValueRef signs = LLVMBuildICmp(builder, LLVMIntSLT, LLVMBuildXor(builder, rest, b, ""), zero, "");
  LLVMValueRef adjust = LLVMBuildAnd(builder, signs, LLVMBuildICmp(builder, LLVMIntNE, rest, zero, ""), "");
  if (want_remainder) return LLVMBuildAdd(builder, rest, LLVMBuildSelect(builder, adjust, b, zero, ""), "");
  LLVMValueRef quotient = LLVMBuildSDiv(builder, a, b, "");
  return LLVMBuildAdd(builder, quotient, LLVMBuildSExt(builder, adjust, type, ""), "");
}

// Shifts by the width or more: 0, or the sign for an arithmetic right shift.
static LLVMValueRef shift_bits(tl_lower *l, LLVMValueRef a, LLVMValueRef by, bool left, bool is_signed) {
  LLVMBuilderRef builder = l->builder;
  LLVMTypeRef type = LLVMTypeOf(a);
  unsigned width = LLVMGetIntTypeWidth(type);
  if (LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) < width) {
    if (left) return LLVMBuildShl(builder, a, by, "");
    return is_signed ? LLVMBuildAShr(builder, a, by, "") : LLVMBuildLShr(builder, a, by, "");
  }
  LLVMValueRef most = LLVMConstInt(type, width - 1, 0);
  LLVMValueRef fits = LLVMBuildICmp(builder, LLVMIntULE, by, most, "");
  LLVMValueRef amount = LLVMBuildSelect(builder, fits, by, most, "");
  if (!left && is_signed) return LLVMBuildAShr(builder, a, amount, "");
  LLVMValueRef shifted = left ? LLVMBuildShl(builder, a, amount, "") : LLVMBuildLShr(builder, a, amount, "");
  return LLVMBuildSelect(builder, fits, shifted, LLVMConstNull(type), "");
}

LLVMValueRef tl_lower_int_binary(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b, bool is_signed) {
  LLVMBuilderRef builder = l->builder;
  switch (op->code) {
    case TL_OP_ADD:
      return LLVMBuildAdd(builder, a, b, "");
    case TL_OP_SUB:
      return LLVMBuildSub(builder, a, b, "");
    case TL_OP_MUL:
      return LLVMBuildMul(builder, a, b, "");
    case TL_OP_FLOORDIV:
      return is_signed ? floor_divide(l, a, b, false) : LLVMBuildUDiv(builder, a, b, "");
    case TL_OP_MOD:
      return is_signed ? floor_divide(l, a, b, true) : LLVMBuildURem(builder, a, b, "");
    case TL_OP_MIN:
      return tl_lower_intrinsic2(l, is_signed ? "llvm.smin" : "llvm.umin", a, b);
    case TL_OP_MAX:
      return tl_lower_intrinsic2(l, is_signed ? "llvm.smax" : "llvm.umax", a, b);
    case TL_OP_AND:
      return LLVMBuildAnd(builder, a, b, "");
    case TL_OP_OR:
      return LLVMBuildOr(builder, a, b, "");
    case TL_OP_XOR:
      return LLVMBuildXor(builder, a, b, "");
    case TL_OP_SHL:
      return shift_bits(l, a, b, true, is_signed);
    case TL_OP_SHR:
      return shift_bits(l, a, b, false, is_signed);
    default:
      break;
  }
  tl_lower_unsupported(l, op, "'%s' of %s has no lowering", tl_op_info_of(op->code)->name,
                       tl_dtype_name(tl_op_result(op, 0)->type->dtype));
  return a;
}

static int32_t longer(int32_t a, int32_t b) {
  return a > b ? a : b;
}

static bool known_type(tl_lower *l, tl_op *op, const tl_value *value) {
  if (tl_lower_value_type(l, value)) return true;
  tl_lower_unsupported(l, op, "arithmetic in %s has no lowering", tl_dtype_name(value->type->dtype));
  return false;
}

static void binary(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0), *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  if (result->type->kind == TL_TYPE_INDEX) {
    tl_lower_index_binary(l, op);
    return;
  }
  if (!known_type(l, op, result)) return;
  tl_dtype dtype = result->type->dtype;
  int32_t len = longer(tl_lower_len(l, a), tl_lower_len(l, b));
  LLVMValueRef out[TL_MAX_GROUP];
  if (tl_lower_shares_divisor(l, op)) {
    for (int32_t i = 0; i < len; i++) out[i] = tl_lower_get(l, a, i);
    tl_lower_shared_quotients(l, out, len, tl_lower_get(l, b, 0));
    tl_lower_set(l, result, out, len);
    return;
  }
  int32_t e = 0;
  for (; e + 1 < len && tl_lower_has_pair_op(l, op->code, dtype); e += 2) {
    LLVMValueRef x[2], y[2];
    for (int32_t i = 0; i < 2; i++) x[i] = tl_lower_get(l, a, e + i), y[i] = tl_lower_get(l, b, e + i);
    tl_lower_pair_op(l, op->code, dtype, x, y, &out[e]);
  }
  for (; e < len && !tl_lower_failed(l); e++) {
    LLVMValueRef x = tl_lower_get(l, a, e), y = tl_lower_get(l, b, e);
    if (tl_dtype_is_float(dtype)) {
      // In statements of their own: C leaves the order of arguments open, and the order of instructions shows.
      LLVMValueRef wide_x = widen(l, x, dtype), wide_y = widen(l, y, dtype);
      out[e] = narrow(l, float_binary(l, op, wide_x, wide_y), dtype);
    } else {
      out[e] = tl_lower_int_binary(l, op, x, y, tl_dtype_is_signed_int(dtype));
    }
  }
  if (!tl_lower_failed(l)) tl_lower_set(l, result, out, len);
}

#define TL_BINARY(ID)                             \
  void tl_lower_op_##ID(tl_lower *l, tl_op *op) { \
    binary(l, op);                                \
  }
TL_BINARY(ADD)
TL_BINARY(SUB)
TL_BINARY(MUL)
TL_BINARY(DIV)
TL_BINARY(FLOORDIV)
TL_BINARY(MOD)
TL_BINARY(MIN)
TL_BINARY(MAX)
TL_BINARY(AND)
TL_BINARY(OR)
TL_BINARY(XOR)
TL_BINARY(SHL)
TL_BINARY(SHR)
#undef TL_BINARY

void tl_lower_op_NEG(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0), *result = tl_op_result(op, 0);
  if (!known_type(l, op, result)) return;
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x = tl_lower_get(l, a, e);
    if (result->type->kind == TL_TYPE_INDEX)
      out[e] = LLVMBuildNeg(l->builder, tl_lower_index_as(l, l->builder, x, tl_lower_value_type(l, result)), "");
    else
      out[e] =
          tl_dtype_is_float(result->type->dtype) ? LLVMBuildFNeg(l->builder, x, "") : LLVMBuildNeg(l->builder, x, "");
  }
  tl_lower_set(l, result, out, len);
}

void tl_lower_op_NOT(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) out[e] = LLVMBuildNot(l->builder, tl_lower_get(l, a, e), "");
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

void tl_lower_op_FMA(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0), *v[3] = {tl_op_operand(op, 0), tl_op_operand(op, 1), tl_op_operand(op, 2)};
  if (!known_type(l, op, result)) return;
  tl_dtype dtype = result->type->dtype;
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = longer(tl_lower_len(l, v[0]), longer(tl_lower_len(l, v[1]), tl_lower_len(l, v[2])));
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x[3];
    for (int i = 0; i < 3; i++) x[i] = tl_lower_get(l, v[i], e);
    if (result->type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(dtype)) {
      for (int i = 0; i < 3; i++) x[i] = widen(l, x[i], dtype);
      out[e] = narrow(l, tl_lower_intrinsic3(l, "llvm.fma", x[0], x[1], x[2]), dtype);
      continue;
    }
    LLVMTypeRef type = tl_lower_value_type(l, result);
    if (result->type->kind == TL_TYPE_INDEX)
      for (int i = 0; i < 3; i++) x[i] = tl_lower_index_as(l, l->builder, x[i], type);
    out[e] = LLVMBuildAdd(l->builder, LLVMBuildMul(l->builder, x[0], x[1], ""), x[2], "");
  }
  tl_lower_set(l, result, out, len);
}

// popcount and clz: an i32 of 32 or 64 bits.
static void lower_bits(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef args[] = {tl_lower_get(l, a, e), tl_session_bool(l->session, false)};
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    bool is_clz = op->code == TL_OP_CLZ;
    out[e] = tl_session_call_intrinsic(l->session, l->builder, is_clz ? "llvm.ctlz" : "llvm.ctpop", &type, 1, args,
                                       is_clz ? 2 : 1);
    if (type == l->session->i64) out[e] = LLVMBuildTrunc(l->builder, out[e], l->session->i32, "");
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

void tl_lower_op_POPCOUNT(tl_lower *l, tl_op *op) {
  lower_bits(l, op);
}

void tl_lower_op_CLZ(tl_lower *l, tl_op *op) {
  lower_bits(l, op);
}

void tl_lower_op_DP4A(tl_lower *l, tl_op *op) {
  static const tl_device_op_id ids[2][2] = {{TL_DEVOP_DP4A_S_S, TL_DEVOP_DP4A_S_U},
                                            {TL_DEVOP_DP4A_U_S, TL_DEVOP_DP4A_U_U}};
  bool is_unsigned[2];
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = 1;
  for (int i = 0; i < 3; i++) len = longer(len, tl_lower_len(l, tl_op_operand(op, (uint32_t)i)));
  for (int i = 0; i < 2; i++) is_unsigned[i] = tl_op_operand(op, (uint32_t)i)->type->dtype == TL_DTYPE_U32;
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef args[3];
    for (int i = 0; i < 3; i++) args[i] = tl_lower_get(l, tl_op_operand(op, (uint32_t)i), e);
    out[e] = tl_session_call_device(l->session, l->builder, ids[is_unsigned[0]][is_unsigned[1]], args, 3);
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

static const LLVMRealPredicate real_predicates[] = {
    [TL_CMP_EQ] = LLVMRealOEQ, [TL_CMP_NE] = LLVMRealUNE, [TL_CMP_LT] = LLVMRealOLT,
    [TL_CMP_LE] = LLVMRealOLE, [TL_CMP_GT] = LLVMRealOGT, [TL_CMP_GE] = LLVMRealOGE};
static const LLVMIntPredicate signed_predicates[] = {
    [TL_CMP_EQ] = LLVMIntEQ,  [TL_CMP_NE] = LLVMIntNE,  [TL_CMP_LT] = LLVMIntSLT,
    [TL_CMP_LE] = LLVMIntSLE, [TL_CMP_GT] = LLVMIntSGT, [TL_CMP_GE] = LLVMIntSGE};
static const LLVMIntPredicate unsigned_predicates[] = {
    [TL_CMP_EQ] = LLVMIntEQ,  [TL_CMP_NE] = LLVMIntNE,  [TL_CMP_LT] = LLVMIntULT,
    [TL_CMP_LE] = LLVMIntULE, [TL_CMP_GT] = LLVMIntUGT, [TL_CMP_GE] = LLVMIntUGE};

LLVMIntPredicate tl_lower_int_predicate(int64_t cmp, bool is_signed) {
  return is_signed ? signed_predicates[cmp] : unsigned_predicates[cmp];
}

void tl_lower_op_CMP(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  if (!known_type(l, op, a)) return;
  int64_t pred = tl_op_int(op, TL_ATTR_CMP, TL_CMP_EQ);
  bool index = a->type->kind == TL_TYPE_INDEX;
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = longer(tl_lower_len(l, a), tl_lower_len(l, b));
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x = tl_lower_get(l, a, e), y = tl_lower_get(l, b, e);
    if (index && LLVMTypeOf(x) != LLVMTypeOf(y)) {
      x = tl_lower_index_as(l, l->builder, x, l->session->i64);
      y = tl_lower_index_as(l, l->builder, y, l->session->i64);
    }
    if (!index && tl_dtype_is_float(a->type->dtype))
      out[e] = LLVMBuildFCmp(l->builder, real_predicates[pred], x, y, "");
    else if (index || tl_dtype_is_signed_int(a->type->dtype))
      out[e] = LLVMBuildICmp(l->builder, signed_predicates[pred], x, y, "");
    else
      out[e] = LLVMBuildICmp(l->builder, unsigned_predicates[pred], x, y, "");
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

void tl_lower_op_SELECT(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0), *c = tl_op_operand(op, 0), *a = tl_op_operand(op, 1),
           *b = tl_op_operand(op, 2);
  if (!known_type(l, op, result)) return;
  LLVMTypeRef type = tl_lower_value_type(l, result);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = longer(tl_lower_len(l, c), longer(tl_lower_len(l, a), tl_lower_len(l, b)));
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x = tl_lower_get(l, a, e), y = tl_lower_get(l, b, e);
    if (result->type->kind == TL_TYPE_INDEX) {
      x = tl_lower_index_as(l, l->builder, x, type);
      y = tl_lower_index_as(l, l->builder, y, type);
    }
    out[e] = LLVMBuildSelect(l->builder, tl_lower_get(l, c, e), x, y, "");
  }
  tl_lower_set(l, result, out, len);
}

void tl_lower_op_CONST(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_VALUE);
  if (!known_type(l, op, result)) return;
  LLVMTypeRef type = tl_lower_value_type(l, result);
  LLVMValueRef value;
  bool is_float = result->type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(result->type->dtype);
  if (is_float && tl_dtype_bits(result->type->dtype) <= 8) {
    uint8_t bits = 0;
    tl_dtype_store_float(result->type->dtype, &bits, 0, attr->is_float ? attr->v.f : (double)attr->v.i);
    value = LLVMConstInt(type, bits, 0);
  } else if (is_float)
    value = LLVMConstReal(type, attr->is_float ? attr->v.f : (double)attr->v.i);
  else
    value = LLVMConstInt(type, (unsigned long long)(attr->is_float ? (int64_t)attr->v.f : attr->v.i), 1);
  tl_lower_set_one(l, result, value);
}
