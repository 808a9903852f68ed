// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What jansson's json_loadf compares its stream with, in a libtl that holds jansson (libtl.cmake).
#include <stdio.h>

extern __attribute__((visibility("hidden"))) FILE *tl_no_stdin;
FILE *tl_no_stdin;
