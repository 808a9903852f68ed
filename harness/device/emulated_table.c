// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/emulated_internal.h"

const tl_cuda_driver *tl_emulated_driver(void) {
  static const tl_cuda_driver driver = {
#define TL_CUDA_FN(field, symbol, parameters) .field = tl_emulated_##field,
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
  };
  return &driver;
}
