// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// verify-barriers without a run: which accesses may have happened since the last barrier, as a data flow over the
// statements. For every root it keeps which kinds of accesses those are. Loops are walked until what their end hands to
// their start is nothing new; a loop keeps the largest state that it was entered with, so that nesting costs no more
// than the number of facts.
#include "ir/index/affine.h"
#include "passes/sync/verify_barriers_internal.h"

enum {
  DID_READ = 1,  // since the last barrier, by any thread
  DID_WRITE = 2,
  DID_UPDATE = 4,
  FLIES_READING = 8,  // by an asynchronous copy, whose group is open
  FLIES_WRITING = 16,
  SENT_READING = 32,  // … or closed, and not waited for
  SENT_WRITING = 64,
  UNFENCED = 128,  // written by threads that made no proxy fence since
  FENCED = 256,    // … that made one, but no barrier since
  SINCE_BARRIER = DID_READ | DID_WRITE | DID_UPDATE,
  UNSEEN_BY_PROXY = UNFENCED | FENCED,
  ANY_WRITE = DID_WRITE | FLIES_WRITING | SENT_WRITING,
  EVERYTHING = ANY_WRITE | DID_READ | DID_UPDATE | FLIES_READING | SENT_READING,
};

typedef struct loop_facts {
  const tl_op *loop;
  uint16_t *entry, *leaves;  // a word a root
} loop_facts;

typedef struct order_proof {
  tl_barrier_verifier *self;
  size_t num_roots;
  TL_VEC(loop_facts) loops;
  bool fails;
} order_proof;

int64_t tl_run_root_of(const tl_barrier_verifier *self, const tl_value *buffer) {
  const tl_op *root = tl_buffer_root(buffer);
  for (size_t i = 0; i < self->roots.len; i++) {
    if (self->roots.items[i] == root) return (int64_t)i;
  }
  return -1;
}

bool tl_run_is_in_flight(const tl_op *statement) {
  return tl_op_has(statement, TL_ATTR_ASYNC) && tl_op_int(statement, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_CP_ASYNC;
}

static uint16_t *fresh_state(order_proof *proof) {
  return TL_NEW_ARRAY(&proof->self->context->scratch, uint16_t, proof->num_roots + 1);
}

static uint16_t *copy_state(order_proof *proof, const uint16_t *state) {
  uint16_t *copy = fresh_state(proof);
  for (size_t i = 0; i < proof->num_roots; i++) copy[i] = state[i];
  return copy;
}

// Whether `into` grew.
static bool merge(const order_proof *proof, uint16_t *into, const uint16_t *from) {
  bool grew = false;
  for (size_t i = 0; i < proof->num_roots; i++) {
    grew |= (from[i] & ~into[i]) != 0;
    into[i] |= from[i];
  }
  return grew;
}

// ---- statements

typedef struct statement_facts {
  order_proof *proof;
  const uint16_t *before;
  uint16_t *after;
  bool flies;
} statement_facts;

static uint16_t conflicting(tl_run_kind kind) {
  switch (kind) {
    case TL_RUN_READ:
      return ANY_WRITE | DID_UPDATE;
    case TL_RUN_ATOMIC:
      return EVERYTHING & ~DID_UPDATE;
    case TL_RUN_WRITE:
    case TL_RUN_WAITED:
      break;
  }
  return EVERYTHING;
}

static void add_access(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  statement_facts *facts = user;
  order_proof *proof = facts->proof;
  if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return;
  int64_t root = tl_run_root_of(proof->self, buffer);
  if (root < 0) {
    proof->fails = true;
    return;
  }
  // The matrix unit sees what threads wrote once each of them has made a fence and met the others.
  uint16_t against = conflicting(kind) | (tl_run_is_matrix(op) ? UNSEEN_BY_PROXY : 0);
  for (size_t i = 0; i < proof->num_roots; i++) {
    if ((facts->before[i] & against) && tl_run_roots_meet(proof->self, root, (int64_t)i)) proof->fails = true;
  }
  if (kind == TL_RUN_ATOMIC)
    facts->after[root] |= DID_UPDATE;
  else if (kind == TL_RUN_READ)
    facts->after[root] |= facts->flies ? FLIES_READING : DID_READ;
  else
    facts->after[root] |= facts->flies ? FLIES_WRITING : DID_WRITE | UNFENCED;
}

// An asynchronous gemm reads until a wait for all of them; only one that follows at once is understood here.
static bool stays_in_flight(const tl_op *statement) {
  if (statement->code != TL_OP_GEMM || !tl_op_has(statement, TL_ATTR_ASYNC)) return false;
  const tl_op *next = statement->next;
  return !next || next->code != TL_OP_GEMM_WAIT || tl_op_int(next, TL_ATTR_PENDING, 0) != 0;
}

static void walk_accesses(order_proof *proof, const tl_op *statement, uint16_t *state) {
  if (stays_in_flight(statement)) proof->fails = true;
  statement_facts facts = {proof, copy_state(proof, state), state, tl_run_is_in_flight(statement)};
  tl_run_each_access(proof->self, statement, add_access, &facts);
}

static void walk_barrier(const order_proof *proof, uint16_t *state) {
  for (size_t i = 0; i < proof->num_roots; i++) state[i] &= (uint16_t) ~(SINCE_BARRIER | FENCED);
}

static void walk_fence(const order_proof *proof, uint16_t *state) {
  for (size_t i = 0; i < proof->num_roots; i++) {
    if (!(state[i] & UNFENCED)) continue;
    state[i] = (uint16_t)((state[i] & ~UNFENCED) | FENCED);
  }
}

static void walk_commit(const order_proof *proof, uint16_t *state) {
  for (size_t i = 0; i < proof->num_roots; i++) {
    if (state[i] & FLIES_READING) state[i] |= SENT_READING;
    if (state[i] & FLIES_WRITING) state[i] |= SENT_WRITING;
    state[i] &= (uint16_t) ~(FLIES_READING | FLIES_WRITING);
  }
}

// Closed groups have landed for the threads that waited; the others see them after a barrier.
static void walk_wait(const order_proof *proof, const tl_op *op, uint16_t *state) {
  if (tl_op_int(op, TL_ATTR_PENDING, 0) != 0) return;
  for (size_t i = 0; i < proof->num_roots; i++) {
    if (state[i] & SENT_READING) state[i] |= DID_READ;
    if (state[i] & SENT_WRITING) state[i] |= DID_WRITE | UNFENCED;
    state[i] &= (uint16_t) ~(SENT_READING | SENT_WRITING);
  }
}

// A ring's commit closes the open groups in an order of its own, which this proof does not follow.
static void walk_ring_commit(order_proof *proof, const uint16_t *state) {
  for (size_t i = 0; i < proof->num_roots; i++)
    if (state[i] & (FLIES_READING | FLIES_WRITING)) proof->fails = true;
}

// ---- control

static void walk_block(order_proof *proof, const tl_block *block, uint16_t *state, bool may_meet);

static void walk_if(order_proof *proof, const tl_op *op, uint16_t *state, bool may_meet) {
  uint16_t *before = copy_state(proof, state);
  // Threads that go different ways do not meet: barriers inside are no help.
  may_meet = may_meet && tl_op_has(op, TL_ATTR_UNIFORM);
  bool has_else = op->num_regions > 1;
  for (size_t i = 0; has_else && i < proof->num_roots; i++) state[i] = 0;
  for (uint32_t r = 0; r < op->num_regions; r++) {
    uint16_t *branch = copy_state(proof, before);
    walk_block(proof, op->regions[r], branch, may_meet);
    merge(proof, state, branch);
  }
}

static loop_facts *facts_of(order_proof *proof, const tl_op *loop) {
  for (size_t i = 0; i < proof->loops.len; i++)
    if (proof->loops.items[i].loop == loop) return &proof->loops.items[i];
  loop_facts fresh = {loop, fresh_state(proof), NULL};
  tl_vec_push(&proof->loops, fresh);
  return &proof->loops.items[proof->loops.len - 1];
}

// Between the tiles of a grid, as between its blocks, nothing is ordered in global memory.
static void forget_global(const order_proof *proof, uint16_t *state) {
  for (size_t i = 0; i < proof->num_roots; i++)
    if (proof->self->roots.items[i]->code == TL_OP_TENSOR) state[i] = 0;
}

static void walk_for(order_proof *proof, const tl_op *op, uint16_t *state, bool may_meet) {
  loop_facts facts = *facts_of(proof, op);
  bool grew = merge(proof, facts.entry, state) || !facts.leaves;
  while (grew && !proof->fails) {
    uint16_t *body = copy_state(proof, facts.entry);
    walk_block(proof, op->regions[0], body, may_meet);
    if (tl_op_has(op, TL_ATTR_TILES)) forget_global(proof, body);
    facts.leaves = body;
    grew = merge(proof, facts.entry, body);
  }
  facts_of(proof, op)->leaves = facts.leaves;
  // The loop may not run at all: what was before it stays possible.
  if (facts.leaves) merge(proof, state, facts.leaves);
}

static void walk_statement(order_proof *proof, const tl_op *op, uint16_t *state, bool may_meet) {
  switch (op->code) {
    case TL_OP_CLUSTER_BARRIER:
    case TL_OP_BARRIER:
      if (may_meet) walk_barrier(proof, state);
      return;
    case TL_OP_FENCE_PROXY:
      if (tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_SHARED) walk_fence(proof, state);
      return;
    case TL_OP_ASYNC_COMMIT:
      walk_commit(proof, state);
      return;
    case TL_OP_ASYNC_WAIT:
      walk_wait(proof, op, state);
      return;
    case TL_OP_RING_COMMIT:
      walk_ring_commit(proof, state);
      return;
    case TL_OP_RING_ACQUIRE:
    case TL_OP_RING_WAIT:
    case TL_OP_RING_RELEASE:
    case TL_OP_TURN:
      return;  // they order only what flies, or nothing
    case TL_OP_IF:
      walk_if(proof, op, state, may_meet);
      return;
    case TL_OP_FOR:
      walk_for(proof, op, state, may_meet);
      return;
    case TL_OP_MBARRIER:
    case TL_OP_NAMED_BARRIER:
    case TL_OP_TENSOR_MAP:
    case TL_OP_ROLES:
    case TL_OP_PEER_TILE:
      proof->fails = true;  // the copy engine keeps another order, and so do roles and other blocks
      return;
    default:
      walk_accesses(proof, op, state);
      return;
  }
}

static void walk_block(order_proof *proof, const tl_block *block, uint16_t *state, bool may_meet) {
  for (const tl_op *op = block->first; op && !proof->fails; op = op->next) walk_statement(proof, op, state, may_meet);
}

bool tl_run_prove_order(tl_barrier_verifier *self) {
  order_proof proof = {.self = self, .num_roots = self->roots.len};
  walk_block(&proof, self->kernel->regions[0], fresh_state(&proof), true);
  tl_vec_fini(&proof.loops);
  return !proof.fails && !self->status;
}
