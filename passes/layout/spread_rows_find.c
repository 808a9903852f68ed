// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which dims of a kernel's tiles and parallels go together, for spread-rows.
//
//   %x = tile_load …                                   dim 1 of %x,
//   %e = parallel do(%i, %j) { extract %x[%i, %j] … }  dim 1 of the parallel and of %e are one class;
//   %z = reduce %e {axes = [1]}                        dim 0 of all of them and of %z another
//
// An element that is named in another way than by an index of the parallel has no block that certainly has it, so that
// its dim stays whole.
#include "ir/reduction.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/spread_rows.h"

typedef struct finding {
  const tl_op *kernel;
  tl_spread_dims *dims;
} finding;

// ---- classes

static int32_t stand_in(tl_spread_dims *dims, int32_t dim) {
  while (dims->dims.items[dim].parent != dim) dim = dims->dims.items[dim].parent;
  return dim;
}

static const tl_spread_node *find_node(const tl_spread_dims *dims, const tl_value *tile, const tl_op *parallel) {
  for (size_t i = dims->nodes.len; i > 0; i--) {
    const tl_spread_node *node = &dims->nodes.items[i - 1];
    if (node->tile == tile && node->parallel == parallel) return node;
  }
  return NULL;
}

static int32_t number_of(finding *self, tl_value *tile, tl_op *parallel) {
  const tl_spread_node *known = find_node(self->dims, tile, parallel);
  if (known) return known->first;
  int32_t rank = tile ? tile->type->rank : 0;
  const int64_t *extents = tile ? tile->type->dims : tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
  tl_spread_node node = {tile, parallel, (int32_t)self->dims->dims.len, rank};
  for (int32_t d = 0; d < rank; d++) {
    tl_spread_dim dim = {.parent = node.first + d, .extent = extents[d]};
    tl_vec_push(&self->dims->dims, dim);
  }
  tl_vec_push(&self->dims->nodes, node);
  return node.first;
}

static void join(finding *self, int32_t a, int32_t b) {
  a = stand_in(self->dims, a);
  b = stand_in(self->dims, b);
  if (a == b) return;
  tl_spread_dim *left = &self->dims->dims.items[a], *right = &self->dims->dims.items[b];
  if (!left->obstacle) left->obstacle = right->obstacle;
  if (!left->obstacle && left->extent != right->extent) left->obstacle = "a loop walks a part of its tile";
  right->parent = a;
}

static void keep_whole(finding *self, int32_t dim, const char *why) {
  tl_spread_dim *of = &self->dims->dims.items[stand_in(self->dims, dim)];
  if (!of->obstacle) of->obstacle = why;
}

static bool is_tile(const tl_value *value) {
  return value->type->kind == TL_TYPE_TILE;
}

static void keep_tile_whole(finding *self, tl_value *tile, const char *why) {
  if (!is_tile(tile)) return;
  int32_t first = number_of(self, tile, NULL);
  for (int32_t d = 0; d < tile->type->rank; d++) keep_whole(self, first + d, why);
}

static void join_tiles(finding *self, tl_value *a, tl_value *b) {
  if (!is_tile(a) || !is_tile(b)) return;
  int32_t left = number_of(self, a, NULL), right = number_of(self, b, NULL);
  for (int32_t d = 0; d < a->type->rank; d++) join(self, left + d, right + d);
}

// ---- ops

static void look_at_box(finding *self, tl_value *tile, const tl_box *box) {
  int32_t first = number_of(self, tile, NULL);
  for (int32_t t = 0; t < box->tile_rank; t++) {
    if (!tl_buffer_is_global(box->buffer))
      keep_whole(self, first + t, "it comes from a tile of the block, or goes to one");
    if (box->steps[t] != 1) keep_whole(self, first + t, "it is moved in steps");
  }
}

static void look_at_extract(finding *self, const tl_op *op) {
  tl_value *tile = tl_op_arg(op, TL_GROUP_EXTRACT_tile);
  tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  int32_t first = number_of(self, tile, NULL), loop = parallel ? number_of(self, NULL, parallel) : 0;
  for (uint32_t d = 0; d < tl_op_group_len(op, TL_GROUP_EXTRACT_index); d++) {
    const tl_value *index = tl_op_group_at(op, TL_GROUP_EXTRACT_index, d);
    bool is_own = parallel && !index->def && index->block == parallel->regions[0];
    if (is_own)
      join(self, first + (int32_t)d, loop + (int32_t)index->index);
    else
      keep_whole(self, first + (int32_t)d, "an element of it is named by more than the index of a loop");
  }
}

static void look_at_parallel(finding *self, tl_op *op) {
  int32_t loop = number_of(self, NULL, op), at = 0, rank = 0;
  const int64_t *maps = tl_op_ints(op, TL_ATTR_MAPS, NULL);
  tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  bool is_copy = tl_op_has(op, TL_ATTR_ASYNC) || tl_op_has(op, TL_ATTR_VIA);
  for (int32_t d = 0; d < rank && is_copy; d++) keep_whole(self, loop + d, "a loop is a copy of its author's");
  for (uint32_t r = 0; r < op->num_results; r++) {
    int32_t first = number_of(self, tl_op_result(op, r), NULL);
    bool walked[TL_MAX_RANK] = {false};
    for (int32_t d = 0; d < tl_op_result(op, r)->type->rank; d++, at++) {
      int32_t by = maps ? (int32_t)maps[at] : d;
      join(self, first + d, loop + by);
      walked[by] = true;
    }
    // Several iterations make one element.
    for (int32_t d = 0; d < rank; d++)
      if (!walked[d]) keep_whole(self, loop + d, "what a loop makes of it has it no more");
  }
}

// What of a reduction stands in the way of parts along its axes: each block's result must be one that blocks can
// exchange.
static const char *reduction_obstacle(const finding *self, const tl_op *op) {
  enum { WORD_BITS = 32 };
  if (op->parent->parent != self->kernel) return "it is reduced in a loop or under a condition";
  int32_t num_axes = 0;
  tl_op_ints(op, TL_ATTR_AXES, &num_axes);
  if (op->num_results > 1 && num_axes > 1) return "the place of an extreme is asked for among several dims";
  const tl_type *type = tl_op_result(op, 0)->type;
  if (tl_dtype_bits(type->dtype) < WORD_BITS || type->rank == TL_MAX_RANK) return "blocks do not exchange such results";
  return NULL;
}

static void look_at_reduce(finding *self, tl_op *op) {
  tl_value *source = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0);
  if (!is_tile(source) || op->num_results == 0) return;
  bool reduced[TL_MAX_RANK];
  int32_t sources[TL_MAX_RANK];
  tl_reduce_axes(op, reduced);
  tl_reduced_sources(source->type->rank, reduced, tl_op_has(op, TL_ATTR_KEEPDIMS), sources);
  const char *why = reduction_obstacle(self, op);
  int32_t first = number_of(self, source, NULL);
  for (int32_t d = 0; d < source->type->rank; d++)
    if (reduced[d] && why) keep_whole(self, first + d, why);
  if (tl_op_group_len(op, TL_GROUP_REDUCE_src) > 1)
    join_tiles(self, source, tl_op_group_at(op, TL_GROUP_REDUCE_src, 1));
  for (uint32_t r = 0; r < op->num_results; r++) {
    int32_t result = number_of(self, tl_op_result(op, r), NULL);
    int32_t rank = tl_op_result(op, r)->type->rank;
    for (int32_t d = 0; d < rank; d++)
      if (sources[d] >= 0 && d < source->type->rank) join(self, result + d, first + sources[d]);
  }
}

static void look_at_scan(finding *self, tl_op *op) {
  tl_value *source = tl_op_arg(op, TL_GROUP_SCAN_src);
  if (!is_tile(source) || op->num_results == 0) return;
  join_tiles(self, source, tl_op_result(op, 0));
  int64_t axis = tl_op_ints(op, TL_ATTR_AXES, NULL)[0];
  keep_whole(self, number_of(self, source, NULL) + (int32_t)axis, "a scan runs along it");
}

static void look_at(tl_op *op, void *user) {
  finding *self = user;
  tl_box box;
  switch (op->code) {
    case TL_OP_TILE_LOAD:
      box = tl_box_source(op);
      look_at_box(self, tl_op_result(op, 0), &box);
      return;
    case TL_OP_TILE_STORE:
      box = tl_box_destination(op);
      look_at_box(self, tl_op_arg(op, TL_GROUP_TILE_STORE_tile), &box);
      return;
    case TL_OP_SPLAT:
    case TL_OP_UNDEF_TILE:
      number_of(self, tl_op_result(op, 0), NULL);
      return;
    case TL_OP_EXTRACT:
      look_at_extract(self, op);
      return;
    case TL_OP_PARALLEL:
      look_at_parallel(self, op);
      return;
    case TL_OP_REDUCE:
      look_at_reduce(self, op);
      return;
    case TL_OP_SCAN:
      look_at_scan(self, op);
      return;
    default:
      break;
  }
  for (uint32_t i = 0; i < op->num_operands; i++)
    keep_tile_whole(self, tl_op_operand(op, i), "a statement takes the whole of it");
  for (uint32_t i = 0; i < op->num_results; i++)
    keep_tile_whole(self, tl_op_result(op, i), "a statement makes the whole of it");
}

// A block with a part of both of a tile's dims would have a corner of the tile.
static void keep_squares_whole(finding *self) {
  for (size_t i = 0; i < self->dims->nodes.len; i++) {
    const tl_spread_node *node = &self->dims->nodes.items[i];
    for (int32_t a = 0; a < node->rank; a++)
      for (int32_t b = a + 1; b < node->rank; b++)
        if (stand_in(self->dims, node->first + a) == stand_in(self->dims, node->first + b))
          keep_whole(self, node->first + a, "two dims of a tile are walked as one");
  }
}

void tl_spread_find(tl_op *kernel, tl_spread_dims *dims) {
  finding self = {.kernel = kernel, .dims = dims};
  tl_walk(kernel, look_at, &self);
  keep_squares_whole(&self);
}

void tl_spread_fini(tl_spread_dims *dims) {
  tl_vec_fini(&dims->nodes);
  tl_vec_fini(&dims->dims);
}

int32_t tl_spread_class(tl_spread_dims *dims, const tl_value *tile, const tl_op *parallel, int32_t dim) {
  const tl_spread_node *node = find_node(dims, tile, parallel);
  return node ? stand_in(dims, node->first + dim) : -1;
}

const char *tl_spread_obstacle(tl_spread_dims *dims, int32_t class_of) {
  return dims->dims.items[stand_in(dims, class_of)].obstacle;
}
