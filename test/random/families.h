// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kinds of random specs, and the one call that makes a spec from choices.
#ifndef TL_TEST_RANDOM_FAMILIES_H
#define TL_TEST_RANDOM_FAMILIES_H

#include "test/random/writer.h"

#define TL_RSPEC_FAMILY(name, weight) void tl_rspec_make_##name(tl_rspec *spec);
#include "test/random/families.def"
#undef TL_RSPEC_FAMILY

// The number of the family called `name`, or -1.
int tl_rspec_find_family(const char *name);
int tl_rspec_num_families(void);
const char *tl_rspec_family_name(int family);
// Writes the spec that `choices` lead to. `family`: its number, or -1 to draw it. Returns the family's number.
int tl_rspec_make(tl_rspec_choices *choices, int family, tl_strbuf *out);

#endif
