// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Casts with a rounding of their own: the nearest number of the dtype, by the conversion that there is, and its
// neighbour where that is the wrong one. Numbers of one sign are in the order of their bits, so a step from 0 on is one
// unit more, and a step towards 0 one less; the differences of neighbouring numbers are exact.
#include <math.h>

#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_arith.h"

typedef struct rounding {
  tl_lower *l;
  LLVMBuilderRef b;
  tl_dtype from, to;
  LLVMTypeRef from_type, bits_type;
  LLVMValueRef x, size;  // the number and its magnitude
} rounding;

static bool saturates(const rounding *r) {
  return tl_dtype_bits(r->to) <= 8;
}

static LLVMValueRef bits_const(const rounding *r, uint64_t value) {
  return LLVMConstInt(r->bits_type, value, 0);
}

// f8 and f4 are held as bits, tf32 as an f32 whose low bits are zero.
static LLVMValueRef bits_of(const rounding *r, LLVMValueRef value) {
  return LLVMTypeOf(value) == r->bits_type ? value : LLVMBuildBitCast(r->b, value, r->bits_type, "");
}

static LLVMValueRef of_bits(const rounding *r, LLVMValueRef bits) {
  LLVMTypeRef type = tl_session_type(r->l->session, r->to);
  return type == r->bits_type ? bits : LLVMBuildBitCast(r->b, bits, type, "");
}

// The number in the type that is converted from: exact.
static LLVMValueRef widened(const rounding *r, LLVMValueRef bits) {
  LLVMValueRef value = of_bits(r, bits), out;
  tl_lower_convert(r->l, &value, r->to, r->from, 1, &out);
  return out;
}

static LLVMValueRef size_of(const rounding *r, LLVMValueRef bits) {
  return tl_lower_intrinsic1(r->l, "llvm.fabs", widened(r, bits));
}

static LLVMValueRef nearest_bits(const rounding *r) {
  LLVMValueRef out;
  tl_lower_convert(r->l, &r->x, r->from, r->to, 1, &out);
  return bits_of(r, out);
}

static uint64_t unit_of(const rounding *r) {
  return r->to == TL_DTYPE_TF32 ? 1u << 13 : 1;
}

static LLVMValueRef inward(const rounding *r, LLVMValueRef bits) {
  return LLVMBuildSub(r->b, bits, bits_const(r, unit_of(r)), "");
}

// Whether the number is the largest of a dtype that has no infinity to step to.
static LLVMValueRef is_most(const rounding *r, LLVMValueRef bits) {
  if (!saturates(r)) return LLVMConstInt(r->l->session->i1, 0, 0);
  uint64_t most = 0, sign = (uint64_t)1 << (tl_dtype_bits(r->to) - 1);
  tl_dtype_store_float(r->to, &most, 0, tl_dtype_float_max(r->to));
  LLVMValueRef magnitude = LLVMBuildAnd(r->b, bits, bits_const(r, sign - 1), "");
  return LLVMBuildICmp(r->b, LLVMIntEQ, magnitude, bits_const(r, most), "");
}

static LLVMValueRef outward(const rounding *r, LLVMValueRef bits) {
  LLVMValueRef next = LLVMBuildAdd(r->b, bits, bits_const(r, unit_of(r)), "");
  return saturates(r) ? LLVMBuildSelect(r->b, is_most(r, bits), bits, next, "") : next;
}

static LLVMValueRef moved_where(const rounding *r, LLVMValueRef condition, LLVMValueRef moved, LLVMValueRef bits) {
  return LLVMBuildSelect(r->b, condition, moved, bits, "");
}

static LLVMValueRef toward_zero(const rounding *r) {
  LLVMValueRef bits = nearest_bits(r);
  LLVMValueRef is_over = LLVMBuildFCmp(r->b, LLVMRealOGT, size_of(r, bits), r->size, "");
  return moved_where(r, is_over, inward(r, bits), bits);
}

static LLVMValueRef up_or_down(const rounding *r, bool up) {
  LLVMValueRef bits = nearest_bits(r), back = widened(r, bits);
  LLVMValueRef is_wrong = LLVMBuildFCmp(r->b, up ? LLVMRealOLT : LLVMRealOGT, back, r->x, "");
  LLVMValueRef is_negative = LLVMBuildICmp(r->b, LLVMIntSLT, bits, bits_const(r, 0), "");
  LLVMValueRef in = inward(r, bits), out = outward(r, bits);
  LLVMValueRef moved = LLVMBuildSelect(r->b, is_negative, up ? in : out, up ? out : in, "");
  return moved_where(r, is_wrong, moved, bits);
}

// To the nearest, which takes the even one of two: the other where both are as near and it is the larger.
static LLVMValueRef half_away(const rounding *r) {
  LLVMValueRef bits = nearest_bits(r), next = outward(r, bits);
  LLVMValueRef below = LLVMBuildFSub(r->b, r->size, size_of(r, bits), "");
  LLVMValueRef above = LLVMBuildFSub(r->b, size_of(r, next), r->size, "");
  LLVMValueRef is_tie = LLVMBuildFCmp(r->b, LLVMRealOEQ, below, above, "");
  LLVMValueRef is_below = LLVMBuildFCmp(r->b, LLVMRealOGT, below, LLVMConstReal(r->from_type, 0), "");
  return moved_where(r, LLVMBuildAnd(r->b, is_tie, is_below, ""), next, bits);
}

// Of the upper half of an f32's bits, with the lower half and the random bits' upper half added: what the rest of this
// file does for any dtype.
static LLVMValueRef stochastic_bf16(const rounding *r, LLVMValueRef random) {
  tl_session *s = r->l->session;
  LLVMValueRef half = LLVMBuildLShr(r->b, random, tl_session_i32(s, 16), "");
  LLVMValueRef bits = LLVMBuildBitCast(r->b, r->x, s->i32, ""), sum = LLVMBuildAdd(r->b, bits, half, "");
  LLVMValueRef upper = LLVMBuildTrunc(r->b, LLVMBuildLShr(r->b, sum, tl_session_i32(s, 16), ""), s->i16, "");
  LLVMValueRef is_nan = LLVMBuildFCmp(r->b, LLVMRealUNO, r->x, r->x, "");
  return moved_where(r, is_nan, bits_const(r, 0x7fff), upper);
}

// The part of the way from the number below to the one above, times 2^32, and the random bits carry out of 32 bits.
// Past the largest number the step there goes on; a whole step past it is infinity.
static LLVMValueRef stochastic(const rounding *r, LLVMValueRef random) {
  if (r->from == TL_DTYPE_F32 && r->to == TL_DTYPE_BF16) return stochastic_bf16(r, random);
  tl_session *s = r->l->session;
  LLVMValueRef low = toward_zero(r), next = outward(r, low), below = size_of(r, low), above = size_of(r, next);
  LLVMValueRef step = LLVMBuildFSub(r->b, above, below, "");
  LLVMValueRef step_below = LLVMBuildFSub(r->b, below, size_of(r, inward(r, low)), "");
  LLVMValueRef infinity = LLVMConstReal(r->from_type, INFINITY);
  LLVMValueRef has_next = LLVMBuildFCmp(r->b, LLVMRealOLT, above, infinity, "");
  step = LLVMBuildSelect(r->b, has_next, step, step_below, "");
  LLVMValueRef part = LLVMBuildFDiv(r->b, LLVMBuildFSub(r->b, r->size, below, ""), step, "");
  LLVMValueRef is_past = LLVMBuildFCmp(r->b, LLVMRealOGE, part, LLVMConstReal(r->from_type, 1), "");
  LLVMValueRef scaled = LLVMBuildFMul(r->b, part, LLVMConstReal(r->from_type, 0x1p32), "");
  LLVMTypeRef types[] = {s->i32, r->from_type};
  LLVMValueRef digits = tl_session_call_intrinsic(s, r->b, "llvm.fptoui.sat", types, 2, &scaled, 1);
  LLVMValueRef sum = LLVMBuildAdd(r->b, digits, random, "");
  LLVMValueRef carries = LLVMBuildICmp(r->b, LLVMIntULT, sum, random, "");
  return moved_where(r, LLVMBuildOr(r->b, carries, is_past, ""), next, low);
}

static LLVMValueRef rounded_bits(const rounding *r, int mode, LLVMValueRef random) {
  switch (mode) {
    case TL_ROUNDING_AWAY:
      return half_away(r);
    case TL_ROUNDING_ZERO:
      return toward_zero(r);
    case TL_ROUNDING_STOCHASTIC:
      return stochastic(r, random);
    default:
      return up_or_down(r, mode == TL_ROUNDING_UP);
  }
}

void tl_lower_op_CAST_ROUNDED(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0), *random = tl_op_arg(op, TL_GROUP_CAST_ROUNDED_bits);
  tl_value *result = tl_op_result(op, 0);
  int mode = (int)tl_op_int(op, TL_ATTR_ROUNDING, 0);
  tl_dtype from = a->type->dtype, to = result->type->dtype;
  rounding r = {.l = l, .b = l->builder, .from = from, .to = to, .from_type = tl_session_type(l->session, from)};
  r.bits_type = LLVMIntTypeInContext(l->session->context, (unsigned)tl_dtype_bits(to));
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  if (random && tl_lower_len(l, random) > len) len = tl_lower_len(l, random);
  for (int32_t e = 0; e < len; e++) {
    r.x = tl_lower_get(l, a, e);
    r.size = tl_lower_intrinsic1(l, "llvm.fabs", r.x);
    LLVMValueRef bits = random ? tl_lower_get(l, random, e) : NULL;
    out[e] = of_bits(&r, rounded_bits(&r, mode, bits));
  }
  tl_lower_set(l, result, out, len);
}
