// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/strview.h"

#include <string.h>

tl_str tl_str_from(const char *c_string) {
  return (tl_str){c_string, c_string ? strlen(c_string) : 0};
}

bool tl_str_equal(tl_str a, tl_str b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool tl_str_is(tl_str a, const char *c_string) {
  return tl_str_equal(a, tl_str_from(c_string));
}

bool tl_str_starts_with(tl_str s, const char *prefix) {
  size_t len = strlen(prefix);
  return s.len >= len && memcmp(s.data, prefix, len) == 0;
}

bool tl_str_ends_with(tl_str s, const char *suffix) {
  size_t len = strlen(suffix);
  return s.len >= len && memcmp(s.data + s.len - len, suffix, len) == 0;
}

tl_str tl_str_sub(tl_str s, size_t start, size_t len) {
  if (start > s.len) start = s.len;
  if (len > s.len - start) len = s.len - start;
  return (tl_str){s.data ? s.data + start : NULL, len};
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

tl_str tl_str_trim(tl_str s) {
  while (s.len && is_space(s.data[0])) s.data++, s.len--;
  while (s.len && is_space(s.data[s.len - 1])) s.len--;
  return s;
}

size_t tl_str_find(tl_str s, char c) {
  const char *found = s.len ? memchr(s.data, c, s.len) : NULL;
  return found ? (size_t)(found - s.data) : SIZE_MAX;
}

// FNV-1a: short keys, no attacker-chosen data volume beyond the frontend's limits.
uint64_t tl_str_hash(tl_str s) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < s.len; i++) hash = (hash ^ (unsigned char)s.data[i]) * 0x100000001b3u;
  return hash;
}

static size_t min3(size_t a, size_t b, size_t c) {
  size_t least = a < b ? a : b;
  return least < c ? least : c;
}

enum { DISTANCE_MAX = 64 };

size_t tl_str_distance(tl_str a, tl_str b) {
  if (a.len > DISTANCE_MAX || b.len > DISTANCE_MAX) return SIZE_MAX;
  size_t rows[3][DISTANCE_MAX + 1];
  for (size_t j = 0; j <= b.len; j++) rows[0][j] = j;
  for (size_t i = 1; i <= a.len; i++) {
    size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
      size_t substitute = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);
      row[j] = min3(above[j] + 1, row[j - 1] + 1, substitute);
      bool swapped = i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1];
      if (swapped && above2[j - 2] + 1 < row[j]) row[j] = above2[j - 2] + 1;
    }
  }
  return rows[a.len % 3][b.len];
}
