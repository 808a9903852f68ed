// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What of a kernel differs between the blocks along a dim of its grid, and whether several of them can be one.
//
// The order in which blocks run is nobody's to rely on, so that they may run statement by statement side by side. What
// is refused is what the joined block would do in another way: statements that count blocks or wait for them, and
// tiles of which it is not known how they would have one dim more.
#include "passes/layout/join_blocks.h"

#include "ir/reduction.h"

// ---- values

bool tl_joining_varies(const tl_joining *self, tl_value *value) {
  return tl_value_map_get(&self->varied, value) == self->along;
}

static bool is_tile(const tl_value *value) {
  return value->type->kind == TL_TYPE_TILE;
}

static bool takes_varied(const tl_joining *self, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (tl_joining_varies(self, tl_op_operand(op, i))) return true;
  return false;
}

static void mark_results(tl_joining *self, tl_op *op) {
  for (uint32_t r = 0; r < op->num_results; r++) tl_value_map_set(&self->varied, tl_op_result(op, r), self->along);
}

// ---- places

bool tl_joining_can_split(const tl_value *buffer, int32_t dim, int64_t size) {
  int64_t stride, dense = 1, extent;
  if (!buffer->def || !tl_buffer_is_global(buffer) || buffer->type->rank == TL_MAX_RANK) return false;
  for (int32_t d = buffer->type->rank - 1; d >= 0; d--) {
    tl_value *value = tl_buffer_dim_value(buffer, d);
    extent = buffer->type->dims[d];
    bool is_known = value ? tl_value_const_int(value, &extent) : extent >= 0;
    if (buffer->def->code == TL_OP_TENSOR &&
        (!tl_value_const_int(tl_op_group_at(buffer->def, TL_GROUP_TENSOR_strides, (uint32_t)d), &stride) ||
         stride != dense))
      return false;
    if (d == dim && (!is_known || extent % size != 0)) return false;
    if (d > 0 && (!is_known || __builtin_mul_overflow(dense, extent, &dense))) return false;
  }
  return buffer->def->code == TL_OP_TENSOR || buffer->def->code == TL_OP_VIEW;
}

// The subscripts of a buffer, from which on a block's part reaches `spans[d]` elements.
static const char *find_part(const tl_joining *self, const tl_value *buffer, const tl_affine *index,
                             const int64_t *spans, tl_block_part *out) {
  *out = (tl_block_part){.dim = -1};
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    if (!index[d].valid) return "a place in memory is no sum";
    for (int32_t i = 0; i < index[d].num_terms; i++) {
      tl_value *symbol = index[d].terms[i].symbol;
      if (symbol != self->along && tl_joining_varies(self, symbol)) return "a place in memory is no sum";
      if (symbol != self->along) continue;
      if (out->dim >= 0) return "blocks differ along two dims of a tensor";
      *out = (tl_block_part){.dim = d, .size = index[d].terms[i].coefficient};
    }
  }
  if (out->dim < 0) return "blocks have the same part of a tensor";
  if (out->size < 1) return "blocks go backwards through a tensor";
  out->first = (tl_affine){.valid = true};
  tl_affine rest = index[out->dim];
  for (int32_t i = 0; i < rest.num_terms; i++) {
    if (rest.terms[i].coefficient % out->size != 0) return "a block's part begins between two of the others' parts";
    out->first.terms[out->first.num_terms] = rest.terms[i];
    out->first.terms[out->first.num_terms++].coefficient = rest.terms[i].coefficient / out->size;
  }
  out->inside = (rest.constant % out->size + out->size) % out->size;
  out->first.constant = (rest.constant - out->inside) / out->size;
  if (spans[out->dim] > out->size - out->inside) return "parts of neighbouring blocks overlap";
  if (!tl_joining_can_split(buffer, out->dim, out->size)) return "a tensor is no whole number of parts without gaps";
  return NULL;
}

const char *tl_joining_part_of_box(const tl_joining *self, const tl_box *box, tl_block_part *out) {
  tl_affine index[TL_MAX_RANK];
  int64_t spans[TL_MAX_RANK], lo;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    index[d] = tl_affine_of(tl_box_offset(box, d));
    tl_box_span(box, d, &lo, &spans[d]);
    spans[d]++;
    if (tl_box_limit(box, d)) return "a copy has limits of its own";
  }
  const char *why = find_part(self, box->buffer, index, spans, out);
  if (why) return why;
  int32_t t = box->tile_dim[out->dim];
  if (t >= 0 && box->steps[t] != 1) return "a copy moves in steps";
  return tl_box_check(box, out->dim) ? "a block's part may lie beyond the tensor" : NULL;
}

static const char *box_obstacle(const tl_joining *self, const tl_box *box) {
  tl_block_part part;
  return tl_joining_part_of_box(self, box, &part);
}

static bool offsets_vary(const tl_joining *self, const tl_box *box) {
  for (int32_t d = 0; d < box->buffer_rank; d++)
    if (tl_joining_varies(self, tl_box_offset(box, d))) return true;
  return false;
}

// ---- statements

// Numbers of threads and blocks as the author sees them.
static bool counts_threads(const tl_op *op) {
  return op->code == TL_OP_THREAD_ID || op->code == TL_OP_LANE_ID || op->code == TL_OP_WARP_ID ||
         op->code == TL_OP_BLOCK_ID || op->code == TL_OP_NUM_BLOCKS;
}

typedef struct inside {
  const tl_joining *joining;
  const tl_op *parallel;
  bool varies;
  const char *obstacle;
} inside;

static void look_inside(tl_op *op, void *user) {
  inside *self = user;
  if (op == self->parallel || self->obstacle) return;
  const tl_op_info *info = tl_op_info_of(op->code);
  self->varies |= takes_varied(self->joining, op);
  switch (op->code) {
    case TL_OP_STORE:
    case TL_OP_ATOMIC:
      self->varies |= !(tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL);
      break;
    case TL_OP_LOAD:
    case TL_OP_EXTRACT:
    case TL_OP_ALLOC:
    case TL_OP_IF:
    case TL_OP_FOR:
    case TL_OP_YIELD:
      break;
    default:
      if (!(info->flags & TL_OPFLAG_PURE) || counts_threads(op))
        self->obstacle = "a loop does more than to compute, load and store";
      break;
  }
  if ((info->flags & TL_OPFLAG_SYNC) || tl_op_has(op, TL_ATTR_MEMORY_ORDER))
    self->obstacle = "what its blocks do is ordered with others";
}

// A loop that others see the effect of is run for each block, whether its blocks differ or not.
static const char *look_at_parallel(tl_joining *self, tl_op *op) {
  inside found = {.joining = self, .parallel = op};
  int32_t rank = 0;
  tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  tl_walk(op, look_inside, &found);
  if (found.obstacle) return found.obstacle;
  if (!found.varies) return NULL;
  tl_vec_push(&self->loops, op);
  if (tl_op_has(op, TL_ATTR_ASYNC) || tl_op_has(op, TL_ATTR_VIA)) return "a loop is a copy of its author's";
  if (rank < 1 || rank == TL_MAX_RANK) return "a loop has no room for one more dim";
  if (tl_op_has(op, TL_ATTR_THREAD_LAYOUT)) return "layouts are chosen already";
  for (uint32_t r = 0; r < op->num_results; r++)
    if (tl_op_result(op, r)->type->rank < 1 || tl_op_result(op, r)->type->rank == TL_MAX_RANK)
      return "a tile has no room for one more dim";
  mark_results(self, op);
  return NULL;
}

static const char *look_at_load(tl_joining *self, tl_op *op) {
  tl_box box = tl_box_source(op);
  tl_value *pad = tl_op_arg(op, TL_GROUP_TILE_LOAD_pad);
  if (!offsets_vary(self, &box)) return takes_varied(self, op) ? "a copy depends on the block" : NULL;
  const char *why = box_obstacle(self, &box);
  if (why || (pad && tl_joining_varies(self, pad))) return why ? why : "a copy's padding depends on the block";
  if (box.tile_rank < 1 || box.tile_rank == TL_MAX_RANK) return "a tile has no room for one more dim";
  mark_results(self, op);
  return NULL;
}

static const char *look_at_store(tl_joining *self, tl_op *op) {
  tl_box box = tl_box_destination(op);
  bool moves = offsets_vary(self, &box), varies = tl_joining_varies(self, tl_op_arg(op, TL_GROUP_TILE_STORE_tile));
  if (moves != varies) return "blocks store what is the same, or in the same place";
  if (!moves) return takes_varied(self, op) ? "a copy depends on the block" : NULL;
  return box_obstacle(self, &box);
}

// Reductions and scans, whose sources differ, all or none.
static const char *look_at_reduction(tl_joining *self, tl_op *op) {
  if (!takes_varied(self, op)) return NULL;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (!tl_joining_varies(self, tl_op_operand(op, i)) || !is_tile(tl_op_operand(op, i)))
      return "a reduction takes a tile that differs and one that does not";
  if (tl_op_has(op, TL_ATTR_PARTIAL) || op->num_results == 0) return "a reduction has parts of its own";
  mark_results(self, op);
  return NULL;
}

static const char *look_at(tl_joining *self, tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  switch (op->code) {
    case TL_OP_TILE_LOAD:
      return look_at_load(self, op);
    case TL_OP_TILE_STORE:
      return look_at_store(self, op);
    case TL_OP_REDUCE:
    case TL_OP_SCAN:
      return look_at_reduction(self, op);
    case TL_OP_PARALLEL:
      return look_at_parallel(self, op);
    case TL_OP_ALLOC:
      return "the kernel has tiles in shared memory of its own";
    case TL_OP_FOR:
    case TL_OP_IF:
      return "the kernel has loops or conditions around its tiles";
    case TL_OP_LOAD:
      return takes_varied(self, op) ? "a block loads a number of its own" : NULL;
    case TL_OP_TENSOR:
    case TL_OP_DYN_PARAM:
    case TL_OP_SCALAR_ARG:
    case TL_OP_REQUIRE:
    case TL_OP_GRID:
    case TL_OP_YIELD:
      return NULL;
    default:
      break;
  }
  if (!(info->flags & TL_OPFLAG_PURE) || (info->flags & TL_OPFLAG_ONCE) || counts_threads(op))
    return "the kernel has products, copies, stores or orders around its tiles";
  if (!takes_varied(self, op)) return NULL;
  const tl_type *type = tl_op_result(op, 0)->type;
  if (type->kind != TL_TYPE_INDEX && type->kind != TL_TYPE_SCALAR) return "a tile or a view is made for each block";
  mark_results(self, op);
  return NULL;
}

bool tl_joining_is_for_each(const tl_joining *self, const tl_op *parallel) {
  for (size_t i = 0; i < self->loops.len; i++)
    if (self->loops.items[i] == parallel) return true;
  return false;
}

void tl_joining_fini(tl_joining *self) {
  tl_value_map_fini(&self->varied);
  tl_vec_fini(&self->loops);
}

const char *tl_joining_find(tl_joining *self) {
  const char *why = NULL;
  tl_value_map_set(&self->varied, self->along, self->along);
  for (tl_op *op = self->kernel->regions[0]->first; op && !why; op = op->next) why = look_at(self, op);
  return why;
}
