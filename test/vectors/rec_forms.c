// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table is read as text: nothing of what the reader of PTX makes of it is used here.
#include "rec_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDED_SM = 90 };  // what later GPUs added is not recorded

typedef struct row {
  const char *opcode, *modifiers, *operands, *rule;
  int min_sm;
} row;

#define ARCH(sm) (sm)  // of that architecture alone
static const row rows[] = {
#define TL_PTX_ROW(opcode, modifiers, operands, min_sm, min_ptx, rule, argument, section) \
  {opcode, modifiers, operands, #rule, min_sm},
#include "ptx/table/instructions.def"
#undef TL_PTX_ROW
#undef ARCH
};

bool rec_has(const rec_form *form, const char *word) {
  for (int i = 0; i < form->num_terms; i++)
    if (!strcmp(form->words[i], word)) return true;
  return false;
}

// The `choice`th word of a term, ".x", ".{x y}", "?" behind it: may be left out, which is the last choice. False: the
// term has no such choice.
static bool choose(const char *term, int length, int choice, char out[32]) {
  bool optional = term[length - 1] == '?';
  length -= optional;
  bool is_list = term[1] == '{';
  const char *at = term + 1 + is_list, *end = term + length - is_list;
  int n = 0;
  while (at < end) {
    int word = is_list ? (int)strcspn(at, " }") : (int)(end - at);
    if (n++ == choice) return snprintf(out, 32, "%.*s", word, at), true;
    at += word + 1;
  }
  out[0] = 0;
  return optional && choice == n;
}

// The type that a spec names: its own, that of a term, or twice its width.
static bool set_type(const rec_form *form, const char *spec, int length, char out[8]) {
  bool wide = spec[0] == 'w';
  if (spec[wide] < '0' || spec[wide] > '9') return snprintf(out, 8, "%.*s", length, spec) < 8;
  int term = atoi(spec + wide);
  const char *type = form->words[term];
  if (wide)
    snprintf(out, 8, "%c%d", type[0], 2 * atoi(type + 1));
  else
    snprintf(out, 8, "%.7s", type);
  return true;
}

// "=0", "~3", "u32#", "=pred|pred", "V6", "M0", "["; false: another kind.
static bool add_operand(rec_form *form, const char *spec, int length) {
  rec_operand operand = {.is_result = spec[0] == '='};
  spec += operand.is_result, length -= operand.is_result;
  while (length && strchr("~MV", *spec)) {
    operand.is_vector |= *spec == 'V';
    spec++, length--;
  }
  if (length && spec[length - 1] == '?') return false;
  if (length == 1 && *spec == '[') {
    operand.is_address = true;
    strcpy(operand.type, "b64");
    form->operands[form->num_operands++] = operand;
    return true;
  }
  if (!length || strchr("{[LF(", *spec)) return false;
  if (spec[length - 1] == '#') operand.is_constant = true, length--;
  const char *bar = memchr(spec, '|', (size_t)length);
  if (!set_type(form, spec, bar ? (int)(bar - spec) : length, operand.type)) return false;
  form->operands[form->num_operands++] = operand;
  if (!bar) return true;
  operand.is_second = true;
  if (!set_type(form, bar + 1, (int)(spec + length - bar - 1), operand.type)) return false;
  form->operands[form->num_operands++] = operand;
  return true;
}

static bool set_operands(rec_form *form, const char *operands) {
  form->num_operands = 0;
  while (*operands) {
    int length = (int)strcspn(operands, " ");
    if (form->num_operands + 2 > REC_MAX_FORM_OPERANDS || !add_operand(form, operands, length)) return false;
    operands += length + (operands[length] == ' ');
  }
  return true;
}

static void visit_row(const row *r, const char *modifiers, rec_form *form, void (*visit)(const rec_form *)) {
  if (!*modifiers) {
    if (set_operands(form, r->operands)) visit(form);
    return;
  }
  const char *brace = strchr(modifiers, '{');
  int length = (int)strcspn(modifiers, " ");
  if (brace && brace - modifiers < length) length = (int)strcspn(modifiers, "}") + 1;
  length += modifiers[length] == '?';
  size_t text = strlen(form->text);
  int term = form->num_terms++, hints = form->hints, lanes = form->lanes;
  for (int i = 0; choose(modifiers, length, i, form->words[term]); i++) {
    const char *word = form->words[term];
    if (word[0]) snprintf(form->text + text, sizeof form->text - text, ".%s", word);
    form->hints = hints + (word[0] && modifiers[length - 1] == '?');
    if (!strcmp(word, "v2") || !strcmp(word, "v4")) form->lanes = word[1] - '0', form->hints = hints;
    visit_row(r, modifiers + length + (modifiers[length] == ' '), form, visit);
    form->text[text] = 0;
    form->lanes = lanes;
  }
  form->num_terms--, form->hints = hints;
}

void rec_each_form(void (*visit)(const rec_form *form)) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rec_form form = {.opcode = rows[i].opcode, .rule = rows[i].rule, .lanes = 1};
    if (strchr(rows[i].modifiers, '*') || rows[i].min_sm > RECORDED_SM) continue;
    strcpy(form.text, form.opcode);
    visit_row(&rows[i], rows[i].modifiers, &form, visit);
  }
}
