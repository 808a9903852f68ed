// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements that a pipelined loop reads from global memory beside its copies, such as the scales of quantised weights.
//
//   for %k pipelined {                             copy %scales[%b, 0] -> %scales_stage async; async_commit
//     parallel {                              ⇒    async_wait; barrier; for %k pipelined {
//       … load %scales[%b + %i, %k] …                parallel { … load %scales_stage[%i, %k] … }
//     }                                            }
//   }
//
// One element a row and iteration is too little for a copy of the pipeline's own, and loads where they are used are
// dear: the lanes of a warp read as many lines of the cache as rows, and nothing of the iteration goes on before they
// have answered. The elements of all iterations together are whole pieces of rows.
#include "passes/layout/stage_reads.h"

#include "passes/layout/align_rows.h"

#include <string.h>

#include "passes/analysis/known_conditions.h"
#include "passes/schedule/cost.h"

enum {
  MAX_BYTES = 16384,   // of one region
  MIN_BLOCKS = 2,      // on a multiprocessor with it
  MAX_WASTE = 2,       // elements that are copied for each that is read
  MIN_PIECE_BYTES = 4  // what one cp.async moves at least
};

typedef TL_VEC(tl_op *) op_list;

static const tl_op *owner_of(const tl_value *value) {
  return value->def ? value->def->parent->parent : value->block->parent;
}

// Splits an index into what is fixed before the loop and the range that the loop adds. `distinct`: how many places the
// parallel and the loop give it, by the indices that they give it directly.
static bool split_index(tl_value *index, const tl_op *loop, tl_affine *out_base, int64_t *out_lo, int64_t *out_hi,
                        int64_t *distinct) {
  tl_affine form = tl_affine_of(index);
  if (!form.valid) return false;
  *out_base = (tl_affine){.valid = true};
  *out_lo = *out_hi = form.constant;
  *distinct = 1;
  for (int32_t t = 0; t < form.num_terms; t++) {
    tl_value *symbol = form.terms[t].symbol;
    int64_t by = form.terms[t].coefficient, lo, hi;
    if (symbol->type->kind != TL_TYPE_INDEX) return false;
    if (!tl_op_is_inside(owner_of(symbol), loop)) {
      out_base->terms[out_base->num_terms++] = form.terms[t];
      continue;
    }
    tl_range range = tl_value_range(symbol);
    bool small = by > 0 && by <= MAX_BYTES && range.lo >= 0 && range.hi >= range.lo && range.hi <= INT32_MAX;
    if (!small || __builtin_mul_overflow(range.lo, by, &lo) || __builtin_mul_overflow(range.hi, by, &hi)) return false;
    *out_lo += lo;
    *out_hi += hi;
    *distinct *= range.hi - range.lo + 1;
  }
  return *out_hi - *out_lo < MAX_BYTES;
}

static bool reads_input(const tl_op *load) {
  const tl_op *tensor = tl_element_buffer(load)->def;
  return tensor && tensor->code == TL_OP_TENSOR && tl_element_rank(load) > 0 &&
         tl_op_int(tensor, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
}

// Bounds of a dim that the region may leave. Not those of the load: what stands around that in the loop, a branch or
// the loop's own trip count, does not hold where the copy runs.
int64_t tl_stage_checks(const tl_staged_region *region, int32_t dim, const tl_op *before) {
  tl_value *limit = tl_buffer_dim_value(region->tensor, dim);
  tl_affine first = region->base[dim], last = region->base[dim];
  tl_affine end = limit ? tl_affine_of(limit) : (tl_affine){.valid = true, .constant = region->tensor->type->dims[dim]};
  first.constant = region->lo[dim];
  last.constant = region->hi[dim] + 1;
  tl_affine room = tl_affine_sub(&end, &last);
  int64_t checks = 0;
  if (!tl_affine_prove_nonnegative(&first) && !tl_known_sum(before, &first)) checks |= TL_CHECK_LOWER;
  if (!tl_affine_prove_nonnegative(&room) && !tl_known_sum(before, &room)) checks |= TL_CHECK_UPPER;
  return checks;
}

// The region of the load in all iterations; false when it is not known, too large, or mostly not read.
static bool region_of(tl_op *load, const tl_op *loop, tl_staged_region *out) {
  *out = (tl_staged_region){.tensor = tl_element_buffer(load)};
  if (!reads_input(load) || tl_op_arg(load, TL_GROUP_LOAD_pad)) return false;
  int64_t elements = 1, read = 1;
  for (uint32_t d = 0; d < tl_element_rank(load); d++) {
    int64_t distinct;
    if (!split_index(tl_element_index(load, d), loop, &out->base[d], &out->lo[d], &out->hi[d], &distinct)) return false;
    out->checks[d] = tl_stage_checks(out, (int32_t)d, loop);
    int64_t extent = out->hi[d] - out->lo[d] + 1;
    if (elements > MAX_BYTES / extent) return false;
    elements *= extent;
    read = distinct > MAX_BYTES / read ? MAX_BYTES : read * distinct;
  }
  out->bytes = (int64_t)tl_dtype_bytes(out->tensor->type->dtype, (uint64_t)elements);
  return elements > 1 && out->bytes <= MAX_BYTES && elements <= MAX_WASTE * read;
}

bool tl_stage_is_one_row(const tl_staged_region *region) {
  const tl_value *tensor = region->tensor;
  int32_t last = tensor->type->rank - 1;
  const tl_op *root = tensor->def;
  bool fits = root && root->code == TL_OP_TENSOR && tl_rows_are_dense(tensor) &&
              tl_dtype_bits(tensor->type->dtype) >= 8 &&
              tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN && region->checks[last] == 0;
  for (int32_t d = 0; d < last && fits; d++) fits = region->lo[d] == region->hi[d] && region->checks[d] == 0;
  for (size_t i = 0; i < region->loads.len && fits; i++) {
    tl_op *load = region->loads.items[i];
    tl_box box = load->code == TL_OP_TILE_LOAD ? tl_box_source(load) : (tl_box){0};
    int64_t checks = load->code == TL_OP_TILE_LOAD ? tl_box_check(&box, last) : tl_element_check(load, last);
    fits = !(checks & TL_CHECK_LOWER);
  }
  return fits;
}

int64_t tl_stage_piece_bytes(const tl_staged_region *region) {
  enum { MOST_BITS = 128 };
  const tl_value *tensor = region->tensor;
  int32_t last = tensor->type->rank - 1;
  int64_t bits = tl_dtype_bits(tensor->type->dtype), first = region->lo[last];
  int64_t pieces = tl_common_divisor((region->hi[last] - first + 1) * bits, first * bits);
  pieces = tl_common_divisor(pieces, tl_affine_divisor(&region->base[last]) * bits);
  for (int32_t d = 0; d < last; d++) pieces = tl_common_divisor(pieces, tl_buffer_stride_divisor(tensor, d) * bits);
  // A bound between two elements of a piece would need another instruction.
  if (region->checks[last]) pieces = tl_common_divisor(pieces, tl_buffer_dim_divisor(tensor, last) * bits);
  pieces = tl_common_divisor(pieces, tl_buffer_align(tensor) * 8);
  if (!tl_buffer_is_row_contiguous(tensor)) return 0;
  return tl_common_divisor(pieces, MOST_BITS) / 8;
}

// Shared bytes that the plan counts on; what is staged comes on top.
static int64_t planned_bytes(const tl_op *kernel) {
  const tl_attr *plan = tl_op_attr(kernel, TL_ATTR_PLAN);
  for (int32_t i = 0; plan && i < plan->v.dict.len; i++) {
    const tl_dict_entry *entry = &plan->v.dict.entries[i];
    if (entry->kind == TL_ATTRKIND_INT && tl_str_is(tl_str_from(entry->name), "shared")) return entry->i;
  }
  return 0;
}

static bool fits(const tl_pass_context *context, int64_t shared_bytes) {
  const tl_target *target = context->target;
  return shared_bytes <= target->shared_max_bytes &&
         MIN_BLOCKS * (shared_bytes + TL_COST_RESERVED_SHARED_BYTES) <= target->shared_per_sm_bytes;
}

// Whether another load of the loop reads the same region.
static bool same_region(const tl_staged_region *a, const tl_staged_region *b) {
  bool same = a->tensor == b->tensor;
  for (int32_t d = 0; d < a->tensor->type->rank && same; d++) {
    tl_affine rest = tl_affine_sub(&a->base[d], &b->base[d]);
    same = rest.valid && rest.num_terms == 0 && a->lo[d] == b->lo[d] && a->hi[d] == b->hi[d] &&
           a->checks[d] == b->checks[d];
  }
  return same;
}

static void redirect(tl_pass_context *context, const tl_staged_region *region, tl_value *stage, tl_op *load) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, load);
  tl_value *index[TL_MAX_RANK];
  int64_t inside[TL_MAX_RANK] = {0};
  int32_t rank = stage->type->rank;
  for (int32_t d = 0; d < rank; d++) {
    tl_affine form = tl_affine_of(tl_element_index(load, (uint32_t)d));
    form = tl_affine_sub(&form, &region->base[d]);
    index[d] = tl_stage_build_sum(&builder, &form, form.constant - region->lo[d]);
  }
  tl_op_set_group(context->module, load, TL_GROUP_LOAD_buffer, &stage, 1);
  tl_op_set_group(context->module, load, TL_GROUP_LOAD_index, index, (uint32_t)rank);
  tl_op_set_ints(context->module, load, TL_ATTR_CHECK, inside, rank);
}

typedef struct element_walk {
  tl_pass_context *context;
  tl_op *kernel, *loop;
  int64_t shared_bytes;
  TL_VEC(tl_staged_region) regions;
} element_walk;

static void visit_load(tl_op *op, void *user) {
  element_walk *walk = user;
  tl_op *parallel = op->code == TL_OP_LOAD ? tl_op_enclosing(op, TL_OP_PARALLEL) : NULL;
  // A parallel without a result may be a copy itself.
  if (!parallel || parallel->num_results == 0) return;
  tl_staged_region region;
  if (!region_of(op, walk->loop, &region)) return;
  for (size_t r = 0; r < walk->regions.len; r++) {
    if (!same_region(&walk->regions.items[r], &region)) continue;
    tl_vec_push(&walk->regions.items[r].loads, op);
    return;
  }
  int64_t bytes = walk->shared_bytes + (region.bytes + 127) / 128 * 128;
  if (tl_stage_piece_bytes(&region) < MIN_PIECE_BYTES || !fits(walk->context, bytes)) return;
  walk->shared_bytes = bytes;
  tl_vec_push(&region.loads, op);
  tl_vec_push(&walk->regions, region);
}

static void stage_loop(element_walk *walk, tl_op *loop) {
  walk->loop = loop;
  walk->regions.len = 0;
  tl_walk(loop, visit_load, walk);
  for (size_t r = 0; r < walk->regions.len; r++) {
    tl_staged_region *region = &walk->regions.items[r];
    tl_value *stage = tl_stage_build_tile(walk->context, walk->kernel, region);
    tl_stage_build_copy(walk->context, region, NULL, stage, loop);
    for (size_t i = 0; i < region->loads.len; i++) redirect(walk->context, region, stage, region->loads.items[i]);
    tl_diag_report(walk->context->diags, TL_DIAG_REMARK_COPY, region->loads.items[0]->loc,
                   "elements of '%s' come to shared memory before the loop, %lld bytes a block",
                   tl_buffer_name(region->tensor), (long long)region->bytes);
    tl_vec_fini(&region->loads);
  }
  if (walk->regions.len > 0) tl_stage_build_wait(walk->context, loop);
}

static void collect_loop(tl_op *op, void *user) {
  op_list *loops = user;
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_PIPELINED)) tl_vec_push(loops, op);
}

void tl_stage_elements(tl_pass_context *context, tl_op *kernel) {
  element_walk walk = {.context = context, .kernel = kernel, .shared_bytes = planned_bytes(kernel)};
  op_list loops = {0};
  tl_walk(kernel, collect_loop, &loops);
  for (size_t i = 0; i < loops.len; i++) stage_loop(&walk, loops.items[i]);
  tl_vec_fini(&walk.regions);
  tl_vec_fini(&loops);
}
