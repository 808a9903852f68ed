// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shadows of instructions. Moves, logic and shifts are exact to the bit; what a sum or a comparison makes of undefined
// bits is approximated as MemorySanitizer does; arithmetic on floats is undefined as a whole when an operand is.
#include <stdlib.h>

#include "emulator/retarget/undefined.h"

static bool is_vector(LLVMTypeRef type) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

// A bit of `a and b` is defined where both are, or where one is a defined 0; of `a or b` correspondingly with 1.
static LLVMValueRef logic(undefined *u, LLVMValueRef i, bool is_or) {
  LLVMBuilderRef b = u->builder;
  LLVMValueRef left = LLVMGetOperand(i, 0), right = LLVMGetOperand(i, 1);
  LLVMValueRef left_shadow = tl_emu_shadow_value(u, left), right_shadow = tl_emu_shadow_value(u, right);
  if (is_or) {
    left = LLVMBuildNot(b, left, "");
    right = LLVMBuildNot(b, right, "");
  }
  LLVMValueRef both = LLVMBuildAnd(b, left_shadow, right_shadow, "");
  LLVMValueRef by_left = LLVMBuildAnd(b, left, right_shadow, "");
  LLVMValueRef by_right = LLVMBuildAnd(b, left_shadow, right, "");
  return LLVMBuildOr(b, both, LLVMBuildOr(b, by_left, by_right, ""), "");
}

static LLVMValueRef either(undefined *u, LLVMValueRef i) {
  LLVMValueRef left = tl_emu_shadow_value(u, LLVMGetOperand(i, 0));
  LLVMValueRef right = tl_emu_shadow_value(u, LLVMGetOperand(i, 1));
  return LLVMBuildOr(u->builder, left, right, "");
}

static LLVMValueRef shift(undefined *u, LLVMValueRef i, LLVMOpcode opcode) {
  LLVMValueRef amount = LLVMGetOperand(i, 1);
  LLVMValueRef value = tl_emu_shadow_value(u, LLVMGetOperand(i, 0)), by = tl_emu_shadow_value(u, amount);
  LLVMValueRef moved = LLVMBuildBinOp(u->builder, opcode, value, amount, "");
  if (!tl_emu_shadow_find(u, amount)) return moved;
  LLVMValueRef set = LLVMBuildICmp(u->builder, LLVMIntNE, by, LLVMConstNull(LLVMTypeOf(by)), "");
  return LLVMBuildOr(u->builder, moved, LLVMBuildSExt(u->builder, set, LLVMTypeOf(moved), ""), "");
}

// Defined bits that differ decide whether two integers are equal, whatever the others are.
static LLVMValueRef compare(undefined *u, LLVMValueRef i) {
  LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
  LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, 0));
  LLVMTypeKind kind = LLVMGetTypeKind(is_vector(type) ? LLVMGetElementType(type) : type);
  if ((predicate != LLVMIntEQ && predicate != LLVMIntNE) || kind != LLVMIntegerTypeKind)
    return tl_emu_shadow_elementwise(u, i, 2);
  LLVMValueRef any = either(u, i), zero = LLVMConstNull(type);
  LLVMValueRef differ = LLVMBuildXor(u->builder, LLVMGetOperand(i, 0), LLVMGetOperand(i, 1), "");
  differ = LLVMBuildAnd(u->builder, differ, LLVMBuildNot(u->builder, any, ""), "");
  LLVMValueRef open = LLVMBuildICmp(u->builder, LLVMIntEQ, differ, zero, "");
  LLVMValueRef some = LLVMBuildICmp(u->builder, LLVMIntNE, any, zero, "");
  return LLVMBuildAnd(u->builder, open, some, "");
}

// The value's bits as its shadow's type, for values that are no structs.
static LLVMValueRef value_bits(undefined *u, LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value), to = tl_emu_shadow_type(u, type);
  if (LLVMGetTypeKind(is_vector(type) ? LLVMGetElementType(type) : type) == LLVMPointerTypeKind)
    return LLVMBuildPtrToInt(u->builder, value, to, "");
  return LLVMBuildBitCast(u->builder, value, to, "");
}

// With an undefined condition the bits are defined in which both values agree.
static LLVMValueRef choose(undefined *u, LLVMValueRef i) {
  LLVMBuilderRef b = u->builder;
  LLVMValueRef condition = LLVMGetOperand(i, 0), yes = LLVMGetOperand(i, 1), no = LLVMGetOperand(i, 2);
  LLVMValueRef yes_shadow = tl_emu_shadow_value(u, yes), no_shadow = tl_emu_shadow_value(u, no);
  LLVMValueRef chosen = LLVMBuildSelect(b, condition, yes_shadow, no_shadow, "");
  if (!tl_emu_shadow_find(u, condition)) return chosen;
  LLVMValueRef open = tl_emu_shadow_value(u, condition);
  if (LLVMGetTypeKind(LLVMTypeOf(yes)) == LLVMStructTypeKind) return chosen;
  LLVMValueRef yes_bits = value_bits(u, yes), no_bits = value_bits(u, no);
  LLVMValueRef differ = LLVMBuildXor(b, yes_bits, no_bits, "");
  differ = LLVMBuildOr(b, differ, LLVMBuildOr(b, yes_shadow, no_shadow, ""), "");
  return LLVMBuildSelect(b, open, differ, chosen, "");
}

static LLVMValueRef choose_origin(undefined *u, LLVMValueRef i) {
  LLVMValueRef condition = LLVMGetOperand(i, 0);
  if (is_vector(LLVMTypeOf(condition)) || tl_emu_shadow_find(u, condition)) {
    LLVMValueRef all[] = {condition, LLVMGetOperand(i, 1), LLVMGetOperand(i, 2)};
    return tl_emu_shadow_first_origin(u, all, 3);
  }
  LLVMValueRef yes = tl_emu_shadow_origin(u, LLVMGetOperand(i, 1));
  LLVMValueRef no = tl_emu_shadow_origin(u, LLVMGetOperand(i, 2));
  return LLVMBuildSelect(u->builder, condition, yes, no, "");
}

static LLVMValueRef shuffle(undefined *u, LLVMValueRef i) {
  LLVMValueRef left = tl_emu_shadow_value(u, LLVMGetOperand(i, 0));
  LLVMValueRef right = tl_emu_shadow_value(u, LLVMGetOperand(i, 1));
  unsigned n = LLVMGetNumMaskElements(i);
  LLVMValueRef *mask = tl_xmalloc((n + 1) * sizeof *mask);
  for (unsigned k = 0; k < n; k++) {
    int at = LLVMGetMaskValue(i, k);
    mask[k] = LLVMConstInt(u->r->i32, at < 0 ? 0 : (unsigned long long)at, 0);  // elements nobody wants
  }
  LLVMValueRef shuffled = LLVMBuildShuffleVector(u->builder, left, right, LLVMConstVector(mask, n), "");
  free(mask);
  return shuffled;
}

static LLVMValueRef pointer_shadow(undefined *u, LLVMValueRef i) {
  LLVMValueRef any = LLVMConstInt(LLVMInt1TypeInContext(u->r->context), 0, 0);
  int n = LLVMGetNumOperands(i);
  for (int k = 0; k < n; k++) {
    LLVMValueRef shadow = tl_emu_shadow_value(u, LLVMGetOperand(i, (unsigned)k));
    any = LLVMBuildOr(u->builder, any, tl_emu_shadow_any(u, shadow), "");
  }
  return tl_emu_shadow_all_where(u, any, tl_emu_shadow_type(u, LLVMTypeOf(i)));
}

static LLVMValueRef shadow_of(undefined *u, LLVMValueRef i) {
  LLVMBuilderRef b = u->builder;
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  LLVMTypeRef type = tl_emu_shadow_type(u, LLVMTypeOf(i));
  LLVMValueRef first = tl_emu_shadow_value(u, LLVMGetOperand(i, 0));
  switch (opcode) {
    case LLVMAnd:
    case LLVMOr:
      return logic(u, i, opcode == LLVMOr);
    case LLVMXor:
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
      return either(u, i);
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
      return shift(u, i, opcode);
    case LLVMBitCast:
      return LLVMBuildBitCast(b, first, type, "");
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
      return LLVMBuildCast(b, opcode, first, type, "");
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMAddrSpaceCast:
      return LLVMBuildIntCast2(b, first, type, 0, "");
    case LLVMFreeze:
      return first;
    case LLVMICmp:
      return compare(u, i);
    case LLVMSelect:
      return choose(u, i);
    case LLVMGetElementPtr:
      return pointer_shadow(u, i);
    case LLVMExtractElement:
      return LLVMBuildExtractElement(b, first, LLVMGetOperand(i, 1), "");
    case LLVMInsertElement: {
      LLVMValueRef element = tl_emu_shadow_value(u, LLVMGetOperand(i, 1));
      return LLVMBuildInsertElement(b, first, element, LLVMGetOperand(i, 2), "");
    }
    case LLVMShuffleVector:
      return shuffle(u, i);
    case LLVMExtractValue:
      return LLVMBuildExtractValue(b, first, LLVMGetIndices(i)[0], "");
    case LLVMInsertValue: {
      LLVMValueRef member = tl_emu_shadow_value(u, LLVMGetOperand(i, 1));
      return LLVMBuildInsertValue(b, first, member, LLVMGetIndices(i)[0], "");
    }
    default:
      return tl_emu_shadow_elementwise(u, i, (unsigned)LLVMGetNumOperands(i));
  }
}

void tl_emu_shadow_build(undefined *u, LLVMValueRef i, LLVMValueRef *out_shadow, LLVMValueRef *out_origin) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  if (opcode == LLVMLoad) {
    tl_emu_shadow_load(u, i, out_shadow, out_origin);
    return;
  }
  if (opcode == LLVMCall) {
    tl_emu_shadow_build_call(u, i, out_shadow, out_origin);
    return;
  }
  *out_shadow = shadow_of(u, i);
  if (opcode == LLVMSelect) {
    *out_origin = choose_origin(u, i);
    return;
  }
  *out_origin = tl_emu_shadow_origin_of_operands(u, i, (unsigned)LLVMGetNumOperands(i));
}
