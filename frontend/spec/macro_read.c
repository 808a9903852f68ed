// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Macros as they are written: the section `macros` and its printed form.
#include <string.h>

#include "frontend/spec/spec_internal.h"

static const tl_macro *find_in(const tl_macro_list *list, tl_str name) {
  for (uint32_t i = 0; i < list->len; i++)
    if (tl_str_equal(list->items[i]->name, name)) return list->items[i];
  return NULL;
}

// A name stands for one macro wherever it is visible: a kernel's own may not hide the file's.
static void add_macro(tl_spec_reader *reader, tl_macro *macro, tl_macro_list *out) {
  const tl_macro *first = find_in(reader->file_macros, macro->name);
  if (!first) first = find_in(out, macro->name);
  if (first && macro->is_broken) return;
  if (first) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_DUPLICATE_MACRO, macro->loc,
                                   "a second macro of the name `%.*s`", TL_STR_ARG(macro->name));
    tl_diag_add_note(reader->diags, diag, first->loc, "the first stands here");
    return;
  }
  if (out->len == out->capacity) {
    out->capacity = out->capacity ? 2 * out->capacity : 8;
    tl_macro **grown = TL_NEW_ARRAY(reader->arena, tl_macro *, out->capacity);
    if (out->len) memcpy(grown, out->items, out->len * sizeof(tl_macro *));
    out->items = grown;
  }
  out->items[out->len++] = macro;
}

static bool validate_params(tl_spec_reader *reader, const tl_macro *macro) {
  for (uint32_t i = 0; i < macro->num_params; i++) {
    for (uint32_t k = 0; k < i; k++) {
      if (!tl_str_equal(macro->params[i], macro->params[k])) continue;
      tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_NAME_REDEFINED, macro->param_locs[i],
                                     "`%.*s` stands twice among the parameters", TL_STR_ARG(macro->params[i]));
      tl_diag_add_note(reader->diags, diag, macro->param_locs[k], "first defined here");
      return false;
    }
  }
  return true;
}

void tl_spec_read_macros(tl_spec_reader *reader, const tl_yaml_node *node, bool is_included, tl_macro_list *out) {
  if (tl_spec_is_empty(node) || !tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("macros"))) return;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_macro *macro = TL_NEW(reader->arena, tl_macro);
    macro->is_included = is_included;
    bool ok = !entry->key->bad && tl_expr_parse_macro_head(reader->arena, reader->diags, entry->key->text, macro) &&
              validate_params(reader, macro);
    tl_spec_read_body(reader, entry->value, &macro->body);
    macro->is_broken = !ok;
    if (ok || macro->name.len) add_macro(reader, macro, out);
  }
}

void tl_spec_print_macros(const tl_macro_list *macros, tl_strbuf *out) {
  bool any = false;
  for (uint32_t i = 0; i < macros->len; i++) {
    const tl_macro *macro = macros->items[i];
    if (macro->is_included && !macro->is_used) continue;
    if (!any) tl_strbuf_append_c(out, "macros:\n");
    any = true;
    tl_strbuf_appendf(out, "  %.*s(", TL_STR_ARG(macro->name));
    for (uint32_t p = 0; p < macro->num_params; p++)
      tl_strbuf_appendf(out, "%s%.*s", p ? ", " : "", TL_STR_ARG(macro->params[p]));
    tl_strbuf_append_c(out, macro->body.len ? "):\n" : "): []\n");
    tl_spec_print_body(&macro->body, 4, out);
  }
}
