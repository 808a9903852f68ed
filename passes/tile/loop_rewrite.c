// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rebuilding ops that hold regions. Ops cannot grow in place without losing their result values, so each rewrite makes
// a new op, moves the regions' content over and replaces the old results.
#include "passes/tile/loop_rewrite.h"

#include "passes/analysis/memory_access.h"
#include "support/vec.h"

typedef TL_VEC(tl_value *) value_list;
typedef TL_VEC(const tl_type *) type_list;

void tl_op_copy_attrs(tl_module *module, tl_op *to, const tl_op *from) {
  for (uint32_t i = 0; i < from->num_attrs; i++) tl_op_set_attr(module, to, &from->attrs[i]);
}

void tl_block_move_ops(tl_block *from, tl_block *to) {
  while (from->first) tl_op_move_to_end(from->first, to);
}

tl_op *tl_region_yield(tl_module *module, tl_block *block, tl_loc loc) {
  tl_op *yield = tl_block_terminator(block);
  if (yield) return yield;
  tl_builder builder;
  tl_builder_at_end(&builder, module, block);
  builder.loc = loc;
  return tl_build_yield(&builder, NULL, 0);
}

// A new op of the same code before `op` with these operand groups and result types, with `op`'s attributes and place.
static tl_op *build_like(tl_module *module, tl_op *op, const tl_group *groups, const type_list *types) {
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  tl_op *fresh = tl_build(&builder, op->code, groups, types->items, (uint32_t)types->len);
  tl_op_copy_attrs(module, fresh, op);
  return fresh;
}

// The region arguments of `from`, except those marked in `drop`, made anew in `to`; uses follow, and so do the ops.
static void move_region(tl_module *module, tl_block *from, tl_block *to, const bool *drop) {
  for (uint32_t i = 0; i < from->num_args; i++) {
    if (drop && drop[i]) continue;
    tl_value *arg = tl_block_add_arg(module, to, from->args[i]->type, from->args[i]->name);
    tl_value_replace_uses(from->args[i], arg);
  }
  tl_block_move_ops(from, to);
}

static void keep_name(tl_value *fresh, const tl_value *old) {
  if (fresh->name == NULL) fresh->name = old->name;
}

tl_op *tl_for_add_carried(tl_module *module, tl_op *loop, tl_value *const *inits, uint32_t count) {
  value_list all = {0};
  type_list types = {0};
  for (uint32_t i = 0; i < tl_op_group_len(loop, TL_GROUP_FOR_inits); i++) {
    tl_vec_push(&all, tl_op_group_at(loop, TL_GROUP_FOR_inits, i));
  }
  for (uint32_t i = 0; i < loop->num_results; i++) tl_vec_push(&types, tl_op_result(loop, i)->type);
  for (uint32_t i = 0; i < count; i++) {
    tl_vec_push(&all, inits[i]);
    tl_vec_push(&types, inits[i]->type);
  }
  tl_group groups[] = {TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_lower)),
                       TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_upper)),
                       TL_GROUP_OF(tl_op_arg(loop, TL_GROUP_FOR_step)),
                       {all.items, (uint32_t)all.len}};
  tl_op *fresh = build_like(module, loop, groups, &types);
  move_region(module, loop->regions[0], fresh->regions[0], NULL);
  for (uint32_t i = 0; i < count; i++) tl_block_add_arg(module, fresh->regions[0], inits[i]->type, inits[i]->name);
  for (uint32_t i = 0; i < loop->num_results; i++) {
    keep_name(tl_op_result(fresh, i), tl_op_result(loop, i));
    tl_value_replace_uses(tl_op_result(loop, i), tl_op_result(fresh, i));
  }
  tl_op_erase(loop);
  tl_vec_fini(&all);
  tl_vec_fini(&types);
  return fresh;
}

tl_op *tl_op_add_results(tl_module *module, tl_op *op, const tl_type *const *new_types, uint32_t count) {
  type_list types = {0};
  for (uint32_t i = 0; i < op->num_results; i++) tl_vec_push(&types, tl_op_result(op, i)->type);
  for (uint32_t i = 0; i < count; i++) tl_vec_push(&types, new_types[i]);
  tl_group groups[1] = {TL_GROUP_EMPTY};
  tl_value *condition = op->code == TL_OP_IF ? tl_op_arg(op, TL_GROUP_IF_condition) : NULL;
  if (condition) groups[0] = (tl_group){&condition, 1};
  tl_op *fresh = build_like(module, op, groups, &types);
  for (uint32_t r = 0; r < op->num_regions; r++) move_region(module, op->regions[r], fresh->regions[r], NULL);
  for (uint32_t i = 0; i < op->num_results; i++) {
    keep_name(tl_op_result(fresh, i), tl_op_result(op, i));
    tl_value_replace_uses(tl_op_result(op, i), tl_op_result(fresh, i));
  }
  tl_op_erase(op);
  tl_vec_fini(&types);
  return fresh;
}

void tl_yield_append(tl_module *module, tl_op *yield, tl_value *const *values, uint32_t count) {
  value_list all = {0};
  for (uint32_t i = 0; i < tl_op_group_len(yield, TL_GROUP_YIELD_values); i++) {
    tl_vec_push(&all, tl_op_group_at(yield, TL_GROUP_YIELD_values, i));
  }
  for (uint32_t i = 0; i < count; i++) tl_vec_push(&all, values[i]);
  tl_op_set_group(module, yield, TL_GROUP_YIELD_values, all.items, (uint32_t)all.len);
  tl_vec_fini(&all);
}

// ---- pruning

// Whether result `index` and, for a loop, the region argument behind it serve nothing but the carried value itself.
static bool result_is_unused(const tl_op *op, uint32_t index) {
  if (index == 0 && tl_op_has(op, TL_ATTR_WHILE)) return false;
  if (tl_op_result(op, index)->uses) return false;
  if (op->code != TL_OP_FOR) return true;
  const tl_op *yield = tl_block_terminator(op->regions[0]);
  for (const tl_use *use = op->regions[0]->args[index + 1]->uses; use; use = use->next) {
    if (use->owner != yield) return false;
    // Yielded to its own position only; any other position keeps it alive.
    for (uint32_t i = 0; i < yield->num_operands; i++) {
      if (&yield->operands[i] == use && i != index) return false;
    }
  }
  return true;
}

static void prune_yield(tl_module *module, tl_block *block, const bool *drop, tl_loc loc) {
  tl_op *yield = tl_region_yield(module, block, loc);
  value_list kept = {0};
  for (uint32_t i = 0; i < yield->num_operands; i++) {
    if (!drop[i]) tl_vec_push(&kept, tl_op_operand(yield, i));
  }
  tl_op_set_group(module, yield, TL_GROUP_YIELD_values, kept.items, (uint32_t)kept.len);
  tl_vec_fini(&kept);
}

// MAPS of a parallel without those of dropped results.
static void prune_maps(tl_module *module, tl_op *fresh, const tl_op *op, const bool *drop) {
  int32_t len = 0;
  const int64_t *maps = tl_op_ints(op, TL_ATTR_MAPS, &len);
  if (maps == NULL) return;
  TL_VEC(int64_t) kept = {0};
  int32_t at = 0;
  for (uint32_t i = 0; i < op->num_results; i++) {
    int32_t rank = tl_op_result(op, i)->type->rank;
    for (int32_t d = 0; d < rank && at + d < len; d++) {
      if (!drop[i]) tl_vec_push(&kept, maps[at + d]);
    }
    at += rank;
  }
  if (kept.len) {
    tl_op_set_ints(module, fresh, TL_ATTR_MAPS, kept.items, (int32_t)kept.len);
  } else {
    tl_op_remove_attr(fresh, TL_ATTR_MAPS);
  }
  tl_vec_fini(&kept);
}

static bool prune_results(tl_module *module, tl_op *op) {
  TL_VEC(bool) drop = {0};
  bool any = false;
  if (op->code == TL_OP_FOR) tl_vec_push(&drop, false);  // the induction variable stays
  size_t first = drop.len;
  for (uint32_t i = 0; i < op->num_results; i++) {
    bool unused = result_is_unused(op, i);
    any |= unused;
    tl_vec_push(&drop, unused);
  }
  if (!any) {
    tl_vec_fini(&drop);
    return false;
  }
  const bool *drop_result = drop.items + first;
  type_list types = {0};
  value_list inits = {0};
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (drop_result[i]) continue;
    tl_vec_push(&types, tl_op_result(op, i)->type);
    if (op->code == TL_OP_FOR) tl_vec_push(&inits, tl_op_group_at(op, TL_GROUP_FOR_inits, i));
  }
  for (uint32_t r = 0; r < op->num_regions; r++) prune_yield(module, op->regions[r], drop_result, op->loc);
  tl_group groups[4] = {TL_GROUP_EMPTY, TL_GROUP_EMPTY, TL_GROUP_EMPTY, {inits.items, (uint32_t)inits.len}};
  tl_value *operands[3] = {0};
  uint32_t scalars = op->code == TL_OP_FOR ? 3 : op->code == TL_OP_IF ? 1 : 0;
  for (uint32_t i = 0; i < scalars; i++) {
    operands[i] = tl_op_operand(op, i);
    groups[i] = (tl_group){&operands[i], 1};
  }
  tl_op *fresh = build_like(module, op, groups, &types);
  if (op->code == TL_OP_PARALLEL) prune_maps(module, fresh, op, drop_result);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    move_region(module, op->regions[r], fresh->regions[r], op->code == TL_OP_FOR ? drop.items : NULL);
  }
  for (uint32_t i = 0, kept = 0; i < op->num_results; i++) {
    if (drop_result[i]) continue;
    keep_name(tl_op_result(fresh, kept), tl_op_result(op, i));
    tl_value_replace_uses(tl_op_result(op, i), tl_op_result(fresh, kept++));
  }
  tl_op_erase(op);
  tl_vec_fini(&types);
  tl_vec_fini(&inits);
  tl_vec_fini(&drop);
  return true;
}

bool tl_op_is_removable(const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  // Ops of the kernel's head describe the launch and stay.
  if ((info->flags & TL_OPFLAG_ONCE) || !(info->flags & TL_OPFLAG_PURE)) {
    return op->code == TL_OP_TILE_LOAD || op->code == TL_OP_LOAD || op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN;
  }
  return true;
}

static bool has_uses(const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].uses) return true;
  }
  return false;
}

static bool prune_once(tl_module *module, tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->last, *prev; op; op = prev) {
    prev = op->prev;
    if (op->num_results > 0 && tl_op_is_removable(op) && !has_uses(op)) {
      tl_op_erase(op);
      changed = true;
      continue;
    }
    if (op->num_regions == 0) continue;
    for (uint32_t r = 0; r < op->num_regions; r++) changed |= prune_once(module, op->regions[r]);
    if (op->num_results > 0 && (op->code == TL_OP_FOR || op->code == TL_OP_IF || op->code == TL_OP_PARALLEL)) {
      changed |= prune_results(module, op);
    }
  }
  return changed;
}

void tl_prune_unused(tl_module *module, tl_block *block) {
  while (prune_once(module, block)) {
  }
}
