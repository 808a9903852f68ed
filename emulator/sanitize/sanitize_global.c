// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses to global memory: bounds, races within and between clusters, and reads of what was not written.
#include <sched.h>

#include "emulator/sanitize/global_memory.h"

enum { WORD_BYTES = 4 };

static void lock(char *flag) {
  while (__atomic_test_and_set(flag, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(char *flag) {
  __atomic_clear(flag, __ATOMIC_RELEASE);
}

typedef struct global_access {
  tl_emu_sanitizer *checker;
  const tl_emu_actor *actor;
  tl_emu_epoch epoch;
  uint32_t owner;
  tl_emu_epoch found;  // what is not ordered with the access; 0: nothing
  uint32_t found_owner;
  bool proxies;  // the access goes through the async proxy: writes of the generic one before it need a fence
  const void *address;
  size_t bytes;
  tl_emu_epoch unfenced;  // one that has none; 0: all have
  uint32_t unfenced_owner;
} global_access;

// Atomics of different blocks are ordered when the scopes of both hold the other (PTX ISA, Morally strong operations).
static bool excludes(const global_access *a, tl_emu_epoch epoch, uint32_t owner) {
  const tl_emu_launch_state *launch = a->checker->launch;
  if (!launch->has_narrow) return false;
  if (owner == a->owner) return tl_emu_is_excluded(a->checker, a->actor, epoch);
  const tl_emu_site *before = tl_emu_site_of(launch, epoch);
  return a->actor->site->scope || (before && before->scope);
}

static bool is_ordered(const global_access *a, tl_emu_epoch epoch, uint32_t owner) {
  if ((a->epoch & epoch & TL_EMU_EPOCH_ATOMIC) && !excludes(a, epoch, owner)) return true;
  if (owner == a->owner) return tl_emu_happened_before(epoch, a->actor);
  uint32_t agent = tl_emu_epoch_agent(epoch);
  // Of asynchronous operations of other clusters only the threads that wait for them tell.
  if (agent >= a->checker->num_threads) return false;
  return tl_emu_epoch_clock(epoch) <= tl_emu_foreign_clock(a->actor->known->foreign, owner - 1, agent);
}

static bool writes_equal(const global_access *a, tl_emu_epoch write) {
  return a->actor->value && tl_emu_stores_equal(a->checker, a->actor, write, a->address, a->bytes);
}

static void conflict(global_access *a, tl_emu_epoch epoch, uint32_t owner) {
  if (a->found || !epoch || is_ordered(a, epoch, owner)) return;
  a->found = epoch;
  a->found_owner = owner;
}

// Of another cluster's thread: it fenced before it released, or who acquired that did.
static bool is_fenced(const global_access *a, tl_emu_epoch write, uint32_t writer) {
  if (writer == a->owner) return tl_emu_is_fenced(a->checker, write, a->actor, true);
  uint32_t agent = tl_emu_epoch_agent(write), num_threads = a->checker->num_threads;
  if (agent >= num_threads) return true;
  return tl_emu_epoch_clock(write) <= tl_emu_foreign_clock(a->actor->known->foreign, writer - 1, num_threads + agent);
}

static void look_for_fence(global_access *a, tl_emu_epoch write, uint32_t writer) {
  if (!a->proxies || a->unfenced || !write || (write & TL_EMU_EPOCH_ASYNC_PROXY) || is_fenced(a, write, writer)) return;
  a->unfenced = write;
  a->unfenced_owner = writer;
}

static void sanitize_cells(global_access *a, tl_emu_global_cell *cells, size_t offset, size_t bytes, uint32_t granule) {
  bool reads = a->epoch & TL_EMU_EPOCH_READ;
  // Only copies read a part of a granule: not enough to tell of.
  size_t first = reads ? (offset + granule - 1) / granule : offset / granule;
  size_t end = reads ? (offset + bytes) / granule : (offset + bytes + granule - 1) / granule;
  for (size_t i = first; i < end; i++) {
    tl_emu_global_cell *cell = &cells[i];
    if (!writes_equal(a, cell->write)) conflict(a, cell->write, cell->writer);
    look_for_fence(a, cell->write, cell->writer);
    if (reads) {
      // The read of another cluster stays: it is what a write of this one would not see itself.
      if (cell->read && cell->reader != a->owner && !is_ordered(a, cell->read, cell->reader)) continue;
      cell->read = a->epoch;
      cell->reader = a->owner;
    } else {
      conflict(a, cell->read, cell->reader);
      cell->write = a->epoch;
      cell->writer = a->owner;
      cell->read = 0;
    }
  }
}

static void sanitize_order(tl_emu_sanitizer *checker, const tl_emu_actor *actor, size_t index, const uint8_t *address,
                           size_t bytes, tl_emu_access_kind kind) {
  tl_emu_global *global = checker->launch->global;
  const tl_emu_buffer *buffer = &global->buffers[index];
  bool reads = kind == TL_EMU_READ || kind == TL_EMU_ATOMIC_READ;
  global_access a = {.checker = checker,
                     .actor = actor,
                     .epoch = actor->when | actor->flags | tl_emu_site_bits(checker, actor->site) |
                              (reads ? TL_EMU_EPOCH_READ : 0) | (kind >= TL_EMU_ATOMIC ? TL_EMU_EPOCH_ATOMIC : 0),
                     .owner = tl_emu_owner(checker, actor->agent) + 1,
                     .address = address,
                     .bytes = bytes,
                     .proxies = (checker->checks & TL_EMU_SANITIZE_PROXY) && (actor->flags & TL_EMU_EPOCH_ASYNC_PROXY)};
  bool shared = checker->launch->num_workers > 1;
  // Accesses have at most the size of what one lock stands for and are aligned to their own, but for copies in bulk,
  // which take one lock after the other.
  for (size_t done = 0; done < bytes;) {
    enum { STRETCH = 4096 };
    size_t offset = (size_t)(address + done - buffer->start) + tl_emu_global_bytes_before(buffer);
    size_t part = STRETCH - offset % STRETCH;
    if (part > bytes - done) part = bytes - done;
    char *flag = &global->locks[((uintptr_t)buffer->start / STRETCH + offset / STRETCH) % sizeof global->locks];
    if (shared) lock(flag);
    sanitize_cells(&a, global->cells[index], offset, part, global->granule);
    if (shared) unlock(flag);
    done += part;
  }
  if (a.unfenced && !a.found) {
    tl_emu_seen seen = {TL_EMU_FINDING_PROXY, kind, actor, a.unfenced, address, bytes, 0};
    seen.before_owner = a.unfenced_owner == a.owner ? 0 : a.unfenced_owner;
    tl_emu_found(checker, &seen);
  }
  if (!a.found) return;
  bool same = a.found_owner == a.owner;
  if (!(checker->checks & (same ? TL_EMU_SANITIZE_RACE : TL_EMU_SANITIZE_BLOCKS))) return;
  tl_emu_seen seen = {same ? TL_EMU_FINDING_RACE : TL_EMU_FINDING_BLOCKS, kind, actor, a.found, address, bytes, 0};
  seen.before_owner = same ? 0 : a.found_owner;
  tl_emu_found(checker, &seen);
}

bool tl_emu_sanitize_global(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                            tl_emu_access_kind kind) {
  tl_emu_global *global = checker->launch->global;
  size_t index = tl_emu_global_find(global, address, bytes);
  // Bytes are stored by atomics of their word; the rest of the last word belongs to no other buffer.
  if (index == global->num_buffers && kind >= TL_EMU_ATOMIC && bytes <= WORD_BYTES) {
    index = tl_emu_global_find(global, address, 1);
    if (index < global->num_buffers)
      bytes = (size_t)(global->buffers[index].start + global->buffers[index].bytes - (const uint8_t *)address);
  }
  if (index == global->num_buffers) {
    if (!(checker->checks & TL_EMU_SANITIZE_BOUNDS)) return true;  // the hardware says so
    tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_BOUNDS, kind, actor, 0, address, bytes, 0});
    return false;
  }
  if ((checker->checks & TL_EMU_SANITIZE_INIT) && !tl_emu_note_written(&global->buffers[index], address, bytes, kind))
    tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_UNINITIALISED, kind, actor, 0, address, bytes, 0});
  if (global->cells[index]) sanitize_order(checker, actor, index, address, bytes, kind);
  return true;
}

bool tl_emu_find_writer(const tl_emu_launch_state *launch, const void *address, tl_emu_writer *out) {
  const tl_emu_global *global = launch->global;
  size_t index = global ? tl_emu_global_find(global, address, 1) : 0;
  if (!global || index == global->num_buffers || !global->cells[index]) return false;
  const tl_emu_buffer *buffer = &global->buffers[index];
  size_t offset = (size_t)((const uint8_t *)address - buffer->start) + tl_emu_global_bytes_before(buffer);
  const tl_emu_global_cell *cell = &global->cells[index][offset / global->granule];
  if (!cell->write) return false;
  uint32_t agent = tl_emu_epoch_agent(cell->write), owner = cell->writer - 1, threads = launch->num_threads;
  bool is_thread = agent < threads * launch->cluster_size;
  uint64_t block = tl_emu_block_of(launch, owner, is_thread ? agent / threads : 0);
  *out = (tl_emu_writer){.is_tile = global->has_tiles,
                         .owner = global->has_tiles ? owner : block,
                         .thread = is_thread ? (int32_t)(agent % threads) : -1};
  if (!global->has_tiles) {
    out->block[0] = (uint32_t)(block % launch->grid[0]);
    out->block[1] = (uint32_t)(block / launch->grid[0] % launch->grid[1]);
    out->block[2] = (uint32_t)(block / launch->grid[0] / launch->grid[1]);
  }
  const tl_emu_site *site = tl_emu_site_of(launch, cell->write);
  if (site) {
    out->file = site->file;
    out->line = site->line;
  }
  return true;
}
