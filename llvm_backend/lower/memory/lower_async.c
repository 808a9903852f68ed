// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers, proxy fences, bulk groups and copies by the copy engine (PTX ISA, "Asynchronous Data Copies: Tensor Copy",
// "mbarrier").
//
// What one thread does for all (the elected one, or the first of each warp or warpgroup) stands behind a branch.
// Arrivals and waits order other memory than that of the mbarrier, which LLVM does not know of its intrinsics: a mark
// that may touch all memory stands before and after them.
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

enum {
  MBARRIER_BYTES = 8,
  WARPGROUP_THREADS = 128,
  MAX_RANK = 5  // of a tensor map
};

// Cache policies of createpolicy.fractional for the whole access (L2::evict_first, L2::evict_last).
#define TL_POLICY_EVICT_FIRST INT64_C(0x12F0000000000000)
#define TL_POLICY_EVICT_LAST INT64_C(0x14F0000000000000)

static void call(tl_lower *l, tl_device_op_id id, LLVMValueRef *args, unsigned num_args) {
  tl_session_call_device(l->session, l->builder, id, args, num_args);
}

static void mark_order(tl_lower *l) {
  call(l, TL_DEVOP_MEMORY_ORDER, NULL, 0);
}

static LLVMValueRef index32(tl_lower *l, const tl_value *index) {
  return tl_lower_index_as(l, l->builder, tl_lower_get(l, index, 0), l->session->i32);
}

// Whether this thread stands for its warp, warpgroup or role; NULL: every thread does.
static LLVMValueRef stands_for(tl_lower *l, int64_t each) {
  if (each == TL_EACH_THREAD) return NULL;
  if (each == TL_EACH_ROLE) return tl_lower_is_first_thread(l);
  LLVMValueRef number = l->lane;
  if (each == TL_EACH_WARPGROUP)
    number = LLVMBuildAnd(l->entry, l->tid, tl_session_i32(l->session, WARPGROUP_THREADS - 1), "");
  return LLVMBuildICmp(l->entry, LLVMIntEQ, number, tl_session_i32(l->session, 0), "");
}

// ---- clusters

void tl_lower_op_CLUSTER_BARRIER(tl_lower *l, tl_op *op) {
  (void)op;
  mark_order(l);
  call(l, TL_DEVOP_CLUSTER_ARRIVE_ALONE, NULL, 0);
  call(l, TL_DEVOP_CLUSTER_WAIT_ALONE, NULL, 0);
  mark_order(l);
}

// Of the blocks of the cluster along a grid dim: how many, the own place among them, and their ranks, `stride` apart
// from `first` on.
typedef struct peers {
  int64_t count, stride;
  LLVMValueRef place, first;
} peers;

static peers peers_along(tl_lower *l, int64_t dim) {
  peers found = {0};
  found.count = tl_kernel_cluster_size(l->kernel, dim, &found.stride);
  LLVMValueRef rank = tl_session_call_device(l->session, l->builder, TL_DEVOP_CLUSTER_CTARANK, NULL, 0);
  LLVMValueRef stride = tl_session_i32(l->session, found.stride), count = tl_session_i32(l->session, found.count);
  found.place = LLVMBuildURem(l->builder, LLVMBuildUDiv(l->builder, rank, stride, ""), count, "");
  found.first = LLVMBuildSub(l->builder, rank, LLVMBuildNUWMul(l->builder, found.place, stride, ""), "");
  return found;
}

static LLVMValueRef rank_of_peer(tl_lower *l, const peers *all, int64_t i) {
  return LLVMBuildNUWAdd(l->builder, all->first, tl_session_i32(l->session, i * all->stride), "");
}

LLVMValueRef tl_lower_peer_pointer(tl_lower *l, LLVMValueRef pointer, int64_t dim, const tl_value *place) {
  peers all = peers_along(l, dim);
  LLVMValueRef at = LLVMBuildNUWMul(l->builder, index32(l, place), tl_session_i32(l->session, all.stride), "");
  LLVMValueRef where[] = {pointer, LLVMBuildNUWAdd(l->builder, all.first, at, "")};
  return tl_session_call_device(l->session, l->builder, TL_DEVOP_CLUSTER_MAPA, where, 2);
}

// ---- mbarriers

static LLVMValueRef pointer_at(tl_lower *l, LLVMValueRef base, LLVMValueRef offset) {
  return LLVMBuildGEP2(l->builder, l->session->i8, base, &offset, 1, "");
}

static LLVMValueRef mbarrier_at(tl_lower *l, const tl_value *barrier, const tl_value *stage) {
  LLVMValueRef base = tl_lower_get(l, barrier, 0);
  int64_t constant;
  if (tl_value_const_int(stage, &constant))
    return pointer_at(l, base, tl_session_i32(l->session, constant * MBARRIER_BYTES));
  LLVMValueRef bytes = tl_session_i32(l->session, MBARRIER_BYTES);
  return pointer_at(l, base, LLVMBuildNSWMul(l->builder, index32(l, stage), bytes, ""));
}

void tl_lower_op_MBARRIER(tl_lower *l, tl_op *op) {
  if (!tl_op_has(op, TL_ATTR_OFFSET)) {
    tl_lower_internal(l, op, "mbarriers without an offset");
    return;
  }
  LLVMValueRef offset = tl_session_i32(l->session, tl_op_int(op, TL_ATTR_OFFSET, 0));
  tl_lower_set_one(l, tl_op_result(op, 0), LLVMBuildGEP2(l->entry, l->session->i8, l->shared_base, &offset, 1, ""));
}

void tl_lower_op_MBARRIER_INIT(tl_lower *l, tl_op *op) {
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  for (uint32_t i = 0; i < op->num_operands && !tl_lower_failed(l); i++) {
    const tl_op *made = tl_op_operand(op, i)->def;
    if (!made || made->code != TL_OP_MBARRIER) {
      tl_lower_internal(l, op, "mbarriers that nothing declares");
      return;
    }
    for (int64_t stage = 0; stage < tl_op_int(made, TL_ATTR_DEPTH, 1); stage++) {
      LLVMValueRef offset = tl_session_i32(l->session, stage * MBARRIER_BYTES);
      LLVMValueRef args[] = {pointer_at(l, tl_lower_get(l, tl_op_operand(op, i), 0), offset),
                             tl_session_i32(l->session, tl_op_int(made, TL_ATTR_ARRIVALS, 1))};
      call(l, TL_DEVOP_MBARRIER_INIT, args, 2);
    }
  }
  call(l, TL_DEVOP_FENCE_MBARRIER_INIT, NULL, 0);
  tl_lower_guard_end(l, &guard);
}

// Whether a wait acquires from other blocks of the cluster: where an arrival from there releases to it. Bytes that the
// copy engines of other blocks bring are complete and seen with the phase, as one's own.
static bool acquires_from_cluster(const tl_value *barrier) {
  for (const tl_use *use = barrier->uses; use; use = use->next) {
    const tl_op *op = use->owner;
    if (op->code == TL_OP_MBARRIER_ARRIVE && tl_op_has(op, TL_ATTR_ACROSS) && !tl_op_has(op, TL_ATTR_FINISHED))
      return true;
  }
  return false;
}

// At the same barrier of every peer (mapa). Released to the cluster, unless nothing is left to order.
static void arrive_across(tl_lower *l, const tl_op *op, LLVMValueRef barrier) {
  peers all = peers_along(l, tl_op_int(op, TL_ATTR_ACROSS, 0));
  for (int64_t i = 0; i < all.count; i++) {
    LLVMValueRef where[] = {barrier, rank_of_peer(l, &all, i)};
    LLVMValueRef args[] = {tl_session_call_device(l->session, l->builder, TL_DEVOP_CLUSTER_MAPA, where, 2),
                           tl_session_i32(l->session, 1)};
    call(l, tl_op_has(op, TL_ATTR_FINISHED) ? TL_DEVOP_MBARRIER_ARRIVE_ACROSS : TL_DEVOP_MBARRIER_ARRIVE_CLUSTER, args,
         2);
  }
}

void tl_lower_op_MBARRIER_ARRIVE(tl_lower *l, tl_op *op) {
  int64_t each = tl_op_int(op, TL_ATTR_EACH, TL_EACH_THREAD);
  const tl_value *bytes = tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_bytes);
  LLVMValueRef all = tl_session_i32(l->session, -1), stands = stands_for(l, each);
  mark_order(l);
  if (each == TL_EACH_WARP) call(l, TL_DEVOP_WARP_SYNC, &all, 1);
  tl_guard guard = tl_lower_guard_begin(l, stands);
  LLVMValueRef args[] = {
      mbarrier_at(l, tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_barrier), tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_stage)),
      bytes ? index32(l, bytes) : tl_session_i32(l->session, 1)};
  if (tl_op_has(op, TL_ATTR_ACROSS))
    arrive_across(l, op, args[0]);
  else
    call(l, bytes ? TL_DEVOP_MBARRIER_ARRIVE_EXPECT_TX : TL_DEVOP_MBARRIER_ARRIVE, args, 2);
  tl_lower_guard_end(l, &guard);
}

void tl_lower_op_MBARRIER_EXPECT(tl_lower *l, tl_op *op) {
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  LLVMValueRef args[] = {
      mbarrier_at(l, tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_barrier), tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_stage)),
      index32(l, tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_bytes))};
  call(l, TL_DEVOP_MBARRIER_EXPECT_TX, args, 2);
  tl_lower_guard_end(l, &guard);
}

void tl_lower_op_MBARRIER_WAIT(tl_lower *l, tl_op *op) {
  tl_guard guard = tl_lower_guard_begin(l, stands_for(l, tl_op_int(op, TL_ATTR_EACH, TL_EACH_THREAD)));
  LLVMValueRef args[] = {
      mbarrier_at(l, tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_barrier), tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_stage)),
      index32(l, tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_phase))};
  LLVMBasicBlockRef again = tl_lower_new_block(l), done = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, again);
  LLVMPositionBuilderAtEnd(l->builder, again);
  bool in_cluster = acquires_from_cluster(tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_barrier));
  LLVMValueRef ended = tl_session_call_device(
      l->session, l->builder,
      in_cluster ? TL_DEVOP_MBARRIER_TRY_WAIT_PARITY_CLUSTER : TL_DEVOP_MBARRIER_TRY_WAIT_PARITY, args, 2);
  LLVMBuildCondBr(l->builder, ended, done, again);
  LLVMPositionBuilderAtEnd(l->builder, done);
  mark_order(l);
  tl_lower_guard_end(l, &guard);
}

void tl_lower_op_FENCE_PROXY(tl_lower *l, tl_op *op) {
  bool is_global = tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_GLOBAL;
  call(l, is_global ? TL_DEVOP_FENCE_PROXY_ASYNC_GLOBAL : TL_DEVOP_FENCE_PROXY_ASYNC_SHARED, NULL, 0);
}

// ---- bulk groups

void tl_lower_op_BULK_COMMIT(tl_lower *l, tl_op *op) {
  (void)op;
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  call(l, TL_DEVOP_BULK_COMMIT_GROUP, NULL, 0);
  tl_lower_guard_end(l, &guard);
}

void tl_lower_op_BULK_WAIT(tl_lower *l, tl_op *op) {
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  LLVMValueRef pending = tl_session_i32(l->session, tl_op_int(op, TL_ATTR_PENDING, 0));
  call(l, tl_op_has(op, TL_ATTR_READ) ? TL_DEVOP_BULK_WAIT_GROUP_READ : TL_DEVOP_BULK_WAIT_GROUP, &pending, 1);
  tl_lower_guard_end(l, &guard);
}

// ---- copies

// The parameter was bound with the function. The first copy would fetch it, which takes as long as any other memory.
void tl_lower_op_TENSOR_MAP(tl_lower *l, tl_op *op) {
  LLVMValueRef map = tl_lower_get(l, tl_op_result(op, 0), 0);
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  call(l, TL_DEVOP_TENSORMAP_PREFETCH, &map, 1);
  tl_lower_guard_end(l, &guard);
}

typedef struct tma_copy {
  const tl_op *op, *map;
  bool is_store;
  const tl_buffer *shared;
  const tl_attr *extents, *map_dims, *box;
  const tl_attr *global_dims, *shared_dims;  // of tile dims
  int offsets, shared_offsets;               // operand groups
  int32_t rank, first;                       // of the map, and its first dim that is no panel's
  // Of a copy for a cluster: its blocks, the rows of the tile that this one brings, and from which on.
  peers all;
  int64_t share;
  LLVMValueRef first_row;
} tma_copy;

// The tile dim that walks dim `d` of the global side, or -1.
static int32_t tile_dim(const tma_copy *copy, int64_t d) {
  for (int32_t t = 0; t < copy->global_dims->v.ints.len; t++)
    if (copy->global_dims->v.ints.items[t] == d) return t;
  return -1;
}

// Elements along tile dim `t` that one box moves.
static int64_t box_along(const tma_copy *copy, int32_t t) {
  const int64_t *box = copy->box->v.ints.items, *dims = copy->map_dims->v.ints.items;
  for (int32_t i = copy->first; i < copy->rank; i++)
    if (dims[i] == copy->global_dims->v.ints.items[t])
      return copy->first && i == copy->rank - 1 ? box[i] * box[0] : box[i];
  return 1;
}

// Coordinates of the box that begins at element `start` of the tile: innermost first, as the instruction takes them.
static void push_coordinates(tl_lower *l, const tma_copy *copy, const int64_t *start, LLVMValueRef *args, unsigned *n) {
  const int64_t *dims = copy->map_dims->v.ints.items;
  int64_t panel = tl_op_int(copy->map, TL_ATTR_PANEL, 0);
  for (int32_t i = copy->rank - 1; i >= 0; i--) {
    int64_t d = dims[i];
    int32_t t = tile_dim(copy, d);
    if (copy->first && i == copy->rank - 1) {
      args[(*n)++] = tl_session_i32(l->session, 0);
      continue;
    }
    LLVMValueRef at = index32(l, tl_op_group_at(copy->op, copy->offsets, (uint32_t)d));
    if (t >= 0 && start[t]) at = LLVMBuildAdd(l->builder, at, tl_session_i32(l->session, start[t]), "");
    if (t == 0 && copy->first_row) at = LLVMBuildAdd(l->builder, at, copy->first_row, "");
    if (copy->first && i == 0) at = LLVMBuildExactSDiv(l->builder, at, tl_session_i32(l->session, panel), "");
    args[(*n)++] = at;
  }
}

// Of a map of pixels: what is taken lies so far behind each base position; innermost first.
static unsigned push_taps(tl_lower *l, const tma_copy *copy, LLVMValueRef *args, unsigned *n) {
  uint32_t count = tl_op_group_len(copy->op, TL_GROUP_COPY_taps);
  for (uint32_t i = count; i-- > 0;) {
    LLVMValueRef tap = tl_lower_get(l, tl_op_group_at(copy->op, TL_GROUP_COPY_taps, i), 0);
    args[(*n)++] = tl_lower_index_as(l, l->builder, tap, l->session->i16);
  }
  return count;
}

// Bytes from one index along dim `d` of a tile to the next: of rows that lie behind each other.
static int64_t bytes_along(const tl_buffer *buffer, int32_t d) {
  int64_t bytes = buffer->rank == 1 ? tl_dtype_bits(buffer->dtype) / 8 : buffer->shared.pitch_bytes;
  for (int32_t inner = d + 1; inner < buffer->rank - 1; inner++) bytes *= buffer->dims[inner];
  return bytes;
}

// The tile, moved on by the offsets that are no constants: whole periods of the swizzle, which the place in the tile
// does not see.
static LLVMValueRef moved_base(tl_lower *l, const tma_copy *copy) {
  LLVMValueRef base = copy->shared->base;
  for (int32_t d = 0; d < copy->shared->rank; d++) {
    const tl_value *index = tl_op_group_at(copy->op, copy->shared_offsets, (uint32_t)d);
    int64_t constant;
    if (tl_value_const_int(index, &constant)) continue;
    LLVMValueRef by = tl_session_i32(l->session, bytes_along(copy->shared, d));
    base = pointer_at(l, base, LLVMBuildNUWMul(l->builder, index32(l, index), by, ""));
  }
  return base;
}

// Where that box lies in shared memory.
static LLVMValueRef box_pointer(tl_lower *l, const tma_copy *copy, const int64_t *start) {
  const tl_buffer *buffer = copy->shared;
  int32_t coord[TL_MAX_DIMS], shape[TL_MAX_DIMS];
  for (int32_t d = 0; d < buffer->rank; d++) {
    int64_t offset = 0;
    tl_value_const_int(tl_op_group_at(copy->op, copy->shared_offsets, (uint32_t)d), &offset);
    coord[d] = (int32_t)offset;
    shape[d] = (int32_t)buffer->dims[d];
  }
  for (int32_t t = 0; t < copy->shared_dims->v.ints.len; t++)
    coord[copy->shared_dims->v.ints.items[t]] += (int32_t)start[t];
  int64_t at = tl_shared_layout_offset(&buffer->shared, shape, buffer->rank, tl_dtype_bits(buffer->dtype), coord);
  if (copy->first_row) {
    // Shares are whole periods of the swizzle: their rows lie behind each other.
    LLVMValueRef row = tl_session_i32(l->session, bytes_along(buffer, 0));
    LLVMValueRef bytes = LLVMBuildNUWMul(l->builder, copy->first_row, row, "");
    return pointer_at(l, buffer->base, LLVMBuildNUWAdd(l->builder, bytes, tl_session_i32(l->session, at), ""));
  }
  LLVMValueRef base = moved_base(l, copy);
  return at ? pointer_at(l, base, tl_session_i32(l->session, at)) : base;
}

static int64_t policy_of(const tl_op *op) {
  int64_t evict = tl_op_int(op, TL_ATTR_EVICT, TL_EVICT_NORMAL);
  return evict == TL_EVICT_FIRST ? TL_POLICY_EVICT_FIRST : evict == TL_EVICT_LAST ? TL_POLICY_EVICT_LAST : 0;
}

// The window of the block's own shared memory lies in that of its cluster (PTX ISA, "State Spaces: Shared"), which is
// all that loads could name before PTX 8.6. By an integer: a cast would go by way of the generic space.
static LLVMValueRef in_cluster(tl_lower *l, LLVMValueRef shared) {
  LLVMValueRef address = LLVMBuildPtrToInt(l->builder, shared, l->session->i64, "");
  return LLVMBuildIntToPtr(l->builder, address, l->session->cluster_ptr, "");
}

// The blocks of a multicast, a bit each.
static LLVMValueRef blocks_of(tl_lower *l, const tma_copy *copy) {
  int64_t mask = 0;
  if (!copy->first_row) return LLVMConstInt(l->session->i16, 0, false);
  for (int64_t i = 0; i < copy->all.count; i++) mask |= INT64_C(1) << (i * copy->all.stride);
  LLVMValueRef bits = LLVMBuildShl(l->builder, tl_session_i32(l->session, mask), copy->all.first, "");
  return LLVMBuildTrunc(l->builder, bits, l->session->i16, "");
}

static void load_box(tl_lower *l, const tma_copy *copy, LLVMValueRef barrier, const int64_t *start) {
  LLVMValueRef args[2 * MAX_RANK + 8];
  int64_t policy = policy_of(copy->op);
  unsigned n = 0;
  args[n++] = in_cluster(l, box_pointer(l, copy, start));
  args[n++] = barrier;
  args[n++] = tl_lower_get(l, tl_op_arg(copy->op, TL_GROUP_COPY_map), 0);
  push_coordinates(l, copy, start, args, &n);
  unsigned taps = push_taps(l, copy, args, &n);
  args[n++] = blocks_of(l, copy);
  args[n++] = tl_session_i64(l->session, policy);
  args[n++] = tl_session_bool(l->session, copy->first_row != NULL);  // whether the blocks count
  args[n++] = tl_session_bool(l->session, policy != 0);
  args[n++] = tl_session_i32(l->session, 0);  // no pair of blocks
  unsigned form = taps ? TL_DEVOP_TMA_LOAD_IM2COL_3D + taps - 1 : TL_DEVOP_TMA_LOAD_1D + (unsigned)copy->rank - 1;
  call(l, (tl_device_op_id)form, args, n);
}

// The instruction of a store, or of the reduction that the copy makes; each has five, by rank.
static tl_device_op_id store_of(tl_lower *l, const tl_op *op) {
  if (!tl_op_has(op, TL_ATTR_ATOMIC)) return TL_DEVOP_TMA_STORE_1D;
  switch ((tl_ir_enum_ATOMIC)tl_op_int(op, TL_ATTR_ATOMIC, 0)) {
    case TL_ATOMIC_ADD:
      return TL_DEVOP_TMA_REDUCE_ADD_1D;
    case TL_ATOMIC_MIN:
      return TL_DEVOP_TMA_REDUCE_MIN_1D;
    case TL_ATOMIC_MAX:
      return TL_DEVOP_TMA_REDUCE_MAX_1D;
    case TL_ATOMIC_AND:
      return TL_DEVOP_TMA_REDUCE_AND_1D;
    case TL_ATOMIC_OR:
      return TL_DEVOP_TMA_REDUCE_OR_1D;
    case TL_ATOMIC_XOR:
      return TL_DEVOP_TMA_REDUCE_XOR_1D;
    case TL_ATOMIC_EXCH:
    case TL_ATOMIC_CAS:
    case TL_ATOMIC_COUNT:
      break;
  }
  tl_lower_internal(l, op, "the copy engine has no such atomic");
  return TL_DEVOP_TMA_STORE_1D;
}

static void store_box(tl_lower *l, const tma_copy *copy, const int64_t *start) {
  LLVMValueRef args[MAX_RANK + 4];
  int64_t policy = policy_of(copy->op);
  unsigned n = 0;
  args[n++] = box_pointer(l, copy, start);
  args[n++] = tl_lower_get(l, tl_op_arg(copy->op, TL_GROUP_COPY_map), 0);
  push_coordinates(l, copy, start, args, &n);
  args[n++] = tl_session_i64(l->session, policy);
  args[n++] = tl_session_bool(l->session, policy != 0);
  call(l, (tl_device_op_id)(store_of(l, copy->op) + copy->rank - 1), args, n);
}

static void move_boxes(tl_lower *l, const tma_copy *copy, LLVMValueRef barrier) {
  const int64_t *extents = copy->extents->v.ints.items;
  int64_t start[TL_MAX_DIMS] = {0};
  int32_t t = 0;
  while (t >= 0 && !tl_lower_failed(l)) {
    if (barrier)
      load_box(l, copy, barrier, start);
    else
      store_box(l, copy, start);
    for (t = copy->extents->v.ints.len - 1; t >= 0; t--) {
      start[t] += box_along(copy, t);
      if (start[t] < (t == 0 && copy->share ? copy->share : extents[t])) break;
      start[t] = 0;
    }
  }
}

void tl_lower_tma_copy(tl_lower *l, tl_op *op) {
  const tl_value *map = tl_op_arg(op, TL_GROUP_COPY_map), *src = tl_op_arg(op, TL_GROUP_COPY_src);
  const tl_value *barrier = tl_op_arg(op, TL_GROUP_COPY_barrier);
  bool is_store = src->type->scope == TL_SCOPE_SHARED;
  tma_copy copy = {.op = op, .map = map->def, .is_store = is_store};
  copy.shared = tl_lower_buffer(l, is_store ? src : tl_op_arg(op, TL_GROUP_COPY_dst));
  copy.extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  copy.map_dims = tl_op_attr(copy.map, TL_ATTR_MAP_DIMS);
  copy.box = tl_op_attr(copy.map, TL_ATTR_BOX);
  copy.global_dims = tl_op_attr(op, is_store ? TL_ATTR_DST_DIMS : TL_ATTR_SRC_DIMS);
  copy.shared_dims = tl_op_attr(op, is_store ? TL_ATTR_SRC_DIMS : TL_ATTR_DST_DIMS);
  copy.offsets = is_store ? TL_GROUP_COPY_dst_offsets : TL_GROUP_COPY_src_offsets;
  copy.shared_offsets = is_store ? TL_GROUP_COPY_src_offsets : TL_GROUP_COPY_dst_offsets;
  copy.rank = copy.map_dims->v.ints.len;
  copy.first = tl_op_has(copy.map, TL_ATTR_PANEL) ? 1 : 0;
  if (!copy.shared || !is_store != (barrier != NULL)) {
    tl_lower_internal(l, op, "no memory behind the shared side, or no mbarrier for a load");
    return;
  }
  tl_guard guard = tl_lower_guard_begin(l, tl_lower_is_first_thread(l));
  if (tl_op_has(op, TL_ATTR_ACROSS)) {
    copy.all = peers_along(l, tl_op_int(op, TL_ATTR_ACROSS, 0));
    copy.share = copy.extents->v.ints.items[0] / copy.all.count;
    copy.first_row = LLVMBuildNUWMul(l->builder, copy.all.place, tl_session_i32(l->session, copy.share), "");
  }
  move_boxes(l, &copy, barrier ? mbarrier_at(l, barrier, tl_op_arg(op, TL_GROUP_COPY_stage)) : NULL);
  tl_lower_guard_end(l, &guard);
}
