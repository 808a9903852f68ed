// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether roles pay where nobody asked for them. Measured on an H200 (TFLOP/s, burst): attention 4096 with 256 threads
// 585 to 658 and 16384 558 to 725, matmul 8192 with 256 threads 788 to 795; but 755 to 718 where several blocks share a
// multiprocessor and hide each other's loads, and causal attention 521 to 467, whose blocks have few iterations.
#include "ir/index/affine.h"
#include "passes/pipeline/assign_roles.h"
#include "passes/schedule/cost.h"

enum { LEAST_TRIPS = 16, MAX_VISITS = 256 };

// Whether a value may differ from block to block. `visits` are left.
static bool is_of_tile(const tl_value *value, int *visits) {
  if (!value->def || --*visits < 0) return true;
  if (value->def->code == TL_OP_GRID || value->def->code == TL_OP_TILE_INDEX || value->def->code == TL_OP_BLOCK_ID)
    return true;
  for (uint32_t i = 0; i < value->def->num_operands; i++)
    if (is_of_tile(tl_op_operand(value->def, i), visits)) return true;
  return !(tl_op_info_of(value->def->code)->flags & TL_OPFLAG_PURE);
}

typedef struct choice {
  const char *obstacle;
  bool has_loop;
} choice;

// The loops that slots are waited for in: the same number of iterations in each block, and many.
static void look_at_wait(tl_op *op, void *user) {
  choice *found = user;
  const tl_op *loop = op->code == TL_OP_RING_WAIT ? tl_op_enclosing(op, TL_OP_FOR) : NULL;
  if (!loop || tl_op_has(loop, TL_ATTR_TILES)) return;
  found->has_loop = true;
  const tl_value *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  int64_t trips;
  int visits = MAX_VISITS;
  if (tl_value_const_int(upper, &trips) && trips < LEAST_TRIPS) found->obstacle = "their loop has few iterations";
  if (is_of_tile(upper, &visits)) found->obstacle = "blocks differ in the number of iterations";
}

static void look_at_ring(tl_op *op, void *user) {
  choice *found = user;
  bool by_engine = tl_op_int(op, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_BARRIERS;
  if (op->code == TL_OP_RING && !by_engine) found->obstacle = "some copies do not come by TMA";
}

const char *tl_roles_choice_obstacle(tl_op *kernel, int64_t math_registers) {
  if (math_registers == 0 || tl_cost_planned(kernel, "resident", 1) > 1)
    return "one warpgroup computes, or several blocks share a multiprocessor";
  if (tl_cost_planned(kernel, "registers", 0) > math_registers) return "tiles need more registers";
  choice found = {0};
  tl_walk(kernel, look_at_ring, &found);
  if (!found.obstacle) tl_walk(kernel, look_at_wait, &found);
  return found.obstacle || found.has_loop ? found.obstacle : "no loop waits for them";
}
