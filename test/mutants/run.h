// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a spec's check cases with one mutant, in a process of its own: mutants crash and hang.
#ifndef TL_TEST_MUTANTS_RUN_H
#define TL_TEST_MUTANTS_RUN_H

#include "test/child_process.h"
#include "test/mutants/mutate.h"

// What found a mutant, or that nothing did.
typedef enum tl_mutant_verdict {
  TL_MUTANT_SURVIVED,
  TL_MUTANT_FOUND,      // by a check of the emulator, wrong data, a deadlock
  TL_MUTANT_TIMED_OUT,  // also found
  TL_MUTANT_CRASHED     // the emulator itself died: a fault of ours
} tl_mutant_verdict;

typedef struct tl_mutant_setup {
  const char *path, *target;  // Borrowed. `target` NULL: the spec's own.
  uint32_t kernel;            // of the spec, from 0
  double timeout_s;
} tl_mutant_setup;

typedef struct tl_mutant_job {
  tl_mutant_class class;
  uint32_t site;
  tl_child_process child;
  tl_mutant_verdict verdict;
} tl_mutant_job;

// Kernels of the spec; 0 when it cannot be read, with the reason on stderr.
uint32_t tl_mutant_num_kernels(const char *path);
// Whether the kernel has a check section of its own: those that only a chain's checks run have none.
bool tl_mutant_is_checked(const char *path, uint32_t kernel);
// The most sites of each class over the check cases. False when the spec does not pass its own checks unchanged, with
// the report in `output`.
bool tl_mutant_baseline(const tl_mutant_setup *setup, uint32_t sites[TL_MUTANT_COUNT], tl_strbuf *output);
void tl_mutant_start(const tl_mutant_setup *setup, tl_mutant_job *job);
// Reads for at most `seconds`; true when the job has ended and `verdict` is set.
bool tl_mutant_poll(tl_mutant_job *job, double seconds);

#endif
