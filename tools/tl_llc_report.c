// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-llc --emit=report: the page, with what ptxas says where it is found.
#include <string.h>

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

tl_status tl_llc_emit_report(tl_llc *l, const tl_compiled *compiled, tl_strbuf *out) {
  if (!compiled->tile)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "--emit=report is of one kernel: name one of the chain's by --kernel");
  tl_ptxas ptxas = {0};
  tl_ptxas_usage usage = {0};
  bool has_usage;
  tl_report report = {.module = compiled->tile, .sources = &l->cli.sources, .diags = &l->cli.diags};
  tl_strbuf ptx = {0};
  tl_status status = ask_ptxas(l, compiled, &ptxas, &usage, &has_usage);
  if (!status) status = tl_backend_manifest(compiled->backend, &report.manifest);
  if (!status) status = tl_backend_emit_ptx_lines(compiled->backend, &ptx);
  if (!status) {
    report.ptx = tl_strbuf_view(&ptx);
    report.usage = has_usage ? &usage : NULL;
    report.ptxas_version = ptxas.version;
    tl_report_write(&report, out);
  }
  // They stand in the page.
  if (!l->cli.diags.keep_remarks) tl_diags_drop_remarks(&l->cli.diags);
  tl_strbuf_fini(&ptx);
  tl_ptxas_fini(&ptxas);
  return status;
}
