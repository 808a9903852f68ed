// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/guard.h"

#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"

typedef struct guard {
  jmp_buf back;
  char *reason;  // Owned. LLVM's; NULL when there was no memory for it
  bool has_left, is_exhausted;
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
  innermost->has_left = true;
  longjmp(innermost->back, 1);
}

// ---- memory that runs out inside LLVM

// C++ functions without a C name: what operator new calls when there is no memory, and what LLVM's own allocation does.
typedef void (*new_handler)(void);
typedef void (*bad_alloc_handler)(void *user, const char *reason, bool with_diagnostics);
new_handler tl_set_new_handler(new_handler handler) __asm__("_ZSt15set_new_handlerPFvvE") __attribute__((weak));
void tl_install_bad_alloc_handler(bad_alloc_handler handler,
                                  void *user) __asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_")
    __attribute__((weak));

static new_handler other_handler;

// Comes back when nobody on this thread waits for it.
static void leave_exhausted(void) {
  if (!innermost) {
    tl_memory_exhausted();
    return;
  }
  innermost->has_left = innermost->is_exhausted = true;
  longjmp(innermost->back, 1);
}

// A thread of the embedding program gets what it would have got: its own handler, or std::bad_alloc.
static void new_failed(void) {
  leave_exhausted();
  tl_set_new_handler(other_handler);
}

static void llvm_failed(void *user, const char *reason, bool with_diagnostics) {
  (void)user;
  (void)with_diagnostics;
  leave_exhausted();
  fprintf(stderr, "LLVM ERROR: out of memory: %s\n", reason);
  abort();
}

static void install(void) {
  LLVMInstallFatalErrorHandler(leave_llvm);
  if (tl_install_bad_alloc_handler) tl_install_bad_alloc_handler(llvm_failed, NULL);
}

void tl_guard_install(void) {
  pthread_once(&install_once, install);
  if (!tl_set_new_handler) return;
  new_handler before = tl_set_new_handler(new_failed);
  if (before != new_failed) other_handler = before;
}

void tl_guard_forget(void) {
  innermost = NULL;
}

tl_status tl_guard_run(const char *where, tl_guarded_call *call, void *user) {
  tl_guard_install();
  guard here = {.outer = innermost};
  innermost = &here;
  if (setjmp(here.back) == 0) call(user);
  innermost = here.outer;
  if (!here.has_left) return TL_OK;
  if (here.is_exhausted) return tl_status_out_of_memory();
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s: LLVM gave up: %s", where,
                                    here.reason ? here.reason : "it does not say why");
  free(here.reason);
  return status;
}

void tl_guard_abandon(LLVMContextRef context) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static LLVMContextRef *abandoned;
  static size_t num_abandoned;
  pthread_mutex_lock(&mutex);
  // Only for tools that look for leaks: without memory for the list it is lost all the same.
  LLVMContextRef *grown = realloc(abandoned, (num_abandoned + 1) * sizeof(*grown));
  if (grown) {
    abandoned = grown;
    abandoned[num_abandoned++] = context;
  }
  pthread_mutex_unlock(&mutex);
}
