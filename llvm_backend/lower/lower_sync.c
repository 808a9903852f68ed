// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers (0 is the block's, 1 + n that of role n) and groups of asynchronous copies. Rings have become these before.
#include "llvm_backend/lower/lower.h"

void tl_lower_op_BARRIER(tl_lower *l, tl_op *op) {
  (void)op;
  LLVMValueRef args[] = {tl_session_i32(l->session, 1 + l->role), tl_session_i32(l->session, l->threads)};
  if (l->role < 0)
    tl_session_call_device(l->session, l->builder, TL_DEVOP_BARRIER_ALL, args, 1);
  else
    tl_session_call_device(l->session, l->builder, TL_DEVOP_BARRIER_COUNT, args, 2);
}

void tl_lower_op_ASYNC_COMMIT(tl_lower *l, tl_op *op) {
  (void)op;
  tl_session_call_device(l->session, l->builder, TL_DEVOP_CP_ASYNC_COMMIT, NULL, 0);
}

void tl_lower_op_ASYNC_WAIT(tl_lower *l, tl_op *op) {
  LLVMValueRef pending = tl_session_i32(l->session, tl_op_int(op, TL_ATTR_PENDING, 0));
  tl_session_call_device(l->session, l->builder, TL_DEVOP_CP_ASYNC_WAIT, &pending, 1);
}

#define TL_LOWERED_BEFORE(ID)                                          \
  void tl_lower_op_##ID(tl_lower *l, tl_op *op) {                      \
    tl_lower_internal(l, op, "must have been lowered by lower-rings"); \
  }
TL_LOWERED_BEFORE(RING)
TL_LOWERED_BEFORE(RING_ACQUIRE)
TL_LOWERED_BEFORE(RING_COMMIT)
TL_LOWERED_BEFORE(RING_WAIT)
TL_LOWERED_BEFORE(RING_RELEASE)
TL_LOWERED_BEFORE(RING_TILE)
#undef TL_LOWERED_BEFORE
