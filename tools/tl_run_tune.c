// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-run --tune: options and output. The search is harness/bench/tune.c's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/bench/tune.h"
#include "harness/data/file.h"
#include "tools/tl_run.h"

bool tl_run_tune_option(tl_run_tool *t, int option, const char *argument) {
  long long number;
  switch (option) {
    case TL_RUN_OPT_TUNE:
      t->tune.wanted = true;
      return true;
    case TL_RUN_OPT_BUDGET:
      if (tl_cli_int(&t->cli, "--budget", argument, 1, TL_TUNE_MAX_CONFIGURATIONS, &number))
        t->tune.budget = (uint32_t)number;
      return true;
    default:
      return false;
  }
}

void tl_run_tune_validate_options(tl_run_tool *t) {
  const tl_run_bench_options *b = &t->bench;
  if (t->cli.is_done) return;
  if (!t->tune.wanted) {
    if (t->tune.budget) tl_cli_usage_error(&t->cli, "--budget goes with --tune");
    return;
  }
  if (t->check || b->wanted) tl_cli_usage_error(&t->cli, "--tune is a run of its own: without --check and --bench");
  if (t->out.len > 0) tl_cli_usage_error(&t->cli, "--out goes without --tune");
  if (b->compare_path || b->fail_below > 0 || b->cublaslt || b->cublaslt_path)
    tl_cli_usage_error(&t->cli, "--compare, --fail-below and --peer go with --bench");
}

// ---- output

static void clear_progress(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

static void print(const tl_run_tool *t, tl_strbuf *text) {
  clear_progress();
  if (!tl_run_bench_is_json_only(t)) fputs(tl_strbuf_c(text), stdout);
  fflush(stdout);
  tl_strbuf_fini(text);
}

static void show_progress(void *user, const char *kernel, uint64_t done, uint64_t of, const char *configuration) {
  (void)user;
  fprintf(stderr, "\r\033[K%s %llu/%llu: %s", kernel, (unsigned long long)done, (unsigned long long)of, configuration);
  fflush(stderr);
}

static void show_begin(void *user, const tl_tune_result *result, uint64_t num_to_try) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "%s %u/%u %s: up to %llu of %llu configurations\n", result->kernel, result->number,
                    result->total, result->bindings, (unsigned long long)num_to_try,
                    (unsigned long long)result->num_configurations);
  print(user, &text);
}

static void show_row(void *user, const tl_tune_result *result, const tl_tune_row *row) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_tune_print_row(result, row, &text);
  tl_strbuf_append_char(&text, '\n');
  print(user, &text);
}

static void show_end(void *user, const tl_tune_report *report, const tl_tune_result *result) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_tune_print_result(report, result, &text);
  print(user, &text);
}

static tl_status write_json(const tl_run_tool *t, const tl_tune_report *report) {
  if (!t->bench.json) return TL_OK;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_tune_write_json(report, &text);
  tl_status status = tl_file_write(t->bench.json_path ? t->bench.json_path : "-", tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  return status;
}

// ---- running

static tl_status tune_kernel(tl_run_tool *t, const tl_kernel_spec *kernel, tl_tune_report *report) {
  tl_tune_options options = {.device = t->device,
                             .target = t->target,
                             .bindings = {t->cli.bindings.items, (uint32_t)t->cli.bindings.len},
                             .required = t->required,
                             .seed = t->seed,
                             .cases = t->cases.items,
                             .num_cases = (uint32_t)t->cases.len,
                             .budget = t->tune.budget,
                             .directory = t->directory,
                             .inputs = t->inputs.items,
                             .num_inputs = (uint32_t)t->inputs.len,
                             .no_check = t->bench.no_check,
                             .rounds = t->bench.rounds,
                             .begin = show_begin,
                             .row = show_row,
                             .end = show_end,
                             .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                             .user = t};
  tl_compiled compiled;
  // Mistakes of the sections are found before minutes of measuring.
  tl_check_validate(kernel, options.bindings, &t->cli.diags);
  if (tl_diags_has_errors(&t->cli.diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  tl_status status = tl_tune_run(kernel, &options, &t->cli.sources, &t->cli.diags, report, &compiled);
  clear_progress();
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(&t->cli, &compiled);
  tl_compiled_fini(&compiled);
  return status;
}

// Every kernel that has a tune section, or --kernel's. Wrong results do not stop the others.
static tl_status tune_all(tl_run_tool *t, const tl_spec *spec, tl_tune_report *report) {
  const tl_kernel_spec *kernel;
  if (t->cli.kernel_name || spec->num_kernels == 1) {
    TL_TRY(tl_cli_pick_kernel(&t->cli, spec, false, &kernel));
    return tune_kernel(t, kernel, report);
  }
  tl_status wrong = TL_OK;
  bool any = false;
  for (uint32_t i = 0; i < spec->num_kernels; i++) {
    if (!spec->kernels[i].tune.present) continue;
    any = true;
    tl_status status = tune_kernel(t, &spec->kernels[i], report);
    if (tl_status_code_of(status) == TL_STATUS_CHECK_FAILED) {
      wrong = tl_status_join(wrong, status);
    } else if (status) {
      tl_status_free(wrong);
      return status;
    }
  }
  return any ? wrong : tl_status_make(TL_STATUS_NOT_FOUND, "%s has no tune section", t->cli.input);
}

tl_status tl_run_tune(tl_run_tool *t) {
  tl_spec *spec = NULL;
  tl_tune_report report = {0};
  tl_status status = tl_cli_load_spec(&t->cli, &spec);
  if (!status) status = tl_cli_bindings(&t->cli);
  if (!status) status = tl_run_tool_inputs(t);
  if (!status) status = tl_tune_report_init(&report, t->device);
  if (!status) {
    status = tune_all(t, spec, &report);
    bool is_complete = !status || tl_status_code_of(status) == TL_STATUS_CHECK_FAILED;
    if (is_complete) status = tl_status_join(status, write_json(t, &report));
    if (tl_status_code_of(status) == TL_STATUS_CHECK_FAILED)
      fprintf(stderr, "%s: %s\n", t->cli.tool, tl_status_message(status));
  }
  tl_tune_report_fini(&report);
  if (spec) tl_spec_destroy(spec);
  return status;
}
