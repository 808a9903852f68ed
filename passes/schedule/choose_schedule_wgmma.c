// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which gemms can run on wgmma: the form that fits the operands, what stands in its way, and how warpgroups share it.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

// ---- operands

static bool has_view(const tl_value *buffer) {
  for (const tl_use *use = buffer->uses; use; use = use->next)
    if (use->owner->code == TL_OP_VIEW) return true;
  return false;
}

// Why wgmma cannot read this part of a tile, or NULL: descriptors begin where the swizzle's pattern does, in rows and
// in panels, and the rows of one operand follow each other.
static const char *part_obstacle(const tl_op *part) {
  const tl_type *tile = tl_op_arg(part, TL_GROUP_PART_TILE_tile)->type;
  int32_t last = tile->rank - 1;
  int bits = tl_dtype_bits(tile->dtype);
  if (tl_op_ints(part, TL_ATTR_SRC_DIMS, NULL)[0] != last - 1) return "the rows of a slice do not follow each other";
  int64_t rows = 1;
  for (int32_t d = last - 1; d >= 0; d--) {
    int64_t step = tl_value_divisor(tl_op_group_at(part, TL_GROUP_PART_TILE_offsets, (uint32_t)d)) * rows;
    if (step % TL_SHARED_PANEL_ROWS != 0) return "a slice may begin inside a group of 8 rows";
    rows *= tile->dims[d];
  }
  if (rows % TL_SHARED_PANEL_ROWS != 0) return "the rows of the sliced tile are no groups of 8";
  tl_shared_layout layout = tl_shared_layout_panels(tile->dims[last] * bits / 8);
  if (layout.pitch_bytes == 0) return "an operand's rows are no multiple of 32 bytes, or not in groups of 8";
  int64_t panel = layout.pitch_bytes * 8 / bits;
  if (part->results[0].type->dims[1] % panel != 0) return "a slice ends inside a panel of the tile's rows";
  if (tl_value_divisor(tl_op_group_at(part, TL_GROUP_PART_TILE_offsets, (uint32_t)last)) % panel != 0)
    return "a slice may begin inside a panel of the tile's rows";
  return NULL;
}

// Why an operand in shared memory cannot lie as wgmma reads it; NULL when it can. The layout itself is select-copies'.
static const char *operand_obstacle(const tl_value *operand, bool transposed) {
  const tl_type *type = operand->type;
  const tl_op *alloc = operand->def;
  const tl_op *part = alloc && alloc->code == TL_OP_PART_TILE ? alloc : NULL;
  if (part) operand = tl_op_arg(part, TL_GROUP_PART_TILE_tile);
  alloc = operand->def;
  if (alloc && alloc->code == TL_OP_STAGE_TILE) {
    operand = tl_op_arg(alloc, TL_GROUP_STAGE_TILE_tile);
    alloc = operand->def;
  }
  int bits = tl_dtype_bits(type->dtype);
  if (type->scope != TL_SCOPE_SHARED) return "an operand is neither in shared memory nor, as A, in registers";
  if (!alloc || alloc->code != TL_OP_ALLOC || type->rank != 2 || has_view(operand))
    return "an operand is a view, or is seen through one";
  if (tl_op_has(alloc, TL_ATTR_SHARED_LAYOUT)) return "an operand's layout is fixed by `layout`";
  if (transposed && bits != 16) return "wgmma reads operands whose rows do not run along K in 16-bit types only";
  tl_shared_layout layout = tl_shared_layout_panels(type->dims[1] * bits / 8);
  if (layout.pitch_bytes == 0 || type->dims[0] % TL_SHARED_PANEL_ROWS != 0)
    return "an operand's rows are no multiple of 32 bytes, or not in groups of 8";
  return part ? part_obstacle(part) : NULL;
}

const char *tl_wgmma_obstacle(const tl_target *target, const tl_op *gemm, const tl_gemm_shape *shape,
                              tl_instruction *out) {
  const tl_value *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc), *a = tl_op_arg(gemm, TL_GROUP_GEMM_a),
                 *b = tl_op_arg(gemm, TL_GROUP_GEMM_b);
  *out = (tl_instruction){0};
  if (!(target->features & TL_FEATURE_WGMMA)) return "the target lacks it";
  if (tl_op_arg(gemm, TL_GROUP_GEMM_meta)) return "sparse products run on mma";
  const tl_op *role = tl_op_enclosing(gemm, TL_OP_ROLE);
  if (role && tl_op_int(role, TL_ATTR_FIRST_WARP, 0) % TL_WGMMA_WARPS != 0) return "the role begins inside a warpgroup";
  tl_instruction inst = tl_instruction_find(TL_FAMILY_WGMMA, a->type->dtype, b->type->dtype, acc->type->dtype);
  if (inst.family == TL_FAMILY_NONE) return "there is no wgmma for these dtypes";
  inst.a_in_registers = a->type->scope == TL_SCOPE_FRAGMENT;
  inst.trans_a = tl_op_has(gemm, TL_ATTR_TRANS_A);
  inst.trans_b = !tl_op_has(gemm, TL_ATTR_TRANS_B);
  if (inst.a_in_registers && inst.trans_a) return "A in registers is not transposed";
  const char *obstacle = inst.a_in_registers ? NULL : operand_obstacle(a, inst.trans_a);
  if (!obstacle) obstacle = operand_obstacle(b, inst.trans_b);
  if (obstacle) return obstacle;
  if (shape->m % TL_WGMMA_ROWS != 0) return "M of the tiles is no multiple of 64";
  if (shape->k % inst.k != 0) return "K of the tiles is no multiple of the instruction's";
  if (!tl_instruction_set_n(&inst, shape->n)) return "N of the tiles is no multiple of the instruction's";
  *out = inst;
  return NULL;
}

// ---- partition

// Registers of a thread that an instruction and what surrounds it need beside its sums. ptxas refuses a wgmma with too
// few (C7602: 154 for 128 sums); 208 of 240 and 128 of 160 fit, with A in registers, without spills (H200).
enum { SPARE_REGISTERS = 32 };

static int32_t most_sums(int32_t num_warps) {
  int32_t share = TL_REGISTERS_PER_SM / (num_warps * 32);
  return (share < TL_MAX_REGISTERS_PER_THREAD ? share : TL_MAX_REGISTERS_PER_THREAD) - SPARE_REGISTERS;
}

// Whether parts of `columns` of a B whose rows run along N start where the swizzle's pattern does.
static bool parts_start_panels(const tl_gemm_shape *shape, int32_t columns) {
  if (!shape->wgmma.trans_b || columns == shape->n) return true;
  int64_t bytes = shape->operand_bits / 8;
  return columns * bytes % tl_shared_layout_panels(shape->n * bytes).panel_bytes == 0;
}

// The widest n of at most `most` whose instructions side by side make up `columns`; false when there is none.
static bool set_widest_n(const tl_gemm_shape *shape, int32_t columns, int32_t most, tl_instruction *inst) {
  for (inst->n = most < TL_WGMMA_MAX_COLUMNS ? most / 8 * 8 : TL_WGMMA_MAX_COLUMNS; inst->n >= 8; inst->n -= 8) {
    if (columns % inst->n != 0 || tl_instruction_problem(inst)) continue;
    if (inst->n == columns || parts_start_panels(shape, inst->n)) return true;
  }
  return false;
}

// Cost of the shape's wgmma for groups_m by groups_n of the block's warpgroups; false when it
// cannot be shared so.
static bool cost_wgmma(const tl_gemm_shape *shape, int32_t groups_m, int32_t groups_n, int32_t num_warps,
                       tl_gemm_plan *plan) {
  tl_instruction inst = shape->wgmma;
  int32_t columns = shape->n / groups_n;
  if (shape->m % (TL_WGMMA_ROWS * groups_m) != 0 || shape->n % groups_n != 0) return false;
  int32_t rows = shape->m / groups_m, groups = groups_m * groups_n, sums = most_sums(num_warps);
  int32_t registers = rows * columns / (32 * TL_WGMMA_WARPS) / (inst.acc == TL_DTYPE_F16 ? 2 : 1);
  // Promoted sums of one instruction are there twice: n / 2 registers more.
  int32_t widest = shape->is_promoted ? 2 * (sums - registers) : columns;
  if (!parts_start_panels(shape, columns) || !set_widest_n(shape, columns, widest, &inst)) return false;
  *plan = (tl_gemm_plan){
      .inst = inst, .warps_m = groups_m * TL_WGMMA_WARPS, .warps_n = groups_n, .warps_k = 1, .padded_m = shape->m};
  plan->padded_n = shape->n;
  plan->replicas = num_warps / (groups * TL_WGMMA_WARPS);
  plan->acc_registers = registers;
  if (registers > sums) return false;
  plan->operand_registers = 8 + (shape->is_promoted ? inst.n / 2 : 0);
  double work = (double)shape->m * shape->n * shape->k * plan->replicas;
  plan->math_clocks = work / tl_instruction_rate(&inst);
  // Every block of 64 rows reads all columns' B, and its own A once an instruction.
  int64_t instructions = columns / inst.n;  // side by side
  double a_bytes = inst.a_in_registers ? 0 : (double)rows * instructions, b_bytes = (double)columns * rows / 64;
  plan->shared_clocks = (a_bytes + b_bytes) * shape->k * shape->operand_bits / 8 * groups * plan->replicas / 128.0;
  double longer = plan->math_clocks > plan->shared_clocks ? plan->math_clocks : plan->shared_clocks;
  // The last instruction is waited for, of promoted sums the last one of every part.
  int32_t waits = shape->is_promoted ? (shape->k + TL_PROMOTED_K - 1) / TL_PROMOTED_K : 1;
  plan->clocks = longer + 64.0 * waits;
  return true;
}

static bool policy_allows(const tl_gemm_shape *shape, int32_t groups_m, int32_t groups_n) {
  if (shape->policy == TL_POLICY_FULL_ROW) return groups_n == 1;
  if (shape->policy == TL_POLICY_FULL_COL) return groups_m == 1;
  return true;
}

bool tl_cost_best_wgmma(const tl_gemm_shape *shape, int32_t num_warps, tl_gemm_plan *best) {
  bool found = false;
  if (shape->wgmma.family == TL_FAMILY_NONE || num_warps % TL_WGMMA_WARPS != 0) return false;
  int32_t all = num_warps / TL_WGMMA_WARPS;
  for (int32_t groups = all; groups >= 1; groups--) {
    // Rows first: warpgroups side by side along M read one B.
    for (int32_t groups_m = groups; groups_m >= 1 && all % groups == 0; groups_m--) {
      tl_gemm_plan plan;
      if (groups % groups_m != 0 || !policy_allows(shape, groups_m, groups / groups_m)) continue;
      if (!cost_wgmma(shape, groups_m, groups / groups_m, num_warps, &plan)) continue;
      if (!found || plan.clocks < best->clocks) *best = plan;
      found = true;
    }
  }
  return found;
}
