// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl as a caller links it: only public headers, the shared library, several threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tl.h"

static int failures;

static void expect(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

static void expect_code(tl_status status, tl_status_code code, const char *what) {
  if (tl_status_code_of(status) != code) fprintf(stderr, "%s: %s\n", what, tl_status_message(status));
  expect(tl_status_code_of(status) == code, what);
  tl_status_free(status);
}

static char *ptx_of(const char *path, const char *name, const char *value, const char *target) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  if (name) expect_code(tl_compiler_bind(compiler, name, "1"), TL_STATUS_OK, "bind");
  if (name) expect_code(tl_compiler_bind(compiler, name, value), TL_STATUS_OK, "bind again");
  expect_code(tl_compiler_set_target(compiler, target), TL_STATUS_OK, "target");
  expect_code(tl_compiler_compile_file(compiler, path, &compilation), TL_STATUS_OK, path);
  size_t bytes = 0, manifest_bytes = 0;
  const char *ptx = tl_compilation_ptx(compilation, &bytes);
  const char *manifest = tl_compilation_manifest(compilation, &manifest_bytes);
  expect(ptx && strlen(ptx) == bytes && strstr(ptx, target), "the PTX");
  expect(manifest && strlen(manifest) == manifest_bytes && manifest[0] == '{', "the manifest");
  expect(tl_compilation_num_errors(compilation) == 0, "no errors");
  expect(tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_TEXT)[0] == '\0', "no text");
  char *copy = strdup(ptx);
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
  return copy;
}

// ---- include

static int num_asked;

static int find_include(void *user, const char *path, const char *from, tl_include *out_include) {
  static const char text[] = "include: b.yaml\nmacros:\n  shift(x):\n    - use: raise(x, 1)\n";
  static const char raise[] = "macros:\n  raise(x, by):\n    - x = x + by\n";
  num_asked++;
  expect(user == (void *)&failures, "the user pointer");
  if (strcmp(path, "a.yaml") == 0) {
    expect(strcmp(from, "spec") == 0, "who includes");
    *out_include = (tl_include){"mem:a.yaml", text, strlen(text)};
    return 1;
  }
  if (strcmp(path, "b.yaml") != 0) return 0;
  expect(strcmp(from, "mem:a.yaml") == 0, "who includes the second");
  *out_include = (tl_include){NULL, raise, strlen(raise)};
  return 1;
}

static void compile_included(tl_compiler *compiler, const char *file, tl_status_code code, const char *says) {
  char text[512];
  snprintf(text, sizeof text,
           "include: %s\n---\nkernel: k\nargs:\n  X: inout f32[32]\nfragment:\n  x: f32[32]\nbody:\n"
           "  - copy: X -> x\n  - use: shift(x)\n  - copy: x -> X\n",
           file);
  tl_compilation *compilation;
  expect_code(tl_compiler_compile(compiler, "spec", text, strlen(text), &compilation), code, file);
  const char *told = tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_TEXT);
  if (!strstr(told, says)) fprintf(stderr, "%s\n", told);
  expect(strstr(told, says) != NULL, says);
  tl_compilation_destroy(compilation);
}

static void includes_come_from_the_caller(void) {
  tl_compiler *compiler;
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  compile_included(compiler, "a.yaml", TL_STATUS_DIAGNOSTICS, "this spec comes from memory");
  tl_compiler_set_include(compiler, find_include, &failures);
  compile_included(compiler, "a.yaml", TL_STATUS_OK, "");
  expect(num_asked == 2, "each file was asked for once");
  compile_included(compiler, "c.yaml", TL_STATUS_DIAGNOSTICS, "cannot include `c.yaml`: there is no such file");
  tl_compiler_destroy(compiler);
}

enum { THREADS = 6, ROUNDS = 3 };
static const struct {
  const char *path, *name, *value, *target;
} work[] = {{"kernels/matmul.yaml", "M", "256", "sm_80"},
            {"kernels/softplus.yaml", "dtype", "bf16", "sm_90a"},
            {"kernels/vector_add.yaml", NULL, NULL, "sm_89"}};
enum { WORK = sizeof work / sizeof work[0] };
static char *wanted[WORK];

static void *compile_many(void *user) {
  int start = (int)(size_t)user;
  for (int i = 0; i < ROUNDS; i++) {
    int w = (start + i) % WORK;
    char *ptx = ptx_of(work[w].path, work[w].name, work[w].value, work[w].target);
    expect(strcmp(ptx, wanted[w]) == 0, "threads give the same bytes");
    free(ptx);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[THREADS];
  for (int w = 0; w < WORK; w++) wanted[w] = ptx_of(work[w].path, work[w].name, work[w].value, work[w].target);
  for (size_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, compile_many, (void *)t);
  for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  for (int w = 0; w < WORK; w++) free(wanted[w]);
}

// All kernels of a chain in one text.
static void test_chain(void) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  tl_compiler_set_kernel(compiler, "mlp");
  expect_code(tl_compiler_compile_file(compiler, "test/spec/check/chains.yaml", &compilation), TL_STATUS_OK, "chain");
  const char *ptx = tl_compilation_ptx(compilation, NULL);
  expect(ptx && strstr(ptx, ".entry linear(") && strstr(ptx, ".entry activate("), "its kernels");
  expect(ptx && strstr(tl_compilation_manifest(compilation, NULL), "\"chains\""), "its manifest");
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
}

static void test_mistakes(void) {
  static const char spec[] = "kernel: k\nparams: {N: 4}\nargs:\n  A: out f32[N]\ngrid: {b: M}\nbody:\n  - A[b] = 1\n";
  tl_compiler *compiler;
  tl_compilation *compilation;
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  expect_code(tl_compiler_set_target(compiler, "sm_42"), TL_STATUS_INVALID_ARGUMENT, "unknown target");
  expect_code(tl_compiler_set_target_for_device(compiler, 61), TL_STATUS_UNSUPPORTED, "old device");
  expect_code(tl_compiler_set_warning(compiler, "no-such-group"), TL_STATUS_INVALID_ARGUMENT, "unknown warning");
  expect_code(tl_compiler_bind(compiler, "", "1"), TL_STATUS_INVALID_ARGUMENT, "empty name");
  expect_code(tl_compiler_compile(compiler, "k.yaml", spec, strlen(spec), &compilation), TL_STATUS_DIAGNOSTICS,
              "spec with an error");
  if (compilation) {
    expect(tl_compilation_ptx(compilation, NULL) == NULL, "no PTX after errors");
    expect(tl_compilation_num_errors(compilation) == 1, "one error");
    expect(strstr(tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_TEXT), "k.yaml:5:11: error") != NULL,
           "its place");
    expect(tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_JSON)[0] == '[', "as JSON");
    tl_compilation_destroy(compilation);
  }
  expect_code(tl_compiler_bind(compiler, "N", "8 +"), TL_STATUS_OK, "a binding is parsed by the compile");
  expect_code(tl_compiler_compile_file(compiler, "kernels/softplus.yaml", &compilation), TL_STATUS_DIAGNOSTICS,
              "bad binding");
  tl_compilation_destroy(compilation);
  expect_code(tl_compiler_compile_file(compiler, "kernels/none.yaml", &compilation), TL_STATUS_NOT_FOUND, "no file");
  expect(compilation == NULL, "no compilation");
  size_t bytes = 1;
  expect(tl_compilation_ptx(NULL, &bytes) == NULL && bytes == 0, "no compilation has no PTX");
  expect(tl_compilation_manifest(NULL, NULL) == NULL, "and no manifest");
  expect(strcmp(tl_compilation_diagnostics(NULL, TL_DIAGNOSTICS_JSON), "[]") == 0, "and no diagnostics");
  expect(tl_compilation_num_errors(NULL) == 0 && tl_compilation_num_warnings(NULL) == 0, "not one");
  expect_code(tl_compiler_compile_file(compiler, NULL, &compilation), TL_STATUS_INVALID_ARGUMENT, "no path");
  expect_code(tl_compiler_set_target(compiler, "sm_75"), TL_STATUS_INVALID_ARGUMENT, "refused target");
  tl_compiler_clear_bindings(compiler);
  tl_compiler_set_kernel(compiler, "other");
  expect_code(tl_compiler_compile_file(compiler, "kernels/softplus.yaml", &compilation), TL_STATUS_NOT_FOUND,
              "no kernel");
  tl_compiler_destroy(compiler);
}

int main(void) {
  expect(tl_version()[0] >= '0' && tl_version()[0] <= '9', "version");
  expect(tl_manifest_abi() == 1, "ABI");
  expect(strncmp(tl_llvm_version(), "22.", 3) == 0, "LLVM");
  test_threads();
  test_chain();
  test_mistakes();
  includes_come_from_the_caller();
  if (!failures) puts("all passed");
  return failures != 0;
}
