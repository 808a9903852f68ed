// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the operands of a device op one by one, for ops whose forms differ in the number of operands. They lie as in a
// C struct (tl_emu_op_fn).
#ifndef TL_EMULATOR_ARGS_H
#define TL_EMULATOR_ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tl_emu_args {
  const uint8_t *start;
  size_t offset;
} tl_emu_args;

static inline void tl_emu_args_take(tl_emu_args *args, void *out, size_t bytes) {
  args->offset = (args->offset + bytes - 1) / bytes * bytes;
  memcpy(out, args->start + args->offset, bytes);
  args->offset += bytes;
}

static inline void *tl_emu_args_pointer(tl_emu_args *args) {
  void *value;
  tl_emu_args_take(args, &value, sizeof value);
  return value;
}
static inline uint64_t tl_emu_args_i64(tl_emu_args *args) {
  uint64_t value;
  tl_emu_args_take(args, &value, sizeof value);
  return value;
}
static inline uint32_t tl_emu_args_i32(tl_emu_args *args) {
  uint32_t value;
  tl_emu_args_take(args, &value, sizeof value);
  return value;
}
static inline uint16_t tl_emu_args_i16(tl_emu_args *args) {
  uint16_t value;
  tl_emu_args_take(args, &value, sizeof value);
  return value;
}
static inline uint8_t tl_emu_args_bool(tl_emu_args *args) {
  uint8_t value;
  tl_emu_args_take(args, &value, sizeof value);
  return value & 1;
}

#endif
