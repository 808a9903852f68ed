// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sections that kernels and chains share. Bodies are read in stmt.c, check and bench in spec_check.c, tune in
// spec_tune.c, macros in macro_read.c and include.c.
#include <stdlib.h>
#include <string.h>

#include "frontend/spec/spec_internal.h"

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
