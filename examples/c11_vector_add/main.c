// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles a spec that stands in this file and runs it on the first GPU, without one in the emulator.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tl.h"

static const char spec[] =
    "kernel: scale_add\n"
    "params:\n"
    "  N: dynamic\n"
    "  block: 1024\n"
    "args:\n"
    "  alpha: in f32\n"
    "  X: in f32[N]\n"
    "  Y: inout f32[N]\n"
    "grid:\n"
    "  bx: ceildiv(N, block)\n"
    "threads: 256\n"
    "body:\n"
    "  - parallel: i in block\n"
    "    do:\n"
    "      - Y[bx * block + i] += alpha * X[bx * block + i]\n";

enum { COUNT = 100003 };

static void check(tl_status status) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", tl_status_code_name(tl_status_code_of(status)), tl_status_message(status));
  tl_status_free(status);
  exit(1);
}

static tl_compilation *compile(int compute_capability) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  check(tl_compiler_create(&compiler));
  if (compute_capability) check(tl_compiler_set_target_for_device(compiler, compute_capability));
  tl_status status = tl_compiler_compile(compiler, "scale_add.yaml", spec, strlen(spec), &compilation);
  if (tl_status_code_of(status) == TL_STATUS_DIAGNOSTICS) {
    fputs(tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_TEXT), stderr);
  }
  check(status);
  tl_compiler_destroy(compiler);
  return compilation;
}

static void run(tl_device *device, tl_kernel *kernel) {
  static float x[COUNT], y[COUNT], result[COUNT];
  for (int i = 0; i < COUNT; i++) {
    x[i] = (float)(i % 1000);
    y[i] = (float)(i % 7);
  }
  void *device_x, *device_y;
  check(tl_device_alloc(device, sizeof x, &device_x));
  check(tl_device_alloc(device, sizeof y, &device_y));
  check(tl_device_upload(device, device_x, x, sizeof x));
  check(tl_device_upload(device, device_y, y, sizeof y));
  const int64_t shape[] = {COUNT};
  const tl_argument arguments[] = {tl_argument_float("alpha", 0.5), tl_argument_tensor("X", device_x, "f32", 1, shape),
                                   tl_argument_tensor("Y", device_y, "f32", 1, shape)};
  check(tl_kernel_launch(kernel, arguments, 3, NULL));
  check(tl_stream_synchronize(device, NULL));
  check(tl_device_download(device, result, device_y, sizeof result));
  for (int i = 0; i < COUNT; i++) {
    if (fabsf(result[i] - (y[i] + 0.5f * x[i])) > 1e-3f) {
      fprintf(stderr, "element %d is %g, expected %g\n", i, (double)result[i], (double)(y[i] + 0.5f * x[i]));
      exit(1);
    }
  }
  check(tl_device_free(device, device_x));
  check(tl_device_free(device, device_y));
}

// The emulator checks what the kernel does and reports it as a status: for tests, not for speed.
static tl_device *open_device(void) {
  tl_device *device;
  tl_status status = tl_device_open(0, &device);
  if (tl_status_code_of(status) != TL_STATUS_NO_DEVICE) {
    check(status);
    return device;
  }
  tl_status_free(status);
  check(tl_device_open_emulator(NULL, &device));
  return device;
}

int main(void) {
  // The compile needs no GPU.
  tl_compilation_destroy(compile(0));
  tl_device *device = open_device();
  tl_program *program;
  tl_kernel *kernel;
  tl_compilation *compilation = compile(tl_device_compute_capability(device));
  size_t bytes;
  const char *ptx = tl_compilation_ptx(compilation, &bytes);
  check(tl_program_load(device, ptx, bytes, &program));
  check(tl_program_kernel(program, "scale_add", &kernel));
  run(device, kernel);
  printf("libtl %s: %d elements right on %s\n", tl_version(), COUNT, tl_device_name(device));
  tl_program_destroy(program);
  tl_compilation_destroy(compilation);
  tl_device_close(device);
  return 0;
}
