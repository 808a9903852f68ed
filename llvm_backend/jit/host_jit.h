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

// Gives `llvm_module` the triple and the data layout of this CPU, for those who need sizes before tl_host_jit_create
// (which does the same). UNSUPPORTED when LLVM cannot compile for this CPU.
TL_MUST_USE tl_status tl_host_jit_prepare_module(void *llvm_module);

// Compiles `llvm_module` (an LLVMModuleRef in a context of its own; consumed, context included) with the given LLVM
// pass pipeline and codegen level 0 to 3, links it against `symbols` and the C maths library, and keeps it until
// destroyed. INTERNAL with LLVM's message when the module does not verify or names a function that nobody defines.
TL_MUST_USE tl_status tl_host_jit_create(void *llvm_module, const char *passes, int codegen_level,
                                         const tl_host_symbol *symbols, size_t num_symbols, tl_host_jit **out_jit);
void tl_host_jit_destroy(tl_host_jit *jit);
// NULL when the module defines no such external function.
void *tl_host_jit_lookup(tl_host_jit *jit, const char *name);

#endif
