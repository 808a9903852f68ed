// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline and lower-rings keep what a loop computes: for loops of many shapes, stage counts and trip counts, the
// serial kernel, the one with rings and the one with cp.async groups are executed symbolically and must agree, whether
// asynchronous copies land early or late.
#include <check.h>
#include <stdlib.h>

#include "passes_pipeline_cases.h"
#include "passes_pipeline_exec.h"

static const char *run_upto(test_kernel *k, tl_pass_fn *const *passes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *failure = test_run(k, passes[i]);
    if (failure) return failure;
  }
  return NULL;
}

static void expect_same(const pipeline_case *which, const tl_module *serial, const tl_module *module, const char *stage,
                        int64_t stages, int64_t trips, bool is_dynamic) {
  for (uint64_t seed = 0; seed < 4; seed++) {
    uint64_t expected = exec_kernel((tl_module *)serial, trips, seed, false);
    for (int late = 0; late < 2; late++) {
      uint64_t found = exec_kernel((tl_module *)module, trips, seed, late);
      ck_assert_msg(found == expected, "%s: after %s, %lld stages, %lld %s trips, seed %d, %s landing: another result",
                    which->name, stage, (long long)stages, (long long)trips, is_dynamic ? "dynamic" : "constant",
                    (int)seed, late ? "late" : "early");
    }
  }
}

static void check_case(const pipeline_case *which, int64_t stages, int64_t trips, bool is_dynamic) {
  test_kernel k;
  build_pipeline_case(&k, which, stages, trips, is_dynamic);
  const char *failure = test_run(&k, tl_pass_promote_fragments);
  ck_assert_msg(failure == NULL, "%s: %s", which->name, failure);
  tl_module *serial = tl_module_clone(k.module);
  failure = test_run(&k, tl_pass_pipeline);
  ck_assert_msg(failure == NULL, "%s: %s", which->name, failure);
  if (getenv("TL_TEST_PRINT")) test_print(&k);
  if (stages > 1)
    ck_assert_msg(test_count_ops(&k, TL_OP_RING) == which->rings, "%s: %d rings", which->name,
                  test_count_ops(&k, TL_OP_RING));
  int64_t first = is_dynamic ? 0 : trips;
  int64_t last = is_dynamic ? stages + 3 : trips;
  for (int64_t n = first; n <= last; n++) expect_same(which, serial, k.module, "pipeline", stages, n, is_dynamic);
  static tl_pass_fn *const rest[] = {tl_pass_place_barriers,  tl_pass_verify_barriers, tl_pass_lower_rings,
                                     tl_pass_verify_barriers, tl_pass_plan_shared,     tl_pass_verify_barriers};
  failure = run_upto(&k, rest, sizeof(rest) / sizeof(rest[0]));
  if (failure && getenv("TL_TEST_PRINT")) test_print(&k);
  ck_assert_msg(failure == NULL, "%s, %lld stages, %lld trips: %s", which->name, (long long)stages, (long long)trips,
                failure);
  static const tl_opcode gone[] = {TL_OP_RING,      TL_OP_RING_ACQUIRE, TL_OP_RING_COMMIT,
                                   TL_OP_RING_WAIT, TL_OP_RING_RELEASE, TL_OP_RING_TILE};
  for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) ck_assert_int_eq(test_count_ops(&k, gone[i]), 0);
  for (int64_t n = first; n <= last; n++) expect_same(which, serial, k.module, "lower-rings", stages, n, is_dynamic);
  tl_module_destroy(serial);
  test_kernel_fini(&k);
}

START_TEST(serial_semantics_are_kept) {
  const pipeline_case *which = &pipeline_cases[_i];
  for (int64_t stages = 1; stages <= 4; stages++) {
    for (int64_t trips = 0; trips <= stages + 2; trips++) check_case(which, stages, trips, false);
    check_case(which, stages, 0, true);
  }
}
END_TEST

// One barrier an iteration is enough for a loop whose copies all feed one gemm.
START_TEST(steady_state_has_one_barrier) {
  for (int64_t stages = 2; stages <= 4; stages++) {
    test_kernel k;
    build_pipeline_case(&k, &pipeline_cases[0], stages, 0, true);
    static tl_pass_fn *const passes[] = {tl_pass_promote_fragments, tl_pass_pipeline, tl_pass_place_barriers};
    ck_assert_ptr_null(run_upto(&k, passes, 3));
    tl_op *loop = test_first_op(&k, TL_OP_FOR);
    int barriers = 0;
    for (tl_op *op = loop->regions[0]->first; op; op = op->next) barriers += op->code == TL_OP_BARRIER;
    ck_assert_int_eq(barriers, 1);
    ck_assert_int_eq(tl_op_int(test_first_op(&k, TL_OP_RING_WAIT), TL_ATTR_PENDING, -1), stages - 2);
    test_kernel_fini(&k);
  }
}
END_TEST

// Everything that stays in order is explained.
START_TEST(remarks_say_why) {
  static const struct {
    int which;
    const char *text;
  } expected[] = {{1, "read before it is written"},  {4, "content of an earlier iteration"},
                  {8, "read after the loop"},        {9, "written twice"},
                  {15, "nothing in the loop reads"}, {16, "another statement of the loop writes"},
                  {21, "a part of the tile"},        {18, "also writes its source"}};
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
    test_kernel k;
    build_pipeline_case(&k, &pipeline_cases[expected[i].which], 3, 5, false);
    ck_assert_ptr_null(test_run(&k, tl_pass_promote_fragments));
    ck_assert_ptr_null(test_run(&k, tl_pass_pipeline));
    bool found = false;
    for (size_t d = 0; d < k.diags.list.len; d++)
      found |= strstr(k.diags.list.items[d]->text, expected[i].text) != NULL;
    ck_assert_msg(found, "%s: no remark with '%s'", pipeline_cases[expected[i].which].name, expected[i].text);
    test_kernel_fini(&k);
  }
}
END_TEST

// Groups of several rings complete in one order: the waits of the second ring count the commits of both.
START_TEST(waits_count_groups_of_all_rings) {
  test_kernel k;
  build_pipeline_case(&k, &pipeline_cases[2], 3, 0, true);
  static tl_pass_fn *const passes[] = {tl_pass_promote_fragments, tl_pass_pipeline, tl_pass_place_barriers,
                                       tl_pass_lower_rings};
  ck_assert_ptr_null(run_upto(&k, passes, 4));
  tl_op *loop = test_first_op(&k, TL_OP_FOR);
  int64_t pending[2];
  int waits = 0;
  for (tl_op *op = loop->regions[0]->first; op; op = op->next) {
    if (op->code == TL_OP_ASYNC_WAIT && waits < 2) pending[waits++] = tl_op_int(op, TL_ATTR_PENDING, -1);
  }
  ck_assert_int_eq(waits, 2);
  ck_assert_int_eq(pending[0], 3);  // committed since: V(k), K(k+1), V(k+1)
  ck_assert_int_eq(pending[1], 4);  // K and V of k+1 and of k+2
  test_kernel_fini(&k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pipeline");
  TCase *tcase = tcase_create("pipeline");
  tcase_set_timeout(tcase, 100);
  tcase_add_loop_test(tcase, serial_semantics_are_kept, 0, NUM_PIPELINE_CASES);
  tcase_add_test(tcase, steady_state_has_one_barrier);
  tcase_add_test(tcase, remarks_say_why);
  tcase_add_test(tcase, waits_count_groups_of_all_rings);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
