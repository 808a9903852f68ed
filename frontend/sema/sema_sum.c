// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums in index notation, `sum[k in 0:w](W[d, k] * x[i, j + k])`: one loop an index with the result so far carried
// along. Also prod, max, min, any, all, argmax and argmin.
#include <math.h>

#include "frontend/sema/sema.h"
#include "ir/index/affine.h"

// Sums of at most so many terms are written out, so that the loads of neighbouring elements can become vectors.
enum { MAX_WRITTEN_OUT = 16 };

typedef enum sum_kind { SUM, PROD, MAX, MIN, ANY, ALL, ARGMAX, ARGMIN, NUM_KINDS } sum_kind;

static const char *const kind_names[NUM_KINDS] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};

typedef struct sum_state {
  const tl_expr *expr;
  sum_kind kind;
  tl_op *loops[TL_MAX_RANK];  // outermost first
  uint32_t num_loops;
} sum_state;

// ---- ranges of indices

typedef struct dim_search {
  tl_sema *sema;
  tl_str name;
  tl_value *dim;
  tl_loc loc;
  bool failed;
} dim_search;

static void take_dim(dim_search *search, const tl_symbol *symbol, int32_t d, tl_loc loc) {
  tl_value *dim = tl_sema_dim(search->sema, symbol, d);
  if (!search->dim) {
    search->dim = dim;
    search->loc = loc;
  } else if (!search->failed && !tl_prove_equal(search->dim, dim)) {
    search->failed = true;
    tl_diag *diag = tl_diag_report(search->sema->diags, TL_DIAG_SUM_RANGE, loc,
                                   "the index `%.*s` stands for a dim of another size here", TL_STR_ARG(search->name));
    tl_diag_add_note(search->sema->diags, diag, search->loc, "the dim that it stands for first");
    tl_diag_add_hint(search->sema->diags, diag, "give its range, as in `%.*s in 0:16`", TL_STR_ARG(search->name));
  }
}

// The dims where the index stands alone as a subscript.
static void find_dims(dim_search *search, const tl_expr *expr) {
  for (uint32_t i = 0; i < expr->num_indices; ++i) {
    if (tl_str_equal(expr->indices[i].name, search->name)) return;  // an inner index hides it
  }
  for (uint32_t i = 0; i < expr->num_operands; ++i) find_dims(search, expr->operands[i]);
  for (uint32_t i = 0; i < expr->num_subscripts; ++i) {
    if (expr->subscripts[i].lo) find_dims(search, expr->subscripts[i].lo);
  }
  if (expr->kind != TL_EXPR_INDEX || expr->operands[0]->kind != TL_EXPR_NAME) return;
  const tl_symbol *symbol = tl_strmap_get(&search->sema->names, expr->operands[0]->text);
  if (!symbol || symbol->kind != TL_SYMBOL_BUFFER) return;
  for (uint32_t d = 0; d < expr->num_subscripts && d < (uint32_t)symbol->value->type->rank; ++d) {
    const tl_subscript *subscript = &expr->subscripts[d];
    bool alone = subscript->kind == TL_SUBSCRIPT_ELEMENT && subscript->lo->kind == TL_EXPR_NAME &&
                 tl_str_equal(subscript->lo->text, search->name);
    if (alone) take_dim(search, symbol, (int32_t)d, subscript->loc);
  }
}

static bool range_of(tl_sema *sema, const tl_expr *expr, const tl_reduction_index *index, tl_value **lower,
                     tl_value **upper) {
  if (index->lo) {
    *lower = tl_sema_index(sema, index->lo);
    *upper = tl_sema_index(sema, index->hi);
    return *lower && *upper;
  }
  sema->builder.loc = index->loc;
  dim_search search = {.sema = sema, .name = index->name};
  find_dims(&search, expr->operands[0]);
  if (!search.dim) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_SUM_RANGE, index->loc,
                                   "the range of the index `%.*s` is unknown", TL_STR_ARG(index->name));
    tl_diag_add_hint(sema->diags, diag, "it stands alone in no subscript; give its range, as in `%.*s in 0:16`",
                     TL_STR_ARG(index->name));
  }
  *lower = tl_build_index(&sema->builder, 0);
  *upper = search.dim;
  return search.dim && !search.failed;
}

// ---- loops

static bool open_loops(tl_sema *sema, sum_state *state) {
  const tl_expr *expr = state->expr;
  bool ok = true;
  int64_t iterations = 1;
  for (uint32_t i = 0; i < expr->num_indices; ++i) {
    const tl_reduction_index *index = &expr->indices[i];
    tl_value *lower = NULL, *upper = NULL;
    ok = range_of(sema, expr, index, &lower, &upper) && ok;
    tl_symbol *symbol = tl_sema_define(sema, index->name, index->loc, TL_ROLE_INDEX, TL_SYMBOL_POISON);
    ok = ok && symbol;
    if (!ok) continue;
    sema->builder.loc = expr->loc;
    tl_value *step = tl_build_index(&sema->builder, 1);
    tl_group groups[4] = {TL_GROUP_OF(lower), TL_GROUP_OF(upper), TL_GROUP_OF(step), TL_GROUP_EMPTY};
    tl_op *loop = tl_build(&sema->builder, TL_OP_FOR, groups, NULL, 0);
    tl_block_add_arg(sema->module, loop->regions[0], tl_type_index(sema->module), NULL);
    symbol->kind = TL_SYMBOL_VALUE;
    symbol->value = loop->regions[0]->args[0];
    symbol->value->name = tl_module_intern(sema->module, index->name);
    state->loops[state->num_loops++] = loop;
    tl_builder_at_end(&sema->builder, sema->module, loop->regions[0]);
    int64_t lo, hi;
    bool known = tl_value_const_int(lower, &lo) && tl_value_const_int(upper, &hi) && hi - lo <= MAX_WRITTEN_OUT;
    iterations = known && iterations > 0 ? iterations * (hi > lo ? hi - lo : 1) : 0;
  }
  for (uint32_t i = 0; ok && iterations > 0 && iterations <= MAX_WRITTEN_OUT && i < state->num_loops; ++i) {
    tl_op_set_int(sema->module, state->loops[i], TL_ATTR_UNROLL, -1);
  }
  return ok;
}

// The type that terms are combined in: sums of narrow floats add up in f32; constants count as indices.
static const tl_type *result_type(tl_sema *sema, const sum_state *state, const tl_sema_value *term) {
  bool combines = state->kind == SUM || state->kind == PROD;
  if (state->kind == ANY || state->kind == ALL) return tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  if (term->kind == TL_SEMA_CONST) {
    bool is_float = term->constant.kind == TL_CONST_FLOAT;
    if (is_float || !combines) return tl_type_scalar(sema->module, is_float ? TL_DTYPE_F32 : TL_DTYPE_I64);
    return tl_type_index(sema->module);
  }
  const tl_type *type = term->value->type;
  if (type->kind == TL_TYPE_INDEX) {
    if (combines) return type;
    tl_range range = tl_value_range(term->value);
    bool narrow = range.lo > INT32_MIN && range.hi < INT32_MAX;
    return tl_type_scalar(sema->module, narrow ? TL_DTYPE_I32 : TL_DTYPE_I64);
  }
  tl_dtype dtype = tl_sema_arithmetic_dtype(type->dtype);
  if (combines && tl_dtype_is_float(dtype) && tl_dtype_bits(dtype) < 32) dtype = TL_DTYPE_F32;
  return tl_type_scalar(sema->module, dtype);
}

// What an empty range gives: the value that changes nothing.
static tl_value *neutral(tl_sema *sema, sum_kind kind, const tl_type *type) {
  tl_const constant = tl_const_int(kind == PROD || kind == ALL);
  if (kind == MAX || kind == ARGMAX) constant = tl_const_float(-INFINITY);
  if (kind == MIN || kind == ARGMIN) constant = tl_const_float(INFINITY);
  tl_sema_value value = tl_sema_of_const(constant);
  return tl_sema_convert(sema, &value, type, sema->builder.loc);
}

static tl_value *combine(tl_sema *sema, sum_kind kind, tl_value *so_far, tl_value *term) {
  tl_builder *builder = &sema->builder;
  bool is_index = term->type->kind == TL_TYPE_INDEX;
  switch (kind) {
    case SUM:
      return is_index ? tl_index_add(builder, so_far, term) : tl_build_binary(builder, TL_OP_ADD, so_far, term);
    case PROD:
      return is_index ? tl_index_mul(builder, so_far, term) : tl_build_binary(builder, TL_OP_MUL, so_far, term);
    case MAX:
      return tl_build_binary(builder, TL_OP_MAX, so_far, term);
    case MIN:
      return tl_build_binary(builder, TL_OP_MIN, so_far, term);
    case ANY:
      return tl_build_binary(builder, TL_OP_OR, so_far, term);
    default:
      return tl_build_binary(builder, TL_OP_AND, so_far, term);
  }
}

static int reduction_of(sum_kind kind) {
  return tl_ir_enum_parse(TL_IR_ENUM_REDUCTION, tl_str_from(kind_names[kind]));
}

// Gives every loop the carried values that start as `inits`, and passes the innermost loop's next ones outwards.
static void carry(tl_sema *sema, const sum_state *state, tl_value *const *inits, uint32_t count) {
  tl_value *from[2] = {inits[0], count > 1 ? inits[1] : NULL};
  const tl_type *types[2] = {inits[0]->type, count > 1 ? inits[1]->type : NULL};
  for (uint32_t i = 0; i < state->num_loops; ++i) {
    tl_op *loop = state->loops[i];
    tl_op_set_int(sema->module, loop, TL_ATTR_REDUCTION, reduction_of(state->kind));
    tl_op_set_group(sema->module, loop, TL_GROUP_FOR_inits, from, count);
    tl_op_set_results(sema->module, loop, types, count);
    for (uint32_t c = 0; c < count; ++c) {
      from[c] = tl_block_add_arg(sema->module, loop->regions[0], types[c], NULL);
    }
  }
}

static void yield_outwards(tl_sema *sema, const sum_state *state, tl_value *const *next, uint32_t count) {
  tl_value *values[2] = {next[0], count > 1 ? next[1] : NULL};
  for (uint32_t i = state->num_loops; i-- > 0;) {
    tl_builder_at_end(&sema->builder, sema->module, state->loops[i]->regions[0]);
    tl_build_yield(&sema->builder, values, count);
    for (uint32_t c = 0; c < count; ++c) values[c] = tl_op_result(state->loops[i], c);
  }
}

// What a maximum or minimum of floats begins with: the NaN that it is as long as there were no numbers.
static tl_value *no_number(tl_sema *sema, const tl_type *type) {
  tl_sema_value value = tl_sema_of_const(tl_const_float(NAN));
  return tl_sema_convert(sema, &value, type, sema->builder.loc);
}

static bool is_float_extreme(const sum_state *state, const tl_type *type) {
  return (state->kind == MAX || state->kind == MIN) && type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(type->dtype);
}

static tl_value *build_flag(tl_sema *sema, bool value) {
  return tl_build_const_int(&sema->builder, tl_type_scalar(sema->module, TL_DTYPE_BOOL), value);
}

static bool has_terms(const sum_state *state) {
  bool nonempty = true;
  for (uint32_t i = 0; i < state->num_loops && nonempty; ++i)
    nonempty =
        tl_prove_lt(tl_op_arg(state->loops[i], TL_GROUP_FOR_lower), tl_op_arg(state->loops[i], TL_GROUP_FOR_upper));
  return nonempty;
}

// Whether `term` is to take the place of the best so far, which is NaN as long as there were no numbers.
static tl_value *is_better(tl_sema *sema, sum_kind kind, tl_value *term, tl_value *best) {
  tl_builder *builder = &sema->builder;
  tl_value *better = tl_build_cmp(builder, kind == ARGMAX ? TL_CMP_GT : TL_CMP_LT, term, best);
  if (term->type->kind != TL_TYPE_SCALAR || !tl_dtype_is_float(term->type->dtype)) return better;
  tl_value *is_number = tl_build_cmp(builder, TL_CMP_EQ, term, term);
  tl_value *first = tl_build_binary(builder, TL_OP_AND, tl_build_cmp(builder, TL_CMP_NE, best, best), is_number);
  return tl_build_binary(builder, TL_OP_OR, better, first);
}

// The place of the largest or smallest term, the first of equals.
static tl_sema_value finish_place(tl_sema *sema, sum_state *state, tl_value *term, tl_builder outside) {
  tl_builder inside = sema->builder;
  tl_op *loop = state->loops[0];
  sema->builder = outside;
  tl_builder_before(&sema->builder, sema->module, loop);
  sema->builder.loc = state->expr->loc;
  bool is_float = term->type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(term->type->dtype);
  tl_value *inits[2] = {is_float ? no_number(sema, term->type) : neutral(sema, state->kind, term->type),
                        tl_op_arg(loop, TL_GROUP_FOR_lower)};
  carry(sema, state, inits, 2);
  sema->builder = inside;
  tl_value **args = loop->regions[0]->args;
  tl_value *better = is_better(sema, state->kind, term, args[1]);
  tl_value *next[2] = {tl_build_select(&sema->builder, better, term, args[1]),
                       tl_build_select(&sema->builder, better, args[0], args[2])};
  yield_outwards(sema, state, next, 2);
  return tl_sema_of_value(tl_op_result(loop, 1));
}

static tl_sema_value finish(tl_sema *sema, sum_state *state, tl_value *term, tl_builder outside) {
  if (state->kind == ARGMAX || state->kind == ARGMIN) return finish_place(sema, state, term, outside);
  tl_builder inside = sema->builder;
  tl_builder_before(&sema->builder, sema->module, state->loops[0]);
  sema->builder.loc = state->expr->loc;
  tl_value *empty = neutral(sema, state->kind, term->type), *inits[2] = {empty};
  uint32_t count = 1;
  if (is_float_extreme(state, term->type)) {
    inits[0] = no_number(sema, term->type);
    if (!has_terms(state)) inits[count++] = build_flag(sema, false);
  }
  carry(sema, state, inits, count);
  sema->builder = inside;
  const tl_block *innermost = state->loops[state->num_loops - 1]->regions[0];
  tl_value *next[2] = {combine(sema, state->kind, innermost->args[1], term)};
  if (count == 2) next[1] = build_flag(sema, true);
  yield_outwards(sema, state, next, count);
  tl_value *result = tl_op_result(state->loops[0], 0);
  if (count == 1) return tl_sema_of_value(result);
  sema->builder = outside;
  sema->builder.loc = state->expr->loc;
  return tl_sema_of_value(tl_build_select(&sema->builder, tl_op_result(state->loops[0], 1), result, empty));
}

static bool validate_form(tl_sema *sema, const tl_expr *expr, sum_state *state) {
  for (state->kind = SUM; state->kind < NUM_KINDS; ++state->kind) {
    if (tl_str_is(expr->text, kind_names[state->kind])) break;
  }
  if (state->kind == NUM_KINDS) {
    tl_diag_report(sema->diags, TL_DIAG_FUNCTION_UNKNOWN, expr->loc, "unknown reduction `%.*s`",
                   TL_STR_ARG(expr->text));
    return false;
  }
  if (sema->launch_only) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc, "a sum is not computed before the launch");
    return false;
  }
  bool is_place = state->kind == ARGMAX || state->kind == ARGMIN;
  if (expr->num_indices > (is_place ? 1 : TL_MAX_RANK)) {
    tl_diag_report(sema->diags, TL_DIAG_FUNCTION_ARGS, expr->loc, "`%.*s` runs over at most %d ind%s",
                   TL_STR_ARG(expr->text), is_place ? 1 : TL_MAX_RANK, is_place ? "ex" : "ices");
    return false;
  }
  return true;
}

tl_sema_value tl_sema_sum(tl_sema *sema, const tl_expr *expr) {
  sum_state state = {.expr = expr};
  if (!validate_form(sema, expr, &state)) return tl_sema_poison();
  tl_builder outside = sema->builder;
  size_t mark = tl_sema_open_scope(sema);
  // The terms have a dtype to be summed in.
  tl_exactness outer_exact = sema->exact;
  sema->exact = TL_EXACT_NOTHING;
  bool ok = open_loops(sema, &state);
  bool is_condition = state.kind == ANY || state.kind == ALL;
  const tl_expr *body = expr->operands[0];
  tl_sema_value term = is_condition ? tl_sema_condition(sema, body) : tl_sema_expr(sema, body);
  sema->exact = outer_exact;
  tl_sema_close_scope(sema, mark);
  tl_sema_value result = tl_sema_poison();
  if (ok && term.kind != TL_SEMA_POISON) {
    tl_value *value = tl_sema_convert(sema, &term, result_type(sema, &state, &term), body->loc);
    sema->builder.loc = expr->loc;
    if (value) result = finish(sema, &state, value, outside);
  }
  sema->builder = outside;
  return result;
}
