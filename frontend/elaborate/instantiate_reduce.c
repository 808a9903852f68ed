// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions: `reduce:` and calls with `axis=` in tile assignments.
//
//   l = l * alpha + sum(p * p, axis=1)   ⇒   parallel { t[i, j] = p[i, j] * p[i, j] };  reduce t -> s
//                                            parallel { l[i] = l[i] * alpha[i] + s[i] }
//
// The operand becomes a fragment of its own unless it is one; so does the result, and a statement is an assignment of
// it. Both live in registers, so nothing is lost by the additional names.
#include "frontend/elaborate/instantiate_internal.h"
#include "frontend/expr/suggest.h"
#include "ir/index/affine.h"
#include "ir/reduction.h"

// What a call and the options beside it ask for.
typedef struct reduction_request {
  int reduction;
  bool keepdims, propagates_nan;
  bool reduced[TL_MAX_RANK];
} reduction_request;

bool tl_instantiate_has_reduction(const tl_expr *expr) {
  if (tl_sema_is_reduction(expr)) return true;
  for (uint32_t i = 0; i < expr->num_operands; ++i) {
    if (tl_instantiate_has_reduction(expr->operands[i])) return true;
  }
  return false;
}

// ---- tiles of our own

// A fragment declared at the head of the kernel.
tl_value *tl_instantiate_tile(tl_sema *sema, int scope, const char *name, tl_dtype dtype, const int64_t *dims,
                              int32_t rank, tl_loc loc) {
  tl_builder builder;
  tl_builder_before(&builder, sema->module, tl_module_kernel(sema->module)->regions[0]->first);
  builder.loc = loc;
  const tl_type *type = tl_type_buffer(sema->module, scope, dtype, dims, rank);
  tl_op *op = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, tl_str_from(name));
  tl_op_result(op, 0)->name = tl_module_intern(sema->module, tl_str_from(name));
  return tl_op_result(op, 0);
}

tl_value *tl_instantiate_fragment(tl_sema *sema, const char *name, tl_dtype dtype, const int64_t *dims, int32_t rank,
                                  tl_loc loc) {
  return tl_instantiate_tile(sema, TL_SCOPE_FRAGMENT, name, dtype, dims, rank, loc);
}

static tl_symbol *new_symbol(tl_sema *sema, const tl_expr *expr, tl_value *value) {
  tl_symbol *symbol = TL_NEW(sema->arena, tl_symbol);
  symbol->name = tl_str_from(tl_sema_expr_text(sema, expr));
  symbol->loc = expr->loc;
  symbol->role = TL_ROLE_TILE;
  symbol->kind = value ? TL_SYMBOL_BUFFER : TL_SYMBOL_POISON;
  symbol->access = TL_ACCESS_INOUT;
  symbol->value = value;
  return symbol;
}

void tl_instantiate_stand_for(tl_sema *sema, const tl_expr *expr, tl_value *value) {
  tl_sema_reduction reduction = {expr, new_symbol(sema, expr, value)};
  tl_vec_push(&sema->reductions, reduction);
}

// Whether `elements` indices come to a number of 32 bits in any order. A negative `reduction` is none.
static bool fits_in_i32(tl_value *element, int reduction, int64_t elements) {
  tl_range range = tl_value_range(element);
  bool adds = reduction == TL_REDUCTION_SUM || reduction == TL_REDUCTION_ABSSUM;
  int64_t most = adds ? INT32_MAX / elements : INT32_MAX;
  if (reduction < 0 || reduction == TL_REDUCTION_PROD || tl_reduction_is_arg(reduction)) return false;
  return range.lo >= -most && range.hi <= most;
}

static int64_t count_elements(const tl_tile_context *tile) {
  int64_t elements = 1;
  for (int32_t d = 0; d < tile->rank; ++d) elements *= tile->extents[d];
  return elements;
}

// The operand as a fragment; for a `reduction` whose elements are indices and stay small, of i32 (`*out_narrowed`).
static tl_value *build_operand(tl_sema *sema, const tl_expr *operand, int reduction, bool *out_narrowed) {
  bool names_tile = operand->kind == TL_EXPR_NAME || tl_sema_find_reduction(sema, operand);
  if (names_tile && tl_sema_has_tile(sema, operand)) {
    const tl_symbol *symbol = tl_sema_buffer(sema, operand);
    if (!symbol) return NULL;
    if (symbol->value->type->scope == TL_SCOPE_FRAGMENT) return symbol->value;
  }
  tl_tile_context tile = {0};
  if (!tl_sema_add_shape(sema, operand, &tile)) return NULL;
  if (tile.rank == 0) {
    if (tl_sema_expr(sema, operand).kind == TL_SEMA_POISON) return NULL;
    tl_diag_report(sema->diags, TL_DIAG_REDUCTION, operand->loc, "a tile is needed here, `%s` is a single value",
                   tl_sema_expr_text(sema, operand));
    return NULL;
  }
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, tile.extents, tile.rank, NULL, operand->loc);
  for (int32_t i = 0; i < tile.rank; ++i) tile.indices[i] = scope.op->regions[0]->args[i];
  const tl_tile_context *outer = sema->tile;
  sema->tile = &tile;
  tl_sema_value value = tl_sema_expr(sema, operand);
  sema->tile = outer;
  tl_value *fragment = NULL;
  if (value.kind == TL_SEMA_VALUE) {
    const tl_type *type = value.value->type;
    tl_dtype dtype = type->kind == TL_TYPE_INDEX ? TL_DTYPE_I64 : type->dtype;
    *out_narrowed = type->kind == TL_TYPE_INDEX && fits_in_i32(value.value, reduction, count_elements(&tile));
    if (*out_narrowed) dtype = TL_DTYPE_I32;
    tl_value *element = tl_sema_to_dtype(sema, &value, dtype, operand->loc);
    fragment = tl_instantiate_fragment(sema, "operand", dtype, tile.extents, tile.rank, operand->loc);
    sema->builder.loc = operand->loc;
    tl_group groups[3] = {TL_GROUP_OF(element), TL_GROUP_OF(fragment), {tile.indices, (uint32_t)tile.rank}};
    tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
  }
  tl_instantiate_end_parallel(sema, &scope);
  return fragment;
}

// The operand of a reduction as a fragment: the tile it names, or a new one that its elements are computed into.
tl_value *tl_instantiate_operand(tl_sema *sema, const tl_expr *operand) {
  bool narrowed = false;
  return build_operand(sema, operand, -1, &narrowed);
}

// The elements of a fragment in one of `dtype`.
static tl_value *build_cast(tl_sema *sema, tl_value *tile, tl_dtype dtype, tl_loc loc) {
  const tl_type *type = tile->type, *element = tl_type_scalar(sema->module, type->dtype);
  tl_value *result = tl_instantiate_fragment(sema, tile->name, dtype, type->dims, type->rank, loc);
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, type->dims, type->rank, NULL, loc);
  tl_value **indices = scope.op->regions[0]->args;
  tl_group from[3] = {TL_GROUP_OF(tile), {indices, (uint32_t)type->rank}, TL_GROUP_EMPTY};
  tl_value *value = tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, from, &element, 1), 0);
  value = tl_build_cast(&sema->builder, value, tl_type_scalar(sema->module, dtype));
  tl_group to[3] = {TL_GROUP_OF(value), TL_GROUP_OF(result), {indices, (uint32_t)type->rank}};
  tl_build(&sema->builder, TL_OP_STORE, to, NULL, 0);
  tl_instantiate_end_parallel(sema, &scope);
  return result;
}

// ---- the call

bool tl_instantiate_flag(tl_sema *sema, const tl_expr *value, const char *name, bool *out) {
  tl_sema_value flag = tl_sema_expr(sema, value);
  if (flag.kind == TL_SEMA_POISON) return false;
  if (flag.kind == TL_SEMA_CONST && flag.constant.kind == TL_CONST_BOOL) {
    *out = flag.constant.i != 0;
    return true;
  }
  const tl_type *type = flag.kind == TL_SEMA_VALUE ? flag.value->type : NULL;
  if (type && type->kind == TL_TYPE_SCALAR && type->dtype == TL_DTYPE_BOOL) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, value->loc, "`%s` must be known at compile time", name);
  } else {
    tl_diag_report(sema->diags, TL_DIAG_CONDITION, value->loc, "`%s` is true or false, not %s", name,
                   tl_sema_type_text(sema, &flag));
  }
  return false;
}

bool tl_instantiate_axis(tl_sema *sema, const tl_expr *value, const tl_type *tile, int32_t *out) {
  int64_t axis;
  if (!tl_sema_const_int(sema, value, "an axis", &axis)) return false;
  if (axis < -tile->rank || axis >= tile->rank) {
    tl_diag_report(sema->diags, TL_DIAG_REDUCTION_AXIS, value->loc, "a tile of shape %s has no axis %lld",
                   tl_sema_shape_text(sema->arena, tile->dims, tile->rank), (long long)axis);
    return false;
  }
  *out = (int32_t)(axis < 0 ? axis + tile->rank : axis);
  return true;
}

static bool read_keywords(tl_sema *sema, const tl_expr *expr, const tl_type *tile, reduction_request *request) {
  bool ok = true, has_axis = false;
  for (uint32_t i = 0; i < expr->num_keywords; ++i) {
    const tl_keyword *keyword = &expr->keywords[i];
    if (tl_str_is(keyword->name, "axis")) {
      has_axis = keyword->value->kind != TL_EXPR_NONE;
      int32_t axis = 0;
      if (has_axis && tl_instantiate_axis(sema, keyword->value, tile, &axis)) {
        request->reduced[axis] = true;
      } else if (has_axis) {
        ok = false;
      }
    } else if (tl_str_is(keyword->name, "keepdims")) {
      ok = tl_instantiate_flag(sema, keyword->value, "keepdims", &request->keepdims) && ok;
    } else {
      tl_diag *diag =
          tl_diag_report(sema->diags, TL_DIAG_FUNCTION_ARGS, keyword->loc, "`%.*s` takes no argument `%.*s=`",
                         TL_STR_ARG(expr->text), TL_STR_ARG(keyword->name));
      const char *known = tl_suggest_for_keyword(keyword->name);
      if (known) tl_diag_add_hint(sema->diags, diag, "%s", known);
      ok = false;
    }
  }
  for (int32_t d = 0; !has_axis && d < tile->rank; ++d) request->reduced[d] = true;
  return ok;
}

static void build_reduce(tl_sema *sema, const tl_expr *expr, tl_value *source, const reduction_request *request,
                         tl_value **out_values) {
  const tl_type *type = source->type;
  int64_t dims[TL_MAX_RANK + 1], axes[TL_MAX_RANK];
  int32_t rank = tl_reduced_dims(type->dims, type->rank, request->reduced, request->keepdims, TL_WITHIN_BLOCK, 1, dims),
          num_axes = 0;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (request->reduced[d]) axes[num_axes++] = d;
  }
  const char *name = tl_ir_enum_text(TL_IR_ENUM_REDUCTION, request->reduction);
  tl_dtype dtype = tl_reduction_dtype(request->reduction, type->dtype);
  uint32_t count = tl_reduction_is_arg(request->reduction) ? 2 : 1;
  out_values[0] = tl_instantiate_fragment(sema, count == 2 ? "best" : name, dtype, dims, rank, expr->loc);
  if (count == 2) out_values[1] = tl_instantiate_fragment(sema, name, TL_DTYPE_I32, dims, rank, expr->loc);
  sema->builder.loc = expr->loc;
  tl_group groups[2] = {TL_GROUP_OF(source), {out_values, count}};
  tl_op *op = tl_build(&sema->builder, TL_OP_REDUCE, groups, NULL, 0);
  tl_op_set_int(sema->module, op, TL_ATTR_REDUCTION, request->reduction);
  tl_op_set_ints(sema->module, op, TL_ATTR_AXES, axes, num_axes);
  if (request->keepdims) tl_op_set_unit(sema->module, op, TL_ATTR_KEEPDIMS);
  if (request->propagates_nan && tl_dtype_is_float(dtype)) tl_op_set_unit(sema->module, op, TL_ATTR_NAN);
}

// Emits the reduction of a call. `out_values`: the result, for argmax and argmin values and indices. False after a
// report.
static bool emit_reduction(tl_sema *sema, const tl_expr *expr, reduction_request request, tl_value **out_values) {
  request.reduction = tl_ir_enum_parse(TL_IR_ENUM_REDUCTION, expr->text);
  if (expr->num_operands != 1) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_REDUCTION, expr->loc, "`%.*s` reduces one tile, %u given",
                                   TL_STR_ARG(expr->text), expr->num_operands);
    tl_diag_add_hint(sema->diags, diag, "it is written `%.*s(x, axis=1)`", TL_STR_ARG(expr->text));
    return false;
  }
  bool narrowed = false;
  tl_value *source = build_operand(sema, expr->operands[0], request.reduction, &narrowed);
  if (!source || !read_keywords(sema, expr, source->type, &request)) return false;
  if (!tl_reduction_takes(request.reduction, source->type->dtype)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, expr->loc, "`%.*s` takes integers, `%s` is %s",
                   TL_STR_ARG(expr->text), tl_sema_expr_text(sema, expr->operands[0]),
                   tl_dtype_name(source->type->dtype));
    return false;
  }
  build_reduce(sema, expr, source, &request, out_values);
  // What is computed with the result is computed in 64 bits, as with any index.
  bool is_narrow = narrowed && out_values[0]->type->dtype == TL_DTYPE_I32;
  if (is_narrow) out_values[0] = build_cast(sema, out_values[0], TL_DTYPE_I64, expr->loc);
  return true;
}

void tl_instantiate_reductions(tl_sema *sema, const tl_expr *expr) {
  if (tl_sema_find_reduction(sema, expr)) return;
  for (uint32_t i = 0; i < expr->num_operands; ++i) tl_instantiate_reductions(sema, expr->operands[i]);
  if (!tl_sema_is_reduction(expr)) return;
  tl_value *values[2] = {NULL, NULL};
  bool ok = emit_reduction(sema, expr, (reduction_request){0}, values);
  tl_value *result = !ok ? NULL : values[1] ? values[1] : values[0];
  tl_instantiate_stand_for(sema, expr, result);
}

// ---- the statement

static tl_expr *new_expr(tl_sema *sema, tl_expr_kind kind, tl_expr_op op, const tl_expr *const *operands, uint32_t len,
                         tl_loc loc) {
  tl_expr *expr = TL_NEW(sema->arena, tl_expr);
  expr->kind = kind;
  expr->op = op;
  expr->loc = loc;
  expr->operands = TL_NEW_ARRAY(sema->arena, tl_expr *, len);
  for (uint32_t i = 0; i < len; ++i) expr->operands[i] = (tl_expr *)operands[i];
  expr->num_operands = len;
  return expr;
}

static tl_expr *new_call(tl_sema *sema, const char *name, const tl_expr *const *operands, uint32_t len, tl_loc loc) {
  tl_expr *call = new_expr(sema, TL_EXPR_CALL, TL_EXPR_OP_NONE, operands, len, loc);
  call->text = tl_str_from(name);
  return call;
}

// Either operand's NaN, else the larger (smaller) one.
static const tl_expr *nan_max(tl_sema *sema, bool is_max, const tl_expr *old, const tl_expr *value) {
  const tl_expr *both[2] = {old, value};
  const tl_expr *tests[2] = {new_call(sema, "isnan", &old, 1, value->loc),
                             new_call(sema, "isnan", &value, 1, value->loc)};
  const tl_expr *parts[3] = {new_expr(sema, TL_EXPR_BINARY, TL_EXPR_OP_ADD, both, 2, value->loc),
                             new_expr(sema, TL_EXPR_BINARY, TL_EXPR_OP_OR, tests, 2, value->loc),
                             new_call(sema, is_max ? "max" : "min", both, 2, value->loc)};
  return new_expr(sema, TL_EXPR_CONDITIONAL, TL_EXPR_OP_NONE, parts, 3, value->loc);
}

// The assignment that adds the result to what the target holds.
static bool accumulate(tl_sema *sema, const reduction_request *request, tl_assign *assign) {
  const tl_expr *target = assign->targets[0], *both[2] = {target, assign->value};
  bool is_float = tl_dtype_is_float(tl_sema_find_reduction(sema, assign->value)->value->type->dtype);
  tl_expr_op op = TL_EXPR_OP_NONE;
  switch ((enum tl_reduction)request->reduction) {
    case TL_REDUCTION_SUM:
    case TL_REDUCTION_ABSSUM:
      assign->op = TL_STR("+=");
      return true;
    case TL_REDUCTION_PROD:
      assign->op = TL_STR("*=");
      return true;
    case TL_REDUCTION_MAX:
    case TL_REDUCTION_ABSMAX:
    case TL_REDUCTION_MIN: {
      bool is_max = request->reduction != TL_REDUCTION_MIN;
      if (request->propagates_nan && is_float) {
        assign->value = (tl_expr *)nan_max(sema, is_max, target, assign->value);
      } else {
        assign->op = is_max ? TL_STR("max=") : TL_STR("min=");
      }
      return true;
    }
    case TL_REDUCTION_ANY:
      op = TL_EXPR_OP_OR;
      break;
    case TL_REDUCTION_ALL:
      op = TL_EXPR_OP_AND;
      break;
    case TL_REDUCTION_BITAND:
      op = TL_EXPR_OP_BITAND;
      break;
    case TL_REDUCTION_BITOR:
      op = TL_EXPR_OP_BITOR;
      break;
    case TL_REDUCTION_BITXOR:
      op = TL_EXPR_OP_BITXOR;
      break;
    case TL_REDUCTION_ARGMAX:
    case TL_REDUCTION_ARGMIN:
    case TL_REDUCTION_COUNT:
      return false;
  }
  assign->value = new_expr(sema, TL_EXPR_BINARY, op, both, 2, assign->value->loc);
  return true;
}

// The target of a statement must have the result's very shape.
bool tl_instantiate_validate_result(tl_sema *sema, const tl_expr *target, const tl_expr *call) {
  const tl_type *type = tl_sema_find_reduction(sema, call)->value->type;
  int64_t shape[TL_MAX_RANK] = {1};
  int32_t rank = 1;
  const tl_symbol *symbol = target->kind == TL_EXPR_NAME ? tl_strmap_get(&sema->names, target->text) : NULL;
  if (!tl_sema_is_element(target) && !tl_sema_is_local_scalar(symbol)) {
    tl_sema_region region;
    if (!tl_sema_parse_region(sema, target, &region)) return false;
    rank = region.num_axes;
    for (int32_t i = 0; i < rank; ++i) shape[i] = region.axes[i].extent;
  }
  bool same = rank == type->rank;
  for (int32_t d = 0; same && d < rank; ++d) same = shape[d] == type->dims[d];
  if (same) return true;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_SHAPE_MISMATCH, target->loc, "`%s` has shape %s, `%s` gives %s",
                     tl_sema_expr_text(sema, target), tl_sema_shape_text(sema->arena, shape, rank),
                     tl_sema_expr_text(sema, call), tl_sema_shape_text(sema->arena, type->dims, type->rank));
  int32_t longer = 0;
  for (int32_t d = 0; d < rank; ++d) longer += shape[d] != 1;
  for (int32_t d = 0; d < type->rank; ++d) longer -= type->dims[d] != 1;
  if (rank > type->rank && longer == 0) tl_diag_add_hint(sema->diags, diag, "`keepdims: true` keeps the reduced dim");
  return false;
}

static bool read_options(tl_sema *sema, const tl_stmt *stmt, reduction_request *request, bool *accumulates) {
  bool ok = true;
  for (uint32_t i = 0; i < stmt->num_options; ++i) {
    const tl_option *option = &stmt->options[i];
    if (tl_str_is(option->name, "accumulate")) {
      ok = tl_instantiate_flag(sema, option->value, "accumulate", accumulates) && ok;
    } else if (tl_str_is(option->name, "keepdims")) {
      ok = tl_instantiate_flag(sema, option->value, "keepdims", &request->keepdims) && ok;
    } else if (tl_str_is(option->name, "nan")) {
      request->propagates_nan = tl_str_is(option->value->text, "propagate");
    }
  }
  return ok;
}

static void assign_results(tl_sema *sema, const tl_assign *from, const reduction_request *request, bool accumulates,
                           tl_value *const *values) {
  uint32_t count = from->num_targets;
  bool is_arg = tl_reduction_is_arg(request->reduction);
  for (uint32_t i = 0; i < count; ++i) {
    tl_expr *node = TL_NEW(sema->arena, tl_expr);
    *node = *from->value;
    tl_instantiate_stand_for(sema, node, is_arg && count == 1 ? values[1] : values[i]);
    tl_assign assign = {
        .targets = &from->targets[i], .num_targets = 1, .op = from->op, .value = node, .loc = from->loc};
    if (!tl_instantiate_validate_result(sema, from->targets[i], node)) continue;
    if (accumulates && tl_str_is(from->op, "=") && !accumulate(sema, request, &assign)) continue;
    tl_instantiate_assign_one(sema, &assign);
  }
}

static bool validate_form(tl_sema *sema, const tl_assign *assign, bool accumulates) {
  bool is_arg = tl_reduction_is_arg(tl_ir_enum_parse(TL_IR_ENUM_REDUCTION, assign->value->text));
  if (assign->num_targets > (is_arg ? 2u : 1u)) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_REDUCTION, assign->targets[1]->loc, "`%.*s` gives one tile",
                                   TL_STR_ARG(assign->value->text));
    tl_diag_add_hint(sema->diags, diag, "argmax and argmin give two: `v, i = argmax(x, axis=1)`");
    return false;
  }
  if (is_arg && (accumulates || !tl_str_is(assign->op, "="))) {
    tl_diag_report(sema->diags, TL_DIAG_REDUCTION, assign->loc, "`%.*s` does not accumulate",
                   TL_STR_ARG(assign->value->text));
    return false;
  }
  return true;
}

void tl_instantiate_reduce(tl_sema *sema, const tl_stmt *stmt) {
  const tl_assign *assign = &stmt->assign;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`reduce`")) return;
  reduction_request request = {0};
  bool accumulates = false;
  if (!read_options(sema, stmt, &request, &accumulates) || !validate_form(sema, assign, accumulates)) return;
  size_t mark = sema->reductions.len;
  tl_value *values[2] = {NULL, NULL};
  for (uint32_t i = 0; i < assign->value->num_operands; ++i)
    tl_instantiate_reductions(sema, assign->value->operands[i]);
  request.reduction = tl_ir_enum_parse(TL_IR_ENUM_REDUCTION, assign->value->text);
  if (emit_reduction(sema, assign->value, request, values)) {
    assign_results(sema, assign, &request, accumulates, values);
  }
  sema->reductions.len = mark;
}
