// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bits of shadows, the shadow of what its operands decide as a whole, and where it is told of.
#include <stdlib.h>

#include "emulator/retarget/undefined.h"

static bool is_vector(LLVMTypeRef type) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

static unsigned bits_of(LLVMTypeRef shadow) {
  if (is_vector(shadow)) return LLVMGetVectorSize(shadow) * LLVMGetIntTypeWidth(LLVMGetElementType(shadow));
  return LLVMGetIntTypeWidth(shadow);
}

static LLVMValueRef as_integer(undefined *u, LLVMValueRef shadow) {
  LLVMTypeRef type = LLVMTypeOf(shadow);
  if (!is_vector(type)) return shadow;
  return LLVMBuildBitCast(u->builder, shadow, LLVMIntTypeInContext(u->r->context, bits_of(type)), "");
}

LLVMValueRef tl_emu_shadow_any(undefined *u, LLVMValueRef shadow) {
  LLVMTypeRef type = LLVMTypeOf(shadow);
  if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
    LLVMValueRef any = LLVMConstInt(LLVMInt1TypeInContext(u->r->context), 0, 0);
    for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++) {
      LLVMValueRef member = LLVMBuildExtractValue(u->builder, shadow, i, "");
      any = LLVMBuildOr(u->builder, any, tl_emu_shadow_any(u, member), "");
    }
    return any;
  }
  LLVMValueRef all = as_integer(u, shadow);
  return LLVMBuildICmp(u->builder, LLVMIntNE, all, LLVMConstNull(LLVMTypeOf(all)), "");
}

LLVMValueRef tl_emu_shadow_bits(undefined *u, LLVMValueRef shadow) {
  LLVMValueRef all = as_integer(u, shadow);
  unsigned bits = bits_of(LLVMTypeOf(all));
  return bits % 8 ? LLVMBuildZExt(u->builder, all, LLVMIntTypeInContext(u->r->context, (bits + 7) / 8 * 8), "") : all;
}

LLVMValueRef tl_emu_shadow_from_bits(undefined *u, LLVMValueRef bits, LLVMTypeRef type) {
  LLVMTypeRef shadow = tl_emu_shadow_type(u, type);
  if (bits_of(shadow) < bits_of(LLVMTypeOf(bits)))
    bits = LLVMBuildTrunc(u->builder, bits, LLVMIntTypeInContext(u->r->context, bits_of(shadow)), "");
  return LLVMBuildBitCast(u->builder, bits, shadow, "");
}

LLVMValueRef tl_emu_shadow_all_where(undefined *u, LLVMValueRef condition, LLVMTypeRef type) {
  LLVMValueRef all = LLVMBuildSExt(u->builder, condition, LLVMIntTypeInContext(u->r->context, bits_of(type)), "");
  return LLVMBuildBitCast(u->builder, all, type, "");
}

LLVMValueRef tl_emu_shadow_first_origin(undefined *u, const LLVMValueRef *values, unsigned count) {
  LLVMValueRef origin = NULL;
  for (unsigned i = count; i-- > 0;) {
    if (!tl_emu_shadow_find(u, values[i])) continue;
    LLVMValueRef own = tl_emu_shadow_origin(u, values[i]);
    if (origin) {
      LLVMValueRef any = tl_emu_shadow_any(u, tl_emu_shadow_value(u, values[i]));
      own = LLVMBuildSelect(u->builder, any, own, origin, "");
    }
    origin = own;
  }
  return origin ? origin : LLVMConstNull(u->r->i32);
}

LLVMValueRef tl_emu_shadow_origin_of_operands(undefined *u, LLVMValueRef instruction, unsigned count) {
  LLVMValueRef *operands = tl_xmalloc((count + 1) * sizeof *operands);
  for (unsigned k = 0; k < count; k++) operands[k] = LLVMGetOperand(instruction, k);
  LLVMValueRef origin = tl_emu_shadow_first_origin(u, operands, count);
  free(operands);
  return origin;
}

// All members where any operand has a bit.
static LLVMValueRef memberwise(undefined *u, LLVMValueRef i, unsigned num_operands, LLVMTypeRef type) {
  LLVMValueRef any = LLVMConstInt(LLVMInt1TypeInContext(u->r->context), 0, 0), result = LLVMConstNull(type);
  for (unsigned k = 0; k < num_operands; k++) {
    LLVMValueRef operand = LLVMGetOperand(i, k);
    if (!tl_emu_shadow_find(u, operand)) continue;
    LLVMValueRef own = tl_emu_shadow_any(u, tl_emu_shadow_value(u, operand));
    any = LLVMBuildOr(u->builder, any, own, "");
  }
  for (unsigned k = 0; k < LLVMCountStructElementTypes(type); k++) {
    LLVMValueRef member = tl_emu_shadow_all_where(u, any, LLVMStructGetTypeAtIndex(type, k));
    result = LLVMBuildInsertValue(u->builder, result, member, k, "");
  }
  return result;
}

LLVMValueRef tl_emu_shadow_elementwise(undefined *u, LLVMValueRef i, unsigned num_operands) {
  LLVMTypeRef type = tl_emu_shadow_type(u, LLVMTypeOf(i));
  if (LLVMGetTypeKind(type) == LLVMStructTypeKind) return memberwise(u, i, num_operands, type);
  LLVMValueRef undefined_elements = NULL;
  for (unsigned k = 0; k < num_operands; k++) {
    LLVMValueRef operand = LLVMGetOperand(i, k);
    if (!tl_emu_shadow_find(u, operand)) continue;
    LLVMValueRef shadow = tl_emu_shadow_value(u, operand), set;
    LLVMTypeRef from = LLVMTypeOf(shadow);
    bool same =
        is_vector(from) == is_vector(type) && (!is_vector(type) || LLVMGetVectorSize(from) == LLVMGetVectorSize(type));
    if (same) {
      set = LLVMBuildICmp(u->builder, LLVMIntNE, shadow, LLVMConstNull(from), "");
      set = LLVMBuildSExt(u->builder, set, type, "");
    } else {
      set = tl_emu_shadow_all_where(u, tl_emu_shadow_any(u, shadow), type);
    }
    undefined_elements = undefined_elements ? LLVMBuildOr(u->builder, undefined_elements, set, "") : set;
  }
  return undefined_elements ? undefined_elements : LLVMConstNull(type);
}

void tl_emu_shadow_sanitize(undefined *u, LLVMValueRef instruction, LLVMValueRef shadow, LLVMValueRef origin,
                            LLVMValueRef condition, const char *what) {
  retarget *r = u->r;
  LLVMPositionBuilderBefore(u->builder, instruction);
  LLVMValueRef any = tl_emu_shadow_any(u, shadow);
  if (condition) any = LLVMBuildAnd(u->builder, any, condition, "");
  static const char *const names[] = {
      [LLVMStore] = "store",   [LLVMLoad] = "load",        [LLVMBr] = "branch",
      [LLVMSwitch] = "switch", [LLVMAtomicRMW] = "atomic", [LLVMAtomicCmpXchg] = "atomic",
  };
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  const char *name = (size_t)opcode < sizeof names / sizeof names[0] && names[opcode] ? names[opcode] : "operation";
  size_t len;
  if (opcode == LLVMCall) name = LLVMGetValueName2(LLVMGetCalledValue(instruction), &len);
  tl_strbuf op = {0};
  tl_strbuf_append_c(&op, name);
  tl_emu_site site = {.op = tl_strbuf_take(&op),
                      .line = LLVMGetDebugLocLine(instruction),
                      .file = tl_emu_file_of(instruction),
                      .uses = tl_emu_uses_of(instruction),
                      .what = what};
  LLVMValueRef args[] = {LLVMBuildZExt(u->builder, any, r->i32, ""), LLVMConstNull(r->ptr), origin};
  LLVMValueRef call = LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(u->tell), u->tell, args, 3, "");
  tl_vec_push(&r->sites, site);
  tl_vec_push(&r->site_calls, call);
}
