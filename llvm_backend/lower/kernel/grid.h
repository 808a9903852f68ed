// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a user's grid maps to the hardware's three dimensions. Lowering and manifest share this decision.
//
// Up to three dimensions map to x, y, z in order as long as the second and third provably have at most 65535 blocks
// (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"). Anything else, and every grid with a
// `panel`, folds into x: the first dimension varies fastest. The tiles of a persistent kernel are counted likewise, and
// its blocks lie in x.
#ifndef TL_LLVM_BACKEND_GRID_H
#define TL_LLVM_BACKEND_GRID_H

#include "ir/ir.h"

#define TL_GRID_MAX_X 2147483647
#define TL_GRID_MAX_YZ 65535
#define TL_GRID_MAX_TILES (INT64_C(1) << 62)

// Whether all dims of the GRID op fold into x.
bool tl_grid_folds(const tl_op *grid);

#endif
