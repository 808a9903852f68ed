// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/schedule/cost.h"

// Bytes a clock that shared memory delivers: 32 banks of 4 bytes.
static const double shared_rate = 128.0;
// A multiprocessor has four partitions, each with a tensor core; fewer warps leave some idle.
static const int32_t partitions = 4;

static int32_t ceil_div(int32_t a, int32_t b) {
  return (a + b - 1) / b;
}

static double combine(double math, double shared) {
  double longer = math > shared ? math : shared;
  double shorter = math > shared ? shared : math;
  // About a quarter of the shorter one is not hidden: the first fragments of a k-step are waited for.
  return longer + 0.25 * shorter;
}

// Cost of the shape's matrix instruction with the given partition; fills every field of `plan`.
static void cost_mma(const tl_gemm_shape *shape, int32_t warps_m, int32_t warps_n, int32_t num_warps,
                     tl_gemm_plan *plan) {
  const tl_instruction *inst = &shape->mma;
  int32_t tile_m = ceil_div(shape->m, inst->m * warps_m) * inst->m;
  int32_t tile_n = ceil_div(shape->n, 8 * warps_n) * 8;
  int32_t active = warps_m * warps_n;
  *plan = (tl_gemm_plan){.inst = *inst, .warps_m = warps_m, .warps_n = warps_n, .warps_k = 1};
  int32_t words = tl_dtype_bits(inst->acc) == 64 ? 2 : 1, steps = (shape->k + inst->k - 1) / inst->k;
  plan->replicas = num_warps / active;
  plan->padded_m = tile_m * warps_m;
  plan->padded_n = tile_n * warps_n;
  plan->acc_registers = tile_m * tile_n / 32 * words / (inst->acc == TL_DTYPE_F16 ? 2 : 1);
  plan->operand_registers = (tile_m / 8 + tile_n / 8) * 2;
  double work = (double)plan->padded_m * plan->padded_n * steps * inst->k * plan->replicas;
  int32_t busy = active * plan->replicas < partitions ? active * plan->replicas : partitions;
  plan->math_clocks = work / tl_instruction_rate(inst) * partitions / busy;
  double bytes = (double)(tile_m + tile_n) * shape->k * shape->operand_bits / 8 * active * plan->replicas;
  plan->shared_clocks = bytes / shared_rate;
  plan->clocks = combine(plan->math_clocks, plan->shared_clocks);
}

void tl_cost_swapped_mma(const tl_gemm_shape *shape, int32_t warps_n, int32_t warps_k, tl_gemm_plan *plan) {
  const tl_instruction *inst = &shape->swapped;
  int32_t tile_m = ceil_div(shape->m, 8) * 8, tile_n = ceil_div(shape->n, inst->m * warps_n) * inst->m;
  int32_t warps = warps_n * warps_k;
  *plan = (tl_gemm_plan){.inst = *inst, .warps_m = 1, .warps_n = warps_n, .warps_k = warps_k, .replicas = 1};
  plan->padded_m = tile_m;
  plan->padded_n = tile_n * warps_n;
  plan->acc_registers = tile_m * tile_n / 32 / (inst->acc == TL_DTYPE_F16 ? 2 : 1);
  plan->operand_registers = (tile_m / 8 + tile_n / 8) * 2;
  double work = (double)plan->padded_m * plan->padded_n * shape->k;
  plan->math_clocks = work / tl_instruction_rate(inst) * partitions / (warps < partitions ? warps : partitions);
  // B comes out of registers; every column of warps reads all of A.
  plan->shared_clocks = (double)tile_m * shape->k * shape->operand_bits / 8 * warps_n / shared_rate;
  plan->clocks = combine(plan->math_clocks, plan->shared_clocks);
}

void tl_cost_fma(const tl_gemm_shape *shape, int32_t threads, tl_gemm_plan *plan) {
  *plan = (tl_gemm_plan){.inst = shape->fma, .warps_m = 1, .warps_n = 1, .warps_k = 1, .replicas = 1};
  plan->padded_m = shape->m;
  plan->padded_n = shape->n;
  plan->acc_registers = ceil_div(shape->m * shape->n, threads);
  // A register tile of r x c needs r + c operands for r * c products, and as many in flight for the next step.
  int32_t side = 1;
  while ((side + 1) * (side + 1) <= plan->acc_registers) side++;
  plan->operand_registers = 4 * side;
  plan->math_clocks = (double)shape->m * shape->n * shape->k / tl_instruction_rate(&shape->fma);
  plan->shared_clocks = (double)threads * 2 * side * shape->k * shape->operand_bits / 8 / shared_rate / 4;
  plan->clocks = combine(plan->math_clocks, plan->shared_clocks);
}

static bool policy_allows(const tl_gemm_shape *shape, int32_t warps_m, int32_t warps_n) {
  // full_row gives every warp whole rows as far as there are rows enough; full_col whole columns.
  if (shape->policy == TL_POLICY_FULL_ROW) return warps_n == 1 || warps_m * 16 >= shape->m;
  if (shape->policy == TL_POLICY_FULL_COL) return warps_m == 1 || warps_n * 8 >= shape->n;
  return true;
}

static int32_t skew(const tl_gemm_plan *plan) {
  int32_t difference = plan->padded_m / plan->warps_m - plan->padded_n / plan->warps_n;
  return difference < 0 ? -difference : difference;
}

// Cheaper, or as cheap with less padding (idle warps are better than padding), or with a more square warp tile.
static bool is_better(const tl_gemm_plan *plan, const tl_gemm_plan *best) {
  if (plan->clocks != best->clocks) return plan->clocks < best->clocks;
  int64_t area = (int64_t)plan->padded_m * plan->padded_n, best_area = (int64_t)best->padded_m * best->padded_n;
  if (area != best_area) return area < best_area;
  return skew(plan) < skew(best);
}

tl_gemm_plan tl_cost_best_mma(const tl_gemm_shape *shape, int32_t num_warps) {
  tl_gemm_plan best = {0};
  for (int32_t active = num_warps; active >= 1; active--) {
    if (num_warps % active != 0) continue;
    for (int32_t warps_m = 1; warps_m <= active; warps_m++) {
      if (active % warps_m != 0 || !policy_allows(shape, warps_m, active / warps_m)) continue;
      tl_gemm_plan plan;
      cost_mma(shape, warps_m, active / warps_m, num_warps, &plan);
      if (best.inst.family == TL_FAMILY_NONE || is_better(&plan, &best)) best = plan;
    }
  }
  return best;
}

double tl_cost_gemm_clocks(const tl_op *gemm) {
  const tl_instruction *inst = tl_op_instruction(gemm);
  const tl_type *a = tl_op_arg(gemm, TL_GROUP_GEMM_a)->type, *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc)->type;
  double rows = (double)acc->dims[acc->rank - 2], columns = (double)acc->dims[acc->rank - 1];
  double k = (double)a->dims[tl_op_has(gemm, TL_ATTR_TRANS_A) ? 0 : 1];
  return inst ? rows * columns * k / tl_instruction_rate(inst) : 0;
}

int64_t tl_cost_planned(const tl_op *kernel, const char *name, int64_t fallback) {
  const tl_attr *plan = tl_op_attr(kernel, TL_ATTR_PLAN);
  for (int32_t i = 0; plan && i < plan->v.dict.len; i++)
    if (tl_str_is(tl_str_from(plan->v.dict.entries[i].name), name)) return plan->v.dict.entries[i].i;
  return fallback;
}

int64_t tl_cost_blocks_at_once(const tl_op *kernel) {
  int64_t fit = tl_cost_planned(kernel, "resident", 1), blocks = 1, extent;
  const tl_op *grid = kernel->regions[0]->first;
  while (grid && grid->code != TL_OP_GRID) grid = grid->next;
  for (uint32_t i = 0; grid && i < grid->num_operands && blocks < INT32_MAX; i++)
    blocks = tl_value_const_int(tl_op_operand(grid, i), &extent) ? blocks * extent : INT32_MAX;
  int64_t share = (blocks + TL_COST_MULTIPROCESSORS - 1) / TL_COST_MULTIPROCESSORS;
  return share < 1 ? 1 : share < fit ? share : fit;
}

int32_t tl_cost_resident_blocks(const tl_target *target, int32_t threads, int32_t registers, int64_t shared_bytes) {
  int64_t by_threads = target->threads_per_sm / threads;
  // Registers are handed out a warp at a time in units of 256, that is 8 a thread.
  int64_t per_thread = (registers + 7) / 8 * 8;
  int64_t by_registers = TL_REGISTERS_PER_SM / (per_thread * threads);
  int64_t by_shared = target->shared_per_sm_bytes / (shared_bytes + TL_COST_RESERVED_SHARED_BYTES);
  int64_t blocks = by_threads < by_registers ? by_threads : by_registers;
  if (by_shared < blocks) blocks = by_shared;
  if (target->blocks_per_sm < blocks) blocks = target->blocks_per_sm;
  return blocks < 1 ? 1 : (int32_t)blocks;
}
