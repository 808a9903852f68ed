// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes one block of several along a dim of the grid, for join-blocks: tiles and loops that differ between the blocks
// have a dim more, in front of their last one.
#include "ir/reduction.h"
#include "passes/layout/join_blocks.h"
#include "passes/tile/loop_rewrite.h"

// Which dim of a tile the joined blocks lie along.
typedef struct joined_tile {
  const tl_value *tile;
  const tl_type *alone;  // its type in a block that is not joined
  int32_t dim;
} joined_tile;

// A buffer of which one dim is two: the parts, and what is in a part.
typedef struct split_buffer {
  tl_value *buffer, *view;
  int32_t dim;
  int64_t size;
} split_buffer;

typedef struct rewriting {
  tl_joining *joining;
  tl_module *module;
  TL_VEC(joined_tile) tiles;
  TL_VEC(split_buffer) views;
} rewriting;

static const joined_tile *joined(const rewriting *self, const tl_value *tile) {
  for (size_t i = self->tiles.len; i > 0; i--)
    if (self->tiles.items[i - 1].tile == tile) return &self->tiles.items[i - 1];
  return NULL;
}

static int32_t joined_dim(const rewriting *self, const tl_value *tile) {
  const joined_tile *found = joined(self, tile);
  return found ? found->dim : -1;
}

static void insert(int64_t *items, int32_t len, int32_t at, int64_t item) {
  for (int32_t i = len; i > at; i--) items[i] = items[i - 1];
  items[at] = item;
}

// The tile has the blocks along a new dim `dim`.
static void widen_tile(rewriting *self, tl_value *tile, int32_t dim) {
  const tl_type *type = tile->type;
  int64_t dims[TL_MAX_RANK + 1];
  for (int32_t d = 0; d < type->rank; d++) dims[d] = type->dims[d];
  insert(dims, type->rank, dim, self->joining->blocks);
  tile->type = tl_type_tile(self->module, type->dtype, dims, type->rank + 1, NULL);
  tl_vec_push(&self->tiles, ((joined_tile){tile, type, dim}));
}

// ---- memory

static tl_value *view_of(rewriting *self, tl_value *buffer, int32_t dim, int64_t size) {
  for (size_t i = 0; i < self->views.len; i++) {
    const split_buffer *known = &self->views.items[i];
    if (known->buffer == buffer && known->dim == dim && known->size == size) return known->view;
  }
  tl_builder builder;
  tl_builder_after(&builder, self->module, buffer->def);
  int64_t dims[TL_MAX_RANK + 1], extent;
  tl_value *values[TL_MAX_RANK + 1];
  int32_t rank = 0;
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    tl_value *value = tl_buffer_dim_value(buffer, d);
    dims[rank] = buffer->type->dims[d];
    if (d == dim) {
      extent = dims[rank];
      if (value) tl_value_const_int(value, &extent);
      dims[rank] = extent / size;
      values[rank++] = tl_build_index(&builder, extent / size);
      dims[rank] = size;
      value = NULL;
    }
    values[rank] = value ? value : tl_build_index(&builder, dims[rank]);
    rank++;
  }
  const tl_type *type = tl_type_buffer(self->module, buffer->type->scope, buffer->type->dtype, dims, rank);
  tl_group groups[] = {TL_GROUP_OF(buffer), {values, (uint32_t)rank}};
  tl_op *op = tl_build(&builder, TL_OP_VIEW, groups, &type, 1);
  tl_op_set_str(self->module, op, TL_ATTR_NAME, tl_str_from(tl_buffer_name(buffer)));
  split_buffer made = {buffer, tl_op_result(op, 0), dim, size};
  tl_vec_push(&self->views, made);
  return made.view;
}

// The first of the parts of the joined blocks.
static tl_value *first_part(const rewriting *self, tl_builder *builder, const tl_block_part *part) {
  tl_affine first = part->first;
  for (int32_t i = 0; i < first.num_terms; i++)
    if (first.terms[i].symbol == self->joining->along) first.terms[i].coefficient *= self->joining->blocks;
  return tl_affine_build(builder, &first);
}

// One side of a copy to or from a tile that the blocks lie along in dim `dim`.
static void widen_box(rewriting *self, tl_op *op, const tl_box *box, int32_t dim, int group_buffer,
                      tl_attr_key dims_key, tl_attr_key step_key) {
  tl_block_part part;
  tl_joining_part_of_box(self->joining, box, &part);
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  tl_value *view = view_of(self, box->buffer, part.dim, part.size), *offsets[TL_MAX_RANK + 1];
  int64_t checks[TL_MAX_RANK + 1], dims[TL_MAX_RANK + 1], steps[TL_MAX_RANK + 1];
  for (int32_t d = 0, to = 0; d < box->buffer_rank; d++, to++) {
    offsets[to] = tl_box_offset(box, d);
    checks[to] = tl_box_check(box, d);
    if (d != part.dim) continue;
    offsets[to++] = first_part(self, &builder, &part);
    offsets[to] = tl_build_index(&builder, part.inside);
    checks[to] = 0;
  }
  for (int32_t t = 0; t < box->tile_rank; t++) {
    dims[t] = box->dims[t] >= part.dim ? box->dims[t] + 1 : box->dims[t];
    steps[t] = box->steps[t];
  }
  insert(dims, box->tile_rank, dim, part.dim);
  insert(steps, box->tile_rank, dim, 1);
  tl_op_set_group(self->module, op, group_buffer, &view, 1);
  tl_op_set_group(self->module, op, box->group_offsets, offsets, (uint32_t)view->type->rank);
  tl_op_set_ints(self->module, op, box->check_key, checks, view->type->rank);
  tl_op_set_ints(self->module, op, dims_key, dims, box->tile_rank + 1);
  if (tl_op_has(op, step_key)) tl_op_set_ints(self->module, op, step_key, steps, box->tile_rank + 1);
}

static bool offsets_vary(const rewriting *self, const tl_box *box) {
  for (int32_t d = 0; d < box->buffer_rank; d++)
    if (tl_joining_varies(self->joining, tl_box_offset(box, d))) return true;
  return false;
}

static void join_load(rewriting *self, tl_op *op) {
  tl_box box = tl_box_source(op);
  if (!offsets_vary(self, &box)) return;
  tl_value *tile = tl_op_result(op, 0);
  int32_t dim = tile->type->rank - 1;
  widen_box(self, op, &box, dim, TL_GROUP_TILE_LOAD_src, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP);
  widen_tile(self, tile, dim);
}

static void join_store(rewriting *self, tl_op *op) {
  tl_value *tile = tl_op_arg(op, TL_GROUP_TILE_STORE_tile);
  const joined_tile *found = joined(self, tile);
  if (!found) return;
  const tl_type *type = tile->type;
  tile->type = found->alone;  // which the box is of
  tl_box box = tl_box_destination(op);
  tile->type = type;
  widen_box(self, op, &box, found->dim, TL_GROUP_TILE_STORE_dst, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP);
}

// ---- reductions

// A tile of one element for each block, which a reduction of everything gives, with the dim of that element.
static void append_dim(rewriting *self, tl_op *reduce, uint32_t r) {
  tl_value *whole = tl_op_result(reduce, r), *index;
  const tl_type *alone = whole->type;
  whole->type = tl_type_tile(self->module, alone->dtype, &self->joining->blocks, 1, NULL);
  const tl_type *element = tl_type_scalar(self->module, whole->type->dtype);
  int64_t dims[] = {self->joining->blocks, 1}, maps[] = {0, 1};
  const tl_type *type = tl_type_tile(self->module, whole->type->dtype, dims, 2, NULL);
  tl_builder builder, inner;
  tl_builder_after(&builder, self->module, reduce);
  builder.loc = reduce->loc;
  tl_op *parallel = tl_build(&builder, TL_OP_PARALLEL, NULL, &type, 1);
  tl_op_set_ints(self->module, parallel, TL_ATTR_EXTENTS, dims, 2);
  tl_op_set_ints(self->module, parallel, TL_ATTR_MAPS, maps, 2);
  tl_value_replace_uses(whole, tl_op_result(parallel, 0));
  index = tl_block_add_arg(self->module, parallel->regions[0], tl_type_index(self->module), NULL);
  tl_block_add_arg(self->module, parallel->regions[0], tl_type_index(self->module), NULL);
  tl_builder_at_end(&inner, self->module, parallel->regions[0]);
  inner.loc = reduce->loc;
  tl_op *extract = tl_build(&inner, TL_OP_EXTRACT, (tl_group[]){TL_GROUP_OF(whole), TL_GROUP_OF(index)}, &element, 1);
  tl_value *value = tl_op_result(extract, 0);
  tl_build_yield(&inner, &value, 1);
  tl_vec_push(&self->tiles, ((joined_tile){tl_op_result(parallel, 0), alone, 0}));
}

static void join_reduce(rewriting *self, tl_op *op) {
  tl_value *source = tl_op_operand(op, 0);
  int32_t dim = joined_dim(self, source), num_axes = 0, kept = 0;
  if (dim < 0) return;
  int64_t axes[TL_MAX_RANK];
  const int64_t *old = tl_op_ints(op, TL_ATTR_AXES, &num_axes);
  for (int32_t i = 0; i < num_axes; i++) axes[i] = old[i] >= dim ? old[i] + 1 : old[i];
  tl_op_set_ints(self->module, op, TL_ATTR_AXES, axes, num_axes);
  if (op->code == TL_OP_SCAN) {
    widen_tile(self, tl_op_result(op, 0), dim);
    return;
  }
  bool reduced[TL_MAX_RANK], keep = tl_op_has(op, TL_ATTR_KEEPDIMS);
  tl_reduce_axes(op, reduced);
  for (int32_t d = 0; d < dim; d++) kept += keep || !reduced[d];
  bool is_whole = !keep && num_axes == source->type->rank - 1;
  for (uint32_t r = 0; r < op->num_results; r++) {
    if (is_whole)
      append_dim(self, op, r);
    else
      widen_tile(self, tl_op_result(op, r), kept);
  }
}

// ---- loops

// A number that differs between the blocks, made anew for the block that the loop's new index stands for.
static tl_value *make_anew(rewriting *self, tl_value *value, tl_builder *builder, tl_value_map *anew) {
  tl_value *known = tl_value_map_get(anew, value);
  if (known != value || !tl_joining_varies(self->joining, value) || value->type->kind == TL_TYPE_TILE) return known;
  tl_value_map map = {0};
  for (uint32_t i = 0; i < value->def->num_operands; i++) {
    tl_value *operand = tl_op_operand(value->def, i);
    tl_value_map_set(&map, operand, make_anew(self, operand, builder, anew));
  }
  tl_op *copy = tl_op_clone(builder, value->def, &map);
  tl_value_map_fini(&map);
  for (uint32_t r = 0; r < copy->num_results; r++)
    tl_value_map_set(anew, tl_op_result(value->def, r), tl_op_result(copy, r));
  return tl_op_result(copy, value->index);
}

// Elements of a buffer of which each block has a part: named by the part and the place in it.
static void split_element(rewriting *self, tl_op *op, const tl_value *block) {
  tl_value *buffer = tl_element_buffer(op);
  uint32_t rank = tl_element_rank(op);
  if (rank == 0 || !tl_buffer_is_global(buffer)) return;
  tl_value *index[TL_MAX_RANK + 1];
  tl_affine form = tl_affine_of(tl_element_index(op, rank - 1)), first = {.valid = true}, inside = {.valid = true};
  int32_t dim = (int32_t)rank - 1;
  // The block's number is a sum of the joined ones' and the loop's index.
  int64_t size = form.valid ? tl_affine_coefficient(&form, block) : 0;
  if (size < 2 || tl_element_check(op, dim)) return;
  for (int32_t i = 0; i < form.num_terms; i++) {
    bool is_part = form.terms[i].coefficient % size == 0;
    tl_affine *to = is_part ? &first : &inside;
    to->terms[to->num_terms] = form.terms[i];
    if (is_part) to->terms[to->num_terms].coefficient /= size;
    to->num_terms++;
  }
  inside.constant = (form.constant % size + size) % size;
  first.constant = (form.constant - inside.constant) / size;
  tl_range range = tl_affine_range(&inside);
  if (range.lo < 0 || range.hi >= size || !tl_joining_can_split(buffer, dim, size)) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  int64_t checks[TL_MAX_RANK + 1] = {0};
  for (uint32_t d = 0; d < rank; d++) {
    index[d] = tl_element_index(op, d);
    checks[d] = tl_element_check(op, (int32_t)d);
  }
  index[dim] = tl_affine_build(&builder, &first);
  index[rank] = tl_affine_build(&builder, &inside);
  checks[dim] = 0;
  tl_value *view = view_of(self, buffer, dim, size);
  bool is_load = op->code == TL_OP_LOAD;
  tl_op_set_group(self->module, op, is_load ? TL_GROUP_LOAD_buffer : TL_GROUP_STORE_buffer, &view, 1);
  tl_op_set_group(self->module, op, is_load ? TL_GROUP_LOAD_index : TL_GROUP_STORE_index, index, rank + 1);
  tl_op_set_ints(self->module, op, TL_ATTR_CHECK, checks, (int32_t)rank + 1);
}

typedef struct body {
  rewriting *self;
  tl_builder *start;  // of the loop's body
  tl_value *index;    // the loop's, of the joined blocks
  tl_value_map anew;
} body;

static void join_extract(rewriting *self, tl_op *op, tl_value *block) {
  int32_t dim = joined_dim(self, tl_op_arg(op, TL_GROUP_EXTRACT_tile)), to = 0;
  uint32_t len = tl_op_group_len(op, TL_GROUP_EXTRACT_index);
  tl_value *index[TL_MAX_RANK + 1];
  if (dim < 0) return;
  for (uint32_t d = 0; d <= len; d++) {
    if ((int32_t)d == dim) index[to++] = block;
    if (d < len) index[to++] = tl_op_group_at(op, TL_GROUP_EXTRACT_index, d);
  }
  tl_op_set_group(self->module, op, TL_GROUP_EXTRACT_index, index, len + 1);
}

static void join_inside(tl_op *op, void *user) {
  body *in = user;
  rewriting *self = in->self;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *operand = tl_op_operand(op, i), *anew = make_anew(self, operand, in->start, &in->anew);
    if (anew != operand) tl_op_set_operand(op, i, anew);
  }
  if (op->code == TL_OP_EXTRACT) join_extract(self, op, in->index);
  if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) split_element(self, op, in->index);
}

// A new index in front of the last one.
static tl_value *insert_index(rewriting *self, tl_op *parallel, int32_t rank) {
  tl_block *block = parallel->regions[0];
  tl_value *index = tl_block_add_arg(self->module, block, tl_type_index(self->module), "block");
  tl_value *last = block->args[rank - 1];
  block->args[rank - 1] = index;
  block->args[rank] = last;
  index->index = (uint32_t)rank - 1;
  last->index = (uint32_t)rank;
  return index;
}

// The loop's body is about the block that its new index stands for.
static void widen_body(rewriting *self, tl_op *op, tl_value *index) {
  tl_op *first = op->regions[0]->first;
  tl_builder start;
  tl_builder_before(&start, self->module, first);
  start.loc = op->loc;
  body in = {.self = self, .start = &start, .index = index};
  tl_value *blocks = tl_build_index(&start, self->joining->blocks);
  tl_value *own = tl_index_add(&start, tl_index_mul(&start, self->joining->along, blocks), index);
  tl_value_map_set(&in.anew, self->joining->along, own);
  for (tl_op *inner = first; inner; inner = inner->next) tl_walk(inner, join_inside, &in);
  tl_value_map_fini(&in.anew);
}

static void join_parallel(rewriting *self, tl_op *op) {
  int32_t rank = 0, num_maps = 0, at = 0, to = 0, num_new = 0;
  int64_t extents[TL_MAX_RANK + 1];
  const int64_t *old = tl_op_ints(op, TL_ATTR_EXTENTS, &rank), *maps = tl_op_ints(op, TL_ATTR_MAPS, &num_maps);
  for (int32_t d = 0; d < rank; d++) extents[d] = old[d];
  insert(extents, rank, rank - 1, self->joining->blocks);
  int64_t *fresh = TL_NEW_ARRAY(&self->joining->context->scratch, int64_t, (size_t)num_maps + op->num_results + 1);
  for (uint32_t r = 0; r < op->num_results; r++) {
    tl_value *result = tl_op_result(op, r);
    int32_t tile_rank = result->type->rank;
    for (int32_t d = 0; d < tile_rank; d++, at++) {
      int64_t by = maps ? maps[at] : d;
      if (d == tile_rank - 1) fresh[to++] = rank - 1;
      fresh[to++] = by == rank - 1 ? rank : by;
    }
    widen_tile(self, result, tile_rank - 1);
  }
  num_new = to;
  tl_value *index = insert_index(self, op, rank);
  tl_op_set_ints(self->module, op, TL_ATTR_EXTENTS, extents, rank + 1);
  if (num_new > 0) tl_op_set_ints(self->module, op, TL_ATTR_MAPS, fresh, num_new);
  widen_body(self, op, index);
}

void tl_joining_rewrite(tl_joining *joining) {
  rewriting self = {.joining = joining, .module = joining->context->module};
  tl_value *extents[TL_MAX_RANK];
  tl_op *grid = joining->grid;
  tl_builder builder;
  tl_builder_before(&builder, self.module, grid);
  for (uint32_t d = 0; d < grid->num_results; d++) {
    extents[d] = tl_op_group_at(grid, TL_GROUP_GRID_extents, d);
    if (tl_op_result(grid, d) != joining->along) continue;
    extents[d] = tl_index_floordiv(&builder, extents[d], tl_build_index(&builder, joining->blocks));
  }
  for (tl_op *op = joining->kernel->regions[0]->first, *next; op; op = next) {
    next = op->next;
    switch (op->code) {
      case TL_OP_TILE_LOAD:
        join_load(&self, op);
        break;
      case TL_OP_TILE_STORE:
        join_store(&self, op);
        break;
      case TL_OP_REDUCE:
      case TL_OP_SCAN:
        join_reduce(&self, op);
        break;
      case TL_OP_PARALLEL:
        if (tl_joining_is_for_each(joining, op)) join_parallel(&self, op);
        break;
      default:
        break;
    }
  }
  tl_op_set_group(self.module, grid, TL_GROUP_GRID_extents, extents, grid->num_results);
  tl_prune_unused(self.module, joining->kernel->regions[0]);
  tl_vec_fini(&self.tiles);
  tl_vec_fini(&self.views);
}
