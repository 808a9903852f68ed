// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rebuilding ops that hold regions: more carried values, more results, fewer of both.
#ifndef TL_PASSES_LOOP_REWRITE_H
#define TL_PASSES_LOOP_REWRITE_H

#include "ir/ir.h"

// Copies every attribute of `from` to `to`.
void tl_op_copy_attrs(tl_module *module, tl_op *to, const tl_op *from);
// Moves all ops of `from` to the end of `to`.
void tl_block_move_ops(tl_block *from, tl_block *to);
// The region's terminator; makes an empty yield at its end when there is none.
tl_op *tl_region_yield(tl_module *module, tl_block *block, tl_loc loc);

// Replaces a FOR by one with `count` more carried values (`inits`) at the end; region arguments and results follow.
// The yield keeps its operands: the caller appends the next values. Old results are replaced. Returns the new op.
tl_op *tl_for_add_carried(tl_module *module, tl_op *loop, tl_value *const *inits, uint32_t count);
// Replaces an IF or PARALLEL by one with `count` more results at the end; the yields are left to the caller.
tl_op *tl_op_add_results(tl_module *module, tl_op *op, const tl_type *const *types, uint32_t count);
// Appends operands to a yield.
void tl_yield_append(tl_module *module, tl_op *yield, tl_value *const *values, uint32_t count);

// Whether an op may go once nothing uses its results.
bool tl_op_is_removable(const tl_op *op);
// dead_carried.c: lets whoever reads what a loop carries read its first value, where that serves nothing but itself.
// Then tl_prune_unused finds it.
void tl_break_dead_cycles(tl_block *block);
// Removes results (and carried values, yields) of FOR, IF and PARALLEL that nothing uses, and pure ops without uses, in
// `block` and below, until nothing changes.
void tl_prune_unused(tl_module *module, tl_block *block);

#endif
