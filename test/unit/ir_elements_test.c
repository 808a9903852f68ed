// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of a parallel that may meet: known cases, and soundness on random subscripts that are tried out.
#include <check.h>
#include <stdlib.h>

#include "ir/index/elements.h"
#include "ir/text/text.h"

enum { ROWS = 4, COLUMNS = 6 };

// Whether elements of a parallel over ROWS × COLUMNS with this body may meet in memory.
static bool may_meet(const char *body) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text,
                    "module tile\nkernel {name = \"k\", threads = 128} do {\n"
                    "  %%s = alloc {name = \"s\"} : buffer<shared f32 64x64>\n"
                    "  %%l = alloc {name = \"l\"} : buffer<shared f32 4096>\n"
                    "  %%v = view buffer(%%s) : buffer<shared f32 4096>\n"
                    "  %%x = const {value = 1.0} : f32\n  %%c0 = const {value = 0} : index\n"
                    "  %%c1 = const {value = 1} : index\n  %%c3 = const {value = 3} : index\n"
                    "  %%c6 = const {value = 6} : index\n  %%c8 = const {value = 8} : index\n"
                    "  %%r = scalar_arg {name = \"r\", arg = 0} : i32\n"
                    "  parallel {extents = [%d, %d]} do(%%i: index, %%j: index) {\n%s  }\n}\n",
                    ROWS, COLUMNS, body);
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_module *module =
      tl_module_parse(&sources, tl_sources_add(&sources, "test.tir", tl_str_from(tl_strbuf_c(&text))), &diags);
  tl_strbuf errors;
  tl_strbuf_init(&errors);
  tl_diags_print_text(&diags, &errors, false);
  ck_assert_msg(module != NULL, "%s", tl_strbuf_c(&errors));
  bool result = tl_has_meeting_elements(tl_module_kernel(module));
  tl_module_destroy(module);
  tl_strbuf_fini(&errors);
  tl_strbuf_fini(&text);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return result;
}

static const struct {
  const char *body;
  bool meets;
} cases[] = {
    {"    store value(%x) buffer(%s) index(%i, %j)\n", false},
    {"    store value(%x) buffer(%s) index(%j, %i)\n", false},
    {"    store value(%x) buffer(%s) index(%i, %c0)\n", true},
    {"    store value(%x) buffer(%s) index(%c0, %c0)\n", true},
    // Reading alone never meets; reading what is stored, elsewhere or at the same place.
    {"    %a = load buffer(%s) index(%c0, %c0) : f32\n    store value(%a) buffer(%l) index(%j)\n", true},
    {"    %a = load buffer(%s) index(%c0, %c0) : f32\n", false},
    {"    %a = load buffer(%s) index(%i, %j) : f32\n    store value(%a) buffer(%s) index(%i, %j)\n", false},
    {"    %k = add %j, %c1 : index\n    %a = load buffer(%s) index(%i, %k) : f32\n"
     "    store value(%a) buffer(%s) index(%i, %j)\n",
     true},
    // Row-major digits: 6 * i + j with j < 6, not 3 * i + j; downwards and moved by what the block knows.
    {"    %k = mul %i, %c6 : index\n    %m = add %k, %j : index\n    store value(%x) buffer(%l) index(%m)\n", false},
    {"    %k = mul %i, %c3 : index\n    %m = add %k, %j : index\n    store value(%x) buffer(%l) index(%m)\n", true},
    {"    %k = mul %i, %c8 : index\n    %m = sub %k, %j : index\n    %p = cast %r : index\n    %n = add %m, %p : "
     "index\n"
     "    store value(%x) buffer(%l) index(%n)\n",
     false},
    {"    %m = add %i, %j : index\n    store value(%x) buffer(%l) index(%m)\n", true},
    // The same sum in one dim helps nobody; both of two dims do.
    {"    %m = add %i, %j : index\n    store value(%x) buffer(%s) index(%m, %j)\n", false},
    // A view is the same memory.
    {"    %a = load buffer(%v) index(%j) : f32\n    store value(%a) buffer(%s) index(%i, %j)\n", true},
    // Atomics may meet, not with a load.
    {"    atomic value(%x) buffer(%s) index(%i, %c0) {kind = add}\n", false},
    {"    %a = load buffer(%s) index(%i, %j) : f32\n    atomic value(%a) buffer(%s) index(%i, %c0) {kind = add}\n",
     true},
    // Loops of the body: k is a digit like the others.
    {"    for lower(%c0) upper(%c3) step(%c1) do(%k: index) {\n      %m = mul %j, %c3 : index\n"
     "      %n = add %m, %k : index\n      store value(%x) buffer(%s) index(%i, %n)\n    }\n",
     false},
    {"    for lower(%c0) upper(%c6) step(%c1) do(%k: index) {\n      %m = mul %j, %c3 : index\n"
     "      %n = add %m, %k : index\n      store value(%x) buffer(%s) index(%i, %n)\n    }\n",
     true},
};

START_TEST(known_cases) {
  ck_assert_msg(may_meet(cases[_i].body) == cases[_i].meets, "%s: %s", cases[_i].body,
                cases[_i].meets ? "may meet" : "apart");
}
END_TEST

// A store at (a i + b j + c, d i + e j + f) and a load at the same place plus a distance.
START_TEST(random_subscripts_are_sound) {
  int apart = 0;
  srand(1);
  for (int round = 0; round < 3000; round++) {
    int c[6], distance[2] = {rand() % 4 ? 0 : rand() % 3 - 1, rand() % 4 ? 0 : rand() % 3 - 1};
    for (int k = 0; k < 6; k++) c[k] = rand() % 3 ? rand() % 8 - (k % 3 == 2 ? 0 : 1) : 0;
    tl_strbuf body;
    tl_strbuf_init(&body);
    for (int d = 0; d < 2; d++)
      tl_strbuf_appendf(&body,
                        "    %%a%d = const {value = %d} : index\n    %%b%d = const {value = %d} : index\n"
                        "    %%k%d = const {value = %d} : index\n    %%o%d = const {value = %d} : index\n"
                        "    %%m%d = mul %%i, %%a%d : index\n    %%n%d = mul %%j, %%b%d : index\n"
                        "    %%p%d = add %%m%d, %%n%d : index\n    %%q%d = add %%p%d, %%k%d : index\n"
                        "    %%t%d = add %%q%d, %%o%d : index\n",
                        d, c[3 * d], d, c[3 * d + 1], d, c[3 * d + 2], d, distance[d], d, d, d, d, d, d, d, d, d, d, d,
                        d, d);
    tl_strbuf_append_c(&body,
                       "    %e = load buffer(%s) index(%t0, %t1) : f32\n"
                       "    store value(%e) buffer(%s) index(%q0, %q1)\n");
    bool claimed = may_meet(tl_strbuf_c(&body)), met = false;
    for (int e = 0; e < ROWS * COLUMNS && !claimed; e++)
      for (int f = 0; f < ROWS * COLUMNS && !met; f++)
        for (int load = 0; load < 2 && e != f; load++) {
          bool same = true;
          for (int d = 0; d < 2; d++)
            same = same && c[3 * d] * (e / COLUMNS - f / COLUMNS) + c[3 * d + 1] * (e % COLUMNS - f % COLUMNS) ==
                               (load ? distance[d] : 0);
          met = met || same;
        }
    ck_assert_msg(!met, "said to be apart: %s", tl_strbuf_c(&body));
    apart += !claimed;
    tl_strbuf_fini(&body);
  }
  ck_assert_int_gt(apart, 100);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_elements");
  TCase *tests = tcase_create("elements");
  tcase_add_loop_test(tests, known_cases, 0, (int)(sizeof cases / sizeof *cases));
  tcase_add_test(tests, random_subscripts_are_sound);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
