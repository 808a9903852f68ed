// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that a pipelined loop reads from global memory beside its copies, one an iteration, such as the mean of a row.
//
//   for %t pipelined {                             for %t pipelined {
//     copy %X[%row, 0] -> %x_s                ⇒      copy %X[%row, 0] -> %x_s ; copy %mean[%row] -> %mean_stage
//     parallel { … load %mean[%row] … }              parallel { … load %mean_stage[0] … }
//     parallel { … load %mean[%row] … }              %v = load %mean_stage[0] ; parallel { … %v … }
//   }                                              }
//
// The value comes with the tiles, as many iterations ahead as they; loaded where it is used each iteration would wait
// for memory. Loops with products keep theirs: warps of their own may bring what those read, and bring nothing else.
#include "passes/layout/stage_reads.h"

#include <string.h>

enum { MIN_BITS = 32, MAX_VALUES = 8 };  // what one cp.async moves at least; values of a loop

typedef struct value_walk {
  tl_pass_context *context;
  tl_op *kernel, *loop;
  bool has_copy, has_gemm;
  TL_VEC(tl_staged_region) values;
} value_walk;

static void look_at_loop(tl_op *op, void *user) {
  value_walk *walk = user;
  walk->has_gemm |= op->code == TL_OP_GEMM;
  walk->has_copy |= op->code == TL_OP_COPY && op->parent == walk->loop->regions[0] &&
                    tl_buffer_is_global(tl_op_arg(op, TL_GROUP_COPY_src)) &&
                    tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_COPY_dst));
}

// Whether the index is the same for all elements of the parallel in an iteration of the loop, and may differ in the
// next (`*out_moves`).
static bool is_of_iteration(tl_value *index, const value_walk *walk, const tl_op *parallel, tl_affine *out,
                            bool *out_moves) {
  *out = tl_affine_of(index);
  for (int32_t t = 0; t < out->num_terms; t++) {
    const tl_value *symbol = out->terms[t].symbol;
    const tl_op *owner = symbol->def ? symbol->def : symbol->block->parent;
    if (symbol->type->kind != TL_TYPE_INDEX || owner == parallel || tl_op_is_inside(owner, parallel)) return false;
    *out_moves |= owner == walk->loop;
  }
  return out->valid;
}

static bool value_of(tl_op *load, const value_walk *walk, const tl_op *parallel, tl_staged_region *out) {
  *out = (tl_staged_region){.tensor = tl_element_buffer(load)};
  const tl_op *tensor = out->tensor->def;
  bool moves = false, reads = tensor && tensor->code == TL_OP_TENSOR && !tl_op_has(tensor, TL_ATTR_OPTIONAL) &&
                              tl_op_int(tensor, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
  if (!reads || tl_element_rank(load) == 0 || tl_op_arg(load, TL_GROUP_LOAD_pad)) return false;
  if (tl_dtype_bits(out->tensor->type->dtype) < MIN_BITS || tl_op_has(load, TL_ATTR_EVICT)) return false;
  for (uint32_t d = 0; d < tl_element_rank(load); d++) {
    if (!is_of_iteration(tl_element_index(load, d), walk, parallel, &out->base[d], &moves)) return false;
    out->lo[d] = out->hi[d] = out->base[d].constant;
    out->base[d].constant = 0;
    out->checks[d] = tl_stage_checks(out, (int32_t)d, parallel);
  }
  return moves;
}

static bool is_same(const tl_staged_region *a, const tl_staged_region *b) {
  bool same = a->tensor == b->tensor;
  for (int32_t d = 0; d < a->tensor->type->rank && same; d++) {
    tl_affine rest = tl_affine_sub(&a->base[d], &b->base[d]);
    same = rest.valid && rest.num_terms == 0 && a->lo[d] == b->lo[d];
  }
  return same;
}

static void visit_load(tl_op *op, void *user) {
  value_walk *walk = user;
  const tl_op *parallel = op->code == TL_OP_LOAD ? tl_op_enclosing(op, TL_OP_PARALLEL) : NULL;
  tl_staged_region value;
  if (!parallel || parallel->parent != walk->loop->regions[0] || !value_of(op, walk, parallel, &value)) return;
  for (size_t v = 0; v < walk->values.len; v++) {
    if (!is_same(&walk->values.items[v], &value)) continue;
    tl_vec_push(&walk->values.items[v].loads, op);
    return;
  }
  // A parallel without a result may be a copy itself.
  if (parallel->num_results == 0 || walk->values.len == MAX_VALUES) return;
  tl_vec_push(&value.loads, op);
  tl_vec_push(&walk->values, value);
}

// A load of the value, before `before`.
static tl_op *build_load(tl_module *module, tl_value *stage, const tl_op *like, tl_op *before) {
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = like->loc;
  tl_value *index[TL_MAX_RANK];
  int64_t inside[TL_MAX_RANK] = {0};
  int32_t rank = stage->type->rank;
  for (int32_t d = 0; d < rank; d++) index[d] = tl_build_index(&builder, 0);
  tl_group groups[] = {TL_GROUP_OF(stage), {index, (uint32_t)rank}, TL_GROUP_EMPTY};
  const tl_type *type = like->results[0].type;
  tl_op *load = tl_build(&builder, TL_OP_LOAD, groups, &type, 1);
  tl_op_set_ints(module, load, TL_ATTR_CHECK, inside, rank);
  return load;
}

// The parallel that reads the value first reads the stage; those behind it what is read again directly after it: the
// slot is free then once the threads have met for any other reason.
static void stage_value(value_walk *walk, const tl_staged_region *value) {
  tl_module *module = walk->context->module;
  tl_op *parallel = tl_op_enclosing(value->loads.items[0], TL_OP_PARALLEL), *again = NULL;
  tl_value *stage = tl_stage_build_tile(walk->context, walk->kernel, value);
  tl_stage_build_plain_copy(walk->context, value, stage, parallel);
  tl_diag_report(walk->context->diags, TL_DIAG_REMARK_COPY, value->loads.items[0]->loc,
                 "the value of '%s' comes with the loop's copies, each iteration's with its tiles",
                 tl_buffer_name(value->tensor));
  for (size_t i = 0; i < value->loads.len; i++) {
    tl_op *load = value->loads.items[i], *fresh = again;
    if (tl_op_enclosing(load, TL_OP_PARALLEL) == parallel)
      fresh = build_load(module, stage, load, load);
    else if (!again)
      fresh = again = build_load(module, stage, load, parallel->next);
    tl_value_replace_uses(&load->results[0], &fresh->results[0]);
    tl_op_erase(load);
  }
}

static void visit_loop(tl_op *op, void *user) {
  value_walk *walk = user;
  if (op->code != TL_OP_FOR || !tl_op_has(op, TL_ATTR_PIPELINED)) return;
  walk->loop = op;
  walk->has_copy = walk->has_gemm = false;
  walk->values.len = 0;
  tl_walk(op, look_at_loop, walk);
  if (walk->has_gemm || !walk->has_copy) return;
  tl_walk(op, visit_load, walk);
  for (size_t v = 0; v < walk->values.len; v++) {
    stage_value(walk, &walk->values.items[v]);
    tl_vec_fini(&walk->values.items[v].loads);
  }
}

void tl_stage_values(tl_pass_context *context, tl_op *kernel) {
  value_walk walk = {.context = context, .kernel = kernel};
  tl_walk(kernel, visit_loop, &walk);
  tl_vec_fini(&walk.values);
}
