// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_product.h"

// X[i, j] with an argument X and two different names.
typedef struct matrix {
  tl_str name, row, column;
} matrix;

static bool read_matrix(const tl_kernel_spec *kernel, const tl_expr *expr, matrix *out) {
  if (expr->kind != TL_EXPR_INDEX || expr->num_subscripts != 2 || expr->operands[0]->kind != TL_EXPR_NAME) return false;
  for (int i = 0; i < 2; i++) {
    const tl_subscript *subscript = &expr->subscripts[i];
    if (subscript->kind != TL_SUBSCRIPT_ELEMENT || subscript->lo->kind != TL_EXPR_NAME) return false;
  }
  *out = (matrix){expr->operands[0]->text, expr->subscripts[0].lo->text, expr->subscripts[1].lo->text};
  if (tl_str_equal(out->row, out->column)) return false;
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    if (tl_str_equal(kernel->args[i].name, out->name)) return true;
  }
  return false;
}

// Whether `x` is (a, b), possibly the other way round.
static bool has_indices(const matrix *x, tl_str a, tl_str b, bool *out_transposed) {
  *out_transposed = tl_str_equal(x->row, b) && tl_str_equal(x->column, a);
  return *out_transposed || (tl_str_equal(x->row, a) && tl_str_equal(x->column, b));
}

const char *tl_bench_find_product(const tl_kernel_spec *kernel, tl_bench_product *out) {
  const tl_check *check = &kernel->check;
  if (!check->present || check->num_reference == 0) return "the spec has no reference";
  if (check->num_reference > 1 || check->reference[0].is_recur) return "the reference is more than one assignment";
  const tl_assign *assign = &check->reference[0].assign;
  const tl_expr *sum = assign->value;
  matrix c, left, right;
  if (assign->num_targets != 1 || !tl_str_is(assign->op, "=") || !read_matrix(kernel, assign->targets[0], &c)) {
    return "the reference does not assign a matrix C[m, n]";
  }
  bool is_sum = sum->kind == TL_EXPR_REDUCTION && tl_str_is(sum->text, "sum") && sum->num_indices == 1 &&
                !sum->indices[0].lo && !sum->indices[0].hi;
  const tl_expr *product = is_sum ? sum->operands[0] : NULL;
  if (!product || product->kind != TL_EXPR_BINARY || product->op != TL_EXPR_OP_MUL ||
      !read_matrix(kernel, product->operands[0], &left) || !read_matrix(kernel, product->operands[1], &right)) {
    return "the reference is not sum[k](A[m, k] * B[k, n]) of two arguments";
  }
  tl_str k = sum->indices[0].name;
  // The factors may stand in either order.
  for (int swap = 0; swap < 2; swap++) {
    const matrix *a = swap ? &right : &left, *b = swap ? &left : &right;
    if (!has_indices(a, c.row, k, &out->a_transposed) || !has_indices(b, k, c.column, &out->b_transposed)) continue;
    out->a = a->name;
    out->b = b->name;
    out->c = c.name;
    return NULL;
  }
  return "the indices of the reference are not those of a matrix product";
}
