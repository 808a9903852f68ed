// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SplitMix64 under a list of choices.
#include "test/random/choices.h"

void tl_rspec_choices_init(tl_rspec_choices *choices, uint64_t seed) {
  *choices = (tl_rspec_choices){.state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du};
}

void tl_rspec_choices_replay(tl_rspec_choices *choices, const tl_rspec_list *list) {
  *choices = (tl_rspec_choices){.given = list->items, .num_given = list->len};
  static const uint32_t nothing[1];
  if (!choices->given) choices->given = nothing;
}

void tl_rspec_choices_fini(tl_rspec_choices *choices) {
  tl_vec_fini(&choices->taken);
}

static uint64_t next(tl_rspec_choices *choices) {
  uint64_t z = choices->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t tl_rspec_choose(tl_rspec_choices *choices, uint32_t n) {
  uint32_t value;
  if (choices->given) {
    size_t at = choices->taken.len;
    value = at < choices->num_given ? choices->given[at] : 0;
    if (value >= n) value = n - 1;
  } else {
    value = (uint32_t)(((next(choices) >> 32) * n) >> 32);
  }
  tl_vec_push(&choices->taken, value);
  return value;
}

bool tl_rspec_maybe(tl_rspec_choices *choices, uint32_t percent) {
  return tl_rspec_choose(choices, 100) >= 100 - percent;
}

int64_t tl_rspec_pick_of(tl_rspec_choices *choices, const int64_t *list, uint32_t len) {
  return list[tl_rspec_choose(choices, len)];
}
