// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between dtypes. Those from and to f8, f4 and tf32 go by way of f32: lower_narrow.c.
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_arith.h"
#include "llvm_backend/lower/value/lower_narrow.h"
#include "llvm_backend/lower/value/lower_pairs.h"

static bool is_half(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
}

static LLVMValueRef int_to_int(tl_lower *l, LLVMValueRef a, bool from_signed, LLVMTypeRef to) {
  unsigned from_bits = LLVMGetIntTypeWidth(LLVMTypeOf(a)), to_bits = LLVMGetIntTypeWidth(to);
  if (from_bits == to_bits) return a;
  if (from_bits > to_bits) return LLVMBuildTrunc(l->builder, a, to, "");
  return from_signed ? LLVMBuildSExt(l->builder, a, to, "") : LLVMBuildZExt(l->builder, a, to, "");
}

// A bf16 is the upper half of its f32. Of a pair in one word that is a shift or a mask, one instruction each, where the
// conversion of an element takes the pair apart first.
static LLVMValueRef widen_bf16(tl_lower *l, LLVMValueRef a) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef f32 = l->session->f32, i32 = l->session->i32;
  LLVMValueRef vector = LLVMIsAExtractElementInst(a) ? LLVMGetOperand(a, 0) : NULL;
  LLVMValueRef word = vector && LLVMIsABitCastInst(vector) ? LLVMGetOperand(vector, 0) : NULL;
  if (!word || LLVMTypeOf(word) != i32) return LLVMBuildFPExt(b, a, f32, "");
  bool is_upper = LLVMConstIntGetZExtValue(LLVMGetOperand(a, 1)) == 1;
  LLVMValueRef bits = is_upper ? LLVMBuildAnd(b, word, tl_session_i32(l->session, -0x10000), "")
                               : LLVMBuildShl(b, word, tl_session_i32(l->session, 16), "");
  return LLVMBuildBitCast(b, bits, f32, "");
}

static LLVMValueRef float_to_float(tl_lower *l, LLVMValueRef a, tl_dtype from, tl_dtype to) {
  LLVMTypeRef type = tl_session_type(l->session, to);
  if (from == to) return a;
  if (from == TL_DTYPE_BF16 && to == TL_DTYPE_F32) return widen_bf16(l, a);
  // f16 and bf16 hold values that the other cannot: by way of f32, which holds both.
  if (is_half(from) && to != TL_DTYPE_F32) a = LLVMBuildFPExt(l->builder, a, l->session->f32, "");
  if (from == TL_DTYPE_F64 || is_half(to)) {
    if (to == TL_DTYPE_F64) return LLVMBuildFPExt(l->builder, a, type, "");
    return LLVMBuildFPTrunc(l->builder, a, type, "");
  }
  return LLVMBuildFPExt(l->builder, a, type, "");
}

// Truncates and saturates; NaN gives 0.
static LLVMValueRef float_to_int(tl_lower *l, LLVMValueRef a, tl_dtype from, tl_dtype to) {
  if (is_half(from)) a = LLVMBuildFPExt(l->builder, a, l->session->f32, "");
  if (tl_dtype_bits(to) < 8) {
    LLVMValueRef wide = float_to_int(l, a, TL_DTYPE_F32, TL_DTYPE_I32);
    wide = tl_lower_intrinsic2(l, "llvm.smax", wide, tl_session_i32(l->session, tl_dtype_int_min(to)));
    wide = tl_lower_intrinsic2(l, "llvm.smin", wide, tl_session_i32(l->session, (int64_t)tl_dtype_int_max(to)));
    return LLVMBuildTrunc(l->builder, wide, l->session->i4, "");
  }
  LLVMTypeRef types[] = {tl_session_type(l->session, to), LLVMTypeOf(a)};
  const char *name = tl_dtype_is_signed_int(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return tl_session_call_intrinsic(l->session, l->builder, name, types, 2, &a, 1);
}

static LLVMValueRef int_to_float(tl_lower *l, LLVMValueRef a, bool from_signed, tl_dtype to) {
  if (LLVMTypeOf(a) == l->session->i4) a = int_to_int(l, a, from_signed, l->session->i32);
  // 8-bit integers are exact in f16 and bf16, wider ones round once in f32 or more and once more in the result.
  LLVMTypeRef type = is_half(to) ? l->session->f32 : tl_session_type(l->session, to);
  LLVMValueRef result =
      from_signed ? LLVMBuildSIToFP(l->builder, a, type, "") : LLVMBuildUIToFP(l->builder, a, type, "");
  return is_half(to) ? LLVMBuildFPTrunc(l->builder, result, tl_session_type(l->session, to), "") : result;
}

static LLVMValueRef convert_one(tl_lower *l, LLVMValueRef a, tl_dtype from, tl_dtype to) {
  // TL_DTYPE_NONE stands for an index.
  bool from_float = tl_dtype_is_float(from), to_float = tl_dtype_is_float(to);
  bool from_signed = from == TL_DTYPE_NONE || tl_dtype_is_signed_int(from);
  if (from == to) return a;
  if (tl_lower_is_narrow(from)) {
    a = tl_lower_from_narrow(l, a, from);
    from = TL_DTYPE_F32;
  }
  if (tl_lower_is_narrow(to)) {
    // Integers of more than 24 bits are not exact in f32.
    bool by_f64 = !from_float && LLVMGetIntTypeWidth(LLVMTypeOf(a)) > 24;
    if (!from_float) a = int_to_float(l, a, from_signed, by_f64 ? TL_DTYPE_F64 : TL_DTYPE_F32);
    if (is_half(from)) a = LLVMBuildFPExt(l->builder, a, l->session->f32, "");
    if (LLVMTypeOf(a) == l->session->f64) a = tl_lower_f64_to_odd_f32(l, a);
    return tl_lower_to_narrow(l, a, to);
  }
  if (to == TL_DTYPE_BOOL) {
    if (from == TL_DTYPE_BOOL) return a;
    if (from_float) return LLVMBuildFCmp(l->builder, LLVMRealUNE, a, LLVMConstNull(LLVMTypeOf(a)), "");
    return LLVMBuildICmp(l->builder, LLVMIntNE, a, LLVMConstNull(LLVMTypeOf(a)), "");
  }
  if (from_float && to_float) return float_to_float(l, a, from, to);
  if (from_float) return float_to_int(l, a, from, to);
  if (to_float) return int_to_float(l, a, from_signed, to);
  return int_to_int(l, a, from_signed, tl_session_type(l->session, to));
}

// Two f32 to one register with one instruction.
static void convert_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype to, LLVMValueRef *out) {
  LLVMValueRef args[] = {high, low};
  tl_device_op_id id = to == TL_DTYPE_F16 ? TL_DEVOP_CVT_F16X2 : TL_DEVOP_CVT_BF16X2;
  LLVMValueRef pair = tl_session_call_device(l->session, l->builder, id, args, 2);
  out[0] = LLVMBuildExtractElement(l->builder, pair, tl_session_i32(l->session, 0), "");
  out[1] = LLVMBuildExtractElement(l->builder, pair, tl_session_i32(l->session, 1), "");
}

void tl_lower_convert(tl_lower *l, LLVMValueRef const *in, tl_dtype from, tl_dtype to, int32_t count,
                      LLVMValueRef *out) {
  int32_t i = 0;
  if (from == TL_DTYPE_F32 && is_half(to))
    for (; i + 1 < count; i += 2) convert_pair(l, in[i], in[i + 1], to, &out[i]);
  if (from == TL_DTYPE_F32 && tl_lower_has_pairs(l, to))
    for (; i + 1 < count; i += 2) tl_lower_pair_to_f8(l, in[i], in[i + 1], to, &out[i]);
  if (tl_dtype_is_int(from) && is_half(to))
    while (i + 1 < count && tl_lower_fields_to_half(l, &in[i], from, to, &out[i])) i += 2;
  for (; i < count; i++) out[i] = convert_one(l, in[i], from, to);
}

void tl_lower_op_CAST(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0), *result = tl_op_result(op, 0);
  int32_t len = tl_lower_len(l, a);
  LLVMValueRef in[TL_MAX_GROUP], out[TL_MAX_GROUP];
  bool from_index = a->type->kind == TL_TYPE_INDEX, to_index = result->type->kind == TL_TYPE_INDEX;
  tl_dtype from = from_index ? TL_DTYPE_NONE : a->type->dtype;
  LLVMTypeRef type = tl_lower_value_type(l, result);
  if (!type || !tl_lower_value_type(l, a)) {
    tl_lower_unsupported(l, op, "conversion from %s to %s has no lowering",
                         from_index ? "index" : tl_dtype_name(a->type->dtype), tl_dtype_name(result->type->dtype));
    return;
  }
  for (int32_t e = 0; e < len; e++) in[e] = tl_lower_get(l, a, e);
  if (to_index) {
    bool is_signed = from_index || tl_dtype_is_signed_int(from);
    for (int32_t e = 0; e < len; e++) out[e] = int_to_int(l, in[e], is_signed, type);
  } else {
    tl_lower_convert(l, in, from, result->type->dtype, len, out);
  }
  tl_lower_set(l, result, out, len);
}

void tl_lower_op_BITCAST(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0), *result = tl_op_result(op, 0);
  LLVMTypeRef type = tl_lower_value_type(l, result);
  LLVMValueRef out[TL_MAX_GROUP];
  if (!type || !tl_lower_value_type(l, a)) {
    tl_lower_unsupported(l, op, "bitcast to %s has no lowering", tl_dtype_name(result->type->dtype));
    return;
  }
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) out[e] = LLVMBuildBitCast(l->builder, tl_lower_get(l, a, e), type, "");
  tl_lower_set(l, result, out, len);
}
