// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices, contexts and memory of the emulated driver.
#include "harness/device/emulated_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/tensormap.h"
#include "harness/data/memory.h"
#include "harness/device/emulated_internal.h"
#include "support/arena.h"
#include "support/status.h"

enum { MAX_GPUS = 64, MAX_NESTED = 16, DEFAULT_CAPABILITY = 90, DEFAULT_SMS = 3, MAX_SHARED_BYTES = 227 << 10 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st gpus[MAX_GPUS];  // under the mutex, but for what is fixed while it is used
// Small: a library that is opened at run time has few bytes of such memory.
static _Thread_local struct {
  tl_cu_context stack[MAX_NESTED];
  int depth;
} thread;
// The last failure of each thread, which the thread's end frees.
static pthread_key_t failures;
static pthread_once_t failures_once = PTHREAD_ONCE_INIT;

static void free_failure(void *status) {
  tl_status_free(status);
}
static void make_failures(void) {
  if (pthread_key_create(&failures, free_failure)) failures = (pthread_key_t)-1;  // no texts then
}

tl_status tl_emulated_gpu_add(const tl_emulated_gpu *gpu, int *out_ordinal) {
  int found = -1;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < MAX_GPUS && found < 0; i++) {
    if (gpus[i].is_used) continue;
    found = i;
    gpus[i] = (struct CUctx_st){.gpu = *gpu, .ordinal = i, .is_used = true};
    if (!gpus[i].gpu.compute_capability) gpus[i].gpu.compute_capability = DEFAULT_CAPABILITY;
    if (!gpus[i].gpu.num_sms) gpus[i].gpu.num_sms = DEFAULT_SMS;
  }
  pthread_mutex_unlock(&mutex);
  *out_ordinal = found;
  return found >= 0 ? TL_OK : tl_status_make(TL_STATUS_LIMIT, "more than %d emulated GPUs", MAX_GPUS);
}

tl_cu_result tl_emulated_fail(tl_status status) {
  tl_cu_result result = TL_CU_ERROR_STATUS + (tl_cu_result)tl_status_code_of(status);
  pthread_once(&failures_once, make_failures);
  tl_status_free(pthread_getspecific(failures));
  if (pthread_setspecific(failures, status)) tl_status_free(status);
  return result;
}

tl_cu_context tl_emulated_current(void) {
  return thread.depth ? thread.stack[thread.depth - 1] : NULL;
}

static struct CUctx_st *gpu_of(tl_cu_device device) {
  return device >= 0 && device < MAX_GPUS && gpus[device].is_used ? &gpus[device] : NULL;
}

// ---- the driver and its errors

tl_cu_result tl_emulated_init(unsigned int flags) {
  return flags ? TL_CU_ERROR_INVALID_VALUE : TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_driver_get_version(int *version) {
  return *version = 13000, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_get_error_name(tl_cu_result error, const char **text) {
  if (error > TL_CU_ERROR_STATUS) {
    *text = tl_status_code_name((tl_status_code)(error - TL_CU_ERROR_STATUS));
    return TL_CU_SUCCESS;
  }
  switch (error) {
    case TL_CU_SUCCESS:
      return *text = "CUDA_SUCCESS", TL_CU_SUCCESS;
    case TL_CU_ERROR_INVALID_VALUE:
      return *text = "CUDA_ERROR_INVALID_VALUE", TL_CU_SUCCESS;
    case TL_CU_ERROR_OUT_OF_MEMORY:
      return *text = "CUDA_ERROR_OUT_OF_MEMORY", TL_CU_SUCCESS;
    case TL_CU_ERROR_INVALID_CONTEXT:
      return *text = "CUDA_ERROR_INVALID_CONTEXT", TL_CU_SUCCESS;
    case TL_CU_ERROR_INVALID_HANDLE:
      return *text = "CUDA_ERROR_INVALID_HANDLE", TL_CU_SUCCESS;
    case TL_CU_ERROR_NOT_FOUND:
      return *text = "CUDA_ERROR_NOT_FOUND", TL_CU_SUCCESS;
    case TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      return *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", TL_CU_SUCCESS;
    default:
      return TL_CU_ERROR_INVALID_VALUE;
  }
}
tl_cu_result tl_emulated_get_error_string(tl_cu_result error, const char **text) {
  if (error > TL_CU_ERROR_STATUS) {
    pthread_once(&failures_once, make_failures);
    return *text = tl_status_message(pthread_getspecific(failures)), TL_CU_SUCCESS;
  }
  return *text = error ? "a failure of the emulated driver" : "no error", TL_CU_SUCCESS;
}

// ---- devices

tl_cu_result tl_emulated_device_get_count(int *count) {
  *count = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < MAX_GPUS; i++)
    if (gpus[i].is_used) *count = i + 1;
  pthread_mutex_unlock(&mutex);
  return TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_device_get(tl_cu_device *device, int ordinal) {
  return *device = ordinal, gpu_of(ordinal) ? TL_CU_SUCCESS : TL_CU_ERROR_INVALID_VALUE;
}
tl_cu_result tl_emulated_device_get_name(char *name, int len, tl_cu_device device) {
  if (len > 0) snprintf(name, (size_t)len, "the emulator");
  return gpu_of(device) ? TL_CU_SUCCESS : TL_CU_ERROR_INVALID_VALUE;
}
tl_cu_result tl_emulated_device_get_attribute(int *value, tl_cu_device_attribute attribute, tl_cu_device device) {
  const struct CUctx_st *gpu = gpu_of(device);
  if (!gpu) return TL_CU_ERROR_INVALID_VALUE;
  switch (attribute) {
    case TL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return *value = gpu->gpu.num_sms, TL_CU_SUCCESS;
    case TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *value = gpu->gpu.compute_capability / 10, TL_CU_SUCCESS;
    case TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return *value = gpu->gpu.compute_capability % 10, TL_CU_SUCCESS;
    case TL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return *value = MAX_SHARED_BYTES, TL_CU_SUCCESS;
    default:
      return *value = 0, TL_CU_SUCCESS;  // clocks and sizes of nothing
  }
}

// ---- contexts

tl_cu_result tl_emulated_primary_ctx_retain(tl_cu_context *context, tl_cu_device device) {
  struct CUctx_st *gpu = gpu_of(device);
  if (!gpu) return TL_CU_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  gpu->retained++;
  pthread_mutex_unlock(&mutex);
  return *context = gpu, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_primary_ctx_release(tl_cu_device device) {
  struct CUctx_st *gpu = gpu_of(device);
  if (!gpu) return TL_CU_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  if (--gpu->retained <= 0) *gpu = (struct CUctx_st){0};
  pthread_mutex_unlock(&mutex);
  return TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_ctx_push_current(tl_cu_context context) {
  if (!context || thread.depth == MAX_NESTED) return TL_CU_ERROR_INVALID_CONTEXT;
  return thread.stack[thread.depth++] = context, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_ctx_pop_current(tl_cu_context *context) {
  if (!thread.depth) return TL_CU_ERROR_INVALID_CONTEXT;
  return *context = thread.stack[--thread.depth], TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_ctx_get_current(tl_cu_context *context) {
  return *context = tl_emulated_current(), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_ctx_get_device(tl_cu_device *device) {
  tl_cu_context context = tl_emulated_current();
  if (!context) return TL_CU_ERROR_INVALID_CONTEXT;
  return *device = context->ordinal, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_ctx_get_id(tl_cu_context context, unsigned long long *id) {
  if (!context) context = tl_emulated_current();
  if (!context) return TL_CU_ERROR_INVALID_CONTEXT;
  return *id = (unsigned long long)context->ordinal + 1, TL_CU_SUCCESS;
}

// ---- memory

typedef struct allocation {
  size_t bytes;
  void *memory;
} allocation;

static void allocate(void *user) {
  allocation *wanted = user;
  wanted->memory = tl_emu_alloc(wanted->bytes, 256);
}

tl_cu_result tl_emulated_mem_alloc(tl_cu_pointer *pointer, size_t bytes) {
  tl_cu_context context = tl_emulated_current();
  if (!context) return TL_CU_ERROR_INVALID_CONTEXT;
  if (tl_emulated_is_recording()) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!bytes) return TL_CU_ERROR_INVALID_VALUE;
  // All of it is written, so that a system that promises more than it has would end the process.
  if (bytes > tl_memory_default_limit()) return TL_CU_ERROR_OUT_OF_MEMORY;
  allocation wanted = {.bytes = bytes};
  if (!tl_memory_guard(allocate, &wanted)) return TL_CU_ERROR_OUT_OF_MEMORY;
  if ((context->gpu.emu.checks & TL_EMU_SANITIZE_INIT) && !tl_memory_guard(tl_emu_mark_unwritten, wanted.memory)) {
    tl_emu_free(wanted.memory);
    return TL_CU_ERROR_OUT_OF_MEMORY;
  }
  return *pointer = (tl_cu_pointer)(uintptr_t)wanted.memory, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_mem_free(tl_cu_pointer pointer) {
  void *memory = (void *)(uintptr_t)pointer;
  if (!pointer) return TL_CU_SUCCESS;
  if (tl_emulated_is_recording()) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!tl_emu_size(memory)) return TL_CU_ERROR_INVALID_VALUE;
  return tl_emu_free(memory), TL_CU_SUCCESS;
}

// The first and the last byte are of one buffer, as far as addresses tell: buffers have unreadable pages around them.
static bool is_memory(tl_cu_pointer pointer, size_t bytes) {
  const char *first = (const char *)(uintptr_t)pointer;
  return tl_emu_is_buffer(first) && tl_emu_is_buffer(first + bytes - 1);
}

tl_cu_result tl_emulated_memcpy_htod(tl_cu_pointer to, const void *from, size_t bytes) {
  if (!bytes) return TL_CU_SUCCESS;
  if (!is_memory(to, bytes)) return TL_CU_ERROR_INVALID_VALUE;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return tl_emu_mark_written((void *)(uintptr_t)to, bytes), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_memcpy_dtoh(void *to, tl_cu_pointer from, size_t bytes) {
  if (!bytes) return TL_CU_SUCCESS;
  if (!is_memory(from, bytes)) return TL_CU_ERROR_INVALID_VALUE;
  return memcpy(to, (const void *)(uintptr_t)from, bytes), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_memcpy_dtod_async(tl_cu_pointer to, tl_cu_pointer from, size_t bytes, tl_cu_stream stream) {
  if (!bytes) return TL_CU_SUCCESS;
  if (!is_memory(to, bytes) || !is_memory(from, bytes)) return TL_CU_ERROR_INVALID_VALUE;
  return tl_emulated_put(
      stream, (emulated_work){.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes});
}
tl_cu_result tl_emulated_memset_d8_async(tl_cu_pointer to, unsigned char value, size_t count, tl_cu_stream stream) {
  if (!count) return TL_CU_SUCCESS;
  if (!is_memory(to, count)) return TL_CU_ERROR_INVALID_VALUE;
  return tl_emulated_put(stream, (emulated_work){.to = (void *)(uintptr_t)to, .value = value, .bytes = count});
}
tl_cu_result tl_emulated_mem_get_info(size_t *free_bytes, size_t *total_bytes) {
  return *free_bytes = (size_t)1 << 30, *total_bytes = (size_t)1 << 30, TL_CU_SUCCESS;
}

tl_cu_result tl_emulated_pointer_get_attribute(void *value, tl_cu_pointer_attribute attribute, tl_cu_pointer pointer) {
  if (!tl_emu_is_buffer((const void *)(uintptr_t)pointer)) return TL_CU_ERROR_INVALID_VALUE;
  int result = 0;
  if (attribute == TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE) result = TL_CU_MEMORYTYPE_DEVICE;
  if (attribute == TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    result = tl_emulated_current() ? tl_emulated_current()->ordinal : 0;
  return memcpy(value, &result, sizeof result), TL_CU_SUCCESS;
}
// Of an address that CUDA does not know every value is 0, and there is no failure (CUDA driver API, Unified
// Addressing).
tl_cu_result tl_emulated_pointer_get_attributes(unsigned int num, tl_cu_pointer_attribute *attributes, void **values,
                                                tl_cu_pointer pointer) {
  for (unsigned i = 0; i < num; i++) {
    if (tl_emulated_pointer_get_attribute(values[i], attributes[i], pointer)) memset(values[i], 0, sizeof(int));
  }
  return TL_CU_SUCCESS;
}

// What both kinds of maps have.
static tl_tensormap_params map_params(tl_cu_tensor_map_type type, uint32_t rank, void *address, const uint64_t *dims,
                                      const uint64_t *strides, const uint32_t *element_strides,
                                      tl_cu_tensor_map_interleave interleave, tl_cu_tensor_map_swizzle swizzle,
                                      tl_cu_tensor_map_l2 l2, tl_cu_tensor_map_fill fill) {
  tl_tensormap_params params = {.type = (tl_tensormap_type)type,
                                .rank = rank,
                                .address = address,
                                .interleave = (tl_tensormap_interleave)interleave,
                                .swizzle = (tl_tensormap_swizzle)swizzle,
                                .l2 = (tl_tensormap_l2)l2,
                                .fill = (tl_tensormap_fill)fill};
  memcpy(params.dims, dims, rank * sizeof *dims);
  memcpy(params.strides, strides, (rank - 1) * sizeof *strides);
  memcpy(params.element_strides, element_strides, rank * sizeof *element_strides);
  return params;
}

static tl_cu_result encode_map(const tl_tensormap_params *params, tl_cu_tensor_map *map) {
  tl_emu_tensormap encoded;
  tl_status status = tl_emu_tensormap_encode(params, &encoded);
  if (status) return tl_emulated_fail(status);
  return memcpy(map, encoded.bytes, sizeof encoded.bytes), TL_CU_SUCCESS;
}

tl_cu_result tl_emulated_tensor_map_encode_tiled(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank,
                                                 void *address, const uint64_t *dims, const uint64_t *strides,
                                                 const uint32_t *box, const uint32_t *element_strides,
                                                 tl_cu_tensor_map_interleave interleave,
                                                 tl_cu_tensor_map_swizzle swizzle, tl_cu_tensor_map_l2 l2,
                                                 tl_cu_tensor_map_fill fill) {
  if (rank < 1 || rank > TL_TENSORMAP_MAX_RANK || (uintptr_t)map % TL_TENSORMAP_ALIGN) return TL_CU_ERROR_INVALID_VALUE;
  tl_tensormap_params params =
      map_params(type, rank, address, dims, strides, element_strides, interleave, swizzle, l2, fill);
  memcpy(params.box, box, rank * sizeof *box);
  return encode_map(&params, map);
}

tl_cu_result tl_emulated_tensor_map_encode_im2col(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank,
                                                  void *address, const uint64_t *dims, const uint64_t *strides,
                                                  const int *lower, const int *upper, uint32_t channels,
                                                  uint32_t pixels, const uint32_t *element_strides,
                                                  tl_cu_tensor_map_interleave interleave,
                                                  tl_cu_tensor_map_swizzle swizzle, tl_cu_tensor_map_l2 l2,
                                                  tl_cu_tensor_map_fill fill) {
  if (rank < 3 || rank > TL_TENSORMAP_MAX_RANK || (uintptr_t)map % TL_TENSORMAP_ALIGN) return TL_CU_ERROR_INVALID_VALUE;
  tl_tensormap_params params =
      map_params(type, rank, address, dims, strides, element_strides, interleave, swizzle, l2, fill);
  params.is_im2col = true;
  params.channels_per_pixel = channels;
  params.pixels_per_column = pixels;
  memcpy(params.lower, lower, (rank - 2) * sizeof *lower);
  memcpy(params.upper, upper, (rank - 2) * sizeof *upper);
  return encode_map(&params, map);
}
