// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules as text and back, for tests of the IR (Check).
#ifndef TL_TEST_IR_TEXT_UTIL_H
#define TL_TEST_IR_TEXT_UTIL_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"

static inline char *print_module(const tl_module *module) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_module_print(module, &text);
  return tl_strbuf_take(&text);
}

// Parses; on errors the diagnostics come back as text in `out_errors` (free it).
static inline tl_module *parse_text(const char *text, char **out_errors) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t source = tl_sources_add(&sources, "test.tir", tl_str_from(text));
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_module *module = tl_module_parse(&sources, source, &diags);
  tl_strbuf errors;
  tl_strbuf_init(&errors);
  tl_strbuf_append_c(&errors, "");
  tl_diags_print_text(&diags, &errors, false);
  *out_errors = strdup(tl_strbuf_c(&errors));
  tl_strbuf_fini(&errors);
  ck_assert_int_eq(module == NULL, tl_diags_has_errors(&diags));
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return module;
}

static inline tl_module *parse_good(const char *text) {
  char *errors;
  tl_module *module = parse_text(text, &errors);
  ck_assert_msg(module != NULL, "%s\nin\n%s", errors, text);
  free(errors);
  return module;
}

// print(parse(text)) == text, and a clone prints the same.
static inline void check_round_trip(const char *text) {
  tl_module *module = parse_good(text);
  char *again = print_module(module);
  ck_assert_str_eq(again, text);
  tl_module *copy = tl_module_clone(module);
  tl_module_destroy(module);
  char *cloned = print_module(copy);
  ck_assert_str_eq(cloned, text);
  tl_module_destroy(copy);
  free(again);
  free(cloned);
}

// The text of a file; free it.
static inline char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "%s", path);
  tl_strbuf text;
  tl_strbuf_init(&text);
  char chunk[4096];
  size_t len;
  while ((len = fread(chunk, 1, sizeof(chunk), file)) > 0) tl_strbuf_append(&text, (tl_str){chunk, len});
  fclose(file);
  return tl_strbuf_take(&text);
}

static inline int is_ir_case(const struct dirent *entry) {
  return strstr(entry->d_name, ".tir") != NULL;
}

// The files of test/ir, in the order of their names.
static inline void for_each_ir_case(void (*visit)(const char *path)) {
  struct dirent **entries;
  int count = scandir("test/ir", &entries, is_ir_case, alphasort);
  ck_assert_int_gt(count, 0);
  for (int i = 0; i < count; i++) {
    char path[512];
    snprintf(path, sizeof(path), "test/ir/%s", entries[i]->d_name);
    free(entries[i]);
    visit(path);
  }
  free(entries);
}

#endif
