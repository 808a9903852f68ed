// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// spread-rows: rows of which a multiprocessor has no room for two go to the blocks of a cluster, a part to each.
//
//   kernel                                            kernel {cluster = [1, 4, 1]}
//   %b = grid %M                                      %b, %part = grid %M, 4        %first = %part * 32064
//   %x = tile_load %X[%b, 0]: tile<1x128256>     →    %x = tile_load %X[%b, %first]: tile<1x32064>
//   %m = reduce %x {max}                              %own = reduce %x {max}; the blocks exchange it: %m = reduce {max}
//   %e = parallel { exp(%x - %m) }                    %e = parallel { exp(%x - %m) }
//   tile_store %e -> %Y[%b, 0]                        tile_store %e -> %Y[%b, %first]
//
// Such a row can be held neither in the registers of one of two blocks nor in their shared memory, so that a block
// reads it again for each of its passes, keeps it in local memory, or is alone on its multiprocessor. What depends on
// the row as a whole is what its reductions give: of those every block leaves its own in shared memory, the cluster
// meets, and each block combines all of them in the same order, so that all blocks have the same bits. What is no part
// of the row is computed by every block and stored by the first.
//
// A block whose memory others read stays until they are done: the lowering ends a kernel that has a cluster_barrier
// with another one.
//
// Needs promote-fragments (tiles are values); before stage-reads, which may bring each block's part to shared memory.
// Kernels with products, loops around tiles, shared tiles or copies of their own keep their blocks.
#include "passes/layout/spread_rows.h"

#include "ir/index/affine.h"
#include "ir/target.h"
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/stage_reads.h"
#include "passes/manager/passes.h"
#include "passes/schedule/cost.h"
#include "passes/tile/loop_rewrite.h"

enum {
  FIRST_SM = 90,         // that has clusters
  MIN_BLOCKS = 2,        // on a multiprocessor: while one computes, the other's loads are on their way
  OTHER_REGISTERS = 32,  // beside the tile: addresses and values in flight
  VECTOR_BITS = 128,
  WORD_BITS = 32
};

typedef struct spreading {
  tl_pass_context *context;
  tl_op *kernel, *grid;
  tl_op *row;    // the TILE_LOAD of the most bytes
  int64_t held;  // words of the largest tile
  int32_t threads;
  bool has_orders;  // with other blocks, which are about all that a block did
  const char *obstacle;
  tl_spread_dims dims;
  int32_t along;  // the class of the row's dim that is spread
  int64_t parts, share;
  // What the rewritten kernel has.
  tl_value *part, *first, *is_first;
} spreading;

// ---- what there is

static int64_t bytes_of(const tl_op *load) {
  const tl_value *source = tl_op_arg(load, TL_GROUP_TILE_LOAD_src);
  return (int64_t)tl_dtype_bytes(source->type->dtype, (uint64_t)tl_type_num_elements(tl_op_result(load, 0)->type));
}

static void look_at(tl_op *op, void *user) {
  spreading *self = user;
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].type->kind != TL_TYPE_TILE) continue;
    const tl_type *type = op->results[i].type;
    int64_t words = tl_type_num_elements(type) * (tl_dtype_bits(type->dtype) > WORD_BITS ? 2 : 1);
    if (words > self->held) self->held = words;
  }
  if (op->code == TL_OP_TILE_LOAD && (!self->row || bytes_of(op) > bytes_of(self->row))) self->row = op;
  if (op->code == TL_OP_GRID) self->grid = op;
  self->has_orders |= (tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC) || tl_op_has(op, TL_ATTR_MEMORY_ORDER);
}

// What of a statement in the kernel's own block keeps it from being run by several blocks, a part by each.
static const char *statement_obstacle(const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  switch (op->code) {
    case TL_OP_PARALLEL:
      for (uint32_t r = 0; r < op->num_results; r++)
        if (tl_type_num_elements(op->results[r].type) < 0) return "a tile has no known size";
      return NULL;
    case TL_OP_ALLOC:
      return tl_buffer_is_shared(tl_op_result(op, 0)) ? "the kernel has shared tiles of its own" : NULL;
    case TL_OP_FOR:
      return "the kernel has loops around its tiles";
    case TL_OP_IF:
      return "the kernel has conditions around its tiles";
    case TL_OP_TILE_LOAD:
    case TL_OP_TILE_STORE:
    case TL_OP_REDUCE:
    case TL_OP_SCAN:
    case TL_OP_LOAD:
    case TL_OP_STORE:
    case TL_OP_ATOMIC:
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
    case TL_OP_TENSOR:
    case TL_OP_DYN_PARAM:
    case TL_OP_SCALAR_ARG:
    case TL_OP_GRID:
    case TL_OP_REQUIRE:
    case TL_OP_YIELD:
      return NULL;
    default:
      return (info->flags & TL_OPFLAG_PURE) && !(info->flags & TL_OPFLAG_ONCE)
                 ? NULL
                 : "the kernel has products, copies or orders of its own";
  }
}

static const char *kernel_obstacle(const spreading *self) {
  const tl_op *kernel = self->kernel;
  if (self->context->target->sm < FIRST_SM) return "the target has no clusters of blocks";
  if (tl_op_has(kernel, TL_ATTR_CLUSTER)) return "its author has clusters of his own";
  if (tl_op_int(kernel, TL_ATTR_PERSISTENT, TL_SWITCH_OFF) == TL_SWITCH_ON) return "the kernel is persistent";
  if (!self->grid || self->grid->num_results >= TL_MAX_CLUSTER_DIMS) return "the grid has no dim left for them";
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    const char *why = statement_obstacle(op);
    if (why) return why;
  }
  return self->has_orders ? "what its blocks do is ordered with others" : NULL;
}

// ---- deciding

static int64_t registers_of(const spreading *self, int64_t parts) {
  int64_t words = (self->held + parts - 1) / parts;
  return (words + self->threads - 1) / self->threads + OTHER_REGISTERS;
}

static bool registers_fit(const spreading *self, int64_t parts, int32_t blocks) {
  int64_t registers = registers_of(self, parts);
  if (registers > TL_MAX_REGISTERS_PER_THREAD || registers * self->threads * blocks > TL_REGISTERS_PER_SM) return false;
  return tl_cost_resident_blocks(self->context->target, self->threads, (int32_t)registers, 0) >= blocks;
}

// Whether two blocks that each have one part fit on a multiprocessor: the parts in their registers, or, as far as
// stage-reads takes them, in their shared memory.
static bool has_room_for_two(const spreading *self, int64_t parts) {
  if (registers_fit(self, parts, MIN_BLOCKS)) return true;
  int64_t bytes = (bytes_of(self->row) + parts - 1) / parts;
  return tl_can_recompute(self->row) &&
         tl_cost_resident_blocks(self->context->target, self->threads, OTHER_REGISTERS, bytes) >= MIN_BLOCKS;
}

static bool is_too_large_for_shared(const spreading *self) {
  return tl_cost_resident_blocks(self->context->target, self->threads, OTHER_REGISTERS, bytes_of(self->row)) <
         MIN_BLOCKS;
}

// Whether so many parts are equal and, along rows in memory, whole vectors.
static bool divides(const tl_box *box, int32_t dim, int64_t parts) {
  if (box->extents[dim] % parts != 0) return false;
  bool is_row = box->dims[dim] == box->buffer_rank - 1;
  return !is_row || box->extents[dim] / parts * tl_dtype_bits(box->buffer->type->dtype) % VECTOR_BITS == 0;
}

// Blocks on a multiprocessor that have one part each in shared memory.
static int32_t staged_blocks(const spreading *self, int64_t parts) {
  int64_t bytes = (bytes_of(self->row) + parts - 1) / parts;
  return tl_cost_resident_blocks(self->context->target, self->threads, OTHER_REGISTERS, bytes);
}

// Blocks of the launch with so many parts, as far as that is known.
static int64_t count_blocks(const spreading *self, int64_t parts) {
  int64_t blocks = parts, extent;
  for (uint32_t d = 0; d < self->grid->num_results; d++)
    if (!tl_value_const_int(tl_op_group_at(self->grid, TL_GROUP_GRID_extents, d), &extent) ||
        __builtin_mul_overflow(blocks, extent, &blocks))
      return INT64_MAX;
  return blocks;
}

// Of blocks with many short rows each four or more to a multiprocessor are faster than two (docs/decisions/0043), where
// there are more of them than run at once.
static int64_t divide_on(const spreading *self, const tl_box *box, int32_t dim, int64_t parts) {
  while (parts * 2 <= TL_SPREAD_MAX_BLOCKS && divides(box, dim, parts * 2) && tl_spread_has_short_rows(self->row) &&
         staged_blocks(self, parts) < TL_SPREAD_ENOUGH &&
         count_blocks(self, parts * 2) > (int64_t)staged_blocks(self, parts * 2) * TL_COST_MULTIPROCESSORS)
    parts *= 2;
  return parts;
}

// The number of parts for the row's dim; 1: none is good.
static int64_t choose_parts(const spreading *self, const tl_box *box, int32_t dim) {
  int64_t largest = 1;
  for (int64_t parts = 2; parts <= TL_SPREAD_MAX_BLOCKS; parts *= 2) {
    if (!divides(box, dim, parts)) continue;
    if (has_room_for_two(self, parts)) return divide_on(self, box, dim, parts);
    largest = parts;
  }
  // One block on a multiprocessor that holds its part beats passes that each read the row.
  return registers_fit(self, largest, 1) ? largest : 1;
}

bool tl_spread_has_short_rows(tl_op *load) {
  enum { LINE_BYTES = 128 };
  tl_box box = tl_box_source(load);
  int32_t t = tl_box_contiguous_dim(&box);
  if (t < 0 || box.tile_rank < 2 || !tl_can_recompute(load)) return false;
  return (int64_t)tl_dtype_bytes(box.buffer->type->dtype, (uint64_t)box.extents[t]) <= LINE_BYTES;
}

// The row's longest dim that blocks can have parts of.
static void choose(spreading *self) {
  tl_box box = tl_box_source(self->row);
  const tl_value *tile = tl_op_result(self->row, 0);
  int64_t longest = 1;
  const char *why = NULL;
  for (int32_t t = 0; t < box.tile_rank; t++) {
    int32_t along = tl_spread_class(&self->dims, tile, NULL, t);
    if (box.extents[t] <= longest) continue;
    const char *obstacle = tl_spread_obstacle(&self->dims, along);
    int64_t parts = obstacle ? 1 : choose_parts(self, &box, t);
    if (parts == 1 && (!why || obstacle))
      why = obstacle ? obstacle : "no 2, 4 or 8 blocks have room for equal parts of it";
    if (parts == 1) continue;
    longest = box.extents[t];
    self->along = along;
    self->parts = parts;
    self->share = longest / parts;
  }
  self->obstacle = self->parts > 1 ? NULL : why ? why : "it has one element";
}

// Whether dim `dim` of the tile, or of the parallel, is spread.
static bool is_spread(spreading *self, const tl_value *tile, const tl_op *parallel, int32_t dim) {
  return tl_spread_class(&self->dims, tile, parallel, dim) == self->along;
}

static bool tile_is_spread(spreading *self, const tl_value *tile) {
  for (int32_t d = 0; d < tile->type->rank; d++)
    if (is_spread(self, tile, NULL, d)) return true;
  return false;
}

static bool parallel_is_spread(spreading *self, const tl_op *op) {
  int32_t rank = 0;
  tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  for (int32_t d = 0; d < rank; d++)
    if (is_spread(self, NULL, op, d)) return true;
  return false;
}

static bool writes_tensors(tl_op *op) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  bool found = false;
  for (size_t i = 0; i < effects.len; i++)
    found |= effects.items[i].kind != TL_EFFECT_READ && tl_buffer_is_global(effects.items[i].root);
  tl_vec_fini(&effects);
  return found;
}

static void look_for_notes(tl_op *op, void *user) {
  *(bool *)user |= op->code == TL_OP_PRINT || op->code == TL_OP_ASSERT;
}

// Whether others see that the statement runs.
static bool is_seen(tl_op *op) {
  bool notes = false;
  tl_walk(op, look_for_notes, &notes);
  return notes || writes_tensors(op);
}

// Whether every block would do all of what the statement does for others to see.
static bool is_for_one_block(spreading *self, tl_op *op) {
  switch (op->code) {
    case TL_OP_TILE_STORE:
      return !tile_is_spread(self, tl_op_arg(op, TL_GROUP_TILE_STORE_tile)) && writes_tensors(op);
    case TL_OP_PARALLEL:
      return !parallel_is_spread(self, op) && is_seen(op);
    case TL_OP_STORE:
    case TL_OP_ATOMIC:
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
      return true;
    default:
      return false;
  }
}

// What all blocks do is as much as what one block did: large tiles beside the row are no gain. And what one block alone
// does for others to see has no results that the others need.
static const char *rest_obstacle(spreading *self) {
  for (tl_op *op = self->kernel->regions[0]->first; op; op = op->next) {
    for (uint32_t r = 0; r < op->num_results; r++) {
      tl_value *result = tl_op_result(op, r);
      if (result->type->kind != TL_TYPE_TILE || tile_is_spread(self, result)) continue;
      if (tl_type_num_elements(result->type) > self->share) return "another tile that is as large is no part of it";
      if (is_for_one_block(self, op)) return "a loop stores and makes a tile that every block needs";
    }
    if (op->num_results > 0 && op->code == TL_OP_ATOMIC) return "every block needs what an atomic gives";
  }
  return NULL;
}

// ---- rewriting

static void set_dims(tl_module *module, tl_value *value, const int64_t *dims) {
  value->type = tl_type_tile(module, value->type->dtype, dims, value->type->rank, value->type->layout);
}

// The grid has a dim more: the parts of a row, whose blocks are a cluster.
static void extend_grid(spreading *self) {
  tl_module *module = self->context->module;
  tl_op *old = self->grid;
  uint32_t rank = old->num_results;
  tl_builder builder;
  tl_builder_before(&builder, module, old);
  builder.loc = old->loc;
  tl_value *extents[TL_MAX_CLUSTER_DIMS];
  const tl_type *types[TL_MAX_CLUSTER_DIMS];
  for (uint32_t d = 0; d <= rank; d++) types[d] = tl_type_index(module);
  for (uint32_t d = 0; d < rank; d++) extents[d] = tl_op_group_at(old, TL_GROUP_GRID_extents, d);
  extents[rank] = tl_build_index(&builder, self->parts);
  tl_op *grid = tl_build(&builder, TL_OP_GRID, (tl_group[]){{extents, rank + 1}}, types, rank + 1);
  tl_op_copy_attrs(module, grid, old);
  const char *names = tl_arena_printf(&self->context->scratch, "%s,part", tl_op_str(old, TL_ATTR_NAMES));
  tl_op_set_str(module, grid, TL_ATTR_NAMES, tl_str_from(names));
  for (uint32_t d = 0; d < rank; d++) {
    tl_op_result(grid, d)->name = tl_op_result(old, d)->name;
    tl_value_replace_uses(tl_op_result(old, d), tl_op_result(grid, d));
  }
  tl_op_erase(old);
  int64_t cluster[TL_MAX_CLUSTER_DIMS] = {1, 1, 1};
  cluster[rank] = self->parts;
  tl_op_set_ints(module, self->kernel, TL_ATTR_CLUSTER, cluster, TL_MAX_CLUSTER_DIMS);
  tl_builder_after(&builder, module, grid);
  self->grid = grid;
  self->part = tl_op_result(grid, rank);
  self->part->name = tl_module_intern(module, TL_STR("part"));
  self->first = tl_index_mul(&builder, self->part, tl_build_index(&builder, self->share));
  self->is_first = tl_build_cmp(&builder, TL_CMP_EQ, self->part, tl_build_index(&builder, 0));
}

// Every tile of the class has the share of a block in the place of the whole.
static void shrink_tiles(spreading *self) {
  for (size_t i = 0; i < self->dims.nodes.len; i++) {
    const tl_spread_node *node = &self->dims.nodes.items[i];
    if (!node->tile) continue;
    int64_t dims[TL_MAX_RANK];
    for (int32_t d = 0; d < node->rank; d++)
      dims[d] = is_spread(self, node->tile, NULL, d) ? self->share : node->tile->type->dims[d];
    set_dims(self->context->module, node->tile, dims);
  }
}

static void move_box(spreading *self, tl_op *op, const tl_value *tile, const tl_box *box) {
  tl_builder builder;
  tl_builder_before(&builder, self->context->module, op);
  tl_value *offsets[TL_MAX_RANK];
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int32_t t = box->tile_dim[d];
    offsets[d] = tl_box_offset(box, d);
    if (t >= 0 && is_spread(self, tile, NULL, t)) offsets[d] = tl_index_add(&builder, offsets[d], self->first);
  }
  tl_op_set_group(self->context->module, op, box->group_offsets, offsets, (uint32_t)box->buffer_rank);
}

// The loop's index is the place in the block's part, which its own elements of tiles are named by; everything else is
// about the place in the row.
static void move_parallel(spreading *self, tl_op *op) {
  tl_module *module = self->context->module;
  tl_block *body = op->regions[0];
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  int64_t shares[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    bool moves = is_spread(self, NULL, op, d);
    shares[d] = moves ? self->share : extents[d];
    if (!moves) continue;
    tl_builder builder;
    tl_builder_before(&builder, module, body->first);
    builder.loc = op->loc;
    tl_value *index = body->args[d], *place = tl_index_add(&builder, index, self->first);
    for (tl_use *use = index->uses, *next; use; use = next) {
      next = use->next;
      if (use->owner->code == TL_OP_EXTRACT || use->owner == place->def) continue;
      tl_op_set_operand(use->owner, (uint32_t)(use - use->owner->operands), place);
    }
  }
  tl_op_set_ints(module, op, TL_ATTR_EXTENTS, shares, rank);
}

// ---- reductions

static bool reduces_parts(spreading *self, const tl_op *op) {
  const tl_value *source = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0);
  int32_t len = 0;
  const int64_t *axes = tl_op_ints(op, TL_ATTR_AXES, &len);
  for (int32_t i = 0; i < len; i++)
    if (is_spread(self, source, NULL, (int32_t)axes[i])) return true;
  return false;
}

// ---- order

static void run_in_first(spreading *self, tl_op *op) {
  tl_module *module = self->context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  tl_op *branch = tl_build(&builder, TL_OP_IF, (tl_group[]){TL_GROUP_OF(self->is_first)}, NULL, 0);
  tl_op_set_unit(module, branch, TL_ATTR_UNIFORM);
  tl_op_move_to_end(op, branch->regions[0]);
  for (uint32_t r = 0; r < 2; r++) tl_region_yield(module, branch->regions[r], op->loc);
}

typedef struct touched {
  const tl_value *root;
  bool is_written;
} touched;

typedef TL_VEC(touched) touched_list;

// Whether the statement touches in global memory what one since the last meeting of the cluster wrote, or the other way
// round: that may be another block's now. Adds what it touches.
static bool meets_earlier(tl_op *op, touched_list *before) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  bool found = false;
  size_t len = before->len;
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    if (!tl_buffer_is_global(effect->root)) continue;
    touched one = {effect->root, effect->kind != TL_EFFECT_READ};
    for (size_t j = 0; j < len; j++)
      found |= before->items[j].root == one.root && (before->items[j].is_written || one.is_written);
    tl_vec_push(before, one);
  }
  if (found) {  // what came before is ordered
    for (size_t i = len; i < before->len; i++) before->items[i - len] = before->items[i];
    before->len -= len;
  }
  tl_vec_fini(&effects);
  return found;
}

static void order_statements(spreading *self) {
  touched_list before = {0};
  for (tl_op *op = self->kernel->regions[0]->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_CLUSTER_BARRIER) tl_vec_clear(&before);
    if (meets_earlier(op, &before)) {
      tl_builder builder;
      tl_builder_before(&builder, self->context->module, op);
      builder.loc = op->loc;
      tl_build(&builder, TL_OP_CLUSTER_BARRIER, NULL, NULL, 0);
    }
    if (is_for_one_block(self, op)) run_in_first(self, op);
  }
  tl_vec_fini(&before);
}

static void spread(spreading *self) {
  extend_grid(self);
  shrink_tiles(self);
  tl_spread_cluster cluster = {.context = self->context,
                               .kernel = self->kernel,
                               .across = self->grid->num_results - 1,
                               .blocks = self->parts,
                               .first = self->first};
  for (tl_op *op = self->kernel->regions[0]->first, *next; op; op = next) {
    next = op->next;
    tl_box box;
    switch (op->code) {
      case TL_OP_TILE_LOAD:
        box = tl_box_source(op);
        move_box(self, op, tl_op_result(op, 0), &box);
        break;
      case TL_OP_TILE_STORE:
        box = tl_box_destination(op);
        move_box(self, op, tl_op_arg(op, TL_GROUP_TILE_STORE_tile), &box);
        break;
      case TL_OP_PARALLEL:
        move_parallel(self, op);
        break;
      case TL_OP_REDUCE:
        if (reduces_parts(self, op)) tl_spread_exchange(&cluster, op);
        break;
      default:
        break;
    }
  }
}

// ---- kernels

static void remark(const spreading *self, const char *why) {
  tl_diags *diags = self->context->diags;
  const char *name = tl_buffer_name(tl_op_arg(self->row, TL_GROUP_TILE_LOAD_src));
  if (why)
    tl_diag_report(
        diags, TL_DIAG_REMARK_SPREAD, self->row->loc,
        "a multiprocessor has no room for two blocks with %lld bytes of '%s' each, and no cluster shares them: %s",
        (long long)bytes_of(self->row), name, why);
  else
    tl_diag_report(diags, TL_DIAG_REMARK_SPREAD, self->row->loc,
                   "%lld bytes of '%s' are spread over a cluster of %lld blocks, %lld elements along the row each",
                   (long long)bytes_of(self->row), name, (long long)self->parts, (long long)self->share);
}

// Looks at the kernel; false: no row of it is of memory.
static bool find_row(spreading *self) {
  tl_walk(self->kernel, look_at, self);
  return self->row && tl_buffer_is_global(tl_op_arg(self->row, TL_GROUP_TILE_LOAD_src));
}

static void decide(spreading *self) {
  self->obstacle = kernel_obstacle(self);
  if (self->obstacle) return;
  tl_spread_find(self->kernel, &self->dims);
  choose(self);
  if (!self->obstacle) self->obstacle = rest_obstacle(self);
}

static spreading begin(tl_pass_context *context, tl_op *kernel) {
  return (spreading){.context = context, .kernel = kernel, .threads = tl_op_threads(kernel), .along = -1, .parts = 1};
}

int64_t tl_spread_parts(tl_pass_context *context, tl_op *kernel, int32_t *out_resident) {
  spreading self = begin(context, kernel);
  *out_resident = TL_SPREAD_ENOUGH;
  if (!find_row(&self)) return 1;
  *out_resident = staged_blocks(&self, 1);
  if (has_room_for_two(&self, 1)) return 1;
  if (!is_too_large_for_shared(&self)) return 0;
  decide(&self);
  tl_spread_fini(&self.dims);
  *out_resident = staged_blocks(&self, self.parts);
  return self.obstacle ? 0 : self.parts;
}

static void spread_kernel(tl_pass_context *context, tl_op *kernel) {
  spreading self = begin(context, kernel);
  if (!find_row(&self) || has_room_for_two(&self, 1) || !is_too_large_for_shared(&self)) return;
  decide(&self);
  remark(&self, self.obstacle);
  if (!self.obstacle) {
    spread(&self);
    order_statements(&self);
  }
  tl_spread_fini(&self.dims);
}

tl_status tl_pass_spread_rows(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL && context->target) spread_kernel(context, op);
  }
  return TL_OK;
}
