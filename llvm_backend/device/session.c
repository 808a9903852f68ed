// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/session.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"
#include "support/tensormap.h"

#define TL_TRIPLE "nvptx64-nvidia-cuda"

static pthread_once_t llvm_once = PTHREAD_ONCE_INIT;

static void initialize_once(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

// Registers the NVPTX target once a process; thread-safe.
static void initialize_llvm(void) {
  pthread_once(&llvm_once, initialize_once);
}

// LLVM's default handler exits the process on errors; this one keeps them for tl_session_take_errors.
static void capture_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  tl_session *session = user;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  if (session->errors.len > 0) tl_strbuf_append_c(&session->errors, "; ");
  tl_strbuf_append_c(&session->errors, text);
  LLVMDisposeMessage(text);
}

static void cache_types(tl_session *s) {
  LLVMContextRef c = s->context;
  s->void_type = LLVMVoidTypeInContext(c);
  s->i1 = LLVMInt1TypeInContext(c);
  s->i4 = LLVMIntTypeInContext(c, 4);
  s->i8 = LLVMInt8TypeInContext(c);
  s->i16 = LLVMInt16TypeInContext(c);
  s->i32 = LLVMInt32TypeInContext(c);
  s->i64 = LLVMInt64TypeInContext(c);
  s->f16 = LLVMHalfTypeInContext(c);
  s->bf16 = LLVMBFloatTypeInContext(c);
  s->f32 = LLVMFloatTypeInContext(c);
  s->f64 = LLVMDoubleTypeInContext(c);
  s->global_ptr = LLVMPointerTypeInContext(c, TL_ADDRSPACE_GLOBAL);
  s->shared_ptr = LLVMPointerTypeInContext(c, TL_ADDRSPACE_SHARED);
  s->generic_ptr = LLVMPointerTypeInContext(c, TL_ADDRSPACE_GENERIC);
  s->cluster_ptr = LLVMPointerTypeInContext(c, TL_ADDRSPACE_CLUSTER);
  s->v2f16 = LLVMVectorType(s->f16, 2);
  s->v2bf16 = LLVMVectorType(s->bf16, 2);
}

tl_status tl_session_init(tl_session *session, const tl_target *target, int opt_level) {
  memset(session, 0, sizeof *session);
  initialize_llvm();
  tl_guard_install();
  session->target = target;
  session->opt_level = opt_level;
  tl_strbuf_init(&session->errors);
  session->context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(session->context, capture_diagnostic, session);
  LLVMContextSetDiscardValueNames(session->context, 1);
  cache_types(session);
  return TL_OK;
}

void tl_session_fini(tl_session *session) {
  if (!session->is_abandoned) {
    if (session->module) LLVMDisposeModule(session->module);
    if (session->machine) LLVMDisposeTargetMachine(session->machine);
    if (session->context) LLVMContextDispose(session->context);
  }
  tl_strbuf_fini(&session->errors);
  memset(session, 0, sizeof *session);
}

tl_status tl_session_guard(tl_session *session, const char *where, tl_guarded_call *call, void *user) {
  if (session->is_abandoned) return tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM gave up before", where);
  tl_status status = tl_guard_run(where, call, user);
  if (status) {
    session->is_abandoned = true;
    tl_guard_abandon(session->context);
  }
  return status;
}

tl_status tl_session_message_status(const char *where, char *message) {
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM: %s", where, message ? message : "unknown error");
  LLVMDisposeMessage(message);
  return status;
}

tl_status tl_session_machine(tl_session *session, int ptx_version) {
  int level = session->opt_level;
  if (session->machine && session->machine_ptx == ptx_version && session->machine_opt == level) return TL_OK;
  if (session->machine) LLVMDisposeTargetMachine(session->machine);
  session->machine = NULL;
  LLVMTargetRef llvm_target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(TL_TRIPLE, &llvm_target, &message))
    return tl_session_message_status("looking up " TL_TRIPLE, message);
  char feature[16];
  // The PTX version is a subtarget feature; a function attribute would not do.
  snprintf(feature, sizeof feature, "+ptx%d", ptx_version);
  session->machine = LLVMCreateTargetMachine(llvm_target, TL_TRIPLE, session->target->name, feature,
                                             level == 0 ? LLVMCodeGenLevelLess : LLVMCodeGenLevelAggressive,
                                             LLVMRelocDefault, LLVMCodeModelDefault);
  if (!session->machine) return tl_status_make(TL_STATUS_INTERNAL, "no target machine for %s", session->target->name);
  session->machine_ptx = ptx_version;
  session->machine_opt = level;
  return TL_OK;
}

tl_status tl_session_begin_module(tl_session *session, const char *name) {
  TL_TRY(tl_session_machine(session, session->target->ptx_floor));
  session->module = LLVMModuleCreateWithNameInContext(name, session->context);
  LLVMSetSourceFileName(session->module, name, strlen(name));
  LLVMSetTarget(session->module, TL_TRIPLE);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(session->machine);
  LLVMSetModuleDataLayout(session->module, layout);
  LLVMDisposeTargetData(layout);
  return TL_OK;
}

static uint64_t parameter_bytes(LLVMTypeRef type, uint64_t *out_align) {
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  uint64_t bytes = 8;
  if (kind == LLVMIntegerTypeKind) bytes = (LLVMGetIntTypeWidth(type) + 7) / 8;
  if (kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind) bytes = 2;
  if (kind == LLVMFloatTypeKind) bytes = 4;
  *out_align = bytes;
  bool is_map = kind == LLVMPointerTypeKind && LLVMGetPointerAddressSpace(type) == TL_ADDRSPACE_GENERIC;
  if (!is_map) return bytes;
  *out_align = TL_TENSORMAP_ALIGN;
  return TL_TENSORMAP_BYTES;
}

uint64_t tl_session_parameter_bytes(LLVMTypeRef const *types, size_t n) {
  uint64_t bytes = 0, align;
  for (size_t i = 0; i < n; i++) {
    uint64_t size = parameter_bytes(types[i], &align);
    bytes = (bytes + align - 1) / align * align + size;
  }
  return bytes;
}

// Of a function that takes more than every version allows.
static int ptx_for_parameters(LLVMValueRef function) {
  enum { ANY_VERSION_BYTES = 4352, WIDE_PTX = 81 };  // PTX ISA, Kernel Function Parameters
  LLVMTypeRef type = LLVMGlobalGetValueType(function);
  size_t n = LLVMCountParamTypes(type);
  if (LLVMIsDeclaration(function)) return 0;
  LLVMTypeRef *types = tl_xcalloc(n, sizeof(LLVMTypeRef));
  LLVMGetParamTypes(type, types);
  uint64_t bytes = tl_session_parameter_bytes(types, n);
  free(types);
  return bytes > ANY_VERSION_BYTES ? WIDE_PTX : 0;
}

int tl_session_needed_ptx(const tl_session *session, LLVMModuleRef module) {
  int needed = session->target->ptx_floor;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t len;
    const char *data = LLVMGetValueName2(f, &len);
    tl_str name = {data, len};
    tl_device_op_id id = tl_device_op_find(name);
    int min_ptx = id != TL_DEVOP_COUNT ? tl_device_op_of(id)->min_ptx : 0;
    tl_wgmma_form form;
    if (tl_wgmma_form_parse(name, &form)) min_ptx = tl_wgmma_min_ptx(&form);
    if (ptx_for_parameters(f) > min_ptx) min_ptx = ptx_for_parameters(f);
    if (min_ptx > needed) needed = min_ptx;
  }
  return needed;
}

tl_status tl_session_take_errors(tl_session *session, const char *where) {
  if (session->errors.len == 0) return TL_OK;
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM: %s", where, tl_strbuf_c(&session->errors));
  tl_strbuf_clear(&session->errors);
  return status;
}

tl_status tl_session_verify(tl_session *session, LLVMModuleRef module, const char *where) {
  char *message = NULL;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) return tl_session_message_status(where, message);
  LLVMDisposeMessage(message);
  return tl_session_take_errors(session, where);
}

LLVMTypeRef tl_session_type(const tl_session *s, tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F64:
      return s->f64;
    case TL_DTYPE_F32:
    case TL_DTYPE_TF32:
      return s->f32;
    case TL_DTYPE_F16:
      return s->f16;
    case TL_DTYPE_BF16:
      return s->bf16;
    case TL_DTYPE_I64:
    case TL_DTYPE_U64:
      return s->i64;
    case TL_DTYPE_I32:
    case TL_DTYPE_U32:
      return s->i32;
    case TL_DTYPE_I16:
    case TL_DTYPE_U16:
      return s->i16;
    case TL_DTYPE_I8:
    case TL_DTYPE_U8:
    case TL_DTYPE_F8E4M3:
    case TL_DTYPE_F8E5M2:
      return s->i8;
    case TL_DTYPE_I4:
    case TL_DTYPE_U4:
    case TL_DTYPE_F4E2M1:
      return s->i4;
    case TL_DTYPE_BOOL:
      return s->i1;
    case TL_DTYPE_NONE:
    case TL_DTYPE_COUNT:
      return NULL;
  }
  return NULL;
}

LLVMTypeRef tl_session_memory_type(const tl_session *s, tl_dtype dtype) {
  return dtype == TL_DTYPE_BOOL || tl_dtype_bits(dtype) < 8 ? s->i8 : tl_session_type(s, dtype);
}

LLVMValueRef tl_session_i32(const tl_session *s, int64_t value) {
  return LLVMConstInt(s->i32, (unsigned long long)value, 1);
}
LLVMValueRef tl_session_i64(const tl_session *s, int64_t value) {
  return LLVMConstInt(s->i64, (unsigned long long)value, 1);
}
LLVMValueRef tl_session_bool(const tl_session *s, bool value) {
  return LLVMConstInt(s->i1, value, 0);
}

void tl_session_add_attribute(tl_session *session, LLVMValueRef function, int index, const char *name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)index, LLVMCreateEnumAttribute(session->context, kind, value));
}

void tl_session_add_string_attribute(tl_session *session, LLVMValueRef function, const char *name, const char *value) {
  LLVMAddAttributeAtIndex(
      function, LLVMAttributeFunctionIndex,
      LLVMCreateStringAttribute(session->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

LLVMValueRef tl_session_call_intrinsic(tl_session *session, LLVMBuilderRef builder, const char *name,
                                       LLVMTypeRef *overloads, unsigned num_overloads, LLVMValueRef *args,
                                       unsigned num_args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(session->module, id, overloads, num_overloads);
  return LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, args, num_args, "");
}
