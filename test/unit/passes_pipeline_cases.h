// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of every shape that pipelining must get right. Each case builds a kernel whose loop runs `trips` iterations,
// known when compiled or (`is_dynamic`) only when launched, with `stages` buffers.
#ifndef TL_TEST_UNIT_PASSES_PIPELINE_CASES_H
#define TL_TEST_UNIT_PASSES_PIPELINE_CASES_H

#include "passes_pipeline_ir.h"

typedef struct pipeline_frame {
  test_kernel *k;
  int64_t stages;
  tl_value *trips;
  tl_value *zero, *one;
  tl_value *a, *b, *c, *flags;      // tensors; c is written
  tl_value *a_s, *b_s, *x_s, *q_s;  // shared tiles
  tl_value *acc, *acc2;             // fragments
} pipeline_frame;

static inline tl_value *frame_times(pipeline_frame *f, tl_value *i, int64_t by) {
  return tl_index_mul(&f->k->b, i, test_index(f->k, by));
}

static inline tl_builder frame_loop(pipeline_frame *f, tl_value **out_i) {
  return test_open_for(f->k, f->zero, f->trips, f->one, f->stages, out_i);
}

static inline tl_op *frame_copy(pipeline_frame *f, tl_value *src, tl_value *row, tl_value *dst) {
  return test_copy_in(f->k, src, row, f->zero, dst, TL_VIA_CP_ASYNC);
}

// dst[i, j] = src[i, j] + 1 through registers.
static inline void frame_convert(pipeline_frame *f, tl_value *src, tl_value *dst) {
  tl_value *i, *j;
  tl_builder outer;
  test_open_parallel(f->k, 64, 64, &i, &j, &outer);
  tl_value *index[] = {i, j};
  tl_value *value = test_load(f->k, src, index, 2);
  tl_value *one = tl_build_const_float(&f->k->b, value->type, 1.0);
  test_store(f->k, tl_build_binary(&f->k->b, TL_OP_ADD, value, one), dst, index, 2);
  test_close(f->k, outer);
}

static inline tl_value *frame_flag(pipeline_frame *f, tl_value *i) {
  tl_value *index[] = {i, f->zero};
  tl_value *value = test_load(f->k, f->flags, index, 2);
  return tl_build_cmp(&f->k->b, TL_CMP_GT, value, tl_build_const_int(&f->k->b, value->type, 0));
}

static inline void case_matmul(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_copy_after_use(pipeline_frame *f) {
  frame_copy(f, f->a, f->zero, f->a_s);
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  frame_copy(f, f->a, tl_index_add(&f->k->b, at, test_index(f->k, 64)), f->a_s);
  test_close(f->k, outer);
}

static inline void case_two_gemms(pipeline_frame *f) {
  frame_copy(f, f->a, f->zero, f->q_s);
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  test_gemm(f->k, f->acc2, f->q_s, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->q_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_block_sparse(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  tl_builder branch = test_open_if(f->k, frame_flag(f, i));
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, branch);
  test_close(f->k, outer);
}

static inline void case_if_around_copy(pipeline_frame *f) {
  frame_copy(f, f->a, f->zero, f->a_s);
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  tl_builder branch = test_open_if(f->k, frame_flag(f, i));
  frame_copy(f, f->a, at, f->a_s);
  test_close(f->k, branch);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_two_ifs(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  tl_value *flag = frame_flag(f, i);
  tl_builder branch = test_open_if(f->k, flag);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_close(f->k, branch);
  branch = test_open_if(f->k, flag);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, branch);
  test_close(f->k, outer);
}

static inline void case_parallel_between(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->q_s);
  frame_convert(f, f->q_s, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_parallel_producer(pipeline_frame *f) {
  tl_value *k;
  tl_builder outer = frame_loop(f, &k);
  tl_value *at = frame_times(f, k, 64);
  tl_value *i, *j;
  tl_builder body;
  tl_op *gather = test_open_parallel(f->k, 64, 64, &i, &j, &body);
  tl_op_set_int(f->k->module, gather, TL_ATTR_VIA, TL_VIA_CP_ASYNC);
  tl_value *from[] = {tl_index_add(&f->k->b, at, i), j};
  tl_value *to[] = {i, j};
  test_store(f->k, test_load(f->k, f->a, from, 2), f->a_s, to, 2);
  test_close(f->k, body);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_read_after_loop(pipeline_frame *f) {
  frame_copy(f, f->a, f->zero, f->a_s);
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
  test_gemm(f->k, f->acc, f->a_s, f->a_s);
}

static inline void case_overwritten(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  frame_copy(f, f->b, at, f->a_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_two_loops(pipeline_frame *f) {
  case_matmul(f);
  f->stages++;
  case_matmul(f);
  f->stages--;
}

static inline void case_nested(pipeline_frame *f) {
  tl_value *o;
  tl_builder outer = test_open_for(f->k, f->zero, test_index(f->k, 3), f->one, 0, &o);
  case_matmul(f);
  test_close(f->k, outer);
}

static inline void case_nested_pipelines(pipeline_frame *f) {
  tl_value *o;
  tl_builder outer = test_open_for(f->k, f->zero, test_index(f->k, 3), f->one, 2, &o);
  frame_copy(f, f->a, frame_times(f, o, 128), f->q_s);
  case_matmul(f);
  test_gemm(f->k, f->acc, f->q_s, f->q_s);
  test_close(f->k, outer);
}

static inline void case_bounds(pipeline_frame *f) {
  tl_value *i;
  tl_value *upper = tl_index_add(&f->k->b, tl_index_mul(&f->k->b, f->trips, test_index(f->k, 3)), test_index(f->k, 2));
  tl_builder outer = test_open_for(f->k, test_index(f->k, 2), upper, test_index(f->k, 3), f->stages, &i);
  frame_copy(f, f->a, i, f->a_s);
  frame_copy(f, f->b, i, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_downwards(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = test_open_for(f->k, f->trips, f->zero, test_index(f->k, -1), f->stages, &i);
  frame_copy(f, f->a, i, f->a_s);
  frame_copy(f, f->b, i, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_never_consumed(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  frame_copy(f, f->a, i, f->a_s);
  test_close(f->k, outer);
}

static inline void case_modified(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_convert(f, f->a_s, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_half_copies(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  test_copy_at(f->k, f->a, at, f->zero, f->a_s, f->zero, f->zero, 32, 64, TL_VIA_CP_ASYNC);
  test_copy_at(f->k, f->b, at, f->zero, f->a_s, test_index(f->k, 32), f->zero, 32, 64, TL_VIA_CP_ASYNC);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

// Nobody fills the second half.
static inline void case_one_half(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  test_copy_at(f->k, f->a, at, f->zero, f->a_s, f->zero, f->zero, 32, 64, TL_VIA_CP_ASYNC);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

// A page for each iteration of an inner loop: it, or under a condition what another tensor holds.
static inline void case_pages(pipeline_frame *f) {
  tl_value *i, *p;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64), *flag = frame_flag(f, i);
  tl_builder pages = test_open_for(f->k, f->zero, test_index(f->k, 4), f->one, 0, &p);
  tl_value *row = frame_times(f, p, 16), *from = tl_index_add(&f->k->b, at, row);
  test_copy_at(f->k, f->a, from, f->zero, f->a_s, row, f->zero, 16, 64, TL_VIA_CP_ASYNC);
  test_close(f->k, pages);
  tl_builder branch = test_open_if(f->k, flag);
  test_copy_at(f->k, f->b, at, f->zero, f->b_s, f->zero, f->zero, 32, 64, TL_VIA_CP_ASYNC);
  test_close(f->k, branch);
  test_copy_at(f->k, f->a, at, f->zero, f->b_s, test_index(f->k, 32), f->zero, 32, 64, TL_VIA_CP_ASYNC);
  branch = test_open_if(f->k, flag);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, branch);
  test_close(f->k, outer);
}

// Threads clear a tile of which copies then fill half, and fill another one's second half.
static inline void case_beside_threads(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  test_fill(f->k, f->a_s, 0.0);
  test_copy_at(f->k, f->a, at, f->zero, f->a_s, f->zero, f->zero, 32, 64, TL_VIA_CP_ASYNC);
  test_copy_at(f->k, f->b, at, f->zero, f->b_s, f->zero, f->zero, 32, 64, TL_VIA_CP_ASYNC);
  test_copy_at(f->k, f->a, at, f->zero, f->b_s, test_index(f->k, 32), f->zero, 32, 64, TL_VIA_AUTO);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_close(f->k, outer);
}

static inline void case_source_written(pipeline_frame *f) {
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->c, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, f->a_s, f->b_s);
  test_copy_at(f->k, f->b_s, f->zero, f->zero, f->c, at, f->zero, 64, 64, TL_VIA_AUTO);
  test_close(f->k, outer);
}

static inline void case_viewed(pipeline_frame *f) {
  tl_value *i;
  tl_group groups[] = {TL_GROUP_OF(f->a_s), TL_GROUP_OF(test_index(f->k, 64), test_index(f->k, 64))};
  tl_op *view = tl_build(&f->k->b, TL_OP_VIEW, groups, &f->a_s->type, 1);
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  frame_copy(f, f->b, at, f->b_s);
  test_gemm(f->k, f->acc, tl_op_result(view, 0), f->b_s);
  test_close(f->k, outer);
}

static inline void case_staged_through_registers(pipeline_frame *f) {
  // A tile that only in-order statements write, used by the next iteration: its barriers cross the back edge.
  test_fill(f->k, f->x_s, 0.0);
  tl_value *i;
  tl_builder outer = frame_loop(f, &i);
  tl_value *at = frame_times(f, i, 64);
  frame_copy(f, f->a, at, f->a_s);
  test_gemm(f->k, f->acc, f->a_s, f->x_s);
  frame_convert(f, f->a_s, f->x_s);
  test_close(f->k, outer);
}

typedef struct pipeline_case {
  const char *name;
  void (*build)(pipeline_frame *frame);
  int rings;  // that a kernel of two or more stages gets
} pipeline_case;

static const pipeline_case pipeline_cases[] = {
    {"matmul", case_matmul, 1},
    {"copy after its use", case_copy_after_use, 1},
    {"two gemms", case_two_gemms, 2},
    {"block sparsity", case_block_sparse, 1},
    {"if around a copy", case_if_around_copy, 1},
    {"two ifs of one condition", case_two_ifs, 1},
    {"parallel between", case_parallel_between, 2},
    {"parallel producer", case_parallel_producer, 1},
    {"read after the loop", case_read_after_loop, 1},
    {"overwritten in the iteration", case_overwritten, 1},
    {"two loops share tiles", case_two_loops, 2},
    {"nested in a serial loop", case_nested, 1},
    {"nested pipelines", case_nested_pipelines, 2},
    {"bounds and step", case_bounds, 1},
    {"downwards", case_downwards, 1},
    {"never consumed", case_never_consumed, 0},
    {"modified after the copy", case_modified, 1},
    {"half copies", case_half_copies, 1},
    {"source written in the loop", case_source_written, 1},
    {"read through a view", case_viewed, 1},
    {"in-order tile", case_staged_through_registers, 1},
    {"one half", case_one_half, 1},
    {"pages", case_pages, 1},
    {"beside threads", case_beside_threads, 1},
};
enum { NUM_PIPELINE_CASES = sizeof(pipeline_cases) / sizeof(pipeline_cases[0]) };

// The kernel of a case, promoted: what pipeline starts from.
static inline void build_pipeline_case(test_kernel *k, const pipeline_case *which, int64_t stages, int64_t trips,
                                       bool is_dynamic) {
  test_kernel_init(k);
  pipeline_frame f = {.k = k, .stages = stages};
  tl_value *dynamic = test_dynamic(k, "n");
  f.trips = is_dynamic ? dynamic : test_index(k, trips);
  f.zero = test_index(k, 0);
  f.one = test_index(k, 1);
  f.a = test_tensor(k, "A", 0, TL_DTYPE_F16, 4096, 64, TL_ACCESS_IN);
  f.b = test_tensor(k, "B", 1, TL_DTYPE_F16, 4096, 64, TL_ACCESS_IN);
  f.flags = test_tensor(k, "flags", 2, TL_DTYPE_I32, 4096, 1, TL_ACCESS_IN);
  f.c = test_tensor(k, "C", 3, TL_DTYPE_F16, 4096, 64, TL_ACCESS_INOUT);
  f.a_s = test_tile(k, "A_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  f.b_s = test_tile(k, "B_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  f.x_s = test_tile(k, "X_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  f.q_s = test_tile(k, "Q_s", TL_SCOPE_SHARED, TL_DTYPE_F16, 64, 64);
  f.acc = test_tile(k, "acc", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 64, 64);
  f.acc2 = test_tile(k, "acc2", TL_SCOPE_FRAGMENT, TL_DTYPE_F32, 64, 64);
  test_fill(k, f.acc, 0.0);
  test_fill(k, f.acc2, 0.0);
  which->build(&f);
  test_copy_out(k, f.acc, f.c, f.zero, f.zero);
  test_copy_out(k, f.acc2, f.c, test_index(k, 64), f.zero);
  test_kernel_end(k);
}

#endif
