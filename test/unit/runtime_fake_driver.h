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
  return *count = 1, 0;
}
static tl_cu_result fake_get(tl_cu_device *device, int ordinal) {
  return *device = ordinal, 0;
}
static tl_cu_result fake_name(char *name, int len, tl_cu_device device) {
  (void)device;
  return strncpy(name, "Test GPU", (size_t)len), 0;
}
static tl_cu_result fake_attribute(int *value, tl_cu_device_attribute attribute, tl_cu_device device) {
  (void)device;
  *value = attribute == 75 ? 8 : attribute == 76 ? 6 : attribute == 16 ? 10 : 100000;
  return 0;
}
static tl_cu_result fake_retain(tl_cu_context *context, tl_cu_device device) {
  (void)device;
  return *context = (tl_cu_context)8, 0;
}
static tl_cu_result fake_release(tl_cu_device device) {
  return (void)device, 0;
}
static tl_cu_result fake_push(tl_cu_context context) {
  return (void)context, contexts_on_stack++, 0;
}
static tl_cu_result fake_pop(tl_cu_context *context) {
  return *context = NULL, contexts_on_stack--, 0;
}
static tl_cu_result fake_load(tl_cu_module *module, const void *image, unsigned num, tl_cu_jit_option *options,
                              void **values) {
  *module = (tl_cu_module)16;
  if (!strstr(image, "broken")) return 0;
  for (unsigned i = 0; i < num; i++) {
    if (options[i] == TL_CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "ptxas fatal : unresolved extern 'broken'");
  }
  return 218;
}
static tl_cu_result fake_unload(tl_cu_module module) {
  return (void)module, 0;
}
static tl_cu_result fake_function(tl_cu_function *function, tl_cu_module module, const char *name) {
  (void)module;
  return *function = (tl_cu_function)(uintptr_t)name[0], 0;
}
static tl_cu_result fake_func_get(int *value, tl_cu_function_attribute attribute, tl_cu_function function) {
  (void)function;
  return *value = attribute == 4 ? 40 : 0, 0;
}
static tl_cu_result fake_func_set(tl_cu_function function, tl_cu_function_attribute attribute, int value) {
  return (void)function, (void)attribute, (void)value, 0;
}
static tl_cu_result fake_occupancy(int *blocks, tl_cu_function function, int threads, size_t shared) {
  (void)function, (void)threads, (void)shared;
  return *blocks = 2, 0;
}
static tl_cu_result fake_launch(tl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, tl_cu_stream stream, void **params,
                                void **extra) {
  (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  launched_grid[0] = gx, launched_grid[1] = gy, launched_grid[2] = gz;
  launches++;
  if (seen_launch) seen_launch(function, params);
  return 0;
}
static tl_cu_result fake_sync(tl_cu_stream stream) {
  return (void)stream, 0;
}
static tl_cu_result fake_alloc(tl_cu_pointer *pointer, size_t bytes) {
  if (bytes > 1u << 30) return 2;
  *pointer = (tl_cu_pointer)(uintptr_t)malloc(bytes);
  return allocations++, 0;
}
static tl_cu_result fake_free(tl_cu_pointer pointer) {
  return free((void *)(uintptr_t)pointer), allocations--, 0;
}
static tl_cu_result fake_memset(tl_cu_pointer to, unsigned char value, size_t count, tl_cu_stream stream) {
  (void)stream;
  return memset((void *)(uintptr_t)to, value, count), 0;
}
static tl_cu_result fake_pointer(void *value, tl_cu_pointer_attribute attribute, tl_cu_pointer pointer) {
  if (pointer == 0xdead0) return TL_CU_ERROR_INVALID_VALUE;
  *(int *)value = attribute == TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE      ? (pointer == 0xbeef0 ? 1 : 2)
                  : attribute == TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? pointer == 0xfeed0
                                                                        : 0;
  return 0;
}

static const tl_cuda_driver fake = {.get_error_name = fake_error_name,
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
