// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that read YAML; not for use outside them.
#ifndef TL_FRONTEND_YAML_INTERNAL_H
#define TL_FRONTEND_YAML_INTERNAL_H

#include <yaml.h>

#include "frontend/yaml/yaml_tree.h"

// Where libyaml's character positions are in the file.
typedef struct tl_yaml_positions {
  tl_str text;         // the whole file
  uint32_t bom_bytes;  // skipped before libyaml sees the text
  bool ascii;
  uint32_t *samples;  // Owned by the arena. Byte offset of every 64th character; NULL when ascii
  uint32_t num_samples;
} tl_yaml_positions;

// Checks UTF-8, control characters, directives and the size of the file, and prepares positions. False when reported.
bool tl_yaml_validate_text(tl_arena *arena, tl_diags *diags, tl_str text, uint32_t source, tl_yaml_positions *out);
// Byte offset in the file of the character that libyaml counts as `index`.
uint32_t tl_yaml_offset(const tl_yaml_positions *positions, size_t index);

// What libyaml is given to read: the text after the byte order mark. `doc` is free text to the end of its line, so
// colons and opening characters that mean something to YAML there are masked, byte for byte, in a copy.
tl_str tl_yaml_mask_doc(tl_arena *arena, const tl_yaml_positions *positions);

// The byte map of a scalar whose cooked text is `value` and whose source (quotes and block header included) is [start,
// end).
const uint32_t *tl_yaml_map_scalar(tl_arena *arena, tl_str file, uint32_t start, uint32_t end, tl_str value,
                                   yaml_scalar_style_t style);

// Reports the syntax error that stopped libyaml.
void tl_yaml_report_error(tl_diags *diags, const yaml_parser_t *parser, const tl_yaml_positions *positions,
                          uint32_t source);
// Open minus closed brackets of a plain scalar.
int tl_yaml_bracket_balance(const tl_yaml_node *node);
// Looks for values of a finished flow collection that commas or missing spaces cut up; reports one and marks the node
// bad.
void tl_yaml_validate_flow(tl_diags *diags, tl_yaml_node *node);

#endif
