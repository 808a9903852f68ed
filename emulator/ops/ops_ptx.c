// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What PTX can say and LLVM's instructions cannot: rounding in other directions than to nearest, and conversions that
// the host would round twice. Values are exact in 64 bits of mantissa until they are rounded once.
#include <math.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "support/dtype.h"

// ---- formats

typedef struct format {
  int precision;     // bits of mantissa
  int least, large;  // exponents, as frexp counts, of the least normal number and of the largest
} format;

static const format formats[] = {[TL_EMU_PTX_F16] = {11, -13, 16},
                                 [TL_EMU_PTX_BF16] = {8, -125, 128},
                                 [TL_EMU_PTX_F32] = {24, -125, 128},
                                 [TL_EMU_PTX_F64] = {53, -1021, 1024}};

static long double to_integer(long double x, tl_emu_ptx_round direction) {
  switch (direction) {
    case TL_EMU_PTX_RZ:
      return truncl(x);
    case TL_EMU_PTX_RM:
      return floorl(x);
    case TL_EMU_PTX_RP:
      return ceill(x);
    case TL_EMU_PTX_RN:
      break;
  }
  return rintl(x);
}

static long double round_to(long double x, tl_emu_ptx_type type, tl_emu_ptx_round direction) {
  if (!isfinite(x) || x == 0) return x;
  const format *f = &formats[type];
  int exponent;
  frexpl(x, &exponent);
  if (exponent < f->least) exponent = f->least;
  int scale = f->precision - exponent;
  long double rounded = ldexpl(to_integer(ldexpl(x, scale), direction), -scale);
  long double largest = ldexpl(1 - ldexpl(1, -f->precision), f->large);
  if (fabsl(rounded) <= largest) return rounded == 0 ? copysignl(0, x) : rounded;
  bool stays = direction == TL_EMU_PTX_RZ || direction == (x > 0 ? TL_EMU_PTX_RM : TL_EMU_PTX_RP);
  return copysignl(stays ? largest : INFINITY, x);
}

static unsigned bytes_of(tl_emu_ptx_type type) {
  return type == TL_EMU_PTX_F16 || type == TL_EMU_PTX_BF16 ? 2 : type == TL_EMU_PTX_F32 ? 4 : 8;
}

static tl_dtype dtype_of(tl_emu_ptx_type type) {
  return type == TL_EMU_PTX_F16 ? TL_DTYPE_F16 : type == TL_EMU_PTX_BF16 ? TL_DTYPE_BF16 : TL_DTYPE_F32;
}

// Operand `index` of operands of one type.
static long double load(tl_emu_ptx_type type, const void *args, unsigned index) {
  const uint8_t *at = (const uint8_t *)args + (size_t)index * bytes_of(type);
  uint64_t word;
  double wide;
  switch (type) {
    case TL_EMU_PTX_S64:
      memcpy(&word, at, sizeof word);
      return (long double)(int64_t)word;
    case TL_EMU_PTX_U64:
      memcpy(&word, at, sizeof word);
      return (long double)word;
    case TL_EMU_PTX_F64:
      memcpy(&wide, at, sizeof wide);
      return wide;
    default:
      return tl_dtype_load_float(dtype_of(type), at, 0);
  }
}

// `value` is one of the type's.
static void store(tl_emu_ptx_type type, void *result, long double value) {
  double wide = (double)value;
  if (type == TL_EMU_PTX_F64)
    memcpy(result, &wide, sizeof wide);
  else
    tl_dtype_store_float(dtype_of(type), result, 0, wide);
}

// ---- arithmetic

// A sum that is not exact moves a little to where the rest of it lies: what is rounded from it is then right in every
// direction (the formats have at least ten bits less; f64 has eleven).
static long double with_rest(long double sum, long double rest) {
  return rest == 0 || !isfinite(sum) ? sum : nextafterl(sum, rest > 0 ? INFINITY : -INFINITY);
}

// Knuth's exact sum.
static long double add(long double a, long double b) {
  volatile long double sum = a + b, other = sum - a;
  volatile long double first = sum - other;
  return with_rest(sum, (a - first) + (b - other));
}

// The product as a sum of two: fmal is exact.
static long double multiply(long double a, long double b) {
  long double product = a * b;
  return with_rest(product, fmal(a, b, -product));
}

static long double multiply_add(long double a, long double b, long double c) {
  long double product = a * b, rest = fmal(a, b, -product);
  if (rest == 0 || !isfinite(product)) return add(product, c);
  long double sum = fmal(a, b, c);
  // What fmal rounded away: product + c is near + far (Knuth's exact sum), and near is the sum or beside it.
  volatile long double near = product + c, other = near - product;
  volatile long double first = near - other;
  long double far = (product - first) + (c - other);
  return with_rest(sum, (near - sum) + (far + rest));
}

static long double divide(long double a, long double b) {
  long double quotient = a / b;
  if (!isfinite(quotient) || !isfinite(b)) return quotient;
  long double rest = fmal(-quotient, b, a);
  return with_rest(quotient, b > 0 ? rest : -rest);
}

static long double root(long double a) {
  long double value = sqrtl(a);
  return isfinite(value) ? with_rest(value, fmal(-value, value, a)) : value;
}

static int part(const tl_emu_site *site, int shift) {
  return site->binding->param >> shift & TL_EMU_PTX_PART;
}

void tl_emu_op_ptx_arithmetic(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_ptx_type type = (tl_emu_ptx_type)part(site, TL_EMU_PTX_TO);
  long double a = load(type, args, 0), value = a;
  switch ((tl_emu_ptx_arithmetic)part(site, TL_EMU_PTX_OP)) {
    case TL_EMU_PTX_ADD:
      value = add(a, load(type, args, 1));
      break;
    case TL_EMU_PTX_SUB:
      value = add(a, -load(type, args, 1));
      break;
    case TL_EMU_PTX_MUL:
      value = multiply(a, load(type, args, 1));
      break;
    case TL_EMU_PTX_DIV:
      value = divide(a, load(type, args, 1));
      break;
    case TL_EMU_PTX_FMA:
      value = multiply_add(a, load(type, args, 1), load(type, args, 2));
      break;
    case TL_EMU_PTX_RCP:
      value = divide(1, a);
      break;
    case TL_EMU_PTX_SQRT:
      value = root(a);
      break;
    case TL_EMU_PTX_CVT:
      break;
  }
  tl_emu_ptx_round direction = (tl_emu_ptx_round)part(site, TL_EMU_PTX_ROUND);
  // PTX ISA, add: an exact zero sum of x and -x is -0 only when it is rounded down.
  if (value == 0 && direction == TL_EMU_PTX_RM && part(site, TL_EMU_PTX_OP) <= TL_EMU_PTX_SUB) {
    long double b = load(type, args, 1);
    if (part(site, TL_EMU_PTX_OP) == TL_EMU_PTX_SUB) b = -b;
    value = signbit(a) || signbit(b) ? -0.0L : 0.0L;
  }
  store(type, result, round_to(value, type, direction));
}

void tl_emu_op_ptx_cvt(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_ptx_type to = (tl_emu_ptx_type)part(site, TL_EMU_PTX_TO);
  long double value = load((tl_emu_ptx_type)part(site, TL_EMU_PTX_FROM), args, 0);
  store(to, result, round_to(value, to, (tl_emu_ptx_round)part(site, TL_EMU_PTX_ROUND)));
}

// PTX ISA, cvt.rna: to nearest, ties away from zero: 10 bits of mantissa stay, of a NaN too.
void tl_emu_op_ptx_cvt_tf32_away(void *result, const void *args, const tl_emu_site *site) {
  (void)site;
  uint32_t bits;
  memcpy(&bits, args, sizeof bits);
  float value;
  memcpy(&value, args, sizeof value);
  if (isfinite(value)) bits += 0x1000;
  bits &= ~UINT32_C(0x1fff);
  memcpy(result, &bits, sizeof bits);
}

// PTX ISA, rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: the lower 32 bits of the result are zero. Parameter: 1 for the
// root.
void tl_emu_op_ptx_approx_f64(void *result, const void *args, const tl_emu_site *site) {
  double x;
  memcpy(&x, args, sizeof x);
  if (fabs(x) < 0x1p-1022) x = copysign(0, x);
  double y = site->binding->param ? 1 / sqrt(x) : 1 / x;
  uint64_t bits;
  memcpy(&bits, &y, sizeof bits);
  bits &= ~UINT64_C(0xffffffff);
  memcpy(result, &bits, sizeof bits);
}

// PTX ISA, fns: the place of the n-th set bit from a place on, upwards or downwards.
void tl_emu_op_ptx_find_set(void *result, const void *args, const tl_emu_site *site) {
  (void)site;
  uint32_t operands[3], place = UINT32_MAX;
  memcpy(operands, args, sizeof operands);
  uint32_t mask = operands[0];
  int64_t at = operands[1], count = (int32_t)operands[2], step = count < 0 ? -1 : 1;
  if (!count && at < 32 && (mask >> at & 1)) place = (uint32_t)at;
  for (count *= step; count && at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && !--count) place = (uint32_t)at;
  // Not in the ISA, where the size of this number is none of 32 bits: what an H200 gives.
  if ((int32_t)operands[2] == INT32_MIN) place = 0;
  memcpy(result, &place, sizeof place);
}
