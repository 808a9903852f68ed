// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What reductions become: rows in registers behind 16-byte accesses, one exchange between warps each, no spills.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/elaborate/instantiate.h"
#include "llvm_backend/output/backend.h"
#include "passes/manager/passes.h"
#include "test/unit/auto_params.h"
#include "test/unit/backend_ptxas.h"

// PTX of the first kernel in the file. Owned by the caller.
static tl_strbuf compile_text(const char *path, const char *text, const char *target_name) {
  const tl_target *target = tl_target_find(tl_str_from(target_name));
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  uint32_t source = 0;
  if (text) {
    source = tl_sources_add(&sources, "test.yaml", tl_str_from(text));
  } else {
    ck_assert(tl_sources_read(&sources, path, 1 << 20, &source) == NULL);
  }
  tl_spec *spec = tl_spec_parse(&sources, source, &diags);
  ck_assert(spec != NULL);
  tl_binding bindings[8];
  uint32_t len = bind_auto_params(&spec->kernels[0], bindings, 0, 8);
  tl_module *module = tl_instantiate(&spec->kernels[0], (tl_bindings){bindings, len}, target, &sources, &diags);
  ck_assert(module != NULL);
  tl_pass_options passes = {.pass_limit = -1};
  tl_backend_options options = {.opt_level = 3};
  tl_backend *backend = NULL;
  tl_strbuf ptx = {0};
  ck_assert(tl_passes_run(module, target, &passes, &diags) == NULL);
  ck_assert(tl_backend_create(module, target, &options, &diags, &backend) == NULL);
  ck_assert(tl_backend_emit_ptx(backend, &ptx) == NULL);
  tl_backend_destroy(backend);
  tl_module_destroy(module);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return ptx;
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
  return n;
}

static void check_spills(const char *ptx, const char *target, int max_registers) {
  if (!tl_test_has_ptxas()) return;
  tl_test_cubin cubin = tl_test_assemble(ptx, target);
  ck_assert(cubin.ok);
  ck_assert_int_eq(cubin.spill_bytes, 0);
  ck_assert_int_le(cubin.registers, max_registers);
}

// 4096 elements over 256 threads: two 16-byte loads of X and of W, two stores; five shuffles, one barrier, two vector
// loads of the eight warps' parts.
START_TEST(rms_norm_keeps_its_row_in_registers) {
  tl_strbuf ptx = compile_text("kernels/rms_norm.yaml", NULL, "sm_90a");
  const char *text = tl_strbuf_c(&ptx);
  ck_assert_int_eq(count(text, "ld.global.nc.v4.b32"), 4);
  ck_assert_int_eq(count(text, "st.global.v4.b32"), 2);
  ck_assert_int_eq(count(text, "shfl.sync.bfly.b32"), 5);
  ck_assert_int_eq(count(text, "bar.sync"), 1);
  ck_assert_int_eq(count(text, "st.shared"), 1);
  ck_assert_int_eq(count(text, "ld.shared.v4.b32"), 2);
  check_spills(text, "sm_90a", 64);
  tl_strbuf_fini(&ptx);
}
END_TEST

// The row comes to shared memory once, in parts: a barrier behind the first and one behind all. In the first loop the
// maximum and the next part have one each, behind it the sum; none in the second.
START_TEST(online_softmax_reads_its_row_once) {
  tl_strbuf ptx = compile_text("kernels/online_softmax.yaml", NULL, "sm_80");
  const char *text = tl_strbuf_c(&ptx);
  ck_assert_int_eq(count(text, "bar.sync"), 5);
  ck_assert_int_eq(count(text, "shfl.sync.bfly.b32"), 10);
  ck_assert_int_eq(count(text, "ld.global"), 0);
  ck_assert_int_eq(count(text, "cp.async.cg.shared.global"), 16);
  check_spills(text, "sm_80", 64);
  tl_strbuf_fini(&ptx);
}
END_TEST

// The quotients of softmax are rounded to bf16 next: none of them is the division that branches, and they share one
// reciprocal.
START_TEST(quotients_that_are_rounded_next_share_a_reciprocal) {
  tl_strbuf ptx = compile_text("kernels/softmax.yaml", NULL, "sm_90a");
  const char *text = tl_strbuf_c(&ptx);
  ck_assert_int_eq(count(text, "rcp.approx.ftz.f32"), 1);
  ck_assert_int_eq(count(text, "div."), 0);
  // Nor are the elements of a pair taken apart to be widened.
  ck_assert_int_eq(count(text, "cvt.f32.bf16"), 1);  // of the largest one
  // 16 elements are compared as eight pairs, then two elements.
  ck_assert_int_eq(count(text, "max.bf16x2"), 7);
  tl_strbuf_fini(&ptx);
}
END_TEST

// Of online_softmax's exponentials those that are summed or rounded are squares of one that reaches no denormal; the
// factor of the running sum, a sum of two, is the full one. Stored as it is, an exponential is the full one too.
START_TEST(exponentials_are_as_precise_as_their_uses) {
  static const char stored[] =
      "kernel: k\n"
      "args:\n"
      "  X: in f32[128]\n"
      "  Y: out %s[128]\n"
      "threads: 32\n"
      "fragment:\n"
      "  x: f32[128]\n"
      "body:\n"
      "  - copy: X[0] -> x\n"
      "  - x = exp2(x) * 3\n"
      "  - copy: x -> Y[0]\n";
  static const struct {
    const char *dtype;
    int full, flushed;
  } cases[] = {{"f32", 4, 0}, {"bf16", 0, 4}, {"f16", 0, 4}};
  tl_strbuf ptx = compile_text("kernels/online_softmax.yaml", NULL, "sm_90a");
  ck_assert_int_eq(count(tl_strbuf_c(&ptx), "ex2.approx.ftz.f32"), 32);
  ck_assert_int_eq(count(tl_strbuf_c(&ptx), "ex2.approx.f32"), 1);
  tl_strbuf_fini(&ptx);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, stored, cases[i].dtype);
    ptx = compile_text(NULL, text, "sm_80");
    ck_assert_int_eq(count(tl_strbuf_c(&ptx), "ex2.approx.f32"), cases[i].full);
    ck_assert_int_eq(count(tl_strbuf_c(&ptx), "ex2.approx.ftz.f32"), cases[i].flushed);
    tl_strbuf_fini(&ptx);
  }
}
END_TEST

// Columns that each thread holds alone need neither shuffles nor barriers.
START_TEST(reductions_within_a_thread_are_arithmetic) {
  static const char text[] =
      "kernel: k\n"
      "args:\n"
      "  X: in f32[8, 128]\n"
      "  Y: out f32[128]\n"
      "  C: out f32[8, 128]\n"
      "threads: 32\n"
      "fragment:\n"
      "  x, c: f32[8, 128]\n"
      "  y: f32[128]\n"
      "body:\n"
      "  - copy: X[0, 0] -> x\n"
      "  - reduce: y = sum(x, axis=0)\n"
      "  - scan: c = cumsum(x, axis=0)\n"
      "  - copy: y -> Y[0]\n"
      "  - copy: c -> C[0, 0]\n";
  tl_strbuf ptx = compile_text(NULL, text, "sm_80");
  const char *out = tl_strbuf_c(&ptx);
  ck_assert_int_eq(count(out, "shfl.sync") + count(out, "bar.sync") + count(out, ".shared."), 0);
  ck_assert_int_eq(count(out, "ld.global.nc.v4"), 8);
  tl_strbuf_fini(&ptx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_reduce");
  TCase *tcase = tcase_create("reduce");
  tcase_set_timeout(tcase, 120);
  tcase_add_test(tcase, rms_norm_keeps_its_row_in_registers);
  tcase_add_test(tcase, online_softmax_reads_its_row_once);
  tcase_add_test(tcase, quotients_that_are_rounded_next_share_a_reciprocal);
  tcase_add_test(tcase, exponentials_are_as_precise_as_their_uses);
  tcase_add_test(tcase, reductions_within_a_thread_are_arithmetic);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
