// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline: rings from dependences.
#include <check.h>
#include <stdlib.h>

#include "passes_pipeline_ir.h"

// C = A @ B with a pipelined loop over `trips` (NULL: 4) iterations.
static void build_matmul(test_kernel *k, int64_t stages) {
  test_kernel_init(k);
  tl_value *a = test_tensor(k, "A", 0, TL_DTYPE_F16, 256, 256, TL_ACCESS_IN);
  tl_value *b = test_tensor(k, "B", 1, TL_DTYPE_F16, 256, 256, TL_ACCESS_IN);
  tl_value *c = test_tensor(k, "C", 2, TL_DTYPE_F16, 256, 256, TL_ACCESS_OUT);
  tl_value *a_s = test_tile(k, "A_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  tl_value *b_s = test_tile(k, "B_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  tl_value *acc = test_tile(k, "acc", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 64, 64);
  test_fill(k, acc, 0.0);
  tl_value *i;
  tl_builder outer = test_open_for(k, test_index(k, 0), test_index(k, 4), test_index(k, 1), stages, &i);
  tl_value *at = tl_index_mul(&k->b, i, test_index(k, 64));
  test_copy_in(k, a, test_index(k, 0), at, a_s, TL_VIA_CP_ASYNC);
  test_copy_in(k, b, at, test_index(k, 0), b_s, TL_VIA_CP_ASYNC);
  test_gemm(k, acc, a_s, b_s);
  test_close(k, outer);
  test_copy_out(k, acc, c, test_index(k, 0), test_index(k, 0));
  test_kernel_end(k);
}

START_TEST(matmul_goes_through_all_passes) {
  test_kernel k;
  build_matmul(&k, 3);
  ck_assert_ptr_null(test_run(&k, tl_pass_promote_fragments));
  if (getenv("TL_TEST_PRINT")) test_print(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_pipeline));
  ck_assert_ptr_null(test_run(&k, tl_pass_place_barriers));
  if (getenv("TL_TEST_PRINT")) test_print(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_lower_rings));
  ck_assert_ptr_null(test_run(&k, tl_pass_plan_shared));
  if (getenv("TL_TEST_PRINT")) test_print(&k);
  test_kernel_fini(&k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pipeline");
  TCase *tcase = tcase_create("pipeline");
  tcase_add_test(tcase, matmul_goes_through_all_passes);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
