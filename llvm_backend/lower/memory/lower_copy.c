// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// copy, fill, tile_load and tile_store: boxes moved in vectors by all threads of the block.
#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_arith.h"

#define TL_COPY_BATCH 8  // loads in flight before the first store

static const tl_side copy_src = {TL_GROUP_COPY_src_offsets, TL_GROUP_COPY_src_limits, TL_ATTR_SRC_DIMS,
                                 TL_ATTR_SRC_STEP, TL_ATTR_SRC_CHECK};
static const tl_side copy_dst = {TL_GROUP_COPY_dst_offsets, TL_GROUP_COPY_dst_limits, TL_ATTR_DST_DIMS,
                                 TL_ATTR_DST_STEP, TL_ATTR_DST_CHECK};
static const tl_side load_src = {TL_GROUP_TILE_LOAD_src_offsets, TL_GROUP_TILE_LOAD_src_limits, TL_ATTR_SRC_DIMS,
                                 TL_ATTR_SRC_STEP, TL_ATTR_SRC_CHECK};
static const tl_side store_dst = {TL_GROUP_TILE_STORE_dst_offsets, TL_GROUP_TILE_STORE_dst_limits, TL_ATTR_DST_DIMS,
                                  TL_ATTR_DST_STEP, TL_ATTR_DST_CHECK};

static bool known_dtypes(tl_lower *l, const tl_op *op, tl_dtype a, tl_dtype b) {
  if (tl_session_type(l->session, a) && tl_session_type(l->session, b)) return true;
  tl_lower_unsupported(l, op, "moving %s to %s has no lowering", tl_dtype_name(a), tl_dtype_name(b));
  return false;
}

// Largest power of two of elements, at most `vec`, that fits 16 bytes of both dtypes.
static int32_t vector_elems(int32_t vec, tl_dtype a, tl_dtype b) {
  int32_t result = 1;
  while (result * 2 <= vec && vec % (result * 2) == 0 && result * 2 <= tl_lower_raw_count(a, vec) &&
         result * 2 <= tl_lower_raw_count(b, vec))
    result *= 2;
  return result;
}

// ---- copy
typedef struct tl_copy {
  tl_op *op;
  tl_place place;
  tl_mem_access src, dst;
  int32_t vec, dim;          // elements of a group, and the dim along which they lie
  int32_t src_vec, dst_vec;  // elements of one load and of one store
  bool async;
  int src_evict, dst_evict;
  LLVMValueRef pad;  // NULL: zeros
} tl_copy;

// One vector of a copy between its load and its store.
typedef struct tl_copy_item {
  LLVMValueRef raw, inside, pointer, half;
  int32_t align;  // of the store
} tl_copy_item;

static LLVMValueRef converted(tl_lower *l, const tl_copy *copy, LLVMValueRef raw, LLVMValueRef inside) {
  tl_dtype from = copy->src.buffer->dtype, to = copy->dst.buffer->dtype;
  bool pads = copy->pad && inside;
  if (from == to && !pads) return raw;
  LLVMValueRef in[TL_MAX_GROUP], out[TL_MAX_GROUP];
  tl_lower_unpack(l, raw, from, copy->vec, in);
  for (int32_t i = 0; i < copy->vec && pads; i++) in[i] = LLVMBuildSelect(l->builder, inside, in[i], copy->pad, "");
  tl_lower_convert(l, in, from, to, copy->vec, out);
  return tl_lower_pack(l, out, to, copy->vec);
}

static void copy_load(tl_lower *l, tl_copy *copy, int32_t reg, tl_copy_item *item) {
  LLVMValueRef active = NULL;
  tl_lower_place_register(&copy->place, reg);
  tl_lower_place_inside(l, &copy->place, &active);
  active = tl_lower_and(l, active, copy->place.owner);
  LLVMValueRef src_inside = tl_lower_access_inside(l, &copy->src, &copy->place);
  LLVMValueRef dst_inside = tl_lower_access_inside(l, &copy->dst, &copy->place);
  int32_t bytes = tl_lower_raw_bytes(copy->src.buffer->dtype, copy->vec);
  LLVMValueRef from = tl_lower_access_pointer(l, &copy->src, &copy->place);
  item->inside = tl_lower_and(l, active, dst_inside);
  item->pointer = tl_lower_access_pointer(l, &copy->dst, &copy->place);
  if (copy->async) {
    bool is_partial = tl_op_has(copy->op, TL_ATTR_PARTIAL);
    LLVMValueRef reads = src_inside ? tl_lower_bytes_if(l, src_inside, bytes) : NULL;
    if (is_partial) reads = tl_lower_access_bytes(l, &copy->src, &copy->place, bytes);
    tl_lower_cp_async(l, item->pointer, from, bytes, reads, item->inside);
    return;
  }
  LLVMValueRef reads = tl_lower_and(l, item->inside, src_inside);
  LLVMValueRef half = tl_lower_access_half(l, &copy->src, &copy->place, copy->vec);
  int32_t align = tl_lower_access_align(&copy->src, &copy->place, bytes);
  LLVMValueRef raw = tl_lower_load_part(l, copy->src.buffer, from, half, bytes, align, reads, copy->src_evict);
  int32_t dst_bytes = tl_lower_raw_bytes(copy->dst.buffer->dtype, copy->vec);
  item->align = tl_lower_access_align(&copy->dst, &copy->place, dst_bytes);
  item->half = tl_lower_access_half(l, &copy->dst, &copy->place, copy->vec);
  item->raw = converted(l, copy, raw, src_inside);
}

// ---- copies whose sides have accesses of different widths

// The group's elements on their way, converted, and whether the group is the thread's to copy.
typedef struct tl_copy_group {
  tl_place place;
  LLVMValueRef active, elements[TL_MAX_GROUP];
} tl_copy_group;

static tl_place place_of_element(const tl_copy *copy, const tl_copy_group *group, int32_t e) {
  tl_place place = group->place;
  place.reg[copy->dim] += e;
  return place;
}

static void load_group(tl_lower *l, tl_copy *copy, int32_t reg, tl_copy_group *group) {
  const tl_buffer *buffer = copy->src.buffer;
  LLVMValueRef active = NULL, in[TL_MAX_GROUP];
  tl_lower_place_register(&copy->place, reg);
  tl_lower_place_inside(l, &copy->place, &active);
  group->place = copy->place;
  group->active = tl_lower_and(l, active, copy->place.owner);
  for (int32_t e = 0; e < copy->vec; e += copy->src_vec) {
    tl_place place = place_of_element(copy, group, e);
    LLVMValueRef inside = tl_lower_access_inside(l, &copy->src, &place), reads = tl_lower_and(l, group->active, inside);
    if (copy->src_vec == 1) reads = tl_lower_and(l, reads, tl_lower_access_inside(l, &copy->dst, &place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, &copy->src, &place);
    int32_t bytes = tl_lower_raw_bytes(buffer->dtype, copy->src_vec);
    int32_t align = tl_lower_access_align(&copy->src, &place, bytes);
    LLVMValueRef raw = tl_lower_load_part(l, buffer, pointer, NULL, bytes, align, reads, copy->src_evict);
    tl_lower_unpack(l, raw, buffer->dtype, copy->src_vec, in + e);
    for (int32_t i = 0; i < copy->src_vec && copy->pad && inside; i++)
      in[e + i] = LLVMBuildSelect(l->builder, inside, in[e + i], copy->pad, "");
  }
  tl_lower_convert(l, in, buffer->dtype, copy->dst.buffer->dtype, copy->vec, group->elements);
}

static void store_group(tl_lower *l, tl_copy *copy, const tl_copy_group *group) {
  const tl_buffer *buffer = copy->dst.buffer;
  for (int32_t e = 0; e < copy->vec; e += copy->dst_vec) {
    tl_place place = place_of_element(copy, group, e);
    LLVMValueRef inside = tl_lower_and(l, group->active, tl_lower_access_inside(l, &copy->dst, &place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, &copy->dst, &place);
    LLVMValueRef raw = tl_lower_pack(l, group->elements + e, buffer->dtype, copy->dst_vec);
    int32_t bytes = tl_lower_raw_bytes(buffer->dtype, copy->dst_vec);
    int32_t align = tl_lower_access_align(&copy->dst, &place, bytes);
    tl_lower_store_part(l, buffer, pointer, NULL, raw, bytes, align, inside, copy->dst_evict);
  }
}

static void run_permuted(tl_lower *l, tl_copy *copy) {
  int32_t registers = tl_layout_num_registers(copy->place.layout);
  tl_copy_group *groups = TL_NEW_ARRAY(&l->arena, tl_copy_group, TL_COPY_BATCH);
  for (int32_t reg = 0; reg < registers && !tl_lower_failed(l);) {
    int32_t n = 0;
    for (; n < TL_COPY_BATCH && reg < registers; n++, reg += copy->vec) load_group(l, copy, reg, &groups[n]);
    for (int32_t i = 0; i < n; i++) store_group(l, copy, &groups[i]);
  }
}

static void run_copy(tl_lower *l, tl_copy *copy) {
  int32_t registers = tl_layout_num_registers(copy->place.layout);
  tl_lower_begin_groups(l);
  tl_lower_access_side(l, &copy->src, copy->op, tl_lower_buffer(l, tl_op_arg(copy->op, TL_GROUP_COPY_src)), &copy_src,
                       &copy->place);
  tl_lower_access_side(l, &copy->dst, copy->op, tl_lower_buffer(l, tl_op_arg(copy->op, TL_GROUP_COPY_dst)), &copy_dst,
                       &copy->place);
  if (copy->src_vec != copy->vec || copy->dst_vec != copy->vec) {
    run_permuted(l, copy);
    tl_lower_end_groups(l);
    return;
  }
  int32_t bytes = tl_lower_raw_bytes(copy->dst.buffer->dtype, copy->vec);
  tl_copy_item items[TL_COPY_BATCH] = {{0}};
  for (int32_t reg = 0; reg < registers && !tl_lower_failed(l);) {
    int32_t n = 0;
    for (; n < TL_COPY_BATCH && reg < registers; n++, reg += copy->vec) copy_load(l, copy, reg, &items[n]);
    for (int32_t i = 0; i < n && !copy->async; i++)
      tl_lower_store_part(l, copy->dst.buffer, items[i].pointer, items[i].half, items[i].raw, bytes, items[i].align,
                          items[i].inside, copy->dst_evict);
  }
  tl_lower_end_groups(l);
}

static bool is_zero(const tl_value *pad) {
  const tl_attr *attr = pad->def && pad->def->code == TL_OP_CONST ? tl_op_attr(pad->def, TL_ATTR_VALUE) : NULL;
  return attr && (attr->is_float ? attr->v.f == 0.0 : attr->v.i == 0);
}

// Elements that the copy moves at a time.
static int32_t copy_width(const tl_op *op, tl_dtype src, tl_dtype dst) {
  int32_t dim, vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1);
  vec = tl_lower_group_width(tl_op_layout(op, TL_ATTR_THREAD_LAYOUT), vec, &dim);
  return vector_elems(vec, src, dst);
}

// The widths of a copy: one for both sides, or those of a permuted copy.
static void set_widths(tl_copy *copy, const tl_buffer *src, const tl_buffer *dst) {
  const tl_op *op = copy->op;
  copy->vec = copy->src_vec = copy->dst_vec = copy_width(op, src->dtype, dst->dtype);
  if (!tl_op_has(op, TL_ATTR_SRC_VEC)) return;
  copy->vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1);
  copy->vec = tl_lower_group_width(copy->place.layout, copy->vec, &copy->dim);
  copy->src_vec = (int32_t)tl_op_int(op, TL_ATTR_SRC_VEC, 1);
  copy->dst_vec = (int32_t)tl_op_int(op, TL_ATTR_DST_VEC, 1);
  while (copy->vec % copy->src_vec != 0) copy->src_vec--;
  while (copy->vec % copy->dst_vec != 0) copy->dst_vec--;
}

bool tl_lower_copy_is_async(const tl_op *op) {
  const tl_type *src = tl_op_arg(op, TL_GROUP_COPY_src)->type, *dst = tl_op_arg(op, TL_GROUP_COPY_dst)->type;
  const tl_value *pad = tl_op_arg(op, TL_GROUP_COPY_pad);
  if (!tl_op_layout(op, TL_ATTR_THREAD_LAYOUT) || !tl_op_has(op, TL_ATTR_ASYNC)) return false;
  if (tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) != TL_VIA_CP_ASYNC || (pad && !is_zero(pad))) return false;
  if (src->scope != TL_SCOPE_GLOBAL || dst->scope != TL_SCOPE_SHARED || src->dtype != dst->dtype) return false;
  return tl_lower_raw_bytes(src->dtype, copy_width(op, src->dtype, dst->dtype)) >= 4;
}

void tl_lower_op_COPY(tl_lower *l, tl_op *op) {
  if (tl_op_arg(op, TL_GROUP_COPY_map)) {
    tl_lower_tma_copy(l, op);
    return;
  }
  tl_buffer *src = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_COPY_src));
  tl_buffer *dst = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_COPY_dst));
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (!src || !dst || !layout) {
    tl_lower_internal(l, op, "no layout or no memory behind a side");
    return;
  }
  if (!known_dtypes(l, op, src->dtype, dst->dtype)) return;
  tl_copy *copy = TL_NEW(&l->arena, tl_copy);
  copy->op = op;
  copy->place = *tl_lower_place(l, layout, op);
  set_widths(copy, src, dst);
  int64_t evict = tl_op_int(op, TL_ATTR_EVICT, TL_EVICT_NORMAL);
  copy->src_evict = copy->dst_evict = (int)evict;
  tl_value *pad = tl_op_arg(op, TL_GROUP_COPY_pad);
  if (pad && !is_zero(pad)) copy->pad = tl_lower_get(l, pad, 0);
  copy->async = tl_lower_copy_is_async(op);
  // Registers take no part of a vector.
  if (tl_op_has(op, TL_ATTR_PARTIAL) && !copy->async) copy->vec = copy->src_vec = copy->dst_vec = 1;
  run_copy(l, copy);
}

// ---- fill
void tl_lower_op_FILL(tl_lower *l, tl_op *op) {
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_FILL_buffer));
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (!buffer || !layout) {
    tl_lower_internal(l, op, "no layout or no memory");
    return;
  }
  if (!known_dtypes(l, op, buffer->dtype, buffer->dtype)) return;
  int32_t dim, vec = tl_lower_group_width(layout, (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), &dim);
  vec = vector_elems(vec, buffer->dtype, buffer->dtype);
  tl_place place = *tl_lower_place(l, layout, op);
  tl_mem_access *access = TL_NEW(&l->arena, tl_mem_access);
  LLVMValueRef items[TL_MAX_GROUP];
  for (int32_t i = 0; i < vec; i++) items[i] = tl_lower_get(l, tl_op_arg(op, TL_GROUP_FILL_value), 0);
  LLVMValueRef raw = tl_lower_pack(l, items, buffer->dtype, vec);
  tl_lower_begin_groups(l);
  tl_lower_access_init(l, access, op, buffer);
  for (int32_t d = 0; d < access->rank; d++) {
    access->var[d] = place.thread[d];
    access->coeff[d][d] = 1;
  }
  for (int32_t reg = 0; reg < tl_layout_num_registers(layout); reg += vec) {
    LLVMValueRef active = NULL;
    tl_lower_place_register(&place, reg);
    tl_lower_place_inside(l, &place, &active);
    active = tl_lower_and(l, active, place.owner);
    LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place);
    LLVMValueRef half = tl_lower_access_half(l, access, &place, vec);
    int32_t bytes = tl_lower_raw_bytes(buffer->dtype, vec);
    tl_lower_store_part(l, buffer, pointer, half, raw, bytes, bytes, active, TL_EVICT_NORMAL);
  }
  tl_lower_end_groups(l);
}

// ---- tiles in registers
typedef struct tl_tile_box {
  tl_place place;
  tl_mem_access access;
  int32_t vec;
  int evict;
} tl_tile_box;

static tl_tile_box *tile_box(tl_lower *l, tl_op *op, const tl_value *tile, const tl_value *memory,
                             const tl_side *side) {
  tl_buffer *buffer = tl_lower_buffer(l, memory);
  if (!buffer || !tile->type->layout) {
    tl_lower_internal(l, op, "no layout or no memory");
    return NULL;
  }
  if (!known_dtypes(l, op, buffer->dtype, tile->type->dtype)) return NULL;
  tl_tile_box *box = TL_NEW(&l->arena, tl_tile_box);
  int32_t dim;
  box->place = *tl_lower_place(l, tile->type->layout, op);
  box->vec = tl_lower_group_width(tile->type->layout, (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), &dim);
  box->vec = vector_elems(box->vec, buffer->dtype, buffer->dtype);
  box->evict = (int)tl_op_int(op, TL_ATTR_EVICT, TL_EVICT_NORMAL);
  tl_lower_begin_groups(l);
  tl_lower_access_side(l, &box->access, op, buffer, side, &box->place);
  return box;
}

void tl_lower_op_TILE_LOAD(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0), *pad = tl_op_arg(op, TL_GROUP_TILE_LOAD_pad);
  tl_tile_box *box = tile_box(l, op, result, tl_op_arg(op, TL_GROUP_TILE_LOAD_src), &load_src);
  if (!box) return;
  const tl_buffer *buffer = box->access.buffer;
  int32_t registers = tl_layout_num_registers(result->type->layout);
  LLVMValueRef *out = TL_NEW_ARRAY(&l->arena, LLVMValueRef, registers);
  for (int32_t reg = 0; reg < registers; reg += box->vec) {
    LLVMValueRef active = NULL, in[TL_MAX_GROUP];
    tl_lower_place_register(&box->place, reg);
    tl_lower_place_inside(l, &box->place, &active);
    LLVMValueRef inside = tl_lower_and(l, active, tl_lower_access_inside(l, &box->access, &box->place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, &box->access, &box->place);
    LLVMValueRef half = tl_lower_access_half(l, &box->access, &box->place, box->vec);
    int32_t bytes = tl_lower_raw_bytes(buffer->dtype, box->vec);
    int32_t align = tl_lower_access_align(&box->access, &box->place, bytes);
    LLVMValueRef raw = tl_lower_load_part(l, buffer, pointer, half, bytes, align, inside, box->evict);
    tl_lower_unpack(l, raw, buffer->dtype, box->vec, in);
    for (int32_t i = 0; i < box->vec && pad && inside; i++)
      in[i] = LLVMBuildSelect(l->builder, inside, in[i], tl_lower_get(l, pad, 0), "");
    tl_lower_convert(l, in, buffer->dtype, result->type->dtype, box->vec, &out[reg]);
  }
  tl_lower_end_groups(l);
  tl_lower_set(l, result, out, registers);
}

// The registers of one stmatrix, from the one with this coordinate on, as the memory has them.
static int32_t matrix_words(tl_lower *l, const tl_value *tile, tl_dtype dtype, const tl_matrix_form *form,
                            const int32_t *first, LLVMValueRef *out) {
  int32_t count = 1 << form->num_units;
  for (int32_t m = 0; m < count; m++) {
    LLVMValueRef in[2], converted[2];
    int32_t coord[TL_MAX_DIMS];
    memcpy(coord, first, sizeof coord);
    for (int32_t u = 0; u < form->num_units; u++)
      if (m >> u & 1) coord[form->units[u].dim] += form->units[u].stride;
    for (int32_t i = 0; i < 2; i++) {
      in[i] = tl_lower_get(l, tile, tl_lower_tile_register(tile->type->layout, coord));
      coord[form->column_dim]++;
    }
    tl_lower_convert(l, in, tile->type->dtype, dtype, 2, converted);
    out[m] = LLVMBuildBitCast(l->builder, tl_lower_pack(l, converted, dtype, 2), l->session->i32, "");
  }
  return count;
}

// By stmatrix: lanes hold the values as the matrix unit leaves them, and each gives the address of one row.
static void store_matrices(tl_lower *l, tl_op *op, tl_value *tile) {
  const tl_layout *layout = tile->type->layout;
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_TILE_STORE_dst));
  tl_matrix_form form;
  if (!buffer || !layout || !tl_layout_matrix_form(layout, &form)) {
    tl_lower_internal(l, op, "the tile does not hold matrices");
    return;
  }
  if (!known_dtypes(l, op, buffer->dtype, tile->type->dtype)) return;
  const tl_attr *dims = tl_op_attr(op, TL_ATTR_DST_DIMS);
  bool transposed = dims->v.ints.items[form.row_dim] == buffer->rank - 1;
  tl_layout *rows = TL_NEW(&l->arena, tl_layout);
  *rows = tl_matrix_rows(layout, &form, transposed);
  tl_place place = *tl_lower_place(l, rows, op);
  tl_mem_access access;
  tl_lower_begin_groups(l);
  tl_lower_access_side(l, &access, op, buffer, &store_dst, &place);
  tl_device_op_id first = transposed ? TL_DEVOP_STMATRIX_X1_TRANS : TL_DEVOP_STMATRIX_X1;
  for (int32_t reg = 0; reg < tl_layout_num_registers(layout); reg++) {
    LLVMValueRef args[5];
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, reg, place.reg);
    if (!tl_matrix_begins(&form, place.reg)) continue;
    int32_t count = matrix_words(l, tile, buffer->dtype, &form, place.reg, args + 1);
    args[0] = tl_lower_access_pointer(l, &access, &place);
    tl_session_call_device(l->session, l->builder, (tl_device_op_id)(first + form.num_units), args,
                           (unsigned)count + 1);
  }
  tl_lower_end_groups(l);
}

void tl_lower_op_TILE_STORE(tl_lower *l, tl_op *op) {
  tl_value *tile = tl_op_arg(op, TL_GROUP_TILE_STORE_tile);
  if (tl_op_has(op, TL_ATTR_MATRIX)) {
    store_matrices(l, op, tile);
    return;
  }
  tl_tile_box *box = tile_box(l, op, tile, tl_op_arg(op, TL_GROUP_TILE_STORE_dst), &store_dst);
  if (!box) return;
  const tl_buffer *buffer = box->access.buffer;
  int32_t registers = tl_layout_num_registers(tile->type->layout);
  for (int32_t reg = 0; reg < registers; reg += box->vec) {
    LLVMValueRef active = NULL, in[TL_MAX_GROUP], out[TL_MAX_GROUP];
    tl_lower_place_register(&box->place, reg);
    tl_lower_place_inside(l, &box->place, &active);
    active = tl_lower_and(l, active, box->place.owner);
    LLVMValueRef inside = tl_lower_and(l, active, tl_lower_access_inside(l, &box->access, &box->place));
    LLVMValueRef pointer = tl_lower_access_pointer(l, &box->access, &box->place);
    for (int32_t i = 0; i < box->vec; i++) in[i] = tl_lower_get(l, tile, reg + i);
    tl_lower_convert(l, in, tile->type->dtype, buffer->dtype, box->vec, out);
    LLVMValueRef raw = tl_lower_pack(l, out, buffer->dtype, box->vec);
    LLVMValueRef half = tl_lower_access_half(l, &box->access, &box->place, box->vec);
    int32_t bytes = tl_lower_raw_bytes(buffer->dtype, box->vec);
    int32_t align = tl_lower_access_align(&box->access, &box->place, bytes);
    tl_lower_store_part(l, buffer, pointer, half, raw, bytes, align, inside, box->evict);
  }
  tl_lower_end_groups(l);
}
