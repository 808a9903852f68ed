// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Benchmark results as JSON. Times are seconds, rates are per second.
#include <jansson.h>
#include <string.h>

#include "harness/bench/bench_report.h"
#include "support/status.h"

enum { FORMAT = 1 };

// ---- writing

static void write_string(const char *key, const char *value, tl_strbuf *out) {
  if (!value) return;
  tl_strbuf_appendf(out, "\"%s\": ", key);
  tl_strbuf_append_json(out, tl_str_from(value));
  tl_strbuf_append_c(out, ", ");
}

void tl_bench_write_number(const char *key, double value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": ", key);
  tl_strbuf_append_double(out, value);
  tl_strbuf_append_c(out, ", ");
}

void tl_bench_write_count(const char *key, long long value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": %lld, ", key, value);
}

void tl_bench_write_bool(const char *key, bool value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": %s, ", key, value ? "true" : "false");
}

static void write_stats(const char *key, const tl_bench_stats *stats, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": {\"count\": %u, \"median\": ", key, stats->count);
  tl_strbuf_append_double(out, stats->median);
  tl_strbuf_append_c(out, ", \"least\": ");
  tl_strbuf_append_double(out, stats->least);
  tl_strbuf_append_c(out, ", \"most\": ");
  tl_strbuf_append_double(out, stats->most);
  tl_strbuf_append_char(out, '}');
}

void tl_bench_write_time(const char *key, const tl_bench_time *time, tl_strbuf *out) {
  if (time->burst.count == 0 && time->sustained.count == 0) return;
  tl_strbuf_appendf(out, "\n     \"%s\": {", key);
  write_stats("burst", &time->burst, out);
  tl_strbuf_append_c(out, ", ");
  write_stats("sustained", &time->sustained, out);
  tl_strbuf_append_c(out, "}, ");
}

static void write_result(const tl_bench_result *r, tl_strbuf *out) {
  tl_strbuf_append_c(out, "    {");
  write_string("kernel", r->kernel, out);
  write_string("bindings", r->bindings, out);
  write_string("target", r->target, out);
  tl_bench_write_count("case", r->number, out);
  tl_bench_write_count("of", r->total, out);
  tl_bench_write_number("flops", r->flops, out);
  tl_bench_write_number("bytes", r->bytes, out);
  tl_bench_write_bool("bytes_from_arguments", r->bytes_from_args, out);
  write_string("unit", tl_bench_unit_name(r->unit), out);
  tl_bench_write_number("roofline", r->roofline_s, out);
  tl_bench_write_bool("dram_bound", r->is_dram_bound, out);
  tl_bench_write_count("argument_sets", r->num_sets, out);
  tl_bench_write_bool("partly_cold", r->is_partly_cold, out);
  tl_bench_write_bool("graph", r->used_graph, out);
  tl_bench_write_count("batch_launches", r->batch_launches, out);
  tl_bench_write_count("registers", r->registers, out);
  tl_bench_write_count("local_bytes", r->local_bytes, out);
  tl_bench_write_time("cold", &r->cold, out);
  tl_bench_write_time("warm", &r->warm, out);
  tl_bench_write_number("copy_bytes", r->copy_bytes, out);
  tl_bench_write_time("copy", &r->copy, out);
  write_string("peer", r->peer, out);
  write_string("peer_note", r->peer_note, out);
  tl_bench_write_time("peer_cold", &r->peer_cold, out);
  tl_bench_write_time("peer_warm", &r->peer_warm, out);
  tl_strbuf_append_c(out, "\"checked\": ");
  tl_strbuf_append_json(out, tl_str_from(r->checked ? r->checked : ""));
  tl_strbuf_append_char(out, '}');
}

void tl_bench_write_json(const tl_bench_report *report, tl_strbuf *out) {
  const tl_bench_machine *machine = &report->machine;
  tl_strbuf_appendf(out, "{\"format\": %d, \"generator\": \"tl-run %s\", ", FORMAT, TL_VERSION);
  write_string("device", report->device, out);
  tl_strbuf_append_c(out, "\n  \"machine\": {");
  tl_bench_write_count("sms", machine->num_sms, out);
  tl_bench_write_count("clock_mhz", machine->clock_mhz, out);
  tl_bench_write_count("tensor_clock_mhz", machine->tensor_clock_mhz, out);
  tl_bench_write_count("l2_bytes", machine->l2_bytes, out);
  for (int i = 0; i < TL_BENCH_UNIT_COUNT; i++) {
    tl_strbuf name;
    tl_strbuf_init(&name);
    tl_strbuf_appendf(&name, "flops %s", tl_bench_unit_name((tl_bench_unit)i));
    tl_bench_write_number(tl_strbuf_c(&name), machine->flops[i], out);
    tl_strbuf_fini(&name);
  }
  tl_strbuf_append_c(out, "\"dram_bytes\": ");
  tl_strbuf_append_double(out, machine->dram_bytes);
  tl_strbuf_append_c(out, "},\n  \"results\": [\n");
  for (size_t i = 0; i < report->results.len; i++) {
    if (i > 0) tl_strbuf_append_c(out, ",\n");
    write_result(&report->results.items[i], out);
  }
  tl_strbuf_append_c(out, "\n  ]}\n");
}

// ---- reading

static char *read_string(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? strdup(text) : NULL;
}

static void read_stats(const json_t *object, tl_bench_stats *out) {
  out->count = (uint32_t)json_integer_value(json_object_get(object, "count"));
  out->median = json_number_value(json_object_get(object, "median"));
  out->least = json_number_value(json_object_get(object, "least"));
  out->most = json_number_value(json_object_get(object, "most"));
}

static void read_time(const json_t *object, const char *key, tl_bench_time *out) {
  const json_t *time = json_object_get(object, key);
  read_stats(json_object_get(time, "burst"), &out->burst);
  read_stats(json_object_get(time, "sustained"), &out->sustained);
}

static tl_bench_unit read_unit(const json_t *object) {
  const char *name = json_string_value(json_object_get(object, "unit"));
  for (int i = 0; name && i < TL_BENCH_UNIT_COUNT; i++)
    if (strcmp(name, tl_bench_unit_name((tl_bench_unit)i)) == 0) return (tl_bench_unit)i;
  return TL_BENCH_F32;
}

static void read_machine(const json_t *object, tl_bench_machine *out) {
  for (int i = 0; i < TL_BENCH_UNIT_COUNT; i++) {
    char key[64];
    snprintf(key, sizeof key, "flops %s", tl_bench_unit_name((tl_bench_unit)i));
    out->flops[i] = json_number_value(json_object_get(object, key));
  }
  out->dram_bytes = json_number_value(json_object_get(object, "dram_bytes"));
}

static tl_status read_result(const json_t *object, size_t index, tl_bench_report *out) {
  tl_bench_result r = {.kernel = read_string(object, "kernel"),
                       .bindings = read_string(object, "bindings"),
                       .target = read_string(object, "target"),
                       .peer = read_string(object, "peer"),
                       .peer_note = read_string(object, "peer_note"),
                       .checked = read_string(object, "checked")};
  r.flops = json_number_value(json_object_get(object, "flops"));
  r.bytes = json_number_value(json_object_get(object, "bytes"));
  r.roofline_s = json_number_value(json_object_get(object, "roofline"));
  r.unit = read_unit(object);
  read_time(object, "cold", &r.cold);
  read_time(object, "warm", &r.warm);
  read_time(object, "peer_cold", &r.peer_cold);
  read_time(object, "peer_warm", &r.peer_warm);
  bool is_whole = r.kernel && r.bindings && r.target;
  if (is_whole) {
    tl_vec_push(&out->results, r);
    return TL_OK;
  }
  tl_bench_result_fini(&r);
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "result %zu has no kernel, bindings or target", index + 1);
}

tl_status tl_bench_read_json(tl_str text, tl_bench_report *out) {
  *out = (tl_bench_report){0};
  json_error_t error;
  json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "line %d: %s", error.line, error.text);
  }
  tl_status status = TL_OK;
  const json_t *results = json_object_get(root, "results");
  if (json_integer_value(json_object_get(root, "format")) != FORMAT || !json_is_array(results)) {
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "these are no benchmark results of format %d", FORMAT);
  }
  out->device = read_string(root, "device");
  read_machine(json_object_get(root, "machine"), &out->machine);
  for (size_t i = 0; !status && i < json_array_size(results); i++) {
    status = read_result(json_array_get(results, i), i, out);
  }
  json_decref(root);
  if (status) tl_bench_report_fini(out);
  return status;
}
