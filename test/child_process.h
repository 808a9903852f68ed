// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work in a process of its own, so that a crash or a hang is an outcome like any other.
#ifndef TL_TEST_CHILD_PROCESS_H
#define TL_TEST_CHILD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/strbuf.h"

typedef struct tl_child_process {
  pid_t process;  // -1: could not be started
  int pipe;
  double deadline;
  tl_strbuf output;  // Owned. What it printed, up to 1 MB.
} tl_child_process;

typedef enum tl_child_end { TL_CHILD_EXITED, TL_CHILD_SIGNALLED, TL_CHILD_LATE, TL_CHILD_NOT_STARTED } tl_child_end;

typedef struct tl_child_outcome {
  tl_child_end end;
  int code;  // exit status, or the signal
} tl_child_outcome;

// What a child may take is its processor's time, so that it passes or fails in the same way on a busy machine; one that
// does nothing is killed after so many times as long.
enum { TL_CHILD_PATIENCE = 10 };

// Starts `work(user)`, which never returns; what it writes to the file descriptor `stream` is collected. It is killed
// (TL_CHILD_LATE) after `timeout_s` of the processor's time.
void tl_child_start(tl_child_process *child, int stream, double timeout_s, void (*work)(void *user), void *user);
// Reads what is there, for at most `seconds`; true when the child has ended, and then `out` is set.
bool tl_child_poll(tl_child_process *child, double seconds, tl_child_outcome *out);

#endif
