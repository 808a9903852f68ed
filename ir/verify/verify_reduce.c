// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of reductions and scans.
#include "ir/reduction.h"
#include "ir/verify/verify_internal.h"

static bool verify_axes(tl_verifier *verifier, const tl_op *op, int32_t rank) {
  const tl_attr *axes = tl_op_attr(op, TL_ATTR_AXES);
  bool good = axes->v.ints.len > 0;
  for (int32_t i = 0; i < axes->v.ints.len; i++) {
    int64_t axis = axes->v.ints.items[i];
    good = good && axis >= 0 && axis < rank && (i == 0 || axis > axes->v.ints.items[i - 1]);
  }
  return good || tl_verify_fail(verifier, op, "'axes' is no rising list of dims of the source");
}

static void verify_target(tl_verifier *verifier, const tl_op *op, const tl_type *type, tl_dtype dtype,
                          const int64_t *dims, int32_t rank) {
  bool same = type->rank == rank && type->dtype == dtype;
  for (int32_t d = 0; same && d < rank; d++) same = type->dims[d] == dims[d];
  if (!same) {
    tl_verify_fail(verifier, op, "%s is not what the reduction gives", tl_verify_type_text(verifier, type));
  }
}

static void verify_source(tl_verifier *verifier, const tl_op *op, const tl_type *values, bool has_buffers) {
  if (has_buffers ? values->kind != TL_TYPE_BUFFER || values->scope == TL_SCOPE_GLOBAL : values->kind != TL_TYPE_TILE) {
    tl_verify_fail(verifier, op, "%s of %s", tl_op_info_of(op->code)->name, tl_verify_type_text(verifier, values));
  }
}

static void verify_indices(tl_verifier *verifier, const tl_op *op, const tl_type *values) {
  uint32_t count = tl_op_group_len(op, TL_GROUP_REDUCE_src);
  if (count < 2) return;
  const tl_type *indices = tl_op_group_at(op, TL_GROUP_REDUCE_src, 1)->type;
  bool same = tl_reduction_is_arg((int)tl_op_int(op, TL_ATTR_REDUCTION, 0)) && count == 2 &&
              indices->kind == values->kind && indices->rank == values->rank && indices->layout == values->layout &&
              indices->dtype == TL_DTYPE_I32;
  if (!same) tl_verify_fail(verifier, op, "the second source is no tile of indices beside the values");
}

static void verify_reduce(tl_verifier *verifier, const tl_op *op) {
  if (tl_op_group_len(op, TL_GROUP_REDUCE_src) == 0) {
    tl_verify_fail(verifier, op, "nothing is reduced");
    return;
  }
  const tl_type *source = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0)->type;
  int reduction = (int)tl_op_int(op, TL_ATTR_REDUCTION, 0);
  uint32_t num_buffers = tl_op_group_len(op, TL_GROUP_REDUCE_dst), wanted = tl_reduction_is_arg(reduction) ? 2 : 1;
  verify_source(verifier, op, source, num_buffers > 0);
  verify_indices(verifier, op, source);
  if (!verify_axes(verifier, op, source->rank)) return;
  if (num_buffers + op->num_results != wanted) {
    tl_verify_fail(verifier, op, "%s has %u result%s", tl_ir_enum_text(TL_IR_ENUM_REDUCTION, reduction), wanted,
                   wanted == 1 ? "" : "s");
    return;
  }
  if (!tl_reduction_takes(reduction, source->dtype)) {
    tl_verify_fail(verifier, op, "%s of %s", tl_ir_enum_text(TL_IR_ENUM_REDUCTION, reduction),
                   tl_dtype_name(source->dtype));
  }
  bool reduced[TL_MAX_RANK], keep = tl_op_has(op, TL_ATTR_KEEPDIMS);
  tl_reduce_within within = tl_reduce_within_of(op);
  tl_reduce_axes(op, reduced);
  int64_t each = tl_op_int(op, TL_ATTR_EACH, TL_EACH_WARP);
  bool is_plain = within == TL_WITHIN_BLOCK && tl_op_has(op, TL_ATTR_EACH);
  if (is_plain || (each != TL_EACH_WARP && each != TL_EACH_THREAD)) {
    tl_verify_fail(verifier, op, "'each' is warp or thread, of a partial reduction");
    return;
  }
  if (within != TL_WITHIN_BLOCK && source->layout == NULL) {
    tl_verify_fail(verifier, op, "a partial reduction needs layouts");
    return;
  }
  int64_t dims[TL_MAX_RANK + 1];
  int32_t parts = within != TL_WITHIN_BLOCK ? tl_layout_parts(source->layout, reduced, within) : 1;
  int32_t rank = tl_reduced_dims(source->dims, source->rank, reduced, keep, within, parts, dims);
  if (rank > TL_MAX_RANK) {
    tl_verify_fail(verifier, op, "the parts would be a dim too many");
    return;
  }
  tl_dtype dtype = tl_reduction_dtype(reduction, source->dtype);
  for (uint32_t i = 0; i < wanted; i++) {
    const tl_type *type = num_buffers > 0 ? tl_op_group_at(op, TL_GROUP_REDUCE_dst, i)->type : op->results[i].type;
    verify_target(verifier, op, type, i == 0 ? dtype : TL_DTYPE_I32, dims, rank);
    if (num_buffers > 0 || source->layout == NULL || type->layout == NULL) continue;
    tl_layout layout = tl_layout_reduce(source->layout, reduced, keep, within);
    if (!tl_layout_equal(&layout, type->layout)) {
      tl_verify_fail(verifier, op, "the result's layout does not follow from the source's");
    }
  }
}

// ---- scans

static void verify_scan_kind(tl_verifier *verifier, const tl_op *op, const tl_type *source) {
  int reduction = (int)tl_op_int(op, TL_ATTR_REDUCTION, 0);
  if (!tl_reduction_scans(reduction)) {
    tl_verify_fail(verifier, op, "there is no running %s", tl_ir_enum_text(TL_IR_ENUM_REDUCTION, reduction));
  }
  const tl_attr *axes = tl_op_attr(op, TL_ATTR_AXES);
  if (axes->v.ints.len != 1 || axes->v.ints.items[0] < 0 || axes->v.ints.items[0] >= source->rank) {
    tl_verify_fail(verifier, op, "'axes' is not one dim of the source");
  }
}

static void verify_scan(tl_verifier *verifier, const tl_op *op) {
  const tl_type *source = tl_op_arg(op, TL_GROUP_SCAN_src)->type;
  const tl_value *buffer = tl_op_arg(op, TL_GROUP_SCAN_dst);
  bool partial = tl_op_has(op, TL_ATTR_PARTIAL);
  verify_source(verifier, op, source, buffer != NULL);
  verify_scan_kind(verifier, op, source);
  uint32_t wanted = buffer ? 0 : partial ? 2 : 1;
  if (op->num_results != wanted || (partial && source->layout == NULL)) {
    tl_verify_fail(verifier, op, "this scan has %u result%s", wanted, wanted == 1 ? "" : "s");
    return;
  }
  const tl_type *type = buffer ? buffer->type : op->results[0].type;
  tl_dtype dtype = tl_reduction_dtype((int)tl_op_int(op, TL_ATTR_REDUCTION, 0), source->dtype);
  verify_target(verifier, op, type, dtype, source->dims, source->rank);
  if (type->layout && source->layout && !tl_layout_equal(type->layout, source->layout)) {
    tl_verify_fail(verifier, op, "source and result have different layouts");
  }
}

static void verify_scan_carry(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tl_op_arg(op, TL_GROUP_SCAN_CARRY_tile)->type;
  const tl_type *totals = tl_op_arg(op, TL_GROUP_SCAN_CARRY_totals)->type;
  size_t errors = verifier->result->errors.len;
  verify_scan_kind(verifier, op, tile);
  if (op->results[0].type != tile) tl_verify_fail(verifier, op, "the result is not of the tile's type");
  if (tile->layout == NULL || totals->layout == NULL || verifier->result->errors.len != errors) return;
  tl_layout gathered = tl_layout_scan_gather(tile->layout, (int32_t)tl_op_attr(op, TL_ATTR_AXES)->v.ints.items[0]);
  if (totals->dtype != tile->dtype || !tl_layout_equal(&gathered, totals->layout)) {
    tl_verify_fail(verifier, op, "the totals do not follow from the tile");
  }
}

void tl_verify_reduce_op(tl_verifier *verifier, const tl_op *op) {
  bool is_scan = op->code == TL_OP_SCAN || op->code == TL_OP_SCAN_CARRY;
  if (!is_scan && op->code != TL_OP_REDUCE) return;
  if (tl_op_enclosing(op, TL_OP_PARALLEL)) {
    tl_verify_fail(verifier, op, "'%s' stands inside a parallel", tl_op_info_of(op->code)->name);
  }
  if (op->code == TL_OP_REDUCE) {
    verify_reduce(verifier, op);
  } else if (op->code == TL_OP_SCAN) {
    verify_scan(verifier, op);
  } else {
    verify_scan_carry(verifier, op);
  }
}
