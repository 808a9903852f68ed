// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of the expression language in references.
#ifndef TL_HARNESS_REFERENCE_CALLS_H
#define TL_HARNESS_REFERENCE_CALLS_H

#include "harness/reference/reference_internal.h"

bool tl_ref_emit_call(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out);
// Declarations of everything that calls may use.
void tl_ref_declare_functions(tl_strbuf *out);
// The larger (or smaller) of two values; of a NaN and a number the number.
tl_ref_value tl_ref_min_max(tl_ref_code *code, bool is_max, tl_ref_value a, tl_ref_value b);

// Conversion to a dtype as the kernel's `cast` does it: floats round, or truncate and saturate to an integer.
tl_ref_value tl_ref_cast(tl_ref_code *code, tl_ref_value x, tl_dtype dtype);

// ---- reference_philox.c
// philox(seed, counter, word, stream); three arguments or four.
tl_ref_value tl_ref_philox(tl_ref_code *code, const tl_ref_value *args, uint32_t count);
// ---- reference_casts.c: casts with a rounding of their own
// The mode of cast_up and its kin; -1 for other names.
int tl_ref_cast_mode(tl_str name);
tl_ref_value tl_ref_rounded_cast(tl_ref_code *code, int mode, tl_ref_value x, tl_dtype dtype, const tl_ref_value *bits);

// ---- from reference_expr.c
tl_ref_value tl_ref_select(tl_ref_code *code, tl_ref_value condition, tl_ref_value a, tl_ref_value b);
tl_ref_value tl_ref_int_add(tl_ref_code *code, tl_ref_value a, tl_ref_value b, bool subtract);
tl_ref_value tl_ref_int_mul(tl_ref_code *code, tl_ref_value a, tl_ref_value b);
tl_ref_value tl_ref_int_div(tl_ref_code *code, tl_ref_value a, tl_ref_value b, bool remainder);

// ---- helpers that the compiled code calls through run's first argument
double tl_ref_helper_round(int32_t dtype, double value);
double tl_ref_helper_cast(int32_t dtype, int32_t mode, double value, uint32_t bits);
uint64_t tl_ref_helper_bitcast(int32_t from, int32_t to, uint64_t bits);

#endif
