// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// join-blocks: blocks whose rows in memory are parts of sectors become one, with those beside them.
//
//   %g, %b = grid 32, 32                                   %g, %b = grid 4, 32
//   %x = tile_load %X[%b, 0, %g * 10]: tile<4096x10>   →   %x = tile_load %X'[%b, 0, %g * 8, 0]: tile<4096x8x10>
//   %s = reduce %x {sum, axes = [0, 1]}: tile<1>           %s = reduce %x {sum, axes = [0, 2]}: tile<8>
//   parallel [4096, 10] { store … %Y[%b, %i, %g * 10 + %c] }   parallel [4096, 8, 10] { … %Y'[%b, %i, %g * 8 + %k, %c]
//   }
//
// A row of 20 bytes touches 1.5 sectors of 32 bytes on the average, and as many cache lines as 160 bytes do, so that L2
// moves twice what the kernel asks for. The next block along the grid has what follows. The joined block has more of
// everything but threads: it is made where a multiprocessor still has room for two of them, with what spread-rows can
// do, and where there are still as many blocks as multiprocessors.
//
// Needs promote-fragments (tiles are values); before spread-rows.
#include "passes/layout/join_blocks.h"

#include "passes/layout/spread_rows.h"
#include "passes/schedule/cost.h"
#include "passes/tile/loop_rewrite.h"

enum {
  SECTOR_BYTES = 32,
  LINE_BYTES = 128,  // rows that are longer waste little
  MOST_BLOCKS = 8
};

typedef struct joining_search {
  tl_op *grid, *row;  // row: the TILE_LOAD of the most bytes
  int64_t bytes;
} joining_search;

static int64_t bytes_of(const tl_value *source, const tl_type *tile) {
  return (int64_t)tl_dtype_bytes(source->type->dtype, (uint64_t)tl_type_num_elements(tile));
}

static void look_at(tl_op *op, void *user) {
  joining_search *self = user;
  if (op->code == TL_OP_GRID) self->grid = op;
  if (op->code != TL_OP_TILE_LOAD) return;
  const tl_value *source = tl_op_arg(op, TL_GROUP_TILE_LOAD_src);
  int64_t bytes = bytes_of(source, tl_op_result(op, 0)->type);
  if (!tl_buffer_is_global(source) || bytes <= self->bytes) return;
  self->row = op;
  self->bytes = bytes;
}

// ---- which blocks

// Bytes of the block's rows in memory, from one place on that the next block goes on from; 0: the row goes on in no
// other block, or is whole sectors anyway. `*out_along`: the dim of the grid.
static int64_t row_bytes(const joining_search *found, uint32_t *out_along) {
  tl_box box = tl_box_source(found->row);
  int32_t last = box.buffer_rank - 1, t = last >= 0 ? box.tile_dim[last] : -1;
  int bits = tl_dtype_bits(box.buffer->type->dtype);
  if (t < 0 || box.tile_rank < 2 || bits < 8 || tl_box_contiguous_dim(&box) != t) return 0;
  int64_t extent = box.extents[t], bytes = extent * (bits / 8);
  tl_affine offset = tl_affine_of(tl_box_offset(&box, last));
  if (!offset.valid || bytes % SECTOR_BYTES == 0 || bytes > LINE_BYTES ||
      tl_type_num_elements(tl_op_result(found->row, 0)->type) == extent)
    return 0;
  for (uint32_t d = 0; d < found->grid->num_results; d++) {
    *out_along = d;
    if (tl_affine_coefficient(&offset, tl_op_result(found->grid, d)) == extent) return bytes;
  }
  return 0;
}

static int64_t known_extent(const tl_op *grid, uint32_t d) {
  int64_t extent;
  return tl_value_const_int(tl_op_group_at(grid, TL_GROUP_GRID_extents, d), &extent) ? extent : -1;
}

// How many blocks: the least number that makes whole sectors; the most, where none does.
static int64_t choose_blocks(const tl_op *grid, uint32_t along, int64_t bytes) {
  int64_t extent = known_extent(grid, along), most = 1;
  for (int64_t blocks = 2; blocks <= MOST_BLOCKS && extent > 0; blocks *= 2) {
    if (extent % blocks != 0) break;
    most = blocks;
    if (blocks * bytes % SECTOR_BYTES == 0) break;
  }
  return most;
}

// Blocks of the launch, -1: not known.
static int64_t count_blocks(const tl_op *grid) {
  int64_t blocks = 1;
  for (uint32_t d = 0; d < grid->num_results; d++) {
    int64_t extent = known_extent(grid, d);
    if (extent < 0 || __builtin_mul_overflow(blocks, extent, &blocks)) return -1;
  }
  return blocks;
}

// ---- whether

static const char *kernel_obstacle(const tl_op *kernel) {
  if (tl_kernel_roles(kernel)) return "its author has roles of his own";
  if (tl_op_has(kernel, TL_ATTR_CLUSTER)) return "its author has clusters of his own";
  if (tl_op_int(kernel, TL_ATTR_PERSISTENT, TL_SWITCH_OFF) == TL_SWITCH_ON) return "the kernel is persistent";
  return NULL;
}

// Joins the blocks of `kernel`. Why it cannot be; NULL: it is done, and a multiprocessor has room for `*out_resident`
// of them.
static const char *join(tl_pass_context *context, tl_op *kernel, uint32_t along, int64_t blocks,
                        int32_t *out_resident) {
  joining_search found = {0};
  tl_walk(kernel, look_at, &found);
  tl_joining self = {.context = context, .kernel = kernel, .grid = found.grid, .blocks = blocks};
  self.along = tl_op_result(found.grid, along);
  int64_t before = count_blocks(found.grid), parts = 1;
  const char *why = tl_joining_find(&self);
  if (!why) {
    tl_joining_rewrite(&self);
    parts = tl_spread_parts(context, kernel, out_resident);
    if (parts < 1) why = "a multiprocessor would have no room for two blocks";
  }
  tl_joining_fini(&self);
  int64_t after = before / blocks * parts;
  if (!why && before >= 0 && after < before && after < TL_COST_MULTIPROCESSORS)
    why = "there would be fewer blocks than multiprocessors";
  return why;
}

static void remark(tl_pass_context *context, const tl_op *row, const char *along, int64_t bytes, int64_t blocks,
                   const char *why) {
  tl_diags *diags = context->diags;
  const char *name = tl_buffer_name(tl_op_arg(row, TL_GROUP_TILE_LOAD_src));
  if (why)
    tl_diag_report(
        diags, TL_DIAG_REMARK_NOT_JOINED, row->loc,
        "rows of '%s' are %lld bytes, parts of sectors of memory, and go on in the next block along '%s': %s", name,
        (long long)bytes, along, why);
  else
    tl_diag_report(diags, TL_DIAG_REMARK_JOINED, row->loc,
                   "%lld blocks along '%s' are one, so that rows of '%s' are %lld bytes in the place of %lld",
                   (long long)blocks, along, name, (long long)blocks * bytes, (long long)bytes);
}

// A copy of a kernel whose blocks are joined.
typedef struct attempt {
  tl_op *copy;      // NULL: there is none
  const char *why;  // there is none
  int64_t blocks;
  int32_t resident;
} attempt;

static attempt try_blocks(tl_pass_context *context, tl_op *kernel, uint32_t along, int64_t blocks) {
  attempt made = {.blocks = blocks};
  tl_builder builder;
  tl_value_map map = {0};
  tl_builder_before(&builder, context->module, kernel);
  made.copy = tl_op_clone(&builder, kernel, &map);
  tl_value_map_fini(&map);
  made.why = join(context, made.copy, along, blocks, &made.resident);
  if (!made.why) return made;
  tl_op_erase(made.copy);
  made.copy = NULL;
  return made;
}

// The copy that is best. Rows of two sectors and a part are good enough where a multiprocessor has room for four of
// their blocks, not two.
static attempt best_attempt(tl_pass_context *context, tl_op *kernel, uint32_t along, int64_t blocks, int64_t bytes) {
  attempt best = try_blocks(context, kernel, along, blocks);
  if (best.why || best.resident >= TL_SPREAD_ENOUGH || blocks / 2 * bytes < 2 * SECTOR_BYTES || blocks == 2)
    return best;
  attempt fewer = try_blocks(context, kernel, along, blocks / 2);
  bool is_better = !fewer.why && fewer.resident >= TL_SPREAD_ENOUGH;
  tl_op *dropped = is_better ? best.copy : fewer.copy;
  if (dropped) tl_op_erase(dropped);
  return is_better ? fewer : best;
}

static void join_kernel(tl_pass_context *context, tl_op *kernel) {
  joining_search found = {0};
  uint32_t along = 0;
  tl_walk(kernel, look_at, &found);
  if (!found.row || !found.grid || found.row->parent->parent != kernel) return;
  int64_t bytes = row_bytes(&found, &along), blocks = bytes > 0 ? choose_blocks(found.grid, along, bytes) : 1;
  if (bytes == 0) return;
  const char *name = tl_op_result(found.grid, along)->name;
  attempt made = {.why = kernel_obstacle(kernel)};
  if (!made.why && blocks == 1) made.why = "no 2, 4 or 8 divide the number of blocks";
  if (!made.why) made = best_attempt(context, kernel, along, blocks, bytes);
  remark(context, found.row, name ? name : "the grid", bytes, made.blocks, made.why);
  if (!made.why) tl_op_erase(kernel);
}

tl_status tl_pass_join_blocks(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_KERNEL && context->target) join_kernel(context, op);
  }
  return TL_OK;
}
