// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of instructions (instructions.def) and of special registers, and how a module is held against them.
#ifndef TL_PTX_TABLE_H
#define TL_PTX_TABLE_H

#include "ptx/text/ptx.h"

enum { TL_PTX_MAX_TERMS = 16, TL_PTX_ARCH = 0x1000 };

struct tl_ptx_row {
  const char *opcode, *modifiers, *operands;  // as instructions.def explains
  int min_sm;                                 // times ten; with TL_PTX_ARCH: of that architecture only
  int min_ptx;                                // times ten
  const char *rule, *argument;
  const char *section;  // of the PTX ISA
};

typedef struct tl_ptx_special {
  const char *name;
  tl_ptx_type type;
  const char *op;  // the device op
  int min_sm, min_ptx;
} tl_ptx_special;

// All rows. Static.
const tl_ptx_row *tl_ptx_rows(size_t *out_count);
// NULL when there is no special register of that name.
const tl_ptx_special *tl_ptx_find_special(tl_str name);

// The word of the statement that each term of the row matches, "" where it is left out. False: the words are not the
// row's.
bool tl_ptx_match(const tl_ptx_row *row, const tl_ptx_statement *statement, tl_str terms[TL_PTX_MAX_TERMS]);
// Gives each instruction that the kernel of that name can come to its row, and each operand its type; of all functions
// when there is no such kernel. False after reports.
bool tl_ptx_check(tl_ptx_module *module, tl_str kernel, tl_diags *diags);
// Whether something else than a call names the function.
bool tl_ptx_takes_address(const tl_ptx_module *module, tl_str name);

// ---- pieces

// The kernel and what it can call, directly or by an address. Owned by the caller: free().
tl_ptx_function **tl_ptx_reached(const tl_ptx_module *module, tl_ptx_function *kernel, size_t *out_count);

// Why the words of the statement, which has its row and its operands, are no form of it after all; NULL: they are.
// Static.
const char *tl_ptx_wrong_form(const tl_ptx_statement *statement);

// Puts modifiers into the order of the PTX ISA where ptxas takes another: nvcc writes "atom.global.cta.add" and
// "max.s32.relu", CUB "vote.ballot.sync". False: they stand in it already.
bool tl_ptx_put_in_order(tl_ptx_statement *statement);

// Gives the operands their types. False: they do not fit; `out_problem` says why, with the place, when the number of
// operands is that of the row.
typedef struct tl_ptx_problem {
  tl_loc loc;
  char text[200];
} tl_ptx_problem;
bool tl_ptx_validate_operands(const tl_ptx_row *row, tl_ptx_statement *statement, const tl_str terms[TL_PTX_MAX_TERMS],
                              tl_ptx_problem *out_problem);

#endif
