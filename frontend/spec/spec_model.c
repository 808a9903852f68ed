// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Questions of the spec model that readers, macros and users of the model ask.
#include "frontend/spec/spec_internal.h"

const tl_kernel_spec *tl_spec_find(const tl_spec *spec, tl_str name) {
  for (uint32_t i = 0; i < spec->num_kernels; i++)
    if (tl_str_equal(spec->kernels[i].name, name)) return &spec->kernels[i];
  return NULL;
}

bool tl_spec_is_region(const tl_expr *expr) {
  while (expr->kind == TL_EXPR_INDEX || expr->kind == TL_EXPR_TRANSPOSE) expr = expr->operands[0];
  return expr->kind == TL_EXPR_NAME;
}

bool tl_spec_is_sparse(const tl_expr *operand) {
  return operand->kind == TL_EXPR_CALL && tl_str_is(operand->text, "sparse");
}
