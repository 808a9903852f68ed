// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shapes of expressions of tiles, and NumPy's `(a * b)[:, None]`: subscripts of a value instead of a tile.
#include "frontend/sema/sema.h"

static void report_shapes(tl_sema *sema, const tl_tile_context *tile, const int64_t *dims, int32_t rank, tl_loc loc) {
  tl_diag_report(sema->diags, TL_DIAG_BROADCAST, loc, "shape %s does not broadcast with %s",
                 tl_sema_shape_text(sema->arena, dims, rank),
                 tl_sema_shape_text(sema->arena, tile->extents, tile->rank));
}

// Widens the shape by one operand, aligned at the right.
static bool merge_shape(tl_sema *sema, tl_tile_context *tile, const int64_t *dims, int32_t rank, tl_loc loc) {
  int64_t merged[TL_MAX_RANK];
  int32_t merged_rank = rank > tile->rank ? rank : tile->rank;
  for (int32_t i = 0; i < merged_rank; ++i) {
    int32_t own = i - (merged_rank - tile->rank), other = i - (merged_rank - rank);
    int64_t x = own >= 0 ? tile->extents[own] : 1, y = other >= 0 ? dims[other] : 1;
    if (x != y && x != 1 && y != 1) {
      report_shapes(sema, tile, dims, rank, loc);
      return false;
    }
    merged[i] = x == 1 ? y : x;
  }
  tile->rank = merged_rank;
  for (int32_t i = 0; i < merged_rank; ++i) tile->extents[i] = merged[i];
  return true;
}

bool tl_sema_is_reshaped(const tl_sema *sema, const tl_expr *expr) {
  if (expr->kind != TL_EXPR_INDEX || tl_sema_is_element(expr)) return false;
  const tl_expr *base = expr->operands[0];
  return base->kind != TL_EXPR_NAME && !tl_sema_find_reduction(sema, base);
}

// Subscripts of a value are `:`, one for each of its dims, and `None`. False after a report.
static bool validate_reshaped(tl_sema *sema, const tl_expr *expr, int64_t *dims, int32_t *out_rank) {
  const tl_expr *base = expr->operands[0];
  tl_tile_context inner = {0};
  if (!tl_sema_add_shape(sema, base, &inner)) return false;
  int32_t walked = 0;
  if (expr->num_subscripts > TL_MAX_RANK) walked = -1;
  for (uint32_t i = 0; walked >= 0 && i < expr->num_subscripts; ++i) {
    const tl_subscript *subscript = &expr->subscripts[i];
    bool is_new = subscript->kind == TL_SUBSCRIPT_NEWAXIS;
    bool is_all = subscript->kind == TL_SUBSCRIPT_RANGE && !subscript->lo && !subscript->hi && !subscript->step;
    if (!is_new && !is_all) {
      tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_SLICE, subscript->loc,
                                     "the value `%s` takes `:` and `None` only", tl_sema_expr_text(sema, base));
      tl_diag_add_hint(sema->diags, diag, "assign it to a tile and take the part of that");
      return false;
    }
    dims[i] = is_all && walked < inner.rank ? inner.extents[walked] : 1;
    walked += is_all;
  }
  if (walked != inner.rank) {
    tl_diag_report(sema->diags, TL_DIAG_SUBSCRIPT_COUNT, expr->loc,
                   "`%s` has %d dim%s, one `:` is needed for each (and at most %d subscripts)",
                   tl_sema_expr_text(sema, base), (int)inner.rank, inner.rank == 1 ? "" : "s", TL_MAX_RANK);
    return false;
  }
  *out_rank = (int32_t)expr->num_subscripts;
  return true;
}

static void report_unknown_length(tl_sema *sema, const tl_expr *expr) {
  bool is_whole = expr->kind == TL_EXPR_NAME;
  const char *name = tl_sema_expr_text(sema, is_whole ? expr : expr->operands[0]);
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, expr->loc,
                                 "an expression of tiles needs lengths that are known at compile time: that of `%s` is "
                                 "known at launch only",
                                 tl_sema_expr_text(sema, expr));
  tl_diag_add_hint(sema->diags, diag,
                   "name its elements: `sum[i](%s[i])` for a reduction, `parallel: i in n` for an assignment", name);
}

bool tl_sema_add_shape(tl_sema *sema, const tl_expr *expr, tl_tile_context *tile) {
  int64_t dims[TL_MAX_RANK];
  int32_t rank = 0;
  if (tl_sema_is_reshaped(sema, expr)) {
    return validate_reshaped(sema, expr, dims, &rank) && merge_shape(sema, tile, dims, rank, expr->loc);
  }
  bool is_buffer = tl_sema_find_reduction(sema, expr) != NULL || expr->kind == TL_EXPR_TRANSPOSE ||
                   (expr->kind == TL_EXPR_INDEX && !tl_sema_is_element(expr)) ||
                   (expr->kind == TL_EXPR_NAME && tl_sema_has_tile(sema, expr));
  if (!is_buffer) {
    if (expr->kind == TL_EXPR_INDEX) return true;
    for (uint32_t i = 0; i < expr->num_operands; ++i) {
      if (!tl_sema_add_shape(sema, expr->operands[i], tile)) return false;
    }
    return true;
  }
  tl_sema_region region;
  const tl_tile_context *outer = sema->tile;
  sema->tile = tile;  // `None` may stand in subscripts
  bool ok = tl_sema_parse_region(sema, expr, &region);
  sema->tile = outer;
  if (!ok) return false;
  for (int32_t i = 0; i < region.num_axes; ++i) {
    dims[i] = region.axes[i].extent;
    if (dims[i] >= 1) continue;
    report_unknown_length(sema, expr);
    return false;
  }
  return merge_shape(sema, tile, dims, region.num_axes, expr->loc);
}

tl_sema_value tl_sema_reshaped(tl_sema *sema, const tl_expr *expr) {
  const tl_tile_context *tile = sema->tile;
  int64_t dims[TL_MAX_RANK];
  int32_t rank = 0;
  if (!validate_reshaped(sema, expr, dims, &rank)) return tl_sema_poison();
  int32_t shift = tile->rank - rank;
  bool fits = shift >= 0;
  for (int32_t i = 0; fits && i < rank; ++i) fits = dims[i] == 1 || dims[i] == tile->extents[shift + i];
  if (!fits) {
    tl_diag_report(sema->diags, TL_DIAG_BROADCAST, expr->loc, "shape %s of `%s` does not broadcast to %s",
                   tl_sema_shape_text(sema->arena, dims, rank), tl_sema_expr_text(sema, expr),
                   tl_sema_shape_text(sema->arena, tile->extents, tile->rank));
    return tl_sema_poison();
  }
  // The value's element: the dims of the assignment that it has, without those that `None` adds.
  tl_tile_context inner = *tile;
  inner.outer = tile;
  inner.rank = 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (expr->subscripts[i].kind == TL_SUBSCRIPT_NEWAXIS) continue;
    inner.extents[inner.rank] = tile->extents[shift + i];
    inner.indices[inner.rank++] = tile->indices[shift + i];
  }
  sema->tile = &inner;
  tl_sema_value value = tl_sema_expr(sema, expr->operands[0]);
  sema->tile = tile;
  return value;
}
