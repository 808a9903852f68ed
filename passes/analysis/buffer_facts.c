// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of buffers whatever accesses them: sizes, strides, what divides them, alignment, names.
#include "passes/analysis/memory_access.h"

int64_t tl_common_divisor(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

const int64_t *tl_op_ints(const tl_op *op, tl_attr_key key, int32_t *out_len) {
  const tl_attr *attr = tl_op_attr(op, key);
  if (!attr) {
    if (out_len) *out_len = 0;
    return NULL;
  }
  if (out_len) *out_len = attr->v.ints.len;
  return attr->v.ints.items;
}

// ---- buffers

tl_value *tl_buffer_dim_value(const tl_value *buffer, int32_t dim) {
  const tl_op *op = buffer->def;
  if (!op) return NULL;
  if (op->code == TL_OP_TENSOR) {
    return tl_op_group_len(op, TL_GROUP_TENSOR_dims) > (uint32_t)dim ? tl_op_group_at(op, TL_GROUP_TENSOR_dims, dim)
                                                                     : NULL;
  }
  if (op->code == TL_OP_VIEW) {
    return tl_op_group_len(op, TL_GROUP_VIEW_dims) > (uint32_t)dim ? tl_op_group_at(op, TL_GROUP_VIEW_dims, dim) : NULL;
  }
  return NULL;
}

int64_t tl_buffer_dim_divisor(const tl_value *buffer, int32_t dim) {
  tl_value *value = tl_buffer_dim_value(buffer, dim);
  int64_t divisor = 1;
  if (value) {
    divisor = tl_value_divisor(value);
  } else if (buffer->type->dims[dim] >= 0) {
    divisor = buffer->type->dims[dim];
  }
  return divisor == 0 ? 1 : divisor;
}

bool tl_buffer_is_global(const tl_value *buffer) {
  return buffer->type->scope == TL_SCOPE_GLOBAL;
}

bool tl_buffer_is_shared(const tl_value *buffer) {
  return buffer->type->scope == TL_SCOPE_SHARED;
}

// Pitch of a shared tile in elements; 0 when nothing is fixed beyond row-major. A view has rows of its own, without
// gaps.
static int64_t shared_pitch_elems(const tl_value *buffer) {
  if (buffer->def && buffer->def->code == TL_OP_VIEW) return 0;
  const tl_op *root = tl_buffer_root(buffer);
  const tl_attr *attr = root && root->code == TL_OP_ALLOC ? tl_op_attr(root, TL_ATTR_SHARED_LAYOUT) : NULL;
  int bits = tl_dtype_bits(buffer->type->dtype);
  if (!attr || bits < 8) return 0;
  return attr->v.shared->pitch_bytes / (bits / 8);
}

int64_t tl_buffer_stride_divisor(const tl_value *buffer, int32_t dim) {
  const tl_op *op = buffer->def;
  int32_t rank = buffer->type->rank;
  if (op && op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) > (uint32_t)dim) {
    return tl_value_divisor(tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)dim));
  }
  if (dim == rank - 1) return 1;
  int64_t divisor = tl_buffer_is_shared(buffer) ? shared_pitch_elems(buffer) : 0;
  if (divisor == 0) divisor = tl_buffer_dim_divisor(buffer, rank - 1);
  for (int32_t d = dim + 1; d < rank - 1; d++) divisor *= tl_buffer_dim_divisor(buffer, d);
  return divisor;
}

bool tl_buffer_is_row_contiguous(const tl_value *buffer) {
  const tl_op *op = buffer->def;
  int32_t rank = buffer->type->rank;
  if (op && op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) == (uint32_t)rank && rank > 0) {
    int64_t stride = 0;
    tl_value *value = tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)rank - 1);
    return tl_value_const_int(value, &stride) && stride == 1;
  }
  return rank > 0;
}

int64_t tl_buffer_align(const tl_value *buffer) {
  const tl_op *root = tl_buffer_root(buffer);
  if (root && root->code == TL_OP_TENSOR) return tl_op_int(root, TL_ATTR_ALIGN, 16);
  return buffer->type->scope == TL_SCOPE_SHARED ? 128 : 16;
}

const char *tl_buffer_name(const tl_value *buffer) {
  const tl_op *op = buffer->def;
  const char *name = op ? tl_op_str(op, TL_ATTR_NAME) : NULL;
  if (!name) {
    op = tl_buffer_root(buffer);
    name = op ? tl_op_str(op, TL_ATTR_NAME) : NULL;
  }
  if (!name) name = buffer->name;
  return name ? name : "tile";
}
