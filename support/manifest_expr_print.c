// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of the manifest as text: their own, and C.
#include "support/manifest_expr.h"

typedef struct op_info {
  const char *text;
  int prec;
} op_info;

static op_info info_of(mexpr_op op) {
  switch (op) {
    case OP_INT:
    case OP_NAME:
      return (op_info){"", PREC_ATOM};
    case OP_NEG:
      return (op_info){"-", PREC_UNARY};
    case OP_NOT:
      return (op_info){"not ", PREC_NOT};
    case OP_ADD:
      return (op_info){"+", PREC_ADD};
    case OP_SUB:
      return (op_info){"-", PREC_ADD};
    case OP_MUL:
      return (op_info){"*", PREC_MUL};
    case OP_FLOORDIV:
      return (op_info){"//", PREC_MUL};
    case OP_MOD:
      return (op_info){"%", PREC_MUL};
    case OP_MIN:
      return (op_info){"min", PREC_ATOM};
    case OP_MAX:
      return (op_info){"max", PREC_ATOM};
    case OP_CEILDIV:
      return (op_info){"ceildiv", PREC_ATOM};
    case OP_EQ:
      return (op_info){"==", PREC_COMPARE};
    case OP_NE:
      return (op_info){"!=", PREC_COMPARE};
    case OP_LT:
      return (op_info){"<", PREC_COMPARE};
    case OP_LE:
      return (op_info){"<=", PREC_COMPARE};
    case OP_GT:
      return (op_info){">", PREC_COMPARE};
    case OP_GE:
      return (op_info){">=", PREC_COMPARE};
    case OP_AND:
      return (op_info){"and", PREC_AND};
    case OP_OR:
      return (op_info){"or", PREC_OR};
  }
  return (op_info){"?", PREC_ATOM};
}

static void print_at(const tl_mexpr *expr, int least, tl_strbuf *out) {
  if (!expr) return;
  op_info info = info_of(expr->op);
  // A negative number binds like a negation.
  int prec = expr->op == OP_INT && expr->value < 0 ? PREC_UNARY : info.prec;
  if (prec < least) tl_strbuf_append_char(out, '(');
  switch (expr->op) {
    case OP_INT:
      tl_strbuf_appendf(out, "%lld", (long long)expr->value);
      break;
    case OP_NAME:
      tl_strbuf_append_c(out, expr->name);
      break;
    case OP_NEG:
    case OP_NOT:
      tl_strbuf_append_c(out, info.text);
      print_at(expr->a, prec, out);
      break;
    case OP_MIN:
    case OP_MAX:
    case OP_CEILDIV:
      tl_strbuf_appendf(out, "%s(", info.text);
      print_at(expr->a, PREC_OR, out);
      tl_strbuf_append_c(out, ", ");
      print_at(expr->b, PREC_OR, out);
      tl_strbuf_append_char(out, ')');
      break;
    default:
      // Left-associative; comparisons chain, so that a comparison as operand needs parentheses on both sides.
      print_at(expr->a, prec == PREC_COMPARE ? prec + 1 : prec, out);
      tl_strbuf_appendf(out, " %s ", info.text);
      print_at(expr->b, prec + 1, out);
      break;
  }
  if (prec < least) tl_strbuf_append_char(out, ')');
}

void tl_mexpr_print(const tl_mexpr *expr, tl_strbuf *out) {
  print_at(expr, PREC_OR, out);
}

// ---- C

// Whether it has no names, and its value then.
static bool is_constant_expr(const tl_mexpr *expr, int64_t *out) {
  tl_status status = tl_mexpr_eval(expr, NULL, 0, out);
  bool is_constant = !status;
  tl_status_free(status);
  return is_constant;
}

static void print_number(int64_t value, tl_strbuf *out) {
  if (value == INT64_MIN)
    tl_strbuf_append_c(out, "INT64_MIN");
  else
    tl_strbuf_appendf(out, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

void tl_mexpr_print_c(const tl_mexpr *expr, const tl_mexpr_c_names *names, tl_strbuf *out) {
  static const char *const calls[] = {
      [OP_ADD] = "tlk_add",           [OP_SUB] = "tlk_sub", [OP_MUL] = "tlk_mul",
      [OP_FLOORDIV] = "tlk_floordiv", [OP_MOD] = "tlk_mod", [OP_CEILDIV] = "tlk_ceildiv"};
  int64_t constant;
  if (is_constant_expr(expr, &constant)) {
    print_number(constant, out);
    return;
  }
  switch (expr->op) {
    case OP_INT:
      print_number(expr->value, out);
      break;
    case OP_NAME:
      names->print(expr->name, names->user, out);
      break;
    case OP_NEG:
    case OP_NOT:
      tl_strbuf_append_c(out, expr->op == OP_NEG ? "tlk_sub(0, " : "(!");
      tl_mexpr_print_c(expr->a, names, out);
      tl_strbuf_append_c(out, expr->op == OP_NEG ? ", &tlk_bad)" : ")");
      break;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_FLOORDIV:
    case OP_MOD:
    case OP_CEILDIV:
    case OP_MIN:
    case OP_MAX: {
      bool is_choice = expr->op == OP_MIN || expr->op == OP_MAX;
      tl_strbuf_appendf(out, "%s(", expr->op == OP_MIN ? "tlk_min" : expr->op == OP_MAX ? "tlk_max" : calls[expr->op]);
      tl_mexpr_print_c(expr->a, names, out);
      tl_strbuf_append_c(out, ", ");
      tl_mexpr_print_c(expr->b, names, out);
      tl_strbuf_append_c(out, is_choice ? ")" : ", &tlk_bad)");
      break;
    }
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR:
      tl_strbuf_append_char(out, '(');
      tl_mexpr_print_c(expr->a, names, out);
      tl_strbuf_appendf(out, " %s ", expr->op == OP_AND ? "&&" : expr->op == OP_OR ? "||" : info_of(expr->op).text);
      tl_mexpr_print_c(expr->b, names, out);
      tl_strbuf_append_char(out, ')');
      break;
  }
}
