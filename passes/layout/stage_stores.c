// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// stage-stores: a tile whose layout would write global memory in pieces smaller than a sector goes there by way of a
// shared tile, so that every thread stores 16 bytes of a row and a warp stores whole rows.
//
//   tile_store %acc -> %C[…]  (bf16, accumulator layout: 4 bytes a thread, 16 in a row)
//   → %s = alloc "C_staged"; tile_store %acc -> %s; copy %s -> %C[…]
//
// Elements that a parallel stores are tiles, too, where they make up a box (stage_stores_elements.c).
// Only where the shared tile costs nothing: in the kernel's own body or a branch of it, and not larger than the other
// shared tiles, whose place it takes (plan-shared) behind a barrier after which they are no longer used. Needs
// infer-layouts.
#include "passes/layout/stage_stores.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/infer_layouts.h"
#include "passes/layout/select_copies.h"
#include "passes/schedule/cost.h"
#include "support/vec.h"

enum {
  SECTOR_BYTES = 32,  // what L2 and DRAM write at least
  VECTOR_BYTES = 16   // the widest store of one thread
};

// Bytes along `dim` that neighbouring lanes of a warp hold together.
static int64_t contiguous_bytes(const tl_layout *layout, int32_t dim, int64_t element_bytes) {
  int64_t run = tl_layout_vector(layout, dim);
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis == TL_AXIS_LANE && mode->dim == dim && mode->stride == run) run *= mode->size;
  }
  return run * element_bytes;
}

// Bytes of the kernel's shared tiles so far, in all their stages.
static int64_t planned_bytes(const tl_op *kernel) {
  const tl_attr *plan = tl_op_attr(kernel, TL_ATTR_PLAN);
  for (int32_t i = 0; plan && i < plan->v.dict.len; i++) {
    const tl_dict_entry *entry = &plan->v.dict.entries[i];
    if (tl_str_is(tl_str_from("shared"), entry->name)) return entry->i;
  }
  return 0;
}

// A store by TMA goes through a shared tile whatever that costs: its author demands it.
static bool is_by_tma(const tl_op *store, const tl_box *box) {
  return tl_op_int(store, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_TMA && tl_buffer_is_global(box->buffer);
}

// The kernel, or the role of the author, in whose body `op` stands, or in a branch of it: one around tile operations is
// the same for all threads. NULL: in a loop.
static const tl_op *body_around(const tl_op *op) {
  do op = op->parent->parent;
  while (op->code == TL_OP_IF);
  return op->code == TL_OP_KERNEL || op->code == TL_OP_ROLE ? op : NULL;
}

static bool has_room(const tl_pass_context *context, const tl_op *kernel, const tl_op *op, int64_t bytes) {
  const tl_op *body = body_around(op);
  // What roles of the author use no other tile takes the place of.
  bool in_role = body && body->code == TL_OP_ROLE;
  if (!body || (in_role && planned_bytes(kernel) + bytes > context->target->shared_max_bytes)) return false;
  return bytes >= (int64_t)tl_op_threads(op) * VECTOR_BYTES && bytes <= planned_bytes(kernel);
}

// Whether lanes handle rows of the tile one by one, in pieces of less than half of what a row has for a sector, and a
// shared tile leaves as many blocks on a multiprocessor as registers do: that is worth it without other shared tiles.
static bool is_row_by_row(const tl_pass_context *context, const tl_op *kernel, const tl_op *op, const tl_layout *layout,
                          int64_t element_bytes) {
  int32_t fast = layout->rank - 1, threads = tl_op_threads(op);
  int64_t row_bytes = layout->shape[fast] * element_bytes, bytes = element_bytes;
  for (int32_t d = 0; d < layout->rank; d++) bytes *= layout->shape[d];
  const tl_op *body = body_around(op);
  int64_t most = row_bytes < SECTOR_BYTES ? row_bytes : SECTOR_BYTES;
  if (layout->rank < 2 || !body || body->code != TL_OP_KERNEL || planned_bytes(kernel) > 0) return false;
  // A lane that holds a whole row reads it in powers of two all the same.
  int32_t vec = tl_layout_vector(layout, fast);
  int64_t piece = contiguous_bytes(layout, fast, element_bytes) / vec * (vec & -vec);
  if (piece * 2 >= most || bytes > context->target->shared_max_bytes) return false;
  int32_t registers = tl_layout_num_registers(layout) + TL_COST_STREAM_REGISTERS;
  if (registers > TL_MAX_REGISTERS_PER_THREAD) registers = TL_MAX_REGISTERS_PER_THREAD;
  return tl_cost_resident_blocks(context->target, threads, registers, bytes) >=
         tl_cost_resident_blocks(context->target, threads, registers, 0);
}

enum { MAX_STEPS = 4 };  // from what is stored back to what it is computed from

static bool is_filled_ahead(const tl_value *buffer) {
  for (const tl_use *use = buffer->uses; use && tl_buffer_is_shared(buffer); use = use->next) {
    if (use->owner->code == TL_OP_COPY && tl_op_has(use->owner, TL_ATTR_ASYNC)) return true;
  }
  return false;
}

// Whether a tile of the values that `op` computes is read from shared memory right there: in registers it would be held
// over the barrier before the staged tile is written, for which there may be no room (stage_reads.c).
static bool reads_shared_tile(const tl_op *op, int steps) {
  if (op->code == TL_OP_TILE_LOAD) return is_filled_ahead(tl_op_arg(op, TL_GROUP_TILE_LOAD_src));
  for (uint32_t r = 0; steps > 0 && op->code == TL_OP_PARALLEL && r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      if (inner->code == TL_OP_LOAD && is_filled_ahead(tl_element_buffer(inner))) return true;
      const tl_op *from = inner->code == TL_OP_EXTRACT ? tl_op_arg(inner, TL_GROUP_EXTRACT_tile)->def : NULL;
      if (from && from->num_results > 0 && from->results[0].type->rank > 1 && reads_shared_tile(from, steps - 1))
        return true;
    }
  }
  return false;
}

static bool is_load_worth_staging(const tl_pass_context *context, const tl_op *kernel, tl_op *load) {
  tl_box box = tl_box_source(load);
  const tl_type *tile = tl_op_result(load, 0)->type;
  int bits = tl_dtype_bits(box.buffer->type->dtype);
  if (!tl_buffer_is_global(box.buffer) || !tile->layout || bits < 8) return false;
  return tl_box_contiguous_dim(&box) == tile->rank - 1 && is_row_by_row(context, kernel, load, tile->layout, bits / 8);
}

static bool is_worth_staging(const tl_pass_context *context, const tl_op *kernel, const tl_op *store,
                             const tl_box *box) {
  const tl_type *tile = tl_op_arg(store, TL_GROUP_TILE_STORE_tile)->type;
  if (is_by_tma(store, box)) return true;
  const tl_op *from = tl_op_arg(store, TL_GROUP_TILE_STORE_tile)->def;
  if (from && reads_shared_tile(from, MAX_STEPS)) return false;
  if (!tl_buffer_is_global(box->buffer) || !tile->layout || tile->rank < 2) return false;
  int bits = tl_dtype_bits(box->buffer->type->dtype);
  int32_t fast = tl_box_contiguous_dim(box);
  if (bits < 8 || fast != tile->rank - 1) return false;
  int64_t element_bytes = bits / 8;
  if (is_row_by_row(context, kernel, store, tile->layout, element_bytes)) return true;
  if (contiguous_bytes(tile->layout, fast, element_bytes) >= SECTOR_BYTES) return false;
  if (tl_box_vector(box, (int32_t)(VECTOR_BYTES / element_bytes), true) * element_bytes < VECTOR_BYTES) return false;
  return has_room(context, kernel, store, tl_type_num_elements(tile) * element_bytes);
}

static bool is_scattered(const tl_pass_context *context, const tl_op *kernel, const tl_op *parallel,
                         const tl_value *buffer) {
  const tl_layout *layout = tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
  int bits = tl_dtype_bits(buffer->type->dtype);
  if (!layout || layout->rank < 2 || bits < 8 || reads_shared_tile(parallel, MAX_STEPS)) return false;
  int64_t elements = 1;
  for (int32_t d = 0; d < layout->rank; d++) elements *= layout->shape[d];
  if (is_row_by_row(context, kernel, parallel, layout, bits / 8)) return true;
  return contiguous_bytes(layout, layout->rank - 1, bits / 8) < SECTOR_BYTES &&
         has_room(context, kernel, parallel, elements * bits / 8);
}

// The destination of `store` becomes that of the copy.
static void copy_destination(tl_module *module, const tl_op *store, tl_op *copy) {
  static const tl_attr_key keys[] = {TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP, TL_ATTR_DST_CHECK, TL_ATTR_EVICT, TL_ATTR_VIA};
  for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
    const tl_attr *attr = tl_op_attr(store, keys[k]);
    if (attr) tl_op_set_attr(module, copy, attr);
  }
}

static void stage(tl_pass_context *context, tl_op *kernel, tl_op *store) {
  tl_module *module = context->module;
  tl_value *tile = tl_op_arg(store, TL_GROUP_TILE_STORE_tile), *dst = tl_op_arg(store, TL_GROUP_TILE_STORE_dst);
  int32_t rank = tile->type->rank;
  const tl_type *type = tl_type_tile(module, dst->type->dtype, tile->type->dims, rank, NULL);
  const char *name = tl_arena_printf(&context->scratch, "%s_staged", tl_buffer_name(dst));
  tl_value *staged = tl_scratch_alloc(context, kernel, type, name, store->loc);
  tl_builder builder;
  tl_builder_before(&builder, module, store);
  builder.loc = store->loc;
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
  tl_build_tile_store(&builder, tile, staged);

  tl_value *zeros[TL_MAX_RANK], *offsets[TL_MAX_RANK], *limits[TL_MAX_RANK];
  int64_t identity[TL_MAX_RANK], unchecked[TL_MAX_RANK] = {0};
  uint32_t num_offsets = tl_op_group_len(store, TL_GROUP_TILE_STORE_dst_offsets);
  uint32_t num_limits = tl_op_group_len(store, TL_GROUP_TILE_STORE_dst_limits);
  for (int32_t d = 0; d < rank; d++) {
    zeros[d] = tl_build_index(&builder, 0);
    identity[d] = d;
  }
  for (uint32_t d = 0; d < num_offsets; d++) offsets[d] = tl_op_group_at(store, TL_GROUP_TILE_STORE_dst_offsets, d);
  for (uint32_t d = 0; d < num_limits; d++) limits[d] = tl_op_group_at(store, TL_GROUP_TILE_STORE_dst_limits, d);
  tl_group groups[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(staged), {zeros, (uint32_t)rank}, TL_GROUP_EMPTY,
                                              TL_GROUP_OF(dst),    {offsets, num_offsets},  {limits, num_limits},
                                              TL_GROUP_EMPTY};
  tl_op *copy = tl_build(&builder, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(module, copy, TL_ATTR_EXTENTS, tile->type->dims, rank);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_DIMS, identity, rank);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_CHECK, unchecked, rank);
  copy_destination(module, store, copy);
  if (tl_is_tile_of_tma(context, kernel, staged->def)) {
    tl_shared_layout layout = tl_tma_layout(staged, false);
    tl_op_set_shared(module, staged->def, TL_ATTR_SHARED_LAYOUT, &layout);
  }
  int64_t row_bytes = (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)type->dims[rank - 1]);
  if ((row_bytes < SECTOR_BYTES || tl_copy_is_run(copy)) && !tl_is_tile_of_tma(context, kernel, staged->def)) {
    // Lanes go down rows of a few words, or the copy goes on from row to row: dense ones.
    tl_shared_layout layout = {.pitch_bytes = (int32_t)row_bytes};
    tl_op_set_shared(module, staged->def, TL_ATTR_SHARED_LAYOUT, &layout);
  }
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, store->loc,
                 "'%s' is brought into rows through shared memory before it is stored",
                 tile->name ? tile->name : "tile");
  tl_op_erase(store);
}

typedef struct stage_state {
  tl_pass_context *context;
  tl_op *kernel;
} stage_state;

static void visit(tl_op *op, void *user) {
  const stage_state *state = user;
  if (op->code == TL_OP_TILE_LOAD) {
    if (is_load_worth_staging(state->context, state->kernel, op)) tl_stage_load(state->context, state->kernel, op);
    return;
  }
  if (op->code != TL_OP_TILE_STORE) return;
  tl_box box = tl_box_destination(op);
  if (is_worth_staging(state->context, state->kernel, op, &box)) stage(state->context, state->kernel, op);
}

typedef TL_VEC(tl_op *) op_list;

static void collect_parallel(tl_op *op, void *user) {
  if (op->code == TL_OP_PARALLEL) tl_vec_push((op_list *)user, op);
}

tl_status tl_pass_stage_stores(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    stage_state state = {context, op};
    op_list parallels = {0};
    tl_walk(op, collect_parallel, &parallels);
    for (size_t i = 0; i < parallels.len; i++) tl_stores_as_tiles(context, op, parallels.items[i], is_scattered);
    tl_vec_fini(&parallels);
    tl_walk(op, visit, &state);
  }
  return TL_OK;
}
