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

#endif
