// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the runtime's files share about a loaded program.
#ifndef TL_RUNTIME_PROGRAM_H
#define TL_RUNTIME_PROGRAM_H

#include <pthread.h>

#include "runtime/device.h"
#include "support/manifest.h"
#include "support/vec.h"

// Device memory of a workspace param: one a kernel, param and stream, grown when a launch needs more.
typedef struct tl_workspace {
  uint32_t param;
  void *stream;
  void *memory;  // Owned. Device memory.
  int64_t bytes;
} tl_workspace;

struct tl_kernel {
  tl_program *program;                 // Borrowed.
  const tl_manifest_kernel *manifest;  // Borrowed from the program.
  tl_cu_function function;
  int registers;
  int local_bytes;
  int64_t resident_blocks;  // on the whole device
  pthread_mutex_t lock;     // of `workspaces`
  TL_VEC(tl_workspace) workspaces;
};

struct tl_program {
  tl_device *device;  // Borrowed.
  tl_arena arena;
  tl_manifest manifest;
  tl_cu_module module;
  tl_kernel *kernels;  // Owned. manifest.num_kernels of them.
};

#endif
