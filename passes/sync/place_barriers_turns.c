// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns that hold a barrier.
#include "passes/sync/place_barriers_internal.h"
#include "support/vec.h"

typedef struct turn_search {
  TL_VEC(tl_op *) turns;
  bool is_inside, holds_barrier;
} turn_search;

static void look_for_turns(tl_op *op, void *user) {
  turn_search *search = user;
  search->holds_barrier |= op->code == TL_OP_BARRIER && search->is_inside;
  if (op->code != TL_OP_TURN) return;
  search->is_inside = tl_op_int(op, TL_ATTR_TURN, TL_TURN_TAKE) == TL_TURN_TAKE;
  tl_vec_push(&search->turns, op);
}

void tl_turns_drop_broken(tl_op *kernel) {
  turn_search search = {0};
  tl_walk(kernel, look_for_turns, &search);
  for (size_t i = 0; i < search.turns.len && search.holds_barrier; i++) tl_op_erase(search.turns.items[i]);
  tl_vec_fini(&search.turns);
}
