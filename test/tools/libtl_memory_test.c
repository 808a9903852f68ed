// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl when memory runs out: every allocation of a call fails from some point on, and the call is OUT_OF_MEMORY, or
// needs no memory; nothing aborts, and the next call goes on. The allocator of this program stands before the
// library's.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tl.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);

// Allocations until they fail; below 0: they do not. Whether all later ones do, or that one.
static long left = -1;
static int lasts;
static int has_failed;

static int fails(void) {
  if (__atomic_load_n(&left, __ATOMIC_RELAXED) < 0) return 0;
  if (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0) return 0;
  __atomic_store_n(&left, lasts ? 0 : -1, __ATOMIC_RELAXED);
  has_failed = 1;
  errno = ENOMEM;
  return 1;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *malloc(size_t size) {
  return fails() ? NULL : __libc_malloc(size);
}
EXPORTED void *calloc(size_t count, size_t size) {
  return fails() ? NULL : __libc_calloc(count, size);
}
EXPORTED void *realloc(void *pointer, size_t size) {
  return fails() ? NULL : __libc_realloc(pointer, size);
}

static int failures;

static void must(tl_status status) {
  if (!status) return;
  fprintf(stderr, "%s\n", tl_status_message(status));
  exit(1);
}

// What runs with little memory. `work` returns the status of its call and gives back what it made.
typedef tl_status work_fn(void *user);

// The further in, the larger the steps: by a `part` of the allocations so far.
static void run_with_little(const char *what, int forever, long part, work_fn *work, void *user) {
  lasts = forever;
  int ran_out = 0, whole = 0;
  for (long n = 0; n < 4000000 && !whole; n += 1 + n / part) {
    has_failed = 0;
    __atomic_store_n(&left, n, __ATOMIC_RELAXED);
    tl_status status = work(user);
    whole = !has_failed;
    __atomic_store_n(&left, -1, __ATOMIC_RELAXED);
    tl_status_code code = tl_status_code_of(status);
    if (code != TL_STATUS_OK && code != TL_STATUS_OUT_OF_MEMORY) {
      fprintf(stderr, "FAILED: %s, %ld allocations: %s: %s\n", what, n, tl_status_code_name(code),
              tl_status_message(status));
      failures++;
    }
    ran_out += code == TL_STATUS_OUT_OF_MEMORY;
    tl_status_free(status);
  }
  if (!whole || !ran_out) {
    fprintf(stderr, "FAILED: %s: %d calls ran out of memory, the last one was%s whole\n", what, ran_out,
            whole ? "" : " not");
    failures++;
  }
}

typedef struct context {
  const char *ptx;
  size_t bytes;
  tl_device *device;
  tl_program *program;
  tl_kernel *kernel;
  void *memory;
} context;

static tl_status compile(void *user) {
  (void)user;
  tl_compiler *compiler = NULL;
  tl_compilation *compilation = NULL;
  tl_status status = tl_compiler_create(&compiler);
  if (!status) status = tl_compiler_bind(compiler, "block", "512");
  if (!status) status = tl_compiler_compile_file(compiler, "kernels/vector_add.yaml", &compilation);
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
  return status;
}

static tl_status open_and_close(void *user) {
  (void)user;
  tl_device *device = NULL;
  tl_status status = tl_device_open_emulator(NULL, &device);
  tl_device_close(device);
  return status;
}

static tl_status load(void *user) {
  context *c = user;
  tl_program *program = NULL;
  tl_status status = tl_program_load(c->device, c->ptx, c->bytes, &program);
  tl_program_destroy(program);
  return status;
}

static tl_status allocate(void *user) {
  context *c = user;
  void *memory = NULL;
  tl_status status = tl_device_alloc(c->device, 4096, &memory);
  if (!status) status = tl_device_free(c->device, memory);
  return status;
}

static tl_status launch(void *user) {
  context *c = user;
  const int64_t shape[] = {5000};
  const tl_argument arguments[] = {tl_argument_tensor("A", c->memory, "f32", 1, shape),
                                   tl_argument_tensor("B", c->memory, "f32", 1, shape),
                                   tl_argument_tensor("C", c->memory, "f32", 1, shape)};
  return tl_kernel_launch(c->kernel, arguments, 3, NULL);
}

int main(void) {
  context c = {0};
  tl_compiler *compiler;
  tl_compilation *compilation;
  must(tl_compiler_create(&compiler));
  must(tl_compiler_compile_file(compiler, "kernels/vector_add.yaml", &compilation));
  c.ptx = tl_compilation_ptx(compilation, &c.bytes);
  must(tl_device_open_emulator(&(tl_emulator_options){.threads = 2}, &c.device));
  must(tl_program_load(c.device, c.ptx, c.bytes, &c.program));
  must(tl_program_kernel(c.program, NULL, &c.kernel));
  must(tl_device_alloc(c.device, 20000, &c.memory));
  must(tl_device_fill(c.device, c.memory, 0, 20000, NULL));
  run_with_little("a device", 1, 4, open_and_close, NULL);
  run_with_little("memory of a device", 1, 4, allocate, &c);
  run_with_little("a launch", 1, 1000, launch, &c);
  run_with_little("an allocation of a launch", 0, 1000, launch, &c);
  must(launch(&c));
  run_with_little("a program", 0, 4, load, &c);
  run_with_little("a compile", 0, 4, compile, NULL);
  must(compile(NULL));
  tl_program_destroy(c.program);
  must(tl_device_free(c.device, c.memory));
  tl_device_close(c.device);
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
  if (!failures) puts("libtl without memory: all right");
  return failures != 0;
}
