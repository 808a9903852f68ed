// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A block of a cluster that ends while another may still access its shared memory, whoever runs first.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 32 };

static const struct {
  const char *kernel, *op;  // NULL: right
} cases[] = {{"read_good", NULL}, {"read_late", "load"}, {"write_late", "store"}};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

START_TEST(ends) {
  kernel_shape shape = {.num_params = 2, .threads = THREADS, .checks = TL_EMU_SANITIZE_ALL, .cluster = 2};
  tl_emu_kernel *kernel = must_create("cluster_exit.ll", cases[_i].kernel, shape);
  for (uint32_t seed = 0; seed < 12; seed++) {
    uint32_t *in = tl_emu_alloc(BUFFER_BYTES, 16), *out = tl_emu_alloc(BUFFER_BYTES, 16), grid[3] = {2, 1, 1};
    memset(in, 0, BUFFER_BYTES);
    memset(out, 0, BUFFER_BYTES);
    tl_emu_findings found = {0};
    tl_emu_options options = {.threads = 1, .seed = seed, .checks = TL_EMU_SANITIZE_ALL, .findings = &found};
    tl_status status = tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL);
    ck_assert_msg(!status == !cases[_i].op, "%s: seed %u: %s", cases[_i].kernel, seed, tl_status_message(status));
    if (cases[_i].op) {
      ck_assert_msg(found.list.len == 1, "seed %u: %s", seed, tl_status_message(status));
      const tl_emu_finding *one = &found.list.items[0];
      ck_assert_int_eq(one->kind, TL_EMU_FINDING_BOUNDS);
      ck_assert_uint_eq(one->count, THREADS);
      ck_assert_str_eq(one->now.op, cases[_i].op);
      ck_assert_uint_eq(one->now.block[0], 0);
      ck_assert_str_eq(one->now.action, "accesses the memory of a block that may have ended");
      ck_assert_str_eq(one->place, "shared memory of block (1, 0, 0)");
      ck_assert_str_eq(one->missing, "a barrier of the cluster between the access and the end of that block");
    } else {
      for (uint32_t t = 0; t < THREADS; t++) ck_assert_uint_eq(out[t], t);
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
  Suite *suite = suite_create("emulator_cluster_exit");
  TCase *all = tcase_create("all");
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, ends, 0, NUM_CASES);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
