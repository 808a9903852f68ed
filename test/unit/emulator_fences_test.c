// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fences and relaxed atomics order, with a fence on both sides, and one side alone does not.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 64 };

static const struct {
  const char *kernel;
  uint32_t blocks;
  bool is_right;
  tl_emu_finding_kind kind;
} cases[] = {
    {"flag_good", 1, true},
    {"flag_without_release", 1, false, TL_EMU_FINDING_RACE},
    {"flag_without_acquire", 1, false, TL_EMU_FINDING_RACE},
    {"flag_fence_too_early", 1, false, TL_EMU_FINDING_RACE},
    {"mixed_good", 1, true},
    {"blocks_good", 2, true},
    {"blocks_without_release", 2, false, TL_EMU_FINDING_BLOCKS},
    {"blocks_without_acquire", 2, false, TL_EMU_FINDING_BLOCKS},
};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

START_TEST(order) {
  tl_emu_kernel *kernel =
      must_create("fences.ll", cases[_i].kernel,
                  (kernel_shape){.num_params = 2, .threads = THREADS, .checks = TL_EMU_SANITIZE_ALL});
  for (uint32_t seed = 0; seed < 8; seed++) {
    uint32_t *in = tl_emu_alloc(BUFFER_BYTES, 16), *out = tl_emu_alloc(BUFFER_BYTES, 16),
             grid[3] = {cases[_i].blocks, 1, 1};
    memset(in, 0, BUFFER_BYTES);
    memset(out, 0, BUFFER_BYTES);
    tl_emu_findings found = {0};
    tl_emu_options options = {
        .threads = 1 + (int)(seed & 1), .seed = seed, .resident = 2, .checks = TL_EMU_SANITIZE_ALL, .findings = &found};
    tl_status status = tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL);
    ck_assert_msg(!status == cases[_i].is_right, "%s: seed %u: %s", cases[_i].kernel, seed, tl_status_message(status));
    if (!cases[_i].is_right) {
      ck_assert_uint_ge(found.list.len, 1);
      ck_assert_int_eq(found.list.items[0].kind, cases[_i].kind);
      ck_assert_str_eq(found.list.items[0].now.op, "load");
    } else if (cases[_i].blocks == 2) {
      for (uint32_t t = 0; t < THREADS; t++) ck_assert_uint_eq(out[100 + t], THREADS - 1 - t);
    } else {
      for (uint32_t t = 1; t < THREADS; t++) ck_assert_uint_eq(out[t], 5);
    }
    tl_status_free(status);
    tl_emu_findings_fini(&found);
    tl_emu_free(in);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_fences");
  TCase *all = tcase_create("all");
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, order, 0, NUM_CASES);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
