// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The aligned version of a kernel: for arguments whose rows begin at multiples of 16 bytes, which the spec does not
// promise. A launcher chooses it where they do.
#ifndef TL_PASSES_ASSUME_ALIGNED_H
#define TL_PASSES_ASSUME_ALIGNED_H

#include "ir/ir.h"

// Makes the kernel of `module` (tile level, before all passes) its aligned version: base pointers of global tensors
// are multiples of 16 bytes, and so are the strides that the divisors of dynamic params can make such. A param of
// `dynamic(1)` stays as it is. False: all is promised already, or cannot be had; then nothing is changed.
bool tl_assume_aligned(tl_module *module);

// Whether the aligned version `to`, after all passes, does the same as the kernel of `from`: then it is worth nothing.
// `to` is changed for the comparison, and as before afterwards.
bool tl_is_same_version(const tl_module *from, tl_module *to);

#endif
