// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementary functions of f32 as LLVM IR: no libdevice and none of LLVM's libm intrinsics, which abort on NVPTX. Device
// and emulator run the same IR.
#include <math.h>
#include <string.h>

#include "llvm_backend/lower_arith.h"
#include "llvm_backend/lower_precision.h"

typedef struct tl_math_context {
  tl_lower *l;
  LLVMBuilderRef b;
  const tl_value *source;  // operand of the math op, for facts about it; NULL unknown
  const tl_op *op;         // the math op, for facts about its uses
} tl_math_context;

static LLVMValueRef real(const tl_math_context *m, LLVMValueRef like, double value) {
  (void)m;
  return LLVMConstReal(LLVMTypeOf(like), value);
}

static LLVMValueRef device1(const tl_math_context *m, tl_device_op_id id, LLVMValueRef a) {
  return tl_session_call_device(m->l->session, m->b, id, &a, 1);
}

static LLVMValueRef fma_(const tl_math_context *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  return tl_lower_intrinsic3(m->l, "llvm.fma", a, b, c);
}

// c[0] + x * (c[1] + x * (…)).
static LLVMValueRef polynomial(const tl_math_context *m, LLVMValueRef x, const double *c, int n) {
  LLVMValueRef result = real(m, x, c[n - 1]);
  for (int i = n - 2; i >= 0; i--) result = fma_(m, result, x, real(m, x, c[i]));
  return result;
}

static LLVMValueRef bits_of(const tl_math_context *m, LLVMValueRef x) {
  return LLVMBuildBitCast(m->b, x, m->l->session->i32, "");
}
static LLVMValueRef float_of(const tl_math_context *m, LLVMValueRef bits) {
  return LLVMBuildBitCast(m->b, bits, m->l->session->f32, "");
}

// ---- facts that save instructions
static bool const_float(const tl_value *value, double *out) {
  const tl_attr *attr = value->def && value->def->code == TL_OP_CONST ? tl_op_attr(value->def, TL_ATTR_VALUE) : NULL;
  if (!attr) return false;
  *out = attr->is_float ? attr->v.f : (double)attr->v.i;
  return true;
}

static bool is_nonnegative(const tl_value *value) {
  double constant;
  if (const_float(value, &constant)) return constant >= 0;
  if (!value->def || value->def->code != TL_OP_MATH) return false;
  int64_t fn = tl_op_int(value->def, TL_ATTR_MATH, 0);
  return fn == TL_MATH_EXP || fn == TL_MATH_EXP2 || fn == TL_MATH_SIGMOID || fn == TL_MATH_ABS;
}

// Whether the value is a normal positive number, +inf or NaN: a positive constant plus something nonnegative.
static bool is_normal_positive(const tl_value *value) {
  if (!value || !value->def || value->def->code != TL_OP_ADD || value->type->dtype != TL_DTYPE_F32) return false;
  double constant;
  for (uint32_t i = 0; i < 2; i++)
    if (const_float(tl_op_operand(value->def, i), &constant) && constant >= 1e-30 &&
        is_nonnegative(tl_op_operand(value->def, 1 - i)))
      return true;
  return false;
}

// Whether every use adds the result to a constant beside which a denormal vanishes.
static bool denormals_vanish(const tl_op *op) {
  if (!op || op->results[0].type->dtype != TL_DTYPE_F32) return false;
  for (const tl_use *use = op->results[0].uses; use; use = use->next) {
    double constant;
    if (use->owner->code != TL_OP_ADD && use->owner->code != TL_OP_SUB) return false;
    tl_value *a = tl_op_operand(use->owner, 0), *b = tl_op_operand(use->owner, 1);
    const tl_value *other = a == use->value ? b : a;
    if (!const_float(other, &constant) || fabs(constant) < 1e-20) return false;
  }
  return true;
}

// ---- exponentials
static LLVMValueRef ex2(const tl_math_context *m, LLVMValueRef x, bool flush) {
  return device1(m, flush ? TL_DEVOP_EX2_APPROX_FTZ : TL_DEVOP_EX2_APPROX, x);
}

// x / 2, where that changes the constant factors in x instead of costing a multiplication: exact but for denormals,
// which 2^x takes for 0. `steps` bounds the search.
static LLVMValueRef half_of(const tl_math_context *m, LLVMValueRef x, int steps) {
  LLVMBool loses = 0;
  if (LLVMIsAConstantFP(x)) return real(m, x, LLVMConstRealGetDouble(x, &loses) / 2);
  if (!LLVMIsAInstruction(x) || steps == 0) return NULL;
  LLVMOpcode code = LLVMGetInstructionOpcode(x);
  if (code != LLVMFMul && code != LLVMFSub && code != LLVMFAdd) return NULL;
  LLVMValueRef a = LLVMGetOperand(x, 0), b = LLVMGetOperand(x, 1), result;
  if (code == LLVMFMul) {
    LLVMValueRef half = LLVMIsAConstantFP(b) ? half_of(m, b, 0) : NULL;
    if (!half) return NULL;
    result = LLVMBuildFMul(m->b, a, half, "");
  } else {
    a = half_of(m, a, steps - 1);
    b = a ? half_of(m, b, steps - 1) : NULL;
    if (!b) return NULL;
    result = code == LLVMFSub ? LLVMBuildFSub(m->b, a, b, "") : LLVMBuildFAdd(m->b, a, b, "");
  }
  if (LLVMIsAInstruction(result)) LLVMSetFastMathFlags(result, LLVMGetFastMathFlags(x));
  return result;
}

// 2^x as the square of 2^(x / 2), which is a normal number wherever 2^x is not 0: one multiplication in the place of
// the comparison and the two predicated multiplications by which ex2.approx reaches the denormals. The error doubles.
static LLVMValueRef ex2_squared(const tl_math_context *m, LLVMValueRef x) {
  enum { STEPS = 2 };  // s * c - m * c
  LLVMValueRef half = half_of(m, x, STEPS);
  if (!half) half = LLVMBuildFMul(m->b, x, real(m, x, 0.5), "");
  LLVMValueRef root = ex2(m, half, true), square = LLVMBuildFMul(m->b, root, root, "");
  if (LLVMIsAInstruction(square)) LLVMSetFastMathFlags(square, LLVMFastMathAllowContract);  // into the sum that follows
  return square;
}

// 2^x as the uses of the op's result need it.
static LLVMValueRef ex2_for_uses(const tl_math_context *m, LLVMValueRef x) {
  if (denormals_vanish(m->op)) return ex2(m, x, true);
  if (m->op && tl_lower_precision_is_spare(tl_op_result(m->op, 0))) return ex2_squared(m, x);
  return ex2(m, x, false);
}

// x log2(e) = hi + lo with hi the rounded product; e^x = 2^hi (1 + lo ln 2). |lo| is below 2^-15 unless hi overflows;
// then lo is infinite or NaN, 2^hi is 0 or infinite, and any finite positive factor gives the right result:
// min(|factor|, 2) is one.
typedef LLVMValueRef tl_ex2_builder(const tl_math_context *m, LLVMValueRef x);

static LLVMValueRef ex2_full(const tl_math_context *m, LLVMValueRef x) {
  return ex2(m, x, false);
}
static LLVMValueRef ex2_flushed(const tl_math_context *m, LLVMValueRef x) {
  return ex2(m, x, true);
}

static LLVMValueRef exp_of(const tl_math_context *m, LLVMValueRef x, tl_ex2_builder *power) {
  LLVMValueRef log2e = real(m, x, 1.44269502162933349609375), log2e_rest = real(m, x, 1.925963033500011079e-8);
  LLVMValueRef hi = LLVMBuildFMul(m->b, x, log2e, "");
  LLVMValueRef lo = fma_(m, x, log2e, LLVMBuildFNeg(m->b, hi, ""));
  lo = fma_(m, x, log2e_rest, lo);
  LLVMValueRef factor = fma_(m, lo, real(m, x, 0.693147180559945309), real(m, x, 1.0));
  factor = tl_lower_intrinsic2(m->l, "llvm.minnum", tl_lower_intrinsic1(m->l, "llvm.fabs", factor), real(m, x, 2.0));
  return LLVMBuildFMul(m->b, power(m, hi), factor, "");
}

static LLVMValueRef build_exp(const tl_math_context *m, LLVMValueRef x) {
  if (!m->l->fast_math) return exp_of(m, x, ex2_for_uses);
  return ex2(m, LLVMBuildFMul(m->b, x, real(m, x, 1.442695040888963407), ""), true);
}

static LLVMValueRef build_exp2(const tl_math_context *m, LLVMValueRef x) {
  return m->l->fast_math ? ex2(m, x, true) : ex2_for_uses(m, x);
}

// ---- logarithms
static const double log_coefficients[] = {0.333331799, -0.25004255,  0.200130895, -0.164719089,
                                          0.139580014, -0.151245913, 0.142273051};

// x = 2^e (1 + f), f in [-1/3, 1/3]: ln(1 + f) = f + f^2 (-1/2 + f P(f)). Returns ln(1 + f) and e.
static LLVMValueRef log_parts(const tl_math_context *m, LLVMValueRef x, LLVMValueRef *out_e) {
  tl_session *s = m->l->session;
  LLVMValueRef bits = bits_of(m, x);
  LLVMValueRef above = LLVMBuildSub(m->b, bits, tl_session_i32(s, 0x3f2aaaab), "");
  LLVMValueRef e = LLVMBuildAnd(m->b, above, tl_session_i32(s, (int64_t)(int32_t)0xff800000), "");
  LLVMValueRef f = LLVMBuildFSub(m->b, float_of(m, LLVMBuildSub(m->b, bits, e, "")), real(m, x, 1.0), "");
  LLVMValueRef p = polynomial(m, f, log_coefficients, 7);
  p = fma_(m, p, f, real(m, x, -0.5));
  p = fma_(m, p, LLVMBuildFMul(m->b, f, f, ""), f);
  *out_e = LLVMBuildSIToFP(m->b, e, s->f32, "");  // e * 2^23
  return p;
}

// scale * e * ln(2)-or-1 + ln(1 + f) * unit, for natural (unit 1) and binary (unit log2 e) logarithms.
static LLVMValueRef log_of(const tl_math_context *m, LLVMValueRef x, bool binary) {
  const double ln2 = 0.693147180559945309, two_to_minus_23 = 1.1920928955078125e-7;
  LLVMValueRef infinity = real(m, x, INFINITY), e, scaled = x, shift = NULL;
  bool normal = is_normal_positive(m->source);
  if (!normal) {
    LLVMValueRef tiny = LLVMBuildFCmp(m->b, LLVMRealOLT, x, real(m, x, 1.17549435082228750797e-38), "");
    scaled = LLVMBuildSelect(m->b, tiny, LLVMBuildFMul(m->b, x, real(m, x, 8388608.0), ""), x, "");
    shift = LLVMBuildSelect(m->b, tiny, real(m, x, -23.0), real(m, x, 0.0), "");
  }
  LLVMValueRef p = log_parts(m, scaled, &e), result;
  if (binary) {
    e = shift ? fma_(m, e, real(m, x, two_to_minus_23), shift)
              : LLVMBuildFMul(m->b, e, real(m, x, two_to_minus_23), "");
    result = fma_(m, p, real(m, x, 1.442695040888963407), e);
  } else if (shift) {
    e = fma_(m, e, real(m, x, two_to_minus_23), shift);
    result = fma_(m, e, real(m, x, ln2), p);
  } else {
    result = fma_(m, e, real(m, x, ln2 * two_to_minus_23), p);
  }
  // Negative, infinite or NaN: the bits are at least infinity's as an unsigned number.
  LLVMValueRef limit = tl_session_i32(m->l->session, 0x7f800000);
  LLVMValueRef special = LLVMBuildICmp(m->b, LLVMIntUGE, bits_of(m, scaled), limit, "");
  if (normal) return LLVMBuildSelect(m->b, special, x, result, "");
  result = LLVMBuildSelect(m->b, special, fma_(m, scaled, infinity, infinity), result, "");
  LLVMValueRef zero = LLVMBuildFCmp(m->b, LLVMRealOEQ, x, real(m, x, 0.0), "");
  return LLVMBuildSelect(m->b, zero, real(m, x, -INFINITY), result, "");
}

static LLVMValueRef build_log(const tl_math_context *m, LLVMValueRef x) {
  if (!m->l->fast_math) return log_of(m, x, false);
  return LLVMBuildFMul(m->b, device1(m, TL_DEVOP_LG2_APPROX_FTZ, x), real(m, x, 0.693147180559945309), "");
}

static LLVMValueRef build_log2(const tl_math_context *m, LLVMValueRef x) {
  return m->l->fast_math ? device1(m, TL_DEVOP_LG2_APPROX_FTZ, x) : log_of(m, x, true);
}

// ---- the others
static LLVMValueRef copy_sign(const tl_math_context *m, LLVMValueRef magnitude, LLVMValueRef sign) {
  tl_session *s = m->l->session;
  LLVMValueRef low = LLVMBuildAnd(m->b, bits_of(m, magnitude), tl_session_i32(s, 0x7fffffff), "");
  LLVMValueRef high = LLVMBuildAnd(m->b, bits_of(m, sign), tl_session_i32(s, (int64_t)(int32_t)0x80000000), "");
  return float_of(m, LLVMBuildOr(m->b, low, high, ""));
}

static LLVMValueRef build_tanh(const tl_math_context *m, LLVMValueRef x) {
  static const double c[] = {-0.33333318, 0.133326017, -0.053853858, 0.0210777584, -0.00628247336};
  if (m->l->fast_math) return device1(m, TL_DEVOP_TANH_APPROX, x);
  LLVMValueRef a = tl_lower_intrinsic1(m->l, "llvm.fabs", x), square = LLVMBuildFMul(m->b, x, x, "");
  LLVMValueRef small = LLVMBuildFMul(m->b, polynomial(m, square, c, 5), square, "");
  small = fma_(m, small, x, x);
  LLVMValueRef e = exp_of(m, LLVMBuildFMul(m->b, a, real(m, x, 2.0), ""), ex2_flushed);
  LLVMValueRef r = device1(m, TL_DEVOP_RCP_APPROX_FTZ, LLVMBuildFAdd(m->b, e, real(m, x, 1.0), ""));
  LLVMValueRef large = copy_sign(m, fma_(m, r, real(m, x, -2.0), real(m, x, 1.0)), x);
  LLVMValueRef is_large = LLVMBuildFCmp(m->b, LLVMRealOGT, a, real(m, x, 0.55), "");
  return LLVMBuildSelect(m->b, is_large, large, small, "");
}

static LLVMValueRef build_erf(const tl_math_context *m, LLVMValueRef x) {
  static const double small_c[] = {1.12837915, -0.376125056, 0.11281926, -0.026770187, 0.00499793317, -0.000601303917};
  static const double large_c[] = {-0.000298665046, -1.62682239,    -0.919380257,  -0.149832968,
                                   0.0320130254,    -0.00437667822, 0.000281247121};
  LLVMValueRef a = tl_lower_intrinsic1(m->l, "llvm.fabs", x), square = LLVMBuildFMul(m->b, x, x, "");
  LLVMValueRef small = LLVMBuildFMul(m->b, polynomial(m, square, small_c, 6), x, "");
  // From 4 on the result is 1 in f32. The order of the comparison lets a NaN through.
  LLVMValueRef far = LLVMBuildFCmp(m->b, LLVMRealOGT, a, real(m, x, 4.0), "");
  LLVMValueRef q =
      polynomial(m, LLVMBuildSelect(m->b, far, real(m, x, 4.0), a, ""), large_c, sizeof large_c / sizeof *large_c);
  LLVMValueRef large = LLVMBuildFSub(m->b, real(m, x, 1.0), ex2(m, q, true), "");
  LLVMValueRef is_large = LLVMBuildFCmp(m->b, LLVMRealOGT, a, real(m, x, 0.92), "");
  return LLVMBuildSelect(m->b, is_large, copy_sign(m, large, x), small, "");
}

static LLVMValueRef build_sigmoid(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef one = real(m, x, 1.0);
  if (m->l->fast_math) {
    LLVMValueRef e = ex2(m, LLVMBuildFMul(m->b, x, real(m, x, -1.442695040888963407), ""), true);
    return device1(m, TL_DEVOP_RCP_APPROX_FTZ, LLVMBuildFAdd(m->b, e, one, ""));
  }
  // With t = e^-|x| nothing overflows, and the left tail keeps its denormals: t / (1 + t) there, 1 / (1 + t) on the
  // right.
  LLVMValueRef t = exp_of(m, LLVMBuildFNeg(m->b, tl_lower_intrinsic1(m->l, "llvm.fabs", x), ""), ex2_full);
  LLVMValueRef right = LLVMBuildFDiv(m->b, one, LLVMBuildFAdd(m->b, t, one, ""), "");
  LLVMValueRef is_left = LLVMBuildFCmp(m->b, LLVMRealOLT, x, real(m, x, 0.0), "");
  return LLVMBuildFMul(m->b, right, LLVMBuildSelect(m->b, is_left, t, one, ""), "");
}

static LLVMValueRef build_sqrt(const tl_math_context *m, LLVMValueRef x) {
  if (m->l->fast_math && LLVMTypeOf(x) == m->l->session->f32) return device1(m, TL_DEVOP_SQRT_APPROX_FTZ, x);
  return tl_lower_intrinsic1(m->l, "llvm.sqrt", x);
}

static LLVMValueRef build_rsqrt(const tl_math_context *m, LLVMValueRef x) {
  if (LLVMTypeOf(x) != m->l->session->f32)
    return LLVMBuildFDiv(m->b, real(m, x, 1.0), tl_lower_intrinsic1(m->l, "llvm.sqrt", x), "");
  return device1(m, m->l->fast_math ? TL_DEVOP_RSQRT_APPROX_FTZ : TL_DEVOP_RSQRT_APPROX, x);
}

static LLVMValueRef build_rcp(const tl_math_context *m, LLVMValueRef x) {
  if (m->l->fast_math && LLVMTypeOf(x) == m->l->session->f32) return device1(m, TL_DEVOP_RCP_APPROX_FTZ, x);
  return LLVMBuildFDiv(m->b, real(m, x, 1.0), x, "");
}

static LLVMValueRef build_floor(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.floor", x);
}
static LLVMValueRef build_ceil(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.ceil", x);
}
static LLVMValueRef build_round(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.roundeven", x);
}
static LLVMValueRef build_trunc(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.trunc", x);
}
static LLVMValueRef build_abs(const tl_math_context *m, LLVMValueRef x) {
  return tl_lower_intrinsic1(m->l, "llvm.fabs", x);
}
static LLVMValueRef build_isnan(const tl_math_context *m, LLVMValueRef x) {
  return LLVMBuildFCmp(m->b, LLVMRealUNO, x, x, "");
}
static LLVMValueRef build_isinf(const tl_math_context *m, LLVMValueRef x) {
  LLVMValueRef a = tl_lower_intrinsic1(m->l, "llvm.fabs", x);
  return LLVMBuildFCmp(m->b, LLVMRealOEQ, a, real(m, x, INFINITY), "");
}

typedef LLVMValueRef tl_math_builder(const tl_math_context *m, LLVMValueRef x);
static tl_math_builder *const builders[TL_MATH_COUNT] = {
#define TL_MATH_FUNCTION(FN, builder, precise_ulp, how) [TL_MATH_##FN] = builder,
#include "llvm_backend/math.def"
#undef TL_MATH_FUNCTION
};

// Functions whose f64 form is built from correctly rounded operations.
static bool has_f64(int fn) {
  return fn == TL_MATH_SQRT || fn == TL_MATH_RSQRT || fn == TL_MATH_RCP || fn == TL_MATH_FLOOR || fn == TL_MATH_CEIL ||
         fn == TL_MATH_ROUND || fn == TL_MATH_TRUNC || fn == TL_MATH_ABS || fn == TL_MATH_ISNAN || fn == TL_MATH_ISINF;
}

LLVMValueRef tl_math_build(tl_lower *l, int fn, tl_dtype dtype, LLVMValueRef a, const tl_value *source,
                           const tl_op *op) {
  tl_math_context m = {l, l->builder, source, op};
  bool half = dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  if (!half && dtype != TL_DTYPE_F32 && !(dtype == TL_DTYPE_F64 && has_f64(fn))) return NULL;
  if (half) a = LLVMBuildFPExt(l->builder, a, l->session->f32, "");
  LLVMValueRef result = builders[fn](&m, a);
  if (half && fn != TL_MATH_ISNAN && fn != TL_MATH_ISINF)
    result = LLVMBuildFPTrunc(l->builder, result, tl_session_type(l->session, dtype), "");
  return result;
}

void tl_lower_op_MATH(tl_lower *l, tl_op *op) {
  tl_value *a = tl_op_operand(op, 0);
  int fn = (int)tl_op_int(op, TL_ATTR_MATH, 0);
  LLVMValueRef out[TL_MAX_GROUP];
  int32_t len = tl_lower_len(l, a);
  for (int32_t e = 0; e < len; e++) {
    out[e] = tl_math_build(l, fn, a->type->dtype, tl_lower_get(l, a, e), a, op);
    if (!out[e]) {
      tl_lower_unsupported(l, op, "%s of %s has no lowering", tl_ir_enum_text(TL_IR_ENUM_MATH, fn),
                           tl_dtype_name(a->type->dtype));
      return;
    }
  }
  tl_lower_set(l, tl_op_result(op, 0), out, len);
}
