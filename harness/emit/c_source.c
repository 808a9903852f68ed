// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two files: prototypes with what they ask for, and images, tables, functions around the launcher.
#include "harness/emit/c_source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "harness/emit/c_internal.h"
#include "support/status.h"

extern const char tl_c_launcher_text[], tl_c_launcher_ffi_text[];  // launcher.S

static const tl_manifest_kernel *signature_of(const tl_manifest *manifest) {
  return manifest->num_chains ? &manifest->chains[0].signature : &manifest->kernels[0];
}

// ---- what C can do

static tl_status validate_params(const tl_manifest_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    int64_t bytes;
    bool is_launchs = param->kind == TL_MPARAM_WORKSPACE && param == c_workspace(kernel) && param->zero_each_launch &&
                      tl_mexpr_is_int(param->bytes, &bytes);
    if (param->kind == TL_MPARAM_WORKSPACE && !is_launchs)
      return tl_status_make(TL_STATUS_UNSUPPORTED, "--emit=c: '%s' has the workspace '%s', which only libtl gives",
                            kernel->name, param->name);
    if (param->kind == TL_MPARAM_SCALAR && !c_scalar_type(param->dtype))
      return tl_status_make(TL_STATUS_UNSUPPORTED,
                            "--emit=c: argument '%s' of '%s' is a scalar of %s, for which C has no type", param->name,
                            kernel->name, tl_dtype_name(param->dtype));
  }
  return TL_OK;
}

static tl_status validate(const tl_c_request *request) {
  for (uint32_t v = 0; v < request->num_images; v++) {
    const tl_manifest *manifest = request->images[v].manifest;
    for (uint32_t k = 0; k < manifest->num_kernels; k++) TL_TRY(validate_params(&manifest->kernels[k]));
    TL_TRY(validate_params(signature_of(manifest)));
    for (uint32_t w = 0; w < v; w++)
      if (strcmp(request->images[w].manifest->target, manifest->target) == 0)
        return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--emit=c: the target %s is given twice", manifest->target);
  }
  return TL_OK;
}

// Names that are one identifier in C.
static tl_status validate_names(const c_signature *signature) {
  tl_strbuf seen = {0};
  tl_status status = TL_OK;
  uint32_t num_params = signature->kernel->num_params;
  for (uint32_t i = 0; !status && i < num_params + signature->num_names; i++) {
    if (i < num_params && !c_is_argument(&signature->kernel->params[i])) continue;
    const char *name = i < num_params ? signature->kernel->params[i].name : signature->names[i - num_params];
    tl_strbuf one = {0};
    tl_strbuf_append_char(&one, ' ');
    c_identifier(name, &one);
    tl_strbuf_append_char(&one, ' ');
    if (seen.len && strstr(tl_strbuf_c(&seen), tl_strbuf_c(&one)))
      status = tl_status_make(TL_STATUS_UNSUPPORTED, "--emit=c: two parameters of '%s' are%.*s in C",
                              signature->kernel->name, (int)one.len - 1, tl_strbuf_c(&one));
    tl_strbuf_append_c(&seen, tl_strbuf_c(&one));
    tl_strbuf_fini(&one);
  }
  tl_strbuf_fini(&seen);
  return status;
}

static void add_name(c_signature *signature, const char *name) {
  for (uint32_t i = 0; i < signature->num_names; i++)
    if (strcmp(signature->names[i], name) == 0) return;
  signature->names = tl_xrealloc(signature->names, (signature->num_names + 1) * sizeof *signature->names);
  signature->names[signature->num_names++] = name;
}

static c_signature make_signature(const tl_c_request *request) {
  c_signature signature = {.kernel = signature_of(request->images[0].manifest)};
  for (uint32_t v = 0; v < request->num_images; v++) {
    const tl_manifest *manifest = request->images[v].manifest;
    const tl_manifest_kernel *kernel = signature_of(manifest);
    for (uint32_t i = 0; i < kernel->num_params; i++)
      if (c_is_name(&kernel->params[i])) add_name(&signature, kernel->params[i].name);
    if (manifest->num_chains && manifest->chains[0].num_buffers) signature.has_workspace = true;
    for (uint32_t k = 0; k < manifest->num_kernels; k++)
      if (c_workspace(&manifest->kernels[k])) signature.has_workspace = true;
  }
  return signature;
}

// ---- the header

static void write_dims(const char *what, const tl_mexpr *const *exprs, int32_t rank, tl_strbuf *out) {
  tl_strbuf_append_c(out, what);
  for (int32_t d = 0; d < rank; d++) {
    if (d) tl_strbuf_append_c(out, ", ");
    tl_mexpr_print(exprs[d], out);
  }
}

static void write_argument_doc(const tl_manifest_param *param, tl_strbuf *out) {
  static const char *const access[] = {"in", "out", "inout"};
  tl_strbuf_appendf(out, "//   %s: ", param->name);
  if (param->kind == TL_MPARAM_TENSOR) {
    tl_strbuf_appendf(out, "%s %s", access[param->access], tl_dtype_name(param->dtype));
    write_dims("[", (const tl_mexpr *const *)param->dims, param->rank, out);
    write_dims("], strides (", (const tl_mexpr *const *)param->strides, param->rank, out);
    tl_strbuf_appendf(out, "), aligned to %lld bytes\n", (long long)(param->align > 1 ? param->align : 1));
  } else if (param->kind == TL_MPARAM_SCALAR) {
    tl_strbuf_appendf(out, "%s\n", tl_dtype_name(param->dtype));
  } else {
    tl_strbuf_append_c(out, param->kind == TL_MPARAM_STRIDE ? "a stride in elements" : "a size");
    if (param->kind == TL_MPARAM_DYNAMIC && param->divisor > 1)
      tl_strbuf_appendf(out, ", a multiple of %lld", (long long)param->divisor);
    tl_strbuf_append_char(out, '\n');
  }
}

static void write_guard(const char *name, tl_strbuf *out) {
  tl_strbuf_append_c(out, "TL_KERNEL_");
  for (const char *p = name; *p; p++)
    tl_strbuf_append_char(out, isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_');
  tl_strbuf_append_c(out, "_H");
}

static const char common[] =
    "\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
    "#ifndef TL_KERNEL_CODES\n#define TL_KERNEL_CODES\n"
    "typedef struct CUstream_st *tl_stream;  // a CUstream or cudaStream_t; NULL: the default stream\n"
    "// What the functions return; those of libtl's tl_status_code.\n"
    "enum {\n  TL_KERNEL_OK = 0,\n  TL_KERNEL_INVALID_ARGUMENT = 1,\n  TL_KERNEL_UNSUPPORTED = 5,\n"
    "  TL_KERNEL_NO_DEVICE = 7,\n  TL_KERNEL_DRIVER = 8,\n  TL_KERNEL_OUT_OF_MEMORY = 11\n};\n"
    "#endif\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";

static void write_intro(const tl_c_request *request, const char *comment, tl_strbuf *out) {
  tl_strbuf_appendf(out, "// Generated by %s from ", request->images[0].manifest->generator);
  c_comment(request->spec_name, " ", out);
  tl_strbuf_append_c(out, ", for ");
  for (uint32_t v = 0; v < request->num_images; v++)
    tl_strbuf_appendf(out, "%s%s", v ? ", " : "", request->images[v].manifest->target);
  tl_strbuf_appendf(out, ": do not edit.%s\n", comment);
}

// "int NAME_workspace_bytes(int64_t M, …, size_t *out_bytes)".
static void write_workspace_head(const tl_c_request *request, const c_signature *signature, tl_strbuf *out) {
  tl_strbuf_appendf(out, "int %s_workspace_bytes(", request->name);
  for (uint32_t i = 0; i < signature->num_names; i++) {
    tl_strbuf_append_c(out, "int64_t ");
    c_identifier(signature->names[i], out);
    tl_strbuf_append_c(out, ", ");
  }
  tl_strbuf_append_c(out, "size_t *out_bytes)");
}

static void write_header(const tl_c_request *request, const c_signature *signature, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = signature->kernel;
  write_intro(request, "", out);
  tl_strbuf_append_c(out, "#ifndef ");
  write_guard(request->name, out);
  tl_strbuf_append_c(out, "\n#define ");
  write_guard(request->name, out);
  tl_strbuf_append_c(out, "\n");
  tl_strbuf_append_c(out, common);
  tl_strbuf_appendf(out, "// %s%s", kernel->name, kernel->doc && kernel->doc[0] ? ": " : "");
  c_comment(kernel->doc ? kernel->doc : "", "\n// ", out);
  tl_strbuf_append_c(out,
                     "\n//\n// Checks the arguments and launches on `stream` of the current context, without waiting. "
                     "Pointers are to device memory.\n");
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (c_is_argument(&kernel->params[i]) || c_is_name(&kernel->params[i])) write_argument_doc(&kernel->params[i], out);
  for (uint32_t i = 0; i < kernel->num_requires; i++) {
    tl_strbuf_append_c(out, "//   required: ");
    c_comment(kernel->requires_[i].text, " ", out);
    tl_strbuf_append_char(out, '\n');
  }
  if (signature->has_workspace)
    tl_strbuf_appendf(out,
                      "//   workspace: device memory for the launch alone, aligned to 256 bytes, of as many bytes as "
                      "%s_workspace_bytes says\n",
                      request->name);
  tl_strbuf_appendf(out, "int %s_launch(", request->name);
  c_parameters(signature, "stream", out);
  tl_strbuf_append_c(out, ");\n");
  if (signature->has_workspace) {
    tl_strbuf_append_c(out, "// Bytes of the workspace for these sizes.\n");
    write_workspace_head(request, signature, out);
    tl_strbuf_append_c(out, ";\n");
  }
  tl_strbuf_appendf(
      out,
      "// Loads for the current context (without one: the primary context of GPU 0), which else the first "
      "launch does.\nint %s_load(void);\n"
      "// Unloads from the current context, and forgets the others. No launch may be under way.\n"
      "void %s_unload(void);\n"
      "// What went wrong in the calling thread's last call that failed. Static, until the next failure.\n"
      "const char *%s_error(void);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n",
      request->name, request->name, request->name);
}

// ---- the source

// Bytes as numbers of 64 bits, little-endian as every host with a GPU: aligned, and a third of the text of bytes.
static void write_image(const char *kind, uint32_t variant, tl_str bytes, tl_strbuf *out) {
  tl_strbuf_appendf(out, "static const uint64_t tlk_%s_%u[] = {  // %zu bytes", kind, variant, bytes.len);
  for (size_t at = 0, column = 0; at <= bytes.len; at += 8, column++) {  // a zero ends a text
    uint64_t word = 0;
    size_t left = bytes.len - at;
    memcpy(&word, bytes.data + at, left < 8 ? left : 8);
    tl_strbuf_appendf(out, "%s0x%llx",
                      column == 0  ? "\n    "
                      : column % 6 ? ", "
                                   : ",\n    ",
                      (unsigned long long)word);
  }
  tl_strbuf_append_c(out, "};\n");
}

static void write_kernel_table(const tl_manifest *manifest, uint32_t variant, tl_strbuf *out) {
  tl_strbuf_appendf(out, "static const tlk_kernel tlk_kernels_%u[TLK_NUM_KERNELS] = {", variant);
  for (uint32_t k = 0; k < manifest->num_kernels; k++) {
    const tl_manifest_kernel *kernel = &manifest->kernels[k];
    tl_strbuf_appendf(out, "%s{\"%s\", %d, %lld, %lld, {%d, %d, %d}}", k ? ", " : "", kernel->name,
                      kernel->block_threads, (long long)kernel->dynamic_shared_bytes,
                      (long long)kernel->dynamic_shared_bytes + kernel->static_shared_bytes, kernel->cluster[0],
                      kernel->cluster[1], kernel->cluster[2]);
  }
  tl_strbuf_append_c(out, "};\n");
}

// "sm_90a" as 90 and 'a'.
static void write_variant(const tl_c_image *image, uint32_t variant, tl_strbuf *out) {
  const char *target = image->manifest->target;
  char *end = NULL;
  long capability = strncmp(target, "sm_", 3) == 0 ? strtol(target + 3, &end, 10) : 0;
  char kind = end && *end ? *end : ' ';
  tl_strbuf_appendf(out, "  {\"%s\", %ld, '%c', tlk_ptx_%u, ", target, capability, kind, variant);
  if (image->cubin.len)
    tl_strbuf_appendf(out, "tlk_cubin_%u", variant);
  else
    tl_strbuf_append_c(out, "NULL");
  tl_strbuf_appendf(out, ", tlk_kernels_%u},\n", variant);
}

static void write_tables(const tl_c_request *request, tl_strbuf *out) {
  for (uint32_t v = 0; v < request->num_images; v++) {
    const tl_c_image *image = &request->images[v];
    tl_strbuf_appendf(out, "// %s\n", image->manifest->target);
    write_image("ptx", v, image->ptx, out);
    if (image->cubin.len) write_image("cubin", v, image->cubin, out);
    write_kernel_table(image->manifest, v, out);
  }
  tl_strbuf_append_c(out, "static const tlk_variant tlk_variants[TLK_NUM_VARIANTS] = {\n");
  for (uint32_t v = 0; v < request->num_images; v++) write_variant(&request->images[v], v, out);
  tl_strbuf_append_c(out, "};\n\n");
}

// Of a kernel; a chain's function does it.
static void write_workspace_check(tl_strbuf *out) {
  tl_strbuf_appendf(out,
                    "      if ((tlk_code = tlk_workspace(tlk_m, workspace, workspace_bytes, %d))) return tlk_code;\n",
                    C_WORKSPACE_BYTES);
}

// Values for the parameters of an image's own function, which may need fewer names than another's.
static void write_call(const tl_manifest *manifest, uint32_t variant, const c_signature *signature, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = signature_of(manifest);
  bool is_chain = manifest->num_chains > 0;
  tl_strbuf_appendf(
      out, is_chain ? "      return tlk_chain_%u(tlk_m, stream" : "      return tlk_run_%u_0(tlk_m, stream", variant);
  for (uint32_t i = 0; !is_chain && i < kernel->num_params; i++) {
    if (!c_is_argument(&kernel->params[i]) && !c_is_name(&kernel->params[i])) continue;
    tl_strbuf_append_c(out, ", ");
    c_identifier(kernel->params[i].name, out);
  }
  for (uint32_t i = 0; is_chain && i < signature->kernel->num_params; i++) {
    if (!c_is_argument(&signature->kernel->params[i])) continue;
    tl_strbuf_append_c(out, ", ");
    c_identifier(signature->kernel->params[i].name, out);
  }
  for (uint32_t i = 0; is_chain && i < signature->num_names; i++) {
    tl_strbuf_append_c(out, ", ");
    c_identifier(signature->names[i], out);
  }
  if (is_chain && signature->has_workspace) tl_strbuf_append_c(out, ", workspace, workspace_bytes");
  if (!is_chain && c_workspace(kernel)) tl_strbuf_append_c(out, ", workspace");
  tl_strbuf_append_c(out, is_chain ? ");\n" : ", 0);\n");
}

static void write_workspace_bytes(const tl_c_request *request, const c_signature *signature, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = signature_of(request->images[0].manifest);
  write_workspace_head(request, signature, out);
  if (request->images[0].manifest->num_chains == 0) {
    for (uint32_t i = 0; i < signature->num_names; i++) {
      tl_strbuf_append_c(out, i ? "" : " {\n");
      tl_strbuf_append_c(out, "  (void)");
      c_identifier(signature->names[i], out);
      tl_strbuf_append_c(out, ";\n");
    }
    tl_strbuf_appendf(out, "%s  *out_bytes = %d;\n  return 0;\n}\n\n", signature->num_names ? "" : " {\n",
                      C_WORKSPACE_BYTES);
    return;
  }
  tl_strbuf_append_c(out, " {\n  int64_t tlk_needed = 0;\n  int tlk_code = tlk_bytes_0(");
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (!c_is_name(&kernel->params[i])) continue;
    c_identifier(kernel->params[i].name, out);
    tl_strbuf_append_c(out, ", ");
  }
  tl_strbuf_append_c(out, "&tlk_needed);\n  *out_bytes = (size_t)tlk_needed;\n  return tlk_code;\n}\n\n");
}

static void write_functions(const tl_c_request *request, const c_signature *signature, tl_strbuf *out) {
  const char *name = request->name;
  tl_strbuf_appendf(out, "int %s_launch(", name);
  c_parameters(signature, "stream", out);
  tl_strbuf_append_c(out,
                     ") {\n  tlk_module *tlk_m = NULL;\n  int tlk_code = tlk_enter(&tlk_m);\n"
                     "  if (tlk_code) return tlk_code;\n");
  for (uint32_t i = 0; i < signature->num_names; i++) {
    tl_strbuf_append_c(out, "  (void)");
    c_identifier(signature->names[i], out);
    tl_strbuf_append_c(out, ";\n");
  }
  tl_strbuf_append_c(out, "  switch (tlk_m->variant) {\n");
  for (uint32_t v = 0; v < request->num_images; v++) {
    if (v + 1 < request->num_images)
      tl_strbuf_appendf(out, "    case %u:\n", v);
    else
      tl_strbuf_append_c(out, "    default:\n");
    if (signature->has_workspace && request->images[v].manifest->num_chains == 0) write_workspace_check(out);
    write_call(request->images[v].manifest, v, signature, out);
  }
  tl_strbuf_append_c(out, "  }\n}\n\n");
  if (signature->has_workspace) write_workspace_bytes(request, signature, out);
  tl_strbuf_appendf(out,
                    "int %s_load(void) {\n  tlk_module *tlk_m = NULL;\n  return tlk_enter(&tlk_m);\n}\n\n"
                    "void %s_unload(void) {\n  tlk_unload();\n}\n\n"
                    "const char *%s_error(void) {\n  return tlk_text;\n}\n",
                    name, name, name);
}

static tl_status write_source(const tl_c_request *request, const c_signature *signature, tl_strbuf *out) {
  uint32_t most = 1;
  for (uint32_t v = 0; v < request->num_images; v++)
    if (request->images[v].manifest->num_kernels > most) most = request->images[v].manifest->num_kernels;
  write_intro(request, " C11, with -ldl and -lpthread where those are libraries of their own.", out);
  tl_strbuf_appendf(out,
                    "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n#include \"%s\"\n\n"
                    "enum { TLK_NUM_VARIANTS = %u, TLK_NUM_KERNELS = %u };\n\n",
                    request->header_name, request->num_images, most);
  tl_strbuf_append_c(out, tl_c_launcher_text);
  if (request->has_ffi) tl_strbuf_append_c(out, tl_c_launcher_ffi_text);
  tl_strbuf_append_char(out, '\n');
  write_tables(request, out);
  for (uint32_t v = 0; v < request->num_images; v++) {
    const tl_manifest *manifest = request->images[v].manifest;
    uint32_t num_kernels = manifest->num_chains > 0 ? tl_manifest_num_kernels(manifest) : 1;
    for (uint32_t k = 0; k < num_kernels; k++) c_kernel(manifest, v, k, out);
    if (manifest->num_chains) TL_TRY(c_chain(manifest, v, signature, out));
  }
  write_functions(request, signature, out);
  return request->has_ffi ? c_ffi(signature, request->name, out) : TL_OK;
}

tl_status tl_c_source_write(const tl_c_request *request, tl_strbuf *out_header, tl_strbuf *out_source) {
  TL_TRY(validate(request));
  c_signature signature = make_signature(request);
  tl_status status = validate_names(&signature);
  if (!status) write_header(request, &signature, out_header);
  if (!status) status = write_source(request, &signature, out_source);
  free(signature.names);
  return status;
}
