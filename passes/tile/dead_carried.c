// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What loops carry and nobody needs: values that go round through branches and inner loops, and that nothing else reads
// than what makes their next ones.
#include "passes/tile/loop_rewrite.h"
#include "support/vec.h"

typedef struct liveness {
  TL_VEC(bool) live;  // by number of the value
  TL_VEC(const tl_value *) work;
} liveness;

static void mark(liveness *self, const tl_value *value) {
  while (self->live.len <= value->number) tl_vec_push(&self->live, false);
  if (self->live.items[value->number]) return;
  self->live.items[value->number] = true;
  tl_vec_push(&self->work, value);
}

static bool is_live(const liveness *self, const tl_value *value) {
  return value->number < self->live.len && self->live.items[value->number];
}

static bool hands_on(const tl_op *op) {
  return op->code == TL_OP_FOR || op->code == TL_OP_IF || op->code == TL_OP_PARALLEL;
}

// What is needed whatever becomes of the results.
static void mark_roots(liveness *self, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    bool is_handed_on = op->code == TL_OP_YIELD && op->parent->parent && hands_on(op->parent->parent);
    uint32_t first_carried = op->code == TL_OP_FOR ? 3 : op->num_operands;
    // A reduction between buffers has no results.
    if (!is_handed_on && (!tl_op_is_removable(op) || op->num_results == 0))
      for (uint32_t i = 0; i < first_carried; i++) mark(self, tl_op_operand(op, i));
    if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_WHILE)) mark(self, op->regions[0]->args[1]);
    for (uint32_t r = 0; r < op->num_regions; r++) mark_roots(self, op->regions[r]);
  }
}

// What value number `index` that the op hands on comes from.
static void mark_handed_on(liveness *self, const tl_op *op, uint32_t index) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    const tl_op *yield = tl_block_terminator(op->regions[r]);
    if (yield && index < yield->num_operands) mark(self, tl_op_operand(yield, index));
  }
  if (op->code == TL_OP_FOR) mark(self, tl_op_group_at(op, TL_GROUP_FOR_inits, index));
}

static void propagate(liveness *self) {
  while (self->work.len) {
    const tl_value *value = tl_vec_pop(&self->work);
    const tl_op *op = value->def ? value->def : value->block->parent;
    bool is_carried = !value->def && op && op->code == TL_OP_FOR && value->index > 0;
    if (is_carried) {
      mark_handed_on(self, op, value->index - 1);
    } else if (value->def && hands_on(op)) {
      mark_handed_on(self, op, value->index);
    } else if (value->def) {
      for (uint32_t i = 0; i < op->num_operands; i++) mark(self, tl_op_operand(op, i));
    }
  }
}

static void break_cycles(const liveness *self, tl_block *block) {
  for (tl_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; op->code == TL_OP_FOR && i < op->num_results; i++) {
      tl_value *carried = op->regions[0]->args[i + 1];
      if (!is_live(self, carried)) tl_value_replace_uses(carried, tl_op_group_at(op, TL_GROUP_FOR_inits, i));
    }
    for (uint32_t r = 0; r < op->num_regions; r++) break_cycles(self, op->regions[r]);
  }
}

void tl_break_dead_cycles(tl_block *block) {
  liveness self = {0};
  mark_roots(&self, block);
  // What the block itself hands on is for others to judge.
  const tl_op *yield = tl_block_terminator(block);
  for (uint32_t i = 0; yield && i < yield->num_operands; i++) mark(&self, tl_op_operand(yield, i));
  propagate(&self);
  break_cycles(&self, block);
  tl_vec_fini(&self.live);
  tl_vec_fini(&self.work);
}
