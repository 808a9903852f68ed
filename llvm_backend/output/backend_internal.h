// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The backend object and what its files share.
#ifndef TL_LLVM_BACKEND_BACKEND_INTERNAL_H
#define TL_LLVM_BACKEND_BACKEND_INTERNAL_H

#include "llvm_backend/device/session.h"
#include "llvm_backend/lower/kernel/lower_kernel.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/output/backend.h"

struct tl_backend {
  tl_session session;
  LLVMModuleRef optimised;  // Owned. NULL until tl_backend_optimise.
  int ptx_version;
  bool keeps_blocks;  // the author says how many blocks a multiprocessor holds
  tl_arena arena;     // manifest
  tl_manifest manifest;
  tl_debug_info debug;
};

// Runs the middle end on a copy of the lowered module (once).
TL_MUST_USE tl_status tl_backend_optimise(tl_backend *backend);
// The value as an expression of the launch; a diagnostic at `op` when it has none.
TL_MUST_USE tl_status tl_backend_to_expr(tl_backend *backend, tl_lower *l, tl_op *op, const tl_value *value,
                                         const tl_mexpr **out);
// Param `index` from a TENSOR_MAP op; the kernel's tensors are there already.
TL_MUST_USE tl_status tl_backend_make_map(tl_backend *backend, tl_lower *l, tl_op *op, tl_manifest_kernel *kernel,
                                          uint32_t index);
// Fills `backend->manifest` from the kernel.
TL_MUST_USE tl_status tl_backend_make_manifest(tl_backend *backend, tl_lower *l);

#endif
