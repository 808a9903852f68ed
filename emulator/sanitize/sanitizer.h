// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State of the checker of one cluster (or block without one). Happens-before is kept in the manner of FastTrack
// (Flanagan and Freund, 2009): every thread has a vector clock, every granule of memory the epochs of its last write
// and of its last reads.
//
// Agents, the components of a vector: the cluster's threads, block by block; then for each thread the queue of its
// cp.async copies, which complete in order; then slots for other asynchronous operations, used in turn.
#ifndef TL_EMULATOR_SANITIZER_H
#define TL_EMULATOR_SANITIZER_H

#include <string.h>

#include "emulator/sanitize/findings.h"
#include "emulator/sanitize/sanitize.h"

enum { TL_EMU_ASYNC_SLOTS = 128, TL_EMU_COPY_GROUPS = 64, TL_EMU_CELL_READERS = 3 };

// Components up to `width` are clocks; `num_threads` more say up to which clock a thread's accesses of shared memory
// were fenced for the async proxy, and as many more the same of global memory. Shared between threads until one of them
// learns something.
typedef struct tl_emu_foreign tl_emu_foreign;
typedef struct tl_emu_vector {
  uint32_t refs;
  tl_emu_foreign *foreign;  // Owned (a reference). Of other clusters; NULL: nothing
  uint32_t items[];
} tl_emu_vector;

struct tl_emu_clock {
  tl_emu_vector *value;  // Owned (a reference). NULL: nothing was released yet.
  tl_emu_vector *base;   // Owned (a reference), or NULL: a vector that `value` covers
  tl_emu_clock *next;    // in the checker's list of all clocks
  uint32_t phase;        // number of resets
};

// What a thread knows. Its own two components are kept here, so that `known` can be shared.
typedef struct tl_emu_agent {
  tl_emu_vector *known;
  const tl_emu_clock *released;  // it knows no more than what it released there last, in that phase; or NULL
  uint32_t released_phase;
  // By scope. Owned (references). What it knew at its last release fence of that scope or a wider one; NULL: there was
  // none. What relaxed reads of that scope or a wider one saw since its last acquire fence of such; NULL: nothing.
  tl_emu_vector *at_fence[TL_EMU_NUM_SCOPES], *observed[TL_EMU_NUM_SCOPES];
  uint32_t now;
  uint32_t fenced[2];      // its clock at its last fence.proxy.async: of shared memory, of global memory
  uint32_t copies_issued;  // cp.async
  uint32_t copies_done;
  uint32_t group;  // number of committed groups
  uint32_t group_end[TL_EMU_COPY_GROUPS];
  const tl_emu_site *copy_site;  // of its last cp.async
  // Of a persistent kernel: the tile that it works at + 1, how many it has begun, and its clocks when it began this
  // one.
  uint32_t tile, tiles, tile_start, tile_copies;
  struct tl_emu_locals *locals;  // Owned. NULL: none
} tl_emu_agent;

struct tl_emu_async {
  tl_emu_sanitizer *checker;  // Borrowed.
  tl_emu_vector *known;       // Owned (a reference).
  uint32_t slot, clock;
  uint32_t issuer, issuer_now, issuer_fenced[2], issuer_copies_done;
  tl_emu_proxy proxy;
  const tl_emu_site *site;
  tl_emu_async *next, *previous;  // of those that have not ended
};

// An access as a cell remembers it: agent 16, clock 28, site 17 bits, then three flags. 0: none.
typedef uint64_t tl_emu_epoch;
enum {
  TL_EMU_EPOCH_ATOMIC = 1,
  TL_EMU_EPOCH_ASYNC_PROXY = 2,
  TL_EMU_EPOCH_READ = 4,
  TL_EMU_EPOCH_SITE_SHIFT = 3,
  TL_EMU_EPOCH_WHEN_SHIFT = 20,
  TL_EMU_EPOCH_AGENT_SHIFT = 48
};
#define TL_EMU_EPOCH_MAX_CLOCK 0xfffffffu
#define TL_EMU_EPOCH_MAX_SITE 0x1ffffu

// A granule of shared memory. Reads are those that are not ordered among each other since the write; further ones are
// in tl_emu_readers.
typedef struct tl_emu_cell {
  tl_emu_epoch write;
  tl_emu_epoch reads[TL_EMU_CELL_READERS];
} tl_emu_cell;

// An address of shared memory that atomics release at.
typedef struct tl_emu_atomic {
  const void *address;
  int32_t block;  // within the cluster, for which alone; -1: the cluster
  tl_emu_clock *clock;
} tl_emu_atomic;

// A finding before it becomes text: the first of its kind between two sites, in the first block that has one.
typedef struct tl_emu_raw_finding {
  tl_emu_finding_kind kind;
  tl_emu_access_kind access;
  tl_emu_epoch now, before;  // with sites
  uint32_t thread;           // that accesses, or that issued what accesses; in its block
  int64_t before_thread;     // the same for `before`; -1: not known
  uint64_t block, before_block;
  uint32_t tile, before_tile;  // of a persistent kernel, + 1; 0: not known
  const void *address;
  int64_t shared_offset;  // -1: not in shared memory
  uint32_t bytes, align;
  const char *what;   // of a misuse, and of what happens to an undefined value; static
  uint32_t sequence;  // in its cluster
  uint64_t count;
  char *place;  // Owned. Of global memory, which may be gone when the text is made; NULL in shared memory
} tl_emu_raw_finding;

struct tl_emu_raw_list {
  tl_emu_raw_finding *items;
  size_t len, capacity;
};

// A read of shared memory that nobody wrote, by a load whose value has a shadow.
typedef struct tl_emu_unwritten {
  const tl_emu_site *site;
  const uint8_t *address;
  char *place;  // Owned. Of local memory; else NULL
  uint32_t agent;
  bool told;
} tl_emu_unwritten;

typedef struct tl_emu_undefined tl_emu_undefined;  // sanitize_undefined.c
typedef struct tl_emu_ends tl_emu_ends;            // sanitize_exit.c
typedef struct tl_emu_readers tl_emu_readers;      // sanitize_readers.c
typedef struct tl_emu_elements tl_emu_elements;    // sanitize_elements.c

struct tl_emu_sanitizer {
  tl_emu_launch_state *launch;    // Borrowed.
  const tl_emu_cluster *cluster;  // Borrowed.
  uint32_t checks;
  uint32_t num_threads, width;  // of the cluster; components
  bool has_tiles;               // some thread has begun a tile of a persistent kernel
  tl_emu_agent *agents;
  tl_emu_cell *cells;       // of the blocks, by rank
  tl_emu_readers *readers;  // Owned. Of the same cells
  uint32_t granule, granule_shift;
  size_t num_cells;                 // of one block
  size_t touched_from, touched_to;  // cells that were used
  tl_emu_vector **free_vectors;
  size_t num_free, free_capacity;
  tl_emu_clock *clocks;
  tl_emu_clock *meeting;          // of lanes
  TL_VEC(tl_emu_atomic) atomics;  // in shared memory
  tl_emu_async *asyncs;
  uint32_t next_slot;
  struct {
    uint32_t clock, issuer;
  } slots[TL_EMU_ASYNC_SLOTS];
  tl_emu_undefined *undefined;         // Owned. Shadow of shared memory; NULL: what was written there is defined
  const tl_emu_site *followed;         // of the plain access being made, when its value has a shadow; or NULL
  TL_VEC(tl_emu_unwritten) unwritten;  // reads of shared memory that nobody wrote, whose values are followed
  size_t next_unwritten;               // the one that takes the place of the oldest
  tl_emu_ends *ends;                   // Owned. NULL: one block
  tl_emu_elements *elements;           // Owned. NULL: no parallel was marked so far
  tl_emu_raw_list found;
  uint32_t num_found;  // in this cluster
  uint64_t untold;     // findings at more places than are kept
};

// The checker of the running thread's cluster, or NULL; and the agent that `thread` of the running block is.
static inline tl_emu_sanitizer *tl_emu_sanitizer_here(void) {
  return tl_emu_self->block->cluster->checker;
}
static inline uint32_t tl_emu_agent_here(uint32_t thread) {
  return tl_emu_self->block->rank * tl_emu_self->num_threads + thread;
}
static inline uint32_t tl_emu_epoch_agent(tl_emu_epoch epoch) {
  return (uint32_t)(epoch >> TL_EMU_EPOCH_AGENT_SHIFT);
}
static inline uint32_t tl_emu_epoch_clock(tl_emu_epoch epoch) {
  return (uint32_t)(epoch >> TL_EMU_EPOCH_WHEN_SHIFT) & TL_EMU_EPOCH_MAX_CLOCK;
}

// ---- epochs and actors

static inline tl_emu_epoch tl_emu_epoch_of(uint32_t agent, uint32_t clock) {
  return (tl_emu_epoch)agent << TL_EMU_EPOCH_AGENT_SHIFT | (tl_emu_epoch)clock << TL_EMU_EPOCH_WHEN_SHIFT;
}
// The site's place in an epoch.
static inline tl_emu_epoch tl_emu_site_bits(const tl_emu_sanitizer *checker, const tl_emu_site *site) {
  size_t index = (size_t)(site - checker->launch->sites) + 1;
  if (index > checker->launch->num_sites || index > TL_EMU_EPOCH_MAX_SITE) return 0;
  return (tl_emu_epoch)index << TL_EMU_EPOCH_SITE_SHIFT;
}
// The site of an access; NULL: not known.
static inline const tl_emu_site *tl_emu_site_of(const tl_emu_launch_state *launch, tl_emu_epoch epoch) {
  uint32_t index = (uint32_t)(epoch >> TL_EMU_EPOCH_SITE_SHIFT) & TL_EMU_EPOCH_MAX_SITE;
  return index ? &launch->sites[index - 1] : NULL;
}

// Who accesses, and what happened before.
typedef struct tl_emu_actor {
  tl_emu_epoch when;  // agent and clock
  tl_emu_epoch flags;
  const tl_emu_vector *known;
  uint32_t agent, agent_now;     // itself or the issuer
  uint32_t copies, copies_done;  // its queue of cp.async
  uint32_t fenced[2];
  const tl_emu_site *site;
  const void *value;  // that a plain store writes, where that matters; else NULL
} tl_emu_actor;

static inline tl_emu_actor tl_emu_actor_of_agent(const tl_emu_sanitizer *checker, uint32_t index,
                                                 const tl_emu_site *site) {
  const tl_emu_agent *agent = &checker->agents[index];
  return (tl_emu_actor){.when = tl_emu_epoch_of(index, agent->now),
                        .known = agent->known,
                        .agent = index,
                        .agent_now = agent->now,
                        .copies = checker->num_threads + index,
                        .copies_done = agent->copies_done,
                        .fenced = {agent->fenced[0], agent->fenced[1]},
                        .site = site};
}
// Whether both are of one agent at one time of its clock.
static inline bool tl_emu_same_agent_and_clock(tl_emu_epoch a, tl_emu_epoch b) {
  return !((a ^ b) >> TL_EMU_EPOCH_WHEN_SHIFT);
}
static inline bool tl_emu_happened_before(tl_emu_epoch epoch, const tl_emu_actor *actor) {
  uint32_t agent = tl_emu_epoch_agent(epoch), clock = tl_emu_epoch_clock(epoch);
  if (agent == actor->agent) return clock <= actor->agent_now;
  if (tl_emu_same_agent_and_clock(epoch, actor->when)) return true;
  if (agent == actor->copies) return clock <= actor->copies_done;
  return clock <= actor->known->items[agent];
}
// Whether `actor` stores what is at `address` already, and `before` is a plain store of a thread.
static inline bool tl_emu_stores_equal(const tl_emu_sanitizer *checker, const tl_emu_actor *actor, tl_emu_epoch before,
                                       const void *address, size_t bytes) {
  const tl_emu_epoch others = TL_EMU_EPOCH_ATOMIC | TL_EMU_EPOCH_ASYNC_PROXY | TL_EMU_EPOCH_READ;
  return actor->value && !(before & others) && tl_emu_epoch_agent(before) < checker->num_threads &&
         !memcmp(address, actor->value, bytes);
}
// Whether the async proxy comes after a write or read of the generic one: its thread fenced between that and what
// orders the two.
static inline bool tl_emu_is_fenced(const tl_emu_sanitizer *checker, tl_emu_epoch write, const tl_emu_actor *actor,
                                    bool is_global) {
  uint32_t agent = tl_emu_epoch_agent(write), clock = tl_emu_epoch_clock(write);
  if (agent >= checker->num_threads) return true;
  uint32_t at = checker->width + (is_global ? checker->num_threads : 0) + agent;
  return clock <= (agent == actor->agent ? actor->fenced[is_global] : actor->known->items[at]);
}
// Whether it is an access of the generic proxy to shared memory that is not. A read counts too: an arrival does not
// wait for loads that are under way, which may bring what the engine writes next (measured on an H200).
static inline bool tl_emu_is_unfenced(const tl_emu_sanitizer *checker, tl_emu_epoch before, const tl_emu_actor *actor) {
  return !(before & TL_EMU_EPOCH_ASYNC_PROXY) && !tl_emu_is_fenced(checker, before, actor, false);
}

// ---- clock.c
tl_emu_vector *tl_emu_vector_create(tl_emu_sanitizer *checker);  // zeroed, one reference
static inline tl_emu_vector *tl_emu_vector_share(tl_emu_vector *vector) {
  vector->refs++;
  return vector;
}
// `*vector` (NULL: of nothing) also knows what agent `index` knows and has done.
void tl_emu_vector_gather(tl_emu_sanitizer *checker, tl_emu_vector **vector, uint32_t index);
void tl_emu_vector_drop(tl_emu_sanitizer *checker, tl_emu_vector *vector);
void tl_emu_clocks_fini(tl_emu_sanitizer *checker);  // all clocks
// Whether the access and the one before it are of different blocks of the cluster, and the scope of one of them is
// .cta.
bool tl_emu_is_excluded(const tl_emu_sanitizer *checker, const tl_emu_actor *actor, tl_emu_epoch epoch);
// An atomic of agent `index` releases; a relaxed one what was known at the last release fence, if there was one.
void tl_emu_release_atomic(tl_emu_sanitizer *checker, uint32_t index, const void *address, tl_emu_scope scope);
void tl_emu_release_atomic_relaxed(tl_emu_sanitizer *checker, uint32_t index, const void *address, tl_emu_scope scope);

// ---- unwritten.c
// Whether the write belongs to a tile before the one that the reader, agent `index`, is at: what it left in shared
// memory is nothing that the reader may count on.
bool tl_emu_is_of_earlier_tile(const tl_emu_sanitizer *checker, uint32_t index, tl_emu_epoch write);
// Whether an element's bytes at `offset` of the block's shared memory are those that nobody wrote, for agent `agent`
// and the load that is followed.
bool tl_emu_is_unwritten(const tl_emu_sanitizer *checker, uint32_t agent, const tl_emu_block *block, size_t offset);

// ---- sanitize_order.c
// NULL is an empty map in all of these.
tl_emu_foreign *tl_emu_foreign_share(tl_emu_foreign *foreign);
void tl_emu_foreign_drop(tl_emu_foreign *foreign);
tl_emu_foreign *tl_emu_foreign_join(tl_emu_foreign *a, tl_emu_foreign *b, uint32_t num_threads);
// Up to which clock of a thread of cluster `owner` is known. From `num_threads` on: of the thread so much less, up to
// which clock a proxy fence of global memory followed.
uint32_t tl_emu_foreign_clock(const tl_emu_foreign *foreign, uint32_t owner, uint32_t thread);
// What is known of other clusters behind a proxy fence of who knows it. Owned.
tl_emu_foreign *tl_emu_foreign_fence(tl_emu_foreign *foreign, uint32_t num_threads);
// Raises `items`, clocks of the threads of cluster `owner`, to what the map says.
void tl_emu_foreign_read(const tl_emu_foreign *foreign, uint32_t owner, uint32_t num_threads, uint32_t *items);
// Releases `known`, with the components of the thread that does it, at an address of global memory; for `owner`.
void tl_emu_release_global(tl_emu_sanitizer *checker, uint32_t owner, const tl_emu_vector *known, const void *address);
// What was released there. Owned; NULL: nothing was.
tl_emu_foreign *tl_emu_released_at(tl_emu_sanitizer *checker, const void *address);
void tl_emu_released_fini(tl_emu_released_table *table);
// Who owns an access to global memory: the agent's tile in a persistent kernel, else its cluster's number in the grid.
static inline uint32_t tl_emu_owner(const tl_emu_sanitizer *checker, uint32_t agent) {
  if (checker->agents[agent].tile) return checker->agents[agent].tile - 1;
  const uint32_t *at = checker->cluster->position, *grid = checker->launch->grid, *size = checker->launch->cluster;
  return at[0] + grid[0] / size[0] * (at[1] + grid[1] / size[1] * at[2]);
}

// ---- global_memory.c
typedef struct tl_emu_global tl_emu_global;
// For one launch. Accesses are multiples of `granule` bytes.
tl_emu_global *tl_emu_global_create(uint32_t checks, uint32_t granule);
void tl_emu_global_destroy(tl_emu_global *global);
// Owners are numbers of tiles from now on.
void tl_emu_global_owned_by_tiles(tl_emu_global *global);
// Size of the buffer that starts there; 0: there is none.
size_t tl_emu_buffer_bytes(const tl_emu_global *global, const void *start);

// ---- sanitize_global.c
// An access to global memory, or to nothing.
bool tl_emu_sanitize_global(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                            tl_emu_access_kind kind);

// ---- sanitize_tensor.c
// A copy of the manifest's parameters in `arena`.
void tl_emu_copy_params(const tl_manifest_kernel *manifest, tl_arena *arena, tl_manifest_param **out);
// "C[3, 8], byte 2544 of 4096"; "4 bytes past the end of a buffer of 1024 bytes".
void tl_emu_describe_global(const tl_emu_launch_state *launch, const void *address, tl_strbuf *out);

// ---- sanitize_readers.c
tl_emu_readers *tl_emu_readers_create(size_t num_cells);
void tl_emu_readers_destroy(tl_emu_readers *readers);
void tl_emu_readers_reset(tl_emu_readers *readers);
// One more reader of a cell, in the place of one that is ordered before it. False: there is no room for it.
bool tl_emu_readers_add(tl_emu_readers *readers, size_t cell, tl_emu_epoch read, const tl_emu_actor *actor);
bool tl_emu_readers_has(const tl_emu_readers *readers, size_t cell);
// Forgets those of a cell that `actor` writes. Returns one that is not ordered with the write; 0: there is none. Where
// that would be one of the other proxy, `out_unfenced` (may be NULL) gets one that is ordered, but lacks a proxy fence.
tl_emu_epoch tl_emu_readers_end(const tl_emu_sanitizer *checker, size_t cell, const tl_emu_actor *actor, bool is_atomic,
                                tl_emu_epoch *out_unfenced);

// ---- sanitize_exit.c
// NULL when the cluster has one block, or bounds are not checked.
tl_emu_ends *tl_emu_ends_create(const tl_emu_sanitizer *checker);
void tl_emu_ends_destroy(tl_emu_ends *ends);
void tl_emu_ends_reset(tl_emu_sanitizer *checker);
// An access to the shared memory of `block`, of the cluster. False: the block has ended, which was told.
bool tl_emu_ends_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const tl_emu_block *block,
                        tl_emu_access_kind kind);
// A thread of the block is about to end.
void tl_emu_ends_thread(tl_emu_sanitizer *checker, const tl_emu_block *block, uint32_t thread);

// ---- sanitize_undefined.c
// NULL where shared memory needs no shadow.
tl_emu_undefined *tl_emu_undefined_create(const tl_emu_launch_state *launch);
void tl_emu_undefined_destroy(tl_emu_undefined *undefined);
// The reads that are remembered.
void tl_emu_undefined_forget(tl_emu_sanitizer *checker);
void tl_emu_undefined_begin(const tl_emu_sanitizer *checker);
// An access to shared memory, `at` bytes behind the start of that of block 0 of the cluster.
void tl_emu_undefined_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, size_t at, size_t bytes,
                             tl_emu_access_kind kind);

// ---- sanitize_local.c
typedef struct tl_emu_locals tl_emu_locals;
void tl_emu_locals_destroy(tl_emu_locals *locals);
// An access of the running thread to its stack. False: it is outside of its variables, which was told.
bool tl_emu_locals_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                          tl_emu_access_kind kind);
// As tl_emu_undefined_load and tl_emu_undefined_store; false: no local variable is there. `out_unwritten` becomes true
// where a byte is undefined, `out_origin` is that of a value that was stored, or 0.
bool tl_emu_locals_load(const tl_emu_sanitizer *checker, const void *address, void *bits, uint32_t bytes,
                        uint32_t *out_origin, bool *out_unwritten);
bool tl_emu_locals_store(const tl_emu_sanitizer *checker, const void *address, const void *bits, uint32_t bytes,
                         uint32_t origin);
// "byte 64 of a local variable of 64 bytes"
void tl_emu_describe_local(const tl_emu_sanitizer *checker, const void *address, tl_strbuf *out);

// ---- sanitize_elements.c
void tl_emu_elements_destroy(tl_emu_elements *elements);

// ---- sanitize_report.c
typedef struct tl_emu_seen {
  tl_emu_finding_kind kind;
  tl_emu_access_kind access;
  const tl_emu_actor *actor;
  tl_emu_epoch before;  // 0: nothing
  const void *address;
  size_t bytes, align;
  uint32_t before_owner;  // cluster of `before` + 1; 0: the same
  const char *what;       // of a misuse, and of what happens to an undefined value; static
  const char *place;      // NULL: the address says it
} tl_emu_seen;
// Index of the block of rank `rank` in cluster number `owner` of the grid.
uint64_t tl_emu_block_of(const tl_emu_launch_state *launch, uint32_t owner, uint32_t rank);
// Records a finding.
void tl_emu_found(tl_emu_sanitizer *checker, const tl_emu_seen *seen);
// Whether the bytes of shared memory belong to no element of a tile, but to a tile. Only the tiles that the site's line
// touches count: others may lie in the same memory at another time. NULL, or a line nothing is known of: all tiles.
bool tl_emu_is_padding(const tl_emu_launch_state *launch, const tl_emu_site *site, size_t offset, size_t bytes);
// An asynchronous operation ends, and nobody was told.
void tl_emu_async_unawaited(tl_emu_sanitizer *checker, const tl_emu_async *async);
// Hands what one checker found to the launch. Thread-safe.
void tl_emu_hand_over(tl_emu_sanitizer *checker);
// Turns what a launch found into findings, in an order that does not depend on who ran what.
void tl_emu_report_found(tl_emu_launch_state *launch, tl_emu_findings *out);

#endif
