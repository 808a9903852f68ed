// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles the harness' reference loop nests from LLVM IR text.
#include "llvm_backend/jit/reference_jit.h"

#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>

#include "llvm_backend/jit/host_jit.h"

static void ignore_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
  (void)info;
  (void)context;  // the parser's message says it all; without a handler LLVM would exit
}

tl_status tl_reference_jit_compile(tl_str llvm_ir, bool is_short, tl_reference_fn **out_fn, void **out_handle) {
  *out_fn = NULL;
  *out_handle = NULL;
  LLVMContextRef context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(context, ignore_diagnostic, NULL);
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(llvm_ir.data, llvm_ir.len, "reference");
  LLVMModuleRef module = NULL;
  char *message = NULL;
  bool failed = LLVMParseIRInContext2(context, buffer, &module, &message);
  LLVMDisposeMemoryBuffer(buffer);
  if (failed) {
    tl_status status = tl_status_make(TL_STATUS_INTERNAL, "reference IR does not parse: %s", message ? message : "");
    LLVMDisposeMessage(message);
    LLVMContextDispose(context);
    return status;
  }
  tl_host_jit *jit = NULL;
  // Not O2: LLVM 22's loop vectorizer takes time exponential in the depth of expressions that use values twice
  // (vputils::isSingleScalar), and ordered sums gain nothing from it.
  const char *passes = is_short ? "sroa" : "default<O1>";
  TL_TRY(tl_status_annotate(tl_host_jit_create(module, passes, is_short ? 0 : 2, NULL, 0, &jit), "reference"));
  void *run = tl_host_jit_lookup(jit, "run");
  if (!run) {
    tl_host_jit_destroy(jit);
    return tl_status_make(TL_STATUS_INTERNAL, "reference IR defines no function 'run'");
  }
  *out_fn = (tl_reference_fn *)run;
  *out_handle = jit;
  return TL_OK;
}

void tl_reference_jit_destroy(void *handle) {
  tl_host_jit_destroy(handle);
}
