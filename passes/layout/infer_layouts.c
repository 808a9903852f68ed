// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// infer-layouts: gives every tile value and every parallel a layout.
//
//   %r = gemm %acc, %a, %b … : tile<f32 128x128>      %r = gemm … : tile<f32 128x128, #layout<… mma accumulator …>>
//   %y = parallel extents=[128, 128] { extract %r }  →  %y = parallel extents=[128, 128] layout=#layout<… the same …>
//
// Strict ops (gemm) fix theirs. Values that are carried, yielded or read at plain loop indices share one layout. What
// is left takes a blocked layout after its memory accesses. Where two layouts meet, the tile is converted at the use.
// Needs promote-fragments (tiles are values); keeps everything else.
#include "passes/layout/infer_layouts.h"

#include <stdlib.h>
#include <string.h>

#include "passes/analysis/memory_access.h"

// ---- the graph

static void set_layout(tl_layout_graph *graph, int32_t node, const tl_layout *layout) {
  tl_layout_node *root = &graph->nodes.items[tl_layout_graph_root(graph, node)];
  if (root->has_layout) return;
  root->has_layout = true;
  root->layout = *layout;
}

// Joins two components unless both are fixed and differ: then the use is converted.
static void join(tl_layout_graph *graph, int32_t a, int32_t b) {
  a = tl_layout_graph_root(graph, a);
  b = tl_layout_graph_root(graph, b);
  if (a == b) return;
  tl_layout_node *node_a = &graph->nodes.items[a], *node_b = &graph->nodes.items[b];
  if (node_a->has_layout && node_b->has_layout && !tl_layout_equal(&node_a->layout, &node_b->layout)) return;
  // The smaller number stays the root, so that the outcome does not depend on the order of unions.
  tl_layout_node *keep = a < b ? node_a : node_b, *gone = a < b ? node_b : node_a;
  if (gone->has_layout && !keep->has_layout) {
    keep->has_layout = true;
    keep->layout = gone->layout;
  }
  gone->parent = a < b ? a : b;
}

static bool is_tile(const tl_value *value) {
  return value->type->kind == TL_TYPE_TILE;
}

static void join_values(tl_layout_graph *graph, tl_value *a, tl_value *b) {
  if (!is_tile(a) || !is_tile(b)) return;
  join(graph, tl_layout_graph_node(graph, a, NULL), tl_layout_graph_node(graph, b, NULL));
}

// ---- collecting

static bool is_pinned(const tl_value *value) {
  for (const tl_use *use = value->uses; use; use = use->next)
    if (use->owner->code == TL_OP_GEMM_WAIT) return true;
  return false;
}

// Every use of a splat or an undefined tile gets its own, so that they do not tie unrelated tiles together. What a wait
// pins stays one with what its gemm reads.
static void split_free_tiles(tl_op *op, void *user) {
  tl_module *module = user;
  if (op->code != TL_OP_SPLAT && op->code != TL_OP_UNDEF_TILE) return;
  tl_value *value = tl_op_result(op, 0);
  while (value->uses && value->uses->next && !is_pinned(value)) {
    tl_use *use = value->uses;
    tl_builder builder;
    tl_builder_after(&builder, module, op);
    builder.loc = op->loc;
    tl_value_map map = {0};
    tl_op *copy = tl_op_clone(&builder, op, &map);
    tl_value_map_fini(&map);
    tl_op *owner = use->owner;
    tl_op_set_operand(owner, (uint32_t)(use - owner->operands), tl_op_result(copy, 0));
  }
}

// A gemm without a schedule runs on FMA instructions.
static tl_instruction instruction_of(const tl_op *gemm) {
  const tl_instruction *inst = tl_op_instruction(gemm);
  return inst ? *inst : (tl_instruction){.family = TL_FAMILY_FMA, .m = 1, .n = 1, .k = 1};
}

static tl_gemm_warps warps_of(const tl_layout_graph *graph, const tl_op *gemm) {
  int32_t len = 0;
  const int64_t *warps = tl_op_ints(gemm, TL_ATTR_WARPS, &len);
  return (tl_gemm_warps){.m = warps ? (int32_t)warps[0] : 1,
                         .n = warps ? (int32_t)warps[1] : 1,
                         .k = len > 2 ? (int32_t)warps[2] : 1,
                         .all = graph->threads / 32};
}

static void shape_of(const tl_value *tile, int32_t *out) {
  for (int32_t d = 0; d < tile->type->rank; d++) out[d] = (int32_t)tile->type->dims[d];
}

static tl_layout accumulator_layout(const tl_layout_graph *graph, const tl_op *gemm) {
  int32_t shape[TL_MAX_RANK];
  shape_of(tl_op_arg(gemm, TL_GROUP_GEMM_acc), shape);
  tl_instruction inst = instruction_of(gemm);
  tl_gemm_warps warps = warps_of(graph, gemm);
  if (is_tile(tl_op_arg(gemm, TL_GROUP_GEMM_b))) return tl_instruction_swapped_acc_layout(&inst, shape, warps);
  return tl_instruction_acc_layout(&inst, shape, warps);
}

// The layout that the operand A in registers has.
static tl_layout operand_layout(const tl_layout_graph *graph, const tl_op *gemm) {
  int32_t shape[TL_MAX_RANK];
  shape_of(tl_op_arg(gemm, TL_GROUP_GEMM_a), shape);
  tl_instruction inst = instruction_of(gemm);
  return tl_instruction_a_layout(&inst, shape, warps_of(graph, gemm));
}

// The layout that the operand B in registers has.
static tl_layout second_operand_layout(const tl_layout_graph *graph, const tl_op *gemm) {
  int32_t shape[TL_MAX_RANK];
  shape_of(tl_op_arg(gemm, TL_GROUP_GEMM_b), shape);
  int32_t k_dim = tl_op_has(gemm, TL_ATTR_TRANS_B) ? 1 : 0, run = (int32_t)tl_op_int(gemm, TL_ATTR_B_RUN, 0);
  tl_instruction inst = instruction_of(gemm);
  return tl_instruction_b_layout(&inst, shape, k_dim, run, warps_of(graph, gemm));
}

// A tile that nothing else fixes takes the layout in which a gemm wants it.
static void prefer_operand(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  if (op->code != TL_OP_GEMM || op->num_results == 0 || !is_tile(tl_op_arg(op, TL_GROUP_GEMM_a))) return;
  tl_layout layout = operand_layout(graph, op);
  set_layout(graph, tl_layout_graph_node(graph, tl_op_arg(op, TL_GROUP_GEMM_a), NULL), &layout);
}

// A loop has one layout for what it carries: inside, and as its result. Tied before anything asks for a layout.
static void tie_loops(tl_op *op, void *user) {
  if (op->code != TL_OP_FOR) return;
  for (uint32_t i = 0; i < op->num_results; i++) join_values(user, op->regions[0]->args[i + 1], tl_op_result(op, i));
}

// Gemms in flight, of IR that has been through the pipeline: tiles enter and leave them in the layout of the flight.
static void fix_flights(tl_op *op, void *user) {
  if (op->code == TL_OP_GEMM_BEGIN) {
    set_layout(user, tl_layout_graph_node(user, op->operands[0].value, NULL), tl_op_result(op, 0)->type->layout);
  }
  for (uint32_t i = 0; op->code == TL_OP_GEMM_WAIT && i < op->num_results; i++) {
    set_layout(user, tl_layout_graph_node(user, tl_op_result(op, i), NULL), op->operands[i].value->type->layout);
  }
}

static void fix_gemms(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  if (op->code != TL_OP_GEMM || op->num_results == 0) return;
  tl_layout layout = accumulator_layout(graph, op);
  if (is_tile(tl_op_result(op, 0))) {
    int32_t acc = tl_layout_graph_node(graph, tl_op_arg(op, TL_GROUP_GEMM_acc), NULL);
    int32_t result = tl_layout_graph_node(graph, tl_op_result(op, 0), NULL);
    set_layout(graph, result, &layout);
    set_layout(graph, acc, &layout);
    join(graph, acc, result);
  }
  if (!is_tile(tl_op_arg(op, TL_GROUP_GEMM_b))) return;
  layout = second_operand_layout(graph, op);
  set_layout(graph, tl_layout_graph_node(graph, tl_op_arg(op, TL_GROUP_GEMM_b), NULL), &layout);
}

static void join_control(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (is_tile(tl_op_result(op, i))) tl_layout_graph_node(graph, tl_op_result(op, i), NULL);
  }
  if (op->code == TL_OP_FOR) {
    const tl_block *body = op->regions[0];
    const tl_op *yield = tl_block_terminator(body);
    for (uint32_t i = 0; i < op->num_results; i++) {
      join_values(graph, body->args[i + 1], tl_op_operand(yield, i));
      join_values(graph, body->args[i + 1], tl_op_group_at(op, TL_GROUP_FOR_inits, i));
    }
  } else if (op->code == TL_OP_IF) {
    for (uint32_t r = 0; r < op->num_regions; r++) {
      const tl_op *yield = op->regions[r] ? tl_block_terminator(op->regions[r]) : NULL;
      for (uint32_t i = 0; yield && i < op->num_results; i++) {
        join_values(graph, tl_op_operand(yield, i), tl_op_result(op, i));
      }
    }
  }
}

static bool is_identity(const int32_t *dims, int32_t rank, int32_t full_rank) {
  if (rank != full_rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    if (dims[d] != d) return false;
  }
  return true;
}

static void relate(tl_layout_graph *graph, tl_op *parallel, tl_value *tile, const int32_t *dims) {
  int32_t from = tl_layout_graph_node(graph, NULL, parallel);
  int32_t to = tl_layout_graph_node(graph, tile, NULL);
  if (is_identity(dims, tile->type->rank, (int32_t)parallel->regions[0]->num_args)) {
    join(graph, from, to);
    return;
  }
  tl_layout_projection projection = {.from = from, .to = to, .rank = tile->type->rank};
  memcpy(projection.dims, dims, sizeof(int32_t) * (size_t)projection.rank);
  tl_vec_push(&graph->projections, projection);
}

// Loop dims that walk the dims of result `index` of a parallel.
static void result_dims(const tl_op *parallel, uint32_t index, int32_t *out_dims) {
  const int64_t *maps = tl_op_ints(parallel, TL_ATTR_MAPS, NULL);
  for (uint32_t i = 0; i < index; i++) {
    if (maps) maps += tl_op_result(parallel, i)->type->rank;
  }
  for (int32_t d = 0; d < tl_op_result(parallel, index)->type->rank; d++) out_dims[d] = maps ? (int32_t)maps[d] : d;
}

static void join_parallels(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  int32_t dims[TL_MAX_RANK] = {0};
  if (op->code == TL_OP_REDUCE) {
    tl_layout_relate_reduce(graph, op);
    bool has_places = tl_op_group_len(op, TL_GROUP_REDUCE_src) > 1;
    if (has_places)
      join_values(graph, tl_op_group_at(op, TL_GROUP_REDUCE_src, 0), tl_op_group_at(op, TL_GROUP_REDUCE_src, 1));
  } else if (op->code == TL_OP_SCAN) {
    join_values(graph, tl_op_arg(op, TL_GROUP_SCAN_src), tl_op_result(op, 0));
  } else if (op->code == TL_OP_PARALLEL) {
    tl_layout_graph_node(graph, NULL, op);
    for (uint32_t i = 0; i < op->num_results; i++) {
      result_dims(op, i, dims);
      relate(graph, op, tl_op_result(op, i), dims);
    }
  } else if (op->code == TL_OP_EXTRACT) {
    tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
    if (parallel && tl_extract_dims(op, parallel, dims)) {
      relate(graph, parallel, tl_op_arg(op, TL_GROUP_EXTRACT_tile), dims);
    }
  }
}

// ---- deciding

static int64_t extent_of(const tl_layout_node *node, int32_t dim) {
  return tl_op_ints(node->parallel, TL_ATTR_EXTENTS, NULL)[dim];
}

// The layout of a parallel from that of a tile which it indexes by all of its dims of more than one element.
static bool lift(const tl_layout_graph *graph, const tl_layout_projection *projection, const tl_layout *tile,
                 tl_layout *out) {
  const tl_layout_node *parallel = &graph->nodes.items[projection->from];
  *out = *tile;
  out->rank = (int32_t)parallel->parallel->regions[0]->num_args;
  int64_t covered = 1, all = 1;
  for (int32_t d = 0; d < projection->rank; d++) covered *= extent_of(parallel, projection->dims[d]);
  for (int32_t d = 0; d < out->rank; d++) {
    out->shape[d] = (int32_t)extent_of(parallel, d);
    all *= out->shape[d];
  }
  for (int32_t m = 0; m < out->num_modes; m++) {
    if (out->modes[m].dim != TL_DIM_NONE) out->modes[m].dim = projection->dims[out->modes[m].dim];
  }
  return covered == all;
}

static bool propagate_projections(tl_layout_graph *graph) {
  bool changed = false;
  for (size_t i = 0; i < graph->projections.len; i++) {
    const tl_layout_projection *projection = &graph->projections.items[i];
    const tl_layout_node *from = &graph->nodes.items[tl_layout_graph_root(graph, projection->from)];
    const tl_layout_node *to = &graph->nodes.items[tl_layout_graph_root(graph, projection->to)];
    tl_layout layout;
    if (from->has_layout && !to->has_layout) {
      layout = projection->reduce ? tl_layout_of_reduce(projection->reduce, &from->layout)
                                  : tl_layout_project(&from->layout, projection->dims, projection->rank);
      set_layout(graph, projection->to, &layout);
      changed = true;
    } else if (!projection->reduce && !from->has_layout && to->has_layout &&
               lift(graph, projection, &to->layout, &layout)) {
      set_layout(graph, projection->from, &layout);
      changed = true;
    }
  }
  return changed;
}

static int64_t node_elements(const tl_layout_node *node) {
  if (node->value) return tl_type_num_elements(node->value->type);
  int32_t len = 0;
  const int64_t *extents = tl_op_ints(node->parallel, TL_ATTR_EXTENTS, &len);
  int64_t elements = 1;
  for (int32_t d = 0; d < len; d++) elements *= extents[d];
  return elements;
}

static void decide(tl_layout_graph *graph) {
  while (propagate_projections(graph)) continue;
  tl_walk(graph->scope, prefer_operand, graph);
  for (;;) {
    while (propagate_projections(graph)) continue;
    // The largest undecided component first: smaller tiles are mostly slices of larger ones.
    int32_t best = -1;
    for (size_t n = 0; n < graph->nodes.len; n++) {
      if (graph->nodes.items[n].parent != (int32_t)n || graph->nodes.items[n].has_layout) continue;
      if (best < 0 || node_elements(&graph->nodes.items[n]) > node_elements(&graph->nodes.items[best]))
        best = (int32_t)n;
    }
    if (best < 0) return;
    tl_layout layout = tl_layout_choose_blocked(graph, best);
    set_layout(graph, best, &layout);
  }
}

// ---- writing

static const tl_layout *layout_of(tl_layout_graph *graph, int32_t node) {
  return &graph->nodes.items[tl_layout_graph_root(graph, node)].layout;
}

static void write_types(tl_layout_graph *graph) {
  tl_module *module = graph->context->module;
  for (size_t n = 0; n < graph->nodes.len; n++) {
    const tl_layout *layout = layout_of(graph, (int32_t)n);
    tl_value *value = graph->nodes.items[n].value;
    if (value) {
      value->type = tl_type_tile(module, value->type->dtype, value->type->dims, value->type->rank,
                                 tl_module_layout(module, layout));
    } else {
      tl_op_set_layout(module, graph->nodes.items[n].parallel, TL_ATTR_THREAD_LAYOUT, layout);
    }
  }
  // A result whose component could not take its parallel's layout holds that layout all the same.
  for (size_t n = 0; n < graph->nodes.len; n++) {
    tl_op *parallel = graph->nodes.items[n].parallel;
    for (uint32_t i = 0; parallel && i < parallel->num_results; i++) {
      tl_value *value = tl_op_result(parallel, i);
      int32_t dims[TL_MAX_RANK] = {0};
      result_dims(parallel, i, dims);
      tl_layout layout = *tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
      if (!is_identity(dims, value->type->rank, layout.rank))
        layout = tl_layout_project(&layout, dims, value->type->rank);
      value->type = tl_type_tile(module, value->type->dtype, value->type->dims, value->type->rank,
                                 tl_module_layout(module, &layout));
    }
  }
}

// Makes operand `index` of `op` have `layout`, converting before `before`.
static void require(tl_layout_graph *graph, tl_op *op, uint32_t index, const tl_layout *layout, tl_op *before) {
  tl_value *value = tl_op_operand(op, index);
  if (!is_tile(value) || tl_layout_equal(value->type->layout, layout)) return;
  tl_op_set_operand(op, index, tl_convert_tile(graph->context, graph->kernel, value, layout, before));
}

// The layout that an extract wants of its tile; all extracts of a parallel that want the same share one conversion.
static void require_extract(tl_layout_graph *graph, tl_op *op) {
  int32_t dims[TL_MAX_RANK] = {0}, other_dims[TL_MAX_RANK] = {0};
  tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  if (!parallel || !tl_extract_dims(op, parallel, dims)) return;
  tl_value *tile = tl_op_arg(op, TL_GROUP_EXTRACT_tile);
  int32_t rank = tile->type->rank;
  tl_layout layout = *tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
  if (!is_identity(dims, rank, layout.rank)) layout = tl_layout_project(&layout, dims, rank);
  require(graph, op, 0, &layout, parallel);
  tl_value *converted = tl_op_arg(op, TL_GROUP_EXTRACT_tile);
  if (converted == tile) return;
  for (tl_use *use = tile->uses, *next; use; use = next) {
    next = use->next;
    tl_op *other = use->owner;
    if (other->code != TL_OP_EXTRACT || tl_op_enclosing(other, TL_OP_PARALLEL) != parallel) continue;
    if (!tl_extract_dims(other, parallel, other_dims)) continue;
    if (memcmp(dims, other_dims, sizeof(int32_t) * (size_t)rank) == 0) tl_op_set_operand(other, 0, converted);
  }
}

// Later gemms of the block that read the same tile take its conversion as well, and the waits that end them pin that.
static void share_operand(tl_layout_graph *graph, tl_op *gemm, tl_value *from, tl_value *to) {
  for (tl_op *op = gemm->next; from != to && op; op = op->next) {
    uint32_t pins = op->code == TL_OP_GEMM_WAIT ? tl_op_group_len(op, TL_GROUP_GEMM_WAIT_values) : op->num_operands;
    for (uint32_t i = pins; i < op->num_operands; i++)
      if (tl_op_operand(op, i) == from) tl_op_set_operand(op, i, to);
    if (op->code != TL_OP_GEMM || op->num_results == 0 || tl_op_arg(op, TL_GROUP_GEMM_a) != from) continue;
    tl_layout layout = operand_layout(graph, op);
    if (tl_layout_equal(to->type->layout, &layout)) tl_op_set_operand(op, 1, to);
  }
}

// A in registers where every thread has what the instruction takes from it, else through shared memory, from where
// ldmatrix brings it.
static void require_operand(tl_layout_graph *graph, tl_op *op) {
  tl_value *a = tl_op_arg(op, TL_GROUP_GEMM_a);
  if (!is_tile(a)) return;
  tl_layout layout = operand_layout(graph, op);
  if (!tl_layout_equal(a->type->layout, &layout) && !tl_is_renaming(a->type->layout, &layout)) {
    tl_spill_operand(graph->context, graph->kernel, op);
    return;
  }
  require(graph, op, 1, &layout, op);
  share_operand(graph, op, a, tl_op_operand(op, 1));
  tl_diag_report(graph->context->diags, TL_DIAG_REMARK_LAYOUT, op->loc, "the fragment operand '%s' stays in registers",
                 a->name ? a->name : "tile");
}

static void convert_uses(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  if (op->code == TL_OP_GEMM && op->num_results > 0) {
    tl_value *result = tl_op_result(op, 0);
    if (is_tile(result)) require(graph, op, 0, result->type->layout, op);
    require_operand(graph, op);
    if (is_tile(tl_op_arg(op, TL_GROUP_GEMM_b))) {
      tl_layout layout = second_operand_layout(graph, op);
      require(graph, op, 2, &layout, op);
    }
  } else if (op->code == TL_OP_FOR) {
    tl_op *yield = tl_block_terminator(op->regions[0]);
    for (uint32_t i = 0; i < op->num_results; i++) {
      const tl_value *arg = op->regions[0]->args[i + 1];
      if (!is_tile(arg)) continue;
      require(graph, op, 3 + i, arg->type->layout, op);
      require(graph, yield, i, arg->type->layout, yield);
    }
  } else if (op->code == TL_OP_IF) {
    for (uint32_t r = 0; r < op->num_regions; r++) {
      tl_op *yield = op->regions[r] ? tl_block_terminator(op->regions[r]) : NULL;
      for (uint32_t i = 0; yield && i < op->num_results; i++) {
        if (is_tile(tl_op_result(op, i))) require(graph, yield, i, tl_op_result(op, i)->type->layout, yield);
      }
    }
  } else if (op->code == TL_OP_GEMM_BEGIN) {
    require(graph, op, 0, tl_op_result(op, 0)->type->layout, op);
  } else if (op->code == TL_OP_SCAN) {
    require(graph, op, 0, tl_op_result(op, 0)->type->layout, op);
  } else if (op->code == TL_OP_EXTRACT) {
    require_extract(graph, op);
  }
}

static void infer_scope(tl_pass_context *context, tl_op *kernel, tl_op *scope) {
  tl_layout_graph graph = {.context = context, .kernel = kernel, .scope = scope};
  graph.threads = tl_op_threads(scope);
  tl_walk(scope, split_free_tiles, context->module);
  tl_walk(scope, tie_loops, &graph);
  tl_walk(scope, fix_flights, &graph);
  tl_walk(scope, fix_gemms, &graph);
  tl_walk(scope, join_control, &graph);
  tl_walk(scope, join_parallels, &graph);
  decide(&graph);
  write_types(&graph);
  tl_type_reductions(&graph);
  tl_walk(scope, convert_uses, &graph);
  tl_unify_replicas(context, kernel, scope);
  tl_let_sums_wait(&graph);
  tl_split_reductions(context, kernel, scope);
  tl_split_scans(context, kernel, scope);
  tl_validate_registers(&graph);
  tl_vec_fini(&graph.nodes);
  tl_vec_fini(&graph.projections);
  free(graph.slots);
}

static void infer_kernel(tl_pass_context *context, tl_op *kernel) {
  tl_route_through_shared(context, kernel);
  const tl_op *roles = tl_kernel_roles(kernel);
  if (!roles) infer_scope(context, kernel, kernel);
  for (tl_op *role = roles ? roles->regions[0]->first : NULL; role; role = role->next)
    if (role->code == TL_OP_ROLE) infer_scope(context, kernel, role);
}

static void find_partial(tl_op *op, void *user) {
  if ((op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN) && tl_op_has(op, TL_ATTR_PARTIAL)) *(bool *)user = true;
}

tl_status tl_pass_infer_layouts(tl_pass_context *context) {
  bool is_split = false;
  for (tl_op *op = context->module->body->first; op; op = op->next) tl_walk(op, find_partial, &is_split);
  if (is_split)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the module has layouts: its reductions are taken apart already");
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) infer_kernel(context, op);
  }
  return TL_OK;
}
