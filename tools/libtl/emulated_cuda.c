// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl_emulated_cuda.so: the emulator in the place of libcuda.so.1, for programs that open the driver themselves, as
// generated C does (TL_CUDA_DRIVER). It has the functions that kernels of tl-llc are launched by; libtl does the work.
#include <stdio.h>

#include "tl/runtime.h"

enum { NO_DEVICE = 100 };  // CUDA_ERROR_NO_DEVICE, of all functions where libtl has none

static int no_device(void) {
  return NO_DEVICE;
}

// Each function under its exported symbol: a jump, so that the parameters need no names.
#define TL_CUDA_FN(field, symbol, parameters)                                                                  \
  __attribute__((used, visibility("hidden"))) tl_cuda_function *tl_to_##field = (tl_cuda_function *)no_device; \
  __asm__(".text\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol ": jmp *tl_to_" #field "(%rip)\n");
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN

static const struct {
  const char *symbol;
  tl_cuda_function **place;
} functions[] = {
#define TL_CUDA_FN(field, symbol, parameters) {#symbol, &tl_to_##field},
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
};

static void __attribute__((constructor)) find_functions(void) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    tl_status status = tl_emulated_cuda(functions[i].symbol, functions[i].place);
    if (!status) continue;
    fprintf(stderr, "libtl_emulated_cuda.so: %s\n", tl_status_message(status));
    tl_status_free(status);
    return;
  }
}
