// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The index space of a random spec: logical dims D0 …, of which the last ones are tiled, and the inputs over them.
#ifndef TL_TEST_RANDOM_SHAPE_H
#define TL_TEST_RANDOM_SHAPE_H

#include "test/random/value.h"

enum { TL_RSPEC_MAX_RANK = 4, TL_RSPEC_MAX_INPUTS = 6, TL_RSPEC_MAX_CASES = 3 };

// Dim k is called D<k>; a tiled one is cut into blocks of B<k> elements. Grid index g<k>, element i<k>, reference n<k>.
typedef struct tl_rspec_shape {
  int rank, tile_rank;                                  // the last tile_rank dims are tiled
  int64_t block[TL_RSPEC_MAX_RANK];                     // 1 where not tiled
  int64_t size[TL_RSPEC_MAX_CASES][TL_RSPEC_MAX_RANK];  // per case
  int num_cases;
  bool is_dynamic[TL_RSPEC_MAX_RANK];
} tl_rspec_shape;

typedef struct tl_rspec_input {
  char name[8], tile[8];
  tl_dtype dtype;
  uint32_t mask;       // dims it has; 0: a scalar
  bool is_transposed;  // the last two dims are swapped
  bool is_strided;
  int gather;           // the dim that is read through an index tensor, or -1
  int64_t gather_rows;  // how many rows it chooses from
  double lo, hi;
  bool is_whole;
  bool has_tile;  // copied into a tile `tile`
  bool is_shared;
  tl_dtype tile_dtype;
} tl_rspec_input;

// Draws dims, writes params, grid and cases.
void tl_rspec_make_shape(tl_rspec *spec, tl_rspec_shape *shape);
bool tl_rspec_is_tiled(const tl_rspec_shape *shape, int dim);
// Draws threads and rasterisation.
void tl_rspec_make_options(tl_rspec *spec, const tl_rspec_shape *shape);
// Whether a tile of the block's dims in `mask` may lie in shared memory besides those that do already: together they
// fit every target's. True counts it.
bool tl_rspec_take_shared(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask, tl_dtype dtype);
// "D0, D1" and the like for the dims of a mask.
const char *tl_rspec_dims(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask);
// "n0 in 0:D0, n1 in 0:D1": the left side of an intermediate reference.
const char *tl_rspec_ranges(tl_rspec *spec, const tl_rspec_shape *shape);
// "n0, n1".
const char *tl_rspec_indices(tl_rspec *spec, const tl_rspec_shape *shape);
// "g0, g1 * B1 + i1": one element in a parallel; or the corner "g0, g1 * B1".
const char *tl_rspec_element(tl_rspec *spec, const tl_rspec_shape *shape, bool is_corner);
// "i, j in B1, B2" with this shape's names.
const char *tl_rspec_parallel(tl_rspec *spec, const tl_rspec_shape *shape);
// "[i1, i2]" of a full tile.
const char *tl_rspec_tile_element(tl_rspec *spec, const tl_rspec_shape *shape);
// "dtype[B1, B2]" of the tiled dims in a mask.
const char *tl_rspec_tile_dims(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask);
uint32_t tl_rspec_tile_mask(const tl_rspec_shape *shape);
// "[:, None]": a tile of some of the tiled dims beside full tiles; "" where none is needed.
const char *tl_rspec_broadcast(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask);
// "i1, i2" for the tiled dims of a mask.
const char *tl_rspec_tile_places(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask);

// Draws an input named X<number>, writes its argument and generator.
void tl_rspec_make_input(tl_rspec *spec, const tl_rspec_shape *shape, int number, tl_rspec_input *out);
// Draws a tile for the input and writes the copy into it; false (and nothing written) when it has no tiled dim.
bool tl_rspec_load_input(tl_rspec *spec, const tl_rspec_shape *shape, tl_rspec_input *input);
// The input as a value of an element of a parallel (is_tile_form false) or of a tile assignment. False when it cannot
// stand there.
bool tl_rspec_input_value(tl_rspec *spec, const tl_rspec_shape *shape, const tl_rspec_input *input, bool is_tile_form,
                          tl_rspec_value *out);
// The indices that conditions and expressions may use: grid indices, and in a parallel whole positions.
void tl_rspec_index_values(tl_rspec *spec, const tl_rspec_shape *shape, bool is_tile_form, tl_rspec_values *out);

#endif
