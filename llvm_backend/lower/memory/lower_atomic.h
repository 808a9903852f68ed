// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One atomic update of one element. Private to the lowering.
#ifndef TL_LLVM_BACKEND_LOWER_ATOMIC_H
#define TL_LLVM_BACKEND_LOWER_ATOMIC_H

#include "llvm_backend/lower/state/lower.h"

typedef struct tl_atomic_update {
  const tl_buffer *buffer;
  LLVMValueRef pointer;  // of the element
  LLVMAtomicRMWBinOp kind;
  bool is_bits;          // an exchange: `value` and `compare` are integers of the element's width
  LLVMValueRef value;    // of a pair of 16-bit floats at an aligned word: a vector
  LLVMValueRef compare;  // of a compare-and-swap; else NULL
} tl_atomic_update;

// LLVM's number of the scope that the buffer's memory is shared in.
unsigned tl_lower_sync_scope(const tl_lower *l, const tl_buffer *buffer);
// A relaxed compare-and-swap of the element's bits (32 or 64). Returns what it held.
LLVMValueRef tl_lower_compare_exchange(tl_lower *l, const tl_atomic_update *update, LLVMValueRef expected,
                                       LLVMValueRef desired);
// A relaxed update as a loop around a compare-and-swap (lower_atomic_loop.c). Returns the previous value, as an integer
// where `is_bits`. The current block ends; the builder goes on in another.
LLVMValueRef tl_lower_atomic_loop(tl_lower *l, const tl_atomic_update *update);

#endif
