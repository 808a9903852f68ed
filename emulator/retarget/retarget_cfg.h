// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of a function, which LLVM's C API does not tell. Private to the emulator.
#ifndef TL_EMULATOR_RETARGET_CFG_H
#define TL_EMULATOR_RETARGET_CFG_H

#include <llvm-c/Core.h>
#include <stddef.h>

// Blocks such that every cycle of the function's control flow goes through one of them. free() the array.
LLVMBasicBlockRef *tl_emu_find_loop_headers(LLVMValueRef function, size_t *out_count);

#endif
