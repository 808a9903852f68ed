// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole road in one call: spec text and bindings to a backend that can print, emit and emulate.
// Used by every tool and by libtl; the tools add only argument handling.
#ifndef TL_HARNESS_COMPILE_H
#define TL_HARNESS_COMPILE_H

#include "frontend/chain/chain.h"
#include "frontend/elaborate/instantiate.h"
#include "llvm_backend/output/backend.h"
#include "passes/manager/passes.h"

// Looks at, or changes, the scheduled module between the passes and the backend.
typedef struct tl_compile_hook {
  void (*run)(tl_module *module, void *user);  // NULL: none
  void *user;
} tl_compile_hook;

typedef struct tl_compile_request {
  const tl_kernel_spec *kernel;  // Borrowed. Or a chain
  tl_bindings bindings;
  const tl_target *target;  // NULL: the kernel's (a chain's own, else that of its steps), else sm_80
  tl_pass_options passes;
  tl_backend_options backend;
  tl_compile_hook scheduled;
  // A set of tl_requirement: statements that did not get it are errors, with the remarks about them as notes. For
  // TL_REQUIRE_NO_SPILL ptxas must be there (tl_ptxas_find of the two fields below).
  unsigned required;
  const char *ptxas_path;
  double ptxas_timeout_s;
} tl_compile_request;

// A request for `kernel` with every option at its default: all passes, no limit, -O3.
tl_compile_request tl_compile_request_default(const tl_kernel_spec *kernel);

typedef struct tl_compiled tl_compiled;
struct tl_compiled {
  tl_module *tile;      // Owned. After the passes (scheduled level), or where stop_after left it. Of a chain: NULL
  tl_backend *backend;  // Owned. NULL when stopped before. Of a chain: of all its kernels
  const tl_target *target;
  const tl_sources *sources;  // Borrowed. What it was made from
  // Owned. A chain's kernels, each compiled once for all steps with the same params; of a kernel its aligned version,
  // if it has one (docs/decisions/0030-two-versions.md).
  tl_compiled *parts;
  uint32_t num_parts;
  tl_backend *alone;  // Owned. Of a kernel with a version: what `backend` is of both. NULL: `backend`
  char *defines;      // Owned. After an internal error: the options for a tool that give it the same kernel and params
};

// DIAGNOSTICS when `diags` got errors. With stop_after, passes or pass_limit the backend is not made. After a failure
// `out` still holds the module as the failing stage left it (NULL when there was none); tl_compiled_fini it in any
// case.
TL_MUST_USE tl_status tl_compile(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags,
                                 tl_compiled *out);
void tl_compiled_fini(tl_compiled *compiled);
// The tile IR as it was left; of a chain that of each of its kernels.
void tl_compiled_print_tile(const tl_compiled *compiled, tl_strbuf *out);

#endif
