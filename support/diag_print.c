// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics as text with carets, and as JSON.
#include <stdlib.h>
#include <wchar.h>

#include "support/diag.h"

static const char *severity_name(tl_severity severity) {
  switch (severity) {
    case TL_SEVERITY_REMARK:
      return "remark";
    case TL_SEVERITY_WARNING:
      return "warning";
    case TL_SEVERITY_ERROR:
      return "error";
  }
  return "error";
}

static const char *severity_color(tl_severity severity) {
  switch (severity) {
    case TL_SEVERITY_REMARK:
      return "\033[1;34m";
    case TL_SEVERITY_WARNING:
      return "\033[1;35m";
    case TL_SEVERITY_ERROR:
      return "\033[1;31m";
  }
  return "";
}

enum { MAX_SHOWN_LINE = 240 };

// Bytes of the UTF-8 sequence at text[0]; 1 for anything malformed.
static size_t sequence_length(tl_str text) {
  unsigned char c = (unsigned char)text.data[0];
  size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  return len <= text.len ? len : 1;
}

// Terminal columns of the code point at text[0]: 2 for East Asian wide and emoji ranges, 0 for combining marks.
static int display_width(tl_str text, size_t len) {
  if (len < 2) return 1;
  unsigned code = (unsigned char)text.data[0] & (0xffu >> (len + 1));
  for (size_t i = 1; i < len; i++) code = code << 6 | ((unsigned char)text.data[i] & 0x3f);
  if ((code >= 0x300 && code <= 0x36f) || code == 0x200b || code == 0xfe0f) return 0;
  bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
              (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
              (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
              (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

// The source line and, below it, carets under [start, end) (byte offsets in the line). Tabs are copied so that they
// align.
static void print_snippet(tl_str line, size_t start, size_t end, tl_strbuf *out) {
  if (line.len > MAX_SHOWN_LINE) {
    // Only a window around the place, for generated or hostile one-line files.
    size_t from = start > MAX_SHOWN_LINE / 2 ? start - MAX_SHOWN_LINE / 2 : 0;
    while (from < line.len && ((unsigned char)line.data[from] & 0xc0) == 0x80) from++;
    line = tl_str_sub(line, from, MAX_SHOWN_LINE);
    start -= from;
    end = end > from ? end - from : start;
  }
  tl_strbuf_append_c(out, "  ");
  tl_strbuf_append(out, line);
  tl_strbuf_append_c(out, "\n  ");
  if (end > line.len) end = line.len;
  for (size_t i = 0; i < start && i < line.len;) {
    tl_str rest = tl_str_sub(line, i, 4);
    size_t len = sequence_length(rest);
    int width = display_width(rest, len);
    for (int w = 0; w < width; w++) tl_strbuf_append_char(out, line.data[i] == '\t' ? '\t' : ' ');
    i += len;
  }
  tl_strbuf_append_char(out, '^');
  bool first = true;
  for (size_t i = start; i < end;) {
    tl_str rest = tl_str_sub(line, i, 4);
    size_t len = sequence_length(rest);
    for (int w = first ? 1 : 0; w < display_width(rest, len); w++) tl_strbuf_append_char(out, '~');
    first = false;
    i += len;
  }
  tl_strbuf_append_char(out, '\n');
}

static void print_entry(const tl_sources *sources, tl_loc loc, const char *label, const char *color, const char *text,
                        const char *code, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(sources, loc.source);
  tl_line_column at = {0};
  if (source) {
    at = tl_source_position(source, loc.offset);
    tl_strbuf_appendf(out, "%s:%u:%u: ", source->name, at.line, at.column);
  }
  tl_strbuf_appendf(out, "%s%s:%s %s", color, label, *color ? "\033[0m" : "", text);
  if (code) tl_strbuf_appendf(out, " [%s]", code);
  tl_strbuf_append_char(out, '\n');
  if (!source) return;
  tl_str line = tl_source_line(source, at.line);
  uint32_t line_start = source->line_starts[at.line - 1];
  size_t start = loc.offset > line_start ? loc.offset - line_start : 0;
  if (start > line.len) start = line.len;
  print_snippet(line, start, start + loc.length, out);
}

void tl_diags_print_text(const tl_diags *diags, tl_strbuf *out, bool color) {
  for (size_t i = 0; i < diags->list.len; i++) {
    const tl_diag *diag = diags->list.items[i];
    print_entry(diags->sources, diag->loc, severity_name(diag->severity), color ? severity_color(diag->severity) : "",
                diag->text, tl_diag_code_text(diag->code), out);
    for (size_t n = 0; n < diag->num_notes; n++) {
      const tl_diag_note *note = &diag->notes[n];
      print_entry(diags->sources, note->loc, note->is_hint ? "hint" : "note", color ? "\033[1;36m" : "", note->text,
                  NULL, out);
    }
  }
  if (diags->num_errors > diags->max_errors) {
    tl_strbuf_appendf(out, "error: %zu further errors are not shown\n", diags->num_errors - diags->max_errors);
  }
}

static void print_json_place(const tl_sources *sources, tl_loc loc, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(sources, loc.source);
  if (!source) {
    tl_strbuf_append_c(out, "\"file\": null");
    return;
  }
  tl_line_column start = tl_source_position(source, loc.offset);
  tl_line_column end = tl_source_position(source, loc.offset + loc.length);
  tl_strbuf_append_c(out, "\"file\": ");
  tl_strbuf_append_json(out, tl_str_from(source->name));
  tl_strbuf_appendf(out, ", \"line\": %u, \"column\": %u, \"end_line\": %u, \"end_column\": %u", start.line,
                    start.column, end.line, end.column);
}

static void print_json_notes(const tl_diags *diags, const tl_diag *diag, bool hints, tl_strbuf *out) {
  bool first = true;
  for (size_t n = 0; n < diag->num_notes; n++) {
    const tl_diag_note *note = &diag->notes[n];
    if (note->is_hint != hints) continue;
    if (!first) tl_strbuf_append_c(out, ", ");
    first = false;
    if (hints) {
      tl_strbuf_append_json(out, tl_str_from(note->text));
      continue;
    }
    tl_strbuf_append_char(out, '{');
    print_json_place(diags->sources, note->loc, out);
    tl_strbuf_append_c(out, ", \"message\": ");
    tl_strbuf_append_json(out, tl_str_from(note->text));
    tl_strbuf_append_char(out, '}');
  }
}

void tl_diags_print_json_items(const tl_diags *diags, tl_strbuf *out) {
  for (size_t i = 0; i < diags->list.len; i++) {
    const tl_diag *diag = diags->list.items[i];
    tl_strbuf_append_c(out, i ? ",\n {" : "\n {");
    print_json_place(diags->sources, diag->loc, out);
    tl_strbuf_appendf(out, ", \"severity\": \"%s\", \"code\": \"%s\", \"group\": ", severity_name(diag->severity),
                      tl_diag_code_text(diag->code));
    tl_strbuf_append_json(out, tl_str_from(tl_diag_group(diag->code)));
    tl_strbuf_append_c(out, ", \"message\": ");
    tl_strbuf_append_json(out, tl_str_from(diag->text));
    tl_strbuf_append_c(out, ", \"notes\": [");
    print_json_notes(diags, diag, false, out);
    tl_strbuf_append_c(out, "], \"hints\": [");
    print_json_notes(diags, diag, true, out);
    tl_strbuf_append_c(out, "]}");
  }
}

void tl_diags_print_json(const tl_diags *diags, tl_strbuf *out) {
  tl_strbuf_append_c(out, "[");
  tl_diags_print_json_items(diags, out);
  tl_strbuf_append_c(out, diags->list.len ? "\n]\n" : "]\n");
}
