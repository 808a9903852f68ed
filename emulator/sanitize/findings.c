// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/sanitize/findings.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/machine/emulator.h"

static const struct {
  const char *name;
  uint32_t checks;
} check_names[] = {{"all", TL_EMU_SANITIZE_ALL},     {"none", 0},
                   {"race", TL_EMU_SANITIZE_RACE},   {"bounds", TL_EMU_SANITIZE_BOUNDS},
                   {"init", TL_EMU_SANITIZE_INIT},   {"align", TL_EMU_SANITIZE_ALIGN},
                   {"proxy", TL_EMU_SANITIZE_PROXY}, {"blocks", TL_EMU_SANITIZE_BLOCKS},
                   {"async", TL_EMU_SANITIZE_ASYNC}};
enum { NUM_CHECK_NAMES = sizeof check_names / sizeof check_names[0] };

bool tl_emu_sanitize_parse(tl_str text, uint32_t *out_checks, tl_str *out_unknown) {
  *out_checks = 0;
  while (true) {
    size_t len = 0;
    while (len < text.len && text.data[len] != ',') len++;
    tl_str name = tl_str_sub(text, 0, len);
    size_t i = 0;
    while (i < NUM_CHECK_NAMES && !tl_str_is(name, check_names[i].name)) i++;
    if (i == NUM_CHECK_NAMES) {
      *out_unknown = name;
      return false;
    }
    *out_checks |= check_names[i].checks;
    if (len == text.len) return true;
    text = tl_str_sub(text, len + 1, text.len - len - 1);
  }
}

const char *tl_emu_finding_kind_name(tl_emu_finding_kind kind) {
  static const char *const names[] = {[TL_EMU_FINDING_RACE] = "race",
                                      [TL_EMU_FINDING_PROXY] = "missing proxy fence",
                                      [TL_EMU_FINDING_UNINITIALISED] = "uninitialised read",
                                      [TL_EMU_FINDING_BOUNDS] = "out of bounds",
                                      [TL_EMU_FINDING_ALIGNMENT] = "misaligned access",
                                      [TL_EMU_FINDING_BLOCKS] = "race between blocks",
                                      [TL_EMU_FINDING_ASYNC] = "unawaited operation",
                                      [TL_EMU_FINDING_MISUSE] = "misused operation"};
  return (unsigned)kind < TL_EMU_FINDING_COUNT ? names[kind] : "finding";
}

static void free_side(tl_emu_finding_side *side) {
  free(side->op);
  free(side->action);
  free(side->agent);
  free(side->file);
  free(side->text);
  free(side->uses);
}

static void free_finding(tl_emu_finding *finding) {
  free(finding->kernel);
  free_side(&finding->now);
  free_side(&finding->before);
  free(finding->place);
  free(finding->more);
  free(finding->missing);
}

void tl_emu_findings_fini(tl_emu_findings *findings) {
  for (size_t i = 0; i < findings->list.len; i++) free_finding(&findings->list.items[i]);
  tl_vec_fini(&findings->list);
}

static bool same_text(const char *a, const char *b) {
  return a && b ? !strcmp(a, b) : a == b;
}

static bool same_side(const tl_emu_finding_side *a, const tl_emu_finding_side *b) {
  return same_text(a->op, b->op) && a->call == b->call && a->line == b->line && same_text(a->file, b->file) &&
         same_text(a->uses, b->uses);
}

static bool same_finding(const tl_emu_finding *a, const tl_emu_finding *b) {
  return a->kind == b->kind && same_text(a->kernel, b->kernel) && same_side(&a->now, &b->now) &&
         same_side(&a->before, &b->before);
}

void tl_emu_findings_merge(tl_emu_findings *to, tl_emu_findings *from) {
  for (size_t i = 0; i < from->list.len; i++) {
    tl_emu_finding *moved = &from->list.items[i], *there = NULL;
    for (size_t k = 0; k < to->list.len && !there; k++)
      if (same_finding(&to->list.items[k], moved)) there = &to->list.items[k];
    if (there) {
      there->count += moved->count;
      free_finding(moved);
    } else {
      tl_vec_push(&to->list, *moved);
    }
  }
  tl_vec_fini(&from->list);
  to->untold += from->untold;
  from->untold = 0;
}

// ---- text

static void print_where(const char *kernel, const tl_emu_finding_side *side, tl_strbuf *out) {
  if (side->line)
    tl_strbuf_appendf(out, "%s:%u: ", side->file ? side->file : kernel, side->line);
  else
    tl_strbuf_appendf(out, "%s: ", kernel);
}

static void print_block(const tl_emu_finding_side *side, tl_strbuf *out) {
  tl_strbuf_appendf(out, " of block (%u, %u, %u)", side->block[0], side->block[1], side->block[2]);
  if (side->tile >= 0) tl_strbuf_appendf(out, ", tile %lld,", (long long)side->tile);
}

static void print_op(const tl_emu_finding_side *side, tl_strbuf *out) {
  tl_strbuf_append_c(out, side->op);
  if (side->call) tl_strbuf_appendf(out, " (call %u)", side->call);
}

static void print_excerpt(const tl_emu_finding_side *side, tl_strbuf *out) {
  if (side->text) tl_strbuf_appendf(out, "%6u | %s\n", side->line, side->text);
  if (side->uses) tl_strbuf_appendf(out, "       = expanded from %s\n", side->uses);
}

static void finding_print(const tl_emu_finding *finding, tl_strbuf *out) {
  const tl_emu_finding_side *now = &finding->now, *before = &finding->before;
  print_where(finding->kernel, now, out);
  tl_strbuf_appendf(out, "%s: %s", tl_emu_finding_kind_name(finding->kind), now->agent);
  print_block(now, out);
  tl_strbuf_appendf(out, " %s", now->action);
  // A wild address says "at" itself.
  bool says_at = finding->place && !strncmp(finding->place, "at ", 3);
  if (finding->place) tl_strbuf_appendf(out, says_at ? " %s" : " at %s", finding->place);
  tl_strbuf_append_c(out, ", ");
  print_op(now, out);
  tl_strbuf_append_char(out, '\n');
  print_excerpt(now, out);
  if (before->op) {
    print_where(finding->kernel, before, out);
    tl_strbuf_appendf(out, "note: %s", before->agent);
    print_block(before, out);
    tl_strbuf_appendf(out, " %s it before, ", before->action);
    print_op(before, out);
    tl_strbuf_append_char(out, '\n');
    print_excerpt(before, out);
  }
  if (finding->missing) tl_strbuf_appendf(out, "  missing: %s\n", finding->missing);
  if (finding->more) tl_strbuf_appendf(out, "  also at: %s\n", finding->more);
  if (finding->count > 1) tl_strbuf_appendf(out, "  %llu times\n", (unsigned long long)finding->count);
}

void tl_emu_findings_print(const tl_emu_findings *findings, size_t limit, tl_strbuf *out) {
  size_t shown = limit && findings->list.len > limit ? limit : findings->list.len;
  for (size_t i = 0; i < shown; i++) finding_print(&findings->list.items[i], out);
  if (shown < findings->list.len) tl_strbuf_appendf(out, "and %zu more\n", findings->list.len - shown);
  if (findings->untold)
    tl_strbuf_appendf(out, "and, at further places that are not told, %llu accesses\n",
                      (unsigned long long)findings->untold);
}

// ---- JSON

static void print_string(const char *key, const char *value, tl_strbuf *out) {
  tl_strbuf_appendf(out, "\"%s\": ", key);
  tl_strbuf_append_json_c(out, value);
}

static void print_json_side(const char *key, const tl_emu_finding_side *side, tl_strbuf *out) {
  tl_strbuf_appendf(out, ", \"%s\": ", key);
  if (!side->op) {
    tl_strbuf_append_c(out, "null");
    return;
  }
  tl_strbuf_append_c(out, "{");
  print_string("op", side->op, out);
  tl_strbuf_appendf(out, ", \"call\": %u, ", side->call);
  print_string("action", side->action, out);
  tl_strbuf_append_c(out, ", ");
  print_string("agent", side->agent, out);
  tl_strbuf_append_c(out, ", ");
  print_string("file", side->file, out);
  tl_strbuf_appendf(out, ", \"line\": %u, ", side->line);
  print_string("text", side->text, out);
  if (side->uses) {
    tl_strbuf_append_c(out, ", ");
    print_string("expanded_from", side->uses, out);
  }
  if (side->tile >= 0) tl_strbuf_appendf(out, ", \"tile\": %lld", (long long)side->tile);
  tl_strbuf_appendf(out, ", \"block\": [%u, %u, %u], \"thread\": %d}", side->block[0], side->block[1], side->block[2],
                    side->thread);
}

void tl_emu_findings_print_json(const tl_emu_findings *findings, tl_strbuf *out) {
  tl_strbuf_append_c(out, "{\"findings\": [");
  for (size_t i = 0; i < findings->list.len; i++) {
    const tl_emu_finding *finding = &findings->list.items[i];
    tl_strbuf_append_c(out, i ? ",\n  {" : "\n  {");
    print_string("kind", tl_emu_finding_kind_name(finding->kind), out);
    tl_strbuf_append_c(out, ", ");
    print_string("kernel", finding->kernel, out);
    tl_strbuf_appendf(out, ", \"count\": %llu", (unsigned long long)finding->count);
    print_json_side("access", &finding->now, out);
    print_json_side("earlier", &finding->before, out);
    tl_strbuf_append_c(out, ", ");
    print_string("place", finding->place, out);
    tl_strbuf_append_c(out, ", ");
    print_string("missing", finding->missing, out);
    if (finding->more) {
      tl_strbuf_append_c(out, ", ");
      print_string("also_at", finding->more, out);
    }
    tl_strbuf_append_c(out, "}");
  }
  tl_strbuf_append_c(out, findings->list.len ? "\n]" : "]");
  if (findings->untold) tl_strbuf_appendf(out, ", \"untold\": %llu", (unsigned long long)findings->untold);
  tl_strbuf_append_c(out, "}\n");
}
