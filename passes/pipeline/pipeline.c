// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline: turns pipelined loops into rings.
//
//   for %i = 0 to %n {                      %r = ring(3)
//     copy(%A → %A_s)                       slot p of 0, 1: acquire, if p < n copy(… iteration p), commit
//     %acc = gemm(%acc0, %A_s, …)       ⇒   for %k = 0 to %n {
//   }                                         %w = ring_wait(%r, %k) pending 1
//                                             %a = ring_acquire(%r, %k + 2)
//                                             if %k + 2 < %n { copy async(… iteration k + 2 → ring_tile(%a, %A_s)) }
//                                             ring_commit(%r)
//                                             %acc = gemm(%acc0, ring_tile(%w, %A_s), …)
//                                             ring_release(%w)
//                                           }
//
// Which copies may run ahead is the dependence analysis' answer (dependence.h); the rest of the body keeps its order.
// Every iteration commits, also an empty slot, so that a wait counts the same number of later slots in every iteration;
// slots of iterations that do not exist are never filled, so nothing is in flight after the loop, whatever its trip
// count.
//
// Needs select-copies (VIA) and choose-schedule (STAGES). Leaves cp.async copies with ASYNC only.
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"
#include "passes/pipeline/pipeline_internal.h"
#include "passes/tile/loop_rewrite.h"

enum { DEFAULT_STAGES = 2, MAX_STAGES = 16 };

// The number of iterations when it is known, else -1.
static int64_t constant_trips(const tl_op *loop) {
  tl_constant_loop known;
  return tl_loop_is_constant(loop, &known) ? known.trips : -1;
}

// The stages asked for: of the loop, of the plan, or two.
static int64_t stages_of(const tl_op *loop) {
  int64_t stages = tl_op_int(loop, TL_ATTR_STAGES, 0);
  const tl_op *kernel = tl_op_enclosing(loop, TL_OP_KERNEL);
  const tl_attr *plan = kernel ? tl_op_attr(kernel, TL_ATTR_PLAN) : NULL;
  for (int32_t i = 0; stages <= 0 && plan && i < plan->v.dict.len; i++) {
    const tl_dict_entry *entry = &plan->v.dict.entries[i];
    if (entry->kind == TL_ATTRKIND_INT && tl_str_is(tl_str_from(entry->name), "stages")) stages = entry->i;
  }
  if (stages <= 0) stages = DEFAULT_STAGES;
  if (stages > MAX_STAGES) stages = MAX_STAGES;
  // A loop known to be short needs no more buffers than iterations.
  int64_t trips = constant_trips(loop);
  return trips >= 0 && trips < stages ? (trips > 0 ? trips : 1) : stages;
}

static const char *destination_name(tl_op *op) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  const char *name = "tile";
  for (size_t i = 0; i < effects.len; i++) {
    if (effects.items[i].kind != TL_EFFECT_READ) name = tl_buffer_name(effects.items[i].root);
  }
  tl_vec_fini(&effects);
  return name;
}

static void remark_blocked(tl_pass_context *context, const tl_producer *producer) {
  if (producer->by_threads) return;  // it is where it was
  tl_diag *diag =
      tl_diag_report(context->diags, TL_DIAG_PIPELINE_IN_ORDER, producer->op->loc,
                     "the copy into '%s' runs in order: %s", destination_name(producer->op), producer->blocked);
  if (producer->blocked_at.source) tl_diag_add_note(context->diags, diag, producer->blocked_at, "because of this");
}

// Copies from global memory in a pipelined loop that never became asynchronous deserve a word too.
static void remark_synchronous(tl_pass_context *context, tl_op *op) {
  if (op->code == TL_OP_COPY && !tl_is_async_candidate(op) && !tl_op_has(op, TL_ATTR_ASYNC) &&
      tl_buffer_is_global(tl_op_arg(op, TL_GROUP_COPY_src)) && tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_COPY_dst))) {
    tl_diag_report(context->diags, TL_DIAG_PIPELINE_IN_ORDER, op->loc,
                   "the copy into '%s' runs in order: it is no asynchronous copy", destination_name(op));
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) remark_synchronous(context, inner);
  }
}

// Whether no producer before fills the same tile.
static bool is_first_of_tile(const tl_dependence *dependence, size_t p) {
  for (size_t i = 0; i < p; i++)
    if (dependence->producers.items[i].tile == dependence->producers.items[p].tile) return false;
  return true;
}

static void remark_overlapped(tl_pass_context *context, const tl_dependence *dependence, const tl_ring_plan *plan) {
  int64_t stages = plan->stages, ahead = tl_pipeline_ahead(plan, 0);
  tl_strbuf names;
  tl_strbuf_init(&names);
  for (size_t p = 0; p < dependence->producers.len; p++) {
    if (dependence->producers.items[p].blocked || !is_first_of_tile(dependence, p)) continue;
    tl_strbuf_appendf(&names, "%s'%s'", names.len ? ", " : "", tl_buffer_name(dependence->producers.items[p].tile));
  }
  tl_diag_report(context->diags, TL_DIAG_PIPELINE_RING, dependence->loop->loc,
                 "copies into %s run %lld iteration%s ahead, in %lld buffer%s, %zu ring%s", tl_strbuf_c(&names),
                 (long long)ahead, ahead == 1 ? "" : "s", (long long)stages, stages == 1 ? "" : "s",
                 dependence->groups.len, dependence->groups.len == 1 ? "" : "s");
  tl_strbuf_fini(&names);
}

// Whether TMA can bring what the producer copies.
static bool fits_engine(tl_pass_context *context, const tl_producer *producer) {
  if (producer->blocked || producer->by_threads) return false;
  if (producer->op->code == TL_OP_PARALLEL) return !tl_gather_tma_obstacle(context, producer->op);
  return producer->op->code == TL_OP_COPY && tl_op_arg(producer->op, TL_GROUP_COPY_map);
}

// Whether the copies of a group go different ways, of which the threads' one moves so much. A ring each costs a wait an
// iteration, and the thread that starts TMA's copies does that between its own: measured on an H200, a convolution
// whose threads bring half of its bytes loses 2 to 11 %.
static bool is_worth_two_rings(const tl_dependence *dependence, size_t g, const bool *by_engine) {
  enum { SMALL_PART = 4 };
  int64_t all = 0, by_threads = 0;
  if (tl_op_int(dependence->loop, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) == TL_SWITCH_ON) return true;
  // What the engine rounds does not come by cp.async.
  for (size_t p = 0; p < dependence->producers.len; p++)
    if (dependence->producers.items[p].group == (int)g && by_engine[p] &&
        tl_copy_rounds(dependence->producers.items[p].op))
      return true;
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (producer->group != (int)g || !is_first_of_tile(dependence, p)) continue;
    int64_t bytes = tl_type_num_elements(producer->tile->type) * tl_dtype_bits(producer->tile->type->dtype) / 8;
    all += bytes;
    if (!by_engine[p]) by_threads += bytes;
  }
  return by_threads * SMALL_PART <= all;
}

static void leave_engine(tl_pass_context *context, const tl_producer *producer) {
  tl_copy_leave_engine(context->module, producer->op);
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, producer->op->loc,
                 "the copy goes by cp.async: what is waited for with it does not go by TMA");
}

// Puts those of group `g` that come by TMA into a group of their own behind it, which the same statement reads first.
static void split_group(tl_dependence *dependence, size_t g, const bool *by_engine) {
  tl_producer_group twin = dependence->groups.items[g];
  tl_vec_push(&dependence->groups, twin);
  for (size_t i = dependence->groups.len - 1; i > g + 1; i--)
    dependence->groups.items[i] = dependence->groups.items[i - 1];
  dependence->groups.items[g + 1] = twin;
  for (size_t p = 0; p < dependence->producers.len; p++) {
    tl_producer *producer = &dependence->producers.items[p];
    if (producer->blocked) continue;
    if (producer->group > (int)g || (producer->group == (int)g && by_engine[p])) producer->group++;
  }
}

// Which groups TMA fills. A slot tells in one way that it is full: a group whose copies go different ways becomes two,
// or goes by cp.async as a whole. Gathers that TMA brings become copies.
static const bool *find_engine_groups(tl_pass_context *context, tl_dependence *dependence) {
  size_t count = dependence->producers.len;
  bool *by_engine = TL_NEW_ARRAY(&context->scratch, bool, count + 1);
  for (size_t p = 0; p < count; p++) by_engine[p] = fits_engine(context, &dependence->producers.items[p]);
  // What fills one tile goes one way.
  for (size_t p = 0; p < count; p++) {
    for (size_t q = 0; q < count; q++)
      if (dependence->producers.items[p].tile == dependence->producers.items[q].tile) by_engine[p] &= by_engine[q];
  }
  bool *groups = TL_NEW_ARRAY(&context->scratch, bool, 2 * dependence->groups.len);
  for (size_t g = 0; g < dependence->groups.len; g++) {
    bool any[2] = {false, false};
    for (size_t p = 0; p < count; p++)
      if (dependence->producers.items[p].group == (int)g) any[by_engine[p]] = true;
    if (any[0] && any[1] && is_worth_two_rings(dependence, g, by_engine)) split_group(dependence, g, by_engine);
    groups[g] = !any[0];
    for (size_t p = 0; p < count; p++) {
      tl_producer *producer = &dependence->producers.items[p];
      bool gathers = producer->op->code == TL_OP_PARALLEL;
      if (producer->group != (int)g) continue;
      if (groups[g] && gathers) producer->op = tl_gather_by_tma(context, producer->op);
      if (!groups[g] && producer->op->code == TL_OP_COPY && tl_op_arg(producer->op, TL_GROUP_COPY_map))
        leave_engine(context, producer);
    }
  }
  return groups;
}

// What a role of its own was asked for, and TMA does not bring.
static void remark_not_by_engine(tl_pass_context *context, const tl_dependence *dependence, const bool *by_engine) {
  if (tl_op_int(dependence->loop, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) != TL_SWITCH_ON) return;
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (producer->blocked || by_engine[producer->group] || !is_first_of_tile(dependence, p)) continue;
    tl_diag_report(context->diags, TL_DIAG_REMARK_ROLES, producer->op->loc,
                   "the warps that compute bring '%s' themselves: it does not come by TMA",
                   tl_buffer_name(producer->tile));
  }
}

static void leave_in_order(tl_pass_context *context, tl_op *loop, const char *why) {
  tl_pipeline_refuse_overlap(context, loop, why);
  tl_op_remove_attr(loop, TL_ATTR_PIPELINED);
  tl_op_remove_attr(loop, TL_ATTR_STAGES);
  tl_op_remove_attr(loop, TL_ATTR_OVERLAP);
  tl_op_remove_attr(loop, TL_ATTR_SPECIALIZE);
}

static void make_rings(tl_pass_context *context, tl_dependence *dependence, int64_t stages) {
  bool in_order = tl_op_int(dependence->loop, TL_ATTR_OVERLAP, 1) == 0;
  tl_ring_plan plan = {.stages = stages, .by_engine = find_engine_groups(context, dependence)};
  tl_lag_reason reason;
  plan.lag = tl_pipeline_lag(context, dependence, &plan, &reason);
  if (in_order) {
    plan.lag = 0;
    reason.obstacle = "`overlap` is 0";
  }
  remark_overlapped(context, dependence, &plan);
  remark_not_by_engine(context, dependence, plan.by_engine);
  tl_op *fresh = tl_pipeline_emit(context, dependence, &plan);
  if (in_order || plan.lag || !tl_pipeline_rotate(context, fresh)) {
    tl_op_remove_attr(fresh, TL_ATTR_OVERLAP);
    tl_pipeline_remark_lag(context, &reason);
  }
}

static void run_loop(tl_pass_context *context, tl_op *loop) {
  int64_t stages = stages_of(loop);
  if (tl_op_has(loop, TL_ATTR_WHILE)) {
    // Copies must not run ahead of an iteration that may never come.
    tl_diag_report(context->diags, TL_DIAG_PIPELINE_IN_ORDER, loop->loc,
                   "the pipelined loop runs in order: `break` or `exit` may end it before its last iteration");
    leave_in_order(context, loop, "`break` or `exit` may end the loop before its last iteration");
    return;
  }
  tl_dependence dependence;
  tl_dependence_analyze(loop, &dependence);
  for (size_t p = 0; p < dependence.producers.len; p++) {
    if (dependence.producers.items[p].blocked) remark_blocked(context, &dependence.producers.items[p]);
  }
  if (stages > 1) remark_synchronous(context, loop);
  if (dependence.groups.len > 0)
    make_rings(context, &dependence, stages);
  else
    leave_in_order(context, loop, "none of its copies runs ahead");
  tl_dependence_fini(&dependence);
}

// Inner loops first, so that a ring inside is just another statement of the outer loop.
static void collect_loops(tl_op *op, tl_op_list *out) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) collect_loops(inner, out);
  }
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_PIPELINED)) tl_vec_push(out, op);
}

tl_status tl_pass_pipeline(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    tl_op_list loops = {0};
    collect_loops(op, &loops);
    for (size_t i = 0; i < loops.len; i++) run_loop(context, loops.items[i]);
    tl_vec_fini(&loops);
    tl_pipeline_once(context, op);
    tl_pipeline_float_by_hand(context, op);
    tl_pipeline_finish_copies(context, op);
    tl_prune_unused(context->module, op->regions[0]);
  }
  return TL_OK;
}
