// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of scalar ops: types of operands and results.
#include "ir/scalar/scalar.h"
#include "ir/verify/verify_internal.h"

enum { CLASS_INDEX = 1, CLASS_INT = 2, CLASS_FLOAT = 4, CLASS_BOOL = 8 };

static int class_of(const tl_type *type) {
  if (type->kind == TL_TYPE_INDEX) return CLASS_INDEX;
  if (type->kind != TL_TYPE_SCALAR) return 0;
  if (type->dtype == TL_DTYPE_BOOL) return CLASS_BOOL;
  return tl_dtype_is_float(type->dtype) ? CLASS_FLOAT : CLASS_INT;
}

// All operands from `first` on and the result have one type, of one of `classes`.
static void verify_uniform(tl_verifier *verifier, const tl_op *op, uint32_t first, int classes) {
  const tl_type *type = op->results[0].type;
  for (uint32_t i = first; i < op->num_operands; i++) {
    if (op->operands[i].value->type == type) continue;
    tl_verify_fail(verifier, op, "operand %u is %s, but the result is %s", i,
                   tl_verify_type_text(verifier, op->operands[i].value->type), tl_verify_type_text(verifier, type));
    return;
  }
  if (!(class_of(type) & classes)) {
    tl_verify_fail(verifier, op, "'%s' does not work on %s", tl_op_info_of(op->code)->name,
                   tl_verify_type_text(verifier, type));
  }
}

static void verify_const(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = op->results[0].type;
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_VALUE);
  int kind = class_of(type);
  if (kind == 0) {
    tl_verify_fail(verifier, op, "a constant is no %s", tl_verify_type_text(verifier, type));
  } else if (attr->is_float != (kind == CLASS_FLOAT)) {
    tl_verify_fail(verifier, op, "%s constant of type %s", attr->is_float ? "a float" : "an integer",
                   tl_verify_type_text(verifier, type));
  } else if (kind == CLASS_BOOL && attr->v.i != 0 && attr->v.i != 1) {
    tl_verify_fail(verifier, op, "a bool is 0 or 1");
  } else if (kind == CLASS_INT && type->dtype != TL_DTYPE_U64) {
    // u64 keeps large values as their bits: all are fine.
    if (attr->v.i < tl_dtype_int_min(type->dtype) || attr->v.i > (int64_t)tl_dtype_int_max(type->dtype)) {
      tl_verify_fail(verifier, op, "%lld does not fit %s", (long long)attr->v.i, tl_dtype_name(type->dtype));
    }
  }
}

static void verify_cmp(tl_verifier *verifier, const tl_op *op) {
  const tl_type *a = op->operands[0].value->type, *b = op->operands[1].value->type;
  if (a != b) {
    tl_verify_fail(verifier, op, "compares %s with %s", tl_verify_type_text(verifier, a),
                   tl_verify_type_text(verifier, b));
  }
  if (!tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_BOOL)) tl_verify_fail(verifier, op, "the result is not bool");
}

static void verify_bitcast(tl_verifier *verifier, const tl_op *op) {
  const tl_type *from = op->operands[0].value->type, *to = op->results[0].type;
  bool are_scalars = from->kind == TL_TYPE_SCALAR && to->kind == TL_TYPE_SCALAR;
  if (!are_scalars || tl_dtype_bits(from->dtype) != tl_dtype_bits(to->dtype)) {
    tl_verify_fail(verifier, op, "%s and %s have different widths", tl_verify_type_text(verifier, from),
                   tl_verify_type_text(verifier, to));
  }
}

static void verify_cast_rounded(tl_verifier *verifier, const tl_op *op) {
  const tl_type *from = op->operands[0].value->type, *to = op->results[0].type;
  bool is_stochastic = tl_op_int(op, TL_ATTR_ROUNDING, 0) == TL_ROUNDING_STOCHASTIC;
  if (!tl_type_is_scalar_of(from, TL_DTYPE_F32) && !tl_type_is_scalar_of(from, TL_DTYPE_F64))
    tl_verify_fail(verifier, op, "takes f32 and f64, not %s", tl_verify_type_text(verifier, from));
  if (class_of(to) != CLASS_FLOAT || to == from || tl_type_is_scalar_of(to, TL_DTYPE_F64))
    tl_verify_fail(verifier, op, "%s is no float of fewer bits", tl_verify_type_text(verifier, to));
  if (tl_op_int(op, TL_ATTR_ROUNDING, 0) == TL_ROUNDING_NEAREST) tl_verify_fail(verifier, op, "to nearest is `cast`");
  if (is_stochastic != (op->num_operands > 1))
    tl_verify_fail(verifier, op, "a stochastic rounding, and no other, takes bits");
  else if (is_stochastic && !tl_type_is_scalar_of(op->operands[1].value->type, TL_DTYPE_U32))
    tl_verify_fail(verifier, op, "the bits are not u32");
}

static void verify_math(tl_verifier *verifier, const tl_op *op) {
  int64_t function = tl_op_int(op, TL_ATTR_MATH, 0);
  const tl_type *from = op->operands[0].value->type, *to = op->results[0].type;
  if (class_of(from) != CLASS_FLOAT) {
    tl_verify_fail(verifier, op, "'math' takes a float, not %s", tl_verify_type_text(verifier, from));
    return;
  }
  tl_dtype result = tl_scalar_math_result((int)function, from->dtype);
  if (result != from->dtype) {
    if (!tl_type_is_scalar_of(to, result)) tl_verify_fail(verifier, op, "the result is not %s", tl_dtype_name(result));
  } else if (from != to) {
    tl_verify_fail(verifier, op, "operand and result differ: %s and %s", tl_verify_type_text(verifier, from),
                   tl_verify_type_text(verifier, to));
  }
}

static void verify_math2(tl_verifier *verifier, const tl_op *op) {
  const tl_type *a = op->operands[0].value->type, *b = op->operands[1].value->type, *to = op->results[0].type;
  if (class_of(a) != CLASS_FLOAT) {
    tl_verify_fail(verifier, op, "'math2' takes a float, not %s", tl_verify_type_text(verifier, a));
  } else if (tl_scalar_math2_takes_exponent((int)tl_op_int(op, TL_ATTR_MATH2, 0))) {
    if (!tl_type_is_scalar_of(b, TL_DTYPE_I32)) tl_verify_fail(verifier, op, "the exponent is not i32");
  } else if (a != b) {
    tl_verify_fail(verifier, op, "operands differ: %s and %s", tl_verify_type_text(verifier, a),
                   tl_verify_type_text(verifier, b));
  }
  if (a != to) {
    tl_verify_fail(verifier, op, "operand and result differ: %s and %s", tl_verify_type_text(verifier, a),
                   tl_verify_type_text(verifier, to));
  }
}

// popcount and clz.
static void verify_bits(tl_verifier *verifier, const tl_op *op) {
  const tl_type *from = op->operands[0].value->type;
  if (class_of(from) != CLASS_INT || tl_dtype_bits(from->dtype) < 32) {
    tl_verify_fail(verifier, op, "'%s' takes an integer of 32 or 64 bits, not %s", tl_op_info_of(op->code)->name,
                   tl_verify_type_text(verifier, from));
  }
  if (!tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_I32)) tl_verify_fail(verifier, op, "the result is not i32");
}

static void verify_dp4a(tl_verifier *verifier, const tl_op *op) {
  bool all_unsigned = true;
  for (uint32_t i = 0; i < 2; i++) {
    const tl_type *type = op->operands[i].value->type;
    bool is_unsigned = tl_type_is_scalar_of(type, TL_DTYPE_U32);
    if (!is_unsigned && !tl_type_is_scalar_of(type, TL_DTYPE_I32)) {
      tl_verify_fail(verifier, op, "operand %u is %s, not i32 or u32", i, tl_verify_type_text(verifier, type));
    }
    all_unsigned = all_unsigned && is_unsigned;
  }
  tl_dtype dtype = all_unsigned ? TL_DTYPE_U32 : TL_DTYPE_I32;
  if (!tl_type_is_scalar_of(op->results[0].type, dtype)) {
    tl_verify_fail(verifier, op, "the result is not %s", tl_dtype_name(dtype));
  }
  verify_uniform(verifier, op, 2, CLASS_INT);
}

static void verify_philox(tl_verifier *verifier, const tl_op *op) {
  enum { WORD = 2 };
  for (uint32_t i = 0; i < 4; i++) {
    const tl_type *type = op->operands[i].value->type;
    tl_dtype dtype = i == WORD ? TL_DTYPE_U32 : TL_DTYPE_U64;
    if (tl_type_is_scalar_of(type, dtype)) continue;
    tl_verify_fail(verifier, op, "operand %u is %s, not %s", i, tl_verify_type_text(verifier, type),
                   tl_dtype_name(dtype));
  }
  if (!tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_U32)) tl_verify_fail(verifier, op, "the result is not u32");
}

static void verify_result_is_index(tl_verifier *verifier, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].type->kind != TL_TYPE_INDEX) {
      tl_verify_fail(verifier, op, "result %u is %s, not index", i, tl_verify_type_text(verifier, op->results[i].type));
    }
  }
}

// What the launch and the thread's place provide.
static void verify_launch_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_DYN_PARAM:
      verify_result_is_index(verifier, op);
      break;
    case TL_OP_LAUNCHED:
    case TL_OP_BLOCK_ID:
    case TL_OP_NUM_BLOCKS:
    case TL_OP_THREAD_ID:
    case TL_OP_LANE_ID:
    case TL_OP_WARP_ID:
      verify_result_is_index(verifier, op);
      break;
    case TL_OP_GRID:
      verify_result_is_index(verifier, op);
      if (op->num_results != op->num_operands) {
        tl_verify_fail(verifier, op, "%u extents, but %u results", op->num_operands, op->num_results);
      }
      break;
    case TL_OP_TILE_INDEX:
      verify_result_is_index(verifier, op);
      if (op->num_results != tl_op_group_len(op, TL_GROUP_TILE_INDEX_extents)) {
        tl_verify_fail(verifier, op, "%u extents, but %u results", tl_op_group_len(op, TL_GROUP_TILE_INDEX_extents),
                       op->num_results);
      }
      break;
    case TL_OP_SCALAR_ARG:
      if (op->results[0].type->kind != TL_TYPE_SCALAR) {
        tl_verify_fail(verifier, op, "the result is %s", tl_verify_type_text(verifier, op->results[0].type));
      }
      break;
    default:
      break;
  }
}

// Each `{}` of the text stands for one value.
static void verify_print(tl_verifier *verifier, const tl_op *op) {
  uint32_t places = 0;
  for (const char *c = tl_op_str(op, TL_ATTR_TEXT); *c; c++) {
    if (c[0] != '{') continue;
    if (c[1] == '}') places++;
    if (c[1] != '}' && c[1] != '{') tl_verify_fail(verifier, op, "a single '{' in the text");
    if (c[1]) c++;
  }
  if (places != op->num_operands)
    tl_verify_fail(verifier, op, "the text has places for %u values, there are %u", places, op->num_operands);
}

void tl_verify_scalar_op(tl_verifier *verifier, const tl_op *op) {
  const int numbers = CLASS_INDEX | CLASS_INT | CLASS_FLOAT;
  switch (op->code) {
    case TL_OP_CONST:
      verify_const(verifier, op);
      break;
    case TL_OP_UNDEF:
      if (op->results[0].type->kind != TL_TYPE_SCALAR)
        tl_verify_fail(verifier, op, "%s is no scalar", tl_verify_type_text(verifier, op->results[0].type));
      break;
    case TL_OP_ADD:
    case TL_OP_SUB:
    case TL_OP_MUL:
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
    case TL_OP_NEG:
    case TL_OP_FMA:
      verify_uniform(verifier, op, 0, numbers);
      break;
    case TL_OP_MIN:
    case TL_OP_MAX:
      verify_uniform(verifier, op, 0, numbers | CLASS_BOOL);
      break;
    case TL_OP_DIV:
    case TL_OP_POW:
      verify_uniform(verifier, op, 0, CLASS_FLOAT);
      break;
    case TL_OP_AND:
    case TL_OP_OR:
    case TL_OP_XOR:
    case TL_OP_NOT:
      verify_uniform(verifier, op, 0, CLASS_INDEX | CLASS_INT | CLASS_BOOL);
      break;
    case TL_OP_SHL:
    case TL_OP_SHR:
      verify_uniform(verifier, op, 0, CLASS_INDEX | CLASS_INT);
      break;
    case TL_OP_SELECT:
      verify_uniform(verifier, op, 1, numbers | CLASS_BOOL);
      break;
    case TL_OP_CMP:
      verify_cmp(verifier, op);
      break;
    case TL_OP_CAST:
      if (class_of(op->results[0].type) == 0) {
        tl_verify_fail(verifier, op, "casts to %s", tl_verify_type_text(verifier, op->results[0].type));
      }
      break;
    case TL_OP_ASSUME:
      if (op->results[0].type != tl_op_operand(op, 0)->type)
        tl_verify_fail(verifier, op, "the result has another type");
      if (!(class_of(op->results[0].type) & (CLASS_INDEX | CLASS_INT)))
        tl_verify_fail(verifier, op, "it is no integer");
      break;
    case TL_OP_CAST_ROUNDED:
      verify_cast_rounded(verifier, op);
      break;
    case TL_OP_BITCAST:
      verify_bitcast(verifier, op);
      break;
    case TL_OP_MATH:
      verify_math(verifier, op);
      break;
    case TL_OP_MATH2:
      verify_math2(verifier, op);
      break;
    case TL_OP_POPCOUNT:
    case TL_OP_CLZ:
      verify_bits(verifier, op);
      break;
    case TL_OP_DP4A:
      verify_dp4a(verifier, op);
      break;
    case TL_OP_PHILOX:
      verify_philox(verifier, op);
      break;
    case TL_OP_PRINT:
      verify_print(verifier, op);
      break;
    default:
      verify_launch_op(verifier, op);
      break;
  }
}
