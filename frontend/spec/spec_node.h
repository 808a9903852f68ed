// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is read of single nodes, for all files that turn the YAML tree into the spec model; lies below them.
#ifndef TL_FRONTEND_SPEC_NODE_H
#define TL_FRONTEND_SPEC_NODE_H

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

// "a list (`- item`)": what a node of the kind is called in messages.
const char *tl_spec_kind_text(tl_yaml_kind kind);
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

#endif
