// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chunked bump allocator. Everything a module, a spec or a pass allocates dies with its arena.
#ifndef TL_SUPPORT_ARENA_H
#define TL_SUPPORT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tl_arena_chunk tl_arena_chunk;

typedef struct tl_arena {
  tl_arena_chunk *chunk;  // Owned. The newest chunk; older ones hang behind it.
  size_t used_bytes;      // sum over all allocations, for statistics
} tl_arena;

// A place to return to with tl_arena_release: frees everything allocated since tl_arena_mark.
typedef struct tl_arena_mark {
  tl_arena_chunk *chunk;
  size_t chunk_used;
  size_t used_bytes;
} tl_arena_marker;

void tl_arena_init(tl_arena *arena);
void tl_arena_fini(tl_arena *arena);

// Zeroed memory, aligned to `align` (a power of two, at most 64). Never NULL: running out of memory ends the innermost
// tl_memory_guard or, without one, the process with a message.
void *tl_arena_alloc(tl_arena *arena, size_t size, size_t align);
// Copies `size` bytes; the copy is followed by a NUL that is not counted.
char *tl_arena_copy_bytes(tl_arena *arena, const void *bytes, size_t size);
char *tl_arena_printf(tl_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

tl_arena_marker tl_arena_mark(const tl_arena *arena);
void tl_arena_release(tl_arena *arena, tl_arena_marker mark);

// Runs `work(user)` so that memory that runs out ends it: false. Then the arenas that grew in it have been given back,
// whoever holds them: nothing that was made in it may be touched or freed any more, and what it has from the heap
// (arrays and buffers that were growing) is lost. Guards nest; each belongs to its thread.
bool tl_memory_guard(void (*work)(void *user), void *user);
// What this thread does first when its memory runs out: it may leave by a way of its own; where it returns, the
// innermost guard ends. NULL: nothing.
void tl_memory_set_handler(void (*handler)(void));
// For those who run out of memory elsewhere: ends the innermost guard of the thread. Returns when there is none.
void tl_memory_exhausted(void);
// The same for a library that says so by itself. Does not return: without a guard the process ends.
_Noreturn void tl_out_of_memory(size_t size);

// Heap allocation for long-lived growable things; never NULL, as tl_arena_alloc.
void *tl_xmalloc(size_t size);
void *tl_xcalloc(size_t count, size_t size);
void *tl_xrealloc(void *pointer, size_t size);

#define TL_NEW(arena, T) ((T *)tl_arena_alloc((arena), sizeof(T), _Alignof(T)))
#define TL_NEW_ARRAY(arena, T, n) ((T *)tl_arena_alloc((arena), sizeof(T) * (size_t)(n), _Alignof(T)))

#endif
