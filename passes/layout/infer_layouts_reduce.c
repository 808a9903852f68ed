// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions in infer-layouts. A result has the layout of its source without the axes: what the lanes and warps along
// them held becomes replication. Where several warps hold parts of one result, the reduction is taken apart:
//
//   %m = reduce %x reduction=max axes=[1] : tile<f32 4>
//   → %p = reduce %x reduction=max axes=[1] partial : tile<f32 4x8>      one part a warp
//     tile_store %p → %scratch; %q = tile_load %scratch : tile<f32 4x8>  every thread gets the parts of its rows
//     %m = reduce %q reduction=max axes=[1] : tile<f32 4>                in registers
//
// With many elements left the threads share the final reduction out, and its result is converted to the layout wanted.
// Barriers and shared offsets are then those of an ordinary tile. Each reduction has its own scratch tile, so that one
// barrier each is enough where several follow one another; where none needs another's result all parts are stored
// before the first are loaded, and one barrier serves them all.
#include "ir/reduction.h"
#include "passes/analysis/dependence.h"
#include "passes/layout/infer_layouts.h"
#include "passes/tile/loop_rewrite.h"

tl_layout tl_layout_of_reduce(const tl_op *reduce, const tl_layout *source) {
  bool reduced[TL_MAX_RANK];
  tl_reduce_axes(reduce, reduced);
  return tl_layout_reduce(source, reduced, tl_op_has(reduce, TL_ATTR_KEEPDIMS), tl_reduce_within_of(reduce));
}

void tl_layout_relate_reduce(tl_layout_graph *graph, tl_op *reduce) {
  for (uint32_t i = 0; i < reduce->num_results; i++) {
    tl_layout_projection projection = {.reduce = reduce};
    projection.from = tl_layout_graph_node(graph, tl_op_group_at(reduce, TL_GROUP_REDUCE_src, 0), NULL);
    projection.to = tl_layout_graph_node(graph, tl_op_result(reduce, i), NULL);
    tl_vec_push(&graph->projections, projection);
  }
}

static void write_type(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  if (op->code != TL_OP_REDUCE) return;
  const tl_layout *source = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0)->type->layout;
  if (source == NULL) return;
  tl_layout layout = tl_layout_of_reduce(op, source);
  tl_module *module = graph->context->module;
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *result = tl_op_result(op, i);
    result->type = tl_type_tile(module, result->type->dtype, result->type->dims, result->type->rank,
                                tl_module_layout(module, &layout));
  }
}

void tl_type_reductions(tl_layout_graph *graph) {
  tl_walk(graph->scope, write_type, graph);
}

// ---- warps

tl_value *tl_exchange_alloc(tl_pass_context *context, tl_op *kernel, const tl_type *type, tl_loc loc) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, kernel->regions[0]->first);
  builder.loc = loc;
  const tl_type *buffer = tl_type_buffer(context->module, TL_SCOPE_SHARED, type->dtype, type->dims, type->rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &buffer, 1);
  tl_op_set_str(context->module, alloc, TL_ATTR_NAME, TL_STR("parts"));
  return tl_op_result(alloc, 0);
}

static tl_op *build_reduce(tl_builder *builder, const tl_op *like, tl_value *const *sources, uint32_t num_sources,
                           const tl_type *const *types) {
  tl_group groups[] = {{sources, num_sources}, TL_GROUP_EMPTY};
  tl_op *op = tl_build(builder, TL_OP_REDUCE, groups, types, like->num_results);
  tl_op_copy_attrs(builder->module, op, like);
  return op;
}

// A layout of the parts that spreads the elements over all threads, with the parts of each in registers.
static tl_layout share_out(const tl_type *result, int32_t parts_rank, int32_t axis, int32_t parts, int32_t threads) {
  int32_t shape[TL_MAX_RANK], order[TL_MAX_RANK];
  for (int32_t d = 0; d < result->rank; d++) {
    shape[d] = (int32_t)result->dims[d];
    order[d] = result->rank - 1 - d;
  }
  tl_layout layout = tl_layout_blocked(shape, result->rank, order, 1, threads);
  layout.rank = parts_rank;
  layout.shape[axis] = parts;
  for (int32_t m = layout.num_modes; m > 0; m--) layout.modes[m] = layout.modes[m - 1];
  layout.num_modes++;
  layout.modes[0] = (tl_layout_mode){.axis = TL_AXIS_REGISTER, .size = parts, .dim = axis, .stride = 1};
  return layout;
}

// Of the parts of an exchange that joins others: all of a meeting lie in shared memory at once.
enum { MAX_TOGETHER_BYTES = 2048 };

typedef struct split_walk {
  tl_pass_context *context;
  tl_op *kernel;
  tl_op_list stores, loads;
} split_walk;

// Stores of parts go to `stores`, the first load of each exchange to `loads`.
static void split_reduce(split_walk *walk, tl_op *op) {
  tl_pass_context *context = walk->context;
  tl_op *kernel = walk->kernel;
  tl_module *module = context->module;
  const tl_type *source = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0)->type;
  bool reduced[TL_MAX_RANK], keep = tl_op_has(op, TL_ATTR_KEEPDIMS);
  tl_reduce_axes(op, reduced);
  int32_t parts = tl_layout_parts(source->layout, reduced, TL_WITHIN_WARP), axis = 0;
  if (parts == 1 || tl_op_has(op, TL_ATTR_PARTIAL)) return;
  int64_t dims[TL_MAX_RANK + 1];
  int32_t rank = tl_reduced_dims(source->dims, source->rank, reduced, keep, TL_WITHIN_WARP, parts, dims);
  tl_layout partial = tl_layout_reduce(source->layout, reduced, keep, TL_WITHIN_WARP);
  tl_layout gathered = tl_layout_gather_parts(source->layout, reduced, keep, &axis);
  tl_layout natural = *op->results[0].type->layout;
  if (tl_layout_num_registers(&gathered) > TL_MAX_GATHERED_REGISTERS) {
    int32_t threads = 32 * tl_layout_axis_size(source->layout, TL_AXIS_WARP);
    gathered = share_out(op->results[0].type, rank, axis, parts, threads);
    bool along_parts[TL_MAX_RANK] = {false};
    along_parts[axis] = true;
    natural = tl_layout_reduce(&gathered, along_parts, keep, TL_WITHIN_BLOCK);
  }
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  const tl_type *types[2];
  tl_value *sources[2], *tiles[2];
  uint32_t num_sources = tl_op_group_len(op, TL_GROUP_REDUCE_src);
  for (uint32_t i = 0; i < num_sources && i < 2; i++) sources[i] = tl_op_group_at(op, TL_GROUP_REDUCE_src, i);
  for (uint32_t i = 0; i < op->num_results; i++) {
    types[i] = tl_type_tile(module, op->results[i].type->dtype, dims, rank, tl_module_layout(module, &partial));
  }
  tl_op *first = build_reduce(&builder, op, sources, num_sources, types);
  tl_op_set_unit(module, first, TL_ATTR_PARTIAL);
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *scratch = tl_exchange_alloc(context, kernel, types[i], op->loc);
    tl_build_tile_store(&builder, tl_op_result(first, i), scratch);
    bool is_small =
        (int64_t)tl_dtype_bytes(types[i]->dtype, (uint64_t)tl_type_num_elements(types[i])) <= MAX_TOGETHER_BYTES;
    if (is_small) tl_vec_push(&walk->stores, op->prev);
    const tl_type *type = tl_type_tile(module, types[i]->dtype, dims, rank, tl_module_layout(module, &gathered));
    tiles[i] = tl_build_tile_load(&builder, scratch, type);
    if (i == 0) tl_vec_push(&walk->loads, tiles[i]->def);
    const tl_type *result = op->results[i].type;
    types[i] = tl_type_tile(module, result->dtype, result->dims, result->rank, tl_module_layout(module, &natural));
  }
  tl_op *last = build_reduce(&builder, op, tiles, op->num_results, types);
  tl_op_set_ints(module, last, TL_ATTR_AXES, &(int64_t){axis}, 1);
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *value = tl_op_result(last, i);
    value->name = tl_op_result(op, i)->name;
    const tl_layout *wanted = op->results[i].type->layout;
    if (!tl_layout_equal(&natural, wanted)) value = tl_convert_tile(context, kernel, value, wanted, op);
    tl_value_replace_uses(tl_op_result(op, i), value);
  }
  tl_op_erase(op);
}

// ---- one meeting for several

static bool is_in(const tl_op_list *ops, const tl_op *op) {
  for (size_t i = 0; op && i < ops->len; i++)
    if (ops->items[i] == op) return true;
  return false;
}

static bool uses_any(const tl_op *op, const tl_op_list *defs) {
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (is_in(defs, tl_op_operand(op, i)->def)) return true;
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      if (uses_any(inner, defs)) return true;
  return false;
}

// Whether nothing but its operands says when the op runs.
static bool is_free_of_order(const tl_op *op, const tl_op_list *stores) {
  if (op->code == TL_OP_REDUCE || is_in(stores, op)) return true;
  if (op->code != TL_OP_PARALLEL) return op->num_regions == 0 && (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE);
  for (const tl_op *inner = op->regions[0]->first; inner; inner = inner->next)
    if (inner->code != TL_OP_YIELD && !(tl_op_info_of(inner->code)->flags & TL_OPFLAG_PURE)) return false;
  return op->num_results > 0;
}

static bool orders_threads(const tl_op *op) {
  return (tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC) || op->code == TL_OP_FOR || op->code == TL_OP_IF;
}

// Moves the stores of other exchanges in front of the loads of one, with all that they are computed from, as long as
// that needs nothing of what was loaded. `load`: the first of them.
static void store_earlier(const tl_op_list *stores, tl_op *load) {
  tl_op_list late = {0}, early = {0};
  tl_vec_push(&late, load);
  for (tl_op *op = load->next, *next; op && !orders_threads(op); op = next) {
    next = op->next;
    if (uses_any(op, &late) || !is_free_of_order(op, stores)) {
      tl_vec_push(&late, op);
      continue;
    }
    tl_vec_push(&early, op);
    if (!is_in(stores, op)) continue;
    for (size_t i = 0; i < early.len; i++) tl_op_move_before(early.items[i], load);
    tl_vec_clear(&early);
  }
  tl_vec_fini(&late);
  tl_vec_fini(&early);
}

static void visit_split(tl_op *op, void *user) {
  if (op->code == TL_OP_REDUCE) split_reduce(user, op);
}

void tl_split_reductions(tl_pass_context *context, tl_op *kernel, tl_op *scope) {
  split_walk walk = {.context = context, .kernel = kernel};
  tl_walk(scope, visit_split, &walk);
  for (size_t i = 0; i < walk.loads.len; i++) store_earlier(&walk.stores, walk.loads.items[i]);
  tl_vec_fini(&walk.stores);
  tl_vec_fini(&walk.loads);
}
