// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results of benchmarks: one line a case, JSON, and comparison with an earlier run's JSON.
#ifndef TL_HARNESS_BENCH_REPORT_H
#define TL_HARNESS_BENCH_REPORT_H

#include "harness/bench/bench_roofline.h"
#include "harness/bench/bench_stats.h"
#include "support/strbuf.h"
#include "support/vec.h"

// Seconds for one launch.
typedef struct tl_bench_time {
  tl_bench_stats burst, sustained;
} tl_bench_time;

typedef struct tl_bench_result {
  char *kernel, *bindings, *target;  // Owned. "{M: 4096, N: 4096}"
  uint32_t number, total;            // case `number` of `total`
  double flops;                      // 0: the spec does not say
  double bytes;
  bool bytes_from_args;  // the spec does not say: every argument once, inout twice
  tl_bench_unit unit;
  double roofline_s;  // 0: unknown
  bool is_dram_bound;
  uint32_t num_sets;    // of arguments, in turn (cold)
  bool is_partly_cold;  // memory or their number did not allow twice the L2 cache
  bool used_graph;
  uint32_t batch_launches;
  int registers, local_bytes;
  tl_bench_time cold, warm;
  double copy_bytes;  // read and written by one device-to-device copy
  tl_bench_time copy;
  char *peer;       // Owned. "cuBLASLt 13.1.0"; NULL: none was asked for
  char *peer_note;  // Owned. Why there are no figures of the peer; or NULL
  tl_bench_time peer_cold, peer_warm;
  char *checked;  // Owned. "checked", or "not checked (why)"
} tl_bench_result;

typedef struct tl_bench_report {
  char *device;  // Owned.
  tl_bench_machine machine;
  TL_VEC(tl_bench_result) results;  // Owned.
} tl_bench_report;

void tl_bench_report_fini(tl_bench_report *report);
void tl_bench_result_fini(tl_bench_result *result);

// What the figures rest on: cache size and peaks, with where they come from.
void tl_bench_print_machine(const tl_bench_machine *machine, tl_strbuf *out);
// One line (without its end).
void tl_bench_print_result(const tl_bench_result *result, tl_strbuf *out);

// "12.3 / 12.5 us": burst and sustained; with `scale` that many over the time, in units of `unit`.
void tl_bench_print_pair(const tl_bench_time *time, double scale, const char *unit, tl_strbuf *out);
// Members of a JSON object with the comma behind them: `"key": 1.5, `.
void tl_bench_write_number(const char *key, double value, tl_strbuf *out);
void tl_bench_write_count(const char *key, long long value, tl_strbuf *out);
void tl_bench_write_bool(const char *key, bool value, tl_strbuf *out);
// `"key": {"burst": {…}, "sustained": {…}}, ` on a line of its own; nothing when nothing was measured.
void tl_bench_write_time(const char *key, const tl_bench_time *time, tl_strbuf *out);

void tl_bench_write_json(const tl_bench_report *report, tl_strbuf *out);
// Reads what tl_bench_write_json wrote: names, times, what bounds them, and the machine's peaks. INVALID_ARGUMENT says
// where it is wrong.
TL_MUST_USE tl_status tl_bench_read_json(tl_str text, tl_bench_report *out);

// One line a case of `now`: how many times faster than the same case (kernel and bindings) of `before`. Returns the
// least ratio of the cold figures; INFINITY when no case is in both.
double tl_bench_compare(const tl_bench_report *before, const tl_bench_report *now, tl_strbuf *out);

#endif
