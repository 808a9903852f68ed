// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element assignments and tile assignments (a `parallel` over the target's extents).
#include "frontend/elaborate/instantiate_internal.h"

const char *const tl_instantiate_index_names[TL_MAX_RANK] = {"i", "j", "k", "l", "m", "n", "o", "p"};

// How `op=` combines the old value with the new one.
static tl_sema_value combine(tl_sema *sema, tl_str op, tl_sema_value old, tl_sema_value value, tl_loc loc) {
  if (tl_str_is(op, "max=") || tl_str_is(op, "min=")) {
    return tl_sema_min_max(sema, tl_str_is(op, "max="), old, value, loc);
  }
  tl_expr_op code = tl_str_is(op, "+=")   ? TL_EXPR_OP_ADD
                    : tl_str_is(op, "-=") ? TL_EXPR_OP_SUB
                    : tl_str_is(op, "*=") ? TL_EXPR_OP_MUL
                                          : TL_EXPR_OP_DIV;
  return tl_sema_binary(sema, code, old, value, loc);
}

// Computes in the wider type, rounds at the store.
static void emit_store(tl_sema *sema, const tl_symbol *symbol, tl_value *const *indices, const tl_assign *assign,
                       tl_sema_value value) {
  if (!tl_str_is(assign->op, "=")) {
    tl_sema_value old = tl_sema_load(sema, symbol, indices, NULL, assign->targets[0]->loc);
    value = combine(sema, assign->op, old, value, assign->loc);
  }
  const tl_type *type = symbol->value->type;
  tl_value *element = tl_sema_to_dtype(sema, &value, type->dtype, assign->value->loc);
  if (!element) return;
  sema->builder.loc = assign->loc;
  tl_group groups[3] = {TL_GROUP_OF(element), TL_GROUP_OF(symbol->value), {indices, (uint32_t)type->rank}};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
}

bool tl_instantiate_validate_element(tl_sema *sema, const tl_symbol *symbol, tl_loc loc) {
  if (!tl_instantiate_validate_writable(sema, symbol, loc)) return false;
  if (!tl_sema_validate_local_place(sema, symbol, true, loc)) return false;
  if (symbol->value->type->scope != TL_SCOPE_FRAGMENT || sema->in_parallel) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_FRAGMENT_ELEMENT, loc,
                                 "an element of the fragment `%.*s` can be written inside `parallel` only",
                                 TL_STR_ARG(symbol->name));
  tl_diag_add_hint(sema->diags, diag, "copy `%.*s` to a shared tile and write that", TL_STR_ARG(symbol->name));
  return false;
}

static void assign_element(tl_sema *sema, const tl_assign *assign) {
  const tl_expr *target = assign->targets[0];
  tl_symbol *symbol = tl_sema_buffer(sema, target);
  tl_value *indices[TL_MAX_RANK];
  bool ok = symbol && tl_sema_subscripts(sema, symbol, target, indices);
  tl_sema_value value = tl_sema_expr(sema, assign->value);
  if (ok && tl_instantiate_validate_element(sema, symbol, target->loc) && value.kind != TL_SEMA_POISON) {
    emit_store(sema, symbol, indices, assign, value);
  }
}

// X[i] = sum(x): the result of a reduction, stored once a block.
static void assign_reduced_element(tl_sema *sema, const tl_assign *assign) {
  const tl_expr *target = assign->targets[0];
  tl_symbol *symbol = tl_sema_buffer(sema, target);
  tl_tile_context tile = {.rank = 1, .extents = {1}, .target = symbol};
  if (!symbol || !tl_sema_subscripts(sema, symbol, target, tile.target_indices)) return;
  if (!tl_instantiate_validate_element(sema, symbol, target->loc)) return;
  tl_instantiate_reductions(sema, assign->value);
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, tile.extents, 1, NULL, assign->loc);
  tile.indices[0] = scope.op->regions[0]->args[0];
  sema->tile = &tile;
  tl_sema_value value = tl_sema_expr(sema, assign->value);
  sema->tile = NULL;
  if (value.kind != TL_SEMA_POISON) emit_store(sema, symbol, tile.target_indices, assign, value);
  tl_instantiate_end_parallel(sema, &scope);
}

bool tl_instantiate_region_extents(tl_sema *sema, const tl_sema_region *region, int64_t *extents) {
  for (int32_t i = 0; i < region->num_axes; ++i) {
    extents[i] = region->axes[i].extent;
    // What is behind the end is left out by the limits.
    if (extents[i] < 0 && region->has_limits) extents[i] = tl_sema_axis_most(region, i);
    if (extents[i] >= 0) continue;
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, region->loc,
                                   "the extents of a tile assignment must be known at compile time, or have a maximum");
    tl_diag_add_hint(sema->diags, diag, "say it: `assume: n <= 1024`, for up to %d", TL_MAX_RUN_TIME_EXTENT);
    return false;
  }
  return true;
}

void tl_instantiate_region_indices(tl_sema *sema, const tl_sema_region *region, tl_value *const *loop, tl_value **out) {
  for (int32_t d = 0; d < region->rank; ++d) out[d] = region->offsets[d];
  for (int32_t i = 0; i < region->num_axes; ++i) {
    const tl_sema_axis *axis = &region->axes[i];
    tl_value *walked = loop[i];
    if (axis->step != 1) walked = tl_index_mul(&sema->builder, walked, tl_build_index(&sema->builder, axis->step));
    out[axis->dim] = tl_index_add(&sema->builder, out[axis->dim], walked);
  }
}

tl_op *tl_instantiate_open_limits(tl_sema *sema, const tl_sema_region *region, tl_value *const *indices,
                                  tl_builder *outer) {
  tl_value *condition = NULL;
  for (int32_t d = 0; region->has_limits && d < region->rank; ++d) {
    if (!region->limits[d] || tl_prove_lt(indices[d], region->limits[d])) continue;
    tl_value *inside = tl_build_cmp(&sema->builder, TL_CMP_LT, indices[d], region->limits[d]);
    condition = condition ? tl_build_binary(&sema->builder, TL_OP_AND, condition, inside) : inside;
  }
  if (!condition) return NULL;
  tl_group group = TL_GROUP_OF(condition);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  *outer = tl_instantiate_enter(sema, op, 0);
  return op;
}

// X = scalar on a whole tile.
static bool assign_fill(tl_sema *sema, const tl_assign *assign, const tl_sema_region *region) {
  const tl_type *type = region->symbol->value->type;
  if (!region->is_whole || region->transposed || !tl_str_is(assign->op, "=") || type->scope == TL_SCOPE_GLOBAL ||
      tl_sema_has_tile(sema, assign->value)) {
    return false;
  }
  tl_sema_value value = tl_sema_expr(sema, assign->value);
  tl_value *element = tl_sema_to_dtype(sema, &value, type->dtype, assign->value->loc);
  if (!element) return true;
  sema->builder.loc = assign->loc;
  tl_group groups[2] = {TL_GROUP_OF(region->symbol->value), TL_GROUP_OF(element)};
  tl_build(&sema->builder, TL_OP_FILL, groups, NULL, 0);
  return true;
}

static void assign_tile(tl_sema *sema, const tl_assign *assign) {
  tl_sema_region region;
  if (!tl_sema_parse_region(sema, assign->targets[0], &region)) return;
  if (!tl_instantiate_validate_writable(sema, region.symbol, assign->targets[0]->loc)) return;
  if (assign_fill(sema, assign, &region)) return;
  tl_tile_context tile = {.rank = region.num_axes};
  if (!tl_instantiate_region_extents(sema, &region, tile.extents)) return;
  tl_instantiate_reductions(sema, assign->value);
  tl_parallel_scope scope =
      tl_instantiate_begin_parallel(sema, tile.extents, tile.rank, tl_instantiate_index_names, assign->loc);
  for (int32_t i = 0; i < tile.rank; ++i) tile.indices[i] = scope.op->regions[0]->args[i];
  tl_value *indices[TL_MAX_RANK];
  sema->builder.loc = assign->targets[0]->loc;
  tl_instantiate_region_indices(sema, &region, tile.indices, indices);
  tl_builder outer;
  tl_op *guard = tl_instantiate_open_limits(sema, &region, indices, &outer);
  tile.target = region.symbol;
  for (int32_t d = 0; d < region.rank; ++d) tile.target_indices[d] = indices[d];
  sema->tile = &tile;
  tl_sema_value value = tl_sema_expr(sema, assign->value);
  sema->tile = NULL;
  if (value.kind != TL_SEMA_POISON) emit_store(sema, region.symbol, indices, assign, value);
  if (guard) tl_instantiate_leave(sema, outer);
  tl_instantiate_end_parallel(sema, &scope);
}

// `n = …` for a local scalar; `t = value` for a whole local array inside `parallel`.
static void assign_local(tl_sema *sema, const tl_assign *assign, const tl_symbol *symbol) {
  bool reduces = !sema->in_parallel && tl_sema_is_local_scalar(symbol) && tl_instantiate_has_reduction(assign->value);
  tl_sema_value value =
      reduces ? tl_instantiate_reduced_scalar(sema, assign->value) : tl_sema_expr(sema, assign->value);
  if (value.kind == TL_SEMA_POISON) return;
  tl_loc target = assign->targets[0]->loc;
  if (tl_sema_is_local_scalar(symbol)) {
    if (tl_instantiate_validate_element(sema, symbol, target)) emit_store(sema, symbol, NULL, assign, value);
  } else if (tl_str_is(assign->op, "=")) {
    tl_instantiate_fill_local(sema, symbol, &value, target, assign->value->loc);
  } else {
    tl_diag_report(sema->diags, TL_DIAG_LOCAL_PLACE, target, "the elements of the local array `%.*s` change one by one",
                   TL_STR_ARG(symbol->name));
  }
}

void tl_instantiate_assign_one(tl_sema *sema, const tl_assign *assign) {
  const tl_expr *target = assign->targets[0];
  if (tl_sema_is_element(target)) {
    if (!sema->in_parallel && tl_instantiate_has_reduction(assign->value)) {
      assign_reduced_element(sema, assign);
    } else {
      assign_element(sema, assign);
    }
    return;
  }
  const tl_expr *base =
      target->kind == TL_EXPR_INDEX || target->kind == TL_EXPR_TRANSPOSE ? target->operands[0] : target;
  if (base->kind == TL_EXPR_NAME && tl_dtype_parse(base->text) == TL_DTYPE_NONE) {
    const tl_symbol *symbol = target == base ? tl_sema_lookup_target(sema, base->text, base->loc)
                                             : tl_sema_lookup(sema, base->text, base->loc);
    if (!symbol || symbol->kind == TL_SYMBOL_POISON) return;
    if (symbol->kind != TL_SYMBOL_BUFFER) {
      tl_diag *diag =
          tl_diag_report(sema->diags, TL_DIAG_ASSIGN_TARGET, target->loc, "the %s `%.*s` cannot be assigned",
                         tl_symbol_role_text(symbol->role), TL_STR_ARG(symbol->name));
      tl_diag_add_note(sema->diags, diag, symbol->loc, "defined here");
      if (symbol->role == TL_ROLE_BODY_LET)
        tl_diag_add_hint(sema->diags, diag, "a value that changes is a local scalar: `%.*s: f32` under `local`",
                         TL_STR_ARG(symbol->name));
      return;
    }
    if (target->kind == TL_EXPR_NAME && symbol->value->type->scope == TL_SCOPE_LOCAL) {
      assign_local(sema, assign, symbol);
      return;
    }
  }
  if (sema->in_parallel) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, target->loc, "a whole tile is assigned inside `parallel`");
    tl_diag_add_hint(sema->diags, diag, "assign an element: `X[i, j] = …`, or move the assignment out");
    return;
  }
  assign_tile(sema, assign);
}

void tl_instantiate_assign(tl_sema *sema, const tl_stmt *stmt) {
  const tl_assign *assign = &stmt->assign;
  if (assign->num_targets != 1) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_STMT_FORM, assign->loc, "an assignment has one target");
    tl_diag_add_hint(sema->diags, diag, "two results come from `reduce: v, i = argmax(x, axis=1)`");
    return;
  }
  size_t mark = sema->reductions.len;
  tl_instantiate_assign_one(sema, assign);
  sema->reductions.len = mark;
}
