// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of shared tiles that select-copies chooses.
#include <check.h>
#include <stdlib.h>

#include "passes/layout/select_copies.h"

START_TEST(known_swizzles) {
  tl_shared_layout layout = tl_swizzle_for_rows(128, 1);
  ck_assert_int_eq(layout.swizzle_mask, 7);
  ck_assert_int_eq(layout.swizzle_shift, 0);
  layout = tl_swizzle_for_rows(256, 1);
  ck_assert_int_eq(layout.swizzle_mask, 7);
  ck_assert_int_eq(layout.swizzle_shift, 0);
  layout = tl_swizzle_for_rows(64, 1);
  ck_assert_int_eq(layout.swizzle_mask, 3);
  ck_assert_int_eq(layout.swizzle_shift, 1);
  layout = tl_swizzle_for_rows(32, 1);
  ck_assert_int_eq(layout.swizzle_mask, 1);
  ck_assert_int_eq(layout.swizzle_shift, 2);
  layout = tl_swizzle_for_rows(16, 1);
  ck_assert_int_eq(layout.swizzle_mask, 0);
  ck_assert_int_eq(layout.pitch_bytes, 16);
}
END_TEST

// Every width in chunks has a layout without conflicts whose XOR stays inside the row.
START_TEST(every_width_is_conflict_free) {
  for (int64_t chunks = 1; chunks <= 64; chunks++) {
    tl_shared_layout layout = tl_swizzle_for_rows(chunks * 16, 1);
    ck_assert(tl_swizzle_is_conflict_free(&layout, chunks * 16, 1));
    ck_assert_int_ge(layout.pitch_bytes, chunks * 16);
    ck_assert_int_eq(layout.pitch_bytes % 16, 0);
    if (layout.swizzle_mask) ck_assert_int_eq(chunks % (layout.swizzle_mask + 1), 0);
  }
}
END_TEST

START_TEST(plain_rows_conflict) {
  tl_shared_layout plain = {.pitch_bytes = 128};
  ck_assert(!tl_swizzle_is_conflict_free(&plain, 128, 1));
  plain.pitch_bytes = 144;
  ck_assert(tl_swizzle_is_conflict_free(&plain, 128, 1));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passes copies");
  TCase *tests = tcase_create("swizzle");
  tcase_add_test(tests, known_swizzles);
  tcase_add_test(tests, every_width_is_conflict_free);
  tcase_add_test(tests, plain_rows_conflict);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
