// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs small kernels element by element, with fragments as buffers or as tile values, so that promote-fragments can be
// compared before and after. Scalars are doubles; buffers and tiles are dense arrays of doubles.
#ifndef TL_TEST_UNIT_PASSES_PROMOTE_EXEC_H
#define TL_TEST_UNIT_PASSES_PROMOTE_EXEC_H

#include <math.h>

#include "passes/sync/verify_barriers_internal.h"
#include "passes_pipeline_ir.h"

typedef struct elem_run {
  tl_run_env env;  // number: bits of a double; slot: pointer to an array
  tl_arena arena;
  const tl_block *yielding;
} elem_run;

static inline double elem_get(elem_run *x, const tl_value *value) {
  double number;
  memcpy(&number, &tl_run_env_at(&x->env, value)->number, sizeof(number));
  return number;
}

static inline double elem_round(const tl_type *type, double number) {
  if (type->kind != TL_TYPE_SCALAR && type->kind != TL_TYPE_TILE && type->kind != TL_TYPE_BUFFER) return number;
  return tl_dtype_is_float(type->dtype) ? tl_dtype_round(type->dtype, number) : number;
}

static inline void elem_set(elem_run *x, const tl_value *value, double number) {
  memcpy(&tl_run_env_at(&x->env, value)->number, &number, sizeof(number));
}

static inline double *elem_array(elem_run *x, const tl_value *value) {
  tl_run_value *at = tl_run_env_at(&x->env, value);
  if (!at->known) {
    at->slot = (int64_t)(intptr_t)TL_NEW_ARRAY(&x->arena, double, tl_type_num_elements(value->type));
    at->known = true;
  }
  return (double *)(intptr_t)at->slot;
}

// A fresh array for a tile result.
static inline double *elem_new(elem_run *x, const tl_value *value) {
  tl_run_env_at(&x->env, value)->known = false;
  return elem_array(x, value);
}

static inline int64_t elem_linear(const tl_type *type, const int64_t *index, bool *out_inside) {
  int64_t linear = 0;
  *out_inside = true;
  for (int32_t d = 0; d < type->rank; d++) {
    if (index[d] < 0 || index[d] >= type->dims[d]) *out_inside = false;
    linear = linear * type->dims[d] + index[d];
  }
  return linear;
}

static inline bool elem_next(int64_t *index, const int64_t *extents, int32_t rank) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (++index[d] < extents[d]) return true;
    index[d] = 0;
  }
  return false;
}

static inline int64_t elem_attr(const tl_op *op, tl_attr_key key, int32_t at, int64_t fallback) {
  const tl_attr *attr = tl_op_attr(op, key);
  return attr ? attr->v.ints.items[at] : fallback;
}

typedef struct elem_side {
  const tl_value *buffer;
  int offsets, limits;
  tl_attr_key dims, steps;
} elem_side;

// Position of tile index `tile` on a side; false when it is out of bounds.
static inline bool elem_place(elem_run *x, const tl_op *op, const elem_side *side, const int64_t *tile, int32_t rank,
                              int64_t *out) {
  int64_t index[TL_MAX_RANK];
  for (int32_t d = 0; d < side->buffer->type->rank; d++)
    index[d] = (int64_t)elem_get(x, tl_op_group_at(op, side->offsets, (uint32_t)d));
  for (int32_t t = 0; t < rank; t++)
    index[elem_attr(op, side->dims, t, t)] += tile[t] * elem_attr(op, side->steps, t, 1);
  bool inside;
  *out = elem_linear(side->buffer->type, index, &inside);
  for (uint32_t d = 0; d < tl_op_group_len(op, side->limits); d++) {
    if (index[d] >= (int64_t)elem_get(x, tl_op_group_at(op, side->limits, d))) inside = false;
  }
  return inside;
}

static const elem_side *elem_source(const tl_op *op) {
  static elem_side side;
  side = op->code == TL_OP_COPY ? (elem_side){tl_op_arg(op, TL_GROUP_COPY_src), TL_GROUP_COPY_src_offsets,
                                              TL_GROUP_COPY_src_limits, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP}
                                : (elem_side){tl_op_arg(op, TL_GROUP_TILE_LOAD_src), TL_GROUP_TILE_LOAD_src_offsets,
                                              TL_GROUP_TILE_LOAD_src_limits, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP};
  return &side;
}

static const elem_side *elem_destination(const tl_op *op) {
  static elem_side side;
  side = op->code == TL_OP_COPY ? (elem_side){tl_op_arg(op, TL_GROUP_COPY_dst), TL_GROUP_COPY_dst_offsets,
                                              TL_GROUP_COPY_dst_limits, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP}
                                : (elem_side){tl_op_arg(op, TL_GROUP_TILE_STORE_dst), TL_GROUP_TILE_STORE_dst_offsets,
                                              TL_GROUP_TILE_STORE_dst_limits, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP};
  return &side;
}

// copy, tile_load and tile_store are one: from a box or tile to a box or tile.
static inline void elem_move(elem_run *x, const tl_op *op) {
  bool load = op->code == TL_OP_TILE_LOAD;
  bool store = op->code == TL_OP_TILE_STORE;
  const tl_value *pad = load ? tl_op_arg(op, TL_GROUP_TILE_LOAD_pad) : store ? NULL : tl_op_arg(op, TL_GROUP_COPY_pad);
  const tl_type *tile = load ? op->results[0].type : store ? tl_op_operand(op, 0)->type : NULL;
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_EXTENTS);
  int32_t rank = tile ? tile->rank : attr->v.ints.len;
  const int64_t *extents = tile ? tile->dims : attr->v.ints.items;
  const tl_value *from = store ? tl_op_operand(op, 0) : elem_source(op)->buffer;
  const tl_value *to = load ? &op->results[0] : elem_destination(op)->buffer;
  double *in = elem_array(x, from);
  double *out = load ? elem_new(x, to) : elem_array(x, to);
  int64_t index[TL_MAX_RANK] = {0};
  int64_t linear = 0;
  do {
    double number = pad ? elem_round(pad->type, elem_get(x, pad)) : 0;
    int64_t at = linear;
    if (store || elem_place(x, op, elem_source(op), index, rank, &at)) number = in[at];
    at = linear++;
    if (load || elem_place(x, op, elem_destination(op), index, rank, &at)) out[at] = elem_round(to->type, number);
  } while (elem_next(index, extents, rank));
}

static inline void elem_block(elem_run *x, const tl_block *block);

static inline void elem_copy_value(elem_run *x, const tl_value *to, const tl_value *from) {
  if (from->type->kind == TL_TYPE_TILE) elem_array(x, from);
  *tl_run_env_at(&x->env, to) = *tl_run_env_at(&x->env, from);
}

static inline void elem_parallel(elem_run *x, const tl_op *op) {
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  const tl_block *body = op->regions[0];
  int64_t index[TL_MAX_RANK] = {0};
  for (uint32_t r = 0; r < op->num_results; r++) elem_new(x, &op->results[r]);
  do {
    for (uint32_t d = 0; d < body->num_args; d++) elem_set(x, body->args[d], (double)index[d]);
    elem_block(x, body);
    int32_t map = 0;
    for (uint32_t r = 0; r < op->num_results; r++) {
      const tl_type *type = op->results[r].type;
      int64_t at[TL_MAX_RANK];
      for (int32_t d = 0; d < type->rank; d++) at[d] = index[elem_attr(op, TL_ATTR_MAPS, map++, 0)];
      bool inside;
      int64_t linear = elem_linear(type, at, &inside);
      if (inside) elem_array(x, &op->results[r])[linear] = elem_get(x, tl_op_operand(tl_block_terminator(body), r));
    }
  } while (elem_next(index, extents->v.ints.items, extents->v.ints.len));
}

static inline void elem_gemm(elem_run *x, const tl_op *op) {
  const tl_value *acc = tl_op_operand(op, 0);
  const tl_value *a = tl_op_operand(op, 1);
  const tl_value *b = tl_op_operand(op, 2);
  double *in = elem_array(x, acc);
  double *out = op->num_results ? elem_new(x, &op->results[0]) : in;
  double *left = elem_array(x, a);
  double *right = elem_array(x, b);
  int64_t m = acc->type->dims[0], n = acc->type->dims[1], depth = a->type->dims[1];
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = tl_op_has(op, TL_ATTR_CLEAR) ? 0 : in[i * n + j];
      for (int64_t k = 0; k < depth; k++) sum += left[i * depth + k] * right[k * n + j];
      out[i * n + j] = sum;
    }
  }
}

static inline double elem_binary(const tl_op *op, double a, double b) {
  switch (op->code) {
    case TL_OP_ADD:
      return a + b;
    case TL_OP_SUB:
      return a - b;
    case TL_OP_MUL:
      return a * b;
    case TL_OP_FLOORDIV:
      return floor(a / b);
    case TL_OP_MOD:
      return a - floor(a / b) * b;
    case TL_OP_MIN:
      return a < b ? a : b;
    case TL_OP_MAX:
      return a > b ? a : b;
    case TL_OP_AND:
      return (double)((int64_t)a & (int64_t)b);
    case TL_OP_OR:
      return (double)((int64_t)a | (int64_t)b);
    case TL_OP_CMP:
      switch ((tl_ir_enum_CMP)tl_op_int(op, TL_ATTR_CMP, 0)) {
        case TL_CMP_EQ:
          return a == b;
        case TL_CMP_NE:
          return a != b;
        case TL_CMP_LT:
          return a < b;
        case TL_CMP_LE:
          return a <= b;
        case TL_CMP_GT:
          return a > b;
        default:
          return a >= b;
      }
    default:
      return NAN;
  }
}

static inline void elem_access(elem_run *x, const tl_op *op) {
  bool is_store = op->code == TL_OP_STORE;
  const tl_value *buffer = is_store                 ? tl_op_arg(op, TL_GROUP_STORE_buffer)
                           : op->code == TL_OP_LOAD ? tl_op_arg(op, TL_GROUP_LOAD_buffer)
                                                    : tl_op_operand(op, 0);
  int group = is_store                    ? TL_GROUP_STORE_index
              : op->code == TL_OP_LOAD    ? TL_GROUP_LOAD_index
              : op->code == TL_OP_EXTRACT ? TL_GROUP_EXTRACT_index
                                          : TL_GROUP_IN_BOUNDS_index;
  int64_t index[TL_MAX_RANK];
  for (int32_t d = 0; d < buffer->type->rank; d++)
    index[d] = (int64_t)elem_get(x, tl_op_group_at(op, group, (uint32_t)d));
  bool inside;
  int64_t at = elem_linear(buffer->type, index, &inside);
  if (op->code == TL_OP_IN_BOUNDS) {
    elem_set(x, &op->results[0], inside);
  } else if (is_store) {
    if (inside) elem_array(x, buffer)[at] = elem_round(buffer->type, elem_get(x, tl_op_arg(op, TL_GROUP_STORE_value)));
  } else {
    elem_set(x, &op->results[0], inside ? elem_array(x, buffer)[at] : 0);
  }
}

static inline void elem_op(elem_run *x, const tl_op *op) {
  switch (op->code) {
    case TL_OP_ALLOC:
    case TL_OP_TENSOR:
      elem_array(x, &op->results[0]);
      return;
    case TL_OP_YIELD:
      return;
    case TL_OP_CONST: {
      const tl_attr *value = tl_op_attr(op, TL_ATTR_VALUE);
      elem_set(x, &op->results[0], value->is_float ? value->v.f : (double)value->v.i);
      return;
    }
    case TL_OP_FILL: {
      double *data = elem_array(x, tl_op_operand(op, 0));
      for (int64_t i = 0; i < tl_type_num_elements(tl_op_operand(op, 0)->type); i++)
        data[i] = elem_get(x, tl_op_operand(op, 1));
      return;
    }
    case TL_OP_SPLAT: {
      double *data = elem_new(x, &op->results[0]);
      for (int64_t i = 0; i < tl_type_num_elements(op->results[0].type); i++)
        data[i] = elem_get(x, tl_op_operand(op, 0));
      return;
    }
    case TL_OP_UNDEF_TILE:
      elem_new(x, &op->results[0]);
      return;
    case TL_OP_COPY:
    case TL_OP_TILE_LOAD:
    case TL_OP_TILE_STORE:
      elem_move(x, op);
      return;
    case TL_OP_PARALLEL:
      elem_parallel(x, op);
      return;
    case TL_OP_GEMM:
      elem_gemm(x, op);
      return;
    case TL_OP_LOAD:
    case TL_OP_STORE:
    case TL_OP_IN_BOUNDS:
    case TL_OP_EXTRACT:
      elem_access(x, op);
      return;
    case TL_OP_CAST:
      elem_set(x, &op->results[0], elem_round(op->results[0].type, elem_get(x, tl_op_operand(op, 0))));
      return;
    case TL_OP_SELECT:
      elem_copy_value(x, &op->results[0], tl_op_operand(op, elem_get(x, tl_op_operand(op, 0)) != 0 ? 1 : 2));
      return;
    case TL_OP_IF: {
      const tl_block *block = op->regions[elem_get(x, tl_op_operand(op, 0)) != 0 ? 0 : 1];
      elem_block(x, block);
      for (uint32_t i = 0; i < op->num_results; i++)
        elem_copy_value(x, &op->results[i], tl_op_operand(tl_block_terminator(block), i));
      return;
    }
    case TL_OP_FOR: {
      double lower = elem_get(x, tl_op_operand(op, 0)), upper = elem_get(x, tl_op_operand(op, 1)),
             step = elem_get(x, tl_op_operand(op, 2));
      const tl_block *body = op->regions[0];
      tl_run_value carried[16];
      for (uint32_t v = 0; v + 3 < op->num_operands; v++) {
        if (tl_op_operand(op, 3 + v)->type->kind == TL_TYPE_TILE) elem_array(x, tl_op_operand(op, 3 + v));
        carried[v] = *tl_run_env_at(&x->env, tl_op_operand(op, 3 + v));
      }
      for (double i = lower; i < upper; i += step) {
        elem_set(x, body->args[0], i);
        for (uint32_t v = 0; v < op->num_results; v++) *tl_run_env_at(&x->env, body->args[v + 1]) = carried[v];
        elem_block(x, body);
        for (uint32_t v = 0; v < op->num_results; v++)
          carried[v] = *tl_run_env_at(&x->env, tl_op_operand(tl_block_terminator(body), v));
      }
      for (uint32_t v = 0; v < op->num_results; v++) *tl_run_env_at(&x->env, &op->results[v]) = carried[v];
      return;
    }
    default:
      break;
  }
  if (op->num_results == 1 && op->num_operands == 2) {
    double number = elem_binary(op, elem_get(x, tl_op_operand(op, 0)), elem_get(x, tl_op_operand(op, 1)));
    elem_set(x, &op->results[0], elem_round(op->results[0].type, number));
  }
}

static inline void elem_block(elem_run *x, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) elem_op(x, op);
}

// Runs the kernel on inputs that depend on position and argument; the tensors' contents are appended to `out`.
static inline void elem_kernel(tl_module *module, tl_strbuf *out) {
  elem_run x = {0};
  tl_op *kernel = tl_module_kernel(module);
  tl_run_env_init(&x.env, kernel);
  tl_arena_init(&x.arena);
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_TENSOR) continue;
    double *data = elem_array(&x, &op->results[0]);
    for (int64_t i = 0; i < tl_type_num_elements(op->results[0].type); i++) {
      data[i] = tl_dtype_round(op->results[0].type->dtype,
                               (double)((i * 7 + tl_op_int(op, TL_ATTR_ARG, 0) * 13) % 23) / 4 - 2);
    }
  }
  elem_block(&x, kernel->regions[0]);
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_TENSOR) continue;
    double *data = elem_array(&x, &op->results[0]);
    for (int64_t i = 0; i < tl_type_num_elements(op->results[0].type); i++) tl_strbuf_appendf(out, "%g ", data[i]);
    tl_strbuf_append_c(out, "\n");
  }
  tl_run_env_fini(&x.env);
  tl_arena_fini(&x.arena);
}

#endif
