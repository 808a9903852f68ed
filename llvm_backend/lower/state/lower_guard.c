// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks that the families of the lowering surround code with: guards, stretches of groups, loops to unroll.
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "llvm_backend/lower/state/lower.h"

tl_guard tl_lower_guard_begin(tl_lower *l, LLVMValueRef condition) {
  tl_guard guard = {0};
  if (!condition) return guard;
  guard.from = LLVMGetInsertBlock(l->builder);
  guard.then = tl_lower_new_block(l);
  guard.after = tl_lower_new_block(l);
  LLVMBuildCondBr(l->builder, condition, guard.then, guard.after);
  LLVMPositionBuilderAtEnd(l->builder, guard.then);
  return guard;
}

void tl_lower_guard_end(tl_lower *l, tl_guard *guard) {
  if (!guard->after) return;
  guard->then = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, guard->after);
  LLVMPositionBuilderAtEnd(l->builder, guard->after);
}

LLVMValueRef tl_lower_guard_phi(tl_lower *l, const tl_guard *guard, LLVMValueRef value, LLVMValueRef otherwise) {
  if (!guard->after) return value;
  LLVMValueRef phi = LLVMBuildPhi(l->builder, LLVMTypeOf(value), "");
  LLVMValueRef values[] = {value, otherwise};
  LLVMBasicBlockRef blocks[] = {guard->then, guard->from};
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}

// Splits the current block so that `hoist` can add values in front of everything that follows.
void tl_lower_begin_groups(tl_lower *l) {
  LLVMBasicBlockRef next = tl_lower_new_block(l);
  LLVMValueRef branch = LLVMBuildBr(l->builder, next);
  l->hoist = LLVMCreateBuilderInContext(l->session->context);
  LLVMPositionBuilderBefore(l->hoist, branch);
  LLVMPositionBuilderAtEnd(l->builder, next);
}

void tl_lower_end_groups(tl_lower *l) {
  LLVMDisposeBuilder(l->hoist);
  l->hoist = NULL;
}

static LLVMMetadataRef unroll_entry(tl_lower *l, const char *name, int64_t count) {
  LLVMContextRef c = l->session->context;
  LLVMMetadataRef parts[2] = {LLVMMDStringInContext2(c, name, strlen(name))};
  if (count <= 0) return LLVMMDNodeInContext2(c, parts, 1);
  parts[1] = LLVMValueAsMetadata(tl_session_i32(l->session, count));
  return LLVMMDNodeInContext2(c, parts, 2);
}

void tl_lower_set_unroll(tl_lower *l, LLVMValueRef branch, int64_t unroll) {
  LLVMContextRef c = l->session->context;
  LLVMMetadataRef entry = unroll == 0    ? unroll_entry(l, "llvm.loop.unroll.disable", 0)
                          : unroll == -1 ? unroll_entry(l, "llvm.loop.unroll.full", 0)
                                         : unroll_entry(l, "llvm.loop.unroll.count", unroll);
  // The first operand of loop metadata is the node itself.
  LLVMMetadataRef placeholder = LLVMTemporaryMDNode(c, NULL, 0);
  LLVMMetadataRef parts[] = {placeholder, entry};
  LLVMMetadataRef node = LLVMMDNodeInContext2(c, parts, 2);
  LLVMMetadataReplaceAllUsesWith(placeholder, node);
  unsigned kind = LLVMGetMDKindIDInContext(c, "llvm.loop", 9);
  LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(c, node));
}
