// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What device ops tell the checker: accesses, and what orders them. Everything returns at once when the launch checks
// nothing. Private to the emulator; the page is docs/decisions/0009-emulator-checks.md.
#ifndef TL_EMULATOR_SANITIZE_H
#define TL_EMULATOR_SANITIZE_H

#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"

// Happens-before clock of a synchronisation object: a barrier, a phase of an mbarrier, a group of copies. Zeroed:
// nothing happened yet. Belongs to one block of a worker and is forgotten when the block ends.
typedef struct tl_emu_clock tl_emu_clock;

typedef enum tl_emu_proxy { TL_EMU_PROXY_GENERIC, TL_EMU_PROXY_ASYNC } tl_emu_proxy;

// An asynchronous operation from issue to completion, as an agent of its own: it starts with what its issuer knows.
typedef struct tl_emu_async tl_emu_async;

// The running thread accesses `bytes` at `address` (shared memory of any block of the worker, or global), through the
// generic proxy. False: a finding was recorded and the access must not be made (out of bounds, misaligned); a load then
// gives 0xff bytes. `align`: what the instruction requires, in bytes.
bool tl_emu_touch(const void *address, size_t bytes, size_t align, tl_emu_access_kind kind, const tl_emu_site *site);
// The same for a lane of the running thread's warp (collectives, whose last lane does the work for all).
bool tl_emu_touch_by(uint32_t thread, const void *address, size_t bytes, size_t align, tl_emu_access_kind kind,
                     const tl_emu_site *site);
// The same for an asynchronous operation.
bool tl_emu_touch_async(tl_emu_async *async, const void *address, size_t bytes, size_t align, tl_emu_access_kind kind);

// Starts an asynchronous operation of the running thread. Owned by the caller; NULL when nothing is checked.
tl_emu_async *tl_emu_async_begin(tl_emu_proxy proxy, const tl_emu_site *site);
// Its completion becomes visible to whoever acquires `clock` later. Does not end it.
void tl_emu_async_complete(tl_emu_async *async, tl_emu_clock **clock);
// Ends it. `awaited`: somebody was told; if not, that is a finding.
void tl_emu_async_end(tl_emu_async *async, bool awaited);

// The running thread (or `thread` of its block) releases into, or acquires from, `*clock`, which is created on demand
// and freed with the block.
void tl_emu_release(uint32_t thread, tl_emu_clock **clock);
void tl_emu_acquire(uint32_t thread, tl_emu_clock **clock);
// The same by a relaxed operation, for which fences of the thread before and after it decide.
void tl_emu_release_relaxed(uint32_t thread, tl_emu_clock **clock);
void tl_emu_acquire_relaxed(uint32_t thread, tl_emu_clock **clock);
// The running thread writes `address` with a relaxed atomic.
void tl_emu_wrote_relaxed(const void *address);
// The running thread executes a fence between ordinary accesses (PTX ISA, membar / fence; Memory Consistency Model,
// release and acquire patterns).
enum {
  TL_EMU_FENCE_ACQUIRE = 1,
  TL_EMU_FENCE_RELEASE = 2,
  TL_EMU_FENCE_SCOPE = 4  // times a tl_emu_scope
};                        // bits
void tl_emu_fence(uint32_t sides);
// Forgets `*clock`, which becomes NULL: a new phase begins.
void tl_emu_clock_reset(tl_emu_clock **clock);
// The running thread uses the operation `site` in a way that the PTX ISA rules out. `what`: static text that says how.
void tl_emu_sanitize_misuse(const char *what, const tl_emu_site *site);
// The same with a text that is made up, before the launch is given up. False: nothing is checked.
bool tl_emu_sanitize_wrong_use(const char *what, const tl_emu_site *site);
// The running thread executes fence.proxy.async, for these kinds of memory.
enum { TL_EMU_PROXY_SHARED = 1, TL_EMU_PROXY_GLOBAL = 2, TL_EMU_PROXY_ALL = 3 };
void tl_emu_fence_proxy_async(uint32_t thread, uint32_t spaces);

// ---- cp.async, whose completion only the issuing thread waits for, group after group
// The running thread copies into `bytes` at `to`, from issue until a wait covers it.
bool tl_emu_touch_copy(const void *to, size_t bytes, size_t align, const tl_emu_site *site);
void tl_emu_copies_commit(void);
// All groups but the `pending` most recent ones are complete.
void tl_emu_copies_wait(uint32_t pending);
// Also what was not committed.
void tl_emu_copies_wait_all(void);
// cp.async.mbarrier.arrive: whoever acquires `clock` sees what the running thread has copied so far.
void tl_emu_copies_complete(tl_emu_clock **clock);

// ---- content that nobody wrote (sanitize_undefined.c), for code that undefined.h describes
// An origin says where such content comes from: a variable of the module's debug information (its index + 1; all bits
// set: any), the thread, and its register or element (all bits set: any). Without a variable: the number, from 1, of a
// read of shared memory that nobody wrote (tl_emu_unwritten).
enum {
  TL_EMU_ORIGIN_VARIABLE_SHIFT = 24,
  TL_EMU_ORIGIN_VARIABLES = 255,
  TL_EMU_ORIGIN_THREAD_SHIFT = 14,
  TL_EMU_ORIGIN_ELEMENTS = (1 << 14) - 1
};
// The running thread's part of an origin.
uint32_t tl_emu_undefined_thread(void);
// A value matters at `site`, and some bit of it is undefined, or not.
void tl_emu_undefined_use(uint32_t is_undefined, const tl_emu_site *site, uint32_t origin);
// Shadow of `bytes` of shared memory to `bits`; returns the origin of the first undefined byte. And the other way
// round.
uint32_t tl_emu_undefined_load(const void *address, void *bits, uint32_t bytes);
void tl_emu_undefined_store(const void *address, const void *bits, uint32_t bytes, uint32_t origin);

// ---- device ops that only the checker minds
tl_emu_op_fn tl_emu_op_undefined;  // stands for the ops that retargeting replaces
tl_emu_op_fn tl_emu_op_tile;       // a tile of a persistent kernel begins
// A function of PTX begins, a variable in its local memory, the function ends.
tl_emu_op_fn tl_emu_op_local_enter, tl_emu_op_local_begin, tl_emu_op_local_leave;
tl_emu_op_fn tl_emu_op_elements, tl_emu_op_element;  // a parallel, and an element of it, begin

// ---- what the machine and retargeted code call
// What retargeted code calls before the plain access `site`: `pointer`, or where to access instead.
void *tl_emu_touch_plain(void *pointer, const tl_emu_site *site);
// The same before a store of what lies at `value`: where that is there already, another's store of it is no race.
void *tl_emu_touch_store(void *pointer, const tl_emu_site *site, const void *value);
// … and after an atomic that acquires, and after a relaxed one that reads.
void tl_emu_acquired(const void *address, uint32_t scope);
void tl_emu_observed(const void *address, uint32_t scope);
// The lanes of `mask` of a warp of the running block meet, and what each did before is before what each does now.
void tl_emu_sanitize_meet(const tl_emu_warp *warp, uint32_t mask);
// A checker for each place of clusters, where the launch checks anything. It starts anew with each cluster; at its end
// all clocks are gone. What it found goes to the launch with the place.
extern const tl_emu_hooks tl_emu_sanitize_hooks;

#endif
