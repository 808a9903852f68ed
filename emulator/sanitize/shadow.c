// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every checked access comes through here: bounds and alignment, then the granules of shared memory that it covers.
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

static tl_emu_actor actor_of_async(const tl_emu_sanitizer *checker, const tl_emu_async *async) {
  return (tl_emu_actor){.when = tl_emu_epoch_of(async->slot, async->clock),
                        .flags = async->proxy == TL_EMU_PROXY_ASYNC ? TL_EMU_EPOCH_ASYNC_PROXY : 0,
                        .known = async->known,
                        .agent = async->issuer,
                        .agent_now = async->issuer_now,
                        .copies = checker->num_threads + async->issuer,
                        .copies_done = async->issuer_copies_done,
                        .fenced = {async->issuer_fenced[0], async->issuer_fenced[1]},
                        .site = async->site};
}

// ---- cells

typedef struct access {
  tl_emu_sanitizer *checker;
  const tl_emu_actor *actor;
  tl_emu_access_kind kind;
  tl_emu_epoch epoch;         // as it goes into the cells
  const tl_emu_block *block;  // whose memory it is
  size_t base;                // of its cells
  const void *address;
  size_t bytes;
  bool races, proxies, inits;
  bool told;  // one finding an access is enough
} access;

static void __attribute__((noinline)) tell(access *a, tl_emu_finding_kind kind, tl_emu_epoch before, size_t cell) {
  if (a->told) return;
  a->told = true;
  const uint8_t *at = a->block->shared + (cell << a->checker->granule_shift);
  if (at < (const uint8_t *)a->address) at = a->address;
  tl_emu_seen seen = {kind, a->kind, a->actor, before, at, a->bytes, 0};
  tl_emu_found(a->checker, &seen);
}

// Rows are read up to where the padding of the tile ends, which nobody writes: of no interest, and told of once.
static void __attribute__((noinline)) read_unwritten(access *a, tl_emu_cell *cell, size_t index) {
  if (a->actor->site->is_followed) return;
  // An mbarrier is started once and goes on from tile to tile.
  if (a->actor->site->binding && a->actor->site->binding->on_mbarrier) return;
  size_t offset = index << a->checker->granule_shift;
  if (!tl_emu_is_padding(a->checker->launch, a->actor->site, offset, a->checker->granule))
    tell(a, TL_EMU_FINDING_UNINITIALISED, 0, index);
  cell->write = TL_EMU_EPOCH_READ;  // before everything
}

static inline bool both_atomic(const access *a, tl_emu_epoch other) {
  return (a->epoch & other & TL_EMU_EPOCH_ATOMIC) && !tl_emu_is_excluded(a->checker, a->actor, other);
}

// Against the last write; true: it may be forgotten that there was one.
static inline void sanitize_write_before(access *a, tl_emu_epoch write, size_t cell) {
  if (a->races && !tl_emu_happened_before(write, a->actor) && !both_atomic(a, write)) {
    if (!tl_emu_stores_equal(a->checker, a->actor, write, a->address, a->bytes))
      tell(a, TL_EMU_FINDING_RACE, write, cell);
  } else if (a->proxies && tl_emu_is_unfenced(a->checker, write, a->actor)) {
    tell(a, TL_EMU_FINDING_PROXY, write, cell);
  }
}

static inline void read_cell(access *a, tl_emu_cell *cell, size_t index) {
  if (tl_emu_same_agent_and_clock(cell->reads[0], a->epoch)) return;  // nothing was written since
  if (__builtin_expect(!cell->write, 0)) {
    if (a->inits) read_unwritten(a, cell, index);
  } else {
    sanitize_write_before(a, cell->write, index);
    if (a->checker->has_tiles && a->inits && tl_emu_is_of_earlier_tile(a->checker, a->actor->agent, cell->write))
      read_unwritten(a, cell, index);
  }
  for (int i = 0; i < TL_EMU_CELL_READERS; i++) {
    if (!cell->reads[i] || tl_emu_happened_before(cell->reads[i], a->actor)) {
      cell->reads[i] = a->epoch;
      return;
    }
  }
  if (!tl_emu_readers_add(a->checker->readers, a->base + index, a->epoch, a->actor))
    cell->reads[TL_EMU_CELL_READERS - 1] = a->epoch;
}

static void __attribute__((noinline)) end_readers(access *a, size_t index) {
  bool is_atomic = a->epoch & TL_EMU_EPOCH_ATOMIC;
  tl_emu_epoch unfenced = 0;
  tl_emu_epoch read =
      tl_emu_readers_end(a->checker, a->base + index, a->actor, is_atomic, a->proxies ? &unfenced : NULL);
  if (read && a->races) tell(a, TL_EMU_FINDING_RACE, read, index);
  if (unfenced) tell(a, TL_EMU_FINDING_PROXY, unfenced, index);
}

static inline void write_cell(access *a, tl_emu_cell *cell, size_t index) {
  if (cell->write) {
    sanitize_write_before(a, cell->write, index);
    if (a->checker->has_tiles && a->kind == TL_EMU_ATOMIC && a->inits &&
        tl_emu_is_of_earlier_tile(a->checker, a->actor->agent, cell->write))
      read_unwritten(a, cell, index);
  } else if (a->kind == TL_EMU_ATOMIC && a->inits) {
    read_unwritten(a, cell, index);
  }
  tl_emu_epoch unfenced = 0;
  for (int i = 0; i < TL_EMU_CELL_READERS && cell->reads[i]; i++) {
    if (a->races && !tl_emu_happened_before(cell->reads[i], a->actor) && !both_atomic(a, cell->reads[i]))
      tell(a, TL_EMU_FINDING_RACE, cell->reads[i], index);
    if (a->proxies && tl_emu_is_unfenced(a->checker, cell->reads[i], a->actor)) unfenced = cell->reads[i];
    cell->reads[i] = 0;
  }
  if (unfenced) tell(a, TL_EMU_FINDING_PROXY, unfenced, index);
  if (__builtin_expect(tl_emu_readers_has(a->checker->readers, a->base + index), 0)) end_readers(a, index);
  cell->write = a->epoch;
}

static void sanitize_cells(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const tl_emu_block *block,
                           const void *address, size_t bytes, tl_emu_access_kind kind) {
  access a = {.checker = checker,
              .actor = actor,
              .kind = kind,
              .epoch = actor->when | actor->flags | tl_emu_site_bits(checker, actor->site),
              .block = block,
              .address = address,
              .bytes = bytes,
              .races = checker->checks & TL_EMU_SANITIZE_RACE,
              .proxies = (checker->checks & TL_EMU_SANITIZE_PROXY) && (actor->flags & TL_EMU_EPOCH_ASYNC_PROXY),
              .inits = checker->checks & TL_EMU_SANITIZE_INIT};
  if (kind >= TL_EMU_ATOMIC) a.epoch |= TL_EMU_EPOCH_ATOMIC;
  if (kind == TL_EMU_READ || kind == TL_EMU_ATOMIC_READ) a.epoch |= TL_EMU_EPOCH_READ;
  size_t offset = (size_t)((const uint8_t *)address - block->shared), base = block->rank * checker->num_cells;
  size_t first = offset >> checker->granule_shift;
  size_t end = (offset + bytes + checker->granule - 1) >> checker->granule_shift;
  if (base + first < checker->touched_from) checker->touched_from = base + first;
  if (base + end > checker->touched_to) checker->touched_to = base + end;
  a.base = base;
  tl_emu_cell *cells = &checker->cells[base];
  if (kind == TL_EMU_READ || kind == TL_EMU_ATOMIC_READ) {
    for (size_t i = first; i < end; i++) read_cell(&a, &cells[i], i);
  } else {
    for (size_t i = first; i < end; i++) write_cell(&a, &cells[i], i);
  }
}

// ---- accesses

static bool in_window(uintptr_t address) {
  return address - (uintptr_t)tl_emu_self->memory->window < (uintptr_t)1 << 32;
}

static bool is_local(uintptr_t address) {
  const tl_emu_memory *memory = tl_emu_self->memory;
  uintptr_t start = (uintptr_t)memory->stacks;
  uintptr_t end = (uintptr_t)tl_emu_memory_stack(memory, memory->num_stacks - 1) + tl_emu_stack_bytes();
  return address - start < end - start;
}

static inline bool is_in_tile(const tl_emu_site *site, size_t offset, size_t bytes) {
  for (uint32_t i = 0; i < site->num_tiles; i++)
    if (offset >= site->tiles[i].from && offset + bytes <= site->tiles[i].to) return true;
  return false;
}

static bool sanitize_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                            size_t align, tl_emu_access_kind kind) {
  uintptr_t at = (uintptr_t)address;
  if (checker->checks == TL_EMU_SANITIZE_ELEMENTS) return true;
  if (__builtin_expect(at & (align - 1), 0) && (checker->checks & TL_EMU_SANITIZE_ALIGN)) {
    tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_ALIGNMENT, kind, actor, 0, address, bytes, align});
    return false;
  }
  if (!in_window(at)) {
    if (is_local(at)) return tl_emu_locals_access(checker, actor, address, bytes, kind);
    return tl_emu_sanitize_global(checker, actor, address, bytes, kind);
  }
  const tl_emu_block *block = tl_emu_block_at(tl_emu_self, address);
  size_t size = checker->launch->shared_bytes, offset = block ? at - (uintptr_t)block->shared : size;
  bool reached = block && block->cluster == checker->cluster;
  if (__builtin_expect(!reached || offset >= size || bytes > size - offset, 0)) {
    if (!(checker->checks & TL_EMU_SANITIZE_BOUNDS)) return true;  // the hardware says so
    tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_BOUNDS, kind, actor, 0, address, bytes, align});
    return false;
  }
  if (__builtin_expect(checker->ends != NULL, 0) && !tl_emu_ends_access(checker, actor, block, kind)) return false;
  if ((checker->checks & TL_EMU_SANITIZE_BOUNDS) && actor->site->num_tiles && !is_in_tile(actor->site, offset, bytes)) {
    tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_BOUNDS, kind, actor, 0, address, bytes, align});
    return false;
  }
  if (checker->checks & (TL_EMU_SANITIZE_RACE | TL_EMU_SANITIZE_INIT | TL_EMU_SANITIZE_PROXY))
    sanitize_cells(checker, actor, block, address, bytes, kind);
  if (__builtin_expect(checker->undefined != NULL, 0))
    tl_emu_undefined_access(checker, actor, block->rank * size + offset, bytes, kind);
  return true;
}

bool tl_emu_touch_by(uint32_t thread, const void *address, size_t bytes, size_t align, tl_emu_access_kind kind,
                     const tl_emu_site *site) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return true;
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, tl_emu_agent_here(thread), site);
  return sanitize_access(checker, &actor, address, bytes, align, kind);
}

bool tl_emu_touch(const void *address, size_t bytes, size_t align, tl_emu_access_kind kind, const tl_emu_site *site) {
  return tl_emu_touch_by(tl_emu_self->current->thread, address, bytes, align, kind, site);
}

static inline void *touch_plain(void *pointer, const tl_emu_site *site, const void *value) {
  static _Thread_local uint8_t instead[64] __attribute__((aligned(64)));
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return pointer;
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, index, site);
  actor.value = value;
  checker->followed = site->is_followed ? site : NULL;
  if (__builtin_expect(sanitize_access(checker, &actor, pointer, site->bytes, site->align, site->access), 1)) {
    if (site->releases)
      tl_emu_release_atomic(checker, index, pointer, site->scope);
    else if (site->access == TL_EMU_ATOMIC || site->access == TL_EMU_ATOMIC_WRITE)
      tl_emu_release_atomic_relaxed(checker, index, pointer, site->scope);
    return pointer;
  }
  return memset(instead, 0xff, sizeof instead);
}

void *tl_emu_touch_plain(void *pointer, const tl_emu_site *site) {
  return touch_plain(pointer, site, NULL);
}

void *tl_emu_touch_store(void *pointer, const tl_emu_site *site, const void *value) {
  return touch_plain(pointer, site, value);
}

bool tl_emu_touch_async(tl_emu_async *async, const void *address, size_t bytes, size_t align, tl_emu_access_kind kind) {
  if (!async) return true;
  tl_emu_actor actor = actor_of_async(async->checker, async);
  return sanitize_access(async->checker, &actor, address, bytes, align, kind);
}

bool tl_emu_touch_copy(const void *to, size_t bytes, size_t align, const tl_emu_site *site) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return true;
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_agent *agent = &checker->agents[index];
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, index, site);
  actor.when = tl_emu_epoch_of(checker->num_threads + index, agent->copies_issued + 1);
  if (!sanitize_access(checker, &actor, to, bytes, align, TL_EMU_WRITE)) return false;
  agent->copies_issued++;
  agent->copy_site = site;
  return true;
}
