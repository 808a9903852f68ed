// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types and their host-side conversions.
#ifndef TL_SUPPORT_DTYPE_H
#define TL_SUPPORT_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/strview.h"

// The largest dim, stride or `dynamic64` value: no tensor has more bytes.
#define TL_WIDE_MAX ((INT64_C(1) << 47) - 1)

typedef enum tl_dtype {
  TL_DTYPE_NONE,
#define TL_DTYPE(id, name, bits, kind, mantissa, exponent, aliases) TL_DTYPE_##id,
#include "support/dtype.def"
#undef TL_DTYPE
  TL_DTYPE_COUNT
} tl_dtype;

// "f16"; "none" for TL_DTYPE_NONE. Static.
const char *tl_dtype_name(tl_dtype dtype);
// Accepts short and long names; TL_DTYPE_NONE when unknown.
tl_dtype tl_dtype_parse(tl_str text);
int tl_dtype_bits(tl_dtype dtype);
// Bytes of `count` elements in memory; 4-bit types pack two a byte (rounded up).
uint64_t tl_dtype_bytes(tl_dtype dtype, uint64_t count);
bool tl_dtype_is_float(tl_dtype dtype);
bool tl_dtype_is_int(tl_dtype dtype);  // signed or unsigned, not bool
bool tl_dtype_is_signed_int(tl_dtype dtype);
bool tl_dtype_is_unsigned_int(tl_dtype dtype);
int tl_dtype_mantissa_bits(tl_dtype dtype);
int tl_dtype_exponent_bits(tl_dtype dtype);
// Smallest and largest value of an integer type (bool: 0 and 1) as int64 / uint64.
int64_t tl_dtype_int_min(tl_dtype dtype);
uint64_t tl_dtype_int_max(tl_dtype dtype);
// Largest finite value of a float type.
double tl_dtype_float_max(tl_dtype dtype);

// Rounds to nearest even into the format of a float dtype and returns the value as double. f8 and f4 saturate; NaN
// stays NaN (f4: becomes the largest value); f32 and wider keep infinities.
double tl_dtype_round(tl_dtype dtype, double value);
// Reads or writes element `index` of a packed array as double (floats) or int64 (integers, bool).
double tl_dtype_load_float(tl_dtype dtype, const void *array, uint64_t index);
int64_t tl_dtype_load_int(tl_dtype dtype, const void *array, uint64_t index);
// The bits of element `index` of a packed array, from the lowest bit on. Storing leaves other elements as they are,
// also where several share a byte.
uint64_t tl_dtype_load_bits(tl_dtype dtype, const void *array, uint64_t index);
void tl_dtype_store_bits(tl_dtype dtype, void *array, uint64_t index, uint64_t value);
// Rounds (floats) or wraps (integers) and stores.
void tl_dtype_store_float(tl_dtype dtype, void *array, uint64_t index, double value);
void tl_dtype_store_int(tl_dtype dtype, void *array, uint64_t index, int64_t value);

// c plus the products of the four bytes of a and b, lowest with lowest; the bytes are signed or not. Wraps. What the
// language's dp4a makes of constants.
uint32_t tl_dp4a(uint32_t a, bool a_is_signed, uint32_t b, bool b_is_signed, uint32_t c);

#endif
