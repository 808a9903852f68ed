// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// verify-barriers: an independent check of place-barriers and pipeline. It runs the scheduled kernel concretely,
// statement by statement, over small trip counts and both ways of conditions, and keeps for every copy of every tile
// which accesses were made since the last barrier and which asynchronous copies are still on their way. Two accesses to
// one copy with a write among them, and no barrier between, are a race between two threads; so is an access to a copy
// whose group was not waited for, or was waited for by its own thread only. It shares no code with the passes it
// checks, and understands rings as well as what lower-rings and plan-shared make of them. mbarriers hand on what was
// before their arrivals to whoever waits (verify_barriers_async.c). Roles run by turns (verify_barriers_control.c).
//
// The work is bounded. A kernel that spends the budget of statements was not explored, and nothing follows from what
// was: it is proven from the order of its statements alone (verify_barriers_order.c), after a change that makes it so
// where need be (verify_barriers_serial.c), or refused.
#include "passes/manager/passes.h"
#include "passes/sync/verify_barriers_internal.h"
#include "support/status.h"

enum { STATEMENT_BUDGET = 1600000 };

// ---- reporting

// What the language calls it, where the author wrote it.
static const char *name_of(const tl_barrier_verifier *self, const tl_op *op) {
  if (self->by_hand && op->code == TL_OP_MBARRIER_WAIT) return "wait";
  if (self->by_hand && op->code == TL_OP_MBARRIER_ARRIVE) return "arrive";
  if (self->by_hand && op->code == TL_OP_MBARRIER_EXPECT) return "expect";
  if (op->code == TL_OP_NAMED_SYNC) return "sync";
  if (op->code == TL_OP_NAMED_ARRIVE) return "arrive";
  return tl_op_info_of(op->code)->name;
}

void tl_run_describe(tl_barrier_verifier *self, const tl_op *op, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(self->context->diags->sources, op->loc.source);
  if (source) {
    tl_strbuf_appendf(out, "%s of line %u", name_of(self, op), tl_source_position(source, op->loc.offset).line);
  } else {
    tl_strbuf_appendf(out, "%s", name_of(self, op));
  }
}

tl_diag *tl_run_fail(tl_barrier_verifier *self, const tl_op *op, const tl_op *other, const char *text) {
  if (self->status || self->budget <= 0) return NULL;
  if (!self->by_hand) {
    self->status = tl_status_make(TL_STATUS_INTERNAL, "verify-barriers: %s", text);
    return NULL;
  }
  tl_diag *diag = tl_diag_report(self->context->diags, TL_DIAG_BARRIER_ORDER, op->loc, "%s", text);
  if (other && other != op)
    tl_diag_add_note(self->context->diags, diag, other->loc,
                     other->code == TL_OP_MBARRIER ? "declared here" : "the other one stands here");
  self->has_reported = true;  // once is enough
  self->budget = 0;
  return diag;
}

// Whether the access is of every element of its buffer.
static bool covers_buffer(const tl_run_access *record) {
  const tl_value *buffer = record->box_buffer;
  for (int32_t d = 0; buffer && d < buffer->type->rank; d++) {
    if (record->lo[d] > 0 || buffer->type->dims[d] < 0 || record->hi[d] < buffer->type->dims[d] - 1) return false;
  }
  return buffer != NULL;
}

const char *tl_run_root_name(const tl_op *root) {
  const char *name = tl_op_str(root, TL_ATTR_NAME);
  return name ? name : "tile";
}

// The author's own mistake: an access of what an asynchronous copy by hand has under way.
static void report_early(tl_barrier_verifier *self, const tl_run_access *before, const tl_run_access *after) {
  static const char *const verbs[] = {"read", "written", "updated"};
  const char *name = tl_run_root_name(self->roots.items[after->root]);
  const char *why = before->group < 0 ? "in a group that was not committed" : "in a group that was not waited for";
  tl_diag *diag =
      tl_diag_report(self->context->diags, TL_DIAG_ASYNC_EARLY, after->op->loc,
                     before->kind == TL_RUN_READ ? "'%s' is %s while an asynchronous copy from it is under way, %s"
                                                 : "'%s' is %s while an asynchronous copy into it is under way, %s",
                     name, verbs[after->kind], why);
  tl_diag_add_note(self->context->diags, diag, before->op->loc, "the copy stands here");
  self->has_reported = true;  // once is enough
  self->budget = 0;
}

void tl_run_race(tl_barrier_verifier *self, const tl_run_access *before, const tl_run_access *after) {
  if (self->status || self->budget <= 0) return;
  if (before->is_async && !before->has_landed && tl_op_has(before->op, TL_ATTR_BY_HAND)) {
    // Where an access of elements is not known to meet the copy's part of the tile, the emulator has the last word.
    bool certain = (before->box_buffer && after->box_buffer) || covers_buffer(before);
    if (certain) report_early(self, before, after);
    return;
  }
  static const char *const verbs[] = {"reads", "writes", "updates"};
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "'%s': ", tl_run_root_name(self->roots.items[after->root]));
  tl_run_describe(self, after->op, &text);
  tl_strbuf_appendf(&text, " %s copy %lld, which ", verbs[after->kind], (long long)after->slot);
  tl_run_describe(self, before->op, &text);
  const char *why = "before it, and no barrier stands between them";
  if (before->gemm && !before->has_landed) {
    why = "in a gemm that nobody waited for";
  } else if (before->is_async && !before->has_landed) {
    why = before->group < 0 ? "asynchronously in a group that was not committed"
                            : "asynchronously in a group that was not waited for";
  } else if (before->is_async) {
    why = "asynchronously, and no barrier follows the wait";
  } else if (before->is_engine) {
    why = "asynchronously, and nobody waited for it";
  } else if ((after->is_engine || after->is_matrix) && (before->seen & self->roles[self->role].elected)) {
    why = "before it, and no proxy fence stands between them";
  }
  tl_strbuf_appendf(&text, " %s %s", verbs[before->kind], why);
  tl_run_fail(self, after->op, before->op, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// ---- synchronisation

void tl_run_barrier(tl_barrier_verifier *self) {
  size_t kept = 0;
  if (self->roles[self->role].in_turn && !self->status)
    self->status =
        tl_status_make(TL_STATUS_INTERNAL, "verify-barriers: in the turn of one warpgroup a barrier waits for all");
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    bool is_flying = record->is_async && !record->has_landed;
    if (is_flying || tl_run_keep_at_barrier(self, record))
      tl_run_keep(self, i, &kept);
    else
      tl_vec_fini(&record->releases);
  }
  self->records.len = kept;
}

static int64_t ring_number(tl_barrier_verifier *self, const tl_value *ring) {
  for (size_t i = 0; i < self->rings.len; i++) {
    if (self->rings.items[i].ring == ring) return (int64_t)i;
  }
  tl_ring_state state = {.ring = ring};
  tl_vec_push(&self->rings, state);
  return (int64_t)self->rings.len - 1;
}

static void run_commit(tl_barrier_verifier *self, int64_t ring) {
  int64_t number = self->roles[self->role].num_commits++;
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (!record->is_async || record->group >= 0 || record->gemm || record->role != self->role) continue;
    record->group = number;
    record->ring = ring;
  }
  if (ring >= 0) tl_vec_push(&self->rings.items[ring].commits, number);
}

// Groups up to number `last` have landed; only those of `ring` count when it is not -1.
static void land(tl_barrier_verifier *self, int64_t last, int64_t ring) {
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (!record->is_async || record->role != self->role || record->group < 0 || record->group > last) continue;
    if (ring < 0 || record->ring == ring) record->has_landed = true;
  }
}

// The slot of an acquire or wait is its `k`.
static void pass_slot(tl_barrier_verifier *self, const tl_op *op) {
  const tl_run_value *k = tl_run_env_at(&self->env, tl_op_operand(op, 1));
  tl_run_env_set(&self->env, &op->results[0], k->number, k->drawn);
}

static void run_ring_wait(tl_barrier_verifier *self, const tl_op *op) {
  int64_t number = ring_number(self, tl_op_operand(op, 0));
  const tl_ring_state *ring = &self->rings.items[number];
  int64_t landed = (int64_t)ring->commits.len - tl_op_int(op, TL_ATTR_PENDING, 0);
  if (landed > 0) land(self, ring->commits.items[landed - 1], number);
  pass_slot(self, op);
}

// ---- running

static void run_buffer(tl_barrier_verifier *self, const tl_op *op) {
  const tl_value *base = NULL;
  int64_t slot = -1;
  if (op->code == TL_OP_VIEW) {
    base = tl_op_arg(op, TL_GROUP_VIEW_buffer);
  } else if (op->code == TL_OP_STAGE_TILE) {
    base = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile);
    slot = tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_STAGE_TILE_stage));
  } else if (op->code == TL_OP_PEER_TILE) {
    base = tl_op_arg(op, TL_GROUP_PEER_TILE_tile);
  } else if (op->code == TL_OP_PART_TILE) {
    base = tl_op_arg(op, TL_GROUP_PART_TILE_tile);
  } else {
    base = tl_op_arg(op, TL_GROUP_RING_TILE_tile);
    const tl_value *slot_value = tl_op_arg(op, TL_GROUP_RING_TILE_slot);
    int64_t depth = tl_op_int(tl_op_operand(slot_value->def, 0)->def, TL_ATTR_DEPTH, 1);
    int64_t k = tl_run_env_number(&self->env, slot_value);
    slot = ((k % depth) + depth) % depth;
  }
  tl_run_value value = *tl_run_env_at(&self->env, base);
  if (slot >= 0) value.slot = slot;
  if (op->code == TL_OP_PEER_TILE) {
    tl_run_peers peers = tl_run_peers_of(self, op);
    int64_t place = tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_PEER_TILE_place));
    value.peer = 1 + peers.first + (int32_t)(place % peers.count) * peers.stride;
  }
  *tl_run_env_at(&self->env, &op->results[0]) = value;
}

void tl_run_unknown(tl_barrier_verifier *self, const tl_op *op) {
  if (self->status) return;
  self->status = tl_status_make(TL_STATUS_INTERNAL, "verify-barriers does not know what '%s' reads, writes and orders",
                                tl_op_info_of(op->code)->name);
}

// Where in the grid the block or tile is: one of the first of each dim, inside of it.
static void run_place(tl_barrier_verifier *self, const tl_op *op, int extents, int64_t number) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    int64_t extent =
        i < tl_op_group_len(op, extents) ? tl_run_env_number(&self->env, tl_op_group_at(op, extents, i)) : 0;
    int64_t place = number % 3;
    tl_run_env_set(&self->env, &op->results[i], extent > 0 ? place % extent : place, true);
    if (tl_run_env_number(&self->env, &op->results[i]) >= extent) self->env.is_impossible = true;
  }
}

void tl_run_statement(tl_barrier_verifier *self, const tl_op *op) {
  switch (op->code) {
    case TL_OP_CLUSTER_BARRIER:
      // In front of roles nobody has reached another block; where blocks run beside each other they have met.
      if (self->role > 0) return;
      tl_run_barrier(self);
      return;
    case TL_OP_BARRIER:
      tl_run_barrier(self);
      return;
    case TL_OP_RING_COMMIT:
      run_commit(self, ring_number(self, tl_op_operand(op, 0)));
      return;
    case TL_OP_ASYNC_COMMIT:
      run_commit(self, -1);
      return;
    case TL_OP_ASYNC_WAIT:
      land(self, self->roles[self->role].num_commits - 1 - tl_op_int(op, TL_ATTR_PENDING, 0), -1);
      return;
    case TL_OP_RING_WAIT:
      run_ring_wait(self, op);
      return;
    case TL_OP_RING_ACQUIRE:
      pass_slot(self, op);
      return;
    case TL_OP_VIEW:
    case TL_OP_STAGE_TILE:
    case TL_OP_PEER_TILE:
    case TL_OP_PART_TILE:
    case TL_OP_RING_TILE:
      run_buffer(self, op);
      return;
    case TL_OP_NAMED_BARRIER:
      tl_run_start_named(self, op);
      return;
    case TL_OP_ALLOC:
    case TL_OP_TENSOR:
    case TL_OP_TENSOR_MAP:
    case TL_OP_MBARRIER:
    case TL_OP_TILE_QUEUE:
      return;  // known before the run
    case TL_OP_GRID:
      run_place(self, op, TL_GROUP_GRID_extents, (int64_t)self->env.seed);
      tl_run_place_in_cluster(self, op);
      return;
    case TL_OP_TILE_INDEX:
      run_place(self, op, TL_GROUP_TILE_INDEX_extents,
                tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_TILE_INDEX_tile)) + (int64_t)self->env.seed);
      return;
    default:
      break;
  }
  if (tl_run_async(self, op)) return;
  // The next acquire's barrier orders a release; wait_until counts as an atomic access.
  bool is_known = op->code == TL_OP_RING_RELEASE || op->code == TL_OP_WAIT_UNTIL;
  if (!is_known && (tl_op_info_of(op->code)->flags & TL_OPFLAG_SYNC)) tl_run_unknown(self, op);
  tl_run_accesses(self, op);
  if (op->num_results == 1 && op->num_regions == 0 && op->results[0].type->kind != TL_TYPE_TILE)
    tl_run_scalar(&self->env, op);
}

void tl_run_once(tl_barrier_verifier *self, uint64_t seed) {
  for (int32_t b = 0; b < self->num_blocks; b++) {
    tl_run_enter_block(self, b);
    tl_run_env_clear(&self->env);
  }
  self->env.seed = seed;
  tl_run_forget(self);
  tl_vec_clear(&self->stages);
  for (size_t i = 0; i < self->rings.len; i++) tl_vec_fini(&self->rings.items[i].commits);
  tl_vec_clear(&self->rings);
  for (int32_t b = 0; b < self->num_blocks; b++) {
    tl_run_enter_block(self, b);
    for (size_t i = 0; i < self->roots.len; i++)
      *tl_run_env_at(&self->env, &self->roots.items[i]->results[0]) =
          (tl_run_value){.number = (int64_t)i, .known = true};
  }
  tl_run_kernel(self);
  self->num_runs += !self->env.is_impossible;
  if (tl_run_goes_on(self)) tl_run_end(self);
}

static void look_at(tl_op *op, void *user) {
  tl_barrier_verifier *self = user;
  int64_t depth = tl_op_int(op, TL_ATTR_DEPTH, 1);
  if (op->code == TL_OP_ALLOC || op->code == TL_OP_TENSOR) {
    tl_vec_push(&self->roots, op);
    tl_vec_push(&self->extents, tl_run_extent_of(op));
  }
  self->by_hand |= op->code == TL_OP_NAMED_BARRIER;
  self->by_hand |= (op->code == TL_OP_MBARRIER || op->code == TL_OP_ROLES) && tl_op_has(op, TL_ATTR_BY_HAND);
  if (depth > 1 && depth <= TL_RUN_MAX_DEPTH && self->period % depth != 0) self->period *= depth;
  // Phases repeat after two rounds.
  if (op->code == TL_OP_MBARRIER) {
    depth *= 2;
    if (depth <= 2 * TL_RUN_MAX_DEPTH && self->period % depth != 0) self->period *= depth;
  }
  bool by_engine = op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map);
  self->uses_proxy |= by_engine || tl_run_is_matrix(op);
  self->uses_engine |= by_engine;
  if (depth > self->max_depth) self->max_depth = depth;
  if (op->code != TL_OP_FOR || tl_op_enclosing(op, TL_OP_PARALLEL)) return;
  const tl_value *upper = tl_op_operand(op, 1);
  int64_t constant;
  if (!tl_value_const_int(upper, &constant)) tl_vec_push(&self->loops, op);
}

// A kernel whose budget was spent.
static void prove_unexplored(tl_barrier_verifier *self) {
  if (tl_run_prove_order(self)) return;
  // Without the copy engine there is an order to prove.
  bool *is_unproven = self->uses_engine ? self->context->is_unproven : NULL;
  if (is_unproven) {
    *is_unproven = true;
    return;
  }
  tl_run_serialise(self);
  if (self->status || tl_run_prove_order(self)) return;
  tl_diag *diag =
      tl_diag_report(self->context->diags, TL_DIAG_UNPROVEN, self->kernel->loc,
                     "this kernel's loops are too many and too deep to show that no two of its threads race");
  tl_diag_add_hint(self->context->diags, diag,
                   "fewer serial loops inside one another, or none around mbarriers and conditions that differ between "
                   "threads");
}

static tl_status verify_kernel(tl_pass_context *context, tl_op *kernel) {
  tl_barrier_verifier self = {.context = context, .kernel = kernel, .period = 1, .max_depth = 1};
  self.budget = context->explore_limit > 0 ? context->explore_limit : STATEMENT_BUDGET;
  tl_run_env_init(&self.env, kernel);
  self.num_blocks = tl_run_count_blocks(kernel);
  bool can_run = tl_run_find_roles(&self);
  // Each role has the loops of the kernel for itself.
  if (self.num_roles > 0) self.budget *= self.num_roles;
  tl_walk(kernel, look_at, &self);
  tl_run_find_written(&self);
  tl_run_find_uses(&self);
  tl_run_fix_bounds(&self);
  if (can_run)
    tl_run_explore(&self);
  else
    self.budget = 0;
  if (!self.status && self.budget <= 0 && !self.has_reported) prove_unexplored(&self);
  for (size_t i = 0; i < self.rings.len; i++) tl_vec_fini(&self.rings.items[i].commits);
  tl_vec_fini(&self.rings);
  tl_run_forget(&self);
  tl_run_forget_roles(&self);
  tl_run_forget_blocks(&self);
  tl_vec_fini(&self.records);
  tl_vec_fini(&self.stages);
  tl_vec_fini(&self.roots);
  tl_run_forget_bounds(&self);
  tl_vec_fini(&self.extents);
  tl_vec_fini(&self.loops);
  tl_vec_fini(&self.branches);
  tl_run_env_fini(&self.env);
  return self.status;
}

tl_status tl_pass_verify_barriers(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) TL_TRY(verify_kernel(context, op));
  }
  return TL_OK;
}
