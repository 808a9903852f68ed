// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random numbers, generators, .npy files and the comparison rule.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/data/compare.h"
#include "harness/data/generate.h"
#include "harness/data/npy.h"
#include "harness/data/random.h"

START_TEST(random_numbers_are_pinned) {
  // These numbers must never change: results of checks are reproduced by seed.
  uint64_t key = tl_random_key(1, TL_STR("matmul"), TL_STR("A"));
  ck_assert_uint_eq(key, tl_random_key(1, TL_STR("matmul"), TL_STR("A")));
  ck_assert_uint_ne(key, tl_random_key(2, TL_STR("matmul"), TL_STR("A")));
  ck_assert_uint_ne(key, tl_random_key(1, TL_STR("matmulA"), TL_STR("")));
  ck_assert_uint_eq(tl_random_bits(1, 0), UINT64_C(0x54a5cfdc74b81f70));
  ck_assert_uint_eq(tl_random_bits(1, 1), UINT64_C(0x32cf055898f0dc40));
  ck_assert(tl_random_normal(1, 0) == -0x1.c09e9800090b5p-2);
  ck_assert(tl_random_normal(1, 7) == 0x1.385bb5761e547p-4);
}
END_TEST

START_TEST(quantiles_are_right) {
  static const double cases[][2] = {{0.5, 0},
                                    {0.975, 1.959963984540054},
                                    {0.1, -1.2815515655446004},
                                    {1e-10, -6.361340902404056},
                                    {1e-15, -7.941345326170998},
                                    {0.9, 1.2815515655446004}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ck_assert_double_eq_tol(tl_normal_quantile(cases[i][0]), cases[i][1], 1e-14 * (1 + fabs(cases[i][1])));
  }
  double sum = 0, squares = 0, uniform = 0;
  enum { N = 200000 };
  for (int i = 0; i < N; i++) {
    double x = tl_random_normal(42, (uint64_t)i);
    sum += x;
    squares += x * x;
    uniform += tl_random_uniform(43, (uint64_t)i);
  }
  ck_assert_double_eq_tol(sum / N, 0, 0.01);
  ck_assert_double_eq_tol(squares / N, 1, 0.02);
  ck_assert_double_eq_tol(uniform / N, 0.5, 0.005);
}
END_TEST

static void round_trip(tl_dtype dtype, int32_t rank, const int64_t *shape) {
  tl_array array, back, again;
  ck_assert(!tl_array_init(&array, dtype, rank, shape));
  for (uint64_t i = 0; i < array.bytes; i++)
    ((uint8_t *)array.data)[i] = (uint8_t)(dtype == TL_DTYPE_BOOL ? i & 1 : i * 37 + 11);
  tl_strbuf bytes;
  tl_strbuf_init(&bytes);
  tl_status status = tl_npy_print(&array, &bytes);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_uint_eq((bytes.len - array.bytes) % 64, 0);
  status = tl_npy_parse(tl_strbuf_view(&bytes), &back);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  status = tl_array_convert(&back, dtype, &again);
  ck_assert_msg(!status, "%s: %s", tl_dtype_name(dtype), tl_status_message(status));
  ck_assert_int_eq(again.rank, rank);
  ck_assert_mem_eq(again.shape, array.shape, sizeof(int64_t) * (size_t)rank);
  ck_assert_mem_eq(again.data, array.data, array.bytes);
  tl_strbuf_fini(&bytes);
  tl_array_fini(&array);
  tl_array_fini(&back);
  tl_array_fini(&again);
}

START_TEST(npy_round_trips_every_dtype) {
  static const int64_t shape[] = {3, 2, 4};
  for (int dtype = TL_DTYPE_NONE + 1; dtype < TL_DTYPE_COUNT; dtype++) {
    if (dtype == TL_DTYPE_TF32) continue;  // reads as f32 and is rounded
    round_trip((tl_dtype)dtype, 3, shape);
    round_trip((tl_dtype)dtype, 1, shape + 2);
    if (tl_dtype_bits((tl_dtype)dtype) > 4) round_trip((tl_dtype)dtype, 0, shape);
  }
}
END_TEST

// A version 1.0 file of this header and content.
static tl_status parse(const char *header, const char *content, size_t len, tl_array *out) {
  tl_strbuf file;
  tl_strbuf_init(&file);
  size_t header_len = strlen(header);
  const char magic[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)header_len, 0};
  tl_strbuf_append(&file, (tl_str){magic, 10});
  tl_strbuf_append_c(&file, header);
  tl_strbuf_append(&file, (tl_str){content, len});
  tl_status status = tl_npy_parse(tl_strbuf_view(&file), out);
  tl_strbuf_fini(&file);
  return status;
}

START_TEST(npy_reads_other_orders_and_refuses) {
  tl_array array;
  ck_assert(
      !parse("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", "\0\1\0\4\0\2\0\5\0\3\0\6", 12, &array));
  for (uint64_t i = 0; i < 6; i++) ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_I16, array.data, i), (int64_t)i + 1);
  tl_array_fini(&array);
  static const char *const bad[] = {"{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }",
                                    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 16), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
                                    "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,), }",
                                    "{'descr': '<f8', 'fortran_order': Falsehood, 'shape': (1,), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'shape': (1,), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'extra': 1}",
                                    "{'descr': '<f8', 'shape': (1,), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1 1), }",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } more",
                                    "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
                                    "{'descr': '<f8' 'fortran_order': False, 'shape': (1,), }",
                                    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",  // 4 bytes too many
                                    "{}"};
  // Whatever order, quotes and blanks the writer had.
  ck_assert(!parse("{\"shape\":(1L,),'fortran_order':False,\n 'descr':'<f8'}\n", "12345678", 8, &array));
  tl_array_fini(&array);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tl_status status = parse(bad[i], "12345678", 8, &array);
    ck_assert_msg(status != NULL, "%s was read", bad[i]);
    tl_status_free(status);
  }
  tl_status status = tl_npy_parse(TL_STR("PK\3\4 and more"), &array);
  ck_assert_msg(status != NULL, "a zip file was read");
  tl_status_free(status);
}
END_TEST

START_TEST(compares_by_the_rule) {
  static const struct {
    double value, reference, rtol, atol;
    bool passes;
  } cases[] = {
      {1, 1, 0, 0, true},
      {1.0009765625, 1.0007, 0, 0, true},  // the reference rounded to f16
      {1.0009765625, 1.0002, 0, 0, false},
      {1.5, 1.4, 0.08, 0, true},
      {1.5, 1.4, 0.07, 0, false},
      {1.5, 1.4, 0, 0.11, true},
      {INFINITY, INFINITY, 0, 0, true},
      {INFINITY, 70000, 0, 0, true},  // rounds to infinity
      {INFINITY, -INFINITY, 1, 1, false},
      {65504, INFINITY, 1, 1, false},
      {INFINITY, 65000, 1, 1, false},
      {NAN, NAN, 1, 1, false},
      {0, NAN, 1, 1, false},
      {-0.0, 0, 0, 0, true},
  };
  static const int64_t shape[] = {1};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_array array;
    ck_assert(!tl_array_init(&array, TL_DTYPE_F16, 1, shape));
    tl_dtype_store_float(TL_DTYPE_F16, array.data, 0, cases[i].value);
    tl_compare_result result;
    tl_compare_float(&array, &cases[i].reference, cases[i].rtol, cases[i].atol, &result);
    ck_assert_msg((result.num_failed == 0) == cases[i].passes, "case %zu", i);
    tl_array_fini(&array);
  }
}
END_TEST

// An element that rightly overflows is not the worst one.
START_TEST(overflow_is_no_error) {
  static const int64_t shape[] = {3};
  static const double values[] = {INFINITY, 2, 1.5}, reference[] = {70000, 2, 1.4};
  tl_array array;
  ck_assert(!tl_array_init(&array, TL_DTYPE_F16, 1, shape));
  for (uint64_t i = 0; i < 3; i++) tl_dtype_store_float(TL_DTYPE_F16, array.data, i, values[i]);
  tl_compare_result result;
  tl_compare_float(&array, reference, 0, 0.2, &result);
  ck_assert_uint_eq(result.num_failed, 0);
  ck_assert_uint_eq(result.worst, 2);
  ck_assert_double_eq_tol(result.error, 0.1, 1e-9);
  tl_array_fini(&array);
  static const int64_t one[] = {1};
  ck_assert(!tl_array_init(&array, TL_DTYPE_F16, 1, one));
  tl_dtype_store_float(TL_DTYPE_F16, array.data, 0, -INFINITY);
  tl_compare_float(&array, (const double[]){-1e9}, 0, 0, &result);
  ck_assert_uint_eq(result.num_failed, 0);
  ck_assert_double_eq(result.error, 0);
  ck_assert_double_eq(result.reference, -INFINITY);
  tl_array_fini(&array);
}
END_TEST

// The upper half of u64 is neither negative nor far from the lower one.
START_TEST(unsigned_numbers_are_unsigned) {
  static const int64_t shape[] = {1};
  tl_array array;
  ck_assert(!tl_array_init(&array, TL_DTYPE_U64, 1, shape));
  tl_dtype_store_int(TL_DTYPE_U64, array.data, 0, INT64_MIN);  // 2^63
  tl_compare_result result;
  tl_compare_int(&array, (const int64_t[]){INT64_MAX}, 0, 0, &result);
  ck_assert_uint_eq(result.num_failed, 1);
  ck_assert_double_eq(result.error, 1);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_compare_print(&result, "Y", &array, &text);
  ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&text), ": 9223372036854775808, expected 9223372036854775807"));
  tl_strbuf_fini(&text);
  tl_compare_int(&array, (const int64_t[]){INT64_MAX}, 1e-18, 0, &result);
  ck_assert_uint_eq(result.num_failed, 0);
  ck_assert_double_eq(tl_array_number(&array, 0), 0x1p63);
  tl_array converted;
  tl_status status = tl_array_convert(&array, TL_DTYPE_I32, &converted);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "9223372036854775808"));
  tl_status_free(status);
  tl_array_fini(&array);
}
END_TEST

START_TEST(names_the_worst_element) {
  static const int64_t shape[] = {2, 3};
  tl_array array;
  ck_assert(!tl_array_init(&array, TL_DTYPE_F32, 2, shape));
  double reference[6];
  for (uint64_t i = 0; i < 6; i++) {
    reference[i] = (double)i;
    tl_dtype_store_float(TL_DTYPE_F32, array.data, i, (double)i + (i == 4 ? 0.5 : i == 2 ? 0.25 : 0));
  }
  tl_compare_result result;
  tl_compare_float(&array, reference, 0, 0.1, &result);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_compare_print(&result, "C", &array, &text);
  ck_assert_str_eq(tl_strbuf_c(&text),
                   "C: f32[2, 3], 2 of 6 elements wrong, worst error 0.5 at [1, 1]: 4.5, expected 4");
  tl_strbuf_fini(&text);
  tl_array_fini(&array);
}
END_TEST

// ---- generators

static tl_arena arena;
static tl_sources sources;
static tl_diags diags;

static void setup(void) {
  tl_arena_init(&arena);
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
}
static void teardown(void) {
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  tl_arena_fini(&arena);
}

static bool generate(const char *text, tl_dtype dtype, int64_t count, tl_array *out) {
  static const tl_env no_names;
  uint32_t source = tl_sources_add(&sources, "<test>", tl_str_from(text));
  uint32_t len = (uint32_t)strlen(text);
  uint32_t *offsets = TL_NEW_ARRAY(&arena, uint32_t, len + 1);
  for (uint32_t i = 0; i <= len; i++) offsets[i] = i;
  tl_located_text located = {tl_str_from(text), {source, offsets}, {source, 0, len}};
  tl_generate_request request = {
      .env = &no_names, .name = TL_STR("A"), .key = 99, .dtype = dtype, .rank = 1, .shape = {count}};
  if (text[0]) request.generator = tl_expr_parse(&arena, &diags, located);
  if (text[0] && !request.generator) return false;
  tl_status status = tl_generate(&request, &diags, out);
  bool ok = !status;
  tl_status_free(status);
  return ok;
}

static int64_t at(const tl_array *array, uint64_t i) {
  return tl_dtype_load_int(array->dtype, array->data, i);
}

START_TEST(generators_make_what_they_say) {
  tl_array a;
  ck_assert(generate("ints(-3, 4)", TL_DTYPE_I8, 1000, &a));
  int seen[8] = {0};
  for (uint64_t i = 0; i < 1000; i++) seen[at(&a, i) + 3]++;
  for (int i = 0; i < 8; i++) ck_assert_int_gt(seen[i], 80);
  tl_array_fini(&a);
  ck_assert(generate("permutation", TL_DTYPE_I32, 500, &a));
  bool used[500] = {0};
  for (uint64_t i = 0; i < 500; i++) {
    ck_assert(!used[at(&a, i)]);
    used[at(&a, i)] = true;
  }
  tl_array_fini(&a);
  ck_assert(generate("offsets(700)", TL_DTYPE_I32, 40, &a));
  int repeats = 0;
  for (uint64_t i = 1; i < 40; i++) {
    ck_assert_int_le(at(&a, i - 1), at(&a, i));
    repeats += at(&a, i - 1) == at(&a, i);
  }
  ck_assert_int_gt(repeats, 0);
  ck_assert_int_eq(at(&a, 0), 0);
  ck_assert_int_eq(at(&a, 39), 700);
  tl_array_fini(&a);
  ck_assert(generate("arange", TL_DTYPE_I64, 5, &a));
  ck_assert_int_eq(at(&a, 4), 4);
  tl_array_fini(&a);
  ck_assert(generate("const(2 * 3)", TL_DTYPE_U8, 5, &a));
  ck_assert_int_eq(at(&a, 2), 6);
  tl_array_fini(&a);
  ck_assert(generate("const(9007199254740993)", TL_DTYPE_U64, 5, &a));
  ck_assert_int_eq(at(&a, 2), 9007199254740993);
  tl_array_fini(&a);
  ck_assert(generate("const(-inf)", TL_DTYPE_F32, 5, &a));
  tl_array_fini(&a);
  ck_assert(generate("", TL_DTYPE_F16, 5, &a));
  tl_array_fini(&a);
}
END_TEST

// Several threads make large arrays; elements depend on their index alone, also where two share a byte.
START_TEST(large_arrays_are_those_of_one_thread) {
  tl_array large, small;
  static const struct {
    const char *generator;
    tl_dtype dtype;
  } cases[] = {{"normal(1, 2)", TL_DTYPE_F16}, {"uniform(-1, 1)", TL_DTYPE_F32}, {"ints(-8, 7)", TL_DTYPE_I4}};
  const int64_t count = 5 * (1 << 18) + 3, few = 1 << 17;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ck_assert(generate(cases[i].generator, cases[i].dtype, count, &large));
    ck_assert(generate(cases[i].generator, cases[i].dtype, few, &small));
    ck_assert_int_eq(memcmp(large.data, small.data, small.bytes), 0);
    // No piece is left out: nowhere is there a run of zeros.
    const unsigned char *bytes = large.data;
    int zeros = 0, most = 0;
    for (uint64_t b = 0; b < large.bytes; b++) {
      zeros = bytes[b] ? 0 : zeros + 1;
      if (zeros > most) most = zeros;
    }
    ck_assert_int_lt(most, 16);
    tl_array_fini(&large);
    tl_array_fini(&small);
  }
}
END_TEST

START_TEST(wrong_generators_are_diagnosed) {
  static const struct {
    const char *text;
    tl_dtype dtype;
    int64_t count;
  } cases[] = {{"", TL_DTYPE_I32, 4},
               {"", TL_DTYPE_BOOL, 4},
               {"normal(0, 1)", TL_DTYPE_I32, 4},
               {"ints(0, 300)", TL_DTYPE_U8, 4},
               {"ints(3, 1)", TL_DTYPE_I32, 4},
               {"ints(1)", TL_DTYPE_I32, 4},
               {"gauss(0, 1)", TL_DTYPE_F32, 4},
               {"const(0.5)", TL_DTYPE_I32, 4},
               {"const(300)", TL_DTYPE_U8, 4},
               {"arange(0, 100)", TL_DTYPE_U8, 4},
               {"arange(0, 0.5)", TL_DTYPE_I32, 4},
               {"arange(inf)", TL_DTYPE_F32, 4},
               {"normal(0, -1)", TL_DTYPE_F32, 4},
               {"normal(nan, 1)", TL_DTYPE_F32, 4},
               {"normal(0, inf)", TL_DTYPE_F32, 4},
               {"uniform(1, 0)", TL_DTYPE_F32, 4},
               {"uniform(-inf, 0)", TL_DTYPE_F32, 4},
               {"list(1, 2)", TL_DTYPE_I32, 4},
               {"ints(0, q)", TL_DTYPE_I32, 4},
               {"permutation", TL_DTYPE_U8, 300},
               {"offsets(5)", TL_DTYPE_I32, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_array a = {0};
    size_t before = diags.num_errors;
    ck_assert_msg(!generate(cases[i].text, cases[i].dtype, cases[i].count, &a), "'%s' was accepted", cases[i].text);
    ck_assert_msg(diags.num_errors > before, "'%s' reported nothing", cases[i].text);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("harness_data");
  TCase *tests = tcase_create("data");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, random_numbers_are_pinned);
  tcase_add_test(tests, quantiles_are_right);
  tcase_add_test(tests, npy_round_trips_every_dtype);
  tcase_add_test(tests, npy_reads_other_orders_and_refuses);
  tcase_add_test(tests, compares_by_the_rule);
  tcase_add_test(tests, overflow_is_no_error);
  tcase_add_test(tests, unsigned_numbers_are_unsigned);
  tcase_add_test(tests, names_the_worst_element);
  tcase_add_test(tests, generators_make_what_they_say);
  tcase_add_test(tests, large_arrays_are_those_of_one_thread);
  tcase_add_test(tests, wrong_generators_are_diagnosed);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
