// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cp.async. Landing late: a copy waits in its thread's queue, its destination poisoned, until a wait of that thread
// covers it; both source and destination are only touched then, which is the latest moment that PTX allows. Landing
// early: at once.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"
#include "support/vec.h"

typedef struct copy_args {
  uint8_t *to;
  const uint8_t *from;
  uint32_t from_bytes;  // only in the forms with a source size
} copy_args;

static void land(const tl_emu_copy *copy) {
  if (copy->from_bytes) memcpy(copy->to, copy->from, copy->from_bytes);
  if (copy->from_bytes < copy->bytes) memset(copy->to + copy->from_bytes, 0, copy->bytes - copy->from_bytes);
}

static void sanitize_copy(const tl_emu_copy *copy, const tl_emu_site *site) {
  uintptr_t base = (uintptr_t)tl_emu_self->context.shared;
  if ((uintptr_t)copy->to % copy->bytes || (uintptr_t)copy->from % copy->bytes)
    tl_emu_fail("%s: addresses must be multiples of %u", site->op, copy->bytes);
  if (!tl_emu_is_shared(copy->to, copy->bytes))
    tl_emu_fail("%s: invalid write of %u bytes at offset %lld of shared memory, which has %zu bytes", site->op,
                copy->bytes, (long long)((uintptr_t)copy->to - base), tl_emu_self->launch->shared_bytes);
  if (copy->from_bytes > copy->bytes)
    tl_emu_fail("%s: the source size %u is more than %u", site->op, copy->from_bytes, copy->bytes);
}

void tl_emu_op_cp_async(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  const copy_args *own = args;
  uint32_t bytes = (uint32_t)site->binding->param & ~(uint32_t)TL_EMU_COPY_ZFILL;
  tl_emu_fiber *me = tl_emu_self->current;
  tl_emu_copy copy = {own->to, own->from, bytes, bytes, me->open_group};
  if (site->binding->param & TL_EMU_COPY_ZFILL) copy.from_bytes = own->from_bytes;
  bool good = tl_emu_touch_copy(copy.to, bytes, bytes, site);
  if (copy.from_bytes) good &= tl_emu_touch(copy.from, copy.from_bytes, bytes, TL_EMU_READ, site);
  if (!good) return;
  sanitize_copy(&copy, site);
  me->num_issued++;
  tl_emu_access_begin(site, me->thread);
  if (tl_emu_self->launch->landing == TL_LANDING_EARLY) {
    land(&copy);
  } else {
    // Fault at issue, where the address was made, rather than at the wait.
    for (uint32_t i = 0; i < copy.from_bytes; i += 4) (void)*(const volatile uint8_t *)(copy.from + i);
    memset(copy.to, 0xff, bytes);
    if (me->num_copies == me->copies_capacity) {
      size_t capacity = me->copies_capacity;
      me->copies = tl_vec_grow(me->copies, &capacity, capacity + 1, sizeof *me->copies);
      me->copies_capacity = (uint32_t)capacity;
    }
    me->copies[me->num_copies++] = copy;
  }
  tl_emu_access_end();
}

void tl_emu_op_cp_async_pred(void *result, const void *args, const tl_emu_site *site) {
  bool has_size = site->binding->param & TL_EMU_COPY_ZFILL;
  const uint8_t *predicate =
      (const uint8_t *)args + (has_size ? offsetof(copy_args, from_bytes) + sizeof(uint32_t) : 2 * sizeof(void *));
  if (*predicate & 1) tl_emu_op_cp_async(result, args, site);
}

void tl_emu_op_cp_async_commit(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_self->current->open_group++;
  tl_emu_copies_commit();
}

// Lands the first `count` copies of the queue.
static void land_first(tl_emu_fiber *fiber, uint32_t count, const tl_emu_site *site) {
  if (!count) return;
  tl_emu_access_begin(site, fiber->thread);
  for (uint32_t i = 0; i < count; i++) land(&fiber->copies[i]);
  tl_emu_access_end();
  fiber->num_copies -= count;
  memmove(fiber->copies, fiber->copies + count, fiber->num_copies * sizeof *fiber->copies);
}

void tl_emu_copies_land(tl_emu_fiber *fiber, uint32_t num_issued, const tl_emu_site *site) {
  if (tl_emu_self->launch->landing == TL_LANDING_EARLY) return;
  uint32_t landed = fiber->num_issued - fiber->num_copies;
  if (num_issued > landed) land_first(fiber, num_issued - landed, site);
}

// Lands every copy of a group below `first_pending`; groups only grow along the queue.
static void land_before(uint32_t first_pending, const tl_emu_site *site) {
  tl_emu_fiber *me = tl_emu_self->current;
  uint32_t count = 0;
  while (count < me->num_copies && me->copies[count].group < first_pending) count++;
  land_first(me, count, site);
}

// PTX ISA, cp.async.wait_group N: until only N or fewer of the most recent groups are pending.
void tl_emu_op_cp_async_wait(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  uint32_t pending = *(const uint32_t *)args, groups = tl_emu_self->current->open_group;
  if (pending < groups) land_before(groups - pending, site);
  tl_emu_copies_wait(pending);
}

// Also what was not committed.
void tl_emu_op_cp_async_wait_all(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  land_before(UINT32_MAX, site);
  tl_emu_copies_wait_all();
}

static void begin_block(tl_emu_block *block) {
  for (uint32_t t = 0; t < block->worker->num_threads; t++) {
    tl_emu_fiber *fiber = &block->fibers[t];
    fiber->open_group = fiber->num_copies = fiber->num_issued = 0;
  }
}

static void destroy_block(tl_emu_block *block) {
  for (uint32_t t = 0; t < block->worker->num_threads; t++) free(block->fibers[t].copies);
}

const tl_emu_hooks tl_emu_cp_async_hooks = {.begin_block = begin_block, .destroy_block = destroy_block};
