// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests that compare the tile IR of a body with expected text. To be readable that text has constants in place
// ("0.0:f32", indices without a type), unnamed values numbered anew, and nothing of the head.
#ifndef TL_TEST_FRONTEND_INSTANTIATE_TEXT_H
#define TL_TEST_FRONTEND_INSTANTIATE_TEXT_H

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/elaborate/instantiate.h"
#include "ir/text/text.h"

static const char head[] =
    "kernel: t\n"
    "params:\n"
    "  M: 256\n"
    "  N: dynamic(8)\n"
    "  bm: 16\n"
    "  bn: 32\n"
    "  dtype: f16\n"
    "args:\n"
    "  A: in dtype[M, N]\n"
    "  B: in f32[M, 64]\n"
    "  L: in i32[M]\n"
    "  C: out f32[M, N]\n"
    "  R: inout f32[M, 64]\n"
    "  alpha: f32\n"
    "  n: i32\n"
    "grid:\n"
    "  bx: ceildiv(N, bn)\n"
    "  by: ceildiv(M, bm)\n"
    "threads: 128\n"
    "shared:\n"
    "  a: dtype[bm, bn]\n"
    "  b: dtype[bn, bn]\n"
    "  x: f32[bm, bn]\n"
    "  q: u8[bm, bn]\n"
    "fragment:\n"
    "  acc: f32[bm, bn]\n"
    "  m: f32[bm]\n"
    "body:\n";

typedef struct body_case {
  const char *name, *body, *expected;
} body_case;

enum { MAX_NAMES = 512, NAME_SIZE = 64 };
typedef struct renaming {
  char from[MAX_NAMES][NAME_SIZE], to[MAX_NAMES][NAME_SIZE];
  int len, num_unnamed;
} renaming;

static const char *renamed(renaming *names, const char *name) {
  for (int i = 0; i < names->len; ++i) {
    if (strcmp(names->from[i], name) == 0) return names->to[i];
  }
  if (!isdigit((unsigned char)name[1])) return name;
  ck_assert_int_lt(names->len, MAX_NAMES);
  snprintf(names->from[names->len], NAME_SIZE, "%s", name);
  snprintf(names->to[names->len], NAME_SIZE, "%%%d", names->num_unnamed++);
  return names->to[names->len++];
}

// "%c1 = const {value = 1} : index": remembered instead of printed.
static bool take_constant(renaming *names, const char *line) {
  char name[NAME_SIZE], value[NAME_SIZE], type[NAME_SIZE];
  if (sscanf(line, " %63s = const {value = %63[^}]} : %63s", name, value, type) != 3) return false;
  ck_assert_int_lt(names->len, MAX_NAMES);
  snprintf(names->from[names->len], NAME_SIZE, "%s", name);
  bool is_index = strcmp(type, "index") == 0;
  int length = snprintf(names->to[names->len], NAME_SIZE, "%s%s%s", value, is_index ? "" : ":", is_index ? "" : type);
  ck_assert_int_lt(length, NAME_SIZE);
  ++names->len;
  return true;
}

static void normalise_line(renaming *names, const char *line, tl_strbuf *out) {
  for (const char *at = line; *at;) {
    if (*at != '%') {
      tl_strbuf_append_char(out, *at++);
      continue;
    }
    char name[NAME_SIZE];
    size_t len = 1;
    while (isalnum((unsigned char)at[len]) || at[len] == '_') ++len;
    ck_assert_uint_lt(len, NAME_SIZE);
    memcpy(name, at, len);
    name[len] = '\0';
    tl_strbuf_append_c(out, renamed(names, name));
    at += len;
  }
  tl_strbuf_append_char(out, '\n');
}

// The printed kernel in normal form; without its head, which ends with the last tile's alloc.
static void normalise(const char *text, bool with_head, tl_strbuf *out) {
  static renaming names;
  names.len = names.num_unnamed = 0;
  char *copy = strdup(text), *state = NULL;
  bool in_body = with_head;
  for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    if (take_constant(&names, line)) continue;
    if (in_body && line[0] == ' ') normalise_line(&names, line + 2, out);
    in_body = in_body || strstr(line, "alloc {name = \"m\"}");
  }
  free(copy);
}

static void instantiate_text(tl_str text, bool with_head, tl_strbuf *out, tl_strbuf *messages) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_spec *spec = tl_spec_parse(&sources, tl_sources_add(&sources, "t.yaml", text), &diags);
  tl_module *module = NULL;
  if (spec) module = tl_instantiate(&spec->kernels[0], (tl_bindings){0}, NULL, &sources, &diags);
  if (module) {
    tl_strbuf printed;
    tl_verify_result result;
    tl_strbuf_init(&printed);
    tl_module_print(module, &printed);
    normalise(tl_strbuf_c(&printed), with_head, out);
    if (!tl_module_verify(module, &result)) tl_module_print_with_errors(module, &result, messages);
    tl_verify_result_fini(&result);
    tl_strbuf_fini(&printed);
    tl_module_destroy(module);
  } else {
    tl_diags_print_text(&diags, messages, false);
  }
  tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static void instantiate_body(const char *body, tl_strbuf *out, tl_strbuf *messages) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, head);
  tl_strbuf_append_c(&text, body);
  instantiate_text(tl_strbuf_view(&text), false, out, messages);
  tl_strbuf_fini(&text);
}

// Checks one case.
static void check_body(const body_case *one) {
  tl_strbuf out, messages;
  tl_strbuf_init(&out);
  tl_strbuf_init(&messages);
  instantiate_body(one->body, &out, &messages);
  ck_assert_msg(messages.len == 0, "%s: %s", one->name, tl_strbuf_c(&messages));
  ck_assert_msg(strcmp(tl_strbuf_c(&out), one->expected) == 0, "%s:\n%s\nexpected:\n%s", one->name, tl_strbuf_c(&out),
                one->expected);
  tl_strbuf_fini(&out);
  tl_strbuf_fini(&messages);
}

#endif
