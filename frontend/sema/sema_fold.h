// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folding of constants: integers exactly in int64, floats in float64, with Python's rules.
#ifndef TL_FRONTEND_SEMA_FOLD_H
#define TL_FRONTEND_SEMA_FOLD_H

#include "frontend/elaborate/instantiate.h"

typedef enum tl_fold_result {
  TL_FOLD_OK,
  TL_FOLD_OVERFLOW,  // an integer result leaves int64
  TL_FOLD_DIV_ZERO,  // integer division or remainder by zero
  TL_FOLD_TYPE,      // the operation does not take such operands
  TL_FOLD_NO_DTYPE,  // the result is one of a dtype, which literals have not
  TL_FOLD_EXPONENT,  // an exponent that is not whole
  TL_FOLD_NOT_CONST  // the function has no value at compile time
} tl_fold_result;

tl_const tl_const_int(int64_t value);
tl_const tl_const_float(double value);
// A float that is a whole number, as rounding gives it: an integer where it fits 62 bits.
tl_const tl_const_rounded(double value);
tl_const tl_const_bool(bool value);
tl_const tl_const_dtype(tl_dtype dtype);
// As a double (INT, FLOAT, BOOL).
double tl_const_to_double(const tl_const *value);
bool tl_const_is_number(const tl_const *value);
// Truth of a bool or an integer; false when the value has none.
bool tl_const_truth(const tl_const *value, bool *out_truth);
// "128", "0.5", "true", "f16", "dynamic".
void tl_const_print(const tl_const *value, tl_strbuf *out);

// The op of the IR that means the same, of constants (ir/scalar) and of values; TL_OPCODE_COUNT when there is none.
tl_opcode tl_fold_opcode(tl_expr_op op);

tl_fold_result tl_fold_unary(tl_expr_op op, const tl_const *a, tl_const *out);
tl_fold_result tl_fold_binary(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out);
tl_fold_result tl_fold_compare(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out);

// ---- functions of the language (sema_functions.def)
typedef enum tl_function {
  TL_FUNCTION_NONE,
#define TL_FUNCTION(ID, text, min_args, max_args, kind, math, fold, group, arguments, doc) TL_FUNCTION_##ID,
#include "frontend/sema/sema_functions.def"
#undef TL_FUNCTION
  TL_FUNCTION_COUNT
} tl_function;

typedef enum tl_function_kind {
  TL_FUNCTION_KIND_INTEGER,         // ceildiv, popcount, clz, dp4a, philox
  TL_FUNCTION_KIND_PROMOTED,        // min, max, select, clamp, sign, pow, fma: of any numbers
  TL_FUNCTION_KIND_MATH,            // one IR `math` op of a float
  TL_FUNCTION_KIND_TEST,            // likewise, a bool
  TL_FUNCTION_KIND_BITS,            // likewise, of the type's own bits
  TL_FUNCTION_KIND_EXPONENT,        // likewise, an i32
  TL_FUNCTION_KIND_ROUNDING,        // likewise, of an integer the integer
  TL_FUNCTION_KIND_MAGNITUDE,       // likewise, of an integer an integer
  TL_FUNCTION_KIND_FLOATS,          // one IR `math2` op of two floats
  TL_FUNCTION_KIND_FLOAT_BITS,      // likewise, of the type's own bits
  TL_FUNCTION_KIND_FLOAT_EXPONENT,  // likewise, of a float and an i32
  TL_FUNCTION_KIND_COMPOSED,        // built from several ops on floats
  TL_FUNCTION_KIND_TYPE,            // has a dtype among its arguments
  TL_FUNCTION_KIND_ACCESS,          // names an element
  TL_FUNCTION_KIND_THREAD           // thread_id, lane_id, warp_id
} tl_function_kind;

// Groups of the table in docs/language.md, in its order.
typedef enum tl_function_group {
  TL_FUNCTION_GROUP_NUMBERS,
  TL_FUNCTION_GROUP_BITS,
  TL_FUNCTION_GROUP_ROUNDINGS,
  TL_FUNCTION_GROUP_EXPONENTIALS,
  TL_FUNCTION_GROUP_TRIGONOMETRY,
  TL_FUNCTION_GROUP_ACTIVATIONS,
  TL_FUNCTION_GROUP_OTHERS,
  TL_FUNCTION_GROUP_MEMORY,
  TL_FUNCTION_GROUP_THREADS,
  TL_FUNCTION_GROUP_COUNT
} tl_function_group;

typedef struct tl_function_info tl_function_info;
struct tl_function_info {
  const char *name;
  int min_args, max_args;
  tl_function_kind kind;
  int math;  // tl_ir_enum_MATH or tl_ir_enum_MATH2 of the kinds of `math` and `math2`, else -1
  tl_fold_result (*fold)(const tl_function_info *info, const tl_const *args, uint32_t num_args, tl_const *out);
  tl_function_group group;
  const char *arguments, *doc;
};

tl_function tl_function_parse(tl_str name);
// The tl_ir_enum_ROUNDING of a cast with a rounding of its own, else -1.
int tl_function_rounding(tl_function function);
const tl_function_info *tl_function_info_of(tl_function function);
// Folds a call of constants. The number of arguments was checked.
tl_fold_result tl_fold_call(tl_function function, const tl_const *args, uint32_t num_args, tl_const *out);
// The bound of the error in f32 and f64 that the language states, in units in the last place; 0: exact, correctly
// rounded, or composed of other functions.
void tl_function_ulp(tl_function function, int *out_f32, int *out_f64);
// The table of functions as Markdown; docs/language.md contains it.
void tl_function_print_table(tl_strbuf *out);

#endif
