// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime over a driver made of local functions: error texts, JIT logs, launches; and our prototypes against
// cuda.h.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_driver.h"
#include "runtime/program.h"
#include "runtime_fake_driver.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#endif
#endif
#ifdef CUDA_VERSION
#define TL_CUDA_FN(field, symbol, parameters)                                               \
  _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), tl_cu_result parameters), \
                 "the prototype differs from cuda.h: " #symbol);
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
_Static_assert((int)CUDA_ERROR_INVALID_VALUE == TL_CU_ERROR_INVALID_VALUE, "");
_Static_assert((int)CUDA_ERROR_INVALID_CONTEXT == TL_CU_ERROR_INVALID_CONTEXT, "");
_Static_assert((int)CUDA_ERROR_INVALID_HANDLE == TL_CU_ERROR_INVALID_HANDLE, "");
_Static_assert((int)CUDA_ERROR_NOT_FOUND == TL_CU_ERROR_NOT_FOUND, "");
_Static_assert((int)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED == TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED, "");
_Static_assert((int)CU_STREAM_CAPTURE_MODE_RELAXED == TL_CU_STREAM_CAPTURE_MODE_RELAXED, "");
_Static_assert((int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == TL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, "");
_Static_assert(sizeof(tl_cu_launch_layout) == sizeof(CUlaunchConfig), "");
_Static_assert(offsetof(tl_cu_launch_layout, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes), "");
_Static_assert(offsetof(tl_cu_launch_layout, stream) == offsetof(CUlaunchConfig, hStream), "");
_Static_assert(offsetof(tl_cu_launch_layout, attributes) == offsetof(CUlaunchConfig, attrs), "");
_Static_assert(offsetof(tl_cu_launch_layout, num_attributes) == offsetof(CUlaunchConfig, numAttrs), "");
_Static_assert(sizeof(tl_cu_launch_attribute) == sizeof(CUlaunchAttribute), "");
_Static_assert(offsetof(tl_cu_launch_attribute, value) == offsetof(CUlaunchAttribute, value), "");
_Static_assert((int)CUDA_ERROR_OUT_OF_MEMORY == TL_CU_ERROR_OUT_OF_MEMORY, "");
_Static_assert((int)CUDA_ERROR_NO_DEVICE == TL_CU_ERROR_NO_DEVICE, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == TL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
               "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
               "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ==
                   TL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
               "");
_Static_assert((int)CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES == TL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, "");
_Static_assert((int)CU_FUNC_ATTRIBUTE_NUM_REGS == TL_CU_FUNC_ATTRIBUTE_NUM_REGS, "");
_Static_assert((int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ==
                   TL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
               "");
_Static_assert((int)CU_JIT_INFO_LOG_BUFFER == TL_CU_JIT_INFO_LOG_BUFFER, "");
_Static_assert((int)CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES == TL_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
_Static_assert((int)CU_JIT_ERROR_LOG_BUFFER == TL_CU_JIT_ERROR_LOG_BUFFER, "");
_Static_assert((int)CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == TL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, "");
_Static_assert((int)CU_JIT_LOG_VERBOSE == TL_CU_JIT_LOG_VERBOSE, "");
_Static_assert((int)CU_POINTER_ATTRIBUTE_MEMORY_TYPE == TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "");
_Static_assert((int)CU_POINTER_ATTRIBUTE_IS_MANAGED == TL_CU_POINTER_ATTRIBUTE_IS_MANAGED, "");
_Static_assert((int)CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "");
_Static_assert((int)CU_MEMORYTYPE_HOST == TL_CU_MEMORYTYPE_HOST, "");
_Static_assert((int)CU_MEMORYTYPE_DEVICE == TL_CU_MEMORYTYPE_DEVICE, "");
_Static_assert((int)CU_STREAM_NON_BLOCKING == TL_CU_STREAM_NON_BLOCKING, "");
_Static_assert((int)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == TL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_CLOCK_RATE == TL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE == TL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH == TL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, "");
_Static_assert((int)CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE == TL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "");
#endif

static const char program_text[] =
    "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
    "// {\"name\": \"k\", \"params\": [\n"
    "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"inout\", \"dtype\": \"f32\", \"dims\": [\"N\"], "
    "\"strides\": [1], \"align\": 16},\n"
    "//  {\"kind\": \"dynamic\", \"name\": \"N\", \"divisor\": 1},\n"
    "//  {\"kind\": \"workspace\", \"name\": \"w\", \"bytes\": \"N * 4\", \"zero_each_launch\": true}],\n"
    "// \"requires\": [], \"grid\": [\"ceildiv(N, 32)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 65536, \"cluster\": [1, 1, 1]}]}\n\n.version 7.0\n";

START_TEST(reports_name_number_and_text) {
  void *pointer;
  tl_status status = tl_device_alloc(device, (size_t)1 << 40, &pointer);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_OUT_OF_MEMORY);
  ck_assert_str_eq(tl_status_message(status),
                   "allocating 1099511627776 bytes of device memory: cuMemAlloc_v2 failed: 2 CUDA_ERROR_OUT_OF_MEMORY "
                   "(out of memory)");
  tl_status_free(status);
  status = tl_device_open(1, &(tl_device *){NULL});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
  tl_status_free(status);
}
END_TEST

static tl_status load(const char *from, const char *to, tl_program **out) {
  char text[4096];
  const char *at = from ? strstr(program_text, from) : program_text;
  ck_assert_ptr_nonnull(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - program_text), program_text, to, at + (from ? strlen(from) : 0));
  return tl_program_load(device, text, strlen(text), out);
}

START_TEST(attaches_the_jit_log) {
  tl_program *program;
  tl_status status = load(".version 7.0\n", ".version 7.0\n.extern broken\n", &program);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_DRIVER);
  ck_assert_str_eq(
      tl_status_message(status),
      "cuModuleLoadDataEx failed: 218 CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed)\nJIT error log:\n"
      "ptxas fatal : unresolved extern 'broken'");
  ck_assert_ptr_null(program);
  tl_status_free(status);
}
END_TEST

START_TEST(refuses_what_cannot_run) {
  static const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"sm_80", "sm_90", "compiled for sm_90, the device 'Test GPU' is sm_86"},
      {"sm_80", "sm_80a", "compiled for sm_80a"},
      {"65536", "165536", "165536 bytes of shared memory, the device has 100000"},
      {"[1, 1, 1]", "[2, 1, 1]", "clusters"},
      {"// {\"abi\"", "{\"abi", "manifest"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_program *program;
    tl_status status = load(cases[i].from, cases[i].to, &program);
    ck_assert_msg(status && strstr(tl_status_message(status), cases[i].message), "%zu: %s", i,
                  tl_status_message(status));
    tl_status_free(status);
  }
}
END_TEST

static int last_workspace_value;
static void see_workspace(tl_cu_function function, void **params) {
  (void)function;
  last_workspace_value = **(unsigned char **)params[2];
}

START_TEST(launches_with_a_workspace) {
  seen_launch = see_workspace;
  tl_program *program;
  tl_status status = load(NULL, "", &program);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  tl_kernel *kernel;
  ck_assert(!tl_program_kernel(program, NULL, &kernel));
  ck_assert_int_eq(tl_kernel_registers(kernel), 40);
  static float data[64] __attribute__((aligned(16)));
  static const int64_t sizes[] = {33, 40, 0, 64};
  for (int i = 0; i < 4; i++) {
    tl_argument argument = tl_argument_tensor("A", data, "f32", 1, &sizes[i]);
    launches = 0;
    last_workspace_value = -1;
    status = tl_kernel_launch(kernel, &argument, 1, NULL);
    ck_assert_msg(!status, "%s", tl_status_message(status));
    ck_assert_int_eq(launches, sizes[i] != 0);
    if (sizes[i]) {
      ck_assert_uint_eq(launched_grid[0], 2);
      ck_assert_int_eq(last_workspace_value, 0);
    }
  }
  static const int64_t size = 32;
  tl_argument argument = tl_argument_tensor("A", (void *)0xdead0, "f32", 1, &size);
  status = tl_kernel_check(kernel, &argument, 1);
  ck_assert_ptr_nonnull(
      strstr(tl_status_message(status), "argument 'A': expected device memory, given an address (0xdead0)"));
  tl_status_free(status);
  argument.tensor.data = (void *)0xbeef0;
  status = tl_kernel_check(kernel, &argument, 1);
  ck_assert_str_eq(tl_status_message(status), "argument 'A': expected device memory, given host memory");
  tl_status_free(status);
  argument.tensor.data = (void *)0xfeed0;
  status = tl_kernel_check(kernel, &argument, 1);
  ck_assert_str_eq(tl_status_message(status), "argument 'A': expected memory of GPU 0, given memory of GPU 1");
  tl_status_free(status);
  status = tl_program_kernel(program, "other", &kernel);
  ck_assert_str_eq(tl_status_message(status), "no kernel 'other': the program has the kernels: k");
  tl_status_free(status);
  tl_program_destroy(program);
  ck_assert_int_eq(allocations, 0);
}
END_TEST

START_TEST(refuses_grids_past_the_hardware) {
  tl_program *program;
  tl_kernel *kernel;
  ck_assert(!load("ceildiv(N, 32)", "N * N", &program));
  ck_assert(!tl_program_kernel(program, NULL, &kernel));
  static float data[4] __attribute__((aligned(16)));
  static const int64_t size = 65536;
  tl_argument argument = tl_argument_tensor("A", data, "f32", 1, &size);
  launches = 0;
  tl_status status = tl_kernel_launch(kernel, &argument, 1, NULL);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
  ck_assert_str_eq(tl_status_message(status), "launching 'k': grid of 'k': x is 4294967296, expected 0 to 2147483647");
  tl_status_free(status);
  ck_assert_int_eq(launches, 0);
  tl_program_destroy(program);
}
END_TEST

// A version for pointers at multiples of 32 bytes and N a multiple of 8.
static const char version_text[] =
    ", \"aligned\": \"k$a\"}, {\"name\": \"k$a\", \"params\": [\n"
    "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"inout\", \"dtype\": \"f32\", \"dims\": [\"N\"], "
    "\"strides\": [1], \"align\": 32},\n"
    "//  {\"kind\": \"dynamic\", \"name\": \"N\", \"divisor\": 8}],\n"
    "// \"requires\": [], \"grid\": [\"ceildiv(N, 32)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}]}\n";

static int64_t planned_size(const tl_kernel *kernel) {
  return kernel->plan.arguments ? kernel->plan.arguments[0].tensor.shape[0] : -1;
}

// Of a kernel's two versions the one that is launched is planned, and the other one is left as it was. With names that
// come and go no plan is of the same arguments as the one before.
START_TEST(plans_the_version_that_it_takes) {
  bool by_names = _i == 1;
  tl_program *program;
  tl_kernel *kernel;
  tl_status status = load("}]}\n", version_text, &program);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert(!tl_program_kernel(program, "k", &kernel));
  static float data[64] __attribute__((aligned(32)));
  static const struct {
    int64_t size;
    int offset;  // floats
    bool took;
    int64_t planned, planned_version;
  } rows[] = {{64, 0, true, -1, 64},  {64, 0, true, -1, 64},  {60, 0, false, 60, 64}, {60, 0, false, 60, 64},
              {64, 4, false, 64, 64}, {64, 0, true, 64, 64},  {48, 4, false, 48, 64}, {48, 0, true, 48, 48},
              {40, 0, true, 48, 40},  {60, 0, false, 60, 40}, {40, 0, true, 60, 40},  {60, 4, false, 60, 40}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tl_argument argument =
        tl_argument_tensor(!by_names || i % 2 ? "A" : NULL, data + rows[i].offset, "f32", 1, &rows[i].size);
    status = tl_kernel_launch(kernel, &argument, 1, NULL);
    ck_assert_msg(!status, "%zu: %s", i, tl_status_message(status));
    ck_assert_msg(tl_kernel_took_version(kernel) == rows[i].took, "%zu", i);
    ck_assert_msg(planned_size(kernel) == rows[i].planned, "%zu: the kernel itself was planned", i);
    ck_assert_msg(planned_size(kernel->aligned) == rows[i].planned_version, "%zu: the version was planned", i);
  }
  // What neither takes is told of the kernel itself, and with its own alignment.
  static const int64_t size = 64;
  tl_argument argument = tl_argument_tensor("A", (char *)data + 4, "f32", 1, &size);
  status = tl_kernel_launch(kernel, &argument, 1, NULL);
  ck_assert_ptr_nonnull(
      strstr(tl_status_message(status), "launching 'k': argument 'A': expected a pointer aligned to 16"));
  tl_status_free(status);
  argument.tensor.data = (void *)0xbeec0;
  argument.kind = TL_ARGUMENT_INT;
  status = tl_kernel_launch(kernel, &argument, 1, NULL);
  ck_assert_str_eq(tl_status_message(status), "launching 'k': argument 'A': expected a tensor, given a number");
  tl_status_free(status);
  tl_program_destroy(program);
}
END_TEST

// What a stream that does not wait for the default stream reads next is there.
START_TEST(uploads_are_done_when_they_return) {
  int32_t memory[8] = {0}, host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  tl_status status = tl_device_upload(device, memory, host, sizeof host);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_mem_eq(memory, host, sizeof host);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_driver");
  TCase *tests = tcase_create("driver");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, reports_name_number_and_text);
  tcase_add_test(tests, attaches_the_jit_log);
  tcase_add_test(tests, refuses_what_cannot_run);
  tcase_add_test(tests, launches_with_a_workspace);
  tcase_add_test(tests, uploads_are_done_when_they_return);
  tcase_add_test(tests, refuses_grids_past_the_hardware);
  tcase_add_loop_test(tests, plans_the_version_that_it_takes, 0, 2);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
