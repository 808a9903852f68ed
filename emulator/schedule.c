// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which lane runs next, where lanes meet, and the start of a block. Everything is cooperative and deterministic: a lane
// runs until it must wait, exits, or has gone round loops for a while (tl_emu_poll).
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "emulator/fiber.h"
#include "emulator/machine.h"
#include "emulator/ops.h"

#ifdef TL_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

_Thread_local tl_emu_worker *tl_emu_self __attribute__((tls_model("initial-exec"))) = NULL;

// ---- switching

static inline void switch_fiber(tl_emu_worker *worker, tl_emu_fiber *from, tl_emu_fiber *to) {
  worker->current = to;
  worker->stats.switches++;
#ifdef TL_SANITIZED
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, tl_emu_memory_stack(worker->memory, to->thread), tl_emu_stack_bytes());
  tl_emu_fiber_switch(&from->sp, to->sp);
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
  tl_emu_fiber_switch(&from->sp, to->sp);
#endif
}

// Leaves the running fiber for good.
static void __attribute__((noreturn)) leave_to_main(tl_emu_worker *worker) {
#ifdef TL_SANITIZED
  __sanitizer_start_switch_fiber(NULL, worker->main_bottom, worker->main_size);
#endif
  void *never_used;
  tl_emu_fiber_switch(&never_used, worker->main_sp);
  __builtin_unreachable();
}

void tl_emu_fail(const char *format, ...) {
  tl_emu_worker *worker = tl_emu_self;
  worker->failed = true;
  tl_emu_describe_thread(worker, worker->current->thread, &worker->report);
  tl_strbuf_append_c(&worker->report, ": ");
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_strbuf_append_c(&worker->report, text);
  leave_to_main(worker);
}

// ---- choosing

static inline uint32_t first_lane(const tl_emu_worker *worker, uint32_t mask) {
  return (uint32_t)(worker->descending ? 31 - __builtin_clz(mask) : __builtin_ctz(mask));
}

// Lanes that come after `lane` in the worker's order of lanes.
static inline uint32_t lanes_after(const tl_emu_worker *worker, uint32_t lane) {
  return worker->descending ? (1u << lane) - 1 : ~1u << lane;
}

static tl_emu_fiber *pick_in_warp(tl_emu_worker *worker, uint32_t warp, uint32_t mask) {
  return &worker->fibers[warp * TL_EMU_WARP + first_lane(worker, mask)];
}

// The first warp with a runnable lane, from rank `from` on, round the clock. NULL: none.
static tl_emu_fiber *pick_warp(tl_emu_worker *worker, uint32_t from) {
  for (uint32_t i = 0; i < worker->num_warps; i++) {
    uint32_t rank = from + i < worker->num_warps ? from + i : from + i - worker->num_warps;
    uint32_t warp = worker->warp_order[rank], mask = worker->warps[warp].runnable;
    if (mask) return pick_in_warp(worker, warp, mask);
  }
  return NULL;
}

// Who runs when `me` cannot. NULL: nobody can.
static inline tl_emu_fiber *pick_next(tl_emu_worker *worker, const tl_emu_fiber *me) {
  tl_emu_warp *warp = &worker->warps[me->warp];
  uint32_t mask = warp->runnable;
  if (mask) {
    uint32_t after = mask & lanes_after(worker, me->lane);
    return pick_in_warp(worker, me->warp, after ? after : mask);
  }
  return pick_warp(worker, worker->round_robin ? (warp->rank + 1u) % worker->num_warps : 0);
}

static void __attribute__((noreturn)) deadlock(tl_emu_worker *worker) {
  worker->failed = true;
  tl_strbuf_appendf(&worker->report, "block (%u, %u, %u): deadlock, no thread can go on\n", worker->block[0],
                    worker->block[1], worker->block[2]);
  tl_emu_dump_block(worker, &worker->report);
  leave_to_main(worker);
}

// The calling lane is not runnable: someone else goes on.
static inline void wait_here(tl_emu_worker *worker, tl_emu_fiber *me) {
  tl_emu_fiber *next = pick_next(worker, me);
  if (__builtin_expect(!next, 0)) deadlock(worker);
  if (next != me) switch_fiber(worker, me, next);
}

static tl_emu_fiber *pick_other(tl_emu_worker *worker, const tl_emu_fiber *me) {
  tl_emu_warp *warp = &worker->warps[me->warp];
  uint32_t after = warp->runnable & lanes_after(worker, me->lane);
  if (after) return pick_in_warp(worker, me->warp, after);
  tl_emu_fiber *next = pick_warp(worker, (warp->rank + 1u) % worker->num_warps);
  return next ? next : &worker->fibers[me->thread];
}

static void give_up_late(tl_emu_worker *worker) {
  worker->failed = true;
  tl_strbuf_appendf(&worker->report, "block (%u, %u, %u): still running after %g s (livelock?)\n", worker->block[0],
                    worker->block[1], worker->block[2], worker->launch->timeout_s);
  tl_emu_dump_block(worker, &worker->report);
  leave_to_main(worker);
}

void tl_emu_poll(void) {
  tl_emu_worker *worker = tl_emu_self;
  worker->context.budget = TL_EMU_POLL_INTERVAL;
  tl_emu_launch_state *launch = worker->launch;
  if (__atomic_load_n(&launch->stop, __ATOMIC_RELAXED)) {
    worker->failed = true;  // another block failed: the launch is over, with nothing to add
    leave_to_main(worker);
  }
  if (tl_emu_now_ns() > launch->deadline_ns) give_up_late(worker);
  tl_emu_fiber *me = worker->current, *next = pick_other(worker, me);
  if (next != me) switch_fiber(worker, me, next);
}

uint64_t tl_emu_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- meeting

static void __attribute__((noreturn)) diverged(const tl_emu_worker *worker, const tl_emu_warp *warp,
                                               const tl_emu_meeting *meeting, uint32_t mask, const tl_emu_site *site) {
  uint32_t lane = (uint32_t)__builtin_ctz(meeting->arrived);
  tl_strbuf here = {0}, there = {0};
  tl_emu_describe_site(site, &here);
  tl_emu_describe_site(meeting->site, &there);
  char text[512];
  snprintf(text, sizeof text,
           "the lanes of warp %u diverged: this one is at %s for lanes %08x, lane %u waits at %s for lanes %08x",
           warp->index, tl_strbuf_c(&here), mask, lane, tl_strbuf_c(&there), meeting->mask);
  tl_strbuf_fini(&here);
  tl_strbuf_fini(&there);
  (void)worker;
  tl_emu_fail("%s", text);
}

// The open meeting of exactly these lanes, or a free one.
static tl_emu_meeting *find_meeting(tl_emu_worker *worker, tl_emu_warp *warp, uint32_t mask, const tl_emu_site *site) {
  tl_emu_meeting *free_one = NULL;
  for (int i = 0; i < TL_EMU_MAX_MEETINGS; i++) {
    tl_emu_meeting *meeting = &warp->meetings[i];
    if (!meeting->arrived) {
      if (!free_one) free_one = meeting;
    } else if (meeting->mask == mask) {
      return meeting;
    } else if (meeting->mask & mask) {
      diverged(worker, warp, meeting, mask, site);
    }
  }
  if (!free_one) tl_emu_fail("more than %d collectives of one warp are open at once", TL_EMU_MAX_MEETINGS);
  return free_one;
}

static inline void meet(uint32_t mask, bool same_site, void *result, const void *args, const tl_emu_site *site,
                        tl_emu_collective_fn *work) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  tl_emu_warp *warp = &worker->warps[me->warp];
  uint32_t bit = 1u << me->lane;
  tl_emu_meeting *meeting = &warp->meetings[0];
  if (meeting->mask != mask || !meeting->arrived) meeting = find_meeting(worker, warp, mask, site);
  if (!meeting->arrived) {
    meeting->mask = mask;
    meeting->site = site;
  } else if (meeting->site != site && (same_site || meeting->site->binding != site->binding)) {
    diverged(worker, warp, meeting, mask, site);
  }
  meeting->result[me->lane] = result;
  meeting->args[me->lane] = args;
  meeting->arrived |= bit;
  me->site = site;
  if (meeting->arrived == mask) {
    worker->stats.collectives++;
    bool go_on = work(warp, meeting);
    meeting->arrived = 0;
    if (go_on) {
      warp->runnable |= mask;
      return;
    }
    warp->runnable &= ~bit;
  } else {
    warp->runnable &= ~bit;
  }
  wait_here(worker, me);
}

void tl_emu_meet_warp(void *result, const void *args, const tl_emu_site *site, tl_emu_collective_fn *work) {
  tl_emu_worker *worker = tl_emu_self;
  meet(worker->warps[worker->current->warp].exist, true, result, args, site, work);
}

void tl_emu_meet(uint32_t mask, void *result, const void *args, const tl_emu_site *site, tl_emu_collective_fn *work) {
  tl_emu_worker *worker = tl_emu_self;
  mask &= worker->warps[worker->current->warp].exist;
  if (!(mask >> worker->current->lane & 1))
    tl_emu_fail("%s: the executing lane is not in its own member mask %08x", site->op, mask);
  meet(mask, false, result, args, site, work);
}

// ---- barriers

static void release_barrier(tl_emu_worker *worker, tl_emu_barrier *barrier) {
  worker->stats.barriers++;
  for (uint32_t w = 0; w < worker->num_warps; w++) {
    worker->warps[w].runnable |= barrier->waiting[w];
    barrier->waiting[w] = 0;
  }
  barrier->arrived = 0;
}

bool tl_emu_barrier_arrive(tl_emu_warp *warp, uint32_t mask, uint32_t threads, uint32_t id, uint32_t expected,
                           bool wait, const tl_emu_site *site) {
  tl_emu_worker *worker = tl_emu_self;
  if (id >= TL_EMU_NUM_BARRIERS) tl_emu_fail("%s: there is no barrier %u, only 0 to 15", site->op, id);
  if (!expected || expected % TL_EMU_WARP)
    tl_emu_fail("%s: the thread count %u of barrier %u is no multiple of 32", site->op, expected, id);
  tl_emu_barrier *barrier = &worker->barriers[id];
  if (barrier->arrived && barrier->expected != expected)
    tl_emu_fail("%s: barrier %u has threads waiting with count %u, this one says %u", site->op, id, barrier->expected,
                expected);
  barrier->expected = expected;
  barrier->site = site;
  barrier->arrived += threads;
  if (barrier->arrived > expected)
    tl_emu_fail("%s: %u threads arrived at barrier %u, which expects %u", site->op, barrier->arrived, id, expected);
  if (barrier->arrived == expected) {
    release_barrier(worker, barrier);
    return true;
  }
  if (!wait) return true;
  barrier->waiting[warp->index] |= mask;
  return false;
}

void tl_emu_barrier_arrive_alone(uint32_t id, uint32_t expected, bool wait, const tl_emu_site *site) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  tl_emu_warp *warp = &worker->warps[me->warp];
  uint32_t bit = 1u << me->lane, lanes = (uint32_t)__builtin_popcount(warp->exist);
  me->site = site;
  // Barriers count whole warps: the last lane of a smaller warp stands for the missing ones.
  uint32_t threads = me->lane + 1u == lanes ? TL_EMU_WARP - lanes + 1 : 1u;
  if (tl_emu_barrier_arrive(warp, bit, threads, id, expected, wait, site)) return;
  warp->runnable &= ~bit;
  wait_here(worker, me);
}

// ---- a block

#ifdef TL_SANITIZED
__attribute__((no_sanitize("address")))
#endif
static void
fiber_main(void) {
  tl_emu_worker *worker = tl_emu_self;
#ifdef TL_SANITIZED
  __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
  worker->launch->entry(worker->launch->params);
  tl_emu_fiber *me = worker->current;
  tl_emu_warp *warp = &worker->warps[me->warp];
  warp->runnable &= ~(1u << me->lane);
  warp->exited |= 1u << me->lane;
  if (--worker->num_live == 0) leave_to_main(worker);
  wait_here(worker, me);
  __builtin_unreachable();
}

// A small mixing function (the finaliser of MurmurHash3) for orders that depend on the seed.
static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

static void order_warps(tl_emu_worker *worker) {
  uint32_t seed = worker->launch->seed;
  for (uint32_t i = 0; i < worker->num_warps; i++) worker->warp_order[i] = (uint16_t)i;
  worker->descending = worker->round_robin = false;
  if (seed) {
    uint32_t state = mix(seed);
    worker->descending = state & 1;
    worker->round_robin = state & 2;
    for (uint32_t i = worker->num_warps; i-- > 1;) {
      state = mix(state + i);
      uint32_t k = state % (i + 1);
      uint16_t swapped = worker->warp_order[i];
      worker->warp_order[i] = worker->warp_order[k];
      worker->warp_order[k] = swapped;
    }
  }
  for (uint32_t i = 0; i < worker->num_warps; i++) worker->warps[worker->warp_order[i]].rank = (uint16_t)i;
}

static void reset_block(tl_emu_worker *worker, uint64_t index) {
  const tl_emu_launch_state *launch = worker->launch;
  worker->block_index = index;
  worker->block[0] = (uint32_t)(index % launch->grid[0]);
  worker->block[1] = (uint32_t)(index / launch->grid[0] % launch->grid[1]);
  worker->block[2] = (uint32_t)(index / launch->grid[0] / launch->grid[1]);
  worker->num_live = worker->num_threads;
  worker->context.budget = TL_EMU_POLL_INTERVAL;
  if (launch->shared_bytes) memset(worker->context.shared, 0xff, launch->shared_bytes);  // reads as NaN
  memset(worker->barriers, 0, sizeof worker->barriers);
  for (uint32_t w = 0; w < worker->num_warps; w++) {
    tl_emu_warp *warp = &worker->warps[w];
    uint32_t lanes = worker->num_threads - w * TL_EMU_WARP;
    warp->exist = warp->runnable = lanes >= (uint32_t)TL_EMU_WARP ? ~0u : (1u << lanes) - 1;
    warp->exited = 0;
    warp->index = (uint16_t)w;
    for (int i = 0; i < TL_EMU_MAX_MEETINGS; i++) warp->meetings[i].arrived = 0;
  }
  order_warps(worker);
  for (uint32_t t = 0; t < worker->num_threads; t++) {
    tl_emu_fiber *fiber = &worker->fibers[t];
    fiber->open_group = 0;
    fiber->num_copies = 0;
    fiber->site = NULL;
#ifdef TL_SANITIZED
    // A fiber that ended never returned from its last frames: their red zones are still there.
    __asan_unpoison_memory_region(tl_emu_memory_stack(worker->memory, t) + tl_emu_stack_bytes() - (16 << 10), 16 << 10);
#endif
    // Neighbouring stacks start at different cache sets.
    uint8_t *top = tl_emu_memory_stack(worker->memory, t) + tl_emu_stack_bytes() - 64 * (t % 32);
    fiber->sp = tl_emu_fiber_prepare(top, fiber_main);
  }
}

void tl_emu_run_block(tl_emu_worker *worker, uint64_t index) {
  reset_block(worker, index);
  worker->current = pick_warp(worker, 0);
  worker->fault.signal = 0;
  worker->access_site = NULL;
#ifdef TL_SANITIZED
  __sanitizer_start_switch_fiber(&worker->main_fake, tl_emu_memory_stack(worker->memory, worker->current->thread),
                                 tl_emu_stack_bytes());
#endif
  worker->in_fiber = true;
  tl_emu_fiber_switch(&worker->main_sp, worker->current->sp);
  worker->in_fiber = false;
#ifdef TL_SANITIZED
  __sanitizer_finish_switch_fiber(worker->main_fake, NULL, NULL);
#endif
  if (worker->fault.signal) {
    worker->failed = true;
    tl_emu_report_fault(worker);
  }
#ifdef TL_SANITIZED
  // Abandoned frames leave their red zones behind.
  for (uint32_t t = 0; worker->failed && t < worker->num_threads; t++)
    __asan_unpoison_memory_region(tl_emu_memory_stack(worker->memory, t), tl_emu_stack_bytes());
#endif
}

void *tl_emu_fiber_prepare(void *top, void (*entry)(void)) {
  // As if tl_emu_fiber_switch had been called: six registers, the address to return to, and above it the zero return
  // address of `entry`, which ends back traces. At entry the stack pointer is 8 modulo 16, as after a call.
  uintptr_t *sp = (uintptr_t *)top - 8;
  memset(sp, 0, 8 * sizeof *sp);
  sp[6] = (uintptr_t)entry;
  return sp;
}
