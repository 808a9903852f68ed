// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers: tensors, views, shared tiles and their stages.
#include <string.h>

#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

// A dim or stride as a constant or a value.
static void set_extent(tl_value *value, int64_t *constant, tl_value **variable) {
  *variable = value;
  if (!tl_value_const_int(value, constant)) *constant = -1;
}

// The pointer was set when the function was made; see lower_kernel.c.
void tl_lower_op_TENSOR(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_result(op, 0));
  if (!buffer) {
    tl_lower_internal(l, op, "a tensor that is no parameter");
    return;
  }
  for (int32_t d = 0; d < buffer->rank; d++) {
    set_extent(tl_op_group_at(op, TL_GROUP_TENSOR_dims, (uint32_t)d), &buffer->dims[d], &buffer->dim_values[d]);
    set_extent(tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d), &buffer->strides[d],
               &buffer->stride_values[d]);
    buffer->stride_divisors[d] = tl_value_divisor(tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d));
  }
}

static int64_t row_bytes(const tl_type *type) {
  int64_t last = type->rank > 0 ? type->dims[type->rank - 1] : 1;
  return (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)last);
}

void tl_lower_op_ALLOC(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  const tl_type *type = result->type;
  if (type->scope == TL_SCOPE_LOCAL) {
    tl_buffer *array = tl_lower_local_array(l, type);
    array->variable = tl_lower_local_variable(l, result);
    tl_lower_set_buffer(l, result, array);
    return;
  }
  if (type->scope != TL_SCOPE_SHARED) {
    tl_lower_unsupported(l, op, "%s tiles in memory have no lowering", tl_ir_enum_text(TL_IR_ENUM_SCOPE, type->scope));
    return;
  }
  if (!result->uses) return;
  if (!tl_op_has(op, TL_ATTR_OFFSET)) {
    tl_lower_internal(l, op, "a shared tile without an offset");
    return;
  }
  tl_buffer *buffer = TL_NEW(&l->arena, tl_buffer);
  buffer->scope = TL_SCOPE_SHARED;
  buffer->dtype = type->dtype;
  buffer->rank = type->rank;
  int32_t shape[TL_MAX_DIMS];
  for (int32_t d = 0; d < type->rank; d++) {
    buffer->dims[d] = type->dims[d];
    shape[d] = (int32_t)type->dims[d];
  }
  const tl_attr *layout = tl_op_attr(op, TL_ATTR_SHARED_LAYOUT);
  buffer->shared = layout ? *layout->v.shared : (tl_shared_layout){.pitch_bytes = (int32_t)row_bytes(type)};
  int64_t bytes = tl_shared_layout_bytes(&buffer->shared, shape, type->rank, tl_dtype_bits(type->dtype));
  buffer->stage_bytes = (bytes + 15) / 16 * 16;
  LLVMValueRef offset = tl_session_i32(l->session, tl_op_int(op, TL_ATTR_OFFSET, 0));
  buffer->base = LLVMBuildGEP2(l->entry, l->session->i8, l->shared_base, &offset, 1, "");
  tl_lower_set_buffer(l, result, buffer);
}

// The result of `op`: what `tile` is, at a base that the caller moves. NULL, and reported: the tile has no memory.
static tl_buffer *derive_buffer(tl_lower *l, tl_op *op, tl_value *tile) {
  const tl_buffer *from = tl_lower_buffer(l, tile);
  if (!from) {
    tl_lower_internal(l, op, "the tile has no memory");
    return NULL;
  }
  tl_buffer *buffer = TL_NEW(&l->arena, tl_buffer);
  *buffer = *from;
  tl_lower_set_buffer(l, tl_op_result(op, 0), buffer);
  return buffer;
}

void tl_lower_op_STAGE_TILE(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = derive_buffer(l, op, tl_op_arg(op, TL_GROUP_STAGE_TILE_tile));
  if (!buffer) return;
  LLVMValueRef stage = tl_lower_get(l, tl_op_arg(op, TL_GROUP_STAGE_TILE_stage), 0);
  stage = tl_lower_index_as(l, l->builder, stage, l->session->i32);
  LLVMValueRef offset = LLVMBuildNSWMul(l->builder, stage, tl_session_i32(l->session, buffer->stage_bytes), "");
  buffer->base = LLVMBuildGEP2(l->builder, l->session->i8, buffer->base, &offset, 1, "");
}

void tl_lower_op_PEER_TILE(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = derive_buffer(l, op, tl_op_arg(op, TL_GROUP_PEER_TILE_tile));
  if (!buffer) return;
  buffer->base =
      tl_lower_peer_pointer(l, buffer->base, tl_op_int(op, TL_ATTR_ACROSS, 0), tl_op_arg(op, TL_GROUP_PEER_TILE_place));
}

// Who reads a part asks for its place (tl_lower_matrix_of).
void tl_lower_op_PART_TILE(tl_lower *l, tl_op *op) {
  derive_buffer(l, op, tl_op_arg(op, TL_GROUP_PART_TILE_tile));
}

// Bytes for each element that a part begins later along dim `d`, whatever it is a multiple of; 0: the pattern of the
// layout differs there.
static int64_t bytes_along(const tl_buffer *buffer, int32_t d, int64_t divisor) {
  const tl_shared_layout *shared = &buffer->shared;
  int64_t rows = 1, chunks = (int64_t)shared->swizzle_mask + 1, bits = tl_dtype_bits(buffer->dtype);
  int32_t last = buffer->rank - 1;
  for (int32_t i = d + 1; i < last; i++) rows *= buffer->dims[i];
  if (d < last) {
    int64_t period = shared->swizzle_mask ? chunks << shared->swizzle_shift : 1;
    return divisor * rows % period == 0 ? rows * shared->pitch_bytes : 0;
  }
  enum { CHUNK_BYTES = 16 };
  int64_t bytes = divisor * bits / 8, period = shared->swizzle_mask ? chunks * CHUNK_BYTES : 1;
  if (shared->panel_bytes || bits < 8 || bytes % period != 0) return 0;
  return bits / 8;
}

// Moves the base to where the part begins along dim `d`; false where only the place of each element tells.
static bool move_base(tl_lower *l, tl_buffer *buffer, int32_t d, LLVMValueRef offset, int64_t divisor) {
  int64_t bytes = bytes_along(buffer, d, divisor);
  if (bytes == 0 && d == buffer->rank - 1 && buffer->shared.panel_bytes) {
    // Whole panels: all rows of one lie before the next one.
    int64_t panel = (int64_t)buffer->shared.panel_bytes * 8 / tl_dtype_bits(buffer->dtype), rows = 1;
    if (divisor % panel != 0) return false;
    for (int32_t i = 0; i < d; i++) rows *= buffer->dims[i];
    offset = LLVMBuildLShr(l->builder, offset, tl_session_i32(l->session, __builtin_ctzll((uint64_t)panel)), "");
    bytes = rows * buffer->shared.pitch_bytes;
  }
  if (bytes == 0) return false;
  offset = LLVMBuildNUWMul(l->builder, offset, tl_session_i32(l->session, bytes), "");
  buffer->base = LLVMBuildGEP2(l->builder, l->session->i8, buffer->base, &offset, 1, "");
  return true;
}

bool tl_lower_matrix_of(tl_lower *l, tl_value *operand, tl_lower_matrix *out) {
  tl_buffer *buffer = tl_lower_buffer(l, operand);
  *out = (tl_lower_matrix){.buffer = buffer};
  if (!buffer || buffer->scope != TL_SCOPE_SHARED || buffer->rank < 2) return false;
  out->dims[0] = buffer->rank - 2;
  out->dims[1] = buffer->rank - 1;
  tl_op *part = operand->def;
  if (!part || part->code != TL_OP_PART_TILE) return buffer->rank == 2;
  const int64_t *dims = tl_op_attr(part, TL_ATTR_SRC_DIMS)->v.ints.items;
  tl_buffer *moved = TL_NEW(&l->arena, tl_buffer);
  *moved = *buffer;
  out->buffer = moved;
  for (int32_t i = 0; i < 2; i++) out->dims[i] = (int32_t)dims[i];
  for (int32_t d = 0; d < buffer->rank; d++) {
    tl_value *offset = tl_op_group_at(part, TL_GROUP_PART_TILE_offsets, (uint32_t)d);
    int64_t divisor = tl_value_divisor(offset);
    if (d == out->dims[1]) out->column_divisor = divisor;
    if (tl_value_const_int(offset, &out->fixed[d])) continue;
    LLVMValueRef value = tl_lower_index_as(l, l->builder, tl_lower_get(l, offset, 0), l->session->i32);
    if (!move_base(l, moved, d, value, divisor)) out->moving[d] = value;
  }
  return true;
}

// Row-major strides of a view, as far as they are constants; others are made of LLVM values by the frontend's dims.
static bool dense_strides(tl_buffer *view) {
  int64_t stride = 1;
  for (int32_t d = view->rank - 1; d >= 0; d--) {
    view->strides[d] = stride;
    view->stride_divisors[d] = stride;
    if (view->dims[d] < 0 && d > 0) return false;
    stride *= view->dims[d];
  }
  return true;
}

// Strides that run-time dims make: products held as values of their own.
static void dynamic_strides(tl_lower *l, tl_op *op, tl_buffer *view) {
  LLVMTypeRef i64 = l->session->i64;
  LLVMValueRef stride = LLVMConstInt(i64, 1, 0);
  int64_t divisor = 1;
  for (int32_t d = view->rank - 1; d >= 0; d--) {
    view->stride_divisors[d] = divisor;
    if (LLVMIsAConstantInt(stride)) {
      view->strides[d] = LLVMConstIntGetSExtValue(stride);
    } else {
      // A stand-in value carries the LLVM stride through the value table.
      tl_value *stand_in = TL_NEW(&l->arena, tl_value);
      stand_in->type = op->results[0].type;
      tl_lower_set_one(l, stand_in, stride);
      view->strides[d] = -1;
      view->stride_values[d] = stand_in;
    }
    LLVMValueRef dim = view->dims[d] >= 0
                           ? tl_session_i64(l->session, view->dims[d])
                           : tl_lower_index_as(l, l->builder, tl_lower_get(l, view->dim_values[d], 0), i64);
    stride = LLVMBuildMul(l->builder, stride, dim, "");
    divisor = tl_gcd(
        divisor * tl_gcd(view->dims[d] >= 0 ? view->dims[d] : tl_value_divisor(view->dim_values[d]), TL_ACCESS_ALIGN),
        TL_ACCESS_ALIGN);
  }
}

void tl_lower_op_VIEW(tl_lower *l, tl_op *op) {
  tl_buffer *from = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_VIEW_buffer));
  const tl_type *type = tl_op_result(op, 0)->type;
  if (!from) {
    tl_lower_internal(l, op, "the viewed buffer has no memory");
    return;
  }
  tl_buffer *view = TL_NEW(&l->arena, tl_buffer);
  *view = *from;
  view->dtype = type->dtype;
  view->rank = type->rank;
  for (int32_t d = 0; d < type->rank; d++) {
    view->dims[d] = type->dims[d];
    view->dim_values[d] = NULL;
    if (tl_op_group_len(op, TL_GROUP_VIEW_dims) > (uint32_t)d)
      set_extent(tl_op_group_at(op, TL_GROUP_VIEW_dims, (uint32_t)d), &view->dims[d], &view->dim_values[d]);
  }
  if (from->scope == TL_SCOPE_GLOBAL) {
    if (!dense_strides(view)) dynamic_strides(l, op, view);
  } else {
    const tl_type *source = tl_op_arg(op, TL_GROUP_VIEW_buffer)->type;
    if (from->shared.swizzle_mask || from->shared.panel_bytes || from->shared.pitch_bytes != row_bytes(source)) {
      tl_lower_unsupported(l, op, "a view of a padded or swizzled shared tile has no lowering");
      return;
    }
    view->shared = (tl_shared_layout){.pitch_bytes = (int32_t)row_bytes(type)};
  }
  tl_lower_set_buffer(l, tl_op_result(op, 0), view);
}

void tl_lower_op_PRESENT(tl_lower *l, tl_op *op) {
  LLVMValueRef base = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_PRESENT_buffer))->base;
  LLVMValueRef address = LLVMBuildPtrToInt(l->builder, base, l->session->i64, "");
  tl_lower_set_one(l, tl_op_result(op, 0),
                   LLVMBuildICmp(l->builder, LLVMIntNE, address, tl_session_i64(l->session, 0), ""));
}
