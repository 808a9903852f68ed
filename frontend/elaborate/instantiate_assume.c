// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the author knows of values (`assume`): bounds, and what they are multiples of.
//
//   assume: 0 <= idx[i] < N      every element that is read becomes   %r = load idx[…]; %s = assume %r, %0, %N
//   - assume: row < N            for the rest of the list `row` is     assume %row, , %N
//
// Conditions of params and lets alone were made requirements when the spec was read; what those say of one dynamic
// param becomes attributes of it.
#include "frontend/elaborate/instantiate_internal.h"

// ---- requirements as facts

static tl_op *dynamic_of(const tl_value *value) {
  return value->def && value->def->code == TL_OP_LAUNCHED ? tl_op_operand(value->def, 0)->def : NULL;
}

void tl_instantiate_as_launched(tl_sema *sema, bool begin) {
  const tl_type *type = tl_type_index(sema->module);
  for (size_t i = 0; i < sema->stack.len; i++) {
    tl_symbol *symbol = sema->stack.items[i];
    const tl_op *op = symbol->role == TL_ROLE_PARAM && symbol->value ? symbol->value->def : NULL;
    if (begin && op && op->code == TL_OP_DYN_PARAM) {
      tl_group group = TL_GROUP_OF(symbol->value);
      sema->builder.loc = symbol->loc;
      symbol->value = tl_op_result(tl_build(&sema->builder, TL_OP_LAUNCHED, &group, &type, 1), 0);
    } else if (!begin && op && op->code == TL_OP_LAUNCHED) {
      symbol->value = tl_op_operand(op, 0);
    }
  }
}

static void bound_param(tl_sema *sema, tl_op *param, int64_t least, int64_t most) {
  if (least > tl_op_int(param, TL_ATTR_LEAST, 0)) tl_op_set_int(sema->module, param, TL_ATTR_LEAST, least);
  if (most >= 0 && most < tl_op_int(param, TL_ATTR_MOST, INT64_MAX))
    tl_op_set_int(sema->module, param, TL_ATTR_MOST, most);
}

// `param pred limit`.
static void take_order(tl_sema *sema, tl_op *param, int64_t pred, int64_t limit) {
  if (limit <= -TL_WIDE_MAX || limit >= TL_WIDE_MAX) return;
  if (pred == TL_CMP_EQ) bound_param(sema, param, limit, limit);
  if (pred == TL_CMP_LT) bound_param(sema, param, 0, limit - 1);
  if (pred == TL_CMP_LE) bound_param(sema, param, 0, limit);
  if (pred == TL_CMP_GT) bound_param(sema, param, limit + 1, INT64_MAX);
  if (pred == TL_CMP_GE) bound_param(sema, param, limit, INT64_MAX);
}

// `param % by == 0`.
static void take_divisor(tl_sema *sema, const tl_op *mod) {
  tl_op *param = dynamic_of(tl_op_operand(mod, 0));
  int64_t by, both;
  if (!param || !tl_value_const_int(tl_op_operand(mod, 1), &by) || by < 2) return;
  int64_t had = tl_op_int(param, TL_ATTR_DIVISOR, 1);
  if (__builtin_mul_overflow(had / tl_gcd(had, by), by, &both) || both > INT32_MAX) return;
  tl_op_set_int(sema->module, param, TL_ATTR_DIVISOR, both);
}

static int64_t turned(int64_t pred) {
  static const int64_t other[TL_CMP_COUNT] = {
      [TL_CMP_EQ] = TL_CMP_EQ, [TL_CMP_NE] = TL_CMP_NE, [TL_CMP_LT] = TL_CMP_GT,
      [TL_CMP_LE] = TL_CMP_GE, [TL_CMP_GT] = TL_CMP_LT, [TL_CMP_GE] = TL_CMP_LE};
  return other[pred];
}

void tl_instantiate_requirement(tl_sema *sema, const tl_value *condition) {
  const tl_op *op = condition->def;
  if (op && op->code == TL_OP_AND) {
    tl_instantiate_requirement(sema, tl_op_operand(op, 0));
    tl_instantiate_requirement(sema, tl_op_operand(op, 1));
  }
  if (!op || op->code != TL_OP_CMP) return;
  int64_t pred = tl_op_int(op, TL_ATTR_CMP, TL_CMP_COUNT), limit;
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  if (pred < 0 || pred >= TL_CMP_COUNT) return;
  if (tl_value_const_int(a, &limit)) {
    tl_value *swapped = a;
    a = b;
    b = swapped;
    pred = turned(pred);
  }
  if (!tl_value_const_int(b, &limit)) return;
  if (dynamic_of(a)) take_order(sema, dynamic_of(a), pred, limit);
  if (pred == TL_CMP_EQ && limit == 0 && a->def && a->def->code == TL_OP_MOD) take_divisor(sema, a->def);
}

// ---- facts about other values

// What an assumption says; one of its comparisons at a time.
typedef struct reading {
  tl_sema *sema;
  const tl_expr *whole;
  const tl_expr *subject;  // the first that it is about; NULL: none yet
  tl_sema_fact fact;
  bool ok;
} reading;

static void refuse(reading *r, tl_loc loc, const char *hint) {
  if (r->ok) {
    tl_diag *diag = tl_diag_report(r->sema->diags, TL_DIAG_ASSUMPTION, loc,
                                   "an assumption compares one value with bounds, or says what it is a multiple of");
    tl_diag_add_hint(r->sema->diags, diag, "%s", hint);
  }
  r->ok = false;
}

static const char *const forms = "as in `0 <= idx[i] < N`, `row < N`, `row % 8 == 0`";
static const char *const body_forms = "in a body it is about a `let`: `let: {row: idx[i]}`, then `assume: row < N`";

// At the head an element `X[i, j]` of a tensor with indices that are no names yet, or a scalar argument; in a body a
// `let` of it.
static bool is_subject(const reading *r, const tl_expr *expr) {
  const tl_sema *sema = r->sema;
  const tl_expr *base = expr->kind == TL_EXPR_INDEX ? expr->operands[0] : expr;
  if (base->kind != TL_EXPR_NAME) return false;
  const tl_symbol *symbol = tl_strmap_get(&sema->names, base->text);
  if (!symbol) return false;
  if (symbol->role == TL_ROLE_BODY_LET) return expr->kind == TL_EXPR_NAME;
  return symbol->role == TL_ROLE_ARG && !sema->in_body;
}

// Takes the tighter one.
static void take_bound(reading *r, tl_value **bound, tl_value *value, bool is_lower) {
  tl_builder *builder = &r->sema->builder;
  if (!value) {
    r->ok = false;
  } else if (!*bound) {
    *bound = value;
  } else {
    *bound = is_lower ? tl_index_max(builder, *bound, value) : tl_index_min(builder, *bound, value);
  }
}

// A bound is of what is known where the assumption stands; at the head that is what the launcher knows.
static tl_value *bound_value(reading *r, const tl_expr *expr, int64_t plus) {
  tl_sema *sema = r->sema;
  sema->launch_only = !sema->in_body;
  tl_value *value = tl_sema_index(sema, expr);
  sema->launch_only = false;
  return value && plus ? tl_index_add(&sema->builder, value, tl_build_index(&sema->builder, plus)) : value;
}

static bool is_zero(const tl_expr *expr) {
  return expr->kind == TL_EXPR_INT && expr->int_value == 0;
}

static bool set_subject(reading *r, const tl_expr *expr) {
  if (r->subject && !tl_expr_equal(r->subject, expr)) {
    refuse(r, expr->loc, "of each value there is an assumption of its own");
    return false;
  }
  r->subject = expr;
  return true;
}

static void read_multiple(reading *r, const tl_expr *mod) {
  int64_t by = 1;
  if (!set_subject(r, mod->operands[0])) return;
  if (!tl_sema_const_int(r->sema, mod->operands[1], "what a value is a multiple of", &by)) {
    r->ok = false;
  } else if (by < 1 || by > INT32_MAX) {
    refuse(r, mod->loc, "a value is a multiple of 1 to 2^31 - 1");
  } else {
    r->fact.divisor = r->fact.divisor / tl_gcd(r->fact.divisor, by) * by;
  }
}

static tl_expr_op turned_op(tl_expr_op op) {
  return op == TL_EXPR_OP_LT   ? TL_EXPR_OP_GT
         : op == TL_EXPR_OP_LE ? TL_EXPR_OP_GE
         : op == TL_EXPR_OP_GT ? TL_EXPR_OP_LT
         : op == TL_EXPR_OP_GE ? TL_EXPR_OP_LE
                               : op;
}

static bool is_multiple(const reading *r, const tl_expr *expr) {
  return expr->kind == TL_EXPR_BINARY && expr->op == TL_EXPR_OP_MOD && is_subject(r, expr->operands[0]);
}

static void read_link(reading *r, const tl_expr *a, tl_expr_op op, const tl_expr *b) {
  if (op == TL_EXPR_OP_EQ && is_multiple(r, a) && is_zero(b)) {
    read_multiple(r, a);
    return;
  }
  if (!is_subject(r, a)) {
    const tl_expr *left = a;
    a = b;
    b = left;
    op = turned_op(op);
  }
  if (!is_subject(r, a) || op == TL_EXPR_OP_NE) {
    refuse(r, r->whole->loc, r->sema->in_body ? body_forms : forms);
    return;
  }
  if (!set_subject(r, a)) return;
  tl_sema_fact *fact = &r->fact;
  bool equal = op == TL_EXPR_OP_EQ;
  if (equal || op == TL_EXPR_OP_GE) take_bound(r, &fact->lower, bound_value(r, b, 0), true);
  if (op == TL_EXPR_OP_GT) take_bound(r, &fact->lower, bound_value(r, b, 1), true);
  if (op == TL_EXPR_OP_LT) take_bound(r, &fact->upper, bound_value(r, b, 0), false);
  if (equal || op == TL_EXPR_OP_LE) take_bound(r, &fact->upper, bound_value(r, b, 1), false);
}

static void read_condition(reading *r, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_BINARY && expr->op == TL_EXPR_OP_AND) {
    read_condition(r, expr->operands[0]);
    read_condition(r, expr->operands[1]);
  } else if (expr->kind == TL_EXPR_COMPARE) {
    for (uint32_t i = 0; i + 1 < expr->num_operands && r->ok; i++)
      read_link(r, expr->operands[i], expr->compare_ops[i], expr->operands[i + 1]);
  } else {
    refuse(r, expr->loc, r->sema->in_body ? body_forms : forms);
  }
}

// Indices of an element at the head stand for all of a dim: each its own, and none a name of something else.
static bool validate_indices(reading *r, const tl_expr *expr, const tl_symbol *symbol) {
  const tl_type *type = symbol->value->type;
  bool ok = expr->num_subscripts == (uint32_t)type->rank;
  for (uint32_t i = 0; i < expr->num_subscripts && ok; i++) {
    const tl_expr *index = expr->subscripts[i].lo;
    ok = expr->subscripts[i].kind == TL_SUBSCRIPT_ELEMENT && index->kind == TL_EXPR_NAME &&
         !tl_strmap_get(&r->sema->names, index->text);
    for (uint32_t k = 0; k < i && ok; k++) ok = !tl_str_equal(index->text, expr->subscripts[k].lo->text);
  }
  if (!ok) refuse(r, expr->loc, "it is about all elements: each dim has an index of its own, of a new name");
  return ok;
}

static bool read_fact(reading *r, const tl_expr *expr) {
  r->whole = expr;
  r->fact = (tl_sema_fact){.divisor = 1, .text = tl_sema_expr_text(r->sema, expr), .loc = expr->loc};
  r->ok = true;
  r->sema->builder.loc = expr->loc;
  read_condition(r, expr);
  return r->ok && r->subject;
}

static bool is_integer(const tl_value *value) {
  return value->type->kind == TL_TYPE_INDEX ||
         (value->type->kind == TL_TYPE_SCALAR && tl_dtype_is_int(value->type->dtype));
}

// From here on the symbol's value is one with the fact.
static void assume_value(reading *r, tl_symbol *symbol) {
  if (symbol->kind != TL_SYMBOL_VALUE || !is_integer(symbol->value)) {
    if (symbol->kind != TL_SYMBOL_POISON) refuse(r, r->subject->loc, "it is about an integer that is not known before");
    return;
  }
  symbol->value = tl_sema_assumed(r->sema, symbol->value, &r->fact);
  if (symbol->exact) symbol->exact = tl_sema_assumed(r->sema, symbol->exact, &r->fact);
}

// Out of bounds an element is 0.
static void widen_to_zero(tl_sema *sema, tl_sema_fact *fact) {
  if (fact->lower) fact->lower = tl_index_min(&sema->builder, fact->lower, tl_build_index(&sema->builder, 0));
  if (fact->upper) fact->upper = tl_index_max(&sema->builder, fact->upper, tl_build_index(&sema->builder, 1));
}

static void assume_elements(reading *r, tl_symbol *symbol) {
  tl_sema *sema = r->sema;
  if (symbol->kind == TL_SYMBOL_POISON || !validate_indices(r, r->subject, symbol)) return;
  if (!tl_dtype_is_int(symbol->value->type->dtype)) {
    refuse(r, r->subject->loc, "it is about integers");
    return;
  }
  widen_to_zero(sema, &r->fact);
  tl_sema_fact *fact = TL_NEW(sema->arena, tl_sema_fact);
  *fact = r->fact;
  fact->next = symbol->fact;
  symbol->fact = fact;
}

void tl_instantiate_assumptions(tl_sema *sema) {
  for (uint32_t i = 0; i < sema->kernel->num_assumptions; i++) {
    reading r = {.sema = sema};
    if (!read_fact(&r, sema->kernel->assumptions[i])) continue;
    bool is_element = r.subject->kind == TL_EXPR_INDEX;
    tl_symbol *symbol = tl_strmap_get(&sema->names, is_element ? r.subject->operands[0]->text : r.subject->text);
    if (is_element && symbol->kind == TL_SYMBOL_BUFFER)
      assume_elements(&r, symbol);
    else
      assume_value(&r, symbol);
  }
}

void tl_instantiate_assume(tl_sema *sema, const tl_stmt *stmt) {
  reading r = {.sema = sema};
  if (!read_fact(&r, stmt->condition)) return;
  tl_symbol *symbol = tl_sema_shadow(sema, r.subject->text);
  // What the compiler knows already is tested at once.
  if (symbol->kind == TL_SYMBOL_CONST) {
    tl_sema_value condition = tl_sema_condition(sema, stmt->condition);
    if (condition.kind == TL_SEMA_CONST && !condition.constant.i)
      tl_diag_report(sema->diags, TL_DIAG_ASSUMPTION, stmt->text_loc, "`%s` is false here", r.fact.text);
    return;
  }
  assume_value(&r, symbol);
}
