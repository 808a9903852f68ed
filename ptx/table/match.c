// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which row an instruction is.
#include <stdlib.h>
#include <string.h>

#include "ptx/table/table.h"

static const tl_ptx_row rows[] = {
#define ARCH(sm) ((sm) | TL_PTX_ARCH)
#define TL_PTX_ROW(opcode, modifiers, operands, min_sm, min_ptx, rule, argument, section) \
  {opcode, modifiers, operands, min_sm, min_ptx, #rule, argument, section},
#include "ptx/table/instructions.def"
#undef TL_PTX_ROW
#undef ARCH
};

const tl_ptx_row *tl_ptx_rows(size_t *out_count) {
  *out_count = sizeof rows / sizeof rows[0];
  return rows;
}

// ---- modifiers

// How many of the words from `at` on the term matches: ".x.y", ".{x y}", ".*x". 0: it does not match.
static uint32_t match_term(tl_str term, const tl_ptx_statement *s, uint32_t at) {
  if (at >= s->num_words) return 0;
  tl_str word = s->words[at], rest = tl_str_sub(term, 1, term.len);
  if (rest.data[0] == '*') {
    tl_str prefix = tl_str_sub(rest, 1, rest.len);
    return word.len >= prefix.len && !memcmp(word.data, prefix.data, prefix.len);
  }
  if (rest.data[0] == '{') {
    rest = tl_str_sub(rest, 1, rest.len - 2);
    for (size_t start = 0, i = 0; i <= rest.len; i++) {
      if (i < rest.len && rest.data[i] != ' ') continue;
      if (tl_str_equal(tl_str_sub(rest, start, i - start), word)) return 1;
      start = i + 1;
    }
    return 0;
  }
  uint32_t count = 0;
  for (size_t start = 0, i = 0; i <= rest.len; i++) {
    if (i < rest.len && rest.data[i] != '.') continue;
    if (at + count >= s->num_words || !tl_str_equal(tl_str_sub(rest, start, i - start), s->words[at + count])) return 0;
    count++;
    start = i + 1;
  }
  return count;
}

// The next term of a pattern, without its "?".
static tl_str take_term(const char **at, bool *out_optional) {
  while (**at == ' ') (*at)++;
  const char *start = *at;
  bool in_braces = false;
  for (; **at && (in_braces || **at != ' '); (*at)++) {
    if (**at == '{') in_braces = true;
    if (**at == '}') in_braces = false;
  }
  tl_str term = {start, (size_t)(*at - start)};
  *out_optional = term.len && term.data[term.len - 1] == '?';
  return tl_str_sub(term, 0, term.len - *out_optional);
}

bool tl_ptx_match(const tl_ptx_row *row, const tl_ptx_statement *statement, tl_str terms[TL_PTX_MAX_TERMS]) {
  const char *pattern = row->modifiers;
  uint32_t at = 1, n = 0;
  for (;;) {
    bool optional;
    tl_str term = take_term(&pattern, &optional);
    if (!term.len) break;
    uint32_t count = match_term(term, statement, at);
    if (!count && !optional) return false;
    terms[n++] = count ? statement->words[at] : TL_STR("");
    at += count;
  }
  return at == statement->num_words;
}

// ---- modules

enum { NUM_BUCKETS = 256 };

typedef struct checker {
  tl_ptx_module *module;
  tl_diags *diags;
  int first[NUM_BUCKETS];                  // row + 1
  int next[sizeof rows / sizeof rows[0]];  // row + 1
  bool ok;
} checker;

static uint32_t bucket_of(tl_str opcode) {
  return (uint32_t)(tl_str_hash(opcode) % NUM_BUCKETS);
}

static void index_rows(checker *c) {
  for (int i = (int)(sizeof rows / sizeof rows[0]) - 1; i >= 0; i--) {
    uint32_t bucket = bucket_of(tl_str_from(rows[i].opcode));
    c->next[i] = c->first[bucket];
    c->first[bucket] = i + 1;
  }
}

static void validate_target(checker *c, const tl_ptx_statement *s) {
  const tl_ptx_module *m = c->module;
  int min_sm = s->row->min_sm & ~TL_PTX_ARCH;
  bool is_arch = s->row->min_sm & TL_PTX_ARCH;
  if (m->version < s->row->min_ptx)
    tl_diag_report(c->diags, TL_DIAG_PTX_TARGET, s->loc, "the instruction needs PTX ISA %d.%d, the module says %d.%d",
                   s->row->min_ptx / 10, s->row->min_ptx % 10, m->version / 10, m->version % 10);
  else if (m->sm < min_sm || (is_arch && (m->sm != min_sm || !m->is_arch)))
    tl_diag_report(c->diags, TL_DIAG_PTX_TARGET, s->loc, "the instruction needs sm_%d%s, the module is for %.*s",
                   min_sm, is_arch ? "a" : "", TL_STR_ARG(m->target));
  else
    return;
  c->ok = false;
}

// What was found while looking for the row of an instruction.
typedef struct row_search {
  bool is_opcode, has_words;
  tl_ptx_problem problem;
} row_search;

static const tl_ptx_row *find_row(checker *c, tl_ptx_statement *s, row_search *found) {
  for (int i = c->first[bucket_of(s->words[0])]; i; i = c->next[i - 1]) {
    const tl_ptx_row *row = &rows[i - 1];
    tl_str terms[TL_PTX_MAX_TERMS];
    if (!tl_str_is(s->words[0], row->opcode)) continue;
    found->is_opcode = true;
    if (!tl_ptx_match(row, s, terms)) continue;
    found->has_words = true;
    if (tl_ptx_validate_operands(row, s, terms, &found->problem)) return row;
  }
  return NULL;
}

static void refuse_instruction(checker *c, const tl_ptx_statement *s, const row_search *found) {
  static const char *const textures[] = {"tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"};
  tl_str text = tl_loc_text(c->diags->sources, s->loc);
  const tl_ptx_problem *problem = &found->problem;
  c->ok = false;
  if (found->has_words) {
    tl_diag_report(c->diags, TL_DIAG_PTX_OPERANDS, problem->text[0] ? problem->loc : s->loc, "%s",
                   problem->text[0] ? problem->text : "the instruction takes another number of operands");
    return;
  }
  for (size_t i = 0; i < sizeof textures / sizeof textures[0]; i++) {
    if (!tl_str_is(s->words[0], textures[i])) continue;
    tl_diag_report(c->diags, TL_DIAG_PTX_INSTRUCTION, s->loc, "'%.*s': textures and surfaces are not supported",
                   TL_STR_ARG(text));
    return;
  }
  tl_diag_report(c->diags, TL_DIAG_PTX_INSTRUCTION, s->loc,
                 found->is_opcode ? "'%.*s' is no known form of '%.*s'" : "the instruction '%.*s' is not known",
                 TL_STR_ARG(text), TL_STR_ARG(s->words[0]));
}

static void validate_instruction(checker *c, tl_ptx_statement *s) {
  row_search found = {0};
  const tl_ptx_row *row = find_row(c, s, &found);
  if (!row && !found.has_words && tl_ptx_put_in_order(s)) row = find_row(c, s, &found);
  if (!row) {
    refuse_instruction(c, s, &found);
    return;
  }
  s->row = row;
  const char *why = tl_ptx_wrong_form(s);
  if (!why) {
    validate_target(c, s);
    return;
  }
  tl_str text = tl_loc_text(c->diags->sources, s->loc);
  tl_diag_report(c->diags, TL_DIAG_PTX_INSTRUCTION, s->loc, "'%.*s' is no form of '%s': %s", TL_STR_ARG(text),
                 row->opcode, why);
  c->ok = false;
}

static bool validate_functions(tl_ptx_module *module, tl_ptx_function *const *functions, size_t n, tl_diags *diags) {
  checker *c = tl_xcalloc(1, sizeof *c);
  *c = (checker){.module = module, .diags = diags, .ok = true};
  index_rows(c);
  for (size_t f = 0; f < n; f++)
    for (uint32_t i = 0; i < functions[f]->num_statements; i++)
      if (functions[f]->statements[i].kind == TL_PTX_INSTRUCTION) validate_instruction(c, &functions[f]->statements[i]);
  bool ok = c->ok;
  free(c);
  return ok;
}

bool tl_ptx_check(tl_ptx_module *module, tl_str kernel, tl_diags *diags) {
  tl_ptx_function *function = tl_ptx_find_function(module, kernel);
  if (!function) return validate_functions(module, module->functions, module->num_functions, diags);
  size_t n;
  tl_ptx_function **reached = tl_ptx_reached(module, function, &n);
  bool ok = validate_functions(module, reached, n, diags);
  free(reached);
  return ok;
}
