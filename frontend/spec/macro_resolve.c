// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which macro each `use` means and which argument stands for which parameter; recursion; macros that nothing uses.
#include <string.h>

#include "frontend/expr/suggest.h"
#include "frontend/spec/macro.h"

typedef struct resolver {
  tl_spec_reader *reader;
  const tl_macro_list *own, *file;  // where names are looked up; own: NULL in macros of the file
} resolver;

static tl_macro *find_macro(const resolver *r, tl_str name) {
  for (int side = 0; side < 2; side++) {
    const tl_macro_list *list = side == 0 ? r->own : r->file;
    for (uint32_t i = 0; list && i < list->len; i++)
      if (tl_str_equal(list->items[i]->name, name)) return list->items[i];
  }
  return NULL;
}

static void report_unknown(const resolver *r, const tl_expr *use) {
  tl_diag *diag = tl_diag_report(r->reader->diags, TL_DIAG_MACRO_UNKNOWN, use->loc, "there is no macro `%.*s`",
                                 tl_expr_shown(use->text), use->text.data);
  uint32_t count = 0;
  tl_str *names = TL_NEW_ARRAY(r->reader->arena, tl_str, (r->own ? r->own->len : 0) + r->file->len + 1);
  for (uint32_t i = 0; r->own && i < r->own->len; i++) names[count++] = r->own->items[i]->name;
  for (uint32_t i = 0; i < r->file->len; i++) names[count++] = r->file->items[i]->name;
  size_t nearest = tl_suggest_index(use->text, names, count);
  if (nearest != SIZE_MAX) {
    tl_diag_add_hint(r->reader->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
  } else if (!count) {
    tl_diag_add_hint(r->reader->diags, diag, "macros are defined under `macros:`, or come with `include:`");
  }
}

static tl_diag *report_arguments(const resolver *r, const tl_macro *macro, tl_loc loc, const char *text) {
  tl_diag *diag =
      tl_diag_report(r->reader->diags, TL_DIAG_MACRO_ARGUMENTS, loc, "`%.*s` %s", TL_STR_ARG(macro->name), text);
  tl_strbuf head;
  tl_strbuf_init(&head);
  for (uint32_t i = 0; i < macro->num_params; i++)
    tl_strbuf_appendf(&head, "%s%.*s", i ? ", " : "", TL_STR_ARG(macro->params[i]));
  tl_diag_add_note(r->reader->diags, diag, macro->loc, "defined here as `%.*s(%s)`", TL_STR_ARG(macro->name),
                   tl_strbuf_c(&head));
  tl_strbuf_fini(&head);
  return diag;
}

static uint32_t param_index(const tl_macro *macro, tl_str name) {
  uint32_t i = 0;
  while (i < macro->num_params && !tl_str_equal(macro->params[i], name)) i++;
  return i;
}

// Puts the arguments into the order of the parameters: first those without a name, then `name=value`.
static bool match_arguments(const resolver *r, const tl_macro *macro, tl_stmt *stmt) {
  const tl_expr *use = stmt->use;
  uint32_t given = use->num_operands + use->num_keywords;
  if (given != macro->num_params) {
    char *text = tl_arena_printf(r->reader->arena, "takes %u argument%s, not %u", macro->num_params,
                                 macro->num_params == 1 ? "" : "s", given);
    report_arguments(r, macro, use->loc, text);
    return false;
  }
  stmt->arguments = TL_NEW_ARRAY(r->reader->arena, tl_expr *, macro->num_params + 1);
  for (uint32_t i = 0; i < use->num_operands; i++) stmt->arguments[i] = use->operands[i];
  for (uint32_t i = 0; i < use->num_keywords; i++) {
    const tl_keyword *keyword = &use->keywords[i];
    uint32_t index = param_index(macro, keyword->name);
    if (index == macro->num_params || stmt->arguments[index]) {
      char *text = tl_arena_printf(r->reader->arena,
                                   index == macro->num_params ? "has no parameter `%.*s`" : "is given `%.*s` twice",
                                   TL_STR_ARG(keyword->name));
      report_arguments(r, macro, keyword->loc, text);
      return false;
    }
    stmt->arguments[index] = keyword->value;
  }
  return true;
}

static void resolve_list(const resolver *r, const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    tl_stmt *stmt = list->items[i];
    resolve_list(r, &stmt->body);
    resolve_list(r, &stmt->else_body);
    if (stmt->kind != TL_STMT_USE) continue;
    tl_macro *macro = find_macro(r, stmt->use->text);
    if (!macro) {
      report_unknown(r, stmt->use);
    } else if (!macro->is_broken && match_arguments(r, macro, stmt)) {
      stmt->macro = macro;
    }
  }
}

// ---- recursion

enum { UNSEEN, OPEN, DONE };

typedef struct chain {
  tl_spec_reader *reader;
  tl_macro *open[TL_MACRO_MAX_DEPTH];
  uint32_t len;
} chain;

static void report_recursion(chain *c, const tl_macro *again, tl_loc loc) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  uint32_t first = 0;
  while (c->open[first] != again) first++;
  for (uint32_t i = first; i < c->len; i++) tl_strbuf_appendf(&text, "%.*s -> ", TL_STR_ARG(c->open[i]->name));
  tl_diag *diag = tl_diag_report(c->reader->diags, TL_DIAG_MACRO_RECURSION, loc, "macro `%.*s` uses itself: %s%.*s",
                                 TL_STR_ARG(again->name), tl_strbuf_c(&text), TL_STR_ARG(again->name));
  tl_strbuf_fini(&text);
  tl_diag_add_note(c->reader->diags, diag, again->loc, "defined here");
}

static void visit_macro(chain *c, tl_macro *macro);

// How deep the uses in the list nest.
static void visit_list(chain *c, tl_macro *macro, const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    visit_list(c, macro, &stmt->body);
    visit_list(c, macro, &stmt->else_body);
    if (stmt->kind != TL_STMT_USE || !stmt->macro) continue;
    if (stmt->macro->visit == OPEN) {
      report_recursion(c, stmt->macro, stmt->use->loc);
      continue;
    }
    if (c->len < TL_MACRO_MAX_DEPTH && stmt->macro->visit == UNSEEN) visit_macro(c, stmt->macro);
    if (c->len == TL_MACRO_MAX_DEPTH || stmt->macro->depth >= TL_MACRO_MAX_DEPTH) {
      tl_diag_report(c->reader->diags, TL_DIAG_MACRO_LIMIT, stmt->use->loc,
                     "macros use one another more than %d levels deep", TL_MACRO_MAX_DEPTH);
    } else if (stmt->macro->depth >= macro->depth) {
      macro->depth = stmt->macro->depth + 1;
    }
  }
}

static void visit_macro(chain *c, tl_macro *macro) {
  macro->visit = OPEN;
  macro->depth = 1;
  c->open[c->len++] = macro;
  visit_list(c, macro, &macro->body);
  c->len--;
  macro->visit = DONE;
}

static void validate_recursion(tl_spec_reader *reader, const tl_macro_list *list) {
  chain c = {.reader = reader};
  for (uint32_t i = 0; i < list->len; i++)
    if (list->items[i]->visit == UNSEEN) visit_macro(&c, list->items[i]);
}

// ---- what is used

static void mark_used(const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    mark_used(&stmt->body);
    mark_used(&stmt->else_body);
    if (stmt->kind != TL_STMT_USE || stmt->macro->is_used) continue;
    stmt->macro->is_used = true;
    mark_used(&stmt->macro->body);
  }
}

static void warn_unused(tl_spec_reader *reader, const tl_macro_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_macro *macro = list->items[i];
    if (macro->is_used || macro->is_included) continue;
    tl_diag_report(reader->diags, TL_DIAG_UNUSED_MACRO, macro->loc, "the macro `%.*s` is never used",
                   TL_STR_ARG(macro->name));
  }
}

void tl_macros_resolve(tl_spec_reader *reader, tl_spec *spec) {
  resolver r = {reader, NULL, &spec->macros};
  for (uint32_t i = 0; i < spec->macros.len; i++) resolve_list(&r, &spec->macros.items[i]->body);
  for (uint32_t k = 0; k < spec->num_kernels; k++) {
    const tl_kernel_spec *kernel = &spec->kernels[k];
    r.own = &kernel->macros;
    for (uint32_t i = 0; i < kernel->macros.len; i++) resolve_list(&r, &kernel->macros.items[i]->body);
    resolve_list(&r, &kernel->body);
  }
  validate_recursion(reader, &spec->macros);
  for (uint32_t k = 0; k < spec->num_kernels; k++) validate_recursion(reader, &spec->kernels[k].macros);
  if (reader->diags->num_errors != reader->errors_before || !spec->num_kernels) return;
  for (uint32_t k = 0; k < spec->num_kernels; k++) mark_used(&spec->kernels[k].body);
  warn_unused(reader, &spec->macros);
  for (uint32_t k = 0; k < spec->num_kernels; k++) warn_unused(reader, &spec->kernels[k].macros);
}
