// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// place-barriers: block barriers from the effects of ops.
//
// Threads of a block run statements at different speeds. Before a statement touches a tile (or global memory) that
// another thread may have touched since the last barrier, with a write on either side, there must be a barrier. Rings
// add two hazards: data that a thread waited for is seen by the others only after a barrier, and a slot may be filled
// again only after a barrier that follows its release.
//
//   ring_wait … ; ring_acquire … ; copies ; commit ; gemm ; ring_release   ⇒   ring_wait ; barrier ; ring_acquire …
//
// What a matrix unit reads by descriptors goes through the asynchronous proxy: of a tile that threads filled (by stores
// or cp.async, which is generic for it) each of them fences that proxy before the barrier (PTX ISA, "Async proxy").
//
// One walk in program order keeps what happened since the last barrier and puts a barrier directly before the first op
// that needs one; a loop is walked until what its end hands to its start brings nothing new, so that hazards over the
// back edge are seen (each time anew: a barrier for the back edge often serves the rest of the iteration too). Barriers
// of the author count. An `if` that is not proven uniform may hold no barrier: what its content needs is put before it.
#include "passes/manager/passes.h"
#include "passes/sync/place_barriers_internal.h"
#include "support/status.h"

// What threads may have done since the last barrier.
typedef struct hazard_state {
  tl_access_set reads;
  tl_access_set writes;
  tl_access_set atomics;
  tl_access_set in_flight;   // written by async copies outside of rings that nobody waited for yet
  tl_access_set multiplied;  // read by asynchronous gemms that nobody waited for yet
  tl_access_set reading;     // read by async copies that nobody waited for yet: no barrier ends these
  tl_access_set stored;      // read by stores of the copy engine that nobody waited for yet
  tl_access_set waited;      // rings with a wait
  tl_access_set released;    // rings with a release
  tl_access_set
      unfenced;  // written, or rings with a wait, since the last proxy fence, if the asynchronous proxy reads it
  tl_access_set unfenced_global;  // the same of tensors, which have a fence of their own
} hazard_state;

enum { NUM_SETS = sizeof(hazard_state) / sizeof(tl_access_set) };

typedef TL_VEC(tl_value *) value_list;

typedef struct placement {
  tl_pass_context *context;
  tl_module *module;
  tl_status status;
  TL_VEC(tl_op *) placed;                  // barriers and fences that this pass put in
  value_list proxied;                      // roots that the asynchronous proxy reads, and rings that they travel in
  value_list filled;                       // roots that copies fill which count on barriers of the author
  value_list engine_reads, engine_writes;  // tensors that copies by the copy engine read, and write
} placement;

static void set_add_ring(tl_access_set *set, tl_value *ring) {
  tl_effect effect = {.root = ring};
  tl_access_set_add(set, &effect);
}

static tl_access_set *sets_of(hazard_state *state) {
  return (tl_access_set *)state;
}

static bool merge(hazard_state *into, hazard_state *from) {
  bool changed = false;
  for (int s = 0; s < NUM_SETS; s++) changed |= tl_access_set_merge(&sets_of(into)[s], &sets_of(from)[s], 0);
  return changed;
}

static hazard_state copy_state(hazard_state *state) {
  hazard_state copy;
  for (int s = 0; s < NUM_SETS; s++) sets_of(&copy)[s] = tl_access_set_copy(&sets_of(state)[s]);
  return copy;
}

// Joins what two branches that began alike left behind into `a`; `b` is over. What both still have of the
// beginning is not looked at again, so that a branch costs what it does and not what was before it.
static void join_branches(hazard_state *a, hazard_state *b, const size_t *len_before, const uint32_t *cleared_before) {
  for (int s = 0; s < NUM_SETS; s++) {
    tl_access_set *left = &sets_of(a)[s], *right = &sets_of(b)[s];
    if (left->cleared != cleared_before[s]) {
      tl_access_set swapped = *left;
      *left = *right;
      *right = swapped;
    }
    bool share = left->cleared == cleared_before[s] && right->cleared == cleared_before[s];
    tl_access_set_merge(left, right, share ? len_before[s] : 0);
    tl_access_set_fini(right);
  }
}

static void fini_state(hazard_state *state) {
  for (int s = 0; s < NUM_SETS; s++) tl_access_set_fini(&sets_of(state)[s]);
}

static void apply_barrier(hazard_state *state) {
  tl_access_set_clear(&state->reads);
  tl_access_set_clear(&state->writes);
  tl_access_set_clear(&state->atomics);
  tl_access_set_clear(&state->waited);
  tl_access_set_clear(&state->released);
}

static tl_value *ring_of_slot(const tl_value *slot) {
  return tl_op_operand(slot->def, 0);
}

// Whether the sides of the ring meet at mbarriers: no block barrier is needed between them.
static bool has_mbarriers(const tl_value *ring) {
  return tl_op_int(ring->def, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_BARRIERS;
}

// Whether an access needs a barrier after what `state` holds.
static bool effect_conflicts(const hazard_state *state, const tl_effect *effect) {
  if (effect->slot) {
    // Between ring_acquire and commit, or after ring_wait: the protocol orders slots. A read needs the barrier after
    // its wait.
    return effect->kind == TL_EFFECT_READ && tl_access_set_has(&state->waited, ring_of_slot(effect->slot));
  }
  if (tl_access_set_meets(&state->writes, effect)) return true;
  if (effect->kind != TL_EFFECT_READ && tl_access_set_meets(&state->reads, effect)) return true;
  if (effect->kind != TL_EFFECT_READ && tl_access_set_meets(&state->reading, effect)) return true;
  if (effect->kind != TL_EFFECT_READ && tl_access_set_meets(&state->multiplied, effect)) return true;
  return effect->kind != TL_EFFECT_ATOMIC && tl_access_set_meets(&state->atomics, effect);
}

static bool has_value(const value_list *list, const tl_value *value) {
  for (size_t i = 0; i < list->len; i++)
    if (list->items[i] == value) return true;
  return false;
}

static void add_value(value_list *list, tl_value *value) {
  if (!has_value(list, value)) tl_vec_push(list, value);
}

// A copy that counts on a barrier of the author: who waits for that sees it, and verify-barriers asks who does.
static bool counts_by_hand(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_barrier) && tl_op_has(op, TL_ATTR_BY_HAND);
}

static bool is_matrix_read(const tl_effect *effect) {
  const tl_instruction *inst = effect->op->code == TL_OP_GEMM ? tl_op_instruction(effect->op) : NULL;
  return effect->kind == TL_EFFECT_READ && inst && inst->family == TL_FAMILY_WGMMA;
}

// A generic write, or a wait for some in a ring, that only this thread has seen.
static void note_generic(const placement *self, hazard_state *state, const tl_effect *effect) {
  if (has_value(&self->proxied, effect->root)) tl_access_set_add(&state->unfenced, effect);
}

static bool is_by_engine(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map);
}

static bool is_engine_store(const tl_effect *effect) {
  return is_by_engine(effect->op) && effect->root->type->scope == TL_SCOPE_SHARED;
}

// What threads did in a tensor before the engine writes there, or wrote before it reads there.
static void note_tensor(const placement *self, hazard_state *state, const tl_effect *effect) {
  if (is_by_engine(effect->op)) return;
  bool crosses = has_value(&self->engine_writes, effect->root);
  if (effect->kind != TL_EFFECT_READ) crosses |= has_value(&self->engine_reads, effect->root);
  if (crosses) tl_access_set_add(&state->unfenced_global, effect);
}

static void note_effect(const placement *self, hazard_state *state, const tl_effect *effect) {
  if (effect->slot || (counts_by_hand(effect->op) && effect->kind == TL_EFFECT_WRITE)) return;
  if (!effect->is_async) note_tensor(self, state, effect);
  if (effect->kind == TL_EFFECT_WRITE && !effect->is_async) note_generic(self, state, effect);
  // The engine writes over what threads did there.
  if (!is_matrix_read(effect) && !is_engine_store(effect) && has_value(&self->filled, effect->root))
    tl_access_set_add(&state->unfenced, effect);
  switch (effect->kind) {
    case TL_EFFECT_READ:
      if (effect->is_async && effect->op->code == TL_OP_GEMM)
        tl_access_set_add(&state->multiplied, effect);
      else if (is_engine_store(effect))
        tl_access_set_add(&state->stored, effect);
      else
        tl_access_set_add(effect->is_async ? &state->reading : &state->reads, effect);
      break;
    case TL_EFFECT_WRITE:
      tl_access_set_add(effect->is_async ? &state->in_flight : &state->writes, effect);
      break;
    case TL_EFFECT_ATOMIC:
      tl_access_set_add(&state->atomics, effect);
      break;
  }
}

static void fail_in_flight(placement *self, const tl_effect *effect) {
  if (self->status) return;
  self->status = tl_status_make(TL_STATUS_INTERNAL, "place-barriers: a %s touches a tile whose copy nobody waited for",
                                tl_op_info_of(effect->op->code)->name);
}

// Effects that one statement has as a whole (a parallel counts with its content).
static void statement_effects(tl_op *op, tl_effect_list *out) {
  if (op->code == TL_OP_PARALLEL) {
    tl_effects_inside(op, out);
  } else {
    tl_effects_of(op, out);
  }
}

// Whether a copy into the tile that a pass made is in flight. The author's, and those that come in parts, are
// verify-barriers' matter, which knows which of their groups a wait is for.
static bool touches_flight(const hazard_state *state, const tl_value *root) {
  for (size_t i = 0; i < state->in_flight.len; i++) {
    const tl_effect *copy = &state->in_flight.items[i];
    bool is_counted = tl_op_has(copy->op, TL_ATTR_BY_HAND) || tl_op_has(copy->op, TL_ATTR_COUNTED);
    if (copy->root == root && !is_counted) return true;
  }
  return false;
}

static bool has_other_than_matrix(const tl_access_set *reads) {
  for (size_t i = 0; i < reads->len; i++)
    if (!is_matrix_read(&reads->items[i])) return true;
  return false;
}

// Whether one thread arrives for others that have done something: they meet first. A product has ended for its
// warpgroup as a whole.
static bool arrival_needs_barrier(const hazard_state *state, const tl_op *arrive) {
  int64_t each = tl_op_int(arrive, TL_ATTR_EACH, TL_EACH_THREAD);
  if (each == TL_EACH_THREAD || each == TL_EACH_WARP) return false;
  if (state->writes.len > 0 || state->atomics.len > 0) return true;
  return each == TL_EACH_WARPGROUP ? has_other_than_matrix(&state->reads) : state->reads.len > 0;
}

static bool statement_needs_barrier(placement *self, const hazard_state *state, tl_op *op) {
  if (op->code == TL_OP_MBARRIER_ARRIVE) return arrival_needs_barrier(state, op);
  if (op->code == TL_OP_RING_ACQUIRE) return tl_access_set_has(&state->released, tl_op_operand(op, 0));
  tl_effect_list effects = {0};
  statement_effects(op, &effects);
  bool needs = false;
  for (size_t i = 0; i < effects.len; i++) {
    needs |= effect_conflicts(state, &effects.items[i]);
    if (!effects.items[i].slot && touches_flight(state, effects.items[i].root)) fail_in_flight(self, &effects.items[i]);
  }
  tl_vec_fini(&effects);
  return needs;
}

static void build_fence(placement *self, tl_op *before, int64_t space) {
  tl_builder builder;
  tl_builder_before(&builder, self->module, before);
  builder.loc = before->loc;
  tl_op *fence = tl_build(&builder, TL_OP_FENCE_PROXY, NULL, NULL, 0);
  if (space == TL_SCOPE_GLOBAL) tl_op_set_int(self->module, fence, TL_ATTR_SPACE, space);
  tl_vec_push(&self->placed, fence);
}

static void insert_fence(placement *self, hazard_state *state, tl_op *before) {
  if (state->unfenced.len > 0) build_fence(self, before, TL_SCOPE_SHARED);
  // In front of a fence of shared memory, which stands at its barrier.
  while (before->prev && before->prev->code == TL_OP_FENCE_PROXY) before = before->prev;
  if (state->unfenced_global.len > 0) build_fence(self, before, TL_SCOPE_GLOBAL);
  tl_access_set_clear(&state->unfenced);
  tl_access_set_clear(&state->unfenced_global);
}

// What asynchronous copies read, they have: as far as this thread knows.
static void note_read(const placement *self, hazard_state *state) {
  for (size_t i = 0; i < state->reading.len; i++) {
    tl_access_set_add(&state->reads, &state->reading.items[i]);
    note_tensor(self, state, &state->reading.items[i]);
  }
}

static void note_async_wait(const placement *self, hazard_state *state, const tl_op *op) {
  // The groups have landed for the thread that waited; the others see them after a barrier.
  for (size_t i = 0; i < state->in_flight.len; i++) {
    tl_access_set_add(&state->writes, &state->in_flight.items[i]);
    note_generic(self, state, &state->in_flight.items[i]);
  }
  note_read(self, state);
  // The author may leave groups in flight: which, only the order of the run tells.
  if (tl_op_int(op, TL_ATTR_PENDING, 0) > 0) return;
  tl_access_set_clear(&state->in_flight);
  tl_access_set_clear(&state->reading);
}

static void note_statement(placement *self, hazard_state *state, tl_op *op) {
  switch (op->code) {
    case TL_OP_NAMED_ARRIVE:
    case TL_OP_MBARRIER_ARRIVE:
      insert_fence(self, state, op);
      return;
    case TL_OP_CLUSTER_BARRIER:
    case TL_OP_NAMED_SYNC:
    case TL_OP_BARRIER:
      insert_fence(self, state, op);
      apply_barrier(state);
      return;
    case TL_OP_GEMM_WAIT:
      // A wait that leaves gemms in flight is for those that read slots: rings release them.
      if (tl_op_int(op, TL_ATTR_PENDING, 0) > 0) return;
      for (size_t i = 0; i < state->multiplied.len; i++) tl_access_set_add(&state->reads, &state->multiplied.items[i]);
      tl_access_set_clear(&state->multiplied);
      return;
    case TL_OP_FENCE_PROXY:
      tl_access_set_clear(tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_SHARED ? &state->unfenced
                                                                                           : &state->unfenced_global);
      return;
    case TL_OP_RING_WAIT:
      // What the copies of this thread read is free for it; other threads may still wait for theirs.
      if (has_mbarriers(tl_op_operand(op, 0))) return;
      note_read(self, state);
      set_add_ring(&state->waited, tl_op_operand(op, 0));
      note_generic(self, state, &(tl_effect){.root = tl_op_operand(op, 0)});
      return;
    case TL_OP_RING_RELEASE:
      if (!has_mbarriers(ring_of_slot(tl_op_operand(op, 0))))
        set_add_ring(&state->released, ring_of_slot(tl_op_operand(op, 0)));
      return;
    case TL_OP_ASYNC_WAIT:
      note_async_wait(self, state, op);
      return;
    case TL_OP_RING_ACQUIRE:
    case TL_OP_RING_COMMIT:
    case TL_OP_ASYNC_COMMIT:
    case TL_OP_BULK_COMMIT:
      return;  // what waits for the copies counts
    case TL_OP_MBARRIER_INIT:
    case TL_OP_MBARRIER_WAIT:
    case TL_OP_MBARRIER_EXPECT:  // what the author orders by them verify-barriers looks at
    case TL_OP_TURN:
      return;  // an order of warpgroups, on which nothing relies
    case TL_OP_BULK_WAIT:
      // One thread has waited: the others go on behind a barrier.
      for (size_t i = 0; i < state->stored.len; i++) tl_access_set_add(&state->reads, &state->stored.items[i]);
      if (tl_op_int(op, TL_ATTR_PENDING, 0) == 0) tl_vec_clear(&state->stored);
      return;
    case TL_OP_WAIT_UNTIL:
      break;
    default:
      if ((tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC) && !self->status) {
        self->status = tl_status_make(TL_STATUS_INTERNAL, "place-barriers does not know what '%s' orders",
                                      tl_op_info_of(op->code)->name);
      }
      break;
  }
  tl_effect_list effects = {0};
  statement_effects(op, &effects);
  for (size_t i = 0; i < effects.len; i++) note_effect(self, state, &effects.items[i]);
  tl_vec_fini(&effects);
}

static void insert_barrier(placement *self, hazard_state *state, tl_op *before) {
  insert_fence(self, state, before);
  tl_builder builder;
  tl_builder_before(&builder, self->module, before);
  builder.loc = before->loc;
  tl_vec_push(&self->placed, tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0));
  apply_barrier(state);
}

static void place_block(placement *self, tl_block *block, hazard_state *state, bool may_place);

// Whether anything inside needs a barrier on entry, or (`*out_inner`) between two statements inside.
static bool divergent_needs(placement *self, tl_op *branch, hazard_state *state, bool *out_inner) {
  bool on_entry = false;
  *out_inner = false;
  for (uint32_t r = 0; r < branch->num_regions; r++) {
    hazard_state empty = {0};
    for (tl_op *op = branch->regions[r]->first; op; op = op->next) {
      on_entry |= statement_needs_barrier(self, state, op);
      *out_inner |= statement_needs_barrier(self, &empty, op);
      note_statement(self, &empty, op);
      if (op->num_regions == 0 || op->code == TL_OP_PARALLEL) continue;
      bool inner = false;
      if (divergent_needs(self, op, state, &inner)) on_entry = true;
      bool entry_after = divergent_needs(self, op, &empty, &inner);
      *out_inner |= inner || entry_after;
    }
    fini_state(&empty);
  }
  return on_entry;
}

static void place_if(placement *self, tl_op *op, hazard_state *state, bool may_place) {
  if (!tl_op_has(op, TL_ATTR_UNIFORM)) {
    bool inner = false;
    if (divergent_needs(self, op, state, &inner)) {
      if (may_place) insert_barrier(self, state, op);
    }
    if (inner && !self->status) {
      self->status =
          tl_status_make(TL_STATUS_INTERNAL, "place-barriers: an if that is not uniform needs a barrier inside");
    }
    may_place = false;
  }
  size_t lens[NUM_SETS];
  uint32_t cleared[NUM_SETS];
  for (int s = 0; s < NUM_SETS; s++) {
    lens[s] = sets_of(state)[s].len;
    cleared[s] = sets_of(state)[s].cleared;
  }
  hazard_state other = copy_state(state);
  place_block(self, op->regions[0], state, may_place);
  place_block(self, op->regions[1], &other, may_place);
  join_branches(state, &other, lens, cleared);
}

// Takes back the barriers placed since `mark`.
static void take_back(placement *self, size_t mark) {
  for (size_t i = mark; i < self->placed.len; i++) tl_op_erase(self->placed.items[i]);
  self->placed.len = mark;
}

static bool is_block_wide(const tl_effect *effect) {
  const tl_type *type = effect->root->type;
  return type->kind != TL_TYPE_BUFFER || type->scope != TL_SCOPE_GLOBAL;  // rings are no buffers
}

// Takes what happened in global memory out of `state`.
static void forget_global(hazard_state *state) {
  for (int s = 0; s < NUM_SETS; s++) tl_access_set_keep(&sets_of(state)[s], is_block_wide);
}

static bool holds_loop(const tl_op *op) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      if (inner->code == TL_OP_FOR || holds_loop(inner)) return true;
    }
  }
  return false;
}

static void place_iterations(placement *self, tl_op *op, hazard_state *state, bool may_place) {
  // What may have happened when an iteration starts: before the loop, or since the last barrier of the iteration
  // before.
  hazard_state entry = copy_state(state);
  size_t mark = self->placed.len;
  for (bool changed = true; changed && !self->status;) {
    take_back(self, mark);
    hazard_state body = copy_state(&entry);
    place_block(self, op->regions[0], &body, may_place);
    // Between the tiles of a grid, as between its blocks, nothing is ordered in global memory.
    if (tl_op_has(op, TL_ATTR_TILES)) forget_global(&body);
    changed = merge(&entry, &body);
    // The loop may not run at all: what was before it stays possible after it.
    if (!changed) merge(state, &body);
    fini_state(&body);
  }
  fini_state(&entry);
}

// A barrier in the loop that only what came before it needs is made in every iteration: one before the loop does. Asked
// of loops without loops inside, which run often and are cheap to walk again.
static void place_for(placement *self, tl_op *op, hazard_state *state, bool may_place) {
  size_t mark = self->placed.len;
  hazard_state before = copy_state(state);
  place_iterations(self, op, state, may_place);
  size_t placed = self->placed.len - mark;
  if (may_place && placed > 0 && !self->status && !holds_loop(op)) {
    take_back(self, mark);
    hazard_state cleared = copy_state(&before);
    apply_barrier(&cleared);
    place_iterations(self, op, &cleared, may_place);
    bool is_better = self->placed.len - mark < placed;
    fini_state(state);
    if (is_better) {
      insert_barrier(self, &before, op);
      *state = cleared;
    } else {
      take_back(self, mark);
      fini_state(&cleared);
      *state = copy_state(&before);
      place_iterations(self, op, state, may_place);
    }
  }
  fini_state(&before);
}

// Two roles that touch one memory, one of them writing, meet at a ring or not at all.
static void validate_roles(placement *self, tl_op *a, tl_op *b) {
  tl_effect_list ours = {0}, theirs = {0};
  tl_effects_inside(a, &ours);
  tl_effects_inside(b, &theirs);
  for (size_t i = 0; i < ours.len; i++) {
    for (size_t j = 0; j < theirs.len && !self->status; j++) {
      const tl_effect *one = &ours.items[i], *other = &theirs.items[j];
      bool conflict = one->root == other->root && (one->kind != TL_EFFECT_READ || other->kind != TL_EFFECT_READ);
      if (!conflict || (one->slot && other->slot) || (one->kind == TL_EFFECT_ATOMIC && other->kind == TL_EFFECT_ATOMIC))
        continue;
      self->status =
          tl_status_make(TL_STATUS_INTERNAL, "place-barriers: roles '%s' and '%s' share a tile without a ring",
                         tl_op_str(a, TL_ATTR_NAME), tl_op_str(b, TL_ATTR_NAME));
    }
  }
  tl_vec_fini(&ours);
  tl_vec_fini(&theirs);
}

// Roles run beside each other: a barrier of one orders its own statements. Nothing follows them.
static void place_roles(placement *self, tl_op *op, hazard_state *state) {
  for (tl_op *role = op->regions[0]->first; role && !self->status; role = role->next) {
    if (role->code != TL_OP_ROLE) continue;
    hazard_state own = copy_state(state);
    place_block(self, role->regions[0], &own, true);
    fini_state(&own);
    // Those of the author meet where he says.
    for (tl_op *other = role->next; other && !tl_op_has(op, TL_ATTR_BY_HAND); other = other->next)
      if (other->code == TL_OP_ROLE) validate_roles(self, role, other);
  }
}

// Whether a statement of the turn that `take` begins needs a barrier that may stand in front of it. In a turn all
// others would wait for the turn, and the barrier for them.
static bool turn_needs_barrier(placement *self, hazard_state *state, tl_op *take) {
  bool needs = false, inner = false;
  if (tl_op_int(take, TL_ATTR_TURN, TL_TURN_TAKE) != TL_TURN_TAKE) return false;
  for (tl_op *op = take->next; op && op->code != TL_OP_TURN && !needs; op = op->next)
    needs = op->num_regions ? divergent_needs(self, op, state, &inner) : statement_needs_barrier(self, state, op);
  return needs;
}

static void place_block(placement *self, tl_block *block, hazard_state *state, bool may_place) {
  for (tl_op *op = block->first; op && !self->status; op = op->next) {
    switch (op->code) {
      case TL_OP_IF:
        place_if(self, op, state, may_place);
        break;
      case TL_OP_FOR:
        place_for(self, op, state, may_place);
        break;
      case TL_OP_ROLES:
        place_roles(self, op, state);
        break;
      case TL_OP_TURN:
        if (may_place && turn_needs_barrier(self, state, op)) insert_barrier(self, state, op);
        break;
      default:
        if (may_place && statement_needs_barrier(self, state, op)) insert_barrier(self, state, op);
        note_statement(self, state, op);
        break;
    }
  }
}

// Tiles that wgmma reads by descriptors or the copy engine, or that the author lets it fill; tensors that it touches.
static void find_proxied(tl_op *op, void *user) {
  placement *self = user;
  if (is_by_engine(op)) {
    tl_value *src = tl_op_arg(op, TL_GROUP_COPY_src), *dst = tl_op_arg(op, TL_GROUP_COPY_dst);
    if (src->type->scope == TL_SCOPE_GLOBAL) add_value(&self->engine_reads, tl_effect_root(src, NULL, NULL));
    if (dst->type->scope == TL_SCOPE_GLOBAL) add_value(&self->engine_writes, tl_effect_root(dst, NULL, NULL));
  }
  if (counts_by_hand(op)) {
    add_value(&self->filled, tl_effect_root(tl_op_arg(op, TL_GROUP_COPY_dst), NULL, NULL));
    return;
  }
  tl_effect_list effects = {0};
  tl_effects_of(op, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    if (effect->kind != TL_EFFECT_READ || !(is_matrix_read(effect) || is_engine_store(effect))) continue;
    add_value(&self->proxied, effect->root);
    if (effect->slot) add_value(&self->proxied, ring_of_slot(effect->slot));
  }
  tl_vec_fini(&effects);
}

tl_status tl_pass_place_barriers(tl_pass_context *context) {
  placement self = {.context = context, .module = context->module};
  for (tl_op *op = context->module->body->first; op && !self.status; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    hazard_state state = {0};
    tl_walk(op, find_proxied, &self);
    place_block(&self, op->regions[0], &state, true);
    tl_turns_drop_broken(op);
    tl_arrivals_mark_finished(self.module, op);
    fini_state(&state);
  }
  tl_vec_fini(&self.placed);
  tl_vec_fini(&self.proxied);
  tl_vec_fini(&self.filled);
  tl_vec_fini(&self.engine_reads);
  tl_vec_fini(&self.engine_writes);
  return self.status;
}
