// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that turn the YAML tree into the spec model.
#ifndef TL_FRONTEND_SPEC_INTERNAL_H
#define TL_FRONTEND_SPEC_INTERNAL_H

#include "frontend/expr/expr_internal.h"
#include "frontend/spec/schema.h"
#include "frontend/yaml/yaml_tree.h"

// A file that the spec includes, or the spec itself.
typedef struct tl_spec_file {
  tl_str id;            // the same id is the same file
  tl_macro_list *into;  // what its macros were added to
  bool is_open;         // being read: to include it again would never end
} tl_spec_file;

typedef struct tl_spec_reader {
  tl_arena *arena;
  tl_diags *diags;
  tl_sources *sources;
  const tl_spec_loader *loader;  // NULL: files
  tl_macro_list *file_macros;    // those of documents without `kernel`
  size_t errors_before;          // errors in `diags` before the spec was read
  TL_VEC(tl_spec_file) files;    // read so far
  size_t include_bytes;          // of all included files
  uint32_t num_open;             // included files that are being read
} tl_spec_reader;

// X, X[…], X.T and chains of them: what names a tile, a tensor or a part of one.
bool tl_spec_is_region(const tl_expr *expr);
// `sparse(A, meta)`, of whatever arguments.
bool tl_spec_is_sparse(const tl_expr *operand);

// Whether the node is of the kind; reports "`what` takes …" unless the node is already bad. An empty value is neither a
// list nor a mapping, and no scalar either: it is reported as missing.
bool tl_spec_want(tl_spec_reader *reader, const tl_yaml_node *node, tl_yaml_kind kind, tl_str what);
// A node without any value (`body:`).
bool tl_spec_is_empty(const tl_yaml_node *node);
// NULL when reported.
tl_expr *tl_spec_read_expr(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what);
// A key that declares a name: an identifier that is not reserved.
bool tl_spec_read_name(tl_spec_reader *reader, const tl_yaml_node *key, tl_str *out_name);
// "m, m_prev, l: f32[block_M]": the names that a key declares and their type. False when reported.
bool tl_spec_read_tile_names(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_tile_decl *out_type,
                             tl_str **out_names, tl_loc **out_locs, uint32_t *out_len);
// A mapping name: expression. Entries with errors are left out.
void tl_spec_read_named(tl_spec_reader *reader, const tl_yaml_node *node, tl_str what, tl_named_expr **out_items,
                        uint32_t *out_len);
// One of `words` (schema.def, the choices of an option) as the value of `key`; empty when reported.
tl_str tl_spec_read_choice(tl_spec_reader *reader, const tl_yaml_node *value, const char *key, const char *words);
// "`key` is part of the language but this version does not compile it yet".
void tl_spec_refuse_later(tl_spec_reader *reader, tl_loc loc, const char *key);
// Whether the key is a setting that is compiled later; reports it.
bool tl_spec_is_later_setting(tl_spec_reader *reader, const tl_yaml_node *key);
// Reports an unknown key of a section, or one that is compiled later. NULL when reported.
const tl_schema_key *tl_spec_validate_key(tl_spec_reader *reader, tl_schema_place place, const tl_yaml_node *key,
                                          const char *section);

// A section that kernels and chains share; the key is known.
void tl_spec_read_section(tl_spec_reader *reader, const tl_yaml_entry *entry, tl_kernel_spec *kernel);
// chain.c: a document `chain: name`. False when it has no usable name.
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
// `key: value` with the value quoted where plain YAML would read it otherwise; ends the line.
void tl_spec_print_expr(const char *key, const tl_expr *value, int indent, tl_strbuf *out);
void tl_spec_print_value(tl_str text, tl_strbuf *out);
void tl_spec_print_indent(int indent, tl_strbuf *out);
void tl_spec_print_list(tl_expr *const *items, uint32_t len, tl_strbuf *out);

#endif
