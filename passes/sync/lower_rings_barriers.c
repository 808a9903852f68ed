// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings whose sides meet at mbarriers.
//
//   %r = ring {depth 3, signal barriers}      %full = mbarrier {depth 3, arrivals 1}   %empty = … {arrivals: the warps}
//                                             mbarrier_init; barrier
//   %a = ring_acquire(%r)                     mbarrier_wait %empty, %stage, %phase {each = role}
//   copy … -> ring_tile(%a, %A_s)         ⇒   copy … -> stage_tile(%A_s, %stage) barrier(%full) stage(%stage)
//   ring_commit(%r)                           mbarrier_arrive %full, %stage, bytes of the copies {each = role}
//   %w = ring_wait(%r)                        mbarrier_wait %full, %stage, %phase {each = thread}
//   ring_release(%w)                          fence_proxy; mbarrier_arrive %empty, %stage {each = warp}
//
// A ring is first in, first out on both sides, so the place of an acquire or wait is the number of those that ran
// before it: stage and phase of a side are carried through the loops and ifs that hold its operations, from the
// kernel's beginning. The phase of who acquires starts turned: the first round of slots is free.
//
// The arrival expects the bytes that are certain, behind the copies (it holds the phase until then); what stands under
// a condition expects its own bytes there. A slot was read by ordinary loads, which an arrival does not wait for: each
// warp fences before it releases. Where only matrix units read it, one thread of each warpgroup releases: the product
// has ended for the warpgroup as a whole, and read through the engine's own proxy.
//
// Slots that are released one iteration late: the release of iteration n frees the slot of iteration n - 1, and arrives
// where a release of its own slot would. So stage s of `empty` stands for slot s - 1, and an acquire waits at the place
// that comes next; the first release frees the last slot, which was never filled. After a loop its last slot is still
// held, until the first iteration of the next run.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/sync/lower_rings.h"
#include "passes/tile/loop_rewrite.h"

enum { WARP_THREADS = 32, WARPGROUP_THREADS = 128, PRODUCER = 0, CONSUMER = 1, NUM_SIDES = 2 };

// Where a side of a ring is; NULL stage: the ring has one slot.
typedef struct ring_side {
  tl_value *stage, *phase;
} ring_side;

typedef struct barrier_ring {
  tl_op *op;
  int64_t depth;
  bool is_late;    // released one iteration late
  bool by_matrix;  // only matrix units read its slots
  tl_value *full, *empty;
  ring_side sides[NUM_SIDES];
  TL_VEC(tl_op *) copies;  // into the slot that was acquired last
  tl_value *filling;       // its stage
} barrier_ring;

typedef struct ring_lowering {
  tl_module *module;
  tl_op *kernel;
  barrier_ring *rings;  // in scratch memory
  size_t num_rings;
  tl_value_map stages;  // of slots
} ring_lowering;

static bool has_mbarriers(const tl_op *ring) {
  return tl_op_int(ring, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_BARRIERS;
}

static barrier_ring *find_ring(ring_lowering *self, const tl_value *ring) {
  for (size_t i = 0; i < self->num_rings; i++)
    if (tl_op_result(self->rings[i].op, 0) == ring) return &self->rings[i];
  return NULL;
}

static tl_builder builder_before(const ring_lowering *self, tl_op *op) {
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  return builder;
}

// ---- stages and phases

static tl_value *folded(tl_builder *builder, tl_value *value) {
  tl_op *op = value->def;
  tl_value *simple = op->code == TL_OP_CONST ? NULL : tl_fold_op(builder, op);
  if (!simple) return value;
  tl_op_erase(op);
  return simple;
}

static tl_value *binary(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b) {
  return folded(builder, tl_build_binary(builder, code, a, b));
}

static void advance(tl_builder *builder, const barrier_ring *ring, ring_side *side) {
  tl_value *turned = binary(builder, TL_OP_SUB, tl_build_index(builder, 1), side->phase);
  if (ring->depth == 1) {
    side->phase = turned;
    return;
  }
  tl_value *next = binary(builder, TL_OP_ADD, side->stage, tl_build_index(builder, 1));
  tl_value *wraps = folded(builder, tl_build_cmp(builder, TL_CMP_EQ, next, tl_build_index(builder, ring->depth)));
  side->stage = folded(builder, tl_build_select(builder, wraps, tl_build_index(builder, 0), next));
  side->phase = folded(builder, tl_build_select(builder, wraps, turned, side->phase));
}

static tl_value *stage_of(tl_builder *builder, const ring_side *side) {
  return side->stage ? side->stage : tl_build_index(builder, 0);
}

// ---- mbarrier ops

static void build_wait(tl_builder *builder, tl_value *barrier, tl_value *stage, tl_value *phase, int each) {
  tl_group groups[] = {TL_GROUP_OF(barrier), TL_GROUP_OF(stage), TL_GROUP_OF(phase)};
  tl_op *wait = tl_build(builder, TL_OP_MBARRIER_WAIT, groups, NULL, 0);
  tl_op_set_int(builder->module, wait, TL_ATTR_EACH, each);
}

static void build_arrive(tl_builder *builder, tl_value *barrier, tl_value *stage, int64_t bytes, int each) {
  tl_value *count = bytes ? tl_build_index(builder, bytes) : NULL;
  tl_group groups[] = {TL_GROUP_OF(barrier), TL_GROUP_OF(stage), {&count, bytes ? 1 : 0}};
  tl_op *arrive = tl_build(builder, TL_OP_MBARRIER_ARRIVE, groups, NULL, 0);
  tl_op_set_int(builder->module, arrive, TL_ATTR_EACH, each);
}

static int64_t copy_bytes(const tl_op *copy) {
  const tl_value *src = tl_op_arg(copy, TL_GROUP_COPY_src);
  const tl_attr *extents = tl_op_attr(copy, TL_ATTR_EXTENTS);
  int64_t elements = 1;
  for (int32_t i = 0; i < extents->v.ints.len; i++) elements *= extents->v.ints.items[i];
  return elements * tl_dtype_bits(src->type->dtype) / 8;
}

// ---- ring ops

static void lower_slot(ring_lowering *self, tl_op *op) {
  barrier_ring *ring = find_ring(self, tl_op_operand(op, 0));
  if (!ring) return;
  bool acquires = op->code == TL_OP_RING_ACQUIRE, waits_ahead = acquires && ring->is_late;
  ring_side *side = &ring->sides[acquires ? PRODUCER : CONSUMER];
  tl_builder builder = builder_before(self, op);
  tl_value *stage = stage_of(&builder, side);
  if (waits_ahead) advance(&builder, ring, side);
  build_wait(&builder, acquires ? ring->empty : ring->full, stage_of(&builder, side), side->phase,
             acquires ? TL_EACH_ROLE : TL_EACH_THREAD);
  tl_value_map_set(&self->stages, tl_op_result(op, 0), stage);
  if (acquires) {
    tl_vec_clear(&ring->copies);
    ring->filling = stage;
  }
  if (!waits_ahead) advance(&builder, ring, side);
}

static void lower_tile(ring_lowering *self, tl_op *op) {
  const tl_op *from = tl_op_arg(op, TL_GROUP_RING_TILE_slot)->def;
  barrier_ring *ring = find_ring(self, tl_op_operand(from, 0));
  if (!ring) return;
  tl_value *tile = tl_op_arg(op, TL_GROUP_RING_TILE_tile), *with = tile;
  tl_value *stage = tl_value_map_get(&self->stages, tl_op_arg(op, TL_GROUP_RING_TILE_slot));
  tl_builder builder = builder_before(self, op);
  if (ring->depth > 1) {
    tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(stage)};
    with = tl_op_result(tl_build(&builder, TL_OP_STAGE_TILE, groups, &tile->type, 1), 0);
    with->name = tl_op_result(op, 0)->name;
  }
  for (const tl_use *use = tl_op_result(op, 0)->uses; use && from->code == TL_OP_RING_ACQUIRE; use = use->next)
    tl_vec_push(&ring->copies, use->owner);
  tl_value_replace_uses(tl_op_result(op, 0), with);
  tl_op_erase(op);
}

static void lower_commit(ring_lowering *self, tl_op *op) {
  barrier_ring *ring = find_ring(self, tl_op_operand(op, 0));
  if (!ring) return;
  tl_op_set_group(self->module, op, TL_GROUP_RING_COMMIT_tokens, NULL, 0);
  int64_t bytes = 0;
  for (size_t i = 0; i < ring->copies.len; i++) {
    tl_op *copy = ring->copies.items[i];
    tl_op_set_results(self->module, copy, NULL, 0);
    tl_op_set_group(self->module, copy, TL_GROUP_COPY_barrier, &ring->full, 1);
    tl_op_set_group(self->module, copy, TL_GROUP_COPY_stage, &ring->filling, 1);
    if (copy->parent == op->parent) {
      bytes += copy_bytes(copy);
      continue;
    }
    tl_builder builder = builder_before(self, copy);
    tl_group groups[] = {TL_GROUP_OF(ring->full), TL_GROUP_OF(ring->filling),
                         TL_GROUP_OF(tl_build_index(&builder, copy_bytes(copy)))};
    tl_build(&builder, TL_OP_MBARRIER_EXPECT, groups, NULL, 0);
  }
  tl_builder builder = builder_before(self, op);
  build_arrive(&builder, ring->full, ring->filling, bytes, TL_EACH_ROLE);
  tl_op_erase(op);
}

// Whether the threads have made a fence since they last touched memory: slots of several rings are released together.
static bool is_fenced(const tl_op *release) {
  const int touches = TL_OPFLAG_READ | TL_OPFLAG_WRITE | TL_OPFLAG_CONTROL;
  for (const tl_op *op = release->prev; op && op->num_regions == 0; op = op->prev) {
    if (op->code == TL_OP_FENCE_PROXY) return tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_SHARED;
    bool orders = (tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC) && op->code != TL_OP_MBARRIER_ARRIVE;
    if (orders || tl_op_info_of(op->code)->flags & touches) return false;
  }
  return false;
}

static void lower_release(ring_lowering *self, tl_op *op) {
  tl_value *slot = tl_op_operand(op, 0);
  barrier_ring *ring = find_ring(self, tl_op_operand(slot->def, 0));
  if (!ring) return;
  tl_builder builder = builder_before(self, op);
  if (!ring->by_matrix && !is_fenced(op)) tl_build(&builder, TL_OP_FENCE_PROXY, NULL, NULL, 0);
  build_arrive(&builder, ring->empty, tl_value_map_get(&self->stages, slot), 0,
               ring->by_matrix ? TL_EACH_WARPGROUP : TL_EACH_WARP);
  tl_op_erase(op);
}

// ---- the walk

static void lower_block(ring_lowering *self, tl_block *block);

static bool holds_side(const tl_op *op, const barrier_ring *ring, int side) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      bool is_side = inner->code == (side == PRODUCER ? TL_OP_RING_ACQUIRE : TL_OP_RING_WAIT);
      if (is_side && tl_op_operand(inner, 0) == tl_op_result(ring->op, 0)) return true;
      if (holds_side(inner, ring, side)) return true;
    }
  }
  return false;
}

typedef TL_VEC(tl_value **) place_list;

// The values of sides that move inside of `op`.
static void moving_places(ring_lowering *self, const tl_op *op, place_list *out) {
  for (size_t i = 0; i < self->num_rings; i++) {
    for (int s = 0; s < NUM_SIDES; s++) {
      ring_side *side = &self->rings[i].sides[s];
      if (!holds_side(op, &self->rings[i], s)) continue;
      if (side->stage) tl_vec_push(out, &side->stage);
      tl_vec_push(out, &side->phase);
    }
  }
}

static void append_places(ring_lowering *self, tl_block *block, const place_list *places) {
  tl_op *yield = tl_region_yield(self->module, block, block->parent->loc);
  for (size_t i = 0; i < places->len; i++) tl_yield_append(self->module, yield, places->items[i], 1);
}

static tl_op *lower_for(ring_lowering *self, tl_op *op) {
  place_list places = {0};
  moving_places(self, op, &places);
  uint32_t first = op->num_results, count = (uint32_t)places.len;
  TL_VEC(tl_value *) inits = {0};
  for (uint32_t i = 0; i < count; i++) tl_vec_push(&inits, *places.items[i]);
  if (count) op = tl_for_add_carried(self->module, op, inits.items, count);
  tl_block *body = op->regions[0];
  for (uint32_t i = 0; i < count; i++) *places.items[i] = body->args[1 + first + i];
  lower_block(self, body);
  if (count) append_places(self, body, &places);
  for (uint32_t i = 0; i < count; i++) *places.items[i] = tl_op_result(op, first + i);
  tl_vec_fini(&inits);
  tl_vec_fini(&places);
  return op;
}

static tl_op *lower_if(ring_lowering *self, tl_op *op) {
  place_list places = {0};
  moving_places(self, op, &places);
  uint32_t first = op->num_results, count = (uint32_t)places.len;
  TL_VEC(tl_value *) before = {0};
  TL_VEC(const tl_type *) types = {0};
  for (uint32_t i = 0; i < count; i++) {
    tl_vec_push(&before, *places.items[i]);
    tl_vec_push(&types, (*places.items[i])->type);
  }
  if (count) op = tl_op_add_results(self->module, op, types.items, count);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (uint32_t i = 0; i < count; i++) *places.items[i] = before.items[i];
    lower_block(self, op->regions[r]);
    if (count) append_places(self, op->regions[r], &places);
  }
  for (uint32_t i = 0; i < count; i++) *places.items[i] = tl_op_result(op, first + i);
  tl_vec_fini(&before);
  tl_vec_fini(&types);
  tl_vec_fini(&places);
  return op;
}

static void lower_block(ring_lowering *self, tl_block *block) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    switch (op->code) {
      case TL_OP_FOR:
        op = lower_for(self, op);
        next = op->next;
        break;
      case TL_OP_IF:
        op = lower_if(self, op);
        next = op->next;
        break;
      case TL_OP_ROLES:
      case TL_OP_ROLE:
        // A side is in one role.
        lower_block(self, op->regions[0]);
        break;
      case TL_OP_RING_ACQUIRE:
      case TL_OP_RING_WAIT:
        lower_slot(self, op);
        break;
      case TL_OP_RING_TILE:
        lower_tile(self, op);
        break;
      case TL_OP_RING_COMMIT:
        lower_commit(self, op);
        break;
      case TL_OP_RING_RELEASE:
        lower_release(self, op);
        break;
      default:
        break;
    }
  }
}

// ---- what is known of a ring

static void find_late(tl_op *op, void *user) {
  ring_lowering *self = user;
  barrier_ring *ring =
      op->code == TL_OP_RING_RELEASE ? find_ring(self, tl_op_operand(tl_op_operand(op, 0)->def, 0)) : NULL;
  if (ring) ring->is_late |= tl_op_int(op, TL_ATTR_LAG, 0) > 0;
}

static bool is_matrix_operand(const tl_op *op, const tl_value *tile) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  if (!inst || inst->family != TL_FAMILY_WGMMA) return false;
  // Nothing brings the warps of a warpgroup together that takes no part in the product.
  const int64_t *warps = tl_op_ints(op, TL_ATTR_WARPS, NULL);
  if (!warps || warps[0] * warps[1] * WARP_THREADS != tl_op_threads(op)) return false;
  return tl_op_arg(op, TL_GROUP_GEMM_a) == tile || tl_op_arg(op, TL_GROUP_GEMM_b) == tile;
}

// Whether matrix units read what was waited for, nobody else does, and one of the products stands beside the wait: its
// end tells that every warp of the group was there.
static void look_at_readers(tl_op *wait, void *user) {
  ring_lowering *self = user;
  barrier_ring *ring = wait->code == TL_OP_RING_WAIT ? find_ring(self, tl_op_operand(wait, 0)) : NULL;
  if (!ring) return;
  bool meets = false;
  for (const tl_use *use = tl_op_result(wait, 0)->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_RING_TILE) continue;
    const tl_value *tile = tl_op_result(use->owner, 0);
    for (const tl_use *read = tile->uses; read; read = read->next) {
      ring->by_matrix &= is_matrix_operand(read->owner, tile);
      meets |= read->owner->parent == wait->parent;
    }
  }
  ring->by_matrix &= meets;
}

// ---- declarations

static tl_value *declare_mbarrier(ring_lowering *self, const barrier_ring *ring, const char *side, int64_t arrivals,
                                  tl_arena *scratch) {
  tl_builder builder = builder_before(self, self->kernel->regions[0]->first);
  builder.loc = ring->op->loc;
  const tl_type *type = tl_type_simple(self->module, TL_TYPE_MBARRIER);
  tl_op *op = tl_build(&builder, TL_OP_MBARRIER, NULL, &type, 1);
  const char *name = tl_arena_printf(scratch, "%s %s", tl_op_str(ring->op, TL_ATTR_NAME), side);
  tl_op_set_str(self->module, op, TL_ATTR_NAME, tl_str_from(name));
  tl_op_set_int(self->module, op, TL_ATTR_DEPTH, ring->depth);
  tl_op_set_int(self->module, op, TL_ATTR_ARRIVALS, arrivals);
  tl_op_result(op, 0)->name = tl_module_intern(self->module, tl_str_from(side));
  return tl_op_result(op, 0);
}

static void declare(ring_lowering *self, tl_arena *scratch) {
  int64_t threads = tl_op_threads(self->kernel);
  TL_VEC(tl_value *) all = {0};
  for (size_t i = 0; i < self->num_rings; i++) {
    barrier_ring *ring = &self->rings[i];
    ring->full = declare_mbarrier(self, ring, "full", 1, scratch);
    int64_t releases = threads / (ring->by_matrix ? WARPGROUP_THREADS : WARP_THREADS);
    ring->empty = declare_mbarrier(self, ring, "empty", releases, scratch);
    tl_vec_push(&all, ring->full);
    tl_vec_push(&all, ring->empty);
  }
  tl_builder builder = builder_before(self, self->rings[0].op);
  tl_group groups[] = {{all.items, (uint32_t)all.len}};
  tl_build(&builder, TL_OP_MBARRIER_INIT, groups, NULL, 0);
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
  for (size_t i = 0; i < self->num_rings; i++) {
    barrier_ring *ring = &self->rings[i];
    for (int s = 0; s < NUM_SIDES; s++) {
      if (ring->depth > 1) ring->sides[s].stage = tl_build_index(&builder, 0);
      ring->sides[s].phase = tl_build_index(&builder, s == PRODUCER ? 1 : 0);
    }
  }
  tl_vec_fini(&all);
}

static void erase_ops(tl_op *op, void *user) {
  ring_lowering *self = user;
  bool is_slot = op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_WAIT;
  if (is_slot && find_ring(self, tl_op_operand(op, 0))) tl_op_erase(op);
}

void tl_lower_barrier_rings(tl_pass_context *context, tl_op *kernel) {
  ring_lowering self = {.module = context->module, .kernel = kernel};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next)
    self.num_rings += op->code == TL_OP_RING && has_mbarriers(op);
  if (self.num_rings == 0) return;
  self.rings = TL_NEW_ARRAY(&context->scratch, barrier_ring, self.num_rings);
  size_t n = 0;
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_RING && has_mbarriers(op))
      self.rings[n++] = (barrier_ring){.op = op, .depth = tl_op_int(op, TL_ATTR_DEPTH, 1), .by_matrix = true};
  tl_walk(kernel, find_late, &self);
  tl_walk(kernel, look_at_readers, &self);
  declare(&self, &context->scratch);
  lower_block(&self, kernel->regions[0]);
  tl_walk(kernel, erase_ops, &self);
  for (size_t i = 0; i < self.num_rings; i++) {
    tl_vec_fini(&self.rings[i].copies);
    tl_op_erase(self.rings[i].op);
  }
  tl_value_map_fini(&self.stages);
}
