// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts about index values: affine form, range and divisibility. Pure queries on the IR; cheap enough to ask again.
#ifndef TL_IR_AFFINE_H
#define TL_IR_AFFINE_H

#include "ir/ir.h"

#define TL_AFFINE_MAX_TERMS 12

// Inclusive range; INT64_MIN / INT64_MAX stand for unbounded.
typedef struct tl_range {
  int64_t lo, hi;
} tl_range;

// sum of coefficient * symbol + constant. Symbols are values that are not sums themselves (block and loop indices,
// dynamic params, quotients, loads …). Products of two symbols are symbols of their own.
typedef struct tl_affine {
  bool valid;  // false: too many terms or an overflow; then nothing may be concluded
  int64_t constant;
  int32_t num_terms;
  struct {
    tl_value *symbol;
    int64_t coefficient;
  } terms[TL_AFFINE_MAX_TERMS];  // ordered by first use; coefficients are not 0
} tl_affine;

tl_affine tl_affine_of(tl_value *value);
tl_affine tl_affine_sub(const tl_affine *a, const tl_affine *b);
tl_affine tl_affine_add(const tl_affine *a, const tl_affine *b);
// The greatest common divisor; that of 0 and x is x.
int64_t tl_gcd(int64_t a, int64_t b);
// How often a loop from `lower` to `upper` runs, in steps of `step` (which may be negative; 0 counts as 1): 0 if not at
// all, at most INT64_MAX.
int64_t tl_trip_count(int64_t lower, int64_t upper, int64_t step);
// A FOR whose bounds and step are constants, and how often it runs (as long as no `while` ends it).
typedef struct tl_constant_loop {
  int64_t lower, upper, step, trips;
} tl_constant_loop;
// False when one of them is known at run time only, or the step is 0.
bool tl_loop_is_constant(const tl_op *loop, tl_constant_loop *out);
// Coefficient of `symbol` (0 when absent).
int64_t tl_affine_coefficient(const tl_affine *affine, const tl_value *symbol);

// Range of an index or integer value from its definition (constants, grid and loop bounds, dyn params, mod, min, …).
tl_range tl_value_range(tl_value *value);
tl_range tl_affine_range(const tl_affine *affine);
// Largest power-of-two-or-other number known to divide the value (0 for the constant 0): e.g. 64 * k + 8 * d gives 8.
int64_t tl_value_divisor(tl_value *value);
int64_t tl_affine_divisor(const tl_affine *affine);

// Proves a < b, a <= b, a >= 0 for every value of the symbols. Uses cancellation of common symbols, ranges and
// facts about grid indices (index < extent) and ceildiv / floordiv. False means "could not prove".
bool tl_prove_lt(tl_value *a, tl_value *b);
bool tl_prove_le(tl_value *a, tl_value *b);
bool tl_prove_nonnegative(tl_value *a);
bool tl_affine_prove_nonnegative(const tl_affine *affine);
// a + a_max < b where a varies in [a, a + a_max].
bool tl_prove_lt_offset(tl_value *a, int64_t offset, tl_value *b);
bool tl_prove_equal(tl_value *a, tl_value *b);

// Builds a simplified value: folds constants, merges terms, drops neutral elements. Used by the builders and
// canonicalize.
tl_value *tl_index_add(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_sub(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_mul(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_floordiv(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_mod(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_ceildiv(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_min(tl_builder *builder, tl_value *a, tl_value *b);
tl_value *tl_index_max(tl_builder *builder, tl_value *a, tl_value *b);
// The form as a value; its symbols are cast to index values.
tl_value *tl_affine_build(tl_builder *builder, const tl_affine *form);
// The value of a binary index op on constants: floor division, no wrapping. False where it has none: a division by 0, a
// negative shift, a result past 64 bits, another op.
bool tl_fold_index(tl_opcode code, int64_t a, int64_t b, int64_t *out);
// Folds a pure scalar op whose operands are constants (or which is an identity) to an existing or new value; NULL if it
// cannot. Constants fold in float64 and round to the result's dtype.
tl_value *tl_fold_op(tl_builder *builder, tl_op *op);

#endif
