// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges and divisors of index values. An overflow anywhere makes the answer "unbounded" or 1, never a wrong number.
#include "ir/index/affine_internal.h"
#include "ir/op_internal.h"

static bool is_bounded_below(tl_range r) {
  return r.lo != INT64_MIN;
}
static bool is_bounded_above(tl_range r) {
  return r.hi != INT64_MAX;
}
static bool is_bounded(tl_range r) {
  return is_bounded_below(r) && is_bounded_above(r);
}
static int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static tl_range type_range(const tl_type *type) {
  if (type->kind != TL_TYPE_SCALAR) return TL_RANGE_ALL;
  if (type->dtype == TL_DTYPE_BOOL) return (tl_range){0, 1};
  if (!tl_dtype_is_int(type->dtype)) return TL_RANGE_ALL;
  uint64_t hi = tl_dtype_int_max(type->dtype);
  return (tl_range){tl_dtype_int_min(type->dtype), hi > INT64_MAX ? INT64_MAX : (int64_t)hi};
}

bool tl_range_fits(tl_range range, const tl_type *type) {
  if (type->kind == TL_TYPE_INDEX) return true;
  if (!tl_type_is_integral(type) || !is_bounded(range)) return false;
  tl_range all = type_range(type);
  return range.lo >= all.lo && range.hi <= all.hi;
}

// From wide bounds: what does not fit becomes unbounded.
static tl_range narrow_range(__int128 lo, __int128 hi) {
  tl_range range = TL_RANGE_ALL;
  if (lo > INT64_MIN && lo <= INT64_MAX) range.lo = (int64_t)lo;
  if (hi < INT64_MAX && hi >= INT64_MIN) range.hi = (int64_t)hi;
  return range;
}

tl_range tl_query_affine_range(tl_query *query, const tl_affine *affine) {
  if (!affine->valid) return TL_RANGE_ALL;
  __int128 lo = affine->constant, hi = affine->constant;
  bool has_lo = true, has_hi = true;
  for (int32_t i = 0; i < affine->num_terms; i++) {
    tl_range r = tl_query_range(query, affine->terms[i].symbol);
    __int128 c = affine->terms[i].coefficient;
    bool lo_known = c > 0 ? is_bounded_below(r) : is_bounded_above(r);
    bool hi_known = c > 0 ? is_bounded_above(r) : is_bounded_below(r);
    has_lo = has_lo && lo_known;
    has_hi = has_hi && hi_known;
    if (lo_known) lo += c * (c > 0 ? r.lo : r.hi);
    if (hi_known) hi += c * (c > 0 ? r.hi : r.lo);
  }
  tl_range range = narrow_range(lo, hi);
  if (!has_lo) range.lo = INT64_MIN;
  if (!has_hi) range.hi = INT64_MAX;
  return range;
}

static tl_range mul_range(tl_range a, tl_range b) {
  if (is_bounded(a) && is_bounded(b)) {
    __int128 corners[4] = {(__int128)a.lo * b.lo, (__int128)a.lo * b.hi, (__int128)a.hi * b.lo, (__int128)a.hi * b.hi};
    __int128 lo = corners[0], hi = corners[0];
    for (int i = 1; i < 4; i++) {
      if (corners[i] < lo) lo = corners[i];
      if (corners[i] > hi) hi = corners[i];
    }
    return narrow_range(lo, hi);
  }
  if (a.lo >= 0 && b.lo >= 0) return (tl_range){narrow_range((__int128)a.lo * b.lo, 0).lo, INT64_MAX};
  return TL_RANGE_ALL;
}

// floor(a / b) rises with a for b > 0, and for a fixed a it moves towards 0 (or -1) as b grows.
static tl_range floordiv_range(tl_range a, tl_range b) {
  if (b.lo < 1) {
    // A known negative divisor: floor(a / b) = floor(-a / -b).
    if (b.hi > -1 || !is_bounded(b) || !is_bounded(a)) return TL_RANGE_ALL;
    return floordiv_range((tl_range){-a.hi, -a.lo}, (tl_range){-b.hi, -b.lo});
  }
  tl_range range = TL_RANGE_ALL;
  if (is_bounded_below(a)) range.lo = tl_floor_div(a.lo, a.lo < 0 ? b.lo : b.hi);
  if (is_bounded_above(a)) range.hi = tl_floor_div(a.hi, a.hi < 0 ? b.hi : b.lo);
  return range;
}

static tl_range mod_range(tl_query *query, tl_value *a_value, tl_range b) {
  tl_range a = tl_query_range(query, a_value);
  if (b.lo >= 1) {
    if (a.lo >= 0 && a.hi < b.lo) return a;
    tl_range range = {0, is_bounded_above(b) ? b.hi - 1 : INT64_MAX};
    if (a.lo >= 0) range.hi = min_of(range.hi, a.hi);
    if (b.lo == b.hi) {
      // a = g * y + k: the remainders are those that agree with k modulo gcd(g, b).
      tl_affine form = tl_query_affine(query, a_value);
      int64_t g, k;
      tl_query_residue(query, &form, &g, &k);
      g = tl_gcd(g, b.lo);
      range.lo = max_of(range.lo, tl_floor_mod(k, g));
      range.hi = min_of(range.hi, b.lo - g + tl_floor_mod(k, g));
    }
    return range;
  }
  if (b.hi <= -1 && is_bounded_below(b)) return (tl_range){b.lo + 1, 0};
  return TL_RANGE_ALL;
}

static tl_range shift_range(tl_range a, tl_range by, bool left) {
  if (by.lo != by.hi || by.lo < 0 || by.lo > 62) return TL_RANGE_ALL;
  tl_range factor = {(int64_t)1 << by.lo, (int64_t)1 << by.lo};
  return left ? mul_range(a, factor) : floordiv_range(a, factor);
}

static tl_range bitwise_range(tl_opcode code, tl_range a, tl_range b) {
  if (code == TL_OP_AND) {
    if (a.lo < 0 && b.lo < 0) return TL_RANGE_ALL;
    return (tl_range){0, min_of(a.lo >= 0 ? a.hi : INT64_MAX, b.lo >= 0 ? b.hi : INT64_MAX)};
  }
  if (a.lo < 0 || b.lo < 0 || !is_bounded_above(a) || !is_bounded_above(b)) return TL_RANGE_ALL;
  // No result has a bit above the highest of either operand.
  uint64_t top = (uint64_t)max_of(a.hi, b.hi);
  int bits = top ? 64 - __builtin_clzll(top) : 0;
  return (tl_range){code == TL_OP_OR ? max_of(a.lo, b.lo) : 0, (int64_t)(((uint64_t)1 << bits) - 1)};
}

static tl_range binary_range(tl_query *query, const tl_op *op) {
  tl_range a = tl_query_range(query, op->operands[0].value);
  tl_range b = tl_query_range(query, op->operands[1].value);
  switch (op->code) {
    case TL_OP_ADD: {
      tl_range sum = narrow_range((__int128)a.lo + b.lo, (__int128)a.hi + b.hi);
      if (!is_bounded_below(a) || !is_bounded_below(b)) sum.lo = INT64_MIN;
      if (!is_bounded_above(a) || !is_bounded_above(b)) sum.hi = INT64_MAX;
      return sum;
    }
    case TL_OP_SUB: {
      tl_range difference = narrow_range((__int128)a.lo - b.hi, (__int128)a.hi - b.lo);
      if (!is_bounded_below(a) || !is_bounded_above(b)) difference.lo = INT64_MIN;
      if (!is_bounded_above(a) || !is_bounded_below(b)) difference.hi = INT64_MAX;
      return difference;
    }
    case TL_OP_MUL:
      return mul_range(a, b);
    case TL_OP_FLOORDIV:
      return floordiv_range(a, b);
    case TL_OP_MOD:
      return mod_range(query, op->operands[0].value, b);
    case TL_OP_MIN:
      return (tl_range){min_of(a.lo, b.lo), min_of(a.hi, b.hi)};
    case TL_OP_MAX:
      return (tl_range){max_of(a.lo, b.lo), max_of(a.hi, b.hi)};
    case TL_OP_SHL:
      return shift_range(a, b, true);
    case TL_OP_SHR:
      return shift_range(a, b, false);
    case TL_OP_AND:
    case TL_OP_OR:
    case TL_OP_XOR:
      return bitwise_range(op->code, a, b);
    default:
      return TL_RANGE_ALL;
  }
}

// Threads that `thread_id` counts; the hardware's limit when the kernel does not say.
static int64_t counted_threads(const tl_op *op) {
  int32_t threads = tl_op_threads_known(op);
  return threads ? threads : 1024;
}

// What an `assume` leaves of the range of its operand; one that leaves nothing is not believed.
static tl_range assumed_range(tl_query *query, const tl_op *op, tl_range range) {
  tl_value *lower = tl_op_arg(op, TL_GROUP_ASSUME_lower), *upper = tl_op_arg(op, TL_GROUP_ASSUME_upper);
  tl_range all = range;
  if (lower) range.lo = max_of(range.lo, tl_query_range(query, lower).lo);
  if (upper) {
    int64_t end = tl_query_range(query, upper).hi;
    if (end != INT64_MAX && end != INT64_MIN) range.hi = min_of(range.hi, end - 1);
  }
  return range.lo <= range.hi ? range : all;
}

static tl_range op_range(tl_query *query, const tl_op *op, uint32_t result) {
  switch (op->code) {
    case TL_OP_DYN_PARAM: {
      int64_t divisor = max_of(1, tl_op_int(op, TL_ATTR_DIVISOR, 1));
      int64_t most =
          min_of(tl_op_has(op, TL_ATTR_WIDE) ? TL_WIDE_MAX : INT32_MAX, tl_op_int(op, TL_ATTR_MOST, INT64_MAX));
      int64_t least = max_of(0, tl_op_int(op, TL_ATTR_LEAST, 0));
      return least <= most ? (tl_range){least, max_of(least, most / divisor * divisor)} : (tl_range){0, INT32_MAX};
    }
    case TL_OP_ASSUME:
      return assumed_range(query, op, tl_query_range(query, op->operands[0].value));
    case TL_OP_GRID:
    case TL_OP_TILE_INDEX: {
      if (result >= op->num_results) return TL_RANGE_ALL;
      tl_range extent = tl_query_range(query, op->operands[result].value);
      return (tl_range){0, is_bounded_above(extent) ? max_of(0, extent.hi - 1) : INT64_MAX};
    }
    case TL_OP_BLOCK_ID:
      return (tl_range){0, INT32_MAX - 1};
    case TL_OP_NUM_BLOCKS:
      return (tl_range){1, INT32_MAX};
    case TL_OP_THREAD_ID:
      return (tl_range){0, counted_threads(op) - 1};
    case TL_OP_LANE_ID:
      return (tl_range){0, 31};
    case TL_OP_WARP_ID:
      return (tl_range){0, max_of(0, counted_threads(op) / 32 - 1)};
    case TL_OP_NEG: {
      tl_range a = tl_query_range(query, op->operands[0].value);
      tl_range negated = narrow_range(-(__int128)a.hi, -(__int128)a.lo);
      return (tl_range){is_bounded_above(a) ? negated.lo : INT64_MIN, is_bounded_below(a) ? negated.hi : INT64_MAX};
    }
    case TL_OP_SELECT:
      return tl_query_select_range(query, op);
    case TL_OP_IF:
      return tl_query_if_range(query, op, result);
    case TL_OP_FOR:
      return tl_query_carried_range(query, op, result + 1);
    case TL_OP_CAST: {
      const tl_type *from = op->operands[0].value->type;
      bool is_exact = tl_type_is_integral(from) || (from->kind == TL_TYPE_SCALAR && from->dtype == TL_DTYPE_BOOL);
      return is_exact ? tl_query_range(query, op->operands[0].value) : TL_RANGE_ALL;
    }
    default:
      break;
  }
  return op->num_operands == 2 && op->num_results == 1 ? binary_range(query, op) : TL_RANGE_ALL;
}

static tl_range loop_index_range(tl_query *query, const tl_op *loop) {
  tl_range lower = tl_query_range(query, tl_op_arg(loop, TL_GROUP_FOR_lower));
  tl_range upper = tl_query_range(query, tl_op_arg(loop, TL_GROUP_FOR_upper));
  tl_range step = tl_query_range(query, tl_op_arg(loop, TL_GROUP_FOR_step));
  tl_range range = TL_RANGE_ALL;
  if (step.lo >= 1) {
    range.lo = lower.lo;
    if (is_bounded_above(upper) && upper.hi > INT64_MIN) range.hi = upper.hi - 1;
    bool is_constant = lower.lo == lower.hi && upper.lo == upper.hi && step.lo == step.hi;
    int64_t span;
    if (is_constant && upper.lo > lower.lo && !__builtin_sub_overflow(upper.lo - 1, lower.lo, &span)) {
      range.hi = lower.lo + span / step.lo * step.lo;
    }
  } else if (step.hi <= -1) {
    range.hi = lower.hi;
    if (is_bounded_below(upper) && upper.lo < INT64_MAX) range.lo = upper.lo + 1;
  }
  // A loop that never runs says nothing; keep the range non-empty.
  if (range.lo > range.hi) range.hi = range.lo;
  return range;
}

static tl_range arg_range(tl_query *query, const tl_value *arg) {
  const tl_op *op = arg->block ? arg->block->parent : NULL;
  if (op == NULL) return TL_RANGE_ALL;
  if (op->code == TL_OP_FOR) {
    return arg->index == 0 ? loop_index_range(query, op) : tl_query_carried_range(query, op, arg->index);
  }
  const tl_attr *extents = op->code == TL_OP_PARALLEL ? tl_op_attr(op, TL_ATTR_EXTENTS) : NULL;
  if (extents && arg->index < (uint32_t)extents->v.ints.len) {
    return (tl_range){0, max_of(0, extents->v.ints.items[arg->index] - 1)};
  }
  return TL_RANGE_ALL;
}

// From the definition alone, for symbols.
static tl_range direct_range(tl_query *query, tl_value *value) {
  tl_range all = type_range(value->type);
  bool is_number =
      tl_type_is_integral(value->type) || (value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_BOOL);
  if (!is_number) return TL_RANGE_ALL;
  int64_t constant;
  if (tl_value_const_int(value, &constant) && constant >= all.lo) return (tl_range){constant, constant};
  if (value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_BOOL) return all;
  tl_range range = value->def ? op_range(query, value->def, value->index) : arg_range(query, value);
  if (value->type->kind == TL_TYPE_SCALAR && !tl_range_fits(range, value->type)) return all;
  return range;
}

tl_range tl_query_range(tl_query *query, tl_value *value) {
  if (value == NULL) return TL_RANGE_ALL;
  for (const tl_hypothesis *h = query->hypotheses; h; h = h->next) {
    if (h->value == value) return h->range;
  }
  int64_t constant;
  if (tl_value_const_int(value, &constant)) return direct_range(query, value);
  tl_query_answers *answers = tl_query_answers_of(query, value);
  if (answers && answers->range_of == query->number) return answers->range;
  if (answers == NULL || !tl_query_enter(query)) return type_range(value->type);
  uint32_t cuts = query->cuts;
  tl_affine form = tl_query_affine(query, value);
  bool is_symbol = !form.valid || (form.num_terms == 1 && form.terms[0].symbol == value);
  tl_range range = is_symbol ? direct_range(query, value) : tl_query_affine_range(query, &form);
  if (!is_symbol && value->def && value->def->code == TL_OP_ASSUME) range = assumed_range(query, value->def, range);
  tl_query_leave(query);
  if (query->cuts == cuts) {
    answers->range_of = query->number;
    answers->range = range;
  }
  return range;
}

// ---- divisors

// Product of two divisors; when it overflows, one of them still divides.
static int64_t mul_divisor(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) || product == INT64_MIN ? tl_gcd(a, 0) : tl_gcd(product, 0);
}

enum { MOST_FACTORS = 8 };

// The dynamic params whose product a value is: as the kernel has them, or as the launcher does, of which nothing is
// required yet. -1: it is no such product.
static int32_t factors_of(const tl_value *value, bool launched, const tl_op **out, int32_t count) {
  const tl_op *op = value->def;
  if (!op || count < 0) return -1;
  if (op->code == TL_OP_MUL)
    return factors_of(op->operands[1].value, launched, out, factors_of(op->operands[0].value, launched, out, count));
  if (launched) op = op->code == TL_OP_LAUNCHED ? op->operands[0].value->def : NULL;
  if (!op || op->code != TL_OP_DYN_PARAM || count == MOST_FACTORS) return -1;
  out[count] = op;
  return count + 1;
}

// Whether each of `some` is one of `all`, as often as it occurs.
static bool are_among(const tl_op *const *some, int32_t num_some, const tl_op *const *all, int32_t num_all) {
  bool taken[MOST_FACTORS] = {false};
  for (int32_t s = 0; s < num_some; s++) {
    int32_t a = 0;
    while (a < num_all && (taken[a] || all[a] != some[s])) a++;
    if (a == num_all) return false;
    taken[a] = true;
  }
  return num_some > 0;
}

static bool is_required(const tl_value *condition, int depth) {
  for (const tl_use *use = condition->uses; use; use = use->next) {
    if (use->owner->code == TL_OP_REQUIRE) return true;
    if (depth > 0 && use->owner->code == TL_OP_AND && is_required(&use->owner->results[0], depth - 1)) return true;
  }
  return false;
}

// What the requirements `product % by == 0` say that a product of `all` params is a multiple of, where `product`, a
// launched param or a product of some, has only factors from among them.
static int64_t required_of(const tl_value *product, const tl_op *const *all, int32_t num_all, int depth) {
  enum { MOST_ANDS = 8 };
  const tl_op *some[MOST_FACTORS] = {0};
  int32_t num_some = factors_of(product, true, some, 0);
  int64_t divisor = 1, by, zero;
  if (num_some < 0 || !are_among(some, num_some, all, num_all)) return 1;
  for (const tl_use *use = product->uses; use; use = use->next) {
    const tl_op *op = use->owner;
    if (op->code == TL_OP_MUL && depth > 0) {
      int64_t wider = required_of(&op->results[0], all, num_all, depth - 1);
      divisor = max_of(divisor, wider);
    }
    if (op->code != TL_OP_MOD || op->operands[0].value != product || !tl_value_const_int(op->operands[1].value, &by))
      continue;
    for (const tl_use *test = op->results[0].uses; test && by > 0; test = test->next) {
      const tl_op *cmp = test->owner;
      bool is_test = cmp->code == TL_OP_CMP && tl_op_int(cmp, TL_ATTR_CMP, TL_CMP_COUNT) == TL_CMP_EQ &&
                     cmp->operands[0].value == &op->results[0] && tl_value_const_int(cmp->operands[1].value, &zero) &&
                     zero == 0;
      if (is_test && is_required(&cmp->results[0], MOST_ANDS)) divisor = max_of(divisor, by);
    }
  }
  return divisor;
}

// Of a product of dynamic params: what a requirement says of it that the params do not say one by one.
static int64_t required_divisor(const tl_op *mul) {
  const tl_op *all[MOST_FACTORS] = {0};
  int32_t num_all = factors_of(&mul->results[0], false, all, 0);
  int64_t divisor = 1;
  for (int32_t i = 0; i < num_all; i++)
    for (const tl_use *use = all[i]->results[0].uses; use; use = use->next)
      if (use->owner->code == TL_OP_LAUNCHED)
        divisor = max_of(divisor, required_of(&use->owner->results[0], all, num_all, num_all));
  return divisor;
}

static int64_t value_divisor(tl_query *query, tl_value *value) {
  tl_affine form = tl_query_affine(query, value);
  return tl_query_affine_divisor(query, &form);
}

static int64_t op_divisor(tl_query *query, const tl_op *op) {
  switch (op->code) {
    case TL_OP_DYN_PARAM:
      return max_of(1, tl_op_int(op, TL_ATTR_DIVISOR, 1));
    case TL_OP_ASSUME:
      return max_of(tl_op_int(op, TL_ATTR_DIVISOR, 1), value_divisor(query, op->operands[0].value));
    case TL_OP_MUL:
      return max_of(
          mul_divisor(value_divisor(query, op->operands[0].value), value_divisor(query, op->operands[1].value)),
          required_divisor(op));
    case TL_OP_MOD:
    case TL_OP_MIN:
    case TL_OP_MAX:
      return tl_gcd(value_divisor(query, op->operands[0].value), value_divisor(query, op->operands[1].value));
    case TL_OP_SELECT:
      return tl_gcd(value_divisor(query, op->operands[1].value), value_divisor(query, op->operands[2].value));
    case TL_OP_FLOORDIV: {
      tl_affine a = tl_query_affine(query, op->operands[0].value);
      int64_t c, g, k;
      if (!tl_value_const_int(op->operands[1].value, &c) || c <= 0) return 1;
      // a = g * y + k with c | g: the quotient is (g / c) * y + floor(k / c).
      tl_query_residue(query, &a, &g, &k);
      return g % c == 0 ? tl_gcd(g / c, tl_floor_div(k, c)) : 1;
    }
    default:
      return 1;
  }
}

static int64_t symbol_divisor(tl_query *query, tl_value *symbol) {
  if (!tl_type_is_integral(symbol->type)) return 1;
  tl_query_answers *answers = tl_query_answers_of(query, symbol);
  if (answers && answers->divisor_of == query->number) return answers->divisor;
  if (answers == NULL || !tl_query_enter(query)) return 1;
  uint32_t cuts = query->cuts;
  int64_t divisor = 1;
  if (symbol->def && symbol->def->num_results == 1) {
    // Machine integers wrap at a power of two: only the power of two in a divisor survives.
    divisor = op_divisor(query, symbol->def);
    if (symbol->type->kind == TL_TYPE_SCALAR && symbol->def->code == TL_OP_MUL && divisor != 0) divisor &= -divisor;
  } else if (symbol->block && symbol->block->parent && symbol->block->parent->code == TL_OP_FOR && symbol->index == 0) {
    const tl_op *loop = symbol->block->parent;
    divisor = tl_gcd(value_divisor(query, tl_op_arg(loop, TL_GROUP_FOR_lower)),
                     value_divisor(query, tl_op_arg(loop, TL_GROUP_FOR_step)));
  }
  tl_query_leave(query);
  if (query->cuts == cuts) {
    answers->divisor_of = query->number;
    answers->divisor = divisor;
  }
  return divisor;
}

void tl_query_residue(tl_query *query, const tl_affine *x, int64_t *out_g, int64_t *out_k) {
  *out_g = 1;
  *out_k = 0;
  if (!x->valid) return;
  *out_k = x->constant;
  *out_g = 0;
  for (int32_t i = 0; i < x->num_terms && *out_g != 1; i++) {
    int64_t term = mul_divisor(x->terms[i].coefficient, symbol_divisor(query, x->terms[i].symbol));
    *out_g = tl_gcd(*out_g, term);
  }
}

int64_t tl_query_affine_divisor(tl_query *query, const tl_affine *affine) {
  int64_t g, k;
  tl_query_residue(query, affine, &g, &k);
  return tl_gcd(g, k);
}

// ---- public queries

tl_range tl_value_range(tl_value *value) {
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, value);
  return tl_query_range(&query, value);
}

tl_range tl_affine_range(const tl_affine *affine) {
  tl_query query;
  tl_query_init(&query);
  tl_query_about_form(&query, affine);
  return tl_query_affine_range(&query, affine);
}

int64_t tl_value_divisor(tl_value *value) {
  tl_query query;
  tl_query_init(&query);
  tl_query_about(&query, value);
  return value_divisor(&query, value);
}

int64_t tl_affine_divisor(const tl_affine *affine) {
  tl_query query;
  tl_query_init(&query);
  tl_query_about_form(&query, affine);
  return tl_query_affine_divisor(&query, affine);
}
