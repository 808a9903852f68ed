// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The elementary functions of math.def against libm in double precision: error in units in the last place of f32 over
// samples of all bit patterns (zeros, denormals, infinities and NaN among them), within the bounds that math.def
// states.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "ir/text.h"
#include "llvm_backend/backend.h"

enum { SAMPLES = 65536 };

static const char text[] =
    "module scheduled sm_80\n"
    "kernel {name = \"elementary\", threads = 128, shared_bytes = 0} do {\n"
    "  %%n = const {value = 65536} : index\n"
    "  %%one = const {value = 1} : index\n"
    "  %%x = tensor dims(%%n) strides(%%one) {name = \"X\", arg = 0, access = in, align = 16} : buffer<global f32 "
    "65536>\n"
    "  %%y = tensor dims(%%n) strides(%%one) {name = \"Y\", arg = 1, access = out, align = 16} : buffer<global f32 "
    "65536>\n"
    "  %%blocks = const {value = 64} : index\n"
    "  %%size = const {value = 1024} : index\n"
    "  %%b = grid %%blocks {names = \"b\"} : index\n"
    "  %%start = mul %%b, %%size : index\n"
    "  parallel {extents = [1024], vec = 4, layout = #layout<1024: r4.d0s1 l32.d0s4 w4.d0s128 r2.d0s512>} do(%%i: "
    "index) {\n"
    "    %%at = add %%start, %%i : index\n"
    "    %%v = load buffer(%%x) index(%%at) {check = [0], vec = 4} : f32\n"
    "    %%r = math %%v {fn = %s} : f32\n"
    "    store value(%%r) buffer(%%y) index(%%at) {check = [0], vec = 4}\n"
    "  }\n"
    "}\n";

static void check_status(tl_status status) {
  if (status) ck_abort_msg("%s", tl_status_message(status));
}

static tl_module *parse(const char *function, tl_sources *sources, tl_diags *diags) {
  char source[4096];
  snprintf(source, sizeof source, text, function);
  uint32_t id = tl_sources_add(sources, "elementary.tir", tl_str_from(source));
  tl_module *module = tl_module_parse(sources, id, diags);
  tl_strbuf errors = {0};
  if (!module) tl_diags_print_text(diags, &errors, false);
  ck_assert_msg(module != NULL, "%s", tl_strbuf_c(&errors));
  return module;
}

// Runs the function over `in` in the emulator.
static void run(const char *function, const float *in, float *out) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_module *module = parse(function, &sources, &diags);
  tl_backend *backend = NULL;
  check_status(tl_backend_create(module, tl_target_find(TL_STR("sm_80")), &(tl_backend_options){.opt_level = 3}, &diags,
                                 &backend));
  char *bitcode;
  size_t len;
  const tl_manifest *manifest;
  tl_emu_kernel *kernel;
  check_status(tl_backend_device_bitcode(backend, &bitcode, &len));
  check_status(tl_backend_manifest(backend, &manifest));
  check_status(tl_emu_kernel_create(bitcode, len, &manifest->kernels[0], &kernel));
  void *x = tl_emu_alloc(SAMPLES * sizeof(float), 16), *y = tl_emu_alloc(SAMPLES * sizeof(float), 16);
  memcpy(x, in, SAMPLES * sizeof(float));
  void *params[] = {&x, &y};
  tl_emu_stats stats;
  check_status(tl_emu_launch(kernel, (const uint32_t[]){64, 1, 1}, params, &(tl_emu_options){.threads = 1}, &stats));
  memcpy(out, y, SAMPLES * sizeof(float));
  tl_emu_free(x);
  tl_emu_free(y);
  tl_emu_kernel_destroy(kernel);
  free(bitcode);
  tl_backend_destroy(backend);
  tl_module_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static double ulp_of(double value) {
  int exponent;
  frexp(value, &exponent);
  if (exponent < -125) exponent = -125;
  return ldexp(1.0, exponent - 24);
}

static double ulps_off(float got, double wanted) {
  if (isnan(wanted)) return isnan(got) ? 0 : INFINITY;
  // Past the largest float by half a unit the rounded result is infinite; allow the neighbour of the edge.
  if (isinf((float)wanted))
    return isinf(got) && (got > 0) == (wanted > 0) ? 0 : fabs(got) >= 0x1.fffffcp127 ? 1 : INFINITY;
  if (isinf(got)) return fabs(wanted) >= 0x1.fffffcp127 ? 1 : INFINITY;
  if (isnan(got)) return INFINITY;
  return fabs(got - wanted) / ulp_of(wanted);
}

typedef struct elementary_case {
  const char *name;
  int function;
  double (*reference)(double);
} elementary_case;

static double ref_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double ref_rsqrt(double x) {
  return 1 / sqrt(x);
}
static double ref_rcp(double x) {
  return 1 / x;
}
static double ref_round(double x) {
  return nearbyint(x);
}

static const elementary_case cases[] = {
    {"exp", TL_MATH_EXP, exp},       {"exp2", TL_MATH_EXP2, exp2},        {"log", TL_MATH_LOG, log},
    {"log2", TL_MATH_LOG2, log2},    {"tanh", TL_MATH_TANH, tanh},        {"sqrt", TL_MATH_SQRT, sqrt},
    {"rcp", TL_MATH_RCP, ref_rcp},   {"rsqrt", TL_MATH_RSQRT, ref_rsqrt}, {"sigmoid", TL_MATH_SIGMOID, ref_sigmoid},
    {"erf", TL_MATH_ERF, erf},       {"floor", TL_MATH_FLOOR, floor},     {"ceil", TL_MATH_CEIL, ceil},
    {"trunc", TL_MATH_TRUNC, trunc}, {"round", TL_MATH_ROUND, ref_round}, {"abs", TL_MATH_ABS, fabs},
};

// The stated bounds; a correctly rounded result is off by up to half a unit.
static const double bounds[TL_MATH_COUNT] = {
#define TL_MATH_FUNCTION(FN, builder, precise_ulp, how) [TL_MATH_##FN] = precise_ulp ? precise_ulp : 0.5,
#include "llvm_backend/math.def"
#undef TL_MATH_FUNCTION
};

// Pattern `set` 0: all bit patterns in even steps; 1: around 1; 2: -110 to 110.
static void fill_inputs(int set, float *in) {
  for (uint32_t i = 0; i < SAMPLES; i++) {
    uint32_t bits = i * 65537u;
    memcpy(&in[i], &bits, sizeof bits);
    if (set == 1) in[i] = 0.5f + (float)i / 32768.0f;
    if (set == 2) in[i] = ((float)i - 32768.0f) / 297.0f;
  }
  const float special[] = {0.0f,       -0.0f,           INFINITY,  -INFINITY, NAN,  0x1p-149f,
                           -0x1p-149f, 0x1.fffffep127f, 0x1p-126f, 1.0f,      -1.0f};
  if (set == 0) memcpy(in, special, sizeof special);
}

START_TEST(error_is_within_the_bound) {
  const elementary_case *c = &cases[_i];
  static float in[SAMPLES], out[SAMPLES];
  for (int set = 0; set < 3; set++) {
    fill_inputs(set, in);
    run(c->name, in, out);
    double worst = 0;
    int at = 0;
    for (int i = 0; i < SAMPLES; i++) {
      double off = ulps_off(out[i], c->reference((double)in[i]));
      if (!(off <= worst)) worst = off, at = i;
    }
    ck_assert_msg(worst <= bounds[c->function], "%s(%a) = %a, expected %a: %g ulp", c->name, in[at], out[at],
                  c->reference((double)in[at]), worst);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_elementary");
  TCase *functions = tcase_create("functions");
  tcase_set_timeout(functions, 60);
  tcase_add_loop_test(functions, error_is_within_the_bound, 0, sizeof cases / sizeof *cases);
  suite_add_tcase(suite, functions);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
