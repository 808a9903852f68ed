// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/child_process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUT = 1 << 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void tl_child_start(tl_child_process *child, int stream, double timeout_s, void (*work)(void *user), void *user) {
  int ends[2];
  *child = (tl_child_process){.process = -1, .pipe = -1, .deadline = now() + TL_CHILD_PATIENCE * timeout_s};
  tl_strbuf_init(&child->output);
  fflush(NULL);
  if (pipe(ends) != 0) return;
  child->process = fork();
  if (child->process == 0) {
    dup2(ends[1], stream);
    close(ends[0]);
    close(ends[1]);
    rlim_t seconds = (rlim_t)timeout_s + 1;
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds + 1});
    work(user);
    _exit(0);
  }
  close(ends[1]);
  child->pipe = ends[0];
}

static void finish(tl_child_process *child, bool is_late, tl_child_outcome *out) {
  int status = 0;
  if (child->pipe >= 0) close(child->pipe);
  *out = (tl_child_outcome){.end = TL_CHILD_NOT_STARTED};
  if (child->process <= 0) return;
  if (is_late) kill(child->process, SIGKILL);
  waitpid(child->process, &status, 0);
  if (is_late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    out->end = TL_CHILD_LATE;
  else if (WIFSIGNALED(status))
    *out = (tl_child_outcome){TL_CHILD_SIGNALLED, WTERMSIG(status)};
  else
    *out = (tl_child_outcome){TL_CHILD_EXITED, WEXITSTATUS(status)};
}

bool tl_child_poll(tl_child_process *child, double seconds, tl_child_outcome *out) {
  double until = now() + seconds;
  bool is_late = false;
  while (child->pipe >= 0) {
    double left = until - now();
    struct pollfd wanted = {.fd = child->pipe, .events = POLLIN};
    if (poll(&wanted, 1, left > 0 ? (int)(left * 1000) : 0) <= 0) {
      // Late only when it has nothing to say: it may have ended while nobody listened.
      is_late = now() > child->deadline;
      if (is_late) break;
      if (left <= 0) return false;
      continue;
    }
    char bytes[4096];
    ssize_t got = read(child->pipe, bytes, sizeof(bytes));
    if (got <= 0) break;
    if (child->output.len < MAX_OUTPUT) tl_strbuf_append(&child->output, (tl_str){bytes, (size_t)got});
  }
  finish(child, is_late, out);
  return true;
}
