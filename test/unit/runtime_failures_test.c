// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every call of the driver fails once: somebody is told, under its name, and nothing is left behind.
#include <check.h>
#include <string.h>

#include "runtime/graph.h"
#include "runtime/program.h"
#include "runtime/timing.h"
#include "runtime_fake_driver.h"

static const char program_text[] =
    "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
    "// {\"name\": \"k\", \"params\": [\n"
    "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"inout\", \"dtype\": \"f32\", \"dims\": [\"N\"], "
    "\"strides\": [1], \"align\": 16},\n"
    "//  {\"kind\": \"dynamic\", \"name\": \"N\", \"divisor\": 1},\n"
    "//  {\"kind\": \"workspace\", \"name\": \"w\", \"bytes\": \"N * 4\", \"zero_each_launch\": true}],\n"
    "// \"requires\": [], \"grid\": [\"ceildiv(N, 32)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 65536, \"cluster\": [1, 1, 1]}]}\n\n.version 7.0\n";

static int num_told;

// Counts a failure of the call that failed; any other is a mistake.
static bool ok(tl_status status) {
  if (!status) return true;
  ck_assert_msg(failed_symbol && strstr(tl_status_message(status), failed_symbol), "%s failed, told is: %s",
                failed_symbol ? failed_symbol : "nothing", tl_status_message(status));
  num_told++;
  tl_status_free(status);
  return false;
}

static void use_memory(tl_device *gpu, void *stream) {
  void *memory;
  float host[32] = {0};
  if (!ok(tl_device_alloc(gpu, sizeof host, &memory))) return;
  ok(tl_device_upload(gpu, memory, host, sizeof host));
  ok(tl_device_copy_async(gpu, memory, memory, sizeof host, stream));
  ok(tl_device_fill(gpu, memory, 1, sizeof host, stream));
  ok(tl_device_download(gpu, host, memory, sizeof host));
  // What could not be freed because of another failure is freed now.
  if (!ok(tl_device_free(gpu, memory)) && strcmp(failed_symbol, "cuCtxPopCurrent_v2") != 0)
    ok(tl_device_free(gpu, memory));
}

static void use_program(tl_device *gpu, void *stream) {
  tl_program *program;
  tl_kernel *kernel;
  static float data[32] __attribute__((aligned(16)));
  static const int64_t size = 32;
  tl_argument argument = tl_argument_tensor("A", data, "f32", 1, &size);
  if (!ok(tl_program_load(gpu, program_text, strlen(program_text), &program))) return;
  if (ok(tl_program_kernel(program, "k", &kernel))) {
    ok(tl_kernel_check(kernel, &argument, 1));
    ok(tl_kernel_launch(kernel, &argument, 1, stream));
  }
  tl_program_destroy(program);
}

static void use_time(tl_device *gpu, void *stream) {
  tl_timer *timer;
  double seconds;
  if (!ok(tl_timer_create(gpu, &timer))) return;
  ok(tl_timer_start(timer, stream));
  ok(tl_timer_stop(timer, stream));
  ok(tl_timer_elapsed(timer, &seconds));
  tl_timer_destroy(timer);
}

static void use_graph(tl_device *gpu, void *stream) {
  tl_graph *graph;
  if (!ok(tl_graph_begin(gpu, stream)) || !ok(tl_graph_end(gpu, stream, &graph))) return;
  ok(tl_graph_launch(graph, stream));
  tl_graph_destroy(graph);
}

static void use_everything(void) {
  tl_device *gpu;
  tl_device_facts facts;
  int version;
  void *stream;
  if (!ok(tl_device_open(0, &gpu))) return;
  ok(tl_device_driver_version(gpu, &version));
  ok(tl_device_query_facts(gpu, &facts));
  if (ok(tl_stream_create(gpu, &stream))) {
    use_memory(gpu, stream);
    use_program(gpu, stream);
    use_time(gpu, stream);
    use_graph(gpu, stream);
    ok(tl_stream_synchronize(gpu, stream));
    if (!ok(tl_stream_destroy(gpu, stream)) && strcmp(failed_symbol, "cuCtxPopCurrent_v2") != 0)
      ok(tl_stream_destroy(gpu, stream));
  }
  ok(tl_device_end(gpu));
}

START_TEST(every_failure_is_told) {
  calls = failing_call = 0;
  use_everything();
  ck_assert_int_eq(num_told, 0);
  int total = calls;
  ck_assert_int_gt(total, 60);
  for (failing_call = 1; failing_call <= total; failing_call++) {
    calls = num_told = handles = allocations = contexts_on_stack = 0;
    failed_symbol = NULL;
    use_everything();
    ck_assert_msg(failed_symbol != NULL, "call %d was not made", failing_call);
    // Facts that a driver may not know.
    bool may_fail = strcmp(failed_symbol, "cuDeviceGetAttribute") == 0 && num_told == 0;
    ck_assert_msg(num_told > 0 || may_fail, "nobody is told that call %d, %s, failed", failing_call, failed_symbol);
    bool stays = strstr(failed_symbol, "Destroy") || strcmp(failed_symbol, "cuMemFree_v2") == 0;
    ck_assert_msg(stays || (handles == 0 && allocations == 0), "%d handles and %d allocations are left after %s",
                  handles, allocations, failed_symbol);
    ck_assert_int_eq(contexts_on_stack, strcmp(failed_symbol, "cuCtxPopCurrent_v2") == 0);
  }
  failing_call = contexts_on_stack = 0;
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_failures");
  TCase *tests = tcase_create("failures");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, every_failure_is_told);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failures = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failures != 0;
}
