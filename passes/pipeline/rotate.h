// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of loop rotation share.
#ifndef TL_PASSES_ROTATE_H
#define TL_PASSES_ROTATE_H

#include "passes/manager/passes.h"
#include "passes/schedule/loop_graph.h"

// How a loop is rotated: the graph's stages, an order of a step, and the values that a step hands to the next: results
// of stage 0 and arguments of the body, as they are in the iteration whose stage 1 the next step runs.
typedef struct tl_rotation {
  tl_loop_graph *graph;
  int *order;
  bool overlaps;  // some node is in stage 1; else statements only change their order
  bool in_roles;  // warps of their own fill the loop's rings
  bool turns;     // warpgroups take turns at issuing the gemms of a step
  TL_VEC(tl_value *) carried;
} tl_rotation;

// Rewrites the loop, which counts from 0 by 1 where iterations overlap, and erases it. Returns the loop of the steps.
tl_op *tl_rotate_emit(tl_pass_context *context, const tl_rotation *rotation);

// Loads operands A that the loop does not change into registers in front of it, as far as `room` registers of a thread
// hold them. Returns how many they take.
int32_t tl_promote_operands(tl_pass_context *context, const tl_loop_graph *graph, int32_t room);
// Gives iterations that need no masks a loop of their own, in front.
void tl_split_masks(tl_pass_context *context, tl_op *loop);

#endif
