// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// promote-fragments: fragment buffers become SSA tile values.
//
//   %acc = alloc "acc" : buffer<fragment f32 64x64>          %0 = splat(0.0) : tile<f32 64x64>
//   fill(%acc, 0.0)                                      ⇒   %1 = for … inits(%0) { ^(%k, %t):
//   for … { gemm(%acc, %a, %b) }                                 %2 = gemm(%t, %a, %b)  yield %2 }
//   copy(%acc → %c)                                          tile_store(%1 → %c)
//
// Control flow is structured, so one walk in program order with the current value of every fragment does it: a loop
// carries the fragments written inside, an if yields those written in a branch. Inside a parallel the same walk runs on
// elements: an element is extracted on entry, read and written as a scalar, and yielded at the end (`maps` says which
// indices name it). A masked write thereby keeps the old element.
//
// Needs the tile level. A fragment that cannot be a value (promote_fragments_analyze.c) becomes a shared tile, with a
// remark.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/tile/loop_rewrite.h"
#include "passes/tile/promote_fragments_internal.h"
#include "support/status.h"

typedef struct promotion {
  tl_fragments *fragments;
  tl_module *module;
  size_t count;  // entries of a state
} promotion;

static void promote_block(promotion *self, tl_block *block, tl_value **state);

static tl_value **new_state(const promotion *self, tl_value *const *from) {
  tl_value **state = TL_NEW_ARRAY(&self->fragments->context->scratch, tl_value *, self->count + 1);
  for (size_t i = 0; from && i < self->count; i++) state[i] = from[i];
  return state;
}

static const tl_value *buffer_at(const promotion *self, size_t which) {
  return self->fragments->items.items[which].buffer;
}

static const tl_type *tile_type(const promotion *self, size_t which) {
  const tl_type *type = buffer_at(self, which)->type;
  return tl_type_tile(self->module, type->dtype, type->dims, type->rank, NULL);
}

// The current value of a fragment before `op`; an undefined tile where it was never written.
static tl_value *current(promotion *self, tl_value **state, size_t which, tl_op *op) {
  if (state[which]) return state[which];
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  const tl_type *type = tile_type(self, which);
  state[which] = tl_op_result(tl_build(&builder, TL_OP_UNDEF_TILE, NULL, &type, 1), 0);
  state[which]->name = buffer_at(self, which)->name;
  return state[which];
}

static void set_current(promotion *self, tl_value **state, int which, tl_value *value) {
  if (value->name == NULL) value->name = buffer_at(self, (size_t)which)->name;
  state[which] = value;
}

// ---- which fragments an op writes

typedef struct written_walk {
  const tl_fragments *fragments;
  bool *written;
} written_walk;

static void mark(const written_walk *walk, const tl_value *buffer) {
  int which = tl_fragment_find(walk->fragments, buffer);
  if (which >= 0) walk->written[which] = true;
}

static void visit_written(tl_op *op, void *user) {
  const written_walk *walk = user;
  tl_effect_list effects = {0};
  tl_effects_of(op, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    if (effects.items[i].kind != TL_EFFECT_READ) mark(walk, effects.items[i].buffer);
  }
  tl_vec_fini(&effects);
}

static bool *written_inside(promotion *self, tl_op *op) {
  written_walk walk = {self->fragments, TL_NEW_ARRAY(&self->fragments->context->scratch, bool, self->count + 1)};
  tl_walk(op, visit_written, &walk);
  return walk.written;
}

// ---- ops on whole tiles

static void promote_fill(promotion *self, tl_op *op, tl_value **state) {
  int which = tl_fragment_find(self->fragments, tl_op_arg(op, TL_GROUP_FILL_buffer));
  if (which < 0) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  const tl_type *type = tile_type(self, (size_t)which);
  tl_value *value =
      tl_build_cast(&builder, tl_op_arg(op, TL_GROUP_FILL_value), tl_type_scalar(self->module, type->dtype));
  tl_group groups[] = {TL_GROUP_OF(value)};
  set_current(self, state, which, tl_op_result(tl_build(&builder, TL_OP_SPLAT, groups, &type, 1), 0));
  tl_op_erase(op);
}

typedef struct operand_list {
  tl_value *items[TL_MAX_RANK];
  uint32_t len;
} operand_list;

static operand_list operands_of(const tl_op *op, int group) {
  operand_list list = {.len = tl_op_group_len(op, group)};
  for (uint32_t i = 0; i < list.len && i < TL_MAX_RANK; i++) list.items[i] = tl_op_group_at(op, group, i);
  return list;
}

static void promote_copy(promotion *self, tl_op *op, tl_value **state) {
  tl_value *src = tl_op_arg(op, TL_GROUP_COPY_src);
  tl_value *dst = tl_op_arg(op, TL_GROUP_COPY_dst);
  int from = tl_fragment_find(self->fragments, src);
  int to = tl_fragment_find(self->fragments, dst);
  if (from < 0 && to < 0) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  if (from >= 0 && to >= 0) {
    state[to] = current(self, state, (size_t)from, op);
  } else if (to >= 0) {
    operand_list offsets = operands_of(op, TL_GROUP_COPY_src_offsets);
    operand_list limits = operands_of(op, TL_GROUP_COPY_src_limits);
    tl_value *pad = tl_op_arg(op, TL_GROUP_COPY_pad);
    tl_group groups[] = {
        TL_GROUP_OF(src), {offsets.items, offsets.len}, {limits.items, limits.len}, {&pad, pad ? 1 : 0}};
    const tl_type *type = tile_type(self, (size_t)to);
    tl_op *load = tl_build(&builder, TL_OP_TILE_LOAD, groups, &type, 1);
    tl_fragment_set_box(self->module, load, op, false, type->rank, src->type->rank);
    set_current(self, state, to, tl_op_result(load, 0));
  } else {
    tl_value *tile = current(self, state, (size_t)from, op);
    operand_list offsets = operands_of(op, TL_GROUP_COPY_dst_offsets);
    operand_list limits = operands_of(op, TL_GROUP_COPY_dst_limits);
    tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(dst), {offsets.items, offsets.len}, {limits.items, limits.len}};
    tl_op *store = tl_build(&builder, TL_OP_TILE_STORE, groups, NULL, 0);
    tl_fragment_set_box(self->module, store, op, true, tile->type->rank, dst->type->rank);
  }
  tl_op_erase(op);
}

static tl_value *splat_zero(tl_builder *builder, const tl_type *tile) {
  tl_value *zero = tl_build_zero(builder, tile->dtype);
  tl_group groups[] = {TL_GROUP_OF(zero)};
  return tl_op_result(tl_build(builder, TL_OP_SPLAT, groups, &tile, 1), 0);
}

static void promote_gemm(promotion *self, tl_op *op, tl_value **state) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc);
  if (acc->type->kind != TL_TYPE_BUFFER) return;
  int which = tl_fragment_find(self->fragments, acc);
  tl_value *a = tl_op_arg(op, TL_GROUP_GEMM_a), *b = tl_op_arg(op, TL_GROUP_GEMM_b);
  int a_which = a->type->kind == TL_TYPE_BUFFER ? tl_fragment_find(self->fragments, a) : -1;
  int b_which = b->type->kind == TL_TYPE_BUFFER ? tl_fragment_find(self->fragments, b) : -1;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  const tl_type *type = tl_type_tile(self->module, acc->type->dtype, acc->type->dims, acc->type->rank, NULL);
  if (a_which >= 0) a = current(self, state, (size_t)a_which, op);
  if (b_which >= 0) b = current(self, state, (size_t)b_which, op);
  tl_value *old = tl_op_has(op, TL_ATTR_CLEAR) ? splat_zero(&builder, type)
                  : which >= 0                 ? current(self, state, (size_t)which, op)
                                               : tl_fragment_load_whole(&builder, acc);
  tl_value *meta = tl_op_arg(op, TL_GROUP_GEMM_meta);
  tl_group groups[] = {TL_GROUP_OF(old), TL_GROUP_OF(a), TL_GROUP_OF(b), {&meta, meta ? 1 : 0}};
  tl_op *gemm = tl_build(&builder, TL_OP_GEMM, groups, &type, 1);
  tl_op_copy_attrs(self->module, gemm, op);
  tl_op_remove_attr(gemm, TL_ATTR_CLEAR);
  if (which >= 0) {
    set_current(self, state, which, tl_op_result(gemm, 0));
  } else {
    tl_fragment_store_whole(&builder, tl_op_result(gemm, 0), acc);
  }
  tl_op_erase(op);
}

// A source or destination that stays in memory is loaded and stored whole.
static void promote_reduce(promotion *self, tl_op *op, tl_value **state) {
  uint32_t num_results = tl_op_group_len(op, TL_GROUP_REDUCE_dst);
  if (num_results == 0) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  tl_value *src = tl_op_group_at(op, TL_GROUP_REDUCE_src, 0), *dst[2];
  int from = tl_fragment_find(self->fragments, src);
  tl_value *tile = from >= 0 ? current(self, state, (size_t)from, op) : tl_fragment_load_whole(&builder, src);
  const tl_type *types[2];
  for (uint32_t i = 0; i < num_results; i++) {
    dst[i] = tl_op_group_at(op, TL_GROUP_REDUCE_dst, i);
    const tl_type *type = dst[i]->type;
    types[i] = tl_type_tile(self->module, type->dtype, type->dims, type->rank, NULL);
  }
  tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_EMPTY};
  tl_op *reduce = tl_build(&builder, TL_OP_REDUCE, groups, types, num_results);
  tl_op_copy_attrs(self->module, reduce, op);
  for (uint32_t i = 0; i < num_results; i++) {
    int to = tl_fragment_find(self->fragments, dst[i]);
    if (to >= 0) {
      set_current(self, state, to, tl_op_result(reduce, i));
    } else {
      tl_fragment_store_whole(&builder, tl_op_result(reduce, i), dst[i]);
    }
  }
  tl_op_erase(op);
}

static void promote_scan(promotion *self, tl_op *op, tl_value **state) {
  tl_value *src = tl_op_arg(op, TL_GROUP_SCAN_src), *dst = tl_op_arg(op, TL_GROUP_SCAN_dst);
  if (dst == NULL) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  int from = tl_fragment_find(self->fragments, src), to = tl_fragment_find(self->fragments, dst);
  tl_value *tile = from >= 0 ? current(self, state, (size_t)from, op) : tl_fragment_load_whole(&builder, src);
  const tl_type *type = tl_type_tile(self->module, dst->type->dtype, dst->type->dims, dst->type->rank, NULL);
  tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_EMPTY};
  tl_op *scan = tl_build(&builder, TL_OP_SCAN, groups, &type, 1);
  tl_op_copy_attrs(self->module, scan, op);
  if (to >= 0) {
    set_current(self, state, to, tl_op_result(scan, 0));
  } else {
    tl_fragment_store_whole(&builder, tl_op_result(scan, 0), dst);
  }
  tl_op_erase(op);
}

// ---- elements

// The element of tile `tile` that `access` names.
static tl_value *build_extract(promotion *self, tl_builder *builder, tl_value *tile, const tl_op *access) {
  operand_list indices = {.len = tl_element_rank(access)};
  for (uint32_t d = 0; d < indices.len; d++) indices.items[d] = tl_element_index(access, d);
  tl_group groups[] = {TL_GROUP_OF(tile), {indices.items, indices.len}};
  const tl_type *type = tl_type_scalar(self->module, tile->type->dtype);
  return tl_op_result(tl_build(builder, TL_OP_EXTRACT, groups, &type, 1), 0);
}

// A read takes the element's current value; where the fragment is still a tile (not written in this parallel) it
// extracts.
static void promote_load(promotion *self, tl_op *op, tl_value **state) {
  int which = tl_fragment_find(self->fragments, tl_element_buffer(op));
  if (which < 0) return;
  tl_value *value = state[which];
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  if (value->type->kind == TL_TYPE_TILE) value = build_extract(self, &builder, value, op);
  value = tl_build_cast(&builder, value, tl_op_result(op, 0)->type);
  tl_value_replace_uses(tl_op_result(op, 0), value);
  tl_op_erase(op);
}

static void promote_store(promotion *self, tl_op *op, tl_value **state) {
  int which = tl_fragment_find(self->fragments, tl_element_buffer(op));
  if (which < 0) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  const tl_type *type = tl_type_scalar(self->module, buffer_at(self, (size_t)which)->type->dtype);
  state[which] = tl_build_cast(&builder, tl_op_arg(op, TL_GROUP_STORE_value), type);
  tl_op_erase(op);
}

// A fragment's bounds are those of its type.
static void promote_in_bounds(promotion *self, tl_op *op) {
  const tl_value *buffer = tl_op_arg(op, TL_GROUP_IN_BOUNDS_buffer);
  if (tl_fragment_find(self->fragments, buffer) < 0) return;
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  tl_value *inside = tl_build_bool(&builder, true);
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    tl_value *index = tl_op_group_at(op, TL_GROUP_IN_BOUNDS_index, (uint32_t)d);
    tl_value *low = tl_build_cmp(&builder, TL_CMP_GE, index, tl_build_index(&builder, 0));
    tl_value *high = tl_build_cmp(&builder, TL_CMP_LT, index, tl_build_index(&builder, buffer->type->dims[d]));
    inside = tl_build_binary(&builder, TL_OP_AND, inside, tl_build_binary(&builder, TL_OP_AND, low, high));
  }
  tl_value_replace_uses(tl_op_result(op, 0), inside);
  tl_op_erase(op);
}

typedef struct first_access {
  const tl_value *buffer;
  bool stores;  // look for a STORE only
  tl_op *found;
} first_access;

static void visit_access(tl_op *op, void *user) {
  first_access *search = user;
  if (search->found || (op->code != TL_OP_LOAD && op->code != TL_OP_STORE)) return;
  if (search->stores && op->code != TL_OP_STORE) return;
  if (tl_element_buffer(op) == search->buffer) search->found = op;
}

static tl_op *find_access(tl_op *parallel, const tl_value *buffer, bool stores) {
  first_access search = {buffer, stores, NULL};
  tl_walk(parallel, visit_access, &search);
  return search.found;
}

static void promote_parallel(promotion *self, tl_op *op, tl_value **state) {
  bool *written = written_inside(self, op);
  tl_value **elements = new_state(self, state);
  TL_VEC(const tl_type *) types = {0};
  TL_VEC(int64_t) maps = {0};
  int32_t old_len = 0;
  const int64_t *old_maps = tl_op_ints(op, TL_ATTR_MAPS, &old_len);
  for (int32_t i = 0; i < old_len; i++) tl_vec_push(&maps, old_maps[i]);
  tl_builder builder;
  if (op->regions[0]->first) {
    tl_builder_before(&builder, self->module, op->regions[0]->first);
  } else {
    tl_builder_at_end(&builder, self->module, op->regions[0]);
  }
  builder.loc = op->loc;
  for (size_t f = 0; f < self->count; f++) {
    if (self->fragments->items.items[f].demoted || find_access(op, buffer_at(self, f), false) == NULL) continue;
    tl_value *tile = current(self, state, f, op);
    elements[f] = tile;
    if (!written[f]) continue;
    const tl_op *store = find_access(op, buffer_at(self, f), true);
    elements[f] = build_extract(self, &builder, tile, store);
    int32_t map[TL_MAX_RANK];
    tl_fragment_access_map(store, op, map);
    for (int32_t d = 0; d < tile->type->rank; d++) tl_vec_push(&maps, map[d]);
    tl_vec_push(&types, tile->type);
  }
  promote_block(self, op->regions[0], elements);
  if (types.len > 0) {
    tl_op *yield = tl_region_yield(self->module, op->regions[0], op->loc);
    for (size_t f = 0; f < self->count; f++) {
      if (written[f]) tl_yield_append(self->module, yield, &elements[f], 1);
    }
    uint32_t first = op->num_results;
    tl_op *fresh = tl_op_add_results(self->module, op, types.items, (uint32_t)types.len);
    tl_op_set_ints(self->module, fresh, TL_ATTR_MAPS, maps.items, (int32_t)maps.len);
    for (size_t f = 0; f < self->count; f++) {
      if (written[f]) set_current(self, state, (int)f, tl_op_result(fresh, first++));
    }
  }
  tl_vec_fini(&types);
  tl_vec_fini(&maps);
}

// ---- control flow, of tiles and of elements alike

static void promote_for(promotion *self, tl_op *op, tl_value **state) {
  bool *written = written_inside(self, op);
  TL_VEC(tl_value *) inits = {0};
  for (size_t f = 0; f < self->count; f++) {
    if (written[f]) tl_vec_push(&inits, current(self, state, f, op));
  }
  if (inits.len == 0) {
    promote_block(self, op->regions[0], new_state(self, state));
    return;
  }
  uint32_t first = op->num_results;
  tl_op *loop = tl_for_add_carried(self->module, op, inits.items, (uint32_t)inits.len);
  tl_value **inner = new_state(self, state);
  for (size_t f = 0, next = first; f < self->count; f++) {
    if (written[f]) set_current(self, inner, (int)f, loop->regions[0]->args[1 + next++]);
  }
  promote_block(self, loop->regions[0], inner);
  tl_op *yield = tl_region_yield(self->module, loop->regions[0], loop->loc);
  for (size_t f = 0, next = first; f < self->count; f++) {
    if (!written[f]) continue;
    tl_yield_append(self->module, yield, &inner[f], 1);
    set_current(self, state, (int)f, tl_op_result(loop, (uint32_t)next++));
  }
  tl_vec_fini(&inits);
}

static void promote_if(promotion *self, tl_op *op, tl_value **state) {
  bool *written = written_inside(self, op);
  TL_VEC(const tl_type *) types = {0};
  for (size_t f = 0; f < self->count; f++) {
    if (written[f]) tl_vec_push(&types, current(self, state, f, op)->type);
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    tl_value **branch = new_state(self, state);
    promote_block(self, op->regions[r], branch);
    tl_op *yield = tl_region_yield(self->module, op->regions[r], op->loc);
    for (size_t f = 0; f < self->count; f++) {
      if (written[f]) tl_yield_append(self->module, yield, &branch[f], 1);
    }
  }
  if (types.len > 0) {
    uint32_t next = op->num_results;
    tl_op *fresh = tl_op_add_results(self->module, op, types.items, (uint32_t)types.len);
    for (size_t f = 0; f < self->count; f++) {
      if (written[f]) set_current(self, state, (int)f, tl_op_result(fresh, next++));
    }
  }
  tl_vec_fini(&types);
}

// A fragment is one role's, and nothing follows the roles.
static void promote_roles(promotion *self, tl_op *op, tl_value **state) {
  for (tl_op *role = op->regions[0]->first; role; role = role->next)
    if (role->code == TL_OP_ROLE) promote_block(self, role->regions[0], new_state(self, state));
}

static void promote_block(promotion *self, tl_block *block, tl_value **state) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    switch (op->code) {
      case TL_OP_FILL:
        promote_fill(self, op, state);
        break;
      case TL_OP_COPY:
        promote_copy(self, op, state);
        break;
      case TL_OP_GEMM:
        promote_gemm(self, op, state);
        break;
      case TL_OP_REDUCE:
        promote_reduce(self, op, state);
        break;
      case TL_OP_SCAN:
        promote_scan(self, op, state);
        break;
      case TL_OP_LOAD:
        promote_load(self, op, state);
        break;
      case TL_OP_STORE:
        promote_store(self, op, state);
        break;
      case TL_OP_IN_BOUNDS:
        promote_in_bounds(self, op);
        break;
      case TL_OP_PARALLEL:
        promote_parallel(self, op, state);
        break;
      case TL_OP_FOR:
        promote_for(self, op, state);
        break;
      case TL_OP_IF:
        promote_if(self, op, state);
        break;
      case TL_OP_ROLES:
        promote_roles(self, op, state);
        break;
      default:
        break;
    }
  }
}

// ---- the pass

// Views keep the memory's scope.
static void retype_views(tl_module *module, tl_value *buffer) {
  for (const tl_use *use = buffer->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_VIEW) continue;
    tl_value *view = tl_op_result(use->owner, 0);
    view->type = tl_type_buffer(module, TL_SCOPE_SHARED, view->type->dtype, view->type->dims, view->type->rank);
    retype_views(module, view);
  }
}

static void demote_alloc(tl_fragments *fragments, tl_fragment *fragment) {
  const tl_type *type = fragment->buffer->type;
  fragment->buffer->type = tl_type_buffer(fragments->module, TL_SCOPE_SHARED, type->dtype, type->dims, type->rank);
  retype_views(fragments->module, fragment->buffer);
  tl_diag *diag = tl_diag_report(fragments->context->diags, TL_DIAG_FRAGMENT_IN_SHARED, fragment->demoted_at,
                                 "the fragment tile '%s' is kept in shared memory: %s",
                                 tl_buffer_name(fragment->buffer), fragment->demoted);
  tl_diag_add_note(fragments->context->diags, diag, fragment->buffer->def->loc, "it is declared here");
}

static void promote_kernel(tl_fragments *fragments) {
  promotion self = {fragments, fragments->module, fragments->items.len};
  promote_block(&self, fragments->kernel->regions[0], new_state(&self, NULL));
  for (size_t f = 0; f < fragments->items.len; f++) {
    tl_value *buffer = fragments->items.items[f].buffer;
    if (!fragments->items.items[f].demoted && buffer->uses == NULL) tl_op_erase(buffer->def);
  }
  tl_prune_unused(fragments->module, fragments->kernel->regions[0]);
}

static tl_status run_kernel(tl_pass_context *context, tl_op *kernel) {
  tl_fragments fragments = {.context = context, .module = context->module, .kernel = kernel};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || tl_op_result(op, 0)->type->scope != TL_SCOPE_FRAGMENT) continue;
    tl_fragment fragment = {.buffer = tl_op_result(op, 0)};
    tl_vec_push(&fragments.items, fragment);
  }
  tl_fragments_unify_unit_dims(&fragments);
  tl_fragments_analyze(&fragments);
  for (size_t f = 0; f < fragments.items.len; f++) {
    if (fragments.items.items[f].demoted) demote_alloc(&fragments, &fragments.items.items[f]);
  }
  tl_status status = tl_fragments_normalize(&fragments);
  if (status == TL_OK) promote_kernel(&fragments);
  tl_vec_fini(&fragments.items);
  return status;
}

tl_status tl_pass_promote_fragments(tl_pass_context *context) {
  context->module->level = 1;
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) TL_TRY(run_kernel(context, op));
  }
  return TL_OK;
}
