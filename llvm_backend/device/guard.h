// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM ends the process when it meets what it cannot do ("Cannot select …"). A guarded call comes back instead.
#ifndef TL_LLVM_BACKEND_GUARD_H
#define TL_LLVM_BACKEND_GUARD_H

#include <llvm-c/Core.h>

#include "support/status.h"

typedef void tl_guarded_call(void *user);

// Runs `call(user)`. When LLVM gives up inside, the call is left at once and INTERNAL returned with LLVM's reason; then
// every LLVM object that the call worked on is in an unknown state: neither use nor dispose of it, hand the context to
// tl_guard_abandon. Thread-safe; calls may be nested.
TL_MUST_USE tl_status tl_guard_run(const char *where, tl_guarded_call *call, void *user);

// Memory that runs out inside LLVM from now on ends the guarded call, with OUT_OF_MEMORY; outside of one it ends the
// thread's tl_memory_guard. Other threads are not touched. tl_guard_run does it too.
void tl_guard_install(void);
// After a tl_memory_guard has ended early: what was guarded inside is over.
void tl_guard_forget(void);

// Keeps a context that LLVM left in an unknown state, with all that belongs to it, until the process ends.
void tl_guard_abandon(LLVMContextRef context);

#endif
