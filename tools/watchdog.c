// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/watchdog.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/cli.h"

// Written while the timer is off.
static char message[512];

static void set_timer(double seconds) {
  double whole = floor(seconds);
  struct itimerval timer = {.it_value = {(time_t)whole, (suseconds_t)((seconds - whole) * 1e6)}};
  // Nothing at all would switch it off.
  if (seconds > 0 && !timer.it_value.tv_sec && !timer.it_value.tv_usec) timer.it_value.tv_usec = 1;
  setitimer(ITIMER_REAL, &timer, NULL);
}

// Calls only what a signal handler may call.
static void end_process(int signal_number) {
  (void)signal_number;
  ssize_t written = write(STDERR_FILENO, message, strlen(message));
  (void)written;
  _exit(TL_EXIT_FAILURE);
}

void tl_watchdog_start(const char *tool, const char *what, double seconds) {
  set_timer(0);
  snprintf(message, sizeof message - 1, "%s: %s did not end within %g s (--timeout)", tool, what, seconds);
  strcat(message, "\n");
  struct sigaction action = {.sa_handler = end_process};
  sigaction(SIGALRM, &action, NULL);
  set_timer(seconds);
}

void tl_watchdog_stop(void) {
  set_timer(0);
}
