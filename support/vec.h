// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Typed growable arrays on the heap: TL_VEC(int) v = {0}; tl_vec_push(&v, 3); v.items[0]; v.len; tl_vec_fini(&v).
#ifndef TL_SUPPORT_VEC_H
#define TL_SUPPORT_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "support/arena.h"

#define TL_VEC(T)    \
  struct {           \
    T *items;        \
    size_t len;      \
    size_t capacity; \
  }

// Grows `items` so that one more element fits and returns the new array. Called by the macros below.
void *tl_vec_grow(void *items, size_t *capacity, size_t wanted, size_t item_size);

#define tl_vec_reserve(v, wanted)                                                                            \
  ((v)->capacity < (size_t)(wanted)                                                                          \
       ? (void)((v)->items = tl_vec_grow((v)->items, &(v)->capacity, (size_t)(wanted), sizeof(*(v)->items))) \
       : (void)0)
#define tl_vec_push(v, ...) (tl_vec_reserve((v), (v)->len + 1), (void)((v)->items[(v)->len++] = (__VA_ARGS__)))
#define tl_vec_pop(v) ((v)->items[--(v)->len])
#define tl_vec_last(v) ((v)->items[(v)->len - 1])
#define tl_vec_clear(v) ((void)((v)->len = 0))
#define tl_vec_fini(v) (free((v)->items), (void)((v)->items = NULL), (void)((v)->len = (v)->capacity = 0))
// A copy of the elements in `arena`.
#define tl_vec_to_arena(v, arena) \
  tl_arena_copy_bytes((arena), (v)->items ? (const void *)(v)->items : (const void *)"", (v)->len * sizeof(*(v)->items))

#endif
