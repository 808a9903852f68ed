// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// docs/ir.md holds the reference that the tables give. TL_UPDATE_DOCS=1 writes it there.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_text_util.h"

static const char begin_mark[] = "<!-- begin reference -->\n", end_mark[] = "<!-- end reference -->\n";

START_TEST(document_is_current) {
  const char *path = "docs/ir.md";
  char *text = read_file(path);
  char *begin = strstr(text, begin_mark), *end = strstr(text, end_mark);
  ck_assert_msg(begin && end && begin < end, "%s lacks the marks of the reference", path);
  begin += strlen(begin_mark);
  tl_strbuf reference;
  tl_strbuf_init(&reference);
  tl_ir_print_reference(&reference);
  bool same = (size_t)(end - begin) == reference.len && memcmp(begin, reference.data, reference.len) == 0;
  const char *update = getenv("TL_UPDATE_DOCS"), *ci = getenv("CI");
  if (!same && update && *update == '1' && (ci == NULL || *ci == '\0')) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(text, 1, (size_t)(begin - text), file);
    fwrite(reference.data, 1, reference.len, file);
    fputs(end, file);
    ck_assert_int_eq(fclose(file), 0);
    same = true;
  }
  ck_assert_msg(same, "the reference in %s is out of date: run this test with TL_UPDATE_DOCS=1", path);
  tl_strbuf_fini(&reference);
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_reference");
  TCase *tests = tcase_create("reference");
  tcase_add_test(tests, document_is_current);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
