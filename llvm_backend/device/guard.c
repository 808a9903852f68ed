// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/guard.h"

#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/vec.h"

typedef struct guard {
  jmp_buf back;
  char *reason;  // Owned. LLVM's
  struct guard *outer;
} guard;

static _Thread_local guard *innermost;
static pthread_once_t install_once = PTHREAD_ONCE_INIT;

// LLVM is built without exceptions, so nothing is unwound; its own crash recovery jumps in the same way. Returning
// makes LLVM call exit(1).
static void leave_llvm(const char *reason) {
  if (!innermost) {
    fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  innermost->reason = strdup(reason);
  longjmp(innermost->back, 1);
}

static void install(void) {
  LLVMInstallFatalErrorHandler(leave_llvm);
}

tl_status tl_guard_run(const char *where, tl_guarded_call *call, void *user) {
  pthread_once(&install_once, install);
  guard here = {.outer = innermost};
  innermost = &here;
  if (setjmp(here.back) == 0) call(user);
  innermost = here.outer;
  if (!here.reason) return TL_OK;
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM gave up: %s", where, here.reason);
  free(here.reason);
  return status;
}

void tl_guard_abandon(LLVMContextRef context) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static TL_VEC(LLVMContextRef) abandoned;
  pthread_mutex_lock(&mutex);
  tl_vec_push(&abandoned, context);
  pthread_mutex_unlock(&mutex);
}
