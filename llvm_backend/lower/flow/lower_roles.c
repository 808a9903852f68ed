// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Roles: a branch on the warp at the end of the kernel. What depends on the thread alone is computed at the beginning
// of its role, counted from the role's first thread.
//
// A role that only its elected thread has anything to do in stands behind one branch on that thread.
#include "llvm_backend/lower/state/lower.h"

enum { WARP_THREADS = 32 };

// setmaxnreg says whether it takes or gives (PTX ISA).
static void set_registers(tl_lower *l, const tl_op *role) {
  int64_t own = tl_kernel_entry_registers(l->kernel), wanted = tl_op_int(role, TL_ATTR_REGISTERS, own);
  if (wanted == own) return;
  LLVMValueRef count = tl_session_i32(l->session, wanted);
  tl_session_call_device(l->session, l->builder, wanted > own ? TL_DEVOP_SETMAXNREG_INC : TL_DEVOP_SETMAXNREG_DEC,
                         &count, 1);
}

// The numbers of threads that the role's statements see, made at its beginning.
static void count_threads(tl_lower *l, const tl_op *role, LLVMValueRef block_tid) {
  LLVMValueRef first = tl_session_i32(l->session, WARP_THREADS * tl_op_int(role, TL_ATTR_FIRST_WARP, 0));
  l->threads = tl_op_threads(role);
  l->tid = LLVMBuildNUWSub(l->entry, block_tid, first, "");
  l->warp = LLVMBuildLShr(l->entry, l->tid, tl_session_i32(l->session, 5), "");
}

void tl_lower_op_ROLE(tl_lower *l, tl_op *op) {
  LLVMBasicBlockRef outer = LLVMGetInsertBlock(l->entry), body = tl_lower_new_block(l);
  LLVMValueRef tid = l->tid, warp = l->warp;
  int32_t threads = l->threads;
  // Places are of the role's threads.
  tl_place_list places = l->places;
  l->places = (tl_place_list){0};
  set_registers(l, op);
  LLVMPositionBuilderBefore(l->entry, LLVMBuildBr(l->builder, body));
  count_threads(l, op, tid);
  LLVMPositionBuilderAtEnd(l->builder, body);
  LLVMValueRef first = tl_block_is_elected(op->regions[0], false) ? tl_lower_is_first_thread(l) : NULL;
  tl_guard guard = tl_lower_guard_begin(l, first);
  l->is_elected = first != NULL;
  tl_lower_block(l, op->regions[0]);
  l->is_elected = false;
  tl_lower_guard_end(l, &guard);
  tl_vec_fini(&l->places);
  l->places = places;
  l->tid = tid;
  l->warp = warp;
  l->threads = threads;
  LLVMPositionBuilderBefore(l->entry, LLVMGetBasicBlockTerminator(outer));
}

void tl_lower_op_ROLES(tl_lower *l, tl_op *op) {
  LLVMBasicBlockRef after = tl_lower_new_block(l);
  for (tl_op *role = op->regions[0]->first; role && !tl_lower_failed(l); role = role->next) {
    if (role->code != TL_OP_ROLE) continue;
    LLVMBasicBlockRef own = tl_lower_new_block(l), others = NULL;
    int64_t end = tl_op_int(role, TL_ATTR_FIRST_WARP, 0) + tl_op_int(role, TL_ATTR_NUM_WARPS, 0);
    if (end * WARP_THREADS < tl_kernel_block_threads(l->kernel)) {
      others = tl_lower_new_block(l);
      LLVMValueRef is_own = LLVMBuildICmp(l->builder, LLVMIntULT, l->warp, tl_session_i32(l->session, end), "");
      LLVMBuildCondBr(l->builder, is_own, own, others);
    } else {
      LLVMBuildBr(l->builder, own);
    }
    LLVMPositionBuilderAtEnd(l->builder, own);
    l->role++;
    LLVMMetadataRef around = tl_lower_debug_op(l, role);
    tl_lower_op_ROLE(l, role);
    tl_lower_debug_restore(l, around);
    if (tl_lower_failed(l)) return;
    LLVMBuildBr(l->builder, after);
    if (others) LLVMPositionBuilderAtEnd(l->builder, others);
  }
  l->role = -1;
  LLVMPositionBuilderAtEnd(l->builder, after);
}
