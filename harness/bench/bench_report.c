// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tl_bench_result_fini(tl_bench_result *result) {
  free(result->kernel);
  free(result->bindings);
  free(result->target);
  free(result->peer);
  free(result->peer_note);
  free(result->checked);
  *result = (tl_bench_result){0};
}

void tl_bench_report_fini(tl_bench_report *report) {
  for (size_t i = 0; i < report->results.len; i++) tl_bench_result_fini(&report->results.items[i]);
  tl_vec_fini(&report->results);
  free(report->device);
  *report = (tl_bench_report){0};
}

// ---- text

void tl_bench_print_machine(const tl_bench_machine *machine, tl_strbuf *out) {
  tl_strbuf_appendf(out, "L2 cache %.0f MiB; peaks:", (double)machine->l2_bytes / (1 << 20));
  if (machine->peak) {
    tl_strbuf_appendf(out, " f16 mma %.1f TFLOP/s (%d a clock and SM, %d SMs, %d MHz), f32 %.1f TFLOP/s (%d, %d MHz),",
                      machine->flops[TL_BENCH_F16] / 1e12, machine->peak->f16, machine->num_sms,
                      machine->tensor_clock_mhz, machine->flops[TL_BENCH_F32] / 1e12, machine->peak->f32,
                      machine->clock_mhz);
  } else {
    tl_strbuf_append_c(out, " arithmetic unknown for this GPU,");
  }
  if (machine->dram_bytes > 0) {
    tl_strbuf_appendf(out, " DRAM %.0f GB/s (memory clock x bus width)", machine->dram_bytes / 1e9);
  } else {
    tl_strbuf_append_c(out, " DRAM unknown");
  }
}

// A number with about four digits.
static void print_number(double value, tl_strbuf *out) {
  int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
  tl_strbuf_appendf(out, "%.*f", decimals, value);
}

// "312.4 / 318.0 us": burst and sustained, `scale` divided by the time, or the time itself times 1e6 where it is 0.
void tl_bench_print_pair(const tl_bench_time *time, double scale, const char *unit, tl_strbuf *out) {
  const tl_bench_stats *stats[] = {&time->burst, &time->sustained};
  for (int i = 0; i < 2; i++) {
    if (stats[i]->count == 0) continue;
    if (i > 0) tl_strbuf_append_c(out, " / ");
    print_number(scale > 0 ? scale / stats[i]->median : stats[i]->median * 1e6, out);
  }
  tl_strbuf_appendf(out, "%s", unit);
}

static void print_work(const tl_bench_result *r, tl_strbuf *out) {
  if (r->flops > 0) {
    tl_strbuf_append_c(out, ", ");
    tl_bench_print_pair(&r->cold, r->flops / 1e12, " TFLOP/s", out);
  }
  if (r->bytes > 0) {
    tl_strbuf_append_c(out, ", ");
    tl_bench_print_pair(&r->cold, r->bytes / 1e9, r->bytes_from_args ? " GB/s of arguments" : " GB/s", out);
  }
  if (r->roofline_s > 0) {
    tl_strbuf_append_c(out, ", ");
    tl_strbuf_appendf(out, "%.1f", 100 * r->roofline_s / r->cold.burst.median);
    if (r->cold.sustained.count) tl_strbuf_appendf(out, " / %.1f", 100 * r->roofline_s / r->cold.sustained.median);
    tl_strbuf_appendf(out, "%% of %s", r->is_dram_bound ? "DRAM" : tl_bench_unit_name(r->unit));
  }
}

static void print_peer(const tl_bench_result *r, tl_strbuf *out) {
  if (!r->peer) return;
  tl_strbuf_appendf(out, "; %s", r->peer);
  if (r->peer_note) {
    tl_strbuf_appendf(out, ": %s", r->peer_note);
    return;
  }
  tl_strbuf_append_char(out, ' ');
  tl_bench_print_pair(&r->peer_cold, 0, " us", out);
  if (r->peer_cold.burst.count && r->cold.burst.median > 0) {
    tl_strbuf_appendf(out, ", x%.3f", r->peer_cold.burst.median / r->cold.burst.median);
  }
  if (r->peer_cold.sustained.count && r->cold.sustained.median > 0) {
    tl_strbuf_appendf(out, " / x%.3f", r->peer_cold.sustained.median / r->cold.sustained.median);
  }
  if (r->peer_warm.burst.count && r->warm.burst.median > 0) {
    tl_strbuf_appendf(out, " (warm x%.3f)", r->peer_warm.burst.median / r->warm.burst.median);
  }
}

void tl_bench_print_result(const tl_bench_result *r, tl_strbuf *out) {
  tl_strbuf_appendf(out, "%s %u/%u %s %s: %s ", r->kernel, r->number, r->total, r->bindings, r->target,
                    r->is_partly_cold ? "partly cold" : "cold");
  tl_bench_print_pair(&r->cold, 0, " us", out);
  print_work(r, out);
  tl_strbuf_appendf(out, ", spread %.1f%%; warm ", 100 * tl_bench_spread(r->cold.burst));
  tl_bench_print_pair(&r->warm, 0, " us", out);
  if (r->copy.burst.count) {
    tl_strbuf_append_c(out, "; copy ");
    tl_bench_print_pair(&r->copy, r->copy_bytes / 1e9, " GB/s", out);
  }
  print_peer(r, out);
  if (r->local_bytes > 0) tl_strbuf_appendf(out, "; %d bytes of local memory", r->local_bytes);
  if (!r->used_graph) tl_strbuf_append_c(out, "; without graphs");
  if (r->checked) tl_strbuf_appendf(out, "; %s", r->checked);
}

// ---- comparison

static const tl_bench_result *find(const tl_bench_report *report, const tl_bench_result *wanted) {
  for (size_t i = 0; i < report->results.len; i++) {
    const tl_bench_result *r = &report->results.items[i];
    if (strcmp(r->kernel, wanted->kernel) == 0 && strcmp(r->bindings, wanted->bindings) == 0) return r;
  }
  return NULL;
}

// Appends "x1.042" and keeps the least; nothing when either was not measured.
static void print_ratio(const char *what, const tl_bench_stats *before, const tl_bench_stats *now, double *least,
                        tl_strbuf *out) {
  if (before->count == 0 || now->count == 0 || !(now->median > 0)) return;
  double ratio = before->median / now->median;
  tl_strbuf_appendf(out, " %s x%.3f", what, ratio);
  if (least && ratio < *least) *least = ratio;
}

double tl_bench_compare(const tl_bench_report *before, const tl_bench_report *now, tl_strbuf *out) {
  double least = INFINITY;
  if (before->device && now->device && strcmp(before->device, now->device) != 0) {
    tl_strbuf_appendf(out, "compared with another device: %s\n", before->device);
  }
  for (size_t i = 0; i < now->results.len; i++) {
    const tl_bench_result *r = &now->results.items[i], *old = find(before, r);
    tl_strbuf_appendf(out, "%s %s:", r->kernel, r->bindings);
    if (!old) {
      tl_strbuf_append_c(out, " not in the earlier run\n");
      continue;
    }
    print_ratio("cold", &old->cold.burst, &r->cold.burst, &least, out);
    print_ratio("/", &old->cold.sustained, &r->cold.sustained, &least, out);
    print_ratio("warm", &old->warm.burst, &r->warm.burst, NULL, out);
    print_ratio("/", &old->warm.sustained, &r->warm.sustained, NULL, out);
    tl_strbuf_appendf(out, " (spread %.1f%%, then %.1f%%)", 100 * tl_bench_spread(old->cold.burst),
                      100 * tl_bench_spread(r->cold.burst));
    if (strcmp(old->target, r->target) != 0) tl_strbuf_appendf(out, ", was for %s", old->target);
    tl_strbuf_append_char(out, '\n');
  }
  return least;
}
