// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operator and function of the language, for one dtype: what a kernel computes at run time, what the IR folds for
// operands that are constants of the dtype, and what the language folds for literals must have the same bits, or, for
// functions with an error bound, differ by no more than that.
//   fold_cases spec DTYPE        the spec, on standard output; it writes one result a row and pair of operands, as bits
//   fold_cases operands DTYPE X.npy Y.npy
//   fold_cases compare DTYPE RUN.npy TYPED.npy LITERAL.npy
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/sema/sema.h"
#include "harness/data/npy.h"

static const char *const float_operands[] = {"0.0", "-0.0", "1.0",   "-1.0", "0.5",  "-0.25",
                                             "2.5", "-3.0", "100.0", "inf",  "-inf", "nan"};
// What eight bits hold; infinities saturate.
static const char *const small_operands[] = {"0.0", "-0.0", "1.0",  "-1.0",  "0.5",    "-0.25",
                                             "2.5", "-3.0", "96.0", "448.0", "-448.0", "nan"};
static const char *const signed_operands[] = {"0", "1", "2", "3", "7", "31", "100", "-1", "-7", "least", "most"};
static const char *const unsigned_operands[] = {"0", "1", "2", "3", "7", "31", "100", "most"};

// What is compared: a row of the results.
typedef struct row {
  char format[64];  // of the operands a and b: "%1$s + %2$s"
  int operands;
  tl_dtype result;
  int ulps;     // allowed, in the result's own last place
  double near;  // an absolute difference that is allowed as well
  bool zeros_are_equal;
  bool divides, shifts, is_pow;
  tl_expr_op op;         // of an operator, to know whether literals fold
  tl_function function;  // of a call
} row;

enum { MAX_ROWS = 256, SHIFTS = 6 };

typedef struct plan {
  tl_dtype dtype, arithmetic;
  bool is_float;
  const char *const *operands;
  int num_operands, num_pairs;  // pair p: operands p and p + p / num_operands
  row rows[MAX_ROWS];
  int num_rows;
} plan;

static void plan_init(plan *p, tl_dtype dtype) {
  *p = (plan){.dtype = dtype, .arithmetic = tl_sema_arithmetic_dtype(dtype), .is_float = tl_dtype_is_float(dtype)};
  bool is_signed = tl_dtype_is_signed_int(dtype);
  p->operands = p->is_float ? (tl_dtype_bits(dtype) <= 8 ? small_operands : float_operands)
                : is_signed ? signed_operands
                            : unsigned_operands;
  p->num_operands = (int)(p->is_float ? sizeof float_operands
                          : is_signed ? sizeof signed_operands
                                      : sizeof unsigned_operands);
  p->num_operands /= (int)sizeof(char *);
  p->num_pairs = SHIFTS * p->num_operands;
}

static row *add(plan *p, const char *format, int operands, tl_dtype result) {
  row *r = &p->rows[p->num_rows++];
  if (p->num_rows > MAX_ROWS) abort();
  *r = (row){.operands = operands, .result = result};
  snprintf(r->format, sizeof r->format, "%s", format);
  return r;
}

static void add_operators(plan *p) {
  static const struct {
    const char *format;
    tl_expr_op op;
    enum { NUMBERS, QUOTIENT, BITS, ORDER } kind;
  } operators[] = {{"%1$s + %2$s", TL_EXPR_OP_ADD, NUMBERS},   {"%1$s - %2$s", TL_EXPR_OP_SUB, NUMBERS},
                   {"%1$s * %2$s", TL_EXPR_OP_MUL, NUMBERS},   {"%1$s // %2$s", TL_EXPR_OP_FLOORDIV, NUMBERS},
                   {"%1$s %% %2$s", TL_EXPR_OP_MOD, NUMBERS},  {"%1$s / %2$s", TL_EXPR_OP_DIV, QUOTIENT},
                   {"%1$s ** %2$s", TL_EXPR_OP_POW, QUOTIENT}, {"%1$s & %2$s", TL_EXPR_OP_BITAND, BITS},
                   {"%1$s | %2$s", TL_EXPR_OP_BITOR, BITS},    {"%1$s ^ %2$s", TL_EXPR_OP_BITXOR, BITS},
                   {"%1$s << %2$s", TL_EXPR_OP_SHL, BITS},     {"%1$s >> %2$s", TL_EXPR_OP_SHR, BITS},
                   {"%1$s == %2$s", TL_EXPR_OP_EQ, ORDER},     {"%1$s != %2$s", TL_EXPR_OP_NE, ORDER},
                   {"%1$s < %2$s", TL_EXPR_OP_LT, ORDER},      {"%1$s <= %2$s", TL_EXPR_OP_LE, ORDER},
                   {"%1$s > %2$s", TL_EXPR_OP_GT, ORDER},      {"%1$s >= %2$s", TL_EXPR_OP_GE, ORDER}};
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (operators[i].kind == BITS && p->is_float) continue;
    tl_dtype quotient = p->is_float ? p->arithmetic : TL_DTYPE_F32;
    row *r = add(p, operators[i].format, 2,
                 operators[i].kind == ORDER      ? TL_DTYPE_BOOL
                 : operators[i].kind == QUOTIENT ? quotient
                                                 : p->arithmetic);
    r->op = operators[i].op;
    r->divides = r->op == TL_EXPR_OP_FLOORDIV || r->op == TL_EXPR_OP_MOD;
    r->shifts = r->op == TL_EXPR_OP_SHL || r->op == TL_EXPR_OP_SHR;
    r->is_pow = r->op == TL_EXPR_OP_POW;
    if (r->is_pow) r->ulps = 3;
  }
  add(p, "-%1$s", 1, p->arithmetic)->op = TL_EXPR_OP_NEG;
  if (!p->is_float) add(p, "~%1$s", 1, p->arithmetic)->op = TL_EXPR_OP_INVERT;
}

static tl_dtype result_of(const plan *p, tl_function function) {
  tl_dtype real = p->is_float ? p->arithmetic : TL_DTYPE_F32;
  switch (tl_function_info_of(function)->kind) {
    case TL_FUNCTION_KIND_TEST:
    case TL_FUNCTION_KIND_BITS:
      return TL_DTYPE_BOOL;
    case TL_FUNCTION_KIND_EXPONENT:
      return TL_DTYPE_I32;
    case TL_FUNCTION_KIND_MATH:
    case TL_FUNCTION_KIND_FLOATS:
    case TL_FUNCTION_KIND_FLOAT_BITS:
    case TL_FUNCTION_KIND_FLOAT_EXPONENT:
      return real;
    case TL_FUNCTION_KIND_COMPOSED:
      return function == TL_FUNCTION_RELU ? p->arithmetic : real;
    case TL_FUNCTION_KIND_INTEGER:
      if (function == TL_FUNCTION_PHILOX) return TL_DTYPE_U32;
      return function == TL_FUNCTION_POPCOUNT || function == TL_FUNCTION_CLZ ? TL_DTYPE_I32 : p->arithmetic;
    default:
      return function == TL_FUNCTION_POW ? real : p->arithmetic;
  }
}

static bool is_narrow_result(tl_dtype dtype) {
  return tl_dtype_bits(dtype) < 32;
}

static void add_function(plan *p, tl_function function) {
  const tl_function_info *info = tl_function_info_of(function);
  bool is_choice = function == TL_FUNCTION_SELECT || function == TL_FUNCTION_IF_THEN_ELSE;
  static const char *const arguments[] = {"%1$s", "%1$s, %2$s", "%1$s, %2$s, %1$s"};
  if (info->kind >= TL_FUNCTION_KIND_TYPE || (info->kind == TL_FUNCTION_KIND_INTEGER && p->is_float)) return;
  if (function == TL_FUNCTION_DP4A && tl_dtype_bits(p->dtype) != 32) return;
  bool is_exponent = info->kind == TL_FUNCTION_KIND_FLOAT_EXPONENT;
  char format[64];
  snprintf(format, sizeof format, "%s(%s)", info->name,
           is_exponent ? "%1$s, cast(%2$s, i32)"
           : is_choice ? "%1$s > %2$s, %1$s, %2$s"
                       : arguments[info->min_args - 1]);
  row *r = add(p, format, info->min_args > 1 ? 2 : 1, result_of(p, function));
  r->function = function;
  r->divides = function == TL_FUNCTION_CEILDIV;
  r->is_pow = function == TL_FUNCTION_POW;
  int f32_ulp, f64_ulp;
  tl_function_ulp(function, &f32_ulp, &f64_ulp);
  int bound = tl_dtype_bits(r->result) == 64 ? f64_ulp : f32_ulp;
  // The fold may be off by one more: the C library's error, and its rounding.
  if (bound > 0) r->ulps = is_narrow_result(r->result) ? 1 : bound + 1;
  if (info->kind == TL_FUNCTION_KIND_COMPOSED && function != TL_FUNCTION_RELU) {
    r->ulps = is_narrow_result(r->result) ? 1 : 16;
    r->near = tl_dtype_bits(r->result) == 64 ? 1e-15 : 1e-6;
  }
  // Which zero the smaller or larger of 0.0 and -0.0 is, C leaves open.
  r->zeros_are_equal = function == TL_FUNCTION_MIN || function == TL_FUNCTION_MAX || function == TL_FUNCTION_CLAMP ||
                       function == TL_FUNCTION_RELU;
}

static void add_casts(plan *p) {
  for (int to = 1; to < TL_DTYPE_COUNT; to++) {
    if (tl_dtype_bits((tl_dtype)to) < 8 && to != TL_DTYPE_BOOL) continue;
    if (to == TL_DTYPE_TF32) continue;
    char format[64];
    snprintf(format, sizeof format, "cast(%%1$s, %s)", tl_dtype_name((tl_dtype)to));
    add(p, format, 1, (tl_dtype)to);
  }
  // 64-bit integers are refused.
  static const char *const modes[] = {"nearest", "away", "zero", "up", "down", "stochastic"};
  for (int to = 1; to < TL_DTYPE_COUNT; to++) {
    bool to_float = tl_dtype_is_float((tl_dtype)to);
    if (tl_dtype_bits((tl_dtype)to) < 8 || to == TL_DTYPE_TF32) continue;
    if ((!to_float && to != TL_DTYPE_I32) || (!p->is_float && tl_dtype_bits(p->dtype) == 64)) continue;
    for (int mode = 0; mode < (to_float ? 6 : 5); mode++) {
      char format[64];
      snprintf(format, sizeof format, "cast_%s(%%1$s, %s%s)", modes[mode], tl_dtype_name((tl_dtype)to),
               mode == 5 ? ", 3123456789" : "");
      add(p, format, 1, (tl_dtype)to);
    }
  }
}

static void plan_rows(plan *p) {
  add_operators(p);
  for (int f = 1; f < TL_FUNCTION_COUNT; f++) add_function(p, (tl_function)f);
  add_casts(p);
}

// ---- operands

static const char *operand_text(const plan *p, int i) {
  static char text[4][40];
  static int next;
  char *out = text[next++ % 4];
  const char *name = p->operands[i % p->num_operands];
  if (strcmp(name, "most") == 0) {
    uint64_t most = tl_dtype_int_max(p->dtype);
    snprintf(out, sizeof *text, most > INT64_MAX ? "cast(-1, u64)" : "%" PRIu64, most);
  } else if (strcmp(name, "least") == 0) {
    snprintf(out, sizeof *text, "(%" PRId64 " - 1)", tl_dtype_int_min(p->dtype) + 1);
  } else {
    snprintf(out, sizeof *text, name[0] == '-' ? "(%s)" : "%s", name);
  }
  return out;
}

// Whether the language has literals that mean the operand exactly.
static bool operand_const(const plan *p, int i, tl_const *out) {
  const char *name = p->operands[i % p->num_operands];
  if (p->is_float) {
    *out = tl_const_float(strtod(name, NULL));
  } else if (strcmp(name, "most") == 0) {
    if (tl_dtype_int_max(p->dtype) > INT64_MAX) return false;
    *out = tl_const_int((int64_t)tl_dtype_int_max(p->dtype));
  } else {
    *out = tl_const_int(strcmp(name, "least") == 0 ? tl_dtype_int_min(p->dtype) : strtoll(name, NULL, 10));
  }
  return true;
}

static int second_of(const plan *p, int pair) {
  return pair + pair / p->num_operands;
}

// The row means something for the pair: no division of integers by zero, no overflow of one, no negative count.
static bool is_defined(const plan *p, const row *r, int pair) {
  if (p->is_float || r->operands < 2) return true;
  const char *a = p->operands[pair % p->num_operands], *b = p->operands[second_of(p, pair) % p->num_operands];
  if (r->divides && (strcmp(b, "0") == 0 || (strcmp(a, "least") == 0 && strcmp(b, "-1") == 0))) return false;
  bool is_negative = b[0] == '-' || strcmp(b, "least") == 0;
  return !(r->shifts && is_negative);
}

static bool literals_fold(const plan *p, const row *r, int pair) {
  tl_const args[3], folded;
  if (!operand_const(p, pair, &args[0]) || !operand_const(p, second_of(p, pair), &args[1])) return false;
  args[2] = args[0];
  const tl_function_info *info = tl_function_info_of(r->function);
  if (!r->op && !r->function) return true;  // a cast
  if (r->function == TL_FUNCTION_SELECT || r->function == TL_FUNCTION_IF_THEN_ELSE) return true;
  if (r->function == TL_FUNCTION_DP4A) return false;  // literals have no dtype to tell the signs by
  bool bits = r->function == TL_FUNCTION_POPCOUNT || r->function == TL_FUNCTION_CLZ;
  if (bits && tl_dtype_bits(p->arithmetic) == 64) return false;  // nor a width
  // Integers past float32's 24 bits are exact as literals.
  bool is_real = !p->is_float && (tl_dtype_is_float(r->result) || info->kind == TL_FUNCTION_KIND_EXPONENT);
  for (int i = 0; is_real && i < 2; i++) {
    if (args[i].i == INT64_MIN || llabs(args[i].i) > 1 << 24) return false;
  }
  if (r->function) return tl_fold_call(r->function, args, (uint32_t)info->min_args, &folded) == TL_FOLD_OK;
  if (r->operands == 1) return tl_fold_unary(r->op, &args[0], &folded) == TL_FOLD_OK;
  tl_fold_result result = tl_fold_binary(r->op, &args[0], &args[1], &folded);
  return result == TL_FOLD_OK || tl_fold_compare(r->op, &args[0], &args[1], &folded) == TL_FOLD_OK;
}

// ---- the spec

static void print_bits(const plan *p, const row *r, const char *a, const char *b, bool is_literal) {
  char value[256], typed[300];
  (void)p;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(value, sizeof value, r->format, a, b);
#pragma GCC diagnostic pop
  snprintf(typed, sizeof typed, is_literal ? "cast(%s, %s)" : "%s", value, tl_dtype_name(r->result));
  if (tl_dtype_is_float(r->result))
    printf("cast(bitcast(%s, u%d), i64)\n", typed, tl_dtype_bits(r->result));
  else
    printf("cast(%s, i64)\n", typed);
}

static void print_spec(const plan *p) {
  const char *dtype = tl_dtype_name(p->dtype);
  printf("kernel: folds_of_%s\nargs:\n  X: in %s[%d]\n  Y: in %s[%d]\n", dtype, dtype, p->num_pairs, dtype,
         p->num_pairs);
  static const char *const outputs[] = {"run", "typed", "literal"};
  for (int i = 0; i < 3; i++) printf("  %s: out i64[%d, %d]\n", outputs[i], p->num_rows, p->num_pairs);
  printf("threads: 32\nbody:\n");
  printf("  - parallel: k in %d\n    do:\n", p->num_pairs);
  for (int r = 0; r < p->num_rows; r++) {
    const row *own = &p->rows[r];
    const char *b = "Y[k]";
    if (!p->is_float && own->divides) b = "(1 if Y[k] == 0 else Y[k])";
    if (tl_dtype_is_signed_int(p->dtype) && own->divides)
      b = "(1 if Y[k] == 0 or Y[k] + 1 == 0 and X[k] < -100 else Y[k])";
    if (!p->is_float && own->shifts) b = "(0 if Y[k] < 0 else Y[k])";
    printf("      - run[%d, k] = ", r);
    print_bits(p, own, "X[k]", b, false);
  }
  printf("  - parallel: k in 1\n    do:\n");
  for (int r = 0; r < p->num_rows; r++) {
    const row *own = &p->rows[r];
    int count = own->operands == 1 ? p->num_operands : p->num_pairs;
    for (int pair = 0; pair < count; pair++) {
      if (!is_defined(p, own, pair)) continue;
      const char *a = operand_text(p, pair), *b = operand_text(p, second_of(p, pair));
      char x[64], y[64];
      snprintf(x, sizeof x, "cast(%s, %s)", a, dtype);
      snprintf(y, sizeof y, "cast(%s, %s)", b, dtype);
      printf("      - typed[%d, %d] = ", r, pair);
      print_bits(p, own, x, y, false);
      if (!literals_fold(p, own, pair)) continue;
      printf("      - literal[%d, %d] = ", r, pair);
      print_bits(p, own, a, b, true);
    }
  }
}

// ---- the comparison

static bool is_nan(const row *r, int64_t bits) {
  return tl_dtype_is_float(r->result) && isnan(tl_dtype_load_float(r->result, &bits, 0));
}

static bool agrees(const row *r, int64_t got, int64_t wanted) {
  if (got == wanted || (is_nan(r, got) && is_nan(r, wanted))) return true;
  if (!tl_dtype_is_float(r->result) || is_nan(r, got) || is_nan(r, wanted)) return false;
  double x = tl_dtype_load_float(r->result, &got, 0), y = tl_dtype_load_float(r->result, &wanted, 0);
  if (r->zeros_are_equal && x == 0 && y == 0) return true;
  if (isfinite(x) && isfinite(y) && fabs(x - y) < r->near) return true;
  return (x < 0) == (y < 0) && !signbit(x) == !signbit(y) && llabs(got - wanted) <= r->ulps;
}

static void load(const char *path, const plan *p, tl_array *out) {
  tl_status status = tl_npy_read(path, 1 << 24, out);
  if (status) {
    fprintf(stderr, "%s\n", tl_status_message(status));
    exit(1);
  }
  if (out->count != (uint64_t)p->num_rows * (uint64_t)p->num_pairs) exit(1);
}

static int compare(const plan *p, char **paths) {
  tl_array run, folded[2];
  load(paths[0], p, &run);
  load(paths[1], p, &folded[0]);
  load(paths[2], p, &folded[1]);
  int wrong = 0, compared = 0;
  for (int r = 0; r < p->num_rows; r++) {
    const row *own = &p->rows[r];
    int count = own->operands == 1 ? p->num_operands : p->num_pairs;
    for (int pair = 0; pair < count; pair++) {
      for (int kind = 0; kind < 2 && is_defined(p, own, pair); kind++) {
        if (kind == 1 && !literals_fold(p, own, pair)) continue;
        size_t at = (size_t)(r * p->num_pairs + pair);
        int64_t got = ((int64_t *)folded[kind].data)[at], wanted = ((int64_t *)run.data)[at];
        compared++;
        if (agrees(own, got, wanted)) continue;
        wrong++;
        printf("%s: %s of %s and %s: %s folds to 0x%" PRIx64 ", at run time it is 0x%" PRIx64 "\n",
               tl_dtype_name(p->dtype), own->format, operand_text(p, pair), operand_text(p, second_of(p, pair)),
               kind ? "the language" : "the IR", (uint64_t)got, (uint64_t)wanted);
      }
    }
  }
  tl_array_fini(&run);
  tl_array_fini(&folded[0]);
  tl_array_fini(&folded[1]);
  printf("%s: %d results compared, %d wrong\n", tl_dtype_name(p->dtype), compared, wrong);
  return wrong ? 1 : 0;
}

static tl_status write_operands(const plan *p, bool second, const char *path) {
  tl_array array;
  int64_t pairs = p->num_pairs;
  TL_TRY(tl_array_init(&array, p->dtype, 1, &pairs));
  for (int pair = 0; pair < p->num_pairs; pair++) {
    tl_const value;
    bool is_literal = operand_const(p, second ? second_of(p, pair) : pair, &value);
    if (p->is_float)
      tl_dtype_store_float(p->dtype, array.data, (uint64_t)pair, value.f);
    else
      tl_dtype_store_int(p->dtype, array.data, (uint64_t)pair, is_literal ? value.i : -1);
  }
  tl_status status = tl_npy_write(path, &array);
  tl_array_fini(&array);
  return status;
}

int main(int argc, char **argv) {
  plan p;
  tl_dtype dtype = argc > 2 ? tl_dtype_parse(tl_str_from(argv[2])) : TL_DTYPE_NONE;
  if (dtype == TL_DTYPE_NONE) return 2;
  plan_init(&p, dtype);
  plan_rows(&p);
  if (strcmp(argv[1], "spec") == 0) {
    print_spec(&p);
    return 0;
  }
  if (argc == 5 && strcmp(argv[1], "operands") == 0) {
    for (int second = 0; second < 2; second++) {
      tl_status status = write_operands(&p, second, argv[3 + second]);
      if (status) return 1;
    }
    return 0;
  }
  return argc == 6 && strcmp(argv[1], "compare") == 0 ? compare(&p, argv + 3) : 2;
}
