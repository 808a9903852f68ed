// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers, proxy fences and bulk groups in verify-barriers.
//
// The threads of a role run one order of statements, in which the elected thread and the others are told apart: an
// access is in the past of both, one or none of them. An arrival hands on what is in the past of who arrives, and who
// waits for that phase takes it over; copies by the engine come with the phase that counts them. A phase that was
// waited for at one parity is the right one exactly when no phase ends before everyone has waited for the one before it
// (no lapping): then one schedule stands for all, and a wait that does not end in it never does.
#include "passes/sync/verify_barriers_internal.h"
#include "support/status.h"

enum { WARP = 32, WARPGROUP = 128 };

static int64_t threads_of(const tl_barrier_verifier *self) {
  return tl_op_threads(self->roles[self->role].op);
}

static const char *mbarrier_name(const tl_op *made) {
  const char *name = tl_op_str(made, TL_ATTR_NAME);
  return name ? name : "mbarrier";
}

static void fail(tl_barrier_verifier *self, const tl_op *op, const tl_run_stage *stage, const char *what) {
  if (self->status || self->budget <= 0) return;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_run_describe(self, op, &text);
  tl_strbuf_appendf(&text, ", stage %lld of '%s', phase %lld: %s", (long long)stage->number, mbarrier_name(stage->made),
                    (long long)stage->phase, what);
  tl_run_fail(self, op, stage->made, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// The stage that the operands name; it must have been started. Its place in `stages`.
static size_t find_stage_of(tl_barrier_verifier *self, const tl_op *op, const tl_value *barrier, const tl_value *stage,
                            int32_t block) {
  int64_t number = tl_run_env_number(&self->env, stage);
  for (size_t i = 0; i < self->stages.len; i++) {
    const tl_run_stage *known = &self->stages.items[i];
    if (known->made == barrier->def && known->number == number && known->block == block) return i;
  }
  tl_run_stage fresh = {.made = barrier->def, .block = block, .number = number};
  tl_vec_push(&self->stages, fresh);
  fail(self, op, &fresh, "nobody started it");
  return self->stages.len - 1;
}

static size_t find_stage(tl_barrier_verifier *self, const tl_op *op, const tl_value *barrier, const tl_value *stage) {
  return find_stage_of(self, op, barrier, stage, self->block);
}

static void run_init(tl_barrier_verifier *self, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_op *made = tl_op_operand(op, i)->def;
    for (int64_t s = 0; made && made->code == TL_OP_MBARRIER && s < tl_op_int(made, TL_ATTR_DEPTH, 1); s++) {
      tl_run_stage stage = {
          .made = made, .block = self->block, .number = s, .pending = tl_op_int(made, TL_ATTR_ARRIVALS, 1)};
      for (int r = 0; r <= TL_RUN_MAX_ROLES; r++) stage.waited[r] = -1;
      tl_vec_push(&self->stages, stage);
    }
  }
}

// ---- phases

bool tl_run_is_of_interest(const tl_barrier_verifier *self, const tl_run_access *record) {
  if (record->kind == TL_RUN_WAITED) return record->seen != self->roles[0].all;
  const tl_run_use *use = &self->uses[record->root];
  if ((record->seen & use->threads) != use->threads) return true;
  bool is_crossed = !record->is_engine && !record->is_matrix && use->is_proxied;
  return is_crossed && (record->fenced & use->threads) != use->threads;
}

// What arrivals at phases before `phase` of a stage handed on: no wait ends by those any more.
static void forget_releases(tl_run_access *record, size_t stage, int64_t phase) {
  size_t kept = 0;
  for (size_t i = 0; i < record->releases.len; i++) {
    const tl_run_release *made = &record->releases.items[i];
    if (made->stage != stage || made->phase >= phase) record->releases.items[kept++] = *made;
  }
  record->releases.len = kept;
}

// The next phase begins once all arrivals were made and all bytes have come.
static void maybe_end_phase(tl_barrier_verifier *self, const tl_op *op, size_t at) {
  tl_run_stage *stage = &self->stages.items[at];
  if (stage->pending != 0 || stage->bytes != 0) return;
  size_t kept = 0;
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    bool is_wait = record->kind == TL_RUN_WAITED && record->root == (int64_t)at && record->slot == stage->phase - 1;
    // Set by run_arrive for who arrived.
    if (is_wait && !record->has_landed)
      fail(self, op, stage, "it may end before everyone has waited for the one before");
    if (is_wait || !tl_run_is_of_interest(self, record)) {
      tl_vec_fini(&record->releases);
      continue;
    }
    forget_releases(record, at, stage->phase);
    tl_run_keep(self, i, &kept);
  }
  self->records.len = kept;
  for (int r = 0; r <= TL_RUN_MAX_ROLES; r++)
    if (stage->waited[r] < stage->phase - 1) stage->lapped |= 1u << r;
  stage->phase++;
  stage->arrived = 0;
  stage->pending = tl_op_int(stage->made, TL_ATTR_ARRIVALS, 1);
}

static void release(tl_run_access *record, size_t stage, int64_t phase, bool fenced) {
  for (size_t i = 0; i < record->releases.len; i++) {
    tl_run_release *made = &record->releases.items[i];
    if (made->stage != stage || made->phase != phase) continue;
    made->fenced |= fenced;
    return;
  }
  tl_run_release fresh = {stage, phase, fenced};
  tl_vec_push(&record->releases, fresh);
}

// What an arrival of `each` hands on of one access.
static void hand_on(const tl_barrier_verifier *self, tl_run_access *record, int64_t each, size_t at, int64_t phase) {
  const tl_run_role *role = &self->roles[self->role];
  bool own = record->role == self->role, by_all = each == TL_EACH_THREAD || each == TL_EACH_WARP;
  // Every thread hands on what it did itself, and what any of them has in its past; the elected one what it knows.
  bool elected = record->seen & role->elected, any = record->seen & role->all;
  if (record->kind == TL_RUN_WAITED) {
    bool knows = by_all ? own || any : elected || (own && each == TL_EACH_WARPGROUP && record->is_met);
    if (record->root == (int64_t)at && record->slot == phase - 1) record->has_landed |= knows;
    if (knows) release(record, at, phase, false);
    return;
  }
  bool flies = record->is_engine || (record->is_async && !record->has_landed);
  if (by_all) {
    bool fenced = (own && record->is_fenced) || (record->fenced & role->all);
    if ((own && !flies) || any) release(record, at, phase, fenced);
    return;
  }
  // A warpgroup's gemm has ended for the warpgroup as a whole.
  bool knows = each == TL_EACH_ROLE ? elected : (record->seen & role->all) == role->all;
  knows |= own && each == TL_EACH_WARPGROUP && record->is_matrix && !flies;
  if (knows) release(record, at, phase, record->fenced & role->elected);
}

static int64_t num_arrivals(const tl_barrier_verifier *self, int64_t each) {
  switch ((tl_ir_enum_EACH)each) {
    case TL_EACH_THREAD:
      return threads_of(self);
    case TL_EACH_WARP:
      return threads_of(self) / WARP;
    case TL_EACH_WARPGROUP:
      return threads_of(self) / WARPGROUP;
    case TL_EACH_ROLE:
    case TL_EACH_COUNT:
      break;
  }
  return 1;
}

// Arrives at the stage of one block.
static void arrive_at(tl_barrier_verifier *self, const tl_op *op, int32_t block) {
  size_t at = find_stage_of(self, op, tl_op_operand(op, 0), tl_op_operand(op, 1), block);
  const tl_value *bytes = tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_bytes);
  int64_t each = tl_op_int(op, TL_ATTR_EACH, TL_EACH_THREAD);
  tl_run_stage *stage = &self->stages.items[at];
  for (size_t i = 0; i < self->records.len; i++) hand_on(self, &self->records.items[i], each, at, stage->phase);
  if (bytes) stage->bytes += tl_run_env_number(&self->env, bytes);
  stage->pending -= num_arrivals(self, each);
  if (stage->pending < 0) fail(self, op, stage, "more arrivals than it takes");
  maybe_end_phase(self, op, at);
}

static void run_arrive(tl_barrier_verifier *self, const tl_op *op) {
  tl_run_peers peers = tl_run_peers_of(self, op);
  for (int32_t i = 0; i < peers.count; i++) arrive_at(self, op, peers.first + i * peers.stride);
}

static void run_expect(tl_barrier_verifier *self, const tl_op *op) {
  size_t at = find_stage(self, op, tl_op_operand(op, 0), tl_op_operand(op, 1));
  self->stages.items[at].bytes += tl_run_env_number(&self->env, tl_op_operand(op, 2));
  maybe_end_phase(self, op, at);
}

bool tl_run_wait_ends(tl_barrier_verifier *self, const tl_op *op) {
  size_t at = find_stage(self, op, tl_op_operand(op, 0), tl_op_operand(op, 1));
  const tl_run_stage *stage = &self->stages.items[at];
  if (stage->lapped >> self->role & 1)
    fail(self, op, stage,
         "two phases may have ended before this waits for the first, and their parity tells them no longer apart");
  return (stage->phase & 1) != tl_run_env_number(&self->env, tl_op_operand(op, 2));
}

// Takes over what was handed on to phase `ended` of the stage.
static void take_over(tl_barrier_verifier *self, size_t at, int64_t ended, uint32_t who) {
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (record->counts_phase == ended && ended >= 0 && record->counts_on == at) record->seen |= who;
    for (size_t r = 0; r < record->releases.len; r++) {
      if (record->releases.items[r].stage != at || record->releases.items[r].phase != ended) continue;
      record->seen |= who;
      if (record->releases.items[r].fenced) record->fenced |= who;
    }
  }
}

static void run_wait(tl_barrier_verifier *self, const tl_op *op) {
  size_t at = find_stage(self, op, tl_op_operand(op, 0), tl_op_operand(op, 1));
  tl_run_stage *stage = &self->stages.items[at];
  const tl_run_role *role = &self->roles[self->role];
  bool by_one = tl_op_int(op, TL_ATTR_EACH, 0) == TL_EACH_ROLE;
  uint32_t who = by_one ? role->elected : role->all;
  if (!tl_run_wait_ends(self, op)) {
    fail(self, op, stage, "the wait for its end never ends");
    return;
  }
  int64_t ended = stage->phase - 1;
  stage->waited[self->role] = ended;
  take_over(self, at, ended, who);
  if (ended < 0) return;
  // Who waited knows it of itself; of all threads nobody knows it of the others.
  tl_run_access waited = {
      .kind = TL_RUN_WAITED, .role = self->role, .root = (int64_t)at, .slot = ended, .counts_phase = -1, .op = op};
  if (by_one) waited.seen = role->elected;
  tl_vec_push(&self->records, waited);
}

// ---- named barriers: every warp of a role arrives, and a phase has no parity, since who waits for it has arrived.

void tl_run_start_named(tl_barrier_verifier *self, const tl_op *made) {
  tl_run_stage stage = {.made = made, .block = self->block, .pending = tl_op_int(made, TL_ATTR_ARRIVALS, 1)};
  for (int r = 0; r <= TL_RUN_MAX_ROLES; r++) stage.waited[r] = -1;
  tl_vec_push(&self->stages, stage);
}

static size_t find_named(const tl_barrier_verifier *self, const tl_op *op) {
  for (size_t i = 0; i < self->stages.len; i++)
    if (self->stages.items[i].made == tl_op_operand(op, 0)->def && self->stages.items[i].block == self->block) return i;
  return 0;
}

// Whether the role knows that the phase before has ended: it waited for it, or for somebody who did.
static bool knows_end(const tl_barrier_verifier *self, size_t at, int64_t phase) {
  const tl_run_role *role = &self->roles[self->role];
  bool is_waited = phase < 0, is_kept = false;
  for (int r = 0; r <= TL_RUN_MAX_ROLES; r++) is_waited |= self->stages.items[at].waited[r] >= phase;
  for (size_t i = 0; i < self->records.len; i++) {
    const tl_run_access *record = &self->records.items[i];
    if (record->kind != TL_RUN_WAITED || record->root != (int64_t)at || record->slot != phase) continue;
    if (record->role == self->role || (record->seen & role->all)) return true;
    is_kept = true;
  }
  return is_waited && !is_kept;  // what all roles know is kept no longer
}

static void run_arrive_named(tl_barrier_verifier *self, const tl_op *op) {
  size_t at = find_named(self, op);
  tl_run_stage *stage = &self->stages.items[at];
  if ((stage->arrived >> self->role & 1) || !knows_end(self, at, stage->phase - 1))
    fail(self, op, stage, "these warps may arrive again before the phase has ended at which they did");
  stage->arrived |= 1u << self->role;
  for (size_t i = 0; i < self->records.len; i++) hand_on(self, &self->records.items[i], TL_EACH_WARP, at, stage->phase);
  stage->pending -= num_arrivals(self, TL_EACH_WARP);
  if (stage->pending < 0) fail(self, op, stage, "more warps arrive than it takes");
  maybe_end_phase(self, op, at);
}

bool tl_run_sync_ends(tl_barrier_verifier *self, const tl_op *op) {
  tl_run_role *role = &self->roles[self->role];
  size_t at = find_named(self, op);
  if (role->syncs_at != op) {
    role->syncs_at = op;
    role->syncs_in = self->stages.items[at].phase;
    run_arrive_named(self, op);
  }
  return self->stages.items[at].phase > role->syncs_in;
}

static void run_sync(tl_barrier_verifier *self, const tl_op *op) {
  tl_run_role *role = &self->roles[self->role];
  size_t at = find_named(self, op);
  if (!tl_run_sync_ends(self, op)) fail(self, op, &self->stages.items[at], "the wait for its end never ends");
  take_over(self, at, role->syncs_in, role->all);
  tl_run_barrier(self);
  self->stages.items[at].waited[self->role] = role->syncs_in;
  tl_run_access waited = {.kind = TL_RUN_WAITED,
                          .role = self->role,
                          .block = self->block,
                          .root = (int64_t)at,
                          .slot = role->syncs_in,
                          .counts_phase = -1,
                          .is_met = true,
                          .op = op};
  waited.seen = role->all;
  tl_vec_push(&self->records, waited);
  role->syncs_at = NULL;
}

// What a phase that does not end has not got.
static void describe_lack(const tl_run_stage *stage, tl_strbuf *out) {
  long long arrivals = stage->pending, bytes = stage->bytes;
  if (arrivals > 0) tl_strbuf_appendf(out, ", which lacks %lld arrival%s", arrivals, arrivals == 1 ? "" : "s");
  if (bytes != 0) tl_strbuf_append_c(out, arrivals > 0 ? " and" : ", which");
  if (bytes > 0) tl_strbuf_appendf(out, " expects %lld bytes more than copies bring", bytes);
  if (bytes < 0) tl_strbuf_appendf(out, " gets %lld bytes more than it expects", -bytes);
}

void tl_run_describe_wait(tl_barrier_verifier *self, const tl_op *op, tl_strbuf *out) {
  if (op->code == TL_OP_CLUSTER_BARRIER) {
    tl_strbuf_append_c(out, "waits for the blocks of its cluster (");
    tl_run_describe(self, op, out);
    tl_strbuf_append_c(out, ")");
    return;
  }
  if (op->code == TL_OP_NAMED_SYNC) {
    tl_strbuf_appendf(out, "waits for %lld warps at '%s' (",
                      (long long)self->stages.items[find_named(self, op)].pending,
                      mbarrier_name(tl_op_operand(op, 0)->def));
    tl_run_describe(self, op, out);
    tl_strbuf_append_c(out, ")");
    return;
  }
  size_t at = find_stage(self, op, tl_op_operand(op, 0), tl_op_operand(op, 1));
  const tl_run_stage *stage = &self->stages.items[at];
  tl_strbuf_appendf(out, "waits for stage %lld of '%s', phase %lld (", (long long)stage->number,
                    mbarrier_name(stage->made), (long long)stage->phase);
  tl_run_describe(self, op, out);
  tl_strbuf_append_c(out, ")");
  describe_lack(stage, out);
}

// ---- proxies

static void run_fence(tl_barrier_verifier *self, const tl_op *op) {
  bool is_global = tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_GLOBAL;
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (record->kind == TL_RUN_WAITED || record->is_engine || record->role != self->role) continue;
    bool fits = (self->roots.items[record->root]->code == TL_OP_TENSOR) == is_global;
    if (fits && (!record->is_async || record->has_landed)) record->is_fenced = true;
  }
}

// Bytes that a copy moves, whatever of them lies outside of the tensor.
static int64_t copy_bytes(const tl_op *copy) {
  const tl_attr *extents = tl_op_attr(copy, TL_ATTR_EXTENTS);
  int64_t elements = 1;
  for (int32_t i = 0; i < extents->v.ints.len; i++) elements *= extents->v.ints.items[i];
  return elements * tl_dtype_bits(tl_op_arg(copy, TL_GROUP_COPY_src)->type->dtype) / 8;
}

void tl_run_engine_copy(tl_barrier_verifier *self, const tl_op *copy) {
  const tl_value *barrier = tl_op_arg(copy, TL_GROUP_COPY_barrier);
  if (!barrier) return;  // closed by a bulk commit
  tl_run_peers peers = tl_run_peers_of(self, copy);
  for (int32_t p = 0; p < peers.count; p++) {
    int32_t block = peers.first + p * peers.stride;
    size_t at = find_stage_of(self, copy, barrier, tl_op_arg(copy, TL_GROUP_COPY_stage), block);
    for (size_t i = 0; i < self->records.len; i++) {
      tl_run_access *record = &self->records.items[i];
      if (record->op != copy || record->counts_phase >= 0 || record->block != block || record->role != self->role)
        continue;
      record->counts_on = at;
      record->counts_phase = self->stages.items[at].phase;
    }
    self->stages.items[at].bytes -= copy_bytes(copy) / peers.count;
    maybe_end_phase(self, copy, at);
  }
}

// Whether the role that runs has made the access by a store of the engine.
static bool is_store(const tl_barrier_verifier *self, const tl_run_access *record) {
  return record->role == self->role && record->is_engine && record->counts_phase < 0;
}

static void run_bulk_commit(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (is_store(self, record) && record->group < 0) record->group = self->roles[self->role].num_bulk;
  }
  self->roles[self->role].num_bulk++;
}

static void run_bulk_wait(tl_barrier_verifier *self, const tl_op *op) {
  int64_t last = self->roles[self->role].num_bulk - 1 - tl_op_int(op, TL_ATTR_PENDING, 0);
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (!is_store(self, record) || record->group < 0 || record->group > last) continue;
    if (record->kind == TL_RUN_READ || !tl_op_has(op, TL_ATTR_READ)) record->seen |= self->roles[self->role].elected;
  }
}

void tl_run_meet(tl_barrier_verifier *self, int64_t number) {
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (record->kind != TL_RUN_WAITED || record->role != self->role) continue;
    if (number == 0) record->is_met = true;
    if (record->gemm == 0) record->gemm = number;
  }
}

// The gemms up to the latest `pending` have ended, for the threads of their warpgroup, all of which issued them.
static void run_gemm_wait(tl_barrier_verifier *self, const tl_op *op) {
  int64_t last = self->roles[self->role].num_gemms - tl_op_int(op, TL_ATTR_PENDING, 0);
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    if (record->role != self->role || record->gemm <= 0 || record->gemm > last) continue;
    if (record->kind == TL_RUN_WAITED)
      record->is_met = true;
    else
      record->has_landed = true;
  }
}

bool tl_run_async(tl_barrier_verifier *self, const tl_op *op) {
  switch (op->code) {
    case TL_OP_MBARRIER_INIT:
      run_init(self, op);
      return true;
    case TL_OP_MBARRIER_ARRIVE:
      run_arrive(self, op);
      return true;
    case TL_OP_MBARRIER_EXPECT:
      run_expect(self, op);
      return true;
    case TL_OP_MBARRIER_WAIT:
      run_wait(self, op);
      return true;
    case TL_OP_NAMED_SYNC:
      run_sync(self, op);
      return true;
    case TL_OP_NAMED_ARRIVE:
      run_arrive_named(self, op);
      return true;
    case TL_OP_FENCE_PROXY:
      run_fence(self, op);
      return true;
    case TL_OP_GEMM_WAIT:
      run_gemm_wait(self, op);
      return true;
    case TL_OP_TURN:  // nothing may rely on it
      self->roles[self->role].in_turn = tl_op_int(op, TL_ATTR_TURN, TL_TURN_TAKE) == TL_TURN_TAKE;
      return true;
    case TL_OP_BULK_COMMIT:
      run_bulk_commit(self);
      return true;
    case TL_OP_BULK_WAIT:
      run_bulk_wait(self, op);
      return true;
    default:
      return false;
  }
}

bool tl_run_keep_at_barrier(tl_barrier_verifier *self, tl_run_access *record) {
  uint32_t all = self->roles[self->role].all;
  bool own = record->role == self->role && !record->is_engine;
  if (own || (record->seen & all)) record->seen |= all;
  if ((own && record->is_fenced) || (record->fenced & all)) record->fenced |= all;
  return tl_run_is_of_interest(self, record);
}

void tl_run_end(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->records.len; i++) {
    const tl_run_access *record = &self->records.items[i];
    if (!record->is_engine || record->seen || self->roots.items[record->root]->code != TL_OP_ALLOC) continue;
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_run_describe(self, record->op, &text);
    tl_strbuf_appendf(&text, " %s '%s', and nobody waits for it", record->kind == TL_RUN_READ ? "reads" : "writes",
                      tl_run_root_name(self->roots.items[record->root]));
    tl_run_fail(self, record->op, NULL, tl_strbuf_c(&text));
    tl_strbuf_fini(&text);
    return;
  }
}
