// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lowering's value table, failures and the walk over blocks.
#include "llvm_backend/lower/state/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static tl_lower_fn *const table[TL_OPCODE_COUNT] = {
#define TL_OP(ID, text, levels, flags, regions, results, doc) [TL_OP_##ID] = tl_lower_op_##ID,
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

bool tl_lower_failed(const tl_lower *l) {
  return l->status != TL_OK || l->reported;
}

void tl_lower_internal(tl_lower *l, const tl_op *op, const char *format, ...) {
  if (tl_lower_failed(l)) return;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  l->status = tl_status_make(TL_STATUS_INTERNAL, "lower: %s: %s", tl_op_info_of(op->code)->name, text);
}

void tl_lower_unsupported(tl_lower *l, const tl_op *op, const char *format, ...) {
  if (tl_lower_failed(l)) return;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  l->reported = true;
  tl_diag_report(l->diags, TL_DIAG_BACKEND_UNSUPPORTED, op->loc, "%s", text);
}

static size_t hash_pointer(const void *pointer, size_t capacity) {
  uint64_t bits = (uint64_t)(uintptr_t)pointer >> 4;
  return (size_t)((bits * 0x9e3779b97f4a7c15u) >> 20) & (capacity - 1);
}

// The slot of `key`, or the empty one where it belongs.
static tl_lowered *find_slot(tl_lower *l, const tl_value *key) {
  size_t i = hash_pointer(key, l->values.capacity);
  while (l->values.slots[i].key && l->values.slots[i].key != key) i = (i + 1) & (l->values.capacity - 1);
  return &l->values.slots[i];
}

static tl_lowered *put_slot(tl_lower *l, const tl_value *key) {
  if (l->values.len * 2 >= l->values.capacity) {
    tl_lowered *old = l->values.slots;
    size_t old_capacity = l->values.capacity;
    l->values.capacity = old_capacity ? old_capacity * 2 : 256;
    l->values.slots = tl_arena_alloc(&l->arena, l->values.capacity * sizeof *old, 8);
    for (size_t i = 0; i < old_capacity; i++)
      if (old[i].key) *find_slot(l, old[i].key) = old[i];
  }
  tl_lowered *slot = find_slot(l, key);
  if (!slot->key) l->values.len++;
  slot->key = key;
  return slot;
}

void tl_lower_set(tl_lower *l, const tl_value *value, LLVMValueRef const *items, int32_t len) {
  tl_lowered *slot = put_slot(l, value);
  // Groups of a parallel set the same values again and again; the old array is reused then.
  if (slot->len < len || !slot->items) slot->items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len > 0 ? len : 1);
  if (len > 0) memcpy(slot->items, items, (size_t)len * sizeof *items);
  slot->len = len;
}

void tl_lower_set_one(tl_lower *l, const tl_value *value, LLVMValueRef item) {
  tl_lower_set(l, value, &item, 1);
}

void tl_lower_set_buffer(tl_lower *l, const tl_value *value, tl_buffer *buffer) {
  put_slot(l, value)->buffer = buffer;
}

// Whether the value has an item for each element of a parallel's group.
static bool is_of_element(const tl_value *value) {
  return value->type->kind == TL_TYPE_SCALAR || value->type->kind == TL_TYPE_INDEX;
}

LLVMValueRef tl_lower_get(tl_lower *l, const tl_value *value, int32_t e) {
  const tl_lowered *slot = l->values.capacity ? find_slot(l, value) : NULL;
  if (!slot || !slot->key || slot->len == 0) {
    tl_lower_internal(l, value->def ? value->def : l->kernel, "a value is used before it is lowered");
    LLVMTypeRef type = tl_lower_value_type(l, value);
    return LLVMGetPoison(type ? type : l->session->i32);
  }
  if (slot->len == 1) return slot->items[0];
  return slot->items[is_of_element(value) && l->parallel ? l->parallel->element + e : e];
}

int32_t tl_lower_len(tl_lower *l, const tl_value *value) {
  const tl_lowered *slot = find_slot(l, value);
  if (!slot->key) return 0;
  bool is_alone = is_of_element(value) && l->parallel && l->parallel->width == 1;
  return is_alone && slot->len > 1 ? 1 : slot->len;
}

tl_buffer *tl_lower_buffer(tl_lower *l, const tl_value *value) {
  const tl_lowered *slot = find_slot(l, value);
  return slot->key ? slot->buffer : NULL;
}

LLVMTypeRef tl_lower_value_type(tl_lower *l, const tl_value *value) {
  if (value->type->kind == TL_TYPE_INDEX) {
    tl_range range = tl_value_range((tl_value *)value);
    return range.lo >= INT32_MIN && range.hi <= INT32_MAX ? l->session->i32 : l->session->i64;
  }
  return tl_session_type(l->session, value->type->dtype);
}

LLVMValueRef tl_lower_index_as(tl_lower *l, LLVMBuilderRef b, LLVMValueRef index, LLVMTypeRef type) {
  LLVMTypeRef from = LLVMTypeOf(index);
  if (from == type) return index;
  return type == l->session->i64 ? LLVMBuildSExt(b, index, type, "") : LLVMBuildTrunc(b, index, type, "");
}

LLVMBasicBlockRef tl_lower_new_block(tl_lower *l) {
  return LLVMAppendBasicBlockInContext(l->session->context, l->function, "");
}

LLVMBuilderRef tl_lower_outer(tl_lower *l) {
  return l->hoist ? l->hoist : l->builder;
}

void tl_lower_block(tl_lower *l, const tl_block *block) {
  tl_lower_ops(l, block->first, NULL);
}

void tl_lower_ops(tl_lower *l, tl_op *first, const tl_op *end) {
  for (tl_op *op = first; op && op != end && !tl_lower_failed(l); op = op->next) {
    LLVMMetadataRef around = tl_lower_debug_op(l, op);
    table[op->code](l, op);
    tl_lower_debug_restore(l, around);
    if (!tl_lower_failed(l)) tl_lower_watch_size(l, op);
  }
}

LLVMValueRef tl_lower_and(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  if (!a || !b) return a ? a : b;
  return LLVMBuildAnd(l->builder, a, b, "");
}

LLVMValueRef tl_lower_intrinsic1(tl_lower *l, const char *name, LLVMValueRef a) {
  LLVMTypeRef type = LLVMTypeOf(a);
  return tl_session_call_intrinsic(l->session, l->builder, name, &type, 1, &a, 1);
}

LLVMValueRef tl_lower_intrinsic2(tl_lower *l, const char *name, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef args[] = {a, b};
  return tl_session_call_intrinsic(l->session, l->builder, name, &type, 1, args, 2);
}

LLVMValueRef tl_lower_intrinsic3(tl_lower *l, const char *name, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef args[] = {a, b, c};
  return tl_session_call_intrinsic(l->session, l->builder, name, &type, 1, args, 3);
}

LLVMValueRef tl_lower_zero(tl_lower *l, tl_dtype dtype) {
  return LLVMConstNull(tl_session_type(l->session, dtype));
}

LLVMValueRef tl_lower_is_first_thread(tl_lower *l) {
  if (l->is_elected) return NULL;
  return LLVMBuildICmp(l->entry, LLVMIntEQ, l->tid, tl_session_i32(l->session, 0), "");
}
