// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue of a persistent kernel's tiles: a counter in device memory, and how one thread of a block, which takes the
// next number from it, tells the others.
//
// The first tile of a block is its own number, and nobody asks for it: the counter counts those after. Numbers go
// through two places in turn. Without roles a barrier of the block lies between writing and reading: who writes a place
// again has passed another one since. Roles meet at two mbarriers a place: `full` is arrived at by the one that wrote,
// `empty` by each warp that has read. The role that leads runs at most two tiles ahead.
#include "llvm_backend/lower/flow/lower_tiles.h"

#include "llvm_backend/lower/tile/lower_reduce.h"

enum { WARP_THREADS = 32, PLACES = 2, PLACE_BYTES = 8 };
enum { FULL = 0, EMPTY = PLACES * PLACE_BYTES, NUMBERS = 2 * PLACES * PLACE_BYTES };
_Static_assert(NUMBERS + PLACES * PLACE_BYTES == TL_TILE_QUEUE_BYTES, "what plan-shared reserves");

static void call(tl_lower *l, tl_device_op_id id, LLVMValueRef *args, unsigned num_args) {
  tl_session_call_device(l->session, l->builder, id, args, num_args);
}

// Number `place` of those that lie `offset` bytes into the queue.
static LLVMValueRef place_at(tl_lower *l, int64_t offset, LLVMValueRef place) {
  LLVMValueRef bytes = LLVMBuildNUWMul(l->builder, place, tl_session_i32(l->session, PLACE_BYTES), "");
  bytes = LLVMBuildNUWAdd(l->builder, bytes, tl_session_i32(l->session, offset), "");
  return LLVMBuildGEP2(l->builder, l->session->i8, l->queue.base, &bytes, 1, "");
}

// ---- roles

// The role that asks for numbers: one of a single thread, which runs ahead, else the first.
static const tl_op *leader_of(const tl_op *roles) {
  for (const tl_op *role = roles->regions[0]->first; role; role = role->next)
    if (role->code == TL_OP_ROLE && tl_block_is_elected(role->regions[0], false)) return role;
  return roles->regions[0]->first;
}

// Warps that a number is told: those of the other roles, one where a role has a single thread.
static int64_t num_readers(const tl_op *roles) {
  const tl_op *leader = leader_of(roles);
  int64_t warps = 0;
  for (const tl_op *role = roles->regions[0]->first; role; role = role->next) {
    if (role->code != TL_OP_ROLE) continue;
    bool is_single = tl_block_is_elected(role->regions[0], false);
    if (!is_single) warps += tl_op_int(role, TL_ATTR_NUM_WARPS, 0);
    if (is_single && role != leader) warps++;
  }
  return warps;
}

static void init_mbarrier(tl_lower *l, int64_t offset, int64_t place, int64_t arrivals) {
  LLVMValueRef args[] = {place_at(l, offset, tl_session_i32(l->session, place)), tl_session_i32(l->session, arrivals)};
  call(l, TL_DEVOP_MBARRIER_INIT, args, 2);
}

void tl_lower_op_TILE_QUEUE(tl_lower *l, tl_op *op) {
  const tl_op *roles = tl_kernel_roles(l->kernel);
  if (!tl_op_has(op, TL_ATTR_OFFSET)) {
    tl_lower_internal(l, op, "a queue of tiles without an offset");
    return;
  }
  LLVMValueRef offset = tl_session_i32(l->session, tl_op_int(op, TL_ATTR_OFFSET, 0));
  l->queue.base = LLVMBuildGEP2(l->entry, l->session->i8, l->shared_base, &offset, 1, "");
  if (!roles) return;
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  for (int64_t place = 0; place < PLACES; place++) {
    init_mbarrier(l, FULL, place, 1);
    init_mbarrier(l, EMPTY, place, num_readers(roles));
  }
  call(l, TL_DEVOP_FENCE_MBARRIER_INIT, NULL, 0);
  tl_lower_guard_end(l, &guard);
  tl_lower_op_BARRIER(l, op);
}

static void wait_for(tl_lower *l, LLVMValueRef mbarrier, LLVMValueRef parity) {
  LLVMValueRef args[] = {mbarrier, parity};
  LLVMBasicBlockRef again = tl_lower_new_block(l), done = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, again);
  LLVMPositionBuilderAtEnd(l->builder, again);
  LLVMValueRef ended = tl_session_call_device(l->session, l->builder, TL_DEVOP_MBARRIER_TRY_WAIT_PARITY, args, 2);
  LLVMBuildCondBr(l->builder, ended, done, again);
  LLVMPositionBuilderAtEnd(l->builder, done);
  call(l, TL_DEVOP_MEMORY_ORDER, NULL, 0);
}

static void arrive(tl_lower *l, LLVMValueRef mbarrier) {
  LLVMValueRef args[] = {mbarrier, tl_session_i32(l->session, 1)};
  call(l, TL_DEVOP_MEMORY_ORDER, NULL, 0);
  call(l, TL_DEVOP_MBARRIER_ARRIVE, args, 2);
}

// ---- numbers

// The next tile that nobody has, `end` where there is none, as i64. Of one thread.
static LLVMValueRef take(tl_lower *l, LLVMValueRef end) {
  LLVMTypeRef i64 = l->session->i64;
  LLVMValueRef blocks =
      LLVMBuildZExt(l->builder, tl_session_call_device(l->session, l->builder, TL_DEVOP_NCTAID_X, NULL, 0), i64, "");
  LLVMValueRef before =
      LLVMBuildAtomicRMWSyncScope(l->builder, LLVMAtomicRMWBinOpAdd, l->queue.counter, LLVMConstInt(i64, 1, 0),
                                  LLVMAtomicOrderingMonotonic, LLVMGetSyncScopeID(l->session->context, "device", 6));
  LLVMValueRef next = LLVMBuildNUWAdd(l->builder, before, blocks, "");
  return tl_lower_intrinsic2(l, "llvm.umin", next, LLVMBuildZExt(l->builder, end, i64, ""));
}

// Lane 0's number in all lanes, so that it is known to be the same in a warp.
static LLVMValueRef spread(tl_lower *l, LLVMValueRef number, LLVMTypeRef type) {
  LLVMValueRef own = LLVMBuildIntCast2(l->builder, number, type, 0, "");
  return tl_lower_shuffle(l, TL_DEVOP_SHFL_IDX, own, tl_session_i32(l->session, 0));
}

static LLVMValueRef next_of_block(tl_lower *l, tl_op *loop, LLVMValueRef place, LLVMValueRef end) {
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  LLVMValueRef number = take(l, end);
  LLVMBuildStore(l->builder, number, place_at(l, NUMBERS, place));
  tl_lower_guard_end(l, &guard);
  tl_lower_op_BARRIER(l, loop);
  return spread(l, LLVMBuildLoad2(l->builder, l->session->i64, place_at(l, NUMBERS, place), ""), LLVMTypeOf(end));
}

static LLVMValueRef next_of_role(tl_lower *l, const tl_op *role, LLVMValueRef place, LLVMValueRef round,
                                 LLVMValueRef end) {
  LLVMValueRef one = tl_session_i32(l->session, 1), number = NULL;
  if (role == leader_of(role->parent->parent)) {
    tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
    LLVMValueRef before = LLVMBuildXor(l->builder, round, one, "");
    wait_for(l, place_at(l, EMPTY, place), before);
    number = take(l, end);
    LLVMBuildStore(l->builder, number, place_at(l, NUMBERS, place));
    arrive(l, place_at(l, FULL, place));
    tl_lower_guard_end(l, &guard);
    if (l->is_elected) return LLVMBuildIntCast2(l->builder, number, LLVMTypeOf(end), 0, "");
  }
  LLVMValueRef reads =
      l->is_elected ? NULL : LLVMBuildICmp(l->builder, LLVMIntEQ, l->lane, tl_session_i32(l->session, 0), "");
  tl_guard guard = tl_lower_guard_begin(l, reads);
  wait_for(l, place_at(l, FULL, place), round);
  number = LLVMBuildLoad2(l->builder, l->session->i64, place_at(l, NUMBERS, place), "");
  arrive(l, place_at(l, EMPTY, place));
  tl_lower_guard_end(l, &guard);
  number = tl_lower_guard_phi(l, &guard, number, LLVMConstInt(l->session->i64, 0, 0));
  return l->is_elected ? LLVMBuildIntCast2(l->builder, number, LLVMTypeOf(end), 0, "")
                       : spread(l, number, LLVMTypeOf(end));
}

LLVMValueRef tl_lower_next_tile(tl_lower *l, tl_op *loop, LLVMValueRef iteration, LLVMValueRef end) {
  LLVMValueRef one = tl_session_i32(l->session, 1);
  LLVMValueRef place = LLVMBuildAnd(l->builder, iteration, one, "");
  LLVMValueRef round = LLVMBuildAnd(l->builder, LLVMBuildLShr(l->builder, iteration, one, ""), one, "");
  const tl_op *role = tl_op_enclosing(loop, TL_OP_ROLE);
  return role ? next_of_role(l, role, place, round, end) : next_of_block(l, loop, place, end);
}
