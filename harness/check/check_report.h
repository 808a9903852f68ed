// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is said of an output that was compared: lines for people and an object of JSON for programs.
#ifndef TL_HARNESS_CHECK_REPORT_H
#define TL_HARNESS_CHECK_REPORT_H

#include "harness/check/writers.h"

typedef struct tl_compared_output {
  const tl_run_arg *arg;  // Borrowed.
  uint32_t index;         // of the argument
  const char *label;      // which of several runs it is of, "late: "; else ""
  const void *reference;  // doubles, or int64_t where the result is of integers
  double rtol, atol;
  tl_compare_result result;
  const tl_writers *writers;  // Borrowed. NULL: nobody was remembered
} tl_compared_output;

// Appends lines, each with its end, and one object of JSON.
void tl_check_report_output(const tl_compared_output *output, tl_strbuf *lines, tl_strbuf *json);

#endif
