// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm: operands, shapes and dtypes.
#include "frontend/elaborate/instantiate_gemm.h"

static bool report_operand(tl_sema *sema, tl_loc loc, const char *text) {
  tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, loc, "%s", text);
  return false;
}

static bool validate_scopes(tl_sema *sema, const tl_gemm_operand *acc, const tl_gemm_operand *a,
                            const tl_gemm_operand *b) {
  bool ok = true;
  if (acc->transposed) ok = report_operand(sema, acc->expr->loc, "the accumulator cannot be transposed");
  if (acc->symbol->value->type->scope == TL_SCOPE_GLOBAL)
    ok = report_operand(sema, acc->expr->loc, "the accumulator of gemm is a fragment or a shared tile");
  const tl_gemm_operand *operands[] = {a, b};
  for (int i = 0; i < 2; ++i) {
    if (operands[i]->symbol->value->type->scope != TL_SCOPE_GLOBAL) continue;
    ok = report_operand(sema, operands[i]->expr->loc,
                        "gemm reads shared and fragment tiles: copy the tensor's tile to shared first");
  }
  if (ok && a->symbol == acc->symbol && !a->is_slice && !acc->is_slice && !a->transposed)
    ok = report_operand(sema, a->expr->loc, "the accumulator cannot be an operand too");
  return ok;
}

static const char *operand_text(tl_sema *sema, const tl_gemm_operand *operand) {
  return tl_sema_expr_text(sema, operand->expr);
}

// Says which dims clash, and where `.T` would make all agree.
static bool validate_shapes(tl_sema *sema, const tl_gemm_operand *acc, const tl_gemm_operand *a,
                            const tl_gemm_operand *b, tl_loc loc) {
  if (acc->rows == a->rows && acc->columns == b->columns && a->columns == b->rows) return true;
  tl_strbuf clashes;
  tl_strbuf_init(&clashes);
  if (a->columns != b->rows) {
    tl_strbuf_appendf(&clashes, "; K of %s is %lld, K of %s is %lld", operand_text(sema, a), (long long)a->columns,
                      operand_text(sema, b), (long long)b->rows);
  }
  if (acc->rows != a->rows) {
    tl_strbuf_appendf(&clashes, "; M of %s is %lld, M of %s is %lld", operand_text(sema, acc), (long long)acc->rows,
                      operand_text(sema, a), (long long)a->rows);
  }
  if (acc->columns != b->columns) {
    tl_strbuf_appendf(&clashes, "; N of %s is %lld, N of %s is %lld", operand_text(sema, acc), (long long)acc->columns,
                      operand_text(sema, b), (long long)b->columns);
  }
  int64_t shapes[3][2] = {{acc->rows, acc->columns}, {a->rows, a->columns}, {b->rows, b->columns}};
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_GEMM_SHAPE, loc, "shapes of gemm disagree: %s %s += %s %s @ %s %s%s",
                     operand_text(sema, acc), tl_sema_shape_text(sema->arena, shapes[0], 2), operand_text(sema, a),
                     tl_sema_shape_text(sema->arena, shapes[1], 2), operand_text(sema, b),
                     tl_sema_shape_text(sema->arena, shapes[2], 2), tl_strbuf_c(&clashes));
  tl_strbuf_fini(&clashes);
  for (int flips = 1; flips < 4; ++flips) {
    int64_t m = flips & 1 ? a->columns : a->rows, ka = flips & 1 ? a->rows : a->columns;
    int64_t n = flips & 2 ? b->rows : b->columns, kb = flips & 2 ? b->columns : b->rows;
    if (m != acc->rows || n != acc->columns || ka != kb) continue;
    if (a->is_slice || b->is_slice) continue;
    tl_diag_add_hint(sema->diags, diag, "`%.*s%s @ %.*s%s` would fit", TL_STR_ARG(a->symbol->name),
                     a->transposed != ((flips & 1) != 0) ? ".T" : "", TL_STR_ARG(b->symbol->name),
                     b->transposed != ((flips & 2) != 0) ? ".T" : "");
    break;
  }
  return false;
}

static bool is_f8(tl_dtype dtype) {
  return dtype == TL_DTYPE_F8E4M3 || dtype == TL_DTYPE_F8E5M2;
}

static bool is_byte(tl_dtype dtype) {
  return dtype == TL_DTYPE_I8 || dtype == TL_DTYPE_U8;
}

static bool is_nibble(tl_dtype dtype) {
  return dtype == TL_DTYPE_I4 || dtype == TL_DTYPE_U4;
}

// What products of two tiles are added up in; the first is what to suggest. NONE: there is no such product.
static tl_dtype accumulator_of(tl_dtype a, tl_dtype b, tl_dtype *out_other) {
  *out_other = TL_DTYPE_NONE;
  if ((is_byte(a) || is_nibble(a)) && (is_byte(b) || is_nibble(b))) return TL_DTYPE_I32;
  if (is_f8(a) && is_f8(b)) return TL_DTYPE_F32;
  if (a != b) return TL_DTYPE_NONE;
  if (a == TL_DTYPE_F16) *out_other = TL_DTYPE_F16;
  if (a == TL_DTYPE_F16 || a == TL_DTYPE_BF16 || a == TL_DTYPE_TF32 || a == TL_DTYPE_F32) return TL_DTYPE_F32;
  return a == TL_DTYPE_F64 ? TL_DTYPE_F64 : TL_DTYPE_NONE;
}

static bool validate_dtypes(tl_sema *sema, const tl_gemm_operand *acc, const tl_gemm_operand *a,
                            const tl_gemm_operand *b, tl_loc loc) {
  tl_dtype dtype = a->symbol->value->type->dtype, other = b->symbol->value->type->dtype, second;
  tl_dtype result = acc->symbol->value->type->dtype, first = accumulator_of(dtype, other, &second);
  if (first == TL_DTYPE_NONE && dtype != other) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_GEMM_DTYPE, loc, "`%s` is %s but `%s` is %s: gemm takes two of one dtype",
                       operand_text(sema, a), tl_dtype_name(dtype), operand_text(sema, b), tl_dtype_name(other));
    tl_diag_add_hint(
        sema->diags, diag,
        "convert one while copying it to its tile (only f8e4m3 with f8e5m2, and integers of 8 and 4 bits, may differ)");
    return false;
  }
  if (first == TL_DTYPE_NONE) {
    tl_diag_report(sema->diags, TL_DIAG_GEMM_DTYPE, loc, "gemm does not multiply tiles of %s", tl_dtype_name(dtype));
    return false;
  }
  if (result == first || (second != TL_DTYPE_NONE && result == second)) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_GEMM_DTYPE, acc->expr->loc,
                                 "products of %s are added up in %s%s%s, not in %s", tl_dtype_name(dtype),
                                 tl_dtype_name(first), second == TL_DTYPE_NONE ? "" : " or ",
                                 second == TL_DTYPE_NONE ? "" : tl_dtype_name(second), tl_dtype_name(result));
  tl_diag_add_note(sema->diags, diag, acc->symbol->loc, "the accumulator is declared here");
  return false;
}

// The option `accumulate`, which products of 8-bit floats take; -1 after an error.
static int accumulate_option(tl_sema *sema, const tl_stmt *stmt, const tl_gemm_operand *a) {
  const tl_option *option = tl_instantiate_option(stmt, "accumulate");
  int value = tl_instantiate_enum_option(sema, stmt, "accumulate", TL_IR_ENUM_ACCUMULATE, TL_ACCUMULATE_PROMOTED);
  if (!option || value < 0 || is_f8(a->symbol->value->type->dtype)) return value;
  tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->loc,
                 "`accumulate` is for products of f8e4m3 and f8e5m2; `%s` is %s", operand_text(sema, a),
                 tl_dtype_name(a->symbol->value->type->dtype));
  return -1;
}

// Why integers of 4 bits among the operands become 8 bits wide, or NULL: two of 4 bits are multiplied as they are.
static const char *why_bytes(tl_sema *sema, const tl_gemm_operand *a, const tl_gemm_operand *b, int mma) {
  enum { FIRST_SM = 80, LAST_SM = 89, STEP = 32 };  // later ones have mma of 4 bits, but no units for it
  const tl_type *left = a->symbol->value->type, *right = b->symbol->value->type;
  if (!is_nibble(left->dtype) || !is_nibble(right->dtype)) return "the other operand is of 8 bits";
  if (!sema->target || sema->target->sm < FIRST_SM || sema->target->sm > LAST_SM)
    return "the target has no units for products of 4 bits";
  if (mma != TL_MMA_AUTO && mma != TL_MMA_MMA) return "only mma multiplies 4 bits";
  if (left->scope != TL_SCOPE_SHARED || right->scope != TL_SCOPE_SHARED || a->is_slice || b->is_slice)
    return "products of 4 bits read whole shared tiles";
  if (a->transposed || !b->transposed || a->columns % STEP != 0)
    return "products of 4 bits read rows of multiples of 32 along K, as of `A @ B.T`";
  return NULL;
}

void tl_instantiate_gemm(tl_sema *sema, const tl_stmt *stmt) {
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`gemm`")) return;
  const tl_assign *assign = &stmt->assign;
  bool is_clear = tl_str_is(assign->op, "=");
  if (assign->num_targets != 1 || !(is_clear || tl_str_is(assign->op, "+=")) || assign->value->kind != TL_EXPR_BINARY ||
      assign->value->op != TL_EXPR_OP_MATMUL) {
    report_operand(sema, assign->loc, "gemm is written `acc += A @ B` or `acc = A @ B`");
    return;
  }
  tl_gemm_operand acc, b;
  tl_gemm_left left;
  bool ok = tl_gemm_parse_operand(sema, assign->targets[0], &acc);
  ok = tl_gemm_parse_left(sema, assign->value->operands[0], &left) && ok;
  ok = tl_gemm_parse_operand(sema, assign->value->operands[1], &b) && ok;
  int policy = tl_instantiate_enum_option(sema, stmt, "policy", TL_IR_ENUM_POLICY, TL_POLICY_SQUARE);
  int mma = tl_instantiate_enum_option(sema, stmt, "mma", TL_IR_ENUM_MMA, TL_MMA_AUTO);
  if (!ok || policy < 0 || mma < 0 || !validate_scopes(sema, &acc, &left.a, &b)) return;
  bool is_sparse = left.meta.symbol != NULL;
  if (is_sparse && !tl_gemm_validate_sparse(sema, &left, &b, mma, assign->value->loc)) return;
  ok = validate_shapes(sema, &acc, &left.a, &b, assign->loc);
  ok = validate_dtypes(sema, &acc, &left.a, &b, assign->value->loc) && ok;
  int accumulate = ok ? accumulate_option(sema, stmt, &left.a) : -1;
  const tl_option *async = tl_instantiate_option(stmt, "async");
  bool is_async = false;
  if (accumulate < 0 || (async && !tl_instantiate_flag(sema, async->value, "async", &is_async))) return;
  const char *widened = why_bytes(sema, &left.a, &b, mma);
  tl_value *first = tl_gemm_read_operand(sema, stmt, &left.a, !is_sparse, widened);
  tl_value *right = tl_gemm_read_operand(sema, stmt, &b, false, widened);
  tl_value *meta = is_sparse ? tl_gemm_read_operand(sema, stmt, &left.meta, false, NULL) : NULL;
  tl_gemm_sums sums;
  tl_gemm_begin_sums(sema, stmt, &acc, is_clear, &sums);
  sema->builder.loc = stmt->loc;
  tl_group groups[] = {TL_GROUP_OF(sums.value), TL_GROUP_OF(first), TL_GROUP_OF(right), {&meta, meta ? 1 : 0}};
  tl_op *op = tl_build(&sema->builder, TL_OP_GEMM, groups, NULL, 0);
  if (left.a.transposed) tl_op_set_unit(sema->module, op, TL_ATTR_TRANS_A);
  if (b.transposed) tl_op_set_unit(sema->module, op, TL_ATTR_TRANS_B);
  if (is_clear) tl_op_set_unit(sema->module, op, TL_ATTR_CLEAR);
  if (mma != TL_MMA_AUTO) tl_op_set_int(sema->module, op, TL_ATTR_MMA, mma);
  if (accumulate != TL_ACCUMULATE_PROMOTED) tl_op_set_int(sema->module, op, TL_ATTR_ACCUMULATE, accumulate);
  if (tl_instantiate_option(stmt, "policy")) tl_op_set_int(sema->module, op, TL_ATTR_POLICY, policy);
  if (is_async) tl_op_set_unit(sema->module, op, TL_ATTR_BY_HAND);
  tl_gemm_end_sums(sema, stmt, &sums);
}

void tl_instantiate_wait_gemm(tl_sema *sema, const tl_stmt *stmt) {
  enum { MAX_GEMMS = 7 };  // PTX ISA, "wgmma.wait_group": an immediate
  int64_t pending;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`wait_gemm`")) return;
  if (!tl_sema_const_int(sema, stmt->condition, "`wait_gemm`", &pending)) return;
  if (pending < 0 || pending > MAX_GEMMS) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, stmt->condition->loc,
                                   "`wait_gemm` takes a constant from 0 to %d", MAX_GEMMS);
    tl_diag_add_hint(sema->diags, diag, "it is the number of later products that may still be in flight");
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_op *wait = tl_build(&sema->builder, TL_OP_GEMM_WAIT, (tl_group[]){TL_GROUP_EMPTY, TL_GROUP_EMPTY}, NULL, 0);
  tl_op_set_int(sema->module, wait, TL_ATTR_PENDING, pending);
}
