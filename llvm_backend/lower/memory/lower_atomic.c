// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic updates of elements, and waiting for the value of one.
#include "llvm_backend/lower/memory/lower_atomic.h"
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/value/lower_arith.h"

static bool rmw_kind(int64_t kind, tl_dtype dtype, LLVMAtomicRMWBinOp *out) {
  bool is_float = tl_dtype_is_float(dtype), is_signed = tl_dtype_is_signed_int(dtype);
  switch ((tl_ir_enum_ATOMIC)kind) {
    case TL_ATOMIC_ADD:
      *out = is_float ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
      return true;
    case TL_ATOMIC_MAX:
      *out = is_float ? LLVMAtomicRMWBinOpFMax : is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
      return true;
    case TL_ATOMIC_MIN:
      *out = is_float ? LLVMAtomicRMWBinOpFMin : is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
      return true;
    case TL_ATOMIC_AND:
      *out = LLVMAtomicRMWBinOpAnd;
      return !is_float;
    case TL_ATOMIC_OR:
      *out = LLVMAtomicRMWBinOpOr;
      return !is_float;
    case TL_ATOMIC_XOR:
      *out = LLVMAtomicRMWBinOpXor;
      return !is_float;
    case TL_ATOMIC_EXCH:
      *out = LLVMAtomicRMWBinOpXchg;
      return true;
    case TL_ATOMIC_CAS:
    case TL_ATOMIC_COUNT:
      break;
  }
  return false;
}

// ---- reductions: relaxed additions to global memory without a result, wide where a thread holds neighbours

enum { FIRST_VECTOR_SM = 90 };

// Elements that one instruction adds: of f32 1, 2 or 4, of f16 and bf16 2 (or 4 or 8 from sm_90 on). 0: it is no
// reduction.
static int32_t reduction_width(const tl_lower *l, const tl_op *op, const tl_buffer *buffer) {
  bool is_f32 = buffer->dtype == TL_DTYPE_F32,
       is_half = buffer->dtype == TL_DTYPE_F16 || buffer->dtype == TL_DTYPE_BF16;
  if (tl_op_has(op, TL_ATTR_MEMORY_ORDER)) return 0;
  if (op->num_results > 0 || !(is_f32 || is_half) || buffer->scope != TL_SCOPE_GLOBAL) return 0;
  if (tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) != TL_ATOMIC_ADD) return 0;
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), width = l->parallel ? l->parallel->width : 1;
  int32_t most = l->session->target->sm >= FIRST_VECTOR_SM ? 16 : 4, each = is_f32 ? 4 : 2;
  while (vec > 1 && (vec * each > most || width % vec != 0)) vec /= 2;
  return is_half && vec == 1 ? 0 : vec;
}

// Two halves as a word.
static LLVMValueRef pack(tl_lower *l, const tl_value *value, int32_t e, LLVMTypeRef type) {
  LLVMValueRef pair = LLVMGetUndef(type);
  for (int32_t i = 0; i < 2; i++)
    pair = LLVMBuildInsertElement(l->builder, pair, tl_lower_get(l, value, e + i), tl_session_i32(l->session, i), "");
  return pair;
}

static void reduce(tl_lower *l, tl_op *op, tl_dtype dtype, LLVMValueRef pointer, int32_t e, int32_t width,
                   LLVMValueRef condition) {
  static const tl_device_op_id of_f32[] = {0, TL_DEVOP_RED_F32, TL_DEVOP_RED_V2_F32, 0, TL_DEVOP_RED_V4_F32};
  static const tl_device_op_id of_f16[] = {0, TL_DEVOP_RED_F16X2, TL_DEVOP_RED_V2_F16X2, 0, TL_DEVOP_RED_V4_F16X2};
  static const tl_device_op_id of_bf16[] = {0, TL_DEVOP_RED_BF16X2, TL_DEVOP_RED_V2_BF16X2, 0, TL_DEVOP_RED_V4_BF16X2};
  const tl_device_op_id *ids = dtype == TL_DTYPE_F32 ? of_f32 : dtype == TL_DTYPE_F16 ? of_f16 : of_bf16;
  tl_value *value = tl_op_arg(op, TL_GROUP_ATOMIC_value);
  LLVMTypeRef pair = LLVMVectorType(tl_session_type(l->session, dtype), 2);
  int32_t each = dtype == TL_DTYPE_F32 ? 1 : 2;
  LLVMValueRef args[6] = {pointer};
  unsigned n = 1;
  for (int32_t i = 0; i < width; i += each) {
    args[n++] = each == 1 ? tl_lower_get(l, value, e + i)
                          : LLVMBuildBitCast(l->builder, pack(l, value, e + i, pair), l->session->i32, "");
  }
  args[n++] = condition ? condition : tl_session_bool(l->session, true);
  tl_session_call_device(l->session, l->builder, ids[width / each], args, n);
}

// bf16 before sm_90: a loop around a compare-and-swap for a pair.
static void reduce_in_loop(tl_lower *l, tl_op *op, const tl_buffer *buffer, LLVMValueRef pointer, int32_t e,
                           LLVMValueRef condition) {
  LLVMTypeRef pair = LLVMVectorType(tl_session_type(l->session, buffer->dtype), 2);
  LLVMValueRef value = pack(l, tl_op_arg(op, TL_GROUP_ATOMIC_value), e, pair);
  tl_atomic_update update = {buffer, pointer, LLVMAtomicRMWBinOpFAdd, false, value, NULL};
  tl_guard guard = tl_lower_guard_begin(l, condition);
  tl_lower_atomic_loop(l, &update);
  tl_lower_guard_end(l, &guard);
}

// ---- order. The code generator drops the order of atomicrmw (atom without a qualifier is relaxed): every update is
// relaxed, and fences stand around it (PTX ISA, Memory Consistency Model, release and acquire patterns).

static void build_fence(tl_lower *l, const tl_buffer *buffer, LLVMAtomicOrdering order) {
  LLVMBuildFenceSyncScope(l->builder, order, tl_lower_sync_scope(l, buffer), "");
}

static bool releases(const tl_op *op) {
  int64_t order = tl_op_int(op, TL_ATTR_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED);
  return order == TL_MEMORY_ORDER_RELEASE || order == TL_MEMORY_ORDER_ACQ_REL;
}

static bool acquires(const tl_op *op) {
  int64_t order = tl_op_int(op, TL_ATTR_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED);
  return order == TL_MEMORY_ORDER_ACQUIRE || order == TL_MEMORY_ORDER_ACQ_REL;
}

unsigned tl_lower_sync_scope(const tl_lower *l, const tl_buffer *buffer) {
  bool block = buffer->scope == TL_SCOPE_SHARED;
  return LLVMGetSyncScopeID(l->session->context, block ? "block" : "device", block ? 5 : 6);
}

// ---- one element

// Whether PTX has the update as one instruction (PTX ISA, atom), which the code generator uses.
static bool is_native(const tl_lower *l, const tl_atomic_update *update) {
  tl_dtype dtype = update->buffer->dtype;
  if (tl_dtype_bits(dtype) < 16) return false;
  if (update->is_bits) return tl_dtype_bits(dtype) >= 32;
  if (!tl_dtype_is_float(dtype)) return tl_dtype_bits(dtype) >= 32;
  if (update->kind != LLVMAtomicRMWBinOpFAdd) return false;
  return dtype != TL_DTYPE_BF16 || l->session->target->sm >= 90;
}

LLVMValueRef tl_lower_compare_exchange(tl_lower *l, const tl_atomic_update *update, LLVMValueRef expected,
                                       LLVMValueRef desired) {
  LLVMValueRef pair =
      LLVMBuildAtomicCmpXchgSyncScope(l->builder, update->pointer, expected, desired, LLVMAtomicOrderingMonotonic,
                                      LLVMAtomicOrderingMonotonic, tl_lower_sync_scope(l, update->buffer));
  return LLVMBuildExtractValue(l->builder, pair, 0, "");
}

static LLVMValueRef update_element(tl_lower *l, const tl_atomic_update *update) {
  if (!is_native(l, update)) return tl_lower_atomic_loop(l, update);
  if (update->compare) return tl_lower_compare_exchange(l, update, update->compare, update->value);
  return LLVMBuildAtomicRMWSyncScope(l->builder, update->kind, update->pointer, update->value,
                                     LLVMAtomicOrderingMonotonic, tl_lower_sync_scope(l, update->buffer));
}

// Integers of the element's width: a compare-and-swap compares bits, and exchanges need no float.
static LLVMValueRef as_bits(tl_lower *l, LLVMValueRef value, tl_dtype dtype) {
  LLVMTypeRef type = LLVMIntTypeInContext(l->session->context, (unsigned)tl_dtype_bits(dtype));
  return LLVMBuildBitCast(l->builder, value, type, "");
}

// The previous value where `condition` holds, else 0.
static LLVMValueRef update(tl_lower *l, const tl_op *op, const tl_buffer *buffer, LLVMValueRef pointer,
                           LLVMValueRef value, LLVMValueRef compare, LLVMValueRef condition) {
  tl_atomic_update update = {buffer, pointer, LLVMAtomicRMWBinOpXchg, false, value, NULL};
  bool modifies = rmw_kind(tl_op_int(op, TL_ATTR_ATOMIC, 0), buffer->dtype, &update.kind);
  update.is_bits = !modifies || update.kind == LLVMAtomicRMWBinOpXchg;
  if (update.is_bits) update.value = as_bits(l, value, buffer->dtype);
  if (!modifies) update.compare = as_bits(l, compare, buffer->dtype);
  tl_guard guard = tl_lower_guard_begin(l, condition);
  if (releases(op)) build_fence(l, buffer, LLVMAtomicOrderingRelease);
  LLVMValueRef old = update_element(l, &update);
  if (acquires(op)) build_fence(l, buffer, LLVMAtomicOrderingAcquire);
  if (update.is_bits) old = LLVMBuildBitCast(l->builder, old, tl_session_type(l->session, buffer->dtype), "");
  tl_lower_guard_end(l, &guard);
  if (op->num_results == 0) return old;
  return tl_lower_guard_phi(l, &guard, old, tl_lower_zero(l, buffer->dtype));
}

static bool is_possible(const tl_op *op, tl_dtype dtype) {
  LLVMAtomicRMWBinOp kind;
  bool narrow = tl_dtype_is_float(dtype) && tl_dtype_bits(dtype) < 16;
  if (narrow || tl_dtype_bits(dtype) < 8 || dtype == TL_DTYPE_TF32 || dtype == TL_DTYPE_BOOL) return false;
  return tl_op_int(op, TL_ATTR_ATOMIC, 0) == TL_ATOMIC_CAS || rmw_kind(tl_op_int(op, TL_ATTR_ATOMIC, 0), dtype, &kind);
}

void tl_lower_op_ATOMIC(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_ATOMIC_buffer));
  tl_value *value = tl_op_arg(op, TL_GROUP_ATOMIC_value), *compare = tl_op_arg(op, TL_GROUP_ATOMIC_compare);
  if (!buffer) {
    tl_lower_internal(l, op, "the buffer has no memory");
    return;
  }
  if (!is_possible(op, buffer->dtype)) {
    tl_lower_unsupported(l, op, "this atomic on %s has no lowering", tl_dtype_name(buffer->dtype));
    return;
  }
  if (!l->parallel && op->num_results > 0 && op->results[0].uses) {
    tl_lower_unsupported(l, op, "the previous value of an atomic outside `parallel` has no lowering");
    return;
  }
  tl_lower_mark_element(l, op);
  int32_t width = l->parallel ? l->parallel->width : 1, wide = reduction_width(l, op, buffer);
  LLVMValueRef condition = l->parallel ? l->parallel->place.owner : tl_lower_is_first_thread(l), out[TL_MAX_GROUP];
  for (int32_t e = 0; e < width; e += wide ? wide : 1) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_ATOMIC_buffer, TL_GROUP_ATOMIC_index, e);
    if (!access) return;
    tl_place place = tl_lower_element_place(l, e);
    LLVMValueRef inside = tl_lower_and(l, condition, tl_lower_access_inside(l, access, &place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place);
    LLVMValueRef other = compare ? tl_lower_get(l, compare, e) : NULL;
    bool has_instruction = buffer->dtype != TL_DTYPE_BF16 || l->session->target->sm >= FIRST_VECTOR_SM;
    if (wide && has_instruction)
      reduce(l, op, buffer->dtype, pointer, e, wide, inside);
    else if (wide)
      reduce_in_loop(l, op, buffer, pointer, e, inside);
    else
      out[e] = update(l, op, buffer, pointer, tl_lower_get(l, value, e), other, inside);
  }
  if (op->num_results > 0) tl_lower_set(l, tl_op_result(op, 0), out, width);
}

// The first thread reads with acquire until the comparison holds, and rests between two reads.
void tl_lower_op_WAIT_UNTIL(tl_lower *l, tl_op *op) {
  tl_session *s = l->session;
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer));
  tl_mem_access *access =
      buffer ? tl_lower_element_access(l, op, TL_GROUP_WAIT_UNTIL_buffer, TL_GROUP_WAIT_UNTIL_index, 0) : NULL;
  if (!access) {
    tl_lower_internal(l, op, "the buffer has no memory");
    return;
  }
  LLVMValueRef value = tl_lower_get(l, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_value), 0);
  LLVMValueRef pointer = tl_lower_access_pointer(l, access, NULL);
  LLVMValueRef is_first = tl_lower_is_first_thread(l), inside = tl_lower_access_inside(l, access, NULL);
  LLVMValueRef condition = tl_lower_and(l, is_first, inside);
  tl_guard guard = tl_lower_guard_begin(l, condition);
  LLVMBasicBlockRef body = tl_lower_new_block(l), rest = tl_lower_new_block(l), after = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, body);
  LLVMPositionBuilderAtEnd(l->builder, body);
  LLVMValueRef now = LLVMBuildLoad2(l->builder, LLVMTypeOf(value), pointer, "");
  LLVMSetAlignment(now, (unsigned)tl_dtype_bits(buffer->dtype) / 8);
  LLVMSetOrdering(now, LLVMAtomicOrderingAcquire);
  LLVMSetAtomicSyncScopeID(now, tl_lower_sync_scope(l, buffer));
  LLVMIntPredicate predicate =
      tl_lower_int_predicate(tl_op_int(op, TL_ATTR_CMP, TL_CMP_EQ), tl_dtype_is_signed_int(buffer->dtype));
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, predicate, now, value, ""), after, rest);
  LLVMPositionBuilderAtEnd(l->builder, rest);
  LLVMValueRef nanoseconds = tl_session_i32(s, 32);
  tl_session_call_device(s, l->builder, TL_DEVOP_NANOSLEEP, &nanoseconds, 1);
  LLVMBuildBr(l->builder, body);
  LLVMPositionBuilderAtEnd(l->builder, after);
  tl_lower_guard_end(l, &guard);
}
