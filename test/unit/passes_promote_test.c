// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// promote-fragments keeps what a kernel computes: kernels with fragments used in every way are run element by element
// before and after, and must leave the same tensors. Also: which of them stay in registers.
#include <check.h>
#include <stdlib.h>

#include "passes_promote_exec.h"

typedef struct promote_frame {
  test_kernel *k;
  tl_value *zero;
  tl_value *x, *y, *h;      // tensors: f32 in, f32 out, f16 in
  tl_value *s;              // shared f32 8x8
  tl_value *f, *g, *half;   // fragments 8x8: f32, f32, f16
  tl_value *row, *one_row;  // fragments: f32 [8], f32 [1, 8]
} promote_frame;

static tl_value *number(promote_frame *f, double value) {
  return tl_build_const_float(&f->k->b, tl_type_scalar(f->k->module, TL_DTYPE_F32), value);
}

static tl_value *load1(promote_frame *f, tl_value *buffer, tl_value *i) {
  return test_load(f->k, buffer, &i, 1);
}
static tl_value *load2(promote_frame *f, tl_value *buffer, tl_value *i, tl_value *j) {
  return test_load(f->k, buffer, (tl_value *[]){i, j}, 2);
}
static void store1(promote_frame *f, tl_value *value, tl_value *buffer, tl_value *i) {
  test_store(f->k, value, buffer, &i, 1);
}
static void store2(promote_frame *f, tl_value *value, tl_value *buffer, tl_value *i, tl_value *j) {
  test_store(f->k, value, buffer, (tl_value *[]){i, j}, 2);
}
static tl_value *add(promote_frame *f, tl_value *a, tl_value *b) {
  return tl_build_binary(&f->k->b, TL_OP_ADD, a, b);
}
static tl_value *less(promote_frame *f, tl_value *a, int64_t b) {
  return tl_build_cmp(&f->k->b, TL_CMP_LT, a, test_index(f->k, b));
}
static void load_f(promote_frame *f) {
  test_copy_in(f->k, f->x, f->zero, f->zero, f->f, TL_VIA_AUTO);
}
static void save(promote_frame *f, tl_value *fragment, int64_t row) {
  test_copy_out(f->k, fragment, f->y, test_index(f->k, row), f->zero);
}

static void case_copy(promote_frame *f) {
  load_f(f);
  save(f, f->f, 1);
}

static void case_transposed(promote_frame *f) {
  tl_op *in = test_copy_in(f->k, f->x, f->zero, f->zero, f->f, TL_VIA_AUTO);
  tl_op_set_ints(f->k->module, in, TL_ATTR_SRC_DIMS, (int64_t[]){1, 0}, 2);
  tl_op *out = test_copy_out(f->k, f->f, f->y, f->zero, f->zero);
  tl_op_set_ints(f->k->module, out, TL_ATTR_SRC_DIMS, (int64_t[]){1, 0}, 2);
  tl_op *step = test_copy_out(f->k, f->f, f->y, test_index(f->k, 8), f->zero);
  tl_op_set_ints(f->k->module, step, TL_ATTR_DST_STEP, (int64_t[]){2, 1}, 2);
}

static void case_cast_between(promote_frame *f) {
  load_f(f);
  test_copy_in(f->k, f->f, f->zero, f->zero, f->half, TL_VIA_AUTO);
  tl_op *turned = test_copy_in(f->k, f->half, f->zero, f->zero, f->g, TL_VIA_AUTO);
  tl_op_set_ints(f->k->module, turned, TL_ATTR_SRC_DIMS, (int64_t[]){1, 0}, 2);
  save(f, f->g, 0);
  test_copy_in(f->k, f->g, f->zero, f->zero, f->f, TL_VIA_AUTO);
  save(f, f->f, 8);
}

static void case_slices(promote_frame *f) {
  test_fill(f->k, f->f, 3.0);
  tl_value *two = test_index(f->k, 2);
  test_copy_at(f->k, f->x, f->zero, f->zero, f->f, two, two, 4, 5, TL_VIA_AUTO);
  test_copy_at(f->k, f->f, two, f->zero, f->y, f->zero, f->zero, 3, 8, TL_VIA_AUTO);
  save(f, f->f, 8);
}

static void case_padded_slice(promote_frame *f) {
  test_fill(f->k, f->f, 3.0);
  tl_op *copy =
      test_copy_at(f->k, f->x, test_index(f->k, 13), test_index(f->k, 13), f->f, f->zero, f->zero, 6, 8, TL_VIA_AUTO);
  tl_value *pad = number(f, -9.0);
  tl_op_set_group(f->k->module, copy, TL_GROUP_COPY_pad, &pad, 1);
  tl_value *limits[] = {test_index(f->k, 15), test_index(f->k, 15)};
  tl_op_set_group(f->k->module, copy, TL_GROUP_COPY_src_limits, limits, 2);
  tl_value *inner[] = {test_index(f->k, 8), test_index(f->k, 6)};
  tl_op_set_group(f->k->module, copy, TL_GROUP_COPY_dst_limits, inner, 2);
  save(f, f->f, 0);
}

static void case_row(promote_frame *f) {
  // One row of the tensor into [8] and into [1, 8].
  tl_group groups[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(f->x),    TL_GROUP_OF(test_index(f->k, 3), f->zero),
                                              TL_GROUP_EMPTY,       TL_GROUP_OF(f->row),
                                              TL_GROUP_OF(f->zero), TL_GROUP_EMPTY,
                                              TL_GROUP_EMPTY};
  tl_op *copy = tl_build(&f->k->b, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_EXTENTS, (int64_t[]){8}, 1);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_SRC_DIMS, (int64_t[]){1}, 1);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_DST_DIMS, (int64_t[]){0}, 1);
  tl_group wide[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(f->x),
                                            TL_GROUP_OF(test_index(f->k, 4), f->zero),
                                            TL_GROUP_EMPTY,
                                            TL_GROUP_OF(f->one_row),
                                            TL_GROUP_OF(f->zero, f->zero),
                                            TL_GROUP_EMPTY,
                                            TL_GROUP_EMPTY};
  copy = tl_build(&f->k->b, TL_OP_COPY, wide, NULL, 0);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_EXTENTS, (int64_t[]){8}, 1);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_SRC_DIMS, (int64_t[]){1}, 1);
  tl_op_set_ints(f->k->module, copy, TL_ATTR_DST_DIMS, (int64_t[]){1}, 1);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  // one_row[0, j]: the dim of size 1 by a constant.
  store2(f, add(f, load1(f, f->row, i), load2(f, f->one_row, f->zero, j)), f->f, i, j);
  test_close(f->k, outer);
  save(f, f->f, 0);
  tl_op *out = test_copy_out(f->k, f->one_row, f->y, test_index(f->k, 9), f->zero);
  (void)out;
}

static void case_statements_in_order(promote_frame *f) {
  load_f(f);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  store2(f, add(f, load2(f, f->f, i, j), number(f, 1.0)), f->f, i, j);
  store2(f, add(f, load2(f, f->f, i, j), load2(f, f->f, i, j)), f->f, i, j);
  store2(f, load2(f, f->f, i, j), f->y, i, j);
  test_close(f->k, outer);
  save(f, f->f, 8);
}

static void case_masked(promote_frame *f) {
  load_f(f);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  tl_builder branch = test_open_if(f->k, tl_build_cmp(&f->k->b, TL_CMP_LT, i, j));
  store2(f, number(f, 7.0), f->f, i, j);
  tl_builder inner = test_open_if(f->k, less(f, i, 3));
  store2(f, add(f, load2(f, f->f, i, j), number(f, 0.5)), f->f, i, j);
  test_close(f->k, inner);
  test_close(f->k, branch);
  test_close(f->k, outer);
  save(f, f->f, 0);
}

static void case_part_of_tile(promote_frame *f) {
  load_f(f);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 5, 3, &i, &j, &outer);
  store2(f, add(f, load2(f, f->f, i, j), number(f, 100.0)), f->f, i, j);
  store2(f, load2(f, f->f, i, j), f->y, add(f, i, test_index(f->k, 8)), j);
  test_close(f->k, outer);
  save(f, f->f, 0);
}

static void case_serial_inside(promote_frame *f) {
  load_f(f);
  tl_value *i, *j, *n;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  tl_builder loop = test_open_for(f->k, f->zero, tl_index_add(&f->k->b, i, j), test_index(f->k, 1), 0, &n);
  store2(f, add(f, load2(f, f->f, i, j), number(f, 0.25)), f->f, i, j);
  tl_builder branch = test_open_if(f->k, less(f, n, 2));
  store2(f, load2(f, f->f, i, j), f->g, i, j);
  test_close(f->k, branch);
  test_close(f->k, loop);
  test_close(f->k, outer);
  save(f, f->f, 0);
  save(f, f->g, 8);
}

static void case_block_control(promote_frame *f) {
  test_fill(f->k, f->f, 1.0);
  tl_value *n;
  tl_builder loop = test_open_for(f->k, f->zero, test_index(f->k, 4), test_index(f->k, 1), 0, &n);
  tl_builder branch = test_open_if(f->k, less(f, n, 2));
  test_copy_in(f->k, f->x, n, f->zero, f->f, TL_VIA_AUTO);
  test_close(f->k, branch);
  test_copy_in(f->k, f->f, f->zero, f->zero, f->g, TL_VIA_AUTO);
  test_close(f->k, loop);
  save(f, f->f, 0);
  save(f, f->g, 8);
}

static void case_gemm(promote_frame *f) {
  test_copy_in(f->k, f->x, f->zero, f->zero, f->s, TL_VIA_AUTO);
  load_f(f);
  test_gemm(f->k, f->g, f->f, f->s);
  tl_op_set_unit(f->k->module, f->k->b.block->last, TL_ATTR_CLEAR);
  test_gemm(f->k, f->g, f->s, f->s);
  save(f, f->g, 0);
}

static void case_unwritten(promote_frame *f) {
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  tl_builder branch = test_open_if(f->k, less(f, j, 4));
  store2(f, number(f, 2.0), f->f, i, j);
  test_close(f->k, branch);
  test_close(f->k, outer);
  test_copy_at(f->k, f->f, f->zero, f->zero, f->y, f->zero, f->zero, 8, 4, TL_VIA_AUTO);
}

static void case_two_ways(promote_frame *f) {
  load_f(f);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  store2(f, add(f, load2(f, f->f, i, j), load2(f, f->f, j, i)), f->g, i, j);
  test_close(f->k, outer);
  save(f, f->g, 0);
}

// ---- what cannot stay in registers

static void case_reversed(promote_frame *f) {
  load_f(f);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  tl_value *mirrored = tl_build_binary(&f->k->b, TL_OP_SUB, test_index(f->k, 7), j);
  store2(f, load2(f, f->f, i, mirrored), f->g, i, j);
  test_close(f->k, outer);
  save(f, f->g, 0);
}

static void case_inner_sum(promote_frame *f) {
  load_f(f);
  test_fill(f->k, f->row, 0.0);
  tl_value *i, *j, *n;
  tl_builder outer;
  test_open_parallel(f->k, 8, 1, &i, &j, &outer);
  tl_builder loop = test_open_for(f->k, f->zero, test_index(f->k, 8), test_index(f->k, 1), 0, &n);
  store1(f, add(f, load1(f, f->row, i), load2(f, f->f, i, n)), f->row, i);
  test_close(f->k, loop);
  store2(f, load1(f, f->row, i), f->y, i, j);
  test_close(f->k, outer);
}

static void case_chosen_column(promote_frame *f) {
  load_f(f);
  test_fill(f->k, f->row, 0.0);
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  tl_builder branch = test_open_if(f->k, tl_build_cmp(&f->k->b, TL_CMP_EQ, j, test_index(f->k, 5)));
  store1(f, load2(f, f->f, i, j), f->row, i);
  test_close(f->k, branch);
  test_close(f->k, outer);
  test_open_parallel(f->k, 8, 8, &i, &j, &outer);
  store2(f, load1(f, f->row, i), f->y, i, j);
  test_close(f->k, outer);
}

static void case_demoted_accumulator(promote_frame *f) {
  case_reversed(f);
  test_copy_in(f->k, f->x, f->zero, f->zero, f->s, TL_VIA_AUTO);
  test_gemm(f->k, f->f, f->s, f->s);
  save(f, f->f, 8);
}

static void case_part_to_fragment(promote_frame *f) {
  load_f(f);
  test_fill(f->k, f->g, 1.0);
  tl_value *two = test_index(f->k, 2);
  test_copy_at(f->k, f->f, two, f->zero, f->g, f->zero, two, 4, 4, TL_VIA_AUTO);
  save(f, f->g, 0);
}

typedef struct promote_case {
  const char *name;
  void (*build)(promote_frame *frame);
  int demoted;  // fragments that end in shared memory
} promote_case;

static const promote_case cases[] = {
    {"copy", case_copy, 0},
    {"transposed copies and steps", case_transposed, 0},
    {"casts between fragments", case_cast_between, 0},
    {"slices", case_slices, 0},
    {"padded and bounded slice", case_padded_slice, 0},
    {"rows", case_row, 0},
    {"statements in order", case_statements_in_order, 0},
    {"masked writes", case_masked, 0},
    {"a part of the tile", case_part_of_tile, 0},
    {"serial loop inside", case_serial_inside, 0},
    {"for and if around tiles", case_block_control, 0},
    {"gemm", case_gemm, 0},
    {"never written elements", case_unwritten, 0},
    {"indexed two ways", case_two_ways, 0},
    {"mirrored", case_reversed, 1},
    {"sum over a serial index", case_inner_sum, 1},
    {"one column chosen", case_chosen_column, 1},
    {"demoted accumulator", case_demoted_accumulator, 1},
    {"part of a fragment to another", case_part_to_fragment, 1},
};
enum { NUM_CASES = sizeof(cases) / sizeof(cases[0]) };

static void count_fragments(tl_op *op, void *user) {
  int *counts = user;
  if (op->code != TL_OP_ALLOC) return;
  if (op->results[0].type->scope == TL_SCOPE_FRAGMENT) counts[0]++;
  if (op->results[0].type->scope == TL_SCOPE_SHARED) counts[1]++;
}

START_TEST(results_are_kept) {
  const promote_case *which = &cases[_i];
  test_kernel k;
  test_kernel_init(&k);
  promote_frame f = {.k = &k};
  f.zero = test_index(&k, 0);
  f.x = test_tensor(&k, "X", 0, TL_DTYPE_F32, 16, 16, TL_ACCESS_IN);
  f.y = test_tensor(&k, "Y", 1, TL_DTYPE_F32, 24, 16, TL_ACCESS_OUT);
  f.s = test_tile(&k, "s", TL_SCOPE_SHARED, TL_DTYPE_F32, 8, 8);
  f.f = test_tile(&k, "f", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 8, 8);
  f.g = test_tile(&k, "g", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 8, 8);
  f.half = test_tile(&k, "half", TL_SCOPE_FRAGMENT, TL_DTYPE_F16, 8, 8);
  f.row = test_tile(&k, "row", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 8, 0);
  f.one_row = test_tile(&k, "one_row", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 1, 8);
  which->build(&f);
  test_kernel_end(&k);
  tl_strbuf before, after;
  tl_strbuf_init(&before);
  tl_strbuf_init(&after);
  elem_kernel(k.module, &before);
  const char *failure = test_run(&k, tl_pass_promote_fragments);
  ck_assert_msg(failure == NULL, "%s: %s", which->name, failure);
  if (getenv("TL_TEST_PRINT")) test_print(&k);
  elem_kernel(k.module, &after);
  ck_assert_msg(strcmp(tl_strbuf_c(&before), tl_strbuf_c(&after)) == 0, "%s: other results\n%s\n%s", which->name,
                tl_strbuf_c(&before), tl_strbuf_c(&after));
  int counts[2] = {0, 0};
  tl_walk(k.kernel, count_fragments, counts);
  ck_assert_msg(counts[0] == 0, "%s: a fragment buffer is left", which->name);
  ck_assert_msg(counts[1] == 1 + which->demoted, "%s: %d shared tiles", which->name, counts[1]);
  ck_assert_int_eq((int)k.diags.list.len, which->demoted);
  tl_strbuf_fini(&before);
  tl_strbuf_fini(&after);
  test_kernel_fini(&k);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("promote");
  TCase *tcase = tcase_create("promote");
  tcase_add_loop_test(tcase, results_are_kept, 0, NUM_CASES);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
