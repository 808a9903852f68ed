// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulator as a CUDA driver: the functions that the runtime calls, over fibers and host memory. What launches by
// the driver (libtl, generated C) runs here as it is, tensor maps, chains and graphs included. Streams run in order of
// the calls: a launch is over when it returns. Failures are TL_CU_ERROR_STATUS and a code, and the driver's text for
// them is the message of the calling thread's last failure.
#ifndef TL_HARNESS_EMULATED_DRIVER_H
#define TL_HARNESS_EMULATED_DRIVER_H

#include "emulator/machine/emulator.h"
#include "runtime/cuda_driver.h"

typedef struct tl_emulated_gpu {
  tl_emu_options emu;      // `findings` may be NULL: the text of a failure tells them all
  int compute_capability;  // major * 10 + minor: what it takes for its own; 0: 90
  int num_sms;             // 0: 3, so that blocks of persistent kernels have several tiles
  // Called behind each kernel that ended well, with its parameters: a test's place to spoil something. Or NULL.
  void (*ran)(const tl_manifest_kernel *kernel, void *const *params);
} tl_emulated_gpu;

// Adds a GPU; it is gone when its primary context has been released as often as it was retained. LIMIT when there are
// too many.
TL_MUST_USE tl_status tl_emulated_gpu_add(const tl_emulated_gpu *gpu, int *out_ordinal);
// Static.
const tl_cuda_driver *tl_emulated_driver(void);

#endif
