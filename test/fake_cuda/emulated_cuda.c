// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulated driver as a library in the place of libcuda.so.1 (TL_CUDA_DRIVER=libemulated_cuda.so), for programs that
// open the driver themselves. Its GPU 0 checks what kernels do as TL_EMULATED_CHECKS says ("all" without it), and has
// the compute capability of TL_EMULATED_CAPABILITY (90).
#include <stdio.h>
#include <stdlib.h>

#include "emulator/sanitize/findings.h"
#include "harness/device/emulated_internal.h"

static void __attribute__((constructor)) add_gpu(void) {
  const char *checks = getenv("TL_EMULATED_CHECKS"), *capability = getenv("TL_EMULATED_CAPABILITY");
  tl_emulated_gpu gpu = {.compute_capability = capability ? atoi(capability) : 0};
  tl_str unknown;
  int ordinal = -1;
  tl_cu_context context;
  bool is_known = tl_emu_sanitize_parse(tl_str_from(checks ? checks : "all"), &gpu.emu.checks, &unknown);
  tl_status status = is_known ? tl_emulated_gpu_add(&gpu, &ordinal) : TL_OK;
  if (!is_known || status || tl_emulated_primary_ctx_retain(&context, ordinal))  // retained: it never goes
    fprintf(stderr, "emulated_cuda: no GPU\n");
  tl_status_free(status);
}

// Each function of the table under its exported symbol: a jump, so that the parameters need no names.
#define TL_CUDA_FN(field, symbol, parameters) \
  __asm__(".text\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol ": jmp tl_emulated_" #field "\n");
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
