// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass manager's options, on a small module.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "passes/manager/passes.h"

static const char source_text[] =
    "module tile\n"
    "kernel {name = \"k\", threads = 128} do {\n"
    "  %c0 = const {value = 0} : index\n"
    "  %c1 = const {value = 1} : index\n"
    "  %c64 = const {value = 64} : index\n"
    "  %Y = tensor dims(%c64) strides(%c1) {name = \"Y\", arg = 0, access = out, align = 16} : buffer<global f32 64>\n"
    "  %unused = add %c64, %c1 : index\n"
    "  %v = const {value = 1.0} : f32\n"
    "  store value(%v) buffer(%Y) index(%c0)\n"
    "  yield\n"
    "}\n";

static tl_sources sources;
static tl_diags diags;
static tl_strbuf printed;
static tl_module *module;

static void setup(void) {
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_strbuf_init(&printed);
  uint32_t source = tl_sources_add(&sources, "test.tir", tl_str_from(source_text));
  module = tl_module_parse(&sources, source, &diags);
  ck_assert_ptr_nonnull(module);
}

static void teardown(void) {
  tl_module_destroy(module);
  tl_strbuf_fini(&printed);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static tl_status run(tl_pass_options options) {
  options.log = &printed;
  return tl_passes_run(module, tl_target_find(TL_STR("sm_80")), &options, &diags);
}

static int count(const char *needle) {
  int found = 0;
  for (const char *at = tl_strbuf_c(&printed); (at = strstr(at, needle)); at += strlen(needle)) found++;
  return found;
}

START_TEST(the_table_is_complete) {
  int n = 0;
  while (tl_pass_at(n)) {
    const tl_pass_info *pass = tl_pass_at(n++);
    ck_assert_ptr_eq(tl_pass_find(tl_str_from(pass->name)), pass);
    ck_assert_int_gt((int)strlen(pass->doc), 10);
    ck_assert_ptr_nonnull(pass->run);
    if (n > 1) ck_assert_int_ge(pass->level_after, tl_pass_at(n - 2)->level_after);
  }
  ck_assert_int_gt(n, 10);
  ck_assert_ptr_null(tl_pass_at(-1));
  ck_assert_ptr_null(tl_pass_find(TL_STR("no-such-pass")));
}
END_TEST

START_TEST(an_unknown_pass_is_refused_with_the_nearest) {
  tl_status status = run((tl_pass_options){.passes = "canonicalise", .pass_limit = -1});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "'canonicalize'"));
  tl_status_free(status);
  status = run((tl_pass_options){.print_after = "all,nonsense", .pass_limit = -1});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
  tl_status_free(status);
}
END_TEST

START_TEST(prints_before_after_and_changed) {
  ck_assert_ptr_null(run((tl_pass_options){
      .passes = "canonicalize,check-bounds", .print_before = "canonicalize", .print_after = "all", .pass_limit = -1}));
  ck_assert_int_eq(count("// IR before canonicalize\n"), 1);
  ck_assert_int_eq(count("// IR after canonicalize\n"), 1);
  ck_assert_int_eq(count("// IR after check-bounds\n"), 1);
  tl_strbuf_clear(&printed);
  // Both have done their work: nothing changes now.
  ck_assert_ptr_null(
      run((tl_pass_options){.passes = "canonicalize,check-bounds", .print_changed = true, .pass_limit = -1}));
  ck_assert_int_eq(count("// IR"), 0);
}
END_TEST

START_TEST(limits_and_stops) {
  ck_assert_ptr_null(run((tl_pass_options){.print_after = "all", .pass_limit = 2}));
  ck_assert_int_eq(count("// IR after"), 2);
  tl_strbuf_clear(&printed);
  ck_assert_ptr_null(run((tl_pass_options){.print_after = "all", .stop_after = "check-init", .pass_limit = -1}));
  ck_assert_int_eq(count("// IR after"), 4);
  tl_strbuf_clear(&printed);
  ck_assert_ptr_null(run((tl_pass_options){.print_after = "all", .pass_limit = 0}));
  ck_assert_int_eq(count("// IR after"), 0);
}
END_TEST

START_TEST(timings_name_every_pass) {
  ck_assert_ptr_null(run((tl_pass_options){.passes = "canonicalize", .time_passes = true, .pass_limit = -1}));
  for (int i = 0; tl_pass_at(i); i++) ck_assert_int_ge(count(tl_pass_at(i)->name), 1);
}
END_TEST

START_TEST(the_level_follows_the_passes) {
  ck_assert_int_eq(module->level, 0);
  ck_assert_ptr_null(run((tl_pass_options){.passes = "canonicalize", .verify_each = true, .pass_limit = -1}));
  ck_assert_int_eq(module->level, 0);
  ck_assert_ptr_null(run((tl_pass_options){.passes = "promote-fragments", .verify_each = true, .pass_limit = -1}));
  ck_assert_int_eq(module->level, 1);
}
END_TEST

START_TEST(invalid_ir_is_an_internal_error_with_a_reproducer) {
  // A required attribute is gone: no pass repairs that.
  tl_op *tensor = tl_module_kernel(module)->regions[0]->first;
  while (tensor->code != TL_OP_TENSOR) tensor = tensor->next;
  tl_op_remove_attr(tensor, TL_ATTR_ALIGN);
  tl_status status = run((tl_pass_options){.passes = "canonicalize", .verify_each = true, .pass_limit = -1});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "canonicalize"));
  ck_assert_int_eq(count("tl-opt --passes=canonicalize --target=sm_80"), 1);
  tl_status_free(status);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passes manager");
  TCase *tests = tcase_create("manager");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, the_table_is_complete);
  tcase_add_test(tests, an_unknown_pass_is_refused_with_the_nearest);
  tcase_add_test(tests, prints_before_after_and_changed);
  tcase_add_test(tests, limits_and_stops);
  tcase_add_test(tests, timings_name_every_pass);
  tcase_add_test(tests, the_level_follows_the_passes);
  tcase_add_test(tests, invalid_ir_is_an_internal_error_with_a_reproducer);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
