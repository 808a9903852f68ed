// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory traffic of 1 to 16 bytes as raw bits, plain or predicated, and the way between raw bits and elements.
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/state/lower.h"

static LLVMTypeRef raw_type(tl_lower *l, int32_t bytes) {
  switch (bytes) {
    case 1:
      return l->session->i8;
    case 2:
      return l->session->i16;
    case 4:
      return l->session->i32;
    default:
      return LLVMVectorType(l->session->i32, (unsigned)bytes / 4);
  }
}

// 0 for 1 byte, 1 for 2, 2 for 4, 3 for 8, 4 for 16: the order of the widths in device_ops.def.
static int width_step(int32_t bytes) {
  int step = 0;
  while ((1 << step) < bytes) step++;
  return step;
}

static tl_device_op_id predicated_load(const tl_buffer *buffer, int evict, int32_t bytes) {
  tl_device_op_id first = TL_DEVOP_LD_PRED_B8;
  if (buffer->read_only) {
    first = TL_DEVOP_LD_NC_PRED_B8;
    if (evict == TL_EVICT_FIRST) first = TL_DEVOP_LD_NC_FIRST_PRED_B8;
    if (evict == TL_EVICT_LAST) first = TL_DEVOP_LD_NC_LAST_PRED_B8;
  }
  return (tl_device_op_id)(first + width_step(bytes));
}

static LLVMValueRef load_predicated(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, int32_t bytes,
                                    LLVMValueRef inside, int evict) {
  LLVMValueRef args[] = {pointer, inside};
  LLVMValueRef result = tl_session_call_device(l->session, l->builder, predicated_load(buffer, evict, bytes), args, 2);
  if (bytes == 1) return LLVMBuildTrunc(l->builder, result, l->session->i8, "");
  if (bytes <= 4) return result;
  LLVMValueRef vector = LLVMGetPoison(raw_type(l, bytes));
  for (int32_t i = 0; i < bytes / 4; i++) {
    LLVMValueRef word = LLVMBuildExtractValue(l->builder, result, (unsigned)i, "");
    vector = LLVMBuildInsertElement(l->builder, vector, word, tl_session_i32(l->session, i), "");
  }
  return vector;
}

LLVMValueRef tl_lower_load_raw(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, int32_t bytes, int32_t align,
                               LLVMValueRef inside, int evict) {
  if (buffer->scope == TL_SCOPE_GLOBAL && evict != TL_EVICT_NORMAL && !inside)
    inside = tl_session_bool(l->session, true);
  if (buffer->scope == TL_SCOPE_GLOBAL && inside) return load_predicated(l, buffer, pointer, bytes, inside, evict);
  LLVMValueRef load;
  if (inside) {
    tl_guard guard = tl_lower_guard_begin(l, inside);
    load = LLVMBuildLoad2(l->builder, raw_type(l, bytes), pointer, "");
    LLVMSetAlignment(load, (unsigned)align);
    tl_lower_guard_end(l, &guard);
    return tl_lower_guard_phi(l, &guard, load, LLVMConstNull(raw_type(l, bytes)));
  }
  load = LLVMBuildLoad2(l->builder, raw_type(l, bytes), pointer, "");
  LLVMSetAlignment(load, (unsigned)align);
  return load;
}

static void store_predicated(tl_lower *l, LLVMValueRef pointer, LLVMValueRef raw, int32_t bytes, LLVMValueRef inside,
                             int evict) {
  LLVMValueRef args[6] = {pointer};
  unsigned n = 1;
  if (bytes == 1)
    args[n++] = LLVMBuildZExt(l->builder, raw, l->session->i16, "");
  else if (bytes <= 4)
    args[n++] = raw;
  else
    for (int32_t i = 0; i < bytes / 4; i++)
      args[n++] = LLVMBuildExtractElement(l->builder, raw, tl_session_i32(l->session, i), "");
  args[n++] = inside;
  tl_device_op_id first = evict == TL_EVICT_FIRST  ? TL_DEVOP_ST_FIRST_PRED_B8
                          : evict == TL_EVICT_LAST ? TL_DEVOP_ST_LAST_PRED_B8
                                                   : TL_DEVOP_ST_PRED_B8;
  tl_session_call_device(l->session, l->builder, (tl_device_op_id)(first + width_step(bytes)), args, n);
}

static void store_raw(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef raw, int32_t bytes,
                      int32_t align, LLVMValueRef inside, int evict) {
  bool global = buffer->scope == TL_SCOPE_GLOBAL;
  if (global && evict != TL_EVICT_NORMAL && !inside) inside = tl_session_bool(l->session, true);
  if (global && inside) {
    store_predicated(l, pointer, raw, bytes, inside, evict);
    return;
  }
  tl_guard guard = tl_lower_guard_begin(l, inside);
  LLVMSetAlignment(LLVMBuildStore(l->builder, raw, pointer), (unsigned)align);
  tl_lower_guard_end(l, &guard);
}

LLVMValueRef tl_lower_load_part(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef half,
                                int32_t bytes, int32_t align, LLVMValueRef inside, int evict) {
  LLVMValueRef raw = tl_lower_load_raw(l, buffer, pointer, bytes, align, inside, evict);
  if (!half) return raw;
  LLVMValueRef shift = LLVMBuildShl(l->builder, half, tl_session_i32(l->session, 2), "");
  return LLVMBuildLShr(l->builder, raw, LLVMBuildTrunc(l->builder, shift, l->session->i8, ""), "");
}

// Clears and then sets the 4 bits in their aligned word. Other threads change other bits of it only.
static void store_half(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef half,
                       LLVMValueRef raw) {
  LLVMBuilderRef b = l->builder;
  tl_session *s = l->session;
  LLVMValueRef address = LLVMBuildPtrToInt(b, pointer, s->i64, "");
  LLVMValueRef byte = LLVMBuildAnd(b, LLVMBuildTrunc(b, address, s->i32, ""), tl_session_i32(s, 3), "");
  LLVMValueRef back = LLVMBuildNeg(b, LLVMBuildZExt(b, byte, s->i64, ""), "");
  LLVMValueRef word = LLVMBuildGEP2(b, s->i8, pointer, &back, 1, "");
  LLVMValueRef shift = LLVMBuildShl(b, byte, tl_session_i32(s, 3), "");
  shift = LLVMBuildAdd(b, shift, LLVMBuildShl(b, half, tl_session_i32(s, 2), ""), "");
  LLVMValueRef mask = LLVMBuildNot(b, LLVMBuildShl(b, tl_session_i32(s, 15), shift, ""), "");
  LLVMValueRef bits = LLVMBuildAnd(b, LLVMBuildZExt(b, raw, s->i32, ""), tl_session_i32(s, 15), "");
  bits = LLVMBuildShl(b, bits, shift, "");
  const char *scope = buffer->scope == TL_SCOPE_SHARED ? "block" : "device";
  unsigned id = LLVMGetSyncScopeID(s->context, scope, buffer->scope == TL_SCOPE_SHARED ? 5 : 6);
  LLVMBuildAtomicRMWSyncScope(b, LLVMAtomicRMWBinOpAnd, word, mask, LLVMAtomicOrderingMonotonic, id);
  LLVMBuildAtomicRMWSyncScope(b, LLVMAtomicRMWBinOpOr, word, bits, LLVMAtomicOrderingMonotonic, id);
}

void tl_lower_store_part(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef half,
                         LLVMValueRef raw, int32_t bytes, int32_t align, LLVMValueRef inside, int evict) {
  if (!half) {
    store_raw(l, buffer, pointer, raw, bytes, align, inside, evict);
    return;
  }
  tl_guard guard = tl_lower_guard_begin(l, inside);
  store_half(l, buffer, pointer, half, raw);
  tl_lower_guard_end(l, &guard);
}

int32_t tl_lower_raw_count(tl_dtype dtype, int32_t vec) {
  int32_t most = 128 / tl_dtype_bits(dtype);
  return vec < most ? vec : most;
}

int32_t tl_lower_raw_bytes(tl_dtype dtype, int32_t count) {
  return (int32_t)tl_dtype_bytes(dtype, (uint64_t)count);
}

// Two elements a byte, the first in the lower half.
static void unpack_halves(tl_lower *l, LLVMValueRef raw, int32_t count, LLVMValueRef *out) {
  bool words = LLVMGetTypeKind(LLVMTypeOf(raw)) == LLVMVectorTypeKind;
  for (int32_t i = 0; i < count; i++) {
    LLVMValueRef part = raw;
    if (words) part = LLVMBuildExtractElement(l->builder, raw, tl_session_i32(l->session, i / 8), "");
    LLVMValueRef shift = LLVMConstInt(LLVMTypeOf(part), (unsigned)(i % 8 * 4), 0);
    out[i] = LLVMBuildTrunc(l->builder, LLVMBuildLShr(l->builder, part, shift, ""), l->session->i4, "");
  }
}

static LLVMValueRef pack_halves(tl_lower *l, LLVMValueRef const *items, int32_t count) {
  LLVMTypeRef type = raw_type(l, tl_lower_raw_bytes(TL_DTYPE_U4, count));
  bool words = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMTypeRef part_type = words ? l->session->i32 : type;
  LLVMValueRef vector = LLVMGetPoison(type), part = NULL;
  for (int32_t i = 0; i < count; i++) {
    LLVMValueRef item = LLVMBuildZExt(l->builder, items[i], part_type, "");
    item = LLVMBuildShl(l->builder, item, LLVMConstInt(part_type, (unsigned)(i % 8 * 4), 0), "");
    part = i % 8 ? LLVMBuildOr(l->builder, part, item, "") : item;
    if (words && i % 8 == 7)
      vector = LLVMBuildInsertElement(l->builder, vector, part, tl_session_i32(l->session, i / 8), "");
  }
  return words ? vector : part;
}

// Elements of two bytes come as pairs so that conversions of pairs meet them unbroken.
static void unpack_words(tl_lower *l, LLVMValueRef raw, int32_t words, LLVMTypeRef element, int32_t per_word,
                         LLVMValueRef *out) {
  for (int32_t w = 0; w < words; w++) {
    LLVMValueRef word = words == 1 ? raw : LLVMBuildExtractElement(l->builder, raw, tl_session_i32(l->session, w), "");
    LLVMValueRef part = LLVMBuildBitCast(l->builder, word, LLVMVectorType(element, (unsigned)per_word), "");
    for (int32_t i = 0; i < per_word; i++)
      out[w * per_word + i] = LLVMBuildExtractElement(l->builder, part, tl_session_i32(l->session, i), "");
  }
}

void tl_lower_unpack(tl_lower *l, LLVMValueRef raw, tl_dtype dtype, int32_t count, LLVMValueRef *out) {
  if (tl_dtype_bits(dtype) < 8) {
    unpack_halves(l, raw, count, out);
    return;
  }
  LLVMTypeRef element = tl_session_memory_type(l->session, dtype);
  int32_t size = tl_dtype_bits(dtype) / 8, bytes = size * count;
  if (count == 1)
    out[0] = LLVMBuildBitCast(l->builder, raw, element, "");
  else if (size >= 4 || bytes < 4) {
    LLVMValueRef vector = LLVMBuildBitCast(l->builder, raw, LLVMVectorType(element, (unsigned)count), "");
    for (int32_t i = 0; i < count; i++)
      out[i] = LLVMBuildExtractElement(l->builder, vector, tl_session_i32(l->session, i), "");
  } else {
    unpack_words(l, raw, bytes / 4, element, 4 / size, out);
  }
  if (dtype == TL_DTYPE_BOOL)
    for (int32_t i = 0; i < count; i++)
      out[i] = LLVMBuildICmp(l->builder, LLVMIntNE, out[i], LLVMConstNull(element), "");
}

static LLVMValueRef pack_words(tl_lower *l, LLVMValueRef const *items, int32_t words, LLVMTypeRef element,
                               int32_t per_word) {
  LLVMValueRef vector = words == 1 ? NULL : LLVMGetPoison(LLVMVectorType(l->session->i32, (unsigned)words));
  for (int32_t w = 0; w < words; w++) {
    LLVMValueRef part = LLVMGetPoison(LLVMVectorType(element, (unsigned)per_word));
    for (int32_t i = 0; i < per_word; i++)
      part = LLVMBuildInsertElement(l->builder, part, items[w * per_word + i], tl_session_i32(l->session, i), "");
    LLVMValueRef word = LLVMBuildBitCast(l->builder, part, l->session->i32, "");
    if (words == 1) return word;
    vector = LLVMBuildInsertElement(l->builder, vector, word, tl_session_i32(l->session, w), "");
  }
  return vector;
}

LLVMValueRef tl_lower_pack(tl_lower *l, LLVMValueRef const *items, tl_dtype dtype, int32_t count) {
  if (tl_dtype_bits(dtype) < 8) return pack_halves(l, items, count);
  LLVMTypeRef element = tl_session_memory_type(l->session, dtype);
  int32_t size = tl_dtype_bits(dtype) / 8, bytes = size * count;
  LLVMValueRef values[TL_MAX_GROUP] = {0};
  for (int32_t i = 0; i < count; i++)
    values[i] = dtype == TL_DTYPE_BOOL ? LLVMBuildZExt(l->builder, items[i], element, "") : items[i];
  if (count == 1) return LLVMBuildBitCast(l->builder, values[0], raw_type(l, bytes), "");
  if (size < 4 && bytes >= 4) return pack_words(l, values, bytes / 4, element, 4 / size);
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(element, (unsigned)count));
  for (int32_t i = 0; i < count; i++)
    vector = LLVMBuildInsertElement(l->builder, vector, values[i], tl_session_i32(l->session, i), "");
  return LLVMBuildBitCast(l->builder, vector, raw_type(l, bytes), "");
}
