// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain accesses of the device module: what happens before them on the host.
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/retarget/retarget.h"
#include "emulator/sanitize/sanitize.h"

enum { GENERIC_SPACE = 0, GLOBAL_SPACE = 1, CONSTANT_SPACE = 4 };

// The pointer operand of a memory access, or -1.
static int pointer_operand(LLVMValueRef instruction) {
  switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
      return 0;
    case LLVMStore:
      return 1;
    default:
      return -1;
  }
}

static LLVMTypeRef accessed_type(LLVMValueRef instruction) {
  switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
      return LLVMTypeOf(instruction);
    case LLVMStore:
      return LLVMTypeOf(LLVMGetOperand(instruction, 0));
    default:
      return LLVMTypeOf(LLVMGetOperand(instruction, 1));
  }
}

// The variable of a thread that `pointer` points into, if that can be seen.
static bool is_local(LLVMValueRef pointer) {
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  if (space == LOCAL_SPACE) return false;  // of PTX: any address
  if (space == CONSTANT_SPACE) return true;
  // Shared variables are constants until the block that computes their addresses was rewritten.
  if (space == SHARED_SPACE) return false;
  while (LLVMIsAInstruction(pointer) && (LLVMGetInstructionOpcode(pointer) == LLVMGetElementPtr ||
                                         LLVMGetInstructionOpcode(pointer) == LLVMAddrSpaceCast))
    pointer = LLVMGetOperand(pointer, 0);
  // An address that is a number, as that of a variable of PTX in global memory, is checked as any other.
  if (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMIntToPtr) return false;
  return LLVMIsAAllocaInst(pointer) || LLVMIsConstant(pointer);
}

// The device faults on an access that is not as aligned as the instruction promises; the host mostly does not mind. The
// low bits that ought to be zero are added at the top of the address: no address has bits there, and the access faults.
static void sanitize_alignment(retarget *r, LLVMValueRef instruction, int index) {
  enum { MAX_ALIGN = 16, MIN_ALIGN = 4, TOP = 60 };  // no instruction accesses more than 16 bytes at once
  LLVMValueRef pointer = LLVMGetOperand(instruction, (unsigned)index);
  uint64_t align = LLVMGetAlignment(instruction);
  if (align > MAX_ALIGN) align = MAX_ALIGN;
  if (align < MIN_ALIGN || LLVMIsAAllocaInst(pointer) || LLVMIsConstant(pointer)) return;
  LLVMPositionBuilderBefore(r->builder, instruction);
  LLVMValueRef low = LLVMBuildAnd(r->builder, LLVMBuildPtrToInt(r->builder, pointer, r->i64, ""),
                                  LLVMConstInt(r->i64, align - 1, 0), "");
  LLVMValueRef top = LLVMBuildShl(r->builder, low, LLVMConstInt(r->i64, TOP, 0), "");
  LLVMSetOperand(instruction, (unsigned)index, LLVMBuildGEP2(r->builder, r->i8, pointer, &top, 1, ""));
}

static bool acquires(LLVMAtomicOrdering order) {
  return order == LLVMAtomicOrderingAcquire || order == LLVMAtomicOrderingAcquireRelease ||
         order == LLVMAtomicOrderingSequentiallyConsistent;
}

static bool releases(LLVMAtomicOrdering order) {
  return order == LLVMAtomicOrderingRelease || order == LLVMAtomicOrderingAcquireRelease ||
         order == LLVMAtomicOrderingSequentiallyConsistent;
}

// Scopes of the host's threads know no blocks: LLVM's names are those of the PTX ISA's .cta and .cluster.
static tl_emu_scope scope_of(const retarget *r, LLVMValueRef instruction) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  bool may_be =
      opcode == LLVMFence || opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg ||
      ((opcode == LLVMLoad || opcode == LLVMStore) && LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic);
  if (!may_be) return TL_EMU_SCOPE_ALL;
  unsigned scope = LLVMGetAtomicSyncScopeID(instruction);
  if (scope == r->narrow_scopes[0]) return TL_EMU_SCOPE_BLOCK;
  return scope == r->narrow_scopes[1] ? TL_EMU_SCOPE_CLUSTER : TL_EMU_SCOPE_ALL;
}

void tl_emu_find_scopes(retarget *r) {
  r->narrow_scopes[0] = LLVMGetSyncScopeID(r->context, "block", strlen("block"));
  r->narrow_scopes[1] = LLVMGetSyncScopeID(r->context, "cluster", strlen("cluster"));
  for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        r->has_narrow |= scope_of(r, i) != TL_EMU_SCOPE_ALL;
}

// Stores of parts of a word: the old value goes nowhere.
static bool sets_bits(LLVMValueRef instruction) {
  if (LLVMGetInstructionOpcode(instruction) != LLVMAtomicRMW || LLVMGetFirstUse(instruction)) return false;
  LLVMAtomicRMWBinOp kind = LLVMGetAtomicRMWBinOp(instruction);
  return kind == LLVMAtomicRMWBinOpAnd || kind == LLVMAtomicRMWBinOpOr || kind == LLVMAtomicRMWBinOpXchg;
}

static const char *fill_site(LLVMValueRef instruction, tl_emu_site *site) {
  LLVMAtomicOrdering order = LLVMAtomicOrderingNotAtomic;
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  order = opcode == LLVMAtomicCmpXchg ? LLVMGetCmpXchgSuccessOrdering(instruction) : LLVMGetOrdering(instruction);
  site->acquires = acquires(order) && opcode != LLVMStore;
  site->releases = releases(order) && opcode != LLVMLoad;
  bool plain = order == LLVMAtomicOrderingNotAtomic;
  switch (opcode) {
    case LLVMLoad:
      site->access = plain ? TL_EMU_READ : TL_EMU_ATOMIC_READ;
      return plain ? "load" : "atomic load";
    case LLVMStore:
      site->access = plain ? TL_EMU_WRITE : TL_EMU_ATOMIC_WRITE;
      return plain ? "store" : "atomic store";
    default:
      site->access = sets_bits(instruction) ? TL_EMU_ATOMIC_WRITE : TL_EMU_ATOMIC;
      return "atomic";
  }
}

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// The store's value goes to memory first, where the check can compare it with what is there.
static LLVMValueRef touch_store(retarget *r, LLVMValueRef store, LLVMValueRef pointer) {
  LLVMValueRef value = LLVMGetOperand(store, 0);
  LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(store));
  if (r->function != function) {
    enum { BUFFER_BYTES = 64 };
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
    LLVMBuilderRef b = LLVMCreateBuilderInContext(r->context);
    LLVMPositionBuilderBefore(b, first);
    r->value_buffer = LLVMBuildAlloca(b, LLVMArrayType2(r->i8, BUFFER_BYTES), "");
    LLVMSetAlignment(r->value_buffer, BUFFER_BYTES);
    LLVMDisposeBuilder(b);
    r->function = function;
  }
  LLVMBuildStore(r->builder, value, r->value_buffer);
  LLVMValueRef operands[] = {pointer, LLVMConstNull(r->ptr), r->value_buffer};
  return LLVMBuildCall2(r->builder, r->touch_store_type, r->touch_store_function, operands, 3, "");
}

void tl_emu_instrument_access(retarget *r, LLVMValueRef instruction) {
  int index = pointer_operand(instruction);
  if (index < 0) return;
  if (!r->checks) {
    sanitize_alignment(r, instruction, index);
    return;
  }
  LLVMValueRef pointer = LLVMGetOperand(instruction, (unsigned)index);
  if (is_local(pointer)) return;
  tl_emu_site site = {.line = LLVMGetDebugLocLine(instruction),
                      .file = tl_emu_file_of(instruction),
                      .uses = tl_emu_uses_of(instruction),
                      .bytes = (uint32_t)LLVMStoreSizeOfType(r->layout, accessed_type(instruction)),
                      .align = LLVMGetAlignment(instruction),
                      .is_followed = tl_emu_has_shadow_mark(r, instruction),
                      .scope = scope_of(r, instruction),
                      .is_local = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == LOCAL_SPACE};
  tl_strbuf op = {0};
  tl_strbuf_append_c(&op, fill_site(instruction, &site));
  site.op = tl_strbuf_take(&op);
  LLVMTypeRef type = LLVMTypeOf(pointer);
  unsigned space = LLVMGetPointerAddressSpace(type);
  uint32_t granule = site.align & -site.align;
  while (site.bytes % granule) granule /= 2;
  if (space != GLOBAL_SPACE && space != LOCAL_SPACE) r->granule = smaller(r->granule, granule);
  if (space == GLOBAL_SPACE || space == GENERIC_SPACE) r->global_granule = smaller(r->global_granule, granule);
  LLVMPositionBuilderBefore(r->builder, instruction);
  LLVMValueRef operands[] = {LLVMBuildAddrSpaceCast(r->builder, pointer, r->ptr, ""), LLVMConstNull(r->ptr)};
  LLVMValueRef made = r->equal_passes && site.access == TL_EMU_WRITE
                          ? touch_store(r, instruction, operands[0])
                          : LLVMBuildCall2(r->builder, r->touch_type, r->touch_function, operands, 2, "");
  tl_vec_push(&r->sites, site);
  tl_vec_push(&r->site_calls, made);
  LLVMSetOperand(instruction, (unsigned)index, LLVMBuildAddrSpaceCast(r->builder, made, type, ""));
  bool observes = r->has_fences && (site.access == TL_EMU_ATOMIC || site.access == TL_EMU_ATOMIC_READ);
  if (!site.acquires && !observes) return;
  LLVMPositionBuilderBefore(r->builder, LLVMGetNextInstruction(instruction));
  LLVMValueRef function = site.acquires ? r->acquired_function : r->observed_function;
  LLVMValueRef args[] = {made, LLVMConstInt(r->i32, site.scope, 0)};
  LLVMBuildCall2(r->builder, r->acquired_type, function, args, 2, "");
}

static bool is_fence(LLVMValueRef instruction) {
  if (LLVMGetInstructionOpcode(instruction) == LLVMFence) return true;
  if (!LLVMIsACallInst(instruction)) return false;
  size_t len;
  const tl_emu_binding *binding = tl_emu_find_binding(LLVMGetValueName2(LLVMGetCalledValue(instruction), &len));
  return binding && binding->run == tl_emu_op_fence;
}

bool tl_emu_has_fences(LLVMModuleRef module) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        if (is_fence(i)) return true;
  return false;
}

void tl_emu_instrument_fence(retarget *r, LLVMValueRef instruction) {
  if (!r->checks || LLVMGetInstructionOpcode(instruction) != LLVMFence) return;
  LLVMAtomicOrdering order = LLVMGetOrdering(instruction);
  unsigned sides = (acquires(order) ? TL_EMU_FENCE_ACQUIRE : 0) | (releases(order) ? TL_EMU_FENCE_RELEASE : 0) |
                   scope_of(r, instruction) * TL_EMU_FENCE_SCOPE;
  LLVMValueRef argument = LLVMConstInt(r->i32, sides, 0);
  LLVMPositionBuilderBefore(r->builder, instruction);
  LLVMBuildCall2(r->builder, LLVMGlobalGetValueType(r->fence_function), r->fence_function, &argument, 1, "");
}

// Atomics on bytes of a word.
static bool is_part(const tl_emu_binding *binding) {
  return binding->run == tl_emu_op_load_part || binding->run == tl_emu_op_cas_part;
}

uint32_t tl_emu_op_global_granule(const tl_emu_binding *binding) {
  enum { WORD = 4 };
  if (binding->run == tl_emu_op_load_pred || binding->run == tl_emu_op_store_pred)
    return (uint32_t)binding->param / 16 * ((uint32_t)binding->param % 16);
  if (binding->run == tl_emu_op_cp_async || is_part(binding)) return tl_emu_op_granule(binding);
  return tl_emu_op_granule(binding) < MAX_GRANULE || strchr(binding->signature, 'g') ? WORD : MAX_GRANULE;
}

uint32_t tl_emu_op_granule(const tl_emu_binding *binding) {
  enum { WORD = 4 };
  if (binding->run == tl_emu_op_cp_async) return (uint32_t)(binding->param & ~TL_EMU_COPY_ZFILL);
  if (is_part(binding)) return 1;
  if (binding->run == tl_emu_op_ldmatrix || binding->run == tl_emu_op_stmatrix) return MAX_GRANULE;
  // Letters that stand for no memory, or for global memory.
  return strspn(binding->signature, "bsilehyfdEYgIL()") < strlen(binding->signature) ? WORD : MAX_GRANULE;
}
