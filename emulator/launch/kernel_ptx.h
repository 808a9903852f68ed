// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of PTX text.
#ifndef TL_EMULATOR_KERNEL_PTX_H
#define TL_EMULATOR_KERNEL_PTX_H

#include "emulator/machine/emulator.h"
#include "emulator/ptx/translate.h"

// The kernel `manifest->name` of a module that was read and checked, for launches with `checks`. `manifest`: as many
// params as the kernel has; block_threads, cluster and dynamic_shared_bytes are those of the launch. Variables of the
// module live as long as the kernel. DIAGNOSTICS (in `diags`) when something in it cannot be run.
TL_MUST_USE tl_status tl_emu_kernel_create_ptx(const tl_ptx_module *module, const tl_manifest_kernel *manifest,
                                               const tl_emu_ptx_options *options, uint32_t checks,
                                               const tl_debug_info *debug, tl_diags *diags, tl_emu_kernel **out);

#endif
