// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assigning everything that a `local` name holds: a scalar of the block, or an array of one element of a `parallel`.
#include "frontend/elaborate/instantiate_internal.h"

// Loops over all elements of an array around one store.
static void store_everywhere(tl_sema *sema, const tl_symbol *symbol, tl_value *element) {
  const tl_type *type = symbol->value->type;
  tl_builder outer = sema->builder;
  tl_value *indices[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; ++d) {
    tl_value *range[3] = {tl_build_index(&sema->builder, 0), tl_build_index(&sema->builder, type->dims[d]),
                          tl_build_index(&sema->builder, 1)};
    tl_group groups[4] = {TL_GROUP_OF(range[0]), TL_GROUP_OF(range[1]), TL_GROUP_OF(range[2]), TL_GROUP_EMPTY};
    tl_op *loop = tl_build(&sema->builder, TL_OP_FOR, groups, NULL, 0);
    indices[d] = tl_block_add_arg(sema->module, loop->regions[0], tl_type_index(sema->module), NULL);
    tl_instantiate_enter(sema, loop, 0);
    sema->builder.loc = outer.loc;
  }
  tl_group groups[3] = {TL_GROUP_OF(element), TL_GROUP_OF(symbol->value), {indices, (uint32_t)type->rank}};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
  sema->builder = outer;
}

void tl_instantiate_fill_local(tl_sema *sema, const tl_symbol *symbol, const tl_sema_value *value, tl_loc target,
                               tl_loc loc) {
  if (!tl_sema_validate_local_place(sema, symbol, true, target)) return;
  tl_value *element = tl_sema_to_dtype(sema, value, symbol->value->type->dtype, loc);
  if (!element) return;
  sema->builder.loc = target;
  store_everywhere(sema, symbol, element);
}

// The element's type as memory holds it.
static tl_value *store_in_shared(tl_sema *sema, const tl_sema_value *value, tl_value *index, tl_loc loc) {
  tl_dtype dtype = TL_DTYPE_F32;
  if (value->kind == TL_SEMA_VALUE) {
    dtype = value->value->type->kind == TL_TYPE_INDEX ? TL_DTYPE_I64 : value->value->type->dtype;
  }
  tl_value *element = tl_sema_to_dtype(sema, value, dtype, loc);
  if (!element) return NULL;
  tl_builder builder;
  tl_builder_before(&builder, sema->module, tl_module_kernel(sema->module)->regions[0]->first);
  builder.loc = loc;
  int64_t one = 1;
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_SHARED, dtype, &one, 1);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, alloc, TL_ATTR_NAME, TL_STR("result"));
  tl_value *shared = tl_op_result(alloc, 0);
  shared->name = tl_module_intern(sema->module, TL_STR("result"));
  sema->builder.loc = loc;
  tl_group groups[3] = {TL_GROUP_OF(element), TL_GROUP_OF(shared), TL_GROUP_OF(index)};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
  return shared;
}

tl_sema_value tl_instantiate_reduced_scalar(tl_sema *sema, const tl_expr *expr) {
  size_t mark = sema->reductions.len;
  tl_instantiate_reductions(sema, expr);
  tl_tile_context tile = {.rank = 1, .extents = {1}};
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, tile.extents, 1, NULL, expr->loc);
  tile.indices[0] = scope.op->regions[0]->args[0];
  sema->tile = &tile;
  tl_sema_value value = tl_sema_expr(sema, expr);
  sema->tile = NULL;
  tl_value *shared = value.kind == TL_SEMA_POISON ? NULL : store_in_shared(sema, &value, tile.indices[0], expr->loc);
  tl_instantiate_end_parallel(sema, &scope);
  sema->reductions.len = mark;
  if (!shared) return tl_sema_poison();
  sema->builder.loc = expr->loc;
  tl_value *zero = tl_build_index(&sema->builder, 0);
  const tl_type *type = tl_type_scalar(sema->module, shared->type->dtype);
  tl_group groups[3] = {TL_GROUP_OF(shared), TL_GROUP_OF(zero), TL_GROUP_EMPTY};
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, groups, &type, 1), 0));
}

tl_sema_value tl_instantiate_block_value(tl_sema *sema, const tl_expr *expr) {
  bool reduces = !sema->in_parallel && tl_instantiate_has_reduction(expr);
  return reduces ? tl_instantiate_reduced_scalar(sema, expr) : tl_sema_expr(sema, expr);
}

tl_sema_value tl_instantiate_block_condition(tl_sema *sema, const tl_expr *expr) {
  if (sema->in_parallel || !tl_instantiate_has_reduction(expr)) return tl_sema_condition(sema, expr);
  tl_sema_value value = tl_instantiate_reduced_scalar(sema, expr);
  return tl_sema_to_bool(sema, &value, expr->loc);
}
