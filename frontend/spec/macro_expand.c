// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every `use` in the body of a kernel gets the statements that it stands for. The statement stays, as a scope of its
// own around them: what the macro declares ends with it.
#include "frontend/spec/macro.h"

static void copy_list(tl_macro_expander *x, tl_macro_frame *frame, const tl_stmt_list *list, tl_stmt_list *out);

// ---- places that take only some expressions

static tl_diag *report_argument(tl_macro_expander *x, const tl_stmt *stmt, const tl_expr *expr, const char *problem) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(expr, &text);
  tl_diag *diag = tl_diag_report(x->reader->diags, TL_DIAG_MACRO_ARGUMENT, expr->loc, "`%.*s` %s",
                                 tl_expr_shown(tl_strbuf_view(&text)), tl_strbuf_c(&text), problem);
  tl_strbuf_fini(&text);
  tl_diag_add_note(x->reader->diags, diag, stmt->text_loc, "the macro puts it here");
  return diag;
}

// What was a parameter there may have become any expression.
static void validate_region(tl_macro_expander *x, const tl_stmt *stmt, const tl_expr *expr) {
  if (!expr || tl_spec_is_region(expr)) return;
  report_argument(x, stmt, expr, "is an expression: the macro needs a tensor, a tile or a part of one");
}

// X or X[…].
static void validate_target(tl_macro_expander *x, const tl_stmt *stmt, const tl_expr *target) {
  if (target->kind == TL_EXPR_TRANSPOSE) {
    report_argument(x, stmt, target, "is a transpose: the macro assigns to it");
  } else {
    validate_region(x, stmt, target);
  }
}

// `A @ B`, `sparse(A, meta) @ B`.
static void validate_product(tl_macro_expander *x, const tl_stmt *stmt, const tl_expr *product) {
  for (uint32_t i = 0; i < product->num_operands; i++) {
    const tl_expr *operand = product->operands[i];
    bool is_sparse = i == 0 && tl_spec_is_sparse(operand);
    if (!is_sparse) validate_region(x, stmt, operand);
    for (uint32_t j = 0; is_sparse && j < operand->num_operands; j++) validate_region(x, stmt, operand->operands[j]);
  }
}

static void validate_places(tl_macro_expander *x, const tl_stmt *stmt) {
  if (x->full) return;  // copies are not complete
  validate_region(x, stmt, stmt->target);
  if (stmt->kind != TL_STMT_ATOMIC) validate_region(x, stmt, stmt->from);
  validate_region(x, stmt, stmt->to);
  for (uint32_t i = 0; i < stmt->assign.num_targets; i++) validate_target(x, stmt, stmt->assign.targets[i]);
  if (stmt->kind == TL_STMT_GEMM) validate_product(x, stmt, stmt->assign.value);
}

// ---- statements

static void copy_view(tl_macro_expander *x, tl_macro_frame *frame, tl_stmt *stmt) {
  tl_view *view = &stmt->view;
  view->loc = tl_macro_loc(frame, view->loc);
  view->base_loc = tl_macro_loc(frame, view->base_loc);
  view->stage = tl_macro_copy_expr(x, frame, view->stage);
  view->dtype = tl_macro_copy_expr(x, frame, view->dtype);
  view->dims = tl_macro_copy_exprs(x, frame, view->dims, view->num_dims);
  tl_expr *argument = NULL;
  view->base = tl_macro_find_name(x, frame, view->base, view->base_loc, &argument);
  if (argument && argument->kind == TL_EXPR_NAME) {
    view->base = argument->text;
  } else if (argument) {
    report_argument(x, stmt, argument, "has no name: the macro makes a view of it, which takes a whole tensor or tile");
  }
  view->name = tl_macro_declare(x, frame, view->name, view->loc);
}

static void copy_lets(tl_macro_expander *x, tl_macro_frame *frame, tl_stmt *stmt) {
  const tl_named_expr *from = stmt->lets;
  stmt->lets = TL_NEW_ARRAY(x->reader->arena, tl_named_expr, stmt->num_lets + 1);
  for (uint32_t i = 0; i < stmt->num_lets; i++) {
    tl_named_expr *to = &stmt->lets[i];
    to->loc = tl_macro_loc(frame, from[i].loc);
    to->value = tl_macro_copy_expr(x, frame, from[i].value);
    to->name = tl_macro_declare(x, frame, from[i].name, to->loc);
  }
}

static void copy_in(tl_macro_expander *x, tl_macro_frame *frame, tl_in_clause *in) {
  const tl_str *names = in->names;
  const tl_loc *locs = in->name_locs;
  in->extents = tl_macro_copy_exprs(x, frame, in->extents, in->num_extents);
  in->names = TL_NEW_ARRAY(x->reader->arena, tl_str, in->num_names + 1);
  in->name_locs = TL_NEW_ARRAY(x->reader->arena, tl_loc, in->num_names + 1);
  for (uint32_t i = 0; i < in->num_names; i++) {
    in->name_locs[i] = tl_macro_loc(frame, locs[i]);
    in->names[i] = tl_macro_declare(x, frame, names[i], in->name_locs[i]);
  }
}

// `into: old` makes a let of a new name.
static bool makes_let(const tl_macro_expander *x, const tl_macro_frame *frame, const tl_option *option) {
  const tl_expr *value = option->value;
  return tl_str_is(option->name, "into") && value->kind == TL_EXPR_NAME && !tl_macro_is_visible(x, frame, value->text);
}

static void copy_options(tl_macro_expander *x, tl_macro_frame *frame, tl_stmt *stmt) {
  const tl_option *from = stmt->options;
  stmt->options = TL_NEW_ARRAY(x->reader->arena, tl_option, stmt->num_options + 1);
  for (uint32_t i = 0; i < stmt->num_options; i++) {
    tl_option *to = &stmt->options[i];
    *to = from[i];
    to->loc = tl_macro_loc(frame, from[i].loc);
    if (to->is_word) continue;  // it means no name, whatever names there are
    if (makes_let(x, frame, to)) tl_macro_declare(x, frame, to->value->text, to->loc);
    to->value = tl_macro_copy_expr(x, frame, from[i].value);
  }
}

static void expand(tl_macro_expander *x, tl_macro_frame *frame, tl_stmt *stmt) {
  const tl_macro *macro = stmt->macro;
  tl_macro_frame inner = {.outer = frame, .macro = macro};
  stmt->arguments = tl_macro_copy_exprs(x, frame, stmt->arguments, macro->num_params);
  inner.arguments = stmt->arguments;
  inner.source = tl_sources_add_expansion(x->reader->sources, macro->loc.source, macro->name, stmt->use->loc);
  tl_strmap_init(&inner.chosen, x->reader->arena);
  tl_strmap_init(&inner.mentioned, x->reader->arena);
  for (uint32_t i = 0; i < macro->num_params; i++) tl_macro_mention(&inner.mentioned, inner.arguments[i]);
  copy_list(x, &inner, &macro->body, &stmt->body);
  tl_vec_fini(&inner.visible);
  tl_strmap_fini(&inner.chosen);
  tl_strmap_fini(&inner.mentioned);
}

static tl_stmt *copy_stmt(tl_macro_expander *x, tl_macro_frame *frame, const tl_stmt *stmt) {
  tl_stmt *copy = TL_NEW(x->reader->arena, tl_stmt);
  *copy = *stmt;
  copy->loc = tl_macro_loc(frame, stmt->loc);
  copy->text_loc = tl_macro_loc(frame, stmt->text_loc);
  copy->target = tl_macro_copy_expr(x, frame, stmt->target);
  copy->from = tl_macro_copy_expr(x, frame, stmt->from);
  copy->to = tl_macro_copy_expr(x, frame, stmt->to);
  copy->assign.loc = tl_macro_loc(frame, stmt->assign.loc);
  copy->assign.targets = tl_macro_copy_exprs(x, frame, stmt->assign.targets, stmt->assign.num_targets);
  copy->assign.value = tl_macro_copy_expr(x, frame, stmt->assign.value);
  copy->condition = tl_macro_copy_expr(x, frame, stmt->condition);
  if (stmt->num_lets) copy_lets(x, frame, copy);
  if (stmt->kind == TL_STMT_VIEW) copy_view(x, frame, copy);
  // The indices of a loop are visible in its options and its body.
  size_t scope = frame->visible.len;
  if (stmt->in.num_names) copy_in(x, frame, &copy->in);
  copy_options(x, frame, copy);
  copy_list(x, frame, &stmt->body, &copy->body);
  if (stmt->in.num_names) frame->visible.len = scope;
  copy_list(x, frame, &stmt->else_body, &copy->else_body);
  if (frame->macro) validate_places(x, copy);
  if (stmt->kind == TL_STMT_USE) {
    tl_expr *use = TL_NEW(x->reader->arena, tl_expr);
    *use = *stmt->use;
    use->loc = tl_macro_loc(frame, use->loc);
    copy->use = use;
    expand(x, frame, copy);
  }
  return copy;
}

static void copy_list(tl_macro_expander *x, tl_macro_frame *frame, const tl_stmt_list *list, tl_stmt_list *out) {
  *out = (tl_stmt_list){0};
  if (!list->len || x->full) return;
  out->items = TL_NEW_ARRAY(x->reader->arena, tl_stmt *, list->len);
  size_t scope = frame->visible.len;
  if (++x->nesting > TL_MACRO_MAX_NESTING) {
    x->full = true;
    tl_diag_report(x->reader->diags, TL_DIAG_MACRO_LIMIT, tl_macro_loc(frame, list->items[0]->loc),
                   "with its macros the body has statements more than %d levels deep", TL_MACRO_MAX_NESTING);
  }
  for (uint32_t i = 0; i < list->len; i++) {
    if (!tl_macro_count(x, frame, tl_macro_loc(frame, list->items[i]->loc))) break;
    out->items[out->len++] = copy_stmt(x, frame, list->items[i]);
  }
  x->nesting--;
  frame->visible.len = scope;
}

// ---- kernels

static bool uses_macros(const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    if (stmt->kind == TL_STMT_USE || uses_macros(&stmt->body) || uses_macros(&stmt->else_body)) return true;
  }
  return false;
}

static void expand_kernel(tl_spec_reader *reader, const tl_spec *spec, tl_kernel_spec *kernel) {
  tl_macro_expander x = {.reader = reader, .kernel = kernel};
  tl_strmap_init(&x.document, reader->arena);
  tl_strmap_init(&x.words, reader->arena);
  tl_macro_collect_names(&x, spec);
  tl_macro_frame root = {0};
  tl_stmt_list body;
  copy_list(&x, &root, &kernel->body, &body);
  kernel->body = body;
  tl_vec_fini(&root.visible);
  tl_strmap_fini(&x.document);
  tl_strmap_fini(&x.words);
}

void tl_macros_expand(tl_spec_reader *reader, tl_spec *spec) {
  for (uint32_t i = 0; i < spec->num_kernels; i++)
    if (uses_macros(&spec->kernels[i].body)) expand_kernel(reader, spec, &spec->kernels[i]);
}
