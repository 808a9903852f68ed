// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global memory for kernels: each buffer between inaccessible regions, ending at the upper one, filled with 0xff (NaN
// in every float format). The few bytes that alignment leaves over are watched.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/machine/machine.h"
#include "support/vec.h"

typedef struct buffer {
  uint8_t *map;  // guard, pages, guard
  size_t map_bytes;
  uint8_t *start;
  size_t bytes;
  uint8_t *written;  // Owned. For each byte whether something wrote it; NULL: everything counts as written
} buffer;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TL_VEC(buffer) buffers;  // under the mutex, with which nothing is allocated that jumps when memory runs out

// Addresses are free, and a wrong row index goes far.
enum { GUARD_BYTES = 16 << 20 };

static size_t page_bytes(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static void __attribute__((noreturn)) out_of_memory(size_t bytes) {
  tl_memory_exhausted();
  fprintf(stderr, "tl-llc: out of memory: emulator buffer of %zu bytes\n", bytes);
  abort();
}

// Whether there is room for one more.
static bool reserve_buffer(void) {
  if (buffers.len < buffers.capacity) return true;
  size_t capacity = buffers.capacity ? 2 * buffers.capacity : 16;
  buffer *grown = realloc(buffers.items, capacity * sizeof *grown);
  if (!grown) return false;
  buffers.items = grown;
  buffers.capacity = capacity;
  return true;
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
  buffer made = {map, pages + 2 * GUARD_BYTES, start, bytes, NULL};
  pthread_mutex_lock(&mutex);
  bool has_room = reserve_buffer();
  if (has_room) tl_vec_push(&buffers, made);
  pthread_mutex_unlock(&mutex);
  if (!has_room) {
    munmap(map, made.map_bytes);
    out_of_memory(bytes);
  }
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
    free(found.written);
    return;
  }
  pthread_mutex_unlock(&mutex);
  fprintf(stderr, "tl-llc: tl_emu_free of a pointer that tl_emu_alloc did not return\n");
  abort();
}

size_t tl_emu_size(const void *pointer) {
  size_t bytes = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++)
    if (buffers.items[i].start == pointer) bytes = buffers.items[i].bytes;
  pthread_mutex_unlock(&mutex);
  return bytes;
}

bool tl_emu_is_buffer(const void *pointer) {
  bool found = false;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len && !found; i++) {
    const uint8_t *start = buffers.items[i].start;
    found = (const uint8_t *)pointer >= start && (size_t)((const uint8_t *)pointer - start) < buffers.items[i].bytes;
  }
  pthread_mutex_unlock(&mutex);
  return found;
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
  buffer found = nearest ? *nearest : (buffer){0};
  pthread_mutex_unlock(&mutex);
  if (nearest)
    describe_offset(&found, address, out);
  else
    tl_strbuf_appendf(out, "at %#zx, nowhere near a buffer", (size_t)address);
}

static int by_address(const void *left, const void *right) {
  const tl_emu_buffer *a = left, *b = right;
  return a->start < b->start ? -1 : a->start > b->start;
}

tl_emu_buffer *tl_emu_copy_buffers(size_t *out_count) {
  size_t room = 0, count = 0;
  tl_emu_buffer *copies = NULL;
  do {
    free(copies);
    pthread_mutex_lock(&mutex);
    room = buffers.len;
    pthread_mutex_unlock(&mutex);
    copies = tl_xcalloc(room + 1, sizeof *copies);
    pthread_mutex_lock(&mutex);
    count = buffers.len;
    for (size_t i = 0; i < count && count <= room; i++)
      copies[i] = (tl_emu_buffer){buffers.items[i].start, buffers.items[i].bytes, buffers.items[i].written};
    pthread_mutex_unlock(&mutex);
  } while (count > room);
  qsort(copies, count, sizeof *copies, by_address);
  *out_count = count;
  return copies;
}

bool tl_emu_note_written(const tl_emu_buffer *in, const void *address, size_t bytes, tl_emu_access_kind kind) {
  if (!in->written) return true;
  uint8_t *written = in->written + ((const uint8_t *)address - in->start);
  bool all = true;
  if (kind != TL_EMU_WRITE && kind != TL_EMU_ATOMIC_WRITE)
    for (size_t i = 0; i < bytes; i++) all &= __atomic_load_n(&written[i], __ATOMIC_RELAXED) != 0;
  if (kind != TL_EMU_READ && kind != TL_EMU_ATOMIC_READ)
    for (size_t i = 0; i < bytes; i++) __atomic_store_n(&written[i], 1, __ATOMIC_RELAXED);
  return all;
}

void tl_emu_mark_unwritten(void *pointer) {
  uint8_t *written = tl_xcalloc(tl_emu_size(pointer) + 1, 1);
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++) {
    if (buffers.items[i].start != pointer) continue;
    uint8_t *before = buffers.items[i].written;
    buffers.items[i].written = written;
    written = before;
  }
  pthread_mutex_unlock(&mutex);
  free(written);
}

void tl_emu_mark_written(const void *pointer, size_t bytes) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++) {
    const buffer *b = &buffers.items[i];
    if (!b->written || (const uint8_t *)pointer < b->start) continue;
    size_t offset = (size_t)((const uint8_t *)pointer - b->start);
    if (offset >= b->bytes) continue;
    memset(b->written + offset, 1, bytes < b->bytes - offset ? bytes : b->bytes - offset);
  }
  pthread_mutex_unlock(&mutex);
}

void tl_emu_forget_written(void) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len; i++) {
    free(buffers.items[i].written);
    buffers.items[i].written = NULL;
  }
  pthread_mutex_unlock(&mutex);
}

// Mends the first damaged buffer there is. False: there is none.
static bool mend_one(buffer *out, uintptr_t *out_place) {
  bool found = false;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < buffers.len && !found; i++) {
    buffer *b = &buffers.items[i];
    const uint8_t *change = find_buffer_damage(b);
    if (!change) continue;
    found = true;
    *out = *b;
    *out_place = (uintptr_t)change;
    memset(b->map + GUARD_BYTES, 0xff, (size_t)(b->start - (b->map + GUARD_BYTES)));
    uint8_t *end = b->start + b->bytes;
    memset(end, 0xff, (size_t)(b->map + b->map_bytes - GUARD_BYTES - end));
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

bool tl_emu_find_damage(tl_strbuf *out) {
  buffer damaged;
  uintptr_t place;
  bool found = false;
  while (mend_one(&damaged, &place)) {
    if (found) tl_strbuf_append_c(out, "; ");
    describe_offset(&damaged, place, out);
    found = true;
  }
  return found;
}
