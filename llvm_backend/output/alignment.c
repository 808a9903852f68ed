// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM 22's LoadStoreVectorizer, a part of the code generator, makes one vector access of loads that lie beside each
// other, and fills what is missing up to a power of two: three floats at an address that is a multiple of 16 are read
// as four, past the end of a tile or a tensor. It does so only where the first load is aligned to the whole, so no load
// may claim more than what is certainly read with it.
#include <llvm-c/Target.h>
#include <string.h>

#include "llvm_backend/output/constructs.h"

enum { MAX_BYTES = 32, MAX_LOOK = 64 };

typedef struct place {
  LLVMValueRef base;
  int64_t offset;
} place;

static bool is_gep(LLVMValueRef value) {
  if (LLVMIsAInstruction(value)) return LLVMGetInstructionOpcode(value) == LLVMGetElementPtr;
  return LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr;
}

// Without constant offsets, as far as they have one index.
static place place_of(LLVMTargetDataRef layout, LLVMValueRef pointer) {
  place p = {pointer, 0};
  while (is_gep(p.base) && LLVMGetNumOperands(p.base) == 2 && LLVMIsAConstantInt(LLVMGetOperand(p.base, 1))) {
    int64_t size = (int64_t)LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(p.base));
    p.offset += size * LLVMConstIntGetSExtValue(LLVMGetOperand(p.base, 1));
    p.base = LLVMGetOperand(p.base, 0);
  }
  return p;
}

static bool has_attribute(LLVMValueRef function, const char *name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAttributeRef attribute = LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind);
  return attribute && LLVMGetEnumAttributeValue(attribute) == value;
}

// Whether what is read behind the instruction may not be read before it. A store of the thread does not matter: where
// the bytes are read behind it they are there before it, and what a vector holds of them beside its loads nobody uses.
static bool parts(LLVMValueRef i) {
  switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
      return true;
    case LLVMLoad:
      return LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    case LLVMCall: {
      LLVMValueRef callee = LLVMGetCalledValue(i);
      return !LLVMIsAFunction(callee) || !has_attribute(callee, "memory", 0) || !has_attribute(callee, "willreturn", 0);
    }
    default:
      return false;
  }
}

static unsigned element_bytes(LLVMTargetDataRef layout, LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
  return (unsigned)LLVMABISizeOfType(layout, type);
}

typedef struct reader {
  LLVMTargetDataRef layout;
  place first;
  unsigned element, space;
  uint32_t covered;  // a bit for each byte from the first load on
} reader;

static void cover(reader *r, LLVMValueRef load) {
  LLVMTypeRef type = LLVMTypeOf(load);
  LLVMValueRef pointer = LLVMGetOperand(load, 0);
  if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) != r->space || element_bytes(r->layout, type) != r->element)
    return;
  place p = place_of(r->layout, pointer);
  int64_t from = p.offset - r->first.offset, to = from + (int64_t)LLVMStoreSizeOfType(r->layout, type);
  if (p.base != r->first.base) return;
  for (int64_t byte = from < 0 ? 0 : from; byte < to && byte < MAX_BYTES; byte++) r->covered |= UINT32_C(1) << byte;
}

static void look(reader *r, LLVMValueRef load, LLVMValueRef (*next)(LLVMValueRef)) {
  LLVMValueRef i = next(load);
  for (int n = 0; i && n < MAX_LOOK && !parts(i); n++, i = next(i))
    if (LLVMGetInstructionOpcode(i) == LLVMLoad) cover(r, i);
}

unsigned tl_backend_read_alignment(LLVMValueRef load) {
  LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(load)));
  reader r = {.layout = LLVMGetModuleDataLayout(module)};
  LLVMTypeRef type = LLVMTypeOf(load);
  LLVMValueRef pointer = LLVMGetOperand(load, 0);
  r.first = place_of(r.layout, pointer);
  r.element = element_bytes(r.layout, type);
  r.space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  cover(&r, load);
  look(&r, load, LLVMGetPreviousInstruction);
  look(&r, load, LLVMGetNextInstruction);
  unsigned bytes = r.element;
  while (bytes < MAX_BYTES && !(~r.covered & (uint32_t)((UINT64_C(1) << 2 * bytes) - 1))) bytes *= 2;
  return bytes;
}

bool tl_backend_claims_too_much(LLVMValueRef load) {
  if (parts(load)) return false;  // stays as it is
  LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(load)));
  unsigned bytes = (unsigned)LLVMStoreSizeOfType(LLVMGetModuleDataLayout(module), LLVMTypeOf(load));
  unsigned align = LLVMGetAlignment(load);
  bool is_whole = !(bytes & (bytes - 1)) && align <= bytes;
  return !is_whole && align > tl_backend_read_alignment(load);
}
