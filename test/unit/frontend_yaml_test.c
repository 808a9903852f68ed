// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The YAML reader: byte maps of every scalar style, refused features, traps, limits.
#include "frontend/yaml/yaml_tree.h"
#include "frontend_test_util.h"

typedef struct yaml_fixture {
  fixture fix;
  tl_yaml_tree tree;
} yaml_fixture;

static void yaml_init(yaml_fixture *yaml, tl_str text) {
  fixture_init(&yaml->fix, text);
  tl_yaml_parse(&yaml->fix.arena, &yaml->fix.diags, &yaml->fix.sources, yaml->fix.source, &yaml->tree);
}

static const tl_yaml_node *root(const yaml_fixture *yaml) {
  ck_assert_uint_ge(yaml->tree.num_documents, 1);
  return yaml->tree.documents[0];
}

// The line:column that byte `at` of the value under `key` maps to.
static tl_line_column place_of(const yaml_fixture *yaml, const char *key, const char *needle) {
  const tl_yaml_node *node = tl_yaml_get(root(yaml), key);
  ck_assert_ptr_nonnull(node);
  const char *found = memmem(node->text.text.data, node->text.text.len, needle, strlen(needle));
  ck_assert_msg(found != NULL, "`%s` is not in `%.*s`", needle, TL_STR_ARG(node->text.text));
  uint32_t offset = node->text.map.offsets[found - node->text.text.data];
  return tl_source_position(tl_sources_get(&yaml->fix.sources, yaml->fix.source), offset);
}

typedef struct map_case {
  const char *yaml;
  const char *value;   // of the key `v`
  const char *needle;  // stands at line:column of the file
  uint32_t line, column;
} map_case;

static const map_case map_cases[] = {
    {"v: a + b\n", "a + b", "b", 1, 8},
    {"v:   a\n", "a", "a", 1, 6},
    {"w: 1\nv: a +\n   b *\n     c\n", "a + b * c", "c", 4, 6},
    {"v: a +\n\n\n   b\n", "a +\n\nb", "b", 4, 4},
    {"v: 'it''s b'\n", "it's b", "b", 1, 11},
    {"v: 'a\n    b\n    c'\n", "a b c", "c", 3, 5},
    {"v: \"a\\tb\\u00e9c\"\n",
     "a\tb\xC3\xA9"
     "c",
     "c", 1, 15},
    {"v: \"a \\\n    b\"\n", "a b", "b", 2, 5},
    {"v: \"a\n\n    b\"\n", "a\nb", "b", 3, 5},
    {"v: |\n  a\n   b\n  c\n", "a\n b\nc\n", "b", 3, 4},
    {"v: >\n  a +\n  b\n", "a + b\n", "b", 3, 3},
    {"v: >-  # note\n  a\n\n  b\n", "a\nb", "b", 4, 3},
    {"\xEF\xBB\xBFv: a b\r\n", "a b", "b", 1, 6},
    {"# \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\nv: \xC3\xA9 b\n", "\xC3\xA9 b", "b", 2, 6},
    {"v: a\r\n  b\r\n  c\r\n", "a b c", "c", 3, 3},
    {"{v: a b}\n", "a b", "b", 1, 7},
};

START_TEST(every_byte_maps_to_its_place) {
  const map_case *c = &map_cases[_i];
  yaml_fixture yaml;
  yaml_init(&yaml, tl_str_from(c->yaml));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  const tl_yaml_node *node = tl_yaml_get(root(&yaml), "v");
  ck_assert_ptr_nonnull(node);
  ck_assert_msg(tl_str_is(node->text.text, c->value), "got `%.*s`", TL_STR_ARG(node->text.text));
  tl_line_column at = place_of(&yaml, "v", c->needle);
  ck_assert_msg(at.line == c->line && at.column == c->column, "`%s`: expected %u:%u, got %u:%u", c->yaml, c->line,
                c->column, at.line, at.column);
  for (size_t i = 1; i <= node->text.text.len; i++)
    ck_assert_uint_ge(node->text.map.offsets[i], node->text.map.offsets[i - 1]);
  fixture_fini(&yaml.fix);
}
END_TEST

typedef struct bad_yaml {
  const char *yaml;
  const char *code;
  uint32_t line, column;
  const char *message;
  const char *hint;  // or NULL
} bad_yaml;

static const bad_yaml bad_yamls[] = {
    {"a: &x 1\n", "TL0103", 1, 4, "anchors (`&x`)", NULL},
    {"a: *x\n", "TL0103", 1, 4, "aliases (`*x`)", NULL},
    {"a: !!int 3\n", "TL0103", 1, 4, "tags", NULL},
    {"<<: {a: 1}\n", "TL0103", 1, 1, "merge keys", NULL},
    {"a: 1\n<<: *base\n", "TL0103", 2, 1, "merge keys", NULL},
    {"[a]: 1\n", "TL0103", 1, 1, "a key must be plain text", NULL},
    {"? a: b\n: 1\n", "TL0103", 1, 3, "a key must be plain text", NULL},
    {"%YAML 1.1\n---\na: 1\n", "TL0103", 1, 1, "directives", NULL},
    {"a: 1\nb: 2\na: 3\n", "TL0104", 3, 1, "`a` stands twice", NULL},
    {"body:\n  - clear: a\n    clear: b\n", "TL0104", 3, 5, "`clear` stands twice", "its own list item"},
    {"body:\n  copy: a\n  copy: b\n", "TL0104", 3, 3, "`copy` stands twice", "its own list item"},
    {"a:\n\tb: 1\n", "TL0105", 2, 1, "a tab is used for indentation", "spaces"},
    {"a:\n  b: 1\n\tc: 1\n", "TL0105", 3, 1, "a tab is used for indentation", "spaces"},
    {"a:\n  - b: 1\n  \t c: 1\n", "TL0105", 3, 3, "a tab is used for indentation", "spaces"},
    {"c: {X: normal(0, 1)}\n", "TL0106", 1, 8, "flow style cannot hold commas or brackets: use block style", NULL},
    {"c: [min(M, N) > 1]\n", "TL0106", 1, 5, "flow style cannot hold commas or brackets: use block style", NULL},
    {"c: {type: f16[a, b]}\n", "TL0106", 1, 11, "flow style cannot hold commas or brackets: use block style", NULL},
    {"c: {M:256}\n", "TL0107", 1, 5, "put a space after the colon", "`M: 256`"},
    {"c: {K: 1, M:256}\n", "TL0107", 1, 11, "put a space after the colon", "`M: 256`"},
    {"copy: X[a: b]\n", "TL0107", 1, 10, "a slice has no space after its colon", "`lo:hi`"},
    {"docs: this: that\n", "TL0107", 1, 11, "takes the text before this `: ` for a key", "quotes"},
    {"a: \xFF\n", "TL0108", 1, 4, "0xFF is not valid UTF-8", NULL},
    {"a: \xC0\x80\n", "TL0108", 1, 4, "not valid UTF-8", NULL},
    {"a: \x01\n", "TL0108", 1, 4, "control character U+0001", NULL},
    {"a: [1, 2\n", "TL0101", 2, 1, "malformed YAML", "closing bracket"},
    {"a: 'x\n", "TL0101", 2, 1, "malformed YAML", "closing quote"},
    {"a: 1\n  b: 2\n", "TL0107", 2, 4, "takes the text before", NULL},
    {"a:\n    b: 1\n  c: 2\n", "TL0101", 3, 3, "malformed YAML", "indentation"},
    {"a: @b\n", "TL0101", 1, 4, "malformed YAML", NULL},
};

START_TEST(what_is_refused_is_named) {
  const bad_yaml *bad = &bad_yamls[_i];
  yaml_fixture yaml;
  yaml_init(&yaml, tl_str_from(bad->yaml));
  assert_diag(&yaml.fix, 0, bad->code, bad->line, bad->column, bad->message);
  if (bad->hint) ck_assert_msg(has_hint(&yaml.fix, 0, bad->hint), "`%s` lacks the hint `%s`", bad->yaml, bad->hint);
  ck_assert_msg(yaml.fix.diags.list.len == 1, "`%s` gives %zu diagnostics", bad->yaml, yaml.fix.diags.list.len);
  fixture_fini(&yaml.fix);
}
END_TEST

START_TEST(several_mistakes_are_reported_together) {
  yaml_fixture yaml;
  yaml_init(&yaml, TL_STR("a: &x 1\nb: {M:1}\na: 2\nc: [f(1, 2)]\nd: 5\n"));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 4);
  ck_assert_ptr_nonnull(tl_yaml_get(root(&yaml), "d"));
  ck_assert(tl_yaml_get(root(&yaml), "b")->bad);
  fixture_fini(&yaml.fix);
}
END_TEST

START_TEST(good_files_are_read) {
  yaml_fixture yaml;
  yaml_init(
      &yaml,
      TL_STR("\xEF\xBB\xBF# caf\xC3\xA9\r\na: {M: 256, N: f(1)}\r\nb:\r\n- x\r\n- [1, 2]\r\n---\r\nc: \"{\"\r\n"));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  ck_assert_uint_eq(yaml.tree.num_documents, 2);
  const tl_yaml_node *b = tl_yaml_get(root(&yaml), "b");
  ck_assert_uint_eq(b->num_items, 2);
  ck_assert_int_eq(b->items[1]->kind, TL_YAML_SEQUENCE);
  ck_assert(b->items[1]->flow);
  ck_assert(tl_yaml_get(yaml.tree.documents[1], "c")->quoted);
  fixture_fini(&yaml.fix);
  yaml_init(&yaml, TL_STR(""));
  ck_assert_uint_eq(yaml.tree.num_documents, 0);
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  fixture_fini(&yaml.fix);
}
END_TEST

START_TEST(doc_is_free_text_to_the_end_of_its_line) {
  static const char *const texts[][2] = {
      {"doc: softmax: over rows: fast\na: 1\n", "softmax: over rows: fast"},
      {"doc: [N, K] weights, B: transposed  # comment\n", "[N, K] weights, B: transposed"},
      {"\xEF\xBB\xBF"
       "doc: *fast* \xC3\xA9: yes:\r\na: 1\r\n",
       "*fast* \xC3\xA9: yes:"},
      {"doc: - a\n", "- a"},
      {"doc: 'a: b'\n", "a: b"},
      {"doc: \"a: b\"\n", "a: b"},
      {"doc: |\n  doc: a: b\n", "doc: a: b\n"},
      {"doc: xxx x:x\n", "xxx x:x"},
  };
  yaml_fixture yaml;
  yaml_init(&yaml, tl_str_from(texts[_i][0]));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  const tl_yaml_node *doc = tl_yaml_get(root(&yaml), "doc");
  ck_assert_msg(tl_str_is(doc->text.text, texts[_i][1]), "got `%.*s`", TL_STR_ARG(doc->text.text));
  fixture_fini(&yaml.fix);
}
END_TEST

START_TEST(documents_before_a_syntax_error_are_kept) {
  yaml_fixture yaml;
  yaml_init(&yaml, TL_STR("a: 1\n---\nb: [\n"));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 1);
  ck_assert_uint_eq(yaml.tree.num_documents, 1);
  fixture_fini(&yaml.fix);
}
END_TEST

// A text made of `count` copies of `unit`, the number of the copy in place of %zu.
static char *many(const char *head, const char *unit, size_t count) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, head);
  const char *mark = strchr(unit, '#');
  for (size_t i = 0; i < count; i++) {
    if (!mark) {
      tl_strbuf_append_c(&text, unit);
      continue;
    }
    tl_strbuf_append(&text, (tl_str){unit, (size_t)(mark - unit)});
    tl_strbuf_appendf(&text, "%zu%s", i, mark + 1);
  }
  return tl_strbuf_take(&text);
}

typedef struct limit_case {
  const char *head, *unit;
  size_t count;
  const char *message;
} limit_case;

static const limit_case limit_cases[] = {
    {"", "[", 1000000, "64 levels"},
    {"", "{", 1000000, "64 levels"},
    {"", "- ", 500000, "64 levels"},
    {"a: ", "[", 65, "64 levels"},
    {"", "k#: 1\n", 200000, "100000 nodes"},
    {"d: 'x'\n", "k#: 1\n", 200000, "100000 nodes"},
    {"a: {", "k#: 1,", 200000, "100000 nodes"},
    {"a: [", "1,", 200000, "100000 nodes"},
    {"a:\n", "- b\n", 200000, "100000 nodes"},
    {"", "---\n", 200000, "100000 nodes"},
    {"a: ", "xxxxxxxx", 200000, "1048576"},
    {"a: |\n", "  xxxxxxxx\n", 200000, "1048576"},
    {"a: ", "xxxxxxxx", 3000000, "16777216"},
};

START_TEST(limits_stop_the_reading) {
  const limit_case *limit = &limit_cases[_i];
  char *text = many(limit->head, limit->unit, limit->count);
  yaml_fixture yaml;
  yaml_init(&yaml, tl_str_from(text));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 1);
  ck_assert_int_eq(yaml.fix.diags.list.items[0]->code, TL_DIAG_YAML_LIMIT);
  ck_assert_msg(strstr(yaml.fix.diags.list.items[0]->text, limit->message) != NULL, "got `%s`",
                yaml.fix.diags.list.items[0]->text);
  fixture_fini(&yaml.fix);
  free(text);
}
END_TEST

START_TEST(just_below_the_limits_is_fine) {
  char *nested = many("", "[", 64);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, nested);
  for (int i = 0; i < 64; i++) tl_strbuf_append_char(&text, ']');
  yaml_fixture yaml;
  yaml_init(&yaml, tl_strbuf_view(&text));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  fixture_fini(&yaml.fix);
  tl_strbuf_fini(&text);
  free(nested);
  char *keys = many("", "k#: 1\n", 49000);
  yaml_init(&yaml, tl_str_from(keys));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 0);
  ck_assert_uint_eq(root(&yaml)->num_entries, 49000);
  fixture_fini(&yaml.fix);
  free(keys);
  char *duplicate = many("k7: 0\n", "k#: 1\n", 40000);
  yaml_init(&yaml, tl_str_from(duplicate));
  ck_assert_uint_eq(yaml.fix.diags.list.len, 1);
  assert_diag(&yaml.fix, 0, "TL0104", 9, 1, "`k7` stands twice");
  fixture_fini(&yaml.fix);
  free(duplicate);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_yaml");
  TCase *tests = tcase_create("yaml");
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, every_byte_maps_to_its_place, 0, sizeof(map_cases) / sizeof(map_cases[0]));
  tcase_add_loop_test(tests, what_is_refused_is_named, 0, sizeof(bad_yamls) / sizeof(bad_yamls[0]));
  tcase_add_test(tests, several_mistakes_are_reported_together);
  tcase_add_test(tests, good_files_are_read);
  tcase_add_loop_test(tests, doc_is_free_text_to_the_end_of_its_line, 0, 8);
  tcase_add_test(tests, documents_before_a_syntax_error_are_kept);
  tcase_add_loop_test(tests, limits_stop_the_reading, 0, sizeof(limit_cases) / sizeof(limit_cases[0]));
  tcase_add_test(tests, just_below_the_limits_is_fine);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
