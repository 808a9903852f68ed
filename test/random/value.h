// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of random specs: their text in the body and in the reference, and what is known of them: the range, and a
// bound of how far the body's value may lie from the reference's because of rounding. Tolerances come from these
// bounds.
#ifndef TL_TEST_RANDOM_VALUE_H
#define TL_TEST_RANDOM_VALUE_H

#include "support/dtype.h"
#include "test/random/writer.h"

typedef struct tl_rspec_value {
  const char *body, *reference;  // Owned by the spec's arena.
  tl_dtype dtype;
  double lo, hi;  // of the reference's value
  double err;     // of the body's, absolute
  bool is_whole;  // an integer, in a float too
  bool is_const;  // takes the other side's dtype
} tl_rspec_value;

enum { TL_RSPEC_MAX_VALUES = 32 };
typedef struct tl_rspec_values {
  tl_rspec_value items[TL_RSPEC_MAX_VALUES];
  uint32_t len;
} tl_rspec_values;

void tl_rspec_add_value(tl_rspec_values *values, tl_rspec_value value);
double tl_rspec_max_abs(const tl_rspec_value *value);
// The error of rounding a number of this size to a dtype; 0 when it is exact.
double tl_rspec_rounding(tl_dtype dtype, double max_abs, bool is_whole);
// What a store into `dtype` makes of the value. Texts stay.
tl_rspec_value tl_rspec_stored(tl_rspec_value value, tl_dtype dtype);
// The common dtype of two values.
tl_dtype tl_rspec_promote(const tl_rspec_value *a, const tl_rspec_value *b);
// A multiple of 1/8 (or an integer) between -limit and limit, never 0.
tl_rspec_value tl_rspec_constant(tl_rspec *spec, int limit, bool is_whole);
// A value without rounding error.
tl_rspec_value tl_rspec_exact(const char *body, const char *reference, tl_dtype dtype, double lo, double hi,
                              bool is_whole);

// Each returns false, and leaves `out` alone, when the result would be out of the range or the precision that random
// specs keep to.
bool tl_rspec_add(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, bool subtract, tl_rspec_value *out);
bool tl_rspec_multiply(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out);
bool tl_rspec_divide(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out);
bool tl_rspec_min_max(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, bool is_max, tl_rspec_value *out);
bool tl_rspec_choose_between(tl_rspec *spec, tl_rspec_value condition, tl_rspec_value a, tl_rspec_value b,
                             bool as_function, tl_rspec_value *out);
bool tl_rspec_cast(tl_rspec *spec, tl_rspec_value a, tl_dtype dtype, tl_rspec_value *out);
// A random function of one argument whose domain holds the value.
bool tl_rspec_apply(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out);

#endif
