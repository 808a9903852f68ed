// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sections check and bench.
#include <string.h>

#include "frontend/expr/suggest.h"
#include "frontend/spec/spec_internal.h"

typedef struct generator {
  const char *name;
  uint32_t min_args, max_args;
} generator;

static const generator generators[] = {
#define TL_GENERATOR(ID, name, min_args, max_args) {name, min_args, max_args},
#include "frontend/spec/generators.def"
#undef TL_GENERATOR
};
enum { NUM_GENERATORS = sizeof(generators) / sizeof(generators[0]) };

// "two arguments", for a message.
static const char *arity_of(const generator *given) {
  static const char *const exactly[] = {"no arguments", "one argument", "two arguments"};
  if (given->min_args == given->max_args) return exactly[given->max_args];
  return given->max_args == 1 ? "at most one argument" : "at most two arguments";
}

static bool validate_generator(tl_spec_reader *reader, const tl_expr *value) {
  if (value->kind == TL_EXPR_STRING) return true;  // a .npy path
  bool is_call = value->kind == TL_EXPR_CALL || value->kind == TL_EXPR_NAME;
  if (!is_call) {
    tl_diag *diag =
        tl_diag_report(reader->diags, TL_DIAG_CHECK_GENERATOR, value->loc, "an input is made by a generator");
    tl_diag_add_hint(reader->diags, diag, "one value everywhere is `const(x)`");
    return false;
  }
  const char *names[NUM_GENERATORS];
  for (size_t i = 0; i < NUM_GENERATORS; i++) {
    names[i] = generators[i].name;
    if (!tl_str_is(value->text, generators[i].name)) continue;
    uint32_t len = value->num_operands;
    if (value->num_keywords) {
      tl_diag_report(reader->diags, TL_DIAG_CHECK_GENERATOR, value->keywords[0].loc,
                     "the arguments of a generator have no names");
      return false;
    }
    if (len >= generators[i].min_args && len <= generators[i].max_args) return true;
    tl_diag_report(reader->diags, TL_DIAG_CHECK_GENERATOR, value->loc, "`%s` takes %s, not %u", generators[i].name,
                   arity_of(&generators[i]), len);
    return false;
  }
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHECK_GENERATOR, value->loc, "unknown generator `%.*s`",
                                 tl_expr_shown(value->text), value->text.data);
  const char *near = tl_suggest(value->text, names, NUM_GENERATORS);
  if (near) tl_diag_add_hint(reader->diags, diag, "did you mean `%s`?", near);
  return false;
}

// A YAML list (nested for more dims) as a call of `list`.
static tl_expr *read_list(tl_spec_reader *reader, const tl_yaml_node *node) {
  if (node->bad) return NULL;
  tl_expr *list = TL_NEW(reader->arena, tl_expr);
  list->kind = TL_EXPR_CALL;
  list->text = TL_STR("list");
  list->loc = node->loc;
  list->height = 1;
  list->operands = TL_NEW_ARRAY(reader->arena, tl_expr *, node->num_items + 1);
  bool ok = true;
  for (uint32_t i = 0; i < node->num_items; i++) {
    const tl_yaml_node *item = node->items[i];
    tl_expr *value =
        item->kind == TL_YAML_SEQUENCE ? read_list(reader, item) : tl_spec_read_expr(reader, item, TL_STR("list"));
    ok = ok && value;
    if (!value) continue;
    if (value->height >= list->height) list->height = value->height + 1;
    list->operands[list->num_operands++] = value;
  }
  return ok ? list : NULL;
}

static tl_expr *read_generator(tl_spec_reader *reader, const tl_yaml_node *node, tl_str name) {
  if (node->kind == TL_YAML_SEQUENCE) return read_list(reader, node);
  if (!tl_spec_want(reader, node, TL_YAML_SCALAR, name)) return NULL;
  tl_str text = tl_str_trim(node->text.text);
  if (tl_str_ends_with(text, ".npy")) {
    tl_expr *path = TL_NEW(reader->arena, tl_expr);
    path->kind = TL_EXPR_STRING;
    path->text = text;
    path->loc = node->loc;
    path->height = 1;
    return path;
  }
  tl_expr *value = tl_expr_parse(reader->arena, reader->diags, node->text);
  return value && validate_generator(reader, value) ? value : NULL;
}

static void read_inputs(tl_spec_reader *reader, const tl_yaml_node *node, tl_named_expr **out_items,
                        uint32_t *out_len) {
  if (tl_spec_is_empty(node) || !tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("inputs"))) return;
  *out_items = TL_NEW_ARRAY(reader->arena, tl_named_expr, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_named_expr input = {.loc = entry->key->loc};
    bool ok = tl_spec_read_name(reader, entry->key, &input.name);
    input.value = read_generator(reader, entry->value, entry->key->text.text);
    if (ok && input.value) (*out_items)[(*out_len)++] = input;
  }
}

static bool read_reference_item(tl_spec_reader *reader, const tl_yaml_node *node, tl_reference_stmt *out);

static void read_reference(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what, tl_reference_stmt **out_items,
                           uint32_t *out_len) {
  bool is_list = node->kind == TL_YAML_SEQUENCE;
  if (node->bad) return;
  if (tl_spec_is_empty(node)) {
    tl_spec_want(reader, node, TL_YAML_SEQUENCE, what);
    return;
  }
  uint32_t count = is_list ? node->num_items : 1;
  *out_items = TL_NEW_ARRAY(reader->arena, tl_reference_stmt, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    tl_reference_stmt stmt = {0};
    if (read_reference_item(reader, is_list ? node->items[i] : node, &stmt)) (*out_items)[(*out_len)++] = stmt;
  }
}

static bool read_recur(tl_spec_reader *reader, const tl_yaml_node *node, tl_reference_stmt *out) {
  bool ok = true;
  for (uint32_t i = 0; i < node->num_entries; i++)
    ok = tl_spec_validate_key(reader, TL_SCHEMA_RECUR, node->entries[i].key, "a reference statement") && ok;
  const tl_yaml_node *recur = tl_yaml_get(node, "recur"), *body = tl_yaml_get(node, "do");
  if (!ok) return false;
  if (!recur || !body) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHECK_REFERENCE, node->loc, "a coupled recurrence needs `%s`",
                                   recur ? "do" : "recur");
    tl_diag_add_hint(reader->diags, diag, "it is written `recur: t in 0:S` with a list of assignments under `do:`");
    return false;
  }
  out->is_recur = true;
  out->loc = recur->loc;
  out->ranges = TL_NEW(reader->arena, tl_reduction_index);
  if (!tl_spec_want(reader, recur, TL_YAML_SCALAR, TL_STR("recur")) ||
      !tl_expr_parse_range(reader->arena, reader->diags, recur->text, out->ranges))
    return false;
  out->num_ranges = 1;
  read_reference(reader, body, TL_STR("do"), &out->body, &out->num_body);
  return true;
}

// X or X[i, j]: slices say nothing in index notation.
static bool validate_left_side(tl_spec_reader *reader, const tl_expr *target) {
  for (uint32_t i = 0; i < target->num_subscripts; i++) {
    if (target->subscripts[i].kind == TL_SUBSCRIPT_ELEMENT) continue;
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHECK_REFERENCE, target->subscripts[i].loc,
                                   "the left side of a reference has an index here, not a slice");
    tl_diag_add_hint(reader->diags, diag, "name the index: `i`, or `i in 0:16` to give its range");
    return false;
  }
  return true;
}

static bool read_reference_item(tl_spec_reader *reader, const tl_yaml_node *node, tl_reference_stmt *out) {
  if (node->bad) return false;
  if (node->kind == TL_YAML_MAPPING) return read_recur(reader, node, out);
  if (!tl_spec_want(reader, node, TL_YAML_SCALAR, TL_STR("reference"))) return false;
  if (!tl_expr_parse_reference(reader->arena, reader->diags, node->text, out)) return false;
  if (out->assign.num_targets == 1 && tl_str_is(out->assign.op, "="))
    return validate_left_side(reader, out->assign.targets[0]);
  tl_diag_report(reader->diags, TL_DIAG_CHECK_REFERENCE, out->loc,
                 "a reference sets one tensor with `=`: the right side is complete before the left is replaced");
  return false;
}

static bool want_tolerance(tl_spec_reader *reader, const tl_yaml_node *node) {
  if (node->bad) return false;
  if (node->kind == TL_YAML_MAPPING && node->num_entries) return true;
  tl_diag *diag =
      tl_diag_report(reader->diags, TL_DIAG_CHECK_TOLERANCE, node->loc, "a tolerance needs `rtol` or `atol`");
  tl_diag_add_hint(reader->diags, diag, "write `{rtol: 1.0e-2, atol: 1.0e-3}`");
  return false;
}

static void read_tolerance_of(tl_spec_reader *reader, const tl_yaml_node *node, tl_expr **rtol, tl_expr **atol) {
  if (!want_tolerance(reader, node)) return;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (!tl_spec_validate_key(reader, TL_SCHEMA_OUTPUT_TOLERANCE, entry->key, "a tolerance")) continue;
    bool is_rtol = tl_str_is(entry->key->text.text, "rtol");
    *(is_rtol ? rtol : atol) = tl_spec_read_expr(reader, entry->value, entry->key->text.text);
  }
}

static void read_per_output(tl_spec_reader *reader, const tl_yaml_node *node, tl_check *check) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("per"))) return;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    tl_tolerance tolerance = {.loc = node->entries[i].key->loc};
    if (!tl_spec_read_name(reader, node->entries[i].key, &tolerance.output)) continue;
    read_tolerance_of(reader, node->entries[i].value, &tolerance.rtol, &tolerance.atol);
    check->tolerances[check->num_tolerances++] = tolerance;
  }
}

// A key of a tolerance. An unknown one with a mapping is probably an output's name.
static bool validate_tolerance_key(tl_spec_reader *reader, const tl_yaml_entry *entry) {
  const tl_yaml_node *key = entry->key;
  if (!key->bad && entry->value->kind == TL_YAML_MAPPING && !tl_schema_find_key(TL_SCHEMA_TOLERANCE, key->text.text)) {
    tl_diag *diag =
        tl_diag_report(reader->diags, TL_DIAG_DOC_UNKNOWN_KEY, key->loc, "unknown key `%.*s` in a tolerance",
                       tl_expr_shown(key->text.text), key->text.text.data);
    tl_diag_add_hint(reader->diags, diag, "the tolerance of a single output stands under `per`");
    return false;
  }
  return tl_spec_validate_key(reader, TL_SCHEMA_TOLERANCE, key, "a tolerance") != NULL;
}

static void read_tolerance(tl_spec_reader *reader, const tl_yaml_node *node, tl_check *check) {
  if (!want_tolerance(reader, node)) return;
  const tl_yaml_node *per = tl_yaml_get(node, "per");
  uint32_t count = 1 + (per && per->kind == TL_YAML_MAPPING ? per->num_entries : 0);
  check->tolerances = TL_NEW_ARRAY(reader->arena, tl_tolerance, count);
  tl_tolerance all = {.loc = node->loc};
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (!validate_tolerance_key(reader, entry)) continue;
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "per")) continue;
    *(tl_str_is(key, "rtol") ? &all.rtol : &all.atol) = tl_spec_read_expr(reader, entry->value, key);
  }
  if (all.rtol || all.atol) check->tolerances[check->num_tolerances++] = all;
  if (per) read_per_output(reader, per, check);
}

static void read_unchecked(tl_spec_reader *reader, const tl_yaml_node *node, tl_check *check) {
  bool single = node->kind == TL_YAML_SCALAR && !tl_spec_is_empty(node);
  if (!single && !tl_spec_want(reader, node, TL_YAML_SEQUENCE, TL_STR("unchecked"))) return;
  uint32_t count = single ? 1 : node->num_items;
  check->unchecked = TL_NEW_ARRAY(reader->arena, tl_str, count + 1);
  check->unchecked_locs = TL_NEW_ARRAY(reader->arena, tl_loc, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const tl_yaml_node *item = single ? node : node->items[i];
    if (!tl_spec_want(reader, item, TL_YAML_SCALAR, TL_STR("unchecked"))) continue;
    check->unchecked_locs[check->num_unchecked] = item->loc;
    if (tl_spec_read_name(reader, item, &check->unchecked[check->num_unchecked])) check->num_unchecked++;
  }
}

static void read_case(tl_spec_reader *reader, const tl_yaml_node *node, tl_case *out) {
  out->loc = node->loc;
  out->overrides = TL_NEW_ARRAY(reader->arena, tl_named_expr, node->num_entries + 1);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "tolerance")) {
      read_tolerance_of(reader, entry->value, &out->rtol, &out->atol);
    } else if (tl_str_is(key, "inputs")) {
      read_inputs(reader, entry->value, &out->inputs, &out->num_inputs);
    } else if (tl_spec_is_later_setting(reader, entry->key)) {
      continue;
    } else {
      tl_named_expr override = {.loc = entry->key->loc};
      bool ok = tl_spec_read_name(reader, entry->key, &override.name);
      override.value = tl_spec_read_expr(reader, entry->value, key);
      if (ok && override.value) out->overrides[out->num_overrides++] = override;
    }
  }
}

static void read_cases(tl_spec_reader *reader, const tl_yaml_node *node, tl_case **out_cases, uint32_t *out_len) {
  if (!tl_spec_want(reader, node, TL_YAML_SEQUENCE, TL_STR("cases"))) return;
  *out_cases = TL_NEW_ARRAY(reader->arena, tl_case, node->num_items + 1);
  for (uint32_t i = 0; i < node->num_items; i++) {
    const tl_yaml_node *item = node->items[i];
    if (item->bad) continue;
    if (item->kind != TL_YAML_MAPPING) {
      tl_diag *diag =
          tl_diag_report(reader->diags, TL_DIAG_CHECK_CASE, item->loc, "a case is a mapping from params to values");
      tl_diag_add_hint(reader->diags, diag, "write `{M: 256, N: 128}`");
      continue;
    }
    read_case(reader, item, &(*out_cases)[(*out_len)++]);
  }
}

void tl_spec_read_check(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_check *out) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("check"))) return;
  out->present = true;
  out->loc = key_loc;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (!tl_spec_validate_key(reader, TL_SCHEMA_CHECK, entry->key, "`check`")) continue;
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "inputs")) read_inputs(reader, entry->value, &out->inputs, &out->num_inputs);
    if (tl_str_is(key, "derive")) read_reference(reader, entry->value, key, &out->derive, &out->num_derive);
    if (tl_str_is(key, "reference")) read_reference(reader, entry->value, key, &out->reference, &out->num_reference);
    if (tl_str_is(key, "tolerance")) read_tolerance(reader, entry->value, out);
    if (tl_str_is(key, "unchecked")) read_unchecked(reader, entry->value, out);
    if (tl_str_is(key, "cases")) read_cases(reader, entry->value, &out->cases, &out->num_cases);
  }
}

// Reports `name` unless it is an argument; with `written`, one that the kernel writes.
static void validate_name(tl_spec_reader *reader, const tl_kernel_spec *kernel, tl_str name, tl_loc loc, bool written,
                          const char *section) {
  const tl_arg *found = NULL;
  tl_str *candidates = TL_NEW_ARRAY(reader->arena, tl_str, kernel->num_args + 1);
  uint32_t num_candidates = 0;
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    const tl_arg *arg = &kernel->args[i];
    if (tl_str_equal(arg->name, name)) found = arg;
    if (!written || arg->access != TL_ARG_IN) candidates[num_candidates++] = arg->name;
  }
  if (found && (!written || found->access != TL_ARG_IN)) return;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHECK_NAME, loc, "`%s` names `%.*s`, which is %s", section,
                                 tl_expr_shown(name), name.data, found ? "an input" : "no argument");
  size_t near = tl_suggest_index(name, candidates, num_candidates);
  if (near != SIZE_MAX) tl_diag_add_hint(reader->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(candidates[near]));
}

void tl_spec_validate_names(tl_spec_reader *reader, const tl_kernel_spec *kernel) {
  const tl_check *check = &kernel->check;
  for (uint32_t i = 0; i < check->num_inputs; i++)
    validate_name(reader, kernel, check->inputs[i].name, check->inputs[i].loc, false, "inputs");
  for (uint32_t i = 0; i < check->num_unchecked; i++)
    validate_name(reader, kernel, check->unchecked[i], check->unchecked_locs[i], true, "unchecked");
  for (uint32_t i = 0; i < check->num_tolerances; i++)
    if (check->tolerances[i].output.len)
      validate_name(reader, kernel, check->tolerances[i].output, check->tolerances[i].loc, true, "per");
  for (uint32_t i = 0; i < check->num_cases; i++)
    for (uint32_t k = 0; k < check->cases[i].num_inputs; k++)
      validate_name(reader, kernel, check->cases[i].inputs[k].name, check->cases[i].inputs[k].loc, false, "inputs");
}

void tl_spec_read_bench(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_bench *out) {
  if (!tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("bench"))) return;
  out->present = true;
  out->loc = key_loc;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (!tl_spec_validate_key(reader, TL_SCHEMA_BENCH, entry->key, "`bench`")) continue;
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "flops")) out->flops = tl_spec_read_expr(reader, entry->value, key);
    if (tl_str_is(key, "bytes")) out->bytes = tl_spec_read_expr(reader, entry->value, key);
    if (tl_str_is(key, "cases")) read_cases(reader, entry->value, &out->cases, &out->num_cases);
  }
}
