// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor copy by one thread, in all its forms.
#ifndef TL_TEST_VECTORS_REC_TMA_H
#define TL_TEST_VECTORS_REC_TMA_H

#include "record.h"

enum { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32_FTZ, TF32, TF32_FTZ };  // CUtensorMapDataType

// tensormap.replace of one field of a copy of the map, before the load. `letter`: how the value is given (g: an offset
// into global memory, l, i), 0 for an immediate.
typedef struct rec_replacement {
  const char *field, *scope;  // of the fences
  bool in_shared;             // the map is changed in shared memory
  int ordinal;                // -1: the field has none
  char letter;
  uint64_t value;
  rec_map after;  // the map that this makes, but for the address
} rec_replacement;

typedef struct rec_load {
  const rec_map *map;
  const int32_t *at;
  uint32_t offset;          // into shared memory
  uint32_t mask;            // of blocks, or 0
  bool cta;                 // .shared::cta
  const uint16_t *offsets;  // im2col: of W, H, D
  const rec_replacement *replacement;
} rec_load;

uint32_t rec_element_bytes(uint32_t type);
// A tensor whose innermost extent is odd where rows may be padded, and a box whose rows fill the span of the swizzle.
rec_map rec_make_map(uint32_t type, uint32_t rank, uint32_t swizzle);
// Result: whether the expected bytes arrived. Arguments: destination, coordinates, (value of the replacement,)
// (offsets,) (mask of blocks,) whether to issue.
void rec_tma_load(const rec_load *load);
// Arguments: source, coordinates, whether to issue. reduction: NULL or one of the operations.
void rec_tma_store(const rec_map *m, const int32_t *at, uint32_t offset, const char *reduction, rec_type type);
// Arguments: coordinates, (offsets,) whether to issue. Nothing comes of it.
void rec_tma_prefetch(const rec_map *m, const int32_t *at, const uint16_t *offsets);

#endif
