// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conditions of the branches around an op as facts `x >= 0` about sums of values: a goal `y >= 0` (the functions below
// take y) follows from one when y - x is never negative.
//
//   if i + 4 <= n { load X[i + 3] }      fact n - i - 4 >= 0, goal n - (i + 3) - 1 >= 0: their difference is 0
#include "passes/analysis/known_conditions.h"

static tl_affine constant_form(int64_t value) {
  return (tl_affine){.valid = true, .constant = value};
}

static bool follows(const tl_affine *goal, const tl_affine *fact) {
  tl_affine rest = tl_affine_sub(goal, fact);
  return rest.valid && tl_affine_range(&rest).lo >= 0;
}

// a >= b (a > b when `strict`).
static bool implied_by_order(const tl_affine *goal, tl_value *a, tl_value *b, bool strict) {
  tl_affine x = tl_affine_of(a), y = tl_affine_of(b);
  if (!x.valid || !y.valid) return false;
  tl_affine fact = tl_affine_sub(&x, &y);
  if (!fact.valid || fact.constant == INT64_MIN) return false;
  fact.constant -= strict;
  return follows(goal, &fact);
}

static bool implied_by_compare(const tl_affine *goal, const tl_op *op, bool holds) {
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  bool is_integer =
      a->type->kind == TL_TYPE_INDEX || (a->type->kind == TL_TYPE_SCALAR && tl_dtype_is_signed_int(a->type->dtype));
  if (!is_integer) return false;
  switch ((enum tl_cmp)tl_op_int(op, TL_ATTR_CMP, TL_CMP_COUNT)) {
    case TL_CMP_LT:
      return holds ? implied_by_order(goal, b, a, true) : implied_by_order(goal, a, b, false);
    case TL_CMP_LE:
      return holds ? implied_by_order(goal, b, a, false) : implied_by_order(goal, a, b, true);
    case TL_CMP_GT:
      return holds ? implied_by_order(goal, a, b, true) : implied_by_order(goal, b, a, false);
    case TL_CMP_GE:
      return holds ? implied_by_order(goal, a, b, false) : implied_by_order(goal, b, a, true);
    case TL_CMP_EQ:
      return holds && (implied_by_order(goal, a, b, false) || implied_by_order(goal, b, a, false));
    case TL_CMP_NE:
      return !holds && (implied_by_order(goal, a, b, false) || implied_by_order(goal, b, a, false));
    case TL_CMP_COUNT:
      break;
  }
  return false;
}

// Whether `condition`, which is known to hold (or not to), implies the goal.
static bool implied_by(const tl_affine *goal, const tl_value *condition, bool holds, int depth) {
  const tl_op *op = condition->def;
  if (!op || depth == 0) return false;
  if (op->code == TL_OP_NOT) return implied_by(goal, tl_op_operand(op, 0), !holds, depth - 1);
  // Both sides of an `and` hold, both sides of an `or` do not.
  if ((op->code == TL_OP_AND && holds) || (op->code == TL_OP_OR && !holds)) {
    return implied_by(goal, tl_op_operand(op, 0), holds, depth - 1) ||
           implied_by(goal, tl_op_operand(op, 1), holds, depth - 1);
  }
  return op->code == TL_OP_CMP && implied_by_compare(goal, op, holds);
}

bool tl_known_sum(const tl_op *op, const tl_affine *sum) {
  enum { MAX_DEPTH = 16 };
  if (!sum->valid) return false;
  for (const tl_op *inner = op; inner->parent && inner->parent->parent; inner = inner->parent->parent) {
    const tl_op *around = inner->parent->parent;
    if (around->code != TL_OP_IF) continue;
    if (implied_by(sum, tl_op_arg(around, TL_GROUP_IF_condition), inner->parent == around->regions[0], MAX_DEPTH))
      return true;
  }
  return false;
}

// What is assumed of the values that `value` is computed from, as far as they are sums of others: of symbols the index
// analysis knows it.
static bool implied_by_assumed(const tl_affine *goal, tl_value *value, int depth) {
  const tl_op *op = value->def;
  if (!op || depth == 0 || op->num_regions > 0 || !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) return false;
  if (op->code == TL_OP_ASSUME) {
    tl_value *lower = tl_op_arg(op, TL_GROUP_ASSUME_lower), *upper = tl_op_arg(op, TL_GROUP_ASSUME_upper);
    if (lower && implied_by_order(goal, value, lower, false)) return true;
    if (upper && implied_by_order(goal, upper, value, true)) return true;
  }
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (implied_by_assumed(goal, tl_op_operand(op, i), depth - 1)) return true;
  return false;
}

enum { MAX_ASSUMED_DEPTH = 6 };

bool tl_known_below(const tl_op *op, tl_value *index, int64_t offset, tl_value *limit, int64_t constant) {
  tl_affine end = limit ? tl_affine_of(limit) : constant_form(constant);
  tl_affine at = tl_affine_of(index), last = constant_form(offset);
  at = at.valid ? tl_affine_add(&at, &last) : at;
  if (!end.valid || !at.valid) return false;
  tl_affine goal = tl_affine_sub(&end, &at);
  if (!goal.valid || goal.constant == INT64_MIN) return false;
  goal.constant -= 1;
  return tl_known_sum(op, &goal) || implied_by_assumed(&goal, index, MAX_ASSUMED_DEPTH);
}

bool tl_known_not_negative(const tl_op *op, tl_value *index, int64_t offset) {
  tl_affine at = tl_affine_of(index), first = constant_form(offset);
  if (!at.valid) return false;
  tl_affine goal = tl_affine_add(&at, &first);
  return tl_known_sum(op, &goal) || implied_by_assumed(&goal, index, MAX_ASSUMED_DEPTH);
}
