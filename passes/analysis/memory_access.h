// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What passes ask about accesses to buffers: dims, strides and alignment, the boxes that copies move, and how wide a
// vector one thread may move at a time.
#ifndef TL_PASSES_MEMORY_ACCESS_H
#define TL_PASSES_MEMORY_ACCESS_H

#include "ir/index/affine.h"
#include "ir/ir.h"

// Bits of a check attribute, per buffer dim.
enum { TL_CHECK_LOWER = 1, TL_CHECK_UPPER = 2 };

// ---- buffers
// Value of dim `dim` (elements) of a tensor or view; NULL when the dim stands in the type only.
tl_value *tl_buffer_dim_value(const tl_value *buffer, int32_t dim);
// Known divisor of a dim; at least 1.
int64_t tl_buffer_dim_divisor(const tl_value *buffer, int32_t dim);
// Known divisor of the stride (elements) of a dim. Shared tiles count their pitch.
int64_t tl_buffer_stride_divisor(const tl_value *buffer, int32_t dim);
// Whether neighbours along the last dim are neighbours in memory.
bool tl_buffer_is_row_contiguous(const tl_value *buffer);
// Alignment of element 0 in bytes.
int64_t tl_buffer_align(const tl_value *buffer);
// Value of the stride (elements) of a dim where an operand or a product of dims gives one; NULL for a shared tile.
bool tl_buffer_is_global(const tl_value *buffer);
bool tl_buffer_is_shared(const tl_value *buffer);
// The user's name of a buffer ("tile" without one). Borrowed from the module.
const char *tl_buffer_name(const tl_value *buffer);

// ---- boxes: one side of a copy, tile_load or tile_store
typedef struct tl_box {
  tl_value *buffer;
  tl_op *op;
  int group_offsets;  // operand groups of `op`
  int group_limits;
  tl_attr_key check_key;
  int32_t tile_rank;
  int32_t buffer_rank;
  int64_t extents[TL_MAX_RANK];   // per tile dim
  int32_t dims[TL_MAX_RANK];      // per tile dim: the buffer dim it walks
  int64_t steps[TL_MAX_RANK];     // per tile dim
  int32_t tile_dim[TL_MAX_RANK];  // per buffer dim: the tile dim that walks it, or -1
} tl_box;

// The source box of a COPY or TILE_LOAD, the destination box of a COPY or TILE_STORE.
tl_box tl_box_source(tl_op *op);
tl_box tl_box_destination(tl_op *op);
tl_value *tl_box_offset(const tl_box *box, int32_t dim);
// The explicit limit of a buffer dim; NULL when it is the buffer's own dim.
tl_value *tl_box_limit(const tl_box *box, int32_t dim);
// Check bits of a buffer dim; both when the op was not analysed yet.
int64_t tl_box_check(const tl_box *box, int32_t dim);
// Offsets that the tile adds along a buffer dim: from `*out_lo` to `*out_hi`, both inclusive.
void tl_box_span(const tl_box *box, int32_t dim, int64_t *out_lo, int64_t *out_hi);
// The tile dim that walks the contiguous buffer dim with step 1, or -1.
int32_t tl_box_contiguous_dim(const tl_box *box);
// Largest power of two v, at most `max_elems`, such that aligned groups of v elements along tl_box_contiguous_dim are
// contiguous, naturally aligned and wholly inside or outside of the bounds that are checked. At least 1. With
// `full_tile` the bounds do not count: the width for the path of full tiles that split-tails makes.
int32_t tl_box_vector(const tl_box *box, int32_t max_elems, bool full_tile);

// ---- elements inside a parallel
// How a value varies over the lanes 0 … vec - 1 of a vector along the loop index `along`, whose base is a multiple of
// vec: base + scale * lane, where `divisor` divides base (0: base is 0).
typedef struct tl_lane_form {
  bool known;
  int64_t scale;
  int64_t divisor;
} tl_lane_form;
tl_lane_form tl_lane_form_of(tl_value *value, const tl_value *along, int32_t vec);
// Check bits of dim `dim` of a LOAD, STORE or ATOMIC.
int64_t tl_element_check(const tl_op *op, int32_t dim);
// Operand groups of a LOAD, STORE, ATOMIC or WAIT_UNTIL.
tl_value *tl_element_buffer(const tl_op *op);
uint32_t tl_element_rank(const tl_op *op);
tl_value *tl_element_index(const tl_op *op, uint32_t dim);
// Widest vector (elements, a power of two, at most `max_elems`) with which the LOAD or STORE may be done for
// neighbouring iterations along the last index of `parallel`: contiguous, aligned, one predicate a vector. At least 1.
// With `full_tile` the bounds do not count where split-tails can test them for the whole tile.
int32_t tl_element_vector(const tl_op *op, const tl_op *parallel, int32_t max_elems, bool full_tile);
// Elements that one instruction adds to global memory on a target of `sm`: words, from sm_90 on up to 16 bytes of
// floats.
int32_t tl_reduction_most(tl_dtype dtype, int32_t sm);
// The same for an ATOMIC that only adds to f32, f16 or bf16 in global memory; 1 for any other.
int32_t tl_reduction_vector(const tl_op *op, const tl_op *parallel, int32_t max_elems);
// Why a vector of `vec` elements is too wide for the access, within its bounds as they are checked; NULL: it is not.
const char *tl_element_vector_obstacle(const tl_op *op, const tl_op *parallel, int32_t vec);
// The same for a LOAD whose element `repeat` neighbouring iterations share, as `x[i, j // 2]` with two values a byte:
// `vec` elements serve vec * repeat iterations, at most `max_iterations`. A repeat of 1: the load is not of that kind.
typedef struct tl_packed_load {
  int32_t vec, repeat;
} tl_packed_load;
tl_packed_load tl_element_packed(const tl_op *op, const tl_op *parallel, int32_t max_iterations);
// The same for a LOAD whose neighbours lie side by side and begin between two multiples of a vector, as `x[i, j + 3]`:
// a vector of `vec` elements comes out of two aligned ones, from `shift` elements behind the first one's start on. Only
// where it costs fewer accesses than vectors that are as narrow as the place. A shift of 0: the load is not of that
// kind.
typedef struct tl_shifted_load {
  int32_t vec, shift;
} tl_shifted_load;
tl_shifted_load tl_element_shifted(const tl_op *op, const tl_op *parallel, int32_t max_elems);
// Whether neighbouring iterations along the last index of `parallel` access one and the same element.
bool tl_element_is_uniform(const tl_op *op, const tl_op *parallel);
// Whether the index is a sum of loop indices of `parallel` and values from outside of it, so that its bounds can be
// tested for all iterations at once.
bool tl_index_is_affine_in(tl_value *index, const tl_op *parallel);

// Greatest common divisor of magnitudes; gcd(0, x) = |x|.
int64_t tl_common_divisor(int64_t a, int64_t b);
// INTS attribute as an array of `*out_len` items; NULL when absent.
const int64_t *tl_op_ints(const tl_op *op, tl_attr_key key, int32_t *out_len);

#endif
