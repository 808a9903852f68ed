// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Removes runs of choices, sets runs to zero, then lowers single ones, until nothing helps.
#include "test/random/reduce.h"

#include <string.h>

typedef struct reducer {
  tl_rspec_list *best;
  tl_rspec_list trial;
  tl_rspec_still_fails *still_fails;
  void *user;
  int tries, budget;
} reducer;

static void copy_list(tl_rspec_list *to, const tl_rspec_list *from) {
  tl_vec_clear(to);
  for (size_t i = 0; i < from->len; i++) tl_vec_push(to, from->items[i]);
}

// Keeps the trial when it fails too.
static bool attempt(reducer *r) {
  if (r->tries >= r->budget) return false;
  r->tries++;
  if (!r->still_fails(r->user, &r->trial)) return false;
  copy_list(r->best, &r->trial);
  return true;
}

static bool remove_runs(reducer *r, size_t length) {
  bool changed = false;
  for (size_t at = 0; at + length <= r->best->len && r->tries < r->budget;) {
    tl_vec_clear(&r->trial);
    for (size_t i = 0; i < r->best->len; i++) {
      if (i < at || i >= at + length) tl_vec_push(&r->trial, r->best->items[i]);
    }
    if (attempt(r)) {
      changed = true;
    } else {
      at += length > 1 ? length / 2 : 1;
    }
  }
  return changed;
}

static bool clear_runs(reducer *r, size_t length) {
  bool changed = false;
  for (size_t at = 0; at < r->best->len && r->tries < r->budget; at += length) {
    bool any = false;
    copy_list(&r->trial, r->best);
    for (size_t i = at; i < at + length && i < r->trial.len; i++) {
      any = any || r->trial.items[i] != 0;
      r->trial.items[i] = 0;
    }
    if (any && attempt(r)) changed = true;
  }
  return changed;
}

static bool lower(reducer *r) {
  bool changed = false;
  for (size_t at = 0; at < r->best->len && r->tries < r->budget; at++) {
    for (uint32_t cut = r->best->items[at] / 2 + 1; at < r->best->len && cut > 0 && r->best->items[at] > 0;) {
      if (cut > r->best->items[at]) cut = r->best->items[at];
      copy_list(&r->trial, r->best);
      r->trial.items[at] -= cut;
      if (attempt(r)) {
        changed = true;
      } else {
        cut /= 2;
      }
    }
  }
  return changed;
}

int tl_rspec_reduce(tl_rspec_list *choices, tl_rspec_still_fails *still_fails, void *user, int budget) {
  reducer r = {.best = choices, .still_fails = still_fails, .user = user, .budget = budget};
  for (bool changed = true; changed && r.tries < budget;) {
    changed = false;
    for (size_t length = choices->len / 2; length > 0; length /= 2) {
      changed = clear_runs(&r, length) || changed;
      changed = remove_runs(&r, length) || changed;
    }
    changed = lower(&r) || changed;
  }
  tl_vec_fini(&r.trial);
  return r.tries;
}
