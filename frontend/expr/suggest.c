// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "frontend/expr/suggest.h"

#include "support/dtype.h"

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

typedef struct habit {
  const char *name, *hint;
} habit;

static const char *hint_of(const habit *habits, size_t num_habits, tl_str name) {
  for (size_t i = 0; i < num_habits; i++)
    if (tl_str_is(name, habits[i].name)) return habits[i].hint;
  return NULL;
}

const char *tl_suggest_for_function(tl_str name) {
  static const habit functions[] = {
      {"where", "did you mean `select`?"},
      {"mean", "a mean is `sum(…) / n`"},
      {"average", "a mean is `sum(…) / n`"},
      {"maximum", "did you mean `max`?"},
      {"minimum", "did you mean `min`?"},
      {"fmax", "did you mean `max`?"},
      {"fmin", "did you mean `min`?"},
      {"fabs", "did you mean `abs`?"},
      {"absolute", "did you mean `abs`?"},
      {"power", "did you mean `pow`?"},
      {"clip", "did you mean `clamp`?"},
      {"ln", "did you mean `log`?"},
      {"dot", "a matrix product is `gemm: c += a @ b`"},
      {"matmul", "a matrix product is `gemm: c += a @ b`"},
      {"float", "write `cast(x, f32)`"},
      {"int", "write `cast(x, i32)`"},
      {"astype", "write `cast(x, dtype)`"},
  };
  if (tl_dtype_parse(name) != TL_DTYPE_NONE) return "a value is converted by `cast(x, dtype)`";
  return hint_of(functions, sizeof functions / sizeof functions[0], name);
}

const char *tl_suggest_for_keyword(tl_str name) {
  static const habit keywords[] = {{"dim", "did you mean `axis=`?"},
                                   {"dims", "did you mean `axis=`?"},
                                   {"axes", "did you mean `axis=`?"},
                                   {"keepdim", "did you mean `keepdims=`?"},
                                   {"keep_dims", "did you mean `keepdims=`?"}};
  return hint_of(keywords, sizeof keywords / sizeof keywords[0], name);
}

const char *tl_suggest_for_tolerance(tl_str name) {
  static const habit keys[] = {{"rel", "did you mean `rtol`?"},      {"relative", "did you mean `rtol`?"},
                               {"rel_tol", "did you mean `rtol`?"},  {"abs", "did you mean `atol`?"},
                               {"absolute", "did you mean `atol`?"}, {"abs_tol", "did you mean `atol`?"}};
  return hint_of(keys, sizeof keys / sizeof keys[0], name);
}
