// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/compile.h"

#include "support/status.h"

tl_compile_request tl_compile_request_default(const tl_kernel_spec *kernel) {
  return (tl_compile_request){.kernel = kernel, .passes = {.pass_limit = -1}, .backend = {.opt_level = 3}};
}

const tl_target *tl_compile_target(const tl_compile_request *request, tl_diags *diags) {
  if (request->target) return request->target;
  tl_str name = request->kernel->target;
  if (name.len == 0) name = TL_STR("sm_80");
  const tl_target *target = tl_target_find(name);
  if (!target) {
    const char *reason = tl_target_refusal(name);
    tl_diag_report(diags, TL_DIAG_CHECK_VALUE, request->kernel->target_loc, "%s target `%.*s`%s%s",
                   reason ? "refused" : "unknown", TL_STR_ARG(name), reason ? ": " : "", reason ? reason : "");
  }
  return target;
}

// What a stage says that failed: errors in the list, or none, which would be a bug of that stage.
static tl_status failed(const tl_diags *diags, const char *stage) {
  if (tl_diags_has_errors(diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  return tl_status_make(TL_STATUS_INTERNAL, "%s failed without a diagnostic", stage);
}

tl_status tl_compile(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags, tl_compiled *out) {
  *out = (tl_compiled){0};
  out->target = tl_compile_target(request, diags);
  if (!out->target) return failed(diags, "choosing the target");
  out->tile = tl_instantiate(request->kernel, request->bindings, out->target, sources, diags);
  if (!out->tile || tl_diags_has_errors(diags)) return failed(diags, "instantiation");
  TL_TRY(tl_passes_run(out->tile, out->target, &request->passes, diags));
  if (tl_diags_has_errors(diags)) return failed(diags, "the pass pipeline");
  const tl_pass_options *passes = &request->passes;
  if (passes->stop_after || passes->passes || passes->pass_limit >= 0) return TL_OK;
  if (request->scheduled.run) request->scheduled.run(out->tile, request->scheduled.user);
  tl_backend_options backend = request->backend;
  if (backend.doc.len == 0) backend.doc = request->kernel->doc;
  TL_TRY(tl_backend_create(out->tile, out->target, &backend, diags, &out->backend));
  return tl_diags_has_errors(diags) ? failed(diags, "the backend") : TL_OK;
}

void tl_compiled_fini(tl_compiled *compiled) {
  if (compiled->backend) tl_backend_destroy(compiled->backend);
  if (compiled->tile) tl_module_destroy(compiled->tile);
  *compiled = (tl_compiled){0};
}
