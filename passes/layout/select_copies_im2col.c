// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gathers that walk the pixels of an image by the copy engine (PTX ISA, "Tensors: im2col mode"; CUDA Driver API,
// cuTensorMapEncodeIm2col).
//
// A row of the tile is a pixel of the output, whose number p counts along the innermost spatial dim, then the next one
// out, then the first dim of the tensor. Along a spatial dim the gather takes step * digit of p + what is the same for
// the whole tile (the filter's tap, the padding). The engine counts base positions of the same kind, from a first to a
// last one along each spatial dim, takes elements that lie a tap behind each, and gives 0 for what lies outside of the
// tensor:
//
//   parallel do(%i, %j) {                                %m = tensor_map %X {box = [1, 1, 128, 32], lower = [-1, -1],
//     %p = %by * 128 + %i                                                    upper = [-1, -1], pixel_step = [1, 1]}
//     %h = %p mod 3136 div 56 + %r - 1            ⇒      copy %X at [n, h - 1, w - 1, c] of the tile's first pixel
//     %w = %p mod 56 + %s - 1                              -> %x  map(%m) taps(%r, %s)
//     %x[%i, %j] = %X[%p div 3136, %h, %w, %c + %j]
//   }
//
// Known by the address alone: an index that is none of these sums says so in a remark.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

enum {
  LEAST_RANK = 3,
  MAX_RANK = 5,
  MAX_SPATIAL = MAX_RANK - 2,
  MAX_STEP = 8,
  MAX_BOX = 256,
  UNIT_BYTES = 16,
  MOST_VISITS = 2000  // of values, while it is asked what an index depends on
};

// Largest tap, and corners, by the number of spatial dims (offsets of 16, 8 and 5 bits).
static const int64_t largest_tap[] = {0, 65535, 255, 31};
static const int64_t lowest_corner[] = {0, -32768, -128, -16}, highest_corner[] = {0, 32767, 127, 15};

// floor(number / divisor) mod modulus; modulus 0: none.
typedef struct digit {
  tl_value *number;
  int64_t divisor, modulus;
} digit;

// A dim of the tensor but the last: step * digit + rest.
typedef struct walked_dim {
  tl_value *symbol;  // of the digit; NULL: the dim stays where it is
  digit digit;
  int64_t step, count;  // count: base positions
  bool is_free;         // no pixel of a tile passes its last base position
  int64_t lower, upper;
} walked_dim;

typedef struct pixel_plan {
  tl_op *parallel, *load, *store;
  tl_value *tensor, *tile;
  int32_t rank, spatial;
  walked_dim dims[MAX_RANK];
  int64_t pixels, channels;  // of a box
  int64_t swizzle;
  int visits;
} pixel_plan;

// ---- what an index depends on

static bool depends(pixel_plan *plan, const tl_value *value) {
  if (--plan->visits < 0) return true;
  if (!value->def) return value->block == plan->parallel->regions[0];
  if (!tl_op_is_inside(value->def, plan->parallel)) return false;
  for (uint32_t i = 0; i < value->def->num_operands; i++)
    if (depends(plan, tl_op_operand(value->def, i))) return true;
  return false;
}

static bool find_digit(tl_value *value, digit *out) {
  const tl_op *op = value->def;
  int64_t by;
  bool divides = op && (op->code == TL_OP_MOD || op->code == TL_OP_FLOORDIV) &&
                 tl_value_const_int(tl_op_operand(op, 1), &by) && by > 0 && by <= INT32_MAX;
  if (!divides) {
    *out = (digit){value, 1, 0};
    return true;
  }
  if (!find_digit(tl_op_operand(op, 0), out) || out->modulus % by != 0) return false;
  if (op->code == TL_OP_MOD) {
    out->modulus = by;
    return true;
  }
  out->divisor *= by;
  out->modulus /= by;
  return out->divisor <= INT32_MAX;
}

// Whether `number` counts pixels: it grows by 1 with the tile's row, and does not change with its column.
static bool counts_rows(pixel_plan *plan, tl_value *number) {
  const tl_block *body = plan->parallel->regions[0];
  tl_affine affine = tl_affine_of(number);
  if (!affine.valid || tl_affine_coefficient(&affine, body->args[0]) != 1) return false;
  for (int32_t i = 0; i < affine.num_terms; i++)
    if (affine.terms[i].symbol != body->args[0] && depends(plan, affine.terms[i].symbol)) return false;
  return tl_value_range(number).lo >= 0;
}

static const char *walk_dim(pixel_plan *plan, int32_t d) {
  walked_dim *dim = &plan->dims[d];
  tl_affine affine = tl_affine_of(tl_element_index(plan->load, (uint32_t)d));
  if (!affine.valid) return "an index is no sum";
  *dim = (walked_dim){.step = 1, .count = 1};
  for (int32_t i = 0; i < affine.num_terms; i++) {
    if (!depends(plan, affine.terms[i].symbol)) continue;
    if (dim->symbol) return "an index is a sum of two that change within the tile";
    dim->symbol = affine.terms[i].symbol;
    dim->step = affine.terms[i].coefficient;
  }
  if (!dim->symbol) return NULL;
  if (!find_digit(dim->symbol, &dim->digit)) return "an index is no digit of a pixel's number";
  if (!counts_rows(plan, dim->digit.number)) return "an index is no digit of a number that counts the tile's rows";
  if (dim->step < 1 || dim->step > MAX_STEP || (d == 0 && dim->step != 1)) return "its step is not 1 to 8";
  return NULL;
}

// Whether the digit is that of `number` too: what they differ by has no part in it.
static bool is_digit_of(const digit *given, tl_value *number) {
  tl_affine x = tl_affine_of(number), y = tl_affine_of(given->number);
  tl_affine difference = tl_affine_sub(&x, &y);
  int64_t divisor = difference.valid ? tl_affine_divisor(&difference) : 1;
  return given->modulus ? divisor % (given->divisor * given->modulus) == 0 : divisor == 0;
}

// Whether all pixels of a tile have the same number above the digits that `weight` is the product of.
static bool stays(const pixel_plan *plan, tl_value *number, int64_t weight) {
  const tl_value *row = plan->parallel->regions[0]->args[0];
  tl_affine first = tl_affine_of(number);
  for (int32_t i = 0; i < first.num_terms; i++)
    if (first.terms[i].symbol == row) first.terms[i].coefficient = 0;
  return plan->pixels <= tl_common_divisor(tl_affine_divisor(&first), weight);
}

// The dims must be the digits of one number, the last but one of the tensor the lowest, with nothing left out.
static const char *digits_obstacle(pixel_plan *plan) {
  tl_value *number = NULL;  // of the highest digit
  int64_t weight = 1;
  bool ended = false;  // the digit above which there is none
  for (int32_t d = plan->rank - 2; d >= 0; d--) {
    walked_dim *dim = &plan->dims[d];
    dim->is_free = ended;
    if (!dim->symbol) continue;
    if (ended || dim->digit.divisor != weight) return "its indices do not count pixels one after the other";
    number = dim->digit.number;
    int64_t last = tl_value_range(dim->symbol).hi;
    ended = dim->is_free = dim->digit.modulus == 0;
    if (d == 0) break;
    if (ended && last >= INT32_MAX) return "the number of its pixels is known at launch only";
    dim->count = ended ? last + 1 : dim->digit.modulus;
    if (dim->count > INT32_MAX / weight) return "there are too many pixels";
    weight *= dim->count;
  }
  if (!number) return "its rows do not change";
  for (int32_t d = plan->rank - 2; d >= 0; d--)
    if (plan->dims[d].symbol && !is_digit_of(&plan->dims[d].digit, number))
      return "two indices are digits of different numbers";
  return ended || stays(plan, number, weight) ? NULL : "pixels begin again";
}

static tl_range rest_of(const pixel_plan *plan, int32_t d) {
  const walked_dim *dim = &plan->dims[d];
  tl_affine affine = tl_affine_of(tl_element_index(plan->load, (uint32_t)d));
  for (int32_t i = 0; i < affine.num_terms; i++)
    if (affine.terms[i].symbol == dim->symbol) affine.terms[i].coefficient = 0;
  return tl_affine_range(&affine);
}

// Where base positions along a spatial dim begin and end, so that taps are no less than 0. Where it does not matter
// where they end there are no taps: a base position is what is taken.
static const char *place_corners(pixel_plan *plan, int32_t d) {
  walked_dim *dim = &plan->dims[d];
  tl_value *size = tl_buffer_dim_value(plan->tensor, d);
  int64_t extent = plan->tensor->type->dims[d];
  if (size && !tl_value_const_int(size, &extent)) return "a spatial dim of the tensor is known at launch only";
  tl_range rest = rest_of(plan, d);
  bool is_bound = rest.lo > INT32_MIN && rest.hi < INT32_MAX;
  if (!is_bound || (!dim->is_free && rest.hi - rest.lo > largest_tap[plan->spatial]))
    return "what is added to a pixel's place varies too much";
  dim->lower = rest.lo;
  dim->upper = (dim->is_free ? rest.hi : rest.lo) + (dim->count - 1) * dim->step - (extent - 1);
  bool fits = dim->lower >= lowest_corner[plan->spatial] && dim->lower <= highest_corner[plan->spatial] &&
              dim->upper >= lowest_corner[plan->spatial] && dim->upper <= highest_corner[plan->spatial];
  return fits ? NULL : "its first or last pixel lies too far from the tensor's edge";
}

// ---- the parts of a gather

static const char *find_parts(pixel_plan *plan) {
  int32_t loads = 0;
  for (tl_op *op = plan->parallel->regions[0]->first; op; op = op->next) {
    loads += op->code == TL_OP_LOAD;
    if (op->code == TL_OP_LOAD && tl_buffer_is_global(tl_element_buffer(op))) plan->load = op;
    if (op->code == TL_OP_STORE) plan->store = op;
  }
  const tl_block *body = plan->parallel->regions[0];
  const int64_t *extents = tl_op_ints(plan->parallel, TL_ATTR_EXTENTS, NULL);
  if (!plan->load || !plan->store) return "it is no gather";
  if (loads > 1) return "a table says which rows it reads";
  plan->tensor = tl_element_buffer(plan->load);
  plan->tile = tl_element_buffer(plan->store);
  plan->rank = plan->tensor->type->rank;
  plan->spatial = plan->rank - 2;
  if (plan->rank < LEAST_RANK || plan->rank > MAX_RANK) return "the tensor has not 3 to 5 dims";
  if (plan->tile->type->rank != 2 || !plan->tile->def || plan->tile->def->code != TL_OP_ALLOC)
    return "its tile has not 2 dims";
  for (uint32_t t = 0; t < 2; t++)
    if (tl_element_index(plan->store, t) != body->args[t] || extents[t] != plan->tile->type->dims[t])
      return "it does not fill the rows of its tile in order";
  if (plan->tensor->type->dtype != plan->tile->type->dtype) return "it converts between dtypes";
  plan->pixels = plan->tile->type->dims[0];
  plan->channels = plan->tile->type->dims[1];
  return plan->pixels > MAX_BOX ? "the tile has more than 256 rows" : NULL;
}

static const char *tensor_obstacle(const pixel_plan *plan) {
  int64_t bytes = tl_dtype_bits(plan->tensor->type->dtype) / 8;
  const tl_op *kernel = tl_op_enclosing(plan->parallel, TL_OP_KERNEL);
  if (bytes == 0) return "its elements are smaller than a byte";
  if (!plan->tensor->def || plan->tensor->def->parent != kernel->regions[0])
    return "its view of the tensor is made inside of a loop";
  if (tl_buffer_align(plan->tensor) % UNIT_BYTES != 0) return "the tensor is not aligned to 16 bytes";
  if (!tl_buffer_is_row_contiguous(plan->tensor)) return "channels are not contiguous";
  for (int32_t d = 0; d + 1 < plan->rank; d++)
    if (tl_buffer_stride_divisor(plan->tensor, d) * bytes % UNIT_BYTES != 0)
      return "a stride of the tensor is no multiple of 16 bytes";
  return NULL;
}

// The tile's columns are channels, one after the other.
static const char *channels_obstacle(pixel_plan *plan) {
  const tl_value *column = plan->parallel->regions[0]->args[1];
  int64_t bytes = tl_dtype_bits(plan->tensor->type->dtype) / 8;
  tl_affine affine = tl_affine_of(tl_element_index(plan->load, (uint32_t)plan->rank - 1));
  if (!affine.valid || tl_affine_coefficient(&affine, column) != 1) return "its columns are no channels in order";
  for (int32_t i = 0; i < affine.num_terms; i++) {
    if (affine.terms[i].symbol == column)
      affine.terms[i].coefficient = 0;
    else if (depends(plan, affine.terms[i].symbol))
      return "its columns are no channels in order";
  }
  return tl_affine_divisor(&affine) * bytes % UNIT_BYTES == 0 ? NULL : "channels do not begin at multiples of 16 bytes";
}

static const char *tile_obstacle(pixel_plan *plan) {
  const tl_attr *layout = tl_op_attr(plan->tile->def, TL_ATTR_SHARED_LAYOUT);
  int64_t bytes = tl_dtype_bits(plan->tensor->type->dtype) / 8;
  plan->swizzle = layout ? tl_tma_swizzle_of(layout->v.shared, plan->tile) : -1;
  if (plan->swizzle < 0) return "another access wants the tile in another layout";
  if (layout->v.shared->panel_bytes) plan->channels = layout->v.shared->panel_bytes / bytes;
  if (plan->channels > MAX_BOX) return "the rows of the tile have more than 256 elements";
  return plan->channels * bytes % UNIT_BYTES == 0 ? NULL : "the rows of the tile are no multiple of 16 bytes";
}

static const char *make_plan(tl_pass_context *context, tl_op *parallel, pixel_plan *plan) {
  *plan = (pixel_plan){.parallel = parallel, .visits = MOST_VISITS};
  if (!(context->target->features & TL_FEATURE_TMA)) return "the target has no TMA";
  const char *obstacle = find_parts(plan);
  if (!obstacle) obstacle = tensor_obstacle(plan);
  if (!obstacle) obstacle = channels_obstacle(plan);
  for (int32_t d = 0; d + 1 < plan->rank && !obstacle; d++) obstacle = walk_dim(plan, d);
  if (!obstacle) obstacle = digits_obstacle(plan);
  for (int32_t d = 1; d + 1 < plan->rank && !obstacle; d++) obstacle = place_corners(plan, d);
  return obstacle ? obstacle : tile_obstacle(plan);
}

// ---- the copy

// The value for the tile's first row and column, computed in front of the parallel.
static tl_value *at_origin(pixel_plan *plan, tl_builder *builder, tl_value_map *map, tl_value *value) {
  tl_value *known = tl_value_map_get(map, value);
  if (known != value || (value->def && !tl_op_is_inside(value->def, plan->parallel))) return known;
  if (!value->def) return value;
  for (uint32_t i = 0; i < value->def->num_operands; i++) at_origin(plan, builder, map, tl_op_operand(value->def, i));
  tl_op *clone = tl_op_clone(builder, value->def, map);
  tl_value *folded = clone->code == TL_OP_CONST ? NULL : tl_fold_op(builder, clone);
  if (folded) {
    tl_value_map_set(map, value, folded);
    tl_op_erase(clone);
  }
  return tl_value_map_get(map, value);
}

static tl_value *map_of(tl_pass_context *context, const pixel_plan *plan) {
  tl_module *module = context->module;
  int64_t order[MAX_RANK], box[MAX_RANK], lower[MAX_SPATIAL], upper[MAX_SPATIAL], step[MAX_SPATIAL];
  for (int32_t d = 0; d < plan->rank; d++) {
    order[d] = d;
    box[d] = d == plan->rank - 1 ? plan->channels : d == plan->rank - 2 ? plan->pixels : 1;
  }
  for (int32_t s = 0; s < plan->spatial; s++) {
    lower[s] = plan->dims[s + 1].lower;
    upper[s] = plan->dims[s + 1].upper;
    step[s] = plan->dims[s + 1].step;
  }
  tl_builder builder;
  tl_builder_after(&builder, module, plan->tensor->def);
  const tl_type *type = tl_type_simple(module, TL_TYPE_MAP);
  tl_group groups[] = {TL_GROUP_OF(plan->tensor)};
  tl_op *map = tl_build(&builder, TL_OP_TENSOR_MAP, groups, &type, 1);
  tl_op_set_ints(module, map, TL_ATTR_MAP_DIMS, order, plan->rank);
  tl_op_set_ints(module, map, TL_ATTR_BOX, box, plan->rank);
  if (plan->swizzle) tl_op_set_int(module, map, TL_ATTR_SWIZZLE, plan->swizzle);
  tl_op_set_ints(module, map, TL_ATTR_LOWER, lower, plan->spatial);
  tl_op_set_ints(module, map, TL_ATTR_UPPER, upper, plan->spatial);
  tl_op_set_ints(module, map, TL_ATTR_PIXEL_STEP, step, plan->spatial);
  return tl_op_result(map, 0);
}

// Places of the first pixel: base positions and taps.
typedef struct pixel_origin {
  tl_value *base[MAX_RANK], *taps[MAX_SPATIAL];
} pixel_origin;

static pixel_origin find_origin(pixel_plan *plan, tl_builder *builder) {
  pixel_origin origin = {0};
  tl_value_map map = {0};
  const tl_block *body = plan->parallel->regions[0];
  tl_value *zero = tl_build_index(builder, 0);
  for (uint32_t i = 0; i < body->num_args; i++) tl_value_map_set(&map, body->args[i], zero);
  for (int32_t d = 0; d < plan->rank; d++) {
    const walked_dim *dim = &plan->dims[d];
    tl_value *at = at_origin(plan, builder, &map, tl_element_index(plan->load, (uint32_t)d));
    origin.base[d] = at;
    if (d == 0 || d == plan->rank - 1) continue;
    tl_value *position = tl_build_index(builder, 0);
    origin.taps[d - 1] = position;
    if (dim->is_free) continue;
    if (dim->symbol) {
      tl_value *origin_of_symbol = at_origin(plan, builder, &map, dim->symbol);
      position = tl_index_mul(builder, origin_of_symbol, tl_build_index(builder, dim->step));
    }
    origin.base[d] = tl_index_add(builder, position, tl_build_index(builder, dim->lower));
    origin.taps[d - 1] = tl_index_sub(builder, at, origin.base[d]);
  }
  tl_value_map_fini(&map);
  return origin;
}

static tl_op *build_copy(tl_pass_context *context, pixel_plan *plan) {
  tl_module *module = context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, plan->parallel);
  builder.loc = plan->parallel->loc;
  pixel_origin origin = find_origin(plan, &builder);
  tl_value *map = map_of(context, plan), *zeros[] = {tl_build_index(&builder, 0), tl_build_index(&builder, 0)};
  tl_group groups[TL_GROUP_COPY_stage + 1] = {[TL_GROUP_COPY_src] = TL_GROUP_OF(plan->tensor),
                                              [TL_GROUP_COPY_src_offsets] = {origin.base, (uint32_t)plan->rank},
                                              [TL_GROUP_COPY_dst] = TL_GROUP_OF(plan->tile),
                                              [TL_GROUP_COPY_dst_offsets] = {zeros, 2},
                                              [TL_GROUP_COPY_map] = TL_GROUP_OF(map),
                                              [TL_GROUP_COPY_taps] = {origin.taps, (uint32_t)plan->spatial}};
  tl_op *copy = tl_build(&builder, TL_OP_COPY, groups, NULL, 0);
  int64_t extents[] = {plan->tile->type->dims[0], plan->tile->type->dims[1]}, identity[] = {0, 1}, none[] = {0, 0};
  int64_t walked[] = {plan->rank - 2, plan->rank - 1}, all[MAX_RANK];
  for (int32_t d = 0; d < plan->rank; d++) all[d] = TL_CHECK_LOWER | TL_CHECK_UPPER;
  tl_op_set_ints(module, copy, TL_ATTR_EXTENTS, extents, 2);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_DIMS, walked, 2);
  tl_op_set_ints(module, copy, TL_ATTR_DST_DIMS, identity, 2);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_CHECK, all, plan->rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_CHECK, none, 2);
  tl_op_set_int(module, copy, TL_ATTR_VIA, TL_VIA_TMA);
  return copy;
}

const char *tl_gather_tma_obstacle(tl_pass_context *context, tl_op *parallel) {
  pixel_plan plan;
  const char *obstacle = make_plan(context, parallel, &plan);
  return obstacle ? obstacle : tl_tma_gather_choice_obstacle(parallel, plan.tensor, plan.tile);
}

tl_op *tl_gather_by_tma(tl_pass_context *context, tl_op *parallel) {
  pixel_plan plan;
  if (make_plan(context, parallel, &plan)) return NULL;
  tl_op *copy = build_copy(context, &plan);
  int64_t boxes = plan.tile->type->dims[1] / plan.channels;
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, parallel->loc,
                 "'%s' to '%s' by TMA, %lld box%s of %lld pixels of %lld channels (im2col)",
                 tl_buffer_name(plan.tensor), tl_buffer_name(plan.tile), (long long)boxes, boxes == 1 ? "" : "es",
                 (long long)plan.pixels, (long long)plan.channels);
  tl_op_erase(parallel);
  return copy;
}
