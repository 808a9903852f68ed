// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C functions that host code generation may call and that a process cannot be relied on to export: conversions of half
// and bfloat, memory functions, and the C maths library.
#ifndef TL_LLVM_BACKEND_HOST_LIBCALLS_H
#define TL_LLVM_BACKEND_HOST_LIBCALLS_H

#include <stddef.h>
#include <stdint.h>

#include "llvm_backend/jit/host_jit.h"

// Every symbol that host modules are linked against without asking. Static.
const tl_host_symbol *tl_host_libcalls(size_t *out_count);

// Round to nearest even; a NaN stays a quiet NaN. Bits of IEEE half and of bfloat16.
uint16_t tl_host_f32_to_f16(float value);
uint16_t tl_host_f64_to_f16(double value);
uint16_t tl_host_f32_to_bf16(float value);
uint16_t tl_host_f64_to_bf16(double value);
float tl_host_f16_to_f32(uint16_t bits);
float tl_host_bf16_to_f32(uint16_t bits);

#endif
