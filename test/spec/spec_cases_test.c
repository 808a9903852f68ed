// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the spec cases of test/spec/{ok,bad} and kernels/; README.md beside this file says what the comments mean.
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/chain/chain.h"
#include "frontend/elaborate/instantiate.h"
#include "frontend/spec/spec.h"
#include "support/diag.h"

enum { MAX_CASES = 1000 };

typedef struct spec_case {
  char path[512];
  bool must_be_silent;
} spec_case;

static spec_case cases[MAX_CASES];
static int num_cases;

static int is_yaml(const struct dirent *entry) {
  return tl_str_ends_with(tl_str_from(entry->d_name), ".yaml");
}

static void add_directory(const char *directory, bool must_be_silent) {
  struct dirent **entries = NULL;
  int count = scandir(directory, &entries, is_yaml, alphasort);
  for (int i = 0; i < count; i++) {
    if (num_cases < MAX_CASES) {
      spec_case *c = &cases[num_cases++];
      snprintf(c->path, sizeof(c->path), "%s/%s", directory, entries[i]->d_name);
      c->must_be_silent = must_be_silent;
    }
    free(entries[i]);
  }
  free(entries);
}

// One run of the front end over a file.
typedef struct run {
  tl_sources sources;
  tl_diags diags;
  tl_arena arena;
  uint32_t source;
  tl_spec *spec;
} run;

// Advances `line` to the next one that starts with `marker`; gives what follows it.
static bool next_directive(const tl_source *file, uint32_t *line, const char *marker, tl_str *out) {
  while (++*line <= file->num_lines) {
    tl_str text = tl_source_line(file, *line);
    if (!tl_str_starts_with(text, marker)) continue;
    *out = tl_str_trim(tl_str_sub(text, strlen(marker), text.len - strlen(marker)));
    return true;
  }
  return false;
}

// "NAME=VALUE" of a DEFINE line.
static tl_binding read_define(run *r, tl_str text) {
  size_t equals = tl_str_find(text, '=');
  ck_assert_msg(equals != SIZE_MAX, "DEFINE needs NAME=VALUE: `%.*s`", TL_STR_ARG(text));
  tl_str value = tl_str_sub(text, equals + 1, text.len - equals - 1);
  uint32_t source = tl_sources_add(&r->sources, "<define>", value);
  uint32_t *offsets = TL_NEW_ARRAY(&r->arena, uint32_t, value.len + 1);
  for (size_t i = 0; i <= value.len; i++) offsets[i] = (uint32_t)i;
  tl_loc loc = {source, 0, (uint32_t)value.len};
  tl_located_text located = {value, {source, offsets}, loc};
  return (tl_binding){tl_str_sub(text, 0, equals), tl_expr_parse(&r->arena, &r->diags, located), loc};
}

enum { MAX_BINDINGS = 16 };

// The compiler's own choice is not this library's: of params that are `auto` the first value that `tune` lists.
static uint32_t bind_autos(const tl_kernel_spec *kernel, tl_binding *bindings, uint32_t len) {
  for (uint32_t p = 0; p < kernel->num_params; p++) {
    const tl_param *param = &kernel->params[p];
    if (param->kind == TL_PARAM_DYNAMIC || !tl_param_is_auto(param, NULL)) continue;
    for (uint32_t t = 0; t < kernel->tune.num_params && len < MAX_BINDINGS; t++) {
      const tl_tune_param *listed = &kernel->tune.params[t];
      if (tl_str_equal(listed->name, param->name))
        bindings[len++] = (tl_binding){param->name, listed->values[0], param->loc};
    }
  }
  return len;
}

static void instantiate(run *r, const tl_kernel_spec *kernel, tl_bindings bindings, const tl_target *target) {
  size_t errors = r->diags.num_errors;
  tl_module *module = tl_instantiate(kernel, bindings, target, &r->sources, &r->diags);
  ck_assert_msg(module || r->diags.num_errors > errors, "no module and no error");
  if (module) tl_module_destroy(module);
}

static void instantiate_chain(run *r, const tl_kernel_spec *chain, tl_bindings bindings, const tl_target *target) {
  size_t errors = r->diags.num_errors;
  tl_chain_plan plan;
  bool ok = tl_chain_plan_create(&r->arena, chain, bindings, &r->diags, &plan);
  ck_assert_msg(ok || r->diags.num_errors > errors, "no plan and no error");
  for (uint32_t i = 0; ok && i < plan.num_instances; i++)
    instantiate(r, plan.instances[i].kernel, plan.instances[i].bindings, target);
}

static void instantiate_all(run *r) {
  const tl_source *file = tl_sources_get(&r->sources, r->source);
  tl_str target_name = TL_STR("sm_80"), text;
  uint32_t line = 0;
  while (next_directive(file, &line, "# TARGET:", &text)) target_name = text;
  const tl_target *target = tl_target_find(target_name);
  ck_assert_msg(target != NULL, "unknown target `%.*s`", TL_STR_ARG(target_name));
  tl_binding defines[MAX_BINDINGS];
  uint32_t num_defines = 0;
  line = 0;
  while (num_defines < MAX_BINDINGS && next_directive(file, &line, "# DEFINE:", &text))
    defines[num_defines++] = read_define(r, text);
  const tl_bindings bindings = {defines, num_defines};
  for (uint32_t i = 0; i < r->spec->num_kernels; i++) {
    const tl_kernel_spec *kernel = &r->spec->kernels[i];
    if (kernel->chain) {
      instantiate_chain(r, kernel, bindings, target);
    } else {
      instantiate(r, kernel, (tl_bindings){defines, bind_autos(kernel, defines, num_defines)}, target);
    }
  }
}

static void run_init(run *r, const char *path) {
  tl_arena_init(&r->arena);
  tl_sources_init(&r->sources);
  tl_diags_init(&r->diags, &r->sources);
  tl_status status = tl_sources_read(&r->sources, path, TL_SPEC_MAX_BYTES, &r->source);
  ck_assert_msg(status == TL_OK, "%s", tl_status_message(status));
  r->spec = tl_spec_parse(&r->sources, r->source, &r->diags);
  if (r->spec && !tl_diags_has_errors(&r->diags)) instantiate_all(r);
}

static void run_fini(run *r) {
  tl_spec_destroy(r->spec);
  tl_diags_fini(&r->diags);
  tl_sources_fini(&r->sources);
  tl_arena_fini(&r->arena);
}

static const char *severity_name(tl_severity severity) {
  switch (severity) {
    case TL_SEVERITY_REMARK:
      return "remark";
    case TL_SEVERITY_WARNING:
      return "warning";
    case TL_SEVERITY_ERROR:
      return "error";
  }
  return "";
}

static tl_line_column place(const run *r, tl_loc loc) {
  const tl_source *source = tl_sources_get(&r->sources, loc.source);
  return source ? tl_source_position(source, loc.offset) : (tl_line_column){0, 0};
}

// "line:col: severity: text [code]" as an EXPECT line says it.
static char *describe(const run *r, const tl_diag *diag) {
  tl_line_column at = place(r, diag->loc);
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_strbuf_appendf(&out, "%u:%u: %s: %s [%s]", at.line, at.column, severity_name(diag->severity), diag->text,
                    tl_diag_code_text(diag->code));
  return tl_strbuf_take(&out);
}

static bool contains(const char *text, tl_str part) {
  return part.len == 0 || memmem(text, strlen(text), part.data, part.len) != NULL;
}

// Whether an EXPECT line speaks of this diagnostic: everything but the message must be equal, of that a part is enough.
static bool matches(const run *r, const tl_diag *diag, tl_str expected) {
  char head[64], tail[32];
  tl_line_column at = place(r, diag->loc);
  snprintf(head, sizeof(head), "%u:%u: %s:", at.line, at.column, severity_name(diag->severity));
  snprintf(tail, sizeof(tail), "[%s]", tl_diag_code_text(diag->code));
  if (!tl_str_starts_with(expected, head) || !tl_str_ends_with(expected, tail)) return false;
  size_t head_len = strlen(head), tail_len = strlen(tail);
  if (expected.len < head_len + tail_len) return false;
  return contains(diag->text, tl_str_trim(tl_str_sub(expected, head_len, expected.len - head_len - tail_len)));
}

static bool has_note(const run *r, const tl_diag *diag, bool is_hint, tl_str expected) {
  for (size_t i = 0; i < diag->num_notes; i++) {
    const tl_diag_note *note = &diag->notes[i];
    if (note->is_hint != is_hint) continue;
    if (is_hint && contains(note->text, expected)) return true;
    if (is_hint) continue;
    char head[32];
    tl_line_column at = place(r, note->loc);
    snprintf(head, sizeof(head), "%u:%u:", at.line, at.column);
    if (!tl_str_starts_with(expected, head)) continue;
    if (contains(note->text, tl_str_trim(tl_str_sub(expected, strlen(head), expected.len - strlen(head))))) return true;
  }
  return false;
}

// Appends a line to `report` for everything that differs.
static void compare(const run *r, tl_strbuf *report) {
  const tl_source *file = tl_sources_get(&r->sources, r->source);
  bool *used = tl_xcalloc(r->diags.list.len, sizeof(bool));
  const tl_diag *current = NULL;
  for (uint32_t line = 1; line <= file->num_lines; line++) {
    tl_str text = tl_source_line(file, line);
    bool is_hint = tl_str_starts_with(text, "# HINT:"), is_note = tl_str_starts_with(text, "# NOTE:");
    if (is_hint || is_note) {
      tl_str wanted = tl_str_trim(tl_str_sub(text, 7, text.len - 7));
      if (current && !has_note(r, current, is_hint, wanted))
        tl_strbuf_appendf(report, "  line %u: not said: %.*s\n", line, TL_STR_ARG(text));
    }
    if (!tl_str_starts_with(text, "# EXPECT:")) continue;
    tl_str expected = tl_str_trim(tl_str_sub(text, 9, text.len - 9));
    current = NULL;
    for (size_t i = 0; i < r->diags.list.len && !current; i++) {
      if (used[i] || !matches(r, r->diags.list.items[i], expected)) continue;
      used[i] = true;
      current = r->diags.list.items[i];
    }
    if (!current) tl_strbuf_appendf(report, "  line %u: not reported: %.*s\n", line, TL_STR_ARG(expected));
  }
  for (size_t i = 0; i < r->diags.list.len; i++) {
    if (used[i]) continue;
    char *text = describe(r, r->diags.list.items[i]);
    tl_strbuf_appendf(report, "  not expected: %s\n", text);
    free(text);
  }
  free(used);
}

static void print_expectations(const run *r, tl_strbuf *out) {
  for (size_t i = 0; i < r->diags.list.len; i++) {
    const tl_diag *diag = r->diags.list.items[i];
    char *text = describe(r, diag);
    tl_strbuf_appendf(out, "# EXPECT: %s\n", text);
    free(text);
    for (size_t k = 0; k < diag->num_notes; k++) {
      const tl_diag_note *note = &diag->notes[k];
      tl_line_column at = place(r, note->loc);
      if (note->is_hint)
        tl_strbuf_appendf(out, "# HINT: %s\n", note->text);
      else
        tl_strbuf_appendf(out, "# NOTE: %u:%u: %s\n", at.line, at.column, note->text);
    }
  }
}

static void update(const run *r, const char *path) {
  const tl_source *file = tl_sources_get(&r->sources, r->source);
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (uint32_t line = 1; line <= file->num_lines; line++) {
    tl_str content = tl_source_line(file, line);
    bool is_expectation = tl_str_starts_with(content, "# EXPECT:") || tl_str_starts_with(content, "# HINT:") ||
                          tl_str_starts_with(content, "# NOTE:");
    if (is_expectation || (line == file->num_lines && !content.len)) continue;
    uint32_t start = file->line_starts[line - 1];
    uint32_t end = line < file->num_lines ? file->line_starts[line] : (uint32_t)file->text.len;
    tl_strbuf_append(&text, tl_str_sub(file->text, start, end - start));
  }
  print_expectations(r, &text);
  FILE *out = fopen(path, "wb");
  ck_assert_ptr_nonnull(out);
  fwrite(text.data, 1, text.len, out);
  fclose(out);
  tl_strbuf_fini(&text);
}

// The printed form is a spec of its own that prints the same again.
static void check_printing(const run *r) {
  tl_strbuf first, second;
  tl_strbuf_init(&first);
  tl_strbuf_init(&second);
  tl_spec_print(r->spec, &first);
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_spec *again = tl_spec_parse(&sources, tl_sources_add(&sources, "printed.yaml", tl_strbuf_view(&first)), &diags);
  ck_assert_msg(again && !tl_diags_has_errors(&diags), "the printed spec does not parse: %s\n%s",
                diags.list.len ? diags.list.items[0]->text : "", tl_strbuf_c(&first));
  tl_spec_print(again, &second);
  ck_assert_str_eq(tl_strbuf_c(&first), tl_strbuf_c(&second));
  tl_spec_destroy(again);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  tl_strbuf_fini(&first);
  tl_strbuf_fini(&second);
}

START_TEST(spec_says_what_it_should) {
  const spec_case *c = &cases[_i];
  run r;
  run_init(&r, c->path);
  const char *wanted = getenv("TL_UPDATE_SPEC_CASES");
  if (wanted && !c->must_be_silent) {
    ck_assert_msg(!getenv("CI"), "expectations are not rewritten in CI");
    ck_assert_msg(r.diags.list.len > 0, "%s gives no diagnostics: its expectations are kept", c->path);
    if (strstr(c->path, wanted)) update(&r, c->path);
    run_fini(&r);
    return;
  }
  tl_strbuf report;
  tl_strbuf_init(&report);
  compare(&r, &report);
  ck_assert_msg(report.len == 0, "%s:\n%s", c->path, tl_strbuf_c(&report));
  if (c->must_be_silent) {
    ck_assert_msg(r.diags.list.len == 0 && r.spec, "%s must give no diagnostics", c->path);
    check_printing(&r);
  } else {
    ck_assert_msg(r.diags.list.len > 0, "%s must give diagnostics", c->path);
  }
  tl_strbuf_fini(&report);
  run_fini(&r);
}
END_TEST

int main(void) {
  add_directory("kernels", true);
  add_directory("test/spec/ok", true);
  add_directory("test/spec/bad", false);
  if (!num_cases) {
    fprintf(stderr, "no cases found: run this from the root of the repository\n");
    return EXIT_FAILURE;
  }
  Suite *suite = suite_create("spec_cases");
  TCase *tests = tcase_create("spec");
  tcase_set_timeout(tests, 30);
  tcase_add_loop_test(tests, spec_says_what_it_should, 0, num_cases);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
