// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings of rows that begin each elsewhere within 16 bytes: rows of 1001 elements of 2 bytes, or of 35. In the tensor as
// one row a row of the tile begins at `start`; it comes from the multiple of a vector before that on, by cp.async, and
// what reads it looks as far behind as that row began. Rows that follow each other are one.
//
//   copy %X[%r, %k] -> %s extents=[64, 128]     ⇒     parallel(%i, %j) in 64, 136: %w[%i, %j] = %flat[start(%i) // 8 *
//   8 + %j] … load %s[%i, %j]                                 … load %w[%i, %j + start(%i) % 8], or 0 behind the row's
//   limit
//
// What a vector has of the row before or of the next one is never used; of one that passes the tensor's end cp.async
// brings what is inside.
#include "passes/check/check_bounds.h"
#include "passes/layout/align_rows.h"
#include "passes/layout/select_copies.h"

enum { VECTOR_BITS = 128, LEAST_BITS = 32 };  // of cp.async

typedef struct gathering {
  tl_pass_context *context;
  tl_op *kernel, *copy;
  tl_box source, destination;
  int32_t rank;    // of the tile
  bool is_run;     // its rows follow each other
  int64_t vec;     // elements of 16 bytes
  tl_affine rest;  // where the box begins, but for multiples of vec
  tl_value *base;  // the same as a value
  tl_value *tile;  // the new one
} gathering;

// ---- which copies

static bool has_checks(const tl_box *box) {
  for (int32_t d = 0; d < box->buffer_rank; d++)
    if (tl_box_check(box, d) != 0) return true;
  return false;
}

static bool fills_whole_tile(const gathering *self) {
  const tl_box *box = &self->destination;
  if (box->tile_rank != box->buffer_rank || has_checks(box)) return false;
  for (int32_t t = 0; t < box->tile_rank; t++) {
    int64_t offset;
    if (box->dims[t] != t || box->steps[t] != 1 || box->extents[t] != box->buffer->type->dims[t]) return false;
    if (!tl_value_const_int(tl_box_offset(box, t), &offset) || offset != 0) return false;
  }
  return true;
}

// Whether the rows of the box follow each other in the tensor: all dims but the first are walked whole.
static bool are_one(const tl_box *box) {
  for (int32_t t = 0; t < box->tile_rank; t++) {
    int32_t d = box->buffer_rank - (box->tile_rank - t);
    int64_t offset;
    if (box->dims[t] != d || box->steps[t] != 1) return false;
    if (t == 0) continue;
    if (box->extents[t] != box->buffer->type->dims[d] || tl_box_check(box, d) != 0) return false;
    if (!tl_value_const_int(tl_box_offset(box, d), &offset) || offset != 0) return false;
  }
  return box->tile_rank > 1;
}

static bool is_candidate(gathering *self) {
  const tl_op *copy = self->copy;
  const tl_value *tensor = self->source.buffer, *tile = self->destination.buffer;
  int bits = tl_dtype_bits(tensor->type->dtype);
  if (!tl_is_in_pipeline(copy) || !(self->context->target->features & TL_FEATURE_CP_ASYNC) || copy->num_results > 0)
    return false;
  if (tl_op_int(copy, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_VECTOR || bits < 8) return false;
  if (tensor->type->dtype != tile->type->dtype || !tl_copy_pads_with_zero(copy) || !fills_whole_tile(self))
    return false;
  return tl_copy_shape_of(self->copy, tl_op_threads(copy), true).vec * bits < LEAST_BITS;
}

// Whether the op runs behind the copy, wherever the copy runs.
static bool is_behind(const tl_op *op, const tl_op *copy) {
  while (op && op->parent != copy->parent) op = op->parent->parent;
  while (op && op != copy) op = op->prev;
  return op != NULL;
}

static const char *reader_obstacle(const gathering *self) {
  const tl_value *tile = self->destination.buffer;
  if (tl_op_has(tile->def, TL_ATTR_SHARED_LAYOUT) || tl_op_has(tile->def, TL_ATTR_DEPTH))
    return "the layout of its tile is fixed";
  for (const tl_use *use = tile->uses; use; use = use->next) {
    tl_op *op = use->owner;
    if (op == self->copy) continue;
    if (op->code == TL_OP_GEMM) return "a product reads its tile, whose rows begin at multiples of 16 bytes";
    if ((op->code != TL_OP_LOAD && op->code != TL_OP_TILE_LOAD) || !is_behind(op, self->copy))
      return "others than loads behind it use its tile, too";
    tl_box box = op->code == TL_OP_TILE_LOAD ? tl_box_source(op) : (tl_box){0};
    if (has_checks(&box)) return "others than loads behind it use its tile, too";
    for (uint32_t d = 0; op->code == TL_OP_LOAD && d < tl_element_rank(op); d++)
      if (tl_element_check(op, (int32_t)d) != 0) return "others than loads behind it use its tile, too";
  }
  return NULL;
}

static const char *obstacle_of(const gathering *self) {
  const tl_op *root = tl_buffer_root(self->source.buffer);
  if (!root || tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) != TL_ACCESS_IN)
    return "the kernel may write the tensor";
  if (!tl_rows_are_dense(self->source.buffer)) return "between rows of the tensor there is something else";
  return reader_obstacle(self);
}

// ---- places

// Elements from the tensor's start to the row of the tile at `at` (NULL: 0), which has a value a dim but the last.
static tl_value *row_start(tl_builder *builder, const gathering *self, tl_value *const *at, bool with_base) {
  const tl_box *box = &self->source;
  tl_value *sum = with_base ? NULL : self->base;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int32_t t = box->tile_dim[d];
    tl_value *stride = tl_rows_stride(builder, box->buffer, d);
    tl_value *place = with_base ? tl_box_offset(box, d) : NULL;
    if (at && t >= 0 && t < self->rank - 1) {
      tl_value *step = tl_index_mul(builder, at[t], tl_build_index(builder, box->steps[t]));
      place = place ? tl_index_add(builder, place, step) : step;
    }
    if (!place) continue;
    place = tl_index_mul(builder, place, stride);
    sum = sum ? tl_index_add(builder, sum, place) : place;
  }
  return sum;
}

// A row's place within its vector, out of what is no multiple of it.
static tl_value *row_phase(tl_builder *builder, const gathering *self, tl_value *const *at) {
  tl_value *start = row_start(builder, self, at, false);
  tl_affine sum = tl_affine_of(start);
  if (sum.valid) {
    sum = tl_rows_rest(&sum, self->vec);
    start = tl_affine_build(builder, &sum);
  }
  return tl_index_mod(builder, start, tl_build_index(builder, self->vec));
}

// The element of the new tile that the old one had at `at`.
static void place_in_tile(tl_builder *builder, const gathering *self, tl_value **at) {
  if (!self->is_run) {
    at[self->rank - 1] = tl_index_add(builder, at[self->rank - 1], row_phase(builder, self, at));
    return;
  }
  tl_value *sum = NULL;
  for (int32_t t = 0; t < self->rank; t++) {
    if (sum) sum = tl_index_mul(builder, sum, tl_build_index(builder, self->destination.extents[t]));
    sum = sum ? tl_index_add(builder, sum, at[t]) : at[t];
  }
  at[0] = tl_index_add(builder, sum, row_phase(builder, self, NULL));
}

// Whether the element at `at` is inside of the copy's bounds, as far as those of the tensor as one row do not tell.
// NULL: always.
static tl_value *inside(tl_builder *builder, const gathering *self, tl_value *const *at) {
  const tl_box *box = &self->source;
  tl_value *all = NULL;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t bits = tl_box_check(box, d);
    tl_value *limit = tl_box_limit(box, d), *own = tl_buffer_dim_value(box->buffer, d);
    if (d == 0 && box->buffer_rank > 1 && (!limit || limit == own)) continue;
    tl_value *place = tl_box_offset(box, d);
    int32_t t = box->tile_dim[d];
    if (t >= 0)
      place = tl_index_add(builder, place, tl_index_mul(builder, at[t], tl_build_index(builder, box->steps[t])));
    if (!limit) limit = own ? own : tl_build_index(builder, box->buffer->type->dims[d]);
    tl_value *tests[] = {
        bits & TL_CHECK_LOWER ? tl_build_cmp(builder, TL_CMP_GE, place, tl_build_index(builder, 0)) : NULL,
        bits & TL_CHECK_UPPER ? tl_build_cmp(builder, TL_CMP_LT, place, limit) : NULL};
    for (int i = 0; i < 2; i++)
      if (tests[i]) all = all ? tl_build_binary(builder, TL_OP_AND, all, tests[i]) : tests[i];
  }
  return all;
}

// ---- the rewrite

static void build_tile(gathering *self) {
  const tl_value *old = self->destination.buffer;
  int64_t dims[TL_MAX_RANK], row = self->destination.extents[self->rank - 1];
  int32_t rank = self->is_run ? 1 : self->rank;
  for (int32_t t = 0; t < rank; t++) dims[t] = self->destination.extents[t];
  for (int32_t t = 0; self->is_run && t < self->rank - 1; t++) row *= self->destination.extents[t];
  dims[rank - 1] = (row + self->vec - 1 + self->vec - 1) / self->vec * self->vec;
  tl_builder builder;
  tl_builder_after(&builder, self->context->module, old->def);
  builder.loc = old->def->loc;
  const tl_type *type = tl_type_buffer(self->context->module, TL_SCOPE_SHARED, old->type->dtype, dims, rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(self->context->module, alloc, TL_ATTR_NAME, tl_str_from(tl_buffer_name(old)));
  self->tile = tl_op_result(alloc, 0);
}

static tl_op *build_parallel(gathering *self, tl_op *before, const tl_type *result, const int64_t *extents,
                             int32_t rank) {
  tl_module *module = self->context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = before->loc;
  tl_op *parallel = tl_build(&builder, TL_OP_PARALLEL, NULL, &result, result ? 1 : 0);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, extents, rank);
  for (int32_t d = 0; d < rank; d++)
    tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), d == rank - 1 ? "j" : "i");
  return parallel;
}

static void build_gather(gathering *self) {
  tl_module *module = self->context->module;
  int32_t rank = self->tile->type->rank;
  tl_op *parallel = build_parallel(self, self->copy, NULL, self->tile->type->dims, rank);
  tl_block *body = parallel->regions[0];
  tl_value *view = tl_rows_as_one(self->context, self->source.buffer);
  tl_builder builder;
  tl_builder_at_end(&builder, module, body);
  builder.loc = self->copy->loc;
  tl_value *start = row_start(&builder, self, self->is_run ? NULL : body->args, true),
           *vec = tl_build_index(&builder, self->vec);
  start = tl_index_mul(&builder, tl_index_floordiv(&builder, start, vec), vec);
  tl_value *place = tl_index_add(&builder, start, body->args[rank - 1]);
  const tl_type *scalar = tl_type_scalar(module, view->type->dtype);
  const int64_t checks[TL_MAX_RANK] = {TL_CHECK_LOWER | TL_CHECK_UPPER}, none[TL_MAX_RANK] = {0};
  tl_group from[TL_GROUP_LOAD_pad + 1] = {TL_GROUP_OF(view), {&place, 1}, TL_GROUP_EMPTY};
  tl_op *load = tl_build(&builder, TL_OP_LOAD, from, &scalar, 1);
  tl_op_set_ints(module, load, TL_ATTR_CHECK, checks, 1);
  tl_op_set_unit(module, load, TL_ATTR_PARTIAL);
  tl_value *value = tl_op_result(load, 0);
  tl_group to[] = {TL_GROUP_OF(value), TL_GROUP_OF(self->tile), {body->args, (uint32_t)rank}};
  tl_op *store = tl_build(&builder, TL_OP_STORE, to, NULL, 0);
  tl_op_set_ints(module, store, TL_ATTR_CHECK, none, rank);
  tl_build_yield(&builder, NULL, 0);
  tl_refine_bounds(module, load);
}

// The element at `at` of the old tile.
static tl_value *build_load(const gathering *self, tl_builder *builder, tl_value *const *at) {
  tl_value *places[TL_MAX_RANK];
  for (int32_t t = 0; t < self->rank; t++) places[t] = at[t];
  tl_value *condition = inside(builder, self, places);
  place_in_tile(builder, self, places);
  const tl_type *scalar = tl_type_scalar(builder->module, self->tile->type->dtype);
  int32_t rank = self->tile->type->rank;
  const int64_t none[TL_MAX_RANK] = {0};
  tl_group groups[TL_GROUP_LOAD_pad + 1] = {TL_GROUP_OF(self->tile), {places, (uint32_t)rank}, TL_GROUP_EMPTY};
  tl_op *load = tl_build(builder, TL_OP_LOAD, groups, &scalar, 1);
  tl_op_set_ints(builder->module, load, TL_ATTR_CHECK, none, rank);
  tl_value *value = tl_op_result(load, 0);
  if (!condition) return value;
  return tl_build_select(builder, condition, value, tl_build_zero(builder, scalar->dtype));
}

static void replace_load(const gathering *self, tl_op *load) {
  tl_value *at[TL_MAX_RANK];
  for (int32_t t = 0; t < self->rank; t++) at[t] = tl_element_index(load, (uint32_t)t);
  tl_builder builder;
  tl_builder_before(&builder, self->context->module, load);
  builder.loc = load->loc;
  tl_value_replace_uses(tl_op_result(load, 0), build_load(self, &builder, at));
  tl_op_erase(load);
}

// A tile load is a parallel that loads its elements.
static void replace_tile_load(gathering *self, tl_op *load) {
  tl_module *module = self->context->module;
  tl_value *result = tl_op_result(load, 0);
  int64_t maps[TL_MAX_RANK];
  int32_t rank = result->type->rank;
  tl_box box = tl_box_source(load);
  tl_op *parallel = build_parallel(self, load, result->type, result->type->dims, rank);
  tl_block *body = parallel->regions[0];
  for (int32_t t = 0; t < rank; t++) maps[t] = t;
  tl_op_set_ints(module, parallel, TL_ATTR_MAPS, maps, rank);
  tl_builder builder;
  tl_builder_at_end(&builder, module, body);
  builder.loc = load->loc;
  tl_value *at[TL_MAX_RANK];
  for (int32_t d = 0; d < box.buffer_rank; d++) {
    at[d] = tl_box_offset(&box, d);
    int32_t t = box.tile_dim[d];
    if (t >= 0)
      at[d] =
          tl_index_add(&builder, at[d], tl_index_mul(&builder, body->args[t], tl_build_index(&builder, box.steps[t])));
  }
  tl_value *value = build_load(self, &builder, at);
  value = tl_build_cast(&builder, value, tl_type_scalar(module, result->type->dtype));
  tl_build_yield(&builder, &value, 1);
  tl_op_result(parallel, 0)->name = result->name;
  tl_value_replace_uses(result, tl_op_result(parallel, 0));
  tl_op_erase(load);
}

static void rewrite(gathering *self) {
  tl_value *old = self->destination.buffer;
  self->base = tl_rows_build(self->context, self->kernel, &self->rest);
  build_tile(self);
  build_gather(self);
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_WINDOW, self->copy->loc,
                 self->is_run ? "rows of '%s' are brought as one run, from a multiple of 16 bytes on"
                              : "rows of '%s' are brought each from its own multiple of 16 bytes on",
                 tl_buffer_name(self->source.buffer));
  const tl_use *use = old->uses;
  while (use) {
    tl_op *op = use->owner;
    use = use->next;
    if (op->code == TL_OP_LOAD) replace_load(self, op);
    if (op->code == TL_OP_TILE_LOAD) replace_tile_load(self, op);
  }
  tl_op_erase(self->copy);
  tl_op_erase(old->def);
}

const char *tl_rows_gather(tl_pass_context *context, tl_op *kernel, tl_op *copy) {
  gathering self = {.context = context,
                    .kernel = kernel,
                    .copy = copy,
                    .source = tl_box_source(copy),
                    .destination = tl_box_destination(copy)};
  self.rank = self.destination.buffer_rank;
  if (!is_candidate(&self)) return "";
  const char *obstacle = obstacle_of(&self);
  if (obstacle) return obstacle;
  self.is_run = are_one(&self.source);
  self.vec = VECTOR_BITS / tl_dtype_bits(self.source.buffer->type->dtype);
  tl_builder builder;
  tl_builder_before(&builder, context->module, copy);
  tl_affine sum = tl_affine_of(row_start(&builder, &self, NULL, true));
  if (!sum.valid) return "where it begins is no sum";
  self.rest = tl_rows_rest(&sum, self.vec);
  if (!tl_rows_are_known(&self.rest, kernel))
    return "how far behind a multiple of 16 bytes it begins changes in a loop";
  const tl_value *tile = self.destination.buffer;
  int64_t elements = tl_type_num_elements(tile->type),
          rows = self.is_run ? 1 : elements / self.destination.extents[self.rank - 1];
  // A copy that runs ahead is worth blocks that do not run beside it.
  enum { WORTH = 2 };
  if (!tl_rows_have_room(context, kernel, tile, elements + rows * 2 * (self.vec - 1), WORTH))
    return "with room for the elements around fewer blocks would fit on a multiprocessor";
  rewrite(&self);
  return NULL;
}
