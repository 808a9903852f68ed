// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Affine forms of index values, and when two values are the same.
#include "ir/index/affine.h"

#include <string.h>

#include "ir/index/affine_internal.h"
#include "ir/op_internal.h"

bool tl_type_is_integral(const tl_type *type) {
  return type->kind == TL_TYPE_INDEX || (type->kind == TL_TYPE_SCALAR && tl_dtype_is_int(type->dtype));
}

int64_t tl_trip_count(int64_t lower, int64_t upper, int64_t step) {
  if (step >= 0 ? upper <= lower : upper >= lower) return 0;
  // Distances as unsigned: that of two int64 may have 64 bits.
  uint64_t distance = step >= 0 ? (uint64_t)upper - (uint64_t)lower : (uint64_t)lower - (uint64_t)upper;
  uint64_t move = step > 0 ? (uint64_t)step : step < 0 ? -(uint64_t)step : 1;
  uint64_t trips = (distance - 1) / move + 1;
  return trips > INT64_MAX ? INT64_MAX : (int64_t)trips;
}

bool tl_loop_is_constant(const tl_op *loop, tl_constant_loop *out) {
  bool known = tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_lower), &out->lower) &&
               tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_upper), &out->upper) &&
               tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &out->step) && out->step != 0;
  if (known) out->trips = tl_trip_count(out->lower, out->upper, out->step);
  return known;
}

int64_t tl_gcd(int64_t a, int64_t b) {
  // Magnitudes as unsigned: |INT64_MIN| does not fit.
  uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
  while (y != 0) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  // 2^63 has no int64; half of it divides too.
  return x > INT64_MAX ? (int64_t)(x / 2) : (int64_t)x;
}

int64_t tl_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t tl_floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// ---- equality of values

// Values compared before two are taken as different: those of long chains differ only far behind.
enum { MAX_COMPARED = 64 };

static bool same(tl_value *a, tl_value *b, int *compared) {
  if (a == b) return true;
  if (a == NULL || b == NULL || a->def == NULL || b->def == NULL || a->type != b->type) return false;
  const tl_op *x = a->def, *y = b->def;
  if (x == y || x->code != y->code || a->index != b->index || x->num_operands != y->num_operands) return false;
  const tl_op_info *info = tl_op_info_of(x->code);
  if (!(info->flags & TL_OPFLAG_PURE) || x->num_regions != 0 || !tl_op_same_attrs(x, y)) return false;
  for (int g = 0; g < info->num_groups; g++) {
    if (x->group_sizes[g] != y->group_sizes[g]) return false;
  }
  if (x->num_operands > 0 && ++*compared > MAX_COMPARED) return false;
  for (uint32_t i = 0; i < x->num_operands; i++) {
    if (!same(x->operands[i].value, y->operands[i].value, compared)) return false;
  }
  return true;
}

bool tl_values_same(tl_value *a, tl_value *b) {
  int compared = 0;
  return same(a, b, &compared);
}

// ---- arithmetic on forms

static const tl_affine invalid = {.valid = false};

tl_affine tl_affine_constant(int64_t value) {
  return (tl_affine){.valid = true, .constant = value};
}

static tl_affine symbol_of(tl_value *value) {
  tl_affine form = {.valid = true, .num_terms = 1};
  form.terms[0].symbol = value;
  form.terms[0].coefficient = 1;
  return form;
}

tl_affine tl_affine_combine(const tl_affine *a, int64_t scale, const tl_affine *b) {
  if (!a->valid || !b->valid) return invalid;
  tl_affine sum = *a;
  int64_t product;
  if (__builtin_mul_overflow(scale, b->constant, &product)) return invalid;
  if (__builtin_add_overflow(sum.constant, product, &sum.constant)) return invalid;
  for (int32_t i = 0; i < b->num_terms; i++) {
    if (__builtin_mul_overflow(scale, b->terms[i].coefficient, &product)) return invalid;
    int32_t at = 0;
    while (at < sum.num_terms && !tl_values_same(sum.terms[at].symbol, b->terms[i].symbol)) at++;
    if (at == sum.num_terms) {
      if (at == TL_AFFINE_MAX_TERMS) return invalid;
      sum.terms[at].symbol = b->terms[i].symbol;
      sum.terms[at].coefficient = 0;
      sum.num_terms++;
    }
    int64_t *coefficient = &sum.terms[at].coefficient;
    if (__builtin_add_overflow(*coefficient, product, coefficient)) return invalid;
    // Kept dense and free of zeros all along, so that cancelled terms never count against the limit.
    if (*coefficient == 0) {
      memmove(&sum.terms[at], &sum.terms[at + 1], sizeof(sum.terms[0]) * (size_t)(sum.num_terms - at - 1));
      sum.num_terms--;
    }
  }
  return sum;
}

static tl_affine scaled(const tl_affine *a, int64_t scale) {
  tl_affine zero = tl_affine_constant(0);
  return tl_affine_combine(&zero, scale, a);
}

// x = c * q + r where q takes the terms that c divides: when r stays inside one period of c, the quotient is q plus a
// constant.
tl_affine tl_query_divide(tl_query *query, const tl_affine *x, int64_t c) {
  if (!x->valid) return invalid;
  tl_affine quotient = tl_affine_constant(0), rest = tl_affine_constant(x->constant);
  for (int32_t i = 0; i < x->num_terms; i++) {
    bool divides = x->terms[i].coefficient % c == 0;
    tl_affine *to = divides ? &quotient : &rest;
    to->terms[to->num_terms] = x->terms[i];
    if (divides) to->terms[to->num_terms].coefficient /= c;
    to->num_terms++;
  }
  tl_range range = tl_query_affine_range(query, &rest);
  if (range.lo == INT64_MIN || range.hi == INT64_MAX) return invalid;
  if (tl_floor_div(range.lo, c) != tl_floor_div(range.hi, c)) return invalid;
  quotient.constant = tl_floor_div(range.lo, c);
  return quotient;
}

// The form that the definition gives, taken as mathematical integers; invalid when the value is a symbol of its own.
static tl_affine form_of_op(tl_query *query, const tl_op *op) {
  if (op->num_operands == 0) return invalid;
  tl_value *first = op->operands[0].value;
  if (first == NULL || !tl_type_is_integral(first->type)) return invalid;
  tl_affine a = tl_query_affine(query, first);
  if (op->code == TL_OP_CAST) {
    return tl_range_fits(tl_query_affine_range(query, &a), op->results[0].type) ? a : invalid;
  }
  if (op->code == TL_OP_NEG) return scaled(&a, -1);
  if (op->code == TL_OP_ASSUME) {
    // A sum stays one: what is assumed of it is found beside its form. Anything else becomes a symbol with the facts.
    bool is_symbol = a.valid && a.num_terms == 1 && a.terms[0].coefficient == 1 && a.constant == 0;
    return is_symbol ? invalid : a;
  }
  if (op->num_operands != 2 || op->operands[1].value == NULL) return invalid;
  tl_affine b = tl_query_affine(query, op->operands[1].value);
  bool b_is_constant = b.valid && b.num_terms == 0;
  switch (op->code) {
    case TL_OP_ADD:
      return tl_affine_combine(&a, 1, &b);
    case TL_OP_SUB:
      return tl_affine_combine(&a, -1, &b);
    case TL_OP_MUL:
      if (b_is_constant) return scaled(&a, b.constant);
      if (a.valid && a.num_terms == 0) return scaled(&b, a.constant);
      return invalid;
    case TL_OP_SHL:
      if (!b_is_constant || b.constant < 0 || b.constant > 62) return invalid;
      return scaled(&a, (int64_t)1 << b.constant);
    case TL_OP_SHR:
      if (!b_is_constant || b.constant < 0 || b.constant > 62) return invalid;
      return tl_query_divide(query, &a, (int64_t)1 << b.constant);
    case TL_OP_FLOORDIV:
      return b_is_constant && b.constant > 0 ? tl_query_divide(query, &a, b.constant) : invalid;
    case TL_OP_MOD: {
      if (!b_is_constant || b.constant <= 0) return invalid;
      tl_affine quotient = tl_query_divide(query, &a, b.constant);
      return tl_affine_combine(&a, -b.constant, &quotient);
    }
    default:
      return invalid;
  }
}

tl_affine tl_query_affine(tl_query *query, tl_value *value) {
  int64_t constant;
  if (value->def == NULL || !tl_type_is_integral(value->type)) return symbol_of(value);
  if (tl_value_const_int(value, &constant)) {
    // Constants of u64 past the range of int64 are kept as their bits.
    bool is_wrapped = value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_U64 && constant < 0;
    return is_wrapped ? symbol_of(value) : tl_affine_constant(constant);
  }
  tl_query_answers *answers = tl_query_answers_of(query, value);
  if (answers && answers->form_of == query->number) return answers->form;
  if (answers == NULL || !tl_query_enter(query)) return symbol_of(value);
  uint32_t cuts = query->cuts;
  tl_affine form = form_of_op(query, value->def);
  // Machine integers wrap: the mathematical form holds only when it is known to stay inside the type.
  if (form.valid && value->type->kind == TL_TYPE_SCALAR) {
    if (!tl_range_fits(tl_query_affine_range(query, &form), value->type)) form = invalid;
  }
  if (!form.valid) form = symbol_of(value);
  tl_query_leave(query);
  if (query->cuts == cuts) {
    answers->form_of = query->number;
    answers->form = form;
  }
  return form;
}

// ---- public queries

tl_affine tl_affine_of(tl_value *value) {
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, value);
  return tl_query_affine(&query, value);
}

tl_affine tl_affine_sub(const tl_affine *a, const tl_affine *b) {
  return tl_affine_combine(a, -1, b);
}

tl_affine tl_affine_add(const tl_affine *a, const tl_affine *b) {
  return tl_affine_combine(a, 1, b);
}

int64_t tl_affine_coefficient(const tl_affine *affine, const tl_value *symbol) {
  for (int32_t i = 0; i < affine->num_terms; i++) {
    if (affine->terms[i].symbol == symbol) return affine->terms[i].coefficient;
  }
  return 0;
}
