// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every form of every instruction in ptx/table/instructions.def: the rows with their modifiers chosen.
#ifndef TL_TEST_VECTORS_REC_FORMS_H
#define TL_TEST_VECTORS_REC_FORMS_H

#include <stdbool.h>

enum { REC_MAX_TERMS = 16, REC_MAX_FORM_OPERANDS = 8 };

typedef struct rec_operand {
  char type[8];      // "u32"
  bool is_result;    // a register that is written
  bool is_second;    // p of d|p
  bool is_constant;  // must be one
  bool is_address;
  bool is_vector;  // as many registers as `lanes` of the form says
} rec_operand;

typedef struct rec_form {
  const char *opcode, *rule;
  char text[96];                  // "add.sat.s32"
  char words[REC_MAX_TERMS][32];  // that were chosen, "" for none
  int num_terms, hints, lanes;    // hints: optional terms that are there
  rec_operand operands[REC_MAX_FORM_OPERANDS];
  int num_operands;
} rec_form;

// Calls `visit` for all forms whose operands are values, and addresses; in the table's order.
void rec_each_form(void (*visit)(const rec_form *form));
bool rec_has(const rec_form *form, const char *word);

#endif
