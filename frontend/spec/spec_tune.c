// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The section tune: lists of values, conditions and a budget.
#include "frontend/expr/suggest.h"
#include "frontend/spec/spec_internal.h"
#include "frontend/spec/spec_print_part.h"

// A list of expressions, or one alone.
static void read_exprs(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what, tl_expr ***out_items,
                       uint32_t *out_len) {
  bool single = node->kind == TL_YAML_SCALAR && !tl_spec_is_empty(node);
  if (!single && !tl_spec_want(reader, node, TL_YAML_SEQUENCE, what)) return;
  uint32_t count = single ? 1 : node->num_items;
  *out_items = TL_NEW_ARRAY(reader->arena, tl_expr *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    tl_expr *item = tl_spec_read_expr(reader, single ? node : node->items[i], what);
    if (item) (*out_items)[(*out_len)++] = item;
  }
}

static void report_twice(tl_spec_reader *reader, const tl_tune_param *param, const tl_expr *value) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(value, &text);
  tl_diag_report(reader->diags, TL_DIAG_TUNE, value->loc, "`%s` stands twice among the values of `%.*s`",
                 tl_strbuf_c(&text), TL_STR_ARG(param->name));
  tl_strbuf_fini(&text);
}

static void read_values(tl_spec_reader *reader, const tl_yaml_node *node, tl_tune_param *param) {
  if (!tl_spec_want(reader, node, TL_YAML_SEQUENCE, param->name)) return;
  read_exprs(reader, node, param->name, &param->values, &param->num_values);
  if (!node->num_items)
    tl_diag_report(reader->diags, TL_DIAG_TUNE, node->loc, "`%.*s` has no values to try", TL_STR_ARG(param->name));
  for (uint32_t i = 0; i < param->num_values; i++) {
    bool twice = false;
    for (uint32_t k = 0; k < i && !twice; k++) twice = tl_expr_equal(param->values[i], param->values[k]);
    if (twice) report_twice(reader, param, param->values[i]);
  }
}

void tl_spec_read_tune(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_tune *out) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("tune"))) return;
  out->present = true;
  out->loc = key_loc;
  out->params = TL_NEW_ARRAY(reader->arena, tl_tune_param, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "where")) {
      read_exprs(reader, entry->value, key, &out->where, &out->num_where);
    } else if (tl_str_is(key, "budget")) {
      out->budget = tl_spec_read_expr(reader, entry->value, key);
    } else if (!tl_spec_is_later_setting(reader, entry->key)) {
      tl_tune_param *param = &out->params[out->num_params];
      *param = (tl_tune_param){.loc = entry->key->loc};
      if (!tl_spec_read_name(reader, entry->key, &param->name)) continue;
      read_values(reader, entry->value, param);
      out->num_params++;
    }
  }
}

// ---- names

static const tl_param *find_param(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (tl_str_equal(kernel->params[i].name, name)) return &kernel->params[i];
  return NULL;
}

static void report_unknown(tl_spec_reader *reader, const tl_kernel_spec *kernel, const tl_tune_param *tuned) {
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_TUNE, tuned->loc, "`tune` names `%.*s`, which is no param",
                                 tl_expr_shown(tuned->name), tuned->name.data);
  for (uint32_t i = 0; i < kernel->num_lets; i++) {
    if (!tl_str_equal(kernel->lets[i].name, tuned->name)) continue;
    tl_diag_add_note(reader->diags, diag, kernel->lets[i].loc, "`%.*s` is a let: it follows from the params",
                     TL_STR_ARG(tuned->name));
    return;
  }
  tl_str *names = TL_NEW_ARRAY(reader->arena, tl_str, kernel->num_params + TL_SCHEMA_MAX_SETTINGS + 2);
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params; i++) names[count++] = kernel->params[i].name;
  count += tl_schema_list_settings(names + count);
  names[count++] = TL_STR("where");
  names[count++] = TL_STR("budget");
  size_t nearest = tl_suggest_index(tuned->name, names, count);
  if (nearest != SIZE_MAX) tl_diag_add_hint(reader->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
}

void tl_spec_validate_tune(tl_spec_reader *reader, const tl_kernel_spec *kernel) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < kernel->tune.num_params; i++) {
    const tl_tune_param *tuned = &kernel->tune.params[i];
    const tl_param *param = find_param(kernel, tuned->name);
    if (!param && !tl_schema_find_setting(tuned->name)) {
      report_unknown(reader, kernel, tuned);
    } else if (param && param->kind == TL_PARAM_DYNAMIC) {
      tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_TUNE, tuned->loc,
                                     "`%.*s` is dynamic: its value comes at launch", TL_STR_ARG(tuned->name));
      tl_diag_add_note(reader->diags, diag, param->loc, "declared dynamic here");
    }
    if (count <= TL_TUNE_MAX_CONFIGURATIONS && tuned->num_values) count *= tuned->num_values;
  }
  if (count <= TL_TUNE_MAX_CONFIGURATIONS) return;
  tl_diag_report(reader->diags, TL_DIAG_TUNE, kernel->tune.loc, "the lists make more than %u configurations",
                 TL_TUNE_MAX_CONFIGURATIONS);
}

// ---- printing

static void print_items(const char *key, tl_expr *const *items, uint32_t len, tl_strbuf *out) {
  tl_strbuf_appendf(out, len ? "  %s:\n" : "  %s: []\n", key);
  for (uint32_t i = 0; i < len; i++) {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_expr_print(items[i], &text);
    tl_strbuf_append_c(out, "    - ");
    tl_spec_print_value(tl_strbuf_view(&text), out);
    tl_strbuf_append_char(out, '\n');
    tl_strbuf_fini(&text);
  }
}

void tl_spec_print_tune(const tl_tune *tune, tl_strbuf *out) {
  bool is_empty = !tune->num_params && !tune->num_where && !tune->budget;
  tl_strbuf_append_c(out, is_empty ? "tune: {}\n" : "tune:\n");
  for (uint32_t i = 0; i < tune->num_params; i++) {
    tl_strbuf name;
    tl_strbuf_init(&name);
    tl_strbuf_append(&name, tune->params[i].name);
    print_items(tl_strbuf_c(&name), tune->params[i].values, tune->params[i].num_values, out);
    tl_strbuf_fini(&name);
  }
  if (tune->num_where) print_items("where", tune->where, tune->num_where, out);
  tl_spec_print_expr("budget", tune->budget, 2, out);
}
