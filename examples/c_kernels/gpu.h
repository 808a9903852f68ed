// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of the GPU without the CUDA toolkit: six functions of the driver by dlopen. A program that has the CUDA
// runtime or a framework uses its memory and streams instead.
#ifndef EXAMPLE_GPU_H
#define EXAMPLE_GPU_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long gpu_address;
typedef struct gpu_driver {
  unsigned (*init)(unsigned);
  unsigned (*retain)(void **, int);
  unsigned (*push)(void *);
  unsigned (*alloc)(gpu_address *, size_t);
  unsigned (*free)(gpu_address);
  unsigned (*upload)(gpu_address, const void *, size_t);
  unsigned (*download)(void *, gpu_address, size_t);
  unsigned (*synchronize)(void *);
} gpu_driver;

static inline void gpu_check(unsigned result, const char *call) {
  if (!result) return;
  fprintf(stderr, "%s failed: %u\n", call, result);
  exit(1);
}

// Makes the primary context of GPU 0 current. 0 when there is none.
static inline int gpu_open(gpu_driver *gpu) {
  static const char *const symbols[] = {
      "cuInit",       "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuMemAlloc_v2",
      "cuMemFree_v2", "cuMemcpyHtoD_v2",          "cuMemcpyDtoH_v2",     "cuStreamSynchronize"};
  const char *path = getenv("TL_CUDA_DRIVER");
  void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW), *context, *functions[8];
  for (int i = 0; library && i < 8; i++) functions[i] = dlsym(library, symbols[i]);
  if (!library) return 0;
  memcpy(gpu, functions, sizeof *gpu);
  if (gpu->init(0) || gpu->retain(&context, 0)) return 0;
  gpu_check(gpu->push(context), "cuCtxPushCurrent");
  return 1;
}

// Device memory with a copy of `from`, or without one (NULL).
static inline void *gpu_put(const gpu_driver *gpu, const void *from, size_t bytes) {
  gpu_address address;
  gpu_check(gpu->alloc(&address, bytes), "cuMemAlloc");
  if (from) gpu_check(gpu->upload(address, from, bytes), "cuMemcpyHtoD");
  return (void *)(size_t)address;
}

// Waits, copies back and frees.
static inline void gpu_take(const gpu_driver *gpu, void *memory, void *to, size_t bytes) {
  gpu_check(gpu->synchronize(NULL), "cuStreamSynchronize");
  if (to) gpu_check(gpu->download(to, (gpu_address)(size_t)memory, bytes), "cuMemcpyDtoH");
  gpu_check(gpu->free((gpu_address)(size_t)memory), "cuMemFree");
}

#endif
