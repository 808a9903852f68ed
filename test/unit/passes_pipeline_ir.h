// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels as tile IR for the tests of promote-fragments, pipeline, place-barriers, lower-rings and plan-shared.
#ifndef TL_TEST_UNIT_PASSES_PIPELINE_IR_H
#define TL_TEST_UNIT_PASSES_PIPELINE_IR_H

#include <stdio.h>
#include <string.h>

#include "ir/index/affine.h"
#include "ir/ir.h"
#include "ir/target.h"
#include "ir/text/text.h"
#include "passes/manager/passes.h"

// A kernel under construction: `b` inserts into its body.
typedef struct test_kernel {
  tl_module *module;
  tl_op *kernel;
  tl_builder b;
  tl_sources sources;
  tl_diags diags;
} test_kernel;

static inline void test_kernel_init(test_kernel *k) {
  tl_sources_init(&k->sources);
  tl_diags_init(&k->diags, &k->sources);
  k->diags.keep_remarks = true;
  k->module = tl_module_create();
  k->module->target = tl_target_find(TL_STR("sm_80"));
  tl_builder top;
  tl_builder_at_end(&top, k->module, k->module->body);
  top.loc = (tl_loc){0};
  k->kernel = tl_build(&top, TL_OP_KERNEL, NULL, NULL, 0);
  tl_op_set_str(k->module, k->kernel, TL_ATTR_NAME, TL_STR("k"));
  tl_op_set_int(k->module, k->kernel, TL_ATTR_THREADS, 128);
  tl_builder_at_end(&k->b, k->module, k->kernel->regions[0]);
  k->b.loc = (tl_loc){0};
}

static inline void test_kernel_fini(test_kernel *k) {
  tl_module_destroy(k->module);
  tl_diags_fini(&k->diags);
  tl_sources_fini(&k->sources);
}

static inline void test_kernel_end(test_kernel *k) {
  tl_build_yield(&k->b, NULL, 0);
}

static inline tl_value *test_index(test_kernel *k, int64_t value) {
  return tl_build_index(&k->b, value);
}

static inline tl_value *test_dynamic(test_kernel *k, const char *name) {
  const tl_type *type = tl_type_index(k->module);
  tl_op *op = tl_build(&k->b, TL_OP_DYN_PARAM, NULL, &type, 1);
  tl_op_set_str(k->module, op, TL_ATTR_NAME, tl_str_from(name));
  return tl_op_result(op, 0);
}

static inline tl_value *test_tensor(test_kernel *k, const char *name, int arg, tl_dtype dtype, int64_t rows,
                                    int64_t cols, int access) {
  const tl_type *type = tl_type_buffer(k->module, TL_SCOPE_GLOBAL, dtype, (int64_t[]){rows, cols}, 2);
  tl_group groups[] = {TL_GROUP_OF(test_index(k, rows), test_index(k, cols)),
                       TL_GROUP_OF(test_index(k, cols), test_index(k, 1))};
  tl_op *op = tl_build(&k->b, TL_OP_TENSOR, groups, &type, 1);
  tl_op_set_str(k->module, op, TL_ATTR_NAME, tl_str_from(name));
  tl_op_set_int(k->module, op, TL_ATTR_ARG, arg);
  tl_op_set_int(k->module, op, TL_ATTR_ACCESS, access);
  tl_op_set_int(k->module, op, TL_ATTR_ALIGN, 16);
  tl_op_result(op, 0)->name = tl_module_intern(k->module, tl_str_from(name));
  return tl_op_result(op, 0);
}

static inline tl_value *test_tile(test_kernel *k, const char *name, int scope, tl_dtype dtype, int64_t rows,
                                  int64_t cols) {
  int64_t dims[] = {rows, cols};
  const tl_type *type = tl_type_buffer(k->module, scope, dtype, dims, cols ? 2 : 1);
  tl_op *op = tl_build(&k->b, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(k->module, op, TL_ATTR_NAME, tl_str_from(name));
  tl_op_result(op, 0)->name = tl_module_intern(k->module, tl_str_from(name));
  return tl_op_result(op, 0);
}

// copy src[r, c] -> dst (whole), both of rank 2; `via` as tl_via.
static inline tl_op *test_copy_at(test_kernel *k, tl_value *src, tl_value *sr, tl_value *sc, tl_value *dst,
                                  tl_value *dr, tl_value *dc, int64_t rows, int64_t cols, int via) {
  tl_group groups[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(src), TL_GROUP_OF(sr, sc), TL_GROUP_EMPTY,
                                              TL_GROUP_OF(dst), TL_GROUP_OF(dr, dc), TL_GROUP_EMPTY,
                                              TL_GROUP_EMPTY};
  tl_op *op = tl_build(&k->b, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(k->module, op, TL_ATTR_EXTENTS, (int64_t[]){rows, cols}, 2);
  tl_op_set_ints(k->module, op, TL_ATTR_SRC_DIMS, (int64_t[]){0, 1}, 2);
  tl_op_set_ints(k->module, op, TL_ATTR_DST_DIMS, (int64_t[]){0, 1}, 2);
  if (via != TL_VIA_AUTO) tl_op_set_int(k->module, op, TL_ATTR_VIA, via);
  return op;
}

static inline tl_op *test_copy_in(test_kernel *k, tl_value *src, tl_value *r, tl_value *c, tl_value *dst, int via) {
  return test_copy_at(k, src, r, c, dst, test_index(k, 0), test_index(k, 0), dst->type->dims[0], dst->type->dims[1],
                      via);
}

static inline tl_op *test_copy_out(test_kernel *k, tl_value *src, tl_value *dst, tl_value *r, tl_value *c) {
  return test_copy_at(k, src, test_index(k, 0), test_index(k, 0), dst, r, c, src->type->dims[0], src->type->dims[1],
                      TL_VIA_AUTO);
}

static inline tl_op *test_gemm(test_kernel *k, tl_value *acc, tl_value *a, tl_value *b) {
  tl_group groups[] = {TL_GROUP_OF(acc), TL_GROUP_OF(a), TL_GROUP_OF(b), TL_GROUP_EMPTY};
  return tl_build(&k->b, TL_OP_GEMM, groups, NULL, 0);
}

static inline tl_op *test_fill(test_kernel *k, tl_value *tile, double value) {
  tl_value *scalar = tl_build_const_float(&k->b, tl_type_scalar(k->module, tile->type->dtype), value);
  tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(scalar)};
  return tl_build(&k->b, TL_OP_FILL, groups, NULL, 0);
}

// Opens a for; the builder moves into its body. The outer builder is returned for test_close.
static inline tl_builder test_open_for(test_kernel *k, tl_value *lower, tl_value *upper, tl_value *step, int64_t stages,
                                       tl_value **out_index) {
  tl_group groups[] = {TL_GROUP_OF(lower), TL_GROUP_OF(upper), TL_GROUP_OF(step), TL_GROUP_EMPTY};
  tl_op *loop = tl_build(&k->b, TL_OP_FOR, groups, NULL, 0);
  if (stages > 0) {
    tl_op_set_unit(k->module, loop, TL_ATTR_PIPELINED);
    tl_op_set_int(k->module, loop, TL_ATTR_STAGES, stages);
  }
  *out_index = tl_block_add_arg(k->module, loop->regions[0], tl_type_index(k->module), "i");
  tl_builder outer = k->b;
  tl_builder_at_end(&k->b, k->module, loop->regions[0]);
  k->b.loc = (tl_loc){0};
  return outer;
}

static inline tl_builder test_open_if(test_kernel *k, tl_value *condition) {
  tl_group groups[] = {TL_GROUP_OF(condition)};
  tl_op *branch = tl_build(&k->b, TL_OP_IF, groups, NULL, 0);
  tl_op_set_unit(k->module, branch, TL_ATTR_UNIFORM);
  tl_builder inner = k->b;
  tl_builder_at_end(&inner, k->module, branch->regions[1]);
  inner.loc = (tl_loc){0};
  tl_build_yield(&inner, NULL, 0);
  tl_builder outer = k->b;
  tl_builder_at_end(&k->b, k->module, branch->regions[0]);
  k->b.loc = (tl_loc){0};
  return outer;
}

static inline tl_op *test_open_parallel(test_kernel *k, int64_t rows, int64_t cols, tl_value **out_i, tl_value **out_j,
                                        tl_builder *out_outer) {
  tl_op *op = tl_build(&k->b, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(k->module, op, TL_ATTR_EXTENTS, (int64_t[]){rows, cols}, 2);
  *out_i = tl_block_add_arg(k->module, op->regions[0], tl_type_index(k->module), "i");
  *out_j = tl_block_add_arg(k->module, op->regions[0], tl_type_index(k->module), "j");
  *out_outer = k->b;
  tl_builder_at_end(&k->b, k->module, op->regions[0]);
  k->b.loc = (tl_loc){0};
  return op;
}

static inline void test_close(test_kernel *k, tl_builder outer) {
  tl_build_yield(&k->b, NULL, 0);
  k->b = outer;
}

static inline tl_value *test_load(test_kernel *k, tl_value *buffer, tl_value *const *index, uint32_t rank) {
  tl_group groups[] = {TL_GROUP_OF(buffer), {index, rank}, TL_GROUP_EMPTY};
  const tl_type *type = tl_type_scalar(k->module, buffer->type->dtype);
  return tl_op_result(tl_build(&k->b, TL_OP_LOAD, groups, &type, 1), 0);
}

static inline tl_op *test_store(test_kernel *k, tl_value *value, tl_value *buffer, tl_value *const *index,
                                uint32_t rank) {
  tl_group groups[] = {TL_GROUP_OF(value), TL_GROUP_OF(buffer), {index, rank}};
  return tl_build(&k->b, TL_OP_STORE, groups, NULL, 0);
}

// Runs one pass; the status' text (or NULL) is what it failed with. free() is not needed: it lives in a static buffer.
static inline const char *test_run(test_kernel *k, tl_pass_fn *pass) {
  static char text[4096];
  tl_pass_context context = {.module = k->module, .target = k->module->target, .diags = &k->diags};
  tl_arena_init(&context.scratch);
  tl_status status = pass(&context);
  tl_arena_fini(&context.scratch);
  if (status == TL_OK) return NULL;
  snprintf(text, sizeof(text), "%s", tl_status_message(status));
  tl_status_free(status);
  return text;
}

typedef struct test_count {
  tl_opcode code;
  int count;
  tl_op *first;
} test_count;

static inline void test_count_visit(tl_op *op, void *user) {
  test_count *count = user;
  if (op->code != count->code) return;
  if (count->count++ == 0) count->first = op;
}

static inline int test_count_ops(const test_kernel *k, tl_opcode code) {
  test_count count = {.code = code};
  tl_walk(k->kernel, test_count_visit, &count);
  return count.count;
}

static inline tl_op *test_first_op(const test_kernel *k, tl_opcode code) {
  test_count count = {.code = code};
  tl_walk(k->kernel, test_count_visit, &count);
  return count.first;
}

static inline void test_print(const test_kernel *k) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_module_print(k->module, &text);
  fputs(tl_strbuf_c(&text), stderr);
  tl_strbuf_fini(&text);
}

#endif
