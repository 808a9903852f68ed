// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How two results of one kernel differ, for people.
#ifndef TL_HARNESS_REPEAT_REPORT_H
#define TL_HARNESS_REPEAT_REPORT_H

#include "harness/check/repeat_data.h"

// The written part of a set in `image` against `expected`: a line an argument that differs ("C: f32[8], 2 of 8 elements
// differ"), and one for each of its first elements, and for guards that were overwritten. Lines end with '\n'; empty:
// no bit that `compared` has differs. `values` is a scratch of the arguments.
void tl_repeat_print_differences(const tl_repeat_sets *sets, const uint8_t *image, const uint8_t *compared,
                                 tl_run_args *values, tl_strbuf *out);

#endif
