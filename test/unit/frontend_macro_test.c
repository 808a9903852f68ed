// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A body that stands in a macro means what it means in its place: every spec of the library and of the tests is taken
// apart into a macro and a `use`, with every argument and tile passed as a parameter of its own name, and must give the
// same tile IR.
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/elaborate/instantiate.h"
#include "ir/text/text.h"

enum { MAX_SPECS = 256 };
static char paths[MAX_SPECS][320];
static int num_paths;
static const char *const directories[] = {"kernels", "test/semantics", "test/pipeline", "test/spec/check"};
enum { NUM_DIRECTORIES = sizeof(directories) / sizeof(directories[0]) };

static int is_yaml(const struct dirent *entry) {
  return tl_str_ends_with(tl_str_from(entry->d_name), ".yaml");
}

static void collect(const char *directory) {
  struct dirent **entries = NULL;
  int count = scandir(directory, &entries, is_yaml, alphasort);
  for (int i = 0; i < count; i++) {
    if (num_paths < MAX_SPECS) snprintf(paths[num_paths++], sizeof(paths[0]), "%s/%s", directory, entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
}

typedef struct loaded {
  tl_sources sources;
  tl_diags diags;
  tl_spec *spec;
} loaded;

static void begin(loaded *l) {
  tl_sources_init(&l->sources);
  tl_diags_init(&l->diags, &l->sources);
}

static void unload(loaded *l) {
  tl_spec_destroy(l->spec);
  tl_diags_fini(&l->diags);
  tl_sources_fini(&l->sources);
}

static void assert_read(loaded *l, const char *path) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(&l->diags, &text, false);
  ck_assert_msg(l->spec && !tl_diags_has_errors(&l->diags), "%s:\n%s", path, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// ---- taking apart

static void append_name(tl_strbuf *out, uint32_t *count, tl_str name) {
  tl_strbuf_appendf(out, "%s%.*s", (*count)++ ? ", " : "", TL_STR_ARG(name));
}

static void append_names(const tl_kernel_spec *kernel, tl_strbuf *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->num_args; i++) append_name(out, &count, kernel->args[i].name);
  for (uint32_t i = 0; i < kernel->num_views; i++) append_name(out, &count, kernel->views[i].name);
  for (uint32_t i = 0; i < kernel->num_tiles; i++) append_name(out, &count, kernel->tiles[i].name);
}

// Moves the body of each kernel of a printed spec into a macro beside the kernel's own.
static void take_apart(const tl_spec *spec, tl_str printed, tl_strbuf *out) {
  tl_strbuf names, body;
  tl_strbuf_init(&names);
  tl_strbuf_init(&body);
  uint32_t kernel = 0;
  bool in_body = false, has_macros = false, in_kernel = false;
  for (size_t at = 0; at < printed.len;) {
    size_t end = at;
    while (printed.data[end] != '\n') end++;
    tl_str line = tl_str_sub(printed, at, end + 1 - at);
    at = end + 1;
    if (tl_str_starts_with(line, "kernel: ")) {
      in_kernel = true;
      tl_strbuf_clear(&names);
      append_names(&spec->kernels[kernel], &names);
    }
    if (tl_str_is(line, "---\n")) {
      kernel += in_kernel;
      in_kernel = has_macros = false;
    }
    if (in_kernel && tl_str_is(line, "macros:\n")) has_macros = true;
    if (tl_str_is(line, "body:\n")) {
      in_body = true;
      tl_strbuf_appendf(out, "%s  the_body(%s):\n", has_macros ? "" : "macros:\n", tl_strbuf_c(&names));
      continue;
    }
    if (in_body && line.data[0] != ' ') {
      tl_strbuf_appendf(out, "body:\n  - use: the_body(%s)\n", tl_strbuf_c(&names));
      in_body = false;
    }
    if (in_body) tl_strbuf_append_c(out, "  ");
    tl_strbuf_append(out, line);
  }
  if (in_body) tl_strbuf_appendf(out, "body:\n  - use: the_body(%s)\n", tl_strbuf_c(&names));
  tl_strbuf_fini(&names);
  tl_strbuf_fini(&body);
}

// What `print` and `assert` say of their place in the source: a macro stands on other lines of another file.
static void drop_places(tl_strbuf *text) {
  tl_strbuf kept;
  tl_strbuf_init(&kept);
  const char *rest = tl_strbuf_c(text);
  for (const char *line; (line = strstr(rest, ", line = ")); rest = line + strcspn(line, "}")) {
    const char *file = line;
    while (file > rest && strncmp(file, "{name = ", 8) != 0) file--;
    tl_strbuf_append(&kept, (tl_str){rest, (size_t)(file - rest)});
    const char *said = strstr(file, "text = ");
    if (said && said < line) tl_strbuf_append(&kept, (tl_str){said, (size_t)(line - said)});
  }
  tl_strbuf_append_c(&kept, rest);
  tl_strbuf_clear(text);
  tl_strbuf_append_c(text, tl_strbuf_c(&kept));
  tl_strbuf_fini(&kept);
}

// The tile IR with the default params; empty when they give none.
static void instantiate(loaded *l, const tl_kernel_spec *kernel, tl_strbuf *out) {
  tl_diags_clear(&l->diags);
  tl_module *module =
      tl_instantiate(kernel, (tl_bindings){0}, tl_target_find(TL_STR("sm_90a")), &l->sources, &l->diags);
  if (!module) return;
  tl_module_print(module, out);
  drop_places(out);
  tl_module_destroy(module);
}

static uint32_t num_compared;

static void compare(loaded *l, loaded *apart, const char *path) {
  ck_assert_uint_eq(l->spec->num_kernels, apart->spec->num_kernels);
  for (uint32_t i = 0; i < l->spec->num_kernels; i++) {
    tl_strbuf first, second;
    tl_strbuf_init(&first);
    tl_strbuf_init(&second);
    if (!l->spec->kernels[i].chain) instantiate(l, &l->spec->kernels[i], &first);
    if (!l->spec->kernels[i].chain) instantiate(apart, &apart->spec->kernels[i], &second);
    num_compared += first.len > 0;
    size_t at = 0, line = 0;
    for (; at < first.len && at < second.len && first.data[at] == second.data[at]; at++)
      if (first.data[at] == '\n') line = at + 1;
    ck_assert_msg(first.len == second.len && at == first.len, "%s, %.*s:\n%.300s\nand in a macro:\n%.300s", path,
                  TL_STR_ARG(l->spec->kernels[i].name), tl_strbuf_c(&first) + (line < first.len ? line : first.len),
                  tl_strbuf_c(&second) + (line < second.len ? line : second.len));
    tl_strbuf_fini(&first);
    tl_strbuf_fini(&second);
  }
}

static void parse(loaded *l, const char *name, const tl_strbuf *text, const char *path) {
  begin(l);
  l->spec = tl_spec_parse(&l->sources, tl_sources_add(&l->sources, name, tl_strbuf_view(text)), &l->diags);
  assert_read(l, path);
}

static void check_file(const char *path) {
  loaded file, whole, apart;
  uint32_t source;
  tl_strbuf printed, text;
  tl_strbuf_init(&printed);
  tl_strbuf_init(&text);
  begin(&file);
  tl_status status = tl_sources_read(&file.sources, path, TL_SPEC_MAX_BYTES, &source);
  ck_assert_msg(status == TL_OK, "%s", tl_status_message(status));
  file.spec = tl_spec_parse(&file.sources, source, &file.diags);
  assert_read(&file, path);
  tl_spec_print(file.spec, &printed);
  take_apart(file.spec, tl_strbuf_view(&printed), &text);
  parse(&whole, "printed.yaml", &printed, path);
  parse(&apart, "apart.yaml", &text, path);
  compare(&whole, &apart, path);
  unload(&file);
  unload(&whole);
  unload(&apart);
  tl_strbuf_fini(&printed);
  tl_strbuf_fini(&text);
}

START_TEST(bodies_in_macros_mean_the_same) {
  num_compared = 0;
  for (int i = 0; i < num_paths; i++)
    if (tl_str_starts_with(tl_str_from(paths[i]), directories[_i])) check_file(paths[i]);
  ck_assert_uint_gt(num_compared, 0);
}
END_TEST

int main(void) {
  for (int i = 0; i < NUM_DIRECTORIES; i++) collect(directories[i]);
  Suite *suite = suite_create("frontend_macro");
  TCase *tests = tcase_create("bodies");
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, bodies_in_macros_mean_the_same, 0, NUM_DIRECTORIES);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
