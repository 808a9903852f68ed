// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the front end's unit tests share: a text as a source with its diagnostics.
#ifndef TL_TEST_UNIT_FRONTEND_TEST_UTIL_H
#define TL_TEST_UNIT_FRONTEND_TEST_UTIL_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/expr/expr.h"
#include "support/diag.h"

typedef struct fixture {
  tl_arena arena;
  tl_sources sources;
  tl_diags diags;
  uint32_t source;
} fixture;

static inline void fixture_init(fixture *fix, tl_str text) {
  tl_arena_init(&fix->arena);
  tl_sources_init(&fix->sources);
  tl_diags_init(&fix->diags, &fix->sources);
  fix->source = tl_sources_add(&fix->sources, "t.yaml", text);
}

static inline void fixture_fini(fixture *fix) {
  tl_diags_fini(&fix->diags);
  tl_sources_fini(&fix->sources);
  tl_arena_fini(&fix->arena);
}

// The whole source as one located text, every byte at its own place.
static inline tl_located_text fixture_text(fixture *fix) {
  tl_str text = tl_sources_get(&fix->sources, fix->source)->text;
  uint32_t *offsets = TL_NEW_ARRAY(&fix->arena, uint32_t, text.len + 1);
  for (size_t i = 0; i <= text.len; i++) offsets[i] = (uint32_t)i;
  tl_loc loc = {fix->source, 0, (uint32_t)text.len};
  return (tl_located_text){text, {fix->source, offsets}, loc};
}

// Fails unless diagnostic `index` has this code, stands at line:column and contains `text`.
static inline void assert_diag(const fixture *fix, size_t index, const char *code, uint32_t line, uint32_t column,
                               const char *text) {
  ck_assert_msg(index < fix->diags.list.len, "expected %s `%s`, got only %zu diagnostics", code, text,
                fix->diags.list.len);
  const tl_diag *diag = fix->diags.list.items[index];
  tl_line_column at = tl_source_position(tl_sources_get(&fix->sources, diag->loc.source), diag->loc.offset);
  ck_assert_msg(strcmp(tl_diag_code_text(diag->code), code) == 0 && strstr(diag->text, text) && at.line == line &&
                    at.column == column,
                "expected %u:%u %s `%s`, got %u:%u %s `%s`", line, column, code, text, at.line, at.column,
                tl_diag_code_text(diag->code), diag->text);
}

static inline bool has_hint(const fixture *fix, size_t index, const char *text) {
  const tl_diag *diag = fix->diags.list.items[index];
  for (size_t i = 0; i < diag->num_notes; i++)
    if (diag->notes[i].is_hint && strstr(diag->notes[i].text, text)) return true;
  return false;
}

static inline int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
