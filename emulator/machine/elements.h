// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bulk transfers do to the elements they carry: copy, fill, reduce where they arrive.
#ifndef TL_EMULATOR_ELEMENTS_H
#define TL_EMULATOR_ELEMENTS_H

#include <stddef.h>

#include "support/tensormap.h"

typedef enum tl_emu_reduce_op {
  TL_EMU_REDUCE_ADD,
  TL_EMU_REDUCE_MIN,
  TL_EMU_REDUCE_MAX,
  TL_EMU_REDUCE_INC,
  TL_EMU_REDUCE_DEC,
  TL_EMU_REDUCE_AND,
  TL_EMU_REDUCE_OR,
  TL_EMU_REDUCE_XOR,
  TL_EMU_REDUCE_NUM_OPS
} tl_emu_reduce_op;

// "add". Static.
const char *tl_emu_reduce_op_name(tl_emu_reduce_op op);
// Whether the hardware has it for the type (PTX ISA, cp.reduce.async.bulk.tensor).
bool tl_emu_reduce_exists(tl_emu_reduce_op op, tl_tensormap_type type);
// to[i] = to[i] op from[i] for the elements of `bytes`, each one atomically. `to` is aligned to its elements.
void tl_emu_elements_reduce(tl_emu_reduce_op op, tl_tensormap_type type, void *to, const void *from, size_t bytes);
// Copies as tensor loads do: tf32 is rounded, all other types (also those with .ftz) keep their bits (measured).
void tl_emu_elements_load(tl_tensormap_type type, void *to, const void *from, size_t bytes);
// What tensor loads put where there is no tensor: zero, or the NaN whose 16-bit parts are 0x7ff7 (measured).
void tl_emu_elements_fill(tl_tensormap_fill fill, void *to, size_t bytes);

#endif
