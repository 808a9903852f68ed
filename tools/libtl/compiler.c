// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl's compiler: harness/device/compile.h behind opaque types.
#include "tl/compiler.h"

#include <stdlib.h>
#include <string.h>

#include "harness/device/compile.h"
#include "support/vec.h"
#include "tl/tl.h"

typedef struct text_binding {
  char *name, *value;  // Owned.
} text_binding;

struct tl_compiler {
  TL_VEC(text_binding) bindings;
  TL_VEC(char *) warnings;  // Owned texts.
  const tl_target *target;  // NULL: the spec's
  char *kernel;             // Owned. NULL: the first
  int ptx_version;
  bool keep_remarks;
  tl_include_function include;  // NULL: files
  void *include_user;
};

struct tl_compilation {
  char *ptx, *manifest;  // Owned. NULL after errors.
  size_t ptx_bytes, manifest_bytes;
  char *text, *json;  // Owned. Diagnostics.
  size_t num_errors, num_warnings;
};

const char *tl_version(void) {
  return TL_VERSION;
}
int tl_manifest_abi(void) {
  return TL_MANIFEST_ABI;
}
const char *tl_llvm_version(void) {
  return tl_backend_llvm_version();
}

// ---- options

tl_status tl_compiler_create(tl_compiler **out_compiler) {
  *out_compiler = tl_xcalloc(1, sizeof **out_compiler);
  return TL_OK;
}

void tl_compiler_clear_bindings(tl_compiler *compiler) {
  for (size_t i = 0; i < compiler->bindings.len; i++) {
    free(compiler->bindings.items[i].name);
    free(compiler->bindings.items[i].value);
  }
  tl_vec_clear(&compiler->bindings);
}

void tl_compiler_destroy(tl_compiler *compiler) {
  if (!compiler) return;
  tl_compiler_clear_bindings(compiler);
  tl_vec_fini(&compiler->bindings);
  for (size_t i = 0; i < compiler->warnings.len; i++) free(compiler->warnings.items[i]);
  tl_vec_fini(&compiler->warnings);
  free(compiler->kernel);
  free(compiler);
}

tl_status tl_compiler_bind(tl_compiler *compiler, const char *name, const char *value) {
  if (!name || !*name || !value || !*value) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "a binding needs a name and a value");
  }
  for (size_t i = 0; i < compiler->bindings.len; i++) {
    text_binding *binding = &compiler->bindings.items[i];
    if (strcmp(binding->name, name) != 0) continue;
    free(binding->value);
    binding->value = strdup(value);
    return TL_OK;
  }
  tl_vec_push(&compiler->bindings, (text_binding){strdup(name), strdup(value)});
  return TL_OK;
}

tl_status tl_compiler_set_target(tl_compiler *compiler, const char *target) {
  const tl_target *found = target ? tl_target_find(tl_str_from(target)) : NULL;
  if (target && !found) {
    const char *reason = tl_target_refusal(tl_str_from(target));
    if (reason) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "target %s is refused: %s", target, reason);
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "unknown target '%s'", target);
  }
  compiler->target = found;
  return TL_OK;
}

tl_status tl_compiler_set_target_for_device(tl_compiler *compiler, int compute_capability) {
  const tl_target *found = tl_target_for_device(compute_capability);
  if (!found) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "no target for sm_%d; sm_80 is the oldest", compute_capability);
  }
  compiler->target = found;
  return TL_OK;
}

void tl_compiler_set_kernel(tl_compiler *compiler, const char *name) {
  free(compiler->kernel);
  compiler->kernel = name ? strdup(name) : NULL;
}

void tl_compiler_set_ptx_version(tl_compiler *compiler, int ptx_version) {
  compiler->ptx_version = ptx_version;
}
void tl_compiler_set_remarks(tl_compiler *compiler, int keep) {
  compiler->keep_remarks = keep != 0;
}

void tl_compiler_set_include(tl_compiler *compiler, tl_include_function find, void *user) {
  compiler->include = find;
  compiler->include_user = user;
}

tl_status tl_compiler_set_warning(tl_compiler *compiler, const char *option) {
  tl_sources sources;
  tl_diags probe;
  tl_sources_init(&sources);
  tl_diags_init(&probe, &sources);
  bool ok = option && tl_diags_set_warning_option(&probe, tl_str_from(option));
  tl_diags_fini(&probe);
  tl_sources_fini(&sources);
  if (!ok) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "unknown warning option '%s'", option ? option : "(null)");
  tl_vec_push(&compiler->warnings, strdup(option));
  return TL_OK;
}

// ---- one compile

typedef struct job {
  const tl_compiler *compiler;
  tl_arena arena;
  tl_sources sources;
  tl_diags diags;
  tl_binding *bindings;
  uint32_t num_bindings;
} job;

static void parse_bindings(job *j) {
  j->bindings = TL_NEW_ARRAY(&j->arena, tl_binding, j->compiler->bindings.len + 1);
  for (size_t i = 0; i < j->compiler->bindings.len; i++) {
    const text_binding *binding = &j->compiler->bindings.items[i];
    tl_strbuf name;
    tl_strbuf_init(&name);
    tl_strbuf_appendf(&name, "<binding of %s>", binding->name);
    uint32_t source = tl_sources_add(&j->sources, tl_strbuf_c(&name), tl_str_from(binding->value));
    tl_strbuf_fini(&name);
    tl_str text = tl_sources_get(&j->sources, source)->text;
    uint32_t *offsets = TL_NEW_ARRAY(&j->arena, uint32_t, text.len + 1);
    for (size_t c = 0; c <= text.len; c++) offsets[c] = (uint32_t)c;
    tl_loc loc = {source, 0, (uint32_t)text.len};
    tl_expr *value = tl_expr_parse(&j->arena, &j->diags, (tl_located_text){text, {source, offsets}, loc});
    if (value) j->bindings[j->num_bindings++] = (tl_binding){tl_str_from(binding->name), value, loc};
  }
}

static tl_status emit(const tl_compiled *compiled, tl_compilation *out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_status status = tl_backend_emit_ptx(compiled->backend, &text);
  const tl_manifest *manifest = NULL;
  if (!status) {
    out->ptx_bytes = text.len;
    out->ptx = tl_strbuf_take(&text);
    status = tl_backend_manifest(compiled->backend, &manifest);
  }
  if (!status) {
    tl_manifest_write(manifest, NULL, &text);
    out->manifest_bytes = text.len;
    out->manifest = tl_strbuf_take(&text);
  }
  tl_strbuf_fini(&text);
  return status;
}

static tl_status compile_kernel(job *j, const tl_spec *spec, tl_compilation *out) {
  const char *name = j->compiler->kernel;
  const tl_kernel_spec *kernel = name                ? tl_spec_find(spec, tl_str_from(name))
                                 : spec->num_kernels ? &spec->kernels[0]
                                                     : NULL;
  if (!kernel)
    return tl_status_make(TL_STATUS_NOT_FOUND, "the file has no kernel%s%s", name ? " " : "", name ? name : "");
  tl_compile_request request = tl_compile_request_default(kernel);
  request.bindings = (tl_bindings){j->bindings, j->num_bindings};
  request.target = j->compiler->target;
  request.backend.ptx_version = j->compiler->ptx_version;
  tl_compiled compiled;
  tl_status status = tl_compile(&request, &j->sources, &j->diags, &compiled);
  if (!status) status = emit(&compiled, out);
  tl_compiled_fini(&compiled);
  return status;
}

static const char *load_include(void *user, const char *path, const char *from, tl_spec_include *out) {
  const tl_compiler *compiler = user;
  tl_include found = {0};
  if (!compiler->include(compiler->include_user, path, from, &found)) return "there is no such file";
  *out = (tl_spec_include){found.name, {found.text ? found.text : "", found.text ? found.text_bytes : 0}};
  return NULL;
}

static tl_status run(job *j, uint32_t source, tl_compilation *out) {
  tl_spec_loader loader = {load_include, (void *)j->compiler};
  tl_spec *spec = tl_spec_parse_with(&j->sources, source, j->compiler->include ? &loader : NULL, &j->diags);
  parse_bindings(j);
  tl_status status = TL_OK;
  if (!spec || tl_diags_has_errors(&j->diags)) {
    status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  } else {
    status = compile_kernel(j, spec, out);
  }
  if (spec) tl_spec_destroy(spec);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, "");
  tl_diags_print_text(&j->diags, &text, false);
  out->text = strdup(tl_strbuf_c(&text));
  tl_strbuf_clear(&text);
  tl_diags_print_json(&j->diags, &text);
  out->json = strdup(tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  out->num_errors = j->diags.num_errors;
  out->num_warnings = j->diags.num_warnings;
  return status;
}

// `text` or, when that is NULL, the file `name`.
static tl_status compile(tl_compiler *compiler, const char *name, const char *text, size_t bytes,
                         tl_compilation **out) {
  *out = NULL;
  job j = {.compiler = compiler};
  tl_arena_init(&j.arena);
  tl_sources_init(&j.sources);
  tl_diags_init(&j.diags, &j.sources);
  j.diags.keep_remarks = compiler->keep_remarks;
  for (size_t i = 0; i < compiler->warnings.len; i++) {
    tl_diags_set_warning_option(&j.diags, tl_str_from(compiler->warnings.items[i]));
  }
  uint32_t source = 0;
  tl_status status = TL_OK;
  if (text && bytes > TL_SPEC_MAX_BYTES) {
    status = tl_status_make(TL_STATUS_LIMIT, "the spec has more than %d bytes", (int)TL_SPEC_MAX_BYTES);
  } else if (text) {
    source = tl_sources_add(&j.sources, name ? name : "<memory>", (tl_str){text, bytes});
  } else {
    status = tl_sources_read(&j.sources, name, TL_SPEC_MAX_BYTES, &source);
  }
  if (!status) {
    *out = tl_xcalloc(1, sizeof **out);
    status = run(&j, source, *out);
  }
  tl_status_code code = tl_status_code_of(status);
  if (code != TL_STATUS_OK && code != TL_STATUS_DIAGNOSTICS) {
    tl_compilation_destroy(*out);
    *out = NULL;
  }
  tl_diags_fini(&j.diags);
  tl_sources_fini(&j.sources);
  tl_arena_fini(&j.arena);
  return status;
}

tl_status tl_compiler_compile(tl_compiler *compiler, const char *name, const char *text, size_t text_bytes,
                              tl_compilation **out_compilation) {
  return compile(compiler, name, text ? text : "", text ? text_bytes : 0, out_compilation);
}

tl_status tl_compiler_compile_file(tl_compiler *compiler, const char *path, tl_compilation **out_compilation) {
  *out_compilation = NULL;
  if (!path) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the path is NULL");
  return compile(compiler, path, NULL, 0, out_compilation);
}

// ---- results

void tl_compilation_destroy(tl_compilation *compilation) {
  if (!compilation) return;
  free(compilation->ptx);
  free(compilation->manifest);
  free(compilation->text);
  free(compilation->json);
  free(compilation);
}

const char *tl_compilation_ptx(const tl_compilation *compilation, size_t *out_bytes) {
  if (out_bytes) *out_bytes = compilation ? compilation->ptx_bytes : 0;
  return compilation ? compilation->ptx : NULL;
}
const char *tl_compilation_manifest(const tl_compilation *compilation, size_t *out_bytes) {
  if (out_bytes) *out_bytes = compilation ? compilation->manifest_bytes : 0;
  return compilation ? compilation->manifest : NULL;
}
const char *tl_compilation_diagnostics(const tl_compilation *compilation, tl_diagnostics_format format) {
  if (!compilation) return format == TL_DIAGNOSTICS_JSON ? "[]" : "";
  return format == TL_DIAGNOSTICS_JSON ? compilation->json : compilation->text;
}
size_t tl_compilation_num_errors(const tl_compilation *compilation) {
  return compilation ? compilation->num_errors : 0;
}
size_t tl_compilation_num_warnings(const tl_compilation *compilation) {
  return compilation ? compilation->num_warnings : 0;
}
