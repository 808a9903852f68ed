// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files that rewrite device modules share. Private to them.
#ifndef TL_EMULATOR_RETARGET_H
#define TL_EMULATOR_RETARGET_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "emulator/machine/machine.h"
#include "llvm_backend/device/device_ops.h"
#include "support/vec.h"

enum { SHARED_SPACE = 3, LOCAL_SPACE = 5, MAX_OPERANDS = TL_DEVICE_MAX_OPERANDS, MAX_GRANULE = 16 };

typedef struct shared_variable {
  LLVMValueRef global;
  uint64_t offset;
} shared_variable;

typedef TL_VEC(shared_variable) shared_vec;

typedef struct retarget {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetDataRef layout;  // Borrowed from module.
  LLVMBuilderRef builder;
  LLVMTypeRef i8, i32, i64, ptr, shared_ptr, void_type;
  LLVMTypeRef op_type;        // void(ptr result, ptr args, ptr site)
  LLVMTypeRef context_type;   // ptr()
  LLVMTypeRef poll_type;      // void(ptr machine, ptr site)
  LLVMTypeRef meet_type;      // void(ptr machine)
  LLVMTypeRef touch_type;     // ptr(ptr pointer, ptr site)
  LLVMTypeRef acquired_type;  // void(ptr)
  LLVMValueRef context_function, poll_function, meet_function;
  LLVMValueRef acquired_function, observed_function, fence_function;
  LLVMValueRef touch_function;  // NULL: nothing is checked
  uint32_t checks;
  uint32_t granule, global_granule;  // that divide all accesses to shared and to global memory so far
  uint32_t num_op_calls;
  bool follows_undefined;
  bool equal_passes;                    // plain stores show their values to the checks
  LLVMValueRef function, value_buffer;  // of the function that is rewritten; NULL: not made yet
  LLVMValueRef touch_store_function;
  LLVMTypeRef touch_store_type;
  bool has_fences;            // by which relaxed atomics order
  unsigned narrow_scopes[2];  // LLVM's numbers of "block" and "cluster"
  bool has_narrow;            // something has one of them
  shared_vec shared;
  TL_VEC(tl_emu_site) sites;
  TL_VEC(LLVMValueRef) site_calls;  // the call of each site, already rewritten; its last operand becomes the site
  TL_VEC(LLVMValueRef) dead;        // instructions without users, deleted at the end of their function
  // Of the function being rewritten:
  LLVMValueRef shared_base, args_memory, result_memory, machine;
} retarget;

// ---- instruction.c
// The file that the instruction comes from, free(); NULL when it has no debug location.
char *tl_emu_file_of(LLVMValueRef instruction);
// The uses of macros that it came from, "spec.yaml:20, spec.yaml:31", the innermost first; free(); NULL for none.
char *tl_emu_uses_of(LLVMValueRef instruction);
// Marks a call that only carries shadows, which does not count among the module's device ops; or a load of shared
// memory whose value has a shadow, so that reading alone is no finding.
void tl_emu_mark_shadow(const retarget *r, LLVMValueRef instruction);
bool tl_emu_has_shadow_mark(const retarget *r, LLVMValueRef instruction);

// ---- interleave.c
// Adds the functions that the others here call.
void tl_emu_define_turns(retarget *r);
// Every loop counts down, and calls the machine at zero.
void tl_emu_poll_in_loops(retarget *r, LLVMValueRef function);
// Before an atomic, an ordered or a volatile access: other threads may come first, as the seed says. Nothing before
// others.
void tl_emu_let_threads_meet(retarget *r, LLVMValueRef instruction);

// ---- instrument.c
// Before a load, a store or an atomic: the checker is called, or, when nothing is checked, an address that is not as
// aligned as the instruction promises is made to fault.
void tl_emu_instrument_access(retarget *r, LLVMValueRef instruction);
// Whether a module has fences between ordinary accesses; and before one: the checker is called.
bool tl_emu_has_fences(LLVMModuleRef module);
// Sets narrow_scopes and has_narrow.
void tl_emu_find_scopes(retarget *r);
void tl_emu_instrument_fence(retarget *r, LLVMValueRef instruction);
// The largest granule that divides the accesses of a device op to shared memory.
uint32_t tl_emu_op_granule(const tl_emu_binding *binding);
uint32_t tl_emu_op_global_granule(const tl_emu_binding *binding);

// ---- undefined.c
// Builds shadows of what nobody wrote, and checks of where it matters.
void tl_emu_follow_undefined(retarget *r);

#endif
