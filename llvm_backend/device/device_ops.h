// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of device operations (device_ops.def). No LLVM types: the emulator binds every row by name and signature.
// The thousands of forms of wgmma are no rows: wgmma.h makes one from a name.
#ifndef TL_LLVM_BACKEND_DEVICE_OPS_H
#define TL_LLVM_BACKEND_DEVICE_OPS_H

#include <stdbool.h>

#include "support/strview.h"

typedef enum tl_device_op_id {
#define TL_DEVICE_OP(ID, name, family, signature, scope, effect, min_sm, min_ptx, asm_text, constraints, section) \
  TL_DEVOP_##ID,
#include "llvm_backend/device/device_ops.def"
#undef TL_DEVICE_OP
  TL_DEVOP_COUNT
} tl_device_op_id;

typedef enum tl_device_family {
  TL_DEVICE_FAMILY_SREG,
  TL_DEVICE_FAMILY_BARRIER,
  TL_DEVICE_FAMILY_CP_ASYNC,
  TL_DEVICE_FAMILY_SHFL,
  TL_DEVICE_FAMILY_LDMATRIX,
  TL_DEVICE_FAMILY_STMATRIX,
  TL_DEVICE_FAMILY_MMA,
  TL_DEVICE_FAMILY_WGMMA,
  TL_DEVICE_FAMILY_REGISTERS,
  TL_DEVICE_FAMILY_CVT,
  TL_DEVICE_FAMILY_APPROX,
  TL_DEVICE_FAMILY_INTEGER,
  TL_DEVICE_FAMILY_LD_PRED,
  TL_DEVICE_FAMILY_ST_PRED,
  TL_DEVICE_FAMILY_RED_PRED,
  TL_DEVICE_FAMILY_ATOM_PART,
  TL_DEVICE_FAMILY_RUNTIME,
  TL_DEVICE_FAMILY_MBARRIER,
  TL_DEVICE_FAMILY_CLUSTER,
  TL_DEVICE_FAMILY_TMA,
  TL_DEVICE_FAMILY_BULK,
  TL_DEVICE_FAMILY_UNDEFINED,
  TL_DEVICE_FAMILY_ASSUMED
} tl_device_family;

// Most operands, and most results, of one op.
enum { TL_DEVICE_MAX_OPERANDS = 256 };

// Who takes part in one execution.
typedef enum tl_device_scope {
  TL_DEVICE_SCOPE_THREAD,
  TL_DEVICE_SCOPE_WARP,
  TL_DEVICE_SCOPE_WARPGROUP,  // four warps, the first of which has a number that is a multiple of four
  TL_DEVICE_SCOPE_BLOCK
} tl_device_scope;

typedef enum tl_device_effect {
  TL_DEVICE_EFFECT_NONE,
  TL_DEVICE_EFFECT_READ,  // of the memory its pointer arguments point at
  TL_DEVICE_EFFECT_WRITE,
  TL_DEVICE_EFFECT_ATOMIC,
  TL_DEVICE_EFFECT_ASYNC,  // starts, closes or waits for asynchronous copies
  TL_DEVICE_EFFECT_SYNC,
  TL_DEVICE_EFFECT_MARK  // none on memory, but each execution counts
} tl_device_effect;

typedef struct tl_device_op {
  const char *name;       // LLVM function name: "llvm.nvvm.…", "tl.…", or of the device's runtime
  const char *signature;  // letters as device_ops.def explains, "iiii(p)"
  tl_device_family family;
  tl_device_scope scope;
  tl_device_effect effect;
  int min_sm;                   // lowest compute capability times ten
  int min_ptx;                  // lowest PTX ISA version times ten
  const char *asm_text;         // "" for LLVM intrinsics, and where the body is no assembly
  const char *asm_constraints;  // LLVM inline-asm constraints
  const char *section;          // PTX ISA section
} tl_device_op;

// The row of `id`. Static.
const tl_device_op *tl_device_op_of(tl_device_op_id id);
// TL_DEVOP_COUNT when there is no such name.
tl_device_op_id tl_device_op_find(tl_str name);
// Whether the op is one of ours, with a body that is filled in after optimisation.
bool tl_device_op_is_ours(const tl_device_op *op);
// Whether only the target with the features of one architecture has it (sm_90a, not sm_90 and what follows).
bool tl_device_op_is_arch_specific(const tl_device_op *op);

#endif
