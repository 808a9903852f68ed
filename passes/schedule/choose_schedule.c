// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// choose-schedule: decides instruction and warp partition of every gemm, threads, stages and rasterisation, by cost.
//
//   kernel name="k" threads=128 { … for … pipelined { … gemm %acc, %a, %b mma=auto } }
//   → kernel name="k" threads=128 min_blocks=2 plan={…} { … for … pipelined stages=3 { … gemm …
//   inst=mma.m16n8k16.f32.f16.f16 warps=[2, 2] } }
//
// Needs tile-level IR. Later passes follow the attributes it writes; the plan dictionary on the kernel says the same
// for people and tools. What the author fixed stays fixed.
#include "passes/schedule/choose_schedule.h"

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"

// ---- which instruction fits

static const char *dtype_name(const tl_value *value) {
  return tl_dtype_name(value->type->dtype);
}

// The oldest target whose compute capability reaches `sm`.
static const char *first_target(int sm) {
  for (int i = 0; tl_target_at(i); i++)
    if (tl_target_at(i)->sm >= sm) return tl_target_at(i)->name;
  return "no target";
}

// Why no matrix instruction fits, or NULL when one does.
static const char *mma_obstacle(tl_pass_context *context, const tl_op *gemm, const tl_gemm_shape *shape) {
  if (!(context->target->features & TL_FEATURE_MMA_SYNC)) return "the target has no mma.sync";
  if (shape->mma.family == TL_FAMILY_NONE) {
    tl_dtype a = tl_op_arg(gemm, TL_GROUP_GEMM_a)->type->dtype;
    if (a == TL_DTYPE_F32) return "tensor cores multiply f32 as tf32 only: ask for that with tf32 tiles";
    return "there is no mma.sync for these dtypes";
  }
  int min_sm = tl_instruction_min_sm(&shape->mma);
  if (min_sm <= context->target->sm) return NULL;
  return tl_arena_printf(&context->scratch, "%s has no mma.sync for %s; %s is the first target that has it",
                         context->target->name, tl_dtype_name(shape->mma.a), first_target(min_sm));
}

static tl_gemm_shape shape_of(const tl_op *gemm) {
  const tl_type *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc)->type;
  const tl_type *a = tl_op_arg(gemm, TL_GROUP_GEMM_a)->type;
  const tl_type *b = tl_op_arg(gemm, TL_GROUP_GEMM_b)->type;
  return (tl_gemm_shape){.m = (int32_t)acc->dims[0],
                         .n = (int32_t)acc->dims[1],
                         .k = (int32_t)a->dims[tl_op_has(gemm, TL_ATTR_TRANS_A) ? 0 : 1],
                         .operand_bits = tl_dtype_bits(a->dtype),
                         .policy = (int)tl_op_int(gemm, TL_ATTR_POLICY, TL_POLICY_SQUARE),
                         .is_promoted = tl_gemm_is_promoted(gemm),
                         .fma = tl_instruction_find(TL_FAMILY_FMA, a->dtype, b->dtype, acc->dtype),
                         .mma = tl_instruction_find(TL_FAMILY_MMA, a->dtype, b->dtype, acc->dtype),
                         .swapped = tl_instruction_find(TL_FAMILY_MMA, b->dtype, a->dtype, acc->dtype)};
}

// `mma: wgmma` on a gemm that cannot have it. `why` says what stands in its way.
static void report_no_wgmma(tl_pass_context *context, const tl_op *gemm, const char *why) {
  tl_diag *diag =
      tl_diag_report(context->diags, TL_DIAG_GEMM_NO_INSTRUCTION, gemm->loc, "wgmma does not fit this gemm: %s", why);
  if (context->target->features & TL_FEATURE_WGMMA) {
    tl_diag_add_hint(context->diags, diag, "leave `mma` out: the compiler takes wgmma where it can");
  } else {
    tl_diag_add_hint(context->diags, diag, "%s has no wgmma; sm_90a is the first target that has it",
                     context->target->name);
  }
}

// Decides whether a gemm may take wgmma (into the shape) and mma (the result), else it runs on FMA; errors and warnings
// as the language page asks.
static bool choose_family(tl_schedule_problem *problem, int32_t g) {
  tl_pass_context *context = problem->context;
  const tl_op *gemm = problem->gemms[g];
  tl_gemm_shape *shape = &problem->shapes[g];
  int64_t wanted = tl_op_int(gemm, TL_ATTR_MMA, TL_MMA_AUTO);
  if (wanted == TL_MMA_FMA) return false;
  const char *obstacle = mma_obstacle(context, gemm, shape);
  if (wanted != TL_MMA_MMA) {
    const char *why = tl_wgmma_obstacle(context->target, gemm, shape, &shape->wgmma);
    problem->wants_wgmma[g] = wanted == TL_MMA_WGMMA;
    if (why && wanted == TL_MMA_WGMMA) {
      report_no_wgmma(context, gemm, why);
      return false;
    }
    if (why && (context->target->features & TL_FEATURE_WGMMA))
      tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, gemm->loc, "no wgmma: %s", why);
  }
  if (wanted == TL_MMA_MMA && obstacle) {
    tl_diag_report(context->diags, TL_DIAG_GEMM_NO_INSTRUCTION, gemm->loc,
                   "mma does not fit this gemm: %s (%s += %s @ %s, K of the tiles is %d)", obstacle,
                   dtype_name(tl_op_arg(gemm, TL_GROUP_GEMM_acc)), dtype_name(tl_op_arg(gemm, TL_GROUP_GEMM_a)),
                   dtype_name(tl_op_arg(gemm, TL_GROUP_GEMM_b)), shape->k);
    return false;
  }
  if (obstacle && shape->mma.family != TL_FAMILY_NONE && (context->target->features & TL_FEATURE_MMA_SYNC)) {
    // A newer target has it: silently taking a slower road would hide that.
    tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_GEMM_NO_INSTRUCTION, gemm->loc, "%s", obstacle);
    tl_diag_add_hint(context->diags, diag, "`mma: fma` multiplies without tensor cores on any target");
    return false;
  }
  if (obstacle && shape->operand_bits <= 16) {
    tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_GEMM_ON_FMA, gemm->loc,
                                   "this gemm of %s runs on FMA instructions, without tensor cores: %s",
                                   dtype_name(tl_op_arg(gemm, TL_GROUP_GEMM_a)), obstacle);
    tl_diag_add_hint(context->diags, diag, "`mma: fma` says that this is meant");
  }
  return obstacle == NULL;
}

// ---- products that are operands

// The gemm whose accumulator the fragment is, or is computed from element by element; NULL when there is none.
static tl_op *producer_of(const tl_value *fragment, int depth) {
  for (const tl_use *use = fragment->uses; use; use = use->next) {
    tl_op *op = use->owner;
    if (op->code == TL_OP_GEMM && tl_op_arg(op, TL_GROUP_GEMM_acc) == fragment) return op;
  }
  for (const tl_use *use = fragment->uses; use && depth > 0; use = use->next) {
    tl_op *op = use->owner, *found = NULL;
    if (op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_dst) == fragment) {
      tl_value *src = tl_op_arg(op, TL_GROUP_COPY_src);
      if (src->type->scope == TL_SCOPE_FRAGMENT) found = producer_of(src, depth - 1);
    } else if (op->code == TL_OP_STORE && tl_op_arg(op, TL_GROUP_STORE_buffer) == fragment) {
      const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
      for (tl_op *read = parallel ? parallel->regions[0]->first : NULL; read && !found; read = read->next) {
        if (read->code != TL_OP_LOAD) continue;
        tl_value *src = tl_op_arg(read, TL_GROUP_LOAD_buffer);
        bool same = src != fragment && src->type->scope == TL_SCOPE_FRAGMENT && src->type->rank == 2 &&
                    src->type->dims[0] == fragment->type->dims[0] && src->type->dims[1] == fragment->type->dims[1];
        if (same) found = producer_of(src, depth - 1);
      }
    }
    if (found) return found;
  }
  return NULL;
}

static void give_whole_rows(tl_schedule_problem *problem, const tl_value *acc) {
  for (int32_t g = 0; g < problem->num_gemms; g++) {
    const tl_op *gemm = problem->gemms[g];
    if (tl_op_arg(gemm, TL_GROUP_GEMM_acc) == acc && problem->use_mma[g] && !tl_op_has(gemm, TL_ATTR_POLICY))
      problem->shapes[g].policy = TL_POLICY_FULL_ROW;
  }
}

// A product that is the next gemm's operand stays in registers when both give every warp whole rows. That saves a trip
// through shared memory with two barriers and costs a few more reads of B.
static void keep_operands(tl_schedule_problem *problem) {
  enum { MAX_STEPS = 3 };
  for (int32_t g = 0; g < problem->num_gemms; g++) {
    const tl_value *a = tl_op_arg(problem->gemms[g], TL_GROUP_GEMM_a);
    if (a->type->scope != TL_SCOPE_FRAGMENT || !problem->use_mma[g]) continue;
    const tl_op *producer = producer_of(a, MAX_STEPS);
    if (!producer) continue;
    // Every gemm into one accumulator has one partition.
    give_whole_rows(problem, tl_op_arg(producer, TL_GROUP_GEMM_acc));
    give_whole_rows(problem, tl_op_arg(problem->gemms[g], TL_GROUP_GEMM_acc));
  }
}

// A gemm that reads the same B as one with whole rows gets whole rows too: then a warp's fragments of B are those of
// the other, and are read once for both.
static void share_operands(tl_schedule_problem *problem) {
  for (int32_t g = 0; g < problem->num_gemms; g++) {
    const tl_op *rows = problem->gemms[g];
    if (problem->shapes[g].policy != TL_POLICY_FULL_ROW || !problem->use_mma[g]) continue;
    for (int32_t h = 0; h < problem->num_gemms; h++) {
      const tl_op *gemm = problem->gemms[h];
      bool same = tl_op_arg(gemm, TL_GROUP_GEMM_b) == tl_op_arg(rows, TL_GROUP_GEMM_b) &&
                  gemm->parent == rows->parent &&
                  tl_op_has(gemm, TL_ATTR_TRANS_B) == tl_op_has(rows, TL_ATTR_TRANS_B) &&
                  tl_instruction_equal(&problem->shapes[h].mma, &problem->shapes[g].mma);
      if (h != g && same) give_whole_rows(problem, tl_op_arg(gemm, TL_GROUP_GEMM_acc));
    }
  }
}

// ---- collecting the problem

static bool is_global_load(const tl_value *value) {
  return value->def && value->def->code == TL_OP_LOAD &&
         tl_buffer_is_global(tl_op_arg(value->def, TL_GROUP_LOAD_buffer));
}

// Whether the op copies from global into `alloc` (or into a view of it), or gathers, maybe zeros beside: what a
// pipeline can run ahead.
static bool fills_from_global(tl_op *op, const tl_op *alloc) {
  if (op->code == TL_OP_COPY) {
    return tl_buffer_is_global(tl_op_arg(op, TL_GROUP_COPY_src)) &&
           tl_buffer_root(tl_op_arg(op, TL_GROUP_COPY_dst)) == alloc;
  }
  if (op->code != TL_OP_STORE || !tl_op_enclosing(op, TL_OP_PARALLEL)) return false;
  if (tl_buffer_root(tl_op_arg(op, TL_GROUP_STORE_buffer)) != alloc) return false;
  const tl_value *value = tl_op_arg(op, TL_GROUP_STORE_value);
  bool chooses = value->def && value->def->code == TL_OP_SELECT;
  return is_global_load(value) ||
         (chooses && (is_global_load(tl_op_operand(value->def, 1)) || is_global_load(tl_op_operand(value->def, 2))));
}

static bool block_fills(const tl_block *block, const tl_op *alloc) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (fills_from_global(op, alloc)) return true;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r] && block_fills(op->regions[r], alloc)) return true;
    }
  }
  return false;
}

int64_t tl_schedule_alloc_bytes(const tl_op *alloc) {
  const tl_type *type = tl_op_result(alloc, 0)->type;
  int bits = tl_dtype_bits(type->dtype);
  const tl_attr *layout = tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT);
  int32_t shape[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  int64_t bytes = layout ? tl_shared_layout_bytes(layout->v.shared, shape, type->rank, bits)
                         : (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)tl_type_num_elements(type));
  return (bytes + 127) / 128 * 128;
}

static void count_op(tl_op *op, void *user) {
  tl_schedule_problem *problem = user;
  if (op->code == TL_OP_GEMM) problem->num_gemms++;
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_PIPELINED)) problem->num_loops++;
}

// Memory for what collect_op finds.
static void make_room(tl_schedule_problem *problem) {
  tl_arena *arena = &problem->context->scratch;
  tl_walk(problem->scope, count_op, problem);
  problem->gemms = TL_NEW_ARRAY(arena, tl_op *, problem->num_gemms);
  problem->shapes = TL_NEW_ARRAY(arena, tl_gemm_shape, problem->num_gemms);
  problem->use_mma = TL_NEW_ARRAY(arena, bool, problem->num_gemms);
  problem->wants_wgmma = TL_NEW_ARRAY(arena, bool, problem->num_gemms);
  problem->swapped = TL_NEW_ARRAY(arena, tl_gemm_plan, problem->num_gemms);
  problem->loops = TL_NEW_ARRAY(arena, tl_loop_plan, problem->num_loops);
  problem->num_gemms = 0;
  problem->num_loops = 0;
}

// Of a copy out of registers into global memory; else 0.
static int64_t stored_bytes(const tl_op *copy) {
  const tl_value *src = tl_op_arg(copy, TL_GROUP_COPY_src), *dst = tl_op_arg(copy, TL_GROUP_COPY_dst);
  if (src->type->scope != TL_SCOPE_FRAGMENT || !tl_buffer_is_global(dst)) return 0;
  return tl_type_num_elements(src->type) * tl_dtype_bits(dst->type->dtype) / 8;
}

static bool follows_grid(tl_value *index) {
  tl_affine form = tl_affine_of(index);
  for (int32_t t = 0; t < form.num_terms; t++) {
    const tl_op *def = form.terms[t].symbol->def;
    if (def && def->code == TL_OP_GRID) return true;
  }
  return false;
}

// A read of global memory, at a place of the block's own: `elements` each time.
static void collect_stream(tl_schedule_problem *problem, const tl_value *tensor, tl_value *const *index, uint32_t rank,
                           int64_t elements) {
  bool follows = false;
  for (uint32_t d = 0; d < rank; d++) follows |= follows_grid(index[d]);
  for (int32_t s = 0; s < problem->num_streamed; s++) follows &= problem->streamed[s] != tensor;
  if (!follows || !tl_buffer_is_global(tensor) || problem->num_streamed == TL_PLAN_MAX_STREAMED) return;
  problem->streamed[problem->num_streamed++] = tensor;
  problem->streamed_bytes += (int64_t)tl_dtype_bytes(tensor->type->dtype, (uint64_t)elements);
}

static int64_t elements_of(const tl_op *op) {
  int32_t len = 0;
  const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &len);
  int64_t elements = 1;
  for (int32_t d = 0; d < len; d++) elements *= extents[d];
  return elements;
}

static void collect_reads(tl_schedule_problem *problem, tl_op *op) {
  tl_value *index[TL_MAX_RANK];
  const tl_op *parallel = op->code == TL_OP_LOAD ? tl_op_enclosing(op, TL_OP_PARALLEL) : NULL;
  if (parallel) {
    uint32_t rank = tl_element_rank(op);
    for (uint32_t d = 0; d < rank; d++) index[d] = tl_element_index(op, d);
    collect_stream(problem, tl_element_buffer(op), index, rank, elements_of(parallel));
  } else if (op->code == TL_OP_COPY) {
    tl_box box = tl_box_source(op);
    for (int32_t d = 0; d < box.buffer_rank; d++) index[d] = tl_box_offset(&box, d);
    collect_stream(problem, box.buffer, index, (uint32_t)box.buffer_rank, elements_of(op));
  }
}

static void collect_op(tl_op *op, void *user) {
  tl_schedule_problem *problem = user;
  if (op->code == TL_OP_GRID) problem->grid = op;
  if (op->code == TL_OP_ALLOC && tl_op_result(op, 0)->type->scope == TL_SCOPE_SHARED) {
    problem->shared_bytes += tl_schedule_alloc_bytes(op) * tl_op_int(op, TL_ATTR_DEPTH, 1);
  }
  if (op->code == TL_OP_COPY && op->parent == problem->kernel->regions[0]) problem->stored_bytes += stored_bytes(op);
  if (op->code == TL_OP_GEMM) {
    int32_t g = problem->num_gemms++;
    problem->gemms[g] = op;
    problem->shapes[g] = shape_of(op);
    problem->use_mma[g] = choose_family(problem, g);
  }
  if (op->code == TL_OP_ALLOC && op->results[0].type->scope == TL_SCOPE_FRAGMENT) {
    int64_t elements = tl_type_num_elements(op->results[0].type);
    if (elements > problem->most_elements) problem->most_elements = elements;
  }
  if (op->code == TL_OP_PARALLEL && elements_of(op) > problem->most_elements) problem->most_elements = elements_of(op);
  collect_reads(problem, op);
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_PIPELINED)) {
    tl_loop_plan *loop = &problem->loops[problem->num_loops++];
    *loop = (tl_loop_plan){.loop = op, .fixed = tl_op_has(op, TL_ATTR_STAGES)};
    loop->stages = (int32_t)tl_op_int(op, TL_ATTR_STAGES, 1);
  }
}

static void collect(tl_schedule_problem *problem) {
  bool is_role = problem->scope != problem->kernel;
  for (tl_op *op = problem->kernel->regions[0]->first; op && is_role; op = op->next)
    if (op->num_regions == 0) collect_op(op, problem);
  tl_walk(problem->scope, collect_op, problem);
}

static void measure_loops(tl_schedule_problem *problem) {
  for (int32_t l = 0; l < problem->num_loops; l++) {
    tl_loop_plan *loop = &problem->loops[l];
    for (tl_op *op = problem->kernel->regions[0]->first; op; op = op->next) {
      if (op->code != TL_OP_ALLOC || tl_op_result(op, 0)->type->scope != TL_SCOPE_SHARED) continue;
      if (block_fills(loop->loop->regions[0], op)) loop->staged_bytes += tl_schedule_alloc_bytes(op);
    }
  }
}

// ---- writing the plan

static void warn_padding(tl_pass_context *context, const tl_op *gemm, const tl_gemm_shape *shape,
                         const tl_gemm_plan *plan) {
  if (plan->replicas > 1) {
    tl_diag *diag = tl_diag_report(
        context->diags, TL_DIAG_GEMM_PADDED, gemm->loc, "%d of %d warps are idle in this gemm",
        plan->warps_m * plan->warps_n * (plan->replicas - 1), plan->warps_m * plan->warps_n * plan->replicas);
    tl_diag_add_hint(context->diags, diag, "%d threads are enough for a tile of %d by %d",
                     plan->warps_m * plan->warps_n * 32, shape->m, shape->n);
  } else if (plan->padded_m != shape->m || plan->padded_n != shape->n) {
    tl_diag_report(context->diags, TL_DIAG_GEMM_PADDED, gemm->loc,
                   "the accumulator of %d by %d is padded to %d by %d: %d by %d warps of m%dn%d instructions", shape->m,
                   shape->n, plan->padded_m, plan->padded_n, plan->warps_m, plan->warps_n, plan->inst.m, plan->inst.n);
  }
}

static void apply_gemm(tl_pass_context *context, tl_op *gemm, const tl_gemm_shape *shape, const tl_gemm_plan *plan) {
  tl_op_set_instruction(context->module, gemm, &plan->inst);
  if (plan->inst.family != TL_FAMILY_FMA) {
    int64_t warps[3] = {plan->warps_m, plan->warps_n, plan->warps_k};
    tl_op_set_ints(context->module, gemm, TL_ATTR_WARPS, warps, plan->warps_k > 1 ? 3 : 2);
    warn_padding(context, gemm, shape, plan);
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, gemm->loc,
                   "%smma.m%dn%dk%d on %d by %d warps%s, warp tile %d by %d, %d accumulator registers a thread: "
                   "%.0f tensor clocks, %.0f shared memory clocks a tile",
                   plan->inst.family == TL_FAMILY_WGMMA ? "wg" : "", plan->inst.m, plan->inst.n, plan->inst.k,
                   plan->warps_m, plan->warps_n,
                   plan->warps_k > 1 ? tl_arena_printf(&context->scratch, ", %d of them along K", plan->warps_k) : "",
                   plan->padded_m / plan->warps_m, plan->padded_n / plan->warps_n, plan->acc_registers,
                   plan->math_clocks, plan->shared_clocks);
  } else {
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, gemm->loc,
                   "FMA instructions, %d accumulators a thread: %.0f clocks a tile", plan->acc_registers, plan->clocks);
  }
}

static void apply_loops(tl_pass_context *context, const tl_plan *plan) {
  for (int32_t l = 0; l < plan->num_loops; l++) {
    const tl_loop_plan *loop = &plan->loops[l];
    if (loop->fixed) continue;
    tl_op_set_int(context->module, loop->loop, TL_ATTR_STAGES, loop->stages);
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, loop->loop->loc,
                   loop->staged_bytes == 0
                       ? "%d stage: no shared tile is filled from global memory in the loop (%lld bytes)"
                       : "%d stages of %lld bytes: the most that leave room for the blocks wanted",
                   loop->stages, (long long)loop->staged_bytes);
  }
}

static void apply_grid(tl_schedule_problem *problem, tl_plan *plan) {
  tl_op *grid = problem->grid;
  if (tl_schedule_long_first(problem))
    tl_diag_report(problem->context->diags, TL_DIAG_REMARK_SCHEDULE, grid->loc,
                   "blocks with more iterations start first");
  if (!grid || grid->num_results < 2 || problem->num_gemms == 0 || tl_op_has(grid, TL_ATTR_PANEL)) return;
  // Who waits for blocks before its own means the grid's own order.
  if (!tl_schedule_rows_share(problem) || tl_schedule_waits(problem)) return;
  plan->panel = TL_PLAN_PANEL;
  tl_op_set_int(problem->context->module, grid, TL_ATTR_PANEL, TL_PLAN_PANEL);
  tl_diag_report(problem->context->diags, TL_DIAG_REMARK_SCHEDULE, grid->loc,
                 "blocks are visited in panels of %d so that neighbours find each other's tiles in the L2 cache",
                 TL_PLAN_PANEL);
}

// The plan dictionary: threads, registers, resident, shared_bytes, panel; per gemm inst and warps; per loop its stages.
static void write_dict(tl_schedule_problem *problem, const tl_plan *plan) {
  tl_arena *arena = &problem->context->scratch;
  int32_t capacity = 6 + 2 * plan->num_gemms + plan->num_loops, len = 0;
  tl_dict_entry *entries = TL_NEW_ARRAY(arena, tl_dict_entry, capacity);
  entries[len++] = (tl_dict_entry){.name = "threads", .kind = TL_ATTRKIND_INT, .i = plan->threads};
  entries[len++] = (tl_dict_entry){.name = "registers", .kind = TL_ATTRKIND_INT, .i = plan->registers};
  entries[len++] = (tl_dict_entry){.name = "resident", .kind = TL_ATTRKIND_INT, .i = plan->resident};
  entries[len++] = (tl_dict_entry){.name = "shared", .kind = TL_ATTRKIND_INT, .i = plan->shared_bytes};
  if (plan->panel) entries[len++] = (tl_dict_entry){.name = "panel", .kind = TL_ATTRKIND_INT, .i = plan->panel};
  for (int32_t g = 0; g < plan->num_gemms; g++) {
    const tl_gemm_plan *gemm = &plan->gemms[g];
    int64_t *items = TL_NEW_ARRAY(arena, int64_t, 6);
    items[0] = gemm->inst.m;
    items[1] = gemm->inst.n;
    items[2] = gemm->inst.k;
    items[3] = gemm->warps_m;
    items[4] = gemm->warps_n;
    items[5] = gemm->warps_k;
    entries[len++] = (tl_dict_entry){.name = tl_arena_printf(arena, "gemm%d", g),
                                     .kind = TL_ATTRKIND_STR,
                                     .s = tl_instruction_family_name(gemm->inst.family)};
    entries[len++] = (tl_dict_entry){.name = tl_arena_printf(arena, "gemm%d_inst_warps", g),
                                     .kind = TL_ATTRKIND_INTS,
                                     .items = items,
                                     .len = gemm->warps_k > 1 ? 6 : 5};
  }
  for (int32_t l = 0; l < plan->num_loops; l++) {
    entries[len++] = (tl_dict_entry){
        .name = tl_arena_printf(arena, "loop%d_stages", l), .kind = TL_ATTRKIND_INT, .i = plan->loops[l].stages};
  }
  tl_op_set_dict(problem->context->module, problem->kernel, TL_ATTR_PLAN, entries, len);
}

// What a kernel without gemms holds in registers, roughly: an elementwise one streams its tiles through a few, one with
// loops or block-wide steps keeps whole tiles alive.
typedef struct tl_held_registers {
  int32_t threads;
  int64_t tiles;  // registers a thread for all fragments
  bool keeps;     // tiles live across a loop or a block-wide step
} tl_held_registers;

static void count_held(tl_op *op, void *user) {
  tl_held_registers *held = user;
  if (op->code == TL_OP_ALLOC && op->results[0].type->scope == TL_SCOPE_FRAGMENT) {
    held->tiles += (tl_type_num_elements(op->results[0].type) + held->threads - 1) / held->threads;
  }
  bool streams = op->code == TL_OP_ALLOC || op->code == TL_OP_COPY || op->code == TL_OP_PARALLEL ||
                 op->code == TL_OP_FILL || op->code == TL_OP_IF || op->code == TL_OP_YIELD || op->code == TL_OP_KERNEL;
  bool inside = tl_op_enclosing(op, TL_OP_PARALLEL) != NULL;
  bool scalar = (tl_op_info_of(op->code)->flags & (TL_OPFLAG_PURE | TL_OPFLAG_ONCE)) != 0;
  held->keeps |= !streams && !inside && !scalar;
}

// Memory-bound kernels run best with TL_PLAN_STREAM_THREADS threads on a multiprocessor: enough loads in flight, and
// more registers for each thread's own loads than full occupancy leaves.
static void hint_streaming(tl_schedule_problem *problem, const tl_plan *plan) {
  tl_held_registers held = {.threads = plan->threads};
  tl_walk(problem->kernel, count_held, &held);
  int32_t registers = TL_PLAN_STREAM_REGISTERS + (held.keeps ? (int32_t)held.tiles : 0);
  int32_t blocks = tl_cost_resident_blocks(problem->context->target, plan->threads, registers, plan->shared_bytes);
  int32_t wanted = TL_PLAN_STREAM_THREADS / plan->threads;
  if (blocks > wanted) blocks = wanted;
  if (blocks > 1) tl_op_set_int(problem->context->module, problem->kernel, TL_ATTR_MIN_BLOCKS, blocks);
}

// As many blocks as the author wants, whatever their registers are.
static void apply_occupancy(tl_schedule_problem *problem, const tl_plan *plan) {
  int64_t blocks = tl_op_int(problem->kernel, TL_ATTR_OCCUPANCY, 0);
  const tl_target *target = problem->context->target;
  if (blocks * plan->threads > target->threads_per_sm)
    tl_diag_report(problem->context->diags, TL_DIAG_OCCUPANCY, problem->kernel->loc,
                   "%lld blocks of %d threads: a multiprocessor of %s holds %d threads", (long long)blocks,
                   plan->threads, target->name, target->threads_per_sm);
  if (blocks > 0) tl_op_set_int(problem->context->module, problem->kernel, TL_ATTR_MIN_BLOCKS, blocks);
}

static void apply_plan(tl_schedule_problem *problem, tl_plan *plan) {
  tl_pass_context *context = problem->context;
  if (!problem->fixed_threads) {
    tl_op_set_int(context->module, problem->kernel, TL_ATTR_THREADS, plan->threads);
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, problem->kernel->loc, "%d threads a block", plan->threads);
  }
  for (int32_t g = 0; g < plan->num_gemms; g++) {
    if (problem->wants_wgmma[g] && plan->gemms[g].inst.family != TL_FAMILY_WGMMA) {
      report_no_wgmma(
          context, problem->gemms[g],
          tl_arena_printf(&context->scratch, "%d threads are no warpgroups of 128 that can share a tile of %d by %d",
                          plan->threads, problem->shapes[g].m, problem->shapes[g].n));
      continue;
    }
    apply_gemm(context, problem->gemms[g], &problem->shapes[g], &plan->gemms[g]);
  }
  apply_loops(context, plan);
  apply_grid(problem, plan);
  if (problem->scope != problem->kernel) {
    // Warps and registers are the author's.
    if (plan->num_gemms > 0 || !tl_op_has(problem->kernel, TL_ATTR_PLAN)) write_dict(problem, plan);
    return;
  }
  if (plan->num_gemms > 0) {
    tl_op_set_int(context->module, problem->kernel, TL_ATTR_MIN_BLOCKS, tl_schedule_asked_blocks(problem, plan));
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, problem->kernel->loc,
                   "%d registers a thread and %lld bytes of shared memory: %d block%s on a multiprocessor",
                   plan->registers, (long long)plan->shared_bytes, plan->resident, plan->resident == 1 ? "" : "s");
  } else {
    hint_streaming(problem, plan);
  }
  apply_occupancy(problem, plan);
  write_dict(problem, plan);
}

static void schedule_scope(tl_pass_context *context, tl_op *kernel, tl_op *scope) {
  tl_schedule_problem problem = {.context = context, .kernel = kernel, .scope = scope};
  problem.fixed_threads = tl_op_threads_known(scope);
  bool is_role = scope != kernel;
  if (problem.fixed_threads &&
      (problem.fixed_threads < 32 || problem.fixed_threads > TL_MAX_THREADS_PER_BLOCK || problem.fixed_threads % 32)) {
    tl_diag_report(context->diags, TL_DIAG_BAD_THREADS, kernel->loc,
                   "a block of %d threads: it must be a multiple of 32, from 32 to %d", problem.fixed_threads,
                   TL_MAX_THREADS_PER_BLOCK);
    return;
  }
  if (!is_role) tl_schedule_registers(&problem, problem.fixed_threads ? problem.fixed_threads : 128);
  make_room(&problem);
  collect(&problem);
  if (tl_diags_has_errors(context->diags)) return;
  keep_operands(&problem);
  share_operands(&problem);
  measure_loops(&problem);
  tl_plan plan = tl_schedule_best(&problem);
  if (!is_role && tl_schedule_operands(&problem, &plan)) tl_schedule_plan(&problem, plan.threads, &plan);
  apply_plan(&problem, &plan);
}

static void schedule_kernel(tl_pass_context *context, tl_op *kernel) {
  const tl_op *roles = tl_kernel_roles(kernel);
  if (!roles) schedule_scope(context, kernel, kernel);
  for (tl_op *role = roles ? roles->regions[0]->first : NULL; role; role = role->next)
    if (role->code == TL_OP_ROLE) schedule_scope(context, kernel, role);
}

tl_status tl_pass_choose_schedule(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) schedule_kernel(context, op);
  }
  return TL_OK;
}
