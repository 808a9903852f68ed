// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "frontend/suggest.h"

static tl_str lower(tl_str text, char *buffer, size_t capacity) {
  if (text.len > capacity) return text;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    buffer[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
  }
  return (tl_str){buffer, text.len};
}

// Twice the edit distance without regard to case, plus one when only case differs somewhere.
static size_t score(tl_str word, tl_str candidate) {
  char word_buffer[64], candidate_buffer[64];
  size_t distance = tl_str_distance(lower(word, word_buffer, sizeof(word_buffer)),
                                    lower(candidate, candidate_buffer, sizeof(candidate_buffer)));
  if (distance == SIZE_MAX) return SIZE_MAX;
  return 2 * distance + (tl_str_equal(word, candidate) ? 0 : 1);
}

size_t tl_suggest_index(tl_str word, const tl_str *candidates, size_t num_candidates) {
  size_t allowed = word.len / 3 ? word.len / 3 : 1;
  if (word.len <= 1) allowed = 0;  // One letter is near to every other: only its other case may be meant.
  size_t best = 2 * allowed + 2, best_index = SIZE_MAX;
  for (size_t i = 0; i < num_candidates; i++) {
    size_t value = score(word, candidates[i]);
    if (value < best) {
      best = value;
      best_index = i;
    }
  }
  return best_index;
}

const char *tl_suggest(tl_str word, const char *const *candidates, size_t num_candidates) {
  const char *best = NULL;
  tl_str best_text = {0};
  for (size_t i = 0; i < num_candidates; i++) {
    tl_str pair[2] = {best_text, tl_str_from(candidates[i])};
    size_t index = best ? tl_suggest_index(word, pair, 2) : tl_suggest_index(word, pair + 1, 1);
    if (index != SIZE_MAX && (!best || index == 1)) {
      best = candidates[i];
      best_text = pair[1];
    }
  }
  return best;
}
