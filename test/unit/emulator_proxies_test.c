// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the checks tell of the kernels of test/emulator/proxies.ll, under every landing and several orders of threads.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 64 };

static const struct {
  const char *kernel;
  const char *texts[3];  // of what is found; none: nothing is
} cases[] = {
    {"written_then_stored", {NULL}},
    {"written_then_stored_without",
     {"missing proxy fence: the asynchronous operation of thread 0", "at shared memory, byte ",
      "missing: fence.proxy.async of thread "}},
    {"written_then_loaded", {NULL}},
    {"written_then_loaded_without",
     {"missing proxy fence: the asynchronous operation of thread 0", "writes 256 bytes at shared memory, byte 0",
      "missing: fence.proxy.async of thread "}},
    {"loaded_then_read", {NULL}},
    {"loaded_twice", {NULL}},
    {"loaded_twice_without",
     {"missing proxy fence: the asynchronous operation of thread 0", "writes 256 bytes at shared memory, byte 0",
      " after its read, before what orders the two"}},
    {"global_then_loaded", {NULL}},
    {"global_then_loaded_without",
     {"missing proxy fence: the asynchronous operation of thread 0", "of a buffer of 4096 bytes",
      "missing: fence.proxy.async of thread "}},
    {"stored_then_read", {NULL}},
    {"stored_then_read_early",
     {"race: ", "llvm.nvvm.cp.async.bulk.shared.cta.to.global",
      "missing: a wait for the completion of the operation that the other side started"}},
    {"blocks_reader_fences", {NULL}},
    {"blocks_writer_fences", {NULL}},
    {"blocks_without",
     {"missing proxy fence: the asynchronous operation of thread 0 (warp 0, lane 0) of block (1, 0, 0)",
      "of block (0, 0, 0) wrote it before",
      "missing: fence.proxy.async between the acquire and the operation, or between the write and the release"}},
    {"blocks_other_fences",
     {"missing proxy fence: the asynchronous operation of thread 0", "of block (0, 0, 0) wrote it before",
      "missing: fence.proxy.async between the acquire and the operation, or between the write and the release"}},
};

START_TEST(proxies) {
  tl_emu_kernel *kernel =
      must_create("proxies.ll", cases[_i].kernel,
                  (kernel_shape){.num_params = 2, .threads = THREADS, .checks = TL_EMU_SANITIZE_ALL});
  for (uint32_t seed = 0; seed < 6; seed++) {
    void *in = tl_emu_alloc(BUFFER_BYTES, 128), *out = tl_emu_alloc(BUFFER_BYTES, 128);
    memset(in, 1, BUFFER_BYTES);
    memset(out, 0, BUFFER_BYTES);
    tl_emu_options options = {.threads = 1,
                              .seed = seed,
                              .resident = 2,
                              .landing = seed & 1 ? TL_LANDING_EARLY : TL_LANDING_LATE,
                              .checks = TL_EMU_SANITIZE_ALL};
    uint32_t grid[3] = {strncmp(cases[_i].kernel, "blocks", 6) == 0 ? 2 : 1, 1, 1};
    tl_status status = tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL);
    if (cases[_i].texts[0])
      expect_failure(status, TL_STATUS_CHECK_FAILED, cases[_i].texts[0], cases[_i].texts[1], cases[_i].texts[2]);
    else
      expect_ok(status);
    tl_emu_free(in);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static void add_tests(TCase *tests) {
  tcase_add_loop_test(tests, proxies, 0, sizeof cases / sizeof cases[0]);
}

int main(void) {
  return run_suite("emulator proxies", add_tests);
}
