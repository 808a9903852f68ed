// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipelined matrix product under every landing and order, its speed, and what leaving out one synchronisation does.
#include <math.h>

#include "emulator_util.h"
#include "support/dtype.h"

typedef struct problem {
  int32_t m, n, k;
  uint16_t *a, *b;
  float *c;
} problem;

static problem make_problem(tl_dtype dtype, int32_t m, int32_t n, int32_t k) {
  problem p = {m,
               n,
               k,
               tl_emu_alloc((size_t)(m * k) * 2, 16),
               tl_emu_alloc((size_t)(k * n) * 2, 16),
               tl_emu_alloc((size_t)(m * n) * 4, 16)};
  uint32_t state = 7;
  for (int32_t i = 0; i < m * k + k * n; i++) {
    state = state * 1664525u + 1013904223u;
    double value = (double)(state >> 8) / (1 << 24) - 0.5;
    tl_dtype_store_float(dtype, i < m * k ? p.a : p.b, (uint64_t)(i < m * k ? i : i - m * k), value);
  }
  return p;
}

static void free_problem(problem *p) {
  tl_emu_free(p->a);
  tl_emu_free(p->b);
  tl_emu_free(p->c);
}

static tl_status launch(tl_emu_kernel *kernel, problem *p, const tl_emu_options *options, tl_emu_stats *stats) {
  uint32_t grid[3] = {(uint32_t)p->n / 64, (uint32_t)p->m / 64, 1};
  memset(p->c, 0xff, (size_t)(p->m * p->n) * 4);
  return tl_emu_launch(kernel, grid, (void *[]){&p->a, &p->b, &p->c, &p->m, &p->n, &p->k}, options, stats);
}

// How many elements are wrong.
static int count_wrong(const problem *p, tl_dtype dtype) {
  int wrong = 0;
  double *a = malloc((size_t)(p->m * p->k) * 8), *b = malloc((size_t)(p->k * p->n) * 8);
  for (int32_t i = 0; i < p->m * p->k; i++) a[i] = tl_dtype_load_float(dtype, p->a, (uint64_t)i);
  for (int32_t i = 0; i < p->k * p->n; i++) b[i] = tl_dtype_load_float(dtype, p->b, (uint64_t)i);
  for (int32_t i = 0; i < p->m; i++) {
    for (int32_t j = 0; j < p->n; j++) {
      double sum = 0;
      for (int32_t k = 0; k < p->k; k++) sum += a[i * p->k + k] * b[k * p->n + j];
      wrong += !(fabs(sum - (double)p->c[i * p->n + j]) < 1e-4);
    }
  }
  free(a);
  free(b);
  return wrong;
}

// test/emulator/gemm.ll as text; free() it.
static char *read_kernel(void) {
  FILE *file = fopen("test/emulator/gemm.ll", "r");
  ck_assert_ptr_nonnull(file);
  char *text = calloc(1, 1 << 18);
  size_t len = fread(text, 1, (1 << 18) - 1, file);
  ck_assert(len > 0 && len < (1 << 18) - 1);
  fclose(file);
  return text;
}

static void replace_all(char *text, const char *from, const char *to) {
  size_t from_len = strlen(from), to_len = strlen(to);
  ck_assert(to_len <= from_len && strstr(text, from));
  for (char *at = text; (at = strstr(at, from)); at += to_len) {
    memcpy(at, to, to_len);
    memmove(at + to_len, at + from_len, strlen(at + from_len) + 1);
  }
}

static void remove_line(char *text, const char *mark) {
  char *at = strstr(text, mark);
  ck_assert_ptr_nonnull(at);
  while (at > text && at[-1] != '\n') at--;
  char *end = strchr(at, '\n');
  memmove(at, end + 1, strlen(end + 1) + 1);
}

static tl_emu_kernel *make_kernel(tl_dtype dtype, const char *without, uint32_t checks) {
  char *text = read_kernel();
  if (dtype == TL_DTYPE_BF16) {
    replace_all(text, "<2 x half>", "i32");
    replace_all(text, "row.col.f32.f32", "row.col.bf16");
  }
  if (without) remove_line(text, without);
  tl_emu_kernel *kernel = NULL;
  expect_ok(create_from_text(text, "gemm", (kernel_shape){6, 128, 0, checks}, &kernel));
  free(text);
  return kernel;
}

START_TEST(right_under_every_order) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F16, TL_DTYPE_BF16};
  for (int d = 0; d < 2; d++) {
    tl_emu_kernel *kernel = make_kernel(dtypes[d], NULL, TL_EMU_SANITIZE_ALL);
    problem p = make_problem(dtypes[d], 128, 192, 160);
    for (int v = 0; v < 12; v++) {
      tl_emu_options options = {.landing = v & 1 ? TL_LANDING_EARLY : TL_LANDING_LATE,
                                .threads = 1 + v % 3,
                                .seed = (uint32_t)v / 2,
                                .checks = v % 4 ? TL_EMU_SANITIZE_ALL : 0};
      expect_ok(launch(kernel, &p, &options, NULL));
      ck_assert_int_eq(count_wrong(&p, dtypes[d]), 0);
    }
    free_problem(&p);
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

// A kernel without one of its synchronisations must come out wrong in late mode, whatever the order; the checks tell of
// it in early mode too, where the data are right under most orders.
START_TEST(seeded_bugs_show) {
  static const char *const bugs[] = {"; sync: wait", "; sync: barrier after wait", "; sync: barrier at end"};
  for (int b = 0; b < 3; b++) {
    tl_emu_kernel *kernel = make_kernel(TL_DTYPE_F16, bugs[b], TL_EMU_SANITIZE_ALL);
    problem p = make_problem(TL_DTYPE_F16, 64, 64, 128);
    for (uint32_t seed = 0; seed < 8; seed++) {
      tl_emu_options options = {.threads = 1, .seed = seed};
      expect_ok(launch(kernel, &p, &options, NULL));
      ck_assert_msg(count_wrong(&p, TL_DTYPE_F16) > 0, "without %s and with seed %u it passed", bugs[b], seed);
      options.checks = TL_EMU_SANITIZE_ALL;
      for (int landing = 0; landing < 2; landing++) {
        options.landing = landing ? TL_LANDING_EARLY : TL_LANDING_LATE;
        expect_failure(launch(kernel, &p, &options, NULL), TL_STATUS_CHECK_FAILED, ": race: ", "cp.async", NULL);
      }
    }
    free_problem(&p);
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

static int by_value(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

// Prints the median of ten launches.
static void time_launches(problem *p, uint32_t checks) {
  enum { LAUNCHES = 10 };
  tl_emu_kernel *kernel = make_kernel(TL_DTYPE_F16, NULL, checks);
  tl_emu_options options = {.threads = 1, .checks = checks};
  double seconds[LAUNCHES];
  tl_emu_stats stats;
  for (int i = 0; i < LAUNCHES; i++) {
    expect_ok(launch(kernel, p, &options, &stats));
    seconds[i] = stats.run_seconds;
  }
  qsort(seconds, LAUNCHES, sizeof seconds[0], by_value);
  double median = (seconds[LAUNCHES / 2 - 1] + seconds[LAUNCHES / 2]) / 2;
  printf(
      "matmul 256 x 256 x 256 f16, one thread, %s checks: %.1f ms (compile %.1f ms, %llu switches, %llu "
      "collectives)\n",
      checks ? "all" : "no", median * 1e3, stats.jit_seconds * 1e3, (unsigned long long)stats.switches,
      (unsigned long long)stats.collectives);
  ck_assert_int_eq(count_wrong(p, TL_DTYPE_F16), 0);
  tl_emu_kernel_destroy(kernel);
}

// Prints what launches take; only the results are asserted.
START_TEST(right_and_timed) {
  problem p = make_problem(TL_DTYPE_F16, 256, 256, 256);
  time_launches(&p, 0);
  time_launches(&p, TL_EMU_SANITIZE_ALL);
  free_problem(&p);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, right_under_every_order);
  tcase_add_test(cases, seeded_bugs_show);
  tcase_add_test(cases, right_and_timed);
}

int main(void) {
  return run_suite("emulator gemm", add_tests);
}
