// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accumulators of wgmma: the matrix, the registers of the threads, and what these hold while operations are in flight.
#include <string.h>

#include "emulator/ops/wgmma.h"
#include "llvm_backend/jit/host_libcalls.h"
#include "support/vec.h"

// ---- handles: quiet NaNs with 12 bits of id and 7 (pairs of f16: 6) of register

enum { F32_NAN = 0x7fc00000, F32_INDEX_BITS = 7, F16_NANS = 0x7e007e00, F16_INDEX_BITS = 6, F16_PAYLOAD_BITS = 9 };

uint32_t tl_emu_handle(tl_wgmma_register type, uint32_t id, uint32_t index) {
  if (type != TL_WGMMA_SUM_F16) return (uint32_t)F32_NAN | id << F32_INDEX_BITS | index;
  uint32_t payload = id << F16_INDEX_BITS | index;
  uint32_t low = payload & ((1u << F16_PAYLOAD_BITS) - 1), high = payload >> F16_PAYLOAD_BITS;
  return (uint32_t)F16_NANS | high << 16 | low;
}

uint32_t tl_emu_handle_id(tl_wgmma_register type, uint32_t word, uint32_t *out_index) {
  if (type != TL_WGMMA_SUM_F16) {
    if ((word & 0xfff80000u) != (uint32_t)F32_NAN) return 0;
    *out_index = word & ((1u << F32_INDEX_BITS) - 1);
    return word >> F32_INDEX_BITS & 0xfff;
  }
  if ((word & 0xfe00fe00u) != (uint32_t)F16_NANS) return 0;
  uint32_t payload = (word >> 16 & 0x1ff) << F16_PAYLOAD_BITS | (word & 0x1ff);
  *out_index = payload & ((1u << F16_INDEX_BITS) - 1);
  return payload >> F16_INDEX_BITS;
}

bool tl_emu_is_sequence(const uint32_t *registers, uint32_t count, uint32_t first) {
  uint32_t different = 0;
  for (uint32_t i = 0; i < count; i++) different |= registers[i] ^ (first + i);
  return !different;
}

// ---- the matrix

uint32_t tl_emu_sums_registers(const tl_emu_sums *sums) {
  return sums->type == TL_WGMMA_SUM_F16 ? sums->n / 4 : sums->n / 2;
}

tl_emu_sums *tl_emu_sums_create(tl_wgmma_register type, uint32_t n) {
  tl_emu_sums *sums = tl_xcalloc(1, sizeof *sums + (size_t)TL_WGMMA_M * n * sizeof sums->words[0]);
  sums->type = type;
  sums->n = n;
  return sums;
}

// Where elements 2 `pair` and the next of a thread's D are: two neighbours of a row. Pairs alternate between row
// 16 × warp + lane / 4 and the eighth row below; every two of them the columns go on by 8.
static uint32_t place_of(const tl_emu_sums *sums, uint32_t thread, uint32_t pair) {
  uint32_t lane = thread % 32, row = thread / 32 * 16 + lane / 4 + pair % 2 * 8;
  return row * sums->n + pair / 2 * 8 + lane % 4 * 2;
}

void tl_emu_sums_put(tl_emu_sums *sums, uint32_t thread, const uint32_t *registers) {
  for (uint32_t pair = 0; pair < sums->n / 4; pair++) {
    uint32_t *words = &sums->words[place_of(sums, thread, pair)];
    if (sums->type == TL_WGMMA_SUM_F16) {
      float values[2] = {tl_host_f16_to_f32((uint16_t)registers[pair]),
                         tl_host_f16_to_f32((uint16_t)(registers[pair] >> 16))};
      memcpy(words, values, sizeof values);
    } else {
      memcpy(words, registers + 2 * (size_t)pair, 2 * sizeof *words);
    }
  }
}

static uint32_t narrow_pair(const uint32_t *words) {
  float values[2];
  memcpy(values, words, sizeof values);
  return (uint32_t)tl_host_f32_to_f16(values[0]) | (uint32_t)tl_host_f32_to_f16(values[1]) << 16;
}

void tl_emu_sums_get(const tl_emu_sums *sums, uint32_t thread, uint32_t first, uint32_t count, uint32_t *registers) {
  if (sums->type == TL_WGMMA_SUM_F16) {
    for (uint32_t i = 0; i < count; i++) registers[i] = narrow_pair(&sums->words[place_of(sums, thread, first + i)]);
    return;
  }
  uint32_t i = 0;
  if (first % 2) registers[i++] = sums->words[place_of(sums, thread, first / 2) + 1];
  for (; i + 2 <= count; i += 2)
    memcpy(registers + i, &sums->words[place_of(sums, thread, (first + i) / 2)], 2 * sizeof *registers);
  if (i < count) registers[i] = sums->words[place_of(sums, thread, (first + i) / 2)];
}
