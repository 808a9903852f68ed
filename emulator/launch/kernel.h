// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiled kernel. Private to the emulator.
#ifndef TL_EMULATOR_KERNEL_H
#define TL_EMULATOR_KERNEL_H

#include "emulator/machine/machine.h"
#include "emulator/retarget/retargeted.h"
#include "llvm_backend/jit/host_jit.h"

struct tl_emu_kernel {
  char *name;              // Owned.
  tl_host_jit *jit;        // Owned.
  tl_emu_entry_fn *entry;  // Borrowed from jit.
  tl_emu_retargeted code;  // Owned; its module is gone.
  uint32_t block_threads;
  uint32_t cluster[3];
  size_t shared_bytes, shared_align;
  tl_arena arena;
  tl_debug_info debug;        // in arena
  tl_manifest_param *params;  // in arena; none when made without checks
  uint32_t num_params;
  uint32_t checks;  // that its code was made for
  double jit_seconds;
  void **
      variables;  // Owned, as each of them (tl_emu_free): of PTX in .global and .const, by id; NULL where there is none
  uint32_t num_variables;
};

// As tl_emu_kernel_create_sanitized, of an LLVMModuleRef in a context of its own, which is disposed of in any case.
TL_MUST_USE tl_status tl_emu_kernel_create_module(void *module, const tl_manifest_kernel *manifest, uint32_t checks,
                                                  const tl_debug_info *debug, tl_emu_kernel **out);

#endif
