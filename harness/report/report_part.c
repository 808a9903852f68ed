// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all parts of the report write: text, names, lines and colours.
#include "harness/report/report_internal.h"

void report_text(tl_str text, tl_strbuf *out) {
  tl_strbuf_append_markup(out, text);
}

void report_text_c(const char *text, tl_strbuf *out) {
  report_text(tl_str_from(text), out);
}

// The spec that the user named is the first source.
uint32_t report_line(const tl_report *report, tl_loc loc) {
  const tl_source *source = tl_sources_get(report->sources, loc.source), *main = tl_sources_get(report->sources, 1);
  // What a macro expands to, and what is included, counts where it was brought in.
  while (source && source != main && source->used_at.source && source->used_at.source != loc.source) {
    loc = source->used_at;
    source = tl_sources_get(report->sources, loc.source);
  }
  return source && source == main ? tl_source_position(source, loc.offset).line : 0;
}

const char *report_name(const tl_op *op) {
  const char *name = tl_op_str(op, TL_ATTR_NAME);
  if (!name && op->num_results) name = tl_op_result(op, 0)->name;
  return name ? name : "";
}

const char *report_color(uint32_t i) {
  static const char *const colors[] = {"#8fbcdb", "#f4b183", "#a9d18e", "#d5a6d8",
                                       "#ffd966", "#c9c9c9", "#f4a6a6", "#9fd5d1"};
  return colors[i % (sizeof colors / sizeof colors[0])];
}
