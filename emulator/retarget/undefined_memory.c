// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shadows of memory: of variables of a thread in variables beside them, of shared memory in the runtime
// (sanitize_undefined.c).
#include <string.h>

#include "emulator/retarget/undefined.h"

enum { ORIGIN_BYTES = 4, BUFFER_BYTES = 64 };

static LLVMValueRef entry_alloca(undefined *u, uint64_t bytes) {
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(u->function);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(u->r->context);
  LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
  LLVMValueRef made = LLVMBuildAlloca(b, LLVMArrayType2(u->r->i8, bytes), "");
  LLVMSetAlignment(made, 16);
  LLVMDisposeBuilder(b);
  return made;
}

void tl_emu_shadow_make_memory(undefined *u, LLVMValueRef variable, undefined_value *entry) {
  retarget *r = u->r;
  uint64_t bytes = LLVMABISizeOfType(r->layout, LLVMGetAllocatedType(variable));
  LLVMValueRef count = LLVMGetOperand(variable, 0);
  if (LLVMIsAConstantInt(count)) bytes *= LLVMConstIntGetZExtValue(count);
  entry->shadow = entry_alloca(u, bytes);
  entry->origin = entry_alloca(u, ORIGIN_BYTES * bytes);
  // Everything counts as defined but for what says otherwise.
  LLVMPositionBuilderBefore(u->builder, LLVMGetNextInstruction(variable));
  LLVMBuildMemSet(u->builder, entry->shadow, LLVMConstNull(r->i8), LLVMConstInt(r->i64, bytes, 0), 1);
}

// Where in shadow and origin memory `pointer`, into the variable, is.
typedef struct shadow_place {
  LLVMValueRef shadow, origin;
} shadow_place;

static shadow_place place_of(undefined *u, LLVMValueRef pointer, LLVMValueRef variable) {
  retarget *r = u->r;
  const undefined_value *entry = tl_emu_shadow_find_variable(u, variable);
  LLVMValueRef at = LLVMBuildPtrToInt(u->builder, pointer, r->i64, "");
  LLVMValueRef start = LLVMBuildPtrToInt(u->builder, variable, r->i64, "");
  LLVMValueRef offset = LLVMBuildSub(u->builder, at, start, "");
  shadow_place place;
  place.shadow = LLVMBuildGEP2(u->builder, r->i8, entry->shadow, &offset, 1, "");
  place.origin = LLVMBuildGEP2(u->builder, r->i32, entry->origin, &offset, 1, "");
  return place;
}

static LLVMValueRef load_integer(undefined *u, LLVMValueRef from, uint64_t bytes) {
  LLVMValueRef loaded =
      LLVMBuildLoad2(u->builder, LLVMIntTypeInContext(u->r->context, (unsigned)(8 * bytes)), from, "");
  LLVMSetAlignment(loaded, 1);
  return loaded;
}

static LLVMValueRef origin_at(undefined *u, LLVMValueRef origins, uint64_t byte) {
  LLVMValueRef offset = LLVMConstInt(u->r->i64, byte, 0);
  return LLVMBuildGEP2(u->builder, u->r->i32, origins, &offset, 1, "");
}

// That of the first byte with a bit set.
static LLVMValueRef load_origin(undefined *u, LLVMValueRef origins, LLVMValueRef bits, uint64_t bytes) {
  LLVMValueRef origin = LLVMConstNull(u->r->i32);
  for (uint64_t at = bytes; at-- > 0;) {
    LLVMValueRef own = LLVMBuildLoad2(u->builder, u->r->i32, origin_at(u, origins, at), "");
    LLVMValueRef byte = LLVMBuildLShr(u->builder, bits, LLVMConstInt(LLVMTypeOf(bits), 8 * at, 0), "");
    byte = LLVMBuildIntCast2(u->builder, byte, u->r->i8, 0, "");
    LLVMValueRef set = LLVMBuildICmp(u->builder, LLVMIntNE, byte, LLVMConstNull(u->r->i8), "");
    origin = LLVMBuildSelect(u->builder, set, own, origin, "");
  }
  return origin;
}

// Memory for the shadow of one access, and the pointer as the runtime takes it.
static LLVMValueRef buffer_of(undefined *u) {
  if (!u->buffer) u->buffer = entry_alloca(u, BUFFER_BYTES);
  return u->buffer;
}

void tl_emu_shadow_load(undefined *u, LLVMValueRef load, LLVMValueRef *out_shadow, LLVMValueRef *out_origin) {
  retarget *r = u->r;
  LLVMTypeRef type = LLVMTypeOf(load);
  uint64_t bytes = LLVMStoreSizeOfType(r->layout, type);
  LLVMValueRef pointer = LLVMGetOperand(load, 0), variable = tl_emu_shadow_variable(pointer);
  if (variable) {
    shadow_place place = place_of(u, pointer, variable);
    LLVMValueRef bits = load_integer(u, place.shadow, bytes);
    *out_origin = load_origin(u, place.origin, bits, bytes);
    *out_shadow = tl_emu_shadow_from_bits(u, bits, type);
    return;
  }
  tl_emu_mark_shadow(r, load);
  LLVMValueRef buffer = buffer_of(u);
  LLVMValueRef args[] = {LLVMBuildAddrSpaceCast(u->builder, pointer, r->ptr, ""), buffer,
                         LLVMConstInt(r->i32, bytes, 0)};
  *out_origin = LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(u->load), u->load, args, 3, "");
  *out_shadow = tl_emu_shadow_from_bits(u, load_integer(u, buffer, bytes), type);
}

void tl_emu_shadow_store(undefined *u, LLVMValueRef store) {
  retarget *r = u->r;
  LLVMValueRef value = LLVMGetOperand(store, 0), pointer = LLVMGetOperand(store, 1);
  LLVMValueRef variable = tl_emu_shadow_variable(pointer);
  uint64_t bytes = LLVMStoreSizeOfType(r->layout, LLVMTypeOf(value));
  // The check of the store itself makes shared memory defined.
  if (!variable && !tl_emu_shadow_find(u, value)) return;
  LLVMValueRef shadow = tl_emu_shadow_value(u, value), origin = tl_emu_shadow_origin(u, value);
  LLVMPositionBuilderBefore(u->builder, LLVMGetNextInstruction(store));
  LLVMValueRef bits = tl_emu_shadow_bits(u, shadow);
  if (variable) {
    shadow_place place = place_of(u, pointer, variable);
    LLVMSetAlignment(LLVMBuildStore(u->builder, bits, place.shadow), 1);
    for (uint64_t at = 0; at < bytes; at++) LLVMBuildStore(u->builder, origin, origin_at(u, place.origin, at));
    return;
  }
  LLVMValueRef buffer = buffer_of(u);
  LLVMSetAlignment(LLVMBuildStore(u->builder, bits, buffer), 1);
  LLVMValueRef args[] = {LLVMBuildAddrSpaceCast(u->builder, pointer, r->ptr, ""), buffer,
                         LLVMConstInt(r->i32, bytes, 0), origin};
  LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(u->store), u->store, args, 4, "");
}

bool tl_emu_shadow_is_copy(LLVMValueRef call) {
  return LLVMIsAMemCpyInst(call) || LLVMIsAMemMoveInst(call);
}

void tl_emu_shadow_fill(undefined *u, LLVMValueRef call) {
  retarget *r = u->r;
  LLVMValueRef to = LLVMGetOperand(call, 0), variable = tl_emu_shadow_variable(to);
  if (!variable || !tl_emu_shadow_find_variable(u, variable)) return;
  LLVMPositionBuilderBefore(u->builder, LLVMGetNextInstruction(call));
  LLVMValueRef bytes = LLVMBuildIntCast2(u->builder, LLVMGetOperand(call, 2), r->i64, 0, "");
  shadow_place place = place_of(u, to, variable);
  LLVMValueRef from = tl_emu_shadow_is_copy(call) ? LLVMGetOperand(call, 1) : NULL;
  LLVMValueRef source = from ? tl_emu_shadow_variable(from) : NULL;
  if (!source || !tl_emu_shadow_find_variable(u, source)) {
    LLVMBuildMemSet(u->builder, place.shadow, LLVMConstNull(r->i8), bytes, 1);
    return;
  }
  shadow_place other = place_of(u, from, source);
  LLVMBuildMemMove(u->builder, place.shadow, 1, other.shadow, 1, bytes);
  LLVMValueRef origin_bytes = LLVMBuildMul(u->builder, bytes, LLVMConstInt(r->i64, ORIGIN_BYTES, 0), "");
  LLVMBuildMemMove(u->builder, place.origin, 4, other.origin, 4, origin_bytes);
}
