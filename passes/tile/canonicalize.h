// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of canonicalize share. Every function returns whether it changed something.
#ifndef TL_PASSES_CANONICALIZE_H
#define TL_PASSES_CANONICALIZE_H

#include "passes/manager/passes.h"

// Complete unrolling stops here.
enum { TL_UNROLL_MAX_TRIPS = 1024, TL_UNROLL_MAX_OPS = 20000 };
// Statements on memory, as a block runs them, of one kernel. Passes compare them in pairs.
enum { TL_MAX_STATEMENTS = 2048 };

// A simpler form of a quotient or remainder of an index by a constant; NULL when there is none.
tl_value *tl_canonicalize_quotient(tl_builder *builder, const tl_op *op);
// Decided branches, empty loops, complete unrolling and if-conversion in `block` and below.
bool tl_canonicalize_control(tl_pass_context *context, tl_block *block);
// Of these only the decided branches.
bool tl_canonicalize_decided(tl_block *block);
// Refuses loops that are to be unrolled completely and whose bounds did not become constants.
void tl_canonicalize_validate_unrolled(tl_pass_context *context, tl_op *kernel);
// Refuses a kernel of more than TL_MAX_STATEMENTS.
void tl_canonicalize_validate_statements(tl_pass_context *context, tl_op *kernel);
// The part that leaves control flow alone: folds, shares and drops pure ops.
void tl_canonicalize_pure(tl_pass_context *context, tl_block *block);

#endif
