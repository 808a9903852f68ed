// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutants that change nothing that any run could show.
#ifndef TL_TEST_MUTANTS_EQUIVALENT_H
#define TL_TEST_MUTANTS_EQUIVALENT_H

#include "test/mutants/mutate.h"

// Why the survivor `change` (as tl_mutant_apply described it) of the spec `path` is equivalent; NULL when it is not
// known to be.
const char *tl_mutant_equivalence(const char *path, tl_mutant_class class, const char *change, size_t len);

#endif
