// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What YAML says about a spec's usual slips is rarely what the author needs to hear: exact messages for them.
#include <string.h>

#include "frontend/yaml/yaml_internal.h"

typedef struct failure {
  tl_diags *diags;
  tl_str text;
  uint32_t source;
  uint32_t offset;      // of the problem
  uint32_t line_start;  // of its line
  uint32_t key;         // where what could not be read began
  const char *problem;
} failure;

static bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool report_tab(const failure *fail) {
  uint32_t at = fail->line_start;
  while (at < fail->text.len && fail->text.data[at] == ' ') at++;
  bool indented_by_tab = at < fail->text.len && fail->text.data[at] == '\t';
  bool stopped_at_tab = fail->offset < fail->text.len && fail->text.data[fail->offset] == '\t';
  if (!indented_by_tab && !stopped_at_tab) return false;
  tl_diag *diag =
      tl_diag_report(fail->diags, TL_DIAG_YAML_TAB, (tl_loc){fail->source, indented_by_tab ? at : fail->offset, 1},
                     "a tab is used for indentation");
  tl_diag_add_hint(fail->diags, diag, "indent with spaces");
  return true;
}

// {type: f16[a, b]}: a bracket straight behind a word inside flow style.
static bool report_flow_bracket(const failure *fail) {
  char c = fail->offset < fail->text.len ? fail->text.data[fail->offset] : '\0';
  if (!strstr(fail->problem, "did not find expected ','") || (c != '[' && c != '{')) return false;
  uint32_t start = fail->offset;
  while (start > fail->line_start && is_word_char(fail->text.data[start - 1])) start--;
  if (start == fail->offset) return false;
  tl_diag_report(fail->diags, TL_DIAG_YAML_FLOW, (tl_loc){fail->source, start, fail->offset + 1 - start},
                 "flow style cannot hold commas or brackets: use block style");
  return true;
}

// The start of the text of the line above when it is indented as the problem's line and is no complete `key: value`:
// libyaml has read both as one text. UINT32_MAX otherwise.
static uint32_t joined_line(const failure *fail) {
  tl_str text = fail->text;
  if (!fail->line_start) return UINT32_MAX;
  uint32_t end = fail->line_start - 1, start = end;
  while (start > 0 && text.data[start - 1] != '\n') start--;
  uint32_t indent = 0;
  while (start + indent < end && text.data[start + indent] == ' ') indent++;
  for (uint32_t i = 0; i < indent; i++)
    if (fail->line_start + i >= text.len || text.data[fail->line_start + i] != ' ') return UINT32_MAX;
  if (fail->line_start + indent >= text.len || !is_word_char(text.data[fail->line_start + indent])) return UINT32_MAX;
  for (uint32_t i = start + indent; i < end; i++)
    if (text.data[i] == ':' && (i + 1 == end || text.data[i + 1] == ' ')) return UINT32_MAX;
  return start + indent < end && is_word_char(text.data[start + indent]) ? start + indent : UINT32_MAX;
}

// `M:64` or `M = 64` on a line of its own: libyaml takes it for the beginning of a longer key or value and stops at the
// next line.
static bool report_cut_key(const failure *fail) {
  tl_str text = fail->text;
  uint32_t start = strstr(fail->problem, "could not find expected ':'")      ? fail->key
                   : strstr(fail->problem, "mapping values are not allowed") ? joined_line(fail)
                                                                             : UINT32_MAX;
  if (start == UINT32_MAX) return false;
  uint32_t end = start;
  while (end < text.len && is_word_char(text.data[end])) end++;
  uint32_t value = end + 1, stop = end;
  while (stop < text.len && text.data[stop] != '\n' && text.data[stop] != '\r') stop++;
  tl_loc loc = {fail->source, start, stop - start};
  if (end > start && value < stop && text.data[end] == ':' && stop - start <= 60) {
    tl_diag *diag = tl_diag_report(fail->diags, TL_DIAG_YAML_COLON, loc, "put a space after the colon");
    tl_diag_add_hint(fail->diags, diag, "write `%.*s: %.*s`", (int)(end - start), text.data + start,
                     (int)(stop - value), text.data + value);
    return true;
  }
  tl_diag *diag = tl_diag_report(fail->diags, TL_DIAG_YAML_SYNTAX, loc, "malformed YAML: expected `key: value`");
  tl_diag_add_hint(fail->diags, diag, "a key ends in `: `; a list item starts with `- `");
  return true;
}

// Whether "c ? a" stands before the colon at `end`.
static bool is_c_conditional(tl_str text, uint32_t start, uint32_t end) {
  for (uint32_t i = start; i + 2 < end; i++)
    if (text.data[i] == ' ' && text.data[i + 1] == '?' && text.data[i + 2] == ' ') return true;
  return false;
}

// Whether a colon ends a key in this line before the one that fails.
static bool has_key_before(const failure *fail, uint32_t text) {
  for (uint32_t i = text; i + 1 < fail->offset; i++)
    if (fail->text.data[i] == ':' && fail->text.data[i + 1] == ' ') return true;
  return false;
}

static bool ends_line(const failure *fail, uint32_t at) {
  return at >= fail->text.len || fail->text.data[at] == '\n' || fail->text.data[at] == '\r';
}

// `text` is where the line's text begins.
static const char *hint_for_colon(const failure *fail, uint32_t text) {
  const char *data = fail->text.data;
  bool has_key = has_key_before(fail, text);
  if (has_key && ends_line(fail, fail->offset + 1)) return "leave out the colon at the end of the line";
  // A list item right below `key: value`: libyaml reads it as more of the value.
  if (!has_key && data[text] == '-' && text + 1 < fail->text.len && data[text + 1] == ' ')
    return "this line continues the value above it: is a key such as `do:` missing between?";
  uint32_t end = text;
  while (end < fail->offset && is_word_char(data[end])) end++;
  if (end == fail->offset && end > text)
    return "this line continues the value above it: a key stands under the first letter of the key that it belongs to";
  return is_c_conditional(fail->text, fail->line_start, fail->offset)
             ? "a choice is written `a if c else b`"
             : "a text that holds `: ` needs quotes or a block (`doc: >`)";
}

// X[a: b]: the colon makes a key of what stands before it.
static bool report_colon(const failure *fail) {
  if (!strstr(fail->problem, "mapping values are not allowed")) return false;
  int open = 0;
  for (uint32_t i = fail->line_start; i < fail->offset; i++)
    open += fail->text.data[i] == '[' ? 1 : fail->text.data[i] == ']' ? -1 : 0;
  tl_loc loc = {fail->source, fail->offset, 1};
  if (open > 0) {
    tl_diag *diag = tl_diag_report(fail->diags, TL_DIAG_YAML_COLON, loc,
                                   "a slice has no space after its colon: YAML takes this for a key");
    tl_diag_add_hint(fail->diags, diag, "write `lo:hi`");
    return true;
  }
  tl_diag *diag =
      tl_diag_report(fail->diags, TL_DIAG_YAML_COLON, loc, "YAML takes the text before this `: ` for a key");
  uint32_t text = fail->line_start;
  while (text < fail->offset && fail->text.data[text] == ' ') text++;
  tl_diag_add_hint(fail->diags, diag, "%s", hint_for_colon(fail, text));
  return true;
}

static const char *hint_for(const failure *fail) {
  const char *problem = fail->problem;
  bool at_dash = fail->offset + 1 < fail->text.len && fail->text.data[fail->offset] == '-' &&
                 fail->text.data[fail->offset + 1] == ' ';
  if (strstr(problem, "did not find expected '-' indicator"))
    return "every item of a list starts with `- `: is it missing here?";
  if (strstr(problem, "did not find expected key") && at_dash)
    return "the items of a list start with `- `, all at one indentation: look at those above";
  if (strstr(problem, "did not find expected key") || strstr(problem, "block sequence entries are not allowed"))
    return "check the indentation of this line and of the lines above it";
  if (strstr(problem, "did not find expected <document start>"))
    return "check the indentation of this line; documents are separated by a line `---`";
  if (strstr(problem, "found unexpected end of stream")) return "is a closing quote or bracket missing?";
  if (strstr(problem, "did not find expected ','")) return "is a closing bracket or a comma missing?";
  return NULL;
}

void tl_yaml_report_error(tl_diags *diags, const yaml_parser_t *parser, const tl_yaml_positions *positions,
                          uint32_t source) {
  failure fail = {.diags = diags, .text = positions->text, .source = source};
  fail.problem = parser->problem ? parser->problem : "the text cannot be read";
  fail.offset = tl_yaml_offset(positions, parser->problem_mark.index);
  fail.line_start = fail.offset;
  fail.key = tl_yaml_offset(positions, parser->context ? parser->context_mark.index : parser->problem_mark.index);
  while (fail.line_start > 0 && fail.text.data[fail.line_start - 1] != '\n') fail.line_start--;
  if (report_tab(&fail) || report_flow_bracket(&fail) || report_cut_key(&fail) || report_colon(&fail)) return;
  tl_loc loc = {source, fail.offset, fail.offset < fail.text.len && fail.text.data[fail.offset] != '\n' ? 1 : 0};
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_YAML_SYNTAX, loc, "malformed YAML: %s%s%s", fail.problem,
                                 parser->context ? " " : "", parser->context ? parser->context : "");
  if (fail.key != fail.offset) tl_diag_add_note(diags, diag, (tl_loc){source, fail.key, 1}, "that started here");
  const char *hint = hint_for(&fail);
  if (hint) tl_diag_add_hint(diags, diag, "%s", hint);
}

int tl_yaml_bracket_balance(const tl_yaml_node *node) {
  int balance = 0;
  if (node->kind != TL_YAML_SCALAR || node->quoted) return 0;
  for (size_t i = 0; i < node->text.text.len; i++) {
    char c = node->text.text.data[i];
    balance += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
  }
  return balance;
}

static bool lacks_space(const tl_yaml_entry *entry) {
  const tl_yaml_node *key = entry->key, *value = entry->value;
  if (key->quoted || value->kind != TL_YAML_SCALAR || value->quoted || value->text.text.len) return false;
  size_t colon = tl_str_find(key->text.text, ':');
  return colon != SIZE_MAX && colon > 0;
}

void tl_yaml_validate_flow(tl_diags *diags, tl_yaml_node *node) {
  const tl_yaml_node *first = NULL;  // where a bracket was opened that a comma left open
  int balance = 0;
  uint32_t count = node->kind == TL_YAML_MAPPING ? 2 * node->num_entries : node->num_items;
  for (uint32_t i = 0; i < count; i++) {
    const tl_yaml_node *part = node->kind == TL_YAML_SEQUENCE ? node->items[i]
                               : i % 2                        ? node->entries[i / 2].value
                                                              : node->entries[i / 2].key;
    balance += tl_yaml_bracket_balance(part);
    if (!first && balance > 0) first = part;
    if (first && balance <= 0) {
      tl_diag_report(diags, TL_DIAG_YAML_FLOW, tl_loc_join(first->loc, part->loc),
                     "flow style cannot hold commas or brackets: use block style");
      node->bad = true;
      return;
    }
  }
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (!lacks_space(entry)) continue;
    tl_str key = entry->key->text.text;
    size_t colon = tl_str_find(key, ':');
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_YAML_COLON, entry->key->loc, "put a space after the colon");
    if (key.len <= 60)
      tl_diag_add_hint(diags, diag, "write `%.*s: %.*s`", (int)colon, key.data, (int)(key.len - colon - 1),
                       key.data + colon + 1);
    node->bad = true;
    return;
  }
}
