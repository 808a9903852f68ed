// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may reach the code generator: modules that must be refused, with the instruction in the message, and what is
// written in another way before.
#include <check.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/output/constructs.h"

static const char head[] =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "declare void @llvm.memset.p1.i64(ptr addrspace(1), i8, i64, i1)\n"
    "declare void @llvm.memcpy.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)\n"
    "declare double @llvm.sin.f64(double)\n"
    "declare half @llvm.sqrt.f16(half)\n"
    "declare i32 @foreign(i32)\n"
    "declare i9 @llvm.bitreverse.i9(i9)\n"
    "declare i1 @llvm.usub.sat.i1(i1, i1)\n"
    "declare { i1, i1 } @llvm.smul.with.overflow.i1(i1, i1)\n"
    "declare i48 @llvm.bswap.i48(i48)\n"
    "declare i128 @llvm.fshl.i128(i128, i128, i128)\n"
    "declare { i128, i1 } @llvm.umul.with.overflow.i128(i128, i128)\n"
    "declare float @llvm.fabs.f32(float)\n"
    "declare <2 x bfloat> @llvm.maxnum.v2bf16(<2 x bfloat>, <2 x bfloat>)\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "define ptx_kernel void @k(ptr addrspace(1) %g, ptr addrspace(3) %s, i32 %i, i64 %l, i16 %h, float %f, double %d, "
    "half %e, bfloat %y, i1 %b, <2 x bfloat> %Y, <2 x i1> %B, i8 %c)";

typedef struct module_case {
  const char *body;
  const char *refused;  // text of the message; NULL: allowed
  int sm;               // 0: 90
  bool flushes;
} module_case;

static const module_case cases[] = {
    // Orders that the backend drops.
    {"%x = atomicrmw add ptr addrspace(1) %g, i32 %i syncscope(\"device\") monotonic", NULL},
    {"%x = atomicrmw add ptr addrspace(1) %g, i32 %i syncscope(\"device\") release", "atomicrmw add"},
    {"%x = atomicrmw umax ptr addrspace(3) %s, i64 %l syncscope(\"block\") acquire", "atomicrmw umax"},
    {"%x = atomicrmw xchg ptr addrspace(1) %g, i64 %l syncscope(\"device\") acq_rel", "acq_rel"},
    {"%x = atomicrmw fadd ptr addrspace(1) %g, float %f syncscope(\"device\") release", "atomicrmw fadd"},
    {"%x = atomicrmw add ptr addrspace(1) %g, i32 %i seq_cst", "seq_cst"},
    // Loops that it makes itself.
    {"%x = atomicrmw fmax ptr addrspace(1) %g, float %f monotonic", "atomicrmw fmax"},
    {"%x = atomicrmw fmin ptr addrspace(3) %s, half %e monotonic, align 4", "atomicrmw fmin"},
    {"%x = atomicrmw fadd ptr addrspace(1) %g, half %e monotonic", NULL},
    {"%x = atomicrmw fadd ptr addrspace(1) %g, bfloat %y monotonic", NULL},
    {"%x = atomicrmw fadd ptr addrspace(1) %g, bfloat %y monotonic", "atomicrmw fadd", 80},
    {"%x = atomicrmw fsub ptr addrspace(1) %g, float %f monotonic", "atomicrmw fsub"},
    {"%x = atomicrmw add ptr addrspace(1) %g, i16 %h monotonic", "atomicrmw add"},
    {"%x = atomicrmw xchg ptr addrspace(1) %g, i8 %c monotonic", "atomicrmw xchg"},
    {"%x = atomicrmw nand ptr addrspace(1) %g, i32 %i monotonic", "atomicrmw nand"},
    {"%x = atomicrmw uinc_wrap ptr addrspace(1) %g, i32 %i monotonic", "atomicrmw uinc_wrap"},
    {"%x = cmpxchg ptr addrspace(1) %g, i32 %i, i32 7 monotonic monotonic", NULL},
    {"%x = cmpxchg ptr addrspace(1) %g, i16 %h, i16 7 monotonic monotonic", "cmpxchg"},
    {"%x = cmpxchg ptr addrspace(1) %g, i32 %i, i32 7 release monotonic", "cmpxchg"},
    {"call void @llvm.memset.p1.i64(ptr addrspace(1) %g, i8 0, i64 %l, i1 false)", "llvm.memset"},
    {"call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %g, ptr addrspace(1) %g, i64 8, i1 0)", "llvm.memcpy"},
    // Ordered loads, stores and fences are what PTX has.
    {"%x = load atomic i32, ptr addrspace(1) %g syncscope(\"device\") acquire, align 4", NULL},
    {"%x = load atomic i32, ptr addrspace(1) %g seq_cst, align 4", "seq_cst"},
    {"store atomic i32 %i, ptr addrspace(1) %g syncscope(\"device\") release, align 4", NULL},
    {"store atomic i32 %i, ptr addrspace(1) %g seq_cst, align 4", "seq_cst"},
    {"fence syncscope(\"device\") acq_rel", NULL},
    {"fence seq_cst", "seq_cst"},
// Loads that are aligned to more than what is read there become vectors that read on.
#define AT(name, offset) "%" name " = getelementptr i8, ptr addrspace(1) %g, i64 " offset "\n "
#define FLOAT(name, from, align) "%" name " = load float, ptr addrspace(1) %" from ", align " align "\n "
    {FLOAT("x", "g", "16"), "align 16"},
    {AT("p", "4") AT("q", "8") FLOAT("x", "g", "16") FLOAT("u", "p", "4") FLOAT("z", "q", "8"), "align 16"},
    {AT("p", "4") AT("q", "8") AT("r", "12") FLOAT("x", "g", "16") FLOAT("u", "p", "4") FLOAT("z", "q", "8")
         FLOAT("w", "r", "4"),
     NULL},
    {AT("p", "4") FLOAT("x", "g", "8") "store float %f, ptr addrspace(3) %s\n" FLOAT("u", "p", "4"), NULL},
    {AT("p", "4") FLOAT("x", "g", "8") "fence syncscope(\"device\") acquire\n" FLOAT("u", "p", "4"), "align 8"},
    {"%x = load <3 x half>, ptr addrspace(1) %g, align 8", "align 8"},
    {"%x = load <4 x half>, ptr addrspace(1) %g, align 8", NULL},
    {"%x = load <4 x float>, ptr addrspace(1) %g, align 64", "align 64"},
    // Conversions.
    {"%x = sitofp i1 %b to bfloat", "sitofp"},
    {"%x = uitofp <2 x i1> %B to <2 x half>", "uitofp"},
    {"%x = sitofp i1 %b to float", NULL},
    {"%x = sitofp i32 %i to bfloat", NULL},
    {"%n = trunc i32 %i to i4\n %x = sitofp i4 %n to float", NULL},
    {"%n = zext i64 %l to i128\n %x = udiv i128 %n, 7", "udiv i128"},
    {"%x = fptoui float %f to i1", "fptoui"},
    // Intrinsics of integers, at the widths that InstCombine makes of ranges.
    {"%n = trunc i32 %i to i9\n %x = call i9 @llvm.bitreverse.i9(i9 %n)", NULL},
    {"%x = call i1 @llvm.usub.sat.i1(i1 %b, i1 %b)", NULL},
    {"%x = call { i1, i1 } @llvm.smul.with.overflow.i1(i1 %b, i1 %b)", NULL},
    {"%n = trunc i64 %l to i48\n %x = call i48 @llvm.bswap.i48(i48 %n)", NULL},
    {"%n = zext i64 %l to i128\n %x = call i128 @llvm.fshl.i128(i128 %n, i128 %n, i128 3)", NULL},
    {"%n = zext i64 %l to i128\n %x = call { i128, i1 } @llvm.umul.with.overflow.i128(i128 %n, i128 %n)",
     "llvm.umul.with.overflow.i128"},
    {"%x = fptosi double %d to i1", "fptosi"},
    {"%x = shl nsw i32 %i, 31", "shl nsw"},
    {"%x = shl nsw i32 %i, 30", NULL},
    {"%x = shl nsw i64 %l, 63", "shl nsw"},
    {"%x = shl i32 %i, 31", NULL},
    // Comparisons of bf16 where denormals are flushed.
    {"%x = fcmp olt bfloat %y, 1.0", NULL},
    {"%x = fcmp olt bfloat %y, 1.0", "fcmp olt", 90, true},
    {"%x = fcmp uno <2 x bfloat> %Y, zeroinitializer", "fcmp uno", 90, true},
    {"%x = fcmp olt half %e, 1.0", NULL, 90, true},
    // Others.
    {"%x = frem float %f, 2.0", "frem"},
    {"%x = call double @llvm.sin.f64(double %d)", "llvm.sin"},
    {"%x = call half @llvm.sqrt.f16(half %e)", "llvm.sqrt"},
    {"%x = call i32 @foreign(i32 %i)", "`foreign`"},
    {"%x = call float @llvm.fabs.f32(float %f)", NULL},
    {"%x = call <2 x bfloat> @llvm.maxnum.v2bf16(<2 x bfloat> %Y, <2 x bfloat> %Y)", NULL},
    {"%x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", NULL},
    {"call void asm sideeffect \"membar.gl;\", \"\"()", "asm sideeffect"},
};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

static LLVMModuleRef read_module(tl_session *session, const module_case *m) {
  char text[4096], *message = NULL;
  snprintf(text, sizeof text, "%s %s {\n  %s\n  ret void\n}\n", head,
           m->flushes ? "\"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\"" : "", m->body);
  ck_assert(!tl_session_init(session, tl_target_find(TL_STR("sm_90a")), 3));
  LLVMContextSetDiscardValueNames(session->context, 0);  // the reader of IR text wants them
  LLVMModuleRef module = NULL;
  LLVMMemoryBufferRef source = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "k");
  ck_assert_msg(!LLVMParseIRInContext2(session->context, source, &module, &message), "%s: %s", m->body, message);
  LLVMDisposeMemoryBuffer(source);
  return module;
}

START_TEST(table) {
  const module_case *m = &cases[_i];
  tl_session session;
  LLVMModuleRef module = read_module(&session, m);
  tl_status status = tl_backend_verify_constructs(module, m->sm ? m->sm : 90);
  if (m->refused) {
    ck_assert_msg(tl_status_code_of(status) == TL_STATUS_INTERNAL, "%s: allowed", m->body);
    ck_assert_msg(strstr(tl_status_message(status), m->refused), "%s", tl_status_message(status));
  } else {
    ck_assert_msg(!status, "%s", tl_status_message(status));
  }
  tl_status_free(status);
  LLVMDisposeModule(module);
  tl_session_fini(&session);
}
END_TEST

// What the optimiser makes of other code, with what stands for it.
static const struct {
  module_case before;
  const char *after[2];
} legalised[] = {
    {{"%x = sitofp i1 %b to bfloat\n store bfloat %x, ptr addrspace(1) %g"},
     {"select i1 %b, bfloat 0xRBF80, bfloat 0xR0000"}},
    {{"%x = uitofp i1 %b to half\n store half %x, ptr addrspace(1) %g"}, {"select i1 %b, half 0xH3C00, half 0xH0000"}},
    {{"%x = sitofp <2 x i1> %B to <2 x bfloat>\n store <2 x bfloat> %x, ptr addrspace(1) %g"},
     {"select <2 x i1> %B, <2 x bfloat> splat (bfloat 0xRBF80), <2 x bfloat> zeroinitializer"}},
    {{"%x = shl nsw i32 %i, 31\n%z = sext i32 %x to i64\n store i64 %z, ptr addrspace(1) %g"}, {"shl i32 %i, 31"}},
    {{"%x = fcmp olt bfloat %y, 1.0\n store i1 %x, ptr addrspace(1) %g", NULL, 90, true},
     {"fcmp olt float", "shl i32"}},
    {{"%x = fcmp uno <2 x bfloat> %Y, zeroinitializer\n store <2 x i1> %x, ptr addrspace(1) %g", NULL, 90, true},
     {"fcmp uno <2 x float>", "shl <2 x i32>"}},
    {{AT("p", "4") AT("q", "8") FLOAT("x", "g", "16") FLOAT("u", "p", "4") FLOAT("z", "q", "8")},
     {"load float, ptr addrspace(1) %g, align 8", "load float, ptr addrspace(1) %q, align 4"}},
    {{"%x = load <3 x half>, ptr addrspace(1) %g, align 8"}, {"load <3 x half>, ptr addrspace(1) %g, align 4"}},
};

START_TEST(rewritten) {
  tl_session session;
  LLVMModuleRef module = read_module(&session, &legalised[_i].before);
  tl_backend_legalise(&session, module);
  char *text = LLVMPrintModuleToString(module);
  for (int i = 0; i < 2 && legalised[_i].after[i]; i++)
    ck_assert_msg(strstr(text, legalised[_i].after[i]), "no '%s' in\n%s", legalised[_i].after[i], text);
  LLVMDisposeMessage(text);
  tl_status status = tl_backend_verify_constructs(module, 90);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert(!tl_session_verify(&session, module, "test"));
  LLVMDisposeModule(module);
  tl_session_fini(&session);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_constructs");
  TCase *all = tcase_create("all");
  tcase_add_loop_test(all, table, 0, NUM_CASES);
  tcase_add_loop_test(all, rewritten, 0, sizeof legalised / sizeof legalised[0]);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
