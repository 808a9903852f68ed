// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// unroll-ragged: loops of a parallel's element whose length differs from thread to thread start the loads of several
// iterations together.
//
//   for %t = %lo to %hi step 1 inits(%a) {              for %t = %lo to %hi step 4 inits(%a) {
//     %c = load %column[%t]                               %c0 = load %column[%t]; %x0 = load %x[%c0]; %a1 = …
//     %x = load %x[%c]                             →      %in = %t + 1 < %hi
//     yield %a + %x                                       %c1 = load %column[%in ? %t + 1 : -1] {check}
//   }                                                     %x1 = load %x[%in ? %c1 : -1] {check}; %a2 = %in ? … : %a1
//                                                         …; yield %a4
//   }
//
// Such a loop (a row of a sparse matrix, a bag of an embedding) is short and waits for memory in each iteration, twice
// where one load gives the place of the next. LLVM unrolls it with a remainder that runs one by one, which is all of a
// short row. Iterations past the end load nothing, since an index of -1 is outside, and what is carried stays as it is,
// in the order in which it was computed.
//
// After select-copies and split-tails: widths and bounds checks are final.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"

enum { MOST_OPS = 40, MOST_LOADS = 6, FACTOR = 4 };

typedef struct ragged {
  tl_op *parallel, *loop;
  int32_t ops, loads;
  bool fits;
} ragged;

// ---- which loops

// Whether an op may run where its iteration does not: it computes, and cannot trap.
static bool may_run_past_end(const tl_op *op) {
  int64_t divisor;
  if (op->num_regions > 0 || !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) return false;
  if (op->code != TL_OP_DIV && op->code != TL_OP_FLOORDIV && op->code != TL_OP_MOD) return true;
  return tl_value_const_int(tl_op_operand(op, 1), &divisor) && divisor != 0;
}

// An index of -1 takes the place of the first one, along which no vector may run then.
static bool may_be_masked(const tl_op *load) {
  const tl_value *buffer = tl_element_buffer(load);
  bool is_alone = tl_op_int(load, TL_ATTR_VEC, 1) == 1 && !tl_op_has(load, TL_ATTR_REPEAT);
  return tl_buffer_is_global(buffer) && tl_element_rank(load) > (is_alone ? 0 : 1);
}

static void look_at(const tl_block *body, ragged *self) {
  for (const tl_op *op = body->first; op; op = op->next) {
    if (op->code == TL_OP_YIELD) continue;
    self->ops++;
    self->loads += op->code == TL_OP_LOAD;
    self->fits &= op->code == TL_OP_LOAD ? may_be_masked(op) : may_run_past_end(op);
  }
}

static bool is_of_element(const ragged *self, const tl_value *bound) {
  const tl_op *at = bound->def ? bound->def : bound->block->parent;
  return at && tl_op_is_inside(at, self->parallel);
}

static bool is_ragged(ragged *self) {
  tl_op *loop = self->loop;
  int64_t step;
  if (tl_op_has(loop, TL_ATTR_WHILE) || tl_op_has(loop, TL_ATTR_UNROLL) || tl_op_has(loop, TL_ATTR_DYNAMIC))
    return false;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step < 1 || step > INT16_MAX) return false;
  tl_constant_loop known;
  if (tl_loop_is_constant(loop, &known)) return false;  // the same for all elements, wherever the numbers stand
  const tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  if (!is_of_element(self, lower) && !is_of_element(self, upper)) return false;
  look_at(loop->regions[0], self);
  return self->fits && self->loads > 0 && self->loads <= MOST_LOADS && self->ops <= MOST_OPS;
}

// ---- the rewrite

// Makes a load bring nothing unless `inside`.
static void mask_load(tl_module *module, tl_op *load, tl_value *inside) {
  uint32_t rank = tl_element_rank(load);
  tl_value *indices[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = tl_element_index(load, d);
    checks[d] = tl_element_check(load, (int32_t)d);
  }
  tl_builder before;
  tl_builder_before(&before, module, load);
  before.loc = load->loc;
  tl_value *index = tl_build_cast(&before, indices[0], tl_type_index(module));
  indices[0] = tl_build_select(&before, inside, index, tl_build_index(&before, -1));
  checks[0] |= TL_CHECK_LOWER;
  tl_op_set_group(module, load, TL_GROUP_LOAD_index, indices, rank);
  tl_op_set_ints(module, load, TL_ATTR_CHECK, checks, (int32_t)rank);
}

typedef TL_VEC(tl_op *) op_list;

// The iterations behind the one that the loop holds already.
typedef struct unrolling {
  tl_module *module;
  tl_op *loop;
  tl_value *inside[FACTOR];
  tl_value_map maps[FACTOR];  // from its values to those of each iteration
  op_list free, bound;        // its ops: those that no earlier iteration has to come before, and the others
} unrolling;

// Whether an op needs what the iteration before hands on.
static bool needs_carried(const unrolling *self, const tl_op *op) {
  const tl_block *body = self->loop->regions[0];
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *operand = tl_op_operand(op, i);
    if (!operand->def && operand->block == body && operand->index > 0) return true;
    for (size_t b = 0; b < self->bound.len; b++)
      if (operand->def == self->bound.items[b]) return true;
  }
  return false;
}

static void copy_op(unrolling *self, tl_builder *builder, const tl_op *op, int64_t k) {
  tl_op *copy = tl_op_clone(builder, op, &self->maps[k]);
  if (copy->code == TL_OP_LOAD) mask_load(self->module, copy, self->inside[k]);
}

// Each op beside its copies, so that loads of one kind stand together.
static void copy_free(unrolling *self) {
  for (size_t i = 0; i < self->free.len; i++) {
    tl_op *op = self->free.items[i];
    tl_builder builder;
    tl_builder_before(&builder, self->module, op->next);
    builder.loc = op->loc;
    for (int64_t k = 1; k < FACTOR; k++) copy_op(self, &builder, op, k);
  }
}

// One iteration after the other: `carried` goes in and comes out, and is kept by those that do not run.
static void copy_bound(unrolling *self, tl_op *yield, tl_value **carried) {
  tl_builder builder;
  tl_builder_before(&builder, self->module, yield);
  builder.loc = self->loop->loc;
  uint32_t num = self->loop->num_results;
  for (int64_t k = 1; k < FACTOR; k++) {
    for (uint32_t i = 0; i < num; i++)
      tl_value_map_set(&self->maps[k], self->loop->regions[0]->args[i + 1], carried[i]);
    for (size_t i = 0; i < self->bound.len; i++) copy_op(self, &builder, self->bound.items[i], k);
    for (uint32_t i = 0; i < num; i++) {
      tl_value *value = tl_value_map_get(&self->maps[k], tl_op_operand(yield, i));
      carried[i] = tl_build_select(&builder, self->inside[k], value, carried[i]);
    }
  }
}

// Sorts the loop's ops. False where a load waits for the iteration before: nothing would start together then.
static bool sort_ops(unrolling *self) {
  bool fits = true;
  const tl_op *yield = tl_block_terminator(self->loop->regions[0]);
  for (tl_op *op = self->loop->regions[0]->first; op != yield; op = op->next) {
    bool is_bound = needs_carried(self, op);
    fits &= !is_bound || op->code != TL_OP_LOAD;
    if (is_bound)
      tl_vec_push(&self->bound, op);
    else
      tl_vec_push(&self->free, op);
  }
  return fits;
}

static void write_iterations(unrolling *self, tl_pass_context *context) {
  tl_op *loop = self->loop, *yield = tl_block_terminator(loop->regions[0]);
  tl_block *body = loop->regions[0];
  int64_t step = 1;
  tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step);
  tl_builder builder;
  tl_builder_before(&builder, self->module, body->first);
  builder.loc = loop->loc;
  for (int64_t k = 1; k < FACTOR; k++) {
    tl_value *index = tl_index_add(&builder, body->args[0], tl_build_index(&builder, k * step));
    self->inside[k] = tl_build_cmp(&builder, TL_CMP_LT, index, tl_op_arg(loop, TL_GROUP_FOR_upper));
    tl_value_map_set(&self->maps[k], body->args[0], index);
  }
  copy_free(self);
  uint32_t num = loop->num_results;
  tl_value **carried = TL_NEW_ARRAY(&context->scratch, tl_value *, num + 1);
  for (uint32_t i = 0; i < num; i++) carried[i] = tl_op_operand(yield, i);
  copy_bound(self, yield, carried);
  if (num > 0) tl_op_set_group(self->module, yield, TL_GROUP_YIELD_values, carried, num);
  for (int64_t k = 1; k < FACTOR; k++) tl_value_map_fini(&self->maps[k]);
  tl_builder_before(&builder, self->module, loop);
  tl_value *longer = tl_build_index(&builder, step * FACTOR);
  tl_op_set_group(self->module, loop, TL_GROUP_FOR_step, &longer, 1);
}

static void unroll(tl_pass_context *context, tl_op *loop) {
  unrolling self = {.module = context->module, .loop = loop};
  if (sort_ops(&self)) {
    write_iterations(&self, context);
    tl_diag_report(context->diags, TL_DIAG_REMARK_ACCESS, loop->loc,
                   "%d iterations start their loads together, those past the loop's end without them", FACTOR);
  }
  tl_vec_fini(&self.free);
  tl_vec_fini(&self.bound);
}

static void find_loop(tl_op *op, void *user) {
  tl_op *parallel = op->code == TL_OP_FOR ? tl_op_enclosing(op, TL_OP_PARALLEL) : NULL;
  if (!parallel || tl_op_has(parallel, TL_ATTR_ASYNC)) return;
  ragged self = {.parallel = parallel, .loop = op, .fits = true};
  if (is_ragged(&self)) tl_vec_push((op_list *)user, op);
}

tl_status tl_pass_unroll_ragged(tl_pass_context *context) {
  op_list loops = {0};
  tl_walk_module(context->module, find_loop, &loops);
  for (size_t i = 0; i < loops.len; i++) unroll(context, loops.items[i]);
  tl_vec_fini(&loops);
  return TL_OK;
}
