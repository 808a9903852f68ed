// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Content that nobody wrote. It is no undef of LLVM's, which would take the code that reads it away before anything can
// check it, but the result of tl.undefined.*, with which LLVM can do what it can do with a number it does not know. The
// emulator follows it; code generation makes it zero.
#include <string.h>

#include "llvm_backend/lower/state/lower.h"

// Copies of an undefined tile that layouts want are one variable.
static bool same_variable(const tl_debug_variable *a, const tl_debug_variable *b) {
  bool same_name = a->name && b->name ? !strcmp(a->name, b->name) : a->name == b->name;
  return same_name && a->is_fragment && b->is_fragment && tl_layout_equal(&a->layout, &b->layout);
}

static int32_t add_variable(tl_lower *l, const tl_debug_variable *variable) {
  for (size_t i = 0; i < l->variables.len; i++)
    if (same_variable(&l->variables.items[i], variable)) return (int32_t)i;
  tl_vec_push(&l->variables, *variable);
  return (int32_t)l->variables.len - 1;
}

int32_t tl_lower_fragment_variable(tl_lower *l, const tl_value *tile) {
  return add_variable(
      l, &(tl_debug_variable){
             .name = tile->name, .is_fragment = true, .rank = tile->type->rank, .layout = *tile->type->layout});
}

int32_t tl_lower_local_variable(tl_lower *l, const tl_value *value) {
  tl_debug_variable variable = {.name = value->name, .rank = value->type->rank};
  for (int32_t d = 0; d < variable.rank; d++) variable.dims[d] = (int32_t)value->type->dims[d];
  return add_variable(l, &variable);
}

static tl_device_op_id op_for(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_BOOL:
      return TL_DEVOP_UNDEFINED_I1;
    case TL_DTYPE_F16:
      return TL_DEVOP_UNDEFINED_F16;
    case TL_DTYPE_BF16:
      return TL_DEVOP_UNDEFINED_BF16;
    case TL_DTYPE_F32:
    case TL_DTYPE_TF32:
      return TL_DEVOP_UNDEFINED_F32;
    case TL_DTYPE_F64:
      return TL_DEVOP_UNDEFINED_F64;
    default:
      break;
  }
  int32_t bits = tl_dtype_bits(dtype);
  return bits == 64 ? TL_DEVOP_UNDEFINED_I64 : bits == 32 ? TL_DEVOP_UNDEFINED_I32 : TL_DEVOP_UNDEFINED_I16;
}

LLVMValueRef tl_lower_undefined(tl_lower *l, tl_dtype dtype, int32_t variable, LLVMValueRef element) {
  LLVMValueRef args[] = {tl_session_i32(l->session, variable), element};
  LLVMValueRef value = tl_session_call_device(l->session, l->builder, op_for(dtype), args, 2);
  LLVMTypeRef type = tl_session_type(l->session, dtype);
  return LLVMTypeOf(value) == type ? value : LLVMBuildTrunc(l->builder, value, type, "");
}

void tl_lower_op_UNDEF(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  int32_t variable = tl_lower_local_variable(l, result);
  tl_lower_set_one(l, result, tl_lower_undefined(l, result->type->dtype, variable, tl_session_i32(l->session, 0)));
}
