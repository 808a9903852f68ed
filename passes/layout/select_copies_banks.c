// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bank conflicts of a shared tile's accesses under a layout, counted for the first registers of a warp.
#include <string.h>

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

// Shared memory has 32 banks of 4 bytes. Accesses of 8 and 16 bytes go by halves and quarters of a warp.
enum { BANKS = 32, BANK_BYTES = 4, LANES = 32 };

// Passes over the banks for one access of `bytes` bytes at `offsets` of each lane.
static int passes_of(const int64_t *offsets, int32_t bytes) {
  int32_t lanes = bytes > 8 ? LANES / 4 : bytes > 4 ? LANES / 2 : LANES, words = bytes > 4 ? bytes / BANK_BYTES : 1;
  int total = 0;
  for (int32_t first = 0; first < LANES; first += lanes) {
    int64_t seen[LANES];
    int32_t num_seen = 0;
    int most = 0, count[BANKS] = {0};
    for (int32_t i = 0; i < lanes * words; i++) {
      int64_t word = offsets[first + i / words] / BANK_BYTES + i % words;
      bool known = false;
      for (int32_t s = 0; s < num_seen; s++) known |= seen[s] == word;
      if (known) continue;
      seen[num_seen++] = word;
      if (++count[word % BANKS] > most) most = count[word % BANKS];
    }
    total += most;
  }
  return total;
}

static void shape_of(const tl_type *type, int32_t *out_shape) {
  for (int32_t d = 0; d < type->rank; d++) out_shape[d] = (int32_t)type->dims[d];
}

static int tile_passes(const tl_layout *tile, const tl_type *type, const tl_shared_layout *shared) {
  int32_t shape[TL_MAX_RANK], coord[TL_MAX_RANK];
  int64_t offsets[LANES];
  shape_of(type, shape);
  for (int32_t lane = 0; lane < LANES; lane++) {
    tl_layout_coord(tile, 0, lane, 0, coord);
    offsets[lane] = tl_shared_layout_offset(shared, shape, type->rank, tl_dtype_bits(type->dtype), coord);
  }
  return passes_of(offsets, BANK_BYTES);
}

// ---- elements in parallels

// The value of an index for the iteration `at`; what varies outside of the parallel counts as 0. False when it cannot
// be told.
static bool evaluate(const tl_value *value, const tl_op *parallel, const int32_t *at, int depth, int64_t *out) {
  *out = 0;
  if (value->block == parallel->regions[0]) {
    *out = at[value->index];
    return true;
  }
  if (tl_value_const_int(value, out)) return true;
  const tl_op *op = value->def;
  if (!tl_op_is_inside(op ? op : value->block->parent, parallel)) return true;
  int64_t a = 0, b = 0;
  if (depth == 0 || !op || op->num_operands != 2 || value->type->kind != TL_TYPE_INDEX) return false;
  if (!evaluate(tl_op_operand(op, 0), parallel, at, depth - 1, &a)) return false;
  if (!evaluate(tl_op_operand(op, 1), parallel, at, depth - 1, &b)) return false;
  return tl_fold_index(op->code, a, b, out);
}

static int element_passes(const tl_op *access, const tl_op *parallel, const tl_shared_layout *shared) {
  enum { DEPTH = 6 };
  const tl_type *type = tl_element_buffer(access)->type;
  const tl_layout *layout = tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
  int32_t shape[TL_MAX_RANK], at[TL_MAX_RANK], coord[TL_MAX_RANK], bits = tl_dtype_bits(type->dtype);
  int64_t offsets[LANES];
  int32_t held = tl_parallel_vector(parallel), vec = tl_element_vector(access, parallel, held, false);
  tl_shifted_load shifted = tl_element_shifted(access, parallel, held);
  if (shifted.shift > 0) vec = shifted.vec;
  if (vec == 1) vec = tl_element_packed(access, parallel, held).vec;
  shape_of(type, shape);
  for (int32_t lane = 0; lane < LANES; lane++) {
    tl_layout_coord(layout, 0, lane, 0, at);
    for (int32_t d = 0; d < type->rank; d++) {
      int64_t index = 0;
      if (!evaluate(tl_element_index(access, (uint32_t)d), parallel, at, DEPTH, &index)) return 0;
      if (d == type->rank - 1 && shifted.shift > 0) index -= shifted.shift;
      if (index < 0 || index >= shape[d]) return 0;
      coord[d] = (int32_t)index;
    }
    offsets[lane] = tl_shared_layout_offset(shared, shape, type->rank, bits, coord);
  }
  return passes_of(offsets, vec * bits / 8);
}

int tl_bank_conflicts(const tl_op *access, const tl_op *parallel) {
  const tl_value *buffer = tl_element_buffer(access);
  const tl_op *alloc = tl_buffer_root(buffer);
  const tl_attr *shared = alloc && &alloc->results[0] == buffer ? tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT) : NULL;
  if (!shared || !tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT)) return 0;
  int32_t bytes = (int32_t)tl_op_int(access, TL_ATTR_VEC, 1) * tl_dtype_bits(buffer->type->dtype) / 8;
  int least = bytes > 8 ? 4 : bytes > 4 ? 2 : 1;
  return element_passes(access, parallel, shared->v.shared) / least;
}

// ---- copies

// Passes for the accesses of one side of a copy to its first `vec` elements.
static int side_passes(const tl_box *box, const tl_copy_shape *shape, int32_t width, const tl_shared_layout *shared) {
  const tl_type *type = box->buffer->type;
  int32_t tile[TL_MAX_RANK], at[TL_MAX_RANK], coord[TL_MAX_RANK], bits = tl_dtype_bits(type->dtype);
  int64_t offsets[LANES];
  shape_of(type, tile);
  for (int32_t lane = 0; lane < LANES; lane++) {
    tl_layout_coord(&shape->layout, 0, lane, 0, at);
    for (int32_t d = 0; d < type->rank; d++) {
      int64_t index = 0;
      tl_value_const_int(tl_box_offset(box, d), &index);
      if (box->tile_dim[d] >= 0) index += at[box->tile_dim[d]] * box->steps[box->tile_dim[d]];
      coord[d] = (int32_t)(index < 0 || index >= tile[d] ? 0 : index);
    }
    offsets[lane] = tl_shared_layout_offset(shared, tile, type->rank, bits, coord);
  }
  return passes_of(offsets, width * bits / 8) * (shape->vec / width);
}

static int copy_passes(tl_op *copy, const tl_op *alloc, const tl_shared_layout *shared) {
  tl_box source = tl_box_source(copy), destination = tl_box_destination(copy);
  bool reads = source.buffer == &alloc->results[0], writes = destination.buffer == &alloc->results[0];
  if (!reads && !writes) return 0;
  tl_copy_shape shape = tl_copy_shape_of(copy, tl_op_threads(copy), false);
  return (reads ? side_passes(&source, &shape, shape.src_vec, shared) : 0) +
         (writes ? side_passes(&destination, &shape, shape.dst_vec, shared) : 0);
}

// ---- all accesses of a tile

typedef struct tile_use {
  const tl_op *alloc;
  const tl_shared_layout *shared;
  int passes;
} tile_use;

static void count_op(tl_op *op, void *user) {
  tile_use *use = user;
  const tl_type *type = use->alloc->results[0].type;
  if (op->code == TL_OP_COPY) {
    use->passes += copy_passes(op, use->alloc, use->shared);
    return;
  }
  if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) {
    const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
    bool own = tl_element_buffer(op) == &use->alloc->results[0];
    if (own && parallel && tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT))
      use->passes += element_passes(op, parallel, use->shared);
    return;
  }
  if (op->code != TL_OP_TILE_LOAD && op->code != TL_OP_TILE_STORE) return;
  bool is_load = op->code == TL_OP_TILE_LOAD;
  const tl_value *tile = is_load ? tl_op_result(op, 0) : tl_op_arg(op, TL_GROUP_TILE_STORE_tile);
  tl_box box = is_load ? tl_box_source(op) : tl_box_destination(op);
  if (!tile->type->layout || tl_buffer_root(box.buffer) != use->alloc || box.tile_rank != type->rank) return;
  for (int32_t d = 0; d < box.tile_rank; d++) {
    if (box.dims[d] != d) return;
  }
  use->passes += tile_passes(tile->type->layout, type, use->shared);
}

int tl_bank_passes(tl_op *kernel, const tl_op *alloc, const tl_shared_layout *shared) {
  tile_use use = {.alloc = alloc, .shared = shared};
  tl_walk(kernel, count_op, &use);
  return use.passes;
}
