// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device operations as LLVM functions: declarations with their attributes, calls, and the inline-asm bodies of tl.*
// ones.
#include <string.h>

#include "llvm_backend/device/session.h"

static LLVMTypeRef letter_type(const tl_session *s, char letter) {
  switch (letter) {
    case 'b':
    case 'B':
      return s->i1;
    case 's':
      return s->i16;
    case 'i':
    case 'I':
      return s->i32;
    case 'l':
    case 'L':
      return s->i64;
    case 'e':
      return s->f16;
    case 'y':
      return s->bf16;
    case 'f':
      return s->f32;
    case 'd':
      return s->f64;
    case 'E':
      return s->v2f16;
    case 'Y':
      return s->v2bf16;
    case 'g':
      return s->global_ptr;
    case 'p':
      return s->shared_ptr;
    case 'P':
      return s->cluster_ptr;
    case 'G':
      return s->generic_ptr;
  }
  return NULL;
}

LLVMTypeRef tl_session_device_type(tl_session *session, const char *signature) {
  LLVMTypeRef results[TL_DEVICE_MAX_OPERANDS], params[TL_DEVICE_MAX_OPERANDS];
  unsigned num_results = 0, num_params = 0;
  const char *at = signature;
  for (; *at != '('; at++) results[num_results++] = letter_type(session, *at);
  for (at++; *at != ')'; at++) params[num_params++] = letter_type(session, *at);
  LLVMTypeRef result = session->void_type;
  if (num_results == 1) result = results[0];
  if (num_results > 1) result = LLVMStructTypeInContext(session->context, results, num_results, 0);
  return LLVMFunctionType(result, params, num_params, 0);
}

// LLVM's encoding of memory(...): two bits (1 read, 2 write) a location, argument memory first, then inaccessible
// memory, errno and the rest.
static uint64_t memory_effects(tl_device_effect effect) {
  switch (effect) {
    case TL_DEVICE_EFFECT_NONE:
      return 0;
    case TL_DEVICE_EFFECT_READ:
      return 1;
    case TL_DEVICE_EFFECT_WRITE:
      return 2;
    case TL_DEVICE_EFFECT_ATOMIC:
      return 3;
    case TL_DEVICE_EFFECT_MARK:
      return 3 << 2;
    case TL_DEVICE_EFFECT_ASYNC:
    case TL_DEVICE_EFFECT_SYNC:
      break;
  }
  return UINT64_MAX;
}

static void declare_attributes(tl_session *session, const tl_device_op *op, LLVMValueRef function) {
  tl_session_add_attribute(session, function, -1, "nounwind", 0);
  tl_session_add_attribute(session, function, -1, "willreturn", 0);
  tl_session_add_attribute(session, function, -1, "nocallback", 0);
  if (op->scope != TL_DEVICE_SCOPE_THREAD) tl_session_add_attribute(session, function, -1, "convergent", 0);
  uint64_t memory = memory_effects(op->effect);
  if (memory != UINT64_MAX) tl_session_add_attribute(session, function, -1, "memory", memory);
  if (op->family != TL_DEVICE_FAMILY_UNDEFINED) return;
  // LLVM may treat it as the constant that it becomes.
  tl_session_add_attribute(session, function, -1, "speculatable", 0);
  tl_session_add_attribute(session, function, LLVMAttributeReturnIndex, "noundef", 0);
}

// The function for `id` in the session's module. LLVM gives intrinsics their attributes by name.
static LLVMValueRef device_function(tl_session *session, tl_device_op_id id) {
  if (session->device_functions[id]) return session->device_functions[id];
  const tl_device_op *op = tl_device_op_of(id);
  session->device_types[id] = tl_session_device_type(session, op->signature);
  LLVMValueRef function = LLVMAddFunction(session->module, op->name, session->device_types[id]);
  if (tl_device_op_is_ours(op)) declare_attributes(session, op, function);
  session->device_functions[id] = function;
  return function;
}

LLVMValueRef tl_session_call_device(tl_session *session, LLVMBuilderRef builder, tl_device_op_id id, LLVMValueRef *args,
                                    unsigned num_args) {
  LLVMValueRef function = device_function(session, id);
  return LLVMBuildCall2(builder, session->device_types[id], function, args, num_args, "");
}

LLVMValueRef tl_session_call_wgmma(tl_session *session, LLVMBuilderRef builder, tl_str name, LLVMValueRef *args,
                                   unsigned num_args) {
  tl_wgmma_op op;
  if (!tl_wgmma_op_make(name, &op)) return NULL;
  LLVMTypeRef type = tl_session_device_type(session, op.row.signature);
  LLVMValueRef function = LLVMGetNamedFunction(session->module, op.row.name);
  if (!function) {
    function = LLVMAddFunction(session->module, op.row.name, type);
    declare_attributes(session, &op.row, function);
  }
  tl_wgmma_op_fini(&op);
  return LLVMBuildCall2(builder, type, function, args, num_args, "");
}

LLVMValueRef tl_session_call_wgmma_form(tl_session *session, LLVMBuilderRef builder, const tl_wgmma_form *form,
                                        LLVMValueRef *args, unsigned num_args) {
  tl_strbuf name = {0};
  tl_wgmma_form_name(form, &name);
  LLVMValueRef call = tl_session_call_wgmma(session, builder, tl_strbuf_view(&name), args, num_args);
  tl_strbuf_fini(&name);
  return call;
}

LLVMValueRef tl_session_call_wgmma_wait(tl_session *session, LLVMBuilderRef builder, const tl_wgmma_wait *wait,
                                        LLVMValueRef *args, unsigned num_args) {
  tl_strbuf name = {0};
  tl_wgmma_wait_name(wait, &name);
  LLVMValueRef call = tl_session_call_wgmma(session, builder, tl_strbuf_view(&name), args, num_args);
  tl_strbuf_fini(&name);
  return call;
}

// The body of `function` at the end of `builder`'s block: one piece of inline assembly.
static void build_asm_body(tl_session *session, LLVMBuilderRef builder, const tl_device_op *op, LLVMValueRef function) {
  LLVMTypeRef type = LLVMGlobalGetValueType(function);
  // Loads are volatile too: without it the code generator could move them over stores that it sees no relation to.
  bool side_effect = op->effect != TL_DEVICE_EFFECT_NONE || op->scope != TL_DEVICE_SCOPE_THREAD;
  LLVMValueRef body = LLVMGetInlineAsm(type, op->asm_text, strlen(op->asm_text), op->asm_constraints,
                                       strlen(op->asm_constraints), side_effect, 0, LLVMInlineAsmDialectATT, 0);
  LLVMValueRef args[TL_DEVICE_MAX_OPERANDS];
  LLVMGetParams(function, args);
  LLVMValueRef call = LLVMBuildCall2(builder, type, body, args, LLVMCountParams(function), "");
  unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
  LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(session->context, nounwind, 0));
  if (op->scope != TL_DEVICE_SCOPE_THREAD)
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(session->context, convergent, 0));
  if (LLVMGetTypeKind(LLVMGetReturnType(type)) == LLVMVoidTypeKind)
    LLVMBuildRetVoid(builder);
  else
    LLVMBuildRet(builder, call);
}

static void fill_one(tl_session *session, const tl_device_op *op, LLVMValueRef function) {
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(session->context);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(session->context, function, ""));
  if (op->family == TL_DEVICE_FAMILY_UNDEFINED)
    LLVMBuildRet(builder, LLVMConstNull(LLVMGetReturnType(LLVMGlobalGetValueType(function))));
  else if (op->family == TL_DEVICE_FAMILY_ASSUMED)
    LLVMBuildRetVoid(builder);
  else
    build_asm_body(session, builder, op, function);
  LLVMDisposeBuilder(builder);
  LLVMSetLinkage(function, LLVMInternalLinkage);
  unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);
  LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, memory);
  tl_session_add_attribute(session, function, -1, "alwaysinline", 0);
}

void tl_session_fill_asm(tl_session *session, LLVMModuleRef module) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t len;
    const char *data = LLVMGetValueName2(f, &len);
    tl_str name = {data, len};
    if (!LLVMIsDeclaration(f) || !tl_str_starts_with(name, "tl.")) continue;
    tl_device_op_id id = tl_device_op_find(name);
    tl_wgmma_op wgmma;
    if (id != TL_DEVOP_COUNT) {
      fill_one(session, tl_device_op_of(id), f);
    } else if (tl_wgmma_op_make(name, &wgmma)) {
      fill_one(session, &wgmma.row, f);
      tl_wgmma_op_fini(&wgmma);
    }
  }
}
