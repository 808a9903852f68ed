// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random expressions over given values.
#ifndef TL_TEST_RANDOM_EXPR_H
#define TL_TEST_RANDOM_EXPR_H

#include "test/random/value.h"

// An expression over at least one value; `depth` bounds its height. The result is numeric.
tl_rspec_value tl_rspec_expression(tl_rspec *spec, const tl_rspec_values *leaves, int depth);
// A condition over the leaves that have no error. False when there is none.
bool tl_rspec_condition(tl_rspec *spec, const tl_rspec_values *leaves, tl_rspec_value *out);

#endif
