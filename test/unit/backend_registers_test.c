// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers that live at once in PTX text, and the blocks that are asked for because of them.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/output/registers.h"

static int32_t live(const char *body) {
  return tl_ptx_live_registers(tl_str_from(body));
}

START_TEST(straight_code) {
  // %r1 and %r2 live together, %r3 takes the place of both; a wide address counts twice.
  ck_assert_int_eq(live("\n{\n\tmov.u32 \t%r1, %tid.x;\n\tmov.u32 \t%r2, %ctaid.x;\n\tadd.s32 \t%r3, %r1, %r2;\n"
                        "\tadd.s32 \t%r4, %r3, %r3;\n\tret;\n"),
                   2);
  ck_assert_int_eq(live("\n{\n\tcvt.u64.u32 \t%rd1, %r1;\n\tld.global.v4.b32 \t{%r2, %r3, %r4, %r5}, [%rd1+16];\n"
                        "\tst.global.v4.b32 \t[%rd1], {%r2, %r3, %r4, %r5};\n\tret;\n"),
                   6);
  // Predicates have registers of their own.
  ck_assert_int_eq(
      live("\n{\n\tsetp.lt.s32 \t%p1, %r1, 5;\n\tselp.b32 \t%r2, %r1, 0, %p1;\n\tadd.s32 \t%r3, %r2, 1;\n"), 1);
}
END_TEST

START_TEST(parameters_are_free) {
  ck_assert_int_eq(live("\n{\n\tld.param.b64 \t%rd1, [k_param_0];\n\tcvta.to.global.u64 \t%rd2, %rd1;\n"
                        "\tmov.u32 \t%r1, %tid.x;\n\tst.global.b32 \t[%rd2], %r1;\n\tret;\n"),
                   1);
}
END_TEST

START_TEST(a_guarded_load_keeps_what_was_there) {
  // The value before the guard lives on: two registers at the load, the address aside.
  ck_assert_int_eq(live("\n{\n\tmov.b32 \t%r1, 0;\n\tmov.b32 \t%r2, 1;\n\t@%p1 ld.shared.b32 \t%r1, [0];\n"
                        "\tadd.s32 \t%r3, %r1, %r2;\n\tst.shared.b32 \t[0], %r3;\n\tret;\n"),
                   2);
}
END_TEST

START_TEST(loops) {
  // %r1 is read behind the loop, %r2 goes round, %r3 is the loop's own.
  static const char loop[] =
      "\n{\n\tmov.b32 \t%r1, 7;\n\tmov.b32 \t%r2, 0;\n$L__BB0_1: // head\n\tadd.s32 \t%r3, %r2, 1;\n"
      "\tmov.b32 \t%r2, %r3;\n\tsetp.lt.s32 \t%p1, %r3, 9;\n\t@%p1 bra \t$L__BB0_1;\n\tst.shared.b32 \t[0], "
      "%r1;\n\tret;\n";
  ck_assert_int_eq(live(loop), 3);
  // A branch that nothing here follows.
  ck_assert_int_eq(live("\n{\n\tmov.b32 \t%r1, 7;\n\tbrx.idx \t%r1, $L_table;\n"), 0);
}
END_TEST

static int32_t by_need(const char *body) {
  return tl_ptx_live_registers_by_need(tl_str_from(body));
}

START_TEST(values_when_they_are_needed) {
#define LOADS "\tld.shared.b32 \t%r1, [0];\n\tld.shared.b32 \t%r2, [4];\n\tld.shared.b32 \t%r3, [8];\n"
#define SUMS "\tadd.f32 \t%r4, %r1, %r2;\n\tadd.f32 \t%r5, %r4, %r3;\n\tst.global.b32 \t[%rd1], %r5;\n\tret;\n"
  // The address aside, three loads live at once as they stand, a sum and a load where each comes when it is needed.
  ck_assert_int_eq(live("\n{\n" LOADS SUMS), 3 + 2);
  ck_assert_int_eq(by_need("\n{\n" LOADS SUMS), 2 + 2);
  // No load moves over a barrier or a store to shared memory; one from global memory stays where it is.
  ck_assert_int_eq(by_need("\n{\n" LOADS "\tbar.sync \t0;\n" SUMS), 3 + 2);
  ck_assert_int_eq(by_need("\n{\n" LOADS "\tst.shared.b32 \t[0], 7;\n" SUMS), 3 + 2);
  ck_assert_int_eq(by_need("\n{\n\tld.global.b32 \t%r1, [%rd1];\n\tld.global.b32 \t%r2, [%rd1];\n\tld.global.b32 "
                           "\t%r3, [%rd1];\n" SUMS),
                   3 + 2);
  // What another instruction gives a value once more does not move over it.
  ck_assert_int_eq(by_need("\n{\n" LOADS "\tmov.b32 \t%r3, 0;\n\tmov.b32 \t%r1, %r3;\n\tmov.b32 \t%r2, %r3;\n" SUMS),
                   live("\n{\n" LOADS "\tmov.b32 \t%r3, 0;\n\tmov.b32 \t%r1, %r3;\n\tmov.b32 \t%r2, %r3;\n" SUMS));
}
END_TEST

// A kernel whose `registers` values live at once.
static void write_kernel(int registers, int threads, int blocks, tl_strbuf *out) {
  tl_strbuf_appendf(out, ".visible .entry k()\n.reqntid %d, 1, 1\n.minnctapersm %d\n{\n", threads, blocks);
  for (int r = 0; r < registers; r++) tl_strbuf_appendf(out, "\tld.shared.b32 \t%%r%d, [%d];\n", r, 4 * r);
  for (int r = 0; r < registers; r++) tl_strbuf_appendf(out, "\tst.shared.b32 \t[%d], %%r%d;\n", 4 * r, r);
  tl_strbuf_append_c(out, "\tret;\n}\n");
}

static int fitted(int registers, int threads, int blocks) {
  tl_strbuf ptx, out;
  tl_strbuf_init(&ptx);
  tl_strbuf_init(&out);
  write_kernel(registers, threads, blocks, &ptx);
  tl_ptx_fit_blocks(tl_strbuf_view(&ptx), &out);
  const char *found = strstr(tl_strbuf_c(&out), ".minnctapersm ");
  int result = atoi(found + strlen(".minnctapersm "));
  // Nothing else changes.
  tl_strbuf expected;
  tl_strbuf_init(&expected);
  write_kernel(registers, threads, result, &expected);
  ck_assert_str_eq(tl_strbuf_c(&out), tl_strbuf_c(&expected));
  tl_strbuf_fini(&expected);
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&out);
  return result;
}

// A kernel that sums `registers` values which it loads first.
START_TEST(what_fits_by_need_is_left_to_ptxas) {
  enum { VALUES = 100 };
  tl_strbuf ptx, out;
  tl_strbuf_init(&ptx);
  tl_strbuf_init(&out);
  tl_strbuf_append_c(&ptx, ".visible .entry k()\n.reqntid 512, 1, 1\n.minnctapersm 2\n{\n");
  for (int r = 1; r <= VALUES; r++) tl_strbuf_appendf(&ptx, "\tld.shared.b32 \t%%r%d, [%d];\n", r, 4 * r);
  tl_strbuf_append_c(&ptx, "\tadd.f32 \t%r201, %r1, %r2;\n");
  for (int r = 2; r < VALUES; r++)
    tl_strbuf_appendf(&ptx, "\tadd.f32 \t%%r%d, %%r%d, %%r%d;\n", r + 200, r + 199, r + 1);
  tl_strbuf_append_c(&ptx, "\tst.global.b32 \t[%rd1], %r299;\n\tret;\n}\n");
  tl_ptx_fit_blocks(tl_strbuf_view(&ptx), &out);
  ck_assert(strstr(tl_strbuf_c(&out), ".minnctapersm") == NULL);
  ck_assert(strstr(tl_strbuf_c(&out), ".reqntid 512, 1, 1\n{") != NULL);
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&out);
}
END_TEST

// One block would be told that it may have all registers, and take them.
START_TEST(what_is_near_two_blocks_is_left_to_ptxas) {
  tl_strbuf ptx, out;
  tl_strbuf_init(&ptx);
  tl_strbuf_init(&out);
  write_kernel(90, 512, 2, &ptx);
  tl_ptx_fit_blocks(tl_strbuf_view(&ptx), &out);
  ck_assert(strstr(tl_strbuf_c(&out), ".minnctapersm") == NULL);
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&out);
  ck_assert_int_eq(fitted(250, 512, 2), 1);
}
END_TEST

START_TEST(blocks_that_fit) {
  ck_assert_int_eq(fitted(40, 128, 10), 10);  // 48 registers
  ck_assert_int_eq(fitted(41, 128, 10), 9);   // 56
  ck_assert_int_eq(fitted(100, 128, 10), 4);  // 128
  ck_assert_int_eq(fitted(400, 512, 4), 1);
  // Two blocks leave a thread all the registers it can have: one would leave it no more.
  ck_assert_int_eq(fitted(400, 128, 10), 2);
  ck_assert_int_eq(fitted(400, 128, 2), 2);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_registers");
  TCase *tcase = tcase_create("registers");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, straight_code);
  tcase_add_test(tcase, parameters_are_free);
  tcase_add_test(tcase, a_guarded_load_keeps_what_was_there);
  tcase_add_test(tcase, loops);
  tcase_add_test(tcase, values_when_they_are_needed);
  tcase_add_test(tcase, what_fits_by_need_is_left_to_ptxas);
  tcase_add_test(tcase, what_is_near_two_blocks_is_left_to_ptxas);
  tcase_add_test(tcase, blocks_that_fit);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
