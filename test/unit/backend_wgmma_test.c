// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma: names and forms; code of every form for sm_90a, assembled when ptxas is there. By default all shapes of one
// type and all types of one shape; TL_TEST_ALL_FORMS=1 in the environment takes all.
#include <check.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/device/session.h"
#include "test/unit/backend_ptxas.h"

// Calls `visit` for every combination of the members, valid or not.
static int for_each_form(void (*visit)(const tl_wgmma_form *form, void *user), void *user) {
  int count = 0;
  for (int types = 0; types < TL_WGMMA_NUM_TYPES * TL_WGMMA_NUM_TYPES; types++)
    for (int sum = 0; sum < TL_WGMMA_OPERAND_B32; sum++)
      for (int n = 8; n <= 256; n += 8)
        for (int bits = 0; bits < 64; bits++) {
          tl_wgmma_form form = {.sum = (tl_wgmma_register)sum,
                                .a = (tl_wgmma_type)(types / TL_WGMMA_NUM_TYPES),
                                .b = (tl_wgmma_type)(types % TL_WGMMA_NUM_TYPES),
                                .n = n,
                                .a_in_registers = bits & 1,
                                .transpose_a = bits & 2,
                                .transpose_b = bits & 4,
                                .negate_a = bits & 8,
                                .negate_b = bits & 16,
                                .saturate = bits & 32};
          if (tl_wgmma_form_problem(&form)) continue;
          visit(&form, user);
          count++;
        }
  return count;
}

// ---- names

static void check_round_trip(const tl_wgmma_form *form, void *user) {
  (void)user;
  tl_strbuf name = {0};
  tl_wgmma_form_name(form, &name);
  tl_wgmma_form back;
  ck_assert_msg(tl_wgmma_form_parse(tl_strbuf_view(&name), &back), "%s", tl_strbuf_c(&name));
  tl_strbuf again = {0};
  tl_wgmma_form_name(&back, &again);
  ck_assert_str_eq(tl_strbuf_c(&name), tl_strbuf_c(&again));
  ck_assert(back.n == form->n && back.a == form->a && back.b == form->b && back.sum == form->sum);
  tl_strbuf_fini(&name);
  tl_strbuf_fini(&again);
}

START_TEST(names_of_all_forms) {
  int count = for_each_form(check_round_trip, NULL);
  // PTX ISA, wgmma.mma_async: 16-bit types (f16 with two sums, bf16) with 16 choices of immediates in ss and 8 in rs,
  // tf32 and 8-bit floats (four mixes, two sums) with 4, integers (four mixes, 18 shapes) with and without .satfinite.
  ck_assert_int_eq(count, 32 * 3 * (16 + 8) + 32 * (1 + 4 * 2) * 2 * 4 + 18 * 4 * 2 * 2);
}
END_TEST

START_TEST(names_that_mean_nothing) {
  static const char *const names[] = {
      "tl.wgmma.m64n128k16.f32.f16.f16",           // from where?
      "tl.wgmma.m64n128k32.f32.f16.f16.ss",        // another k
      "tl.wgmma.m64n12k16.f32.f16.f16.ss",         // n
      "tl.wgmma.m64n264k16.f32.f16.f16.ss",        //
      "tl.wgmma.m64n08k16.f32.f16.f16.ss",         // a second name for n8
      "tl.wgmma.m64n40k32.s32.s8.s8.ss",           // no shape of integers
      "tl.wgmma.m64n128k16.f32.f16.bf16.ss",       // mixed
      "tl.wgmma.m64n128k16.f16.bf16.bf16.ss",      // sum
      "tl.wgmma.m64n128k16.f32.f16.f16.ss.tb.ta",  // order
      "tl.wgmma.m64n128k16.f32.f16.f16.rs.ta",     // A in registers is K-major
      "tl.wgmma.m64n128k8.f32.tf32.tf32.ss.tb",    // 32-bit types are K-major
      "tl.wgmma.m64n128k32.s32.s8.s8.ss.na",       // integers are not negated
      "tl.wgmma.m64n128k32.f32.e4m3.e4m3.ss.sat",  // floats do not saturate
      "tl.wgmma.m64n128k16.f32.f16.f16.ss.x",      // more than a name
      "tl.wgmma.m64n128k16.b32.f16.f16.ss",        // no sum
      "tl.wgmma.wait.n0",                          // pins nothing: that is the intrinsic
      "tl.wgmma.wait.n8.4xf32",                    // too many groups
      "tl.wgmma.wait.n0.0xf32",                    //
      "tl.wgmma.wait.n0.4xf32.4xf32",              // one run
      "tl.wgmma.wait.n0.241xf32",                  // more than a thread has
      "tl.wgmma.wait.n0.200xf32.200xs32",          //
      "tl.wgmma.wait.n0.4xf64",                    //
      "tl.wgmma.wait.n0.4xf32.",                   //
      "tl.wgmma.wait.n0.4xb32.4xf32",              // operands come last
      "tl.wgmma.fence",                            //
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    tl_wgmma_op op;
    ck_assert_msg(!tl_wgmma_op_make(tl_str_from(names[i]), &op), "%s", names[i]);
  }
}
END_TEST

START_TEST(texts_of_some_forms) {
  static const struct {
    const char *name, *signature, *asm_text, *constraints;
  } cases[] = {
      {"tl.wgmma.m64n8k16.f32.bf16.bf16.ss.tb", "ffff(ffffllb)",
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 1;",
       "=f,=f,=f,=f,0,1,2,3,l,l,b"},
      {"tl.wgmma.m64n8k16.f16.f16.f16.rs.na.nb", "ii(iiiiiilb)",
       "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {$0, $1}, {$4, $5, $6, $7}, $8, $9, -1, -1, 0;",
       "=r,=r,0,1,r,r,r,r,l,b"},
      {"tl.wgmma.m64n8k8.f32.tf32.tf32.ss", "ffff(ffffllb)",
       "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {$0, $1, $2, $3}, $8, $9, $10, 1, 1;",
       "=f,=f,=f,=f,0,1,2,3,l,l,b"},
      {"tl.wgmma.m64n8k32.s32.u8.s8.ss.sat", "iiii(iiiillb)",
       "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.u8.s8 {$0, $1, $2, $3}, $8, $9, $10;",
       "=r,=r,=r,=r,0,1,2,3,l,l,b"},
      {"tl.wgmma.wait.n1.2xf32.1xb32", "ff(ffi)", "wgmma.wait_group.sync.aligned 1;", "=f,=f,0,1,r"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_wgmma_op op;
    ck_assert_msg(tl_wgmma_op_make(tl_str_from(cases[i].name), &op), "%s", cases[i].name);
    ck_assert_str_eq(op.row.name, cases[i].name);
    ck_assert_str_eq(op.row.signature, cases[i].signature);
    ck_assert_str_eq(op.row.asm_text, cases[i].asm_text);
    ck_assert_str_eq(op.row.asm_constraints, cases[i].constraints);
    tl_wgmma_op_fini(&op);
  }
}
END_TEST

// ---- code

typedef struct module_builder {
  tl_session session;
  int num_kernels;
  bool takes_all;
} module_builder;

static void check_status(tl_status status, const char *name) {
  if (status) ck_abort_msg("%s: %s", name, tl_status_message(status));
}

static void begin(module_builder *m) {
  check_status(tl_session_init(&m->session, tl_target_find(TL_STR("sm_90a")), 3), "session");
  check_status(tl_session_begin_module(&m->session, "forms"), "module");
}

// ( global pointer, descriptors of A and B, i32 )
static LLVMValueRef begin_kernel(module_builder *m, LLVMBuilderRef b) {
  tl_session *s = &m->session;
  LLVMTypeRef params[] = {s->global_ptr, s->i64, s->i64, s->i32};
  char name[16];
  snprintf(name, sizeof name, "k%d", m->num_kernels++);
  LLVMValueRef kernel = LLVMAddFunction(s->module, name, LLVMFunctionType(s->void_type, params, 4, 0));
  LLVMSetFunctionCallConv(kernel, 71);
  tl_session_add_string_attribute(s, kernel, "nvvm.reqntid", "128");
  LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(s->context, kernel, ""));
  return kernel;
}

// One 32-bit place a thread and register, so that loads and stores are real.
static LLVMValueRef place(tl_session *s, LLVMBuilderRef b, LLVMValueRef kernel, int i) {
  LLVMValueRef index = tl_session_i32(s, i);
  return LLVMBuildGEP2(b, s->i32, LLVMGetParam(kernel, 0), &index, 1, "");
}

// fence, the wgmma twice in a row, commit, wait, stores.
static void add_kernel(module_builder *m, const tl_wgmma_form *form) {
  tl_session *s = &m->session;
  LLVMBuilderRef b = LLVMCreateBuilderInContext(s->context);
  LLVMValueRef kernel = begin_kernel(m, b), args[TL_DEVICE_MAX_OPERANDS];
  int n = tl_wgmma_sum_registers(form), at = n;
  LLVMTypeRef type = form->sum == TL_WGMMA_SUM_F32 ? s->f32 : s->i32;
  for (int i = 0; i < n; i++) args[i] = LLVMBuildLoad2(b, type, place(s, b, kernel, i), "");
  if (form->a_in_registers) {
    for (int i = 0; i < 4; i++) args[at++] = LLVMBuildLoad2(b, s->i32, place(s, b, kernel, n + i), "");
  } else {
    args[at++] = LLVMGetParam(kernel, 1);
  }
  args[at++] = LLVMGetParam(kernel, 2);
  args[at++] = LLVMBuildICmp(b, LLVMIntNE, LLVMGetParam(kernel, 3), tl_session_i32(s, 0), "");
  tl_session_call_device(s, b, TL_DEVOP_WGMMA_FENCE, NULL, 0);
  for (int step = 0; step < 2; step++) {
    LLVMValueRef sums = tl_session_call_wgmma_form(s, b, form, args, (unsigned)at);
    ck_assert(sums != NULL);
    for (int i = 0; i < n; i++) args[i] = LLVMBuildExtractValue(b, sums, (unsigned)i, "");
  }
  tl_session_call_device(s, b, TL_DEVOP_WGMMA_COMMIT_GROUP, NULL, 0);
  tl_wgmma_wait wait = {.num_runs = 1, .runs = {{n, form->sum}}};
  LLVMValueRef pinned = tl_session_call_wgmma_wait(s, b, &wait, args, (unsigned)n);
  for (int i = 0; i < n; i++)
    LLVMBuildStore(b, LLVMBuildExtractValue(b, pinned, (unsigned)i, ""), place(s, b, kernel, i));
  LLVMBuildRetVoid(b);
  LLVMDisposeBuilder(b);
}

// Assembles what was added; the module is gone afterwards. Returns the PTX, to be freed.
static char *end(module_builder *m) {
  tl_session *s = &m->session;
  check_status(tl_session_verify(s, s->module, "forms"), "verify");
  ck_assert_int_ge(tl_session_needed_ptx(s, s->module), 80);
  check_status(tl_session_machine(s, tl_session_needed_ptx(s, s->module)), "machine");
  tl_session_fill_asm(s, s->module);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  ck_assert(LLVMRunPasses(s->module, "always-inline,globaldce", s->machine, options) == NULL);
  LLVMDisposePassBuilderOptions(options);
  LLVMMemoryBufferRef out = NULL;
  char *message = NULL;
  ck_assert(!LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->module, LLVMAssemblyFile, &message, &out));
  check_status(tl_session_take_errors(s, "forms"), "code");
  char *ptx = strndup(LLVMGetBufferStart(out), LLVMGetBufferSize(out));
  LLVMDisposeMemoryBuffer(out);
  tl_session_fini(s);
  if (tl_test_has_ptxas()) {
    tl_test_cubin cubin = tl_test_assemble(ptx, "sm_90a");
    if (!cubin.ok || cubin.is_serialized) printf("%s\n", ptx);
    ck_assert_msg(cubin.ok, "ptxas refused the text above");
    ck_assert_msg(!cubin.is_serialized, "ptxas serialised wgmmas of the text above");
  }
  m->num_kernels = 0;
  return ptx;
}

enum { KERNELS_A_MODULE = 64 };

static void compile_form(const tl_wgmma_form *form, void *user) {
  module_builder *m = user;
  bool one_shape = form->n == 24, one_type = form->a == TL_WGMMA_BF16 && !form->negate_a && !form->negate_b &&
                                             !form->transpose_a && form->a_in_registers == form->transpose_b;
  if (!m->takes_all && !one_shape && !one_type) return;
  if (m->num_kernels == 0) begin(m);
  add_kernel(m, form);
  if (m->num_kernels == KERNELS_A_MODULE) free(end(m));
}

START_TEST(forms_assemble) {
  const char *all = getenv("TL_TEST_ALL_FORMS");
  module_builder m = {.takes_all = all && *all == '1'};
  for_each_form(compile_form, &m);
  if (m.num_kernels) free(end(&m));
}
END_TEST

START_TEST(waits_assemble) {
  static const char *const names[] = {"tl.wgmma.wait.n0.240xf32", "tl.wgmma.wait.n7.3xf32", "tl.wgmma.wait.n1.1xs32",
                                      "tl.wgmma.wait.n2.8xf32.4xf16.2xs32.4xb32"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    module_builder m = {0};
    begin(&m);
    tl_session *s = &m.session;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(s->context);
    LLVMValueRef kernel = begin_kernel(&m, b), args[TL_DEVICE_MAX_OPERANDS];
    tl_wgmma_wait wait;
    ck_assert(tl_wgmma_wait_parse(tl_str_from(names[i]), &wait));
    int n = 0;
    for (int r = 0; r < wait.num_runs; r++)
      for (int k = 0; k < wait.runs[r].count; k++, n++)
        args[n] =
            LLVMBuildLoad2(b, wait.runs[r].type == TL_WGMMA_SUM_F32 ? s->f32 : s->i32, place(s, b, kernel, n), "");
    LLVMValueRef pinned = tl_session_call_wgmma(s, b, tl_str_from(names[i]), args, (unsigned)n);
    n = tl_wgmma_wait_results(&wait);
    for (int k = 0; k < n; k++)
      LLVMBuildStore(b, n == 1 ? pinned : LLVMBuildExtractValue(b, pinned, (unsigned)k, ""), place(s, b, kernel, k));
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    char *ptx = end(&m);
    char want[64];
    snprintf(want, sizeof want, "wgmma.wait_group.sync.aligned %d;", wait.pending);
    ck_assert(strstr(ptx, want) != NULL);
    free(ptx);
  }
}
END_TEST

// A call between them makes ptxas serialise: the check for its message works.
START_TEST(serialisation_is_seen) {
  if (!tl_test_has_ptxas()) return;
  static const char ptx[] =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .func g;\n"
      ".visible .entry k(.param .u64 p, .param .u64 d) {\n"
      ".reg .b64 %a<3>;\n.reg .f32 %f<9>;\nld.param.u64 %a1, [p];\nld.param.u64 %a2, [d];\n"
      "ld.global.f32 %f1, [%a1];\nld.global.f32 %f2, [%a1+4];\nld.global.f32 %f3, [%a1+8];\n"
      "ld.global.f32 %f4, [%a1+12];\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %a2, %a2, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\ncall g;\nwgmma.wait_group.sync.aligned 0;\n"
      "st.global.f32 [%a1+8], %f3;\nst.global.f32 [%a1+12], %f4;\nret;\n}\n";
  tl_test_cubin cubin = tl_test_assemble(ptx, "sm_90a -c");
  ck_assert(cubin.ok && cubin.is_serialized);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_wgmma");
  TCase *forms = tcase_create("forms");
  tcase_set_timeout(forms, 1200);
  tcase_add_test(forms, names_of_all_forms);
  tcase_add_test(forms, names_that_mean_nothing);
  tcase_add_test(forms, texts_of_some_forms);
  tcase_add_test(forms, forms_assemble);
  tcase_add_test(forms, waits_assemble);
  tcase_add_test(forms, serialisation_is_seen);
  suite_add_tcase(suite, forms);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  if (!tl_test_has_ptxas()) printf("ptxas not found: forms were compiled but not assembled\n");
  return failed == 0 ? 0 : 1;
}
