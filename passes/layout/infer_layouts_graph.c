// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The graph of tiles and parallels that share layouts: its nodes, and the components that they have become.
#include <stdlib.h>

#include "passes/layout/infer_layouts.h"

int32_t tl_layout_graph_root(tl_layout_graph *graph, int32_t node) {
  while (graph->nodes.items[node].parent != node) node = graph->nodes.items[node].parent;
  return node;
}

static size_t slot_of(const tl_layout_graph *graph, const void *key) {
  size_t slot = ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u % graph->num_slots;
  while (graph->slots[slot]) {
    const tl_layout_node *node = &graph->nodes.items[graph->slots[slot] - 1];
    if (node->value == key || node->parallel == key) break;
    slot = (slot + 1) % graph->num_slots;
  }
  return slot;
}

static void grow_slots(tl_layout_graph *graph) {
  free(graph->slots);
  graph->num_slots = graph->num_slots ? graph->num_slots * 2 : 256;
  graph->slots = tl_xcalloc(graph->num_slots, sizeof *graph->slots);
  for (size_t n = 0; n < graph->nodes.len; n++) {
    const tl_layout_node *node = &graph->nodes.items[n];
    const void *key = node->value ? (const void *)node->value : (const void *)node->parallel;
    graph->slots[slot_of(graph, key)] = (int32_t)n + 1;
  }
}

int32_t tl_layout_graph_node(tl_layout_graph *graph, tl_value *value, tl_op *parallel) {
  if (graph->nodes.len * 2 >= graph->num_slots) grow_slots(graph);
  size_t slot = slot_of(graph, value ? (const void *)value : (const void *)parallel);
  if (graph->slots[slot]) return graph->slots[slot] - 1;
  int32_t node = (int32_t)graph->nodes.len;
  tl_layout_node fresh = {.value = value, .parallel = parallel, .parent = node};
  tl_vec_push(&graph->nodes, fresh);
  graph->slots[slot] = node + 1;
  return node;
}
