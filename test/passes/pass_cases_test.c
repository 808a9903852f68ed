// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the text cases of a directory: pass_cases_test DIR [NAME…].
//
// A case is a file NAME.tir:
//   // passes: canonicalize,check-bounds        comma list, as --passes= takes it
//   // target: sm_90a                           optional, default sm_80
//   // explore-limit: 100                       optional: statements that verify-barriers runs
//   // remarks                                  optional: remarks belong to the expected diagnostics
//   …tile IR…
//   // ===== output
//   …the module after the passes, exactly; nothing when the passes report errors…
//   // ===== diagnostics                        only when there are any
//   …their text, exactly…
//
// TL_UPDATE_CASES=1 writes what the passes gave into the files instead of comparing. It refuses to run where CI is set.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

static const char output_mark[] = "// ===== output\n";
static const char diagnostics_mark[] = "// ===== diagnostics\n";

typedef struct pass_case {
  tl_str input;
  tl_str output;
  tl_str diagnostics;
} pass_case;

static tl_str slice(const char *begin, const char *end) {
  return (tl_str){begin, (size_t)(end - begin)};
}

static pass_case split_case(tl_str text) {
  const char *end = text.data + text.len;
  const char *output = strstr(text.data, output_mark);
  const char *diagnostics = strstr(text.data, diagnostics_mark);
  pass_case parts = {.input = slice(text.data, output ? output : diagnostics ? diagnostics : end)};
  if (output) parts.output = slice(output + sizeof output_mark - 1, diagnostics ? diagnostics : end);
  if (diagnostics) parts.diagnostics = slice(diagnostics + sizeof diagnostics_mark - 1, end);
  return parts;
}

// The rest of the head's line "// key: rest"; false without one.
static bool head_value(tl_str input, const char *key, char *out, size_t size) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "// %s", key);
  for (size_t at = 0; at + 2 < input.len && input.data[at] == '/';) {
    tl_str rest = tl_str_sub(input, at, input.len - at);
    size_t line_end = tl_str_find(rest, '\n');
    tl_str line = tl_str_sub(rest, 0, line_end == SIZE_MAX ? rest.len : line_end);
    if (tl_str_starts_with(line, prefix)) {
      tl_str value = tl_str_sub(line, strlen(prefix), line.len - strlen(prefix));
      if (value.len > 0 && value.data[0] == ':') value = tl_str_sub(value, 1, value.len - 1);
      value = tl_str_trim(value);
      snprintf(out, size, "%.*s", TL_STR_ARG(value));
      return true;
    }
    if (line_end == SIZE_MAX) break;
    at += line_end + 1;
  }
  return false;
}

static void report_difference(const char *name, const char *what, tl_str expected, tl_str given) {
  size_t at = 0, line = 1, line_start = 0;
  while (at < expected.len && at < given.len && expected.data[at] == given.data[at]) {
    if (given.data[at] == '\n') {
      line++;
      line_start = at + 1;
    }
    at++;
  }
  printf("FAIL %s: %s differs at line %zu\n", name, what, line);
  const tl_str texts[] = {expected, given};
  const char *labels[] = {"expected", "given   "};
  for (int i = 0; i < 2; i++) {
    tl_str rest = line_start < texts[i].len ? tl_str_sub(texts[i], line_start, texts[i].len - line_start) : (tl_str){0};
    size_t end = rest.len ? tl_str_find(rest, '\n') : 0;
    printf("  %s %.*s\n", labels[i], (int)(end == SIZE_MAX ? rest.len : end), rest.data ? rest.data : "");
  }
}

static void run_passes(tl_module *module, const tl_pass_options *options, const char *target, tl_diags *diags,
                       tl_strbuf *output) {
  tl_status status = tl_passes_run(module, tl_target_find(tl_str_from(target)), options, diags);
  if (!status) {
    tl_module_print(module, output);
  } else if (tl_status_code_of(status) != TL_STATUS_DIAGNOSTICS) {
    tl_strbuf_appendf(output, "%s: %s\n%s", tl_status_code_name(tl_status_code_of(status)), tl_status_message(status),
                      tl_strbuf_c(options->log));
  }
  tl_status_free(status);
}

static bool write_case(const char *path, tl_str input, const tl_strbuf *output, const tl_strbuf *diagnostics) {
  FILE *file = fopen(path, "w");
  if (!file) return false;
  fprintf(file, "%.*s%s%s", TL_STR_ARG(input), output_mark, tl_strbuf_c(output));
  if (diagnostics->len > 0) fprintf(file, "%s%s", diagnostics_mark, tl_strbuf_c(diagnostics));
  return fclose(file) == 0;
}

// Runs one case; returns whether it passed.
static bool run_case(const char *directory, const char *name, bool update) {
  char path[4096], passes[1024], target[64] = "sm_80", limit[32] = "0", unused[8];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  tl_sources file_sources, sources;
  tl_sources_init(&file_sources);
  tl_sources_init(&sources);
  uint32_t file = 0;
  tl_status status = tl_sources_read(&file_sources, path, 1 << 22, &file);
  if (status) {
    printf("FAIL %s: %s\n", name, tl_status_message(status));
    tl_status_free(status);
    return false;
  }
  pass_case parts = split_case(tl_sources_get(&file_sources, file)->text);
  uint32_t source = tl_sources_add(&sources, name, parts.input);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  diags.keep_remarks = head_value(parts.input, "remarks", unused, sizeof unused);
  head_value(parts.input, "target", target, sizeof target);
  head_value(parts.input, "explore-limit", limit, sizeof limit);
  tl_strbuf log, output, diagnostics;
  tl_strbuf_init(&log);
  tl_strbuf_init(&output);
  tl_strbuf_init(&diagnostics);
  bool passed = head_value(parts.input, "passes", passes, sizeof passes);
  if (!passed) printf("FAIL %s: no line '// passes: …' at its head\n", name);
  tl_module *module = passed ? tl_module_parse(&sources, source, &diags) : NULL;
  tl_pass_options options = {.passes = passes,
                             .verify_each = true,
                             .pass_limit = -1,
                             .explore_limit = strtoll(limit, NULL, 10),
                             .is_hand_written = true,
                             .log = &log};
  if (module) run_passes(module, &options, target, &diags, &output);
  tl_diags_print_text(&diags, &diagnostics, false);
  if (passed && update) {
    passed = write_case(path, parts.input, &output, &diagnostics);
  } else if (passed) {
    bool same = tl_str_equal(parts.output, tl_strbuf_view(&output));
    if (!same) report_difference(name, "output", parts.output, tl_strbuf_view(&output));
    bool same_text = tl_str_equal(parts.diagnostics, tl_strbuf_view(&diagnostics));
    if (!same_text) report_difference(name, "diagnostics", parts.diagnostics, tl_strbuf_view(&diagnostics));
    passed = same && same_text;
  }
  if (module) tl_module_destroy(module);
  tl_strbuf_fini(&log);
  tl_strbuf_fini(&output);
  tl_strbuf_fini(&diagnostics);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  tl_sources_fini(&file_sources);
  return passed;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: pass_cases_test DIR [NAME...]\n");
    return 2;
  }
  const char *update = getenv("TL_UPDATE_CASES");
  bool updating = update && *update && strcmp(update, "0") != 0;
  if (updating && getenv("CI")) {
    fprintf(stderr, "pass_cases_test: expectations are not updated in CI\n");
    return 2;
  }
  TL_VEC(char *) names = {0};
  if (argc > 2) {
    for (int i = 2; i < argc; i++) tl_vec_push(&names, strdup(argv[i]));
  } else {
    DIR *directory = opendir(argv[1]);
    if (!directory) {
      fprintf(stderr, "pass_cases_test: cannot open %s\n", argv[1]);
      return 2;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
      if (tl_str_ends_with(tl_str_from(entry->d_name), ".tir")) tl_vec_push(&names, strdup(entry->d_name));
    }
    closedir(directory);
    if (names.len > 0) qsort(names.items, names.len, sizeof(char *), by_name);
  }
  int failed = 0;
  for (size_t i = 0; i < names.len; i++) {
    if (!run_case(argv[1], names.items[i], updating)) failed++;
    free(names.items[i]);
  }
  printf("%zu pass cases, %d failed\n", names.len, failed);
  tl_vec_fini(&names);
  return failed == 0 ? 0 : 1;
}
