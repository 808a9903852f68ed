// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints statements as spec YAML.
#include "frontend/spec/spec_internal.h"
#include "frontend/spec/spec_print_part.h"

static void print_assign(const tl_assign *assign, tl_strbuf *out) {
  tl_spec_print_list(assign->targets, assign->num_targets, out);
  tl_strbuf_appendf(out, " %.*s ", TL_STR_ARG(assign->op));
  tl_expr_print(assign->value, out);
}

static void print_in(const tl_in_clause *in, tl_strbuf *out) {
  for (uint32_t i = 0; i < in->num_names; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    tl_strbuf_append(out, in->names[i]);
  }
  tl_strbuf_append_c(out, " in ");
  tl_spec_print_list(in->extents, in->num_extents, out);
}

// The statement's key and the text behind it.
static const char *print_head(const tl_stmt *stmt, tl_strbuf *text) {
  switch (stmt->kind) {
    case TL_STMT_CLEAR:
      tl_expr_print(stmt->target, text);
      return "clear";
    case TL_STMT_FILL:
      tl_expr_print(stmt->target, text);
      return "fill";
    case TL_STMT_COPY:
    case TL_STMT_ATOMIC:
      tl_expr_print(stmt->from, text);
      tl_strbuf_append_c(text, " -> ");
      tl_expr_print(stmt->to, text);
      return stmt->kind == TL_STMT_COPY ? "copy" : "atomic";
    case TL_STMT_GEMM:
      print_assign(&stmt->assign, text);
      return "gemm";
    case TL_STMT_PARALLEL:
      print_in(&stmt->in, text);
      return "parallel";
    case TL_STMT_PIPELINED:
      print_in(&stmt->in, text);
      return "pipelined";
    case TL_STMT_FOR:
      print_in(&stmt->in, text);
      return "for";
    case TL_STMT_UNROLL:
      print_in(&stmt->in, text);
      return "unroll";
    case TL_STMT_IF:
      tl_expr_print(stmt->condition, text);
      return "if";
    case TL_STMT_WHILE:
      tl_expr_print(stmt->condition, text);
      return "while";
    case TL_STMT_EXIT:
      if (stmt->condition) tl_expr_print(stmt->condition, text);
      return "exit";
    case TL_STMT_WAIT_UNTIL:
      tl_expr_print(stmt->condition, text);
      return "wait_until";
    case TL_STMT_COMMIT_GROUP:
      return "commit_group";
    case TL_STMT_WAIT_GROUP:
      tl_expr_print(stmt->condition, text);
      return "wait_group";
    case TL_STMT_WAIT_GEMM:
      tl_expr_print(stmt->condition, text);
      return "wait_gemm";
    case TL_STMT_PRINT:
      tl_expr_print(stmt->condition, text);
      return "print";
    case TL_STMT_ASSERT:
      tl_expr_print(stmt->condition, text);
      return "assert";
    case TL_STMT_ASSUME:
      tl_expr_print(stmt->condition, text);
      return "assume";
    case TL_STMT_BREAK:
      return "break";
    case TL_STMT_CONTINUE:
      return "continue";
    case TL_STMT_LET:
      return "let";
    case TL_STMT_VIEW:
      tl_strbuf_appendf(text, "%.*s = %.*s", TL_STR_ARG(stmt->view.name), TL_STR_ARG(stmt->view.base));
      if (stmt->view.stage) {
        tl_strbuf_append_char(text, '[');
        tl_expr_print(stmt->view.stage, text);
        tl_strbuf_append_char(text, ']');
      }
      return "view";
    case TL_STMT_ASSIGN:
      print_assign(&stmt->assign, text);
      return NULL;
    case TL_STMT_SCAN:
      print_assign(&stmt->assign, text);
      return "scan";
    case TL_STMT_REDUCE:
      print_assign(&stmt->assign, text);
      return "reduce";
    case TL_STMT_USE:
      tl_expr_print(stmt->use, text);
      return "use";
    case TL_STMT_SYNC:
      if (stmt->target) tl_expr_print(stmt->target, text);
      return "sync";
    case TL_STMT_ARRIVE:
      tl_expr_print(stmt->target, text);
      return "arrive";
    case TL_STMT_WAIT:
    case TL_STMT_EXPECT:
      tl_expr_print(stmt->target, text);
      tl_strbuf_append_c(text, ", ");
      tl_expr_print(stmt->condition, text);
      return stmt->kind == TL_STMT_WAIT ? "wait" : "expect";
    case TL_STMT_SPECIALIZE:
      return "specialize";
    case TL_STMT_ROLE:
      tl_strbuf_append(text, stmt->role);
      return "role";
  }
  return NULL;
}

static void print_view_type(const tl_view *view, int indent, tl_strbuf *out) {
  if (view->stage) return;
  tl_spec_print_indent(indent, out);
  tl_strbuf_append_c(out, "type: ");
  tl_expr_print(view->dtype, out);
  tl_strbuf_append_char(out, '[');
  tl_spec_print_list(view->dims, view->num_dims, out);
  tl_strbuf_append_c(out, "]\n");
}

static void print_nested(const char *key, const tl_stmt_list *body, int indent, tl_strbuf *out) {
  tl_spec_print_indent(indent, out);
  tl_strbuf_appendf(out, body->len ? "%s:\n" : "%s: []\n", key);
  tl_spec_print_body(body, indent + 2, out);
}

static void print_option(const tl_option *option, int indent, tl_strbuf *out) {
  tl_spec_print_indent(indent, out);
  tl_strbuf_appendf(out, "%.*s: ", TL_STR_ARG(option->name));
  if (option->value->kind == TL_EXPR_STRING) {  // words, not an expression
    tl_spec_print_value(option->value->text, out);
  } else {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_expr_print(option->value, &text);
    tl_spec_print_value(tl_strbuf_view(&text), out);
    tl_strbuf_fini(&text);
  }
  tl_strbuf_append_char(out, '\n');
}

static bool is_loop(const tl_stmt *stmt) {
  return stmt->kind == TL_STMT_PARALLEL || stmt->kind == TL_STMT_PIPELINED || stmt->kind == TL_STMT_FOR ||
         stmt->kind == TL_STMT_UNROLL || stmt->kind == TL_STMT_WHILE;
}

static void print_stmt(const tl_stmt *stmt, int indent, tl_strbuf *out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  const char *key = print_head(stmt, &text);
  tl_spec_print_indent(indent, out);
  tl_strbuf_append_c(out, "- ");
  if (key) tl_strbuf_appendf(out, text.len ? "%s: " : "%s:", key);
  if (text.len) tl_spec_print_value(tl_strbuf_view(&text), out);
  tl_strbuf_append_char(out, '\n');
  tl_strbuf_fini(&text);
  for (uint32_t i = 0; i < stmt->num_lets; i++) {
    tl_strbuf name;
    tl_strbuf_init(&name);
    tl_strbuf_append(&name, stmt->lets[i].name);
    tl_spec_print_expr(tl_strbuf_c(&name), stmt->lets[i].value, indent + 4, out);
    tl_strbuf_fini(&name);
  }
  if (stmt->kind == TL_STMT_VIEW) print_view_type(&stmt->view, indent + 2, out);
  for (uint32_t i = 0; i < stmt->num_options; i++) {
    print_option(&stmt->options[i], indent + 2, out);
  }
  if (is_loop(stmt) || stmt->kind == TL_STMT_ROLE) print_nested("do", &stmt->body, indent + 2, out);
  if (stmt->kind == TL_STMT_SPECIALIZE) tl_spec_print_body(&stmt->body, indent + 4, out);
  if (stmt->kind == TL_STMT_IF) print_nested("then", &stmt->body, indent + 2, out);
  if (stmt->else_body.len) print_nested("else", &stmt->else_body, indent + 2, out);
}

void tl_spec_print_body(const tl_stmt_list *body, int indent, tl_strbuf *out) {
  for (uint32_t i = 0; i < body->len; i++) print_stmt(body->items[i], indent, out);
}
