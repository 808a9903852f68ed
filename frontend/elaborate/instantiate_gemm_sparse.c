// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm: acc += sparse(A, meta) @ B, of which A holds two of each four neighbours along K.
#include "frontend/elaborate/instantiate_gemm.h"

enum { ELEMENTS = 16 };  // of K for which one number of the metadata tells

bool tl_gemm_parse_left(tl_sema *sema, const tl_expr *expr, tl_gemm_left *out) {
  *out = (tl_gemm_left){.meta = {.symbol = NULL}};
  if (expr->kind != TL_EXPR_CALL) return tl_gemm_parse_operand(sema, expr, &out->a);
  bool ok = tl_gemm_parse_operand(sema, expr->operands[0], &out->a);
  ok = tl_gemm_parse_operand(sema, expr->operands[1], &out->meta) && ok;
  if (!ok) return false;
  out->a.expr = expr;
  out->a.columns *= 2;
  return true;
}

static bool refuse(tl_sema *sema, tl_loc loc, const char *text, const char *hint) {
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, loc, "%s", text);
  if (hint) tl_diag_add_hint(sema->diags, diag, "%s", hint);
  return false;
}

static bool validate_meta(tl_sema *sema, const tl_gemm_left *left) {
  const tl_gemm_operand *meta = &left->meta;
  const tl_type *type = meta->symbol->value->type;
  if (type->dtype != TL_DTYPE_U16 || type->scope != TL_SCOPE_SHARED || meta->transposed)
    return refuse(sema, meta->expr->loc, "the metadata is a shared tile of u16",
                  "each number tells of 16 elements of K: two bits for each of the 8 that are there");
  if (meta->rows == left->a.rows && meta->columns * ELEMENTS == left->a.columns) return true;
  int64_t want[2] = {left->a.rows, left->a.columns / ELEMENTS}, have[2] = {meta->rows, meta->columns};
  tl_diag_report(sema->diags, TL_DIAG_GEMM_SHAPE, meta->expr->loc,
                 "the metadata of `%s` is [M, K / 16], here %s; `%s` is %s", tl_sema_expr_text(sema, left->a.expr),
                 tl_sema_shape_text(sema->arena, want, 2), tl_sema_expr_text(sema, meta->expr),
                 tl_sema_shape_text(sema->arena, have, 2));
  return false;
}

bool tl_gemm_validate_sparse(tl_sema *sema, const tl_gemm_left *left, const tl_gemm_operand *b, int mma, tl_loc loc) {
  const tl_gemm_operand *a = &left->a;
  tl_dtype dtype = a->symbol->value->type->dtype;
  bool is_half = dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  bool is_byte = dtype == TL_DTYPE_I8 || dtype == TL_DTYPE_U8;
  tl_dtype other = b->symbol->value->type->dtype;
  if ((!is_half && !is_byte) || tl_dtype_bits(other) != tl_dtype_bits(dtype)) {
    tl_diag_report(sema->diags, TL_DIAG_GEMM_DTYPE, loc,
                   "sparse products are of f16, bf16, i8 and u8, not of %s and %s", tl_dtype_name(dtype),
                   tl_dtype_name(other));
    return false;
  }
  if (a->transposed)
    return refuse(sema, a->expr->loc, "a sparse operand is not transposed: its pairs lie along K", NULL);
  if (mma != TL_MMA_AUTO && mma != TL_MMA_MMA)
    return refuse(sema, loc, "sparse products run on mma only", "leave `mma` out, or write `mma: mma`");
  int64_t step = is_half ? 32 : 64;
  if (a->columns % step != 0) {
    tl_diag_report(sema->diags, TL_DIAG_GEMM_SHAPE, a->expr->loc,
                   "K of a sparse product of %s is a multiple of %lld, `%s` has %lld", tl_dtype_name(dtype),
                   (long long)step, tl_sema_expr_text(sema, a->expr), (long long)a->columns);
    return false;
  }
  return validate_meta(sema, left);
}
