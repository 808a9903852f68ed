// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops, branches and roles of verify-barriers. A role has a stack of its own, so that it can stop at a wait that
// cannot end yet and go on when others have arrived.
//
// One schedule stands for all: roles hand on what they do at mbarriers alone, whose phases nobody laps
// (verify_barriers_async.c), and none of them looks whether another has arrived without waiting for it. So what each
// does, whether all end, and what is in whose past do not depend on who runs first (a network in Kahn's sense).
#include "passes/sync/verify_barriers_internal.h"
#include "support/status.h"

enum { WHOLE_LOOP_TRIPS = 48 };  // longer loops jump over a multiple of every ring's depth in their middle

static void push_block(tl_run_role *role, const tl_block *block, const tl_op *around) {
  tl_run_frame frame = {.block = block, .next = block->first, .around = around};
  tl_vec_push(&role->frames, frame);
}

static void pop(tl_run_role *role) {
  tl_vec_fini(&tl_vec_last(&role->frames).carried);
  role->frames.len--;
}

static void set_results(tl_barrier_verifier *self, const tl_op *op, const tl_run_value *values, size_t count) {
  for (uint32_t i = 0; i < op->num_results && i < count; i++) tl_run_env_copy(&self->env, &op->results[i], &values[i]);
}

// ---- loops

// Ends a tile of a persistent kernel: between tiles, as between blocks, nothing is ordered in global memory.
static void end_tile(tl_barrier_verifier *self) {
  size_t kept = 0;
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    bool is_global = record->kind != TL_RUN_WAITED && record->role == self->role &&
                     self->roots.items[record->root]->code == TL_OP_TENSOR;
    if (!is_global)
      tl_run_keep(self, i, &kept);
    else
      tl_vec_fini(&record->releases);
  }
  self->records.len = kept;
}

static void begin_for(tl_barrier_verifier *self, tl_run_role *role, const tl_op *op) {
  int64_t lower = tl_run_env_number(&self->env, tl_op_operand(op, 0));
  int64_t upper = tl_run_env_number(&self->env, tl_op_operand(op, 1));
  int64_t step = tl_run_env_number(&self->env, tl_op_operand(op, 2));
  // Which tiles a block gets is not looked at below, only how many there are.
  bool is_tiles = tl_op_has(op, TL_ATTR_TILES);
  for (uint32_t i = is_tiles; i < (is_tiles ? 2 : 3) && !tl_run_is_explored(self, op); i++)
    self->has_drawn |= tl_run_env_at(&self->env, tl_op_operand(op, i))->drawn;
  if (step == 0) step = 1;
  int64_t trips = tl_trip_count(lower, upper, step);
  // Of a loop over tiles the first ones of the one block that is run.
  if (is_tiles) {
    trips = upper < TL_RUN_MAX_TILES ? upper : TL_RUN_MAX_TILES;
    lower = 0;
    step = 1;
  }
  push_block(role, op->regions[0], op);
  tl_run_frame *frame = &tl_vec_last(&role->frames);
  frame->lower = lower;
  frame->step = step;
  frame->trips = trips;
  frame->trip = -1;
  frame->jump_at = trips > WHOLE_LOOP_TRIPS + 4 * self->period ? 2 * self->period + 8 : -1;
  if (tl_op_has(op, TL_ATTR_WHILE)) {
    // A few iterations show every pair of neighbours.
    frame->jump_at = -1;
    if (trips > WHOLE_LOOP_TRIPS) frame->trips = WHOLE_LOOP_TRIPS;
  }
  for (uint32_t i = 3; i < op->num_operands; i++)
    tl_vec_push(&frame->carried, *tl_run_env_at(&self->env, tl_op_operand(op, i)));
  frame->next = NULL;  // the first iteration begins where the one before ends
}

static void end_iteration(tl_barrier_verifier *self, tl_run_frame *frame) {
  if (tl_op_has(frame->around, TL_ATTR_TILES)) end_tile(self);
  const tl_op *yield = tl_block_terminator(frame->block);
  for (uint32_t v = 0; yield && v < frame->carried.len && v < yield->num_operands; v++)
    frame->carried.items[v] = *tl_run_env_at(&self->env, tl_op_operand(yield, v));
}

// Whether there is a next iteration, which is begun then.
static bool next_iteration(tl_barrier_verifier *self, tl_run_frame *frame) {
  if (frame->trip >= 0) end_iteration(self, frame);
  frame->trip++;
  if (frame->trip >= frame->trips) return false;
  if (tl_op_has(frame->around, TL_ATTR_WHILE)) {
    self->has_drawn |= frame->carried.items[0].drawn;
    if (frame->carried.items[0].number == 0) return false;
  }
  // The middle of a long loop repeats with the period of its rings.
  if (frame->trip == frame->jump_at) frame->trip += (frame->trips - 2 * frame->jump_at) / self->period * self->period;
  tl_run_env_set(&self->env, frame->block->args[0], frame->lower + frame->trip * frame->step, false);
  for (size_t i = 0; i < frame->carried.len; i++)
    *tl_run_env_at(&self->env, frame->block->args[1 + i]) = frame->carried.items[i];
  frame->next = frame->block->first;
  return true;
}

// ---- branches

static void begin_if(tl_barrier_verifier *self, tl_run_role *role, const tl_op *op) {
  const tl_run_value *condition = tl_run_env_at(&self->env, tl_op_operand(op, 0));
  self->has_drawn |= condition->drawn && !self->has_drawn && tl_run_decides(self, op);
  push_block(role, op->regions[condition->number != 0 ? 0 : 1], op);
}

static void end_if(tl_barrier_verifier *self, const tl_run_frame *frame) {
  const tl_op *yield = tl_block_terminator(frame->block);
  for (uint32_t i = 0; yield && i < frame->around->num_results && i < yield->num_operands; i++)
    tl_run_env_copy(&self->env, &frame->around->results[i], tl_run_env_at(&self->env, tl_op_operand(yield, i)));
}

// ---- roles

static void end_block(tl_barrier_verifier *self, tl_run_role *role) {
  tl_run_frame *frame = &tl_vec_last(&role->frames);
  const tl_op *around = frame->around;
  if (around && around->code == TL_OP_FOR) {
    if (next_iteration(self, frame)) return;
    set_results(self, around, frame->carried.items, frame->carried.len);
  } else if (around && around->code == TL_OP_IF) {
    end_if(self, frame);
  }
  pop(role);
}

static void run_roles(tl_barrier_verifier *self, const tl_op *op);

// To have arrived there is a step, too.
static bool sync_ends(tl_barrier_verifier *self, const tl_op *op, bool *moved) {
  *moved |= self->roles[self->role].syncs_at != op;
  return tl_run_sync_ends(self, op);
}

// Runs the current role until it ends or waits; whether it came any further.
static bool run_role(tl_barrier_verifier *self) {
  tl_run_role *role = &self->roles[self->role];
  bool moved = false;
  while (role->frames.len > 0 && tl_run_goes_on(self)) {
    tl_run_frame *frame = &tl_vec_last(&role->frames);
    const tl_op *op = frame->next;
    if (!op) {
      end_block(self, role);
      continue;
    }
    // Before the roles there is nobody else who could arrive.
    bool waits = (op->code == TL_OP_MBARRIER_WAIT && self->role > 0 && !tl_run_wait_ends(self, op)) ||
                 (op->code == TL_OP_NAMED_SYNC && self->role > 0 && !sync_ends(self, op, &moved)) ||
                 (op->code == TL_OP_CLUSTER_BARRIER && self->role > 0 && !tl_run_cluster_met(self, op, &moved));
    role->waits_at = waits ? op : NULL;
    if (waits) return moved;
    moved = true;
    self->budget--;
    frame->next = op->next;
    if (op->code == TL_OP_FOR)
      begin_for(self, role, op);
    else if (op->code == TL_OP_IF)
      begin_if(self, role, op);
    else if (op->code == TL_OP_ROLES && self->block + 1 < self->num_blocks)
      return moved;  // the other blocks come here first
    else if (op->code == TL_OP_ROLES)
      run_roles(self, op);
    else
      tl_run_statement(self, op);
  }
  return moved;
}

static void report_deadlock(tl_barrier_verifier *self) {
  tl_strbuf text;
  const tl_op *at = NULL;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, "deadlock, no role can go on: ");
  for (int32_t r = 1; r <= self->num_roles; r++) {
    const tl_run_role *role = &self->roles[r];
    tl_run_enter_block(self, role->block);
    tl_strbuf_appendf(&text, "%s'%s' ", r > 1 ? "; " : "", tl_op_str(role->op, TL_ATTR_NAME));
    if (self->num_blocks > 1) tl_strbuf_appendf(&text, "of block %d ", (int)role->block);
    if (role->waits_at && !at) at = role->waits_at;
    if (role->waits_at)
      tl_run_describe_wait(self, role->waits_at, &text);
    else
      tl_strbuf_append_c(&text, "has ended");
  }
  tl_diag *diag = tl_run_fail(self, at ? at : self->kernel, NULL, tl_strbuf_c(&text));
  for (int32_t r = 1; diag && r <= self->num_roles; r++) {
    const tl_run_role *role = &self->roles[r];
    if (role->waits_at && role->waits_at != at)
      tl_diag_add_note(self->context->diags, diag, role->waits_at->loc, "'%s' waits here",
                       tl_op_str(role->op, TL_ATTR_NAME));
  }
  tl_strbuf_fini(&text);
}

// Runs the roles that `op` holds; NULL: the blocks of the cluster, each as one.
static void run_roles(tl_barrier_verifier *self, const tl_op *op) {
  for (int32_t r = 1; r <= self->num_roles; r++) push_block(&self->roles[r], self->roles[r].op->regions[0], op);
  bool moved = true, all_ended = false;
  while (moved && !all_ended) {
    moved = false;
    all_ended = true;
    for (self->role = 1; self->role <= self->num_roles; self->role++) {
      tl_run_enter_block(self, self->roles[self->role].block);
      moved |= run_role(self);
      all_ended &= self->roles[self->role].frames.len == 0;
    }
  }
  self->role = 0;
  if (!all_ended && tl_run_goes_on(self)) report_deadlock(self);
}

// ---- who there is

static void add_role(tl_barrier_verifier *self, const tl_op *op, int32_t block) {
  int32_t number = ++self->num_roles;
  uint32_t first = 2 * (uint32_t)(number - 1);
  self->roles[number] = (tl_run_role){.op = op, .block = block, .elected = 1u << first, .all = 3u << first};
}

bool tl_run_find_roles(tl_barrier_verifier *self) {
  const tl_op *roles = NULL;
  self->roles[0] = (tl_run_role){.op = self->kernel, .elected = 1, .all = 3};
  for (const tl_op *op = self->kernel->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_ROLES) roles = op;
  for (int32_t block = 0; block < self->num_blocks && self->num_blocks > 1 && !roles; block++)
    add_role(self, self->kernel, block);
  for (int32_t block = 0; block < self->num_blocks && roles; block++) {
    for (const tl_op *role = roles->regions[0]->first; role; role = role->next) {
      if (role->code != TL_OP_ROLE) continue;
      if (self->num_roles == TL_RUN_MAX_ROLES) return false;
      add_role(self, role, block);
    }
  }
  // Before the roles all of their threads are together.
  for (int32_t r = 1; r <= self->num_roles; r++) self->roles[0].all |= self->roles[r].all;
  return true;
}

void tl_run_kernel(tl_barrier_verifier *self) {
  for (int32_t r = 0; r <= self->num_roles; r++) {
    tl_run_role *role = &self->roles[r];
    while (role->frames.len > 0) pop(role);
    role->num_commits = role->num_bulk = role->num_gemms = role->num_met = 0;
    role->waits_at = role->syncs_at = NULL;
  }
  if (self->num_roles > 0 && self->roles[1].op == self->kernel) {
    run_roles(self, NULL);
    return;
  }
  for (int32_t block = 0; block < self->num_blocks && tl_run_goes_on(self); block++) {
    tl_run_enter_block(self, block);
    self->role = 0;
    while (self->roles[0].frames.len > 0) pop(&self->roles[0]);
    push_block(&self->roles[0], self->kernel->regions[0], NULL);
    run_role(self);
  }
}

void tl_run_forget_roles(tl_barrier_verifier *self) {
  for (int32_t r = 0; r <= self->num_roles; r++) {
    while (self->roles[r].frames.len > 0) pop(&self->roles[r]);
    tl_vec_fini(&self->roles[r].frames);
  }
}
