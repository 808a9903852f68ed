// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: text, carets, JSON, options, limits; the table itself.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/diag.h"

static tl_sources sources;
static tl_diags diags;
static tl_strbuf out;

static void setup(void) {
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_strbuf_init(&out);
}

static void teardown(void) {
  tl_strbuf_fini(&out);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

START_TEST(text_has_place_line_caret_notes_and_hints) {
  uint32_t file = tl_sources_add(&sources, "k.yaml", TL_STR("a: 1\n\tb: é + cc\n"));
  tl_diag *diag = tl_diag_report(&diags, TL_DIAG_EXPR_SYNTAX, (tl_loc){file, 14, 2}, "no %s here", "cc");
  tl_diag_add_note(&diags, diag, (tl_loc){file, 0, 1}, "first here");
  tl_diag_add_hint(&diags, diag, "try dd");
  tl_diags_print_text(&diags, &out, false);
  ck_assert_str_eq(tl_strbuf_c(&out),
                   "k.yaml:2:9: error: no cc here [TL0201]\n"
                   "  \tb: é + cc\n"
                   "  \t       ^~\n"
                   "k.yaml:1:1: note: first here\n"
                   "  a: 1\n"
                   "  ^\n"
                   "hint: try dd\n");
}
END_TEST

START_TEST(json_has_the_same_facts) {
  uint32_t file = tl_sources_add(&sources, "k.yaml", TL_STR("abc\n"));
  tl_diag *diag = tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){file, 1, 2}, "tile \"x\"");
  tl_diag_add_hint(&diags, diag, "clear it");
  tl_diags_print_json(&diags, &out);
  ck_assert_str_eq(
      tl_strbuf_c(&out),
      "[\n {\"file\": \"k.yaml\", \"line\": 1, \"column\": 2, \"end_line\": 1, \"end_column\": 4, "
      "\"severity\": \"warning\", \"code\": \"TL0501\", \"group\": \"uninitialized\", \"message\": \"tile \\\"x\\\"\", "
      "\"notes\": [], \"hints\": [\"clear it\"]}\n]\n");
}
END_TEST

START_TEST(the_same_finding_is_reported_once) {
  uint32_t file = tl_sources_add(&sources, "k.yaml", TL_STR("abc\n"));
  for (int i = 0; i < 3; i++) tl_diag_report(&diags, TL_DIAG_EXPR_SYNTAX, (tl_loc){file, 1, 2}, "bad");
  ck_assert_uint_eq(diags.num_errors, 1);
  tl_diag_report(&diags, TL_DIAG_EXPR_SYNTAX, (tl_loc){file, 0, 1}, "bad");
  ck_assert_uint_eq(diags.num_errors, 2);
}
END_TEST

START_TEST(errors_past_the_limit_are_counted) {
  uint32_t file = tl_sources_add(&sources, "k.yaml", TL_STR("abc\n"));
  for (int i = 0; i < 80; i++) tl_diag_report(&diags, TL_DIAG_EXPR_SYNTAX, (tl_loc){file, 0, 1}, "bad %d", i);
  ck_assert_uint_eq(diags.list.len, 50);
  tl_diags_print_text(&diags, &out, false);
  ck_assert_ptr_nonnull(strstr(out.data, "error: 30 further errors are not shown"));
}
END_TEST

START_TEST(warning_options) {
  ck_assert(tl_diags_set_warning_option(&diags, TL_STR("no-uninitialized")));
  tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){0}, "x");
  ck_assert_uint_eq(diags.list.len, 0);
  ck_assert(tl_diags_set_warning_option(&diags, TL_STR("error=uninitialized")));
  tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){0}, "x");
  ck_assert_uint_eq(diags.num_errors, 1);
  ck_assert(tl_diags_set_warning_option(&diags, TL_STR("no-error=uninitialized")));
  tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){0}, "y");
  ck_assert_uint_eq(diags.num_warnings, 1);
  ck_assert(tl_diags_set_warning_option(&diags, TL_STR("error")));
  tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){0}, "z");
  ck_assert_uint_eq(diags.num_warnings, 2);
  tl_diag_report(&diags, TL_DIAG_OUT_NEVER_WRITTEN, (tl_loc){0}, "z");
  ck_assert_uint_eq(diags.num_errors, 2);
  ck_assert(tl_diags_set_warning_option(&diags, TL_STR("error=uninitialized")));
  tl_diag_report(&diags, TL_DIAG_READ_BEFORE_WRITE, (tl_loc){0}, "w");
  ck_assert_uint_eq(diags.num_errors, 3);
  tl_diag_list_groups(&out);
  ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&out), "uninitialized, bounds, unwritten"));
  ck_assert(!tl_diags_set_warning_option(&diags, TL_STR("no-such-group")));
  ck_assert(!tl_diags_set_warning_option(&diags, TL_STR("")));
}
END_TEST

START_TEST(hostile_lines_are_cut) {
  char *text = malloc(100000);
  memset(text, '[', 100000);
  uint32_t file = tl_sources_add(&sources, "k.yaml", (tl_str){text, 100000});
  tl_diag_report(&diags, TL_DIAG_YAML_SYNTAX, (tl_loc){file, 50000, 30000}, "too deep");
  tl_diags_print_text(&diags, &out, false);
  ck_assert_uint_lt(out.len, 1000);
  free(text);
}
END_TEST

START_TEST(codes_are_unique_and_explained) {
  for (int a = 1; a < TL_DIAG_COUNT; a++) {
    const char *code = tl_diag_code_text(a);
    ck_assert_msg(strlen(code) == 6 && strncmp(code, "TL", 2) == 0, "%s", code);
    ck_assert_int_eq(tl_diag_code_parse(tl_str_from(code)), a);
    ck_assert_msg(strlen(tl_diag_summary(a)) > 5, "%s has no summary", code);
    ck_assert_msg(strlen(tl_diag_explanation(a)) > 20, "%s is not explained", code);
  }
  ck_assert_int_eq(tl_diag_code_parse(TL_STR("TL9999")), TL_DIAG_NONE);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("diag");
  TCase *cases = tcase_create("core");
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, text_has_place_line_caret_notes_and_hints);
  tcase_add_test(cases, json_has_the_same_facts);
  tcase_add_test(cases, the_same_finding_is_reported_once);
  tcase_add_test(cases, errors_past_the_limit_are_counted);
  tcase_add_test(cases, warning_options);
  tcase_add_test(cases, hostile_lines_are_cut);
  tcase_add_test(cases, codes_are_unique_and_explained);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
