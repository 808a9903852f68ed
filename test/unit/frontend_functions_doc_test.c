// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// docs/language.md holds the table of functions that sema_functions.def gives. TL_UPDATE_DOCS=1 writes it there.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/sema/sema_fold.h"

static const char begin_mark[] = "<!-- functions: made from frontend/sema/sema_functions.def -->\n";
static const char end_mark[] = "<!-- end of functions -->\n";

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "cannot open %s; the test runs from the root of the tree", path);
  tl_strbuf text;
  tl_strbuf_init(&text);
  char chunk[4096];
  size_t len;
  while ((len = fread(chunk, 1, sizeof chunk, file)) > 0) tl_strbuf_append(&text, (tl_str){chunk, len});
  fclose(file);
  return tl_strbuf_take(&text);
}

START_TEST(table_is_current) {
  const char *path = "docs/language.md";
  char *text = read_file(path);
  char *begin = strstr(text, begin_mark), *end = strstr(text, end_mark);
  ck_assert_msg(begin && end && begin < end, "%s lacks the marks of the table", path);
  begin += strlen(begin_mark);
  tl_strbuf table;
  tl_strbuf_init(&table);
  tl_function_print_table(&table);
  bool same = (size_t)(end - begin) == table.len && memcmp(begin, table.data, table.len) == 0;
  const char *update = getenv("TL_UPDATE_DOCS"), *ci = getenv("CI");
  if (!same && update && *update == '1' && (ci == NULL || *ci == '\0')) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(text, 1, (size_t)(begin - text), file);
    fwrite(table.data, 1, table.len, file);
    fputs(end, file);
    ck_assert_int_eq(fclose(file), 0);
    same = true;
  }
  ck_assert_msg(same, "the table in %s is out of date: run this test with TL_UPDATE_DOCS=1", path);
  tl_strbuf_fini(&table);
  free(text);
}
END_TEST

START_TEST(every_function_says_what_it_is) {
  const tl_function_info *info = tl_function_info_of((tl_function)_i);
  ck_assert_msg(info->doc[0] != '\0' && info->arguments[0] == '(', "%s", info->name);
  bool has_math = info->math >= 0;
  bool wants_math = info->kind >= TL_FUNCTION_KIND_MATH && info->kind < TL_FUNCTION_KIND_COMPOSED;
  ck_assert_int_eq(has_math, wants_math);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_functions_doc");
  TCase *tests = tcase_create("functions");
  tcase_add_test(tests, table_is_current);
  tcase_add_loop_test(tests, every_function_says_what_it_is, 1, TL_FUNCTION_COUNT);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
