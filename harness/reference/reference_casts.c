// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Casts with a rounding of their own in references: from the nearest number of the dtype to its neighbour, while
// folding (ir/scalar) rounds the scaled number.
#include <math.h>

#include "harness/reference/reference_calls.h"

static const char *const modes[] = {"nearest", "away", "zero", "up", "down", "stochastic"};
enum { NEAREST, AWAY, ZERO, UP, DOWN, STOCHASTIC, NUM_MODES };

int tl_ref_cast_mode(tl_str name) {
  static const char prefix[] = "cast_";
  if (!tl_str_equal(tl_str_sub(name, 0, sizeof prefix - 1), tl_str_from(prefix))) return -1;
  for (int mode = 0; mode < NUM_MODES; mode++) {
    if (tl_str_is(tl_str_sub(name, sizeof prefix - 1, SIZE_MAX), modes[mode])) return mode;
  }
  return -1;
}

static bool saturates(tl_dtype dtype) {
  return tl_dtype_bits(dtype) <= 8;
}

// The number of the dtype next to `value`, further from 0 or nearer to it.
static double neighbour(tl_dtype dtype, double value, bool further) {
  int unit = dtype == TL_DTYPE_TF32 ? 1 << 13 : 1;
  if (dtype == TL_DTYPE_F64) return nextafter(value, further ? copysign(INFINITY, value) : 0);
  if (further && saturates(dtype) && fabs(value) >= tl_dtype_float_max(dtype)) return value;
  uint64_t memory = 0;
  tl_dtype_store_float(dtype, &memory, 0, value);
  uint64_t bits = tl_dtype_load_bits(dtype, &memory, 0);
  tl_dtype_store_bits(dtype, &memory, 0, further ? bits + (uint64_t)unit : bits - (uint64_t)unit);
  return tl_dtype_load_float(dtype, &memory, 0);
}

static double stochastic(tl_dtype dtype, double value, double below, uint32_t bits) {
  double above = neighbour(dtype, below, true), step = fabs(above) - fabs(below);
  if (!isfinite(above) || step == 0) step = fabs(below) - fabs(neighbour(dtype, below, false));
  double part = (fabs(value) - fabs(below)) / step;
  return part >= 1 - (double)bits * 0x1p-32 ? above : below;
}

double tl_ref_helper_cast(int32_t dtype_number, int32_t mode, double value, uint32_t bits) {
  tl_dtype dtype = (tl_dtype)dtype_number;
  double nearest = tl_dtype_round(dtype, value);
  if (mode == NEAREST || isnan(value) || isinf(value) || nearest == value) return nearest;
  bool is_over = fabs(nearest) > fabs(value);
  // The two numbers that `value` lies between; beyond the largest one, that and infinity, or that alone.
  double below = is_over ? neighbour(dtype, nearest, false) : nearest;
  double above = is_over ? nearest : neighbour(dtype, nearest, true);
  switch (mode) {
    case AWAY:
      return isfinite(above) && fabs(above) - fabs(value) == fabs(value) - fabs(below) ? above : nearest;
    case ZERO:
      return below;
    case UP:
      return value > 0 ? above : below;
    case DOWN:
      return value < 0 ? above : below;
    default:
      return stochastic(dtype, value, below, bits);
  }
}

tl_ref_value tl_ref_rounded_cast(tl_ref_code *code, int mode, tl_ref_value x, tl_dtype dtype,
                                 const tl_ref_value *bits) {
  static const char *const whole[] = {"llvm.roundeven.f64", "llvm.round.f64", "llvm.trunc.f64", "llvm.ceil.f64",
                                      "llvm.floor.f64"};
  if (!tl_dtype_is_float(dtype)) {
    if (x.kind == TL_REF_FLOAT)
      x = tl_ref_op(code, TL_REF_FLOAT, "call double @%s(double %s)", whole[mode < STOCHASTIC ? mode : 0], x.text);
    return tl_ref_cast(code, x, dtype);
  }
  x = tl_ref_to_float(code, x);
  tl_ref_value random = bits ? tl_ref_to_int(code, *bits) : tl_ref_const_int(0);
  random = tl_ref_op(code, TL_REF_INT, "trunc i64 %s to i32", random.text);
  tl_ref_value out = tl_ref_op(code, TL_REF_FLOAT, "call double %%cast_helper(i32 %d, i32 %d, double %s, i32 %s)",
                               (int)dtype, mode, x.text, random.text);
  out.dtype = dtype;
  return out;
}
