// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel's name and parameters as the module has them.
#ifndef TL_LLVM_BACKEND_LOWER_KERNEL_H
#define TL_LLVM_BACKEND_LOWER_KERNEL_H

#include "llvm_backend/lower/state/lower.h"

// The kernel's parameters in the order of the entry.
typedef struct tl_kernel_params {
  TL_VEC(tl_op *) args;      // TENSOR and SCALAR_ARG
  TL_VEC(tl_op *) dynamics;  // DYN_PARAM
  TL_VEC(tl_op *) maps;      // TENSOR_MAP
  tl_op *queue;              // TILE_QUEUE: its counter; NULL: none
} tl_kernel_params;
void tl_lower_collect_params(tl_lower *l, tl_kernel_params *params);
void tl_kernel_params_fini(tl_kernel_params *params);

// The entry's name in PTX: letters, digits and underscores, and a '$' where the kernel's own name stands for something
// else there. In the arena.
const char *tl_kernel_entry_name(tl_arena *arena, const tl_op *kernel);

// Lowers the kernel: function, parameters and body. The function is in l->session->module.
void tl_lower_kernel(tl_lower *l);

#endif
