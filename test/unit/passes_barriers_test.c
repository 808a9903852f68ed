// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// place-barriers and verify-barriers: what is placed passes, and the verifier objects to every barrier that is dropped
// and to every wait that lets one more group fly.
#include <check.h>
#include <stdlib.h>

#include "passes_pipeline_cases.h"

typedef struct nth_op {
  tl_opcode code;
  int wanted;
  int seen;
  tl_op *found;
} nth_op;

static void visit_nth(tl_op *op, void *user) {
  nth_op *search = user;
  if (op->code == search->code && search->seen++ == search->wanted) search->found = op;
}

static tl_op *find_nth(const test_kernel *k, tl_opcode code, int wanted) {
  nth_op search = {.code = code, .wanted = wanted};
  tl_walk(k->kernel, visit_nth, &search);
  return search.found;
}

static void schedule(test_kernel *k, const pipeline_case *which, int64_t stages, bool lowered) {
  build_pipeline_case(k, which, stages, 0, true);
  static tl_pass_fn *const passes[] = {tl_pass_promote_fragments, tl_pass_pipeline, tl_pass_place_barriers,
                                       tl_pass_lower_rings};
  for (int i = 0; i < (lowered ? 4 : 3); i++) {
    const char *failure = test_run(k, passes[i]);
    ck_assert_msg(failure == NULL, "%s: %s", which->name, failure);
  }
}

static void check_dropped_barriers(const pipeline_case *which, int64_t stages, bool lowered) {
  for (int n = 0;; n++) {
    test_kernel k;
    schedule(&k, which, stages, lowered);
    tl_op *barrier = find_nth(&k, TL_OP_BARRIER, n);
    if (barrier == NULL) {
      const char *failure = test_run(&k, tl_pass_verify_barriers);
      ck_assert_msg(failure == NULL, "%s: %s", which->name, failure);
      test_kernel_fini(&k);
      return;
    }
    tl_op_erase(barrier);
    const char *failure = test_run(&k, tl_pass_verify_barriers);
    if (failure == NULL && getenv("TL_TEST_PRINT")) test_print(&k);
    ck_assert_msg(failure != NULL, "%s, %lld stages%s: barrier %d is not missed", which->name, (long long)stages,
                  lowered ? ", lowered" : "", n);
    ck_assert_ptr_nonnull(strstr(failure, "verify-barriers: '"));
    test_kernel_fini(&k);
  }
}

static void check_loose_waits(const pipeline_case *which, int64_t stages, tl_opcode code) {
  for (int n = 0;; n++) {
    test_kernel k;
    schedule(&k, which, stages, code == TL_OP_ASYNC_WAIT);
    tl_op *wait = find_nth(&k, code, n);
    if (wait == NULL) {
      test_kernel_fini(&k);
      return;
    }
    if (code == TL_OP_ASYNC_WAIT && tl_op_enclosing(wait, TL_OP_FOR) == NULL) {
      // Groups complete in order: a wait of the loop that follows may cover this one.
      test_kernel_fini(&k);
      continue;
    }
    tl_op_set_int(k.module, wait, TL_ATTR_PENDING, tl_op_int(wait, TL_ATTR_PENDING, 0) + 1);
    const char *failure = test_run(&k, tl_pass_verify_barriers);
    if (failure == NULL && getenv("TL_TEST_PRINT")) test_print(&k);
    ck_assert_msg(failure != NULL, "%s, %lld stages: wait %d may be looser", which->name, (long long)stages, n);
    ck_assert_msg(strstr(failure, "not waited for") != NULL, "%s", failure);
    test_kernel_fini(&k);
  }
}

START_TEST(dropped_barriers_are_missed) {
  for (int64_t stages = 1; stages <= 3; stages++) {
    check_dropped_barriers(&pipeline_cases[_i], stages, false);
    check_dropped_barriers(&pipeline_cases[_i], stages, true);
  }
}
END_TEST

START_TEST(loose_waits_are_noticed) {
  for (int64_t stages = 1; stages <= 3; stages++) {
    check_loose_waits(&pipeline_cases[_i], stages, TL_OP_RING_WAIT);
    check_loose_waits(&pipeline_cases[_i], stages, TL_OP_ASYNC_WAIT);
  }
}
END_TEST

// An if that is not proven uniform holds no barrier: it is put before.
START_TEST(no_barrier_inside_a_divergent_if) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *flag = test_dynamic(&k, "n");
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F32, 64, 64, TL_ACCESS_OUT);
  tl_value *s = test_tile(&k, "s", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *zero = test_index(&k, 0);
  test_fill(&k, s, 1.0);
  tl_builder outer = test_open_if(&k, tl_build_cmp(&k.b, TL_CMP_GT, flag, zero));
  tl_op *branch = outer.block->last;
  tl_op_remove_attr(branch, TL_ATTR_UNIFORM);
  test_copy_out(&k, s, out, zero, zero);
  test_close(&k, outer);
  test_kernel_end(&k);
  k.module->level = 1;
  ck_assert_ptr_null(test_run(&k, tl_pass_place_barriers));
  ck_assert_int_eq(test_count_ops(&k, TL_OP_BARRIER), 1);
  ck_assert_int_eq(branch->prev->code, TL_OP_BARRIER);
  ck_assert_ptr_null(test_run(&k, tl_pass_verify_barriers));
  test_kernel_fini(&k);
}
END_TEST

// Global memory that the block wrote is ordered like shared memory.
START_TEST(own_global_writes_are_ordered) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F32, 64, 64, TL_ACCESS_INOUT);
  tl_value *s = test_tile(&k, "s", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *t = test_tile(&k, "t", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *zero = test_index(&k, 0);
  test_fill(&k, s, 1.0);
  test_copy_out(&k, s, out, zero, zero);                // reads s: barrier
  test_copy_in(&k, out, zero, zero, t, TL_VIA_VECTOR);  // reads C: barrier
  test_copy_out(&k, t, out, zero, zero);                // reads t, writes C: barrier
  test_kernel_end(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_place_barriers));
  ck_assert_int_eq(test_count_ops(&k, TL_OP_BARRIER), 3);
  ck_assert_ptr_null(test_run(&k, tl_pass_verify_barriers));
  test_kernel_fini(&k);
}
END_TEST

// Boxes that lie apart, or that every iteration moves on, need no order; neighbours that overlap by one row do.
START_TEST(boxes_that_never_meet_need_no_barrier) {
  static const struct { int64_t rows_apart, moved_rows; } expected[] = {{64, 128}, {63, 64}, {64, 63}, {63, 0}};
  for (size_t e = 0; e < sizeof(expected) / sizeof(expected[0]); e++) {
    test_kernel k;
    test_kernel_init(&k);
    tl_value *n = test_dynamic(&k, "n");
    tl_value *in = test_tensor(&k, "A", 0, TL_DTYPE_F32, 4096, 64, TL_ACCESS_IN);
    tl_value *out = test_tensor(&k, "C", 1, TL_DTYPE_F32, 4096, 64, TL_ACCESS_OUT);
    tl_value *f = test_tile(&k, "f", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 64, 64);
    tl_value *zero = test_index(&k, 0);
    tl_value *i;
    tl_builder outer = test_open_for(&k, zero, n, test_index(&k, 1), 0, &i);
    tl_value *row = tl_index_mul(&k.b, i, test_index(&k, expected[e].moved_rows));
    test_copy_in(&k, in, row, zero, f, TL_VIA_AUTO);
    test_copy_out(&k, f, out, row, zero);
    test_close(&k, outer);
    tl_value *far = test_index(&k, 4000);
    test_copy_out(&k, f, out, far, zero);
    test_copy_out(&k, f, out, tl_index_add(&k.b, far, test_index(&k, expected[e].rows_apart)), zero);
    test_kernel_end(&k);
    ck_assert_ptr_null(test_run(&k, tl_pass_promote_fragments));
    ck_assert_ptr_null(test_run(&k, tl_pass_place_barriers));
    // One more orders the loop's stores, where they move, and the first after it.
    tl_op *loop = test_first_op(&k, TL_OP_FOR);
    int inside = 0;
    for (tl_op *op = loop->regions[0]->first; op; op = op->next) inside += op->code == TL_OP_BARRIER;
    ck_assert_int_eq(inside, expected[e].moved_rows < 64 ? 1 : 0);
    int outside = (expected[e].moved_rows > 0) + (expected[e].rows_apart < 64);
    ck_assert_int_eq(test_count_ops(&k, TL_OP_BARRIER) - inside, outside);
    ck_assert_ptr_null(test_run(&k, tl_pass_verify_barriers));
    test_kernel_fini(&k);
  }
}
END_TEST

// A barrier of the author serves too.
START_TEST(explicit_barriers_count) {
  test_kernel k;
  test_kernel_init(&k);
  tl_value *out = test_tensor(&k, "C", 0, TL_DTYPE_F32, 64, 64, TL_ACCESS_OUT);
  tl_value *s = test_tile(&k, "s", TL_SCOPE_SHARED, TL_DTYPE_F32, 64, 64);
  tl_value *zero = test_index(&k, 0);
  test_fill(&k, s, 1.0);
  tl_build(&k.b, TL_OP_BARRIER, NULL, NULL, 0);
  test_copy_out(&k, s, out, zero, zero);
  test_kernel_end(&k);
  ck_assert_ptr_null(test_run(&k, tl_pass_place_barriers));
  ck_assert_int_eq(test_count_ops(&k, TL_OP_BARRIER), 1);
  test_kernel_fini(&k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("barriers");
  TCase *tcase = tcase_create("barriers");
  tcase_set_timeout(tcase, 100);
  tcase_add_loop_test(tcase, dropped_barriers_are_missed, 0, NUM_PIPELINE_CASES);
  tcase_add_loop_test(tcase, loose_waits_are_noticed, 0, NUM_PIPELINE_CASES);
  tcase_add_test(tcase, no_barrier_inside_a_divergent_if);
  tcase_add_test(tcase, own_global_writes_are_ordered);
  tcase_add_test(tcase, boxes_that_never_meet_need_no_barrier);
  tcase_add_test(tcase, explicit_barriers_count);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
