// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hygiene: what the names in a macro's body mean, and what they are called where it is expanded.
//
// A body sees its parameters, what it declares itself, and the document of the kernel (params, lets, args, views, grid,
// tiles). It sees nothing of what the body around the `use` declares. A name that it declares keeps its spelling unless
// something of that spelling is visible at the use or is mentioned by an argument; then it becomes name_1, name_2, …
#include "frontend/spec/macro.h"

// ---- collecting

static void add_name(tl_strmap *names, tl_str name) {
  if (name.len && !tl_strmap_find(names, name)) tl_strmap_put(names, name, names);
}

void tl_macro_mention(tl_strmap *names, const tl_expr *expr) {
  if (!expr) return;
  if (expr->kind == TL_EXPR_NAME) add_name(names, expr->text);
  for (uint32_t i = 0; i < expr->num_operands; i++) tl_macro_mention(names, expr->operands[i]);
  for (uint32_t i = 0; i < expr->num_keywords; i++) tl_macro_mention(names, expr->keywords[i].value);
  for (uint32_t i = 0; i < expr->num_subscripts; i++) {
    tl_macro_mention(names, expr->subscripts[i].lo);
    tl_macro_mention(names, expr->subscripts[i].hi);
    tl_macro_mention(names, expr->subscripts[i].step);
  }
  for (uint32_t i = 0; i < expr->num_indices; i++) {
    add_name(names, expr->indices[i].name);
    tl_macro_mention(names, expr->indices[i].lo);
    tl_macro_mention(names, expr->indices[i].hi);
  }
}

static void mention_exprs(tl_strmap *names, tl_expr *const *items, uint32_t len) {
  for (uint32_t i = 0; i < len; i++) tl_macro_mention(names, items[i]);
}

static void mention_stmts(tl_strmap *names, const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    tl_macro_mention(names, stmt->target);
    tl_macro_mention(names, stmt->from);
    tl_macro_mention(names, stmt->to);
    mention_exprs(names, stmt->assign.targets, stmt->assign.num_targets);
    tl_macro_mention(names, stmt->assign.value);
    for (uint32_t k = 0; k < stmt->in.num_names; k++) add_name(names, stmt->in.names[k]);
    mention_exprs(names, stmt->in.extents, stmt->in.num_extents);
    tl_macro_mention(names, stmt->condition);
    for (uint32_t k = 0; k < stmt->num_lets; k++) {
      add_name(names, stmt->lets[k].name);
      tl_macro_mention(names, stmt->lets[k].value);
    }
    add_name(names, stmt->view.name);
    add_name(names, stmt->view.base);
    tl_macro_mention(names, stmt->view.stage);
    tl_macro_mention(names, stmt->view.dtype);
    mention_exprs(names, stmt->view.dims, stmt->view.num_dims);
    for (uint32_t k = 0; k < stmt->num_options; k++) tl_macro_mention(names, stmt->options[k].value);
    tl_macro_mention(names, stmt->use);
    mention_stmts(names, &stmt->body);
    mention_stmts(names, &stmt->else_body);
  }
}

static void mention_macros(tl_strmap *names, const tl_macro_list *macros) {
  for (uint32_t i = 0; i < macros->len; i++) mention_stmts(names, &macros->items[i]->body);
}

void tl_macro_collect_names(tl_macro_expander *x, const tl_spec *spec) {
  const tl_kernel_spec *kernel = x->kernel;
  for (uint32_t i = 0; i < kernel->num_params; i++) add_name(&x->document, kernel->params[i].name);
  for (uint32_t i = 0; i < kernel->num_lets; i++) add_name(&x->document, kernel->lets[i].name);
  for (uint32_t i = 0; i < kernel->num_args; i++) add_name(&x->document, kernel->args[i].name);
  for (uint32_t i = 0; i < kernel->num_views; i++) add_name(&x->document, kernel->views[i].name);
  for (uint32_t i = 0; i < kernel->num_grid; i++) add_name(&x->document, kernel->grid[i].name);
  for (uint32_t i = 0; i < kernel->num_tiles; i++) add_name(&x->document, kernel->tiles[i].name);
  for (uint32_t i = 0; i < kernel->num_barriers; i++) add_name(&x->document, kernel->barriers[i].name);
  for (size_t i = 0; i < x->document.len; i++) add_name(&x->words, x->document.entries[i].key);
  mention_stmts(&x->words, &kernel->body);
  mention_macros(&x->words, &kernel->macros);
  mention_macros(&x->words, &spec->macros);
}

// ---- looking up

static const tl_macro_name *find_own(const tl_macro_frame *frame, tl_str name) {
  for (size_t i = frame->visible.len; i-- > 0;)
    if (tl_str_equal(frame->visible.items[i].name, name)) return &frame->visible.items[i];
  return NULL;
}

// Whether a body around `frame` has declared something that is called `name` now.
static bool is_declared_outside(const tl_macro_frame *frame, tl_str name) {
  for (const tl_macro_frame *outer = frame->outer; outer; outer = outer->outer)
    for (size_t i = 0; i < outer->visible.len; i++)
      if (tl_str_equal(outer->visible.items[i].as, name)) return true;
  return false;
}

static tl_expr *find_argument(const tl_macro_frame *frame, tl_str name) {
  for (uint32_t i = 0; frame->macro && i < frame->macro->num_params; i++)
    if (tl_str_equal(frame->macro->params[i], name)) return frame->arguments[i];
  return NULL;
}

bool tl_macro_is_visible(const tl_macro_expander *x, const tl_macro_frame *frame, tl_str name) {
  return find_own(frame, name) || find_argument(frame, name) || tl_strmap_find(&x->document, name);
}

tl_str tl_macro_find_name(tl_macro_expander *x, const tl_macro_frame *frame, tl_str name, tl_loc loc,
                          tl_expr **out_argument) {
  const tl_macro_name *own = find_own(frame, name);
  *out_argument = NULL;
  if (own) return own->as;
  *out_argument = find_argument(frame, name);
  if (*out_argument || !frame->macro || tl_strmap_find(&x->document, name)) return name;
  if (!is_declared_outside(frame, name)) return name;  // unknown: said by whoever translates the statement
  tl_diag *diag = tl_diag_report(x->reader->diags, TL_DIAG_MACRO_CAPTURE, loc, "the macro `%.*s` does not see `%.*s`",
                                 TL_STR_ARG(frame->macro->name), TL_STR_ARG(name));
  tl_diag_add_hint(x->reader->diags, diag,
                   "a let or index of the body that uses a macro is not visible in it: make it a parameter");
  return name;
}

// ---- declaring

static bool is_taken(const tl_macro_expander *x, const tl_macro_frame *frame, tl_str name) {
  return tl_strmap_find(&x->document, name) || tl_strmap_find(&frame->mentioned, name) ||
         is_declared_outside(frame, name);
}

static tl_str choose(tl_macro_expander *x, const tl_macro_frame *frame, tl_str name) {
  tl_str as = name;
  for (uint32_t i = 1; is_taken(x, frame, as) || (i > 1 && tl_strmap_find(&x->words, as)); i++) {
    const char *text = tl_arena_printf(x->reader->arena, "%.*s_%u", TL_STR_ARG(name), i);
    as = tl_str_from(text);
  }
  return as;
}

tl_str tl_macro_declare(tl_macro_expander *x, tl_macro_frame *frame, tl_str name, tl_loc loc) {
  tl_macro_name declared = {name, name};
  if (find_argument(frame, name)) {
    tl_diag_report(x->reader->diags, TL_DIAG_NAME_REDEFINED, loc, "`%.*s` is already the name of a parameter",
                   TL_STR_ARG(name));
  } else if (frame->macro) {
    // All scopes of one expansion agree, so that a name that is declared twice is still seen to be.
    const tl_macro_name *chosen = tl_strmap_get(&frame->chosen, name);
    if (!chosen) {
      tl_macro_name *first = TL_NEW(x->reader->arena, tl_macro_name);
      *first = (tl_macro_name){name, choose(x, frame, name)};
      tl_strmap_put(&frame->chosen, name, first);
      chosen = first;
    }
    declared = *chosen;
  }
  tl_vec_push(&frame->visible, declared);
  return declared.as;
}
