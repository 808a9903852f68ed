// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-llc --emit=report: the page, with what ptxas says where it is found.
#include <string.h>

#include "harness/bench/bench_report.h"
#include "harness/data/file.h"
#include "harness/report/report.h"
#include "support/status.h"
#include "tools/tl_llc.h"

// Without ptxas the page has the plan's numbers.
static tl_status ask_ptxas(const tl_llc *l, const tl_compiled *compiled, tl_ptxas *ptxas, tl_ptxas_usage *usage,
                           bool *out_has_usage) {
  tl_strbuf ptx = {0}, cubin = {0};
  *out_has_usage = false;
  if (l->ptxas_path && strcmp(l->ptxas_path, "none") == 0) return TL_OK;
  tl_status status = tl_ptxas_find(l->ptxas_path, l->ptxas_timeout_s, ptxas);
  if (tl_status_code_of(status) == TL_STATUS_NOT_FOUND && !l->ptxas_path) {
    tl_status_free(status);
    return TL_OK;
  }
  if (!status) status = tl_backend_emit_ptx(compiled->backend, &ptx);
  if (!status) status = tl_ptxas_assemble(ptxas, compiled->target->name, tl_strbuf_view(&ptx), &cubin, usage);
  *out_has_usage = !status;
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&cubin);
  return status;
}

// The cases of this kernel among the results of --bench.
static tl_status read_points(const tl_llc *l, const char *kernel, tl_bench_report *bench, tl_arena *arena,
                             tl_report *report) {
  if (!l->bench) return TL_OK;
  tl_strbuf text = {0};
  tl_status status = tl_file_read(l->bench, TL_FILE_MAX_TEXT_BYTES, &text);
  if (!status) status = tl_status_annotate(tl_bench_read_json(tl_strbuf_view(&text), bench), "%s", l->bench);
  tl_strbuf_fini(&text);
  TL_TRY(status);
  tl_report_point *points = TL_NEW_ARRAY(arena, tl_report_point, bench->results.len + 1);
  for (size_t i = 0; i < bench->results.len; i++) {
    const tl_bench_result *r = &bench->results.items[i];
    if (strcmp(r->kernel, kernel) != 0 || !(r->cold.burst.median > 0)) continue;
    points[report->num_points++] = (tl_report_point){.label = tl_arena_printf(arena, "%s %s", r->bindings, r->target),
                                                     .flops = r->flops,
                                                     .bytes = r->bytes,
                                                     .seconds = r->cold.burst.median,
                                                     .peak_flops = bench->machine.flops[r->unit],
                                                     .peak_bytes = bench->machine.dram_bytes,
                                                     .roofline_seconds = r->roofline_s};
  }
  report->points = points;
  report->bench_device = bench->device ? bench->device : "";
  if (report->num_points) return TL_OK;
  return tl_status_make(TL_STATUS_NOT_FOUND, "%s has no times of '%s'", l->bench, kernel);
}

tl_status tl_llc_emit_report(tl_llc *l, const tl_compiled *compiled, tl_strbuf *out) {
  if (!compiled->tile)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "--emit=report is of one kernel: name one of the chain's by --kernel");
  tl_ptxas ptxas = {0};
  tl_ptxas_usage usage = {0};
  bool has_usage;
  tl_report report = {.module = compiled->tile, .sources = &l->cli.sources, .diags = &l->cli.diags};
  tl_strbuf ptx = {0};
  tl_bench_report bench = {0};
  tl_status status = ask_ptxas(l, compiled, &ptxas, &usage, &has_usage);
  if (!status) status = tl_backend_manifest(compiled->backend, &report.manifest);
  if (!status) status = read_points(l, report.manifest->kernels[0].name, &bench, &l->cli.arena, &report);
  if (!status) status = tl_backend_emit_ptx_lines(compiled->backend, &ptx);
  if (!status) {
    report.ptx = tl_strbuf_view(&ptx);
    report.usage = has_usage ? &usage : NULL;
    report.ptxas_version = ptxas.version;
    tl_report_write(&report, out);
  }
  // They stand in the page.
  if (!l->cli.diags.keep_remarks) tl_diags_drop_remarks(&l->cli.diags);
  tl_bench_report_fini(&bench);
  tl_strbuf_fini(&ptx);
  tl_ptxas_fini(&ptxas);
  return status;
}
