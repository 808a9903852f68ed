// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of reductions and scans, over shapes, thread counts and axes: well-formed, and every thread holds the results
// of the elements that it contributed to.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/reduction.h"
#include "ir_layouts.h"

static const int32_t shapes[][3] = {{128, 128, 1}, {1, 1000, 1}, {7, 500, 1}, {24, 96, 1},
                                    {5, 6, 7},     {64, 1, 33},  {192, 64, 1}};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0], RANK = 3 };
static const int32_t thread_counts[] = {32, 64, 96, 128, 256, 352, 1024};
enum { NUM_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

typedef void layout_fn(const tl_layout *layout, int32_t threads);

static void for_each_layout(layout_fn *visit) {
  for (int s = 0; s < NUM_SHAPES; s++) {
    for (int t = 0; t < NUM_COUNTS; t++) {
      for (int32_t fast = 0; fast < RANK; fast++) {
        int32_t order[RANK] = {fast, (fast + 1) % RANK, (fast + 2) % RANK};
        int32_t vec = shapes[s][fast] % 4 == 0 ? 4 : 1;
        tl_layout layout = tl_layout_blocked(shapes[s], RANK, order, vec, thread_counts[t]);
        visit(&layout, thread_counts[t]);
      }
    }
  }
  int32_t matrix[2] = {96, 80};
  tl_layout acc = mma_acc_layout(matrix, 2, 2);
  visit(&acc, 128);
}

static void ck_well_formed(const tl_layout *layout, int32_t threads) {
  const char *problem = tl_layout_verify(layout, threads);
  ck_assert_msg(problem == NULL, "%s", problem);
}

// Whether some register of the thread holds `coord`.
static bool holds(const tl_layout *layout, int32_t lane, int32_t warp, const int32_t *coord) {
  for (int32_t reg = 0; reg < tl_layout_num_registers(layout); reg++) {
    int32_t at[TL_MAX_RANK];
    tl_layout_coord(layout, reg, lane, warp, at);
    if (memcmp(at, coord, sizeof(int32_t) * (size_t)layout->rank) == 0) return true;
  }
  return false;
}

// The parts that threads keep are a last dim, and what is left of them without it is the result of one go.
static void check_threads(const tl_layout *layout, int32_t threads, const bool *reduced, bool keep,
                          const tl_layout *result) {
  int32_t parts = tl_layout_parts(layout, reduced, TL_WITHIN_THREAD);
  tl_layout kept = tl_layout_reduce(layout, reduced, keep, TL_WITHIN_THREAD);
  ck_well_formed(&kept, threads);
  ck_assert_int_eq(tl_layout_num_registers(&kept), tl_layout_num_registers(result));
  ck_assert_int_eq(kept.rank, result->rank + (parts > 1));
  if (parts == 1) return;
  ck_assert_int_eq(kept.shape[result->rank], parts);
  bool along_parts[TL_MAX_RANK] = {false};
  along_parts[result->rank] = true;
  ck_assert_int_eq(tl_layout_parts(&kept, along_parts, TL_WITHIN_THREAD), parts);
  tl_layout last = tl_layout_reduce(&kept, along_parts, false, TL_WITHIN_BLOCK);
  ck_assert(tl_layout_equal(&last, result));
}

static void check_reduce(const tl_layout *layout, int32_t threads) {
  for (int mask = 1; mask < 1 << layout->rank; mask++) {
    for (int keep = 0; keep < 2; keep++) {
      bool reduced[TL_MAX_RANK] = {false};
      for (int32_t d = 0; d < layout->rank; d++) reduced[d] = mask >> d & 1;
      tl_layout result = tl_layout_reduce(layout, reduced, keep, TL_WITHIN_BLOCK);
      ck_well_formed(&result, threads);
      int64_t dims[TL_MAX_RANK + 1], source_dims[TL_MAX_RANK];
      for (int32_t d = 0; d < layout->rank; d++) source_dims[d] = layout->shape[d];
      ck_assert_int_eq(tl_reduced_dims(source_dims, layout->rank, reduced, keep, TL_WITHIN_BLOCK, 1, dims),
                       result.rank);
      for (int32_t d = 0; d < result.rank; d++) ck_assert_int_eq(dims[d], result.shape[d]);
      int32_t sources[TL_MAX_RANK + 1], axis = 0;
      tl_reduced_sources(layout->rank, reduced, keep, sources);
      for (int32_t thread = 0; thread < threads; thread += 37) {
        int32_t from[TL_MAX_RANK], to[TL_MAX_RANK];
        tl_layout_coord(layout, tl_layout_num_registers(layout) / 2, thread % 32, thread / 32, from);
        for (int32_t d = 0; d < result.rank; d++) to[d] = sources[d] < 0 ? 0 : from[sources[d]];
        ck_assert(holds(&result, thread % 32, thread / 32, to));
      }
      check_threads(layout, threads, reduced, keep, &result);
      if (tl_layout_parts(layout, reduced, TL_WITHIN_WARP) == 1) continue;
      tl_layout partial = tl_layout_reduce(layout, reduced, keep, TL_WITHIN_WARP);
      tl_layout gathered = tl_layout_gather_parts(layout, reduced, keep, &axis);
      ck_well_formed(&partial, threads);
      ck_well_formed(&gathered, threads);
      ck_assert_int_eq(partial.rank, gathered.rank);
      for (int32_t d = 0; d < partial.rank; d++) ck_assert_int_eq(partial.shape[d], gathered.shape[d]);
      // Reducing the parts gives the layout that a reduction in one go has.
      bool along_parts[TL_MAX_RANK] = {false};
      along_parts[axis] = true;
      ck_assert_int_eq(tl_layout_parts(&gathered, along_parts, TL_WITHIN_WARP), 1);
      tl_layout last = tl_layout_reduce(&gathered, along_parts, keep, TL_WITHIN_BLOCK);
      ck_assert(tl_layout_equal(&last, &result));
    }
  }
}

START_TEST(results_follow_their_sources) {
  for_each_layout(check_reduce);
}
END_TEST

static void check_scan(const tl_layout *layout, int32_t threads) {
  for (int32_t axis = 0; axis < layout->rank; axis++) {
    int32_t run = tl_scan_run(layout, axis), runs = tl_scan_num_runs(layout, axis);
    ck_assert_int_ge((int64_t)run * runs, layout->shape[axis]);
    tl_layout totals = tl_layout_scan_totals(layout, axis), gathered = tl_layout_scan_gather(layout, axis);
    ck_well_formed(&totals, threads);
    ck_well_formed(&gathered, threads);
    ck_assert_int_eq(totals.shape[axis], runs);
    ck_assert_int_eq(gathered.shape[axis], runs);
    for (int32_t thread = 0; thread < threads; thread += 41) {
      int32_t coord[TL_MAX_RANK];
      tl_layout_coord(layout, tl_layout_num_registers(layout) - 1, thread % 32, thread / 32, coord);
      coord[axis] /= run;
      ck_assert(holds(&totals, thread % 32, thread / 32, coord));
      for (coord[axis] = 0; coord[axis] < runs; coord[axis]++) {
        ck_assert(holds(&gathered, thread % 32, thread / 32, coord));
      }
    }
  }
}

START_TEST(runs_follow_their_sources) {
  for_each_layout(check_scan);
}
END_TEST

START_TEST(dtypes) {
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_SUM, TL_DTYPE_BF16), TL_DTYPE_F32);
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_MAX, TL_DTYPE_F64), TL_DTYPE_F64);
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_SUM, TL_DTYPE_U8), TL_DTYPE_I32);
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_BITXOR, TL_DTYPE_U32), TL_DTYPE_U32);
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_SUM, TL_DTYPE_BOOL), TL_DTYPE_I32);
  ck_assert_int_eq(tl_reduction_dtype(TL_REDUCTION_ANY, TL_DTYPE_F16), TL_DTYPE_BOOL);
  ck_assert(!tl_reduction_takes(TL_REDUCTION_BITOR, TL_DTYPE_F32));
  ck_assert(!tl_reduction_scans(TL_REDUCTION_ARGMAX));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_reduction");
  TCase *tcase = tcase_create("reduction");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, results_follow_their_sources);
  tcase_add_test(tcase, runs_follow_their_sources);
  tcase_add_test(tcase, dtypes);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
