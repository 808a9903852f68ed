// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scheduled tile IR and PTX beside each other, each line with the one of the spec that it comes from.
#include <stdlib.h>
#include <string.h>

#include "harness/report/report_internal.h"
#include "ir/text/text.h"

static void write_line(uint32_t spec_line, tl_str text, tl_strbuf *out) {
  if (spec_line)
    tl_strbuf_appendf(out, "<tr><td class=\"n\"><a href=\"#s%u\">%u</a></td><td>", spec_line, spec_line);
  else
    tl_strbuf_append_c(out, "<tr><td class=\"n\"></td><td>");
  report_text(text, out);
  tl_strbuf_append_c(out, "</td></tr>\n");
}

// The next line of `text` without its end. False behind the last one.
static bool next_line(tl_str text, size_t *at, tl_str *out_line) {
  if (*at >= text.len) return false;
  const char *start = text.data + *at, *end = memchr(start, '\n', text.len - *at);
  size_t len = end ? (size_t)(end - start) : text.len - *at;
  *out_line = (tl_str){start, len};
  *at += len + 1;
  return true;
}

// "… loc(1:200+5)" at the end of a line of IR: the place, which is taken off.
static tl_loc take_loc(tl_str *line) {
  tl_loc loc = {0};
  for (size_t i = line->len; i-- > 5;) {
    if (memcmp(line->data + i - 5, " loc(", 5) != 0) continue;
    unsigned source, offset, length;
    char text[64];
    size_t len = line->len - i < sizeof text - 1 ? line->len - i : sizeof text - 1;
    memcpy(text, line->data + i, len);
    text[len] = '\0';
    if (sscanf(text, "%u:%u+%u)", &source, &offset, &length) != 3) return loc;
    loc = (tl_loc){source, offset, length};
    line->len = i - 5;
    return loc;
  }
  return loc;
}

static void write_ir(const tl_report *report, tl_strbuf *out) {
  tl_strbuf text = {0};
  tl_module_print_with_locs(report->module, &text);
  tl_str line;
  size_t at = 0;
  while (next_line(tl_strbuf_view(&text), &at, &line)) {
    tl_loc loc = take_loc(&line);
    write_line(report_line(report, loc), line, out);
  }
  tl_strbuf_fini(&text);
}

// PTX has the number of a file and of a line (PTX ISA, .loc); file 1 is the spec, where macros are shown at their use.
static void write_ptx(const tl_report *report, tl_strbuf *out) {
  const tl_source *main = tl_sources_get(report->sources, 1);
  uint32_t current = 0;
  tl_str line;
  size_t at = 0;
  while (next_line(report->ptx, &at, &line)) {
    unsigned file, number;
    char text[64];
    size_t len = line.len < sizeof text - 1 ? line.len : sizeof text - 1;
    if (line.len >= 2 && line.data[0] == '/' && line.data[1] == '/') continue;  // the manifest is above
    memcpy(text, line.data, len);
    text[len] = '\0';
    const char *start = text + strspn(text, " \t");
    if (strncmp(start, ".file", 5) == 0) continue;
    if (strncmp(start, ".loc", 4) != 0) {
      write_line(line.len ? current : 0, line, out);
      continue;
    }
    bool is_read = sscanf(start, ".loc %u %u", &file, &number) == 2;
    current = is_read && file == 1 && main && number <= main->num_lines ? number : 0;
  }
}

void report_code(const tl_report *report, tl_strbuf *out) {
  tl_strbuf_append_c(out,
                     "<h2 id=\"code\">Scheduled tile IR, and PTX</h2>\n<p>The number is the line of the spec.</p>\n"
                     "<div class=\"two\"><div><table class=\"code\">\n");
  write_ir(report, out);
  tl_strbuf_append_c(out, "</table></div><div><table class=\"code\">\n");
  write_ptx(report, out);
  tl_strbuf_append_c(out, "</table></div></div>\n");
}
