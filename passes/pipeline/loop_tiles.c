// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// loop-tiles: the body of a persistent kernel becomes a loop over the tiles of its grid.
//
//   %bx, %by = grid %m, %n             %bx, %by = grid %m, %n
//   statements                    →    for lower(%block) upper(%m * %n) step(%blocks) {tiles} do (%tile) {
//                                        %bx_1, %by_1 = tile_index extents(%m, %n) tile(%tile)
//                                        statements
//                                      }
//
// Block b of n takes the tiles b, b + n, b + 2n, …: with the order that blocks have. That is right for any n, and for
// blocks that wait for tiles before theirs as long as all of them run at once.
//
// With `persistent: dynamic` the tiles come from a queue (docs/decisions/0031-tile-queue.md): a block takes the next
// one that nobody has, again in the order of the tiles.
//
// Where the author leaves `persistent` open the kernel is one if that pays (assign_roles_choice.c).
//
// Runs after everything that looks at a kernel's own statements, so that a persistent kernel is scheduled as any other,
// and before place-barriers, which sees the loop. What the launch gives (arguments, tiles of shared memory, rings) and
// what follows from that alone stays before the loop.
#include "ir/index/affine.h"
#include "passes/manager/passes.h"
#include "passes/pipeline/assign_roles.h"
#include "passes/tile/loop_rewrite.h"
#include "support/status.h"

static tl_op *find_grid(const tl_op *kernel) {
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code == TL_OP_GRID) return op;
  }
  return NULL;
}

// Whether the op is the same for every tile, and free. Tile values are left where they are used: they are registers.
static bool stays(const tl_op *op, const tl_op *grid) {
  int flags = tl_op_info_of(op->code)->flags;
  if (flags & TL_OPFLAG_ONCE) return true;
  if (!(flags & TL_OPFLAG_PURE) || op->num_regions > 0) return false;
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].type->kind == TL_TYPE_TILE) return false;
  }
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_op *def = tl_op_operand(op, i)->def;
    if (!def || def == grid || def->parent != op->parent) return false;
  }
  return true;
}

// The loop takes its tiles from a queue. It looks like the one that counts: whatever holds for any number of blocks
// holds for tiles in any increasing order.
static void make_queue(tl_builder *builder, tl_module *module, tl_op *loop) {
  const tl_type *type = tl_type_simple(module, TL_TYPE_MBARRIER);
  tl_builder before = *builder;
  tl_builder_before(&before, module, loop);
  before.loc = loop->loc;
  tl_op *queue = tl_build(&before, TL_OP_TILE_QUEUE, NULL, &type, 1);
  tl_op_set_str(module, queue, TL_ATTR_NAME, TL_STR("tiles"));
  tl_op_result(queue, 0)->name = tl_module_intern(module, TL_STR("tiles"));
  tl_op_set_unit(module, loop, TL_ATTR_DYNAMIC);
}

static tl_op *make_loop(tl_module *module, tl_op *before, const tl_op *grid) {
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = grid->loc;
  const tl_type *index = tl_type_index(module);
  tl_value *tiles = tl_op_operand(grid, 0);
  for (uint32_t d = 1; d < grid->num_operands; d++) tiles = tl_index_mul(&builder, tiles, tl_op_operand(grid, d));
  tl_value *block = tl_op_result(tl_build(&builder, TL_OP_BLOCK_ID, NULL, &index, 1), 0);
  tl_value *blocks = tl_op_result(tl_build(&builder, TL_OP_NUM_BLOCKS, NULL, &index, 1), 0);
  // Of more blocks than tiles each has one tile or none; the bounds keep the loop's arithmetic narrow.
  tl_value *one = tl_build_index(&builder, 1);
  tl_value *most = tl_index_max(&builder, tiles, one);
  tl_value *first = tl_index_min(&builder, block, tiles);
  tl_value *step = tl_index_min(&builder, blocks, most);
  tl_group groups[] = {TL_GROUP_OF(first), TL_GROUP_OF(tiles), TL_GROUP_OF(step), TL_GROUP_EMPTY};
  tl_op *loop = tl_build(&builder, TL_OP_FOR, groups, NULL, 0);
  tl_op_set_unit(module, loop, TL_ATTR_TILES);
  if (tl_op_has(tl_op_enclosing(loop, TL_OP_KERNEL), TL_ATTR_DYNAMIC)) make_queue(&builder, module, loop);
  tl_block_add_arg(module, loop->regions[0], index, "tile");
  return loop;
}

// The op that gives the indices of the loop's tile, at the start of the loop.
static tl_op *index_tile(tl_pass_context *context, tl_op *loop, const tl_op *grid) {
  tl_module *module = context->module;
  tl_builder builder;
  tl_builder_at_end(&builder, module, loop->regions[0]);
  builder.loc = grid->loc;
  uint32_t rank = grid->num_results;
  tl_value **extents = TL_NEW_ARRAY(&context->scratch, tl_value *, rank + 1);
  const tl_type **types = TL_NEW_ARRAY(&context->scratch, const tl_type *, rank + 1);
  for (uint32_t d = 0; d < rank; d++) {
    extents[d] = tl_op_operand(grid, d);
    types[d] = tl_op_result(grid, d)->type;
  }
  tl_group groups[] = {{extents, rank}, TL_GROUP_OF(loop->regions[0]->args[0])};
  tl_op *indices = tl_build(&builder, TL_OP_TILE_INDEX, groups, types, rank);
  static const tl_attr_key raster[] = {TL_ATTR_PANEL, TL_ATTR_ORDER};
  for (size_t i = 0; i < sizeof raster / sizeof raster[0]; i++) {
    const tl_attr *attr = tl_op_attr(grid, raster[i]);
    if (attr) tl_op_set_attr(module, indices, attr);
  }
  return indices;
}

static tl_status loop_kernel(tl_pass_context *context, tl_op *kernel) {
  tl_op *grid = find_grid(kernel), *end = tl_region_yield(context->module, kernel->regions[0], kernel->loc);
  if (!grid) return tl_status_make(TL_STATUS_INTERNAL, "loop-tiles: a persistent kernel without a grid");
  const tl_op *last = end->prev;
  tl_op *loop = make_loop(context->module, end, grid);
  tl_op *indices = index_tile(context, loop, grid);
  for (tl_op *op = kernel->regions[0]->first, *next; op; op = next) {
    next = op == last ? NULL : op->next;
    if (!stays(op, grid)) tl_op_move_to_end(op, loop->regions[0]);
  }
  tl_region_yield(context->module, loop->regions[0], loop->loc);
  for (uint32_t d = 0; d < grid->num_results; d++) {
    tl_op_result(indices, d)->name = tl_op_result(grid, d)->name;
    tl_value_replace_uses(tl_op_result(grid, d), tl_op_result(indices, d));
  }
  return TL_OK;
}

// Where the author leaves it open.
static void choose(tl_pass_context *context, tl_op *kernel) {
  const tl_op *grid = find_grid(kernel);
  if (tl_op_has(kernel, TL_ATTR_PERSISTENT) || !grid || !context->target) return;
  const char *obstacle = tl_tiles_choice_obstacle(context, kernel, grid);
  // Without warps that load nobody expects them to.
  if (obstacle && tl_roles_expected(context, kernel))
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, kernel->loc, "each block takes one tile of the grid: %s",
                   obstacle);
  if (obstacle) return;
  tl_op_set_int(context->module, kernel, TL_ATTR_PERSISTENT, TL_SWITCH_ON);
  tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, kernel->loc,
                 "blocks take one tile of the grid after the other: the next one's operands arrive meanwhile");
}

tl_status tl_pass_loop_tiles(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    choose(context, op);
    if (tl_op_int(op, TL_ATTR_PERSISTENT, TL_SWITCH_OFF) == TL_SWITCH_ON) TL_TRY(loop_kernel(context, op));
  }
  return TL_OK;
}
