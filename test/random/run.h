// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a spec's check in a process of its own, so that a crash or a hang is an outcome like any other.
#ifndef TL_TEST_RANDOM_RUN_H
#define TL_TEST_RANDOM_RUN_H

#include <stdbool.h>

#include "support/strbuf.h"
#include "test/child_process.h"

typedef struct tl_rspec_run_options {
  const char *target;  // "sm_80"; NULL: the spec's own
  bool early;          // asynchronous copies land early
  bool via_ptx;        // runs the PTX text too, which must give the same bits
  double timeout_s;    // of the whole process
} tl_rspec_run_options;

typedef struct tl_rspec_job {
  tl_child_process child;
} tl_rspec_job;

typedef struct tl_rspec_outcome {
  bool failed;
  bool refused;      // what it wants at once is more than a block has (TL0640, TL0641): no failure
  char kind[96];     // what sort of failure, without numbers and names: reductions keep it
  tl_strbuf report;  // Owned. The details.
} tl_rspec_outcome;

// Starts a check of `spec` (borrowed for this call) in the emulator, with all that it checks, as tl-run --check does.
void tl_rspec_start(const tl_strbuf *spec, const tl_rspec_run_options *options, tl_rspec_job *out);
// Reads what is there, for at most `seconds`; true when the job has ended, and then `out` is set and must be fini'd.
bool tl_rspec_poll(tl_rspec_job *job, double seconds, tl_rspec_outcome *out);
// Both, until the end.
void tl_rspec_run(const tl_strbuf *spec, const tl_rspec_run_options *options, tl_rspec_outcome *out);
void tl_rspec_outcome_fini(tl_rspec_outcome *outcome);

#endif
