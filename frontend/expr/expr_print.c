// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Canonical text of expressions (parses back to an equal tree) and structural equality.
#include <math.h>
#include <string.h>

#include "frontend/expr/expr_internal.h"

// How tightly the printed form of a node binds; a child that binds less than its place asks for gets parentheses.
enum {
  TIGHT_CONDITIONAL,
  TIGHT_OR,
  TIGHT_AND,
  TIGHT_NOT,
  TIGHT_COMPARE,
  TIGHT_BITOR,
  TIGHT_BITXOR,
  TIGHT_BITAND,
  TIGHT_SHIFT,
  TIGHT_SUM,
  TIGHT_PRODUCT,
  TIGHT_UNARY,
  TIGHT_POWER,
  TIGHT_POSTFIX
};

typedef struct op_info {
  const char *text;
  int tightness;
} op_info;

static op_info info_of(tl_expr_op op) {
  switch (op) {
    case TL_EXPR_OP_NONE:
      return (op_info){"?", TIGHT_POSTFIX};
    case TL_EXPR_OP_NEG:
      return (op_info){"-", TIGHT_UNARY};
    case TL_EXPR_OP_POS:
      return (op_info){"+", TIGHT_UNARY};
    case TL_EXPR_OP_INVERT:
      return (op_info){"~", TIGHT_UNARY};
    case TL_EXPR_OP_NOT:
      return (op_info){"not ", TIGHT_NOT};
    case TL_EXPR_OP_ADD:
      return (op_info){"+", TIGHT_SUM};
    case TL_EXPR_OP_SUB:
      return (op_info){"-", TIGHT_SUM};
    case TL_EXPR_OP_MUL:
      return (op_info){"*", TIGHT_PRODUCT};
    case TL_EXPR_OP_DIV:
      return (op_info){"/", TIGHT_PRODUCT};
    case TL_EXPR_OP_FLOORDIV:
      return (op_info){"//", TIGHT_PRODUCT};
    case TL_EXPR_OP_MOD:
      return (op_info){"%", TIGHT_PRODUCT};
    case TL_EXPR_OP_POW:
      return (op_info){"**", TIGHT_POWER};
    case TL_EXPR_OP_BITAND:
      return (op_info){"&", TIGHT_BITAND};
    case TL_EXPR_OP_BITOR:
      return (op_info){"|", TIGHT_BITOR};
    case TL_EXPR_OP_BITXOR:
      return (op_info){"^", TIGHT_BITXOR};
    case TL_EXPR_OP_SHL:
      return (op_info){"<<", TIGHT_SHIFT};
    case TL_EXPR_OP_SHR:
      return (op_info){">>", TIGHT_SHIFT};
    case TL_EXPR_OP_AND:
      return (op_info){"and", TIGHT_AND};
    case TL_EXPR_OP_OR:
      return (op_info){"or", TIGHT_OR};
    case TL_EXPR_OP_MATMUL:
      return (op_info){"@", TIGHT_PRODUCT};
    case TL_EXPR_OP_EQ:
      return (op_info){"==", TIGHT_COMPARE};
    case TL_EXPR_OP_NE:
      return (op_info){"!=", TIGHT_COMPARE};
    case TL_EXPR_OP_LT:
      return (op_info){"<", TIGHT_COMPARE};
    case TL_EXPR_OP_LE:
      return (op_info){"<=", TIGHT_COMPARE};
    case TL_EXPR_OP_GT:
      return (op_info){">", TIGHT_COMPARE};
    case TL_EXPR_OP_GE:
      return (op_info){">=", TIGHT_COMPARE};
  }
  return (op_info){"?", TIGHT_POSTFIX};
}

static int tightness_of(const tl_expr *expr) {
  switch (expr->kind) {
    case TL_EXPR_CONDITIONAL:
      return TIGHT_CONDITIONAL;
    case TL_EXPR_COMPARE:
      return TIGHT_COMPARE;
    case TL_EXPR_UNARY:
    case TL_EXPR_BINARY:
      return info_of(expr->op).tightness;
    case TL_EXPR_INT:
      return expr->int_value < 0 ? TIGHT_UNARY : TIGHT_POSTFIX;
    case TL_EXPR_FLOAT:
      return signbit(expr->float_value) && !isnan(expr->float_value) ? TIGHT_UNARY : TIGHT_POSTFIX;
    case TL_EXPR_BOOL:
    case TL_EXPR_NONE:
    case TL_EXPR_STRING:
    case TL_EXPR_NAME:
    case TL_EXPR_CALL:
    case TL_EXPR_INDEX:
    case TL_EXPR_TRANSPOSE:
    case TL_EXPR_REDUCTION:
      return TIGHT_POSTFIX;
  }
  return TIGHT_POSTFIX;
}

static void print_at(const tl_expr *expr, int wanted, tl_strbuf *out) {
  if (!expr) return;
  bool parens = tightness_of(expr) < wanted;
  if (parens) tl_strbuf_append_char(out, '(');
  tl_expr_print(expr, out);
  if (parens) tl_strbuf_append_char(out, ')');
}

static void print_binary(const tl_expr *expr, tl_strbuf *out) {
  op_info info = info_of(expr->op);
  if (expr->op == TL_EXPR_OP_POW) {
    print_at(expr->operands[0], TIGHT_POSTFIX, out);
    tl_strbuf_append_c(out, " ** ");
    print_at(expr->operands[1], TIGHT_UNARY, out);
    return;
  }
  print_at(expr->operands[0], info.tightness, out);
  tl_strbuf_appendf(out, " %s ", info.text);
  print_at(expr->operands[1], info.tightness + 1, out);
}

static void print_compare(const tl_expr *expr, tl_strbuf *out) {
  for (uint32_t i = 0; i < expr->num_operands; i++) {
    if (i) tl_strbuf_appendf(out, " %s ", info_of(expr->compare_ops[i - 1]).text);
    print_at(expr->operands[i], TIGHT_BITOR, out);
  }
}

void tl_expr_print_bound(const tl_expr *expr, tl_strbuf *out) {
  size_t start = out->len;
  tl_expr_print(expr, out);
  if (out->data[start] != '+') return;
  // `:+` would be read as the count of a slice.
  tl_strbuf_append_c(out, "))");
  memmove(out->data + start + 1, out->data + start, out->len - 2 - start);
  out->data[start] = '(';
}

static void print_subscript(const tl_subscript *subscript, tl_strbuf *out) {
  switch (subscript->kind) {
    case TL_SUBSCRIPT_ELEMENT:
      print_at(subscript->lo, TIGHT_CONDITIONAL, out);
      break;
    case TL_SUBSCRIPT_NEWAXIS:
      tl_strbuf_append_c(out, "None");
      break;
    case TL_SUBSCRIPT_COUNT:
      print_at(subscript->lo, TIGHT_CONDITIONAL, out);
      tl_strbuf_append_c(out, ":+");
      print_at(subscript->hi, TIGHT_CONDITIONAL, out);
      break;
    case TL_SUBSCRIPT_RANGE:
      print_at(subscript->lo, TIGHT_CONDITIONAL, out);
      tl_strbuf_append_char(out, ':');
      if (subscript->hi) tl_expr_print_bound(subscript->hi, out);
      if (!subscript->step) break;
      tl_strbuf_append_char(out, ':');
      tl_expr_print_bound(subscript->step, out);
      break;
  }
}

static void print_call(const tl_expr *expr, tl_strbuf *out) {
  tl_strbuf_append(out, expr->text);
  tl_strbuf_append_char(out, '(');
  for (uint32_t i = 0; i < expr->num_operands; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    print_at(expr->operands[i], TIGHT_CONDITIONAL, out);
  }
  for (uint32_t i = 0; i < expr->num_keywords; i++) {
    if (i || expr->num_operands) tl_strbuf_append_c(out, ", ");
    tl_strbuf_append(out, expr->keywords[i].name);
    tl_strbuf_append_char(out, '=');
    print_at(expr->keywords[i].value, TIGHT_CONDITIONAL, out);
  }
  tl_strbuf_append_char(out, ')');
}

static void print_reduction(const tl_expr *expr, tl_strbuf *out) {
  tl_strbuf_append(out, expr->text);
  tl_strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < expr->num_indices; i++) {
    const tl_reduction_index *index = &expr->indices[i];
    if (i) tl_strbuf_append_c(out, ", ");
    tl_strbuf_append(out, index->name);
    if (!index->lo) continue;
    tl_strbuf_append_c(out, " in ");
    print_at(index->lo, TIGHT_CONDITIONAL, out);
    tl_strbuf_append_char(out, ':');
    tl_expr_print_bound(index->hi, out);
  }
  tl_strbuf_append_c(out, "](");
  print_at(expr->operands[0], TIGHT_CONDITIONAL, out);
  tl_strbuf_append_char(out, ')');
}

static void print_string(tl_str text, tl_strbuf *out) {
  tl_strbuf_append_char(out, '\'');
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    if (c == '\n' || c == '\t') {
      tl_strbuf_append_c(out, c == '\n' ? "\\n" : "\\t");
      continue;
    }
    if (c == '\'' || c == '\\') tl_strbuf_append_char(out, '\\');
    tl_strbuf_append_char(out, c);
  }
  tl_strbuf_append_char(out, '\'');
}

void tl_expr_print(const tl_expr *expr, tl_strbuf *out) {
  switch (expr->kind) {
    case TL_EXPR_INT:
      tl_strbuf_appendf(out, "%lld", (long long)expr->int_value);
      break;
    case TL_EXPR_FLOAT:
      tl_strbuf_append_double(out, expr->float_value);
      break;
    case TL_EXPR_BOOL:
      tl_strbuf_append_c(out, expr->int_value ? "true" : "false");
      break;
    case TL_EXPR_NONE:
      tl_strbuf_append_c(out, "None");
      break;
    case TL_EXPR_STRING:
      print_string(expr->text, out);
      break;
    case TL_EXPR_NAME:
      tl_strbuf_append(out, expr->text);
      break;
    case TL_EXPR_UNARY:
      tl_strbuf_append_c(out, info_of(expr->op).text);
      print_at(expr->operands[0], info_of(expr->op).tightness, out);
      break;
    case TL_EXPR_BINARY:
      print_binary(expr, out);
      break;
    case TL_EXPR_COMPARE:
      print_compare(expr, out);
      break;
    case TL_EXPR_CONDITIONAL:
      print_at(expr->operands[0], TIGHT_OR, out);
      tl_strbuf_append_c(out, " if ");
      print_at(expr->operands[1], TIGHT_OR, out);
      tl_strbuf_append_c(out, " else ");
      print_at(expr->operands[2], TIGHT_CONDITIONAL, out);
      break;
    case TL_EXPR_CALL:
      print_call(expr, out);
      break;
    case TL_EXPR_INDEX:
      print_at(expr->operands[0], TIGHT_POSTFIX, out);
      tl_strbuf_append_char(out, '[');
      for (uint32_t i = 0; i < expr->num_subscripts; i++) {
        if (i) tl_strbuf_append_c(out, ", ");
        print_subscript(&expr->subscripts[i], out);
      }
      tl_strbuf_append_char(out, ']');
      break;
    case TL_EXPR_TRANSPOSE:
      // `3.T` would be read as a malformed number.
      print_at(expr->operands[0], TIGHT_POSTFIX, out);
      tl_strbuf_append_c(out, ".T");
      break;
    case TL_EXPR_REDUCTION:
      print_reduction(expr, out);
      break;
  }
}

static bool equal_or_null(const tl_expr *a, const tl_expr *b) {
  if (!a || !b) return a == b;
  return tl_expr_equal(a, b);
}

static bool equal_subscripts(const tl_expr *a, const tl_expr *b) {
  for (uint32_t i = 0; i < a->num_subscripts; i++) {
    const tl_subscript *x = &a->subscripts[i], *y = &b->subscripts[i];
    if (x->kind != y->kind || !equal_or_null(x->lo, y->lo) || !equal_or_null(x->hi, y->hi) ||
        !equal_or_null(x->step, y->step))
      return false;
  }
  return true;
}

static bool equal_parts(const tl_expr *a, const tl_expr *b) {
  for (uint32_t i = 0; i < a->num_operands; i++)
    if (!equal_or_null(a->operands[i], b->operands[i])) return false;
  if (a->kind == TL_EXPR_COMPARE)
    for (uint32_t i = 0; i + 1 < a->num_operands; i++)
      if (a->compare_ops[i] != b->compare_ops[i]) return false;
  for (uint32_t i = 0; i < a->num_keywords; i++)
    if (!tl_str_equal(a->keywords[i].name, b->keywords[i].name) ||
        !equal_or_null(a->keywords[i].value, b->keywords[i].value))
      return false;
  for (uint32_t i = 0; i < a->num_indices; i++)
    if (!tl_str_equal(a->indices[i].name, b->indices[i].name) || !equal_or_null(a->indices[i].lo, b->indices[i].lo) ||
        !equal_or_null(a->indices[i].hi, b->indices[i].hi))
      return false;
  return equal_subscripts(a, b);
}

bool tl_expr_equal(const tl_expr *a, const tl_expr *b) {
  if (a->kind != b->kind || a->op != b->op || a->int_value != b->int_value) return false;
  bool both_nan = isnan(a->float_value) && isnan(b->float_value);
  if (!both_nan && a->float_value != b->float_value) return false;
  if (!tl_str_equal(a->text, b->text)) return false;
  if (a->num_operands != b->num_operands || a->num_keywords != b->num_keywords ||
      a->num_subscripts != b->num_subscripts || a->num_indices != b->num_indices)
    return false;
  return equal_parts(a, b);
}
