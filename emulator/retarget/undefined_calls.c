// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shadows of calls: device ops and LLVM's own functions.
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/retarget/undefined.h"
#include "emulator/sanitize/sanitize.h"

static const char *name_of(LLVMValueRef call) {
  size_t len;
  return LLVMGetValueName2(LLVMGetCalledValue(call), &len);
}

static const tl_emu_binding *binding_of(LLVMValueRef call) {
  const char *name = name_of(call);
  bool is_llvm = !strncmp(name, "llvm.", 5) && strncmp(name, "llvm.nvvm.", 10) != 0;
  return is_llvm || !strncmp(name, "emu:", 4) ? NULL : tl_emu_find_binding(name);
}

static unsigned num_args(LLVMValueRef call) {
  return LLVMGetNumArgOperands(call);
}

undefined_call_kind tl_emu_shadow_call_kind(LLVMValueRef call) {
  const tl_emu_binding *binding = binding_of(call);
  if (!binding) return !strncmp(name_of(call), "llvm.", 5) ? UNDEFINED_COMPUTES : UNDEFINED_USES;
  tl_emu_op_fn *run = binding->run;
  if (run == tl_emu_op_undefined) return UNDEFINED_SOURCE;
  if (run == tl_emu_op_shuffle) return UNDEFINED_EXCHANGE;
  if (run == tl_emu_op_cvt_pair || run == tl_emu_op_cvt_to_f8) return UNDEFINED_PAIR;
  if (run == tl_emu_op_wgmma_wait) return UNDEFINED_WAIT;
  if (run == tl_emu_op_ptx_arithmetic || run == tl_emu_op_ptx_cvt) return UNDEFINED_COMPUTES;
  if (run == tl_emu_op_approx || run == tl_emu_op_div || run == tl_emu_op_cvt_tf32 || run == tl_emu_op_cvt_from_f8)
    return UNDEFINED_COMPUTES;
  return UNDEFINED_USES;
}

// ---- what comes out

// A number that does not fit is cut to the largest one, which stands for any.
static LLVMValueRef limited(undefined *u, LLVMValueRef number, uint64_t largest) {
  LLVMValueRef limit = LLVMConstInt(u->r->i32, largest, 0);
  LLVMValueRef fits = LLVMBuildICmp(u->builder, LLVMIntULT, number, limit, "");
  return LLVMBuildSelect(u->builder, fits, number, limit, "");
}

static void source(undefined *u, LLVMValueRef call, LLVMValueRef *out_shadow, LLVMValueRef *out_origin) {
  LLVMBuilderRef b = u->builder;
  LLVMTypeRef i32 = u->r->i32;
  *out_shadow = LLVMConstAllOnes(tl_emu_shadow_type(u, LLVMTypeOf(call)));
  LLVMValueRef variable = LLVMBuildAdd(b, LLVMGetOperand(call, 0), LLVMConstInt(i32, 1, 0), "");
  variable = limited(u, variable, TL_EMU_ORIGIN_VARIABLES);
  variable = LLVMBuildShl(b, variable, LLVMConstInt(i32, TL_EMU_ORIGIN_VARIABLE_SHIFT, 0), "");
  LLVMValueRef element = limited(u, LLVMGetOperand(call, 1), TL_EMU_ORIGIN_ELEMENTS);
  LLVMValueRef which = LLVMBuildOr(b, variable, element, "");
  *out_origin = LLVMBuildOr(b, which, u->thread, "");
}

// The same exchange once more, with `value` (i32) for what is exchanged.
static LLVMValueRef exchange_again(undefined *u, LLVMValueRef call, LLVMValueRef value) {
  LLVMValueRef args[4], function = LLVMGetCalledValue(call);
  for (unsigned i = 0; i < 4; i++) args[i] = LLVMGetOperand(call, i);
  args[1] = LLVMBuildBitCast(u->builder, value, LLVMTypeOf(args[1]), "");
  LLVMValueRef again = LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(function), function, args, 4, "");
  tl_emu_mark_shadow(u->r, again);
  LLVMValueRef result = again;
  if (LLVMGetTypeKind(LLVMTypeOf(again)) == LLVMStructTypeKind)
    result = LLVMBuildExtractValue(u->builder, again, 0, "");
  return LLVMBuildBitCast(u->builder, result, u->r->i32, "");
}

static void exchange(undefined *u, LLVMValueRef call, LLVMValueRef *out_shadow, LLVMValueRef *out_origin) {
  LLVMValueRef value = LLVMGetOperand(call, 1);
  LLVMValueRef shadow = tl_emu_shadow_value(u, value), origin = tl_emu_shadow_origin(u, value);
  LLVMValueRef moved = exchange_again(u, call, shadow);
  *out_origin = exchange_again(u, call, origin);
  LLVMTypeRef type = tl_emu_shadow_type(u, LLVMTypeOf(call));
  *out_shadow = LLVMGetTypeKind(type) == LLVMStructTypeKind
                    ? LLVMBuildInsertValue(u->builder, LLVMConstNull(type), moved, 0, "")
                    : moved;
}

// PTX ISA, cvt: the first operand becomes the upper half.
static LLVMValueRef pair(undefined *u, LLVMValueRef call) {
  LLVMBuilderRef b = u->builder;
  LLVMTypeRef type = tl_emu_shadow_type(u, LLVMTypeOf(call));
  bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  unsigned half = is_vector ? LLVMGetIntTypeWidth(LLVMGetElementType(type)) : LLVMGetIntTypeWidth(type) / 2;
  LLVMTypeRef whole = LLVMIntTypeInContext(u->r->context, 2 * half), part = LLVMIntTypeInContext(u->r->context, half);
  LLVMValueRef halves[2];
  for (unsigned i = 0; i < 2; i++) {
    LLVMValueRef any = tl_emu_shadow_any(u, tl_emu_shadow_value(u, LLVMGetOperand(call, i)));
    halves[i] = LLVMBuildZExt(b, LLVMBuildSExt(b, any, part, ""), whole, "");
  }
  LLVMValueRef upper = LLVMBuildShl(b, halves[0], LLVMConstInt(whole, half, 0), "");
  return LLVMBuildBitCast(b, LLVMBuildOr(b, upper, halves[1], ""), type, "");
}

static LLVMValueRef wait(undefined *u, LLVMValueRef call) {
  LLVMTypeRef type = tl_emu_shadow_type(u, LLVMTypeOf(call));
  if (LLVMGetTypeKind(type) != LLVMStructTypeKind) return tl_emu_shadow_value(u, LLVMGetOperand(call, 0));
  LLVMValueRef shadow = LLVMConstNull(type);
  for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++) {
    LLVMValueRef operand = LLVMGetOperand(call, i);
    if (tl_emu_shadow_find(u, operand))
      shadow = LLVMBuildInsertValue(u->builder, shadow, tl_emu_shadow_value(u, operand), i, "");
  }
  return shadow;
}

// The parts of a funnel shift by a constant take its way.
static LLVMValueRef compute(undefined *u, LLVMValueRef call) {
  const char *name = name_of(call);
  bool funnel = !strncmp(name, "llvm.fshl.", 10) || !strncmp(name, "llvm.fshr.", 10);
  if (funnel && LLVMIsConstant(LLVMGetOperand(call, 2))) {
    LLVMValueRef args[] = {tl_emu_shadow_value(u, LLVMGetOperand(call, 0)),
                           tl_emu_shadow_value(u, LLVMGetOperand(call, 1)), LLVMGetOperand(call, 2)};
    LLVMValueRef function = LLVMGetCalledValue(call);
    return LLVMBuildCall2(u->builder, LLVMGlobalGetValueType(function), function, args, 3, "");
  }
  return tl_emu_shadow_elementwise(u, call, num_args(call));
}

void tl_emu_shadow_build_call(undefined *u, LLVMValueRef call, LLVMValueRef *out_shadow, LLVMValueRef *out_origin) {
  switch (tl_emu_shadow_call_kind(call)) {
    case UNDEFINED_SOURCE:
      source(u, call, out_shadow, out_origin);
      return;
    case UNDEFINED_EXCHANGE:
      exchange(u, call, out_shadow, out_origin);
      return;
    case UNDEFINED_PAIR:
      *out_shadow = pair(u, call);
      break;
    case UNDEFINED_WAIT:
      *out_shadow = wait(u, call);
      break;
    case UNDEFINED_COMPUTES:
      *out_shadow = compute(u, call);
      break;
    case UNDEFINED_USES:
      *out_shadow = LLVMConstNull(tl_emu_shadow_type(u, LLVMTypeOf(call)));
      break;
  }
  *out_origin = tl_emu_shadow_origin_of_operands(u, call, num_args(call));
}

// ---- what goes in

// Tells of undefined operands from `from` to `to`, each only where `condition` holds.
static void sanitize_operands(undefined *u, LLVMValueRef call, unsigned from, unsigned to, LLVMValueRef condition) {
  for (unsigned i = from; i < to; i++) {
    LLVMValueRef operand = LLVMGetOperand(call, i);
    if (!tl_emu_shadow_find(u, operand)) continue;
    LLVMValueRef shadow = tl_emu_shadow_value(u, operand), origin = tl_emu_shadow_origin(u, operand);
    tl_emu_shadow_sanitize(u, call, shadow, origin, condition, "hands it to the operation");
  }
}

// Whether the last operand, an i1, says that the operation does something.
static bool is_predicated(const tl_emu_binding *binding) {
  tl_emu_op_fn *run = binding->run;
  return run == tl_emu_op_load_pred || run == tl_emu_op_store_pred || run == tl_emu_op_red_pred ||
         run == tl_emu_op_cp_async_pred;
}

void tl_emu_shadow_sanitize_call(undefined *u, LLVMValueRef call) {
  const tl_emu_binding *binding = binding_of(call);
  unsigned n = num_args(call);
  undefined_call_kind kind = tl_emu_shadow_call_kind(call);
  if (kind == UNDEFINED_EXCHANGE) {
    sanitize_operands(u, call, 0, 1, NULL);
    sanitize_operands(u, call, 2, n, NULL);
    return;
  }
  if (kind != UNDEFINED_USES || !strncmp(name_of(call), "emu:", 4)) return;
  if (binding && is_predicated(binding)) {
    sanitize_operands(u, call, n - 1, n, NULL);
    sanitize_operands(u, call, 0, n - 1, LLVMGetOperand(call, n - 1));
  } else if (binding && binding->run == tl_emu_op_wgmma) {
    // The last operand says whether the old sums count.
    LLVMTypeRef result = LLVMTypeOf(call);
    unsigned sums = LLVMGetTypeKind(result) == LLVMStructTypeKind ? LLVMCountStructElementTypes(result) : 1;
    sanitize_operands(u, call, sums, n, NULL);
    sanitize_operands(u, call, 0, sums, LLVMGetOperand(call, n - 1));
  } else {
    sanitize_operands(u, call, 0, n, NULL);
  }
}
