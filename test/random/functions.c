// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of one float (the others of pow and atan2 being constants): where they are used, their values, and how they
// carry errors on.
#include <math.h>

#include "test/random/value.h"

static double f_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double f_silu(double x) {
  return x / (1 + exp(-x));
}
static double f_gelu(double x) {
  return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}
static double f_relu(double x) {
  return fmax(x, 0);
}
static double f_softplus(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double f_rsqrt(double x) {
  return 1 / sqrt(x);
}
static double f_rcp(double x) {
  return 1 / x;
}
static double f_exp10(double x) {
  return exp(x * M_LN10);
}
static double f_sign(double x) {
  return (x > 0) - (x < 0);
}

static double f_hypot_by(double x) {
  return hypot(x, 0.75);
}
static double f_atan2_by(double x) {
  return atan2(x, 0.75);
}
static double f_atan2_of(double x) {
  return atan2(0.75, x);
}
static double f_pow(double x) {
  return pow(x, 1.25);
}
static double f_inverse_pow(double x) {
  return pow(x, -0.75);
}
static double f_power_of(double x) {
  return pow(1.5, x);
}

typedef struct function {
  const char *before, *after;  // the argument
  double lo, hi;               // the arguments used
  double (*value)(double);
  bool is_exact;  // no rounding of its own
  bool steps;     // not continuous: only for arguments without error
} function;

static const function functions[] = {
    {"abs(", ")", -1000, 1000, fabs, true, false},
    {"relu(", ")", -1000, 1000, f_relu, true, false},
    {"exp(", ")", -8, 4, exp, false, false},
    {"exp2(", ")", -10, 6, exp2, false, false},
    {"log(", ")", 0.1, 1000, log, false, false},
    {"log2(", ")", 0.1, 1000, log2, false, false},
    {"sqrt(", ")", 0.01, 1000, sqrt, false, false},
    {"rsqrt(", ")", 0.05, 1000, f_rsqrt, false, false},
    {"rcp(", ")", 0.1, 1000, f_rcp, false, false},
    {"tanh(", ")", -20, 20, tanh, false, false},
    {"sigmoid(", ")", -20, 20, f_sigmoid, false, false},
    {"silu(", ")", -20, 20, f_silu, false, false},
    {"gelu(", ")", -10, 10, f_gelu, false, false},
    {"softplus(", ")", -20, 20, f_softplus, false, false},
    {"erf(", ")", -10, 10, erf, false, false},
    {"exp10(", ")", -4, 2, f_exp10, false, false},
    {"log10(", ")", 0.1, 1000, log10, false, false},
    {"log1p(", ")", -0.5, 1000, log1p, false, false},
    {"expm1(", ")", -6, 4, expm1, false, false},
    {"floor(", ")", -1000, 1000, floor, true, true},
    {"ceil(", ")", -1000, 1000, ceil, true, true},
    {"trunc(", ")", -1000, 1000, trunc, true, true},
    {"round(", ")", -1000, 1000, nearbyint, true, true},
    {"sign(", ")", -1000, 1000, f_sign, true, true},
    {"sin(", ")", -20, 20, sin, false, false},
    {"cos(", ")", -20, 20, cos, false, false},
    {"tan(", ")", -1.25, 1.25, tan, false, false},
    {"sinh(", ")", -4, 4, sinh, false, false},
    {"cosh(", ")", -4, 4, cosh, false, false},
    {"atan(", ")", -1000, 1000, atan, false, false},
    {"asin(", ")", -0.96875, 0.96875, asin, false, false},
    {"acos(", ")", -0.96875, 0.96875, acos, false, false},
    {"asinh(", ")", -1000, 1000, asinh, false, false},
    {"acosh(", ")", 1.125, 1000, acosh, false, false},
    {"atanh(", ")", -0.875, 0.875, atanh, false, false},
    {"cbrt(", ")", 0.05, 1000, cbrt, false, false},
    {"hypot(", ", 0.75)", -900, 900, f_hypot_by, false, false},
    {"atan2(", ", 0.75)", -1000, 1000, f_atan2_by, false, false},
    {"atan2(0.75, ", ")", -1000, 1000, f_atan2_of, false, false},
    {"pow(", ", 1.25)", 0.05, 200, f_pow, false, false},
    {"pow(", ", -0.75)", 0.1, 1000, f_inverse_pow, false, false},
    {"(1.5 ** ", ")", -12, 12, f_power_of, false, false},
};

enum { SAMPLES = 128, NUM_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

// The range of f over [lo, hi], widened by what lies between the samples, and a bound of its slope there.
static void sample(const function *f, double lo, double hi, double *out_lo, double *out_hi, double *out_slope) {
  double step = (hi - lo) / SAMPLES, slope = 0, least = f->value(lo), most = least;
  for (int i = 0; i <= SAMPLES; i++) {
    double x = lo + step * i, y = f->value(x), h = 1e-5 * (1 + fabs(x));
    least = fmin(least, y);
    most = fmax(most, y);
    double forward = fabs(f->value(x + h) - y) / h, backward = fabs(y - f->value(x - h)) / h;
    slope = fmax(slope, fmax(isfinite(forward) ? forward : 0, isfinite(backward) ? backward : 0));
  }
  *out_lo = least - (f->steps ? 1 : slope * step);
  *out_hi = most + (f->steps ? 1 : slope * step);
  *out_slope = slope * 1.1;
}

bool tl_rspec_apply(tl_rspec *spec, tl_rspec_value a, tl_rspec_value *out) {
  const function *f = &functions[tl_rspec_choose(spec->choices, NUM_FUNCTIONS)];
  if (a.is_const || a.lo - a.err < f->lo || a.hi + a.err > f->hi) return false;
  bool is_int = !tl_dtype_is_float(a.dtype);
  if (is_int && f->value != fabs) a = tl_rspec_stored(a, TL_DTYPE_F32);
  if (f->steps && (a.err != 0 || is_int)) return false;
  tl_rspec_value r = {.dtype = a.dtype, .is_whole = f->steps || (f->is_exact && a.is_whole)};
  if (is_int && f->value == fabs && tl_dtype_bits(a.dtype) < 32) r.dtype = TL_DTYPE_I32;
  double slope;
  sample(f, a.lo - a.err, a.hi + a.err, &r.lo, &r.hi, &slope);
  double size = tl_rspec_max_abs(&r);
  r.err = f->steps ? 0 : slope * a.err;
  if (!f->is_exact) {
    r.err += 2 * tl_rspec_rounding(r.dtype, size, false) + 0x1p-20 * size + 0x1p-20;
    if (spec->is_fast) r.err += 0x1p-9 * size + 0x1p-16;
  }
  if (size > 1000 || r.err > 0.02 * fmax(size, 0.05)) return false;
  r.body = tl_rspec_text(spec, "%s%s%s", f->before, a.body, f->after);
  r.reference = tl_rspec_text(spec, "%s%s%s", f->before, a.reference, f->after);
  *out = r;
  return true;
}
