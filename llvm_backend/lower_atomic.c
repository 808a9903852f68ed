// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relaxed atomic updates of elements.
#include "llvm_backend/lower.h"
#include "llvm_backend/lower_memory.h"

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
    case TL_ATOMIC_COUNT:
      break;
  }
  return false;
}

// Additions of f32 to global memory without a result: predicated reductions, wide where the target has them.
static int32_t reduction_width(const tl_lower *l, const tl_op *op, const tl_buffer *buffer) {
  if (op->num_results > 0 || buffer->dtype != TL_DTYPE_F32 || buffer->scope != TL_SCOPE_GLOBAL) return 0;
  if (tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) != TL_ATOMIC_ADD) return 0;
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), width = l->parallel ? l->parallel->width : 1;
  if (l->session->target->sm < 90) return 1;
  if (vec >= 4 && width % 4 == 0) return 4;
  return vec >= 2 && width % 2 == 0 ? 2 : 1;
}

static void reduce(tl_lower *l, tl_op *op, LLVMValueRef pointer, int32_t e, int32_t width, LLVMValueRef condition) {
  static const tl_device_op_id ids[] = {0, TL_DEVOP_RED_F32, TL_DEVOP_RED_V2_F32, 0, TL_DEVOP_RED_V4_F32};
  LLVMValueRef args[6] = {pointer};
  unsigned n = 1;
  for (int32_t i = 0; i < width; i++) args[n++] = tl_lower_get(l, tl_op_arg(op, TL_GROUP_ATOMIC_value), e + i);
  args[n++] = condition ? condition : tl_session_bool(l->session, true);
  tl_session_call_device(l->session, l->builder, ids[width], args, n);
}

static LLVMValueRef update(tl_lower *l, tl_op *op, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef value,
                           LLVMAtomicRMWBinOp kind, LLVMValueRef condition) {
  const char *scope = buffer->scope == TL_SCOPE_SHARED ? "block" : "device";
  unsigned id = LLVMGetSyncScopeID(l->session->context, scope, buffer->scope == TL_SCOPE_SHARED ? 5 : 6);
  tl_guard guard = tl_lower_guard_begin(l, condition);
  LLVMValueRef old = LLVMBuildAtomicRMWSyncScope(l->builder, kind, pointer, value, LLVMAtomicOrderingMonotonic, id);
  tl_lower_guard_end(l, &guard);
  if (op->num_results == 0) return old;
  return tl_lower_guard_phi(l, &guard, old, tl_lower_zero(l, buffer->dtype));
}

void tl_lower_op_ATOMIC(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_ATOMIC_buffer));
  tl_value *value = tl_op_arg(op, TL_GROUP_ATOMIC_value);
  LLVMAtomicRMWBinOp kind;
  if (!buffer) {
    tl_lower_internal(l, op, "the buffer has no memory");
    return;
  }
  if (!tl_session_type(l->session, buffer->dtype) || buffer->dtype == TL_DTYPE_BOOL ||
      !rmw_kind(tl_op_int(op, TL_ATTR_ATOMIC, 0), buffer->dtype, &kind)) {
    tl_lower_unsupported(l, op, "this atomic on %s has no lowering", tl_dtype_name(buffer->dtype));
    return;
  }
  if (!l->parallel && op->num_results > 0 && op->results[0].uses) {
    tl_lower_unsupported(l, op, "the previous value of an atomic outside `parallel` has no lowering");
    return;
  }
  int32_t width = l->parallel ? l->parallel->width : 1, wide = reduction_width(l, op, buffer);
  LLVMValueRef condition = l->parallel ? l->parallel->place.owner : tl_lower_is_first_thread(l), out[TL_MAX_GROUP];
  for (int32_t e = 0; e < width; e += wide ? wide : 1) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_ATOMIC_buffer, TL_GROUP_ATOMIC_index, e);
    if (!access) return;
    tl_place place = tl_lower_element_place(l, e);
    LLVMValueRef inside = tl_lower_and(l, condition, tl_lower_access_inside(l, access, &place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place);
    if (wide)
      reduce(l, op, pointer, e, wide, inside);
    else
      out[e] = update(l, op, buffer, pointer, tl_lower_get(l, value, e), kind, inside);
  }
  if (op->num_results > 0) tl_lower_set(l, tl_op_result(op, 0), out, width);
}
