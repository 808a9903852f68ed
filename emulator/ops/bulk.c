// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/ops/mbarrier.h"
#include "emulator/ops/ops.h"
#include "support/vec.h"

enum { POISON = 0xff };  // NaN in every format of floats

tl_emu_transfer *tl_emu_transfer_create(const tl_emu_site *site) {
  tl_emu_transfer *transfer = tl_xcalloc(1, sizeof *transfer);
  transfer->deferred.site = site;
  transfer->refs = 1;
  return transfer;
}

void tl_emu_transfer_add(tl_emu_transfer *transfer, void *to, const void *from, uint32_t bytes) {
  tl_emu_run *last = transfer->num_runs ? &transfer->runs[transfer->num_runs - 1] : NULL;
  if (last && last->to + last->bytes == to && (last->from ? last->from + last->bytes == from : !from)) {
    last->bytes += bytes;
    return;
  }
  if (transfer->num_runs == transfer->capacity)
    transfer->runs = tl_vec_grow(transfer->runs, &transfer->capacity, transfer->num_runs + 1, sizeof *transfer->runs);
  transfer->runs[transfer->num_runs++] = (tl_emu_run){to, from, bytes};
}

static void drop(tl_emu_transfer *transfer) {
  if (--transfer->refs) return;
  free(transfer->runs);
  free(transfer->data);
  free(transfer);
}

// ---- accesses

static uint8_t *address_of(const tl_emu_run *run, tl_emu_side side) {
  return side == TL_EMU_SOURCE ? (uint8_t *)(uintptr_t)run->from : run->to;
}

static void empty_runs(tl_emu_run *runs, size_t num_runs, tl_emu_side side) {
  for (size_t i = 0; i < num_runs; i++) {
    if (side == TL_EMU_SOURCE) memset(runs[i].to, POISON, runs[i].bytes);
    runs[i].bytes = 0;
  }
}

// Runs that follow each other in memory, as the chunks of a row do before they are swizzled, are one access.
void tl_emu_transfer_touch(tl_emu_transfer *transfer, tl_emu_async *async, tl_emu_side side) {
  if (!async) return;
  tl_emu_access_kind kind = side == TL_EMU_SOURCE ? TL_EMU_READ : transfer->reduces ? TL_EMU_ATOMIC : TL_EMU_WRITE;
  for (size_t i = 0, end; i < transfer->num_runs; i = end) {
    uint8_t *start = address_of(&transfer->runs[i], side);
    size_t bytes = transfer->runs[i].bytes;
    end = i + 1;
    if (!start) continue;  // zeros from outside of the tensor
    for (; end < transfer->num_runs && address_of(&transfer->runs[end], side) == start + bytes; end++)
      bytes += transfer->runs[end].bytes;
    if (!bytes) continue;
    if (!tl_emu_touch_async(async, start, bytes, 1, kind)) empty_runs(&transfer->runs[i], end - i, side);
  }
}

// ---- moving bytes

static void write_destination(const tl_emu_transfer *transfer) {
  const uint8_t *data = transfer->data;
  tl_emu_access_begin(transfer->deferred.site, tl_emu_self->current->thread);
  for (size_t i = 0; i < transfer->num_runs; i++) {
    const tl_emu_run *run = &transfer->runs[i];
    const uint8_t *from = data ? data : run->from;
    if (!run->from)
      tl_emu_elements_fill(transfer->fill, run->to, run->bytes);
    else if (transfer->reduces)
      tl_emu_elements_reduce(transfer->op, transfer->type, run->to, from, run->bytes);
    else if (transfer->mbarrier)
      tl_emu_elements_load(transfer->type, run->to, from, run->bytes);
    else
      memcpy(run->to, from, run->bytes);
    if (data) data += run->bytes;
  }
  tl_emu_access_end();
}

static void poison_destination(const tl_emu_transfer *transfer) {
  if (transfer->reduces) return;
  tl_emu_access_begin(transfer->deferred.site, tl_emu_self->current->thread);
  for (size_t i = 0; i < transfer->num_runs; i++) memset(transfer->runs[i].to, POISON, transfer->runs[i].bytes);
  tl_emu_access_end();
}

// A wrong address is to be found at the op that made it, not where the transfer lands.
static void probe_source(const tl_emu_transfer *transfer) {
  tl_emu_access_begin(transfer->deferred.site, tl_emu_self->current->thread);
  for (size_t i = 0; i < transfer->num_runs; i++) {
    const tl_emu_run *run = &transfer->runs[i];
    if (!run->from || !run->bytes) continue;
    (void)*(const volatile uint8_t *)run->from;
    (void)*(const volatile uint8_t *)(run->from + run->bytes - 1);
  }
  tl_emu_access_end();
}

// ---- completion by mbarrier

static void land_on_mbarrier(tl_emu_deferred *operation, bool dropped) {
  tl_emu_transfer *transfer = (tl_emu_transfer *)operation;
  if (!dropped) {
    const tl_emu_block *block = tl_emu_block_at(tl_emu_self, transfer->mbarrier);
    write_destination(transfer);
    tl_emu_mbarrier_complete_tx(transfer->mbarrier, transfer->tx_bytes, transfer->writer, operation->site);
    tl_emu_async_end(transfer->writer, block && block->num_live);
  }
  drop(transfer);
}

// ---- completion by group

static void read_source(tl_emu_transfer *transfer) {
  if (transfer->is_read) return;
  transfer->is_read = true;
  size_t bytes = 1;
  for (size_t i = 0; i < transfer->num_runs; i++) bytes += transfer->runs[i].bytes;
  uint8_t *to = transfer->data = tl_xmalloc(bytes);
  tl_emu_access_begin(transfer->deferred.site, tl_emu_self->current->thread);
  for (size_t i = 0; i < transfer->num_runs; i++) {
    memcpy(to, transfer->runs[i].from, transfer->runs[i].bytes);
    to += transfer->runs[i].bytes;
  }
  tl_emu_access_end();
  tl_emu_async_complete(transfer->reader, &transfer->read_clock);
}

static void land_of_group(tl_emu_deferred *operation, bool dropped) {
  tl_emu_transfer *transfer = (tl_emu_transfer *)operation;
  transfer->has_landed = true;
  if (!dropped) {
    read_source(transfer);
    write_destination(transfer);
    tl_emu_async_complete(transfer->writer, &transfer->write_clock);
    tl_emu_async_end(transfer->writer, true);  // the end of the grid waits for it, if nobody else does
  }
  drop(transfer);
}

static void enqueue(tl_emu_transfer *transfer) {
  tl_emu_bulk_queue *queue = &tl_emu_self->current->bulk;
  transfer->refs++;
  transfer->group = queue->open_group;
  if (queue->last)
    queue->last->next = transfer;
  else
    queue->first = transfer;
  queue->last = transfer;
}

void tl_emu_transfer_issue(tl_emu_transfer *transfer) {
  transfer->deferred.land = transfer->mbarrier ? land_on_mbarrier : land_of_group;
  if (!transfer->mbarrier) enqueue(transfer);
  tl_emu_defer(&transfer->deferred);  // the machine knows it before something may fault
  probe_source(transfer);
  if (tl_emu_self->launch->landing == TL_LANDING_EARLY)
    tl_emu_land(&transfer->deferred);
  else
    poison_destination(transfer);
}

// ---- groups

void tl_emu_bulk_commit(void) {
  tl_emu_self->current->bulk.open_group++;
}

static void wait_for_read(tl_emu_transfer *transfer) {
  read_source(transfer);
  if (!transfer->reader) return;
  tl_emu_acquire(tl_emu_self->current->thread, &transfer->read_clock);
  tl_emu_async_end(transfer->reader, true);
  transfer->reader = NULL;
}

static void wait_for_all(tl_emu_transfer *transfer) {
  wait_for_read(transfer);
  if (!transfer->has_landed) tl_emu_land(&transfer->deferred);
  tl_emu_acquire(tl_emu_self->current->thread, &transfer->write_clock);
}

static void dequeue(tl_emu_bulk_queue *queue) {
  tl_emu_transfer *transfer = queue->first;
  queue->first = transfer->next;
  if (!queue->first) queue->last = NULL;
  tl_emu_clock_reset(&transfer->read_clock);
  tl_emu_clock_reset(&transfer->write_clock);
  drop(transfer);
}

// PTX ISA, cp.async.bulk.wait_group N: until only N or fewer of the most recent groups are pending.
void tl_emu_bulk_wait(uint32_t pending, bool only_reads) {
  tl_emu_bulk_queue *queue = &tl_emu_self->current->bulk;
  uint32_t limit = pending < queue->open_group ? queue->open_group - pending : 0;
  if (only_reads) {
    for (tl_emu_transfer *t = queue->first; t && t->group < limit; t = t->next) wait_for_read(t);
    return;
  }
  while (queue->first && queue->first->group < limit) {
    wait_for_all(queue->first);
    dequeue(queue);
  }
}

static void end_thread(tl_emu_fiber *thread) {
  tl_emu_bulk_queue *queue = &thread->bulk;
  while (queue->first) {
    tl_emu_async_end(queue->first->reader, false);
    queue->first->reader = NULL;
    dequeue(queue);
  }
  queue->open_group = 0;
}

// What threads have in flight still when the launch is given up.
static void destroy_block(tl_emu_block *block) {
  for (uint32_t t = 0; t < block->worker->num_threads; t++) {
    tl_emu_bulk_queue *queue = &block->fibers[t].bulk;
    while (queue->first) {
      tl_emu_transfer *transfer = queue->first;
      queue->first = transfer->next;
      drop(transfer);
    }
    queue->last = NULL;
  }
}

const tl_emu_hooks tl_emu_bulk_hooks = {.end_thread = end_thread, .destroy_block = destroy_block};
