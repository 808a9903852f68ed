// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stage-reads may stage: the regions of tensors that a kernel's loads read, and how often.
//
//   for %t { tile_load %X[%b, %t * 512] }                          %X[%b, 0 … 4095], read twice
//   for %t { parallel %j { load %X[%b, %t * 512 + %j] } }     →
//
// Loads of tiles and loads of elements inside a parallel read one region where they differ by constants and by what
// loops with known bounds, and iterations of the parallel, add.
#include <string.h>

#include "passes/layout/stage_reads.h"

// What loops and parallels make of an index: from `lo` to `hi`, both inclusive, and `by` more an iteration of one loop.
typedef struct index_split {
  int64_t lo, hi, distinct, by;
} index_split;

// First and last value of a loop's index, and how often the loop runs. False when that is not known.
static bool loop_values(const tl_op *loop, int64_t *out_first, int64_t *out_last, int64_t *out_trips) {
  tl_constant_loop known;
  if (!tl_loop_is_constant(loop, &known) || tl_op_has(loop, TL_ATTR_WHILE)) return false;
  if (known.step < 0 || known.lower < 0 || known.trips == 0 || known.upper > INT32_MAX) return false;
  *out_trips = known.trips;
  *out_first = known.lower;
  *out_last = known.lower + (known.trips - 1) * known.step;
  return true;
}

// Iterations of the loops around the op, directly in the kernel otherwise; 0 when they are unknown or it stands
// elsewhere.
static int64_t times_run(const tl_op *op, const tl_op *kernel) {
  int64_t times = 1, first, last, trips;
  for (const tl_op *parent = op->parent->parent; parent != kernel; parent = parent->parent->parent) {
    if (parent->code != TL_OP_FOR || !loop_values(parent, &first, &last, &trips) || trips > INT32_MAX / times) return 0;
    times *= trips;
  }
  return times;
}

// Splits an index into what is fixed in the block and the range that loops and parallels add to it; `*out_distinct`:
// places that the parallels alone give it. What `apart` (NULL: no loop) adds goes to `*out_by`, elements an iteration.
static bool split_index(tl_value *index, const tl_op *apart, tl_affine *out_base, index_split *out) {
  tl_affine form = tl_affine_of(index);
  if (!form.valid) return false;
  *out_base = (tl_affine){.valid = true};
  *out = (index_split){.lo = form.constant, .hi = form.constant, .distinct = 1};
  for (int32_t t = 0; t < form.num_terms; t++) {
    tl_value *symbol = form.terms[t].symbol;
    int64_t coefficient = form.terms[t].coefficient, first, last, trips;
    const tl_op *around = symbol->def ? symbol->def->parent->parent : symbol->block->parent;
    if (symbol->type->kind != TL_TYPE_INDEX) return false;
    if (around->code == TL_OP_KERNEL) {
      out_base->terms[out_base->num_terms++] = form.terms[t];
      continue;
    }
    if (symbol->def || coefficient < 0 || coefficient > INT32_MAX) return false;
    if (around->code == TL_OP_PARALLEL) {
      tl_range range = tl_value_range(symbol);
      if (range.lo < 0 || range.hi < range.lo || range.hi > INT32_MAX) return false;
      first = range.lo;
      last = range.hi;
      out->distinct += coefficient * (last - first);
    } else if (around->code != TL_OP_FOR || symbol != around->regions[0]->args[0] ||
               !loop_values(around, &first, &last, &trips)) {
      return false;
    } else if (around == apart) {
      out->by = trips > 1 ? coefficient * ((last - first) / (trips - 1)) : 0;
      last = first;
    }
    out->lo += coefficient * first;
    out->hi += coefficient * last;
  }
  return true;
}

bool tl_stage_last_read(tl_op *load, int32_t dim, const tl_op *loop, int64_t *out_last, int64_t *out_by) {
  tl_affine base;
  index_split split;
  int64_t lo = 0, hi = 0;
  bool is_tile = load->code == TL_OP_TILE_LOAD;
  tl_box box = is_tile ? tl_box_source(load) : (tl_box){0};
  tl_value *index = is_tile ? tl_box_offset(&box, dim) : tl_element_index(load, (uint32_t)dim);
  if (!split_index(index, loop, &base, &split)) return false;
  if (is_tile) tl_box_span(&box, dim, &lo, &hi);
  *out_last = split.hi + hi;
  *out_by = split.by;
  return true;
}

// Of a tensor itself, or under other dims.
static bool reads_input(const tl_value *tensor) {
  bool is_view = tensor->def && tensor->def->code == TL_OP_VIEW;
  const tl_op *root = is_view ? tl_buffer_root(tensor) : tensor->def;
  return root && root->code == TL_OP_TENSOR && tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
}

static bool is_plain_tile(const tl_op *op, const tl_box *box) {
  if (box->tile_rank == 0 || tl_op_has(op, TL_ATTR_EVICT)) return false;
  if (tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) != TL_VIA_AUTO) return false;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    if (tl_box_limit(box, d)) return false;
  }
  for (int32_t t = 0; t < box->tile_rank; t++) {
    if (box->steps[t] != 1) return false;
  }
  return true;
}

// ---- a load

// Where one load reads: what it shares with others, and its own span.
typedef struct place {
  tl_value *tensor;
  tl_affine base[TL_MAX_RANK];
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK];
  int64_t elements;  // each time that it runs
  const tl_value *pad;
} place;

static bool place_of_tile(tl_op *op, place *out) {
  tl_box box = tl_box_source(op);
  if (!reads_input(box.buffer) || !is_plain_tile(op, &box)) return false;
  out->tensor = box.buffer;
  out->elements = tl_type_num_elements(tl_op_result(op, 0)->type);
  out->pad = tl_op_arg(op, TL_GROUP_TILE_LOAD_pad);
  for (int32_t d = 0; d < box.buffer_rank; d++) {
    int64_t lo, hi;
    index_split split;
    if (!split_index(tl_box_offset(&box, d), NULL, &out->base[d], &split)) return false;
    tl_box_span(&box, d, &lo, &hi);
    out->lo[d] = split.lo + lo;
    out->hi[d] = split.hi + hi;
    out->checks[d] = tl_box_check(&box, d);
  }
  return true;
}

static bool place_of_element(const tl_op *op, place *out) {
  out->tensor = tl_element_buffer(op);
  if (!reads_input(out->tensor) || tl_element_rank(op) == 0 || tl_op_has(op, TL_ATTR_EVICT)) return false;
  out->elements = 1;
  out->pad = tl_op_arg(op, TL_GROUP_LOAD_pad);
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    index_split split;
    if (!split_index(tl_element_index(op, d), NULL, &out->base[d], &split)) return false;
    if (split.distinct > INT32_MAX || out->elements > INT32_MAX) return false;
    out->lo[d] = split.lo;
    out->hi[d] = split.hi;
    out->elements *= split.distinct;
    out->checks[d] = tl_element_check(op, (int32_t)d);
  }
  return true;
}

// ---- regions

bool tl_stage_is_fixed(const tl_staged_region *region, int32_t dim) {
  return region->base[dim].num_terms == 0;
}

static bool same_form(const tl_affine *a, const tl_affine *b) {
  tl_affine rest = tl_affine_sub(a, b);
  return rest.valid && rest.num_terms == 0;
}

// The loads of one tensor go to the region whose base they share.
static tl_staged_region *region_for(tl_staged_regions *regions, const place *at) {
  for (size_t r = 0; r < regions->len; r++) {
    tl_staged_region *region = &regions->items[r];
    bool same = region->tensor == at->tensor;
    for (int32_t d = 0; d < at->tensor->type->rank && same; d++) same = same_form(&region->base[d], &at->base[d]);
    if (same) return region;
  }
  tl_staged_region fresh = {.tensor = at->tensor};
  memcpy(fresh.base, at->base, sizeof fresh.base);
  for (int32_t d = 0; d < at->tensor->type->rank; d++) {
    fresh.lo[d] = INT64_MAX;
    fresh.hi[d] = INT64_MIN;
  }
  tl_vec_push(regions, fresh);
  return &regions->items[regions->len - 1];
}

// Of a dim that starts at 0 for every block nothing beyond the tensor is staged, so that the loads' own bounds hold in
// the stage as well.
static void clip(place *at) {
  for (int32_t d = 0; d < at->tensor->type->rank; d++) {
    int64_t size = at->tensor->type->dims[d];
    tl_value *dim = tl_buffer_dim_value(at->tensor, d);
    if (at->base[d].num_terms > 0 || (dim && !tl_value_const_int(dim, &size)) || size <= 0) continue;
    if (at->lo[d] < 0) at->lo[d] = 0;
    if (at->hi[d] >= size) at->hi[d] = size - 1;
    if (at->lo[d] > at->hi[d]) at->lo[d] = at->hi[d];
  }
}

static bool is_zero(const tl_value *pad) {
  const tl_attr *value = pad && pad->def && pad->def->code == TL_OP_CONST ? tl_op_attr(pad->def, TL_ATTR_VALUE) : NULL;
  return !pad || (value && (value->is_float ? value->v.f == 0 : value->v.i == 0));
}

static const char *obstacle_in(const place *at, const tl_staged_region *region) {
  const tl_op *root = tl_buffer_root(at->tensor);
  if (root && tl_op_has(root, TL_ATTR_OPTIONAL)) return "it may be absent";
  for (int32_t d = 0; d < at->tensor->type->rank; d++) {
    bool fixed = tl_stage_is_fixed(region, d);
    tl_value *dim = tl_buffer_dim_value(at->tensor, d);
    int64_t size;
    if (fixed && at->checks[d] && dim && !tl_value_const_int(dim, &size)) return "its size is known at launch only";
    if (!fixed && at->checks[d] && !is_zero(at->pad)) return "it is padded with another number than 0";
  }
  return NULL;
}

// Whether another load of the parallel reads from the region: its lines are in the L1 cache then.
static bool has_load_of(const tl_staged_region *region, const tl_op *parallel) {
  for (size_t i = 0; parallel && i < region->loads.len; i++) {
    if (tl_op_enclosing(region->loads.items[i], TL_OP_PARALLEL) == parallel) return true;
  }
  return false;
}

typedef struct collecting {
  const tl_op *kernel;
  tl_staged_regions *regions;
  TL_VEC(tl_op *) uncounted;  // loads in loops that run as often as the launch says
} collecting;

// The loop in the kernel's own block that the load stands in, where loops and conditions alone are around it; else
// NULL.
static const tl_op *outermost_loop(const tl_op *load, const tl_op *kernel) {
  const tl_op *at = load;
  while (at->parent->parent != kernel) {
    at = at->parent->parent;
    if (at->code != TL_OP_FOR && at->code != TL_OP_PARALLEL && at->code != TL_OP_IF) return NULL;
  }
  return at->code == TL_OP_FOR ? at : NULL;
}

static const tl_value *input_of(const tl_op *load) {
  const tl_value *tensor = load->code == TL_OP_LOAD ? tl_element_buffer(load) : tl_op_arg(load, TL_GROUP_TILE_LOAD_src);
  return reads_input(tensor) ? tensor : NULL;
}

// The first load of an input that a second loop of the kernel reads as well.
static void find_reread(const collecting *self, tl_stage_reread *found, void *user) {
  for (size_t i = 0; i < self->uncounted.len; i++) {
    const tl_value *tensor = input_of(self->uncounted.items[i]);
    const tl_op *loop = outermost_loop(self->uncounted.items[i], self->kernel);
    bool is_first = true, again = false;
    for (size_t j = 0; j < self->uncounted.len; j++) {
      if (input_of(self->uncounted.items[j]) != tensor) continue;
      is_first &= j >= i;
      again |= outermost_loop(self->uncounted.items[j], self->kernel) != loop;
    }
    if (is_first && again) found(self->uncounted.items[i], tensor, user);
  }
}

static void collect_load(tl_op *op, void *user) {
  collecting *self = user;
  const tl_op *parallel = op->code == TL_OP_LOAD ? tl_op_enclosing(op, TL_OP_PARALLEL) : NULL;
  if (op->code != TL_OP_TILE_LOAD && !parallel) return;
  int64_t times = times_run(parallel ? parallel : op, self->kernel);
  place at = {0};
  if (times == 0 && input_of(op) && outermost_loop(op, self->kernel)) tl_vec_push(&self->uncounted, op);
  if (times == 0 || !(parallel ? place_of_element(op, &at) : place_of_tile(op, &at))) return;
  clip(&at);
  tl_staged_region *region = region_for(self->regions, &at);
  uint64_t elements = 1;
  for (int32_t d = 0; d < at.tensor->type->rank; d++) {
    if (at.lo[d] < region->lo[d]) region->lo[d] = at.lo[d];
    if (at.hi[d] > region->hi[d]) region->hi[d] = at.hi[d];
    uint64_t extent = (uint64_t)(region->hi[d] - region->lo[d]) + 1;
    elements = extent > INT32_MAX / elements ? INT32_MAX : elements * extent;
  }
  if (!region->obstacle) region->obstacle = obstacle_in(&at, region);
  if (!has_load_of(region, parallel))
    region->loaded_bytes += times * (int64_t)tl_dtype_bytes(at.tensor->type->dtype, (uint64_t)at.elements);
  region->bytes = (int64_t)tl_dtype_bytes(at.tensor->type->dtype, elements);
  tl_vec_push(&region->loads, op);
}

void tl_stage_collect(tl_op *kernel, tl_staged_regions *regions, tl_stage_reread *found, void *user) {
  collecting self = {.kernel = kernel, .regions = regions};
  tl_walk(kernel, collect_load, &self);
  find_reread(&self, found, user);
  tl_vec_fini(&self.uncounted);
  for (size_t r = 0; r < regions->len; r++) {
    tl_staged_region *region = &regions->items[r];
    for (int32_t d = 0; d < region->tensor->type->rank; d++)
      region->checks[d] = tl_stage_is_fixed(region, d) ? 0 : tl_stage_checks(region, d, kernel);
  }
}
