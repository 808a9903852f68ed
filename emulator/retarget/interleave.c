// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where threads take turns: in every loop now and then, and, by chance, before accesses through which threads meet.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/retarget/retarget.h"
#include "emulator/retarget/retarget_cfg.h"

static LLVMValueRef counter_place(retarget *r, LLVMValueRef machine, size_t member) {
  LLVMValueRef offset = LLVMConstInt(r->i64, member, 0);
  return LLVMBuildGEP2(r->builder, r->i8, machine, &offset, 1, "");
}

// A function that is inlined where it is called: counts `member` of the machine down, and calls `slow` at zero, with
// what it was called with behind the machine.
static LLVMValueRef define_countdown(retarget *r, const char *name, LLVMTypeRef type, size_t member,
                                     const char *slow_name) {
  LLVMValueRef function = LLVMAddFunction(r->module, name, type);
  LLVMSetLinkage(function, LLVMInternalLinkage);
  unsigned inlined = LLVMGetEnumAttributeKindForName("alwaysinline", strlen("alwaysinline"));
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(r->context, inlined, 0));
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(r->context, function, "entry");
  LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(r->context, function, "slow");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(r->context, function, "done");
  LLVMBuilderRef b = r->builder;
  LLVMPositionBuilderAtEnd(b, entry);
  LLVMValueRef place = counter_place(r, LLVMGetParam(function, 0), member);
  LLVMValueRef left = LLVMBuildSub(b, LLVMBuildLoad2(b, r->i32, place, ""), LLVMConstInt(r->i32, 1, 0), "");
  LLVMBuildStore(b, left, place);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, left, LLVMConstNull(r->i32), ""), slow, done);
  LLVMPositionBuilderAtEnd(b, slow);
  unsigned rest = LLVMCountParams(function) - 1;
  LLVMValueRef site = rest ? LLVMGetParam(function, 1) : NULL;
  LLVMTypeRef slow_type = LLVMFunctionType(r->void_type, &r->ptr, rest, 0);
  LLVMBuildCall2(b, slow_type, LLVMAddFunction(r->module, slow_name, slow_type), &site, rest, "");
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  LLVMBuildRetVoid(b);
  return function;
}

void tl_emu_define_turns(retarget *r) {
  LLVMTypeRef pointers[] = {r->ptr, r->ptr};
  r->poll_type = LLVMFunctionType(r->void_type, pointers, 2, 0);
  r->meet_type = LLVMFunctionType(r->void_type, pointers, 1, 0);
  r->poll_function = define_countdown(r, "emu.poll", r->poll_type, offsetof(tl_emu_context, budget), "emu:poll");
  r->meet_function =
      define_countdown(r, "emu.meet", r->meet_type, offsetof(tl_emu_context, meetings), "emu:interleave");
}

// The line of a loop: the first that its header, or what is behind it, has.
static LLVMValueRef find_located(LLVMBasicBlockRef header) {
  for (LLVMValueRef i = LLVMGetFirstInstruction(header); i; i = LLVMGetNextInstruction(i))
    if (LLVMGetDebugLocLine(i)) return i;
  LLVMValueRef end = LLVMGetBasicBlockTerminator(header);
  for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
    for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetSuccessor(end, s)); i; i = LLVMGetNextInstruction(i))
      if (LLVMGetDebugLocLine(i)) return i;
  return LLVMGetFirstInstruction(header);
}

void tl_emu_poll_in_loops(retarget *r, LLVMValueRef function) {
  size_t num_headers;
  LLVMBasicBlockRef *headers = tl_emu_find_loop_headers(function, &num_headers);
  for (size_t i = 0; i < num_headers; i++) {
    LLVMValueRef first = LLVMGetFirstInstruction(headers[i]);
    while (LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
    LLVMValueRef located = find_located(headers[i]);
    tl_strbuf name = {0};
    tl_strbuf_append_c(&name, "loop");
    tl_emu_site site = {.op = tl_strbuf_take(&name),
                        .line = LLVMGetDebugLocLine(located),
                        .file = tl_emu_file_of(located),
                        .uses = tl_emu_uses_of(located)};
    LLVMPositionBuilderBefore(r->builder, first);
    LLVMValueRef operands[] = {r->machine, LLVMConstNull(r->ptr)};
    tl_vec_push(&r->sites, site);
    tl_vec_push(&r->site_calls, LLVMBuildCall2(r->builder, r->poll_type, r->poll_function, operands, 2, ""));
  }
  free(headers);
}

static bool is_ordered_or_volatile(LLVMValueRef instruction) {
  return LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic || LLVMGetVolatile(instruction);
}

// Loops around an atomic mostly wait for another thread: it gets its turn sooner.
static void spend_budget(retarget *r) {
  enum { COST = 31 };
  LLVMValueRef place = counter_place(r, r->machine, offsetof(tl_emu_context, budget));
  LLVMValueRef left = LLVMBuildLoad2(r->builder, r->i32, place, "");
  LLVMBuildStore(r->builder, LLVMBuildSub(r->builder, left, LLVMConstInt(r->i32, COST, 0), ""), place);
}

static bool meets_in_op(LLVMValueRef call) {
  LLVMValueRef callee = LLVMGetCalledValue(call);
  if (!LLVMIsAFunction(callee)) return false;
  size_t len;
  const tl_emu_binding *binding = tl_emu_find_binding(LLVMGetValueName2(callee, &len));
  return binding && (binding->run == tl_emu_op_load_part || binding->run == tl_emu_op_cas_part ||
                     binding->run == tl_emu_op_red_pred);
}

void tl_emu_let_threads_meet(retarget *r, LLVMValueRef instruction) {
  bool waits = true, meets = false;
  switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
      meets = true;
      break;
    case LLVMLoad:
      meets = is_ordered_or_volatile(instruction);
      break;
    case LLVMStore:
      meets = is_ordered_or_volatile(instruction);
      waits = false;
      break;
    case LLVMCall:
      meets = meets_in_op(instruction);
      break;
    default:
      break;
  }
  if (!meets) return;
  LLVMPositionBuilderBefore(r->builder, instruction);
  if (waits) spend_budget(r);
  LLVMBuildCall2(r->builder, r->meet_type, r->meet_function, &r->machine, 1, "");
}
