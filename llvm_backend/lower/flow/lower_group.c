// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow inside a group of a parallel's elements. What is decided alike for all of them runs once, with the
// group's vectors. A branch that varies has a path with vectors for groups whose elements all take it, and one element
// by element otherwise; a loop that varies runs element by element.
#include "llvm_backend/lower/flow/lower_group.h"

bool tl_lower_varies(tl_lower *l, const tl_value *value) {
  return l->parallel && l->parallel->width > 1 && tl_lower_len(l, value) > 1;
}

void tl_lower_by_elements(tl_lower *l, tl_op *op) {
  tl_parallel *parallel = l->parallel;
  int32_t width = parallel->width;
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, op->num_results * (uint32_t)width + 1);
  parallel->width = 1;
  for (int32_t e = 0; e < width && !tl_lower_failed(l); e++) {
    parallel->element = e;
    if (op->code == TL_OP_IF)
      tl_lower_op_IF(l, op);
    else
      tl_lower_op_FOR(l, op);
    for (uint32_t r = 0; r < op->num_results && !tl_lower_failed(l); r++)
      items[r * (uint32_t)width + (uint32_t)e] = tl_lower_get(l, &op->results[r], 0);
  }
  parallel->element = 0;
  parallel->width = width;
  for (uint32_t r = 0; r < op->num_results && !tl_lower_failed(l); r++)
    tl_lower_set(l, &op->results[r], items + r * (uint32_t)width, width);
}

static void find_vector(tl_op *op, void *user) {
  if (tl_op_has(op, TL_ATTR_VEC) || tl_op_has(op, TL_ATTR_REPEAT)) *(bool *)user = true;
}

static LLVMValueRef all_elements(tl_lower *l, const tl_value *condition) {
  LLVMValueRef all = NULL;
  for (int32_t e = 0; e < l->parallel->width; e++) all = tl_lower_and(l, all, tl_lower_get(l, condition, e));
  return all;
}

// What `values` stand for at the end of a path, in the types of the results.
static LLVMValueRef *path_items(tl_lower *l, tl_op *op, const tl_op *yield) {
  uint32_t width = (uint32_t)l->parallel->width;
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, op->num_results * width + 1);
  for (uint32_t r = 0; r < op->num_results; r++) {
    const tl_value *result = &op->results[r], *value = yield ? tl_op_operand(yield, r) : result;
    for (uint32_t e = 0; e < width; e++) {
      LLVMValueRef item = tl_lower_get(l, value, (int32_t)e);
      bool is_index = result->type->kind == TL_TYPE_INDEX;
      items[r * width + e] = is_index ? tl_lower_index_as(l, l->builder, item, tl_lower_value_type(l, result)) : item;
    }
  }
  return items;
}

void tl_lower_varying_if(tl_lower *l, tl_op *op) {
  bool has_vectors = false;
  tl_walk(op, find_vector, &has_vectors);
  if (!has_vectors) {
    tl_lower_by_elements(l, op);
    return;
  }
  LLVMValueRef all = all_elements(l, tl_op_arg(op, TL_GROUP_IF_condition));
  LLVMBasicBlockRef ends[2], whole = tl_lower_new_block(l), parts = tl_lower_new_block(l),
                             after = tl_lower_new_block(l);
  LLVMBuildCondBr(l->builder, all, whole, parts);
  LLVMPositionBuilderAtEnd(l->builder, whole);
  tl_lower_block(l, op->regions[0]);
  if (tl_lower_failed(l)) return;
  LLVMValueRef *items[2] = {path_items(l, op, tl_block_terminator(op->regions[0])), NULL};
  ends[0] = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, after);
  LLVMPositionBuilderAtEnd(l->builder, parts);
  tl_lower_by_elements(l, op);
  if (tl_lower_failed(l)) return;
  items[1] = path_items(l, op, NULL);
  ends[1] = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, after);
  LLVMPositionBuilderAtEnd(l->builder, after);
  uint32_t width = (uint32_t)l->parallel->width;
  for (uint32_t r = 0; r < op->num_results; r++) {
    LLVMValueRef phis[TL_MAX_GROUP];
    for (uint32_t e = 0; e < width; e++) {
      LLVMValueRef values[] = {items[0][r * width + e], items[1][r * width + e]};
      phis[e] = LLVMBuildPhi(l->builder, LLVMTypeOf(values[0]), "");
      LLVMAddIncoming(phis[e], values, ends, 2);
    }
    tl_lower_set(l, &op->results[r], phis, (int32_t)width);
  }
}
