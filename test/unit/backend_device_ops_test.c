// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every row of device_ops.def, compiled alone at its lowest target and PTX version and assembled when ptxas is there.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/backend_ptxas.h"
#include "test/unit/backend_rows.h"

START_TEST(row_compiles_at_its_lowest_target) {
  const tl_device_op *op = tl_device_op_of((tl_device_op_id)_i);
  char *ptx = compile_row((tl_device_op_id)_i);
  ck_assert(strstr(ptx, ".entry k") != NULL);
  if (tl_test_has_ptxas())
    ck_assert_msg(tl_test_assemble(ptx, lowest_target(op)->name).ok, "%s: ptxas refused\n%s", op->name, ptx);
  free(ptx);
}
END_TEST

START_TEST(names_are_unique_and_found) {
  for (int i = 0; i < TL_DEVOP_COUNT; i++)
    ck_assert_int_eq(tl_device_op_find(tl_str_from(tl_device_op_of((tl_device_op_id)i)->name)), i);
  ck_assert_int_eq(tl_device_op_find(TL_STR("llvm.nvvm.nothing")), TL_DEVOP_COUNT);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_device_ops");
  TCase *rows = tcase_create("rows");
  tcase_set_timeout(rows, 60);
  tcase_add_loop_test(rows, row_compiles_at_its_lowest_target, 0, TL_DEVOP_COUNT);
  tcase_add_test(rows, names_are_unique_and_found);
  suite_add_tcase(suite, rows);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  if (!tl_test_has_ptxas()) printf("ptxas not found: %d rows were compiled but not assembled\n", TL_DEVOP_COUNT);
  return failed == 0 ? 0 : 1;
}
