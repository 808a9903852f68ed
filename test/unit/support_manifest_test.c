// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/manifest.h"

static tl_arena arena;
static void setup(void) {
  tl_arena_init(&arena);
}
static void teardown(void) {
  tl_arena_fini(&arena);
}

static const tl_mexpr *parse(const char *text) {
  const tl_mexpr *expr = NULL;
  tl_status status = tl_mexpr_parse(&arena, tl_str_from(text), &expr);
  ck_assert_msg(!status, "%s: %s", text, tl_status_message(status));
  return expr;
}

static int64_t eval(const char *text) {
  const tl_mbinding bindings[] = {{"M", 100}, {"N", -7}, {"num_sms", 132}, {"big", INT64_MAX}};
  int64_t value = 0;
  tl_status status = tl_mexpr_eval(parse(text), bindings, 4, &value);
  ck_assert_msg(!status, "%s: %s", text, tl_status_message(status));
  return value;
}

START_TEST(evaluates) {
  static const struct {
    const char *text;
    int64_t value;
  } cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"-7 // 2", -4},
      {"-7 % 3", 2},
      {"N // 2", -4},
      {"7 % -3", -2},
      {"ceildiv(M, 32)", 4},
      {"ceildiv(N, 2)", -3},
      {"min(M, 3, 5) + max(1, N)", 4},
      {"1 < 2 < 3", 1},
      {"1 < 3 < 2", 0},
      {"not M % 10 == 0", 0},
      {"M > 1 and N < 0 or 1 // 0 > 1", 1},
      {"M < 1 and 1 // 0 > 1", 0},
      {"- - 3", 3},
      {"num_sms * 2 - 1 - 1", 262},
      {"9223372036854775807 - big", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) ck_assert_int_eq(eval(cases[i].text), cases[i].value);
}
END_TEST

START_TEST(prints_what_it_parses) {
  static const struct {
    const char *text, *printed;
  } cases[] = {
      {"1+2*3", "1 + 2 * 3"},
      {"(a-b)-(c-d)", "a - b - (c - d)"},
      {"(a // b) * c // (d * e)", "a // b * c // (d * e)"},
      {"-(a + b) % 3", "-(a + b) % 3"},
      {"min(a,b,c)", "min(min(a, b), c)"},
      {"not (a and b) or c", "not (a and b) or c"},
      {"(a < b) == c", "(a < b) == c"},
      {"a < b <= c", "a < b and b <= c"},
      {"a * -3", "a * -3"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_strbuf out, again;
    tl_strbuf_init(&out);
    tl_strbuf_init(&again);
    tl_mexpr_print(parse(cases[i].text), &out);
    ck_assert_str_eq(tl_strbuf_c(&out), cases[i].printed);
    tl_mexpr_print(parse(tl_strbuf_c(&out)), &again);
    ck_assert_str_eq(tl_strbuf_c(&again), tl_strbuf_c(&out));
    tl_strbuf_fini(&out);
    tl_strbuf_fini(&again);
  }
}
END_TEST

START_TEST(refuses_bad_expressions) {
  static const char *const cases[] = {
      "", "1 +", "(1", "foo(1, 2)", "min(1)", "ceildiv(1, 2, 3)", "a b", "9223372036854775808", "and"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const tl_mexpr *expr;
    tl_status status = tl_mexpr_parse(&arena, tl_str_from(cases[i]), &expr);
    ck_assert_msg(tl_status_code_of(status) == TL_STATUS_INVALID_ARGUMENT, "'%s' was accepted", cases[i]);
    ck_assert_ptr_null(expr);
    tl_status_free(status);
  }
  tl_strbuf deep;
  tl_strbuf_init(&deep);
  for (int i = 0; i < 100000; i++) tl_strbuf_append_char(&deep, '(');
  const tl_mexpr *expr;
  tl_status status = tl_mexpr_parse(&arena, tl_strbuf_view(&deep), &expr);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
  tl_status_free(status);
  tl_strbuf_fini(&deep);
}
END_TEST

START_TEST(reports_evaluation_errors) {
  static const char *const cases[] = {"x + 1",   "1 // 0",      "1 % (M - 100)",   "big + 1",
                                      "big * 2", "-(-big - 1)", "(-big - 1) // -1"};
  const tl_mbinding bindings[] = {{"M", 100}, {"big", INT64_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t value;
    tl_status status = tl_mexpr_eval(parse(cases[i]), bindings, 2, &value);
    ck_assert_msg(tl_status_code_of(status) == TL_STATUS_INVALID_ARGUMENT, "'%s' evaluated", cases[i]);
    tl_status_free(status);
  }
}
END_TEST

static tl_manifest sample(void) {
  static tl_manifest_param params[6];
  static tl_manifest_map map, pixels;
  static const tl_mexpr *dims[2], *strides[2];
  static tl_manifest_require require;
  static tl_manifest_kernel kernel;
  dims[0] = parse("M");
  dims[1] = tl_mexpr_int(&arena, 64);
  strides[0] = parse("64 * s0");
  strides[1] = tl_mexpr_int(&arena, 1);
  params[0] = (tl_manifest_param){.kind = TL_MPARAM_TENSOR,
                                  .name = "A",
                                  .dtype = TL_DTYPE_BF16,
                                  .access = 2,
                                  .rank = 2,
                                  .dims = dims,
                                  .strides = strides,
                                  .align = 16,
                                  .divisor = 1};
  params[1] = (tl_manifest_param){.kind = TL_MPARAM_SCALAR, .name = "alpha", .dtype = TL_DTYPE_F32, .divisor = 1};
  params[2] = (tl_manifest_param){.kind = TL_MPARAM_DYNAMIC, .name = "M", .dtype = TL_DTYPE_I64, .divisor = 8};
  params[3] = (tl_manifest_param){
      .kind = TL_MPARAM_WORKSPACE, .name = "ws", .divisor = 1, .bytes = parse("M * 4"), .zero_each_launch = true};
  map = (tl_manifest_map){.type = TL_TENSORMAP_BF16,
                          .rank = 2,
                          .dims = {tl_mexpr_int(&arena, 64), parse("M")},
                          .strides = {parse("64 * s0 * 2")},
                          .box = {32, 128},
                          .swizzle = TL_TENSORMAP_SWIZZLE_64B,
                          .l2 = TL_TENSORMAP_L2_256B,
                          .fill = TL_TENSORMAP_FILL_NAN};
  params[4] = (tl_manifest_param){.kind = TL_MPARAM_TENSOR_MAP, .name = "A.map", .divisor = 1, .map = &map};
  pixels = (tl_manifest_map){.type = TL_TENSORMAP_BF16,
                             .rank = 4,
                             .dims = {tl_mexpr_int(&arena, 64), parse("M"), parse("M"), tl_mexpr_int(&arena, 3)},
                             .strides = {parse("128"), parse("M * 128"), parse("M * M * 128")},
                             .box = {32, 128, 1, 1},
                             .is_im2col = true,
                             .lower = {-1, -2},
                             .upper = {3, -4},
                             .step = {1, 2},
                             .swizzle = TL_TENSORMAP_SWIZZLE_64B,
                             .l2 = TL_TENSORMAP_L2_256B};
  params[5] = (tl_manifest_param){.kind = TL_MPARAM_TENSOR_MAP, .name = "A.map2", .divisor = 1, .map = &pixels};
  require = (tl_manifest_require){parse("M % 8 == 0"), "M % 8 == 0"};
  kernel = (tl_manifest_kernel){.name = "k",
                                .doc = "line one\n\"two\"",
                                .params = params,
                                .num_params = 6,
                                .requires_ = &require,
                                .num_requires = 1,
                                .grid = {parse("ceildiv(M, 128)"), tl_mexpr_int(&arena, 2), tl_mexpr_int(&arena, 1)},
                                .block_threads = 160,
                                .math_threads = 128,
                                .dynamic_shared_bytes = 49152,
                                .cluster = {1, 1, 1}};
  return (tl_manifest){.arena = &arena,
                       .abi = 1,
                       .generator = "tl-llc 0.1.0",
                       .target = "sm_80",
                       .ptx_version = 70,
                       .kernels = &kernel,
                       .num_kernels = 1};
}

START_TEST(round_trips) {
  tl_manifest manifest = sample();
  for (int run = 0; run < 4; run++) {
    bool with_prefix = run % 2 != 0;
    manifest.kernels[0].persistent = run >= 2;
    tl_strbuf out, again;
    tl_strbuf_init(&out);
    tl_strbuf_init(&again);
    const char *prefix = with_prefix ? "// " : NULL;
    tl_manifest_write(&manifest, prefix, &out);
    size_t written = out.len;
    if (with_prefix) tl_strbuf_append_c(&out, "\n//\n// Generated by something else\n.version 7.0\n");
    tl_manifest read;
    tl_status status = tl_manifest_read(&arena, tl_strbuf_view(&out), &read);
    ck_assert_msg(!status, "%s\n%s", tl_status_message(status), tl_strbuf_c(&out));
    ck_assert_str_eq(read.kernels[0].doc, "line one\n\"two\"");
    ck_assert_int_eq(read.kernels[0].params[2].divisor, 8);
    ck_assert_int_eq(read.kernels[0].params[2].dtype, TL_DTYPE_I64);
    ck_assert_int_eq(read.ptx_version, 70);
    ck_assert(read.kernels[0].params[4].map->swizzle == TL_TENSORMAP_SWIZZLE_64B);
    ck_assert_uint_eq(read.kernels[0].params[4].map->tensor, 0);
    ck_assert(read.kernels[0].persistent == manifest.kernels[0].persistent);
    tl_manifest_write(&read, prefix, &again);
    ck_assert_int_eq(again.len, written);
    ck_assert_int_eq(memcmp(again.data, out.data, written), 0);
    tl_strbuf_fini(&out);
    tl_strbuf_fini(&again);
  }
}
END_TEST

static tl_status read_changed(const char *from, const char *to) {
  tl_manifest manifest = sample();
  tl_strbuf out, changed;
  tl_strbuf_init(&out);
  tl_strbuf_init(&changed);
  tl_manifest_write(&manifest, NULL, &out);
  const char *at = strstr(tl_strbuf_c(&out), from);
  ck_assert_msg(at != NULL, "no '%s' in\n%s", from, tl_strbuf_c(&out));
  tl_strbuf_append(&changed, (tl_str){out.data, (size_t)(at - out.data)});
  tl_strbuf_append_c(&changed, to);
  tl_strbuf_append_c(&changed, at + strlen(from));
  tl_manifest read;
  tl_status status = tl_manifest_read(&arena, tl_strbuf_view(&changed), &read);
  tl_strbuf_fini(&out);
  tl_strbuf_fini(&changed);
  return status;
}

START_TEST(refuses_what_it_does_not_know) {
  static const struct {
    const char *from, *to;
    tl_status_code code;
  } cases[] = {
      {"\"abi\": 1", "\"abi\": 2", TL_STATUS_UNSUPPORTED},
      {"\"doc\": ", "\"chain\": 1, \"doc\": ", TL_STATUS_UNSUPPORTED},
      {"\"abi\": 1,", "\"abi\": 1, \"extra\": 0,", TL_STATUS_UNSUPPORTED},
      {"\"kind\": \"workspace\"", "\"kind\": \"texture\"", TL_STATUS_UNSUPPORTED},
      {"\"bf16\"", "\"f12\"", TL_STATUS_UNSUPPORTED},
      {"\"name\": \"k\",", "", TL_STATUS_INVALID_ARGUMENT},
      {"\"cluster\": [1, 1, 1]", "\"cluster\": [0, 1, 1]", TL_STATUS_INVALID_ARGUMENT},
      {"\"M * 4\"", "\"M * \"", TL_STATUS_INVALID_ARGUMENT},
      {"\"block_threads\": 160", "\"persistent\": 1, \"block_threads\": 160", TL_STATUS_INVALID_ARGUMENT},
      {"\"block_threads\": 160", "\"block_threads\": 2000", TL_STATUS_INVALID_ARGUMENT},
      {"\"strides\": [\"64 * s0\", 1]", "\"strides\": [1]", TL_STATUS_INVALID_ARGUMENT},
      {"\"7.0\"", "\"seven\"", TL_STATUS_INVALID_ARGUMENT},
      {"\"tensor\": \"A\"", "\"tensor\": \"alpha\"", TL_STATUS_INVALID_ARGUMENT},
      {"\"access\": \"in\"", "\"access\": \"inout\"", TL_STATUS_INVALID_ARGUMENT},
      {"\"type\": \"bf16\"", "\"type\": \"f12\"", TL_STATUS_UNSUPPORTED},
      {"\"swizzle\": 64", "\"swizzle\": 48", TL_STATUS_UNSUPPORTED},
      {"\"l2\": 256", "\"l2\": 32", TL_STATUS_UNSUPPORTED},
      {"\"fill\": \"nan\"", "\"fill\": \"one\"", TL_STATUS_INVALID_ARGUMENT},
      {"\"box\": [32, 128]", "\"box\": [32, 257]", TL_STATUS_INVALID_ARGUMENT},
      {"\"box\": [32, 128]", "\"box\": [32]", TL_STATUS_INVALID_ARGUMENT},
      {"\"fill\": \"nan\"", "\"fill\": \"nan\", \"interleave\": 16", TL_STATUS_UNSUPPORTED},
      {"\"lower\": [-1, -2]", "\"lower\": [-1]", TL_STATUS_INVALID_ARGUMENT},
      {"\"lower\": [-1, -2]", "\"lower\": [-1, -40000]", TL_STATUS_INVALID_ARGUMENT},
      {"\"upper\": [3, -4], ", "", TL_STATUS_INVALID_ARGUMENT},
      {"\"step\": [1, 2]", "\"step\": [1, 0]", TL_STATUS_INVALID_ARGUMENT},
      {"\"box\": [32, 128], ", "\"box\": [32, 128], \"lower\": [], \"upper\": [], \"step\": [], ",
       TL_STATUS_INVALID_ARGUMENT},
      {"{", "[", TL_STATUS_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_status status = read_changed(cases[i].from, cases[i].to);
    ck_assert_msg(tl_status_code_of(status) == cases[i].code, "%s -> %s: %s", cases[i].from, cases[i].to,
                  tl_status_message(status));
    tl_status_free(status);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("support_manifest");
  TCase *tests = tcase_create("manifest");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, evaluates);
  tcase_add_test(tests, prints_what_it_parses);
  tcase_add_test(tests, refuses_bad_expressions);
  tcase_add_test(tests, reports_evaluation_errors);
  tcase_add_test(tests, round_trips);
  tcase_add_test(tests, refuses_what_it_does_not_know);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
