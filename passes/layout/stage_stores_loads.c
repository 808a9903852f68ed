// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of short rows whose lanes would read global memory row by row come through a shared tile, too.
//
//   %x = tile_load %X[…]  (rows of 20 bytes, a lane a row: 4 of a sector's 32 bytes at a time)
//   → %s = alloc "X_staged"; copy %X[…] -> %s; %x = tile_load %s
#include "passes/analysis/memory_access.h"
#include "passes/layout/infer_layouts.h"
#include "passes/layout/stage_stores.h"

// The source of `load` becomes that of the copy.
static void copy_source(tl_module *module, const tl_op *load, tl_op *copy) {
  static const tl_attr_key keys[] = {TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP, TL_ATTR_SRC_CHECK, TL_ATTR_EVICT};
  for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
    const tl_attr *attr = tl_op_attr(load, keys[k]);
    if (attr) tl_op_set_attr(module, copy, attr);
  }
}

void tl_stage_load(tl_pass_context *context, tl_op *kernel, tl_op *load) {
  tl_module *module = context->module;
  tl_value *result = tl_op_result(load, 0), *src = tl_op_arg(load, TL_GROUP_TILE_LOAD_src);
  tl_value *pad = tl_op_arg(load, TL_GROUP_TILE_LOAD_pad);
  int32_t rank = result->type->rank;
  const tl_type *type = tl_type_tile(module, src->type->dtype, result->type->dims, rank, NULL);
  const char *name = tl_arena_printf(&context->scratch, "%s_staged", tl_buffer_name(src));
  tl_value *staged = tl_scratch_alloc(context, kernel, type, name, load->loc);
  // Lanes go down its rows, which are a few words long: dense ones.
  tl_shared_layout layout = {.pitch_bytes = (int32_t)tl_dtype_bytes(type->dtype, (uint64_t)type->dims[rank - 1])};
  tl_op_set_shared(module, staged->def, TL_ATTR_SHARED_LAYOUT, &layout);
  tl_builder builder;
  tl_builder_before(&builder, module, load);
  builder.loc = load->loc;
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
  tl_value *zeros[TL_MAX_RANK], *offsets[TL_MAX_RANK], *limits[TL_MAX_RANK];
  int64_t identity[TL_MAX_RANK], unchecked[TL_MAX_RANK] = {0};
  uint32_t num_offsets = tl_op_group_len(load, TL_GROUP_TILE_LOAD_src_offsets);
  uint32_t num_limits = tl_op_group_len(load, TL_GROUP_TILE_LOAD_src_limits);
  for (int32_t d = 0; d < rank; d++) {
    zeros[d] = tl_build_index(&builder, 0);
    identity[d] = d;
  }
  for (uint32_t d = 0; d < num_offsets; d++) offsets[d] = tl_op_group_at(load, TL_GROUP_TILE_LOAD_src_offsets, d);
  for (uint32_t d = 0; d < num_limits; d++) limits[d] = tl_op_group_at(load, TL_GROUP_TILE_LOAD_src_limits, d);
  tl_group groups[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(src),    {offsets, num_offsets},  {limits, num_limits},
                                              TL_GROUP_OF(staged), {zeros, (uint32_t)rank}, TL_GROUP_EMPTY,
                                              TL_GROUP_EMPTY};
  if (pad) groups[TL_GROUP_COPY_pad] = (tl_group){&pad, 1};
  tl_op *copy = tl_build(&builder, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(module, copy, TL_ATTR_EXTENTS, result->type->dims, rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_DIMS, identity, rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_CHECK, unchecked, rank);
  copy_source(module, load, copy);
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, load->loc, "'%s' is read in rows, through shared memory",
                 tl_buffer_name(src));
  tl_value *tile = tl_build_tile_load(&builder, staged, result->type);
  tile->name = result->name;
  tl_value_replace_uses(result, tile);
  tl_op_erase(load);
}
