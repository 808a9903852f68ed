// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a role needs to run some statements by itself: the control around them, and backwards from there whatever their
// operands and that control are computed from.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/pipeline/assign_roles.h"
#include "passes/tile/loop_rewrite.h"

// ---- marking

static const char *mark_value(tl_role_slice *slice, tl_value *value);
static const char *mark_around(tl_role_slice *slice, const tl_op *op);

static bool is_marked(const tl_role_slice *slice, const tl_value *value) {
  for (size_t i = 0; i < slice->values.len; i++)
    if (slice->values.items[i] == value) return true;
  return false;
}

// Whether the slice holds the op already; adds it.
static bool was_marked(tl_role_slice *slice, tl_op *op) {
  if (tl_op_list_has(&slice->ops, op)) return true;
  tl_vec_push(&slice->ops, op);
  return false;
}

static const char *mark_operands(tl_role_slice *slice, const tl_op *op) {
  const char *obstacle = NULL;
  for (uint32_t i = 0; i < op->num_operands && !obstacle; i++) obstacle = mark_value(slice, tl_op_operand(op, i));
  return obstacle;
}

static const char *load_obstacle(const tl_op *load) {
  const tl_op *root = tl_buffer_root(tl_op_arg(load, TL_GROUP_LOAD_buffer));
  if (!root || root->code != TL_OP_TENSOR) return "it depends on an element that is not in global memory";
  tl_op *kernel = tl_op_enclosing(load, TL_OP_KERNEL);
  return tl_effects_write(kernel, tl_op_result(root, 0)) ? "it depends on an element that the kernel writes" : NULL;
}

// Why another role cannot compute what the op does, or NULL.
static const char *replica_obstacle(const tl_op *op) {
  switch (op->code) {
    case TL_OP_LOAD:
      return load_obstacle(op);
    case TL_OP_THREAD_ID:
    case TL_OP_LANE_ID:
    case TL_OP_WARP_ID:
      return "it depends on the thread";
    default:
      break;
  }
  for (uint32_t i = 0; i < op->num_results; i++)
    if (op->results[i].type->kind == TL_TYPE_TILE) return "it depends on a tile in registers";
  return tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE ? NULL : "it depends on what only one role can do";
}

// Operands of an op with regions that say whether and how often it runs.
static const char *mark_control(tl_role_slice *slice, tl_op *op) {
  if (was_marked(slice, op)) return NULL;
  const char *obstacle = mark_around(slice, op);
  uint32_t scalars = op->code == TL_OP_FOR ? 3 : op->code == TL_OP_IF ? 1 : 0;
  for (uint32_t i = 0; i < scalars && !obstacle; i++) obstacle = mark_value(slice, tl_op_operand(op, i));
  if (!obstacle && op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_WHILE))
    obstacle = mark_value(slice, op->regions[0]->args[1]);
  return obstacle;
}

static const char *mark_around(tl_role_slice *slice, const tl_op *op) {
  tl_op *around = op->parent->parent;
  return around->code == TL_OP_ROLE ? NULL : mark_control(slice, around);
}

// A value that a loop carries, by its number there.
static const char *mark_carried(tl_role_slice *slice, tl_op *loop, uint32_t number) {
  tl_value *arg = loop->regions[0]->args[1 + number];
  if (is_marked(slice, arg)) return NULL;
  tl_vec_push(&slice->values, arg);
  tl_vec_push(&slice->values, tl_op_result(loop, number));
  const char *obstacle = mark_control(slice, loop);
  if (!obstacle) obstacle = mark_value(slice, tl_op_group_at(loop, TL_GROUP_FOR_inits, number));
  if (!obstacle) obstacle = mark_value(slice, tl_op_operand(tl_block_terminator(loop->regions[0]), number));
  return obstacle;
}

static const char *mark_result(tl_role_slice *slice, tl_value *result) {
  tl_op *op = result->def;
  if (op->code == TL_OP_FOR) return mark_carried(slice, op, result->index);
  if (is_marked(slice, result)) return NULL;
  tl_vec_push(&slice->values, result);
  const char *obstacle = mark_control(slice, op);
  for (uint32_t r = 0; r < op->num_regions && !obstacle; r++)
    obstacle = mark_value(slice, tl_op_operand(tl_block_terminator(op->regions[r]), result->index));
  return obstacle;
}

static const char *mark_value(tl_role_slice *slice, tl_value *value) {
  tl_op *op = value->def;
  if (!op) {
    tl_op *around = value->block->parent;
    if (around->code != TL_OP_FOR) return "it depends on an element of a parallel";
    return value->index == 0 ? mark_control(slice, around) : mark_carried(slice, around, value->index - 1);
  }
  if (value->type->kind == TL_TYPE_TILE || value->type->kind == TL_TYPE_FLIGHT)
    return "it depends on a tile in registers";
  if (op->parent->parent->code == TL_OP_KERNEL) return NULL;
  if (op->code == TL_OP_FOR || op->code == TL_OP_IF) return mark_result(slice, value);
  if (tl_op_list_has(&slice->ops, op)) return NULL;
  const char *obstacle = op->code == TL_OP_RING_ACQUIRE ? NULL : replica_obstacle(op);
  return obstacle ? obstacle : tl_role_slice_add(slice, op);
}

const char *tl_role_slice_add(tl_role_slice *slice, tl_op *op) {
  if (was_marked(slice, op)) return NULL;
  const char *obstacle = mark_operands(slice, op);
  return obstacle ? obstacle : mark_around(slice, op);
}

// ---- cloning

typedef struct slice_clone {
  tl_module *module;
  const tl_role_slice *slice;
  tl_value_map map;
} slice_clone;

static void clone_block(slice_clone *clone, const tl_block *from, tl_block *to);

// The values of `op` that the slice needs, by their number among its results.
static uint32_t needed_results(const slice_clone *clone, const tl_op *op, const tl_type **types) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_results; i++)
    if (is_marked(clone->slice, &op->results[i])) types[count++] = op->results[i].type;
  return count;
}

static void map_results(slice_clone *clone, const tl_op *op, tl_op *fresh) {
  for (uint32_t i = 0, kept = 0; i < op->num_results; i++) {
    if (!is_marked(clone->slice, &op->results[i])) continue;
    tl_op_result(fresh, kept)->name = op->results[i].name;
    tl_value_map_set(&clone->map, &op->results[i], tl_op_result(fresh, kept++));
  }
}

// Ends the region `to` with what `from` yields of the results of `op`.
static void clone_yield(slice_clone *clone, const tl_op *op, const tl_block *from, tl_block *to) {
  const tl_op *yield = tl_block_terminator(from);
  TL_VEC(tl_value *) values = {0};
  for (uint32_t i = 0; i < op->num_results; i++)
    if (is_marked(clone->slice, &op->results[i]))
      tl_vec_push(&values, tl_value_map_get(&clone->map, tl_op_operand(yield, i)));
  tl_builder builder;
  tl_builder_at_end(&builder, clone->module, to);
  tl_build_yield(&builder, values.items, (uint32_t)values.len);
  tl_vec_fini(&values);
}

static void clone_for(slice_clone *clone, tl_builder *builder, const tl_op *op) {
  TL_VEC(tl_value *) inits = {0};
  TL_VEC(const tl_type *) types = {0};
  tl_vec_reserve(&types, op->num_results + 1);
  types.len = needed_results(clone, op, types.items);
  for (uint32_t i = 0; i < op->num_results; i++)
    if (is_marked(clone->slice, &op->results[i]))
      tl_vec_push(&inits, tl_value_map_get(&clone->map, tl_op_group_at(op, TL_GROUP_FOR_inits, i)));
  tl_group groups[] = {TL_GROUP_OF(tl_value_map_get(&clone->map, tl_op_arg(op, TL_GROUP_FOR_lower))),
                       TL_GROUP_OF(tl_value_map_get(&clone->map, tl_op_arg(op, TL_GROUP_FOR_upper))),
                       TL_GROUP_OF(tl_value_map_get(&clone->map, tl_op_arg(op, TL_GROUP_FOR_step))),
                       {inits.items, (uint32_t)inits.len}};
  tl_op *fresh = tl_build(builder, TL_OP_FOR, groups, types.items, (uint32_t)types.len);
  tl_op_copy_attrs(clone->module, fresh, op);
  const tl_block *body = op->regions[0];
  for (uint32_t i = 0; i < body->num_args; i++) {
    if (i > 0 && !is_marked(clone->slice, body->args[i])) continue;
    tl_value_map_set(&clone->map, body->args[i],
                     tl_block_add_arg(clone->module, fresh->regions[0], body->args[i]->type, body->args[i]->name));
  }
  clone_block(clone, body, fresh->regions[0]);
  clone_yield(clone, op, body, fresh->regions[0]);
  map_results(clone, op, fresh);
  tl_vec_fini(&inits);
  tl_vec_fini(&types);
}

static void clone_if(slice_clone *clone, tl_builder *builder, const tl_op *op) {
  TL_VEC(const tl_type *) types = {0};
  tl_vec_reserve(&types, op->num_results + 1);
  types.len = needed_results(clone, op, types.items);
  tl_group groups[] = {TL_GROUP_OF(tl_value_map_get(&clone->map, tl_op_arg(op, TL_GROUP_IF_condition)))};
  tl_op *fresh = tl_build(builder, TL_OP_IF, groups, types.items, (uint32_t)types.len);
  tl_op_copy_attrs(clone->module, fresh, op);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    clone_block(clone, op->regions[r], fresh->regions[r]);
    clone_yield(clone, op, op->regions[r], fresh->regions[r]);
  }
  map_results(clone, op, fresh);
  tl_vec_fini(&types);
}

static void clone_block(slice_clone *clone, const tl_block *from, tl_block *to) {
  tl_builder builder;
  tl_builder_at_end(&builder, clone->module, to);
  for (tl_op *op = from->first; op; op = op->next) {
    if (!tl_op_list_has(&clone->slice->ops, op)) continue;
    builder.loc = op->loc;
    if (op->code == TL_OP_FOR)
      clone_for(clone, &builder, op);
    else if (op->code == TL_OP_IF)
      clone_if(clone, &builder, op);
    else
      tl_op_clone(&builder, op, &clone->map);
  }
}

void tl_role_slice_clone(tl_module *module, const tl_role_slice *slice, const tl_block *from, tl_block *to) {
  slice_clone clone = {.module = module, .slice = slice};
  clone_block(&clone, from, to);
  tl_value_map_fini(&clone.map);
}

void tl_role_slice_fini(tl_role_slice *slice) {
  tl_vec_fini(&slice->ops);
  tl_vec_fini(&slice->values);
}
