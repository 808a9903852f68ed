// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many registers a thread needs, read off the PTX that LLVM wrote, and what is asked of ptxas about them.
#ifndef TL_LLVM_BACKEND_REGISTERS_H
#define TL_LLVM_BACKEND_REGISTERS_H

#include "support/strbuf.h"

// 32-bit registers that a thread needs for the values of the function `body` (PTX, from its "{" line to its "}" line)
// that live at once in the order in which the instructions stand; predicates and parameters are not counted. 0:
// unknown, because the function is too large or has a branch of a kind that is not followed.
int32_t tl_ptx_live_registers(tl_str body);

// The same with arithmetic and loads from shared memory where what they define is needed first.
int32_t tl_ptx_live_registers_by_need(tl_str body);

// Appends the PTX with .minnctapersm lowered where a thread's values need more registers than that many blocks leave
// it: a limit below makes ptxas spill (PTX ISA, "Performance-Tuning Directives: .minnctapersm"). Without it where they
// fit in the order of need alone: told how many it may take ptxas takes all of them to load ahead, and left to itself
// few.
void tl_ptx_fit_blocks(tl_str ptx, tl_strbuf *out);

#endif
