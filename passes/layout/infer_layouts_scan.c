// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scans in infer-layouts. A scan keeps the layout of its source. Where several warps hold runs of one axis, it is taken
// apart much as a reduction is:
//
//   %c = scan %x reduction=sum axes=[0] : tile<f32 512>
//   → %p, %t = scan %x reduction=sum axes=[0] partial : tile<f32 512>, tile<f32 4>   runs of each warp, and their
//   totals
//     tile_store %t → %scratch; %q = tile_load %scratch : tile<f32 4>               every thread gets all totals
//     %c = scan_carry %p, %q reduction=sum axes=[0] : tile<f32 512>
//
// A layout in which warps take turns along the axis makes many short runs. Then the tile is converted to one in which
// each thread holds a long run, and the result back.
#include "ir/reduction.h"
#include "passes/layout/infer_layouts.h"
#include "passes/tile/loop_rewrite.h"

static void split_scan(tl_pass_context *context, tl_op *kernel, tl_op *op);

// Registers of the totals that one thread gathers; 0 when a warp's lanes and registers hold the whole axis.
static int32_t gathered_registers(const tl_layout *layout, int32_t axis) {
  if (tl_scan_run(layout, axis) == tl_layout_padded(layout, axis)) return 0;
  tl_layout gathered = tl_layout_scan_gather(layout, axis);
  return tl_layout_num_registers(&gathered);
}

// Each thread holds neighbouring elements along the axis: as many threads along it as make the fewest registers.
static tl_layout run_layout(const tl_layout *layout, int32_t axis) {
  int32_t order[TL_MAX_RANK] = {axis}, len = 1;
  for (int32_t d = layout->rank - 1; d >= 0; d--) {
    if (d != axis) order[len++] = d;
  }
  int32_t threads = 32 * tl_layout_axis_size(layout, TL_AXIS_WARP);
  tl_layout best = *layout;
  int32_t fewest = INT32_MAX;
  for (int32_t along = 1; along <= threads; along *= 2) {
    int32_t run = (layout->shape[axis] + along - 1) / along;
    tl_layout candidate = tl_layout_blocked(layout->shape, layout->rank, order, run, threads);
    int32_t registers = tl_layout_num_registers(&candidate) + gathered_registers(&candidate, axis);
    if (registers >= fewest) continue;
    fewest = registers;
    best = candidate;
  }
  return best;
}

// Scans in another layout: converts the source and the result.
static void change_layout(tl_pass_context *context, tl_op *kernel, tl_op *op, const tl_layout *layout) {
  tl_module *module = context->module;
  tl_value *result = tl_op_result(op, 0);
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  tl_value *source = tl_convert_tile(context, kernel, tl_op_arg(op, TL_GROUP_SCAN_src), layout, op);
  tl_group groups[] = {TL_GROUP_OF(source), TL_GROUP_EMPTY};
  const tl_type *type = tl_type_tile(module, result->type->dtype, result->type->dims, result->type->rank,
                                     tl_module_layout(module, layout));
  tl_op *scan = tl_build(&builder, TL_OP_SCAN, groups, &type, 1);
  tl_op_copy_attrs(module, scan, op);
  tl_value *back = tl_convert_tile(context, kernel, tl_op_result(scan, 0), result->type->layout, op);
  back->name = result->name;
  tl_value_replace_uses(result, back);
  tl_op_erase(op);
  split_scan(context, kernel, scan);
}

static void split_scan(tl_pass_context *context, tl_op *kernel, tl_op *op) {
  tl_module *module = context->module;
  tl_value *source = tl_op_arg(op, TL_GROUP_SCAN_src), *result = tl_op_result(op, 0);
  const tl_layout *layout = source->type->layout;
  int32_t axis = (int32_t)tl_op_attr(op, TL_ATTR_AXES)->v.ints.items[0], rank = source->type->rank;
  int32_t registers = gathered_registers(layout, axis);
  if (tl_op_has(op, TL_ATTR_PARTIAL) || registers == 0) return;
  if (registers > TL_MAX_GATHERED_REGISTERS) {
    tl_layout runs = run_layout(layout, axis);
    if (gathered_registers(&runs, axis) < registers) {
      change_layout(context, kernel, op, &runs);
      return;
    }
  }
  tl_layout spread = tl_layout_scan_totals(layout, axis), gathered = tl_layout_scan_gather(layout, axis);
  int64_t dims[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) dims[d] = spread.shape[d];
  tl_dtype dtype = result->type->dtype;
  const tl_type *types[2] = {result->type, tl_type_tile(module, dtype, dims, rank, tl_module_layout(module, &spread))};
  tl_builder builder;
  tl_builder_before(&builder, module, op);
  builder.loc = op->loc;
  tl_group scan_groups[] = {TL_GROUP_OF(source), TL_GROUP_EMPTY};
  tl_op *scan = tl_build(&builder, TL_OP_SCAN, scan_groups, types, 2);
  tl_op_copy_attrs(module, scan, op);
  tl_op_set_unit(module, scan, TL_ATTR_PARTIAL);
  tl_value *scratch = tl_exchange_alloc(context, kernel, types[1], op->loc);
  tl_build_tile_store(&builder, tl_op_result(scan, 1), scratch);
  tl_value *totals = tl_build_tile_load(&builder, scratch,
                                        tl_type_tile(module, dtype, dims, rank, tl_module_layout(module, &gathered)));
  tl_group carry_groups[] = {TL_GROUP_OF(tl_op_result(scan, 0)), TL_GROUP_OF(totals)};
  tl_op *carry = tl_build(&builder, TL_OP_SCAN_CARRY, carry_groups, &result->type, 1);
  tl_op_copy_attrs(module, carry, op);
  tl_op_result(carry, 0)->name = result->name;
  tl_value_replace_uses(result, tl_op_result(carry, 0));
  tl_op_erase(op);
}

typedef struct split_walk {
  tl_pass_context *context;
  tl_op *kernel;
} split_walk;

static void visit_split(tl_op *op, void *user) {
  const split_walk *walk = user;
  if (op->code == TL_OP_SCAN) split_scan(walk->context, walk->kernel, op);
}

void tl_split_scans(tl_pass_context *context, tl_op *kernel, tl_op *scope) {
  split_walk walk = {context, kernel};
  tl_walk(scope, visit_split, &walk);
}
