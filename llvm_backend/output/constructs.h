// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The border between what the emulator runs and what the code generator makes of it (constructs.def). Private to
// llvm_backend.
#ifndef TL_LLVM_BACKEND_CONSTRUCTS_H
#define TL_LLVM_BACKEND_CONSTRUCTS_H

#include "llvm_backend/device/session.h"

// Writes out what the code generator would get wrong and what the optimiser makes all the same. `module` is the
// optimised one, in the session's context.
void tl_backend_legalise(tl_session *session, LLVMModuleRef module);

// INTERNAL, with the first instruction that no row of constructs.def allows for compute capability `sm` (times ten).
TL_MUST_USE tl_status tl_backend_verify_constructs(LLVMModuleRef module, int sm);

// Whether `shl` is marked as free of signed overflow and may move the lowest bit to the place of the sign.
bool tl_backend_shifts_to_sign(LLVMValueRef shl);

// How many bytes, a power of two, are certainly read where a plain load begins: by it and by loads of elements of the
// same size that may become one with it.
unsigned tl_backend_read_alignment(LLVMValueRef load);
// Whether a load says that it is aligned to more than that: the code generator might read past it.
bool tl_backend_claims_too_much(LLVMValueRef load);

#endif
