// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl's emulator as a caller uses it: kernels run without a GPU, and what its checks find is a status.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tl/tl.h"

static int failures;

static void expect(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

// The code, and a part of the message.
static void expect_status(tl_status status, tl_status_code code, const char *says, const char *what) {
  int right = tl_status_code_of(status) == code && strstr(tl_status_message(status), says);
  if (!right)
    fprintf(stderr, "FAILED: %s: %s: %s\n", what, tl_status_code_name(tl_status_code_of(status)),
            tl_status_message(status));
  failures += !right;
  tl_status_free(status);
}

static void must(tl_status status) {
  if (!status) return;
  fprintf(stderr, "%s\n", tl_status_message(status));
  exit(1);
}

static tl_compilation *compile(const char *path, const char *target, const char *const *bindings) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  must(tl_compiler_create(&compiler));
  must(tl_compiler_set_target(compiler, target));
  for (; bindings && bindings[0]; bindings += 2) must(tl_compiler_bind(compiler, bindings[0], bindings[1]));
  must(tl_compiler_compile_file(compiler, path, &compilation));
  tl_compiler_destroy(compiler);
  return compilation;
}

static tl_program *load(tl_device *device, tl_compilation *compilation) {
  tl_program *program;
  size_t bytes;
  const char *ptx = tl_compilation_ptx(compilation, &bytes);
  must(tl_program_load(device, ptx, bytes, &program));
  tl_compilation_destroy(compilation);
  return program;
}

static void *upload(tl_device *device, const void *from, size_t bytes) {
  void *memory;
  must(tl_device_alloc(device, bytes, &memory));
  if (from) must(tl_device_upload(device, memory, from, bytes));
  return memory;
}

enum { N = 1000 };

static void test_findings(void) {
  tl_device *device;
  tl_kernel *kernel;
  must(tl_device_open_emulator(NULL, &device));
  expect(strcmp(tl_device_name(device), "the emulator") == 0, "its name");
  expect(tl_device_compute_capability(device) == 90 && tl_device_num_sms(device) == 3, "its facts");
  tl_program *program = load(device, compile("kernels/vector_add.yaml", "sm_80", NULL));
  must(tl_program_kernel(program, NULL, &kernel));
  float host[N], result[N];
  for (int i = 0; i < N; i++) host[i] = (float)i;
  void *a = upload(device, host, sizeof host), *c = upload(device, NULL, sizeof host);
  void *unwritten = upload(device, NULL, sizeof host);
  const int64_t shape[] = {N}, longer[] = {N + 4};
  tl_argument arguments[] = {tl_argument_tensor("A", a, "f32", 1, shape), tl_argument_tensor("B", a, "f32", 1, shape),
                             tl_argument_tensor("C", c, "f32", 1, shape)};
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_OK, "", "a launch");
  must(tl_device_download(device, result, c, sizeof result));
  int right = 1;
  for (int i = 0; i < N; i++) right = right && result[i] == 2 * host[i];
  expect(right, "the sum");
  arguments[1].tensor.data = unwritten;
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_CHECK_FAILED, "uninitialised",
                "memory that nobody wrote");
  must(tl_device_fill(device, unwritten, 0, sizeof host, NULL));
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_OK, "", "memory that was filled");
  for (int i = 0; i < 3; i++) arguments[i].tensor.shape = longer;
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_CHECK_FAILED, "past the end of a buffer",
                "a shape that is larger than its memory");
  for (int i = 0; i < 3; i++) arguments[i].tensor.shape = shape;
  arguments[0].tensor.data = host;
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_INVALID_ARGUMENT, "argument 'A'",
                "memory that is not the device's");
  arguments[0].tensor.data = a;
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_OK, "", "a launch after failures");
  tl_program_destroy(program);
  for (int i = 0; i < 3; i++) must(tl_device_free(device, (void *[]){a, c, unwritten}[i]));
  expect_status(tl_device_upload(device, a, host, 4), TL_STATUS_DRIVER, "CUDA_ERROR_INVALID_VALUE", "freed memory");
  tl_device_close(device);
}

static void test_options(void) {
  tl_device *device = NULL;
  expect_status(tl_device_open_emulator(&(tl_emulator_options){.checks = "race,oops"}, &device),
                TL_STATUS_INVALID_ARGUMENT, "there is no check 'oops'", "an unknown check");
  expect_status(tl_device_open_emulator(&(tl_emulator_options){.landing = "never"}, &device),
                TL_STATUS_INVALID_ARGUMENT, "expected late or early", "an unknown landing");
  expect_status(tl_device_open_emulator(&(tl_emulator_options){.threads = -1}, &device), TL_STATUS_INVALID_ARGUMENT,
                "negative", "negative threads");
  expect_status(tl_device_open_emulator(NULL, NULL), TL_STATUS_INVALID_ARGUMENT, "out_device", "no place");
  expect(!device, "no device after failures");
  must(tl_device_open_emulator(NULL, &device));
  void *memory = NULL;
  expect_status(tl_device_alloc(device, (size_t)1 << 44, &memory), TL_STATUS_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY",
                "more memory than there is");
  expect(!memory, "no memory after a failure");
  tl_device_close(device);
  // As many as there may be at once, many times.
  for (int i = 0; i < 100; i++) {
    must(tl_device_open_emulator(&(tl_emulator_options){.checks = "none", .compute_capability = 80}, &device));
    if (i < 99) tl_device_close(device);
  }
  tl_compilation *compilation = compile("kernels/vector_add.yaml", "sm_90a", NULL);
  size_t bytes;
  const char *ptx = tl_compilation_ptx(compilation, &bytes);
  tl_program *program;
  expect_status(tl_program_load(device, ptx, bytes, &program), TL_STATUS_UNSUPPORTED, "was compiled for sm_90a",
                "code for a newer GPU");
  expect_status(tl_program_load_image(device, "\177ELF....", 8, tl_compilation_manifest(compilation, NULL),
                                      strlen(tl_compilation_manifest(compilation, NULL)), &program),
                TL_STATUS_UNSUPPORTED, "sm_90a", "a cubin");
  tl_compilation_destroy(compilation);
  tl_device_close(device);
}

// Tensor maps, products and mbarriers of sm_90a; C = A @ B of ones.
static void test_matmul(void) {
  enum { SIZE = 128 };
  const char *const bindings[] = {"M", "128", "N", "128", "K", "128", "dtype", "bf16", NULL};
  tl_device *device;
  tl_kernel *kernel;
  must(tl_device_open_emulator(&(tl_emulator_options){.checks = "race,proxy"}, &device));
  tl_program *program = load(device, compile("kernels/matmul.yaml", "sm_90a", bindings));
  must(tl_program_kernel(program, NULL, &kernel));
  static uint16_t ones[SIZE * SIZE], result[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; i++) ones[i] = 0x3f80;  // 1 in bf16
  void *a = upload(device, ones, sizeof ones), *c = upload(device, NULL, sizeof ones);
  const int64_t shape[] = {SIZE, SIZE};
  const tl_argument arguments[] = {tl_argument_tensor(NULL, a, "bf16", 2, shape),
                                   tl_argument_tensor(NULL, a, "bf16", 2, shape),
                                   tl_argument_tensor(NULL, c, "bf16", 2, shape)};
  void *stream;
  must(tl_stream_create(device, &stream));
  expect_status(tl_kernel_launch(kernel, arguments, 3, stream), TL_STATUS_OK, "", "a product");
  must(tl_stream_synchronize(device, stream));
  must(tl_stream_destroy(device, stream));
  must(tl_device_download(device, result, c, sizeof result));
  int right = 1;
  for (int i = 0; i < SIZE * SIZE; i++) right = right && result[i] == 0x4300;  // 128
  expect(right, "the product");
  tl_program_destroy(program);
  must(tl_device_free(device, a));
  must(tl_device_free(device, c));
  tl_device_close(device);
}

// Address space that runs out is a status, and the next launch goes on. A sanitizer's own memory is more than any
// limit.
static void test_memory(void) {
#ifndef TL_TEST_SANITIZED
  tl_device *device;
  tl_kernel *kernel;
  must(tl_device_open_emulator(NULL, &device));
  tl_program *program = load(device, compile("kernels/vector_add.yaml", "sm_80", NULL));
  must(tl_program_kernel(program, NULL, &kernel));
  static float host[N];
  void *a = upload(device, host, sizeof host);
  const int64_t shape[] = {N};
  const tl_argument arguments[] = {tl_argument_tensor("A", a, "f32", 1, shape),
                                   tl_argument_tensor("B", a, "f32", 1, shape),
                                   tl_argument_tensor("C", a, "f32", 1, shape)};
  struct rlimit unlimited, limit;
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) exit(1);
  fclose(file);
  getrlimit(RLIMIT_AS, &unlimited);
  limit = unlimited;
  limit.rlim_cur = (rlim_t)pages * 4096 + (64 << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) exit(1);
  tl_status status = tl_kernel_launch(kernel, arguments, 3, NULL);
  void *more = NULL;
  tl_status refused = tl_device_alloc(device, (size_t)1 << 30, &more);
  setrlimit(RLIMIT_AS, &unlimited);
  expect_status(status, TL_STATUS_OUT_OF_MEMORY, "emulator: cannot map", "a launch without address space");
  expect_status(refused, TL_STATUS_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "memory of the device");
  expect_status(tl_kernel_launch(kernel, arguments, 3, NULL), TL_STATUS_OK, "", "the next launch");
  tl_program_destroy(program);
  must(tl_device_free(device, a));
  tl_device_close(device);
#endif
}

int main(void) {
  test_memory();
  test_findings();
  test_options();
  test_matmul();
  if (failures == 0) puts("libtl's emulator: all right");
  return failures != 0;
}
