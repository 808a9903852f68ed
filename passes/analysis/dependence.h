// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dependence analysis behind `pipeline`: which asynchronous writes of a loop's shared tiles may be issued
// iterations ahead without changing what the loop computes. It looks at effects and control flow only, never at kinds
// of consumers.
#ifndef TL_PASSES_DEPENDENCE_H
#define TL_PASSES_DEPENDENCE_H

#include "ir/ir.h"
#include "passes/analysis/effects.h"

// One write of a shared tile in a loop that asynchronous copies fill: such a copy, a parallel that only gathers, or
// (by_threads) what threads write there beside them.
typedef struct tl_producer {
  tl_op *op;
  tl_value *tile;       // the alloc's value
  const char *blocked;  // why it must stay in order; NULL when it may be issued ahead. Static.
  tl_loc blocked_at;    // the op to blame, when there is one
  bool by_threads;
  bool after_barrier;  // it writes over what threads wrote in the same iteration
  int group;           // of tl_dependence.groups; -1 when blocked
} tl_producer;

// Producers whose tiles are first read by the same statement of the loop, or with only work in registers in between:
// they are waited for together.
typedef struct tl_producer_group {
  tl_op *first_reader;  // directly in the loop's body; of several the first
} tl_producer_group;

typedef struct tl_dependence {
  tl_op *loop;
  TL_VEC(tl_producer) producers;     // program order
  TL_VEC(tl_producer_group) groups;  // order of their first readers
} tl_dependence;

void tl_dependence_analyze(tl_op *loop, tl_dependence *out);
void tl_dependence_fini(tl_dependence *dependence);

// Whether `op` is a copy or parallel that may be made asynchronous, by cp.async or TMA, and is not yet.
bool tl_is_async_candidate(const tl_op *op);
// The ancestor of `op` (or itself) that stands directly in `block`; NULL when it is not inside.
tl_op *tl_op_in_block(tl_op *op, const tl_block *block);
// Whether `b` can run after `a` has, in one run of the innermost region that holds both.
bool tl_op_may_follow(tl_op *a, tl_op *b);

// Collects what the producers of one group need when cloned: pure ops, loads and the ifs and loops around them, inside
// the loop.
typedef TL_VEC(tl_op *) tl_op_list;
void tl_dependence_slice(const tl_dependence *dependence, int group, tl_op_list *out);
bool tl_op_list_has(const tl_op_list *list, const tl_op *op);

#endif
