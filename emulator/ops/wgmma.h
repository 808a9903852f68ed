// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What wgmma.mma_async computes: operands out of shared memory and registers, and the product. The life of the
// operations is in ops_wgmma.c. Private to the emulator.
#ifndef TL_EMULATOR_WGMMA_H
#define TL_EMULATOR_WGMMA_H

#include <stddef.h>

#include "llvm_backend/device/wgmma.h"

enum { TL_EMU_WGMMA_MAX_PIECES = 2 * TL_WGMMA_MAX_N };

// A matrix descriptor. PTX ISA, wgmma, "Matrix Descriptor Format".
typedef struct tl_emu_descriptor {
  uint32_t start;        // offset in the block's part of the shared window, 18 bits
  uint32_t leading;      // leading dimension byte offset
  uint32_t stride;       // stride dimension byte offset
  uint32_t base_offset;  // 0 to 7
  uint32_t span;         // bytes that the swizzle permutes: 128, 64, 32; 16: no swizzle
  uint64_t reserved;     // bits that must be zero
} tl_emu_descriptor;

tl_emu_descriptor tl_emu_descriptor_decode(uint64_t bits);

// Writes the offsets (in the block's part of the window) of the 16-byte pieces that an operand of `extent` rows of A or
// columns of B consists of: K-major two for each row, the lower half of K first; M- or N-major 16 (one for each k) for
// every eight rows. Returns how many.
uint32_t tl_emu_descriptor_pieces(const tl_emu_descriptor *descriptor, uint32_t extent, bool transposed,
                                  uint32_t *out_offsets);
// What is wrong with the descriptor beyond bounds, or NULL. Static text.
const char *tl_emu_descriptor_problem(const tl_emu_descriptor *descriptor, uint32_t extent, bool transposed);

// An operand as rows of 32 bytes along K, whatever way it lay.
typedef uint8_t tl_emu_wgmma_rows[TL_WGMMA_K_BYTES];

// `pieces`: the contents, 16 bytes each, in the order of tl_emu_descriptor_pieces.
void tl_emu_wgmma_arrange(const uint8_t *pieces, uint32_t extent, bool transposed, tl_emu_wgmma_rows *out);

// sums = A × B (+ sums when `accumulate`); `sums`: 64 rows of n words, the bits of f32 (also where D is f16) or of s32.
// Floats: the products are exact, the sum is taken in order of k in f32, each step rounded to nearest even; f16 sums
// are rounded once at the end. The hardware adds in another order and truncates. Integers are exact, and wrap unless
// the form saturates.
void tl_emu_wgmma_multiply(const tl_wgmma_form *form, tl_emu_wgmma_rows *a, tl_emu_wgmma_rows *b, bool accumulate,
                           uint32_t *sums);

// ---- D of a chain of operations in flight (wgmma_sums.c)
typedef struct tl_emu_sums tl_emu_sums;
struct tl_emu_sums {
  tl_emu_sums *next;
  tl_wgmma_register type;
  uint32_t n;
  uint32_t id;         // of the last operation of the chain, as its handles say it
  uint32_t in_flight;  // operations of the chain that have not landed
  uint32_t left;       // registers that were not handed out yet
  uint32_t words[];    // as tl_emu_wgmma_multiply has them
};

enum { TL_EMU_WARPGROUP = 128, TL_EMU_HANDLE_IDS = 4095 };

// What register `index` of D holds between the operation `id` (1 to TL_EMU_HANDLE_IDS - 1) and its wait: a NaN, or a
// huge integer. Those of one thread count up by one.
uint32_t tl_emu_handle(tl_wgmma_register type, uint32_t id, uint32_t index);
// The id of what may be a handle of that type, and its index; 0 when it is none.
uint32_t tl_emu_handle_id(tl_wgmma_register type, uint32_t word, uint32_t *out_index);
// Whether the registers of D are first, first + 1, …
bool tl_emu_is_sequence(const uint32_t *registers, uint32_t count, uint32_t first);
uint32_t tl_emu_sums_registers(const tl_emu_sums *sums);

tl_emu_sums *tl_emu_sums_create(tl_wgmma_register type, uint32_t n);
// Between the registers of D of `thread` of the warpgroup, as values, and the matrix. PTX ISA, wgmma, "Register
// Fragments".
void tl_emu_sums_put(tl_emu_sums *sums, uint32_t thread, const uint32_t *registers);
void tl_emu_sums_get(const tl_emu_sums *sums, uint32_t thread, uint32_t first, uint32_t count, uint32_t *registers);

#endif
