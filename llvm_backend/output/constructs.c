// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holds a module against the table of what may reach the code generator.
#include "llvm_backend/output/constructs.h"

#include <pthread.h>
#include <string.h>

typedef enum condition {
  ANY,
  NOT_ATOMIC,
  RELAXED,
  ACQUIRE,
  RELEASE,
  FENCE,
  WITHOUT_FTZ,
  NO_SIGN_SHIFT,
  PLAIN_READ
} condition;

typedef struct construct {
  LLVMOpcode opcode;
  const char *types, *results;
  condition condition;
} construct;

typedef struct rmw_construct {
  LLVMAtomicRMWBinOp kind;
  const char *types;
  int min_sm;
} rmw_construct;

typedef struct call_construct {
  const char *name, *types;
} call_construct;

static const construct constructs[] = {
#define TL_CONSTRUCT(opcode, types, results, condition) {LLVM##opcode, types, results, condition},
#define TL_CONSTRUCT_RMW(kind, types, min_sm)
#define TL_CONSTRUCT_CALL(name, types)
#include "llvm_backend/output/constructs.def"
#undef TL_CONSTRUCT
#undef TL_CONSTRUCT_RMW
#undef TL_CONSTRUCT_CALL
};

static const rmw_construct rmw_constructs[] = {
#define TL_CONSTRUCT(opcode, types, results, condition)
#define TL_CONSTRUCT_RMW(kind, types, min_sm) {LLVMAtomicRMWBinOp##kind, types, min_sm},
#define TL_CONSTRUCT_CALL(name, types)
#include "llvm_backend/output/constructs.def"
#undef TL_CONSTRUCT
#undef TL_CONSTRUCT_RMW
#undef TL_CONSTRUCT_CALL
};

static const call_construct call_constructs[] = {
#define TL_CONSTRUCT(opcode, types, results, condition)
#define TL_CONSTRUCT_RMW(kind, types, min_sm)
#define TL_CONSTRUCT_CALL(name, types) {name, types},
#include "llvm_backend/output/constructs.def"
#undef TL_CONSTRUCT
#undef TL_CONSTRUCT_RMW
#undef TL_CONSTRUCT_CALL
};

enum { NUM_CONSTRUCTS = sizeof constructs / sizeof constructs[0], MAX_OPCODE = 128 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t first_row[MAX_OPCODE], num_rows[MAX_OPCODE];

static void index_rows(void) {
  for (int i = NUM_CONSTRUCTS - 1; i >= 0; i--) {
    first_row[constructs[i].opcode] = (uint8_t)i;
    num_rows[constructs[i].opcode]++;
  }
}

static char integer_letter(unsigned bits) {
  switch (bits) {
    case 1:
      return 'b';
    case 8:
      return 'c';
    case 16:
      return 's';
    case 32:
      return 'i';
    case 64:
      return 'l';
    default:
      return bits < 64 ? 'n' : 'w';
  }
}

// The letter of constructs.def for a type; of a vector that of its elements. '?' for what no row names.
static char letter_of(LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
  switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMLabelTypeKind:
    case LLVMMetadataTypeKind:
      return 'v';
    case LLVMIntegerTypeKind:
      return integer_letter(LLVMGetIntTypeWidth(type));
    case LLVMHalfTypeKind:
      return 'e';
    case LLVMBFloatTypeKind:
      return 'y';
    case LLVMFloatTypeKind:
      return 'f';
    case LLVMDoubleTypeKind:
      return 'd';
    case LLVMPointerTypeKind:
      return 'p';
    case LLVMArrayTypeKind:
    case LLVMStructTypeKind:
      return 'a';
    default:
      return '?';
  }
}

// The type that the row's `types` are about.
static LLVMTypeRef subject_of(LLVMValueRef i, LLVMOpcode opcode) {
  if (opcode == LLVMAlloca) return LLVMGetAllocatedType(i);
  if (opcode == LLVMSelect) return LLVMTypeOf(LLVMGetOperand(i, 1));
  return LLVMGetNumOperands(i) ? LLVMTypeOf(LLVMGetOperand(i, 0)) : NULL;
}

static bool is_relaxed_exchange(LLVMValueRef i) {
  char letter = letter_of(LLVMTypeOf(LLVMGetOperand(i, 1)));
  return (letter == 'i' || letter == 'l') && LLVMGetCmpXchgSuccessOrdering(i) == LLVMAtomicOrderingMonotonic &&
         LLVMGetCmpXchgFailureOrdering(i) == LLVMAtomicOrderingMonotonic;
}

bool tl_backend_shifts_to_sign(LLVMValueRef shl) {
  if (!LLVMGetNSW(shl)) return false;
  LLVMValueRef amount = LLVMGetOperand(shl, 1);
  LLVMTypeRef type = LLVMTypeOf(amount);
  if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return LLVMIsConstant(amount);  // of vectors no amount is looked at
  return LLVMIsAConstantInt(amount) && LLVMConstIntGetZExtValue(amount) + 1 >= LLVMGetIntTypeWidth(type);
}

static bool holds(condition wanted, LLVMValueRef i, bool flushes) {
  switch (wanted) {
    case ANY:
      return true;
    case NOT_ATOMIC:
      return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
    case RELAXED:
      return is_relaxed_exchange(i);
    case ACQUIRE:
      return LLVMGetOrdering(i) == LLVMAtomicOrderingMonotonic || LLVMGetOrdering(i) == LLVMAtomicOrderingAcquire;
    case RELEASE:
      return LLVMGetOrdering(i) == LLVMAtomicOrderingMonotonic || LLVMGetOrdering(i) == LLVMAtomicOrderingRelease;
    case FENCE:
      return LLVMGetOrdering(i) != LLVMAtomicOrderingSequentiallyConsistent;
    case WITHOUT_FTZ:
      return !flushes;
    case NO_SIGN_SHIFT:
      return !tl_backend_shifts_to_sign(i);
    case PLAIN_READ:
      return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !tl_backend_claims_too_much(i);
  }
  return false;
}

static bool rmw_is_allowed(LLVMValueRef i, int sm) {
  if (LLVMGetOrdering(i) != LLVMAtomicOrderingMonotonic) return false;
  LLVMTypeRef type = LLVMTypeOf(i);
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) return false;
  for (size_t r = 0; r < sizeof rmw_constructs / sizeof rmw_constructs[0]; r++)
    if (rmw_constructs[r].kind == LLVMGetAtomicRMWBinOp(i) && strchr(rmw_constructs[r].types, letter_of(type)) &&
        sm >= rmw_constructs[r].min_sm)
      return true;
  return false;
}

static bool is_allowed(LLVMValueRef i, bool flushes, int sm) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
  if (opcode == LLVMCall) return LLVMIsAFunction(LLVMGetCalledValue(i)) != NULL;  // which, their declarations say
  if (opcode == LLVMAtomicRMW) return rmw_is_allowed(i, sm);
  LLVMTypeRef subject = subject_of(i, opcode);
  char type = subject ? letter_of(subject) : 'v', result = letter_of(LLVMTypeOf(i));
  for (int r = first_row[opcode]; r < first_row[opcode] + num_rows[opcode]; r++)
    if (strchr(constructs[r].types, type) && strchr(constructs[r].results, result) &&
        holds(constructs[r].condition, i, flushes))
      return true;
  return false;
}

static tl_status verify_function(LLVMValueRef function, int sm) {
  bool flushes =
      LLVMGetStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, "denormal-fp-math-f32", 20) != NULL;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
      if (is_allowed(i, flushes, sm)) continue;
      char *text = LLVMPrintValueToString(i);
      tl_status status =
          tl_status_make(TL_STATUS_INTERNAL, "code generation: no row of constructs.def allows `%s`", text);
      LLVMDisposeMessage(text);
      return status;
    }
  return TL_OK;
}

static bool call_is_allowed(tl_str name, LLVMTypeRef type) {
  tl_wgmma_form form;
  tl_wgmma_op wgmma;
  if (tl_device_op_find(name) != TL_DEVOP_COUNT || tl_wgmma_form_parse(name, &form)) return true;
  if (tl_wgmma_op_make(name, &wgmma)) {
    tl_wgmma_op_fini(&wgmma);
    return true;
  }
  LLVMTypeRef params[64];
  unsigned n = LLVMCountParamTypes(type);
  if (n <= 64) LLVMGetParamTypes(type, params);
  char letter = n == 0 ? 'v' : n > 64 ? '?' : letter_of(params[0]);
  for (size_t r = 0; r < sizeof call_constructs / sizeof call_constructs[0]; r++) {
    tl_str row = tl_str_from(call_constructs[r].name);
    if (!tl_str_starts_with(name, call_constructs[r].name) || (name.len > row.len && name.data[row.len] != '.'))
      continue;
    if (strchr(call_constructs[r].types, letter)) return true;
  }
  return false;
}

tl_status tl_backend_verify_constructs(LLVMModuleRef module, int sm) {
  pthread_once(&once, index_rows);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t len;
    const char *data = LLVMGetValueName2(f, &len);
    if (LLVMIsDeclaration(f)) {
      if (LLVMGetFirstUse(f) && !call_is_allowed((tl_str){data, len}, LLVMGlobalGetValueType(f)))
        return tl_status_make(TL_STATUS_INTERNAL, "code generation: no row of constructs.def allows calls of `%s`",
                              data);
      continue;
    }
    TL_TRY(verify_function(f, sm));
  }
  return TL_OK;
}
