// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// YAML text → a tree of located nodes, with limits of our own and without anchors, aliases, tags and merge keys.
#ifndef TL_FRONTEND_YAML_TREE_H
#define TL_FRONTEND_YAML_TREE_H

#include "frontend/expr/expr.h"

enum { TL_YAML_MAX_NODES = 100000, TL_YAML_MAX_DEPTH = 64, TL_YAML_MAX_SCALAR_BYTES = 1 << 20 };

typedef enum tl_yaml_kind { TL_YAML_SCALAR, TL_YAML_SEQUENCE, TL_YAML_MAPPING } tl_yaml_kind;

typedef struct tl_yaml_node tl_yaml_node;

typedef struct tl_yaml_entry {
  tl_yaml_node *key;  // a scalar
  tl_yaml_node *value;
} tl_yaml_entry;

struct tl_yaml_node {
  tl_yaml_kind kind;
  bool bad;     // something about it was reported: what reads the tree stays silent about it
  bool flow;    // {…} or […]
  bool quoted;  // a scalar in quotes or a block scalar
  tl_loc loc;
  tl_located_text text;  // SCALAR. Exact text; `map` leads every byte back to the file.
  tl_yaml_node **items;  // SEQUENCE
  uint32_t num_items;
  tl_yaml_entry *entries;  // MAPPING, in order; no key stands twice
  uint32_t num_entries;
};

typedef struct tl_yaml_tree {
  tl_yaml_node **documents;  // complete ones; a document with a syntax error and what follows it are missing
  uint32_t num_documents;
} tl_yaml_tree;

// Everything is allocated in `arena`. Reports problems in `diags`. Never fails otherwise: what could be read is in
// `out`.
void tl_yaml_parse(tl_arena *arena, tl_diags *diags, const tl_sources *sources, uint32_t source, tl_yaml_tree *out);

// The value of a mapping's key, or NULL.
const tl_yaml_node *tl_yaml_get(const tl_yaml_node *mapping, const char *key);

#endif
