// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of the translation share. Private to emulator/ptx. Each knows those above it here and no others:
// emit.c writes text, call.c calls device ops, values.c reads and writes operands, device.c and rules_*.c hold the
// rules that rows of the table name, function.c applies them to a function, translate.c to a module.
#ifndef TL_EMULATOR_PTX_TRANSLATOR_H
#define TL_EMULATOR_PTX_TRANSLATOR_H

#include "emulator/ptx/translate.h"
#include "support/vec.h"

// A value of LLVM's text: "%t12", "5".
typedef struct ptx_value {
  char text[56];
} ptx_value;

typedef struct ptx_place {
  const tl_ptx_function *function;
  uint32_t file;  // of the module's files + 1; 0: the PTX itself
  uint32_t line;
  uint32_t id;  // of the metadata
} ptx_place;

// What a register holds as long as the run of code goes on: a product that a sum may take in.
typedef struct ptx_product {
  uint32_t run;  // 0: none
  tl_ptx_type type;
  bool flushes;
  ptx_value factors[2];
} ptx_product;

// A register that is a value: as it was written, and as an integer of its width, which is made when it is asked for. Of
// a variable, what it held last in the code `run`.
typedef struct ptx_register {
  ptx_value value;
  const char *type;  // LLVM's of the value
  ptx_value bits;
  uint32_t bits_run;  // the code that the integer belongs to: 0: none yet
  uint32_t run;
  bool is_unsaved;  // its variable does not have the value yet
} ptx_register;

typedef struct ptx_translator {
  const tl_ptx_module *module;
  const tl_ptx_function *function;  // that is being translated
  const tl_ptx_statement *statement;
  const tl_emu_ptx_options *options;
  const void *const *addresses;
  tl_diags *diags;
  bool failed;
  tl_strbuf declarations, variables, functions;  // text of the module
  tl_strbuf entry, body;                         // of the function: its variables, its instructions
  TL_VEC(char *) declared;                       // names of functions; owned
  TL_VEC(char *) structs;                        // texts of the types %struct0 …; owned
  TL_VEC(const tl_ptx_function *) wanted;        // that are called, in the order of the calls
  TL_VEC(uint32_t) unsaved;                      // registers whose variables lack their values
  TL_VEC(ptx_place) places;
  TL_VEC(uint8_t) flushed;  // by the number of a value: it is not subnormal
  uint32_t next_value, next_block, next_metadata;
  ptx_value part;         // bits of the word that the next instruction is about; "": all
  uint32_t place;         // id of the instruction's; 0: none yet
  bool has_locals;        // the function says which of its variables are in local memory
  bool ends;              // the block that is open has its end
  uint32_t run;           // number of the code between two labels, from 1
  int *runs;              // by register: the code in which it is a value, 0: never written, -1: a variable (function.c)
  int *leans;             // by register: how many operands take it as a float, less those that do not
  ptx_register *values;   // by register that is a value: the last
  ptx_product *products;  // by register; NULL: nothing is fused
  uint8_t *sums;          // by register: which sum of wgmma it may hold (tl_wgmma_register + 1); NULL: none
} ptx_translator;

typedef void ptx_rule(ptx_translator *t, const tl_ptx_statement *s);
// A function for each rule that a row of the table names.
#define TL_PTX_ROW(opcode, modifiers, operands, min_sm, min_ptx, rule, argument, section) ptx_rule tl_ptx_rule_##rule;
#include "ptx/table/instructions.def"
#undef TL_PTX_ROW

// ---- emit.c
// Reports that the instruction cannot be run.
void tl_ptx_unsupported(ptx_translator *t, tl_loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
// An instruction with a result, or without. Reports and findings name places of what accesses memory, divides or goes
// on elsewhere; others have none, since places cost LLVM time.
ptx_value tl_ptx_emit(ptx_translator *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
ptx_value tl_ptx_emit_placed(ptx_translator *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tl_ptx_emit_void(ptx_translator *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
ptx_value tl_ptx_value(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Stores what registers hold into their variables: before the block ends.
void tl_ptx_save_variables(ptx_translator *t);
// "%t12", the next number.
ptx_value tl_ptx_next_value(ptx_translator *t);
uint32_t tl_ptx_new_block(ptx_translator *t);
// Ends the open block with a jump, unless it has an end, and opens block `b<number>`.
void tl_ptx_open_block(ptx_translator *t, uint32_t number);
// Declares a function, once.
void tl_ptx_declare_function(ptx_translator *t, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Where the variable (.param, .local) of the function lies: "%v5".
ptx_value tl_ptx_variable(const tl_ptx_symbol *symbol);
// The text of a float constant.
ptx_value tl_ptx_float_constant(tl_ptx_type type, uint64_t bits);
// "i32", "float", "<2 x half>".
const char *tl_ptx_llvm_type(tl_ptx_type type);
// "f32", as LLVM's intrinsics are called for it.
const char *tl_ptx_suffix(tl_ptx_type type);
// Calls LLVM's intrinsic "llvm.<name>.<suffix>" of operands and result of one type.
ptx_value tl_ptx_intrinsic(ptx_translator *t, const char *name, tl_ptx_type type, const ptx_value *args, unsigned n);

// ---- call.c
enum { PTX_MAX_OP_OPERANDS = 300 };
typedef struct ptx_args {
  unsigned n;
  ptx_value items[PTX_MAX_OP_OPERANDS];  // without types
} ptx_args;
// Calls the device op; `args` in the order and with the types of its signature. `out`: its results; NULL: not needed.
// False after a report when there is none of that name.
bool tl_ptx_call_op(ptx_translator *t, const char *name, const ptx_args *args, ptx_args *out);
// The same with a signature.
void tl_ptx_call_signature(ptx_translator *t, const char *name, const char *signature, const ptx_args *args,
                           ptx_args *out);
// An op of values of one type: "tl.ptx.<name>".
ptx_value tl_ptx_call_scalar(ptx_translator *t, const char *name, const ptx_value *values, unsigned n);

// ---- values.c
ptx_value tl_ptx_convert_bits(ptx_translator *t, ptx_value value, const char *from, const char *to);
// The type of the variable of a register: "float" and "double" where most operands take it so, for casts cost LLVM
// time.
const char *tl_ptx_variable_type(const ptx_translator *t, const tl_ptx_symbol *symbol);
// What a register holds: an integer of its width.
ptx_value tl_ptx_register(ptx_translator *t, const tl_ptx_symbol *symbol);
// The operand as its own type, or as another of the same width.
ptx_value tl_ptx_read(ptx_translator *t, const tl_ptx_operand *operand);
ptx_value tl_ptx_read_as(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type);
// Writes a value of the operand's type; a wider register is extended by it.
void tl_ptx_write(ptx_translator *t, const tl_ptx_operand *operand, ptx_value value);
void tl_ptx_write_as(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type, ptx_value value);
// The state space that the words of the instruction name, the last of them; NONE: a generic address.
typedef enum ptx_window {
  PTX_GENERIC = 0,
  PTX_GLOBAL = 1,
  PTX_SHARED = 3,
  PTX_PARAM = 4,  // as constant memory: not checked
  PTX_LOCAL = 5,
  PTX_CLUSTER = 7
} ptx_window;
ptx_window tl_ptx_window_of(const tl_ptx_statement *s);
// "ptr addrspace(1) %t5", `skip` bytes behind what an address operand says.
ptx_value tl_ptx_pointer(ptx_translator *t, const tl_ptx_operand *operand, ptx_window window, uint64_t skip);
// The same of an address in a value (i64): an offset in the window of shared memory, else an address.
ptx_value tl_ptx_pointer_of(ptx_translator *t, ptx_value address, ptx_window window);
// The value of an address (i64) in its window.
ptx_value tl_ptx_address_of(ptx_translator *t, ptx_value pointer, ptx_window window);

// ---- device.c
// Calls the op with all operands that are not written, and writes its results.
void tl_ptx_run_op(ptx_translator *t, const tl_ptx_statement *s, const char *name);

// ---- rules_float.c
// A NaN becomes the one that the hardware makes; subnormal numbers become zero.
ptx_value tl_ptx_canonical(ptx_translator *t, tl_ptx_type type, ptx_value value);
ptx_value tl_ptx_flush(ptx_translator *t, tl_ptx_type type, ptx_value value);
// Clamps to [0, 1]; NaN becomes 0.
ptx_value tl_ptx_saturate(ptx_translator *t, tl_ptx_type type, ptx_value value);

// ---- rules_wgmma.c
// By register, which sum it may hold; NULL: none. free().
uint8_t *tl_ptx_find_sums(const tl_ptx_function *function);

// ---- function.c
bool tl_ptx_translate_function(ptx_translator *t, const tl_ptx_function *function, bool is_kernel);

#endif
