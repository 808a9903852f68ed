// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of values that control flow makes: carried by loops, results of conditions, selected.
#include "ir/index/affine_internal.h"

enum { MAX_ROUNDS = 12 };

static tl_range range_union(tl_range a, tl_range b) {
  return (tl_range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static bool range_within(tl_range inner, tl_range outer) {
  return inner.lo >= outer.lo && inner.hi <= outer.hi;
}

static tl_value *yielded(const tl_op *op, uint32_t region, uint32_t index) {
  const tl_op *yield = region < op->num_regions ? tl_block_terminator(op->regions[region]) : NULL;
  return yield && index < yield->num_operands ? yield->operands[index].value : NULL;
}

// Range of `value` when `arg` is in `range`.
static tl_range range_under(tl_query *query, const tl_value *arg, tl_range range, tl_value *value) {
  tl_hypothesis hypothesis = {arg, range, query->hypotheses};
  tl_query inner;
  tl_query_init_inner(&inner, query, &hypothesis);
  tl_range result = tl_query_range(&inner, value);
  tl_query_end_inner(&inner, query);
  return result;
}

// By induction: a range that holds the first value, and with any value in it also the next one. Found by growing it
// round by round; what still grows then is taken as unbounded on that side.
tl_range tl_query_carried_range(tl_query *query, const tl_op *loop, uint32_t index) {
  const tl_block *block = loop->regions[0];
  if (index >= block->num_args || index > tl_op_group_len(loop, TL_GROUP_FOR_inits)) return TL_RANGE_ALL;
  tl_value *next = yielded(loop, 0, index - 1);
  const tl_value *arg = block->args[index];
  if (next == NULL || query->num_hypotheses >= TL_QUERY_MAX_HYPOTHESES) return TL_RANGE_ALL;
  tl_range range = tl_query_range(query, tl_op_group_at(loop, TL_GROUP_FOR_inits, index - 1));
  if (next == arg) return range;
  bool lo_grows = false, hi_grows = false;
  for (int round = 0; round < MAX_ROUNDS; round++) {
    tl_range after = range_under(query, arg, range, next);
    if (range_within(after, range)) return range;
    lo_grows = after.lo < range.lo;
    hi_grows = after.hi > range.hi;
    range = range_union(range, after);
  }
  if (lo_grows) range.lo = INT64_MIN;
  if (hi_grows) range.hi = INT64_MAX;
  return range_within(range_under(query, arg, range, next), range) ? range : TL_RANGE_ALL;
}

tl_range tl_query_if_range(tl_query *query, const tl_op *op, uint32_t result) {
  tl_value *a = yielded(op, 0, result), *b = yielded(op, 1, result);
  if (a == NULL || b == NULL) return TL_RANGE_ALL;
  return range_union(tl_query_range(query, a), tl_query_range(query, b));
}

// ---- select

static int negated(int pred) {
  static const int opposite[TL_CMP_COUNT] = {[TL_CMP_EQ] = TL_CMP_NE, [TL_CMP_NE] = TL_CMP_EQ, [TL_CMP_LT] = TL_CMP_GE,
                                             [TL_CMP_LE] = TL_CMP_GT, [TL_CMP_GT] = TL_CMP_LE, [TL_CMP_GE] = TL_CMP_LT};
  return opposite[pred];
}

// What is left of `x` when `x pred y` holds. May come out empty (lo > hi): then that side is never taken.
static tl_range refine(tl_range x, int pred, tl_range y) {
  // At an end of int64 there is nothing to gain.
  int64_t below = y.hi == INT64_MAX || y.hi == INT64_MIN ? INT64_MAX : y.hi - 1;
  int64_t above = y.lo == INT64_MIN || y.lo == INT64_MAX ? INT64_MIN : y.lo + 1;
  switch ((enum tl_cmp)pred) {
    case TL_CMP_EQ:
      if (y.lo > x.lo) x.lo = y.lo;
      if (y.hi < x.hi) x.hi = y.hi;
      break;
    case TL_CMP_NE:
      if (y.lo != y.hi || y.lo == INT64_MIN || y.lo == INT64_MAX) break;
      if (x.lo == y.lo) x.lo++;
      if (x.hi == y.hi) x.hi--;
      break;
    case TL_CMP_LT:
      if (below < x.hi) x.hi = below;
      break;
    case TL_CMP_LE:
      if (y.hi < x.hi) x.hi = y.hi;
      break;
    case TL_CMP_GT:
      if (above > x.lo) x.lo = above;
      break;
    case TL_CMP_GE:
      if (y.lo > x.lo) x.lo = y.lo;
      break;
    case TL_CMP_COUNT:
      break;
  }
  return x;
}

// The chosen value where the condition compares that very value with another.
static tl_range chosen_range(tl_query *query, const tl_op *condition, bool holds, tl_value *chosen) {
  tl_range range = tl_query_range(query, chosen);
  if (condition == NULL || condition->code != TL_OP_CMP || condition->operands[0].value != chosen) return range;
  if (!tl_type_is_integral(chosen->type)) return range;
  int64_t pred = tl_op_int(condition, TL_ATTR_CMP, TL_CMP_COUNT);
  if (pred < 0 || pred >= TL_CMP_COUNT) return range;
  // The bounds of u64 that look unbounded are not comparable; keep to what fits int64.
  if (range.lo == INT64_MIN && range.hi == INT64_MAX && chosen->type->kind == TL_TYPE_SCALAR) return range;
  tl_range other = tl_query_range(query, condition->operands[1].value);
  return refine(range, holds ? (int)pred : negated((int)pred), other);
}

tl_range tl_query_select_range(tl_query *query, const tl_op *op) {
  const tl_op *condition = op->operands[0].value ? op->operands[0].value->def : NULL;
  tl_range a = chosen_range(query, condition, true, op->operands[1].value);
  tl_range b = chosen_range(query, condition, false, op->operands[2].value);
  bool never_a = a.lo > a.hi, never_b = b.lo > b.hi;
  // Neither: the select cannot be reached, and no range is wrong.
  if (never_a && never_b) return TL_RANGE_ALL;
  if (never_a) return b;
  return never_b ? a : range_union(a, b);
}
