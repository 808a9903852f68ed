// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether roles pay where nobody asked for them. Measured on an H200 (TFLOP/s, burst, with 256 threads that compute and
// one block a multiprocessor, without and with roles): attention 4096 585 and 694, causal 547 and 615, matmul 8192
// 790 and 807; but 755 and 718 with 128 threads, where two blocks share a multiprocessor and hide each other's loads.
#include "passes/pipeline/assign_roles.h"
#include "passes/schedule/cost.h"

// Warps that only compute hold no addresses of copies: they get by with so many registers less than were planned.
// Checked by ptxas: 192 sums of promoted f8 in 232 registers, without spills.
enum { LEAST_TRIPS = 16, COPY_REGISTERS = 16 };

typedef struct choice {
  const char *obstacle;
  bool has_loop;
} choice;

// The loops that slots are waited for in: as far as is known of many iterations.
static void look_at_wait(tl_op *op, void *user) {
  choice *found = user;
  const tl_op *loop = op->code == TL_OP_RING_WAIT ? tl_op_enclosing(op, TL_OP_FOR) : NULL;
  if (!loop || tl_op_has(loop, TL_ATTR_TILES)) return;
  found->has_loop = true;
  const tl_value *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  int64_t trips;
  if (tl_value_const_int(upper, &trips) && trips < LEAST_TRIPS) found->obstacle = "their loop has few iterations";
}

static void look_at_ring(tl_op *op, void *user) {
  choice *found = user;
  bool by_engine = tl_op_int(op, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_BARRIERS;
  if (op->code == TL_OP_RING && !by_engine) found->obstacle = "some copies do not come by TMA";
}

const char *tl_roles_choice_obstacle(tl_op *kernel, int64_t math_registers) {
  if (math_registers == 0 || tl_cost_planned(kernel, "resident", 1) > 1)
    return "one warpgroup computes, or several blocks share a multiprocessor";
  if (tl_cost_planned(kernel, "registers", 0) - COPY_REGISTERS > math_registers) return "tiles need more registers";
  choice found = {0};
  tl_walk(kernel, look_at_ring, &found);
  if (!found.obstacle) tl_walk(kernel, look_at_wait, &found);
  return found.obstacle || found.has_loop ? found.obstacle : "no loop waits for them";
}
