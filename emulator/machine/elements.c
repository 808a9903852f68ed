// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/machine/elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_backend/jit/host_libcalls.h"

static const char *const names[TL_EMU_REDUCE_NUM_OPS] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

const char *tl_emu_reduce_op_name(tl_emu_reduce_op op) {
  return names[op];
}

bool tl_emu_reduce_exists(tl_emu_reduce_op op, tl_tensormap_type type) {
  bool is_32 = type == TL_TENSORMAP_U32 || type == TL_TENSORMAP_S32;
  bool is_64 = type == TL_TENSORMAP_U64 || type == TL_TENSORMAP_S64;
  bool is_16 = type == TL_TENSORMAP_F16 || type == TL_TENSORMAP_BF16;
  switch (op) {
    case TL_EMU_REDUCE_ADD:
      return is_32 || is_64 || is_16 || type == TL_TENSORMAP_F32 || type == TL_TENSORMAP_F64;
    case TL_EMU_REDUCE_MIN:
    case TL_EMU_REDUCE_MAX:
      return is_32 || is_64 || is_16;
    case TL_EMU_REDUCE_INC:
    case TL_EMU_REDUCE_DEC:
      return type == TL_TENSORMAP_U32;
    case TL_EMU_REDUCE_AND:
    case TL_EMU_REDUCE_OR:
    case TL_EMU_REDUCE_XOR:
      return is_32 || is_64;
    case TL_EMU_REDUCE_NUM_OPS:
      break;
  }
  return false;
}

static uint64_t reduce_unsigned(tl_emu_reduce_op op, uint64_t a, uint64_t b) {
  switch (op) {
    case TL_EMU_REDUCE_ADD:
      return a + b;
    case TL_EMU_REDUCE_MIN:
      return a < b ? a : b;
    case TL_EMU_REDUCE_MAX:
      return a > b ? a : b;
    case TL_EMU_REDUCE_INC:  // PTX ISA, red: wraps to 0 above b
      return a >= b ? 0 : a + 1;
    case TL_EMU_REDUCE_DEC:
      return a == 0 || a > b ? b : a - 1;
    case TL_EMU_REDUCE_AND:
      return a & b;
    case TL_EMU_REDUCE_OR:
      return a | b;
    case TL_EMU_REDUCE_XOR:
      return a ^ b;
    case TL_EMU_REDUCE_NUM_OPS:
      break;
  }
  return a;
}

// Signs matter for min and max only.
static uint64_t reduce_signed(tl_emu_reduce_op op, int64_t a, int64_t b) {
  if (op == TL_EMU_REDUCE_MIN) return (uint64_t)(a < b ? a : b);
  if (op == TL_EMU_REDUCE_MAX) return (uint64_t)(a > b ? a : b);
  return reduce_unsigned(op, (uint64_t)a, (uint64_t)b);
}

// The sum of two halves is exact in double, that of two floats is rounded once by float arithmetic.
static double reduce_double(tl_emu_reduce_op op, double a, double b) {
  if (op == TL_EMU_REDUCE_ADD) return a + b;
  if (isnan(a) || isnan(b)) return isnan(a) ? b : a;  // the number, if there is one
  if (a == b) return (op == TL_EMU_REDUCE_MIN) == (signbit(a) != 0) ? a : b;
  return (op == TL_EMU_REDUCE_MIN) == (a < b) ? a : b;
}

static uint64_t reduce_bits(tl_emu_reduce_op op, tl_tensormap_type type, uint64_t a, uint64_t b) {
  switch (type) {
    case TL_TENSORMAP_F16: {
      double x = (double)tl_host_f16_to_f32((uint16_t)a), y = (double)tl_host_f16_to_f32((uint16_t)b);
      double result = reduce_double(op, x, y);
      return isnan(result) ? 0x7fffu : tl_host_f64_to_f16(result);  // NaNs: measured
    }
    case TL_TENSORMAP_BF16: {
      double x = (double)tl_host_bf16_to_f32((uint16_t)a), y = (double)tl_host_bf16_to_f32((uint16_t)b);
      double result = reduce_double(op, x, y);
      return isnan(result) ? 0x7fffu : tl_host_f64_to_bf16(result);
    }
    case TL_TENSORMAP_F32: {
      float x, y;
      uint32_t low = (uint32_t)a, other = (uint32_t)b;
      memcpy(&x, &low, 4);
      memcpy(&y, &other, 4);
      x += y;
      if (isnan(x)) return 0x7fffffffu;
      memcpy(&low, &x, 4);
      return low;
    }
    case TL_TENSORMAP_F64: {
      double x, y;
      memcpy(&x, &a, 8);
      memcpy(&y, &b, 8);
      x += y;
      memcpy(&a, &x, 8);
      return a;
    }
    case TL_TENSORMAP_S32:
      return reduce_signed(op, (int32_t)(uint32_t)a, (int32_t)(uint32_t)b);
    case TL_TENSORMAP_S64:
      return reduce_signed(op, (int64_t)a, (int64_t)b);
    case TL_TENSORMAP_U32:
    case TL_TENSORMAP_U64:
      return reduce_unsigned(op, a, b);
    case TL_TENSORMAP_U8:
    case TL_TENSORMAP_U16:
    case TL_TENSORMAP_F32_FTZ:
    case TL_TENSORMAP_TF32:
    case TL_TENSORMAP_TF32_FTZ:
    case TL_TENSORMAP_NUM_TYPES:
      break;
  }
  abort();  // tl_emu_reduce_exists refused it
}

#define TL_REDUCE_WIDTH(bits)                                                                                    \
  static void reduce_##bits(tl_emu_reduce_op op, tl_tensormap_type type, void *to, const void *from, size_t n) { \
    uint##bits##_t *cells = to;                                                                                  \
    for (size_t i = 0; i < n; i++) {                                                                             \
      uint##bits##_t value, old = __atomic_load_n(&cells[i], __ATOMIC_RELAXED);                                  \
      memcpy(&value, (const uint8_t *)from + i * sizeof value, sizeof value);                                    \
      while (!__atomic_compare_exchange_n(&cells[i], &old, (uint##bits##_t)reduce_bits(op, type, old, value), 0, \
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {                                 \
      }                                                                                                          \
    }                                                                                                            \
  }
TL_REDUCE_WIDTH(16)
TL_REDUCE_WIDTH(32)
TL_REDUCE_WIDTH(64)
#undef TL_REDUCE_WIDTH

void tl_emu_elements_reduce(tl_emu_reduce_op op, tl_tensormap_type type, void *to, const void *from, size_t bytes) {
  switch (tl_tensormap_type_bytes(type)) {
    case 2:
      reduce_16(op, type, to, from, bytes / 2);
      break;
    case 4:
      reduce_32(op, type, to, from, bytes / 4);
      break;
    case 8:
      reduce_64(op, type, to, from, bytes / 8);
      break;
  }
}

// Round to nearest even; NaNs become one (measured).
static uint32_t round_to_tf32(uint32_t bits) {
  enum { DROPPED = 13 };  // bits of the mantissa: 23 in f32, 10 in tf32
  uint32_t mask = (1u << DROPPED) - 1;
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu & ~mask;
  return (bits + (mask >> 1) + (bits >> DROPPED & 1)) & ~mask;
}

void tl_emu_elements_load(tl_tensormap_type type, void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  if (type != TL_TENSORMAP_TF32 && type != TL_TENSORMAP_TF32_FTZ) return;
  for (size_t i = 0; i < bytes; i += 4) {
    uint32_t element;
    memcpy(&element, (uint8_t *)to + i, 4);
    element = round_to_tf32(element);
    memcpy((uint8_t *)to + i, &element, 4);
  }
}

void tl_emu_elements_fill(tl_tensormap_fill fill, void *to, size_t bytes) {
  static const uint16_t nan = 0x7ff7;  // as it is, or two or four of them: what an H200 writes
  memset(to, 0, bytes);
  for (size_t i = 0; fill == TL_TENSORMAP_FILL_NAN && i < bytes; i += sizeof nan)
    memcpy((uint8_t *)to + i, &nan, sizeof nan);
}
