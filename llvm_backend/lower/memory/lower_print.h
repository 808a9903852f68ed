// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_LLVM_BACKEND_LOWER_PRINT_H
#define TL_LLVM_BACKEND_LOWER_PRINT_H

#include "llvm_backend/lower/state/lower.h"

// Text in global memory, as a generic pointer.
LLVMValueRef tl_lower_text(tl_lower *l, tl_str text);

#endif
