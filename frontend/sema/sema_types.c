// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types of values, the promotion rules of the language, and conversions.
#include <math.h>

#include "frontend/sema/sema.h"

tl_sema_value tl_sema_poison(void) {
  return (tl_sema_value){.kind = TL_SEMA_POISON};
}

tl_sema_value tl_sema_of_const(tl_const constant) {
  return (tl_sema_value){.kind = TL_SEMA_CONST, .constant = constant};
}

tl_sema_value tl_sema_of_value(tl_value *value) {
  return value ? (tl_sema_value){.kind = TL_SEMA_VALUE, .value = value} : tl_sema_poison();
}

const char *tl_sema_type_text(tl_sema *sema, const tl_sema_value *value) {
  if (value->kind == TL_SEMA_POISON) return "nothing";
  if (value->kind == TL_SEMA_VALUE) {
    return value->value->type->kind == TL_TYPE_INDEX ? "an index" : tl_dtype_name(value->value->type->dtype);
  }
  tl_strbuf text;
  tl_strbuf_init(&text);
  if (value->constant.kind != TL_CONST_DTYPE) tl_strbuf_append_c(&text, "the constant ");
  if (value->constant.kind == TL_CONST_DTYPE) tl_strbuf_append_c(&text, "the dtype ");
  tl_const_print(&value->constant, &text);
  const char *copy = tl_arena_copy_bytes(sema->arena, tl_strbuf_c(&text), text.len);
  tl_strbuf_fini(&text);
  return copy;
}

bool tl_sema_is_integer(const tl_sema_value *value) {
  if (value->kind == TL_SEMA_CONST) {
    return value->constant.kind == TL_CONST_INT || value->constant.kind == TL_CONST_BOOL;
  }
  if (value->kind != TL_SEMA_VALUE) return false;
  const tl_type *type = value->value->type;
  return type->kind == TL_TYPE_INDEX || tl_dtype_is_int(type->dtype) || type->dtype == TL_DTYPE_BOOL;
}

bool tl_sema_is_float(const tl_sema_value *value) {
  if (value->kind == TL_SEMA_CONST) return value->constant.kind == TL_CONST_FLOAT;
  return value->kind == TL_SEMA_VALUE && value->value->type->kind == TL_TYPE_SCALAR &&
         tl_dtype_is_float(value->value->type->dtype);
}

tl_dtype tl_sema_arithmetic_dtype(tl_dtype dtype) {
  if (tl_dtype_is_float(dtype)) return dtype == TL_DTYPE_TF32 || tl_dtype_bits(dtype) <= 8 ? TL_DTYPE_F32 : dtype;
  return dtype == TL_DTYPE_BOOL || tl_dtype_bits(dtype) < 32 ? TL_DTYPE_I32 : dtype;
}

// Two dtypes that are no constants.
static tl_dtype common_dtype(tl_dtype a, tl_dtype b) {
  a = tl_sema_arithmetic_dtype(a);
  b = tl_sema_arithmetic_dtype(b);
  if (a == b) return a;
  bool a_float = tl_dtype_is_float(a), b_float = tl_dtype_is_float(b);
  if (a_float != b_float) return a_float ? a : b;
  if (a_float) {
    if (tl_dtype_bits(a) == tl_dtype_bits(b)) return TL_DTYPE_F32;  // f16 with bf16
    return tl_dtype_bits(a) > tl_dtype_bits(b) ? a : b;
  }
  if (tl_dtype_bits(a) != tl_dtype_bits(b)) {
    tl_dtype wide = tl_dtype_bits(a) > tl_dtype_bits(b) ? a : b, narrow = wide == a ? b : a;
    // u64 holds no negative i32.
    return tl_dtype_is_signed_int(narrow) ? TL_DTYPE_I64 : wide;
  }
  return TL_DTYPE_I64;  // i32 with u32, i64 with u64
}

// A constant beside a value that is none.
static const tl_type *adopted_type(tl_sema *sema, const tl_const *constant, const tl_type *other) {
  bool is_float = constant->kind == TL_CONST_FLOAT;
  if (other->kind == TL_TYPE_INDEX) return is_float ? tl_type_scalar(sema->module, TL_DTYPE_F32) : other;
  tl_dtype dtype = tl_sema_arithmetic_dtype(other->dtype);
  // A float constant beside an integer makes f32, `inf` and `nan` too.
  if (is_float && !tl_dtype_is_float(dtype)) dtype = TL_DTYPE_F32;
  return tl_type_scalar(sema->module, dtype);
}

const tl_type *tl_sema_common_type(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b) {
  if (a->kind == TL_SEMA_CONST) return adopted_type(sema, &a->constant, b->value->type);
  if (b->kind == TL_SEMA_CONST) return adopted_type(sema, &b->constant, a->value->type);
  const tl_type *x = a->value->type, *y = b->value->type;
  if (x->kind == TL_TYPE_INDEX && y->kind == TL_TYPE_INDEX) return x;
  if (x->kind == TL_TYPE_INDEX || y->kind == TL_TYPE_INDEX) {
    // An index is a mathematical integer: with integers it stays one and never wraps.
    const tl_type *index = x->kind == TL_TYPE_INDEX ? x : y, *scalar = index == x ? y : x;
    if (!tl_dtype_is_float(scalar->dtype)) return index;
    return tl_type_scalar(sema->module, tl_sema_arithmetic_dtype(scalar->dtype));
  }
  return tl_type_scalar(sema->module, common_dtype(x->dtype, y->dtype));
}

tl_dtype tl_sema_index_dtype(const tl_value *index) {
  TL_VEC(const tl_value *) left = {0};
  tl_value_map seen = {0};  // lets may use each other many times
  tl_dtype dtype = TL_DTYPE_I32;
  tl_vec_push(&left, index);
  while (left.len && dtype == TL_DTYPE_I32) {
    const tl_op *op = tl_vec_pop(&left)->def;
    for (uint32_t i = 0; op && i < op->num_operands; ++i) {
      tl_value *operand = tl_op_operand(op, i);
      bool is_data =
          op->code == TL_OP_CAST && operand->type->kind == TL_TYPE_SCALAR && tl_dtype_is_int(operand->type->dtype);
      if (is_data && tl_dtype_bits(operand->type->dtype) > 32) dtype = TL_DTYPE_I64;
      if (operand->type->kind != TL_TYPE_INDEX || tl_value_map_get(&seen, operand) != operand) continue;
      tl_value_map_set(&seen, operand, NULL);
      tl_vec_push(&left, operand);
    }
    if (op && op->code == TL_OP_DYN_PARAM && tl_op_attr(op, TL_ATTR_WIDE)) dtype = TL_DTYPE_I64;
  }
  tl_vec_fini(&left);
  tl_value_map_fini(&seen);
  return dtype;
}

// A finite constant past a float's range, which becomes infinite or, where the dtype saturates, its largest value.
static void warn_of_overflow(tl_sema *sema, tl_dtype dtype, double value, double rounded, tl_loc loc) {
  double largest = tl_dtype_float_max(dtype);
  if (!isfinite(value) || fabs(value) <= largest || (isfinite(rounded) && fabs(rounded) < largest)) return;
  // What rounds to the largest value is as near to it as any constant is to its value.
  if (isfinite(rounded) && fabs(value) < largest * (1 + 0x1p-9)) return;
  const char *wide = tl_dtype_name(fabs(value) > tl_dtype_float_max(TL_DTYPE_F32) ? TL_DTYPE_F64 : TL_DTYPE_F32);
  tl_strbuf became;
  tl_strbuf_init(&became);
  tl_strbuf_append_double(&became, rounded);
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_CONSTANT_OVERFLOW, loc, "%g is past the range of %s, up to %g: it becomes %s",
                     value, tl_dtype_name(dtype), largest, tl_strbuf_c(&became));
  tl_strbuf_fini(&became);
  if (isfinite(rounded)) {
    tl_diag_add_hint(sema->diags, diag, "choose a value of the range, or say that it may saturate: cast(%g, %s)", value,
                     tl_dtype_name(dtype));
  } else {
    tl_diag_add_hint(sema->diags, diag,
                     "compute in %s, `cast(x, %s)`, where the value matters; write %sinf where infinity is meant", wide,
                     wide, value < 0 ? "-" : "");
  }
}

static tl_value *convert_const(tl_sema *sema, const tl_const *constant, const tl_type *type, tl_loc loc) {
  if (!tl_const_is_number(constant)) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "a number is needed, this is a dtype");
    return NULL;
  }
  sema->builder.loc = loc;
  if (type->kind == TL_TYPE_INDEX) {
    if (constant->kind == TL_CONST_INT) return tl_build_index(&sema->builder, constant->i);
    if (constant->kind == TL_CONST_BOOL) {
      tl_diag_report(sema->diags, TL_DIAG_INDEX_EXPECTED, loc, "an integer is needed, this is %s",
                     constant->i ? "true" : "false");
    } else {
      tl_diag_report(sema->diags, TL_DIAG_INDEX_EXPECTED, loc, "an integer is needed, this is %g", constant->f);
    }
    return NULL;
  }
  if (tl_dtype_is_float(type->dtype)) {
    double value = tl_const_to_double(constant), rounded = tl_dtype_round(type->dtype, value);
    warn_of_overflow(sema, type->dtype, value, rounded, loc);
    return tl_build_const_float(&sema->builder, type, rounded);
  }
  if (type->dtype == TL_DTYPE_BOOL) return tl_build_bool(&sema->builder, tl_const_to_double(constant) != 0);
  int64_t lo = tl_dtype_int_min(type->dtype);
  uint64_t hi = tl_dtype_int_max(type->dtype);
  if (constant->kind == TL_CONST_FLOAT) {
    if (isinf(constant->f)) return tl_build_const_int(&sema->builder, type, constant->f < 0 ? lo : (int64_t)hi);
    if (constant->f != trunc(constant->f) || fabs(constant->f) > 0x1p53) {
      tl_diag_report(sema->diags, TL_DIAG_CONSTANT_RANGE, loc, "%g is no %s; round it or cast it", constant->f,
                     tl_dtype_name(type->dtype));
      return NULL;
    }
  }
  int64_t value = constant->kind == TL_CONST_FLOAT ? (int64_t)constant->f : constant->i;
  if (value < lo || (value > 0 && (uint64_t)value > hi)) {
    tl_diag_report(sema->diags, TL_DIAG_CONSTANT_RANGE, loc, "%lld does not fit %s (%lld to %llu)", (long long)value,
                   tl_dtype_name(type->dtype), (long long)lo, (unsigned long long)hi);
    return NULL;
  }
  return tl_build_const_int(&sema->builder, type, value);
}

tl_value *tl_sema_convert(tl_sema *sema, const tl_sema_value *value, const tl_type *type, tl_loc loc) {
  if (value->kind == TL_SEMA_POISON) return NULL;
  if (value->kind == TL_SEMA_CONST) return convert_const(sema, &value->constant, type, loc);
  bool is_truth = value->kind == TL_SEMA_VALUE && value->value->type->dtype == TL_DTYPE_BOOL;
  if (type->kind == TL_TYPE_INDEX && (is_truth || tl_sema_is_float(value))) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_INDEX_EXPECTED, loc, "an integer is needed, this is %s",
                                   tl_sema_type_text(sema, value));
    tl_diag_add_hint(sema->diags, diag, "convert it: cast(x, i32)");
    return NULL;
  }
  sema->builder.loc = loc;
  return tl_build_cast(&sema->builder, value->value, type);
}

tl_value *tl_sema_to_dtype(tl_sema *sema, const tl_sema_value *value, tl_dtype dtype, tl_loc loc) {
  return tl_sema_convert(sema, value, tl_type_scalar(sema->module, dtype), loc);
}

tl_sema_value tl_sema_to_bool(tl_sema *sema, const tl_sema_value *value, tl_loc loc) {
  if (value->kind == TL_SEMA_POISON) return *value;
  bool truth;
  if (value->kind == TL_SEMA_CONST && tl_const_truth(&value->constant, &truth)) {
    return tl_sema_of_const(tl_const_bool(truth));
  }
  if (!tl_sema_is_integer(value)) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_CONDITION, loc, "a condition is needed, this is %s",
                                   tl_sema_type_text(sema, value));
    tl_diag_add_hint(sema->diags, diag, "compare it: `x != 0`");
    return tl_sema_poison();
  }
  const tl_type *type = value->value->type;
  if (type->kind == TL_TYPE_SCALAR && type->dtype == TL_DTYPE_BOOL) return *value;
  sema->builder.loc = loc;
  tl_value *zero =
      type->kind == TL_TYPE_INDEX ? tl_build_index(&sema->builder, 0) : tl_build_const_int(&sema->builder, type, 0);
  return tl_sema_of_value(tl_build_cmp(&sema->builder, TL_CMP_NE, value->value, zero));
}

void tl_sema_report_fold(tl_diags *diags, tl_fold_result result, tl_loc loc, const char *what) {
  switch (result) {
    case TL_FOLD_OK:
      break;
    case TL_FOLD_OVERFLOW:
      tl_diag_report(diags, TL_DIAG_FOLD_OVERFLOW, loc, "%s leaves the range of 64-bit integers", what);
      break;
    case TL_FOLD_DIV_ZERO:
      tl_diag_report(diags, TL_DIAG_DIVISION_BY_ZERO, loc, "division by zero");
      break;
    case TL_FOLD_TYPE:
      tl_diag_report(diags, TL_DIAG_TYPE_MISMATCH, loc, "%s does not take such operands", what);
      break;
    case TL_FOLD_NO_DTYPE:
      tl_diag_report(diags, TL_DIAG_TYPE_MISMATCH, loc, "literals have no dtype: write `%s(cast(x, f32), y)`", what);
      break;
    case TL_FOLD_EXPONENT:
      tl_diag_report(diags, TL_DIAG_TYPE_MISMATCH, loc, "`%s` takes a whole exponent, not a float", what);
      break;
    case TL_FOLD_NOT_CONST:
      tl_diag_report(diags, TL_DIAG_NOT_CONSTANT, loc, "%s has no value at compile time", what);
      break;
  }
}

void tl_sema_report_fold_call(tl_diags *diags, tl_fold_result result, tl_loc loc, const char *function,
                              const tl_const *args, uint32_t num_args) {
  uint32_t i = 0;
  bool numbers = true;
  while (i < num_args && args[i].kind != TL_CONST_FLOAT) ++i;
  for (uint32_t a = 0; a < num_args; ++a) numbers &= tl_const_is_number(&args[a]);
  if (result != TL_FOLD_TYPE || i == num_args || !numbers) {
    tl_sema_report_fold(diags, result, loc, function);
    return;
  }
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_const_print(&args[i], &text);
  tl_diag_report(diags, TL_DIAG_TYPE_MISMATCH, loc, "`%s` takes integers, not the float %s", function,
                 tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

const char *tl_sema_op_text(tl_expr_op op) {
  switch (op) {
    case TL_EXPR_OP_NONE:
      return "?";
    case TL_EXPR_OP_NEG:
    case TL_EXPR_OP_SUB:
      return "`-`";
    case TL_EXPR_OP_POS:
    case TL_EXPR_OP_ADD:
      return "`+`";
    case TL_EXPR_OP_INVERT:
      return "`~`";
    case TL_EXPR_OP_NOT:
      return "`not`";
    case TL_EXPR_OP_MUL:
      return "`*`";
    case TL_EXPR_OP_DIV:
      return "`/`";
    case TL_EXPR_OP_FLOORDIV:
      return "`//`";
    case TL_EXPR_OP_MOD:
      return "`%`";
    case TL_EXPR_OP_POW:
      return "`**`";
    case TL_EXPR_OP_BITAND:
      return "`&`";
    case TL_EXPR_OP_BITOR:
      return "`|`";
    case TL_EXPR_OP_BITXOR:
      return "`^`";
    case TL_EXPR_OP_SHL:
      return "`<<`";
    case TL_EXPR_OP_SHR:
      return "`>>`";
    case TL_EXPR_OP_AND:
      return "`and`";
    case TL_EXPR_OP_OR:
      return "`or`";
    case TL_EXPR_OP_MATMUL:
      return "`@`";
    case TL_EXPR_OP_EQ:
      return "`==`";
    case TL_EXPR_OP_NE:
      return "`!=`";
    case TL_EXPR_OP_LT:
      return "`<`";
    case TL_EXPR_OP_LE:
      return "`<=`";
    case TL_EXPR_OP_GT:
      return "`>`";
    case TL_EXPR_OP_GE:
      return "`>=`";
  }
  return "?";
}
