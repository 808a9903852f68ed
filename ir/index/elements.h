// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which elements of a parallel may meet in memory.
#ifndef TL_IR_ELEMENTS_H
#define TL_IR_ELEMENTS_H

#include "ir/ir.h"

// Whether two different elements of the PARALLEL may access one place of a buffer, one of them by a store: false is a
// proof. Atomics may meet among themselves. A buffer counts with everything that views and stages make of its memory.
bool tl_elements_may_meet(const tl_op *parallel);
// Whether that holds for some PARALLEL inside `op`.
bool tl_has_meeting_elements(tl_op *op);

#endif
