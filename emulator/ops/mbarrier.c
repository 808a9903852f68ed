// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of an mbarrier is kept beside shared memory, whose bytes are opaque to kernels.
#include "emulator/ops/mbarrier.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/ops/operand.h"
#include "emulator/ops/ops.h"
#include "support/vec.h"

enum {
  MBARRIER_BYTES = 8,
  MAX_COUNT = (1 << 20) - 1,  // PTX ISA, Contents of the mbarrier object: of arrivals, and of transactions either way
  CONTENT = 0xb5              // of its bytes in shared memory
};

struct tl_emu_mbarrier {
  const void *address;
  uint32_t count;    // arrivals that a phase expects
  uint32_t pending;  // of these, in the current phase
  int64_t tx;
  uint32_t phase;           // number of the current one
  uint32_t unfenced;        // the thread that initialised it, plus 1, until it has fenced that
  tl_emu_clock *clocks[2];  // of the current phase and the one before, by parity
};

static tl_emu_mbarrier *find(const tl_emu_block *block, const void *address) {
  for (uint32_t i = 0; i < block->num_mbarriers; i++)
    if (block->mbarriers[i].address == address) return &block->mbarriers[i];
  return NULL;
}

static tl_emu_block *block_of(const void *address, const tl_emu_site *site) {
  return tl_emu_bulk_locate(address, MBARRIER_BYTES, MBARRIER_BYTES, "mbarrier", site);
}

static tl_emu_mbarrier *must_find(const tl_emu_block *block, const void *address, const tl_emu_site *site) {
  tl_emu_mbarrier *barrier = find(block, address);
  const uint32_t *at = block->position;
  ptrdiff_t offset = (const uint8_t *)address - block->shared;
  if (!barrier)
    tl_emu_fail_at(site, "there is no mbarrier at offset %td of shared memory of block (%u, %u, %u)", offset, at[0],
                   at[1], at[2]);
  for (int i = 0; i < MBARRIER_BYTES; i++)
    if (((const uint8_t *)address)[i] != CONTENT)
      tl_emu_fail_at(site, "the mbarrier at offset %td of shared memory of block (%u, %u, %u) was overwritten", offset,
                     at[0], at[1], at[2]);
  return barrier;
}

void tl_emu_mbarrier_init(void *address, uint32_t count, const tl_emu_site *site) {
  tl_emu_block *block = block_of(address, site);
  if (!count || count > MAX_COUNT) tl_emu_fail_at(site, "a count of %u arrivals is not 1 to %d", count, MAX_COUNT);
  if (!tl_emu_touch(address, MBARRIER_BYTES, MBARRIER_BYTES, TL_EMU_WRITE, site)) return;
  const tl_emu_mbarrier *old = find(block, address);
  if (old) tl_emu_fail_at(site, "there is one already, in phase %u; mbarrier.inval must end it first", old->phase);
  if (block->num_mbarriers == block->mbarrier_capacity) {
    size_t capacity = block->mbarrier_capacity;
    block->mbarriers = tl_vec_grow(block->mbarriers, &capacity, capacity + 1, sizeof *block->mbarriers);
    block->mbarrier_capacity = (uint32_t)capacity;
  }
  block->mbarriers[block->num_mbarriers++] = (tl_emu_mbarrier){
      .address = address, .count = count, .pending = count, .unfenced = tl_emu_self->current->thread + 1U};
  memset(address, CONTENT, MBARRIER_BYTES);
}

void tl_emu_mbarrier_fence_init(void) {
  const tl_emu_block *block = tl_emu_self->current->block;
  uint32_t mine = tl_emu_self->current->thread + 1U;
  for (uint32_t i = 0; i < block->num_mbarriers; i++)
    if (block->mbarriers[i].unfenced == mine) block->mbarriers[i].unfenced = 0;
}

void tl_emu_mbarrier_invalidate(void *address, const tl_emu_site *site) {
  tl_emu_block *block = block_of(address, site);
  if (!tl_emu_touch(address, MBARRIER_BYTES, MBARRIER_BYTES, TL_EMU_WRITE, site)) return;
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  for (uint32_t t = 0; t < block->worker->num_threads; t++)
    if (block->fibers[t].waits_for == address)
      tl_emu_fail_at(site, "thread %u waits for phase %u of the mbarrier", t, barrier->phase);
  tl_emu_clock_reset(&barrier->clocks[0]);
  tl_emu_clock_reset(&barrier->clocks[1]);
  *barrier = block->mbarriers[--block->num_mbarriers];
}

static void complete_if_done(tl_emu_block *block, tl_emu_mbarrier *barrier) {
  if (barrier->pending || barrier->tx) return;
  barrier->phase++;
  block->worker->num_given_up = 0;
  barrier->pending = barrier->count;
  tl_emu_clock_reset(&barrier->clocks[barrier->phase & 1]);  // of the phase before the one that is complete
  for (uint32_t t = 0; t < block->worker->num_threads; t++)
    if (block->fibers[t].waits_for == barrier->address) tl_emu_wake(&block->fibers[t]);
}

static void add_tx(tl_emu_mbarrier *barrier, int64_t bytes, const tl_emu_site *site) {
  barrier->tx += bytes;
  if (barrier->tx > MAX_COUNT || barrier->tx < -MAX_COUNT)
    tl_emu_fail_at(site, "%lld bytes pending on an mbarrier: more than it can count", (long long)barrier->tx);
}

uint64_t tl_emu_mbarrier_arrive(void *address, const tl_emu_arrival *arrival, const tl_emu_site *site) {
  tl_emu_block *block = block_of(address, site);
  if (!tl_emu_touch(address, MBARRIER_BYTES, MBARRIER_BYTES, TL_EMU_ATOMIC, site)) return 0;
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  uint32_t phase = barrier->phase;
  uint64_t state = phase | (uint64_t)barrier->pending << 32;
  if (arrival->count > barrier->pending)
    tl_emu_fail_at(site, "%u arrivals at an mbarrier whose phase %u lacks only %u of %u", arrival->count, phase,
                   barrier->pending, barrier->count);
  uint32_t thread = tl_emu_self->current->thread;
  if (!arrival->is_relaxed && arrival->count) tl_emu_release(thread, &barrier->clocks[phase & 1]);
  if (arrival->is_relaxed && arrival->count) tl_emu_release_relaxed(thread, &barrier->clocks[phase & 1]);
  add_tx(barrier, arrival->tx, site);
  barrier->pending -= arrival->count;
  if (arrival->drops) barrier->count -= arrival->count;
  if (arrival->may_not_end && !barrier->pending && !barrier->tx)
    tl_emu_fail_at(site, "the arrival completes phase %u, which .noComplete promises not to do", phase);
  complete_if_done(block, barrier);
  return state;
}

uint32_t tl_emu_mbarrier_phase(void *address, const tl_emu_site *site) {
  return must_find(block_of(address, site), address, site)->phase;
}

void tl_emu_mbarrier_promise(void *address, bool adds, const tl_emu_site *site) {
  tl_emu_block *block = block_of(address, site);
  if (!tl_emu_touch(address, MBARRIER_BYTES, MBARRIER_BYTES, TL_EMU_ATOMIC, site)) return;
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  if (adds && barrier->pending == MAX_COUNT)
    tl_emu_fail_at(site, "the phase lacks %d arrivals, and cannot count one more", MAX_COUNT);
  barrier->pending += adds;
  tl_emu_copies_complete(&barrier->clocks[barrier->phase & 1]);
}

// "mbarrier at offset 65536 of shared memory, phase 0, 1 of 1 arrivals and 1024 bytes are missing"
static void describe_wait(const tl_emu_fiber *fiber, tl_strbuf *out) {
  const tl_emu_block *block = fiber->block;
  const tl_emu_mbarrier *barrier = find(block, fiber->waits_for);
  tl_strbuf_appendf(out, "mbarrier at offset %td of shared memory", (const uint8_t *)fiber->waits_for - block->shared);
  if (!barrier) return;
  tl_strbuf_appendf(out, ", phase %u, %u of %u arrivals and %lld bytes are missing", barrier->phase, barrier->pending,
                    barrier->count, (long long)barrier->tx);
}

// Parks the thread until the phase is complete, or its time limit is over. Returns the mbarrier, which may have moved.
static tl_emu_mbarrier *wait_for_phase(tl_emu_block *block, void *address, uint32_t phase, const tl_emu_site *site) {
  tl_emu_fiber *me = tl_emu_self->current;
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  // try_wait has a time limit that the ISA leaves open. With odd seeds every other one reaches it, so that a kernel
  // which does not try again is found.
  if (barrier->phase == phase && (tl_emu_self->launch->seed & 1)) {
    me->gave_up = !me->gave_up;
    if (me->gave_up) return barrier;
  }
  while (barrier->phase == phase) {
    tl_emu_set_wait(me, address, describe_wait);
    me->may_give_up = true;
    me->gave_up = false;
    tl_emu_park();
    tl_emu_set_wait(me, NULL, NULL);
    me->may_give_up = false;
    barrier = must_find(block, address, site);
    if (me->gave_up) break;
  }
  return barrier;
}

bool tl_emu_mbarrier_test(void *address, const tl_emu_mbarrier_question *question, const tl_emu_site *site) {
  tl_emu_block *block = block_of(address, site);
  tl_emu_fiber *me = tl_emu_self->current;
  if (block != me->block) tl_emu_fail_at(site, "the mbarrier is in shared memory of another block");
  if (!tl_emu_touch(address, MBARRIER_BYTES, MBARRIER_BYTES, TL_EMU_ATOMIC_READ, site)) return true;
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  uint32_t phase = question->phase;
  if (barrier->phase - phase > 1)
    tl_emu_fail_at(site, "a state of phase %u, but the mbarrier is in phase %u: it knows this one and the one before",
                   phase, barrier->phase);
  me->site = site;
  if (question->waits) barrier = wait_for_phase(block, address, phase, site);
  if (barrier->phase == phase) {
    if (!question->waits) tl_emu_poll(NULL);  // it will ask again
    return false;
  }
  if (question->by_parity && barrier->phase != phase + 1)
    tl_emu_sanitize_misuse("the phase behind the one waited for is complete too: a wait by parity may miss both", site);
  if (phase + 1 != barrier->phase) return true;
  if (question->is_relaxed)
    tl_emu_acquire_relaxed(me->thread, &barrier->clocks[phase & 1]);
  else
    tl_emu_acquire(me->thread, &barrier->clocks[phase & 1]);
  return true;
}

void tl_emu_mbarrier_complete_tx(void *address, uint32_t bytes, tl_emu_async *async, const tl_emu_site *site) {
  tl_emu_block *block = tl_emu_block_at(tl_emu_self, address);
  tl_emu_mbarrier *barrier = must_find(block, address, site);
  if (async) tl_emu_async_complete(async, &barrier->clocks[barrier->phase & 1]);
  add_tx(barrier, -(int64_t)bytes, site);
  complete_if_done(block, barrier);
}

void tl_emu_mbarrier_expect(const void *address, const tl_emu_site *site) {
  const tl_emu_block *block = block_of(address, site);
  const tl_emu_mbarrier *barrier = must_find(block, address, site);
  if (barrier->unfenced && !(tl_emu_self->launch->checks & TL_EMU_SANITIZE_LENIENT))
    tl_emu_fail_at(
        site,
        "the copy engine does not know of the mbarrier at offset %td of shared memory: fence.mbarrier_init or "
        "fence.proxy.async lacks behind its initialisation",
        (const uint8_t *)address - block->shared);
}

static void begin_block(tl_emu_block *block) {
  block->num_mbarriers = 0;
}

static void destroy_block(tl_emu_block *block) {
  free(block->mbarriers);
}

const tl_emu_hooks tl_emu_mbarrier_hooks = {.begin_block = begin_block, .destroy_block = destroy_block};
