// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sets of accesses, found by the owner of their memory.
#include <stdlib.h>
#include <string.h>

#include "passes/sync/place_barriers_internal.h"

enum { NOBODY = UINT32_MAX };

static size_t hash_of(const void *a, const void *b) {
  uint64_t mixed =
      ((uintptr_t)a >> 4) * UINT64_C(0x9E3779B97F4A7C15) ^ ((uintptr_t)b >> 4) * UINT64_C(0xC2B2AE3D27D4EB4F);
  return mixed >> 32;
}

// The cell of the root's chain, or the free one where it belongs.
static uint32_t *chain_of(const tl_access_set *set, const tl_value *root) {
  for (size_t at = hash_of(root, NULL);; at++) {
    uint32_t *cell = &set->chains[at & (set->num_cells - 1)];
    if (*cell == NOBODY || set->items[*cell].root == root) return cell;
  }
}

// The cell of the op's access to the root, or the free one where it belongs.
static uint32_t *member_of(const tl_access_set *set, const tl_effect *effect) {
  for (size_t at = hash_of(effect->root, effect->op);; at++) {
    uint32_t *cell = &set->members[at & (set->num_cells - 1)];
    if (*cell == NOBODY) return cell;
    const tl_effect *item = &set->items[*cell];
    if (item->root == effect->root && item->op == effect->op) return cell;
  }
}

// Puts item `i` at the head of its root's chain.
static void link_item(tl_access_set *set, uint32_t i) {
  uint32_t *chain = chain_of(set, set->items[i].root);
  set->next[i] = *chain;
  *chain = i;
  *member_of(set, &set->items[i]) = i;
}

static void link_all(tl_access_set *set) {
  for (size_t c = 0; c < set->num_cells; c++) set->chains[c] = set->members[c] = NOBODY;
  for (size_t i = 0; i < set->len; i++) link_item(set, (uint32_t)i);
}

// Room for the tables that go with `capacity` items.
static void size_tables(tl_access_set *set) {
  set->num_cells = 8;
  while (set->num_cells < 2 * set->capacity) set->num_cells *= 2;
  set->next = tl_xrealloc(set->next, set->capacity * sizeof *set->next);
  set->chains = tl_xrealloc(set->chains, set->num_cells * sizeof *set->chains);
  set->members = tl_xrealloc(set->members, set->num_cells * sizeof *set->members);
}

static uint32_t first_of(const tl_access_set *set, const tl_value *root) {
  return set->len ? *chain_of(set, root) : NOBODY;
}

bool tl_access_set_has(const tl_access_set *set, const tl_value *root) {
  return first_of(set, root) != NOBODY;
}

bool tl_access_set_add(tl_access_set *set, const tl_effect *effect) {
  if (set->len && *member_of(set, effect) != NOBODY) return false;
  size_t before = set->capacity;
  tl_vec_push(set, *effect);
  if (set->capacity != before) {
    size_tables(set);
    link_all(set);
  } else {
    link_item(set, (uint32_t)set->len - 1);
  }
  return true;
}

tl_access_set tl_access_set_copy(const tl_access_set *set) {
  tl_access_set copy = {.cleared = set->cleared};
  if (set->len == 0) return copy;
  tl_vec_reserve(&copy, set->len);
  size_tables(&copy);
  copy.len = set->len;
  memcpy(copy.items, set->items, set->len * sizeof *set->items);
  if (copy.num_cells == set->num_cells) {
    memcpy(copy.next, set->next, set->len * sizeof *set->next);
    memcpy(copy.chains, set->chains, set->num_cells * sizeof *set->chains);
    memcpy(copy.members, set->members, set->num_cells * sizeof *set->members);
  } else {
    link_all(&copy);
  }
  return copy;
}

bool tl_access_set_merge(tl_access_set *into, const tl_access_set *from, size_t first) {
  bool changed = false;
  for (size_t i = first; i < from->len; i++) changed |= tl_access_set_add(into, &from->items[i]);
  return changed;
}

bool tl_access_set_meets(const tl_access_set *set, const tl_effect *effect) {
  for (uint32_t i = first_of(set, effect->root); i != NOBODY; i = set->next[i]) {
    if (!tl_accesses_never_meet(&set->items[i], effect)) return true;
  }
  return false;
}

void tl_access_set_keep(tl_access_set *set, bool (*keeps)(const tl_effect *effect)) {
  size_t kept = 0;
  for (size_t i = 0; i < set->len; i++) {
    if (keeps(&set->items[i])) set->items[kept++] = set->items[i];
  }
  if (set->len == kept) return;
  set->len = kept;
  set->cleared++;
  link_all(set);
}

void tl_access_set_clear(tl_access_set *set) {
  if (set->len == 0) return;
  set->len = 0;
  set->cleared++;
  link_all(set);
}

void tl_access_set_fini(tl_access_set *set) {
  free(set->items);
  free(set->next);
  free(set->chains);
  free(set->members);
  *set = (tl_access_set){0};
}
