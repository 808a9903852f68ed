// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles loop nests of float64 / int64 arithmetic for the harness' references, so that harness needs no LLVM header.
#ifndef TL_LLVM_BACKEND_REFERENCE_JIT_H
#define TL_LLVM_BACKEND_REFERENCE_JIT_H

#include <stdbool.h>

#include "support/status.h"
#include "support/strview.h"

// Compiles LLVM IR text with a function `void run(ptr buffers, ptr ints)`; see harness/reference/reference.c, which
// writes the text. The function is called as fn(buffers, ints). What runs for a short time only is not optimised, which
// takes most of the time of a small check; results are the same bits. Owned by `*out_handle` (free with
// tl_reference_jit_destroy).
typedef void tl_reference_fn(void **buffers, const long long *ints);
TL_MUST_USE tl_status tl_reference_jit_compile(tl_str llvm_ir, bool is_short, tl_reference_fn **out_fn,
                                               void **out_handle);
void tl_reference_jit_destroy(void *handle);

#endif
