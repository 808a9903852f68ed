// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts as data: which thread and register holds which element of a tile, and where an element of a shared tile lies.
#ifndef TL_IR_LAYOUT_H
#define TL_IR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/strbuf.h"

#define TL_MAX_RANK 8
#define TL_LAYOUT_MAX_MODES 24
#define TL_DIM_NONE (-1)

typedef enum tl_layout_axis { TL_AXIS_REGISTER, TL_AXIS_LANE, TL_AXIS_WARP, TL_AXIS_COUNT } tl_layout_axis;

// One factor of an axis. The axis' index is a mixed radix number over its modes, first mode fastest; digit i of a mode
// moves the element by i * stride along `dim`, or nowhere when dim is TL_DIM_NONE (replication).
typedef struct tl_layout_mode {
  tl_layout_axis axis;
  int32_t size;
  int32_t dim;
  int32_t stride;
} tl_layout_mode;

// A distributed layout of a tile of `shape`: coordinate d of an element = sum of digit * stride over the modes of dim
// d. Per dim the strides form an exact mixed radix over the padded box: every padded coordinate occurs (exactly once
// apart from replication). Coordinates at or past shape[d] are padding: never observable. The lane modes multiply to
// 32, the warp modes to the block's number of warps.
typedef struct tl_layout {
  int32_t rank;
  int32_t shape[TL_MAX_RANK];  // elements, unpadded
  int32_t num_modes;
  tl_layout_mode modes[TL_LAYOUT_MAX_MODES];
} tl_layout;

// A shared tile: row-major over its dims with a pitch (bytes) between rows of the last dim, and an XOR swizzle of
// 16-byte chunks inside a row: chunk ^= (row >> swizzle_shift) & swizzle_mask, where row is the linear index over all
// but the last dim. With panels the rows are cut into pieces of panel_bytes, and all rows of one panel lie before those
// of the next: what the tensor memory accelerator writes and wgmma reads, whose swizzles span 128 bytes at most.
typedef struct tl_shared_layout {
  int32_t pitch_bytes;    // >= the last dim's (or a panel's) bytes; a multiple of 16 when swizzled
  int32_t swizzle_mask;   // 0: no swizzle; else 1, 3 or 7
  int32_t swizzle_shift;  // rows that share one XOR value, as a power of two
  int32_t panel_bytes;    // 0: whole rows; else a power of two, of whole groups of swizzle_mask + 1 chunks
} tl_shared_layout;

enum { TL_SHARED_PANEL_ROWS = 8 };  // rows after which the swizzle of a panel repeats
// The layout of a tile with rows of `row_bytes` that the copy engine writes and wgmma reads: panels as wide as the
// widest swizzle (128, 64 or 32 bytes) that divides the row. A pitch of 0: none does.
tl_shared_layout tl_shared_layout_panels(int64_t row_bytes);

// Registers (elements a thread holds), and the sizes of the other axes.
int32_t tl_layout_axis_size(const tl_layout *layout, tl_layout_axis axis);
int32_t tl_layout_num_registers(const tl_layout *layout);
// Element that register `reg` of thread (lane, warp) holds. Returns false for padding; coordinates are set either way.
bool tl_layout_coord(const tl_layout *layout, int32_t reg, int32_t lane, int32_t warp, int32_t *out_coord);
// Only the part of the coordinate that `index` on `axis` contributes.
void tl_layout_axis_coord(const tl_layout *layout, tl_layout_axis axis, int32_t index, int32_t *out_coord);
// Some (register, lane, warp) that holds `coord` (the one with all replication digits 0). False outside the padded box.
bool tl_layout_find(const tl_layout *layout, const int32_t *coord, int32_t *out_reg, int32_t *out_lane,
                    int32_t *out_warp);
// Padded size along a dim.
int32_t tl_layout_padded(const tl_layout *layout, int32_t dim);
bool tl_layout_has_padding(const tl_layout *layout);
// Whether different threads hold the same element.
bool tl_layout_is_replicated(const tl_layout *layout);
bool tl_layout_equal(const tl_layout *a, const tl_layout *b);
// Same element on the same thread in the same register order, though the modes may be factored differently.
bool tl_layout_equivalent(const tl_layout *a, const tl_layout *b);
// NULL when well-formed for `threads` threads; else what is wrong (static text).
const char *tl_layout_verify(const tl_layout *layout, int32_t threads);
// Contiguous elements along `dim` in consecutive registers from register 0 (the vector width the layout allows). A
// vector may reach into the padding when it does not divide shape[dim].
int32_t tl_layout_vector(const tl_layout *layout, int32_t dim);

// The layout of a tile indexed by a subset / permutation of this one's dims: result dim i = dim dims[i]; dropped dims
// become replication (lanes, warps) or disappear (registers).
tl_layout tl_layout_project(const tl_layout *layout, const int32_t *dims, int32_t rank);
// For a projected layout: which register of the projection holds what register `reg` of the full layout looks at.
int32_t tl_layout_projected_register(const tl_layout *full, const tl_layout *projected, const int32_t *dims,
                                     int32_t reg);

// A blocked layout: each thread holds `vec` contiguous elements of dim `order[0]`, threads run along order[0] first,
// then order[1], …; leftover elements become further registers; leftover threads replicate. `threads` a multiple of 32.
tl_layout tl_layout_blocked(const int32_t *shape, int32_t rank, const int32_t *order, int32_t vec, int32_t threads);
// The same with at most `lanes` (a power of two) lanes of a warp along order[0]: the others go down order[1], ….
tl_layout tl_layout_blocked_narrow(const int32_t *shape, int32_t rank, const int32_t *order, int32_t vec, int32_t lanes,
                                   int32_t threads);
// Register tile for FMA gemms: threads in a 2-D grid, each with reg_m by reg_n elements interleaved in groups of vec_n.
tl_layout tl_layout_fma_acc(const int32_t *shape, int32_t threads);

// How a warp's part of a tile falls into 8 by 8 matrices of which each lane holds two neighbours of a row: what
// stmatrix takes, up to four at a time. The others of the four are one step further along each unit.
typedef struct tl_matrix_unit {
  int32_t dim, stride;
} tl_matrix_unit;
typedef struct tl_matrix_form {
  int32_t row_dim, column_dim;  // of the tile
  int32_t num_units;
  tl_matrix_unit units[2];
} tl_matrix_form;
// False: the layout has another form, padding, or elements that several threads hold.
bool tl_layout_matrix_form(const tl_layout *layout, tl_matrix_form *out);
// Whether the register with this coordinate is the first one of an stmatrix.
bool tl_matrix_begins(const tl_matrix_form *form, const int32_t *coord);
// Which lane gives the address of which row of the matrices, without the registers' part; `transposed`: of a column.
tl_layout tl_matrix_rows(const tl_layout *layout, const tl_matrix_form *form, bool transposed);

// The known part of an element's place, where another part is known at run time only: `row` and `bytes` join the
// unknown row and column bytes before the swizzle and the division into panels, `offset` moves the address after them.
// `row` joins the row for its swizzle only.
typedef struct tl_shared_split {
  int64_t row, bytes;  // in [0, period)
  int64_t offset;
} tl_shared_split;
// `rows` of the tile in all; `row` and `column_bytes` may be negative.
tl_shared_split tl_shared_layout_split(const tl_shared_layout *layout, int64_t rows, int64_t row, int64_t column_bytes);

// Byte offset of an element of a shared tile of `shape` and element size `bits`.
int64_t tl_shared_layout_offset(const tl_shared_layout *layout, const int32_t *shape, int32_t rank, int32_t bits,
                                const int32_t *coord);
int64_t tl_shared_layout_bytes(const tl_shared_layout *layout, const int32_t *shape, int32_t rank, int32_t bits);

// Text: "#layout<128x128: r2.d1s1 l4.d1s2 l8.d0s1 r2.d0s8 … >" and "#shared<pitch 128, panel 128, xor 7 shift 0>".
void tl_layout_print(const tl_layout *layout, tl_strbuf *out);
bool tl_layout_parse(tl_str text, tl_layout *out_layout);
void tl_shared_layout_print(const tl_shared_layout *layout, tl_strbuf *out);
bool tl_shared_layout_parse(tl_str text, tl_shared_layout *out_layout);

#endif
