// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions that arrive in parts: where a loop reads a staged region tile by tile, its first iteration needs the first
// tile only, and computes while the others are on their way.
#include "passes/layout/stage_reads.h"

enum {
  MIN_PART_BYTES = 4096,  // less is not worth a wait and a barrier
  PIECE_BITS = 128        // that copies move at once
};

// The dim along which the loop's iterations read one part after the other, all loads by the same step; -1: none.
static int32_t dim_of_parts(const tl_staged_region *region, const tl_op *loop, int64_t *out_by) {
  int32_t found = -1;
  for (int32_t d = 0; d < region->tensor->type->rank; d++) {
    int64_t step = 0, last, by;
    bool is_first = true;
    for (size_t i = 0; i < region->loads.len; i++) {
      if (!tl_op_is_inside(region->loads.items[i], loop)) continue;
      if (!tl_stage_last_read(region->loads.items[i], d, loop, &last, &by) || (!is_first && by != step)) return -1;
      step = by;
      is_first = false;
    }
    if (step < 0 || (step > 0 && found >= 0)) return -1;
    if (step > 0) found = d;
    if (step > 0) *out_by = step;
  }
  return found;
}

// One past the last element that the loop's first iteration reads, counted from the region's first.
static int64_t first_end(const tl_staged_region *region, const tl_op *loop, int32_t dim) {
  int64_t end = 0, last, by;
  for (size_t i = 0; i < region->loads.len; i++) {
    if (!tl_op_is_inside(region->loads.items[i], loop)) continue;
    if (tl_stage_last_read(region->loads.items[i], dim, loop, &last, &by) && last - region->lo[dim] >= end)
      end = last - region->lo[dim] + 1;
  }
  return end;
}

tl_stage_parts tl_stage_split(const tl_staged_region *region, const tl_op *first) {
  const tl_stage_parts whole = {.len = 1};
  tl_constant_loop loop;
  if (first->code != TL_OP_FOR || !tl_loop_is_constant(first, &loop) || tl_op_has(first, TL_ATTR_WHILE)) return whole;
  if (loop.trips < 2 || loop.trips > TL_STAGE_MAX_PARTS || region->bytes < loop.trips * MIN_PART_BYTES) return whole;
  int64_t by = 0, bits = tl_dtype_bits(region->tensor->type->dtype);
  tl_stage_parts out = {.len = (int32_t)loop.trips, .dim = dim_of_parts(region, first, &by)};
  if (out.dim < 0) return whole;
  int64_t extent = region->hi[out.dim] - region->lo[out.dim] + 1, before = 0, end = first_end(region, first, out.dim);
  bool is_last_dim = out.dim == region->tensor->type->rank - 1;
  for (int32_t p = 0; p < out.len; p++, end += by) {
    out.ends[p] = p == out.len - 1 ? extent : end;
    if (out.ends[p] <= before || out.ends[p] > extent) return whole;
    if (is_last_dim && p < out.len - 1 && out.ends[p] * bits % PIECE_BITS != 0) return whole;
    before = out.ends[p];
  }
  return out;
}
