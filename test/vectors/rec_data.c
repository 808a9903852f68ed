// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Deterministic operands: splitmix64, seeded by a text.
#include <string.h>

#include "record.h"

typedef struct format {
  int bits, exponent, mantissa;  // of floats
  bool is_float, is_signed;
} format;

static const format formats[] = {
    [REC_F64] = {64, 11, 52, true, true}, [REC_F32] = {32, 8, 23, true, true}, [REC_TF32] = {32, 8, 10, true, true},
    [REC_F16] = {16, 5, 10, true, true},  [REC_BF16] = {16, 8, 7, true, true}, [REC_E4M3] = {8, 4, 3, true, true},
    [REC_E5M2] = {8, 5, 2, true, true},   [REC_S32] = {32, 0, 0, false, true}, [REC_S8] = {8, 0, 0, false, true},
    [REC_U8] = {8, 0, 0, false, false},   [REC_S4] = {4, 0, 0, false, true},   [REC_U4] = {4, 0, 0, false, false},
    [REC_B1] = {1, 0, 0, false, false},
};
const char *const rec_type_names[] = {
    [REC_F64] = "f64",   [REC_F32] = "f32",   [REC_TF32] = "tf32", [REC_F16] = "f16", [REC_BF16] = "bf16",
    [REC_E4M3] = "e4m3", [REC_E5M2] = "e5m2", [REC_S32] = "s32",   [REC_S8] = "s8",   [REC_U8] = "u8",
    [REC_S4] = "s4",     [REC_U4] = "u4",     [REC_B1] = "b1",
};
const char *const rec_set_names[] = {"small", "random", "special", "bits"};

static uint64_t state;

void rec_seed(const char *text, uint32_t index) {
  state = 1469598103934665603u + index;
  for (; *text; text++) state = (state ^ (uint8_t)*text) * 1099511628211u;
}

uint64_t rec_random(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint32_t rec_below(uint32_t bound) {
  return (uint32_t)((rec_random() >> 32) * bound >> 32);
}

int rec_type_bits(rec_type type) {
  return formats[type].bits;
}

static uint64_t mask(int bits) {
  return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

// Sign, biased exponent and mantissa in the format's own fields; tf32 has 13 unused bits below.
static uint64_t compose(const format *f, uint64_t sign, uint64_t exponent, uint64_t mantissa) {
  int unused = f->bits - 1 - f->exponent - f->mantissa;
  return ((sign << f->exponent | exponent) << f->mantissa | mantissa) << unused;
}

static uint64_t whole(const format *f, int value) {
  if (!f->is_float) return (uint64_t)(int64_t)value & mask(f->bits);
  if (!value) return 0;
  unsigned magnitude = (unsigned)(value < 0 ? -value : value);
  int top = 31 - __builtin_clz(magnitude);
  uint64_t bias = mask(f->exponent - 1), rest = magnitude - (1u << top);
  return compose(f, value < 0, bias + (uint64_t)top, rest << (f->mantissa - top));
}

static uint64_t special_float(const format *f) {
  uint64_t sign = rec_random() & 1, all = mask(f->exponent), full = mask(f->mantissa);
  switch (rec_below(8)) {
    case 0:
      return compose(f, sign, all, full);  // NaN; in e4m3 the only one
    case 1:
      return compose(f, sign, all, 0);  // infinity; in e4m3 256
    case 2:
      return compose(f, sign, 0, 0);
    case 3:
      return compose(f, sign, 0, 1);  // the smallest subnormal
    case 4:
      return compose(f, sign, 0, full);  // the largest
    case 5:
      return compose(f, sign, 1, 0);  // the smallest normal number
    case 6:
      return compose(f, sign, f->bits == 8 && f->exponent == 4 ? all : all - 1, f->bits == 8 ? full - 1 : full);
    default:
      return compose(f, sign, all, (full >> 1) + 1);  // the quiet NaN
  }
}

uint64_t rec_value(rec_type type, rec_set set) {
  const format *f = &formats[type];
  if (set == REC_BITS) return rec_random() & mask(f->bits);
  if (set == REC_SMALL) return whole(f, f->is_signed ? (int)rec_below(7) - 3 : (int)rec_below(4));
  if (!f->is_float) {
    uint64_t ends[] = {0, mask(f->bits - 1), mask(f->bits - 1) + 1, mask(f->bits)};
    return set == REC_SPECIAL && rec_below(2) ? ends[rec_below(4)] : rec_random() & mask(f->bits);
  }
  if (set == REC_SPECIAL && rec_below(4) == 0) return special_float(f);
  uint64_t exponent = mask(f->exponent - 1) - 3 + rec_below(7), sign = rec_random() & 1;
  return compose(f, sign, exponent, rec_random() & mask(f->mantissa));
}

uint64_t rec_word(rec_type type, rec_set set) {
  int bits = rec_type_bits(type);
  uint64_t word = 0;
  for (int at = 0; at < (bits == 64 ? 64 : 32); at += bits) word |= rec_value(type, set) << at;
  return word;
}

void rec_fill(void *bytes, size_t count, rec_type type, rec_set set) {
  size_t step = type == REC_F64 ? 8 : 4;
  for (size_t at = 0; at < count; at += step) {
    uint64_t word = rec_word(type, set);
    memcpy((uint8_t *)bytes + at, &word, step);
  }
}
