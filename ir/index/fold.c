// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folding of scalar ops: constants (floats in float64, then rounded to the result's dtype) and identities.
#include <math.h>

#include "ir/index/affine.h"
#include "ir/index/fold_internal.h"
#include "ir/scalar/scalar.h"

// ---- constants

typedef struct constant {
  bool is_float;
  int64_t i;
  double f;
} constant;

static bool const_of(const tl_value *value, constant *out) {
  if (value == NULL || value->def == NULL || value->def->code != TL_OP_CONST) return false;
  const tl_attr *attr = tl_op_attr(value->def, TL_ATTR_VALUE);
  if (attr == NULL) return false;
  *out = (constant){.is_float = attr->is_float};
  if (attr->is_float) {
    out->f = attr->v.f;
  } else {
    out->i = attr->v.i;
  }
  return true;
}

static bool is_float_type(const tl_type *type) {
  return type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(type->dtype);
}

static bool is_bool_type(const tl_type *type) {
  return type->kind == TL_TYPE_SCALAR && type->dtype == TL_DTYPE_BOOL;
}

static bool is_unsigned_type(const tl_type *type) {
  return type->kind == TL_TYPE_SCALAR && tl_dtype_is_unsigned_int(type->dtype);
}

static tl_value *build_float(tl_builder *builder, const tl_type *type, double value) {
  return tl_build_const_float(builder, type, tl_dtype_round(type->dtype, value));
}

static tl_value *build_int(tl_builder *builder, const tl_type *type, int64_t value) {
  if (type->kind == TL_TYPE_SCALAR) value = tl_scalar_wrap(type->dtype, (uint64_t)value);
  return tl_build_const_int(builder, type, value);
}

// ---- identities of machine scalars

static bool is_const_int(const tl_value *value, int64_t wanted) {
  int64_t actual;
  return tl_value_const_int(value, &actual) && actual == wanted;
}

static bool is_const_float(const tl_value *value, double wanted) {
  constant c;
  return const_of(value, &c) && c.is_float && c.f == wanted && signbit(c.f) == signbit(wanted);
}

static tl_value *float_identity(tl_opcode code, tl_value *a, tl_value *b) {
  switch (code) {
    // x + 0.0 is not x for x = -0.0; x + -0.0 is, always.
    case TL_OP_ADD:
      return is_const_float(b, -0.0) ? a : is_const_float(a, -0.0) ? b : NULL;
    case TL_OP_SUB:
      return is_const_float(b, 0.0) ? a : NULL;
    case TL_OP_MUL:
      return is_const_float(b, 1.0) ? a : is_const_float(a, 1.0) ? b : NULL;
    case TL_OP_DIV:
      return is_const_float(b, 1.0) ? a : NULL;
    case TL_OP_POW:
      return is_const_float(b, 1.0) ? a : NULL;
    case TL_OP_MIN:
    case TL_OP_MAX:
      return a == b ? a : NULL;
    default:
      return NULL;
  }
}

static tl_value *int_identity(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b) {
  bool is_bool = is_bool_type(a->type);
  int64_t ones = is_bool ? 1 : tl_scalar_wrap(a->type->dtype, UINT64_MAX);
  switch (code) {
    case TL_OP_ADD:
      return is_const_int(b, 0) ? a : is_const_int(a, 0) ? b : NULL;
    case TL_OP_SUB:
      return is_const_int(b, 0) ? a : a == b ? build_int(builder, a->type, 0) : NULL;
    case TL_OP_MUL:
      if (is_const_int(b, 0) || is_const_int(a, 1)) return b;
      return is_const_int(a, 0) || is_const_int(b, 1) ? a : NULL;
    case TL_OP_FLOORDIV:
      return is_const_int(b, 1) ? a : NULL;
    case TL_OP_MOD:
      return is_const_int(b, 1) ? build_int(builder, a->type, 0) : NULL;
    case TL_OP_MIN:
    case TL_OP_MAX:
      return a == b ? a : NULL;
    case TL_OP_AND:
      if (a == b || is_const_int(a, 0) || is_const_int(b, ones)) return a;
      return is_const_int(b, 0) || is_const_int(a, ones) ? b : NULL;
    case TL_OP_OR:
      if (a == b || is_const_int(a, ones) || is_const_int(b, 0)) return a;
      return is_const_int(b, ones) || is_const_int(a, 0) ? b : NULL;
    case TL_OP_XOR:
      if (a == b) return build_int(builder, a->type, 0);
      return is_const_int(b, 0) ? a : is_const_int(a, 0) ? b : NULL;
    case TL_OP_SHL:
    case TL_OP_SHR:
      return is_const_int(b, 0) ? a : NULL;
    default:
      return NULL;
  }
}

static tl_value *fold_binary(tl_builder *builder, tl_op *op) {
  tl_value *a = op->operands[0].value, *b = op->operands[1].value;
  const tl_type *type = op->results[0].type;
  if (type->kind == TL_TYPE_INDEX) return tl_simplify_index(builder, op->code, a, b);
  constant x, y;
  bool both = const_of(a, &x) && const_of(b, &y);
  if (is_float_type(type)) {
    double folded;
    if (both && x.is_float && y.is_float && tl_scalar_float_op(op->code, x.f, y.f, &folded)) {
      return build_float(builder, type, folded);
    }
    return float_identity(op->code, a, b);
  }
  int64_t folded;
  if (both && tl_scalar_int_op(type->dtype, op->code, x.i, y.i, &folded)) return build_int(builder, type, folded);
  return int_identity(builder, op->code, a, b);
}

// ---- other ops

// Not of a comparison of integers, or of an equality, is the opposite comparison.
static tl_value *fold_not(tl_builder *builder, const tl_op *compare) {
  static const int opposite[TL_CMP_COUNT] = {[TL_CMP_EQ] = TL_CMP_NE, [TL_CMP_NE] = TL_CMP_EQ, [TL_CMP_LT] = TL_CMP_GE,
                                             [TL_CMP_LE] = TL_CMP_GT, [TL_CMP_GT] = TL_CMP_LE, [TL_CMP_GE] = TL_CMP_LT};
  int pred = (int)tl_op_int(compare, TL_ATTR_CMP, 0);
  tl_value *a = compare->operands[0].value, *b = compare->operands[1].value;
  // For a NaN both of `<` and `>=` are false.
  if (pred != TL_CMP_EQ && pred != TL_CMP_NE && is_float_type(a->type)) return NULL;
  return tl_build_cmp(builder, opposite[pred], a, b);
}

static tl_value *fold_unary(tl_builder *builder, tl_op *op) {
  tl_value *a = op->operands[0].value;
  const tl_type *type = op->results[0].type;
  // -(-x), not not x
  if (a->def && a->def->code == op->code) return a->def->operands[0].value;
  if (op->code == TL_OP_NOT && a->def && a->def->code == TL_OP_CMP) return fold_not(builder, a->def);
  constant x;
  if (!const_of(a, &x)) return NULL;
  if (is_float_type(type)) return op->code == TL_OP_NEG ? tl_build_const_float(builder, type, -x.f) : NULL;
  if (op->code == TL_OP_NOT) return build_int(builder, type, is_bool_type(type) ? !x.i : ~x.i);
  if (type->kind == TL_TYPE_INDEX && x.i == INT64_MIN) return NULL;
  return build_int(builder, type, (int64_t)(0 - (uint64_t)x.i));
}

// What can be proven of a comparison of two integers: 1 true, 0 false, -1 unknown.
static int prove_compare(tl_ir_enum_CMP predicate, tl_value *a, tl_value *b) {
  switch (predicate) {
    case TL_CMP_LT:
      return tl_prove_lt(a, b) ? 1 : tl_prove_le(b, a) ? 0 : -1;
    case TL_CMP_LE:
      return tl_prove_le(a, b) ? 1 : tl_prove_lt(b, a) ? 0 : -1;
    case TL_CMP_GT:
      return tl_prove_lt(b, a) ? 1 : tl_prove_le(a, b) ? 0 : -1;
    case TL_CMP_GE:
      return tl_prove_le(b, a) ? 1 : tl_prove_lt(a, b) ? 0 : -1;
    case TL_CMP_EQ:
      if (tl_prove_lt(a, b) || tl_prove_lt(b, a)) return 0;
      return tl_prove_equal(a, b) ? 1 : -1;
    case TL_CMP_NE:
      if (tl_prove_lt(a, b) || tl_prove_lt(b, a)) return 1;
      return tl_prove_equal(a, b) ? 0 : -1;
    case TL_CMP_COUNT:
      break;
  }
  return -1;
}

static tl_value *fold_cmp(tl_builder *builder, tl_op *op) {
  tl_value *a = op->operands[0].value, *b = op->operands[1].value;
  tl_ir_enum_CMP pred = (tl_ir_enum_CMP)tl_op_int(op, TL_ATTR_CMP, 0);
  constant x, y;
  if (const_of(a, &x) && const_of(b, &y)) {
    bool is_index = a->type->kind == TL_TYPE_INDEX;
    bool result = x.is_float ? tl_scalar_compare_floats(pred, x.f, y.f)
                  : is_index ? tl_scalar_compare_exact(pred, x.i, y.i)
                             : tl_scalar_compare_ints(a->type->dtype, pred, x.i, y.i);
    return tl_build_bool(builder, result);
  }
  if (is_float_type(a->type)) return NULL;
  int known = prove_compare(pred, a, b);
  return known < 0 ? NULL : tl_build_bool(builder, known != 0);
}

// A choice between bools, one of them constant, is a logical operation.
static tl_value *fold_bool_select(tl_builder *builder, tl_value *condition, tl_value *a, tl_value *b) {
  int64_t x, y;
  bool a_known = tl_value_const_int(a, &x), b_known = tl_value_const_int(b, &y);
  if (a_known && b_known && !x == !y) return a;
  if (a_known && b_known) return x ? condition : tl_build_unary(builder, TL_OP_NOT, condition);
  if (a_known && x) return tl_build_binary(builder, TL_OP_OR, condition, b);
  if (b_known && !y) return tl_build_binary(builder, TL_OP_AND, condition, a);
  if (!a_known && !b_known) return NULL;
  tl_value *opposite = tl_build_unary(builder, TL_OP_NOT, condition);
  return tl_build_binary(builder, a_known ? TL_OP_AND : TL_OP_OR, opposite, a_known ? b : a);
}

static tl_value *fold_select(tl_builder *builder, tl_op *op) {
  int64_t truth;
  tl_value *condition = op->operands[0].value, *a = op->operands[1].value, *b = op->operands[2].value;
  if (tl_value_const_int(condition, &truth)) return truth ? a : b;
  if (a == b) return a;
  bool is_bool = a->type->kind == TL_TYPE_SCALAR && a->type->dtype == TL_DTYPE_BOOL;
  return is_bool ? fold_bool_select(builder, condition, a, b) : NULL;
}

static tl_value *fold_const_cast(tl_builder *builder, constant x, const tl_type *from, const tl_type *to) {
  if (is_float_type(to)) {
    if (x.is_float) return build_float(builder, to, x.f);
    double value = is_unsigned_type(from) ? (double)(uint64_t)x.i : (double)x.i;
    // Rounding twice could differ from rounding once: only integers that float64 holds.
    bool is_exact = x.i >= -((int64_t)1 << 53) && x.i <= (int64_t)1 << 53;
    return is_exact || to->dtype == TL_DTYPE_F64 ? build_float(builder, to, value) : NULL;
  }
  if (is_bool_type(to)) return tl_build_bool(builder, x.is_float ? x.f != 0 : x.i != 0);
  if (!x.is_float) return build_int(builder, to, x.i);
  if (to->kind == TL_TYPE_INDEX) return NULL;
  return tl_build_const_int(builder, to, tl_scalar_to_int(to->dtype, x.f));
}

static tl_value *fold_cast(tl_builder *builder, tl_op *op) {
  tl_value *a = op->operands[0].value;
  const tl_type *to = op->results[0].type;
  if (a->type == to) return a;
  constant x;
  if (const_of(a, &x)) return fold_const_cast(builder, x, a->type, to);
  // There and back without loss: index → integer → index, where the range fits.
  if (a->def && a->def->code == TL_OP_CAST && to->kind == TL_TYPE_INDEX) {
    tl_value *origin = a->def->operands[0].value;
    if (origin->type == to && tl_prove_equal(origin, op->results)) return origin;
  }
  return NULL;
}

static tl_value *fold_cast_rounded(tl_builder *builder, tl_op *op) {
  constant x, bits = {0};
  const tl_type *to = op->results[0].type;
  if (!const_of(op->operands[0].value, &x) || !x.is_float) return NULL;
  if (op->num_operands > 1 && !const_of(op->operands[1].value, &bits)) return NULL;
  tl_ir_enum_ROUNDING rounding = (tl_ir_enum_ROUNDING)tl_op_int(op, TL_ATTR_ROUNDING, 0);
  return build_float(builder, to, tl_scalar_round_to(to->dtype, rounding, x.f, (uint32_t)bits.i));
}

static tl_value *fold_bitcast(tl_builder *builder, tl_op *op) {
  tl_value *a = op->operands[0].value;
  const tl_type *to = op->results[0].type;
  if (a->type == to) return a;
  constant x;
  if (!const_of(a, &x) || a->type->kind != TL_TYPE_SCALAR || to->kind != TL_TYPE_SCALAR) return NULL;
  if (tl_dtype_bits(a->type->dtype) != tl_dtype_bits(to->dtype) || is_bool_type(to)) return NULL;
  uint64_t bits = 0;
  if (x.is_float) {
    if (isnan(x.f)) return NULL;
    tl_dtype_store_float(a->type->dtype, &bits, 0, x.f);
  } else {
    tl_dtype_store_int(a->type->dtype, &bits, 0, x.i);
  }
  if (!is_float_type(to)) return build_int(builder, to, tl_dtype_load_int(to->dtype, &bits, 0));
  double value = tl_dtype_load_float(to->dtype, &bits, 0);
  // The payload of a NaN has no place in a constant.
  return isnan(value) ? NULL : tl_build_const_float(builder, to, value);
}

static tl_value *fold_math(tl_builder *builder, tl_op *op) {
  constant x;
  const tl_type *type = op->results[0].type;
  if (!const_of(op->operands[0].value, &x) || !x.is_float) return NULL;
  double value = tl_scalar_math((tl_ir_enum_MATH)tl_op_int(op, TL_ATTR_MATH, 0), x.f);
  if (is_float_type(type)) return build_float(builder, type, value);
  return is_bool_type(type) ? tl_build_bool(builder, value != 0) : build_int(builder, type, (int64_t)value);
}

static tl_value *fold_math2(tl_builder *builder, tl_op *op) {
  constant a, b;
  const tl_type *type = op->results[0].type;
  if (!const_of(op->operands[0].value, &a) || !const_of(op->operands[1].value, &b) || !a.is_float) return NULL;
  int function = (int)tl_op_int(op, TL_ATTR_MATH2, 0);
  double value = tl_scalar_math2((tl_ir_enum_MATH2)function, type->dtype, a.f, b.is_float ? b.f : (double)b.i);
  return build_float(builder, type, value);
}

static tl_value *fold_fma(tl_builder *builder, tl_op *op) {
  constant a, b, c;
  const tl_type *type = op->results[0].type;
  if (!is_float_type(type) || !const_of(op->operands[0].value, &a) || !const_of(op->operands[1].value, &b) ||
      !const_of(op->operands[2].value, &c)) {
    return NULL;
  }
  return build_float(builder, type, fma(a.f, b.f, c.f));
}

static tl_value *fold_bits(tl_builder *builder, tl_op *op) {
  constant x;
  const tl_type *from = op->operands[0].value->type;
  if (!const_of(op->operands[0].value, &x)) return NULL;
  int value = tl_scalar_bits_op(op->code, tl_dtype_bits(from->dtype), (uint64_t)x.i);
  return build_int(builder, op->results[0].type, value);
}

static tl_value *fold_dp4a(tl_builder *builder, tl_op *op) {
  constant a, b, c;
  const tl_value *x = op->operands[0].value, *y = op->operands[1].value;
  if (!const_of(x, &a) || !const_of(y, &b) || !const_of(op->operands[2].value, &c)) return NULL;
  bool a_is_signed = !is_unsigned_type(x->type), b_is_signed = !is_unsigned_type(y->type);
  uint32_t sum = tl_dp4a((uint32_t)a.i, a_is_signed, (uint32_t)b.i, b_is_signed, (uint32_t)c.i);
  return build_int(builder, op->results[0].type, sum);
}

static tl_value *fold_philox(tl_builder *builder, tl_op *op) {
  constant args[4];
  for (int i = 0; i < 4; i++) {
    if (!const_of(op->operands[i].value, &args[i])) return NULL;
  }
  uint32_t word = tl_scalar_philox((uint64_t)args[0].i, (uint64_t)args[1].i, (uint32_t)args[2].i, (uint64_t)args[3].i);
  return build_int(builder, op->results[0].type, word);
}

tl_value *tl_fold_op(tl_builder *builder, tl_op *op) {
  switch (op->code) {
    case TL_OP_ADD:
    case TL_OP_SUB:
    case TL_OP_MUL:
    case TL_OP_DIV:
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
    case TL_OP_MIN:
    case TL_OP_MAX:
    case TL_OP_POW:
    case TL_OP_AND:
    case TL_OP_OR:
    case TL_OP_XOR:
    case TL_OP_SHL:
    case TL_OP_SHR:
      return fold_binary(builder, op);
    case TL_OP_NEG:
    case TL_OP_NOT:
      return fold_unary(builder, op);
    case TL_OP_FMA:
      return fold_fma(builder, op);
    case TL_OP_CMP:
      return fold_cmp(builder, op);
    case TL_OP_SELECT:
      return fold_select(builder, op);
    case TL_OP_CAST:
      return fold_cast(builder, op);
    case TL_OP_CAST_ROUNDED:
      return fold_cast_rounded(builder, op);
    case TL_OP_BITCAST:
      return fold_bitcast(builder, op);
    case TL_OP_MATH:
      return fold_math(builder, op);
    case TL_OP_MATH2:
      return fold_math2(builder, op);
    case TL_OP_POPCOUNT:
    case TL_OP_CLZ:
      return fold_bits(builder, op);
    case TL_OP_DP4A:
      return fold_dp4a(builder, op);
    case TL_OP_PHILOX:
      return fold_philox(builder, op);
    default:
      return NULL;
  }
}
