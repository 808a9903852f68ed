// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// reduce: each thread combines its registers in a tree, then the lanes along the axes exchange by shfl.sync, unless
// each thread keeps its part. Warps have been brought together by infer-layouts, through a shared tile between a
// partial reduction and a final one.
#include "llvm_backend/lower/tile/lower_reduce.h"

#include "ir/reduction.h"
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/value/lower_arith.h"
#include "llvm_backend/lower/value/lower_pairs.h"

typedef struct tl_reduce_job {
  tl_op *op;
  const tl_value *values, *indices;  // sources; indices NULL: they are the coordinates
  const tl_layout *layout;           // of the source
  tl_combiner combiner;
  tl_reduce_within within;
  tl_place place;
  bool reduced[TL_MAX_RANK];
  int32_t sources[TL_MAX_RANK + 1];  // per dim of the result, parts aside: the source's dim, or -1
  int32_t num_sources;
} tl_reduce_job;

// Row-major position of the element at place->reg among the reduced dims.
static LLVMValueRef coordinate_index(tl_lower *l, const tl_reduce_job *job) {
  LLVMValueRef index = NULL;
  for (int32_t d = 0; d < job->layout->rank; d++) {
    if (!job->reduced[d]) continue;
    LLVMValueRef reg = tl_session_i32(l->session, job->place.reg[d]);
    LLVMValueRef coordinate = LLVMBuildNSWAdd(l->builder, job->place.thread[d], reg, "");
    if (index) {
      index = LLVMBuildNSWMul(l->builder, index, tl_session_i32(l->session, job->layout->shape[d]), "");
      coordinate = LLVMBuildNSWAdd(l->builder, index, coordinate, "");
    }
    index = coordinate;
  }
  return index;
}

// What register `reg` of the source brings; the neutral element in padding.
static tl_element element_at(tl_lower *l, tl_reduce_job *job, int32_t reg) {
  LLVMValueRef active = NULL;
  tl_lower_place_register(&job->place, reg);
  tl_element element = {.value = tl_lower_get(l, job->values, reg)};
  element.value = tl_lower_reduced_value(l, &job->combiner, element.value, job->values->type->dtype);
  if (tl_reduction_is_arg(job->combiner.reduction)) {
    element.index = job->indices ? tl_lower_get(l, job->indices, reg) : coordinate_index(l, job);
  }
  if (tl_lower_place_inside(l, &job->place, &active)) return element;
  tl_element neutral = tl_lower_neutral(l, &job->combiner);
  element.value = LLVMBuildSelect(l->builder, active, element.value, neutral.value, "");
  if (element.index) element.index = LLVMBuildSelect(l->builder, active, element.index, neutral.index, "");
  return element;
}

// A balanced tree, depth first: short chains, few values alive, and small rounding errors.
static tl_element reduce_registers(tl_lower *l, tl_reduce_job *job, const int32_t *registers, int32_t count) {
  if (count == 1) return element_at(l, job, registers[0]);
  tl_element a = reduce_registers(l, job, registers, count / 2);
  tl_element b = reduce_registers(l, job, registers + count / 2, count - count / 2);
  return tl_lower_combine(l, &job->combiner, a, b);
}

// The largest or smallest of elements that were widened from pairs of 16-bit floats, found among the pairs, two at a
// time: widening keeps their order. False when they are no such elements.
static bool reduce_pairs(tl_lower *l, tl_reduce_job *job, const int32_t *registers, int32_t count, tl_element *out) {
  const tl_combiner *combiner = &job->combiner;
  bool is_max = combiner->reduction == TL_REDUCTION_MAX;
  if (combiner->dtype != TL_DTYPE_F32 || (!is_max && combiner->reduction != TL_REDUCTION_MIN)) return false;
  if (job->values->type->dtype != TL_DTYPE_F32 || count < 4 || count % 2 != 0) return false;
  LLVMValueRef *pairs = TL_NEW_ARRAY(&l->arena, LLVMValueRef, count / 2), active = NULL;
  tl_dtype dtype = TL_DTYPE_NONE, first = TL_DTYPE_NONE;
  for (int32_t i = 0; i < count; i++) {
    tl_lower_place_register(&job->place, registers[i]);
    if (!tl_lower_place_inside(l, &job->place, &active)) return false;
  }
  for (int32_t i = 0; i < count / 2; i++) {
    LLVMValueRef low = tl_lower_get(l, job->values, registers[2 * i]);
    LLVMValueRef high = tl_lower_get(l, job->values, registers[2 * i + 1]);
    pairs[i] = tl_lower_widened_pair(l, low, high, &dtype);
    if (i == 0) first = dtype;
    if (!pairs[i] || dtype != first) return false;
  }
  const char *name =
      combiner->propagates_nan ? (is_max ? "llvm.maximum" : "llvm.minimum") : (is_max ? "llvm.maxnum" : "llvm.minnum");
  for (int32_t n = count / 2; n > 1; n = (n + 1) / 2) {
    for (int32_t i = 0; i < n / 2; i++) pairs[i] = tl_lower_intrinsic2(l, name, pairs[2 * i], pairs[2 * i + 1]);
    if (n % 2 != 0) pairs[n / 2] = pairs[n - 1];
  }
  LLVMValueRef halves[2], wide[2];
  tl_lower_split_pair(l, pairs[0], halves);
  tl_lower_convert(l, halves, dtype, TL_DTYPE_F32, 2, wide);
  *out = tl_lower_combine(l, combiner, (tl_element){.value = wide[0]}, (tl_element){.value = wide[1]});
  return true;
}

// Combines over the lanes that differ along the reduced dims; all of them get the result.
static tl_element reduce_lanes(tl_lower *l, const tl_reduce_job *job, tl_element element) {
  int32_t before = 1;
  for (int32_t m = 0; m < job->layout->num_modes; m++) {
    const tl_layout_mode *mode = &job->layout->modes[m];
    if (mode->axis != TL_AXIS_LANE) continue;
    bool crosses = mode->dim != TL_DIM_NONE && job->reduced[mode->dim];
    // Lane modes multiply to 32, so each is a power of two.
    for (int32_t step = 1; crosses && step < mode->size; step *= 2) {
      LLVMValueRef by = tl_session_i32(l->session, before * step);
      tl_element other = {.value = tl_lower_shuffle(l, TL_DEVOP_SHFL_BFLY, element.value, by)};
      if (element.index) other.index = tl_lower_shuffle(l, TL_DEVOP_SHFL_BFLY, element.index, by);
      element = tl_lower_combine(l, &job->combiner, element, other);
    }
    before *= mode->size;
  }
  return element;
}

// The register of the result that source register `reg` goes into.
static int32_t target_register(const tl_reduce_job *job, const tl_layout *result, int32_t reg) {
  int32_t full[TL_MAX_DIMS], coord[TL_MAX_DIMS] = {0};
  tl_layout_axis_coord(job->layout, TL_AXIS_REGISTER, reg, full);
  for (int32_t i = 0; i < job->num_sources && i < result->rank; i++) {
    if (job->sources[i] >= 0) coord[i] = full[job->sources[i]];
  }
  return tl_lower_tile_register(result, coord);
}

static bool init_job(tl_lower *l, tl_op *op, tl_reduce_job *job) {
  job->op = op;
  job->values = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0);
  if (tl_op_group_len(op, TL_GROUP_REDUCE_src) > 1) job->indices = tl_op_group_at(op, TL_GROUP_REDUCE_src, 1);
  job->layout = job->values->type->layout;
  if (!job->layout || op->num_results == 0 || !op->results[0].type->layout) {
    tl_lower_internal(l, op, "a tile without a layout");
    return false;
  }
  tl_dtype dtype = op->results[0].type->dtype;
  job->combiner = (tl_combiner){.reduction = (int)tl_op_int(op, TL_ATTR_REDUCTION, TL_REDUCTION_SUM),
                                .dtype = dtype,
                                .propagates_nan = tl_op_has(op, TL_ATTR_NAN)};
  tl_reduce_axes(op, job->reduced);
  job->num_sources = tl_reduced_sources(job->layout->rank, job->reduced, tl_op_has(op, TL_ATTR_KEEPDIMS), job->sources);
  if (!tl_session_type(l->session, dtype) || !tl_session_type(l->session, job->values->type->dtype)) {
    tl_lower_unsupported(l, op, "a reduction of %s has no lowering", tl_dtype_name(job->values->type->dtype));
    return false;
  }
  job->within = tl_reduce_within_of(op);
  if (job->within == TL_WITHIN_BLOCK && tl_layout_parts(job->layout, job->reduced, TL_WITHIN_WARP) > 1) {
    tl_lower_internal(l, op, "several warps hold parts of one result");
    return false;
  }
  job->place = *tl_lower_place(l, job->layout, op);
  return true;
}

void tl_lower_op_REDUCE(tl_lower *l, tl_op *op) {
  tl_reduce_job job = {0};
  if (!init_job(l, op, &job)) return;
  const tl_layout *result = op->results[0].type->layout;
  int32_t num_results = tl_layout_num_registers(result), registers = tl_layout_num_registers(job.layout);
  // The registers that each result register collects, one list after the other.
  int32_t *targets = TL_NEW_ARRAY(&l->arena, int32_t, registers), *list = TL_NEW_ARRAY(&l->arena, int32_t, registers);
  LLVMValueRef *values = TL_NEW_ARRAY(&l->arena, LLVMValueRef, num_results);
  LLVMValueRef *indices = TL_NEW_ARRAY(&l->arena, LLVMValueRef, num_results);
  for (int32_t reg = 0; reg < registers; reg++) targets[reg] = target_register(&job, result, reg);
  tl_lower_begin_groups(l);
  for (int32_t r = 0; r < num_results && !tl_lower_failed(l); r++) {
    int32_t count = 0;
    for (int32_t reg = 0; reg < registers; reg++) {
      if (targets[reg] == r) list[count++] = reg;
    }
    if (count == 0) {
      tl_lower_internal(l, op, "the result's layout does not follow the source's");
      break;
    }
    tl_element element = {0};
    if (!reduce_pairs(l, &job, list, count, &element)) element = reduce_registers(l, &job, list, count);
    if (job.within != TL_WITHIN_THREAD) element = reduce_lanes(l, &job, element);
    values[r] = element.value;
    indices[r] = element.index;
  }
  tl_lower_end_groups(l);
  if (tl_lower_failed(l)) return;
  tl_lower_set(l, tl_op_result(op, 0), values, num_results);
  if (op->num_results > 1) tl_lower_set(l, tl_op_result(op, 1), indices, num_results);
}
