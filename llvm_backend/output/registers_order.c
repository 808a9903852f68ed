// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions in the order in which they are needed. LLVM writes the loads of a tile, then what is computed from each
// of its elements, then their sum; ptxas takes one element after the other where it has no registers for all of them.
// It is an order to count registers by, no code.
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/output/registers_internal.h"

enum { MAX_DEPTH = 512 };  // of instructions that wait for one another
#define SEVERAL UINT32_MAX

typedef struct ordering {
  tl_liveness *live;
  size_t from, to;            // of the block
  uint32_t *def;              // Owned. Per register: the instruction that alone defines it, from 1 on; 0: none
  bool *is_done;              // Owned. Per instruction
  tl_ptx_instruction *order;  // Owned. `count` of the block's instructions
  size_t count;
  bool failed;
} ordering;

static uint32_t *def_of(const ordering *self, size_t operand) {
  return &self->def[tl_ptx_register_bit(self->live, &self->live->operands.items[operand])];
}

static void find_defs(ordering *self) {
  for (size_t i = 0; i < self->live->instructions.len; i++) {
    const tl_ptx_instruction *at = &self->live->instructions.items[i];
    for (size_t o = at->defs; o < at->uses; o++) {
      uint32_t *def = def_of(self, o);
      *def = *def == 0 ? (uint32_t)i + 1 : SEVERAL;
    }
  }
}

// Whether the instruction may run later in its block: nothing that it reads or defines gets another value.
static bool may_wait(const ordering *self, const tl_ptx_instruction *at) {
  if (!at->is_pure || at->keeps || at->defs == at->uses) return false;
  for (size_t o = at->defs; o < at->end; o++) {
    if (*def_of(self, o) == SEVERAL) return false;
  }
  return true;
}

// The instruction behind those of the block that it needs and that wait.
static void put(ordering *self, size_t i, int depth) {
  if (self->is_done[i] || self->failed) return;
  self->failed = depth == MAX_DEPTH;
  self->is_done[i] = true;
  const tl_ptx_instruction *at = &self->live->instructions.items[i];
  for (size_t o = at->uses; o < at->end; o++) {
    uint32_t def = *def_of(self, o);
    if (def != SEVERAL && def > self->from && def <= i) put(self, def - 1, depth + 1);
  }
  self->order[self->count++] = *at;
}

static void order_block(ordering *self) {
  tl_ptx_instruction *items = self->live->instructions.items;
  size_t waiting = self->from;  // loads from shared memory before this one are done
  self->count = 0;
  self->failed = false;
  for (size_t i = self->from; i < self->to; i++) {
    for (; items[i].orders_shared && waiting < i; waiting++) {
      if (items[waiting].reads_shared) put(self, waiting, 0);
    }
    if (!may_wait(self, &items[i])) put(self, i, 0);
  }
  for (size_t i = self->from; i < self->to; i++) put(self, i, 0);
  if (!self->failed) memcpy(items + self->from, self->order, self->count * sizeof *items);
}

void tl_ptx_order_by_need(tl_liveness *live) {
  ordering self = {.live = live};
  size_t all = live->instructions.len;
  self.def = tl_xcalloc(live->words * 64, sizeof *self.def);
  self.is_done = tl_xcalloc(all + 1, sizeof *self.is_done);
  self.order = tl_xcalloc(all + 1, sizeof *self.order);
  find_defs(&self);
  for (size_t b = 0; b < live->blocks.len; b++) {
    self.from = live->blocks.items[b].from;
    self.to = live->blocks.items[b].to;
    order_block(&self);
  }
  free(self.def);
  free(self.is_done);
  free(self.order);
}
