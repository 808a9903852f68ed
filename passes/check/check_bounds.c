// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check-bounds: for every access, which bounds of which dims must be tested at run time.
//
//   copy %A[%r, %k] -> %A_s extents=[128, 64]   →   copy … src_check=[2, 0] dst_check=[0, 0]
//
// Bit 1 is the lower bound, bit 2 the upper one; what is proven from ranges and divisibility costs nothing later.
// Shared, fragment and local tiles are not tested at run time: an access that is certainly outside is an error. Says,
// too, when a loop walks past a tensor and when a tile walks over its neighbour's rows (check_bounds_loops.c).
#include "passes/check/check_bounds.h"

#include "ir/index/affine.h"
#include "passes/analysis/known_conditions.h"

// ---- one index against one dim

// Whether index + offset < dim for every run.
static bool proven_below(tl_value *index, int64_t offset, tl_value *limit, int64_t constant_limit) {
  if (limit && tl_prove_lt_offset(index, offset, limit)) return true;
  int64_t known = 0;
  if (!limit) {
    known = constant_limit;
  } else if (!tl_value_const_int(limit, &known)) {
    return false;
  }
  tl_range range = tl_value_range(index);
  return range.hi != INT64_MAX && known >= 0 && range.hi < known - offset;
}

static bool proven_not_negative(tl_value *index, int64_t offset) {
  if (offset == 0 && tl_prove_nonnegative(index)) return true;
  tl_range range = tl_value_range(index);
  return range.lo != INT64_MIN && range.lo >= -offset;
}

static int64_t bits_for(const tl_op *op, tl_value *index, int64_t lo, int64_t hi, tl_value *limit, int64_t constant) {
  int64_t bits = 0;
  if (!proven_not_negative(index, lo) && !tl_known_not_negative(op, index, lo)) bits |= TL_CHECK_LOWER;
  if (!proven_below(index, hi, limit, constant) && !tl_known_below(op, index, hi, limit, constant))
    bits |= TL_CHECK_UPPER;
  return bits;
}

// Whether every value of the range of `affine` occurs at its ends: its symbols run over boxes of constant size, each
// independent of the others, and no condition around `op` excludes any.
static bool ends_occur(const tl_op *op, const tl_affine *affine) {
  if (!affine->valid || affine->num_terms == 0) return false;
  for (int32_t i = 0; i < affine->num_terms; i++) {
    const tl_value *symbol = affine->terms[i].symbol;
    const tl_op *loop = symbol->block ? symbol->block->parent : NULL;
    if (!loop || (loop->code != TL_OP_PARALLEL && loop->code != TL_OP_FOR)) return false;
    if (tl_op_has(loop, TL_ATTR_WHILE)) return false;
    tl_constant_loop known;
    if (loop->code == TL_OP_FOR && (!tl_loop_is_constant(loop, &known) || known.step != 1)) return false;
  }
  return !tl_op_enclosing(op, TL_OP_IF);
}

// An index of a tile that is outside for some of the elements.
static void check_tile_edge(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim,
                            tl_value *index, int64_t lo, int64_t hi) {
  int64_t extent = buffer->type->dims[dim];
  tl_affine affine = tl_affine_of(index);
  if (!ends_occur(op, &affine)) return;
  tl_range range = tl_affine_range(&affine);
  if (range.lo == INT64_MIN || range.hi == INT64_MAX || (range.lo + lo >= 0 && range.hi + hi < extent)) return;
  long long least = range.lo + lo, most = range.hi + hi;
  tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_TILE_EDGE, op->loc,
                                 "dim %d of '%s' has %lld elements, but this index runs from %lld to %lld", dim,
                                 tl_buffer_name(buffer), (long long)extent, least, most);
  tl_diag_add_hint(context->diags, diag, "what lies outside of a tile is undefined");
}

static void hint_end(tl_pass_context *context, tl_diag *diag, int64_t extent) {
  tl_diag_add_hint(context->diags, diag, "subscripts do not count from the end: the last element is %lld",
                   (long long)extent - 1);
}

// An index of a tile that is outside whatever happens.
static void check_tile_index(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim,
                             tl_value *index, int64_t lo, int64_t hi) {
  int64_t extent = buffer->type->dims[dim];
  tl_range range = tl_value_range(index);
  int64_t constant = 0;
  bool is_constant = tl_value_const_int(index, &constant);
  bool below = range.hi != INT64_MAX && range.hi + lo < 0;
  bool above = range.lo != INT64_MIN && range.lo + hi >= extent;
  // A box that sticks out is wrong even when part of it is inside; an element is when no value of its index is.
  bool sticks_out = is_constant && (constant + lo < 0 || constant + hi >= extent);
  if (!below && !above && !sticks_out) {
    check_tile_edge(context, op, buffer, dim, index, lo, hi);
    return;
  }
  tl_diag *diag;
  if (!is_constant && lo == hi) {
    diag = tl_diag_report(context->diags, TL_DIAG_OUT_OF_BOUNDS, op->loc,
                          "dim %d of '%s' has %lld elements; this index is always outside (%lld to %lld)", dim,
                          tl_buffer_name(buffer), (long long)extent, (long long)range.lo, (long long)range.hi);
    if (below) hint_end(context, diag, extent);
    return;
  }
  if (!is_constant) return;
  diag = tl_diag_report(context->diags, TL_DIAG_OUT_OF_BOUNDS, op->loc,
                        "dim %d of '%s' has %lld elements; index %lld is outside", dim, tl_buffer_name(buffer),
                        (long long)extent, (long long)(constant + lo < 0 ? constant + lo : constant + hi));
  if (constant + lo < 0) hint_end(context, diag, extent);
}

// Of a tensor: an index that is outside whatever happens, below 0 or, where it is a constant, behind the end.
// `offset` is what the access adds to it.
static void check_tensor_index(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim,
                               tl_value *index, int64_t offset) {
  int64_t at = 0, extent = 0;
  tl_value *limit = tl_buffer_dim_value(buffer, dim);
  bool is_constant = tl_value_const_int(index, &at);
  tl_range range = is_constant ? (tl_range){at, at} : tl_value_range(index);
  bool is_negative = range.hi < 0 && range.hi != INT64_MIN && range.hi + offset < 0;
  bool is_known = !limit || tl_value_const_int(limit, &extent);
  if (!limit) extent = buffer->type->dims[dim];
  bool is_behind = is_constant && offset == 0 && is_known && extent > 0 && at >= extent;
  if (!is_negative && !is_behind) return;
  const char *name = tl_buffer_name(buffer);
  tl_diag *diag = is_constant && offset == 0
                      ? tl_diag_report(context->diags, TL_DIAG_ALWAYS_OUTSIDE, op->loc,
                                       "index %lld of dim %d of '%s' is out of bounds", (long long)at, dim, name)
                      : tl_diag_report(context->diags, TL_DIAG_ALWAYS_OUTSIDE, op->loc,
                                       "the index of dim %d of '%s' is always negative: at most %lld", dim, name,
                                       (long long)range.hi + offset);
  bool reads = op->code == TL_OP_LOAD || op->code == TL_OP_TILE_LOAD ||
               (op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_src) == buffer);
  tl_diag_add_hint(context->diags, diag, "%s%s", reads ? "the read gives 0" : "the write is dropped",
                   is_negative ? "; subscripts do not count from the end, the last element of N is N - 1" : "");
}

// ---- boxes

static int64_t box_bits(const tl_box *box, int32_t d, int64_t lo, int64_t hi) {
  tl_value *limit = tl_box_limit(box, d);
  if (!limit) limit = tl_buffer_dim_value(box->buffer, d);
  return bits_for(box->op, tl_box_offset(box, d), lo, hi, limit, box->buffer->type->dims[d]);
}

static void check_box(tl_pass_context *context, tl_box *box) {
  int64_t checks[TL_MAX_RANK] = {0};
  bool any = false;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t lo = 0, hi = 0;
    tl_box_span(box, d, &lo, &hi);
    if (tl_buffer_is_global(box->buffer) || tl_box_limit(box, d)) {
      checks[d] = box_bits(box, d, lo, hi);
      // A box that lies before the tensor as a whole.
      if (tl_buffer_is_global(box->buffer) && hi >= 0 && hi < INT64_MAX / 2)
        check_tensor_index(context, box->op, box->buffer, d, tl_box_offset(box, d), hi);
    } else {
      check_tile_index(context, box->op, box->buffer, d, tl_box_offset(box, d), lo, hi);
    }
    any |= checks[d] != 0;
  }
  tl_op_set_ints(context->module, box->op, box->check_key, checks, box->buffer_rank);
  if (any) {
    tl_diag_report(context->diags, TL_DIAG_REMARK_BOUNDS, box->op->loc, "'%s' is accessed with bounds checks",
                   tl_buffer_name(box->buffer));
  }
}

// The limits of a slice are the author's; memory safety needs the buffer's own dims as well.
static void clip_limits(tl_pass_context *context, tl_box *box) {
  if (!tl_buffer_is_global(box->buffer)) return;
  tl_value *limits[TL_MAX_RANK];
  bool changed = false;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    limits[d] = tl_box_limit(box, d);
    if (!limits[d]) return;
    tl_value *dim = tl_buffer_dim_value(box->buffer, d);
    if (!dim || dim == limits[d] || tl_prove_le(limits[d], dim)) continue;
    tl_builder builder;
    tl_builder_before(&builder, context->module, box->op);
    builder.loc = box->op->loc;
    limits[d] = tl_index_min(&builder, limits[d], dim);
    changed = true;
  }
  if (changed) {
    tl_op_set_group(context->module, box->op, box->group_limits, limits, (uint32_t)box->buffer_rank);
  }
}

// ---- elements

// What a gemm reads of a tile.
static void check_part(tl_pass_context *context, const tl_op *op) {
  const tl_type *part = op->results[0].type;
  const tl_value *tile = tl_op_arg(op, TL_GROUP_PART_TILE_tile);
  const int64_t *dims = tl_op_ints(op, TL_ATTR_SRC_DIMS, NULL);
  for (int32_t d = 0; d < tile->type->rank; d++) {
    int64_t extent = d == dims[0] ? part->dims[0] : d == dims[1] ? part->dims[1] : 1;
    tl_value *offset = tl_op_group_at(op, TL_GROUP_PART_TILE_offsets, (uint32_t)d);
    check_tile_index(context, op, tile, d, offset, 0, extent - 1);
  }
}

static int64_t element_bits(const tl_op *op, uint32_t d) {
  const tl_value *buffer = tl_element_buffer(op);
  tl_value *limit = tl_buffer_dim_value(buffer, (int32_t)d);
  return bits_for(op, tl_element_index(op, d), 0, 0, limit, buffer->type->dims[d]);
}

static void check_element(tl_pass_context *context, tl_op *op) {
  tl_value *buffer = tl_element_buffer(op);
  int64_t checks[TL_MAX_RANK] = {0};
  bool any = false;
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    tl_value *index = tl_element_index(op, d);
    if (tl_buffer_is_global(buffer)) {
      checks[d] = element_bits(op, d);
      check_tensor_index(context, op, buffer, (int32_t)d, index, 0);
    } else {
      check_tile_index(context, op, buffer, (int32_t)d, index, 0, 0);
    }
    any |= checks[d] != 0;
  }
  tl_op_set_ints(context->module, op, TL_ATTR_CHECK, checks, (int32_t)tl_element_rank(op));
  if (any) {
    tl_diag_report(context->diags, TL_DIAG_REMARK_BOUNDS, op->loc, "'%s' is accessed with bounds checks",
                   tl_buffer_name(buffer));
  }
}

// ---- again, for clones whose indices are better known

static void refine_dims(tl_module *module, tl_op *op, tl_attr_key key, const int64_t *proven, int32_t rank) {
  const tl_attr *attr = tl_op_attr(op, key);
  if (!attr || attr->v.ints.len != rank) return;
  int64_t checks[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) checks[d] = attr->v.ints.items[d] & proven[d];
  tl_op_set_ints(module, op, key, checks, rank);
}

static void refine_box(tl_module *module, const tl_box *box) {
  int64_t bits[TL_MAX_RANK];
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t lo = 0, hi = 0;
    tl_box_span(box, d, &lo, &hi);
    bits[d] = box_bits(box, d, lo, hi);
  }
  refine_dims(module, box->op, box->check_key, bits, box->buffer_rank);
}

static void refine(tl_op *op, void *user) {
  if (op->code == TL_OP_COPY || op->code == TL_OP_TILE_LOAD) {
    tl_box box = tl_box_source(op);
    refine_box(user, &box);
  } else if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC) {
    int64_t bits[TL_MAX_RANK];
    int32_t rank = (int32_t)tl_element_rank(op);
    for (int32_t d = 0; d < rank; d++) bits[d] = element_bits(op, (uint32_t)d);
    refine_dims(user, op, TL_ATTR_CHECK, bits, rank);
  }
}

void tl_refine_bounds(tl_module *module, tl_op *op) {
  tl_walk(op, refine, module);
}

static void visit(tl_op *op, void *user) {
  tl_pass_context *context = user;
  if (op->code == TL_OP_COPY || op->code == TL_OP_TILE_LOAD) {
    tl_box box = tl_box_source(op);
    clip_limits(context, &box);
    check_box(context, &box);
    tl_bounds_of_box_loops(context, &box);
  }
  if (op->code == TL_OP_COPY || op->code == TL_OP_TILE_STORE) {
    tl_box box = tl_box_destination(op);
    clip_limits(context, &box);
    check_box(context, &box);
    tl_bounds_of_box_loops(context, &box);
  }
  if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC || op->code == TL_OP_WAIT_UNTIL) {
    check_element(context, op);
    tl_bounds_of_element_loops(context, op);
  }
  if (op->code == TL_OP_PART_TILE) check_part(context, op);
}

tl_status tl_pass_check_bounds(tl_pass_context *context) {
  tl_walk_module(context->module, visit, context);
  return TL_OK;
}
