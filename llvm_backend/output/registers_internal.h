// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX text as the files of registers know it.
#ifndef TL_LLVM_BACKEND_REGISTERS_INTERNAL_H
#define TL_LLVM_BACKEND_REGISTERS_INTERNAL_H

#include "support/strbuf.h"
#include "support/vec.h"

enum { TL_NUM_REGISTER_CLASSES = 8 };

typedef struct tl_ptx_operand {
  int32_t class, number;
} tl_ptx_operand;

typedef struct tl_ptx_instruction {
  size_t defs, uses, end;  // positions in `operands`: what it defines, then what it reads
  bool keeps;              // what it defines may keep its content
  bool is_pure;            // arithmetic, or a load from shared memory
  bool reads_shared;       // such a load
  bool orders_shared;      // no load from shared memory may move over it
} tl_ptx_instruction;

typedef struct tl_ptx_block {
  tl_str label, target;  // empty: none
  size_t from, to;       // instructions
  bool falls;            // into the next one
} tl_ptx_block;

typedef struct tl_liveness {
  TL_VEC(tl_ptx_operand) operands;
  TL_VEC(tl_ptx_instruction) instructions;
  TL_VEC(tl_ptx_block) blocks;
  int32_t counts[TL_NUM_REGISTER_CLASSES];  // numbers of a class
  int32_t first[TL_NUM_REGISTER_CLASSES];   // where they begin in a set
  size_t words;                             // of a set
  uint64_t *live_in, *is_free;              // Owned. is_free: stays in the parameters' memory
  bool unknown, calls;
} tl_liveness;

// The bit of a register in a set.
static inline size_t tl_ptx_register_bit(const tl_liveness *live, const tl_ptx_operand *of) {
  return (size_t)live->first[of->class] + (size_t)of->number;
}

// registers_order.c: puts pure instructions of each block where what they define is needed first, so that little lives
// at once: an order that ptxas finds where it has few registers.
void tl_ptx_order_by_need(tl_liveness *live);

#endif
