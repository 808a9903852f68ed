// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// YAML documents → the spec model: the document's own sections. Bodies are read in stmt.c, check and bench in
// spec_check.c.
#include "frontend/spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/expr/suggest.h"
#include "frontend/spec/spec_internal.h"

static const char *kind_text(tl_yaml_kind kind) {
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
                   tl_expr_shown(what), what.data, kind_text(kind));
  else
    tl_diag_report(reader->diags, TL_DIAG_DOC_STRUCTURE, node->loc, "`%.*s` takes %s, not %s", tl_expr_shown(what),
                   what.data, kind_text(kind), kind_text(node->kind));
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

static void read_params(tl_spec_reader *reader, const tl_yaml_node *node, tl_kernel_spec *kernel) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("params"))) return;
  kernel->params = TL_NEW_ARRAY(reader->arena, tl_param, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_param param = {.loc = entry->key->loc};
    bool ok = tl_spec_read_name(reader, entry->key, &param.name);
    ok = tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_param(reader->arena, reader->diags, entry->value->text, &param) && ok;
    if (ok) kernel->params[kernel->num_params++] = param;
  }
}

static void read_args(tl_spec_reader *reader, const tl_yaml_node *node, tl_kernel_spec *kernel) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("args"))) return;
  kernel->args = TL_NEW_ARRAY(reader->arena, tl_arg, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_arg arg = {.loc = entry->key->loc};
    bool ok = tl_spec_read_name(reader, entry->key, &arg.name);
    ok = tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_arg_type(reader->arena, reader->diags, entry->value->text, &arg) && ok;
    if (ok) kernel->args[kernel->num_args++] = arg;
  }
}

static void read_views(tl_spec_reader *reader, const tl_yaml_node *node, tl_kernel_spec *kernel) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("views"))) return;
  kernel->views = TL_NEW_ARRAY(reader->arena, tl_view, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_view view = {.loc = entry->key->loc};
    bool ok = tl_spec_read_name(reader, entry->key, &view.name);
    ok = tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_view(reader->arena, reader->diags, entry->value->text, &view) && ok;
    if (ok) kernel->views[kernel->num_views++] = view;
  }
}

static void read_conditions(tl_spec_reader *reader, const tl_yaml_node *node, tl_str key, tl_expr ***out,
                            uint32_t *out_len) {
  bool single = node->kind == TL_YAML_SCALAR && !tl_spec_is_empty(node);
  if (!single && !tl_spec_want(reader, node, TL_YAML_SEQUENCE, key)) return;
  uint32_t count = single ? 1 : node->num_items;
  *out = TL_NEW_ARRAY(reader->arena, tl_expr *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    tl_expr *condition = tl_spec_read_expr(reader, single ? node : node->items[i], key);
    if (condition) (*out)[(*out_len)++] = condition;
  }
}

static bool names_argument(const tl_kernel_spec *kernel, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_INDEX) return true;
  for (uint32_t i = 0; expr->kind == TL_EXPR_NAME && i < kernel->num_args; i++)
    if (tl_str_equal(kernel->args[i].name, expr->text)) return true;
  for (uint32_t i = 0; i < expr->num_operands; i++)
    if (names_argument(kernel, expr->operands[i])) return true;
  return false;
}

// What is assumed of params and lets alone is required: every launcher looks at it.
static void require_assumptions(tl_spec_reader *reader, tl_kernel_spec *kernel) {
  uint32_t count = kernel->num_assumptions, left = 0;
  if (!count) return;
  tl_expr **all = TL_NEW_ARRAY(reader->arena, tl_expr *, kernel->num_requires + count + 1);
  if (kernel->num_requires) memcpy(all, kernel->requires_, kernel->num_requires * sizeof *all);
  for (uint32_t i = 0; i < count; i++) {
    tl_expr *condition = kernel->assumptions[i];
    if (names_argument(kernel, condition))
      kernel->assumptions[left++] = condition;
    else
      all[kernel->num_requires++] = condition;
  }
  kernel->requires_ = all;
  kernel->num_assumptions = left;
}

bool tl_spec_read_tile_names(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_tile_decl *out_type,
                             tl_str **out_names, tl_loc **out_locs, uint32_t *out_len) {
  bool ok = !entry->key->bad &&
            tl_expr_parse_names(reader->arena, reader->diags, entry->key->text, out_names, out_locs, out_len);
  return tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_tile_type(reader->arena, reader->diags, entry->value->text, out_type) && ok;
}

static void read_tile(tl_spec_reader *reader, const tl_yaml_entry *entry, int scope, tl_kernel_spec *kernel,
                      tl_tile_decl **tiles, uint32_t *capacity) {
  tl_tile_decl shape = {.scope = scope};
  tl_str *names = NULL;
  tl_loc *locs = NULL;
  uint32_t count = 0;
  if (!tl_spec_read_tile_names(reader, entry, &shape, &names, &locs, &count)) return;
  const tl_expr *suffix = shape.layout ? shape.layout : shape.stages;
  if (suffix && scope != TL_TILE_SHARED) {
    tl_diag_report(reader->diags, TL_DIAG_BAD_TYPE, suffix->loc,
                   shape.layout ? "only a shared tile takes a layout" : "only a shared tile takes `stages`");
    return;
  }
  if (!shape.num_dims && scope != TL_TILE_LOCAL) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_BAD_TYPE, shape.type_loc, "a tile needs dims: `dtype[dims]`");
    if (shape.dtype)
      tl_diag_add_hint(reader->diags, diag, "a tile of one element is `%.*s[1]`", TL_STR_ARG(shape.dtype->text));
    return;
  }
  if (kernel->num_tiles + count > *capacity) {
    *capacity = 2 * (kernel->num_tiles + count);
    *tiles = tl_xrealloc(*tiles, *capacity * sizeof(tl_tile_decl));
  }
  for (uint32_t i = 0; i < count; i++) {
    shape.name = names[i];
    shape.loc = locs[i];
    (*tiles)[kernel->num_tiles++] = shape;
  }
}

static void read_tiles(tl_spec_reader *reader, const tl_yaml_node *node, int scope, tl_str what,
                       tl_kernel_spec *kernel) {
  if (tl_spec_is_empty(node) || !tl_spec_want(reader, node, TL_YAML_MAPPING, what)) return;
  uint32_t capacity = kernel->num_tiles + node->num_entries + 1;
  tl_tile_decl *tiles = tl_xmalloc(capacity * sizeof(tl_tile_decl));
  if (kernel->num_tiles) memcpy(tiles, kernel->tiles, kernel->num_tiles * sizeof(tl_tile_decl));
  for (uint32_t i = 0; i < node->num_entries; i++)
    read_tile(reader, &node->entries[i], scope, kernel, &tiles, &capacity);
  kernel->tiles = tl_expr_copy_items(reader->arena, tiles, kernel->num_tiles, sizeof(tl_tile_decl));
  free(tiles);
}

// One key may declare several names.
static void read_barriers(tl_spec_reader *reader, const tl_yaml_node *node, tl_kernel_spec *kernel) {
  if (tl_spec_is_empty(node) || !tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("barriers"))) return;
  TL_VEC(tl_barrier_decl) all = {0};
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_barrier_decl barrier = {0};
    tl_str *names = NULL;
    tl_loc *locs = NULL;
    uint32_t count = 0;
    bool ok =
        !entry->key->bad && tl_expr_parse_names(reader->arena, reader->diags, entry->key->text, &names, &locs, &count);
    ok = tl_spec_want(reader, entry->value, TL_YAML_SCALAR, entry->key->text.text) &&
         tl_expr_parse_barrier(reader->arena, reader->diags, entry->value->text, &barrier) && ok;
    for (uint32_t n = 0; ok && n < count; n++) {
      barrier.name = names[n];
      barrier.loc = locs[n];
      tl_vec_push(&all, barrier);
    }
  }
  kernel->barriers = tl_expr_copy_items(reader->arena, all.items, all.len, sizeof(tl_barrier_decl));
  kernel->num_barriers = (uint32_t)all.len;
  tl_vec_fini(&all);
}

static void read_rasterize(tl_spec_reader *reader, const tl_yaml_node *node, tl_kernel_spec *kernel) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("rasterize"))) return;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    const tl_schema_key *key = tl_spec_validate_key(reader, TL_SCHEMA_RASTERIZE, entry->key, "`rasterize`");
    if (!key) continue;
    if (tl_str_is(entry->key->text.text, "panel")) {
      kernel->raster_panel = tl_spec_read_expr(reader, entry->value, TL_STR("panel"));
      continue;
    }
    const char *choices = tl_schema_key_choices(TL_SCHEMA_RASTERIZE, entry->key->text.text);
    tl_str order = tl_spec_read_choice(reader, entry->value, key->key, choices);
    if (order.len) kernel->raster_order = order;
  }
}

// PTX ISA, "Identifiers": `_` alone is none, and the only predefined identifier without a leading `%` is WARP_SZ.
static bool is_ptx_name(tl_str name) {
  return tl_expr_is_identifier(name) && !tl_str_is(name, "_") && !tl_str_is(name, "WARP_SZ");
}

static void read_kernel_name(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what, tl_kernel_spec *kernel) {
  if (!tl_spec_want(reader, node, TL_YAML_SCALAR, what)) return;
  tl_str name = tl_str_trim(node->text.text);
  kernel->loc = node->loc;
  if (is_ptx_name(name)) {
    kernel->name = name;
    return;
  }
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_BAD_NAME, node->loc, "`%.*s` is not a usable %.*s name",
                                 tl_expr_shown(name), name.data, TL_STR_ARG(what));
  tl_diag_add_hint(
      reader->diags, diag,
      "it becomes the PTX entry's name: letters, digits and `_`, starting with no digit, and neither `_` nor "
      "`WARP_SZ`");
}

void tl_spec_read_section(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_kernel_spec *kernel) {
  tl_str key = entry->key->text.text;
  const tl_yaml_node *value = entry->value;
  bool may_be_empty = tl_str_is(key, "params") || tl_str_is(key, "args") || tl_str_is(key, "let") ||
                      tl_str_is(key, "views") || tl_str_is(key, "requires") || tl_str_is(key, "assume");
  if (may_be_empty && tl_spec_is_empty(value)) return;
  if (tl_str_is(key, "kernel") || tl_str_is(key, "chain")) {
    read_kernel_name(reader, value, key, kernel);
  } else if (tl_str_is(key, "doc")) {
    if (!tl_spec_is_empty(value) && tl_spec_want(reader, value, TL_YAML_SCALAR, key))
      kernel->doc = tl_str_trim(value->text.text);
  } else if (tl_str_is(key, "target")) {
    if (!tl_spec_want(reader, value, TL_YAML_SCALAR, key)) return;
    kernel->target = tl_str_trim(value->text.text);
    kernel->target_loc = value->loc;
  } else if (tl_str_is(key, "params")) {
    read_params(reader, value, kernel);
  } else if (tl_str_is(key, "let")) {
    tl_spec_read_named(reader, value, key, &kernel->lets, &kernel->num_lets);
  } else if (tl_str_is(key, "args")) {
    read_args(reader, value, kernel);
  } else if (tl_str_is(key, "views")) {
    read_views(reader, value, kernel);
  } else if (tl_str_is(key, "requires")) {
    read_conditions(reader, value, key, &kernel->requires_, &kernel->num_requires);
  } else if (tl_str_is(key, "assume")) {
    read_conditions(reader, value, key, &kernel->assumptions, &kernel->num_assumptions);
  } else if (tl_str_is(key, "grid")) {
    tl_spec_read_named(reader, value, key, &kernel->grid, &kernel->num_grid);
  } else if (tl_str_is(key, "cluster")) {
    tl_spec_read_named(reader, value, key, &kernel->cluster, &kernel->num_cluster);
  } else if (tl_str_is(key, "threads")) {
    kernel->threads = tl_spec_read_expr(reader, value, key);
  } else if (tl_str_is(key, "occupancy")) {
    kernel->occupancy = tl_spec_read_expr(reader, value, key);
  } else if (tl_str_is(key, "persistent")) {
    kernel->persistent = tl_spec_read_expr(reader, value, key);
  } else if (tl_str_is(key, "fast_math")) {
    kernel->fast_math = tl_spec_read_expr(reader, value, key);
  } else if (tl_str_is(key, "rasterize")) {
    read_rasterize(reader, value, kernel);
  } else if (tl_str_is(key, "shared")) {
    read_tiles(reader, value, TL_TILE_SHARED, key, kernel);
  } else if (tl_str_is(key, "fragment")) {
    read_tiles(reader, value, TL_TILE_FRAGMENT, key, kernel);
  } else if (tl_str_is(key, "local")) {
    read_tiles(reader, value, TL_TILE_LOCAL, key, kernel);
  } else if (tl_str_is(key, "barriers")) {
    read_barriers(reader, value, kernel);
  } else if (tl_str_is(key, "macros")) {
    tl_spec_read_macros(reader, value, false, &kernel->macros);
  } else if (tl_str_is(key, "include")) {
    tl_spec_read_include(reader, value, &kernel->macros);
  } else if (tl_str_is(key, "body")) {
    tl_spec_read_body(reader, value, &kernel->body);
  } else if (tl_str_is(key, "check")) {
    tl_spec_read_check(reader, value, entry->key->loc, &kernel->check);
  } else if (tl_str_is(key, "bench")) {
    tl_spec_read_bench(reader, value, entry->key->loc, &kernel->bench);
  } else if (tl_str_is(key, "tune")) {
    tl_spec_read_tune(reader, value, entry->key->loc, &kernel->tune);
  }
}

// A document that is neither a kernel nor a chain, and holds no macros.
static void refuse_document(tl_spec_reader *reader, const tl_yaml_node *document) {
  tl_diag *diag =
      tl_diag_report(reader->diags, TL_DIAG_DOC_MISSING_KEY, document->loc, "the document has no `kernel` key");
  for (uint32_t k = 0; k < document->num_entries; k++) {
    tl_str key = document->entries[k].key->text.text;
    const char *near = tl_schema_suggest_key(TL_SCHEMA_KERNEL, key);
    if (near && tl_str_is(tl_str_from(near), "kernel"))
      tl_diag_add_hint(reader->diags, diag, "did you mean `kernel` instead of `%.*s`?", TL_STR_ARG(key));
  }
}

static bool read_document(tl_spec_reader *reader, const tl_yaml_node *document, tl_kernel_spec *kernel) {
  if (document->bad) return false;
  if (document->kind != TL_YAML_MAPPING) {
    tl_diag_report(reader->diags, TL_DIAG_DOC_STRUCTURE, document->loc,
                   "a spec is a mapping that starts with `kernel: name`, not %s", kind_text(document->kind));
    return false;
  }
  if (tl_yaml_get(document, "chain") && !tl_yaml_get(document, "kernel"))
    return tl_spec_read_chain(reader, document, kernel);
  if (!tl_yaml_get(document, "kernel")) {
    refuse_document(reader, document);
    return false;
  }
  kernel->raster_order = TL_STR("row");
  size_t errors_before = reader->diags->num_errors;
  for (uint32_t i = 0; i < document->num_entries; i++) {
    const tl_yaml_entry *entry = &document->entries[i];
    if (tl_spec_validate_key(reader, TL_SCHEMA_KERNEL, entry->key, "a kernel"))
      tl_spec_read_section(reader, entry, kernel);
  }
  require_assumptions(reader, kernel);
  if (reader->diags->num_errors == errors_before) tl_spec_validate_names(reader, kernel);
  if (reader->diags->num_errors == errors_before) tl_spec_validate_tune(reader, kernel);
  return kernel->name.len > 0;
}

static bool is_duplicate(tl_spec_reader *reader, const tl_spec *spec, const tl_kernel_spec *kernel) {
  const tl_kernel_spec *first = tl_spec_find(spec, kernel->name);
  if (!first) return false;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_DUPLICATE_KERNEL, kernel->loc,
                                 "a second kernel of the name `%.*s`", TL_STR_ARG(kernel->name));
  tl_diag_add_note(reader->diags, diag, first->loc, "the first stands here");
  return true;
}

static void read_documents(tl_spec_reader *reader, const tl_yaml_tree *tree, tl_spec *spec) {
  // Macros of the file first: kernels may use those that stand behind them, and must not define their names again.
  for (uint32_t i = 0; i < tree->num_documents; i++)
    if (tl_spec_is_macro_document(tree->documents[i]))
      tl_spec_read_macro_document(reader, tree->documents[i], false, &spec->macros);
  for (uint32_t i = 0; i < tree->num_documents; i++) {
    tl_kernel_spec *kernel = &spec->kernels[spec->num_kernels];
    bool skip = tl_spec_is_macro_document(tree->documents[i]) || tl_spec_is_empty(tree->documents[i]);
    if (skip) continue;  // `---` at the end makes an empty one
    if (read_document(reader, tree->documents[i], kernel) && !is_duplicate(reader, spec, kernel))
      spec->num_kernels++;
    else
      *kernel = (tl_kernel_spec){0};
  }
}

tl_spec *tl_spec_parse_with(tl_sources *sources, uint32_t source, const tl_spec_loader *loader, tl_diags *diags) {
  tl_spec *spec = tl_xcalloc(1, sizeof(*spec));
  tl_arena_init(&spec->arena);
  tl_spec_reader reader = {.arena = &spec->arena,
                           .diags = diags,
                           .sources = sources,
                           .loader = loader,
                           .file_macros = &spec->macros,
                           .errors_before = diags->num_errors};
  tl_yaml_tree tree;
  tl_yaml_parse(&spec->arena, diags, sources, source, &tree);
  tl_spec_open_file(&reader, source);
  spec->kernels = TL_NEW_ARRAY(&spec->arena, tl_kernel_spec, tree.num_documents + 1);
  read_documents(&reader, &tree, spec);
  tl_spec_resolve_chains(&reader, spec);
  tl_macros_resolve(&reader, spec);
  if (diags->num_errors == reader.errors_before) tl_macros_expand(&reader, spec);
  tl_vec_fini(&reader.files);
  if (spec->num_kernels) return spec;
  if (diags->num_errors == reader.errors_before) {
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_NO_KERNEL, (tl_loc){source, 0, 0}, "the file holds no kernel");
    if (spec->macros.len) tl_diag_add_hint(diags, diag, "it holds macros: `include` it in a file with kernels");
  }
  tl_spec_destroy(spec);
  return NULL;
}

tl_spec *tl_spec_parse(tl_sources *sources, uint32_t source, tl_diags *diags) {
  return tl_spec_parse_with(sources, source, NULL, diags);
}

tl_status tl_spec_read(tl_sources *sources, const char *path, tl_diags *diags, uint32_t *out_source) {
  tl_status status = tl_sources_read(sources, path, TL_SPEC_MAX_BYTES, out_source);
  if (tl_status_code_of(status) != TL_STATUS_LIMIT) return status;
  tl_diag_report(diags, TL_DIAG_YAML_LIMIT, (tl_loc){0}, "%s", tl_status_message(status));
  tl_status_free(status);
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
}

void tl_spec_destroy(tl_spec *spec) {
  if (!spec) return;
  tl_arena arena = spec->arena;
  tl_arena_fini(&arena);
  free(spec);
}

const tl_kernel_spec *tl_spec_find(const tl_spec *spec, tl_str name) {
  for (uint32_t i = 0; i < spec->num_kernels; i++)
    if (tl_str_equal(spec->kernels[i].name, name)) return &spec->kernels[i];
  return NULL;
}
