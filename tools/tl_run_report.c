// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tl-run --check leaves behind for programs: --json and --junit, from one list of what became of each case.
#include <stdlib.h>
#include <string.h>

#include "harness/data/file.h"
#include "tools/tl_run.h"

static char *copy_bytes(tl_str text) {
  char *made = tl_xmalloc(text.len + 1);
  if (text.len) memcpy(made, text.data, text.len);
  made[text.len] = '\0';
  return made;
}

static char *copy(const char *text) {
  return text ? copy_bytes(tl_str_from(text)) : NULL;
}

void tl_run_report_add(tl_run_tool *t, const tl_check_record *record, const char *log) {
  tl_run_case made = {.spec = copy(t->cli.input),
                      .number = record->number,
                      .total = record->total,
                      .outcome = record->outcome,
                      .seconds = record->seconds,
                      .bindings = copy(record->bindings),
                      .message = copy(record->message),
                      .outputs = copy(record->outputs),
                      .log = copy(log)};
  made.kernel = copy_bytes(record->kernel);
  tl_vec_push(&t->report.cases, made);
  if (!made.number) t->report.num_specs_failed++;
}

void tl_run_report_fini(tl_run_tool *t) {
  for (size_t i = 0; i < t->report.cases.len; i++) {
    tl_run_case *one = &t->report.cases.items[i];
    free(one->spec);
    free(one->kernel);
    free(one->bindings);
    free(one->message);
    free(one->outputs);
    free(one->log);
  }
  tl_vec_fini(&t->report.cases);
}

static const char *outcome_name(tl_check_outcome outcome) {
  return outcome == TL_CHECK_PASSED ? "passed" : outcome == TL_CHECK_WRONG ? "failed" : "error";
}

// Cases of one kernel of one spec follow each other in their order; a spec that is given twice begins anew.
static bool same_suite(const tl_run_case *before, const tl_run_case *one) {
  return strcmp(before->spec, one->spec) == 0 && strcmp(before->kernel, one->kernel) == 0 &&
         before->number < one->number;
}

// ---- the last line

void tl_run_report_count(const tl_run_tool *t, tl_run_counts *out) {
  *out = (tl_run_counts){.specs_failed = t->report.num_specs_failed};
  for (size_t i = 0; i < t->report.cases.len; i++) {
    const tl_run_case *one = &t->report.cases.items[i];
    if (!one->number) continue;
    out->cases++;
    out->passed += one->outcome == TL_CHECK_PASSED;
    out->errors += one->outcome == TL_CHECK_ERROR;
    out->kernels += !i || !same_suite(one - 1, one);
  }
}

void tl_run_report_print_total(const tl_run_tool *t, tl_strbuf *out) {
  tl_run_counts counts;
  tl_run_report_count(t, &counts);
  tl_strbuf_appendf(out, "total: %u of %u case%s passed", counts.passed, counts.cases, counts.cases == 1 ? "" : "s");
  if (counts.kernels > 1) tl_strbuf_appendf(out, " in %u kernels", counts.kernels);
  if (counts.errors) tl_strbuf_appendf(out, ", %u did not run to the end", counts.errors);
  if (counts.specs_failed)
    tl_strbuf_appendf(out, "; %u spec%s could not be checked", counts.specs_failed,
                      counts.specs_failed == 1 ? "" : "s");
}

// ---- JSON

static void json_member(const char *name, const char *value, tl_strbuf *out) {
  tl_strbuf_appendf(out, ", \"%s\": ", name);
  if (value)
    tl_strbuf_append_json_c(out, value);
  else
    tl_strbuf_append_c(out, "null");
}

static void print_json(tl_run_tool *t, tl_strbuf *out) {
  tl_run_counts counts;
  tl_run_report_count(t, &counts);
  tl_strbuf_append_c(out, "{\"format\": 1, \"version\": \"" TL_VERSION "\", \"device\": ");
  tl_strbuf_append_json_c(out, t->device ? tl_run_device_describe(t->device) : "none");
  tl_strbuf_appendf(out, ", \"seed\": %llu,\n \"cases\": [", (unsigned long long)t->seed);
  for (size_t i = 0; i < t->report.cases.len; i++) {
    const tl_run_case *one = &t->report.cases.items[i];
    tl_strbuf_append_c(out, i ? ",\n  {\"spec\": " : "\n  {\"spec\": ");
    tl_strbuf_append_json_c(out, one->spec);
    json_member("kernel", one->number ? one->kernel : NULL, out);
    tl_strbuf_appendf(out, ", \"case\": %u, \"of\": %u", one->number, one->total);
    json_member("bindings", one->bindings, out);
    tl_strbuf_appendf(out, ", \"outcome\": \"%s\", \"seconds\": %.6f", outcome_name(one->outcome), one->seconds);
    json_member("message", one->message, out);
    tl_strbuf_appendf(out, ", \"outputs\": [%s]}", one->outputs ? one->outputs : "");
  }
  tl_strbuf_appendf(out,
                    "\n ],\n \"summary\": {\"cases\": %u, \"passed\": %u, \"failed\": %u, \"errors\": %u, "
                    "\"specs_not_checked\": %u}}\n",
                    counts.cases, counts.passed, counts.cases - counts.passed - counts.errors, counts.errors,
                    counts.specs_failed);
}

// ---- JUnit

static void append_xml(tl_strbuf *out, const char *text) {
  tl_strbuf_append_markup(out, tl_str_from(text));
}

static void junit_case(const tl_run_case *one, tl_strbuf *out) {
  tl_strbuf_append_c(out, "    <testcase classname=\"");
  append_xml(out, one->number ? one->kernel : one->spec);
  if (one->number)
    tl_strbuf_appendf(out, "\" name=\"case %u ", one->number);
  else
    tl_strbuf_append_c(out, "\" name=\"the spec");
  append_xml(out, one->bindings ? one->bindings : "");
  tl_strbuf_appendf(out, "\" time=\"%.6f\"", one->seconds);
  if (one->outcome == TL_CHECK_PASSED) {
    tl_strbuf_append_c(out, "/>\n");
    return;
  }
  const char *element = one->outcome == TL_CHECK_WRONG ? "failure" : "error";
  tl_strbuf_appendf(out, ">\n      <%s message=\"", element);
  append_xml(out, one->message ? one->message : "the results are wrong");
  tl_strbuf_append_c(out, "\">");
  append_xml(out, one->log ? one->log : "");
  tl_strbuf_appendf(out, "</%s>\n    </testcase>\n", element);
}

// A suite is a kernel of a spec.
static size_t junit_suite(const tl_run_case *cases, size_t from, size_t len, tl_strbuf *out) {
  size_t end = from;
  unsigned failures = 0, errors = 0;
  double seconds = 0;
  for (; end == from || (end < len && same_suite(&cases[end - 1], &cases[end])); end++) {
    failures += cases[end].outcome == TL_CHECK_WRONG;
    errors += cases[end].outcome == TL_CHECK_ERROR;
    seconds += cases[end].seconds;
  }
  tl_strbuf_append_c(out, "  <testsuite name=\"");
  append_xml(out, cases[from].spec);
  if (cases[from].kernel[0]) tl_strbuf_append_c(out, ": ");
  append_xml(out, cases[from].kernel);
  tl_strbuf_appendf(out, "\" tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"0\" time=\"%.6f\">\n", end - from,
                    failures, errors, seconds);
  for (size_t i = from; i < end; i++) junit_case(&cases[i], out);
  tl_strbuf_append_c(out, "  </testsuite>\n");
  return end;
}

static void print_junit(const tl_run_tool *t, tl_strbuf *out) {
  tl_run_counts counts;
  tl_run_report_count(t, &counts);
  unsigned all = counts.cases + counts.specs_failed;
  tl_strbuf_appendf(out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tl-run\" tests=\"%u\" "
                    "failures=\"%u\" errors=\"%u\">\n",
                    all, counts.cases - counts.passed - counts.errors, counts.errors + counts.specs_failed);
  for (size_t i = 0; i < t->report.cases.len;) i = junit_suite(t->report.cases.items, i, t->report.cases.len, out);
  tl_strbuf_append_c(out, "</testsuites>\n");
}

// Standard output is for the report alone when it goes there.
static tl_status write_report(const tl_run_tool *t, const char *path, const tl_strbuf *text) {
  bool is_apart = t->apart_fd >= 0 && (!path || strcmp(path, "-") == 0);
  if (!is_apart) return tl_file_write(path ? path : "-", tl_strbuf_view(text));
  return tl_file_write_to(t->apart_fd, "standard output", tl_strbuf_view(text));
}

tl_status tl_run_report_write(tl_run_tool *t) {
  tl_status status = TL_OK;
  tl_strbuf text = {0};
  if (t->bench.json) {
    print_json(t, &text);
    status = write_report(t, t->bench.json_path, &text);
    tl_strbuf_clear(&text);
  }
  if (t->junit_path) {
    print_junit(t, &text);
    status = tl_status_join(status, write_report(t, t->junit_path, &text));
  }
  tl_strbuf_fini(&text);
  return status;
}
