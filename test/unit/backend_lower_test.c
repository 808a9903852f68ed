// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From specs and scheduled IR to PTX: what the code looks like, that it assembles without spills, and what is refused.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/elaborate/instantiate.h"
#include "ir/text/text.h"
#include "llvm_backend/output/backend.h"
#include "passes/manager/passes.h"
#include "test/unit/auto_params.h"
#include "test/unit/backend_ptxas.h"

typedef struct fixture {
  tl_sources sources;
  tl_diags diags;
  tl_spec *spec;
  tl_module *module;
  tl_backend *backend;
  tl_strbuf ptx;
} fixture;

static void check_status(fixture *f, tl_status status) {
  if (!status) return;
  tl_strbuf text = {0};
  tl_diags_print_text(&f->diags, &text, false);
  ck_abort_msg("%s\n%s", tl_status_message(status), tl_strbuf_c(&text));
}

static void init(fixture *f) {
  memset(f, 0, sizeof *f);
  tl_sources_init(&f->sources);
  tl_diags_init(&f->diags, &f->sources);
}

static void fini(fixture *f) {
  tl_strbuf_fini(&f->ptx);
  tl_backend_destroy(f->backend);
  if (f->module) tl_module_destroy(f->module);
  if (f->spec) tl_spec_destroy(f->spec);
  tl_diags_fini(&f->diags);
  tl_sources_fini(&f->sources);
}

static tl_status lower(fixture *f, const tl_target *target, tl_backend_options options) {
  return tl_backend_create(f->module, target, &options, &f->diags, &f->backend);
}

// The kernel library's spec through every pass.
static void compile_kernel(fixture *f, const char *path, const tl_target *target) {
  uint32_t source;
  init(f);
  check_status(f, tl_sources_read(&f->sources, path, 1 << 20, &source));
  f->spec = tl_spec_parse(&f->sources, source, &f->diags);
  ck_assert(f->spec != NULL);
  tl_binding bindings[8];
  uint32_t len = bind_auto_params(&f->spec->kernels[0], bindings, 0, 8);
  f->module = tl_instantiate(&f->spec->kernels[0], (tl_bindings){bindings, len}, target, &f->sources, &f->diags);
  if (!f->module) check_status(f, tl_status_make(TL_STATUS_DIAGNOSTICS, "%s", path));
  tl_pass_options passes = {.pass_limit = -1};
  check_status(f, tl_passes_run(f->module, target, &passes, &f->diags));
  check_status(f, lower(f, target, (tl_backend_options){.opt_level = 3}));
  check_status(f, tl_backend_emit_ptx(f->backend, &f->ptx));
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
  return n;
}

static const char *const kernels[] = {"vector_add",     "softplus",      "matmul", "matmul_bias_relu",
                                      "matmul_dynamic", "matmul_splitk", "conv2d", "matmul_w4a16"};
static const char *const targets[] = {"sm_80", "sm_90a"};
enum { NUM_KERNELS = sizeof kernels / sizeof *kernels };

START_TEST(library_kernels_assemble_without_spills) {
  fixture f;
  char path[128];
  snprintf(path, sizeof path, "kernels/%s.yaml", kernels[_i % NUM_KERNELS]);
  const char *target = targets[_i / NUM_KERNELS];
  compile_kernel(&f, path, tl_target_find(tl_str_from(target)));
  if (tl_test_has_ptxas()) {
    tl_test_cubin cubin = tl_test_assemble(tl_strbuf_c(&f.ptx), target);
    ck_assert_msg(cubin.ok, "%s", path);
    ck_assert_msg(cubin.spill_bytes == 0, "%s spills %d bytes", path, cubin.spill_bytes);
    ck_assert_int_le(cubin.registers, 240);
  }
  fini(&f);
}
END_TEST

START_TEST(the_same_input_gives_the_same_bytes) {
  fixture a, b;
  compile_kernel(&a, "kernels/matmul_bias_relu.yaml", tl_target_find(TL_STR("sm_80")));
  compile_kernel(&b, "kernels/matmul_bias_relu.yaml", tl_target_find(TL_STR("sm_80")));
  ck_assert_str_eq(tl_strbuf_c(&a.ptx), tl_strbuf_c(&b.ptx));
  fini(&a);
  fini(&b);
}
END_TEST

// 64x64 a warp and 64 of K: 4 x 8 mma a k step of 16, one ldmatrix.x4 for 16 rows of A and for 16 columns of B.
START_TEST(matmul_loop_has_no_waste) {
  fixture f;
  compile_kernel(&f, "kernels/matmul.yaml", tl_target_find(TL_STR("sm_80")));
  const char *ptx = tl_strbuf_c(&f.ptx);
  ck_assert_int_eq(count(ptx, "mma.sync.aligned.m16n8k16"), 128);
  ck_assert_int_eq(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared"), 16);
  ck_assert_int_eq(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans.shared"), 16);
  ck_assert_int_eq(count(ptx, "cp.async.cg.shared.global"), 48);
  ck_assert_int_eq(count(ptx, "cvt.rn.f16x2.f32"), 64);
  fini(&f);
}
END_TEST

// Part of a tile is stored element by element under conditions, all of it without: both ways end in one place, in a
// loop with matrix instructions.
START_TEST(warps_converge_where_a_branch_of_all_threads_ends) {
  fixture f;
  compile_kernel(&f, "test/spec/check/conformance_layouts.yaml", tl_target_find(TL_STR("sm_80")));
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "bar.warp.sync"), 1);
  fini(&f);
}
END_TEST

START_TEST(vector_add_moves_16_bytes) {
  fixture f;
  compile_kernel(&f, "kernels/vector_add.yaml", tl_target_find(TL_STR("sm_80")));
  const char *ptx = tl_strbuf_c(&f.ptx);
  ck_assert_int_eq(count(ptx, "ld.global.nc.v4.b32"), 2);
  ck_assert_int_eq(count(ptx, "st.global.v4.b32"), 1);
  ck_assert(strstr(ptx, "\"grid\": [\"(N + 1023) // 1024\", 1, 1]") != NULL);
  fini(&f);
}
END_TEST

// Scheduled IR as text.
static void parse(fixture *f, const char *text) {
  init(f);
  f->module = tl_module_parse(&f->sources, tl_sources_add(&f->sources, "test.tir", tl_str_from(text)), &f->diags);
  if (!f->module) check_status(f, tl_status_make(TL_STATUS_DIAGNOSTICS, "the test's IR"));
}

#define SMALL_GEMM(k, pitch_a, attrs)                                                                                  \
  "module scheduled sm_80\n"                                                                                           \
  "kernel {name = \"g\", threads = 32, shared_bytes = 8192} do {\n"                                                    \
  "  %n = const {value = 256} : index\n"                                                                               \
  "  %one = const {value = 1} : index\n"                                                                               \
  "  %c16 = const {value = 16} : index\n"                                                                              \
  "  %zero = const {value = 0} : index\n"                                                                              \
  "  %C = tensor dims(%c16, %c16) strides(%c16, %one) {name = \"C\", arg = 0, access = out, align = 16} : "            \
  "buffer<global f32 "                                                                                                 \
  "16x16>\n"                                                                                                           \
  "  %b = grid %one {names = \"b\"} : index\n"                                                                         \
  "  %a_s = alloc {name = \"a_s\", offset = 0, shared = #shared<pitch " pitch_a ">} : buffer<shared f16 16x" k         \
  ">\n"                                                                                                                \
  "  %b_s = alloc {name = \"b_s\", offset = 4096, shared = #shared<pitch 32>} : buffer<shared f16 " k                  \
  "x16>\n"                                                                                                             \
  "  %f0 = const {value = 0.0} : f32\n"                                                                                \
  "  %acc = splat %f0 : tile<f32 16x16, #layout<16x16: r2.d1s1 r2.d0s8 l4.d1s2 l8.d0s1 r2.d1s8>>\n"                    \
  "  %r = gemm %acc, %a_s, %b_s {" attrs                                                                               \
  "} : tile<f32 16x16, #layout<16x16: r2.d1s1 r2.d0s8 l4.d1s2 l8.d0s1 r2.d1s8>>\n"                                     \
  "  tile_store tile(%r) dst(%C) dst_offsets(%zero, %zero) {dst_dims = [0, 1], dst_check = [0, 0], via = vector, vec " \
  "= 2}\n"                                                                                                             \
  "}\n"
#define MMA "inst = mma.m16n8k16.f32.f16.f16, warps = [1, 1]"

START_TEST(rest_of_8_along_k_is_m16n8k8) {
  fixture f;
  parse(&f, SMALL_GEMM("24", "48", MMA));
  check_status(&f, lower(&f, tl_target_find(TL_STR("sm_80")), (tl_backend_options){.opt_level = 3}));
  check_status(&f, tl_backend_emit_ptx(f.backend, &f.ptx));
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k16"), 2);
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k8"), 2);
  if (tl_test_has_ptxas()) ck_assert(tl_test_assemble(tl_strbuf_c(&f.ptx), "sm_80").ok);
  fini(&f);
}
END_TEST

// What ldmatrix cannot bring is read element by element: a rest of 4 along K, rows that are no multiple of 16 bytes.
START_TEST(rests_along_k_and_odd_rows_are_read_by_elements) {
  static const char *const texts[] = {SMALL_GEMM("20", "48", MMA), SMALL_GEMM("16", "40", MMA)};
  for (int i = 0; i < 2; i++) {
    fixture f;
    parse(&f, texts[i]);
    check_status(&f, lower(&f, tl_target_find(TL_STR("sm_80")), (tl_backend_options){.opt_level = 3}));
    check_status(&f, tl_backend_emit_ptx(f.backend, &f.ptx));
    ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k16"), 2);
    ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k8"), i == 0 ? 2 : 0);
    ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "ldmatrix"), i == 0 ? 2 : 1);
    if (tl_test_has_ptxas()) ck_assert(tl_test_assemble(tl_strbuf_c(&f.ptx), "sm_80").ok);
    fini(&f);
  }
}
END_TEST

// Two steps of 64, 2 by 4 instructions a warp, of bytes as they are packed; where the target has no units for 4 bits
// they are multiplied as 8 bits.
START_TEST(four_bits_are_multiplied_where_the_target_has_units) {
  fixture f;
  const char *path = "test/semantics/gemm_four_bits.yaml";
  compile_kernel(&f, path, tl_target_find(TL_STR("sm_80")));
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k64"), 16);
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "ldmatrix.sync.aligned.m8n8.x4.shared"), 8);
  fini(&f);
  compile_kernel(&f, path, tl_target_find(TL_STR("sm_90a")));
  ck_assert_int_eq(count(tl_strbuf_c(&f.ptx), "mma.sync.aligned.m16n8k64"), 0);
  ck_assert_int_gt(count(tl_strbuf_c(&f.ptx), "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8"), 0);
  fini(&f);
}
END_TEST

static void expect_unsupported(const char *text, const char *part) {
  fixture f;
  parse(&f, text);
  tl_status status = lower(&f, tl_target_find(TL_STR("sm_80")), (tl_backend_options){.opt_level = 3});
  ck_assert_msg(tl_status_code_of(status) == TL_STATUS_DIAGNOSTICS, "%s", tl_status_message(status));
  tl_strbuf out = {0};
  tl_diags_print_text(&f.diags, &out, false);
  ck_assert_msg(strstr(tl_strbuf_c(&out), part) && strstr(tl_strbuf_c(&out), "TL0660"), "%s", tl_strbuf_c(&out));
  tl_strbuf_fini(&out);
  tl_status_free(status);
  fini(&f);
}

START_TEST(what_has_no_lowering_is_a_diagnostic) {
  expect_unsupported(
      "module scheduled sm_80\n"
      "kernel {name = \"v\", threads = 32, shared_bytes = 1024} do {\n"
      "  %n = const {value = 128} : index\n"
      "  %s = alloc {name = \"s\", offset = 0, shared = #shared<pitch 272>} : buffer<shared f32 2x64>\n"
      "  %v = view buffer(%s) dims(%n) {name = \"v\"} : buffer<shared f32 128>\n"
      "}\n",
      "a view of a padded or swizzled shared tile has no lowering");
}
END_TEST

START_TEST(ptx_version_can_be_raised_but_not_lowered) {
  fixture f;
  parse(&f, SMALL_GEMM("16", "32", MMA));
  const tl_target *target = tl_target_find(TL_STR("sm_80"));
  tl_status status = lower(&f, target, (tl_backend_options){.ptx_version = 60, .opt_level = 3});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_UNSUPPORTED);
  tl_status_free(status);
  const int unknown[] = {79, 89, 91, 100};  // LLVM would ignore them with a text on standard error
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    status = lower(&f, target, (tl_backend_options){.ptx_version = unknown[i], .opt_level = 3});
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_UNSUPPORTED);
    tl_status_free(status);
  }
  check_status(&f, lower(&f, target, (tl_backend_options){.ptx_version = 83, .opt_level = 3}));
  check_status(&f, tl_backend_emit_ptx(f.backend, &f.ptx));
  ck_assert(strstr(tl_strbuf_c(&f.ptx), ".version 8.3") != NULL);
  ck_assert(strstr(tl_strbuf_c(&f.ptx), "\"ptx_version\": \"8.3\"") != NULL);
  fini(&f);
}
END_TEST

START_TEST(llvm_ir_can_be_printed_before_and_after) {
  fixture f;
  parse(&f, SMALL_GEMM("16", "32", MMA));
  check_status(&f, lower(&f, tl_target_find(TL_STR("sm_80")), (tl_backend_options){.opt_level = 3}));
  tl_strbuf before = {0}, after = {0}, again = {0};
  check_status(&f, tl_backend_print_llvm(f.backend, &before));
  check_status(&f, tl_backend_print_llvm_opt(f.backend, &after));
  check_status(&f, tl_backend_emit_ptx(f.backend, &f.ptx));
  check_status(&f, tl_backend_print_llvm(f.backend, &again));
  ck_assert_str_eq(tl_strbuf_c(&before), tl_strbuf_c(&again));
  ck_assert_str_ne(tl_strbuf_c(&before), tl_strbuf_c(&after));
  ck_assert(strstr(tl_strbuf_c(&after), "asm") == NULL);
  tl_strbuf_fini(&before);
  tl_strbuf_fini(&after);
  tl_strbuf_fini(&again);
  fini(&f);
}
END_TEST

// One elementwise op from x of `from` to y of `to` for every element, through code generation: an instruction that
// cannot be selected would end the process.
static void compile_elementwise(const char *target, const char *from, const char *to, const char *ops) {
  fixture f;
  char text[2048];
  snprintf(text, sizeof text,
           "module scheduled %s\n"
           "kernel {name = \"e\", threads = 32, shared_bytes = 0} do {\n"
           "  %%n = const {value = 128} : index\n"
           "  %%one = const {value = 1} : index\n"
           "  %%x = tensor dims(%%n) strides(%%one) {name = \"X\", arg = 0, access = in, align = 16} : buffer<global "
           "%s 128>\n"
           "  %%y = tensor dims(%%n) strides(%%one) {name = \"Y\", arg = 1, access = inout, align = 16} : "
           "buffer<global %s 128>\n"
           "  %%b = grid %%one {names = \"b\"} : index\n"
           "  parallel {extents = [128], vec = 4, layout = #layout<128: r4.d0s1 l32.d0s4>} do(%%i: index) {\n"
           "    %%a = load buffer(%%x) index(%%i) {check = [0], vec = 2} : %s\n"
           "    %s\n"
           "  }\n"
           "}\n",
           target, from, to, from, ops);
  parse(&f, text);
  check_status(&f, lower(&f, tl_target_find(tl_str_from(target)), (tl_backend_options){.opt_level = 1}));
  check_status(&f, tl_backend_emit_ptx(f.backend, &f.ptx));
  fini(&f);
}

static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                     "i8",  "u64", "u32", "u16",  "u8",  "bool"};
enum { NUM_DTYPES = sizeof dtypes / sizeof *dtypes };

START_TEST(every_conversion_can_be_selected) {
  const char *target = targets[_i / NUM_DTYPES], *from = dtypes[_i % NUM_DTYPES];
  for (int d = 0; d < NUM_DTYPES; d++) {
    char ops[256];
    snprintf(ops, sizeof ops, "%%r = cast %%a : %s\n    store value(%%r) buffer(%%y) index(%%i) {check = [0], vec = 4}",
             dtypes[d]);
    compile_elementwise(target, from, dtypes[d], ops);
  }
}
END_TEST

START_TEST(every_atomic_can_be_selected) {
  static const char *const kinds[] = {"add", "max", "min", "exch", "and", "or", "xor"};
  const char *target = targets[_i / NUM_DTYPES], *dtype = dtypes[_i % NUM_DTYPES];
  bool is_float = strchr(dtype, 'f') != NULL, is_bool = strcmp(dtype, "bool") == 0;
  for (int k = 0; k < (is_bool ? 0 : is_float ? 4 : 7); k++) {
    char ops[256];
    snprintf(ops, sizeof ops, "atomic value(%%a) buffer(%%y) index(%%i) {check = [2], kind = %s}", kinds[k]);
    compile_elementwise(target, dtype, dtype, ops);
  }
}
END_TEST

START_TEST(too_many_blocks_is_a_diagnostic) {
  fixture f;
  parse(&f,
        "module scheduled sm_80\n"
        "kernel {name = \"k\", threads = 32, shared_bytes = 0} do {\n"
        "  %n = const {value = 70000} : index\n"
        "  %a, %b = grid %n, %n {names = \"a,b\"} : index, index\n"
        "}\n");
  tl_status status = lower(&f, tl_target_find(TL_STR("sm_80")), (tl_backend_options){.opt_level = 3});
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_DIAGNOSTICS);
  ck_assert_uint_eq(f.diags.list.len, 1);
  ck_assert_int_eq(f.diags.list.items[0]->code, TL_DIAG_GRID_LIMIT);
  tl_status_free(status);
  fini(&f);
}
END_TEST

// Tile numbers take 64 bits only where they may need them; the blocks lie in x.
START_TEST(persistent_kernels_loop_over_tiles) {
  static const struct {
    const char *extents, *grid;
    bool is_wide;
  } cases[] = {{"%n, %m", "min(35000000, resident_blocks)", false},
               {"%n, %n", "min(4900000000, resident_blocks)", true},
               {"%n, %d", "min(70000 * d, resident_blocks)", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture f;
    char text[1024];
    snprintf(text, sizeof text,
             "module scheduled sm_80\n"
             "kernel {name = \"k\", threads = 32, persistent = on, shared_bytes = 0} do {\n"
             "  %%n = const {value = 70000} : index\n  %%m = const {value = 500} : index\n"
             "  %%c1 = const {value = 1} : index\n  %%d = dyn_param {name = \"d\"} : index\n"
             "  %%Y = tensor dims(%%n) strides(%%c1) {name = \"Y\", arg = 0, access = out, align = 16} : "
             "buffer<global i32 70000>\n"
             "  %%a, %%b = grid %s {names = \"a,b\"} : index, index\n"
             "  %%x = const {value = 1} : i32\n"
             "  store value(%%x) buffer(%%Y) index(%%a) {check = [0]}\n"
             "}\n",
             cases[i].extents);
    parse(&f, text);
    const tl_target *target = tl_target_find(TL_STR("sm_80"));
    tl_pass_options passes = {.passes = "loop-tiles", .pass_limit = -1, .verify_each = true};
    check_status(&f, tl_passes_run(f.module, target, &passes, &f.diags));
    check_status(&f, lower(&f, target, (tl_backend_options){.opt_level = 3}));
    const tl_manifest *manifest = NULL;
    check_status(&f, tl_backend_manifest(f.backend, &manifest));
    const tl_manifest_kernel *kernel = &manifest->kernels[0];
    ck_assert(kernel->persistent);
    tl_strbuf grid = {0};
    tl_mexpr_print(kernel->grid[0], &grid);
    ck_assert_str_eq(tl_strbuf_c(&grid), cases[i].grid);
    tl_strbuf_fini(&grid);
    tl_strbuf code = {0};
    check_status(&f, tl_backend_print_llvm(f.backend, &code));
    ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&code), "nctaid.x"));
    ck_assert_ptr_null(strstr(tl_strbuf_c(&code), "ctaid.y"));
    ck_assert_ptr_nonnull(strstr(tl_strbuf_c(&code), cases[i].is_wide ? "phi i64" : "phi i32"));
    tl_strbuf_fini(&code);
    fini(&f);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_lower");
  TCase *tests = tcase_create("lower");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, library_kernels_assemble_without_spills, 0, 2 * NUM_KERNELS);
  tcase_add_test(tests, the_same_input_gives_the_same_bytes);
  tcase_add_test(tests, matmul_loop_has_no_waste);
  tcase_add_test(tests, warps_converge_where_a_branch_of_all_threads_ends);
  tcase_add_test(tests, vector_add_moves_16_bytes);
  tcase_add_test(tests, rest_of_8_along_k_is_m16n8k8);
  tcase_add_test(tests, rests_along_k_and_odd_rows_are_read_by_elements);
  tcase_add_test(tests, four_bits_are_multiplied_where_the_target_has_units);
  tcase_add_test(tests, what_has_no_lowering_is_a_diagnostic);
  tcase_add_test(tests, ptx_version_can_be_raised_but_not_lowered);
  tcase_add_test(tests, llvm_ir_can_be_printed_before_and_after);
  tcase_add_test(tests, too_many_blocks_is_a_diagnostic);
  tcase_add_test(tests, persistent_kernels_loop_over_tiles);
  tcase_add_loop_test(tests, every_conversion_can_be_selected, 0, 2 * NUM_DTYPES);
  tcase_add_loop_test(tests, every_atomic_can_be_selected, 0, 2 * NUM_DTYPES);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  if (!tl_test_has_ptxas())
    printf("ptxas not found: %d kernels were compiled but not assembled\n", 2 * NUM_KERNELS + 1);
  return failed == 0 ? 0 : 1;
}
