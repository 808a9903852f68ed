// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sections of the spec, from file to file, without a circle: spec.c calls spec_chain.c, both call spec_section.c,
// which calls the readers of single sections, and all read nodes by spec_node.h. Two recursions stay inside of one file
// each: statements that hold statements (stmt.c, stmt_print.c), and files of macros that include such files
// (include.c).
#ifndef TL_FRONTEND_SPEC_INTERNAL_H
#define TL_FRONTEND_SPEC_INTERNAL_H

#include "frontend/spec/spec_node.h"

// X, X[…], X.T and chains of them: what names a tile, a tensor or a part of one.
bool tl_spec_is_region(const tl_expr *expr);
// `sparse(A, meta)`, of whatever arguments.
bool tl_spec_is_sparse(const tl_expr *operand);

// A section that kernels and chains share; the key is known.
void tl_spec_read_section(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_kernel_spec *kernel);
// A document `chain: name`. False when it has no usable name.
bool tl_spec_read_chain(tl_spec_reader *reader, const tl_yaml_node *document, tl_kernel_spec *kernel);
// Gives the steps of all chains their kernels; reports unknown ones and chains that run themselves.
void tl_spec_resolve_chains(tl_spec_reader *reader, tl_spec *spec);
void tl_spec_print_chain(const tl_chain_spec *chain, tl_strbuf *out);

void tl_spec_read_body(tl_spec_reader *reader, const tl_yaml_node *node, tl_stmt_list *out);
void tl_spec_read_check(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_check *out);
// The names in `check` against the arguments; to be called when the document had no errors.
void tl_spec_validate_names(tl_spec_reader *reader, const tl_kernel_spec *kernel);
void tl_spec_read_bench(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_bench *out);
// The section `macros`: adds to `out`, a kernel's or the file's list.
void tl_spec_read_macros(tl_spec_reader *reader, const tl_yaml_node *node, bool is_included, tl_macro_list *out);
// A document without `kernel` that holds macros for the file.
bool tl_spec_is_macro_document(const tl_yaml_node *document);
void tl_spec_read_macro_document(tl_spec_reader *reader, const tl_yaml_node *document, bool is_included,
                                 tl_macro_list *out);
// The section `include`: adds the macros of the files to `out`.
void tl_spec_read_include(tl_spec_reader *reader, const tl_yaml_node *node, tl_macro_list *out);
// Notes the spec's own file, so that an include that comes back to it is seen.
void tl_spec_open_file(tl_spec_reader *reader, uint32_t source);
// Once all documents are read: which macro each `use` means, recursion, macros that nothing uses.
void tl_macros_resolve(tl_spec_reader *reader, tl_spec *spec);
// Then, in a spec without errors: gives every `use` of the kernels' bodies the statements that it stands for.
void tl_macros_expand(tl_spec_reader *reader, tl_spec *spec);
void tl_spec_read_tune(tl_spec_reader *reader, const tl_yaml_node *node, tl_loc key_loc, tl_tune *out);
// The names in `tune` against the params; to be called when the document had no errors.
void tl_spec_validate_tune(tl_spec_reader *reader, const tl_kernel_spec *kernel);

// Printing, at an indentation of `indent` spaces.
void tl_spec_print_macros(const tl_macro_list *macros, tl_strbuf *out);
void tl_spec_print_body(const tl_stmt_list *body, int indent, tl_strbuf *out);
void tl_spec_print_check(const tl_check *check, tl_strbuf *out);
void tl_spec_print_bench(const tl_bench *bench, tl_strbuf *out);
void tl_spec_print_tune(const tl_tune *tune, tl_strbuf *out);

#endif
