// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emission of a rotated loop: stage 0 of the first iteration, the steps, stage 1 of the last one (rotate.c says why).
// A value of the old body has one new value in each stage: that of the iteration which the stage runs.

#include "ir/index/affine.h"
#include "passes/pipeline/rotate.h"
#include "passes/tile/loop_rewrite.h"

enum { NUM_STAGES = 2 };

typedef struct emitter {
  tl_pass_context *context;
  tl_module *module;
  const tl_rotation *rotation;
  tl_op *loop;                      // the old one
  tl_value_map values[NUM_STAGES];  // new values of the iteration that the stage runs
  tl_value **flights;               // of a gemm's node that was issued and has not ended
  int *issues;                      // its number among those issued in this part
  int num_issued;
  TL_VEC(tl_value *) tokens;  // of copies whose condition was decided: their commit does not know of them yet
} emitter;

static const tl_loop_node *node_at(const emitter *self, int node) {
  return &self->rotation->graph->nodes.items[node];
}

static void set_value(emitter *self, int stage, const tl_value *from, tl_value *to) {
  tl_value_map_set(&self->values[stage], from, to);
}

static void forget_values(emitter *self) {
  for (int s = 0; s < NUM_STAGES; s++) {
    tl_value_map_fini(&self->values[s]);
    self->values[s] = (tl_value_map){0};
  }
}

// ---- values

static tl_value *value_in(emitter *self, tl_builder *builder, int stage, tl_value *value);

// Copies what only computes; in the first iteration it often folds to a constant.
static tl_value *replicate(emitter *self, tl_builder *builder, int stage, tl_value *value) {
  const tl_op *op = value->def;
  for (uint32_t i = 0; i < op->num_operands; i++) value_in(self, builder, stage, tl_op_operand(op, i));
  tl_op *copy = tl_op_clone(builder, op, &self->values[stage]);
  bool folds = copy->num_results == 1 && op->code != TL_OP_CONST && copy->results[0].type->kind != TL_TYPE_TILE;
  tl_value *folded = folds ? tl_fold_op(builder, copy) : NULL;
  if (folded) {
    set_value(self, stage, value, folded);
    tl_op_erase(copy);
  }
  return tl_value_map_get(&self->values[stage], value);
}

// What a value of the old body, or of outside, is in the iteration that `stage` runs.
static tl_value *value_in(emitter *self, tl_builder *builder, int stage, tl_value *value) {
  const tl_block *body = self->loop->regions[0];
  tl_value *known = tl_value_map_get(&self->values[stage], value);
  if (known != value) return known;
  if (value->def) {
    bool is_copied = value->def->parent == body && tl_loop_is_replicable(value->def);
    return is_copied ? replicate(self, builder, stage, value) : value;
  }
  if (value->block != body) return value;
  // What the iteration before handed on, which the other stage runs.
  tl_value *handed = value_in(self, builder, 1, tl_op_operand(tl_block_terminator(body), value->index - 1));
  set_value(self, stage, value, handed);
  return handed;
}

static void find_values(emitter *self, tl_builder *builder, int stage, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++) value_in(self, builder, stage, tl_op_operand(op, i));
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      find_values(self, builder, stage, inner);
}

// ---- statements

// The accumulator in flight: that of the gemm before in a chain, or a tile. A cleared one may hold anything.
static tl_value *begin_flight(emitter *self, tl_builder *builder, const tl_loop_node *node, bool clears) {
  tl_value *acc = tl_op_arg(node->op, TL_GROUP_GEMM_acc);
  int before = acc->def ? tl_loop_node_of(self->rotation->graph, acc->def) : -1;
  if (before >= 0 && node_at(self, before)->is_chained) return self->flights[before];
  tl_value *tile = clears ? tl_op_result(tl_build(builder, TL_OP_UNDEF_TILE, NULL, &acc->type, 1), 0)
                          : value_in(self, builder, node->stage, acc);
  const tl_type *flight = tl_type_flight(self->module, acc->type);
  return tl_op_result(tl_build(builder, TL_OP_GEMM_BEGIN, (tl_group[]){TL_GROUP_OF(tile)}, &flight, 1), 0);
}

static void emit_gemm(emitter *self, tl_builder *builder, int n) {
  const tl_loop_node *node = node_at(self, n);
  bool clears = tl_gemm_clears(node->op);
  builder->loc = node->op->loc;
  tl_value *flight = begin_flight(self, builder, node, clears);
  find_values(self, builder, node->stage, node->op);
  tl_op *gemm = tl_op_clone(builder, node->op, &self->values[node->stage]);
  // Operand 0 is the accumulator.
  tl_op_set_operand(gemm, 0, flight);
  tl_op_result(gemm, 0)->type = flight->type;
  tl_op_set_unit(self->module, gemm, TL_ATTR_ASYNC);
  if (clears) tl_op_set_unit(self->module, gemm, TL_ATTR_CLEAR);
  self->flights[n] = tl_op_result(gemm, 0);
  self->issues[n] = self->num_issued++;
}

// Waits for the gemm of the end `n`; those issued later stay in flight.
static void emit_end(emitter *self, tl_builder *builder, int n) {
  const tl_loop_node *node = node_at(self, n);
  const tl_loop_node *gemm = node_at(self, node->other);
  tl_value *flight = self->flights[node->other], *a = tl_op_arg(flight->def, TL_GROUP_GEMM_a);
  const tl_type *tile = tl_type_landed(self->module, flight->type);
  tl_group groups[] = {{&flight, !gemm->is_chained}, {&a, a->type->kind == TL_TYPE_TILE}};
  builder->loc = node->op->loc;
  tl_op *wait = tl_build(builder, TL_OP_GEMM_WAIT, groups, &tile, !gemm->is_chained);
  tl_op_set_int(self->module, wait, TL_ATTR_PENDING, self->num_issued - 1 - self->issues[node->other]);
  if (gemm->is_chained) return;
  tl_value *sum = tl_op_result(node->op, 0);
  tl_op_result(wait, 0)->name = sum->name;
  set_value(self, node->stage, sum, tl_op_result(wait, 0));
}

// An `if` without results whose condition is a constant in this iteration, as whether there is one to fill a slot for:
// what its region does.
static bool emit_decided(emitter *self, tl_builder *builder, const tl_loop_node *node) {
  int64_t taken;
  if (node->op->code != TL_OP_IF || node->op->num_results > 0) return false;
  tl_value *condition = value_in(self, builder, node->stage, tl_op_arg(node->op, TL_GROUP_IF_condition));
  if (!tl_value_const_int(condition, &taken)) return false;
  for (const tl_op *op = node->op->regions[taken ? 0 : 1]->first; op && op->code != TL_OP_YIELD; op = op->next) {
    find_values(self, builder, node->stage, op);
    const tl_op *copy = tl_op_clone(builder, op, &self->values[node->stage]);
    for (uint32_t i = 0; i < copy->num_results; i++)
      if (copy->results[i].type->kind == TL_TYPE_TOKEN) tl_vec_push(&self->tokens, tl_op_result(copy, i));
  }
  return true;
}

static void add_tokens(emitter *self, tl_op *commit) {
  TL_VEC(tl_value *) all = {0};
  for (uint32_t i = 0; i < tl_op_group_len(commit, TL_GROUP_RING_COMMIT_tokens); i++)
    tl_vec_push(&all, tl_op_group_at(commit, TL_GROUP_RING_COMMIT_tokens, i));
  for (size_t i = 0; i < self->tokens.len; i++)
    if (!self->tokens.items[i]->uses) tl_vec_push(&all, self->tokens.items[i]);
  tl_op_set_group(self->module, commit, TL_GROUP_RING_COMMIT_tokens, all.items, (uint32_t)all.len);
  tl_vec_clear(&self->tokens);
  tl_vec_fini(&all);
}

static void emit_statement(emitter *self, tl_builder *builder, const tl_loop_node *node) {
  if (emit_decided(self, builder, node)) return;
  find_values(self, builder, node->stage, node->op);
  tl_op *copy = tl_op_clone(builder, node->op, &self->values[node->stage]);
  if (node->pending >= 0) tl_op_set_int(self->module, copy, TL_ATTR_PENDING, node->pending);
  if (copy->code == TL_OP_RING_COMMIT) add_tokens(self, copy);
}

static void emit_turn(emitter *self, tl_builder *builder, int step) {
  builder->loc = self->loop->loc;
  tl_op_set_int(self->module, tl_build(builder, TL_OP_TURN, NULL, NULL, 0), TL_ATTR_TURN, step);
}

// Issues of the order that belong to the stages.
static int count_issues(const emitter *self, int first, int last) {
  int count = 0;
  for (size_t n = 0; n < self->rotation->graph->nodes.len; n++) {
    const tl_loop_node *node = node_at(self, (int)n);
    count += node->is_gemm && node->stage >= first && node->stage <= last;
  }
  return count;
}

// The nodes of the stages from `first` to `last`.
static void emit_nodes(emitter *self, tl_builder *builder, int first, int last) {
  // Warpgroups take turns at issuing the gemms of a step; what is left after the last one needs none.
  int issues = self->rotation->turns && first == 0 ? count_issues(self, first, last) : 0;
  self->num_issued = 0;
  for (size_t i = 0; i < self->rotation->graph->nodes.len; i++) {
    int n = self->rotation->order[i];
    const tl_loop_node *node = node_at(self, n);
    if (node->stage < first || node->stage > last) continue;
    if (node->is_gemm && issues && self->num_issued == 0) emit_turn(self, builder, TL_TURN_TAKE);
    if (node->is_gemm)
      emit_gemm(self, builder, n);
    else if (node->is_end)
      emit_end(self, builder, n);
    else
      emit_statement(self, builder, node);
    if (node->is_gemm && issues && self->num_issued == issues) emit_turn(self, builder, TL_TURN_PASS);
  }
}

// ---- the loop

static tl_value **carried_in(emitter *self, tl_builder *builder, int stage) {
  size_t count = self->rotation->carried.len;
  tl_value **out = TL_NEW_ARRAY(&self->context->scratch, tl_value *, count + 1);
  for (size_t i = 0; i < count; i++) out[i] = value_in(self, builder, stage, self->rotation->carried.items[i]);
  return out;
}

static tl_value **emit_first(emitter *self, tl_builder *builder) {
  const tl_block *old = self->loop->regions[0];
  set_value(self, 0, old->args[0], tl_build_index(builder, 0));
  for (uint32_t i = 1; i < old->num_args; i++)
    set_value(self, 0, old->args[i], tl_op_group_at(self->loop, TL_GROUP_FOR_inits, i - 1));
  emit_nodes(self, builder, 0, 0);
  tl_value **inits = carried_in(self, builder, 0);
  forget_values(self);
  return inits;
}

static tl_op *emit_steps(emitter *self, tl_builder *builder, tl_value *const *inits) {
  const tl_block *old = self->loop->regions[0];
  uint32_t count = (uint32_t)self->rotation->carried.len;
  const tl_type **types = TL_NEW_ARRAY(&self->context->scratch, const tl_type *, count + 1);
  for (uint32_t i = 0; i < count; i++) types[i] = inits[i]->type;
  builder->loc = self->loop->loc;
  tl_group groups[] = {TL_GROUP_OF(tl_build_index(builder, 1)),
                       TL_GROUP_OF(tl_op_arg(self->loop, TL_GROUP_FOR_upper)),
                       TL_GROUP_OF(tl_build_index(builder, 1)),
                       {inits, count}};
  tl_op *fresh = tl_build(builder, TL_OP_FOR, groups, types, count);
  tl_op_copy_attrs(self->module, fresh, self->loop);
  tl_block *body = fresh->regions[0];
  tl_value *k = tl_block_add_arg(self->module, body, old->args[0]->type, old->args[0]->name);
  tl_builder inner;
  tl_builder_at_end(&inner, self->module, body);
  inner.loc = self->loop->loc;
  set_value(self, 0, old->args[0], k);
  set_value(self, 1, old->args[0], tl_index_sub(&inner, k, tl_build_index(&inner, 1)));
  for (uint32_t i = 0; i < count; i++) {
    const tl_value *carried = self->rotation->carried.items[i];
    set_value(self, 1, carried, tl_block_add_arg(self->module, body, types[i], carried->name));
    tl_op_result(fresh, i)->name = carried->name;
  }
  emit_nodes(self, &inner, 0, 1);
  inner.loc = self->loop->loc;
  tl_value **next = carried_in(self, &inner, 0);
  tl_build_yield(&inner, next, count);
  forget_values(self);
  return fresh;
}

// What the old loop's results are after stage 1 of the last iteration.
static tl_value **emit_last(emitter *self, tl_builder *builder, const tl_op *steps) {
  const tl_block *old = self->loop->regions[0];
  tl_value *upper = tl_op_arg(self->loop, TL_GROUP_FOR_upper);
  set_value(self, 1, old->args[0], tl_index_sub(builder, upper, tl_build_index(builder, 1)));
  for (uint32_t i = 0; i < self->rotation->carried.len; i++)
    set_value(self, 1, self->rotation->carried.items[i], tl_op_result(steps, i));
  emit_nodes(self, builder, 1, 1);
  uint32_t count = self->loop->num_results;
  tl_value **results = TL_NEW_ARRAY(&self->context->scratch, tl_value *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    results[i] = value_in(self, builder, 1, tl_op_operand(tl_block_terminator(old), i));
  forget_values(self);
  return results;
}

// The loop as it is, in the order of a step.
static tl_op *emit_in_place(emitter *self, tl_builder *builder) {
  tl_op *loop = self->loop;
  const tl_block *old = loop->regions[0];
  uint32_t count = loop->num_results;
  const tl_type **types = TL_NEW_ARRAY(&self->context->scratch, const tl_type *, count + 1);
  tl_value **values = TL_NEW_ARRAY(&self->context->scratch, tl_value *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    types[i] = tl_op_result(loop, i)->type;
    values[i] = tl_op_group_at(loop, TL_GROUP_FOR_inits, i);
  }
  tl_group groups[] = {TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_lower)),
                       TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_upper)),
                       TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_step)),
                       {values, count}};
  tl_op *fresh = tl_build(builder, TL_OP_FOR, groups, types, count);
  tl_op_copy_attrs(self->module, fresh, loop);
  tl_builder inner;
  tl_builder_at_end(&inner, self->module, fresh->regions[0]);
  for (uint32_t i = 0; i < old->num_args; i++)
    set_value(self, 0, old->args[i],
              tl_block_add_arg(self->module, fresh->regions[0], old->args[i]->type, old->args[i]->name));
  emit_nodes(self, &inner, 0, 0);
  inner.loc = loop->loc;
  for (uint32_t i = 0; i < count; i++)
    values[i] = value_in(self, &inner, 0, tl_op_operand(tl_block_terminator(old), i));
  tl_build_yield(&inner, values, count);
  forget_values(self);
  for (uint32_t i = 0; i < count; i++) {
    tl_op_result(fresh, i)->name = tl_op_result(loop, i)->name;
    tl_value_replace_uses(tl_op_result(loop, i), tl_op_result(fresh, i));
  }
  tl_op_erase(loop);
  return fresh;
}

// The condition that there is an iteration; NULL where that is known.
static tl_op *emit_guard(emitter *self, tl_builder *builder) {
  tl_op *loop = self->loop;
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *trips = tl_op_arg(loop, TL_GROUP_FOR_upper);
  if (tl_prove_lt(lower, trips)) return NULL;
  const tl_type **types = TL_NEW_ARRAY(&self->context->scratch, const tl_type *, loop->num_results + 1);
  tl_value **inits = TL_NEW_ARRAY(&self->context->scratch, tl_value *, loop->num_results + 1);
  for (uint32_t i = 0; i < loop->num_results; i++) {
    types[i] = tl_op_result(loop, i)->type;
    inits[i] = tl_op_group_at(loop, TL_GROUP_FOR_inits, i);
  }
  tl_group groups[] = {TL_GROUP_OF(tl_build_cmp(builder, TL_CMP_LT, lower, trips))};
  tl_op *guard = tl_build(builder, TL_OP_IF, groups, types, loop->num_results);
  tl_op_set_unit(self->module, guard, TL_ATTR_UNIFORM);
  tl_builder inner;
  tl_builder_at_end(&inner, self->module, guard->regions[1]);
  inner.loc = loop->loc;
  tl_build_yield(&inner, inits, loop->num_results);
  return guard;
}

static tl_op *emit_rotated(emitter *self, tl_builder *builder) {
  tl_op *loop = self->loop;
  tl_op *guard = emit_guard(self, builder);
  if (guard) tl_builder_at_end(builder, self->module, guard->regions[0]);
  tl_value **inits = emit_first(self, builder);
  tl_op *steps = emit_steps(self, builder, inits);
  tl_value **results = emit_last(self, builder, steps);
  builder->loc = loop->loc;
  if (guard) tl_build_yield(builder, results, loop->num_results);
  for (uint32_t i = 0; i < loop->num_results; i++) {
    tl_value *result = tl_op_result(loop, i), *with = guard ? tl_op_result(guard, i) : results[i];
    if (guard) with->name = result->name;
    tl_value_replace_uses(result, with);
  }
  tl_op_erase(loop);
  return steps;
}

tl_op *tl_rotate_emit(tl_pass_context *context, const tl_rotation *rotation) {
  tl_op *loop = rotation->graph->loop;
  emitter self = {.context = context, .module = context->module, .rotation = rotation, .loop = loop};
  self.flights = TL_NEW_ARRAY(&context->scratch, tl_value *, rotation->graph->nodes.len);
  self.issues = TL_NEW_ARRAY(&context->scratch, int, rotation->graph->nodes.len);
  tl_builder builder;
  tl_builder_before(&builder, self.module, loop);
  builder.loc = loop->loc;
  tl_op *steps = rotation->overlaps ? emit_rotated(&self, &builder) : emit_in_place(&self, &builder);
  tl_vec_fini(&self.tokens);
  return steps;
}
