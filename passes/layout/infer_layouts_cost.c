// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the memory accesses of a component cost under a layout that it might have.
#include <string.h>

#include "passes/layout/infer_layouts.h"
#include "passes/layout/memory_traffic.h"

// In quarters of the time in which a sector comes from L2: an instruction, a sector that it touches again and finds in
// L1, and a sector that is new. Shared memory moves a line in the time of one sector of those; whatever the places of
// its elements are, a swizzle leaves no more than some passes.
enum { INSTRUCTION_COST = 4, TOUCH_COST = 1, SECTOR_COST = 4, SHARED_COST = 2, MOST_SHARED_PASSES = 4 };
// A loop counts as often as it runs, within limits, so that no loop makes all else look free.
enum { UNKNOWN_TRIPS = 8, MOST_TRIPS = 64, MOST_LOADS = 64 };

typedef struct component_cost {
  const tl_layout *layout;
  int32_t vec;  // neighbours along the last dim that a thread holds
  int64_t cost;
  const tl_op *parallel;
  const tl_op *loads[MOST_LOADS];  // that were counted
  int32_t num_loads;
} component_cost;

static int64_t cost_of(const tl_value *buffer, tl_traffic traffic) {
  if (tl_buffer_is_global(buffer))
    return traffic.instructions * INSTRUCTION_COST + traffic.units * TOUCH_COST + traffic.distinct * SECTOR_COST;
  int64_t most = traffic.instructions * MOST_SHARED_PASSES;
  return (traffic.instructions + (traffic.units < most ? traffic.units : most)) * SHARED_COST;
}

static int32_t elements_of_vector(const tl_value *buffer) {
  return 128 / tl_dtype_bits(buffer->type->dtype);
}

static int32_t lesser(int32_t a, int32_t b) {
  return a < b ? a : b;
}

static void add_box(component_cost *sum, const tl_box *box) {
  int32_t dim = tl_box_contiguous_dim(box), vec = 1;
  if (dim >= 0) {
    int32_t most = lesser(tl_layout_vector(sum->layout, dim), elements_of_vector(box->buffer));
    vec = tl_box_vector(box, most, true);
  }
  sum->cost += cost_of(box->buffer, tl_box_traffic(box, sum->layout, vec));
}

static void add_value(component_cost *sum, tl_value *value) {
  if (value->def && value->def->code == TL_OP_TILE_LOAD) {
    tl_box box = tl_box_source(value->def);
    add_box(sum, &box);
  }
  for (tl_use *use = value->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_TILE_STORE) continue;
    tl_box box = tl_box_destination(use->owner);
    add_box(sum, &box);
  }
}

// Whether a load brings what an earlier one of the parallel has brought.
static bool is_repeated(component_cost *sum, const tl_op *load) {
  for (int32_t i = 0; i < sum->num_loads; i++) {
    const tl_op *other = sum->loads[i];
    if (tl_element_buffer(other) != tl_element_buffer(load)) continue;
    bool is_same = true;
    for (uint32_t d = 0; d < tl_element_rank(load) && is_same; d++) {
      tl_value *a = tl_element_index(load, d), *b = tl_element_index(other, d);
      is_same = a == b || (a->type->kind == TL_TYPE_INDEX && b->type->kind == TL_TYPE_INDEX && tl_prove_equal(a, b));
    }
    if (is_same) return true;
  }
  if (sum->num_loads < MOST_LOADS) sum->loads[sum->num_loads++] = load;
  return false;
}

static void add_element(component_cost *sum, const tl_op *op, int64_t trips) {
  const tl_value *buffer = tl_element_buffer(op);
  if (buffer->type->scope == TL_SCOPE_LOCAL || (op->code == TL_OP_LOAD && is_repeated(sum, op))) return;
  int32_t most = lesser(sum->vec, elements_of_vector(buffer)), repeat = 1;
  int32_t vec = op->code == TL_OP_ATOMIC ? tl_reduction_vector(op, sum->parallel, most)
                                         : tl_element_vector(op, sum->parallel, most, true);
  tl_shifted_load shifted = tl_element_shifted(op, sum->parallel, most);
  if (shifted.vec > vec) vec = shifted.vec;
  if (vec == 1) {
    tl_packed_load packed = tl_element_packed(op, sum->parallel, sum->vec);
    vec = packed.vec;
    repeat = packed.repeat;
  }
  sum->cost += trips * cost_of(buffer, tl_element_traffic(op, sum->parallel, sum->layout, vec, repeat));
}

static int64_t trips_of(const tl_op *loop) {
  tl_constant_loop known;
  if (loop->code != TL_OP_FOR) return 1;
  return tl_loop_is_constant(loop, &known) ? known.trips : UNKNOWN_TRIPS;
}

static void add_block(component_cost *sum, const tl_block *block, int64_t trips) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC) add_element(sum, op, trips);
    int64_t inside = op->num_regions > 0 ? trips_of(op) : 1;
    inside = inside > MOST_TRIPS ? MOST_TRIPS : inside;
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (op->regions[r]) add_block(sum, op->regions[r], trips * inside > MOST_TRIPS ? MOST_TRIPS : trips * inside);
  }
}

// Warps that have elements.
static int64_t busy_warps(const tl_layout *layout) {
  int32_t coord[TL_MAX_RANK], warps = tl_layout_axis_size(layout, TL_AXIS_WARP);
  int64_t busy = 0;
  for (int32_t w = 0; w < warps; w++) busy += tl_layout_coord(layout, 0, 0, w, coord);
  return busy;
}

int64_t tl_layout_cost(tl_layout_graph *graph, int32_t root, const tl_layout *layout) {
  component_cost sum = {.layout = layout};
  sum.vec = layout->rank > 0 ? tl_layout_vector(layout, layout->rank - 1) : 1;
  for (size_t n = 0; n < graph->nodes.len; n++) {
    if (tl_layout_graph_root(graph, (int32_t)n) != root) continue;
    const tl_layout_node *node = &graph->nodes.items[n];
    sum.parallel = node->parallel;
    sum.num_loads = 0;
    if (node->value) add_value(&sum, node->value);
    if (node->parallel) add_block(&sum, node->parallel->regions[0], 1);
  }
  return sum.cost * busy_warps(layout);
}
