// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl as a caller links it: only public headers, the shared library, several threads.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

// What has been demanded and was not got is an error of the spec, with its reason.
static void test_require(void) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  expect_code(tl_compiler_set_require(compiler, "tma,wgmma"), TL_STATUS_OK, "words");
  expect_code(tl_compiler_set_require(compiler, "tma,speed"), TL_STATUS_INVALID_ARGUMENT, "another word");
  expect_code(tl_compiler_set_target(compiler, "sm_80"), TL_STATUS_OK, "target");
  expect_code(tl_compiler_compile_file(compiler, "kernels/matmul.yaml", &compilation), TL_STATUS_DIAGNOSTICS,
              "a target without them");
  const char *text = tl_compilation_diagnostics(compilation, TL_DIAGNOSTICS_TEXT);
  expect(strstr(text, "this gemm does not run on wgmma, as --require=wgmma asks") != NULL, "names the statement");
  expect(strstr(text, "remark:") == NULL, "no other remarks");
  tl_compilation_destroy(compilation);
  expect_code(tl_compiler_set_target(compiler, "sm_90a"), TL_STATUS_OK, "target");
  expect_code(tl_compiler_compile_file(compiler, "kernels/matmul.yaml", &compilation), TL_STATUS_OK, "with them");
  tl_compilation_destroy(compilation);
  expect_code(tl_compiler_set_target(compiler, "sm_80"), TL_STATUS_OK, "target");
  expect_code(tl_compiler_set_require(compiler, NULL), TL_STATUS_OK, "nothing");
  expect_code(tl_compiler_compile_file(compiler, "kernels/matmul.yaml", &compilation), TL_STATUS_OK,
              "nothing is asked");
  tl_compilation_destroy(compilation);
  setenv("TL_PTXAS", "/no/such/ptxas", 1);
  expect_code(tl_compiler_set_require(compiler, "no-spill"), TL_STATUS_OK, "no-spill");
  expect_code(tl_compiler_compile_file(compiler, "kernels/matmul.yaml", &compilation), TL_STATUS_NOT_FOUND, "no ptxas");
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

// ---- NULL

static void compiler_takes_no_null(void) {
  tl_compiler *compiler;
  tl_compilation *compilation = (tl_compilation *)&failures;
  tl_status_code invalid = TL_STATUS_INVALID_ARGUMENT;
  expect_code(tl_compiler_create(NULL), invalid, "create");
  expect_code(tl_compiler_bind(NULL, "M", "1"), invalid, "bind");
  expect_code(tl_compiler_set_target(NULL, "sm_80"), invalid, "target");
  expect_code(tl_compiler_set_target_for_device(NULL, 80), invalid, "target for a device");
  expect_code(tl_compiler_set_warning(NULL, "error"), invalid, "warning");
  expect_code(tl_compiler_compile(NULL, "a", "b", 1, &compilation), invalid, "compile");
  expect(!compilation, "no compilation");
  expect_code(tl_compiler_compile_file(NULL, "a", &compilation), invalid, "compile file");
  tl_compiler_clear_bindings(NULL);
  tl_compiler_set_kernel(NULL, "k");
  tl_compiler_set_ptx_version(NULL, 80);
  tl_compiler_set_remarks(NULL, 1);
  tl_compiler_set_include(NULL, NULL, NULL);
  tl_compiler_destroy(NULL);
  tl_compilation_destroy(NULL);
  expect(!tl_compilation_ptx(NULL, NULL) && !tl_compilation_manifest(NULL, NULL), "no texts");
  expect(tl_compilation_num_errors(NULL) == 0 && tl_compilation_num_warnings(NULL) == 0, "no counts");
  expect_code(tl_compiler_create(&compiler), TL_STATUS_OK, "create");
  expect_code(tl_compiler_bind(compiler, NULL, "1"), invalid, "no name");
  expect_code(tl_compiler_bind(compiler, "M", NULL), invalid, "no value");
  expect_code(tl_compiler_set_warning(compiler, NULL), invalid, "no option");
  expect_code(tl_compiler_compile(compiler, "a", "b", 1, NULL), invalid, "no place for the result");
  expect_code(tl_compiler_compile(compiler, "a", NULL, 1, &compilation), invalid, "no text");
  expect_code(tl_compiler_compile_file(compiler, "a", NULL), invalid, "no place for the result of a file");
  expect_code(tl_compiler_compile_file(compiler, NULL, &compilation), invalid, "no path");
  tl_compiler_destroy(compiler);
}

static void runtime_takes_no_null(void) {
  tl_status_code invalid = TL_STATUS_INVALID_ARGUMENT;
  tl_device *device = NULL;
  tl_program *program = NULL;
  tl_kernel *kernel = NULL;
  tl_chain *chain = NULL;
  void *pointer = NULL;
  char byte = 0;
  size_t bytes = 0;
  expect_code(tl_device_count(NULL), invalid, "count");
  expect_code(tl_device_open(0, NULL), invalid, "open");
  tl_device_close(NULL);
  expect(!*tl_device_name(NULL) && !tl_device_compute_capability(NULL) && !tl_device_num_sms(NULL), "no device");
  expect_code(tl_device_alloc(device, 1, &pointer), invalid, "alloc");
  expect_code(tl_device_alloc(device, 1, NULL), invalid, "alloc to nowhere");
  expect_code(tl_device_free(device, &byte), invalid, "free");
  expect_code(tl_device_upload(device, &byte, &byte, 1), invalid, "upload");
  expect_code(tl_device_download(device, &byte, &byte, 1), invalid, "download");
  expect_code(tl_device_fill(device, &byte, 0, 1, NULL), invalid, "fill");
  expect_code(tl_stream_create(device, &pointer), invalid, "stream");
  expect_code(tl_stream_create(device, NULL), invalid, "stream to nowhere");
  expect_code(tl_stream_destroy(device, &byte), invalid, "stream's end");
  expect_code(tl_stream_synchronize(device, NULL), invalid, "synchronize");
  expect_code(tl_program_load(device, "", 0, &program), invalid, "load");
  expect_code(tl_program_load(device, "", 0, NULL), invalid, "load to nowhere");
  expect_code(tl_program_load_image(device, "", 0, "", 0, &program), invalid, "load image");
  expect_code(tl_program_load_image(device, "", 0, "", 0, NULL), invalid, "load image to nowhere");
  tl_program_destroy(NULL);
  expect(tl_program_num_kernels(NULL) == 0 && !tl_program_kernel_at(NULL, 0), "no kernels");
  expect_code(tl_program_kernel(program, "k", &kernel), invalid, "kernel");
  expect_code(tl_program_kernel(program, "k", NULL), invalid, "kernel to nowhere");
  expect(!*tl_kernel_name(NULL) && !tl_kernel_registers(NULL) && !tl_kernel_local_bytes(NULL), "no kernel");
  expect_code(tl_kernel_check(kernel, NULL, 2), invalid, "check");
  expect_code(tl_kernel_launch(kernel, NULL, 2, NULL), invalid, "launch");
  expect(tl_program_num_chains(NULL) == 0 && !tl_program_chain_at(NULL, 0), "no chains");
  expect_code(tl_program_chain(program, "k", &chain), invalid, "chain");
  expect_code(tl_program_chain(program, "k", NULL), invalid, "chain to nowhere");
  expect(!*tl_chain_name(NULL) && !tl_chain_num_steps(NULL), "no chain");
  expect_code(tl_chain_workspace_bytes(chain, NULL, 2, &bytes), invalid, "workspace");
  expect_code(tl_chain_workspace_bytes(chain, NULL, 0, NULL), invalid, "workspace to nowhere");
  expect_code(tl_chain_check(chain, NULL, 2), invalid, "chain's check");
  expect_code(tl_chain_launch(chain, NULL, 2, NULL, 0, NULL), invalid, "chain's launch");
  expect(!*tl_status_message(NULL) && tl_status_code_of(NULL) == TL_STATUS_OK, "no status");
  tl_status_free(NULL);
}

// ---- memory runs out

static unsigned long address_space(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

static char *large_spec(int num_statements) {
  char *text = malloc((size_t)num_statements * 64 + 256), *at = text;
  at += sprintf(at, "kernel: k\nargs: {X: \"inout f32[4096]\"}\nthreads: 128\nbody:\n");
  for (int i = 0; i < num_statements; i++)
    at += sprintf(at, "  - X[%d] = X[%d] * 2 + %d\n", i % 4096, (i + 7) % 4096, i);
  return text;
}

// Compiles with `megabytes` more than there is now, then a small kernel with all there is. In a process of its own: 0
// when the large one did not fit, 1 when it did, 2 when anything is wrong.
static int compile_with(const char *text, unsigned long megabytes) {
  tl_compiler *compiler;
  tl_compilation *compilation;
  struct rlimit unlimited, limit;
  if (tl_compiler_create(&compiler)) return 2;
  malloc_trim(0);  // what earlier compiles left is no reserve
  getrlimit(RLIMIT_AS, &unlimited);
  limit = unlimited;
  limit.rlim_cur = address_space() + (megabytes << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  tl_status status = tl_compiler_compile(compiler, "large", text, strlen(text), &compilation);
  setrlimit(RLIMIT_AS, &unlimited);
  tl_status_code code = tl_status_code_of(status);
  if (code != TL_STATUS_OK && (code != TL_STATUS_OUT_OF_MEMORY || compilation)) return 2;
  tl_status_free(status);
  tl_compilation_destroy(compilation);
  status = tl_compiler_compile_file(compiler, "kernels/vector_add.yaml", &compilation);
  if (status) return 2;
  tl_compilation_destroy(compilation);
  tl_compiler_destroy(compiler);
  return code == TL_STATUS_OK;
}

// A status, whatever it was doing when memory ran out; nothing is printed, and the next compile works.
static void memory_runs_out(void) {
#ifdef TL_TEST_SANITIZED
  return;  // the sanitizers' own memory is terabytes
#endif
  char *text = large_spec(1000);
  int did_not_fit = 0;
  FILE *printed = tmpfile();
  for (unsigned long megabytes = 1; megabytes <= 256; megabytes += 1 + megabytes / 4) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      dup2(fileno(printed), STDERR_FILENO);
      dup2(fileno(printed), STDOUT_FILENO);
      _exit(compile_with(text, megabytes));
    }
    int status = 0;
    waitpid(child, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    if (code > 1) fprintf(stderr, "with %lu MiB: wait status %d\n", megabytes, status);
    expect(code <= 1, "memory that runs out is a status");
    did_not_fit += code == 0;
    if (code == 1) break;
  }
  expect(did_not_fit > 1, "some limits are too small");
  expect(lseek(fileno(printed), 0, SEEK_END) == 0, "nothing is printed");
  fclose(printed);
  free(text);
}

int main(void) {
  expect(tl_version()[0] >= '0' && tl_version()[0] <= '9', "version");
  expect(tl_manifest_abi() == 1, "ABI");
  expect(strncmp(tl_llvm_version(), "22.", 3) == 0, "LLVM");
  memory_runs_out();  // before there are threads, whose heaps would be a reserve
  test_threads();
  test_chain();
  test_require();
  test_mistakes();
  includes_come_from_the_caller();
  compiler_takes_no_null();
  runtime_takes_no_null();
  if (!failures) puts("all passed");
  return failures != 0;
}
