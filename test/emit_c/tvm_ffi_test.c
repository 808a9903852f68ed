// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of --emit=tvm-ffi as tvm-ffi calls them, over the emulated driver. This program is the library in whose
// place it stands: it has the two functions that they look for.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

typedef struct any {
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t as_int;
    double as_float;
    void *as_pointer;
  } value;
} any;
typedef struct tensor {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
// As an object: 24 bytes before the tensor.
typedef struct tensor_object {
  uint64_t references;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void *, int);
  tensor t;
} tensor_object;

typedef int function(void *self, const any *args, int32_t num_args, any *result);
function __tvm_ffi_va, __tvm_ffi_names, __tvm_ffi_taken, __tvm_ffi_optional, __tvm_ffi_forms;
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

static char raised[2048];
static int streams;

__attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  snprintf(raised, sizeof raised, "%s: %s", kind, message);
}
__attribute__((visibility("default"))) void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id) {
  streams += device_type == 2 && device_id == 0;
  return NULL;
}

static gpu_driver gpu;
static int failures;

static void expect(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

// Calls; NULL: it succeeds.
static void call(function *f, const any *args, int num, const char *says) {
  any result = {99, 0, {99}};
  raised[0] = '\0';
  int code = f(NULL, args, num, &result);
  int right = says ? code == -1 && strstr(raised, says) : code == 0 && result.type_index == 0;
  if (!right) fprintf(stderr, "FAILED: %d '%s', expected '%s'\n", code, raised, says ? says : "");
  failures += !right;
}

static any pointer(tensor *t) {
  any result = {7, 0, {0}};
  result.value.as_pointer = t;
  return result;
}
static any number(int64_t value) {
  any result = {1, 0, {value}};
  return result;
}
static any real(double value) {
  any result = {3, 0, {0}};
  result.value.as_float = value;
  return result;
}

enum { N = 1000 };

static void test_vectors(void) {
  float a[N], c[N];
  for (int i = 0; i < N; i++) a[i] = (float)i;
  char *A = gpu_put(&gpu, a, sizeof a), *C = gpu_put(&gpu, NULL, sizeof c);
  int64_t shape[] = {N}, strides[] = {1}, longer[] = {N + 1}, wide[] = {2};
  tensor x = {A, 2, 0, 1, 2, 32, 1, shape, strides, 0}, y = {C, 2, 0, 1, 2, 32, 1, shape, NULL, 0};
  tensor_object object = {1, 70, 0, NULL, x};
  any args[] = {pointer(&x), {70, 0, {0}}, pointer(&y)};
  args[1].value.as_pointer = &object;
  call(__tvm_ffi_va, args, 3, NULL);
  expect(streams == 1, "the stream is the environment's");
  gpu_check(gpu.download(c, (gpu_address)(size_t)C, sizeof c), "cuMemcpyDtoH");
  expect(c[999] == 1998, "the sum");
  call(__tvm_ffi_va, args, 2, "TypeError: va takes 3 arguments, 2 were given");
  args[1] = number(3);
  call(__tvm_ffi_va, args, 3, "TypeError: argument 'B': expected a tensor");
  tensor wrong = x;
  args[1] = pointer(&wrong);
  wrong.device_type = 1;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': expected memory of a GPU, given memory of the host (1)");
  wrong = x;
  wrong.bits = 16;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': expected dtype float32, given float16");
  wrong = x;
  wrong.ndim = 2;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': expected 1 dimensions, given 2");
  wrong = x;
  wrong.shape = longer;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': dimension 0: expected 1000, given 1001");
  wrong = x;
  wrong.strides = wide;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': stride of dimension 0: expected 1, given 2");
  wrong = x;
  wrong.device_id = 1;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': expected memory of GPU 0, given memory of GPU 1");
  wrong = x;
  wrong.byte_offset = 4;
  call(__tvm_ffi_va, args, 3, "ValueError: argument 'B': expected a pointer aligned to 16 bytes");
  wrong.data = A - 4;
  call(__tvm_ffi_va, args, 3, NULL);
  gpu_take(&gpu, A, NULL, 0);
  gpu_take(&gpu, C, NULL, 0);
}

static void test_optional(void) {
  float a[N], c[N];
  for (int i = 0; i < N; i++) a[i] = (float)i;
  char *A = gpu_put(&gpu, a, sizeof a), *C = gpu_put(&gpu, NULL, sizeof c);
  int64_t shape[] = {N}, longer[] = {N + 1};
  tensor x = {A, 2, 0, 1, 2, 32, 1, shape, NULL, 0}, y = {C, 2, 0, 1, 2, 32, 1, shape, NULL, 0}, wrong = x;
  any args[] = {pointer(&x), pointer(&x), pointer(&y)};
  call(__tvm_ffi_optional, args, 3, NULL);
  gpu_check(gpu.download(c, (gpu_address)(size_t)C, sizeof c), "cuMemcpyDtoH");
  expect(c[999] == 1998, "a bias");
  args[1] = (any){0, 0, {0}};
  call(__tvm_ffi_optional, args, 3, NULL);
  gpu_check(gpu.download(c, (gpu_address)(size_t)C, sizeof c), "cuMemcpyDtoH");
  expect(c[999] == 1099, "no bias");
  wrong.shape = longer;
  args[1] = pointer(&wrong);
  call(__tvm_ffi_optional, args, 3, "ValueError: argument 'b': dimension 0: expected 1000, given 1001");
  args[0] = (any){0, 0, {0}};
  call(__tvm_ffi_optional, args, 3, "TypeError: argument 'X': expected a tensor");
  gpu_take(&gpu, A, NULL, 0);
  gpu_take(&gpu, C, NULL, 0);
}

// Scalars, a stride that a tensor tells, a condition.
// The stride of a dimension of one element may be anything: it tells no size, and has no divisor.
static void test_one_row(void) {
  float x[64], y[64];
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  void *X = gpu_put(&gpu, x, sizeof x), *Y = gpu_put(&gpu, NULL, sizeof y);
  int64_t shape[] = {1, 64}, strides[] = {3, 1}, shape_y[] = {1, 64, 1}, strides_y[] = {9, 1, 5};
  tensor in = {X, 2, 0, 2, 2, 32, 1, shape, strides, 0}, out = {Y, 2, 0, 2, 2, 32, 1, shape, NULL, 0};
  any names[] = {pointer(&in), real(0.5), real(0), real(0), number(0), {2, 0, {0}}, pointer(&out)};
  call(__tvm_ffi_names, names, 7, NULL);
  tensor out3 = {Y, 2, 0, 3, 2, 32, 1, shape_y, strides_y, 0};
  any taken[] = {pointer(&in), real(1), real(2), real(3), real(4), number(5), pointer(&out3)};
  call(__tvm_ffi_taken, taken, 7, NULL);
  shape[0] = 2;
  shape[1] = 32;
  call(__tvm_ffi_taken, taken, 7, "ValueError: argument '_Bool': stride of dimension 0: expected 32, given 3");
  gpu_take(&gpu, Y, y, sizeof y);
  gpu_take(&gpu, X, NULL, 0);
  expect(y[5] == x[5] + 1 + 2 + 3 + 4 + 5, "a row of any stride");
}

static void test_names(void) {
  enum { ROWS = 3, LD = 68 };
  float x[ROWS * LD], y[ROWS * 64];
  for (int i = 0; i < ROWS * LD; i++) x[i] = (float)i;
  void *X = gpu_put(&gpu, x, sizeof x), *Y = gpu_put(&gpu, NULL, sizeof y);
  int64_t shape[] = {ROWS, 64}, strides[] = {LD, 1};
  tensor in = {X, 2, 0, 2, 2, 32, 1, shape, strides, 0}, out = {Y, 2, 0, 2, 2, 32, 1, shape, NULL, 0};
  any args[] = {pointer(&in), real(0.5), real(-1.5), number(2), number(7), {2, 0, {1}}, pointer(&out)};
  call(__tvm_ffi_names, args, 7, NULL);
  args[4] = real(1);
  call(__tvm_ffi_names, args, 7, "TypeError: argument 'inline': expected an integer");
  args[4] = number((int64_t)1 << 31);
  call(__tvm_ffi_names, args, 7, "ValueError: argument 'inline': expected -2147483648 to 2147483647, given 2147483648");
  gpu_take(&gpu, Y, y, sizeof y);
  gpu_take(&gpu, X, NULL, 0);
  expect(y[64 + 5] == x[LD + 5] * 0.5f + 7 - 1.5f + 2 + 1000, "scalars");
}

// A size that no shape tells, and a workspace.
static void test_chain(void) {
  float x[64], z[64];
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  void *X = gpu_put(&gpu, x, sizeof x), *Z = gpu_put(&gpu, NULL, sizeof z), *W = gpu_put(&gpu, NULL, 4096);
  int64_t shape_x[] = {2, 32}, shape_z[] = {64}, bytes[] = {4096}, few[] = {256};
  tensor in = {X, 2, 0, 2, 2, 32, 1, shape_x, NULL, 0}, out = {Z, 2, 0, 1, 2, 32, 1, shape_z, NULL, 0};
  tensor workspace = {W, 2, 0, 1, 1, 8, 1, bytes, NULL, 0};
  any args[] = {pointer(&in), real(2), number(5), pointer(&out), number(8), pointer(&workspace)};
  call(__tvm_ffi_forms, args, 6, NULL);
  workspace.shape = few;
  call(__tvm_ffi_forms, args, 6, "ValueError: the workspace has 256 bytes, 2304 are needed");
  workspace.shape = bytes;
  args[4] = number(6);
  call(__tvm_ffi_forms, args, 6, "ValueError: 'rows' is 6, expected a multiple of 4");
  gpu_take(&gpu, Z, z, sizeof z);
  gpu_take(&gpu, X, NULL, 0);
  gpu_take(&gpu, W, NULL, 0);
  expect(z[3] == ((2 * x[3] + 5) * 2 + 32 + 8 + 1) * 4 + 3 + 3, "the chain");
}

int main(void) {
  if (!gpu_open(&gpu)) return 1;
  test_vectors();
  test_names();
  test_one_row();
  test_optional();
  test_chain();
  if (!failures) puts("tvm-ffi: all right");
  return failures != 0;
}
