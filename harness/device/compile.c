// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/compile.h"

#include <stdlib.h>
#include <string.h>

#include "harness/device/choose_params.h"
#include "harness/device/ptxas.h"
#include "harness/device/require.h"
#include "ir/text/text.h"
#include "passes/tile/assume_aligned.h"
#include "support/status.h"

tl_compile_request tl_compile_request_default(const tl_kernel_spec *kernel) {
  return (tl_compile_request){.kernel = kernel, .passes = {.pass_limit = -1}, .backend = {.opt_level = 3}};
}

// The document that says the target: a kernel or chain itself, else the first step that does. NULL: none.
static const tl_kernel_spec *with_target(const tl_kernel_spec *kernel) {
  if (kernel->target.len) return kernel;
  const tl_kernel_spec *found = NULL;
  for (uint32_t i = 0; !found && kernel->chain && i < kernel->chain->num_steps; i++)
    found = kernel->chain->steps[i].kernel ? with_target(kernel->chain->steps[i].kernel) : NULL;
  return found;
}

// The target of a request: its own, else the kernel's, else sm_80. NULL (and a diagnostic) when the kernel's is
// unknown.
static const tl_target *compile_target(const tl_compile_request *request, tl_diags *diags) {
  if (request->target) return request->target;
  const tl_kernel_spec *kernel = with_target(request->kernel);
  tl_str name = kernel ? kernel->target : TL_STR("sm_80");
  const tl_target *target = tl_target_find(name);
  if (!target) {
    const char *reason = tl_target_refusal(name);
    tl_diag_report(diags, TL_DIAG_CHECK_VALUE, kernel->target_loc, "%s target `%.*s`%s%s",
                   reason ? "refused" : "unknown", TL_STR_ARG(name), reason ? ": " : "", reason ? reason : "");
  }
  return target;
}

// What a stage says that failed: errors in the list, or none, which would be a bug of that stage.
static tl_status failed(const tl_diags *diags, const char *stage) {
  if (tl_diags_has_errors(diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  return tl_status_make(TL_STATUS_INTERNAL, "%s failed without a diagnostic", stage);
}

static bool stops_early(const tl_pass_options *passes) {
  return passes->stop_after || passes->passes || passes->pass_limit >= 0;
}

// The kernel through all passes, and what the request demands of it.
static tl_status run_module(const tl_compile_request *request, const tl_pass_options *passes, const tl_target *target,
                            tl_module *module, tl_diags *diags) {
  tl_requirements requirements;
  tl_requirements_collect(module, request->required, &requirements);
  tl_status status = tl_passes_run(module, target, passes, diags);
  bool is_unproven = passes->is_unproven && *passes->is_unproven;
  if (!status && !is_unproven && !tl_diags_has_errors(diags))
    tl_requirements_report(&requirements, module, target, diags);
  tl_requirements_fini(&requirements);
  return status;
}

// Without the copy engine there is an order of statements that can be proven whatever their number. False: the kernel
// needs the engine, or is too large all the same.
static bool compile_simpler(const tl_compile_request *request, tl_bindings bindings, const tl_diags *settings,
                            tl_compiled *out) {
  tl_diags diags;
  tl_diags_init_like(&diags, settings);
  tl_module *module = tl_instantiate(request->kernel, bindings, out->target, out->sources, &diags);
  tl_pass_options passes = request->passes;
  passes.no_engine = true;
  passes.log = NULL;
  tl_status status = module ? run_module(request, &passes, out->target, module, &diags) : TL_OK;
  bool is_right = module && !status && !tl_diags_has_errors(&diags);
  if (is_right) {
    tl_module_destroy(out->tile);
    out->tile = module;
  } else if (module) {
    tl_module_destroy(module);
  }
  tl_status_free(status);
  tl_diags_fini(&diags);
  return is_right;
}

static tl_status run_passes(const tl_compile_request *request, tl_bindings bindings, tl_diags *diags,
                            tl_compiled *out) {
  bool is_unproven = false;
  tl_pass_options passes = request->passes;
  passes.is_unproven = &is_unproven;
  TL_TRY(run_module(request, &passes, out->target, out->tile, diags));
  if (!is_unproven || tl_diags_has_errors(diags)) return TL_OK;
  if (compile_simpler(request, bindings, diags, out)) {
    tl_diag_report(diags, TL_DIAG_SERIALISED, request->kernel->loc,
                   "no copy goes by TMA: with it this kernel's loops are too many and too deep to show that no two of "
                   "its threads race");
    return TL_OK;
  }
  // Says what is wrong with the first one.
  passes = (tl_pass_options){.passes = "verify-barriers", .pass_limit = -1};
  passes.explore_limit = request->passes.explore_limit;
  return tl_passes_run(out->tile, out->target, &passes, diags);
}

// ---- versions

// The tile IR of the aligned version after all passes. NULL: the kernel promises everything, or a pass refuses it.
static tl_module *make_aligned(const tl_compile_request *request, tl_bindings bindings, const tl_diags *settings,
                               const tl_compiled *out) {
  tl_diags diags;
  tl_diags_init_like(&diags, settings);
  tl_module *module = tl_instantiate(request->kernel, bindings, out->target, out->sources, &diags);
  tl_pass_options passes = {.pass_limit = -1, .explore_limit = request->passes.explore_limit};
  bool is_unproven = false;
  passes.is_unproven = &is_unproven;
  bool is_right = module && tl_assume_aligned(module);
  tl_status status = is_right ? tl_passes_run(module, out->target, &passes, &diags) : TL_OK;
  is_right = is_right && !status && !is_unproven && !tl_diags_has_errors(&diags);
  if (module && (!is_right || tl_is_same_version(out->tile, module))) {
    tl_module_destroy(module);
    module = NULL;
  }
  tl_status_free(status);
  tl_diags_fini(&diags);
  return is_right ? module : NULL;
}

// What the arguments must be like for the aligned version.
static void remark_version(const tl_compile_request *request, const tl_manifest_kernel *plain,
                           const tl_manifest_kernel *aligned, tl_diags *diags) {
  tl_strbuf text = {0};
  for (uint32_t i = 0; i < aligned->num_params; i++) {
    const tl_manifest_param *param = &aligned->params[i], *had = NULL;
    for (uint32_t p = 0; p < plain->num_params; p++)
      if (strcmp(plain->params[p].name, param->name) == 0) had = &plain->params[p];
    bool is_dynamic = param->kind == TL_MPARAM_DYNAMIC && (!had || param->divisor != had->divisor);
    bool is_tensor = param->kind == TL_MPARAM_TENSOR && had && param->align != had->align;
    if (is_dynamic || is_tensor) tl_strbuf_append_c(&text, text.len ? ", " : "");
    if (is_dynamic) tl_strbuf_appendf(&text, "%s %% %lld == 0", param->name, (long long)param->divisor);
    if (is_tensor) tl_strbuf_appendf(&text, "%s is aligned to %lld bytes", param->name, (long long)param->align);
  }
  tl_diag_report(diags, TL_DIAG_REMARK_VERSION, request->kernel->loc,
                 "a second version, '%s', is launched where %s; remarks are about the other one", aligned->name,
                 tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// Makes the version and one backend of both.
static tl_status add_version(const tl_compile_request *request, const tl_backend_options *options, tl_bindings bindings,
                             tl_diags *diags, tl_compiled *out) {
  tl_module *module = make_aligned(request, bindings, diags, out);
  if (!module) return TL_OK;
  out->parts = tl_xcalloc(1, sizeof *out->parts);
  out->num_parts = 1;
  out->parts[0] = (tl_compiled){.tile = module, .target = out->target, .sources = out->sources};
  tl_diags own;
  tl_diags_init_like(&own, diags);
  tl_status status = tl_backend_create(module, out->target, options, &own, &out->parts[0].backend);
  bool is_right = !tl_diags_has_errors(&own);
  tl_diags_fini(&own);
  TL_TRY(status);
  if (!is_right) {
    tl_compiled_fini(&out->parts[0]);
    out->num_parts = 0;
    return TL_OK;
  }
  const tl_manifest *plain, *aligned;
  TL_TRY(tl_backend_manifest(out->backend, &plain));
  TL_TRY(tl_backend_manifest(out->parts[0].backend, &aligned));
  remark_version(request, &plain->kernels[0], &aligned->kernels[0], diags);
  out->alone = out->backend;
  tl_backend *both[] = {out->alone, out->parts[0].backend};
  return tl_backend_link_versions(both, out->target, options, &out->backend);
}

// The backend, or backends, of what the passes left.
static tl_status finish_kernel(const tl_compile_request *request, tl_bindings bindings, tl_diags *diags,
                               tl_compiled *out) {
  if (tl_diags_has_errors(diags)) return failed(diags, "the pass pipeline");
  if (stops_early(&request->passes)) return TL_OK;
  if (request->scheduled.run) request->scheduled.run(out->tile, request->scheduled.user);
  tl_backend_options backend = request->backend;
  if (backend.doc.len == 0) backend.doc = request->kernel->doc;
  TL_TRY(tl_backend_create(out->tile, out->target, &backend, diags, &out->backend));
  if (tl_diags_has_errors(diags)) return failed(diags, "the backend");
  // What looks at a scheduled module has one.
  return request->scheduled.run ? TL_OK : add_version(request, &backend, bindings, diags, out);
}

// A kernel, for `out->target`.
static tl_status compile_kernel(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags,
                                tl_compiled *out) {
  out->sources = sources;
  tl_arena arena;
  tl_arena_init(&arena);
  tl_bindings bindings = tl_choose_params(&arena, request->kernel, request->bindings, out->target, sources, diags);
  out->tile = tl_instantiate(request->kernel, bindings, out->target, sources, diags);
  bool is_made = out->tile && !tl_diags_has_errors(diags);
  tl_status status = is_made ? run_passes(request, bindings, diags, out) : failed(diags, "instantiation");
  if (!status) status = finish_kernel(request, bindings, diags, out);
  tl_arena_fini(&arena);
  return status;
}

// What a step gives dynamic params that its kernel turned out not to need is left out.
static tl_status drop_unneeded(tl_chain_plan *plan, const tl_compiled *parts) {
  for (uint32_t s = 0; s < plan->chain.num_steps; s++) {
    tl_manifest_step *step = &plan->chain.steps[s];
    const tl_manifest *manifest;
    TL_TRY(tl_backend_manifest(parts[step->kernel].backend, &manifest));
    const tl_manifest_kernel *kernel = &manifest->kernels[0];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < step->num_given; i++) {
      bool is_needed = false;
      for (uint32_t p = 0; p < kernel->num_params; p++)
        is_needed = is_needed || strcmp(kernel->params[p].name, step->given[i].name) == 0;
      if (is_needed) step->given[kept++] = step->given[i];
    }
    step->num_given = kept;
  }
  return TL_OK;
}

static tl_status link_chain(const tl_compile_request *request, tl_chain_plan *plan, tl_compiled *out) {
  TL_TRY(drop_unneeded(plan, out->parts));
  tl_backend **backends = tl_xcalloc(out->num_parts, sizeof *backends);
  for (uint32_t i = 0; i < out->num_parts; i++) backends[i] = out->parts[i].backend;
  tl_status status =
      tl_backend_link(backends, out->num_parts, out->target, &request->backend, &plan->chain, &out->backend);
  free(backends);
  return status;
}

static tl_status compile_chain(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags,
                               tl_arena *arena, tl_compiled *out) {
  tl_chain_plan plan;
  if (!tl_chain_plan_create(arena, request->kernel, request->bindings, diags, &plan))
    return failed(diags, "planning the chain");
  if (plan.num_instances == 0) {
    tl_diag_report(diags, TL_DIAG_CHAIN_STEP, request->kernel->loc, "the chain has no steps");
    return failed(diags, "planning the chain");
  }
  out->parts = tl_xcalloc(plan.num_instances, sizeof *out->parts);
  for (uint32_t i = 0; i < plan.num_instances; i++) {
    tl_compile_request one = *request;
    one.kernel = plan.instances[i].kernel;
    one.bindings = plan.instances[i].bindings;
    out->parts[i].target = out->target;
    tl_status status = compile_kernel(&one, sources, diags, &out->parts[i]);
    out->num_parts++;
    if (!status) continue;
    // For the report of what went wrong.
    out->tile = out->parts[i].tile;
    out->parts[i].tile = NULL;
    return status;
  }
  return stops_early(&request->passes) ? TL_OK : link_chain(request, &plan, out);
}

// Of a file with several kernels the one that spills most.
static tl_status require_no_spill(const tl_compile_request *request, const tl_compiled *compiled, tl_diags *diags) {
  tl_ptxas ptxas;
  tl_ptxas_usage used;
  tl_strbuf ptx, cubin;
  TL_TRY(tl_ptxas_find(request->ptxas_path, request->ptxas_timeout_s, &ptxas));
  tl_strbuf_init(&ptx);
  tl_strbuf_init(&cubin);
  tl_status status = tl_backend_emit_ptx(compiled->backend, &ptx);
  if (!status) status = tl_ptxas_assemble(&ptxas, compiled->target->name, tl_strbuf_view(&ptx), &cubin, &used);
  if (!status && used.spill_store_bytes + used.spill_load_bytes > 0) {
    tl_diag_report(diags, TL_DIAG_REQUIRED, request->kernel->loc,
                   "registers are spilled (%d bytes stored, %d loaded; ptxas %s), as --require=no-spill forbids",
                   used.spill_store_bytes, used.spill_load_bytes, ptxas.version);
    status = tl_status_make(TL_STATUS_DIAGNOSTICS, "registers are spilled");
  }
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&cubin);
  tl_ptxas_fini(&ptxas);
  return status;
}

static tl_status compile(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags,
                         tl_compiled *out) {
  if (!request->kernel->chain) return compile_kernel(request, sources, diags, out);
  tl_arena arena;
  tl_arena_init(&arena);
  tl_status status = compile_chain(request, sources, diags, &arena, out);
  tl_arena_fini(&arena);
  return status;
}

// As a shell takes them.
static char *describe_request(const tl_compile_request *request) {
  tl_strbuf text = {0};
  for (uint32_t i = 0; i < request->bindings.len; i++) {
    tl_strbuf_appendf(&text, " -D '%.*s=", TL_STR_ARG(request->bindings.items[i].name));
    tl_expr_print(request->bindings.items[i].value, &text);
    tl_strbuf_append_char(&text, '\'');
  }
  tl_strbuf_appendf(&text, " --kernel=%.*s", TL_STR_ARG(request->kernel->name));
  char *out = strdup(tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return out;
}

tl_status tl_compile(const tl_compile_request *request, const tl_sources *sources, tl_diags *diags, tl_compiled *out) {
  *out = (tl_compiled){0};
  out->target = compile_target(request, diags);
  if (!out->target) return failed(diags, "choosing the target");
  // Remarks say why something is missing.
  bool wants_remarks = diags->keep_remarks;
  diags->keep_remarks |= request->required != 0;
  tl_status status = compile(request, sources, diags, out);
  if (!status && (request->required & TL_REQUIRE_NO_SPILL) && out->backend)
    status = require_no_spill(request, out, diags);
  if (!wants_remarks && request->required) tl_diags_drop_remarks(diags);
  diags->keep_remarks = wants_remarks;
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) out->defines = describe_request(request);
  return status;
}

void tl_compiled_print_tile(const tl_compiled *compiled, tl_strbuf *out) {
  if (compiled->tile) tl_module_print(compiled->tile, out);
  for (uint32_t i = 0; i < compiled->num_parts; i++) {
    if (i > 0 || compiled->tile) tl_strbuf_append_char(out, '\n');
    tl_compiled_print_tile(&compiled->parts[i], out);
  }
}

void tl_compiled_fini(tl_compiled *compiled) {
  if (compiled->backend) tl_backend_destroy(compiled->backend);
  if (compiled->alone) tl_backend_destroy(compiled->alone);
  if (compiled->tile) tl_module_destroy(compiled->tile);
  for (uint32_t i = 0; i < compiled->num_parts; i++) tl_compiled_fini(&compiled->parts[i]);
  free(compiled->parts);
  free(compiled->defines);
  *compiled = (tl_compiled){0};
}
