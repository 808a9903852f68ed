// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole road in one call: spec text and bindings to a backend that can print, emit and emulate.
// Used by every tool and by libtl; the tools add only argument handling.
#ifndef TL_HARNESS_COMPILE_H
#define TL_HARNESS_COMPILE_H

#include "frontend/instantiate.h"
#include "llvm_backend/backend.h"
#include "passes/passes.h"

typedef struct tl_compile_request {
  const tl_kernel_spec *kernel;  // Borrowed.
  tl_bindings bindings;
  const tl_target *target;       // NULL: the kernel's, else sm_80
  tl_pass_options passes;
  tl_backend_options backend;
} tl_compile_request;

typedef struct tl_compiled {
  tl_module *tile;       // Owned. After the passes (scheduled level), or where stop_after left it.
  tl_backend *backend;   // Owned. NULL when stopped before.
  const tl_target *target;
} tl_compiled;

// DIAGNOSTICS when `diags` got errors.
TL_MUST_USE tl_status tl_compile(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags, tl_compiled *out);
void tl_compiled_fini(tl_compiled *compiled);

#endif
