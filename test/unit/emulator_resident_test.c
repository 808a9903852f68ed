// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks and clusters whose threads one worker interleaves: they may wait for each other, and a report says when one is
// missing.
#include "emulator_util.h"

enum { MAX_BLOCKS = 64, THREADS = 64 };

static tl_status run(tl_emu_kernel *kernel, uint32_t blocks, const tl_emu_options *options, uint32_t *out) {
  uint32_t grid[3] = {blocks, 1, 1}, *io = tl_emu_alloc(MAX_BLOCKS * sizeof *io, 16);
  memset(io, 0, MAX_BLOCKS * sizeof *io);
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&io}, options, NULL);
  if (out) memcpy(out, io, MAX_BLOCKS * sizeof *io);
  tl_emu_free(io);
  return status;
}

// Every block waits for the one behind it, for every order of warps, lanes and blocks.
static void chain(const char *name, uint32_t checks) {
  tl_emu_kernel *kernel =
      must_create("resident.ll", name, (kernel_shape){.num_params = 1, .threads = THREADS, .checks = checks});
  for (uint32_t seed = 0; seed < 10; seed++) {
    uint32_t out[MAX_BLOCKS], blocks = seed ? 8 : 48;
    tl_emu_options options = {
        .threads = seed % 3 == 2 ? 2 : 1, .resident = (int)blocks, .seed = seed, .checks = checks};
    expect_ok(run(kernel, blocks, &options, out));
    for (uint32_t b = 0; b < blocks; b++) ck_assert_uint_eq(out[b], blocks - b);
  }
  tl_emu_kernel_destroy(kernel);
}

START_TEST(flags) {
  chain("chain", 0);
  chain("chain", TL_EMU_SANITIZE_ALL);
}
END_TEST

START_TEST(rests) {
  chain("rest", 0);
}
END_TEST

// A barrier of the whole grid, then a lock that all threads take.
START_TEST(grid_barrier_and_lock) {
  tl_emu_kernel *kernel =
      must_create("resident.ll", "grid_barrier", (kernel_shape){1, THREADS, .checks = TL_EMU_SANITIZE_ALL});
  for (uint32_t seed = 0; seed < 10; seed++) {
    uint32_t out[MAX_BLOCKS];
    tl_emu_options options = {.threads = 1, .resident = 6, .seed = seed, .checks = TL_EMU_SANITIZE_ALL};
    expect_ok(run(kernel, 6, &options, out));
    ck_assert_uint_eq(out[0], 6);
    ck_assert_uint_eq(out[2], 6 * THREADS);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(clusters) {
  for (int checked = 0; checked < 2; checked++) {
    uint32_t checks = checked ? TL_EMU_SANITIZE_ALL : 0;
    kernel_shape shape = {.num_params = 1, .threads = 32, .checks = checks, .cluster = 2};
    tl_emu_kernel *kernel = must_create("resident.ll", "clusters", shape);
    for (uint32_t seed = 0; seed < 10; seed++) {
      uint32_t out[MAX_BLOCKS];
      tl_emu_options options = {.threads = 1 + (int)(seed & 1), .resident = 4, .seed = seed, .checks = checks};
      expect_ok(run(kernel, 8, &options, out));
      for (uint32_t b = 0; b < 8; b++) ck_assert_uint_eq(out[b], 4 - b / 2);
    }
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

START_TEST(missing_blocks) {
  tl_emu_kernel *kernel = must_create("resident.ll", "chain", (kernel_shape){1, THREADS, 0});
  tl_emu_options options = {.threads = 1, .resident = 3, .timeout_s = 0.2};
  expect_failure(run(kernel, 4, &options, NULL), TL_STATUS_CHECK_FAILED, "still running after 0.2 s (livelock?)\n",
                 "block (3, 0, 0) is not resident: 3 of 4 blocks were begun. Blocks that wait for later ones must be "
                 "resident with them (resident is 3)\n",
                 "  warp 0 lanes 1-31 wait at llvm.nvvm.barrier.cta.sync.aligned.all (call 4) for lanes 0\n  "
                 "warp 0 lanes 0 run\n");
  options.resident = 0;
  expect_failure(run(kernel, 4, &options, NULL), TL_STATUS_CHECK_FAILED, "block (0, 0, 0): still running",
                 "block (1, 0, 0) is not resident: 1 of 4 blocks", "(resident is 1)");
  tl_emu_kernel_destroy(kernel);
  kernel = must_create("resident.ll", "clusters", (kernel_shape){1, 32, .cluster = 2});
  options.resident = 2;
  expect_failure(run(kernel, 8, &options, NULL), TL_STATUS_CHECK_FAILED, "still running",
                 "block (4, 0, 0) is not resident: 4 of 8 blocks", "(resident is 2)");
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(deadlock) {
  tl_emu_kernel *kernel = must_create("resident.ll", "stuck", (kernel_shape){1, THREADS, 0});
  tl_emu_options options = {.threads = 1, .resident = 2};
  expect_failure(run(kernel, 2, &options, NULL), TL_STATUS_CHECK_FAILED,
                 "deadlock, no thread can go on\n  warp 0 lanes 0-31 wait at barrier 0, 32 of 64 threads arrived",
                 "block (0, 0, 0)\n  warp 0 lanes 0-31 wait at barrier 0", "  warp 1 lanes 0-31 exited\n");
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(limits) {
  tl_emu_kernel *kernel = must_create("resident.ll", "rest", (kernel_shape){1, 1024, 0});
  tl_emu_options options = {.threads = 1, .resident = 17};
  expect_failure(
      run(kernel, 64, &options, NULL), TL_STATUS_LIMIT,
      "17 resident clusters of 1 blocks of 1024 threads; the emulator holds up to 256 blocks and 16384 threads", NULL,
      NULL);
  tl_emu_kernel_destroy(kernel);
  kernel = must_create("resident.ll", "clusters", (kernel_shape){1, 32, .cluster = 2});
  expect_failure(run(kernel, 7, &options, NULL), TL_STATUS_INVALID_ARGUMENT,
                 "grid 7 × 1 × 1 is no multiple of the cluster of 2 × 1 × 1 blocks", NULL, NULL);
  tl_emu_kernel_destroy(kernel);
  tl_emu_kernel *none = NULL;
  expect_failure(create_kernel("resident.ll", "clusters", (kernel_shape){1, 32, .cluster = 17}, &none),
                 TL_STATUS_INVALID_ARGUMENT, "a cluster of 17 × 1 × 1 blocks; the limit is 16", NULL, NULL);
}
END_TEST

static void add(TCase *cases) {
  tcase_add_test(cases, flags);
  tcase_add_test(cases, rests);
  tcase_add_test(cases, grid_barrier_and_lock);
  tcase_add_test(cases, clusters);
  tcase_add_test(cases, missing_blocks);
  tcase_add_test(cases, deadlock);
  tcase_add_test(cases, limits);
}

int main(void) {
  return run_suite("emulator_resident", add);
}
