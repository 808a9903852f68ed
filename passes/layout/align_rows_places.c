// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where rows begin and what room they need: what the kinds of align-rows share.
#include "passes/layout/align_rows.h"
#include "passes/layout/select_copies.h"
#include "passes/schedule/cost.h"

tl_affine tl_rows_rest(const tl_affine *sum, int64_t vec) {
  tl_affine rest = *sum;
  rest.num_terms = 0;
  for (int32_t i = 0; i < sum->num_terms; i++) {
    int64_t by = sum->terms[i].coefficient % vec, divisor = tl_value_divisor(sum->terms[i].symbol) % vec;
    if (by * divisor % vec == 0) continue;
    rest.terms[rest.num_terms] = sum->terms[i];
    rest.terms[rest.num_terms++].coefficient = (by + vec) % vec;
  }
  rest.constant = (sum->constant % vec + vec) % vec;
  return rest;
}

bool tl_rows_are_known(const tl_affine *rest, const tl_op *kernel) {
  for (int32_t i = 0; i < rest->num_terms; i++) {
    const tl_op *def = rest->terms[i].symbol->def;
    if (!def || def->parent != kernel->regions[0]) return false;
  }
  return true;
}

tl_value *tl_rows_stride(tl_builder *builder, const tl_value *tensor, int32_t d) {
  int64_t constant;
  tl_value *stride = tl_op_group_at(tensor->def, TL_GROUP_TENSOR_strides, (uint32_t)d);
  return tl_value_const_int(stride, &constant) ? tl_build_index(builder, constant) : stride;
}

bool tl_rows_are_dense(const tl_value *tensor) {
  int64_t stride;
  int32_t rank = tensor->type->rank;
  if (!tensor->def || tensor->def->code != TL_OP_TENSOR) return false;
  if (tl_op_group_len(tensor->def, TL_GROUP_TENSOR_strides) != (uint32_t)rank || !tl_buffer_is_row_contiguous(tensor))
    return false;
  for (int32_t d = rank - 2; d >= 0; d--) {
    int64_t size, inner;
    tl_value *value = tl_op_group_at(tensor->def, TL_GROUP_TENSOR_strides, (uint32_t)d);
    tl_value *of_inner = tl_op_group_at(tensor->def, TL_GROUP_TENSOR_strides, (uint32_t)d + 1);
    tl_value *dim = tl_buffer_dim_value(tensor, d + 1);
    if (d == rank - 2 && dim && tl_prove_equal(value, dim)) continue;
    if (!dim || !tl_value_const_int(dim, &size) || !tl_value_const_int(value, &stride) ||
        !tl_value_const_int(of_inner, &inner) || stride != size * inner)
      return false;
  }
  return true;
}

// How often the tile is there: once, or in each slot of the ring that a loop's copies will go through.
static int64_t times_kept(const tl_value *tile) {
  int64_t most = 1;
  for (const tl_use *use = tile->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_COPY || !tl_is_in_pipeline(use->owner)) continue;
    const tl_op *loop = tl_op_enclosing(use->owner, TL_OP_FOR);
    while (loop && !tl_op_has(loop, TL_ATTR_PIPELINED)) loop = tl_op_enclosing(loop->parent->parent, TL_OP_FOR);
    int64_t stages = loop ? tl_op_int(loop, TL_ATTR_STAGES, 2) : 1;
    if (stages > most) most = stages;
  }
  return most;
}

static int64_t bytes_of(const tl_value *tile) {
  return (int64_t)tl_dtype_bytes(tile->type->dtype, (uint64_t)tl_type_num_elements(tile->type)) * times_kept(tile);
}

bool tl_rows_have_room(tl_pass_context *context, const tl_op *kernel, const tl_value *tile, int64_t elements,
                       int32_t divisor) {
  int64_t bytes = 0, before = tl_type_num_elements(tile->type);
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_ALLOC && tl_buffer_is_shared(&op->results[0])) bytes += bytes_of(&op->results[0]);
  int64_t wider = bytes + bytes_of(tile) / before * (elements - before);
  int32_t threads = tl_op_threads(kernel->regions[0]->first);
  int32_t registers = (int32_t)tl_cost_planned(kernel, "registers", TL_COST_BASE_REGISTERS);
  return wider <= context->target->shared_max_bytes &&
         tl_cost_resident_blocks(context->target, threads, registers, wider) * divisor >=
             tl_cost_resident_blocks(context->target, threads, registers, bytes);
}

tl_value *tl_rows_as_one(tl_pass_context *context, tl_value *tensor) {
  tl_builder builder;
  tl_builder_after(&builder, context->module, tensor->def);
  int64_t size = 1;
  tl_value *all = tl_build_index(&builder, 1);
  for (int32_t d = 0; d < tensor->type->rank; d++) {
    tl_value *dim = tl_buffer_dim_value(tensor, d);
    all = tl_index_mul(&builder, all, dim ? dim : tl_build_index(&builder, tensor->type->dims[d]));
  }
  if (!tl_value_const_int(all, &size)) size = -1;
  const tl_type *type = tl_type_buffer(context->module, tensor->type->scope, tensor->type->dtype, &size, 1);
  tl_group groups[] = {TL_GROUP_OF(tensor), {&all, 1}};
  tl_op *view = tl_build(&builder, TL_OP_VIEW, groups, &type, 1);
  tl_op_set_str(context->module, view, TL_ATTR_NAME, tl_str_from(tl_buffer_name(tensor)));
  return tl_op_result(view, 0);
}

tl_value *tl_rows_build(tl_pass_context *context, tl_op *kernel, const tl_affine *rest) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, kernel->regions[0]->first);
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next)
    for (int32_t i = 0; i < rest->num_terms; i++)
      if (rest->terms[i].symbol->def == op) tl_builder_after(&builder, context->module, op);
  return tl_affine_build(&builder, rest);
}
