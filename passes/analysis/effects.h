// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory effects of ops: which buffers an op reads and writes, by the buffer that owns the memory.
#ifndef TL_PASSES_EFFECTS_H
#define TL_PASSES_EFFECTS_H

#include "ir/ir.h"
#include "support/vec.h"

typedef enum tl_effect_kind { TL_EFFECT_READ, TL_EFFECT_WRITE, TL_EFFECT_ATOMIC } tl_effect_kind;

typedef struct tl_effect {
  tl_effect_kind kind;
  bool is_async;     // of an async copy: it reads and writes until it is waited for
  tl_op *op;         // the access itself, maybe deep inside the op that was asked about
  tl_value *buffer;  // as `op` names it
  tl_value *root;    // the alloc or tensor that owns the memory
  tl_value *slot;    // the ring slot on the way to the root, or NULL
  tl_value *stage;   // the stage index on the way to the root, or NULL
} tl_effect;

typedef TL_VEC(tl_effect) tl_effect_list;

// The value of the alloc or tensor behind views, ring tiles and stage tiles. `out_slot` and `out_stage` may be NULL.
tl_value *tl_effect_root(tl_value *buffer, tl_value **out_slot, tl_value **out_stage);

// Whether the op reads or writes anything: memory, other threads' registers, what the kernel prints.
bool tl_op_touches_memory(const tl_op *op);
// Appends the effects of `op` alone, without those of its regions. Tile values and block-private buffers have none.
void tl_effects_of(tl_op *op, tl_effect_list *out);
// Appends the effects of `op` and of everything inside, in program order.
void tl_effects_inside(tl_op *op, tl_effect_list *out);
// Whether `op` or something inside reads (writes, atomics included) `root`.
bool tl_effects_read(tl_op *op, const tl_value *root);
bool tl_effects_write(tl_op *op, const tl_value *root);

#endif
