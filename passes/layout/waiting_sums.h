// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files about sums that wait for the end of their loop share (waiting_sums.c says what that is).
#ifndef TL_PASSES_WAITING_SUMS_H
#define TL_PASSES_WAITING_SUMS_H

#include "ir/reduction.h"
#include "passes/layout/infer_layouts.h"

// One tile that a loop carries, and which values of the loop would be parts, one a thread, if its sum waited.
typedef struct tl_waiting_sum {
  tl_pass_context *context;
  tl_op *loop;
  uint32_t index;            // of the carried tile
  TL_VEC(tl_value *) parts;  // tiles that would be parts
  TL_VEC(uint8_t) terms;     // by number of the value: tl_term + 1 of what was looked at
  uint32_t num_sums;         // reductions of which each thread would keep its part
  bool crosses_warps;        // warps share such a sum
  bool adds_over_threads;    // a sum over threads goes into it, whether or not it can wait
  tl_layout whole, part;     // of a sum, and of its parts, with a dim for them behind the others
  const char *reason;        // why it cannot wait; NULL: it can
  tl_loc reason_loc;
  TL_VEC(uint32_t) reached;  // by number of the value: the search that came by
  uint32_t search;
} tl_waiting_sum;

// What an element of a parallel is of the parts that go into it.
typedef enum tl_term {
  TL_TERM_OTHER,  // none of them goes into it
  TL_TERM_PART,   // a sum of them, each times what is no part
  TL_TERM_MIXED   // something else
} tl_term;

// Looks at carried tile `index` of the loop; sets `reason` unless its sum can wait. The lists are the caller's to free.
void tl_find_waiting_sum(tl_waiting_sum *self);
// Whether the tile was found to be one of the parts.
bool tl_is_part(const tl_waiting_sum *self, const tl_value *value);
// What `element` of the body of a parallel is.
tl_term tl_term_of(tl_waiting_sum *self, const tl_op *parallel, tl_value *element);
// Notes that a tile is parts.
void tl_add_part(tl_waiting_sum *self, tl_value *value);
// Makes parts of what would be, and combines them behind the loop.
void tl_let_sum_wait(tl_waiting_sum *self);

#endif
