// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tile IR as text, and its verifier. Printing and parsing lose nothing; docs/ir.md has the grammar.
#ifndef TL_IR_TEXT_H
#define TL_IR_TEXT_H

#include "ir/ir.h"
#include "support/diag.h"

void tl_module_print(const tl_module *module, tl_strbuf *out);
// The same with the place of every op, as "loc(source:offset+length)" at its end.
void tl_module_print_with_locs(const tl_module *module, tl_strbuf *out);
// One op with its regions and a newline; values are named as in the print of the whole module.
void tl_op_print(const tl_op *op, tl_strbuf *out);
void tl_type_print(const tl_type *type, tl_strbuf *out);
// The reference of attributes and ops as Markdown; docs/ir.md contains it.
void tl_ir_print_reference(tl_strbuf *out);
// Parses text that tl_module_print wrote (or a person). On errors reports them in `diags` and returns NULL.
tl_module *tl_module_parse(const tl_sources *sources, uint32_t source, tl_diags *diags);

// One finding of the verifier.
typedef struct tl_verify_error {
  const tl_op *op;
  const char *text;  // Owned by `arena` of the result.
} tl_verify_error;
typedef struct tl_verify_result {
  tl_arena arena;
  TL_VEC(tl_verify_error) errors;
} tl_verify_result;
void tl_verify_result_fini(tl_verify_result *result);
// Checks structure, types, dominance, attributes, levels, layouts and the ring protocol. True when nothing was found.
bool tl_module_verify(const tl_module *module, tl_verify_result *out_result);
// Prints the module with each error under its op as "// error: …".
void tl_module_print_with_errors(const tl_module *module, const tl_verify_result *result, tl_strbuf *out);

#endif
