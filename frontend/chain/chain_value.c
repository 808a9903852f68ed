// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of a chain's params as constants, or as what the launcher computes from dynamic names.
#include <stdlib.h>
#include <string.h>

#include "frontend/chain/chain_internal.h"
#include "support/status.h"

static const tl_expr *find_let(const tl_chain_scope *scope, tl_str name) {
  for (uint32_t i = 0; i < scope->unit->num_lets; i++)
    if (tl_str_equal(scope->unit->lets[i].name, name)) return scope->unit->lets[i].value;
  return NULL;
}

bool tl_chain_is_dynamic(const tl_chain_scope *scope, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_NAME) {
    const tl_env_entry *entry = tl_env_find(&scope->env, expr->text);
    return entry && entry->value.kind == TL_CONST_DYNAMIC;
  }
  for (uint32_t i = 0; i < expr->num_operands; i++)
    if (tl_chain_is_dynamic(scope, expr->operands[i])) return true;
  return false;
}

bool tl_chain_is_wide(const tl_chain_scope *scope, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_NAME) {
    for (uint32_t i = 0; i < scope->unit->num_params; i++)
      if (tl_str_equal(scope->unit->params[i].name, expr->text)) return scope->unit->params[i].is_wide;
    const tl_expr *let = find_let(scope, expr->text);
    return let && tl_chain_is_wide(scope, let);
  }
  for (uint32_t i = 0; i < expr->num_operands; i++)
    if (tl_chain_is_wide(scope, expr->operands[i])) return true;
  return false;
}

// ---- text for the launcher

typedef struct value_writer {
  const tl_chain_scope *scope;
  tl_diags *diags;
  tl_strbuf text;
  bool failed;  // reported
} value_writer;

static void write(value_writer *w, const tl_expr *expr);

static void fail(value_writer *w, const tl_expr *expr) {
  if (!w->failed)
    tl_diag_report(w->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc, "the launcher cannot compute this from dynamic params");
  w->failed = true;
}

static void write_const(value_writer *w, const tl_expr *expr) {
  tl_const value;
  if (!tl_env_eval(&w->scope->env, expr, w->diags, &value)) {
    w->failed = true;
  } else if (value.kind == TL_CONST_INT || value.kind == TL_CONST_BOOL) {
    tl_strbuf_appendf(&w->text, value.i < 0 ? "(%lld)" : "%lld", (long long)value.i);
  } else {
    fail(w, expr);
  }
}

static void write_name(value_writer *w, const tl_expr *expr) {
  const tl_env_entry *entry = tl_env_find(&w->scope->env, expr->text);
  const tl_expr *let = entry->is_dynamic ? NULL : find_let(w->scope, expr->text);
  const tl_mexpr *value = w->scope->dynamics[entry - w->scope->env.entries];
  if (let) {
    write(w, let);
  } else if (value) {
    tl_strbuf_append_char(&w->text, '(');
    tl_mexpr_print(value, &w->text);
    tl_strbuf_append_char(&w->text, ')');
  } else {
    fail(w, expr);
  }
}

static void write_joined(value_writer *w, const tl_expr *expr, const char *open, const char *between) {
  tl_strbuf_append_c(&w->text, open);
  for (uint32_t i = 0; i < expr->num_operands && !w->failed; i++) {
    if (i > 0) tl_strbuf_append_c(&w->text, between);
    write(w, expr->operands[i]);
  }
  tl_strbuf_append_char(&w->text, ')');
}

static const char *infix_of(tl_expr_op op) {
  static const struct {
    tl_expr_op op;
    const char *text;
  } signs[] = {{TL_EXPR_OP_ADD, " + "},       {TL_EXPR_OP_SUB, " - "}, {TL_EXPR_OP_MUL, " * "},
               {TL_EXPR_OP_FLOORDIV, " // "}, {TL_EXPR_OP_MOD, " % "}, {TL_EXPR_OP_AND, " and "},
               {TL_EXPR_OP_OR, " or "},       {TL_EXPR_OP_EQ, " == "}, {TL_EXPR_OP_NE, " != "},
               {TL_EXPR_OP_LT, " < "},        {TL_EXPR_OP_LE, " <= "}, {TL_EXPR_OP_GT, " > "},
               {TL_EXPR_OP_GE, " >= "}};
  for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
    if (signs[i].op == op) return signs[i].text;
  return NULL;
}

static void write(value_writer *w, const tl_expr *expr) {
  if (w->failed) return;
  if (!tl_chain_is_dynamic(w->scope, expr)) {
    write_const(w, expr);
    return;
  }
  static const char *const calls[] = {"min", "max", "ceildiv"};
  const char *infix;
  switch (expr->kind) {
    case TL_EXPR_NAME:
      write_name(w, expr);
      return;
    case TL_EXPR_UNARY:
      if (expr->op != TL_EXPR_OP_NEG && expr->op != TL_EXPR_OP_NOT) break;
      write_joined(w, expr, expr->op == TL_EXPR_OP_NEG ? "(-" : "(not ", "");
      return;
    case TL_EXPR_BINARY:
    case TL_EXPR_COMPARE:
      infix = infix_of(expr->kind == TL_EXPR_COMPARE ? expr->compare_ops[0] : expr->op);
      if (!infix || expr->num_operands != 2) break;
      write_joined(w, expr, "(", infix);
      return;
    case TL_EXPR_CALL:
      for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!tl_str_is(expr->text, calls[i]) || expr->num_operands != 2 || expr->num_keywords) continue;
        tl_strbuf_append_c(&w->text, calls[i]);
        write_joined(w, expr, "(", ", ");
        return;
      }
      break;
    default:
      break;
  }
  fail(w, expr);
}

const tl_mexpr *tl_chain_int(tl_arena *arena, const tl_chain_scope *scope, const tl_expr *expr, tl_diags *diags) {
  tl_const value;
  if (!tl_chain_is_dynamic(scope, expr)) {
    if (!tl_env_eval(&scope->env, expr, diags, &value)) return NULL;
    if (value.kind == TL_CONST_INT || value.kind == TL_CONST_BOOL) return tl_mexpr_int(arena, value.i);
    tl_diag_report(diags, TL_DIAG_INDEX_EXPECTED, expr->loc, "an integer is needed here");
    return NULL;
  }
  value_writer w = {.scope = scope, .diags = diags};
  write(&w, expr);
  const tl_mexpr *out = NULL;
  if (!w.failed) {
    tl_status status = tl_mexpr_parse(arena, tl_strbuf_view(&w.text), &out);
    if (status) fail(&w, expr);
    tl_status_free(status);
  }
  tl_strbuf_fini(&w.text);
  return w.failed ? NULL : out;
}

// ---- types

static bool eval_dtype(const tl_chain_scope *scope, const tl_expr *expr, tl_diags *diags, tl_dtype *out) {
  tl_const value;
  if (!tl_env_eval(&scope->env, expr, diags, &value)) return false;
  *out = value.kind == TL_CONST_DTYPE ? value.dtype : TL_DTYPE_NONE;
  if (value.kind == TL_CONST_DTYPE) return true;
  tl_diag_report(diags, TL_DIAG_DTYPE_EXPECTED, expr->loc, "a dtype is needed here");
  return false;
}

// A dim or stride: 0 to 2^47 - 1 where it is constant.
static const tl_mexpr *eval_extent(tl_arena *arena, const tl_chain_scope *scope, const tl_expr *expr, tl_diags *diags) {
  const tl_mexpr *value = tl_chain_int(arena, scope, expr, diags);
  int64_t constant;
  if (!value || !tl_mexpr_is_int(value, &constant) || (constant >= 0 && constant <= TL_WIDE_MAX)) return value;
  tl_diag_report(diags, TL_DIAG_DIM_RANGE, expr->loc, "a dim is 0 to 2^47 - 1, not %lld", (long long)constant);
  return NULL;
}

// NULL when it is too large an expression (or `a` or `b` was).
static const tl_mexpr *product(tl_arena *arena, const tl_mexpr *a, const tl_mexpr *b) {
  int64_t left, right, value;
  if (!a || !b) return NULL;
  bool has_left = tl_mexpr_is_int(a, &left), has_right = tl_mexpr_is_int(b, &right);
  if (has_left && has_right && !__builtin_mul_overflow(left, right, &value)) return tl_mexpr_int(arena, value);
  if (has_left && left == 1) return b;
  if (has_right && right == 1) return a;
  tl_strbuf text = {0};
  tl_strbuf_append_char(&text, '(');
  tl_mexpr_print(a, &text);
  tl_strbuf_append_c(&text, ") * (");
  tl_mexpr_print(b, &text);
  tl_strbuf_append_char(&text, ')');
  const tl_mexpr *out = NULL;
  tl_status_free(tl_mexpr_parse(arena, tl_strbuf_view(&text), &out));
  tl_strbuf_fini(&text);
  return out;
}

bool tl_chain_dense_type(tl_arena *arena, const tl_chain_scope *scope, const tl_expr *dtype, tl_expr *const *dims,
                         uint32_t num_dims, tl_diags *diags, tl_chain_type *out) {
  *out = (tl_chain_type){.is_tensor = true, .rank = (int32_t)num_dims, .align = 1};
  out->dims = TL_NEW_ARRAY(arena, const tl_mexpr *, num_dims + 1);
  out->strides = TL_NEW_ARRAY(arena, const tl_mexpr *, num_dims + 1);
  bool ok = eval_dtype(scope, dtype, diags, &out->dtype);
  if (num_dims > TL_MAX_RANK) {
    tl_diag_report(diags, TL_DIAG_DIM_RANGE, dims[TL_MAX_RANK]->loc, "a tensor has at most %d dims", TL_MAX_RANK);
    return false;
  }
  for (uint32_t i = 0; i < num_dims; i++) {
    out->dims[i] = eval_extent(arena, scope, dims[i], diags);
    ok = ok && out->dims[i];
  }
  const tl_mexpr *stride = tl_mexpr_int(arena, 1);
  for (uint32_t i = num_dims; ok && i-- > 0;) {
    out->strides[i] = stride;
    if (i > 0) stride = product(arena, stride, out->dims[i]);
    ok = stride != NULL;
  }
  if (!stride)
    tl_diag_report(diags, TL_DIAG_NOT_AT_LAUNCH, dims[0]->loc, "the product of the dims is too large an expression");
  return ok;
}

bool tl_chain_arg_type(tl_arena *arena, const tl_chain_scope *scope, const tl_arg *arg, tl_diags *diags,
                       tl_chain_type *out) {
  enum { DEFAULT_ALIGN = 16 };
  if (!tl_chain_dense_type(arena, scope, arg->dtype, arg->dims, arg->num_dims, diags, out)) return false;
  out->is_tensor = arg->is_tensor;
  out->align = arg->is_tensor ? DEFAULT_ALIGN : 1;
  const tl_mexpr *align = arg->align ? tl_chain_int(arena, scope, arg->align, diags) : NULL;
  if (arg->align && (!align || !tl_mexpr_is_int(align, &out->align))) return false;
  if (arg->strides && arg->num_strides != arg->num_dims) {
    tl_diag_report(diags, TL_DIAG_STRIDES, arg->type_loc, "`%.*s` has %u dims and %u strides", TL_STR_ARG(arg->name),
                   arg->num_dims, arg->num_strides);
    return false;
  }
  bool ok = true;
  for (uint32_t i = 0; i < arg->num_strides; i++) {
    out->strides[i] = eval_extent(arena, scope, arg->strides[i], diags);
    ok = ok && out->strides[i];
  }
  return ok;
}

const tl_mexpr *tl_chain_type_bytes(tl_arena *arena, const tl_chain_type *type) {
  const tl_mexpr *count = tl_mexpr_int(arena, 1);
  for (int32_t i = 0; i < type->rank; i++) count = product(arena, count, type->dims[i]);
  int bits = tl_dtype_bits(type->dtype);
  if (!count) return NULL;
  if (bits >= 8) return product(arena, count, tl_mexpr_int(arena, bits / 8));
  // Two elements of 4 bits share a byte.
  int64_t constant;
  if (tl_mexpr_is_int(count, &constant)) return tl_mexpr_int(arena, constant / 2 + constant % 2);
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, "ceildiv(");
  tl_mexpr_print(count, &text);
  tl_strbuf_append_c(&text, ", 2)");
  const tl_mexpr *out = NULL;
  tl_status_free(tl_mexpr_parse(arena, tl_strbuf_view(&text), &out));
  tl_strbuf_fini(&text);
  return out;
}

// ---- comparing and showing

static bool chain_same(const tl_mexpr *a, const tl_mexpr *b) {
  tl_strbuf left = {0}, right = {0};
  tl_mexpr_print(a, &left);
  tl_mexpr_print(b, &right);
  bool same = tl_str_equal(tl_strbuf_view(&left), tl_strbuf_view(&right));
  tl_strbuf_fini(&left);
  tl_strbuf_fini(&right);
  return same;
}

bool tl_chain_differ(const tl_mexpr *a, const tl_mexpr *b) {
  int64_t left, right;
  return tl_mexpr_is_int(a, &left) && tl_mexpr_is_int(b, &right) && left != right;
}

static void print_list(const tl_mexpr *const *items, int32_t len, tl_strbuf *out) {
  for (int32_t i = 0; i < len; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    tl_mexpr_print(items[i], out);
  }
}

const char *tl_chain_type_text(tl_arena *arena, const tl_chain_type *type) {
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, tl_dtype_name(type->dtype));
  if (type->is_tensor) {
    tl_strbuf_append_char(&text, '[');
    print_list(type->dims, type->rank, &text);
    tl_strbuf_append_char(&text, ']');
    const tl_mexpr *dense = tl_mexpr_int(arena, 1);
    bool is_dense = true;
    for (int32_t i = type->rank; i-- > 0;) {
      is_dense = is_dense && dense && chain_same(type->strides[i], dense);
      if (i > 0) dense = product(arena, dense, type->dims[i]);
    }
    if (!is_dense) {
      tl_strbuf_append_c(&text, " strides(");
      print_list(type->strides, type->rank, &text);
      tl_strbuf_append_char(&text, ')');
    }
  }
  const char *out = tl_arena_copy_bytes(arena, text.data, text.len);
  tl_strbuf_fini(&text);
  return out;
}

tl_expr *tl_chain_literal(tl_arena *arena, const tl_const *value, tl_loc loc) {
  tl_expr *expr = TL_NEW(arena, tl_expr);
  expr->loc = loc;
  expr->height = 1;
  switch (value->kind) {
    case TL_CONST_INT:
      expr->kind = TL_EXPR_INT;
      expr->int_value = value->i;
      break;
    case TL_CONST_BOOL:
      expr->kind = TL_EXPR_BOOL;
      expr->int_value = value->i;
      break;
    case TL_CONST_FLOAT:
      expr->kind = TL_EXPR_FLOAT;
      expr->float_value = value->f;
      break;
    case TL_CONST_DTYPE:
      expr->kind = TL_EXPR_NAME;
      expr->text = tl_str_from(tl_dtype_name(value->dtype));
      break;
    case TL_CONST_DYNAMIC:
      break;
  }
  return expr;
}
