// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of align-rows share.
#ifndef TL_PASSES_ALIGN_ROWS_H
#define TL_PASSES_ALIGN_ROWS_H

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"

// ---- align_rows_places.c

// The sum without what is a multiple of `vec`, its numbers between 0 and vec - 1.
tl_affine tl_rows_rest(const tl_affine *sum, int64_t vec);
// Whether its symbols are known where the kernel begins, so that whatever reads a tile can have it.
bool tl_rows_are_known(const tl_affine *rest, const tl_op *kernel);
// The value of such a sum, in front of all that is not needed for it.
tl_value *tl_rows_build(tl_pass_context *context, tl_op *kernel, const tl_affine *rest);
// The stride of a dim of a tensor that has strides.
tl_value *tl_rows_stride(tl_builder *builder, const tl_value *tensor, int32_t d);
// Whether a tensor's rows follow each other without gaps, so that it is one row, too; and its view as one.
bool tl_rows_are_dense(const tl_value *tensor);
tl_value *tl_rows_as_one(tl_pass_context *context, tl_value *tensor);
// Whether as many blocks, divided by `divisor`, fit on a multiprocessor where the shared tile has so many elements in
// the place of its own.
bool tl_rows_have_room(tl_pass_context *context, const tl_op *kernel, const tl_value *tile, int64_t elements,
                       int32_t divisor);
// align_rows_gather.c. Brings a pipelined copy's rows from a multiple of 16 bytes on, each from its own, by cp.async.
// Why not, or NULL where it does; empty: it is no such copy.
const char *tl_rows_gather(tl_pass_context *context, tl_op *kernel, tl_op *copy);
// align_rows_flatten.c. Makes a parallel over whole rows that no vector divides one over their elements.
void tl_rows_flatten(tl_pass_context *context, tl_op *parallel);

#endif
