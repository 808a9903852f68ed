// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Benchmarks without a GPU: statistics, order, number of argument sets, roofline, JSON, comparison, products.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench_data.h"
#include "harness/bench/bench_product.h"
#include "harness/bench/bench_report.h"
#include "harness/bench/cublaslt_types.h"

#if defined(__has_include)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAS_CUBLASLT 1
#elif __has_include("/usr/local/cuda/include/cublasLt.h") && __has_include(<cuda_fp16.h>)
#include "/usr/local/cuda/include/cublasLt.h"
#define HAS_CUBLASLT 1
#endif
#endif
#ifdef HAS_CUBLASLT
_Static_assert(sizeof(tl_cublaslt_choice) == sizeof(cublasLtMatmulHeuristicResult_t), "");
_Static_assert(offsetof(tl_cublaslt_choice, workspace_bytes) ==
                   offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize),
               "");
_Static_assert(offsetof(tl_cublaslt_choice, state) == offsetof(cublasLtMatmulHeuristicResult_t, state), "");
_Static_assert((int)TL_CUBLASLT_TYPE_BF16 == (int)CUDA_R_16BF && (int)TL_CUBLASLT_TYPE_F16 == (int)CUDA_R_16F, "");
_Static_assert((int)TL_CUBLASLT_TYPE_F8E4M3 == (int)CUDA_R_8F_E4M3 && (int)TL_CUBLASLT_TYPE_F32 == (int)CUDA_R_32F, "");
_Static_assert((int)TL_CUBLASLT_TYPE_I8 == (int)CUDA_R_8I && (int)TL_CUBLASLT_TYPE_I32 == (int)CUDA_R_32I, "");
_Static_assert((int)TL_CUBLASLT_COMPUTE_F32 == (int)CUBLAS_COMPUTE_32F, "");
_Static_assert((int)TL_CUBLASLT_COMPUTE_F64 == (int)CUBLAS_COMPUTE_64F, "");
_Static_assert((int)TL_CUBLASLT_COMPUTE_I32 == (int)CUBLAS_COMPUTE_32I, "");
_Static_assert((int)TL_CUBLASLT_COMPUTE_TF32 == (int)CUBLAS_COMPUTE_32F_FAST_TF32, "");
_Static_assert((int)TL_CUBLASLT_DESC_TRANSA == (int)CUBLASLT_MATMUL_DESC_TRANSA, "");
_Static_assert((int)TL_CUBLASLT_DESC_TRANSB == (int)CUBLASLT_MATMUL_DESC_TRANSB, "");
_Static_assert((int)TL_CUBLASLT_PREFERENCE_MAX_WORKSPACE == (int)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, "");
#endif

START_TEST(median_and_spread) {
  const double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 8};
  tl_bench_stats stats = tl_bench_stats_of(odd, 3);
  ck_assert(stats.count == 3 && stats.median == 3 && stats.least == 1 && stats.most == 5);
  ck_assert_double_eq_tol(tl_bench_spread(stats), 4.0 / 3, 1e-12);
  ck_assert_double_eq(tl_bench_stats_of(even, 4).median, 3);
  ck_assert_double_eq(tl_bench_spread(tl_bench_stats_of(NULL, 0)), 0);
}
END_TEST

START_TEST(order_is_a_permutation_and_repeats_with_its_seed) {
  uint32_t first[7], again[7], seen = 0, differs = 0;
  tl_bench_shuffle(first, 7, 1, 0);
  tl_bench_shuffle(again, 7, 1, 0);
  ck_assert_int_eq(memcmp(first, again, sizeof first), 0);
  for (int i = 0; i < 7; i++) seen |= 1u << first[i];
  ck_assert_uint_eq(seen, 127);
  for (uint64_t round = 1; round < 8; round++) {
    tl_bench_shuffle(again, 7, 1, round);
    differs += memcmp(first, again, sizeof first) != 0;
  }
  ck_assert_uint_ge(differs, 6);
}
END_TEST

START_TEST(sets_cover_twice_the_cache) {
  bool partly;
  const uint64_t gib = UINT64_C(1) << 30;
  const int64_t mib = 1 << 20;
  ck_assert_uint_eq(tl_bench_num_sets(30 * mib, 60 * mib, 64 * gib, &partly), 5);
  ck_assert(!partly);
  // A set of its own size over twice the cache: one more, so that no set follows itself.
  ck_assert_uint_eq(tl_bench_num_sets(400 * mib, 60 * mib, 64 * gib, &partly), 2);
  ck_assert(!partly);
  ck_assert_uint_eq(tl_bench_num_sets(400 * mib, 60 * mib, 500 * mib, &partly), 1);
  ck_assert(!partly);
  ck_assert_uint_eq(tl_bench_num_sets(30 * mib, 60 * mib, 70 * mib, &partly), 2);
  ck_assert(partly);
  ck_assert_uint_eq(tl_bench_num_sets(1024, 60 * mib, 64 * gib, &partly), 4096);
  ck_assert(partly);
  ck_assert_uint_ge(tl_bench_num_sets(0, 0, 0, &partly), 1);
}
END_TEST

START_TEST(roofline_of_an_h200) {
  const tl_device_facts facts = {
      .clock_khz = 1980000, .memory_clock_khz = 3201000, .bus_bits = 6144, .l2_bytes = 60 << 20};
  tl_bench_machine machine;
  tl_bench_machine_init(&machine, &facts, 90, 132);
  ck_assert_double_eq_tol(machine.flops[TL_BENCH_F16] / 1e12, 989.4, 0.1);  // the data sheet's rate
  ck_assert_double_eq_tol(machine.flops[TL_BENCH_F8] / 1e12, 1978.9, 0.1);
  ck_assert_double_eq_tol(machine.flops[TL_BENCH_F32] / 1e12, 66.9, 0.1);
  ck_assert_double_eq_tol(machine.dram_bytes / 1e9, 4916.7, 0.1);
  const double n = 8192, flops = 2 * n * n * n, bytes = 3 * n * n * 2;
  ck_assert_double_eq_tol(tl_bench_roofline_seconds(&machine, TL_BENCH_F16, flops, bytes) * 1e3, 1.1113, 1e-3);
  ck_assert(!tl_bench_is_dram_bound(&machine, TL_BENCH_F16, flops, bytes));
  ck_assert(tl_bench_is_dram_bound(&machine, TL_BENCH_F32, 0, bytes));
  // Unknown hardware has no roofline.
  const tl_device_facts nothing = {0};
  tl_bench_machine_init(&machine, &nothing, 75, 40);
  ck_assert_double_eq(tl_bench_roofline_seconds(&machine, TL_BENCH_F16, flops, bytes), 0);
}
END_TEST

static tl_bench_stats stats(double median) {
  return (tl_bench_stats){9, median, 0.9 * median, 1.2 * median};
}

static void add(tl_bench_report *report, const char *bindings, double seconds) {
  tl_bench_result result = {.kernel = strdup("k"),
                            .bindings = strdup(bindings),
                            .target = strdup("sm_80"),
                            .number = 1,
                            .total = 2,
                            .flops = 1e9,
                            .cold = {stats(seconds), stats(1.1 * seconds)},
                            .warm = {stats(0.9 * seconds), stats(seconds)},
                            .peer = strdup("a \"peer\""),
                            .peer_note = strdup("line\nbreak")};
  tl_vec_push(&report->results, result);
}

START_TEST(json_round_trip_and_comparison) {
  tl_bench_report report = {.device = strdup("GPU")}, again, now = {.device = strdup("GPU")};
  add(&report, "{M: 1}", 1.25e-5);
  add(&report, "{M: 2}", 0.1);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_bench_write_json(&report, &text);
  tl_status status = tl_bench_read_json(tl_strbuf_view(&text), &again);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_uint_eq(again.results.len, 2);
  ck_assert_str_eq(again.results.items[1].bindings, "{M: 2}");
  ck_assert_str_eq(again.results.items[0].peer_note, "line\nbreak");
  ck_assert_double_eq(again.results.items[0].cold.burst.median, 1.25e-5);
  ck_assert_double_eq(again.results.items[1].warm.sustained.most, 1.2 * 0.1);
  // Half as fast, and a case that was not there.
  add(&now, "{M: 1}", 2.5e-5);
  add(&now, "{M: 3}", 1);
  tl_strbuf_clear(&text);
  ck_assert_double_eq_tol(tl_bench_compare(&again, &now, &text), 0.5, 1e-9);
  ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&text), "k {M: 1}: cold x0.500 / x0.500 warm x0.500 / x0.500"));
  ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&text), "k {M: 3}: not in the earlier run"));
  tl_bench_report_fini(&again);
  static const char *const bad[] = {"", "[]", "{\"format\": 2, \"results\": []}", "{\"format\": 1, \"results\": [{}]}"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    status = tl_bench_read_json(tl_str_from(bad[i]), &again);
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INVALID_ARGUMENT);
    tl_status_free(status);
  }
  // Nothing in common.
  tl_bench_report empty = {0};
  ck_assert(isinf(tl_bench_compare(&empty, &now, &text)));
  tl_strbuf_fini(&text);
  tl_bench_report_fini(&report);
  tl_bench_report_fini(&now);
}
END_TEST

// The product that a spec with this reference is; NULL stands for "not one".
static void expect_product(const char *reference, const char *wanted) {
  char text[1024];
  snprintf(text, sizeof text,
           "kernel: k\nparams: {M: 8, N: 8, K: 8}\nargs:\n  A: in f16[M, K]\n  B: in f16[K, N]\n  C: out f16[M, N]\n"
           "grid:\n  b: 1\nbody:\n  - sync:\ncheck:\n  reference:\n    - %s\n",
           reference);
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  uint32_t source = tl_sources_add(&sources, "k.yaml", tl_str_from(text));
  tl_spec *spec = tl_spec_parse(&sources, source, &diags);
  ck_assert_ptr_nonnull(spec);
  tl_bench_product p;
  char found[64] = "";
  if (!tl_bench_find_product(&spec->kernels[0], &p)) {
    snprintf(found, sizeof found, "%.*s=%.*s%s*%.*s%s", TL_STR_ARG(p.c), TL_STR_ARG(p.a), p.a_transposed ? "'" : "",
             TL_STR_ARG(p.b), p.b_transposed ? "'" : "");
  }
  ck_assert_str_eq(found, wanted);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

START_TEST(products_are_recognised) {
  expect_product("C[m, n] = sum[k](A[m, k] * B[k, n])", "C=A*B");
  expect_product("C[x, y] = sum[z](A[x, z] * B[y, z])", "C=A*B'");
  expect_product("C[m, n] = sum[k](B[k, n] * A[m, k])", "C=A*B");
  expect_product("C[m, n] = sum[k](A[k, m] * B[n, k])", "C=A'*B'");
  expect_product("C[m, n] = sum[k](B[m, k] * A[k, n])", "C=B*A");
  expect_product("C[m, n] = max(sum[k](A[m, k] * B[k, n]), 0)", "");
  expect_product("C[m, n] = max[k](A[m, k] * B[k, n])", "");
  expect_product("C[m, n] = sum[k in 0:4](A[m, k] * B[k, n])", "");
  expect_product("C[m, n] = sum[k](A[m, k] + B[k, n])", "");
  expect_product("C[m, n] = sum[k](A[m, k] * B[k, m])", "");
  expect_product("C[m, n] = sum[k](A[m, k] * B[k // 2, n])", "");
  expect_product("C[m, n] = A[m, n]", "");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("harness_bench");
  TCase *all = tcase_create("all");
  tcase_add_test(all, median_and_spread);
  tcase_add_test(all, order_is_a_permutation_and_repeats_with_its_seed);
  tcase_add_test(all, sets_cover_twice_the_cache);
  tcase_add_test(all, roofline_of_an_h200);
  tcase_add_test(all, json_round_trip_and_comparison);
  tcase_add_test(all, products_are_recognised);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
