// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of reductions and scans, and shuffles of values of any width.
#include <math.h>

#include "llvm_backend/lower/tile/lower_reduce.h"
#include "llvm_backend/lower/value/lower_arith.h"

static bool is_max(int reduction) {
  return reduction == TL_REDUCTION_MAX || reduction == TL_REDUCTION_ABSMAX || reduction == TL_REDUCTION_ARGMAX;
}

static bool is_arg(const tl_combiner *combiner) {
  return combiner->reduction == TL_REDUCTION_ARGMAX || combiner->reduction == TL_REDUCTION_ARGMIN;
}

static LLVMValueRef int_constant(tl_lower *l, tl_dtype dtype, uint64_t value) {
  return LLVMConstInt(tl_session_type(l->session, dtype), value, 0);
}

// What loses against everything: of integers the end of the range; of floats NaN, or where NaN counts an infinity.
static LLVMValueRef extreme(tl_lower *l, const tl_combiner *combiner, bool for_max) {
  tl_dtype dtype = combiner->dtype;
  LLVMTypeRef type = tl_session_type(l->session, dtype);
  if (!tl_dtype_is_float(dtype)) {
    return int_constant(l, dtype, for_max ? (uint64_t)tl_dtype_int_min(dtype) : tl_dtype_int_max(dtype));
  }
  if (!combiner->propagates_nan) return LLVMConstReal(type, (double)NAN);
  return LLVMConstReal(type, for_max ? -(double)INFINITY : (double)INFINITY);
}

tl_element tl_lower_neutral(tl_lower *l, const tl_combiner *combiner) {
  tl_element neutral = {.value = tl_lower_zero(l, combiner->dtype)};
  switch ((enum tl_reduction)combiner->reduction) {
    case TL_REDUCTION_SUM:
    case TL_REDUCTION_ABSSUM:
    case TL_REDUCTION_ANY:
    case TL_REDUCTION_BITOR:
    case TL_REDUCTION_BITXOR:
      break;
    case TL_REDUCTION_PROD:
      neutral.value = tl_dtype_is_float(combiner->dtype)
                          ? LLVMConstReal(tl_session_type(l->session, combiner->dtype), 1.0)
                          : int_constant(l, combiner->dtype, 1);
      break;
    case TL_REDUCTION_ALL:
      neutral.value = tl_session_bool(l->session, true);
      break;
    case TL_REDUCTION_BITAND:
      neutral.value = int_constant(l, combiner->dtype, UINT64_MAX);
      break;
    case TL_REDUCTION_MAX:
    case TL_REDUCTION_MIN:
    case TL_REDUCTION_ARGMAX:
    case TL_REDUCTION_ARGMIN:
      neutral.value = extreme(l, combiner, is_max(combiner->reduction));
      break;
    case TL_REDUCTION_ABSMAX:
      // Absolute values are not negative, but where all are NaN the result is.
      if (tl_dtype_is_float(combiner->dtype)) neutral.value = extreme(l, combiner, true);
      break;
    case TL_REDUCTION_COUNT:
      break;
  }
  if (is_arg(combiner)) neutral.index = tl_session_i32(l->session, INT32_MAX);
  return neutral;
}

static LLVMValueRef contracted(LLVMValueRef value) {
  if (LLVMIsAInstruction(value)) LLVMSetFastMathFlags(value, LLVMFastMathAllowContract);
  return value;
}

static LLVMValueRef min_max(tl_lower *l, const tl_combiner *combiner, LLVMValueRef a, LLVMValueRef b) {
  bool max = is_max(combiner->reduction);
  if (!tl_dtype_is_float(combiner->dtype)) {
    bool is_signed = tl_dtype_is_signed_int(combiner->dtype);
    const char *name = is_signed ? (max ? "llvm.smax" : "llvm.smin") : (max ? "llvm.umax" : "llvm.umin");
    return tl_lower_intrinsic2(l, name, a, b);
  }
  if (combiner->propagates_nan && combiner->dtype == TL_DTYPE_F32) {
    return tl_lower_intrinsic2(l, max ? "llvm.maximum" : "llvm.minimum", a, b);
  }
  LLVMValueRef result = tl_lower_intrinsic2(l, max ? "llvm.maxnum" : "llvm.minnum", a, b);
  if (!combiner->propagates_nan) return result;
  LLVMValueRef is_nan = LLVMBuildFCmp(l->builder, LLVMRealUNO, a, b, "");
  return LLVMBuildSelect(l->builder, is_nan, LLVMBuildFAdd(l->builder, a, b, ""), result, "");
}

// Whether `a` wins against `b` by value alone. A NaN loses against every number, or wins where NaN counts.
static LLVMValueRef beats(tl_lower *l, const tl_combiner *combiner, LLVMValueRef a, LLVMValueRef b) {
  bool max = is_max(combiner->reduction);
  if (!tl_dtype_is_float(combiner->dtype)) {
    bool is_signed = tl_dtype_is_signed_int(combiner->dtype);
    LLVMIntPredicate greater = is_signed ? LLVMIntSGT : LLVMIntUGT, less = is_signed ? LLVMIntSLT : LLVMIntULT;
    return LLVMBuildICmp(l->builder, max ? greater : less, a, b, "");
  }
  LLVMValueRef number = combiner->propagates_nan ? b : a;
  LLVMValueRef is_number = LLVMBuildFCmp(l->builder, LLVMRealORD, number, number, "");
  LLVMValueRef wins = LLVMBuildFCmp(l->builder, max ? LLVMRealUGT : LLVMRealULT, a, b, "");
  return LLVMBuildAnd(l->builder, is_number, wins, "");
}

// The winner by value; among equals the lower index.
static tl_element winner(tl_lower *l, const tl_combiner *combiner, tl_element a, tl_element b) {
  LLVMValueRef a_wins = beats(l, combiner, a.value, b.value), b_wins = beats(l, combiner, b.value, a.value);
  LLVMValueRef is_lower = LLVMBuildICmp(l->builder, LLVMIntSLT, a.index, b.index, "");
  LLVMValueRef is_tie_for_a = LLVMBuildAnd(l->builder, LLVMBuildNot(l->builder, b_wins, ""), is_lower, "");
  LLVMValueRef takes_a = LLVMBuildOr(l->builder, a_wins, is_tie_for_a, "");
  return (tl_element){.value = LLVMBuildSelect(l->builder, takes_a, a.value, b.value, ""),
                      .index = LLVMBuildSelect(l->builder, takes_a, a.index, b.index, "")};
}

tl_element tl_lower_combine(tl_lower *l, const tl_combiner *combiner, tl_element a, tl_element b) {
  bool is_float = tl_dtype_is_float(combiner->dtype);
  tl_element result = {0};
  switch ((enum tl_reduction)combiner->reduction) {
    case TL_REDUCTION_SUM:
    case TL_REDUCTION_ABSSUM:
      result.value = is_float ? contracted(LLVMBuildFAdd(l->builder, a.value, b.value, ""))
                              : LLVMBuildAdd(l->builder, a.value, b.value, "");
      break;
    case TL_REDUCTION_PROD:
      result.value = is_float ? contracted(LLVMBuildFMul(l->builder, a.value, b.value, ""))
                              : LLVMBuildMul(l->builder, a.value, b.value, "");
      break;
    case TL_REDUCTION_MAX:
    case TL_REDUCTION_MIN:
    case TL_REDUCTION_ABSMAX:
      result.value = min_max(l, combiner, a.value, b.value);
      break;
    case TL_REDUCTION_ANY:
    case TL_REDUCTION_BITOR:
      result.value = LLVMBuildOr(l->builder, a.value, b.value, "");
      break;
    case TL_REDUCTION_ALL:
    case TL_REDUCTION_BITAND:
      result.value = LLVMBuildAnd(l->builder, a.value, b.value, "");
      break;
    case TL_REDUCTION_BITXOR:
      result.value = LLVMBuildXor(l->builder, a.value, b.value, "");
      break;
    case TL_REDUCTION_ARGMAX:
    case TL_REDUCTION_ARGMIN:
      return winner(l, combiner, a, b);
    case TL_REDUCTION_COUNT:
      break;
  }
  return result;
}

LLVMValueRef tl_lower_reduced_value(tl_lower *l, const tl_combiner *combiner, LLVMValueRef value, tl_dtype from) {
  tl_dtype to = combiner->dtype;
  if (from != to) tl_lower_convert(l, &value, from, to, 1, &value);
  if (combiner->reduction != TL_REDUCTION_ABSMAX && combiner->reduction != TL_REDUCTION_ABSSUM) return value;
  if (tl_dtype_is_float(to)) return tl_lower_intrinsic1(l, "llvm.fabs", value);
  if (!tl_dtype_is_signed_int(to)) return value;
  return tl_lower_intrinsic2(l, "llvm.smax", value, LLVMBuildNeg(l->builder, value, ""));
}

// ---- shuffles

static LLVMValueRef shuffle_word(tl_lower *l, tl_device_op_id op, LLVMValueRef word, LLVMValueRef by) {
  // PTX ISA, shfl.sync: operand c holds the clamp value in bits 0 to 4 and the segment mask in bits 8 to 12.
  int32_t clamp = op == TL_DEVOP_SHFL_UP ? 0 : 31;
  LLVMValueRef args[] = {tl_session_i32(l->session, -1), word, by, tl_session_i32(l->session, clamp)};
  return tl_session_call_device(l->session, l->builder, op, args, 4);
}

LLVMValueRef tl_lower_shuffle(tl_lower *l, tl_device_op_id op, LLVMValueRef value, LLVMValueRef by) {
  tl_session *s = l->session;
  LLVMTypeRef type = LLVMTypeOf(value);
  if (type == s->i32) return shuffle_word(l, op, value, by);
  if (type == s->f32) {
    LLVMValueRef word = shuffle_word(l, op, LLVMBuildBitCast(l->builder, value, s->i32, ""), by);
    return LLVMBuildBitCast(l->builder, word, s->f32, "");
  }
  if (type == s->f64) {
    LLVMValueRef bits = LLVMBuildBitCast(l->builder, value, s->i64, "");
    return LLVMBuildBitCast(l->builder, tl_lower_shuffle(l, op, bits, by), s->f64, "");
  }
  if (type == s->i64) {
    LLVMValueRef half = LLVMConstInt(s->i64, 32, 0);
    LLVMValueRef low = shuffle_word(l, op, LLVMBuildTrunc(l->builder, value, s->i32, ""), by);
    LLVMValueRef top = LLVMBuildTrunc(l->builder, LLVMBuildLShr(l->builder, value, half, ""), s->i32, "");
    LLVMValueRef high = LLVMBuildZExt(l->builder, shuffle_word(l, op, top, by), s->i64, "");
    low = LLVMBuildZExt(l->builder, low, s->i64, "");
    return LLVMBuildOr(l->builder, LLVMBuildShl(l->builder, high, half, ""), low, "");
  }
  // i1 and narrow integers
  LLVMValueRef word = shuffle_word(l, op, LLVMBuildZExt(l->builder, value, s->i32, ""), by);
  return LLVMBuildTrunc(l->builder, word, type, "");
}
