// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The launch file beside PTX of others: documents of YAML, each one launch (docs/ptx.md). It says what the command
// line's
// --grid, --block, … --arg and --in would, and what shall come out.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/spec/spec.h"
#include "frontend/yaml/yaml_tree.h"
#include "harness/data/compare.h"
#include "harness/data/generate.h"
#include "tools/tl_run.h"

__attribute__((format(printf, 3, 4))) static bool wrong(tl_run_tool *t, tl_loc loc, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_diag_report(&t->cli.diags, TL_DIAG_PTX_LAUNCH, loc, "%s", text);
  return false;
}

static bool is_scalar(tl_run_tool *t, const tl_yaml_node *node, const char *what) {
  if (node->kind == TL_YAML_SCALAR) return true;
  return node->bad ? false : wrong(t, node->loc, "%s is one value", what);
}

static bool is_mapping(tl_run_tool *t, const tl_yaml_node *node, const char *what) {
  if (node->kind == TL_YAML_MAPPING) return true;
  return node->bad ? false : wrong(t, node->loc, "%s is a mapping from names", what);
}

// A copy that ends with a zero.
static const char *copy_text(tl_run_tool *t, const tl_yaml_node *node) {
  return tl_arena_copy_bytes(&t->cli.arena, node->text.text.data, node->text.text.len);
}

static bool read_number(tl_run_tool *t, const tl_yaml_node *node, const char *what, long long most, long long *out) {
  char *end;
  if (!is_scalar(t, node, what)) return false;
  const char *text = copy_text(t, node);
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (end == text || *end || errno || *out < 0 || *out > most)
    return wrong(t, node->loc, "%s is a whole number of 0 to %lld, not '%.40s'", what, most, text);
  return true;
}

// One, two or three numbers.
static bool read_extent(tl_run_tool *t, const tl_yaml_node *node, const char *what, uint32_t out[3]) {
  long long number;
  bool is_list = node->kind == TL_YAML_SEQUENCE;
  if (is_list && (node->num_items < 1 || node->num_items > 3))
    return wrong(t, node->loc, "%s has one to three numbers", what);
  for (uint32_t i = 0; i < 3; i++) {
    out[i] = 1;
    if (i && (!is_list || i >= node->num_items)) continue;
    const tl_yaml_node *item = is_list ? node->items[i] : node;
    if (!read_number(t, item, what, INT32_MAX, &number)) return false;
    if (!number) return wrong(t, item->loc, "%s is at least 1", what);
    out[i] = (uint32_t)number;
  }
  return true;
}

// ---- arguments and values

// "i16 1 5", an array in a struct: fields that have the number of the element behind their name, "axis.h.1". False: it
// is one value, or a pointer.
static bool read_elements(tl_run_tool *t, tl_str name, const char *text, tl_loc loc, uint32_t param) {
  size_t type_len = strcspn(text, " ");
  tl_str type = {text, type_len};
  const char *at = text + type_len + strspn(text + type_len, " "), *next = at + strcspn(at, " ");
  bool is_array = *next && next[strspn(next, " ")] && tl_dtype_parse(type) != TL_DTYPE_NONE && *at != '[';
  for (uint32_t i = 0; is_array && *at; i++) {
    tl_strbuf full = {0}, kind = {0};
    size_t len = strcspn(at, " ");
    tl_strbuf_appendf(&full, "%.*s.%u", TL_STR_ARG(name), i);
    tl_strbuf_appendf(&kind, "%.*s %.*s", TL_STR_ARG(type), (int)len, at);
    tl_run_foreign_arg arg = {{{tl_arena_copy_bytes(&t->cli.arena, full.data, full.len), full.len},
                               tl_arena_copy_bytes(&t->cli.arena, kind.data, kind.len)},
                              loc,
                              .param = param,
                              .is_field = true};
    tl_vec_push(&t->foreign.args, arg);
    tl_strbuf_fini(&full);
    tl_strbuf_fini(&kind);
    at += len + strspn(at + len, " ");
  }
  return is_array;
}

static bool read_arg(tl_run_tool *t, tl_str name, const tl_yaml_node *value, uint32_t param, bool is_field) {
  if (!is_scalar(t, value, "an argument, 'in f32[1024]' or 'i32 5',")) return false;
  const char *text = copy_text(t, value);
  if (is_field && read_elements(t, name, text, value->loc, param)) return true;
  tl_vec_push(&t->foreign.args, (tl_run_foreign_arg){{name, text}, value->loc, .param = param, .is_field = is_field});
  return true;
}

// A mapping is a struct: its fields have their names behind its own, "axis.x".
static bool read_args(tl_run_tool *t, const tl_yaml_node *node) {
  if (!is_mapping(t, node, "args")) return false;
  bool ok = true;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_node *value = node->entries[i].value;
    tl_str name = node->entries[i].key->text.text;
    if (value->kind != TL_YAML_MAPPING) ok &= read_arg(t, name, value, i, false);
    if (value->kind == TL_YAML_MAPPING && !value->num_entries) ok = wrong(t, value->loc, "a struct has fields");
    for (uint32_t k = 0; value->kind == TL_YAML_MAPPING && k < value->num_entries; k++) {
      tl_strbuf full = {0};
      tl_strbuf_appendf(&full, "%.*s.%.*s", TL_STR_ARG(name), TL_STR_ARG(value->entries[k].key->text.text));
      tl_str copy = {tl_arena_copy_bytes(&t->cli.arena, full.data, full.len), full.len};
      tl_strbuf_fini(&full);
      ok &= read_arg(t, copy, value->entries[k].value, i, true);
    }
  }
  return ok;
}

static uint32_t count_values(const tl_yaml_node *node) {
  uint32_t count = 0;
  if (node->kind != TL_YAML_SEQUENCE) return 1;
  for (uint32_t i = 0; i < node->num_items; i++) count += count_values(node->items[i]);
  return count;
}

static bool append_values(tl_run_tool *t, const tl_yaml_node *node, tl_expr *list) {
  for (uint32_t i = 0; i < node->num_items; i++) {
    const tl_yaml_node *item = node->items[i];
    if (item->kind == TL_YAML_MAPPING) return wrong(t, item->loc, "a list has numbers and lists");
    if (item->kind == TL_YAML_SEQUENCE) {
      if (!append_values(t, item, list)) return false;
      continue;
    }
    tl_expr *value = tl_expr_parse(&t->cli.arena, &t->cli.diags, item->text);
    if (!value) return false;
    if (value->height >= list->height) list->height = value->height + 1;
    list->operands[list->num_operands++] = value;
  }
  return true;
}

// "[1, 2, 3]", of more dimensions "[[1, 2], [3, 4]]": all values, row by row.
static tl_expr *read_list(tl_run_tool *t, const tl_yaml_node *node) {
  tl_expr *list = TL_NEW(&t->cli.arena, tl_expr);
  *list = (tl_expr){.kind = TL_EXPR_CALL, .loc = node->loc, .text = TL_STR("list"), .height = 1};
  list->operands = TL_NEW_ARRAY(&t->cli.arena, tl_expr *, count_values(node) + 1);
  return append_values(t, node, list) ? list : NULL;
}

// A generator; a number stands for all elements, a path for its file.
static tl_expr *read_generator(tl_run_tool *t, const tl_yaml_node *node) {
  if (node->kind == TL_YAML_SEQUENCE) return read_list(t, node);
  if (!is_scalar(t, node, "a generator, a number, a list or a file.npy")) return NULL;
  if (tl_str_ends_with(node->text.text, ".npy")) {
    tl_expr *path = TL_NEW(&t->cli.arena, tl_expr);
    *path = (tl_expr){.kind = TL_EXPR_STRING, .loc = node->loc, .text = node->text.text, .height = 1};
    return path;
  }
  tl_expr *value = tl_expr_parse(&t->cli.arena, &t->cli.diags, node->text);
  return value ? tl_run_constant(t, value) : NULL;
}

static bool read_values(tl_run_tool *t, const tl_yaml_node *node, const char *what, tl_run_named_exprs *out) {
  if (!is_mapping(t, node, what)) return false;
  bool ok = true;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_node *key = node->entries[i].key;
    bool is_known = false;
    for (size_t a = 0; a < t->foreign.args.len; a++)
      is_known |= tl_str_equal(t->foreign.args.items[a].pair.name, key->text.text);
    if (!is_known) ok = wrong(t, key->loc, "%s: there is no argument '%.*s'", what, TL_STR_ARG(key->text.text));
    tl_named_expr named = {.name = key->text.text, .value = read_generator(t, node->entries[i].value)};
    ok &= named.value != NULL;
    if (named.value) tl_vec_push(out, named);
  }
  return ok;
}

static bool read_tolerance(tl_run_tool *t, const tl_yaml_node *node) {
  static const char *const keys[] = {"rtol", "atol"};
  if (!is_mapping(t, node, "tolerance")) return false;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_node *key = node->entries[i].key, *value = node->entries[i].value;
    int which = tl_str_is(key->text.text, keys[0]) ? 0 : tl_str_is(key->text.text, keys[1]) ? 1 : -1;
    if (which < 0) return wrong(t, key->loc, "tolerance has rtol and atol, not '%.*s'", TL_STR_ARG(key->text.text));
    if (!is_scalar(t, value, "a tolerance")) return false;
    char *end;
    double number = strtod(copy_text(t, value), &end);
    if (!value->text.text.len || *end || !(number >= 0))
      return wrong(t, value->loc, "a tolerance is a number that is not negative");
    t->foreign.tolerance[which] = number;
  }
  return true;
}

// ---- a document

static bool read_key(tl_run_tool *t, const tl_yaml_entry *entry) {
  tl_run_foreign_options *f = &t->foreign;
  tl_str key = entry->key->text.text;
  const tl_yaml_node *value = entry->value;
  if (tl_str_is(key, "kernel")) {
    if (!is_scalar(t, value, "kernel")) return false;
    t->cli.kernel_name = copy_text(t, value);
    return true;
  }
  if (tl_str_is(key, "grid")) return read_extent(t, value, "grid", f->grid);
  if (tl_str_is(key, "block")) return read_extent(t, value, "block", f->block);
  if (tl_str_is(key, "cluster")) return read_extent(t, value, "cluster", f->cluster);
  if (tl_str_is(key, "shared")) return read_number(t, value, "shared", 1 << 20, &f->shared);
  if (tl_str_is(key, "tolerance")) return read_tolerance(t, value);
  if (tl_str_is(key, "args") || tl_str_is(key, "inputs") || tl_str_is(key, "expected")) return true;  // below, in order
  return wrong(t, entry->key->loc,
               "there is no key '%.*s'; a launch has kernel, grid, block, shared, cluster, args, inputs, expected and "
               "tolerance",
               TL_STR_ARG(key));
}

static bool read_launch(tl_run_tool *t, const tl_yaml_node *node) {
  tl_run_foreign_reset(t);
  if (!is_mapping(t, node, "a launch")) return false;
  bool ok = !node->bad;
  for (uint32_t i = 0; i < node->num_entries; i++) ok &= read_key(t, &node->entries[i]);
  const tl_yaml_node *args = tl_yaml_get(node, "args"), *inputs = tl_yaml_get(node, "inputs"),
                     *expected = tl_yaml_get(node, "expected");
  if (!tl_yaml_get(node, "grid")) ok = wrong(t, node->loc, "a launch says its grid");
  if (args) ok &= read_args(t, args);
  if (inputs) ok &= read_values(t, inputs, "inputs", &t->inputs);
  if (expected) ok &= read_values(t, expected, "expected", &t->foreign.expected);
  return ok && !tl_diags_has_errors(&t->cli.diags);
}

// ---- what shall come out

static double *as_doubles(const tl_array *array) {
  double *values = tl_xcalloc(array->count + 1, sizeof *values);
  for (uint64_t i = 0; i < array->count; i++) values[i] = tl_array_number(array, i);
  return values;
}

static bool compare(const tl_run_tool *t, const tl_run_arg *arg, const tl_array *wanted) {
  tl_compare_result result;
  tl_strbuf text = {0};
  const double *tolerance = t->foreign.tolerance;
  if (tl_dtype_is_float(arg->array.dtype)) {
    double *values = as_doubles(wanted);
    tl_compare_float(&arg->array, values, tolerance[0], tolerance[1], &result);
    free(values);
  } else {
    int64_t *values = tl_xcalloc(wanted->count + 1, sizeof *values);
    for (uint64_t i = 0; i < wanted->count; i++) values[i] = tl_dtype_load_int(wanted->dtype, wanted->data, i);
    tl_compare_int(&arg->array, values, tolerance[0], tolerance[1], &result);
    free(values);
  }
  tl_compare_print(&result, arg->name, &arg->array, &text);
  printf("%s\n", tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return !result.num_failed;
}

tl_status tl_run_foreign_compare(tl_run_tool *t, const tl_run_args *args) {
  bool same = true;
  static const tl_env nothing;
  for (size_t i = 0; i < t->foreign.expected.len; i++) {
    const tl_named_expr *one = &t->foreign.expected.items[i];
    const tl_run_arg *arg = tl_run_args_find(args, one->name);
    if (!arg || arg->access == 0)
      return wrong(t, one->value->loc, "expected: '%.*s' is no output", TL_STR_ARG(one->name)),
             tl_status_make(TL_STATUS_DIAGNOSTICS, "the launch file has errors");
    tl_generate_request request = {.generator = one->value,
                                   .loc = one->value->loc,
                                   .env = &nothing,
                                   .directory = t->directory,
                                   .name = one->name,
                                   .dtype = arg->array.dtype,
                                   .rank = arg->array.rank};
    memcpy(request.shape, arg->array.shape, sizeof request.shape);
    tl_array wanted;
    TL_TRY(tl_generate(&request, &t->cli.diags, &wanted));
    same &= compare(t, arg, &wanted);
    tl_array_fini(&wanted);
  }
  return same ? TL_OK : tl_status_make(TL_STATUS_CHECK_FAILED, "an output is not what was expected");
}

// ---- the file

// "dir/k.yaml" of "dir/k.ptx", when it is there. Owned by the arena.
static const char *find_beside(tl_run_tool *t) {
  size_t len = strlen(t->cli.input) - strlen("ptx");
  char *path = tl_arena_alloc(&t->cli.arena, len + sizeof "yaml", 1);
  memcpy(path, t->cli.input, len);
  memcpy(path + len, "yaml", sizeof "yaml");
  return access(path, R_OK) == 0 ? path : NULL;
}

// What tl-llc wrote says in its head how it is launched.
static bool has_manifest(const tl_run_tool *t) {
  static const char head[] = "// {";
  char begin[sizeof head] = {0};
  FILE *file = fopen(t->cli.input, "rb");
  if (!file) return false;
  bool read = fread(begin, 1, sizeof head - 1, file) == sizeof head - 1;
  fclose(file);
  return read && !strcmp(begin, head);
}

const char *tl_run_launch_file(tl_run_tool *t) {
  if (t->foreign.launch_path) return t->foreign.launch_path;
  return t->foreign.args.len || t->foreign.grid[0] || has_manifest(t) ? NULL : find_beside(t);
}

static tl_status run_launch(tl_run_tool *t, const tl_yaml_node *node, const char *wanted, uint32_t *ran) {
  const tl_yaml_node *kernel = node->kind == TL_YAML_MAPPING ? tl_yaml_get(node, "kernel") : NULL;
  if (wanted && kernel && kernel->kind == TL_YAML_SCALAR && !tl_str_is(kernel->text.text, wanted)) return TL_OK;
  t->cli.kernel_name = wanted;
  ++*ran;
  if (!read_launch(t, node)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the launch file has errors");
  if (t->cli.kernel_name) printf("%s\n", t->cli.kernel_name);
  fflush(stdout);
  return tl_run_tool_ptx_launch(t);
}

tl_status tl_run_launches(tl_run_tool *t, const char *path) {
  uint32_t source = 0, ran = 0;
  tl_yaml_tree tree;
  const char *wanted = t->cli.kernel_name;
  if (t->foreign.args.len || t->foreign.grid[0] || t->foreign.block[0] || t->foreign.cluster[0] || t->foreign.shared)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "'%s' says how it is launched: --arg, --grid, --block, --cluster "
                          "and --shared go without a launch file",
                          path);
  TL_TRY(tl_spec_read(&t->cli.sources, path, &t->cli.diags, &source));
  tl_yaml_parse(&t->cli.arena, &t->cli.diags, &t->cli.sources, source, &tree);
  if (tl_diags_has_errors(&t->cli.diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the launch file has errors");
  const char *slash = strrchr(path, '/');
  free(t->directory);
  t->directory = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;
  tl_status status = TL_OK;
  for (uint32_t i = 0; i < tree.num_documents; i++) {
    size_t given = t->in.len;  // of the command line
    tl_status one = run_launch(t, tree.documents[i], wanted, &ran);
    t->in.len = given;
    // The first that failed ends the run with its status; a failed check is told, and the others run.
    if (one && status) fprintf(stderr, "%s: %s\n", t->cli.tool, tl_status_message(status));
    if (one) tl_status_free(status), status = one;
    if (tl_status_code_of(one) != TL_STATUS_OK && tl_status_code_of(one) != TL_STATUS_CHECK_FAILED) break;
  }
  if (!ran) return tl_status_make(TL_STATUS_NOT_FOUND, "%s: no launch of '%s'", path, wanted ? wanted : "a kernel");
  return status;
}
