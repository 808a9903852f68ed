// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emission of one pipelined loop: rings, prologue, steady loop (see pipeline.c for the shape).
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/check/check_bounds.h"
#include "passes/pipeline/pipeline_internal.h"
#include "passes/tile/loop_rewrite.h"

// A tile that travels in a ring: the alloc in the source and the staged one.
typedef struct staged_tile {
  tl_value *tile;
  tl_value *staged;
  int group;
  tl_value *readable;  // the part of the slot that the current iteration reads
} staged_tile;

typedef struct emitter {
  tl_pass_context *context;
  tl_module *module;
  const tl_dependence *dependence;
  tl_op *loop;   // the old one
  tl_op *fresh;  // the new one
  const tl_ring_plan *plan;
  tl_value *trips;     // number of iterations; may be negative, then there are none
  tl_value **rings;    // per group
  tl_op_list *slices;  // per group
  TL_VEC(staged_tile) tiles;
} emitter;

static tl_value *iteration_value(const emitter *self, tl_builder *builder, tl_value *k) {
  tl_value *step = tl_op_arg(self->loop, TL_GROUP_FOR_step);
  tl_value *lower = tl_op_arg(self->loop, TL_GROUP_FOR_lower);
  return tl_index_add(builder, lower, tl_index_mul(builder, k, step));
}

static tl_value *trip_count(const tl_op *loop, tl_builder *builder) {
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower);
  tl_value *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  tl_value *step = tl_op_arg(loop, TL_GROUP_FOR_step);
  int64_t constant = 1;
  if (tl_value_const_int(step, &constant) && constant < 0) {
    tl_value *down = tl_build_index(builder, -constant);
    return tl_index_ceildiv(builder, tl_index_sub(builder, lower, upper), down);
  }
  return tl_index_ceildiv(builder, tl_index_sub(builder, upper, lower), step);
}

// Where the first copies start: before a wait for other copies that stands directly before the loop, so that all of
// them are on their way together.
static tl_op *before_waits(tl_op *loop) {
  tl_op *at = loop;
  while (at->prev && (at->prev->code == TL_OP_ASYNC_WAIT || at->prev->code == TL_OP_BARRIER)) at = at->prev;
  return at;
}

// ---- declarations

static bool used_outside(const tl_op *loop, const tl_value *tile) {
  tl_op *kernel = tl_op_enclosing(loop, TL_OP_KERNEL);
  tl_effect_list effects = {0};
  tl_effects_inside(kernel, &effects);
  bool found = false;
  for (size_t i = 0; i < effects.len && !found; i++) {
    found = effects.items[i].root == tile && !tl_op_is_inside(effects.items[i].op, loop);
  }
  tl_vec_fini(&effects);
  return found;
}

// The tile with one copy per stage: the alloc itself, or one of the loop's own when others use the alloc too.
static tl_value *stage_tile(emitter *self, tl_builder *head, tl_value *tile) {
  tl_op *alloc = tile->def;
  if (used_outside(self->loop, tile)) {
    tl_builder builder = *head;
    builder.loc = alloc->loc;
    alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &tile->type, 1);
    tl_op_copy_attrs(self->module, alloc, tile->def);
    tl_op_result(alloc, 0)->name = tile->name;
  }
  if (self->plan->stages > 1) tl_op_set_int(self->module, alloc, TL_ATTR_DEPTH, self->plan->stages);
  return tl_op_result(alloc, 0);
}

static staged_tile *find_tile(emitter *self, const tl_value *tile) {
  for (size_t i = 0; i < self->tiles.len; i++) {
    if (self->tiles.items[i].tile == tile) return &self->tiles.items[i];
  }
  return NULL;
}

static void declare(emitter *self) {
  tl_op *kernel = tl_op_enclosing(self->loop, TL_OP_KERNEL);
  tl_builder head;
  tl_builder_before(&head, self->module, tl_op_in_block(before_waits(self->loop), kernel->regions[0]));
  head.loc = self->loop->loc;
  tl_arena *scratch = &self->context->scratch;
  size_t groups = self->dependence->groups.len;
  self->rings = TL_NEW_ARRAY(scratch, tl_value *, groups);
  self->slices = TL_NEW_ARRAY(scratch, tl_op_list, groups);
  for (size_t p = 0; p < self->dependence->producers.len; p++) {
    const tl_producer *producer = &self->dependence->producers.items[p];
    if (producer->blocked || find_tile(self, producer->tile)) continue;
    staged_tile tile = {producer->tile, stage_tile(self, &head, producer->tile), producer->group, NULL};
    tl_vec_push(&self->tiles, tile);
  }
  const tl_type *type = tl_type_simple(self->module, TL_TYPE_RING);
  for (size_t g = 0; g < groups; g++) {
    tl_op *ring = tl_build(&head, TL_OP_RING, NULL, &type, 1);
    tl_strbuf name;
    tl_strbuf_init(&name);
    for (size_t t = 0; t < self->tiles.len; t++) {
      if (self->tiles.items[t].group != (int)g) continue;
      tl_strbuf_appendf(&name, "%s%s", name.len ? "+" : "", tl_buffer_name(self->tiles.items[t].tile));
    }
    tl_op_set_str(self->module, ring, TL_ATTR_NAME, tl_strbuf_view(&name));
    tl_op_set_int(self->module, ring, TL_ATTR_DEPTH, self->plan->stages);
    if (self->plan->by_engine[g]) tl_op_set_int(self->module, ring, TL_ATTR_SIGNAL, TL_SIGNAL_BARRIERS);
    const tl_attr *roles = tl_op_attr(self->loop, TL_ATTR_SPECIALIZE);
    if (roles && self->plan->by_engine[g]) tl_op_set_attr(self->module, ring, roles);
    tl_strbuf_fini(&name);
    self->rings[g] = tl_op_result(ring, 0);
    tl_dependence_slice(self->dependence, (int)g, &self->slices[g]);
  }
}

// ---- producers

typedef struct slice_clone {
  emitter *self;
  int group;
  tl_value_map map;
  TL_VEC(tl_value *) tokens;
  bool wrote;  // threads wrote into the slot, and did not meet since
} slice_clone;

static const tl_producer *producer_of(const tl_dependence *dependence, const tl_op *op, int group) {
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (producer->op == op && producer->group == group) return producer;
  }
  return NULL;
}

// A computation for another iteration; in the prologue it often folds to a constant.
static void clone_pure(slice_clone *clone, tl_builder *builder, const tl_op *op) {
  tl_op *copy = tl_op_clone(builder, op, &clone->map);
  if (copy->num_results != 1 || !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) || op->code == TL_OP_CONST) return;
  tl_value *folded = tl_fold_op(builder, copy);
  if (folded == NULL) return;
  tl_value_map_set(&clone->map, tl_op_result(op, 0), folded);
  tl_op_erase(copy);
}

static void clone_slice(slice_clone *clone, tl_builder *builder, const tl_block *block, bool conditional);

static void clone_producer(slice_clone *clone, tl_builder *builder, const tl_producer *producer, bool conditional) {
  tl_module *module = clone->self->module;
  tl_op *copy = tl_op_clone(builder, producer->op, &clone->map);
  if (!producer->by_threads) tl_op_set_unit(module, copy, TL_ATTR_ASYNC);
  tl_refine_bounds(module, copy);
  clone->wrote |= producer->by_threads;
  if (copy->code != TL_OP_COPY || producer->by_threads) return;
  const tl_type *token = tl_type_simple(module, TL_TYPE_TOKEN);
  tl_op_set_results(module, copy, &token, 1);
  if (!conditional) tl_vec_push(&clone->tokens, tl_op_result(copy, 0));
}

// The part of an `if` or of a loop that the slice holds. What the loop carries is no part of it.
static void clone_around(slice_clone *clone, tl_builder *builder, const tl_op *op) {
  tl_module *module = clone->self->module;
  tl_value *scalars[3] = {NULL};
  uint32_t count = op->code == TL_OP_FOR ? 3 : 1;
  for (uint32_t i = 0; i < count; i++) scalars[i] = tl_value_map_get(&clone->map, tl_op_operand(op, i));
  tl_group of_if[] = {{scalars, 1}};
  tl_group of_for[] = {{scalars, 1}, {scalars + 1, 1}, {scalars + 2, 1}, TL_GROUP_EMPTY};
  builder->loc = op->loc;
  tl_op *around = tl_build(builder, op->code, op->code == TL_OP_FOR ? of_for : of_if, NULL, 0);
  tl_op_copy_attrs(module, around, op);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    const tl_value *index = op->code == TL_OP_FOR ? op->regions[r]->args[0] : NULL;
    if (index)
      tl_value_map_set(&clone->map, index, tl_block_add_arg(module, around->regions[r], index->type, index->name));
    tl_builder inner;
    tl_builder_at_end(&inner, module, around->regions[r]);
    inner.loc = op->loc;
    clone_slice(clone, &inner, op->regions[r], true);
    tl_region_yield(module, around->regions[r], op->loc);
  }
}

// Whether the op is or holds a copy that writes over what threads wrote.
static bool follows_barrier(const slice_clone *clone, const tl_op *op) {
  const tl_dependence *dependence = clone->self->dependence;
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (producer->group == clone->group && producer->after_barrier && tl_op_is_inside(producer->op, op)) return true;
  }
  return false;
}

// Clones the marked ops of `block` in order; producers become asynchronous. Tokens count only outside of ifs.
static void clone_slice(slice_clone *clone, tl_builder *builder, const tl_block *block, bool conditional) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (!tl_op_list_has(&clone->self->slices[clone->group], op)) continue;
    if (block == clone->self->loop->regions[0] && clone->wrote && follows_barrier(clone, op)) {
      builder->loc = op->loc;
      tl_build(builder, TL_OP_BARRIER, NULL, NULL, 0);
      clone->wrote = false;
    }
    const tl_producer *producer = producer_of(clone->self->dependence, op, clone->group);
    if (producer) {
      clone_producer(clone, builder, producer, conditional);
    } else if (op->code == TL_OP_IF || op->code == TL_OP_FOR) {
      clone_around(clone, builder, op);
    } else {
      clone_pure(clone, builder, op);
    }
  }
}

static tl_value *emit_acquire(emitter *self, tl_builder *builder, int group, tl_value *k) {
  const tl_type *slot_type = tl_type_simple(self->module, TL_TYPE_SLOT);
  tl_group groups[] = {TL_GROUP_OF(self->rings[group]), TL_GROUP_OF(k)};
  return tl_op_result(tl_build(builder, TL_OP_RING_ACQUIRE, groups, &slot_type, 1), 0);
}

static void emit_commit(slice_clone *clone, tl_builder *builder) {
  tl_group groups[] = {TL_GROUP_OF(clone->self->rings[clone->group]),
                       {clone->tokens.items, (uint32_t)clone->tokens.len}};
  tl_build(builder, TL_OP_RING_COMMIT, groups, NULL, 0);
}

// The group's copies for iteration k into `slot`.
static void emit_copies(slice_clone *clone, tl_builder *builder, tl_value *slot, tl_value *k, bool conditional) {
  emitter *self = clone->self;
  tl_value_map_set(&clone->map, self->loop->regions[0]->args[0], iteration_value(self, builder, k));
  for (size_t t = 0; t < self->tiles.len; t++) {
    const staged_tile *tile = &self->tiles.items[t];
    if (tile->group != clone->group) continue;
    tl_group groups[] = {TL_GROUP_OF(slot), TL_GROUP_OF(tile->staged)};
    tl_op *part = tl_build(builder, TL_OP_RING_TILE, groups, &tile->tile->type, 1);
    tl_value_map_set(&clone->map, tile->tile, tl_op_result(part, 0));
  }
  clone_slice(clone, builder, self->loop->regions[0], conditional);
}

// acquire(k), the group's copies for iteration k if k < trips, commit. Groups of cp.async are counted, so that slots of
// iterations that do not exist are committed too; mbarriers count what there is.
static void emit_producers(emitter *self, tl_builder *builder, int group, tl_value *k) {
  tl_module *module = self->module;
  bool by_engine = self->plan->by_engine[group];
  slice_clone clone = {.self = self, .group = group};
  int64_t at = 0, trips = 0;
  bool decided = tl_value_const_int(k, &at) && tl_value_const_int(self->trips, &trips);
  if (decided && at >= trips && by_engine) return;
  tl_value *slot = by_engine ? NULL : emit_acquire(self, builder, group, k);
  tl_builder inner = *builder;
  if (!decided) {
    tl_group groups[] = {TL_GROUP_OF(tl_build_cmp(builder, TL_CMP_LT, k, self->trips))};
    tl_op *guard = tl_build(builder, TL_OP_IF, groups, NULL, 0);
    tl_op_set_unit(module, guard, TL_ATTR_UNIFORM);
    tl_region_yield(module, guard->regions[1], builder->loc);
    tl_builder_at_end(&inner, module, guard->regions[0]);
    inner.loc = builder->loc;
  }
  if (by_engine) slot = emit_acquire(self, &inner, group, k);
  if (!decided || at < trips) emit_copies(&clone, &inner, slot, k, !decided && !by_engine);
  inner.loc = builder->loc;
  if (by_engine) emit_commit(&clone, &inner);
  if (!decided) tl_region_yield(module, inner.block, builder->loc);
  if (!by_engine) emit_commit(&clone, builder);
  tl_value_map_fini(&clone.map);
  tl_vec_fini(&clone.tokens);
}

// ---- consumers

static tl_value *emit_wait(emitter *self, tl_builder *builder, int group, tl_value *k, int64_t pending) {
  const tl_type *slot_type = tl_type_simple(self->module, TL_TYPE_SLOT);
  tl_group groups[] = {TL_GROUP_OF(self->rings[group]), TL_GROUP_OF(k)};
  tl_op *wait = tl_build(builder, TL_OP_RING_WAIT, groups, &slot_type, 1);
  tl_op_set_int(self->module, wait, TL_ATTR_PENDING, pending);
  for (size_t t = 0; t < self->tiles.len; t++) {
    staged_tile *tile = &self->tiles.items[t];
    if (tile->group != group) continue;
    tl_group tile_groups[] = {TL_GROUP_OF(tl_op_result(wait, 0)), TL_GROUP_OF(tile->staged)};
    tile->readable = tl_op_result(tl_build(builder, TL_OP_RING_TILE, tile_groups, &tile->tile->type, 1), 0);
    tile->readable->name = tile->tile->name;
  }
  return tl_op_result(wait, 0);
}

// Whether the op names memory that its first operand has: what reads it is pointed elsewhere, not it.
static bool is_name(const tl_op *op) {
  return op->code == TL_OP_VIEW || op->code == TL_OP_PART_TILE;
}

// `buffer` (the tile, a view or a part of it) on top of `readable` instead, built right before `user`.
static tl_value *rebase(emitter *self, tl_value *buffer, const staged_tile *tile, tl_op *user) {
  if (buffer == tile->tile) return tile->readable;
  tl_op *view = buffer->def;
  tl_value *base = rebase(self, tl_op_operand(view, 0), tile, user);
  tl_builder builder;
  tl_builder_before(&builder, self->module, user);
  builder.loc = view->loc;
  tl_value_map map = {0};
  tl_value_map_set(&map, tl_op_operand(view, 0), base);
  tl_op *copy = tl_op_clone(&builder, view, &map);
  tl_value_map_fini(&map);
  return tl_op_result(copy, 0);
}

// Points every access inside `op` at the slot's part of its tile.
static void use_slots(emitter *self, tl_op *op) {
  if (!is_name(op)) {
    for (uint32_t i = 0; i < op->num_operands; i++) {
      tl_value *value = tl_op_operand(op, i);
      if (value->type->kind != TL_TYPE_BUFFER) continue;
      const staged_tile *tile = find_tile(self, tl_effect_root(value, NULL, NULL));
      if (tile && tile->readable) tl_op_set_operand(op, i, rebase(self, value, tile, op));
    }
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first, *next; inner; inner = next) {
      next = inner->next;
      use_slots(self, inner);
    }
  }
}

static bool is_hoisted(const emitter *self, const tl_op *op) {
  for (size_t p = 0; p < self->dependence->producers.len; p++) {
    const tl_producer *producer = &self->dependence->producers.items[p];
    if (producer->op == op) return producer->blocked == NULL;
  }
  return false;
}

// Whether the op only computes, or reads memory: without a use it is nothing.
static bool has_no_effect(const tl_op *op) {
  int flags = tl_op_info_of(op->code)->flags;
  bool reads = op->code == TL_OP_LOAD && !tl_op_has(op, TL_ATTR_MEMORY_ORDER);
  bool none =
      reads || op->code == TL_OP_IF || op->code == TL_OP_FOR || (flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR));
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner && none; inner = inner->next) none = has_no_effect(inner);
  return none;
}

// Erases what now runs ahead, and the ifs and loops that held nothing else.
static void erase_hoisted(const emitter *self, tl_block *block) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (is_hoisted(self, op)) {
      tl_op_erase(op);
      continue;
    }
    for (uint32_t r = 0; r < op->num_regions; r++) erase_hoisted(self, op->regions[r]);
    bool is_around = op->code == TL_OP_IF || op->code == TL_OP_FOR;
    if (is_around && op->num_results == 0 && has_no_effect(op)) tl_op_erase(op);
  }
}

static bool is_pipeline_attr(tl_attr_key key) {
  return key == TL_ATTR_PIPELINED || key == TL_ATTR_STAGES || key == TL_ATTR_SPECIALIZE;
}

// The new loop over k = 0 … trips - 1 with the old loop's carried values.
static void build_loop(emitter *self, tl_builder *builder) {
  tl_op *loop = self->loop;
  TL_VEC(tl_value *) inits = {0};
  TL_VEC(const tl_type *) types = {0};
  for (uint32_t i = 0; i < loop->num_results; i++) {
    tl_vec_push(&inits, tl_op_group_at(loop, TL_GROUP_FOR_inits, i));
    tl_vec_push(&types, tl_op_result(loop, i)->type);
  }
  tl_group groups[] = {TL_GROUP_OF(tl_build_index(builder, 0)),
                       TL_GROUP_OF(self->trips),
                       TL_GROUP_OF(tl_build_index(builder, 1)),
                       {inits.items, (uint32_t)inits.len}};
  self->fresh = tl_build(builder, TL_OP_FOR, groups, types.items, (uint32_t)types.len);
  for (uint32_t i = 0; i < loop->num_attrs; i++) {
    if (!is_pipeline_attr(loop->attrs[i].key)) tl_op_set_attr(self->module, self->fresh, &loop->attrs[i]);
  }
  const tl_block *old = loop->regions[0];
  for (uint32_t i = 0; i < old->num_args; i++) {
    tl_block_add_arg(self->module, self->fresh->regions[0], old->args[i]->type, old->args[i]->name);
  }
  for (uint32_t i = 0; i < loop->num_results; i++) tl_op_result(self->fresh, i)->name = tl_op_result(loop, i)->name;
  tl_vec_fini(&inits);
  tl_vec_fini(&types);
}

// A store by the engine has read its tile once it was waited for.
static tl_op *behind_wait(tl_op *last) {
  bool is_store = last->code == TL_OP_COPY && tl_op_arg(last, TL_GROUP_COPY_map);
  for (tl_op *op = last; is_store && op; op = op->next)
    if (op->code == TL_OP_BULK_WAIT) return op;
  return last;
}

// Releases a slot right after the last statement that reads it, so that any later barrier serves the next acquire.
static tl_op *emit_release(emitter *self, tl_block *body, tl_value *slot) {
  tl_op *last = slot->def;
  tl_effect_list effects = {0};
  for (tl_op *op = slot->def; op; op = op->next) {
    tl_vec_clear(&effects);
    tl_effects_inside(op, &effects);
    for (size_t i = 0; i < effects.len; i++) {
      if (effects.items[i].slot == slot) last = op;
    }
  }
  tl_vec_fini(&effects);
  last = behind_wait(last);
  tl_builder builder;
  if (last->next) {
    tl_builder_before(&builder, self->module, last->next);
  } else {
    tl_builder_at_end(&builder, self->module, body);
  }
  builder.loc = self->loop->loc;
  tl_group groups[] = {TL_GROUP_OF(slot)};
  return tl_build(&builder, TL_OP_RING_RELEASE, groups, NULL, 0);
}

typedef struct gemm_work {
  int64_t fewest_steps;  // of k, in one iteration; -1: no product
  int64_t instructions;  // of one warp in one iteration
} gemm_work;

static void count_work(tl_op *op, void *user) {
  gemm_work *work = user;
  if (op->code != TL_OP_GEMM) return;
  const tl_instruction *inst = tl_op_instruction(op);
  const int64_t *warps = tl_op_ints(op, TL_ATTR_WARPS, NULL);
  const tl_type *a = tl_op_arg(op, TL_GROUP_GEMM_a)->type, *acc = tl_op_arg(op, TL_GROUP_GEMM_acc)->type;
  int64_t k = a->dims[tl_op_has(op, TL_ATTR_TRANS_A) ? 0 : 1];
  int64_t steps = inst ? k / inst->k : 0;
  // Warps that share K out have a sum each: a first dim of the accumulator.
  const int64_t *sums = acc->dims + acc->rank - 2;
  int64_t all_warps = warps ? warps[0] * warps[1] * (acc->rank == 3 ? warps[2] : 1) : 1;
  if (work->fewest_steps < 0 || steps < work->fewest_steps) work->fewest_steps = steps;
  if (inst && warps) work->instructions += sums[0] / inst->m * (sums[1] / inst->n) * steps / all_warps;
}

enum { FEWEST_STEPS = 4, FEWEST_INSTRUCTIONS = 64 };  // of a product that copies may start behind

static bool is_long(const gemm_work *work) {
  return work->fewest_steps >= FEWEST_STEPS && work->instructions >= FEWEST_INSTRUCTIONS;
}

// Whether a copy of the loop fills the tile that `operand` is a part of.
static bool is_copied(const emitter *self, const tl_value *operand) {
  for (size_t p = 0; p < self->dependence->producers.len; p++) {
    const tl_op *copy = self->dependence->producers.items[p].op;
    if (tl_buffer_root(tl_op_arg(copy, TL_GROUP_COPY_dst)) == tl_buffer_root(operand)) return true;
  }
  return false;
}

// The op before which the copies for later iterations are started; NULL: where they are, at the top. Matrix
// instructions wait for loads from shared memory, and those for copies started before them, since both use the same
// unit; behind them the copies go out between the last matrix instructions. Short iterations have no time to spare:
// measured on an H200, 128 instructions in 4 steps of k gain 4 %; 2 steps lose 10 %, and a narrow product of 16 rows
// 6 %. With one group and three stages the place is the end of the iteration, before `release`: the slot that they
// fill is that of the iteration before, free since the barrier at the top. With several groups it is behind the first
// product, if that comes before the first wait for a later group, which counts the copies as started: attention gains
// 1 to 3 %. A first product of two copied tiles loses 15 % (linear attention): all its loads stand before the copies,
// and ptxas gives them registers at once.
static tl_op *place_of_copies(const emitter *self, tl_op *first, tl_value *const *slots, tl_op *release) {
  gemm_work work = {.fewest_steps = -1};
  for (size_t p = 0; p < self->dependence->producers.len; p++) {
    const tl_producer *producer = &self->dependence->producers.items[p];
    if (producer->by_threads || producer->op->code != TL_OP_COPY) return NULL;  // a gather stays behind a branch
  }
  if (self->dependence->groups.len == 1) {
    tl_walk(self->fresh, count_work, &work);
    return self->plan->stages > 2 && is_long(&work) ? release : NULL;
  }
  for (tl_op *op = first; op && self->plan->stages > 1; op = op->next) {
    for (size_t g = 1; g < self->dependence->groups.len; g++)
      if (op == slots[g]->def) return NULL;
    if (op->code != TL_OP_GEMM) continue;
    count_work(op, &work);
    bool both = is_copied(self, tl_op_arg(op, TL_GROUP_GEMM_a)) && is_copied(self, tl_op_arg(op, TL_GROUP_GEMM_b));
    return is_long(&work) && !both ? op->next : NULL;
  }
  return NULL;
}

// Moves what was emitted from `first` to `last` before `before`.
static void move_ops(tl_op *first, tl_op *last, tl_op *before) {
  for (tl_op *op = first, *next; op; op = next) {
    next = op == last ? NULL : op->next;
    tl_op_move_before(op, before);
  }
}

// First group: waited for at the top, before this iteration's commits, so that one barrier serves wait and acquire.
static void emit_body(emitter *self) {
  tl_module *module = self->module;
  tl_block *body = self->fresh->regions[0];
  size_t groups = self->dependence->groups.len;
  tl_builder builder;
  tl_builder_at_end(&builder, module, body);
  builder.loc = self->loop->loc;
  tl_value *k = body->args[0];
  tl_value **slots = TL_NEW_ARRAY(&self->context->scratch, tl_value *, groups);
  bool wait_first = self->plan->stages > 1;
  if (wait_first) slots[0] = emit_wait(self, &builder, 0, k, tl_pipeline_ahead(self->plan, 0) - 1);
  tl_op *before_producers = NULL;
  int64_t distance = -1;
  tl_value *ahead = NULL;
  for (size_t g = 0; g < groups; g++) {
    if (tl_pipeline_ahead(self->plan, g) != distance) {
      distance = tl_pipeline_ahead(self->plan, g);
      ahead = tl_index_add(&builder, k, tl_build_index(&builder, distance));
    }
    if (!before_producers) before_producers = body->last;
    emit_producers(self, &builder, (int)g, ahead);
  }

  // The old body follows, without what now runs ahead. Its index stays before it, wherever the producers go.
  tl_op *last_producer = body->last;
  tl_block *old = self->loop->regions[0];
  tl_value_replace_uses(old->args[0], iteration_value(self, &builder, k));
  for (uint32_t i = 1; i < old->num_args; i++) tl_value_replace_uses(old->args[i], body->args[i]);
  tl_op *marker = body->last;
  tl_block_move_ops(old, body);
  for (size_t g = wait_first ? 1 : 0; g < groups; g++) {
    tl_builder_before(&builder, module, self->dependence->groups.items[g].first_reader);
    builder.loc = self->loop->loc;
    slots[g] = emit_wait(self, &builder, (int)g, k, tl_pipeline_ahead(self->plan, g));
  }
  for (tl_op *op = marker->next, *next; op; op = next) {
    next = op->next;
    if (op->code != TL_OP_RING_TILE) use_slots(self, op);
  }
  tl_region_yield(module, body, self->loop->loc);
  tl_op *release = NULL;
  for (size_t g = 0; g < groups; g++) release = emit_release(self, body, slots[g]);
  tl_op *place = place_of_copies(self, marker->next, slots, release);
  if (place) move_ops(before_producers->next, last_producer, place);
}

int64_t tl_pipeline_ahead(const tl_ring_plan *plan, size_t group) {
  // TMA fills the slot that an iteration releases in that iteration, whichever slot it is. Copies by threads start at
  // the iteration's top, where a slot that is released late is not free yet.
  return plan->stages - 1 - (plan->by_engine[group] ? 0 : plan->lag);
}

tl_op *tl_pipeline_emit(tl_pass_context *context, const tl_dependence *dependence, const tl_ring_plan *plan) {
  emitter self = {
      .context = context, .module = context->module, .dependence = dependence, .loop = dependence->loop, .plan = plan};
  tl_builder builder;
  tl_builder_before(&builder, self.module, before_waits(self.loop));
  builder.loc = self.loop->loc;
  self.trips = trip_count(self.loop, &builder);
  declare(&self);
  for (int64_t p = 0; p < plan->stages - 1; p++) {
    for (size_t g = 0; g < dependence->groups.len; g++) {
      if (p < tl_pipeline_ahead(plan, g)) emit_producers(&self, &builder, (int)g, tl_build_index(&builder, p));
    }
  }
  tl_builder_before(&builder, self.module, self.loop);
  builder.loc = self.loop->loc;
  build_loop(&self, &builder);
  emit_body(&self);
  erase_hoisted(&self, self.fresh->regions[0]);
  for (uint32_t i = 0; i < self.loop->num_results; i++) {
    tl_value_replace_uses(tl_op_result(self.loop, i), tl_op_result(self.fresh, i));
  }
  if (plan->lag) tl_pipeline_float(context, self.fresh);
  tl_op_erase(self.loop);
  for (size_t g = 0; g < dependence->groups.len; g++) tl_vec_fini(&self.slices[g]);
  tl_vec_fini(&self.tiles);
  return self.fresh;
}
