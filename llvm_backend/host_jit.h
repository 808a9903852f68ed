// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one place that compiles for the CPU: host modules into callable code (emulator and float64 references).
#ifndef TL_LLVM_BACKEND_HOST_JIT_H
#define TL_LLVM_BACKEND_HOST_JIT_H

#include "support/status.h"

#include <stddef.h>

typedef struct tl_host_jit tl_host_jit;  // one process-wide compiler behind it; thread-safe
typedef struct tl_host_symbol {
  const char *name;
  void *address;
} tl_host_symbol;

// Compiles `llvm_module` (an LLVMModuleRef in a context of its own; consumed, context included) with the given LLVM pass
// pipeline and codegen level 0 to 3, links it against `symbols` and the C maths library, and keeps it until destroyed.
TL_MUST_USE tl_status tl_host_jit_create(void *llvm_module, const char *passes, int codegen_level, const tl_host_symbol *symbols,
                                         size_t num_symbols, tl_host_jit **out_jit);
void tl_host_jit_destroy(tl_host_jit *jit);
// NULL when there is no such function.
void *tl_host_jit_lookup(tl_host_jit *jit, const char *name);

#endif
