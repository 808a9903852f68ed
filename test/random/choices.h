// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The choices that make a random spec: drawn from a seed, or replayed from a list. A spec is a function of its choices,
// and smaller numbers mean simpler specs, so that shortening and lowering the list is all that a reducer needs.
#ifndef TL_TEST_RANDOM_CHOICES_H
#define TL_TEST_RANDOM_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "support/vec.h"

typedef TL_VEC(uint32_t) tl_rspec_list;

typedef struct tl_rspec_choices {
  uint64_t state;         // of the generator
  const uint32_t *given;  // Borrowed. The list to replay; NULL: draw.
  size_t num_given;
  tl_rspec_list taken;  // Owned. What was chosen.
} tl_rspec_choices;

void tl_rspec_choices_init(tl_rspec_choices *choices, uint64_t seed);
// Replays `list` (borrowed); behind its end every choice is 0, and a number that is too large is lowered.
void tl_rspec_choices_replay(tl_rspec_choices *choices, const tl_rspec_list *list);
void tl_rspec_choices_fini(tl_rspec_choices *choices);

// A number of 0 … n-1, n >= 1. Takes one place of the list even when n is 1.
uint32_t tl_rspec_choose(tl_rspec_choices *choices, uint32_t n);
// True with probability `percent`/100; false is the simpler one.
bool tl_rspec_maybe(tl_rspec_choices *choices, uint32_t percent);
// One of a list whose first item is the simplest.
int64_t tl_rspec_pick_of(tl_rspec_choices *choices, const int64_t *list, uint32_t len);
#define tl_rspec_pick(choices, ...)                           \
  tl_rspec_pick_of((choices), (const int64_t[]){__VA_ARGS__}, \
                   (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

#endif
