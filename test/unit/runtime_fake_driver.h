// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A driver made of local functions, for tests of the runtime: device memory is host memory, nothing runs. A function's
// handle is its name's first letter.
#ifndef TL_TEST_UNIT_RUNTIME_FAKE_DRIVER_H
#define TL_TEST_UNIT_RUNTIME_FAKE_DRIVER_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_driver.h"
#include "runtime/program.h"

static int contexts_on_stack, launches, allocations;

// Call number `failing_call` (from 1; 0: none) of the driver fails without doing anything; `failed_symbol` names it.
enum { FAKE_FAILURE = 999 };
static int calls, failing_call;
static const char *failed_symbol;
static bool fails(const char *symbol) {
  if (++calls != failing_call) return false;
  failed_symbol = symbol;
  return true;
}

static unsigned launched_grid[3];
// Looks at the parameters of a launch; NULL: nothing.
static void (*seen_launch)(tl_cu_function function, void **params);

static tl_cu_result fake_error_name(tl_cu_result error, const char **text) {
  *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OTHER";
  return 0;
}
static tl_cu_result fake_error_string(tl_cu_result error, const char **text) {
  *text = error == 218 ? "a PTX JIT compilation failed" : "out of memory";
  return 0;
}
static tl_cu_result fake_count(int *count) {
  if (fails("cuDeviceGetCount")) return FAKE_FAILURE;
  return *count = 1, 0;
}
static tl_cu_result fake_get(tl_cu_device *device, int ordinal) {
  if (fails("cuDeviceGet")) return FAKE_FAILURE;
  return *device = ordinal, 0;
}
static tl_cu_result fake_name(char *name, int len, tl_cu_device device) {
  if (fails("cuDeviceGetName")) return FAKE_FAILURE;
  (void)device;
  return strncpy(name, "Test GPU", (size_t)len), 0;
}
static tl_cu_result fake_attribute(int *value, tl_cu_device_attribute attribute, tl_cu_device device) {
  if (fails("cuDeviceGetAttribute")) return FAKE_FAILURE;
  (void)device;
  *value = attribute == 75 ? 8 : attribute == 76 ? 6 : attribute == 16 ? 10 : 100000;
  return 0;
}
static tl_cu_result fake_retain(tl_cu_context *context, tl_cu_device device) {
  if (fails("cuDevicePrimaryCtxRetain")) return FAKE_FAILURE;
  (void)device;
  return *context = (tl_cu_context)8, 0;
}
static tl_cu_result fake_release(tl_cu_device device) {
  if (fails("cuDevicePrimaryCtxRelease_v2")) return FAKE_FAILURE;
  return (void)device, 0;
}
static tl_cu_result fake_push(tl_cu_context context) {
  if (fails("cuCtxPushCurrent_v2")) return FAKE_FAILURE;
  return (void)context, contexts_on_stack++, 0;
}
static tl_cu_result fake_pop(tl_cu_context *context) {
  if (fails("cuCtxPopCurrent_v2")) return FAKE_FAILURE;
  return *context = NULL, contexts_on_stack--, 0;
}
static tl_cu_result fake_load(tl_cu_module *module, const void *image, unsigned num, tl_cu_jit_option *options,
                              void **values) {
  if (fails("cuModuleLoadDataEx")) return FAKE_FAILURE;
  *module = (tl_cu_module)16;
  if (!strstr(image, "broken")) return 0;
  for (unsigned i = 0; i < num; i++) {
    if (options[i] == TL_CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "ptxas fatal : unresolved extern 'broken'");
  }
  return 218;
}
static tl_cu_result fake_unload(tl_cu_module module) {
  if (fails("cuModuleUnload")) return FAKE_FAILURE;
  return (void)module, 0;
}
static tl_cu_result fake_function(tl_cu_function *function, tl_cu_module module, const char *name) {
  if (fails("cuModuleGetFunction")) return FAKE_FAILURE;
  (void)module;
  return *function = (tl_cu_function)(uintptr_t)name[0], 0;
}
static tl_cu_result fake_func_get(int *value, tl_cu_function_attribute attribute, tl_cu_function function) {
  if (fails("cuFuncGetAttribute")) return FAKE_FAILURE;
  (void)function;
  return *value = attribute == 4 ? 40 : 0, 0;
}
static tl_cu_result fake_func_set(tl_cu_function function, tl_cu_function_attribute attribute, int value) {
  if (fails("cuFuncSetAttribute")) return FAKE_FAILURE;
  return (void)function, (void)attribute, (void)value, 0;
}
static tl_cu_result fake_occupancy(int *blocks, tl_cu_function function, int threads, size_t shared) {
  if (fails("cuOccupancyMaxActiveBlocksPerMultiprocessor")) return FAKE_FAILURE;
  (void)function, (void)threads, (void)shared;
  return *blocks = 2, 0;
}
static tl_cu_result fake_launch(tl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, tl_cu_stream stream, void **params,
                                void **extra) {
  if (fails("cuLaunchKernel")) return FAKE_FAILURE;
  (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  launched_grid[0] = gx, launched_grid[1] = gy, launched_grid[2] = gz;
  launches++;
  if (seen_launch) seen_launch(function, params);
  return 0;
}
// An upload is on its way until the default stream has come to its end, as one from pageable memory may be.
static struct {
  void *to;
  char bytes[256];
  size_t len;
} uploading;

static tl_cu_result fake_sync(tl_cu_stream stream) {
  if (fails("cuStreamSynchronize")) return FAKE_FAILURE;
  if (!stream && uploading.len) memcpy(uploading.to, uploading.bytes, uploading.len);
  if (!stream) uploading.len = 0;
  return 0;
}
static tl_cu_result fake_alloc(tl_cu_pointer *pointer, size_t bytes) {
  if (fails("cuMemAlloc_v2")) return FAKE_FAILURE;
  if (bytes > 1u << 30) return 2;
  *pointer = (tl_cu_pointer)(uintptr_t)malloc(bytes);
  return allocations++, 0;
}
// What a failed call did not free is the driver's: kept here, it is no leak.
static void *lost[64];
static int num_lost;
static tl_cu_result fake_free(tl_cu_pointer pointer) {
  if (fails("cuMemFree_v2")) return lost[num_lost++ % 64] = (void *)(uintptr_t)pointer, FAKE_FAILURE;
  return free((void *)(uintptr_t)pointer), allocations--, 0;
}
static tl_cu_result fake_memset(tl_cu_pointer to, unsigned char value, size_t count, tl_cu_stream stream) {
  if (fails("cuMemsetD8Async")) return FAKE_FAILURE;
  (void)stream;
  return memset((void *)(uintptr_t)to, value, count), 0;
}
static tl_cu_result fake_pointer(void *value, tl_cu_pointer_attribute attribute, tl_cu_pointer pointer) {
  if (fails("cuPointerGetAttribute")) return FAKE_FAILURE;
  if (pointer == 0xdead0) return TL_CU_ERROR_INVALID_VALUE;
  *(int *)value = attribute == TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE      ? (pointer == 0xbeef0 ? 1 : 2)
                  : attribute == TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? pointer == 0xfeed0
                                                                        : 0;
  return 0;
}

static tl_cu_result fake_version(int *version) {
  if (fails("cuDriverGetVersion")) return FAKE_FAILURE;
  return *version = 13000, 0;
}
static tl_cu_result fake_upload(tl_cu_pointer to, const void *from, size_t bytes) {
  if (fails("cuMemcpyHtoD_v2")) return FAKE_FAILURE;
  if (bytes > sizeof uploading.bytes) return TL_CU_ERROR_INVALID_VALUE;
  uploading.to = (void *)(uintptr_t)to;
  uploading.len = bytes;
  return memcpy(uploading.bytes, from, bytes), 0;
}
static tl_cu_result fake_download(void *to, tl_cu_pointer from, size_t bytes) {
  if (fails("cuMemcpyDtoH_v2")) return FAKE_FAILURE;
  return memcpy(to, (void *)(uintptr_t)from, bytes), 0;
}
static tl_cu_result fake_copy(tl_cu_pointer to, tl_cu_pointer from, size_t bytes, tl_cu_stream stream) {
  (void)stream;
  if (fails("cuMemcpyDtoDAsync_v2")) return FAKE_FAILURE;
  return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes), 0;
}
static tl_cu_result fake_mem_info(size_t *free_bytes, size_t *total_bytes) {
  if (fails("cuMemGetInfo_v2")) return FAKE_FAILURE;
  return *free_bytes = 1 << 20, *total_bytes = 2 << 20, 0;
}

// Streams, events and graphs that exist.
static int handles;
static tl_cu_result fake_stream_create(tl_cu_stream *stream, unsigned flags) {
  (void)flags;
  if (fails("cuStreamCreate")) return FAKE_FAILURE;
  return *stream = (tl_cu_stream)24, handles++, 0;
}
static tl_cu_result fake_stream_destroy(tl_cu_stream stream) {
  (void)stream;
  if (fails("cuStreamDestroy_v2")) return FAKE_FAILURE;
  return handles--, 0;
}
static tl_cu_result fake_event_create(tl_cu_event *event, unsigned flags) {
  (void)flags;
  if (fails("cuEventCreate")) return FAKE_FAILURE;
  return *event = (tl_cu_event)32, handles++, 0;
}
static tl_cu_result fake_event_destroy(tl_cu_event event) {
  (void)event;
  if (fails("cuEventDestroy_v2")) return FAKE_FAILURE;
  return handles--, 0;
}
static tl_cu_result fake_event_record(tl_cu_event event, tl_cu_stream stream) {
  (void)event, (void)stream;
  return fails("cuEventRecord") ? FAKE_FAILURE : 0;
}
static tl_cu_result fake_event_sync(tl_cu_event event) {
  (void)event;
  return fails("cuEventSynchronize") ? FAKE_FAILURE : 0;
}
static tl_cu_result fake_elapsed(float *milliseconds, tl_cu_event start, tl_cu_event end) {
  (void)start, (void)end;
  if (fails("cuEventElapsedTime")) return FAKE_FAILURE;
  return *milliseconds = 1, 0;
}
static tl_cu_result fake_begin(tl_cu_stream stream, tl_cu_capture_mode mode) {
  (void)stream, (void)mode;
  return fails("cuStreamBeginCapture_v2") ? FAKE_FAILURE : 0;
}
static tl_cu_result fake_end(tl_cu_stream stream, tl_cu_graph *graph) {
  (void)stream;
  if (fails("cuStreamEndCapture")) return FAKE_FAILURE;
  return *graph = (tl_cu_graph)40, handles++, 0;
}
static tl_cu_result fake_instantiate(tl_cu_graph_exec *executable, tl_cu_graph graph, unsigned long long flags) {
  (void)graph, (void)flags;
  if (fails("cuGraphInstantiateWithFlags")) return FAKE_FAILURE;
  return *executable = (tl_cu_graph_exec)48, handles++, 0;
}
static tl_cu_result fake_graph_launch(tl_cu_graph_exec executable, tl_cu_stream stream) {
  (void)executable, (void)stream;
  return fails("cuGraphLaunch") ? FAKE_FAILURE : 0;
}
static tl_cu_result fake_exec_destroy(tl_cu_graph_exec executable) {
  (void)executable;
  if (fails("cuGraphExecDestroy")) return FAKE_FAILURE;
  return handles--, 0;
}
static tl_cu_result fake_graph_destroy(tl_cu_graph graph) {
  (void)graph;
  if (fails("cuGraphDestroy")) return FAKE_FAILURE;
  return handles--, 0;
}

static const tl_cuda_driver fake = {.driver_get_version = fake_version,
                                    .memcpy_htod = fake_upload,
                                    .memcpy_dtoh = fake_download,
                                    .memcpy_dtod_async = fake_copy,
                                    .mem_get_info = fake_mem_info,
                                    .stream_create = fake_stream_create,
                                    .stream_destroy = fake_stream_destroy,
                                    .event_create = fake_event_create,
                                    .event_destroy = fake_event_destroy,
                                    .event_record = fake_event_record,
                                    .event_synchronize = fake_event_sync,
                                    .event_elapsed_time = fake_elapsed,
                                    .stream_begin_capture = fake_begin,
                                    .stream_end_capture = fake_end,
                                    .graph_instantiate = fake_instantiate,
                                    .graph_launch = fake_graph_launch,
                                    .graph_exec_destroy = fake_exec_destroy,
                                    .graph_destroy = fake_graph_destroy,
                                    .get_error_name = fake_error_name,
                                    .get_error_string = fake_error_string,
                                    .device_get_count = fake_count,
                                    .device_get = fake_get,
                                    .device_get_name = fake_name,
                                    .device_get_attribute = fake_attribute,
                                    .primary_ctx_retain = fake_retain,
                                    .primary_ctx_release = fake_release,
                                    .ctx_push_current = fake_push,
                                    .ctx_pop_current = fake_pop,
                                    .module_load_data_ex = fake_load,
                                    .module_unload = fake_unload,
                                    .module_get_function = fake_function,
                                    .func_get_attribute = fake_func_get,
                                    .func_set_attribute = fake_func_set,
                                    .occupancy = fake_occupancy,
                                    .launch_kernel = fake_launch,
                                    .stream_synchronize = fake_sync,
                                    .mem_alloc = fake_alloc,
                                    .mem_free = fake_free,
                                    .memset_d8_async = fake_memset,
                                    .pointer_get_attribute = fake_pointer};

static tl_device *device;

static void setup(void) {
  tl_cuda_driver_override(&fake);
  tl_status status = tl_device_open(0, &device);
  ck_assert_msg(!status, "%s", tl_status_message(status));
}
static void teardown(void) {
  tl_device_close(device);
  ck_assert_int_eq(contexts_on_stack, 0);
  tl_cuda_driver_override(NULL);
}

#endif
