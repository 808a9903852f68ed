// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The files of test/ir: good ones print back the same, bad ones give the errors that they expect.
#include "ir_text_util.h"

// Lines "// expect: text" must occur in what is reported, and nothing may be reported that is not expected.
static void check_expectations(const char *path, const char *text, const char *report, size_t num_reported) {
  size_t expected = 0;
  for (const char *at = text; (at = strstr(at, "// expect: ")) != NULL;) {
    at += strlen("// expect: ");
    char *line = strndup(at, strcspn(at, "\n"));
    ck_assert_msg(strstr(report, line) != NULL, "%s: '%s' is not in:\n%s", path, line, report);
    free(line);
    expected++;
  }
  ck_assert_msg(expected == num_reported, "%s: %zu expected, but:\n%s", path, expected, report);
}

static size_t count_text(const char *text, const char *part) {
  size_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) count++;
  return count;
}

static void check_file(const char *path) {
  char *text = read_file(path), *errors;
  bool is_good = strstr(text, "// expect: ") == NULL;
  tl_module *module = parse_text(text, &errors);
  if (module == NULL) {
    ck_assert_msg(!is_good, "%s:\n%s", path, errors);
    check_expectations(path, text, errors, count_text(errors, "error: "));
  } else {
    tl_verify_result result;
    tl_module_verify(module, &result);
    tl_strbuf report;
    tl_strbuf_init(&report);
    tl_module_print_with_errors(module, &result, &report);
    check_expectations(path, text, tl_strbuf_c(&report), count_text(tl_strbuf_c(&report), "// error: "));
    ck_assert_uint_eq(result.errors.len, count_text(tl_strbuf_c(&report), "// error: "));
    tl_strbuf_fini(&report);
    tl_verify_result_fini(&result);
    // A good file holds comment lines first, then what the printer writes.
    const char *body = strstr(text, "module ");
    if (is_good) check_round_trip(body);
    tl_module_destroy(module);
  }
  free(errors);
  free(text);
}

START_TEST(files) {
  for_each_ir_case(check_file);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_cases");
  TCase *tests = tcase_create("cases");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, files);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
