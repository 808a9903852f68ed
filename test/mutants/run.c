// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/mutants/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/check/check.h"
#include "harness/data/file.h"

// ---- one spec

typedef struct loaded {
  tl_sources sources;
  tl_diags diags;
  tl_spec *spec;  // Owned. NULL when it has errors.
} loaded;

static void load(const char *path, loaded *out) {
  tl_sources_init(&out->sources);
  tl_diags_init(&out->diags, &out->sources);
  out->spec = NULL;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_status status = tl_file_read(path, TL_FILE_MAX_TEXT_BYTES, &text);
  if (!status) {
    uint32_t source = tl_sources_add(&out->sources, path, tl_strbuf_view(&text));
    out->spec = tl_spec_parse(&out->sources, source, &out->diags);
  } else {
    fprintf(stderr, "%s: %s\n", path, tl_status_message(status));
    tl_status_free(status);
  }
  tl_strbuf_fini(&text);
}

static void unload(loaded *l) {
  if (l->spec) tl_spec_destroy(l->spec);
  tl_diags_fini(&l->diags);
  tl_sources_fini(&l->sources);
}

uint32_t tl_mutant_num_kernels(const char *path) {
  loaded l;
  load(path, &l);
  bool is_good = l.spec && !tl_diags_has_errors(&l.diags);
  uint32_t count = is_good ? (uint32_t)l.spec->num_kernels : 0;
  unload(&l);
  return count;
}

bool tl_mutant_is_checked(const char *path, uint32_t kernel) {
  loaded l;
  load(path, &l);
  bool is_checked = l.spec && kernel < l.spec->num_kernels && l.spec->kernels[kernel].check.present;
  unload(&l);
  return is_checked;
}

// ---- in the child

enum { EXIT_PASSED, EXIT_FOUND, EXIT_UNUSABLE };

typedef struct child {
  const tl_mutant_setup *setup;
  int64_t class, site;  // -1: only count
  uint32_t sites[TL_MUTANT_COUNT];
  tl_strbuf what;
} child;

static void mutate(tl_module *module, void *user) {
  child *c = user;
  if (c->class < 0) {
    for (int k = 0; k < TL_MUTANT_COUNT; k++) {
      uint32_t sites = tl_mutant_sites(module, (tl_mutant_class)k);
      if (sites > c->sites[k]) c->sites[k] = sites;
    }
    return;
  }
  bool is_first = c->what.len == 0;
  tl_strbuf text;
  tl_strbuf_init(&text);
  if (tl_mutant_apply(module, (tl_mutant_class)c->class, (uint32_t)c->site, &text) && is_first)
    tl_strbuf_append(&c->what, tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
}

static void print_line(void *user, const char *line) {
  (void)user;
  printf("%s\n", line);
}

// Orders of threads and times of landing that every mutant gets.
static const struct {
  uint32_t seed;
  tl_landing landing;
} runs[] = {{1, TL_LANDING_LATE}, {2, TL_LANDING_EARLY}, {3, TL_LANDING_LATE}};

static tl_status check(const tl_mutant_setup *setup, child *c, loaded *l, uint32_t run) {
  tl_emu_options emu = {.threads = 1,
                        .seed = runs[run].seed,
                        .landing = runs[run].landing,
                        .timeout_s = setup->timeout_s * TL_CHILD_PATIENCE,
                        .checks = TL_EMU_SANITIZE_ALL};
  tl_check_options request = {.seed = 1, .directory = ".", .print = print_line, .scheduled = {mutate, c}};
  if (setup->target) request.target = tl_target_find(tl_str_from(setup->target));
  TL_TRY(tl_run_device_open(TL_RUN_EMU, &emu, &request.device));
  tl_check_summary summary;
  tl_compiled compiled;
  tl_status status =
      tl_check_run(&l->spec->kernels[setup->kernel], &request, &l->sources, &l->diags, &summary, &compiled);
  tl_compiled_fini(&compiled);
  tl_status_free(tl_run_device_close(request.device));
  return status;
}

// Never returns. The report goes to stdout; the last line of a count is the numbers.
static void run_child(void *user) {
  child *c = user;
  const tl_mutant_setup *setup = c->setup;
  loaded l;
  load(setup->path, &l);
  if (!l.spec || tl_diags_has_errors(&l.diags)) _exit(EXIT_UNUSABLE);
  int code = EXIT_PASSED;
  for (uint32_t i = 0; i < sizeof runs / sizeof runs[0] && code == EXIT_PASSED; i++) {
    tl_status status = check(setup, c, &l, i);
    if (status) {
      printf("%s\n", tl_status_message(status));
      tl_strbuf text;
      tl_strbuf_init(&text);
      tl_diags_print_text(&l.diags, &text, false);
      printf("%s", tl_strbuf_c(&text));
      code = tl_status_code_of(status) == TL_STATUS_CHECK_FAILED ? EXIT_FOUND : EXIT_UNUSABLE;
    }
  }
  if (c->class < 0) {
    printf("sites");
    for (int k = 0; k < TL_MUTANT_COUNT; k++) printf(" %u", c->sites[k]);
    printf("\n");
  } else {
    printf("changed: %s\n", tl_strbuf_c(&c->what));
  }
  fflush(stdout);
  _exit(code);
}

// ---- in the parent

static void start(const tl_mutant_setup *setup, int64_t class, tl_mutant_job *job) {
  child c = {.setup = setup, .class = class, .site = job->site};
  tl_strbuf_init(&c.what);
  tl_child_start(&job->child, STDOUT_FILENO, setup->timeout_s, run_child, &c);
}

void tl_mutant_start(const tl_mutant_setup *setup, tl_mutant_job *job) {
  start(setup, job->class, job);
}

bool tl_mutant_poll(tl_mutant_job *job, double seconds) {
  tl_child_outcome outcome;
  if (!tl_child_poll(&job->child, seconds, &outcome)) return false;
  if (outcome.end == TL_CHILD_LATE)
    job->verdict = TL_MUTANT_TIMED_OUT;
  else if (outcome.end != TL_CHILD_EXITED || outcome.code > EXIT_FOUND)
    job->verdict = TL_MUTANT_CRASHED;
  else
    job->verdict = outcome.code == EXIT_FOUND ? TL_MUTANT_FOUND : TL_MUTANT_SURVIVED;
  return true;
}

bool tl_mutant_baseline(const tl_mutant_setup *setup, uint32_t sites[TL_MUTANT_COUNT], tl_strbuf *output) {
  tl_mutant_job job = {.site = 0};
  start(setup, -1, &job);
  while (!tl_mutant_poll(&job, 1)) {
  }
  tl_strbuf_append(output, tl_strbuf_view(&job.child.output));
  const char *line = strstr(tl_strbuf_c(&job.child.output), "\nsites");
  bool is_good = job.verdict == TL_MUTANT_SURVIVED && line;
  line = is_good ? line + strlen("\nsites") : "";
  for (int k = 0; k < TL_MUTANT_COUNT; k++) {
    char *end = NULL;
    sites[k] = (uint32_t)strtoul(line, &end, 10);
    line = end;
  }
  tl_strbuf_fini(&job.child.output);
  return is_good;
}
