// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Readers of a granule of shared memory beyond those that its cell has room for: chains of small blocks, as long as
// there are readers that nothing orders. A write, which all of them must be ordered with, frees the chain.
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

enum { READERS_PER_LINK = 7, MAX_LINKS = 1 << 20 };  // 64 MiB for each worker

typedef struct link {
  tl_emu_epoch reads[READERS_PER_LINK];
  uint32_t next;  // number in the pool, from 1; 0: the last
  uint32_t len;
} link;

struct tl_emu_readers {
  uint32_t *chains;  // Owned. Of each cell: number of its first link; 0: none
  size_t num_cells;
  link *links;  // Owned. The pool
  size_t len, capacity;
  uint32_t first_free;
};

tl_emu_readers *tl_emu_readers_create(size_t num_cells) {
  tl_emu_readers *readers = tl_xcalloc(1, sizeof *readers);
  readers->chains = tl_xcalloc(num_cells + 1, sizeof *readers->chains);
  readers->num_cells = num_cells;
  return readers;
}

void tl_emu_readers_destroy(tl_emu_readers *readers) {
  if (!readers) return;
  free(readers->chains);
  free(readers->links);
  free(readers);
}

void tl_emu_readers_reset(tl_emu_readers *readers) {
  if (!readers->len) return;
  memset(readers->chains, 0, readers->num_cells * sizeof *readers->chains);
  readers->len = 0;
  readers->first_free = 0;
}

// 0: there are too many.
static uint32_t take_link(tl_emu_readers *readers) {
  uint32_t taken = readers->first_free;
  if (taken) {
    readers->first_free = readers->links[taken - 1].next;
  } else {
    if (readers->len == MAX_LINKS) return 0;
    if (readers->len == readers->capacity)
      readers->links = tl_vec_grow(readers->links, &readers->capacity, readers->len + 1, sizeof *readers->links);
    taken = (uint32_t)++readers->len;
  }
  readers->links[taken - 1].next = readers->links[taken - 1].len = 0;
  return taken;
}

bool tl_emu_readers_add(tl_emu_readers *readers, size_t cell, tl_emu_epoch read, const tl_emu_actor *actor) {
  uint32_t last = 0;
  for (uint32_t at = readers->chains[cell]; at; at = readers->links[at - 1].next) {
    link *here = &readers->links[at - 1];
    for (uint32_t i = 0; i < here->len; i++) {
      if (!tl_emu_happened_before(here->reads[i], actor)) continue;
      here->reads[i] = read;
      return true;
    }
    last = at;
  }
  if (!last || readers->links[last - 1].len == READERS_PER_LINK) {
    uint32_t taken = take_link(readers);
    if (!taken) return false;
    if (last)
      readers->links[last - 1].next = taken;
    else
      readers->chains[cell] = taken;
    last = taken;
  }
  link *to = &readers->links[last - 1];
  to->reads[to->len++] = read;
  return true;
}

tl_emu_epoch tl_emu_readers_end(const tl_emu_sanitizer *checker, size_t cell, const tl_emu_actor *actor, bool is_atomic,
                                tl_emu_epoch *out_unfenced) {
  tl_emu_readers *readers = checker->readers;
  tl_emu_epoch found = 0;
  uint32_t at = readers->chains[cell];
  readers->chains[cell] = 0;
  while (at) {
    link *here = &readers->links[at - 1];
    for (uint32_t i = 0; i < here->len && !found; i++) {
      bool both_atomic = is_atomic && (here->reads[i] & TL_EMU_EPOCH_ATOMIC);
      if (!both_atomic && !tl_emu_happened_before(here->reads[i], actor))
        found = here->reads[i];
      else if (out_unfenced && tl_emu_is_unfenced(checker, here->reads[i], actor))
        *out_unfenced = here->reads[i];
    }
    uint32_t next = here->next;
    here->next = readers->first_free;
    readers->first_free = at;
    at = next;
  }
  return found;
}

bool tl_emu_readers_has(const tl_emu_readers *readers, size_t cell) {
  return readers->chains[cell] != 0;
}
