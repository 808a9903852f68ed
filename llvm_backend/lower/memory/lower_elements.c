// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marks for the checker: which element of a parallel makes which access. Two elements that meet in one thread leave no
// other trace: the optimiser may even drop the first of two stores. Marks stand before it and stay.
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

typedef struct marked {
  int buffer, index;  // operand groups
  int32_t kind;       // tl_emu_access_kind
} marked;

// The emulator's numbers of kinds (emulator/machine/machine.h), which the backend does not know.
enum { MARK_READ = 0, MARK_WRITE = 1, MARK_ATOMIC = 2 };

static bool marked_of(const tl_op *op, marked *out) {
  switch (op->code) {
    case TL_OP_LOAD:
      *out = (marked){TL_GROUP_LOAD_buffer, TL_GROUP_LOAD_index, MARK_READ};
      return true;
    case TL_OP_STORE:
      *out = (marked){TL_GROUP_STORE_buffer, TL_GROUP_STORE_index, MARK_WRITE};
      return true;
    case TL_OP_ATOMIC:
      *out = (marked){TL_GROUP_ATOMIC_buffer, TL_GROUP_ATOMIC_index, MARK_ATOMIC};
      return true;
    default:
      return false;
  }
}

void tl_lower_mark_parallel(tl_lower *l) {
  tl_session_call_device(l->session, l->builder, TL_DEVOP_ELEMENTS, NULL, 0);
}

// The element's number, row-major.
static LLVMValueRef element_number(tl_lower *l) {
  tl_session *s = l->session;
  const tl_op *op = l->parallel->op;
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  LLVMValueRef number = tl_session_i32(s, 0);
  for (uint32_t d = 0; d < op->regions[0]->num_args; d++) {
    LLVMValueRef index = tl_lower_get(l, op->regions[0]->args[d], 0);
    number = LLVMBuildMul(l->builder, number, tl_session_i32(s, extents->v.ints.items[d]), "");
    number = LLVMBuildAdd(l->builder, number, tl_lower_index_as(l, l->builder, index, s->i32), "");
  }
  return number;
}

void tl_lower_mark_element(tl_lower *l, const tl_op *op) {
  enum { LOWER_NIBBLE = 1, BOTH_NIBBLES = 3 };
  marked mark;
  if (!l->parallel || !l->parallel->marks || !marked_of(op, &mark)) return;
  tl_session *s = l->session;
  tl_mem_access *access = tl_lower_element_access(l, op, mark.buffer, mark.index, 0);
  if (!access || access->buffer->read_only) return;
  tl_place place = tl_lower_element_place(l, 0);
  LLVMValueRef condition = tl_lower_and(l, l->parallel->place.owner, tl_lower_access_inside(l, access, &place));
  LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place);
  LLVMValueRef half = tl_lower_access_half(l, access, &place, 1);
  LLVMTypeRef generic = LLVMPointerTypeInContext(s->context, 0);
  LLVMValueRef nibbles = tl_session_i32(s, half ? LOWER_NIBBLE : BOTH_NIBBLES);
  LLVMValueRef args[] = {LLVMBuildAddrSpaceCast(l->builder, pointer, generic, ""),
                         tl_session_i32(s, tl_lower_raw_bytes(access->buffer->dtype, 1)),
                         half ? LLVMBuildShl(l->builder, nibbles, half, "") : nibbles,
                         tl_session_i32(s, mark.kind),
                         element_number(l),
                         condition ? condition : tl_session_bool(s, true)};
  tl_session_call_device(s, l->builder, TL_DEVOP_ELEMENT, args, sizeof args / sizeof *args);
}
