// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which blocks are visited follows from what they read in common.
#include "ir/index/affine.h"
#include "passes/analysis/effects.h"
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

// ---- long blocks first

enum { MAX_HEIGHT = 64, ASSUMED_SIZE = 4096 };

// A value where the grid's first index is `at` and every other one is 0, dynamic sizes taken as 4096; false: it is not
// known.
static bool value_at(const tl_value *value, const tl_value *index, int64_t at, int height, int64_t *out) {
  const tl_op *op = value->def;
  *out = at;
  if (value == index || tl_value_const_int(value, out)) return true;
  if (!op || height > MAX_HEIGHT) return false;
  *out = op->code == TL_OP_DYN_PARAM ? ASSUMED_SIZE : 0;
  if (op->code == TL_OP_DYN_PARAM || op->code == TL_OP_GRID) return true;
  int64_t a, b;
  if (op->num_operands != 2 || !value_at(tl_op_operand(op, 0), index, at, height + 1, &a) ||
      !value_at(tl_op_operand(op, 1), index, at, height + 1, &b))
    return false;
  bool divides = op->code == TL_OP_FLOORDIV;
  return op->code != TL_OP_MOD && !(divides && (a < 0 || b <= 0)) && tl_fold_index(op->code, a, b, out);
}

static void look_for_waits(tl_op *op, void *user) {
  *(bool *)user |= op->code == TL_OP_WAIT_UNTIL;
}

bool tl_schedule_waits(const tl_schedule_problem *problem) {
  bool waits = false;
  tl_walk(problem->kernel, look_for_waits, &waits);
  return waits;
}

typedef struct loop_lengths {
  const tl_value *index;
  int64_t last;
  bool grow, shrink;
} loop_lengths;

static void look_at_loop(tl_op *op, void *user) {
  loop_lengths *self = user;
  int64_t first, last;
  if (op->code != TL_OP_FOR || !tl_op_has(op, TL_ATTR_PIPELINED)) return;
  const tl_value *upper = tl_op_arg(op, TL_GROUP_FOR_upper);
  if (!value_at(upper, self->index, 0, 0, &first) || !value_at(upper, self->index, self->last, 0, &last)) return;
  self->grow |= last > first;
  self->shrink |= last < first;
}

bool tl_schedule_long_first(const tl_schedule_problem *problem) {
  tl_op *grid = problem->grid;
  int64_t extent;
  bool is_given = grid && (tl_op_has(grid, TL_ATTR_PANEL) || tl_op_has(grid, TL_ATTR_ORDER));
  if (!grid || is_given || grid->num_results == 0 || problem->num_gemms == 0) return false;
  loop_lengths lengths = {.index = tl_op_result(grid, 0)};
  if (!value_at(tl_op_operand(grid, 0), NULL, 0, 0, &extent)) return false;
  lengths.last = extent - 1;
  tl_walk(problem->kernel, look_at_loop, &lengths);
  if (!lengths.grow || lengths.shrink || tl_schedule_waits(problem)) return false;
  tl_builder builder;
  tl_builder_after(&builder, problem->context->module, grid);
  builder.loc = grid->loc;
  tl_value *index = tl_op_result(grid, 0);
  tl_value *most = tl_index_sub(&builder, tl_op_operand(grid, 0), tl_build_index(&builder, 1));
  tl_value *turned = tl_index_sub(&builder, most, index);
  turned->name = index->name;
  tl_value_replace_uses(index, turned);
  for (uint32_t i = 0; i < turned->def->num_operands; i++)
    if (tl_op_operand(turned->def, i) == turned) tl_op_set_operand(turned->def, i, index);
  return true;
}
