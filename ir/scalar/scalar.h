// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What scalar ops and functions are of constants: the one place that folding of the IR, the index builders and the
// language's constants ask. Independent of it on purpose are verify-barriers' evaluator and the float64 reference.
#ifndef TL_IR_SCALAR_SCALAR_H
#define TL_IR_SCALAR_SCALAR_H

#include "ir/ir.h"

// ---- floats, in float64. The caller rounds to the dtype.

// A function of the `math` op; those that give a bool give 0 or 1.
double tl_scalar_math(tl_ir_enum_MATH function, double x);
// The dtype of the function of a float of `dtype`: bool, i32, or `dtype`.
tl_dtype tl_scalar_math_result(int function, tl_dtype dtype);
// Whether the function is of the type's own bits: f16 and bf16 do not go through f32.
bool tl_scalar_math_is_of_bits(int function);
// A function of the `math2` op, of floats of `dtype`.
double tl_scalar_math2(tl_ir_enum_MATH2 function, tl_dtype dtype, double a, double b);
bool tl_scalar_math2_is_of_bits(int function);
// Whether the second operand is an i32.
bool tl_scalar_math2_takes_exponent(int function);
// "e^x", "how it is computed", and the bounds of f32 and f64 in units in the last place.
const char *tl_scalar_math_doc(int function);
const char *tl_scalar_math_how(int function);
void tl_scalar_math_ulp(int function, int *out_f32, int *out_f64);
const char *tl_scalar_math2_doc(int function);
const char *tl_scalar_math2_how(int function);
void tl_scalar_math2_ulp(int function, int *out_f32, int *out_f64);
// A number rounded to a float dtype otherwise than to nearest; `bits` for the stochastic rounding (ops.def,
// CAST_ROUNDED).
double tl_scalar_round_to(tl_dtype dtype, tl_ir_enum_ROUNDING rounding, double value, uint32_t bits);
// To a whole number.
double tl_scalar_round_whole(tl_ir_enum_ROUNDING rounding, double value, uint32_t bits);
// The same of an op on two floats; 0 for those that are single operations.
void tl_scalar_float_op_ulp(tl_opcode code, int *out_f32, int *out_f64);
// ADD SUB MUL DIV FLOORDIV MOD MIN MAX POW; false for every other op. Zeros have the sign that the lowered op
// gives.
bool tl_scalar_float_op(tl_opcode code, double a, double b, double *out);
bool tl_scalar_compare_floats(tl_ir_enum_CMP predicate, double a, double b);

// ---- mathematical integers: indices, and constants of the language
typedef enum tl_scalar_result {
  TL_SCALAR_OK,
  TL_SCALAR_OVERFLOW,        // the result is no int64
  TL_SCALAR_DIV_ZERO,        // a division or remainder by 0
  TL_SCALAR_NEGATIVE_SHIFT,  // a shift by a negative count
  TL_SCALAR_NO_MEANING       // no op on two integers
} tl_scalar_result;

// ADD SUB MUL FLOORDIV MOD MIN MAX AND OR XOR SHL SHR. `*out` is set for OK only.
tl_scalar_result tl_scalar_exact_op(tl_opcode code, int64_t a, int64_t b, int64_t *out);
bool tl_scalar_compare_exact(tl_ir_enum_CMP predicate, int64_t a, int64_t b);

// ---- integers of a dtype, and bools: held sign- or zero-extended

// The low bits of a dtype, sign- or zero-extended.
int64_t tl_scalar_wrap(tl_dtype dtype, uint64_t bits);
// The same ops, wrapping. False for a division by 0, a negative count and other ops.
bool tl_scalar_int_op(tl_dtype dtype, tl_opcode code, int64_t a, int64_t b, int64_t *out);
bool tl_scalar_compare_ints(tl_dtype dtype, tl_ir_enum_CMP predicate, int64_t a, int64_t b);
// POPCOUNT and CLZ of the lowest `width` bits, 32 or 64.
int tl_scalar_bits_op(tl_opcode code, int width, uint64_t bits);
// The word `word` % 4 of a block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): the key is `seed`, the counter `counter` in its lower and `stream` in its upper half.
uint32_t tl_scalar_philox(uint64_t seed, uint64_t counter, uint32_t word, uint64_t stream);
// A float to an integer: truncates and saturates, NaN gives 0.
int64_t tl_scalar_to_int(tl_dtype dtype, double value);

#endif
