// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ptxas as a child process with a time limit. It is optional everywhere.
#ifndef TL_HARNESS_PTXAS_H
#define TL_HARNESS_PTXAS_H

#include <stdbool.h>

#include "support/status.h"
#include "support/strbuf.h"

typedef struct tl_ptxas {
  char *path;     // Owned.
  char *version;  // Owned. "13.0.88".
  double timeout_s;
} tl_ptxas;

// What `ptxas -v` says of one kernel.
// Of a file with several kernels the most that one of them has.
typedef struct tl_ptxas_usage {
  int registers;
  int spill_store_bytes, spill_load_bytes;
  int stack_bytes;
} tl_ptxas_usage;

// Finds ptxas: `path` when given, else $TL_PTXAS, else in PATH, else /usr/local/cuda/bin/ptxas. NOT_FOUND when there is
// none; LIMIT when it does not tell its version within `timeout_s`, which is that of the assembling too (0: the
// default).
TL_MUST_USE tl_status tl_ptxas_find(const char *path, double timeout_s, tl_ptxas *out);
void tl_ptxas_fini(tl_ptxas *ptxas);

// Assembles PTX for "sm_80". Appends the cubin's bytes. INVALID_ARGUMENT holds ptxas' messages; LIMIT: it ran out of
// time.
TL_MUST_USE tl_status tl_ptxas_assemble(const tl_ptxas *ptxas, const char *target, tl_str ptx, tl_strbuf *out_cubin,
                                        tl_ptxas_usage *out_usage);

#endif
