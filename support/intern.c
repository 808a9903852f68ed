// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/intern.h"

#include <stdlib.h>
#include <string.h>

void tl_strmap_init(tl_strmap *map, tl_arena *arena) {
  *map = (tl_strmap){.arena = arena};
}

void tl_strmap_fini(tl_strmap *map) {
  free(map->entries);
  free(map->slots);
  *map = (tl_strmap){0};
}

// The slot of `key`: where it is, or the free one where it belongs.
static size_t find_slot(const tl_strmap *map, tl_str key, uint64_t hash) {
  size_t slot = hash & (map->num_slots - 1);
  while (map->slots[slot]) {
    const tl_strmap_entry *entry = &map->entries[map->slots[slot] - 1];
    if (entry->hash == hash && tl_str_equal(entry->key, key)) break;
    slot = (slot + 1) & (map->num_slots - 1);
  }
  return slot;
}

static void rehash(tl_strmap *map, size_t num_slots) {
  free(map->slots);
  map->slots = tl_xcalloc(num_slots, sizeof(*map->slots));
  map->num_slots = num_slots;
  for (size_t i = 0; i < map->len; i++) {
    size_t slot = find_slot(map, map->entries[i].key, map->entries[i].hash);
    map->slots[slot] = (uint32_t)(i + 1);
  }
}

tl_strmap_entry *tl_strmap_find(const tl_strmap *map, tl_str key) {
  if (!map->num_slots) return NULL;
  size_t slot = find_slot(map, key, tl_str_hash(key));
  return map->slots[slot] ? &map->entries[map->slots[slot] - 1] : NULL;
}

void *tl_strmap_get(const tl_strmap *map, tl_str key) {
  const tl_strmap_entry *entry = tl_strmap_find(map, key);
  return entry ? entry->value : NULL;
}

tl_strmap_entry *tl_strmap_put(tl_strmap *map, tl_str key, void *value) {
  if ((map->len + 1) * 4 > map->num_slots * 3) rehash(map, map->num_slots ? map->num_slots * 2 : 16);
  uint64_t hash = tl_str_hash(key);
  size_t slot = find_slot(map, key, hash);
  if (map->slots[slot]) {
    tl_strmap_entry *entry = &map->entries[map->slots[slot] - 1];
    entry->value = value;
    return entry;
  }
  if (map->len == map->capacity) {
    map->capacity = map->capacity ? map->capacity * 2 : 16;
    map->entries = tl_xrealloc(map->entries, map->capacity * sizeof(*map->entries));
  }
  tl_str owned = {tl_arena_copy_bytes(map->arena, key.data, key.len), key.len};
  map->entries[map->len] = (tl_strmap_entry){owned, value, hash};
  map->slots[slot] = (uint32_t)++map->len;
  return &map->entries[map->len - 1];
}

const char *tl_strmap_intern(tl_strmap *map, tl_str text) {
  const tl_strmap_entry *entry = tl_strmap_find(map, text);
  if (!entry) entry = tl_strmap_put(map, text, NULL);
  return entry->key.data;
}
