// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gemms in flight: a gemm that adds to what the loop carries need not have ended before the next iteration starts.
//
//   for … inits(%acc) do(%x) {               %f = gemm_begin %acc
//     %w = ring_wait …                       for … inits(%f) do(%x) {
//     %y = gemm %x, A@%w, B@%w                 %w = ring_wait …
//     ring_release %w                   ⇒      %y = gemm %x, A@%w, B@%w {async}
//     yield %y                                 gemm_wait {pending = 1}
//   }                                          ring_release %w {lag = 1}
//                                              yield %y
//                                            }
//                                            %r = gemm_wait %f_out {pending = 0}
//
// So the matrix unit has the next product before it has finished the last one. The slot that the last one reads is free
// one iteration later. Copies by threads start at the top of an iteration and run one iteration less ahead; TMA fills
// the slot behind the release that frees it, as many iterations ahead as without.
#include "ir/index/affine.h"
#include "passes/analysis/effects.h"
#include "passes/pipeline/pipeline_internal.h"
#include "passes/schedule/cost.h"

enum {
  MIN_STAGES = 2,  // one that is read, one that is filled
  MAX_GEMMS = 7    // in flight at once: what a wait can leave
};

static bool is_wgmma(const tl_op *op) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA;
}

static tl_op *only_user(const tl_value *value) {
  return value->uses && !value->uses->next ? value->uses->owner : NULL;
}

static bool travels(const tl_dependence *dependence, const tl_value *root) {
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (!producer->blocked && producer->tile == root) return true;
  }
  return false;
}

// Why the gemm reads what the loop may write before it has ended, or NULL.
static const char *operand_obstacle(const tl_dependence *dependence, tl_op *gemm) {
  const char *obstacle = NULL;
  tl_effect_list effects = {0};
  tl_effects_of(gemm, &effects);
  for (size_t i = 0; i < effects.len && !obstacle; i++) {
    const tl_value *root = effects.items[i].root;
    if (!travels(dependence, root) && tl_effects_write(dependence->loop, root))
      obstacle = "an operand is written in the loop, and not by copies that run ahead";
  }
  tl_vec_fini(&effects);
  return obstacle;
}

// Why the next iteration has to find the gemm's result, or NULL. The accumulator goes from the loop's argument through
// such gemms to the yield.
static const char *chain_obstacle(const tl_op *loop, tl_op *gemm) {
  const tl_block *body = loop->regions[0];
  const tl_value *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc);
  if (gemm->parent != body) return "it stands under a condition or in an inner loop";
  if (tl_op_has(gemm, TL_ATTR_CLEAR)) return "it does not add to what the loop carries";
  if (tl_gemm_is_promoted(gemm)) return "its sums are promoted";
  if (tl_op_arg(gemm, TL_GROUP_GEMM_a)->type->kind != TL_TYPE_BUFFER) return "A is in registers";
  bool carried = acc->block == body && acc->index > 0,
       chained = acc->def && is_wgmma(acc->def) && acc->def->parent == body;
  if ((!carried && !chained) || only_user(acc) != gemm) return "something else uses its accumulator";
  const tl_op *user = only_user(tl_op_result(gemm, 0));
  bool is_last = user && user->code == TL_OP_YIELD && user->parent == body;
  if (!is_last && !(user && is_wgmma(user) && tl_op_arg(user, TL_GROUP_GEMM_acc) == tl_op_result(gemm, 0)))
    return "something else in the loop uses its result";
  // The chain ends where it started.
  const tl_value *start = acc;
  while (start->def && is_wgmma(start->def)) start = tl_op_arg(start->def, TL_GROUP_GEMM_acc);
  if (is_last && (start->block != body || tl_op_operand(user, start->index - 1) != tl_op_result(gemm, 0)))
    return "the loop carries its result to another place";
  return NULL;
}

static const char *gemm_obstacle(const tl_dependence *dependence, tl_op *gemm) {
  const char *obstacle = chain_obstacle(dependence->loop, gemm);
  return obstacle ? obstacle : operand_obstacle(dependence, gemm);
}

typedef struct gemm_list {
  TL_VEC(tl_op *) items;
} gemm_list;

static void find_wgmma(tl_op *op, void *user) {
  if (is_wgmma(op)) tl_vec_push(&((gemm_list *)user)->items, op);
}

// Why slots that are free one iteration later are too few, or NULL: copies by threads then run one iteration less
// ahead, and must come before they are read all the same.
static const char *stages_obstacle(tl_pass_context *context, const tl_dependence *dependence, const gemm_list *gemms,
                                   const tl_ring_plan *plan) {
  bool by_engine = true;
  double clocks = 0;
  for (size_t g = 0; g < dependence->groups.len; g++) by_engine &= plan->by_engine[g];
  if (plan->stages < MIN_STAGES) return "there is one stage";
  for (size_t i = 0; i < gemms->items.len; i++) clocks += tl_cost_gemm_clocks(gemms->items.items[i]);
  // Blocks take turns at the tensor cores.
  clocks *=
      (double)(plan->stages - 2) * (double)tl_cost_blocks_at_once(tl_op_enclosing(dependence->loop, TL_OP_KERNEL));
  if (by_engine || clocks >= TL_COST_COPY_LATENCY) return NULL;
  return tl_arena_printf(&context->scratch,
                         "copies would start %d clocks of the tensor cores before they are read, and take %d",
                         (int)clocks, TL_COST_COPY_LATENCY);
}

int64_t tl_pipeline_lag(tl_pass_context *context, const tl_dependence *dependence, const tl_ring_plan *plan,
                        tl_lag_reason *out) {
  gemm_list gemms = {0};
  tl_walk(dependence->loop, find_wgmma, &gemms);
  const char *obstacle = stages_obstacle(context, dependence, &gemms, plan);
  const tl_op *at = gemms.items.len ? gemms.items.items[0] : NULL;
  if (gemms.items.len > MAX_GEMMS) obstacle = "there are more than 7 in the loop";
  // A gemm that is waited for at once would wait for the others, too.
  for (size_t i = 0; i < gemms.items.len && !obstacle; i++) {
    at = gemms.items.items[i];
    obstacle = gemm_obstacle(dependence, gemms.items.items[i]);
  }
  *out = (tl_lag_reason){.is_asked = at != NULL, .obstacle = obstacle};
  if (at) out->at = at->loc;
  tl_vec_fini(&gemms.items);
  return at && !obstacle ? 1 : 0;
}

void tl_pipeline_remark_lag(tl_pass_context *context, const tl_lag_reason *reason) {
  if (reason->is_asked && reason->obstacle)
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, reason->at, "the gemm is waited for at once: %s",
                   reason->obstacle);
  else if (reason->is_asked)
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, reason->at, "the gemm is waited for one iteration later");
}

// ---- the rewrite

// Lets the chain of gemms behind argument `index` of the loop fly; returns the last of them.
static tl_op *float_chain(tl_module *module, tl_op *loop, uint32_t index) {
  tl_value *value = loop->regions[0]->args[index];
  const tl_type *flight = tl_type_flight(module, value->type);
  tl_op *gemm = NULL;
  for (tl_op *user = only_user(value); user && is_wgmma(user); user = only_user(value)) {
    gemm = user;
    value->type = flight;
    tl_op_set_unit(module, gemm, TL_ATTR_ASYNC);
    value = tl_op_result(gemm, 0);
  }
  value->type = flight;
  return gemm;
}

static void begin_chain(tl_module *module, tl_op *loop, uint32_t index, const tl_type *flight) {
  tl_builder builder;
  tl_builder_before(&builder, module, loop);
  builder.loc = loop->loc;
  uint32_t operand = 3 + index - 1;
  tl_group groups[] = {TL_GROUP_OF(tl_op_operand(loop, operand))};
  tl_op_set_operand(loop, operand, tl_op_result(tl_build(&builder, TL_OP_GEMM_BEGIN, groups, &flight, 1), 0));
}

// The tile that result `index` was, behind the loop.
static void end_chain(tl_module *module, tl_op *loop, uint32_t index, const tl_type *flight) {
  tl_value *result = tl_op_result(loop, index - 1);
  tl_builder builder;
  tl_builder_after(&builder, module, loop);
  builder.loc = loop->loc;
  const tl_type *tile = result->type;
  result->type = flight;
  tl_op *wait = tl_build(&builder, TL_OP_GEMM_WAIT, (tl_group[]){TL_GROUP_EMPTY, TL_GROUP_EMPTY}, &tile, 1);
  tl_op_set_int(module, wait, TL_ATTR_PENDING, 0);
  tl_value_replace_uses(result, tl_op_result(wait, 0));
  tl_op_result(wait, 0)->name = result->name;
  tl_op_set_group(module, wait, TL_GROUP_GEMM_WAIT_values, &result, 1);
}

// The loop and what begins and ends its chains, under the condition that there is an iteration, unless that is known:
// where accumulators came to the wait on two ways, of which one never multiplied, ptxas would serialise (C7515).
static void guard_loop(tl_pass_context *context, tl_op *loop, tl_op *first, tl_op *last, tl_value *const *inits) {
  tl_module *module = context->module;
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *trips = tl_op_arg(loop, TL_GROUP_FOR_upper);
  if (tl_prove_lt(lower, trips)) return;
  tl_value **values = TL_NEW_ARRAY(&context->scratch, tl_value *, loop->num_results);
  const tl_type **types = TL_NEW_ARRAY(&context->scratch, const tl_type *, loop->num_results);
  for (uint32_t i = 0; i < loop->num_results; i++) {
    tl_value *result = tl_op_result(loop, i);
    bool flies = result->type->kind == TL_TYPE_FLIGHT;
    values[i] = flies ? tl_op_result(only_user(result), 0) : result;
    types[i] = values[i]->type;
  }
  tl_builder builder;
  tl_builder_before(&builder, module, first);
  builder.loc = loop->loc;
  tl_group groups[] = {TL_GROUP_OF(tl_build_cmp(&builder, TL_CMP_LT, lower, trips))};
  tl_op *guard = tl_build(&builder, TL_OP_IF, groups, types, loop->num_results);
  tl_op_set_unit(module, guard, TL_ATTR_UNIFORM);
  for (uint32_t i = 0; i < loop->num_results; i++) {
    tl_op_result(guard, i)->name = values[i]->name;
    tl_value_replace_uses(values[i], tl_op_result(guard, i));
  }
  for (tl_op *op = first, *next; op; op = next) {
    next = op == last ? NULL : op->next;
    tl_op_move_to_end(op, guard->regions[0]);
  }
  for (int r = 0; r < 2; r++) {
    tl_builder_at_end(&builder, module, guard->regions[r]);
    builder.loc = loop->loc;
    tl_build_yield(&builder, r == 0 ? values : inits, loop->num_results);
  }
}

static bool reads_slot(tl_op *gemm, const tl_value *slot) {
  bool found = false;
  tl_effect_list effects = {0};
  tl_effects_of(gemm, &effects);
  for (size_t i = 0; i < effects.len; i++) found |= effects.items[i].slot == slot;
  tl_vec_fini(&effects);
  return found;
}

static bool acquires(const tl_op *op, const tl_value *ring) {
  if (op->code == TL_OP_RING_ACQUIRE) return tl_op_operand(op, 0) == ring;
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      if (acquires(inner, ring)) return true;
  return false;
}

// The engine fills the slot that `release` frees: it waits for it behind the release.
static void follow_release(tl_op *loop, tl_op *release) {
  const tl_value *ring = tl_op_operand(tl_op_operand(release, 0)->def, 0);
  if (tl_op_int(ring->def, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) != TL_SIGNAL_BARRIERS) return;
  for (tl_op *op = loop->regions[0]->first; op; op = op->next) {
    if (op->num_regions == 0 || !acquires(op, ring)) continue;
    tl_op_move_before(op, release->next);
    return;
  }
}

// The slots that the gemms read are released behind `wait`, those of the iteration before.
static void delay_releases(tl_module *module, tl_op *loop, tl_op *wait) {
  for (tl_op *op = loop->regions[0]->first, *next; op; op = next) {
    next = op->next;
    if (op->code != TL_OP_RING_RELEASE || tl_op_has(op, TL_ATTR_LAG)) continue;
    bool read = false;
    for (tl_op *gemm = loop->regions[0]->first; gemm; gemm = gemm->next)
      read |= is_wgmma(gemm) && reads_slot(gemm, tl_op_operand(op, 0));
    if (!read) continue;
    tl_op_set_int(module, op, TL_ATTR_LAG, 1);
    tl_op_move_before(op, wait->next);
    follow_release(loop, op);
  }
}

// Makes the chains fly; the ops from the first gemm_begin to the last gemm_wait, the loop between them.
static void float_chains(tl_module *module, tl_op *loop, tl_op **out_first, tl_op **out_last) {
  *out_first = *out_last = NULL;
  for (uint32_t i = 1; i < loop->regions[0]->num_args; i++) {
    const tl_value *arg = loop->regions[0]->args[i];
    tl_op *user = only_user(arg);
    if (!user || !is_wgmma(user) || tl_op_arg(user, TL_GROUP_GEMM_acc) != arg) continue;
    const tl_type *flight = tl_type_flight(module, arg->type);
    begin_chain(module, loop, i, flight);
    float_chain(module, loop, i);
    end_chain(module, loop, i, flight);
    if (!*out_first) {
      *out_first = loop->prev;
      *out_last = loop->next;
    }
  }
}

void tl_pipeline_float(tl_pass_context *context, tl_op *loop) {
  tl_module *module = context->module;
  tl_op *first, *end, *last = NULL;
  int64_t gemms = 0;
  tl_value **inits = TL_NEW_ARRAY(&context->scratch, tl_value *, loop->num_results);
  for (uint32_t i = 0; i < loop->num_results; i++) inits[i] = tl_op_group_at(loop, TL_GROUP_FOR_inits, i);
  float_chains(module, loop, &first, &end);
  for (tl_op *op = loop->regions[0]->first; op; op = op->next) {
    if (!is_wgmma(op)) continue;
    last = op;
    gemms++;
  }
  tl_builder builder;
  tl_builder_after(&builder, module, last);
  builder.loc = last->loc;
  tl_op *wait = tl_build(&builder, TL_OP_GEMM_WAIT, (tl_group[]){TL_GROUP_EMPTY, TL_GROUP_EMPTY}, NULL, 0);
  tl_op_set_int(module, wait, TL_ATTR_PENDING, gemms);
  delay_releases(module, loop, wait);
  guard_loop(context, loop, first, end, inits);
}

// ---- by hand

static void find_by_hand(tl_op *op, void *user) {
  bool is_asked = op->code == TL_OP_GEMM && tl_op_has(op, TL_ATTR_BY_HAND);
  if (is_asked && tl_op_has(op, TL_ATTR_ASYNC)) tl_op_remove_attr(op, TL_ATTR_BY_HAND);  // it flies already
  if (is_asked && !tl_op_has(op, TL_ATTR_ASYNC)) tl_vec_push(&((gemm_list *)user)->items, op);
}

// Why the gemm is waited for at once, or NULL: all of a loop fly, or none, since one that is waited for at once ends
// the others, too. What its operands are meanwhile is the author's matter.
static const char *hand_obstacle(const tl_op *loop, tl_op *gemm) {
  gemm_list all = {0};
  const char *obstacle = is_wgmma(gemm) ? NULL : "it is no wgmma";
  if (!loop) obstacle = "no loop carries its sums";
  if (loop) tl_walk((tl_op *)loop, find_wgmma, &all);
  if (all.items.len > MAX_GEMMS) obstacle = "there are more than 7 in the loop";
  for (size_t i = 0; i < all.items.len && !obstacle; i++) {
    obstacle = chain_obstacle(loop, all.items.items[i]);
    if (!tl_op_has(all.items.items[i], TL_ATTR_BY_HAND)) obstacle = "another one of the loop is waited for at once";
  }
  tl_vec_fini(&all.items);
  return obstacle;
}

static void float_loop(tl_pass_context *context, tl_op *loop) {
  tl_op *first, *last;
  tl_value **inits = TL_NEW_ARRAY(&context->scratch, tl_value *, loop->num_results);
  for (uint32_t i = 0; i < loop->num_results; i++) inits[i] = tl_op_group_at(loop, TL_GROUP_FOR_inits, i);
  float_chains(context->module, loop, &first, &last);
  if (first) guard_loop(context, loop, first, last, inits);
}

void tl_pipeline_float_by_hand(tl_pass_context *context, tl_op *kernel) {
  gemm_list gemms = {0};
  tl_op_list loops = {0};
  tl_walk(kernel, find_by_hand, &gemms);
  for (size_t i = 0; i < gemms.items.len; i++) {
    tl_op *gemm = gemms.items.items[i], *loop = tl_op_enclosing(gemm, TL_OP_FOR);
    const char *obstacle = hand_obstacle(loop, gemm);
    bool known = loops.len > 0 && loops.items[loops.len - 1] == loop;
    if (!obstacle && !known) tl_vec_push(&loops, loop);
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, gemm->loc,
                   obstacle ? "the gemm is waited for at once: %s" : "the gemm is in flight until its author waits%s",
                   obstacle ? obstacle : "");
  }
  for (size_t i = 0; i < gemms.items.len; i++) tl_op_remove_attr(gemms.items.items[i], TL_ATTR_BY_HAND);
  for (size_t i = 0; i < loops.len; i++) float_loop(context, loops.items[i]);
  tl_vec_fini(&gemms.items);
  tl_vec_fini(&loops);
}
