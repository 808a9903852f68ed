// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic updates that the target has no instruction for, as loops around a compare-and-swap: what the code generator
// would expand (and gets wrong for 16-bit floats) is written out here, so that the emulator runs it too. All of it is
// relaxed.
//
// Elements of 32 and 64 bits exchange themselves. Narrower ones exchange the aligned word that they lie in: the other
// bytes of the word may change at any time, which costs a further iteration of the loop. Two of 16 bits exchange the
// word that they are.
#include "llvm_backend/lower/memory/lower_atomic.h"

typedef struct cas_loop {
  tl_lower *l;
  const tl_atomic_update *update;
  LLVMTypeRef bits, type;          // an element, as an integer and as it is computed with
  bool is_part;                    // it is narrower than a word
  LLVMValueRef word, shift, mask;  // of an element that is
} cas_loop;

static cas_loop prepare(tl_lower *l, const tl_atomic_update *update) {
  tl_session *s = l->session;
  LLVMBuilderRef b = l->builder;
  bool is_pair = LLVMGetTypeKind(LLVMTypeOf(update->value)) == LLVMVectorTypeKind;
  unsigned bits = (unsigned)tl_dtype_bits(update->buffer->dtype) * (is_pair ? 2 : 1);
  cas_loop c = {.l = l,
                .update = update,
                .bits = LLVMIntTypeInContext(s->context, bits),
                .type = is_pair ? LLVMTypeOf(update->value) : tl_session_type(s, update->buffer->dtype),
                .is_part = bits < 32};
  if (!c.is_part) return c;
  LLVMValueRef address = LLVMBuildTrunc(b, LLVMBuildPtrToInt(b, update->pointer, s->i64, ""), s->i32, "");
  LLVMValueRef byte = LLVMBuildAnd(b, address, tl_session_i32(s, 3), "");
  LLVMValueRef back = LLVMBuildNeg(b, LLVMBuildZExt(b, byte, s->i64, ""), "");
  c.word = LLVMBuildGEP2(b, s->i8, update->pointer, &back, 1, "");
  c.shift = LLVMBuildShl(b, byte, tl_session_i32(s, 3), "");
  c.mask = LLVMBuildShl(b, tl_session_i32(s, (INT64_C(1) << bits) - 1), c.shift, "");
  return c;
}

static tl_device_op_id part_op(const cas_loop *c, tl_device_op_id global, tl_device_op_id shared) {
  return c->update->buffer->scope == TL_SCOPE_SHARED ? shared : global;
}

// The memory that is exchanged: the element's bits, or the word around them.
static LLVMValueRef load(const cas_loop *c) {
  tl_session *s = c->l->session;
  LLVMBuilderRef b = c->l->builder;
  if (c->is_part) {
    LLVMValueRef args[] = {c->word, c->mask};
    return tl_session_call_device(s, b, part_op(c, TL_DEVOP_LD_PART_GLOBAL, TL_DEVOP_LD_PART_SHARED), args, 2);
  }
  LLVMValueRef loaded = LLVMBuildLoad2(b, c->bits, c->update->pointer, "");
  LLVMSetAlignment(loaded, LLVMGetIntTypeWidth(c->bits) / 8);
  LLVMSetOrdering(loaded, LLVMAtomicOrderingMonotonic);
  LLVMSetAtomicSyncScopeID(loaded, tl_lower_sync_scope(c->l, c->update->buffer));
  return loaded;
}

// What the memory held; it holds `desired` if that was `expected`.
static LLVMValueRef exchange(const cas_loop *c, LLVMValueRef expected, LLVMValueRef desired) {
  tl_session *s = c->l->session;
  LLVMBuilderRef b = c->l->builder;
  if (c->is_part) {
    LLVMValueRef args[] = {c->word, expected, desired, c->mask};
    return tl_session_call_device(s, b, part_op(c, TL_DEVOP_CAS_PART_GLOBAL, TL_DEVOP_CAS_PART_SHARED), args, 4);
  }
  return tl_lower_compare_exchange(c->l, c->update, expected, desired);
}

static LLVMValueRef element_of(const cas_loop *c, LLVMValueRef memory) {
  LLVMBuilderRef b = c->l->builder;
  return c->is_part ? LLVMBuildTrunc(b, LLVMBuildLShr(b, memory, c->shift, ""), c->bits, "") : memory;
}

static LLVMValueRef with_element(const cas_loop *c, LLVMValueRef memory, LLVMValueRef element) {
  if (!c->is_part) return element;
  LLVMBuilderRef b = c->l->builder;
  LLVMValueRef others = LLVMBuildAnd(b, memory, LLVMBuildNot(b, c->mask, ""), "");
  LLVMValueRef placed = LLVMBuildShl(b, LLVMBuildZExt(b, element, c->l->session->i32, ""), c->shift, "");
  return LLVMBuildOr(b, others, placed, "");
}

// The element that replaces `old`.
static LLVMValueRef combine(const cas_loop *c, LLVMValueRef old) {
  tl_lower *l = c->l;
  LLVMBuilderRef b = l->builder;
  LLVMValueRef value = c->update->value;
  switch (c->update->kind) {
    case LLVMAtomicRMWBinOpAdd:
      return LLVMBuildAdd(b, old, value, "");
    case LLVMAtomicRMWBinOpAnd:
      return LLVMBuildAnd(b, old, value, "");
    case LLVMAtomicRMWBinOpOr:
      return LLVMBuildOr(b, old, value, "");
    case LLVMAtomicRMWBinOpXor:
      return LLVMBuildXor(b, old, value, "");
    case LLVMAtomicRMWBinOpMax:
      return tl_lower_intrinsic2(l, "llvm.smax", old, value);
    case LLVMAtomicRMWBinOpMin:
      return tl_lower_intrinsic2(l, "llvm.smin", old, value);
    case LLVMAtomicRMWBinOpUMax:
      return tl_lower_intrinsic2(l, "llvm.umax", old, value);
    case LLVMAtomicRMWBinOpUMin:
      return tl_lower_intrinsic2(l, "llvm.umin", old, value);
    case LLVMAtomicRMWBinOpFAdd:
      return LLVMBuildFAdd(b, old, value, "");
    case LLVMAtomicRMWBinOpFMax:
      return tl_lower_intrinsic2(l, "llvm.maxnum", old, value);
    case LLVMAtomicRMWBinOpFMin:
      return tl_lower_intrinsic2(l, "llvm.minnum", old, value);
    default:  // an exchange
      return value;
  }
}

// The builder goes on behind the loop.
LLVMValueRef tl_lower_atomic_loop(tl_lower *l, const tl_atomic_update *update) {
  LLVMBuilderRef b = l->builder;
  cas_loop c = prepare(l, update);
  LLVMBasicBlockRef loop = tl_lower_new_block(l), swap = tl_lower_new_block(l), done = tl_lower_new_block(l);
  LLVMValueRef first = load(&c);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, loop);
  LLVMPositionBuilderAtEnd(b, loop);
  LLVMValueRef memory = LLVMBuildPhi(b, LLVMTypeOf(first), "");
  LLVMValueRef element = element_of(&c, memory);
  if (update->compare)  // what differs stays as it is
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, element, update->compare, ""), swap, done);
  else
    LLVMBuildBr(b, swap);
  LLVMPositionBuilderAtEnd(b, swap);
  LLVMValueRef old = LLVMBuildBitCast(b, element, c.type, "");
  LLVMValueRef made = update->is_bits ? update->value : LLVMBuildBitCast(b, combine(&c, old), c.bits, "");
  LLVMValueRef seen = exchange(&c, memory, with_element(&c, memory, made));
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, seen, memory, ""), done, loop);
  LLVMValueRef values[] = {first, seen};
  LLVMBasicBlockRef blocks[] = {before, swap};
  LLVMAddIncoming(memory, values, blocks, 2);
  LLVMPositionBuilderAtEnd(b, done);
  return update->is_bits ? element : LLVMBuildBitCast(b, element, c.type, "");
}
