// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The language page's rule for "equal enough".
#ifndef TL_HARNESS_COMPARE_H
#define TL_HARNESS_COMPARE_H

#include <stdbool.h>

#include "harness/data/array.h"
#include "support/strbuf.h"

typedef struct tl_compare_result {
  uint64_t count;
  uint64_t num_failed;
  bool is_int;
  // The worst element: of the failed ones, or of all when none failed. Nothing when count is 0.
  uint64_t worst;  // flattened
  double error;    // |value - reference|; NaN or infinity where these are; 0 where the reference rounds to infinity too
  double value, reference;
  int64_t int_value, int_reference;
} tl_compare_result;

// Element x of a float array passes if it equals the reference rounded to the dtype, or |x - r| <= atol + rtol * |r|;
// equal infinities pass, NaN never does.
void tl_compare_float(const tl_array *values, const double *reference, double rtol, double atol,
                      tl_compare_result *out);
// Integers and bools; the tolerance applies too (exact where rtol and atol are 0).
void tl_compare_int(const tl_array *values, const int64_t *reference, double rtol, double atol, tl_compare_result *out);

// "C: f16[256, 256], worst error 0.00195 at [3, 7]: 1.5, expected 1.49805" and, on failure, how many elements differ.
void tl_compare_print(const tl_compare_result *result, const char *name, const tl_array *values, tl_strbuf *out);

// One element that is wrong.
typedef struct tl_compare_element {
  uint64_t index;  // flattened
  double value, reference;
  int64_t int_value, int_reference;
} tl_compare_element;

// The wrong elements in order, at most `max` of them; `reference` is of doubles, or of int64_t for integers. Returns
// how many there are in `out`.
uint64_t tl_compare_list(const tl_array *values, const void *reference, bool is_int, double rtol, double atol,
                         tl_compare_element *out, uint64_t max);

// "[3, 7]" of a flattened index, and ": 1.5, expected 1.49805".
void tl_compare_print_index(const tl_array *values, uint64_t flat, tl_strbuf *out);
void tl_compare_print_element(const tl_array *values, const tl_compare_element *element, bool is_int, tl_strbuf *out);

#endif
