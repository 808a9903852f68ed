// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nodes of the YAML tree that sections and statements share: names, expressions, choices, keys of the schema. Knows no
// section.
#include "frontend/spec/spec_node.h"

#include "frontend/expr/suggest.h"

const char *tl_spec_kind_text(tl_yaml_kind kind) {
  switch (kind) {
    case TL_YAML_SCALAR:
      return "a single value";
    case TL_YAML_SEQUENCE:
      return "a list (`- item`)";
    case TL_YAML_MAPPING:
      return "a mapping (`name: value`)";
  }
  return "";
}

bool tl_spec_is_empty(const tl_yaml_node *node) {
  return node->kind == TL_YAML_SCALAR && !node->quoted && node->text.text.len == 0 && !node->bad;
}

bool tl_spec_want(tl_spec_reader *reader, const tl_yaml_node *node, tl_yaml_kind kind, tl_str what) {
  if (node->bad) return false;
  bool blank = node->kind == TL_YAML_SCALAR && tl_str_trim(node->text.text).len == 0;
  if (node->kind == kind && !(kind == TL_YAML_SCALAR && blank)) return true;
  if (blank)
    tl_diag_report(reader->diags, TL_DIAG_DOC_STRUCTURE, node->loc, "`%.*s` has no value: it takes %s",
                   tl_expr_shown(what), what.data, tl_spec_kind_text(kind));
  else
    tl_diag_report(reader->diags, TL_DIAG_DOC_STRUCTURE, node->loc, "`%.*s` takes %s, not %s", tl_expr_shown(what),
                   what.data, tl_spec_kind_text(kind), tl_spec_kind_text(node->kind));
  return false;
}

tl_expr *tl_spec_read_expr(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what) {
  if (!tl_spec_want(reader, node, TL_YAML_SCALAR, what)) return NULL;
  return tl_expr_parse(reader->arena, reader->diags, node->text);
}

bool tl_spec_read_name(tl_spec_reader *reader, const tl_yaml_node *key, tl_str *out_name) {
  if (key->bad) return false;
  tl_str name = key->text.text;
  if (!tl_expr_is_identifier(name)) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_BAD_NAME, key->loc, "`%.*s` is not a name",
                                   tl_expr_shown(name), name.data);
    tl_diag_add_hint(reader->diags, diag, "%s",
                     tl_str_find(name, ',') != SIZE_MAX
                         ? "each has a line of its own: only tiles of one type may share one"
                         : "a name is made of letters, digits and `_` and starts with no digit");
    return false;
  }
  if (tl_expr_is_reserved(name)) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_BAD_NAME, key->loc,
                                   "`%.*s` is a reserved word and cannot be a name here", TL_STR_ARG(name));
    tl_expr_hint_reserved(reader->diags, diag, name);
    return false;
  }
  *out_name = name;
  return true;
}

void tl_spec_read_named(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what, tl_named_expr **out_items,
                        uint32_t *out_len) {
  *out_len = 0;
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, what)) return;
  *out_items = TL_NEW_ARRAY(reader->arena, tl_named_expr, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_named_expr named = {.loc = entry->key->loc};
    bool ok = tl_spec_read_name(reader, entry->key, &named.name);
    named.value = tl_spec_read_expr(reader, entry->value, entry->key->text.text);
    if (ok && named.value) (*out_items)[(*out_len)++] = named;
  }
}

bool tl_spec_read_tile_names(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_tile_decl *out_type,
                             tl_str **out_names, tl_loc **out_locs, uint32_t *out_len) {
  bool ok = !entry->key->bad &&
            tl_expr_parse_names(reader->arena, reader->diags, entry->key->text, out_names, out_locs, out_len);
  return tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_tile_type(reader->arena, reader->diags, entry->value->text, out_type) && ok;
}

void tl_spec_refuse_later(tl_spec_reader *reader, tl_loc loc, const char *key) {
  tl_diag_report(reader->diags, TL_DIAG_NOT_COMPILED_YET, loc,
                 "`%s` is part of the language but this version does not compile it yet", key);
}

bool tl_spec_is_later_setting(tl_spec_reader *reader, const tl_yaml_node *key) {
  const tl_schema_setting *setting = key->bad ? NULL : tl_schema_find_setting(key->text.text);
  if (!setting || setting->state == TL_SCHEMA_NOW) return false;
  tl_spec_refuse_later(reader, key->loc, setting->name);
  return true;
}

const tl_schema_key *tl_spec_validate_key(tl_spec_reader *reader, tl_schema_place place, const tl_yaml_node *key,
                                          const char *section) {
  if (key->bad) return NULL;
  tl_str name = key->text.text;
  const tl_schema_key *known = tl_schema_find_key(place, name);
  if (known && known->state == TL_SCHEMA_NOW) return known;
  if (known) {
    tl_spec_refuse_later(reader, key->loc, known->key);
    return NULL;
  }
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_DOC_UNKNOWN_KEY, key->loc, "unknown key `%.*s` in %s",
                                 tl_expr_shown(name), name.data, section);
  const char *near = tl_schema_suggest_key(place, name);
  const char *meant = place == TL_SCHEMA_TOLERANCE ? tl_suggest_for_tolerance(name) : NULL;
  if (meant)
    tl_diag_add_hint(reader->diags, diag, "%s", meant);
  else if (near)
    tl_diag_add_hint(reader->diags, diag, "did you mean `%s`?", near);
  return NULL;
}

// Whether `text` is one of the words of `choices`.
static bool is_choice(tl_str text, tl_str choices) {
  while (choices.len > 0) {
    size_t space = tl_str_find(choices, ' ');
    size_t len = space == SIZE_MAX ? choices.len : space;
    if (tl_str_equal(text, tl_str_sub(choices, 0, len))) return true;
    choices = tl_str_trim(tl_str_sub(choices, len, choices.len - len));
  }
  return false;
}

tl_str tl_spec_read_choice(tl_spec_reader *reader, const tl_yaml_node *value, const char *key, const char *words) {
  if (!tl_spec_want(reader, value, TL_YAML_SCALAR, tl_str_from(key))) return (tl_str){0};
  tl_str text = tl_str_trim(value->text.text);
  tl_str choices = tl_str_from(words), later = {0};
  size_t bar = tl_str_find(choices, '|');
  if (bar != SIZE_MAX) {
    later = tl_str_trim(tl_str_sub(choices, bar + 1, choices.len - bar - 1));
    choices = tl_str_trim(tl_str_sub(choices, 0, bar));
  }
  if (is_choice(text, choices)) return text;
  if (is_choice(text, later)) {
    tl_strbuf shown = {0};
    tl_strbuf_appendf(&shown, "%s: %.*s", key, TL_STR_ARG(text));
    tl_spec_refuse_later(reader, value->loc, tl_strbuf_c(&shown));
    tl_strbuf_fini(&shown);
  } else {
    tl_diag_report(reader->diags, TL_DIAG_BAD_CHOICE, value->loc,
                   "`%.*s` is not a choice of `%s`: it takes one of %.*s", tl_expr_shown(text), text.data, key,
                   TL_STR_ARG(choices));
  }
  return (tl_str){0};
}
