// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index arithmetic: i32 where the range of a value provably fits, else i64, so that nothing wraps.
#include "llvm_backend/lower/value/lower_arith.h"

static LLVMValueRef no_wrap(LLVMValueRef value) {
  if (LLVMIsAInstruction(value)) LLVMSetNSW(value, 1);
  return value;
}

// Low bits of an index that are known to be 0.
static unsigned known_zeros(LLVMValueRef value, int steps) {
  if (LLVMIsAConstantInt(value)) {
    unsigned long long bits = LLVMConstIntGetZExtValue(value);
    return bits ? (unsigned)__builtin_ctzll(bits) : 63;
  }
  if (--steps < 0 || !LLVMIsAInstruction(value)) return 0;
  LLVMOpcode code = LLVMGetInstructionOpcode(value);
  if (code != LLVMAdd && code != LLVMMul && code != LLVMShl) return 0;
  unsigned a = known_zeros(LLVMGetOperand(value, 0), steps), b = known_zeros(LLVMGetOperand(value, 1), steps);
  if (code == LLVMAdd) return a < b ? a : b;
  if (code == LLVMMul) return a + b < 63 ? a + b : 63;
  return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) ? (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1))
                                                      : 0;
}

// `value` without the constants that are added in it, and their sum, which goes to `*sum`. Sums within wrap as they
// may.
static LLVMValueRef without_constants(tl_lower *l, LLVMValueRef value, int64_t *sum, int steps) {
  if (--steps < 0 || !LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMAdd) return value;
  LLVMValueRef a = LLVMGetOperand(value, 0), b = LLVMGetOperand(value, 1);
  if (LLVMIsAConstantInt(b)) {
    *sum += LLVMConstIntGetSExtValue(b);
    return without_constants(l, a, sum, steps);
  }
  LLVMValueRef x = without_constants(l, a, sum, steps), y = without_constants(l, b, sum, steps);
  return x == a && y == b ? value : LLVMBuildAdd(l->builder, x, y, "");
}

// (x + c) divided by 2^n, or its remainder, where 2^n divides x: apart for x and c, so that the elements of a group
// differ by constants, or not at all. NULL when a and b are not of that kind. c may stand within x, of an `a` that is
// not negative: then x does not leave the type, either.
static LLVMValueRef divide_apart(tl_lower *l, tl_opcode code, LLVMValueRef a, LLVMValueRef b, bool is_nonnegative) {
  enum { DEPTH = 6 };
  if (!LLVMIsAConstantInt(b) || !LLVMIsAInstruction(a) || LLVMGetInstructionOpcode(a) != LLVMAdd) return NULL;
  int64_t by = LLVMConstIntGetSExtValue(b), constant = 0;
  if (by <= 0 || (by & (by - 1)) != 0) return NULL;
  unsigned n = (unsigned)__builtin_ctzll((unsigned long long)by);
  LLVMValueRef x = LLVMGetOperand(a, 0), last = LLVMGetOperand(a, 1);
  if (LLVMIsAConstantInt(last)) {
    constant = LLVMConstIntGetSExtValue(last);
  } else {
    x = without_constants(l, a, &constant, DEPTH);
    if (x == a || !is_nonnegative || constant < 0) return NULL;
  }
  if (known_zeros(x, DEPTH) < n) return NULL;
  LLVMTypeRef type = LLVMTypeOf(a);
  if (code == TL_OP_MOD) return LLVMConstInt(type, (unsigned long long)(constant & (by - 1)), 1);
  LLVMValueRef quotient = LLVMBuildAShr(l->builder, x, LLVMConstInt(type, n, 0), "");
  return no_wrap(LLVMBuildAdd(l->builder, quotient, LLVMConstInt(type, (unsigned long long)(constant >> n), 1), ""));
}

// Sums and products of indices do not overflow, and what is not negative divides as unsigned.
static LLVMValueRef compute(tl_lower *l, tl_op *op, LLVMValueRef a, LLVMValueRef b, bool nonnegative) {
  bool divides = op->code == TL_OP_FLOORDIV || op->code == TL_OP_MOD;
  LLVMValueRef apart = divides ? divide_apart(l, op->code, a, b, nonnegative) : NULL;
  if (apart) return apart;
  LLVMValueRef result = tl_lower_int_binary(l, op, a, b, !divides || !nonnegative);
  bool can_wrap = op->code == TL_OP_ADD || op->code == TL_OP_SUB || op->code == TL_OP_MUL;
  return can_wrap ? no_wrap(result) : result;
}

void tl_lower_index_binary(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0), *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  LLVMTypeRef type = tl_lower_value_type(l, result);
  bool nonnegative = tl_value_range(a).lo >= 0 && tl_value_range(b).lo > 0;
  int32_t len = tl_lower_len(l, a) > tl_lower_len(l, b) ? tl_lower_len(l, a) : tl_lower_len(l, b);
  LLVMValueRef out[TL_MAX_GROUP];
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x = tl_lower_get(l, a, e), y = tl_lower_get(l, b, e);
    LLVMTypeRef i64 = l->session->i64;
    LLVMTypeRef wide = LLVMTypeOf(x) == i64 || LLVMTypeOf(y) == i64 || type == i64 ? i64 : l->session->i32;
    x = tl_lower_index_as(l, l->builder, x, wide);
    y = tl_lower_index_as(l, l->builder, y, wide);
    out[e] = tl_lower_index_as(l, l->builder, compute(l, op, x, y, nonnegative), type);
  }
  tl_lower_set(l, result, out, len);
}

void tl_lower_op_BLOCK_ID(tl_lower *l, tl_op *op) {
  tl_lower_set_one(l, tl_op_result(op, 0), tl_session_call_device(l->session, l->builder, TL_DEVOP_CTAID_X, NULL, 0));
}
void tl_lower_op_NUM_BLOCKS(tl_lower *l, tl_op *op) {
  tl_lower_set_one(l, tl_op_result(op, 0), tl_session_call_device(l->session, l->builder, TL_DEVOP_NCTAID_X, NULL, 0));
}
void tl_lower_op_THREAD_ID(tl_lower *l, tl_op *op) {
  tl_lower_set_one(l, tl_op_result(op, 0), l->tid);
}
void tl_lower_op_LANE_ID(tl_lower *l, tl_op *op) {
  tl_lower_set_one(l, tl_op_result(op, 0), l->lane);
}
void tl_lower_op_WARP_ID(tl_lower *l, tl_op *op) {
  tl_lower_set_one(l, tl_op_result(op, 0), l->warp);
}
