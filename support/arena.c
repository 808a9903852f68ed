// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/vec.h"

// The ring of the chunks that were allocated in one guard.
typedef struct ring_link {
  struct ring_link *left, *right;  // NULL outside of guards
} ring_link;

struct tl_arena_chunk {
  ring_link link;  // first: a link of a ring is its chunk
  tl_arena_chunk *previous;
  size_t size;  // usable bytes behind the header
  size_t used;
  _Alignas(64) char bytes[];
};

enum { FIRST_CHUNK_BYTES = 16 * 1024, MAX_CHUNK_BYTES = 1024 * 1024 };

// ---- memory that runs out

typedef struct memory_guard {
  jmp_buf back;
  ring_link ring;  // head of the chunks that were allocated inside and are not freed yet
  bool has_ended;  // by itself
  struct memory_guard *outer;
} memory_guard;

static _Thread_local memory_guard *innermost;

static void leave_ring(ring_link *link) {
  if (!link->left) return;
  link->left->right = link->right;
  link->right->left = link->left;
  link->left = link->right = NULL;
}

static void enter_ring(ring_link *link) {
  link->left = link->right = NULL;
  if (!innermost) return;
  link->left = &innermost->ring;
  link->right = innermost->ring.right;
  link->right->left = link;
  innermost->ring.right = link;
}

bool tl_memory_guard(void (*work)(void *user), void *user) {
  memory_guard guard = {.outer = innermost};
  guard.ring.left = guard.ring.right = &guard.ring;
  innermost = &guard;
  if (setjmp(guard.back) == 0) {
    work(user);
    guard.has_ended = true;
  }
  innermost = guard.outer;
  while (guard.ring.right != &guard.ring) {
    ring_link *link = guard.ring.right;
    leave_ring(link);
    if (guard.has_ended) {
      enter_ring(link);  // of the outer guard
    } else {
      free((tl_arena_chunk *)link);
    }
  }
  return guard.has_ended;
}

static _Thread_local void (*handler)(void);

void tl_memory_set_handler(void (*given)(void)) {
  handler = given;
}

void tl_memory_exhausted(void) {
  if (handler) handler();
  if (innermost) longjmp(innermost->back, 1);
}

void tl_out_of_memory(size_t size) {
  tl_memory_exhausted();
  fprintf(stderr, "tl-llc: out of memory allocating %zu bytes\n", size);
  abort();
}

void *tl_xmalloc(size_t size) {
  void *pointer = malloc(size ? size : 1);
  if (!pointer) tl_out_of_memory(size);
  return pointer;
}

void *tl_xcalloc(size_t count, size_t size) {
  void *pointer = calloc(count ? count : 1, size ? size : 1);
  if (!pointer) tl_out_of_memory(count * size);
  return pointer;
}

void *tl_xrealloc(void *pointer, size_t size) {
  void *grown = realloc(pointer, size ? size : 1);
  if (!grown) tl_out_of_memory(size);
  return grown;
}

void *tl_vec_grow(void *items, size_t *capacity, size_t wanted, size_t item_size) {
  size_t grown = *capacity ? *capacity * 2 : 8;
  if (grown < wanted) grown = wanted;
  if (grown > SIZE_MAX / item_size) tl_out_of_memory(SIZE_MAX);
  items = tl_xrealloc(items, grown * item_size);
  *capacity = grown;
  return items;
}

void tl_arena_init(tl_arena *arena) {
  *arena = (tl_arena){0};
}

static void free_chunks_until(tl_arena *arena, const tl_arena_chunk *stop) {
  while (arena->chunk && arena->chunk != stop) {
    tl_arena_chunk *previous = arena->chunk->previous;
    leave_ring(&arena->chunk->link);
    free(arena->chunk);
    arena->chunk = previous;
  }
}

void tl_arena_fini(tl_arena *arena) {
  free_chunks_until(arena, NULL);
  *arena = (tl_arena){0};
}

static void add_chunk(tl_arena *arena, size_t size) {
  size_t wanted = arena->chunk ? arena->chunk->size * 2 : FIRST_CHUNK_BYTES;
  if (wanted > MAX_CHUNK_BYTES) wanted = MAX_CHUNK_BYTES;
  if (wanted < size) wanted = size;
  if (wanted > SIZE_MAX - 2 * sizeof(tl_arena_chunk)) tl_out_of_memory(wanted);
  size_t total = (sizeof(tl_arena_chunk) + wanted + 63) & ~(size_t)63;
  tl_arena_chunk *chunk = aligned_alloc(64, total);
  if (!chunk) tl_out_of_memory(total);
  chunk->previous = arena->chunk;
  enter_ring(&chunk->link);
  chunk->size = wanted;
  chunk->used = 0;
  arena->chunk = chunk;
}

void *tl_arena_alloc(tl_arena *arena, size_t size, size_t align) {
  if (size > SIZE_MAX - 64) tl_out_of_memory(size);
  size_t start = arena->chunk ? (arena->chunk->used + align - 1) & ~(align - 1) : 0;
  if (!arena->chunk || start > arena->chunk->size || size > arena->chunk->size - start) {
    add_chunk(arena, size);
    start = 0;
  }
  arena->chunk->used = start + size;
  arena->used_bytes += size;
  return memset(arena->chunk->bytes + start, 0, size);
}

char *tl_arena_copy_bytes(tl_arena *arena, const void *bytes, size_t size) {
  char *copy = tl_arena_alloc(arena, size + 1, 16);
  if (size) memcpy(copy, bytes, size);
  return copy;
}

char *tl_arena_printf(tl_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  va_list measure;
  va_copy(measure, args);
  int len = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  char *text = tl_arena_alloc(arena, (size_t)len + 1, 1);
  vsnprintf(text, (size_t)len + 1, format, args);
  va_end(args);
  return text;
}

tl_arena_marker tl_arena_mark(const tl_arena *arena) {
  return (tl_arena_marker){arena->chunk, arena->chunk ? arena->chunk->used : 0, arena->used_bytes};
}

void tl_arena_release(tl_arena *arena, tl_arena_marker mark) {
  free_chunks_until(arena, mark.chunk);
  if (arena->chunk) arena->chunk->used = mark.chunk_used;
  arena->used_bytes = mark.used_bytes;
}
