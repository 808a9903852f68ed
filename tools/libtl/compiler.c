// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl's compiler: harness/device/compile.h behind opaque types.
#include "tl/compiler.h"

#include <stdlib.h>
#include <string.h>

#include "harness/device/compile.h"
#include "harness/device/require.h"
#include "llvm_backend/device/guard.h"
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
  bool has_lost_kernel;     // there was no memory for its name: a compile says so
  int ptx_version;
  bool keep_remarks;
  unsigned required;            // a set of tl_requirement
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

// Grows an array of a compiler so that one more fits.
static tl_status make_room(void **items, size_t *capacity, size_t len, size_t item_size) {
  if (len < *capacity) return TL_OK;
  size_t wanted = *capacity ? 2 * *capacity : 8;
  void *grown = realloc(*items, wanted * item_size);
  if (!grown) return tl_status_out_of_memory();
  *items = grown;
  *capacity = wanted;
  return TL_OK;
}

static tl_status copy_text(const char *text, char **out) {
  *out = strdup(text);
  return *out ? TL_OK : tl_status_out_of_memory();
}

tl_status tl_compiler_create(tl_compiler **out_compiler) {
  TL_TRY(tl_status_not_null(out_compiler, "out_compiler"));
  *out_compiler = calloc(1, sizeof **out_compiler);
  return *out_compiler ? TL_OK : tl_status_out_of_memory();
}

void tl_compiler_clear_bindings(tl_compiler *compiler) {
  if (!compiler) return;
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
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  if (!name || !*name || !value || !*value) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "a binding needs a name and a value");
  }
  for (size_t i = 0; i < compiler->bindings.len; i++) {
    text_binding *binding = &compiler->bindings.items[i];
    if (strcmp(binding->name, name) != 0) continue;
    char *copy;
    TL_TRY(copy_text(value, &copy));
    free(binding->value);
    binding->value = copy;
    return TL_OK;
  }
  text_binding binding = {0};
  TL_TRY(make_room((void **)&compiler->bindings.items, &compiler->bindings.capacity, compiler->bindings.len,
                   sizeof binding));
  TL_TRY(copy_text(name, &binding.name));
  tl_status status = copy_text(value, &binding.value);
  if (status) {
    free(binding.name);
    return status;
  }
  compiler->bindings.items[compiler->bindings.len++] = binding;
  return TL_OK;
}

tl_status tl_compiler_set_target(tl_compiler *compiler, const char *target) {
  TL_TRY(tl_status_not_null(compiler, "compiler"));
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
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  const tl_target *found = tl_target_for_device(compute_capability);
  if (!found) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "no target for sm_%d; sm_80 is the oldest", compute_capability);
  }
  compiler->target = found;
  return TL_OK;
}

void tl_compiler_set_kernel(tl_compiler *compiler, const char *name) {
  if (!compiler) return;
  free(compiler->kernel);
  compiler->kernel = name ? strdup(name) : NULL;
  compiler->has_lost_kernel = name && !compiler->kernel;
}

void tl_compiler_set_ptx_version(tl_compiler *compiler, int ptx_version) {
  if (compiler) compiler->ptx_version = ptx_version;
}
void tl_compiler_set_remarks(tl_compiler *compiler, int keep) {
  if (compiler) compiler->keep_remarks = keep != 0;
}

tl_status tl_compiler_set_require(tl_compiler *compiler, const char *words) {
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  unsigned required = 0;
  tl_str unknown;
  if (words && words[0] && !tl_requirements_parse(tl_str_from(words), &required, &unknown))
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "nothing is called '%.*s' that a compile could require",
                          TL_STR_ARG(unknown));
  compiler->required = required;
  return TL_OK;
}

void tl_compiler_set_include(tl_compiler *compiler, tl_include_function find, void *user) {
  if (!compiler) return;
  compiler->include = find;
  compiler->include_user = user;
}

typedef struct warning_check {
  const char *option;
  bool is_known;
} warning_check;

static void validate_warning(void *user) {
  warning_check *check = user;
  tl_sources sources;
  tl_diags probe;
  tl_sources_init(&sources);
  tl_diags_init(&probe, &sources);
  check->is_known = tl_diags_set_warning_option(&probe, tl_str_from(check->option));
  tl_diags_fini(&probe);
  tl_sources_fini(&sources);
}

tl_status tl_compiler_set_warning(tl_compiler *compiler, const char *option) {
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  TL_TRY(tl_status_not_null(option, "the warning option"));
  warning_check check = {.option = option};
  if (!tl_memory_guard(validate_warning, &check)) return tl_status_out_of_memory();
  if (!check.is_known) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "unknown warning option '%s'", option);
  char *copy;
  TL_TRY(
      make_room((void **)&compiler->warnings.items, &compiler->warnings.capacity, compiler->warnings.len, sizeof copy));
  TL_TRY(copy_text(option, &copy));
  compiler->warnings.items[compiler->warnings.len++] = copy;
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
  const char *name, *text;  // `text` or, when that is NULL, the file `name`
  size_t bytes;
  tl_compilation *out;  // Owned.
  tl_status status;
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

// LLVM cannot be stopped half-way without losing what it holds, so the memory that it is going to need is asked for
// (and given back) before it starts. What it needs in the end is found by its own failures.
static void ask_for_memory(tl_module *module, void *user) {
  enum { LEAST_BYTES = 16 << 20, BYTES_A_BYTE = 6 };
  (void)user;
  free(tl_xmalloc(LEAST_BYTES + BYTES_A_BYTE * module->arena.used_bytes));
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
  request.required = j->compiler->required;
  request.scheduled.run = ask_for_memory;
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

static char *own(const tl_strbuf *text) {
  char *copy = tl_xmalloc(text->len + 1);
  memcpy(copy, tl_strbuf_c(text), text->len);
  copy[text->len] = '\0';
  return copy;
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
  tl_diags_print_text(&j->diags, &text, false);
  out->text = own(&text);
  tl_strbuf_clear(&text);
  tl_diags_print_json(&j->diags, &text);
  out->json = own(&text);
  tl_strbuf_fini(&text);
  out->num_errors = j->diags.num_errors;
  out->num_warnings = j->diags.num_warnings;
  return status;
}

// Everything that a compile allocates, under a tl_memory_guard.
static void do_job(void *user) {
  job *j = user;
  tl_arena_init(&j->arena);
  tl_sources_init(&j->sources);
  tl_diags_init(&j->diags, &j->sources);
  j->diags.keep_remarks = j->compiler->keep_remarks;
  for (size_t i = 0; i < j->compiler->warnings.len; i++) {
    tl_diags_set_warning_option(&j->diags, tl_str_from(j->compiler->warnings.items[i]));
  }
  uint32_t source = 0;
  if (j->text && j->bytes > TL_SPEC_MAX_BYTES) {
    j->status = tl_status_make(TL_STATUS_LIMIT, "the spec has more than %d bytes", (int)TL_SPEC_MAX_BYTES);
  } else if (j->text) {
    source = tl_sources_add(&j->sources, j->name ? j->name : "<memory>", (tl_str){j->text, j->bytes});
  } else {
    j->status = tl_sources_read(&j->sources, j->name, TL_SPEC_MAX_BYTES, &source);
  }
  if (!j->status) {
    j->out = tl_xcalloc(1, sizeof *j->out);
    j->status = run(j, source, j->out);
  }
  tl_diags_fini(&j->diags);
  tl_sources_fini(&j->sources);
  tl_arena_fini(&j->arena);
}

static tl_status compile(job *j, tl_compilation **out) {
  if (j->compiler->has_lost_kernel) return tl_status_out_of_memory();
  if (!tl_memory_guard(do_job, j)) {
    tl_guard_forget();
    tl_status_free(j->status);
    j->status = tl_status_out_of_memory();
  }
  tl_status_code code = tl_status_code_of(j->status);
  if (code == TL_STATUS_OK || code == TL_STATUS_DIAGNOSTICS) {
    *out = j->out;
  } else {
    tl_compilation_destroy(j->out);
  }
  return j->status;
}

tl_status tl_compiler_compile(tl_compiler *compiler, const char *name, const char *text, size_t text_bytes,
                              tl_compilation **out_compilation) {
  TL_TRY(tl_status_not_null(out_compilation, "out_compilation"));
  *out_compilation = NULL;
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  if (text_bytes) TL_TRY(tl_status_not_null(text, "the text"));
  return compile(&(job){.compiler = compiler, .name = name, .text = text ? text : "", .bytes = text_bytes},
                 out_compilation);
}

tl_status tl_compiler_compile_file(tl_compiler *compiler, const char *path, tl_compilation **out_compilation) {
  TL_TRY(tl_status_not_null(out_compilation, "out_compilation"));
  *out_compilation = NULL;
  TL_TRY(tl_status_not_null(compiler, "compiler"));
  TL_TRY(tl_status_not_null(path, "the path"));
  return compile(&(job){.compiler = compiler, .name = path}, out_compilation);
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
