// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Input generators of check sections and of `tl-run --in`.
#ifndef TL_HARNESS_GENERATE_H
#define TL_HARNESS_GENERATE_H

#include "frontend/elaborate/instantiate.h"
#include "harness/data/array.h"

typedef struct tl_generate_request {
  const tl_expr *generator;  // Borrowed. NULL: normal(0, 1) for floats; an error for integers and bools.
  tl_loc loc;                // where to report when there is no generator
  const tl_env *env;         // Borrowed. Params and lets for the generator's arguments.
  const char *directory;     // .npy paths are relative to it; NULL: the working directory
  tl_str name;               // the argument, for messages
  uint64_t key;              // tl_random_key
  tl_dtype dtype;
  int32_t rank;
  int64_t shape[TL_ARRAY_MAX_RANK];
} tl_generate_request;

// Fills a new array. DIAGNOSTICS when the generator is wrong (reported in `diags`).
TL_MUST_USE tl_status tl_generate(const tl_generate_request *request, tl_diags *diags, tl_array *out);

// Reports what is wrong with the generator without making anything; files are not read. False after a report.
bool tl_generate_validate(const tl_generate_request *request, tl_diags *diags);

#endif
