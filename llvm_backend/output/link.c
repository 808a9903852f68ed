// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several kernels as one module: what a chain's PTX is made from. Each was lowered and optimised on its own, in a
// context of its own, so they come over as bitcode.
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Linker.h>
#include <stdlib.h>

#include "llvm_backend/output/backend_internal.h"

typedef struct link_call {
  LLVMModuleRef into, from;
  LLVMBool failed;  // out
} link_call;

static void call_link(void *user) {
  link_call *call = user;
  call->failed = LLVMLinkModules2(call->into, call->from);
}

// Links a copy of `module`, which may be of another context, into `into`.
static tl_status link_module(tl_session *session, LLVMModuleRef into, LLVMModuleRef module) {
  LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
  LLVMModuleRef copy = NULL;
  bool failed = LLVMParseBitcodeInContext2(session->context, bitcode, &copy);
  LLVMDisposeMemoryBuffer(bitcode);
  if (failed) {
    tl_status status = tl_session_take_errors(session, "link");
    return status ? status : tl_status_make(TL_STATUS_INTERNAL, "link: the bitcode cannot be read back");
  }
  link_call call = {into, copy, 0};
  TL_TRY(tl_session_guard(session, "link", call_link, &call));
  TL_TRY(tl_session_take_errors(session, "link"));
  return call.failed ? tl_status_make(TL_STATUS_INTERNAL, "link: the modules do not fit together") : TL_OK;
}

static tl_status link_parts(tl_backend *backend, tl_backend *const *parts, uint32_t num_parts) {
  tl_session *session = &backend->session;
  TL_TRY(tl_session_begin_module(session, "chain"));
  backend->optimised = LLVMCloneModule(session->module);
  for (uint32_t i = 0; i < num_parts; i++) {
    TL_TRY(tl_backend_optimise(parts[i]));
    TL_TRY(link_module(session, session->module, parts[i]->session.module));
    TL_TRY(link_module(session, backend->optimised, parts[i]->optimised));
    if (parts[i]->ptx_version > backend->ptx_version) backend->ptx_version = parts[i]->ptx_version;
  }
  TL_TRY(tl_session_verify(session, backend->optimised, "link"));
  return tl_session_machine(session, backend->ptx_version);
}

// Kernels of the parts, then the versions of those that have one.
static void collect_kernels(tl_backend *const *parts, uint32_t num_parts, bool is_versions, tl_manifest *whole) {
  for (uint32_t i = 0; i < num_parts; i++) whole->num_kernels += parts[i]->manifest.num_kernels;
  whole->kernels = tl_xcalloc(whole->num_kernels, sizeof *whole->kernels);
  uint32_t next = num_parts;
  for (uint32_t i = 0; i < num_parts; i++) {
    const tl_manifest_kernel *kernels = parts[i]->manifest.kernels;
    whole->kernels[i] = kernels[0];
    if (!kernels[0].aligned) continue;
    whole->kernels[next] = kernels[kernels[0].aligned];
    whole->kernels[i].aligned = next++;
  }
  if (!is_versions) return;
  whole->kernels[0].aligned = 1;
  whole->kernels[1].is_version = true;
}

// The parts' manifests as one. Copied as text, so that it does not depend on them.
static tl_status link_manifests(tl_backend *backend, tl_backend *const *parts, uint32_t num_parts, bool is_versions,
                                const tl_manifest_chain *chain) {
  tl_manifest whole = parts[0]->manifest;
  whole.ptx_version = backend->ptx_version;
  whole.num_kernels = 0;
  collect_kernels(parts, num_parts, is_versions, &whole);
  tl_manifest_chain copy;
  if (chain) {
    copy = *chain;
    whole.chains = &copy;
    whole.num_chains = 1;
  }
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_manifest_write(&whole, NULL, &text);
  tl_status status = tl_manifest_read(&backend->arena, tl_strbuf_view(&text), &backend->manifest);
  tl_strbuf_fini(&text);
  free(whole.kernels);
  return status;
}

static tl_status link_all(tl_backend *const *parts, uint32_t num_parts, const tl_target *target,
                          const tl_backend_options *options, bool is_versions, const tl_manifest_chain *chain,
                          tl_backend **out_backend) {
  tl_backend *backend = tl_xcalloc(1, sizeof *backend);
  tl_arena_init(&backend->arena);
  tl_status status = tl_session_init(&backend->session, target, options->opt_level);
  if (!status) status = link_parts(backend, parts, num_parts);
  if (!status) status = link_manifests(backend, parts, num_parts, is_versions, chain);
  if (status) tl_backend_destroy(backend);
  *out_backend = status ? NULL : backend;
  return status;
}

tl_status tl_backend_link(tl_backend *const *parts, uint32_t num_parts, const tl_target *target,
                          const tl_backend_options *options, const tl_manifest_chain *chain, tl_backend **out_backend) {
  return link_all(parts, num_parts, target, options, false, chain, out_backend);
}

tl_status tl_backend_link_versions(tl_backend *const versions[2], const tl_target *target,
                                   const tl_backend_options *options, tl_backend **out_backend) {
  return link_all(versions, 2, target, options, true, NULL, out_backend);
}
