// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// docs/diagnostics.md is made from support/diag.def. Without arguments: fails when the page is not what the table
// gives. With --update: writes the page (refused where CI is set).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/diag.h"

static const char page_path[] = "docs/diagnostics.md";

typedef struct row {
  const char *code;
  tl_severity severity;
  const char *group;
  const char *summary;
  const char *explanation;
} row;

static const row rows[] = {
#define TL_DIAG(id, code, severity, group, summary, explanation) \
  {code, TL_SEVERITY_##severity, group, summary, explanation},
#include "support/diag.def"
#undef TL_DIAG
};
enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct {
  const char *prefix;
  const char *title;
} sections[] = {
    {"TL01", "YAML and document structure"},
    {"TL02", "Expressions and names"},
    {"TL03", "Types and shapes"},
    {"TL04", "Statements"},
    {"TL05", "Bounds, initialisation, uniformity"},
    {"TL06", "Schedule, limits and targets"},
    {"TL07", "Check and bench sections"},
    {"TL08", "Remarks"},
    {"TL09", "IR text"},
};

static const char *severity_name(tl_severity severity) {
  switch (severity) {
    case TL_SEVERITY_REMARK:
      return "remark";
    case TL_SEVERITY_WARNING:
      return "warning";
    case TL_SEVERITY_ERROR:
      return "error";
  }
  return "";
}

// Explanations are plain text: what Markdown would read otherwise outside of backticks is escaped.
static void append_markdown(const char *text, tl_strbuf *out) {
  bool code = false;
  for (; *text; text++) {
    if (*text == '`') code = !code;
    if (!code && strchr("*_<[|", *text)) tl_strbuf_append_char(out, '\\');
    tl_strbuf_append_char(out, *text);
  }
}

static int compare_rows(const void *a, const void *b) {
  return strcmp((*(const row *const *)a)->code, (*(const row *const *)b)->code);
}

static void print_row(const row *entry, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\n### %s: ", entry->code);
  append_markdown(entry->summary, out);
  tl_strbuf_appendf(out, "\n\n*%s*", severity_name(entry->severity));
  if (entry->group[0]) tl_strbuf_appendf(out, ", `-W%s`", entry->group);
  tl_strbuf_append_c(out, ". ");
  append_markdown(entry->explanation, out);
  tl_strbuf_append_char(out, '\n');
}

static void make_page(tl_strbuf *out) {
  const row *sorted[NUM_ROWS];
  for (size_t i = 0; i < NUM_ROWS; i++) sorted[i] = &rows[i];
  qsort(sorted, NUM_ROWS, sizeof(sorted[0]), compare_rows);
  tl_strbuf_append_c(
      out,
      "# Diagnostics\n\nMade from `support/diag.def` by `diagnostics_page_test --update`; do not edit. "
      "`tl-llc --explain CODE` prints the same text.\nA code never changes its meaning and is never used again.\n");
  for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
    tl_strbuf_appendf(out, "\n## %s\n", sections[s].title);
    for (size_t i = 0; i < NUM_ROWS; i++)
      if (strncmp(sorted[i]->code, sections[s].prefix, 4) == 0) print_row(sorted[i], out);
  }
}

// Codes stand once, in TLnnnn form, with a summary and an explanation.
static int check_rows(void) {
  int failed = 0;
  for (size_t i = 0; i < NUM_ROWS; i++) {
    const row *entry = &rows[i];
    bool well_formed =
        strlen(entry->code) == 6 && strncmp(entry->code, "TL0", 3) == 0 && entry->summary[0] && entry->explanation[0];
    for (size_t k = 0; k < i; k++) well_formed = well_formed && strcmp(rows[k].code, entry->code) != 0;
    if (well_formed) continue;
    fprintf(stderr, "support/diag.def: %s is malformed or stands twice\n", entry->code);
    failed = 1;
  }
  return failed;
}

static int update_page(const tl_strbuf *page) {
  if (getenv("CI")) {
    fprintf(stderr, "the page is not rewritten in CI\n");
    return EXIT_FAILURE;
  }
  FILE *file = fopen(page_path, "wb");
  if (!file || fwrite(page->data, 1, page->len, file) != page->len || fclose(file) != 0) {
    perror(page_path);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  tl_strbuf page;
  tl_strbuf_init(&page);
  make_page(&page);
  int result = check_rows();
  if (argc > 1 && strcmp(argv[1], "--update") == 0) {
    result |= update_page(&page);
  } else {
    tl_sources sources;
    tl_sources_init(&sources);
    uint32_t source;
    tl_status status = tl_sources_read(&sources, page_path, 1 << 24, &source);
    if (status || !tl_str_equal(tl_sources_get(&sources, source)->text, tl_strbuf_view(&page))) {
      fprintf(stderr, "%s is not what support/diag.def says: run diagnostics_page_test --update from the root\n",
              page_path);
      result = EXIT_FAILURE;
    }
    tl_status_free(status);
    tl_sources_fini(&sources);
  }
  tl_strbuf_fini(&page);
  return result;
}
