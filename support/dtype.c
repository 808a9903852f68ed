// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/dtype.h"

#include <math.h>
#include <string.h>

typedef enum dtype_kind { KIND_NONE, KIND_F, KIND_I, KIND_U, KIND_B } dtype_kind;

typedef struct dtype_info {
  const char *name;
  const char *aliases;
  int bits;
  dtype_kind kind;
  int mantissa_bits, exponent_bits;
} dtype_info;

static const dtype_info infos[TL_DTYPE_COUNT] = {
    [TL_DTYPE_NONE] = {"none", "", 0, KIND_NONE, 0, 0},
#define TL_DTYPE(id, name, bits, kind, mantissa, exponent, aliases) \
  [TL_DTYPE_##id] = {name, aliases, bits, KIND_##kind, mantissa, exponent},
#include "support/dtype.def"
#undef TL_DTYPE
};

const char *tl_dtype_name(tl_dtype dtype) {
  return infos[dtype].name;
}

static bool matches_alias(const char *aliases, tl_str text) {
  tl_str rest = tl_str_from(aliases);
  while (rest.len) {
    size_t space = tl_str_find(rest, ' ');
    if (tl_str_equal(tl_str_sub(rest, 0, space), text)) return true;
    rest = space == SIZE_MAX ? (tl_str){0} : tl_str_sub(rest, space + 1, SIZE_MAX);
  }
  return false;
}

tl_dtype tl_dtype_parse(tl_str text) {
  for (int dtype = 1; dtype < TL_DTYPE_COUNT; dtype++) {
    if (tl_str_is(text, infos[dtype].name) || matches_alias(infos[dtype].aliases, text)) return (tl_dtype)dtype;
  }
  return TL_DTYPE_NONE;
}

int tl_dtype_bits(tl_dtype dtype) {
  return infos[dtype].bits;
}
uint64_t tl_dtype_bytes(tl_dtype dtype, uint64_t count) {
  uint64_t bits = (uint64_t)infos[dtype].bits;
  return bits < 8 ? (count * bits + 7) / 8 : count * (bits / 8);
}
bool tl_dtype_is_float(tl_dtype dtype) {
  return infos[dtype].kind == KIND_F;
}
bool tl_dtype_is_int(tl_dtype dtype) {
  return infos[dtype].kind == KIND_I || infos[dtype].kind == KIND_U;
}
bool tl_dtype_is_signed_int(tl_dtype dtype) {
  return infos[dtype].kind == KIND_I;
}
bool tl_dtype_is_unsigned_int(tl_dtype dtype) {
  return infos[dtype].kind == KIND_U;
}
int tl_dtype_mantissa_bits(tl_dtype dtype) {
  return infos[dtype].mantissa_bits;
}
int tl_dtype_exponent_bits(tl_dtype dtype) {
  return infos[dtype].exponent_bits;
}

int64_t tl_dtype_int_min(tl_dtype dtype) {
  return infos[dtype].kind == KIND_I ? (int64_t)(UINT64_C(1) << 63) >> (64 - infos[dtype].bits) : 0;
}

uint64_t tl_dtype_int_max(tl_dtype dtype) {
  if (infos[dtype].kind == KIND_B) return 1;
  return UINT64_MAX >> (64 - infos[dtype].bits + (infos[dtype].kind == KIND_I));
}

// f8e4m3 and f4e2m1 have no infinity: their top exponent holds finite values (e4m3 keeps mantissa 7 for NaN).
static bool has_infinity(tl_dtype dtype) {
  return dtype != TL_DTYPE_F8E4M3 && dtype != TL_DTYPE_F4E2M1;
}

static int exponent_bias(tl_dtype dtype) {
  return (1 << (infos[dtype].exponent_bits - 1)) - 1;
}

double tl_dtype_float_max(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F8E4M3:
      return 448.0;
    case TL_DTYPE_F4E2M1:
      return 6.0;
    case TL_DTYPE_F64:
      return 1.7976931348623157e308;
    default: {
      int bias = exponent_bias(dtype);
      return ldexp(2.0 - ldexp(1.0, -infos[dtype].mantissa_bits), bias);
    }
  }
}

double tl_dtype_round(tl_dtype dtype, double value) {
  if (dtype == TL_DTYPE_F64) return value;
  bool saturates = infos[dtype].bits <= 8;
  double largest = tl_dtype_float_max(dtype);
  if (isnan(value)) return dtype == TL_DTYPE_F4E2M1 ? largest : value;
  if (isinf(value)) return saturates ? copysign(largest, value) : value;
  if (value == 0) return value;
  int exponent = ilogb(value);
  int smallest = 1 - exponent_bias(dtype);
  int quantum = (exponent < smallest ? smallest : exponent) - infos[dtype].mantissa_bits;
  // Scaling by a power of two is exact here, and nearbyint rounds to nearest even in the default mode.
  double rounded = ldexp(nearbyint(ldexp(value, -quantum)), quantum);
  if (fabs(rounded) > largest) return saturates ? copysign(largest, value) : copysign(INFINITY, value);
  return rounded;
}

// Sign, exponent and mantissa fields of an already rounded value.
static uint64_t encode_float(tl_dtype dtype, double value) {
  const dtype_info *info = &infos[dtype];
  // TF32 is stored as the f32 whose low mantissa bits are zero.
  int mantissa_bits = dtype == TL_DTYPE_TF32 ? 23 : info->mantissa_bits;
  int bias = exponent_bias(dtype);
  uint64_t sign = (uint64_t)(signbit(value) != 0) << (info->exponent_bits + mantissa_bits);
  uint64_t top = ((UINT64_C(1) << info->exponent_bits) - 1) << mantissa_bits;
  if (isnan(value)) {
    if (dtype == TL_DTYPE_F8E4M3) return sign | 0x7f;
    return sign | top | (UINT64_C(1) << (mantissa_bits - 1));
  }
  if (isinf(value)) return sign | top;
  if (value == 0) return sign;
  int exponent = ilogb(value);
  int smallest = 1 - bias;
  if (exponent < smallest) return sign | (uint64_t)fabs(ldexp(value, mantissa_bits - smallest));
  double fraction = fabs(ldexp(value, -exponent)) - 1.0;
  return sign | (uint64_t)(exponent + bias) << mantissa_bits | (uint64_t)ldexp(fraction, mantissa_bits);
}

static double decode_float(tl_dtype dtype, uint64_t bits) {
  const dtype_info *info = &infos[dtype];
  int mantissa_bits = dtype == TL_DTYPE_TF32 ? 23 : info->mantissa_bits;
  int bias = exponent_bias(dtype);
  uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
  int exponent = (int)(bits >> mantissa_bits & ((UINT64_C(1) << info->exponent_bits) - 1));
  double sign = bits >> (mantissa_bits + info->exponent_bits) & 1 ? -1.0 : 1.0;
  bool top = exponent == (1 << info->exponent_bits) - 1;
  if (top && has_infinity(dtype)) return mantissa ? NAN : sign * INFINITY;
  if (dtype == TL_DTYPE_F8E4M3 && top && mantissa == 7) return NAN;
  if (exponent == 0) return sign * ldexp((double)mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp(1.0 + ldexp((double)mantissa, -mantissa_bits), exponent - bias);
}

uint64_t tl_dtype_load_bits(tl_dtype dtype, const void *array, uint64_t index) {
  const unsigned char *bytes = array;
  int bits = infos[dtype].bits;
  if (bits == 4) return bytes[index / 2] >> (index % 2 * 4) & 15;
  uint64_t value = 0;
  memcpy(&value, bytes + index * (uint64_t)(bits / 8), (size_t)bits / 8);
  return value;
}

void tl_dtype_store_bits(tl_dtype dtype, void *array, uint64_t index, uint64_t value) {
  unsigned char *bytes = array;
  int bits = infos[dtype].bits;
  if (bits == 4) {
    unsigned shift = (unsigned)(index % 2 * 4);
    bytes[index / 2] = (unsigned char)((bytes[index / 2] & ~(15u << shift)) | (unsigned)(value & 15) << shift);
    return;
  }
  memcpy(bytes + index * (uint64_t)(bits / 8), &value, (size_t)bits / 8);
}

double tl_dtype_load_float(tl_dtype dtype, const void *array, uint64_t index) {
  if (dtype == TL_DTYPE_F64) {
    double value;
    memcpy(&value, (const char *)array + index * 8, 8);
    return value;
  }
  return decode_float(dtype, tl_dtype_load_bits(dtype, array, index));
}

int64_t tl_dtype_load_int(tl_dtype dtype, const void *array, uint64_t index) {
  uint64_t value = tl_dtype_load_bits(dtype, array, index);
  int unused = 64 - infos[dtype].bits;
  if (infos[dtype].kind == KIND_I) return (int64_t)(value << unused) >> unused;
  return infos[dtype].kind == KIND_B ? value != 0 : (int64_t)value;
}

void tl_dtype_store_float(tl_dtype dtype, void *array, uint64_t index, double value) {
  if (dtype == TL_DTYPE_F64) {
    memcpy((char *)array + index * 8, &value, 8);
    return;
  }
  tl_dtype_store_bits(dtype, array, index, encode_float(dtype, tl_dtype_round(dtype, value)));
}

void tl_dtype_store_int(tl_dtype dtype, void *array, uint64_t index, int64_t value) {
  tl_dtype_store_bits(dtype, array, index, infos[dtype].kind == KIND_B ? value != 0 : (uint64_t)value);
}

uint32_t tl_dp4a(uint32_t a, bool a_is_signed, uint32_t b, bool b_is_signed, uint32_t c) {
  for (int shift = 0; shift < 32; shift += 8) {
    uint8_t x = (uint8_t)(a >> shift), y = (uint8_t)(b >> shift);
    int32_t wide_x = a_is_signed ? (int8_t)x : x, wide_y = b_is_signed ? (int8_t)y : y;
    c += (uint32_t)(wide_x * wide_y);
  }
  return c;
}
