// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions that LLVM's optimiser makes and that its NVPTX backend gets wrong, written in another way: behind the
// optimiser and before the emulator and the code generator. Which they are: constructs.def.
#include "llvm_backend/output/constructs.h"

// `type` with another element type, as a vector of the same length where it is one.
static LLVMTypeRef with_element(LLVMTypeRef type, LLVMTypeRef element) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(type)) : element;
}

static LLVMTypeRef element_of(LLVMTypeRef type) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static LLVMValueRef splat(LLVMTypeRef type, LLVMValueRef element) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return element;
  LLVMValueRef items[16];
  unsigned n = LLVMGetVectorSize(type);
  if (n > 16) return NULL;
  for (unsigned i = 0; i < n; i++) items[i] = element;
  return LLVMConstVector(items, n);
}

static void replace(LLVMValueRef instruction, LLVMValueRef by) {
  LLVMReplaceAllUsesWith(instruction, by);
  LLVMInstructionEraseFromParent(instruction);
}

// A truth value as a number of 16 bits is a choice.
static void convert_bool(const tl_session *s, LLVMBuilderRef b, LLVMValueRef i) {
  LLVMTypeRef type = LLVMTypeOf(i), element = element_of(type);
  LLVMValueRef operand = LLVMGetOperand(i, 0);
  if (element_of(LLVMTypeOf(operand)) != s->i1 || (element != s->f16 && element != s->bf16)) return;
  LLVMValueRef one = splat(type, LLVMConstReal(element, LLVMIsASIToFPInst(i) ? -1.0 : 1.0));
  if (one) replace(i, LLVMBuildSelect(b, operand, one, LLVMConstNull(type), ""));
}

// The f32 of a bf16, by its bits: an extension would be taken away again.
static LLVMValueRef as_f32(const tl_session *s, LLVMBuilderRef b, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x), i32 = with_element(type, s->i32);
  LLVMValueRef bits = LLVMBuildZExt(b, LLVMBuildBitCast(b, x, with_element(type, s->i16), ""), i32, "");
  LLVMValueRef sixteen = splat(i32, tl_session_i32(s, 16));
  return LLVMBuildBitCast(b, LLVMBuildShl(b, bits, sixteen, ""), with_element(type, s->f32), "");
}

// Where denormals are flushed LLVM 22 selects setp.ftz.bf16, which PTX does not have (PTX ISA, setp.bf16: no .ftz):
// such comparisons, which its optimiser makes of those in f32 too, are done in f32.
static void widen_comparison(const tl_session *s, LLVMBuilderRef b, LLVMValueRef i) {
  LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, 0));
  if (element_of(type) != s->bf16 || !splat(type, LLVMConstNull(s->bf16))) return;
  LLVMValueRef left = as_f32(s, b, LLVMGetOperand(i, 0)), right = as_f32(s, b, LLVMGetOperand(i, 1));
  replace(i, LLVMBuildFCmp(b, LLVMGetFCmpPredicate(i), left, right, ""));
}

// ---- products and sums that may become one instruction

static bool contracts(LLVMValueRef value) {
  return LLVMIsAInstruction(value) && LLVMCanValueUseFastMathFlags(value) &&
         (LLVMGetFastMathFlags(value) & LLVMFastMathAllowContract);
}

static bool is_product(LLVMValueRef value) {
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMFMul && contracts(value);
}

static unsigned count_uses(LLVMValueRef value) {
  unsigned n = 0;
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) n++;
  return n;
}

// The code generator fuses a product and a sum that permit it; the emulator would not. So it is done here, as the code
// generator does: of two products the one with fewer uses, the first of equals.
static void fuse(const tl_session *s, LLVMBuilderRef b, LLVMValueRef i) {
  LLVMTypeRef type = LLVMTypeOf(i);
  if ((type != s->f32 && type != s->f64) || !contracts(i)) return;
  bool is_sub = LLVMGetInstructionOpcode(i) == LLVMFSub;
  LLVMValueRef left = LLVMGetOperand(i, 0), right = LLVMGetOperand(i, 1);
  bool takes_left = is_product(left);
  if (takes_left && is_product(right) && count_uses(left) > count_uses(right)) takes_left = false;
  if (!takes_left && !is_product(right)) return;
  LLVMValueRef product = takes_left ? left : right, other = takes_left ? right : left;
  LLVMValueRef args[] = {LLVMGetOperand(product, 0), LLVMGetOperand(product, 1), other};
  if (is_sub && takes_left) args[2] = LLVMBuildFNeg(b, args[2], "");
  if (is_sub && !takes_left) args[0] = LLVMBuildFNeg(b, args[0], "");
  LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)));
  LLVMValueRef fma = LLVMGetIntrinsicDeclaration(module, LLVMLookupIntrinsicID("llvm.fma", 8), &type, 1);
  LLVMValueRef fused = LLVMBuildCall2(b, LLVMGlobalGetValueType(fma), fma, args, 3, "");
  LLVMSetFastMathFlags(fused, LLVMGetFastMathFlags(i));
  replace(i, fused);
  if (!LLVMGetFirstUse(product)) LLVMInstructionEraseFromParent(product);
}

static void legalise_instruction(const tl_session *s, LLVMBuilderRef b, LLVMValueRef i, bool flushes) {
  LLVMPositionBuilderBefore(b, i);
  switch (LLVMGetInstructionOpcode(i)) {
    case LLVMUIToFP:
    case LLVMSIToFP:
      convert_bool(s, b, i);
      return;
    case LLVMFCmp:
      if (flushes) widen_comparison(s, b, i);
      return;
    case LLVMShl:
      if (tl_backend_shifts_to_sign(i)) LLVMSetNSW(i, 0);
      return;
    case LLVMLoad:
      if (tl_backend_claims_too_much(i)) LLVMSetAlignment(i, tl_backend_read_alignment(i));
      return;
    case LLVMFAdd:
    case LLVMFSub:
      fuse(s, b, i);
      return;
    default:
      return;
  }
}

void tl_backend_legalise(tl_session *session, LLVMModuleRef module) {
  LLVMBuilderRef b = LLVMCreateBuilderInContext(session->context);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    bool flushes = LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, "denormal-fp-math-f32", 20) != NULL;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        legalise_instruction(session, b, i, flushes);
      }
  }
  LLVMDisposeBuilder(b);
}
