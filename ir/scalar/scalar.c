// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ir/scalar/scalar.h"

#include <math.h>

// ---- functions of one float that the C library lacks

static double exp10_of(double x) {
  return pow(10.0, x);
}
static double rsqrt_of(double x) {
  return 1.0 / sqrt(x);
}
static double rcp_of(double x) {
  return 1.0 / x;
}
static double sigmoid_of(double x) {
  return x < 0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}
static double isnan_of(double x) {
  return isnan(x) ? 1 : 0;
}
static double isinf_of(double x) {
  return isinf(x) ? 1 : 0;
}

static double isfinite_of(double x) {
  return isfinite(x) ? 1 : 0;
}
static double signbit_of(double x) {
  return signbit(x) ? 1 : 0;
}
static double mantissa_of(double x) {
  int exponent;
  return frexp(x, &exponent);
}
static double exponent_of(double x) {
  int exponent = 0;
  // Of an infinity and a NaN C leaves it open.
  if (isfinite(x)) frexp(x, &exponent);
  return exponent;
}

// ---- and of two

static double ldexp_of(double x, double n) {
  const double most = 4000;  // past every exponent
  return ldexp(x, (int)fmax(fmin(n, most), -most));
}

// The numbers of one sign are in the order of their bits.
static double next_after(tl_dtype dtype, double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return b;
  uint64_t bits = 1;
  if (a == 0) return copysign(tl_dtype_load_float(dtype, &bits, 0), b);
  bits = 0;
  tl_dtype_store_float(dtype, &bits, 0, a);
  bits = (a < b) == (a > 0) ? bits + 1 : bits - 1;
  return tl_dtype_load_float(dtype, &bits, 0);
}

typedef enum takes { MATH, TEST, BITS, EXPONENT, ROUNDING, MAGNITUDE, FLOATS, FLOAT_BITS, FLOAT_EXPONENT } takes;

static const struct {
  double (*evaluate)(double x);
  takes takes;
  int f32_ulp, f64_ulp;
  const char *doc, *how;
} functions[TL_MATH_COUNT] = {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how) \
  [TL_MATH_##ID] = {evaluate, takes, f32_ulp, f64_ulp, doc, how},
#include "ir/scalar/functions.def"
};

double tl_scalar_math(tl_ir_enum_MATH function, double x) {
  return functions[function].evaluate(x);
}

static const struct {
  double (*evaluate)(double a, double b);
  takes takes;
  int f32_ulp, f64_ulp;
  const char *doc, *how;
} functions2[TL_MATH2_COUNT] = {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how)
#define TL_MATH_BINARY(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, arguments, doc, how) \
  [TL_MATH2_##ID] = {evaluate, takes, f32_ulp, f64_ulp, doc, how},
#include "ir/scalar/functions.def"
};

tl_dtype tl_scalar_math_result(int function, tl_dtype dtype) {
  takes kind = functions[function].takes;
  return kind == TEST || kind == BITS ? TL_DTYPE_BOOL : kind == EXPONENT ? TL_DTYPE_I32 : dtype;
}

bool tl_scalar_math_is_of_bits(int function) {
  return functions[function].takes == BITS;
}

double tl_scalar_math2(tl_ir_enum_MATH2 function, tl_dtype dtype, double a, double b) {
  return function == TL_MATH2_NEXTAFTER ? next_after(dtype, a, b) : functions2[function].evaluate(a, b);
}

bool tl_scalar_math2_is_of_bits(int function) {
  return functions2[function].takes == FLOAT_BITS;
}

bool tl_scalar_math2_takes_exponent(int function) {
  return functions2[function].takes == FLOAT_EXPONENT;
}

const char *tl_scalar_math2_doc(int function) {
  return functions2[function].doc;
}

const char *tl_scalar_math2_how(int function) {
  return functions2[function].how;
}

void tl_scalar_math2_ulp(int function, int *out_f32, int *out_f64) {
  *out_f32 = functions2[function].f32_ulp;
  *out_f64 = functions2[function].f64_ulp;
}

const char *tl_scalar_math_doc(int function) {
  return functions[function].doc;
}

const char *tl_scalar_math_how(int function) {
  return functions[function].how;
}

void tl_scalar_math_ulp(int function, int *out_f32, int *out_f64) {
  *out_f32 = functions[function].f32_ulp;
  *out_f64 = functions[function].f64_ulp;
}

void tl_scalar_float_op_ulp(tl_opcode code, int *out_f32, int *out_f64) {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how)
#define TL_MATH_OPERATOR(ID, f32_ulp, f64_ulp, how) [TL_OP_##ID] = {f32_ulp, f64_ulp},
  static const int bounds[TL_OPCODE_COUNT][2] = {
#include "ir/scalar/functions.def"
  };
  *out_f32 = bounds[code][0];
  *out_f64 = bounds[code][1];
}

// ---- roundings

double tl_scalar_round_whole(tl_ir_enum_ROUNDING rounding, double value, uint32_t bits) {
  switch (rounding) {
    case TL_ROUNDING_AWAY:
      return round(value);
    case TL_ROUNDING_ZERO:
      return trunc(value);
    case TL_ROUNDING_UP:
      return ceil(value);
    case TL_ROUNDING_DOWN:
      return floor(value);
    case TL_ROUNDING_STOCHASTIC: {
      double whole = trunc(value), part = fabs(value - whole);
      return part >= 1 - (double)bits * 0x1p-32 ? whole + copysign(1, value) : whole;
    }
    default:
      return nearbyint(value);
  }
}

double tl_scalar_round_to(tl_dtype dtype, tl_ir_enum_ROUNDING rounding, double value, uint32_t bits) {
  if (isnan(value) || isinf(value) || value == 0) return tl_dtype_round(dtype, value);
  int exponent = ilogb(value), least = 2 - (1 << (tl_dtype_exponent_bits(dtype) - 1));
  int quantum = (exponent < least ? least : exponent) - tl_dtype_mantissa_bits(dtype);
  double rounded = ldexp(tl_scalar_round_whole(rounding, ldexp(value, -quantum), bits), quantum);
  double largest = tl_dtype_float_max(dtype);
  if (fabs(rounded) <= largest) return rounded;
  bool is_inward = rounding == TL_ROUNDING_ZERO || rounding == (value < 0 ? TL_ROUNDING_UP : TL_ROUNDING_DOWN);
  return copysign(is_inward || tl_dtype_bits(dtype) <= 8 ? largest : INFINITY, value);
}

// ---- floats

// floor(a / b), and -1 where the quotient rounds to -0.
static double floor_quotient(double a, double b) {
  double quotient = floor(a / b);
  bool rounded_to_zero = quotient == 0 && a != 0 && b != 0 && (a < 0) != (b < 0);
  return rounded_to_zero ? -1 : quotient;
}

// a - b floor(a / b), computed as if exactly. A quotient of zero leaves a itself, another multiple leaves 0.0.
static double floor_remainder(double a, double b) {
  double rest = fmod(a, b);
  if (rest == 0) return a == 0 ? a : 0.0;
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// The hardware's order, in which -0.0 is less than 0.0; C leaves it open. Of a NaN and a number the number.
static double least_of(double a, double b) {
  return a == b ? (signbit(a) ? a : b) : fmin(a, b);
}
static double largest_of(double a, double b) {
  return a == b ? (signbit(a) ? b : a) : fmax(a, b);
}

bool tl_scalar_float_op(tl_opcode code, double a, double b, double *out) {
  switch (code) {
    case TL_OP_ADD:
      *out = a + b;
      return true;
    case TL_OP_SUB:
      *out = a - b;
      return true;
    case TL_OP_MUL:
      *out = a * b;
      return true;
    case TL_OP_DIV:
      *out = a / b;
      return true;
    case TL_OP_FLOORDIV:
      *out = floor_quotient(a, b);
      return true;
    case TL_OP_MOD:
      *out = floor_remainder(a, b);
      return true;
    case TL_OP_MIN:
      *out = least_of(a, b);
      return true;
    case TL_OP_MAX:
      *out = largest_of(a, b);
      return true;
    case TL_OP_POW:
      *out = pow(a, b);
      return true;
    default:
      return false;
  }
}

// Of two numbers at most one of `less`, `equal` and `greater` holds; none when one is NaN.
static bool holds(tl_ir_enum_CMP predicate, bool less, bool equal, bool greater) {
  switch (predicate) {
    case TL_CMP_EQ:
      return equal;
    case TL_CMP_NE:
      return !equal;
    case TL_CMP_LT:
      return less;
    case TL_CMP_LE:
      return less || equal;
    case TL_CMP_GT:
      return greater;
    case TL_CMP_GE:
      return greater || equal;
    case TL_CMP_COUNT:
      break;
  }
  return false;
}

bool tl_scalar_compare_floats(tl_ir_enum_CMP predicate, double a, double b) {
  return holds(predicate, a<b, a == b, a> b);
}

// ---- mathematical integers

// Floor division or its remainder, which has the sign of the divisor.
static tl_scalar_result divide(tl_opcode code, int64_t a, int64_t b, int64_t *out) {
  if (b == 0) return TL_SCALAR_DIV_ZERO;
  if (b == -1) {
    *out = 0;
    bool overflow = code == TL_OP_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, out);
    return overflow ? TL_SCALAR_OVERFLOW : TL_SCALAR_OK;
  }
  int64_t quotient = a / b, rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    quotient--;
    rest += b;
  }
  *out = code == TL_OP_FLOORDIV ? quotient : rest;
  return TL_SCALAR_OK;
}

static tl_scalar_result shift(tl_opcode code, int64_t a, int64_t by, int64_t *out) {
  if (by < 0) return TL_SCALAR_NEGATIVE_SHIFT;
  if (code == TL_OP_SHR) {
    *out = a >> (by > 63 ? 63 : by);
    return TL_SCALAR_OK;
  }
  *out = 0;
  if (a == 0) return TL_SCALAR_OK;
  bool overflow = by > 62 || __builtin_mul_overflow(a, (int64_t)1 << by, out);
  return overflow ? TL_SCALAR_OVERFLOW : TL_SCALAR_OK;
}

tl_scalar_result tl_scalar_exact_op(tl_opcode code, int64_t a, int64_t b, int64_t *out) {
  switch (code) {
    case TL_OP_ADD:
      return __builtin_add_overflow(a, b, out) ? TL_SCALAR_OVERFLOW : TL_SCALAR_OK;
    case TL_OP_SUB:
      return __builtin_sub_overflow(a, b, out) ? TL_SCALAR_OVERFLOW : TL_SCALAR_OK;
    case TL_OP_MUL:
      return __builtin_mul_overflow(a, b, out) ? TL_SCALAR_OVERFLOW : TL_SCALAR_OK;
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
      return divide(code, a, b, out);
    case TL_OP_MIN:
      *out = a < b ? a : b;
      return TL_SCALAR_OK;
    case TL_OP_MAX:
      *out = a > b ? a : b;
      return TL_SCALAR_OK;
    case TL_OP_AND:
      *out = a & b;
      return TL_SCALAR_OK;
    case TL_OP_OR:
      *out = a | b;
      return TL_SCALAR_OK;
    case TL_OP_XOR:
      *out = a ^ b;
      return TL_SCALAR_OK;
    case TL_OP_SHL:
    case TL_OP_SHR:
      return shift(code, a, b, out);
    default:
      return TL_SCALAR_NO_MEANING;
  }
}

bool tl_scalar_compare_exact(tl_ir_enum_CMP predicate, int64_t a, int64_t b) {
  return holds(predicate, a<b, a == b, a> b);
}

// ---- integers of a dtype

int64_t tl_scalar_wrap(tl_dtype dtype, uint64_t bits) {
  if (dtype == TL_DTYPE_BOOL) return bits & 1;
  int unused = 64 - tl_dtype_bits(dtype);
  return tl_dtype_is_signed_int(dtype) ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

// Shifts by the width or more leave nothing, or the sign.
static bool shift_int(tl_dtype dtype, tl_opcode code, int64_t a, int64_t by, int64_t *out) {
  bool is_unsigned = tl_dtype_is_unsigned_int(dtype);
  // An unsigned count is never negative.
  if (by < 0 && !is_unsigned) return false;
  bool past = (uint64_t)by >= (uint64_t)tl_dtype_bits(dtype);
  if (code == TL_OP_SHL) {
    *out = past ? 0 : (int64_t)((uint64_t)a << by);
  } else if (is_unsigned) {
    *out = past ? 0 : (int64_t)((uint64_t)a >> by);
  } else {
    *out = a >> (past ? 63 : by);
  }
  return true;
}

static bool divide_int(tl_dtype dtype, tl_opcode code, int64_t a, int64_t b, int64_t *out) {
  if (b == 0) return false;
  if (tl_dtype_is_unsigned_int(dtype)) {
    *out = (int64_t)(code == TL_OP_MOD ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
  } else if (divide(code, a, b, out) == TL_SCALAR_OVERFLOW) {
    *out = a;  // INT64_MIN / -1 wraps to itself
  }
  return true;
}

bool tl_scalar_int_op(tl_dtype dtype, tl_opcode code, int64_t a, int64_t b, int64_t *out) {
  bool less = tl_scalar_compare_ints(dtype, TL_CMP_LT, a, b), known = true;
  switch (code) {
    case TL_OP_ADD:
      *out = (int64_t)((uint64_t)a + (uint64_t)b);
      break;
    case TL_OP_SUB:
      *out = (int64_t)((uint64_t)a - (uint64_t)b);
      break;
    case TL_OP_MUL:
      *out = (int64_t)((uint64_t)a * (uint64_t)b);
      break;
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
      known = divide_int(dtype, code, a, b, out);
      break;
    case TL_OP_MIN:
      *out = less ? a : b;
      break;
    case TL_OP_MAX:
      *out = less ? b : a;
      break;
    case TL_OP_AND:
    case TL_OP_OR:
    case TL_OP_XOR:
      tl_scalar_exact_op(code, a, b, out);
      break;
    case TL_OP_SHL:
    case TL_OP_SHR:
      known = shift_int(dtype, code, a, b, out);
      break;
    default:
      return false;
  }
  if (known) *out = tl_scalar_wrap(dtype, (uint64_t)*out);
  return known;
}

bool tl_scalar_compare_ints(tl_dtype dtype, tl_ir_enum_CMP predicate, int64_t a, int64_t b) {
  // Flipping the top bit maps the unsigned order to the signed one.
  uint64_t flip = tl_dtype_is_unsigned_int(dtype) ? (uint64_t)1 << 63 : 0;
  return tl_scalar_compare_exact(predicate, (int64_t)((uint64_t)a ^ flip), (int64_t)((uint64_t)b ^ flip));
}

int tl_scalar_bits_op(tl_opcode code, int width, uint64_t bits) {
  if (width < 64) bits &= ((uint64_t)1 << width) - 1;
  if (code == TL_OP_POPCOUNT) return __builtin_popcountll(bits);
  return bits == 0 ? width : __builtin_clzll(bits) - (64 - width);
}

uint32_t tl_scalar_philox(uint64_t seed, uint64_t counter, uint32_t word, uint64_t stream) {
  uint32_t keys[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t words[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t even = (uint64_t)words[0] * 0xD2511F53u, odd = (uint64_t)words[2] * 0xCD9E8D57u;
    words[0] = (uint32_t)(odd >> 32) ^ words[1] ^ keys[0];
    words[1] = (uint32_t)odd;
    words[2] = (uint32_t)(even >> 32) ^ words[3] ^ keys[1];
    words[3] = (uint32_t)even;
    keys[0] += 0x9E3779B9u;
    keys[1] += 0xBB67AE85u;
  }
  return words[word % 4];
}

int64_t tl_scalar_to_int(tl_dtype dtype, double value) {
  if (isnan(value)) return 0;
  value = trunc(value);
  double lo = (double)tl_dtype_int_min(dtype), hi = (double)tl_dtype_int_max(dtype);
  if (value <= lo) return tl_dtype_int_min(dtype);
  if (value >= hi) return (int64_t)tl_dtype_int_max(dtype);
  return tl_dtype_is_unsigned_int(dtype) ? (int64_t)(uint64_t)value : (int64_t)value;
}
