// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX as a tree: what a text says, with names resolved, before its instructions mean anything (ptx/table).
#ifndef TL_PTX_PTX_H
#define TL_PTX_PTX_H

#include <stdbool.h>
#include <stdint.h>

#include "ptx/text/types.h"
#include "support/arena.h"
#include "support/diag.h"
#include "support/strbuf.h"

typedef enum tl_ptx_space {
  TL_PTX_SPACE_NONE,
  TL_PTX_SPACE_REG,
  TL_PTX_SPACE_PARAM,
  TL_PTX_SPACE_LOCAL,
  TL_PTX_SPACE_SHARED,
  TL_PTX_SPACE_GLOBAL,
  TL_PTX_SPACE_CONST
} tl_ptx_space;

// A value of an initialiser: a number, or the address of a variable or of a function plus a number.
typedef struct tl_ptx_symbol tl_ptx_symbol;
typedef struct tl_ptx_initial {
  const tl_ptx_symbol *symbol;  // NULL: none
  tl_str function;              // "": none
  bool is_generic;              // generic(symbol)
  uint64_t bits;                // of a number, by the variable's type
} tl_ptx_initial;

// A register, or a variable.
struct tl_ptx_symbol {
  tl_str name;
  tl_ptx_space space;
  tl_ptx_type type;
  uint32_t id;        // registers: number in their function; others: number in the module
  uint32_t align;     // bytes; that of the type unless given
  uint64_t elements;  // 1 for scalars; of .v2 and .v4 all
  bool is_array;
  bool is_unsized;  // []
  bool is_extern;
  bool is_of_function;  // declared in one, or its parameter
  bool is_range;        // a declaration such as %r<100>, whose registers `elements` counts
  tl_loc loc;
  tl_ptx_initial *values;  // of an initialiser; NULL: none
  uint32_t num_values;
  tl_ptx_symbol **slots;  // of a range: its registers that were named
};

typedef enum tl_ptx_operand_kind {
  TL_PTX_REGISTER,  // symbol
  TL_PTX_SPECIAL,   // text: "%tid.x"
  TL_PTX_INTEGER,   // value
  TL_PTX_FLOAT32,   // value: bits
  TL_PTX_FLOAT64,   // value: bits
  TL_PTX_VARIABLE,  // symbol, value: offset
  TL_PTX_ADDRESS,   // [symbol or number + value]; items: coordinates of a tensor, or more addresses
  TL_PTX_VECTOR,    // items in braces
  TL_PTX_LIST,      // items in parentheses
  TL_PTX_PAIR,      // d|p: two items
  TL_PTX_LABEL,     // text; label
  TL_PTX_FUNCTION,  // text
  TL_PTX_SINK       // _
} tl_ptx_operand_kind;

typedef struct tl_ptx_operand tl_ptx_operand;
struct tl_ptx_operand {
  tl_ptx_operand_kind kind;
  tl_str text;
  const tl_ptx_symbol *symbol;  // NULL: none
  uint64_t value;
  bool is_negated;  // !p
  uint32_t label;   // of the function's statements
  tl_ptx_operand *items;
  uint32_t num_items;
  tl_loc loc;
  tl_ptx_type type;  // as which the instruction takes it (ptx/table)
};

typedef enum tl_ptx_statement_kind {
  TL_PTX_INSTRUCTION,
  TL_PTX_LABEL_HERE,     // text
  TL_PTX_SCOPE_BEGIN,    // {
  TL_PTX_SCOPE_END,      // }
  TL_PTX_DECLARATION,    // symbol
  TL_PTX_SOURCE_LINE,    // .loc
  TL_PTX_PRAGMA,         // text
  TL_PTX_BRANCHTARGETS,  // text: … of the labels `operands`
  TL_PTX_PROTOTYPE       // text: what stands behind it, ".callprototype …" or ".calltargets …", `prototype`
} tl_ptx_statement_kind;

enum { TL_PTX_MAX_WORDS = 24 };

typedef struct tl_ptx_row tl_ptx_row;  // ptx/table/table.h

typedef struct tl_ptx_statement {
  tl_ptx_statement_kind kind;
  tl_loc loc;
  uint32_t line;                // of the PTX text
  uint32_t file, source_line;   // as the last .loc says; 0: none
  uint32_t column;              // SOURCE_LINE
  const tl_ptx_symbol *symbol;  // DECLARATION; guard of an INSTRUCTION, NULL: none
  bool is_negated;              // @!p
  tl_str text;
  tl_str prototype;
  tl_str *words;  // INSTRUCTION: opcode and modifiers
  uint32_t num_words;
  tl_ptx_operand *operands;
  uint32_t num_operands;
  const tl_ptx_row *row;  // INSTRUCTION, once checked
} tl_ptx_statement;

typedef struct tl_ptx_function {
  tl_str name;
  bool is_entry, is_extern, is_noreturn;
  tl_str linkage;  // "visible", "weak", "extern" or ""
  tl_ptx_symbol **returns, **params;
  uint32_t num_returns, num_params;
  tl_ptx_statement *statements;
  uint32_t num_statements;
  bool has_body;
  const tl_ptx_symbol **registers;  // in use, by id
  uint32_t num_registers;
  uint32_t maxntid[3], reqntid[3];  // 0: not said
  uint32_t minnctapersm, maxnctapersm, maxnreg;
  uint32_t cluster[3];
  bool is_explicit_cluster;
  uint32_t maxclusterrank;
  tl_loc loc;
} tl_ptx_function;

typedef struct tl_ptx_file {
  uint32_t number;
  tl_str name;
} tl_ptx_file;

typedef struct tl_ptx_module {
  tl_arena arena;      // Owned. Holds everything.
  int version;         // PTX ISA times ten
  tl_str target;       // "sm_90a"
  int sm;              // 90
  bool is_arch;        // with the features of one architecture: sm_90a
  tl_ptx_file *files;  // of .file
  uint32_t num_files;
  tl_ptx_symbol **variables;  // of the module and of its functions, by id
  uint32_t num_variables;
  tl_ptx_function **functions;
  uint32_t num_functions;
} tl_ptx_module;

// Reads PTX. NULL after reporting; texts of the tree point into the source. Owned by the caller.
tl_ptx_module *tl_ptx_parse(const tl_sources *sources, uint32_t source, tl_diags *diags);
void tl_ptx_destroy(tl_ptx_module *module);
// The kernel (or the function with a body) of that name; NULL for none.
tl_ptx_function *tl_ptx_find_function(const tl_ptx_module *module, tl_str name);
// What stands for the function where its address is taken, never 0 (the PTX ISA leaves it open); 0: there is none.
uint64_t tl_ptx_function_address(const tl_ptx_module *module, tl_str name);
// Writes text that reads back as the same tree.
void tl_ptx_print(const tl_ptx_module *module, tl_strbuf *out);
// Whether the words of an instruction hold `word`.
bool tl_ptx_has(const tl_ptx_statement *statement, const char *word);

#endif
