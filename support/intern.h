// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// String interning and a string-keyed map, both with deterministic (insertion) order.
#ifndef TL_SUPPORT_INTERN_H
#define TL_SUPPORT_INTERN_H

#include "support/arena.h"
#include "support/strview.h"

// Insertion-ordered map from text to pointer.
typedef struct tl_strmap_entry {
  tl_str key;   // Owned by the map's arena.
  void *value;  // Borrowed.
  uint64_t hash;
} tl_strmap_entry;

typedef struct tl_strmap {
  tl_arena *arena;           // Borrowed; holds keys.
  tl_strmap_entry *entries;  // Owned. Insertion order.
  size_t len;
  size_t capacity;
  uint32_t *slots;  // Owned. Open addressing, 1-based entry index.
  size_t num_slots;
} tl_strmap;

void tl_strmap_init(tl_strmap *map, tl_arena *arena);
void tl_strmap_fini(tl_strmap *map);
// NULL when absent.
tl_strmap_entry *tl_strmap_find(const tl_strmap *map, tl_str key);
void *tl_strmap_get(const tl_strmap *map, tl_str key);
// Adds or replaces. Returns the entry (borrowed until the next put).
tl_strmap_entry *tl_strmap_put(tl_strmap *map, tl_str key, void *value);

// Interned text: equal texts give the same pointer. NUL-terminated, lives as long as the map's arena.
const char *tl_strmap_intern(tl_strmap *map, tl_str text);

#endif
