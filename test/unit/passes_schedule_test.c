// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cost functions behind choose-schedule.
#include <check.h>
#include <stdlib.h>

#include "passes/schedule/cost.h"

static tl_gemm_plan best(int32_t m, int32_t n, int32_t k, int policy, int32_t warps) {
  tl_gemm_shape shape = {.m = m, .n = n, .k = k, .operand_bits = 16, .policy = policy};
  shape.mma = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_F16));
  return tl_cost_best_mma(&shape, warps);
}

START_TEST(warp_tiles_are_square) {
  tl_gemm_plan plan = best(128, 128, 64, TL_POLICY_SQUARE, 4);
  ck_assert_int_eq(plan.warps_m, 2);
  ck_assert_int_eq(plan.warps_n, 2);
  ck_assert_int_eq(plan.acc_registers, 128);
  plan = best(128, 256, 64, TL_POLICY_SQUARE, 8);
  ck_assert_int_eq(plan.warps_m, 2);
  ck_assert_int_eq(plan.warps_n, 4);
}
END_TEST

START_TEST(narrow_tiles_keep_all_warps_busy) {
  tl_gemm_plan plan = best(16, 64, 128, TL_POLICY_SQUARE, 4);
  ck_assert_int_eq(plan.warps_m, 1);
  ck_assert_int_eq(plan.warps_n, 4);
  ck_assert_int_eq(plan.replicas, 1);
  ck_assert_int_eq(plan.padded_m, 16);
}
END_TEST

START_TEST(policies_are_obeyed) {
  tl_gemm_plan plan = best(128, 128, 32, TL_POLICY_FULL_ROW, 4);
  ck_assert_int_eq(plan.warps_m, 4);
  ck_assert_int_eq(plan.warps_n, 1);
  plan = best(128, 128, 32, TL_POLICY_FULL_COL, 4);
  ck_assert_int_eq(plan.warps_m, 1);
  ck_assert_int_eq(plan.warps_n, 4);
  // More warps than rows of instructions: the rest goes to the columns.
  plan = best(16, 128, 32, TL_POLICY_FULL_ROW, 4);
  ck_assert_int_eq(plan.warps_m * plan.warps_n * plan.replicas, 4);
}
END_TEST

START_TEST(odd_sizes_are_padded) {
  tl_gemm_plan plan = best(100, 40, 32, TL_POLICY_SQUARE, 4);
  ck_assert_int_ge(plan.padded_m, 100);
  ck_assert_int_ge(plan.padded_n, 40);
  ck_assert_int_eq(plan.padded_m % (16 * plan.warps_m), 0);
  ck_assert_int_eq(plan.padded_n % (8 * plan.warps_n), 0);
  // One instruction for eight warps: they repeat it.
  plan = best(16, 8, 16, TL_POLICY_SQUARE, 8);
  ck_assert_int_eq(plan.warps_m * plan.warps_n * plan.replicas, 8);
}
END_TEST

START_TEST(registers_threads_and_shared_limit_blocks) {
  const tl_target *target = tl_target_find(TL_STR("sm_80"));
  ck_assert_int_eq(tl_cost_resident_blocks(target, 128, 240, 0), 2);
  ck_assert_int_eq(tl_cost_resident_blocks(target, 256, 255, 0), 1);
  ck_assert_int_eq(tl_cost_resident_blocks(target, 1024, 32, 0), 2);
  ck_assert_int_eq(tl_cost_resident_blocks(target, 128, 64, 96 << 10), 1);
  ck_assert_int_eq(tl_cost_resident_blocks(target, 128, 64, 81 << 10), 2);
  // A block that does not fit is somebody else's error; the answer stays usable.
  ck_assert_int_eq(tl_cost_resident_blocks(target, 128, 64, 1 << 30), 1);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passes schedule");
  TCase *tests = tcase_create("cost");
  tcase_add_test(tests, warp_tiles_are_square);
  tcase_add_test(tests, narrow_tiles_keep_all_warps_busy);
  tcase_add_test(tests, policies_are_obeyed);
  tcase_add_test(tests, odd_sizes_are_padded);
  tcase_add_test(tests, registers_threads_and_shared_limit_blocks);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
