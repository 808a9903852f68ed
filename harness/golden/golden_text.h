// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walking the lines and instructions of PTX text, for the files of golden.h only.
#ifndef TL_HARNESS_GOLDEN_TEXT_H
#define TL_HARNESS_GOLDEN_TEXT_H

#include "support/strview.h"

// The next word of a line; empty at its end. `line` becomes the rest.
tl_str tl_golden_next_word(tl_str *line);
// The next line of `text` without its end. `text` becomes the rest.
tl_str tl_golden_next_line(tl_str *text);
// The next instruction of PTX text from its opcode on, without a predicate; a line may hold several. Empty at the end.
// `ptx` becomes the rest.
tl_str tl_golden_next_instruction(tl_str *ptx);

// The next name of "sm_80,sm_90a", which becomes the rest.
tl_str tl_golden_next_target(tl_str *targets);

#endif
