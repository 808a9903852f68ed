// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX text to a kernel of the emulator.
#ifndef TL_HARNESS_PTX_KERNEL_H
#define TL_HARNESS_PTX_KERNEL_H

#include "emulator/launch/kernel_ptx.h"

// The kernel `info->name` of PTX text, for launches with `checks`. `name` is what
// messages call the text. UNSUPPORTED holds the diagnostics of what cannot be run.
TL_MUST_USE tl_status tl_ptx_kernel_create(tl_str ptx, const char *name, const tl_manifest_kernel *info,
                                           const tl_emu_ptx_options *options, uint32_t checks,
                                           const tl_debug_info *debug, tl_emu_kernel **out);

#endif
