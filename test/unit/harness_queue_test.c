// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queues of tiles over the emulated driver: launches on several streams, recorded ones, and what an earlier launch
// left.
#include <check.h>
#include <stdlib.h>

#include "frontend/spec/spec.h"
#include "harness/device/compile.h"
#include "harness/device/emulated_driver.h"
#include "runtime/device.h"
#include "runtime/graph.h"
#include "runtime/program.h"

enum { TILES = 23, WIDTH = 32 };

// Each tile counts how often it ran.
static const char text[] =
    "kernel: counts\n"
    "persistent: dynamic\n"
    "args:\n  Y: inout i32[23, 32]\n"
    "grid: {t: 23}\n"
    "threads: 32\n"
    "body:\n  - parallel: i in 32\n    do:\n      - Y[t, i] += 1\n";

static tl_device *device;
static tl_program *program;
static tl_kernel *kernel;
static void *counts;
static int expected;

static void must(tl_status status) {
  ck_assert_msg(!status, "%s", status ? tl_status_message(status) : "");
}

static void load_text(void) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_spec *spec = tl_spec_parse(&sources, tl_sources_add(&sources, "counts.yaml", tl_str_from(text)), &diags);
  ck_assert_ptr_nonnull(spec);
  tl_compile_request request = tl_compile_request_default(&spec->kernels[0]);
  tl_compiled compiled;
  tl_strbuf ptx = {0};
  must(tl_compile(&request, &sources, &diags, &compiled));
  must(tl_backend_emit_ptx(compiled.backend, &ptx));
  must(tl_program_load(device, ptx.data, ptx.len, &program));
  must(tl_program_kernel(program, NULL, &kernel));
  tl_strbuf_fini(&ptx);
  tl_compiled_fini(&compiled);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static void setup(void) {
  const tl_emulated_gpu gpu = {.num_sms = 3, .emu = {.checks = TL_EMU_SANITIZE_RACE}};
  int ordinal;
  must(tl_emulated_gpu_add(&gpu, &ordinal));
  must(tl_device_open_on(tl_emulated_driver(), ordinal, &device));
  load_text();
  must(tl_device_alloc(device, sizeof(int32_t[TILES][WIDTH]), &counts));
  must(tl_device_fill(device, counts, 0, sizeof(int32_t[TILES][WIDTH]), NULL));
  expected = 0;
}

static void teardown(void) {
  must(tl_device_free(device, counts));
  tl_program_destroy(program);
  tl_device_close(device);
}

static void launch(void *stream) {
  static const int64_t shape[] = {TILES, WIDTH};
  const tl_argument argument = tl_argument_tensor("Y", counts, "i32", 2, shape);
  must(tl_kernel_launch(kernel, &argument, 1, stream));
}

// Every tile ran once for each launch.
static void check_counts(int launches) {
  static int32_t host[TILES][WIDTH];
  expected += launches;
  must(tl_device_download(device, host, counts, sizeof host));
  for (int t = 0; t < TILES; t++)
    for (int i = 0; i < WIDTH; i++) ck_assert_int_eq(host[t][i], expected);
}

static void check_memories(size_t count) {
  ck_assert_uint_eq(kernel->workspaces.len, count);
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < i; j++)
      ck_assert_ptr_ne(kernel->workspaces.items[i].memory, kernel->workspaces.items[j].memory);
}

START_TEST(streams_have_their_own) {
  void *a, *b;
  must(tl_stream_create(device, &a));
  must(tl_stream_create(device, &b));
  for (int i = 0; i < 3; i++) {
    launch(a);
    launch(b);
  }
  launch(NULL);
  check_counts(7);
  check_memories(3);
  // A handle that comes back is another stream.
  must(tl_stream_destroy(device, a));
  must(tl_stream_create(device, &a));
  launch(a);
  check_counts(1);
  check_memories(4);
  must(tl_stream_destroy(device, a));
  must(tl_stream_destroy(device, b));
}
END_TEST

// One counter a recording, zeroed in front of each of its launches.
START_TEST(recordings_have_their_own) {
  void *stream;
  tl_graph *graphs[2];
  must(tl_stream_create(device, &stream));
  for (int g = 0; g < 2; g++) {
    must(tl_graph_begin(device, stream));
    launch(stream);
    launch(stream);
    must(tl_graph_end(device, stream, &graphs[g]));
  }
  check_counts(0);
  check_memories(2);
  launch(stream);
  for (int i = 0; i < 3; i++)
    for (int g = 0; g < 2; g++) must(tl_graph_launch(graphs[g], stream));
  launch(stream);
  check_counts(14);
  check_memories(3);
  for (int g = 0; g < 2; g++) tl_graph_destroy(graphs[g]);
  must(tl_stream_destroy(device, stream));
}
END_TEST

// As if a launch had been ended in its midst.
START_TEST(begins_with_zero) {
  static const unsigned char left[] = {0x01, 0x7f, 0xff};
  for (size_t i = 0; i < sizeof left; i++) {
    launch(NULL);
    must(tl_device_fill(device, kernel->workspaces.items[0].memory, left[i], 8, NULL));
    launch(NULL);
    check_counts(2);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("harness_queue");
  TCase *tests = tcase_create("queue");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, streams_have_their_own);
  tcase_add_test(tests, recordings_have_their_own);
  tcase_add_test(tests, begins_with_zero);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
