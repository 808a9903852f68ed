// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a launch takes on the host: generated C and libtl, checks included, beside a bare cuLaunchKernel of the same
// PTX, in one process. Usage: launch_cost VECTOR_ADD.yaml MATMUL_DYNAMIC.yaml [ROWS [LAUNCHES]]. Exit 77 without a GPU
// (or a driver by TL_CUDA_DRIVER).
//
// A row is LAUNCHES launches on a stream that is empty before; its time is that until the last one returned. Rows of
// all forms are taken in turns, so that a clock that changes meets all of them. Best and median of the rows in ns a
// launch: the median holds what a full queue of the driver makes the host wait.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu.h"
#include "matmul.h"
#include "tl/tl.h"
#include "vadd.h"

enum { MAX_ROWS = 1001, N = 4096, SIDE = 256, THREADS = 256, ELEMENTS = 1024 };

// What the rows launch; addresses are the driver's.
typedef struct Bench {
  gpu_driver gpu;
  void *driver, *stream, *function;
  unsigned (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                     void **);
  tl_program *programs[2];
  tl_kernel *add, *multiply;
  void *a, *b, *c;
  int launches;
  tl_argument add_arguments[3], multiply_arguments[3];
} Bench;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "launch_cost: %s: %s\n", what, why ? why : "");
  exit(1);
}

static void check(tl_status status, const char *what) {
  if (status) fail(what, tl_status_message(status));
}

static void *symbol(const Bench *bench, const char *name) {
  void *function = dlsym(bench->driver, name);
  if (!function) fail("the driver lacks", name);
  return function;
}

static void bare(Bench *bench) {
  int64_t n = N;
  void *params[] = {&bench->a, &bench->b, &bench->c, &n};
  gpu_check(bench->launch(bench->function, (N + ELEMENTS - 1) / ELEMENTS, 1, 1, THREADS, 1, 1, 0, bench->stream, params,
                          NULL),
            "cuLaunchKernel");
}

static void generated_add(Bench *bench) {
  if (vadd_launch(bench->stream, bench->a, bench->b, bench->c, N)) fail("vector_add", vadd_error());
}

static void generated_multiply(Bench *bench) {
  if (matmul_launch(bench->stream, bench->a, bench->b, bench->c, SIDE, SIDE, SIDE)) fail("matmul", matmul_error());
}

static void library_add(Bench *bench) {
  check(tl_kernel_launch(bench->add, bench->add_arguments, 3, bench->stream), "vector_add");
}
static void library_multiply(Bench *bench) {
  check(tl_kernel_launch(bench->multiply, bench->multiply_arguments, 3, bench->stream), "matmul");
}
static void check_add(Bench *bench) {
  check(tl_kernel_check(bench->add, bench->add_arguments, 3), "vector_add");
}
static void check_multiply(Bench *bench) {
  check(tl_kernel_check(bench->multiply, bench->multiply_arguments, 3), "matmul");
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double row(Bench *bench, void (*launch)(Bench *)) {
  gpu_check(bench->gpu.synchronize(bench->stream), "cuStreamSynchronize");
  double start = now();
  for (int i = 0; i < bench->launches; i++) launch(bench);
  return (now() - start) / bench->launches;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Compiles the spec at `path` for `target` and loads it; `*ptx`, if given, is a copy of its text that the caller frees.
static tl_kernel *load(tl_device *device, const char *path, const char *target, const char *dtype, tl_program **program,
                       char **ptx) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  tl_kernel *kernel;
  size_t bytes;
  check(tl_compiler_create(&compiler), path);
  check(tl_compiler_bind(compiler, "dtype", dtype), path);
  check(tl_compiler_set_target(compiler, target), path);
  check(tl_compiler_compile_file(compiler, path, &compilation), path);
  const char *text = tl_compilation_ptx(compilation, &bytes);
  if (ptx) *ptx = strdup(text);
  check(tl_program_load(device, text, bytes, program), path);
  check(tl_program_kernel(*program, NULL, &kernel), path);
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
  return kernel;
}

static void prepare(Bench *bench, tl_device *device, char **paths) {
  static const int64_t vector[] = {N}, square[] = {SIDE, SIDE};
  const char *path = getenv("TL_CUDA_DRIVER");
  bench->driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
  unsigned (*create)(void **, unsigned), (*load_module)(void **, const void *, unsigned, void *, void *),
      (*get)(void **, void *, const char *);
  *(void **)&create = symbol(bench, "cuStreamCreate");
  *(void **)&load_module = symbol(bench, "cuModuleLoadDataEx");
  *(void **)&get = symbol(bench, "cuModuleGetFunction");
  *(void **)&bench->launch = symbol(bench, "cuLaunchKernel");
  char *ptx;
  void *module;
  bench->add = load(device, paths[0], "sm_80", "f32", &bench->programs[0], &ptx);
  bench->multiply = load(device, paths[1], "sm_90a", "bf16", &bench->programs[1], NULL);
  gpu_check(create(&bench->stream, 1), "cuStreamCreate");  // 1: does not wait for the default stream
  gpu_check(load_module(&module, ptx, 0, NULL, NULL), "cuModuleLoadDataEx");
  gpu_check(get(&bench->function, module, "vector_add"), "cuModuleGetFunction");
  free(ptx);
  size_t bytes = (size_t)SIDE * SIDE * 4;
  char *zeros = calloc(1, bytes);
  if (!zeros) fail("memory", "too little");
  void **memory[] = {&bench->a, &bench->b, &bench->c};
  for (int i = 0; i < 3; i++) *memory[i] = gpu_put(&bench->gpu, zeros, bytes);
  free(zeros);
  static const char *const names[] = {"A", "B", "C"};
  for (int i = 0; i < 3; i++) {
    bench->add_arguments[i] = tl_argument_tensor(names[i], *memory[i], "f32", 1, vector);
    bench->multiply_arguments[i] = tl_argument_tensor(names[i], *memory[i], "bf16", 2, square);
  }
}

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    void (*launch)(Bench *);
  } forms[] = {
      {"cuLaunchKernel of vector_add", bare},
      {"generated C: vector_add", generated_add},
      {"tl_kernel_launch: vector_add", library_add},
      {"tl_kernel_check: vector_add", check_add},
      {"generated C: matmul_dynamic, two tensor maps", generated_multiply},
      {"tl_kernel_launch: matmul_dynamic", library_multiply},
      {"tl_kernel_check: matmul_dynamic", check_multiply},
  };
  enum { FORMS = sizeof forms / sizeof *forms };
  static double times[FORMS][MAX_ROWS];
  static Bench bench;
  tl_device *device;
  int rows = count > 3 ? atoi(arguments[3]) : 101;
  bench.launches = count > 4 ? atoi(arguments[4]) : 200;
  if (count < 3 || bench.launches < 1 || rows < 1 || rows > MAX_ROWS)
    fail("usage", "launch_cost VECTOR_ADD.yaml MATMUL_DYNAMIC.yaml [ROWS [LAUNCHES]]");
  if (!gpu_open(&bench.gpu) || tl_device_open(0, &device)) {
    printf("no GPU: skipped\n");
    return 77;
  }
  prepare(&bench, device, arguments + 1);
  for (int form = 0; form < FORMS; form++) row(&bench, forms[form].launch);
  for (int i = 0; i < rows; i++)
    for (int form = 0; form < FORMS; form++) times[form][i] = row(&bench, forms[form].launch);
  printf("%-46s %8s %8s %8s\n", "ns a launch", "best", "median", "x bare");
  for (int form = 0; form < FORMS; form++) qsort(times[form], (size_t)rows, sizeof *times[form], by_value);
  for (int form = 0; form < FORMS; form++)
    printf("%-46s %8.0f %8.0f %8.3f\n", forms[form].name, times[form][0], times[form][rows / 2],
           times[form][0] / times[0][0]);
  gpu_check(bench.gpu.synchronize(bench.stream), "cuStreamSynchronize");
  for (int i = 0; i < 2; i++) tl_program_destroy(bench.programs[i]);
  tl_device_close(device);
  return 0;
}
