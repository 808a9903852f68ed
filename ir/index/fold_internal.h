// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplification of single ops, shared by the index builders and folding.
#ifndef TL_IR_FOLD_INTERNAL_H
#define TL_IR_FOLD_INTERNAL_H

#include "ir/ir.h"

// A simpler value for an op on two index values; NULL when the plain op is best.
tl_value *tl_simplify_index(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b);

#endif
