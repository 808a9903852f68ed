// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as IR text: the parser survives and reports exactly when it refuses; what it accepts prints to a text that
// parses to a module that prints the same, can be cloned, and can be verified.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ir/text/text.h"

static tl_module *parse(tl_str text) {
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  uint32_t source = tl_sources_add(&sources, "fuzz", text);
  tl_module *module = tl_module_parse(&sources, source, &diags);
  if ((module == NULL) != tl_diags_has_errors(&diags)) abort();
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return module;
}

static void check_same(const char *expected, const tl_module *module) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_module_print(module, &text);
  if (strcmp(tl_strbuf_c(&text), expected) != 0) {
    fprintf(stderr, "printed\n%s\nthen\n%s\n", expected, tl_strbuf_c(&text));
    abort();
  }
  tl_strbuf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tl_module *module = parse((tl_str){(const char *)data, size});
  if (module == NULL) return 0;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_module_print(module, &text);
  tl_module *again = parse(tl_strbuf_view(&text));
  if (again == NULL) {
    fprintf(stderr, "does not parse back:\n%s\n", tl_strbuf_c(&text));
    abort();
  }
  check_same(tl_strbuf_c(&text), again);
  tl_module *copy = tl_module_clone(module);
  check_same(tl_strbuf_c(&text), copy);
  tl_verify_result result;
  tl_module_verify(module, &result);
  tl_verify_result_fini(&result);
  tl_strbuf_fini(&text);
  tl_module_destroy(copy);
  tl_module_destroy(again);
  tl_module_destroy(module);
  return 0;
}
