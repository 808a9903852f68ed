// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's middle end and code generator.
#include <llvm-c/BitWriter.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/output/backend_internal.h"
#include "llvm_backend/output/constructs.h"
#include "llvm_backend/output/registers.h"

typedef struct passes_call {
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
  const char *passes;
  LLVMPassBuilderOptionsRef options;
  LLVMErrorRef error;  // out
} passes_call;

static void call_passes(void *user) {
  passes_call *call = user;
  call->error = LLVMRunPasses(call->module, call->passes, call->machine, call->options);
}

static tl_status run_passes(tl_session *session, LLVMModuleRef module, const char *passes) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  // The lowering vectorises memory accesses itself; a GPU thread has no other vectors.
  LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
  LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
  LLVMPassBuilderOptionsSetLoopInterleaving(options, 0);
  passes_call call = {module, session->machine, passes, options, NULL};
  tl_status gave_up = tl_session_guard(session, passes, call_passes, &call);
  LLVMDisposePassBuilderOptions(options);
  if (gave_up) return gave_up;
  LLVMErrorRef error = call.error;
  if (!error) return tl_session_take_errors(session, passes);
  char *message = LLVMGetErrorMessage(error);
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM: %s", passes, message);
  LLVMDisposeErrorMessage(message);
  return status;
}

tl_status tl_backend_optimise(tl_backend *backend) {
  static const char *const pipelines[] = {"always-inline,sroa,early-cse", "default<O1>", "default<O2>", "default<O3>"};
  if (backend->optimised) return TL_OK;
  tl_session *session = &backend->session;
  LLVMModuleRef module = LLVMCloneModule(session->module);
  int level = session->opt_level < 0 ? 0 : session->opt_level > 3 ? 3 : session->opt_level;
  tl_status status = run_passes(session, module, pipelines[level]);
  if (!status) {
    tl_backend_legalise(session, module);
    status = tl_backend_verify_constructs(module, session->target->sm);
  }
  if (!status) {
    backend->optimised = module;
  } else if (!session->is_abandoned) {
    LLVMDisposeModule(module);
  }
  return status;
}

static void append_module(LLVMModuleRef module, tl_strbuf *out) {
  char *text = LLVMPrintModuleToString(module);
  tl_strbuf_append_c(out, text);
  LLVMDisposeMessage(text);
}

tl_status tl_backend_print_llvm(tl_backend *backend, tl_strbuf *out) {
  append_module(backend->session.module, out);
  return TL_OK;
}

tl_status tl_backend_print_llvm_opt(tl_backend *backend, tl_strbuf *out) {
  TL_TRY(tl_backend_optimise(backend));
  append_module(backend->optimised, out);
  return TL_OK;
}

tl_status tl_backend_device_bitcode(tl_backend *backend, char **out_bytes, size_t *out_len) {
  TL_TRY(tl_backend_optimise(backend));
  LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(backend->optimised);
  *out_len = LLVMGetBufferSize(buffer);
  *out_bytes = tl_xmalloc(*out_len);
  memcpy(*out_bytes, LLVMGetBufferStart(buffer), *out_len);
  LLVMDisposeMemoryBuffer(buffer);
  return TL_OK;
}

typedef struct emit_call {
  LLVMTargetMachineRef machine;
  LLVMModuleRef module;
  LLVMMemoryBufferRef buffer;  // out
  char *message;               // out
  LLVMBool failed;             // out
} emit_call;

static void call_emit(void *user) {
  emit_call *call = user;
  call->failed =
      LLVMTargetMachineEmitToMemoryBuffer(call->machine, call->module, LLVMAssemblyFile, &call->message, &call->buffer);
}

// ---- content that nobody wrote

static bool is_undefined(LLVMValueRef value) {
  if (LLVMIsATruncInst(value)) value = LLVMGetOperand(value, 0);
  if (!LLVMIsACallInst(value)) return false;
  size_t len;
  const char *name = LLVMGetValueName2(LLVMGetCalledValue(value), &len);
  return tl_str_starts_with((tl_str){name, len}, "tl.undefined.");
}

// That an element of a local array has no content needs no store. Returns whether loops lost their only purpose.
static bool drop_undefined_stores(LLVMValueRef function) {
  bool emptied = false;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      if (!LLVMIsAStoreInst(i) || !is_undefined(LLVMGetOperand(i, 0))) continue;
      LLVMValueRef pointer = LLVMGetOperand(i, 1);
      while (LLVMIsAGetElementPtrInst(pointer)) {
        emptied = emptied || !LLVMIsConstant(LLVMGetOperand(pointer, (unsigned)LLVMGetNumOperands(pointer) - 1));
        pointer = LLVMGetOperand(pointer, 0);
      }
      if (LLVMIsAAllocaInst(pointer)) LLVMInstructionEraseFromParent(i);
    }
  }
  return emptied;
}

// ---- stack that nobody uses

// Where `what` stands in [from, end), or `end`.
static const char *find_text(const char *from, const char *end, const char *what) {
  const char *found = memmem(from, (size_t)(end - from), what, strlen(what));
  return found ? found : end;
}

// Appends PTX without the stack frames that no instruction refers to: of vectors of 4-bit elements LLVM keeps the slots
// of temporaries that it did without in the end, and ptxas reserves local memory for them in every thread.
static void append_without_unused_stack(const char *text, size_t len, tl_strbuf *out) {
  static const char frame[] = "\t.local .align ", name[] = "__local_depot", pointer[] = "\t.reg .b64 \t%SP";
  const char *end = text + len;
  while (text < end) {
    const char *line = find_text(text, end, frame), *name_at = find_text(line, end, name);
    const char *body_end = find_text(line, end, "\n}\n"), *line_end = find_text(line, end, "\n");
    tl_strbuf_append(out, (tl_str){text, (size_t)(line - text)});
    if (line == end) return;
    bool is_used = name_at > line_end || find_text(line_end, body_end, name) < body_end;
    text = line;
    if (is_used) {
      tl_strbuf_append(out, (tl_str){line, (size_t)(line_end - line)});
      text = line_end;
      continue;
    }
    // Its line goes, and those of the two registers that would point to it.
    do {
      line_end = find_text(text, end, "\n");
      text = line_end < end ? line_end + 1 : end;
    } while ((size_t)(end - text) > strlen(pointer) && strncmp(text, pointer, strlen(pointer)) == 0);
  }
}

static tl_status emit_module(tl_backend *backend, LLVMModuleRef module, tl_strbuf *out) {
  tl_session *session = &backend->session;
  bool emptied = false;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    emptied = drop_undefined_stores(f) || emptied;
  if (emptied) TL_TRY(run_passes(session, module, "function(dce,loop(loop-deletion),simplifycfg)"));
  tl_session_fill_asm(session, module);
  bool assumes = LLVMGetNamedFunction(module, tl_device_op_of(TL_DEVOP_ASSUME)->name) != NULL;
  TL_TRY(run_passes(session, module, assumes ? "always-inline,function(adce),globaldce" : "always-inline,globaldce"));
  TL_TRY(tl_session_verify(session, module, "code generation"));
  emit_call call = {.machine = session->machine, .module = module};
  TL_TRY(tl_session_guard(session, "code generation", call_emit, &call));
  if (call.failed) return tl_session_message_status("code generation", call.message);
  tl_strbuf text;
  tl_strbuf_init(&text);
  append_without_unused_stack(LLVMGetBufferStart(call.buffer), LLVMGetBufferSize(call.buffer), &text);
  if (backend->keeps_blocks)
    tl_strbuf_append(out, tl_strbuf_view(&text));
  else
    tl_ptx_fit_blocks(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  LLVMDisposeMemoryBuffer(call.buffer);
  return tl_session_take_errors(session, "code generation");
}

static tl_status emit_ptx(tl_backend *backend, bool has_lines, tl_strbuf *out) {
  TL_TRY(tl_backend_optimise(backend));
  tl_manifest_write(&backend->manifest, "// ", out);
  tl_strbuf_append_c(out, "\n");
  LLVMModuleRef module = LLVMCloneModule(backend->optimised);
  if (!has_lines) LLVMStripModuleDebugInfo(module);
  tl_status status = emit_module(backend, module, out);
  if (!backend->session.is_abandoned) LLVMDisposeModule(module);
  return status;
}

tl_status tl_backend_emit_ptx(tl_backend *backend, tl_strbuf *out) {
  return emit_ptx(backend, false, out);
}

tl_status tl_backend_emit_ptx_lines(tl_backend *backend, tl_strbuf *out) {
  return emit_ptx(backend, true, out);
}
