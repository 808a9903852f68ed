// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// unswitch: what asks inside of a parallel whether an optional tensor is there asks before it.
//
//   parallel { %p = present %B; %b = if %p { load %B[…] } else { 0 }; … }
//   → %p = present %B; if %p uniform { parallel { %b = load %B[…]; … } } else { parallel { … 0 … } }
//
// A branch around each load keeps loads apart that lie beside each other, and each load behind the one before it. Each
// tensor that is asked for doubles the code, so that only so many are taken, in the path for full tiles alone. Runs
// after split-tails, so that results are tiles, and their stores are not doubled.
#include <string.h>

#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "passes/pipeline/branches.h"
#include "passes/tile/canonicalize.h"

enum {
  MAX_QUESTIONS = 3,  // eight versions
  MAX_CODE = 4096     // ops of one thread, in all versions
};

// The first question whose answer something in `block` or below uses; it may have been asked outside.
static tl_op *find_present(const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; i++) {
      tl_op *from = tl_op_operand(op, i)->def;
      if (from && from->code == TL_OP_PRESENT) return from;
    }
    for (uint32_t r = 0; r < op->num_regions; r++) {
      tl_op *found = op->regions[r] ? find_present(op->regions[r]) : NULL;
      if (found) return found;
    }
  }
  return NULL;
}

static int64_t count_ops(const tl_block *block) {
  int64_t count = 0;
  for (const tl_op *op = block->first; op; op = op->next) {
    count++;
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (op->regions[r]) count += count_ops(op->regions[r]);
  }
  return count;
}

// Ops that one thread runs for its elements.
static int64_t code_of(const tl_op *parallel) {
  const tl_layout *layout = tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
  return count_ops(parallel->regions[0]) * (layout ? tl_layout_num_registers(layout) : 1);
}

// What is made in `block` and below of the question whether `buffer` is there is made of `answer`.
static void give_answer(tl_block *block, const tl_value *buffer, tl_value *answer) {
  for (tl_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; i++) {
      const tl_op *from = tl_op_operand(op, i)->def;
      if (from && from->code == TL_OP_PRESENT && tl_op_arg(from, TL_GROUP_PRESENT_buffer) == buffer)
        tl_op_set_operand(op, i, answer);
    }
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (op->regions[r]) give_answer(op->regions[r], buffer, answer);
  }
}

static void specialize(tl_pass_context *context, tl_op *parallel, const tl_value *buffer, bool is_present) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, parallel);
  builder.loc = parallel->loc;
  give_answer(parallel->regions[0], buffer, tl_build_bool(&builder, is_present));
  tl_canonicalize_pure(context, parallel->regions[0]);
  if (tl_canonicalize_decided(parallel->regions[0])) tl_canonicalize_pure(context, parallel->regions[0]);
}

// Returns whether there were versions to make.
static bool unswitch(tl_pass_context *context, tl_op *parallel, int questions, int64_t code) {
  tl_op *present = find_present(parallel->regions[0]);
  if (!present || questions == MAX_QUESTIONS || code * 2 > MAX_CODE) return false;
  tl_value *buffer = tl_op_arg(present, TL_GROUP_PRESENT_buffer);
  tl_builder builder;
  tl_builder_before(&builder, context->module, parallel);
  builder.loc = parallel->loc;
  tl_value_map map = {0};
  tl_value *condition = tl_op_result(tl_op_clone(&builder, present, &map), 0);
  tl_value_map_fini(&map);
  tl_op *with = tl_branch_versions(context, parallel, condition);
  specialize(context, with, buffer, true);
  specialize(context, parallel, buffer, false);
  unswitch(context, with, questions + 1, code * 2);
  unswitch(context, parallel, questions + 1, code * 2);
  return true;
}

// Whether `op` is what split-tails left for tiles that are not full.
static bool is_for_tails(const tl_op *op) {
  const tl_op *branch = op->parent->parent;
  if (branch->code != TL_OP_IF || op->parent != branch->regions[1] || !branch->regions[0]) return false;
  const tl_op *full = branch->regions[0]->first;
  return full && full->code == TL_OP_PARALLEL && memcmp(&full->loc, &op->loc, sizeof op->loc) == 0;
}

static bool has_token(const tl_op *op) {
  return op->num_results > 0 && tl_op_result(op, 0)->type->kind == TL_TYPE_TOKEN;
}

static bool visit(tl_pass_context *context, tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_PARALLEL) {
      if (!has_token(op) && !is_for_tails(op)) changed |= unswitch(context, op, 0, code_of(op));
      continue;
    }
    // What is for tails first, while what it is beside stands there.
    for (uint32_t r = op->num_regions; r-- > 0;)
      if (op->regions[r]) changed |= visit(context, op->regions[r]);
  }
  return changed;
}

tl_status tl_pass_unswitch(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next)
    if (op->code == TL_OP_KERNEL && visit(context, op->regions[0])) tl_canonicalize_pure(context, op->regions[0]);
  return TL_OK;
}
