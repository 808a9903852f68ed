// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index arithmetic that simplifies while it is built.
#include "ir/index/affine_internal.h"
#include "ir/index/fold_internal.h"
#include "ir/scalar/scalar.h"

static bool is_index(const tl_value *value) {
  return value->type->kind == TL_TYPE_INDEX;
}

// ---- forms as values

// Ops that it takes to build a form; -1 when a symbol is no index value.
static int form_cost(const tl_affine *form) {
  int cost = form->num_terms > 0 ? form->num_terms - 1 : 0;
  bool has_positive = false;
  for (int32_t i = 0; i < form->num_terms; i++) {
    if (!is_index(form->terms[i].symbol)) return -1;
    int64_t c = form->terms[i].coefficient;
    if (c != 1 && c != -1) cost++;
    if (c > 0) has_positive = true;
  }
  if (form->num_terms > 0 && form->constant != 0) cost++;
  // Something must come first in a chain of subtractions.
  if (form->num_terms > 0 && !has_positive && form->constant == 0) cost++;
  return cost;
}

static tl_value *build_form(tl_builder *builder, const tl_affine *form) {
  tl_value *sum = NULL;
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1 && sum == NULL) sum = tl_build_index(builder, form->constant);
    for (int32_t i = 0; i < form->num_terms; i++) {
      int64_t c = form->terms[i].coefficient;
      // Positive terms first.
      if ((c > 0) != (pass == 0)) continue;
      // INT64_MIN has no magnitude: multiplied and added as it is.
      bool subtract = c < 0 && c != INT64_MIN;
      if (subtract) c = -c;
      tl_value *term = form->terms[i].symbol;
      if (c != 1) term = tl_build_binary(builder, TL_OP_MUL, term, tl_build_index(builder, c));
      sum = sum ? tl_build_binary(builder, subtract ? TL_OP_SUB : TL_OP_ADD, sum, term) : term;
    }
    if (pass == 0 && sum && form->constant != 0) {
      sum = tl_build_binary(builder, TL_OP_ADD, sum, tl_build_index(builder, form->constant));
    }
  }
  return sum;
}

// The form as a value when that takes no more than `limit` ops; NULL otherwise.
static tl_value *build_cheap_form(tl_builder *builder, const tl_affine *form, int limit) {
  if (!form->valid) return NULL;
  int cost = form_cost(form);
  return cost >= 0 && cost <= limit ? build_form(builder, form) : NULL;
}

// ---- simplification: NULL when the plain op is best

// x + c or x - c as x and its constant.
static tl_value *split_constant(tl_value *value, int64_t *constant) {
  *constant = 0;
  const tl_op *op = value->def;
  int64_t c;
  if (op == NULL || (op->code != TL_OP_ADD && op->code != TL_OP_SUB)) return value;
  if (!tl_value_const_int(op->operands[1].value, &c) || c == INT64_MIN) return value;
  *constant = op->code == TL_OP_ADD ? c : -c;
  return op->operands[0].value;
}

static tl_value *simplify_sum(tl_builder *builder, tl_query *query, tl_opcode code, tl_value *a, tl_value *b) {
  int64_t a_const, b_const, inner, sum;
  bool a_is_const = tl_value_const_int(a, &a_const), b_is_const = tl_value_const_int(b, &b_const);
  if (b_is_const && b_const == 0) return a;
  if (a_is_const && !b_is_const && code == TL_OP_ADD) {
    return a_const == 0 ? b : tl_index_add(builder, b, a);
  }
  if (b_is_const && !a_is_const && b_const != INT64_MIN) {
    tl_value *base = split_constant(a, &inner);
    if (inner != 0 && !__builtin_add_overflow(inner, code == TL_OP_ADD ? b_const : -b_const, &sum)) {
      return sum == 0 ? base : tl_build_binary(builder, TL_OP_ADD, base, tl_build_index(builder, sum));
    }
    // Constants are added, never subtracted.
    if (code == TL_OP_SUB) return tl_build_binary(builder, TL_OP_ADD, a, tl_build_index(builder, -b_const));
    return NULL;
  }
  tl_affine x = tl_query_affine(query, a), y = tl_query_affine(query, b);
  tl_affine form = tl_affine_combine(&x, code == TL_OP_ADD ? 1 : -1, &y);
  // Only where terms merged or cancelled; else the plain op is the form.
  if (!form.valid || form.num_terms >= x.num_terms + y.num_terms) return NULL;
  return build_cheap_form(builder, &form, 1);
}

static tl_value *simplify_product(tl_builder *builder, tl_value *a, tl_value *b) {
  int64_t a_const, b_const, inner, product;
  bool a_is_const = tl_value_const_int(a, &a_const), b_is_const = tl_value_const_int(b, &b_const);
  if (a_is_const && !b_is_const) return tl_index_mul(builder, b, a);
  if (!b_is_const) return NULL;
  if (b_const == 0) return b;
  if (b_const == 1) return a;
  const tl_op *op = a->def;
  if (op == NULL || op->code != TL_OP_MUL || !tl_value_const_int(op->operands[1].value, &inner)) return NULL;
  if (__builtin_mul_overflow(inner, b_const, &product)) return NULL;
  return tl_build_binary(builder, TL_OP_MUL, op->operands[0].value, tl_build_index(builder, product));
}

static tl_value *simplify_floordiv(tl_builder *builder, tl_query *query, tl_value *a, tl_value *b) {
  int64_t c, inner, product;
  if (!tl_value_const_int(b, &c)) {
    return tl_prove_nonnegative(a) && tl_prove_lt(a, b) ? tl_build_index(builder, 0) : NULL;
  }
  if (c == 1) return a;
  if (c <= 0) return NULL;
  tl_affine x = tl_query_affine(query, a);
  tl_affine quotient = tl_query_divide(query, &x, c);
  tl_value *built = build_cheap_form(builder, &quotient, 3);
  if (built) return built;
  const tl_op *op = a->def;
  if (op && op->code == TL_OP_FLOORDIV && tl_value_const_int(op->operands[1].value, &inner) && inner > 0 &&
      !__builtin_mul_overflow(inner, c, &product)) {
    return tl_index_floordiv(builder, op->operands[0].value, tl_build_index(builder, product));
  }
  return NULL;
}

static tl_value *simplify_mod(tl_builder *builder, tl_query *query, tl_value *a, tl_value *b) {
  int64_t c;
  if (!tl_value_const_int(b, &c)) return tl_prove_nonnegative(a) && tl_prove_lt(a, b) ? a : NULL;
  if (c == 1) return tl_build_index(builder, 0);
  if (c <= 0) return NULL;
  tl_affine x = tl_query_affine(query, a);
  tl_affine quotient = tl_query_divide(query, &x, c);
  tl_affine rest = tl_affine_combine(&x, -c, &quotient);
  if (rest.valid && rest.num_terms == x.num_terms && rest.constant == x.constant) return a;
  tl_value *built = build_cheap_form(builder, &rest, 2);
  if (built) return built;
  // Terms that c divides do not matter.
  if (!x.valid) return NULL;
  tl_affine reduced = tl_affine_constant(tl_floor_mod(x.constant, c));
  for (int32_t i = 0; i < x.num_terms; i++) {
    tl_affine term = {.valid = true, .num_terms = 1};
    term.terms[0] = x.terms[i];
    if (tl_query_affine_divisor(query, &term) % c != 0) reduced.terms[reduced.num_terms++] = x.terms[i];
  }
  if (reduced.num_terms == x.num_terms) return NULL;
  built = build_cheap_form(builder, &reduced, 2);
  return built ? tl_index_mod(builder, built, b) : NULL;
}

static tl_value *simplify_min_max(tl_opcode code, tl_value *a, tl_value *b) {
  if (a == b) return a;
  if (tl_prove_le(a, b)) return code == TL_OP_MIN ? a : b;
  if (tl_prove_le(b, a)) return code == TL_OP_MIN ? b : a;
  return NULL;
}

tl_value *tl_affine_build(tl_builder *builder, const tl_affine *form) {
  tl_affine cast = *form;
  for (int32_t i = 0; i < cast.num_terms; i++)
    cast.terms[i].symbol = tl_build_cast(builder, cast.terms[i].symbol, tl_type_index(builder->module));
  return build_form(builder, &cast);
}

bool tl_fold_index(tl_opcode code, int64_t a, int64_t b, int64_t *out) {
  return tl_scalar_exact_op(code, a, b, out) == TL_SCALAR_OK;
}

tl_value *tl_simplify_index(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b) {
  if (!is_index(a) || !is_index(b)) return NULL;
  int64_t a_const, b_const, folded;
  if (tl_value_const_int(a, &a_const) && tl_value_const_int(b, &b_const)) {
    return tl_fold_index(code, a_const, b_const, &folded) ? tl_build_index(builder, folded) : NULL;
  }
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, a);
  tl_query_about(&query, b);
  switch (code) {
    case TL_OP_ADD:
    case TL_OP_SUB:
      return simplify_sum(builder, &query, code, a, b);
    case TL_OP_MUL:
      return simplify_product(builder, a, b);
    case TL_OP_FLOORDIV:
      return simplify_floordiv(builder, &query, a, b);
    case TL_OP_MOD:
      return simplify_mod(builder, &query, a, b);
    case TL_OP_MIN:
    case TL_OP_MAX:
      return simplify_min_max(code, a, b);
    default:
      return NULL;
  }
}

// ---- builders

static tl_value *build_index_op(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b) {
  tl_value *simple = tl_simplify_index(builder, code, a, b);
  return simple ? simple : tl_build_binary(builder, code, a, b);
}

tl_value *tl_index_add(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_ADD, a, b);
}

tl_value *tl_index_sub(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_SUB, a, b);
}

tl_value *tl_index_mul(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_MUL, a, b);
}

tl_value *tl_index_floordiv(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_FLOORDIV, a, b);
}

tl_value *tl_index_mod(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_MOD, a, b);
}

tl_value *tl_index_min(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_MIN, a, b);
}

tl_value *tl_index_max(tl_builder *builder, tl_value *a, tl_value *b) {
  return build_index_op(builder, TL_OP_MAX, a, b);
}

tl_value *tl_index_ceildiv(tl_builder *builder, tl_value *a, tl_value *b) {
  int64_t c;
  if (tl_value_const_int(b, &c) && c > 0) {
    if (tl_value_divisor(a) % c == 0) return tl_index_floordiv(builder, a, b);
    return tl_index_floordiv(builder, tl_index_add(builder, a, tl_build_index(builder, c - 1)), b);
  }
  tl_value *zero = tl_build_index(builder, 0);
  if (tl_prove_lt(zero, b)) {
    tl_value *last = tl_index_sub(builder, b, tl_build_index(builder, 1));
    return tl_index_floordiv(builder, tl_index_add(builder, a, last), b);
  }
  // The ceiling of a / b is minus the floor of -a / b, whatever the signs.
  tl_value *negated = tl_index_sub(builder, zero, a);
  return tl_index_sub(builder, zero, tl_index_floordiv(builder, negated, b));
}
