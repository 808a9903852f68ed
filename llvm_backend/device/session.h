// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owns every LLVM object of one compile: context, module, target machine, cached types and device-op declarations.
#ifndef TL_LLVM_BACKEND_SESSION_H
#define TL_LLVM_BACKEND_SESSION_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "ir/target.h"
#include "llvm_backend/device/device_ops.h"
#include "llvm_backend/device/guard.h"
#include "llvm_backend/device/wgmma.h"
#include "support/dtype.h"
#include "support/status.h"
#include "support/strbuf.h"

// Address spaces of NVPTX.
enum { TL_ADDRSPACE_GENERIC = 0, TL_ADDRSPACE_GLOBAL = 1, TL_ADDRSPACE_SHARED = 3, TL_ADDRSPACE_CLUSTER = 7 };

typedef struct tl_session {
  LLVMContextRef context;        // Owned.
  LLVMModuleRef module;          // Owned. NULL until tl_session_begin_module.
  LLVMTargetMachineRef machine;  // Owned. NULL until tl_session_machine.
  int machine_ptx, machine_opt;  // PTX version and effort that `machine` was made for
  int opt_level;                 // 0 to 3
  const tl_target *target;       // Borrowed (static).
  bool is_abandoned;             // LLVM gave up: its objects are neither used nor disposed of any more
  tl_strbuf errors;              // errors that LLVM reported through its diagnostic handler
  LLVMTypeRef void_type, i1, i4, i8, i16, i32, i64, f16, bf16, f32, f64;
  LLVMTypeRef generic_ptr, global_ptr, shared_ptr, cluster_ptr;
  LLVMTypeRef v2f16, v2bf16;
  LLVMValueRef device_functions[TL_DEVOP_COUNT];  // NULL until used
  LLVMTypeRef device_types[TL_DEVOP_COUNT];
} tl_session;

// Runs `call(user)`, which calls LLVM on this session's objects. When LLVM gives up (guard.h), the session is
// abandoned: INTERNAL from then on, for every guarded call.
TL_MUST_USE tl_status tl_session_guard(tl_session *session, const char *where, tl_guarded_call *call, void *user);

TL_MUST_USE tl_status tl_session_init(tl_session *session, const tl_target *target, int opt_level);
void tl_session_fini(tl_session *session);
// Makes the module that code goes into, with triple and data layout.
TL_MUST_USE tl_status tl_session_begin_module(tl_session *session, const char *name);
// Makes (or remakes) the target machine for a PTX ISA version (80 is 8.0).
TL_MUST_USE tl_status tl_session_machine(tl_session *session, int ptx_version);
// Bytes of a kernel's parameters, naturally aligned one after the other, and how many there may be. A
// generic pointer stands for a tensor map, which comes by value.
enum { TL_MAX_PARAMETER_BYTES = 32764 };
uint64_t tl_session_parameter_bytes(LLVMTypeRef const *types, size_t n);
// The larger of the target's floor and what the device ops declared in `module` need.
int tl_session_needed_ptx(const tl_session *session, LLVMModuleRef module);
// INTERNAL with the text of what LLVM reported since the last call, or OK.
TL_MUST_USE tl_status tl_session_take_errors(tl_session *session, const char *where);
// LLVM's verifier as a status.
TL_MUST_USE tl_status tl_session_verify(tl_session *session, LLVMModuleRef module, const char *where);
// Turns an LLVMErrorRef or an LLVM message into a status; both consume their argument.
TL_MUST_USE tl_status tl_session_message_status(const char *where, char *message);

// Type of one element in registers; bool is i1 there and i8 in memory. 8-bit and 4-bit floats are their bits (i8, i4)
// and only ever converted, tf32 is an f32 with a short mantissa. Two 4-bit elements share a byte of memory (i8).
LLVMTypeRef tl_session_type(const tl_session *session, tl_dtype dtype);
LLVMTypeRef tl_session_memory_type(const tl_session *session, tl_dtype dtype);
LLVMValueRef tl_session_i32(const tl_session *session, int64_t value);
LLVMValueRef tl_session_i64(const tl_session *session, int64_t value);
LLVMValueRef tl_session_bool(const tl_session *session, bool value);

// Function type behind a device op's signature.
LLVMTypeRef tl_session_device_type(tl_session *session, const char *signature);
// Declares the device op in the module (once) and calls it.
LLVMValueRef tl_session_call_device(tl_session *session, LLVMBuilderRef builder, tl_device_op_id id, LLVMValueRef *args,
                                    unsigned num_args);
// The same for the ops of wgmma.h; NULL when there is no such form.
LLVMValueRef tl_session_call_wgmma(tl_session *session, LLVMBuilderRef builder, tl_str name, LLVMValueRef *args,
                                   unsigned num_args);
LLVMValueRef tl_session_call_wgmma_form(tl_session *session, LLVMBuilderRef builder, const tl_wgmma_form *form,
                                        LLVMValueRef *args, unsigned num_args);
LLVMValueRef tl_session_call_wgmma_wait(tl_session *session, LLVMBuilderRef builder, const tl_wgmma_wait *wait,
                                        LLVMValueRef *args, unsigned num_args);
// Calls the overloaded LLVM intrinsic `name` (such as "llvm.fma") for `type`.
LLVMValueRef tl_session_call_intrinsic(tl_session *session, LLVMBuilderRef builder, const char *name,
                                       LLVMTypeRef *overloads, unsigned num_overloads, LLVMValueRef *args,
                                       unsigned num_args);
// Adds an enum attribute (by name) to a function (index -1) or a parameter (index 1, 2, …).
void tl_session_add_attribute(tl_session *session, LLVMValueRef function, int index, const char *name, uint64_t value);
void tl_session_add_string_attribute(tl_session *session, LLVMValueRef function, const char *name, const char *value);
// Gives the declared tl.* functions of `module` their inline-asm bodies (internal, always inlined).
void tl_session_fill_asm(tl_session *session, LLVMModuleRef module);

#endif
