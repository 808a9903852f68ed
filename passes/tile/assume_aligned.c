// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/tile/assume_aligned.h"

#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "passes/analysis/memory_access.h"
#include "support/vec.h"

enum { UNIT_BITS = 128, UNIT_BYTES = UNIT_BITS / 8, MAX_DIVISOR = 128, MAX_DEPTH = 32 };

typedef TL_VEC(tl_op *) op_list;

// The dynamic params that a size is computed from. False: also from something else, or from too much.
static bool collect_params(tl_value *value, int depth, op_list *out) {
  tl_op *op = value->def;
  if (!op || depth > MAX_DEPTH || op->num_regions > 0) return false;
  if (op->code == TL_OP_DYN_PARAM) {
    for (size_t i = 0; i < out->len; i++)
      if (out->items[i] == op) return true;
    tl_vec_push(out, op);
    return true;
  }
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (!collect_params(tl_op_operand(op, i), depth + 1, out)) return false;
  return true;
}

static int64_t divisor_of(const tl_op *param) {
  return tl_op_int(param, TL_ATTR_DIVISOR, 1);
}

// Where a divisor of 1 is no promise it is not written.
static void set_divisor(tl_module *module, tl_op *param, int64_t divisor) {
  if (divisor == 1)
    tl_op_remove_attr(param, TL_ATTR_DIVISOR);
  else
    tl_op_set_int(module, param, TL_ATTR_DIVISOR, divisor);
}

// An author's `dynamic(1)`.
static bool is_fixed(const tl_op *param) {
  return tl_op_has(param, TL_ATTR_DIVISOR) && divisor_of(param) == 1;
}

// Gives the params of `size` the least power of two as a further divisor that makes it a multiple of `unit`.
static bool raise_size(tl_module *module, tl_value *size, int64_t unit) {
  op_list params = {0};
  bool is_raised = false, can = tl_value_divisor(size) % unit != 0 && collect_params(size, 0, &params);
  for (size_t i = 0; i < params.len; i++) can = can && !is_fixed(params.items[i]);
  if (can) {
    int64_t *had = tl_xcalloc(params.len + 1, sizeof *had);
    for (size_t i = 0; i < params.len; i++) had[i] = divisor_of(params.items[i]);
    for (int64_t power = 2; !is_raised && power <= MAX_DIVISOR; power *= 2) {
      for (size_t i = 0; i < params.len; i++)
        set_divisor(module, params.items[i], had[i] / tl_common_divisor(had[i], power) * power);
      is_raised = tl_value_divisor(size) % unit == 0;
    }
    for (size_t i = 0; i < params.len && !is_raised; i++) set_divisor(module, params.items[i], had[i]);
    free(had);
  }
  tl_vec_fini(&params);
  return is_raised;
}

// The innermost size first: with it those of outer dims may be right already.
static bool raise_strides(tl_module *module, tl_value *buffer) {
  const tl_op *op = buffer->def;
  int32_t rank = buffer->type->rank;
  int64_t unit = UNIT_BITS / tl_dtype_bits(buffer->type->dtype);
  bool is_raised = false;
  bool has_strides = op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) == (uint32_t)rank;
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (has_strides) {
      int64_t constant;
      tl_value *stride = tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d);
      if (!tl_value_const_int(stride, &constant)) is_raised |= raise_size(module, stride, unit);
    }
    // A vector at the end of a row is inside of the tensor, or outside. Of one row that is asked behind the loop over
    // all vectors, once.
    tl_value *size = tl_buffer_dim_value(buffer, d);
    if (rank > 1 && d == rank - 1 && size) is_raised |= raise_size(module, size, unit);
  }
  return is_raised;
}

bool tl_assume_aligned(tl_module *module) {
  tl_op *kernel = tl_module_kernel(module);
  bool is_raised = false;
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    bool is_tensor = op->code == TL_OP_TENSOR, is_view = op->code == TL_OP_VIEW;
    if (!is_tensor && !(is_view && tl_buffer_is_global(tl_op_result(op, 0)))) continue;
    int64_t align = is_tensor ? tl_op_int(op, TL_ATTR_ALIGN, UNIT_BYTES) : UNIT_BYTES;
    if (align % UNIT_BYTES != 0) {
      tl_op_set_int(module, op, TL_ATTR_ALIGN, align / tl_common_divisor(align, UNIT_BYTES) * UNIT_BYTES);
      is_raised = true;
    }
    is_raised |= raise_strides(module, tl_op_result(op, 0));
  }
  if (is_raised) tl_op_set_unit(module, kernel, TL_ATTR_ALIGNED);
  return is_raised;
}

// ---- comparison

static tl_attr_key key_of(const tl_op *op) {
  return op->code == TL_OP_TENSOR ? TL_ATTR_ALIGN : TL_ATTR_DIVISOR;
}

// The op of `kernel` that promises something about the same param. NULL: none, as where a pass found it unused.
static const tl_op *find_promise(const tl_op *kernel, const tl_op *of) {
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next)
    if (op->code == of->code && strcmp(tl_op_str(op, TL_ATTR_NAME), tl_op_str(of, TL_ATTR_NAME)) == 0) return op;
  return NULL;
}

static void set_promise(tl_module *module, tl_op *op, bool has, int64_t value) {
  if (has)
    tl_op_set_int(module, op, key_of(op), value);
  else
    tl_op_remove_attr(op, key_of(op));
}

typedef struct promise {
  tl_op *op;
  bool has;
  int64_t value;
} promise;
typedef TL_VEC(promise) promises;

static bool has_same_text(const tl_module *a, const tl_module *b) {
  tl_strbuf text_a = {0}, text_b = {0};
  tl_module_print(a, &text_a);
  tl_module_print(b, &text_b);
  bool is_same = tl_str_equal(tl_strbuf_view(&text_a), tl_strbuf_view(&text_b));
  tl_strbuf_fini(&text_a);
  tl_strbuf_fini(&text_b);
  return is_same;
}

bool tl_is_same_version(const tl_module *from, tl_module *to) {
  const tl_op *plain = tl_module_kernel(from);
  tl_op *kernel = tl_module_kernel(to);
  promises own = {0};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_DYN_PARAM && op->code != TL_OP_TENSOR) continue;
    const tl_op *other = find_promise(plain, op);
    if (!other) continue;
    tl_vec_push(&own, ((promise){op, tl_op_has(op, key_of(op)), tl_op_int(op, key_of(op), 1)}));
    set_promise(to, op, tl_op_has(other, key_of(op)), tl_op_int(other, key_of(op), 1));
  }
  tl_op_remove_attr(kernel, TL_ATTR_ALIGNED);
  bool is_same = has_same_text(from, to);
  tl_op_set_unit(to, kernel, TL_ATTR_ALIGNED);
  for (size_t i = 0; i < own.len; i++) set_promise(to, own.items[i].op, own.items[i].has, own.items[i].value);
  tl_vec_fini(&own);
  return is_same;
}
