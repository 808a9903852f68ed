// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Goldens: the list, facts, the table of changes, and differences that lead from one text to the other.
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/golden/golden.h"
#include "harness/golden/golden_text.h"
#include "support/status.h"

START_TEST(test_list) {
  tl_goldens goldens;
  tl_str text =
      TL_STR("# all\n\n  mm dir/a.yaml M=1  dtype=f16 targets=sm_80,sm_90a # end\nva b.yaml kernel=v targets=sm_80");
  ck_assert(!tl_goldens_parse("list", text, &goldens));
  ck_assert_uint_eq(goldens.len, 2);
  ck_assert(tl_str_is(goldens.items[0].name, "mm"));
  ck_assert(tl_str_is(goldens.items[0].spec, "dir/a.yaml"));
  ck_assert_uint_eq(goldens.items[0].bindings.len, 2);
  ck_assert(tl_str_is(goldens.items[0].bindings.items[1], "dtype=f16"));
  ck_assert(tl_str_is(goldens.items[0].targets, "sm_80,sm_90a"));
  ck_assert(tl_str_is(goldens.items[1].targets, "sm_80"));
  ck_assert_uint_eq(goldens.items[0].kernel.len, 0);
  ck_assert(tl_str_is(goldens.items[1].kernel, "v"));
  tl_goldens_fini(&goldens);
}
END_TEST

START_TEST(test_list_mistakes) {
  static const struct {
    const char *text, *wanted;
  } mistakes[] = {
      {"# one\nmm a.yaml\n", "dir/list.txt:2: expected NAME SPEC"},
      {"mm\n", "dir/list.txt:1: expected NAME SPEC"},
      {"mm M=1 targets=sm_80\n", "dir/list.txt:1: expected NAME SPEC"},
      {"\nmm a.yaml M=1 fast targets=sm_80\n", "dir/list.txt:2: `fast` is not PARAM=VALUE"},
      {"mm a.yaml =1 targets=sm_80\n", "dir/list.txt:1: `=1` is not PARAM=VALUE"},
      {"mm a.yaml targets=sm_80,sm_81\n", "dir/list.txt:1: unknown target `sm_81`"},
      {"mm a.yaml targets=sm_80,,sm_90a\n", "dir/list.txt:1: unknown target ``"},
      {"mm a.yaml targets=sm_80\n# x\nva b.yaml targets=sm_80\nmm b.yaml targets=sm_90a\n",
       "dir/list.txt:4: a second golden `mm`; the first is on line 1"},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    tl_goldens goldens;
    tl_status status = tl_goldens_parse("dir/list.txt", tl_str_from(mistakes[i].text), &goldens);
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(tl_status_message(status), mistakes[i].wanted) == tl_status_message(status), "%s",
                  tl_status_message(status));
    tl_status_free(status);
  }
}
END_TEST

START_TEST(test_instructions) {
  static const char ptx_text[] =
      "// ld.global.b32 in a comment; bar.sync 0;\n"
      "\t.reg .b32 %r<3>;\n"
      "$L__BB0_1:                // %bb.0; ret\n"
      "\tmov.b32 %r1, 0; @%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
      "\t{ cvt.f32.f16 %r1, %rs1; }\n"
      "\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
      "\t\t{%r1, %r2},\n"
      "\t\t{%r3, %r4};\n"
      "\t@!%p2 bra $L__BB0_1;\n";
  static const char *const wanted[] = {"mov.b32", "ld.global.v4.b32", "cvt.f32.f16",
                                       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "bra"};
  tl_str ptx = tl_str_from(ptx_text);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    tl_str instruction = tl_golden_next_instruction(&ptx);
    ck_assert_msg(tl_str_is(tl_golden_next_word(&instruction), wanted[i]), "instruction %zu is not %s", i, wanted[i]);
  }
  ck_assert_uint_eq(tl_golden_next_instruction(&ptx).len, 0);
}
END_TEST

START_TEST(test_explain) {
  tl_str old_ptx =
      TL_STR("ld.global.nc.v4.b32 a;\nst.shared.b8 a;\natom.global.add.u32 a;\nred.global.add.f32 a;\nmin.s32 a;\n");
  tl_str new_ptx = TL_STR(
      "ld.global.nc.v2.b32 a;\nld.global.v8.b32 b;\nst.shared.b16x2 a;\natom.global.add.noftz.f16x2 a;\nmin.s32 a;\n");
  tl_str old_facts =
      TL_STR("kernel k threads 128 static_shared 0 dynamic_shared 512\nptxas 13 registers 30 spill_stores 0\n");
  tl_str new_facts =
      TL_STR("kernel k threads 256 static_shared 0 dynamic_shared 512\nptxas 13 registers 28 spill_stores 8\n");
  tl_str other_facts =
      TL_STR("kernel k threads 128 static_shared 0 dynamic_shared 512\nptxas 14 registers 28 spill_stores 8\n");
  tl_strbuf out;
  tl_strbuf_init(&out);
  ck_assert(tl_golden_explain(old_ptx, old_facts, new_ptx, new_facts, &out));
  static const char *const labels[] = {"ld.global 8 B ", "ld.global 16 B ", "ld.global 32 B ",       "st.shared 1 B ",
                                       "st.shared 4 B ", "atomics ",        "spill stores (bytes) ", "threads "};
  for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
    ck_assert_msg(strstr(tl_strbuf_c(&out), labels[i]) != NULL, "no row '%s' in\n%s", labels[i], tl_strbuf_c(&out));
  ck_assert(strstr(tl_strbuf_c(&out), "  registers                      30 →       28        -2\n"));
  ck_assert(!strstr(tl_strbuf_c(&out), "dynamic") && !strstr(tl_strbuf_c(&out), "other"));
  tl_strbuf_clear(&out);
  // Figures of another ptxas are not compared.
  ck_assert(!tl_golden_explain(old_ptx, old_facts, old_ptx, other_facts, &out));
  ck_assert_uint_eq(out.len, 0);
  tl_golden_summarize(old_ptx, old_facts, new_ptx, new_facts, 2, &out);
  ck_assert_str_eq(tl_strbuf_c(&out), "ld.global 8 B 0 → 1, ld.global 16 B 1 → 0, 7 more");
  tl_strbuf_fini(&out);
}
END_TEST

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

static void make_text(uint64_t *state, uint32_t most, uint32_t kinds, tl_strbuf *out) {
  uint32_t len = next_random(state) % (most + 1);
  for (uint32_t i = 0; i < len; i++) tl_strbuf_appendf(out, "line %u\n", next_random(state) % kinds);
}

// Reads a number that follows `before` in a hunk's head.
static size_t number_in(tl_str line, char before) {
  size_t at = tl_str_find(line, before);
  ck_assert(at != SIZE_MAX);
  return strtoul(line.data + at + 1, NULL, 10);
}

// Applies a difference to `old_text`, as patch does.
static void apply(tl_str diff, tl_str old_text, tl_strbuf *out) {
  size_t line_number = 1;
  tl_golden_next_line(&diff);
  tl_golden_next_line(&diff);
  while (diff.len > 0) {
    tl_str line = tl_golden_next_line(&diff);
    tl_str rest = tl_str_sub(line, 1, line.len - 1);
    if (line.data[0] == '@') {
      size_t start = number_in(line, '-'), count = strtoul(strchr(line.data, ',') + 1, NULL, 10);
      for (start += count == 0; line_number < start; line_number++) {
        tl_str same = tl_golden_next_line(&old_text);
        tl_strbuf_appendf(out, "%.*s\n", TL_STR_ARG(same));
      }
      continue;
    }
    if (line.data[0] != '+') {
      ck_assert(tl_str_equal(tl_golden_next_line(&old_text), rest));
      line_number++;
    }
    if (line.data[0] != '-') tl_strbuf_appendf(out, "%.*s\n", TL_STR_ARG(rest));
  }
  tl_strbuf_append(out, old_text);
}

START_TEST(test_diff_random) {
  uint64_t state = 7;
  for (int round = 0; round < 600; round++) {
    tl_strbuf a, b, diff, made;
    tl_strbuf_init(&a);
    tl_strbuf_init(&b);
    tl_strbuf_init(&diff);
    tl_strbuf_init(&made);
    uint32_t kinds = round % 3 == 0 ? 2 : round % 3 == 1 ? 5 : 40;
    make_text(&state, 60, kinds, &a);
    if (round % 2) {
      tl_strbuf_append(&b, tl_strbuf_view(&a));
      make_text(&state, 4, kinds, &b);
    } else {
      make_text(&state, 60, kinds, &b);
    }
    tl_golden_diff(tl_strbuf_view(&a), tl_strbuf_view(&b), "x", 0, &diff);
    apply(tl_strbuf_view(&diff), tl_strbuf_view(&a), &made);
    ck_assert_str_eq(tl_strbuf_c(&made), tl_strbuf_c(&b));
    tl_strbuf_fini(&a);
    tl_strbuf_fini(&b);
    tl_strbuf_fini(&diff);
    tl_strbuf_fini(&made);
  }
}
END_TEST

START_TEST(test_diff_hunks) {
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_str a = TL_STR("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"), b = TL_STR("1\nx\n3\n4\n5\n6\n7\n8\n9\n10\n12\n");
  tl_golden_diff(a, b, "f", 0, &out);
  ck_assert_str_eq(tl_strbuf_c(&out),
                   "--- f (recorded)\n+++ f (now)\n@@ -1,5 +1,5 @@\n 1\n-2\n+x\n 3\n 4\n 5\n"
                   "@@ -8,5 +8,4 @@\n 8\n 9\n 10\n-11\n 12\n");
  tl_strbuf_clear(&out);
  tl_golden_diff(a, b, "f", 3, &out);
  ck_assert_str_eq(tl_strbuf_c(&out),
                   "--- f (recorded)\n+++ f (now)\n@@ -1,5 +1,5 @@\n 1\n-2\n… 10 more lines (--full shows them)\n");
  tl_strbuf_fini(&out);
}
END_TEST

// More edits than are searched: one text replaces the other, within bounded memory.
START_TEST(test_diff_large) {
  tl_strbuf a, b, diff, made;
  tl_strbuf_init(&a);
  tl_strbuf_init(&b);
  tl_strbuf_init(&diff);
  tl_strbuf_init(&made);
  for (int i = 0; i < 4000; i++) {
    tl_strbuf_appendf(&a, "a %d\n", i);
    tl_strbuf_appendf(&b, "b %d\n", i);
  }
  tl_golden_diff(tl_strbuf_view(&a), tl_strbuf_view(&b), "x", 0, &diff);
  apply(tl_strbuf_view(&diff), tl_strbuf_view(&a), &made);
  ck_assert_str_eq(tl_strbuf_c(&made), tl_strbuf_c(&b));
  tl_strbuf_fini(&a);
  tl_strbuf_fini(&b);
  tl_strbuf_fini(&diff);
  tl_strbuf_fini(&made);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("golden");
  TCase *tests = tcase_create("golden");
  tcase_add_test(tests, test_list);
  tcase_add_test(tests, test_list_mistakes);
  tcase_add_test(tests, test_instructions);
  tcase_add_test(tests, test_explain);
  tcase_add_test(tests, test_diff_random);
  tcase_add_test(tests, test_diff_hunks);
  tcase_add_test(tests, test_diff_large);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
