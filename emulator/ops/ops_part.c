// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relaxed atomics on some bytes of an aligned word. The hardware accesses the word; the access is about the bytes of
// the mask, and only those are checked: other threads may access their neighbours as they like.
#include "emulator/machine/args.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

enum { WORD_BYTES = 4 };

// The bytes of the word that the mask is about, as address and number.
static uint8_t *part_of(uint8_t *word, uint32_t mask, uint32_t *out_bytes) {
  uint32_t first = mask ? (uint32_t)__builtin_ctz(mask) / 8 : 0, last = mask ? 31 - (uint32_t)__builtin_clz(mask) : 31;
  *out_bytes = last / 8 + 1 - first;
  return word + first;
}

static void sanitize_word(const uint8_t *word, const tl_emu_site *site) {
  if ((uintptr_t)word % WORD_BYTES) tl_emu_fail("%s: the address is no multiple of %d", site->op, WORD_BYTES);
}

void tl_emu_op_load_part(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  uint8_t *word = tl_emu_args_pointer(&args);
  uint32_t bytes, value = UINT32_MAX;
  uint8_t *part = part_of(word, tl_emu_args_i32(&args), &bytes);
  sanitize_word(word, site);
  if (tl_emu_touch(part, bytes, bytes, TL_EMU_ATOMIC_READ, site)) {
    tl_emu_access_begin(site, tl_emu_self->current->thread);
    value = __atomic_load_n((uint32_t *)(void *)word, __ATOMIC_SEQ_CST);
    tl_emu_access_end();
    tl_emu_observed(part, false);
  }
  memcpy(result, &value, sizeof value);
}

void tl_emu_op_cas_part(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  uint8_t *word = tl_emu_args_pointer(&args);
  uint32_t expected = tl_emu_args_i32(&args), value = tl_emu_args_i32(&args), mask = tl_emu_args_i32(&args), bytes;
  uint8_t *part = part_of(word, mask, &bytes);
  sanitize_word(word, site);
  // Where nothing is accessed the exchange succeeds, so that its loop ends.
  if (tl_emu_touch(part, bytes, bytes, TL_EMU_ATOMIC, site)) {
    tl_emu_wrote_relaxed(part);
    tl_emu_access_begin(site, tl_emu_self->current->thread);
    __atomic_compare_exchange_n((uint32_t *)(void *)word, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    tl_emu_access_end();
    tl_emu_observed(part, false);
  }
  memcpy(result, &expected, sizeof expected);
}
