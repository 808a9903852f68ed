// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma in the emulator: types, shapes, majors, swizzles, A in registers; what happens between issue and wait;
// mistakes.
#include <math.h>

#include "emulator_wgmma_util.h"

static const int shapes[] = {8, 16, 24, 64, 96, 128, 200, 256};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };
static const int spans[] = {16, 32, 64, 128};

static void expect_right(wg_run *run) {
  static const char *const landings[] = {"late", "early"};
  for (int landing = 0; landing < 2; landing++) {
    run->options.landing = landing ? TL_LANDING_EARLY : TL_LANDING_LATE;
    tl_strbuf name = {0};
    tl_wgmma_form_name(&run->form, &name);
    tl_status status = wg_try(run, NULL);
    ck_assert_msg(!status, "%s: %s", tl_strbuf_c(&name), tl_status_message(status));
    ck_assert_msg(wg_is_right(run), "%s, spans %d %d, step %d, %s: wrong sums", tl_strbuf_c(&name), run->span_a,
                  run->span_b, run->step, landings[landing]);
    tl_strbuf_fini(&name);
  }
}

static const struct {
  tl_wgmma_register sum;
  tl_wgmma_type a, b;
} mixes[] = {{TL_WGMMA_SUM_F32, TL_WGMMA_F16, TL_WGMMA_F16},   {TL_WGMMA_SUM_F16, TL_WGMMA_F16, TL_WGMMA_F16},
             {TL_WGMMA_SUM_F32, TL_WGMMA_BF16, TL_WGMMA_BF16}, {TL_WGMMA_SUM_F32, TL_WGMMA_TF32, TL_WGMMA_TF32},
             {TL_WGMMA_SUM_F32, TL_WGMMA_E4M3, TL_WGMMA_E4M3}, {TL_WGMMA_SUM_F32, TL_WGMMA_E4M3, TL_WGMMA_E5M2},
             {TL_WGMMA_SUM_F32, TL_WGMMA_E5M2, TL_WGMMA_E4M3}, {TL_WGMMA_SUM_F32, TL_WGMMA_E5M2, TL_WGMMA_E5M2},
             {TL_WGMMA_SUM_F16, TL_WGMMA_E4M3, TL_WGMMA_E4M3}, {TL_WGMMA_SUM_F16, TL_WGMMA_E4M3, TL_WGMMA_E5M2},
             {TL_WGMMA_SUM_F16, TL_WGMMA_E5M2, TL_WGMMA_E4M3}, {TL_WGMMA_SUM_F16, TL_WGMMA_E5M2, TL_WGMMA_E5M2},
             {TL_WGMMA_SUM_S32, TL_WGMMA_S8, TL_WGMMA_S8},     {TL_WGMMA_SUM_S32, TL_WGMMA_S8, TL_WGMMA_U8},
             {TL_WGMMA_SUM_S32, TL_WGMMA_U8, TL_WGMMA_S8},     {TL_WGMMA_SUM_S32, TL_WGMMA_U8, TL_WGMMA_U8}};
enum { NUM_MIXES = sizeof mixes / sizeof mixes[0] };

// Every type, shape, and place of A; the swizzles, negations and saturation take turns.
START_TEST(types_and_shapes) {
  for (int s = 0; s < NUM_SHAPES; s++) {
    for (int rs = 0; rs < 2; rs++) {
      static wg_run run;
      memset(&run, 0, sizeof run);
      int turn = s + 3 * rs + _i;
      run.form = (tl_wgmma_form){
          .sum = mixes[_i].sum, .a = mixes[_i].a, .b = mixes[_i].b, .n = shapes[s], .a_in_registers = rs};
      bool integers = run.form.sum == TL_WGMMA_SUM_S32;
      run.form.negate_a = !integers && turn % 3 == 1;
      run.form.negate_b = !integers && turn % 4 == 2;
      run.form.saturate = integers && turn % 2;
      run.span_a = spans[turn % 4];
      run.span_b = spans[(turn + 1) % 4];
      run.ignore_old = turn % 5 == 4;
      if (integers && shapes[s] == 200) run.form.n = 208;
      ck_assert(!tl_wgmma_form_problem(&run.form));
      wg_fill(&run);
      expect_right(&run);
    }
  }
}
END_TEST

// Both majors of both operands with every swizzle, and every step inside a span.
START_TEST(majors_and_swizzles) {
  for (int major = 0; major < 6; major++) {
    for (int a = 0; a < 4; a++) {
      static wg_run run;
      memset(&run, 0, sizeof run);
      int b = (a + _i) % 4;
      run.form = (tl_wgmma_form){.sum = TL_WGMMA_SUM_F32,
                                 .a = _i % 2 ? TL_WGMMA_F16 : TL_WGMMA_BF16,
                                 .b = _i % 2 ? TL_WGMMA_F16 : TL_WGMMA_BF16,
                                 .n = shapes[(2 * major + a) % NUM_SHAPES],
                                 .a_in_registers = major >= 4,
                                 .transpose_a = major < 4 && (major & 1),
                                 .transpose_b = major == 5 || (major < 4 && (major & 2))};
      run.span_a = spans[a];
      run.span_b = spans[b];
      int least = run.span_a < run.span_b ? run.span_a : run.span_b;
      run.step = least > 16 ? (major + _i) % (least / 32) : 0;
      wg_fill(&run);
      expect_right(&run);
    }
  }
}
END_TEST

// Random bits against double: within the error of 16 additions in f32.
START_TEST(rounding) {
  static wg_run run;
  static double sums[64][256];
  memset(&run, 0, sizeof run);
  run.form = (tl_wgmma_form){.sum = TL_WGMMA_SUM_F32, .a = TL_WGMMA_F16, .b = TL_WGMMA_F16, .n = 64};
  run.span_a = run.span_b = 128;
  for (int m = 0; m < 64; m++)
    for (int i = 0; i < 16; i++) run.a[m][i] = ((int)(wg_random() % 4096) - 2048) / 1024.0;
  for (int n = 0; n < 64; n++)
    for (int i = 0; i < 16; i++) run.b[n][i] = ((int)(wg_random() % 4096) - 2048) / 2048.0;
  expect_ok(wg_try(&run, NULL));
  wg_expected(&run, sums);
  for (int m = 0; m < 64; m++)
    for (int n = 0; n < 64; n++) {
      int thread, element;
      wg_owner(m, n, &thread, &element);
      float got;
      memcpy(&got, &run.out[thread][element], 4);
      ck_assert(fabs((double)got - sums[m][n]) <= 16 * 32 * 0x1p-24);
    }
}
END_TEST

static wg_run *usual(tl_wgmma_register sum) {
  static wg_run run;
  memset(&run, 0, sizeof run);
  tl_wgmma_type type = sum == TL_WGMMA_SUM_S32 ? TL_WGMMA_S8 : TL_WGMMA_F16;
  run.form = (tl_wgmma_form){.sum = sum, .a = type, .b = type, .n = 64};
  run.span_a = run.span_b = 128;
  wg_fill(&run);
  return &run;
}

static const tl_wgmma_register sum_types[] = {TL_WGMMA_SUM_F32, TL_WGMMA_SUM_F16, TL_WGMMA_SUM_S32};

START_TEST(chains_and_groups) {
  for (int groups = 0; groups < 2; groups++) {
    for (int ignore = 0; ignore < 2; ignore++) {
      wg_run *run = usual(sum_types[_i]);
      run->times = 3;
      run->groups = groups;
      run->ignore_old = ignore;
      expect_right(run);
    }
  }
}
END_TEST

// Element 0 of thread 0 in the run's type is no number, or absurd.
static bool is_visible(const wg_run *run) {
  uint32_t bits = run->out[0][0];
  if (run->form.sum == TL_WGMMA_SUM_S32) return (int32_t)bits > 0x7f000000;
  if (run->form.sum == TL_WGMMA_SUM_F16) return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff);
  return (bits & 0x7f800000) == 0x7f800000 && (bits & 0x7fffff);
}

START_TEST(results_before_the_wait_are_visible) {
  wg_run *run = usual(sum_types[_i]);
  run->mistake = WG_NO_WAIT;
  expect_ok(wg_try(run, NULL));
  ck_assert(is_visible(run) && !wg_is_right(run));
  run = usual(sum_types[_i]);
  run->mistake = WG_NO_COMMIT;  // the wait covers nothing
  expect_ok(wg_try(run, NULL));
  ck_assert(is_visible(run));
  run = usual(sum_types[_i]);
  run->mistake = WG_USE_BEFORE_WAIT;
  expect_ok(wg_try(run, NULL));
  static double sums[64][256];
  wg_expected(run, sums);
  uint32_t want = wg_sum_bits(run->form.sum, sums[0][0] + 1), mask = run->form.sum == TL_WGMMA_SUM_F16 ? 0xffff : ~0u;
  ck_assert((run->out[0][0] & mask) != want);
}
END_TEST

START_TEST(operands_are_read_late) {
  wg_run *run = usual(TL_WGMMA_SUM_F32);
  for (int m = 0; m < 64; m++) run->a[m][0] = run->b[0][0] = run->b[0][1] = 1;
  run->mistake = WG_OVERWRITE;
  expect_ok(wg_try(run, NULL));
  ck_assert(!wg_is_right(run));
  run->options.landing = TL_LANDING_EARLY;
  expect_ok(wg_try(run, NULL));
  ck_assert(wg_is_right(run));
}
END_TEST

// ---- checked

static void expect_finding(wg_run *run, const char *a, const char *b) {
  run->options.checks = TL_EMU_SANITIZE_ALL;
  tl_status status = wg_try(run, NULL);
  if (!a)
    ck_assert_msg(!status, "%s", tl_status_message(status));
  else
    expect_failure(status, TL_STATUS_CHECK_FAILED, a, b, NULL);
}

START_TEST(checks) {
  static const struct {
    wg_mistake mistake;
    const char *a, *b;
  } cases[] = {{WG_NONE, NULL, NULL},
               {WG_AGAIN_UNCHANGED, NULL, NULL},
               {WG_NO_WAIT, "unawaited operation", NULL},
               {WG_NO_COMMIT, "unawaited operation", NULL},
               {WG_NO_FENCE, "misused operation", "no wgmma.fence"},
               {WG_CHANGE_THEN_AGAIN, "misused operation", "no wgmma.fence"},
               {WG_NO_PROXY_FENCE, "missing proxy fence", NULL},
               {WG_NO_BARRIER, "race", NULL},
               {WG_OVERWRITE, "race", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (int landing = 0; landing < 2; landing++) {
      wg_run *run = usual(TL_WGMMA_SUM_F32);
      run->mistake = cases[i].mistake;
      run->options.landing = landing ? TL_LANDING_EARLY : TL_LANDING_LATE;
      run->options.seed = (uint32_t)_i;
      expect_finding(run, cases[i].a, cases[i].b);
    }
  }
}
END_TEST

START_TEST(descriptors) {
  static const struct {
    uint64_t spoil;
    const char *checked, *unchecked;
  } cases[] = {{1ull << 14, "reserved bits are set", NULL},
               {1ull << 50, "the start address is not where the swizzle's pattern starts", NULL},  // base offset
               {0x20, "pattern starts", NULL},                                                     // start + 512
               {6, "the rows go over the end of the swizzle's span", NULL},  // start + 96 and the next 32 bytes
               {7, "the end of the swizzle's span", NULL},                   // start + 112
               {1ull << 32, "the stride is no multiple of the swizzle's pattern", NULL},  // stride + 16
               {0x3000, "out of bounds", "shared memory, which has"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    wg_run *run = usual(TL_WGMMA_SUM_F32);
    run->spoil_b = cases[i].spoil;
    if (cases[i].spoil == 6) run->spoil_b = 7;
    expect_finding(run, cases[i].checked, NULL);
    if (!cases[i].unchecked) continue;
    run->options.checks = 0;
    expect_failure(wg_try(run, NULL), TL_STATUS_CHECK_FAILED, cases[i].unchecked, NULL, NULL);
  }
}
END_TEST

START_TEST(not_a_warpgroup) {
  wg_run *run = usual(TL_WGMMA_SUM_F32);
  run->threads = 96;
  expect_failure(wg_try(run, NULL), TL_STATUS_CHECK_FAILED, "is not in a warpgroup of four whole warps", NULL, NULL);
}
END_TEST

static const char divergent[] =
    "%sums = type {float, float, float, float}\n"
    "declare %sums @tl.wgmma.m64n8k16.f32.f16.f16.ss(float, float, float, float, i64, i64, i1)\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "@buffer = internal addrspace(3) global [4096 x i8] undef, align 1024\n"
    "define ptx_kernel void @k(ptr addrspace(1) %out, i32 %from) {\n"
    " %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %low = icmp ult i32 %tid, %from\n"
    " %start = ptrtoint ptr addrspace(3) @buffer to i64\n %field = lshr i64 %start, 4\n"
    " %d = or i64 %field, 4611686293305294848\n"  // 128-byte swizzle, stride 1024
    " br i1 %low, label %a, label %b\na:\n"
    " %x = call %sums @tl.wgmma.m64n8k16.f32.f16.f16.ss(float 0.0, float 0.0, float 0.0, float 0.0, i64 %d, i64 %d, i1 "
    "true)\n"
    " ret void\nb:\n"
    " %other = icmp eq i32 %from, 96\n br i1 %other, label %c, label %done\nc:\n"
    " %y = call %sums @tl.wgmma.m64n8k16.f32.f16.f16.ss(float 0.0, float 0.0, float 0.0, float 0.0, i64 %d, i64 %d, i1 "
    "true)\n"
    " ret void\ndone:\n ret void\n}\n";

START_TEST(divergence) {
  tl_emu_kernel *kernel = NULL;
  expect_ok(create_from_text(divergent, "k", (kernel_shape){.num_params = 2, .threads = 128}, &kernel));
  void *out = tl_emu_alloc(16, 16);
  uint32_t grid[3] = {1, 1, 1};
  tl_emu_options options = {.threads = 1};
  int32_t from = 96;  // warp 3 is at another call
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&out, &from}, &options, NULL), TL_STATUS_CHECK_FAILED,
                 "the warps of a warpgroup diverged", NULL, NULL);
  from = 64;  // warps 2 and 3 have left
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&out, &from}, &options, NULL), TL_STATUS_CHECK_FAILED,
                 "deadlock", "wait at the other warps of its warpgroup", NULL);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(names_without_meaning) {
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, divergent);
  char *at;
  while ((at = strstr(text.data, "m64n8k16"))) at[4] = '4';  // m64n4k16
  tl_emu_kernel *kernel = NULL;
  expect_failure(create_from_text(tl_strbuf_c(&text), "k", (kernel_shape){.num_params = 2, .threads = 128}, &kernel),
                 TL_STATUS_UNSUPPORTED, "tl.wgmma.m64n4k16", NULL, NULL);
  tl_strbuf_fini(&text);
}
END_TEST

static void add(TCase *tests) {
  tcase_set_timeout(tests, 300);
  tcase_add_loop_test(tests, types_and_shapes, 0, NUM_MIXES);
  tcase_add_loop_test(tests, majors_and_swizzles, 0, 4);
  tcase_add_test(tests, rounding);
  tcase_add_loop_test(tests, chains_and_groups, 0, 3);
  tcase_add_loop_test(tests, results_before_the_wait_are_visible, 0, 3);
  tcase_add_test(tests, operands_are_read_late);
  tcase_add_loop_test(tests, checks, 0, 4);
  tcase_add_test(tests, descriptors);
  tcase_add_test(tests, not_a_warpgroup);
  tcase_add_test(tests, divergence);
  tcase_add_test(tests, names_without_meaning);
}

int main(void) {
  return run_suite("emulator_wgmma", add);
}
