// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a whole scheduled kernel costs: its loops by the tensor cores, shared memory, L2 and the latency of copies, what
// every block does once, and how the blocks fill the multiprocessors. Ranks tiles of one kernel against each other.
#include "passes/schedule/cost_internal.h"

#include <math.h>

#include "passes/analysis/memory_access.h"

// Bytes a clock that a multiprocessor gets from L2 while all of them read. Measured on an H200: a product by tiles of
// 128 by 128 by 64, two blocks a multiprocessor, takes 1.045 times as long as by 128 by 256 (docs/performance.md).
static const double l2_rate = 60.0;
static const double shared_rate = 128.0;  // bytes a clock
static const double lanes = 128.0;        // scalar operations a clock
static const double slow_lanes = 16.0;    // of those that the special function unit computes
// Loops whose products wait for each other's results: scalar work takes so many times what four schedulers could issue
// it in, whatever the number of warpgroups; clocks of an iteration for waits, shuffles and the first and last
// instructions; and where the threads that compute start the copies. Measured on an H200 (clocks of an iteration):
// attention by head dim 64, 3 warpgroups and 128 keys 2850, 96 keys 2210, 2 warpgroups 2177, 3 blocks of one 3000;
// head dim 128, 2 warpgroups 2718.
static const double dependence = 1.4, iteration_chain = 317, own_copies = 150;
// Of what a block does once, where its successor's loads and stores run beside it: 812 TFLOP/s where a block for each
// tile gives 790 (H200, product of 8192).
static const double seen_beside = 0.25;
static const double vector_bytes = 16.0;  // of a copy by a thread
// A loop's copies are not all as fast as the slowest is assumed to be: so much of the latency is seen with every stage
// less.
static const double jitter = 0.05;

enum {
  BLOCK_CLOCKS = 1000,    // of a block's start and end
  ITERATION_CLOCKS = 50,  // of waits and the loop's own instructions
  WARPGROUP_THREADS = 128,
  SPILL_FACTOR = 8
};

// What a piece of a kernel asks of each part of a multiprocessor, in clocks for one block.
typedef struct demand {
  double tensor, shared, scalar, special, l2;
} demand;

typedef struct kernel_cost {
  double blocks_at_once;
  double groups;   // warpgroups on a multiprocessor
  bool has_roles;  // warps of their own may start the copies
  double stored;   // bytes that a block leaves
  double loops;    // clocks of all blocks that are there at once
  double exposed;  // of what a block does once
} kernel_cost;

// ---- demands

static double copy_bytes(const tl_op *copy) {
  const tl_attr *extents = tl_op_attr(copy, TL_ATTR_EXTENTS);
  double bytes = tl_dtype_bits(tl_op_arg(copy, TL_GROUP_COPY_src)->type->dtype) / 8.0;
  for (int32_t i = 0; extents && i < extents->v.ints.len; i++) bytes *= (double)extents->v.ints.items[i];
  return bytes;
}

static double stored_bytes(const tl_op *copy) {
  double bytes = copy_bytes(copy) * tl_dtype_bits(tl_op_arg(copy, TL_GROUP_COPY_dst)->type->dtype);
  return bytes / tl_dtype_bits(tl_op_arg(copy, TL_GROUP_COPY_src)->type->dtype);
}

static bool is_global(const tl_value *buffer) {
  return buffer->type->kind == TL_TYPE_BUFFER && buffer->type->scope == TL_SCOPE_GLOBAL;
}

// Bytes that the operands of a gemm are read in, for all warps: of wgmma every block of 64 rows reads all columns, and
// its own rows once an instruction.
static double gemm_bytes(const tl_op *gemm) {
  const tl_instruction *inst = tl_op_instruction(gemm);
  const int64_t *warps = tl_op_ints(gemm, TL_ATTR_WARPS, NULL);
  const tl_value *a = tl_op_arg(gemm, TL_GROUP_GEMM_a);
  const tl_type *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc)->type;
  if (!inst || !warps) return 0;
  double rows = (double)acc->dims[acc->rank - 2], columns = (double)acc->dims[acc->rank - 1];
  double k = (double)a->type->dims[tl_op_has(gemm, TL_ATTR_TRANS_A) ? 0 : 1], bytes = tl_dtype_bits(inst->a) / 8.0;
  if (inst->family == TL_FAMILY_WGMMA) {
    double a_rows = inst->a_in_registers ? 0 : rows * columns / inst->n;
    return (a_rows + columns * rows / TL_WGMMA_ROWS) * k * bytes;
  }
  return (rows * (double)warps[1] + columns * (double)warps[0]) * k * bytes;
}

static bool is_free(const tl_op *op) {
  if (op->code == TL_OP_CONST || op->code == TL_OP_EXTRACT || op->code == TL_OP_YIELD) return true;
  const tl_value *buffer = op->code == TL_OP_LOAD    ? tl_op_arg(op, TL_GROUP_LOAD_buffer)
                           : op->code == TL_OP_STORE ? tl_op_arg(op, TL_GROUP_STORE_buffer)
                                                     : NULL;
  return buffer && buffer->type->scope == TL_SCOPE_FRAGMENT;
}

// Operations on an element; only those of the special function unit where `special`.
static double operations_in(const tl_op *op, bool special) {
  double count = 0;
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      bool is_special = inner->code == TL_OP_MATH || inner->code == TL_OP_MATH2 || inner->code == TL_OP_DIV;
      count += (special ? is_special : !is_free(inner)) + operations_in(inner, special);
    }
  }
  return count;
}

static double elements_of(const tl_op *parallel) {
  const tl_attr *extents = tl_op_attr(parallel, TL_ATTR_EXTENTS);
  double elements = 1;
  for (int32_t i = 0; extents && i < extents->v.ints.len; i++) elements *= (double)extents->v.ints.items[i];
  return elements;
}

// What a parallel moves that only gathers: elements from global to shared memory, `out_bytes` each.
static bool only_gathers(const tl_op *parallel, double *out_bytes) {
  const tl_op *load = NULL, *store = NULL;
  for (const tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    if (op->num_regions > 0 || op->code == TL_OP_EXTRACT) return false;
    if (op->code == TL_OP_LOAD && (load || !is_global(tl_element_buffer(op)))) return false;
    if (op->code == TL_OP_LOAD) load = op;
    if (op->code == TL_OP_STORE && (store || is_global(tl_element_buffer(op)))) return false;
    if (op->code == TL_OP_STORE) store = op;
  }
  if (!load || !store || tl_op_arg(store, TL_GROUP_STORE_value) != tl_op_result(load, 0)) return false;
  *out_bytes = tl_dtype_bits(tl_element_buffer(load)->type->dtype) / 8.0;
  return true;
}

static void add_parallel(const tl_op *op, double times, demand *out) {
  double elements = times * elements_of(op), bytes, operations = elements * operations_in(op, false) / lanes;
  if (only_gathers(op, &bytes)) {
    // Copies of vectors: a place is computed for each of them.
    out->l2 += elements * bytes / l2_rate;
    out->scalar += operations * bytes / vector_bytes;
  } else {
    out->scalar += operations;
    out->special += elements * operations_in(op, true) / slow_lanes;
  }
}

static void add_demand(const tl_op *op, double times, demand *out) {
  if (op->code == TL_OP_GEMM) {
    double tensor = tl_cost_gemm_clocks(op), shared = gemm_bytes(op) / shared_rate;
    const tl_instruction *inst = tl_op_instruction(op);
    // Warps that load operands themselves wait for the first ones of every step (cost.c).
    bool loads_itself = !inst || !tl_instruction_is_async(inst);
    out->tensor += times * (loads_itself ? fmax(tensor, shared) + 0.25 * fmin(tensor, shared) : tensor);
    out->shared += times * shared;
  } else if (op->code == TL_OP_COPY) {
    bool far = is_global(tl_op_arg(op, TL_GROUP_COPY_src)) || is_global(tl_op_arg(op, TL_GROUP_COPY_dst));
    *(far ? &out->l2 : &out->shared) += times * copy_bytes(op) / (far ? l2_rate : shared_rate);
  } else if (op->code == TL_OP_PARALLEL) {
    add_parallel(op, times, out);
    return;
  } else if (op->code == TL_OP_REDUCE) {
    out->scalar += times * (double)tl_type_num_elements(tl_op_arg(op, TL_GROUP_REDUCE_src)->type) / lanes;
  }
  double inside = op->code == TL_OP_FOR ? times * tl_cost_trips(op) : times;
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) add_demand(inner, inside, out);
}

// Clocks of one iteration of a pipelined loop for all blocks that are there at once. A stage is filled while those
// before it are read, in this block and, in turn, in the others.
static double iteration_clocks(const kernel_cost *cost, const tl_op *loop) {
  demand of = {0};
  for (const tl_op *op = loop->regions[0]->first; op; op = op->next) add_demand(op, 1, &of);
  double stages = (double)tl_op_int(loop, TL_ATTR_STAGES, 2), others = cost->blocks_at_once - 1;
  double latency = TL_COST_COPY_LATENCY + of.l2 / 2;
  double work = fmax(fmax(of.tensor, fmax(of.scalar, of.special)), fmax(of.shared, of.l2));
  double fill = stages > 1 ? (latency - others * work) / (stages - 1) : latency + work;
  double chain = 0;
  if (of.scalar > 0 && of.tensor > 0) {
    double products = of.tensor / cost->groups;  // of one warpgroup, beside the others
    chain = (products + dependence * of.scalar) * cost->blocks_at_once + iteration_chain;
    if (!cost->has_roles) chain += own_copies;
  }
  return fmax(work * cost->blocks_at_once, fmax(fill, chain)) + jitter * latency / stages + ITERATION_CLOCKS;
}

static void add_block(kernel_cost *cost, const tl_block *block, double times) {
  for (const tl_op *op = block->first; op; op = op->next) {
    demand once = {0};
    if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_PIPELINED)) {
      cost->loops += times * tl_cost_trips(op) * iteration_clocks(cost, op);
      cost->exposed += times * TL_COST_COPY_LATENCY;
    } else if (op->code == TL_OP_FOR || op->code == TL_OP_IF) {
      double inside = op->code == TL_OP_FOR ? times * tl_cost_trips(op) : times;
      for (uint32_t r = 0; r < op->num_regions; r++) add_block(cost, op->regions[r], inside);
    } else {
      add_demand(op, times, &once);
      bool leaves = op->code == TL_OP_COPY && is_global(tl_op_arg(op, TL_GROUP_COPY_dst));
      if (leaves) cost->stored += stored_bytes(op);
      cost->exposed += once.tensor + once.shared + once.scalar + once.special + once.l2;
    }
  }
}

// Registers that the largest fragment takes where no gemm made the plan count its accumulators: what is computed from
// it goes by element by element.
typedef struct fragment_count {
  int64_t registers;
  bool has_gemm;
} fragment_count;

static void count_fragment(tl_op *op, void *user) {
  fragment_count *count = user;
  count->has_gemm |= op->code == TL_OP_GEMM;
  if (op->code != TL_OP_ALLOC || op->results[0].type->scope != TL_SCOPE_FRAGMENT) return;
  int64_t bits = tl_type_num_elements(op->results[0].type) * tl_dtype_bits(op->results[0].type->dtype);
  int64_t registers = bits / 32 / tl_op_threads(op);
  if (registers > count->registers) count->registers = registers;
}

static int64_t registers_of(tl_op *kernel) {
  fragment_count count = {0};
  tl_walk(kernel, count_fragment, &count);
  int64_t planned = tl_cost_planned(kernel, "registers", 0);
  // What is loaded or stored meanwhile comes on top of the largest.
  int64_t with_tiles = TL_COST_STREAM_REGISTERS + count.registers + count.registers / 4;
  return count.has_gemm || with_tiles < planned ? planned : with_tiles;
}

double tl_cost_kernel(const tl_target *target, tl_op *kernel) {
  int64_t shared = tl_cost_planned(kernel, "shared", 0), registers = registers_of(kernel);
  if (shared > target->shared_max_bytes) return INFINITY;
  int32_t held = registers < TL_MAX_REGISTERS_PER_THREAD ? (int32_t)registers : TL_MAX_REGISTERS_PER_THREAD;
  double fit = (double)tl_cost_resident_blocks(target, tl_op_threads(kernel), held, shared);
  double at_once = fmax(fmin((double)tl_cost_blocks_at_once(kernel), fit), 1);
  kernel_cost cost = {.blocks_at_once = at_once, .exposed = BLOCK_CLOCKS};
  cost.groups = fmax(at_once * (double)tl_op_threads(kernel) / WARPGROUP_THREADS, 1);
  cost.has_roles = (target->features & TL_FEATURE_TMA) && at_once == 1 && cost.groups >= 2;
  add_block(&cost, kernel->regions[0], 1);
  demand all = {0};
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) add_demand(op, 1, &all);
  bool streams = all.tensor == 0 && cost.loops == 0;
  double waves = ceil(tl_cost_num_blocks(kernel) / (TL_COST_MULTIPROCESSORS * at_once));
  // What a block does once is hidden behind the loops of the others that are there, or (loop-tiles) behind its own next
  // tile; without loops it is all there is.
  bool stays = cost.has_roles && waves > 1 && (double)shared + cost.stored <= (double)target->shared_max_bytes;
  double clocks = cost.exposed;
  if (cost.loops > 0) clocks = cost.loops + (stays ? seen_beside : 1 / at_once) * cost.exposed;
  bool spills = registers >= TL_MAX_REGISTERS_PER_THREAD || registers * tl_op_threads(kernel) > TL_REGISTERS_PER_SM;
  // What is far beyond has its way only if a cluster takes it (spread-rows), the less the better.
  double beyond = fmax((double)registers / TL_MAX_REGISTERS_PER_THREAD, 1);
  double whole = streams ? tl_cost_stream(kernel, at_once, fmax(all.scalar, all.special)) : waves * clocks;
  return whole * (spills ? SPILL_FACTOR * beyond : 1);
}
