// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arenas, text, maps, sources and status values.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/diag.h"
#include "support/intern.h"
#include "support/source.h"
#include "support/strbuf.h"
#include "support/vec.h"

START_TEST(arena_release_returns_to_the_mark) {
  static const char zeros[1000];
  tl_arena arena;
  tl_arena_init(&arena);
  char *kept = tl_arena_printf(&arena, "kept %d", 1);
  tl_arena_marker mark = tl_arena_mark(&arena);
  for (int i = 0; i < 1000; i++) {
    char *block = tl_arena_alloc(&arena, 1000, 64);
    ck_assert_uint_eq((uintptr_t)block % 64, 0);
    ck_assert_int_eq(memcmp(block, zeros, sizeof zeros), 0);
    memset(block, 0xee, 1000);
  }
  tl_arena_release(&arena, mark);
  ck_assert_uint_eq(arena.used_bytes, mark.used_bytes);
  ck_assert_str_eq(kept, "kept 1");
  char *again = tl_arena_alloc(&arena, 100, 8);
  ck_assert_int_eq(memcmp(again, zeros, 100), 0);
  tl_arena_fini(&arena);
}
END_TEST

START_TEST(arena_serves_what_is_larger_than_a_chunk) {
  tl_arena arena;
  tl_arena_init(&arena);
  char *large = tl_arena_alloc(&arena, 5 << 20, 16);
  large[(5 << 20) - 1] = 1;
  tl_arena_fini(&arena);
}
END_TEST

START_TEST(edit_distance) {
  static const struct {
    const char *a, *b;
    size_t distance;
  } cases[] = {{"", "", 0},       {"gemm", "gem", 1}, {"copy", "cpoy", 1}, {"paralel", "parallel", 1},
               {"abc", "xyz", 3}, {"", "ab", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ck_assert_uint_eq(tl_str_distance(tl_str_from(cases[i].a), tl_str_from(cases[i].b)), cases[i].distance);
    ck_assert_uint_eq(tl_str_distance(tl_str_from(cases[i].b), tl_str_from(cases[i].a)), cases[i].distance);
  }
}
END_TEST

START_TEST(doubles_print_shortest_and_read_back) {
  static const struct {
    double value;
    const char *text;
  } cases[] = {{0.1, "0.1"},      {1, "1.0"},          {-0.0, "-0.0"},   {1e-6, "1e-06"},
               {INFINITY, "inf"}, {-INFINITY, "-inf"}, {1e300, "1e+300"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tl_strbuf out = {0};
    tl_strbuf_append_double(&out, cases[i].value);
    ck_assert_str_eq(tl_strbuf_c(&out), cases[i].text);
    ck_assert(strtod(out.data, NULL) == cases[i].value);
    tl_strbuf_fini(&out);
  }
}
END_TEST

START_TEST(markup_is_text_of_xml) {
  tl_strbuf out = {0};
  tl_strbuf_append_markup(&out, TL_STR("<a b=\"c\">&\t\n\x01 é \xff\xc3 \xef\xbf\xbf\xef\xbf\xbd 🙂"));
  ck_assert_str_eq(tl_strbuf_c(&out),
                   "&lt;a b=&quot;c&quot;&gt;&amp;\t\n\xef\xbf\xbd é \xef\xbf\xbd\xef\xbf\xbd "
                   "\xef\xbf\xbd\xef\xbf\xbd 🙂");
  tl_strbuf_fini(&out);
}
END_TEST

START_TEST(json_text_is_escaped) {
  tl_strbuf out = {0};
  tl_strbuf_append_json(&out, TL_STR("a\"b\\\n\x01 é \xff\xc3"));
  ck_assert_str_eq(tl_strbuf_c(&out), "\"a\\\"b\\\\\\n\\u0001 é \\ufffd\\ufffd\"");
  tl_strbuf_fini(&out);
}
END_TEST

START_TEST(map_keeps_insertion_order) {
  tl_arena arena;
  tl_arena_init(&arena);
  tl_strmap map;
  tl_strmap_init(&map, &arena);
  int values[500];
  for (int i = 0; i < 500; i++)
    tl_strmap_put(&map, tl_str_from(tl_arena_printf(&arena, "key%d", i * 7 % 500)), &values[i]);
  ck_assert_uint_eq(map.len, 500);
  for (int i = 0; i < 500; i++) {
    char *key = tl_arena_printf(&arena, "key%d", i * 7 % 500);
    ck_assert_ptr_eq(tl_strmap_get(&map, tl_str_from(key)), &values[i]);
    ck_assert(tl_str_is(map.entries[i].key, key));
  }
  ck_assert_ptr_null(tl_strmap_find(&map, TL_STR("key")));
  tl_strmap_put(&map, TL_STR("key0"), NULL);
  ck_assert_uint_eq(map.len, 500);
  ck_assert_ptr_eq(tl_strmap_intern(&map, TL_STR("x")), tl_strmap_intern(&map, TL_STR("x")));
  tl_strmap_fini(&map);
  tl_arena_fini(&arena);
}
END_TEST

START_TEST(positions_count_characters) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t index = tl_sources_add(&sources, "a.yaml", TL_STR("\xef\xbb\xbfk: é x\r\nline two\n"));
  const tl_source *source = tl_sources_get(&sources, index);
  tl_line_column at = tl_source_position(source, 3);
  ck_assert_uint_eq(at.line, 1);
  ck_assert_uint_eq(at.column, 1);
  at = tl_source_position(source, 9);  // the x: é has two bytes
  ck_assert_uint_eq(at.column, 6);
  ck_assert(tl_str_is(tl_source_line(source, 2), "line two"));
  ck_assert(!tl_str_ends_with(tl_source_line(source, 1), "\r"));
  at = tl_source_position(source, 4000);
  ck_assert_uint_eq(at.line, 3);
  ck_assert_ptr_null(tl_sources_get(&sources, 0));
  ck_assert_ptr_null(tl_sources_get(&sources, 2));
  tl_sources_fini(&sources);
}
END_TEST

START_TEST(places_in_expansions_say_where_they_come_from) {
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  uint32_t file = tl_sources_add(&sources, "file.yaml", TL_STR("outer\ninner\n"));
  uint32_t library = tl_sources_add(&sources, "library.yaml", TL_STR("body\n"));
  tl_sources_set_used_at(&sources, library, (tl_loc){file, 0, 5});
  uint32_t outer = tl_sources_add_expansion(&sources, file, TL_STR("outer"), (tl_loc){file, 6, 5});
  uint32_t inner = tl_sources_add_expansion(&sources, library, TL_STR("inner"), (tl_loc){outer, 0, 5});
  ck_assert_str_eq(tl_sources_get(&sources, inner)->name, "library.yaml");
  tl_diag_report(&diags, TL_DIAG_NAME_UNKNOWN, (tl_loc){inner, 0, 4}, "first");
  tl_diag_report(&diags, TL_DIAG_NAME_UNKNOWN, (tl_loc){library, 0, 4}, "second");
  tl_diag_report(&diags, TL_DIAG_NAME_UNKNOWN, (tl_loc){file, 0, 4}, "third");
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(&diags, &text, false);
  ck_assert_str_eq(tl_strbuf_c(&text),
                   "library.yaml:1:1: error: first [TL0250]\n  body\n  ^~~~\n"
                   "file.yaml:1:1: note: `inner` is expanded from here\n  outer\n  ^~~~~\n"
                   "file.yaml:2:1: note: `outer` is expanded from here\n  inner\n  ^~~~~\n"
                   "library.yaml:1:1: error: second [TL0250]\n  body\n  ^~~~\n"
                   "file.yaml:1:1: note: included from here\n  outer\n  ^~~~~\n"
                   "file.yaml:1:1: error: third [TL0250]\n  outer\n  ^~~~\n");
  tl_strbuf_fini(&text);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}
END_TEST

START_TEST(unreadable_files_are_told_apart) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t index = 0;
  tl_status status = tl_sources_read(&sources, "does/not/exist.yaml", 1 << 20, &index);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_NOT_FOUND);
  tl_status_free(status);
  status = tl_sources_read(&sources, "CMakeLists.txt", 10, &index);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_LIMIT);
  tl_status_free(status);
  status = tl_sources_read(&sources, "support", 1 << 20, &index);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_IO);
  tl_status_free(status);
  ck_assert_uint_eq(sources.count, 0);
  tl_sources_fini(&sources);
}
END_TEST

START_TEST(status_messages_grow_outwards) {
  tl_status status = tl_status_annotate(tl_status_make(TL_STATUS_IO, "disk %d", 3), "writing %s", "x");
  ck_assert_str_eq(tl_status_message(status), "writing x: disk 3");
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_IO);
  ck_assert_ptr_null(tl_status_annotate(TL_OK, "unused"));
  status = tl_status_join(status, tl_status_make(TL_STATUS_LIMIT, "second"));
  ck_assert_str_eq(tl_status_message(status), "writing x: disk 3");
  tl_status_free(status);
  ck_assert_str_eq(tl_status_message(TL_OK), "");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("support");
  TCase *cases = tcase_create("core");
  tcase_add_test(cases, arena_release_returns_to_the_mark);
  tcase_add_test(cases, arena_serves_what_is_larger_than_a_chunk);
  tcase_add_test(cases, edit_distance);
  tcase_add_test(cases, doubles_print_shortest_and_read_back);
  tcase_add_test(cases, json_text_is_escaped);
  tcase_add_test(cases, markup_is_text_of_xml);
  tcase_add_test(cases, map_keeps_insertion_order);
  tcase_add_test(cases, positions_count_characters);
  tcase_add_test(cases, places_in_expansions_say_where_they_come_from);
  tcase_add_test(cases, unreadable_files_are_told_apart);
  tcase_add_test(cases, status_messages_grow_outwards);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
