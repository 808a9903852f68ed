// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assigning everything that a `local` name holds: a scalar of the block, or an array of one element of a `parallel`.
#include "frontend/instantiate_internal.h"

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
  if (!tl_sema_check_local_place(sema, symbol, true, target)) return;
  tl_value *element = tl_sema_to_dtype(sema, value, symbol->value->type->dtype, loc);
  if (!element) return;
  sema->builder.loc = target;
  store_everywhere(sema, symbol, element);
}
