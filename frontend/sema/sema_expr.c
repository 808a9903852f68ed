// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions to values: constants fold, everything else becomes IR at the builder.
#include "frontend/expr/suggest.h"
#include "frontend/sema/sema.h"

static tl_sema_value misused(tl_sema *sema, const tl_expr *expr, const char *what) {
  tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, expr->loc, "%s", what);
  return tl_sema_poison();
}

// The exactness by which a value of this dtype is an index: NOTHING for none.
static tl_exactness needed_exactness(tl_dtype dtype) {
  if (!tl_dtype_is_int(dtype) || tl_dtype_bits(dtype) > 32) return TL_EXACT_NOTHING;
  return tl_sema_arithmetic_dtype(dtype) == TL_DTYPE_I32 ? TL_EXACT_SIGNED : TL_EXACT_ALL;
}

static bool is_wanted_exact(const tl_sema *sema, tl_dtype dtype) {
  if (sema->index_position) return tl_dtype_is_int(dtype);
  tl_exactness needed = needed_exactness(dtype);
  return needed != TL_EXACT_NOTHING && needed <= sema->exact;
}

// Integer data in a subscript turns into an index at once, so that the arithmetic on it never wraps.
static tl_sema_value leaf(tl_sema *sema, tl_sema_value value, tl_loc loc) {
  if (value.kind != TL_SEMA_VALUE || value.value->type->kind != TL_TYPE_SCALAR) return value;
  if (!is_wanted_exact(sema, value.value->type->dtype)) return value;
  return tl_sema_of_value(tl_sema_convert(sema, &value, tl_type_index(sema->module), loc));
}

static tl_sema_value name_value(tl_sema *sema, const tl_expr *expr) {
  tl_dtype dtype = tl_dtype_parse(expr->text);
  if (dtype != TL_DTYPE_NONE) return tl_sema_of_const(tl_const_dtype(dtype));
  tl_symbol *symbol = tl_sema_lookup(sema, expr->text, expr->loc);
  if (!symbol) return tl_sema_poison();
  bool launcher_knows = symbol->kind == TL_SYMBOL_CONST || symbol->kind == TL_SYMBOL_POISON || symbol->at_launch;
  if (sema->launch_only && !launcher_knows) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc, "the %s `%.*s` is not known before the launch",
                       tl_symbol_role_text(symbol->role), TL_STR_ARG(symbol->name));
    tl_diag_add_hint(sema->diags, diag, "only params, dynamic params and lets can stand here");
    return tl_sema_poison();
  }
  switch (symbol->kind) {
    case TL_SYMBOL_POISON:
      return tl_sema_poison();
    case TL_SYMBOL_CONST:
      return tl_sema_of_const(symbol->constant);
    case TL_SYMBOL_VALUE:
      if (symbol->exact && is_wanted_exact(sema, symbol->value->type->dtype)) return tl_sema_of_value(symbol->exact);
      return leaf(sema, tl_sema_of_value(symbol->value), expr->loc);
    case TL_SYMBOL_TILES:
    case TL_SYMBOL_BARRIER:
      tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, expr->loc, "a single value is needed, `%.*s` is %s",
                     TL_STR_ARG(symbol->name), tl_symbol_a_role(symbol->role));
      return tl_sema_poison();
    case TL_SYMBOL_BUFFER:
      break;
  }
  if (tl_sema_is_local_scalar(symbol)) return leaf(sema, tl_sema_load(sema, symbol, NULL, NULL, expr->loc), expr->loc);
  if (sema->tile) return leaf(sema, tl_sema_broadcast(sema, expr), expr->loc);
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, expr->loc,
                                 "a single value is needed, `%.*s` is a whole %s of shape %s", TL_STR_ARG(symbol->name),
                                 tl_symbol_role_text(symbol->role), tl_sema_buffer_shape(sema, symbol));
  tl_diag_add_hint(sema->diags, diag, "name an element of it: `%.*s[%s]`", TL_STR_ARG(symbol->name),
                   symbol->value->type->rank == 1   ? "i"
                   : symbol->value->type->rank == 2 ? "i, j"
                                                    : "i, j, …");
  return tl_sema_poison();
}

static tl_sema_value right_side(tl_sema *sema, const tl_sema_lazy *lazy) {
  size_t present = sema->present.len;
  tl_sema_know_present(sema, lazy->expr->operands[0], lazy->expr->op == TL_EXPR_OP_AND);
  tl_sema_value value = tl_sema_condition(sema, lazy->expr->operands[1]);
  sema->present.len = present;
  return value;
}

static tl_sema_value logical(tl_sema *sema, const tl_expr *expr) {
  tl_sema_value left = tl_sema_condition(sema, expr->operands[0]);
  tl_sema_lazy right = {.evaluate = right_side, .expr = expr};
  return tl_sema_lazy_logical(sema, expr->op == TL_EXPR_OP_AND, left, &right, expr->loc);
}

static bool wraps(tl_expr_op op) {
  return op == TL_EXPR_OP_NEG || op == TL_EXPR_OP_ADD || op == TL_EXPR_OP_SUB || op == TL_EXPR_OP_MUL ||
         op == TL_EXPR_OP_SHL || op == TL_EXPR_OP_POW;
}

static bool has_arithmetic(const tl_sema *sema, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_INDEX) return false;
  if (expr->kind == TL_EXPR_NAME) {
    const tl_symbol *symbol = tl_strmap_get(&sema->names, expr->text);
    return symbol && symbol->kind == TL_SYMBOL_VALUE && symbol->exact;
  }
  if ((expr->kind == TL_EXPR_UNARY || expr->kind == TL_EXPR_BINARY) && wraps(expr->op)) return true;
  for (uint32_t i = 0; i < expr->num_operands; ++i) {
    if (has_arithmetic(sema, expr->operands[i])) return true;
  }
  return false;
}

bool tl_sema_may_wrap(const tl_sema *sema, const tl_expr *expr, const tl_sema_value *value) {
  if (value->kind != TL_SEMA_VALUE || value->value->type->kind != TL_TYPE_SCALAR) return false;
  tl_dtype dtype = value->value->type->dtype;
  return (dtype == TL_DTYPE_I32 || dtype == TL_DTYPE_U32) && has_arithmetic(sema, expr);
}

tl_sema_value tl_sema_exact(tl_sema *sema, const tl_expr *expr, tl_exactness exact) {
  tl_exactness outer = sema->exact;
  tl_diags *diags = sema->diags, silent;
  tl_diags_init(&silent, sema->sources);
  sema->diags = &silent;
  sema->exact = exact;
  tl_sema_value value = tl_sema_expr(sema, expr);
  sema->exact = outer;
  sema->diags = diags;
  tl_diags_fini(&silent);
  return value;
}

// A side of a comparison. Signed integers do not wrap there, so that a condition means what the subscripts that it
// guards do.
static tl_sema_value side(tl_sema *sema, const tl_expr *expr) {
  tl_sema_value value = tl_sema_expr(sema, expr);
  if (sema->exact != TL_EXACT_NOTHING || sema->index_position || !tl_sema_may_wrap(sema, expr, &value)) return value;
  if (value.value->type->dtype != TL_DTYPE_I32) return value;
  tl_sema_value exact = tl_sema_exact(sema, expr, TL_EXACT_SIGNED);
  return exact.kind == TL_SEMA_POISON ? value : exact;
}

// The links of a chain from `lazy->link` on, whose left side is known.
static tl_sema_value links(tl_sema *sema, const tl_sema_lazy *lazy) {
  const tl_expr *expr = lazy->expr;
  uint32_t i = lazy->link;
  tl_sema_value right = side(sema, expr->operands[i]);
  tl_loc loc = expr->num_operands == 2 ? expr->loc : tl_loc_join(expr->operands[i - 1]->loc, expr->operands[i]->loc);
  tl_sema_value link = tl_sema_compare(sema, expr->compare_ops[i - 1], lazy->left, right, loc);
  if (i + 1 == expr->num_operands) return link;
  tl_sema_lazy rest = {.evaluate = links, .expr = expr, .link = i + 1, .left = right};
  return tl_sema_lazy_logical(sema, true, link, &rest, expr->loc);
}

// a < b < c is (a < b) and (b < c) with b evaluated once.
static tl_sema_value comparison(tl_sema *sema, const tl_expr *expr) {
  tl_sema_lazy all = {.evaluate = links, .expr = expr, .link = 1, .left = side(sema, expr->operands[0])};
  return links(sema, &all);
}

static tl_sema_value conditional(tl_sema *sema, const tl_expr *expr) {
  tl_sema_value condition = tl_sema_condition(sema, expr->operands[1]);
  if (condition.kind == TL_SEMA_CONST) return tl_sema_expr(sema, expr->operands[condition.constant.i ? 0 : 2]);
  return tl_sema_lazy_select(sema, condition, expr->operands[1], expr->operands[0], expr->operands[2], expr->loc);
}

static tl_sema_value subscripted(tl_sema *sema, const tl_expr *expr) {
  if (tl_sema_is_element(expr)) return leaf(sema, tl_sema_load_element(sema, expr, NULL), expr->loc);
  if (sema->tile && tl_sema_is_reshaped(sema, expr)) return tl_sema_reshaped(sema, expr);
  if (sema->tile) return leaf(sema, tl_sema_broadcast(sema, expr), expr->loc);
  return misused(sema, expr, "a single value is needed, this is a slice");
}

tl_sema_value tl_sema_expr(tl_sema *sema, const tl_expr *expr) {
  switch (expr->kind) {
    case TL_EXPR_INT:
      return tl_sema_of_const(tl_const_int(expr->int_value));
    case TL_EXPR_FLOAT:
      return tl_sema_of_const(tl_const_float(expr->float_value));
    case TL_EXPR_BOOL:
      return tl_sema_of_const(tl_const_bool(expr->int_value != 0));
    case TL_EXPR_NONE:
      return misused(sema, expr, "`None` adds a dim in a subscript and is no value");
    case TL_EXPR_STRING:
      return misused(sema, expr, "a text is no value here");
    case TL_EXPR_NAME:
      return name_value(sema, expr);
    case TL_EXPR_UNARY:
      if (expr->op == TL_EXPR_OP_NOT) {
        return tl_sema_unary(sema, expr->op, tl_sema_condition(sema, expr->operands[0]), expr->loc);
      }
      return tl_sema_unary(sema, expr->op, tl_sema_expr(sema, expr->operands[0]), expr->loc);
    case TL_EXPR_BINARY: {
      if (expr->op == TL_EXPR_OP_AND || expr->op == TL_EXPR_OP_OR) return logical(sema, expr);
      if (expr->op == TL_EXPR_OP_MATMUL) return misused(sema, expr, "`@` stands in `gemm:` only");
      tl_sema_value a = tl_sema_expr(sema, expr->operands[0]);
      return tl_sema_binary(sema, expr->op, a, tl_sema_expr(sema, expr->operands[1]), expr->loc);
    }
    case TL_EXPR_COMPARE:
      return comparison(sema, expr);
    case TL_EXPR_CONDITIONAL:
      return conditional(sema, expr);
    case TL_EXPR_CALL:
      return tl_sema_call(sema, expr);
    case TL_EXPR_INDEX:
      return subscripted(sema, expr);
    case TL_EXPR_TRANSPOSE:
      if (sema->tile) return tl_sema_broadcast(sema, expr);
      return misused(sema, expr, "a single value is needed, this is a transposed tile");
    case TL_EXPR_REDUCTION:
      return tl_sema_sum(sema, expr);
  }
  return tl_sema_poison();
}

tl_value *tl_sema_index(tl_sema *sema, const tl_expr *expr) {
  bool outer = sema->index_position;
  sema->index_position = true;
  tl_sema_value value = tl_sema_expr(sema, expr);
  sema->index_position = outer;
  return tl_sema_convert(sema, &value, tl_type_index(sema->module), expr->loc);
}

bool tl_sema_const_int(tl_sema *sema, const tl_expr *expr, const char *what, int64_t *out) {
  bool outer = sema->index_position;
  sema->index_position = true;
  tl_sema_value value = tl_sema_expr(sema, expr);
  sema->index_position = outer;
  if (value.kind == TL_SEMA_POISON) return false;
  if (value.kind == TL_SEMA_CONST && value.constant.kind == TL_CONST_INT) {
    *out = value.constant.i;
    return true;
  }
  if (value.kind == TL_SEMA_VALUE && tl_value_const_int(value.value, out)) return true;
  if (value.kind == TL_SEMA_CONST || tl_sema_is_float(&value)) {
    tl_diag_report(sema->diags, TL_DIAG_INDEX_EXPECTED, expr->loc, "%s must be an integer, this is %s", what,
                   tl_sema_type_text(sema, &value));
    return false;
  }
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, expr->loc,
                     "%s must be known when the kernel is compiled; `%s` is not", what, tl_sema_expr_text(sema, expr));
  tl_diag_add_hint(sema->diags, diag, "dynamic params, arguments and loop indices have values at run time only");
  return false;
}

tl_sema_value tl_sema_condition(tl_sema *sema, const tl_expr *expr) {
  bool outer = sema->index_position;
  sema->index_position = false;
  tl_sema_value value = side(sema, expr);
  sema->index_position = outer;
  return tl_sema_to_bool(sema, &value, expr->loc);
}

bool tl_sema_dtype(tl_sema *sema, const tl_expr *expr, tl_dtype *out) {
  if (expr->kind == TL_EXPR_NAME && tl_dtype_parse(expr->text) == TL_DTYPE_NONE &&
      !tl_strmap_get(&sema->names, expr->text)) {
    const char *names[TL_DTYPE_COUNT];
    size_t count = 0;
    for (int i = 1; i < TL_DTYPE_COUNT; ++i) names[count++] = tl_dtype_name((tl_dtype)i);
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_DTYPE_EXPECTED, expr->loc, "unknown dtype `%.*s`", TL_STR_ARG(expr->text));
    const char *nearest = tl_suggest(expr->text, names, count), *known = tl_suggest_for_dtype(expr->text);
    if (known)
      tl_diag_add_hint(sema->diags, diag, "%s", known);
    else if (nearest)
      tl_diag_add_hint(sema->diags, diag, "did you mean `%s`?", nearest);
    return false;
  }
  tl_sema_value value = tl_sema_expr(sema, expr);
  if (value.kind == TL_SEMA_POISON) return false;
  if (value.kind == TL_SEMA_CONST && value.constant.kind == TL_CONST_DTYPE) {
    *out = value.constant.dtype;
    return true;
  }
  tl_diag_report(sema->diags, TL_DIAG_DTYPE_EXPECTED, expr->loc, "a dtype is needed, `%s` is %s",
                 tl_sema_expr_text(sema, expr), tl_sema_type_text(sema, &value));
  return false;
}
