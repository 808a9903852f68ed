// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes a sum wait for the end of its loop, once it is known which values of the loop become parts.
#include "passes/layout/waiting_sums.h"

// What parts of a tile are: its dims and one for the parts, in the layout of the sums' parts.
static const tl_type *part_type(const tl_waiting_sum *self, const tl_type *type) {
  int64_t dims[TL_MAX_RANK];
  for (int32_t d = 0; d < self->part.rank; d++) dims[d] = self->part.shape[d];
  tl_module *module = self->context->module;
  return tl_type_tile(module, type->dtype, dims, self->part.rank, tl_module_layout(module, &self->part));
}

// What added to another part leaves it as it is.
static tl_value *build_neutral(tl_builder *builder, const tl_type *type, double zero) {
  return tl_dtype_is_float(type->dtype) ? tl_build_const_float(builder, type, zero)
                                        : tl_build_const_int(builder, type, 0);
}

// `element` in the first part, `zero` in the others.
static tl_value *build_once(tl_builder *builder, tl_value *part, tl_value *element, double zero) {
  tl_value *is_first = tl_build_cmp(builder, TL_CMP_EQ, part, tl_build_index(builder, 0));
  return tl_build_select(builder, is_first, element, build_neutral(builder, element->type, zero));
}

// A parallel over the parts of tiles, with these results.
static tl_op *build_parallel(const tl_waiting_sum *self, tl_builder *builder, const tl_type *const *types,
                             uint32_t num_types) {
  tl_module *module = self->context->module;
  int32_t rank = self->part.rank;
  int64_t extents[TL_MAX_RANK];
  TL_VEC(int64_t) maps = {0};
  for (int32_t d = 0; d < rank; d++) extents[d] = self->part.shape[d];
  for (uint32_t i = 0; i < num_types; i++)
    for (int32_t d = 0; d < rank; d++) tl_vec_push(&maps, d);
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, types, num_types);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, extents, rank);
  tl_op_set_ints(module, parallel, TL_ATTR_MAPS, maps.items, (int32_t)maps.len);
  tl_op_set_layout(module, parallel, TL_ATTR_THREAD_LAYOUT, &self->part);
  tl_vec_fini(&maps);
  for (int32_t d = 0; d < rank; d++)
    tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), d + 1 < rank ? NULL : "part");
  return parallel;
}

// The tile as parts, of which the first is the tile.
static tl_value *build_parts(tl_waiting_sum *self, tl_value *tile, tl_op *before) {
  tl_module *module = self->context->module;
  const tl_type *type = part_type(self, tile->type);
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  const tl_op *def = tile->def;
  double zero = 1.0;
  if (def && def->code == TL_OP_SPLAT && def->operands[0].value->def->code == TL_OP_CONST) {
    const tl_attr *value = tl_op_attr(def->operands[0].value->def, TL_ATTR_VALUE);
    zero = value->is_float ? value->v.f : (double)value->v.i;
  }
  if (zero == 0.0) {
    tl_group groups[] = {TL_GROUP_OF(def->operands[0].value)};
    tl_value *splat = tl_op_result(tl_build(&builder, TL_OP_SPLAT, groups, &type, 1), 0);
    tl_add_part(self, splat);
    return splat;
  }
  tl_op *parallel = build_parallel(self, &builder, &type, 1);
  tl_block *body = parallel->regions[0];
  tl_builder inside;
  tl_builder_at_end(&inside, module, body);
  tl_group groups[] = {TL_GROUP_OF(tile), {body->args, body->num_args - 1}};
  const tl_type *scalar = tl_type_scalar(module, type->dtype);
  tl_value *element = tl_op_result(tl_build(&inside, TL_OP_EXTRACT, groups, &scalar, 1), 0);
  tl_value *part = build_once(&inside, body->args[body->num_args - 1], element, -0.0);
  tl_build_yield(&inside, &part, 1);
  tl_op_result(parallel, 0)->name = tile->name;
  tl_add_part(self, tl_op_result(parallel, 0));
  return tl_op_result(parallel, 0);
}

// ---- parallels

typedef struct part_body {
  tl_waiting_sum *sum;
  tl_op *from;  // the parallel over whole tiles
  tl_block *to;
  tl_builder builder;  // in `to`
  tl_value_map map;    // elements
} part_body;

static tl_value *emit(part_body *self, tl_value *element);

// Element of a tile of parts.
static tl_value *emit_extract(part_body *self, const tl_op *extract) {
  tl_group groups[] = {TL_GROUP_OF(tl_op_arg(extract, TL_GROUP_EXTRACT_tile)), {self->to->args, self->to->num_args}};
  const tl_type *type = tl_op_result(extract, 0)->type;
  return tl_op_result(tl_build(&self->builder, TL_OP_EXTRACT, groups, &type, 1), 0);
}

// Operand of what adds its operands up, or takes one of them, where another one is of parts.
static void join_parts(part_body *self, tl_op *copy, const tl_op *op) {
  bool is_select = op->code == TL_OP_SELECT, is_fma = op->code == TL_OP_FMA;
  if (op->code != TL_OP_ADD && op->code != TL_OP_SUB && !is_select && !is_fma) return;
  for (uint32_t i = is_fma ? 2 : is_select ? 1 : 0; i < op->num_operands; i++) {
    if (tl_term_of(self->sum, self->from, tl_op_operand(op, i)) == TL_TERM_PART) continue;
    bool is_taken_away = op->code == TL_OP_SUB && i == 1;
    tl_builder builder;
    tl_builder_before(&builder, self->builder.module, copy);
    tl_value *part = self->to->args[self->to->num_args - 1];
    tl_op_set_operand(copy, i, build_once(&builder, part, tl_op_operand(copy, i), is_taken_away ? 0.0 : -0.0));
  }
}

static tl_value *emit(part_body *self, tl_value *element) {
  tl_op *def = element->def;
  tl_value *known = tl_value_map_get(&self->map, element);
  if (known != element || !def || def->parent != self->from->regions[0]) return known;
  tl_term term = tl_term_of(self->sum, self->from, element);
  tl_value *result = NULL;
  self->builder.loc = def->loc;
  if (def->code == TL_OP_EXTRACT && term == TL_TERM_PART) {
    result = emit_extract(self, def);
  } else {
    for (uint32_t i = 0; i < def->num_operands; i++) emit(self, tl_op_operand(def, i));
    tl_op *copy = tl_op_clone(&self->builder, def, &self->map);
    if (term == TL_TERM_PART) join_parts(self, copy, def);
    result = tl_op_result(copy, element->index);
  }
  tl_value_map_set(&self->map, element, result);
  return result;
}

static bool holds_only_parts(tl_waiting_sum *self, tl_op *parallel) {
  for (uint32_t i = 0; i < parallel->num_results; i++)
    if (tl_op_result(parallel, i)->uses && !tl_is_part(self, tl_op_result(parallel, i))) return false;
  return true;
}

// Computes the results that are parts in a parallel of their own. The rest of the other one is dead code.
static void rewrite_parallel(tl_waiting_sum *self, tl_op *parallel) {
  TL_VEC(const tl_type *) types = {0};
  TL_VEC(tl_value *) old = {0};
  TL_VEC(tl_value *) elements = {0};
  for (uint32_t i = 0; i < parallel->num_results; i++) {
    tl_value *result = tl_op_result(parallel, i);
    if (!result->uses || !tl_is_part(self, result)) continue;
    tl_vec_push(&old, result);
    tl_vec_push(&types, part_type(self, result->type));
  }
  part_body body = {.sum = self, .from = parallel};
  tl_builder builder;
  tl_builder_before(&builder, self->context->module, parallel);
  tl_op *fresh = build_parallel(self, &builder, types.items, (uint32_t)types.len);
  body.to = fresh->regions[0];
  tl_builder_at_end(&body.builder, self->context->module, body.to);
  for (uint32_t d = 0; d < parallel->regions[0]->num_args; d++) {
    body.to->args[d]->name = parallel->regions[0]->args[d]->name;
    tl_value_map_set(&body.map, parallel->regions[0]->args[d], body.to->args[d]);
  }
  const tl_op *yield = tl_block_terminator(parallel->regions[0]);
  for (size_t i = 0; i < old.len; i++) {
    tl_value *element = emit(&body, tl_op_operand(yield, old.items[i]->index));
    tl_vec_push(&elements, element);
  }
  tl_build_yield(&body.builder, elements.items, (uint32_t)elements.len);
  bool is_done = holds_only_parts(self, parallel);
  for (size_t i = 0; i < old.len; i++) {
    tl_value *part = tl_op_result(fresh, (uint32_t)i);
    part->name = old.items[i]->name;
    tl_value_replace_uses(old.items[i], part);
    tl_add_part(self, part);
  }
  if (is_done) tl_op_erase(parallel);
  tl_value_map_fini(&body.map);
  tl_vec_fini(&types);
  tl_vec_fini(&old);
  tl_vec_fini(&elements);
}

// ---- control

// Lets operand `index` of an op that hands parts on be parts.
static void hand_on_parts(tl_waiting_sum *self, tl_op *op, uint32_t index) {
  tl_value *value = tl_op_operand(op, index);
  if (!tl_is_part(self, value)) tl_op_set_operand(op, index, build_parts(self, value, op));
}

static void rewrite_control(tl_waiting_sum *self, const tl_value *value) {
  tl_op *op = value->def ? value->def : value->block->parent;
  uint32_t index = value->def ? value->index : value->index - 1;
  for (uint32_t r = 0; r < op->num_regions; r++) hand_on_parts(self, tl_block_terminator(op->regions[r]), index);
  if (op->code == TL_OP_FOR) hand_on_parts(self, op, 3 + index);
}

// Behind the loop the parts are combined for those who read the sum.
static void combine(tl_waiting_sum *self) {
  tl_module *module = self->context->module;
  tl_value *parts = tl_op_result(self->loop, self->index);
  const tl_type *whole = parts->type;
  parts->type = part_type(self, whole);
  tl_builder builder;
  tl_builder_after(&builder, module, self->loop);
  tl_group groups[] = {TL_GROUP_OF(parts), TL_GROUP_EMPTY};
  tl_op *reduce = tl_build(&builder, TL_OP_REDUCE, groups, &whole, 1);
  tl_op_set_int(module, reduce, TL_ATTR_REDUCTION, TL_REDUCTION_SUM);
  tl_op_set_ints(module, reduce, TL_ATTR_AXES, &(int64_t){whole->rank}, 1);
  tl_op_result(reduce, 0)->name = parts->name;
  for (tl_use *use = parts->uses, *next; use; use = next) {
    next = use->next;
    if (use->owner != reduce)
      tl_op_set_operand(use->owner, (uint32_t)(use - use->owner->operands), tl_op_result(reduce, 0));
  }
}

static bool is_defined_by(const tl_value *value, tl_opcode code) {
  return value->def && value->def->code == code;
}

static void make_partial(tl_waiting_sum *self, tl_op *reduce) {
  tl_op_set_unit(self->context->module, reduce, TL_ATTR_PARTIAL);
  tl_op_set_int(self->context->module, reduce, TL_ATTR_EACH, TL_EACH_THREAD);
}

void tl_let_sum_wait(tl_waiting_sum *self) {
  // Parts that are made on the way stand behind those that were found.
  size_t found = self->parts.len;
  for (size_t i = 0; i < found; i++) {
    tl_value *part = self->parts.items[i];
    if (!is_defined_by(part, TL_OP_PARALLEL) && !is_defined_by(part, TL_OP_REDUCE)) rewrite_control(self, part);
  }
  for (size_t i = 0; i < found; i++) {
    tl_value *part = self->parts.items[i];
    if (is_defined_by(part, TL_OP_PARALLEL)) continue;
    part->type = part_type(self, part->type);
    if (is_defined_by(part, TL_OP_REDUCE)) make_partial(self, part->def);
  }
  // The results of one parallel are rewritten together: when the others come they have no uses any more.
  for (size_t i = 0; i < found; i++) {
    tl_value *part = self->parts.items[i];
    if (part->uses && is_defined_by(part, TL_OP_PARALLEL)) rewrite_parallel(self, part->def);
  }
  combine(self);
}
