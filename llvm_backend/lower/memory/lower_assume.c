// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of which the author knows something: the value itself, and a call by which the emulator looks. LLVM is told
// nothing, so that it cannot drop the test.
#include "llvm_backend/lower/memory/lower_print.h"

static LLVMValueRef as_i64(tl_lower *l, const tl_value *value, int32_t e) {
  LLVMValueRef item = tl_lower_get(l, value, e);
  if (value->type->kind == TL_TYPE_INDEX) return tl_lower_index_as(l, l->builder, item, l->session->i64);
  if (tl_dtype_bits(value->type->dtype) == 64) return item;
  return tl_dtype_is_signed_int(value->type->dtype) ? LLVMBuildSExt(l->builder, item, l->session->i64, "")
                                                    : LLVMBuildZExt(l->builder, item, l->session->i64, "");
}

static LLVMValueRef holds(tl_lower *l, const tl_op *op, int32_t e) {
  tl_value *lower = tl_op_arg(op, TL_GROUP_ASSUME_lower), *upper = tl_op_arg(op, TL_GROUP_ASSUME_upper);
  LLVMValueRef value = as_i64(l, tl_op_operand(op, 0), e), all = NULL;
  int64_t divisor = tl_op_int(op, TL_ATTR_DIVISOR, 1);
  if (lower) all = LLVMBuildICmp(l->builder, LLVMIntSGE, value, as_i64(l, lower, e), "");
  if (upper) all = tl_lower_and(l, all, LLVMBuildICmp(l->builder, LLVMIntSLT, value, as_i64(l, upper, e), ""));
  if (divisor > 1) {
    LLVMValueRef rest = LLVMBuildSRem(l->builder, value, tl_session_i64(l->session, divisor), "");
    all = tl_lower_and(l, all, LLVMBuildICmp(l->builder, LLVMIntEQ, rest, tl_session_i64(l->session, 0), ""));
  }
  return all;
}

static void look(tl_lower *l, const tl_op *op, LLVMValueRef text, LLVMValueRef file, int32_t e) {
  LLVMValueRef fine = holds(l, op, e);
  if (!fine) return;
  // Who has no element here, or takes part without effect, may have any value.
  LLVMValueRef counts = tl_lower_and(l, l->parallel ? l->parallel->place.owner : NULL, l->copies_if);
  if (counts) fine = LLVMBuildOr(l->builder, fine, LLVMBuildNot(l->builder, counts, ""), "");
  LLVMValueRef args[] = {text, file, tl_session_i32(l->session, tl_op_int(op, TL_ATTR_LINE, 0)), fine};
  tl_session_call_device(l->session, l->builder, TL_DEVOP_ASSUME, args, 4);
}

// Code has no use for it; requirements are the launcher's.
void tl_lower_op_LAUNCHED(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  LLVMValueRef item = tl_lower_get(l, tl_op_operand(op, 0), 0);
  tl_lower_set_one(l, result, tl_lower_index_as(l, l->builder, item, tl_lower_value_type(l, result)));
}

void tl_lower_op_ASSUME(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  bool is_index = result->type->kind == TL_TYPE_INDEX;
  LLVMTypeRef type = tl_lower_value_type(l, result);
  LLVMValueRef text = tl_lower_text(l, tl_str_from(tl_op_str(op, TL_ATTR_TEXT)));
  LLVMValueRef file = tl_lower_text(l, tl_str_from(tl_op_str(op, TL_ATTR_NAME)));
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = 1;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    int32_t count = tl_lower_len(l, tl_op_operand(op, i));
    if (count > len) len = count;
  }
  for (int32_t e = 0; e < len; e++) {
    look(l, op, text, file, e);
    LLVMValueRef item = tl_lower_get(l, tl_op_operand(op, 0), e);
    out[e] = is_index ? tl_lower_index_as(l, l->builder, item, type) : item;
  }
  tl_lower_set(l, result, out, len);
}
