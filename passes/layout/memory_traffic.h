// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the accesses of a warp move under a layout: instructions, and the sectors of memory that they touch.
#ifndef TL_PASSES_MEMORY_TRAFFIC_H
#define TL_PASSES_MEMORY_TRAFFIC_H

#include "passes/analysis/memory_access.h"

enum { TL_SECTOR_BYTES = 32, TL_LINE_BYTES = 128 };

// Of one warp, for all of its registers; what several registers want of the same places counts once.
typedef struct tl_traffic {
  int64_t instructions;
  int64_t units;     // sectors of global memory, or lines of shared memory, that each instruction touches, summed up
  int64_t distinct;  // the same for all instructions together
  int64_t least;     // such units, were the elements that each instruction asks for side by side
} tl_traffic;

// Of the LOAD, STORE or ATOMIC `access` in `parallel`, were that given `layout`: one instruction brings `vec` elements
// for `vec * repeat` neighbouring registers. Sizes and values from memory that are not known count as some that are
// typical of what is known about them.
tl_traffic tl_element_traffic(const tl_op *access, const tl_op *parallel, const tl_layout *layout, int32_t vec,
                              int32_t repeat);
// Of one side of a copy between memory and registers of `layout`.
tl_traffic tl_box_traffic(const tl_box *box, const tl_layout *layout, int32_t vec);

#endif
