// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes that the cost of a whole kernel is made of, those that only the launch knows assumed.
#include <math.h>

#include "passes/schedule/cost_internal.h"

enum {
  ASSUMED_SIZE = 4096,  // of a dynamic dim
  MAX_HEIGHT = 64       // of an index expression
};

static int64_t value_of(const tl_value *value, int height) {
  const tl_op *op = value->def;
  int64_t constant;
  if (tl_value_const_int(value, &constant)) return constant;
  if (!op || height > MAX_HEIGHT) return 0;  // an index: of a loop's first iteration, of the first block
  if (op->code == TL_OP_GRID) return 0;
  if (op->code == TL_OP_DYN_PARAM) return ASSUMED_SIZE;
  if (op->num_operands != 2) return ASSUMED_SIZE;
  int64_t a = value_of(tl_op_operand(op, 0), height + 1), b = value_of(tl_op_operand(op, 1), height + 1), out = 0;
  switch (op->code) {
    case TL_OP_ADD:
      return __builtin_add_overflow(a, b, &out) ? INT32_MAX : out;
    case TL_OP_SUB:
      return __builtin_sub_overflow(a, b, &out) ? INT32_MAX : out;
    case TL_OP_MUL:
      return __builtin_mul_overflow(a, b, &out) ? INT32_MAX : out;
    case TL_OP_FLOORDIV:
      return b > 0 ? a / b : a;
    case TL_OP_MOD:
      return b > 0 ? a % b : 0;
    case TL_OP_MIN:
      return a < b ? a : b;
    case TL_OP_MAX:
      return a > b ? a : b;
    default:
      return ASSUMED_SIZE;
  }
}

double tl_cost_trips(const tl_op *loop) {
  double lower = (double)value_of(tl_op_arg(loop, TL_GROUP_FOR_lower), 0),
         upper = (double)value_of(tl_op_arg(loop, TL_GROUP_FOR_upper), 0),
         step = (double)value_of(tl_op_arg(loop, TL_GROUP_FOR_step), 0);
  double trips = step != 0 ? ceil((upper - lower) / step) : 0;
  return trips > 0 ? trips : 0;
}

double tl_cost_num_blocks(const tl_op *kernel) {
  double blocks = 1;
  const tl_op *grid = kernel->regions[0]->first;
  while (grid && grid->code != TL_OP_GRID) grid = grid->next;
  for (uint32_t i = 0; grid && i < grid->num_operands; i++) blocks *= (double)value_of(tl_op_operand(grid, i), 0);
  return blocks > 1 ? blocks : 1;
}
