// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The elementary functions of ir/scalar/functions.def against the C library's long double: error in units in the last
// place of f32 and of f64, over samples of all bit patterns (zeros, subnormals, infinities and NaN among them) and
// where functions are hard, within the bounds that it states. Where C17's Annex F says what the result is, zeros have
// its sign too. TL_TEST_ELEMENTARY_BATCHES=n samples n times as many bit patterns (262144: every f32),
// TL_TEST_ELEMENTARY_SHOW=1 prints the largest errors.
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/emulator.h"
#include "ir/scalar/scalar.h"
#include "ir/text/text.h"
#include "llvm_backend/output/backend.h"

// An odd step, so that every pattern comes in some batch. Sanitizers look at the code, not at the values.
#ifdef TL_SANITIZED
enum { SAMPLES = 1024, STEP = 262147 };
#else
enum { SAMPLES = 16384, STEP = 262147 };
#endif

static const char text[] =
    "module scheduled sm_80\n"
    "kernel {name = \"elementary\", threads = 128, shared_bytes = 0} do {\n"
    "  %%n = const {value = 16384} : index\n"
    "  %%one = const {value = 1} : index\n"
    "  %%x = tensor dims(%%n) strides(%%one) {name = \"X\", arg = 0, access = in, align = 16} : buffer<global %s "
    "65536>\n"
    "  %%y = tensor dims(%%n) strides(%%one) {name = \"Y\", arg = 1, access = in, align = 16} : buffer<global %s "
    "65536>\n"
    "  %%z = tensor dims(%%n) strides(%%one) {name = \"Z\", arg = 2, access = out, align = 16} : buffer<global %s "
    "65536>\n"
    "  %%blocks = const {value = 16} : index\n"
    "  %%size = const {value = 1024} : index\n"
    "  %%b = grid %%blocks {names = \"b\"} : index\n"
    "  %%start = mul %%b, %%size : index\n"
    "  parallel {extents = [1024], vec = 2, layout = #layout<1024: r2.d0s1 l32.d0s2 w4.d0s64 r4.d0s256>} do(%%i: "
    "index) {\n"
    "    %%at = add %%start, %%i : index\n"
    "    %%v = load buffer(%%x) index(%%at) {check = [0], vec = 2} : %s\n"
    "    %%w = load buffer(%%y) index(%%at) {check = [0], vec = 2} : %s\n"
    "%s"
    "    store value(%%r) buffer(%%z) index(%%at) {check = [0], vec = 2}\n"
    "  }\n"
    "}\n";

static void check_status(tl_status status) {
  if (status) ck_abort_msg("%s", tl_status_message(status));
}

typedef struct kernel {
  tl_sources sources;
  tl_diags diags;
  tl_module *module;
  tl_backend *backend;
  char *bitcode;
  tl_emu_kernel *emulated;
  void *buffers[3];
} kernel;

// `op`: lines that make %r of %v and %w.
static void kernel_create(kernel *k, const char *op, tl_dtype dtype) {
  char source[4096];
  const char *type = tl_dtype_name(dtype);
  snprintf(source, sizeof source, text, type, type, type, type, type, op);
  *k = (kernel){0};
  tl_sources_init(&k->sources);
  tl_diags_init(&k->diags, &k->sources);
  uint32_t id = tl_sources_add(&k->sources, "elementary.tir", tl_str_from(source));
  k->module = tl_module_parse(&k->sources, id, &k->diags);
  tl_strbuf errors = {0};
  if (!k->module) tl_diags_print_text(&k->diags, &errors, false);
  ck_assert_msg(k->module != NULL, "%s", tl_strbuf_c(&errors));
  check_status(tl_backend_create(k->module, tl_target_find(TL_STR("sm_80")), &(tl_backend_options){.opt_level = 3},
                                 &k->diags, &k->backend));
  size_t len;
  const tl_manifest *manifest;
  check_status(tl_backend_device_bitcode(k->backend, &k->bitcode, &len));
  check_status(tl_backend_manifest(k->backend, &manifest));
  check_status(tl_emu_kernel_create(k->bitcode, len, &manifest->kernels[0], &k->emulated));
  for (int i = 0; i < 3; i++) k->buffers[i] = tl_emu_alloc(SAMPLES * sizeof(double), 16);
}

static void kernel_run(kernel *k) {
  void *params[] = {&k->buffers[0], &k->buffers[1], &k->buffers[2]};
  tl_emu_stats stats;
  check_status(tl_emu_launch(k->emulated, (const uint32_t[]){SAMPLES / 1024, 1, 1}, params,
                             &(tl_emu_options){.threads = 1}, &stats));
}

static void kernel_destroy(kernel *k) {
  for (int i = 0; i < 3; i++) tl_emu_free(k->buffers[i]);
  tl_emu_kernel_destroy(k->emulated);
  free(k->bitcode);
  tl_backend_destroy(k->backend);
  tl_module_destroy(k->module);
  tl_diags_fini(&k->diags);
  tl_sources_fini(&k->sources);
}

// ---- errors

// The format of a dtype: digits of the mantissa, and the exponents (of frexp) of the smallest normal and the largest
// number.
typedef struct format {
  int digits, least, most;
} format;
static const format f32_format = {24, -125, 128}, f64_format = {53, -1021, 1024};

static double ulps_off(double got, long double wanted, const format *f) {
  if (isnan(wanted)) return isnan(got) ? 0 : INFINITY;
  if (isnan(got)) return INFINITY;
  if (wanted == 0) return got == 0 && !signbit(got) == !signbit(wanted) ? 0 : INFINITY;
  // From half a unit past the largest number on the rounded result is infinite; the neighbour of that edge is allowed.
  long double largest = ldexpl(1 - ldexpl(1, -f->digits), f->most), unit = ldexpl(1, f->most - f->digits);
  if (isinf(wanted) || fabsl(wanted) >= largest + unit / 2) {
    if ((got > 0) != (wanted > 0)) return INFINITY;
    return isinf(got) ? 0 : fabs(got) == (double)largest && fabsl(wanted) < largest + 2 * unit ? 1 : INFINITY;
  }
  if (isinf(got)) return fabsl(wanted) >= largest - 2 * unit && (got > 0) == (wanted > 0) ? 1 : INFINITY;
  int exponent;
  frexpl(wanted, &exponent);
  if (exponent < f->least) exponent = f->least;
  return (double)(fabsl((long double)got - wanted) / ldexpl(1, exponent - f->digits));
}

// ---- functions

typedef long double unary(long double);
typedef long double binary(long double, long double);

static long double ref_sigmoid(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static long double ref_rsqrt(long double x) {
  return 1 / sqrtl(x);
}
static long double ref_rcp(long double x) {
  return 1 / x;
}
static long double ref_exp10(long double x) {
  return powl(10, x);
}
static long double ref_isnan(long double x) {
  return isnan(x);
}
static long double ref_isinf(long double x) {
  return isinf(x) != 0;
}
static long double ref_isfinite(long double x) {
  return isfinite(x);
}
static long double ref_signbit(long double x) {
  return signbit(x) != 0;
}
static long double ref_mantissa(long double x) {
  int exponent;
  return frexpl(x, &exponent);
}
static long double ref_exponent(long double x) {
  return isfinite(x) && x != 0 ? logbl(x) + 1 : 0;
}

static unary *const references[TL_MATH_COUNT] = {
    [TL_MATH_EXP] = expl,
    [TL_MATH_EXP2] = exp2l,
    [TL_MATH_EXP10] = ref_exp10,
    [TL_MATH_EXPM1] = expm1l,
    [TL_MATH_LOG] = logl,
    [TL_MATH_LOG2] = log2l,
    [TL_MATH_LOG10] = log10l,
    [TL_MATH_LOG1P] = log1pl,
    [TL_MATH_SIN] = sinl,
    [TL_MATH_COS] = cosl,
    [TL_MATH_TAN] = tanl,
    [TL_MATH_SINH] = sinhl,
    [TL_MATH_COSH] = coshl,
    [TL_MATH_TANH] = tanhl,
    [TL_MATH_ATAN] = atanl,
    [TL_MATH_ERF] = erfl,
    [TL_MATH_RSQRT] = ref_rsqrt,
    [TL_MATH_SIGMOID] = ref_sigmoid,
    [TL_MATH_SQRT] = sqrtl,
    [TL_MATH_RCP] = ref_rcp,
    [TL_MATH_FLOOR] = floorl,
    [TL_MATH_CEIL] = ceill,
    [TL_MATH_TRUNC] = truncl,
    [TL_MATH_ROUND] = nearbyintl,
    [TL_MATH_ABS] = fabsl,
    [TL_MATH_ASIN] = asinl,
    [TL_MATH_ACOS] = acosl,
    [TL_MATH_ASINH] = asinhl,
    [TL_MATH_ACOSH] = acoshl,
    [TL_MATH_ATANH] = atanhl,
    [TL_MATH_CBRT] = cbrtl,
    [TL_MATH_ROUND_AWAY] = roundl,
    [TL_MATH_ISNAN] = ref_isnan,
    [TL_MATH_ISINF] = ref_isinf,
    [TL_MATH_ISFINITE] = ref_isfinite,
    [TL_MATH_SIGNBIT] = ref_signbit,
    [TL_MATH_FREXP_MANTISSA] = ref_mantissa,
    [TL_MATH_FREXP_EXPONENT] = ref_exponent,
};

// Those of `math2`. The exponent of ldexp is the second operand's whole part, within 4000.
static binary *const references2[TL_MATH2_COUNT] = {
    [TL_MATH2_ATAN2] = atan2l,         [TL_MATH2_HYPOT] = hypotl,       [TL_MATH2_FMOD] = fmodl,
    [TL_MATH2_REMAINDER] = remainderl, [TL_MATH2_COPYSIGN] = copysignl,
};
static long double ref_ldexp(long double x, long double n) {
  return ldexpl(x, isnan(n) ? 0 : (int)fmaxl(fminl(truncl(n), 4000), -4000));
}
static long double ref_nextafter(long double x, long double y, bool is_f64) {
  return is_f64 ? (long double)nextafter((double)x, (double)y) : (long double)nextafterf((float)x, (float)y);
}

// The functions of the `math` op, those of `math2`, and the op of two floats.
enum { MATH2 = TL_MATH_COUNT, POW = MATH2 + TL_MATH2_COUNT, NUM_FUNCTIONS };

// The stated bounds (f32, f64); a correctly rounded result is off by up to half a unit.
static const double bounds[NUM_FUNCTIONS][2] = {
#define TL_MATH_FUNCTION(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, doc, how) \
  [TL_MATH_##ID] = {f32_ulp ? f32_ulp : 0.5, f64_ulp ? f64_ulp : 0.5},
#define TL_MATH_BINARY(ID, text, takes, group, evaluate, f32_ulp, f64_ulp, arguments, doc, how) \
  [MATH2 + TL_MATH2_##ID] = {f32_ulp ? f32_ulp : 0.5, f64_ulp ? f64_ulp : 0.5},
#define TL_MATH_OPERATOR(ID, f32_ulp, f64_ulp, how) [ID] = {f32_ulp, f64_ulp},
#include "ir/scalar/functions.def"
};

static const char *name_of(int function) {
  if (function == POW) return "pow";
  return function >= MATH2 ? tl_ir_enum_text(TL_IR_ENUM_MATH2, function - MATH2)
                           : tl_ir_enum_text(TL_IR_ENUM_MATH, function);
}

static long double reference(int function, long double x, long double y, bool is_f64) {
  if (function == POW) return powl(x, y);
  if (function == MATH2 + TL_MATH2_LDEXP) return ref_ldexp(x, y);
  if (function == MATH2 + TL_MATH2_NEXTAFTER) return ref_nextafter(x, y, is_f64);
  // A function without a row above is measured by nothing.
  bool is_unary = function < MATH2;
  ck_assert_msg(is_unary ? references[function] != NULL : references2[function - MATH2] != NULL,
                "%s has no reference here", name_of(function));
  return is_unary ? references[function](x) : references2[function - MATH2](x, y);
}

// ---- arguments

static uint64_t random_state;
static uint64_t random_bits(void) {  // splitmix64
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}
static double random_between(double lo, double hi) {
  return lo + (hi - lo) * (double)(random_bits() >> 11) * 0x1p-53;
}

static double of_bits32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}
static double of_bits64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static const double special[] = {0,         -0.0,
                                 INFINITY,  -INFINITY,
                                 NAN,       0x1p-149,
                                 -0x1p-149, 0x1p-126,
                                 1,         -1,
                                 2,         -2,
                                 3,         -3,
                                 0.5,       -0.5,
                                 1.5,       -1.5,
                                 0x1p24,    0x1p53,
                                 1e30,      0x1.fffffep127,
                                 -1e30,     0x1.000002p0,
                                 -0x1p23,   0x1.8p-60,
                                 -0x1p-900, 0x1p-1074,
                                 1e300,     16777215,
                                 -16777217, 1 - 0x1p-24};
enum { NUM_SPECIAL = sizeof special / sizeof *special };

// Where reducing an angle is hardest: the numbers nearest to multiples of pi/2, of f32 and of f64.
static const double hard_angles[] = {0x1.f9cbe2p95 /* near a multiple to 2^-30 */,
                                     6381956970095103.0 * 0x1p797,
                                     0x1.6ac5b262ca1ffp849,
                                     16367173.0 * 0x1p72,
                                     0x1.8p16,
                                     0x1p20,
                                     0x1.921fb54442d18p20};

// Number i of the arguments `set` for the function's first operand (and the other): 0: all bit patterns; 1: around 1;
// 2: where exponentials neither vanish nor overflow; 3: where the function is hard.
static void argument(int function, int set, uint32_t i, uint32_t batch, bool is_f64, double out[2]) {
  double reach = is_f64 ? 750 : 110;
  out[1] = is_f64 ? of_bits64(random_bits()) : of_bits32((uint32_t)random_bits());
  if (set == 0) {
    out[0] = is_f64 ? of_bits64(random_bits()) : of_bits32(i * STEP + batch * 40503u);
    if (i < NUM_SPECIAL * NUM_SPECIAL) {
      out[0] = special[i / NUM_SPECIAL];
      out[1] = special[i % NUM_SPECIAL];
    }
  } else if (set == 1) {
    out[0] = random_between(0.5, 2.5);
    out[1] = random_between(-2, 2);
  } else if (set == 2) {
    out[0] = random_between(-reach, reach);
    if (function >= MATH2 && function != POW) out[1] = out[0] * random_between(-2, 2);
  } else {
    // Angles near multiples of pi/2, and powers that neither vanish nor overflow.
    out[0] = (double)(i + 1) * 0x1.921fb54442d18p0 * ldexp(1, (int)(batch % 900));
    if (i < sizeof hard_angles / sizeof *hard_angles) out[0] = hard_angles[i];
  }
  // Sines and the like of numbers up to 1, and next to it; remainders by numbers of few digits, often half of one left.
  bool is_unit = function == TL_MATH_ASIN || function == TL_MATH_ACOS || function == TL_MATH_ATANH;
  if (is_unit && set > 0)
    out[0] = set == 1 ? random_between(-1, 1) : 1 - random_between(0, 0.01) * exp2(-(double)(i % 40));
  bool is_remainder = function == MATH2 + TL_MATH2_FMOD || function == MATH2 + TL_MATH2_REMAINDER;
  if (is_remainder && set == 3) {
    out[0] = (double)(i % 1000) * 0.5;
    out[1] = (double)(i / 1000 % 20) * 0.25;
  }
  if (function == MATH2 + TL_MATH2_LDEXP && set > 0) {
    out[0] = set == 2 ? ldexp(random_between(-2, 2), (int)(random_bits() % 250) - 125) : out[0];
    out[1] = random_between(is_f64 ? -2200 : -300, is_f64 ? 2200 : 300);
  }
  if (function == POW && set > 0) {
    // Any magnitude, or near 1, where the exponent is large.
    double x =
        set == 2 ? exp2(random_between(is_f64 ? -1070 : -149, is_f64 ? 1020 : 127)) : 1 + random_between(-0.1, 0.1);
    out[0] = is_f64 ? x : (double)(float)x;
    out[1] = random_between(is_f64 ? -1075 : -149, is_f64 ? 1024 : 128) / log2(fabs(out[0]));
  }
}

static void fill(const kernel *k, int function, int set, uint32_t batch, bool is_f64) {
  for (uint32_t i = 0; i < SAMPLES; i++) {
    double pair[2];
    argument(function, set, i, batch, is_f64, pair);
    for (int j = 0; j < 2; j++) {
      if (is_f64)
        ((double *)k->buffers[j])[i] = pair[j];
      else
        ((float *)k->buffers[j])[i] = (float)pair[j];
    }
  }
}

static double element(const kernel *k, int buffer, int i, bool is_f64) {
  return is_f64 ? ((double *)k->buffers[buffer])[i] : (double)((float *)k->buffers[buffer])[i];
}

static void print_op(int function, tl_dtype dtype, char *out, size_t size) {
  const char *name = name_of(function), *type = tl_dtype_name(dtype);
  if (function == POW) {
    snprintf(out, size, "    %%r = pow %%v, %%w : %s\n", type);
  } else if (function == MATH2 + TL_MATH2_LDEXP) {
    snprintf(out, size, "    %%e = cast %%w : i32\n    %%r = math2 %%v, %%e {fn2 = ldexp} : %s\n", type);
  } else if (function >= MATH2) {
    snprintf(out, size, "    %%r = math2 %%v, %%w {fn2 = %s} : %s\n", name, type);
  } else if (tl_scalar_math_result(function, dtype) == dtype) {
    snprintf(out, size, "    %%r = math %%v {fn = %s} : %s\n", name, type);
  } else {
    snprintf(out, size, "    %%t = math %%v {fn = %s} : %s\n    %%r = cast %%t : %s\n", name,
             tl_dtype_name(tl_scalar_math_result(function, dtype)), type);
  }
}

static void check_function(int function, bool is_f64) {
  enum { SETS = 4 };
  const char *wanted = getenv("TL_TEST_ELEMENTARY_BATCHES"), *show = getenv("TL_TEST_ELEMENTARY_SHOW");
  uint32_t batches = wanted ? (uint32_t)strtoul(wanted, NULL, 10) : 1;
  const char *name = name_of(function);
  char op[200];
  print_op(function, is_f64 ? TL_DTYPE_F64 : TL_DTYPE_F32, op, sizeof op);
  const format *f = is_f64 ? &f64_format : &f32_format;
  kernel k;
  kernel_create(&k, op, is_f64 ? TL_DTYPE_F64 : TL_DTYPE_F32);
  random_state = (uint64_t)function;
  double largest = 0;
  for (int set = 0; set < SETS; set++) {
    for (uint32_t batch = 0; batch < batches; batch++) {
      fill(&k, function, set, batch, is_f64);
      kernel_run(&k);
      for (int i = 0; i < SAMPLES; i++) {
        double x = element(&k, 0, i, is_f64), y = element(&k, 1, i, is_f64), got = element(&k, 2, i, is_f64);
        long double exact = reference(function, (long double)x, (long double)y, is_f64);
        double off = ulps_off(got, exact, f);
        ck_assert_msg(off <= bounds[function][is_f64], "%s(%a, %a) of %s = %a, expected %.21Lg: %g ulp", name, x, y,
                      is_f64 ? "f64" : "f32", got, exact, off);
        largest = fmax(largest, off);
      }
    }
  }
  if (show) printf("%s %s: %.2f\n", name, is_f64 ? "f64" : "f32", largest);
  kernel_destroy(&k);
}

START_TEST(f32_error_is_within_the_bound) {
  check_function(_i, false);
}
END_TEST

START_TEST(f64_error_is_within_the_bound) {
  check_function(_i, true);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_elementary");
  TCase *functions = tcase_create("functions");
  tcase_set_timeout(functions, getenv("TL_TEST_ELEMENTARY_BATCHES") ? 36000 : 120);
  tcase_add_loop_test(functions, f32_error_is_within_the_bound, 0, NUM_FUNCTIONS);
  tcase_add_loop_test(functions, f64_error_is_within_the_bound, 0, NUM_FUNCTIONS);
  suite_add_tcase(suite, functions);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
