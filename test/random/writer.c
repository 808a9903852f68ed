// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sections and lines of a spec.
#include "test/random/writer.h"

#include <stdarg.h>
#include <stdio.h>

void tl_rspec_init(tl_rspec *spec, tl_rspec_choices *choices) {
  *spec = (tl_rspec){.choices = choices};
  tl_arena_init(&spec->arena);
  for (int i = 0; i < TL_RSPEC_NUM_SECTIONS; i++) tl_strbuf_init(&spec->sections[i]);
}

void tl_rspec_fini(tl_rspec *spec) {
  for (int i = 0; i < TL_RSPEC_NUM_SECTIONS; i++) tl_strbuf_fini(&spec->sections[i]);
  tl_arena_fini(&spec->arena);
}

static char *format_text(tl_rspec *spec, const char *format, va_list list) {
  va_list again;
  va_copy(again, list);
  int len = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = TL_NEW_ARRAY(&spec->arena, char, len + 1);
  vsnprintf(text, (size_t)len + 1, format, list);
  return text;
}

char *tl_rspec_text(tl_rspec *spec, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = format_text(spec, format, list);
  va_end(list);
  return text;
}

// How deep a section's lines stand.
static const char *indent_of(tl_rspec_section section) {
  switch (section) {
    case TL_RSPEC_HEAD:
    case TL_RSPEC_OPTIONS:
      return "";
    case TL_RSPEC_INPUTS:
    case TL_RSPEC_REFERENCE:
    case TL_RSPEC_CASES:
      return "    ";
    case TL_RSPEC_TOLERANCE:
      return "      ";
    default:
      return "  ";
  }
}

void tl_rspec_line(tl_rspec *spec, tl_rspec_section section, const char *format, ...) {
  va_list list;
  va_start(list, format);
  tl_strbuf_appendf(&spec->sections[section], "%s%s\n", indent_of(section), format_text(spec, format, list));
  va_end(list);
}

void tl_rspec_body(tl_rspec *spec, const char *format, ...) {
  va_list list;
  va_start(list, format);
  tl_strbuf_appendf(&spec->sections[TL_RSPEC_BODY], "%*s%s\n", 2 + 2 * spec->body_indent, "",
                    format_text(spec, format, list));
  va_end(list);
}

void tl_rspec_tolerance(tl_rspec *spec, const char *output, double rtol, double atol) {
  tl_rspec_line(spec, TL_RSPEC_TOLERANCE, "%s: {rtol: %.3g, atol: %.3g}", output, rtol, atol);
}

static void print_section(const tl_rspec *spec, tl_rspec_section section, const char *key, tl_strbuf *out) {
  if (spec->sections[section].len == 0) return;
  if (key) tl_strbuf_appendf(out, "%s\n", key);
  tl_strbuf_append(out, tl_strbuf_view(&spec->sections[section]));
}

void tl_rspec_print(const tl_rspec *spec, const char *name, tl_strbuf *out) {
  tl_strbuf_appendf(out, "kernel: %s\n", name);
  print_section(spec, TL_RSPEC_HEAD, NULL, out);
  print_section(spec, TL_RSPEC_PARAMS, "params:", out);
  print_section(spec, TL_RSPEC_LET, "let:", out);
  print_section(spec, TL_RSPEC_ARGS, "args:", out);
  print_section(spec, TL_RSPEC_VIEWS, "views:", out);
  print_section(spec, TL_RSPEC_REQUIRES, "requires:", out);
  print_section(spec, TL_RSPEC_GRID, "grid:", out);
  print_section(spec, TL_RSPEC_OPTIONS, NULL, out);
  print_section(spec, TL_RSPEC_SHARED, "shared:", out);
  print_section(spec, TL_RSPEC_FRAGMENT, "fragment:", out);
  print_section(spec, TL_RSPEC_LOCAL, "local:", out);
  print_section(spec, TL_RSPEC_BODY, "body:", out);
  tl_strbuf_append_c(out, "check:\n");
  print_section(spec, TL_RSPEC_INPUTS, "  inputs:", out);
  print_section(spec, TL_RSPEC_REFERENCE, "  reference:", out);
  print_section(spec, TL_RSPEC_TOLERANCE, "  tolerance:\n    per:", out);
  print_section(spec, TL_RSPEC_CASES, "  cases:", out);
}
