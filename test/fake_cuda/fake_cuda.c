// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A driver library without a GPU, for tests of what is measured (TL_CUDA_DRIVER=libfake_cuda.so): every kernel takes
// 10 us of a clock of its own and computes nothing. TL_FAKE_CUDA_BLOCK_NS=N: N ns a block of the grid instead.
// TL_FAKE_CUDA_SCALE multiplies that time.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))

struct CUgraph_st {
  double seconds;
};
struct CUevent_st {
  double at;
};

static double now = 1;
static struct CUgraph_st *recording;
static char context, module, function;

// Time passes, or goes into the graph that is being recorded.
EXPORT void fake_cuda_spend(double seconds);
void fake_cuda_spend(double seconds) {
  if (recording) {
    recording->seconds += seconds;
  } else {
    now += seconds;
  }
}

// The prototypes of everything below, under the exported symbols.
#define TL_CUDA_FN(field, symbol, parameters) EXPORT tl_cu_result symbol parameters;
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN

tl_cu_result cuInit(unsigned int flags) {
  return flags ? 1 : 0;
}
tl_cu_result cuDriverGetVersion(int *version) {
  return *version = 13000, 0;
}
tl_cu_result cuGetErrorName(tl_cu_result error, const char **text) {
  return *text = error ? "CUDA_ERROR_FAKE" : "CUDA_SUCCESS", 0;
}
tl_cu_result cuGetErrorString(tl_cu_result error, const char **text) {
  return *text = error ? "a fake failure" : "no error", 0;
}
tl_cu_result cuDeviceGetCount(int *count) {
  return *count = 1, 0;
}
tl_cu_result cuDeviceGet(tl_cu_device *device, int ordinal) {
  return *device = ordinal, 0;
}
tl_cu_result cuDeviceGetName(char *name, int len, tl_cu_device device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)len);
  return 0;
}
tl_cu_result cuDeviceGetAttribute(int *value, tl_cu_device_attribute attribute, tl_cu_device device) {
  (void)device;
  switch (attribute) {
    case TL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return *value = 1980000, 0;
    case TL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return *value = 132, 0;
    case TL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return *value = 2500000, 0;
    case TL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return *value = 6400, 0;
    case TL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return *value = 1 << 20, 0;
    case TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *value = 9, 0;
    case TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return *value = 0, 0;
    case TL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return *value = 232448, 0;
    default:
      return TL_CU_ERROR_INVALID_VALUE;
  }
}
tl_cu_result cuDevicePrimaryCtxRetain(tl_cu_context *out, tl_cu_device device) {
  (void)device;
  return *out = (tl_cu_context)&context, 0;
}
tl_cu_result cuDevicePrimaryCtxRelease_v2(tl_cu_device device) {
  return (void)device, 0;
}
tl_cu_result cuCtxPushCurrent_v2(tl_cu_context pushed) {
  return (void)pushed, 0;
}
tl_cu_result cuCtxPopCurrent_v2(tl_cu_context *out) {
  return *out = (tl_cu_context)&context, 0;
}
tl_cu_result cuModuleLoadDataEx(tl_cu_module *out, const void *image, unsigned int num_options,
                                tl_cu_jit_option *options, void **values) {
  (void)image, (void)num_options, (void)options, (void)values;
  return *out = (tl_cu_module)&module, 0;
}
tl_cu_result cuModuleUnload(tl_cu_module unloaded) {
  return (void)unloaded, 0;
}
tl_cu_result cuModuleGetFunction(tl_cu_function *out, tl_cu_module from, const char *name) {
  (void)from, (void)name;
  return *out = (tl_cu_function)&function, 0;
}
tl_cu_result cuFuncGetAttribute(int *value, tl_cu_function_attribute attribute, tl_cu_function of) {
  (void)of;
  return *value = attribute == TL_CU_FUNC_ATTRIBUTE_NUM_REGS ? 40 : 0, 0;
}
tl_cu_result cuFuncSetAttribute(tl_cu_function of, tl_cu_function_attribute attribute, int value) {
  return (void)of, (void)attribute, (void)value, 0;
}
tl_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, tl_cu_function of, int threads, size_t shared) {
  (void)of, (void)threads, (void)shared;
  return *blocks = 2, 0;
}
tl_cu_result cuLaunchKernel(tl_cu_function launched, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                            unsigned int by, unsigned int bz, unsigned int shared, tl_cu_stream stream, void **params,
                            void **extra) {
  (void)launched, (void)bx, (void)by, (void)bz;
  (void)shared, (void)stream, (void)params, (void)extra;
  const char *scale = getenv("TL_FAKE_CUDA_SCALE"), *block_ns = getenv("TL_FAKE_CUDA_BLOCK_NS");
  double seconds = block_ns ? 1e-9 * strtod(block_ns, NULL) * gx * gy * gz : 1e-5;
  fake_cuda_spend(seconds * (scale ? strtod(scale, NULL) : 1));
  return 0;
}
tl_cu_result cuStreamCreate(tl_cu_stream *stream, unsigned int flags) {
  (void)flags;
  return *stream = malloc(1), 0;
}
tl_cu_result cuStreamDestroy_v2(tl_cu_stream stream) {
  return free(stream), 0;
}
tl_cu_result cuStreamSynchronize(tl_cu_stream stream) {
  (void)stream;
  // As the real driver: a stream that is being recorded cannot be waited for.
  return recording ? 900 : 0;
}
tl_cu_result cuMemAlloc_v2(tl_cu_pointer *pointer, size_t bytes) {
  if (recording) return 900;
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(memory, 0, bytes);
  return *pointer = (tl_cu_pointer)(uintptr_t)memory, 0;
}
tl_cu_result cuMemFree_v2(tl_cu_pointer pointer) {
  return free((void *)(uintptr_t)pointer), 0;
}
tl_cu_result cuMemcpyHtoD_v2(tl_cu_pointer to, const void *from, size_t bytes) {
  return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
tl_cu_result cuMemcpyDtoH_v2(void *to, tl_cu_pointer from, size_t bytes) {
  return memcpy(to, (void *)(uintptr_t)from, bytes), 0;
}
tl_cu_result cuMemcpyDtoDAsync_v2(tl_cu_pointer to, tl_cu_pointer from, size_t bytes, tl_cu_stream stream) {
  // On the default stream data are set up; elsewhere only the time is of interest: 4 TB/s, read and written.
  if (!stream) memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  fake_cuda_spend(2e-12 * (double)bytes / 4);
  return 0;
}
tl_cu_result cuMemsetD8Async(tl_cu_pointer to, unsigned char value, size_t count, tl_cu_stream stream) {
  (void)stream;
  if (!recording) memset((void *)(uintptr_t)to, value, count);
  return 0;
}
tl_cu_result cuEventCreate(tl_cu_event *event, unsigned int flags) {
  (void)flags;
  return *event = calloc(1, sizeof **event), 0;
}
tl_cu_result cuEventDestroy_v2(tl_cu_event event) {
  return free(event), 0;
}
tl_cu_result cuEventRecord(tl_cu_event event, tl_cu_stream stream) {
  (void)stream;
  return event->at = now, 0;
}
tl_cu_result cuEventSynchronize(tl_cu_event event) {
  return (void)event, 0;
}
tl_cu_result cuEventElapsedTime(float *milliseconds, tl_cu_event start, tl_cu_event end) {
  return *milliseconds = (float)(1e3 * (end->at - start->at)), 0;
}
tl_cu_result cuPointerGetAttribute(void *value, tl_cu_pointer_attribute attribute, tl_cu_pointer pointer) {
  if (!pointer) return TL_CU_ERROR_INVALID_VALUE;
  return *(int *)value = attribute == TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? TL_CU_MEMORYTYPE_DEVICE : 0, 0;
}
tl_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
  return *free_bytes = (size_t)64 << 20, *total_bytes = (size_t)128 << 20, 0;  // little, so that tests are fast
}

static void append_numbers(FILE *to, const char *name, const uint64_t *numbers, uint32_t count) {
  fprintf(to, " %s", name);
  for (uint32_t i = 0; i < count; i++) fprintf(to, " %llu", (unsigned long long)numbers[i]);
}

// The parameters, as far as the bytes go: no kernel looks at them. TL_FAKE_CUDA_MAPS=FILE: a line there for each map.
tl_cu_result cuTensorMapEncodeTiled(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank, void *address,
                                    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                    const uint32_t *element_strides, tl_cu_tensor_map_interleave interleave,
                                    tl_cu_tensor_map_swizzle swizzle, tl_cu_tensor_map_l2 l2,
                                    tl_cu_tensor_map_fill fill) {
  if (rank < 1 || rank > 5 || (uintptr_t)map % 64 || (uintptr_t)address % 16) return TL_CU_ERROR_INVALID_VALUE;
  memset(map, 0x5a, 128);
  const char *path = getenv("TL_FAKE_CUDA_MAPS");
  FILE *to = path ? fopen(path, "a") : NULL;
  if (!to) return 0;
  fprintf(to, "type %u", (unsigned)type);
  append_numbers(to, "dims", dims, rank);
  append_numbers(to, "strides", strides, rank - 1);
  for (uint32_t i = 0; i < rank; i++) fprintf(to, " box %u by %u", box[i], element_strides[i]);
  fprintf(to, " interleave %u swizzle %u l2 %u fill %u\n", (unsigned)interleave, (unsigned)swizzle, (unsigned)l2,
          (unsigned)fill);
  fclose(to);
  return 0;
}

tl_cu_result cuTensorMapEncodeIm2col(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides, const int *lower, const int *upper,
                                     uint32_t channels, uint32_t pixels, const uint32_t *element_strides,
                                     tl_cu_tensor_map_interleave interleave, tl_cu_tensor_map_swizzle swizzle,
                                     tl_cu_tensor_map_l2 l2, tl_cu_tensor_map_fill fill) {
  if (rank < 3 || rank > 5 || (uintptr_t)map % 64 || (uintptr_t)address % 16) return TL_CU_ERROR_INVALID_VALUE;
  memset(map, 0x5a, 128);
  const char *path = getenv("TL_FAKE_CUDA_MAPS");
  FILE *to = path ? fopen(path, "a") : NULL;
  if (!to) return 0;
  fprintf(to, "im2col type %u", (unsigned)type);
  append_numbers(to, "dims", dims, rank);
  append_numbers(to, "strides", strides, rank - 1);
  for (uint32_t i = 0; i + 2 < rank; i++) fprintf(to, " from %d to %d", lower[i], upper[i]);
  for (uint32_t i = 0; i < rank; i++) fprintf(to, " by %u", element_strides[i]);
  fprintf(to, " channels %u pixels %u interleave %u swizzle %u l2 %u fill %u\n", channels, pixels, (unsigned)interleave,
          (unsigned)swizzle, (unsigned)l2, (unsigned)fill);
  fclose(to);
  return 0;
}

#ifndef FAKE_CUDA_WITHOUT_GRAPHS
tl_cu_result cuStreamBeginCapture_v2(tl_cu_stream stream, tl_cu_capture_mode mode) {
  (void)mode;
  if (!stream || recording) return 900;
  return recording = calloc(1, sizeof *recording), 0;
}
tl_cu_result cuStreamEndCapture(tl_cu_stream stream, tl_cu_graph *graph) {
  (void)stream;
  *graph = recording;
  recording = NULL;
  return *graph ? 0 : 901;
}
tl_cu_result cuGraphInstantiateWithFlags(tl_cu_graph_exec *executable, tl_cu_graph graph, unsigned long long flags) {
  (void)flags;
  struct CUgraph_st *copy = malloc(sizeof *copy);
  *copy = *graph;
  return *executable = (tl_cu_graph_exec)copy, 0;
}
tl_cu_result cuGraphLaunch(tl_cu_graph_exec executable, tl_cu_stream stream) {
  (void)stream;
  fake_cuda_spend(((struct CUgraph_st *)executable)->seconds);
  return 0;
}
tl_cu_result cuGraphExecDestroy(tl_cu_graph_exec executable) {
  return free(executable), 0;
}
tl_cu_result cuGraphDestroy(tl_cu_graph graph) {
  return free(graph), 0;
}
#endif
