// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Order between clusters, through releases and acquires of atomics in global memory. What a thread knows of other
// clusters is a map from cluster to the clocks of its threads; maps and clocks are shared, and never change.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

// Of every thread of a cluster its clock, and behind those the clocks up to which a proxy fence of global memory
// followed: its own, or one of somebody who knew of them.
typedef struct tl_emu_snapshot {
  uint32_t refs;  // atomic
  uint32_t items[];
} tl_emu_snapshot;

typedef struct foreign_item {
  uint32_t owner;
  tl_emu_snapshot *clocks;  // Owned (a reference).
} foreign_item;

struct tl_emu_foreign {
  uint32_t refs;  // atomic
  uint32_t len;
  foreign_item items[];  // by owner
};

static tl_emu_snapshot *share_snapshot(tl_emu_snapshot *snapshot) {
  __atomic_fetch_add(&snapshot->refs, 1, __ATOMIC_RELAXED);
  return snapshot;
}

static void drop_snapshot(tl_emu_snapshot *snapshot) {
  if (__atomic_fetch_sub(&snapshot->refs, 1, __ATOMIC_ACQ_REL) == 1) free(snapshot);
}

tl_emu_foreign *tl_emu_foreign_share(tl_emu_foreign *foreign) {
  if (foreign) __atomic_fetch_add(&foreign->refs, 1, __ATOMIC_RELAXED);
  return foreign;
}

void tl_emu_foreign_drop(tl_emu_foreign *foreign) {
  if (!foreign || __atomic_fetch_sub(&foreign->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
  for (uint32_t i = 0; i < foreign->len; i++) drop_snapshot(foreign->items[i].clocks);
  free(foreign);
}

static tl_emu_snapshot *create_snapshot(uint32_t num_threads) {
  tl_emu_snapshot *made = tl_xmalloc(sizeof *made + 2 * num_threads * sizeof made->items[0]);
  made->refs = 1;
  return made;
}

static tl_emu_snapshot *join_snapshots(tl_emu_snapshot *a, tl_emu_snapshot *b, uint32_t num_threads) {
  uint32_t len = 2 * num_threads;
  if (a == b) return share_snapshot(a);
  bool a_covers = true, b_covers = true;
  for (uint32_t i = 0; i < len; i++) {
    a_covers &= a->items[i] >= b->items[i];
    b_covers &= b->items[i] >= a->items[i];
  }
  if (a_covers || b_covers) return share_snapshot(a_covers ? a : b);
  tl_emu_snapshot *made = create_snapshot(num_threads);
  for (uint32_t i = 0; i < len; i++) made->items[i] = a->items[i] > b->items[i] ? a->items[i] : b->items[i];
  return made;
}

tl_emu_foreign *tl_emu_foreign_join(tl_emu_foreign *a, tl_emu_foreign *b, uint32_t num_threads) {
  if (a == b || !b) return tl_emu_foreign_share(a);
  if (!a) return tl_emu_foreign_share(b);
  tl_emu_foreign *made = tl_xmalloc(sizeof *made + ((size_t)a->len + b->len) * sizeof made->items[0]);
  made->refs = 1;
  made->len = 0;
  for (uint32_t i = 0, k = 0; i < a->len || k < b->len;) {
    bool from_a = i < a->len && (k == b->len || a->items[i].owner <= b->items[k].owner);
    bool from_b = k < b->len && (i == a->len || b->items[k].owner <= a->items[i].owner);
    foreign_item *item = &made->items[made->len++];
    if (from_a && from_b)
      *item = (foreign_item){a->items[i].owner, join_snapshots(a->items[i].clocks, b->items[k].clocks, num_threads)};
    else
      *item = from_a ? a->items[i] : b->items[k];
    if (!from_a || !from_b) share_snapshot(item->clocks);
    i += from_a;
    k += from_b;
  }
  return made;
}

tl_emu_foreign *tl_emu_foreign_fence(tl_emu_foreign *foreign, uint32_t num_threads) {
  tl_emu_foreign *made = tl_xmalloc(sizeof *made + foreign->len * sizeof made->items[0]);
  made->refs = 1;
  made->len = foreign->len;
  for (uint32_t i = 0; i < foreign->len; i++) {
    tl_emu_snapshot *from = foreign->items[i].clocks, *to = from;
    bool is_fenced = memcmp(from->items, from->items + num_threads, num_threads * sizeof from->items[0]) == 0;
    if (is_fenced) {
      share_snapshot(from);
    } else {
      to = create_snapshot(num_threads);
      for (uint32_t t = 0; t < num_threads; t++) to->items[t] = to->items[num_threads + t] = from->items[t];
    }
    made->items[i] = (foreign_item){foreign->items[i].owner, to};
  }
  return made;
}

uint32_t tl_emu_foreign_clock(const tl_emu_foreign *foreign, uint32_t owner, uint32_t thread) {
  uint32_t low = 0, high = foreign ? foreign->len : 0;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (foreign->items[middle].owner == owner) return foreign->items[middle].clocks->items[thread];
    if (foreign->items[middle].owner < owner)
      low = middle + 1;
    else
      high = middle;
  }
  return 0;
}

// ---- what was released, by address

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // of every launch's table

static tl_emu_released *find_released(tl_emu_released_table *table, const void *address) {
  if (table->len * 2 >= table->capacity) {
    tl_emu_released_table grown = {.capacity = table->capacity ? table->capacity * 2 : 64};
    grown.slots = tl_xcalloc(grown.capacity, sizeof *grown.slots);
    for (size_t i = 0; i < table->capacity; i++)
      if (table->slots[i].address) *find_released(&grown, table->slots[i].address) = table->slots[i];
    grown.len = table->len;
    free(table->slots);
    *table = grown;
  }
  size_t at = (size_t)(((uint64_t)(uintptr_t)address >> 2) * 0x9e3779b97f4a7c15u >> 20) & (table->capacity - 1);
  while (table->slots[at].address && table->slots[at].address != address) at = (at + 1) & (table->capacity - 1);
  return &table->slots[at];
}

void tl_emu_release_global(tl_emu_sanitizer *checker, uint32_t owner, const tl_emu_vector *known, const void *address) {
  uint32_t num_threads = checker->num_threads;
  tl_emu_snapshot *clocks = create_snapshot(num_threads);
  memcpy(clocks->items, known->items, num_threads * sizeof clocks->items[0]);
  memcpy(clocks->items + num_threads, known->items + checker->width + num_threads,
         num_threads * sizeof clocks->items[0]);
  tl_emu_foreign *own = tl_xmalloc(sizeof *own + sizeof own->items[0]);
  *own = (tl_emu_foreign){.refs = 1, .len = 1};
  own->items[0] = (foreign_item){owner, clocks};
  tl_emu_foreign *all = tl_emu_foreign_join(known->foreign, own, num_threads);
  tl_emu_lock(&mutex);
  tl_emu_released *slot = find_released(&checker->launch->released, address);
  if (!slot->address) checker->launch->released.len++;
  tl_emu_foreign *joined = tl_emu_foreign_join(slot->foreign, all, num_threads);
  tl_emu_foreign_drop(slot->foreign);
  *slot = (tl_emu_released){address, joined};
  tl_emu_unlock(&mutex);
  tl_emu_foreign_drop(own);
  tl_emu_foreign_drop(all);
}

tl_emu_foreign *tl_emu_released_at(tl_emu_sanitizer *checker, const void *address) {
  tl_emu_lock(&mutex);
  tl_emu_foreign *released = NULL;
  if (checker->launch->released.len)
    released = tl_emu_foreign_share(find_released(&checker->launch->released, address)->foreign);
  tl_emu_unlock(&mutex);
  return released;
}

void tl_emu_foreign_read(const tl_emu_foreign *foreign, uint32_t owner, uint32_t num_threads, uint32_t *items) {
  for (uint32_t i = 0; i < foreign->len; i++) {
    if (foreign->items[i].owner != owner) continue;
    const uint32_t *clocks = foreign->items[i].clocks->items;
    for (uint32_t t = 0; t < num_threads; t++)
      if (items[t] < clocks[t]) items[t] = clocks[t];
  }
}

void tl_emu_released_fini(tl_emu_released_table *table) {
  for (size_t i = 0; i < table->capacity; i++) tl_emu_foreign_drop(table->slots[i].foreign);
  free(table->slots);
  *table = (tl_emu_released_table){0};
}
