// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs scheduled tile IR in the emulator, with all checks, several orders of threads, late and early landing:
// async_cases_test DIR [NAME…].
//
// A case is a file NAME.tir:
//   // passes: plan-shared        comma list, as --passes= takes it
//   // target: sm_90              optional, default sm_90a
//   // dynamic: N=100 M=3         optional: dynamic params
//   // same: C A                  what must be equal bit for bit afterwards: an output and an input
//   // finding: text              optional: instead of passing, some run says this, and none passes with wrong elements
//   // refused: text              optional: instead of running, a pass refuses the module with this
//   …tile IR…
// Inputs hold bytes that differ from element to element.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/run.h"
#include "ir/text/text.h"
#include "support/vec.h"

typedef struct async_case {
  const char *name;
  tl_str text;
  char passes[256], target[32], same[64], finding[256], refused[256];
  TL_VEC(tl_mbinding) dynamics;
  char dynamic_text[256];
} async_case;

static bool head_value(tl_str text, const char *key, char *out, size_t size) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "// %s:", key);
  out[0] = '\0';
  for (const char *at = text.data; at + 2 < text.data + text.len && at[0] == '/';) {
    const char *end = memchr(at, '\n', (size_t)(text.data + text.len - at));
    if (!end) break;
    if (strncmp(at, prefix, strlen(prefix)) == 0) {
      tl_str value = tl_str_trim((tl_str){at + strlen(prefix), (size_t)(end - at) - strlen(prefix)});
      snprintf(out, size, "%.*s", TL_STR_ARG(value));
      return true;
    }
    at = end + 1;
  }
  return false;
}

static void read_head(async_case *c) {
  head_value(c->text, "passes", c->passes, sizeof c->passes);
  if (!head_value(c->text, "target", c->target, sizeof c->target)) strcpy(c->target, "sm_90a");
  head_value(c->text, "same", c->same, sizeof c->same);
  head_value(c->text, "finding", c->finding, sizeof c->finding);
  head_value(c->text, "refused", c->refused, sizeof c->refused);
  head_value(c->text, "dynamic", c->dynamic_text, sizeof c->dynamic_text);
  for (char *word = strtok(c->dynamic_text, " "); word; word = strtok(NULL, " ")) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = '\0';
    tl_vec_push(&c->dynamics, (tl_mbinding){word, strtoll(value, NULL, 10)});
  }
}

static void fill(tl_array *array) {
  uint8_t *bytes = array->data;
  uint32_t state = 12345;
  for (uint64_t i = 0; i < array->bytes; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (uint8_t)(state >> 24);
  }
}

// Whether the two arguments of `same` hold the same bits.
static bool is_same(const async_case *c, const tl_run_args *args, tl_strbuf *out) {
  const char *space = strchr(c->same, ' ');
  if (!space) return true;
  const tl_run_arg *a = tl_run_args_find(args, (tl_str){c->same, (size_t)(space - c->same)});
  const tl_run_arg *b = tl_run_args_find(args, tl_str_from(space + 1));
  if (!a || !b || a->array.bytes != b->array.bytes) {
    tl_strbuf_appendf(out, "'%s' names no two arguments of one size", c->same);
    return false;
  }
  if (memcmp(a->array.data, b->array.data, a->array.bytes) == 0) return true;
  tl_strbuf_appendf(out, "'%s' differ", c->same);
  return false;
}

// One run: what it says is appended.
static bool run_once(async_case *c, const tl_compiled *compiled, uint32_t seed, tl_landing landing, tl_strbuf *out) {
  tl_emu_options emu = {.threads = 1, .seed = seed, .landing = landing, .timeout_s = 20, .checks = TL_EMU_SANITIZE_ALL};
  tl_run_device *device = NULL;
  tl_run_kernel *kernel = NULL;
  tl_run_args args = {0};
  tl_status status = tl_run_device_open(TL_RUN_EMU, &emu, &device);
  if (!status) status = tl_run_kernel_load(device, compiled, &kernel);
  if (!status)
    status = tl_run_args_from_manifest(tl_run_kernel_manifest(kernel), c->dynamics.items, c->dynamics.len, &args);
  for (uint32_t i = 0; i < args.len; i++)
    if (args.items[i].access != 1) fill(&args.items[i].array);
  if (!status) status = tl_run_launch(device, kernel, &args, c->dynamics.items, c->dynamics.len);
  bool passed = !status;
  if (status) tl_strbuf_appendf(out, "%s\n", tl_status_message(status));
  if (passed) passed = is_same(c, &args, out);
  tl_status_free(status);
  tl_run_args_fini(&args);
  if (kernel) tl_run_kernel_destroy(kernel);
  tl_status_free(tl_run_device_close(device));
  return passed;
}

static bool run_all(async_case *c, const tl_compiled *compiled) {
  tl_strbuf out = {0};
  bool all = true, none = true;
  for (uint32_t seed = 1; seed <= 3; seed++) {
    for (int landing = TL_LANDING_LATE; landing <= TL_LANDING_EARLY; landing++) {
      bool passed = run_once(c, compiled, seed, (tl_landing)landing, &out);
      all = all && passed;
      none = none && !passed;
    }
  }
  bool good = c->finding[0] ? !all && out.len && strstr(tl_strbuf_c(&out), c->finding) : all;
  if (!good && c->finding[0])
    printf("FAIL %s: no run says '%s':\n%s\n", c->name, c->finding, out.len ? tl_strbuf_c(&out) : "nothing");
  if (!good && !c->finding[0]) printf("FAIL %s:\n%s\n", c->name, tl_strbuf_c(&out));
  tl_strbuf_fini(&out);
  return good;
}

static bool is_refused(const async_case *c, tl_status status, const tl_diags *diags) {
  tl_strbuf text = {0};
  tl_diags_print_text(diags, &text, false);
  if (status) tl_strbuf_appendf(&text, "%s", tl_status_message(status));
  bool as_expected = c->refused[0] && status && strstr(tl_strbuf_c(&text), c->refused);
  if (!as_expected) printf("FAIL %s: %s\n", c->name, text.len ? tl_strbuf_c(&text) : "accepted");
  tl_strbuf_fini(&text);
  return as_expected;
}

static bool run_case(const char *directory, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  tl_sources sources;
  tl_diags diags;
  uint32_t source;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_status status = tl_sources_read(&sources, path, 1 << 20, &source);
  async_case c = {.name = name};
  tl_compiled compiled = {0};
  if (!status) {
    c.text = tl_sources_get(&sources, source)->text;
    read_head(&c);
    compiled.target = tl_target_find(tl_str_from(c.target));
    compiled.tile = tl_module_parse(&sources, source, &diags);
    if (!compiled.tile) status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the text has errors");
  }
  tl_pass_options passes = {.pass_limit = -1, .passes = c.passes};
  if (!status) status = tl_passes_run(compiled.tile, compiled.target, &passes, &diags);
  tl_backend_options backend = {.opt_level = 3};
  if (!status && !c.refused[0])
    status = tl_backend_create(compiled.tile, compiled.target, &backend, &diags, &compiled.backend);
  bool passed = status || c.refused[0] ? is_refused(&c, status, &diags) : run_all(&c, &compiled);
  tl_status_free(status);
  tl_compiled_fini(&compiled);
  tl_vec_fini(&c.dynamics);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return passed;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
  TL_VEC(char *) names = {0};
  DIR *directory = argc > 1 ? opendir(argv[1]) : NULL;
  if (!directory) {
    fprintf(stderr, "usage: async_cases_test DIR [NAME...]\n");
    return 2;
  }
  for (int i = 2; i < argc; i++) tl_vec_push(&names, strdup(argv[i]));
  for (struct dirent *entry; argc == 2 && (entry = readdir(directory));)
    if (tl_str_ends_with(tl_str_from(entry->d_name), ".tir")) tl_vec_push(&names, strdup(entry->d_name));
  closedir(directory);
  if (names.len > 0) qsort(names.items, names.len, sizeof(char *), by_name);
  int failed = 0;
  for (size_t i = 0; i < names.len; i++) {
    if (!run_case(argv[1], names.items[i])) failed++;
    free(names.items[i]);
  }
  printf("%zu cases, %d failed\n", names.len, failed);
  tl_vec_fini(&names);
  return failed == 0 ? 0 : 1;
}
