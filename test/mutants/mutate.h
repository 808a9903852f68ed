// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutants of a scheduled module: small mistakes of the kind a compiler makes, one at a time.
#ifndef TL_TEST_MUTANTS_MUTATE_H
#define TL_TEST_MUTANTS_MUTATE_H

#include "ir/ir.h"

typedef enum tl_mutant_class {
#define TL_MUTANT(ID, name, doc) TL_MUTANT_##ID,
#include "test/mutants/mutants.def"
#undef TL_MUTANT
  TL_MUTANT_COUNT
} tl_mutant_class;

const char *tl_mutant_name(tl_mutant_class class);
const char *tl_mutant_doc(tl_mutant_class class);

// Sites of a class in `module`.
uint32_t tl_mutant_sites(tl_module *module, tl_mutant_class class);
// Changes site number `site` (from 0) and appends the operation that was changed, as text, to `what`. False: the module
// has fewer sites, and nothing was changed.
bool tl_mutant_apply(tl_module *module, tl_mutant_class class, uint32_t site, tl_strbuf *what);

#endif
