// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making ops: the general constructor and shorthands.
#include <assert.h>

#include "ir/ir.h"
#include "ir/op_internal.h"
#include "ir/scalar/scalar.h"

void tl_builder_at_end(tl_builder *builder, tl_module *module, tl_block *block) {
  *builder = (tl_builder){.module = module, .block = block};
  if (block->parent) builder->loc = block->parent->loc;
}

void tl_builder_before(tl_builder *builder, tl_module *module, tl_op *op) {
  *builder = (tl_builder){.module = module, .block = op->parent, .before = op, .loc = op->loc};
}

void tl_builder_after(tl_builder *builder, tl_module *module, tl_op *op) {
  *builder = (tl_builder){.module = module, .block = op->parent, .before = op->next, .loc = op->loc};
}

tl_op *tl_build(tl_builder *builder, tl_opcode code, const tl_group *groups, const tl_type *const *results,
                uint32_t num_results) {
  const tl_op_info *info = tl_op_info_of(code);
  tl_arena *arena = &builder->module->arena;
  tl_op *op = TL_NEW(arena, tl_op);
  op->code = code;
  op->loc = builder->loc;
  for (int g = 0; g < info->num_groups; g++) op->num_operands += groups[g].len;
  op->operands = TL_NEW_ARRAY(arena, tl_use, op->num_operands);
  op->group_sizes = TL_NEW_ARRAY(arena, uint32_t, info->num_groups);
  uint32_t at = 0;
  for (int g = 0; g < info->num_groups; g++) {
    op->group_sizes[g] = groups[g].len;
    for (uint32_t i = 0; i < groups[g].len; i++, at++) {
      op->operands[at].owner = op;
      tl_use_link(&op->operands[at], groups[g].values[i]);
    }
  }
  tl_op_set_results(builder->module, op, results, num_results);
  op->num_regions = (uint32_t)info->num_regions;
  op->regions = TL_NEW_ARRAY(arena, tl_block *, op->num_regions);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    op->regions[r] = TL_NEW(arena, tl_block);
    op->regions[r]->parent = op;
  }
  tl_op_link(op, builder->block, builder->before);
  return op;
}

// An op with one result and one value in each group.
static tl_op *build_simple(tl_builder *builder, tl_opcode code, tl_value *const *values, int count,
                           const tl_type *type) {
  tl_group groups[3] = {0};
  for (int i = 0; i < count; i++) groups[i] = (tl_group){&values[i], 1};
  return tl_build(builder, code, groups, &type, 1);
}

tl_value *tl_build_const_int(tl_builder *builder, const tl_type *type, int64_t value) {
  tl_op *op = build_simple(builder, TL_OP_CONST, NULL, 0, type);
  tl_attr attr = {.key = TL_ATTR_VALUE, .v.i = value};
  tl_op_set_attr(builder->module, op, &attr);
  return &op->results[0];
}

tl_value *tl_build_const_float(tl_builder *builder, const tl_type *type, double value) {
  tl_op *op = build_simple(builder, TL_OP_CONST, NULL, 0, type);
  tl_attr attr = {.key = TL_ATTR_VALUE, .is_float = true, .v.f = value};
  tl_op_set_attr(builder->module, op, &attr);
  return &op->results[0];
}

tl_value *tl_build_zero(tl_builder *builder, tl_dtype dtype) {
  const tl_type *type = tl_type_scalar(builder->module, dtype);
  return tl_dtype_is_float(dtype) ? tl_build_const_float(builder, type, 0.0) : tl_build_const_int(builder, type, 0);
}

tl_value *tl_build_index(tl_builder *builder, int64_t value) {
  return tl_build_const_int(builder, tl_type_index(builder->module), value);
}

tl_value *tl_build_bool(tl_builder *builder, bool value) {
  return tl_build_const_int(builder, tl_type_scalar(builder->module, TL_DTYPE_BOOL), value);
}

tl_value *tl_build_binary(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b) {
  assert(tl_op_info_of(code)->num_groups == 2 && a->type == b->type);
  return build_simple(builder, code, (tl_value *[]){a, b}, 2, a->type)->results;
}

tl_value *tl_build_unary(tl_builder *builder, tl_opcode code, tl_value *a) {
  assert(tl_op_info_of(code)->num_groups == 1);
  return build_simple(builder, code, &a, 1, a->type)->results;
}

tl_value *tl_build_cmp(tl_builder *builder, int pred, tl_value *a, tl_value *b) {
  assert(a->type == b->type);
  const tl_type *type = tl_type_scalar(builder->module, TL_DTYPE_BOOL);
  tl_op *op = build_simple(builder, TL_OP_CMP, (tl_value *[]){a, b}, 2, type);
  tl_op_set_int(builder->module, op, TL_ATTR_CMP, pred);
  return op->results;
}

tl_value *tl_build_select(tl_builder *builder, tl_value *condition, tl_value *a, tl_value *b) {
  assert(a->type == b->type);
  return build_simple(builder, TL_OP_SELECT, (tl_value *[]){condition, a, b}, 3, a->type)->results;
}

tl_value *tl_build_cast(tl_builder *builder, tl_value *a, const tl_type *type) {
  if (a->type == type) return a;
  return build_simple(builder, TL_OP_CAST, &a, 1, type)->results;
}

tl_value *tl_build_math(tl_builder *builder, int function, tl_value *a) {
  const tl_type *type = tl_type_scalar(builder->module, tl_scalar_math_result(function, a->type->dtype));
  tl_op *op = build_simple(builder, TL_OP_MATH, &a, 1, type);
  tl_op_set_int(builder->module, op, TL_ATTR_MATH, function);
  return op->results;
}

tl_value *tl_build_cast_rounded(tl_builder *builder, int rounding, tl_value *a, tl_value *bits, const tl_type *type) {
  tl_group groups[2] = {{&a, 1}, {&bits, bits ? 1 : 0}};
  tl_op *op = tl_build(builder, TL_OP_CAST_ROUNDED, groups, &type, 1);
  tl_op_set_int(builder->module, op, TL_ATTR_ROUNDING, rounding);
  return op->results;
}

tl_value *tl_build_math2(tl_builder *builder, int function, tl_value *a, tl_value *b) {
  tl_op *op = build_simple(builder, TL_OP_MATH2, (tl_value *[]){a, b}, 2, a->type);
  tl_op_set_int(builder->module, op, TL_ATTR_MATH2, function);
  return op->results;
}

tl_op *tl_build_yield(tl_builder *builder, tl_value *const *values, uint32_t len) {
  tl_group group = {values, len};
  return tl_build(builder, TL_OP_YIELD, &group, NULL, 0);
}

tl_value *tl_block_add_arg(tl_module *module, tl_block *block, const tl_type *type, const char *name) {
  tl_value *arg = TL_NEW(&module->arena, tl_value);
  arg->type = type;
  arg->block = block;
  arg->index = block->num_args;
  arg->number = module->num_values++;
  if (name) arg->name = tl_module_intern(module, tl_str_from(name));
  // The array doubles whenever its length is a power of two.
  if ((block->num_args & (block->num_args - 1)) == 0) {
    tl_value **args = TL_NEW_ARRAY(&module->arena, tl_value *, block->num_args ? 2 * block->num_args : 1);
    for (uint32_t i = 0; i < block->num_args; i++) args[i] = block->args[i];
    block->args = args;
  }
  block->args[block->num_args++] = arg;
  return arg;
}
