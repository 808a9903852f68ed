// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of verify-barriers share: the evaluator, which runs a kernel's scalars concretely, and the accesses
// that threads and copy engine have made.
#ifndef TL_PASSES_VERIFY_BARRIERS_INTERNAL_H
#define TL_PASSES_VERIFY_BARRIERS_INTERNAL_H

#include "ir/index/affine.h"
#include "ir/ir.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

// The value of an SSA value during a run. Scalars and indices: `number` (floats stand for themselves as an opaque
// number that is the same for the same computation). Buffers: `number` is the root, `slot` the copy of a staged tile.
typedef struct tl_run_value {
  int64_t number;
  int64_t slot;
  int32_t peer;  // of a tile of another block of the cluster: that block + 1; 0: the own one
  bool known;    // was computed in this run
  bool drawn;    // from the seed, or from what was
} tl_run_value;

// What a root of the exploration is in a run, whatever it would be computed to.
typedef struct tl_run_fixed {
  int64_t number;
  bool drawn;
} tl_run_fixed;

typedef struct tl_run_env {
  const tl_value **keys;  // Owned. Open addressing over all values of the kernel.
  tl_run_value *values;   // Owned.
  uint32_t *places;  // Owned. Of each key where it stands among the fixed ones, from 1; 0, SETTLED: it is computed.
  size_t capacity;   // a power of two
  uint64_t seed;     // what unknown values (loads, dynamic params, block indices) are drawn from
  TL_VEC(tl_run_fixed) fixed;
  bool is_impossible;  // the values contradict what holds at every launch: no block runs with them
} tl_run_env;

void tl_run_env_init(tl_run_env *env, tl_op *kernel);
void tl_run_env_fini(tl_run_env *env);
void tl_run_env_clear(tl_run_env *env);
tl_run_value *tl_run_env_at(tl_run_env *env, const tl_value *value);
// Sets a result, `drawn` from the seed or not; a value that the exploration fixed keeps its fixed number.
void tl_run_env_set(tl_run_env *env, const tl_value *value, int64_t number, bool drawn);
// The value is the fixed one at that place from now on; SETTLED: it is computed, and does not count as drawn.
enum { TL_RUN_SETTLED = 1 << 30 };
void tl_run_env_fix(tl_run_env *env, const tl_value *value, size_t place);
bool tl_run_env_is_fixed(const tl_run_env *env, const tl_value *value);
// As tl_run_env_set, of a value that was computed elsewhere.
void tl_run_env_copy(tl_run_env *env, const tl_value *to, const tl_run_value *from);
int64_t tl_run_env_number(tl_run_env *env, const tl_value *value);
// What a value that nothing says is in the env's seed: of another number for each `salt`. It is large for the first
// seeds, so that what is subtracted from it leaves something, and less than indices for the next one.
int64_t tl_run_draw(const tl_run_env *env, tl_value *value, uint64_t salt);
// Whether arithmetic on values of the type is computed, without wrapping.
bool tl_run_is_exact(const tl_type *type);
// Evaluates a pure scalar op or a load into its result.
void tl_run_scalar(tl_run_env *env, const tl_op *op);

// ---- accesses

typedef enum tl_run_kind { TL_RUN_READ, TL_RUN_WRITE, TL_RUN_ATOMIC, TL_RUN_WAITED } tl_run_kind;

// Roles of all blocks that are run: those of one cluster, where they reach each other.
enum { TL_RUN_MAX_ROLES = 16, TL_RUN_MAX_BLOCKS = 8 };

// What an arrival handed on: whoever waits for this phase has the access in its past.
typedef struct tl_run_release {
  size_t stage;  // of the verifier's stages
  int64_t phase;
  bool fenced;  // a proxy fence stood before the arrival
} tl_run_release;

// An access that another thread, or another proxy, may not have seen yet.
typedef struct tl_run_access {
  tl_run_kind kind;
  int32_t role;        // whose access it is
  int32_t block;       // in whose memory
  int64_t made;        // number of the statement that made it, in the order of the run
  int64_t root, slot;  // of a WAITED: the stage of an mbarrier, and the phase
  bool is_async;       // of cp.async, or of a gemm in flight
  bool has_landed;     // of an async one: its own thread waited for it
  int64_t group;       // of an async one, or of a bulk copy: number of the commit that closed it; -1 before
  int64_t ring;        // the ring of that commit, or -1
  bool is_engine;      // of the copy engine
  bool is_matrix;      // of the matrix unit, for its warpgroup: through the asynchronous proxy, too
  int64_t gemm;        // number of the gemm in flight that reads, from 1; of a WAITED: of the first behind it; 0: none
  bool is_met;         // of a WAITED: a gemm behind it has ended, so every warp of the warpgroup was there
  bool is_fenced;      // a proxy fence of its own threads came after it
  uint32_t seen;       // in whose past it is (bits of roles) …
  uint32_t fenced;     // … with a proxy fence of its own threads between
  TL_VEC(tl_run_release) releases;
  size_t counts_on;  // of a copy by the engine into shared memory: the stage, and its phase
  int64_t counts_phase;
  // Of copies, tile loads and tile stores: the buffer that the box is of (else NULL), and its ends, both inclusive.
  const tl_value *box_buffer;
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
  const tl_op *op;
} tl_run_access;

// One mbarrier.
typedef struct tl_run_stage {
  const tl_op *made;
  int32_t block;
  int64_t number;
  bool is_started;
  int64_t phase;    // the current one
  int64_t pending;  // arrivals that it still needs
  int64_t bytes;    // expected and not yet come; copies may come first
  // Phases that each role has waited for, all up to this number; roles that had not waited for a phase when the one
  // after it ended: which of the two a wait of theirs means depends on when it is made.
  int64_t waited[1 + TL_RUN_MAX_ROLES];
  uint32_t lapped;
  uint32_t arrived;  // of a named barrier: roles that did in this phase
} tl_run_stage;

typedef struct tl_ring_state {
  const tl_value *ring;
  TL_VEC(int64_t) commits;  // global numbers of this ring's commits
} tl_ring_state;

// Bytes of shared memory that a root takes, from `start` up to `end`; none when it has no place there.
typedef struct tl_run_extent {
  int64_t start, end;
} tl_run_extent;

// A region that a role is in.
typedef struct tl_run_frame {
  const tl_block *block;
  const tl_op *next;    // NULL: the block has ended
  const tl_op *around;  // FOR, IF or ROLES; NULL: the kernel
  // Of a FOR: iteration `trip` of `trips` runs (-1: none yet); at jump_at the middle is left out.
  int64_t lower, step, trips, trip, jump_at;
  TL_VEC(tl_run_value) carried;
} tl_run_frame;

// A role, or the kernel as far as all threads are together. Of each role the elected thread and all others are told
// apart: a bit each.
typedef struct tl_run_role {
  const tl_op *op;  // ROLE or KERNEL
  int32_t block;    // of the cluster
  uint32_t elected, all;
  TL_VEC(tl_run_frame) frames;
  const tl_op *waits_at;  // for what has not come
  const tl_op *syncs_at;  // a named barrier that it has arrived at, in phase `syncs_in`
  int64_t syncs_in;
  int64_t num_commits;  // groups of cp.async that were closed
  int64_t num_bulk;     // bulk groups that were closed
  int64_t num_gemms;    // asynchronous gemms that were issued
  bool in_turn;         // took one, and did not pass it on
  int64_t num_met;      // meetings of the cluster that it has come to
} tl_run_role;

typedef TL_VEC(const tl_op *) tl_run_ops;

// What bounds of loops follow from by integer arithmetic, and does not follow itself: a param of the launch, a place in
// the grid, an element of memory. What roles compute alike is one root.
typedef struct tl_run_root {
  tl_value *value;
  const tl_value *extent;  // of a place in the grid: it is less; NULL: no place
  tl_run_ops ops;          // that compute the extent
  bool is_set;             // so that a loop has some number of trips; else it is drawn
} tl_run_root;

// The bounds of a loop.
typedef struct tl_run_bounds {
  const tl_op *loop;
  const tl_value *lower, *upper;  // lower: where the loop begins that this one goes on from; NULL: 0
  tl_run_ops ops;                 // that compute them, in their order
  TL_VEC(size_t) roots;           // that they follow from
  size_t sets;                    // one of those
  bool is_decided;                // it sets a root that no other one set before
} tl_run_bounds;

// A condition, and whether it matters to memory which way is taken.
typedef struct tl_run_branch {
  const tl_op *op;
  bool decides;
} tl_run_branch;

// Of a root: who touches it, or what lies on the same memory (bits of roles: where the copy engine does, of the elected
// thread alone); whether any of that goes through the asynchronous proxy.
typedef struct tl_run_use {
  uint32_t threads;
  bool is_proxied;
} tl_run_use;

enum { TL_RUN_MAX_DEPTH = 16 };  // stages of a ring
// Tiles of a persistent kernel that are run: every pair of neighbours, and one that has both.
enum { TL_RUN_MAX_TILES = 3 };

typedef struct tl_barrier_verifier {
  tl_pass_context *context;
  tl_op *kernel;
  tl_run_env env;
  TL_VEC(const tl_op *) roots;     // ALLOC and TENSOR ops; a buffer's number is its position
  TL_VEC(tl_run_extent) extents;   // of every root
  bool *is_written;                // a root each: what nobody writes needs no records. In scratch memory.
  tl_run_use *uses;                // a root each. In scratch memory.
  TL_VEC(tl_run_branch) branches;  // that the run came to
  TL_VEC(tl_run_access) records;
  TL_VEC(tl_ring_state) rings;
  TL_VEC(tl_run_stage) stages;
  tl_run_role roles[1 + TL_RUN_MAX_ROLES];  // 0: the kernel
  int32_t num_roles;                        // without the kernel
  int32_t role;                             // that runs
  // Blocks of the cluster, where they reach each other, else 1; the one that runs. What each has computed: of that one
  // it is in `env`.
  int32_t num_blocks, block;
  tl_run_value *values[TL_RUN_MAX_BLOCKS];  // Owned.
  int64_t num_made;                         // statements that made accesses
  bool uses_engine;                         // some copy goes by the copy engine
  bool uses_proxy;                          // some copy goes by the copy engine, or the matrix unit reads shared memory
  int64_t period;                           // product-free common multiple of all depths
  bool has_drawn;                           // a branch or a trip count came from the seed
  int64_t max_depth;
  int64_t budget;                   // statements left to run
  int64_t num_runs;                 // of which none was impossible
  bool has_reported;                // a mistake of the author
  bool by_hand;                     // he has barriers or roles of his own: what is wrong is his
  TL_VEC(const tl_op *) loops;      // whose upper bounds are no constants
  TL_VEC(tl_run_bounds) bounds;     // of those that follow from roots
  TL_VEC(tl_run_root) bound_roots;  // as the fixed values
  TL_VEC(size_t) order;             // in which roots are set
  TL_VEC(int64_t) lengths;          // of all those loops, a row for each run with the seed
  tl_status status;
} tl_barrier_verifier;

// Whether the run has come to no end before its last statement.
static inline bool tl_run_goes_on(const tl_barrier_verifier *self) {
  return !self->status && self->budget > 0 && !self->env.is_impossible;
}

// Of a pass over all records that drops some: record `i` stays, behind the `*kept` before it.
static inline void tl_run_keep(tl_barrier_verifier *self, size_t i, size_t *kept) {
  if (*kept != i) self->records.items[*kept] = self->records.items[i];
  ++*kept;
}

// ---- verify_barriers.c

const char *tl_run_root_name(const tl_op *root);
// "copy of line 12"
void tl_run_describe(tl_barrier_verifier *self, const tl_op *op, tl_strbuf *out);
void tl_run_race(tl_barrier_verifier *self, const tl_run_access *before, const tl_run_access *after);
// Ends the run with what is wrong at `op`; `other` may be NULL. A mistake of the author's, which is given back (NULL:
// of ours).
tl_diag *tl_run_fail(tl_barrier_verifier *self, const tl_op *op, const tl_op *other, const char *text);

// Runs an op without regions, or with those of a parallel.
void tl_run_statement(tl_barrier_verifier *self, const tl_op *op);
// All threads of the role that runs meet.
void tl_run_barrier(tl_barrier_verifier *self);

// Runs the kernel once, with what the seed decides.
void tl_run_once(tl_barrier_verifier *self, uint64_t seed);

// ---- verify_barriers_explore.c

// Finds what the bounds of `loops` follow from.
void tl_run_fix_bounds(tl_barrier_verifier *self);
// Runs the kernel with every number of trips that matters.
void tl_run_explore(tl_barrier_verifier *self);
// Whether the exploration sets how often the loop runs.
bool tl_run_is_explored(const tl_barrier_verifier *self, const tl_op *loop);
void tl_run_forget_bounds(tl_barrier_verifier *self);

// ---- verify_barriers_same.c

// Whether two roles compute a value in the same way.
bool tl_run_is_same(const tl_value *a, const tl_value *b);
// Whether the two ways of an IF touch memory or synchronise in different ways.
bool tl_run_decides(tl_barrier_verifier *self, const tl_op *branch);

// ---- verify_barriers_cluster.c

// Whether the kernel's blocks reach others of their cluster; then all of them are run.
int32_t tl_run_count_blocks(tl_op *kernel);
void tl_run_enter_block(tl_barrier_verifier *self, int32_t block);
void tl_run_forget_blocks(tl_barrier_verifier *self);
// The blocks that a copy or an arrival is for: `first`, `first` + `stride`, …, `count` of them. The own place among
// them.
typedef struct tl_run_peers {
  int32_t first, stride, count, place;
} tl_run_peers;
tl_run_peers tl_run_peers_of(const tl_barrier_verifier *self, const tl_op *op);
// Whether the role that runs, which is a block of the cluster, may go on behind a meeting of all of them: others have
// come as well. To have come there is a step, too (`moved`).
bool tl_run_cluster_met(tl_barrier_verifier *self, const tl_op *op, bool *moved);
// Puts the indices of the grid where the block that runs stands in the cluster.
void tl_run_place_in_cluster(tl_barrier_verifier *self, const tl_op *grid);

// ---- verify_barriers_control.c

// Finds the kernel's roles; false when they are too many.
bool tl_run_find_roles(tl_barrier_verifier *self);
// Runs the kernel from its beginning: loops, branches and roles.
void tl_run_kernel(tl_barrier_verifier *self);
void tl_run_forget_roles(tl_barrier_verifier *self);

// ---- verify_barriers_access.c

// Whether the op's operands are read by the matrix unit itself.
bool tl_run_is_matrix(const tl_op *op);

// What one access of a statement is handed to: `op` makes it, maybe deep inside the statement.
typedef void tl_run_access_fn(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer);
// Every access of the statement and of everything inside, in program order; those of block-private buffers too.
void tl_run_each_access(tl_barrier_verifier *self, const tl_op *statement, tl_run_access_fn *fn, void *user);
tl_run_extent tl_run_extent_of(const tl_op *root);
// Whether two roots (by number) lie on common memory: one root, or tiles that plan-shared put over one another.
bool tl_run_roots_meet(const tl_barrier_verifier *self, int64_t a, int64_t b);

// Finds the roots that the kernel writes.
void tl_run_find_written(tl_barrier_verifier *self);
// Finds who touches which root; the roles are known.
void tl_run_find_uses(tl_barrier_verifier *self);
// Checks the accesses of `statement` and of everything inside against what was before, and keeps them.
void tl_run_accesses(tl_barrier_verifier *self, const tl_op *statement);
// An op that has no case: what it does would pass unseen. An internal error.
void tl_run_unknown(tl_barrier_verifier *self, const tl_op *op);
void tl_run_forget(tl_barrier_verifier *self);  // all accesses

// ---- verify_barriers_async.c

// Whether somebody who touches the memory may still have to learn of the access, or through another proxy.
bool tl_run_is_of_interest(const tl_barrier_verifier *self, const tl_run_access *record);
// Runs an op of mbarriers, proxy fences, gemms in flight or bulk groups; false when it is another one.
bool tl_run_async(tl_barrier_verifier *self, const tl_op *op);
// A gemm on the matrix unit, number `number` in flight, or 0 where it has ended: its warps met.
void tl_run_meet(tl_barrier_verifier *self, int64_t number);
// A copy by the engine, whose accesses were added: it counts on its mbarrier.
void tl_run_engine_copy(tl_barrier_verifier *self, const tl_op *copy);
// The named barriers of a block that begins.
void tl_run_start_named(tl_barrier_verifier *self, const tl_op *made);
// Arrives at a named barrier, with a NAMED_SYNC once; whether that one may go on.
bool tl_run_sync_ends(tl_barrier_verifier *self, const tl_op *op);
// Whether an MBARRIER_WAIT ends now.
bool tl_run_wait_ends(tl_barrier_verifier *self, const tl_op *op);
// "waits for stage 1 of 'full', phase 0 (mbarrier_wait of line 12)"
void tl_run_describe_wait(tl_barrier_verifier *self, const tl_op *op, tl_strbuf *out);
// At a barrier of the role that runs: what goes on being of interest. False: forget it.
bool tl_run_keep_at_barrier(tl_barrier_verifier *self, tl_run_access *access);
// At the end of the kernel: what the engine still does with shared memory.
void tl_run_end(tl_barrier_verifier *self);

// ---- verify_barriers_order.c

// The alloc or tensor behind a buffer, by its number; -1 when the run has none.
int64_t tl_run_root_of(const tl_barrier_verifier *self, const tl_value *buffer);
// Whether the statement copies asynchronously, so that its accesses go on behind it.
bool tl_run_is_in_flight(const tl_op *statement);
// Proves without running anything that no two statements race, from the order of statements and barriers alone: it
// knows neither slots nor boxes, and no mbarriers. False: it may still be so. Takes time that grows with the kernel's
// size, not with its trip counts.
bool tl_run_prove_order(tl_barrier_verifier *self);

// ---- verify_barriers_serial.c

// Puts a barrier before every statement that touches memory which the kernel writes, and makes asynchronous copies go
// through registers: slower, and within reach of tl_run_prove_order. Says so in a remark.
void tl_run_serialise(tl_barrier_verifier *self);

#endif
