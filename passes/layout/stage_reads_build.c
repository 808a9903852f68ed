// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stage-reads puts into a kernel: tiles, copies to them, and waits.
#include "passes/layout/stage_reads.h"

#include "passes/tile/loop_rewrite.h"

tl_value *tl_stage_build_sum(tl_builder *builder, const tl_affine *form, int64_t constant) {
  tl_affine moved = *form;
  moved.constant = constant;
  return tl_affine_build(builder, &moved);
}

tl_value *tl_stage_build_tile(tl_pass_context *context, tl_op *kernel, const tl_staged_region *region) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, kernel->regions[0]->first);
  builder.loc = region->loads.items[0]->loc;
  int32_t rank = region->tensor->type->rank;
  int64_t dims[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) dims[d] = region->hi[d] - region->lo[d] + 1;
  const tl_type *type = tl_type_buffer(context->module, TL_SCOPE_SHARED, region->tensor->type->dtype, dims, rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  const char *name = tl_arena_printf(&context->scratch, "%s_stage", tl_buffer_name(region->tensor));
  tl_op_set_str(context->module, alloc, TL_ATTR_NAME, tl_str_from(name));
  return tl_op_result(alloc, 0);
}

// The copy of what lies between `from` and `to` along one of the region's dims: asynchronous, or as an author writes
// it.
static tl_op *build_box(tl_pass_context *context, const tl_staged_region *region, tl_value *stage, int32_t dim,
                        int64_t from, int64_t to, bool is_async, tl_op *before) {
  tl_module *module = context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = region->loads.items[0]->loc;
  int32_t rank = stage->type->rank;
  tl_value *src[TL_MAX_RANK], *dst[TL_MAX_RANK];
  int64_t dims[TL_MAX_RANK], extents[TL_MAX_RANK], inside[TL_MAX_RANK] = {0};
  for (int32_t d = 0; d < rank; d++) {
    int64_t at = d == dim ? from : 0;
    src[d] = tl_stage_build_sum(&builder, &region->base[d], region->lo[d] + at);
    dst[d] = tl_build_index(&builder, at);
    extents[d] = d == dim ? to - from : stage->type->dims[d];
    dims[d] = d;
  }
  tl_group groups[TL_GROUP_COPY_stage + 1] = {
      TL_GROUP_OF(region->tensor), {src, (uint32_t)rank}, TL_GROUP_EMPTY, TL_GROUP_OF(stage), {dst, (uint32_t)rank}};
  const tl_type *token = tl_type_simple(module, TL_TYPE_TOKEN);
  tl_op *copy = tl_build(&builder, TL_OP_COPY, groups, &token, is_async ? 1 : 0);
  tl_op_set_ints(module, copy, TL_ATTR_EXTENTS, extents, rank);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_DIMS, dims, rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_DIMS, dims, rank);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_CHECK, region->checks, rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_CHECK, inside, rank);
  return copy;
}

// The same in a group of its own.
static void build_part(tl_pass_context *context, const tl_staged_region *region, tl_value *stage, int32_t dim,
                       int64_t from, int64_t to, tl_op *before) {
  tl_module *module = context->module;
  tl_op *copy = build_box(context, region, stage, dim, from, to, true, before);
  tl_op_set_int(module, copy, TL_ATTR_VIA, TL_VIA_CP_ASYNC);
  tl_op_set_unit(module, copy, TL_ATTR_ASYNC);
  if (to - from < stage->type->dims[dim]) tl_op_set_unit(module, copy, TL_ATTR_COUNTED);
  tl_value *result = tl_op_result(copy, 0);
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = copy->loc;
  tl_build(&builder, TL_OP_ASYNC_COMMIT, (tl_group[]){TL_GROUP_OF(result)}, NULL, 0);
}

void tl_stage_build_copy(tl_pass_context *context, const tl_staged_region *region, const tl_stage_parts *parts,
                         tl_value *stage, tl_op *before) {
  tl_stage_parts whole = {.len = 1, .ends = {stage->type->dims[0]}};
  if (!parts || parts->len == 1) parts = &whole;
  for (int32_t p = 0; p < parts->len; p++)
    build_part(context, region, stage, parts->dim, p > 0 ? parts->ends[p - 1] : 0, parts->ends[p], before);
}

void tl_stage_build_plain_copy(tl_pass_context *context, const tl_staged_region *region, tl_value *stage,
                               tl_op *before) {
  build_box(context, region, stage, 0, 0, stage->type->dims[0], false, before);
}

static void build_wait_only(tl_pass_context *context, tl_op *before, int32_t pending) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, before);
  tl_op *wait = tl_build(&builder, TL_OP_ASYNC_WAIT, NULL, NULL, 0);
  tl_op_set_int(context->module, wait, TL_ATTR_PENDING, pending);
  if (pending > 0) tl_op_set_unit(context->module, wait, TL_ATTR_COUNTED);
}

static void build_wait(tl_pass_context *context, tl_op *before, int32_t pending) {
  build_wait_only(context, before, pending);
  tl_builder builder;
  tl_builder_before(&builder, context->module, before);
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
}

void tl_stage_build_wait(tl_pass_context *context, tl_op *before) {
  build_wait(context, before, 0);
}

// The last op of the loop's own body in which the threads of the block meet anyway; NULL: none.
static tl_op *last_meeting(const tl_op *loop) {
  tl_op *found = NULL;
  for (tl_op *op = loop->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN) found = op;
  return found;
}

// Each iteration waits for a part and closes a group without copies, so that always as many may be under way: all but
// the first before the loop, and in the last iteration the empty groups of those before it. Where the threads meet in
// an iteration they wait for the next one's part in front of that, and need no barrier of its own for it.
void tl_stage_build_waits(tl_pass_context *context, const tl_stage_parts *parts, tl_op *loop) {
  if (parts->len == 1) {
    build_wait(context, loop, 0);
    return;
  }
  tl_op *meeting = last_meeting(loop);
  tl_builder builder;
  tl_builder_before(&builder, context->module,
                    meeting ? meeting : tl_region_yield(context->module, loop->regions[0], loop->loc));
  tl_build(&builder, TL_OP_ASYNC_COMMIT, (tl_group[]){TL_GROUP_EMPTY}, NULL, 0);
  if (meeting) {
    build_wait(context, loop, parts->len - 1);
    build_wait_only(context, meeting, parts->len - 1);
  } else {
    build_wait(context, loop->regions[0]->first, parts->len - 1);
  }
  // All have landed. So that this need not be found out by counting it is said again.
  build_wait(context, loop->next, 0);
}
