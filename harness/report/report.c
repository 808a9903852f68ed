// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/report/report.h"

#include <string.h>

#include "harness/report/report_internal.h"

static const char style[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1500px;padding:0 "
    "1em;color:#222;background:#fff}"
    "h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .4em;border-bottom:1px solid #ccc}"
    "code,pre,.code{font:12.5px/1.5 ui-monospace,monospace}table{border-collapse:collapse}"
    "td,th{padding:.15em .7em;text-align:left;vertical-align:top}th{font-weight:600;background:#f2f2f2}"
    ".code td{padding:0 .5em;white-space:pre}.code .n{color:#999;text-align:right;user-select:none}"
    ".code .says{white-space:normal;color:#175;border-left:3px solid #9c9;padding-left:.6em}"
    ".code .warning{color:#a50;border-color:#fa6}.two{display:grid;grid-template-columns:1fr 1fr;gap:1em}"
    ".two>div{overflow:auto;max-height:75vh;border:1px solid #ddd}.n a{color:#36c;text-decoration:none}"
    "tr:target{background:#ffc}svg text{font:10px ui-monospace,monospace}figure{margin:.5em 0 1.2em}"
    "figcaption{color:#555}.wide{overflow-x:auto}";

static void write_expr(const tl_mexpr *expr, tl_strbuf *out) {
  tl_strbuf text = {0};
  tl_mexpr_print(expr, &text);
  report_text(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
}

static void write_row(const char *name, const char *unit, long long value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "<tr><th>%s</th><td>%lld%s</td></tr>\n", name, value, unit);
}

static void write_plan(const tl_report *report, tl_strbuf *out) {
  const tl_attr *plan = tl_op_attr(tl_module_kernel(report->module), TL_ATTR_PLAN);
  for (int32_t i = 0; plan && i < plan->v.dict.len; i++) {
    const tl_dict_entry *entry = &plan->v.dict.entries[i];
    tl_strbuf_append_c(out, "<tr><th>plan: ");
    report_text_c(entry->name, out);
    tl_strbuf_append_c(out, "</th><td>");
    if (entry->kind == TL_ATTRKIND_STR) report_text_c(entry->s, out);
    if (entry->kind == TL_ATTRKIND_INT) tl_strbuf_appendf(out, "%lld", (long long)entry->i);
    for (int32_t k = 0; entry->kind == TL_ATTRKIND_INTS && k < entry->len; k++)
      tl_strbuf_appendf(out, "%s%lld", k ? ", " : "", (long long)entry->items[k]);
    tl_strbuf_append_c(out, "</td></tr>\n");
  }
}

static void write_facts(const tl_report *report, const tl_manifest_kernel *kernel, tl_strbuf *out) {
  tl_strbuf_append_c(out, "<h2 id=\"resources\">Resources</h2>\n<table>\n<tr><th>grid</th><td>");
  for (int axis = 0; axis < 3; axis++) {
    if (axis) tl_strbuf_append_c(out, " × ");
    write_expr(kernel->grid[axis], out);
  }
  tl_strbuf_appendf(out, " blocks%s</td></tr>\n", kernel->persistent ? ", persistent" : "");
  write_row("block", " threads", kernel->block_threads, out);
  write_row("shared memory", " bytes", kernel->static_shared_bytes + kernel->dynamic_shared_bytes, out);
  if (report->usage) {
    tl_strbuf_appendf(out, "<tr><th>ptxas %s</th><td>", report->ptxas_version);
    tl_strbuf_appendf(out, "%d registers a thread, %d bytes of spills stored, %d loaded, %d bytes of stack",
                      report->usage->registers, report->usage->spill_store_bytes, report->usage->spill_load_bytes,
                      report->usage->stack_bytes);
    int most = report->usage->registers > 0 ? 65536 / ((report->usage->registers + 7) / 8 * 8 * 32) : 0;
    if (most) tl_strbuf_appendf(out, "; registers leave room for %d warps on a multiprocessor", most);
    tl_strbuf_append_c(out, "</td></tr>\n");
  } else {
    tl_strbuf_append_c(out, "<tr><th>ptxas</th><td>not found: registers are those of the plan</td></tr>\n");
  }
  write_plan(report, out);
  tl_strbuf_append_c(out, "</table>\n");
}

static void write_params(const tl_manifest_kernel *kernel, tl_strbuf *out) {
  static const char *const kinds[] = {"tensor", "scalar", "dynamic", "stride", "tensor map", "workspace"};
  static const char *const access[] = {"in", "out", "inout"};
  tl_strbuf_append_c(out,
                     "<h2 id=\"parameters\">Parameters</h2>\n<table><tr><th>name</th><th>kind</th><th>type</th>"
                     "<th>dims</th><th>aligned to</th></tr>\n");
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    bool is_tensor = param->kind == TL_MPARAM_TENSOR;
    tl_strbuf_append_c(out, "<tr><td>");
    report_text_c(param->name, out);
    tl_strbuf_appendf(out, "</td><td>%s%s%s</td><td>%s</td><td>", kinds[param->kind], is_tensor ? ", " : "",
                      is_tensor ? access[param->access] : "",
                      is_tensor || param->kind == TL_MPARAM_SCALAR ? tl_dtype_name(param->dtype) : "");
    for (int32_t d = 0; is_tensor && d < param->rank; d++) {
      if (d) tl_strbuf_append_c(out, " × ");
      write_expr(param->dims[d], out);
    }
    tl_strbuf_append_c(out, "</td><td>");
    if (is_tensor) tl_strbuf_appendf(out, "%lld bytes", (long long)param->align);
    tl_strbuf_append_c(out, "</td></tr>\n");
  }
  tl_strbuf_append_c(out, "</table>\n");
}

// The spec, and beside each line what was decided about it.
static void write_spec(const tl_report *report, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(report->sources, 1);
  tl_strbuf_append_c(out, "<h2 id=\"spec\">Spec and decisions</h2>\n<div class=\"wide\"><table class=\"code\">\n");
  for (uint32_t line = 1; source && line <= source->num_lines; line++) {
    tl_strbuf_appendf(out, "<tr id=\"s%u\"><td class=\"n\">%u</td><td>", line, line);
    report_text(tl_source_line(source, line), out);
    tl_strbuf_append_c(out, "</td><td>");
    for (size_t i = 0; i < report->diags->list.len; i++) {
      const tl_diag *diag = report->diags->list.items[i];
      if (report_line(report, diag->loc) != line) continue;
      tl_strbuf_appendf(out, "<div class=\"says%s\">", diag->severity == TL_SEVERITY_REMARK ? "" : " warning");
      report_text_c(diag->text, out);
      tl_strbuf_append_c(out, "</div>");
    }
    tl_strbuf_append_c(out, "</td></tr>\n");
  }
  tl_strbuf_append_c(out, "</table></div>\n");
}

void tl_report_write(const tl_report *report, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = &report->manifest->kernels[0];
  tl_strbuf_append_c(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
  report_text_c(kernel->name, out);
  tl_strbuf_appendf(out, " for %s</title><style>%s</style></head><body>\n<h1>", report->manifest->target, style);
  report_text_c(kernel->name, out);
  tl_strbuf_appendf(out, " for %s</h1>\n<p>", report->manifest->target);
  report_text_c(kernel->doc ? kernel->doc : "", out);
  tl_strbuf_appendf(out,
                    "</p>\n<p>%s. <a href=\"#spec\">Spec</a> · <a href=\"#resources\">resources</a> · "
                    "<a href=\"#memory\">shared memory</a> · <a href=\"#rings\">pipeline</a> · "
                    "<a href=\"#layouts\">layouts</a> · <a href=\"#code\">code</a></p>\n",
                    report->manifest->generator);
  write_spec(report, out);
  write_facts(report, kernel, out);
  write_params(kernel, out);
  report_roofline(report, out);
  report_memory(report, out);
  report_rings(report, out);
  report_layouts(report, out);
  report_code(report, out);
  tl_strbuf_append_c(out, "</body></html>\n");
}
