// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predicated loads, stores and reductions in global memory.
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"
#include "llvm_backend/jit/host_libcalls.h"

// Bytes and number of the elements of an access. 8-bit elements travel in 16-bit registers (device_ops.def).
typedef struct access_shape {
  uint32_t bytes, count, register_bytes;
} access_shape;

static access_shape shape_of(const tl_emu_site *site) {
  uint32_t bytes = (uint32_t)site->binding->param / 16, count = (uint32_t)site->binding->param % 16;
  return (access_shape){bytes, count, bytes < 2 ? 2 : bytes};
}

static void sanitize_alignment(const void *pointer, uint32_t bytes, const tl_emu_site *site) {
  if ((uintptr_t)pointer % bytes) tl_emu_fail("%s: the address is no multiple of %u", site->op, bytes);
}

static uint8_t *pointer_of(const void *args) {
  uint8_t *pointer;
  memcpy(&pointer, args, sizeof pointer);
  return pointer;
}

void tl_emu_op_load_pred(void *result, const void *args, const tl_emu_site *site) {
  access_shape shape = shape_of(site);
  memset(result, 0, (size_t)shape.register_bytes * shape.count);
  if (!(((const uint8_t *)args)[sizeof(void *)] & 1)) return;
  const uint8_t *pointer = pointer_of(args);
  uint32_t bytes = shape.bytes * shape.count;
  if (!tl_emu_touch(pointer, bytes, bytes, TL_EMU_READ, site)) {
    memset(result, 0xff, (size_t)shape.register_bytes * shape.count);
    return;
  }
  sanitize_alignment(pointer, bytes, site);
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  memcpy(result, pointer, (size_t)shape.bytes * shape.count);  // a byte: little-endian, the rest is 0
  tl_emu_access_end();
}

void tl_emu_op_store_pred(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  access_shape shape = shape_of(site);
  const uint8_t *values = (const uint8_t *)args + sizeof(void *);
  if (!(values[(size_t)shape.register_bytes * shape.count] & 1)) return;
  uint8_t *pointer = pointer_of(args);
  uint32_t bytes = shape.bytes * shape.count;
  if (!tl_emu_touch(pointer, bytes, bytes, TL_EMU_WRITE, site)) return;
  sanitize_alignment(pointer, bytes, site);
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  memcpy(pointer, values, (size_t)shape.bytes * shape.count);
  tl_emu_access_end();
}

static uint32_t add_word(uint32_t memory, uint32_t value, tl_emu_red_type type) {
  if (type == TL_EMU_RED_F16X2 || type == TL_EMU_RED_BF16X2) {
    uint32_t sum = 0;
    for (int shift = 0; shift < 32; shift += 16) {
      uint16_t a = (uint16_t)(memory >> shift), b = (uint16_t)(value >> shift);
      uint16_t c = type == TL_EMU_RED_F16X2 ? tl_host_f32_to_f16(tl_host_f16_to_f32(a) + tl_host_f16_to_f32(b))
                                            : tl_host_f32_to_bf16(tl_host_bf16_to_f32(a) + tl_host_bf16_to_f32(b));
      sum |= (uint32_t)c << shift;
    }
    return sum;
  }
  float a, b;
  memcpy(&a, &memory, 4);
  memcpy(&b, &value, 4);
  a += b;
  memcpy(&memory, &a, 4);
  return memory;
}

void tl_emu_op_red_pred(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  enum { MAX_WORDS = 15 };
  uint32_t count = (uint32_t)site->binding->param & MAX_WORDS;
  tl_emu_red_type type = (tl_emu_red_type)((uint32_t)site->binding->param - count);
  const uint8_t *values = (const uint8_t *)args + sizeof(void *);
  if (!(values[4 * count] & 1)) return;
  uint8_t *pointer = pointer_of(args);
  if (!tl_emu_touch(pointer, 4 * count, 4 * count, TL_EMU_ATOMIC, site)) return;
  tl_emu_wrote_relaxed(pointer);
  sanitize_alignment(pointer, 4 * count, site);
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t value, *word = (uint32_t *)(void *)(pointer + 4 * i);
    memcpy(&value, values + 4 * i, 4);
    uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, add_word(old, value, type), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
  }
  tl_emu_access_end();
}
