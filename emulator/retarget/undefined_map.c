// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of values and variables: whether they may be undefined, and their shadows, built where they are asked
// for.
#include <stdlib.h>

#include "emulator/retarget/undefined.h"

static size_t slot_of(const undefined_map *map, LLVMValueRef key) {
  size_t at = (size_t)(((uint64_t)(uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20) & (map->capacity - 1);
  while (map->slots[at].key && map->slots[at].key != key) at = (at + 1) & (map->capacity - 1);
  return at;
}

static undefined_value *find(const undefined_map *map, LLVMValueRef key) {
  if (!map->capacity) return NULL;
  undefined_value *slot = &map->slots[slot_of(map, key)];
  return slot->key ? slot : NULL;
}

undefined_value *tl_emu_shadow_find(const undefined *u, LLVMValueRef value) {
  return find(&u->values, value);
}

undefined_value *tl_emu_shadow_find_variable(const undefined *u, LLVMValueRef variable) {
  return find(&u->variables, variable);
}

bool tl_emu_shadow_add(undefined_map *map, LLVMValueRef value) {
  if (find(map, value)) return false;
  if (map->len * 2 >= map->capacity) {
    undefined_map grown = {.capacity = map->capacity ? map->capacity * 2 : 1024, .len = map->len};
    grown.slots = tl_xcalloc(grown.capacity, sizeof *grown.slots);
    for (size_t i = 0; i < map->capacity; i++)
      if (map->slots[i].key) grown.slots[slot_of(&grown, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = grown;
  }
  map->slots[slot_of(map, value)].key = value;
  map->len++;
  return true;
}

LLVMValueRef tl_emu_shadow_variable(LLVMValueRef pointer) {
  enum { MAX_STEPS = 64 };
  for (int i = 0; i < MAX_STEPS && LLVMIsAInstruction(pointer); i++) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(pointer);
    if (opcode == LLVMAlloca) return pointer;
    if (opcode == LLVMGetElementPtr || opcode == LLVMAddrSpaceCast)
      pointer = LLVMGetOperand(pointer, 0);
    else if (opcode == LLVMPHI)
      pointer = LLVMGetIncomingValue(pointer, 0);  // from before the loop: it comes first
    else
      break;
  }
  return NULL;
}

LLVMTypeRef tl_emu_shadow_type(undefined *u, LLVMTypeRef type) {
  LLVMContextRef c = u->r->context;
  switch (LLVMGetTypeKind(type)) {
    case LLVMVectorTypeKind:
      return LLVMVectorType(tl_emu_shadow_type(u, LLVMGetElementType(type)), LLVMGetVectorSize(type));
    case LLVMStructTypeKind: {
      unsigned n = LLVMCountStructElementTypes(type);
      LLVMTypeRef *members = tl_xmalloc((n + 1) * sizeof *members);
      for (unsigned i = 0; i < n; i++) members[i] = tl_emu_shadow_type(u, LLVMStructGetTypeAtIndex(type, i));
      LLVMTypeRef shadow = LLVMStructTypeInContext(c, members, n, 0);
      free(members);
      return shadow;
    }
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
      return LLVMIntTypeInContext(c, 16);
    case LLVMFloatTypeKind:
      return u->r->i32;
    case LLVMDoubleTypeKind:
    case LLVMPointerTypeKind:
      return u->r->i64;
    case LLVMIntegerTypeKind:
      return type;
    default:
      return u->r->i8;  // of labels and metadata: never undefined
  }
}

static undefined_value *built_entry(undefined *u, LLVMValueRef value) {
  undefined_value *entry = tl_emu_shadow_find(u, value);
  if (entry && !entry->shadow) u->build(u, value);
  return entry;
}

LLVMValueRef tl_emu_shadow_value(undefined *u, LLVMValueRef value) {
  undefined_value *entry = built_entry(u, value);
  return entry ? entry->shadow : LLVMConstNull(tl_emu_shadow_type(u, LLVMTypeOf(value)));
}

LLVMValueRef tl_emu_shadow_origin(undefined *u, LLVMValueRef value) {
  undefined_value *entry = built_entry(u, value);
  return entry ? entry->origin : LLVMConstNull(u->r->i32);
}
