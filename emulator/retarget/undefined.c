// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values of a module may be undefined, and the walk that builds their shadows and the checks.
#include "emulator/retarget/undefined.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"

// ---- what may be undefined

static bool may_be(const undefined *u, LLVMValueRef value) {
  return tl_emu_shadow_find(u, value) != NULL;
}

static bool operands_may_be(const undefined *u, LLVMValueRef instruction) {
  int n = LLVMGetNumOperands(instruction);
  for (int i = 0; i < n; i++)
    if (may_be(u, LLVMGetOperand(instruction, (unsigned)i))) return true;
  return false;
}

static bool is_local_pointer(LLVMValueRef pointer) {
  return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == LOCAL_SPACE;
}

static bool is_shared_pointer(LLVMValueRef pointer) {
  return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == SHARED_SPACE;
}

// A variable whose content may be; true when that is news.
static bool mark_memory(undefined *u, LLVMValueRef pointer) {
  LLVMValueRef variable = tl_emu_shadow_variable(pointer);
  if (variable) return tl_emu_shadow_add(&u->variables, variable);
  if (is_local_pointer(pointer) && !u->local_may_be) return u->local_may_be = true;
  if (!is_shared_pointer(pointer) || u->shared_may_be) return false;
  return u->shared_may_be = true;
}

static bool memory_may_be(const undefined *u, LLVMValueRef pointer) {
  LLVMValueRef variable = tl_emu_shadow_variable(pointer);
  if (variable) return tl_emu_shadow_find_variable(u, variable) != NULL;
  return is_local_pointer(pointer) || (u->shared_may_be && is_shared_pointer(pointer));
}

// Whether `user` only computes with its operands.
static bool computes(LLVMValueRef user) {
  switch (LLVMGetInstructionOpcode(user)) {
    case LLVMCall:
      return tl_emu_shadow_call_kind(user) == UNDEFINED_COMPUTES || tl_emu_shadow_call_kind(user) == UNDEFINED_PAIR;
    case LLVMStore:
    case LLVMLoad:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMPHI:
    case LLVMBr:
    case LLVMSwitch:
    case LLVMRet:
      return false;
    default:
      return true;
  }
}

static bool chooses(LLVMValueRef user) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(user);
  if (opcode == LLVMSelect) return true;
  LLVMTypeRef type = LLVMTypeOf(user);
  return (opcode == LLVMAnd || opcode == LLVMOr) && LLVMGetTypeKind(type) == LLVMIntegerTypeKind &&
         LLVMGetIntTypeWidth(type) == 1;
}

// Whether what `load` gives may go unused on some path, because a value is chosen later or the optimiser moved it up.
// What a loop carries round is used.
static bool may_go_unused(LLVMValueRef load, LLVMValueRef value, int depth) {
  enum { MAX_DEPTH = 8 };
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (LLVMIsAPHINode(user)) continue;
    if (LLVMGetInstructionParent(user) != LLVMGetInstructionParent(load) || chooses(user)) return true;
    if (depth < MAX_DEPTH && computes(user) && may_go_unused(load, user, depth + 1)) return true;
  }
  return false;
}

static bool look_at_load(undefined *u, LLVMValueRef load) {
  if (may_be(u, load)) return false;
  LLVMValueRef pointer = LLVMGetOperand(load, 0);
  bool is_source = is_shared_pointer(pointer) && !tl_emu_shadow_variable(pointer) &&
                   LLVMGetOrdering(load) == LLVMAtomicOrderingNotAtomic && may_go_unused(load, load, 0);
  if (is_local_pointer(pointer) && LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic) return false;
  return (is_source || memory_may_be(u, pointer)) && tl_emu_shadow_add(&u->values, load);
}

static bool look_at_call(undefined *u, LLVMValueRef call) {
  if (tl_emu_shadow_is_copy(call))
    return memory_may_be(u, LLVMGetOperand(call, 1)) && mark_memory(u, LLVMGetOperand(call, 0));
  undefined_call_kind kind = tl_emu_shadow_call_kind(call);
  if (LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMVoidTypeKind || kind == UNDEFINED_USES) return false;
  return (kind == UNDEFINED_SOURCE || operands_may_be(u, call)) && tl_emu_shadow_add(&u->values, call);
}

// Whether there is news from this instruction.
static bool look_at(undefined *u, LLVMValueRef i) {
  switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAlloca:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
      return false;
    case LLVMStore:
      return may_be(u, LLVMGetOperand(i, 0)) && mark_memory(u, LLVMGetOperand(i, 1));
    case LLVMLoad:
      return look_at_load(u, i);
    case LLVMCall:
      return look_at_call(u, i);
    default:
      return LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind && operands_may_be(u, i) &&
             tl_emu_shadow_add(&u->values, i);
  }
}

static void find_all(undefined *u) {
  for (bool news = true; news;) {
    news = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(u->r->module); f; f = LLVMGetNextFunction(f))
      for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) news |= look_at(u, i);
  }
}

// ---- shadows

// Operands that are defined further down have their shadows built on the way, each behind its own value.
static void build(undefined *u, LLVMValueRef value) {
  LLVMBuilderRef outer = u->builder;
  u->builder = LLVMCreateBuilderInContext(u->r->context);
  LLVMPositionBuilderBefore(u->builder, LLVMGetNextInstruction(value));
  LLVMValueRef shadow, origin;
  tl_emu_shadow_build(u, value, &shadow, &origin);
  LLVMDisposeBuilder(u->builder);
  u->builder = outer;
  undefined_value *entry = tl_emu_shadow_find(u, value);
  entry->shadow = shadow;
  entry->origin = origin;
}

// ---- phis

static void begin_phi(undefined *u, LLVMValueRef phi) {
  undefined_value *entry = tl_emu_shadow_find(u, phi);
  if (!entry) return;
  LLVMPositionBuilderBefore(u->builder, phi);
  entry->shadow = LLVMBuildPhi(u->builder, tl_emu_shadow_type(u, LLVMTypeOf(phi)), "");
  entry->origin = LLVMBuildPhi(u->builder, u->r->i32, "");
}

static void end_phi(undefined *u, LLVMValueRef phi) {
  undefined_value *entry = tl_emu_shadow_find(u, phi);
  if (!entry) return;
  unsigned n = LLVMCountIncoming(phi);
  for (unsigned k = 0; k < n; k++) {
    LLVMValueRef value = LLVMGetIncomingValue(phi, k);
    LLVMBasicBlockRef block = LLVMGetIncomingBlock(phi, k);
    LLVMValueRef shadow = tl_emu_shadow_value(u, value);
    LLVMValueRef origin = tl_emu_shadow_origin(u, value);
    LLVMAddIncoming(entry->shadow, &shadow, &block, 1);
    LLVMAddIncoming(entry->origin, &origin, &block, 1);
  }
}

// ---- what matters

// Tells before `i` when `value`, one of its operands, is undefined.
static void sanitize_operand(undefined *u, LLVMValueRef i, LLVMValueRef value, const char *what) {
  if (!may_be(u, value)) return;
  LLVMValueRef shadow = tl_emu_shadow_value(u, value), origin = tl_emu_shadow_origin(u, value);
  tl_emu_shadow_sanitize(u, i, shadow, origin, NULL, what);
}

static void sanitize_store(undefined *u, LLVMValueRef store) {
  LLVMValueRef pointer = LLVMGetOperand(store, 1);
  sanitize_operand(u, store, pointer, "writes through it");
  if (memory_may_be(u, pointer))
    tl_emu_shadow_store(u, store);
  else
    sanitize_operand(u, store, LLVMGetOperand(store, 0), "stores it");
}

static void check(undefined *u, LLVMValueRef i) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  if (opcode == LLVMLoad) {
    sanitize_operand(u, i, LLVMGetOperand(i, 0), "reads through it");
  } else if (opcode == LLVMStore) {
    sanitize_store(u, i);
  } else if (opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg) {
    for (int k = 0; k < LLVMGetNumOperands(i); k++)
      sanitize_operand(u, i, LLVMGetOperand(i, (unsigned)k), "updates memory with it");
  } else if ((opcode == LLVMBr && LLVMIsConditional(i)) || opcode == LLVMSwitch) {
    sanitize_operand(u, i, opcode == LLVMBr ? LLVMGetCondition(i) : LLVMGetOperand(i, 0), "branches on it");
  } else if (LLVMIsAMemIntrinsic(i)) {
    tl_emu_shadow_fill(u, i);
  } else if (opcode == LLVMCall) {
    tl_emu_shadow_sanitize_call(u, i);
  }
}

// ---- the walk

typedef TL_VEC(LLVMValueRef) instruction_vec;

static void rewrite_function(undefined *u, LLVMValueRef function) {
  instruction_vec all = {0};
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) tl_vec_push(&all, i);
  u->function = function;
  u->buffer = NULL;
  LLVMPositionBuilderBefore(u->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
  u->thread = LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(u->where), u->where, NULL, 0, "");
  for (size_t i = 0; i < all.len; i++) {
    undefined_value *variable = tl_emu_shadow_find_variable(u, all.items[i]);
    if (variable) tl_emu_shadow_make_memory(u, all.items[i], variable);
    if (LLVMIsAPHINode(all.items[i])) begin_phi(u, all.items[i]);
  }
  for (size_t i = 0; i < all.len; i++) {
    tl_emu_shadow_value(u, all.items[i]);
    check(u, all.items[i]);
  }
  for (size_t i = 0; i < all.len; i++)
    if (LLVMIsAPHINode(all.items[i])) end_phi(u, all.items[i]);
  tl_vec_fini(&all);
}

static LLVMValueRef declare(retarget *r, const char *name, LLVMTypeRef result, LLVMTypeRef *params, unsigned n) {
  return LLVMAddFunction(r->module, name, LLVMFunctionType(result, params, n, 0));
}

void tl_emu_follow_undefined(retarget *r) {
  undefined u = {.r = r, .builder = r->builder, .build = build};
  find_all(&u);
  if (!u.values.len && !u.variables.len) return;
  r->follows_undefined = u.shared_may_be;
  LLVMTypeRef tell[] = {r->i32, r->ptr, r->i32}, access[] = {r->ptr, r->ptr, r->i32, r->i32};
  u.tell = declare(r, "emu:undefined", r->void_type, tell, 3);
  u.load = declare(r, "emu:undefined_load", r->i32, access, 3);
  u.store = declare(r, "emu:undefined_store", r->void_type, access, 4);
  u.where = declare(r, "emu:undefined_thread", r->i32, NULL, 0);
  for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f)) rewrite_function(&u, f);
  free(u.values.slots);
  free(u.variables.slots);
}
