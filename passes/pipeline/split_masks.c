// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masks that only the last iterations need: a loop whose comparisons hold for every element up to some iteration
// becomes two, of which the first one asks nothing.
//
//   for %k = %a to %n {                      for %k = %a to %t { … x … }
//     … select(128 %k + %j <= %q + %i, x, y)   ⇒   for %k = %t to %n { … select(…) … }
//   }
//
// with 0 <= j < 128 and 0 <= i: t is the first iteration with 128 k + 127 > q, at least a and at most n. Iterations
// keep their order, and what one hands to the next goes from the first loop to the second.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/pipeline/rotate.h"

typedef struct mask {
  tl_op *cmp;
  tl_affine rest;  // it holds while step * iteration <= rest; values of outside of the loop
  int64_t step;
} mask;

typedef struct mask_list {
  tl_op *loop;
  TL_VEC(mask) items;
} mask_list;

// ---- comparisons

static bool is_outside(const tl_op *loop, const tl_value *symbol) {
  const tl_op *at = symbol->def ? symbol->def : symbol->block->parent;
  return at && !tl_op_is_inside(at, loop);
}

// Adds what an index of the parallel around makes of a sum at least; false: it is no such index.
static bool add_least(const tl_op *parallel, const tl_value *symbol, int64_t coefficient, int64_t *sum) {
  if (symbol->def || symbol->block != parallel->regions[0]) return false;
  int32_t rank;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
  int64_t most = extents[symbol->index] - 1, least;
  return coefficient > 0 ||
         (!__builtin_mul_overflow(coefficient, most, &least) && !__builtin_add_overflow(*sum, least, sum));
}

// The right side minus the left one, at least 0 where the comparison holds.
static tl_affine slack_of(const tl_op *cmp) {
  int64_t pred = tl_op_int(cmp, TL_ATTR_CMP, TL_CMP_EQ);
  bool turned = pred == TL_CMP_GT || pred == TL_CMP_GE, strict = pred == TL_CMP_LT || pred == TL_CMP_GT;
  tl_affine left = tl_affine_of(tl_op_operand(cmp, turned)), right = tl_affine_of(tl_op_operand(cmp, !turned));
  if (pred == TL_CMP_EQ || pred == TL_CMP_NE || !left.valid || !right.valid) return (tl_affine){0};
  tl_affine slack = tl_affine_sub(&right, &left);
  if (strict && __builtin_sub_overflow(slack.constant, 1, &slack.constant)) slack.valid = false;
  return slack;
}

static void look_at(tl_op *op, void *user) {
  mask_list *list = user;
  const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  if (op->code != TL_OP_CMP || !parallel || tl_op_operand(op, 0)->type->kind != TL_TYPE_INDEX) return;
  tl_affine slack = slack_of(op);
  if (!slack.valid) return;
  mask found = {.cmp = op, .rest = {.valid = true, .constant = slack.constant}};
  for (int32_t t = 0; t < slack.num_terms; t++) {
    tl_value *symbol = slack.terms[t].symbol;
    int64_t coefficient = slack.terms[t].coefficient;
    if (symbol == list->loop->regions[0]->args[0])
      found.step = -coefficient;
    else if (is_outside(list->loop, symbol))
      found.rest.terms[found.rest.num_terms++] = slack.terms[t];
    else if (!add_least(parallel, symbol, coefficient, &found.rest.constant))
      return;
  }
  if (found.step > 0) tl_vec_push(&list->items, found);
}

// ---- bounds

// The first iteration in which one of the comparisons may not hold, within the loop's bounds.
static tl_value *find_first(tl_builder *builder, const mask_list *list) {
  tl_value *first = tl_op_arg(list->loop, TL_GROUP_FOR_upper);
  for (size_t i = 0; i < list->items.len; i++) {
    const mask *at = &list->items.items[i];
    tl_value *step = tl_build_index(builder, at->step);
    tl_value *last = tl_index_floordiv(builder, tl_affine_build(builder, &at->rest), step);
    first = tl_index_min(builder, first, tl_index_add(builder, last, tl_build_index(builder, 1)));
  }
  return tl_index_max(builder, first, tl_op_arg(list->loop, TL_GROUP_FOR_lower));
}

// ---- the rewrite

static void fold(tl_op *op, void *user) {
  if (op->num_results != 1 || op->num_regions > 0 || op->code == TL_OP_CONST ||
      !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) || op->results[0].type->kind == TL_TYPE_TILE)
    return;
  tl_builder builder;
  tl_builder_before(&builder, user, op);
  tl_value *simple = tl_fold_op(&builder, op);
  if (!simple) return;
  tl_value_replace_uses(tl_op_result(op, 0), simple);
  tl_op_erase(op);
}

static void take_as_true(tl_module *module, tl_value *condition) {
  tl_builder builder;
  tl_builder_before(&builder, module, condition->def);
  tl_value_replace_uses(condition, tl_build_bool(&builder, true));
}

static bool carries_flights(const tl_op *loop) {
  for (uint32_t i = 0; i < loop->num_results; i++)
    if (loop->results[i].type->kind == TL_TYPE_FLIGHT) return true;
  return false;
}

void tl_split_masks(tl_pass_context *context, tl_op *loop) {
  mask_list list = {.loop = loop};
  int64_t step;
  bool counts = tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) && step == 1;
  // Accumulators that come from two loops would be serialised.
  if (counts && !tl_op_has(loop, TL_ATTR_WHILE) && !carries_flights(loop)) tl_walk(loop, look_at, &list);
  if (list.items.len > 0) {
    tl_module *module = context->module;
    tl_builder builder;
    tl_builder_before(&builder, module, loop);
    builder.loc = loop->loc;
    tl_value *first = find_first(&builder, &list);
    if (!tl_prove_le(first, tl_op_arg(loop, TL_GROUP_FOR_lower))) {
      tl_value_map map = {0};
      tl_op *before = tl_op_clone(&builder, loop, &map);
      for (size_t i = 0; i < list.items.len; i++)
        take_as_true(module, tl_value_map_get(&map, tl_op_result(list.items.items[i].cmp, 0)));
      tl_walk(before, fold, module);
      tl_op_set_group(module, before, TL_GROUP_FOR_upper, &first, 1);
      tl_op_set_group(module, loop, TL_GROUP_FOR_lower, &first, 1);
      TL_VEC(tl_value *) inits = {0};
      for (uint32_t i = 0; i < before->num_results; i++) tl_vec_push(&inits, tl_op_result(before, i));
      tl_op_set_group(module, loop, TL_GROUP_FOR_inits, inits.items, (uint32_t)inits.len);
      tl_vec_fini(&inits);
      tl_value_map_fini(&map);
      tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, loop->loc,
                     "iterations without masks have a loop of their own");
    }
  }
  tl_vec_fini(&list.items);
}
