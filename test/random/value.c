// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic on texts, ranges and error bounds.
#include "test/random/value.h"

#include <math.h>
#include <stdlib.h>

void tl_rspec_add_value(tl_rspec_values *values, tl_rspec_value value) {
  if (values->len < TL_RSPEC_MAX_VALUES) values->items[values->len++] = value;
}

double tl_rspec_max_abs(const tl_rspec_value *value) {
  return fmax(fabs(value->lo), fabs(value->hi));
}

static double unit(tl_dtype dtype) {
  return tl_dtype_is_float(dtype) ? ldexp(1, -tl_dtype_mantissa_bits(dtype) - 1) : 0;
}

double tl_rspec_rounding(tl_dtype dtype, double max_abs, bool is_whole) {
  if (!tl_dtype_is_float(dtype)) return 0;
  if (is_whole && max_abs <= 1 / unit(dtype)) return 0;
  // Half the least subnormal counts for f16 only; flushed denormals stay below 1e-37.
  double least = dtype == TL_DTYPE_F16 ? 0x1p-25 : 2e-38;
  return unit(dtype) * max_abs + least;
}

tl_rspec_value tl_rspec_exact(const char *body, const char *reference, tl_dtype dtype, double lo, double hi,
                              bool is_whole) {
  return (tl_rspec_value){body, reference, dtype, lo, hi, 0, is_whole, false};
}

tl_rspec_value tl_rspec_stored(tl_rspec_value value, tl_dtype dtype) {
  // A value of the dtype is there already; otherwise one more rounding.
  if (value.dtype != dtype || value.is_const) {
    bool widens = !value.is_const && tl_dtype_is_float(value.dtype) &&
                  tl_dtype_mantissa_bits(value.dtype) <= tl_dtype_mantissa_bits(dtype) &&
                  tl_dtype_exponent_bits(value.dtype) <= tl_dtype_exponent_bits(dtype);
    if (!widens) value.err += tl_rspec_rounding(dtype, tl_rspec_max_abs(&value) + value.err, value.is_whole);
  }
  value.dtype = dtype;
  value.is_const = false;
  return value;
}

tl_dtype tl_rspec_promote(const tl_rspec_value *a, const tl_rspec_value *b) {
  if (a->is_const != b->is_const) {
    const tl_rspec_value *constant = a->is_const ? a : b, *other = a->is_const ? b : a;
    if (tl_dtype_is_float(other->dtype)) return other->dtype;
    if (!constant->is_whole || tl_dtype_is_float(constant->dtype)) return TL_DTYPE_F32;
    return tl_dtype_bits(other->dtype) < 32 ? TL_DTYPE_I32 : other->dtype;
  }
  tl_dtype x = a->dtype, y = b->dtype;
  bool x_float = tl_dtype_is_float(x), y_float = tl_dtype_is_float(y);
  if (x_float && y_float) {
    if (x == y) return x;
    return tl_dtype_bits(x) > tl_dtype_bits(y) ? x : tl_dtype_bits(x) < tl_dtype_bits(y) ? y : TL_DTYPE_F32;
  }
  if (x_float || y_float) return x_float ? x : y;
  return x == TL_DTYPE_I64 || y == TL_DTYPE_I64 ? TL_DTYPE_I64 : TL_DTYPE_I32;
}

tl_rspec_value tl_rspec_constant(tl_rspec *spec, int limit, bool is_whole) {
  uint32_t number = tl_rspec_choose(spec->choices, (uint32_t)(is_whole ? limit : limit * 8));
  bool negative = tl_rspec_choose(spec->choices, 2) == 1;
  double value = is_whole ? number + 1 : (number + 1) / 8.0;
  if (negative) value = -value;
  char *text = tl_rspec_text(spec, negative ? "(%g)" : "%g", value);
  tl_dtype dtype = is_whole ? TL_DTYPE_I32 : TL_DTYPE_F32;
  return (tl_rspec_value){text, text, dtype, value, value, 0, value == floor(value), true};
}

// Results keep within +-1000, integers within +-2^30, and the error below 2 % of the range (bf16: 6 %).
static bool is_fine(const tl_rspec_value *value) {
  double size = tl_rspec_max_abs(value);
  if (!tl_dtype_is_float(value->dtype)) return size < 0x1p30;
  return size <= 1000 && value->err <= fmax(0.02, 16 * unit(value->dtype)) * fmax(size, 0.05) && isfinite(value->err);
}

static void write2(tl_rspec *spec, const char *format, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out) {
  // The formats are constants of this file with two %s.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wformat-security"
#endif
  out->body = tl_rspec_text(spec, format, a.body, b.body);
  out->reference = tl_rspec_text(spec, format, a.reference, b.reference);
#pragma GCC diagnostic pop
}

// Both as values of their common dtype.
static tl_dtype unify(tl_rspec_value *a, tl_rspec_value *b) {
  tl_dtype dtype = tl_rspec_promote(a, b);
  *a = tl_rspec_stored(*a, dtype);
  *b = tl_rspec_stored(*b, dtype);
  return dtype;
}

static bool finish(tl_rspec_value r, double err, tl_rspec_value *out) {
  r.err = err + tl_rspec_rounding(r.dtype, tl_rspec_max_abs(&r) + err, r.is_whole && err == 0);
  if (!is_fine(&r)) return false;
  *out = r;
  return true;
}

bool tl_rspec_add(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, bool subtract, tl_rspec_value *out) {
  if (a.is_const && b.is_const) return false;
  tl_rspec_value r = {.is_whole = a.is_whole && b.is_whole};
  r.dtype = unify(&a, &b);
  r.lo = subtract ? a.lo - b.hi : a.lo + b.lo;
  r.hi = subtract ? a.hi - b.lo : a.hi + b.hi;
  write2(spec, subtract ? "(%s - %s)" : "(%s + %s)", a, b, &r);
  return finish(r, a.err + b.err, out);
}

bool tl_rspec_multiply(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out) {
  if (a.is_const && b.is_const) return false;
  tl_rspec_value r = {.is_whole = a.is_whole && b.is_whole};
  r.dtype = unify(&a, &b);
  double p = a.lo * b.lo, q = a.lo * b.hi, s = a.hi * b.lo, t = a.hi * b.hi;
  r.lo = fmin(fmin(p, q), fmin(s, t));
  r.hi = fmax(fmax(p, q), fmax(s, t));
  write2(spec, "%s * %s", a, b, &r);
  r.body = tl_rspec_text(spec, "(%s)", r.body);
  r.reference = tl_rspec_text(spec, "(%s)", r.reference);
  return finish(r, tl_rspec_max_abs(&a) * b.err + tl_rspec_max_abs(&b) * a.err + a.err * b.err, out);
}

bool tl_rspec_divide(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out) {
  double least = fmin(fabs(b.lo), fabs(b.hi)) - b.err;
  if (a.is_const && b.is_const) return false;
  if (b.lo <= 0 && b.hi >= 0) return false;
  if (least < 0.1) return false;
  tl_rspec_value r = {.dtype = TL_DTYPE_F32};
  if (tl_dtype_is_float(tl_rspec_promote(&a, &b))) {
    r.dtype = unify(&a, &b);
  } else {
    a = tl_rspec_stored(a, TL_DTYPE_F32);
    b = tl_rspec_stored(b, TL_DTYPE_F32);
  }
  double p = a.lo / b.lo, q = a.lo / b.hi, s = a.hi / b.lo, t = a.hi / b.hi;
  r.lo = fmin(fmin(p, q), fmin(s, t));
  r.hi = fmax(fmax(p, q), fmax(s, t));
  write2(spec, "(%s / %s)", a, b, &r);
  double err = a.err / least + tl_rspec_max_abs(&a) * b.err / (least * least);
  // Approximate division, or one by a reciprocal: two units more.
  return finish(r, err + 2 * tl_rspec_rounding(r.dtype, tl_rspec_max_abs(&r), false) + 0x1p-22 * tl_rspec_max_abs(&r),
                out);
}

bool tl_rspec_min_max(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, bool is_max, tl_rspec_value *out) {
  if (a.is_const && b.is_const) return false;
  tl_rspec_value r = {.is_whole = a.is_whole && b.is_whole};
  r.dtype = unify(&a, &b);
  r.lo = is_max ? fmax(a.lo, b.lo) : fmin(a.lo, b.lo);
  r.hi = is_max ? fmax(a.hi, b.hi) : fmin(a.hi, b.hi);
  r.err = fmax(a.err, b.err);
  write2(spec, is_max ? "max(%s, %s)" : "min(%s, %s)", a, b, &r);
  if (!is_fine(&r)) return false;
  *out = r;
  return true;
}

bool tl_rspec_choose_between(tl_rspec *spec, tl_rspec_value condition, tl_rspec_value a, tl_rspec_value b,
                             bool as_function, tl_rspec_value *out) {
  tl_rspec_value r = {.is_whole = a.is_whole && b.is_whole, .lo = fmin(a.lo, b.lo), .hi = fmax(a.hi, b.hi)};
  if (a.is_const && b.is_const) return false;
  r.dtype = unify(&a, &b);
  r.err = fmax(a.err, b.err);
  if (as_function) {
    r.body = tl_rspec_text(spec, "select(%s, %s, %s)", condition.body, a.body, b.body);
    r.reference = tl_rspec_text(spec, "select(%s, %s, %s)", condition.reference, a.reference, b.reference);
  } else {
    r.body = tl_rspec_text(spec, "(%s if %s else %s)", a.body, condition.body, b.body);
    r.reference = tl_rspec_text(spec, "(%s if %s else %s)", a.reference, condition.reference, b.reference);
  }
  if (!is_fine(&r)) return false;
  *out = r;
  return true;
}

bool tl_rspec_cast(tl_rspec *spec, tl_rspec_value a, tl_dtype dtype, tl_rspec_value *out) {
  if (a.is_const) return false;
  if (!tl_dtype_is_float(dtype)) {
    // Towards zero: only where the value has no error. Whole numbers may have to fit.
    bool fits = a.lo >= (double)tl_dtype_int_min(dtype) && a.hi <= (double)tl_dtype_int_max(dtype);
    if (a.err != 0 || !fits) return false;
    tl_rspec_value r = {.dtype = dtype, .lo = trunc(a.lo), .hi = trunc(a.hi), .is_whole = true};
    r.body = tl_rspec_text(spec, "cast(%s, %s)", a.body, tl_dtype_name(dtype));
    r.reference = tl_rspec_text(spec, "cast(%s, %s)", a.reference, tl_dtype_name(dtype));
    *out = r;
    return true;
  }
  tl_rspec_value r = tl_rspec_stored(a, dtype);
  r.body = tl_rspec_text(spec, "cast(%s, %s)", a.body, tl_dtype_name(dtype));
  if (!tl_dtype_is_float(a.dtype)) r.reference = tl_rspec_text(spec, "cast(%s, f64)", a.reference);
  if (!is_fine(&r)) return false;
  *out = r;
  return true;
}
