// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether an expression is of integers, told before it is evaluated: a result that reads itself needs its type first.
#include "harness/reference/reference_calls.h"

static bool all_integers(const tl_ref_code *code, const tl_expr *expr, uint32_t first) {
  for (uint32_t i = first; i < expr->num_operands; i++) {
    if (!tl_ref_is_integer(code, expr->operands[i])) return false;
  }
  return true;
}

static bool is_integer_name(const tl_ref_code *code, tl_str name) {
  if (tl_ref_find_index(code, name)) return true;
  int number = tl_ref_buffer_number(code, name);
  if (number >= 0) return !code->reference->buffers.items[number]->is_float;
  const tl_env_entry *entry = tl_env_find(code->reference->env, name);
  return !entry || entry->value.kind != TL_CONST_FLOAT;  // no entry: an index of a reduction
}

static bool is_integer_dtype(const tl_ref_code *code, const tl_expr *expr) {
  tl_diags silent;
  tl_diags_init(&silent, code->reference->diags->sources);
  tl_const value;
  bool ok = tl_env_eval(code->reference->env, expr, &silent, &value);
  tl_diags_fini(&silent);
  return ok && value.kind == TL_CONST_DTYPE && !tl_dtype_is_float(value.dtype);
}

static bool is_integer_call(const tl_ref_code *code, const tl_expr *expr) {
  static const char *const always[] = {"ceildiv", "popcount", "clz",      "dp4a",    "philox",        "in_bounds",
                                       "isnan",   "isinf",    "isfinite", "signbit", "frexp_exponent"};
  static const char *const as_operands[] = {"abs",   "sign", "relu",  "min",   "max",       "clamp", "load",
                                            "floor", "ceil", "round", "trunc", "nearbyint", "rint",  "round_away"};
  tl_str name = expr->text;
  if (tl_str_is(name, "cast") || tl_str_is(name, "bitcast") || tl_ref_cast_mode(name) >= 0)
    return expr->num_operands >= 2 && is_integer_dtype(code, expr->operands[1]);
  if (tl_str_is(name, "inf")) return expr->num_operands == 1 && is_integer_dtype(code, expr->operands[0]);
  if (tl_str_is(name, "select") || tl_str_is(name, "if_then_else")) return all_integers(code, expr, 1);
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
    if (tl_str_is(name, always[i])) return true;
  }
  for (size_t i = 0; i < sizeof as_operands / sizeof as_operands[0]; i++) {
    if (tl_str_is(name, as_operands[i])) return all_integers(code, expr, 0);
  }
  return false;
}

static bool is_integer_binary(const tl_ref_code *code, const tl_expr *expr) {
  int64_t exponent;
  switch (expr->op) {
    case TL_EXPR_OP_AND:
    case TL_EXPR_OP_OR:
    case TL_EXPR_OP_BITAND:
    case TL_EXPR_OP_BITOR:
    case TL_EXPR_OP_BITXOR:
    case TL_EXPR_OP_SHL:
    case TL_EXPR_OP_SHR:
      return true;  // of floats they are reported
    case TL_EXPR_OP_DIV:
    case TL_EXPR_OP_MATMUL:
      return false;
    case TL_EXPR_OP_POW:
      if (!tl_ref_fold_int(code, expr->operands[1], &exponent) || exponent < 0 || exponent > 64) return false;
      return tl_ref_is_integer(code, expr->operands[0]);
    default:
      return all_integers(code, expr, 0);
  }
}

bool tl_ref_is_integer(const tl_ref_code *code, const tl_expr *expr) {
  switch (expr->kind) {
    case TL_EXPR_INT:
    case TL_EXPR_BOOL:
    case TL_EXPR_COMPARE:
      return true;
    case TL_EXPR_NAME:
      return is_integer_name(code, expr->text);
    case TL_EXPR_INDEX:
      return is_integer_name(code, tl_ref_base_name(expr));
    case TL_EXPR_UNARY:
      return expr->op == TL_EXPR_OP_NOT || tl_ref_is_integer(code, expr->operands[0]);
    case TL_EXPR_BINARY:
      return is_integer_binary(code, expr);
    case TL_EXPR_CONDITIONAL:
      return tl_ref_is_integer(code, expr->operands[0]) && tl_ref_is_integer(code, expr->operands[2]);
    case TL_EXPR_CALL:
      return is_integer_call(code, expr);
    case TL_EXPR_REDUCTION: {
      bool counts = tl_str_is(expr->text, "argmax") || tl_str_is(expr->text, "argmin") ||
                    tl_str_is(expr->text, "any") || tl_str_is(expr->text, "all");
      return counts || (tl_ref_is_reduction(expr->text) && tl_ref_is_integer(code, expr->operands[0]));
    }
    case TL_EXPR_FLOAT:
    case TL_EXPR_NONE:
    case TL_EXPR_STRING:
    case TL_EXPR_TRANSPOSE:
      break;
  }
  return false;
}
