// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of families.
#include "test/random/families.h"

#include <string.h>

typedef struct family {
  const char *name;
  uint32_t weight;
  void (*make)(tl_rspec *spec);
} family;

static const family families[] = {
#define TL_RSPEC_FAMILY(name, weight) {#name, weight, tl_rspec_make_##name},
#include "test/random/families.def"
#undef TL_RSPEC_FAMILY
};

int tl_rspec_num_families(void) {
  return (int)(sizeof(families) / sizeof(families[0]));
}

const char *tl_rspec_family_name(int number) {
  return families[number].name;
}

int tl_rspec_find_family(const char *name) {
  for (int i = 0; i < tl_rspec_num_families(); i++) {
    if (strcmp(families[i].name, name) == 0) return i;
  }
  return -1;
}

int tl_rspec_make(tl_rspec_choices *choices, int number, tl_strbuf *out) {
  uint32_t total = 0;
  for (int i = 0; i < tl_rspec_num_families(); i++) total += families[i].weight;
  uint32_t at = tl_rspec_choose(choices, total);
  if (number < 0) {
    number = 0;
    while (at >= families[number].weight) at -= families[number++].weight;
  }
  tl_rspec spec;
  tl_rspec_init(&spec, choices);
  families[number].make(&spec);
  if (tl_rspec_maybe(choices, 20)) tl_rspec_line(&spec, TL_RSPEC_OPTIONS, "persistent: true");
  tl_rspec_print(&spec, families[number].name, out);
  tl_rspec_fini(&spec);
  return number;
}
