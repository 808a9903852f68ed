// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dtypes, dims and layouts of reductions.
#include "ir/reduction.h"

#include <string.h>

bool tl_reduction_is_arg(int reduction) {
  return reduction == TL_REDUCTION_ARGMAX || reduction == TL_REDUCTION_ARGMIN;
}

bool tl_reduction_takes(int reduction, tl_dtype dtype) {
  bool is_bitwise =
      reduction == TL_REDUCTION_BITAND || reduction == TL_REDUCTION_BITOR || reduction == TL_REDUCTION_BITXOR;
  return !is_bitwise || tl_dtype_is_int(dtype);
}

tl_dtype tl_reduction_dtype(int reduction, tl_dtype dtype) {
  if (reduction == TL_REDUCTION_ANY || reduction == TL_REDUCTION_ALL) return TL_DTYPE_BOOL;
  if (tl_dtype_is_float(dtype)) return tl_dtype_bits(dtype) < 64 ? TL_DTYPE_F32 : dtype;
  return dtype == TL_DTYPE_BOOL || tl_dtype_bits(dtype) < 32 ? TL_DTYPE_I32 : dtype;
}

void tl_reduce_axes(const tl_op *reduce, bool *out_reduced) {
  const tl_attr *axes = tl_op_attr(reduce, TL_ATTR_AXES);
  for (int32_t d = 0; d < TL_MAX_RANK; d++) out_reduced[d] = false;
  for (int32_t i = 0; axes && i < axes->v.ints.len; i++) {
    int64_t axis = axes->v.ints.items[i];
    if (axis >= 0 && axis < TL_MAX_RANK) out_reduced[axis] = true;
  }
}

int32_t tl_reduced_sources(int32_t rank, const bool *reduced, bool keep, int32_t *out_sources) {
  int32_t len = 0;
  for (int32_t d = 0; d < rank; d++) {
    if (!reduced[d]) {
      out_sources[len++] = d;
    } else if (keep) {
      out_sources[len++] = -1;
    }
  }
  if (len == 0) out_sources[len++] = -1;
  return len;
}

tl_reduce_within tl_reduce_within_of(const tl_op *reduce) {
  if (!tl_op_has(reduce, TL_ATTR_PARTIAL)) return TL_WITHIN_BLOCK;
  return tl_op_int(reduce, TL_ATTR_EACH, TL_EACH_WARP) == TL_EACH_THREAD ? TL_WITHIN_THREAD : TL_WITHIN_WARP;
}

// Where the parts of a partial result lie among its dims, given what tl_reduced_sources says. Appends a dim if need be.
static int32_t place_parts(int32_t *sources, int32_t *rank, tl_reduce_within within) {
  for (int32_t i = 0; within != TL_WITHIN_THREAD && i < *rank; i++) {
    if (sources[i] < 0) return i;
  }
  sources[*rank] = -1;
  return (*rank)++;
}

int32_t tl_reduced_dims(const int64_t *dims, int32_t rank, const bool *reduced, bool keep, tl_reduce_within within,
                        int32_t parts, int64_t *out_dims) {
  int32_t sources[TL_MAX_RANK + 1];
  int32_t len = tl_reduced_sources(rank, reduced, keep, sources);
  int32_t axis = parts > 1 ? place_parts(sources, &len, within) : -1;
  for (int32_t i = 0; i < len; i++) out_dims[i] = sources[i] >= 0 ? dims[sources[i]] : i == axis ? parts : 1;
  return len;
}

// Whether the parts that the digits of this axis hold stay apart.
static bool keeps_apart(tl_layout_axis axis, tl_reduce_within within) {
  if (axis == TL_AXIS_WARP) return within != TL_WITHIN_BLOCK;
  return axis == TL_AXIS_LANE && within == TL_WITHIN_THREAD;
}

int32_t tl_layout_parts(const tl_layout *layout, const bool *reduced, tl_reduce_within within) {
  int32_t parts = 1;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (keeps_apart(mode->axis, within) && mode->dim != TL_DIM_NONE && reduced[mode->dim]) parts *= mode->size;
  }
  return parts;
}

// The result's shape, and for each dim of the source its dim of the result (TL_DIM_NONE for reduced ones).
static tl_layout result_shape(const tl_layout *layout, const bool *reduced, bool keep, int32_t *sources,
                              int32_t *new_dims) {
  tl_layout result;
  memset(&result, 0, sizeof(result));
  result.rank = tl_reduced_sources(layout->rank, reduced, keep, sources);
  for (int32_t d = 0; d < layout->rank; d++) new_dims[d] = TL_DIM_NONE;
  for (int32_t i = 0; i < result.rank; i++) {
    result.shape[i] = sources[i] >= 0 ? layout->shape[sources[i]] : 1;
    if (sources[i] >= 0) new_dims[sources[i]] = i;
  }
  return result;
}

// Appends a mode; neighbouring replication of one axis becomes one mode, so that equal layouts look equal.
static void append_mode(tl_layout *result, tl_layout_mode mode) {
  for (int32_t m = result->num_modes - 1; m >= 0 && mode.dim == TL_DIM_NONE; m--) {
    tl_layout_mode *last = &result->modes[m];
    if (last->axis != mode.axis) continue;
    if (last->dim != TL_DIM_NONE) break;
    last->size *= mode.size;
    return;
  }
  result->modes[result->num_modes++] = mode;
}

static void add_kept_modes(tl_layout *result, const tl_layout *layout, const int32_t *new_dims, tl_reduce_within within,
                           int32_t parts_dim) {
  int32_t parts = 1;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    tl_layout_mode mode = layout->modes[m];
    bool is_reduced = mode.dim != TL_DIM_NONE && new_dims[mode.dim] == TL_DIM_NONE;
    if (mode.dim != TL_DIM_NONE) mode.dim = new_dims[mode.dim];
    if (is_reduced && mode.axis == TL_AXIS_REGISTER) continue;
    if (mode.dim == TL_DIM_NONE) mode.stride = 0;
    if (is_reduced && keeps_apart(mode.axis, within) && parts_dim >= 0) {
      mode.dim = parts_dim;
      mode.stride = parts;
      parts *= mode.size;
    }
    append_mode(result, mode);
  }
}

tl_layout tl_layout_reduce(const tl_layout *layout, const bool *reduced, bool keep, tl_reduce_within within) {
  int32_t sources[TL_MAX_RANK + 1], new_dims[TL_MAX_RANK], parts_dim = -1;
  tl_layout result = result_shape(layout, reduced, keep, sources, new_dims);
  int32_t parts = tl_layout_parts(layout, reduced, within);
  if (parts > 1) {
    parts_dim = place_parts(sources, &result.rank, within);
    result.shape[parts_dim] = parts;
  }
  add_kept_modes(&result, layout, new_dims, within, parts_dim);
  return result;
}

// Parts from which on the lanes share the reading: with fewer the additional shuffles cost more than the loads saved.
enum { MIN_SHARED_PARTS = 16, PARTS_PER_LOAD = 4 };

// Spreads parts over lanes that would all read the same ones, as long as each still reads a vector of them.
static tl_layout share_parts(const tl_layout *gathered, int32_t axis, int32_t parts) {
  tl_layout result = *gathered;
  int32_t registers = parts;
  result.num_modes = 1;
  for (int32_t m = 1; m < gathered->num_modes; m++) {
    tl_layout_mode mode = gathered->modes[m];
    int32_t along = 1;
    bool idle = mode.axis == TL_AXIS_LANE && mode.dim == TL_DIM_NONE && gathered->num_modes < TL_LAYOUT_MAX_MODES;
    // Lane modes are powers of two.
    while (idle && along < mode.size && registers % 2 == 0 && registers / 2 >= PARTS_PER_LOAD) {
      along *= 2;
      registers /= 2;
    }
    if (along > 1)
      result.modes[result.num_modes++] = (tl_layout_mode){.axis = TL_AXIS_LANE, .size = along, .dim = axis};
    mode.size /= along;
    if (mode.size > 1) result.modes[result.num_modes++] = mode;
  }
  result.modes[0].size = registers;
  for (int32_t m = 1, stride = registers; m < result.num_modes; m++) {
    tl_layout_mode *mode = &result.modes[m];
    if (mode->axis != TL_AXIS_LANE || mode->dim != axis) continue;
    mode->stride = stride;
    stride *= mode->size;
  }
  return result;
}

tl_layout tl_layout_gather_parts(const tl_layout *layout, const bool *reduced, bool keep, int32_t *out_axis) {
  int32_t sources[TL_MAX_RANK + 1], new_dims[TL_MAX_RANK];
  tl_layout result = result_shape(layout, reduced, keep, sources, new_dims);
  int32_t parts = tl_layout_parts(layout, reduced, TL_WITHIN_WARP);
  *out_axis = place_parts(sources, &result.rank, TL_WITHIN_WARP);
  result.shape[*out_axis] = parts;
  result.modes[result.num_modes++] =
      (tl_layout_mode){.axis = TL_AXIS_REGISTER, .size = parts, .dim = *out_axis, .stride = 1};
  add_kept_modes(&result, layout, new_dims, TL_WITHIN_BLOCK, -1);
  return parts >= MIN_SHARED_PARTS ? share_parts(&result, *out_axis, parts) : result;
}

// ---- scans

bool tl_reduction_scans(int reduction) {
  return reduction == TL_REDUCTION_SUM || reduction == TL_REDUCTION_PROD || reduction == TL_REDUCTION_MAX ||
         reduction == TL_REDUCTION_MIN;
}

int32_t tl_scan_run(const tl_layout *layout, int32_t axis) {
  // The digits below a mode's stride count its elements without gaps.
  int32_t run = 0;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis != TL_AXIS_WARP || mode->dim != axis || mode->size == 1) continue;
    if (run == 0 || mode->stride < run) run = mode->stride;
  }
  return run > 0 ? run : tl_layout_padded(layout, axis);
}

int32_t tl_scan_num_runs(const tl_layout *layout, int32_t axis) {
  int32_t run = tl_scan_run(layout, axis);
  return (layout->shape[axis] + run - 1) / run;
}

static tl_layout runs_layout(const tl_layout *layout, int32_t axis, bool gather) {
  int32_t run = tl_scan_run(layout, axis);
  tl_layout result = *layout;
  result.shape[axis] = tl_scan_num_runs(layout, axis);
  result.num_modes = 0;
  if (gather) {
    result.modes[result.num_modes++] =
        (tl_layout_mode){.axis = TL_AXIS_REGISTER, .size = result.shape[axis], .dim = axis, .stride = 1};
  }
  for (int32_t m = 0; m < layout->num_modes; m++) {
    tl_layout_mode mode = layout->modes[m];
    bool drops = mode.dim == axis && (gather || mode.stride < run);
    if (drops && mode.axis == TL_AXIS_REGISTER) continue;
    if (drops) {
      mode.dim = TL_DIM_NONE;
      mode.stride = 0;
    } else if (mode.dim == axis) {
      mode.stride /= run;
    }
    result.modes[result.num_modes++] = mode;
  }
  return result;
}

tl_layout tl_layout_scan_totals(const tl_layout *layout, int32_t axis) {
  return runs_layout(layout, axis, false);
}

tl_layout tl_layout_scan_gather(const tl_layout *layout, int32_t axis) {
  return runs_layout(layout, axis, true);
}
