// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// infer-layouts and select-copies over many shapes and thread counts: the verifier accepts what they choose, everything
// has a layout, and vectors follow the first register mode.
#include <check.h>
#include <stdlib.h>

#include "ir/text/text.h"
#include "passes/manager/passes.h"

static const int32_t thread_counts[] = {32, 64, 96, 128, 160, 256, 512};

static tl_module *compile(const char *text, tl_sources *sources, tl_diags *diags) {
  tl_module *module = tl_module_parse(sources, tl_sources_add(sources, "test.tir", tl_str_from(text)), diags);
  tl_strbuf printed;
  tl_strbuf_init(&printed);
  if (!module) {
    tl_diags_print_text(diags, &printed, false);
    ck_abort_msg("%s", tl_strbuf_c(&printed));
  }
  tl_pass_options options = {
      .passes = "check-bounds,infer-layouts,select-copies", .verify_each = true, .pass_limit = -1, .log = &printed};
  tl_status status = tl_passes_run(module, tl_target_find(TL_STR("sm_80")), &options, diags);
  if (status) ck_abort_msg("%s\n%s", tl_status_message(status), tl_strbuf_c(&printed));
  tl_strbuf_fini(&printed);
  return module;
}

// Tiles held together that need more registers than a thread has are an error of their own; here two are held at once.
static bool fits_registers(int32_t m, int32_t n, int32_t threads) {
  return m * n <= 112 * threads;
}

static void check_op(tl_op *op, void *user) {
  int32_t threads = *(int32_t *)user;
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (op->code == TL_OP_PARALLEL || op->code == TL_OP_COPY || op->code == TL_OP_FILL) {
    ck_assert_ptr_nonnull(layout);
    ck_assert_ptr_null(tl_layout_verify(layout, threads));
  }
  if (op->code == TL_OP_PARALLEL && tl_op_int(op, TL_ATTR_VEC, 1) > 1) {
    const tl_layout_mode *first = &layout->modes[0];
    ck_assert_int_eq(first->axis, TL_AXIS_REGISTER);
    ck_assert_int_eq(first->dim, layout->rank - 1);
    ck_assert_int_eq(first->stride, 1);
    ck_assert_int_eq(first->size % tl_op_int(op, TL_ATTR_VEC, 1), 0);
  }
  for (uint32_t i = 0; i < op->num_results; i++) {
    const tl_type *type = tl_op_result(op, i)->type;
    if (type->kind == TL_TYPE_TILE) {
      ck_assert_ptr_nonnull(type->layout);
      ck_assert_ptr_null(tl_layout_verify(type->layout, threads));
    }
  }
}

static void run_text(const char *text, int32_t threads) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_module *module = compile(text, &sources, &diags);
  tl_walk_module(module, check_op, &threads);
  tl_module_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static const char elementwise[] =
    "module scheduled\n"
    "kernel {name = \"k\", threads = %d} do {\n"
    "  %%c0 = const {value = 0} : index\n"
    "  %%c1 = const {value = 1} : index\n"
    "  %%m = const {value = %d} : index\n"
    "  %%n = const {value = %d} : index\n"
    "  %%X = tensor dims(%%m, %%n) strides(%%n, %%c1) {name = \"X\", arg = 0, access = in, align = 16} : buffer<global "
    "%s "
    "%dx%d>\n"
    "  %%Y = tensor dims(%%m, %%n) strides(%%n, %%c1) {name = \"Y\", arg = 1, access = out, align = 16} : "
    "buffer<global f32 "
    "%dx%d>\n"
    "  %%s = alloc {name = \"s\"} : buffer<shared %s %dx%d>\n"
    "  copy src(%%X) src_offsets(%%c0, %%c0) dst(%%s) dst_offsets(%%c0, %%c0) {extents = [%d, %d], src_dims = [0, 1], "
    "dst_dims = [0, 1]}\n"
    "  %%x = tile_load src(%%X) src_offsets(%%c0, %%c0) {src_dims = [0, 1]} : tile<f32 %dx%d>\n"
    "  %%y = parallel {extents = [%d, %d], maps = [0, 1]} : tile<f32 %dx%d> do(%%i: index, %%j: index) {\n"
    "    %%a = load buffer(%%s) index(%%i, %%j) : %s\n"
    "    %%b = extract tile(%%x) index(%%i, %%j) : f32\n"
    "    %%c = cast %%a : f32\n"
    "    %%d = add %%b, %%c : f32\n"
    "    yield %%d\n"
    "  }\n"
    "  tile_store tile(%%y) dst(%%Y) dst_offsets(%%c0, %%c0) {dst_dims = [0, 1]}\n"
    "}\n";

START_TEST(elementwise_shapes) {
  static const int32_t sizes[][2] = {{1, 1},   {1, 1000}, {7, 5},  {16, 16},   {17, 33},
                                     {64, 64}, {24, 176}, {96, 8}, {128, 256}, {3, 1001}};
  int32_t threads = thread_counts[_i];
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (int wide = 0; wide < 2; wide++) {
      int32_t m = sizes[s][0], n = sizes[s][1];
      if (!fits_registers(m, n, threads)) continue;
      const char *dtype = wide ? "f64" : "f16";
      char text[8192];
      snprintf(text, sizeof text, elementwise, threads, m, n, dtype, m, n, m, n, dtype, m, n, m, n, m, n, m, n, m, n,
               dtype);
      run_text(text, threads);
    }
  }
}
END_TEST

static const char product[] =
    "module scheduled\n"
    "kernel {name = \"k\", threads = %d} do {\n"
    "  %%c0 = const {value = 0} : index\n"
    "  %%c1 = const {value = 1} : index\n"
    "  %%m = const {value = %d} : index\n"
    "  %%n = const {value = %d} : index\n"
    "  %%Y = tensor dims(%%n, %%m) strides(%%m, %%c1) {name = \"Y\", arg = 0, access = out, align = 16} : "
    "buffer<global f16 "
    "%dx%d>\n"
    "  %%a = alloc {name = \"a\"} : buffer<shared f16 %dx32>\n"
    "  %%b = alloc {name = \"b\"} : buffer<shared f16 32x%d>\n"
    "  %%zero = const {value = 0.0} : f32\n"
    "  %%start = splat %%zero : tile<f32 %dx%d>\n"
    "  %%p = gemm %%start, %%a, %%b {inst = mma.m16n8k16.f32.f16.f16, warps = [%d, %d]} : tile<f32 %dx%d>\n"
    "  %%q = parallel {extents = [%d, %d], maps = [1, 0]} : tile<f32 %dx%d> do(%%i: index, %%j: index) {\n"
    "    %%x = extract tile(%%p) index(%%i, %%j) : f32\n"
    "    yield %%x\n"
    "  }\n"
    "  tile_store tile(%%q) dst(%%Y) dst_offsets(%%c0, %%c0) {dst_dims = [0, 1]}\n"
    "  %%again = parallel {extents = [%d, %d], maps = [0, 1]} : tile<f32 %dx%d> do(%%i: index, %%j: index) {\n"
    "    %%x = extract tile(%%q) index(%%j, %%i) : f32\n"
    "    %%y = extract tile(%%p) index(%%i, %%j) : f32\n"
    "    %%z = add %%x, %%y : f32\n"
    "    yield %%z\n"
    "  }\n"
    "  %%r = gemm %%again, %%a, %%b {inst = %s.f32.f16.f16, warps = [1, %d]} : tile<f32 %dx%d>\n"
    "  tile_store tile(%%r) dst(%%Y) dst_offsets(%%c0, %%c0) {dst_dims = [1, 0]}\n"
    "}\n";

START_TEST(products_and_what_follows) {
  static const int32_t sizes[][2] = {{16, 8}, {64, 64}, {48, 40}, {17, 33}, {128, 96}};
  int32_t threads = thread_counts[_i], warps = threads / 32;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (int32_t warps_m = 1; warps_m <= warps; warps_m++) {
      if (warps % warps_m != 0) continue;
      int32_t m = sizes[s][0], n = sizes[s][1];
      if (!fits_registers(m, n, threads)) continue;
      char text[8192];
      snprintf(text, sizeof text, product, threads, m, n, n, m, m, n, m, n, warps_m, warps / warps_m, m, n, m, n, n, m,
               m, n, m, n, s % 2 ? "mma.m16n8k16" : "fma.m1n1k1", warps, m, n);
      run_text(text, threads);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passes layouts");
  TCase *tests = tcase_create("shapes");
  int count = (int)(sizeof thread_counts / sizeof thread_counts[0]);
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, elementwise_shapes, 0, count);
  tcase_add_loop_test(tests, products_and_what_follows, 0, count);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
