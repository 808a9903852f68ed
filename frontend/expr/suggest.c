// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "frontend/expr/suggest.h"

#include <string.h>

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
  // `padding` for `pad`, `dim` for `dims`: a word and what it begins with.
  enum { LEAST_PREFIX = 3 };
  size_t shorter = word.len < candidate.len ? word.len : candidate.len;
  if (shorter >= LEAST_PREFIX && !memcmp(word.data, candidate.data, shorter)) return word.len == candidate.len ? 0 : 2;
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
      {"cdiv", "did you mean `ceildiv`?"},
      {"ceil_div", "did you mean `ceildiv`?"},
      {"div_up", "did you mean `ceildiv`?"},
      {"mean", "a mean is `sum(…) / n`"},
      {"average", "a mean is `sum(…) / n`"},
      {"maximum", "did you mean `max`?"},
      {"minimum", "did you mean `min`?"},
      {"fmax", "did you mean `max`?"},
      {"fmin", "did you mean `min`?"},
      {"fmaxf", "did you mean `max`?"},
      {"fminf", "did you mean `min`?"},
      {"fabs", "did you mean `abs`?"},
      {"fabsf", "did you mean `abs`?"},
      {"__expf", "write `exp(x)`; `fast_math: true` takes the approximate instructions"},
      {"__logf", "write `log(x)`; `fast_math: true` takes the approximate instructions"},
      {"frexp", "write `frexp_mantissa(x)` and `frexp_exponent(x)`"},
      {"scalbn", "did you mean `ldexp`?"},
      {"arcsin", "did you mean `asin`?"},
      {"arccos", "did you mean `acos`?"},
      {"arctan", "did you mean `atan`?"},
      {"arctan2", "did you mean `atan2`?"},
      {"arcsinh", "did you mean `asinh`?"},
      {"arccosh", "did you mean `acosh`?"},
      {"arctanh", "did you mean `atanh`?"},
      {"ballot", "votes of the block are `any(…)` and `all(…)`; `count` of them is `sum(1 if … else 0)`"},
      {"__ballot_sync", "votes of the block are `any(…)` and `all(…)`"},
      {"__syncthreads", "the compiler places barriers; `sync:` is one more"},
      {"atomicAdd", "a statement of its own: `atomic: x -> C[i]`"},
      {"atomicMax", "a statement of its own: `atomic: x -> C[i]` with `op: max`"},
      {"atomicMin", "a statement of its own: `atomic: x -> C[i]` with `op: min`"},
      {"atomic_add", "a statement of its own: `atomic: x -> C[i]`"},
      {"atomic_max", "a statement of its own: `atomic: x -> C[i]` with `op: max`"},
      {"atomic_min", "a statement of its own: `atomic: x -> C[i]` with `op: min`"},
      {"zeros", "a tile is set by `clear: x` or `fill: x`"},
      {"full", "a tile is set by `fill: x` with `value:`"},
      {"program_id", "the indices of the grid are the names under `grid`"},
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

// A power of two without a sign takes part in no arithmetic: it is a byte, and functions make numbers of it.
#define E8M0_HINT "a scale of an MX format is a `u8` here: its value is `ldexp(1.0, s - 127)`, and 255 stands for NaN"

const char *tl_suggest_for_dtype(tl_str name) {
  static const habit dtypes[] = {{"fp64", "did you mean `f64`?"},
                                 {"fp32", "did you mean `f32`?"},
                                 {"fp16", "did you mean `f16`?"},
                                 {"fp8", "did you mean `f8e4m3` or `f8e5m2`?"},
                                 {"f8", "did you mean `f8e4m3` or `f8e5m2`?"},
                                 {"float8", "did you mean `f8e4m3` or `f8e5m2`?"},
                                 {"e4m3", "did you mean `f8e4m3`?"},
                                 {"e5m2", "did you mean `f8e5m2`?"},
                                 {"fp8e4m3", "did you mean `f8e4m3`?"},
                                 {"fp8e5m2", "did you mean `f8e5m2`?"},
                                 {"fp4", "did you mean `f4e2m1`?"},
                                 {"e8m0", E8M0_HINT},
                                 {"f8e8m0", E8M0_HINT},
                                 {"ue8m0", E8M0_HINT},
                                 {"float8_e8m0fnu", E8M0_HINT}};
  return hint_of(dtypes, sizeof dtypes / sizeof dtypes[0], name);
}

const char *tl_suggest_for_attribute(tl_str name) {
  static const habit bases[] = {
      {"blockIdx", "the indices of the grid are the names under `grid`"},
      {"gridDim", "the grid's extents are the expressions under `grid`"},
      {"blockDim", "the number of threads stands under `threads`"},
      {"threadIdx", "`parallel` gives each element its indices; a thread's number is `thread_id()`"},
      {"tl", "functions stand without a module, as `exp(x)`"},
      {"T", "functions stand without a module, as `exp(x)`"},
      {"np", "functions stand without a module, as `exp(x)`"},
      {"math", "functions stand without a module, as `exp(x)`"},
      {"torch", "functions stand without a module, as `exp(x)`"}};
  return hint_of(bases, sizeof bases / sizeof bases[0], name);
}

const char *tl_suggest_for_character(const char *text, size_t len) {
  static const habit characters[] = {{"\u2018", "no quotes are needed"},
                                     {"\u2019", "no quotes are needed"},
                                     {"\u201c", "no quotes are needed"},
                                     {"\u201d", "no quotes are needed"},
                                     {"\u201e", "no quotes are needed"},
                                     {"\u2212", "minus is written `-`"},
                                     {"\u2013", "minus is written `-`"},
                                     {"\u2014", "minus is written `-`"},
                                     {"\u00d7", "a product is `a * b`"},
                                     {"\u00b7", "a product is `a * b`"},
                                     {"\u00f7", "a quotient is `a / b`, its floor `a // b`"},
                                     {"\u2264", "write `<=`"},
                                     {"\u2265", "write `>=`"},
                                     {"\u2260", "write `!=`"},
                                     {"\u2192", "write `->`"},
                                     {"\u221e", "infinity is `inf`"},
                                     {"\u00a0", "this blank is no ASCII blank"}};
  const char *hint = hint_of(characters, sizeof characters / sizeof characters[0], (tl_str){text, len});
  return hint ? hint : len > 1 ? "names are of ASCII letters: is this one that only looks like them?" : NULL;
}

const char *tl_suggest_for_tolerance(tl_str name) {
  static const habit keys[] = {{"rel", "did you mean `rtol`?"},      {"relative", "did you mean `rtol`?"},
                               {"rel_tol", "did you mean `rtol`?"},  {"abs", "did you mean `atol`?"},
                               {"absolute", "did you mean `atol`?"}, {"abs_tol", "did you mean `atol`?"}};
  return hint_of(keys, sizeof keys / sizeof keys[0], name);
}
