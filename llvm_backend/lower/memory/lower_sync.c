// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers (0 is the block's, 1 + n that of role n) and groups of asynchronous copies. Rings have become these before.
#include "llvm_backend/lower/state/lower.h"

void tl_lower_op_BARRIER(tl_lower *l, tl_op *op) {
  (void)op;
  LLVMValueRef args[] = {tl_session_i32(l->session, 1 + l->role), tl_session_i32(l->session, l->threads)};
  if (l->role < 0)
    tl_session_call_device(l->session, l->builder, TL_DEVOP_BARRIER_ALL, args, 1);
  else
    tl_session_call_device(l->session, l->builder, TL_DEVOP_BARRIER_COUNT, args, 2);
}

// Those of the author come last: roles and turns have the others.
static int64_t number_of(const tl_op *named) {
  int64_t number = 15;
  for (const tl_op *op = named->prev; op; op = op->prev) number -= op->code == TL_OP_NAMED_BARRIER;
  return number;
}

static void meet_at(tl_lower *l, const tl_op *op, tl_device_op_id id) {
  enum { WARP_THREADS = 32 };
  const tl_op *named = tl_op_operand(op, 0)->def;
  if (!named || named->code != TL_OP_NAMED_BARRIER) {
    tl_lower_internal(l, op, "a barrier without a number");
    return;
  }
  LLVMValueRef args[] = {tl_session_i32(l->session, number_of(named)),
                         tl_session_i32(l->session, WARP_THREADS * tl_op_int(named, TL_ATTR_ARRIVALS, 1))};
  tl_session_call_device(l->session, l->builder, id, args, 2);
}

void tl_lower_op_NAMED_BARRIER(tl_lower *l, tl_op *op) {
  (void)l;
  (void)op;
}

void tl_lower_op_NAMED_SYNC(tl_lower *l, tl_op *op) {
  meet_at(l, op, TL_DEVOP_BARRIER_COUNT);
}

void tl_lower_op_NAMED_ARRIVE(tl_lower *l, tl_op *op) {
  meet_at(l, op, TL_DEVOP_BARRIER_ARRIVE_COUNT);
}

// Warpgroup w waits at barrier FIRST_TURN + w for the one before it to arrive there. The last one opens the first one's
// turn, and the first one ends the last turn that was passed to it.
void tl_lower_op_TURN(tl_lower *l, tl_op *op) {
  enum { FIRST_TURN = 8, WARPGROUP = 128 };  // roles have the barriers up to it
  int32_t groups = l->threads / WARPGROUP;
  int64_t step = tl_op_int(op, TL_ATTR_TURN, TL_TURN_TAKE);
  LLVMValueRef last = tl_session_i32(l->session, groups - 1), zero = tl_session_i32(l->session, 0);
  LLVMValueRef own = LLVMBuildLShr(l->entry, l->warp, tl_session_i32(l->session, 2), ""), only = NULL;
  if (step == TL_TURN_OPEN) only = LLVMBuildICmp(l->builder, LLVMIntEQ, own, last, "");
  if (step == TL_TURN_CLOSE) only = LLVMBuildICmp(l->builder, LLVMIntEQ, own, zero, "");
  LLVMValueRef next = LLVMBuildAdd(l->entry, own, tl_session_i32(l->session, 1), "");
  next = LLVMBuildSelect(l->entry, LLVMBuildICmp(l->entry, LLVMIntEQ, own, last, ""), zero, next, "");
  bool arrives = step == TL_TURN_OPEN || step == TL_TURN_PASS;
  LLVMValueRef id = LLVMBuildAdd(l->entry, arrives ? next : own, tl_session_i32(l->session, FIRST_TURN), "");
  LLVMValueRef args[] = {id, tl_session_i32(l->session, 2 * WARPGROUP)};
  tl_guard guard = tl_lower_guard_begin(l, only);
  tl_session_call_device(l->session, l->builder, arrives ? TL_DEVOP_BARRIER_ARRIVE_COUNT : TL_DEVOP_BARRIER_COUNT, args,
                         2);
  tl_lower_guard_end(l, &guard);
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
