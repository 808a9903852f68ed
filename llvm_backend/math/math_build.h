// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the elementary functions are built from. Every helper works on f32 and on f64: the context knows which.
//
// The bounds of ir/scalar/functions.def rest on every operation being rounded as written, so none of these instructions
// may be contracted: they carry no fast-math flags, and the code generator then writes `.rn`, which ptxas does not fuse
// (PTX ISA, add, mul). Where a fused multiply-add is meant, it is built.
#ifndef TL_LLVM_BACKEND_MATH_BUILD_H
#define TL_LLVM_BACKEND_MATH_BUILD_H

#include "llvm_backend/lower/value/lower_arith.h"

typedef struct tl_math_context {
  tl_lower *l;
  LLVMBuilderRef b;
  bool is_f64;             // of the argument: f64, else f32
  bool fast;               // fast_math, which f32 alone has forms for
  LLVMTypeRef type;        // f64 or f32; f16 or bf16 for functions of the type's own bits
  LLVMTypeRef bits_type;   // i64, i32 or i16
  const tl_value *source;  // operand of the op, for facts about it; NULL unknown
  const tl_op *op;         // the op, for facts about its uses
} tl_math_context;

// A number as its nearest f64 and what that leaves out.
typedef struct tl_math_real {
  double hi, lo;
} tl_math_real;

// A value as the unevaluated sum of two: |lo| is at most about a unit in the last place of hi.
typedef struct tl_math_pair {
  LLVMValueRef hi, lo;
} tl_math_pair;

// The coefficients of one polynomial, c[0] + c[1] x + …, for f32 and for f64.
typedef struct tl_math_series {
  const double *f32;
  int num_f32;
  const double *f64;
  int num_f64;
} tl_math_series;
#define TL_MATH_SERIES(name) \
  { name##_f32, sizeof name##_f32 / sizeof *name##_f32, name##_f64, sizeof name##_f64 / sizeof *name##_f64 }

tl_math_context tl_math_context_of(tl_lower *l, bool is_f64, const tl_value *source, const tl_op *op);

// Whether the value is a constant, and which.
bool tl_math_constant(const tl_value *value, double *out);

// ---- constants, rounded to the type
LLVMValueRef tl_math_const(const tl_math_context *m, double value);
// `f32` or `f64`, as the type is.
LLVMValueRef tl_math_const_of(const tl_math_context *m, double f32, double f64);
// The nearest number of the type, and the nearest to what that leaves out.
tl_math_pair tl_math_const_pair(const tl_math_context *m, tl_math_real value);
LLVMValueRef tl_math_bits_const(const tl_math_context *m, int64_t f32, int64_t f64);

// ---- instructions
LLVMValueRef tl_math_add(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_sub(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_mul(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_neg(const tl_math_context *m, LLVMValueRef a);
LLVMValueRef tl_math_fma(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
LLVMValueRef tl_math_abs(const tl_math_context *m, LLVMValueRef a);
LLVMValueRef tl_math_round(const tl_math_context *m, LLVMValueRef a);  // to a whole number, halves to even
LLVMValueRef tl_math_select(const tl_math_context *m, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_compare(const tl_math_context *m, LLVMRealPredicate predicate, LLVMValueRef a, double b);
LLVMValueRef tl_math_device1(const tl_math_context *m, tl_device_op_id id, LLVMValueRef a);
// Correctly rounded; under fast_math div.full.
LLVMValueRef tl_math_div(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
// 1 / a for a normal or infinite a, off by at most a unit in the last place: rcp.approx for f32, the quotient for f64.
LLVMValueRef tl_math_reciprocal(const tl_math_context *m, LLVMValueRef a);
// The magnitude of `magnitude` with the sign of `sign`.
LLVMValueRef tl_math_copy_sign(const tl_math_context *m, LLVMValueRef magnitude, LLVMValueRef sign);
LLVMValueRef tl_math_bits_of(const tl_math_context *m, LLVMValueRef a);
LLVMValueRef tl_math_of_bits(const tl_math_context *m, LLVMValueRef bits);

// ---- combinations
// c[0] + x (c[1] + x (…)).
LLVMValueRef tl_math_polynomial(const tl_math_context *m, LLVMValueRef x, const double *c, int n);
LLVMValueRef tl_math_series_of(const tl_math_context *m, LLVMValueRef x, const tl_math_series *series);
// x, or NaN where x is one, else `result`.
LLVMValueRef tl_math_keep_nan(const tl_math_context *m, LLVMValueRef x, LLVMValueRef result);
// x between the bounds; a NaN becomes one of them.
LLVMValueRef tl_math_clamp(const tl_math_context *m, LLVMValueRef x, double least, double most);
// 2^n for a whole n (i32) of the type's normal exponents; other n give any value.
LLVMValueRef tl_math_power_of_two(const tl_math_context *m, LLVMValueRef n);
// value * 2^n where the result may overflow or be subnormal: |n| up to twice the largest exponent.
LLVMValueRef tl_math_scale(const tl_math_context *m, LLVMValueRef value, LLVMValueRef n);
// a + b and its rounding error (Dekker: |a| >= |b| or a = 0; Knuth: any), a b and its rounding error.
tl_math_pair tl_math_fast_two_sum(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
tl_math_pair tl_math_two_sum(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
tl_math_pair tl_math_two_product(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
// a b for pairs, without the product of the low parts.
tl_math_pair tl_math_pair_product(const tl_math_context *m, tl_math_pair a, tl_math_pair b);

// ---- pieces that several functions share
// e^(r + rest) - 1 for |r| up to 0.3475, to a unit in the last place (math_exp.c). `rest` may be NULL.
LLVMValueRef tl_math_expm1_small(const tl_math_context *m, LLVMValueRef r, LLVMValueRef rest);
// `turn` + t, where |t| is no more than turn, rounded once (math_atan.c).
LLVMValueRef tl_math_turned(const tl_math_context *m, tl_math_pair turn, LLVMValueRef t);
// x = 2^k (1 + f) for a positive finite x, with 1 + f from sqrt(1/2) to sqrt(2); k is a whole float (math_log.c).
LLVMValueRef tl_math_split(const tl_math_context *m, LLVMValueRef x, LLVMValueRef *out_k);

// ---- functions: tl_math_build_<ID> for each row of ir/scalar/functions.def
typedef LLVMValueRef tl_math_builder(const tl_math_context *m, LLVMValueRef x);
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how) \
  tl_math_builder tl_math_build_##ID;
#include "ir/scalar/functions.def"
// The second operand is an i32 where the row says so.
typedef LLVMValueRef tl_math_builder2(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b);
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how)
#define TL_MATH_BINARY(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, arguments, doc, how) \
  tl_math_builder2 tl_math_build_##ID;
#include "ir/scalar/functions.def"
tl_math_builder tl_math_exp_f64, tl_math_exp2_f64, tl_math_sigmoid_f64, tl_math_tanh_f64;  // math_exp.c
LLVMValueRef tl_math_pow(const tl_math_context *m, LLVMValueRef x, LLVMValueRef y);        // math_pow.c

#endif
