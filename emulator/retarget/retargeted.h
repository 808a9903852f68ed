// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What becomes of a device module for the host. Private to the emulator.
#ifndef TL_EMULATOR_RETARGETED_H
#define TL_EMULATOR_RETARGETED_H

#include "emulator/machine/machine.h"

typedef struct tl_emu_retargeted {
  void *module;        // LLVMModuleRef in a context of its own
  tl_emu_site *sites;  // Owned, with their texts.
  size_t num_sites;
  size_t static_shared_bytes;
  size_t shared_bytes;    // static and dynamic
  size_t dynamic_offset;  // where the dynamic part starts
  size_t shared_align;
  uint32_t shared_granule;  // divides size and address of every access to shared memory
  uint32_t global_granule;
  uint32_t entry_registers;  // of a thread; 0: not known to ptxas
  bool has_narrow;           // some atomics or fences have scope .cta or .cluster
  bool follows_undefined;    // shared memory may hold content that nobody wrote
} tl_emu_retargeted;
// Rewrites the device module for the host. The function `tl_emu_entry(ptr params)` runs the kernel for one thread.
// With `checks` plain accesses call tl_emu_touch_plain first.
TL_MUST_USE tl_status tl_emu_retarget(const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                                      uint32_t checks, tl_emu_retargeted *out);
// The same of an LLVMModuleRef in a context of its own; both are the callee's from here on.
TL_MUST_USE tl_status tl_emu_retarget_module(void *module, const tl_manifest_kernel *manifest, uint32_t checks,
                                             tl_emu_retargeted *out);
void tl_emu_retargeted_fini(tl_emu_retargeted *retargeted);

#endif
