// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tuning found, as text and as JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/tune.h"

enum { NUM_SHOWN = 10, FORMAT = 1 };

// ---- text

static void print_figures(const tl_bench_result *r, tl_strbuf *out) {
  tl_bench_print_pair(&r->cold, 0, " us", out);
  if (r->flops > 0) {
    tl_strbuf_append_c(out, ", ");
    tl_bench_print_pair(&r->cold, r->flops / 1e12, " TFLOP/s", out);
  } else if (r->bytes > 0) {
    tl_strbuf_append_c(out, ", ");
    tl_bench_print_pair(&r->cold, r->bytes / 1e9, r->bytes_from_args ? " GB/s of arguments" : " GB/s", out);
  }
  if (r->roofline_s > 0)
    tl_strbuf_appendf(out, ", %.1f%% of %s", 100 * r->roofline_s / r->cold.burst.median,
                      r->is_dram_bound ? "DRAM" : tl_bench_unit_name(r->unit));
  tl_strbuf_appendf(out, ", %d registers", r->registers);
  if (r->local_bytes > 0) tl_strbuf_appendf(out, ", %d bytes of local memory", r->local_bytes);
}

void tl_tune_print_row(const tl_tune_result *result, const tl_tune_row *row, tl_strbuf *out) {
  (void)result;
  tl_strbuf_appendf(out, "  %s  ", row->configuration);
  switch (row->outcome) {
    case TL_TUNE_TIMED:
      print_figures(&row->result, out);
      break;
    case TL_TUNE_RIGHT:
      tl_strbuf_append_c(out, "right");
      break;
    case TL_TUNE_COMPILED:
      tl_strbuf_append_c(out, "compiles");
      break;
    case TL_TUNE_REQUIRES:
      tl_strbuf_append_c(out, "excluded by `requires`");
      break;
    case TL_TUNE_LIMIT:
      tl_strbuf_append_c(out, "needs more than the target has");
      break;
    case TL_TUNE_REFUSED:
      tl_strbuf_append_c(out, "refused");
      break;
    case TL_TUNE_WRONG:
      tl_strbuf_append_c(out, "WRONG RESULTS");
      break;
    case TL_TUNE_FAILED:
      tl_strbuf_append_c(out, "failed");
      break;
    case TL_TUNE_OUTCOME_COUNT:
      break;
  }
  if (row->why) tl_strbuf_appendf(out, ": %s", row->why);
  bool is_usable = row->outcome == TL_TUNE_TIMED || row->outcome == TL_TUNE_COMPILED;
  if (is_usable && !row->is_checked) tl_strbuf_append_c(out, " (not checked)");
}

static double seconds_of(const tl_tune_row *row) {
  const tl_bench_time *cold = &row->result.cold;
  return cold->sustained.count ? cold->sustained.median : cold->burst.median;
}

// The timed rows with the most rounds first, the fastest of them first; then in the order of the lists.
static int faster_first(const void *a, const void *b) {
  const tl_tune_row *x = *(const tl_tune_row *const *)a, *y = *(const tl_tune_row *const *)b;
  double s = seconds_of(x), t = seconds_of(y);
  if (s != t) return s < t ? -1 : 1;
  return x < y ? -1 : x > y;
}

static void print_ranking(const tl_tune_result *result, tl_strbuf *out) {
  const tl_tune_row *written = &result->rows.items[0];
  double reference = written->is_written && written->outcome == TL_TUNE_TIMED ? seconds_of(written) : 0;
  const tl_tune_row **timed = tl_xcalloc(result->rows.len + 1, sizeof(*timed));
  size_t len = 0;
  for (size_t i = 0; i < result->rows.len; i++)
    if (result->rows.items[i].outcome == TL_TUNE_TIMED) timed[len++] = &result->rows.items[i];
  qsort(timed, len, sizeof(*timed), faster_first);
  for (size_t i = 0; i < len && i < NUM_SHOWN; i++) {
    tl_strbuf_appendf(out, "%3zu. ", i + 1);
    tl_bench_print_pair(&timed[i]->result.cold, 0, " us", out);
    if (reference > 0) tl_strbuf_appendf(out, ", x%.3f", reference / seconds_of(timed[i]));
    tl_strbuf_appendf(out, "  %s\n", timed[i]->configuration);
  }
  free(timed);
}

static void print_count(uint64_t count, const char *what, tl_strbuf *out) {
  if (count) tl_strbuf_appendf(out, ", %llu %s", (unsigned long long)count, what);
}

void tl_tune_print_result(const tl_tune_report *report, const tl_tune_result *result, tl_strbuf *out) {
  const uint64_t *counts = result->counts;
  tl_strbuf_appendf(out, "%s %u/%u %s: %llu configurations", result->kernel, result->number, result->total,
                    result->bindings, (unsigned long long)result->num_configurations);
  print_count(counts[TL_TUNE_TIMED], "timed", out);
  print_count(counts[TL_TUNE_RIGHT], "right", out);
  print_count(counts[TL_TUNE_COMPILED], "compiled", out);
  print_count(counts[TL_TUNE_WRONG], "with WRONG RESULTS", out);
  print_count(counts[TL_TUNE_REFUSED], "refused", out);
  print_count(counts[TL_TUNE_FAILED], "failed", out);
  print_count(result->num_excluded, "excluded by `where`", out);
  print_count(counts[TL_TUNE_REQUIRES], "excluded by `requires`", out);
  print_count(counts[TL_TUNE_LIMIT], "that need more than the target has", out);
  print_count(result->num_left_out, "left out by the budget", out);
  tl_strbuf_append_char(out, '\n');
  if (!report->is_timed) {
    tl_strbuf_append_c(out, "nothing was timed: there is no GPU\n");
    return;
  }
  print_ranking(result, out);
  if (result->best == UINT32_MAX) return;
  const tl_tune_row *best = &result->rows.items[result->best];
  tl_strbuf_appendf(out, "best: %s\n", best->is_written ? "the spec as written" : best->flags);
}

// ---- JSON

static void write_string(const char *key, const char *value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": ", key);
  tl_strbuf_append_json_c(out, value);
  tl_strbuf_append_c(out, ", ");
}

static void write_row(const tl_tune_row *row, tl_strbuf *out) {
  tl_strbuf_append_c(out, "      {");
  write_string("configuration", row->configuration, out);
  write_string("flags", row->flags, out);
  tl_bench_write_bool("as_written", row->is_written, out);
  tl_bench_write_bool("checked", row->is_checked, out);
  if (row->outcome == TL_TUNE_TIMED) {
    tl_bench_write_count("registers", row->result.registers, out);
    tl_bench_write_count("local_bytes", row->result.local_bytes, out);
    tl_bench_write_number("flops", row->result.flops, out);
    tl_bench_write_number("bytes", row->result.bytes, out);
    tl_bench_write_time("cold", &row->result.cold, out);
  }
  write_string("why", row->why, out);
  tl_strbuf_appendf(out, "\"outcome\": \"%s\"}", tl_tune_outcome_text(row->outcome));
}

static void write_result(const tl_tune_result *result, tl_strbuf *out) {
  tl_strbuf_append_c(out, "    {");
  write_string("kernel", result->kernel, out);
  write_string("bindings", result->bindings, out);
  tl_bench_write_count("case", result->number, out);
  tl_bench_write_count("of", result->total, out);
  tl_bench_write_count("configurations", result->num_configurations, out);
  tl_bench_write_count("excluded_by_where", result->num_excluded, out);
  tl_bench_write_count("left_out", result->num_left_out, out);
  for (int i = 0; i < TL_TUNE_OUTCOME_COUNT; i++)
    tl_bench_write_count(tl_tune_outcome_text((tl_tune_outcome)i), result->counts[i], out);
  write_string("best", result->best == UINT32_MAX ? NULL : result->rows.items[result->best].flags, out);
  tl_strbuf_append_c(out, "\n     \"rows\": [\n");
  for (size_t i = 0; i < result->rows.len; i++) {
    if (i) tl_strbuf_append_c(out, ",\n");
    write_row(&result->rows.items[i], out);
  }
  tl_strbuf_append_c(out, "]}");
}

void tl_tune_write_json(const tl_tune_report *report, tl_strbuf *out) {
  tl_strbuf_appendf(out, "{\"format\": %d, \"generator\": \"tl-run %s\", ", FORMAT, TL_VERSION);
  write_string("device", report->device, out);
  tl_strbuf_append_c(out, "\n  \"results\": [\n");
  for (size_t i = 0; i < report->results.len; i++) {
    if (i) tl_strbuf_append_c(out, ",\n");
    write_result(report->results.items[i], out);
  }
  tl_strbuf_append_c(out, "\n  ]}\n");
}
