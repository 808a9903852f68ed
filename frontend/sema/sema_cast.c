// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Casts with a rounding of their own: cast_up(x, f16) and its kin.
#include "frontend/sema/sema.h"

static tl_sema_value refuse(tl_sema *sema, tl_loc loc, const char *function, const char *reason) {
  tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`%s` %s", function, reason);
  return tl_sema_poison();
}

// To an integer: the whole number that the rounding says, of which a cast takes what fits.
static tl_sema_value to_integer(tl_sema *sema, int mode, tl_value *x, tl_dtype dtype, tl_loc loc) {
  static const int functions[TL_ROUNDING_COUNT] = {[TL_ROUNDING_NEAREST] = TL_MATH_ROUND,
                                                   [TL_ROUNDING_AWAY] = TL_MATH_ROUND_AWAY,
                                                   [TL_ROUNDING_ZERO] = TL_MATH_TRUNC,
                                                   [TL_ROUNDING_UP] = TL_MATH_CEIL,
                                                   [TL_ROUNDING_DOWN] = TL_MATH_FLOOR};
  sema->builder.loc = loc;
  tl_sema_value whole = tl_sema_of_value(tl_build_math(&sema->builder, functions[mode], x));
  return tl_sema_of_value(tl_sema_to_dtype(sema, &whole, dtype, loc));
}

static bool holds_all_of(tl_dtype wide, tl_dtype narrow) {
  return tl_dtype_mantissa_bits(wide) >= tl_dtype_mantissa_bits(narrow) &&
         tl_dtype_exponent_bits(wide) >= tl_dtype_exponent_bits(narrow);
}

// The number as f32 or f64, exactly; NULL after a report.
static tl_value *exact_float(tl_sema *sema, const char *function, const tl_sema_value *x, tl_loc loc) {
  if (x->kind == TL_SEMA_CONST) return tl_sema_to_dtype(sema, x, TL_DTYPE_F64, loc);
  const tl_type *type = x->value->type;
  if (type->kind == TL_TYPE_SCALAR && tl_dtype_is_float(type->dtype)) {
    bool is_f64 = type->dtype == TL_DTYPE_F64;
    return tl_sema_to_dtype(sema, x, is_f64 ? TL_DTYPE_F64 : TL_DTYPE_F32, loc);
  }
  if (type->kind == TL_TYPE_SCALAR && tl_dtype_bits(type->dtype) == 64) {
    refuse(sema, loc, function, "takes integers of 32 bits and fewer: f64 does not hold all of 64");
    return NULL;
  }
  return tl_sema_to_dtype(sema, x, TL_DTYPE_F64, loc);
}

static tl_value *random_bits(tl_sema *sema, const char *function, const tl_sema_value *bits, tl_loc loc) {
  bool fits = tl_sema_is_integer(bits);
  if (fits && bits->kind == TL_SEMA_VALUE && bits->value->type->kind == TL_TYPE_SCALAR)
    fits = tl_dtype_bits(bits->value->type->dtype) == 32;
  if (fits) return tl_sema_to_dtype(sema, bits, TL_DTYPE_U32, loc);
  refuse(sema, loc, function, "takes 32 random bits, a u32 or an i32");
  return NULL;
}

tl_sema_value tl_sema_rounded_cast(tl_sema *sema, tl_function function, const tl_sema_value *args, tl_loc loc) {
  const char *name = tl_function_info_of(function)->name;
  int mode = tl_function_rounding(function);
  tl_dtype dtype = args[1].constant.dtype;
  bool is_stochastic = mode == TL_ROUNDING_STOCHASTIC, is_float = tl_dtype_is_float(dtype);
  if (dtype == TL_DTYPE_BOOL) return refuse(sema, loc, name, "is to numbers: a bool is no rounding of one");
  if (is_stochastic && !is_float)
    return refuse(sema, loc, name,
                  "is to floats: of an integer it is `cast(floor(x + u), dtype)` with u from 0 up to 1");
  tl_value *bits = is_stochastic ? random_bits(sema, name, &args[2], loc) : NULL;
  if (is_stochastic && !bits) return tl_sema_poison();
  bool of_float = tl_sema_is_float(&args[0]);
  if (args[0].kind == TL_SEMA_CONST && !is_float) {  // also what the integer does not hold, which wraps as in a cast
    const tl_const pair[2] = {args[0].constant, args[1].constant};
    tl_const folded;
    if (tl_fold_call(function, pair, 2, &folded) != TL_FOLD_OK) return refuse(sema, loc, name, "does not take this");
    sema->builder.loc = loc;
    return tl_sema_of_value(tl_build_const_int(&sema->builder, tl_type_scalar(sema->module, dtype), folded.i));
  }
  if (!of_float && !is_float) return tl_sema_of_value(tl_sema_to_dtype(sema, &args[0], dtype, loc));
  if (is_float && mode == TL_ROUNDING_NEAREST && of_float)
    return tl_sema_of_value(tl_sema_to_dtype(sema, &args[0], dtype, loc));
  tl_value *x = exact_float(sema, name, &args[0], loc);
  if (!x) return tl_sema_poison();
  if (!is_float) return to_integer(sema, mode, x, dtype, loc);
  tl_sema_value exact = tl_sema_of_value(x);
  if (mode == TL_ROUNDING_NEAREST || holds_all_of(dtype, x->type->dtype))
    return tl_sema_of_value(tl_sema_to_dtype(sema, &exact, dtype, loc));
  sema->builder.loc = loc;
  return tl_sema_of_value(tl_build_cast_rounded(&sema->builder, mode, x, bits, tl_type_scalar(sema->module, dtype)));
}
