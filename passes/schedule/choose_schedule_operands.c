// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands B that a parallel computes just for the gemm after it (weights taken out of their packed form) stay in
// registers: every lane computes the elements that its part of the matrix instruction takes. That saves the trip
// through shared memory and the two barriers around it.
//
//   alloc shared B_s; parallel { store f(B_q[%i, %k // 2]), B_s[%i, %k] }; gemm %acc, %A_s, %B_s {trans_b}
//   → the same with a fragment B_s, and gemm … {b_run = 16, trans_b}
//
// A lane takes long runs along K, so that it reads its packed bytes with wide loads. That is another order of the
// products along K than the instruction's own, and A is read in the same one. Warps stand side by side along N, or
// along K with a sum each: the more along K, the less often A is read, but the more rows of B a warp has.
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

// Registers a thread may spend on one such tile, and bytes of the longer and the shorter run.
enum { MAX_REGISTERS = 96, LONG_RUN_BYTES = 32, SHORT_RUN_BYTES = 16, MIN_LOAD_BYTES = 4 };

// A tile on its way into registers.
typedef struct operand_tile {
  tl_op *alloc;
  tl_value *buffer;
  tl_op *parallel, *store;  // what writes it
  int32_t k_dim;            // dim of the tile that runs along K
  int32_t num_gemms;
  tl_op *gemm;  // one of them
  int32_t run;
  int32_t warps_n, warps_k;
} operand_tile;

static int32_t gemm_number(const tl_schedule_problem *problem, const tl_op *gemm) {
  for (int32_t g = 0; g < problem->num_gemms; g++) {
    if (problem->gemms[g] == gemm) return g;
  }
  return -1;
}

// Whether a gemm can take its B from registers without any warp computing what another one has.
static bool gemm_allows(const tl_schedule_problem *problem, const tl_plan *plan, const tl_op *gemm) {
  int32_t g = gemm_number(problem, gemm);
  if (g < 0 || plan->gemms[g].inst.family != TL_FAMILY_MMA || plan->gemms[g].warps_m != 1) return false;
  const tl_value *operand = tl_op_arg(gemm, TL_GROUP_GEMM_a);
  const tl_type *a = operand->type;
  if (tl_op_arg(gemm, TL_GROUP_GEMM_meta)) return false;
  if (operand->def && operand->def->code == TL_OP_PART_TILE) return false;  // runs are read in whole vectors
  int bits = tl_dtype_bits(problem->shapes[g].mma.a);
  bool narrow_float = bits == 8 && tl_dtype_is_float(problem->shapes[g].mma.a);
  return a->scope == TL_SCOPE_SHARED && !tl_op_has(gemm, TL_ATTR_TRANS_A) && (bits == 16 || bits == 8) && !narrow_float;
}

// The one parallel that writes the whole tile, element by element and in every iteration, and the gemms right after it.
static bool find_uses(const tl_schedule_problem *problem, const tl_plan *plan, operand_tile *tile) {
  for (const tl_use *use = tile->buffer->uses; use; use = use->next) {
    tl_op *op = use->owner;
    if (op->code == TL_OP_STORE) {
      tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
      if (tile->store || !parallel || op->parent != parallel->regions[0]) return false;
      tile->store = op;
      tile->parallel = parallel;
    } else if (op->code == TL_OP_GEMM && tl_op_arg(op, TL_GROUP_GEMM_b) == tile->buffer) {
      if (tl_op_arg(op, TL_GROUP_GEMM_a) == tile->buffer || !gemm_allows(problem, plan, op)) return false;
      int32_t k_dim = tl_op_has(op, TL_ATTR_TRANS_B) ? 1 : 0;
      if (tile->gemm && k_dim != tile->k_dim) return false;
      tile->gemm = op;
      tile->num_gemms++;
      tile->k_dim = k_dim;
    } else {
      return false;
    }
  }
  if (!tile->store || !tile->gemm) return false;
  for (const tl_use *use = tile->buffer->uses; use; use = use->next) {
    const tl_op *op = tile->parallel;
    while (op && op != use->owner) op = op->next;
    if (use->owner != tile->store && !op) return false;
  }
  return true;
}

// Whether the store names its element by the parallel's two indices, K by the last one.
static bool stores_by_indices(const operand_tile *tile) {
  const tl_block *body = tile->parallel->regions[0];
  const int64_t *extents = tl_op_ints(tile->parallel, TL_ATTR_EXTENTS, NULL);
  if (body->num_args != 2) return false;
  for (int32_t d = 0; d < 2; d++) {
    int32_t arg = d == tile->k_dim ? 1 : 0;
    if (tl_element_index(tile->store, (uint32_t)d) != body->args[arg]) return false;
    if (extents[arg] != tile->buffer->type->dims[d]) return false;
  }
  return true;
}

// A load that is the same along a lane's run, or reads it with wide accesses.
static bool load_fits(const tl_op *load, const operand_tile *tile) {
  const tl_value *buffer = tl_element_buffer(load), *along = tile->parallel->regions[0]->args[1];
  bool uniform = true;
  for (uint32_t d = 0; d < tl_element_rank(load); d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(load, d), along, tile->run);
    uniform = uniform && form.known && form.scale == 0;
  }
  if (uniform) return true;
  int bits = tl_dtype_bits(buffer->type->dtype);
  int32_t vec = tl_element_vector(load, tile->parallel, tile->run, false);
  if (vec == 1) {
    tl_packed_load packed = tl_element_packed(load, tile->parallel, tile->run);
    vec = packed.repeat > 1 ? packed.vec : 0;
  }
  return vec * bits >= MIN_LOAD_BYTES * 8;
}

// Nothing but arithmetic, loads that fit and the one store; a plain copy is left to cp.async.
static bool body_fits(const operand_tile *tile) {
  const tl_op *value = tl_op_arg(tile->store, TL_GROUP_STORE_value)->def;
  if (value && value->code == TL_OP_LOAD) return false;
  for (const tl_op *op = tile->parallel->regions[0]->first; op; op = op->next) {
    if (op == tile->store) continue;
    if (op->code == TL_OP_LOAD) {
      if (tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL || !load_fits(op, tile)) return false;
      continue;
    }
    if (!(tl_op_info_of(op->code)->flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR)) || op->num_regions > 0)
      return false;
  }
  return true;
}

// A partition in which every warp has whole instructions and a lane whole runs; false when there is none. Warps share
// K out where there are too few columns for all: with columns enough that was never faster, although A is read less
// often (H200, 16 by 64 by 128 on 4 warps: 4 by 1 51.9 us, 2 by 2 52.7 us, 1 by 4 55.2 us), as the sums have to be
// brought together and each warp loads for more rows.
static bool choose_partition(const tl_schedule_problem *problem, const tl_plan *plan, operand_tile *tile) {
  static const int32_t run_bytes[] = {LONG_RUN_BYTES, SHORT_RUN_BYTES};
  const tl_gemm_shape *shape = &problem->shapes[gemm_number(problem, tile->gemm)];
  int32_t warps = plan->threads / 32;
  bool can_split = tile->num_gemms == 1 && tl_schedule_can_split(tile->gemm);
  for (tile->warps_k = 1; tile->warps_k <= (can_split ? warps : 1); tile->warps_k++) {
    if (warps % tile->warps_k != 0) continue;
    tile->warps_n = warps / tile->warps_k;
    if (shape->n % (shape->swapped.m * tile->warps_n) != 0) continue;
    for (int i = 0; i < 2; i++) {
      tile->run = run_bytes[i] * 8 / tl_dtype_bits(tile->buffer->type->dtype);
      if (shape->k % (4 * tile->run * tile->warps_k) == 0 && body_fits(tile)) return true;
    }
  }
  return false;
}

static void keep_in_registers(tl_schedule_problem *problem, const operand_tile *tile) {
  tl_module *module = problem->context->module;
  const tl_type *type = tile->buffer->type;
  tile->buffer->type = tl_type_buffer(module, TL_SCOPE_FRAGMENT, type->dtype, type->dims, type->rank);
  for (const tl_use *use = tile->buffer->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_GEMM) continue;
    int32_t g = gemm_number(problem, use->owner);
    tl_op_set_int(module, use->owner, TL_ATTR_B_RUN, tile->run);
    tl_cost_swapped_mma(&problem->shapes[g], tile->warps_n, tile->warps_k, &problem->swapped[g]);
  }
  if (tile->warps_k > 1) tl_schedule_split(module, tile->gemm, tile->warps_k);
  tl_diag_report(problem->context->diags, TL_DIAG_REMARK_SCHEDULE, tile->alloc->loc,
                 "'%s' stays in registers: every lane computes what its part of the matrix product takes, %d elements "
                 "along K at a time",
                 tl_buffer_name(tile->buffer), tile->run);
}

bool tl_schedule_operands(tl_schedule_problem *problem, const tl_plan *plan) {
  bool changed = false;
  for (tl_op *op = problem->kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || tl_op_has(op, TL_ATTR_SHARED_LAYOUT)) continue;
    operand_tile tile = {.alloc = op, .buffer = tl_op_result(op, 0)};
    const tl_type *type = tile.buffer->type;
    if (!tl_buffer_is_shared(tile.buffer) || type->rank != 2) continue;
    int64_t bits = tl_type_num_elements(type) * tl_dtype_bits(type->dtype);
    int64_t registers = (bits / 32 + plan->threads - 1) / plan->threads;
    if (registers > MAX_REGISTERS || !find_uses(problem, plan, &tile) || !stores_by_indices(&tile)) continue;
    if (!choose_partition(problem, plan, &tile)) continue;
    keep_in_registers(problem, &tile);
    problem->operand_registers += (int32_t)registers;
    problem->shared_bytes -= tl_schedule_alloc_bytes(op);
    changed = true;
  }
  return changed;
}
