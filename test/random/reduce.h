// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes a failing spec small: delta debugging of its choices.
#ifndef TL_TEST_RANDOM_REDUCE_H
#define TL_TEST_RANDOM_REDUCE_H

#include "test/random/choices.h"
#include "test/random/run.h"

// Whether the spec of a list of choices still fails as wanted.
typedef bool tl_rspec_still_fails(void *user, const tl_rspec_list *choices);

// Shortens and lowers `choices` in place, as long as `still_fails` says so, with at most `budget` tries. Returns how
// many were made.
int tl_rspec_reduce(tl_rspec_list *choices, tl_rspec_still_fails *still_fails, void *user, int budget);

#endif
