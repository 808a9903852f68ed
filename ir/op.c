// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading, linking and changing ops.
#include <assert.h>
#include <string.h>

#include "ir/ir.h"
#include "ir/op_internal.h"

// ---- uses

void tl_use_link(tl_use *use, tl_value *value) {
  use->value = value;
  use->next = NULL;
  use->link = NULL;
  if (value == NULL) return;
  use->next = value->uses;
  if (use->next) use->next->link = &use->next;
  use->link = &value->uses;
  value->uses = use;
}

static void use_unlink(tl_use *use) {
  if (use->value == NULL) return;
  *use->link = use->next;
  if (use->next) use->next->link = use->link;
  use->value = NULL;
  use->next = NULL;
  use->link = NULL;
}

// ---- places of ops

void tl_op_link(tl_op *op, tl_block *block, tl_op *before) {
  assert(before == NULL || before->parent == block);
  tl_op *prev = before ? before->prev : block->last;
  op->parent = block;
  op->prev = prev;
  op->next = before;
  *(prev ? &prev->next : &block->first) = op;
  *(before ? &before->prev : &block->last) = op;
}

static void unlink_op(tl_op *op) {
  tl_block *block = op->parent;
  *(op->prev ? &op->prev->next : &block->first) = op->next;
  *(op->next ? &op->next->prev : &block->last) = op->prev;
  op->parent = NULL;
  op->prev = NULL;
  op->next = NULL;
}

void tl_op_move_before(tl_op *op, tl_op *before) {
  if (op == before) return;
  unlink_op(op);
  tl_op_link(op, before->parent, before);
}

void tl_op_move_to_end(tl_op *op, tl_block *block) {
  unlink_op(op);
  tl_op_link(op, block, NULL);
}

static void drop_uses(tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++) use_unlink(&op->operands[i]);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) drop_uses(inner);
  }
}

void tl_op_erase(tl_op *op) {
  drop_uses(op);
  for (uint32_t i = 0; i < op->num_results; i++) assert(op->results[i].uses == NULL);
  unlink_op(op);
}

// ---- operands

tl_value *tl_op_operand(const tl_op *op, uint32_t index) {
  assert(index < op->num_operands);
  return op->operands[index].value;
}

static uint32_t group_start(const tl_op *op, int group) {
  uint32_t start = 0;
  for (int g = 0; g < group; g++) start += op->group_sizes[g];
  return start;
}

uint32_t tl_op_group_len(const tl_op *op, int group) {
  assert(group >= 0 && group < tl_op_info_of(op->code)->num_groups);
  return op->group_sizes[group];
}

tl_value *tl_op_group_at(const tl_op *op, int group, uint32_t index) {
  assert(index < tl_op_group_len(op, group));
  return op->operands[group_start(op, group) + index].value;
}

tl_value *tl_op_arg(const tl_op *op, int group) {
  return tl_op_group_len(op, group) ? op->operands[group_start(op, group)].value : NULL;
}

void tl_op_set_operand(tl_op *op, uint32_t index, tl_value *value) {
  assert(index < op->num_operands);
  use_unlink(&op->operands[index]);
  tl_use_link(&op->operands[index], value);
}

void tl_op_set_group(tl_module *module, tl_op *op, int group, tl_value *const *values, uint32_t len) {
  assert(group >= 0 && group < tl_op_info_of(op->code)->num_groups);
  uint32_t start = group_start(op, group);
  uint32_t old_len = op->group_sizes[group];
  uint32_t total = op->num_operands - old_len + len;
  tl_use *operands = TL_NEW_ARRAY(&module->arena, tl_use, total);
  for (uint32_t i = 0; i < total; i++) {
    operands[i].owner = op;
    tl_value *value;
    if (i < start) {
      value = op->operands[i].value;
    } else if (i < start + len) {
      value = values[i - start];
    } else {
      value = op->operands[i - len + old_len].value;
    }
    tl_use_link(&operands[i], value);
  }
  for (uint32_t i = 0; i < op->num_operands; i++) use_unlink(&op->operands[i]);
  op->operands = operands;
  op->num_operands = total;
  op->group_sizes[group] = len;
}

void tl_value_replace_uses(tl_value *value, tl_value *with) {
  if (value == with) return;
  while (value->uses) {
    tl_use *use = value->uses;
    use_unlink(use);
    tl_use_link(use, with);
  }
}

// ---- results

tl_value *tl_op_result(const tl_op *op, uint32_t index) {
  assert(index < op->num_results);
  return &op->results[index];
}

void tl_op_set_results(tl_module *module, tl_op *op, const tl_type *const *types, uint32_t len) {
  for (uint32_t i = 0; i < op->num_results; i++) assert(op->results[i].uses == NULL);
  op->results = TL_NEW_ARRAY(&module->arena, tl_value, len);
  op->num_results = len;
  for (uint32_t i = 0; i < len; i++) {
    op->results[i] = (tl_value){.type = types[i], .def = op, .index = i, .number = module->num_values++};
  }
}

// ---- structure

tl_op *tl_block_terminator(const tl_block *block) {
  tl_op *last = block->last;
  return last && (tl_op_info_of(last->code)->flags & TL_OPFLAG_TERMINATOR) ? last : NULL;
}

tl_op *tl_op_enclosing(const tl_op *op, tl_opcode code) {
  for (tl_block *block = op->parent; block && block->parent; block = block->parent->parent) {
    if (block->parent->code == code) return block->parent;
  }
  return NULL;
}

bool tl_op_is_inside(const tl_op *op, const tl_op *ancestor) {
  while (op && op != ancestor) op = op->parent ? op->parent->parent : NULL;
  return op != NULL;
}

tl_op *tl_module_kernel(const tl_module *module) {
  for (tl_op *op = module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) return op;
  }
  return NULL;
}

static void walk_block(tl_block *block, tl_walk_fn *visit, void *user) {
  tl_op *next;
  for (tl_op *op = block->first; op; op = next) {
    next = op->next;
    tl_walk(op, visit, user);
    // The visit may have erased or moved what came next.
    if (next && next->parent != block) next = op->parent == block ? op->next : NULL;
  }
}

void tl_walk(tl_op *op, tl_walk_fn *visit, void *user) {
  tl_block *parent = op->parent;
  visit(op, user);
  if (parent && op->parent == NULL) return;
  for (uint32_t r = 0; r < op->num_regions; r++) walk_block(op->regions[r], visit, user);
}

void tl_walk_module(tl_module *module, tl_walk_fn *visit, void *user) {
  walk_block(module->body, visit, user);
}

tl_op *tl_buffer_root(const tl_value *buffer) {
  tl_op *op = buffer->def;
  while (op) {
    if (op->code == TL_OP_VIEW) {
      op = tl_op_arg(op, TL_GROUP_VIEW_buffer)->def;
    } else if (op->code == TL_OP_STAGE_TILE) {
      op = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile)->def;
    } else if (op->code == TL_OP_PEER_TILE) {
      op = tl_op_arg(op, TL_GROUP_PEER_TILE_tile)->def;
    } else if (op->code == TL_OP_PART_TILE) {
      op = tl_op_arg(op, TL_GROUP_PART_TILE_tile)->def;
    } else if (op->code == TL_OP_RING_TILE) {
      op = tl_op_arg(op, TL_GROUP_RING_TILE_tile)->def;
    } else {
      break;
    }
  }
  return op;
}
