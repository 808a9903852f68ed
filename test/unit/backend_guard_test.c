// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's fatal errors come back as a status; what was compiled before and after is unharmed.
#include <check.h>
#include <llvm-c/IRReader.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/device/session.h"

// An instruction of sm_90a for sm_80: "Cannot select".
static const char impossible[] =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "declare void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32)\n"
    "define ptx_kernel void @k() {\n  call void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 96)\n  ret void\n}\n";
static const char possible[] =
    "target triple = \"nvptx64-nvidia-cuda\"\ndefine ptx_kernel void @k() {\n  ret void\n}\n";

typedef struct attempt {
  tl_session *session;
  LLVMModuleRef module;
  LLVMMemoryBufferRef buffer;
  char *message;
} attempt;

static void emit(void *user) {
  attempt *a = user;
  if (LLVMTargetMachineEmitToMemoryBuffer(a->session->machine, a->module, LLVMAssemblyFile, &a->message, &a->buffer))
    LLVMDisposeMessage(a->message);
}

static tl_status compile(const char *text, tl_session *session) {
  tl_status status = tl_session_init(session, tl_target_find(TL_STR("sm_80")), 3);
  if (!status) status = tl_session_begin_module(session, "k");
  if (status) return status;
  attempt a = {.session = session};
  LLVMContextSetDiscardValueNames(session->context, 0);  // the reader of IR text wants them
  LLVMMemoryBufferRef source = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "k");
  char *message = NULL;
  bool failed = LLVMParseIRInContext2(session->context, source, &a.module, &message);
  LLVMDisposeMemoryBuffer(source);
  ck_assert_msg(!failed, "%s", message);
  status = tl_session_guard(session, "test", emit, &a);
  if (a.buffer) LLVMDisposeMemoryBuffer(a.buffer);
  if (!session->is_abandoned) LLVMDisposeModule(a.module);
  return status;
}

static void *compile_often(void *unused) {
  (void)unused;
  for (int i = 0; i < 20; i++) {
    tl_session session;
    tl_status status = compile(possible, &session);
    ck_assert_msg(!status, "%s", tl_status_message(status));
    tl_session_fini(&session);
    status = compile(impossible, &session);
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
    ck_assert_ptr_nonnull(strstr(tl_status_message(status), "test: LLVM gave up: Cannot select"));
    tl_status_free(status);
    attempt none = {0};
    status = tl_session_guard(&session, "again", emit, &none);  // does not reach LLVM
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_INTERNAL);
    tl_status_free(status);
    tl_session_fini(&session);
  }
  return NULL;
}

START_TEST(fatal_errors_come_back) {
  compile_often(NULL);
}
END_TEST

START_TEST(fatal_errors_stay_in_their_thread) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_often, NULL), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
END_TEST

int main(void) {
  TCase *cases = tcase_create("guard");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, fatal_errors_come_back);
  tcase_add_test(cases, fatal_errors_stay_in_their_thread);
  Suite *suite = suite_create("backend_guard");
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
