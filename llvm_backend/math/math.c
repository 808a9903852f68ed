// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementary functions as LLVM IR: no libdevice and none of LLVM's libm intrinsics, which abort on NVPTX. Device and
// emulator run the same IR. Here: the functions of f32 that rest on approximate instructions, single instructions, and
// the lowering of the ops.
#include <math.h>

#include "ir/scalar/scalar.h"
#include "llvm_backend/lower/value/lower_precision.h"
#include "llvm_backend/math/math_build.h"

// Whether every use adds the result to a constant beside which a denormal vanishes.
static bool denormals_vanish(const tl_op *op) {
  if (!op || op->results[0].type->dtype != TL_DTYPE_F32) return false;
  for (const tl_use *use = op->results[0].uses; use; use = use->next) {
    double constant;
    if (use->owner->code != TL_OP_ADD && use->owner->code != TL_OP_SUB) return false;
    tl_value *a = tl_op_operand(use->owner, 0), *b = tl_op_operand(use->owner, 1);
    const tl_value *other = a == use->value ? b : a;
    if (!tl_math_constant(other, &constant) || fabs(constant) < 1e-20) return false;
  }
  return true;
}

// ---- exponentials
static LLVMValueRef ex2(const tl_math_context *m, LLVMValueRef x, bool flush) {
  return tl_math_device1(m, flush ? TL_DEVOP_EX2_APPROX_FTZ : TL_DEVOP_EX2_APPROX, x);
}

// x / 2, where that changes the constant factors in x instead of costing a multiplication: exact but for denormals,
// which 2^x takes for 0. `steps` bounds the search.
static LLVMValueRef half_of(const tl_math_context *m, LLVMValueRef x, int steps) {
  LLVMBool loses = 0;
  if (LLVMIsAConstantFP(x)) return tl_math_const(m, LLVMConstRealGetDouble(x, &loses) / 2);
  if (!LLVMIsAInstruction(x) || steps == 0) return NULL;
  LLVMOpcode code = LLVMGetInstructionOpcode(x);
  if (code != LLVMFMul && code != LLVMFSub && code != LLVMFAdd) return NULL;
  LLVMValueRef a = LLVMGetOperand(x, 0), b = LLVMGetOperand(x, 1), result;
  if (code == LLVMFMul) {
    LLVMValueRef half = LLVMIsAConstantFP(b) ? half_of(m, b, 0) : NULL;
    if (!half) return NULL;
    result = tl_math_mul(m, a, half);
  } else {
    a = half_of(m, a, steps - 1);
    b = a ? half_of(m, b, steps - 1) : NULL;
    if (!b) return NULL;
    result = code == LLVMFSub ? tl_math_sub(m, a, b) : tl_math_add(m, a, b);
  }
  if (LLVMIsAInstruction(result)) LLVMSetFastMathFlags(result, LLVMGetFastMathFlags(x));
  return result;
}

// 2^x as the square of 2^(x / 2), which is a normal number wherever 2^x is not 0: one multiplication in the place of
// the comparison and the two predicated multiplications by which ex2.approx reaches the denormals. The error doubles.
static LLVMValueRef ex2_squared(const tl_math_context *m, LLVMValueRef x) {
  enum { STEPS = 2 };  // s * c - m * c
  LLVMValueRef half = half_of(m, x, STEPS);
  if (!half) half = tl_math_mul(m, x, tl_math_const(m, 0.5));
  LLVMValueRef root = ex2(m, half, true), square = tl_math_mul(m, root, root);
  if (LLVMIsAInstruction(square)) LLVMSetFastMathFlags(square, LLVMFastMathAllowContract);  // into the sum that follows
  return square;
}

static tl_precision precision_of(const tl_math_context *m) {
  return m->op ? tl_lower_precision_of(tl_op_result(m->op, 0)) : TL_PRECISION_FULL;
}

// 2^x as the uses of the op's result need it.
static LLVMValueRef ex2_for_uses(const tl_math_context *m, LLVMValueRef x) {
  if (denormals_vanish(m->op)) return ex2(m, x, true);
  return precision_of(m) == TL_PRECISION_FULL ? ex2(m, x, false) : ex2_squared(m, x);
}

static LLVMValueRef ex2_full(const tl_math_context *m, LLVMValueRef x) {
  return ex2(m, x, false);
}
static LLVMValueRef ex2_flushed(const tl_math_context *m, LLVMValueRef x) {
  return ex2(m, x, true);
}

// x log2(e) = hi + lo with hi the rounded product; e^x = 2^hi (1 + lo ln 2). |lo| is below 2^-15 unless hi overflows;
// then lo is infinite or NaN, 2^hi is 0 or infinite, and any finite positive factor gives the right result:
// min(|factor|, 2) is one.
static LLVMValueRef exp_of(const tl_math_context *m, LLVMValueRef x, tl_math_builder *power) {
  LLVMValueRef log2e = tl_math_const(m, 1.44269502162933349609375),
               log2e_rest = tl_math_const(m, 1.925963033500011079e-8);
  LLVMValueRef hi = tl_math_mul(m, x, log2e);
  LLVMValueRef lo = tl_math_fma(m, x, log2e, tl_math_neg(m, hi));
  lo = tl_math_fma(m, x, log2e_rest, lo);
  LLVMValueRef factor = tl_math_fma(m, lo, tl_math_const(m, 0.693147180559945309), tl_math_const(m, 1.0));
  factor = tl_lower_intrinsic2(m->l, "llvm.minnum", tl_math_abs(m, factor), tl_math_const(m, 2.0));
  return tl_math_mul(m, power(m, hi), factor);
}

// e^x of an argument that is rounded once more: off by |x| 2^-24, 2^-17 at most where the result is neither 0 nor
// infinite.
static LLVMValueRef exp_rounded(const tl_math_context *m, LLVMValueRef x) {
  return ex2_squared(m, tl_math_mul(m, x, tl_math_const(m, 1.442695040888963407)));
}

LLVMValueRef tl_math_build_EXP(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return tl_math_exp_f64(m, x);
  if (m->fast) return ex2(m, tl_math_mul(m, x, tl_math_const(m, 1.442695040888963407)), true);
  return precision_of(m) == TL_PRECISION_FULL ? exp_of(m, x, ex2_for_uses) : exp_rounded(m, x);
}

LLVMValueRef tl_math_build_EXP2(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return tl_math_exp2_f64(m, x);
  return m->fast ? ex2(m, x, true) : ex2_for_uses(m, x);
}

// ---- the others
LLVMValueRef tl_math_build_TANH(const tl_math_context *m, LLVMValueRef x) {
  static const double c[] = {-0.33333318, 0.133326017, -0.053853858, 0.0210777584, -0.00628247336};
  if (m->is_f64) return tl_math_tanh_f64(m, x);
  if (m->fast) return tl_math_device1(m, TL_DEVOP_TANH_APPROX, x);
  LLVMValueRef a = tl_math_abs(m, x), square = tl_math_mul(m, x, x);
  LLVMValueRef small = tl_math_mul(m, tl_math_polynomial(m, square, c, 5), square);
  small = tl_math_fma(m, small, a, a);
  LLVMValueRef e = exp_of(m, tl_math_mul(m, a, tl_math_const(m, 2.0)), ex2_flushed);
  LLVMValueRef r = tl_math_device1(m, TL_DEVOP_RCP_APPROX_FTZ, tl_math_add(m, e, tl_math_const(m, 1.0)));
  LLVMValueRef large = tl_math_fma(m, r, tl_math_const(m, -2.0), tl_math_const(m, 1.0));
  // The order of the comparison lets a NaN through.
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, 0.55);
  return tl_math_copy_sign(m, tl_math_select(m, is_large, large, small), x);
}

// erf x = x P(x^2) up to `middle`, 1 - 2^Q(|x|) (f32) or 1 - e^Q(|x|) (f64) above, and 1 from `far` on.
static const double erf_small_f32[] = {1.12837915,   -0.376125056,  0.11281926,
                                       -0.026770187, 0.00499793317, -0.000601303917};
static const double erf_large_f32[] = {-0.000298665046, -1.62682239,    -0.919380257,  -0.149832968,
                                       0.0320130254,    -0.00437667822, 0.000281247121};
static const double erf_small_f64[] = {0x1.20dd750429b6dp+0,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b21p-4,
                                       -0x1.b82ce312849afp-6,  0x1.565bcd0db053p-8,    -0x1.c02db3d8f264ep-11,
                                       0x1.f9a321a195b9dp-14,  -0x1.f4d1df40274b3p-17, 0x1.b9def1de3f8ebp-20,
                                       -0x1.5f1d38354a7c9p-23, 0x1.f7a41b6768ef8p-27,  -0x1.386acc14bb471p-30,
                                       0x1.0579a08899394p-34};
static const double erf_large_f64[] = {
    -0x1.81c38b07c98cbp-23, -0x1.20dd562e0542bp+0,  -0x1.45f42b5e88052p-1,  -0x1.a4da4cc1ccffap-4,
    0x1.38938ea592b1ap-6,   0x1.261fe93f57392p-12,  -0x1.cfbc78fd143c4p-10, 0x1.502a5137df08ap-11,
    -0x1.7811e46d802cdp-15, -0x1.271e4171f9a9ep-14, 0x1.79c81246b4586p-15,  -0x1.150b30d43cb14p-16,
    0x1.225ddb9d1d548p-18,  -0x1.c89ebda8d6f64p-21, 0x1.0dee381b1c5d3p-23,  -0x1.d42c7e65e4fa9p-27,
    0x1.19eb1e9d1e4dbp-30,  -0x1.a5d3036237739p-35, 0x1.27695fb5eea57p-40};
static const tl_math_series erf_small = TL_MATH_SERIES(erf_small), erf_large = TL_MATH_SERIES(erf_large);

LLVMValueRef tl_math_build_ERF(const tl_math_context *m, LLVMValueRef x) {
  double middle = m->is_f64 ? 1 : 0.92, far = m->is_f64 ? 5.95 : 4;
  LLVMValueRef a = tl_math_abs(m, x), square = tl_math_mul(m, x, x);
  LLVMValueRef small = tl_math_mul(m, tl_math_series_of(m, square, &erf_small), x);
  // The order of the comparisons lets a NaN through, but for f64's exponential.
  LLVMValueRef is_far = tl_math_compare(m, LLVMRealOGT, a, far);
  LLVMValueRef q = tl_math_series_of(m, tl_math_select(m, is_far, tl_math_const(m, far), a), &erf_large);
  LLVMValueRef power = m->is_f64 ? tl_math_exp_f64(m, q) : ex2(m, q, true);
  LLVMValueRef large = tl_math_sub(m, tl_math_const(m, 1.0), power);
  LLVMValueRef is_large = tl_math_compare(m, LLVMRealOGT, a, middle);
  return tl_math_select(m, is_large, tl_math_copy_sign(m, large, x), small);
}

LLVMValueRef tl_math_build_SIGMOID(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return tl_math_sigmoid_f64(m, x);
  LLVMValueRef one = tl_math_const(m, 1.0);
  if (m->fast) {
    LLVMValueRef e = ex2(m, tl_math_mul(m, x, tl_math_const(m, -1.442695040888963407)), true);
    return tl_math_device1(m, TL_DEVOP_RCP_APPROX_FTZ, tl_math_add(m, e, one));
  }
  // With t = e^-|x| nothing overflows, and the left tail keeps its denormals: t / (1 + t) there, 1 / (1 + t) on the
  // right.
  bool is_rounded = precision_of(m) == TL_PRECISION_ROUNDED;
  LLVMValueRef minus = tl_math_neg(m, tl_math_abs(m, x));
  LLVMValueRef t = is_rounded ? exp_rounded(m, minus) : exp_of(m, minus, ex2_full);
  LLVMValueRef sum = tl_math_add(m, t, one);
  LLVMValueRef right = is_rounded ? tl_math_device1(m, TL_DEVOP_RCP_APPROX_FTZ, sum) : tl_math_div(m, one, sum);
  LLVMValueRef is_left = tl_math_compare(m, LLVMRealOLT, x, 0.0);
  return tl_math_mul(m, right, tl_math_select(m, is_left, t, one));
}

LLVMValueRef tl_math_build_SQRT(const tl_math_context *m, LLVMValueRef x) {
  if (m->fast) return tl_math_device1(m, TL_DEVOP_SQRT_APPROX_FTZ, x);
  return tl_lower_intrinsic1(m->l, "llvm.sqrt", x);
}

LLVMValueRef tl_math_build_RSQRT(const tl_math_context *m, LLVMValueRef x) {
  if (m->is_f64) return tl_math_div(m, tl_math_const(m, 1.0), tl_lower_intrinsic1(m->l, "llvm.sqrt", x));
  return tl_math_device1(m, m->fast ? TL_DEVOP_RSQRT_APPROX_FTZ : TL_DEVOP_RSQRT_APPROX, x);
}

LLVMValueRef tl_math_build_RCP(const tl_math_context *m, LLVMValueRef x) {
  if (m->fast) return tl_math_device1(m, TL_DEVOP_RCP_APPROX_FTZ, x);
  return tl_math_div(m, tl_math_const(m, 1.0), x);
}

LLVMValueRef tl_math_build_ABS(const tl_math_context *m, LLVMValueRef x) {
  return tl_math_abs(m, x);
}

static tl_math_builder *const builders[TL_MATH_COUNT] = {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how) \
  [TL_MATH_##ID] = tl_math_build_##ID,
#include "ir/scalar/functions.def"
};
static tl_math_builder2 *const builders2[TL_MATH2_COUNT] = {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how)
#define TL_MATH_BINARY(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, arguments, doc, how) \
  [TL_MATH2_##ID] = tl_math_build_##ID,
#include "ir/scalar/functions.def"
};

static bool is_half(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
}

static bool has_lowering(tl_dtype dtype) {
  return is_half(dtype) || dtype == TL_DTYPE_F32 || dtype == TL_DTYPE_F64;
}

// Of functions of the type's own bits: f16 and bf16 as they are.
static tl_math_context context_of(tl_lower *l, tl_dtype dtype, bool of_bits, const tl_value *source, const tl_op *op) {
  tl_math_context m = tl_math_context_of(l, dtype == TL_DTYPE_F64, source, op);
  if (is_half(dtype) && of_bits) {
    m.type = tl_session_type(l->session, dtype);
    m.bits_type = l->session->i16;
  }
  return m;
}

// The function `fn` (tl_math) of one float of `dtype`; NULL when there is none for the dtype.
static LLVMValueRef build_function(tl_lower *l, int fn, tl_dtype dtype, LLVMValueRef a, const tl_value *source,
                                   const tl_op *op) {
  if (!has_lowering(dtype)) return NULL;
  bool of_bits = tl_scalar_math_is_of_bits(fn), is_widened = is_half(dtype) && !of_bits;
  tl_math_context m = context_of(l, dtype, of_bits, source, op);
  if (is_widened) a = LLVMBuildFPExt(l->builder, a, l->session->f32, "");
  LLVMValueRef result = builders[fn](&m, a);
  if (is_widened && tl_scalar_math_result(fn, dtype) == dtype)
    result = LLVMBuildFPTrunc(l->builder, result, tl_session_type(l->session, dtype), "");
  return result;
}

void tl_lower_op_MATH(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0);
  int fn = (int)tl_op_int(op, TL_ATTR_MATH, 0);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) {
    out[e] = build_function(l, fn, a->type->dtype, tl_lower_get(l, a, e), a, op);
    if (!out[e]) {
      tl_lower_unsupported(l, op, "%s of %s has no lowering", tl_ir_enum_text(TL_IR_ENUM_MATH, fn),
                           tl_dtype_name(a->type->dtype));
      return;
    }
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

// pow and the functions of `math2`.
static void lower_binary(tl_lower *l, tl_op *op, tl_math_builder2 *build, bool of_bits, bool takes_exponent) {
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  tl_dtype dtype = tl_op_result(op, 0)->type->dtype;
  if (!has_lowering(dtype)) {
    tl_lower_unsupported(l, op, "'%s' of %s has no lowering", tl_op_info_of(op->code)->name, tl_dtype_name(dtype));
    return;
  }
  bool is_widened = is_half(dtype) && !of_bits;
  tl_math_context m = context_of(l, dtype, of_bits, NULL, op);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t a_len = tl_lower_len(l, a), b_len = tl_lower_len(l, b), len = a_len > b_len ? a_len : b_len;
  for (int32_t e = 0; e < len; e++) {
    LLVMValueRef x = tl_lower_get(l, a, e), y = tl_lower_get(l, b, e);
    if (is_widened) x = LLVMBuildFPExt(l->builder, x, m.type, "");
    if (is_widened && !takes_exponent) y = LLVMBuildFPExt(l->builder, y, m.type, "");
    out[e] = build(&m, x, y);
    if (is_widened) out[e] = LLVMBuildFPTrunc(l->builder, out[e], tl_session_type(l->session, dtype), "");
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}

void tl_lower_op_POW(tl_lower *l, tl_op *op) {
  lower_binary(l, op, tl_math_pow, false, false);
}

void tl_lower_op_MATH2(tl_lower *l, tl_op *op) {
  int fn = (int)tl_op_int(op, TL_ATTR_MATH2, 0);
  lower_binary(l, op, builders2[fn], tl_scalar_math2_is_of_bits(fn), tl_scalar_math2_takes_exponent(fn));
}
