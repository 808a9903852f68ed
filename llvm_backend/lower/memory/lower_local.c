// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local arrays: private to one element of a parallel, hence to a thread. They are LLVM's to keep: in registers where
// every subscript is a constant after unrolling, else in local memory.
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

tl_buffer *tl_lower_local_array(tl_lower *l, const tl_type *type) {
  tl_buffer *buffer = TL_NEW(&l->arena, tl_buffer);
  buffer->scope = TL_SCOPE_LOCAL;
  buffer->dtype = type->dtype;
  buffer->rank = type->rank;
  for (int32_t d = 0; d < type->rank; d++) buffer->dims[d] = type->dims[d];
  uint64_t count = (uint64_t)tl_type_num_elements(type);
  LLVMTypeRef array = LLVMArrayType2(tl_session_type(l->session, type->dtype), count);
  buffer->base = LLVMBuildAlloca(l->entry, array, "");
  return buffer;
}

static void store_undefined(tl_lower *l, const tl_buffer *buffer, LLVMValueRef element) {
  LLVMTypeRef type = tl_session_type(l->session, buffer->dtype);
  LLVMValueRef pointer = LLVMBuildGEP2(l->builder, type, buffer->base, &element, 1, "");
  LLVMBuildStore(l->builder, tl_lower_undefined(l, buffer->dtype, buffer->variable, element), pointer);
}

// A loop over the elements of an array that cannot stay in registers as a whole.
static void begin_long_array(tl_lower *l, const tl_buffer *buffer, int64_t count) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), body = tl_lower_new_block(l);
  LLVMBasicBlockRef after = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, body);
  LLVMPositionBuilderAtEnd(l->builder, body);
  LLVMValueRef element = LLVMBuildPhi(l->builder, l->session->i32, "");
  store_undefined(l, buffer, element);
  LLVMValueRef next = LLVMBuildNSWAdd(l->builder, element, tl_session_i32(l->session, 1), "");
  LLVMValueRef incoming[] = {tl_session_i32(l->session, 0), next};
  LLVMAddIncoming(element, incoming, (LLVMBasicBlockRef[]){before, body}, 2);
  LLVMValueRef again = LLVMBuildICmp(l->builder, LLVMIntSLT, next, tl_session_i32(l->session, count), "");
  tl_lower_set_unroll(l, LLVMBuildCondBr(l->builder, again, body, after), 0);
  LLVMPositionBuilderAtEnd(l->builder, after);
}

void tl_lower_local_begin(tl_lower *l) {
  for (size_t i = 0; i < l->parallel->arrays.len && !tl_lower_failed(l); i++) {
    const tl_value *array = l->parallel->arrays.items[i];
    const tl_buffer *buffer = tl_lower_buffer(l, array);
    int64_t count = buffer ? tl_type_num_elements(array->type) : 0;
    if (count > TL_MAX_REGISTERS_PER_THREAD) {
      begin_long_array(l, buffer, count);
      continue;
    }
    for (int64_t e = 0; e < count; e++) store_undefined(l, buffer, tl_session_i32(l->session, e));
  }
}

static LLVMValueRef element_pointer(tl_lower *l, const tl_buffer *buffer, tl_op *op, int index_group) {
  LLVMTypeRef i32 = l->session->i32;
  LLVMValueRef offset = LLVMConstInt(i32, 0, 0);
  for (int32_t d = 0; d < buffer->rank; d++) {
    LLVMValueRef index = tl_lower_get(l, tl_op_group_at(op, index_group, (uint32_t)d), 0);
    offset = LLVMBuildNSWMul(l->builder, offset, tl_session_i32(l->session, buffer->dims[d]), "");
    offset = LLVMBuildNSWAdd(l->builder, offset, tl_lower_index_as(l, l->builder, index, i32), "");
  }
  return LLVMBuildGEP2(l->builder, tl_session_type(l->session, buffer->dtype), buffer->base, &offset, 1, "");
}

static tl_buffer *local_buffer(tl_lower *l, const tl_op *op, tl_value *value) {
  tl_buffer *buffer = tl_lower_buffer(l, value);
  if (buffer && l->parallel && l->parallel->width == 1) return buffer;
  tl_lower_internal(l, op, "a local array outside of the elements of a parallel");
  return NULL;
}

void tl_lower_local_load(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = local_buffer(l, op, tl_op_arg(op, TL_GROUP_LOAD_buffer));
  if (!buffer) return;
  LLVMValueRef pointer = element_pointer(l, buffer, op, TL_GROUP_LOAD_index);
  tl_lower_set_one(l, tl_op_result(op, 0),
                   LLVMBuildLoad2(l->builder, tl_session_type(l->session, buffer->dtype), pointer, ""));
}

void tl_lower_local_store(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = local_buffer(l, op, tl_op_arg(op, TL_GROUP_STORE_buffer));
  if (!buffer) return;
  LLVMValueRef pointer = element_pointer(l, buffer, op, TL_GROUP_STORE_index);
  LLVMBuildStore(l->builder, tl_lower_get(l, tl_op_arg(op, TL_GROUP_STORE_value), 0), pointer);
}
