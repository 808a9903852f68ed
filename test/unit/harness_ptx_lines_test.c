// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX that the emulator runs is what is shipped, with places: without .file, .loc and the labels that go with them
// it is the same text.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/spec/spec.h"
#include "harness/device/compile.h"

static bool is_place(tl_str line) {
  line = tl_str_trim(line);
  return tl_str_starts_with(line, ".loc") || tl_str_starts_with(line, ".file") ||
         tl_str_starts_with(line, ".section\t.debug") || tl_str_starts_with(line, "$L__func") ||
         tl_str_starts_with(line, "$L__tmp") || tl_str_starts_with(line, "//") || !line.len;
}

// `out` gets the lines that say no place.
static uint32_t without_places(tl_str text, tl_strbuf *out) {
  uint32_t places = 0;
  while (text.len) {
    size_t end = tl_str_find(text, '\n');
    tl_str line = tl_str_sub(text, 0, end);
    if (is_place(line)) {
      places += tl_str_starts_with(tl_str_trim(line), ".loc");
    } else {
      tl_strbuf_append(out, line);
      tl_strbuf_append_char(out, '\n');
    }
    text = tl_str_sub(text, end == SIZE_MAX ? text.len : end + 1, text.len);
  }
  return places;
}

static const char *const specs[] = {"kernels/softmax.yaml", "kernels/matmul.yaml", "kernels/linear_attention.yaml"};

START_TEST(places_are_the_only_difference) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  uint32_t source;
  ck_assert(!tl_sources_read(&sources, specs[_i], 1 << 24, &source));
  tl_spec *spec = tl_spec_parse(&sources, source, &diags);
  ck_assert_ptr_nonnull(spec);
  tl_compile_request request = tl_compile_request_default(&spec->kernels[0]);
  tl_compiled compiled;
  tl_status status = tl_compile(&request, &sources, &diags, &compiled);
  ck_assert_msg(!status, "%s", status ? tl_status_message(status) : "");
  tl_strbuf shipped = {0}, run = {0}, a = {0}, b = {0};
  ck_assert(!tl_backend_emit_ptx(compiled.backend, &shipped));
  ck_assert(!tl_backend_emit_ptx_lines(compiled.backend, &run));
  ck_assert_uint_eq(without_places(tl_strbuf_view(&shipped), &a), 0);
  ck_assert_uint_gt(without_places(tl_strbuf_view(&run), &b), 10);
  size_t same = 0;
  while (same < a.len && same < b.len && a.data[same] == b.data[same]) same++;
  ck_assert_msg(same == a.len && same == b.len, "from byte %zu on:\n%.200s\nand\n%.200s", same, a.data + same,
                b.data + same);
  tl_strbuf_fini(&shipped);
  tl_strbuf_fini(&run);
  tl_strbuf_fini(&a);
  tl_strbuf_fini(&b);
  tl_compiled_fini(&compiled);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("harness_ptx_lines");
  TCase *tcase = tcase_create("lines");
  tcase_add_loop_test(tcase, places_are_the_only_difference, 0, sizeof specs / sizeof specs[0]);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
