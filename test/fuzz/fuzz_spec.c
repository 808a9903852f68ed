// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a spec file: the parser survives, says something about whatever it refuses, and prints what it accepts
// so that it reads back to the same text.
#include <stdio.h>
#include <stdlib.h>

#include "frontend/spec/spec.h"
#include "fuzz.h"
#include "support/diag.h"

static void fail(const char *what, const tl_strbuf *text) {
  fprintf(stderr, "%s:\n%s\n", what, tl_strbuf_c(text));
  abort();
}

// Every place that is reported lies within its file.
static void check_places(const tl_sources *sources, const tl_diags *diags) {
  for (size_t i = 0; i < diags->list.len; i++) {
    tl_loc loc = diags->list.items[i]->loc;
    const tl_source *source = tl_sources_get(sources, loc.source);
    if (source && (loc.offset > source->text.len || loc.length > source->text.len - loc.offset)) abort();
  }
}

static void check_printing(const tl_spec *spec) {
  tl_strbuf first, second;
  tl_strbuf_init(&first);
  tl_strbuf_init(&second);
  tl_spec_print(spec, &first);
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_spec *again = tl_spec_parse(&sources, tl_sources_add(&sources, "printed", tl_strbuf_view(&first)), &diags);
  if (!again || tl_diags_has_errors(&diags)) {
    if (diags.list.len) fprintf(stderr, "%s\n", diags.list.items[0]->text);
    fail("the printed spec does not parse", &first);
  }
  tl_spec_print(again, &second);
  if (!tl_str_equal(tl_strbuf_view(&first), tl_strbuf_view(&second))) fail("the printed spec prints otherwise", &first);
  tl_spec_destroy(again);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  tl_strbuf_fini(&first);
  tl_strbuf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_spec *spec = tl_spec_parse(&sources, tl_sources_add(&sources, "fuzz", (tl_str){(const char *)data, size}), &diags);
  if (!spec && !tl_diags_has_errors(&diags)) abort();
  check_places(&sources, &diags);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(&diags, &text, false);
  tl_diags_print_json(&diags, &text);
  tl_strbuf_fini(&text);
  if (spec && !tl_diags_has_errors(&diags)) check_printing(spec);
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return 0;
}
