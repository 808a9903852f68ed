// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// select-copies: how every byte moves. Gives copies, tile loads and stores, and accesses inside parallels their
// instruction, vector width and thread layout, and shared tiles a layout without bank conflicts.
//
//   copy %A[…] -> %A_s extents=[128, 64]
//   → copy %A[…] -> %A_s extents=[128, 64] via=cp_async vec=8 layout=#layout<128x64: r8.d1s1 l8.d1s8 …>
//
// Global to shared of one dtype in a pipelined loop goes by cp.async (PTX ISA, "Data Movement and Conversion
// Instructions: cp.async": 4, 8 or 16 bytes); everything else by vectors through registers, with conversion.
// A vector is only as wide as contiguity, alignment and the limits' divisibility allow, so that one predicate a vector
// is exact. Needs check-bounds and infer-layouts.
#include "passes/layout/select_copies.h"

#include "passes/analysis/memory_access.h"

static int32_t max_vector(const tl_value *buffer) {
  int bits = tl_dtype_bits(buffer->type->dtype);
  return 128 / bits;
}

static int32_t lesser(int32_t a, int32_t b) {
  return a < b ? a : b;
}

bool tl_copy_pads_with_zero(const tl_op *copy) {
  const tl_value *pad = tl_op_arg(copy, TL_GROUP_COPY_pad);
  if (!pad) return true;
  const tl_attr *attr = pad->def && pad->def->code == TL_OP_CONST ? tl_op_attr(pad->def, TL_ATTR_VALUE) : NULL;
  return attr && (attr->is_float ? attr->v.f == 0.0 : attr->v.i == 0);
}

static bool destination_is_unchecked(const tl_box *destination) {
  for (int32_t d = 0; d < destination->buffer_rank; d++) {
    if (tl_box_check(destination, d) != 0) return false;
  }
  return true;
}

// Why cp.async cannot carry the copy in vectors of `vec`, or NULL.
static const char *cp_async_obstacle(tl_pass_context *context, const tl_op *copy, const tl_box *source,
                                     const tl_box *destination, int32_t vec) {
  if (!(context->target->features & TL_FEATURE_CP_ASYNC)) return "the target has no cp.async";
  if (!tl_buffer_is_global(source->buffer) || !tl_buffer_is_shared(destination->buffer)) {
    return "it does not go from global to shared memory";
  }
  if (source->buffer->type->dtype != destination->buffer->type->dtype) return "it converts between dtypes";
  if (!tl_copy_pads_with_zero(copy)) return "it pads with another value than 0";
  if (!destination_is_unchecked(destination)) return "the destination is masked";
  int64_t bytes = (int64_t)vec * tl_dtype_bits(source->buffer->type->dtype) / 8;
  if (bytes != 4 && bytes != 8 && bytes != 16) return "contiguous and aligned pieces have fewer than 4 bytes";
  return NULL;
}

// What the author asked for by name and cannot have: `via: cp_async` and `via: tma` are refused; `async: true` says
// when the copy may end, and one that is over at once is early enough.
static void report_obstacle(tl_pass_context *context, tl_op *copy, const tl_box *source, const tl_box *destination,
                            bool is_demanded, const char *obstacle) {
  if (is_demanded) {
    tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_COPY_VIA, copy->loc,
                                   "the copy from '%s' to '%s' cannot go by cp.async: %s",
                                   tl_buffer_name(source->buffer), tl_buffer_name(destination->buffer), obstacle);
    tl_diag_add_hint(context->diags, diag, "leave `via` out: the compiler takes cp.async where it can");
    return;
  }
  tl_diag_report(context->diags, TL_DIAG_COPY_NOT_ASYNC, copy->loc,
                 "the copy from '%s' to '%s' is not asynchronous: %s", tl_buffer_name(source->buffer),
                 tl_buffer_name(destination->buffer), obstacle);
}

static void report_tma_obstacle(tl_pass_context *context, tl_op *copy, const char *obstacle) {
  tl_diag *diag = tl_diag_report(
      context->diags, TL_DIAG_COPY_VIA, copy->loc, "the copy from '%s' to '%s' cannot go by TMA: %s",
      tl_buffer_name(tl_op_arg(copy, TL_GROUP_COPY_src)), tl_buffer_name(tl_op_arg(copy, TL_GROUP_COPY_dst)), obstacle);
  tl_diag_add_hint(context->diags, diag, "leave `via` out: the compiler takes the best way there is");
}

static void write_shape(tl_pass_context *context, tl_op *copy, const tl_copy_shape *shape) {
  tl_op_set_int(context->module, copy, TL_ATTR_VEC, shape->vec);
  tl_op_set_layout(context->module, copy, TL_ATTR_THREAD_LAYOUT, &shape->layout);
  if (!shape->is_permuted) return;
  tl_op_set_int(context->module, copy, TL_ATTR_SRC_VEC, shape->src_vec);
  tl_op_set_int(context->module, copy, TL_ATTR_DST_VEC, shape->dst_vec);
}

static void select_copy(tl_pass_context *context, tl_op *copy, int32_t threads) {
  if (tl_op_arg(copy, TL_GROUP_COPY_map)) return;  // decided
  bool by_tma = tl_is_tma_wanted(context, copy);
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  tl_copy_shape shape = tl_copy_shape_of(copy, threads, false);
  int32_t vec = shape.is_permuted ? 1 : shape.vec;
  if (tl_op_has(copy, TL_ATTR_PARTIAL)) vec = tl_copy_shape_of(copy, threads, true).vec;
  int64_t wanted = tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO);
  const char *obstacle = cp_async_obstacle(context, copy, &source, &destination, vec);
  // A copy that counts on a barrier of the author goes by TMA or not at all.
  bool by_hand = tl_op_has(copy, TL_ATTR_BY_HAND) && !tl_op_arg(copy, TL_GROUP_COPY_barrier);
  bool is_demanded = wanted == TL_VIA_CP_ASYNC;
  // What a pass made asynchronous fits: it looked before.
  if (tl_op_has(copy, TL_ATTR_ASYNC) && !by_hand) is_demanded = false;
  bool asynchronous =
      !obstacle && wanted != TL_VIA_VECTOR && (wanted == TL_VIA_CP_ASYNC || by_hand || tl_is_in_pipeline(copy));
  if (asynchronous) shape = tl_copy_shape_of(copy, threads, true);
  if (obstacle && (by_hand || is_demanded)) {
    report_obstacle(context, copy, &source, &destination, is_demanded, obstacle);
    tl_op_remove_attr(copy, TL_ATTR_ASYNC);
    tl_op_remove_attr(copy, TL_ATTR_BY_HAND);
  }
  tl_op_set_int(context->module, copy, TL_ATTR_VIA, asynchronous ? TL_VIA_CP_ASYNC : TL_VIA_VECTOR);
  write_shape(context, copy, &shape);
  // Threads and width stay for what cannot run ahead (pipeline).
  const char *no_tma = by_tma ? tl_select_tma(context, copy) : NULL;
  if (no_tma && wanted == TL_VIA_TMA) report_tma_obstacle(context, copy, no_tma);
  if (by_tma && !no_tma) return;
  bool had_choice = wanted == TL_VIA_AUTO && asynchronous && (context->target->features & TL_FEATURE_TMA);
  if (had_choice && !by_tma) no_tma = tl_tma_choice_obstacle(context, copy);
  int bits = tl_dtype_bits(source.buffer->type->dtype);
  if (asynchronous) {
    tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, copy->loc, "'%s' to '%s' by cp.async, %d bytes at a time%s%s%s",
                   tl_buffer_name(source.buffer), tl_buffer_name(destination.buffer), vec * bits / 8,
                   tl_op_has(copy, TL_ATTR_EVICT) ? "; evict has no effect on it" : "", no_tma ? ": not by TMA, " : "",
                   no_tma ? no_tma : "");
  } else {
    bool regret = obstacle && (wanted == TL_VIA_CP_ASYNC || tl_is_in_pipeline(copy));
    tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, copy->loc,
                   "'%s' to '%s' through registers, %d element%s at a time%s%s%s", tl_buffer_name(source.buffer),
                   tl_buffer_name(destination.buffer), shape.vec, shape.vec == 1 ? "" : "s",
                   !shape.is_permuted              ? ""
                   : shape.src_vec > shape.dst_vec ? ", stored one by one along the other dim"
                                                   : ", loaded one by one along the other dim",
                   regret ? ": not by cp.async, " : "", regret ? obstacle : "");
  }
}

// Whether all threads come to the op together, so that warps are whole.
static bool is_uniform(const tl_op *op) {
  for (const tl_op *at = op->parent->parent; at; at = at->parent ? at->parent->parent : NULL)
    if (at->code == TL_OP_PARALLEL || (at->code == TL_OP_IF && !tl_op_has(at, TL_ATTR_UNIFORM))) return false;
  return true;
}

static void count_gemm(tl_op *op, void *user) {
  int *count = user;
  *count += op->code == TL_OP_GEMM;
}

// Addresses of stmatrix live across the loops in front of it, or across all tiles of a persistent kernel. Where several
// products share the registers that costs more than the stores (H200, attention of 4096 by 128: 1.5 % slower; products
// alone are as fast with them as without).
static bool has_registers_to_spare(tl_op *store) {
  int count = 0;
  tl_walk(tl_op_enclosing(store, TL_OP_KERNEL), count_gemm, &count);
  return count <= 1;
}

// Whether stmatrix can store the tile: 16 bytes of a row of shared memory for each of 8 lanes.
static bool takes_matrices(const tl_pass_context *context, tl_op *store, const tl_box *box) {
  enum { MATRIX = 8, BITS = 16 };
  const tl_layout *layout = tl_op_arg(store, TL_GROUP_TILE_STORE_tile)->type->layout;
  tl_matrix_form form;
  int32_t fast = tl_box_contiguous_dim(box);
  if (!(context->target->features & TL_FEATURE_STMATRIX) || !tl_buffer_is_shared(box->buffer) || fast < 0) return false;
  if (tl_dtype_bits(box->buffer->type->dtype) != BITS || !is_uniform(store)) return false;
  if (!layout || !tl_layout_matrix_form(layout, &form)) return false;
  if (fast != form.row_dim && fast != form.column_dim) return false;
  for (int32_t d = 0; d < box->buffer_rank; d++)
    if (tl_box_check(box, d) != 0) return false;
  return tl_box_vector(box, MATRIX, false) == MATRIX && has_registers_to_spare(store);
}

void tl_select_tile_access(tl_pass_context *context, tl_op *op) {
  bool is_load = op->code == TL_OP_TILE_LOAD;
  tl_box box = is_load ? tl_box_source(op) : tl_box_destination(op);
  const tl_value *tile = is_load ? tl_op_result(op, 0) : tl_op_arg(op, TL_GROUP_TILE_STORE_tile);
  int32_t fast = tl_box_contiguous_dim(&box);
  int32_t vec = 1;
  if (fast >= 0 && tile->type->layout) {
    int32_t held = tl_layout_vector(tile->type->layout, fast);
    vec = tl_box_vector(&box, lesser(held & -held, max_vector(box.buffer)), false);
  }
  tl_op_set_int(context->module, op, TL_ATTR_VIA, TL_VIA_VECTOR);
  tl_op_set_int(context->module, op, TL_ATTR_VEC, vec);
  tl_op_remove_attr(op, TL_ATTR_MATRIX);
  if (!is_load && takes_matrices(context, op, &box)) {
    tl_op_set_unit(context->module, op, TL_ATTR_MATRIX);
    tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, op->loc, "registers to '%s', 8 by 8 matrices at a time",
                   tl_buffer_name(box.buffer));
    return;
  }
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, op->loc, "registers %s '%s', %d element%s at a time",
                 is_load ? "from" : "to", tl_buffer_name(box.buffer), vec, vec == 1 ? "" : "s");
}

static void select_fill(tl_pass_context *context, tl_op *fill, int32_t threads) {
  const tl_value *buffer = tl_op_arg(fill, TL_GROUP_FILL_buffer);
  int32_t shape[TL_MAX_RANK], order[TL_MAX_RANK], rank = buffer->type->rank;
  for (int32_t d = 0; d < rank; d++) {
    shape[d] = (int32_t)buffer->type->dims[d];
    order[d] = rank - 1 - d;
  }
  int32_t vec = rank == 0 ? 1 : max_vector(buffer);
  int64_t stride = rank >= 2 ? tl_buffer_stride_divisor(buffer, rank - 2) : vec;
  while (vec > 1 && (shape[rank - 1] % vec != 0 || stride % vec != 0)) vec /= 2;
  tl_layout layout = tl_layout_blocked(shape, rank, order, vec, threads);
  tl_op_set_layout(context->module, fill, TL_ATTR_THREAD_LAYOUT, &layout);
  tl_op_set_int(context->module, fill, TL_ATTR_VEC, vec);
}

static void select_op(tl_op *op, void *user) {
  tl_pass_context *context = user;
  if (op->code == TL_OP_COPY) {
    select_copy(context, op, tl_op_threads(op));
  } else if (op->code == TL_OP_TILE_LOAD || op->code == TL_OP_TILE_STORE) {
    tl_select_tile_access(context, op);
  } else if (op->code == TL_OP_FILL) {
    select_fill(context, op, tl_op_threads(op));
  } else if (op->code == TL_OP_PARALLEL) {
    tl_select_parallel(context, op);
  }
}

static void validate_specialized(tl_op *op, void *user) {
  tl_pass_context *context = user;
  if (op->code != TL_OP_FOR || tl_op_int(op, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) != TL_SWITCH_ON) return;
  if (context->no_engine || (context->target->features & TL_FEATURE_TMA)) return;
  tl_diag *diag =
      tl_diag_report(context->diags, TL_DIAG_SPECIALIZE_TARGET, op->loc,
                     "`specialize: on` wants warps that bring tiles by TMA: %s has no TMA", context->target->name);
  tl_diag_add_hint(context->diags, diag, "`specialize: auto` uses them where the target has it and they pay");
}

tl_status tl_pass_select_copies(tl_pass_context *context) {
  for (tl_op *kernel = context->module->body->first; kernel; kernel = kernel->next) {
    if (kernel->code != TL_OP_KERNEL) continue;
    tl_walk(kernel, validate_specialized, context);
    tl_flatten_copies(context, kernel);
    tl_select_shared_layouts(context, kernel);
    tl_walk(kernel, select_op, context);
  }
  return TL_OK;
}
