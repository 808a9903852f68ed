// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics on bytes of a word: what they give, and that only those bytes count as accessed.
#include "emulator/check/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 64, SEEDS = 8 };

typedef struct run {
  tl_status status;
  size_t num_findings;
  uint32_t out[4];
} run;

static run launch(const char *name, uint32_t checks, uint32_t seed) {
  tl_emu_kernel *kernel =
      must_create("parts.ll", name, (kernel_shape){.num_params = 2, .threads = THREADS, .checks = checks});
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

START_TEST(results) {
  for (int checked = 0; checked < 2; checked++) {
    run got = launch("results", checked ? TL_EMU_CHECK_ALL : 0, 0);
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
    run other = launch("other_half", TL_EMU_CHECK_ALL, seed), same = launch("same_half", TL_EMU_CHECK_ALL, seed);
    expect_ok(other.status);
    ck_assert_uint_eq(other.out[0], 0x50007);
    ck_assert_uint_ge(same.num_findings, 1);
    expect_failure(same.status, TL_STATUS_CHECK_FAILED, "race", "2 bytes", NULL);
  }
}
END_TEST

static void add(TCase *cases) {
  tcase_add_test(cases, results);
  tcase_add_test(cases, neighbours);
}

int main(void) {
  return run_suite("emulator_part", add);
}
