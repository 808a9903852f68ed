// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-run --check: the specs of the command line, their kernels and cases, what is said on the way and at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/tl_run.h"
#include "tools/watchdog.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// ---- progress, where somebody looks

static void clear_progress(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

// "matmul 2/5: {M: 256}, 3 of 12 done, about 8 s left"
static void show_progress(const tl_run_tool *t) {
  const tl_run_report *report = &t->report;
  const tl_check_record *running = &report->running;
  if (!isatty(STDERR_FILENO) || !running->number) return;
  fputs("\r\033[K", stderr);
  if (t->num_more_inputs) fprintf(stderr, "spec %u of %d, ", report->spec_number, t->num_more_inputs + 1);
  fprintf(stderr, "%.*s %u/%u: %.60s, %u of %u done", TL_STR_ARG(running->kernel), running->number, running->total,
          running->bindings, report->spec_done, report->spec_cases);
  if (report->spec_done && report->spec_cases > report->spec_done) {
    double each = (now() - report->spec_start) / report->spec_done;
    fprintf(stderr, ", about %.0f s left", each * (report->spec_cases - report->spec_done));
  }
  fflush(stderr);
}

static void print_line(void *user, const char *line) {
  clear_progress();
  printf("%s\n", line);
  fflush(stdout);
  show_progress(user);
}

// ---- what the check tells

static void begin_case(void *user, const tl_check_record *record) {
  tl_run_tool *t = user;
  t->report.running = *record;
  t->report.case_start = now();
  show_progress(t);
}

// Of a case that does not compile the log has its errors too.
static void end_case(void *user, const tl_check_record *record) {
  tl_run_tool *t = user;
  tl_strbuf log = {0};
  tl_strbuf_append_c(&log, record->log);
  if (record->outcome == TL_CHECK_ERROR && record->diags) tl_diags_print_text(record->diags, &log, false);
  tl_run_report_add(t, record, tl_strbuf_c(&log));
  tl_strbuf_fini(&log);
  t->report.running.number = 0;
  t->report.spec_done++;
  t->report.kernel_cases++;
  t->report.kernel_passed += record->outcome == TL_CHECK_PASSED;
  clear_progress();
}

static void print_summary(const tl_run_tool *t, tl_str kernel) {
  printf("%.*s: %u of %u cases passed on %s\n", TL_STR_ARG(kernel), t->report.kernel_passed, t->report.kernel_cases,
         tl_run_describe_device(t));
}

// Where there is more to add up than the line of one kernel.
static void print_total(const tl_run_tool *t) {
  tl_run_counts counts;
  tl_run_report_count(t, &counts);
  if (counts.kernels == 1 && !counts.specs_failed) return;
  tl_strbuf line = {0};
  tl_run_report_print_total(t, &line);
  printf("%s\n", tl_strbuf_c(&line));
  fflush(stdout);
  tl_strbuf_fini(&line);
}

// A step has taken too long: what is known so far is said and written, and the process ends.
static void expired(void *user, const char *what, double seconds) {
  tl_run_tool *t = user;
  tl_status status = tl_status_make(TL_STATUS_LIMIT, "%s did not end within %g s (--timeout)", what, seconds);
  tl_check_record *running = &t->report.running;
  clear_progress();
  if (running->number) {
    running->outcome = TL_CHECK_ERROR;
    running->message = tl_status_message(status);
    running->seconds = now() - t->report.case_start;
    tl_run_report_add(t, running, running->message);
    t->report.kernel_cases++;
    printf("  FAILED: %s\n", running->message);
    print_summary(t, running->kernel);
    print_total(t);
    status = tl_status_join(status, tl_run_report_write(t));
  }
  tl_cli_end_early(&t->cli, status);
}

void tl_run_tool_step(void *tool, const char *what) {
  tl_run_tool *t = tool;
  if (what) {
    tl_watchdog_start(what, t->emu.timeout_s, expired, t);
  } else {
    tl_watchdog_stop();
  }
}

// ---- kernels and specs

static tl_status run_kernel(tl_run_tool *t, const tl_kernel_spec *kernel) {
  tl_check_options options = {.device = t->device,
                              .target = t->target,
                              .bindings = {t->cli.bindings.items, (uint32_t)t->cli.bindings.len},
                              .required = t->required,
                              .seed = t->seed,
                              .repeat = t->repeat,
                              .both_landings = t->both_landings,
                              .cases = t->cases.items,
                              .num_cases = (uint32_t)t->cases.len,
                              .directory = t->directory,
                              .dump_dir = t->dump_dir,
                              .inputs = t->inputs.items,
                              .num_inputs = (uint32_t)t->inputs.len,
                              .max_memory = t->max_memory,
                              .step = tl_run_tool_step,
                              .print = print_line,
                              .begin = begin_case,
                              .end = end_case,
                              .user = t};
  tl_check_summary summary;
  tl_compiled compiled;
  t->report.kernel_cases = t->report.kernel_passed = 0;
  tl_status status = tl_check_run(kernel, &options, &t->cli.sources, &t->cli.diags, &summary, &compiled);
  tl_status_code code = tl_status_code_of(status);
  clear_progress();
  if (summary.num_cases > 0) print_summary(t, kernel->name);
  if (code == TL_STATUS_INTERNAL) tl_cli_report_internal(&t->cli, &compiled);
  tl_compiled_fini(&compiled);
  if (summary.num_cases == 0 || code == TL_STATUS_OK || code == TL_STATUS_DIAGNOSTICS || code == TL_STATUS_INTERNAL)
    return status;
  // The report has said it.
  tl_status_free(status);
  return tl_status_make(TL_STATUS_CHECK_FAILED, "%u of %u cases failed", summary.num_failed, summary.num_cases);
}

// What a kernel has done to the context no later one can be run in.
static bool is_lost(const tl_run_tool *t, tl_status status) {
  return tl_status_code_of(status) == TL_STATUS_CHECK_FAILED && t->device && tl_run_device_is_lost(t->device);
}

static uint32_t count_cases(const tl_run_tool *t, const tl_kernel_spec *kernel) {
  uint32_t total = kernel->check.num_cases ? kernel->check.num_cases : 1, wanted = 0;
  if (!kernel->check.present) return 0;
  if (!t->cases.len) return total;
  for (uint32_t i = 1; i <= total; i++) {
    bool is_wanted = false;
    for (size_t k = 0; k < t->cases.len; k++) is_wanted = is_wanted || t->cases.items[k] == i;
    wanted += is_wanted;
  }
  return wanted;
}

// Every kernel of the file that has a check section, until a bug or a lost device ends it.
static tl_status run_kernels(tl_run_tool *t, const tl_spec *spec) {
  uint32_t checked = 0;
  tl_status status = TL_OK;
  for (uint32_t i = 0; i < spec->num_kernels; i++) t->report.spec_cases += count_cases(t, &spec->kernels[i]);
  for (uint32_t i = 0; i < spec->num_kernels && tl_status_code_of(status) != TL_STATUS_INTERNAL && !is_lost(t, status);
       i++) {
    if (!spec->kernels[i].check.present) continue;
    tl_status failed = run_kernel(t, &spec->kernels[i]);
    if (failed) {
      tl_status_free(status);
      status = failed;
    }
    checked++;
  }
  if (!checked) return tl_status_make(TL_STATUS_NOT_FOUND, "%s has no check section", t->cli.input);
  return status;
}

// A spec none of whose cases ran is told of too.
static void note_unchecked(tl_run_tool *t, tl_status status) {
  tl_strbuf log = {0};
  tl_check_record record = {.outcome = TL_CHECK_ERROR, .message = tl_status_message(status)};
  tl_diags_print_text(&t->cli.diags, &log, false);
  if (!log.len) tl_strbuf_appendf(&log, "%s\n", record.message);
  tl_run_report_add(t, &record, tl_strbuf_c(&log));
  tl_strbuf_fini(&log);
}

static tl_status run_spec(tl_run_tool *t) {
  tl_spec *spec = NULL;
  const tl_kernel_spec *kernel = NULL;
  size_t cases_before = t->report.cases.len;
  t->report.spec_number++;
  t->report.spec_cases = t->report.spec_done = 0;
  t->report.spec_start = now();
  tl_run_set_directory(t);
  tl_vec_clear(&t->inputs);
  tl_status status = tl_cli_load_spec(&t->cli, &spec);
  if (!status) status = tl_cli_bindings(&t->cli);
  if (!status) status = tl_run_tool_inputs(t);
  if (!status && !t->cli.kernel_name) {
    status = run_kernels(t, spec);
  } else if (!status) {
    status = tl_cli_pick_kernel(&t->cli, spec, false, &kernel);
    if (!status) t->report.spec_cases = count_cases(t, kernel);
    if (!status) status = run_kernel(t, kernel);
  }
  if (status && t->report.cases.len == cases_before) note_unchecked(t, status);
  if (spec) tl_spec_destroy(spec);
  return status;
}

// Specs that come after a kernel that left the GPU unusable.
static void skip_rest(tl_run_tool *t, int from) {
  if (t->cli.diagnostics == TL_CLI_TEXT)
    fprintf(stderr, "%s: the GPU is lost to this process: %d specs from '%s' on were not run\n", t->cli.tool,
            t->num_more_inputs - from, t->more_inputs[from]);
  for (int i = from; i < t->num_more_inputs; i++) {
    tl_check_record record = {.outcome = TL_CHECK_ERROR, .message = "not run: an earlier kernel left the GPU unusable"};
    t->cli.input = t->more_inputs[i];
    tl_run_report_add(t, &record, record.message);
  }
}

// Each spec of the command line on one device. The status is the last spec's; codes of the others are kept.
static tl_status run_specs(tl_run_tool *t) {
  tl_status status = run_spec(t);
  for (int i = 0; i < t->num_more_inputs; i++) {
    if (is_lost(t, status)) {
      skip_rest(t, i);
      return status;
    }
    int code = tl_cli_next_input(&t->cli, status, t->more_inputs[i]);
    if (code > t->exit_code) t->exit_code = code;
    status = run_spec(t);
  }
  return status;
}

tl_status tl_run_all_specs(tl_run_tool *t) {
  tl_status status = run_specs(t);
  print_total(t);
  return tl_status_join(status, tl_run_report_write(t));
}
