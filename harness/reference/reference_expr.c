// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators of index notation as LLVM IR text. Everything is evaluated, branches of conditionals too: nothing here can
// trap.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/reference/reference_calls.h"
#include "harness/reference/reference_internal.h"

tl_diag *tl_ref_error(tl_ref_code *code, tl_loc loc, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tl_diag_report(code->reference->diags, TL_DIAG_REFERENCE_EXPR, loc, "%s", text);
}

tl_ref_value tl_ref_const_int(int64_t value) {
  tl_ref_value out = {.kind = TL_REF_INT, .has_range = true, .lo = value, .hi = value};
  snprintf(out.text, sizeof out.text, "%lld", (long long)value);
  return out;
}

tl_ref_value tl_ref_const_float(double value) {
  tl_ref_value out = {.kind = TL_REF_FLOAT};
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  snprintf(out.text, sizeof out.text, "0x%016llX", (unsigned long long)bits);
  return out;
}

tl_ref_value tl_ref_op(tl_ref_code *code, int kind, const char *format, ...) {
  tl_ref_value out = {.kind = kind};
  int number = code->next_value++;
  snprintf(out.text, sizeof out.text, "%%v%d", number);
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_strbuf_appendf(&code->body, "  %s = %s\n", out.text, text);
  return out;
}

tl_ref_value tl_ref_to_float(tl_ref_code *code, tl_ref_value value) {
  switch (value.kind) {
    case TL_REF_FLOAT:
      return value;
    case TL_REF_INT:
      if (value.has_range && value.lo == value.hi) return tl_ref_const_float((double)value.lo);
      return tl_ref_op(code, TL_REF_FLOAT, "sitofp i64 %s to double", value.text);
    case TL_REF_BOOL:
      return tl_ref_op(code, TL_REF_FLOAT, "uitofp i1 %s to double", value.text);
  }
  return value;
}

tl_ref_value tl_ref_to_int(tl_ref_code *code, tl_ref_value value) {
  switch (value.kind) {
    case TL_REF_FLOAT:
      return tl_ref_op(code, TL_REF_INT, "call i64 @llvm.fptosi.sat.i64.f64(double %s)", value.text);
    case TL_REF_INT:
      return value;
    case TL_REF_BOOL: {
      tl_ref_value out = tl_ref_op(code, TL_REF_INT, "zext i1 %s to i64", value.text);
      out.has_range = true;
      out.lo = 0;
      out.hi = 1;
      return out;
    }
  }
  return value;
}

tl_ref_value tl_ref_to_bool(tl_ref_code *code, tl_ref_value value) {
  switch (value.kind) {
    case TL_REF_FLOAT:
      return tl_ref_op(code, TL_REF_BOOL, "fcmp une double %s, 0.0", value.text);
    case TL_REF_INT:
      return tl_ref_op(code, TL_REF_BOOL, "icmp ne i64 %s, 0", value.text);
    case TL_REF_BOOL:
      return value;
  }
  return value;
}

tl_dtype tl_ref_common_dtype(const tl_ref_value *a, const tl_ref_value *b) {
  tl_dtype dtypes[2] = {a->dtype, b->dtype};
  const tl_ref_value *values[2] = {a, b};
  bool is_const[2];
  for (int i = 0; i < 2; i++) {
    bool narrow = values[i]->kind == TL_REF_BOOL || (dtypes[i] != TL_DTYPE_NONE && tl_dtype_bits(dtypes[i]) < 32);
    if (narrow) dtypes[i] = TL_DTYPE_I32;
    is_const[i] = dtypes[i] == TL_DTYPE_NONE && values[i]->has_range && values[i]->lo == values[i]->hi;
  }
  if (is_const[0] || is_const[1]) return dtypes[is_const[0] ? 1 : 0];
  if (dtypes[0] == dtypes[1]) return dtypes[0];
  if (dtypes[0] == TL_DTYPE_NONE || dtypes[1] == TL_DTYPE_NONE) return TL_DTYPE_NONE;
  bool has_u64 = dtypes[0] == TL_DTYPE_U64 || dtypes[1] == TL_DTYPE_U64;
  bool has_u32 = dtypes[0] == TL_DTYPE_U32 || dtypes[1] == TL_DTYPE_U32;
  return has_u64 && has_u32 ? TL_DTYPE_U64 : TL_DTYPE_I64;
}

bool tl_ref_emit_int(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  if (!tl_ref_emit(code, expr, out)) return false;
  if (out->kind == TL_REF_FLOAT) {
    tl_ref_error(code, expr->loc, "an integer is needed here, not a floating-point number");
    return false;
  }
  *out = tl_ref_to_int(code, *out);
  return true;
}

// ---- integer arithmetic with ranges, so that subscripts can be proven in bounds

static tl_ref_value with_range(tl_ref_value value, bool known, int64_t lo, int64_t hi) {
  if (!known) return value;
  if (lo == hi) return tl_ref_const_int(lo);
  value.has_range = true;
  value.lo = lo;
  value.hi = hi;
  return value;
}

static bool product_range(const tl_ref_value *a, const tl_ref_value *b, int64_t *lo, int64_t *hi) {
  const int64_t left[2] = {a->lo, a->hi}, right[2] = {b->lo, b->hi};
  int64_t corners[4];
  for (int i = 0; i < 4; i++) {
    if (__builtin_mul_overflow(left[i / 2], right[i % 2], &corners[i])) return false;
  }
  *lo = *hi = corners[0];
  for (int i = 1; i < 4; i++) {
    if (corners[i] < *lo) *lo = corners[i];
    if (corners[i] > *hi) *hi = corners[i];
  }
  return true;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

tl_ref_value tl_ref_int_add(tl_ref_code *code, tl_ref_value a, tl_ref_value b, bool subtract) {
  int64_t lo = 0, hi = 0;
  bool known = a.has_range && b.has_range;
  if (known && subtract) known = !__builtin_sub_overflow(a.lo, b.hi, &lo) && !__builtin_sub_overflow(a.hi, b.lo, &hi);
  if (known && !subtract) known = !__builtin_add_overflow(a.lo, b.lo, &lo) && !__builtin_add_overflow(a.hi, b.hi, &hi);
  if (known && lo == hi) return tl_ref_const_int(lo);
  return with_range(tl_ref_op(code, TL_REF_INT, "%s i64 %s, %s", subtract ? "sub" : "add", a.text, b.text), known, lo,
                    hi);
}

tl_ref_value tl_ref_int_mul(tl_ref_code *code, tl_ref_value a, tl_ref_value b) {
  int64_t lo = 0, hi = 0;
  bool known = a.has_range && b.has_range && product_range(&a, &b, &lo, &hi);
  if (known && lo == hi) return tl_ref_const_int(lo);
  return with_range(tl_ref_op(code, TL_REF_INT, "mul i64 %s, %s", a.text, b.text), known, lo, hi);
}

// Floor division (or its remainder): LLVM's truncates, traps on 0 and overflows at INT64_MIN / -1.
tl_ref_value tl_ref_int_div(tl_ref_code *code, tl_ref_value a, tl_ref_value b, bool remainder) {
  bool is_const = b.has_range && b.lo == b.hi && b.lo > 0;
  if (is_const && a.has_range && a.lo == a.hi) {
    int64_t quotient = floor_div(a.lo, b.lo);
    return tl_ref_const_int(remainder ? a.lo - quotient * b.lo : quotient);
  }
  if (is_const && a.has_range && a.lo >= 0) {
    tl_ref_value plain = tl_ref_op(code, TL_REF_INT, "%s i64 %s, %s", remainder ? "urem" : "udiv", a.text, b.text);
    if (remainder) return with_range(plain, true, 0, a.hi < b.lo ? a.hi : b.lo - 1);
    return with_range(plain, true, a.lo / b.lo, a.hi / b.lo);
  }
  tl_ref_value divisor = b;
  if (!is_const) {
    tl_ref_value zero = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, 0", b.text);
    tl_ref_value minus = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, -1", b.text);
    tl_ref_value special = tl_ref_op(code, TL_REF_BOOL, "or i1 %s, %s", zero.text, minus.text);
    divisor = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 1, i64 %s", special.text, b.text);
  }
  tl_ref_value quotient = tl_ref_op(code, TL_REF_INT, "sdiv i64 %s, %s", a.text, divisor.text);
  tl_ref_value rest = tl_ref_op(code, TL_REF_INT, "srem i64 %s, %s", a.text, divisor.text);
  tl_ref_value has_rest = tl_ref_op(code, TL_REF_BOOL, "icmp ne i64 %s, 0", rest.text);
  tl_ref_value signs = tl_ref_op(code, TL_REF_INT, "xor i64 %s, %s", rest.text, divisor.text);
  tl_ref_value differ = tl_ref_op(code, TL_REF_BOOL, "icmp slt i64 %s, 0", signs.text);
  tl_ref_value adjust = tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", has_rest.text, differ.text);
  if (remainder) {
    tl_ref_value add = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 %s, i64 0", adjust.text, divisor.text);
    tl_ref_value out = tl_ref_op(code, TL_REF_INT, "add i64 %s, %s", rest.text, add.text);
    return is_const ? with_range(out, true, 0, b.lo - 1) : out;
  }
  tl_ref_value one = tl_ref_op(code, TL_REF_INT, "zext i1 %s to i64", adjust.text);
  tl_ref_value floor = tl_ref_op(code, TL_REF_INT, "sub i64 %s, %s", quotient.text, one.text);
  if (is_const) return with_range(floor, a.has_range, floor_div(a.lo, b.lo), floor_div(a.hi, b.lo));
  tl_ref_value negated = tl_ref_op(code, TL_REF_INT, "sub i64 0, %s", a.text);
  tl_ref_value minus = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, -1", b.text);
  tl_ref_value zero = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, 0", b.text);
  tl_ref_value out = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 %s, i64 %s", minus.text, negated.text, floor.text);
  return tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 0, i64 %s", zero.text, out.text);
}

// ---- operators

// floor(a / b) or a - b * floor(a / b). A small negative quotient may round to -0, whose floor is -1; a quotient of
// zero leaves a itself, for an infinite b too.
static tl_ref_value float_floor_div(tl_ref_code *code, tl_ref_value a, tl_ref_value b, bool remainder) {
  tl_ref_value quotient = tl_ref_op(code, TL_REF_FLOAT, "fdiv double %s, %s", a.text, b.text);
  quotient = tl_ref_op(code, TL_REF_FLOAT, "call double @llvm.floor.f64(double %s)", quotient.text);
  tl_ref_value is_zero = tl_ref_op(code, TL_REF_BOOL, "fcmp oeq double %s, 0.0", quotient.text);
  tl_ref_value product = tl_ref_op(code, TL_REF_FLOAT, "fmul double %s, %s", a.text, b.text);
  tl_ref_value differ = tl_ref_op(code, TL_REF_BOOL, "fcmp olt double %s, 0.0", product.text);
  tl_ref_value is_below = tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", is_zero.text, differ.text);
  quotient = tl_ref_select(code, is_below, tl_ref_const_float(-1), quotient);
  if (!remainder) return quotient;
  is_zero = tl_ref_op(code, TL_REF_BOOL, "fcmp oeq double %s, 0.0", quotient.text);
  tl_ref_value negated = tl_ref_op(code, TL_REF_FLOAT, "fneg double %s", quotient.text);
  tl_ref_value rest = tl_ref_op(code, TL_REF_FLOAT, "call double @llvm.fma.f64(double %s, double %s, double %s)",
                                negated.text, b.text, a.text);
  return tl_ref_select(code, is_zero, a, rest);
}

static tl_ref_value float_binary(tl_ref_code *code, tl_expr_op op, tl_ref_value a, tl_ref_value b) {
  a = tl_ref_to_float(code, a);
  b = tl_ref_to_float(code, b);
  const char *name = op == TL_EXPR_OP_ADD   ? "fadd"
                     : op == TL_EXPR_OP_SUB ? "fsub"
                     : op == TL_EXPR_OP_MUL ? "fmul"
                                            : "fdiv";
  switch (op) {
    case TL_EXPR_OP_FLOORDIV:
    case TL_EXPR_OP_MOD:
      return float_floor_div(code, a, b, op == TL_EXPR_OP_MOD);
    case TL_EXPR_OP_POW:
      return tl_ref_op(code, TL_REF_FLOAT, "call double @pow(double %s, double %s)", a.text, b.text);
    default:
      return tl_ref_op(code, TL_REF_FLOAT, "%s double %s, %s", name, a.text, b.text);
  }
}

// Integer powers with a small constant exponent are products; others go through float64.
static tl_ref_value int_power(tl_ref_code *code, tl_ref_value a, tl_ref_value b) {
  if (b.has_range && b.lo == b.hi && b.lo >= 0 && b.lo <= 64) {
    tl_ref_value out = tl_ref_const_int(1);
    for (int64_t i = 0; i < b.lo; i++) out = tl_ref_int_mul(code, out, a);
    return out;
  }
  return float_binary(code, TL_EXPR_OP_POW, a, b);
}

static tl_ref_value shift(tl_ref_code *code, const char *name, tl_ref_value a, tl_ref_value b) {
  // Six bits: a larger count would be poison.
  tl_ref_value count = tl_ref_op(code, TL_REF_INT, "and i64 %s, 63", b.text);
  return tl_ref_op(code, TL_REF_INT, "%s i64 %s, %s", name, a.text, count.text);
}

static tl_ref_value bit_and(tl_ref_code *code, tl_ref_value a, tl_ref_value b) {
  tl_ref_value out = tl_ref_op(code, TL_REF_INT, "and i64 %s, %s", a.text, b.text);
  if (b.has_range && b.lo >= 0) return with_range(out, true, 0, b.hi);
  return out;
}

static bool emit_int_binary(tl_ref_code *code, const tl_expr *expr, tl_ref_value a, tl_ref_value b, tl_ref_value *out) {
  switch (expr->op) {
    case TL_EXPR_OP_ADD:
      *out = tl_ref_int_add(code, a, b, false);
      break;
    case TL_EXPR_OP_SUB:
      *out = tl_ref_int_add(code, a, b, true);
      break;
    case TL_EXPR_OP_MUL:
      *out = tl_ref_int_mul(code, a, b);
      break;
    case TL_EXPR_OP_FLOORDIV:
      *out = tl_ref_int_div(code, a, b, false);
      break;
    case TL_EXPR_OP_MOD:
      *out = tl_ref_int_div(code, a, b, true);
      break;
    case TL_EXPR_OP_POW:
      *out = int_power(code, a, b);
      break;
    case TL_EXPR_OP_BITAND:
      *out = bit_and(code, a, b);
      break;
    case TL_EXPR_OP_BITOR:
      *out = tl_ref_op(code, TL_REF_INT, "or i64 %s, %s", a.text, b.text);
      break;
    case TL_EXPR_OP_BITXOR:
      *out = tl_ref_op(code, TL_REF_INT, "xor i64 %s, %s", a.text, b.text);
      break;
    case TL_EXPR_OP_SHL:
      *out = shift(code, "shl", a, b);
      break;
    case TL_EXPR_OP_SHR:
      *out = shift(code, "ashr", a, b);
      break;
    default:
      tl_ref_error(code, expr->loc, "this operator has no meaning here");
      return false;
  }
  return true;
}

static bool is_bool_logic(tl_expr_op op) {
  return op == TL_EXPR_OP_BITAND || op == TL_EXPR_OP_BITOR || op == TL_EXPR_OP_BITXOR;
}

static bool emit_binary(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  if (expr->op == TL_EXPR_OP_MATMUL) {
    tl_ref_error(code, expr->loc, "`@` is no operation of index notation: write sum[k](A[m, k] * B[k, n])");
    return false;
  }
  tl_ref_value a, b;
  if (!tl_ref_emit(code, expr->operands[0], &a) || !tl_ref_emit(code, expr->operands[1], &b)) return false;
  if (expr->op == TL_EXPR_OP_AND || expr->op == TL_EXPR_OP_OR) {
    a = tl_ref_to_bool(code, a);
    b = tl_ref_to_bool(code, b);
    *out = tl_ref_op(code, TL_REF_BOOL, "%s i1 %s, %s", expr->op == TL_EXPR_OP_AND ? "and" : "or", a.text, b.text);
    return true;
  }
  bool any_float = a.kind == TL_REF_FLOAT || b.kind == TL_REF_FLOAT;
  bool is_bits = expr->op == TL_EXPR_OP_BITAND || expr->op == TL_EXPR_OP_BITOR || expr->op == TL_EXPR_OP_BITXOR ||
                 expr->op == TL_EXPR_OP_SHL || expr->op == TL_EXPR_OP_SHR;
  if (is_bits && any_float) {
    tl_ref_error(code, expr->loc, "bit operations take integers");
    return false;
  }
  if (any_float || expr->op == TL_EXPR_OP_DIV) {
    *out = float_binary(code, expr->op, a, b);
    return true;
  }
  if (is_bool_logic(expr->op) && a.kind == TL_REF_BOOL && b.kind == TL_REF_BOOL) {
    const char *name = expr->op == TL_EXPR_OP_BITAND ? "and" : expr->op == TL_EXPR_OP_BITOR ? "or" : "xor";
    *out = tl_ref_op(code, TL_REF_BOOL, "%s i1 %s, %s", name, a.text, b.text);
    return true;
  }
  bool is_shift = expr->op == TL_EXPR_OP_SHL || expr->op == TL_EXPR_OP_SHR;
  tl_dtype dtype = tl_ref_common_dtype(&a, is_shift && a.dtype != TL_DTYPE_NONE ? &a : &b);
  if (!emit_int_binary(code, expr, tl_ref_to_int(code, a), tl_ref_to_int(code, b), out)) return false;
  if (out->kind == TL_REF_INT) out->dtype = dtype;
  return true;
}

static bool emit_unary(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  tl_ref_value a;
  if (!tl_ref_emit(code, expr->operands[0], &a)) return false;
  switch (expr->op) {
    case TL_EXPR_OP_POS:
      *out = a.kind == TL_REF_BOOL ? tl_ref_to_int(code, a) : a;
      if (out->kind == TL_REF_INT) out->dtype = tl_ref_common_dtype(&a, &a);
      return true;
    case TL_EXPR_OP_NEG:
      if (a.kind == TL_REF_FLOAT) {
        *out = tl_ref_op(code, TL_REF_FLOAT, "fneg double %s", a.text);
      } else {
        *out = tl_ref_int_add(code, tl_ref_const_int(0), tl_ref_to_int(code, a), true);
        out->dtype = tl_ref_common_dtype(&a, &a);
      }
      return true;
    case TL_EXPR_OP_NOT:
      a = tl_ref_to_bool(code, a);
      *out = tl_ref_op(code, TL_REF_BOOL, "xor i1 %s, true", a.text);
      return true;
    case TL_EXPR_OP_INVERT:
      if (a.kind == TL_REF_FLOAT) break;
      if (a.kind == TL_REF_BOOL) {
        *out = tl_ref_op(code, TL_REF_BOOL, "xor i1 %s, true", a.text);
        return true;
      }
      *out = tl_ref_op(code, TL_REF_INT, "xor i64 %s, -1", a.text);
      out->dtype = tl_ref_common_dtype(&a, &a);
      return true;
    default:
      break;
  }
  tl_ref_error(code, expr->loc, "this operator has no meaning here");
  return false;
}

static tl_ref_value compare(tl_ref_code *code, tl_expr_op op, tl_ref_value a, tl_ref_value b) {
  const char *name = "eq";
  switch (op) {
    case TL_EXPR_OP_NE:
      name = "ne";
      break;
    case TL_EXPR_OP_LT:
      name = "lt";
      break;
    case TL_EXPR_OP_LE:
      name = "le";
      break;
    case TL_EXPR_OP_GT:
      name = "gt";
      break;
    case TL_EXPR_OP_GE:
      name = "ge";
      break;
    default:
      break;
  }
  if (a.kind == TL_REF_FLOAT || b.kind == TL_REF_FLOAT) {
    a = tl_ref_to_float(code, a);
    b = tl_ref_to_float(code, b);
    return tl_ref_op(code, TL_REF_BOOL, "fcmp %s%s double %s, %s", op == TL_EXPR_OP_NE ? "u" : "o", name, a.text,
                     b.text);
  }
  a = tl_ref_to_int(code, a);
  b = tl_ref_to_int(code, b);
  bool is_order = op != TL_EXPR_OP_EQ && op != TL_EXPR_OP_NE;
  return tl_ref_op(code, TL_REF_BOOL, "icmp %s%s i64 %s, %s", is_order ? "s" : "", name, a.text, b.text);
}

static bool emit_compare(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  tl_ref_value left, right;
  if (!tl_ref_emit(code, expr->operands[0], &left)) return false;
  for (uint32_t i = 1; i < expr->num_operands; i++) {
    if (!tl_ref_emit(code, expr->operands[i], &right)) return false;
    tl_ref_value one = compare(code, expr->compare_ops[i - 1], left, right);
    *out = i == 1 ? one : tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", out->text, one.text);
    left = right;
  }
  return true;
}

tl_ref_value tl_ref_select(tl_ref_code *code, tl_ref_value condition, tl_ref_value a, tl_ref_value b) {
  condition = tl_ref_to_bool(code, condition);
  if (a.kind == TL_REF_FLOAT || b.kind == TL_REF_FLOAT) {
    a = tl_ref_to_float(code, a);
    b = tl_ref_to_float(code, b);
    return tl_ref_op(code, TL_REF_FLOAT, "select i1 %s, double %s, double %s", condition.text, a.text, b.text);
  }
  if (a.kind == TL_REF_BOOL && b.kind == TL_REF_BOOL) {
    return tl_ref_op(code, TL_REF_BOOL, "select i1 %s, i1 %s, i1 %s", condition.text, a.text, b.text);
  }
  a = tl_ref_to_int(code, a);
  b = tl_ref_to_int(code, b);
  tl_ref_value out = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 %s, i64 %s", condition.text, a.text, b.text);
  return with_range(out, a.has_range && b.has_range, a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi);
}

static bool emit_name(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  const tl_ref_index *index = tl_ref_find_index(code, expr->text);
  if (index) {
    *out = (tl_ref_value){.kind = TL_REF_INT};
    snprintf(out->text, sizeof out->text, "%%v%d", index->value);
    if (index->has_range && index->lo < index->hi) {
      out->has_range = true;
      out->lo = index->lo;
      out->hi = index->hi - 1;
    }
    return true;
  }
  if (tl_ref_buffer_number(code, expr->text) >= 0) return tl_ref_emit_load(code, expr, NULL, out);
  const tl_env_entry *entry = tl_env_find(code->reference->env, expr->text);
  if (entry) {
    switch (entry->value.kind) {
      case TL_CONST_INT:
        *out = tl_ref_const_int(entry->value.i);
        return true;
      case TL_CONST_FLOAT:
        *out = tl_ref_const_float(entry->value.f);
        return true;
      case TL_CONST_BOOL:
        *out = (tl_ref_value){.kind = TL_REF_BOOL};
        snprintf(out->text, sizeof out->text, "%s", entry->value.i ? "true" : "false");
        return true;
      case TL_CONST_DTYPE:
        tl_ref_error(code, expr->loc, "`%.*s` is a dtype, not a number", TL_STR_ARG(expr->text));
        return false;
      case TL_CONST_DYNAMIC:
        tl_ref_error(code, expr->loc, "the dynamic param `%.*s` has no value: the case does not bind it",
                     TL_STR_ARG(expr->text));
        return false;
    }
  }
  tl_ref_error(code, expr->loc, "`%.*s` is no index, argument, result, param or let", TL_STR_ARG(expr->text));
  return false;
}

bool tl_ref_emit(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  tl_ref_value condition, a, b;
  switch (expr->kind) {
    case TL_EXPR_INT:
      *out = tl_ref_const_int(expr->int_value);
      return true;
    case TL_EXPR_FLOAT:
      *out = tl_ref_const_float(expr->float_value);
      return true;
    case TL_EXPR_BOOL:
      *out = (tl_ref_value){.kind = TL_REF_BOOL};
      snprintf(out->text, sizeof out->text, "%s", expr->int_value ? "true" : "false");
      return true;
    case TL_EXPR_NAME:
      return emit_name(code, expr, out);
    case TL_EXPR_UNARY:
      return emit_unary(code, expr, out);
    case TL_EXPR_BINARY:
      return emit_binary(code, expr, out);
    case TL_EXPR_COMPARE:
      return emit_compare(code, expr, out);
    case TL_EXPR_CONDITIONAL:
      if (!tl_ref_emit(code, expr->operands[0], &a) || !tl_ref_emit(code, expr->operands[1], &condition) ||
          !tl_ref_emit(code, expr->operands[2], &b)) {
        return false;
      }
      *out = tl_ref_select(code, condition, a, b);
      if (out->kind == TL_REF_INT) out->dtype = tl_ref_common_dtype(&a, &b);
      return true;
    case TL_EXPR_CALL:
      return tl_ref_emit_call(code, expr, out);
    case TL_EXPR_INDEX:
      return tl_ref_emit_load(code, expr, NULL, out);
    case TL_EXPR_REDUCTION:
      return tl_ref_emit_reduction(code, expr, out);
    case TL_EXPR_NONE:
    case TL_EXPR_STRING:
    case TL_EXPR_TRANSPOSE:
      break;
  }
  tl_ref_error(code, expr->loc, "this has no meaning in index notation");
  return false;
}
