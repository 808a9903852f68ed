// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-run --bench: options, output, comparison. The measuring is harness/bench/bench.c's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/bench/bench.h"
#include "harness/data/file.h"
#include "harness/device/device_internal.h"
#include "tools/tl_run.h"

bool tl_run_bench_option(tl_run_tool *t, int option, const char *argument) {
  tl_run_bench_options *b = &t->bench;
  long long number;
  char *end;
  switch (option) {
    case TL_RUN_OPT_BENCH:
      b->wanted = true;
      return true;
    case TL_RUN_OPT_JSON:
      b->json = true;
      b->json_path = argument;
      return true;
    case TL_RUN_OPT_COMPARE:
      b->compare_path = argument;
      return true;
    case TL_RUN_OPT_FAIL_BELOW:
      b->fail_below = strtod(argument, &end);
      if (end == argument || *end || !(b->fail_below > 0 && b->fail_below < 100)) {
        tl_cli_usage_error(&t->cli, "--fail-below takes a ratio such as 0.97, not '%s'", argument);
      }
      return true;
    case TL_RUN_OPT_PEER:
      b->cublaslt = strcmp(argument, "cublaslt") == 0;
      if (!b->cublaslt) tl_cli_usage_error(&t->cli, "--peer takes cublaslt, not '%s'", argument);
      return true;
    case TL_RUN_OPT_CUBLASLT:
      b->cublaslt_path = argument;
      return true;
    case TL_RUN_OPT_ROUNDS:
      if (tl_cli_int(&t->cli, "--rounds", argument, 1, 1000, &number)) b->rounds = (uint32_t)number;
      return true;
    case TL_RUN_OPT_NO_CHECK:
      b->no_check = true;
      return true;
    default:
      return false;
  }
}

void tl_run_bench_validate_options(tl_run_tool *t) {
  const tl_run_bench_options *b = &t->bench;
  if (t->cli.is_done) return;
  bool has_others =
      b->json || b->compare_path || b->fail_below > 0 || b->cublaslt || b->cublaslt_path || b->rounds || b->no_check;
  if (t->tune.wanted) return;
  if (!b->wanted) {
    bool only_json = t->check && b->json && !b->compare_path && !(b->fail_below > 0) && !b->cublaslt &&
                     !b->cublaslt_path && !b->rounds && !b->no_check;
    if (has_others && !only_json)
      tl_cli_usage_error(
          &t->cli,
          "--json, --compare, --peer, --rounds and their like go with --bench (or --tune, --json with --check)");
    return;
  }
  if (t->check) tl_cli_usage_error(&t->cli, "--bench and --check are two runs");
  if (t->out.len > 0) tl_cli_usage_error(&t->cli, "--out goes without --bench");
  if (b->fail_below > 0 && !b->compare_path) tl_cli_usage_error(&t->cli, "--fail-below goes with --compare");
  if (b->cublaslt_path && !b->cublaslt) tl_cli_usage_error(&t->cli, "--cublaslt goes with --peer=cublaslt");
}

// ---- output

bool tl_run_bench_is_json_only(const tl_run_tool *t) {
  return !t->check && t->bench.json && (!t->bench.json_path || strcmp(t->bench.json_path, "-") == 0);
}

static void clear_progress(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

static void show_progress(void *user, const char *kernel, uint32_t number, uint32_t total, const char *what,
                          uint32_t done, uint32_t of) {
  (void)user;
  fprintf(stderr, "\r\033[K%s %u/%u: %s", kernel, number, total, what);
  if (of > 1) fprintf(stderr, " (%u%%)", 100 * done / of);
  fflush(stderr);
}

static void show_result(void *user, const tl_bench_result *result) {
  const tl_run_tool *t = user;
  clear_progress();
  if (tl_run_bench_is_json_only(t)) return;
  tl_strbuf line;
  tl_strbuf_init(&line);
  tl_bench_print_result(result, &line);
  printf("%s\n", tl_strbuf_c(&line));
  fflush(stdout);
  tl_strbuf_fini(&line);
}

static void show_machine(const tl_run_tool *t, const tl_bench_report *report) {
  if (tl_run_bench_is_json_only(t)) return;
  tl_strbuf line;
  tl_strbuf_init(&line);
  tl_bench_print_machine(&report->machine, &line);
  printf("%s\n", tl_strbuf_c(&line));
  fflush(stdout);
  tl_strbuf_fini(&line);
}

static tl_status write_json(const tl_run_tool *t, const tl_bench_report *report) {
  if (!t->bench.json) return TL_OK;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_bench_write_json(report, &text);
  tl_status status = tl_file_write(t->bench.json_path ? t->bench.json_path : "-", tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  return status;
}

// Prints the ratios; CHECK_FAILED when one is below the limit.
static tl_status compare(const tl_run_tool *t, const tl_bench_report *before, const tl_bench_report *now) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  double least = tl_bench_compare(before, now, &text);
  fprintf(tl_run_bench_is_json_only(t) ? stderr : stdout, "against %s (over 1 is faster now):\n%s",
          t->bench.compare_path, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  if (!(t->bench.fail_below > 0) || least >= t->bench.fail_below) return TL_OK;
  fprintf(stderr, "tl-run: the least ratio is %.3f, below %.3f\n", least, t->bench.fail_below);
  return tl_status_make(TL_STATUS_CHECK_FAILED, "a case has become slower");
}

// ---- running

static tl_status bench_kernel(tl_run_tool *t, const tl_kernel_spec *kernel, tl_cublaslt *cublaslt,
                              tl_bench_report *report) {
  tl_bench_options options = {.device = t->device,
                              .target = t->target,
                              .bindings = {t->cli.bindings.items, (uint32_t)t->cli.bindings.len},
                              .required = t->required,
                              .seed = t->seed,
                              .cases = t->cases.items,
                              .num_cases = (uint32_t)t->cases.len,
                              .directory = t->directory,
                              .inputs = t->inputs.items,
                              .num_inputs = (uint32_t)t->inputs.len,
                              .cublaslt = cublaslt,
                              .no_check = t->bench.no_check,
                              .plan = tl_bench_plan_default(),
                              .done = show_result,
                              .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                              .user = t};
  options.plan.seed = t->seed;
  if (t->bench.rounds) {
    options.plan.burst_rounds = t->bench.rounds;
    options.plan.sustained_rounds = (t->bench.rounds + 2) / 3;
  }
  tl_compiled compiled;
  tl_status status = tl_bench_run(kernel, &options, &t->cli.sources, &t->cli.diags, report, &compiled);
  clear_progress();
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(&t->cli, &compiled);
  tl_compiled_fini(&compiled);
  return status;
}

// Every kernel that has a bench section; --kernel's even without one. Wrong results do not stop the others.
static tl_status bench_all(tl_run_tool *t, const tl_spec *spec, tl_cublaslt *cublaslt, tl_bench_report *report) {
  const tl_kernel_spec *kernel;
  bool is_single = t->cli.kernel_name || spec->num_kernels == 1;
  if (is_single) {
    TL_TRY(tl_cli_pick_kernel(&t->cli, spec, false, &kernel));
    return bench_kernel(t, kernel, cublaslt, report);
  }
  tl_status wrong = TL_OK;
  uint32_t benched = 0;
  for (uint32_t i = 0; i < spec->num_kernels; i++) {
    if (!spec->kernels[i].bench.present) continue;
    benched++;
    tl_status status = bench_kernel(t, &spec->kernels[i], cublaslt, report);
    if (tl_status_code_of(status) == TL_STATUS_CHECK_FAILED) {
      wrong = tl_status_join(wrong, status);
    } else if (status) {
      tl_status_free(wrong);
      return status;
    }
  }
  if (benched == 0) return tl_status_make(TL_STATUS_NOT_FOUND, "%s has no bench section", t->cli.input);
  return wrong;
}

static tl_status read_compared(const tl_run_tool *t, tl_bench_report *out) {
  *out = (tl_bench_report){0};
  if (!t->bench.compare_path) return TL_OK;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_status status = tl_file_read(t->bench.compare_path, TL_FILE_MAX_TEXT_BYTES, &text);
  if (!status) {
    status = tl_status_annotate(tl_bench_read_json(tl_strbuf_view(&text), out), "%s", t->bench.compare_path);
  }
  tl_strbuf_fini(&text);
  return status;
}

tl_status tl_run_bench(tl_run_tool *t) {
  tl_spec *spec = NULL;
  tl_cublaslt *cublaslt = NULL;
  tl_bench_report before, report = {0};
  // What is wrong with the files is found before minutes of measuring.
  tl_status status = read_compared(t, &before);
  if (!status) status = tl_cli_load_spec(&t->cli, &spec);
  if (!status) status = tl_cli_bindings(&t->cli);
  if (!status) status = tl_run_tool_inputs(t);
  if (!status) status = tl_bench_report_init(&report, t->device);
  if (!status && t->bench.cublaslt) status = tl_cublaslt_open(t->bench.cublaslt_path, t->device->gpu, &cublaslt);
  if (!status) {
    show_machine(t, &report);
    status = bench_all(t, spec, cublaslt, &report);
    bool is_complete = !status || tl_status_code_of(status) == TL_STATUS_CHECK_FAILED;
    if (is_complete) status = tl_status_join(status, write_json(t, &report));
    if (is_complete && t->bench.compare_path) status = tl_status_join(status, compare(t, &before, &report));
  }
  tl_cublaslt_close(cublaslt);
  tl_bench_report_fini(&report);
  tl_bench_report_fini(&before);
  if (spec) tl_spec_destroy(spec);
  return status;
}
