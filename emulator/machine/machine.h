// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine that device code runs on: a worker (one OS thread) holds one or more clusters of blocks, whose threads it
// interleaves; a block has warps, a warp has up to 32 lanes, a lane is a fiber. Private to the emulator.
#ifndef TL_EMULATOR_MACHINE_H
#define TL_EMULATOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include "emulator/machine/emulator.h"
#include "support/strbuf.h"
#include "support/vec.h"

enum {
  TL_EMU_WARP = 32,
  TL_EMU_MAX_THREADS = 1024,
  TL_EMU_MAX_WARPS = TL_EMU_MAX_THREADS / TL_EMU_WARP,
  TL_EMU_NUM_BARRIERS = 16,     // PTX ISA, bar / barrier: "16 barriers (numbered 0 to 15)"
  TL_EMU_POLL_INTERVAL = 1024,  // loop iterations of a worker between two looks at the clock and a change of thread
  TL_EMU_MAX_MEETINGS = 4,      // collectives of disjoint lane sets that one warp may have open at once
  // PTX ISA, Cluster of Cooperative Thread Arrays: 8 blocks on every GPU, 16 with the non-portable launch attribute.
  TL_EMU_MAX_CLUSTER = 16,
  TL_EMU_BLOCK_STRIDE = 16 << 20,  // bytes between the shared memories of two blocks of a worker
  TL_EMU_MAX_BLOCKS = 256,         // of a worker: its window is 4 GiB
  TL_EMU_MAX_FIBERS = 16384        // of a worker: each stack takes two mappings of the process
};

// Scopes of atomics and fences, the widest first: of .gpu and .sys, .cluster, .cta.
typedef enum tl_emu_scope { TL_EMU_SCOPE_ALL, TL_EMU_SCOPE_CLUSTER, TL_EMU_SCOPE_BLOCK } tl_emu_scope;
enum { TL_EMU_NUM_SCOPES = 3 };

typedef struct tl_emu_site tl_emu_site;
typedef struct tl_emu_worker tl_emu_worker;
typedef struct tl_emu_block tl_emu_block;
typedef struct tl_emu_cluster tl_emu_cluster;
typedef struct tl_emu_wgmma tl_emu_wgmma;          // ops_wgmma.c
typedef struct tl_emu_sanitizer tl_emu_sanitizer;  // checker.h
typedef struct tl_emu_raw_list tl_emu_raw_list;    // checker.h

typedef enum tl_emu_access_kind {
  TL_EMU_READ,
  TL_EMU_WRITE,
  TL_EMU_ATOMIC,       // reads and writes; unordered atomics do not race with each other
  TL_EMU_ATOMIC_READ,  // only reads
  TL_EMU_ATOMIC_WRITE  // only writes
} tl_emu_access_kind;

// Runs a device op for the calling thread. `result` and `args` are structs laid out as in C, members in the order of
// the op's signature (device_ops.def); i1 is a byte of 0 or 1. `result` is NULL when there is none.
typedef void tl_emu_op_fn(void *result, const void *args, const tl_emu_site *site);

// One row of the binding table. `name` may hold one '*', which stands for any text.
typedef struct tl_emu_binding {
  const char *name;
  const char *signature;  // as in device_ops.def
  tl_emu_op_fn *run;
  int param;         // what `run` makes of it
  bool on_mbarrier;  // its first operand is an mbarrier: its ops find by themselves that there is none
} tl_emu_binding;

typedef struct tl_emu_range {
  size_t from, to;
} tl_emu_range;

// One call of a device op in a kernel, or, where accesses are checked, a plain access. Owned by the kernel.
struct tl_emu_site {
  const tl_emu_binding *binding;
  const char *op;    // name of the device op; "load", "store", "atomic"
  uint32_t ordinal;  // number of the call in the module, from 1; 0 for plain accesses
  uint32_t line;     // source line from debug information; 0 when there is none
  const char *file;  // its file; NULL when there is none
  const char *uses;  // of the macros that the line came from; NULL when there are none
  void *detail;      // Owned. What the name of an op of wgmma says; else NULL
  // Of plain accesses:
  tl_emu_access_kind access;
  uint32_t bytes, align;
  bool acquires, releases;
  tl_emu_scope scope;  // of an atomic
  bool is_local;       // of PTX, to memory of the thread
  const char *what;    // of a place where a value matters that may be undefined: what happens to it. Static
  bool is_followed;    // a load of shared memory whose value has a shadow: reading what nobody wrote is no finding
  // The tiles that code of its line touches, as bytes of shared memory; 0: not known.
  const tl_emu_range *tiles;
  uint32_t num_tiles;
};

// Lanes of one warp that came together for a collective, until the last one arrives.
typedef struct tl_emu_meeting {
  uint32_t mask;     // who must come
  uint32_t arrived;  // who has come; 0: the meeting is free
  const tl_emu_site *site;
  void *result[TL_EMU_WARP];
  const void *args[TL_EMU_WARP];
} tl_emu_meeting;

typedef struct tl_emu_copy {
  uint8_t *to;
  const uint8_t *from;
  uint32_t bytes, from_bytes;  // the rest is zero-filled
  uint32_t group;
} tl_emu_copy;

typedef struct tl_emu_transfer tl_emu_transfer;  // bulk.h
typedef struct tl_emu_mbarrier tl_emu_mbarrier;  // mbarrier.c

// Bulk transfers of one thread that complete by group and that it has not waited for.
typedef struct tl_emu_bulk_queue {
  tl_emu_transfer *first, *last;  // Owned (a reference each). In order of issue.
  uint32_t open_group;            // that the next one joins
} tl_emu_bulk_queue;

// "mbarrier at offset 65536 of shared memory, phase 0, …": what the fiber waits for.
typedef struct tl_emu_fiber tl_emu_fiber;
typedef void tl_emu_describe_wait_fn(const tl_emu_fiber *fiber, tl_strbuf *out);

struct tl_emu_fiber {
  void *sp;             // while suspended
  tl_emu_block *block;  // Borrowed.
  uint32_t stack;       // number of its stack in the worker's memory
  uint16_t thread, lane, warp;
  uint32_t open_group;  // cp.async group that the next copy joins
  uint32_t num_issued;  // cp.async so far
  uint32_t num_copies, copies_capacity;
  tl_emu_copy *copies;  // Owned. Issued, not landed yet; in order of issue.
  tl_emu_bulk_queue bulk;
  const void *waits_for;  // what it waits for, for whoever wakes it; NULL: for nothing, or at a barrier or meeting
  tl_emu_describe_wait_fn *describe_wait;  // says what that is
  bool may_give_up;                        // the wait has a time limit …
  bool gave_up;                            // … and the last one came to it
  bool in_cluster_barrier;                 // it has arrived there and not waited yet …
  uint32_t cluster_phase;                  // … for this phase
  uint32_t votes, voters;                  // of the last barrier with a reduction
  const tl_emu_site *site;                 // last collective or barrier it came to
  const tl_emu_site *loop;                 // the loop in which it was last asked to let others run; NULL: none yet
};

// What an asynchronous operation still has to do, put off until it lands: when no thread of the worker can run, or when
// something asks for it (a wait for its group, tl_emu_land). Embedded in the structure of the operation.
typedef struct tl_emu_deferred tl_emu_deferred;
struct tl_emu_deferred {
  tl_emu_deferred *previous, *next;
  tl_emu_fiber *issuer;     // set by tl_emu_defer; runs as the current thread while the operation lands
  const tl_emu_site *site;  // of the operation
  // Does the work unless `drop` (the launch was given up), and frees the operation. Called once.
  void (*land)(tl_emu_deferred *operation, bool drop);
};

typedef struct tl_emu_warp {
  uint32_t exist;     // lanes that the block has
  uint32_t runnable;  // lanes that could run now
  uint32_t exited;
  uint16_t index;
  uint16_t rank;                       // place in the order in which warps are tried
  uint32_t registers;                  // of a thread
  uint32_t wanted_registers;           // of the warp, that it waits for
  uint32_t num_setmaxnreg;             // executed
  const tl_emu_site *setmaxnreg_site;  // of the last one
  tl_emu_meeting meetings[TL_EMU_MAX_MEETINGS];
} tl_emu_warp;

typedef struct tl_emu_barrier {
  uint32_t arrived, expected;  // threads, in whole warps
  uint32_t reduction;          // TL_EMU_BARRIER_RED_… of those that arrived, or 0
  uint32_t votes, voters;      // threads whose predicate is set, and all that there are
  const tl_emu_site *site;
  struct tl_emu_clock *clock;          // of those that arrived
  uint32_t waiting[TL_EMU_MAX_WARPS];  // lanes
} tl_emu_barrier;

// What JIT-compiled code reads and writes itself. Retargeting knows the order of the members.
typedef struct tl_emu_context {
  void *shared;      // 0: shared memory of the running block
  int32_t budget;    // 1: loop iterations until tl_emu_poll is called
  int32_t meetings;  // 2: accesses through which threads meet until tl_emu_interleave is called
} tl_emu_context;

// Stacks and the shared window of a worker; kept between launches.
typedef struct tl_emu_memory {
  uint8_t *window;     // 4 GiB aligned; the whole slot up to the next 4 GiB boundary is reserved
  size_t block_pages;  // bytes that are accessible at the start of each block's part
  uint32_t num_blocks;
  uint8_t *stacks;  // num_stacks × (guard page + stack)
  size_t num_stacks;
  struct tl_emu_memory *next;
} tl_emu_memory;

typedef struct tl_emu_fault {
  int signal;  // 0: none
  bool wrote;
  bool no_address;
  uintptr_t address;
} tl_emu_fault;

typedef struct tl_emu_launch_state tl_emu_launch_state;
typedef struct tl_emu_hooks tl_emu_hooks;  // hooks.h

// A thread block, and everything that belongs to one.
struct tl_emu_block {
  tl_emu_worker *worker;    // Borrowed.
  tl_emu_cluster *cluster;  // Borrowed.
  uint8_t *shared;          // its shared memory, in the worker's window
  tl_emu_fiber *fibers;     // Owned. One a thread.
  tl_emu_warp warps[TL_EMU_MAX_WARPS];
  tl_emu_barrier barriers[TL_EMU_NUM_BARRIERS];
  tl_emu_wgmma *wgmma;         // Owned. NULL until a warpgroup uses it
  tl_emu_mbarrier *mbarriers;  // Owned.
  uint32_t num_mbarriers, mbarrier_capacity;
  TL_VEC(const void *)
  acquired_maps;            // tensor maps with a fence.proxy.tensormap::generic.acquire since their last change
  uint32_t free_registers;  // that its warps have given back
  uint32_t num_live;        // threads that have not exited
  uint32_t position[3];     // in the grid
  uint64_t index;           // the same, linear, x fastest
  uint32_t slot;            // its number in the worker: its shared memory starts at slot × TL_EMU_BLOCK_STRIDE
  uint32_t rank;            // in its cluster
};

// Blocks that run at the same time and reach each other's shared memory. Without clusters each block is one of its own.
struct tl_emu_cluster {
  tl_emu_block *blocks;       // Borrowed from the worker: launch->cluster_size of them, by rank
  uint32_t num_running;       // blocks that have a thread left; 0: the place is free
  uint32_t position[3];       // in the grid of clusters
  tl_emu_sanitizer *checker;  // Owned. NULL: nothing is checked
  uint32_t arrived, phase;    // of its barrier (barrier.cluster): threads in the current phase, and the phase's number
  struct tl_emu_clock *clocks[2];  // of the current phase and the one before, by parity
};

struct tl_emu_worker {
  tl_emu_context context;
  tl_emu_fiber *current;
  tl_emu_block *block;       // of `current`
  tl_emu_block *blocks;      // Owned. By slot; those of a cluster lie together
  tl_emu_cluster *clusters;  // Owned.
  uint32_t num_blocks, num_clusters;
  uint32_t num_running;                   // clusters
  uint32_t num_threads, num_warps;        // of a block
  uint16_t warp_order[TL_EMU_MAX_WARPS];  // rank → warp
  bool descending;                        // order of lanes
  bool round_robin;                       // warps take turns, instead of the first in the order running ahead
  volatile bool in_fiber;
  bool failed;            // the launch was given up; `report` says why
  bool no_memory;         // … as memory ran out, of which there is no report
  pthread_mutex_t *held;  // of several workers, while it allocates: is given back when memory runs out. NULL: none
  uint64_t failed_block;  // index of the block that `report` is about
  void *main_sp;          // stack of the worker itself while a fiber runs
  volatile tl_emu_fault fault;
  tl_emu_deferred *first_deferred, *last_deferred;
  uint32_t landing_state;  // of the generator that chooses which operation lands
  uint32_t meeting_state;  // of the one that chooses who runs where threads meet
  uint32_t num_polls;
  uint64_t clock_reads;
  uint32_t num_given_up;  // times that all waits with a time limit came to it since something else happened
  // While a device op touches memory: the op and the thread (of the running block) that a fault is to be blamed on.
  const tl_emu_site *volatile access_site;
  volatile uint32_t access_thread;
  tl_emu_launch_state *launch;  // Borrowed.
  tl_emu_memory *memory;        // Owned while the launch runs.
  tl_strbuf report;
  tl_emu_stats stats;
#ifdef TL_SANITIZED
  const void *main_bottom;
  size_t main_size;
  void *main_fake;
#endif
};

// ---- worker.c
// The worker of this OS thread; NULL elsewhere.
extern _Thread_local tl_emu_worker *tl_emu_self __attribute__((tls_model("initial-exec")));
// Where in the grid of clusters the cluster is that is begun as number `number`.
void tl_emu_cluster_position(const tl_emu_launch_state *launch, uint64_t number, uint32_t out_position[3]);
// The block of the worker whose part of the window holds `address`, or NULL.
tl_emu_block *tl_emu_block_at(const tl_emu_worker *worker, const void *address);

// ---- schedule.c

// A collective's work, once all lanes of `meeting->mask` are there. Returns whether they go on; else they have been
// parked.
typedef bool tl_emu_collective_fn(tl_emu_warp *warp, tl_emu_meeting *meeting);

// Brings the calling lane to the collective `site` of the lanes in `mask`; the last one runs `work` for all.
void tl_emu_meet(uint32_t mask, void *result, const void *args, const tl_emu_site *site, tl_emu_collective_fn *work);
// The same for ops that every lane of the warp must execute together.
void tl_emu_meet_warp(void *result, const void *args, const tl_emu_site *site, tl_emu_collective_fn *work);
// Lets other threads of the worker run; called by loops now and then, with the loop (NULL: none). Gives the launch up
// when its time is over.
void tl_emu_poll(const tl_emu_site *loop);
// Lets some other thread of the worker run, mostly one of the same warp; called now and then before atomics, ordered
// and volatile accesses. With seed 0 nobody else runs.
void tl_emu_interleave(void);
// The fiber waits for `what` from now on, which `describe` tells of; with NULL for nothing. It is parked in any case.
static inline void tl_emu_set_wait(tl_emu_fiber *fiber, const void *what, tl_emu_describe_wait_fn *describe) {
  fiber->waits_for = what;
  fiber->describe_wait = describe;
}
// Parks the running thread until tl_emu_wake names it; returns then.
void tl_emu_park(void);
void tl_emu_wake(tl_emu_fiber *fiber);
// Gives the launch up. Does not return.
void tl_emu_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
// Memory has run out on this thread: the launch is given up, from whatever fiber runs; returns where none does.
void tl_emu_memory_ran_out(void);
// A mutex of several workers, under which this one may allocate.
void tl_emu_lock(pthread_mutex_t *mutex);
void tl_emu_unlock(pthread_mutex_t *mutex);
// The same with a report that is already written.
void tl_emu_give_up(void) __attribute__((noreturn));
// Runs fibers, `first` first, until a cluster has ended or the launch was given up.
void tl_emu_run_fibers(tl_emu_worker *worker, tl_emu_fiber *first);
// The calling thread has come to its end.
void tl_emu_exit(void) __attribute__((noreturn));
// A thread that can run, those of `from` and the blocks behind it first. NULL: none.
tl_emu_fiber *tl_emu_pick(tl_emu_worker *worker, const tl_emu_block *from);
// Appends the operation to those that have not landed; the running thread is its issuer.
void tl_emu_defer(tl_emu_deferred *operation);
// Lands it now.
void tl_emu_land(tl_emu_deferred *operation);
// Lands (or drops) everything that threads of `cluster` have issued.
void tl_emu_land_cluster(tl_emu_cluster *cluster, bool drop);
uint64_t tl_emu_now_ns(void);

// ---- block.c
// Runs clusters until none is left or the launch is given up; the worker's report is set then.
void tl_emu_run_clusters(tl_emu_worker *worker);
// Makes and frees the worker's blocks; its memory must have been acquired.
tl_status tl_emu_blocks_create(tl_emu_worker *worker);
void tl_emu_blocks_destroy(tl_emu_worker *worker);

// ---- dump.c
// "llvm.nvvm.bar.warp.sync (call 3, line 12)"
void tl_emu_describe_site(const tl_emu_site *site, tl_strbuf *out);
// "block (0, 1, 0), thread 33 (warp 1, lane 1)"
void tl_emu_describe_thread(const tl_emu_block *block, uint32_t thread, tl_strbuf *out);
// Write the worker's report: who waits where in the blocks that it holds, and which blocks have not been begun.
void tl_emu_report_deadlock(tl_emu_worker *worker);
void tl_emu_report_livelock(tl_emu_worker *worker);

// ---- memory.c
// "4 bytes past the end of a buffer of 1024 bytes"
void tl_emu_describe_address(uintptr_t address, tl_strbuf *out);
typedef struct tl_emu_buffer {
  uint8_t *start;
  size_t bytes;
  uint8_t *written;  // for each byte whether something wrote it; NULL: everything counts as written
} tl_emu_buffer;
// All buffers, by address. free() the array.
tl_emu_buffer *tl_emu_copy_buffers(size_t *out_count);
// Remembers writes. False: a read of a byte that nothing wrote.
bool tl_emu_note_written(const tl_emu_buffer *in, const void *address, size_t bytes, tl_emu_access_kind kind);
// A launch that does not check what is written: everything counts as written from now on.
void tl_emu_forget_written(void);
// Looks for bytes around buffers that changed. Reports each once.
bool tl_emu_find_damage(tl_strbuf *out);

// ---- worker_memory.c
tl_status tl_emu_memory_acquire(size_t num_stacks, tl_emu_memory **out);
void tl_emu_memory_release(tl_emu_memory *memory);
// Makes exactly `bytes` usable at the start of each of the first `num_blocks` parts of the window, ending at an
// inaccessible page but for alignment. Returns where those of the first start.
tl_status tl_emu_memory_set_shared(tl_emu_memory *memory, uint32_t num_blocks, size_t bytes, size_t align,
                                   uint8_t **out_start);
// Lowest address and size of stack `index`.
uint8_t *tl_emu_memory_stack(const tl_emu_memory *memory, size_t index);
size_t tl_emu_stack_bytes(void);
// The stack whose guard page holds `address`, or -1.
long tl_emu_memory_guard_of(const tl_emu_memory *memory, uintptr_t address);

// ---- fault.c
// Catches faults of kernels in all threads between these two (they nest). The first installs, the last restores.
void tl_emu_faults_begin(void);
void tl_emu_faults_end(void);
// An alternate signal stack for the calling thread.
typedef struct tl_emu_signal_stack {
  void *memory;
  void *previous;
} tl_emu_signal_stack;
void tl_emu_signal_stack_begin(tl_emu_signal_stack *stack);
void tl_emu_signal_stack_end(tl_emu_signal_stack *stack);
// Writes the report for worker->fault.
void tl_emu_report_fault(tl_emu_worker *worker);

// ---- a launch, as all of its workers see it
typedef void tl_emu_entry_fn(void **params);

// What was released at an address of global memory (sanitize_order.c).
typedef struct tl_emu_released {
  const void *address;  // NULL: a free slot
  struct tl_emu_foreign *foreign;
} tl_emu_released;
typedef struct tl_emu_released_table {
  tl_emu_released *slots;
  size_t capacity, len;
} tl_emu_released_table;

struct tl_emu_launch_state {
  const tl_emu_hooks *const *hooks;  // of what keeps something with blocks, in the order of the calls; then NULL
  tl_emu_entry_fn *entry;
  const char *kernel_name;
  void **params;
  uint32_t grid[3];     // blocks
  uint32_t cluster[3];  // blocks of a cluster
  uint32_t cluster_size;
  uint32_t resident;  // clusters that a worker holds
  uint64_t num_clusters;
  uint32_t num_threads;
  int num_workers;
  size_t shared_bytes, shared_align;
  tl_landing landing;
  uint32_t seed;
  double timeout_s;
  uint64_t deadline_ns;
  uint64_t order_step, order_start;  // cluster number i is (start + i × step) mod num_clusters
  uint64_t next_cluster;             // atomic
  int stop;                          // atomic; set on the first failure
  uint32_t checks;                   // TL_EMU_SANITIZE_… bits
  const tl_emu_site *sites;          // Borrowed from the kernel.
  size_t num_sites;
  const tl_debug_info *debug;
  const tl_manifest_param *param_infos;  // Borrowed from the kernel; none where nothing is checked
  uint32_t num_params;
  bool follows_undefined;          // shared memory may hold content that nobody wrote
  bool has_narrow;                 // some atomics or fences have scope .cta or .cluster
  size_t dynamic_offset;           // where dynamic shared memory, which tiles lie in, starts
  uint32_t entry_registers;        // of a thread; 0: not known to ptxas
  uint32_t shared_granule;         // bytes; divides size and address of every access to shared memory
  struct tl_emu_global *global;    // Owned. Shadow of global memory
  tl_emu_released_table released;  // by atomics, under a lock
  tl_emu_raw_list *found;          // under a lock while blocks run
  uint64_t untold;                 // findings at more places than are kept; under the same lock
};

// Loops over the lanes of a mask, lowest first.
#define TL_EMU_FOR_LANES(lane, mask)                                                                            \
  for (uint32_t rest_##lane = (mask), lane; rest_##lane && (lane = (uint32_t)__builtin_ctz(rest_##lane), true); \
       rest_##lane &= rest_##lane - 1)

// Puts the blame for a fault during the following accesses on `thread` in `site`.
static inline void tl_emu_access_begin(const tl_emu_site *site, uint32_t thread) {
  tl_emu_self->access_thread = thread;
  tl_emu_self->access_site = site;
  __asm__ volatile("" ::: "memory");
}
static inline void tl_emu_access_end(void) {
  __asm__ volatile("" ::: "memory");
  tl_emu_self->access_site = NULL;
}

// Where the running block's part of the window starts: addresses in descriptors are offsets from there.
static inline const uint8_t *tl_emu_shared_base(void) {
  const uint8_t *shared = tl_emu_self->context.shared;
  return shared - (uintptr_t)shared % TL_EMU_BLOCK_STRIDE;
}

// Whether `pointer` is in the running block's shared memory for `bytes`; used for messages before the hardware would
// fault.
static inline bool tl_emu_is_shared(const void *pointer, size_t bytes) {
  uintptr_t offset = (uintptr_t)pointer - (uintptr_t)tl_emu_self->context.shared;
  size_t size = tl_emu_self->launch->shared_bytes;
  return offset < size && bytes <= size - offset;
}

#endif
