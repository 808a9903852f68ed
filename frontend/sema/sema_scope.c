// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one namespace of a kernel, and texts for messages.
#include <string.h>

#include "frontend/expr/suggest.h"
#include "frontend/sema/sema.h"

void tl_sema_init(tl_sema *sema, tl_arena *arena, tl_diags *diags) {
  *sema = (tl_sema){.arena = arena, .diags = diags};
  tl_strmap_init(&sema->names, arena);
}

void tl_sema_fini(tl_sema *sema) {
  tl_strmap_fini(&sema->names);
  tl_vec_fini(&sema->stack);
  tl_vec_fini(&sema->reductions);
  tl_vec_fini(&sema->present);
}

const char *tl_symbol_a_role(tl_symbol_role role) {
  switch (role) {
    case TL_ROLE_PARAM:
      return "a param";
    case TL_ROLE_LET:
    case TL_ROLE_BODY_LET:
      return "a let";
    case TL_ROLE_ARG:
      return "an argument";
    case TL_ROLE_GRID:
      return "a grid index";
    case TL_ROLE_TILE:
      return "a tile";
    case TL_ROLE_TILES:
      return "several tiles";
    case TL_ROLE_BARRIER:
      return "a barrier";
    case TL_ROLE_LOCAL:
      return "a local";
    case TL_ROLE_VIEW:
      return "a view";
    case TL_ROLE_INDEX:
      return "a loop index";
  }
  return "a name";
}

const char *tl_symbol_role_text(tl_symbol_role role) {
  return strchr(tl_symbol_a_role(role), ' ') + 1;
}

tl_symbol *tl_sema_define(tl_sema *sema, tl_str name, tl_loc loc, tl_symbol_role role, tl_symbol_kind kind) {
  const tl_symbol *first = tl_strmap_get(&sema->names, name);
  if (first) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_REDEFINED, loc, "`%.*s` is already the name of %s",
                                   TL_STR_ARG(name), tl_symbol_a_role(first->role));
    tl_diag_add_note(sema->diags, diag, first->loc, "first defined here");
    return NULL;
  }
  tl_symbol *symbol = TL_NEW(sema->arena, tl_symbol);
  symbol->name = name;
  symbol->loc = loc;
  symbol->role = role;
  symbol->kind = kind;
  symbol->access = TL_ACCESS_INOUT;
  tl_strmap_put(&sema->names, name, symbol);
  tl_vec_push(&sema->stack, symbol);
  return symbol;
}

tl_symbol *tl_sema_shadow(tl_sema *sema, tl_str name) {
  tl_symbol *outer = tl_strmap_get(&sema->names, name), *symbol = TL_NEW(sema->arena, tl_symbol);
  *symbol = *outer;
  symbol->shadowed = outer;
  tl_strmap_put(&sema->names, name, symbol);
  tl_vec_push(&sema->stack, symbol);
  return symbol;
}

size_t tl_sema_open_scope(const tl_sema *sema) {
  return sema->stack.len;
}

void tl_sema_close_scope(tl_sema *sema, size_t mark) {
  while (sema->stack.len > mark) {
    tl_symbol *symbol = tl_vec_pop(&sema->stack);
    tl_strmap_put(&sema->names, symbol->name, symbol->shadowed);
  }
}

static const tl_symbol *nearest_symbol(const tl_sema *sema, tl_str name) {
  tl_str *candidates = TL_NEW_ARRAY(sema->arena, tl_str, sema->stack.len + 1);
  for (size_t i = 0; i < sema->stack.len; ++i) candidates[i] = sema->stack.items[i]->name;
  size_t nearest = tl_suggest_index(name, candidates, sema->stack.len);
  return nearest == SIZE_MAX ? NULL : sema->stack.items[nearest];
}

tl_symbol *tl_sema_lookup_target(tl_sema *sema, tl_str name, tl_loc loc) {
  tl_symbol *symbol = tl_strmap_get(&sema->names, name);
  if (symbol) return symbol;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_UNKNOWN, loc, "unknown name `%.*s`", TL_STR_ARG(name));
  const tl_symbol *near = nearest_symbol(sema, name);
  tl_diag_add_hint(sema->diags, diag, "a new value is named by `let: {%.*s: …}`%s%.*s%s", TL_STR_ARG(name),
                   near ? "; or did you mean `" : "", near ? (int)near->name.len : 0, near ? near->name.data : "",
                   near ? "`?" : "");
  // What reads it has nothing to say.
  tl_sema_define(sema, name, loc, TL_ROLE_BODY_LET, TL_SYMBOL_POISON);
  return NULL;
}

tl_symbol *tl_sema_lookup(tl_sema *sema, tl_str name, tl_loc loc) {
  tl_symbol *symbol = tl_strmap_get(&sema->names, name);
  if (symbol) return symbol;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_UNKNOWN, loc, "unknown name `%.*s`", TL_STR_ARG(name));
  if (tl_function_parse(name) != TL_FUNCTION_NONE) {
    tl_diag_add_hint(sema->diags, diag, "`%.*s` is a function: write `%.*s(…)`", TL_STR_ARG(name), TL_STR_ARG(name));
    return NULL;
  }
  const char *known = tl_suggest_for_attribute(name);
  if (known) {
    tl_diag_add_hint(sema->diags, diag, "%s", known);
    return NULL;
  }
  if (sema->diags->num_errors > sema->diags->max_errors) return NULL;  // the report is not kept: save the search
  const tl_symbol *near = nearest_symbol(sema, name);
  if (near) tl_diag_add_hint(sema->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(near->name));
  return NULL;
}

const char *tl_sema_expr_text(tl_sema *sema, const tl_expr *expr) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(expr, &text);
  const char *copy = tl_arena_copy_bytes(sema->arena, tl_strbuf_c(&text), text.len);
  tl_strbuf_fini(&text);
  return copy;
}

const char *tl_sema_shape_text(tl_arena *arena, const int64_t *dims, int32_t rank) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_char(&text, '[');
  for (int32_t i = 0; i < rank; ++i) {
    if (i) tl_strbuf_append_c(&text, ", ");
    if (dims[i] < 0) {
      tl_strbuf_append_char(&text, '?');
    } else {
      tl_strbuf_appendf(&text, "%lld", (long long)dims[i]);
    }
  }
  tl_strbuf_append_char(&text, ']');
  const char *copy = tl_arena_copy_bytes(arena, tl_strbuf_c(&text), text.len);
  tl_strbuf_fini(&text);
  return copy;
}

const char *tl_sema_buffer_shape(tl_sema *sema, const tl_symbol *symbol) {
  const tl_type *type = symbol->value->type;
  return tl_sema_shape_text(sema->arena, type->dims, type->rank);
}
