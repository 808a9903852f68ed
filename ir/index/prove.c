// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Proofs of inequalities between index values. To show that a form is never negative, its symbols are replaced one by
// one by bounds that point the right way (a block index by its extent less one, a quotient by its dividend, …) until
// constants remain.
#include "ir/index/affine_internal.h"

enum { MAX_REPLACEMENTS = 7 };

// Whether a lower bound of the form is wanted with the symbol at its least (coefficient > 0) or its greatest.
typedef enum side { SIDE_LOWER, SIDE_UPPER } side;

static bool prove(tl_query *query, const tl_affine *form, int depth);

// The form with the term `at` replaced by coefficient * bound.
static tl_affine replaced(const tl_affine *form, int32_t at, const tl_affine *bound) {
  tl_affine rest = *form;
  int64_t coefficient = rest.terms[at].coefficient;
  for (int32_t i = at; i + 1 < rest.num_terms; i++) rest.terms[i] = rest.terms[i + 1];
  rest.num_terms--;
  return tl_affine_combine(&rest, coefficient, bound);
}

static bool prove_with(tl_query *query, const tl_affine *form, int32_t at, const tl_affine *bound, int depth) {
  tl_affine next = replaced(form, at, bound);
  return prove(query, &next, depth + 1);
}

static tl_affine plus(const tl_affine *a, int64_t constant) {
  tl_affine b = tl_affine_constant(constant);
  return tl_affine_combine(a, 1, &b);
}

// ---- bounds of symbols in terms of other symbols

// The index of a loop with a constant step: below the upper limit, and on the grid of the step when it ends on it.
static bool loop_bound(tl_query *query, const tl_op *loop, side which, tl_affine *out) {
  int64_t step;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step == 0 || step == INT64_MIN) return false;
  tl_affine lower = tl_query_affine(query, tl_op_arg(loop, TL_GROUP_FOR_lower));
  tl_affine upper = tl_query_affine(query, tl_op_arg(loop, TL_GROUP_FOR_upper));
  if (which == (step > 0 ? SIDE_LOWER : SIDE_UPPER)) {
    *out = lower;
    return true;
  }
  int64_t size = step > 0 ? step : -step;
  tl_affine span = tl_affine_combine(&upper, -1, &lower);
  bool ends_on_grid = span.valid && tl_query_affine_divisor(query, &span) % size == 0;
  int64_t back = ends_on_grid ? size : 1;
  *out = plus(&upper, step > 0 ? -back : back);
  return true;
}

static bool symbol_bound(tl_query *query, tl_value *symbol, side which, tl_affine *out) {
  const tl_op *op = symbol->def;
  if (op == NULL) {
    const tl_op *around = symbol->block ? symbol->block->parent : NULL;
    return around && around->code == TL_OP_FOR && symbol->index == 0 && loop_bound(query, around, which, out);
  }
  bool is_place = op->code == TL_OP_GRID || op->code == TL_OP_TILE_INDEX;
  if (is_place && which == SIDE_UPPER && symbol->index < op->num_results) {
    tl_affine extent = tl_query_affine(query, op->operands[symbol->index].value);
    *out = plus(&extent, -1);
    return true;
  }
  if (op->code == TL_OP_ASSUME) {
    tl_value *bound = tl_op_arg(op, which == SIDE_LOWER ? TL_GROUP_ASSUME_lower : TL_GROUP_ASSUME_upper);
    if (!bound) return false;
    tl_affine form = tl_query_affine(query, bound);
    *out = which == SIDE_LOWER ? form : plus(&form, -1);
    return true;
  }
  if (op->code == TL_OP_MOD && which == SIDE_UPPER && tl_query_range(query, op->operands[1].value).lo >= 1) {
    tl_affine divisor = tl_query_affine(query, op->operands[1].value);
    *out = plus(&divisor, -1);
    return true;
  }
  return false;
}

// ---- rules

// min, max and select take one of two values: both replacements must hold, or one where the direction makes it a bound.
static bool prove_choice(tl_query *query, const tl_affine *form, int32_t at, int depth) {
  const tl_op *op = form->terms[at].symbol->def;
  bool positive = form->terms[at].coefficient > 0;
  uint32_t first = op->code == TL_OP_SELECT ? 1 : 0;
  tl_affine a = tl_query_affine(query, op->operands[first].value);
  tl_affine b = tl_query_affine(query, op->operands[first + 1].value);
  // -min(a, b) >= -a, and max(a, b) >= a: one is enough.
  bool either = (op->code == TL_OP_MIN && !positive) || (op->code == TL_OP_MAX && positive);
  bool with_a = prove_with(query, form, at, &a, depth);
  if (with_a == either) return with_a;
  return prove_with(query, form, at, &b, depth);
}

// q = floordiv(x, c) for a constant c > 0: c * q = x - x mod c, and x mod c is known modulo the divisor of x.
static bool prove_quotient(tl_query *query, const tl_affine *form, int32_t at, int depth) {
  const tl_op *op = form->terms[at].symbol->def;
  int64_t c;
  if (!tl_value_const_int(op->operands[1].value, &c) || c <= 0) return false;
  tl_affine x = tl_query_affine(query, op->operands[0].value);
  if (!x.valid) return false;
  // Scaled so that c divides the coefficient of q; the sign of the form stays.
  tl_affine zero = tl_affine_constant(0);
  tl_affine big = tl_affine_combine(&zero, c / tl_gcd(c, form->terms[at].coefficient), form);
  if (!big.valid || at >= big.num_terms) return false;
  int64_t multiple = big.terms[at].coefficient / c;
  int64_t g, k;
  tl_query_residue(query, &x, &g, &k);
  g = tl_gcd(g, c);
  int64_t least_rest = tl_floor_mod(k, g), greatest_rest = c - g + least_rest;
  tl_affine product = plus(&x, multiple > 0 ? -greatest_rest : -least_rest);
  big.terms[at].coefficient = multiple;
  // The term now stands for multiple * (c * q).
  return prove_with(query, &big, at, &product, depth);
}

// r = mod(x, n) equals x - n * floordiv(x, n) where the form has that quotient too.
static bool prove_remainder(tl_query *query, const tl_affine *form, int32_t at, int depth) {
  const tl_op *op = form->terms[at].symbol->def;
  int64_t n;
  if (!tl_value_const_int(op->operands[1].value, &n) || n <= 0) return false;
  for (int32_t i = 0; i < form->num_terms; i++) {
    const tl_op *other = form->terms[i].symbol->def;
    if (other == NULL || other->code != TL_OP_FLOORDIV) continue;
    if (!tl_values_same(other->operands[0].value, op->operands[0].value)) continue;
    if (!tl_values_same(other->operands[1].value, op->operands[1].value)) continue;
    tl_affine quotient = {.valid = true, .num_terms = 1};
    quotient.terms[0].symbol = form->terms[i].symbol;
    quotient.terms[0].coefficient = 1;
    tl_affine x = tl_query_affine(query, op->operands[0].value);
    tl_affine rest = tl_affine_combine(&x, -n, &quotient);
    if (prove_with(query, form, at, &rest, depth)) return true;
  }
  return false;
}

// The product of two values as a form: only when one is a constant or the product occurs in `form`.
static bool product_form(const tl_affine *form, tl_value *x, tl_value *y, tl_affine *out) {
  for (int32_t i = 0; i < form->num_terms; i++) {
    const tl_op *op = form->terms[i].symbol->def;
    if (op == NULL || op->code != TL_OP_MUL) continue;
    tl_value *a = op->operands[0].value, *b = op->operands[1].value;
    bool found = (tl_values_same(a, x) && tl_values_same(b, y)) || (tl_values_same(a, y) && tl_values_same(b, x));
    if (!found) continue;
    *out = (tl_affine){.valid = true, .num_terms = 1};
    out->terms[0].symbol = form->terms[i].symbol;
    out->terms[0].coefficient = 1;
    return true;
  }
  return false;
}

// p = x * y with y >= 0: x may be replaced by a bound, when the products of y with the bound's symbols occur in the
// form.
static bool prove_product_by(tl_query *query, const tl_affine *form, int32_t at, tl_value *x, tl_value *y, int depth) {
  tl_value *symbol = form->terms[at].symbol;
  if (symbol->type->kind != TL_TYPE_INDEX || tl_query_range(query, y).lo < 0) return false;
  side which = form->terms[at].coefficient > 0 ? SIDE_LOWER : SIDE_UPPER;
  tl_affine y_form = tl_query_affine(query, y), zero = tl_affine_constant(0);
  tl_range range = tl_query_range(query, x);
  int64_t limit = which == SIDE_LOWER ? range.lo : range.hi;
  if (limit != INT64_MIN && limit != INT64_MAX) {
    tl_affine bound = tl_affine_combine(&zero, limit, &y_form);
    if (prove_with(query, form, at, &bound, depth)) return true;
  }
  tl_affine x_form = tl_query_affine(query, x), x_bound;
  if (!x_form.valid || x_form.num_terms != 1 || x_form.terms[0].symbol != x) return false;
  if (!symbol_bound(query, x, which, &x_bound) || !x_bound.valid) return false;
  tl_affine bound = tl_affine_combine(&zero, x_bound.constant, &y_form);
  for (int32_t i = 0; i < x_bound.num_terms; i++) {
    tl_affine product;
    if (!product_form(form, x_bound.terms[i].symbol, y, &product)) return false;
    bound = tl_affine_combine(&bound, x_bound.terms[i].coefficient, &product);
  }
  return prove_with(query, form, at, &bound, depth);
}

static bool prove_by_term(tl_query *query, const tl_affine *form, int32_t at, int depth) {
  tl_value *symbol = form->terms[at].symbol;
  side which = form->terms[at].coefficient > 0 ? SIDE_LOWER : SIDE_UPPER;
  tl_affine bound;
  if (symbol_bound(query, symbol, which, &bound) && prove_with(query, form, at, &bound, depth)) return true;
  const tl_op *op = symbol->def;
  if (op == NULL) return false;
  switch (op->code) {
    case TL_OP_MIN:
    case TL_OP_MAX:
    case TL_OP_SELECT:
      return prove_choice(query, form, at, depth);
    case TL_OP_FLOORDIV:
      return prove_quotient(query, form, at, depth);
    case TL_OP_MOD:
      return prove_remainder(query, form, at, depth);
    case TL_OP_MUL:
      return prove_product_by(query, form, at, op->operands[0].value, op->operands[1].value, depth) ||
             prove_product_by(query, form, at, op->operands[1].value, op->operands[0].value, depth);
    default:
      return false;
  }
}

// Divides by the coefficients' common divisor: g * z + k >= 0 for integers exactly when z + floor(k / g) >= 0.
static void tighten(tl_affine *form) {
  int64_t g = 0;
  for (int32_t i = 0; i < form->num_terms; i++) g = tl_gcd(g, form->terms[i].coefficient);
  if (g <= 1) return;
  for (int32_t i = 0; i < form->num_terms; i++) form->terms[i].coefficient /= g;
  form->constant = tl_floor_div(form->constant, g);
}

static bool prove(tl_query *query, const tl_affine *form, int depth) {
  if (!form->valid) return false;
  tl_affine tight = *form;
  tighten(&tight);
  tl_range range = tl_query_affine_range(query, &tight);
  if (range.lo >= 0) return true;
  if (range.hi < 0 || depth >= MAX_REPLACEMENTS || !tl_query_enter(query)) return false;
  bool proven = false;
  for (int32_t i = 0; i < tight.num_terms && !proven; i++) proven = prove_by_term(query, &tight, i, depth);
  tl_query_leave(query);
  return proven;
}

static bool query_nonnegative(tl_query *query, const tl_affine *affine) {
  return prove(query, affine, 0);
}

// ---- public proofs

// b - a - offset >= 0
static bool prove_difference(tl_value *a, tl_value *b, int64_t offset) {
  if (!tl_type_is_integral(a->type) || !tl_type_is_integral(b->type)) return false;
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, a);
  tl_query_about(&query, b);
  tl_affine a_form = tl_query_affine(&query, a), b_form = tl_query_affine(&query, b);
  tl_affine difference = tl_affine_combine(&b_form, -1, &a_form);
  tl_affine shift = tl_affine_constant(offset);
  difference = tl_affine_combine(&difference, -1, &shift);
  return query_nonnegative(&query, &difference);
}

bool tl_prove_lt(tl_value *a, tl_value *b) {
  return prove_difference(a, b, 1);
}

bool tl_prove_le(tl_value *a, tl_value *b) {
  return prove_difference(a, b, 0);
}

bool tl_prove_lt_offset(tl_value *a, int64_t offset, tl_value *b) {
  return offset < INT64_MAX && prove_difference(a, b, offset + 1);
}

bool tl_prove_nonnegative(tl_value *a) {
  if (!tl_type_is_integral(a->type)) return false;
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, a);
  tl_affine form = tl_query_affine(&query, a);
  return query_nonnegative(&query, &form);
}

bool tl_affine_prove_nonnegative(const tl_affine *affine) {
  if (!affine->valid) return false;
  tl_query query;
  tl_query_init(&query);
  tl_query_about_form(&query, affine);
  return query_nonnegative(&query, affine);
}

bool tl_prove_equal(tl_value *a, tl_value *b) {
  if (a == b) return true;
  if (!tl_type_is_integral(a->type) || !tl_type_is_integral(b->type)) return false;
  return tl_prove_le(a, b) && tl_prove_le(b, a);
}
