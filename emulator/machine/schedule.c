// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which lane runs next, and where lanes meet. Everything is cooperative and deterministic: a lane runs until
// it must wait, exits, or has gone round loops for a while (tl_emu_poll).
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "emulator/machine/fiber.h"
#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"

#ifdef TL_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { POLLS_PER_LANDING = 64 };

// ---- switching

// Makes `fiber` the current one, and its block's shared memory the one that code finds.
static inline void set_current(tl_emu_worker *worker, tl_emu_fiber *fiber) {
  worker->current = fiber;
  if (__builtin_expect(fiber->block != worker->block, 0)) {
    worker->block = fiber->block;
    worker->context.shared = fiber->block->shared;
  }
}

static inline void switch_fiber(tl_emu_worker *worker, tl_emu_fiber *from, tl_emu_fiber *to) {
  set_current(worker, to);
  worker->stats.switches++;
#ifdef TL_SANITIZED
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, tl_emu_memory_stack(worker->memory, to->stack), tl_emu_stack_bytes());
  tl_emu_fiber_switch(&from->sp, to->sp);
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
  tl_emu_fiber_switch(&from->sp, to->sp);
#endif
}

void tl_emu_run_fibers(tl_emu_worker *worker, tl_emu_fiber *first) {
  set_current(worker, first);
#ifdef TL_SANITIZED
  __sanitizer_start_switch_fiber(&worker->main_fake, tl_emu_memory_stack(worker->memory, first->stack),
                                 tl_emu_stack_bytes());
#endif
  worker->in_fiber = true;
  tl_emu_fiber_switch(&worker->main_sp, first->sp);
  worker->in_fiber = false;
#ifdef TL_SANITIZED
  __sanitizer_finish_switch_fiber(worker->main_fake, NULL, NULL);
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

void tl_emu_give_up(void) {
  tl_emu_worker *worker = tl_emu_self;
  worker->failed = true;
  worker->failed_block = worker->block->index;
  leave_to_main(worker);
}

void tl_emu_memory_ran_out(void) {
  tl_emu_worker *worker = tl_emu_self;
  if (!worker) return;
  if (worker->held) tl_emu_unlock(worker->held);
  worker->no_memory = true;
  if (worker->in_fiber) tl_emu_give_up();
}

void tl_emu_lock(pthread_mutex_t *mutex) {
  pthread_mutex_lock(mutex);
  if (tl_emu_self) tl_emu_self->held = mutex;
}

void tl_emu_unlock(pthread_mutex_t *mutex) {
  if (tl_emu_self) tl_emu_self->held = NULL;
  pthread_mutex_unlock(mutex);
}

void tl_emu_fail(const char *format, ...) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_describe_thread(worker->block, worker->current->thread, &worker->report);
  tl_strbuf_append_c(&worker->report, ": ");
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_strbuf_append_c(&worker->report, text);
  tl_emu_give_up();
}

// ---- asynchronous operations

void tl_emu_defer(tl_emu_deferred *operation) {
  tl_emu_worker *worker = tl_emu_self;
  operation->issuer = worker->current;
  operation->previous = worker->last_deferred;
  operation->next = NULL;
  if (worker->last_deferred)
    worker->last_deferred->next = operation;
  else
    worker->first_deferred = operation;
  worker->last_deferred = operation;
}

static void land(tl_emu_worker *worker, tl_emu_deferred *operation, bool drop) {
  if (operation->previous)
    operation->previous->next = operation->next;
  else
    worker->first_deferred = operation->next;
  if (operation->next)
    operation->next->previous = operation->previous;
  else
    worker->last_deferred = operation->previous;
  tl_emu_fiber *me = worker->current;
  if (!drop) set_current(worker, operation->issuer);  // who is to blame
  worker->num_given_up = 0;
  operation->land(operation, drop);
  if (!drop) set_current(worker, me);
}

void tl_emu_land(tl_emu_deferred *operation) {
  land(tl_emu_self, operation, false);
}

void tl_emu_land_cluster(tl_emu_cluster *cluster, bool drop) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_deferred *operation = worker->first_deferred;
  while (operation) {
    if (operation->issuer->block->cluster != cluster) {
      operation = operation->next;
      continue;
    }
    land(worker, operation, drop);
    operation = worker->first_deferred;  // landing may have changed the list
  }
}

// Operations land in any order; with seed 0 in that of their issue.
static bool land_one(tl_emu_worker *worker) {
  tl_emu_deferred *operation = worker->first_deferred;
  if (!operation) return false;
  if (worker->launch->seed) {
    worker->landing_state = worker->landing_state * 1664525u + 1013904223u;
    if (worker->landing_state >> 31) operation = worker->last_deferred;
  }
  land(worker, operation, false);
  return true;
}

// ---- choosing

static inline uint32_t first_lane(const tl_emu_worker *worker, uint32_t mask) {
  return (uint32_t)(worker->descending ? 31 - __builtin_clz(mask) : __builtin_ctz(mask));
}

// Lanes that come after `lane` in the worker's order of lanes.
static inline uint32_t lanes_after(const tl_emu_worker *worker, uint32_t lane) {
  return worker->descending ? (1u << lane) - 1 : ~1u << lane;
}

static tl_emu_fiber *pick_in_warp(const tl_emu_worker *worker, const tl_emu_block *block, uint32_t warp,
                                  uint32_t mask) {
  return &block->fibers[warp * TL_EMU_WARP + first_lane(worker, mask)];
}

// The first warp of rank `from` to `to` - 1 with a runnable lane. NULL: none.
static inline tl_emu_fiber *pick_warp(const tl_emu_worker *worker, const tl_emu_block *block, uint32_t from,
                                      uint32_t to) {
  for (uint32_t rank = from; rank < to; rank++) {
    uint32_t warp = worker->warp_order[rank], mask = block->warps[warp].runnable;
    if (mask) return pick_in_warp(worker, block, warp, mask);
  }
  return NULL;
}

// A thread of another block than `block`; those behind it first.
static tl_emu_fiber *pick_other_block(const tl_emu_worker *worker, const tl_emu_block *block) {
  for (uint32_t i = 1; i < worker->num_blocks; i++) {
    const tl_emu_block *other = &worker->blocks[(block->slot + i) % worker->num_blocks];
    if (!other->num_live) continue;
    tl_emu_fiber *found = pick_warp(worker, other, 0, worker->num_warps);
    if (found) return found;
  }
  return NULL;
}

tl_emu_fiber *tl_emu_pick(tl_emu_worker *worker, const tl_emu_block *from) {
  tl_emu_fiber *found = from->num_live ? pick_warp(worker, from, 0, worker->num_warps) : NULL;
  return found ? found : pick_other_block(worker, from);
}

// Who runs when `me` cannot. NULL: nobody can.
static inline tl_emu_fiber *pick_next(tl_emu_worker *worker, const tl_emu_fiber *me) {
  const tl_emu_block *block = me->block;
  const tl_emu_warp *warp = &block->warps[me->warp];
  uint32_t mask = warp->runnable;
  if (mask) {
    uint32_t after = mask & lanes_after(worker, me->lane);
    return pick_in_warp(worker, block, me->warp, after ? after : mask);
  }
  uint32_t from = worker->round_robin ? warp->rank + 1u : 0;
  tl_emu_fiber *next = pick_warp(worker, block, from, worker->num_warps);
  if (!next) next = pick_warp(worker, block, 0, from);
  return __builtin_expect(next != NULL, 1) ? next : pick_other_block(worker, block);
}

static void __attribute__((noreturn)) deadlock(tl_emu_worker *worker) {
  tl_emu_report_deadlock(worker);
  tl_emu_give_up();
}

// Nobody can run and nothing is in flight: the time limit of every wait that has one is over. False: there is none, or
// it was over so often that nobody seems to count.
static bool give_up_waits(tl_emu_worker *worker) {
  enum { MANY = 2048 };
  if (worker->num_given_up++ >= MANY) return false;
  bool any = false;
  for (uint32_t i = 0; i < worker->num_blocks; i++) {
    for (uint32_t t = 0; t < worker->num_threads; t++) {
      tl_emu_fiber *fiber = &worker->blocks[i].fibers[t];
      if (!fiber->may_give_up || !fiber->waits_for) continue;
      fiber->gave_up = any = true;
      tl_emu_wake(fiber);
    }
  }
  return any;
}

// Nobody can run: operations land, one by one, and waits with a time limit come to their end. False: neither helps.
static bool __attribute__((noinline)) wake_somebody(tl_emu_worker *worker) {
  while (!tl_emu_pick(worker, worker->block))
    if (!land_one(worker) && !give_up_waits(worker)) return false;
  return true;
}

// The calling lane is not runnable: someone else goes on.
static inline void wait_here(tl_emu_worker *worker, tl_emu_fiber *me) {
  tl_emu_fiber *next = pick_next(worker, me);
  if (__builtin_expect(!next, 0)) {
    if (!wake_somebody(worker)) deadlock(worker);
    next = pick_next(worker, me);
  }
  if (next != me) switch_fiber(worker, me, next);
}

// The next one when all threads of the worker take turns.
static tl_emu_fiber *pick_other(tl_emu_worker *worker, const tl_emu_fiber *me) {
  const tl_emu_block *block = me->block;
  const tl_emu_warp *warp = &block->warps[me->warp];
  uint32_t after = warp->runnable & lanes_after(worker, me->lane);
  if (after) return pick_in_warp(worker, block, me->warp, after);
  tl_emu_fiber *next = pick_warp(worker, block, warp->rank + 1u, worker->num_warps);
  if (!next) next = pick_other_block(worker, block);
  if (!next) next = pick_warp(worker, block, 0, warp->rank + 1u);
  return next ? next : &block->fibers[me->thread];
}

void tl_emu_poll(const tl_emu_site *loop) {
  tl_emu_worker *worker = tl_emu_self;
  if (loop) worker->current->loop = loop;
  worker->context.budget = TL_EMU_POLL_INTERVAL;
  tl_emu_launch_state *launch = worker->launch;
  if (__atomic_load_n(&launch->stop, __ATOMIC_RELAXED)) tl_emu_give_up();  // another one failed: nothing to add
  if (tl_emu_now_ns() > launch->deadline_ns) {
    tl_emu_report_livelock(worker);
    tl_emu_give_up();
  }
  // Threads that go round loops may wait for what an operation in flight will bring.
  if (++worker->num_polls % POLLS_PER_LANDING == 0) land_one(worker);
  tl_emu_fiber *me = worker->current, *next = pick_other(worker, me);
  if (next != me)
    switch_fiber(worker, me, next);
  else if (launch->num_workers > 1)
    sched_yield();
}

static uint32_t draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;  // the lower bits repeat soon
}

// Any one of the lanes.
static tl_emu_fiber *draw_lane(tl_emu_worker *worker, const tl_emu_block *block, uint32_t warp, uint32_t mask) {
  for (uint32_t skip = draw(&worker->meeting_state) % (uint32_t)__builtin_popcount(mask); skip; skip--)
    mask &= mask - 1;
  return &block->fibers[warp * TL_EMU_WARP + (uint32_t)__builtin_ctz(mask)];
}

// Threads of one warp run apart on the device too (PTX ISA, Independent Thread Scheduling): half of the time one of the
// same warp runs, else one of another warp or, now and then, of another block.
void tl_emu_interleave(void) {
  enum { MOST = 6 };  // accesses until the next change of thread
  tl_emu_worker *worker = tl_emu_self;
  if (!worker->launch->seed) {
    worker->context.meetings = INT32_MAX;
    return;
  }
  worker->context.meetings = 1 + (int32_t)(draw(&worker->meeting_state) % MOST);
  tl_emu_fiber *me = worker->current, *next = NULL;
  const tl_emu_block *block = me->block;
  uint32_t choice = draw(&worker->meeting_state) % 8, others = block->warps[me->warp].runnable & ~(1u << me->lane);
  if (choice < 4 && others) next = draw_lane(worker, block, me->warp, others);
  if (!next && choice < 7) {
    uint32_t warp = draw(&worker->meeting_state) % worker->num_warps;
    if (warp != me->warp && block->warps[warp].runnable)
      next = draw_lane(worker, block, warp, block->warps[warp].runnable);
  }
  if (!next) next = pick_other_block(worker, block);
  if (!next && others) next = draw_lane(worker, block, me->warp, others);
  if (next) switch_fiber(worker, me, next);
}

void tl_emu_park(void) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  me->block->warps[me->warp].runnable &= ~(1u << me->lane);
  wait_here(worker, me);
}

void tl_emu_wake(tl_emu_fiber *fiber) {
  fiber->block->warps[fiber->warp].runnable |= 1u << fiber->lane;
}

void tl_emu_exit(void) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  tl_emu_block *block = me->block;
  tl_emu_warp *warp = &block->warps[me->warp];
  const tl_emu_launch_state *launch = worker->launch;
  TL_EMU_CALL_HOOKS(launch, end_thread, me);
  warp->runnable &= ~(1u << me->lane);
  warp->exited |= 1u << me->lane;
  if (block->num_live == 1) TL_EMU_CALL_HOOKS(launch, end_block, block);
  if (--block->num_live == 0 && --block->cluster->num_running == 0) {
    tl_emu_land_cluster(block->cluster, false);
    TL_EMU_CALL_HOOKS(launch, end_cluster, block->cluster, true);
    worker->num_running--;
    wake_somebody(worker);  // so that the worker finds a thread to go on with
    leave_to_main(worker);
  }
  wait_here(worker, me);
  __builtin_unreachable();
}

uint64_t tl_emu_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- meeting

static void __attribute__((noreturn))
diverged(const tl_emu_warp *warp, const tl_emu_meeting *meeting, uint32_t mask, const tl_emu_site *site) {
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
  tl_emu_fail("%s", text);
}

// The open meeting of exactly these lanes, or a free one. Lanes that wait for `lane` elsewhere, and for which it is
// about to wait, will never meet it; lanes that wait for others may still come.
static tl_emu_meeting *find_meeting(tl_emu_warp *warp, uint32_t lane, uint32_t mask, const tl_emu_site *site) {
  tl_emu_meeting *free_one = NULL;
  for (int i = 0; i < TL_EMU_MAX_MEETINGS; i++) {
    tl_emu_meeting *meeting = &warp->meetings[i];
    if (!meeting->arrived) {
      if (!free_one) free_one = meeting;
    } else if (meeting->mask == mask) {
      return meeting;
    } else if ((meeting->arrived & mask) && (meeting->mask >> lane & 1)) {
      diverged(warp, meeting, mask, site);
    }
  }
  if (!free_one) tl_emu_fail("more than %d collectives of one warp are open at once", TL_EMU_MAX_MEETINGS);
  return free_one;
}

static inline void meet(uint32_t mask, bool same_site, void *result, const void *args, const tl_emu_site *site,
                        tl_emu_collective_fn *work) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  tl_emu_warp *warp = &me->block->warps[me->warp];
  uint32_t bit = 1u << me->lane;
  tl_emu_meeting *meeting = &warp->meetings[0];
  if (meeting->mask != mask || !meeting->arrived) meeting = find_meeting(warp, me->lane, mask, site);
  if (!meeting->arrived) {
    meeting->mask = mask;
    meeting->site = site;
  } else if (meeting->site != site && (same_site || meeting->site->binding != site->binding)) {
    diverged(warp, meeting, mask, site);
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
  meet(worker->block->warps[worker->current->warp].exist, true, result, args, site, work);
}

void tl_emu_meet(uint32_t mask, void *result, const void *args, const tl_emu_site *site, tl_emu_collective_fn *work) {
  tl_emu_worker *worker = tl_emu_self;
  mask &= worker->block->warps[worker->current->warp].exist;
  if (!(mask >> worker->current->lane & 1))
    tl_emu_fail("%s: the executing lane is not in its own member mask %08x", site->op, mask);
  meet(mask, false, result, args, site, work);
}
