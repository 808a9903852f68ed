// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The x86-64 backend passes half and bfloat in the low 16 bits of an xmm register (x86-64 psABI, _Float16 and __bf16).
// The compilers that build us have no portable type for that, but a float travels in the same register: the wrappers
// below take and return floats whose low 16 bits are the value.
#include "llvm_backend/jit/host_libcalls.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to odd: the result of a second rounding to at most 22 bits of mantissa is then as if rounded once.
static float round_to_odd(double value) {
  float near = (float)value;
  if (!isfinite(value)) return near;
  if (!isfinite(near)) return near;  // beyond the range of float is beyond the range of half and of bfloat
  if ((double)near == value) return near;
  uint32_t bits = bits_of(near);
  if (fabs((double)near) > fabs(value)) bits -= 1;
  return float_of(bits | 1);
}

uint16_t tl_host_f32_to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t tl_host_f64_to_bf16(double value) {
  return tl_host_f32_to_bf16(round_to_odd(value));
}

uint16_t tl_host_f32_to_f16(float value) {
  uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal halves are multiples of 2^-24: adding 0.5 makes the float adder round at exactly that place.
    float shifted = float_of(magnitude) + 0.5f;
    return (uint16_t)(sign | (bits_of(shifted) - 0x3f000000u));
  }
  return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13));
}

uint16_t tl_host_f64_to_f16(double value) {
  return tl_host_f32_to_f16(round_to_odd(value));
}

float tl_host_bf16_to_f32(uint16_t bits) {
  return float_of((uint32_t)bits << 16);
}

float tl_host_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
  return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

static float call_truncsfhf2(float value) {
  return float_of(tl_host_f32_to_f16(value));
}
static float call_truncdfhf2(double value) {
  return float_of(tl_host_f64_to_f16(value));
}
static float call_truncsfbf2(float value) {
  return float_of(tl_host_f32_to_bf16(value));
}
static float call_truncdfbf2(double value) {
  return float_of(tl_host_f64_to_bf16(value));
}
static float call_extendhfsf2(float half) {
  return tl_host_f16_to_f32((uint16_t)bits_of(half));
}

#define TL_SYMBOL(function) \
  { #function, (void *)(function) }

// What host modules call by name, and what LLVM makes of it: InstCombine turns pow(10, x) into exp10, pow(2, i) and
// exp2(i) of an integer into ldexp, memcmp(…) == 0 into bcmp; instruction selection joins sin and cos of one argument
// into sincos; loops that fill or copy memory become memset, memcpy and memmove; wide integers and powi have helpers
// of their own, which nothing here uses. So a function is listed in both widths as soon as one is called.
static const tl_host_symbol libcalls[] = {
    {"__truncsfhf2", (void *)call_truncsfhf2},
    {"__truncdfhf2", (void *)call_truncdfhf2},
    {"__truncsfbf2", (void *)call_truncsfbf2},
    {"__truncdfbf2", (void *)call_truncdfbf2},
    {"__extendhfsf2", (void *)call_extendhfsf2},
    TL_SYMBOL(memcpy),
    TL_SYMBOL(memmove),
    TL_SYMBOL(memset),
    TL_SYMBOL(memcmp),
    TL_SYMBOL(bcmp),
    // double
    TL_SYMBOL(acos),
    TL_SYMBOL(acosh),
    TL_SYMBOL(asin),
    TL_SYMBOL(asinh),
    TL_SYMBOL(atan),
    TL_SYMBOL(atan2),
    TL_SYMBOL(atanh),
    TL_SYMBOL(cbrt),
    TL_SYMBOL(ceil),
    TL_SYMBOL(copysign),
    TL_SYMBOL(cos),
    TL_SYMBOL(cosh),
    TL_SYMBOL(erf),
    TL_SYMBOL(erfc),
    TL_SYMBOL(exp),
    TL_SYMBOL(exp10),
    TL_SYMBOL(exp2),
    TL_SYMBOL(expm1),
    TL_SYMBOL(fabs),
    TL_SYMBOL(floor),
    TL_SYMBOL(fma),
    TL_SYMBOL(fmax),
    TL_SYMBOL(fmin),
    TL_SYMBOL(fmod),
    TL_SYMBOL(frexp),
    TL_SYMBOL(hypot),
    TL_SYMBOL(ilogb),
    TL_SYMBOL(ldexp),
    TL_SYMBOL(log),
    TL_SYMBOL(logb),
    TL_SYMBOL(log10),
    TL_SYMBOL(log1p),
    TL_SYMBOL(log2),
    TL_SYMBOL(modf),
    TL_SYMBOL(nearbyint),
    TL_SYMBOL(pow),
    TL_SYMBOL(remainder),
    TL_SYMBOL(rint),
    TL_SYMBOL(round),
    TL_SYMBOL(roundeven),
    TL_SYMBOL(sin),
    TL_SYMBOL(sincos),
    TL_SYMBOL(sinh),
    TL_SYMBOL(sqrt),
    TL_SYMBOL(tan),
    TL_SYMBOL(tanh),
    TL_SYMBOL(tgamma),
    TL_SYMBOL(trunc),
    // float
    TL_SYMBOL(acosf),
    TL_SYMBOL(acoshf),
    TL_SYMBOL(asinf),
    TL_SYMBOL(asinhf),
    TL_SYMBOL(atanf),
    TL_SYMBOL(atan2f),
    TL_SYMBOL(atanhf),
    TL_SYMBOL(cbrtf),
    TL_SYMBOL(ceilf),
    TL_SYMBOL(copysignf),
    TL_SYMBOL(cosf),
    TL_SYMBOL(coshf),
    TL_SYMBOL(erff),
    TL_SYMBOL(erfcf),
    TL_SYMBOL(expf),
    TL_SYMBOL(exp10f),
    TL_SYMBOL(exp2f),
    TL_SYMBOL(expm1f),
    TL_SYMBOL(fabsf),
    TL_SYMBOL(floorf),
    TL_SYMBOL(fmaf),
    TL_SYMBOL(fmaxf),
    TL_SYMBOL(fminf),
    TL_SYMBOL(fmodf),
    TL_SYMBOL(frexpf),
    TL_SYMBOL(hypotf),
    TL_SYMBOL(ilogbf),
    TL_SYMBOL(ldexpf),
    TL_SYMBOL(logf),
    TL_SYMBOL(logbf),
    TL_SYMBOL(log10f),
    TL_SYMBOL(log1pf),
    TL_SYMBOL(log2f),
    TL_SYMBOL(modff),
    TL_SYMBOL(nearbyintf),
    TL_SYMBOL(powf),
    TL_SYMBOL(remainderf),
    TL_SYMBOL(rintf),
    TL_SYMBOL(roundf),
    TL_SYMBOL(roundevenf),
    TL_SYMBOL(sinf),
    TL_SYMBOL(sincosf),
    TL_SYMBOL(sinhf),
    TL_SYMBOL(sqrtf),
    TL_SYMBOL(tanf),
    TL_SYMBOL(tanhf),
    TL_SYMBOL(truncf),
};

const tl_host_symbol *tl_host_libcalls(size_t *out_count) {
  *out_count = sizeof libcalls / sizeof libcalls[0];
  return libcalls;
}
