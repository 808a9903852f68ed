// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the sources of ir/: linking ops and uses, and a map with values as keys.
#ifndef TL_IR_OP_INTERNAL_H
#define TL_IR_OP_INTERNAL_H

#include "ir/ir.h"

// Makes an unlinked use a use of `value` (or of nothing).
void tl_use_link(tl_use *use, tl_value *value);
// Puts an unlinked op into a block, before `before` or at the end.
void tl_op_link(tl_op *op, tl_block *block, tl_op *before);

// Whether the text of the op lists its operands without the names of groups: when each group is one value, or there is
// but one group.
bool tl_op_prints_bare(tl_opcode code);

// Pointers to numbers. Never iterated, so its order cannot be seen.
typedef struct tl_ptr_map {
  struct tl_ptr_map_entry {
    const void *key;
    uint64_t value;
  } * entries;  // Owned. Open addressing; capacity is 0 or a power of two.
  size_t len, capacity;
} tl_ptr_map;

void tl_ptr_map_set(tl_ptr_map *map, const void *key, uint64_t value);
// False when absent.
bool tl_ptr_map_get(const tl_ptr_map *map, const void *key, uint64_t *out);
void tl_ptr_map_fini(tl_ptr_map *map);

// Hash of an address.
static inline size_t tl_ptr_hash(const void *pointer) {
  uint64_t bits = (uint64_t)(uintptr_t)pointer >> 3;
  return (size_t)((bits * 0x9E3779B97F4A7C15u) >> 20);
}

#endif
