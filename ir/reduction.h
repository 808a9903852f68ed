// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What reductions make of dtypes, dims and layouts; shared by the front end, the verifier, the passes and the backend.
#ifndef TL_IR_REDUCTION_H
#define TL_IR_REDUCTION_H

#include "ir/ir.h"

// argmax and argmin: they give values and indices.
bool tl_reduction_is_arg(int reduction);
// Whether a reduction of this kind takes elements of `dtype`: bit operations need integers, the others anything.
bool tl_reduction_takes(int reduction, tl_dtype dtype);
// The dtype that elements are converted to, that sums are formed in and that the (first) result has: 16-bit and smaller
// floats become f32, integers narrower than 32 bits and bool become i32; any and all give bool.
tl_dtype tl_reduction_dtype(int reduction, tl_dtype dtype);

// The axes of a REDUCE as a flag per dim of its source.
void tl_reduce_axes(const tl_op *reduce, bool *out_reduced);
// What is combined: all that the block holds, or only what each warp holds, or each thread.
typedef enum tl_reduce_within { TL_WITHIN_BLOCK, TL_WITHIN_WARP, TL_WITHIN_THREAD } tl_reduce_within;
tl_reduce_within tl_reduce_within_of(const tl_op *reduce);
// Dims of the result of reducing `dims`: without the reduced ones, or with size 1 in their place (`keep`); never empty:
// at least [1]. Returns the rank. `parts` > 1: what is not combined is a dim (see tl_layout_reduce).
int32_t tl_reduced_dims(const int64_t *dims, int32_t rank, const bool *reduced, bool keep, tl_reduce_within within,
                        int32_t parts, int64_t *out_dims);
// For each dim of the result (not partial): the dim of the source that it is, or -1 for a dim of size 1 put in its
// place.
int32_t tl_reduced_sources(int32_t rank, const bool *reduced, bool keep, int32_t *out_sources);

// Warps, or threads, that hold different parts along the reduced dims; 1 within the block.
int32_t tl_layout_parts(const tl_layout *layout, const bool *reduced, tl_reduce_within within);
// The layout of a reduction's result: reduced lanes and warps replicate, reduced registers disappear. Within a warp the
// warps move along a dim of tl_layout_parts elements: the first reduced one when `keep`, else a last one (the only one
// when every dim is reduced). Within a thread lanes and warps move along a dim behind all others.
tl_layout tl_layout_reduce(const tl_layout *layout, const bool *reduced, bool keep, tl_reduce_within within);
// The layout that reads the parts of a partial result so that every thread holds all parts of its elements, in
// consecutive registers; many parts are shared out among the lanes that hold the same elements. `*out_axis` is the dim
// of the parts.
tl_layout tl_layout_gather_parts(const tl_layout *layout, const bool *reduced, bool keep, int32_t *out_axis);

// ---- scans
// Whether a scan of this kind exists: sum, prod, max, min.
bool tl_reduction_scans(int reduction);
// Neighbouring elements along `axis` that one warp holds in a run, and how many runs the axis has. Without a warp that
// moves along the axis there is one run.
int32_t tl_scan_run(const tl_layout *layout, int32_t axis);
int32_t tl_scan_num_runs(const tl_layout *layout, int32_t axis);
// The layout of the totals of a partial scan (the axis has one element a run), and the one in which every thread holds
// the totals of all runs, in consecutive registers.
tl_layout tl_layout_scan_totals(const tl_layout *layout, int32_t axis);
tl_layout tl_layout_scan_gather(const tl_layout *layout, int32_t axis);

#endif
