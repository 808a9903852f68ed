// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of select-copies share.
#ifndef TL_PASSES_SELECT_COPIES_H
#define TL_PASSES_SELECT_COPIES_H

#include "passes/manager/passes.h"

// The layout of a shared tile of `rows` by `row_bytes` that a matrix instruction reads in 8 rows of 16 bytes,
// `row_step` rows apart: without bank conflicts, by an XOR swizzle where one exists, else by a padded pitch.
tl_shared_layout tl_swizzle_for_rows(int64_t row_bytes, int32_t row_step);
// Whether 8 rows of 16 bytes, `row_step` apart, fall into different banks, wherever the first row and the column are.
bool tl_swizzle_is_conflict_free(const tl_shared_layout *layout, int64_t row_bytes, int32_t row_step);

// Whether the copy rounds f32 to tf32, which the engine does on the way into shared memory, and nothing else does
// asynchronously.
bool tl_copy_rounds(const tl_op *copy);
// Whether what a copy finds outside of its bounds is 0.
bool tl_copy_pads_with_zero(const tl_op *copy);

// ---- the copy engine (select_copies_tma.c)

// Whether the copy shall go by TMA: its author demands it, or leaves the way open and it is the best one.
bool tl_is_tma_wanted(tl_pass_context *context, const tl_op *copy);
// select_copies_choice.c. Why the compiler does not send the copy by TMA by its own choice, or NULL.
const char *tl_tma_choice_obstacle(tl_pass_context *context, const tl_op *copy);
// The same of a parallel that gathers from `src` to `dst`.
const char *tl_tma_gather_choice_obstacle(const tl_op *parallel, const tl_value *src, const tl_value *dst);
// Whether the copy stands in the kernel's body, is all that fills its shared tile, before anything reads
// it, and takes what the kernel never writes: then TMA may bring it outside of a pipelined loop.
bool tl_copy_fills_once(const tl_op *copy);
// select_copies_rows.c. Whether what the copy brings from behind its limit along a dim of the tensor decides nothing
// that is kept, whatever it is.
bool tl_rows_are_dropped(tl_op *copy, int32_t dim);
// Sends the copy by TMA, with its tensor map. Why it cannot go, or NULL.
const char *tl_select_tma(tl_pass_context *context, tl_op *copy);
// Bytes of the engine's swizzle that gives the layout of a tile (0: none), or -1: there is none.
int64_t tl_tma_swizzle_of(const tl_shared_layout *layout, const tl_value *tile);
// select_copies_im2col.c. Why a parallel that gathers does not go by TMA, or NULL. Shared layouts must be chosen.
const char *tl_gather_tma_obstacle(tl_pass_context *context, tl_op *parallel);
// Puts a copy by TMA, with its tensor map, in the place of such a parallel; NULL: it cannot go that way.
tl_op *tl_gather_by_tma(tl_pass_context *context, tl_op *parallel);
// The layout of a tile that TMA fills; `is_dense`: others see its bytes in order.
tl_shared_layout tl_tma_layout(const tl_value *tile, bool is_dense);
// Whether TMA writes all of the alloc's content, or reads it.
bool tl_is_tile_of_tma(tl_pass_context *context, tl_op *kernel, const tl_op *alloc);

// select_copies_report.c: says how wide the accesses of a parallel are, what keeps them narrower, and which of them
// touch more memory than they ask for.
void tl_report_accesses(tl_pass_context *context, tl_op *parallel);
// Elements that one instruction moves for accesses of one statement list that lie interleaved, as X[2 * i] and
// X[2 * i + 1], where nothing keeps the code generator from making one access of theirs. 1: it is none of those.
int32_t tl_interleaved_elements(const tl_op *access, const tl_op *parallel);

// Gives every shared alloc without a layout one that suits its readers.
void tl_select_shared_layouts(tl_pass_context *context, tl_op *kernel);
// Passes over the banks that the accesses of a tile by registers (tile loads and stores, loads of elements) need in its
// shared layout, summed over the accesses for the first registers of a warp.
int tl_bank_passes(tl_op *kernel, const tl_op *alloc, const tl_shared_layout *shared);
// How many times as long as without bank conflicts a LOAD or STORE of a parallel takes that is shared memory's; 0: it
// is not, or cannot be told.
int tl_bank_conflicts(const tl_op *access, const tl_op *parallel);
// Elements along the last loop index that neighbouring registers of a thread hold: the widest vector for the body.
int32_t tl_parallel_vector(const tl_op *parallel);
// select_copies_guards.c. Makes a gather of whose elements a condition decides a choice beside zero, where that is the
// same.
void tl_flatten_guard(tl_pass_context *context, tl_op *parallel);
// select_copies_flat.c. Copies of whole rows that no vector divides become copies of runs, where their tiles may lie
// densely.
void tl_flatten_copies(tl_pass_context *context, tl_op *kernel);
// Whether a copy between a tensor and a shared tile becomes one where the tile lies densely.
bool tl_copy_is_run(tl_op *copy);
// Chooses vector widths inside a parallel, and cp.async for one that only gathers from global to shared memory.
void tl_select_parallel(tl_pass_context *context, tl_op *parallel);
// Only the vector widths; returns the widest.
int32_t tl_select_vectors(tl_pass_context *context, tl_op *parallel);
// How the threads share a copy: `vec` elements side by side along dim `fast` of the tile belong to one thread, and move
// by loads of `src_vec` and stores of `dst_vec` elements. The three are equal where both sides are contiguous along
// `fast`; where one is permuted it moves element by element.
typedef struct tl_copy_shape {
  int32_t fast;
  int32_t vec, src_vec, dst_vec;
  bool is_permuted;
  tl_layout layout;
} tl_copy_shape;
// `is_async`: for cp.async, which moves only what is contiguous on both sides.
tl_copy_shape tl_copy_shape_of(tl_op *copy, int32_t threads, bool is_async);
// Chooses the vector width of a copy through registers again, for the layout that it has.
void tl_select_copy_width(tl_pass_context *context, tl_op *copy);
// Chooses the vector width of a tile_load or tile_store after the layout of its tile.
void tl_select_tile_access(tl_pass_context *context, tl_op *op);
// Whether `op` stands in a pipelined loop that overlaps (stages other than 1).
bool tl_is_in_pipeline(const tl_op *op);

#endif
