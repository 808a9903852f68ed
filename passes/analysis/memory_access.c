// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/analysis/memory_access.h"

#include <assert.h>
#include <string.h>

#include "passes/analysis/effects.h"

// ---- boxes

static tl_box make_box(tl_op *op, tl_value *buffer, int offsets, int limits, tl_attr_key dims_key, tl_attr_key step_key,
                       tl_attr_key check_key) {
  tl_box box = {.buffer = buffer, .op = op, .group_offsets = offsets, .group_limits = limits, .check_key = check_key};
  int32_t num_dims = 0, num_steps = 0, num_extents = 0;
  const int64_t *dims = tl_op_ints(op, dims_key, &num_dims);
  const int64_t *steps = tl_op_ints(op, step_key, &num_steps);
  const int64_t *extents = op->code == TL_OP_COPY ? tl_op_ints(op, TL_ATTR_EXTENTS, &num_extents) : NULL;
  const tl_type *tile = op->code == TL_OP_TILE_LOAD    ? tl_op_result(op, 0)->type
                        : op->code == TL_OP_TILE_STORE ? tl_op_arg(op, TL_GROUP_TILE_STORE_tile)->type
                                                       : NULL;
  box.tile_rank = num_dims;
  box.buffer_rank = buffer->type->rank;
  for (int32_t d = 0; d < TL_MAX_RANK; d++) box.tile_dim[d] = -1;
  for (int32_t t = 0; t < num_dims; t++) {
    box.dims[t] = (int32_t)dims[t];
    box.steps[t] = t < num_steps ? steps[t] : 1;
    box.extents[t] = extents ? extents[t] : tile->dims[t];
    box.tile_dim[dims[t]] = t;
  }
  return box;
}

tl_box tl_box_source(tl_op *op) {
  if (op->code == TL_OP_COPY) {
    return make_box(op, tl_op_arg(op, TL_GROUP_COPY_src), TL_GROUP_COPY_src_offsets, TL_GROUP_COPY_src_limits,
                    TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP, TL_ATTR_SRC_CHECK);
  }
  return make_box(op, tl_op_arg(op, TL_GROUP_TILE_LOAD_src), TL_GROUP_TILE_LOAD_src_offsets,
                  TL_GROUP_TILE_LOAD_src_limits, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP, TL_ATTR_SRC_CHECK);
}

tl_box tl_box_destination(tl_op *op) {
  if (op->code == TL_OP_COPY) {
    return make_box(op, tl_op_arg(op, TL_GROUP_COPY_dst), TL_GROUP_COPY_dst_offsets, TL_GROUP_COPY_dst_limits,
                    TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP, TL_ATTR_DST_CHECK);
  }
  return make_box(op, tl_op_arg(op, TL_GROUP_TILE_STORE_dst), TL_GROUP_TILE_STORE_dst_offsets,
                  TL_GROUP_TILE_STORE_dst_limits, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP, TL_ATTR_DST_CHECK);
}

tl_value *tl_box_offset(const tl_box *box, int32_t dim) {
  return tl_op_group_at(box->op, box->group_offsets, (uint32_t)dim);
}

tl_value *tl_box_limit(const tl_box *box, int32_t dim) {
  if (tl_op_group_len(box->op, box->group_limits) <= (uint32_t)dim) return NULL;
  return tl_op_group_at(box->op, box->group_limits, (uint32_t)dim);
}

int64_t tl_box_check(const tl_box *box, int32_t dim) {
  int32_t len = 0;
  const int64_t *bits = tl_op_ints(box->op, box->check_key, &len);
  return bits && dim < len ? bits[dim] : TL_CHECK_LOWER | TL_CHECK_UPPER;
}

void tl_box_span(const tl_box *box, int32_t dim, int64_t *out_lo, int64_t *out_hi) {
  int32_t t = box->tile_dim[dim];
  int64_t last = t < 0 ? 0 : box->steps[t] * (box->extents[t] - 1);
  *out_lo = last < 0 ? last : 0;
  *out_hi = last > 0 ? last : 0;
}

int32_t tl_box_contiguous_dim(const tl_box *box) {
  if (box->buffer_rank == 0 || !tl_buffer_is_row_contiguous(box->buffer)) return -1;
  int32_t t = box->tile_dim[box->buffer_rank - 1];
  return t >= 0 && box->steps[t] == 1 ? t : -1;
}

static bool divides(int64_t vec, int64_t divisor) {
  return divisor % vec == 0;
}

// Whether element 0 of the buffer is aligned for vectors of `vec` elements and the vector is a power of two of bytes.
static bool vector_is_aligned(const tl_value *buffer, int32_t vec) {
  int bits = tl_dtype_bits(buffer->type->dtype);
  // A single 4-bit element is read from its byte; more of them are whole bytes.
  if (bits < 8) return vec == 1 || divides((int64_t)vec * bits / 8, tl_buffer_align(buffer));
  return divides((int64_t)vec * (bits / 8), tl_buffer_align(buffer));
}

static bool box_allows(const tl_box *box, int32_t t, int32_t vec, bool full_tile) {
  int32_t last = box->buffer_rank - 1;
  if (!vector_is_aligned(box->buffer, vec) || !divides(vec, box->extents[t])) return false;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t divisor = tl_value_divisor(tl_box_offset(box, d));
    if (d == last) {
      if (!divides(vec, divisor)) return false;
      continue;
    }
    if (box->tile_dim[d] >= 0 && box->extents[box->tile_dim[d]] > 1) {
      divisor = tl_common_divisor(divisor, box->steps[box->tile_dim[d]]);
    }
    int64_t stride = tl_common_divisor(tl_buffer_stride_divisor(box->buffer, d), vec);
    if (divisor != 0 && !divides(vec, stride * tl_common_divisor(divisor, vec))) return false;
  }
  if (!full_tile && (tl_box_check(box, last) & TL_CHECK_UPPER)) {
    tl_value *limit = tl_box_limit(box, last);
    if (!divides(vec, limit ? tl_value_divisor(limit) : tl_buffer_dim_divisor(box->buffer, last))) return false;
  }
  return true;
}

int32_t tl_box_vector(const tl_box *box, int32_t max_elems, bool full_tile) {
  int32_t t = tl_box_contiguous_dim(box);
  if (t < 0) return 1;
  int32_t vec = 1;
  while (vec * 2 <= max_elems) vec *= 2;
  while (vec > 1 && !box_allows(box, t, vec, full_tile)) vec /= 2;
  return vec;
}

// ---- lanes of a vector inside a parallel

static const tl_lane_form unknown_form = {0};

static tl_lane_form form_of(int64_t scale, int64_t divisor) {
  return (tl_lane_form){.known = true, .scale = scale, .divisor = divisor};
}

// Floor division and its remainder by a number that `divisor_b` divides. A base that is a multiple of g does not leave
// its block of g within the vector, and blocks of g do not straddle multiples of the divisor. (With a negative divisor
// the step comes right behind the multiple, within the block.)
static tl_lane_form form_divide(tl_opcode code, tl_lane_form a, tl_value *b, int64_t divisor_b, int32_t vec) {
  int64_t g = tl_common_divisor(a.divisor, divisor_b);
  int64_t by = 0;
  bool constant = tl_value_const_int(b, &by) && by > 0;
  bool exact = constant && a.divisor % by == 0;
  if (a.scale >= 0 && g > 0 && a.scale * (vec - 1) < g && tl_value_range(b).lo >= 0) {
    if (code == TL_OP_MOD) return form_of(a.scale, exact ? 0 : g);
    return form_of(0, exact ? a.divisor / by : 1);
  }
  if (exact && a.scale % by == 0) {
    return code == TL_OP_MOD ? form_of(0, 0) : form_of(a.scale / by, a.divisor / by);
  }
  return unknown_form;
}

static tl_lane_form form_binary(const tl_op *op, tl_lane_form a, tl_lane_form b, int32_t vec) {
  int64_t factor = 0;
  switch (op->code) {
    case TL_OP_ADD:
      return form_of(a.scale + b.scale, tl_common_divisor(a.divisor, b.divisor));
    case TL_OP_SUB:
      return form_of(a.scale - b.scale, tl_common_divisor(a.divisor, b.divisor));
    case TL_OP_MUL:
      if (tl_value_const_int(tl_op_operand(op, 1), &factor)) return form_of(a.scale * factor, a.divisor * factor);
      if (tl_value_const_int(tl_op_operand(op, 0), &factor)) return form_of(b.scale * factor, b.divisor * factor);
      return unknown_form;
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
      if (b.scale != 0) return unknown_form;
      return form_divide(op->code, a, tl_op_operand(op, 1), b.divisor, vec);
    default:
      return unknown_form;
  }
}

// Values are used more than once, so that paths through them can be exponentially many: only so many are followed.
enum { LANE_FORM_VISITS = 500 };

static tl_lane_form lane_form(tl_value *value, const tl_value *along, int32_t vec, int32_t *visits);

static bool is_uniform(tl_value *value, const tl_value *along, int32_t vec, int32_t *visits) {
  tl_lane_form form = lane_form(value, along, vec, visits);
  return form.known && form.scale == 0;
}

// What an inner loop carries may vary; its index does so where its start does.
static tl_lane_form argument_form(tl_value *value, const tl_value *along, int32_t vec, int32_t *visits) {
  const tl_op *loop = value->block->parent;
  bool counts = loop->code == TL_OP_FOR && value->index == 0;
  if (!counts || !is_uniform(tl_op_arg(loop, TL_GROUP_FOR_lower), along, vec, visits) ||
      !is_uniform(tl_op_arg(loop, TL_GROUP_FOR_step), along, vec, visits))
    return unknown_form;
  return form_of(0, tl_value_divisor(value));
}

static tl_lane_form lane_form(tl_value *value, const tl_value *along, int32_t vec, int32_t *visits) {
  if (value == along) return form_of(1, vec);
  if (--*visits < 0) return unknown_form;
  tl_op *op = value->def;
  bool is_index = value->type->kind == TL_TYPE_INDEX;
  tl_lane_form uniform_form = form_of(0, is_index ? tl_value_divisor(value) : 1);
  const tl_op *parallel = along->block->parent;
  const tl_op *place = op ? op : value->block->parent;
  // Nothing outside the parallel depends on its indices, and one index not on another.
  if (value->block == along->block || !tl_op_is_inside(place, parallel)) return uniform_form;
  if (!op) return argument_form(value, along, vec, visits);
  if (op->num_operands == 0) return uniform_form;
  if (op->num_regions > 0) return unknown_form;
  tl_lane_form forms[3];
  bool uniform = true;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *operand = tl_op_operand(op, i);
    if (operand->type->kind == TL_TYPE_BUFFER || operand->type->kind == TL_TYPE_TILE) continue;
    tl_lane_form form = lane_form(operand, along, vec, visits);
    if (!form.known) return unknown_form;
    if (form.scale != 0) uniform = false;
    if (i < 3) forms[i] = form;
  }
  if (uniform) {
    // An array in `local` is private to each element.
    bool is_private = op->code == TL_OP_LOAD && tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL;
    bool computes = (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0 || op->code == TL_OP_LOAD;
    return computes && !is_private ? uniform_form : unknown_form;
  }
  if (op->num_operands != 2) return unknown_form;
  return is_index ? form_binary(op, forms[0], forms[1], vec) : unknown_form;
}

tl_lane_form tl_lane_form_of(tl_value *value, const tl_value *along, int32_t vec) {
  int32_t visits = LANE_FORM_VISITS;
  return lane_form(value, along, vec, &visits);
}

// ---- single elements

tl_value *tl_element_buffer(const tl_op *op) {
  if (op->code == TL_OP_LOAD) return tl_op_arg(op, TL_GROUP_LOAD_buffer);
  if (op->code == TL_OP_STORE) return tl_op_arg(op, TL_GROUP_STORE_buffer);
  if (op->code == TL_OP_WAIT_UNTIL) return tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer);
  assert(op->code == TL_OP_ATOMIC);
  return tl_op_arg(op, TL_GROUP_ATOMIC_buffer);
}

static int index_group(const tl_op *op) {
  return op->code == TL_OP_LOAD         ? TL_GROUP_LOAD_index
         : op->code == TL_OP_STORE      ? TL_GROUP_STORE_index
         : op->code == TL_OP_WAIT_UNTIL ? TL_GROUP_WAIT_UNTIL_index
                                        : TL_GROUP_ATOMIC_index;
}

uint32_t tl_element_rank(const tl_op *op) {
  return tl_op_group_len(op, index_group(op));
}

tl_value *tl_element_index(const tl_op *op, uint32_t dim) {
  return tl_op_group_at(op, index_group(op), dim);
}

int64_t tl_element_check(const tl_op *op, int32_t dim) {
  int32_t len = 0;
  const int64_t *bits = tl_op_ints(op, TL_ATTR_CHECK, &len);
  return bits && dim < len ? bits[dim] : TL_CHECK_LOWER | TL_CHECK_UPPER;
}

// Whether a loop around `op` differs between neighbouring elements: it runs element by element. (A branch has a path
// for vectors whose elements all take it.)
static bool is_in_varying_loop(const tl_op *op, const tl_op *parallel, const tl_value *along) {
  int32_t visits = LANE_FORM_VISITS;
  for (const tl_op *at = op->parent->parent; at != parallel; at = at->parent->parent) {
    if (at->code != TL_OP_FOR) continue;
    if (tl_op_has(at, TL_ATTR_WHILE)) return true;
    static const int bounds[] = {TL_GROUP_FOR_lower, TL_GROUP_FOR_upper, TL_GROUP_FOR_step};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
      if (!is_uniform(tl_op_arg(at, bounds[i]), along, 1, &visits)) return true;
  }
  return false;
}

bool tl_index_is_affine_in(tl_value *index, const tl_op *parallel) {
  tl_affine affine = tl_affine_of(index);
  for (int32_t i = 0; affine.valid && i < affine.num_terms; i++) {
    const tl_value *symbol = affine.terms[i].symbol;
    if (symbol->block == parallel->regions[0]) continue;
    if (tl_op_is_inside(symbol->def ? symbol->def : symbol->block->parent, parallel)) return false;
  }
  return affine.valid;
}

// Why the access cannot be done in vectors of `vec`, or NULL.
static const char *element_obstacle(const tl_op *op, const tl_op *parallel, int32_t vec, bool full_tile) {
  const tl_block *body = parallel->regions[0];
  const tl_value *along = body->args[body->num_args - 1];
  tl_value *buffer = tl_element_buffer(op);
  int32_t last = buffer->type->rank - 1, num_extents = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_extents);
  if (!divides(vec, extents[num_extents - 1])) return "the loop's last extent is no multiple of it";
  if (!vector_is_aligned(buffer, vec)) return "the tensor starts at fewer bytes";
  for (int32_t d = 0; d <= last; d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(op, (uint32_t)d), along, vec);
    if (!form.known || form.scale != (d == last ? 1 : 0))
      return d == last ? "its last subscript does not step by one with the loop's last index"
                       : "a subscript before the last one changes along it";
    int64_t stride = d == last ? 1 : tl_common_divisor(tl_buffer_stride_divisor(buffer, d), vec);
    if (form.divisor != 0 && !divides(vec, stride * tl_common_divisor(form.divisor, vec)))
      return d == last ? "it may start between two multiples" : "rows may start between two multiples";
  }
  bool split = (full_tile && tl_index_is_affine_in(tl_element_index(op, (uint32_t)last), parallel)) ||
               (op->code == TL_OP_LOAD && tl_op_has(op, TL_ATTR_PARTIAL));
  if (!split && (tl_element_check(op, last) & TL_CHECK_UPPER) && !divides(vec, tl_buffer_dim_divisor(buffer, last)))
    return "the bound may cut through it";
  if (op->code == TL_OP_LOAD && tl_op_arg(op, TL_GROUP_LOAD_pad)) {
    tl_lane_form pad = tl_lane_form_of(tl_op_arg(op, TL_GROUP_LOAD_pad), along, vec);
    if (!pad.known || pad.scale != 0) return "the value out of bounds changes along it";
  }
  return NULL;
}

// The same for vectors of any width.
static const char *any_obstacle(const tl_op *op, const tl_op *parallel) {
  const tl_block *body = parallel->regions[0];
  const tl_value *buffer = tl_element_buffer(op);
  if (body->num_args == 0 || buffer->type->rank == 0) return "it is one element";
  if (!tl_buffer_is_row_contiguous(buffer) || buffer->type->scope == TL_SCOPE_LOCAL)
    return "its rows are not contiguous";
  if (is_in_varying_loop(op, parallel, body->args[body->num_args - 1]))
    return "a loop around it is not the same for neighbouring elements";
  return NULL;
}

static int32_t widest_vector(const tl_op *op, const tl_op *parallel, int32_t max_elems, bool full_tile) {
  if (any_obstacle(op, parallel)) return 1;
  int bits = tl_dtype_bits(tl_element_buffer(op)->type->dtype);
  int32_t vec = 1;
  while (vec * 2 <= max_elems && vec * 2 * bits <= 128) vec *= 2;
  while (vec > 1 && element_obstacle(op, parallel, vec, full_tile)) vec /= 2;
  return vec;
}

int32_t tl_element_vector(const tl_op *op, const tl_op *parallel, int32_t max_elems, bool full_tile) {
  return op->code == TL_OP_ATOMIC ? 1 : widest_vector(op, parallel, max_elems, full_tile);
}

int32_t tl_reduction_most(tl_dtype dtype, int32_t sm) {
  enum { FIRST_VECTOR_SM = 90, WORD_BITS = 32, VECTOR_BITS = 128 };
  bool is_half = dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  if (dtype != TL_DTYPE_F32 && !is_half) return 1;
  return (sm < FIRST_VECTOR_SM ? WORD_BITS : VECTOR_BITS) / tl_dtype_bits(dtype);
}

int32_t tl_reduction_vector(const tl_op *op, const tl_op *parallel, int32_t max_elems) {
  const tl_value *buffer = tl_element_buffer(op);
  bool adds = op->code == TL_OP_ATOMIC && tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) == TL_ATOMIC_ADD;
  bool is_told = op->num_results > 0 || tl_op_has(op, TL_ATTR_MEMORY_ORDER);
  tl_dtype dtype = buffer->type->dtype;
  bool is_float = dtype == TL_DTYPE_F32 || dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  if (!adds || is_told || !is_float || !tl_buffer_is_global(buffer)) return 1;
  return widest_vector(op, parallel, max_elems, false);
}

const char *tl_element_vector_obstacle(const tl_op *op, const tl_op *parallel, int32_t vec) {
  const char *obstacle = any_obstacle(op, parallel);
  return obstacle ? obstacle : element_obstacle(op, parallel, vec, false);
}

bool tl_element_is_uniform(const tl_op *op, const tl_op *parallel) {
  const tl_block *body = parallel->regions[0];
  for (uint32_t d = 0; d < tl_element_rank(op) && body->num_args > 0; d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(op, d), body->args[body->num_args - 1], 2);
    if (!form.known || form.scale != 0) return false;
  }
  return true;
}

// ---- packed elements

// Iterations along `along` that share the quotient `index`, when groups of them step through consecutive quotients over
// vectors of `vec` iterations; else 1.
static int32_t shared_by(tl_value *index, const tl_value *along, int32_t vec) {
  const tl_op *op = index->def;
  int64_t by = 0;
  if (!op || op->num_operands != 2) return 1;
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  if (op->code == TL_OP_FLOORDIV && tl_value_const_int(b, &by) && by > 1 && by <= vec && divides(by, vec)) {
    tl_lane_form form = tl_lane_form_of(a, along, vec);
    return form.known && form.scale == 1 && divides(vec, form.divisor) ? (int32_t)by : 1;
  }
  if (op->code != TL_OP_ADD) return 1;
  for (int side = 0; side < 2; side++) {
    int32_t repeat = shared_by(side ? b : a, along, vec);
    tl_lane_form rest = tl_lane_form_of(side ? a : b, along, vec);
    if (repeat > 1 && rest.known && rest.scale == 0 && divides(vec / repeat, rest.divisor)) return repeat;
  }
  return 1;
}

static bool packed_allows(const tl_op *op, const tl_value *along, int32_t vec, int32_t repeat) {
  const tl_value *buffer = tl_element_buffer(op);
  int32_t last = buffer->type->rank - 1, elements = vec / repeat;
  if (!vector_is_aligned(buffer, elements)) return false;
  for (int32_t d = 0; d < last; d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(op, (uint32_t)d), along, vec);
    if (!form.known || form.scale != 0) return false;
    int64_t stride = tl_common_divisor(tl_buffer_stride_divisor(buffer, d), elements);
    if (form.divisor != 0 && !divides(elements, stride * tl_common_divisor(form.divisor, elements))) return false;
  }
  bool bounded = (tl_element_check(op, last) & TL_CHECK_UPPER) != 0;
  return !bounded || divides(elements, tl_buffer_dim_divisor(buffer, last));
}

tl_packed_load tl_element_packed(const tl_op *op, const tl_op *parallel, int32_t max_iterations) {
  const tl_block *body = parallel->regions[0];
  const tl_value *buffer = tl_element_buffer(op);
  tl_packed_load none = {.vec = 1, .repeat = 1};
  if (op->code != TL_OP_LOAD || tl_op_arg(op, TL_GROUP_LOAD_pad) || body->num_args == 0 || buffer->type->rank == 0 ||
      !tl_buffer_is_row_contiguous(buffer) || buffer->type->scope == TL_SCOPE_LOCAL)
    return none;
  int bits = tl_dtype_bits(buffer->type->dtype);
  if (bits < 8) return none;
  const tl_value *along = body->args[body->num_args - 1];
  if (is_in_varying_loop(op, parallel, along)) return none;
  tl_value *index = tl_element_index(op, (uint32_t)buffer->type->rank - 1);
  int32_t num_extents = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_extents);
  int32_t vec = 1;
  while (vec * 2 <= max_iterations) vec *= 2;
  for (; vec > 1; vec /= 2) {
    if (!divides(vec, extents[num_extents - 1])) continue;
    int32_t repeat = shared_by(index, along, vec);
    if (repeat > 1 && vec / repeat * bits <= 128 && packed_allows(op, along, vec, repeat))
      return (tl_packed_load){.vec = vec / repeat, .repeat = repeat};
  }
  return none;
}

// ---- loads between two aligned vectors

// How much further than a multiple of `vec` the index begins, where it steps by one along `along`: 0 to vec - 1, or -1.
static int32_t shift_of(tl_value *index, const tl_value *along, int32_t vec) {
  tl_affine affine = tl_affine_of(index);
  tl_lane_form sum = form_of(0, 0);
  for (int32_t i = 0; affine.valid && i < affine.num_terms; i++) {
    tl_lane_form form = tl_lane_form_of(affine.terms[i].symbol, along, vec);
    int64_t by = affine.terms[i].coefficient;
    if (!form.known || by > INT32_MAX || by < -INT32_MAX) return -1;
    sum = form_of(sum.scale + form.scale * by, tl_common_divisor(sum.divisor, form.divisor % vec * (by % vec)));
  }
  if (!affine.valid || sum.scale != 1 || !divides(vec, sum.divisor)) return -1;
  return (int32_t)((affine.constant % vec + vec) % vec);
}

// Whether the elements around those that are asked for may be read, too: nobody writes them at the same time.
static bool is_read_only(const tl_op *op, const tl_value *buffer) {
  const tl_op *root = tl_buffer_root(buffer);
  if (!root) return false;
  if (root->code == TL_OP_TENSOR) return tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
  if (root->code != TL_OP_ALLOC || !tl_buffer_is_shared(buffer)) return false;
  // A copy of the whole tile has a barrier behind it, whatever is read; of parts it may be known that they do not meet.
  tl_effect_list effects = {0};
  tl_effects_inside(tl_op_enclosing(op, TL_OP_KERNEL), &effects);
  bool fits = true;
  for (size_t i = 0; i < effects.len && fits; i++) {
    tl_effect *effect = &effects.items[i];
    if (effect->root != &root->results[0] || effect->kind == TL_EFFECT_READ) continue;
    fits = effect->op->code == TL_OP_COPY;
    tl_box box = fits ? tl_box_destination(effect->op) : (tl_box){0};
    int64_t elements = 1;
    for (int32_t t = 0; t < box.tile_rank; t++) elements *= box.extents[t];
    fits = fits && elements == tl_type_num_elements(root->results[0].type);
  }
  tl_vec_fini(&effects);
  return fits;
}

// Whether the elements come out of aligned vectors of `vec`, each of which is inside or outside of the buffer as a
// whole.
static bool shift_allows(const tl_op *op, const tl_op *parallel, int32_t vec, int32_t *out_shift) {
  const tl_block *body = parallel->regions[0];
  const tl_value *along = body->args[body->num_args - 1], *buffer = tl_element_buffer(op);
  int32_t last = buffer->type->rank - 1, num_extents = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_extents);
  if (!divides(vec, extents[num_extents - 1]) || !vector_is_aligned(buffer, vec)) return false;
  if (!divides(vec, tl_buffer_dim_divisor(buffer, last))) return false;
  for (int32_t d = 0; d < last; d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(op, (uint32_t)d), along, vec);
    int64_t stride = tl_common_divisor(tl_buffer_stride_divisor(buffer, d), vec);
    if (!form.known || form.scale != 0) return false;
    if (form.divisor != 0 && !divides(vec, stride * tl_common_divisor(form.divisor, vec))) return false;
  }
  if (tl_op_arg(op, TL_GROUP_LOAD_pad)) {
    tl_lane_form pad = tl_lane_form_of(tl_op_arg(op, TL_GROUP_LOAD_pad), along, vec);
    if (!pad.known || pad.scale != 0) return false;
  }
  *out_shift = shift_of(tl_element_index(op, (uint32_t)last), along, vec);
  return *out_shift > 0;
}

tl_shifted_load tl_element_shifted(const tl_op *op, const tl_op *parallel, int32_t max_elems) {
  enum { VECTOR_BITS = 128, GAIN = 4 };
  const tl_shifted_load none = {.vec = 1, .shift = 0};
  if (op->code != TL_OP_LOAD || any_obstacle(op, parallel)) return none;
  int bits = tl_dtype_bits(tl_element_buffer(op)->type->dtype);
  int32_t vec = 1, shift = 0;
  while (vec * 2 <= max_elems && vec * 2 * bits <= VECTOR_BITS) vec *= 2;
  // Two vectors in the place of `vec / narrow`: half of them at most.
  int32_t narrow = widest_vector(op, parallel, vec, false);
  for (; bits >= 8 && vec >= narrow * GAIN; vec /= 2) {
    if (shift_allows(op, parallel, vec, &shift))
      return is_read_only(op, tl_element_buffer(op)) ? (tl_shifted_load){vec, shift} : none;
  }
  return none;
}
