// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// host_jit and reference_jit: compile, call, errors, threads, libcalls, release.
#include <check.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/jit/host_jit.h"
#include "llvm_backend/jit/host_libcalls.h"
#include "llvm_backend/jit/reference_jit.h"
#include "support/dtype.h"
#include "support/strbuf.h"

static LLVMModuleRef parse(const char *text) {
  LLVMContextRef context = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "test");
  LLVMModuleRef module = NULL;
  char *message = NULL;
  int failed = LLVMParseIRInContext2(context, buffer, &module, &message);
  ck_assert_msg(!failed, "%s", message);
  LLVMDisposeMemoryBuffer(buffer);
  return module;
}

static void expect_ok(tl_status status) {
  ck_assert_msg(!status, "%s", tl_status_message(status));
}

START_TEST(compiles_and_calls) {
  tl_host_jit *jit;
  expect_ok(tl_host_jit_create(parse("define i32 @add(i32 %a, i32 %b) {\n %c = add i32 %a, %b\n ret i32 %c\n}\n"
                                     "define internal i32 @hidden() {\n ret i32 1\n}\n"),
                               "", 0, NULL, 0, &jit));
  int (*add)(int, int) = (int (*)(int, int))tl_host_jit_lookup(jit, "add");
  ck_assert_ptr_nonnull(add);
  ck_assert_int_eq(add(40, 2), 42);
  ck_assert_ptr_null(tl_host_jit_lookup(jit, "hidden"));
  ck_assert_ptr_null(tl_host_jit_lookup(jit, "nowhere"));
  tl_host_jit_destroy(jit);
}
END_TEST

// The sign bit of a number that is loaded and widened too.
START_TEST(keeps_the_sign_of_a_loaded_bf16) {
  static const char text[] =
      "define i32 @f(ptr %p) {\n %a = load bfloat, ptr %p, align 2\n %b = bitcast bfloat %a to i16\n"
      " %c = lshr i16 %b, 15\n %d = zext i16 %c to i32\n %x = fpext bfloat %a to float\n"
      " %y = fmul float %x, 2.0\n %z = fcmp olt float %y, 1.0\n %w = zext i1 %z to i32\n"
      " %t = shl i32 %w, 1\n %r = or i32 %d, %t\n ret i32 %r\n}\n";
  for (int level = 0; level <= 2; level++) {
    tl_host_jit *jit;
    expect_ok(tl_host_jit_create(parse(text), level ? "default<O1>" : "", level, NULL, 0, &jit));
    int (*f)(const uint16_t *) = (int (*)(const uint16_t *))tl_host_jit_lookup(jit, "f");
    ck_assert_int_eq(f(&(uint16_t){0xbf80}), 3);
    ck_assert_int_eq(f(&(uint16_t){0x3f80}), 0);
    tl_host_jit_destroy(jit);
  }
}
END_TEST

static int twice(int x) {
  return 2 * x;
}

START_TEST(binds_symbols) {
  tl_host_symbol symbols[] = {{"twice:it", (void *)twice}};
  tl_host_jit *jit;
  expect_ok(tl_host_jit_create(
      parse("declare i32 @\"twice:it\"(i32)\ndeclare double @exp2(double)\n"
            "define double @f(i32 %x) {\n %a = call i32 @\"twice:it\"(i32 %x)\n"
            " %b = sitofp i32 %a to double\n %c = call double @exp2(double %b)\n ret double %c\n}\n"),
      "default<O1>", 1, symbols, 1, &jit));
  double (*f)(int) = (double (*)(int))tl_host_jit_lookup(jit, "f");
  ck_assert_double_eq(f(4), 256.0);
  tl_host_jit_destroy(jit);
}
END_TEST

START_TEST(own_definition_wins_over_libcall) {
  tl_host_jit *jit;
  expect_ok(tl_host_jit_create(parse("define double @erfc(double %x) {\n ret double 7.0\n}\n"), "", 0, NULL, 0, &jit));
  double (*f)(double) = (double (*)(double))tl_host_jit_lookup(jit, "erfc");
  ck_assert_double_eq(f(0.0), 7.0);
  tl_host_jit_destroy(jit);
}
END_TEST

// Calls that LLVM makes of others: sincos, exp10, ldexp, bcmp, memset, in both widths.
START_TEST(merged_calls) {
  static const struct {
    const char *name, *declarations, *body;  // %x: a double
    double wanted;                           // of x = 3
  } merged[] = {
      {"sincos", "declare double @sin(double) #0\ndeclare double @cos(double) #0\n",
       " %s = call double @sin(double %x)\n %c = call double @cos(double %x)\n %r = fsub double %s, %c\n",
       0.14112000805986721 + 0.98999249660044545},
      {"sincosf", "declare float @sinf(float) #0\ndeclare float @cosf(float) #0\n",
       " %f = fptrunc double %x to float\n %s = call float @sinf(float %f)\n %c = call float @cosf(float %f)\n"
       " %d = fsub float %s, %c\n %r = fpext float %d to double\n",
       0.14112000805986721 + 0.98999249660044545},
      {"exp10", "declare double @pow(double, double) #0\n", " %r = call double @pow(double 10.0, double %x)\n", 1000},
      {"exp10f", "declare float @powf(float, float) #0\n",
       " %f = fptrunc double %x to float\n %p = call float @powf(float 10.0, float %f)\n"
       " %r = fpext float %p to double\n",
       1000},
      {"exp2", "declare double @pow(double, double) #0\n", " %r = call double @pow(double 2.0, double %x)\n", 8},
      {"ldexp", "declare double @exp2(double) #0\n",
       " %i = fptosi double %x to i32\n %f = sitofp i32 %i to double\n %r = call double @exp2(double %f)\n", 8},
      {"bcmp", "declare i32 @memcmp(ptr, ptr, i64)\n",
       " %a = alloca [99 x i8]\n %b = alloca [99 x i8]\n %n = fptoui double %x to i64\n"
       " call void @llvm.memset.p0.i64(ptr %a, i8 1, i64 %n, i1 false)\n"
       " call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %n, i1 false)\n"
       " %c = call i32 @memcmp(ptr %a, ptr %b, i64 %n)\n %e = icmp eq i32 %c, 0\n %r = uitofp i1 %e to double\n",
       1},
  };
  for (size_t i = 0; i < sizeof merged / sizeof merged[0]; i++) {
    tl_strbuf text = {0};
    tl_strbuf_appendf(&text,
                      "%sdeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
                      "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
                      "attributes #0 = { nounwind willreturn memory(none) }\n"
                      "define double @f(double %%x) {\n%s ret double %%r\n}\n",
                      merged[i].declarations, merged[i].body);
    tl_host_jit *jit;
    tl_status status = tl_host_jit_create(parse(tl_strbuf_c(&text)), "default<O1>", 2, NULL, 0, &jit);
    ck_assert_msg(!status, "%s: %s", merged[i].name, tl_status_message(status));
    double (*f)(double) = (double (*)(double))tl_host_jit_lookup(jit, "f");
    ck_assert_msg(fabs(f(3) - merged[i].wanted) < 1e-5 * merged[i].wanted, "%s: %.9g", merged[i].name, f(3));
    tl_host_jit_destroy(jit);
    tl_strbuf_fini(&text);
  }
}
END_TEST

START_TEST(reports_errors) {
  tl_host_jit *jit;
  tl_status status = tl_host_jit_create(
      parse("declare void @no_such_function()\ndefine void @f() {\n call void @no_such_function()\n ret void\n}\n"), "",
      0, NULL, 0, &jit);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "no_such_function"));
  ck_assert_ptr_null(jit);
  tl_status_free(status);

  status = tl_host_jit_create(parse("define void @f() {\n ret void\n}\n"), "no-such-pass", 0, NULL, 0, &jit);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "no-such-pass"));
  tl_status_free(status);

  LLVMModuleRef broken = parse("define i32 @f() {\n ret i32 0\n}\n");
  LLVMInstructionEraseFromParent(LLVMGetLastInstruction(LLVMGetLastBasicBlock(LLVMGetNamedFunction(broken, "f"))));
  status = tl_host_jit_create(broken, "", 0, NULL, 0, &jit);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  tl_status_free(status);

  // The JIT works on after each of these.
  expect_ok(tl_host_jit_create(parse("define i32 @f() {\n ret i32 3\n}\n"), "", 0, NULL, 0, &jit));
  ck_assert_int_eq(((int (*)(void))tl_host_jit_lookup(jit, "f"))(), 3);
  tl_host_jit_destroy(jit);
}
END_TEST

static size_t resident_pages(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long size = 0, resident = 0;
  ck_assert_int_eq(fscanf(file, "%lu %lu", &size, &resident), 2);
  fclose(file);
  return resident;
}

START_TEST(destroy_gives_memory_back) {
  // 256 KiB of code and data a module: 200 of them would need 50 MB if they stayed.
  size_t before = 0;
  for (int i = 0; i < 200; i++) {
    tl_host_jit *jit;
    expect_ok(tl_host_jit_create(parse("@big = internal global [65536 x i32] zeroinitializer\n"
                                       "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
                                       "define ptr @f() {\n"
                                       " call void @llvm.memset.p0.i64(ptr @big, i8 1, i64 262144, i1 false)\n"
                                       " ret ptr @big\n}\n"),
                                 "", 0, NULL, 0, &jit));
    ((void *(*)(void))tl_host_jit_lookup(jit, "f"))();
    tl_host_jit_destroy(jit);
    if (i == 20) before = resident_pages();
  }
  size_t after = resident_pages();
#ifndef TL_SANITIZED
  ck_assert_msg(after < before + 2048, "%zu pages before, %zu after", before, after);
#else
  (void)before, (void)after;
#endif
}
END_TEST

static void *compile_many(void *argument) {
  int id = (int)(intptr_t)argument;
  for (int i = 0; i < 10; i++) {
    char text[128];
    snprintf(text, sizeof text, "define i32 @same_name() {\n ret i32 %d\n}\n", 1000 * id + i);
    tl_host_jit *jit;
    if (tl_host_jit_create(parse(text), "default<O1>", 1, NULL, 0, &jit)) return (void *)1;
    int value = ((int (*)(void))tl_host_jit_lookup(jit, "same_name"))();
    tl_host_jit_destroy(jit);
    if (value != 1000 * id + i) return (void *)2;
  }
  return NULL;
}

START_TEST(threads) {
  pthread_t ids[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&ids[i], NULL, compile_many, (void *)(intptr_t)i), 0);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(ids[i], &result);
    ck_assert_ptr_null(result);  // 1: a compile failed; 2: a wrong value
  }
}
END_TEST

// Conversions as code generation for a CPU without F16C asks for them, against support/dtype.
START_TEST(conversions_without_f16c) {
  tl_host_jit *jit;
  expect_ok(tl_host_jit_create(
      parse(
          "define void @narrow(ptr %f, ptr %d, ptr %h) #0 {\n"
          " %x = load float, ptr %f\n %y = load double, ptr %d\n"
          " %a = fptrunc float %x to half\n store half %a, ptr %h\n"
          " %b = fptrunc double %y to half\n %hb = getelementptr i16, ptr %h, i32 1\n store half %b, ptr %hb\n"
          " %c = fptrunc float %x to bfloat\n %hc = getelementptr i16, ptr %h, i32 2\n store bfloat %c, ptr %hc\n"
          " %e = fptrunc double %y to bfloat\n %he = getelementptr i16, ptr %h, i32 3\n store bfloat %e, ptr %he\n"
          " ret void\n}\n"
          "define float @widen(ptr %h) #0 {\n %a = load half, ptr %h\n %b = fpext half %a to float\n ret float %b\n}\n"
          "attributes #0 = { \"target-cpu\"=\"x86-64\" \"target-features\"=\"+sse2,-f16c,-avx,-avx512f\" }\n"),
      "", 0, NULL, 0, &jit));
  void (*narrow)(float *, double *, uint16_t *) =
      (void (*)(float *, double *, uint16_t *))tl_host_jit_lookup(jit, "narrow");
  float (*widen)(uint16_t *) = (float (*)(uint16_t *))tl_host_jit_lookup(jit, "widen");
  uint32_t state = 1;
  for (int i = 0; i < 200000; i++) {
    state = state * 1664525u + 1013904223u;
    uint32_t bits = state;
    if (i % 2) bits = (bits & 0x807fffffu) | ((0x62u + (state >> 7) % 50u) << 23);  // near the range of half
    float f;
    memcpy(&f, &bits, 4);
    double d = (double)f * (1.0 + 0x1p-30 * (double)(state >> 20));
    if (isnan(f)) continue;
    uint16_t got[4];
    narrow(&f, &d, got);
    double source[4] = {f, d, f, d};
    for (int k = 0; k < 4; k++) {
      uint16_t want;
      tl_dtype_store_float(k < 2 ? TL_DTYPE_F16 : TL_DTYPE_BF16, &want, 0, source[k]);
      ck_assert_msg(got[k] == want, "conversion %d of %a: %04x, wanted %04x", k, source[k], got[k], want);
    }
  }
  for (uint32_t h = 0; h < 65536; h++) {
    uint16_t half = (uint16_t)h;
    float got = widen(&half);
    double want = tl_dtype_load_float(TL_DTYPE_F16, &half, 0);
    ck_assert_msg(isnan(want) ? isnan(got) : (double)got == want, "half %04x: %a, wanted %a", h, got, want);
    if (!isnan(want)) ck_assert_uint_eq(tl_host_f32_to_f16(got), half);
  }
  tl_host_jit_destroy(jit);
}
END_TEST

START_TEST(reference_runs) {
  const char *text =
      "declare double @llvm.exp2.f64(double)\n"
      "define void @run(ptr %buffers, ptr %ints) {\n"
      " %a = load ptr, ptr %buffers\n %n = load i64, ptr %ints\n br label %head\n"
      "head:\n %i = phi i64 [0, %0], [%j, %body]\n %c = icmp slt i64 %i, %n\n br i1 %c, label %body, label %done\n"
      "body:\n %p = getelementptr double, ptr %a, i64 %i\n %x = load double, ptr %p\n"
      " %y = call double @llvm.exp2.f64(double %x)\n store double %y, ptr %p\n %j = add i64 %i, 1\n br label %head\n"
      "done:\n ret void\n}\n";
  tl_reference_fn *run;
  void *handle;
  expect_ok(tl_reference_jit_compile(tl_str_from(text), false, &run, &handle));
  double values[5] = {0, 1, 2, 3, -1};
  void *buffers[] = {values};
  long long ints[] = {5};
  run(buffers, ints);
  ck_assert_double_eq(values[3], 8.0);
  ck_assert_double_eq(values[4], 0.5);
  tl_reference_jit_destroy(handle);
}
END_TEST

START_TEST(reference_errors) {
  tl_reference_fn *run;
  void *handle;
  tl_status status = tl_reference_jit_compile(TL_STR("define void @run( {"), false, &run, &handle);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  ck_assert_ptr_nonnull(strstr(tl_status_message(status), "does not parse"));
  ck_assert_ptr_null(handle);
  tl_status_free(status);
  status = tl_reference_jit_compile(TL_STR("define void @walk() { ret void }"), false, &run, &handle);
  ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
  ck_assert_ptr_null(run);
  tl_status_free(status);
  tl_reference_jit_destroy(NULL);
  tl_host_jit_destroy(NULL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host_jit");
  TCase *cases = tcase_create("host_jit");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, compiles_and_calls);
  tcase_add_test(cases, keeps_the_sign_of_a_loaded_bf16);
  tcase_add_test(cases, binds_symbols);
  tcase_add_test(cases, own_definition_wins_over_libcall);
  tcase_add_test(cases, merged_calls);
  tcase_add_test(cases, reports_errors);
  tcase_add_test(cases, destroy_gives_memory_back);
  tcase_add_test(cases, threads);
  tcase_add_test(cases, conversions_without_f16c);
  tcase_add_test(cases, reference_runs);
  tcase_add_test(cases, reference_errors);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
