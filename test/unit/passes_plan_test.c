// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// plan-shared: sizes, alignment, sharing by lives and barriers, the target's limit.
#include <check.h>
#include <stdlib.h>

#include "passes_pipeline_cases.h"

static int64_t offset_of(const tl_value *tile) {
  return tl_op_int(tile->def, TL_ATTR_OFFSET, -1);
}

static void use_tile(test_kernel *k, tl_value *out, tl_value *tile, int64_t row) {
  test_fill(k, tile, 1.0);
  tl_build(&k->b, TL_OP_BARRIER, NULL, NULL, 0);
  test_copy_out(k, tile, out, test_index(k, row), test_index(k, 0));
}

START_TEST(depth_pitch_and_alignment_count) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F16, 256, 256, TL_ACCESS_OUT);
  tl_value *small = test_tile(&k, "small", TL_SCOPE_SHARED, TL_DTYPE_F16, 3, 3);
  tl_value *padded = test_tile(&k, "padded", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  tl_value *swizzled = test_tile(&k, "swizzled", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  tl_value *unused = test_tile(&k, "unused", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  tl_shared_layout pad = {.pitch_bytes = 144};
  tl_shared_layout swizzle = {.pitch_bytes = 128, .swizzle_mask = 7};
  tl_op_set_shared(k.module, padded->def, TL_ATTR_SHARED_LAYOUT, tl_module_shared_layout(k.module, &pad));
  tl_op_set_shared(k.module, swizzled->def, TL_ATTR_SHARED_LAYOUT, tl_module_shared_layout(k.module, &swizzle));
  tl_op_set_int(k.module, swizzled->def, TL_ATTR_DEPTH, 3);
  test_fill(&k, small, 1.0);
  test_fill(&k, padded, 1.0);
  test_fill(&k, swizzled, 1.0);
  test_copy_out(&k, small, out, test_index(&k, 0), test_index(&k, 0));
  test_copy_out(&k, padded, out, test_index(&k, 0), test_index(&k, 0));
  test_copy_out(&k, swizzled, out, test_index(&k, 0), test_index(&k, 0));
  test_kernel_end(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_plan_shared));
  ck_assert_int_eq(offset_of(swizzled) % 1024, 0);
  ck_assert_int_eq(offset_of(padded) % 128, 0);
  ck_assert_int_eq(offset_of(small) % 16, 0);
  ck_assert_int_eq(offset_of(swizzled), 0);
  ck_assert_int_eq(offset_of(padded), 3 * 64 * 128);
  ck_assert_int_ge(offset_of(small), 3 * 64 * 128 + 63 * 144 + 128);
  ck_assert_int_eq(offset_of(unused), 0);
  int64_t total = tl_op_int(k.kernel, TL_ATTR_SHARED_BYTES, -1);
  ck_assert_int_eq(total, offset_of(small) + 20);  // 18 bytes, to the end of the word
  test_kernel_fini(&k);
}
END_TEST

START_TEST(ended_lives_are_reused_after_a_barrier) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F32, 256, 256, TL_ACCESS_OUT);
  tl_value *a = test_tile(&k, "a", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *b = test_tile(&k, "b", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *c = test_tile(&k, "c", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  use_tile(&k, out, a, 0);
  use_tile(&k, out, b, 64);  // no barrier between a's end and b's begin
  tl_build(&k.b, TL_OP_BARRIER, NULL, NULL, 0);
  use_tile(&k, out, c, 128);
  test_kernel_end(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_plan_shared));
  ck_assert_int_ne(offset_of(a), offset_of(b));
  ck_assert(offset_of(c) == offset_of(a) || offset_of(c) == offset_of(b));
  ck_assert_int_eq(tl_op_int(k.kernel, TL_ATTR_SHARED_BYTES, -1), 2 * 64 * 64 * 4);
  test_kernel_fini(&k);
}
END_TEST

START_TEST(barriers_are_added_only_when_needed) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F32, 512, 256, TL_ACCESS_OUT);
  tl_value *a = test_tile(&k, "a", TL_SCOPE_SHARED, TL_DTYPE_F32, 128, 256);
  tl_value *b = test_tile(&k, "b", TL_SCOPE_SHARED, TL_DTYPE_F32, 128, 256);
  use_tile(&k, out, a, 0);
  use_tile(&k, out, b, 128);
  test_kernel_end(&k);
  int before = test_count_ops(&k, TL_OP_BARRIER);
  ck_assert_ptr_null(test_run(&k, tl_pass_plan_shared));
  ck_assert_int_eq(test_count_ops(&k, TL_OP_BARRIER), before + 1);
  ck_assert_int_eq(tl_op_int(k.kernel, TL_ATTR_SHARED_BYTES, -1), 128 * 256 * 4);
  ck_assert_uint_eq(k.diags.num_errors, 0);
  ck_assert_ptr_null(test_run(&k, tl_pass_verify_barriers));
  // Without the barrier the reuse is a race that the verifier sees from the offsets.
  for (tl_op *op = k.kernel->regions[0]->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_BARRIER && op->next->code == TL_OP_FILL) tl_op_erase(op);
  }
  ck_assert_ptr_nonnull(test_run(&k, tl_pass_verify_barriers));
  test_kernel_fini(&k);
}
END_TEST

START_TEST(the_limit_names_every_tile) {
  test_kernel k;
  build_pipeline_case(&k, &pipeline_cases[0], 12, 40, false);
  static tl_pass_fn *const passes[] = {tl_pass_promote_fragments, tl_pass_pipeline, tl_pass_place_barriers,
                                       tl_pass_lower_rings, tl_pass_plan_shared};
  for (size_t i = 0; i < 5; i++) ck_assert_ptr_null(test_run(&k, passes[i]));
  const tl_diag *found = NULL;
  for (size_t d = 0; d < k.diags.list.len; d++) {
    if (k.diags.list.items[d]->code == TL_DIAG_SHARED_LIMIT) found = k.diags.list.items[d];
  }
  ck_assert_ptr_nonnull(found);
  ck_assert_ptr_nonnull(strstr(found->text, "196608 bytes"));
  ck_assert_ptr_nonnull(strstr(found->text, "sm_80 allows 166912"));
  ck_assert_uint_eq(found->num_notes, 3);
  ck_assert_ptr_nonnull(strstr(found->notes[0].text, "'A_s' takes 98304 bytes: 8192 in each of 12 stages"));
  ck_assert_ptr_nonnull(strstr(found->notes[2].text, "fewer stages"));
  test_kernel_fini(&k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan");
  TCase *tcase = tcase_create("plan");
  tcase_add_test(tcase, depth_pitch_and_alignment_count);
  tcase_add_test(tcase, ended_lives_are_reused_after_a_barrier);
  tcase_add_test(tcase, barriers_are_added_only_when_needed);
  tcase_add_test(tcase, the_limit_names_every_tile);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
