// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of tensors and tiles: subscripts, loads, broadcasting, and values chosen lazily.
#include "frontend/sema/sema.h"

bool tl_sema_is_element(const tl_expr *expr) {
  if (expr->kind != TL_EXPR_INDEX) return false;
  for (uint32_t i = 0; i < expr->num_subscripts; ++i) {
    if (expr->subscripts[i].kind != TL_SUBSCRIPT_ELEMENT) return false;
  }
  return true;
}

tl_symbol *tl_sema_buffer(tl_sema *sema, const tl_expr *expr) {
  const tl_expr *base = expr->kind == TL_EXPR_INDEX ? expr->operands[0] : expr;
  tl_symbol *reduced = tl_sema_find_reduction(sema, base);
  if (reduced) return reduced->kind == TL_SYMBOL_BUFFER ? reduced : NULL;
  if (base->kind != TL_EXPR_NAME) {
    tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc, "a tensor or tile is needed, `%s` is an expression",
                   tl_sema_expr_text(sema, base));
    return NULL;
  }
  if (tl_dtype_parse(base->text) != TL_DTYPE_NONE) {
    tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc, "a tensor or tile is needed, `%.*s` is a dtype",
                   TL_STR_ARG(base->text));
    return NULL;
  }
  tl_symbol *symbol = tl_sema_lookup(sema, base->text, base->loc);
  if (!symbol || symbol->kind == TL_SYMBOL_POISON) return NULL;
  if (symbol->kind != TL_SYMBOL_BUFFER) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc, "a tensor or tile is needed, `%.*s` is %s",
                       TL_STR_ARG(base->text), tl_symbol_a_role(symbol->role));
    tl_diag_add_note(sema->diags, diag, symbol->loc, "defined here");
    if (symbol->kind == TL_SYMBOL_TILES)
      tl_diag_add_hint(sema->diags, diag, "name one of them first: `view: t = %.*s[stage]`", TL_STR_ARG(base->text));
    return NULL;
  }
  if (sema->launch_only) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc,
                   "the content of `%.*s` is not known before the launch", TL_STR_ARG(base->text));
    return NULL;
  }
  return tl_sema_validate_present(sema, symbol, expr->loc) ? symbol : NULL;
}

tl_value *tl_sema_dim(tl_sema *sema, const tl_symbol *symbol, int32_t dim) {
  if (symbol->dims[dim]) return symbol->dims[dim];
  return tl_build_index(&sema->builder, symbol->value->type->dims[dim]);
}

bool tl_sema_subscripts(tl_sema *sema, const tl_symbol *symbol, const tl_expr *expr, tl_value **out_indices) {
  int32_t rank = symbol->value->type->rank;
  if ((int64_t)expr->num_subscripts != rank) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_SUBSCRIPT_COUNT, expr->loc, "`%.*s` has %d dim%s %s, %u subscript%s given",
                       TL_STR_ARG(symbol->name), (int)rank, rank == 1 ? "" : "s", tl_sema_buffer_shape(sema, symbol),
                       expr->num_subscripts, expr->num_subscripts == 1 ? "" : "s");
    tl_diag_add_note(sema->diags, diag, symbol->loc, "declared here");
    return false;
  }
  bool ok = true;
  for (int32_t i = 0; i < rank; ++i) {
    out_indices[i] = tl_sema_index(sema, expr->subscripts[i].lo);
    ok = ok && out_indices[i];
  }
  return ok;
}

// Whether two indices differ by a constant and the indices of the tile assignment only: then it is known where they
// meet.
static bool is_comparable(const tl_tile_context *tile, tl_value *a, tl_value *b) {
  tl_affine x = tl_affine_of(a), y = tl_affine_of(b), difference = tl_affine_sub(&x, &y);
  if (!x.valid || !y.valid || !difference.valid) return false;
  for (int32_t i = 0; i < difference.num_terms; ++i) {
    bool is_own = false;
    for (const tl_tile_context *around = tile; around && !is_own; around = around->outer) {
      for (int32_t k = 0; k < around->rank; ++k) is_own = is_own || difference.terms[i].symbol == around->indices[k];
    }
    if (!is_own) return false;
  }
  return true;
}

// Where an element of a buffer lies: by its indices, or by one number of bits from the start of the buffer's memory.
typedef struct element_place {
  int32_t rank;
  tl_value *const *indices;
  tl_value *bit;  // what `indices` points to then
  int64_t width;  // values of the last index that the element takes
} element_place;

static tl_value *index_of(tl_sema *sema, int64_t value) {
  return tl_build_const_int(&sema->builder, tl_type_index(sema->module), value);
}

// False: a dim is not known.
static bool place_in_bits(tl_sema *sema, const tl_type *type, tl_value *const *indices, element_place *out) {
  tl_value *at = index_of(sema, 0);
  for (int32_t d = 0; d < type->rank; ++d) {
    if (d > 0 && type->dims[d] < 0) return false;
    if (d > 0) at = tl_index_mul(&sema->builder, at, index_of(sema, type->dims[d]));
    at = tl_index_add(&sema->builder, at, indices[d]);
  }
  out->width = tl_dtype_bits(type->dtype);
  out->bit = tl_index_mul(&sema->builder, at, index_of(sema, out->width));
  out->indices = &out->bit;
  out->rank = 1;
  return true;
}

// Whether elements of one index are one place: the same shape, and elements of one size.
static bool has_same_elements(const tl_symbol *a, const tl_symbol *b) {
  const tl_type *x = a->value->type, *y = b->value->type;
  if (x->rank != y->rank || tl_dtype_bits(x->dtype) != tl_dtype_bits(y->dtype)) return false;
  for (int32_t d = 0; d < x->rank; ++d)
    if (x->dims[d] != y->dims[d] || (a != b && x->dims[d] < 0)) return false;
  return true;
}

// Whether the assignment writes every element of its target: each iteration writes one of its own.
static bool writes_all(const tl_tile_context *tile) {
  const tl_type *type = tile->target->value->type;
  int64_t left = tl_type_num_elements(type);
  for (int32_t d = 0; d < type->rank; ++d)
    if (type->dims[d] < 0) return false;
  for (int32_t d = 0; d < tile->rank; ++d) left /= tile->extents[d] > 0 ? tile->extents[d] : 1;
  return left <= 1;
}

static bool are_apart(tl_range a, int64_t a_width, tl_range b, int64_t b_width) {
  bool before = a.hi < INT64_MAX - a_width && a.hi + a_width <= b.lo;
  return before || (b.hi < INT64_MAX - b_width && b.hi + b_width <= a.lo);
}

// A tile assignment may read its target, by whatever name, only where it writes in the same iteration, or where it
// writes nowhere: other elements may have been overwritten already.
static void validate_self_read(tl_sema *sema, const tl_symbol *symbol, tl_value *const *indices, tl_loc loc) {
  const tl_tile_context *tile = sema->tile;
  const tl_symbol *target = tile->target;
  element_place read = {.rank = symbol->value->type->rank, .indices = indices, .width = 1};
  element_place written = {.rank = target->value->type->rank, .indices = tile->target_indices, .width = 1};
  if (!has_same_elements(symbol, target) &&
      (!place_in_bits(sema, symbol->value->type, indices, &read) ||
       !place_in_bits(sema, target->value->type, tile->target_indices, &written))) {
    return;
  }
  bool same = read.width == written.width, known = true;
  for (int32_t d = 0; d < read.rank; ++d) {
    tl_value *from = read.indices[d], *to = written.indices[d];
    if (are_apart(tl_value_range(from), read.width, tl_value_range(to), written.width)) return;
    known = known && is_comparable(tile, from, to);
    same = same && tl_prove_equal(from, to);
  }
  if (same || (!known && !writes_all(tile))) return;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_SELF_READ, loc,
                     known ? "`%.*s` is read here at other elements than the assignment writes at the same time"
                           : "`%.*s` is read here at elements that are known when the kernel runs, and the assignment "
                             "writes all of them",
                     TL_STR_ARG(symbol->name));
  if (symbol != target)
    tl_diag_add_note(sema->diags, diag, target->loc, "`%.*s` is the same memory", TL_STR_ARG(target->name));
  tl_diag_add_hint(sema->diags, diag, "assign to another tile, or copy `%.*s` first", TL_STR_ARG(symbol->name));
}

// ---- locals

bool tl_sema_is_local_scalar(const tl_symbol *symbol) {
  return symbol && symbol->kind == TL_SYMBOL_BUFFER && symbol->value->type->scope == TL_SCOPE_LOCAL &&
         symbol->value->type->rank == 0;
}

bool tl_sema_validate_local_place(tl_sema *sema, const tl_symbol *symbol, bool is_write, tl_loc loc) {
  if (symbol->value->type->scope != TL_SCOPE_LOCAL) return true;
  if (tl_sema_is_local_scalar(symbol)) {
    if (!is_write || !sema->in_parallel) return true;
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_LOCAL_PLACE, loc,
                       "the local scalar `%.*s` belongs to the block and is assigned outside of `parallel` only",
                       TL_STR_ARG(symbol->name));
    tl_diag_add_hint(sema->diags, diag,
                     "for a value of each element declare a local array, `%.*s: %s[1]`; one of all elements is a "
                     "reduction outside of `parallel`, as `%.*s = sum(x)`",
                     TL_STR_ARG(symbol->name), tl_dtype_name(symbol->value->type->dtype), TL_STR_ARG(symbol->name));
    return false;
  }
  if (sema->in_parallel) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_LOCAL_PLACE, loc,
                                 "the local array `%.*s` exists inside `parallel` only, once for each element",
                                 TL_STR_ARG(symbol->name));
  tl_diag_add_hint(sema->diags, diag, "declare it under `shared` or `fragment` to keep its content for the block");
  return false;
}

tl_sema_value tl_sema_load(tl_sema *sema, const tl_symbol *symbol, tl_value *const *indices, tl_value *pad,
                           tl_loc loc) {
  const tl_type *type = symbol->value->type;
  if (type->scope == TL_SCOPE_FRAGMENT && !sema->in_parallel) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_FRAGMENT_ELEMENT, loc,
                                   "an element of the fragment `%.*s` can be read inside `parallel` only",
                                   TL_STR_ARG(symbol->name));
    if (tl_type_num_elements(type) == 1)
      tl_diag_add_hint(sema->diags, diag, "a value of the whole block is no tile: `let: {%.*s: max(x)}`, or a local",
                       TL_STR_ARG(symbol->name));
    else
      tl_diag_add_hint(sema->diags, diag, "copy `%.*s` to a shared tile and read that", TL_STR_ARG(symbol->name));
    return tl_sema_poison();
  }
  if (!tl_sema_validate_local_place(sema, symbol, false, loc)) return tl_sema_poison();
  sema->builder.loc = loc;
  const tl_symbol *target = sema->tile ? sema->tile->target : NULL;
  if (target && tl_buffer_root(target->value) == tl_buffer_root(symbol->value))
    validate_self_read(sema, symbol, indices, loc);
  const tl_type *element = tl_type_scalar(sema->module, type->dtype);
  tl_group groups[3] = {TL_GROUP_OF(symbol->value), {indices, (uint32_t)type->rank}, {&pad, pad ? 1 : 0}};
  tl_value *value = tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, groups, &element, 1), 0);
  for (const tl_sema_fact *fact = pad ? NULL : symbol->fact; fact; fact = fact->next)
    value = tl_sema_assumed(sema, value, fact);
  return tl_sema_of_value(value);
}

tl_value *tl_sema_assumed(tl_sema *sema, tl_value *value, const tl_sema_fact *fact) {
  tl_value *lower = fact->lower, *upper = fact->upper;
  tl_group groups[] = {TL_GROUP_OF(value), {&lower, lower ? 1 : 0}, {&upper, upper ? 1 : 0}};
  tl_op *op = tl_build(&sema->builder, TL_OP_ASSUME, groups, &value->type, 1);
  const tl_source *source = sema->sources ? tl_sources_get(sema->sources, fact->loc.source) : NULL;
  tl_op_set_str(sema->module, op, TL_ATTR_TEXT, tl_str_from(fact->text));
  tl_op_set_str(sema->module, op, TL_ATTR_NAME,
                tl_str_from(source ? tl_sources_short_name(sema->sources, source) : "spec"));
  tl_op_set_int(sema->module, op, TL_ATTR_LINE, source ? tl_source_position(source, fact->loc.offset).line : 0);
  if (fact->divisor > 1) tl_op_set_int(sema->module, op, TL_ATTR_DIVISOR, fact->divisor);
  tl_op_result(op, 0)->name = value->name;
  return tl_op_result(op, 0);
}

tl_sema_value tl_sema_load_element(tl_sema *sema, const tl_expr *expr, const tl_expr *pad) {
  tl_symbol *symbol = tl_sema_buffer(sema, expr);
  tl_value *indices[TL_MAX_RANK];
  if (!symbol || !tl_sema_subscripts(sema, symbol, expr, indices)) return tl_sema_poison();
  tl_value *pad_value = NULL;
  if (pad) {
    bool outer = sema->index_position;
    sema->index_position = false;
    tl_sema_value value = tl_sema_expr(sema, pad);
    sema->index_position = outer;
    pad_value = tl_sema_to_dtype(sema, &value, symbol->value->type->dtype, pad->loc);
    if (!pad_value) return tl_sema_poison();
  }
  return tl_sema_load(sema, symbol, indices, pad_value, expr->loc);
}

static void report_broadcast(tl_sema *sema, const tl_sema_region *region, tl_loc loc) {
  int64_t shape[TL_MAX_RANK] = {0};
  for (int32_t i = 0; i < region->num_axes; ++i) shape[i] = region->axes[i].extent;
  const tl_tile_context *tile = sema->tile;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_BROADCAST, loc, "shape %s of `%.*s` does not broadcast to %s",
                     tl_sema_shape_text(sema->arena, shape, region->num_axes), TL_STR_ARG(region->symbol->name),
                     tl_sema_shape_text(sema->arena, tile->extents, tile->rank));
  if (region->num_axes == 1 && tile->rank == 2 && shape[0] == tile->extents[0] && region->is_whole) {
    tl_diag_add_hint(sema->diags, diag, "for one value a row write `%.*s[:, None]`", TL_STR_ARG(region->symbol->name));
  }
  if (region->num_axes == 2 && tile->rank == 2 && shape[0] == tile->extents[1] && shape[1] == tile->extents[0]) {
    tl_diag_add_hint(sema->diags, diag, "the transposed would fit: `%.*s.T`", TL_STR_ARG(region->symbol->name));
  }
}

tl_sema_value tl_sema_broadcast(tl_sema *sema, const tl_expr *expr) {
  tl_sema_region region;
  const tl_tile_context *tile = sema->tile;
  // Subscripts inside are scalars of their own, not elements of this tile.
  if (!tl_sema_parse_region(sema, expr, &region)) return tl_sema_poison();
  int32_t shift = tile->rank - region.num_axes;
  tl_value *indices[TL_MAX_RANK];
  for (int32_t d = 0; d < region.rank; ++d) indices[d] = region.offsets[d];
  bool fits = shift >= 0;
  sema->builder.loc = expr->loc;
  for (int32_t i = 0; fits && i < region.num_axes; ++i) {
    const tl_sema_axis *axis = &region.axes[i];
    if (axis->extent < 0) {
      tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, expr->loc,
                     "a slice in a tile assignment must have a length known at compile time");
      return tl_sema_poison();
    }
    fits = axis->extent == 1 || axis->extent == tile->extents[shift + i];
    // Where both have one element the index names it too: reads and writes of a tile then look alike.
    bool stays = axis->extent == 1 && tile->extents[shift + i] != 1;
    if (!fits || stays || axis->dim < 0) continue;
    tl_value *walked = tile->indices[shift + i];
    if (axis->step != 1) walked = tl_index_mul(&sema->builder, walked, tl_build_index(&sema->builder, axis->step));
    indices[axis->dim] = tl_index_add(&sema->builder, indices[axis->dim], walked);
  }
  if (!fits) {
    report_broadcast(sema, &region, expr->loc);
    return tl_sema_poison();
  }
  return tl_sema_load(sema, region.symbol, indices, NULL, expr->loc);
}

bool tl_sema_has_tile(tl_sema *sema, const tl_expr *expr) {
  if (tl_sema_find_reduction(sema, expr)) return true;
  if (expr->kind == TL_EXPR_NAME) {
    const tl_symbol *symbol = tl_strmap_get(&sema->names, expr->text);
    return symbol && symbol->kind == TL_SYMBOL_BUFFER && !tl_sema_is_local_scalar(symbol);
  }
  if (expr->kind == TL_EXPR_INDEX) {
    if (!tl_sema_is_element(expr)) return true;
    for (uint32_t i = 0; i < expr->num_subscripts; ++i) {
      if (tl_sema_has_tile(sema, expr->subscripts[i].lo)) return true;
    }
    return false;
  }
  for (uint32_t i = 0; i < expr->num_operands; ++i) {
    if (tl_sema_has_tile(sema, expr->operands[i])) return true;
  }
  return false;
}

// ---- lazily chosen values

// Whether a block reads a tile at an index that is not proven inside, or a tensor that may be absent: such a read may
// happen under its condition only.
static bool has_unproven_read(const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->num_regions > 0) return true;
    if (op->code != TL_OP_LOAD) continue;
    const tl_value *buffer = tl_op_arg(op, TL_GROUP_LOAD_buffer);
    const tl_type *type = buffer->type;
    const tl_op *root = tl_buffer_root(buffer);
    if (root && tl_op_has(root, TL_ATTR_OPTIONAL)) return true;
    if (type->scope == TL_SCOPE_GLOBAL) continue;
    for (int32_t d = 0; d < type->rank; ++d) {
      tl_value *index = tl_op_group_at(op, TL_GROUP_LOAD_index, (uint32_t)d);
      tl_range range = tl_value_range(index);
      if (range.lo < 0 || range.hi >= type->dims[d]) return true;
    }
  }
  return false;
}

static tl_sema_value branch(tl_sema *sema, tl_block *block, const tl_expr *expr) {
  tl_builder outer = sema->builder;
  tl_builder_at_end(&sema->builder, sema->module, block);
  tl_sema_value value = tl_sema_expr(sema, expr);
  sema->builder = outer;
  return value;
}

static const tl_type *branch_type(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b) {
  if (a->kind == TL_SEMA_VALUE && b->kind == TL_SEMA_VALUE && a->value->type == b->value->type) return a->value->type;
  return tl_sema_common_type(sema, a, b);
}

static bool yield_as(tl_sema *sema, tl_block *block, const tl_sema_value *value, const tl_type *type, tl_loc loc) {
  tl_builder outer = sema->builder;
  tl_builder_at_end(&sema->builder, sema->module, block);
  tl_value *converted = tl_sema_convert(sema, value, type, loc);
  sema->builder.loc = loc;
  if (converted) tl_build_yield(&sema->builder, &converted, 1);
  sema->builder = outer;
  return converted != NULL;
}

tl_sema_value tl_sema_lazy_select(tl_sema *sema, tl_sema_value condition, const tl_expr *asked, const tl_expr *then,
                                  const tl_expr *other, tl_loc loc) {
  if (condition.kind != TL_SEMA_VALUE) {  // poison: still look for errors in both
    tl_sema_expr(sema, then);
    tl_sema_expr(sema, other);
    return tl_sema_poison();
  }
  sema->builder.loc = loc;
  tl_group group = TL_GROUP_OF(condition.value);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  size_t present = sema->present.len;
  if (asked) tl_sema_know_present(sema, asked, true);
  tl_sema_value a = branch(sema, op->regions[0], then);
  sema->present.len = present;
  if (asked) tl_sema_know_present(sema, asked, false);
  tl_sema_value b = branch(sema, op->regions[1], other);
  sema->present.len = present;
  bool both_const = a.kind == TL_SEMA_CONST && b.kind == TL_SEMA_CONST;
  bool ok = a.kind != TL_SEMA_POISON && b.kind != TL_SEMA_POISON;
  if (!ok || both_const || (!has_unproven_read(op->regions[0]) && !has_unproven_read(op->regions[1]))) {
    for (int r = 0; r < 2; ++r) {
      while (op->regions[r]->first) tl_op_move_before(op->regions[r]->first, op);
    }
    tl_op_erase(op);
    return ok ? tl_sema_select(sema, condition, a, b, loc) : tl_sema_poison();
  }
  const tl_type *type = branch_type(sema, &a, &b);
  if (!yield_as(sema, op->regions[0], &a, type, then->loc) || !yield_as(sema, op->regions[1], &b, type, other->loc)) {
    return tl_sema_poison();
  }
  tl_op_set_results(sema->module, op, &type, 1);
  return tl_sema_of_value(tl_op_result(op, 0));
}

tl_sema_value tl_sema_lazy_logical(tl_sema *sema, bool is_and, tl_sema_value left, const tl_sema_lazy *right,
                                   tl_loc loc) {
  if (left.kind == TL_SEMA_POISON) {  // still look for errors
    right->evaluate(sema, right);
    return left;
  }
  // A decided left side drops the right one, as in Python.
  if (left.kind == TL_SEMA_CONST) return (left.constant.i != 0) == is_and ? right->evaluate(sema, right) : left;
  sema->builder.loc = loc;
  tl_group group = TL_GROUP_OF(left.value);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  tl_block *block = op->regions[is_and ? 0 : 1];
  tl_builder outer = sema->builder;
  tl_builder_at_end(&sema->builder, sema->module, block);
  tl_sema_value value = right->evaluate(sema, right);
  sema->builder = outer;
  if (value.kind != TL_SEMA_VALUE || !has_unproven_read(block)) {
    while (block->first) tl_op_move_before(block->first, op);
    tl_op_erase(op);
    if (value.kind == TL_SEMA_POISON) return value;
    if (value.kind == TL_SEMA_CONST) return (value.constant.i != 0) == is_and ? left : value;
    sema->builder.loc = loc;
    return tl_sema_of_value(tl_build_binary(&sema->builder, is_and ? TL_OP_AND : TL_OP_OR, left.value, value.value));
  }
  const tl_type *type = value.value->type;
  tl_sema_value decided = tl_sema_of_const(tl_const_bool(!is_and));
  if (!yield_as(sema, block, &value, type, loc)) return tl_sema_poison();
  if (!yield_as(sema, op->regions[is_and ? 1 : 0], &decided, type, loc)) return tl_sema_poison();
  tl_op_set_results(sema->module, op, &type, 1);
  return tl_sema_of_value(tl_op_result(op, 0));
}
