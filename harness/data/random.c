// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/random.h"

#include <math.h>

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits.
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static uint64_t mix_text(uint64_t state, tl_str text) {
  for (size_t i = 0; i < text.len; i++) state = mix(state + (uint8_t)text.data[i] + UINT64_C(0x9e3779b97f4a7c15));
  return mix(state + text.len);
}

uint64_t tl_random_key(uint64_t seed, tl_str kernel, tl_str argument) {
  return mix_text(mix_text(mix(seed + UINT64_C(0x9e3779b97f4a7c15)), kernel), argument);
}

uint64_t tl_random_bits(uint64_t key, uint64_t index) {
  return mix(key ^ mix(index * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0xd1b54a32d192ed03)));
}

double tl_random_uniform(uint64_t key, uint64_t index) {
  return (double)(tl_random_bits(key, index) >> 11) * 0x1p-53;
}

uint64_t tl_random_below(uint64_t key, uint64_t index, uint64_t count) {
  uint64_t bits = tl_random_bits(key, index);
  if (count == 0) return bits;
  // The high half of a product: biased by at most count / 2^64.
  return (uint64_t)(((unsigned __int128)bits * count) >> 64);
}

// log(x) for normal x > 0 from operations that IEEE 754 rounds exactly; libm's differ in the last bit. Accurate to a
// few ulp.
static double exact_log(double x) {
  int exponent;
  double m = frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2;
    exponent--;
  }
  // log(m) = 2 atanh(s); |s| <= 0.1716, so that 12 terms leave less than 1e-20.
  double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * s2;
  double high = exponent * 0.693147180369123816490, low = exponent * 1.90821492927058770002e-10;
  return high + (low + 2 * s * (1 + sum));
}

static double rational(const double *numerator, const double *denominator, double x) {
  double n = numerator[7], d = denominator[7];
  for (int i = 6; i >= 0; i--) {
    n = n * x + numerator[i];
    d = d * x + denominator[i];
  }
  return n / d;
}

double tl_normal_quantile(double p) {
  static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                              1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                              3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static const double b[8] = {1.0,
                              4.2313330701600911252e+1,
                              6.8718700749205790830e+2,
                              5.3941960214247511077e+3,
                              2.1213794301586595867e+4,
                              3.9307895800092710610e+4,
                              2.8729085735721942674e+4,
                              5.2264952788528545610e+3};
  static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                              3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double d[8] = {1.0,
                              2.05319162663775882187e0,
                              1.67638483018380384940e0,
                              6.89767334985100004550e-1,
                              1.48103976427480074590e-1,
                              1.51986665636164571966e-2,
                              5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
  static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                              2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                              2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static const double f[8] = {1.0,
                              5.99832206555887937690e-1,
                              1.36929880922735805310e-1,
                              1.48753612908506148525e-2,
                              7.86869131145613259100e-4,
                              1.84631831751005468180e-5,
                              1.42151175831644588870e-7,
                              2.04426310338993978564e-15};
  double q = p - 0.5;
  if (fabs(q) <= 0.425) return q * rational(a, b, 0.180625 - q * q);
  double r = sqrt(-exact_log(q < 0 ? p : 1 - p));
  double value = r <= 5 ? rational(c, d, r - 1.6) : rational(e, f, r - 5);
  return q < 0 ? -value : value;
}

double tl_random_normal(uint64_t key, uint64_t index) {
  // The middle of one of 2^52 intervals: never 0 or 1, symmetric.
  double p = ((double)(tl_random_bits(key, index) >> 12) + 0.5) * 0x1p-52;
  return tl_normal_quantile(p);
}
