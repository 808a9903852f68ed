// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index notation against values worked out by hand.
#include "harness/reference/reference.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A[i, j] = 10 i + j - 5 (3 by 4), B = 3 -1 2 7, x = 0.5; the statements of a case follow.
static const char head[] =
    "kernel: t\n"
    "params:\n  M: 3\n  N: 4\n  mid: 0.5\n  dtype: f16\n"
    "args:\n  A: in f32[M, N]\n  B: in i32[N]\n  x: in f32\n  C: out f32[M, N]\n  V: out f32[M]\n  I: out i32[M]\n  E: "
    "in f32[5, 0]\n"
    "views:\n  Af: A as f32[M * N]\n"
    "grid:\n  g: 1\n"
    "body:\n  - C[0, 0] = 1\n"
    "check:\n  reference:\n";

static tl_sources sources;
static tl_diags diags;
static tl_spec *spec;
static tl_arena arena;
static tl_env env;
static tl_reference reference;

static void set(const char *name, tl_dtype dtype, int32_t rank, int64_t d0, int64_t d1, double (*value)(uint64_t)) {
  const int64_t shape[] = {d0, d1};
  tl_array array;
  ck_assert(!tl_array_init(&array, dtype, rank, shape));
  for (uint64_t i = 0; i < array.count; i++) {
    if (tl_dtype_is_float(dtype)) tl_dtype_store_float(dtype, array.data, i, value(i));
    if (!tl_dtype_is_float(dtype)) tl_dtype_store_int(dtype, array.data, i, (int64_t)value(i));
  }
  ck_assert(!tl_reference_set(&reference, tl_str_from(name), &array));
  tl_array_fini(&array);
}

static double value_a(uint64_t i) {
  return (double)(i / 4 * 10 + i % 4) - 5;
}
static double value_b(uint64_t i) {
  return (const double[]){3, -1, 2, 7}[i];
}
static double value_x(uint64_t i) {
  return (void)i, 0.5;
}
static double value_zero(uint64_t i) {
  return (void)i, 0;
}

// Runs the lines; NULL when they were refused (the diagnostics are in `diags`).
static bool run(const char *lines) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, head);
  tl_strbuf_append_c(&text, lines);
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_arena_init(&arena);
  uint32_t source = tl_sources_add(&sources, "test.yaml", tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  spec = tl_spec_parse(&sources, source, &diags);
  tl_strbuf printed;
  tl_strbuf_init(&printed);
  tl_diags_print_text(&diags, &printed, false);
  ck_assert_msg(spec && !tl_diags_has_errors(&diags), "%s", tl_strbuf_c(&printed));
  tl_strbuf_fini(&printed);
  const tl_kernel_spec *kernel = &spec->kernels[0];
  ck_assert(tl_env_create(&arena, kernel, (tl_bindings){0}, true, &diags, &env));
  tl_reference_init(&reference, kernel, &env, &diags);
  set("A", TL_DTYPE_F32, 2, 3, 4, value_a);
  set("B", TL_DTYPE_I32, 1, 4, 0, value_b);
  set("x", TL_DTYPE_F32, 0, 0, 0, value_x);
  set("C", TL_DTYPE_F32, 2, 3, 4, value_zero);
  set("V", TL_DTYPE_F32, 1, 3, 0, value_zero);
  set("I", TL_DTYPE_I32, 1, 3, 0, value_zero);
  set("E", TL_DTYPE_F32, 2, 5, 0, value_zero);
  ck_assert(!tl_reference_add_views(&reference));
  tl_status status = tl_reference_run(&reference, kernel->check.reference, kernel->check.num_reference);
  tl_status_code code = tl_status_code_of(status);
  ck_assert_msg(code == TL_STATUS_OK || code == TL_STATUS_DIAGNOSTICS, "%s: %s", lines, tl_status_message(status));
  ck_assert_msg(code == TL_STATUS_OK || tl_diags_has_errors(&diags), "%s: no diagnostic", lines);
  tl_status_free(status);
  return code == TL_STATUS_OK;
}

static void done(void) {
  tl_reference_fini(&reference);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  tl_arena_fini(&arena);
}

static void expect(const char *lines, const char *name, size_t count, const double *values) {
  bool ok = run(lines);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(&diags, &text, false);
  ck_assert_msg(ok, "%s%s", lines, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  const tl_reference_buffer *buffer = tl_reference_find(&reference, tl_str_from(name));
  ck_assert_ptr_nonnull(buffer);
  ck_assert_uint_eq(buffer->count, count);
  for (size_t i = 0; i < count; i++) {
    double value = buffer->is_float ? ((double *)buffer->values)[i] : (double)((int64_t *)buffer->values)[i];
    bool same =
        isnan(values[i]) ? isnan(value) : value == values[i] || fabs(value - values[i]) < 1e-14 * fabs(values[i]);
    ck_assert_msg(same, "%s%s[%zu] is %.17g, expected %.17g", lines, name, i, value, values[i]);
  }
  done();
}
#define EXPECT(lines, name, ...) \
  expect(lines, name, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})

START_TEST(reductions) {
  EXPECT("    - V[m] = sum[n](A[m, n] * B[n])\n", "V", -31, 79, 189);
  EXPECT("    - V[m] = max[n](A[m, n])\n", "V", -2, 8, 18);
  EXPECT("    - V[m] = min[n in 1:3](A[m, n])\n", "V", -4, 6, 16);
  EXPECT("    - V[m] = prod[n in 0:m](A[m, n])\n", "V", 1, 5, 240);
  EXPECT("    - V[m] = sum[n in m:N](1)\n", "V", 4, 3, 2);
  EXPECT("    - I[m] = argmax[n](B[n] * (m - 1))\n", "I", 1, 0, 3);
  EXPECT("    - I[m] = argmin[n](abs(A[m, n] - 6))\n", "I", 3, 1, 0);
  EXPECT("    - I[m] = argmax[i, j](A[i, j])\n", "I", 11, 11, 11);
  EXPECT("    - I[m] = any[n](A[m, n] == 7) + 2 * all[n](A[m, n] > -5)\n", "I", 0, 3, 2);
  EXPECT("    - V[m in 0:3] = sum[e](E[m, e]) + max[e](E[m, e])\n", "V", -INFINITY, -INFINITY, -INFINITY);
  EXPECT("    - V[m] = sum[i, j](A[i, j]) + 0 * m\n", "V", 78, 78, 78);
  EXPECT("    - V[m] = sum[n](max[k](A[k, n]))\n", "V", 66, 66, 66);
}
END_TEST

// Reductions that do not depend on the loops around them are computed before these.
START_TEST(invariant_reductions) {
  EXPECT("    - V[m] = sum[n](A[m, n] - max[k](A[m, k]))\n", "V", -6, -6, -6);
  EXPECT("    - V[m] = sum[n](A[m, n] - max[n](A[m, n]))\n", "V", -6, -6, -6);    // an index of the same name
  EXPECT("    - V[m] = sum[n](B[n] * sum[k in 0:n + 1](k))\n", "V", 47, 47, 47);  // a range that depends
  EXPECT("    - V[m] = sum[n](B[n] * sum[k](A[m, k] * min[j](B[j])))\n", "V", 154, -286, -726);
  EXPECT("    - V[m] = sum[n](B[n] * sum[k](B[k] * n * max[j](A[m, j] + k)))\n", "V", 24 * 2, 24 * 112, 24 * 222);
  EXPECT("    - I[m] = sum[n in 0:4](B[argmax[k](A[m, k])] + argmin[k](B[k]) * n)\n", "I", 34, 34, 34);
  EXPECT("    - V[m] = sum[n in 0:4](any[k](B[k] < 0) + all[k](B[k] < 0))\n", "V", 4, 4, 4);
  EXPECT("    - C[m, n] = B[n] * sum[k](B[k]) + max[k](A[m, k])\n", "C", 31, -13, 20, 75, 41, -3, 30, 85, 51, 7, 40,
         95);
  // What the statement stores itself is not computed ahead.
  EXPECT("    - S[t in 0:4] = 1 + sum[j in 0:4](S[j])\n    - V[m] = S[m + 1]\n", "V", 1, 1, 1);
  EXPECT("    - V[m] = V[m - 1] + 1 + 0 * sum[k](A[m, k])\n", "V", 1, 2, 3);
  // Not 27 times 10^18 steps.
  EXPECT("    - V[m] = sum[i in 0:3000000](m + max[j in 0:3000000](A[m, j % 4] + min[k in 0:3000000](k + m) - m))\n",
         "V", -6e6, 27e6, 60e6);
  EXPECT("    - C[m, n] = sum[i in 0:10000000](A[m, i % 4] - max[k in 0:10000000](A[m, k % 4]))\n", "C", -15e6, -15e6,
         -15e6, -15e6, -15e6, -15e6, -15e6, -15e6, -15e6, -15e6, -15e6, -15e6);
}
END_TEST

START_TEST(expressions) {
  EXPECT("    - V[m] = A[m, 0] / 2 + mid - x\n", "V", -2.5, 2.5, 7.5);
  EXPECT("    - I[m in 0:3] = (B[m] - 4) // 2 + 10 * ((B[m] - 4) % 3)\n", "I", 19, 7, 9);
  EXPECT("    - V[m in 0:3] = B[m] / 2\n", "V", 1.5, -0.5, 1);
  EXPECT("    - I[m in 0:3] = B[m] << 2 | 1 ^ m & 1\n", "I", 13, -4, 9);
  EXPECT("    - I[m in 0:3] = ~B[m] + ceildiv(B[m], 2)\n", "I", -2, 0, -2);
  EXPECT("    - I[m in 0:3] = B[m] // (m - 1) + B[m] % (m - 1)\n", "I", -3, 0, 2);
  EXPECT("    - V[m] = A[m, 0] if m > 0 and m != 2 else -m\n", "V", 0, 5, -2);
  EXPECT("    - V[m] = 1 < m + 1 <= 2\n", "V", 0, 1, 0);
  EXPECT("    - V[m] = m ** 2 + 2.0 ** m\n", "V", 1, 3, 8);
  EXPECT("    - V[m] = cast(1 / 3, dtype) + cast(m, f32)\n", "V", 0.333251953125, 1.333251953125, 2.333251953125);
  EXPECT("    - I[m in 0:3] = cast(A[m, 0] * 100, i8) + cast(B[m] + 300, u8)\n", "I", -128 + 47, 127 + 43, 127 + 46);
  EXPECT("    - I[m] = bitcast(cast(m, f32), i32)\n", "I", 0, 1065353216, 1073741824);
  EXPECT("    - V[m] = bitcast(cast(15360 + m, u16), f16)\n", "V", 1, 1.0009765625, 1.001953125);
  EXPECT("    - V[m] = sizeof(dtype) * inf(i8)\n", "V", 254, 254, 254);
  EXPECT("    - V[m] = max(A[m, 0], 3, m) + clamp(m, 1, 1) + sign(A[m, 0]) + abs(-m)\n", "V", 3, 8, 19);
  EXPECT("    - V[m] = softplus(0) + sigmoid(0) + relu(-1) + gelu(0) + silu(0) + tanh(0) + erf(0)\n", "V",
         1.1931471805599454, 1.1931471805599454, 1.1931471805599454);
  EXPECT(
      "    - V[m] = exp(m) + log(1) + sqrt(4) + rsqrt(4) + rcp(4) + exp2(m) + exp10(0) + log1p(0) + expm1(0) + pow(m, "
      "2)\n",
      "V", 1 + 2 + 0.5 + 0.25 + 1 + 1, 2.718281828459045 + 2.75 + 2 + 1 + 1, 7.38905609893065 + 2.75 + 4 + 1 + 4);
  EXPECT("    - V[m] = floor(A[m, 0] / 2) + ceil(0.5) + round(2.5) + trunc(-1.5)\n", "V", -1, 4, 9);
  EXPECT("    - I[m] = isnan(0 / x * (m / 0)) + isinf(1 / 0)\n", "I", 2, 2, 2);
  // The first known answer of Random123, and the third.
  EXPECT("    - I[m] = philox(0, 0, m) >> 8\n", "I", 0x6627E8, 0xE169C5, 0xBC57AC);
  EXPECT("    - I[m] = philox(0x299F31D0A4093822, 0x243F6A88 - (0x7A5CF72D << 32), m + 1, 0x0370734413198A2E) >> 8\n",
         "I", 0x94FDCC, 0x5001E4, 0x24126E);
  EXPECT("    - I[m] = popcount(255 + m) + clz(1) + dp4a(257, 514, m)\n", "I", 8 + 31 + 4, 1 + 31 + 5, 2 + 31 + 6);
  EXPECT("    - V[m] = max(0 / 0, 1.0) + fma(2, 3, m) + select(m > 0, 1, 0)\n", "V", 7, 9, 10);
}
END_TEST

START_TEST(bounds_and_views) {
  EXPECT("    - V[m] = A[m - 1, 3] + A[m, 4] + A[m, -1]\n", "V", 0, -2, 8);
  EXPECT("    - V[m] = load(A[m + 1, 0], 99) + in_bounds(A[m, m + 2])\n", "V", 6, 16, 99);
  EXPECT("    - V[m in 0:3] = Af[4 * m + 1] + A[B[m], 0]\n", "V", -4, 6, 31);
  EXPECT("    - C[m, n] = A[m, n + 1]\n", "C", -4, -3, -2, 0, 6, 7, 8, 0, 16, 17, 18, 0);
}
END_TEST

START_TEST(results_and_order) {
  EXPECT("    - T[i in 0:2, j in 0:2] = i * 2 + j\n    - V[m in 0:3] = sum[i, j](T[i, j]) + T[m, 0]\n", "V", 6, 8, 6);
  EXPECT("    - V[m] = m + 1\n    - V[m] = V[2 - m] * 10\n", "V", 30, 20, 10);
  EXPECT("    - V[m] = V[m - 1] + A[m, 0]\n", "V", -5, 0, 15);
  EXPECT("    - H[t in 0:5] = H[t - 1] + H[t - 2] + (t == 0)\n    - V[m] = H[m + 2]\n", "V", 2, 3, 5);
  EXPECT("    - C[m, n] = max(C[m - 1, n], C[m, n - 1]) + 1\n", "C", 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
  // A recurrence along the second subscript whose other subscript is summed over.
  EXPECT("    - S[i in 0:2, t in 0:3] = (t == 0) + sum[j in 0:2](S[j, t - 1])\n    - V[m] = S[0, m]\n", "V", 1, 2, 4);
  EXPECT(
      "    - recur: t in 0:3\n      do:\n        - P[t] = Q[t - 1] + 1\n        - Q[t] = P[t] * 2\n    - V[m] = P[m] + "
      "Q[m]\n",
      "V", 3, 9, 21);
  EXPECT("    - V[m] = cast(I[m] + 7, i32)\n", "V", 7, 7, 7);
  EXPECT("    - s = sum[i, j](A[i, j])\n    - V[m] = s * m\n", "V", 0, 78, 156);
}
END_TEST

START_TEST(mistakes) {
  static const struct {
    const char *lines, *message;
  } cases[] = {
      {"    - V[m] = sum[k](1)\n", "the range of index `k` is unknown"},
      {"    - V[m] = A[m, n]\n", "`n` is no index"},
      {"    - V[m] = B[m] + A[0, m]\n", "index `m` stands for a dim of"},
      {"    - V[m] = sum[k](A[k, 0] * B[k])\n", "index `k` stands for a dim of 4 here and of 3 elsewhere"},
      {"    - V[m] = A[m]\n", "`A` has 2 dims, given 1 subscripts"},
      {"    - V[m] = A + 1\n", "`A` has 2 dims, given 0 subscripts"},
      {"    - V[m] = Q[m]\n", "`Q` is no argument and no earlier result"},
      {"    - V[m] = A[m, 0:2]\n", "not a slice"},
      {"    - V[m] = frobnicate(m)\n", "`frobnicate` is no function"},
      {"    - V[m] = exp(m, m)\n", "`exp` takes 1 argument, given 2"},
      {"    - V[m] = A[x, 0]\n", "an integer is needed here"},
      {"    - V[m] = dtype\n", "is a dtype, not a number"},
      {"    - V[m] = A @ A\n", "no operation of index notation"},
      {"    - M = 3\n", "left side of a reference"},
      {"    - W[2 * i] = V[i]\n", "each of its subscripts must be an index"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ck_assert_msg(!run(cases[i].lines), "%s was accepted", cases[i].lines);
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_diags_print_text(&diags, &text, false);
    ck_assert_msg(strstr(tl_strbuf_c(&text), cases[i].message) != NULL, "%s%s", cases[i].lines, tl_strbuf_c(&text));
    tl_strbuf_fini(&text);
    done();
  }
}
END_TEST

START_TEST(large_statements_use_threads) {
  // 3 x 4 outputs, each a sum over 3 million: cut along m.
  EXPECT("    - C[m, n] = sum[k in 0:3000000](m + n)\n", "C", 0, 3e6, 6e6, 9e6, 3e6, 6e6, 9e6, 12e6, 6e6, 9e6, 12e6,
         15e6);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("harness_reference");
  TCase *tests = tcase_create("reference");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, reductions);
  tcase_add_test(tests, invariant_reductions);
  tcase_add_test(tests, expressions);
  tcase_add_test(tests, bounds_and_views);
  tcase_add_test(tests, results_and_order);
  tcase_add_test(tests, mistakes);
  tcase_add_test(tests, large_statements_use_threads);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
