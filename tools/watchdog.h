// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A limit of time for what cannot be asked to stop: when it runs out, the process says so and ends.
#ifndef TL_TOOLS_WATCHDOG_H
#define TL_TOOLS_WATCHDOG_H

// Says that `what` took more than `seconds`, on a thread of its own while the others go on: it may read what they do
// not change during a step. The process ends with the exit code of a failure when it returns.
typedef void tl_watchdog_fn(void *user, const char *what, double seconds);

// From now on `what` may take so many seconds; it replaces what was watched before. When they are over, `expired` is
// called.
void tl_watchdog_start(const char *what, double seconds, tl_watchdog_fn *expired, void *user);
// Does not return when the time has run out.
void tl_watchdog_stop(void);

#endif
