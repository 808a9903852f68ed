// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between layouts: renaming registers where every thread already holds its elements, else a trip through a
// shared tile of its own. The trip is an ordinary tile_store and tile_load, so that place-barriers and plan-shared need
// to know nothing special about it.
#include "ir/index/affine.h"
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/infer_layouts.h"
#include "passes/layout/select_copies.h"

tl_value *tl_scratch_alloc(tl_pass_context *context, tl_op *kernel, const tl_type *type, const char *name, tl_loc loc) {
  tl_module *module = context->module;
  tl_op *first = kernel->regions[0]->first;
  tl_builder builder;
  tl_builder_before(&builder, module, first);
  builder.loc = loc;
  const tl_type *buffer = tl_type_buffer(module, TL_SCOPE_SHARED, type->dtype, type->dims, type->rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &buffer, 1);
  tl_op_set_str(module, alloc, TL_ATTR_NAME, tl_str_from(name));
  // Written and read in two layouts, of which one mostly runs down the rows.
  int64_t row_bytes = (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)type->dims[type->rank - 1]);
  tl_shared_layout shared = tl_swizzle_for_rows(row_bytes, 1);
  if (type->rank >= 2) tl_op_set_shared(module, alloc, TL_ATTR_SHARED_LAYOUT, &shared);
  return tl_op_result(alloc, 0);
}

static const char *tile_name(const tl_value *tile) {
  return tile->name ? tile->name : "tile";
}

static void identity_attrs(tl_module *module, tl_op *op, tl_attr_key dims_key, tl_attr_key check_key, int32_t rank) {
  int64_t dims[TL_MAX_RANK], checks[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = d;
    checks[d] = 0;
  }
  tl_op_set_ints(module, op, dims_key, dims, rank);
  tl_op_set_ints(module, op, check_key, checks, rank);
}

void tl_build_tile_store(tl_builder *builder, tl_value *tile, tl_value *buffer) {
  int32_t rank = tile->type->rank;
  tl_value *zeros[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) zeros[d] = tl_build_index(builder, 0);
  tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(buffer), {zeros, (uint32_t)rank}, TL_GROUP_EMPTY};
  tl_op *store = tl_build(builder, TL_OP_TILE_STORE, groups, NULL, 0);
  identity_attrs(builder->module, store, TL_ATTR_DST_DIMS, TL_ATTR_DST_CHECK, rank);
}

tl_value *tl_build_tile_load(tl_builder *builder, tl_value *buffer, const tl_type *type) {
  tl_value *zeros[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) zeros[d] = tl_build_index(builder, 0);
  tl_group groups[] = {TL_GROUP_OF(buffer), {zeros, (uint32_t)type->rank}, TL_GROUP_EMPTY, TL_GROUP_EMPTY};
  tl_op *load = tl_build(builder, TL_OP_TILE_LOAD, groups, &type, 1);
  identity_attrs(builder->module, load, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_CHECK, type->rank);
  return tl_op_result(load, 0);
}

// Stores the tile before `before` into a new scratch tile and returns that.
static tl_value *spill_tile(tl_pass_context *context, tl_op *kernel, tl_value *tile, tl_op *before) {
  const char *name = tl_arena_printf(&context->scratch, "%s_scratch", tile_name(tile));
  tl_value *buffer = tl_scratch_alloc(context, kernel, tile->type, name, before->loc);
  tl_builder builder;
  tl_builder_before(&builder, context->module, before);
  builder.loc = before->loc;
  tl_build_tile_store(&builder, tile, buffer);
  return buffer;
}

// Whether register `w` of `want` is register `h` of `have` in every thread that holds something in it.
static bool is_register(const tl_layout *have, int32_t h, const tl_layout *want, int32_t w, int32_t threads) {
  int32_t wanted[TL_MAX_RANK], found[TL_MAX_RANK];
  for (int32_t thread = 0; thread < threads; thread++) {
    if (!tl_layout_coord(want, w, thread % 32, thread / 32, wanted)) continue;
    if (!tl_layout_coord(have, h, thread % 32, thread / 32, found)) return false;
    for (int32_t d = 0; d < want->rank; d++)
      if (found[d] != wanted[d]) return false;
  }
  return true;
}

bool tl_is_renaming(const tl_layout *have, const tl_layout *want) {
  int32_t warps = tl_layout_axis_size(want, TL_AXIS_WARP);
  int32_t num_have = tl_layout_num_registers(have), num_want = tl_layout_num_registers(want);
  if (warps != tl_layout_axis_size(have, TL_AXIS_WARP)) return false;
  for (int32_t w = 0; w < num_want; w++) {
    bool found = false;
    for (int32_t h = 0; h < num_have && !found; h++) found = is_register(have, h, want, w, warps * 32);
    if (!found) return false;
  }
  return true;
}

tl_value *tl_convert_tile(tl_pass_context *context, tl_op *kernel, tl_value *tile, const tl_layout *layout,
                          tl_op *before) {
  tl_module *module = context->module;
  const tl_type *type =
      tl_type_tile(module, tile->type->dtype, tile->type->dims, tile->type->rank, tl_module_layout(module, layout));
  tl_builder builder;
  tl_builder_before(&builder, module, before);
  builder.loc = before->loc;
  if (tile->type->layout && tl_is_renaming(tile->type->layout, layout)) {
    tl_group groups[] = {TL_GROUP_OF(tile)};
    tl_op *convert = tl_build(&builder, TL_OP_CONVERT_LAYOUT, groups, &type, 1);
    return tl_op_result(convert, 0);
  }
  tl_diag_report(context->diags, TL_DIAG_REMARK_LAYOUT, before->loc,
                 "'%s' is used with two layouts: it is converted through shared memory (%lld bytes)", tile_name(tile),
                 (long long)tl_dtype_bytes(type->dtype, (uint64_t)tl_type_num_elements(type)));
  tl_value *buffer = spill_tile(context, kernel, tile, before);
  return tl_build_tile_load(&builder, buffer, type);
}

// ---- what cannot be read from registers

bool tl_extract_dims(const tl_op *extract, const tl_op *parallel, int32_t *out_dims) {
  const tl_block *body = parallel->regions[0];
  const tl_type *tile = tl_op_arg(extract, TL_GROUP_EXTRACT_tile)->type;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, NULL);
  if (tile->rank > (int32_t)body->num_args) return false;
  bool used[TL_MAX_RANK] = {false};
  for (int32_t d = 0; d < tile->rank; d++) {
    const tl_value *index = tl_op_group_at(extract, TL_GROUP_EXTRACT_index, (uint32_t)d);
    int32_t found = -1;
    for (uint32_t a = 0; a < body->num_args; a++) {
      if (body->args[a] == index) found = (int32_t)a;
    }
    if (found < 0 || used[found] || extents[found] != tile->dims[d]) return false;
    used[found] = true;
    out_dims[d] = found;
  }
  return true;
}

static void replace_extract(tl_pass_context *context, tl_op *extract, tl_value *buffer) {
  tl_builder builder;
  tl_builder_before(&builder, context->module, extract);
  builder.loc = extract->loc;
  tl_value *index[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK] = {0};
  uint32_t rank = tl_op_group_len(extract, TL_GROUP_EXTRACT_index);
  for (uint32_t d = 0; d < rank; d++) index[d] = tl_op_group_at(extract, TL_GROUP_EXTRACT_index, d);
  tl_group groups[] = {TL_GROUP_OF(buffer), {index, rank}, TL_GROUP_EMPTY};
  const tl_type *type = tl_op_result(extract, 0)->type;
  tl_op *load = tl_build(&builder, TL_OP_LOAD, groups, &type, 1);
  tl_op_set_ints(context->module, load, TL_ATTR_CHECK, checks, (int32_t)rank);
  tl_value_replace_uses(tl_op_result(extract, 0), tl_op_result(load, 0));
  tl_op_erase(extract);
}

void tl_spill_operand(tl_pass_context *context, tl_op *kernel, tl_op *gemm) {
  tl_value *a = tl_op_arg(gemm, TL_GROUP_GEMM_a);
  tl_value *buffer = spill_tile(context, kernel, a, gemm);
  tl_op_set_operand(gemm, 1, buffer);
  const tl_instruction *inst = tl_op_instruction(gemm);
  if (inst && inst->family == TL_FAMILY_WGMMA) {
    tl_instruction by_descriptor = *inst;
    by_descriptor.a_in_registers = false;
    tl_op_set_instruction(context->module, gemm, &by_descriptor);
    int64_t row_bytes = (int64_t)tl_dtype_bytes(a->type->dtype, (uint64_t)a->type->dims[1]);
    tl_shared_layout panels = tl_shared_layout_panels(row_bytes);
    tl_op_set_shared(context->module, buffer->def, TL_ATTR_SHARED_LAYOUT, &panels);
  }
  tl_diag_report(context->diags, TL_DIAG_REMARK_LAYOUT, gemm->loc,
                 "the fragment operand '%s' is read through shared memory", tile_name(a));
}

typedef struct route_state {
  tl_pass_context *context;
  tl_op *kernel;
  TL_VEC(struct routed {
    tl_value *tile;
    tl_op *parallel;
    tl_value *buffer;
  })
  routed;
} route_state;

static void route_op(tl_op *op, void *user) {
  route_state *state = user;
  if (op->code == TL_OP_GEMM) {
    bool is_tile = tl_op_arg(op, TL_GROUP_GEMM_a)->type->kind == TL_TYPE_TILE;
    const tl_instruction *inst = tl_op_instruction(op);
    if (is_tile && (!inst || inst->family == TL_FAMILY_FMA)) tl_spill_operand(state->context, state->kernel, op);
    return;
  }
  if (op->code != TL_OP_EXTRACT) return;
  tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  int32_t dims[TL_MAX_RANK];
  if (!parallel || tl_extract_dims(op, parallel, dims)) return;
  tl_value *tile = tl_op_arg(op, TL_GROUP_EXTRACT_tile);
  tl_value *buffer = NULL;
  for (size_t i = 0; i < state->routed.len; i++) {
    if (state->routed.items[i].tile == tile && state->routed.items[i].parallel == parallel) {
      buffer = state->routed.items[i].buffer;
    }
  }
  if (!buffer) {
    buffer = spill_tile(state->context, state->kernel, tile, parallel);
    struct routed routed = {tile, parallel, buffer};
    tl_vec_push(&state->routed, routed);
    tl_diag_report(state->context->diags, TL_DIAG_REMARK_LAYOUT, op->loc,
                   "'%s' is read at an index that is not a loop index: through shared memory", tile_name(tile));
  }
  replace_extract(state->context, op, buffer);
}

void tl_route_through_shared(tl_pass_context *context, tl_op *kernel) {
  route_state state = {.context = context, .kernel = kernel};
  tl_walk(kernel, route_op, &state);
  tl_vec_fini(&state.routed);
}

// ---- elements that several threads handle

static bool has_replicas(const tl_layout *layout) {
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis != TL_AXIS_REGISTER && mode->dim == TL_DIM_NONE && mode->size > 1) return true;
  }
  return false;
}

// Whether an element's second thread would compute something else than its first, which alone writes: it reads what
// that writes, or wants the result of its atomic.
static bool only_first_is_right(tl_op *parallel) {
  tl_effect_list effects = {0};
  tl_effects_inside(parallel, &effects);
  bool found = false;
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    found |= effect->op->code == TL_OP_ATOMIC && effect->op->num_results > 0;
    found |= effect->kind == TL_EFFECT_READ && tl_effects_write(parallel, effect->root);
  }
  tl_vec_fini(&effects);
  return found;
}

typedef struct replica_state {
  tl_pass_context *context;
  tl_op *kernel;
} replica_state;

static void unify_parallel(tl_op *op, void *user) {
  replica_state *state = user;
  if (op->code != TL_OP_PARALLEL || op->num_results == 0) return;
  if (!has_replicas(tl_op_layout(op, TL_ATTR_THREAD_LAYOUT)) || !only_first_is_right(op)) return;
  tl_op *before = op->next;
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *result = tl_op_result(op, i);
    if (!result->uses) continue;
    tl_value *buffer = spill_tile(state->context, state->kernel, result, before);
    tl_op *store = before->prev;
    tl_builder builder;
    tl_builder_before(&builder, state->context->module, before);
    builder.loc = op->loc;
    tl_value_replace_uses(result, tl_build_tile_load(&builder, buffer, result->type));
    tl_op_set_operand(store, 0, result);
  }
}

void tl_unify_replicas(tl_pass_context *context, tl_op *kernel, tl_op *scope) {
  replica_state state = {context, kernel};
  tl_walk(scope, unify_parallel, &state);
}
