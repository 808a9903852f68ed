// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compile from scheduled tile IR to an LLVM module and its manifest.
#include "llvm_backend/output/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/output/backend_internal.h"

const char *tl_backend_llvm_version(void) {
  return TL_LLVM_VERSION;
}

static tl_status lower_module(tl_backend *backend, const tl_module *module, const tl_backend_options *options,
                              tl_diags *diags) {
  tl_lower l = {.session = &backend->session,
                .module = module,
                .kernel = tl_module_kernel(module),
                .diags = diags,
                .marks_elements = options->marks_elements};
  if (!l.kernel) return tl_status_make(TL_STATUS_INTERNAL, "lower: the module has no kernel");
  tl_arena_init(&l.arena);
  tl_lower_kernel(&l);
  backend->keeps_blocks = l.kernel && tl_op_has(l.kernel, TL_ATTR_OCCUPANCY);
  tl_status status = l.status;
  if (!status && l.reported) status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the kernel cannot be lowered");
  if (!status) status = tl_backend_make_manifest(backend, &l);
  if (!status) tl_lower_debug_info(&l, &backend->arena, &backend->debug);
  tl_vec_fini(&l.places);
  tl_vec_fini(&l.variables);
  tl_arena_fini(&l.arena);
  return status;
}

// PTX ISA versions that LLVM 22 can write, from 7.0 on: LLVM ignores an unknown one with a text on standard error.
static bool llvm_writes_ptx(int version) {
  static const int last_minor[] = {[7] = 8, [8] = 8, [9] = 0};
  int major = version / 10;
  return major >= 7 && major <= 9 && version % 10 <= last_minor[major];
}

static tl_status choose_ptx(tl_backend *backend, const tl_backend_options *options) {
  int needed = tl_session_needed_ptx(&backend->session, backend->session.module);
  if (options->ptx_version != 0 && options->ptx_version < needed)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "the kernel needs PTX ISA %d.%d or newer, %d.%d was asked for",
                          needed / 10, needed % 10, options->ptx_version / 10, options->ptx_version % 10);
  if (options->ptx_version != 0 && !llvm_writes_ptx(options->ptx_version))
    return tl_status_make(TL_STATUS_UNSUPPORTED,
                          "PTX ISA %d.%d is not known to this version's LLVM (7.0 to 7.8, 8.0 to 8.8 and 9.0 are)",
                          options->ptx_version / 10, options->ptx_version % 10);
  backend->ptx_version = options->ptx_version > needed ? options->ptx_version : needed;
  backend->manifest.ptx_version = backend->ptx_version;
  return tl_session_machine(&backend->session, backend->ptx_version);
}

tl_status tl_backend_create(const tl_module *module, const tl_target *target, const tl_backend_options *options,
                            tl_diags *diags, tl_backend **out_backend) {
  *out_backend = NULL;
  tl_backend *backend = tl_xcalloc(1, sizeof *backend);
  tl_arena_init(&backend->arena);
  tl_status status = tl_session_init(&backend->session, target, options->opt_level);
  if (!status) status = tl_session_begin_module(&backend->session, "kernel");
  if (!status) status = lower_module(backend, module, options, diags);
  if (!status) status = tl_session_verify(&backend->session, backend->session.module, "lower");
  if (!status) status = choose_ptx(backend, options);
  if (!status && options->doc.len > 0)
    backend->manifest.kernels->doc = tl_arena_copy_bytes(&backend->arena, options->doc.data, options->doc.len);
  if (status) {
    tl_backend_destroy(backend);
    return status;
  }
  *out_backend = backend;
  return TL_OK;
}

void tl_backend_destroy(tl_backend *backend) {
  if (!backend) return;
  if (backend->optimised && !backend->session.is_abandoned) LLVMDisposeModule(backend->optimised);
  tl_session_fini(&backend->session);
  tl_arena_fini(&backend->arena);
  free(backend);
}

const tl_debug_info *tl_backend_debug_info(const tl_backend *backend) {
  return &backend->debug;
}

tl_status tl_backend_manifest(tl_backend *backend, const tl_manifest **out) {
  *out = &backend->manifest;
  return TL_OK;
}
