// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host code for the emulator and for references. One LLJIT a process; each module lives in a JITDylib of its own, so
// that names never clash and destroying it gives its memory back. The C API cannot remove a JITDylib: emptied ones are
// reused.
#include "llvm_backend/jit/host_jit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/device/guard.h"
#include "llvm_backend/jit/host_libcalls.h"
#include "support/strbuf.h"
#include "support/vec.h"

struct tl_host_jit {
  LLVMOrcJITDylibRef dylib;  // Borrowed from the session; back to the pool on destroy.
  char **names;              // Owned. Functions of the module that can be looked up.
  void **addresses;          // Owned.
  size_t num_functions;
};

// All of it is made once and lives as long as the process.
static struct {
  pthread_once_t once;
  pthread_mutex_t mutex;  // guards everything below `failure`
  char *triple, *cpu, *features;
  LLVMTargetRef target;
  LLVMOrcLLJITRef lljit;
  LLVMOrcExecutionSessionRef session;
  const char *failure;  // why there is no JIT; NULL when there is one
  tl_strbuf errors;     // what the session reported during the present link
  TL_VEC(LLVMOrcJITDylibRef) free_dylibs;
  unsigned num_dylibs;
} jit = {.once = PTHREAD_ONCE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER};

static void report_session_error(void *context, LLVMErrorRef error) {
  (void)context;
  char *text = LLVMGetErrorMessage(error);
  if (jit.errors.len) tl_strbuf_append_c(&jit.errors, "; ");
  tl_strbuf_append_c(&jit.errors, text);
  LLVMDisposeErrorMessage(text);
}

static LLVMTargetMachineRef create_target_machine(LLVMCodeGenOptLevel level) {
  return LLVMCreateTargetMachine(jit.target, jit.triple, jit.cpu, jit.features, level, LLVMRelocPIC,
                                 LLVMCodeModelJITDefault);
}

static void start_jit(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
  jit.triple = LLVMGetDefaultTargetTriple();
  jit.cpu = LLVMGetHostCPUName();
  // vcvtneps2bf16 flushes subnormals, which neither the device nor other hosts do: results would depend on the host.
  tl_strbuf features = {0};
  char *host_features = LLVMGetHostCPUFeatures();
  tl_strbuf_appendf(&features, "%s,-avx512bf16,-avx512fp16", host_features);
  LLVMDisposeMessage(host_features);
  jit.features = tl_strbuf_take(&features);
  char *message = NULL;
  if (LLVMGetTargetFromTriple(jit.triple, &jit.target, &message)) {
    jit.failure = message;
    return;
  }
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
      builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(create_target_machine(LLVMCodeGenLevelNone)));
  LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit.lljit, builder);
  if (error) {
    jit.failure = LLVMGetErrorMessage(error);
    return;
  }
  jit.session = LLVMOrcLLJITGetExecutionSession(jit.lljit);
  LLVMOrcExecutionSessionSetErrorReporter(jit.session, report_session_error, NULL);
}

static tl_status ensure_jit(void) {
  pthread_once(&jit.once, start_jit);
  if (jit.failure) return tl_status_make(TL_STATUS_UNSUPPORTED, "cannot compile for this CPU: %s", jit.failure);
  return TL_OK;
}

tl_status tl_host_jit_prepare_module(void *llvm_module) {
  TL_TRY(ensure_jit());
  LLVMTargetMachineRef machine = create_target_machine(LLVMCodeGenLevelNone);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetTarget(llvm_module, jit.triple);
  LLVMSetModuleDataLayout(llvm_module, layout);
  LLVMDisposeTargetData(layout);
  LLVMDisposeTargetMachine(machine);
  return TL_OK;
}

static void collect_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  tl_strbuf *errors = context;
  char *text = LLVMGetDiagInfoDescription(info);
  if (errors->len) tl_strbuf_append_c(errors, "; ");
  tl_strbuf_append_c(errors, text);
  LLVMDisposeMessage(text);
}

static LLVMCodeGenOptLevel codegen_level(int level) {
  if (level <= 0) return LLVMCodeGenLevelNone;
  if (level == 1) return LLVMCodeGenLevelLess;
  return level == 2 ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelAggressive;
}

typedef struct emission {
  LLVMModuleRef module;
  const char *passes;
  int level;
  LLVMMemoryBufferRef *out_object;
  tl_status status;  // out
} emission;

// Takes the bits of a bf16 by way of a vector: where the sign alone is asked for, LLVM's x86 backend (LLVM 22) takes
// that of an f32 in its place, which is 0, at every level.
static void take_bf16_bits(LLVMValueRef function, LLVMBuilderRef builder, LLVMContextRef context) {
  LLVMTypeRef i16 = LLVMInt16TypeInContext(context), i32 = LLVMInt32TypeInContext(context);
  LLVMTypeRef pair = LLVMVectorType(LLVMBFloatTypeInContext(context), 2);
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      if (LLVMGetInstructionOpcode(i) != LLVMBitCast || LLVMTypeOf(i) != i16) continue;
      LLVMValueRef value = LLVMGetOperand(i, 0);
      if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMBFloatTypeKind) continue;
      LLVMPositionBuilderBefore(builder, i);
      LLVMValueRef vector = LLVMBuildInsertElement(builder, LLVMGetPoison(pair), value, LLVMConstInt(i32, 0, 0), "");
      LLVMValueRef word = LLVMBuildBitCast(builder, vector, i32, "");
      LLVMReplaceAllUsesWith(i, LLVMBuildTrunc(builder, word, i16, ""));
      LLVMInstructionEraseFromParent(i);
    }
  }
}

static void avoid_bf16_bitcasts(LLVMModuleRef module) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    take_bf16_bits(f, builder, context);
  LLVMDisposeBuilder(builder);
}

// Verifies, optimises and emits. `*out_object` is owned by the caller.
static tl_status emit_object(LLVMModuleRef module, const char *passes, int level, LLVMMemoryBufferRef *out_object) {
  char *message = NULL;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    tl_status status = tl_status_make(TL_STATUS_INTERNAL, "host module does not verify: %s", message);
    LLVMDisposeMessage(message);
    return status;
  }
  LLVMDisposeMessage(message);
  LLVMTargetMachineRef machine = create_target_machine(codegen_level(level));
  tl_status status = TL_OK;
  if (passes && *passes) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (error) {
      char *text = LLVMGetErrorMessage(error);
      status = tl_status_make(TL_STATUS_INTERNAL, "host passes '%s' failed: %s", passes, text);
      LLVMDisposeErrorMessage(text);
    }
  }
  if (!status) avoid_bf16_bitcasts(module);
  if (!status && LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, out_object)) {
    status = tl_status_make(TL_STATUS_INTERNAL, "host code generation failed: %s", message);
    LLVMDisposeMessage(message);
  } else if (!status && !*out_object) {
    status = tl_status_out_of_memory();  // LLVM has no word for it
  }
  LLVMDisposeTargetMachine(machine);
  return status;
}

static void call_emit_object(void *user) {
  emission *e = user;
  e->status = emit_object(e->module, e->passes, e->level, e->out_object);
}

static bool module_defines(LLVMModuleRef module, const char *name) {
  LLVMValueRef function = LLVMGetNamedFunction(module, name);
  if (function) return !LLVMIsDeclaration(function);
  LLVMValueRef global = LLVMGetNamedGlobal(module, name);
  return global && !LLVMIsDeclaration(global);
}

typedef TL_VEC(tl_host_symbol) symbol_vec;

// Symbols of the caller, then libcalls; what the module defines itself, or an earlier symbol names, is left out.
static void gather_symbols(LLVMModuleRef module, const tl_host_symbol *symbols, size_t num_symbols, symbol_vec *out) {
  for (size_t i = 0; i < num_symbols; i++)
    if (!module_defines(module, symbols[i].name)) tl_vec_push(out, symbols[i]);
  size_t own = out->len, num_libcalls;
  const tl_host_symbol *libcalls = tl_host_libcalls(&num_libcalls);
  for (size_t i = 0; i < num_libcalls; i++) {
    bool hidden = module_defines(module, libcalls[i].name);
    for (size_t k = 0; k < own && !hidden; k++) hidden = !strcmp(out->items[k].name, libcalls[i].name);
    if (!hidden) tl_vec_push(out, libcalls[i]);
  }
}

static void gather_functions(LLVMModuleRef module, tl_host_jit *out) {
  size_t count = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) count++;
  out->names = tl_xcalloc(count + 1, sizeof *out->names);
  out->addresses = tl_xcalloc(count + 1, sizeof *out->addresses);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    LLVMLinkage linkage = LLVMGetLinkage(f);
    if (LLVMIsDeclaration(f) || linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage) continue;
    size_t len;
    const char *name = LLVMGetValueName2(f, &len);
    char *copy = tl_xmalloc(len + 1);
    memcpy(copy, name, len);
    copy[len] = 0;
    out->names[out->num_functions++] = copy;
  }
}

static LLVMOrcJITDylibRef take_dylib(void) {
  if (jit.free_dylibs.len) return tl_vec_pop(&jit.free_dylibs);
  char name[32];
  snprintf(name, sizeof name, "tl.module.%u", jit.num_dylibs++);
  return LLVMOrcExecutionSessionCreateBareJITDylib(jit.session, name);
}

static void give_back_dylib(LLVMOrcJITDylibRef dylib) {
  LLVMErrorRef error = LLVMOrcJITDylibClear(dylib);
  if (error) {
    LLVMConsumeError(error);
    return;  // leave it alone: a dylib that cannot be emptied must not be reused
  }
  tl_vec_push(&jit.free_dylibs, dylib);
}

static tl_status link_failure(LLVMErrorRef error, const char *doing) {
  char *text = LLVMGetErrorMessage(error);
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "host JIT: %s: %s%s%s", doing, text, jit.errors.len ? ": " : "",
                                    tl_strbuf_c(&jit.errors));
  LLVMDisposeErrorMessage(text);
  return status;
}

// The result of one lookup; filled in by another thread when the session runs its tasks elsewhere.
typedef struct lookup_state {
  pthread_mutex_t mutex;
  pthread_cond_t done_condition;
  bool done;
  tl_host_jit *target;
  LLVMErrorRef error;
} lookup_state;

static void receive_addresses(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, size_t num_pairs, void *context) {
  lookup_state *state = context;
  pthread_mutex_lock(&state->mutex);
  state->error = error;
  for (size_t i = 0; !error && i < num_pairs; i++) {
    const char *name = LLVMOrcSymbolStringPoolEntryStr(pairs[i].Name);
    for (size_t k = 0; k < state->target->num_functions; k++)
      if (!strcmp(state->target->names[k], name)) state->target->addresses[k] = (void *)(uintptr_t)pairs[i].Sym.Address;
  }
  state->done = true;
  pthread_cond_signal(&state->done_condition);
  pthread_mutex_unlock(&state->mutex);
}

static LLVMErrorRef resolve_functions(tl_host_jit *target) {
  size_t n = target->num_functions;
  if (!n) return NULL;
  LLVMOrcCLookupSetElement *wanted = tl_xcalloc(n, sizeof *wanted);
  for (size_t i = 0; i < n; i++) {
    wanted[i].Name = LLVMOrcExecutionSessionIntern(jit.session, target->names[i]);
    wanted[i].LookupFlags = LLVMOrcSymbolLookupFlagsRequiredSymbol;
  }
  LLVMOrcCJITDylibSearchOrderElement order = {target->dylib, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
  lookup_state state = {
      .mutex = PTHREAD_MUTEX_INITIALIZER, .done_condition = PTHREAD_COND_INITIALIZER, .target = target};
  LLVMOrcExecutionSessionLookup(jit.session, LLVMOrcLookupKindStatic, &order, 1, wanted, n, receive_addresses, &state);
  pthread_mutex_lock(&state.mutex);
  while (!state.done) pthread_cond_wait(&state.done_condition, &state.mutex);
  pthread_mutex_unlock(&state.mutex);
  pthread_cond_destroy(&state.done_condition);
  pthread_mutex_destroy(&state.mutex);
  free(wanted);
  return state.error;
}

// Consumes `object`. The session's mutex is held.
static tl_status link_object(tl_host_jit *target, LLVMMemoryBufferRef object, const symbol_vec *symbols) {
  tl_strbuf_clear(&jit.errors);
  target->dylib = take_dylib();
  LLVMOrcCSymbolMapPair *pairs = tl_xcalloc(symbols->len + 1, sizeof *pairs);
  for (size_t i = 0; i < symbols->len; i++) {
    pairs[i].Name = LLVMOrcExecutionSessionIntern(jit.session, symbols->items[i].name);
    pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbols->items[i].address;
    pairs[i].Sym.Flags.GenericFlags = LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
  }
  LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs, symbols->len);
  free(pairs);
  LLVMErrorRef error = LLVMOrcJITDylibDefine(target->dylib, unit);
  if (error) {
    LLVMOrcDisposeMaterializationUnit(unit);
    LLVMDisposeMemoryBuffer(object);
    return link_failure(error, "defining symbols");
  }
  error = LLVMOrcLLJITAddObjectFile(jit.lljit, target->dylib, object);
  if (error) return link_failure(error, "adding the object");
  error = resolve_functions(target);
  if (error) return link_failure(error, "linking");
  return TL_OK;
}

tl_status tl_host_jit_create(void *llvm_module, const char *passes, int level, const tl_host_symbol *symbols,
                             size_t num_symbols, tl_host_jit **out_jit) {
  *out_jit = NULL;
  LLVMModuleRef module = llvm_module;
  LLVMContextRef context = LLVMGetModuleContext(module);
  tl_strbuf diagnostics = {0};
  LLVMContextSetDiagnosticHandler(context, collect_diagnostic, &diagnostics);
  tl_host_jit *made = tl_xcalloc(1, sizeof *made);
  symbol_vec linked = {0};
  LLVMMemoryBufferRef object = NULL;
  bool gave_up = false;
  tl_status status = tl_host_jit_prepare_module(module);
  if (!status) {
    gather_symbols(module, symbols, num_symbols, &linked);
    emission call = {module, passes, level, &object, TL_OK};
    status = tl_guard_run("host code generation", call_emit_object, &call);
    gave_up = status != TL_OK;
    if (!status) status = call.status;
  }
  if (!status) gather_functions(module, made);
  if (!status && diagnostics.len) {
    status = tl_status_make(TL_STATUS_INTERNAL, "host code generation failed: %s", tl_strbuf_c(&diagnostics));
    LLVMDisposeMemoryBuffer(object);
  }
  if (gave_up) {
    tl_guard_abandon(context);
  } else {
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
  }
  tl_strbuf_fini(&diagnostics);
  if (!status) {
    pthread_mutex_lock(&jit.mutex);
    status = link_object(made, object, &linked);
    pthread_mutex_unlock(&jit.mutex);
  }
  tl_vec_fini(&linked);
  if (status) {
    tl_host_jit_destroy(made);
    return status;
  }
  *out_jit = made;
  return TL_OK;
}

void tl_host_jit_destroy(tl_host_jit *target) {
  if (!target) return;
  if (target->dylib) {
    pthread_mutex_lock(&jit.mutex);
    give_back_dylib(target->dylib);
    pthread_mutex_unlock(&jit.mutex);
  }
  for (size_t i = 0; i < target->num_functions; i++) free(target->names[i]);
  free(target->names);
  free(target->addresses);
  free(target);
}

void *tl_host_jit_lookup(tl_host_jit *target, const char *name) {
  for (size_t i = 0; i < target->num_functions; i++)
    if (!strcmp(target->names[i], name)) return target->addresses[i];
  return NULL;
}
