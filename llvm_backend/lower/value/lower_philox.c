// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Elements that share a counter share the rounds: the optimiser sees that their blocks are the same values.
#include "llvm_backend/lower/state/lower.h"

enum { ROUNDS = 10, WORDS = 4 };

// The lower and upper 32 bits of a 64-bit value.
static void halves(tl_lower *l, LLVMValueRef wide, LLVMValueRef *out_low, LLVMValueRef *out_high) {
  LLVMTypeRef i32 = l->session->i32, i64 = l->session->i64;
  *out_low = LLVMBuildTrunc(l->builder, wide, i32, "");
  LLVMValueRef shifted = LLVMBuildLShr(l->builder, wide, LLVMConstInt(i64, 32, false), "");
  *out_high = LLVMBuildTrunc(l->builder, shifted, i32, "");
}

static void multiply(tl_lower *l, LLVMValueRef a, uint32_t by, LLVMValueRef *out_low, LLVMValueRef *out_high) {
  LLVMTypeRef i64 = l->session->i64;
  LLVMValueRef wide = LLVMBuildZExt(l->builder, a, i64, "");
  halves(l, LLVMBuildMul(l->builder, wide, LLVMConstInt(i64, by, false), ""), out_low, out_high);
}

static LLVMValueRef mixed(tl_lower *l, LLVMValueRef product, LLVMValueRef word, LLVMValueRef key) {
  return LLVMBuildXor(l->builder, LLVMBuildXor(l->builder, product, word, ""), key, "");
}

// The four words of a block in the place of its counter.
static void block_of(tl_lower *l, LLVMValueRef seed, LLVMValueRef words[WORDS]) {
  static const uint32_t multipliers[2] = {0xD2511F53u, 0xCD9E8D57u}, steps[2] = {0x9E3779B9u, 0xBB67AE85u};
  LLVMValueRef keys[2];
  halves(l, seed, &keys[0], &keys[1]);
  for (int round = 0; round < ROUNDS; round++) {
    LLVMValueRef low[2], high[2];
    for (int i = 0; i < 2; i++) multiply(l, words[2 * i], multipliers[i], &low[i], &high[i]);
    words[0] = mixed(l, high[1], words[1], keys[0]);
    words[2] = mixed(l, high[0], words[3], keys[1]);
    words[1] = low[1];
    words[3] = low[0];
    for (int i = 0; i < 2; i++)
      keys[i] = LLVMBuildAdd(l->builder, keys[i], LLVMConstInt(l->session->i32, steps[i], false), "");
  }
}

// The word of the block that the lowest two bits of `number` name.
static LLVMValueRef word_of(tl_lower *l, LLVMValueRef number, LLVMValueRef const words[WORDS]) {
  LLVMValueRef bits[2];
  for (int i = 0; i < 2; i++) {
    LLVMValueRef bit = LLVMBuildAnd(l->builder, number, LLVMConstInt(l->session->i32, 1u << i, false), "");
    bits[i] = LLVMBuildICmp(l->builder, LLVMIntNE, bit, LLVMConstInt(l->session->i32, 0, false), "");
  }
  LLVMValueRef lower = LLVMBuildSelect(l->builder, bits[0], words[1], words[0], "");
  LLVMValueRef upper = LLVMBuildSelect(l->builder, bits[0], words[3], words[2], "");
  return LLVMBuildSelect(l->builder, bits[1], upper, lower, "");
}

void tl_lower_op_PHILOX(tl_lower *l, tl_op *op) {
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = 1;
  for (uint32_t i = 0; i < 4; i++) {
    int32_t own = tl_lower_len(l, tl_op_operand(op, i));
    if (own > len) len = own;
  }
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef args[4], words[WORDS];
    for (uint32_t i = 0; i < 4; i++) args[i] = tl_lower_get(l, tl_op_operand(op, i), e);
    halves(l, args[1], &words[0], &words[1]);
    halves(l, args[3], &words[2], &words[3]);
    block_of(l, args[0], words);
    out[e] = word_of(l, args[2], words);
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}
