// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// stage-reads: what a block reads more than once from a tensor comes to shared memory once, whole and ahead of its use.
//
//   for %n { tile_load %X[%b, %n * 4096] … }          copy %X[%b, 0] -> %X_stage async; async_commit; async_wait
//   for %n { tile_load %X[%b, %n * 4096] … }     →    for %n { tile_load %X_stage[0, %n * 4096] … }
//                                                     for %n { tile_load %X_stage[0, %n * 4096] … }
//
// Two cases gain. Loops that walk the same row of a tensor again, as above. And a tile that a block holds over
// block-wide steps in so many registers that only one block fits on a multiprocessor: nothing is in flight then while
// the block computes. Such a tile is read anew from the stage, and computed anew, for each op that needs it.
//
// Needs promote-fragments (tiles are values). Kernels with gemms and pipelined loops plan their own copies: of those
// only single elements are staged (stage_reads_elements.c).
#include "passes/layout/stage_reads.h"

#include <string.h>

#include "passes/layout/spread_rows.h"
#include "passes/schedule/cost.h"
#include "passes/tile/loop_rewrite.h"

enum {
  MIN_BYTES = 4096,        // smaller regions are found in the L1 cache again
  MIN_BLOCKS = 2,          // on a multiprocessor: while one computes, the other's copy is on its way
  MIN_PIECE_BYTES = 4,     // what one cp.async moves at least
  WHOLE_PIECE_BYTES = 16,  // rows of less come as one (align-rows)
  MIN_REGISTERS = 24,      // of a tile worth recomputing
  OTHER_REGISTERS = 32,    // addresses and values in flight
  BARE_REGISTERS = 12,     // without which no thread does (register_limit.c)
  STAGED_THREADS = 1536    // on a multiprocessor that are enough, where shared memory has room for more
};

typedef struct staging {
  tl_pass_context *context;
  tl_op *kernel;
  int32_t threads;
  int64_t shared_bytes;  // of tiles that exist already, and that warps will exchange through
  int64_t largest_tile;  // registers a thread of the largest tile value
  bool has_own_copies;   // gemms, pipelined loops or asynchronous copies
  tl_staged_regions regions;
} staging;

// ---- the kernel

static int64_t elements_a_thread(const staging *self, const tl_type *type) {
  return (tl_type_num_elements(type) + self->threads - 1) / self->threads;
}

// Shared memory through which warps will exchange what they reduced or scanned, at most: each warp's part of every
// element that is left, and the result once more.
static int64_t exchange_bytes(const staging *self, const tl_op *op) {
  int64_t bytes = 0;
  if (op->code != TL_OP_REDUCE && op->code != TL_OP_SCAN) return 0;
  for (uint32_t i = 0; i < op->num_results; i++) {
    const tl_type *type = op->results[i].type;
    int64_t parts = op->code == TL_OP_REDUCE ? self->threads / 32 + 1 : 2;
    bytes += parts * (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)tl_type_num_elements(type)) + 128;
  }
  return bytes;
}

static void look_at(tl_op *op, void *user) {
  staging *self = user;
  self->has_own_copies |= op->code == TL_OP_GEMM || op->code == TL_OP_RING || tl_op_has(op, TL_ATTR_PIPELINED) ||
                          tl_op_has(op, TL_ATTR_ASYNC);
  if (op->code == TL_OP_ALLOC && tl_buffer_is_shared(tl_op_result(op, 0))) {
    const tl_type *type = tl_op_result(op, 0)->type;
    self->shared_bytes += (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)tl_type_num_elements(type)) + 128;
  }
  self->shared_bytes += exchange_bytes(self, op);
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].type->kind != TL_TYPE_TILE) continue;
    int64_t registers = elements_a_thread(self, op->results[i].type);
    if (registers > self->largest_tile) self->largest_tile = registers;
  }
}

// ---- deciding

static int32_t resident(const staging *self, int64_t registers, int64_t bytes) {
  int64_t all = registers + OTHER_REGISTERS;
  if (all > TL_MAX_REGISTERS_PER_THREAD) all = TL_MAX_REGISTERS_PER_THREAD;
  return tl_cost_resident_blocks(self->context->target, self->threads, (int32_t)all, self->shared_bytes + bytes);
}

static bool is_reread(const tl_staged_region *region) {
  return region->loaded_bytes >= 2 * region->bytes;
}

// Whether holding the tile of the region's only load leaves room for one block only.
static bool is_held_dearly(const staging *self, const tl_staged_region *region) {
  if (region->loads.len != 1 || region->loads.items[0]->code != TL_OP_TILE_LOAD) return false;
  tl_op *load = region->loads.items[0];
  int64_t registers = elements_a_thread(self, tl_op_result(load, 0)->type);
  bool is_short = tl_op_has(self->kernel, TL_ATTR_CLUSTER) && tl_spread_has_short_rows(load);
  int32_t enough = is_short ? TL_SPREAD_ENOUGH : MIN_BLOCKS;
  return registers >= MIN_REGISTERS && resident(self, registers, 0) < enough && tl_can_recompute(load);
}

// Blocks for which there must be room: two, but for a tile that no block's registers have room for, if one has it in
// shared memory. The alternative is local memory, or none.
static int32_t blocks_wanted(const staging *self, const tl_staged_region *region, bool dear) {
  int64_t most = TL_REGISTERS_PER_SM / self->threads;
  if (most > TL_MAX_REGISTERS_PER_THREAD) most = TL_MAX_REGISTERS_PER_THREAD;
  bool can_hold = !dear || self->largest_tile + BARE_REGISTERS <= most;
  bool fits = self->shared_bytes + region->bytes <= self->context->target->shared_max_bytes;
  return can_hold || !fits ? MIN_BLOCKS : 1;
}

// ---- rewriting

// The load reads the stage, at the place that it has in the region. Where the copy tested the bounds it tests none.
static void redirect(staging *self, const tl_staged_region *region, tl_value *stage, tl_op *load) {
  tl_module *module = self->context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, load);
  bool is_tile = load->code == TL_OP_TILE_LOAD;
  tl_attr_key key = is_tile ? TL_ATTR_SRC_CHECK : TL_ATTR_CHECK;
  tl_box box = {0};
  if (is_tile) box = tl_box_source(load);
  uint32_t rank = (uint32_t)region->tensor->type->rank;
  tl_value *index[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    tl_affine form = tl_affine_of(is_tile ? tl_box_offset(&box, (int32_t)d) : tl_element_index(load, d));
    form = tl_affine_sub(&form, &region->base[d]);
    index[d] = tl_stage_build_sum(&builder, &form, form.constant - region->lo[d]);
    checks[d] = is_tile ? tl_box_check(&box, (int32_t)d) : tl_element_check(load, (int32_t)d);
    if (!tl_stage_is_fixed(region, (int32_t)d)) checks[d] = 0;
  }
  tl_op_set_group(module, load, is_tile ? TL_GROUP_TILE_LOAD_src : TL_GROUP_LOAD_buffer, &stage, 1);
  tl_op_set_group(module, load, is_tile ? TL_GROUP_TILE_LOAD_src_offsets : TL_GROUP_LOAD_index, index, rank);
  tl_op_set_ints(module, load, key, checks, (int32_t)rank);
}

// The op in the kernel's own block that `op` is, or is inside of.
static tl_op *statement_of(tl_op *op, const tl_op *kernel) {
  while (op->parent->parent != kernel) op = op->parent->parent;
  return op;
}

static void stage_region(staging *self, tl_staged_region *region, bool recompute) {
  tl_op *first = statement_of(region->loads.items[0], self->kernel);
  tl_value *stage = tl_stage_build_tile(self->context, self->kernel, region);
  tl_stage_parts parts = {.len = 1};
  if (tl_stage_piece_bytes(region) == WHOLE_PIECE_BYTES) parts = tl_stage_split(region, first);
  tl_stage_build_copy(self->context, region, &parts, stage, first);
  for (size_t i = 0; i < region->loads.len; i++) redirect(self, region, stage, region->loads.items[i]);
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_COPY, region->loads.items[0]->loc,
                 "'%s' comes to shared memory once, %lld bytes a block: %s", tl_buffer_name(region->tensor),
                 (long long)region->bytes,
                 recompute ? "in registers it would leave room for one block on a multiprocessor"
                           : "the block reads it more than once");
  if (recompute) first = tl_recompute(self->context->module, region->loads.items[0]);
  tl_stage_build_waits(self->context, &parts, first);
  self->shared_bytes += region->bytes;
  for (tl_use *use = stage->uses, *next; recompute && use; use = next) {
    next = use->next;
    if (use->owner->code == TL_OP_TILE_LOAD && use->owner != first)
      tl_read_by_elements(self->context->module, use->owner);
  }
  tl_op *last = recompute ? self->kernel->regions[0]->last : NULL;
  while (last && last->code != TL_OP_PARALLEL) last = last->prev;
  if (last) tl_stage_results(self->context, last, stage);
}

// Registers for the blocks that shared memory has room for.
static void hint_blocks(staging *self, bool recomputes) {
  if (tl_op_has(self->kernel, TL_ATTR_OCCUPANCY)) return;
  int32_t blocks = resident(self, recomputes ? 0 : self->largest_tile, 0);
  int32_t enough = STAGED_THREADS / self->threads > MIN_BLOCKS ? STAGED_THREADS / self->threads : MIN_BLOCKS;
  if (blocks > enough) blocks = enough;
  tl_op_set_int(self->context->module, self->kernel, TL_ATTR_MIN_BLOCKS, blocks);
}

static const char *obstacle_of(const staging *self, const tl_staged_region *region, int32_t blocks, int32_t wanted) {
  if (self->has_own_copies) return "the kernel has products, pipelined loops or asynchronous copies of its own";
  if (!(self->context->target->features & TL_FEATURE_CP_ASYNC)) return "the target has no asynchronous copies";
  if (region->obstacle) return region->obstacle;
  if (tl_stage_piece_bytes(region) < MIN_PIECE_BYTES && !tl_stage_is_one_row(region))
    return "its rows are no whole pieces of 4 bytes";
  return blocks < wanted ? "a multiprocessor would hold one block only" : NULL;
}

// A region that the block reads more than once, and why it does so from memory.
static void remark_not_staged(const staging *self, const tl_staged_region *region, const char *why) {
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_COPY, region->loads.items[0]->loc,
                 "'%s' is read more than once, each time from memory, %lld bytes a block: %s",
                 tl_buffer_name(region->tensor), (long long)region->bytes, why);
}

static void remark_uncounted(const tl_op *load, const tl_value *tensor, void *user) {
  tl_pass_context *context = user;
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, load->loc,
                 "several loops read '%s', each time from memory: how much they read is known at launch only",
                 tl_buffer_name(tensor));
}

static void stage_kernel(tl_pass_context *context, tl_op *kernel) {
  if (tl_kernel_roles(kernel)) return;  // what their author brings, he brings himself
  staging self = {.context = context, .kernel = kernel};
  self.threads = tl_op_threads(kernel);
  tl_walk(kernel, look_at, &self);
  bool has_cp_async = (context->target->features & TL_FEATURE_CP_ASYNC) != 0;
  tl_stage_collect(kernel, &self.regions, remark_uncounted, context);
  if (self.has_own_copies && has_cp_async) tl_stage_elements(context, kernel);
  if (self.has_own_copies && has_cp_async) tl_stage_values(context, kernel);
  bool staged = false, recomputes = false;
  for (size_t r = 0; r < self.regions.len; r++) {
    tl_staged_region *region = &self.regions.items[r];
    bool reread = is_reread(region), dear = !reread && is_held_dearly(&self, region);
    if ((!reread && !dear) || region->bytes < MIN_BYTES) continue;
    // What is staged needs no registers between its uses.
    int32_t blocks = resident(&self, dear ? 0 : self.largest_tile, region->bytes);
    const char *why = obstacle_of(&self, region, blocks, blocks_wanted(&self, region, dear));
    if (why) {
      if (reread) remark_not_staged(&self, region, why);
      continue;
    }
    stage_region(&self, region, dear);
    staged = true;
    recomputes |= dear;
  }
  if (staged) hint_blocks(&self, recomputes);
  for (size_t r = 0; r < self.regions.len; r++) tl_vec_fini(&self.regions.items[r].loads);
  tl_vec_fini(&self.regions);
}

tl_status tl_pass_stage_reads(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) stage_kernel(context, op);
  }
  return TL_OK;
}
