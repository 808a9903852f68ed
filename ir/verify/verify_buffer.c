// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of buffers and their elements.
#include "ir/verify/verify_internal.h"

static const tl_type *buffer_result(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = op->results[0].type;
  if (type->kind == TL_TYPE_BUFFER) return type;
  tl_verify_fail(verifier, op, "the result is %s, not a buffer", tl_verify_type_text(verifier, type));
  return NULL;
}

// Dims given as operands agree with those of the type where both are constants.
static void verify_dims(tl_verifier *verifier, const tl_op *op, int group, const tl_type *type) {
  uint32_t len = tl_op_group_len(op, group);
  if (len != (uint32_t)type->rank) {
    tl_verify_fail(verifier, op, "%u dims for a type of rank %d", len, type->rank);
    return;
  }
  for (uint32_t d = 0; d < len; d++) {
    int64_t dim;
    bool is_const = tl_value_const_int(tl_op_group_at(op, group, d), &dim);
    if (is_const && type->dims[d] >= 0 && type->dims[d] != dim) {
      tl_verify_fail(verifier, op, "dim %u is %lld, but %lld in the type", d, (long long)dim, (long long)type->dims[d]);
    }
    if (is_const && dim < 0) tl_verify_fail(verifier, op, "dim %u is negative", d);
  }
}

static void verify_tensor(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = buffer_result(verifier, op);
  if (type == NULL) return;
  if (type->scope != TL_SCOPE_GLOBAL) tl_verify_fail(verifier, op, "a tensor is global");
  verify_dims(verifier, op, TL_GROUP_TENSOR_dims, type);
  if (tl_op_group_len(op, TL_GROUP_TENSOR_strides) != (uint32_t)type->rank) {
    tl_verify_fail(verifier, op, "%u strides for a type of rank %d", tl_op_group_len(op, TL_GROUP_TENSOR_strides),
                   type->rank);
  }
  int64_t align = tl_op_int(op, TL_ATTR_ALIGN, 0);
  if (align < 1 || (align & (align - 1)) != 0) tl_verify_fail(verifier, op, "'align' is no power of two");
}

// Bits of all elements, -1 when not known.
static int64_t type_bits(const tl_type *type) {
  int64_t count = tl_type_num_elements(type), bits;
  if (count < 0 || __builtin_mul_overflow(count, tl_dtype_bits(type->dtype), &bits)) return -1;
  return bits;
}

static void verify_view(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = buffer_result(verifier, op), *from = op->operands[0].value->type;
  if (type == NULL) return;
  if (type->scope != from->scope) tl_verify_fail(verifier, op, "a view keeps the scope");
  if (from->scope != TL_SCOPE_GLOBAL && from->scope != TL_SCOPE_SHARED) {
    tl_verify_fail(verifier, op, "only global and shared buffers have views");
  }
  verify_dims(verifier, op, TL_GROUP_VIEW_dims, type);
  int64_t old_bits = type_bits(from), new_bits = type_bits(type);
  if (old_bits >= 0 && new_bits >= 0 && old_bits != new_bits) {
    tl_verify_fail(verifier, op, "the view has %lld bits, the buffer %lld", (long long)new_bits, (long long)old_bits);
  }
}

static void verify_shared_layout(tl_verifier *verifier, const tl_op *op, const tl_type *type) {
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_SHARED_LAYOUT);
  if (attr == NULL) return;
  const tl_shared_layout *layout = attr->v.shared;
  if (type->scope != TL_SCOPE_SHARED) tl_verify_fail(verifier, op, "only shared tiles have a shared layout");
  int64_t row = type->rank > 0 ? type->dims[type->rank - 1] : 1;
  int64_t row_bytes = (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)row);
  int32_t mask = layout->swizzle_mask, panel = layout->panel_bytes;
  if (panel < 0 || (panel & (panel - 1)) != 0 || panel % 16 != 0) {
    tl_verify_fail(verifier, op, "a panel of %d bytes is no power of two of at least 16", panel);
    return;
  }
  if (panel && row_bytes > panel) row_bytes = panel;
  if (layout->pitch_bytes < row_bytes) {
    tl_verify_fail(verifier, op, "a pitch of %d bytes for rows of %lld", layout->pitch_bytes, (long long)row_bytes);
  }
  if (mask == 0) return;
  if (mask != 1 && mask != 3 && mask != 7) {
    tl_verify_fail(verifier, op, "the swizzle mask is not 1, 3 or 7");
    return;
  }
  if (layout->swizzle_shift < 0 || layout->swizzle_shift > 30)
    tl_verify_fail(verifier, op, "the swizzle shift is out of range");
  // Chunks are exchanged inside groups of mask + 1: a row and a panel hold whole groups.
  if (panel % (16 * (mask + 1)) != 0)
    tl_verify_fail(verifier, op, "a swizzled panel is a multiple of %d bytes", 16 * (mask + 1));
  if (layout->pitch_bytes % (16 * (mask + 1)) != 0) {
    tl_verify_fail(verifier, op, "a swizzled pitch is a multiple of %d bytes", 16 * (mask + 1));
  }
}

static void verify_alloc(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = buffer_result(verifier, op);
  if (type == NULL) return;
  if (type->scope == TL_SCOPE_GLOBAL) tl_verify_fail(verifier, op, "a tile of the block is not global");
  for (int32_t d = 0; d < type->rank; d++) {
    if (type->dims[d] < 1) tl_verify_fail(verifier, op, "dim %d of a tile is not a positive constant", d);
  }
  tl_verify_elements(verifier, op, type->dims, type->rank);
  if (tl_op_has(op, TL_ATTR_DEPTH) && type->scope != TL_SCOPE_SHARED) {
    tl_verify_fail(verifier, op, "only shared tiles have a depth");
  }
  if (tl_op_has(op, TL_ATTR_OFFSET) && type->scope != TL_SCOPE_SHARED) {
    tl_verify_fail(verifier, op, "only shared tiles have an offset");
  }
  verify_shared_layout(verifier, op, type);
}

// The subscripts of an element, and the type of a scalar that is read or written there.
static void verify_element(tl_verifier *verifier, const tl_op *op, const tl_type *buffer, int index_group,
                           const tl_type *scalar) {
  uint32_t len = tl_op_group_len(op, index_group);
  if (len != (uint32_t)buffer->rank) {
    tl_verify_fail(verifier, op, "%u subscripts of %s", len, tl_verify_type_text(verifier, buffer));
  }
  const tl_attr *check = tl_op_attr(op, TL_ATTR_CHECK);
  if (check && check->v.ints.len != buffer->rank) {
    tl_verify_fail(verifier, op, "'check' has %d entries for rank %d", check->v.ints.len, buffer->rank);
  }
  if (scalar && !tl_type_is_scalar_of(scalar, buffer->dtype)) {
    tl_verify_fail(verifier, op, "an element of %s is no %s", tl_verify_type_text(verifier, buffer),
                   tl_verify_type_text(verifier, scalar));
  }
}

static void verify_atomic(tl_verifier *verifier, const tl_op *op) {
  const tl_type *buffer = tl_op_arg(op, TL_GROUP_ATOMIC_buffer)->type;
  const tl_type *value = tl_op_arg(op, TL_GROUP_ATOMIC_value)->type;
  verify_element(verifier, op, buffer, TL_GROUP_ATOMIC_index, value);
  if (buffer->scope != TL_SCOPE_GLOBAL && buffer->scope != TL_SCOPE_SHARED) {
    tl_verify_fail(verifier, op, "atomics work on global and shared buffers");
  }
  if (op->num_results > 1) tl_verify_fail(verifier, op, "'atomic' has at most one result");
  if (op->num_results == 1 && op->results[0].type != value) {
    tl_verify_fail(verifier, op, "the previous value is %s, not %s", tl_verify_type_text(verifier, value),
                   tl_verify_type_text(verifier, op->results[0].type));
  }
}

static void verify_compare(tl_verifier *verifier, const tl_op *op) {
  const tl_value *compare = tl_op_arg(op, TL_GROUP_ATOMIC_compare);
  bool is_cas = tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) == TL_ATOMIC_CAS;
  if (is_cas != (compare != NULL)) tl_verify_fail(verifier, op, "'compare' goes with 'cas' and nothing else");
  if (compare && compare->type != tl_op_arg(op, TL_GROUP_ATOMIC_value)->type)
    tl_verify_fail(verifier, op, "'compare' and the value have different types");
}

static void verify_wait_until(tl_verifier *verifier, const tl_op *op) {
  const tl_type *buffer = tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer)->type;
  verify_element(verifier, op, buffer, TL_GROUP_WAIT_UNTIL_index, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_value)->type);
  if (buffer->scope != TL_SCOPE_GLOBAL && buffer->scope != TL_SCOPE_SHARED)
    tl_verify_fail(verifier, op, "waits for global and shared elements");
}

void tl_verify_buffer_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_TENSOR:
      verify_tensor(verifier, op);
      break;
    case TL_OP_VIEW:
      verify_view(verifier, op);
      break;
    case TL_OP_ALLOC:
      verify_alloc(verifier, op);
      break;
    case TL_OP_LOAD: {
      const tl_value *pad = tl_op_arg(op, TL_GROUP_LOAD_pad);
      verify_element(verifier, op, tl_op_arg(op, TL_GROUP_LOAD_buffer)->type, TL_GROUP_LOAD_index, op->results[0].type);
      if (pad && pad->type != op->results[0].type)
        tl_verify_fail(verifier, op, "'pad' and the result have different types");
      break;
    }
    case TL_OP_STORE:
      verify_element(verifier, op, tl_op_arg(op, TL_GROUP_STORE_buffer)->type, TL_GROUP_STORE_index,
                     tl_op_arg(op, TL_GROUP_STORE_value)->type);
      break;
    case TL_OP_PRESENT: {
      const tl_op *tensor = tl_op_arg(op, TL_GROUP_PRESENT_buffer)->def;
      if (!tensor || !tl_op_has(tensor, TL_ATTR_OPTIONAL))
        tl_verify_fail(verifier, op, "the buffer is no optional tensor");
      if (!tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_BOOL))
        tl_verify_fail(verifier, op, "the result is no bool");
      break;
    }
    case TL_OP_IN_BOUNDS:
      verify_element(verifier, op, tl_op_arg(op, TL_GROUP_IN_BOUNDS_buffer)->type, TL_GROUP_IN_BOUNDS_index, NULL);
      if (!tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_BOOL))
        tl_verify_fail(verifier, op, "the result is not bool");
      break;
    case TL_OP_ATOMIC:
      verify_atomic(verifier, op);
      verify_compare(verifier, op);
      break;
    case TL_OP_WAIT_UNTIL:
      verify_wait_until(verifier, op);
      break;
    default:
      break;
  }
}
