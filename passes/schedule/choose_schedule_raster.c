// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which blocks are visited follows from what they read in common.
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

typedef struct row_reads {
  uint64_t *depends;  // a bit a value, by its number: whether it follows from the grid's second index
  // Whether global memory is read outside [0] and inside [1] of loops, and whether some of that does not depend.
  bool reads[2], shared[2];
} row_reads;

static bool is_marked(const row_reads *self, const tl_value *value) {
  return self->depends[value->number / 64] >> value->number % 64 & 1;
}

static void mark(row_reads *self, const tl_value *value) {
  self->depends[value->number / 64] |= (uint64_t)1 << value->number % 64;
}

static bool reads_global(const tl_op *op) {
  if (op->code == TL_OP_COPY) return tl_buffer_is_global(tl_op_arg(op, TL_GROUP_COPY_src));
  return op->code == TL_OP_LOAD && tl_buffer_is_global(tl_element_buffer(op));
}

// Operands stand before their users, so one walk in program order suffices. What a loop runs over only says how much is
// read, not where; a place that a loop carries along counts as one that all blocks share.
static void visit(tl_op *op, void *user) {
  row_reads *self = user;
  bool depends = false;
  for (uint32_t i = 0; i < op->num_operands && !depends; i++) depends = is_marked(self, tl_op_operand(op, i));
  if (reads_global(op)) {
    bool in_loop = tl_op_enclosing(op, TL_OP_FOR) != NULL;
    self->reads[in_loop] = true;
    self->shared[in_loop] |= !depends;
  }
  for (uint32_t i = 0; depends && op->num_regions == 0 && i < op->num_results; i++) mark(self, &op->results[i]);
}

bool tl_schedule_rows_share(const tl_schedule_problem *problem) {
  size_t words = problem->context->module->num_values / 64 + 1;
  row_reads self = {.depends = TL_NEW_ARRAY(&problem->context->scratch, uint64_t, words)};
  mark(&self, tl_op_result(problem->grid, 1));
  tl_walk(problem->kernel, visit, &self);
  return self.shared[self.reads[1]];  // what is read once hardly matters beside what loops read
}
