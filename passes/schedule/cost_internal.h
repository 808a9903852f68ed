// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files that cost a whole kernel share.
#ifndef TL_PASSES_COST_INTERNAL_H
#define TL_PASSES_COST_INTERNAL_H

#include "passes/schedule/cost.h"

// cost_sizes.c: iterations of a loop, and blocks of the kernel's grid; at least 0 and 1.
double tl_cost_trips(const tl_op *loop);
double tl_cost_num_blocks(const tl_op *kernel);

// cost_stream.c: clocks of a kernel without products and pipelined loops, of which a multiprocessor holds `at_once`
// blocks; `computing`: clocks of its instructions a block.
double tl_cost_stream(const tl_op *kernel, double at_once, double computing);

#endif
