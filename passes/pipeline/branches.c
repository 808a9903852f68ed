// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/pipeline/branches.h"

tl_op *tl_branch_versions(tl_pass_context *context, tl_op *op, tl_value *condition) {
  tl_module *module = context->module;
  bool has_token = op->num_results == 1 && tl_op_result(op, 0)->type->kind == TL_TYPE_TOKEN;
  uint32_t num_results = has_token ? 0 : op->num_results;
  const tl_type **types = TL_NEW_ARRAY(&context->scratch, const tl_type *, num_results);
  for (uint32_t i = 0; i < num_results; i++) types[i] = tl_op_result(op, i)->type;
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  tl_group groups[] = {TL_GROUP_OF(condition)};
  tl_op *branch = tl_build(&builder, TL_OP_IF, groups, types, num_results);
  tl_op_set_unit(module, branch, TL_ATTR_UNIFORM);
  for (uint32_t i = 0; i < num_results; i++) {
    tl_op_result(branch, i)->name = tl_op_result(op, i)->name;
    tl_value_replace_uses(tl_op_result(op, i), tl_op_result(branch, i));
  }
  tl_value **results = TL_NEW_ARRAY(&context->scratch, tl_value *, num_results);
  tl_builder inner;
  tl_builder_at_end(&inner, module, branch->regions[0]);
  inner.loc = op->loc;
  tl_value_map map = {0};
  tl_op *clone = tl_op_clone(&inner, op, &map);
  tl_value_map_fini(&map);
  for (uint32_t i = 0; i < num_results; i++) results[i] = tl_op_result(clone, i);
  tl_build_yield(&inner, results, num_results);
  tl_op_move_to_end(op, branch->regions[1]);
  tl_builder_at_end(&inner, module, branch->regions[1]);
  inner.loc = op->loc;
  for (uint32_t i = 0; i < num_results; i++) results[i] = tl_op_result(op, i);
  tl_build_yield(&inner, results, num_results);
  return clone;
}
