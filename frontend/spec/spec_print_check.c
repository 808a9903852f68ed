// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the sections check and bench.
#include "frontend/spec/spec_internal.h"
#include "frontend/spec/spec_print_part.h"

static void line(int indent, const char *text, tl_strbuf *out) {
  tl_spec_print_indent(indent, out);
  tl_strbuf_append_c(out, text);
  tl_strbuf_append_char(out, '\n');
}

static void print_value(const tl_expr *value, tl_strbuf *out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(value, &text);
  tl_spec_print_value(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
}

// A list is printed in block style: its values may hold commas.
static void print_list_items(const tl_expr *list, int indent, tl_strbuf *out) {
  for (uint32_t i = 0; i < list->num_operands; i++) {
    const tl_expr *item = list->operands[i];
    bool nested = item->kind == TL_EXPR_CALL && tl_str_is(item->text, "list");
    tl_spec_print_indent(indent, out);
    tl_strbuf_append_c(out, "-");
    if (nested && item->num_operands) {
      tl_strbuf_append_char(out, '\n');
      print_list_items(item, indent + 2, out);
      continue;
    }
    tl_strbuf_append_char(out, ' ');
    if (nested)
      tl_strbuf_append_c(out, "[]");
    else
      print_value(item, out);
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_input(const tl_named_expr *input, int indent, tl_strbuf *out) {
  const tl_expr *value = input->value;
  tl_spec_print_indent(indent, out);
  tl_strbuf_append(out, input->name);
  if (value->kind == TL_EXPR_CALL && tl_str_is(value->text, "list")) {
    tl_strbuf_append_c(out, value->num_operands ? ":\n" : ": []\n");
    print_list_items(value, indent + 2, out);
    return;
  }
  tl_strbuf_append_c(out, ": ");
  if (value->kind == TL_EXPR_STRING)
    tl_spec_print_value(value->text, out);
  else
    print_value(value, out);
  tl_strbuf_append_char(out, '\n');
}

static void print_inputs(const tl_named_expr *inputs, uint32_t len, int indent, tl_strbuf *out) {
  if (len) line(indent, "inputs:", out);
  for (uint32_t i = 0; i < len; i++) print_input(&inputs[i], indent + 2, out);
}

static void print_range(const tl_reduction_index *range, tl_strbuf *out) {
  tl_strbuf_append(out, range->name);
  tl_strbuf_append_c(out, " in ");
  tl_expr_print(range->lo, out);
  tl_strbuf_append_char(out, ':');
  tl_expr_print_bound(range->hi, out);
}

static const tl_reduction_index *find_range(const tl_reference_stmt *stmt, const tl_expr *subscript) {
  for (uint32_t i = 0; subscript && subscript->kind == TL_EXPR_NAME && i < stmt->num_ranges; i++)
    if (tl_str_equal(stmt->ranges[i].name, subscript->text)) return &stmt->ranges[i];
  return NULL;
}

static void print_reference_target(const tl_reference_stmt *stmt, tl_strbuf *out) {
  const tl_expr *target = stmt->assign.targets[0];
  if (target->kind != TL_EXPR_INDEX || !stmt->num_ranges) {
    tl_expr_print(target, out);
    return;
  }
  tl_expr_print(target->operands[0], out);
  tl_strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < target->num_subscripts; i++) {
    const tl_expr *subscript = target->subscripts[i].lo;
    const tl_reduction_index *range = find_range(stmt, subscript);
    if (i) tl_strbuf_append_c(out, ", ");
    if (range)
      print_range(range, out);
    else if (subscript)
      tl_expr_print(subscript, out);
  }
  tl_strbuf_append_char(out, ']');
}

static void print_reference(const tl_reference_stmt *items, uint32_t len, int indent, tl_strbuf *out) {
  for (uint32_t i = 0; i < len; i++) {
    const tl_reference_stmt *stmt = &items[i];
    tl_strbuf text;
    tl_strbuf_init(&text);
    if (stmt->is_recur)
      print_range(stmt->ranges, &text);
    else
      print_reference_target(stmt, &text);
    if (!stmt->is_recur) {
      tl_strbuf_appendf(&text, " %.*s ", TL_STR_ARG(stmt->assign.op));
      tl_expr_print(stmt->assign.value, &text);
    }
    tl_spec_print_indent(indent, out);
    tl_strbuf_append_c(out, stmt->is_recur ? "- recur: " : "- ");
    tl_spec_print_value(tl_strbuf_view(&text), out);
    tl_strbuf_append_char(out, '\n');
    tl_strbuf_fini(&text);
    if (!stmt->is_recur) continue;
    line(indent + 2, stmt->num_body ? "do:" : "do: []", out);
    print_reference(stmt->body, stmt->num_body, indent + 4, out);
  }
}

static void print_tolerances(const tl_check *check, tl_strbuf *out) {
  bool per = false;
  if (check->num_tolerances) line(2, "tolerance:", out);
  for (uint32_t i = 0; i < check->num_tolerances; i++) {
    const tl_tolerance *tolerance = &check->tolerances[i];
    int indent = tolerance->output.len ? 8 : 4;
    if (tolerance->output.len) {
      if (!per) line(4, "per:", out);
      per = true;
      tl_strbuf_appendf(out, "      %.*s:%s\n", TL_STR_ARG(tolerance->output),
                        tolerance->rtol || tolerance->atol ? "" : " {}");
    }
    tl_spec_print_expr("rtol", tolerance->rtol, indent, out);
    tl_spec_print_expr("atol", tolerance->atol, indent, out);
  }
}

static void print_cases(const tl_case *cases, uint32_t len, tl_strbuf *out) {
  if (len) line(2, "cases:", out);
  for (uint32_t i = 0; i < len; i++) {
    const tl_case *item = &cases[i];
    bool has_tolerance = item->rtol || item->atol;
    if (!item->num_overrides && !has_tolerance && !item->num_inputs) {
      line(4, "- {}", out);
      continue;
    }
    size_t start = out->len;
    for (uint32_t k = 0; k < item->num_overrides; k++) {
      tl_spec_print_indent(6, out);
      tl_strbuf_appendf(out, "%.*s: ", TL_STR_ARG(item->overrides[k].name));
      print_value(item->overrides[k].value, out);
      tl_strbuf_append_char(out, '\n');
    }
    if (has_tolerance) line(6, "tolerance:", out);
    tl_spec_print_expr("rtol", item->rtol, 8, out);
    tl_spec_print_expr("atol", item->atol, 8, out);
    print_inputs(item->inputs, item->num_inputs, 6, out);
    out->data[start + 4] = '-';  // the first key opens the list item
  }
}

void tl_spec_print_check(const tl_check *check, tl_strbuf *out) {
  bool empty = !check->num_inputs && !check->num_derive && !check->num_reference && !check->num_tolerances &&
               !check->num_unchecked && !check->num_cases;
  tl_strbuf_append_c(out, empty ? "check: {}\n" : "check:\n");
  print_inputs(check->inputs, check->num_inputs, 2, out);
  if (check->num_derive) line(2, "derive:", out);
  print_reference(check->derive, check->num_derive, 4, out);
  if (check->num_reference) line(2, "reference:", out);
  print_reference(check->reference, check->num_reference, 4, out);
  print_tolerances(check, out);
  if (check->num_unchecked) line(2, "unchecked:", out);
  for (uint32_t i = 0; i < check->num_unchecked; i++)
    tl_strbuf_appendf(out, "    - %.*s\n", TL_STR_ARG(check->unchecked[i]));
  print_cases(check->cases, check->num_cases, out);
}

void tl_spec_print_bench(const tl_bench *bench, tl_strbuf *out) {
  tl_strbuf_append_c(out, bench->flops || bench->bytes || bench->num_cases ? "bench:\n" : "bench: {}\n");
  tl_spec_print_expr("flops", bench->flops, 2, out);
  tl_spec_print_expr("bytes", bench->bytes, 2, out);
  print_cases(bench->cases, bench->num_cases, out);
}
