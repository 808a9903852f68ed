// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of gemm that are slices, or lie elsewhere than products read them.
//
//   gemm: acc += A_s[k % 3] @ p   ⇒   %a = part_tile %A_s[k % 3, 0, 0]; copy %p -> %p_shared; gemm %acc, %a, %p_shared
//
// What a pass could do better it does to these ops as to an author's own: a part is read in place, and fragments whose
// parts are copied live in shared memory (promote-fragments).
#include "frontend/elaborate/instantiate_gemm.h"

static bool refuse(tl_sema *sema, tl_loc loc, const char *text) {
  tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, loc, "%s", text);
  return false;
}

// `X[i]` of more dims: the others are whole, as after `X[i, :, :]`.
static const tl_expr *with_all_dims(tl_sema *sema, const tl_expr *expr, int32_t rank) {
  if ((int64_t)expr->num_subscripts >= rank) return expr;
  tl_expr *full = TL_NEW(sema->arena, tl_expr);
  *full = *expr;
  full->subscripts = TL_NEW_ARRAY(sema->arena, tl_subscript, rank);
  for (uint32_t i = 0; i < (uint32_t)rank; ++i)
    full->subscripts[i] =
        i < expr->num_subscripts ? expr->subscripts[i] : (tl_subscript){.kind = TL_SUBSCRIPT_RANGE, .loc = expr->loc};
  full->num_subscripts = (uint32_t)rank;
  return full;
}

static bool report_rank(tl_sema *sema, const tl_gemm_operand *operand) {
  tl_diag *diag = operand->is_slice
                      ? tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, operand->expr->loc,
                                       "gemm takes tiles of 2 dims, this slice of `%.*s` has %d",
                                       TL_STR_ARG(operand->symbol->name), (int)operand->region.num_axes)
                      : tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, operand->expr->loc,
                                       "gemm takes tiles of 2 dims, `%.*s` is %s", TL_STR_ARG(operand->symbol->name),
                                       tl_sema_buffer_shape(sema, operand->symbol));
  tl_diag_add_note(sema->diags, diag, operand->symbol->loc, "declared here");
  if (!operand->is_slice && operand->symbol->value->type->rank > 2)
    tl_diag_add_hint(sema->diags, diag, "a slice has fewer: `%.*s[i]`", TL_STR_ARG(operand->symbol->name));
  return false;
}

// `X[s]`, where X stands for several tiles: that tile, as a `view` would name it. NULL after a report.
static tl_symbol *stage_of(tl_sema *sema, const tl_symbol *tiles, const tl_expr *expr) {
  const tl_subscript *subscript = &expr->subscripts[0];
  if (expr->num_subscripts != 1 || subscript->kind != TL_SUBSCRIPT_ELEMENT) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_GEMM_OPERAND, expr->loc,
                                   "`%.*s` is several tiles: one subscript names one of them", TL_STR_ARG(tiles->name));
    tl_diag_add_hint(sema->diags, diag, "for a slice of it name it first: `view: t = %.*s[stage]`",
                     TL_STR_ARG(tiles->name));
    return NULL;
  }
  tl_value *stage = tl_sema_index(sema, subscript->lo);
  int64_t count = tl_op_int(tiles->value->def, TL_ATTR_DEPTH, 1);
  if (!stage || !tl_instantiate_validate_stage(sema, tiles, stage, count, subscript->loc)) return NULL;
  sema->builder.loc = expr->loc;
  tl_group groups[] = {TL_GROUP_OF(tiles->value), TL_GROUP_OF(stage)};
  tl_op *op = tl_build(&sema->builder, TL_OP_STAGE_TILE, groups, &tiles->value->type, 1);
  tl_symbol *symbol = TL_NEW(sema->arena, tl_symbol);
  *symbol = *tiles;
  symbol->kind = TL_SYMBOL_BUFFER;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tiles->value->name;
  return symbol;
}

// The tiles that `X[…]` names one of; NULL: X is something else.
static const tl_symbol *tiles_of(tl_sema *sema, const tl_expr *expr) {
  bool is_named = expr->kind == TL_EXPR_INDEX && expr->operands[0]->kind == TL_EXPR_NAME;
  const tl_symbol *symbol = is_named ? tl_strmap_get(&sema->names, expr->operands[0]->text) : NULL;
  return symbol && symbol->kind == TL_SYMBOL_TILES ? symbol : NULL;
}

static bool parse_region(tl_sema *sema, const tl_expr *base, tl_gemm_operand *out) {
  const tl_symbol *tiles = tiles_of(sema, base);
  if (tiles) {
    out->is_slice = false;
    out->symbol = stage_of(sema, tiles, base);
    if (out->symbol) out->region = tl_instantiate_whole(sema, out->symbol, base->loc);
    return out->symbol && (out->region.num_axes == 2 || report_rank(sema, out));
  }
  out->symbol = tl_sema_buffer(sema, base);
  if (!out->symbol) return false;
  const tl_type *type = out->symbol->value->type;
  for (int32_t d = 0; type->scope == TL_SCOPE_SHARED && d < type->rank; d++)
    if (out->symbol->dims[d])
      return refuse(sema, base->loc, "gemm takes tiles of constant extents: fill one beyond what is there");
  if (!out->is_slice && type->rank != 2) return report_rank(sema, out);
  if (out->is_slice) base = with_all_dims(sema, base, type->rank);
  if (!tl_sema_parse_region(sema, base, &out->region)) return false;
  if (out->region.is_corner)
    return refuse(sema, base->loc, "an element is no operand of gemm: a slice has a size, as in `X[i:+64, :]`");
  if (out->region.num_axes != 2) return report_rank(sema, out);
  for (int i = 0; i < 2; ++i) {
    const tl_sema_axis *axis = &out->region.axes[i];
    if (axis->extent < 0)
      return refuse(sema, base->loc, "the size of a slice that gemm takes is a constant: `X[i:+64, :]`");
    int64_t size = type->dims[axis->dim];
    if (size >= 0 && axis->extent > size) return refuse(sema, base->loc, "the slice is larger than its tile");
  }
  return true;
}

bool tl_gemm_parse_operand(tl_sema *sema, const tl_expr *expr, tl_gemm_operand *out) {
  *out = (tl_gemm_operand){.expr = expr};
  const tl_expr *base = expr;
  if (expr->kind == TL_EXPR_TRANSPOSE) {
    out->transposed = true;
    base = expr->operands[0];
  }
  out->is_slice = base->kind == TL_EXPR_INDEX;
  if (!out->is_slice && base->kind != TL_EXPR_NAME)
    return refuse(sema, expr->loc, "an operand of gemm is a tile, a slice of one, or its transposed `X.T`");
  if (!parse_region(sema, base, out)) return false;
  const tl_sema_axis *axes = out->region.axes;
  out->rows = axes[out->transposed ? 1 : 0].extent;
  out->columns = axes[out->transposed ? 0 : 1].extent;
  return true;
}

// ---- reading

static const char *text_of(tl_sema *sema, const tl_gemm_operand *operand) {
  return tl_sema_expr_text(sema, operand->expr);
}

static long long bytes_of(const tl_gemm_operand *operand) {
  int64_t elements = operand->rows * operand->columns;
  return (long long)tl_dtype_bytes(operand->symbol->value->type->dtype, (uint64_t)elements);
}

// Whether the region is one that products read in place: whole rows of the last dim's elements, in their order.
static bool is_part(const tl_gemm_operand *operand) {
  const tl_sema_axis *axes = operand->region.axes;
  return axes[0].step == 1 && axes[1].step == 1 && axes[0].dim < axes[1].dim &&
         axes[1].dim == operand->region.rank - 1 && tl_dtype_bits(operand->symbol->value->type->dtype) >= 8;
}

static tl_value *build_part(tl_sema *sema, tl_gemm_operand *operand) {
  const tl_sema_axis *axes = operand->region.axes;
  int64_t dims[2] = {axes[0].dim, axes[1].dim}, shape[2] = {axes[0].extent, axes[1].extent};
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_SHARED, operand->symbol->value->type->dtype, shape, 2);
  tl_group groups[] = {TL_GROUP_OF(operand->symbol->value), {operand->region.offsets, (uint32_t)operand->region.rank}};
  sema->builder.loc = operand->expr->loc;
  tl_op *op = tl_build(&sema->builder, TL_OP_PART_TILE, groups, &type, 1);
  tl_op_set_ints(sema->module, op, TL_ATTR_SRC_DIMS, dims, 2);
  tl_op_result(op, 0)->name = operand->symbol->value->name;
  return tl_op_result(op, 0);
}

// A tile of our own for what the region holds.
static tl_symbol copy_symbol(tl_sema *sema, const tl_gemm_operand *operand, int scope, tl_dtype dtype) {
  const tl_sema_axis *axes = operand->region.axes;
  int64_t shape[2] = {axes[0].extent, axes[1].extent};
  bool is_shared = scope == TL_SCOPE_SHARED;
  const char *name =
      tl_arena_printf(sema->arena, "%.*s_%s", TL_STR_ARG(operand->symbol->name), is_shared ? "shared" : "sums");
  tl_symbol symbol = {.name = tl_str_from(name), .loc = operand->expr->loc};
  symbol.role = TL_ROLE_TILE;
  symbol.kind = TL_SYMBOL_BUFFER;
  symbol.access = TL_ACCESS_INOUT;
  symbol.value = tl_instantiate_tile(sema, scope, name, dtype, shape, 2, operand->expr->loc);
  return symbol;
}

static const char *why_copied(const tl_gemm_operand *operand, bool in_registers) {
  if (operand->symbol->value->type->scope == TL_SCOPE_SHARED)
    return "the elements of its rows do not follow each other";
  if (!in_registers) return "it is in registers, and products read their right operand from shared memory";
  return operand->is_slice ? "it is a slice of a fragment" : "it is in registers, where it cannot be transposed";
}

// The dtype in which the product reads the operand.
static tl_dtype read_dtype(tl_dtype dtype, const char *widened) {
  if (widened && dtype == TL_DTYPE_I4) return TL_DTYPE_I8;
  return widened && dtype == TL_DTYPE_U4 ? TL_DTYPE_U8 : dtype;
}

static void report_detour(tl_sema *sema, const tl_gemm_operand *operand, tl_dtype dtype, const char *why) {
  tl_dtype own = operand->symbol->value->type->dtype;
  const tl_sema_axis *axes = operand->region.axes;
  uint64_t elements = (uint64_t)axes[0].extent * (uint64_t)axes[1].extent;
  const char *as = dtype == own ? "" : tl_arena_printf(sema->arena, " as %s", tl_dtype_name(dtype));
  tl_diag_report(sema->diags, TL_DIAG_REMARK_OPERAND, operand->expr->loc,
                 "`%s` goes through shared memory%s (%lld bytes): %s", text_of(sema, operand), as,
                 (long long)tl_dtype_bytes(dtype, elements), why);
}

tl_value *tl_gemm_read_operand(tl_sema *sema, const tl_stmt *stmt, tl_gemm_operand *operand, bool in_registers,
                               const char *widened) {
  const tl_type *type = operand->symbol->value->type;
  bool is_shared = type->scope == TL_SCOPE_SHARED;
  tl_dtype dtype = read_dtype(type->dtype, widened);
  if (dtype == type->dtype) {
    widened = NULL;
    if (!operand->is_slice && (is_shared || (in_registers && !operand->transposed))) return operand->symbol->value;
    if (is_shared && is_part(operand)) return build_part(sema, operand);
  }
  report_detour(sema, operand, dtype, widened ? widened : why_copied(operand, in_registers));
  tl_symbol symbol = copy_symbol(sema, operand, TL_SCOPE_SHARED, dtype);
  tl_sema_region copy = tl_instantiate_whole(sema, &symbol, operand->expr->loc);
  tl_instantiate_move(sema, stmt, &operand->region, &copy);
  return symbol.value;
}

// ---- adding up

void tl_gemm_begin_sums(tl_sema *sema, const tl_stmt *stmt, tl_gemm_operand *acc, bool clears, tl_gemm_sums *out) {
  bool in_shared = acc->symbol->value->type->scope == TL_SCOPE_SHARED;
  *out = (tl_gemm_sums){.value = acc->symbol->value, .acc = acc, .is_copy = acc->is_slice || in_shared};
  if (!out->is_copy) return;
  tl_diag_report(sema->diags, TL_DIAG_REMARK_OPERAND, acc->expr->loc,
                 "the sums of `%s` are brought into registers for this product and back behind it (%lld bytes): %s",
                 text_of(sema, acc), bytes_of(acc),
                 in_shared ? "it is a shared tile" : "a product adds to whole fragments");
  out->symbol = copy_symbol(sema, acc, TL_SCOPE_FRAGMENT, acc->symbol->value->type->dtype);
  out->value = out->symbol.value;
  if (clears) return;
  tl_sema_region copy = tl_instantiate_whole(sema, &out->symbol, acc->expr->loc);
  tl_instantiate_move(sema, stmt, &acc->region, &copy);
}

void tl_gemm_end_sums(tl_sema *sema, const tl_stmt *stmt, tl_gemm_sums *sums) {
  if (!sums->is_copy) return;
  tl_sema_region copy = tl_instantiate_whole(sema, &sums->symbol, sums->acc->expr->loc);
  tl_instantiate_move(sema, stmt, &copy, &sums->acc->region);
}
