// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The enumerator of plans: threads by gemm partitions by stages, each with its cost.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

static int32_t plan_gemms(const tl_schedule_problem *problem, tl_plan *plan) {
  int32_t accumulators = 0, operands = 0;
  plan->num_gemms = problem->num_gemms;
  plan->gemms = TL_NEW_ARRAY(&problem->context->scratch, tl_gemm_plan, problem->num_gemms);
  const tl_value **seen = TL_NEW_ARRAY(&problem->context->scratch, const tl_value *, problem->num_gemms);
  int32_t num_seen = 0;
  for (int32_t g = 0; g < problem->num_gemms; g++) {
    tl_gemm_plan *gemm = &plan->gemms[g];
    if (problem->swapped[g].inst.family != TL_FAMILY_NONE) {
      *gemm = problem->swapped[g];
    } else if (tl_cost_best_wgmma(&problem->shapes[g], plan->threads / 32, gemm)) {
      plan->num_wgmma++;
    } else if (problem->use_mma[g]) {
      *gemm = tl_cost_best_mma(&problem->shapes[g], plan->threads / 32);
    } else {
      tl_cost_fma(&problem->shapes[g], plan->threads, gemm);
    }
    plan->clocks += gemm->clocks;
    if (gemm->operand_registers > operands) operands = gemm->operand_registers;
    // Gemms into one accumulator share its registers.
    const tl_value *acc = tl_op_arg(problem->gemms[g], TL_GROUP_GEMM_acc);
    bool known = false;
    for (int32_t s = 0; s < num_seen; s++) known |= seen[s] == acc;
    if (known) continue;
    seen[num_seen++] = acc;
    accumulators += gemm->acc_registers;
  }
  return accumulators + operands;
}

static int64_t trip_count(const tl_op *loop) {
  tl_constant_loop known;
  return tl_loop_is_constant(loop, &known) && known.step > 0 ? known.trips : INT64_MAX;
}

// Most stages (at most TL_PLAN_MAX_STAGES, never more than iterations) for which `blocks` blocks fit; 0 when two do
// not.
static int32_t stages_that_fit(const tl_schedule_problem *problem, const tl_loop_plan *loop, int64_t others,
                               int32_t blocks) {
  const tl_target *target = problem->context->target;
  int64_t limit = target->shared_per_sm_bytes / blocks - TL_COST_RESERVED_SHARED_BYTES;
  if (limit > target->shared_max_bytes) limit = target->shared_max_bytes;
  int64_t trips = trip_count(loop->loop);
  int32_t most = trips < TL_PLAN_MAX_STAGES ? (int32_t)trips : TL_PLAN_MAX_STAGES;
  for (int32_t stages = most; stages >= 2; stages--) {
    if (others + stages * loop->staged_bytes <= limit) return stages;
  }
  return 0;
}

// Most stages that one block has room for beside the tile that it leaves, which the next tile's operands arrive under
// (loop-tiles); 0: they would not arrive in time, or no warps of their own would bring them. Measured on an H200,
// products of 4096 and 8192: 3 stages and the tile 770 and 794 TFLOP/s, 4 stages without it 763 and 785.
static int32_t stages_beside(const tl_schedule_problem *problem, const tl_plan *plan, const tl_loop_plan *loop,
                             int64_t others) {
  enum { WARPGROUP_THREADS = 128 };
  double products = 0;  // clocks of an iteration
  for (int32_t g = 0; g < plan->num_gemms; g++) products += plan->gemms[g].math_clocks;
  bool stays = (problem->context->target->features & TL_FEATURE_TMA) && plan->num_wgmma > 0 &&
               plan->num_wgmma == plan->num_gemms && plan->threads >= 2 * WARPGROUP_THREADS;
  int32_t stages = stays ? stages_that_fit(problem, loop, others + problem->stored_bytes, 1) : 0;
  return (stages - 1) * products >= TL_COST_COPY_LATENCY ? stages : 0;
}

static void plan_stages(const tl_schedule_problem *problem, int32_t wanted_blocks, tl_plan *plan) {
  plan->num_loops = problem->num_loops;
  plan->loops = TL_NEW_ARRAY(&problem->context->scratch, tl_loop_plan, problem->num_loops);
  plan->shared_bytes = problem->shared_bytes;
  for (int32_t l = 0; l < problem->num_loops; l++) {
    tl_loop_plan *loop = &plan->loops[l];
    *loop = problem->loops[l];
    int64_t others = plan->shared_bytes - loop->staged_bytes;
    if (!loop->fixed) {
      loop->stages = 1;
      for (int32_t blocks = wanted_blocks; blocks >= 1 && loop->stages == 1 && loop->staged_bytes > 0; blocks--) {
        int32_t stages = blocks == 1 ? stages_beside(problem, plan, loop, others) : 0;
        if (stages == 0) stages = stages_that_fit(problem, loop, others, blocks);
        if (stages > 1) loop->stages = stages;
      }
    }
    plan->shared_bytes = others + loop->stages * loop->staged_bytes;
  }
}

// A thread has a vector of eight elements at least and some 32 bytes under way: that is what rows want (measured on an
// H200: rms_norm of 4096 in 16 bits with 256 threads 0.971 of the copy, with 512 0.908; dropout_layer_norm, which reads
// five bytes an element, with 512 0.977, with 256 0.776). More threads than 512 meet at every reduction, and are for
// what would fill fewer threads' registers.
static double streaming_clocks(const tl_schedule_problem *problem, int32_t threads) {
  enum { VECTOR = 8, UNDER_WAY = 32, MANY_THREADS = 512, MANY_ELEMENTS = 32 };
  int64_t elements = problem->most_elements, bytes = problem->streamed_bytes;
  bool is_idle = elements / threads < VECTOR || (bytes > 0 && bytes / threads < UNDER_WAY);
  bool is_crowded = threads > MANY_THREADS && elements / MANY_THREADS <= MANY_ELEMENTS;
  return is_idle || is_crowded ? 1.0 : 1.0 / threads;
}

// Whether the copy looks like one for TMA, before layouts are chosen: rows that are contiguous, strides and addresses
// of 16 bytes, nothing to convert but f32 to tf32, zeros outside.
static bool suits_engine(tl_op *copy) {
  enum { UNIT_BYTES = 16 };
  tl_box source = tl_box_source(copy);
  tl_dtype from = source.buffer->type->dtype, to = tl_op_arg(copy, TL_GROUP_COPY_dst)->type->dtype;
  int64_t via = tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO), bytes = tl_dtype_bits(from) / 8;
  if (!tl_buffer_is_global(source.buffer) || (via != TL_VIA_AUTO && via != TL_VIA_TMA) || bytes == 0) return false;
  if ((from != to && (from != TL_DTYPE_F32 || to != TL_DTYPE_TF32)) || tl_op_arg(copy, TL_GROUP_COPY_pad)) return false;
  int32_t fast = tl_box_contiguous_dim(&source);
  if (fast < 0 || fast != source.tile_rank - 1 || tl_buffer_align(source.buffer) % UNIT_BYTES != 0) return false;
  for (int32_t d = 0; d < source.buffer_rank; d++)
    if (source.tile_dim[d] != fast && tl_buffer_stride_divisor(source.buffer, d) * bytes % UNIT_BYTES != 0)
      return false;
  return true;
}

typedef struct loop_copies {
  bool any, others;  // copies that TMA can carry; fills of shared tiles that it cannot
} loop_copies;

static void look_at_fill(tl_op *op, void *user) {
  loop_copies *found = user;
  if (op->code == TL_OP_STORE) found->others |= tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_STORE_buffer));
  if (op->code != TL_OP_COPY || !tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_COPY_dst))) return;
  bool fits = suits_engine(op);
  found->any |= fits;
  found->others |= !fits;
}

// Whether warps of their own may bring all that the loops read, for as many iterations as pay, and as far ahead as
// copies take. Measured on an H200 with tiles of 128 by 128 for two warpgroups, two blocks of 3 stages and one of 4
// with roles, TFLOP/s: 613 and 662 (linear and gelu), 437 and 575 (grouped), 640 and 717 (product of 8192), but 715 and
// 693 (of 4096). With 3 stages roles lose to two blocks.
static bool may_have_roles(const tl_schedule_problem *problem, const tl_plan *plan) {
  enum { LEAST_TRIPS = 16 };
  loop_copies found = {false, false};
  if (plan->num_wgmma == 0 || plan->num_wgmma < plan->num_gemms) return false;
  double products = 0;  // clocks of an iteration
  for (int32_t g = 0; g < plan->num_gemms; g++) products += plan->gemms[g].math_clocks;
  for (int32_t l = 0; l < problem->num_loops; l++) {
    const tl_loop_plan *loop = &problem->loops[l];
    int64_t others = problem->shared_bytes - loop->staged_bytes;
    int32_t stages = loop->fixed ? loop->stages : stages_that_fit(problem, loop, others, 1);
    if (trip_count(loop->loop) < LEAST_TRIPS || (stages - 1) * products < TL_COST_COPY_LATENCY) return false;
    tl_walk(problem->loops[l].loop, look_at_fill, &found);
  }
  return found.any && !found.others;
}

// Whether a loop demands warps of their own for its copies: with a warpgroup of them beside two or more that compute
// the block's threads share out all registers of a multiprocessor.
static bool fills_multiprocessor(const tl_schedule_problem *problem, const tl_plan *plan, int32_t threads) {
  enum { WARPGROUP_THREADS = 128 };
  bool demands = false;
  for (int32_t l = 0; l < problem->num_loops; l++)
    demands |= tl_op_int(problem->loops[l].loop, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) == TL_SWITCH_ON;
  demands |= may_have_roles(problem, plan);
  return demands && threads >= 2 * WARPGROUP_THREADS && (problem->context->target->features & TL_FEATURE_WGMMA);
}

void tl_schedule_plan(const tl_schedule_problem *problem, int32_t threads, tl_plan *plan) {
  *plan = (tl_plan){.threads = threads};
  int32_t registers = plan_gemms(problem, plan) + problem->operand_registers + TL_COST_BASE_REGISTERS;
  plan->registers = registers > TL_MAX_REGISTERS_PER_THREAD ? TL_MAX_REGISTERS_PER_THREAD : registers;
  const tl_target *target = problem->context->target;
  int32_t wanted = tl_cost_resident_blocks(target, threads, plan->registers, 0);
  if (problem->num_gemms > 0 && wanted > TL_PLAN_MAX_BLOCKS) wanted = TL_PLAN_MAX_BLOCKS;
  if (fills_multiprocessor(problem, plan, threads)) wanted = 1;
  plan_stages(problem, wanted, plan);
  plan->resident = tl_cost_resident_blocks(target, threads, plan->registers, plan->shared_bytes);
  if (fills_multiprocessor(problem, plan, threads) && plan->resident > 1) plan->resident = 1;
  // Spilled accumulators cost a trip to memory each k-step.
  if (registers > TL_MAX_REGISTERS_PER_THREAD) {
    plan->clocks += (double)(registers - TL_MAX_REGISTERS_PER_THREAD) * threads;
  }
  // Eight warps on a multiprocessor are enough to hide the latency between dependent instructions.
  int32_t warps = plan->resident * threads / 32;
  if (warps < 8) plan->clocks *= 1.0 + 0.05 * (8 - warps);
  if (problem->num_gemms == 0) {
    plan->clocks = streaming_clocks(problem, threads);
  }
}

typedef struct held_fragments {
  const tl_schedule_problem *problem;
  int64_t registers;  // a thread, of those that are no accumulator
} held_fragments;

static void count_fragment(tl_op *op, void *user) {
  enum { OF_A_ROW = 4 };  // lanes that hold a value of it each
  held_fragments *held = user;
  if (op->code != TL_OP_ALLOC || op->results[0].type->scope != TL_SCOPE_FRAGMENT) return;
  const tl_value *tile = &op->results[0];
  for (int32_t g = 0; g < held->problem->num_gemms; g++)
    if (tl_op_arg(held->problem->gemms[g], TL_GROUP_GEMM_acc) == tile) return;
  int64_t elements = tl_type_num_elements(tile->type) * (tile->type->rank < 2 ? OF_A_ROW : 1);
  int32_t threads = tl_op_threads(op);
  held->registers += (elements * tl_dtype_bits(tile->type->dtype) / 32 + threads - 1) / threads;
}

// The hint caps registers. Where some stay beside the plan's nothing can spill. Products of wgmma hold nothing but
// their sums: what else a kernel keeps are its fragments. Left to itself ptxas takes what it likes: 168 registers for
// an epilogue that does with 124, and one block where two were planned (a convolution on an H200: 141 and 89 us).
int32_t tl_schedule_asked_blocks(const tl_schedule_problem *problem, const tl_plan *plan) {
  const tl_target *target = problem->context->target;
  held_fragments held = {.problem = problem};
  int32_t spare = plan->registers + TL_PLAN_SPARE_REGISTERS;
  int32_t blocks = tl_cost_resident_blocks(target, plan->threads, spare, plan->shared_bytes);
  if (plan->num_wgmma == plan->num_gemms) {
    tl_walk(problem->kernel, count_fragment, &held);
    int64_t all = plan->registers + held.registers;
    int32_t some = all < TL_MAX_REGISTERS_PER_THREAD ? (int32_t)all : TL_MAX_REGISTERS_PER_THREAD;
    int32_t planned = tl_cost_resident_blocks(target, plan->threads, some, plan->shared_bytes);
    if (planned > plan->resident) planned = plan->resident;
    if (planned > blocks) blocks = planned;
  }
  return blocks < TL_PLAN_MAX_BLOCKS ? blocks : TL_PLAN_MAX_BLOCKS;
}

tl_plan tl_schedule_best(const tl_schedule_problem *problem) {
  // Three warpgroups share what is a multiple of 192 rows.
  static const int32_t candidates[] = {128, 256, 384, 512, 1024};
  tl_plan best;
  if (problem->fixed_threads) {
    tl_schedule_plan(problem, problem->fixed_threads, &best);
    return best;
  }
  for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
    tl_plan plan;
    tl_schedule_plan(problem, candidates[i], &plan);
    bool by_wgmma = plan.num_wgmma > 0 && plan.num_wgmma == plan.num_gemms;
    bool fits = candidates[i] == 384 ? by_wgmma : candidates[i] <= 256 || problem->num_gemms == 0;
    if (!fits) continue;
    if (i == 0 || plan.clocks < best.clocks) best = plan;
  }
  return best;
}

bool tl_schedule_fits_apart(const tl_target *target, const tl_op *kernel, int64_t blocks) {
  int64_t bytes = 0, limit = target->shared_per_sm_bytes / (blocks > 0 ? blocks : 1) - TL_COST_RESERVED_SHARED_BYTES;
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || !tl_buffer_is_shared(&op->results[0])) continue;
    bytes += tl_schedule_alloc_bytes(op) * tl_op_int(op, TL_ATTR_DEPTH, 1) + TL_COST_RESERVED_SHARED_BYTES;
  }
  return bytes <= limit && bytes <= target->shared_max_bytes;
}
