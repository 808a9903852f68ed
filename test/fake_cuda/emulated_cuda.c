// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulated driver as a library in the place of libcuda.so.1 (TL_CUDA_DRIVER=libemulated_cuda.so), for programs that
// open the driver themselves. Its GPU 0 checks what kernels do as TL_EMULATED_CHECKS says ("all" without it), and has
// the compute capability of TL_EMULATED_CAPABILITY (90). TL_EMULATED_FAULT="KERNEL N PARAM BYTE" flips a bit of that
// byte of the memory of parameter number PARAM behind the N-th launch (from 0) of the kernel; "KERNEL N hang" never
// ends it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator/sanitize/findings.h"
#include "harness/device/emulated_internal.h"

static struct {
  char kernel[64], param[16];
  long launch, byte, launches;
} fault;

static void spoil(const tl_manifest_kernel *kernel, void *const *params) {
  if (strcmp(kernel->name, fault.kernel) != 0 || fault.launches++ != fault.launch) return;
  while (strcmp(fault.param, "hang") == 0) pause();
  (*(uint8_t **)params[atoi(fault.param)])[fault.byte] ^= 1;
}

static void __attribute__((constructor)) add_gpu(void) {
  const char *checks = getenv("TL_EMULATED_CHECKS"), *capability = getenv("TL_EMULATED_CAPABILITY");
  tl_emulated_gpu gpu = {.compute_capability = capability ? atoi(capability) : 0};
  const char *wanted = getenv("TL_EMULATED_FAULT");
  if (wanted && sscanf(wanted, "%63s %ld %15s %ld", fault.kernel, &fault.launch, fault.param, &fault.byte) >= 3)
    gpu.ran = spoil;
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
