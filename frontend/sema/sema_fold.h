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
  TL_FOLD_NOT_CONST  // the function has no value at compile time
} tl_fold_result;

tl_const tl_const_int(int64_t value);
tl_const tl_const_float(double value);
tl_const tl_const_bool(bool value);
tl_const tl_const_dtype(tl_dtype dtype);
// As a double (INT, FLOAT, BOOL).
double tl_const_to_double(const tl_const *value);
bool tl_const_is_number(const tl_const *value);
// Truth of a bool or an integer; false when the value has none.
bool tl_const_truth(const tl_const *value, bool *out_truth);
// "128", "0.5", "true", "f16", "dynamic".
void tl_const_print(const tl_const *value, tl_strbuf *out);

tl_fold_result tl_fold_unary(tl_expr_op op, const tl_const *a, tl_const *out);
tl_fold_result tl_fold_binary(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out);
tl_fold_result tl_fold_compare(tl_expr_op op, const tl_const *a, const tl_const *b, tl_const *out);

// ---- functions of the language (sema_functions.def)
typedef enum tl_function {
  TL_FUNCTION_NONE,
#define TL_FUNCTION(ID, text, min_args, max_args, kind, math) TL_FUNCTION_##ID,
#include "frontend/sema/sema_functions.def"
#undef TL_FUNCTION
  TL_FUNCTION_COUNT
} tl_function;

typedef enum tl_function_kind {
  TL_FUNCTION_KIND_INTEGER,   // ceildiv, popcount, clz, dp4a
  TL_FUNCTION_KIND_PROMOTED,  // min, max, select, clamp, abs, sign, pow, atan2: of any numbers
  TL_FUNCTION_KIND_MATH,      // one IR `math` op of a float
  TL_FUNCTION_KIND_COMPOSED,  // built from several ops on floats
  TL_FUNCTION_KIND_TYPE,      // has a dtype among its arguments
  TL_FUNCTION_KIND_ACCESS,    // names an element
  TL_FUNCTION_KIND_THREAD     // thread_id, lane_id, warp_id
} tl_function_kind;

typedef struct tl_function_info {
  const char *name;
  int min_args, max_args;
  tl_function_kind kind;
  int math;  // tl_math of the MATH kind, else -1
} tl_function_info;

tl_function tl_function_parse(tl_str name);
const tl_function_info *tl_function_info_of(tl_function function);
// Folds a call of constants. The number of arguments was checked.
tl_fold_result tl_fold_call(tl_function function, const tl_const *args, uint32_t num_args, tl_const *out);

#endif
