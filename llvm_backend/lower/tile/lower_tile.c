// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile values: one LLVM scalar a register.
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/state/lower.h"

static void set_all(tl_lower *l, tl_value *result, LLVMValueRef item) {
  int32_t n = tl_layout_num_registers(result->type->layout);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, n);
  for (int32_t i = 0; i < n; i++) items[i] = item;
  tl_lower_set(l, result, items, n);
}

static bool known_tile(tl_lower *l, tl_op *op, const tl_value *tile) {
  if (!tile->type->layout) {
    tl_lower_internal(l, op, "a tile without a layout");
    return false;
  }
  if (tl_session_type(l->session, tile->type->dtype)) return true;
  tl_lower_unsupported(l, op, "a tile of %s in registers has no lowering", tl_dtype_name(tile->type->dtype));
  return false;
}

void tl_lower_op_UNDEF_TILE(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  if (!known_tile(l, op, result)) return;
  int32_t variable = tl_lower_fragment_variable(l, result), n = tl_layout_num_registers(result->type->layout);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, n);
  for (int32_t i = 0; i < n; i++)
    items[i] = tl_lower_undefined(l, result->type->dtype, variable, tl_session_i32(l->session, i));
  tl_lower_set(l, result, items, n);
}

void tl_lower_op_SPLAT(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  if (known_tile(l, op, result)) set_all(l, result, tl_lower_get(l, tl_op_arg(op, TL_GROUP_SPLAT_value), 0));
}

void tl_lower_op_EXTRACT(tl_lower *l, tl_op *op) {
  tl_value *tile = tl_op_arg(op, TL_GROUP_EXTRACT_tile);
  tl_parallel *parallel = l->parallel;
  if (!parallel || !known_tile(l, op, tile)) {
    tl_lower_internal(l, op, "not inside a parallel");
    return;
  }
  LLVMValueRef out[TL_MAX_GROUP];
  for (int32_t e = 0; e < parallel->width; e++) {
    int32_t coord[TL_MAX_DIMS];
    for (int32_t d = 0; d < tile->type->rank; d++) {
      tl_value *index = tl_op_group_at(op, TL_GROUP_EXTRACT_index, (uint32_t)d);
      int64_t constant;
      if (tl_value_const_int(index, &constant)) {
        coord[d] = (int32_t)constant;
      } else if (index->block == parallel->op->regions[0]) {
        int32_t dim = (int32_t)index->index;
        coord[d] = parallel->place.reg[dim] + (dim == parallel->vec_dim ? parallel->element + e : 0);
      } else {
        tl_lower_internal(l, op, "an index is not the loop's own");
        return;
      }
    }
    int32_t reg = tl_lower_tile_register(tile->type->layout, coord);
    if (reg < 0) {
      tl_lower_internal(l, op, "the tile's layout does not follow the loop's");
      return;
    }
    out[e] = tl_lower_get(l, tile, reg);
  }
  tl_lower_set(l, tl_op_result(op, 0), out, parallel->width);
}

// Whether a register lies past the tile's edge in every thread.
static bool is_padding(const tl_layout *layout, const int32_t *coord) {
  for (int32_t d = 0; d < layout->rank; d++)
    if (coord[d] >= layout->shape[d]) return true;
  return false;
}

// Register renaming only: what moves between threads has become a store and a load of a shared tile before.
void tl_lower_op_CONVERT_LAYOUT(tl_lower *l, tl_op *op) {
  tl_value *tile = tl_op_arg(op, TL_GROUP_CONVERT_LAYOUT_tile), *result = tl_op_result(op, 0);
  if (!known_tile(l, op, result)) return;
  int32_t n = tl_layout_num_registers(result->type->layout);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, n);
  for (int32_t r = 0; r < n; r++) {
    int32_t coord[TL_MAX_DIMS];
    tl_layout_axis_coord(result->type->layout, TL_AXIS_REGISTER, r, coord);
    int32_t reg = tl_lower_tile_register(tile->type->layout, coord);
    if (reg < 0 && !is_padding(result->type->layout, coord)) {
      tl_lower_internal(l, op, "the layouts hold different elements in a thread");
      return;
    }
    items[r] = reg < 0 ? tl_lower_zero(l, result->type->dtype) : tl_lower_get(l, tile, reg);
  }
  tl_lower_set(l, result, items, n);
}
