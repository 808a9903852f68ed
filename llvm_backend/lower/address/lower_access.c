// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses and bounds. An index is split into what varies with thread, block and loops (computed once for all groups
// of an op) and a compile-time rest, so that the groups of an unrolled op differ by constant offsets only.
#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/state/lower.h"

void tl_lower_access_init(tl_lower *l, tl_mem_access *access, const tl_op *op, const tl_buffer *buffer) {
  (void)l;
  memset(access, 0, sizeof *access);
  access->op = op;
  access->buffer = buffer;
  access->rank = buffer->rank;
}

void tl_lower_access_checks(tl_mem_access *access, const tl_op *op, tl_attr_key key) {
  const tl_attr *attr = tl_op_attr(op, key);
  for (int32_t d = 0; d < access->rank; d++) {
    if (attr)
      access->check[d] = d < attr->v.ints.len ? attr->v.ints.items[d] : 0;
    else
      access->check[d] = access->buffer->scope == TL_SCOPE_GLOBAL ? 3 : 0;
  }
}

static bool fits_i32(tl_range range) {
  return range.lo >= INT32_MIN && range.hi <= INT32_MAX;
}

static int64_t saturated_mul(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t saturated_add(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

// Loop dim of the current parallel that `symbol` is the index of, or -1.
static int32_t loop_dim(const tl_lower *l, const tl_value *symbol) {
  if (!l->parallel || symbol->block != l->parallel->op->regions[0]) return -1;
  return (int32_t)symbol->index;
}

// One summand while an index is put together.
typedef struct tl_term {
  LLVMValueRef value;
  int64_t coefficient;
  tl_range range;  // of value * coefficient
} tl_term;

static tl_range scaled_range(tl_range range, int64_t by) {
  int64_t a = range.lo == INT64_MIN ? (by < 0 ? INT64_MAX : INT64_MIN) : saturated_mul(range.lo, by);
  int64_t b = range.hi == INT64_MAX ? (by < 0 ? INT64_MIN : INT64_MAX) : saturated_mul(range.hi, by);
  return (tl_range){a < b ? a : b, a < b ? b : a};
}

// Sum of the terms: i32 when every partial sum provably fits, else i64. Neither wraps.
static LLVMValueRef build_sum(tl_lower *l, const tl_term *terms, int32_t n) {
  LLVMBuilderRef b = tl_lower_outer(l);
  bool narrow = true;
  tl_range sum = {0, 0};
  for (int32_t i = 0; i < n; i++) {
    sum = (tl_range){saturated_add(sum.lo, terms[i].range.lo), saturated_add(sum.hi, terms[i].range.hi)};
    narrow = narrow && fits_i32(terms[i].range) && fits_i32(sum);
  }
  LLVMTypeRef type = narrow ? l->session->i32 : l->session->i64;
  LLVMValueRef result = NULL;
  for (int32_t i = 0; i < n; i++) {
    LLVMValueRef value = tl_lower_index_as(l, b, terms[i].value, type);
    if (terms[i].coefficient != 1) {
      value = LLVMBuildMul(b, value, LLVMConstInt(type, (unsigned long long)terms[i].coefficient, 1), "");
      if (LLVMIsAInstruction(value)) LLVMSetNSW(value, 1);
    }
    result = result ? LLVMBuildNSWAdd(b, result, value, "") : value;
  }
  return result;
}

// What divides `divisor` and a further summand, up to the alignment of the widest access.
static int64_t add_divisor(int64_t divisor, int64_t coefficient, int64_t of_value) {
  return tl_gcd(divisor, tl_gcd(coefficient, TL_ACCESS_ALIGN) * tl_gcd(of_value, TL_ACCESS_ALIGN));
}

// An index of -1 is outside: a choice beside it is one of the bounds test, and the address needs none.
static tl_value *take_choice(tl_lower *l, tl_mem_access *access, int32_t d, tl_value *index, int32_t e) {
  const tl_op *choice = index->def;
  int64_t other;
  if (!choice || choice->code != TL_OP_SELECT || !(access->check[d] & 1) ||
      !tl_value_const_int(tl_op_operand(choice, 2), &other) || other != -1)
    return index;
  access->condition = tl_lower_and(l, access->condition, tl_lower_get(l, tl_op_operand(choice, 0), e));
  access->fixed = true;
  return tl_op_operand(choice, 1);
}

// Whether the value is a number where it is used now.
static bool written_out(tl_lower *l, const tl_value *value, int64_t *out) {
  if (tl_lower_len(l, value) != 1) return false;
  LLVMValueRef item = tl_lower_get(l, value, 0);
  if (!LLVMIsAConstantInt(item)) return false;
  *out = LLVMConstIntGetSExtValue(item);
  return true;
}

void tl_lower_access_index(tl_lower *l, tl_mem_access *access, int32_t d, tl_value *index, int32_t e) {
  index = take_choice(l, access, d, index, e);
  tl_affine affine = tl_affine_of(index);
  tl_term terms[TL_AFFINE_MAX_TERMS];
  int32_t n = 0;
  int64_t divisor = 0, constant = affine.constant;
  bool split = affine.valid;
  for (int32_t t = 0; t < affine.num_terms && split; t++) {
    tl_value *symbol = affine.terms[t].symbol;
    int64_t coefficient = affine.terms[t].coefficient;
    int32_t dim = loop_dim(l, symbol);
    if (coefficient > INT32_MAX || coefficient < INT32_MIN) split = false;
    if (dim >= 0) {
      access->coeff[d][dim] = (int32_t)coefficient;
      LLVMValueRef thread = l->parallel->place.thread[dim];
      if (LLVMIsAConstantInt(thread) && LLVMConstIntGetSExtValue(thread) == 0) continue;
      tl_range range = {0, l->parallel->place.thread_max[dim]};
      terms[n++] = (tl_term){thread, coefficient, scaled_range(range, coefficient)};
      divisor = add_divisor(divisor, coefficient, l->parallel->place.divisor[dim]);
    } else if (l->parallel && ((symbol->def && tl_op_is_inside(symbol->def, l->parallel->op)) ||
                               (symbol->block && tl_op_is_inside(symbol->block->parent, l->parallel->op)))) {
      // The index of a loop that is written out is another number each time.
      int64_t number = 0;
      split = written_out(l, symbol, &number) && !__builtin_mul_overflow(number, coefficient, &number) &&
              !__builtin_add_overflow(constant, number, &constant);
      access->fixed |= split;
    } else {
      terms[n++] =
          (tl_term){tl_lower_get(l, symbol, 0), coefficient, scaled_range(tl_value_range(symbol), coefficient)};
      divisor = add_divisor(divisor, coefficient, tl_value_divisor(symbol));
    }
  }
  if (!split) {
    memset(access->coeff[d], 0, sizeof access->coeff[d]);
    access->fixed = true;
    access->divisor[d] = tl_gcd(tl_value_divisor(index), TL_ACCESS_ALIGN);
    access->var[d] = tl_lower_get(l, index, e);
    return;
  }
  access->divisor[d] = divisor;
  access->constant[d] = constant;
  access->var[d] = build_sum(l, terms, n);
}

static int64_t access_const_index(const tl_mem_access *access, const tl_place *place, int32_t d) {
  int64_t result = access->constant[d];
  if (place)
    for (int32_t k = 0; k < place->rank; k++) result += (int64_t)access->coeff[d][k] * place->reg[k];
  return result;
}

// Dim or limit d as an LLVM value of the wanted type.
static LLVMValueRef access_limit(tl_lower *l, LLVMBuilderRef b, const tl_mem_access *access, int32_t d,
                                 LLVMTypeRef type) {
  tl_value *value = access->limits[d];
  int64_t constant;
  if (!value && access->buffer->dims[d] >= 0) return LLVMConstInt(type, (unsigned long long)access->buffer->dims[d], 1);
  if (!value) value = access->buffer->dim_values[d];
  if (tl_value_const_int(value, &constant)) return LLVMConstInt(type, (unsigned long long)constant, 1);
  return tl_lower_index_as(l, b, tl_lower_get(l, value, 0), type);
}

// Whether dim d's limit fits the narrow type, so that a comparison in i32 is exact.
static bool limit_is_narrow(const tl_mem_access *access, int32_t d) {
  if (access->limits[d]) return fits_i32(tl_value_range(access->limits[d]));
  if (access->buffer->dims[d] >= 0) return access->buffer->dims[d] <= INT32_MAX;
  return fits_i32(tl_value_range(access->buffer->dim_values[d]));
}

// index + constant against 0 and the limit. In i32 the constant moves to the side where nothing can wrap.
static LLVMValueRef inside_dim(tl_lower *l, const tl_mem_access *access, int32_t d, int64_t constant) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef i64 = l->session->i64;
  LLVMValueRef index = access->var[d] ? access->var[d] : LLVMConstInt(i64, 0, 0);
  bool narrow = limit_is_narrow(access, d) && constant >= 0 && constant <= INT32_MAX / 2;
  if (!narrow) index = tl_lower_index_as(l, b, index, i64);
  LLVMTypeRef type = LLVMTypeOf(index);
  LLVMValueRef offset = LLVMConstInt(type, (unsigned long long)constant, 1);
  if (access->check[d] == 1) return LLVMBuildICmp(b, LLVMIntSGE, index, LLVMBuildNeg(b, offset, ""), "");
  LLVMValueRef limit = access_limit(l, b, access, d, type);
  if (access->check[d] == 2) return LLVMBuildICmp(b, LLVMIntSLT, index, LLVMBuildSub(b, limit, offset, ""), "");
  return LLVMBuildICmp(b, LLVMIntULT, LLVMBuildAdd(b, index, offset, ""), limit, "");
}

LLVMValueRef tl_lower_access_inside(tl_lower *l, tl_mem_access *access, const tl_place *place) {
  LLVMValueRef inside = access->condition;
  for (int32_t d = 0; d < access->rank; d++)
    if (access->check[d])
      inside = tl_lower_and(l, inside, inside_dim(l, access, d, access_const_index(access, place, d)));
  return inside;
}

LLVMValueRef tl_lower_access_bytes(tl_lower *l, tl_mem_access *access, const tl_place *place, int32_t bytes) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef i64 = l->session->i64;
  int32_t last = access->rank - 1;
  int64_t check = access->check[last], size = tl_dtype_bits(access->buffer->dtype) / 8;
  access->check[last] &= 1;
  LLVMValueRef inside = tl_lower_access_inside(l, access, place), all = tl_session_i32(l->session, bytes);
  access->check[last] = check;
  if (check & 2) {
    LLVMValueRef left = access_limit(l, b, access, last, i64), zero = LLVMConstInt(i64, 0, 0);
    if (access->var[last]) left = LLVMBuildSub(b, left, tl_lower_index_as(l, b, access->var[last], i64), "");
    left = LLVMBuildSub(b, left, tl_session_i64(l->session, access_const_index(access, place, last)), "");
    LLVMValueRef most = tl_session_i64(l->session, bytes / size);
    left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, left, most, ""), left, most, "");
    left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, left, zero, ""), left, zero, "");
    all = LLVMBuildTrunc(b, LLVMBuildMul(b, left, tl_session_i64(l->session, size), ""), l->session->i32, "");
  }
  return inside ? LLVMBuildSelect(b, inside, all, tl_session_i32(l->session, 0), "") : check & 2 ? all : NULL;
}

// ---- global addresses
static LLVMValueRef stride_value(tl_lower *l, LLVMBuilderRef b, const tl_buffer *buffer, int32_t d) {
  if (buffer->strides[d] >= 0) return tl_session_i64(l->session, buffer->strides[d]);
  return tl_lower_index_as(l, b, tl_lower_get(l, buffer->stride_values[d], 0), l->session->i64);
}

// The pointer moved by the sum of parts[d] * stride[d].
static LLVMValueRef move_pointer(tl_lower *l, LLVMBuilderRef b, const tl_mem_access *access, LLVMValueRef pointer,
                                 LLVMValueRef const *parts) {
  const tl_buffer *buffer = access->buffer;
  LLVMValueRef offset = NULL;
  for (int32_t d = 0; d < access->rank; d++) {
    if (!parts[d] || buffer->strides[d] == 0) continue;
    LLVMValueRef term = tl_lower_index_as(l, b, parts[d], l->session->i64);
    if (buffer->strides[d] != 1) term = LLVMBuildMul(b, term, stride_value(l, b, buffer, d), "");
    offset = offset ? LLVMBuildAdd(b, offset, term, "") : term;
  }
  if (!offset) return pointer;
  return LLVMBuildGEP2(b, tl_session_memory_type(l->session, buffer->dtype), pointer, &offset, 1, "");
}

static LLVMValueRef global_base(tl_lower *l, const tl_mem_access *access) {
  LLVMBuilderRef b = access->fixed ? l->builder : tl_lower_outer(l);
  if (!access->apart) return move_pointer(l, b, access, access->buffer->base, access->var);
  LLVMValueRef pointer = move_pointer(l, b, access, access->buffer->base, access->thread);
  return move_pointer(l, b, access, pointer, access->uniform);
}

static LLVMValueRef global_pointer(tl_lower *l, tl_mem_access *access, const tl_place *place) {
  const tl_buffer *buffer = access->buffer;
  if (!access->base || access->fixed) access->base = global_base(l, access);
  int64_t constant = 0;
  LLVMValueRef dynamic = NULL;
  for (int32_t d = 0; d < access->rank; d++) {
    int64_t index = access_const_index(access, place, d);
    if (index == 0) continue;
    if (buffer->strides[d] >= 0) {
      constant += index * buffer->strides[d];
      continue;
    }
    LLVMValueRef term =
        LLVMBuildMul(l->builder, stride_value(l, l->builder, buffer, d), tl_session_i64(l->session, index), "");
    dynamic = dynamic ? LLVMBuildAdd(l->builder, dynamic, term, "") : term;
  }
  LLVMTypeRef element = tl_session_memory_type(l->session, buffer->dtype);
  LLVMValueRef pointer = access->base;
  if (dynamic) pointer = LLVMBuildGEP2(l->builder, element, pointer, &dynamic, 1, "");
  if (constant == 0) return pointer;
  LLVMValueRef offset = tl_session_i64(l->session, constant);
  return LLVMBuildGEP2(l->builder, element, pointer, &offset, 1, "");
}

// ---- shared addresses
static LLVMValueRef byte_pointer(tl_lower *l, LLVMBuilderRef b, LLVMValueRef base, LLVMValueRef offset) {
  return offset ? LLVMBuildGEP2(b, l->session->i8, base, &offset, 1, "") : base;
}

static int64_t rows_of(const tl_buffer *buffer) {
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < buffer->rank; d++) rows *= buffer->dims[d];
  return rows;
}

// Row (linear over all dims but the last) of the variable part; NULL is 0.
static LLVMValueRef variable_row(tl_lower *l, LLVMBuilderRef b, const tl_mem_access *access) {
  LLVMValueRef row = NULL;
  for (int32_t d = 0; d + 1 < access->rank; d++) {
    int64_t dim = access->buffer->dims[d];
    if (row) row = LLVMBuildNSWMul(b, row, tl_session_i32(l->session, dim), "");
    if (!access->var[d]) continue;
    LLVMValueRef var = tl_lower_index_as(l, b, access->var[d], l->session->i32);
    row = row ? LLVMBuildNSWAdd(b, row, var, "") : var;
  }
  return row;
}

// Byte offset of (row, bytes) in a shared tile, either NULL for 0; `known` is the part of the place that is known and
// whose own offset the caller adds. NULL: 0. The one place that turns a shared layout into instructions.
static LLVMValueRef shared_offset(tl_lower *l, LLVMBuilderRef b, const tl_buffer *buffer, LLVMValueRef row,
                                  LLVMValueRef bytes, const tl_shared_split *known) {
  tl_session *s = l->session;
  const tl_shared_layout *shared = &buffer->shared;
  LLVMValueRef offset = row ? LLVMBuildNSWMul(b, row, tl_session_i32(s, shared->pitch_bytes), "") : NULL;
  if (shared->swizzle_mask || shared->panel_bytes) {
    bytes = bytes ? bytes : tl_session_i32(s, 0);
    if (known->bytes) bytes = LLVMBuildNSWAdd(b, bytes, tl_session_i32(s, known->bytes), "");
  }
  if (shared->panel_bytes) {
    // A power of two, so that this is floor division.
    LLVMValueRef panel = LLVMBuildAShr(b, bytes, tl_session_i32(s, __builtin_ctz((unsigned)shared->panel_bytes)), "");
    bytes = LLVMBuildAnd(b, bytes, tl_session_i32(s, shared->panel_bytes - 1), "");
    int64_t distance = rows_of(buffer) * shared->pitch_bytes;
    LLVMValueRef start = LLVMBuildNSWMul(b, panel, tl_session_i32(s, distance), "");
    offset = offset ? LLVMBuildNSWAdd(b, offset, start, "") : start;
  }
  if (shared->swizzle_mask) {
    LLVMValueRef swizzle = row ? row : tl_session_i32(s, 0);
    if (known->row) swizzle = LLVMBuildNSWAdd(b, swizzle, tl_session_i32(s, known->row), "");
    swizzle = LLVMBuildLShr(b, swizzle, tl_session_i32(s, shared->swizzle_shift), "");
    swizzle = LLVMBuildAnd(b, swizzle, tl_session_i32(s, shared->swizzle_mask), "");
    swizzle = LLVMBuildShl(b, swizzle, tl_session_i32(s, 4), "");
    bytes = LLVMBuildXor(b, bytes, swizzle, "");
  }
  if (bytes) offset = offset ? LLVMBuildNSWAdd(b, offset, bytes, "") : bytes;
  return offset;
}

// Base plus the variable part of the place, beside the known part `known`.
static LLVMValueRef shared_variable(tl_lower *l, const tl_mem_access *access, const tl_shared_split *known) {
  LLVMBuilderRef b = access->fixed ? l->builder : tl_lower_outer(l);
  tl_session *s = l->session;
  int32_t size = tl_dtype_bits(access->buffer->dtype) / 8;
  LLVMValueRef row = variable_row(l, b, access), bytes = access->rank ? access->var[access->rank - 1] : NULL;
  if (bytes) {
    bytes = tl_lower_index_as(l, b, bytes, s->i32);
    if (size > 1) bytes = LLVMBuildNSWMul(b, bytes, tl_session_i32(s, size), "");
  }
  return byte_pointer(l, b, access->buffer->base, shared_offset(l, b, access->buffer, row, bytes, known));
}

static LLVMValueRef shared_pointer(tl_lower *l, tl_mem_access *access, const tl_place *place) {
  const tl_buffer *buffer = access->buffer;
  int64_t row = 0, bytes = 0;
  for (int32_t d = 0; d < access->rank; d++) {
    int64_t index = access_const_index(access, place, d);
    if (d + 1 == access->rank)
      bytes = index * (tl_dtype_bits(buffer->dtype) / 8);
    else
      row = row * buffer->dims[d] + index;
  }
  tl_shared_split known = tl_shared_layout_split(&buffer->shared, rows_of(buffer), row, bytes);
  LLVMValueRef pointer = NULL;
  for (int32_t i = 0; i < access->num_swizzled && !access->fixed; i++)
    if (access->swizzled[i].row == known.row && access->swizzled[i].bytes == known.bytes)
      pointer = access->swizzled[i].pointer;
  if (!pointer) {
    pointer = shared_variable(l, access, &known);
    if (!access->fixed && access->num_swizzled < 64) {
      access->swizzled[access->num_swizzled].row = known.row;
      access->swizzled[access->num_swizzled].bytes = known.bytes;
      access->swizzled[access->num_swizzled++].pointer = pointer;
    }
  }
  return known.offset ? byte_pointer(l, l->builder, pointer, tl_session_i32(l->session, known.offset)) : pointer;
}

// ---- 4-bit elements: addresses are computed anew for each access

// Index d as one value of `type`.
static LLVMValueRef whole_index(tl_lower *l, const tl_mem_access *access, const tl_place *place, int32_t d,
                                LLVMTypeRef type) {
  LLVMValueRef constant = LLVMConstInt(type, (unsigned long long)access_const_index(access, place, d), 1);
  if (!access->var[d]) return constant;
  return LLVMBuildAdd(l->builder, tl_lower_index_as(l, l->builder, access->var[d], type), constant, "");
}

// Elements from the row's (shared) or the buffer's (global) start.
static LLVMValueRef element_offset(tl_lower *l, const tl_mem_access *access, const tl_place *place) {
  const tl_buffer *buffer = access->buffer;
  if (access->rank == 0) return tl_session_i64(l->session, 0);
  if (buffer->scope != TL_SCOPE_GLOBAL) return whole_index(l, access, place, access->rank - 1, l->session->i32);
  LLVMValueRef offset = tl_session_i64(l->session, 0);
  for (int32_t d = 0; d < access->rank; d++) {
    LLVMValueRef index = whole_index(l, access, place, d, l->session->i64);
    index = LLVMBuildMul(l->builder, index, stride_value(l, l->builder, buffer, d), "");
    offset = LLVMBuildAdd(l->builder, offset, index, "");
  }
  return offset;
}

static LLVMValueRef half_byte_pointer(tl_lower *l, const tl_mem_access *access, const tl_place *place) {
  tl_session *s = l->session;
  LLVMBuilderRef b = l->builder;
  LLVMValueRef offset = element_offset(l, access, place);
  offset = LLVMBuildLShr(b, offset, LLVMConstInt(LLVMTypeOf(offset), 1, 0), "");
  if (access->buffer->scope == TL_SCOPE_GLOBAL || access->rank < 2)
    return byte_pointer(l, b, access->buffer->base, offset);
  LLVMValueRef row = tl_session_i32(s, 0);
  for (int32_t d = 0; d + 1 < access->rank; d++) {
    row = LLVMBuildMul(b, row, tl_session_i32(s, access->buffer->dims[d]), "");
    row = LLVMBuildAdd(b, row, whole_index(l, access, place, d, s->i32), "");
  }
  return byte_pointer(l, b, access->buffer->base,
                      shared_offset(l, b, access->buffer, row, offset, &(tl_shared_split){0}));
}

LLVMValueRef tl_lower_access_half(tl_lower *l, const tl_mem_access *access, const tl_place *place, int32_t count) {
  if (tl_dtype_bits(access->buffer->dtype) >= 8 || count > 1) return NULL;
  LLVMValueRef offset = tl_lower_index_as(l, l->builder, element_offset(l, access, place), l->session->i32);
  return LLVMBuildAnd(l->builder, offset, tl_session_i32(l->session, 1), "");
}

LLVMValueRef tl_lower_access_pointer(tl_lower *l, tl_mem_access *access, const tl_place *place) {
  if (tl_dtype_bits(access->buffer->dtype) < 8) return half_byte_pointer(l, access, place);
  if (access->buffer->scope == TL_SCOPE_GLOBAL) return global_pointer(l, access, place);
  return shared_pointer(l, access, place);
}

int32_t tl_lower_access_align(const tl_mem_access *access, const tl_place *place, int32_t bytes) {
  const tl_buffer *buffer = access->buffer;
  int64_t size = tl_dtype_bits(buffer->dtype) / 8;
  if (buffer->scope != TL_SCOPE_GLOBAL || size == 0) return bytes;
  int64_t align = tl_gcd(buffer->align, TL_ACCESS_ALIGN);
  for (int32_t d = 0; d < access->rank; d++) {
    int64_t index = tl_gcd(access->divisor[d], access_const_index(access, place, d));
    int64_t stride = tl_gcd(buffer->stride_divisors[d], TL_ACCESS_ALIGN);
    align = tl_gcd(align, tl_gcd(index, TL_ACCESS_ALIGN) * stride * size);
  }
  return align > bytes ? (int32_t)align : bytes;
}

void tl_lower_access_side(tl_lower *l, tl_mem_access *access, const tl_op *op, const tl_buffer *buffer,
                          const tl_side *side, const tl_place *place) {
  tl_lower_access_init(l, access, op, buffer);
  tl_lower_access_checks(access, op, side->check);
  access->apart = buffer->scope == TL_SCOPE_GLOBAL;
  const tl_attr *dims = tl_op_attr(op, side->dims), *steps = tl_op_attr(op, side->step);
  bool has_limits = tl_op_group_len(op, side->limits) > 0;
  for (int32_t d = 0; d < access->rank; d++) {
    tl_value *offset = tl_op_group_at(op, side->offsets, (uint32_t)d);
    if (has_limits) access->limits[d] = tl_op_group_at(op, side->limits, (uint32_t)d);
    tl_term terms[TL_MAX_DIMS + 1];
    int32_t n = 0, first_thread = 0;
    if (!tl_value_const_int(offset, &access->constant[d]))
      terms[n++] = (tl_term){tl_lower_get(l, offset, 0), 1, tl_value_range(offset)};
    access->divisor[d] = n ? tl_gcd(tl_value_divisor(offset), TL_ACCESS_ALIGN) : 0;
    access->uniform[d] = n ? terms[0].value : NULL;
    first_thread = n;
    for (int32_t i = 0; i < dims->v.ints.len; i++) {
      if (dims->v.ints.items[i] != d) continue;
      int64_t step = steps ? steps->v.ints.items[i] : 1;
      access->coeff[d][i] = (int32_t)step;
      if (LLVMIsAConstantInt(place->thread[i]) && LLVMConstIntGetSExtValue(place->thread[i]) == 0) continue;
      terms[n++] = (tl_term){place->thread[i], step, scaled_range((tl_range){0, place->thread_max[i]}, step)};
      access->divisor[d] = add_divisor(access->divisor[d], step, place->divisor[i]);
    }
    access->thread[d] = build_sum(l, terms + first_thread, n - first_thread);
    access->var[d] = build_sum(l, terms, n);
  }
}
