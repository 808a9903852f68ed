// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums over threads that wait for the end of their loop, where the loop has `any_order`:
//
//   %l1 = for inits(%l0) : tile<f32 1> do(%l) {          %p0 = parallel: %l0 in the first part, -0.0 in the others
//     %row = reduce %x sum : tile<f32 1>                 %p1 = for inits(%p0) : tile<f32 1x256> do(%p) {
//     %next = parallel: %l * %alpha + %row          →      %part = reduce %x sum partial each=thread : tile<f32 1x256>
//     yield %next                                          %next = parallel: %p * %alpha + %part
//   }                                                      yield %next
//                                                        }
//                                                        %l1 = reduce %p1 sum axes=[1] : tile<f32 1>
//
// Each thread adds up, and scales, what it holds of the sum; lanes and warps are combined once, behind the loop. Parts
// are ordinary tiles with a dim more, so that no later pass knows of them. What is added and is no sum over threads
// (the start value, a constant) joins the part of one thread; the others get -0.0 there, which changes no sum, and -0.0
// is also what the others start with.
//
// Sums of integers wrap, so that they are the same in any order: they wait in every loop.
// Runs in infer-layouts, between layouts and the exchange between warps.
#include "passes/layout/waiting_sums.h"

#include <stdlib.h>

#include "passes/tile/loop_rewrite.h"

static const char *name_of(const tl_waiting_sum *self) {
  const char *name = self->loop->regions[0]->args[self->index + 1]->name;
  return name ? name : "a sum";
}

static bool may_reorder(const tl_waiting_sum *self) {
  return tl_op_has(self->loop, TL_ATTR_ANY_ORDER) ||
         tl_dtype_is_int(tl_op_result(self->loop, self->index)->type->dtype);
}

static void report_waiting(const tl_waiting_sum *self) {
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_WAITING_SUM, self->loop->loc,
                 "'%s' waits for the end of the loop: %d threads add up a part each, which are combined once",
                 name_of(self), self->part.shape[self->part.rank - 1]);
}

static void report_not_waiting(const tl_waiting_sum *self) {
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_WAITING_SUM, self->reason_loc,
                 "'%s' does not wait for the end of the loop: %s", name_of(self), self->reason);
}

typedef struct loop_list {
  TL_VEC(struct summing_loop {
    tl_op *op;
    bool has_sum;  // that waits, or that does not for a reason that was told
  })
  loops;
} loop_list;

static void collect_loop(tl_op *op, void *user) {
  loop_list *list = user;
  struct summing_loop loop = {.op = op};
  if (op->code == TL_OP_FOR) tl_vec_push(&list->loops, loop);
}

// Loops inside that the sum comes through wait with it.
static void note_inner_loops(const tl_waiting_sum *self, loop_list *list) {
  for (size_t p = 0; p < self->parts.len; p++) {
    const tl_block *block = self->parts.items[p]->block;
    for (size_t i = 0; block && i < list->loops.len; i++)
      list->loops.items[i].has_sum |= list->loops.items[i].op == block->parent;
  }
}

// Looks at what the loop carries; true when a sum was made to wait. `reports`: tells of the others instead.
static bool visit_loop(tl_pass_context *context, loop_list *list, size_t index, bool reports) {
  struct summing_loop *loop = &list->loops.items[index];
  bool changed = false;
  for (uint32_t i = 0; i < loop->op->num_results; i++) {
    const tl_value *result = tl_op_result(loop->op, i);
    tl_waiting_sum self = {.context = context, .loop = loop->op, .index = i};
    if (result->type->kind != TL_TYPE_TILE || !result->uses || !may_reorder(&self)) continue;
    tl_find_waiting_sum(&self);
    if (!self.reason) {
      report_waiting(&self);
      tl_let_sum_wait(&self);
      note_inner_loops(&self, list);
      changed = true;
    } else if (reports && self.adds_over_threads && tl_op_has(loop->op, TL_ATTR_ANY_ORDER)) {
      report_not_waiting(&self);
      loop->has_sum = true;
    }
    tl_vec_fini(&self.parts);
    tl_vec_fini(&self.terms);
    tl_vec_fini(&self.reached);
  }
  return changed;
}

// Outer loops first: they take the loops inside along. What an inner loop then combines behind it may be a sum of an
// outer one.
static bool let_sums_wait(tl_pass_context *context, loop_list *list) {
  bool any = false;
  for (bool changed = true; changed; any |= changed) {
    changed = false;
    for (size_t i = 0; i < list->loops.len; i++) changed |= visit_loop(context, list, i, false);
  }
  return any;
}

static void prune(tl_pass_context *context, tl_op *scope) {
  for (uint32_t r = 0; r < scope->num_regions; r++) {
    tl_break_dead_cycles(scope->regions[r]);
    tl_prune_unused(context->module, scope->regions[r]);
  }
}

static void find_loop(tl_op *op, void *user) {
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_ANY_ORDER)) *(bool *)user = true;
}

void tl_let_sums_wait(tl_layout_graph *graph) {
  tl_pass_context *context = graph->context;
  loop_list list = {0};
  bool may_wait = false;
  tl_walk(graph->scope, find_loop, &may_wait);
  // A tile that is written under a condition is carried though nobody reads it in another iteration: that is no reader.
  if (may_wait) prune(context, graph->scope);
  tl_walk(graph->scope, collect_loop, &list);
  bool any = let_sums_wait(context, &list);
  for (size_t i = 0; i < list.loops.len; i++) {
    const struct summing_loop *loop = &list.loops.items[i];
    visit_loop(context, &list, i, true);
    if (tl_op_has(loop->op, TL_ATTR_ANY_ORDER) && !loop->has_sum) {
      tl_diag_report(context->diags, TL_DIAG_REMARK_WAITING_SUM, loop->op->loc,
                     "`order: any` changes nothing: the loop adds up nothing over threads that could wait for its end");
    }
    tl_op_remove_attr(loop->op, TL_ATTR_ANY_ORDER);
  }
  // What computed whole sums is of no use any more.
  if (any) prune(context, graph->scope);
  tl_vec_fini(&list.loops);
}
