// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A limit of time for what cannot be asked to stop: when it runs out, the process says so and ends.
#ifndef TL_TOOLS_WATCHDOG_H
#define TL_TOOLS_WATCHDOG_H

// From now on `what` may take so many seconds; it replaces what was watched before. When they are over, "TOOL: WHAT did
// not end within S s (--timeout)" goes to standard error and the process ends with the exit code of a failure.
void tl_watchdog_start(const char *tool, const char *what, double seconds);
void tl_watchdog_stop(void);

#endif
