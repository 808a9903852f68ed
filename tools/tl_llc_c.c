// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-llc --emit=c and tvm-ffi: one compile a target, then the two files.
#include <stdlib.h>
#include <string.h>

#include "harness/data/file.h"
#include "harness/emit/c_source.h"
#include "support/status.h"
#include "tools/tl_llc.h"

typedef struct targets {
  tl_compiled *compiled;  // Owned. One a target
  tl_c_image *images;     // Owned, as their texts
  uint32_t num;
} targets;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static tl_status make_image(tl_llc *l, const tl_compiled *compiled, const tl_ptxas *ptxas, tl_c_image *out) {
  tl_strbuf ptx = {0}, cubin = {0};
  tl_status status = tl_backend_manifest(compiled->backend, &out->manifest);
  if (!status) status = tl_backend_emit_ptx(compiled->backend, &ptx);
  if (!status && ptxas) status = tl_ptxas_assemble(ptxas, compiled->target->name, tl_strbuf_view(&ptx), &cubin, NULL);
  out->ptx = (tl_str){tl_arena_copy_bytes(&l->cli.arena, tl_strbuf_c(&ptx), ptx.len), ptx.len};
  if (cubin.len) out->cubin = (tl_str){tl_arena_copy_bytes(&l->cli.arena, cubin.data, cubin.len), cubin.len};
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&cubin);
  return status;
}

// "sm_80,sm_90a", one after the other.
static tl_status compile_all(tl_llc *l, const tl_kernel_spec *kernel, const tl_ptxas *ptxas, targets *t) {
  const char *wanted = l->cli.target_name;
  char *list = wanted ? tl_arena_printf(&l->cli.arena, "%s", wanted) : NULL, *rest = list;
  tl_status status = TL_OK;
  do {
    if (list) l->cli.target_name = strsep(&rest, ",");
    t->compiled = tl_xrealloc(t->compiled, (t->num + 1) * sizeof *t->compiled);
    t->images = tl_xrealloc(t->images, (t->num + 1) * sizeof *t->images);
    t->images[t->num] = (tl_c_image){0};
    status = tl_llc_compile(l, kernel, &t->compiled[t->num]);
    if (!status) status = make_image(l, &t->compiled[t->num], ptxas, &t->images[t->num]);
    t->num++;
  } while (!status && rest);
  l->cli.target_name = wanted;
  return status;
}

// Without ptxas the PTX does, unless one was asked for.
static tl_status find_ptxas(const tl_llc *l, tl_ptxas *out, bool *out_found) {
  *out_found = false;
  if (l->ptxas_path && strcmp(l->ptxas_path, "none") == 0) return TL_OK;
  tl_status status = tl_ptxas_find(l->ptxas_path, l->ptxas_timeout_s, out);
  *out_found = !status;
  if (tl_status_code_of(status) != TL_STATUS_NOT_FOUND || l->ptxas_path) return status;
  tl_status_free(status);
  return TL_OK;
}

static tl_status write_files(tl_llc *l, const targets *t) {
  char *name = tl_llc_path_with(base_name(l->cli.output), ""), *header_path = tl_llc_path_with(l->cli.output, ".h");
  const tl_c_request request = {.images = t->images,
                                .num_images = t->num,
                                .name = name,
                                .header_name = base_name(header_path),
                                .spec_name = base_name(l->cli.input),
                                .has_ffi = l->emit == EMIT_TVM_FFI};
  tl_strbuf header = {0}, source = {0};
  tl_status status = tl_c_source_write(&request, &header, &source);
  if (!status) status = tl_file_write(header_path, tl_strbuf_view(&header));
  if (!status) status = tl_file_write(l->cli.output, tl_strbuf_view(&source));
  tl_strbuf_fini(&header);
  tl_strbuf_fini(&source);
  free(header_path);
  free(name);
  return status;
}

// The functions are called after the file.
static tl_status validate_name(const tl_llc *l) {
  const char *name = base_name(l->cli.output);
  size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  if (len > 0 && strcmp(name + len, ".c") == 0 && !(name[0] >= '0' && name[0] <= '9')) return TL_OK;
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                        "--emit=c: functions are called after the file, and '%s' is no name", name);
}

tl_status tl_llc_emit_c(tl_llc *l, const tl_kernel_spec *kernel) {
  tl_ptxas ptxas = {0};
  bool has_ptxas;
  targets t = {0};
  TL_TRY(validate_name(l));
  TL_TRY(find_ptxas(l, &ptxas, &has_ptxas));
  tl_status status = compile_all(l, kernel, has_ptxas ? &ptxas : NULL, &t);
  if (!status) status = write_files(l, &t);
  for (uint32_t i = 0; i < t.num; i++) tl_compiled_fini(&t.compiled[i]);
  free(t.compiled);
  free(t.images);
  if (has_ptxas) tl_ptxas_fini(&ptxas);
  return status;
}
