// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Borrowed, length-counted text.
#ifndef TL_SUPPORT_STRVIEW_H
#define TL_SUPPORT_STRVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tl_str {
  const char *data;  // Borrowed; not necessarily NUL-terminated. May be NULL when len is 0.
  size_t len;        // bytes
} tl_str;

// A literal as a view; also usable in static initialisers.
#define TL_STR(literal)            \
  (tl_str) {                       \
    (literal), sizeof(literal) - 1 \
  }
// For printf: printf("%.*s", TL_STR_ARG(s)).
#define TL_STR_ARG(s) (int)(s).len, (s).data

tl_str tl_str_from(const char *c_string);
bool tl_str_equal(tl_str a, tl_str b);
bool tl_str_is(tl_str a, const char *c_string);
bool tl_str_starts_with(tl_str s, const char *prefix);
bool tl_str_ends_with(tl_str s, const char *suffix);
tl_str tl_str_sub(tl_str s, size_t start, size_t len);
tl_str tl_str_trim(tl_str s);
// Index of `c` in `s`, or SIZE_MAX.
size_t tl_str_find(tl_str s, char c);
uint64_t tl_str_hash(tl_str s);

// Edit distance (Damerau-Levenshtein, optimal string alignment) between two short texts; SIZE_MAX when over 64 bytes.
size_t tl_str_distance(tl_str a, tl_str b);

#endif
