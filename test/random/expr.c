// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random expressions: each step draws an operation, and keeps the operand where the operation does not suit.
#include "test/random/expr.h"

#include <math.h>

static tl_rspec_value leaf(tl_rspec *spec, const tl_rspec_values *leaves) {
  return leaves->items[tl_rspec_choose(spec->choices, leaves->len)];
}

static bool is_int(const tl_rspec_value *value) {
  return !tl_dtype_is_float(value->dtype);
}

// Values that may be compared: no error, and exact in the dtype of the comparison.
static bool comparable(tl_rspec_value a, tl_rspec_value b) {
  if (a.err != 0 || b.err != 0 || (a.is_const && b.is_const)) return false;
  tl_dtype dtype = tl_rspec_promote(&a, &b);
  tl_rspec_value x = tl_rspec_stored(a, dtype), y = tl_rspec_stored(b, dtype);
  return (x.err == 0 || a.is_const) && (y.err == 0 || b.is_const);
}

static bool comparison(tl_rspec *spec, const tl_rspec_values *leaves, tl_rspec_value *out) {
  static const char *const signs[] = {"<", ">=", "==", "!=", ">", "<="};
  tl_rspec_value a = leaf(spec, leaves), b;
  if (is_int(&a) && tl_rspec_maybe(spec->choices, 40)) {
    int64_t divisor = tl_rspec_pick(spec->choices, 2, 3, 5, 8);
    a.body = tl_rspec_text(spec, "%s %% %d", a.body, (int)divisor);
    a.reference = tl_rspec_text(spec, "%s %% %d", a.reference, (int)divisor);
    a.lo = 0;
    a.hi = (double)divisor - 1;
    if (tl_dtype_bits(a.dtype) < 32) a.dtype = TL_DTYPE_I32;
  }
  if (tl_rspec_maybe(spec->choices, 40)) {
    b = leaf(spec, leaves);
  } else {
    b = tl_rspec_constant(spec, 3, is_int(&a));
  }
  const char *sign = signs[tl_rspec_choose(spec->choices, 6)];
  if (!comparable(a, b)) return false;
  *out = tl_rspec_exact(tl_rspec_text(spec, "%s %s %s", a.body, sign, b.body),
                        tl_rspec_text(spec, "%s %s %s", a.reference, sign, b.reference), TL_DTYPE_BOOL, 0, 1, true);
  if (tl_rspec_maybe(spec->choices, 10) && !b.is_const) {
    out->body = tl_rspec_text(spec, "-2 <= %s", out->body);
    out->reference = tl_rspec_text(spec, "-2 <= %s", out->reference);
  }
  return true;
}

bool tl_rspec_condition(tl_rspec *spec, const tl_rspec_values *leaves, tl_rspec_value *out) {
  if (!comparison(spec, leaves, out)) return false;
  tl_rspec_value second;
  switch (tl_rspec_choose(spec->choices, 6)) {
    case 3:
      if (!comparison(spec, leaves, &second)) return true;
      out->body = tl_rspec_text(spec, "(%s and %s)", out->body, second.body);
      out->reference = tl_rspec_text(spec, "(%s and %s)", out->reference, second.reference);
      break;
    case 4:
      if (!comparison(spec, leaves, &second)) return true;
      out->body = tl_rspec_text(spec, "(%s or not %s)", out->body, second.body);
      out->reference = tl_rspec_text(spec, "(%s or not %s)", out->reference, second.reference);
      break;
    case 5:
      out->body = tl_rspec_text(spec, "not %s", out->body);
      out->reference = tl_rspec_text(spec, "not %s", out->reference);
      break;
    default:
      break;
  }
  return true;
}

// popcount, clz and dp4a. What the reference takes for an integer of 64 bits without a dtype gets the body's.
static bool bits_step(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  static const char *const before[] = {"popcount(", "clz(", "dp4a("}, *const after[] = {")", ")", ", 0x01020304, 5)"};
  uint32_t kind = tl_rspec_choose(spec->choices, 3);
  tl_rspec_value r = {.dtype = TL_DTYPE_I32, .is_whole = true};
  tl_dtype dtype = tl_dtype_bits(a.dtype) < 32 ? TL_DTYPE_I32 : a.dtype;
  if (!is_int(&a) || a.is_const || (kind == 2 && tl_dtype_bits(dtype) > 32)) return false;
  r.lo = kind == 2 ? -1275 : 0;
  r.hi = kind == 2 ? 2555 : 64;
  r.body = tl_rspec_text(spec, "%s%s%s", before[kind], a.body, after[kind]);
  r.reference = tl_rspec_text(spec, "%scast(%s, %s)%s", before[kind], a.reference, tl_dtype_name(dtype), after[kind]);
  *out = r;
  return true;
}

// Integer operations that floats do not have.
static bool integer_step(tl_rspec *spec, tl_rspec_value a, tl_rspec_value b, tl_rspec_value *out) {
  static const char *const formats[] = {"(%s // %d)", "(%s %% %d)", "(%s >> %d)", "(%s & %d)", "(%s << %d)"};
  uint32_t kind = tl_rspec_choose(spec->choices, 8);
  int number = (int)tl_rspec_pick(spec->choices, 2, 3, 7, 1, 5);
  if (!is_int(&a) || a.is_const) return false;
  tl_rspec_value r = {.dtype = tl_dtype_bits(a.dtype) < 32 ? TL_DTYPE_I32 : a.dtype, .is_whole = true};
  if (kind < 5) {
    double scale = ldexp(1, number);
    if (kind == 0) r.lo = floor(a.lo / number), r.hi = floor(a.hi / number);
    if (kind == 1) r.lo = 0, r.hi = number - 1;
    if (kind == 2) r.lo = floor(a.lo / scale), r.hi = floor(a.hi / scale);
    if (kind == 3) r.lo = 0, r.hi = number;
    if (kind == 4) r.lo = a.lo * scale, r.hi = a.hi * scale;
    if (tl_rspec_max_abs(&r) > 0x1p28) return false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    r.body = tl_rspec_text(spec, formats[kind], a.body, number);
    r.reference = tl_rspec_text(spec, formats[kind], a.reference, number);
#pragma GCC diagnostic pop
    *out = r;
    return true;
  }
  if (kind == 5) {
    r.lo = -a.hi - 1;
    r.hi = -a.lo - 1;
    r.body = tl_rspec_text(spec, "~%s", a.body);
    r.reference = tl_rspec_text(spec, "~%s", a.reference);
    if (tl_dtype_is_unsigned_int(a.dtype)) return false;
    *out = r;
    return true;
  }
  if (!is_int(&b) || b.is_const) return false;
  double size = exp2(ceil(log2(fmax(tl_rspec_max_abs(&a), tl_rspec_max_abs(&b)) + 2)));
  r.dtype = tl_rspec_promote(&a, &b);
  r.lo = a.lo < 0 || b.lo < 0 ? -size : 0;
  r.hi = size;
  const char *sign = kind == 6 ? "^" : "|";
  r.body = tl_rspec_text(spec, "(%s %s %s)", a.body, sign, b.body);
  r.reference = tl_rspec_text(spec, "(%s %s %s)", a.reference, sign, b.reference);
  if (size > 0x1p28) return false;
  *out = r;
  return true;
}

static bool fma_step(tl_rspec *spec, const tl_rspec_values *leaves, tl_rspec_value a, tl_rspec_value *out) {
  tl_rspec_value b = leaf(spec, leaves), c = leaf(spec, leaves), product, sum;
  if (is_int(&a) || is_int(&b) || is_int(&c) || a.dtype != b.dtype || b.dtype != c.dtype) return false;
  if (a.is_const || !tl_rspec_multiply(spec, a, b, &product) || !tl_rspec_add(spec, product, c, false, &sum)) {
    return false;
  }
  sum.body = tl_rspec_text(spec, "fma(%s, %s, %s)", a.body, b.body, c.body);
  sum.reference = tl_rspec_text(spec, "fma(%s, %s, %s)", a.reference, b.reference, c.reference);
  *out = sum;
  return true;
}

static bool power_step(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  bool cube = tl_rspec_choose(spec->choices, 2) == 1;
  tl_rspec_value r;
  if (a.is_const || is_int(&a) || !tl_rspec_multiply(spec, a, a, &r)) return false;
  if (cube && !tl_rspec_multiply(spec, r, a, &r)) return false;
  r.body = tl_rspec_text(spec, "(%s ** %d)", a.body, cube ? 3 : 2);
  r.reference = tl_rspec_text(spec, "(%s ** %d)", a.reference, cube ? 3 : 2);
  r.err *= 2;
  *out = r;
  return true;
}

static bool cast_step(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_I32,
                                    TL_DTYPE_F64, TL_DTYPE_I64, TL_DTYPE_I16};
  return tl_rspec_cast(spec, a, dtypes[tl_rspec_choose(spec->choices, 7)], out);
}

static bool negate(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  if (a.is_const || tl_dtype_is_unsigned_int(a.dtype)) return false;
  tl_rspec_value r = a;
  r.lo = -a.hi;
  r.hi = -a.lo;
  if (is_int(&a) && tl_dtype_bits(a.dtype) < 32) r.dtype = TL_DTYPE_I32;
  r.body = tl_rspec_text(spec, "(-%s)", a.body);
  r.reference = tl_rspec_text(spec, "(-%s)", a.reference);
  *out = r;
  return true;
}

static bool clamp_step(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  int limit = 1 + (int)tl_rspec_choose(spec->choices, 4);
  if (a.is_const) return false;
  tl_rspec_value r = a;
  if (is_int(&a) && tl_dtype_bits(a.dtype) < 32) r.dtype = TL_DTYPE_I32;
  r.lo = fmin(fmax(a.lo, -limit), limit + 1);
  r.hi = fmin(fmax(a.hi, -limit), limit + 1);
  r.body = tl_rspec_text(spec, "clamp(%s, -%d, %d)", a.body, limit, limit + 1);
  r.reference = tl_rspec_text(spec, "clamp(%s, -%d, %d)", a.reference, limit, limit + 1);
  *out = r;
  return true;
}

static tl_rspec_value operand(tl_rspec *spec, const tl_rspec_values *leaves, int depth) {
  if (depth <= 0 || tl_rspec_choose(spec->choices, 3) == 0) return leaf(spec, leaves);
  return tl_rspec_expression(spec, leaves, depth);
}

tl_rspec_value tl_rspec_expression(tl_rspec *spec, const tl_rspec_values *leaves, int depth) {
  uint32_t kind = tl_rspec_choose(spec->choices, 18);
  tl_rspec_value a = operand(spec, leaves, depth - 1), b, condition, r = a;
  switch (kind) {
    case 0:
      break;
    case 1:
    case 2:
      tl_rspec_add(spec, a, operand(spec, leaves, depth - 1), kind == 2, &r);
      break;
    case 3:
    case 4:
      tl_rspec_multiply(spec, a, operand(spec, leaves, depth - 1), &r);
      break;
    case 5:
      tl_rspec_divide(spec, a, operand(spec, leaves, depth - 1), &r);
      break;
    case 6:
      tl_rspec_multiply(spec, a, tl_rspec_constant(spec, 3, is_int(&a)), &r);
      break;
    case 7:
      tl_rspec_add(spec, tl_rspec_constant(spec, 4, is_int(&a)), a, tl_rspec_choose(spec->choices, 2) == 1, &r);
      break;
    case 8:
      b = operand(spec, leaves, depth - 1);
      tl_rspec_min_max(spec, a, b, tl_rspec_choose(spec->choices, 2) == 1, &r);
      break;
    case 9:
      b = operand(spec, leaves, depth - 1);
      if (tl_rspec_condition(spec, leaves, &condition)) {
        tl_rspec_choose_between(spec, condition, a, b, tl_rspec_choose(spec->choices, 2) == 0, &r);
      }
      break;
    case 10:
      cast_step(spec, a, &r);
      break;
    case 11:
      integer_step(spec, a, leaf(spec, leaves), &r);
      break;
    case 12:
      fma_step(spec, leaves, a, &r);
      break;
    case 13:
      power_step(spec, a, &r);
      break;
    case 14:
      if (tl_rspec_choose(spec->choices, 2) == 0) {
        clamp_step(spec, a, &r);
      } else {
        negate(spec, a, &r);
      }
      break;
    default:
      if (is_int(&a) && kind == 16) {
        bits_step(spec, a, &r);
      } else if (is_int(&a) && kind == 17) {
        integer_step(spec, a, leaf(spec, leaves), &r);
      } else {
        tl_rspec_apply(spec, a, &r);
      }
      break;
  }
  return r;
}
