// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics as SARIF 2.1.0 (OASIS), which code hosts and editors read.
#include <string.h>

#include "support/diag.h"

// Bytes that stand for themselves in a URI (RFC 3986, unreserved, and what separates the parts of a path).
static bool is_uri_byte(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~/", c);
}

// A path as a URI: relative ones stay relative to wherever the log is read.
static void print_uri(const char *path, tl_strbuf *out) {
  tl_strbuf_append_c(out, path[0] == '/' ? "\"file://" : "\"");
  for (const char *c = path; *c; c++) {
    if (is_uri_byte((unsigned char)*c))
      tl_strbuf_append_char(out, *c);
    else
      tl_strbuf_appendf(out, "%%%02X", (unsigned char)*c);
  }
  tl_strbuf_append_char(out, '"');
}

static void print_message(const char *text, tl_strbuf *out) {
  tl_strbuf_append_c(out, "\"message\": {\"text\": ");
  tl_strbuf_append_json_c(out, text);
  tl_strbuf_append_char(out, '}');
}

// Nothing where there is no file, such as for an option of the command line.
static bool print_place(const tl_sources *sources, tl_loc loc, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(sources, loc.source);
  if (!source || source->name[0] == '<') return false;
  tl_line_column start = tl_source_position(source, loc.offset);
  tl_line_column end = tl_source_position(source, loc.offset + loc.length);
  tl_strbuf_append_c(out, "\"physicalLocation\": {\"artifactLocation\": {\"uri\": ");
  print_uri(source->name, out);
  tl_strbuf_appendf(out, "}, \"region\": {\"startLine\": %u, \"startColumn\": %u, \"endLine\": %u, \"endColumn\": %u}}",
                    start.line, start.column, end.line, end.column);
  return true;
}

static void print_related(const tl_diags *diags, const tl_diag *diag, tl_strbuf *out) {
  bool first = true;
  for (size_t i = 0; i < diag->num_notes; i++) {
    const tl_diag_note *note = &diag->notes[i];
    if (note->is_hint) continue;
    tl_strbuf_append_c(out, first ? ", \"relatedLocations\": [{" : ", {");
    first = false;
    if (print_place(diags->sources, note->loc, out)) tl_strbuf_append_c(out, ", ");
    print_message(note->text, out);
    tl_strbuf_append_char(out, '}');
  }
  if (!first) tl_strbuf_append_char(out, ']');
}

static const char *level_of(tl_severity severity) {
  return severity == TL_SEVERITY_ERROR ? "error" : severity == TL_SEVERITY_WARNING ? "warning" : "note";
}

// Hints stand below the text, as on a terminal.
static void print_result(const tl_diags *diags, const tl_diag *diag, tl_strbuf *out) {
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, diag->text);
  for (size_t i = 0; i < diag->num_notes; i++)
    if (diag->notes[i].is_hint) tl_strbuf_appendf(&text, "\nhint: %s", diag->notes[i].text);
  tl_strbuf_appendf(out, "\n  {\"ruleId\": \"%s\", \"level\": \"%s\", ", tl_diag_code_text(diag->code),
                    level_of(diag->severity));
  print_message(tl_strbuf_c(&text), out);
  tl_strbuf place = {0};
  bool has_place = print_place(diags->sources, diag->loc, &place);
  tl_strbuf_appendf(out, has_place ? ", \"locations\": [{%s}]" : ", \"locations\": []%s", tl_strbuf_c(&place));
  tl_strbuf_fini(&place);
  print_related(diags, diag, out);
  tl_strbuf_append_char(out, '}');
  tl_strbuf_fini(&text);
}

static void print_rules(const tl_diags *diags, tl_strbuf *out) {
  bool used[TL_DIAG_COUNT] = {false}, first = true;
  for (size_t i = 0; i < diags->list.len; i++) used[diags->list.items[i]->code] = true;
  for (int code = TL_DIAG_NONE + 1; code < TL_DIAG_COUNT; code++) {
    if (!used[code]) continue;
    tl_strbuf_appendf(out, "%s\n    {\"id\": \"%s\", \"shortDescription\": {\"text\": ", first ? "" : ",",
                      tl_diag_code_text((tl_diag_code)code));
    first = false;
    tl_strbuf_append_json_c(out, tl_diag_summary((tl_diag_code)code));
    tl_strbuf_append_c(out, "}, \"help\": {\"text\": ");
    tl_strbuf_append_json_c(out, tl_diag_explanation((tl_diag_code)code));
    tl_strbuf_append_c(out, "}}");
  }
}

void tl_diags_begin_sarif(tl_strbuf *out) {
  tl_strbuf_append_c(out,
                     "{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": \"2.1.0\",\n"
                     " \"runs\": [");
}

void tl_diags_end_sarif(tl_strbuf *out) {
  tl_strbuf_append_c(out, "]}\n");
}

void tl_diags_print_sarif_run(const tl_diags *diags, const char *tool, const char *failure_code, const char *failure,
                              tl_strbuf *out) {
  tl_strbuf_append_c(out, "{\"columnKind\": \"unicodeCodePoints\", \"tool\": {\"driver\": {\"version\": \"" TL_VERSION
                          "\", \"name\": ");
  tl_strbuf_append_json_c(out, tool);
  tl_strbuf_append_c(out, ", \"rules\": [");
  print_rules(diags, out);
  tl_strbuf_appendf(out, "]}},\n  \"invocations\": [{\"executionSuccessful\": %s",
                    failure || tl_diags_has_errors(diags) ? "false" : "true");
  if (failure) {
    tl_strbuf_append_c(out, ", \"toolExecutionNotifications\": [{\"level\": \"error\", \"descriptor\": {\"id\": ");
    tl_strbuf_append_json_c(out, failure_code);
    tl_strbuf_append_c(out, "}, ");
    print_message(failure, out);
    tl_strbuf_append_c(out, "}]");
  }
  tl_strbuf_append_c(out, "}],\n  \"results\": [");
  for (size_t i = 0; i < diags->list.len; i++) {
    if (i) tl_strbuf_append_char(out, ',');
    print_result(diags, diags->list.items[i], out);
  }
  tl_strbuf_append_c(out, "]}");
}
