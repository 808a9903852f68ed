// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One process a spec: parse, compile, emulate, compare; the outcome comes back as text through a pipe.
#include "test/random/run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/check/check.h"

// Of a child whose spec has no room.
enum { EXIT_REFUSED = 3 };

// ---- in the child

// Lines that start with this say what kind of failure it is.
static const char kind_mark[] = "failure kind: ";

typedef struct child {
  tl_strbuf kind;
} child;

// A message without numbers and quoted names, so that reductions compare the kind of failure and not its place.
static void append_kind(tl_strbuf *kind, const char *message) {
  bool quoted = false;
  for (const char *c = message; *c && *c != '\n' && kind->len < 80; c++) {
    if (*c == '\'') quoted = !quoted;
    if (!quoted && !isdigit((unsigned char)*c) && *c != '\'') tl_strbuf_append_char(kind, *c);
  }
}

static void print_line(void *user, const char *line) {
  child *c = user;
  dprintf(STDERR_FILENO, "%s\n", line);
  if (c->kind.len > 0) return;
  static const char run_failed[] = "  FAILED: ", output_failed[] = "  FAILED ";
  if (strncmp(line, run_failed, sizeof(run_failed) - 1) == 0) {
    append_kind(&c->kind, line + sizeof(run_failed) - 1);
  } else if (strncmp(line, output_failed, sizeof(output_failed) - 1) == 0) {
    append_kind(&c->kind, "wrong result");
  }
}

static void print_diagnostics(const tl_diags *diags, child *c) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(diags, &text, false);
  dprintf(STDERR_FILENO, "%s", tl_strbuf_c(&text));
  for (size_t i = 0; i < diags->list.len && c->kind.len == 0; i++) {
    const tl_diag *diag = diags->list.items[i];
    if (diag->severity != TL_SEVERITY_ERROR) continue;
    tl_strbuf_appendf(&c->kind, "%s ", tl_diag_code_text(diag->code));
    append_kind(&c->kind, diag->text);
  }
  tl_strbuf_fini(&text);
}

static tl_status check(const tl_strbuf *text, const tl_rspec_run_options *options, tl_sources *sources, tl_diags *diags,
                       child *c) {
  uint32_t source = tl_sources_add(sources, "random.yaml", tl_strbuf_view(text));
  tl_spec *spec = tl_spec_parse(sources, source, diags);
  if (!spec || tl_diags_has_errors(diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  tl_emu_options emu = {.threads = 1,
                        .checks = TL_EMU_SANITIZE_ALL,
                        .seed = 1,
                        .timeout_s = options->timeout_s * TL_CHILD_PATIENCE,
                        .landing = options->early ? TL_LANDING_EARLY : TL_LANDING_LATE};
  tl_check_options request = {.seed = 1, .directory = ".", .print = print_line, .user = c};
  if (options->target) request.target = tl_target_find(tl_str_from(options->target));
  TL_TRY(tl_run_device_open(TL_RUN_EMU, &emu, &request.device));
  if (options->via_ptx) tl_run_device_set_via(request.device, TL_VIA_BOTH);
  tl_check_summary summary;
  tl_compiled compiled;
  tl_status status = tl_check_run(&spec->kernels[0], &request, sources, diags, &summary, &compiled);
  tl_compiled_fini(&compiled);
  tl_status_free(tl_run_device_close(request.device));
  tl_spec_destroy(spec);
  return status;
}

// Whether all that is wrong is that the spec wants more memory or registers than a block has: drawn tiles may be too
// large together.
static bool has_no_room(const tl_diags *diags) {
  int errors = 0;
  for (size_t i = 0; i < diags->list.len; i++) {
    const tl_diag *diag = diags->list.items[i];
    if (diag->severity != TL_SEVERITY_ERROR) continue;
    if (diag->code != TL_DIAG_SHARED_LIMIT && diag->code != TL_DIAG_REGISTER_LIMIT) return false;
    errors++;
  }
  return errors > 0;
}

typedef struct work {
  const tl_strbuf *text;
  const tl_rspec_run_options *options;
} work;

// Never returns.
static void run_child(void *user) {
  child c;
  tl_sources sources;
  tl_diags diags;
  tl_strbuf_init(&c.kind);
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  const work *own = user;
  tl_status status = check(own->text, own->options, &sources, &diags, &c);
  print_diagnostics(&diags, &c);
  if (!status) _exit(0);
  if (has_no_room(&diags)) _exit(EXIT_REFUSED);
  if (c.kind.len == 0) {
    tl_strbuf_appendf(&c.kind, "%s ", tl_status_code_name(tl_status_code_of(status)));
    append_kind(&c.kind, tl_status_message(status));
  }
  dprintf(STDERR_FILENO, "%s\n%s%s\n", tl_status_message(status), kind_mark, tl_strbuf_c(&c.kind));
  _exit(1);
}

// ---- in the parent

void tl_rspec_start(const tl_strbuf *spec, const tl_rspec_run_options *options, tl_rspec_job *out) {
  work own = {spec, options};
  tl_child_start(&out->child, STDERR_FILENO, options->timeout_s, run_child, &own);
}

static void set_kind(tl_rspec_outcome *out, const tl_child_outcome *ended) {
  const char *text = tl_strbuf_c(&out->report), *mark = strstr(text, kind_mark);
  out->failed = true;
  if (ended->end == TL_CHILD_LATE) {
    snprintf(out->kind, sizeof(out->kind), "time is up");
  } else if (ended->end == TL_CHILD_NOT_STARTED) {
    snprintf(out->kind, sizeof(out->kind), "no process");
  } else if (ended->end == TL_CHILD_SIGNALLED) {
    snprintf(out->kind, sizeof(out->kind), "signal %d", ended->code);
  } else if (ended->code == 0 || ended->code == EXIT_REFUSED) {
    out->failed = false;
    out->refused = ended->code == EXIT_REFUSED;
  } else if (mark) {
    const char *kind = mark + sizeof(kind_mark) - 1;
    snprintf(out->kind, sizeof(out->kind), "%.*s", (int)strcspn(kind, "\n"), kind);
  } else {
    snprintf(out->kind, sizeof(out->kind), "exit %d", ended->code);
  }
}

bool tl_rspec_poll(tl_rspec_job *job, double seconds, tl_rspec_outcome *out) {
  tl_child_outcome ended;
  if (!tl_child_poll(&job->child, seconds, &ended)) return false;
  *out = (tl_rspec_outcome){.report = job->child.output};
  set_kind(out, &ended);
  return true;
}

void tl_rspec_run(const tl_strbuf *spec, const tl_rspec_run_options *options, tl_rspec_outcome *out) {
  tl_rspec_job job;
  tl_rspec_start(spec, options, &job);
  while (!tl_rspec_poll(&job, 1, out)) {
  }
}

void tl_rspec_outcome_fini(tl_rspec_outcome *outcome) {
  tl_strbuf_fini(&outcome->report);
}
