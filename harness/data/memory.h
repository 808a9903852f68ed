// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much memory a run may take: sizes of the command line and the machine's share.
#ifndef TL_HARNESS_MEMORY_H
#define TL_HARNESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "support/strbuf.h"

// Three quarters of what this process may have: of the machine's memory, its control group's and its own limit the
// smallest. Bytes; UINT64_MAX when nothing is known.
uint64_t tl_memory_default_limit(void);

// "8G", "512M", "1.5T", "100000": bytes, with K, M, G, T for powers of 1024. False when it is no such size or less than
// one byte.
bool tl_memory_parse(const char *text, uint64_t *out);

// "61.2 GiB".
void tl_memory_print(uint64_t bytes, tl_strbuf *out);

#endif
