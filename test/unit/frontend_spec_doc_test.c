// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The examples of docs/language.md are read: whole kernels, sections, and lists of statements. Names that an example
// leaves out are nobody's concern here, so only the reader runs; it must accept everything.
#include "frontend/spec/spec.h"
#include "frontend_test_util.h"

static tl_sources page;
static tl_strbuf examples[200];
static uint32_t example_lines[200];
static int num_examples;

// Makes a kernel of an example: statements get a body around them, sections a name above them, chains the kernels
// that they run.
static void begin_example(tl_strbuf *out, tl_str first_line) {
  if (tl_str_starts_with(first_line, "chain:")) {
    tl_strbuf_append_c(out, "kernel: linear\n---\nkernel: activate\n---\n");
    return;
  }
  bool is_kernel = tl_str_starts_with(first_line, "kernel:"), is_list = tl_str_starts_with(first_line, "- ");
  if (!is_kernel) tl_strbuf_append_c(out, is_list ? "kernel: example\nbody:\n" : "kernel: example\n");
}

static void collect(void) {
  uint32_t source;
  tl_sources_init(&page);
  tl_status status = tl_sources_read(&page, "docs/language.md", TL_SPEC_MAX_BYTES, &source);
  if (status) {
    fprintf(stderr, "%s\n", tl_status_message(status));
    tl_status_free(status);
    return;
  }
  const tl_source *file = tl_sources_get(&page, source);
  bool inside = false;
  for (uint32_t line = 1; line <= file->num_lines && num_examples < 200; line++) {
    tl_str text = tl_source_line(file, line);
    if (!inside && tl_str_is(text, "```yaml")) {
      inside = true;
      example_lines[num_examples] = line;
      begin_example(&examples[num_examples], tl_source_line(file, line + 1));
    } else if (inside && tl_str_is(text, "```")) {
      inside = false;
      num_examples++;
    } else if (inside) {
      tl_strbuf_append(&examples[num_examples], text);
      tl_strbuf_append_char(&examples[num_examples], '\n');
    }
  }
}

// What may be missed in a fragment: names of arguments, and the files that it includes.
static bool is_acceptable(const tl_diags *diags, bool is_kernel) {
  for (size_t i = 0; i < diags->list.len; i++) {
    tl_diag_code code = diags->list.items[i]->code;
    if (is_kernel || (code != TL_DIAG_CHECK_NAME && code != TL_DIAG_INCLUDE)) return false;
  }
  return true;
}

START_TEST(example_is_read) {
  fixture fix;
  fixture_init(&fix, tl_strbuf_view(&examples[_i]));
  tl_spec *spec = tl_spec_parse(&fix.sources, fix.source, &fix.diags);
  tl_strbuf report;
  tl_strbuf_init(&report);
  tl_diags_print_text(&fix.diags, &report, false);
  bool is_kernel = !tl_str_starts_with(tl_strbuf_view(&examples[_i]), "kernel: example\n");
  ck_assert_msg(spec && is_acceptable(&fix.diags, is_kernel), "the example at line %u of docs/language.md:\n%s",
                example_lines[_i], tl_strbuf_c(&report));
  tl_strbuf_fini(&report);
  tl_spec_destroy(spec);
  fixture_fini(&fix);
}
END_TEST

int main(void) {
  collect();
  if (num_examples < 20) {
    fprintf(stderr, "only %d examples found in docs/language.md\n", num_examples);
    return EXIT_FAILURE;
  }
  Suite *suite = suite_create("frontend_spec_doc");
  TCase *tests = tcase_create("examples");
  tcase_add_loop_test(tests, example_is_read, 0, num_examples);
  suite_add_tcase(suite, tests);
  int failed = run_suite(suite);
  for (int i = 0; i < num_examples; i++) tl_strbuf_fini(&examples[i]);
  tl_sources_fini(&page);
  return failed;
}
