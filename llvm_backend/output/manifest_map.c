// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps in the manifest: how the launcher makes the hidden parameters of TENSOR_MAP ops.
#include <string.h>

#include "llvm_backend/output/backend_internal.h"

// A product of expressions as one.
static tl_status product(tl_backend *backend, const tl_mexpr *a, int64_t factor, const tl_mexpr **out) {
  int64_t constant, scaled;
  if (tl_mexpr_is_int(a, &constant) && !__builtin_mul_overflow(constant, factor, &scaled)) {
    *out = tl_mexpr_int(&backend->arena, scaled);
    return TL_OK;
  }
  *out = a;
  if (factor == 1) return TL_OK;
  tl_strbuf text = {0};
  tl_strbuf_append_char(&text, '(');
  tl_mexpr_print(a, &text);
  tl_strbuf_appendf(&text, ") * %lld", (long long)factor);
  tl_status status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  return status;
}

static tl_status times(tl_backend *backend, const tl_mexpr *a, const tl_mexpr *b, const tl_mexpr **out) {
  int64_t constant;
  if (tl_mexpr_is_int(b, &constant)) return product(backend, a, constant, out);
  if (tl_mexpr_is_int(a, &constant)) return product(backend, b, constant, out);
  tl_strbuf text = {0};
  tl_strbuf_append_char(&text, '(');
  tl_mexpr_print(a, &text);
  tl_strbuf_append_c(&text, ") * (");
  tl_mexpr_print(b, &text);
  tl_strbuf_append_char(&text, ')');
  tl_status status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  return status;
}

// Dims and strides (elements) of a global buffer: of the tensor, or dense ones of a view.
static tl_status shape_of(tl_backend *backend, tl_lower *l, tl_op *op, const tl_value *buffer, const tl_mexpr **dims,
                          const tl_mexpr **strides) {
  int32_t rank = buffer->type->rank;
  if (buffer->def->code == TL_OP_TENSOR) {
    for (int32_t d = 0; d < rank; d++) {
      uint32_t i = (uint32_t)d;
      TL_TRY(tl_backend_to_expr(backend, l, op, tl_op_group_at(buffer->def, TL_GROUP_TENSOR_dims, i), &dims[d]));
      TL_TRY(tl_backend_to_expr(backend, l, op, tl_op_group_at(buffer->def, TL_GROUP_TENSOR_strides, i), &strides[d]));
    }
    return TL_OK;
  }
  const tl_mexpr *stride = tl_mexpr_int(&backend->arena, 1);
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (buffer->type->dims[d] >= 0)
      dims[d] = tl_mexpr_int(&backend->arena, buffer->type->dims[d]);
    else
      TL_TRY(
          tl_backend_to_expr(backend, l, op, tl_op_group_at(buffer->def, TL_GROUP_VIEW_dims, (uint32_t)d), &dims[d]));
    strides[d] = stride;
    TL_TRY(times(backend, dims[d], stride, &stride));
  }
  return TL_OK;
}

static tl_tensormap_type type_of(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F16:
      return TL_TENSORMAP_F16;
    case TL_DTYPE_BF16:
      return TL_TENSORMAP_BF16;
    case TL_DTYPE_F32:
      return TL_TENSORMAP_F32;
    case TL_DTYPE_F64:
      return TL_TENSORMAP_F64;
    case TL_DTYPE_I32:
      return TL_TENSORMAP_S32;
    case TL_DTYPE_I64:
      return TL_TENSORMAP_S64;
    default:
      break;
  }
  // Only bits are moved.
  static const tl_tensormap_type by_bytes[] = {
      [1] = TL_TENSORMAP_U8, [2] = TL_TENSORMAP_U16, [4] = TL_TENSORMAP_U32, [8] = TL_TENSORMAP_U64};
  return by_bytes[tl_dtype_bits(dtype) / 8];
}

static bool is_written(const tl_value *map) {
  for (const tl_use *use = map->uses; use; use = use->next) {
    const tl_value *dst = use->owner->code == TL_OP_COPY ? tl_op_arg(use->owner, TL_GROUP_COPY_dst) : NULL;
    if (dst && dst->type->scope == TL_SCOPE_GLOBAL) return true;
  }
  return false;
}

// Dim `i` of the map (outermost first) as the launcher's dim.
static tl_status set_dim(tl_backend *backend, const tl_op *op, int32_t i, const tl_mexpr *const *dims,
                         const tl_mexpr *const *strides, tl_manifest_map *map) {
  int64_t d = tl_op_attr(op, TL_ATTR_MAP_DIMS)->v.ints.items[i], panel = tl_op_int(op, TL_ATTR_PANEL, 0);
  int64_t bytes = tl_dtype_bits(tl_op_operand(op, 0)->type->dtype) / 8;
  int32_t to = map->rank - 1 - i;
  const tl_mexpr *stride = NULL;
  map->box[to] = (uint32_t)tl_op_attr(op, TL_ATTR_BOX)->v.ints.items[i];
  map->dims[to] = dims[d];
  TL_TRY(product(backend, strides[d], panel && i == 0 ? panel * bytes : bytes, &stride));
  if (to > 0) map->strides[to - 1] = stride;
  if (!panel || (i != 0 && to != 0)) return TL_OK;
  if (to == 0) {
    map->dims[0] = tl_mexpr_int(&backend->arena, panel);
    return TL_OK;
  }
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, "ceildiv(");
  tl_mexpr_print(dims[d], &text);
  tl_strbuf_appendf(&text, ", %lld)", (long long)panel);
  int64_t constant;
  tl_status status = TL_OK;
  if (tl_mexpr_is_int(dims[d], &constant))
    map->dims[to] = tl_mexpr_int(&backend->arena, (constant + panel - 1) / panel);
  else
    status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&text), &map->dims[to]);
  tl_strbuf_fini(&text);
  return status;
}

// Corners and steps of the base positions of a map of pixels, innermost first.
static void set_im2col(const tl_op *op, tl_manifest_map *map) {
  const tl_attr *lower = tl_op_attr(op, TL_ATTR_LOWER), *upper = tl_op_attr(op, TL_ATTR_UPPER);
  const tl_attr *step = tl_op_attr(op, TL_ATTR_PIXEL_STEP);
  map->is_im2col = lower != NULL;
  for (int32_t i = 0; lower && i < map->rank - 2; i++) {
    map->lower[i] = (int32_t)lower->v.ints.items[map->rank - 3 - i];
    map->upper[i] = (int32_t)upper->v.ints.items[map->rank - 3 - i];
    map->step[i] = (int32_t)step->v.ints.items[map->rank - 3 - i];
  }
}

// "A.map", "A.map2", …: no name of an argument has a point.
static const char *name_of(tl_backend *backend, const tl_manifest_kernel *kernel, uint32_t tensor, uint32_t index) {
  uint32_t number = 1;
  for (uint32_t i = 0; i < index; i++)
    if (kernel->params[i].kind == TL_MPARAM_TENSOR_MAP && kernel->params[i].map->tensor == tensor) number++;
  const char *name = kernel->params[tensor].name;
  if (number == 1) return tl_arena_printf(&backend->arena, "%s.map", name);
  return tl_arena_printf(&backend->arena, "%s.map%u", name, number);
}

tl_status tl_backend_make_map(tl_backend *backend, tl_lower *l, tl_op *op, tl_manifest_kernel *kernel, uint32_t index) {
  const tl_value *buffer = tl_op_operand(op, 0);
  const tl_op *root = tl_buffer_root(buffer);
  tl_manifest_param *param = &kernel->params[index];
  tl_manifest_map *map = TL_NEW(&backend->arena, tl_manifest_map);
  const tl_mexpr *dims[TL_MAX_RANK], *strides[TL_MAX_RANK];
  if (!root || root->code != TL_OP_TENSOR) return tl_status_make(TL_STATUS_INTERNAL, "a map of no tensor");
  while (map->tensor < index && strcmp(kernel->params[map->tensor].name, tl_op_str(root, TL_ATTR_NAME)) != 0)
    map->tensor++;
  param->kind = TL_MPARAM_TENSOR_MAP;
  param->map = map;
  param->name = name_of(backend, kernel, map->tensor, index);
  map->is_written = is_written(tl_op_result(op, 0));
  map->type = tl_op_has(op, TL_ATTR_ROUNDS) ? TL_TENSORMAP_TF32 : type_of(buffer->type->dtype);
  map->rank = tl_op_attr(op, TL_ATTR_MAP_DIMS)->v.ints.len;
  static const tl_tensormap_swizzle swizzles[] = {TL_TENSORMAP_SWIZZLE_NONE, TL_TENSORMAP_SWIZZLE_32B,
                                                  TL_TENSORMAP_SWIZZLE_64B, [4] = TL_TENSORMAP_SWIZZLE_128B};
  map->swizzle = swizzles[tl_op_int(op, TL_ATTR_SWIZZLE, 0) / 32];
  map->l2 = TL_TENSORMAP_L2_256B;
  TL_TRY(shape_of(backend, l, op, buffer, dims, strides));
  for (int32_t i = 0; i < map->rank; i++) TL_TRY(set_dim(backend, op, i, dims, strides, map));
  set_im2col(op, map);
  return TL_OK;
}
