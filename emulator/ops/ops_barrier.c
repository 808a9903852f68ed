// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers of a block (PTX ISA, bar / barrier).
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/machine/hooks.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

// One execution of an op of a barrier. `reduction`: TL_EMU_BARRIER_RED_… or 0; `votes`: how many of the threads that
// arrive have their predicate set.
typedef struct arrival {
  uint32_t id, expected;  // threads
  bool wait;
  uint32_t reduction, votes;
  const tl_emu_site *site;
} arrival;
static void release_barrier(tl_emu_worker *worker, tl_emu_barrier *barrier) {
  tl_emu_block *block = worker->block;
  worker->stats.barriers++;
  for (uint32_t w = 0; w < worker->num_warps; w++) {
    if (barrier->clock) TL_EMU_FOR_LANES(lane, barrier->waiting[w])
    tl_emu_acquire(w * TL_EMU_WARP + lane, &barrier->clock);
    if (barrier->reduction) TL_EMU_FOR_LANES(lane, barrier->waiting[w]) {
        tl_emu_fiber *fiber = &block->fibers[w * TL_EMU_WARP + lane];
        fiber->votes = barrier->votes;
        fiber->voters = barrier->voters;
      }
    block->warps[w].runnable |= barrier->waiting[w];
    barrier->waiting[w] = 0;
  }
  barrier->arrived = 0;
  tl_emu_clock_reset(&barrier->clock);
}

// Whether the arrival fits those that are there; gives the launch up if not.
static void sanitize_arrival(const tl_emu_barrier *barrier, uint32_t threads, const arrival *own) {
  const char *op = own->site->op;
  uint32_t id = own->id;
  if (!own->expected || own->expected % TL_EMU_WARP)
    tl_emu_fail("%s: the thread count %u of barrier %u is no multiple of 32", op, own->expected, id);
  if (barrier->arrived && barrier->expected != own->expected)
    tl_emu_fail("%s: barrier %u has threads waiting with count %u, this one says %u", op, id, barrier->expected,
                own->expected);
  // PTX ISA, barrier: reductions must not be intermixed with others on one active barrier.
  if (barrier->arrived && barrier->reduction != own->reduction)
    tl_emu_fail("%s: barrier %u has threads waiting at %s, which does not reduce in the same way", op, id,
                barrier->site->op);
  if (barrier->arrived + threads > own->expected)
    tl_emu_fail("%s: %u threads arrived at barrier %u, which expects %u", op, barrier->arrived + threads, id,
                own->expected);
}

// `threads` of `warp` (in whole warps unless alone) arrive. True: they go on; false: the lanes of `mask` were parked
// until the barrier is complete. What a reduction gives is then in `votes` and `voters` of their fibers.
static bool arrive(tl_emu_warp *warp, uint32_t mask, uint32_t threads, const arrival *own) {
  tl_emu_worker *worker = tl_emu_self;
  if (own->id >= TL_EMU_NUM_BARRIERS) tl_emu_fail("%s: there is no barrier %u, only 0 to 15", own->site->op, own->id);
  tl_emu_barrier *barrier = &worker->block->barriers[own->id];
  sanitize_arrival(barrier, threads, own);
  if (!barrier->arrived) barrier->votes = barrier->voters = 0;
  barrier->expected = own->expected;
  barrier->reduction = own->reduction;
  barrier->votes += own->votes;
  barrier->voters += (uint32_t)__builtin_popcount(mask);
  barrier->site = own->site;
  barrier->arrived += threads;
  if (worker->block->cluster->checker) TL_EMU_FOR_LANES(lane, mask)
  tl_emu_release(warp->index * TL_EMU_WARP + lane, &barrier->clock);
  if (own->wait) barrier->waiting[warp->index] |= mask;
  if (barrier->arrived < own->expected) return !own->wait;
  release_barrier(worker, barrier);
  return true;
}

// The running thread arrives on its own (the forms without .aligned).
static void arrive_alone(const arrival *own) {
  tl_emu_worker *worker = tl_emu_self;
  tl_emu_fiber *me = worker->current;
  tl_emu_warp *warp = &me->block->warps[me->warp];
  uint32_t bit = 1u << me->lane, lanes = (uint32_t)__builtin_popcount(warp->exist);
  me->site = own->site;
  // Barriers count whole warps: the last lane of a smaller warp stands for the missing ones.
  uint32_t threads = me->lane + 1u == lanes ? TL_EMU_WARP - lanes + 1 : 1u;
  if (!arrive(warp, bit, threads, own)) tl_emu_park();
}

// What one thread says: which barrier, how many threads it expects, and its predicate. PTX ISA, barrier: counts are in
// threads, in whole warps.
static arrival read_barrier(const void *operands, const tl_emu_site *site) {
  uint32_t param = (uint32_t)site->binding->param;
  tl_emu_args args = {operands, 0};
  arrival own = {.site = site, .wait = !(param & TL_EMU_BARRIER_ARRIVE)};
  own.id = tl_emu_args_i32(&args);
  own.expected = param & TL_EMU_BARRIER_COUNT ? tl_emu_args_i32(&args) : tl_emu_self->num_warps * TL_EMU_WARP;
  own.reduction = param & (TL_EMU_BARRIER_RED_AND | TL_EMU_BARRIER_RED_OR | TL_EMU_BARRIER_RED_POPC);
  if (own.reduction) own.votes = tl_emu_args_bool(&args);
  return own;
}

static bool barrier_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  const tl_emu_site *site = meeting->site;
  arrival all = read_barrier(meeting->args[__builtin_ctz(meeting->mask)], site);
  all.votes = 0;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    arrival own = read_barrier(meeting->args[lane], site);
    if (own.id != all.id || own.expected != all.expected)
      tl_emu_fail("%s: the lanes of warp %u name different barriers", site->op, warp->index);
    all.votes += own.votes;
  }
  return arrive(warp, meeting->mask, TL_EMU_WARP, &all);
}

void tl_emu_op_barrier(void *result, const void *args, const tl_emu_site *site) {
  if (site->binding->param & TL_EMU_BARRIER_ALONE) {
    arrival own = read_barrier(args, site);
    arrive_alone(&own);
  } else {
    tl_emu_meet_warp(result, args, site, barrier_work);
  }
  const tl_emu_fiber *me = tl_emu_self->current;
  if (site->binding->param & TL_EMU_BARRIER_RED_AND) *(uint8_t *)result = me->votes == me->voters;
  if (site->binding->param & TL_EMU_BARRIER_RED_OR) *(uint8_t *)result = me->votes != 0;
  if (site->binding->param & TL_EMU_BARRIER_RED_POPC) *(uint32_t *)result = me->votes;
}

static void begin_block(tl_emu_block *block) {
  memset(block->barriers, 0, sizeof block->barriers);
}

const tl_emu_hooks tl_emu_barrier_hooks = {.begin_block = begin_block};
