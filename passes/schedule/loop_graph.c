// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The graph of a loop's statements: nodes, edges, stages.
#include "passes/schedule/loop_graph.h"

#include "passes/analysis/dependence.h"
#include "passes/analysis/effects.h"

static bool is_wgmma(const tl_op *op) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA;
}

bool tl_loop_is_replicable(const tl_op *op) {
  if (!(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) || op->num_regions > 0) return false;
  if (op->code == TL_OP_SPLAT || op->code == TL_OP_UNDEF_TILE) return true;
  for (uint32_t i = 0; i < op->num_results; i++)
    if (op->results[i].type->kind == TL_TYPE_TILE) return false;
  return true;
}

int tl_loop_node_of(const tl_loop_graph *graph, const tl_op *statement) {
  for (size_t i = 0; i < graph->nodes.len; i++)
    if (graph->nodes.items[i].op == statement && !graph->nodes.items[i].is_end) return (int)i;
  return -1;
}

static void forbid(tl_loop_graph *graph, const tl_op *op, const char *why) {
  if (graph->obstacle) return;
  graph->obstacle = why;
  graph->obstacle_at = op->loc;
}

static void add_edge(tl_loop_graph *graph, int from, int to, int distance, bool is_tied) {
  tl_loop_edge edge = {from, to, distance, is_tied};
  if (from >= 0 && to >= 0) tl_vec_push(&graph->edges, edge);
}

// ---- values

static const tl_block *body_of(const tl_loop_graph *graph) {
  return graph->loop->regions[0];
}

static tl_op *only_user(const tl_value *value) {
  return value->uses && !value->uses->next ? value->uses->owner : NULL;
}

static bool is_part(const tl_value *value) {
  tl_type_kind kind = value->type->kind;
  return kind == TL_TYPE_SLOT || kind == TL_TYPE_TOKEN || kind == TL_TYPE_RING || kind == TL_TYPE_BUFFER;
}

// Edges to node `to` from what makes `value`, `distance` iterations before.
static void add_value(tl_loop_graph *graph, const tl_value *value, int to, int distance) {
  const tl_block *body = body_of(graph);
  if (!value->def) {
    // What the iteration before handed on. Two iterations before is no matter of stages.
    if (value->block != body || value->index == 0 || distance > 0) return;
    add_value(graph, tl_op_operand(tl_block_terminator(body), value->index - 1), to, 1);
    return;
  }
  if (value->def->parent != body) return;
  if (tl_loop_is_replicable(value->def)) {
    for (uint32_t i = 0; i < value->def->num_operands; i++)
      add_value(graph, tl_op_operand(value->def, i), to, distance);
    return;
  }
  int from = tl_loop_node_of(graph, value->def);
  if (from < 0) return;
  const tl_loop_node *node = &graph->nodes.items[from];
  bool continues = node->is_chained && distance == 0 && graph->nodes.items[to].op != node->op;
  add_edge(graph, node->is_gemm && !continues ? node->other : from, to, distance, is_part(value));
}

// Everything that the statement and what is inside uses.
static void add_operands(tl_loop_graph *graph, const tl_op *op, int to) {
  for (uint32_t i = 0; i < op->num_operands; i++) add_value(graph, tl_op_operand(op, i), to, 0);
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) add_operands(graph, inner, to);
}

// ---- rings

typedef struct ring_use {
  const tl_value *ring;
  bool sides;     // acquires, commits or waits, or writes a slot that was acquired
  bool releases;  // a slot
  bool reads;     // a slot that was waited for
  bool commits;
} ring_use;

static void look_at_slot(const tl_value *slot, ring_use *use) {
  if (!slot || tl_op_operand(slot->def, 0) != use->ring) return;
  use->reads |= slot->def->code == TL_OP_RING_WAIT;
  use->sides |= slot->def->code == TL_OP_RING_ACQUIRE;
}

static void find_use(tl_op *op, void *user) {
  ring_use *use = user;
  bool is_side = op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_COMMIT || op->code == TL_OP_RING_WAIT;
  if (is_side) use->sides |= tl_op_operand(op, 0) == use->ring;
  if (op->code == TL_OP_RING_RELEASE) use->releases |= tl_op_operand(tl_op_operand(op, 0)->def, 0) == use->ring;
  tl_effect_list effects = {0};
  tl_effects_of(op, &effects);
  for (size_t i = 0; i < effects.len; i++) look_at_slot(effects.items[i].slot, use);
  tl_vec_fini(&effects);
}

static void find_commit(tl_op *op, void *user) {
  ring_use *use = user;
  use->commits |= op->code == TL_OP_RING_COMMIT && tl_op_operand(op, 0) == use->ring;
}

// All that has to do with a ring is of one stage, and what fills it keeps its order, as do releases behind what reads:
// so the ring sees what it saw before. Its wait comes first, as far as slots are filled ahead.
static void add_ring(tl_loop_graph *graph, const tl_value *ring) {
  int last = -1, wait = -1, first = -1;
  TL_VEC(int) readers = {0};
  for (int n = 0; n < (int)graph->nodes.len; n++) {
    ring_use use = {.ring = ring};
    tl_loop_node *node = &graph->nodes.items[n];
    if (!node->is_end) tl_walk(node->op, find_use, &use);
    if (!use.sides && !use.releases && !use.reads) continue;
    add_edge(graph, first, n, -1, true);
    if (first < 0) first = n;
    if (use.sides && node->op->code == TL_OP_RING_WAIT) {
      for (int i = 0; i < n; i++) tl_walk(graph->nodes.items[i].op, find_commit, &use);
      node->pending = tl_op_int(node->op, TL_ATTR_PENDING, 0);
      if (use.commits && node->pending == 0) add_edge(graph, last, n, 0, true);
      if (use.commits && node->pending > 0) node->pending--;
      wait = n;
    } else if (use.sides) {
      add_edge(graph, last, n, 0, true);
      last = n;
    }
    for (size_t i = 0; i < readers.len && use.releases; i++) add_edge(graph, readers.items[i], n, 0, true);
    int reader = node->is_gemm ? node->other : n;
    if (use.reads) tl_vec_push(&readers, reader);
  }
  for (int n = 0; n < (int)graph->nodes.len && wait >= 0; n++) {
    ring_use use = {.ring = ring};
    if (n == wait || graph->nodes.items[n].is_end) continue;
    tl_walk(graph->nodes.items[n].op, find_use, &use);
    // Unless that one comes first.
    bool fills_first = n < wait && tl_op_int(graph->nodes.items[wait].op, TL_ATTR_PENDING, 0) == 0;
    if (use.sides && !fills_first) add_edge(graph, wait, n, 0, true);
  }
  tl_vec_fini(&readers);
}

static void find_rings(tl_op *op, void *user) {
  TL_VEC(const tl_value *) *rings = user;
  bool is_side = op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_WAIT;
  for (size_t i = 0; i < rings->len && is_side; i++)
    if (rings->items[i] == tl_op_operand(op, 0)) return;
  if (is_side) tl_vec_push(rings, tl_op_operand(op, 0));
}

static void add_rings(tl_loop_graph *graph) {
  TL_VEC(const tl_value *) rings = {0};
  tl_walk(graph->loop, find_rings, &rings);
  for (size_t i = 0; i < rings.len; i++) add_ring(graph, rings.items[i]);
  tl_vec_fini(&rings);
}

// ---- memory

// Whether one of the accesses must not pass the other.
static bool conflict(const tl_effect *a, const tl_effect *b) {
  if (a->root != b->root || (a->slot && b->slot)) return false;  // rings order slots
  return a->kind != TL_EFFECT_READ || b->kind != TL_EFFECT_READ;
}

static bool any_conflict(const tl_effect_list *a, const tl_effect_list *b) {
  for (size_t i = 0; i < a->len; i++)
    for (size_t j = 0; j < b->len; j++)
      if (conflict(&a->items[i], &b->items[j])) return true;
  return false;
}

// Prints and assertions: what others see of their order.
static void find_visible(tl_op *op, void *user) {
  *(bool *)user |= op->code == TL_OP_PRINT || op->code == TL_OP_ASSERT || op->code == TL_OP_ATOMIC;
}

static void add_memory(tl_loop_graph *graph) {
  int count = (int)graph->nodes.len;
  tl_effect_list *effects = tl_xcalloc((size_t)count + 1, sizeof *effects);
  bool *visible = tl_xcalloc((size_t)count + 1, sizeof *visible);
  for (int n = 0; n < count; n++) {
    const tl_loop_node *node = &graph->nodes.items[n];
    if (node->is_end) continue;
    tl_effects_inside(node->op, &effects[n]);
    tl_walk(node->op, find_visible, &visible[n]);
  }
  for (int v = 0; v < count; v++) {
    for (int u = 0; u < v; u++) {
      if (!(visible[u] && visible[v]) && !any_conflict(&effects[u], &effects[v])) continue;
      const tl_loop_node *from = &graph->nodes.items[u], *to = &graph->nodes.items[v];
      add_edge(graph, from->is_gemm ? from->other : u, v, 0, false);
      add_edge(graph, to->is_gemm ? to->other : v, u, 1, false);
    }
  }
  for (int n = 0; n < count; n++) tl_vec_fini(&effects[n]);
  free(effects);
  free(visible);
}

// ---- nodes

// What the graph does not know to move.
static void find_obstacle(tl_op *op, void *user) {
  tl_loop_graph *graph = user;
  bool in_body = op->parent == body_of(graph);
  int64_t order = tl_op_int(op, TL_ATTR_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED);
  switch (op->code) {
    case TL_OP_RING_ACQUIRE:
    case TL_OP_RING_COMMIT:
    case TL_OP_RING_WAIT:
      return;
    case TL_OP_RING_RELEASE:
      if (tl_op_has(op, TL_ATTR_LAG)) forbid(graph, op, "its gemms are in flight from one iteration to the next");
      return;
    case TL_OP_GEMM:
      if (is_wgmma(op) && !in_body) forbid(graph, op, "a product stands under a condition or in an inner loop");
      if (is_wgmma(op) && tl_op_has(op, TL_ATTR_ASYNC))
        forbid(graph, op, "its gemms are in flight from one iteration to the next");
      return;
    case TL_OP_ATOMIC:
      if (order != TL_MEMORY_ORDER_RELAXED) forbid(graph, op, "an atomic orders other accesses");
      return;
    default:
      if (tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC) forbid(graph, op, "threads meet or wait in the loop");
      return;
  }
}

// Whether the gemm may be issued asynchronously: 8-bit sums are promoted in between.
static bool may_fly(const tl_op *op) {
  return is_wgmma(op) && !tl_gemm_is_promoted(op);
}

static bool is_chained(const tl_op *gemm) {
  const tl_op *user = only_user(tl_op_result(gemm, 0));
  return user && user->parent == gemm->parent && user != gemm && may_fly(user) && !tl_op_has(user, TL_ATTR_CLEAR) &&
         tl_op_arg(user, TL_GROUP_GEMM_acc) == tl_op_result(gemm, 0);
}

static void add_nodes(tl_loop_graph *graph) {
  for (tl_op *op = body_of(graph)->first; op; op = op->next) {
    if (op->code == TL_OP_YIELD || tl_loop_is_replicable(op)) continue;
    tl_loop_node node = {.op = op, .other = -1, .pending = -1, .is_gemm = may_fly(op)};
    if (is_wgmma(op) && !node.is_gemm) forbid(graph, op, "the sums of a product are promoted");
    if (node.is_gemm) {
      node.other = (int)graph->nodes.len + 1;
      node.is_chained = is_chained(op);
    }
    tl_vec_push(&graph->nodes, node);
    tl_loop_node end = {.op = op, .is_end = true, .pending = -1, .other = (int)graph->nodes.len - 1};
    if (node.is_gemm) tl_vec_push(&graph->nodes, end);
  }
}

void tl_loop_graph_build(tl_op *loop, tl_loop_graph *out) {
  *out = (tl_loop_graph){.loop = loop};
  for (tl_op *op = body_of(out)->first; op; op = op->next) tl_walk(op, find_obstacle, out);
  add_nodes(out);
  for (int n = 0; n < (int)out->nodes.len; n++) {
    const tl_loop_node *node = &out->nodes.items[n];
    if (node->is_end)
      add_edge(out, node->other, n, 0, true);
    else
      add_operands(out, node->op, n);
  }
  add_rings(out);
  add_memory(out);
}

void tl_loop_graph_fini(tl_loop_graph *graph) {
  tl_vec_fini(&graph->nodes);
  tl_vec_fini(&graph->edges);
}

// ---- stages

bool tl_loop_graph_divide(tl_loop_graph *graph, int node) {
  for (size_t n = 0; n < graph->nodes.len; n++) graph->nodes.items[n].stage = 0;
  if (node >= 0) graph->nodes.items[node].stage = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t e = 0; e < graph->edges.len; e++) {
      const tl_loop_edge *edge = &graph->edges.items[e];
      int *from = &graph->nodes.items[edge->from].stage, *to = &graph->nodes.items[edge->to].stage;
      bool pushes = *from > *to && edge->distance == 0, pulls = *to > *from && edge->is_tied;
      if (!pushes && !pulls && !(edge->is_tied && *from > *to)) continue;
      *from = *to = 1;
      changed = true;
    }
  }
  for (size_t n = 0; n < graph->nodes.len; n++)
    if (graph->nodes.items[n].stage == 0) return true;
  return false;
}
