// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Orders of a step of an overlapped loop: list scheduling on the graph of its statements.
#include "passes/schedule/cost.h"
#include "passes/schedule/loop_graph.h"

// ---- lengths

enum { LANES = 128, SLOW_LANES = 16, MIN_CLOCKS = 4 };  // of a multiprocessor

static double elements_of(const tl_type *type) {
  if (type->kind != TL_TYPE_TILE) return 0;
  return (double)tl_type_num_elements(type);
}

// Clocks for one element of what a parallel does.
static double element_clocks(const tl_op *parallel) {
  double clocks = 0;
  for (const tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    bool is_free = op->code == TL_OP_EXTRACT || op->code == TL_OP_CONST || op->code == TL_OP_YIELD;
    bool is_slow = op->code == TL_OP_MATH || op->code == TL_OP_MATH2 || op->code == TL_OP_DIV;
    if (!is_free) clocks += is_slow ? 1.0 / SLOW_LANES : 1.0 / LANES;
  }
  return clocks;
}

// Rough: it ranks gemms against one another, and what lies between them.
static double clocks_of(const tl_loop_node *node) {
  if (node->is_end) return 0;
  if (node->is_gemm) return tl_cost_gemm_clocks(node->op);
  if (node->op->code == TL_OP_PARALLEL) {
    const tl_attr *extents = tl_op_attr(node->op, TL_ATTR_EXTENTS);
    double elements = 1;
    for (int32_t d = 0; d < extents->v.ints.len; d++) elements *= (double)extents->v.ints.items[d];
    return MIN_CLOCKS + elements * element_clocks(node->op);
  }
  double elements = 0;
  for (uint32_t i = 0; i < node->op->num_operands; i++) elements += elements_of(tl_op_operand(node->op, i)->type);
  for (uint32_t i = 0; i < node->op->num_results; i++) elements += elements_of(node->op->results[i].type);
  return MIN_CLOCKS + elements / LANES;
}

static double *find_paths(const tl_loop_graph *graph) {
  size_t count = graph->nodes.len;
  double *path = tl_xcalloc(count + 1, sizeof *path);
  for (size_t n = 0; n < count; n++) path[n] = clocks_of(&graph->nodes.items[n]);
  // Within an iteration edges go on in program order but for those from ends: repeat until nothing changes.
  for (size_t round = 0; round < count; round++) {
    bool changed = false;
    for (size_t e = 0; e < graph->edges.len; e++) {
      const tl_loop_edge *edge = &graph->edges.items[e];
      double length = clocks_of(&graph->nodes.items[edge->from]) + path[edge->to];
      if (edge->distance != 0 || path[edge->from] >= length) continue;
      path[edge->from] = length;
      changed = true;
    }
    if (!changed) break;
  }
  return path;
}

// ---- list scheduling

typedef struct scheduler {
  const tl_loop_graph *graph;
  double *path;
  bool *done;
  int *order;
  int len;
} scheduler;

// Whether the edge orders two nodes of one step.
static bool is_in_step(const tl_loop_graph *graph, const tl_loop_edge *edge) {
  return graph->nodes.items[edge->to].stage + edge->distance == graph->nodes.items[edge->from].stage &&
         edge->from != edge->to;
}

static bool is_ready(const scheduler *self, int node) {
  if (self->done[node]) return false;
  for (size_t e = 0; e < self->graph->edges.len; e++) {
    const tl_loop_edge *edge = &self->graph->edges.items[e];
    if (edge->to == node && is_in_step(self->graph, edge) && !self->done[edge->from]) return false;
  }
  return true;
}

static bool holds_fill(const tl_op *op) {
  if (op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_COMMIT) return true;
  if (op->code == TL_OP_PARALLEL) return tl_op_has(op, TL_ATTR_ASYNC);
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      if ((inner->code == TL_OP_COPY && tl_op_has(inner, TL_ATTR_ASYNC)) || holds_fill(inner)) return true;
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map);
}

// Whether nothing in the step needs the node, and its result takes fewer registers than what it reads: before the next
// step starts is early enough, when the registers of what the last step handed on are free.
static bool shrinks_last(const scheduler *self, int node) {
  const tl_op *op = self->graph->nodes.items[node].op;
  if (self->graph->nodes.items[node].is_end || op->code != TL_OP_PARALLEL || op->num_results != 1) return false;
  for (size_t e = 0; e < self->graph->edges.len; e++) {
    const tl_loop_edge *edge = &self->graph->edges.items[e];
    if (edge->from == node && is_in_step(self->graph, edge)) return false;
  }
  int bits = tl_dtype_bits(op->results[0].type->dtype);
  for (const tl_op *inner = op->regions[0]->first; inner; inner = inner->next)
    if (inner->code == TL_OP_EXTRACT && tl_dtype_bits(tl_op_arg(inner, TL_GROUP_EXTRACT_tile)->type->dtype) > bits)
      return true;
  return false;
}

// Gemms come first, then what they may wait for, releases, what fills slots, everything else; ends when nothing else is
// left to do, and last what only takes registers.
enum { RANK_GEMM, RANK_WAIT, RANK_RELEASE, RANK_FILL, RANK_OTHER, RANK_END, RANK_LAST, NUM_RANKS };

static int rank_of(const scheduler *self, int node) {
  const tl_loop_node *n = &self->graph->nodes.items[node];
  if (n->is_gemm) return RANK_GEMM;
  if (n->is_end) return RANK_END;
  if (n->op->code == TL_OP_RING_WAIT) return RANK_WAIT;
  if (n->op->code == TL_OP_RING_RELEASE) return RANK_RELEASE;
  if (holds_fill(n->op)) return RANK_FILL;
  return shrinks_last(self, node) ? RANK_LAST : RANK_OTHER;
}

static bool by_groups(const tl_loop_node *node) {
  return node->op->code == TL_OP_RING_WAIT && !node->is_end &&
         tl_op_int(tl_op_operand(node->op, 0)->def, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_GROUPS;
}

static void put(scheduler *self, int node) {
  self->done[node] = true;
  self->order[self->len++] = node;
}

// An end ends the gemms that were issued before it too: their own ends come first.
static int oldest_end(const scheduler *self, int end) {
  for (int i = 0; i < self->len; i++) {
    const tl_loop_node *node = &self->graph->nodes.items[self->order[i]];
    if (self->order[i] == self->graph->nodes.items[end].other) break;
    if (node->is_gemm && !self->done[node->other] && is_ready(self, node->other)) return node->other;
  }
  return end;
}

static int choose(const scheduler *self) {
  int best = -1, best_rank = NUM_RANKS;
  for (int n = 0; n < (int)self->graph->nodes.len; n++) {
    if (!is_ready(self, n)) continue;
    int rank = rank_of(self, n);
    bool longer = (rank == RANK_GEMM || rank == RANK_WAIT) && best >= 0 && self->path[n] > self->path[best];
    if (rank > best_rank || (rank == best_rank && !longer)) continue;
    best = n;
    best_rank = rank;
  }
  return best >= 0 && best_rank == RANK_END ? oldest_end(self, best) : best;
}

bool tl_loop_graph_order(const tl_loop_graph *graph, int *out) {
  int count = (int)graph->nodes.len;
  scheduler self = {.graph = graph};
  self.order = out;
  self.path = find_paths(graph);
  self.done = tl_xcalloc((size_t)count + 1, sizeof *self.done);
  while (self.len < count) {
    int node = choose(&self);
    if (node < 0) break;
    put(&self, node);
    // One barrier serves all waits for groups that stand together.
    for (int n = 0; by_groups(&graph->nodes.items[node]) && n < count; n++)
      if (by_groups(&graph->nodes.items[n]) && is_ready(&self, n)) put(&self, n);
  }
  free(self.path);
  free(self.done);
  return self.len == count;
}

// ---- the length of a step

double tl_loop_graph_clocks(const tl_loop_graph *graph, const int *order) {
  int count = (int)graph->nodes.len;
  double *ends = tl_xcalloc((size_t)count + 1, sizeof *ends), now = 0, tensor = 0;
  for (int i = 0; i < count; i++) {
    int n = order ? order[i] : i;
    const tl_loop_node *node = &graph->nodes.items[n];
    if (node->is_gemm) {
      tensor = (tensor > now ? tensor : now) + clocks_of(node);
      ends[n] = tensor;
    } else if (node->is_end) {
      now = ends[node->other] > now ? ends[node->other] : now;
    } else {
      now += clocks_of(node);
    }
  }
  free(ends);
  return now;
}
