// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether roles pay where nobody asked for them. Measured on an H200 (TFLOP/s, burst, with 256 threads that compute and
// one block a multiprocessor, without and with roles): attention 4096 585 and 694, causal 547 and 615, matmul 8192
// 790 and 807; but 755 and 718 with 128 threads, where two blocks share a multiprocessor and hide each other's loads.
#include "passes/pipeline/assign_roles.h"
#include "passes/schedule/choose_schedule.h"
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

// ---- blocks that stay for several tiles

typedef struct tile_lengths {
  const tl_op *grid;
  bool differ;
} tile_lengths;

enum { MAX_HEIGHT = 64 };

static bool depends_on(const tl_value *value, const tl_op *grid, int height) {
  const tl_op *op = value->def;
  if (!op || height > MAX_HEIGHT) return true;
  if (op == grid) return true;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (depends_on(tl_op_operand(op, i), grid, height + 1)) return true;
  return op->num_regions > 0;
}

static void look_at_length(tl_op *op, void *user) {
  tile_lengths *lengths = user;
  const tl_op *loop = op->code == TL_OP_RING_WAIT ? tl_op_enclosing(op, TL_OP_FOR) : NULL;
  if (loop) lengths->differ |= depends_on(tl_op_arg(loop, TL_GROUP_FOR_upper), lengths->grid, 0);
}

static int64_t known_tiles(const tl_op *grid) {
  int64_t tiles = 1, extent;
  for (uint32_t i = 0; i < grid->num_operands && tiles < INT32_MAX; i++)
    tiles = tl_value_const_int(tl_op_operand(grid, i), &extent) ? tiles * extent : INT32_MAX;
  return tiles;
}

const char *tl_tiles_choice_obstacle(tl_pass_context *context, tl_op *kernel, const tl_op *grid) {
  if (!tl_roles_expected(context, kernel) || !tl_roles_math_registers(context, kernel))
    return "no warps of their own would bring the next tile's operands meanwhile";
  if (!tl_schedule_fits_apart(context->target, kernel, 1)) return "its shared tiles do not fit beside each other";
  if (known_tiles(grid) <= TL_COST_MULTIPROCESSORS) return "there are no more tiles than multiprocessors";
  tile_lengths lengths = {.grid = grid};
  tl_walk(kernel, look_at_length, &lengths);
  return lengths.differ ? "tiles take different times" : NULL;
}
