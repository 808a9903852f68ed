// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_HARNESS_DEVICE_INTERNAL_H
#define TL_HARNESS_DEVICE_INTERNAL_H

#include "harness/device/device.h"
#include "ir/target.h"

// What a kind of device does; one table for each.
typedef struct tl_run_device_ops {
  tl_status (*close)(tl_run_device *device);
  tl_status (*alloc)(tl_run_device *device, uint64_t bytes, uint64_t align, void **out);
  tl_status (*free)(tl_run_device *device, void *pointer);
  tl_status (*write)(tl_run_device *device, void *to, const void *from, uint64_t bytes);
  tl_status (*read)(tl_run_device *device, void *to, const void *from, uint64_t bytes);
  tl_status (*load)(tl_run_kernel *kernel, const tl_compiled *compiled);
  tl_status (*load_ptx)(tl_run_kernel *kernel, const tl_run_ptx *ptx, const char *name);
  void (*unload)(tl_run_kernel *kernel);
  tl_status (*launch)(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments);
} tl_run_device_ops;

struct tl_run_device {
  const tl_run_device_ops *ops;
  bool is_gpu;
  char description[256];
  tl_device *gpu;  // Owned. NULL in the emulator.
  tl_emu_options emu;
  tl_run_via via;
  bool is_plain;  // no kernel's aligned version is launched
};

struct tl_run_kernel {
  tl_run_device *device;  // Borrowed.
  tl_arena arena;
  tl_manifest manifest;            // the kernel's own copy
  const tl_manifest_kernel *info;  // of a chain its signature
  const tl_manifest_chain *chain;  // NULL: a kernel
  tl_program *program;             // GPU. Owned.
  tl_kernel *gpu_kernel;           // GPU. Borrowed from the program. NULL: a chain
  tl_chain *gpu_chain;             // GPU. Borrowed from the program. NULL: a kernel
  bool took_version;               // Emulator: the last launch did
  tl_emu_kernel **emu_kernels;     // Emulator. Owned, as each of them: one for each kernel of the manifest
  tl_emu_kernel **emu_ptx;         // The same of PTX text, to be compared; NULL where that is not asked for
  tl_emu_kernel **emu_elements;    // The same with marks; NULL where elements of a parallel cannot meet
};

extern const tl_run_device_ops tl_run_cuda_ops, tl_run_emu_ops;

#endif
