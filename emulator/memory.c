// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global memory for kernels: each buffer between inaccessible regions, ending at the upper one, filled with 0xff (NaN
// in every float format). The few bytes that alignment leaves over are watched.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/machine.h"
#include "support/vec.h"

typedef struct buffer {
  uint8_t *map;  // guard, pages, guard
  size_t map_bytes;
  uint8_t *start;
  size_t bytes;
} buffer;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TL_VEC(buffer) buffers;  // under the mutex

// Addresses are free, and a wrong row index goes far.
enum { GUARD_BYTES = 16 << 20 };

static size_t page_bytes(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static void __attribute__((noreturn)) out_of_memory(size_t bytes) {
  fprintf(stderr, "tl-llc: out of memory: emulator buffer of %zu bytes\n", bytes);
  abort();
}

void *tl_emu_alloc(size_t bytes, size_t align) {
  size_t page = page_bytes();
  if (align < 1) align = 1;
  if (align > page || (align & (align - 1))) {
    fprintf(stderr, "tl-llc: emulator buffers cannot be aligned to %zu bytes\n", align);
    abort();
  }
  if (bytes > (size_t)1 << 46) out_of_memory(bytes);
  size_t pages = (bytes + page - 1) / page * page;
  uint8_t *map = mmap(NULL, pages + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) out_of_memory(bytes);
  if (pages && mprotect(map + GUARD_BYTES, pages, PROT_READ | PROT_WRITE)) out_of_memory(bytes);
  memset(map + GUARD_BYTES, 0xff, pages);
  uint8_t *start = map + GUARD_BYTES + pages - bytes;
  start -= (uintptr_t)start & (align - 1);
  buffer made = {map, pages + 2 * GUARD_BYTES, start, bytes};
  pthread_mutex_lock(&mutex);
  tl_vec_push(&buffers, made);
  pthread_mutex_unlock(&mutex);
  return made.start;
}

// The first byte in [from, to) that is not 0xff, or NULL.
static const uint8_t *find_change(const uint8_t *from, const uint8_t *to) {
  for (const uint8_t *p = from; p < to; p++)
    if (*p != 0xff) return p;
  return NULL;
}

// The first changed byte around a buffer, or NULL.
static const uint8_t *find_buffer_damage(const buffer *b) {
  uint8_t *low = b->map + GUARD_BYTES, *high = b->map + b->map_bytes - GUARD_BYTES;
  const uint8_t *change = find_change(low, b->start);
  return change ? change : find_change(b->start + b->bytes, high);
}

void tl_emu_free(void *pointer) {
  if (!pointer) return;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++) {
    if (buffers.items[i].start != pointer) continue;
    buffer found = buffers.items[i];
    buffers.items[i] = buffers.items[--buffers.len];
    if (!buffers.len) tl_vec_fini(&buffers);
    pthread_mutex_unlock(&mutex);
    // Launches have reported what kernels did: this is the host's own doing.
    if (find_buffer_damage(&found)) {
      fprintf(stderr, "tl-llc: host code wrote outside an emulator buffer of %zu bytes\n", found.bytes);
      abort();
    }
    munmap(found.map, found.map_bytes);
    return;
  }
  pthread_mutex_unlock(&mutex);
  fprintf(stderr, "tl-llc: tl_emu_free of a pointer that tl_emu_alloc did not return\n");
  abort();
}

static void describe_offset(const buffer *b, uintptr_t address, tl_strbuf *out) {
  uintptr_t start = (uintptr_t)b->start, end = start + b->bytes;
  if (address >= end)
    tl_strbuf_appendf(out, "%zu bytes past the end of a buffer of %zu bytes", (size_t)(address - end), b->bytes);
  else if (address < start)
    tl_strbuf_appendf(out, "%zu bytes before the start of a buffer of %zu bytes", (size_t)(start - address), b->bytes);
  else
    tl_strbuf_appendf(out, "byte %zu of a buffer of %zu bytes", (size_t)(address - start), b->bytes);
}

void tl_emu_describe_address(uintptr_t address, tl_strbuf *out) {
  enum { NEAR = GUARD_BYTES };
  pthread_mutex_lock(&mutex);
  const buffer *nearest = NULL;
  uintptr_t best = NEAR;
  for (size_t i = 0; i < buffers.len; i++) {
    uintptr_t start = (uintptr_t)buffers.items[i].start, end = start + buffers.items[i].bytes;
    uintptr_t distance = address < start ? start - address : address >= end ? address - end : 0;
    if (distance < best) {
      best = distance;
      nearest = &buffers.items[i];
    }
  }
  if (nearest)
    describe_offset(nearest, address, out);
  else
    tl_strbuf_appendf(out, "at %#zx, nowhere near a buffer", (size_t)address);
  pthread_mutex_unlock(&mutex);
}

bool tl_emu_is_buffer(const void *address, size_t bytes) {
  bool found = false;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len && !found; i++) {
    size_t offset = (size_t)((const uint8_t *)address - buffers.items[i].start);
    found = offset < buffers.items[i].bytes && bytes <= buffers.items[i].bytes - offset;
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

bool tl_emu_find_damage(tl_strbuf *out) {
  bool found = false;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++) {
    buffer *b = &buffers.items[i];
    const uint8_t *change = find_buffer_damage(b);
    if (!change) continue;
    if (found) tl_strbuf_append_c(out, "; ");
    describe_offset(b, (uintptr_t)change, out);
    found = true;
    memset(b->map + GUARD_BYTES, 0xff, (size_t)(b->start - (b->map + GUARD_BYTES)));
    uint8_t *end = b->start + b->bytes;
    memset(end, 0xff, (size_t)(b->map + b->map_bytes - GUARD_BYTES - end));
  }
  pthread_mutex_unlock(&mutex);
  return found;
}
