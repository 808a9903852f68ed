// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Depth-first search: the target of an edge to a block that is still on the search's path is a header. Each cycle has
// such an edge.
#include "emulator/retarget/retarget_cfg.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/arena.h"

typedef enum visit { UNSEEN, ON_PATH, DONE } visit;

typedef struct block_map {
  LLVMBasicBlockRef *keys;  // Owned. Open addressing; NULL: empty.
  visit *visits;            // Owned.
  bool *is_header;          // Owned.
  size_t mask;
} block_map;

static size_t slot_of(const block_map *map, LLVMBasicBlockRef block) {
  uint64_t hash = ((uint64_t)(uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u;
  size_t slot = (size_t)(hash >> 20) & map->mask;
  while (map->keys[slot] && map->keys[slot] != block) slot = (slot + 1) & map->mask;
  map->keys[slot] = block;
  return slot;
}

typedef struct frame {
  LLVMValueRef terminator;
  unsigned next, count;  // successors
  size_t slot;
} frame;

static frame open_block(block_map *map, LLVMBasicBlockRef block) {
  LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
  size_t slot = slot_of(map, block);
  map->visits[slot] = ON_PATH;
  return (frame){terminator, 0, LLVMGetNumSuccessors(terminator), slot};
}

static void search(block_map *map, LLVMBasicBlockRef entry, frame *stack) {
  size_t depth = 0;
  stack[depth++] = open_block(map, entry);
  while (depth) {
    frame *top = &stack[depth - 1];
    if (top->next == top->count) {
      map->visits[top->slot] = DONE;
      depth--;
      continue;
    }
    LLVMBasicBlockRef block = LLVMGetSuccessor(top->terminator, top->next++);
    size_t slot = slot_of(map, block);
    if (map->visits[slot] == UNSEEN)
      stack[depth++] = open_block(map, block);
    else if (map->visits[slot] == ON_PATH)
      map->is_header[slot] = true;
  }
}

LLVMBasicBlockRef *tl_emu_find_loop_headers(LLVMValueRef function, size_t *out_count) {
  unsigned count = LLVMCountBasicBlocks(function);
  size_t slots = 16;
  while (slots < 2 * (size_t)count) slots *= 2;
  block_map map = {tl_xcalloc(slots, sizeof(LLVMBasicBlockRef)), tl_xcalloc(slots, sizeof(visit)),
                   tl_xcalloc(slots, sizeof(bool)), slots - 1};
  frame *stack = tl_xcalloc((size_t)count + 1, sizeof(frame));
  search(&map, LLVMGetEntryBasicBlock(function), stack);
  LLVMBasicBlockRef *headers = tl_xcalloc((size_t)count + 1, sizeof(LLVMBasicBlockRef));
  *out_count = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    if (map.is_header[slot_of(&map, block)]) headers[(*out_count)++] = block;
  free(stack);
  free(map.keys);
  free(map.visits);
  free(map.is_header);
  return headers;
}
