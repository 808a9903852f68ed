// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA driver API without its header or import library: own types and prototypes, resolved with dlopen.
#ifndef TL_RUNTIME_CUDA_DRIVER_H
#define TL_RUNTIME_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "support/status.h"

// The structure tags and the unsigned enumerations are those of cuda.h, so that prototypes can be compared by type.
typedef unsigned int tl_cu_result;
typedef int tl_cu_device;
typedef unsigned long long tl_cu_pointer;
typedef struct CUctx_st *tl_cu_context;
typedef struct CUmod_st *tl_cu_module;
typedef struct CUfunc_st *tl_cu_function;
typedef struct CUstream_st *tl_cu_stream;
typedef struct CUevent_st *tl_cu_event;
typedef struct CUgraph_st *tl_cu_graph;
typedef struct CUgraphExec_st *tl_cu_graph_exec;
struct CUgraphNode_st;
struct CUgraphEdgeData_st;
typedef struct CUtensorMap_st tl_cu_tensor_map;
typedef struct CUlaunchConfig_st tl_cu_launch_config;
typedef unsigned int tl_cu_device_attribute;
typedef unsigned int tl_cu_function_attribute;
typedef unsigned int tl_cu_jit_option;
typedef unsigned int tl_cu_pointer_attribute;
typedef unsigned int tl_cu_capture_mode;
typedef unsigned int tl_cu_tensor_map_type;
typedef unsigned int tl_cu_tensor_map_interleave;
typedef unsigned int tl_cu_tensor_map_swizzle;
typedef unsigned int tl_cu_tensor_map_l2;
typedef unsigned int tl_cu_tensor_map_fill;

// Values of the driver API's enumerations that the runtime uses.
enum {
  TL_CU_SUCCESS = 0,
  TL_CU_ERROR_INVALID_VALUE = 1,
  TL_CU_ERROR_OUT_OF_MEMORY = 2,
  TL_CU_ERROR_NO_DEVICE = 100,
  TL_CU_ERROR_INVALID_CONTEXT = 201,
  TL_CU_ERROR_INVALID_HANDLE = 400,
  TL_CU_ERROR_NOT_FOUND = 500,
  TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  TL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  TL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  TL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  TL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  TL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  TL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  TL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  TL_CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  TL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  TL_CU_JIT_INFO_LOG_BUFFER = 3,
  TL_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  TL_CU_JIT_ERROR_LOG_BUFFER = 5,
  TL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  TL_CU_JIT_LOG_VERBOSE = 12,
  TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  TL_CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  TL_CU_MEMORYTYPE_HOST = 1,
  TL_CU_MEMORYTYPE_DEVICE = 2,
  TL_CU_STREAM_NON_BLOCKING = 1,
  TL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  TL_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  TL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
};

// No code of CUDA: a driver that is not NVIDIA's adds a tl_status_code, and its text is the whole message.
enum { TL_CU_ERROR_STATUS = 900000 };

// What cuLaunchKernelEx takes. A value is 64 bytes, of which a cluster's dimensions are the first 12.
typedef struct tl_cu_launch_attribute {
  unsigned int id;
  char padding[4];
  union {
    unsigned int cluster[3];
    char bytes[64];
  } value;
} tl_cu_launch_attribute;
typedef struct tl_cu_launch_layout {  // of a tl_cu_launch_config
  unsigned int grid[3], block[3];
  unsigned int shared_bytes;
  tl_cu_stream stream;
  tl_cu_launch_attribute *attributes;
  unsigned int num_attributes;
} tl_cu_launch_layout;

typedef struct tl_cuda_driver {
#define TL_CUDA_FN(field, symbol, parameters) tl_cu_result(*field) parameters;
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
} tl_cuda_driver;

// The initialised driver; opened once a process: libcuda.so.1, or the library that the environment variable
// TL_CUDA_DRIVER names. NO_DEVICE says what is missing: the library, a symbol, or a GPU.
TL_MUST_USE tl_status tl_cuda_driver_get(const tl_cuda_driver **out_driver);
// Makes tl_cuda_driver_get return `driver` from now on (NULL: the real one again). For tests without a GPU.
void tl_cuda_driver_override(const tl_cuda_driver *driver);

// TL_OK for success; else a DRIVER failure (LIMIT when out of memory): "cuMemAlloc_v2 failed: 2
// CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
TL_MUST_USE tl_status tl_cuda_status_of(const tl_cuda_driver *driver, tl_cu_result result, const char *function);

// Calls a driver function by its field and reports it under its exported symbol.
#define TL_CUDA_CALL(driver, field, ...) \
  tl_cuda_status_of((driver), (driver)->field(__VA_ARGS__), tl_cuda_symbol_##field)
#define TL_CUDA_FN(field, symbol, parameters) \
  __attribute__((unused)) static const char tl_cuda_symbol_##field[] = #symbol;
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN

#endif
