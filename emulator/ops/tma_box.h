// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which bytes of global memory a tensor copy moves to or from which bytes of shared memory. Pure address arithmetic:
// PTX ISA, Tensors (tiled mode, im2col mode, interleave layout, swizzling modes). Of interleaved tensors (NC/8HWC8 with
// 16 bytes, NC/16HWC16 with 32) dimension 0 is W and counts pixels of one slice of channels, whatever the type; H and D
// follow, the last but one counts slices, the last is N. A box has pixels of one slice, im2col takes no more channels
// than those (measured on an H200).
#ifndef TL_EMULATOR_TMA_BOX_H
#define TL_EMULATOR_TMA_BOX_H

#include "support/tensormap.h"

// A stretch of the box that lies together in shared and in global memory: whole elements, within 16 bytes.
typedef struct tl_emu_tma_piece {
  uintptr_t shared;
  uintptr_t global;  // 0: outside the tensor
  uint32_t bytes;
} tl_emu_tma_piece;

typedef void tl_emu_tma_visit_fn(void *user, const tl_emu_tma_piece *piece);

// One instruction's view of a map. Coordinates in elements, innermost first; im2col loads also take offsets (W, H, D).
typedef struct tl_emu_tma_box {
  const tl_tensormap_params *map;
  int32_t coords[TL_TENSORMAP_MAX_RANK];
  uint32_t offsets[TL_TENSORMAP_MAX_RANK - 2];
} tl_emu_tma_box;

// The dimension that is W, to which the first corner and the first offset of im2col belong.
uint32_t tl_emu_tma_first_spatial(const tl_tensormap_params *map);
// Bytes of the elements of the whole box, inside the tensor or not: what complete_tx counts.
uint32_t tl_emu_tma_box_bytes(const tl_tensormap_params *map);
// Bytes of shared memory that the box lies in. With a swizzle, rows shorter than its span start a span apart, but not
// of interleaved tensors (measured).
uint32_t tl_emu_tma_shared_bytes(const tl_tensormap_params *map);
// Where byte `shared` of an unswizzled box really lies.
uintptr_t tl_emu_tma_swizzle(tl_tensormap_swizzle swizzle, uintptr_t shared);
// Visits the box, whose shared memory starts at `shared`, in the order of unswizzled shared memory. Stores write whole
// chunks of 16 bytes: with `whole_chunks`, elements behind the end of dimension 0 count as inside when the tensor ends
// within their chunk (measured).
void tl_emu_tma_walk(const tl_emu_tma_box *box, uintptr_t shared, bool whole_chunks, tl_emu_tma_visit_fn *visit,
                     void *user);

#endif
