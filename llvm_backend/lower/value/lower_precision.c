// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/lower/value/lower_precision.h"

#include "ir/reduction.h"

enum {
  MAX_USES = 64,      // that are looked at: enough for a tile that is normalised, masked and stored
  MIN_SUMMANDS = 32,  // a sum of 2^n numbers in a tree is good to n half units: five of them from here on
};

static bool is_narrow_float(tl_dtype dtype) {
  return tl_dtype_is_float(dtype) && tl_dtype_bits(dtype) <= 16;
}

// Elements that each result of the reduction collects.
static int64_t num_summands(const tl_op *reduce) {
  const tl_type *source = tl_op_group_at(reduce, TL_GROUP_REDUCE_src, 0)->type;
  bool reduced[TL_MAX_RANK] = {false};
  int64_t count = 1;
  tl_reduce_axes(reduce, reduced);
  for (int32_t d = 0; d < source->rank; d++) {
    if (reduced[d]) count *= source->dims[d];
  }
  return count;
}

static bool ends_in_sum(const tl_op *op) {
  int64_t kind = tl_op_int(op, TL_ATTR_REDUCTION, TL_REDUCTION_SUM);
  bool sums = kind == TL_REDUCTION_SUM || kind == TL_REDUCTION_ABSSUM;
  return sums && op->results[0].type->dtype == TL_DTYPE_F32 && num_summands(op) >= MIN_SUMMANDS;
}

// The value in which the use hands the number on with the same relative error; NULL when it does something else.
static const tl_value *handed_on(const tl_use *use) {
  tl_op *owner = use->owner;
  uint32_t operand = (uint32_t)(use - owner->operands);
  switch (owner->code) {
    case TL_OP_EXTRACT:
    case TL_OP_CONVERT_LAYOUT:
    case TL_OP_MUL:
    case TL_OP_DIV:
    case TL_OP_NEG:
    case TL_OP_CAST:
      return tl_op_result(owner, 0);
    case TL_OP_SELECT:
      return operand > 0 ? tl_op_result(owner, 0) : NULL;
    case TL_OP_YIELD:
      if (owner->parent->parent->code != TL_OP_PARALLEL) return NULL;
      return tl_op_result(owner->parent->parent, operand);
    default:
      return NULL;
  }
}

static tl_precision least(tl_precision a, tl_precision b) {
  return a < b ? a : b;
}

static tl_precision precision_of(const tl_value *value, int *budget) {
  if (!value->uses) return TL_PRECISION_FULL;
  if (is_narrow_float(value->type->dtype)) return TL_PRECISION_ROUNDED;
  if (value->type->dtype != TL_DTYPE_F32) return TL_PRECISION_FULL;
  tl_precision all = TL_PRECISION_ROUNDED;
  for (const tl_use *use = value->uses; use && all != TL_PRECISION_FULL; use = use->next) {
    const tl_op *owner = use->owner;
    if (--*budget < 0) return TL_PRECISION_FULL;
    if (owner->code == TL_OP_TILE_STORE && is_narrow_float(tl_op_arg(owner, TL_GROUP_TILE_STORE_dst)->type->dtype))
      continue;
    if (owner->code == TL_OP_REDUCE && ends_in_sum(owner)) {
      all = least(all, TL_PRECISION_SUMMED);
      continue;
    }
    const tl_value *next = handed_on(use);
    all = least(all, next ? precision_of(next, budget) : TL_PRECISION_FULL);
  }
  return all;
}

tl_precision tl_lower_precision_of(const tl_value *value) {
  int budget = MAX_USES;
  return precision_of(value, &budget);
}
