// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much code a kernel becomes: a limit, and the effort that LLVM makes for it.
//
// Several of LLVM's passes take time that grows with the square of the branches of a function whose conditions are
// about one value (InstCombine, GVN and EarlyCSE ask every condition above an instruction what it says of it), and the
// thread's and the block's index are in nearly all of them.
#include "llvm_backend/lower/state/lower.h"

enum {
  // Instructions of LLVM IR.
  MAX_CODE = 65536,
  // Marks of elements (lower_elements.c), which only the emulator has, are code too.
  MAX_MARKED_CODE = 4 * MAX_CODE,
  // Beyond one of these LLVM makes the least effort.
  GREAT_CODE = 32768,
  GREAT_BRANCHES = 1536,
};

typedef struct code_size {
  int64_t instructions, branches;  // conditional ones
} code_size;

static code_size measure(LLVMValueRef function) {
  code_size size = {0};
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
      size.instructions++;
      size.branches += LLVMIsABranchInst(i) && LLVMIsConditional(i);
    }
  }
  return size;
}

// Whether the code is too much, which is reported at `op`.
static bool is_too_much(tl_lower *l, const tl_op *op, const code_size *size) {
  int64_t limit = l->marks_elements ? MAX_MARKED_CODE : MAX_CODE;
  if (size->instructions <= limit) return false;
  l->reported = true;
  tl_diag_report(l->diags, TL_DIAG_CODE_LIMIT, op->loc,
                 "up to here one thread has %lld instructions, the limit is %lld", (long long)size->instructions,
                 (long long)limit);
  return true;
}

void tl_lower_watch_size(tl_lower *l, const tl_op *op) {
  if (++l->lowered_ops < l->measure_at) return;
  code_size size = measure(l->function);
  // Again when there may be half as much more: all measurements together are linear.
  l->measure_at = l->lowered_ops + l->lowered_ops / 2 + 16;
  is_too_much(l, op, &size);
}

void tl_lower_finish_size(tl_lower *l) {
  code_size size = measure(l->function);
  if (is_too_much(l, l->kernel, &size) || l->session->opt_level == 0) return;
  if (size.instructions <= GREAT_CODE && size.branches <= GREAT_BRANCHES) return;
  l->session->opt_level = 0;
  tl_diag_report(l->diags, TL_DIAG_REMARK_EFFORT, l->kernel->loc,
                 "%lld instructions and %lld branches: LLVM makes the effort of -O0, above %d or %d it would take long",
                 (long long)size.instructions, (long long)size.branches, GREAT_CODE, GREAT_BRANCHES);
}
