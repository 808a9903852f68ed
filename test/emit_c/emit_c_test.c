// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of generated C over the emulated driver (TL_CUDA_DRIVER).
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_either.h"
#include "by_map.h"
#include "cluster.h"
#include "forms.h"
#include "future.h"
#include "gpu.h"
#include "md.h"
#include "names.h"
#include "numbers.h"
#include "optional.h"
#include "pixels.h"
#include "queue.h"
#include "shapes.h"
#include "tl/status.h"
#include "va.h"
#include "versions.h"

_Static_assert((int)TL_KERNEL_INVALID_ARGUMENT == (int)TL_STATUS_INVALID_ARGUMENT, "codes are those of libtl");
_Static_assert((int)TL_KERNEL_UNSUPPORTED == (int)TL_STATUS_UNSUPPORTED, "");
_Static_assert((int)TL_KERNEL_NO_DEVICE == (int)TL_STATUS_NO_DEVICE, "");
_Static_assert((int)TL_KERNEL_DRIVER == (int)TL_STATUS_DRIVER, "");
_Static_assert((int)TL_KERNEL_OUT_OF_MEMORY == (int)TL_STATUS_OUT_OF_MEMORY, "");

enum { N = 1000 };

static gpu_driver gpu;
static int failures;

static void expect(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

static void expect_code(int code, int expected, const char *text, const char *says) {
  if (code == expected && (!code || strstr(text, says))) return;
  fprintf(stderr, "FAILED: %d '%s', expected %d '%s'\n", code, text, expected, says);
  failures++;
}

// A function of the driver.
static void *driver(const char *symbol) {
  void *library = dlopen(getenv("TL_CUDA_DRIVER"), RTLD_NOW), *found = library ? dlsym(library, symbol) : NULL;
  if (!found) exit(1);
  return found;
}

static void test_checks(void) {
  float a[N], c[N], host[8] = {0};
  for (int i = 0; i < N; i++) a[i] = (float)i;
  char *A = gpu_put(&gpu, a, sizeof a), *C = gpu_put(&gpu, NULL, sizeof c);
  expect_code(va_launch(NULL, A, A, C, N), 0, va_error(), "");
  expect_code(va_launch(NULL, A, A, C, -1), TL_KERNEL_INVALID_ARGUMENT, va_error(), "'N' is -1, expected 0 to");
  expect_code(va_launch(NULL, A, A, C, (int64_t)1 << 31), TL_KERNEL_INVALID_ARGUMENT, va_error(), "'N' is 2147483648");
  expect_code(va_launch(NULL, NULL, A, C, N), TL_KERNEL_INVALID_ARGUMENT, va_error(),
              "argument 'A': expected a device");
  expect_code(va_launch(NULL, A, A + 4, C, N), TL_KERNEL_INVALID_ARGUMENT, va_error(),
              "argument 'B': expected a pointer "
              "aligned to 16");
  char *aligned = (char *)host + (16 - (uintptr_t)host % 16) % 16;
  expect_code(va_launch(NULL, A, A, aligned, 4), TL_KERNEL_INVALID_ARGUMENT, va_error(),
              "argument 'C': expected device memory");
  expect_code(va_launch(NULL, NULL, NULL, NULL, 0), 0, va_error(), "");
  // What the emulator finds is the driver's failure, and the next launch is right.
  expect_code(va_launch(NULL, A, A, C, N + 8), TL_KERNEL_DRIVER, va_error(), "past the end of a buffer");
  expect_code(va_launch(NULL, A, A, C, N), 0, va_error(), "");
  gpu_take(&gpu, C, c, sizeof c);
  int right = 1;
  for (int i = 0; i < N; i++) right = right && c[i] == 2 * a[i];
  expect(right, "the sum");
  gpu_take(&gpu, A, NULL, 0);
  expect_code(future_load(), TL_KERNEL_UNSUPPORTED, future_error(),
              "compiled for sm_120: nothing of it runs on a GPU "
              "of sm_90");
}

typedef int product(tl_stream stream, const void *A, const void *B, void *C, int64_t M, int64_t N, int64_t K);

// Ones of bf16 by tensor maps, and tensors without elements. C begins `offset` elements into its memory.
static void multiply(product *launch, const char *(*error)(void), int m, int n, int k, int offset) {
  size_t most = 300 * 300;
  uint16_t *ones = malloc(most * 2);
  for (size_t i = 0; i < most; i++) ones[i] = 0x3f80;
  char *A = gpu_put(&gpu, ones, most * 2), *C = gpu_put(&gpu, ones, most * 2);
  expect_code(launch(NULL, A, A, C + 2 * offset, m, n, k), 0, error(), "");
  gpu_take(&gpu, C, ones, most * 2);
  gpu_take(&gpu, A, NULL, 0);
  uint32_t bits = 0;
  float sum = (float)k;
  memcpy(&bits, &sum, sizeof bits);
  int right = 1;
  for (int i = 0; i < m * n; i++) right = right && ones[offset + i] == bits >> 16;
  expect(right, "the product");
  expect(ones[offset + m * n] == 0x3f80, "what lies behind it");
  free(ones);
}

static void test_products(void) {
  multiply(md_launch, md_error, 130, 136, 40, 0);
  multiply(md_launch, md_error, 8, 16, 128, 0);
  multiply(md_launch, md_error, 20, 24, 0, 0);
  for (int i = 1; i < 7; i++) multiply(md_launch, md_error, i, 8, 8 * i, 0);  // more maps than a thread keeps
  expect_code(md_launch(NULL, NULL, NULL, NULL, 0, 0, 8), 0, md_error(), "");
  expect_code(md_launch(NULL, NULL, NULL, NULL, 4, 12, 8), TL_KERNEL_INVALID_ARGUMENT, md_error(),
              "'N' is 12, expected a multiple of 8");
}

// The emulator finds accesses that are not aligned: a version that does not fit the arguments fails.
static void test_versions(void) {
  multiply(versions_launch, versions_error, 70, 72, 40, 0);
  multiply(versions_launch, versions_error, 70, 71, 40, 0);
  multiply(versions_launch, versions_error, 70, 72, 39, 0);
  multiply(versions_launch, versions_error, 70, 72, 40, 1);
  multiply(versions_launch, versions_error, 70, 72, 40, 8);
  multiply(versions_launch, versions_error, 3, 8, 0, 0);
  expect_code(versions_launch(NULL, NULL, NULL, NULL, 0, 0, 8), 0, versions_error(), "");
  expect_code(versions_launch(NULL, NULL, NULL, NULL, 4, 8, 8), TL_KERNEL_INVALID_ARGUMENT, versions_error(),
              "argument 'A': expected a device pointer");
}

// Blocks take tiles from a queue, whose counter lies in the caller's memory, with whatever is left there.
static void test_queue(void) {
  size_t bytes = 0;
  expect(queue_workspace_bytes(&bytes) == 0 && bytes == 256, "the size of a workspace");
  int64_t left[32];
  for (int i = 0; i < 32; i++) left[i] = 1 - i;
  void *workspaces[2] = {gpu_put(&gpu, left, sizeof left), gpu_put(&gpu, left, sizeof left)};
  int32_t counts[23 * 32] = {0};
  void *Y = gpu_put(&gpu, counts, sizeof counts);
  for (int i = 0; i < 4; i++) expect_code(queue_launch(NULL, Y, workspaces[i % 2], bytes), 0, queue_error(), "");
  expect_code(queue_launch(NULL, Y, workspaces[0], bytes - 1), TL_KERNEL_INVALID_ARGUMENT, queue_error(),
              "the workspace has 255 bytes, 256 are needed");
  expect_code(queue_launch(NULL, Y, NULL, bytes), TL_KERNEL_INVALID_ARGUMENT, queue_error(), "workspace");
  gpu_take(&gpu, Y, counts, sizeof counts);
  for (int i = 0; i < 2; i++) gpu_take(&gpu, workspaces[i], NULL, 0);
  int right = 1;
  for (int i = 0; i < 23 * 32; i++) right = right && counts[i] == 4;
  expect(right, "every tile ran once in each launch");
}

static void test_names(void) {
  enum { ROWS = 3, LD = 68 };
  float x[ROWS * LD], y[ROWS * 64];
  for (int i = 0; i < ROWS * LD; i++) x[i] = (float)i;
  void *X = gpu_put(&gpu, x, sizeof x), *Y = gpu_put(&gpu, NULL, sizeof y);
  expect_code(names_launch(NULL, X, 0.5f, -1.5f, 0.25f, 7, true, Y, ROWS, LD), 0, names_error(), "");
  expect_code(names_launch(NULL, X, 1, 1, 1, 7, true, Y, 150, LD), TL_KERNEL_INVALID_ARGUMENT, names_error(),
              "'names' requires stream < 100 or stream == 200, which does not hold with stream = 150, ld = 68");
  expect_code(names_launch(NULL, X, 1, 1, 1, 7, true, Y, ROWS, LD + 2), TL_KERNEL_INVALID_ARGUMENT, names_error(),
              "'ld' is 70, expected a multiple of 4");
  gpu_take(&gpu, Y, y, sizeof y);
  gpu_take(&gpu, X, NULL, 0);
  int right = 1;
  for (int i = 0; i < ROWS * 64; i++) right = right && y[i] == x[i / 64 * LD + i % 64] * 0.5f + 7 - 1.5f + 0.25f + 1000;
  expect(right, "scalars of every kind");
}

// NULL for an argument that may be absent.
static void test_optional(void) {
  float x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = (float)i;
  char *X = gpu_put(&gpu, x, sizeof x), *Y = gpu_put(&gpu, NULL, sizeof y);
  expect_code(optional_launch(NULL, X, X, Y, N), 0, optional_error(), "");
  gpu_check(gpu.download(y, (gpu_address)(size_t)Y, sizeof y), "cuMemcpyDtoH");
  expect(y[999] == 1998, "a bias");
  expect_code(optional_launch(NULL, X, NULL, Y, N), 0, optional_error(), "");
  gpu_check(gpu.download(y, (gpu_address)(size_t)Y, sizeof y), "cuMemcpyDtoH");
  expect(y[999] == 1099, "no bias");
  expect_code(optional_launch(NULL, X, X + 4, Y, N), TL_KERNEL_INVALID_ARGUMENT, optional_error(),
              "argument 'b': expected a pointer aligned to 16");
  expect_code(optional_launch(NULL, NULL, NULL, Y, N), TL_KERNEL_INVALID_ARGUMENT, optional_error(),
              "argument 'X': expected a device");
  gpu_take(&gpu, X, NULL, 0);
  gpu_take(&gpu, Y, NULL, 0);
}

// Blocks in clusters, which the launch must say.
static void test_cluster(void) {
  enum { ROWS = 128, COLUMNS = 512, INNER = 128 };
  static uint16_t ones[INNER * COLUMNS], c[ROWS * COLUMNS];
  for (int i = 0; i < INNER * COLUMNS; i++) ones[i] = 0x3f80;
  void *A = gpu_put(&gpu, ones, sizeof ones), *C = gpu_put(&gpu, NULL, sizeof c);
  expect_code(cluster_launch(NULL, A, A, C), 0, cluster_error(), "");
  gpu_take(&gpu, C, c, sizeof c);
  gpu_take(&gpu, A, NULL, 0);
  int right = 1;
  for (int i = 0; i < ROWS * COLUMNS; i++) right = right && c[i] == 0x4300;  // 128
  expect(right, "a product of clusters");
}

// Rows of A that overlap, or are all one: 64 rows of `lda` elements apart, all ones.
static void multiply_rows(int by_map, int64_t lda, int code, const char *says) {
  enum { ROWS = 64, COLUMNS = 64, MOST = ROWS * 128 };
  static uint16_t ones[MOST];
  static float c[ROWS * COLUMNS];
  for (int i = 0; i < MOST; i++) ones[i] = 0x3c00;
  memset(c, 0, sizeof c);
  char *A = gpu_put(&gpu, ones, sizeof ones), *C = gpu_put(&gpu, c, sizeof c);
  if (by_map)
    expect_code(by_map_launch(NULL, A, A, C, ROWS, lda), code, by_map_error(), says);
  else
    expect_code(by_either_launch(NULL, A, A, C, ROWS, lda), code, by_either_error(), says);
  gpu_take(&gpu, C, c, sizeof c);
  gpu_take(&gpu, A, NULL, 0);
  int right = 1;
  for (int i = 0; i < ROWS * COLUMNS; i++) right = right && c[i] == (code ? 0 : 64);
  expect(right, "a product of rows that overlap");
}

static void test_strides(void) {
  static const char refused[] = "argument 'A': a stride of 0 bytes";
  multiply_rows(1, 64, 0, "");
  multiply_rows(1, 8, 0, "");
  multiply_rows(1, 0, TL_KERNEL_INVALID_ARGUMENT, refused);
  multiply_rows(0, 64, 0, "");
  multiply_rows(0, 7, 0, "");
  multiply_rows(0, 0, 0, "");  // the version without tensor maps
  expect_code(by_map_launch(NULL, NULL, NULL, NULL, 0, 0), TL_KERNEL_INVALID_ARGUMENT, by_map_error(),
              "argument 'B': expected a device");
}

// Sizes that no tensor has.
static void test_shapes(void) {
  float y[4] = {1, 1, 1, 1};
  char *X = gpu_put(&gpu, y, sizeof y), *Y = gpu_put(&gpu, y, sizeof y);
  int64_t most = INT32_MAX;
  expect_code(shapes_launch(NULL, X, Y, 5, 1, 1, 1), 0, shapes_error(), "");
  expect_code(shapes_launch(NULL, X, Y, 3, 1, 1, 1), TL_KERNEL_INVALID_ARGUMENT, shapes_error(),
              "argument 'Y': dimension 0 is negative: -1");
  expect_code(shapes_launch(NULL, X, Y, 5, most, most, most), TL_KERNEL_INVALID_ARGUMENT, shapes_error(),
              "the shapes of 'shapes': these sizes overflow");
  expect_code(shapes_launch(NULL, X, Y, 5, most, most, 0), 0, shapes_error(), "");
  gpu_take(&gpu, X, NULL, 0);
  gpu_take(&gpu, Y, NULL, 0);
}

// Numbers that a step's kernel has no room for.
static void test_numbers(void) {
  int32_t z[32] = {0};
  void *Z = gpu_put(&gpu, z, sizeof z);
  expect_code(numbers_launch(NULL, 127, Z, 8), 0, numbers_error(), "");
  expect_code(numbers_launch(NULL, 128, Z, 8), TL_KERNEL_INVALID_ARGUMENT, numbers_error(),
              "step 1, 'narrow': argument 'by': expected -128 to 127, given 128");
  expect_code(numbers_launch(NULL, 1, Z, 64), TL_KERNEL_INVALID_ARGUMENT, numbers_error(),
              "step 2, 'narrow': argument 'by': expected -128 to 127, given 128");
  gpu_take(&gpu, Z, NULL, 0);
}

// Pixels of images by tensor maps of their own kind: at a border the window reaches out.
static void test_pixels(void) {
  enum { IMAGES = 2, HEIGHT = 15, WIDTH = 9, CHANNELS = 64, FILTERS = 40, OUT_H = 8, OUT_W = 5 };
  static uint16_t ones[3 * 3 * CHANNELS * FILTERS], y[IMAGES * OUT_H * OUT_W * FILTERS];
  for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) ones[i] = 0x3c00;
  void *X = gpu_put(&gpu, ones, sizeof ones), *Y = gpu_put(&gpu, NULL, sizeof y);
  expect_code(pixels_launch(NULL, X, X, Y), 0, pixels_error(), "");
  expect_code(pixels_launch(NULL, X, X, Y), 0, pixels_error(), "");
  gpu_take(&gpu, Y, y, sizeof y);
  gpu_take(&gpu, X, NULL, 0);
  int right = 1;
  for (int i = 0; i < IMAGES * OUT_H * OUT_W; i++) {
    int row = 2 * (i / OUT_W % OUT_H), column = 2 * (i % OUT_W);
    int rows = 3 - (row == 0) - (row == HEIGHT - 1), columns = 3 - (column == 0) - (column == WIDTH - 1);
    uint16_t wanted = 0;
    // 64 times 4, 6 or 9, in f16.
    if (rows * columns == 4) wanted = 0x5c00;
    if (rows * columns == 6) wanted = 0x5e00;
    if (rows * columns == 9) wanted = 0x6080;
    for (int f = 0; f < FILTERS; f++) right = right && y[i * FILTERS + f] == wanted;
  }
  expect(right, "a convolution");
}

static void test_chain(void) {
  enum { ROWS = 8, K = 5 };
  float x[64], z[64];
  size_t bytes = 0;
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  void *X = gpu_put(&gpu, x, sizeof x), *Z = gpu_put(&gpu, NULL, sizeof z);
  expect_code(forms_workspace_bytes(ROWS, &bytes), 0, forms_error(), "");
  expect(bytes == 256 + ROWS * 64 * 4, "the buffers");
  char *workspace = gpu_put(&gpu, NULL, bytes + 16);
  expect_code(forms_launch(NULL, X, 2, K, Z, ROWS, workspace, bytes), 0, forms_error(), "");
  expect_code(forms_launch(NULL, X, 2, K, Z, ROWS, workspace, bytes - 1), TL_KERNEL_INVALID_ARGUMENT, forms_error(),
              "the workspace has 2303 bytes, 2304 are needed");
  expect_code(forms_launch(NULL, X, 2, K, Z, ROWS, workspace + 16, bytes), TL_KERNEL_INVALID_ARGUMENT, forms_error(),
              "aligned to 256");
  expect_code(forms_launch(NULL, X, 2, K, Z, 0, workspace, bytes), TL_KERNEL_INVALID_ARGUMENT, forms_error(),
              "requires rows > 0");
  gpu_take(&gpu, workspace, NULL, 0);
  gpu_take(&gpu, Z, z, sizeof z);
  gpu_take(&gpu, X, NULL, 0);
  int right = 1;
  for (int i = 0; i < 64; i++) {
    float t = (2 * x[i] + K) * 2 + 32 + ROWS + 1;
    right = right && z[i] == (t + t) * 2 + 3 + (float)i;
  }
  expect(right, "the chain");
}

// The first launch of all, loading included, while a stream is recorded.
static void test_recording(void) {
  unsigned (*begin)(void *, unsigned), (*end)(void *, void **), (*instantiate)(void **, void *, unsigned long long);
  unsigned (*run)(void *, void *), (*create)(tl_stream *, unsigned), (*destroy)(tl_stream), (*forget)(void *);
  void *graph, *executable = NULL;
  tl_stream stream;
  // As POSIX has it for functions: through memory.
  void *functions[] = {
      driver("cuStreamBeginCapture_v2"), driver("cuStreamEndCapture"), driver("cuGraphInstantiateWithFlags"),
      driver("cuGraphLaunch"),           driver("cuStreamCreate"),     driver("cuStreamDestroy_v2"),
      driver("cuGraphExecDestroy")};
  memcpy(&begin, &functions[0], sizeof begin);
  memcpy(&end, &functions[1], sizeof end);
  memcpy(&instantiate, &functions[2], sizeof instantiate);
  memcpy(&run, &functions[3], sizeof run);
  memcpy(&create, &functions[4], sizeof create);
  memcpy(&destroy, &functions[5], sizeof destroy);
  memcpy(&forget, &functions[6], sizeof forget);
  float a[N], c[N];
  for (int i = 0; i < N; i++) a[i] = (float)i;
  void *A = gpu_put(&gpu, a, sizeof a), *C = gpu_put(&gpu, a, sizeof a);
  expect(create(&stream, 1) == 0 && begin(stream, 1) == 0, "a recording begins");
  expect_code(va_launch(stream, A, A, C, N), 0, va_error(), "");
  expect_code(va_launch(stream, C, A, C, N), 0, va_error(), "");
  expect(end(stream, &graph) == 0 && instantiate(&executable, graph, 0) == 0, "it ends");
  gpu_check(gpu.download(c, (gpu_address)(size_t)C, sizeof c), "cuMemcpyDtoH");
  expect(c[7] == 7, "nothing ran while it was recorded");
  expect(run(executable, stream) == 0 && run(executable, stream) == 0, "it runs");
  gpu_take(&gpu, C, c, sizeof c);
  gpu_take(&gpu, A, NULL, 0);
  expect(c[7] == 21, "what ran");
  expect(forget(executable) == 0 && forget(graph) == 0 && destroy(stream) == 0, "the end");
}

// Threads without a context, all at once, of which one loads; each has its own text.
static void *run_thread(void *number) {
  expect_code(va_launch(NULL, NULL, NULL, NULL, 0), 0, va_error(), "");
  char says[32];
  int64_t n = -1 - *(int *)number;
  snprintf(says, sizeof says, "'N' is %d", (int)n);
  for (int i = 0; i < 100; i++)
    expect_code(va_launch(NULL, NULL, NULL, NULL, n), TL_KERNEL_INVALID_ARGUMENT, va_error(), says);
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[8];
  int numbers[8];
  va_unload();
  for (int i = 0; i < 8; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, run_thread, &numbers[i])) exit(1);
  }
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  if (!gpu_open(&gpu)) return 1;
  test_recording();
  test_checks();
  test_products();
  test_versions();
  test_queue();
  test_names();
  test_optional();
  test_strides();
  test_shapes();
  test_numbers();
  test_pixels();
  test_cluster();
  test_chain();
  test_threads();
  va_unload();
  md_unload();
  versions_unload();
  queue_unload();
  names_unload();
  optional_unload();
  by_map_unload();
  by_either_unload();
  shapes_unload();
  numbers_unload();
  pixels_unload();
  cluster_unload();
  forms_unload();
  if (!failures) puts("generated C: all right");
  return failures != 0;
}
