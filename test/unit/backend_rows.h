// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests: a kernel that uses one device op, as PTX.
#ifndef TL_TEST_UNIT_BACKEND_ROWS_H
#define TL_TEST_UNIT_BACKEND_ROWS_H

#include <check.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/device/session.h"

static inline const tl_target *lowest_target(const tl_device_op *op) {
  return tl_target_find(tl_str_from(tl_device_op_is_arch_specific(op) ? "sm_90a"
                                    : op->min_sm <= 80                ? "sm_80"
                                    : op->min_sm <= 86                ? "sm_86"
                                    : op->min_sm <= 89                ? "sm_89"
                                                                      : "sm_90"));
}

// Immediates that one value is not as good as another for.
static inline int64_t immediate(const tl_device_op *op) {
  if (strstr(op->name, "setmaxnreg")) return 64;
  return strstr(op->name, "tensormap_generic.acquire") ? 128 : 0;
}

// An argument of the wanted type out of the kernel's two pointers, or an immediate.
static inline LLVMValueRef argument(tl_session *s, LLVMBuilderRef b, const tl_device_op *op, LLVMTypeRef type,
                                    char letter, LLVMValueRef function, LLVMValueRef shared) {
  if (letter == 'g') return LLVMGetParam(function, 0);
  if (letter == 'p') return shared;
  if (letter == 'P') return LLVMBuildAddrSpaceCast(b, shared, s->cluster_ptr, "");
  if (letter == 'I') return tl_session_i32(s, immediate(op));
  if (letter == 'B') return tl_session_bool(s, true);
  if (letter == 'G') return LLVMBuildAddrSpaceCast(b, LLVMGetParam(function, 1), type, "");
  if (letter == 'L') return tl_session_i64(s, 0);
  if (letter == 'b') {
    LLVMValueRef word = LLVMBuildLoad2(b, s->i32, LLVMGetParam(function, 1), "");
    return LLVMBuildTrunc(b, word, s->i1, "");
  }
  LLVMValueRef load = LLVMBuildLoad2(b, type, LLVMGetParam(function, 1), "");
  LLVMSetVolatile(load, 1);
  return load;
}

static inline void store_results(LLVMBuilderRef b, LLVMValueRef result, LLVMValueRef pointer) {
  LLVMTypeRef type = LLVMTypeOf(result);
  if (LLVMGetTypeKind(type) == LLVMVoidTypeKind) return;
  unsigned n = LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 0;
  for (unsigned i = 0; i < n; i++)
    LLVMSetVolatile(LLVMBuildStore(b, LLVMBuildExtractValue(b, result, i, ""), pointer), 1);
  if (n == 0) LLVMSetVolatile(LLVMBuildStore(b, result, pointer), 1);
}

static inline void build_kernel(tl_session *s, tl_device_op_id id) {
  const tl_device_op *op = tl_device_op_of(id);
  LLVMTypeRef params[] = {s->global_ptr, s->global_ptr};
  LLVMValueRef function = LLVMAddFunction(s->module, "k", LLVMFunctionType(s->void_type, params, 2, 0));
  LLVMSetFunctionCallConv(function, 71);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(s->context);
  LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(s->context, function, ""));
  LLVMValueRef shared = LLVMAddGlobalInAddressSpace(s->module, LLVMArrayType2(s->i8, 0), "sm", TL_ADDRSPACE_SHARED);
  LLVMSetAlignment(shared, 1024);
  LLVMTypeRef type = tl_session_device_type(s, op->signature), types[16];
  LLVMGetParamTypes(type, types);
  LLVMValueRef args[16];
  unsigned n = LLVMCountParamTypes(type);
  const char *letters = strchr(op->signature, '(') + 1;
  for (unsigned i = 0; i < n; i++) args[i] = argument(s, b, op, types[i], letters[i], function, shared);
  LLVMValueRef result = tl_session_call_device(s, b, id, args, n);
  store_results(b, result, LLVMGetParam(function, 1));
  LLVMBuildRetVoid(b);
  LLVMDisposeBuilder(b);
}

static inline void check_status(tl_status status, const char *name) {
  if (status) ck_abort_msg("%s: %s", name, tl_status_message(status));
}

// PTX of a kernel that uses the op once; free() it.
static inline char *compile_row(tl_device_op_id id) {
  const tl_device_op *op = tl_device_op_of(id);
  const tl_target *target = lowest_target(op);
  tl_session s;
  check_status(tl_session_init(&s, target, 3), op->name);
  check_status(tl_session_begin_module(&s, "row"), op->name);
  build_kernel(&s, id);
  LLVMValueRef function = s.device_functions[id];
  bool is_function = tl_device_op_is_ours(op) || op->family == TL_DEVICE_FAMILY_RUNTIME;
  ck_assert_msg(is_function == (LLVMGetIntrinsicID(function) == 0), "%s: not an intrinsic of this LLVM", op->name);
  ck_assert_str_eq(LLVMGetValueName2(function, &(size_t){0}), op->name);
  check_status(tl_session_verify(&s, s.module, op->name), op->name);
  ck_assert_int_ge(tl_session_needed_ptx(&s, s.module), op->min_ptx);
  check_status(tl_session_machine(&s, tl_session_needed_ptx(&s, s.module)), op->name);
  tl_session_fill_asm(&s, s.module);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(s.module, "always-inline,globaldce", s.machine, options);
  ck_assert(error == NULL);
  LLVMDisposePassBuilderOptions(options);
  LLVMMemoryBufferRef out = NULL;
  char *message = NULL;
  ck_assert_msg(!LLVMTargetMachineEmitToMemoryBuffer(s.machine, s.module, LLVMAssemblyFile, &message, &out), "%s",
                op->name);
  check_status(tl_session_take_errors(&s, op->name), op->name);
  char *ptx = strndup(LLVMGetBufferStart(out), LLVMGetBufferSize(out));
  LLVMDisposeMemoryBuffer(out);
  tl_session_fini(&s);
  return ptx;
}

#endif
