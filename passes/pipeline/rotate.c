// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops whose iterations overlap: a product that needs another one of its iteration, through work that no matrix unit
// does, runs beside the next iteration's.
//
//   for %k = 0 to %n inits(%o) do(%x) {      %s = gemm Q, K@0 …; %p = softmax %s …
//     %s = gemm Q, K@k                       for %k = 1 to %n inits(%o', %p) do(%x', %pv) {
//     %p = softmax %s                          %s = gemm Q, K@k {async}
//     %y = gemm (scale %x), %p, V@k      ⇒     %y = gemm %x', %pv, V@(k - 1) {async}
//     yield %y                                 gemm_wait %s {pending = 1}; %p = softmax %s
//   }                                          gemm_wait %y {pending = 0} pins(%pv); yield (scale %y), %p }
//                                            %y = gemm …, V@(n - 1)
//
// The graph of the statements (passes/schedule/loop_graph.h) says what may move, for whatever the loop computes. No
// sum changes its order.
#include "passes/pipeline/rotate.h"
#include "ir/layout/layout.h"
#include "passes/pipeline/assign_roles.h"
#include "passes/pipeline/pipeline_internal.h"
#include "passes/schedule/cost.h"

// ---- values that steps hand on

static void need_before(tl_rotation *self, tl_value *value);

static void add_carried(tl_rotation *self, tl_value *value) {
  for (size_t i = 0; i < self->carried.len; i++)
    if (self->carried.items[i] == value) return;
  tl_vec_push(&self->carried, value);
}

static const tl_block *body_of(const tl_rotation *self) {
  return self->graph->loop->regions[0];
}

// The value of the iteration before is needed: in stage 1, or as what that iteration handed on.
static void need_before(tl_rotation *self, tl_value *value) {
  if (!value->def) {
    if (value->block == body_of(self) && value->index > 0) add_carried(self, value);
    return;
  }
  if (value->def->parent != body_of(self)) return;
  if (tl_loop_is_replicable(value->def)) {
    for (uint32_t i = 0; i < value->def->num_operands; i++) need_before(self, tl_op_operand(value->def, i));
    return;
  }
  int node = tl_loop_node_of(self->graph, value->def);
  if (self->graph->nodes.items[node].stage == 0) add_carried(self, value);
}

// The value of the step's own iteration is needed, in stage 0.
static void need_now(tl_rotation *self, tl_value *value) {
  const tl_block *body = body_of(self);
  if (!value->def && value->block == body && value->index > 0)
    need_before(self, tl_op_operand(tl_block_terminator(body), value->index - 1));
  if (!value->def || value->def->parent != body || !tl_loop_is_replicable(value->def)) return;
  for (uint32_t i = 0; i < value->def->num_operands; i++) need_now(self, tl_op_operand(value->def, i));
}

static void need_operands(tl_rotation *self, const tl_op *op, int stage) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (stage == 1)
      need_before(self, tl_op_operand(op, i));
    else
      need_now(self, tl_op_operand(op, i));
  }
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) need_operands(self, inner, stage);
}

// False: something would have to be carried that no loop carries.
static bool find_carried(tl_rotation *self) {
  tl_vec_clear(&self->carried);
  const tl_op *yield = tl_block_terminator(body_of(self));
  for (size_t n = 0; n < self->graph->nodes.len; n++)
    need_operands(self, self->graph->nodes.items[n].op, self->graph->nodes.items[n].stage);
  for (uint32_t i = 0; yield && i < yield->num_operands; i++) need_before(self, tl_op_operand(yield, i));
  for (size_t i = 0; i < self->carried.len; i++) need_now(self, self->carried.items[i]);
  for (size_t i = 0; i < self->carried.len; i++) {
    tl_type_kind kind = self->carried.items[i]->type->kind;
    if (kind != TL_TYPE_TILE && kind != TL_TYPE_SCALAR && kind != TL_TYPE_INDEX) return false;
  }
  return true;
}

// ---- registers

enum { MAX_COPIES = 3 };  // iterations of which a value may be alive at once

// Live registers at each place of a step.
typedef struct pressure {
  const tl_rotation *rotation;
  int *place;      // of each node
  int32_t *lives;  // at each place
  int count;
} pressure;

static int32_t registers_of(const tl_type *type) {
  if (type->kind != TL_TYPE_TILE || !type->layout) return 0;
  return (tl_layout_num_registers(type->layout) * tl_dtype_bits(type->dtype) + 31) / 32;
}

static void occupy(pressure *self, int32_t registers, int from, int to) {
  for (int p = from; p < to; p++) self->lives[p] += registers;
}

// Places up to which copy 0, 1, … of a value made by `from` is needed.
static void reach(const pressure *self, const tl_value *value, int from_stage, int *ends, int depth) {
  const tl_block *body = body_of(self->rotation);
  for (const tl_use *use = value->uses; use; use = use->next) {
    tl_op *user = use->owner;
    while (user->parent != body && user->parent->parent) user = user->parent->parent;
    if (user->parent != body) continue;
    if (user->code == TL_OP_YIELD) {
      for (uint32_t i = 0; i < user->num_operands && depth < MAX_COPIES - 1; i++)
        if (tl_op_operand(user, i) == value) reach(self, body->args[i + 1], from_stage, ends, depth + 1);
      continue;
    }
    int node = tl_loop_node_of(self->rotation->graph, user);
    if (node < 0) continue;
    const tl_loop_node *at = &self->rotation->graph->nodes.items[node];
    int steps = at->stage + depth - from_stage, until = self->place[at->is_gemm ? at->other : node];
    // A sum goes on in its own registers.
    if (at->is_gemm && tl_op_arg(at->op, TL_GROUP_GEMM_acc) == value) until = self->place[node];
    if (steps < 0 || steps >= MAX_COPIES) continue;
    for (int s = 0; s < steps; s++) ends[s] = self->count;
    if (ends[steps] < until) ends[steps] = until;
  }
}

static void add_result(pressure *self, int n) {
  const tl_loop_node *node = &self->rotation->graph->nodes.items[n];
  for (uint32_t i = 0; i < node->op->num_results && !node->is_end; i++) {
    const tl_value *value = &node->op->results[i];
    int ends[MAX_COPIES] = {self->place[node->is_gemm ? node->other : n]};
    reach(self, value, node->stage, ends, 0);
    for (int s = 0; s < MAX_COPIES; s++) occupy(self, registers_of(value->type), s == 0 ? self->place[n] : 0, ends[s]);
  }
}

// 32-bit registers of a thread that tiles need at most.
static int32_t count_registers(const tl_rotation *rotation) {
  int count = (int)rotation->graph->nodes.len;
  pressure self = {.rotation = rotation, .count = count};
  self.place = tl_xcalloc((size_t)count + 1, sizeof *self.place);
  self.lives = tl_xcalloc((size_t)count + 1, sizeof *self.lives);
  for (int i = 0; i < count; i++) self.place[rotation->order[i]] = i;
  for (int n = 0; n < count; n++) add_result(&self, n);
  int32_t most = 0;
  for (int i = 0; i < count; i++) most = self.lives[i] > most ? self.lives[i] : most;
  free(self.place);
  free(self.lives);
  return most;
}

enum { MAX_REGISTERS = 255, FILE_REGISTERS = 65536 };

// Registers of a thread that tiles may take. Threads that start no copies need 24 for all else, of 240 and of 160
// (H200, attention: no spills).
static int32_t register_limit(const tl_rotation *rotation, tl_pass_context *context) {
  enum { OTHERS_IN_ROLES = 24 };
  tl_op *kernel = tl_op_enclosing(rotation->graph->loop, TL_OP_KERNEL);
  int64_t in_roles = rotation->in_roles ? tl_roles_math_registers(context, kernel) : 0;
  if (in_roles) return (int32_t)in_roles - OTHERS_IN_ROLES;
  int64_t threads = tl_op_int(kernel, TL_ATTR_THREADS, 128), each = FILE_REGISTERS / threads / 8 * 8;
  return (int32_t)(each < MAX_REGISTERS ? each : MAX_REGISTERS) - TL_COST_BASE_REGISTERS;
}

// Whether warps of their own fill the loop's rings.
static bool has_roles(tl_pass_context *context, const tl_loop_graph *graph) {
  bool demanded = false, left_open = false;
  for (size_t n = 0; n < graph->nodes.len; n++) {
    const tl_op *op = graph->nodes.items[n].op;
    if (op->code != TL_OP_RING_WAIT) continue;
    const tl_op *ring = tl_op_operand(op, 0)->def;
    if (tl_op_int(ring, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) != TL_SIGNAL_BARRIERS) continue;
    int64_t wish = tl_op_int(ring, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO);
    demanded |= wish == TL_SWITCH_ON;
    left_open |= wish == TL_SWITCH_AUTO;
  }
  return demanded || (left_open && tl_roles_expected(context, tl_op_enclosing(graph->loop, TL_OP_KERNEL)));
}

// ---- choice

static bool is_used_by(const tl_loop_graph *graph, int from, int to, bool *seen) {
  if (from == to) return true;
  if (seen[from]) return false;
  seen[from] = true;
  for (size_t e = 0; e < graph->edges.len; e++) {
    const tl_loop_edge *edge = &graph->edges.items[e];
    if (edge->from == from && edge->distance == 0 && is_used_by(graph, edge->to, to, seen)) return true;
  }
  return false;
}

// Whether the gemm needs the end of another one of its iteration.
static bool is_second(const tl_loop_graph *graph, int gemm) {
  bool found = false;
  bool *seen = tl_xcalloc(graph->nodes.len + 1, sizeof *seen);
  for (int n = 0; n < (int)graph->nodes.len && !found; n++) {
    const tl_loop_node *node = &graph->nodes.items[n];
    found = node->is_end && node->other != gemm && !graph->nodes.items[node->other].is_chained &&
            is_used_by(graph, n, gemm, seen);
  }
  free(seen);
  return found;
}

enum { MAX_IN_FLIGHT = 7, IN_ORDER = -2, NO_GEMM = -1 };
static const double LEAST_GAIN = 0.05;

// Divides the loop at a gemm, or (NO_GEMM) only orders its statements. The clocks of a step; less than 0: it cannot be,
// and `why` says why.
static double try_division(tl_rotation *self, tl_pass_context *context, int gemm, const char **why) {
  tl_loop_graph *graph = self->graph;
  self->overlaps = gemm != NO_GEMM;
  *why = "the next iteration needs all of it";
  if (!tl_loop_graph_divide(graph, gemm) || !tl_loop_graph_order(graph, self->order)) return -1;
  *why = "part of it cannot be handed to the next iteration";
  if (!find_carried(self)) return -1;
  *why = "its tiles would take too many registers";
  if (count_registers(self) > register_limit(self, context)) return -1;
  *why = NULL;
  return tl_loop_graph_clocks(graph, self->order);
}

// The gemm with which the overlapped loop is shortest; NO_GEMM: a better order alone; IN_ORDER: as it is. With
// `demanded` one with a gemm, also where that gains nothing. `why` says what stood in the way of the last one that
// might have been better.
static int find_best(tl_rotation *self, tl_pass_context *context, bool demanded, const char **why) {
  double best_clocks = tl_loop_graph_clocks(self->graph, NULL);
  int best = IN_ORDER;
  bool may_overlap = !*why;
  for (int n = demanded ? 0 : NO_GEMM; n < (int)self->graph->nodes.len; n++) {
    if (n >= 0 && (!self->graph->nodes.items[n].is_gemm || !is_second(self->graph, n) || !may_overlap)) continue;
    const char *obstacle;
    double clocks = try_division(self, context, n, &obstacle);
    bool is_better = clocks < best_clocks * (1 - LEAST_GAIN) || (demanded && best == IN_ORDER);
    if (clocks >= 0 && is_better) {
      best = n;
      best_clocks = clocks;
    } else if (n >= 0 && best < 0) {
      *why = obstacle ? obstacle : "that would gain less than 5 %";
    }
  }
  return best;
}

static bool counts_up(const tl_op *loop) {
  int64_t lower, step;
  return tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_lower), &lower) && lower == 0 &&
         tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) && step == 1;
}

static int count_gemms(const tl_loop_graph *graph) {
  int count = 0;
  for (size_t n = 0; n < graph->nodes.len; n++) count += graph->nodes.items[n].is_gemm;
  return count;
}

static void remark(tl_pass_context *context, const tl_loop_graph *graph, int best, const char *why) {
  const tl_op *at = best >= 0 ? graph->nodes.items[best].op : graph->loop;
  bool has_second = false;
  for (int n = 0; n < (int)graph->nodes.len; n++) has_second |= graph->nodes.items[n].is_gemm && is_second(graph, n);
  if (best >= 0)
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, at->loc, "the gemm runs beside the next iteration");
  else if (best == NO_GEMM)
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, at->loc,
                   "statements of an iteration run beside its products");
  if (best < 0 && has_second && why)
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, at->loc, "iterations do not overlap: %s", why);
}

void tl_pipeline_refuse_overlap(tl_pass_context *context, const tl_op *loop, const char *why) {
  if (tl_op_int(loop, TL_ATTR_OVERLAP, 0) != 1) return;
  tl_diag_report(context->diags, TL_DIAG_OVERLAP, loop->loc, "iterations of this loop cannot overlap: %s", why);
}

// Why no gemm of a loop runs on its own.
static const char *no_products(tl_pass_context *context) {
  if (context->target->features & TL_FEATURE_WGMMA) return "no product in it runs on its own, as those of wgmma do";
  return tl_arena_printf(&context->scratch, "products run on their own where there is wgmma, which %s lacks",
                         context->target->name);
}

bool tl_pipeline_rotate(tl_pass_context *context, tl_op *loop) {
  tl_loop_graph graph;
  tl_loop_graph_build(loop, &graph);
  tl_rotation rotation = {.graph = &graph, .in_roles = has_roles(context, &graph)};
  rotation.order = TL_NEW_ARRAY(&context->scratch, int, graph.nodes.len + 1);
  int gemms = count_gemms(&graph), best = IN_ORDER;
  bool demanded = tl_op_int(loop, TL_ATTR_OVERLAP, 0) == 1;
  const char *why = graph.obstacle;
  if (!why && gemms == 0) why = no_products(context);
  if (!why && gemms > MAX_IN_FLIGHT) why = "there are more than 7 products in it";
  if (!why) {
    if (!counts_up(loop)) why = "its iterations are not counted";
    best = find_best(&rotation, context, demanded, &why);
  }
  if (gemms > 0) remark(context, &graph, best, why);
  if (best < 0) tl_pipeline_refuse_overlap(context, loop, why ? why : "no product needs another one of its iteration");
  tl_op_remove_attr(loop, TL_ATTR_OVERLAP);
  const char *none;
  if (best != IN_ORDER && try_division(&rotation, context, best, &none) >= 0) {
    enum { WARPGROUP = 128 };
    // Warps that also fill rings have neither registers to spare nor, waiting for each other, turns to take: on an H200
    // attention loses 10 % by operands in registers then, and gains 5 % in roles.
    bool alone = rotation.overlaps && rotation.in_roles;
    rotation.turns = alone && tl_op_threads(loop) >= 2 * WARPGROUP;
    if (alone) tl_promote_operands(context, &graph, register_limit(&rotation, context) - count_registers(&rotation));
    tl_split_masks(context, tl_rotate_emit(context, &rotation));
  }
  tl_vec_fini(&rotation.carried);
  tl_loop_graph_fini(&graph);
  return best != IN_ORDER;
}
