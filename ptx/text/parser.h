// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of the parser share. Private to ptx/text.
#ifndef TL_PTX_PARSER_H
#define TL_PTX_PARSER_H

#include "ptx/text/lexer.h"
#include "ptx/text/ptx.h"
#include "support/vec.h"

// A name in the scope where it was declared. Labels are no names of this kind.
typedef struct ptx_name {
  tl_str name;
  tl_ptx_symbol *symbol;
  uint32_t scope;
  uint32_t next;  // of the same bucket, + 1; 0: none
} ptx_name;

typedef struct ptx_label {
  tl_str name;
  uint32_t scope, statement;
} ptx_label;

enum { PTX_NAME_BUCKETS = 4096, PTX_MAX_SCOPES = 64 };

typedef struct ptx_parser {
  tl_ptx_module *module;
  tl_arena *arena;  // of the module
  tl_ptx_lexer lexer;
  tl_ptx_token token;  // that comes next
  uint32_t source;
  tl_diags *diags;
  bool failed;
  TL_VEC(ptx_name) names;  // a stack
  uint32_t buckets[PTX_NAME_BUCKETS];
  // Scopes of a function: their numbers and what is around each.
  TL_VEC(uint32_t) parents;
  uint32_t scope, depth;
  TL_VEC(ptx_label) labels;
  TL_VEC(uint32_t) statement_scopes;
  TL_VEC(tl_ptx_statement) statements;
  TL_VEC(tl_ptx_symbol *) registers;
  TL_VEC(tl_ptx_symbol *) variables;
  TL_VEC(tl_ptx_function *) functions;
  TL_VEC(tl_ptx_file) files;
  uint32_t file, source_line;  // of the last .loc
} ptx_parser;

// ---- parse_token.c
void tl_ptx_next(ptx_parser *p);
bool tl_ptx_is_punct(const ptx_parser *p, int punct);
bool tl_ptx_is_dot(const ptx_parser *p, const char *text);
// Takes it when it comes next.
bool tl_ptx_take_punct(ptx_parser *p, int punct);
// Reports when it does not come next.
bool tl_ptx_expect(ptx_parser *p, int punct, const char *where);
tl_loc tl_ptx_here(const ptx_parser *p);
// Reports a syntax error at `loc`, the first one of the text only; always false.
bool tl_ptx_fail(ptx_parser *p, tl_loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool tl_ptx_take_number(ptx_parser *p, const char *what, uint64_t *out);

// ---- parse_names.c
tl_ptx_symbol *tl_ptx_lookup(ptx_parser *p, tl_str name);
// Declares it in the scope that is open. False after a report: there is one already.
bool tl_ptx_declare(ptx_parser *p, tl_ptx_symbol *symbol);
void tl_ptx_open_scope(ptx_parser *p);
void tl_ptx_close_scope(ptx_parser *p);
// Label operands find their statements, from the scope of each outwards.
bool tl_ptx_resolve_labels(ptx_parser *p);

// ---- parse_expression.c
// A constant: integers with operators, or a float. `type`: what it becomes.
bool tl_ptx_constant(ptx_parser *p, tl_ptx_type type, uint64_t *out);
// An integer operand with operators.
bool tl_ptx_integer(ptx_parser *p, uint64_t *out);
// The bits of a float token as `type` has them; a conversion rounds to nearest.
uint64_t tl_ptx_float_bits(const tl_ptx_token *token, bool is_negative, tl_ptx_type type);

// ---- parse_variable.c
// ".reg .b32 %r<10>, …;" and variables of other spaces, behind the name of the space. `function`: NULL in a module.
bool tl_ptx_parse_attribute(ptx_parser *p);
bool tl_ptx_parse_variables(ptx_parser *p, tl_ptx_space space, tl_str linkage, bool in_function);
// One parameter of a function, behind ".param" or ".reg".
tl_ptx_symbol *tl_ptx_parse_parameter(ptx_parser *p, tl_ptx_space space);
tl_ptx_space tl_ptx_space_of(tl_str word);

// ---- parse_statement.c
bool tl_ptx_parse_body(ptx_parser *p, tl_ptx_function *function);
// ---- parse_operand.c
bool tl_ptx_parse_operand(ptx_parser *p, tl_ptx_operand *out);

#endif
