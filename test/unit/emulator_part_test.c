// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics on bytes of a word: what they give, and that only those bytes count as accessed. Threads that meet at
// atomics.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 64, SEEDS = 8 };

typedef struct run {
  tl_status status;
  size_t num_findings;
  uint32_t out[4];
} run;

static run launch_threads(const char *name, uint32_t checks, uint32_t seed, uint32_t threads) {
  tl_emu_kernel *kernel =
      must_create("parts.ll", name, (kernel_shape){.num_params = 2, .threads = (int32_t)threads, .checks = checks});
  uint32_t *in = tl_emu_alloc(BUFFER_BYTES, 16), *out = tl_emu_alloc(BUFFER_BYTES, 16), grid[3] = {1, 1, 1};
  memset(in, 0, BUFFER_BYTES);
  memset(out, 0, BUFFER_BYTES);
  tl_emu_findings found = {0};
  tl_emu_options options = {.threads = 1, .seed = seed, .checks = checks, .findings = &found};
  run result = {.status = tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL)};
  result.num_findings = found.list.len;
  memcpy(result.out, out, sizeof result.out);
  tl_emu_findings_fini(&found);
  tl_emu_free(in);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
  return result;
}

static run launch(const char *name, uint32_t checks, uint32_t seed) {
  return launch_threads(name, checks, seed, THREADS);
}

START_TEST(results) {
  for (int checked = 0; checked < 2; checked++) {
    run got = launch("results", checked ? TL_EMU_SANITIZE_ALL : 0, 0);
    expect_ok(got.status);
    static const uint32_t expected[] = {9, 9, 9, 21};
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(got.out[i], expected[i]);
  }
  expect_failure(launch("misaligned", 0, 0).status, TL_STATUS_CHECK_FAILED, "tl.ld.relaxed.global.part",
                 "the address is no multiple of 4", NULL);
}
END_TEST

START_TEST(neighbours) {
  for (uint32_t seed = 0; seed < SEEDS; seed++) {
    run other = launch("other_half", TL_EMU_SANITIZE_ALL, seed), same = launch("same_half", TL_EMU_SANITIZE_ALL, seed);
    expect_ok(other.status);
    ck_assert_uint_eq(other.out[0], 0x50007);
    ck_assert_uint_ge(same.num_findings, 1);
    expect_failure(same.status, TL_STATUS_CHECK_FAILED, "race", "2 bytes", NULL);
  }
}
END_TEST

// Threads meet between a read and the exchange, so that a loop which does not retry right gives wrong numbers, in any
// one warp too; the right one never does. With seed 0 nobody comes between.
static const struct {
  const char *kernel;
  uint32_t threads, expected;
  uint32_t least_wrong;  // seeds that must show it; 0: the kernel is right
} loops[] = {{"maximum_right", 64, 63, 0},         {"maximum_right", 32, 63, 0},
             {"maximum_computed_once", 64, 63, 8}, {"maximum_computed_once", 32, 63, 8},
             {"maximum_tried_once", 64, 63, 1},    {"counted_apart", 64, 64, 15},
             {"counted_apart", 32, 32, 15}};

START_TEST(threads_meet) {
  uint32_t num_wrong = 0, num_threads = loops[_i].threads;
  for (uint32_t seed = 0; seed < 2 * SEEDS; seed++) {
    run got = launch_threads(loops[_i].kernel, 0, seed, num_threads);
    run again = launch_threads(loops[_i].kernel, 0, seed, num_threads);
    expect_ok(got.status);
    expect_ok(again.status);
    ck_assert_uint_eq(got.out[0], again.out[0]);
    bool wrong = got.out[0] != loops[_i].expected;
    ck_assert_msg(!wrong || loops[_i].least_wrong, "%s, seed %u: %u", loops[_i].kernel, seed, got.out[0]);
    num_wrong += wrong;
  }
  ck_assert_msg(num_wrong >= loops[_i].least_wrong, "%s: wrong with %u seeds only", loops[_i].kernel, num_wrong);
}
END_TEST

static void add(TCase *cases) {
  tcase_add_test(cases, results);
  tcase_add_test(cases, neighbours);
  tcase_add_loop_test(cases, threads_meet, 0, sizeof loops / sizeof loops[0]);
}

int main(void) {
  return run_suite("emulator_part", add);
}
